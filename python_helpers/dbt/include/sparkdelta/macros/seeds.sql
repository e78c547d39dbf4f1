{#- A seed is created with its first batch of rows in one commit: readers see the old rows or the new ones. -#}
{% macro sparkdelta__create_csv_table(model, agate_table) %}
  {{ return(sparkdelta_reset_seed(model, agate_table, none)) }}
{% endmacro %}


{#- Nothing is truncated: the old rows are readable until the new ones are committed. -#}
{% macro sparkdelta__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {{ return(sparkdelta_reset_seed(model, agate_table, old_relation)) }}
{% endmacro %}


{#- An empty seed is written here, for `load_csv_rows` is not called for it. -#}
{% macro sparkdelta_reset_seed(model, agate_table, old_relation) %}
  {% do sparkdelta_make_way(old_relation) %}
  {%- if agate_table.rows | length == 0 -%}
    {%- set sql = create_table_as(False, this, sparkdelta_seed_select(model, agate_table, []) ) -%}
    {% call statement('_') %}{{ sql }}{% endcall %}
    {{ return(sql) }}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}


{#- The first batch of rows makes the table anew, the others are appended: a seed of one batch is one commit. -#}
{% macro sparkdelta__load_csv_rows(model, agate_table) %}
  {%- set sqls = [] -%}
  {%- for rows in adapter.seed_rows(agate_table, model['config'].get('delimiter') or ',', model['config'].get('column_types'))
        | batch(get_batch_size()) -%}
    {%- set select = sparkdelta_seed_select(model, agate_table, rows) -%}
    {%- set sql = create_table_as(False, this, select) if loop.first else 'insert into ' ~ this ~ '\n' ~ select -%}
    {% do adapter.add_query(sql, abridge_sql_log=True) %}
    {% do sqls.append(sql) %}
  {%- endfor -%}
  {{ return(sqls[0]) }}
{% endmacro %}


{#- SELECT of rows of literals, each column cast to its type in the project, or to the one that dbt saw in the file. -#}
{% macro sparkdelta_seed_select(model, agate_table, rows) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set names, values = [], [] -%}
  {%- for name in agate_table.column_names -%}
    {%- do names.append('c' ~ loop.index0) -%}
    {%- do values.append('cast(c' ~ loop.index0 ~ ' as ' ~ types.get(name, adapter.convert_type(agate_table, loop.index0))
                         ~ ') as ' ~ adapter.quote(name | string)) -%}
  {%- endfor -%}
select {{ values | join(', ') }}
from values
  {% for row in rows -%}
    ({{ row | join(', ') }}){{ ',\n  ' if not loop.last }}
  {%- endfor %}
  {%- if not rows %}({{ (['null'] * names | length) | join(', ') }}){% endif %}
  as seed ({{ names | join(', ') }})
{%- if not rows %}
where false
{%- endif %}
{%- endmacro %}
