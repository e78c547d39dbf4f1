{#- What staging needs to hold the configured columns (E1, E4, E6): as adapter.evolved. `settings.column_types` becomes what the
    columns are then; `settings.given_types` has those whose values are cast to what the table has, for Delta cannot widen it, and
    `settings.read_types` those of which the list spells fields otherwise than the table does. -#}
{% macro _staged_columns(settings, state) %}
  {%- if not state.exists -%}
    {{ return({'types': {}, 'new': [], 'add': [], 'widen': [], 'rewrite': [], 'widened': [], 'cast': {}}) }}
  {%- endif -%}
  {%- do delta_cdc._spell_as_staged(settings, state.columns) -%}
  {%- do delta_cdc._refuse_other_order(settings, state) -%}
  {%- set wanted = {} -%}
  {%- do wanted.update(settings.column_types) -%}
  {%- do wanted.update({'_cdc_undeclared': 'map<string,string>'}) -%}
  {%- set evolved = adapter.evolved(state.columns, wanted) -%}
  {%- set types = {} -%}
  {%- for column in settings.column_types %}{% do types.update({column: evolved.types[column]}) %}{% endfor -%}
  {%- do settings.update({'column_types': types, 'given_types': evolved.cast, 'read_types': evolved.read}) -%}
  {%- do delta_cdc.note_columns(settings, state, evolved.new) -%}
  {%- do delta_cdc._refuse_other_positions(settings, state) -%}
  {{ return(evolved) }}
{% endmacro %}


{#- What staging's commits note of how its rows are told apart and ordered. state: its progress; none: it is new. -#}
{% macro _notes_of_rows(settings, state=none) %}
  {{ return({'keys': settings['keys'], 'rows_are': delta_cdc._rows_are(settings),
      'appended': delta_cdc.is_appended(settings), 'sequence_by': settings.sequence_by,
      'masked': delta_cdc._masks_of_rows(settings, state)}) }}
{% endmacro %}

{#- The masks of columns as staged rows have them. One that was changed while it told no rows apart is several: the column cannot
    become a key, for a row would have one key in older changes and another in newer ones. -#}
{% macro _masks_of_rows(settings, state) %}
  {%- set out = delta_cdc._masks(settings) -%}
  {%- set were = state.notes.get('masked', out) if state else out -%}
  {%- for column in (out.keys() | list + were.keys() | list) | unique | list
        if out.get(column) != were.get(column) and column in state.columns -%}
    {%- do out.update({column: 'several'}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- The masks of columns, too short to tell the SQL, which may hold a secret. -#}
{% macro _masks(settings) %}
  {%- set out = {} -%}
  {%- for column, sql in settings.mask.items() %}{% do out.update({column: local_md5(sql | string)[:6]}) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- The columns that tell rows apart and have another mask than staging was loaded with: a row would not be known again. -#}
{% macro _masked_otherwise(settings, state) %}
  {%- set now, out = delta_cdc._by_lower(delta_cdc._masks(settings)), [] -%}
  {%- set were = delta_cdc._by_lower(state.notes.get('masked', now)) -%}
  {%- set telling = (settings['keys'] + delta_cdc._alternate_columns(settings)) | map('lower') | list -%}
  {%- for column in (now.keys() | list + were.keys() | list) | unique
        if (column in telling or settings.keyless == 'multiset') and now.get(column) != were.get(column) -%}
    {%- do out.append(column) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _rows_are(settings) %}
  {{ return('values' if settings.keyless == 'multiset' else 'keyed' if settings['keys'] else 'added') }}
{% endmacro %}

{% macro _or_load_anew(settings, first='Put it back') %}
  {{ return(' ' ~ first ~ ', or drop ' ~ delta_cdc.model_name(settings, 'staging')
      ~ ' and what is made of it (the tables of keys, history and final) and run again to load the change sets that are still there.') }}
{% endmacro %}


{#- Staged rows without keys cannot get some (N1), nor can a table of inserts show what was updated or deleted before (N2). -#}
{% macro _refuse_other_rows(settings, state) %}
  {%- set words = {'keyed': 'have keys', 'values': 'are their values', 'added': 'are only added'} -%}
  {%- set were, are, masked = state.notes.get('rows_are'), delta_cdc._rows_are(settings),
        delta_cdc._masked_otherwise(settings, state) -%}
  {%- if were and were != are -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
          ~ 'by `keys`, `keyless` and `insert_only` its rows ' ~ words[are] ~ ', and staging was loaded with rows that '
          ~ words[were] ~ '. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings)) -%}
  {%- elif masked -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
          ~ '`mask` is another one than staging was loaded with for columns that tell rows apart ('
          ~ masked | join(', ')
          ~ '): its rows would not be known again. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings)) -%}
  {%- elif delta_cdc.is_appended(settings) and state.notes.get('appended') is sameas false
        and adapter.query_rows('select 1 as found from ' ~ delta_cdc._model_of(settings, 'staging')
          ~ " where _cdc_error is null and _cdc_op not in ('I', 'R') limit 1") -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
          ~ '`insert_only` is true, and updates, deletes or truncates were staged before: final would show'
          ~ ' inserts alone. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings)) -%}
  {%- endif -%}
{% endmacro %}


{#- An expression in `sequence_by` has no name but its place: what was staged by another one is looked
    at, whether this gives the same. -#}
{% macro _refuse_other_positions(settings, state) %}
  {%- set were = state.notes.get('sequence_by') -%}
  {%- if not were or were == settings.sequence_by or were | map('lower') | list == settings.sequence_by | map('lower') | list -%}
    {{ return('') }}
  {%- endif -%}
  {%- set fields, there = delta_cdc._defaults()['fields'].get(settings.format, []), state.columns.keys() | map('lower') | list -%}
  {%- set other, unknown = [], delta_cdc.columns_named(fields, settings.sequence_by) -%}
  {%- for column in delta_cdc.columns_named(settings.column_types, settings.sequence_by)
        if column | lower not in there and column not in settings.renamed_in_staging -%}
    {%- do unknown.append(column) -%}
  {%- endfor -%}
  {%- for part in settings.sequence_by -%}
    {%- do other.append('not ('
          ~ part ~ ') <=> _cdc_sequence.' ~ delta_cdc.quoted(delta_cdc._sequence_name(part, loop.index))) -%}
  {%- endfor -%}
  {%- if unknown or adapter.query_rows('select 1 as found from '
          ~ delta_cdc._staged_before(settings, delta_cdc._model_of(settings, 'staging'), state)
          ~ ' where _cdc_error is null and _cdc_sequence is not null and (' ~ other | join(' or ') ~ ') limit 1') -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
          ~ '`sequence_by` is [' ~ settings.sequence_by | join(', ') ~ '], and staging was loaded with [' ~ were | join(', ')
          ~ ']. Changes of two orders cannot be compared. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings)) -%}
  {%- endif -%}
{% endmacro %}


{#- A column becomes a value of a multiset. Where the feed had it before, staged rows would not be known again: before it was
    listed they have null for what they told, and what takes rows away tells nothing of a column that was no value. -#}
{% macro _refuse_values_told_before(settings, state, new) %}
  {%- for column in new -%}
    {%- set told = [] -%}
    {%- if column in state.columns -%}
      {%- do told.append("_cdc_op = 'D' and " ~ delta_cdc.quoted(column) ~ ' is null or _cdc_key_before is not null') -%}
    {%- endif -%}
    {%- if '_cdc_undeclared' in state.columns -%}
      {%- do told.append('exists(map_keys(_cdc_undeclared), name -> lower(name) = ' ~ delta_cdc.literal(column | lower) ~ ')') -%}
    {%- endif -%}
    {%- if told and adapter.query_rows('select 1 as found from ' ~ delta_cdc._model_of(settings, 'staging')
          ~ ' where _cdc_error is null and (' ~ told | join(' or ') ~ ') limit 1') -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ 'rows of a multiset are their values, and `'
            ~ column ~ '` would become one, which the feed had before: staged rows would not be known again. Nothing was loaded.'
            ~ delta_cdc._or_load_anew(settings, 'Keep it out of final (`except_columns`)')) -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{#- What to do where staging has columns as fields of a struct, and they have other names now: leave them theirs, where they were
    renamed. staged, names: those that it has, and those that are given. otherwise: what to do else. -#}
{% macro _or_keep_names(settings, staged, names, otherwise) %}
  {%- set now, gone, back = names | map('lower') | list, [], [] -%}
  {%- for name in staged if name | lower not in now -%}
    {%- do gone.append(name) -%}
    {%- for new, old in settings.renamed_columns.items() if old | lower == name | lower and new | lower in now -%}
      {%- do back.append(name ~ ': ' ~ new) -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- if not gone or back | length < gone | length %}{{ return(otherwise) }}{% endif -%}
  {{ return(' Let it keep its name, here and under `columns:`, and say what the feed calls it now the other way round: '
      ~ '`renamed_columns: {' ~ back | join(', ') ~ '}`. Both names are read then.') }}
{% endmacro %}


{#- Staged positions, and the values of a multiset, are compared with new ones: their parts stay what they are. -#}
{% macro _refuse_other_order(settings, state) %}
  {%- set about = delta_cdc.about_table(settings) -%}
  {%- set remedy = delta_cdc._or_load_anew(settings) -%}
  {%- set names = [] -%}
  {%- for part in settings.sequence_by %}{% do names.append(delta_cdc._sequence_name(part, loop.index)) %}{% endfor -%}
  {%- set staged = delta_cdc._field_names(state.columns.get('_cdc_sequence')) -%}
  {%- if staged and staged | map('lower') | list != names | map('lower') | list -%}
    {%- do exceptions.raise_compiler_error(about ~ "`sequence_by` is [" ~ settings.sequence_by | join(', ')
          ~ "], and staging is ordered by (" ~ staged | join(', ')
          ~ "). Changes of two orders cannot be compared. Nothing was loaded."
          ~ delta_cdc._or_keep_names(settings, staged, names, remedy)) -%}
  {%- endif -%}
  {%- if settings.get('values') -%}
    {%- set staged = delta_cdc._field_names(state.columns.get('_cdc_key_before')) -%}
    {%- if staged | reject('in', settings['values']) | list -%}
      {%- do exceptions.raise_compiler_error(about ~ "rows of a multiset are their values, and "
            ~ staged | reject('in', settings['values']) | join(', ')
            ~ " would no longer be one. Nothing was loaded."
            ~ delta_cdc._or_keep_names(settings, staged, settings['values'], remedy)) -%}
    {%- endif -%}
    {%- set new = settings['values'] | reject('in', staged) | list -%}
    {%- if new and staged %}{% do delta_cdc._refuse_values_told_before(settings, state, new) %}{% endif -%}
    {%- do settings.update({'values': staged + new}) -%}
  {%- endif -%}
{% endmacro %}


{#- Times of another type than the staged ones would be cast to it: a timestamp to a number, or to its day. -#}
{% macro _refuse_other_times(settings, state, plan, evolved) %}
  {%- if state.exists and plan.time_type != 'void' -%}
    {%- set found = adapter.evolved({'time': state.columns['_cdc_occurred_at']}, {'time': plan.time_type}) -%}
    {%- if found.cast or (found.rewrite and not evolved.rewrite) -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
            ~ '`occurred_at` gives a ' ~ plan.time_type ~ ', and the times of what is staged are of type '
            ~ state.columns['_cdc_occurred_at'] ~ '. Nothing was loaded.' ~ delta_cdc._or_load_anew(settings)) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{#- A change without a time is no bad row: final needs none. But history then lacks what was there before it (H1);
    rows that are their values have none. -#}
{% macro _tell_of_times(settings, plan) %}
  {%- if plan.timeless -%}
    {%- set taken = 'as_of counts such a change at every moment.' if not delta_cdc.has_entities(settings)
          else 'History and as_of take such a change for made at the time of the one before it of its row, whose version'
          ~ ' is left out, for it has no length.' -%}
    {%- do exceptions.warn(delta_cdc.about_table(settings) ~ plan.timeless ~ ' of ' ~ plan.rows_read
          ~ ' new changes are updates, deletes or truncates without a time (`occurred_at: ' ~ settings.occurred_at
          ~ '` is null). ' ~ taken ~ ' Give `occurred_at` what every change tells, a delete too.') -%}
  {%- endif -%}
{% endmacro %}


{% macro _field_names(type) %}{{ return(type['fields'] | map(attribute='name') | list if type is mapping else []) }}{% endmacro %}


{#- What a person should know of the load's columns. -#}
{% macro _tell_of_columns(settings, plan) %}
  {%- set about = delta_cdc.about_table(settings) -%}
  {%- if plan.undeclared -%}
    {%- do exceptions.warn(about ~ plan.undeclared ~ ' of ' ~ plan.rows_read ~ ' new changes have columns that are not listed: '
          ~ plan.undeclared_columns | join(', ')
          ~ '. Their values are in _cdc_undeclared of staging. List them under `columns:`, or name them in `never_store`.') -%}
  {%- endif -%}
  {%- for column, type in settings.get('given_types', {}).items() -%}
    {%- set staged = settings.column_types[column] -%}
    {%- do exceptions.warn(about ~ 'column ' ~ column ~ ' is ' ~ staged ~ ' in staging and ' ~ type
          ~ ' in the configuration. Delta cannot widen it: values '
          ~ ('stay as they come' if delta_cdc._stays_as_it_comes(column, settings) else 'are cast')
          ~ ', and those that do not fit are quarantined (cast:' ~ column ~ ').'
          ~ (delta_cdc._or_load_anew(settings, 'What a number counts is not known to staging: list it as ' ~ staged)
            if delta_cdc._counts_unknown(staged, type) else '')) -%}
  {%- endfor -%}
{% endmacro %}


{#- The whole table anew, in one commit, with columns changed that Delta cannot alter (E4: date to
    timestamp), and the new changes. -#}
{% macro _staging_rewritten(settings, state, evolved, lines, repeated=false, past=none) -%}
{%- set types = delta_cdc._by_lower(evolved.types) -%}
{%- set new = delta_cdc._staging_columns(settings) | map('lower') | list -%}
{%- set as_staged, as_new = [], [] -%}
{%- for column in state.columns -%}
  {%- set name = delta_cdc.quoted(column) -%}
  {#- the new table has no properties that say which columns are young, and what they were called -#}
  {%- set staged = delta_cdc._unsaid(settings) if column == '_cdc_missing' else delta_cdc._staged_value(settings, column) -%}
  {%- do as_staged.append('cast(' ~ staged ~ ' as ' ~ types[column | lower] ~ ') as ' ~ name
        if column | lower in types else staged if staged == name else staged ~ ' as ' ~ name) -%}
  {%- do as_new.append(name if column | lower in new or name | lower in new else 'null') -%}
{%- endfor -%}
{%- for column in evolved.new -%}
  {%- do as_staged.append(
        'cast(' ~ (delta_cdc._staged_value(settings, column) if column in settings.renamed_in_staging else 'null')
        ~ ' as ' ~ evolved.types[column] ~ ') as ' ~ delta_cdc.quoted(column)) -%}
  {%- do as_new.append(delta_cdc.quoted(column)) -%}
{%- endfor -%}
{%- set staged = 'select ' ~ as_staged | join(', ') ~ ' from ' ~ this -%}
{{ staged }}
union all
select {{ as_new | join(', ') }} from (
{{ delta_cdc._staging_sql(settings, lines, repeated, '(' ~ staged ~ ')' if past is not none else none) }}
)
{%- endmacro %}


{#- Notes what staging says of its columns: their types; which of them it has under an old name too (E2), and what that was called
    before; and up to which batch one was not listed (E1). staged: its state. new: the columns that it is about to gain. -#}
{% macro note_columns(settings, staged, new=[]) %}
  {%- do delta_cdc._spell_as_staged(settings, staged.columns) -%}
  {%- set there = staged.columns.keys() | list + new -%}
  {%- set renamed, older = {}, {} -%}
  {%- for column, old in (settings.get('renamed_columns') or {}).items() if column in there and old in there -%}
    {%- do renamed.update({column: old}) -%}
  {%- endfor -%}
  {%- for column, old in delta_cdc._renamed_so_far(staged).items() if old in there -%}
    {%- do older.update({column: old}) -%}
  {%- endfor -%}
  {#- one that is no longer listed, or whose entry was taken out, keeps what came under the name that it had before; of several
      that were said to have had it the last one -#}
  {%- set listed = settings.get('column_types', {}) -%}
  {%- for column, old in older.items() | list | reverse if column in there and old not in listed and column not in renamed
        and column not in renamed.values() and old not in renamed.values() and column not in older.values() -%}
    {%- do renamed.update({column: old}) -%}
  {%- endfor -%}
  {%- do settings.update({'staged_types': staged.columns, 'renamed_in_staging': renamed, 'renamed_before': older}) -%}
  {%- if settings.get('ignore_null_updates') -%}
    {%- do settings.update({'filled_by_field': delta_cdc._filled_by_field(settings)}) -%}
  {%- endif -%}
  {#- one that was renamed, maybe back to the name that it had, is as old as the oldest of its names; one that is no longer listed
      may stay in history and final -#}
  {%- set since, joined, other_names = delta_cdc._joined_after(staged), {}, renamed.keys() | list -%}
  {%- for column in renamed -%}
    {%- set names, batches = delta_cdc._old_names(settings, column), [] -%}
    {%- do other_names.extend(names) -%}
    {%- for name in names + [column] if name in staged.columns %}{% do batches.append(since.get(name, -1)) %}{% endfor -%}
    {%- if batches | min >= 0 %}{% do joined.update({column: batches | min}) %}{% endif -%}
  {%- endfor -%}
  {%- for column in there if column in since and column not in other_names -%}
    {%- do joined.update({column: since[column]}) -%}
  {%- endfor -%}
  {%- do settings.update({'joined_after': joined}) -%}
{% endmacro %}

{#- To Spark, case makes no difference; notes of columns, and what rows do not say, name them as
    staging does. staged: its columns. -#}
{% macro _spell_as_staged(settings, staged) %}
  {%- set spelling, listed = {},
        settings.get('column_types', {}).keys() | list + settings.get('renamed_columns', {}).values() | list -%}
  {%- for column in listed if column not in staged %}{% do spelling.update({column | lower: none}) %}{% endfor -%}
  {%- for column in staged if column | lower in spelling %}{% do spelling.update({column | lower: column}) %}{% endfor -%}
  {%- if spelling.values() | select | list -%}
    {%- set types, known = {}, {} -%}
    {%- for column, type in settings.column_types.items() -%}
      {%- do types.update({spelling.get(column | lower) or column: type}) -%}
    {%- endfor -%}
    {%- do known.update(staged) -%}
    {%- do known.update(types) -%}
    {%- do settings.update(delta_cdc._as_spelled(settings, known)) -%}
    {%- do settings.update({'column_types': types, 'tracked': delta_cdc._tracked_columns(settings),
          'filled_by_field': delta_cdc._filled_by_field(settings)}) -%}
    {%- for name in ('key_fields', 'values') if settings.get(name) -%}  {#- the fields of the key before -#}
      {%- do settings.update({name: delta_cdc._spelled(settings[name], delta_cdc._spelling_of(known))}) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}

{% macro _renamed_so_far(staged) %}{{ return(fromjson(staged.properties.get('delta_cdc.renamed', '{}'))) }}{% endmacro %}

{#- Keeps a value, as JSON, in a property of the model's table. -#}
{% macro note_property(name, value) %}
  {%- do delta_cdc.write_before('alter table ' ~ this ~ " set tblproperties ('" ~ name
        ~ "' = " ~ delta_cdc.literal(tojson(value)) ~ ')') -%}
{% endmacro %}

{#- Says in staging what its columns were called: the configuration knows their last names alone. Where staged changes have other
    values under both names, these were two columns. -#}
{% macro _note_renaming(settings, state) %}
  {%- set renamed = delta_cdc._renamed_so_far(state) -%}
  {%- set new = settings.get('renamed_in_staging') or {} -%}
  {%- set fresh = new.items() | reject('in', renamed.items() | list) | list -%}
  {%- if fresh -%}
    {%- do delta_cdc._refuse_renamed_units(settings, fresh) -%}
    {%- for column, old in new.items() if renamed.get(column) != old and column in state.columns -%}
      {#- as it came: what `expressions` make in its place is not looked at -#}
      {%- set type, value = settings.staged_types[column],
            delta_cdc.comparables({'staged_types': settings.staged_types}, [column])[0] -%}
      {%- set was = delta_cdc._as_renamed(settings, delta_cdc.quoted(old), settings.staged_types[old], column, type) -%}
      {%- if value != delta_cdc.quoted(column) %}{% set was = delta_cdc.json_of(was) %}{% endif -%}
      {%- if adapter.query_rows('select 1 as found from ' ~ this
            ~ ' where _cdc_error is null and ' ~ value ~ ' <> ' ~ was ~ ' limit 1') -%}
        {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings)
              ~ '`renamed_columns` says that `' ~ column ~ '` was `' ~ old ~ '`, and staged changes have other'
              ~ ' values in the one than in the other: they were two columns. Nothing was loaded.'
              ~ delta_cdc._or_load_anew(settings, 'Take it out')) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- do renamed.update(new) -%}
    {%- do delta_cdc.note_property('delta_cdc.renamed', renamed) -%}
  {%- endif -%}
{% endmacro %}

{#- The names that a column has had in staging, newest first. -#}
{% macro _old_names(settings, column) %}
  {%- set out, older = [settings.renamed_in_staging[column]], settings.get('renamed_before') or {} -%}
  {%- for _ in older if older.get(out[-1]) and older[out[-1]] not in out + [column] -%}
    {%- do out.append(older[out[-1]]) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _joined_after(staged) %}{{ return(fromjson(staged.properties.get('delta_cdc.joined_after', '{}'))) }}{% endmacro %}


{#- Says in staging up to which batch the columns that it is about to gain were not listed: what was staged until then says
    nothing of them. Of a table of whole copies each says all of its rows. -#}
{% macro _note_joining(settings, state, evolved) %}
  {%- set joined = delta_cdc._joined_after(state) -%}
  {%- set new = evolved.new | select('in', settings.column_types) | list if settings.format != 'snapshots' else [] -%}
  {%- if new and state.committed >= 0 -%}
    {%- for column in new %}{% do joined.update({column: state.committed}) %}{% endfor -%}
    {%- do delta_cdc.note_property('delta_cdc.joined_after', joined) -%}
    {%- do state.properties.update({'delta_cdc.joined_after': tojson(joined)}) -%}
    {%- do delta_cdc.note_columns(settings, state, evolved.new) -%}
  {%- endif -%}
{% endmacro %}


{#- Of a multiset a new column, and a new field of a struct, is part of the row before, too. -#}
{% macro _grow_rows_before(settings, state) %}
  {%- set before, types = {'_cdc_key_before': state.columns.get('_cdc_key_before')}, [] -%}
  {%- for column in settings.get('values') or [] -%}
    {%- do types.append(delta_cdc.quoted(column) ~ ': ' ~ settings.column_types[column]) -%}
  {%- endfor -%}
  {%- if types and before._cdc_key_before is mapping -%}
    {%- set wanted = {'_cdc_key_before': 'struct<' ~ types | join(', ') ~ '>'} -%}
    {%- if adapter.evolved(before, wanted).add %}{% do delta_cdc.evolve_before(wanted) %}{% endif -%}
  {%- endif -%}
{% endmacro %}

{#- Staged positions and keys before get the types of their columns before new ones are compared with them: Spark compares no
    structs whose decimals are of other sizes. `position_type`: to what positions that were noted are cast then. -#}
{% macro _widen_parts(settings, state) %}
  {%- set types, wanted = delta_cdc._by_lower(settings.column_types), {} -%}
  {%- for whole in ('_cdc_sequence', '_cdc_key_before') -%}
    {%- set fields = [] -%}
    {%- for name in delta_cdc._field_names(state.columns.get(whole)) if name | lower in types -%}
      {%- do fields.append(delta_cdc.quoted(name) ~ ': ' ~ types[name | lower]) -%}
    {%- endfor -%}
    {%- if fields %}{% do wanted.update({whole: 'struct<' ~ fields | join(', ') ~ '>'}) %}{% endif -%}
  {%- endfor -%}
  {%- set evolved = adapter.evolved(state.columns, wanted) -%}
  {%- if evolved.widen %}{% do delta_cdc.evolve_before(wanted) %}{% endif -%}
  {%- if 'decimal' in evolved.types.get('_cdc_sequence', '') | lower -%}
    {%- set type = 'struct<_cdc_sequence:' ~ evolved.types['_cdc_sequence'] ~ ',_cdc_ordinal:bigint>' -%}
    {%- do settings.update({'position_type': type}) -%}
    {%- if settings.get('horizon') -%}
      {%- do settings.update({'horizon': 'cast(' ~ settings.horizon ~ ' as ' ~ type ~ ')'}) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}

{#- Fields that join structs, before staged rows are put beside new ones, cast or joined under one name: to Spark structs of other
    fields are other types. -#}
{% macro _grow_structs(settings, state, evolved) %}
  {%- if evolved.add | length > evolved.new | length and not delta_cdc._only_reads()
        and (evolved.rewrite or settings.format == 'snapshots' or settings.renamed_in_staging) -%}
    {%- set grown, types = {}, {} -%}
    {%- for column, type in evolved.types.items() if column not in evolved.new -%}
      {%- do grown.update({column: type}) -%}
    {%- endfor -%}
    {%- do delta_cdc.evolve_before(grown) -%}
    {%- do types.update(state.columns) -%}
    {%- for column, type in grown.items() if column in types and column not in evolved.rewrite -%}
      {%- do types.update({column: type}) -%}
    {%- endfor -%}
    {%- do settings.update({'staged_types': types}) -%}
  {%- endif -%}
{% endmacro %}

{#- New fields of the key before, with the types of their columns. -#}
{% macro _grow_key_before(settings, columns) %}
  {%- for column in columns -%}
    {%- do delta_cdc.write_before('alter table ' ~ this ~ ' add columns (_cdc_key_before.' ~ delta_cdc.quoted(column)
          ~ ' ' ~ settings.column_types[column] ~ ')') -%}
  {%- endfor -%}
{% endmacro %}


{#- Staging as if it had always had the columns that it has now: what was staged before one was renamed (E2) stands under the old
    name, and what was staged before one was listed does not say that it is null. -#}
{% macro staged_rows(settings, staging) %}
  {%- set renamed = settings.get('renamed_in_staging') or {} -%}
  {%- if not renamed and not settings.get('joined_after') -%}{{ return(staging) }}{%- endif -%}
  {%- set values, made_anew = [delta_cdc._unsaid(settings) ~ ' as _cdc_missing'], ['_cdc_missing'] -%}
  {%- for new in renamed -%}
    {%- do values.append(delta_cdc._staged_value(settings, new) ~ ' as ' ~ delta_cdc.quoted(new)) -%}
    {%- do made_anew.append(delta_cdc.column_list([new] + delta_cdc._old_names(settings, new))) -%}
  {%- endfor -%}
  {{ return('(select * except (' ~ made_anew | join(', ') ~ '), ' ~ values | join(', ') ~ ' from ' ~ staging ~ ')') }}
{% endmacro %}

{#- The same, for knowing again what comes once more where rows are only added (N2): what a change told of a column before that
    was listed is the text in `_cdc_undeclared`. Of a masked column staging has no text that could be compared. -#}
{% macro staged_as_told(settings, staging) %}
  {%- set rows = delta_cdc.staged_rows(settings, staging) -%}
  {%- set values, made_anew = [], [] -%}
  {%- for column in settings.get('joined_after') or {}
        if delta_cdc.is_appended(settings) and column in settings.column_types and column not in (settings.get('mask') or {}) -%}
    {%- set name, type = delta_cdc.literal(column | lower), settings.column_types[column] -%}
    {%- set text = 'get(map_values(map_filter(_cdc_undeclared, (name, text) -> lower(name) = ' ~ name ~ ')), 0)' -%}
    {%- set value = delta_cdc._value_of_text_alone(text, type, settings, column) -%}
    {%- do values.append('coalesce(' ~ delta_cdc.quoted(column) ~ ', ' ~ value ~ ') as ' ~ delta_cdc.quoted(column)) -%}
    {%- do made_anew.append(delta_cdc.quoted(column)) -%}
  {%- endfor -%}
  {{ return('(select * except (_cdc_missing, ' ~ made_anew | join(', ') ~ '), ' ~ values | join(', ')
      ~ ', filter(_cdc_missing, column -> not'
      ~ ' coalesce(exists(map_keys(_cdc_undeclared), name -> lower(name) = lower(column)), false))'
      ~ ' as _cdc_missing from ' ~ rows ~ ')' if values else rows) }}
{% endmacro %}

{#- The type that a column has in staging; of one that staging does not have yet, that of the configuration. -#}
{% macro _staged_type(settings, column) %}
  {{ return((settings.get('staged_types') or {}).get(column) or (settings.get('column_types') or {}).get(column)) }}
{% endmacro %}

{#- A column of staging; of one that was renamed what stands under any of its names. -#}
{% macro _staged_value(settings, column) %}
  {%- if column not in (settings.get('renamed_in_staging') or {}) -%}{{ return(delta_cdc.quoted(column)) }}{%- endif -%}
  {%- set types, type = settings.staged_types, delta_cdc._staged_type(settings, column) -%}
  {%- set all = [delta_cdc.quoted(column)] if column in types else [] -%}
  {%- for old in delta_cdc._old_names(settings, column) -%}
    {%- do all.append(delta_cdc._as_renamed(settings, delta_cdc.quoted(old), types[old], column, type)) -%}
  {%- endfor -%}
  {{ return('coalesce(' ~ all | join(', ') ~ ')') }}
{% endmacro %}

{#- What stands under the old name of a column as the column's type. What has parts is its JSON where the other is a text, and
    made of its JSON where the other has parts too, for structs of other fields, such as joined since, are other types; so is a
    variant. -#}
{% macro _as_renamed(settings, old, old_type, column, type) %}
  {%- if type == old_type -%}{{ return(old) }}{%- endif -%}
  {%- set text = delta_cdc.json_of(old) if old_type is mapping else old if old_type == 'string'
        else 'cast(' ~ old ~ ' as string)' -%}
  {%- if delta_cdc._has_parts(type) -%}
    {{ return('from_json(' ~ text ~ ', ' ~ delta_cdc.literal(adapter.evolved({}, {column: type}).types[column]) ~ ', '
        ~ delta_cdc.json_options() ~ ')') }}
  {%- endif -%}
  {%- if type | lower | trim == 'variant' %}{{ return(delta_cdc._plain_value(text, type)) }}{% endif -%}  {#- as one that comes #}
  {#- a text as one that comes, but for Debezium's, whose unit and scale nothing tells any more -#}
  {%- if old_type == 'string' and settings.format != 'debezium' -%}
    {{ return(delta_cdc._value_of_text_alone(text, type, settings, column)) }}
  {%- endif -%}
  {#- so, too, what a text stands between: of five digits it is no year -#}
  {{ return(delta_cdc._plain_value(text, type)
      if old_type is mapping or old_type == 'string' or delta_cdc._counts_unknown(old_type, type)
      else delta_cdc._recast(old, old_type, type)) }}
{% endmacro %}

{#- Whether one of two types is a number and the other a day or a moment: what the number counts (seconds, milliseconds, days)
    neither tells. -#}
{% macro _counts_unknown(one, other) %}
  {{ return([delta_cdc._kind_of(one), delta_cdc._kind_of(other)] | sort == ['moment', 'number']) }}
{% endmacro %}

{#- Under the new name a number would be another moment than it was: these are columns of their own. -#}
{% macro _refuse_renamed_units(settings, renamed) %}
  {%- for column, old in renamed -%}
    {%- set type, was = delta_cdc._staged_type(settings, column), settings.staged_types[old] -%}
    {%- if type and delta_cdc._counts_unknown(type, was) and adapter.query_rows('select 1 as found from ' ~ this
          ~ ' where _cdc_error is null and ' ~ delta_cdc.quoted(old) ~ ' is not null limit 1') -%}
      {%- set types = adapter.evolved({}, {column: type, old: was}).types -%}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ '`renamed_columns` says that `' ~ column ~ '`, '
            ~ types[column] ~ ', was `' ~ old ~ '`, ' ~ types[old] ~ ': what the staged numbers count (seconds, milliseconds,'
            ~ ' microseconds, days) is not known. Nothing was loaded.'
            ~ delta_cdc._or_load_anew(settings,
              'List `' ~ column ~ '` as ' ~ types[old] ~ ', or list both without the entry')) -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}

{#- `_cdc_missing`, which names columns as they were called then, by their names of today. -#}
{% macro _missing_by_new_names(settings) %}
  {%- set names = {} -%}
  {%- for new in settings.get('renamed_in_staging') or {} -%}
    {%- for old in delta_cdc._old_names(settings, new) %}{% do names.update({old: new}) %}{% endfor -%}
  {%- endfor -%}
  {{ return('transform(_cdc_missing, name -> coalesce(map('
      ~ delta_cdc._literals(names.items() | sum(start=())) ~ ')[name], name))' if names else '_cdc_missing') }}
{% endmacro %}

{#- SQL: the batch with which a staged change came as it is: what was replayed keeps the one with which it was delivered. staged:
    staging's columns. -#}
{% macro came_in(staged) %}
  {{ return('coalesce(_cdc_revised_in, _cdc_batch_id)' if '_cdc_revised_in' in staged else '_cdc_batch_id') }}
{% endmacro %}

{#- What a staged change does not say, `_cdc_missing` by the names of today: also the columns that were listed only after it
    came, unless it was read anew since. -#}
{% macro _unsaid(settings) %}
  {%- set missing = delta_cdc._missing_by_new_names(settings) -%}
  {%- set joined, staged = settings.get('joined_after') or {}, settings.get('staged_types') or {} -%}
  {%- set came = delta_cdc.came_in(staged) -%}
  {%- set young = [] -%}
  {%- for column, batch in joined.items() -%}
    {%- do young.append('if(' ~ came ~ ' <= ' ~ batch ~ " and _cdc_op in ('I', 'U', 'R')"
          ~ (' and ' ~ delta_cdc._staged_value(settings, column) ~ ' is null'
            if column in staged or column in (settings.get('renamed_in_staging') or {}) else '')
          ~ ', array(' ~ delta_cdc.literal(column) ~ '), array())') -%}
  {%- endfor -%}
  {{ return('array_union(' ~ missing ~ ', concat(' ~ young | join(', ') ~ '))' if young else missing) }}
{% endmacro %}
