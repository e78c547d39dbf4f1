{#- True when no key occurs twice (null keys count as equal). keys: columns.
    source_table, touched_only: as `part_to_test`. -#}
{% test one_row_per_key(model, keys, source_table=none, touched_only=false) %}
{%- if execute -%}
{%- set part = delta_cdc.part_to_test(model, source_table, touched_only) -%}
{%- if part.never_loaded -%}
{{ delta_cdc.nothing_to_test() }}
{%- else -%}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ delta_cdc.tested_rows(part, model) }}
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{%- endif -%}
{%- endif -%}
{% endtest %}
