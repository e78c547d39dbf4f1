{#- True when final holds, row for row, what a rebuild from all of staging gives (A4).
    source_table, staging, keys: as `final` is given them. -#}
{% test final_equals_rebuild_from_staging(model, source_table, staging, keys=none) %}
{%- set settings = delta_cdc.settings(source_table) -%}
{%- if execute -%}
{%- do adapter.tune_for([model, staging]) -%}
{%- set published = delta_cdc.progress(model).columns -%}
{%- do delta_cdc.follow_staging(settings, delta_cdc.progress(staging), published) -%}
{%- if settings.on_schema_change == 'ignore' -%}
  {%- do settings.update({'columns': settings['columns'] | select('in', published) | list}) -%}
{%- endif -%}
{%- set columns = delta_cdc.comparable_columns(settings, delta_cdc._final_columns(settings) + delta_cdc._derived_partitions(settings) | map(attribute='name') | list) -%}
with rebuilt as (
{{ delta_cdc._final_rows(settings, delta_cdc.unheld(settings, staging), keys) }}
)
(select 'only in final' as side, {{ columns }} from {{ model }} except all select 'only in final', {{ columns }} from rebuilt)
union all
(select 'only in the rebuild' as side, {{ columns }} from rebuilt except all select 'only in the rebuild', {{ columns }} from {{ model }})
{%- endif -%}
{% endtest %}
