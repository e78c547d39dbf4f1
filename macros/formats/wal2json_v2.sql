{#-
  wal2json, format-version 2 (https://github.com/eulerto/wal2json): one JSON object a change,
  with include-lsn, include-xids and include-timestamp. An unchanged TOAST value is left out, so its column is absent.
  `identity` holds the replica identity: the key before the change, or under REPLICA IDENTITY FULL the whole row.
-#}
{% macro wal2json_v2_changes(lines, settings) -%}
{%- set type -%}
struct<
  action string, lsn string, xid bigint, `timestamp` string,
  columns array<struct<name string, value variant>>, identity array<struct<name string, value variant>>>
{%- endset -%}
select
  batch_id, change_set, row_number, message,
  body is not null as parsed,
  body.action as op_code,
  {{ delta_cdc._map_of('body.columns.name', 'transform(body.columns, column -> cast(column.value as string))') }} as after,
  {{ delta_cdc._map_of('body.identity.name', 'transform(body.identity, column -> cast(column.value as string))') }} as before,
  -- X/Y in hexadecimal: the position in the write-ahead log, as one number
  {{ delta_cdc._lsn('body.lsn') }} as _lsn,
  {{ delta_cdc._arrival() }} as _arrival,
  cast(body.xid as string) as _xid,
  try_cast(body.`timestamp` as timestamp) as _timestamp
from ({{ delta_cdc._wal2json_v2_rows(lines, type) }})
{%- endmacro %}


{#- Bytes are hexadecimal digits. -#}
{% macro wal2json_v2_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'hex')")) }}
{% endmacro %}


{#- schema.table. The values need not be read. -#}
{% macro wal2json_v2_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(
      delta_cdc._wal2json_v2_rows(lines, 'struct<action string, schema string, `table` string>'),
      "body.action in ('I', 'U', 'D', 'T')", ['body.schema', 'body.`table`'])) }}
{% endmacro %}


{#- The messages with what they say, `body`, of a struct type; without those that change no row: begin, commit, logical messages. -#}
{% macro _wal2json_v2_rows(lines, type) -%}
select * from ({{ delta_cdc._lines_as(lines, type) }})
where not coalesce(body.action in ('B', 'C', 'M'), false)
{%- endmacro %}
