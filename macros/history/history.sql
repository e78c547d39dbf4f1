{#-
  hist_<feed>__<table> (SCD2): one row a version, by source time (rules H1 to H3).
  valid_from inclusive, valid_to exclusive, null = open.
-#}
{% macro history(source_table, staging, keys=none) -%}
{%- set settings = delta_cdc.settings(source_table) -%}
{%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
{%- set published = settings['columns'] -%}
{%- set tracked = settings['tracked'] + (settings['keys'] | reject('in', settings['tracked']) | list) -%}
with changes as (
{{ delta_cdc.changes_of_entities(settings, staging, keys) }}
),
{{ delta_cdc.entity_states(settings, staging) }},
with_truncates as (  -- a truncate ends what lives below it
  select *, 0 as _cdc_after from states
  union all
  select * except (_cdc_newest_first), 1 from (
    select
      _cdc_entity, _cdc_epoch, _cdc_truncates[_cdc_epoch]._cdc_sequence as _cdc_sequence, _cdc_truncates[_cdc_epoch]._cdc_ordinal as _cdc_ordinal,
      _cdc_truncates[_cdc_epoch]._cdc_batch_id as _cdc_batch_id, _cdc_truncates[_cdc_epoch]._cdc_row as _cdc_row,
      _cdc_truncates[_cdc_epoch]._cdc_occurred_at as _cdc_occurred_at, true as _cdc_ends, _cdc_truncates,
      {{ delta_cdc.column_list(settings['keys'] + (published | reject('in', settings['keys']) | list)) }},
      row_number() over (partition by _cdc_entity, _cdc_epoch order by {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as _cdc_newest_first
    from states where _cdc_epoch < size(_cdc_truncates)
  ) where _cdc_newest_first = 1
),
timed as (  -- source time never runs backwards along the order
  select *, max(_cdc_occurred_at) over (
    partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends
    rows between unbounded preceding and current row) as _cdc_time
  from with_truncates
),
moments as (  -- of several states at one moment the last one counts: a version of zero length is none
  select * except (_cdc_newest_first) from (
    select *, row_number() over (
      partition by _cdc_entity, _cdc_time order by _cdc_epoch desc, _cdc_after desc, {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as _cdc_newest_first
    from timed
  ) where _cdc_newest_first = 1
),
marked as (  -- where what is tracked differs from the state before, a version begins
  select *,
    if(_cdc_ends, null, struct({{ delta_cdc.column_list(tracked) }})) is distinct from lag(if(_cdc_ends, null, struct({{ delta_cdc.column_list(tracked) }}))) over entity
      or row_number() over entity = 1 as _cdc_begins
  from moments
  window entity as (partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends)
),
numbered as (
  select *, count_if(_cdc_begins) over (
    partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends
    rows between unbounded preceding and current row) as _cdc_version
  from marked
),
versions as (
  select *, first_value(_cdc_time) over version_in_order as _cdc_began,
    row_number() over (partition by _cdc_entity, _cdc_version order by _cdc_epoch desc, _cdc_after desc, {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as _cdc_newest_first
  from numbered
  window version_in_order as (partition by _cdc_entity, _cdc_version order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends
    rows between unbounded preceding and unbounded following)
),
spans as (
  select *, lead(_cdc_began) over (partition by _cdc_entity order by _cdc_version) as _cdc_ended, lead(_cdc_version) over (partition by _cdc_entity order by _cdc_version) is null as _cdc_is_last
  from versions where _cdc_newest_first = 1
)
select
  {{ delta_cdc.column_list(published) }},
  _cdc_entity, _cdc_began as valid_from, _cdc_ended as valid_to, _cdc_is_last as is_current, _cdc_sequence
from spans
where not _cdc_ends
{%- endmacro %}
