{#-
  Rows of an audit table that triggers fill, as one JSON object each: supa_audit's record_version
  (https://github.com/supabase/supa_audit): id, op, ts, table_schema, table_name, record and old_record, the new and
  the old row as JSON; transaction_id, where the audit table has one. Or seq, op, at, tbl, new_row, old_row and
  txid, and one letter for an operation.
-#}
{% macro trigger_audit_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message,
  body.op is not null as parsed, body.op as op_code,
  coalesce({{ delta_cdc._audit_row('body.record') }}, {{ delta_cdc._audit_row('body.old_record') }}) as after,
  {{ delta_cdc._audit_row('body.old_record') }} as before,
  body.id as _audit_id, body.transaction_id as _transaction_id, try_cast(body.ts as timestamp) as _timestamp
from ({{ delta_cdc._audit_rows(lines) }})
{%- endmacro %}


{#- A row as a JSON object, or as the text of one. -#}
{% macro _audit_row(row) %}
  {{ return('coalesce(' ~ delta_cdc._texts(row) ~ ', '
      ~ delta_cdc._texts('try_parse_json(try_cast(' ~ row ~ ' as string))') ~ ')') }}
{% endmacro %}


{#- Bytes are hexadecimal digits after \x. -#}
{% macro trigger_audit_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes="try_to_binary(regexp_replace(" ~ text ~ ", r'^\\\\x', ''), 'hex')")) }}
{% endmacro %}


{#- schema.table -#}
{% macro trigger_audit_tables(lines) %}
  {{ return(delta_cdc._tables_by_name(delta_cdc._audit_rows(lines), 'body.op is not null',
      ['body.table_schema', 'body.table_name'])) }}
{% endmacro %}


{#- The rows with what they say, `body`, under supa_audit's names; an audit table made by hand has others, and a database that
    folds names has them in capitals. -#}
{% macro _audit_rows(lines) -%}
select *, struct(
    coalesce({{ delta_cdc._audit_number('ID') }}, {{ delta_cdc._audit_number('SEQ') }}) as id,
    coalesce(try_cast(row['TRANSACTION_ID'] as string), try_cast(row['TXID'] as string), try_cast(row['XACT_ID'] as string))
      as transaction_id,
    try_cast(row['OP'] as string) as op, coalesce(try_cast(row['TS'] as string), try_cast(row['AT'] as string)) as ts,
    try_cast(row['TABLE_SCHEMA'] as string) as table_schema,
    coalesce(try_cast(row['TABLE_NAME'] as string), try_cast(row['TBL'] as string)) as table_name,
    coalesce(row['RECORD'], row['NEW_ROW']) as record, coalesce(row['OLD_RECORD'], row['OLD_ROW']) as old_record) as body
from (
  select * except (told), {{ delta_cdc._controls_in_upper('told', 'true') }} as row
  from (select *, {{ delta_cdc._fields(delta_cdc._json_in('message')) }} as told from {{ lines }})
)
{%- endmacro %}

{#- Oracle's NUMBER comes as 5.0000000000. -#}
{% macro _audit_number(name) %}{{ return("try_cast(try_cast(row['" ~ name ~ "'] as decimal(38, 0)) as bigint)") }}{% endmacro %}
