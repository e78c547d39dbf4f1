{#-
  A format turns lines of text into canonical changes. It is one file, macros/formats/<format>.sql, with three macros.
  A project adds or replaces a format by macros of these names of its own:

  <format>_changes(lines, settings)   a SELECT over `lines` (batch_id, change_set, row_number, message string):
      batch_id, change_set, row_number, message,
      parsed      boolean              false: the message could not be read
      op_code     string               the operation as the format writes it (seeds: cdc_operation_codes)
      after       map<string, string>  the row's new values as text; a column that is not in the map is absent (not null)
      before      map<string, string>  the values of the key columns before the change, where the message has them
      and any fields that `sequence_by`, `ordinal`, `transaction`, `occurred_at` may name; they begin with `_`, apart from the table's columns
  <format>_value(text, type, settings, column)   SQL that casts a value of the map to the column's type (null: does not fit)
  <format>_tables(lines)   only for feeds that mix tables: a SELECT over `lines` that adds source_table (null: unreadable)
      and leaves out the messages that change no row
-#}
{% macro format_changes(lines, settings) %}{{ return(delta_cdc._of_format(settings.format ~ '_changes')(lines, settings)) }}{% endmacro %}

{% macro format_value(text, type, settings, column) %}{{ return(delta_cdc._of_format(settings.format ~ '_value')(text, type, settings, column)) }}{% endmacro %}

{% macro format_tables(lines, format) %}{{ return(delta_cdc._of_format(format ~ '_tables')(lines)) }}{% endmacro %}

{% macro _of_format(name) %}
  {%- set macro = context.get(name) or context['delta_cdc'].get(name) -%}
  {%- if macro is none -%}
    {%- do exceptions.raise_compiler_error("delta_cdc: there is no macro `" ~ name ~ "`. A format is a file macros/formats/<format>.sql with the macros that macros/formats/_format.sql names.") -%}
  {%- endif -%}
  {{ return(macro) }}
{% endmacro %}

{#- What most formats share: text to a Spark type, null where it does not fit. -#}
{% macro _plain_value(text, type) %}
  {%- set word = type | lower | trim -%}
  {%- if word in ('string', 'text') -%}{{ return(text) }}{%- endif -%}
  {%- if word.startswith(('struct', 'array', 'map')) -%}
    {{ return("from_json(" ~ text ~ ", " ~ delta_cdc.literal(type) ~ ")") }}
  {%- endif -%}
  {{ return("try_cast(" ~ text ~ " as " ~ type ~ ")") }}
{% endmacro %}
