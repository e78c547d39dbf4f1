{#- on-run-end: the view `cdc_quarantine` of every row that could not be used, with the reason (Q1): the marked rows of all
    staging tables, and of mixed feeds the messages that cannot be read or are of a table that nobody configured. Of many tables
    it is made of views of some of them each: Derby, the metastore of one machine, keeps no view of over 32,700 characters. -#}
{% macro quarantine_view() %}
  {%- if not execute or not delta_cdc.in_session() -%}{{ return('') }}{%- endif -%}
  {%- set parts = [] -%}
  {%- for table in delta_cdc._loading_tables() -%}
    {%- if table.change_set == 'change_set' -%}
      {%- set known = delta_cdc._literals(delta_cdc.feed_tables(table.feed).values() | map(attribute='source_table')) -%}
      {%- do parts.append("select " ~ delta_cdc.literal(table.feed) ~ " as feed, source_table, batch_id, change_set, row_number,"
            ~ " if(source_table is null, 'unparsable', 'unknown_table') as error, message as raw from " ~ table.relation
            ~ " where source_table is null or (source_table not in ("
            ~ known ~ ") and split_part(source_table, '.', -1) not in (" ~ known ~ "))") -%}
    {%- else -%}
      {%- do parts.append("select " ~ delta_cdc.literal(table.feed) ~ " as feed, "
            ~ delta_cdc.literal(table.table) ~ " as source_table, _cdc_batch_id as batch_id, "
            ~ "_cdc_change_set as change_set, _cdc_row as row_number, _cdc_error as error, _cdc_raw as raw from " ~ table.relation
            ~ " where _cdc_error is not null") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if parts | length <= 50 -%}
    {%- if parts %}{% do delta_cdc._view_of_parts('cdc_quarantine', parts) %}{% endif -%}
  {%- else -%}
    {%- set views = [] -%}
    {%- for some in parts | batch(50) -%}
      {%- do views.append('select * from ' ~ delta_cdc._view_of_parts('cdc_quarantine_' ~ loop.index, some)) -%}
    {%- endfor -%}
    {%- do delta_cdc._view_of_parts('cdc_quarantine', views) -%}
  {%- endif -%}
{% endmacro %}


{#- Makes the view of SELECTs beside `cdc_runs`, unless it is there as it is; its relation. -#}
{% macro _view_of_parts(name, parts) %}
  {%- set runs = delta_cdc._runs_relation() -%}
  {%- set view = api.Relation.create(database=runs.database, schema=runs.schema, identifier=name, type='view') -%}
  {%- set sql = parts | join('\nunion all\n') -%}
  {%- if not adapter.view_is(view, sql) -%}
    {%- do run_query('create or replace view ' ~ view ~ ' as\n' ~ sql) -%}
  {%- endif -%}
  {{ return(view) }}
{% endmacro %}
