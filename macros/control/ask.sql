{#- What `delta-cdc status`, `report`, `log`, `explain`, `history`, `as-of` and `late` show, each as one JSON value;
    only `export` writes, and no table. -#}

{#- {tables, runs, quarantine, holds}: lists of rows, runs and holds by the names of the models. Of the tables themselves only
    Delta's logs are read, and of staging the newest moment: by delta-rs, or by Spark where that cannot or rows cannot be used.
    counts: names of staging models of which `counts` tells {<feed>.<table>: what `_counts` counts}, from all of their
    changes. -#}
{% macro status(counts=[]) %}
  {%- set out = delta_cdc._status() -%}
  {%- if counts %}{% do out.update({'counts': delta_cdc._counts(counts)}) %}{% endif -%}
  {%- do print(tojson(out)) -%}
{% endmacro %}

{#- The same, and `history`: what the last runs did, a row a run and table, oldest first. runs: so many. -#}
{% macro report(runs=200) %}
  {%- set out = delta_cdc._status() -%}
  {%- set table = delta_cdc._runs_relation() -%}
  {%- do out.update({'history': delta_cdc._of_models(
        'select run, `table`, layer, rows_read, rows_late, rows_written, seconds, status, cast(finished_at as string) as finished_at from '
        ~ table ~ ' where run in (select run from ' ~ table
        ~ ' group by run order by max(finished_at) desc limit ' ~ runs ~ ') order by finished_at, `table`')
        if adapter.table_state(table).exists else []}) -%}
  {%- do print(tojson(out)) -%}
{% endmacro %}

{#- The rows of a query of `cdc_runs` that are of the project's models, with these models' names as `table`. -#}
{% macro _of_models(query) %}
  {%- set names, out = {}, [] -%}
  {%- for id, name in delta_cdc.names_in_runs().items() %}{% do names.update({name: graph.nodes[id].name}) %}{% endfor -%}
  {%- for row in adapter.query_rows(query) if row['table'] in names -%}
    {%- do row.update({'table': names[row['table']]}) -%}
    {%- do out.append(row) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _status() %}
  {%- set ledger, runs, holds = delta_cdc._ledger(), delta_cdc._runs_relation(), delta_cdc.holds_relation() -%}
  {%- set out = {'tables': [], 'runs': [], 'quarantine': [], 'holds': []} -%}
  {%- set tables, untold, may_be_marked = delta_cdc._tables_to_look_at(), [], [] -%}
  {%- for settings in tables -%}
    {%- set staging = delta_cdc._model_of(settings, 'staging') -%}
    {%- set state = delta_cdc.progress(staging) -%}
    {%- if state.exists -%}
      {%- set staged = adapter.table_statistics(staging, '_cdc_occurred_at') -%}
      {%- do out.tables.append(delta_cdc._status_of_table(settings, state, staged)) -%}
      {%- set is_marked = state.notes.get('revised_in') is not none or state.notes.get('quarantined', false) -%}
      {%- if is_marked or 'delta_cdc.keys' in state.properties %}{% do may_be_marked.append(staging) %}{% endif -%}
      {#- statistics tell of what cannot be used too -#}
      {%- set is_told = staged.get('highest') is not none and not is_marked -%}
      {%- if staged.get('rows') and not is_told and '_cdc_occurred_at' in state.columns -%}
        {%- do untold.append('select ' ~ (out.tables | length - 1) ~ ' as place, '
              ~ delta_cdc.json_of('struct(max(_cdc_occurred_at) as newest)') ~ ' as told from ' ~ staging
              ~ ' where _cdc_error is null') -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if untold -%}
    {%- for row in adapter.query_rows(untold | join(' union all ')) -%}
      {%- do out.tables[row.place].update(fromjson(row.told)) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do delta_cdc._tell_change_sets(out.tables, ledger) -%}
  {%- if adapter.table_state(runs).exists -%}
    {#- when a table was loaded: a run that failed took no batch -#}
    {%- do out.update({'runs': delta_cdc._of_models(
          "select `table`, sum(rows_read) as rows_read, sum(rows_duplicate) as rows_duplicate, sum(rows_late) as rows_late, "
          ~ "sum(rows_quarantined) as rows_quarantined, "
          ~ "cast(max(finished_at) filter (where last_batch_id is not null) as string) as finished_at, "
          ~ "max_by(status, finished_at) as status, max_by(error, finished_at) as error from " ~ runs ~ " group by `table`")}) -%}
    {#- no run counts what is retracted later or has other keys (K8), nor what is of no table in a feed that mixes tables; and one
        that was killed counted nothing -#}
    {%- set quarantine = delta_cdc._control_relation('cdc_quarantine') -%}
    {%- if (may_be_marked or out.runs | selectattr('rows_quarantined') | list
            or delta_cdc._loading_tables() | selectattr('table', 'undefined') | list)
          and adapter.get_relation(quarantine.database, quarantine.schema, quarantine.identifier) is not none -%}
      {%- do out.update({'quarantine': adapter.query_rows('select feed, source_table, error, count(*) as n from '
              ~ quarantine ~ ' group by all order by all')}) -%}
    {%- endif -%}
  {%- endif -%}
  {%- if adapter.table_state(holds).exists %}{% do out.update({'holds': delta_cdc._status_of_holds(holds, tables)}) %}{% endif -%}
  {{ return(out) }}
{% endmacro %}

{#- A row of `tables`, with its `settings`. state: its staging's progress. staged: what the log tells of staging. Its `folder` is
    asked for where `_gaps` of ask.py looks for it: an object store that is not reached would leave nothing told of any table. -#}
{% macro _status_of_table(settings, state, staged) %}
  {%- set final = delta_cdc._model_of(settings, 'final') if delta_cdc._has_model(settings, 'final') else none -%}
  {%- set written = adapter.table_statistics(final) -%}
  {%- set deletes_by_marks = adapter.table_state(final).properties.get('delta.enableDeletionVectors') == 'true' -%}
  {{ return({'name': settings.feed ~ '.' ~ settings.table, 'settings': settings, 'batch_id': state.batch_id,
      'folder': delta_cdc.qualified_folder(settings) if settings.get('expect_contiguous') else none,
      'changes': staged.get('rows'), 'newest': delta_cdc._moment_as_json(staged.get('highest')), 'files': written.get('files'),
      'final_rows': written.get('rows'), 'final_rows_are_exact': not deletes_by_marks}) }}
{% endmacro %}

{#- Puts the change set to which each table has come in place of its `settings`. rows: as of `_status_of_table`. -#}
{% macro _tell_change_sets(rows, ledger) %}
  {%- set sets = {} -%}
  {%- if rows -%}
    {%- for row in adapter.query_rows('select batch_id, change_set, unit from ' ~ ledger
          ~ ' where batch_id in (' ~ rows | map(attribute='batch_id') | join(', ') ~ ')') -%}
      {%- do sets.update({row.batch_id: row}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for row in rows -%}
    {%- set found, settings = sets.get(row.batch_id, {}), row.pop('settings') -%}
    {%- if found.get('unit') in ('retract', 'replay', 'erase') -%}  {#- what was loaded before it -#}
      {%- set before = delta_cdc._change_sets_above(ledger, -1, settings.feed, delta_cdc.qualified_folder(settings)) -%}
      {%- set found = adapter.query_rows('select max_by(change_set, batch_id) as change_set from (' ~ before
            ~ ') where batch_id < ' ~ row.batch_id)[0] -%}
    {%- endif -%}
    {%- do row.update({'change_set': found.get('change_set')}) -%}
  {%- endfor -%}
{% endmacro %}

{#- The open holds of these tables, by the names of their models, and of tables that are none of them. -#}
{% macro _status_of_holds(holds, tables) %}
  {%- set models, never_held = {}, [] -%}
  {%- for settings in tables -%}
    {%- for name in delta_cdc._names_in_holds(delta_cdc._model_of(settings, 'staging')) -%}
      {%- do models.update({name: delta_cdc.model_name(settings, 'staging')}) -%}
      {%- if not delta_cdc.may_be_held(settings) %}{% do never_held.append(name) %}{% endif -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- set out = adapter.query_rows('select `table`, batch_id, change_set, reason from ' ~ holds
        ~ ' where accepted_at is null order by batch_id') | rejectattr('table', 'in', never_held) | list -%}
  {%- for hold in out if hold['table'] in models %}{% do hold.update({'table': models[hold['table']]}) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- A moment as `json_of` writes it, a decimal as a number of JSON; anything else as it is. -#}
{% macro _moment_as_json(value) %}
  {%- if value.strftime is defined %}{{ return(value.strftime('%Y-%m-%dT%H:%M:%S.%fZ')) }}{% endif -%}
  {%- if value is number %}{{ return(value | int if value == value | int else value | float) }}{% endif -%}
  {{ return(value) }}
{% endmacro %}

{#- {table: what Delta's log tells of it} of the tables that these models write. models: names. limit: commits a table. -#}
{% macro table_logs(models, limit=20) %}
  {%- set out = {} -%}
  {%- for name in models -%}
    {%- set relation = delta_cdc._model_relation(name) -%}
    {%- set told = adapter.table_log(relation, limit) -%}
    {%- if told %}{% do out.update({relation.schema ~ '.' ~ relation.identifier: told}) %}{% endif -%}
  {%- endfor -%}
  {%- do print(tojson(out)) -%}
{% endmacro %}


{#- {changes, final}: every change of the row that has or had the named key, in order, and the rows of final where its entities
    ended, none where there is no final. is_late: something newer of the row had arrived before it, or before it was replayed.
    is_held: it waits for `accept`. is_last: what counts last of its entity. staging: name of the model. The key comes beside the
    arguments: dbt writes those into logs. -#}
{% macro explain(staging) %}
  {%- set table = delta_cdc._named_row(staging) -%}
  {%- set settings = table.settings -%}
  {%- set position = 'struct(_cdc_sequence, _cdc_ordinal)' -%}
  {#- what `expressions` make, and a column that was listed just now, staging does not have; one that is listed no more, of former
      keys perhaps, final and history go on to show (E3) -#}
  {%- set staged, values = delta_cdc.progress(table.staging).columns, [] -%}
  {%- set there = staged | map('lower') | list -%}
  {%- for column in settings['columns'] + delta_cdc._retired_columns(settings, staged)
        if column not in settings['keys'] and column | lower in there -%}
    {%- do values.append(column) -%}
  {%- endfor -%}
  {%- do adapter.create_kept_view('cdc_told_of_row', delta_cdc._told_of_row(table)) -%}
  {%- set changes -%}
select
  _cdc_batch_id as batch_id, _cdc_change_set as change_set, _cdc_row as row, _cdc_op as op, _cdc_error as error,
  _cdc_entity as entity, _cdc_origin as origin,
  {{ delta_cdc.json_of('_cdc_sequence') }} as sequence, cast(_cdc_occurred_at as string) as occurred_at,
  cast(_cdc_staged_at as string) as staged_at,
  {{ delta_cdc._as_json(settings['keys']) }} as key, {{ delta_cdc.json_of('_cdc_key_before') }} as key_before,
  {{ delta_cdc._as_json(values) }} as values, to_json(_cdc_missing) as missing,
  _cdc_error is null and coalesce({{ position }} < max(if(_cdc_error is null, {{ position }}, null)) over (
    order by {{ delta_cdc.came_in(staged) }}, _cdc_batch_id, _cdc_row rows between unbounded preceding and 1 preceding), false)
    as is_late,
  _cdc_is_held as is_held, _cdc_is_last as is_last
from {{ delta_cdc.staged_rows(settings, 'cdc_told_of_row') }}
order by {{ delta_cdc.order_by() }}
  {%- endset -%}
  {%- set found = adapter.query_rows(changes) -%}
  {%- set final = delta_cdc._model_of(settings, 'final') -%}
  {#- a row that was deleted softly stands where its entity ended too (A9) -#}
  {%- set ended = '_cdc_is_newest' if settings.get('delete_mode') == 'soft' else "_cdc_is_last and _cdc_op <> 'D'" -%}
  {%- set rows = delta_cdc._rows_at_keys(settings, final, 'cdc_told_of_row where ' ~ ended)
        if adapter.table_state(final).exists else none -%}
  {%- do print(tojson({'changes': found, 'final': rows})) -%}
{% endmacro %}


{#- All changes of the named row, and the truncates, each with its entity and place, and whether it is held, newest and last. -#}
{% macro _told_of_row(table) -%}
{%- set settings, keys_table = table.settings, delta_cdc._keys_table(table.settings) -%}
{%- set held = delta_cdc._open_holds(settings, table.staging) -%}
{%- set is_held = 'c._cdc_batch_id >= ' ~ held[0].batch_id if held else 'false' -%}
{%- set newest = "coalesce(_cdc_counts_as <> 'T' and _cdc_place = max(if(_cdc_counts_as <> 'T', _cdc_place, null))"
      ~ ' over (partition by _cdc_entity), false)' -%}
with changes as (
  select * from cdc_changes_of_row where _cdc_error is null
  union all
  select * from {{ table.staging }} where _cdc_op = 'T' and _cdc_error is null
  union all  -- what cannot be used belongs to nobody yet: it is told by its key
  select s.* from {{ table.staging }} as s
  left semi join cdc_keys_of_row as k on {{ delta_cdc.same_columns(settings['keys'], 's', 'k') }}
  where s._cdc_error not in ('erased', 'unparsable')
),
told as (
  select c.*,
    {{ 'e.entity' if keys_table else 'null' }} as _cdc_entity, {{ 'e.origin' if keys_table else 'null' }} as _cdc_origin,
    {{ is_held }} as _cdc_is_held,
    struct(c.{{ delta_cdc.order_columns() | join(', c.') }}) as _cdc_place,
    if(c._cdc_error is null and not {{ is_held }}
      {{- " and not coalesce(e.origin in ('absorbed', 'unknown_delete'), false)" if keys_table }},
      c._cdc_op, null) as _cdc_counts_as
  from changes as c
  {%- if keys_table %}
  left join {{ keys_table }} as e on e._cdc_batch_id = c._cdc_batch_id and e._cdc_row = c._cdc_row
  {%- endif %}
),
displaced as (  -- for good, at whichever of their keys, though they may have changed once more in that transaction (K7)
{%- if keys_table %}
  select distinct e.displaced_entity as _cdc_displaced from {{ keys_table }} as e
  join {{ table.staging }} as c on c._cdc_batch_id = e._cdc_batch_id and c._cdc_row = e._cdc_row
  where e.displaced_entity is not null and c._cdc_error is null and not {{ is_held }}
{%- else %}
  select cast(null as string) as _cdc_displaced where false
{%- endif %}
)
select * except (_cdc_displaced), {{ newest }} and _cdc_displaced is null as _cdc_is_newest,
  {{ newest }} and _cdc_displaced is null
    and coalesce(_cdc_place > max(if(_cdc_counts_as = 'T', _cdc_place, null)) over (), true) as _cdc_is_last
from told left join displaced on displaced._cdc_displaced = told._cdc_entity
{%- endmacro %}


{#- Every version of the row that has or had the named key. staging: name of the model. -#}
{% macro history_of_key(staging) %}
  {%- set table = delta_cdc._named_row(staging) -%}
  {%- set settings = table.settings -%}
  {%- set history = delta_cdc._model_of(settings, 'history') -%}
  {%- if adapter.get_relation(history.database, history.schema, history.identifier) is none -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': there is no ' ~ history ~ ' yet. Run `dbt run` first.') -%}
  {%- endif -%}
  {%- set keys_table = delta_cdc._keys_table(settings) -%}
  {%- set entities -%}
select coalesce({{ 'e.entity, ' if keys_table }}{{ delta_cdc._own_entity(settings['keys'], 'c.') }}) from cdc_changes_of_row as c
  {%- if keys_table %} left join {{ keys_table }} as e on e._cdc_batch_id = c._cdc_batch_id and e._cdc_row = c._cdc_row{% endif %}
  {%- endset -%}
  {%- do print(tojson(delta_cdc._rows_at_keys(settings, history, 'cdc_keys_of_row', '_cdc_entity in (' ~ entities ~ ')',
        'valid_from nulls first, valid_to nulls last'))) -%}
{% endmacro %}


{#- {rows, number}: final as it was at a moment of the source (H4), or as it is: the first rows by key, and how many there are.
    staging: name of the model. moment, known_at: as `as_of` takes them. keyed: only what was at the
    named key. limit: so many rows. -#}
{% macro final_as_of(staging, moment=none, known_at=none, keyed=false, limit=20) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set settings = table.settings -%}
  {%- set now = moment is none and known_at is none -%}
  {%- set final = delta_cdc._final_of(table) if now else delta_cdc._model_of(settings, 'final') -%}
  {%- if keyed %}{% do delta_cdc._view_named_key(table) %}{% endif -%}
  {%- set rows = final if now else '(' ~ delta_cdc.as_of(final, moment, known_at) ~ ')' -%}
  {%- set rows = delta_cdc._live_rows(settings, rows) ~ ' as r' -%}
  {%- if keyed -%}
    {%- set rows = rows ~ ' left semi join cdc_named_key as k on ' ~ delta_cdc.same_columns(settings['keys'], 'r', 'k') -%}
  {%- endif -%}
  {#- with the alias: a key may be named row #}
  {%- set shown = adapter.query_rows('select ' ~ delta_cdc.json_of('struct(r.*)') ~ ' as row from ' ~ rows ~ ' order by '
        ~ (delta_cdc.column_list(settings['keys'] or [], 'r.') or '1') ~ ' limit ' ~ limit) | map(attribute='row') | list -%}
  {%- set number = shown | length if shown | length < limit else delta_cdc._number_of(rows) -%}
  {%- do print(tojson({'rows': shown, 'number': number})) -%}
{% endmacro %}


{#- A row a staging table: how many changes were late, at or below what an earlier load had staged (as `rows_late` of `cdc_runs`),
    and by how much of the source's time. staging: names of the models. -#}
{% macro late(staging) %}
  {%- set parts = [] -%}
  {%- for table in delta_cdc._staging_tables(names=staging) %}{% do parts.append(delta_cdc._lateness(table)) %}{% endfor -%}
  {%- do print(tojson(adapter.query_rows(parts | join('\nunion all\n')) if parts else [])) -%}
{% endmacro %}

{% macro _lateness(table) -%}
{%- set position = 'struct(_cdc_sequence, _cdc_ordinal)' -%}
{#- what the columns before it in the order do not say; a time that is none, like a number, has no distance -#}
{%- set is_time = adapter.table_state(table.staging).columns.get('_cdc_occurred_at')
      in ('timestamp', 'timestamp_ntz', 'date') -%}
{%- set micros = 'unix_micros(cast({} as timestamp))' if is_time else 'cast(null as bigint)' -%}
{%- set before = '(order by min(_cdc_batch_id), _cdc_staged_at rows between unbounded preceding and 1 preceding)' -%}
{%- set behind = micros.format('before.newest') ~ ' - ' ~ micros.format('c.occurred_at') -%}  {#- `greatest` passes over nulls -#}
select {{ delta_cdc.literal(table.name) }} as name, count(*) as changes, count_if(is_late) as late,
  percentile(if(is_late, seconds, null), array(0.5, 0.99, 1.0)) as seconds_of_late,
  date_format(max(batch_newest) - make_dt_interval(0, 0, 0, coalesce(max(if(is_late, seconds, null)), 0)),
    'yyyy-MM-dd HH:mm:ss') as none_before
from (
  select before.highest is not null and c.position <= before.highest as is_late,
    if({{ behind }} < 0, 0, {{ behind }}) / 1e6 as seconds,
    {{ 'cast(before.batch_newest as timestamp)' if is_time else 'cast(null as timestamp)' }} as batch_newest
  from (select _cdc_staged_at, {{ position }} as position, _cdc_occurred_at as occurred_at from {{ table.staging }}
    where _cdc_error is null and _cdc_sequence is not null) as c
  join (
    -- the changes of one load are staged at one moment, however many change sets they came in; what is replayed keeps its batch,
    -- and comes after the others of that
    select _cdc_staged_at, max(newest) as batch_newest,
      max(max(position)) over {{ before }} as highest,
      max(max(newest)) over {{ before }} as newest
    from (select _cdc_batch_id, _cdc_staged_at, {{ position }} as position, _cdc_occurred_at as newest from {{ table.staging }}
      where _cdc_error is null and _cdc_sequence is not null)
    group by _cdc_staged_at
  ) as before on before._cdc_staged_at = c._cdc_staged_at
)
{%- endmacro %}


{#- Write the rows of final to a folder that is not there yet, as they are or were at a moment of the source.
    staging: name of the model. to: the folder's path. file_format: parquet, csv, json, orc or avro.
    moment: as `as_of` takes it. -#}
{% macro export(staging, to, file_format, moment=none) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set final = delta_cdc._final_of(table) -%}
  {%- set rows = '(' ~ delta_cdc.as_of(final, moment) ~ ')' if moment is not none else final -%}
  {%- set written = adapter.write_files('select ' ~ delta_cdc.column_list(delta_cdc._columns_of_final(table, final))
        ~ ' from ' ~ delta_cdc._live_rows(table.settings, rows), to, file_format) -%}
  {%- do print(tojson(written)) -%}
{% endmacro %}


{#- The staging table, whose row with the named key the views of `one_key.sql` tell. -#}
{% macro _named_row(staging) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- if not delta_cdc.view_row(table) %}{% do delta_cdc.refuse_unknown_key(table) %}{% endif -%}
  {{ return(table) }}
{% endmacro %}

{% macro _rows_at_keys(settings, relation, keys, condition='true', order='1') %}
  {%- if adapter.get_relation(relation.database, relation.schema, relation.identifier) is none -%}{{ return([]) }}{%- endif -%}
  {%- set found = adapter.query_rows('select ' ~ delta_cdc.json_of('struct(r.*)') ~ ' as row from ' ~ relation
        ~ ' as r join (select distinct ' ~ delta_cdc.column_list(settings['keys']) ~ ' from ' ~ keys ~ ') as k on '
        ~ delta_cdc.same_columns(settings['keys'], 'r', 'k') ~ ' where ' ~ condition ~ ' order by ' ~ order) -%}
  {{ return(found | map(attribute='row') | list) }}
{% endmacro %}

{% macro _as_json(columns) %}{{ return(delta_cdc.json_of('struct(' ~ delta_cdc.column_list(columns) ~ ')')) }}{% endmacro %}
