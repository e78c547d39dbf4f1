{#-
  AWS Database Migration Service's JSON for Kafka and Kinesis
  (https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.Kafka.html): `data`, `metadata` and, where the task has it
  enabled, `before-image`; or a table mapping with `add-before-image-columns` puts the row before in `data`, as columns with BI_
  before their names. No row change: records of type `control`.
-#}
{% macro dms_changes(lines, settings) -%}
{%- set is_before = "startswith(name, 'BI_') and lower(name) not in ("
      ~ delta_cdc._literals(delta_cdc._known_columns(settings) | map('lower') | list) ~ ")" -%}
select
  batch_id, change_set, row_number, message, parsed, op_code,
  {{ delta_cdc._as_listed('row_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as before,
  _timestamp, _commit_timestamp, coalesce(_commit_timestamp, _timestamp) as _occurred_at, _stream_position,
  _transaction_id, _transaction_record_id
from (
  select batch_id, change_set, row_number, message,
    body.metadata.operation is not null as parsed, body.metadata.operation as op_code,
    coalesce({{ delta_cdc._columns_where('body.data', 'not (' ~ is_before ~ ')') }}, body.`before-image`) as row_values,
    coalesce(body.`before-image`, if(exists(map_keys(body.data), name -> {{ is_before }}),
      transform_keys({{ delta_cdc._columns_where('body.data', is_before) }}, (name, value) -> substr(name, 4)), null))
        as old_values,
    try_cast(body.metadata.`timestamp` as timestamp) as _timestamp,
    try_cast(body.metadata.`commit-timestamp` as timestamp) as _commit_timestamp,
    body.metadata.`stream-position` as _stream_position,
    body.metadata.`transaction-id` as _transaction_id,
    body.metadata.`transaction-record-id` as _transaction_record_id
  from ({{ delta_cdc._dms_rows(lines) }})
)
{%- endmacro %}


{#- Bytes come in hexadecimal digits, by default after 0x. -#}
{% macro dms_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes="try_to_binary(regexp_replace(" ~ text ~ ", '^0x', ''), 'hex')")) }}
{% endmacro %}


{#- schema.table -#}
{% macro dms_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._dms_rows(lines), 'body.metadata.operation is not null',
      ['body.metadata.`schema-name`', 'body.metadata.`table-name`'])) }}
{% endmacro %}


{#- The messages with what they say, `body`; without those that change no row. -#}
{% macro _dms_rows(lines) -%}
{%- set type -%}
struct<
    data map<string, string>, `before-image` map<string, string>,
    metadata struct<operation string, `record-type` string, `schema-name` string, `table-name` string, `timestamp` string,
      `commit-timestamp` string, `stream-position` string, `transaction-id` string, `transaction-record-id` bigint>>
{%- endset -%}
select * from ({{ delta_cdc._lines_as(lines, type) }})
where not body.metadata.`record-type` <=> 'control'
{%- endmacro %}
