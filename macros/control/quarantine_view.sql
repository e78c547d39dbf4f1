{#- on-run-end: the view `cdc_quarantine` of every row that could not be used, with the reason (Q1): the marked rows of all staging
    tables, and of mixed feeds the messages that cannot be read or are of a table that nobody configured. -#}
{% macro quarantine_view() %}
  {%- if not execute -%}{{ return('') }}{%- endif -%}
  {%- set parts = [] -%}
  {%- for table in delta_cdc._loading_tables() -%}
    {%- if table.change_set == 'change_set' -%}
      {%- set known = [] -%}
      {%- for settings in delta_cdc.feed_tables(table.feed).values() %}{% do known.append(delta_cdc._is_of_table(settings)) %}{% endfor -%}
      {%- do parts.append("select " ~ delta_cdc.literal(table.feed) ~ " as feed, source_table, batch_id, change_set, row_number,"
            ~ " if(source_table is null, 'unparsable', 'unknown_table') as error, message as raw from " ~ table.relation
            ~ " where source_table is null or not (" ~ known | join(' or ') ~ ")") -%}
    {%- else -%}
      {%- do parts.append("select " ~ delta_cdc.literal(table.feed) ~ " as feed, "
            ~ delta_cdc.literal(table.table) ~ " as source_table, _cdc_batch_id as batch_id, "
            ~ "_cdc_change_set as change_set, _cdc_row as row_number, _cdc_error as error, _cdc_raw as raw from " ~ table.relation
            ~ " where _cdc_error is not null") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if not parts -%}{{ return('') }}{%- endif -%}
  {%- set runs = delta_cdc._runs_relation() -%}
  {%- set view = api.Relation.create(database=runs.database, schema=runs.schema, identifier='cdc_quarantine', type='view') -%}
  {%- set sql = parts | join('\nunion all\n') -%}
  {%- if not adapter.view_is(view, sql) -%}
    {%- do run_query('create or replace view ' ~ view ~ ' as\n' ~ sql) -%}
  {%- endif -%}
{% endmacro %}
