{#- True when a history that is kept as a table holds, row for row, what the view would show (A4). -#}
{% test history_equals_rebuild_from_staging(model, source_table, staging, keys=none) %}
{%- set settings = delta_cdc.settings(source_table) -%}
{%- if execute -%}
{%- do adapter.tune_for([model, staging]) -%}
{%- set columns = delta_cdc._history_columns(settings, of_table=true) -%}
with rebuilt as (
{{ delta_cdc._history_rows(settings, delta_cdc.unheld(settings, staging), keys) }}
)
(select 'only in history' as side, {{ columns }} from {{ model }} except all select 'only in history', {{ columns }} from rebuilt)
union all
(select 'only in the rebuild' as side, {{ columns }} from rebuilt except all select 'only in the rebuild', {{ columns }} from {{ model }})
{%- endif -%}
{% endtest %}
