{#-
  A table without a key whose rows are their values (N1): each insert adds one, a delete or the old side of an update takes one
  equal row away (the oldest), if there is one. One row for each that was ever added, with `_cdc_is_gone`; of equal rows the
  newest live. done: only of values that changes above this batch touch; none: all.
-#}
{% macro multiset_rows(settings, staging, done=none) -%}
{%- set values = delta_cdc._values_of_multiset(settings) -%}
{%- set others = (settings.column_types.keys() | list
        + settings['columns'] | reject('in', settings.get('expressions') or {}) | list)
      | unique | reject('in', values) | list -%}
{%- set order = delta_cdc.order_columns() | join(', ') -%}
with staged as (
  select * from {{ delta_cdc.staged_rows(settings, staging) }}
  where _cdc_error is null and _cdc_op <> 'T' and coalesce(
    struct({{ order }}) > (select max(struct({{ order }})) from {{ staging }} where _cdc_op = 'T' and _cdc_error is null), true)
),
events as (
  select {{ delta_cdc.column_list(values + others) }}, {{ order }}, if(_cdc_op = 'D', -1, 1) as _cdc_adds from staged
  union all
  select {{ delta_cdc.column_list(values, '_cdc_key_before.') }}, {{ 'null, ' * (others | length) }}{{ order }}, -1 from staged
  where _cdc_key_before is not null
),
{%- if done is not none %}
touched as (
  select distinct {{ delta_cdc.column_list(values) }} from events where _cdc_batch_id > {{ done }}
),
{%- endif %}
running as (
  select *, sum(_cdc_adds) over (
    partition by {{ delta_cdc.column_list(values) }}
      order by {{ delta_cdc.order_by() }}, _cdc_adds rows between unbounded preceding and current row) as _cdc_sum
  from events as _cdc_event
  {%- if done is not none %}
  where exists (select 1 from touched where {{ delta_cdc.same_columns(values, 'touched', '_cdc_event') }})
  {%- endif %}
),
counted as (  -- there are never fewer than none: what was taken away in vain does not count
  select *,
    sum(_cdc_adds) over same - least(0, min(_cdc_sum) over same) as _cdc_live,
    row_number() over (partition by {{ delta_cdc.column_list(values) }}, _cdc_adds
        order by {{ delta_cdc.order_by('desc') }}) as _cdc_newest_first
  from running
  window same as (partition by {{ delta_cdc.column_list(values) }})
),
numbered as (
  select *, _cdc_newest_first > _cdc_live as _cdc_is_gone,
    if(_cdc_newest_first > _cdc_live, _cdc_newest_first, _cdc_live - _cdc_newest_first + 1) as _cdc_occurrence
  from counted where _cdc_adds = 1
)
{%- if settings.surrogate == 'hash' %},
keyed as (  -- of the values as they came
  select *, {{ delta_cdc._surrogate(values) }} as _cdc_key from numbered
)
{%- endif %}
select {{ delta_cdc._final_select(settings) }}, _cdc_is_gone
from {{ delta_cdc._with_made(settings, 'keyed' if settings.surrogate == 'hash' else 'numbered') }}
{%- endmacro %}


{#- Staging reads a row of a multiset as if its values were its key, and every update as a change of it. -#}
{% macro read_as_multiset(settings) %}
  {%- if settings.keyless == 'multiset' -%}
    {%- do settings.update({'values': delta_cdc._values_of_multiset(settings), 'key_changes': true, 'full_images': true}) -%}
  {%- endif -%}
{% endmacro %}


{#- The columns by which rows are equal: those of final, but for what only says when and how a change came, by itself or in an
    expression. -#}
{% macro _values_of_multiset(settings) %}
  {%- set columns = delta_cdc._chosen_columns(settings, settings.column_types.keys() | list) -%}
  {%- set operation = delta_cdc.quoted(settings.operation) if settings.operation else none -%}
  {{ return(columns | reject('in', delta_cdc.columns_named(columns,
        settings.sequence_by + [settings.ordinal, settings.transaction, settings.occurred_at, operation,
          settings.get('deleted_when'), settings.get('truncated_when')])) | list) }}
{% endmacro %}


{#- What the surrogates of final's rows are made of: with another column or type all of them are others. -#}
{% macro note_surrogate(settings) %}
  {%- set out = [] -%}
  {%- for column in delta_cdc._values_of_multiset(settings) -%}
    {%- do out.append(delta_cdc.quoted(column) ~ ' ' ~ settings.column_types[column]) -%}
  {%- endfor -%}
  {%- do settings.update({'surrogate_of': out | join(', ')}) -%}
{% endmacro %}

{% macro _surrogate(values) %}
  {{ return('sha2(' ~ delta_cdc.json_of('struct(' ~ delta_cdc.column_list(values) ~ ', _cdc_occurrence)') ~ ', 256)') }}
{% endmacro %}
