{#-
  Alibaba Canal's flat messages (https://github.com/alibaba/canal): a row event of MySQL's binlog, with several rows in `data`.
  Every value is text. `old` has, for each row of an update, the values before of the columns that changed.
  No row change: DDL, but for TRUNCATE.
-#}
{% macro canal_lines(lines) %}{{ return(delta_cdc._one_line_each(lines, ['data', 'old'])) }}{% endmacro %}


{#- `old` has the columns that an update changed: with the others of the row it is the row before. -#}
{% macro canal_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message, parsed, op_code, after,
  {{ delta_cdc._before_by_old('UPDATE') }} as before,
  _message_time, _message_id, _arrival, _place, _gtid, _timestamp
from (
  select *, {{ delta_cdc._as_listed('row_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as old
  from (
    select batch_id, change_set, row_number, message,
      body.type is not null as parsed, body.type as op_code,
      -- Huawei's DRS tells a deleted row in `old`
      {{ delta_cdc._canal_names("coalesce(get(body.data, 0), if(body.type = 'DELETE', get(body.old, 0), null))") }} as row_values,
      {{ delta_cdc._canal_names('get(body.old, 0)') }} as old_values,
      coalesce(body._tidb.commitTs, body.ts) as _message_time,  -- TiCDC's `ts` is when it sent, once more perhaps
      body.id as _message_id, {{ delta_cdc._arrival() }} as _arrival,
      coalesce(body.place, 0) as _place, nullif(body.gtid, '') as _gtid,
      {{ delta_cdc._of_millis('body.es') }} as _timestamp
    from ({{ delta_cdc._canal_rows(lines) }})
  )
)
{%- endmacro %}


{#- An image with names where ENUM and SET columns have numbers (`sqlType` 4, and -7 or -2): `mysqlType` tells them,
    `enum('a','b')`; TiCDC's `enum` does not. The first name of an enum is 1, and 0 the empty text; of a set each bit
    is a name, the lowest the first. -#}
{% macro _canal_names(image) -%}
if(exists(map_values(body.mysqlType), type -> type rlike '(?i)^(enum|set)[(]'),
        transform_values({{ image }}, (name, value) -> if(
          body.mysqlType[name] rlike '(?i)^(enum|set)[(]' and body.sqlType[name] in ('4', '-7', '-2') and value rlike '^[0-9]+$',
          transform(
            array(transform(regexp_extract_all(body.mysqlType[name], '\'((?:[^\']|\'\')*)\'', 1), one -> replace(one, '\'\'', '\''))),
            names -> coalesce(case
              when body.mysqlType[name] rlike '(?i)^set' then array_join(filter(names,
                (one, place) -> substr(lpad(conv(value, 10, 2), 64, '0'), 64 - place, 1) = '1'), ',')
              when value = '0' then ''
              else get(names, try_cast(value as int) - 1) end, value))[0],
          value)),
        {{ image }})
{%- endmacro %}


{#- MySQL's bytes come one character each (ISO 8859-1). -#}
{% macro canal_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type,
      bytes="if(" ~ text ~ " rlike r'^[\\x00-\\xff]*$', encode(" ~ text ~ ", 'ISO-8859-1'), null)")) }}
{% endmacro %}


{#- database.table -#}
{% macro canal_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._canal_rows(lines), 'body.type is not null',
      ['body.database', 'body.`table`'])) }}
{% endmacro %}


{#- The messages with what they say, `body`; without those that change no row. -#}
{% macro _canal_rows(lines) -%}
{%- set type -%}
struct<
    type string, database string, `table` string, data array<map<string, string>>, old array<map<string, string>>,
    ts bigint, es bigint, id bigint, gtid string, `sql` string, _tidb struct<commitTs: bigint>, place int,
    mysqlType map<string, string>, sqlType map<string, string>>
{%- endset -%}
select * from ({{ delta_cdc._lines_as(lines, type) }})
-- DDL, and what tells the statement whose rows are in other messages (binlog_rows_query_log_events)
where not coalesce(body.data is null and body.type <> 'TRUNCATE'
    and (body.type not in ('INSERT', 'UPDATE', 'DELETE') or body.`sql` <> ''), false)
{%- endmacro %}
