{#- One row of a source table, named by a key that it has or had: by temporary views alone, so that
    no value stands in any SQL text. -#}
{#- The views `cdc_named_key`, `cdc_changes_of_row` and `cdc_keys_of_row`; returns the batches in
    which the row's changes came. erasing: with those that may tell of it though they count as another row's. -#}
{% macro view_row(table, erasing=false) %}
  {%- do delta_cdc._view_named_key(table) -%}
  {%- do adapter.create_kept_view('cdc_changes_of_row', delta_cdc._changes_of_row(table, erasing)) -%}
  {%- do adapter.create_kept_view('cdc_keys_of_row', delta_cdc._keys_of_row(table.settings)) -%}
  {{ return(adapter.query_rows('select array_sort(collect_set(_cdc_batch_id)) as batches from cdc_changes_of_row')[0].batches) }}
{% endmacro %}


{#- The error of a command that names a key which staging does not have. -#}
{% macro refuse_unknown_key(table) %}
  {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': there is no change at that key (' ~ table.settings['keys']
        | join(', ') ~ '). Staging has the keys as they are written; of a column with `mask` give the masked value.') -%}
{% endmacro %}


{#- `cdc_named_key`: the key that the row was named by, typed. -#}
{% macro _view_named_key(table) %}
  {%- set keys = table.settings['keys'] -%}
  {%- do adapter.create_values_view('cdc_named_key_text', keys, [adapter.secret('key')]) -%}
  {%- set typed, checks = [], [] -%}
  {%- for key in keys -%}
    {%- set type = table.settings.column_types[key] -%}
    {#- bytes as `rows` writes them: a cast gives those of the text #}
    {%- set cast = delta_cdc.rows_value(delta_cdc.quoted(key), type, {}, key) if type | lower | trim == 'binary'
          else 'try_cast(' ~ delta_cdc.quoted(key) ~ ' as ' ~ type ~ ')' -%}
    {%- do typed.append(cast ~ ' as ' ~ delta_cdc.quoted(key)) -%}
    {#- a number that the type would round is not of it: another row would be meant -#}
    {%- set rounded = ' or not try_cast(' ~ delta_cdc.quoted(key) ~ ' as decimal(38,18)) <=> try_cast(' ~ cast
          ~ ' as decimal(38,18))'
          if modules.re.match('(?i)\\s*(decimal|(tiny|small|big)?int)\\b', type) else '' -%}
    {%- do checks.append('if(' ~ cast ~ ' is null' ~ rounded ~ ', ' ~ delta_cdc.literal(key) ~ ', null)') -%}
  {%- endfor -%}
  {%- set bad = adapter.query_rows('select array_compact(array('
        ~ checks | join(', ') ~ ')) as bad from cdc_named_key_text')[0].bad -%}
  {%- if bad -%}
    {%- set told = [] -%}
    {%- for key in bad %}{% do told.append(key ~ ' is not of its type, ' ~ table.settings.column_types[key]) %}{% endfor -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': what is given for ' ~ told | join('; for ')
          ~ '. Give a value for each of ' ~ keys | join(', ') ~ ', in this order.') -%}
  {%- endif -%}
  {%- do adapter.create_kept_view('cdc_named_key', 'select ' ~ typed | join(', ') ~ ' from cdc_named_key_text') -%}
{% endmacro %}


{#- All that staging holds of the row: what is at the key, what moved away from it, and where keys changed the same row's changes
    under its other keys, those that cannot be used too. erasing: as of `view_row`. -#}
{% macro _changes_of_row(table, erasing=false) -%}
{%- set settings = table.settings -%}
{%- set keys = settings['keys'] -%}
{%- set keys_table = delta_cdc._keys_table(settings) -%}
{%- set entities -%}
select e.entity from {{ keys_table }} as e cross join cdc_named_key as k where e.entity is not null and (
      (e.key_after is not null and {{ delta_cdc.same_columns(keys, 'e.key_after', 'k') }})
      or (e.key_before is not null and {{ delta_cdc.same_columns(keys, 'e.key_before', 'k') }}))
{%- endset -%}
select s.* from {{ table.staging }} as s cross join cdc_named_key as k
where not s._cdc_error <=> 'erased' and not s._cdc_error <=> 'unparsable' and (
  ({{ delta_cdc.same_columns(keys, 's', 'k') }} and not s._cdc_op <=> 'T')
  or (s._cdc_key_before is not null and {{ delta_cdc.same_columns(keys, 's._cdc_key_before', 'k') }})
{%- if keys_table %}
  or (s._cdc_batch_id, s._cdc_row) in (
    select c._cdc_batch_id, c._cdc_row from {{ keys_table }} as c
    where c.entity in ({{ entities }}))
  or (s._cdc_error is not null and exists (
    select 1 from (select explode(array_compact(array(c.key_before, c.key_after))) as key from {{ keys_table }} as c
      where c.entity in ({{ entities }})) as had
    where {{ delta_cdc.same_columns(keys, 's', 'had.key') }}))
  -- the delete that is half of a key change (K6) is of no entity
  or (s._cdc_op = 'D' and (s._cdc_batch_id, s._cdc_row) in (
    select a._cdc_batch_id, a._cdc_row from {{ keys_table }} as a where a.origin = 'absorbed')
    and exists (
      select 1 from (select c.key_before as key, c._cdc_sequence as place from {{ keys_table }} as c
        where c.key_before is not null and c._cdc_op <> 'D' and c.entity in ({{ entities }})) as moved
      where {{ delta_cdc.same_columns(keys, 's', 'moved.key') }} and s._cdc_sequence <=> moved.place))
{%- endif %}
{%- if keys_table and erasing %}
  -- at a key from which the row displaced another one, their transaction's later updates count as the other's (K3, K7)
  or (s._cdc_batch_id, s._cdc_row) in (
    select u._cdc_batch_id, u._cdc_row from {{ keys_table }} as m
    join {{ keys_table }} as o on o.entity = m.displaced_entity and {{ delta_cdc.same_columns(keys, 'o.key_after', 'm.key_after') }}
    join {{ table.staging }} as c on c._cdc_batch_id = m._cdc_batch_id and c._cdc_row = m._cdc_row
    join {{ table.staging }} as u on u._cdc_batch_id = o._cdc_batch_id and u._cdc_row = o._cdc_row
    where m.entity in ({{ entities }}) and u._cdc_error is null
      and {{ delta_cdc._transaction_of('u') }} = {{ delta_cdc._transaction_of('c') }}
      and struct(u.{{ delta_cdc.order_columns() | join(', u.') }}) > struct(c.{{ delta_cdc.order_columns() | join(', c.') }}))
{%- endif %}
)
{%- endmacro %}


{#- SQL: what changes of one transaction have in common (K3). -#}
{% macro _transaction_of(change) %}
  {{ return('coalesce(' ~ change ~ '._cdc_transaction, ' ~ delta_cdc.json_of('struct(' ~ change ~ '._cdc_sequence)') ~ ')') }}
{% endmacro %}


{#- The keys that the row had, each with the position of its last change. What only a change tells that cannot be used is none
    of them, unless the row was named by it. -#}
{% macro _keys_of_row(settings) -%}
{%- set keys = settings['keys'] -%}
select {{ delta_cdc.column_list(keys) }}, max(struct(_cdc_sequence, _cdc_ordinal)) as _cdc_position
from (
{%- if settings.key_changes %}
  {%- set counts = "(_cdc_error is null or _cdc_error = 'retracted')" %}
  select {{ delta_cdc.column_list(keys) }}, _cdc_sequence, _cdc_ordinal from cdc_changes_of_row where {{ counts }}
  union all
  select {{ delta_cdc.column_list(keys, '_cdc_key_before.') }}, _cdc_sequence, _cdc_ordinal
  from cdc_changes_of_row where _cdc_key_before is not null and {{ counts }}
  union all
  select {{ delta_cdc.column_list(keys, 'k.') }}, c._cdc_sequence, c._cdc_ordinal
  from cdc_changes_of_row as c cross join cdc_named_key as k
  where {{ delta_cdc.same_columns(keys, 'c', 'k') }}
    or (c._cdc_key_before is not null and {{ delta_cdc.same_columns(keys, 'c._cdc_key_before', 'k') }})
{%- else %}
  select {{ delta_cdc.column_list(keys, 'k.') }}, _cdc_sequence, _cdc_ordinal
  from cdc_changes_of_row cross join cdc_named_key as k
{%- endif %}
)
group by {{ delta_cdc.column_list(keys) }}
{%- endmacro %}


{#- The keys table, if there is one. -#}
{% macro _keys_table(settings) %}
  {%- if not settings.key_changes or not delta_cdc.has_entities(settings) -%}{{ return(none) }}{%- endif -%}
  {%- set keys_table = delta_cdc._model_of(settings, 'keys') -%}
  {{ return(keys_table if adapter.table_state(keys_table).exists else none) }}
{% endmacro %}
