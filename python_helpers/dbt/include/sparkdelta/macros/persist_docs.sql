{#- Only what differs is written: a Delta table's comment in one commit, all columns' comments in another. -#}
{% macro sparkdelta__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if relation.is_view -%}{{ return('') }}{%- endif -%}
  {%- set relation_wanted = for_relation and config.persist_relation_docs() and model.description -%}
  {%- set columns_wanted = for_columns and config.persist_column_docs() and model.columns -%}
  {%- if relation_wanted or columns_wanted -%}
    {%- set is = sparkdelta_comments(relation) -%}

    {%- if relation_wanted and (is.table or '') != model.description -%}
      {%- do run_query('comment on table ' ~ relation ~ ' is ' ~ sparkdelta_string(model.description)) -%}
    {%- endif -%}

    {%- if columns_wanted -%}
      {%- set changes = [] -%}
      {%- for name, column in validate_doc_columns(relation, model.columns, is.columns.keys() | list).items() -%}
        {%- if (column.description or '') != is.columns.get(name, is.by_lower_name.get(name | lower, '')) -%}
          {%- do changes.append(adapter.quote(name) ~ ' comment ' ~ sparkdelta_string(column.description or '')) -%}
        {%- endif -%}
      {%- endfor -%}
      {#- Spark's own tables take one column a statement -#}
      {%- set at_once = config.get('file_format', 'delta') in ['delta', 'iceberg'] -%}
      {%- for change in ([changes | join(', ')] if at_once else changes) if change -%}
        {%- do run_query('alter table ' ~ relation ~ ' alter column ' ~ change) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{#- Whether a view has the comments of its model, as far as they are wanted: it gets them when it is created. -#}
{% macro sparkdelta_has_its_docs(view, model) %}
  {%- set columns = model.columns.values() if config.persist_column_docs() else [] -%}
  {%- set description = model.description if config.persist_relation_docs() else '' -%}
  {%- if not description and not columns %}{{ return(true) }}{% endif -%}
  {%- set is = sparkdelta_comments(view) -%}
  {%- if description and is.table != description %}{{ return(false) }}{% endif -%}
  {%- for column in columns -%}
    {%- set told = column.description or '' -%}
    {%- if is.by_lower_name.get(column.name | lower, told) != told %}{{ return(false) }}{% endif -%}
  {%- endfor -%}
  {{ return(true) }}
{% endmacro %}


{#- {table: comment or none, columns: {name: comment}, by_lower_name: the same} as the catalog has them. -#}
{% macro sparkdelta_comments(relation) %}
  {%- set columns, by_lower_name = {}, {} -%}
  {%- set about = namespace(table=none, columns_end=false) -%}
  {%- for row in run_query('describe extended ' ~ relation) -%}
    {%- if not row[0] or (row[0].startswith('#') and not row[1]) -%}  {#- a column, which has a type, may be named so too -#}
      {%- set about.columns_end = true -%}
    {%- elif not about.columns_end -%}
      {%- do columns.update({row[0]: row[2] or ''}) -%}
      {%- do by_lower_name.update({row[0] | lower: row[2] or ''}) -%}
    {%- elif row[0] == 'Comment' -%}
      {%- set about.table = row[1] -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return({'table': about.table, 'columns': columns, 'by_lower_name': by_lower_name}) }}
{% endmacro %}


{#- A text as a Spark SQL literal. -#}
{% macro sparkdelta_string(text) %}
  {{ return("'" ~ text | replace('\\', '\\\\') | replace("'", "\\'") | replace('${', '$\\{') ~ "'") }}
{% endmacro %}


{#- A view's column with its description, which may spell it in another case. dbt-spark's own doubles no backslash. -#}
{% macro get_column_comment_sql(column_name, column_dict) -%}
  {%- set by_lower_name = {} -%}
  {%- for name, column in column_dict.items() %}{% do by_lower_name.update({name | lower: column}) %}{% endfor -%}
  {%- set description = (column_dict.get(column_name) or by_lower_name.get(column_name | lower) or {}).get('description') -%}
  {{ adapter.quote(column_name) }}{{ ' comment ' ~ sparkdelta_string(description) if description }}
{%- endmacro %}


{#- A table's description, with whatever quotes it has. -#}
{% macro sparkdelta__comment_clause() %}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ sparkdelta_string(model.description) }}
  {%- endif -%}
{% endmacro %}
