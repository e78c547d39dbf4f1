{#- Null for what does not fit: dbt-spark's is a plain cast, which says so only where ANSI is off. -#}
{% macro sparkdelta__safe_cast(field, type) %}
  {{- 'try_' ~ (spark__safe_cast(field, type) | trim) -}}
{% endmacro %}


{#- Null for a part that is not there: dbt-spark's index stops the query under ANSI. The delimiter is text, of any length. -#}
{% macro sparkdelta__split_part(string_text, delimiter_text, part_number) %}
  {%- set parts = 'split(' ~ string_text ~ ", concat('\\\\Q', " ~ delimiter_text ~ ", '\\\\E'))" -%}
  {{- 'try_element_at(' ~ parts ~ ', ' ~ (part_number or 1) ~ ')' -}}
{% endmacro %}
