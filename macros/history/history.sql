{#-
  hist_<feed>__<table> (SCD2): one row a version, by source time (rules H1 to H3).
  valid_from inclusive, valid_to exclusive, null = open.

  A view; with `history: table` a table that equals it: the versions at the keys that new changes touch are worked out again, and
  those that differ are merged (`_history_merged`). First build, a truncate, other columns, a table
  that somebody restored: all of it.
  source_table   the source, by source(feed, table)
  staging        stg_<feed>__<table>, by ref
  keys           int_<feed>__<table>_keys, by ref, where keys change; none: they do not
-#}
{% macro history(source_table, staging, keys=none) -%}
  {%- set settings = delta_cdc.settings(source_table) -%}
  {%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
  {%- do delta_cdc.refuse_sample([staging, keys]) -%}
  {%- do delta_cdc.refuse_without_keys(settings, keys) -%}
  {%- set staged = delta_cdc.progress(staging) -%}
  {%- set in_table = settings.get('history') == 'table' -%}
  {%- do delta_cdc.note_columns(settings, staged) -%}
  {%- set retired = delta_cdc._retired_columns(settings, staged.columns) -%}
  {%- if retired -%}
    {%- do delta_cdc._publish_retired(settings, retired, delta_cdc.progress(this).columns if in_table
          else adapter.view_columns(this)) -%}
  {%- endif -%}
  {#- a view keeps the types that it was made with, and a table those that it has: both are made anew when one is widened, also
      where it is not published, but an expression, or a version's time and position, is made of it -#}
  {%- set types, made_from = [], delta_cdc._made_from(settings, staged) -%}
  {%- for column in (settings['columns'] + made_from.keys() | list) | unique | list + ['_cdc_sequence', '_cdc_occurred_at']
        if column in staged.columns -%}
    {%- do types.append(column ~ ' ' ~ staged.columns[column]) -%}
  {%- endfor -%}
  {%- if not in_table -%}
    {%- do delta_cdc.refuse_before_staging(settings, staged) -%}
    {{ return(delta_cdc._history_rows(settings, delta_cdc.unheld(settings, staging), keys, types)) }}
  {%- endif -%}
  {%- set readable, state = delta_cdc.let_through(settings, staging), delta_cdc.progress(this) -%}
  {%- set made_of = delta_cdc.made_of(staging, readable.staged) -%}
  {%- if is_incremental() -%}
    {%- do delta_cdc._refuse_other_keys(settings, state) -%}
    {%- do delta_cdc.refuse_other_staging(settings, state, staging, readable.staged) -%}
  {%- endif -%}
  {%- do delta_cdc.refuse_before_staging(settings, readable.staged) -%}
  {%- set staging, staged = readable.staging, readable.staged -%}
  {%- set shape = settings['keys'] ~ ' with ' ~ types ~ settings['columns'] ~ ' by ' ~ settings['tracked'] ~ ', '
        ~ delta_cdc._shape(settings, ['set_on_insert', 'filled_by_field', 'expressions', 'renamed_in_staging']) -%}
  {%- set reshaped = is_incremental() and state.notes.get('shape') != shape -%}
  {%- set anew = not is_incremental() or reshaped -%}
  {%- set reached = delta_cdc.resolved_batch_id(keys, staged) -%}
  {%- if not anew and not state.rebuild and delta_cdc.nothing_to_do(staged, state, reached) -%}
    {%- do adapter.plan_write(this,
          {'skip': true, 'report': delta_cdc._looked_at(staged, state.batch_id, settings, readable.held)}) -%}
    {{ return(delta_cdc._history_rows(settings, staging, keys) if delta_cdc._only_reads() else delta_cdc._nothing_new()) }}
  {%- endif -%}
  {%- set plan = delta_cdc.plan_of_load(settings, staging, keys, state, staged, anew, reached) -%}
  {%- set keys = plan['keys'] -%}
  {%- set report = delta_cdc.held_report(settings, readable.held) -%}
  {%- do report.update({'first_batch_id': state.batch_id + 1, 'last_batch_id': staged.committed, 'rows_read': plan.changes,
        'mode': plan.mode, 'resolved_batch_id': reached}) -%}
  {%- if not plan.skip %}{% do delta_cdc.gain_deletion_vectors(settings, state) %}{% endif -%}
  {%- set notes = {'keys': settings['keys'], 'shape': shape, 'resolved_batch_id': reached,
        'after': -1 if plan.mode == 'rebuild' else state.batch_id, 'made_of': made_of} -%}
  {%- do notes.update(delta_cdc.note_of_revision(staged)) -%}
  {%- do adapter.plan_write(this, {
        'skip': plan.skip,
        'rebuild': reshaped,
        'delete_unmatched': plan.mode == 'rebuild',
        'txn': delta_cdc.transaction(state, staged, plan.mode == 'rebuild'),
        'notes': notes,
        'report': report,
      }) -%}
  {%- if anew -%}{{ return(delta_cdc._history_rows(settings, staging, keys)) }}{%- endif -%}
  {{ return(delta_cdc._history_merged(settings, staging, keys,
      none if plan.mode == 'rebuild' else state.batch_id, plan.revised)) }}
{%- endmacro %}


{#- Every version, from all of staging. types: those of the columns, for a comment: with others it is another view. -#}
{% macro _history_rows(settings, staging, keys, types=[]) -%}
with {% if types %} -- {{ types | join(', ') | replace('\r', ' ') | replace('\n', ' ') }}
{% endif %}changes as (
{{ delta_cdc.changes_of_entities(settings, staging, keys) }}
),
{{ delta_cdc._spans(settings, staging) }}
select {{ delta_cdc._history_columns(settings) }}
from spans
where not _cdc_ends
{%- endmacro %}


{#- What a merge needs: the versions at the touched keys as they are now, and (`_cdc_is_gone`) those that are no more.
    done: the batches that the table has; none: all versions, and the merge removes what is not among them. -#}
{% macro _history_merged(settings, staging, keys, done, revised) -%}
{%- if done is none -%}
select *, false as _cdc_is_gone from (
{{ delta_cdc._history_rows(settings, staging, keys) }}
)
{%- else -%}
with {{ delta_cdc.at_touched_keys(settings, staging, keys, done, revised) }},
changes as (
{{ delta_cdc.changes_of_entities(settings, 'at_touched_keys', keys) }}
),
{{ delta_cdc._spans(settings, staging) }},
history as (
  select {{ delta_cdc._history_columns(settings) }}
  from spans
  where not _cdc_ends
)
select * except (_cdc_is_no_more) from (  -- history is read once: a second reading would cost all of it once more
  select *, every(_cdc_is_gone) over (partition by _cdc_entity, valid_from) as _cdc_is_no_more from (
    select *, false as _cdc_is_gone from history
    union all
    select {{ delta_cdc._history_columns(settings, of_table=true) }}, true
    from {{ this }} as _cdc_past
    left semi join touched_keys on {{ delta_cdc.same_columns(settings['keys'], '_cdc_past', 'touched_keys') }}
  )
)
where not _cdc_is_gone or _cdc_is_no_more
{%- endif -%}
{%- endmacro %}


{% macro _history_columns(settings, of_table=false) -%}
{{ delta_cdc.column_list(settings['columns']) }}, _cdc_entity
{%- if of_table %}, valid_from, valid_to, is_current, _cdc_sequence
{%- else %}, _cdc_began as valid_from, _cdc_ended as valid_to, _cdc_is_last as is_current, _cdc_sequence
{%- endif -%}
{%- endmacro %}


{#- The CTE `with_truncates`, of `states`: also the truncate that ends what lives below it, with an entity's newest values. What
    `states` costs is paid once: a union of two readings of it would be paid twice. -#}
{% macro with_truncates() -%}
{%- set order = delta_cdc.order_columns() -%}
{%- set changed = ['_cdc_after'] + order + ['_cdc_occurred_at', '_cdc_ends'] -%}
{%- set of_truncate = [] -%}
{%- for column in order + ['_cdc_occurred_at'] -%}
  {%- do of_truncate.append('_cdc_truncates[_cdc_epoch].' ~ column ~ ' as ' ~ column) -%}
{%- endfor -%}
with_truncates as (  -- each state, and after the newest of a row that a truncate ends, that truncate
  select * except ({{ changed | join(', ') }}, _cdc_newest_first), inline(array_compact(array(
      struct({{ changed | join(', ') }}, false as _cdc_is_truncate),
      if(_cdc_newest_first = 1 and _cdc_epoch < size(_cdc_truncates),
        struct(1 as _cdc_after, {{ of_truncate | join(', ') }}, true as _cdc_ends, true as _cdc_is_truncate), null))))
      as ({{ changed | join(', ') }}, _cdc_is_truncate)
  from (
    select *, row_number()
      over (partition by _cdc_entity, _cdc_epoch order by {{ delta_cdc.order_of_states('desc') }}) as _cdc_newest_first
    from states
  )
)
{%- endmacro %}


{#- The CTEs from `changes` to `spans`: the versions, and the gaps between them (_cdc_ends). -#}
{% macro _spans(settings, staging) -%}
{%- set tracked = settings['tracked'] + (settings['keys'] | reject('in', settings['tracked']) | list) -%}
{{ delta_cdc.entity_states(settings, staging) }},
{{ delta_cdc.with_truncates() }},
timed as (  -- source time never runs backwards along the order
  select *,
    max(_cdc_occurred_at) over (
      partition by _cdc_entity order by {{ delta_cdc.order_of_states() }}
      rows between unbounded preceding and current row) as _cdc_time,
    count_if(_cdc_ends) over (
      partition by _cdc_entity order by {{ delta_cdc.order_of_states() }}
      rows between unbounded preceding and 1 preceding) as _cdc_lives_before
  from with_truncates
),
moments as (  -- of several states at one moment the last one counts: a version of zero length is none
  select * except (_cdc_newest_first) from (
    select *, row_number() over (
      partition by _cdc_entity, _cdc_time order by {{ delta_cdc.order_of_states('desc') }}) as _cdc_newest_first
    from timed
  ) where _cdc_newest_first = 1
),
marked as (  -- where what is tracked differs from the state before, a version begins, and with each life
  select *,
    if(_cdc_ends, null, struct({{ delta_cdc.comparables(settings, tracked) | join(', ') }}))
        is distinct from
        lag(if(_cdc_ends, null, struct({{ delta_cdc.comparables(settings, tracked) | join(', ') }}))) over entity
      or _cdc_lives_before is distinct from lag(_cdc_lives_before) over entity as _cdc_begins
  from moments
  window entity as (partition by _cdc_entity order by {{ delta_cdc.order_of_states() }})
),
numbered as (
  select *, count_if(_cdc_begins) over (
    partition by _cdc_entity order by {{ delta_cdc.order_of_states() }}
    rows between unbounded preceding and current row) as _cdc_version
  from marked
),
versions as (
  select *, first_value(_cdc_time) over version_in_order as _cdc_began,
    row_number()
      over (partition by _cdc_entity, _cdc_version order by {{ delta_cdc.order_of_states('desc') }}) as _cdc_newest_first
  from numbered
  window version_in_order as (partition by _cdc_entity, _cdc_version order by {{ delta_cdc.order_of_states() }}
    rows between unbounded preceding and unbounded following)
),
spans as (
  select *, lead(_cdc_began) over (partition by _cdc_entity order by _cdc_version) as _cdc_ended,
    lead(_cdc_version) over (partition by _cdc_entity order by _cdc_version) is null as _cdc_is_last
  from versions where _cdc_newest_first = 1
)
{%- endmacro %}
