{#-
  Change sets that are held back (Q2, Q4): all of a set is staged, but keys, history and final read staging only below the
  first one held, until somebody accepts it. What is held stands in `cdc_holds`, one row a table and batch, written before
  staging commits the batch: no reader ever sees a batch that is yet to be judged. Tables without `max_errors` and
  `max_delete_share` know nothing of it.
-#}
{% macro may_be_held(settings) %}
  {{ return(settings.get('max_errors') is not none or settings.get('max_delete_share') is not none) }}
{% endmacro %}


{#- The names by which `cdc_holds` may know a staging table: its own, with its schema where another model has that too. In a plan
    that is the schema of what was cloned. -#}
{% macro _names_in_holds(staging) %}
  {{ return([staging.identifier, staging.schema | replace(delta_cdc._plan_suffix(), '') ~ '.' ~ staging.identifier]) }}
{% endmacro %}

{#- The one of them by which it is noted now. -#}
{% macro _name_in_holds(staging) %}
  {%- set is_alone = staging.identifier in delta_cdc.names_in_runs().values() -%}
  {{ return(delta_cdc._names_in_holds(staging)[0 if is_alone else 1]) }}
{% endmacro %}


{#- All holds of a staging table, open and accepted, by batch. -#}
{% macro holds_of(staging) %}
  {%- set holds = delta_cdc.holds_relation() -%}
  {%- if not adapter.table_state(holds).exists -%}
    {%- do exceptions.raise_compiler_error(holds
          ~ " is gone: it held the change sets that were not let through. Put it back from a backup; or, if nothing was held, "
          ~ "let it be made anew by one run with --vars '{delta_cdc_recreate: [cdc_holds]}'.") -%}
  {%- endif -%}
  {{ return(delta_cdc._all_holds(holds) | selectattr('table', 'in', delta_cdc._names_in_holds(staging)) | list) }}
{% endmacro %}

{#- The open ones of a table; none where it has no setting that holds. -#}
{% macro _open_holds(settings, staging) %}
  {{ return(delta_cdc.holds_of(staging) | selectattr('accepted_at', 'none') | list if delta_cdc.may_be_held(settings) else []) }}
{% endmacro %}

{#- Those of all tables; none where there is no table of holds. -#}
{% macro _all_holds(holds) %}
  {{ return(adapter.cached_query(holds, 'select * from ' ~ holds ~ ' order by batch_id')) }}
{% endmacro %}


{#- What keys, history and final may read: {staging: a relation or SQL, staged: its progress, held: the first open hold or none}.
    warn: say so where something is held. -#}
{% macro let_through(settings, staging, warn=true) %}
  {%- set staged = delta_cdc.progress(staging) -%}
  {%- set held = delta_cdc._open_holds(settings, staging) if staged.exists else [] -%}
  {%- if not held -%}{{ return({'staging': staging, 'staged': staged, 'held': none}) }}{%- endif -%}
  {%- set first = dict(held[0], number=held | length) -%}
  {%- do staged.update({'committed': [staged.committed, first.batch_id - 1] | min}) -%}
  {%- if warn %}{% do exceptions.warn(delta_cdc._says_held(settings, first)) %}{% endif -%}
  {{ return({'staging': '(select * from ' ~ staging ~ ' where _cdc_batch_id < ' ~ first.batch_id ~ ')',
      'staged': staged, 'held': first}) }}
{% endmacro %}

{#- hold: with the `number` of those that are held, itself included. -#}
{% macro _says_held(settings, hold) %}
  {{ return(delta_cdc.about_table(settings) ~ 'batch ' ~ hold.batch_id ~ ' (' ~ hold.change_set ~ ') is held: ' ~ hold.reason
      ~ '. History and final wait' ~ (', and ' ~ (hold.number - 1) ~ ' more held after it' if hold.number > 1 else '')
      ~ '. Let it through with `delta-cdc accept ' ~ settings.feed ~ '.' ~ settings.table ~ ' ' ~ hold.batch_id
      ~ '`, or take it back with `delta-cdc retract ' ~ hold.batch_id ~ '`.') }}
{% endmacro %}


{#- What the run says of a table that is held: its dbt message, and its row in `cdc_runs`. -#}
{% macro held_report(settings, hold) %}
  {%- if hold is none -%}{{ return({}) }}{%- endif -%}
  {{ return({'held': delta_cdc._says_held(settings, hold), 'message': 'HELD batch ' ~ hold.batch_id ~ ': ' ~ hold.reason}) }}
{% endmacro %}


{#- Staging for a view, which must hold back by itself: what is held is known only when it is read. -#}
{% macro unheld(settings, staging) %}
  {%- if not delta_cdc.may_be_held(settings) -%}{{ return(staging) }}{%- endif -%}
  {{ return('(select * from ' ~ staging
      ~ ' where _cdc_batch_id < coalesce((select min(batch_id) from ' ~ delta_cdc.holds_relation()
      ~ ' where `table` in (' ~ delta_cdc._literals(delta_cdc._names_in_holds(staging))
      ~ ') and accepted_at is null), 9223372036854775807))') }}
{% endmacro %}


{#- on-run-start: the table of holds, where a setting asks for it. Never made anew over staging that was judged before (S5). -#}
{% macro prepare_holds() %}
  {%- if not execute or flags.WHICH not in ['run', 'build'] or not delta_cdc.in_session() -%}{{ return('') }}{%- endif -%}
  {%- set may = [] -%}
  {%- for node in graph.sources.values()
        if delta_cdc._cdc_meta(node) is not none and delta_cdc.may_be_held(delta_cdc._cdc_meta(node)) -%}
    {%- do may.append(delta_cdc.model_name({'feed': node.source_name, 'table': node.name}, 'staging')) -%}
  {%- endfor -%}
  {%- if not may or adapter.table_state(delta_cdc.holds_relation()).exists -%}{{ return('') }}{%- endif -%}
  {%- if 'cdc_holds' not in (var('delta_cdc_recreate', []) | list) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name in may -%}
      {%- set staging = delta_cdc._relation_of(node) -%}
      {%- if adapter.table_state(staging).notes.get('judged') -%}{{ return('') }}{%- endif -%}
      {#- the models say that it is gone -#}
    {%- endfor -%}
  {%- endif -%}
  {%- do adapter.create_schema(delta_cdc.holds_relation()) -%}  {#- dbt makes those of the models that run alone -#}
  create table if not exists {{ delta_cdc.holds_relation() }} (
    `table` string comment "the staging table, with its schema where others have its name", batch_id bigint, change_set string,
    rows_read bigint, errors bigint, deletes bigint comment "rows of final that it would delete",
    live_rows bigint comment "rows of final when it was staged",
    reason string, held_at timestamp, accepted_at timestamp comment "null while it is held"
  ) using delta partitioned by (`table`) comment "change sets that are held back from history and final, and those let through"
{% endmacro %}


{#- Judge the change sets of a load before they are staged, and note those that are to be held. -#}
{% macro judge(settings, staging, lines, state, plan) %}
  {%- set known = delta_cdc.holds_of(staging) -%}
  {%- set bad = [] -%}
  {%- for batch in adapter.query_rows(delta_cdc._about_change_sets(settings, staging, lines, state, plan)) -%}
    {%- set reasons = [] -%}
    {%- set allowed = settings.get('max_errors') -%}
    {%- if allowed is not none and (batch.errors / batch.rows_read if allowed is float else batch.errors) > allowed -%}
      {%- do reasons.append(batch.errors ~ ' of its ' ~ batch.rows_read ~ ' rows cannot be used, `max_errors` is ' ~ allowed) -%}
    {%- endif -%}
    {%- set allowed = settings.get('max_delete_share') -%}
    {%- if allowed is not none and batch.deletes and batch.deletes / [batch.live_rows, batch.deletes] | max > allowed -%}
      {%- do reasons.append('it would delete ' ~ batch.deletes ~ ' of the ' ~ batch.live_rows
            ~ ' live rows, `max_delete_share` is ' ~ allowed) -%}
    {%- endif -%}
    {%- if reasons -%}{%- do batch.update({'reason': reasons | join('; ')}) -%}{%- do bad.append(batch) -%}{%- endif -%}
  {%- endfor -%}
  {%- set bad_ids = bad | map(attribute='batch_id') | list -%}
  {%- set holds, name = delta_cdc.holds_relation(), delta_cdc.literal(delta_cdc._name_in_holds(staging)) -%}
  {#- a run that ended between note and commit: what it judged may have been put right at the source since -#}
  {%- set stale = known | selectattr('accepted_at', 'none') | selectattr('batch_id', 'gt', state.batch_id)
        | map(attribute='batch_id') | reject('in', bad_ids) | list -%}
  {%- if stale -%}
    {%- do delta_cdc.write_before('delete from ' ~ holds ~ ' where `table` = ' ~ name ~ ' and batch_id in ('
          ~ stale | join(', ') ~ ')') -%}
  {%- endif -%}
  {%- set values = [] -%}
  {%- for batch in bad if batch.batch_id not in known | map(attribute='batch_id') | list -%}
    {%- do values.append('(' ~ [name, batch.batch_id, delta_cdc.literal(batch.change_set), batch.rows_read, batch.errors,
          batch.deletes, batch.live_rows, delta_cdc.literal(batch.reason), 'current_timestamp()', 'null'] | join(', ') ~ ')') -%}
  {%- endfor -%}
  {%- if values -%}{%- do delta_cdc.write_before('insert into ' ~ holds ~ ' values ' ~ values | join(', ')) -%}{%- endif -%}
{% endmacro %}


{#- A row a change set of the load: {batch_id, change_set, rows_read, errors, deletes, live_rows}. Each set finds the
    rows live that final and the sets before it leave so. A row counts as deleted where it lived before the set and
    the newest that is known of its key after the set is a delete or a truncate; where the set moved it first, as many
    as left a key at which they lived. -#}
{% macro _about_change_sets(settings, staging, lines, state, plan) -%}
{%- set keys = settings['keys'] -%}
{%- set final = delta_cdc._model_of(settings, 'final') if delta_cdc._has_model(settings, 'final') else none -%}
{%- set counted = settings.get('max_delete_share') is not none and state.exists -%}
{%- set final_state = adapter.table_state(final) if counted else {'exists': false} -%}
{#- of a final by other keys (K8) nobody can tell what would go -#}
{%- set live = final_state.exists and not delta_cdc._are_other_keys(final_state.notes.get('keys', keys), keys) -%}
with {{ delta_cdc._staging_ctes(settings, lines) }}
{%- if live %},
live as (
  select {{ delta_cdc.column_list(keys) }}, true as _cdc_lives from {{ final }}
  {{- ' where not _cdc_is_deleted' if '_cdc_is_deleted' in final_state.columns }}
),
{{ delta_cdc._said_of_rows(settings) }},
{{ delta_cdc._known_of_rows(settings, staging, state, plan) }},
{{ delta_cdc._deletes_by_set(keys) }}
{%- endif %}
select batch_id, change_set, rows_read, errors,
  {{ 'coalesce(deletes, 0)' if live else '0L' }} as deletes,
  {{ '(select count(*) from live) + coalesce(sum(more) over ('
      ~ 'order by batch_id rows between unbounded preceding and 1 preceding), 0)' if live else '0L' }} as live_rows
from (
  select _cdc_batch_id as batch_id, any_value(_cdc_change_set) as change_set, count(*) as rows_read, count(_cdc_error) as errors
  from changes group by _cdc_batch_id
)
{%- if live %}
left join deleted using (batch_id)
{%- endif %}
order by batch_id
{%- endmacro %}


{#- Of `_about_change_sets`: the CTE `said`, what the load's changes say of the row at a key, and those it is made of. -#}
{% macro _said_of_rows(settings) -%}
{%- set keys = settings['keys'] -%}
usable as (
  select *, {{ delta_cdc._whole_position() }} as _cdc_position,
    _cdc_key_before is not null and not ({{ delta_cdc.same_columns(keys, '_cdc_key_before', 'changes') }}) as _cdc_moves
  from changes where _cdc_error is null
),
{%- if settings.get('split_key_changes') %}
inserted as (
  select distinct _cdc_sequence, _cdc_transaction, true as _cdc_is_half from usable where _cdc_op = 'I'
),
{%- endif %}
said as (  -- of the row at a key: that it lives there, or ends, or goes elsewhere
  select u._cdc_batch_id, {{ delta_cdc.column_list(keys, 'u.') }}, u._cdc_position, u._cdc_op = 'D' as _cdc_ends,
    {{ "u._cdc_op = 'D' and i._cdc_is_half is not null" if settings.get('split_key_changes') else 'false' }} as _cdc_goes,
    u._cdc_moves
  from usable as u
{%- if settings.get('split_key_changes') %}
  left join inserted as i on i._cdc_sequence <=> u._cdc_sequence and i._cdc_transaction <=> u._cdc_transaction
{%- endif %}
  where u._cdc_op <> 'T'
  union all
  select _cdc_batch_id, {{ delta_cdc.column_list(keys, '_cdc_key_before.') }}, _cdc_position, true, true, false
  from usable where _cdc_moves
)
{%- endmacro %}


{#- Of `_about_change_sets`: the CTE `known`, what is said at the keys that the load touches and, as batch -1, how they stood
    before it, and those it is made of. -#}
{% macro _known_of_rows(settings, staging, state, plan) -%}
{%- set keys, key_list = settings['keys'], delta_cdc.column_list(settings['keys']) -%}
{%- set position = delta_cdc._whole_position() -%}
{%- set ended = 'staged._cdc_position' if state.notes.truncates is sameas false else 'greatest(staged._cdc_position, (select max('
      ~ position ~ ') from ' ~ staging ~ " where _cdc_op = 'T' and _cdc_error is null))" -%}
touched as (
  select distinct {{ key_list }} from said
{%- if plan.truncates %}
  union
  select {{ key_list }} from live
{%- endif %}
),
{%- if plan.late %}
staged as (  -- the newest known at a key, which where no row lives ended it: what is told again below that brings none back
  select {{ key_list }}, max(_cdc_position) as _cdc_position from (
    select {{ key_list }}, {{ position }} as _cdc_position from {{ staging }} where _cdc_error is null and _cdc_op <> 'T'
{%- if settings.key_changes %}
    union all
    select {{ delta_cdc.column_list(keys, '_cdc_key_before.') }}, {{ position }}
    from {{ staging }} where _cdc_error is null and _cdc_key_before is not null
{%- endif %}
  ) as s left semi join touched on {{ delta_cdc.same_columns(keys, 's', 'touched') }}
  group by {{ key_list }}
),
{%- endif %}
known as (
  select * from said
  union all
{%- if plan.late %}
  select -1, {{ delta_cdc.column_list(keys, 'touched.') }},
    {{ ended }}, live._cdc_lives is null, false, false
  from touched
  left join staged on {{ delta_cdc.same_columns(keys, 'staged', 'touched') }}
  left join live on {{ delta_cdc.same_columns(keys, 'live', 'touched') }}
{%- else %}
  select -1, {{ delta_cdc.column_list(keys, 'live.') }}, null, false, false, false
  from live left semi join touched on {{ delta_cdc.same_columns(keys, 'live', 'touched') }}
{%- endif %}
{%- if plan.truncates %}
  union all
  select t._cdc_batch_id, {{ delta_cdc.column_list(keys, 'touched.') }}, t._cdc_position, true, false, false
  from usable as t cross join touched where t._cdc_op = 'T'
{%- endif %}
)
{%- endmacro %}


{#- Of `_about_change_sets`: the CTE `deleted`, how many rows each change set deletes, and by how many more live after it. -#}
{% macro _deletes_by_set(keys) -%}
{%- set key_list = delta_cdc.column_list(keys) -%}
by_set as (
  select _cdc_batch_id, max(_cdc_moves) over (partition by {{ key_list }}, _cdc_batch_id) as _cdc_moved,
    max(struct(_cdc_position, _cdc_ends, _cdc_goes)) over so_far as after,
    max(struct(_cdc_position, _cdc_ends, _cdc_goes)) over earlier as before,
    row_number() over (partition by {{ key_list }}, _cdc_batch_id order by _cdc_position) as _cdc_place
  from known
  window so_far as (partition by {{ key_list }} order by _cdc_batch_id),
    earlier as (partition by {{ key_list }} order by _cdc_batch_id range between unbounded preceding and 1 preceding)
),
deleted as (
  select _cdc_batch_id as batch_id,
    count_if(after._cdc_ends and not after._cdc_goes and not before._cdc_ends)
      + least(count_if(after._cdc_ends and not after._cdc_goes and _cdc_moved and coalesce(before._cdc_ends, true)),
          count_if(after._cdc_goes and not before._cdc_ends)) as deletes,
    count_if(not after._cdc_ends) - count_if(not before._cdc_ends) as more
  from by_set where _cdc_place = 1 and _cdc_batch_id >= 0
  group by _cdc_batch_id
)
{%- endmacro %}


{% macro _whole_position() %}{{ return('struct(' ~ delta_cdc.order_columns() | join(', ') ~ ')') }}{% endmacro %}


{#- Run by `delta-cdc accept`: a held batch is let through at the next run, once; the row in `cdc_holds` says when.
    staging: name of the model. table: <feed>.<table>, for what is said. batch_id: of the held batch. -#}
{% macro accept(staging, table, batch_id) %}
  {%- set staging = delta_cdc._model_relation(staging) -%}
  {%- set holds = delta_cdc.holds_relation() -%}
  {%- set known = delta_cdc.holds_of(staging) if adapter.table_state(holds).exists else [] -%}
  {%- set open = known | selectattr('accepted_at', 'none') | list -%}
  {%- set named = known | selectattr('batch_id', 'equalto', batch_id) | list -%}
  {%- set which = [] -%}
  {%- for hold in open %}{% do which.append(hold.batch_id ~ ' (' ~ hold.reason ~ ')') %}{% endfor -%}
  {%- set which = 'Held of it: ' ~ which | join('; ') ~ '.' if which else 'Nothing of it is held.' -%}
  {%- if not named -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table ~ ': batch ' ~ batch_id ~ ' is not held. ' ~ which) -%}
  {%- elif named[0].accepted_at is not none -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table ~ ': batch ' ~ batch_id
          ~ ' was accepted already, at ' ~ named[0].accepted_at ~ '. ' ~ which) -%}
  {%- endif -%}
  {%- set staged = delta_cdc.progress(staging) -%}
  {%- do delta_cdc._refuse_restored(staging, staged) -%}
  {%- if staged.batch_id < batch_id -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table ~ ': batch ' ~ batch_id
          ~ ' is not staged yet: its load did not end. Run `dbt run` first.') -%}
  {%- endif -%}
  {%- do run_query('update ' ~ holds ~ ' set accepted_at = current_timestamp() where `table` in ('
        ~ delta_cdc._literals(delta_cdc._names_in_holds(staging)) ~ ') and batch_id = ' ~ batch_id) -%}
  {%- do print('table ' ~ table ~ ': batch ' ~ batch_id ~ ' ('
        ~ named[0].change_set ~ ') is accepted: ' ~ named[0].reason ~ '. The next `dbt run` lets it through'
        ~ (', up to batch ' ~ (open[1].batch_id - 1) ~ ': batch ' ~ open[1].batch_id ~ ' is held too'
          if open | length > 1 and open[0].batch_id == batch_id
           else ' once batch ' ~ open[0].batch_id ~ ' is, which is held too' if open[0].batch_id != batch_id else '') ~ '.') -%}
{% endmacro %}


{#- A batch that was taken back is no longer held. -#}
{% macro _end_hold(batch_id) %}
  {%- set holds = delta_cdc.holds_relation() -%}
  {%- if delta_cdc._all_holds(holds) | selectattr('batch_id', 'equalto', batch_id) | selectattr('accepted_at', 'none') | list -%}
    {%- do run_query('update ' ~ holds
          ~ " set accepted_at = current_timestamp(), reason = concat(reason, '; retracted') where batch_id = " ~ batch_id
          ~ ' and accepted_at is null') -%}
  {%- endif -%}
{% endmacro %}
