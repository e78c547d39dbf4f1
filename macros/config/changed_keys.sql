{#- When `keys` of a table change (K8): what is made by key stops until it is rebuilt, and staging
    stays. Each commit notes its keys. -#}

{% macro _refuse_other_keys(settings, state) %}
  {%- set before = state.notes.get('keys') -%}
  {%- if before and delta_cdc._are_other_keys(before, settings['keys']) and not flags.FULL_REFRESH -%}
    {%- do exceptions.raise_compiler_error(
        delta_cdc.about_table(settings) ~ '`keys` were [' ~ before | join(', ') ~ '] and are now ['
        ~ settings['keys'] | join(', ')
        ~ ']. Nothing was loaded. Put them back, or rebuild what is made by key; staging stays, and what lacks'
        ~ ' a key is marked `null_key`: dbt run --full-refresh --select ' ~ delta_cdc.model_name(settings, 'staging') ~ '+') -%}
  {%- endif -%}
{% endmacro %}


{#- The keys by which staging tells rows apart: those that it took over last, or was loaded with. state: its progress. -#}
{% macro keys_of_staging(settings, state) %}
  {%- set taken = state.properties.get('delta_cdc.keys') if state.properties is defined else none -%}
  {{ return(fromjson(taken) if taken else state.notes.get('keys', settings['keys'])) }}
{% endmacro %}

{#- What is made by key anew, before staging has marked the rows that lack a key, would keep these. -#}
{% macro refuse_before_staging(settings, staged) %}
  {%- if not staged.exists %}{{ return('') }}{% endif -%}
  {%- set before = delta_cdc.keys_of_staging(settings, staged) -%}
  {%- if delta_cdc._are_other_keys(before, settings['keys']) -%}
    {%- do exceptions.raise_compiler_error(
        delta_cdc.about_table(settings) ~ '`keys` are [' ~ settings['keys'] | join(', ') ~ '], and staging still has ['
        ~ before | join(', ') ~ ']. Nothing was loaded. Let it take them over first: dbt run --full-refresh --select '
        ~ delta_cdc.model_name(settings, 'staging') ~ '+') -%}
  {%- endif -%}
{% endmacro %}


{#- Why an operation does not begin, and what to do: `before` are the keys of staging. -#}
{% macro _says_other_keys(settings, before) %}
  {{ return('staging was loaded with other `keys` (' ~ before | join(', ') ~ '): put them back, or let it take over the new ones'
      ~ ' by `dbt run --full-refresh --select ' ~ delta_cdc.model_name(settings, 'staging') ~ '+`') }}
{% endmacro %}


{#- To Spark, case makes no difference. -#}
{% macro _are_other_keys(before, keys) %}{{ return(before | map('lower') | list != keys | map('lower') | list) }}{% endmacro %}


{#- A model from before keys could change reads no keys table: rows would stay at the keys that they left. keys: as the model has
    it. -#}
{% macro refuse_without_keys(settings, keys) %}
  {%- if keys is none and settings.get('key_changes') and delta_cdc.has_entities(settings) -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ 'its model ' ~ this
          ~ ' reads no keys table, and with these settings (`key_changes`, `old_keys`, `split_key_changes`, `operation_codes`)'
          ~ ' keys may change. It was left as it is. Run `delta-cdc generate`.') -%}
  {%- endif -%}
{% endmacro %}


{#- `key_changes` was taken back since the last load. Where keys did change, rows would come back at keys that they left. -#}
{% macro _refuse_moved_keys(settings, state) %}
  {%- if delta_cdc._has_moved_keys(settings, this, state) -%}
    {%- do exceptions.raise_compiler_error(
        delta_cdc.about_table(settings)
        ~ '`key_changes` is false, and changes of keys were staged before: their rows would come back at the keys'
        ~ ' that they left, or lose the values that they brought along. Nothing was loaded. Put `key_changes`, `old_keys` or'
        ~ ' `split_key_changes` back as they were and run `delta-cdc generate`.') -%}
  {%- endif -%}
{% endmacro %}

{#- Whether any key change was staged: one that tells its old key, or two halves of which neither does (K6). state: staging's. -#}
{% macro _has_moved_keys(settings, staging, state) %}
  {%- if state.notes.get('keys_may_move') is sameas false %}{{ return(false) }}{% endif -%}  {#- noted: nobody has to look -#}
  {%- set found = adapter.query_rows('select 1 as found from ' ~ staging
      ~ " as s where _cdc_op in ('I', 'U', 'R') and _cdc_error is null and _cdc_key_before is not null and not ("
      ~ delta_cdc.same_columns(settings['keys'], '_cdc_key_before', 's') ~ ') limit 1') -%}
  {%- set until = state.notes.get('paired_until') -%}  {#- what came since, without `split_key_changes`, was no pair -#}
  {%- if not found and (until is not none or state.notes.get('split_key_changes')) -%}
    {%- set key = 'struct(' ~ delta_cdc.column_list(settings['keys']) ~ ')' -%}
    {%- set found = adapter.query_rows('select 1 as found from ' ~ staging
        ~ " where _cdc_op in ('D', 'I') and _cdc_error is null and _cdc_sequence is not null"
        ~ (' and _cdc_batch_id <= ' ~ until if until is not none else '')
        ~ ' group by _cdc_sequence, _cdc_transaction'
        ~ " having count(*) = 2 and count(distinct _cdc_op) = 2 and not min(" ~ key ~ ') <=> max(' ~ key ~ ') limit 1') -%}
  {%- endif -%}
  {{ return(found | length > 0) }}
{% endmacro %}


{#- Staging under other keys than it was loaded with: once what is made from it is rebuilt, it gains the fields of
    `_cdc_key_before` that it lacks, and rows that lack a key are marked. `key_fields`: the fields of `_cdc_key_before`,
    where there are others than the keys. -#}
{% macro _adopt_keys(settings, state) %}
  {%- set keys = settings['keys'] -%}
  {%- if not state.exists or not keys -%}{{ return('') }}{%- endif -%}
  {%- set fields = delta_cdc._fields_of_key_before(settings, state) -%}
  {%- set new = keys | reject('in', fields) | list -%}
  {%- set before = delta_cdc.keys_of_staging(settings, state) -%}
  {%- if delta_cdc._are_other_keys(before, keys) -%}
    {%- if state.properties.get('delta_cdc.erased') -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ '`keys` were [' ~ before | join(', ')
            ~ '] and are now [' ~ keys | join(', ')
            ~ '], and a person was erased from it, who is known by the former. Put them back.') -%}
    {%- endif -%}
    {%- set called = [] -%}
    {%- for key in keys %}{% do called.append(key if key in before else settings.renamed_columns.get(key, key)) %}{% endfor -%}
    {%- if state.properties.get('delta_cdc.horizon') and delta_cdc._are_other_keys(before | sort, called | sort) -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ '`keys` were [' ~ before | join(', ')
            ~ '] and are now [' ~ keys | join(', ') ~ '], and it was compacted: what was folded by the former cannot be told'
            ~ ' apart by others. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings, 'Put them back')) -%}
    {%- endif -%}
    {%- if delta_cdc._are_other_keys(delta_cdc._keys_of_final() or [], keys) -%}
      {%- do delta_cdc._refuse_other_keys(settings, state) -%}
    {%- endif -%}
    {%- do delta_cdc._gain_key_columns(settings, state) -%}
    {%- do delta_cdc._grow_key_before(settings, new) -%}
    {%- set told = [] -%}  {#- what an old key does not tell is as in the new one -#}
    {%- for key in keys if key not in before -%}
      {%- set name, old = delta_cdc.quoted(key), settings.renamed_columns.get(key) -%}
      {%- do told.append('_cdc_key_before.' ~ name ~ ' = coalesce(_cdc_key_before.' ~ name ~ ', '
            ~ ('_cdc_key_before.' ~ delta_cdc.quoted(old) ~ ', ' if old in fields) ~ name ~ ')') -%}
    {%- endfor -%}
    {%- if told -%}
      {%- do delta_cdc.write_before('update ' ~ this ~ ' set ' ~ told | join(', ') ~ ' where _cdc_key_before is not null') -%}
    {%- endif -%}
    {%- set lacks = [] -%}
    {%- for key in keys if key not in (settings.nullable_keys or []) -%}
      {%- do lacks.append(delta_cdc.quoted(key) ~ ' is null') -%}
    {%- endfor -%}
    {%- set error = 'if(' ~ (lacks | join(' or ') or 'false') ~ ", 'null_key', null)" -%}
    {#- a row that was refused when it was loaded has its raw text -#}
    {%- do delta_cdc.write_before('update ' ~ this ~ ' set _cdc_error = ' ~ error ~ " where _cdc_op <> 'T' and _cdc_raw is null"
          ~ " and (_cdc_error is null or _cdc_error = 'null_key') and _cdc_error is distinct from " ~ error) -%}
    {%- do delta_cdc.note_property('delta_cdc.keys', keys) -%}  {#- there may be nothing new whose commit would note it -#}
  {%- endif -%}
  {%- do delta_cdc._note_key_fields(settings, fields + new) -%}
{% endmacro %}

{% macro _note_key_fields(settings, fields) %}
  {%- if settings['keys'] and fields != settings['keys'] -%}{%- do settings.update({'key_fields': fields}) -%}{%- endif -%}
{% endmacro %}

{#- The fields of `_cdc_key_before` in staging, the keys among them as they are spelled now. -#}
{% macro _fields_of_key_before(settings, state) %}
  {{ return(delta_cdc._spelled(delta_cdc._field_names(state.columns.get('_cdc_key_before')),
      delta_cdc._spelling_of(settings['keys']))) }}
{% endmacro %}


{#- Key columns that staging has not yet got. Of one that was renamed what stands under its old name is put into it, for keys are
    joined as they are: also where it has the column already, from a run that ended before it was filled, or from loads since. -#}
{% macro _gain_key_columns(settings, state) %}
  {%- set there, new = state.columns.keys() | map('lower') | list, {} -%}
  {%- for key in settings['keys'] if key | lower not in there -%}
    {%- do new.update({key: settings.column_types[key]}) -%}
  {%- endfor -%}
  {%- if new -%}
    {%- do delta_cdc.evolve_before(new) -%}
    {%- do new.update(state.columns) -%}
    {%- do state.update({'columns': new}) -%}
  {%- endif -%}
  {%- for key in settings['keys'] -%}
    {%- set name, old = delta_cdc.quoted(key), settings.renamed_columns.get(key) -%}
    {%- if old and old | lower in there -%}
      {%- set old = delta_cdc.quoted(old) -%}
      {%- do delta_cdc.write_before('update ' ~ this ~ ' set ' ~ name ~ ' = ' ~ old
            ~ ' where ' ~ name ~ ' is null and ' ~ old ~ ' is not null') -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{#- The keys that the final table of this staging model was written with. -#}
{% macro _keys_of_final() %}
  {%- set layers = delta_cdc.layers() -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and model.unique_id in node.depends_on.nodes
        and layers.get(node.name) == 'final' -%}
    {{ return(adapter.table_state(delta_cdc._relation_of(node)).notes.get('keys')) }}
  {%- endfor -%}
{% endmacro %}
