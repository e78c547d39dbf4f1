{#- True when no key has two current versions in a history. keys: columns.
    source_table, touched_only: as `part_to_test`. -#}
{% test one_current_row_per_key(model, keys, source_table=none, touched_only=false) %}
{%- if execute -%}
{%- set part = delta_cdc.part_to_test(model, source_table, touched_only) -%}
{%- if part.never_loaded -%}
{{ delta_cdc.nothing_to_test() }}
{%- else -%}
{#- a view works out entities of the bucket alone; where keys do not change, entity and key are one -#}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ delta_cdc.tested_rows(part, model, by=keys if part.keys_table else ['_cdc_entity']) }}
where is_current
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{%- endif -%}
{%- endif -%}
{% endtest %}
