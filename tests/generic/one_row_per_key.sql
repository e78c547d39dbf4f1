{#- True when no key occurs twice (null keys count as equal). keys: columns.
    source_table, touched_only: as `part_to_test`. -#}
{% test one_row_per_key(model, keys, source_table=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only) -%}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ delta_cdc.tested_rows(part, model) }}
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{%- endcall -%}
{% endtest %}
