{#- `delta-cdc run --plan`: the run is done on clones of its tables, in schemas of their own, which are dropped after it. -#}

{#- Prints {tables: [{name, schema, identifier}] that a run of this package's models writes, others: the project's other models,
    as dbt selects them: by their files, for `my_project.shop` is a folder's name too, that of a feed}. -#}
{% macro plan_tables() %}
  {%- set tables, others, layers = [], [], delta_cdc.layers() -%}
  {%- for name, relation in delta_cdc.written_tables().items() -%}
    {%- do tables.append({'name': name, 'schema': relation.schema, 'identifier': relation.identifier}) -%}
  {%- endfor -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name not in layers -%}
    {%- do others.append('file:' ~ node.original_file_path.split('/')[-1]) -%}
  {%- endfor -%}
  {%- do print(tojson({'tables': tables, 'others': others})) -%}
{% endmacro %}


{#- Run with other schemas than `plan_tables`: they get a clone of each of these tables. tables: as it prints them. -#}
{% macro plan_prepare(tables) %}
  {%- set here = delta_cdc.written_tables() -%}
  {%- set clones = [] -%}
  {%- for table in tables -%}
    {%- set source = api.Relation.create(schema=table.schema, identifier=table.identifier) -%}
    {%- set target = here[table.name] -%}
    {%- if target.schema == table.schema -%}
      {%- do exceptions.raise_compiler_error('run --plan: this project gives ' ~ table.name
            ~ ' the schema ' ~ table.schema ~ ' whatever the schema of the profile is. A plan needs schemas '
            ~ 'of its own: let the macro generate_schema_name begin with target.schema.') -%}
    {%- endif -%}
    {%- if adapter.table_state(source).exists %}{% do clones.append({'source': source, 'target': target}) %}{% endif -%}
  {%- endfor -%}
  {%- do delta_cdc.plan_drop() -%}
  {%- for schema in here.values() | map(attribute='schema') | unique -%}
    {%- do run_query('create schema ' ~ adapter.quote(schema) ~ ' comment ' ~ delta_cdc.literal(delta_cdc._plan_comment())) -%}
  {%- endfor -%}
  {%- do adapter.clone_tables(clones) -%}
{% endmacro %}

{% macro _plan_comment() %}{{ return('clones for delta-cdc run --plan') }}{% endmacro %}


{#- Only schemas that a plan made are dropped. -#}
{% macro plan_drop() %}
  {%- for schema in delta_cdc.written_tables().values() | map(attribute='schema') | unique
        if adapter.check_schema_exists(none, schema) -%}
    {%- set comments = adapter.query_rows('describe schema ' ~ adapter.quote(schema))
          | selectattr('info_name', 'equalto', 'Comment') | map(attribute='info_value') | list -%}
    {%- if delta_cdc._plan_comment() not in comments -%}
      {%- do exceptions.raise_compiler_error('run --plan: there is a schema ' ~ schema
            ~ ' that no plan made. A plan needs the name: rename or drop that schema.') -%}
    {%- endif -%}
    {%- do run_query('drop schema ' ~ adapter.quote(schema) ~ ' cascade') -%}
  {%- endfor -%}
{% endmacro %}
