{#- Columns that source and target share, in the target's order, after on_schema_change has had its say. -#}
{% macro sparkdelta_columns_to_write(source, target_relation) %}
  {%- set source_only = sparkdelta_list(config.get('merge_source_only_columns')) -%}
  {%- set source_columns = adapter.columns_without(adapter.get_columns_in_relation(source), source_only) -%}
  {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- set wanted = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set new = adapter.columns_without(source_columns, target_columns) -%}

  {%- if wanted != 'ignore' -%}
    {%- set gone = adapter.columns_without(target_columns, source_columns) -%}
    {%- set retyped = diff_column_data_types(source_columns, target_columns) -%}
    {%- if retyped and wanted != 'fail' -%}
      {%- if adapter.evolve(target_relation, source) -%}
        {%- do sparkdelta_source_view(source) -%}  {#- it may read the table that has changed -#}
        {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
      {%- endif -%}
      {#- what is narrower than the table fits it -#}
      {%- set fits = adapter.evolved(sparkdelta_types(target_columns), sparkdelta_types(source_columns)) -%}
      {%- set retyped = diff_column_data_types(source_columns, target_columns)
            | selectattr('column_name', 'in', fits.cast.keys() | list + fits.rewrite) | list -%}
    {%- endif -%}
    {%- if new or gone or retyped -%}
      {%- if wanted == 'fail' -%}
        {{ exceptions.raise_compiler_error(
            target_relation ~ ": the columns have changed and on_schema_change is 'fail'. New: "
            ~ new | map(attribute='name') | join(', ') ~ "; gone: " ~ gone | map(attribute='name') | join(', ')
            ~ "; other type: " ~ retyped | map(attribute='column_name') | join(', ')
            ~ ". Run with --full-refresh, or set append_new_columns or sync_all_columns.") }}
      {%- endif -%}
      {% do sync_column_schemas(wanted, target_relation, {
          'source_not_in_target': new, 'target_not_in_source': gone, 'new_target_types': retyped}) %}
      {%- if new or gone and wanted == 'sync_all_columns' -%}
        {%- do sparkdelta_source_view(source) -%}  {#- Delta refuses what was analysed before a column was dropped -#}
      {%- endif -%}
      {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
    {%- endif -%}
  {%- endif -%}

  {%- set columns = adapter.columns_within(target_columns, source_columns) -%}
  {%- if config.get('merge_with_schema_evolution', false) -%}
    {%- set columns = columns + adapter.columns_without(new, columns) -%}
  {%- endif -%}
  {%- if not columns -%}
    {{ exceptions.raise_compiler_error(target_relation ~ " and its source have no column in common.") }}
  {%- endif -%}
  {{ return(columns) }}
{% endmacro %}


{#- dbt-spark's gives the rows of `describe`, which have no names: a snapshot with `hard_deletes: new_record` finds none of its
    columns among them. -#}
{% macro sparkdelta__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}


{#- dbt's own compares columns of one spelling alone: one that is spelled in another case was not widened. -#}
{% macro sparkdelta__diff_column_data_types(source_columns, target_columns) %}
  {%- set there, retyped = {}, [] -%}
  {%- for column in target_columns %}{% do there.update({column.name | lower: column.dtype}) %}{% endfor -%}
  {%- for column in source_columns if there.get(column.name | lower, column.dtype) != column.dtype -%}
    {%- do retyped.append({'column_name': column.name, 'new_type': column.dtype}) -%}
  {%- endfor -%}
  {{ return(retyped) }}
{% endmacro %}


{#- {name: type} -#}
{% macro sparkdelta_types(columns) %}
  {%- set types = {} -%}
  {%- for column in columns %}{% do types.update({column.name: column.dtype}) %}{% endfor -%}
  {{ return(types) }}
{% endmacro %}


{#- Delta drops a column only from a table with column mapping; on others its error says so. -#}
{% macro sparkdelta__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- do adapter.evolve(relation, sparkdelta_types(add_columns)) -%}  {#- with the table features that they want -#}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- do run_query('alter table ' ~ relation ~ ' drop columns ('
          ~ remove_columns | map(attribute='quoted') | join(', ') ~ ')') -%}
  {%- endif -%}
{% endmacro %}


{#- dbt-spark writes the name without quotes. -#}
{% macro sparkdelta__alter_column_type(relation, column_name, new_column_type) -%}
  {%- do run_query('alter table ' ~ relation ~ ' alter column ' ~ adapter.quote(column_name) ~ ' type ' ~ new_column_type) -%}
{% endmacro %}
