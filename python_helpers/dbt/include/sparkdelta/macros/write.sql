{#- The statement that writes the rows, with the plan's transaction; its response is the model's. -#}
{% macro sparkdelta_write(sql, plan) %}
  {{ write(sql) }}
  {%- do store_result('main', response=adapter.execute_write(sql, plan)) -%}
{% endmacro %}


{#- Drop what `create or replace table` cannot take the place of: a view, and a table where it or the new one is not Delta. -#}
{% macro sparkdelta_make_way(existing) %}
  {%- if existing is not none and not (existing.is_table and existing.is_delta
                                       and config.get('file_format', 'delta') == 'delta') -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
{% endmacro %}


{#- Create or replace the whole table. Atomic where a Delta table stands or none does: until the commit readers see the
    old rows. -#}
{% macro sparkdelta_create_table(existing, target_relation, source, plan) %}
  {%- if plan.nothing -%}
    {{ exceptions.raise_compiler_error(
        "The model returned None, but " ~ target_relation ~ " has to be created: return a DataFrame, an empty one if"
        ~ " there are no rows yet.") }}
  {%- endif -%}
  {% do sparkdelta_make_way(existing) %}
  {%- set select = compiled_code if model['language'] == 'sql' else 'select * from ' ~ source -%}
  {{ sparkdelta_write(create_table_as(False, target_relation, select), plan) }}
  {% do persist_constraints(target_relation, model) %}
{% endmacro %}


{#- A setting that may be none, one value or several, as a list. -#}
{% macro sparkdelta_list(value) %}
  {{ return([] if value is none else [value] if value is string else value | list) }}
{% endmacro %}
