{#-
  The CTEs from `changes` (usable staged changes, with _cdc_entity and the key columns as they are after the change, and for a
  row that a key change displaced an event with _cdc_ends = true and _cdc_after = 1) to `states`: one row a change, with
  the entity's columns as they are after it. Partial images fold in order inside one life (P1, P2); a delete, a
  displacement or a truncate ends the life (P4).
-#}
{% macro entity_states(settings, staging, with_life=false) -%}
{%- set keys = settings['keys'] -%}
{%- set made = settings.get('expressions') or {} -%}
{#- an expression may name any column, published or not -#}
{%- set values = ((settings.column_types.keys() | list if made else []) + settings['columns'] | reject('in', made) | list)
      | unique | reject('in', keys) | list -%}
{%- set of_life = delta_cdc._of_life(settings) if with_life else {} -%}
{{ delta_cdc.entity_lives(settings, staging) }},
{{ 'folded' if made else 'states' }} as (
  select
    _cdc_entity, _cdc_epoch, _cdc_after, {{ delta_cdc.order_columns() | join(', ') }}, _cdc_occurred_at, _cdc_ends,
    _cdc_truncates
  {%- for name, sql in of_life.items() %},
    {{ sql }} as {{ name }}
  {%- endfor %},
    {{ delta_cdc.column_list(keys) }}
  {%- for column in values %},
    {{ delta_cdc.folded(settings, column) }}.{{ delta_cdc.quoted(column) }} as {{ delta_cdc.quoted(column) }}
  {%- endfor %}
  from lives
  window life as (
    partition by _cdc_entity, _cdc_epoch, _cdc_life order by {{ delta_cdc.order_of_states() }}
    rows between unbounded preceding and current row)
)
{%- if made %},
states as (
  select _cdc_entity, _cdc_epoch, _cdc_after, {{ delta_cdc.order_columns() | join(', ') }}, _cdc_occurred_at,
    _cdc_ends, _cdc_truncates
    {%- for name in of_life %}, {{ name }}{% endfor %},
    {{ delta_cdc.column_list(keys + (settings['columns'] | reject('in', keys) | list)) }}
  from {{ delta_cdc._with_made(settings, 'folded') }}
)
{%- endif %}
{%- endmacro %}


{#- The CTEs from `changes` to `lives`: with the truncates below each change (`_cdc_epoch`), and the ends
    before it among those (`_cdc_life`). -#}
{% macro entity_lives(settings, staging) -%}
truncates as (  -- few: one array, so that each change can count those below it
  select array_sort(collect_list(struct({{ delta_cdc.order_columns() | join(', ') }}, _cdc_occurred_at))) as _cdc_truncates
  from {{ staging }} where {{ "_cdc_op = 'T' and _cdc_error is null" if settings.get('may_be_truncated', true) else 'false' }}
),
events as (
  select changes.*, truncates._cdc_truncates,
    size(filter(truncates._cdc_truncates, t ->
      struct(t.{{ delta_cdc.order_columns() | join(', t.') }})
        < struct({{ delta_cdc.order_columns() | join(', ') }}))) as _cdc_epoch
  from changes cross join truncates
),
lives as (
  select *,
    count_if(_cdc_ends) over (
      partition by _cdc_entity order by {{ delta_cdc.order_of_states() }}
      rows between unbounded preceding and 1 preceding) as _cdc_life
  from events
)
{%- endmacro %}


{#- The order of an entity's states. A truncate comes after all states of its epoch (`_cdc_after`), and so does the end of a row
    that was displaced: it may have changed once more in that transaction, and never after it (K7). -#}
{% macro order_of_states(direction='') %}
  {{ return(delta_cdc.directed(['_cdc_epoch', '_cdc_after'] + delta_cdc.order_columns() + ['_cdc_ends'], direction)) }}
{% endmacro %}


{#- `changes` for entity_states: staged changes with who they belong to.
    Without key changes the key is the entity; with them the keys table says who a change belongs to, for the keys that were
    ever part of one; all others are their own entity. Where a key change displaced another row, that one ends there (K7). -#}
{% macro changes_of_entities(settings, staging, keys_table) -%}
{%- set keys = settings['keys'] -%}
{%- set own = delta_cdc._own_entity(keys, 's.') -%}
{%- if keys_table is none -%}
  select s.*, {{ own }} as _cdc_entity, s._cdc_op = 'D' as _cdc_ends, 0 as _cdc_after
  from {{ delta_cdc.staged_rows(settings, staging) }} as s
  where s._cdc_error is null and s._cdc_op <> 'T'
{%- else -%}
  select s.*, inline(array_compact(array(
      struct(coalesce(k.entity, {{ own }}) as _cdc_entity, s._cdc_op = 'D' as _cdc_ends, 0 as _cdc_after),
      if(k.displaced_entity is null, null,
        struct(k.displaced_entity as _cdc_entity, true as _cdc_ends, 1 as _cdc_after)))))
      as (_cdc_entity, _cdc_ends, _cdc_after)
  from {{ delta_cdc.staged_rows(settings, staging) }} as s
  left join {{ keys_table }} as k on k._cdc_batch_id = s._cdc_batch_id and k._cdc_row = s._cdc_row
  where s._cdc_error is null and s._cdc_op <> 'T' and coalesce(k.origin, '') not in ('absorbed', 'unknown_delete')
{%- endif -%}
{%- endmacro %}


{#- The entity of a key that was never part of a key change. -#}
{% macro _own_entity(keys, prefix='') %}
  {{ return('sha2(' ~ delta_cdc.json_of('struct(' ~ delta_cdc.column_list(keys, prefix) ~ ')') ~ ', 256)') }}
{% endmacro %}
