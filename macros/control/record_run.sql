{#- {id of a model: the name by which `cdc_runs` knows its table}: with its schema where others of
    the project have that name too. -#}
{% macro names_in_runs() %}
  {%- set times, out = {}, {} -%}
  {%- set models = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | list -%}
  {%- for node in models %}{% do times.update({node.alias: times.get(node.alias, 0) + 1}) %}{% endfor -%}
  {%- for node in models -%}
    {%- do out.update({node.unique_id: node.alias if times[node.alias] == 1 else node.schema ~ '.' ~ node.alias}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- on-run-end: one commit that says what the run did (`cdc_runs`), a row a table. Nothing depends on it but what it spares:
    a table that was looked at and held nothing new is not looked at again (S7). results: dbt's. -#}
{% macro record_run(results) %}
  {%- if not execute or not results or not delta_cdc.in_session() -%}{{ return('') }}{%- endif -%}
  {%- set runs = delta_cdc._runs_relation() -%}
  {%- set values, layers, names = [], delta_cdc.layers(), delta_cdc.names_in_runs() -%}
  {#- a history that is a view has nothing to tell but that it could not be made -#}
  {%- set ours = results | selectattr('node.resource_type', 'equalto', 'model') | selectattr('node.name', 'in', layers) | list -%}
  {%- set noted = {} -%}
  {%- for about, tables in (delta_cdc.noted_runs() if ours else {}).items() -%}
    {%- do noted.update({about: dict(tables)}) -%}
  {%- endfor -%}
  {%- for result in ours -%}
    {%- set r = {} -%}
    {%- do r.update(result.adapter_response or {}) -%}
    {%- do r.update((result.adapter_response or {}).get('report') or {}) -%}
    {%- set layer = layers.get(result.node.name) -%}
    {%- set name = names[result.node.unique_id] -%}
    {#- of a table that was dropped and is new, what was noted of the old one does not hold -#}
    {%- if r.get('table_version') == 0 and noted.done.pop(name, none) is not none -%}
      {%- do noted.get('resolved', {}).pop(name, none) -%}
      {%- do r.setdefault('last_batch_id', 0) -%}
    {%- endif -%}
    {%- if r.get('last_batch_id') is not none or r.get('held') or result.status not in ('success', 'skipped')
          or (result.status == 'success' and name in noted.failed) -%}
      {%- if r.get('rows_kept') -%}
        {%- do r.update({'rows_inserted': [(r.get('rows_inserted') or 0) - r.rows_kept, 0] | max}) -%}
      {%- endif -%}
      {%- set inserted = r.get('rows_inserted') or 0 -%}
      {%- set duplicate = [r.get('rows_read') - inserted, 0] | max
            if layer == 'staging' and r.get('rows_read') is not none else none -%}
      {#- what was staged before is no late change, though below the highest position too, and what the load says twice is one -#}
      {%- set late = [r.rows_late - [duplicate - r.get('rows_repeated', 0), 0] | max
            - [duplicate, r.get('rows_late_repeated', 0)] | min, 0] | max if r.get('rows_late') else r.get('rows_late') -%}
      {%- set written = inserted + (r.get('rows_updated') or 0) + (r.get('rows_deleted') or 0) -%}
      {%- set status = 'held' if r.get('held') and result.status == 'success' else result.status -%}
      {%- set cells = [
            delta_cdc.literal(invocation_id), delta_cdc.literal(name), delta_cdc.literal(layer),
            r.get('first_batch_id'), r.get('last_batch_id'), r.get('rows_read'),
            duplicate, late, r.get('rows_quarantined'), r.get('rows_inserted'), r.get('rows_updated'), r.get('rows_deleted'),
            written, r.get('table_version'), result.execution_time, delta_cdc.literal(status),
            delta_cdc.literal(result.message) if result.status not in ('success', 'skipped')
            else delta_cdc.literal(r.held) if r.get('held') else none] -%}
      {%- do delta_cdc._note_end(noted, name, status, r.get('last_batch_id'), written, r.get('resolved_batch_id')) -%}
      {%- set out = [] -%}
      {%- for cell in cells %}{% do out.append('null' if cell is none else cell | string) %}{% endfor -%}
      {%- do values.append('(' ~ out | join(', ') ~ ')') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if not values -%}{{ return('') }}{%- endif -%}
  {%- if not adapter.table_state(runs).exists -%}
    {%- do adapter.create_schema(runs) -%}  {#- that of the ledger, which need not have run -#}
    {%- do run_query('create table if not exists ' ~ runs ~ ' (
      run string comment "id of the dbt invocation", `table` string, layer string,
      first_batch_id bigint, last_batch_id bigint, rows_read bigint, rows_duplicate bigint, rows_late bigint, rows_quarantined bigint,
      rows_inserted bigint, rows_updated bigint, rows_deleted bigint, rows_written bigint, version bigint,
      seconds double, status string, error string, finished_at timestamp) using delta
      comment "what each run did, a row a table"') -%}
  {%- endif -%}
  {%- do delta_cdc._write(runs, 'insert into ' ~ runs ~ ' select *, current_timestamp() from values\n  ' ~ values | join(',\n  '),
        {'notes': noted}) -%}
{% endmacro %}


{#- Note (`noted_runs`) how a table's run ended, its last batch, how many rows it wrote, and how far the keys table
    had come. What a table wrote it knows itself. -#}
{% macro _note_end(noted, table, status, batch, written, resolved=none) %}
  {%- if status in delta_cdc._good_ends() -%}
    {%- do noted.failed.pop(table, none) -%}
  {%- else -%}
    {%- do noted.failed.update({table: true}) -%}
  {%- endif -%}
  {%- set before = noted.done.get(table, -1) -%}
  {%- if status == 'success' and batch is not none and batch >= before -%}
    {%- if written %}{% do noted.done.pop(table, none) %}{% else %}{% do noted.done.update({table: batch}) %}{% endif -%}
    {%- if not written and resolved is not none %}{% do noted.setdefault('resolved', {}).update({table: resolved}) %}{% endif -%}
  {%- endif -%}
{% endmacro %}
