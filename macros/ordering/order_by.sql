{#- O1, the one order of all changes of a table: position (sequence, ordinal), then arrival (batch, row).
    A row without position (a snapshot read) is below all others: Spark sorts nulls first ascending, last descending. -#}
{% macro order_by(direction='') %}
  {{ return(delta_cdc.directed(delta_cdc.order_columns(), direction)) }}
{% endmacro %}

{#- A total order: no two changes of a table are equal in all four. -#}
{% macro order_columns() %}{{ return(['_cdc_sequence', '_cdc_ordinal', '_cdc_batch_id', '_cdc_row']) }}{% endmacro %}

{#- "a desc, b desc": what to order by, all in one direction. -#}
{% macro directed(columns, direction) %}
  {%- set out = [] -%}
  {%- for column in columns %}{% do out.append((column ~ ' ' ~ direction) | trim) %}{% endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}
