{#-
  A table that comes as whole copies (format `snapshots`, S10): what differs between a snapshot and the one before becomes
  changes. A row that is new or differs is an upsert, a key that is no longer there is a delete. The snapshot before the first of
  a load is what staging has last of each key.
    - A copy has whole rows: what a row does not tell (JSON without its nulls) is null in it.
    - Rows of one key that differ inside a snapshot are all refused (`duplicate_key`); equal ones are one.
    - A key whose row cannot be used is there: it is neither changed nor deleted, and the next usable row of it counts as changed.
    - A snapshot with a row whose key cannot be read deletes nothing: nobody knows what it lacks.
-#}

{#- The rows of a load's snapshots as they came, in a view that reads each file once, and what
    `changes_of_snapshots` compares them with. -#}
{% macro read_snapshots(settings, staging, lines, pending, state) %}
  {%- if settings.format == 'snapshots' -%}
    {%- if state.exists %}{% do adapter.tune_for([staging]) %}{% endif -%}
    {%- set view = staging.identifier ~ '__rows' -%}
    {%- do adapter.create_kept_view(view, 'with ' ~ delta_cdc._typed_ctes(settings, lines, last='read')
          ~ '\nselect * from read') -%}
    {%- set time_type = none if delta_cdc._is_time_of_copy(settings)
          else adapter.query_rows('select typeof(any_value(_cdc_occurred_at)) as type from ' ~ delta_cdc.quoted(view))[0].type -%}
    {%- do settings.update({'snapshots': {'rows': view, 'pending': pending, 'time_type': time_type,
            'past': delta_cdc._staged_before(settings, staging, state) if state.exists else none}}) -%}
  {%- endif -%}
{% endmacro %}


{#- Whether the time of a copy is that of its changes, and not an expression over its rows. -#}
{% macro _is_time_of_copy(settings) %}{{ return(settings.occurred_at in ('_snapshot_time', '_cdc_snapshot_time')) }}{% endmacro %}


{#- Staging's rows, with the columns that it is only about to gain, named one by one: when the load is written, it has them. -#}
{% macro _staged_before(settings, staging, state) %}
  {%- set there = state.columns.keys() | map('lower') | list -%}
  {%- set out = [] -%}
  {%- for column, type in settings.column_types.items() if column | lower not in there -%}
    {%- do out.append(', cast(null as ' ~ type ~ ') as ' ~ delta_cdc.quoted(column)) -%}
  {%- endfor -%}
  {{ return(delta_cdc.staged_rows(settings,
      '(select ' ~ delta_cdc.column_list(state.columns) ~ out | join('') ~ ' from ' ~ staging ~ ')' if out else staging)) }}
{% endmacro %}


{#- The CTEs from the rows of the snapshots to `changes`. -#}
{% macro changes_of_snapshots(settings) -%}
{%- set keys = delta_cdc.column_list(settings['keys']) -%}
{%- set columns = settings.column_types.keys() | list -%}
{%- set values = columns | reject('in', settings['keys']) | list -%}
{%- set compared = 'struct('
      ~ (delta_cdc.comparables(settings, delta_cdc._compared_columns(settings)) | join(', ') or 'null') ~ ')' -%}
{#- with its text where that does not fit, for then the value is null; a hash would skip nulls -#}
{%- set row = 'struct(' ~ delta_cdc.comparables(settings, columns) | join(', ')
      ~ ', _cdc_error, if(_cdc_error is null, null, _cdc_message))' -%}
{%- set number = settings.sequence_by[0] -%}
{%- set time_of_copy = 'coalesce(' ~ delta_cdc._time_in_name('s._cdc_change_set') ~ ', s._cdc_modified_at)' -%}
{%- set told = delta_cdc.column_list(columns)
      ~ ', _cdc_missing, _cdc_error, _cdc_message, _cdc_undeclared, _cdc_row, _cdc_occurred_at' -%}
read as (
  select * from {{ delta_cdc.quoted(settings.snapshots.rows) }}
),
snapshots as (  -- number 0: what was staged before
  select *, min(if(_cdc_is_unsure, null, _cdc_number))
    over (order by _cdc_number rows between 1 following and unbounded following) as _cdc_next_sure
  from (
    select s._cdc_number, s._cdc_batch_id, s._cdc_change_set, s._cdc_modified_at, max(read._cdc_occurred_at) as _cdc_occurred_at,
      s._cdc_number = 0 or count_if({{ delta_cdc._has_no_key(settings) }}) > 0 as _cdc_is_unsure
    from values
      (0, cast(-1 as bigint), '', cast(null as timestamp))
{%- for set in settings.snapshots.pending %},
      ({{ loop.index }}, {{ set.batch_id }}, {{ delta_cdc.literal(set.change_set) }},
        {{ "timestamp_micros(" ~ (set.modified_at.timestamp() * 1000000) | int ~ ")" if set.modified_at else 'null' }})
{%- endfor %}
      as s (_cdc_number, _cdc_batch_id, _cdc_change_set, _cdc_modified_at)
    left join read on read._cdc_batch_id = s._cdc_batch_id
    group by all
  )
),
nameless as (  -- rows without a key are marked, and no more
  select {{ told }}, _cdc_op, _cdc_sequence, _cdc_batch_id, _cdc_change_set
  from read where {{ delta_cdc._has_no_key(settings) }} or _cdc_error <=> 'erased'
),
told as (  -- what each snapshot says of a key
{%- if settings.snapshots.past %}
  select 0 as _cdc_number, {{ delta_cdc.column_list(columns) }}, _cdc_missing, _cdc_error, _cdc_raw as _cdc_message,
    _cdc_undeclared, _cdc_row, _cdc_occurred_at, _cdc_op = 'D' as _cdc_is_gone
  from (
    select *, row_number() over (partition by {{ keys }} order by _cdc_batch_id desc, _cdc_row desc) as _cdc_newest_first
    from {{ settings.snapshots.past }} as past
    where not coalesce(_cdc_error in ('retracted', 'erased'), false) and not ({{ delta_cdc._has_no_key(settings) }})
  )
  where _cdc_newest_first = 1
  union all
{%- endif %}
  select _cdc_number, {{ delta_cdc.column_list(columns) }}, _cdc_missing,
    coalesce(_cdc_error, if(_cdc_lowest <> _cdc_highest, 'duplicate_key', null)) as _cdc_error,
    _cdc_message, _cdc_undeclared, _cdc_row, _cdc_occurred_at, false as _cdc_is_gone
  from (
    select read.*, s._cdc_number,
      min({{ row }}) over same as _cdc_lowest,
      max({{ row }}) over same as _cdc_highest,
      row_number() over (partition by s._cdc_number, {{ keys }}, {{ row }} order by _cdc_row) as _cdc_of_equal
    from read join snapshots as s on s._cdc_batch_id = read._cdc_batch_id
    where not ({{ delta_cdc._has_no_key(settings) }}) and not _cdc_error <=> 'erased'
    window same as (partition by s._cdc_number, {{ keys }})
  )
  where _cdc_of_equal = 1
),
compared as (
  select told.*, s._cdc_next_sure,
    lag(struct(told._cdc_number, s._cdc_next_sure, {{ compared }} as compared, _cdc_error, _cdc_message, _cdc_is_gone))
      over key as _cdc_before,
    lead(told._cdc_number) over key as _cdc_next
  from told join snapshots as s on s._cdc_number = told._cdc_number
  window key as (partition by {{ keys }} order by told._cdc_number, _cdc_row)
),
changed as (
  select {{ told }}, _cdc_number, 'U' as _cdc_op
  from compared
  where _cdc_number > 0 and case
    when _cdc_before is null or _cdc_before._cdc_next_sure < _cdc_number then true
    when _cdc_error is not null then not (_cdc_before._cdc_error <=> _cdc_error and _cdc_before._cdc_message <=> _cdc_message)
    else _cdc_before._cdc_error is not null or _cdc_before._cdc_is_gone or not _cdc_before.compared <=> {{ compared }}
  end
  union all  -- deleted by the first snapshot without it that tells all of its keys
  select {% for column in columns -%}
    {{ delta_cdc.quoted(column) if column in settings['keys'] else 'null' }}, {% endfor %}array(), null, null, null,
    -row_number() over (partition by _cdc_next_sure order by {{ keys }}), null, _cdc_next_sure, 'D'
  from compared
  where not _cdc_is_gone and _cdc_next_sure < coalesce(_cdc_next, 2147483647)
),
placed as (
  select {{ delta_cdc.column_list(columns, 'changed.') }}, changed._cdc_missing,
    changed._cdc_error, changed._cdc_message, changed._cdc_undeclared, changed._cdc_row,
    {#- a copy without rows tells none: by the time of its rows a delete would undo them from their beginning #}
    {{ time_of_copy if delta_cdc._is_time_of_copy(settings)
        else 'coalesce(changed._cdc_occurred_at, s._cdc_occurred_at'
          ~ (', cast(' ~ time_of_copy ~ ' as ' ~ settings.snapshots.time_type ~ ')'
            if settings.snapshots.time_type in ('timestamp', 'timestamp_ntz', 'date') else '') ~ ')' }} as _cdc_occurred_at,
    changed._cdc_op, s._cdc_batch_id as {{ number }}, s._cdc_batch_id, s._cdc_change_set
  from changed join snapshots as s on s._cdc_number = changed._cdc_number
),
changes as (
  select {{ delta_cdc.column_list(columns) }}, _cdc_op, {{ delta_cdc._no_key_before(settings) }} as _cdc_key_before,
    _cdc_sequence, cast(null as bigint) as _cdc_ordinal,
    cast(null as string) as _cdc_transaction, _cdc_occurred_at, _cdc_missing, _cdc_undeclared, _cdc_error,
    if(_cdc_error is null or _cdc_error = 'erased', null, _cdc_message) as _cdc_raw,
    _cdc_batch_id, _cdc_change_set, _cdc_row, current_timestamp() as _cdc_staged_at
  from (
    select * except ({{ number }}), {{ delta_cdc._sequence(settings) }} as _cdc_sequence from placed
    union all
    select {{ told }}, _cdc_op, _cdc_batch_id, _cdc_change_set, _cdc_sequence from nameless
  )
)
{%- endmacro %}


{#- Whether a row's key cannot be read. -#}
{% macro _has_no_key(settings) %}
  {%- set errors = ['unparsable', 'null_key'] -%}
  {%- for key in settings['keys'] %}{% do errors.append('cast:' ~ key) %}{% endfor -%}
  {{ return('coalesce(_cdc_error in (' ~ delta_cdc._literals(errors) ~ '), false)') }}
{% endmacro %}


{#- The columns by which a row differs from what it was: those that are published, unless `expressions` may look at others. Of
    `set_on_insert` a compaction left the first value alone (R1), which the newest copy need not have. -#}
{% macro _compared_columns(settings) %}
  {%- set kept = settings['keys'] + (settings.get('set_on_insert') or [] if settings.get('horizon') else []) -%}
  {%- set all = settings.column_types.keys() | reject('in', kept) | list -%}
  {{ return(all if settings.get('expressions') else all | select('in', settings['columns']) | list) }}
{% endmacro %}


{#- Snapshots do not tell that a key changed; the type is that of staging's column. -#}
{% macro _no_key_before(settings) %}
  {%- set out = [] -%}
  {%- for key in settings.get('key_fields') or settings['keys'] -%}
    {%- do out.append((delta_cdc.quoted(key) if key in settings['keys'] else 'null') ~ ' as ' ~ delta_cdc.quoted(key)) -%}
  {%- endfor -%}
  {{ return('case when false then struct(' ~ out | join(', ') ~ ') end') }}
{% endmacro %}
