{#-
  ChangeEvent(changeType, timestamp, columnNames, columnValues, oldKeyNames, oldKeyValues) as one JSON object each: names and
  values are arrays of equal length. Each event may tell other columns, and other keys: what it does not tell is absent.
-#}
{% macro change_event_changes(lines, settings) -%}
{%- set type -%}
struct<
    changeType string, `timestamp` string, columnNames array<string>, columnValues array<string>,
    oldKeyNames array<string>, oldKeyValues array<string>>
{%- endset -%}
select
  batch_id, change_set, row_number, message,
  body.changeType is not null as parsed, upper(body.changeType) as op_code,
  {{ delta_cdc._map_of('body.columnNames', 'body.columnValues') }} as after,
  {{ delta_cdc._map_of('body.oldKeyNames', 'body.oldKeyValues') }} as before,
  coalesce({{ delta_cdc._of_millis('try_cast(body.`timestamp` as bigint)') }},
    try_cast(body.`timestamp` as timestamp)) as _timestamp
from ({{ delta_cdc._lines_as(lines, type) }})
{%- endmacro %}


{#- As flat rows have their values. -#}
{% macro change_event_value(text, type, settings, column) %}
  {{ return(delta_cdc.rows_value(text, type, settings, column)) }}
{% endmacro %}
