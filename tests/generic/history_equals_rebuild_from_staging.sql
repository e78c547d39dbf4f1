{#- True when a history that is kept as a table holds, row for row, what the view would show (A4).
    source_table, staging, keys: as `history` is given them. -#}
{% test history_equals_rebuild_from_staging(model, source_table, staging, keys=none) %}
{%- set settings = delta_cdc.settings(source_table) -%}
{%- if execute -%}
{%- do adapter.tune_for([model, staging]) -%}
{%- do delta_cdc.follow_staging(settings, delta_cdc.progress(staging), delta_cdc.progress(model).columns) -%}
{%- set columns = delta_cdc.comparable_columns(settings, settings['columns'] + ['_cdc_entity', 'valid_from', 'valid_to', 'is_current', '_cdc_sequence']) -%}
with rebuilt as (
{{ delta_cdc._history_rows(settings, delta_cdc.unheld(settings, staging), keys) }}
)
(select 'only in history' as side, {{ columns }} from {{ model }} except all select 'only in history', {{ columns }} from rebuilt)
union all
(select 'only in the rebuild' as side, {{ columns }} from rebuilt except all select 'only in the rebuild', {{ columns }} from {{ model }})
{%- endif -%}
{% endtest %}
