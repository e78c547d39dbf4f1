{#- The settings of one table: format defaults, then the feed's settings, then the table's own.
    source_relation: by source(feed, table). -#}
{% macro settings(source_relation) %}
  {%- if not execute -%}{{ return({'columns': [], 'column_types': {}}) }}{%- endif -%}
  {%- if flags.WHICH in ['run', 'build'] and flags.EMPTY -%}
    {%- do exceptions.raise_compiler_error(
          'delta_cdc: --empty shows models no rows, and they would note as done what they have not read. Nothing was loaded. Leave it'
          ~ ' out, or exclude the models of feeds.') -%}
  {%- endif -%}
  {%- do delta_cdc.refuse_sample([source_relation]) -%}
  {%- set found = graph.sources.values() | selectattr('relation_name', 'equalto', source_relation | string) | list -%}
  {%- if not found -%}
    {%- do exceptions.raise_compiler_error("delta_cdc: " ~ source_relation
          ~ " is not a source of this project. Pass source('<feed>', '<table>').") -%}
  {%- endif -%}
  {%- if found | length > 1 -%}  {#- the tables of two feeds may have one name -#}
    {%- set of_model = found | selectattr('unique_id', 'in', model.depends_on.nodes) | list -%}
    {%- if of_model | length != 1 -%}
      {%- do exceptions.raise_compiler_error('delta_cdc: ' ~ source_relation ~ ' is a table of '
            ~ found | map(attribute='source_name') | join(' and ') ~ ', and ' ~ model.name ~ ' reads '
            ~ ('both' if of_model else 'neither') ~ '. Give one of them another `schema` or `identifier` in its source.') -%}
    {%- endif -%}
    {%- set found = of_model -%}
  {%- endif -%}
  {{ return(delta_cdc._table_settings(found[0])) }}
{% endmacro %}


{#- `--sample` lets `ref` and `source` show a part of the rows of what has an `event_time`. relations: what a model reads. -#}
{% macro refuse_sample(relations) %}
  {%- for relation in relations if relation.event_time_filter is defined and relation.event_time_filter is not none -%}
    {%- do exceptions.raise_compiler_error('delta_cdc: --sample shows ' ~ this ~ ' a part of the rows of ' ~ relation.identifier
          ~ ', which has an `event_time`, and it would note as done what it has not read. Nothing was loaded. Leave --sample out, '
          ~ 'or exclude the models of feeds.') -%}
  {%- endfor -%}
{% endmacro %}


{#- Whether a table's rows live and change; otherwise there is no history and nothing to resolve. -#}
{% macro has_entities(settings) %}{{ return(not settings.insert_only and settings.keyless == 'none') }}{% endmacro %}

{#- Whether a key tells rows apart, of insert-only tables too; without one equal rows of one change set are all rows (N1). -#}
{% macro has_key(settings) %}{{ return((settings.get('keys') or []) | length > 0 and settings.keyless == 'none') }}{% endmacro %}


{#- All tables of a feed, by name: {table: settings}. -#}
{% macro feed_tables(feed) %}
  {%- set tables = {} -%}
  {%- for node in graph.sources.values() if node.source_name == feed and delta_cdc._cdc_meta(node) is not none -%}
    {%- do tables.update({node.name: delta_cdc._table_settings(node)}) -%}
  {%- endfor -%}
  {{ return(tables) }}
{% endmacro %}


{#- The `cdc` block of a source table's meta, with its feed's block beneath; none if the source is no feed. -#}
{% macro _cdc_meta(node) %}
  {%- set feed = (node.source_meta or {}).get('cdc') -%}
  {%- set table = ((node.config or {}).get('meta') or {}).get('cdc') or (node.meta or {}).get('cdc') -%}
  {%- if feed is none and table is none -%}{{ return(none) }}{%- endif -%}
  {%- set merged = {} -%}
  {%- do merged.update(feed or {}) -%}
  {%- do merged.update(table or {}) -%}
  {{ return(merged) }}
{% endmacro %}


{#- Worked out once a run: a table's models, and its feed's, ask for the same. Each gets a dict of its own, to change what it has
    under a name, and not what is in it. -#}
{% macro _table_settings(node) %}
  {%- set name = 'settings of ' ~ node.unique_id -%}
  {%- set known = adapter.recall(name) -%}
  {%- if known %}{{ return(dict(known)) }}{% endif -%}
  {%- set given = delta_cdc._cdc_meta(node) -%}
  {%- set defaults = delta_cdc._defaults() -%}
  {%- set settings = {} -%}
  {%- do settings.update(defaults['settings']) -%}
  {%- do settings.update(defaults['formats'].get(given.get('format'), {})) -%}
  {%- do settings.update(given) -%}
  {%- if settings.get('key_changes') is none -%}
    {%- do settings.update({'key_changes': settings.get('old_keys') | length > 0 or settings.get('split_key_changes')
        or delta_cdc._codes_before(settings) | length > 0}) -%}
  {%- endif -%}
  {%- set types = {} -%}
  {%- set never = settings.never_store | map('lower') | list -%}
  {%- for column in node.columns.values() if column.name | lower not in never -%}
    {%- do types.update({column.name: delta_cdc._spelled_type(column.data_type)}) -%}
  {%- endfor -%}
  {%- do settings.update(delta_cdc._as_spelled(settings, types)) -%}
  {%- do settings.update(delta_cdc._with_shadowed_fields(settings, given, types)) -%}
  {%- do settings.update({
        'feed': node.source_name,
        'table': node.name,
        'source_table': settings.get('source_table') or node.name,
        'column_types': types,
        'listed_columns': node.columns.values() | map(attribute='name') | list,
        'columns': delta_cdc._published_columns(settings, types.keys() | list),
      }) -%}
  {#- what only the feed says of changed and deleted rows is for its other tables -#}
  {%- if not delta_cdc.has_entities(settings) -%}
    {%- do settings.update({'delete_mode': 'hard', 'created_at': none, 'updated_at': none, 'set_on_insert': [],
          'max_delete_share': none, 'apply': 'merge'}) -%}
  {%- endif -%}
  {%- do settings.update({'tracked': delta_cdc._tracked_columns(settings),
        'filled_by_field': delta_cdc._filled_by_field(settings)}) -%}
  {%- do adapter.remember(name, dict(settings)) -%}
  {{ return(settings) }}
{% endmacro %}


{#- A type as the formats know it: Spark has other words for some of them, and takes no lengths of texts inside of JSON. -#}
{% macro _spelled_type(type) %}
  {%- set words = {'byte': 'tinyint', 'short': 'smallint', 'integer': 'int', 'long': 'bigint', 'real': 'float',
        'timestamp_ltz': 'timestamp'} -%}
  {%- if '<' in type -%}
    {%- set out = [] -%}
    {%- for part in modules.re.split('(`(?:[^`]|``)*`)', type) -%}
      {%- do out.append(part if part.startswith('`')
            else modules.re.sub('(?i)\\b(?:varchar|char|character)\\s*\\(\\s*\\d+\\s*\\)', 'string', part)) -%}
    {%- endfor -%}
    {{ return(out | join('')) }}
  {%- endif -%}
  {{ return(words.get(type | lower | trim) or modules.re.sub('(?i)^\\s*(dec|numeric)(?=\\s*(\\(|$))', 'decimal', type)) }}
{% endmacro %}


{#- Where a column has the name of a field of the format, the name means the column, and the field is `_cdc` before its name,
    in the format's own defaults too. -#}
{% macro _with_shadowed_fields(settings, given, types) %}
  {%- set columns = types.keys() | map('lower') | list -%}
  {%- set shadowed = delta_cdc._defaults()['fields'].get(settings.format, []) | select('in', columns) | list -%}
  {%- set out, field = {'shadowed': shadowed}, '\\b(' ~ shadowed | join('|') ~ ')\\b' -%}
  {%- for name in ('sequence_by', 'ordinal', 'transaction', 'occurred_at')
        if shadowed and name not in given and settings.get(name) -%}
    {%- set parts = [] -%}
    {%- for part in ([settings[name]] if settings[name] is string else settings[name]) -%}
      {%- do parts.append(modules.re.sub(field, '_cdc\\1', part)) -%}
    {%- endfor -%}
    {%- do out.update({name: parts[0] if settings[name] is string else parts}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- The settings that name columns, with the columns as the table spells them: to Spark, case makes no difference. -#}
{% macro _as_spelled(settings, types) %}
  {%- set out, spelling = {}, delta_cdc._spelling_of(types) -%}
  {%- for name in delta_cdc._defaults()['naming_columns'] if settings.get(name) -%}
    {%- do out.update({name: delta_cdc._spelled(settings[name], spelling)}) -%}
  {%- endfor -%}
  {%- if settings.get('track_columns') is mapping -%}  {#- `except` is no column there, though one may be called so -#}
    {%- do out.update({'track_columns': {'except': delta_cdc._spelled(settings.track_columns['except'], spelling)}}) -%}
  {%- endif -%}
  {{ return(out) }}
{% endmacro %}

{#- {name without regard to case: name}, for `_spelled`. -#}
{% macro _spelling_of(names) %}
  {%- set out = {} -%}
  {%- for name in names %}{% do out.update({name.lower(): name}) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- The same mapping, its keys in lower case. -#}
{% macro _by_lower(mapping) %}
  {%- set out = {} -%}
  {%- for key, value in mapping.items() %}{% do out.update({key | lower: value}) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _spelled(value, spelling) %}
  {%- if value is string -%}{{ return(spelling.get(value.lower(), value)) }}{%- endif -%}
  {%- if value is mapping -%}
    {%- set out = {} -%}
    {%- for key, item in value.items() -%}
      {%- do out.update({delta_cdc._spelled(key, spelling): delta_cdc._spelled(item, spelling)}) -%}
    {%- endfor -%}
    {{ return(out) }}
  {%- elif value is iterable -%}
    {%- set out = [] -%}
    {%- for item in value %}{% do out.append(delta_cdc._spelled(item, spelling)) %}{% endfor -%}
    {{ return(out) }}
  {%- endif -%}
  {{ return(value) }}
{% endmacro %}


{#- The columns of history and final: those of the feed, and what `expressions` add. -#}
{% macro _published_columns(settings, all) %}
  {%- set published = delta_cdc._chosen_columns(settings, all) -%}
  {{ return(published + settings.get('expressions', {}).keys() | reject('in', published) | list) }}
{% endmacro %}

{#- `columns`, or all without `except_columns`, the flag and the old-key columns. -#}
{% macro _chosen_columns(settings, all) %}
  {%- if settings.get('columns') -%}
    {{ return(all | select('in', settings['columns']) | list) }}
  {%- endif -%}
  {%- if settings.get('except_columns') -%}
    {{ return(all | reject('in', settings['except_columns']) | list) }}
  {%- endif -%}
  {%- set control = [settings.get('operation')] + (settings.get('old_keys') or {}).values() | list -%}
  {{ return(all | reject('in', control) | list) }}
{% endmacro %}


{#- The columns whose change makes a new version: `track_columns` (a list, or {except: […]}), by default all published ones. -#}
{% macro _tracked_columns(settings) %}
  {%- set track = settings.get('track_columns') -%}
  {%- if track is none -%}
    {{ return(settings['columns']) }}
  {%- elif track is mapping -%}
    {{ return(settings['columns'] | reject('in', track['except']) | list) }}
  {%- endif -%}
  {{ return(settings['columns'] | select('in', track) | list) }}
{% endmacro %}


{#- Whether rows are only ever added to a table, each change one. -#}
{% macro is_appended(settings) %}{{ return(settings.insert_only or settings.keyless == 'append') }}{% endmacro %}


{#- How an error or a warning about a table begins. -#}
{% macro about_table(settings) %}{{ return('feed ' ~ settings.feed ~ ', table ' ~ settings.table ~ ': ') }}{% endmacro %}


{#- Whether something of a table must not be stored. It is read from the change sets themselves, and
    raw_<feed> has none of it. -#}
{% macro is_private(settings) %}
  {{ return((settings.get('mask') or settings.get('never_store') or []) | length > 0) }}
{% endmacro %}

{#- The columns, in lower case, whose text as it came is stored nowhere. -#}
{% macro _private_columns(settings) %}
  {%- set out = settings.get('mask', {}).keys() | list + settings.get('never_store', []) -%}
  {%- for new, old in settings.renamed_columns.items() if new | lower in out | map('lower') -%}
    {%- do out.append(old) -%}
  {%- endfor -%}
  {{ return(out | map('lower') | list) }}
{% endmacro %}
