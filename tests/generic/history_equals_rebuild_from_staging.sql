{#- True when a history that is kept as a table holds, row for row, what the view would show (A4).
    source_table, staging, keys: as `history` is given them. touched_only: as `part_to_test`. -#}
{% test history_equals_rebuild_from_staging(model, source_table, staging, keys=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only, staging, keys) -%}
{%- set added = ['_cdc_entity', 'valid_from', 'valid_to', 'is_current', '_cdc_sequence'] -%}
{%- set columns = delta_cdc.comparable_columns(part.settings, part.settings['columns'] + added) -%}
{%- set rebuilt = delta_cdc._history_rows(part.settings, delta_cdc.tested_staging(part), part.keys_table) -%}
{{ delta_cdc.differences(part, 'history', model, rebuilt, columns) }}
{%- endcall -%}
{% endtest %}
