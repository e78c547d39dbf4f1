{#- True when no key occurs twice (null keys count as equal). keys: columns. -#}
{% test one_row_per_key(model, keys) %}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ model }}
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{% endtest %}
