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
  {{ return("coalesce(try_cast(" ~ row ~ " as map<string, string>), try_cast(try_parse_json(try_cast(" ~ row
      ~ " as string)) as map<string, string>))") }}
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


{#- The rows with what they say, `body`, under supa_audit's names; an audit table made by hand has others. -#}
{% macro _audit_rows(lines) -%}
select *, struct(
    coalesce(row.id, row.seq) as id, coalesce(row.transaction_id, row.txid, row.xact_id) as transaction_id, row.op,
    coalesce(row.ts, row.at) as ts, row.table_schema, coalesce(row.table_name, row.tbl) as table_name,
    coalesce(row.record, row.new_row) as record, coalesce(row.old_record, row.old_row) as old_record) as body
from (
  select *, try_cast({{ delta_cdc._json_in('message') }} as struct<
    id bigint, transaction_id string, op string, ts string,
    table_schema string, table_name string, record variant, old_record variant,
    seq bigint, txid string, xact_id string, at string, tbl string, new_row variant, old_row variant>) as row
  from {{ lines }}
)
{%- endmacro %}
