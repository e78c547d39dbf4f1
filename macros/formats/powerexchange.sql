{#-
  Change records of Informatica PowerExchange as one JSON object each, with the columns that it generates
  (https://docs.informatica.com/data-integration/powerexchange-for-cdc-and-mainframe.html): DTL__CAPXACTION, DTL__CAPXRESTART1,
  DTL__CAPXTIMESTAMP, DTL__CAPXUOW, and DTL__BI_<column>, the value before. The image is AI, or BA in one record.
-#}
{% macro powerexchange_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed, row_values['DTL__CAPXACTION'] as op_code,
  {{ delta_cdc._as_listed('new_values', settings) }} as after,
  if(row_values['DTL__CAPXACTION'] = 'U', {{ delta_cdc._as_listed('old_values', settings) }}, null) as before,
  {{ delta_cdc._token_of_powerexchange("row_values['DTL__CAPXRESTART1']") }} as _sequence_token, row_values['DTL__CAPXUOW'] as _unit_of_work,
  try_cast(regexp_replace(rpad(row_values['DTL__CAPXTIMESTAMP'], 20, '0'), r'^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{6})$',
      '$1-$2-$3 $4:$5:$6.$7') as timestamp) as _timestamp
from (
  select *, {{ delta_cdc._columns_where('row_values', "not startswith(name, 'DTL__')") }} as new_values,
    transform_keys({{ delta_cdc._columns_where('row_values', "startswith(name, 'DTL__BI_') and value is not null") }},
      (name, value) -> substr(name, 9)) as old_values
  from (
    select * except (row_values),
      {{ delta_cdc._controls_in_upper('row_values', "startswith(upper(name), 'DTL__')") }} as row_values
    from {{ delta_cdc._flat_rows(lines) }}
  )
)
{%- endmacro %}


{#- A token, bytes, as hexadecimal digits, which sort as it does: from such, or from base64. Null: it is
    neither. -#}
{% macro _token_of_powerexchange(text) %}
  {{ return("if(" ~ text ~ " rlike '^(0[xX])?[0-9A-Fa-f]+$', upper(" ~ text ~ "), hex(try_to_binary(" ~ text ~ ", 'base64')))") }}
{% endmacro %}


{#- Bytes are hexadecimal digits. -#}
{% macro powerexchange_value(text, type, settings, column) %}
  {{ return(delta_cdc._plain_value(text, type, bytes='try_to_binary(' ~ text ~ ", 'hex')")) }}
{% endmacro %}
