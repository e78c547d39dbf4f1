{#-
  Flat rows, one JSON object a line: every column of the table, and beside them a flag, an order and whatever the feed adds.
  Which column is what is configuration: `operation`, `operation_codes`, `sequence_by`, `old_keys`.
-#}
{% macro rows_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed,
  {{ delta_cdc._text_of(settings.operation, settings, 'row_values') if settings.get('operation') else "cast(null as string)" }}
    as op_code,
  row_values as after,
  {%- if settings.get('old_keys') %}
  {{ delta_cdc._old_keys_of_row(settings) }}
    as before  -- null: the key is as it was
  {%- else %}
  cast(null as map<string, string>) as before
  {%- endif %}
from {{ delta_cdc._flat_rows(lines, settings) }}
{%- endmacro %}


{#- Key column → its value before. Of several, as `full_images`, one that is not null makes values of the nulls beside it. -#}
{% macro _old_keys_of_row(settings) -%}
  {%- set texts, entries = [], [] -%}
  {%- for key, old in settings.old_keys.items() -%}
    {%- do texts.append(delta_cdc._text_of(old, settings, 'row_values')) -%}
    {%- do entries.append(delta_cdc.literal(key) ~ ', ' ~ texts[-1]) -%}
  {%- endfor -%}
  {%- set told = 'coalesce(' ~ texts | join(', ') ~ ')' if settings.get('full_images') else 'value' -%}
  {{ delta_cdc._columns_where('map(' ~ entries | join(', ') ~ ')', told ~ ' is not null') }}
{%- endmacro %}


{#- Bytes in columns of Parquet, ORC, Avro and Delta come in hexadecimal digits; those of text, as of a message that is one
    of these columns, too where \\x or 0x says so, else they are the text's own. -#}
{% macro rows_value(text, type, settings, column) %}
  {%- set hex = 'try_to_binary(' ~ text ~ ", 'hex')" -%}
  {%- if delta_cdc._message_column(settings) or settings.get('file_format') not in ('parquet', 'orc', 'avro', 'delta') -%}
    {%- set hex = 'if(' ~ text ~ " rlike r'^(\\\\x|0x)([0-9A-Fa-f]{2})*$', try_to_binary(substr("
          ~ text ~ ", 3), 'hex'), try_cast(" ~ text ~ ' as binary))' -%}
  {%- endif -%}
  {{ return(delta_cdc._plain_value(text, type, bytes=hex)) }}
{% endmacro %}
