{#-
  final_<table> (SCD1): the live rows, one a key. Rank by the order, keep the first, drop deletes (rules A1 to A10).

  What one run has to do is looked up first (`plan_of_load`) and decides which SQL is made:
    on time   every new change is above all that was staged before: only the new changes are read (A5); what a partial image
              leaves open is taken from the live row
    late      a change is late, or a key change is involved: the touched keys are worked out again from staging
    rebuild   first build, full refresh, a truncate, other settings of final's shape, or a table that somebody restored: all of
              staging (A4, S8)
  source_table   the source, by source(feed, table)
  staging        stg_<feed>__<table>, by ref
  keys           int_<feed>__<table>_keys, by ref, where keys change; none: they do not
-#}
{% macro final(source_table, staging, keys=none) -%}
  {%- set settings = delta_cdc.settings(source_table) -%}
  {%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
  {%- do delta_cdc.refuse_sample([staging, keys]) -%}
  {%- do delta_cdc.refuse_without_keys(settings, keys) -%}
  {%- set state = delta_cdc.progress(this) -%}
  {%- set readable = delta_cdc.let_through(settings, staging) -%}
  {%- set made_of = delta_cdc.made_of(staging, readable.staged) -%}
  {%- if is_incremental() -%}
    {%- do delta_cdc._refuse_other_keys(settings, state) -%}
    {%- do delta_cdc.refuse_other_staging(settings, state, staging, readable.staged) -%}
  {%- endif -%}
  {%- do delta_cdc.refuse_before_staging(settings, readable.staged) -%}
  {%- set staging, staged = readable.staging, readable.staged -%}
  {%- set evolution = delta_cdc._final_evolution(settings, staging, staged, state) -%}
  {%- if settings.surrogate == 'hash' %}{% do delta_cdc.note_surrogate(settings) %}{% endif -%}
  {%- set reshaped = evolution.rebuild
        or (is_incremental() and state.notes.get('shape') != delta_cdc._shape_of_final(settings)) -%}
  {%- set anew = not is_incremental() or reshaped -%}
  {%- set reached = delta_cdc.resolved_batch_id(keys, staged) -%}
  {%- if not anew and not state.rebuild and not evolution.backfill and delta_cdc.nothing_to_do(staged, state, reached) -%}
    {%- if evolution.new %}{% do delta_cdc._note_filled(state, evolution.new) %}{% endif -%}
    {%- do adapter.plan_write(this, {
          'skip': true, 'columns': evolution.columns,
          'report': delta_cdc._looked_at(staged, state.batch_id, settings, readable.held)}) -%}
    {{ return(delta_cdc._final_rows(settings, staging, keys) if delta_cdc._only_reads() else delta_cdc._nothing_new()) }}
  {%- endif -%}

  {%- set plan = delta_cdc.plan_of_load(settings, staging, keys, state, staged, anew or evolution.backfill, reached) -%}
  {%- set keys = plan['keys'] -%}
  {%- if plan.plain or (plan.mode == 'on_time' and settings.keyless == 'none') -%}
    {%- set staging = delta_cdc.newly_staged(staging, staged, -1 if anew else state.batch_id) -%}
  {%- endif -%}
  {%- if (delta_cdc.is_appended(settings) or settings.keyless == 'multiset') and staged.committed >= 0 -%}
    {#- what another run stages meanwhile has a batch above this transaction's: taken now, it would be appended once more. How far
        staging has come is not known where somebody else restored it -#}
    {%- set staging = '(select * from ' ~ staging ~ ' where _cdc_batch_id <= ' ~ staged.committed ~ ')' -%}
  {%- endif -%}
  {%- set notes = delta_cdc._final_notes(settings, staged, reached, -1 if plan.mode == 'rebuild' else state.batch_id) -%}
  {%- do notes.update({'made_of': made_of}) -%}
  {%- set options = {
        'skip': plan.skip,
        'rebuild': reshaped,
        'columns': evolution.columns,
        'txn': delta_cdc.transaction(state, staged, plan.mode == 'rebuild'),
        'notes': notes,
        'report': {'first_batch_id': state.batch_id + 1, 'last_batch_id': staged.committed,
          'rows_read': plan.changes, 'mode': plan.mode, 'resolved_batch_id': reached},
      } -%}

  {%- if delta_cdc.is_appended(settings) -%}
    {%- do options.update({'rebuild': state.exists and plan.mode == 'rebuild'}) -%}
    {%- set sql = delta_cdc._final_appended(settings, staging, -1 if plan.mode == 'rebuild' else state.batch_id) -%}
  {%- elif settings.keyless == 'multiset' and settings.surrogate == 'none' -%}
    {%- set only_more = plan.mode == 'on_time' and not plan.removals -%}
    {%- do options.update({'rebuild': state.exists and not only_more}) -%}
    {%- set sql = delta_cdc._final_appended(settings, staging, state.batch_id)
          if only_more else delta_cdc._final_rows(settings, staging, none) -%}
  {%- elif anew -%}
    {%- set sql = delta_cdc._first_rows(settings, staging) if plan.plain else delta_cdc._final_rows(settings, staging, keys) -%}
  {%- elif settings.apply == 'replace_partitions' -%}
    {%- set sql = delta_cdc._partitions_replaced(settings, staging, keys, state, plan, evolution, options) -%}
  {%- else -%}
    {%- do options.update({'delete_unmatched': plan.mode == 'rebuild', 'narrow': plan.mode != 'rebuild'}) -%}
    {%- set sql = delta_cdc._winners(settings, staging, keys, state, plan) -%}
  {%- endif -%}
  {%- do options.report.update(delta_cdc.held_report(settings, readable.held)) -%}
  {%- if not options.skip %}{% do delta_cdc.gain_deletion_vectors(settings, state) %}{% endif -%}
  {%- do adapter.plan_write(this, options) -%}
  {{ return(sql) }}
{%- endmacro %}


{#- How final, or history as a table, is brought up to date: what `_plan_of_changes` says, and keys: the keys table, none: no key
    has changed so far, each is its own entity. Spark is set for it. reached: `resolved_batch_id`. -#}
{% macro plan_of_load(settings, staging, keys, state, staged, anew, reached) %}
  {%- set keys = none if staged.notes.keys_may_move is sameas false else keys -%}
  {%- if staged.notes.truncates is sameas false %}{% do settings.update({'may_be_truncated': false}) %}{% endif -%}
  {%- set plan = delta_cdc._plan_of_changes(settings, staging, keys, state, staged, anew, reached) -%}
  {%- do plan.update({'keys': keys}) -%}
  {%- if not plan.skip %}{% do delta_cdc._tune_for_load(this, staging, state, plan) %}{% endif -%}
  {{ return(plan) }}
{% endmacro %}


{#- What is read: the table that is written, and all of staging, unless the new changes are enough. staging: its
    relation, or what stands for it (Q4). -#}
{% macro _tune_for_load(target, staging, state, plan) %}
  {%- set read = [] -%}
  {%- if state.exists -%}{%- do read.append(target) -%}{%- endif -%}
  {%- if plan.mode != 'on_time' and staging.identifier -%}{%- do read.append(staging) -%}{%- endif -%}
  {%- do adapter.tune_for(read, rows=plan.changes) -%}
{% endmacro %}


{#- How far the keys table had come, where keys may move; none elsewhere. -#}
{% macro resolved_batch_id(keys, staged) %}
  {%- if keys is none or staged.notes.keys_may_move is sameas false %}{{ return(none) }}{% endif -%}
  {%- set reached = adapter.table_state(keys).txn_version -%}
  {{ return(-1 if reached is none else reached) }}
{% endmacro %}

{#- Whether the keys table has been brought up to date since a table was made of it: somebody had run without the keys model. -#}
{% macro resolved_since(reached, state) %}
  {%- set then = state.notes.get('resolved_batch_id') -%}
  {{ return(reached is not none and then is not none and reached > [then, state.resolved] | max) }}
{% endmacro %}


{#- Whether a table holds all that staging and the keys table hold, as they hold it now. -#}
{% macro nothing_to_do(staged, state, reached) %}
  {{ return(delta_cdc.nothing_new(staged, state.batch_id) and not delta_cdc.resolved_since(reached, state)
      and not delta_cdc.revised_since(staged, state)) }}
{% endmacro %}


{#- The transaction of a write that brings a table as far as staging is. What is made good without new changes is another
    application's: Delta would take it for done. -#}
{% macro transaction(state, staged, anew) %}
  {%- set again = state.exists and staged.committed <= state.committed -%}
  {{ return({'app_id': state.next_app_id if anew or again else state.app_id, 'version': [staged.committed, 0] | max,
      'after': state.committed}) }}
{% endmacro %}


{#- What stands for staging where only its changes above a batch are wanted: a view of the newest commit's
    rows, if they all came with that. -#}
{% macro newly_staged(staging, staged, done) %}
  {%- set view = staging.identifier ~ '__newest' -%}
  {%- set came_at_once = staging.identifier and staged.notes.get('after', staged.committed) <= done -%}
  {{ return(view
      if came_at_once and adapter.create_view_of_commit(view, staging, staged.app_id, staged.committed) else staging) }}
{% endmacro %}


{% macro _shape_of_final(settings) %}
  {{ return(delta_cdc._shape(settings,
      delta_cdc._settings_of_life() + ['insert_only', 'keyless', 'partition_by', 'filled_by_field'])) }}
{% endmacro %}

{#- What final's commits say it was built with. after: the batch above which the load took changes; -1: it took all. -#}
{% macro _final_notes(settings, staged, resolved_batch_id, after) %}
  {%- set notes = {'columns': settings['columns'], 'after': after} -%}
  {%- do notes.update(delta_cdc.note_of_revision(staged)) -%}
  {%- if resolved_batch_id is not none %}{% do notes.update({'resolved_batch_id': resolved_batch_id}) %}{% endif -%}
  {%- if settings.get('keys') %}{% do notes.update({'keys': settings['keys']}) %}{% endif -%}
  {%- if delta_cdc._shape_of_final(settings) %}{% do notes.update({'shape': delta_cdc._shape_of_final(settings)}) %}{% endif -%}
  {%- if settings.get('expressions') -%}
    {%- do notes.update({'expressions': settings.expressions, 'made_from': delta_cdc._made_from(settings, staged)}) -%}
  {%- endif -%}
  {{ return(notes) }}
{% endmacro %}


{#- {mode: on_time | late | rebuild, changes: how many, or none, removals, partial, revised: whether there are any, skip, plain:
    whether all that staging holds came in this run and each change says all of its row}, from what staging found out of the new
    changes; asked again where that is not known. -#}
{% macro _plan_of_changes(settings, staging, keys, state, staged, anew, reached) %}
  {%- set by_field = (settings.get('filled_by_field') or []) | length > 0 -%}
  {%- if anew or state.rebuild -%}
    {%- set found = adapter.recall(staging ~ ' after -1 to ' ~ staged.committed) -%}
    {{ return({'mode': 'rebuild', 'changes': none, 'skip': false, 'revised': false,
        'plain': found is not none and keys is none and settings.keyless == 'none'
          and not found.truncates and not found.partial and not (by_field and found.removals)
          and not delta_cdc._continues(settings)}) }}
  {%- endif -%}
  {%- set revised = delta_cdc.revised_since(staged, state) -%}
  {%- set found = adapter.recall(staging ~ ' after ' ~ state.batch_id ~ ' to ' ~ staged.committed) -%}
  {%- if found is none -%}
    {%- set new = '(select * from ' ~ delta_cdc.staged_rows(settings, staging)
          ~ ' where _cdc_batch_id > ' ~ state.batch_id ~ (' or _cdc_revised_in > ' ~ state.batch_id if revised else '') ~ ')' -%}
    {%- set found = adapter.query_rows(delta_cdc.about_changes(new, delta_cdc.highest_position(staging, state.batch_id)))[0] -%}
  {%- endif -%}
  {#- the keys model commits only what it resolved anew -#}
  {%- set caught_up = delta_cdc.resolved_since(reached, state) -%}
  {%- set resolved = caught_up or (reached is not none and reached > state.batch_id) -%}
  {%- if found.truncates > 0 or (revised and delta_cdc._revision_wants_rebuild(settings, staging, state.batch_id)) -%}
    {%- set mode = 'rebuild' -%}
  {%- elif found.late > 0 or resolved or revised or (by_field and found.partial + found.removals > 0)
        or (settings.get('expressions') and (found.partial > 0 or delta_cdc._shape(settings, delta_cdc._settings_of_life()))) -%}
    {%- set mode = 'late' -%}
  {%- else -%}{%- set mode = 'on_time' -%}
  {%- endif -%}
  {%- set has_values = settings['columns'] | reject('in', settings['keys']) | list | length > 0 -%}
  {{ return({'mode': mode, 'revised': revised, 'changes': found.rows_read - found.quarantined, 'removals': found.removals,
      'partial': found.partial > 0 and has_values,
             'skip': found.rows_read == found.quarantined and not revised and not caught_up}) }}
{% endmacro %}


{#- Every row of final, where staging holds whole images alone (`plan.plain`): the newest change of each key is its row. -#}
{% macro _first_rows(settings, staging) -%}
select * except (_cdc_is_gone) from (
{{ delta_cdc._winners_on_time(settings, staging, -1, partial=false) }}
)
where not _cdc_is_gone
{%- endmacro %}


{#- Every row of final, from all of staging. -#}
{% macro _final_rows(settings, staging, keys) -%}
{%- if delta_cdc.is_appended(settings) -%}
{{ delta_cdc._final_appended(settings, staging, -1) }}
{%- elif settings.keyless == 'multiset' -%}
select * except (_cdc_is_gone) from (
{{ delta_cdc.multiset_rows(settings, staging) }}
)
where not _cdc_is_gone
{%- else -%}
with changes as (
{{ delta_cdc.changes_of_entities(settings, staging, keys) }}
),
{{ delta_cdc._present(settings, staging) }}
select {{ delta_cdc._final_select(settings) }}
from present
{%- endif -%}
{%- endmacro %}


{#- done: the batches that final has; -1: none. -#}
{% macro _final_appended(settings, staging, done) -%}
{%- set rows = delta_cdc.staged_rows(settings, staging) -%}
{%- set inserts = "_cdc_error is null and _cdc_op in ('I', 'R')" -%}
{%- if settings.surrogate == 'hash' -%}
  {%- set values = delta_cdc._values_of_multiset(settings) -%}
  {%- set numbered -%}
(
  select *, {{ delta_cdc._surrogate(values) }} as _cdc_key
  from (
    select *, row_number() over (
      partition by {{ delta_cdc.column_list(values) }} order by _cdc_batch_id, _cdc_row) as _cdc_occurrence
    from {{ rows }} as _cdc_staged
    {%- if done >= 0 %}  {#- of the rows of before those that are equal to a new one are counted, and no others #}
    left semi join (select {{ delta_cdc.column_list(values) }} from {{ rows }} where _cdc_batch_id > {{ done }} and {{ inserts }})
      as _cdc_new on {{ delta_cdc.same_columns(values, '_cdc_new', '_cdc_staged') }}
    {%- endif %}
    where {{ inserts }}
  )
)
  {%- endset -%}
  {%- set rows = numbered -%}
{%- endif -%}
select {{ delta_cdc._final_select(settings) }}
from {{ delta_cdc._with_made(settings, rows, delta_cdc._unlisted_there(settings)) }}
where {{ inserts }} and _cdc_batch_id > {{ done }}
{%- endmacro %}


{#- What a merge needs: one row for each touched key, to be written or (`_cdc_is_gone`) removed. lacking: {column: type} of what
    final is about to gain, and has not got yet where it is looked at. -#}
{% macro _winners(settings, staging, keys, state, plan, lacking={}) -%}
{%- if settings.keyless == 'multiset' -%}
{{ delta_cdc.multiset_rows(settings, staging, none if plan.mode == 'rebuild' else state.batch_id) }}
{%- elif plan.mode == 'rebuild' -%}
select *, false as _cdc_is_gone from (
{{ delta_cdc._final_rows(settings, staging, keys) }}
)
{%- elif plan.mode == 'late' -%}
{{ delta_cdc._winners_late(settings, staging, keys, state.batch_id, plan.revised) }}
{%- else -%}
{{ delta_cdc._winners_on_time(settings, staging, state.batch_id, plan.partial, lacking) }}
{%- endif -%}
{%- endmacro %}


{% macro _winners_on_time(settings, staging, done, partial, lacking={}) -%}
{%- set keys = settings['keys'] -%}
{%- set values = settings['columns'] | reject('in', keys) | list -%}
{%- set soft = settings.get('delete_mode') == 'soft' -%}
{%- set continues = partial or delta_cdc._continues(settings) -%}
with new_changes as ({{ '  -- of what staging\'s newest commit put in' if staging is string and staging.endswith('__newest') }}
  select *, _cdc_op = 'D' as _cdc_ends
  from {{ delta_cdc.staged_rows(settings, staging) }}
  where _cdc_batch_id > {{ done }} and _cdc_error is null
),
{%- if continues %}
lives as (
  select *, count_if(_cdc_ends) over (
    partition by {{ delta_cdc.column_list(keys) }}
      order by {{ delta_cdc.order_by() }} rows between unbounded preceding and 1 preceding) as _cdc_life
  from new_changes
),
states as (  -- partial images fold: an absent column keeps the value that the last change gave it
  select *{% if values %} except ({{ delta_cdc.column_list(values) }}){% endif %}
  {%- for name, sql in delta_cdc._of_life(settings).items() %},
    {{ sql }} as {{ name }}
  {%- endfor %}
  {%- for column in values %},
    {{ delta_cdc.folded(settings, column) }} as {{ delta_cdc.quoted(column) }}
  {%- endfor %}
  from lives
  window life as (
    partition by {{ delta_cdc.column_list(keys) }}, _cdc_life
      order by {{ delta_cdc.order_by() }} rows between unbounded preceding and current row)
),
{%- endif %}
ranked as (
  select *, row_number()
    over (partition by {{ delta_cdc.column_list(keys) }} order by {{ delta_cdc.order_by('desc') }}) as _cdc_newest_first
  from {{ 'states' if continues else 'new_changes' }}
{%- if soft %}
  where _cdc_lived or _cdc_life = 0  -- what is deleted already is not deleted again
{%- endif %}
),
{%- if continues %}
winners as (
{{ delta_cdc._continued(settings, staging, done, values, soft, lacking) }}
)
{%- else %}
winners as (
  select *{{ ', _cdc_occurred_at as _cdc_updated_at' if settings.get('updated_at') }} from ranked where _cdc_newest_first = 1
)
{%- endif %}
select {{ delta_cdc._final_select(settings) }}, {{ '_cdc_is_gone' if soft else '_cdc_ends as _cdc_is_gone' }}
from {{ delta_cdc._with_made(settings, 'winners', delta_cdc._unlisted_there(settings)) }}
{%- endmacro %}


{#- Whether a row of final depends on more than the newest whole image of its key. -#}
{% macro _continues(settings) %}
  {{ return(settings.get('delete_mode') == 'soft' or settings.get('created_at') is not none
      or (settings.get('set_on_insert') or []) | length > 0) }}
{% endmacro %}


{#- The columns that final is about to gain, as it has them so far. -#}
{% macro _as_nulls(lacking) -%}
{%- for column, type in lacking.items() %},
  cast(null as {{ type }}) as {{ delta_cdc.quoted(column) }}
{%- endfor -%}
{%- endmacro %}


{#- What the new changes leave open is as it was in final's row, unless a delete came between. -#}
{% macro _continued(settings, staging, done, values, soft, lacking) -%}
{%- set keys = settings['keys'] -%}
{%- set new_keys = 'select ' ~ delta_cdc.column_list(keys) ~ ' from ' ~ staging
      ~ ' where _cdc_error is null and _cdc_batch_id > ' ~ done -%}
{%- set first = settings.get('set_on_insert') or [] -%}
{%- set goes_on = 'r._cdc_life = 0' ~ (' and not live._cdc_is_deleted' if soft else '') -%}
  select
    {{ delta_cdc.column_list(keys, 'r.') }}, r._cdc_ends, r._cdc_occurred_at, r.{{ delta_cdc.order_columns() | join(', r.') }}
  {%- for column in values %}
    {%- set name = delta_cdc.quoted(column) %},
    {% if soft and settings.get('soft_delete_nulls') %}if(r._cdc_ends, null, {% endif -%}
    if({{ goes_on }} and {{ 'live._cdc_is_there' if column in first else 'r.' ~ name ~ ' is null' }},
      live.{{ name }}, r.{{ name }}.{{ name }})
    {%- if soft and settings.get('soft_delete_nulls') %}){% endif %} as {{ name }}
  {%- endfor %}
  {%- if settings.get('created_at') %},
    if({{ goes_on }} and live._cdc_is_there,
      live.{{ delta_cdc.quoted(settings.created_at) }}, r._cdc_created_at) as _cdc_created_at
  {%- endif %}
  {%- if settings.get('updated_at') %},
    {{ 'if(r._cdc_lived, r._cdc_updated_at, live.' ~ delta_cdc.quoted(settings.updated_at) ~ ') as _cdc_updated_at'
        if soft else 'r._cdc_updated_at' }}
  {%- endif %}
  {%- if soft %},
    r._cdc_ends as _cdc_is_deleted,
    if(r._cdc_ends, r._cdc_occurred_at, null) as _cdc_deleted_at,
    not r._cdc_lived and live._cdc_is_there is null as _cdc_is_gone
  {%- endif %}
  from ranked as r
  left join (select *{{ delta_cdc._as_nulls(lacking) }}, true as _cdc_is_there
    from {{ delta_cdc.rows_at(this, new_keys, keys) }}) as live on {{ delta_cdc.same_columns(keys, 'live', 'r') }}
  where r._cdc_newest_first = 1
  {%- if soft %}
    and (r._cdc_lived or not coalesce(live._cdc_is_deleted, false))  -- a row that is deleted already stays as it is
  {%- endif %}
{%- endmacro %}


{#- The touched keys, worked out again from all of staging's changes at them. Where key changes are involved, all keys that were
    ever part of one are: few, for most keys never change. -#}
{% macro _winners_late(settings, staging, keys_table, done, revised=false) -%}
{%- set keys = settings['keys'] -%}
with {{ delta_cdc.at_touched_keys(settings, staging, keys_table, done, revised) }},
changes as (
{{ delta_cdc.changes_of_entities(settings, 'at_touched_keys', keys_table) }}
),
{{ delta_cdc._present(settings, staging) }},
winners as (
  select {{ delta_cdc.column_list(keys, 'k.') }}, present.* except ({{ delta_cdc.column_list(keys) }}),
    present._cdc_entity is null as _cdc_is_gone
  from touched_keys as k
  left join present on {{ delta_cdc.same_columns(keys, 'present', 'k') }}
)
select {{ delta_cdc._final_select(settings) }}, _cdc_is_gone
from winners
{%- endmacro %}


{#- The CTEs touched_keys and at_touched_keys: all of staging's changes at the keys that the new ones touch. -#}
{% macro at_touched_keys(settings, staging, keys_table, done, revised) -%}
{%- set keys = settings['keys'] -%}
{%- set touched = delta_cdc.touched_keys(settings, staging, keys_table, done, revised) -%}
touched_keys as (
{{ touched }}
),
at_touched_keys as (
  select s.* from {{ delta_cdc.rows_at(staging, touched, keys) }} as s
  left semi join touched_keys on {{ delta_cdc.same_columns(keys, 's', 'touched_keys') }}
)
{%- endmacro %}

{#- The keys that changes above a batch touch, each once. -#}
{% macro touched_keys(settings, staging, keys_table, done, revised) -%}
{%- set keys = settings['keys'] -%}
  select distinct * from (
    select {{ delta_cdc.column_list(keys) }} from {{ staging }} where _cdc_batch_id > {{ done }} and _cdc_error is null
{%- if revised %}
    union all
    select {{ delta_cdc.column_list(keys) }} from {{ staging }} where _cdc_revised_in > {{ done }}
    union all  -- also where keys may no longer change: those of what was retracted did
    select {{ delta_cdc.column_list(keys, '_cdc_key_before.') }}
    from {{ staging }} where _cdc_revised_in > {{ done }} and _cdc_key_before is not null
{%- if settings.get('split_key_changes') %}
    union all  -- the other half of what was a key change
    select {{ delta_cdc.column_list(keys, 'h.') }} from {{ staging }} as h
    left semi join (select * from {{ staging }} where _cdc_revised_in > {{ done }}) as r
      on r._cdc_sequence <=> h._cdc_sequence and r._cdc_transaction <=> h._cdc_transaction
{%- endif %}
{%- endif %}
{%- if keys_table is not none %}
    union all
    select inline(array_compact(array(key_before, key_after))) from {{ keys_table }}
{%- endif %}
  )
{%- endmacro %}


{#- A relation to be joined by its keys with the rows of a query: of a large table, what the values of these rows let through. -#}
{% macro rows_at(relation, query, keys) %}
  {%- set conditions = adapter.narrowed_to(relation, query, keys, 'r') if relation is not string else [] -%}
  {{ return('(select * from ' ~ relation ~ ' as r where (' ~ conditions | join(') and (') ~ '))'
      if conditions else relation | string) }}
{% endmacro %}


{#- The CTEs from `changes` to `present`: the rows that final holds. Those that live; with soft deletes also, of each key without
    a live row, the one that held it last, unless a key change took it elsewhere. -#}
{% macro _present(settings, staging) -%}
{{ delta_cdc.entity_states(settings, staging, with_life=true) }},
{{ delta_cdc._present_of(settings, 'states') }}
{%- endmacro %}

{#- states: a relation with the columns of the CTE `states`. -#}
{% macro _present_of(settings, states) -%}
{%- if settings.get('delete_mode') != 'soft' %}
newest as (
  select *, row_number() over (partition by _cdc_entity order by {{ delta_cdc.order_of_states('desc') }}) as _cdc_newest_first
  from {{ states }}
),
present as (
  select * from newest
  where _cdc_newest_first = 1 and not _cdc_ends and _cdc_epoch = size(_cdc_truncates)
)
{%- else %}
  {#- a row that was displaced went when it was, not after all that came later to others -#}
  {%- set place = 'struct(' ~ delta_cdc.order_of_states() | replace('_cdc_after', '0 as _cdc_after') ~ ')' %}
  {%- set values = settings['columns'] | reject('in', settings['keys']) | list %}
held as (
  select *, lead({{ place }}) over (partition by _cdc_entity order by {{ delta_cdc.order_of_states() }}) as _cdc_next
  from {{ states }} where _cdc_lived
),
ended as (  -- when a row's hold of its key ended: at its next change, at its delete, at the truncate above it; null: it lives
  select *, _cdc_epoch < size(_cdc_truncates) as _cdc_is_truncated,
    coalesce(_cdc_next, case
      when _cdc_ends then {{ place }}
      when _cdc_epoch < size(_cdc_truncates) then {{ place | replace('0 as _cdc_after', '1 as _cdc_after') }}
    end) as _cdc_held_until
  from held
),
newest as (
  select *, row_number() over (
    partition by {{ delta_cdc.column_list(settings['keys']) }}
      order by _cdc_held_until desc nulls first, _cdc_next is null desc, {{ place }} desc) as _cdc_newest_first
  from ended
),
present as (
  select * {% if settings.get('soft_delete_nulls') and values %}except ({{ delta_cdc.column_list(values) }})
  {%- for column in values %},
    if(_cdc_held_until is null, {{ delta_cdc.quoted(column) }}, null) as {{ delta_cdc.quoted(column) }}
  {%- endfor %}{% endif %},
    _cdc_held_until is not null as _cdc_is_deleted,
    case when _cdc_ends then _cdc_occurred_at
      when _cdc_is_truncated then _cdc_truncates[_cdc_epoch]._cdc_occurred_at end as _cdc_deleted_at
  from newest
  where _cdc_newest_first = 1 and _cdc_next is null
)
{%- endif %}
{%- endmacro %}
