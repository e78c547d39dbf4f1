-- the rows that a final has and should not, and those that it lacks
{% for table in ['customer', 'customer_order'] %}
{% set final, expected = ref('final_' ~ table), ref('expected_' ~ table) %}
{% set columns = {'customer': 'id, name, email', 'customer_order': 'id, customer_id, amount'}[table] %}
(
  select '{{ table }}' as in_table, 'not expected' as what, to_json(struct(*)) as found
  from (
    select {{ columns }} from {{ final }}
    except all
    select {{ columns }} from {{ expected }}
  )
  union all
  select '{{ table }}' as in_table, 'missing' as what, to_json(struct(*)) as found
  from (
    select {{ columns }} from {{ expected }}
    except all
    select {{ columns }} from {{ final }}
  )
)
{{ 'union all' if not loop.last }}
{% endfor %}
