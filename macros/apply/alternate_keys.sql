{#- Events that do not tell their key but the values of an alternate one (K8): staging looks for the row that has these
    values as of the event's position, among what was staged before and what the load brings, and gives the event its key;
    none or several: `ambiguous_key`. -#}

{#- The columns of which the alternate keys are made, each once. -#}
{% macro _alternate_columns(settings) %}
  {{ return((settings.get('alternate_keys') or []) | sum(start=[]) | unique | list) }}
{% endmacro %}


{#- SQL that is true of an event that names its row so. A null that is told of one of `nullable_keys` is the row's key. -#}
{% macro _is_nameless(settings) %}
  {%- set unknown, nullable = [], settings.get('nullable_keys') or [] -%}
  {%- for key in settings['keys'] -%}
    {%- do unknown.append(delta_cdc.quoted(key) ~ ' is null and _cdc_before_' ~ loop.index
          ~ ' is null and not _cdc_misfit <=> ' ~ delta_cdc.literal(key)) -%}
    {%- if key in nullable -%}
      {%- do unknown.append('array_contains(_cdc_absent, ' ~ delta_cdc.literal(key) ~ ')') -%}
      {%- if settings.get('full_images') %}{% do unknown.append('_cdc_told_' ~ loop.index ~ ' is not true') %}{% endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set told = [] -%}
  {%- for alternate in settings.alternate_keys %}{% do told.append('_cdc_named_by._' ~ loop.index ~ ' is not null') %}{% endfor -%}
  {{ return("_cdc_op <> 'T' and " ~ unknown | join(' and ') ~ ' and (' ~ told | join(' or ') ~ ')') }}
{% endmacro %}


{#- A struct with a struct of the values of each alternate key, as the row had them before the event where it tells all of them so,
    else as it has them after; null where neither is told. named: the columns of which `_cdc_before_<place>` are the values before. -#}
{% macro _alternate_values(settings, named) %}
  {%- set out = [] -%}
  {%- for alternate in settings.alternate_keys -%}
    {%- set old, new, old_as_new = [], delta_cdc.all_quoted(alternate), [] -%}
    {%- for column in alternate -%}
      {%- do old.append('_cdc_before_' ~ (named.index(column) + 1)) -%}
      {%- do old_as_new.append(old[-1] ~ ' as ' ~ new[loop.index0]) -%}
    {%- endfor -%}
    {%- do out.append('case when ' ~ old | join(' is not null and ') ~ ' is not null then struct(' ~ old_as_new | join(', ')
          ~ ') when ' ~ new | join(' is not null and ') ~ ' is not null then struct(' ~ new | join(', ')
          ~ ') end as _' ~ loop.index) -%}
  {%- endfor -%}
  {{ return('struct(' ~ out | join(', ') ~ ')') }}
{% endmacro %}


{#- For each alternate key, SQL that is true where an event names the row of `held` by it. -#}
{% macro _names_by_each(settings, event) %}
  {%- set out = [] -%}
  {%- for alternate in settings.alternate_keys -%}
    {%- do out.append('(' ~ delta_cdc.same_columns(alternate, event ~ '._cdc_named_by._' ~ loop.index, 'held', '=') ~ ')') -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- SQL that is true where an event names the row of `held`. -#}
{% macro _names(settings, event) %}{{ return('(' ~ delta_cdc._names_by_each(settings, event) | join(' or ') ~ ')') }}{% endmacro %}

{#- SQL that is true where the row of `held` no longer has what `e` names it by: the event `d` names that row too, and deletes it
    or gives it other values. Only what the row had told by then: what it tells later it has since. -#}
{% macro _is_given_up(settings) %}
  {%- set named, gone = [], [] -%}
  {%- set by_d, by_e = delta_cdc._names_by_each(settings, 'd'), delta_cdc._names_by_each(settings, 'e') -%}
  {%- for alternate in settings.alternate_keys -%}
    {%- set told = 'held._cdc_said_' ~ loop.index ~ ' < d._cdc_place' -%}
    {%- do named.append(by_d[loop.index0] ~ ' and ' ~ told) -%}
    {%- do gone.append('(not coalesce(' ~ by_e[loop.index0] ~ ', false) or (' ~ told ~ " and (d._cdc_op = 'D' or coalesce(not ("
          ~ delta_cdc.same_columns(alternate, 'd', 'held', '=') ~ '), false))))') -%}
  {%- endfor -%}
  {{ return('(' ~ named | join(' or ') ~ ') and ' ~ gone | join(' and ')) }}
{% endmacro %}


{#- The CTEs from `read` to `changes`. past: what was staged before, or none. read: the CTEs up to `read`, of which who is who
    across key changes is worked out beforehand: a row is known by the values that it brought along, too. That takes all of
    staging: only where an event asks for it. -#}
{% macro _named_by_alternate_keys(settings, past, read) -%}
{%- set keys = settings['keys'] -%}
{%- set values = delta_cdc._alternate_columns(settings) | reject('in', keys) | list -%}
{%- set place = 'struct(' ~ delta_cdc.order_columns() | join(', ') ~ ')' -%}
{%- set said, places, unsaid = [], [], [] -%}
{%- for alternate in settings.alternate_keys -%}
  {%- do said.append('_cdc_said_' ~ loop.index) -%}
  {%- do places.append(place ~ ' as ' ~ said[-1]) -%}
  {%- do unsaid.append('if(arrays_overlap(_cdc_missing, array(' ~ delta_cdc._literals(alternate) ~ ")), array('" ~ said[-1]
        ~ "'), array())") -%}
{%- endfor -%}
{%- set known, who = delta_cdc._known_changes(settings, past), none -%}
{%- if settings.key_changes and adapter.query_rows(
      'with ' ~ read ~ '\nselect 1 as found from read where _cdc_is_nameless and _cdc_error is null limit 1') -%}
  {%- set view = delta_cdc.model_name(settings, 'staging') ~ '__known_keys' -%}
  {%- do adapter.create_view_from_python(view, 'delta_cdc.keys.known_key_changes', {
        'staging': '(with ' ~ read ~ ',\n' ~ known ~ '\nselect * from known)', 'keys': keys,
        'pair_split_key_changes': settings.get('split_key_changes') or false}) -%}
  {%- set who = delta_cdc.quoted(view) -%}
{%- endif -%}
{{ known }},
held as (  -- from which place to which a row had which key and values
  with told as (  -- and where each alternate key was told last: a value that was carried along may be from before a deletion
    select * except (_cdc_missing), {{ places | join(', ') }}, concat(_cdc_missing, {{ unsaid | join(', ') }}) as _cdc_missing
    from known
  ),
  changes as (
    {{ delta_cdc.changes_of_entities({'keys': keys}, 'told', who) }}
  ),
  {{ delta_cdc.entity_states({'keys': keys, 'columns': keys + values + said}, 'told') }}
  select {{ delta_cdc.column_list(keys + values) }}, _cdc_ends, {{ place }} as _cdc_from,
  {%- for name in said %}
    coalesce({{ name }}, {{ place }}) as {{ name }},
  {%- endfor %}
    coalesce(
      lead({{ place }}) over (partition by _cdc_entity, _cdc_epoch order by {{ delta_cdc.order_of_states() }}),
      if(_cdc_epoch < size(_cdc_truncates),
        struct({{ delta_cdc.order_columns() | map('replace', '_cdc_', '_cdc_truncates[_cdc_epoch]._cdc_', 1) | join(', ') }}),
        null)) as _cdc_to
  from states
),
nameless as (
  select *, struct(_cdc_sequence, _cdc_ordinal) as _cdc_position, {{ place }} as _cdc_place
  from read where _cdc_is_nameless and _cdc_error is null
),
meant as (  -- what another batch brought for the very position of the event counts neither way: it may be the same event
  select e._cdc_batch_id, e._cdc_row, collect_set(struct({{ delta_cdc.column_list(keys, 'held.') }})) as _cdc_meant
  from nameless as e
  join held on {{ delta_cdc._names(settings, 'e') }} and not held._cdc_ends
    and held._cdc_from < e._cdc_place and not {{ delta_cdc._is_elsewhere('held._cdc_from') }}
    and (held._cdc_to is null or e._cdc_place <= held._cdc_to or {{ delta_cdc._is_elsewhere('held._cdc_to') }})
  where not exists (  -- deleted by such an event, or called otherwise since
    select 1 from nameless as d
    where {{ delta_cdc._is_given_up(settings) }}
      and (d._cdc_position < e._cdc_position
        -- or it stands above it in its change set, at its position, and is no copy of it
        or (d._cdc_position <=> e._cdc_position and d._cdc_batch_id = e._cdc_batch_id and d._cdc_row < e._cdc_row
          and not ({{ delta_cdc.same_columns(['_cdc_op', '_cdc_named_by'] + values, 'd', 'e') }})))
  )
  group by all
),
changes as (
  select * except (_cdc_message), if(_cdc_error is null, null, _cdc_message) as _cdc_raw from (
    select read.* except ({{ delta_cdc.column_list(keys) }}, _cdc_error, _cdc_named_by),
  {%- for key in keys %}
      if(_cdc_is_nameless, if(size(_cdc_meant) = 1, _cdc_meant[0], null).{{ delta_cdc.quoted(key) }},
        read.{{ delta_cdc.quoted(key) }}) as {{ delta_cdc.quoted(key) }},
  {%- endfor %}
      if(_cdc_is_nameless and not coalesce(size(_cdc_meant) = 1, false),
        coalesce(read._cdc_error, 'ambiguous_key'), read._cdc_error) as _cdc_error
    from read left join meant on meant._cdc_batch_id = read._cdc_batch_id and meant._cdc_row = read._cdc_row
  )
)
{%- endmacro %}

{#- The CTEs `told_once` and `known`: what tells its key, of the load and of what was staged before. A key change that comes again
    would find nobody at its old key, and displace the row that it had moved: changes that are equal in all that counts here
    are told once, as equal ones are staged (O4). -#}
{% macro _known_changes(settings, past) -%}
{%- set values = delta_cdc._alternate_columns(settings) | reject('in', settings['keys']) | list -%}
{%- set fields = ['_cdc_op', '_cdc_key_before', '_cdc_sequence', '_cdc_ordinal', '_cdc_transaction', '_cdc_unsaid'] -%}
{%- set told = delta_cdc.all_quoted(settings['keys'] + values) + fields[:-1] -%}
{%- set content = (told + fields[-1:]) | join(', ') -%}
{%- set unsaid = 'sort_array(array_intersect(_cdc_missing, array(' ~ delta_cdc._literals(values) ~ ')))' -%}
{%- set columns = told | join(', ') ~ ', _cdc_missing, _cdc_occurred_at, _cdc_error, _cdc_batch_id, _cdc_change_set, _cdc_row' -%}
told_once as (
  select * from (
    select *, min(_cdc_batch_id) over (partition by {{ content }}) as _cdc_first_batch_id,
      lag(struct({{ content }})) over (
        partition by _cdc_batch_id, {{ delta_cdc.column_list(settings['keys']) }}, _cdc_sequence, _cdc_ordinal
        order by _cdc_row) as _cdc_change_before
    from (
      select {{ columns }}, {{ unsaid }} as _cdc_unsaid from read where _cdc_error is null and not _cdc_is_nameless
    )
  ) as told
  where _cdc_batch_id = _cdc_first_batch_id and not struct({{ content }}) <=> _cdc_change_before
{%- if past %}
    and not exists (
      select 1 from (select {{ columns }}, {{ unsaid }} as _cdc_unsaid from {{ past }} where _cdc_error is null) as past
      where {{ delta_cdc.same_columns(settings['keys'] + values + fields, 'past', 'told') }})
{%- endif %}
),
known as (
  select {{ columns }} from told_once
{%- if past %}
  union all
  select {{ columns }} from {{ past }} where _cdc_error is null
{%- endif %}
)
{%- endmacro %}

{#- Whether a place is at the position of the event `e`, and of another batch. -#}
{% macro _is_elsewhere(place) %}
  {{ return('(struct(' ~ place ~ '._cdc_sequence, ' ~ place ~ '._cdc_ordinal) <=> e._cdc_position and '
      ~ place ~ '._cdc_batch_id <> e._cdc_batch_id)') }}
{% endmacro %}
