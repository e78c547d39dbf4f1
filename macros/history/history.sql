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
{{ delta_cdc.entity_states(settings) }},
with_truncates as (  -- a truncate ends what lives below it
  select *, 0 as _cdc_after from states
  union all
  select * except (truncates, newest_first), truncates, 1 from (
    select
      _cdc_entity, _cdc_epoch, truncates[_cdc_epoch]._cdc_sequence as _cdc_sequence, truncates[_cdc_epoch]._cdc_ordinal as _cdc_ordinal,
      truncates[_cdc_epoch]._cdc_batch_id as _cdc_batch_id, truncates[_cdc_epoch]._cdc_row as _cdc_row,
      truncates[_cdc_epoch]._cdc_occurred_at as _cdc_occurred_at, true as _cdc_ends, truncates,
      {{ delta_cdc.column_list(settings['keys'] + (published | reject('in', settings['keys']) | list)) }},
      row_number() over (partition by _cdc_entity, _cdc_epoch order by {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as newest_first
    from states where _cdc_epoch < size(truncates)
  ) where newest_first = 1
),
timed as (  -- source time never runs backwards along the order
  select *, max(_cdc_occurred_at) over (
    partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends
    rows between unbounded preceding and current row) as _cdc_time
  from with_truncates
),
moments as (  -- of several states at one moment the last one counts: a version of zero length is none
  select * from (
    select *, row_number() over (
      partition by _cdc_entity, _cdc_time order by _cdc_epoch desc, _cdc_after desc, {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as newest_first
    from timed
  ) where newest_first = 1
),
marked as (  -- where what is tracked differs from the state before, a version begins
  select *,
    if(_cdc_ends, null, struct({{ delta_cdc.column_list(tracked) }})) is distinct from lag(if(_cdc_ends, null, struct({{ delta_cdc.column_list(tracked) }}))) over entity
      or row_number() over entity = 1 as begins
  from moments
  window entity as (partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends)
),
numbered as (
  select *, count_if(begins) over (
    partition by _cdc_entity order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends
    rows between unbounded preceding and current row) as version
  from marked
),
versions as (
  select *, first_value(_cdc_time) over (version_in_order rows between unbounded preceding and unbounded following) as began,
    row_number() over (partition by _cdc_entity, version order by _cdc_epoch desc, _cdc_after desc, {{ delta_cdc.order_by('desc') }}, _cdc_ends desc) as newest_first
  from numbered
  window version_in_order as (partition by _cdc_entity, version order by _cdc_epoch, _cdc_after, {{ delta_cdc.order_by() }}, _cdc_ends)
),
spans as (
  select *, lead(began) over (partition by _cdc_entity order by version) as ended, lead(version) over (partition by _cdc_entity order by version) is null as is_last
  from versions where newest_first = 1
)
select
  {{ delta_cdc.column_list(published) }},
  _cdc_entity, began as valid_from, ended as valid_to, is_last as is_current, _cdc_sequence
from spans
where not _cdc_ends
{%- endmacro %}
