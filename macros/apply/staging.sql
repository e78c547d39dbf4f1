{#-
  stg_<feed>__<table>: every change of a source table, once, typed, with its place in the order (rules S2, O1, O4, P1, P3, Q1).
  A row that cannot be used stays, with `_cdc_error` and its raw text.
  source_table   the source, by source(feed, table)
  changes_from   the ledger (a feed with a folder a table) or raw_<feed> (a feed that mixes tables), by ref
-#}
{% macro staging(source_table, changes_from) %}
  {%- set settings = delta_cdc.settings(source_table) -%}
  {%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
  {%- do delta_cdc.refuse_sample([changes_from]) -%}
  {%- set state = delta_cdc.progress(this) -%}
  {%- do delta_cdc._refuse_restored(this, state) -%}
  {%- do delta_cdc._refuse_other_rows(settings, state) -%}
  {%- do delta_cdc._adopt_keys(settings, state) -%}
  {%- if state.notes.get('key_changes') and not settings.key_changes and delta_cdc.has_entities(settings) -%}
    {%- do delta_cdc._refuse_moved_keys(settings, state) -%}
  {%- endif -%}
  {%- do delta_cdc.read_as_multiset(settings) -%}
  {%- set evolved = delta_cdc._staged_columns(settings, state) -%}
  {%- do delta_cdc._keep_out(settings, this, state, evolved) -%}  {#- before a paused table is written anew for a type, too -#}
  {%- if state.exists -%}
    {%- do delta_cdc._note_renaming(settings, state) -%}
    {%- do delta_cdc._note_joining(settings, state, evolved) -%}
    {%- do delta_cdc._grow_rows_before(settings, state) -%}
    {%- do delta_cdc._widen_parts(settings, state) -%}
    {%- do delta_cdc._grow_structs(settings, state, evolved) -%}
  {%- endif -%}
  {%- if settings.get('alternate_keys') and state.exists -%}
    {%- do settings.update({'past': delta_cdc._staged_before(settings, this, state)}) -%}
  {%- endif -%}
  {%- if settings.get('paused') -%}
    {{ return(delta_cdc._staging_idle(settings, state, evolved,
        {'paused': settings.paused, 'message': 'PAUSED: ' ~ settings.paused})) }}
  {%- endif -%}
  {%- do delta_cdc._refuse_other_source(settings, changes_from) -%}
  {%- do delta_cdc._need_erase_secret(settings, state) -%}
  {%- do settings.update({'spelled': delta_cdc._may_be_spelled_otherwise(settings, state)}) -%}
  {%- set new = delta_cdc._new_lines(settings, changes_from, state) -%}
  {%- if new.last is none -%}
    {{ return(delta_cdc._staging_idle(settings, state, evolved)) }}
  {%- elif new.lines is none -%}
    {{ return(delta_cdc._staging_idle(settings, state, evolved,
        {'first_batch_id': state.batch_id + 1, 'last_batch_id': new.last, 'rows_read': 0})) }}
  {%- endif -%}
  {%- set last, lines = new.last, new.lines -%}

  {%- do delta_cdc._keep_changes(settings, lines) -%}
  {%- set plan = delta_cdc._staging_plan(settings, lines, state, last) -%}
  {%- if delta_cdc._is_spelled_otherwise(settings, plan.undeclared_columns) -%}
    {#- once more, with the columns that it had missed -#}
    {%- do settings.update({'spelled': true, 'kept_changes': none}) -%}
    {%- set lines = delta_cdc._new_lines(settings, changes_from, state).lines -%}
    {%- do delta_cdc._keep_changes(settings, lines) -%}
    {%- set plan = delta_cdc._staging_plan(settings, lines, state, last) -%}
  {%- endif -%}
  {%- if settings.spelled %}{% do plan.notes.update({'spelled': true}) %}{% endif -%}
  {%- do delta_cdc._refuse_other_times(settings, state, plan, evolved) -%}
  {%- do delta_cdc._tell_of_columns(settings, plan) -%}
  {%- do delta_cdc._tell_of_times(settings, plan) -%}
  {%- do delta_cdc._tell_of_source_names(settings, state, plan, changes_from) -%}
  {%- if state.notes.get('revised_in') -%}{%- do plan.notes.update({'revised_in': state.notes.revised_in}) -%}{%- endif -%}
  {%- if settings.get('erased_in') and plan.quarantined and not delta_cdc.reads_files(settings) -%}
    {%- do delta_cdc._erase_again_from_raw(settings, changes_from,
          delta_cdc._lines_of_table(changes_from | string, settings, state.batch_id)) -%}
  {%- endif -%}
  {%- if delta_cdc.may_be_held(settings) -%}
    {%- do delta_cdc.judge(settings, this, lines, state, plan) -%}
    {%- do plan.notes.update({'judged': true}) -%}
  {%- endif -%}
  {#- of the changes that are dropped, these are no late ones either -#}
  {%- set marked_before = adapter.query_rows(delta_cdc._marked_before(settings, lines, plan.repeated, this))[0].n
        if plan.late and plan.quarantined and state.notes.get('quarantined', false) and not evolved.rewrite else 0 -%}
  {%- set report = {'first_batch_id': state.batch_id + 1, 'last_batch_id': last, 'rows_read': plan.rows_read,
        'rows_late': plan.late, 'rows_repeated': plan.repeated + marked_before, 'rows_late_repeated': plan.late_repeated,
        'rows_quarantined': plan.quarantined, 'rows_with_undeclared_columns': plan.undeclared} -%}
  {%- do report.update(delta_cdc._rows_kept(this, evolved)) -%}
  {%- do adapter.plan_write(this, {
        'skip': plan.rows_read == 0 and not evolved.rewrite,
        'rebuild': evolved.rewrite | length > 0,
        'columns': evolved.types if evolved.add or evolved.widen else none,
        'txn': {'app_id': state.next_app_id if evolved.rewrite else state.app_id, 'version': last, 'after': state.committed},
        'notes': plan.notes,
        'report': report,
      }) -%}
  {%- set past = delta_cdc.may_be_repeated(this, state, plan) if state.exists and (plan.late or plan.quarantined) else none -%}
  {%- if adapter.tune_for([this] if past is not none or (state.exists and evolved.rewrite) else []) and past is not none -%}
    {%- set past = delta_cdc.at_positions_of('changes', past) -%}
  {%- endif -%}
  {%- if evolved.rewrite -%}
    {{ return(delta_cdc._staging_rewritten(settings, state, evolved, lines, plan.repeated, past)) }}
  {%- endif -%}
  {{ return(delta_cdc._staging_sql(settings, lines, plan.repeated, past)) }}
{% endmacro %}


{#- A model from before `mask`, `never_store` or `location` was changed reads where nothing is found for it any more: messages
    as if they were the ledger's change sets, of which none is the table's. -#}
{% macro _refuse_other_source(settings, changes_from) %}
  {%- set ledger = delta_cdc._model_relation('cdc_change_sets').identifier -%}
  {%- set reads_files = delta_cdc.reads_files(settings) -%}
  {%- if (changes_from.identifier == ledger) != reads_files -%}
    {%- set wanted = ledger if reads_files else delta_cdc.model_name(settings, 'raw') -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ 'its model reads ' ~ changes_from.identifier
          ~ ', and with these settings (`location`, `mask`, `never_store`) its changes come from ' ~ wanted
          ~ '. Nothing was loaded. Run `delta-cdc generate`.') -%}
  {%- endif -%}
{% endmacro %}


{#- What came for a table since: {last: the batch up to which, none: nothing came; lines: SQL of them,
    none: nothing of it is the table's}. -#}
{% macro _new_lines(settings, changes_from, state) %}
  {%- set raw = none if delta_cdc.reads_files(settings) else delta_cdc.progress(changes_from) -%}
  {#- what raw did not take while the table was private is read from the change sets themselves -#}
  {%- if raw is none or delta_cdc.withheld_until(raw, settings) > state.batch_id -%}
    {%- set pending = delta_cdc.pending_change_sets(changes_from if raw is none else delta_cdc._ledger(), settings,
          state.batch_id, beside_raw=not delta_cdc.has_own_files(settings)) -%}
    {%- if not pending %}{{ return({'last': none, 'lines': none}) }}{% endif -%}
    {%- set lines = delta_cdc.lines_of_files(this.identifier ~ '__lines', pending, settings) -%}
    {%- do delta_cdc.read_snapshots(settings, this, lines, pending, state) -%}
    {{ return({'last': pending[-1]['batch_id'], 'lines': lines}) }}
  {%- endif -%}
  {%- if raw.batch_id <= state.batch_id %}{{ return({'last': none, 'lines': none}) }}{% endif -%}
  {%- do settings.update({'reads_much': adapter.tune_for([changes_from] if not state.exists else [], rows=raw.rows)}) -%}
  {%- do settings.update({'kinds': raw.notes.get('kinds') if delta_cdc._kinds_macro(settings.format) else none,
        'source_names': delta_cdc._source_names(changes_from, settings, state.batch_id)}) -%}
  {{ return({'last': raw.batch_id,
      'lines': delta_cdc._lines_of_table(changes_from, settings, state.batch_id, raw.batch_id)
        if settings.source_names or not state.exists else none}) }}
{% endmacro %}


{#- Nothing new. A table that is created before anything arrived carries its progress too: without
    one it would be taken for restored. -#}
{% macro _staging_idle(settings, state, evolved, report=none) %}
  {%- set txn = {'app_id': state.next_app_id if evolved.rewrite else state.app_id, 'version': [state.committed, 0] | max} -%}
  {%- set notes = {'keys_may_move': false, 'truncates': false} -%}
  {%- do notes.update(state.notes if state.exists else delta_cdc._notes_of_rows(settings)) -%}
  {%- if report %}{% do report.update(delta_cdc._rows_kept(this, evolved)) %}{% endif -%}
  {%- do adapter.plan_write(this, {
        'skip': not evolved.rewrite, 'rebuild': evolved.rewrite | length > 0, 'report': report,
        'columns': evolved.types if evolved.add or evolved.widen else none,
        'txn': txn, 'notes': notes}) -%}
  {%- if evolved.rewrite -%}
    {{ return(delta_cdc._staging_rewritten(settings, state, evolved, delta_cdc._empty_raw())) }}
  {%- endif -%}
  {{ return(delta_cdc._nothing_new() if state.exists and not delta_cdc._only_reads()
      else delta_cdc._staging_sql(settings, delta_cdc._empty_raw())) }}
{% endmacro %}


{#- {rows_kept: how many rows staging has that are written anew for a type (E4)}: of the rows that Delta then counts as put in,
    these did not come now. evolved: of `_staged_columns`. -#}
{% macro _rows_kept(staging, evolved) %}
  {{ return({'rows_kept': delta_cdc._number_of(staging | string)} if evolved.rewrite else {}) }}
{% endmacro %}


{#- Whether a table's change sets hold nothing but its own changes. -#}
{% macro has_own_files(settings) %}
  {{ return('{table}' in settings.location or settings.format in delta_cdc._defaults()['formats_without_tables']) }}
{% endmacro %}

{#- Whether a table is read from the change sets themselves, and not from raw_<feed>: they are its own, or it is private. -#}
{% macro reads_files(settings) %}{{ return(delta_cdc.has_own_files(settings) or delta_cdc.is_private(settings)) }}{% endmacro %}

{#- The lines of such a table's change sets, by way of a temporary view. -#}
{% macro lines_of_files(view, change_sets, settings) %}
  {%- set lines = delta_cdc._lines_of_change_sets(view, change_sets, settings) -%}
  {#- of many lines a look at all takes longer than Spark with more SQL -#}
  {%- do settings.update({'kinds': none if settings.reads_much else delta_cdc.kinds_of_lines(settings, lines)}) -%}
  {{ return(lines if delta_cdc.has_own_files(settings)
      else delta_cdc._lines_of_table('(' ~ delta_cdc.format_tables(lines, settings) ~ ')', settings, -1)) }}
{% endmacro %}

{#- done, last: the batches above the one and up to the other; what another run puts into raw meanwhile is above `last`, and
    staged now it would be there twice. -#}
{% macro _lines_of_table(raw, settings, done, last=none) %}
  {#- what was retracted before this table came to it; what is retracted later is found staged. raw
      as text: with what was retracted -#}
  {%- set retracted = delta_cdc._retracted_batches(settings.feed) | select('>', done) | list if raw is not string else [] -%}
  {{ return('(select batch_id, change_set, row_number, message from ' ~ raw ~ ' where batch_id > ' ~ done
      ~ (' and batch_id <= ' ~ last if last is not none else '') ~ ' and ' ~ delta_cdc._is_of_table(settings)
      ~ (' and batch_id not in (' ~ retracted | join(', ') ~ ')' if retracted else '') ~ ')') }}
{% endmacro %}

{% macro _is_of_table(settings) %}
  {%- set name = delta_cdc.literal(settings.source_table) -%}
  {{ return('source_table = ' ~ name if '.' in settings.source_table else "split_part(source_table, '.', -1) = " ~ name) }}
{% endmacro %}

{#- Under which names a mixed feed has anything for this table above a batch: one query for all tables that have come equally
    far. -#}
{% macro _source_names(raw, settings, done) %}
  {%- set found, names = adapter.cached_query(raw,
        'select distinct source_table from ' ~ raw ~ ' where batch_id > ' ~ done ~ ' and source_table is not null'), [] -%}
  {%- for row in found if delta_cdc._is_named(settings, row['source_table']) -%}
    {%- do names.append(row['source_table']) -%}
  {%- endfor -%}
  {{ return(names) }}
{% endmacro %}

{#- Whether the messages of a name in a mixed feed are the table's: as `_is_of_table`. -#}
{% macro _is_named(settings, name) %}
  {%- set wanted = settings.source_table -%}
  {{ return(name == wanted or ('.' not in wanted and name.split('.')[-1] == wanted)) }}
{% endmacro %}

{#- Tells that a table which is named without its schema takes the messages of several; and where `source_table` has become
    another, that what came under that name before is not loaded: `cdc_quarantine` shows it no longer as of an unknown table. -#}
{% macro _tell_of_source_names(settings, state, plan, raw) %}
  {%- set known, new, names = state.notes.get('source_names', []), settings.get('source_names', []), [] -%}
  {%- for name in (known + new) | unique | sort if delta_cdc._is_named(settings, name) %}{% do names.append(name) %}{% endfor -%}
  {%- set fresh = new | reject('in', known) | list -%}
  {%- if names | length > 1 and fresh -%}
    {%- do exceptions.warn(delta_cdc.about_table(settings) ~ 'its messages are those of ' ~ names | join(' and ')
          ~ ', which it takes for one table. If they are several, give it the one that is meant, `source_table: ' ~ names[0]
          ~ '`, take back what came of the others (delta-cdc retract), and configure those as tables of their own.') -%}
  {%- endif -%}
  {%- if known and fresh -%}
    {%- set before = adapter.query_rows('select count(*) as n, max(batch_id) as last from ' ~ raw ~ ' where batch_id <= '
          ~ state.batch_id ~ ' and source_table in (' ~ delta_cdc._literals(fresh) ~ ')')[0] -%}
    {%- if before.n -%}
      {%- do exceptions.warn(delta_cdc.about_table(settings) ~ before.n ~ ' messages of ' ~ fresh | join(' and ')
            ~ ' came before the table took that name, in change sets up to batch ' ~ before.last ~ ', and are not loaded. ' ~ raw
            ~ ' has them; have these change sets delivered again, under other names.') -%}
    {%- endif -%}
  {%- endif -%}
  {%- if known or new %}{% do plan.notes.update({'source_names': (known + new) | unique | sort}) %}{% endif -%}
{% endmacro %}


{#- What the changes of one load are (`about_changes`), and the notes that the load's commit keeps for the next:
    highest        the highest position ever staged, as JSON, and its type: what is late is known without reading the table
    keys_may_move  whether any change staged so far may be part of a key change
    key_changes, split_key_changes  as they were set
    paired_until   the last batch that was loaded with `split_key_changes`: it stays when that is taken out
    truncates      whether any may be a truncate
    quarantined    whether any could not be used
    after          the batch that the commit before had come to: where this one brings no rows, nothing is new above that
    spelled        that the feed spells columns in another case than the table
    source_names   of a mixed feed: the names under which the table's messages came
    keys           the table's keys (K8), and how its rows are told apart and ordered (`_notes_of_rows`)
    Kept for history and final too, which ask the same of the same changes when they have come as far as staging had. -#}
{% macro _staging_plan(settings, lines, state, last) %}
  {%- set notes = state.notes -%}
  {%- if not state.exists -%}{%- set highest = none -%}
  {%- elif notes.highest -%}{%- set highest = delta_cdc.position_of(notes.highest, notes.highest_type) -%}
  {%- else -%}{%- set highest = delta_cdc.highest_position(this) -%}
  {%- endif -%}
  {%- if highest and settings.get('position_type') -%}
    {%- set highest = 'cast(' ~ highest ~ ' as ' ~ settings.position_type ~ ')' -%}
  {%- endif -%}
  {%- set about = delta_cdc.about_changes('changes', highest, to_stage=settings) -%}
  {%- set plan = adapter.query_rows('with ' ~ delta_cdc._staging_ctes(settings, lines) ~ about)[0] -%}
  {%- set can_be_noted = delta_cdc.can_be_noted(plan.highest_type, plan.highest) -%}
  {#- nobody looked whether what was staged before `split_key_changes` was given has pairs -#}
  {%- set paired_since = settings.get('split_key_changes') and notes.get('split_key_changes') is sameas false -%}
  {%- do plan.update({'notes': {
        'key_changes': settings.get('key_changes') or false,
        'split_key_changes': settings.get('split_key_changes') or false,
        'paired_until': last if settings.get('split_key_changes')
            else notes.get('paired_until', state.committed if notes.get('split_key_changes') else none),
        'highest': plan.highest if can_be_noted else none,
        'highest_type': plan.highest_type if can_be_noted else none,
        'keys_may_move': (state.exists and (notes.keys_may_move is not sameas false or paired_since)) or plan.keys_may_move,
        'truncates': (state.exists and notes.truncates is not sameas false) or plan.truncates > 0,
        'quarantined': (state.exists and notes.get('quarantined', false)) or plan.quarantined > 0,
        'after': state.committed}}) -%}
  {%- do plan.notes.update(delta_cdc._notes_of_rows(settings, state)) -%}
  {%- do adapter.remember(this ~ ' after ' ~ state.committed ~ ' to ' ~ last, plan) -%}
  {{ return(plan) }}
{% endmacro %}


{#- repeated: whether any two changes of the load are equal. past: the staged changes that any of
    the load may repeat, or none. beside: of the same change sets those that are not read again, or none. -#}
{% macro _staging_sql(settings, lines, repeated=false, past=none, beside=none) -%}
{%- set content = delta_cdc._content_columns(settings) -%}
{%- set has_key = delta_cdc.has_key(settings) -%}
with {{ delta_cdc._staging_ctes(settings, lines, told=true) }}
{%- if repeated %},
once as (  -- O4: the first of equal changes, and in one change set only what differs from the change directly before it
  select * from (
    select *,
      min(_cdc_batch_id) over (partition by {{ content | join(', ') }}) as _cdc_first_batch_id,
      {%- set at_place %} over (
        partition by _cdc_batch_id,
          {{ delta_cdc.comparables(settings, settings.get('keys') or settings.column_types) | join(', ') }},
          _cdc_sequence, _cdc_ordinal
        order by _cdc_row){% endset %}
      lag(struct({{ content | join(', ') }})){{ at_place }} as _cdc_change_before
      {%- if beside %},
      lag(_cdc_row){{ at_place }} as _cdc_row_before
      {%- endif %}
    from changes
  ) as _cdc_told
  where _cdc_batch_id = _cdc_first_batch_id
  {%- if not has_key %}
    or _cdc_sequence is null  -- where there is no position, no row is another one's copy
  {%- else %}
    and {{ '(' if beside }}not struct({{ content | join(', ') }}) <=> _cdc_change_before
    {%- if beside %}
      or exists (  -- another one stands between them
        select 1 from {{ beside }} as _cdc_beside
        where _cdc_beside._cdc_batch_id = _cdc_told._cdc_batch_id
          and _cdc_beside._cdc_row > _cdc_told._cdc_row_before and _cdc_beside._cdc_row < _cdc_told._cdc_row
          and {{ delta_cdc.same_columns(settings['keys'] + ['_cdc_sequence', '_cdc_ordinal'], '_cdc_beside', '_cdc_told') }}))
    {%- endif %}
  {%- endif %}
)
{%- endif %}
select {{ delta_cdc._staging_columns(settings) | join(', ') }}
from {{ 'once' if repeated else 'changes' }} as _cdc_new  {#- in a subquery a column named like it would come first #}
{%- if past is not none %}
where not exists (  -- only late and quarantined changes can have been staged before
  select 1 from {{ delta_cdc.staged_as_told(settings, past) }} as past
  where {% if not has_key %}_cdc_new._cdc_sequence is not null and {% endif %}
    {{- delta_cdc.same_content(settings, 'past', '_cdc_new') }}
)
{%- endif %}
{%- endmacro %}


{#- SQL: how many of a load's changes that cannot be used were staged before. staging: the table. -#}
{% macro _marked_before(settings, lines, repeated, staging) -%}
select count(*) as n from (
{{ delta_cdc._staging_sql(settings, lines, repeated) }}
) as _cdc_new
where _cdc_error is not null
{%- if not delta_cdc.has_key(settings) %} and _cdc_sequence is not null{% endif %}
  and exists (select 1 from {{ staging }} as past
    where past._cdc_error is not null and {{ delta_cdc.same_columns(delta_cdc._content_fields(), 'past', '_cdc_new') }})
{%- endmacro %}


{#- What makes two changes the same change: operation, key, old key, position, values, absent columns (O4). -#}
{% macro _content_columns(settings) %}
  {{ return(delta_cdc._content_fields() + ['sort_array(_cdc_missing)']
      + delta_cdc.comparables(settings, settings.column_types)) }}
{% endmacro %}

{% macro _content_fields() %}
  {{ return(['_cdc_op', '_cdc_key_before', '_cdc_sequence', '_cdc_ordinal', '_cdc_error', '_cdc_raw']) }}
{% endmacro %}

{#- Whether a staged change is a change that is to be staged; columns that are no longer listed are neither's.
    but: columns that are not looked at. -#}
{% macro same_content(settings, staged, new, but=[]) %}
  {%- set columns = settings.column_types.keys() | reject('in', but) | list -%}
  {%- set parts = [delta_cdc.same_columns(delta_cdc._content_fields(), staged, new)] -%}
  {%- do parts.append('sort_array(' ~ delta_cdc._missing_of(staged,
          but + delta_cdc._unlisted(settings, settings.get('staged_types') or {})) ~ ') <=> sort_array('
        ~ delta_cdc._missing_of(new, but) ~ ')') -%}
  {%- if columns %}{% do parts.append(delta_cdc.same_values(settings, columns, staged, new)) %}{% endif -%}
  {{ return(parts | join(' and ')) }}
{% endmacro %}

{% macro _missing_of(relation, but) %}
  {{ return('array_except(' ~ relation ~ '._cdc_missing, array(' ~ delta_cdc._literals(but) ~ '))'
      if but else relation ~ '._cdc_missing') }}
{% endmacro %}


{% macro _staging_columns(settings) %}
  {{ return(delta_cdc.all_quoted(settings.column_types)
      + ['_cdc_op', '_cdc_key_before', '_cdc_sequence', '_cdc_ordinal', '_cdc_transaction', '_cdc_occurred_at', '_cdc_missing',
      '_cdc_undeclared', '_cdc_error', '_cdc_raw', '_cdc_batch_id', '_cdc_change_set', '_cdc_row', '_cdc_staged_at']) }}
{% endmacro %}


{#- Lines become changes once, for what looks at them and for what stages them: to plan it a second time costs more than all that
    is done with a small change set. The statement that stages them has the SQL as a comment. -#}
{% macro _keep_changes(settings, lines) %}
  {%- set view = this.identifier ~ '__changes' -%}
  {%- set sql = 'with ' ~ delta_cdc._staging_ctes(settings, lines) ~ '\nselect * from changes' -%}
  {%- do adapter.create_kept_view(view, sql, small=not settings.get('reads_much')) -%}
  {%- do settings.update({'kept_changes': view, 'kept_sql': sql}) -%}
{% endmacro %}

{#- A kept view, and as a comment the SQL whose rows it has. -#}
{% macro kept_rows(view, sql) %}
  {{ return(delta_cdc.quoted(view) ~ ("  -- this run's rows of\n" ~ sql) | replace('\r', ' ') | replace('\n', '\n  -- ')) }}
{% endmacro %}

{#- The CTEs from lines to changes. told: with the SQL of those that are kept, as a comment. -#}
{% macro _staging_ctes(settings, lines, told=false) %}
  {%- if settings.get('kept_changes') -%}
    {{ return('changes as (\n  select * from ' ~ (delta_cdc.kept_rows(settings.kept_changes, settings.kept_sql) if told
          else delta_cdc.quoted(settings.kept_changes)) ~ '\n)') }}
  {%- endif -%}
  {{ return(delta_cdc.changes_of_snapshots(settings) if settings.get('snapshots') else delta_cdc._typed_ctes(settings, lines)) }}
{% endmacro %}
