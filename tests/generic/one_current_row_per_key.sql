{#- True when no key has two current versions in a history. keys: columns.
    source_table, touched_only: as `part_to_test`. -#}
{% test one_current_row_per_key(model, keys, source_table=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only) -%}
{#- a view works out entities of the bucket alone; where keys do not change, entity and key are one -#}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ delta_cdc.tested_rows(part, model, by=keys if part.keys_table else ['_cdc_entity']) }}
where is_current
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{%- endcall -%}
{% endtest %}
