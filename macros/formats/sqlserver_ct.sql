{#-
  Rows of SQL Server's change tables, cdc.<capture_instance>_CT, as one JSON object each
  (https://learn.microsoft.com/en-us/sql/relational-databases/system-tables/cdc-capture-instance-ct-transact-sql).
  The row before an update (`__$operation` 3) and the row after it (4) become one change. LSNs are
  hexadecimal digits, with 0x or without.
-#}
{% macro sqlserver_ct_lines(lines) %}
  {{ return(delta_cdc._with_image_before(lines, "try_variant_get(body, '$[\"__$operation\"]', 'string')", ['3'], ['4'],
      ["try_variant_get(body, '$[\"__$start_lsn\"]', 'string')", "try_variant_get(body, '$[\"__$seqval\"]', 'string')",
        "try_variant_get(body, '$[\"__$command_id\"]', 'string')"])) }}
{% endmacro %}


{#- The two images of an update are one line here, `__before` in the second (`sqlserver_ct_lines`). -#}
{% macro sqlserver_ct_changes(lines, settings) -%}
{%- set before = delta_cdc._row_of("row_values['__before']") -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed, row_values['__$operation'] as op_code,
  {{ delta_cdc._as_listed('new_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as before,
  {{ delta_cdc._lsn_of_sqlserver("row_values['__$start_lsn']") }} as _start_lsn,
  coalesce(try_cast(row_values['__$command_id'] as int), 0) as _command_id,
  length(row_values['__$start_lsn']) = 16 as _bytes_are_base64,
  if(row_values['__$seqval'] is null, '', {{ delta_cdc._lsn_of_sqlserver("row_values['__$seqval']") }}) as _seqval
from (
  select *, {{ delta_cdc._columns_where('row_values', "not startswith(name, '__$') and name <> '__before'") }} as new_values,
    {{ delta_cdc._columns_where(before, "not startswith(name, '__$')") }} as old_values
  from {{ delta_cdc._flat_rows(lines) }}
)
{%- endmacro %}


{#- An LSN, ten bytes, as 20 hexadecimal digits, which sort as it does: from such, or from base64
    (FOR JSON). Null: it is neither. -#}
{% macro _lsn_of_sqlserver(text) %}
  {{ return("case when " ~ text ~ " rlike '^(0[xX])?[0-9A-Fa-f]{20}$' then upper(right(" ~ text ~ ", 20)) when length(" ~ text
      ~ ") = 16 then hex(try_to_binary(" ~ text ~ ", 'base64')) end") }}
{% endmacro %}


{#- Bytes come in hexadecimal digits, with 0x before them or without; in base64 where the LSN does,
    for FOR JSON writes all so. -#}
{% macro sqlserver_ct_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes="if(_bytes_are_base64, try_to_binary(" ~ text
      ~ ", 'base64'), try_to_binary(regexp_replace(" ~ text ~ ", '^0x', ''), 'hex'))")) }}
{% endmacro %}

{#- Which of both it is, the message tells. -#}
{% macro sqlserver_ct_value_alone(text, type, settings) %}{{ return(delta_cdc._plain_value(text, type)) }}{% endmacro %}
