{#- `delta-cdc init`, of Parquet and ORC files: the columns of each. Prints a JSON list, as `adapter.columns_of_files` says.
    paths: of files. file_format: of all of them. -#}
{% macro columns_of_files(paths, file_format) %}
  {%- do print(tojson(adapter.columns_of_files(paths, file_format))) -%}
{% endmacro %}
