{#-
  How far a table has come, read without a Spark job: {exists, id, app_id, batch_id, committed, rows, rebuild, version, notes,
  resolved, columns, properties, next_app_id}. relation: the table.
  batch_id: the highest batch that the table has done (-1: none): the version of its own Delta transaction (rules S2, S8), or a
  later batch that the closing commit of a run (`cdc_runs`) noted as holding nothing for it (S7). committed: the highest batch
  that it committed. rows: how many rows that commit wrote; none if that is not known. rebuild: the table holds data of unknown
  progress: created, restored or replaced by somebody else (S8). resolved: how far the keys table had come when a run looked what
  that changes here, and found nothing (-1: no such run). next_app_id: that of a write which makes the table anew.
-#}
{% macro progress(relation) %}
  {%- set state = adapter.table_state(relation) -%}
  {%- set trusted = state.exists and state.txn_version is not none and not state.replaced -%}
  {%- set committed = state.txn_version if trusted else -1 -%}
  {%- set done, resolved = [committed], [-1] -%}
  {%- if trusted -%}
    {#- once a run, for each of its tables: only its own end adds to them, and notes of another run that ends meanwhile spare nothing
        but a look -#}
    {%- set noted = adapter.recall('noted_runs') or delta_cdc.noted_runs() -%}
    {%- do adapter.remember('noted_runs', noted) -%}
    {%- for name in [relation.identifier, relation.schema ~ '.' ~ relation.identifier] -%}
      {%- do done.append(noted.done.get(name, -1)) -%}
      {%- do resolved.append(noted.get('resolved', {}).get(name, -1)) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set generation = (state.version + 1) if state.exists else 0 -%}
  {{ return({
      'exists': state.exists,
      'id': state.id,
      'batch_id': done | max,
      'committed': committed,
      'rows': state.rows if trusted else none,
      'rebuild': state.exists and not trusted,
      'version': state.version,
      'notes': state.notes if trusted else {},
      'resolved': resolved | max,
      'columns': state.columns,
      'properties': state.properties,
      'app_id': state.app_id if trusted else relation.identifier ~ '@' ~ generation,
      'next_app_id': relation.identifier ~ '@' ~ generation,
  }) }}
{% endmacro %}


{#- Which staging table a commit of history or final was made of: by its id, version and transactions one is known that was dropped
    and made anew. Written anew, for another type (E4), it has another id too, and a later generation of transactions. -#}
{% macro made_of(staging, staged) %}
  {{ return({'schema': staging.schema, 'name': staging.identifier, 'id': staged.id, 'version': staged.version,
      'app_id': staged.app_id}) }}
{% endmacro %}

{#- What such a table has of batches that it would take for done, and of rows that staging no longer has, nobody can tell. Staging
    in another schema (`--defer`) was loaded by another ledger, which numbers its batches otherwise; of a plan's clone what it was
    cloned from counts, for that is what the run will meet. -#}
{% macro refuse_other_staging(settings, state, staging, staged) %}
  {%- set of = state.notes.get('made_of') -%}
  {%- if not of or not staged.exists -%}{{ return('') }}{%- endif -%}
  {%- set schema = staging.schema -%}
  {%- if of.schema | lower != schema | lower and delta_cdc._plan_suffix() in schema -%}
    {%- set schema = schema | replace(delta_cdc._plan_suffix(), '') -%}
    {%- set staged = adapter.table_state(
          api.Relation.create(database=staging.database, schema=schema, identifier=staging.identifier)) -%}
  {%- endif -%}
  {%- set elsewhere = of.schema | lower != schema | lower -%}
  {%- set goes_on = of.name == staging.identifier and (of.id == staged.id or (not elsewhere and staged.exists
        and staged.version > of.version
        and (not of.app_id or delta_cdc._generation(staged.app_id or '@0') > delta_cdc._generation(of.app_id)))) -%}
  {%- if not goes_on -%}
    {%- set was, now = (of.schema ~ '.' ~ of.name, schema ~ '.' ~ staging.identifier) if elsewhere
          else (of.name, staging.identifier) -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ this ~ ' was made of ' ~ was
          ~ (', which was dropped and made anew since' if was == now else ' and is to be made of ' ~ now)
          ~ '. Where that holds all, make it anew: delta-cdc rebuild ' ~ settings.feed ~ '.' ~ settings.table) -%}
  {%- endif -%}
{% endmacro %}

{% macro _generation(app_id) %}{{ return(app_id.split('@')[-1] | int) }}{% endmacro %}


{#- Whether staging holds no change above a batch: it has come no further, or its newest commit found only duplicates. -#}
{% macro nothing_new(staged, done) %}
  {{ return(staged.committed <= done or (staged.rows == 0 and staged.notes.get('after', staged.committed) <= done)) }}
{% endmacro %}

{#- The report of a table that was looked at and needed nothing: none if that is known already, and nothing is held. -#}
{% macro _looked_at(staged, done, settings, held) %}
  {%- set report = {'first_batch_id': done + 1, 'last_batch_id': staged.committed, 'rows_read': 0}
        if staged.committed > done else {} -%}
  {%- do report.update(delta_cdc.held_report(settings, held)) -%}
  {{ return(report or none) }}
{% endmacro %}


{#- What the runs so far found: {done: {table: the highest batch that one found to hold nothing for it}, resolved: {table: how far
    the keys table had come then}, failed: {table: whether its last run failed}}. The newest commit of `cdc_runs` notes it; where that is somebody else's, its rows are asked. -#}
{% macro noted_runs() %}
  {%- set runs = delta_cdc._runs_relation() -%}
  {%- set noted = adapter.newest_notes(runs) -%}
  {%- if 'done' in noted -%}{{ return(noted) }}{%- endif -%}
  {%- set done, failed = {}, {} -%}
  {#- What a table wrote it knows itself. What was found before it was dropped and made anew says nothing of the new one: there it
      has written since, or it is noted that it was made. -#}
  {%- set found = "select *, max(if(rows_written > 0, last_batch_id, null)) over (partition by `table`) as wrote, "
        ~ "max(if(version = 0, finished_at, null)) over (partition by `table`) as made_at from " ~ runs -%}
  {%- for row in adapter.cached_query(runs, "select `table`, max(if(status = 'success' and rows_written = 0"
        ~ " and last_batch_id > coalesce(wrote, -1) and finished_at >= coalesce(made_at, finished_at), last_batch_id, null))"
        ~ " as batch_id, max_by(status, finished_at) as status from (" ~ found ~ ") group by `table`") -%}
    {%- if row.batch_id is not none %}{% do done.update({row.table: row.batch_id}) %}{% endif -%}
    {%- if row.status not in delta_cdc._good_ends() %}{% do failed.update({row.table: true}) %}{% endif -%}
  {%- endfor -%}
  {{ return({'done': done, 'failed': failed}) }}
{% endmacro %}

{#- How a table's run ends where nothing is wrong (`cdc_runs.status`). -#}
{% macro _good_ends() %}{{ return(['success', 'skipped', 'held']) }}{% endmacro %}


{#- The recorded change sets above a batch that a table must load: [{batch_id, change_set, unit, size,
    modified_at}], checked to be still as they were recorded (rule S4). A set that was rewritten before it was
    loaded is superseded by its newest record. beside_raw: a table of a mixed feed asks, which reads them itself. -#}
{% macro pending_change_sets(ledger, settings, done, beside_raw=false) %}
  {%- set unlisted = (adapter.recall('unlisted') or {}).get(settings.feed) -%}
  {%- if unlisted -%}
    {%- do exceptions.raise_compiler_error('feed ' ~ settings.feed ~ ': ' ~ unlisted
          ~ '\nIts new change sets were not found, and nothing of it was loaded; other feeds go on. Put that right and run again.') -%}
  {%- endif -%}
  {%- set recorded = adapter.table_state(ledger) -%}
  {%- if not recorded.exists -%}{{ return([]) }}{%- endif -%}
  {%- set root = delta_cdc.qualified_folder(settings) -%}
  {%- set recently = delta_cdc._recently_recorded(ledger, recorded) -%}
  {%- if done >= recently.above -%}
    {%- set newest = {} -%}
    {%- for change_set in recently.rows if change_set.feed == settings.feed and change_set.batch_id > done
          and (change_set.folder == root or (settings.sub_folders and change_set.folder.startswith(root ~ '/'))) -%}
      {%- do newest.update({change_set.change_set: change_set}) -%}
    {%- endfor -%}
    {%- set pending = newest.values() | rejectattr('status', 'equalto', 'retracted') | sort(attribute='batch_id') -%}
  {%- elif delta_cdc._highest_recorded(ledger, settings, root) <= done -%}
    {%- set pending = [] -%}
  {%- else -%}
    {%- set pending = adapter.query_rows(delta_cdc._change_sets_above(ledger, done, settings.feed, root)) -%}
  {%- endif -%}
  {%- do delta_cdc._check_unchanged(settings, pending, beside_raw) -%}
  {%- do delta_cdc._refuse_versions_anew(ledger, settings, pending, done) -%}
  {{ return(pending) }}
{% endmacro %}


{#- A Delta table that was dropped and made anew counts its versions from 0 again: where they are the order, its rows would be
    late, and those of the old table would stay. A commit's file is never written again, but copied perhaps: its size tells. -#}
{% macro _refuse_versions_anew(ledger, settings, pending, done) %}
  {%- if settings.get('format') == 'delta_cdf' and settings.sequence_by[0] == '_commit_version' and pending and done > 0 -%}
    {%- set other = adapter.cached_query(ledger, 'select change_set from ' ~ ledger ~ ' where feed = '
          ~ delta_cdc.literal(settings.feed) ~ " and status <> 'retracted' group by change_set having count(distinct size) > 1"
          ~ ' and min(batch_id) <= ' ~ done) | map(attribute='change_set') | list -%}
    {%- for set in pending if set.change_set in other -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ 'batch ' ~ set.batch_id ~ ' (' ~ set.change_set
            ~ ') is another commit than the one of this version that was loaded: the Delta table was dropped and made anew. Its '
            ~ 'rows would count as older than those of the old one. Nothing of it was loaded. Read it as a feed of another name, '
            ~ 'or let it be (`delta-cdc retract`).') -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{#- The change sets that the ledger recorded last: {above: a batch, rows: [{feed, folder, batch_id, change_set, unit, size,
    modified_at, status}] of the later ones, in their order}. All tables of a run that are not far behind are served from them.
    The ledger's model has read them, if it is part of the run and no other run has written since. -#}
{% macro _recently_recorded(ledger, state) %}
  {%- set met = adapter.recall('recorded') -%}
  {%- if met and met.ledger == ledger | string and met.version == state.version and met.run in (none, state.notes.run) -%}
    {{ return(met) }}
  {%- endif -%}
  {%- set above = delta_cdc._recent_batches_above(delta_cdc._highest_recorded_batch(ledger, state)) -%}
  {{ return({'above': above,
      'rows': adapter.cached_query(ledger, 'select *, ' ~ delta_cdc._folder_of('change_set') ~ ' as folder from '
        ~ ledger ~ ' where batch_id > ' ~ above ~ ' order by batch_id')}) }}
{% endmacro %}

{#- So few that all tables can be served from one query's rows, so many that a table behind them is a rare one. -#}
{% macro _few_change_sets() %}{{ return(2000) }}{% endmacro %}
{% macro _recent_batches_above(highest) %}{{ return([highest - delta_cdc._few_change_sets(), -1] | max) }}{% endmacro %}


{#- The newest record of each change set. rewritten: the older ones of those that were rewritten since, too. -#}
{% macro _change_sets_above(ledger, batch_id, feed, folder, rewritten=false) -%}
select * except (status) from (
  select batch_id, change_set, unit, size, modified_at, status,
    row_number() over (partition by feed, change_set order by batch_id desc) as newest_first
  from {{ ledger }}
  where batch_id > {{ batch_id }} and feed = {{ delta_cdc.literal(feed) }}
    and startswith(change_set, {{ delta_cdc.literal(folder ~ '/') }})
)
where {{ '(newest_first = 1 or size is not null)' if rewritten else 'newest_first = 1' }} and status <> 'retracted'
order by batch_id
{%- endmacro %}

{% macro _highest_recorded(ledger, settings, root) %}
  {%- set sql = 'select feed, ' ~ delta_cdc._folder_of('change_set') ~ ' as folder, max(batch_id) as batch_id from '
        ~ ledger ~ ' group by all' -%}
  {%- set batches = [-1] -%}
  {%- for row in adapter.cached_query(ledger, sql) if row.feed == settings.feed
        and (row.folder == root or (settings.sub_folders and row.folder.startswith(root ~ '/'))) -%}
    {%- do batches.append(row.batch_id) -%}
  {%- endfor -%}
  {{ return(batches | max) }}
{% endmacro %}


{% macro _check_unchanged(settings, pending, beside_raw=false) %}
  {%- set problems = adapter.changed_files(pending, settings.get('ready')) -%}
  {%- if problems -%}
    {%- set lines = [] -%}
    {%- for p in problems -%}
      {%- do lines.append('feed ' ~ settings.feed ~ ', change set ' ~ p.change_set ~ ' (batch ' ~ p.batch_id
            ~ '): recorded ' ~ ('from the tables, when the ledger was lost' if p.size is none
              else 'with ' ~ p.size ~ ' bytes, modified ' ~ p.modified_at) ~ '; now ' ~ p.found ~ '.') -%}
    {%- endfor -%}
    {%- set otherwise = 'deliver it under a name that sorts above and take this one back (delta-cdc retract): with `list_after` one'
          ~ ' that was rewritten is not seen.' if settings.list_after
          else 'run again: one that was rewritten is recorded as a new change set.' -%}
    {#- the others have it from raw, which read it in time -#}
    {%- set others = ', and takes back what other tables of the feed have loaded of it' if beside_raw else '' -%}
    {#- such a one is recorded for good: running again finds it gone once more -#}
    {%- set lost = ' `delta-cdc retract` goes on without one that is gone' ~ others ~ '.'
          if problems | selectattr('found', 'equalto', 'it is gone') | list else '' -%}
    {%- do exceptions.raise_compiler_error(lines | join('\n')
          ~ '\nNothing of it was loaded. Put the change set back as it was, or ' ~ otherwise ~ lost) -%}
  {%- endif -%}
{% endmacro %}
