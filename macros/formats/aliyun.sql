{#-
  The JSON that Alibaba Cloud's DataWorks writes to Kafka
  (https://www.alibabacloud.com/help/en/dataworks/user-guide/message-formats):
  {schema, payload: {before, after, op, sequenceId, timestamp}}. An update is one message with both images (UPDATE_AFTER),
  or one of each (UPDATE_BEFOR, UPDATE_AFTER), which become one. A message without an image changes no row, but for TRUNCATE.
-#}
{% macro aliyun_lines(lines) %}
  {{ return(delta_cdc._with_image_before(lines, "try_variant_get(body, '$.payload.op', 'string')",
      ['UPDATE_BEFOR'], ['UPDATE_AFTER'],
      ["to_json(try_variant_get(body, '$.schema.source', 'map<string, string>'))"])) }}
{% endmacro %}


{#- The two images of an update are one line here, `__before` in the second (`aliyun_lines`). -#}
{% macro aliyun_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message, parsed, op_code,
  {{ delta_cdc._as_listed('row_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as before,
  _sequence_id, _timestamp
from (
  select batch_id, change_set, row_number, message,
    body.payload.op is not null as parsed,
    if(body.payload.sequenceId = '-1' and body.payload.op = 'INSERT', 'LOAD', body.payload.op) as op_code,
    coalesce(body.payload.after.dataColumn, body.payload.before.dataColumn) as row_values,
    coalesce(body.payload.before.dataColumn, body.`__before`.payload.before.dataColumn) as old_values,
    try_cast(nullif(body.payload.sequenceId, '-1') as decimal(38, 0)) as _sequence_id,
    {{ delta_cdc._of_millis('nullif(body.payload.`timestamp`.eventTime, -1)') }} as _timestamp
  from ({{ delta_cdc._aliyun_rows(lines) }})
)
{%- endmacro %}


{#- Moments come as milliseconds, bytes in base64. -#}
{% macro aliyun_value(text, type, settings, column) %}
  {%- if type | lower | trim in ('date', 'timestamp', 'timestamp_ntz') -%}
    {%- set type = type | lower | trim -%}
    {%- set moment = delta_cdc._of_millis('try_cast(' ~ text ~ ' as bigint)') -%}
    {{ return("coalesce(" ~ (moment if type == 'timestamp' else 'cast(' ~ delta_cdc._in_utc(moment) ~ ' as ' ~ type ~ ')')
        ~ ", " ~ delta_cdc._cast_text(text, type) ~ ")") }}
  {%- endif -%}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'base64')")) }}
{% endmacro %}


{#- database.table, or database.schema.table -#}
{% macro aliyun_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._aliyun_rows(lines), 'body.payload.op is not null',
      ['body.schema.source.dbName', 'body.schema.source.schemaName', 'body.schema.source.tableName'])) }}
{% endmacro %}


{#- The messages with what they say, `body`; without those that change no row. -#}
{% macro _aliyun_rows(lines) -%}
{%- set image = 'struct<dataColumn map<string, string>>' -%}
{%- set type -%}
struct<
  schema struct<source struct<dbName string, schemaName string, tableName string>>,
  payload struct<op string, sequenceId string, `timestamp` struct<eventTime bigint>, before {{ image }}, after {{ image }}>,
  `__before` struct<payload struct<before {{ image }}>>>
{%- endset -%}
select * from ({{ delta_cdc._lines_as(lines, type) }})
where not coalesce(body.payload.op <> 'TRUNCATE' and body.payload.before.dataColumn is null
    and body.payload.after.dataColumn is null, false)
{%- endmacro %}
