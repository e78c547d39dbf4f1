{#-
  Delta's own change data feed (https://docs.delta.io/latest/delta-change-data-feed.html): the columns of the row, with
  `_change_type`, `_commit_version` and `_commit_timestamp`. A commit is a transaction without an order inside it. Of a key
  that it removed and wrote, the row that it wrote counts: an update. A row before an update whose key no row after it has
  was given another key: it is deleted.
-#}
{% macro delta_cdf_changes(lines, settings) -%}
{%- set removed = "('delete', 'update_preimage')" -%}
{%- set keys = [] -%}
{%- for key in settings['keys'] %}{% do keys.append(delta_cdc._text_of(key, settings)) %}{% endfor -%}
select
  batch_id, change_set, row_number, message, parsed,
  {%- if keys %}
  if(removes, 'update_postimage', change_type) as op_code,
  {%- else %}
  -- rows without a key are their values: an update takes one out and puts one in
  case change_type when 'update_preimage' then 'delete' when 'update_postimage' then 'insert' else change_type end as op_code,
  {%- endif %}
  after, cast(null as map<string, string>) as before, _commit_version,
  if(change_type in {{ removed }}, 0, 1) as _order, _commit_timestamp
from (
  select *
  {%- if keys %},
    bool_or(change_type in {{ removed }}) over (partition by change_set, {{ keys | join(', ') }})
      and change_type not in {{ removed }} as removes,
    bool_or(change_type not in {{ removed }}) over (partition by change_set, {{ keys | join(', ') }}) as writes
  {%- endif %}
  from (
    select batch_id, change_set, row_number, message, row_values is not null as parsed, row_values['_change_type'] as change_type,
      {{ delta_cdc._as_listed('new_values', settings) }} as after,
      try_cast(row_values['_commit_version'] as bigint) as _commit_version,
      try_cast(row_values['_commit_timestamp'] as timestamp) as _commit_timestamp
    from (
      select *, {{ delta_cdc._columns_where('row_values',
          "name not in ('_change_type', '_commit_version', '_commit_timestamp')") }} as new_values
      from {{ delta_cdc._flat_rows(lines) }}
    )
  )
)
{%- if keys %}
where not coalesce(change_type in {{ removed }} and writes, false)
{%- endif %}
{%- endmacro %}


{#- As row_messages tells the columns of files: bytes in hexadecimal digits. -#}
{% macro delta_cdf_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'hex')")) }}
{% endmacro %}
