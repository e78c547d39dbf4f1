{#- One commit takes out the rows that the predicates describe and puts the source's in. Delta refuses source rows that
    the predicates do not describe. -#}
{% macro get_incremental_replace_where_sql(arg_dict) -%}
  {%- set predicates = arg_dict['incremental_predicates'] -%}
  {%- if not predicates -%}
    {{ exceptions.raise_compiler_error(
        "incremental_strategy replace_where needs incremental_predicates, or predicates in the write plan: they say"
        ~ " which rows to replace.") }}
  {%- endif -%}
insert into {{ arg_dict['target_relation'] }} by name
replace where ({{ predicates | join(')\n  and (') }})
select {{ arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') }}
from {{ arg_dict['temp_relation'] }}
{%- endmacro %}
