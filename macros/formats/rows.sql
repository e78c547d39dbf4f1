{#-
  Flat rows, one JSON object a line: every column of the table, and beside them a flag, an order and whatever the feed adds.
  Which column is what is configuration: `operation`, `operation_codes`, `sequence_by`, `old_keys`.
-#}
{% macro rows_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed,
  {{ "row_values[" ~ delta_cdc.literal(settings.operation) ~ "]" if settings.get('operation') else "cast(null as string)" }} as op_code,
  row_values as after,
  {%- if settings.get('old_keys') %}
  map(
  {%- for key, old in settings.old_keys.items() %}
    {{ delta_cdc.literal(key) }}, row_values[{{ delta_cdc.literal(old) }}]{{ ',' if not loop.last }}
  {%- endfor %}
  ) as before
  {%- else %}
  cast(null as map<string, string>) as before
  {%- endif %}
from {{ delta_cdc._flat_rows(lines) }}
{%- endmacro %}


{#- Bytes of a Parquet or ORC file come in hexadecimal digits. -#}
{% macro rows_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'hex')" if settings.get('file_format') in ('parquet', 'orc', 'avro', 'delta') else none)) }}
{% endmacro %}


{#- A feed of flat rows has a folder for each table. -#}
{% macro rows_tables(lines) %}
  {{ return(delta_cdc._refuse_mixed('rows')) }}
{% endmacro %}
