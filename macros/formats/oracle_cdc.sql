{#-
  Rows of Oracle's change tables (DBMS_CDC_PUBLISH, up to 11.2) as one JSON object each, in the order of CSCN$ and RSID$.
  The row before an update (`OPERATION$` UO or UU) and the row after it (UN) become one change: both have one RSID$, so that this
  order does not tell which of them comes first. Columns whose names end in $ are control columns.
-#}
{% macro oracle_cdc_lines(lines) %}
  {%- set place = [] -%}
  {%- for name in ['CSCN', 'XIDUSN', 'XIDSLT', 'XIDSEQ'] %}{% do place.append(delta_cdc._oracle_control(name)) %}{% endfor -%}
  {{ return(delta_cdc._with_image_before(lines, 'trim(' ~ delta_cdc._oracle_control('OPERATION') ~ ')',
      ['UO', 'UU'], ['UN'], place, number=delta_cdc._oracle_control('RSID'))) }}
{% endmacro %}

{#- A control column of a row that is not taken apart yet. -#}
{% macro _oracle_control(name) %}
  {%- set values = [] -%}
  {%- for each in [name, name | lower] -%}
    {%- do values.append("try_variant_get(body, '$[\"" ~ each ~ "$\"]', 'string')") -%}
  {%- endfor -%}
  {{ return('coalesce(' ~ values | join(', ') ~ ')') }}
{% endmacro %}


{#- The two images of an update are one line here, `__before` in the second (`oracle_cdc_lines`). -#}
{% macro oracle_cdc_changes(lines, settings) -%}
{%- set before = delta_cdc._row_of("row_values['__before']") -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed, trim(row_values['OPERATION$']) as op_code,
  {{ delta_cdc._as_listed('new_values', settings) }} as after, {{ delta_cdc._as_listed('old_values', settings) }} as before,
  try_cast(row_values['CSCN$'] as decimal(38, 0)) as _commit_scn,
  try_cast(try_cast(row_values['RSID$'] as decimal(38, 0)) as bigint) as _row_sequence,
  nullif(concat_ws('.', row_values['XIDUSN$'], row_values['XIDSLT$'], row_values['XIDSEQ$']), '') as _xid,
  try_cast(row_values['COMMIT_TIMESTAMP$'] as timestamp) as _timestamp
from (
  select *, {{ delta_cdc._columns_where('row_values', "not endswith(name, '$') and name <> '__before'") }} as new_values,
    {{ delta_cdc._columns_where(before, "not endswith(name, '$')") }} as old_values
  from (
    select * except (row_values),
      {{ delta_cdc._controls_in_upper('row_values', "endswith(name, '$')") }} as row_values
    from {{ delta_cdc._flat_rows(lines) }}
  )
)
{%- endmacro %}


{#- Bytes are hexadecimal digits. -#}
{% macro oracle_cdc_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'hex')")) }}
{% endmacro %}
