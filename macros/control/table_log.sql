{#-
  cdc_table_log: the commits of the tables that this package writes, each once, its own left out: it would have news in every run.
  Two runs at once find the same commits, and Delta takes them of one only: both write the same transaction.
-#}
{% macro table_log() %}
  {%- if not execute -%}{{ return('') }}{%- endif -%}
  {%- set state = adapter.table_state(this) -%}
  {%- set recorded = {} -%}
  {#- of a table that was made anew the commits recorded last are the new one's -#}
  {%- for row in adapter.cached_query(this, 'select `schema`, `table`, '
        ~ 'max_by(struct(version, commit_id), struct(recorded_at, version)) as newest from ' ~ this ~ ' group by all') -%}
    {%- do recorded.update({(row['schema'], row['table']): row.newest}) -%}
  {%- endfor -%}
  {%- set tables = [] -%}
  {%- for relation in delta_cdc.written_tables().values() if relation.render() != this.render() -%}
    {%- set table = {'schema': relation.schema, 'table': relation.identifier} -%}
    {%- do table.update(recorded.get((relation.schema, relation.identifier), {})) -%}
    {%- do tables.append(table) -%}
  {%- endfor -%}
  {%- set function = 'dbt.adapters.sparkdelta.table_log.new_commits' -%}
  {%- do adapter.create_view_from_python('cdc_new_commits', function, {'tables': tables}) -%}
  {%- set new = adapter.query_rows('select count(*) as found from cdc_new_commits')[0].found -%}
  {%- do adapter.plan_write(this, {
        'skip': new == 0,
        'txn': {'app_id': this.identifier ~ '@0', 'version': (state.txn_version or 0) + 1},
      }) -%}
  {{ return('select *, current_timestamp() as recorded_at from cdc_new_commits') }}
{% endmacro %}
