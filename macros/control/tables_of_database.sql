{#- `delta-cdc init --jdbc`: the tables of a schema of a database. Prints a JSON list, as `adapter.tables_of_database` says.
    url: of JDBC. schema: none: the connection's own. options: of Spark's JDBC source. -#}
{% macro tables_of_database(url, schema=none, options={}) %}
  {%- do print(tojson(adapter.tables_of_database(url, schema, options))) -%}
{% endmacro %}
