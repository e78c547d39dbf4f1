{#-
  Flat rows, one JSON object a line: every column of the table, and beside them a flag, an order and whatever the feed adds.
  Which column is what is configuration: `operation`, `operation_codes`, `sequence_by`, `old_keys`.
-#}
{% macro rows_changes(lines, settings) -%}
{%- set before = delta_cdc._old_keys_of_row(settings) if settings.get('old_keys') else 'cast(null as map<string, string>)' -%}
{%- set images = delta_cdc._codes_before(settings) -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed,
  {{ delta_cdc._text_of(settings.operation, settings, 'row_values') if settings.get('operation') else "cast(null as string)" }}
    as op_code,
  {%- if images %}  {#- of two images one line (`_rows_with_image_before`) #}
  {{ delta_cdc._columns_where('row_values', "name <> '__before'") }} as after,
  coalesce({{ delta_cdc._row_of("row_values['__before']") }}, {{ before }}) as before
  {%- else %}
  row_values as after,
  {{ before }} as before  -- null: the key is as it was
  {%- endif %}
from {{ delta_cdc._flat_rows(lines, settings) }}
{%- endmacro %}


{#- Lines in which the row before an update, one whose code means `before`, is in the line of the update, as `__before`: that which
    follows it in the order of the feed, in one change set and transaction. At one position the first of such rows is that of the
    first update, whichever comes first, if there are as many of both. -#}
{% macro _rows_with_image_before(lines, settings) -%}
{%- set befores, afters = delta_cdc._codes_before(settings), delta_cdc._codes_of(settings, 'U') -%}
{%- set is_before, is_after = 'image in (' ~ delta_cdc._literals(befores) ~ ')', 'image in (' ~ delta_cdc._literals(afters) ~ ')' -%}
{%- set among = 'over (partition by batch_id, inside' -%}
{%- set spelled = {} -%}
{%- do spelled.update(settings) -%}
{%- do spelled.update({'spelled': true}) -%}
{%- set rows -%}
select *, if(alike, row_number() {{ among }}, place, image order by row_number), 0) as nth
from (
  select *, count_if({{ is_before }}) {{ among }}, place) = count_if({{ is_after }}) {{ among }}, place) as alike
  from (
    select _cdc_batch_id as batch_id, _cdc_change_set as change_set, _cdc_row as row_number, _cdc_message as message,
      _cdc_image as image, {{ settings.get('transaction') or 'cast(null as string)' }} as inside,
      struct({{ delta_cdc._sequence(settings) }}, {{ delta_cdc._ordinal(settings) }}) as place
    from (
      select batch_id as _cdc_batch_id, change_set as _cdc_change_set, row_number as _cdc_row, message as _cdc_message,
        {{ delta_cdc._text_of(settings.operation, settings, 'row_values') }} as _cdc_image
      {%- for column in delta_cdc._needed_by_any(settings, none) %},
        {{ delta_cdc._value_of(delta_cdc._text_of(column, settings, 'row_values'), column, settings) }}
          as {{ delta_cdc.quoted(column) }}
      {%- endfor %}
      from {{ delta_cdc._flat_rows(lines, spelled) }}
    )
  )
)
{%- endset -%}
{{ delta_cdc._images_paired(rows, befores, afters,
    among ~ ' order by place, nth, if(alike and ' ~ is_before ~ ', 1, if(alike and ' ~ is_after ~ ', 2, 0)), row_number)') }}
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
