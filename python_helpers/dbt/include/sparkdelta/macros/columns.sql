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
      {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
    {%- endif -%}
  {%- endif -%}

  {%- set columns = adapter.columns_within(target_columns, source_columns) -%}
  {%- if config.get('merge_with_schema_evolution', false) -%}
    {%- set columns = columns + new -%}
  {%- endif -%}
  {%- if not columns -%}
    {{ exceptions.raise_compiler_error(target_relation ~ " and its source have no column in common.") }}
  {%- endif -%}
  {{ return(columns) }}
{% endmacro %}
