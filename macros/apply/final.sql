{#-
  final_<table> (SCD1): the live rows, one a key. Rank by the order, keep the first, drop deletes (rules A1 to A8).

  What one run has to do is looked up first (`_final_plan`) and decides which SQL is made:
    on time   every new change is above all that was staged before: only the new changes are read (A5); what a partial image
              leaves open is taken from the live row
    late      a change is late, or a key change is involved: the touched keys are worked out again from staging
    rebuild   first build, full refresh, a truncate, or a table that somebody restored: all of staging (A4, S8)
-#}
{% macro final(source_table, staging, keys=none) -%}
  {%- set settings = delta_cdc.settings(source_table) -%}
  {%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
  {%- set state = delta_cdc.progress(this) -%}
  {%- set staged = delta_cdc.progress(staging) -%}
  {%- set anew = not is_incremental() -%}
  {%- if not anew and not state.rebuild and staged.committed <= state.batch_id -%}
    {%- do adapter.plan_write(this, {'skip': true}) -%}
    {{ return(delta_cdc._final_rows(settings, staging, none, 'false')) }}
  {%- endif -%}

  {#- no key has changed so far: each is its own entity, and the keys table is empty -#}
  {%- if staged.notes.keys_may_move is sameas false -%}{%- set keys = none -%}{%- endif -%}
  {%- set plan = delta_cdc._final_plan(settings, staging, keys, state, staged, anew) -%}
  {%- set options = {
        'skip': plan.skip,
        'txn': {'app_id': state.next_app_id if plan.mode == 'rebuild' else state.app_id, 'version': [staged.committed, 0] | max},
        'report': {'first_batch_id': state.batch_id + 1, 'last_batch_id': staged.committed, 'rows_read': plan.changes, 'mode': plan.mode},
      } -%}

  {%- if settings.insert_only or settings.keyless == 'append' -%}
    {%- do options.update({'rebuild': state.rebuild}) -%}
    {%- set sql = delta_cdc._final_appended(settings, staging, -1 if plan.mode == 'rebuild' else state.batch_id) -%}
  {%- elif anew -%}
    {%- set sql = delta_cdc._final_rows(settings, staging, keys) -%}
  {%- elif settings.apply == 'replace_partitions' -%}
    {%- set winners = delta_cdc._winners(settings, staging, keys, state, plan) -%}
    {%- set touched = delta_cdc._touched_partitions(settings, winners, plan) -%}
    {%- do options.update({'skip': not touched, 'predicates': [touched]}) -%}
    {%- set sql = delta_cdc._partitions_rewritten(settings, winners, touched, plan) -%}
  {%- else -%}
    {%- do options.update({'delete_unmatched': plan.mode == 'rebuild'}) -%}
    {%- set sql = delta_cdc._winners(settings, staging, keys, state, plan) -%}
  {%- endif -%}
  {%- do adapter.plan_write(this, options) -%}
  {{ return(sql) }}
{%- endmacro %}


{#- {mode: on_time | late | rebuild, changes, partial, skip}: what staging found out of the new changes; asked again where that is not known. -#}
{% macro _final_plan(settings, staging, keys, state, staged, anew) %}
  {%- if anew or state.rebuild -%}{{ return({'mode': 'rebuild', 'changes': none, 'partial': true, 'skip': false}) }}{%- endif -%}
  {%- set found = adapter.recall(staging ~ ' after ' ~ state.batch_id ~ ' to ' ~ staged.committed) -%}
  {%- if found is none -%}
    {%- set new = '(select * from ' ~ staging ~ ' where _cdc_batch_id > ' ~ state.batch_id ~ ')' -%}
    {%- set found = adapter.query_rows(delta_cdc.about_changes(new, delta_cdc.highest_position(staging, state.batch_id)))[0] -%}
  {%- endif -%}
  {#- the keys model commits only what it resolved anew -#}
  {%- set resolved = keys is not none and (adapter.table_state(keys, keys.identifier).txn_version or -1) > state.batch_id -%}
  {%- if found.truncates > 0 -%}{%- set mode = 'rebuild' -%}
  {%- elif found.late > 0 or resolved -%}{%- set mode = 'late' -%}
  {%- else -%}{%- set mode = 'on_time' -%}
  {%- endif -%}
  {%- set has_values = settings['columns'] | reject('in', settings['keys']) | list | length > 0 -%}
  {{ return({'mode': mode, 'changes': found.rows_read - found.quarantined, 'partial': found.partial > 0 and has_values,
             'skip': found.rows_read == found.quarantined}) }}
{% endmacro %}


{#- The columns of final: the published ones and the derived partition columns. -#}
{% macro _derived_partitions(settings) %}
  {%- set out = [] -%}
  {%- for part in settings.get('partition_by') or [] -%}
    {%- set named = modules.re.match('^(.*\\S)\\s+as\\s+`?(\\w+)`?$', part, modules.re.IGNORECASE) -%}
    {%- if named -%}{%- do out.append({'expression': named.group(1), 'name': named.group(2)}) -%}
    {%- elif part not in settings.column_types -%}
      {%- do out.append({'expression': part, 'name': modules.re.sub('\\W+', '_', part).strip('_') | lower}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _partition_columns(settings) %}
  {%- set names = {} -%}
  {%- for derived in delta_cdc._derived_partitions(settings) %}{% do names.update({derived.expression: derived.name}) %}{% endfor -%}
  {%- set out = [] -%}
  {%- for part in settings.get('partition_by') or [] -%}
    {%- set expression = modules.re.sub('\\s+as\\s+`?\\w+`?$', '', part, flags=modules.re.IGNORECASE) -%}
    {%- do out.append(names.get(expression, expression)) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _with_partitions(settings) -%}
  {%- for derived in delta_cdc._derived_partitions(settings) %}, {{ derived.expression }} as {{ delta_cdc.quoted(derived.name) }}{% endfor %}
{%- endmacro %}


{#- Every live row, from all of staging. -#}
{% macro _final_rows(settings, staging, keys, where='true') -%}
{%- if settings.insert_only or settings.keyless == 'append' -%}
{{ delta_cdc._final_appended(settings, staging, -1) }}{{ ' and ' ~ where }}
{%- else -%}
with changes as (
{{ delta_cdc.changes_of_entities(settings, staging, keys, where) }}
),
{{ delta_cdc._live(settings, staging) }}
select {{ delta_cdc.column_list(settings['columns']) }}{{ delta_cdc._with_partitions(settings) }}
from live
{%- endif -%}
{%- endmacro %}


{% macro _final_appended(settings, staging, done) -%}
select {{ delta_cdc.column_list(settings['columns']) }}{{ delta_cdc._with_partitions(settings) }}
from {{ staging }}
where _cdc_error is null and _cdc_op in ('I', 'R') and _cdc_batch_id > {{ done }}
{%- endmacro %}


{#- What a merge needs: one row for each touched key, to be written or (`_cdc_is_deleted`) removed. -#}
{% macro _winners(settings, staging, keys, state, plan) -%}
{%- if plan.mode == 'rebuild' -%}
select *, false as _cdc_is_deleted from (
{{ delta_cdc._final_rows(settings, staging, keys) }}
)
{%- elif plan.mode == 'late' -%}
{{ delta_cdc._winners_late(settings, staging, keys, state.batch_id) }}
{%- else -%}
{{ delta_cdc._winners_on_time(settings, staging, state.batch_id, plan.partial) }}
{%- endif -%}
{%- endmacro %}


{% macro _winners_on_time(settings, staging, done, partial) -%}
{%- set keys = settings['keys'] -%}
{%- set values = settings['columns'] | reject('in', keys) | list -%}
with new_changes as (
  select *, _cdc_op = 'D' as _cdc_ends
  from {{ staging }}
  where _cdc_batch_id > {{ done }} and _cdc_error is null
),
{%- if partial %}
lives as (
  select *, count_if(_cdc_ends) over (
    partition by {{ delta_cdc.column_list(keys) }} order by {{ delta_cdc.order_by() }} rows between unbounded preceding and 1 preceding) as _cdc_life
  from new_changes
),
states as (  -- partial images fold: an absent column keeps the value that the last change gave it
  select * except ({{ delta_cdc.column_list(values) }})
  {%- for column in values %},
    last_value(if(array_contains(_cdc_missing, {{ delta_cdc.literal(column) }}) or _cdc_ends, null, struct({{ delta_cdc.quoted(column) }})), true) over life as {{ delta_cdc.quoted(column) }}
  {%- endfor %}
  from lives
  window life as (
    partition by {{ delta_cdc.column_list(keys) }}, _cdc_life order by {{ delta_cdc.order_by() }} rows between unbounded preceding and current row)
),
{%- endif %}
ranked as (
  select *, row_number() over (partition by {{ delta_cdc.column_list(keys) }} order by {{ delta_cdc.order_by('desc') }}) as _cdc_newest_first
  from {{ 'states' if partial else 'new_changes' }}
),
{%- if partial %}
winners as (  -- what the new changes leave open is as it was in the live row, unless a delete came between
  select
    {{ delta_cdc.column_list(keys, 'r.') }}
  {%- for column in values %},
    if(r.{{ delta_cdc.quoted(column) }} is null and r._cdc_life = 0, live.{{ delta_cdc.quoted(column) }}, r.{{ delta_cdc.quoted(column) }}.{{ delta_cdc.quoted(column) }}) as {{ delta_cdc.quoted(column) }}
  {%- endfor %},
    r._cdc_ends
  from ranked as r
  left join {{ this }} as live on {{ delta_cdc.same_columns(keys, 'live', 'r') }}
  where r._cdc_newest_first = 1
)
{%- else %}
winners as (
  select * from ranked where _cdc_newest_first = 1
)
{%- endif %}
select {{ delta_cdc.column_list(settings['columns']) }}{{ delta_cdc._with_partitions(settings) }}, _cdc_ends as _cdc_is_deleted
from winners
{%- endmacro %}


{#- The touched keys, worked out again from all of staging's changes at them. Where key changes are involved, all keys that were ever
    part of one are: few, for most keys never change. -#}
{% macro _winners_late(settings, staging, keys_table, done) -%}
{%- set keys = settings['keys'] -%}
{%- set values = settings['columns'] | reject('in', keys) | list -%}
with touched_keys as (
  select distinct * from (
    select {{ delta_cdc.column_list(keys) }} from {{ staging }} where _cdc_batch_id > {{ done }} and _cdc_error is null
{%- if keys_table is not none %}
    union all
    select inline(array_compact(array(key_before, key_after))) from {{ keys_table }}
{%- endif %}
  )
),
at_touched_keys as (
  select s.* from {{ staging }} as s left semi join touched_keys on {{ delta_cdc.same_columns(keys, 's', 'touched_keys') }}
),
changes as (
{{ delta_cdc.changes_of_entities(settings, 'at_touched_keys', keys_table) }}
),
{{ delta_cdc._live(settings, staging) }},
winners as (
  select {{ delta_cdc.column_list(keys, 'k.') }}
  {%- for column in values %}, live.{{ delta_cdc.quoted(column) }}{% endfor %}, live._cdc_entity is null as _cdc_is_deleted
  from touched_keys as k
  left join live on {{ delta_cdc.same_columns(keys, 'live', 'k') }}
)
select {{ delta_cdc.column_list(settings['columns']) }}{{ delta_cdc._with_partitions(settings) }}, _cdc_is_deleted
from winners
{%- endmacro %}


{#- The CTEs from `changes` to `live`: the last state of each entity, if it lives. -#}
{% macro _live(settings, staging) -%}
{{ delta_cdc.entity_states(settings, staging) }},
newest as (
  select *, row_number() over (partition by _cdc_entity order by _cdc_epoch desc, {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as _cdc_newest_first
  from states
),
live as (
  select * from newest
  where _cdc_newest_first = 1 and not _cdc_ends and _cdc_epoch = size(_cdc_truncates)
)
{%- endmacro %}
