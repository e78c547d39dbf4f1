{#-
  `delta-cdc maintain`: staging is compacted where `compact_after_days` says so, small files of the tables that this package
  writes become few (those of final ordered by `zorder_by`), and files that nothing needs any more go. models: names of models
  (none: all, and the tables of control). min_files: a table with fewer files is left as it is. vacuum: whether old files go. What
  readers of the last days need stays: of `keep_versions_days`, else what `delta.deletedFileRetentionDuration` says, else 7.
  What fails at one table holds up no other: it is the error at the end.
-#}
{% macro maintain(models=none, vacuum=true, min_files=16) %}
  {%- set failed = [] -%}
  {%- for settings in delta_cdc._tables_to_look_at(names=models)
        if settings.get('compact_after_days') and not delta_cdc._never_compacted(settings) -%}
    {%- set why = adapter.refusal_of(delta_cdc._compact_by_policy, settings) -%}
    {%- if why %}{% do failed.append('table ' ~ settings.feed ~ '.' ~ settings.table ~ ' is not compacted: ' ~ why) %}{% endif -%}
  {%- endfor -%}
  {%- set tables, policies, done = delta_cdc._maintained(models), delta_cdc._policies(), [] -%}
  {%- for name, relation in tables.items() -%}
    {%- set why = adapter.refusal_of(delta_cdc._maintain_table, relation, policies.get(name, {}), vacuum, min_files, done) -%}
    {%- if why %}{% do failed.append('table ' ~ relation ~ ' is not maintained: ' ~ why) %}{% endif -%}
  {%- endfor -%}
  {%- set freed = done | sum -%}
  {%- do print(tables | length ~ ' tables looked at, ' ~ done | length ~ ' had something to be done'
        ~ ('; ' ~ (freed | filesizeformat) ~ ' of old files removed' if freed else '') ~ '.') -%}
  {%- if failed %}{% do exceptions.raise_compiler_error(failed | join('\n')) %}{% endif -%}
{% endmacro %}


{#- done: takes the bytes of the old files removed, where there was something to do. -#}
{% macro _maintain_table(relation, policy, vacuum, min_files, done) %}
  {%- if not adapter.table_state(relation).exists %}{{ return('') }}{% endif -%}
  {%- set kept = policy.properties and delta_cdc._announce(relation, policy.properties) -%}
  {%- set before = adapter.table_statistics(relation) -%}
  {%- set small = before.files >= min_files and before.bytes / before.files < 64 * 1024 * 1024 -%}
  {%- if small and not adapter.optimize(relation, policy.order or '') -%}
    {%- do print('table ' ~ relation ~ ': left with its small files, for somebody wrote to it meanwhile') -%}
  {%- endif -%}
  {%- set gone = adapter.vacuum(relation) if vacuum else {'files': 0, 'bytes': 0} -%}
  {%- set after = adapter.table_statistics(relation) if small else before -%}
  {%- if after.files != before.files or gone.files or kept -%}
    {%- do done.append(gone.bytes) -%}
    {%- do print('table ' ~ relation ~ ': ' ~ before.files ~ ' files, now ' ~ after.files
          ~ (', ' ~ gone.files ~ ' old files removed' if gone.files else '')
          ~ (' (' ~ (gone.bytes | filesizeformat) ~ ')' if gone.bytes else '')
          ~ (', old versions now kept for ' ~ policy.days ~ ' days' if kept else '')) -%}
  {%- endif -%}
{% endmacro %}


{#- `written_tables`, and of all `cdc_table_log` too, which dbt knows nothing of where its variable is not given. -#}
{% macro _maintained(models) %}
  {%- set out = delta_cdc.written_tables(models) -%}
  {%- if models is none -%}
    {%- set node = delta_cdc._model_node('cdc_table_log') -%}
    {%- set log = delta_cdc._relation_of(node) if node else delta_cdc._control_relation('cdc_table_log') -%}
    {%- if adapter.table_state(log).exists %}{% do out.update({'cdc_table_log': log}) %}{% endif -%}
  {%- endif -%}
  {{ return(out) }}
{% endmacro %}


{#- {model: what `keep_versions_days` (days, properties) and `zorder_by` (order: what its OPTIMIZE says) ask for its table}. The log
    stays for Delta's 30 days at least: what a run noted of a table is in it. -#}
{% macro _policies() %}
  {%- set out = {} -%}
  {%- for node in graph.sources.values() -%}
    {%- set given = delta_cdc._cdc_meta(node) or {} -%}
    {%- if given.get('zorder_by') or given.get('keep_versions_days') -%}
      {%- set settings = delta_cdc._table_settings(node) -%}
      {%- set days = settings.keep_versions_days -%}
      {%- set properties = {'delta.deletedFileRetentionDuration': 'interval ' ~ days ~ ' days',
            'delta.logRetentionDuration': 'interval ' ~ [days, 30] | max ~ ' days'} if days else {} -%}
      {%- set order = 'zorder by (' ~ delta_cdc.column_list(settings.zorder_by) ~ ')' if settings.zorder_by else '' -%}
      {%- for layer in ['staging', 'keys', 'history', 'final'] -%}
        {%- do out.update({delta_cdc.model_name(settings, layer):
              {'days': days, 'properties': properties, 'order': order if layer == 'final' else ''}}) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}
