{#- True when no key has two current versions in a history. keys: columns. -#}
{% test one_current_row_per_key(model, keys) %}
select {{ delta_cdc.column_list(keys) }}, count(*) as found
from {{ model }}
where is_current
group by {{ delta_cdc.column_list(keys) }}
having count(*) > 1
{% endtest %}
