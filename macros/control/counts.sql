{#-
  `delta-cdc status --counts`: what the contract counts of a table's changes as they are ordered today. Nothing is kept for it:
  each is counted in staging when it is asked for, so that a late change which makes a key known is no longer counted, and neither
  is what it makes known. What lies at or below the horizon of a compaction (R1) is left out: it was folded.
-#}

{#- {<feed>.<table>: its counts} of those staging tables that are loaded; none where a table has no rows that live on (keyless,
    insert_only). staging: names of the models. -#}
{% macro _counts(staging) %}
  {%- set out = {} -%}
  {%- for table in delta_cdc._staging_tables(names=staging) -%}
    {%- set counted = none -%}
    {%- if delta_cdc.has_entities(table.settings) -%}
      {%- do adapter.tune_for([table.staging]) -%}
      {%- set counted = adapter.query_rows(delta_cdc._counts_of(table.settings,
            delta_cdc.let_through(table.settings, table.staging, warn=false).staging))[0] -%}
    {%- endif -%}
    {%- do out.update({table.name: counted}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#-
  One row, a column a count:
    ties                  changes with a key and a position that one before them has too (O2); a key
                          change has its old and its new key
    known_inserts         inserts of a key that had a row (A1)
    unknown_updates       updates of a key that had none (A1)
    unknown_deletes       deletes of a key that had none (A1)
    unknown_old_keys      key changes whose old key had none (K5)
    collisions            key changes that displaced another row (K7)
    partial_without_base  updates that leave out a column of which nothing was said since their row began (P4)
  staging: a relation or SQL.
-#}
{% macro _counts_of(settings, staging) -%}
{%- set keys_table, keys = delta_cdc._keys_table(settings), settings['keys'] -%}
{%- set id = '_cdc_batch_id, _cdc_row' -%}
{%- set counts = 'not struct(_cdc_sequence, _cdc_ordinal) <= ' ~ settings.horizon if settings.get('horizon') else 'true' -%}
{#- of a column that was listed later nothing can have been said before -#}
{%- set looked_at = settings['columns'] | reject('in', keys) | reject('in', settings.get('joined_after') or {}) | list -%}
with usable as (
  select s.*, {{ 'k.origin' if keys_table else "''" }} as _cdc_origin,
    {{ 'k.displaced_entity is not null' if keys_table else 'false' }} as _cdc_displaces,
    coalesce({{ 'k.key_before, ' if keys_table }}if(s._cdc_key_before is null, null,
        struct({{ delta_cdc.column_list(keys, 's._cdc_key_before.') }}))) as _cdc_old_key
  from {{ staging }} as s
  {%- if keys_table %}
  left join {{ keys_table }} as k on k._cdc_batch_id = s._cdc_batch_id and k._cdc_row = s._cdc_row
  {%- endif %}
  where s._cdc_error is null
),
changes as (
{{ delta_cdc.changes_of_entities(settings, 'usable', keys_table) }}
),
{{ delta_cdc.entity_lives(settings, 'usable') }},
placed as (
  select *, row_number() over (
    partition by _cdc_entity, _cdc_epoch, _cdc_life order by {{ delta_cdc.order_of_states() }}) as _cdc_place
  from lives
),
told as (  -- what the keys table says of a change, else its place in the row's life
  select *, case
    when _cdc_origin <> '' then _cdc_origin
    when _cdc_op = 'D' and _cdc_place = 1 then 'unknown_delete'
    when _cdc_op = 'U' and _cdc_place = 1 then 'unknown_update'
    when _cdc_op = 'I' and _cdc_place > 1 then 'known_insert' end as _cdc_what
  from placed where _cdc_after = 0 and {{ counts }}
),
at_keys as (
  select {{ id }}, _cdc_sequence, _cdc_ordinal,
    explode(array_distinct(array_compact(array(struct({{ delta_cdc.column_list(keys) }}), _cdc_old_key)))) as _cdc_key
  from usable where _cdc_op <> 'T' and not _cdc_origin <=> 'absorbed' and {{ counts }}
),
ties as (
  select {{ id }} from (
    select *, row_number() over (partition by _cdc_key, _cdc_sequence, _cdc_ordinal order by {{ id }}) as _cdc_nth from at_keys
  ) where _cdc_nth > 1
),
unsaid as (  -- a column that this change and each one before it in the life left out
  select {{ id }}, _cdc_sequence, _cdc_ordinal from (
    select *, row_number() over (partition by _cdc_entity, _cdc_epoch, _cdc_life, _cdc_column order by _cdc_place) as _cdc_nth
    from placed lateral view explode(_cdc_missing) as _cdc_column
    where _cdc_after = 0 and {{ "_cdc_column in (" ~ delta_cdc._literals(looked_at) ~ ')' if looked_at else 'false' }}
  ) where _cdc_op = 'U' and _cdc_nth = _cdc_place and {{ counts }}
)
select
  (select count(distinct {{ id }}) from ties) as ties,
  count_if(_cdc_what = 'known_insert' and _cdc_op = 'I') as known_inserts,
  count_if(_cdc_what = 'unknown_update') as unknown_updates,
  count_if(_cdc_what = 'unknown_delete') + (select count(*) from usable
      where _cdc_origin = 'unknown_delete' and {{ counts }}) as unknown_deletes,
  count_if(_cdc_what = 'unknown_key') as unknown_old_keys,
  count_if(_cdc_displaces) as collisions,
  (select count(distinct {{ id }}) from unsaid) as partial_without_base
from told
{%- endmacro %}
