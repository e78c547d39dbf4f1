{#- True when final holds, row for row, what a rebuild from all of staging gives (A4).
    source_table, staging, keys: as `final` is given them. touched_only: as `part_to_test`. -#}
{% test final_equals_rebuild_from_staging(model, source_table, staging, keys=none, touched_only=false) %}
{%- if execute -%}
{%- set part = delta_cdc.part_to_test(model, source_table, touched_only, staging, keys) -%}
{%- if part.never_loaded -%}
{{ delta_cdc.nothing_to_test() }}
{%- else -%}
{%- set settings = part.settings -%}
{%- if settings.on_schema_change == 'ignore' -%}
  {%- do settings.update({'columns': settings['columns'] | select('in', part.published) | list}) -%}
{%- endif -%}
{%- set columns = delta_cdc.comparable_columns(settings, delta_cdc._final_columns(settings) + delta_cdc._derived_partitions(settings) | map(attribute='name') | list) -%}
{{ delta_cdc.differences(part, 'final', model, delta_cdc._final_rows(settings, delta_cdc.tested_staging(part), part.keys_table), columns) }}
{%- endif -%}
{%- endif -%}
{% endtest %}
