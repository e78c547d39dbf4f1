{#- What a load's changes are, in one row: {rows_read, quarantined, truncates, removals, partial, late}.
    changes    a relation with staging's `_cdc_` columns
    highest    SQL of the highest position staged before (none: nothing was): changes at or below it are late
    to_stage   settings of the table that they are to be staged in: adds {repeated, late_repeated, keys_may_move, timeless,
               undeclared, undeclared_columns, time_type, highest, highest_type, late_range, late_range_type}, where repeated
               counts those that say again what another of them says (O4; without a key: what one of an earlier change set says),
               late_repeated the late ones of these, and timeless those without a time, of which the row before has an end. Of a
               key change that comes as delete and insert (K6), a half that comes alone is late -#}
{% macro about_changes(changes, highest, to_stage=none) -%}
{%- set position = 'if(_cdc_error is null, struct(_cdc_sequence, _cdc_ordinal), null)' -%}
{%- set new_highest = 'greatest(max(' ~ position ~ '), ' ~ highest ~ ')' if highest else 'max(' ~ position ~ ')' -%}
{%- set is_late = position ~ ' <= ' ~ highest if highest else 'false' -%}
{%- set late = 'count_if(' ~ is_late ~ ')' if highest else '0' %}
select
  count(*) as rows_read,
  count(_cdc_error) as quarantined,
  count_if(_cdc_op = 'T' and _cdc_error is null) as truncates,
  count_if(_cdc_op not in ('I', 'R') and _cdc_error is null) as removals,
  count_if(size(_cdc_missing) > 0 and _cdc_error is null) as partial,
  {{ late }} as late
  {%- if to_stage %},
  -- or two hashes met: then it is looked at closely for nothing
  {% set hash = 'xxhash64(' ~ delta_cdc._content_columns(to_stage) | join(', ') ~ ')' -%}
  {%- if not delta_cdc.has_key(to_stage) -%}  {#- N1: equal rows of one change set are all rows -#}
  {%- set changes = '(select *, min(_cdc_batch_id) over (partition by ' ~ hash ~ ') as _cdc_first from ' ~ changes ~ ')' -%}
  {%- set told_again = '_cdc_batch_id > _cdc_first and _cdc_sequence is not null' -%}
  count_if({{ told_again }}) as repeated,
  {{ 'count_if(' ~ told_again ~ ' and ' ~ is_late ~ ')' if highest else '0' }} as late_repeated,
  {%- elif not to_stage.get('reads_much') -%}
  count(*) - size(collect_set({{ hash }})) as repeated,
  {{ late ~ ' - size(collect_set(if(' ~ is_late ~ ', ' ~ hash ~ ', null)))' if highest else '0' }} as late_repeated,
  {%- else -%}  {#- beside other aggregates, each distinct hash has states of them all: too much where there are many -#}
  (select count(*) - count(distinct {{ hash }}) from {{ changes }}) as repeated,
  {{ '(select count(*) - count(distinct ' ~ hash ~ ') from ' ~ changes ~ ' where ' ~ is_late ~ ')' if highest else '0' }}
    as late_repeated,
  {%- endif %}
  count_if(_cdc_key_before is not null and _cdc_error is null) > 0
  {%- if to_stage.split_key_changes %}
    or {{ 'count_if(_cdc_error is null and _cdc_sequence <= ' ~ highest ~ '._cdc_sequence)' if highest else '0' }} > 0
    or (count_if(_cdc_op = 'D') > 0 and count_if(_cdc_op = 'I') > 0){% endif %} as keys_may_move,
  {{ "count_if(_cdc_op in ('U', 'D', 'T') and _cdc_error is null and _cdc_occurred_at is null)"
      if to_stage.get('occurred_at') else '0' }}
    as timeless,
  typeof(any_value(_cdc_occurred_at)) as time_type,
  count(_cdc_undeclared) as undeclared,
  array_sort(array_distinct(flatten(collect_set(map_keys(_cdc_undeclared))))) as undeclared_columns,
  {%- if highest %}
  {%- set part = 'if(' ~ position ~ ' <= ' ~ highest ~ ', '
        ~ '_cdc_sequence.' ~ delta_cdc.quoted(delta_cdc._sequence_name(to_stage.sequence_by[0], 1)) ~ ', null)' %}
  {%- set late_range = 'struct(min(' ~ part ~ ') as lowest, max(' ~ part ~ ') as highest)' %}
  {{ delta_cdc.json_of(late_range) }} as late_range,
  typeof({{ late_range }}) as late_range_type,
  {%- endif %}
  {{ delta_cdc.json_of(new_highest) }} as highest,
  typeof({{ new_highest }}) as highest_type
  {%- endif %}
from {{ changes }}
{%- endmacro %}


{#- SQL of the highest position of a staging table, up to a batch. -#}
{% macro highest_position(staging, batch_id=none) %}
  {{ return('(select max(struct(_cdc_sequence, _cdc_ordinal)) from ' ~ staging ~ ' where _cdc_error is null'
      ~ (' and _cdc_batch_id <= ' ~ batch_id if batch_id is not none else '') ~ ')') }}
{% endmacro %}


{#- SQL of a position that was noted as JSON. -#}
{% macro position_of(json, type) %}
  {{ return('from_json(' ~ delta_cdc.literal(json) ~ ', ' ~ delta_cdc.literal(type) ~ ', ' ~ delta_cdc.json_options() ~ ')') }}
{% endmacro %}

{#- Whether a position's JSON can be read back as it was: names that need no quotes, types whose JSON is exact or structs of such,
    no year of five digits and none below zero (a moment that cannot be read would be null, and nothing late any more). -#}
{% macro can_be_noted(type, json) %}
  {%- set name = '[A-Za-z_][A-Za-z0-9_]*' -%}
  {{ return(delta_cdc._is_exact(json, type, '^struct<_cdc_sequence:struct<(' ~ name ~ ':(EXACT|struct<(' ~ name
      ~ ':EXACT,?)+>),?)+>,_cdc_ordinal:bigint>$')) }}
{% endmacro %}

{% macro _is_exact(json, type, shape) %}
  {%- set shape = shape.replace('EXACT',
        '(tinyint|smallint|int|bigint|string|date|boolean|timestamp|timestamp_ntz|decimal\\(\\d+,\\d+\\))') -%}
  {{ return(modules.re.search('"[+-]', json or '') is none and modules.re.match(shape, type or '') is not none) }}
{% endmacro %}


{#- SQL: those rows of staging that a late or quarantined change of a load may repeat. Equal changes have equal
    positions and errors, so Delta need not read the files that hold other positions only. state: of staging.
    plan: `about_changes` of the load. -#}
{% macro may_be_repeated(staging, state, plan) %}
  {%- set part, wanted = '_cdc_sequence.' ~ delta_cdc.quoted(state.columns['_cdc_sequence'].fields[0].name), [] -%}
  {%- if plan.quarantined %}{% do wanted.append('_cdc_error is not null') %}{% endif -%}
  {%- if plan.late -%}
    {%- if not delta_cdc._is_exact(plan.late_range, plan.late_range_type, '^struct<lowest:EXACT,highest:EXACT>$') -%}
      {{ return(staging) }}
    {%- endif -%}
    {%- set range = delta_cdc.position_of(plan.late_range, plan.late_range_type) -%}
    {%- do wanted.append(part ~ ' between ' ~ range ~ '.lowest and ' ~ range ~ '.highest or ' ~ part ~ ' is null') -%}
  {%- endif -%}
  {{ return('(select * from ' ~ staging ~ ' where ' ~ wanted | join(' or ') ~ ')') }}
{% endmacro %}

{#- SQL: the rows of a relation at whose position a change of another one stands: of many rows those
    that need to be compared in full. -#}
{% macro at_positions_of(changes, relation) %}
  {{ return('(select s.* from ' ~ relation ~ ' as s left semi join ' ~ changes
      ~ ' as c on c._cdc_sequence <=> s._cdc_sequence)') }}
{% endmacro %}
