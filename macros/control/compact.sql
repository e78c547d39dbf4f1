{#-
  compact (R1): what staging holds of a row up to a horizon becomes one change: its last one, with every column as it was
  after it; of a row that lived no more, nothing. Beside it stay what final shows of a row's beginning and end
  (`created_at`, soft deletes), and all changes at keys that were ever part of a key change. Final stays as it is, history
  begins at the horizon. The horizon, a position, is a property of the table, set before anything is folded: from then on a
  change at or below it is quarantined as `too_late`. staging: name of the model. before: text or number, changes before
  this moment of the source are folded.
-#}
{% macro compact(staging, before) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set state = delta_cdc.progress(table.staging) -%}
  {%- set problems = delta_cdc._against_compaction(table, state) -%}
  {%- if problems -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ' cannot be compacted: ' ~ problems | join('; ') ~ '.') -%}
  {%- endif -%}
  {%- do delta_cdc._fold(table, state, before) -%}
{% endmacro %}


{#- The compaction of a table that nothing speaks against. told: what cannot be a horizon is said, and stops nothing. -#}
{% macro _fold(table, state, before, told=false) %}
  {%- set time_type = delta_cdc._time_type(table.staging) -%}
  {%- set moment = 'try_cast(' ~ delta_cdc.literal(before) ~ ' as ' ~ time_type ~ ')' -%}
  {%- do delta_cdc._refuse_no_moment(table, before, time_type) -%}
  {%- set horizon = delta_cdc.horizon(state) -%}
  {%- set at = 'select max(struct(_cdc_sequence, _cdc_ordinal)) as at from ' ~ table.staging
        ~ ' where _cdc_error is null and _cdc_occurred_at < ' ~ moment -%}
  {%- set at = 'select greatest(at, ' ~ horizon ~ ') as at from (' ~ at ~ ')' if horizon else at -%}
  {%- set cut = adapter.query_rows('select ' ~ delta_cdc.json_of('at') ~ ' as at, typeof(at) as type from (' ~ at ~ ')')[0] -%}
  {%- if cut.at is none -%}
    {%- do print('table ' ~ table.name ~ ': no change is from before ' ~ before ~ ': nothing to fold.') -%}
    {{ return('') }}
  {%- elif not delta_cdc.can_be_noted(cut.type, cut.at) -%}
    {%- set why = 'a position of type ' ~ cut.type ~ ' cannot be written down exactly, so it can be no horizon' -%}
    {%- if not told %}{% do exceptions.raise_compiler_error('table ' ~ table.name ~ ': ' ~ why ~ '.') %}{% endif -%}
    {%- do print('table ' ~ table.name ~ ' has `compact_after_days`, and is not compacted: ' ~ why ~ '.') -%}
    {{ return('') }}
  {%- endif -%}
  {%- set below = '(select * from ' ~ table.staging ~ ' where _cdc_error is null and struct(_cdc_sequence, _cdc_ordinal) <= '
        ~ delta_cdc.position_of(cut.at, cut.type) ~ ')' -%}
  {%- set until = 'max(_cdc_occurred_at)' -%}
  {%- if horizon -%}
    {%- set until = 'greatest(' ~ until ~ ', try_cast(' ~ delta_cdc.literal(state.properties['delta_cdc.folded_until'])
          ~ ' as ' ~ time_type ~ '))' -%}
  {%- endif -%}
  {%- set folded = adapter.query_rows('select cast(' ~ until
        ~ ' as string) as until, unix_micros(current_timestamp()) as now from ' ~ below)[0] -%}
  {#- what was announced and not folded, or folded already, was there when it was announced first -#}
  {%- do delta_cdc._announce(table.staging,
        {'delta_cdc.folded_until': folded.until, 'delta_cdc.horizon': cut.at, 'delta_cdc.horizon_type': cut.type,
          'delta_cdc.compacted_batch': state.batch_id},
        {'delta_cdc.folded_at': folded.now}) -%}
  {%- set linked = 'cdc_linked_keys' if table.settings.key_changes and state.notes.keys_may_move is not sameas false else none -%}
  {%- if linked -%}
    {%- do adapter.create_view_from_python(linked, 'delta_cdc.keys.linked_keys', {
          'staging': table.staging | string, 'keys': table.settings['keys'],
          'pair_split_key_changes': table.settings.split_key_changes}) -%}
  {%- endif -%}
  {%- do adapter.create_kept_view('cdc_compacted', delta_cdc._compacted(table, below, linked)) -%}
  {%- set not_whole = ['size(t._cdc_missing) > 0'] -%}
  {%- set joined = (table.settings.joined_after or {}).values() | list -%}  {#- rows that are older than a column -#}
  {%- if joined %}{% do not_whole.append('t._cdc_batch_id <= ' ~ joined | max) %}{% endif -%}
  {#- what is folded is whole: a null in its structs is one; as an insert it could be half of a key change (K6) -#}
  {%- set by_field = table.settings.filled_by_field -%}
  {%- if by_field %}{% do not_whole.append("t._cdc_op = 'U'") %}{% endif -%}
  {%- if table.settings.set_on_insert %}{% do not_whole.append('true') %}{% endif -%}  {#- what came of these does not count -#}
  {%- set sql -%}
merge into {{ table.staging }} as t
using cdc_compacted as s
on t._cdc_batch_id = s._cdc_batch_id and t._cdc_row = s._cdc_row
when matched and not s._cdc_stays then delete
when matched and s._cdc_is_whole and ({{ not_whole | join(' or ') }}) then update set
  {%- for column in delta_cdc._folded_columns(table) %}
    {{ delta_cdc.quoted(column) }} = s.{{ delta_cdc.quoted(column) }},
  {%- endfor %}{% if by_field %} _cdc_op = 'R',{% endif %} _cdc_missing = array()
  {%- endset -%}
  {%- set done = delta_cdc._write(table.staging, sql, {}) -%}
  {%- set left = delta_cdc._number_of(below) -%}
  {%- do print('table ' ~ table.name ~ ': ' ~ done.rows_deleted ~ ' changes folded away, ' ~ left
        ~ ' stay, up to the horizon ' ~ cut.at ~ '. A change at or below it is too late from now on.') -%}
{% endmacro %}


{#- Properties of a table that stand before what they tell of is done; no commit where it has them, for an operation may be run
    again. beside: others, set with them. Returns whether there was one. -#}
{% macro _announce(relation, properties, beside={}) %}
  {%- set there, new, values = adapter.table_state(relation).properties, [], [] -%}
  {%- for name, value in properties.items() if there.get(name) != value | string %}{% do new.append(name) %}{% endfor -%}
  {%- for name, value in (properties.items() | list) + (beside.items() | list) -%}
    {%- do values.append("'" ~ name ~ "' = " ~ delta_cdc.literal(value | string)) -%}
  {%- endfor -%}
  {%- if new %}{% do run_query('alter table ' ~ relation ~ ' set tblproperties (' ~ values | join(', ') ~ ')') %}{% endif -%}
  {{ return(new != []) }}
{% endmacro %}


{#- H4: what was folded cannot be told apart any more. -#}
{% macro _refuse_below_horizon(settings, staging, moment, known_at) %}
  {%- set properties = adapter.table_state(staging).properties -%}
  {%- if 'delta_cdc.horizon' in properties -%}
    {%- set until = delta_cdc.literal(properties['delta_cdc.folded_until']) -%}
    {%- set type = delta_cdc._time_type(staging) -%}
    {%- set asked = adapter.query_rows('select '
          ~ ('coalesce(' ~ delta_cdc._moment(moment, type) ~ ' < try_cast(' ~ until ~ ' as ' ~ type ~ '), false)'
            if moment is not none else 'false') ~ ' as below, '
          ~ ('unix_micros(cast(' ~ delta_cdc._moment(known_at) ~ ' as timestamp)) < ' ~ properties['delta_cdc.folded_at']
            if known_at is not none else 'false') ~ ' as before')[0] -%}
    {%- if asked.below or asked.before -%}
      {%- do exceptions.raise_compiler_error('delta_cdc.as_of: table ' ~ settings.feed ~ '.' ~ settings.table
            ~ ' is compacted up to ' ~ properties['delta_cdc.folded_until']
            ~ ': as it was ' ~ ('at ' ~ moment if asked.below else 'known at ' ~ known_at) ~ ' can no longer be told.'
            ~ ' Ask for a later moment.') -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{#- The type of the time of a staging table's changes. -#}
{% macro _time_type(staging) %}
  {{ return((adapter.get_columns_in_relation(staging) | selectattr('name', 'equalto', '_cdc_occurred_at') | first).dtype) }}
{% endmacro %}


{#- Where a text, if there is one, cannot be read as that type, by default that of the time of a table's changes; as in a feed,
    `202607` is no year and `12:30` not that of today. of: what the type is of. -#}
{% macro _refuse_no_moment(table, text, type=none, of='the time of its changes') %}
  {%- if text is none %}{{ return('') }}{% endif -%}
  {%- set type = type or delta_cdc._time_type(table.staging) -%}
  {%- if adapter.query_rows('select ' ~ delta_cdc._cast_text(delta_cdc.literal(text), type) ~ ' is null as bad')[0].bad -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': `' ~ text ~ '` is no ' ~ type
          ~ ', which is the type of ' ~ of ~ '. Give one, e.g. 2026-01-31, or a number where the time is one.') -%}
  {%- endif -%}
{% endmacro %}


{#- SQL of a table's horizon, or none; of the type of its positions, whose decimals may have been widened since. -#}
{% macro horizon(state) %}
  {%- set at, type = state.properties.get('delta_cdc.horizon'), state.properties.get('delta_cdc.horizon_type', '') -%}
  {%- if not at %}{{ return(none) }}{% endif -%}
  {%- set position = delta_cdc.position_of(at, type) -%}
  {%- if 'decimal' not in type %}{{ return(position) }}{% endif -%}
  {{ return('cast(' ~ position ~ ' as struct<_cdc_sequence:'
      ~ adapter.evolved({}, {'at': state.columns['_cdc_sequence']}).types.at ~ ',_cdc_ordinal:bigint>)') }}
{% endmacro %}


{#-
  `below`, the usable changes up to the horizon, one row each: whether it stays (`_cdc_stays`), and whether as the one that says
  all of its row (`_cdc_is_whole`), with the columns as they are after it. Of the last life of a row that stay: its newest change;
  its first, where final shows its time; its delete, where rows outlive it. The truncates go too, unless rows outlive them.
  linked: a relation of keys that were ever part of a key change, or none. Changes there are not among the rows, so they stay as
  they are: who is who is worked out from them. Those below a truncate are of no use to it any more (A8).
-#}
{% macro _compacted(table, below, linked) -%}
{%- set settings = {} -%}
{%- do settings.update(table.settings) -%}
{%- do settings.update({'columns': delta_cdc._folded_columns(table), 'expressions': {}}) -%}
{%- set soft = settings.get('delete_mode') == 'soft' -%}
with changes as (
{{ delta_cdc.changes_of_entities(settings, below, none) }}
),
{{ delta_cdc.entity_states(settings, below, with_life=true) }},
numbered as (
  select *, {{ '_cdc_lived' if soft else '_cdc_epoch = size(_cdc_truncates)' }} as _cdc_counts,
    struct(_cdc_epoch, count_if(_cdc_ends) over (
      partition by _cdc_entity, _cdc_epoch order by {{ delta_cdc.order_of_states() }}
      rows between unbounded preceding and 1 preceding)) as _cdc_life
  from states
),
marked as (
  select *,
    {% if not soft %}not max(_cdc_ends) over life and {% endif %}_cdc_counts
      and _cdc_life = max(if(_cdc_counts, _cdc_life, null)) over (partition by _cdc_entity) as _cdc_in_last_life,
    row_number()
      over (partition by _cdc_entity, _cdc_life, _cdc_ends order by {{ delta_cdc.order_of_states('desc') }}) = 1 as _cdc_is_newest
    {%- if settings.get('created_at') %},
    row_number()
      over (partition by _cdc_entity, _cdc_life order by {{ delta_cdc.order_of_states() }}) = 1 as _cdc_is_first{% endif %}
  from numbered
  window life as (partition by _cdc_entity, _cdc_life)
)
select _cdc_batch_id, _cdc_row, {{ delta_cdc.column_list(settings['columns']) }},
  _cdc_in_last_life and (_cdc_is_newest{% if settings.get('created_at') %} or _cdc_is_first{% endif %}) as _cdc_stays,
  _cdc_is_newest and not _cdc_ends as _cdc_is_whole
from marked
{%- if linked %}
left anti join {{ linked }} as k on {{ delta_cdc.same_columns(settings['keys'], 'marked', 'k') }}
  {%- if not soft %} and marked._cdc_counts{% endif %}
{%- endif %}
{%- if not soft %}
union all
select _cdc_batch_id, _cdc_row, {{ delta_cdc.column_list(settings['columns']) }}, false, false
from {{ below }} where _cdc_op = 'T'
{%- endif %}
{%- endmacro %}


{#- All columns that staging has of the feed: history goes on to show those that are no longer listed (E3). -#}
{% macro _folded_columns(table) %}
  {{ return(table.settings.column_types.keys() | list + delta_cdc._unlisted(table.settings, table.settings.staged_types)) }}
{% endmacro %}


{#- Why a table cannot be compacted: texts, none if it can. A restored staging is refused as a run refuses it: put back it would
    not be what was folded. -#}
{% macro _against_compaction(table, state) %}
  {%- do delta_cdc._refuse_restored(table.staging, state) -%}
  {%- set settings = table.settings -%}
  {%- set problems = delta_cdc._never_compacted(settings) -%}
  {%- if delta_cdc.has_entities(settings) -%}
    {%- if table.grows -%}
      {%- do problems.append('staging has not got its columns from the configuration yet (' ~ table.grows | join(', ')
            ~ '): run `dbt run` first') -%}
    {%- endif -%}
    {#- a run stops there, and they may be put back: what is folded by others cannot -#}
    {%- set keys = delta_cdc.keys_of_staging(settings, state) -%}
    {%- if delta_cdc._are_other_keys(keys, settings['keys']) -%}
      {%- do problems.append(delta_cdc._says_other_keys(settings, keys)) -%}
    {%- elif state.notes.get('key_changes') and not settings.key_changes
          and delta_cdc._has_moved_keys(settings, table.staging, state) -%}
      {%- do problems.append('`key_changes` is false, and changes of keys were staged before: put `key_changes`, `old_keys` or'
            ~ ' `split_key_changes` back as they were') -%}
    {%- endif -%}
    {%- if settings.renamed_in_staging -%}
      {%- do problems.append('columns of it were renamed (' ~ settings.renamed_in_staging.keys() | join(', ') ~ ')') -%}
    {%- endif -%}
    {%- set final = delta_cdc._model_of(settings, 'final') -%}
    {%- if delta_cdc._open_holds(settings, table.staging) -%}
      {%- do problems.append('a change set of it is held: `delta-cdc accept` or `delta-cdc retract` it first') -%}
    {%- elif delta_cdc.progress(final).batch_id < state.committed -%}
      {%- do problems.append('final has not taken all that is staged: run `dbt run` first') -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(problems) }}
{% endmacro %}


{#- What a table says of itself that excludes compaction: texts, none if nothing does. Days are its feed's then, meant for the
    others, for beside its own they are refused as configuration. -#}
{% macro _never_compacted(settings) %}
  {%- if not delta_cdc.has_entities(settings) %}{{ return(['it has no keys, or its rows are only added']) }}{% endif -%}
  {{ return((['`alternate_keys` needs every change of a row'] if settings.get('alternate_keys') else [])
      + (['its history is a table, which could not be rebuilt'] if settings.get('history', 'view') != 'view' else [])) }}
{% endmacro %}


{#- `compact_after_days`: what is older than so many days, by the time of the source, is folded; a
    table that cannot be says why not. -#}
{% macro _compact_by_policy(settings) %}
  {%- set table = delta_cdc._as_staged(settings) -%}
  {%- if not table %}{{ return('') }}{% endif -%}
  {%- set time_type = delta_cdc._time_type(table.staging) -%}
  {%- set state = delta_cdc.progress(table.staging) -%}
  {%- set problems = delta_cdc._against_compaction(table, state) -%}
  {%- if time_type not in ('timestamp', 'timestamp_ntz', 'date') -%}
    {%- do problems.append('the time of its changes is a ' ~ time_type ~ ', which is not counted in days') -%}
  {%- endif -%}
  {%- if problems -%}
    {%- do print('table ' ~ table.name ~ ' has `compact_after_days`, and is not compacted: ' ~ problems | join('; ') ~ '.') -%}
  {%- else -%}
    {%- do delta_cdc._fold(table, state, adapter.query_rows('select cast(cast(current_timestamp() - make_dt_interval('
            ~ table.settings.compact_after_days ~ ') as ' ~ time_type ~ ') as string) as horizon')[0].horizon, told=true) -%}
  {%- endif -%}
{% endmacro %}
