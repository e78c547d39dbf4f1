{#- True when final holds, row for row, what a rebuild from all of staging gives (A4).
    source_table, staging, keys: as `final` is given them. touched_only: as `part_to_test`. -#}
{% test final_equals_rebuild_from_staging(model, source_table, staging, keys=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only, staging, keys) -%}
{%- set settings = part.settings -%}
{%- set there = part.published if settings.on_schema_change == 'ignore' else settings['columns'] -%}
{%- do settings.update({'columns': settings['columns'] | select('in', there) | list}) -%}
{%- set columns = delta_cdc.comparable_columns(settings, delta_cdc._final_columns(settings)) -%}
{%- set rebuilt = delta_cdc._final_rows(settings, delta_cdc.tested_staging(part), part.keys_table) -%}
{{ delta_cdc.differences(part, 'final', model, rebuilt, columns) }}
{%- endcall -%}
{% endtest %}
