{#-
  Maxwell's daemon (https://maxwells-daemon.io/dataformat/): one JSON object a row of MySQL's binlog.
  `old` has the values before of the columns that an update changed. Rows of a bootstrap have no place in the order.
  No row change: the begin and end of a bootstrap, and DDL. Truncates are not in it.
-#}
{% macro maxwell_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message, parsed, op_code, after,
  {{ delta_cdc._before_by_old('update') }} as before,
  _position, _arrival, _xoffset, _xid, _gtid, _timestamp
from (
  select *, {{ delta_cdc._as_listed('row_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as old
  from (
    select batch_id, change_set, row_number, message,
      body.type is not null and body.data is not null as parsed, body.type as op_code,
      body.data as row_values, body.old as old_values,
      -- master.000006:800911, where the number of the log goes on beyond its digits
      if(body.type <> 'bootstrap-insert' and body.position rlike '\\.\\d+:\\d+$', struct(
        try_cast(regexp_extract(body.position, '\\.(\\d+):', 1) as bigint) as log,
        try_cast(regexp_extract(body.position, ':(\\d+)$', 1) as bigint) as offset), null) as _position,
      if(body.type <> 'bootstrap-insert', {{ delta_cdc._arrival() }}, null) as _arrival,  -- O5
      -- without a position it says nothing of the order; the last row of a transaction has none, but `commit`
      if(body.type <> 'bootstrap-insert' and body.position is not null,
        coalesce(body.xoffset, if(body.`commit`, 9223372036854775807, null)), null) as _xoffset,
      body.xid as _xid, body.gtid as _gtid,
      timestamp_micros(try_multiply(body.ts, 1000000L)) as _timestamp
    from ({{ delta_cdc._maxwell_rows(lines) }})
  )
)
{%- endmacro %}


{#- Bytes are base64. -#}
{% macro maxwell_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'base64')")) }}
{% endmacro %}


{#- database.table -#}
{% macro maxwell_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._maxwell_rows(lines), 'body.type is not null',
      ['body.database', 'body.`table`'])) }}
{% endmacro %}


{#- The messages with what they say, `body`; without those that change no row. -#}
{% macro _maxwell_rows(lines) -%}
{%- set type -%}
struct<
    type string, database string, `table` string, data map<string, string>, old map<string, string>,
    ts bigint, xid string, xoffset bigint, `commit` boolean, position string, gtid string>
{%- endset -%}
select * from ({{ delta_cdc._lines_as(lines, type) }})
where not coalesce(body.type in ('bootstrap-start', 'bootstrap-complete') or body.type rlike '^(table|database)-', false)
{%- endmacro %}
