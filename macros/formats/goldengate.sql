{#-
  Oracle GoldenGate's JSON formatters (https://docs.oracle.com/en/middleware/goldengate/big-data/): `json`, one operation
  with its images before and after, or `json_row`, the one image beside the fields of the operation.
  The Kafka Connect handler writes either under `payload`, beside its schema.
  What the trail does not have of a row is absent: no field, or null with <column>_isMissing true.
-#}
{% macro goldengate_changes(lines, settings) -%}
{%- set fields = ['table', 'op_type', 'op_ts', 'current_ts', 'pos', 'primary_keys', 'tokens', 'csn', 'xid', 'before',
      'after'] -%}
{%- set listed = fields | select('in', delta_cdc._known_columns(settings)) | list -%}
{%- set flat = delta_cdc._columns_where(delta_cdc._texts('operation'),
      'name not in (' ~ delta_cdc._literals(fields | reject('in', listed) | list) ~ ')') -%}
{%- if listed -%}
  {#- a column of such a name, spelled otherwise, stands beside the field -#}
  {%- set flat = 'transform(array(' ~ flat ~ '), image -> ' ~ delta_cdc._columns_where('image', 'name not in ('
        ~ delta_cdc._literals(listed) ~ ') or not exists(map_keys(image), other -> other <> name and lower(other) = name)')
        ~ ')[0]' -%}
{%- endif -%}
select
  batch_id, change_set, row_number, message, parsed, op_code,
  {{ delta_cdc._as_listed('row_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as before,
  _pos, _arrival, _csn, _xid, _timestamp
from (
  select batch_id, change_set, row_number, message,
    body.op_type is not null as parsed, body.op_type as op_code,
    {{ delta_cdc._goldengate_present('coalesce(body.after, body.before, ' ~ flat ~ ')') }} as row_values,
    {{ delta_cdc._goldengate_present('body.before') }} as old_values,
    -- the trail file's number and the place in it; of a file without a number, as of an initial load, -1: 00000000-10000001391
    coalesce(try_cast(body.pos as decimal(38, 0)),
      try_cast(regexp_extract(body.pos, r'^0*-1(\d{10})$', 1) as decimal(38, 0)) - 10000000000) as _pos,
    {{ delta_cdc._arrival() }} as _arrival,
    try_cast(body.csn as decimal(38, 0)) as _csn, body.xid as _xid,
    {{ delta_cdc._goldengate_time('body.op_ts', 'timestamp') }} as _timestamp
  from (
    select *, try_cast(operation as struct<
      op_type string, op_ts string, pos string, csn string, xid string,
      before map<string, string>, after map<string, string>>) as body
    from ({{ delta_cdc._goldengate_operations(lines) }})
  )
)
{%- endmacro %}


{#- An image with the columns that it has. -#}
{% macro _goldengate_present(image) -%}
transform(array({{ image }}),
  image -> map_filter(image, (name, value) -> not name like '%\\_isMissing' and not image[name || '_isMissing'] <=> 'true'))[0]
{%- endmacro %}


{#- Bytes are base64; times are written in two ways. -#}
{% macro goldengate_value(text, type, settings, column) %}
  {%- if type | lower | trim in ('date', 'timestamp', 'timestamp_ntz') -%}
    {{ return(delta_cdc._goldengate_time(text, type)) }}
  {%- endif -%}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'base64')")) }}
{% endmacro %}

{#- Trails write 2013-06-02:22:14:41 beside 2013-06-02 22:14:41. -#}
{% macro _goldengate_time(text, type) %}
  {{ return(delta_cdc._cast_text("regexp_replace(" ~ text ~ ", '^(\\\\d{4}-\\\\d{2}-\\\\d{2}):', '$1 ')", type)) }}
{% endmacro %}


{#- schema.table, with the catalog before it where there is one -#}
{% macro goldengate_tables(lines) -%}
select batch_id, change_set, row_number, message,
  if(try_variant_get(operation, '$.op_type', 'string') is not null,
    try_variant_get(operation, '$.table', 'string'), null) as source_table
from ({{ delta_cdc._goldengate_operations(lines) }})
{%- endmacro %}


{#- The messages with the operation that they hold, as VARIANT; a row may have a column `payload`. -#}
{% macro _goldengate_operations(lines) -%}
select *, if(try_variant_get(json, '$.op_type', 'string') is null,
    coalesce(try_variant_get(json, '$.payload', 'variant'), json), json) as operation
from (select *, {{ delta_cdc._json_in('message') }} as json from {{ lines }})
{%- endmacro %}
