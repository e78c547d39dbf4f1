{#- An identifier in backticks. Feed column names may hold anything. -#}
{% macro quoted(name) %}{{ return('`' ~ (name | string).replace('`', '``') ~ '`') }}{% endmacro %}

{#- A string literal. Spark reads backslash escapes in literals, so both are doubled. -#}
{% macro literal(text) %}{{ return("'" ~ (text | string).replace('\\', '\\\\').replace("'", "\\'") ~ "'") }}{% endmacro %}

{#- "a, b, c": quoted names, each with a prefix such as `t.`. -#}
{% macro column_list(columns, prefix='') %}
  {%- set out = [] -%}
  {%- for column in columns %}{% do out.append(prefix ~ delta_cdc.quoted(column)) %}{% endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}

{#- Null-safe equality of the columns of two relations: `a.x <=> b.x and …`. -#}
{% macro same_columns(columns, left, right) %}
  {%- set out = [] -%}
  {%- for column in columns %}{% do out.append(left ~ '.' ~ delta_cdc.quoted(column) ~ ' <=> ' ~ right ~ '.' ~ delta_cdc.quoted(column)) %}{% endfor -%}
  {{ return(out | join(' and ')) }}
{% endmacro %}

{#- A struct as JSON, its nulls included. -#}
{% macro json_of(struct) %}{{ return('to_json(' ~ struct ~ ", map('ignoreNullFields', 'false'))") }}{% endmacro %}
