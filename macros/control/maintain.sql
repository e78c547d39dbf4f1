{#-
  `delta-cdc maintain`: staging is compacted where `compact_after_days` says so, small files of the tables that this project
  writes become few (those of final ordered by `zorder_by`), and files that nothing needs any more go. models: names of models
  (none: all, and the tables of control). min_files: a table with fewer files is left as it is. vacuum: whether old files go. What
  readers of the last days need stays: VACUUM keeps what `delta.deletedFileRetentionDuration` says, 7 days if nothing does.
-#}
{% macro maintain(models=none, vacuum=true, min_files=16) %}
  {%- for table in delta_cdc._staging_tables(names=models, setting='compact_after_days') -%}
    {%- do delta_cdc._compact_by_policy(table) -%}
  {%- endfor -%}
  {%- set relations = delta_cdc.written_tables(models).values() -%}
  {%- set order = delta_cdc._orders_of_finals() -%}
  {%- set done = [] -%}
  {%- for relation in relations if adapter.table_state(relation).exists -%}
    {%- set before = adapter.table_statistics(relation) -%}
    {%- set small = before.files >= min_files and before.bytes / before.files < 64 * 1024 * 1024 -%}
    {%- if small and not adapter.optimize(relation, order.get(relation | string, '')) -%}
      {%- do print('table ' ~ relation ~ ': left with its small files, for somebody wrote to it meanwhile') -%}
    {%- endif -%}
    {%- set gone = adapter.vacuum(relation) if vacuum else 0 -%}
    {%- set after = adapter.table_statistics(relation) if small else before -%}
    {%- if after.files != before.files or gone -%}
      {%- do done.append(relation) -%}
      {%- do print('table ' ~ relation ~ ': ' ~ before.files
            ~ ' files, now ' ~ after.files ~ (', ' ~ gone ~ ' old files removed' if gone else '')) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do print(relations | length ~ ' tables looked at, ' ~ done | length ~ ' had something to be done.') -%}
{% endmacro %}


{#- {final table: what its OPTIMIZE says} of those with `zorder_by`. -#}
{% macro _orders_of_finals() %}
  {%- set out = {} -%}
  {%- for node in graph.sources.values() if (delta_cdc._cdc_meta(node) or {}).get('zorder_by') -%}
    {%- set settings = delta_cdc._table_settings(node) -%}
    {%- set columns = delta_cdc.column_list(settings.zorder_by) -%}
    {%- do out.update({delta_cdc._model_of(settings, 'final') | string: 'zorder by (' ~ columns ~ ')'}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}
