{#-
  Operations that change what staging says of changes it holds: retract (S9) and replay (Q3). Each is one commit a table: a MERGE
  into staging by the row's own id (`_cdc_batch_id`, `_cdc_row`: its arrival, which stays), which writes a batch id of its own
  into `_cdc_revised_in` and is that batch's transaction. Keys, history and final take a revised row like a late change of that
  batch. A table that was never revised has no such column, and the same SQL as if there were no revisions.
-#}

{#- Whether rows of staging were revised since a table was made of it. What is held (Q4) keeps the table's batch below the
    revision's, so its commits note the revision too. -#}
{% macro revised_since(staged, state) %}
  {{ return((staged.notes.get('revised_in') or -1) > [state.batch_id, state.notes.get('revised_in') or -1] | max) }}
{% endmacro %}

{#- What such a commit notes. -#}
{% macro note_of_revision(staged) %}
  {{ return({'revised_in': staged.notes.revised_in} if staged.notes.get('revised_in') else {}) }}
{% endmacro %}


{#- A revised truncate touches every key, an erased row may have had other keys than staging still knows; a table that is only
    appended to has no way to take a row back. -#}
{% macro _revision_wants_rebuild(settings, staging, done) %}
  {%- if not delta_cdc.has_entities(settings) -%}{{ return(true) }}{%- endif -%}
  {%- set all_keys = "_cdc_op = 'T'" ~ (" or _cdc_error = 'erased'" if settings.key_changes else '') -%}
  {{ return(delta_cdc._number_of(staging ~ ' where _cdc_revised_in > ' ~ done ~ ' and (' ~ all_keys ~ ')') > 0) }}
{% endmacro %}


{#- SQL: marks of rows that no other configuration makes usable. -#}
{% macro _errors_for_good() %}{{ return("('retracted', 'erased', 'too_late', 'duplicate_key')") }}{% endmacro %}


{#- Run by `delta-cdc retract`. change_set: a path, a name or a batch id. What ended half-way is ended by running it again. -#}
{% macro retract(change_set) %}
  {%- set ledger = delta_cdc._ledger() -%}
  {%- set found = delta_cdc._named_change_set(ledger, change_set) -%}
  {%- set batch_id = found.batch_id -%}
  {%- set tables = delta_cdc._staging_tables(found.feed) -%}
  {%- set homes = [] -%}  {#- none: it came from a folder that is no longer the feed's -#}
  {%- for table in tables if found.change_set.startswith(delta_cdc.qualified_folder(table.settings) ~ '/') -%}
    {%- do homes.append(table.name) -%}
  {%- endfor -%}
  {%- for table in tables if batch_id <= table.compacted
        and (delta_cdc._may_be_in_raw(table, batch_id) if table.raw is not none else table.name in homes or not homes) -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': batch ' ~ batch_id
          ~ ' was loaded before the table was compacted. Its changes are folded into others and cannot be taken back. Have'
          ~ ' the producer send what is right in a new change set.') -%}
  {%- endfor -%}
  {%- set to_mark = [] -%}
  {%- for table in tables -%}
    {%- if table.name in homes or not homes -%}
      {%- do delta_cdc._refuse_restored(table.staging, delta_cdc.progress(table.staging)) -%}
    {%- endif -%}
    {%- set counted = delta_cdc._number_of(table.staging ~ ' where _cdc_batch_id = ' ~ batch_id
          ~ " and not _cdc_error <=> 'retracted'") -%}
    {%- if counted -%}{%- do to_mark.append(table) -%}{%- endif -%}
  {%- endfor -%}
  {%- if found.status == 'retracted' and not to_mark -%}
    {%- do delta_cdc._end_hold(batch_id) -%}
    {%- do print('batch ' ~ batch_id ~ ' (' ~ found.change_set ~ ') was taken back already, at ' ~ found.retracted_at ~ '.') -%}
    {{ return('') }}
  {%- endif -%}
  {%- set revision = delta_cdc._record_revision(ledger, to_mark, 'retract', found.feed, found.change_set, batch_id) -%}
  {%- set problems = [] -%}
  {%- for table in to_mark -%}
    {%- set waiting = delta_cdc._not_loaded(ledger, table) -%}
    {%- if waiting -%}{%- do problems.append(waiting) -%}
    {%- else -%}{%- do delta_cdc._retract_from(ledger, table, batch_id, revision) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if problems -%}
    {%- do exceptions.raise_compiler_error(problems | join('\n')
          ~ '\nbatch ' ~ batch_id ~ ' is not taken back there yet. Once a `dbt run` has loaded that, retract it again.') -%}
  {%- endif -%}
  {%- do delta_cdc._end_hold(batch_id) -%}
  {%- do print('batch ' ~ batch_id ~ ' (' ~ found.change_set
        ~ ') is taken back, as batch ' ~ revision ~ '. The next `dbt run` works out its keys without it.') -%}
{% endmacro %}


{#- Whether a change set of a mixed feed brought anything of a table, as far as raw can tell: what it did not take while the table
    was private, it cannot. -#}
{% macro _may_be_in_raw(table, batch_id) %}
  {{ return(delta_cdc.withheld_until(delta_cdc.progress(table.raw), table.settings) >= batch_id
      or adapter.query_rows('select 1 as found from ' ~ table.raw ~ ' where batch_id = ' ~ batch_id ~ ' and '
        ~ delta_cdc._is_of_table(table.settings) ~ ' limit 1') | length > 0) }}
{% endmacro %}


{% macro _retract_from(ledger, table, batch_id, revision) %}
  {#- rows that `replay` may still make usable count too -#}
  {%- set usable = 'not coalesce(_cdc_error in ' ~ delta_cdc._errors_for_good() ~ ', false)' -%}
  {%- set some = delta_cdc._number_of(table.staging ~ ' where _cdc_batch_id = ' ~ batch_id ~ ' and ' ~ usable) -%}
  {%- set young = (table.settings.joined_after or {}).keys() | list -%}
  {#- listed since, perhaps: the retracted row says nothing of them -#}
  {%- set columns = delta_cdc._staging_columns(table.settings) -%}
  {%- set marked = 'select ' ~ columns | join(', ') ~ ", 'retract' as _cdc_action from " ~ table.staging
        ~ ' where _cdc_batch_id = ' ~ batch_id ~ " and not _cdc_error <=> 'retracted'" -%}
  {#- what a later change set brought once more was dropped as a duplicate of this one: it counts now -#}
  {%- set later = delta_cdc._lines_of_later_sets(ledger, table, batch_id) if some else {'lines': none, 'gone': []} -%}
  {%- if later.lines -%}
    {%- set of_batch = delta_cdc.staged_rows(table.settings, table.staging) ~ ' as t where '
          ~ delta_cdc.same_content(table.settings, 't', '_cdc_again', young) -%}
    {%- set beside = of_batch -%}
    {%- set own = '' -%}
    {%- if delta_cdc.is_appended(table.settings) -%}
      {#- rows that differ in a young column are two; where staging lacks the text of it, one is known by its own place (N2) -#}
      {%- set beside = delta_cdc.staged_as_told(table.settings, table.staging) ~ ' as t where '
            ~ delta_cdc.same_content(table.settings, 't', '_cdc_again') -%}
      {%- set own = '\n  and not exists (select 1 from ' ~ table.staging
            ~ ' as t where t._cdc_batch_id = _cdc_again._cdc_batch_id and t._cdc_row = _cdc_again._cdc_row)' -%}
    {%- endif -%}
    {%- set marked = marked ~ "\nunion all\nselect " ~ columns | join(', ') ~ ", 'restore' from (\n"
          ~ delta_cdc._staging_sql(table.settings, later.lines, true) ~ '\n) as _cdc_again\nwhere ' ~ usable
          ~ '\n  and exists (select 1 from ' ~ of_batch ~ ' and t._cdc_batch_id = ' ~ batch_id
          ~ ')\n  and not exists (select 1 from ' ~ beside ~ ' and t._cdc_batch_id <> ' ~ batch_id ~ ')' ~ own -%}
  {%- endif -%}
  {%- do adapter.create_kept_view('cdc_revision', marked) -%}  {#- Delta's MERGE cannot read its own table in a subquery -#}
  {%- set sql -%}
merge into {{ table.staging }} as t
using cdc_revision as s
on t._cdc_batch_id = s._cdc_batch_id and t._cdc_row = s._cdc_row and s._cdc_action = 'retract'
when matched then update set _cdc_error = 'retracted', _cdc_revised_in = {{ revision }}
when not matched and s._cdc_action = 'restore' then insert ({{ columns | join(', ') }}, _cdc_revised_in)
  values (s.{{ columns | join(', s.') }}, {{ revision }})
  {%- endset -%}
  {%- set done = delta_cdc._revise(table, sql, revision) -%}
  {%- do print('table ' ~ table.name ~ ': ' ~ done.rows_updated ~ ' rows marked'
        ~ (', ' ~ done.rows_inserted ~ ' restored from later change sets' if done.rows_inserted else '') ~ '.') -%}
  {%- for set in later.gone -%}
    {%- do print('table ' ~ table.name ~ ': ' ~ set.change_set ~ ' (batch ' ~ set.batch_id ~ ') is no longer as it was loaded ('
          ~ set.found ~ '): what it brought once more is not restored from it.') -%}
  {%- endfor -%}
{% endmacro %}


{#- Run by `delta-cdc replay`: the quarantined rows of the named staging tables, read again with the configuration as it is now.
    staging: their names. -#}
{% macro replay(staging) %}
  {%- set ledger = delta_cdc._ledger() -%}
  {%- set problems = [] -%}
  {%- set tables = [] -%}
  {%- for table in delta_cdc._staging_tables(names=staging) -%}
    {%- set why_not = delta_cdc._why_not_replayed(table.settings) -%}
    {%- if not why_not and not table.grows %}{% do tables.append(table) %}
    {%- elif not adapter.query_rows('select 1 as found from ' ~ delta_cdc._to_replay(table) ~ ' limit 1') -%}
      {%- do print('table ' ~ table.name ~ ': nothing is quarantined.') -%}
    {%- elif why_not -%}
      {%- do print('table ' ~ table.name ~ ': not replayed, for ' ~ why_not ~ '. Deliver the change sets again.') -%}
    {#- what is read again cannot be compared with rows that lack columns -#}
    {%- else %}{% do problems.append(delta_cdc._not_loaded(ledger, table)) %}{% endif -%}
  {%- endfor -%}
  {%- for table in tables -%}
    {%- set problem = delta_cdc._replay_into(ledger, table) -%}
    {%- if problem %}{% do problems.append(problem) %}{% endif -%}
  {%- endfor -%}
  {%- if problems -%}
    {%- do exceptions.raise_compiler_error(problems | join('\n')
          ~ '\nOnce a `dbt run` has loaded that, replay again.') -%}
  {%- endif -%}
{% endmacro %}


{#- Replays a table's rows; why it cannot now, or nothing. -#}
{% macro _replay_into(ledger, table) %}
  {%- set read -%}
select * from (
{{ delta_cdc._staging_sql(table.settings, delta_cdc._to_replay(table), true, none,
    '(select * from ' ~ table.staging ~ ' where _cdc_error is null)') }}
) as _cdc_again
  {%- endset -%}
  {%- set usable -%}
{{ read }}
where {{ "_cdc_error = 'erased' or " if table.settings.get('erased_in') -}}  {#- its key can be read now: its text goes (R2) #}
  _cdc_error is null and not exists (select 1 from {{ delta_cdc.staged_as_told(table.settings, table.staging) }} as t
  where {% if not table.settings['keys'] -%}  {#- N1: equal rows of one change set, or without a position, are all rows -#}
    _cdc_again._cdc_sequence is not null and t._cdc_batch_id <> _cdc_again._cdc_batch_id and {% endif -%}
    {{ delta_cdc.same_content(table.settings, 't', '_cdc_again') }})
  {%- endset -%}
  {%- do adapter.create_kept_view('cdc_revision', usable) -%}
  {%- set found = adapter.query_rows('select count(_cdc_error) as erased, count(*) as n from cdc_revision')[0] -%}
  {%- set left = [] -%}
  {%- for row in adapter.query_rows('select coalesce(_cdc_error, \'duplicate\') as error, count(*) as n from (' ~ read
        ~ ') as _cdc_again' ~ (' where _cdc_error is not null' if found.n else '') ~ ' group by 1 order by 2 desc, 1') -%}
    {%- do left.append(row.n ~ ' ' ~ row.error) -%}
  {%- endfor -%}
  {%- set left = 'still quarantined: ' ~ left | join(', ') if left else '' -%}
  {%- if not found.n -%}
    {%- do print('table ' ~ table.name ~ ': ' ~ ('nothing to replay; ' ~ left if left else 'nothing is quarantined') ~ '.') -%}
    {{ return('') }}
  {%- endif -%}
  {%- set waiting = delta_cdc._not_loaded(ledger, table) -%}
  {%- if waiting %}{{ return(waiting) }}{% endif -%}
  {%- set revision = delta_cdc._record_revision_of(ledger, table, 'replay') -%}
  {%- if found.erased and table.raw is not none -%}
    {%- do delta_cdc._erase_again_from_raw(table.settings, table.raw,
          delta_cdc._lines_of_table(table.raw | string, table.settings, -1)) -%}
  {%- endif -%}
  {%- set columns = delta_cdc._staging_columns(table.settings) -%}
  {%- set sql -%}
merge into {{ table.staging }} as t
using cdc_revision as s
on t._cdc_batch_id = s._cdc_batch_id and t._cdc_row = s._cdc_row
when matched then update set
  {% for column in columns %}{{ column }} = s.{{ column }}, {% endfor %}_cdc_revised_in = {{ revision }}
  {%- endset -%}
  {%- set done = delta_cdc._revise(table, sql, revision) -%}
  {%- do print('table ' ~ table.name ~ ': ' ~ (done.rows_updated - found.erased) ~ ' changes replayed, as batch ' ~ revision
        ~ (', ' ~ left if left else '') ~ '. The next `dbt run` applies them.') -%}
  {%- if found.erased -%}
    {%- do print('table ' ~ table.name ~ ': ' ~ found.erased ~ ' rows are of an erased person, and are blanked. '
          ~ 'Erase that person again to remove them from old files.') -%}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}


{#- SQL: the lines of a table's rows that another configuration may make usable. -#}
{% macro _to_replay(table) %}
  {{ return('(select _cdc_batch_id as batch_id, _cdc_change_set as change_set, _cdc_row as row_number, _cdc_raw as message from '
      ~ table.staging ~ ' where _cdc_error not in ' ~ delta_cdc._errors_for_good() ~ ' and _cdc_raw is not null)') }}
{% endmacro %}

{#- Why the raw text of a table's rows is not all that they were, or nothing. -#}
{% macro _why_not_replayed(settings) %}
  {%- if delta_cdc.is_private(settings) -%}
    {{ return('`mask` and `never_store` keep what they name out of the raw text') }}
  {%- endif -%}
  {{ return('which row an event means by `alternate_keys` was settled when it came' if settings.get('alternate_keys') else '') }}
{% endmacro %}


{#- One statement on staging, as the transaction of its revision. It touches some row, or Delta had that transaction already. -#}
{% macro _revise(table, sql, revision) %}
  {%- set state = delta_cdc.progress(table.staging) -%}
  {%- do delta_cdc._refuse_restored(table.staging, state) -%}
  {%- do delta_cdc._need_erase_secret(table.settings, state) -%}
  {%- if '_cdc_revised_in' not in adapter.get_columns_in_relation(table.staging) | map(attribute='name') | list -%}
    {%- do run_query('alter table ' ~ table.staging
          ~ " add columns (_cdc_revised_in bigint comment 'batch of the operation that last retracted, replayed or restored the row; null if none did')") -%}
  {%- endif -%}
  {%- set notes = {} -%}
  {%- do notes.update(state.notes) -%}
  {#- the highest position may be lower now: it is asked for at the next load; what is usable now
      may be a truncate, or a key change -#}
  {%- do notes.update({'highest': none, 'highest_type': none, 'revised_in': revision, 'after': revision, 'truncates': true,
        'keys_may_move': state.notes.keys_may_move is not sameas false or table.settings.key_changes}) -%}
  {%- set done = delta_cdc._write(table.staging, sql, {'txn': {'app_id': state.app_id, 'version': revision}, 'notes': notes}) -%}
  {%- if not done.rows_affected -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': another operation took batch ' ~ revision
          ~ ' meanwhile, and this one did nothing. Run it again.') -%}
  {%- endif -%}
  {{ return(done) }}
{% endmacro %}

{#- Runs the one statement that writes into a table, with these options of a write plan; its response. -#}
{% macro _write(relation, sql, options) %}
  {%- do adapter.plan_write(relation, options) -%}
  {{ return(adapter.execute_write(sql, adapter.take_write_plan(relation))) }}
{% endmacro %}


{#- How many rows there are in a relation. rows: what stands behind `from`. -#}
{% macro _number_of(rows) %}{{ return(adapter.query_rows('select count(*) as n from ' ~ rows)[0].n) }}{% endmacro %}


{#- The batches of a feed that were taken back. -#}
{% macro _retracted_batches(feed) %}
  {%- set ledger = delta_cdc._model_relation('cdc_change_sets') -%}
  {%- set rows = adapter.cached_query(ledger, "select feed, batch_id from " ~ ledger ~ " where status = 'retracted'") -%}
  {{ return(rows | selectattr('feed', 'equalto', feed) | map(attribute='batch_id') | list) }}
{% endmacro %}


{#- A batch id for an operation: a row of its own in the ledger, in one commit with the mark on what it takes back. One that was
    interrupted before a table took its number goes on with it when it is run again, unless something was recorded since.
    tables: those that are to take it. -#}
{% macro _record_revision(ledger, tables, unit, feed, subject, retracted=none) %}
  {%- set recorded, taken = delta_cdc._highest_recorded_batch(ledger, adapter.table_state(ledger)),
        delta_cdc._highest_batch_of_tables() -%}
  {%- set reached = [-1] -%}
  {%- for table in tables %}{% do reached.append(delta_cdc.progress(table.staging).batch_id) %}{% endfor -%}
  {%- if recorded >= taken and recorded > reached | max -%}
    {%- set its_row = 'batch_id = ' ~ recorded ~ ' and feed = ' ~ delta_cdc.literal(feed)
          ~ ' and unit = ' ~ delta_cdc.literal(unit) ~ ' and change_set = ' ~ delta_cdc.literal(unit ~ ' ' ~ subject) -%}
    {%- set marked = 'batch_id = ' ~ retracted ~ " and status = 'retracted'" if retracted is not none else 'false' -%}
    {%- set there = delta_cdc._number_of(ledger ~ ' where ' ~ its_row ~ ' or ' ~ marked) -%}
    {%- if there == (1 if retracted is none else 2) %}{{ return(recorded) }}{% endif -%}
  {%- endif -%}
  {%- set revision = [recorded, taken] | max + 1 -%}
  {%- set sql -%}
merge into {{ ledger }} as t
using (
  select {{ revision }}L as batch_id, {{ delta_cdc.literal(unit ~ ' ' ~ subject) }} as change_set
  {%- if retracted is not none %} union all select {{ retracted }}L, null{% endif %}
) as s on t.batch_id = s.batch_id
when matched then update set status = 'retracted', retracted_at = coalesce(t.retracted_at, current_timestamp())
when not matched then insert (feed, change_set, unit, batch_id, discovered_at, status)
  values ({{ delta_cdc.literal(feed) }}, s.change_set, {{ delta_cdc.literal(unit) }}, s.batch_id, current_timestamp(), 'recorded')
  {%- endset -%}
  {%- set done = delta_cdc._write(ledger, sql, {'txn': {'app_id': ledger.identifier ~ '@0', 'version': revision}}) -%}
  {%- if not done.rows_affected -%}  {#- it adds a row, or Delta had that transaction already -#}
    {%- do exceptions.raise_compiler_error('another run or operation took batch ' ~ revision
          ~ ' meanwhile, and this one did not get it. Run it again.') -%}
  {%- endif -%}
  {{ return(revision) }}
{% endmacro %}

{#- The same for one table, which had loaded all that was recorded when that was asked: what a run recorded since has a lower
    number, and staging would take it for done. -#}
{% macro _record_revision_of(ledger, table, unit) %}
  {%- set revision = delta_cdc._record_revision(ledger, [table], unit, table.settings.feed, table.name) -%}
  {%- set waiting = delta_cdc._not_loaded(ledger, table) -%}
  {%- if waiting %}{% do exceptions.raise_compiler_error(waiting ~ ' Run `dbt run`, then ' ~ unit ~ ' again.') %}{% endif -%}
  {{ return(revision) }}
{% endmacro %}


{#- Why a table cannot take an operation's batch now, or nothing: what was recorded before it must be loaded before it. -#}
{% macro _not_loaded(ledger, table) %}
  {%- set settings = table.settings -%}
  {%- set root = delta_cdc.qualified_folder(settings) -%}
  {%- set reader, staged = table.raw or table.staging, delta_cdc.progress(table.staging) -%}
  {#- what raw did not take while the table was private, staging reads from the change sets themselves -#}
  {%- if delta_cdc.withheld_until(delta_cdc.progress(reader), settings) > staged.batch_id -%}
    {%- set reader = table.staging -%}
  {%- endif -%}
  {%- set keys = delta_cdc.keys_of_staging(settings, staged) -%}
  {%- if delta_cdc._are_other_keys(keys, settings['keys']) -%}
    {{ return('table ' ~ table.name ~ ': ' ~ delta_cdc._says_other_keys(settings, keys) ~ '.') }}
  {%- endif -%}
  {%- if table.grows -%}
    {{ return('table ' ~ table.name
        ~ ': staging has not got its columns from the configuration yet: ' ~ table.grows | join(', ') ~ '.') }}
  {%- endif -%}
  {%- set pending = adapter.query_rows(delta_cdc._change_sets_above(ledger, delta_cdc.progress(reader).batch_id,
        settings.feed, root)) -%}
  {%- if not pending and reader != table.staging -%}
    {%- if delta_cdc._source_names(reader, settings, staged.batch_id) -%}
      {%- set pending = [{'batch_id': staged.batch_id + 1, 'change_set': reader | string}] -%}
    {%- endif -%}
  {%- endif -%}
  {{ return('table ' ~ table.name ~ ': batch ' ~ pending[0].batch_id ~ ' ('
      ~ pending[0].change_set ~ ') is recorded and not loaded yet'
      ~ (', and the table is paused: end that first.' if settings.get('paused') else '.') if pending else '') }}
{% endmacro %}


{#- The lines of the change sets that a table loaded after a batch: {lines: a relation or none, gone:
    those that are no longer there}. -#}
{% macro _lines_of_later_sets(ledger, table, batch_id) %}
  {%- set settings = table.settings -%}
  {%- set raw = delta_cdc.progress(table.raw) if table.raw else none -%}
  {%- if raw and delta_cdc.withheld_until(raw, settings) <= batch_id -%}
    {#- also of a file that was rewritten since: raw has it as it was loaded -#}
    {{ return({'lines': delta_cdc._lines_of_table(table.raw, settings, batch_id) if raw.batch_id > batch_id else none,
        'gone': []}) }}
  {%- endif -%}
  {%- set root = delta_cdc.qualified_folder(settings) -%}
  {%- set sets = adapter.query_rows(delta_cdc._change_sets_above(ledger, batch_id, settings.feed, root, rewritten=true)) -%}
  {%- if not sets -%}{{ return({'lines': none, 'gone': []}) }}{%- endif -%}
  {%- set gone, there = adapter.changed_files(sets, settings.ready), {} -%}
  {%- for set in sets | rejectattr('batch_id', 'in', gone | map(attribute='batch_id') | list) -%}
    {%- do there.update({set.change_set: set}) -%}  {#- of records of one file that it is like, the newest -#}
  {%- endfor -%}
  {%- if not there -%}{{ return({'lines': none, 'gone': gone}) }}{%- endif -%}
  {{ return({'lines': delta_cdc.lines_of_files(table.staging.identifier ~ '__lines',
      there.values() | sort(attribute='batch_id'), settings), 'gone': gone}) }}
{% endmacro %}


{#- What staging does not take, by what operations left behind: older changes of erased keys, changes
    below the horizon of a compaction. -#}
{% macro _keep_out(settings, staging, state, evolved=none) %}
  {%- set rewrite = evolved.rewrite if evolved else [] -%}
  {%- set horizon = delta_cdc.horizon(state) -%}
  {%- set erased = state.properties.get('delta_cdc.erased') -%}
  {%- if rewrite and (horizon or erased) -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ rewrite | join(', ')
          ~ ' cannot change to the type that is configured: staging would have to be '
          ~ 'written anew, and it was compacted, or a person was erased from it. Put the type back, or add a column of that type by `expressions`.') -%}
  {%- endif -%}
  {%- if erased -%}
    {%- for key in settings['keys'] if evolved and key in evolved.widened
          and delta_cdc._scale_of(evolved.types[key]) != delta_cdc._scale_of(state.columns[key]) -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ key ~ ' was ' ~ state.columns[key]
            ~ ' and is now ' ~ evolved.types[key]
            ~ ', and a person was erased from it, who is known by the key as it was written: 1 would become 1.0. Put the type back.') -%}
    {%- endfor -%}
    {%- if settings.get('alternate_keys') -%}{%- do delta_cdc._refuse_alternate_keys(settings) -%}{%- endif -%}
    {%- do settings.update({'erased_in': staging}) -%}
  {%- endif -%}
  {%- do settings.update({'horizon': horizon}) -%}
{% endmacro %}


{#- How many digits a number has behind its point as JSON; of another type its name. -#}
{% macro _scale_of(type) %}
  {%- set found = modules.re.match(
        '(?i)\\s*(?:(byte|short|integer|long|(?:tiny|small|big)?int)|decimal\\s*\\(\\s*\\d+\\s*,\\s*(\\d+)\\s*\\))\\s*$',
        type | string) -%}
  {{ return(found.group(2) or '0' if found else type | string | lower) }}
{% endmacro %}


{#- The staging tables that exist: [{name, settings, staging, raw}]. names: of these models only, whatever their aliases are. -#}
{% macro _staging_tables(feed=none, names=none) %}
  {%- set out = [] -%}
  {%- for settings in delta_cdc._tables_to_look_at(feed, names) -%}
    {%- set table = delta_cdc._as_staged(settings) -%}
    {%- if table %}{% do out.append(table) %}{% endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- Their settings, also of those that do not exist. Where models are switched off nobody can tell whether theirs do: they are
    passed over, but for one feed, of which all is asked, that is an error. -#}
{% macro _tables_to_look_at(feed=none, names=none) %}
  {%- set out = [] -%}
  {%- for node in graph.sources.values() if delta_cdc._cdc_meta(node) is not none and feed in (none, node.source_name) -%}
    {%- set settings = delta_cdc._table_settings(node) -%}
    {%- if (names is none or delta_cdc.model_name(settings, 'staging') in names)
          and (feed is not none or delta_cdc._has_model(settings, 'staging')) -%}
      {%- do out.append(settings) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- The staging table of such settings, with what its state says of them; none if it does not exist. -#}
{% macro _as_staged(settings) %}
  {%- set staging = delta_cdc._model_of(settings, 'staging') -%}
  {%- set state = adapter.table_state(staging) -%}
  {%- if not state.exists %}{{ return(none) }}{% endif -%}
  {%- set progress = delta_cdc.progress(staging) -%}
  {%- do delta_cdc._refuse_other_rows(settings, progress) -%}
  {%- do delta_cdc.read_as_multiset(settings) -%}
  {%- set evolved = delta_cdc._staged_columns(settings, progress) -%}
  {%- do delta_cdc._note_key_fields(settings, delta_cdc._fields_of_key_before(settings, progress)) -%}
  {%- do settings.update({'spelled': delta_cdc._may_be_spelled_otherwise(settings, progress)}) -%}
  {%- do delta_cdc._keep_out(settings, staging, state) -%}
  {{ return({'grows': evolved.add + evolved.widen + evolved.rewrite,
      'compacted': state.properties.get('delta_cdc.compacted_batch', -1) | int,
      'name': settings.feed ~ '.' ~ settings.table, 'settings': settings, 'staging': staging,
      'raw': none if delta_cdc.reads_files(settings) else delta_cdc._model_of(settings, 'raw')}) }}
{% endmacro %}


{% macro _staging_table(staging) %}
  {%- do delta_cdc._model_relation(staging) -%}  {#- says so where there is no such model -#}
  {%- set table = delta_cdc._staging_tables(names=[staging]) | first -%}
  {%- if not table -%}
    {%- do exceptions.raise_compiler_error('There is no table ' ~ staging ~ ' yet: nothing was loaded. Run `dbt run` first.') -%}
  {%- endif -%}
  {{ return(table) }}
{% endmacro %}


{% macro _ledger() %}
  {%- set ledger = delta_cdc._model_relation('cdc_change_sets') -%}
  {%- if not adapter.table_state(ledger).exists -%}
    {%- do exceptions.raise_compiler_error('There is no ledger ' ~ ledger ~ ': nothing was loaded yet. Run `dbt run` first.') -%}
  {%- endif -%}
  {{ return(ledger) }}
{% endmacro %}


{#- The one record that a person names by path (its end, or all of it, with scheme and host or without), name or batch id. -#}
{% macro _named_change_set(ledger, given) %}
  {%- set given = given | string -%}
  {%- set text = delta_cdc.literal(given.rstrip('/')) -%}  {#- of a folder a shell puts a slash behind it -#}
  {%- set sets = '(select *, ' ~ delta_cdc._name_in('change_set') ~ ' as name from ' ~ ledger
        ~ " where unit in ('file', 'folder'))" -%}
  {%- set found = adapter.query_rows('select * from ' ~ sets ~ ' where change_set = ' ~ text
        ~ ' or endswith(change_set, concat(\'/\', ' ~ text ~ ')) or regexp_replace(change_set, \'^[^:/]+:(//[^/]*)?\', \'\') = '
        ~ text ~ ' or cast(batch_id as string) = ' ~ text ~ ' order by batch_id') -%}
  {%- if found | length == 1 -%}{{ return(found[0]) }}{%- endif -%}
  {%- set near = found or adapter.query_rows('select * from ' ~ sets
        ~ ' order by least(levenshtein(name, ' ~ text ~ '), levenshtein(change_set, ' ~ text ~ ')), batch_id desc limit 3') -%}
  {%- set which = [] -%}
  {%- for set in near -%}
    {%- do which.append(set.batch_id ~ ' (' ~ set.change_set ~ (', retracted' if set.status == 'retracted' else '') ~ ')') -%}
  {%- endfor -%}
  {%- if found -%}
    {%- do exceptions.raise_compiler_error('There are several change sets `' ~ given
          ~ '`. Give ' ~ ('the end of the path of one, with a slash in it: ' if given.isdecimal() else 'the batch id of one: ')
          ~ which | join(', ') ~ '.') -%}
  {%- elif near -%}
    {%- do exceptions.raise_compiler_error('There is no change set `' ~ given
          ~ '`. Nearest: ' ~ which | join(', ') ~ '. Give a path, a name or a batch id.') -%}
  {%- endif -%}
  {%- do exceptions.raise_compiler_error('There is no change set `' ~ given ~ '`: the ledger ' ~ ledger ~ ' is empty.') -%}
{% endmacro %}
