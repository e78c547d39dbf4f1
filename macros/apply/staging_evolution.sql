{#- What staging needs to hold the configured columns (E1, E4, E6): as adapter.evolved. `settings.column_types` becomes what the
    columns are then; `settings.given_types` has those whose values are cast to what the table has, for Delta cannot widen it. -#}
{% macro _staged_columns(settings, state) %}
  {%- if not state.exists -%}{{ return({'types': {}, 'new': [], 'add': [], 'widen': [], 'rewrite': [], 'cast': {}}) }}{%- endif -%}
  {%- do delta_cdc._refuse_other_order(settings, state) -%}
  {%- set wanted = {} -%}
  {%- do wanted.update(settings.column_types) -%}
  {%- do wanted.update({'_cdc_undeclared': 'map<string,string>'}) -%}
  {%- set evolved = adapter.evolved(state.columns, wanted) -%}
  {%- set types = {} -%}
  {%- for column in settings.column_types %}{% do types.update({column: evolved.types[column]}) %}{% endfor -%}
  {%- do settings.update({'column_types': types, 'given_types': evolved.cast}) -%}
  {%- set there = state.columns.keys() | list + evolved.new -%}
  {%- do delta_cdc.note_renamed(settings, there) -%}
  {{ return(evolved) }}
{% endmacro %}


{#- Staged positions, and the values of a multiset, are compared with new ones: their parts stay what they are. -#}
{% macro _refuse_other_order(settings, state) %}
  {%- set about = delta_cdc.about_table(settings) -%}
  {%- set remedy = " Put it back, or drop " ~ this ~ " and run again to load the change sets that are still there." -%}
  {%- set names = [] -%}
  {%- for part in settings.sequence_by %}{% do names.append(delta_cdc._sequence_name(part, loop.index)) %}{% endfor -%}
  {%- set staged = delta_cdc._field_names(state.columns.get('_cdc_sequence')) -%}
  {%- if staged and staged | map('lower') | list != names | map('lower') | list -%}
    {%- do exceptions.raise_compiler_error(about ~ "`sequence_by` is [" ~ settings.sequence_by | join(', ') ~ "], and staging is ordered by ("
          ~ staged | join(', ') ~ "). Changes of two orders cannot be compared." ~ remedy) -%}
  {%- endif -%}
  {%- if settings.get('values') -%}
    {%- set staged = delta_cdc._field_names(state.columns.get('_cdc_key_before')) -%}
    {%- if staged | reject('in', settings['values']) | list -%}
      {%- do exceptions.raise_compiler_error(about ~ "rows of a multiset are their values, and " ~ staged | reject('in', settings['values']) | join(', ')
            ~ " would no longer be one." ~ remedy) -%}
    {%- endif -%}
    {%- do settings.update({'values': staged + (settings['values'] | reject('in', staged) | list)}) -%}
  {%- endif -%}
{% endmacro %}


{% macro _field_names(type) %}{{ return(type['fields'] | map(attribute='name') | list if type is mapping else []) }}{% endmacro %}


{#- What a person should know of the load's columns. -#}
{% macro _tell_of_columns(settings, plan) %}
  {%- set about = delta_cdc.about_table(settings) -%}
  {%- if plan.undeclared -%}
    {%- do exceptions.warn(about ~ plan.undeclared ~ ' of ' ~ plan.rows_read ~ ' new changes have columns that are not listed: '
          ~ plan.undeclared_columns | join(', ') ~ '. Their values are in _cdc_undeclared of staging. List them under `columns:`, or name them in `never_store`.') -%}
  {%- endif -%}
  {%- for column, type in settings.get('given_types', {}).items() -%}
    {%- do exceptions.warn(about ~ 'column ' ~ column ~ ' is ' ~ settings.column_types[column] ~ ' in staging and ' ~ type
          ~ ' in the configuration. Delta cannot widen it: values are cast, and those that do not fit are quarantined (cast:' ~ column ~ ').') -%}
  {%- endfor -%}
{% endmacro %}


{#- The whole table anew, in one commit, with columns changed that Delta cannot alter (E4: date to timestamp), and the new changes. -#}
{% macro _staging_rewritten(settings, state, evolved, lines, repeated=false, past=none) -%}
{%- set types = {} -%}
{%- for column, type in evolved.types.items() %}{% do types.update({column | lower: type}) %}{% endfor -%}
{%- set new = delta_cdc._staging_columns(settings) | map('lower') | list -%}
{%- set as_staged, as_new = [], [] -%}
{%- for column in state.columns -%}
  {%- set name = delta_cdc.quoted(column) -%}
  {%- do as_staged.append('cast(' ~ name ~ ' as ' ~ types[column | lower] ~ ') as ' ~ name if column | lower in types else name) -%}
  {%- do as_new.append(name if column | lower in new or name | lower in new else 'null') -%}
{%- endfor -%}
{%- for column in evolved.new -%}
  {%- do as_staged.append('cast(null as ' ~ evolved.types[column] ~ ') as ' ~ delta_cdc.quoted(column)) -%}
  {%- do as_new.append(delta_cdc.quoted(column)) -%}
{%- endfor -%}
{%- set staged = 'select ' ~ as_staged | join(', ') ~ ' from ' ~ this -%}
{{ staged }}
union all
select {{ as_new | join(', ') }} from (
{{ delta_cdc._staging_sql(settings, lines, repeated, '(' ~ staged ~ ')' if past is not none else none) }}
)
{%- endmacro %}


{#- Notes which renamed columns staging has under both names. -#}
{% macro note_renamed(settings, staged) %}
  {%- set out = {} -%}
  {%- for new, old in (settings.get('renamed_columns') or {}).items() if new in staged and old in staged %}{% do out.update({new: old}) %}{% endfor -%}
  {%- do settings.update({'renamed_in_staging': out}) -%}
{% endmacro %}


{#- Staging with a column that was renamed since (E2) under its new name: what was staged before stands under the old one. -#}
{% macro staged_rows(settings, staging) %}
  {%- set renamed = settings.get('renamed_in_staging') -%}
  {%- if not renamed -%}{{ return(staging) }}{%- endif -%}
  {%- set missing, values = ['_cdc_missing'], [] -%}
  {%- for new, old in renamed.items() -%}
    {%- do missing.append('if(name = ' ~ delta_cdc.literal(old) ~ ', ' ~ delta_cdc.literal(new) ~ ', ') -%}
    {%- do values.append('coalesce(' ~ delta_cdc.quoted(new) ~ ', ' ~ delta_cdc.quoted(old) ~ ') as ' ~ delta_cdc.quoted(new)) -%}
  {%- endfor -%}
  {%- set names = missing[1:] | join('') ~ 'name' ~ ')' * (missing | length - 1) -%}
  {{ return('(select * except (_cdc_missing, ' ~ delta_cdc.column_list(renamed.keys() | list + renamed.values() | list) ~ '), '
      ~ values | join(', ') ~ ', transform(_cdc_missing, name -> ' ~ names ~ ') as _cdc_missing from ' ~ staging ~ ')') }}
{% endmacro %}
