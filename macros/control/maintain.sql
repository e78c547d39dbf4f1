{#-
  `delta-cdc maintain`: staging is compacted where `compact_after_days` says so, small files of the tables that this project
  writes become few (those of final ordered by `zorder_by`), and files that nothing needs any more go. models: names of models
  (none: all, and the tables of control). min_files: a table with fewer files is left as it is. vacuum: whether old files go. What
  readers of the last days need stays: of `keep_versions_days`, else what `delta.deletedFileRetentionDuration` says, else 7.
-#}
{% macro maintain(models=none, vacuum=true, min_files=16) %}
  {%- for table in delta_cdc._staging_tables(names=models, setting='compact_after_days') -%}
    {%- do delta_cdc._compact_by_policy(table) -%}
  {%- endfor -%}
  {%- set tables, policies, done = delta_cdc.written_tables(models), delta_cdc._policies(), [] -%}
  {%- for name, relation in tables.items() if adapter.table_state(relation).exists -%}
    {%- set policy = policies.get(name, {}) -%}
    {%- set kept = delta_cdc._keep_versions(relation, policy.get('keep_versions_days')) -%}
    {%- set before = adapter.table_statistics(relation) -%}
    {%- set small = before.files >= min_files and before.bytes / before.files < 64 * 1024 * 1024 -%}
    {%- if small and not adapter.optimize(relation, policy.get('order', '')) -%}
      {%- do print('table ' ~ relation ~ ': left with its small files, for somebody wrote to it meanwhile') -%}
    {%- endif -%}
    {%- set gone = adapter.vacuum(relation) if vacuum else 0 -%}
    {%- set after = adapter.table_statistics(relation) if small else before -%}
    {%- if after.files != before.files or gone or kept -%}
      {%- do done.append(relation) -%}
      {%- do print('table ' ~ relation ~ ': ' ~ before.files ~ ' files, now ' ~ after.files
            ~ (', ' ~ gone ~ ' old files removed' if gone else '') ~ kept) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do print(tables | length ~ ' tables looked at, ' ~ done | length ~ ' had something to be done.') -%}
{% endmacro %}


{#- {model: {keep_versions_days, order: what its OPTIMIZE says}} of the tables with `keep_versions_days` or `zorder_by`. -#}
{% macro _policies() %}
  {%- set out = {} -%}
  {%- for node in graph.sources.values() -%}
    {%- set given = delta_cdc._cdc_meta(node) or {} -%}
    {%- if given.get('zorder_by') or given.get('keep_versions_days') -%}
      {%- set settings = delta_cdc._table_settings(node) -%}
      {%- for layer in ['staging', 'keys', 'history', 'final'] -%}
        {%- do out.update({delta_cdc.model_name(settings, layer): {'keep_versions_days': settings.keep_versions_days}}) -%}
      {%- endfor -%}
      {%- if settings.zorder_by -%}
        {%- do out[delta_cdc.model_name(settings, 'final')].update(
              {'order': 'zorder by (' ~ delta_cdc.column_list(settings.zorder_by) ~ ')'}) -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- Has a table keep its old versions for so many days, and says so where it did not. Its log stays for Delta's 30 days at least: what
    a run noted of a table is in it. -#}
{% macro _keep_versions(relation, days) %}
  {%- set kept = namespace(said='') -%}
  {%- if days -%}
    {%- set wanted = {'delta.deletedFileRetentionDuration': 'interval ' ~ days ~ ' days',
          'delta.logRetentionDuration': 'interval ' ~ [days, 30] | max ~ ' days'} -%}
    {%- set properties = adapter.table_state(relation).properties -%}
    {%- set values = [] -%}
    {%- for property, value in wanted.items() if properties.get(property) != value -%}
      {%- do values.append("'" ~ property ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- if values -%}
      {%- do run_query('alter table ' ~ relation ~ ' set tblproperties (' ~ values | join(', ') ~ ')') -%}
      {%- set kept.said = ', old versions now kept for ' ~ days ~ ' days' -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(kept.said) }}
{% endmacro %}
