{#-
  erase (R2): a person leaves every table that the project wrote. What stays of each key that the person had is one row in staging
  with `_cdc_error = 'erased'`: in `_cdc_raw` a keyed hash of the key, and the position of its last change, by which older changes
  of it are known and stay erased. The key is in no SQL text, for logs and Delta's commits keep that: it comes by temporary views.
  Done in this order, it can end anywhere and be run again: final, raw, then staging with the hashes in one commit; what else
  follows from staging at the next run. staging: name of the model. The key itself is no argument: dbt writes those into logs.
-#}
{% macro erase(staging) %}
  {%- set found = delta_cdc._look_at_erasure(staging) -%}
  {%- set ledger, table, batches = found.ledger, found.table, found.batches -%}
  {%- set settings, keys = table.settings, table.settings['keys'] -%}
  {%- if not batches -%}
    {%- do print('table ' ~ table.name ~ ': erased before; what is left in files is removed.') -%}
    {{ return('') }}
  {%- endif -%}

  {%- if not settings.key_changes and not settings.insert_only -%}
    {%- for written in [delta_cdc._model_of(settings, 'final')]
          + ([delta_cdc._model_of(settings, 'history')] if settings.get('history') == 'table' else []) -%}
      {%- if adapter.table_state(written).exists -%}
        {%- do run_query('merge into ' ~ written ~ ' as t using cdc_named_key as s on ' ~ delta_cdc.same_columns(keys, 't', 's')
              ~ ' when matched then delete') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set raw = delta_cdc.raw_of(settings) -%}
  {%- if raw is not none -%}{%- do delta_cdc._erase_from_raw(table, raw) -%}{%- endif -%}

  {%- do adapter.create_kept_view('cdc_erase_stays', delta_cdc._stays_of_erased(table)) -%}
  {%- set revision = delta_cdc._record_revision_of(ledger, table, 'erase') -%}
  {%- set sql -%}
merge into {{ table.staging }} as t
using (
  select _cdc_batch_id, _cdc_row, null as _cdc_stays, true as _cdc_goes from cdc_changes_of_row
  union all
  select {{ revision }}L, row_number() over (order by _cdc_stays), _cdc_stays, false from cdc_erase_stays
) as s
on t._cdc_batch_id = s._cdc_batch_id and t._cdc_row = s._cdc_row and s._cdc_goes
when matched then delete
when not matched and not s._cdc_goes then insert ({{ delta_cdc.column_list(keys) }}, _cdc_op, _cdc_sequence, _cdc_ordinal,
    _cdc_transaction, _cdc_occurred_at, _cdc_missing, _cdc_error, _cdc_raw,
    _cdc_batch_id, _cdc_change_set, _cdc_row, _cdc_staged_at, _cdc_revised_in)
  values ({{ delta_cdc.column_list(keys, 's._cdc_stays.') }}, 'D', s._cdc_stays._cdc_position._cdc_sequence,
    s._cdc_stays._cdc_position._cdc_ordinal, if(s._cdc_stays._cdc_erased is null, 'erase', null), s._cdc_stays._cdc_occurred_at,
    if(s._cdc_stays._cdc_erased is null, array(), null), if(s._cdc_stays._cdc_erased is null, null, 'erased'),
    s._cdc_stays._cdc_erased, s._cdc_batch_id, 'erase', s._cdc_row,
    coalesce(s._cdc_stays._cdc_staged_at, current_timestamp()), {{ revision }})
  {%- endset -%}
  {%- do delta_cdc._announce(table.staging, {'delta_cdc.erased': delta_cdc._erase_secret_digest()}) -%}
  {%- set done = delta_cdc._revise(table, sql, revision) -%}
  {%- do print('table ' ~ table.name ~ ': ' ~ done.rows_deleted ~ ' changes erased, as batch ' ~ revision ~ '.') -%}
  {%- for set in adapter.query_rows('select batch_id, change_set from ' ~ ledger
        ~ ' where batch_id in (' ~ batches | join(', ') ~ ') order by batch_id') -%}
    {%- do print('out of reach: ' ~ set.change_set ~ ' (batch ' ~ set.batch_id ~ '), as it was landed') -%}
  {%- endfor -%}
  {#- of an unknown operation the old key was not read -#}
  {%- set unread = delta_cdc._number_of(table.staging ~ ' where ' ~ delta_cdc._has_no_key(settings)
        ~ " or _cdc_error = 'unknown_operation'") -%}
  {%- if unread -%}
    {%- do print('not looked into: ' ~ unread
          ~ ' quarantined rows of the table that do not tell all of their keys (see cdc_quarantine)') -%}
  {%- endif -%}
  {%- set nameless = 0 if raw is none else delta_cdc._number_of(raw ~ ' where source_table is null') -%}
  {%- if nameless -%}
    {%- do print('not looked into: ' ~ nameless ~ ' messages in ' ~ raw ~ ' that name no table (see cdc_quarantine)') -%}
  {%- endif -%}
  {%- do print(
          'out of reach: landed files that repeat these changes, the source itself, copies that other readers made, backups') -%}
{% endmacro %}


{#- What staging keeps of an erased row, as `_cdc_stays`: a hash of each key that it had, and for each row that it displaced (K7)
    the delete that ends that row at its own key, so that it does not live again. -#}
{% macro _stays_of_erased(table) -%}
{%- set keys, keys_table = table.settings['keys'], delta_cdc._keys_table(table.settings) -%}
{%- set nothing = [] -%}
{%- for key in delta_cdc.all_quoted(keys) %}{% do nothing.append('if(false, ' ~ key ~ ', null) as ' ~ key) %}{% endfor -%}
select struct(*) as _cdc_stays from (
  select {{ nothing | join(', ') }}, null as _cdc_occurred_at, null as _cdc_staged_at, _cdc_position,
    {{ delta_cdc._keyed_hash(delta_cdc.all_quoted(keys)) }} as _cdc_erased
  from (select *, uuid() as _cdc_salt, {{ delta_cdc._secret_column() }} from cdc_keys_of_row)
{%- if keys_table %}
  union all
  select {{ delta_cdc.column_list(keys) }}, _cdc_occurred_at, _cdc_staged_at, _cdc_position, null
  from ({{ delta_cdc._ends_of_displaced(table, keys_table) }})
{%- endif %}
)
{%- endmacro %}


{#- The rows that the erased one displaced, and that stay: key, time, and the position of the last change that their transaction
    has left at that key. Where another row displaced the erased one before that transaction ended, it displaces them now. -#}
{% macro _ends_of_displaced(table, keys_table) -%}
{%- set keys = table.settings['keys'] -%}
with known as (  -- all usable changes at keys that were ever part of a key change
  select k.entity as _cdc_entity, k.displaced_entity as _cdc_displaced,
    {{ delta_cdc.column_list(keys, 'c.') }}, struct(c._cdc_sequence, c._cdc_ordinal) as _cdc_position,
    {{ delta_cdc._transaction_of('c') }} as _cdc_in,
    c._cdc_occurred_at, c._cdc_staged_at, r._cdc_row is not null as _cdc_goes
  from {{ keys_table }} as k
  join {{ table.staging }} as c on c._cdc_batch_id = k._cdc_batch_id and c._cdc_row = k._cdc_row
  left join cdc_changes_of_row as r on r._cdc_batch_id = k._cdc_batch_id and r._cdc_row = k._cdc_row
  where c._cdc_error is null
)
select {{ delta_cdc.column_list(keys, 'e.') }}, e._cdc_occurred_at, e._cdc_staged_at,
  max(greatest(e._cdc_position, coalesce(s._cdc_position, e._cdc_position))) as _cdc_position
from known as e
join (select distinct _cdc_entity from known where not _cdc_goes) as d on d._cdc_entity = e._cdc_displaced
left join known as s on not s._cdc_goes and s._cdc_in = e._cdc_in and {{ delta_cdc.same_columns(keys, 's', 'e') }}
where e._cdc_goes and not exists (
  select 1 from known as n where not n._cdc_goes and n._cdc_displaced = e._cdc_entity and n._cdc_in = e._cdc_in
    and {{ delta_cdc.same_columns(keys, 'n', 'e') }})
group by all
{%- endmacro %}


{#- What `delta-cdc erase` looks at before it asks: {changes, keys}, how many would go; 0 where the row was erased before. The key
    is no argument. staging: name of the model. -#}
{% macro erasable(staging) %}
  {%- do delta_cdc._look_at_erasure(staging) -%}
  {%- do print(tojson({'changes': delta_cdc._number_of('cdc_changes_of_row'),
        'keys': delta_cdc._number_of('cdc_keys_of_row')})) -%}
{% endmacro %}


{#- {ledger, table, batches} of an erasure that can be done, and the views of `view_row`; nothing is written. Else an error. -#}
{% macro _look_at_erasure(staging) %}
  {%- set ledger = delta_cdc._ledger() -%}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set settings = table.settings -%}
  {%- set keys = settings['keys'] -%}
  {%- if settings.get('alternate_keys') -%}{%- do delta_cdc._refuse_alternate_keys(settings) -%}{%- endif -%}
  {%- set staged = delta_cdc.progress(table.staging) -%}
  {%- do delta_cdc._refuse_restored(table.staging, staged) -%}
  {%- set noted = delta_cdc.keys_of_staging(settings, staged) -%}
  {%- if delta_cdc._are_other_keys(noted, keys) -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': ' ~ delta_cdc._says_other_keys(settings, noted)
          ~ '. Then erase again.') -%}
  {%- endif -%}
  {%- do delta_cdc._need_erase_secret(settings, staged) -%}
  {%- set waiting = delta_cdc._not_loaded(ledger, table) -%}
  {%- if waiting -%}{%- do exceptions.raise_compiler_error(waiting ~ ' Run `dbt run`, then erase again.') -%}{%- endif -%}

  {%- set batches = delta_cdc.view_row(table, erasing=true) -%}
  {%- if not batches -%}
    {%- set known = delta_cdc._number_of('cdc_named_key cross join '
          ~ delta_cdc._erased_keys(table.staging) ~ ' where ' ~ delta_cdc._is_erased(delta_cdc.all_quoted(keys), none)) -%}
    {%- if not known %}{% do delta_cdc.refuse_unknown_key(table) %}{% endif -%}
  {%- else -%}
    {%- set final = delta_cdc.progress(delta_cdc._model_of(settings, 'final')) -%}
    {%- set came = '(_cdc_batch_id > ' ~ final.batch_id
          ~ (' or _cdc_revised_in > ' ~ final.batch_id if '_cdc_revised_in' in staged.columns else '') ~ ')' -%}
    {#- but for an erasure: of that one final has nothing to take #}
    {%- if not final.rebuild and final.batch_id < staged.committed
          and adapter.query_rows('select 1 as found from ' ~ table.staging ~ ' where ' ~ came
            ~ " and not _cdc_error <=> 'erased' limit 1") -%}
      {%- do exceptions.raise_compiler_error('table ' ~ table.name
            ~ ': final has not taken all that is staged. Run `dbt run` (accept or retract what is held), then erase again.') -%}
    {%- endif -%}
  {%- endif -%}
  {{ return({'ledger': ledger, 'table': table, 'batches': batches}) }}
{% endmacro %}


{#- An event that comes again without its key cannot be known as an erased person's. -#}
{% macro _refuse_alternate_keys(settings) %}
  {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
        ~ '`alternate_keys` and an erased person exclude each other: an old event that'
        ~ ' comes again without its key could not be told from others. Take `alternate_keys` out.') -%}
{% endmacro %}


{#- Run last by `delta-cdc erase`: nothing on disk but what the tables' newest versions hold. staging: name of the model. -#}
{% macro purge_erased(staging) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set settings = table.settings -%}
  {%- set models, names, ids, layers = [], [], [], delta_cdc.layers() -%}
  {%- for layer in ['raw', 'staging', 'keys', 'history', 'final'] if delta_cdc.model_name(settings, layer) in layers -%}
    {%- do models.append(delta_cdc.model_name(settings, layer)) -%}
  {%- endfor -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name in models -%}
    {%- set relation = delta_cdc._relation_of(node) -%}
    {%- do ids.append(node.unique_id) -%}
    {%- if node.config.materialized != 'view' and adapter.table_state(relation).exists -%}
      {%- do adapter.purge(relation) -%}
      {%- do names.append(relation | string) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do print('old files and log entries removed of ' ~ names | join(', ')) -%}
  {#- an incremental one keeps the rows that it has, and any its old files, which may be all that it can be restored from -#}
  {%- set own = [] -%}
  {%- for node in delta_cdc._with_own_below(ids, layers)
        if node.name not in layers and node.config.materialized not in ('view', 'ephemeral') -%}
    {%- do own.append(delta_cdc._relation_of(node) | string) -%}
  {%- endfor -%}
  {%- if own -%}
    {%- do print('out of reach: ' ~ own | join(', ')
          ~ ', which your own models make of these: rows that they keep, and old files') -%}
  {%- endif -%}
{% endmacro %}


{#- Models, and the models and snapshots of one's own that are made of them, in any number of steps: what other tables of a feed
    that mixes them have is not the person's. ids: of the former. layers: the feeds' models. -#}
{% macro _with_own_below(ids, layers) %}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type in ('model', 'snapshot') and node.unique_id not in ids
        and node.name not in layers and node.depends_on.nodes | select('in', ids) | list -%}
    {%- do found.append(node.unique_id) -%}
  {%- endfor -%}
  {%- if found %}{{ return(delta_cdc._with_own_below(ids + found, layers)) }}{% endif -%}
  {{ return(graph.nodes.values() | selectattr('unique_id', 'in', ids) | list) }}
{% endmacro %}


{#- Of the environment: dbt writes its variables and its command line into logs and artifacts. -#}
{% macro _erase_secret() %}{{ return(env_var('DELTA_CDC_ERASE_SECRET', '')) }}{% endmacro %}

{#- A hash that only who has the secret can make of a key; the salt keeps equal keys apart. The names of the
    key columns are not in it: they may be spelled in another case one day. In a query with `_secret_column`. -#}
{% macro _keyed_hash(values, salt='_cdc_salt') %}
  {%- set fields = [] -%}
  {%- for value in values %}{% do fields.append(value ~ ' as `' ~ loop.index ~ '`') %}{% endfor -%}
  {%- set key = delta_cdc.json_of('struct(' ~ fields | join(', ') ~ ')') -%}
  {{ return('concat(' ~ salt ~ ", ':', sha2(concat(" ~ salt ~ ', _cdc_secret, sha2(concat(_cdc_secret, ' ~ key ~ '), 256)), 256))') }}
{% endmacro %}

{#- The column of a query by which `_keyed_hash` has the secret. It comes by a temporary view of the session, for dbt logs its SQL
    and compiles it into files. -#}
{% macro _secret_column() %}
  {%- do adapter.create_values_view('cdc_erase_secret', ['_cdc_secret'], [[delta_cdc._erase_secret()]]) -%}
  {{ return('(select _cdc_secret from cdc_erase_secret) as _cdc_secret') }}
{% endmacro %}


{#- By which a run knows that it has the secret with which a table's keys were erased: too short to tell it. -#}
{% macro _erase_secret_digest() %}{{ return(local_md5('DELTA_CDC_ERASE_SECRET ' ~ delta_cdc._erase_secret())[:6]) }}{% endmacro %}

{#- Without it what was erased would not be known when it comes again. -#}
{% macro _need_erase_secret(settings, staged) %}
  {%- if staged.properties.get('delta_cdc.erased', delta_cdc._erase_secret_digest()) != delta_cdc._erase_secret_digest() -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
          ~ 'a person was erased from it under another DELTA_CDC_ERASE_SECRET than this run has: what'
          ~ ' was erased could not be known when it comes again. Nothing was loaded. Set the variable of the environment as it was then.') -%}
  {%- endif -%}
{% endmacro %}


{#- A relation of one row: what was erased of a table, few, as an array, and the secret. -#}
{% macro _erased_keys(staging) -%}
(select *, {{ delta_cdc._secret_column() }}
    from (select collect_list(struct(_cdc_raw as hash, struct(_cdc_sequence, _cdc_ordinal) as at)) as _cdc_erased_keys
      from {{ staging }} where _cdc_error = 'erased' and _cdc_raw is not null))
{%- endmacro %}

{#- SQL: whether a key was erased and nothing newer than what was erased is said of it; `position`
    none: whether it was ever erased. The parameter hides a column of its name, in backticks too: no
    column of a feed has this one. -#}
{% macro _is_erased(values, position) %}
  {{ return("exists(_cdc_erased_keys, _cdc_e -> _cdc_e.hash = "
      ~ delta_cdc._keyed_hash(values, "split_part(_cdc_e.hash, ':', 1)")
      ~ (' and ' ~ position ~ ' <= _cdc_e.at' if position else '') ~ ')') }}
{% endmacro %}


{#- In staging's `checked`: an older change of an erased key, by its key or by the one it had before. -#}
{% macro _comes_erased(settings, before) %}
  {%- set position = delta_cdc._position(settings) -%}
  {{ return(delta_cdc._is_erased(delta_cdc.all_quoted(settings['keys']), position)
      ~ ' or ' ~ delta_cdc._is_erased(before, position)) }}
{% endmacro %}


{#- raw_<feed>, where there is one: it may hold messages of a table from before that became private; or none. Where tables have
    files of their own, a model of that name is somebody else's. -#}
{% macro raw_of(settings) %}
  {%- if delta_cdc.model_name(settings, 'raw') in delta_cdc.layers() and delta_cdc._has_model(settings, 'raw') -%}
    {%- set raw = delta_cdc._model_of(settings, 'raw') -%}
    {%- if adapter.table_state(raw).exists %}{{ return(raw) }}{% endif -%}
  {%- endif -%}
  {{ return(none) }}
{% endmacro %}


{#- The messages of the person in a feed that mixes tables: also those that staging dropped as repetitions, those of change sets
    that were retracted before staging took them, and what cannot be used at a key that the person had, above its last change. -#}
{% macro _erase_from_raw(table, raw) %}
  {%- set settings = {} -%}
  {%- do settings.update(table.settings) -%}
  {%- do settings.update({'erased_in': none}) -%}
  {%- set keys, retracted = settings['keys'], delta_cdc._retracted_batches(settings.feed) -%}
  {%- do delta_cdc._delete_from_raw(raw,
        'with ' ~ delta_cdc._staging_ctes(settings, delta_cdc._lines_of_table(raw | string, settings, 0))
        ~ '\nselect c._cdc_batch_id, c._cdc_row from changes as c join cdc_keys_of_row as k on (('
        ~ delta_cdc.same_columns(keys, 'c', 'k') ~ ") and not c._cdc_op <=> 'T')"
        ~ ' or (c._cdc_key_before is not null and ' ~ delta_cdc.same_columns(keys, 'c._cdc_key_before', 'k') ~ ')'
        ~ '\nwhere struct(c._cdc_sequence, c._cdc_ordinal) <= k._cdc_position'
        ~ (' or c._cdc_batch_id in (' ~ retracted | join(', ') ~ ')' if retracted else '')
        ~ '\nunion\nselect c._cdc_batch_id, c._cdc_row from changes as c join cdc_changes_of_row as r on c._cdc_raw = r._cdc_raw'
        ~ '\nunion\nselect _cdc_batch_id, _cdc_row from cdc_changes_of_row') -%}
{% endmacro %}


{#- A message of an erased person that came again into raw goes before staging reads it. Raw may have others than the lines that
    `settings.kinds` is of: those of change sets that were retracted. -#}
{% macro _erase_again_from_raw(settings, raw, lines) %}
  {%- do delta_cdc._delete_from_raw(raw, 'with ' ~ delta_cdc._typed_ctes(dict(settings, kinds=none), lines)
        ~ "\nselect _cdc_batch_id, _cdc_row from changes where _cdc_error = 'erased'") -%}
{% endmacro %}


{% macro _delete_from_raw(raw, rows) %}
  {%- do adapter.create_kept_view('cdc_erase_messages', rows) -%}
  {%- do delta_cdc.write_before('merge into ' ~ raw
        ~ ' as t using cdc_erase_messages as s on t.batch_id = s._cdc_batch_id and t.row_number = s._cdc_row when matched then delete') -%}
{% endmacro %}
