{#-
  wal2json, format-version 1 (https://github.com/eulerto/wal2json): one JSON object a transaction, with include-lsn,
  include-xids and include-timestamp. Its place in `change` orders a change inside its transaction. `oldkeys` holds the replica
  identity. Truncates are not in it; transactions without changes and logical messages change no row.
-#}
{% macro wal2json_v1_lines(lines) %}{{ return(delta_cdc._one_line_each(lines, ['change'])) }}{% endmacro %}


{#- Of lines with one change each. -#}
{% macro wal2json_v1_changes(lines, settings) -%}
{%- set after = delta_cdc._map_of('row_change.columnnames', 'row_change.columnvalues') -%}
{%- set before = delta_cdc._map_of('row_change.oldkeys.keynames', 'row_change.oldkeys.keyvalues') -%}
{#- `oldkeys` leaves out what is null: of a whole row before, what it does not have of the row after was null #}
{%- if settings.get('full_images') or settings.get('keyless') == 'multiset' -%}
  {%- set before = 'transform(array(struct(' ~ after ~ ' as after, ' ~ before ~ ' as before)), images -> coalesce(map_concat('
        ~ 'transform_values(map_filter(images.after, (name, value) -> not map_contains_key(images.before, name)), '
        ~ '(name, value) -> cast(null as string)), images.before), images.before))[0]' -%}
{%- endif -%}
select
  batch_id, change_set, row_number, message,
  row_change is not null as parsed,
  row_change.kind as op_code,
  {{ after }} as after,
  {{ before }} as before,
  -- X/Y in hexadecimal: where the transaction's commit ends in the write-ahead log, as one number
  {{ delta_cdc._lsn('body.nextlsn') }} as _lsn,
  {{ delta_cdc._arrival() }} as _arrival,
  coalesce(body.place, 0) as _place,
  -- without both, as wal2json writes it by default, the message is the transaction: the number of its first line
  coalesce(cast(body.xid as string),
    if(body.nextlsn is null, concat_ws('-', batch_id, row_number - coalesce(body.place, 0)), null)) as _xid,
  try_cast(body.`timestamp` as timestamp) as _timestamp
from ({{ delta_cdc._wal2json_v1_rows(lines) }})
{%- endmacro %}


{#- As in version 2. -#}
{% macro wal2json_v1_value(text, type, settings, column) %}
  {{ return(delta_cdc.wal2json_v2_value(text, type, settings, column)) }}
{% endmacro %}


{#- schema.table -#}
{% macro wal2json_v1_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._wal2json_v1_rows(lines), 'row_change.kind is not null',
      ['row_change.schema', 'row_change.`table`'])) }}
{% endmacro %}


{#- The messages with what they say, `body`, and their one change; without those that change no row. -#}
{% macro _wal2json_v1_rows(lines) -%}
{%- set type -%}
struct<
  xid bigint, nextlsn string, `timestamp` string, place int,
  change array<struct<kind string, schema string, `table` string, columnnames array<string>, columnvalues array<string>,
    oldkeys struct<keynames array<string>, keyvalues array<string>>>>>
{%- endset -%}
select *, get(body.change, 0) as row_change from ({{ delta_cdc._lines_as(lines, type) }})
where not coalesce(size(body.change) = 0 or get(body.change, 0).kind = 'message', false)
{%- endmacro %}
