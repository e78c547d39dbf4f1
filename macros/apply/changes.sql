{#-
  From the lines of a load to its changes (rules P1, P3, P4, Q1): the format's macro makes messages of lines, and here these become
  rows of the table's columns and types with operation, old key, place in the order and, where they cannot be used, the error.
  `staging` stages them.
-#}

{#- lines, messages, typed, …, changes (or `read`, which keeps the message). Beside the columns of the table
    there is only what begins with `_`. -#}
{% macro _typed_ctes(settings, lines, last='changes') -%}
{%- set read = delta_cdc._read_ctes(settings, lines, last) -%}
{{ read }}
{%- if settings.get('alternate_keys') %},
{{ delta_cdc._named_by_alternate_keys(settings, settings.get('past'), read) }}
{%- endif %}
{%- endmacro %}

{#- Of a table with `alternate_keys` up to `read`. -#}
{% macro _read_ctes(settings, lines, last) -%}
{%- set named = delta_cdc._identifying_columns(settings) -%}
{%- set keys = named | selectattr('is_key') | list -%}
{%- set of_deletes = delta_cdc._needed_by_deletes(settings, keys | map(attribute='name') | list) -%}
{%- set mask = settings.get('mask') or {} %}
{%- set messages = 'spelled' if settings.get('spelled') else 'messages' -%}
{%- set masks_before = named | selectattr('name', 'in', mask) | list | length > 0 -%}
lines as (
  select * from {{ lines if not lines.strip().startswith('select') else '(' ~ lines ~ ')' }}
),
messages as (
  {{ delta_cdc.format_changes('lines', settings) }}
),
{%- if settings.get('spelled') %}
spelled as (  -- to Spark, case makes no difference
  {%- set maps = ['after', 'before'] + delta_cdc.format_says(settings, 'maps', []) %}
  select * except ({{ maps | join(', ') }})
  {%- for map in maps %},
    {{ delta_cdc._as_listed(map, settings) }} as {{ map }}
  {%- endfor %}
  from messages
),
{%- endif %}
{%- if settings.get('full_images') %}
whole as (  -- what an update leaves out is as it was before
  {{ delta_cdc._whole_rows(settings, messages) }}
),
{%- endif %}
typed as (  -- text to types
  {{ delta_cdc._typed_rows(settings, named, 'whole' if settings.get('full_images') else messages) }}
),
fitted as (  -- with the first column that holds a value that does not fit its type; first what a delete needs too
  {{ delta_cdc._fitted_rows(settings, named, of_deletes) }}
),
{%- if masks_before %}
{#- no lambda: its parameter cannot have a dot in its name, and a mask may name several columns of the key #}
as_before as (  -- the row with its key as it was, for the masks of that
  {{ delta_cdc._rows_as_before(named) }}
),
masked_before as (
  {{ delta_cdc._rows_masked_before(settings, named, mask) }}
),
{%- endif %}
{%- if mask %}
masked as (  -- from here on there is no clear value
  {{ delta_cdc._masked_rows(settings, mask, 'masked_before' if masks_before else 'fitted') }}
),
{%- endif %}
operations as (
  select *, {{ delta_cdc._operation_of_row(settings) }} as _cdc_op, {{ delta_cdc._sequence(settings) }} as _cdc_sequence
    {{- ', ' ~ delta_cdc._alternate_values(settings, named | map(attribute='name') | list) ~ ' as _cdc_named_by'
        if settings.get('alternate_keys') }}
  from {{ 'masked' if mask else 'fitted' }}
),
keyed as (  -- a delete names the row by its key before, and what an update leaves out of its key is as it was (P1)
  select * {%- if keys %} except ({{ keys | map(attribute='new') | join(', ') }}),
  {%- for key in keys %}
    if(_cdc_op = 'D' or array_contains(_cdc_absent, {{ delta_cdc.literal(key.name) }}),
      {{ key.before }}, {{ key.new }}) as {{ key.new }}{{ ',' if not loop.last }}
  {%- endfor %}{% endif %}
  from operations
),
checked as (
  select *,
    {{- ' coalesce(' ~ delta_cdc._is_nameless(settings) ~ ', false) as _cdc_is_nameless,'
        if settings.get('alternate_keys') }}
    {{ delta_cdc._error_of_row(settings, named, of_deletes) }} as _cdc_error
  from keyed{% if settings.get('erased_in') %} cross join {{ delta_cdc._erased_keys(settings.erased_in) }}{% endif %}
),
{{ 'read' if settings.get('alternate_keys') else last }} as (
  {{ delta_cdc._read_rows(settings, keys, last) }}
)
{%- endmacro %}


{#- The columns by which a row is named: its key, of a multiset all of its values, and what alternate keys are made of.
    [{name, is_key, may_be_null: whether a null in the image before is its value, place: that of _cdc_before_<place> and
     _cdc_told_<place>, and as SQL new, before: the value before the change, where that is not told the new one, is_told}] -#}
{% macro _identifying_columns(settings) %}
  {%- set keys, out = delta_cdc._keys_of_rows(settings), [] -%}
  {%- set may_be_null = keys if settings.keyless == 'multiset'
        else (settings.get('nullable_keys') or [] if settings.get('full_images') else []) -%}
  {%- for name in keys + delta_cdc._alternate_columns(settings) | reject('in', keys) | list -%}
    {%- set new, before, told = delta_cdc.quoted(name), '_cdc_before_' ~ loop.index, '_cdc_told_' ~ loop.index -%}
    {%- set common = {'name': name, 'place': loop.index, 'is_key': name in keys, 'new': new} -%}
    {%- do out.append(dict(common, may_be_null=true, is_told=told ~ ' is true',
            before='if(' ~ told ~ ', ' ~ before ~ ', ' ~ new ~ ')') if name in may_be_null
          else dict(common, may_be_null=false, is_told=before ~ ' is not null',
            before='coalesce(' ~ before ~ ', ' ~ new ~ ')')) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- Rows of a multiset are their values. -#}
{% macro _keys_of_rows(settings) %}{{ return(settings.get('values') or settings.get('keys') or []) }}{% endmacro %}

{#- SQL that is true of a change that tells an old key, and (a multiset's may be equal) another than the new one. keys: of
    `_identifying_columns`. -#}
{% macro _tells_old_key(settings, keys) %}
  {%- set unmoved = [] -%}
  {%- for key in keys %}{% do unmoved.append(key.before ~ ' <=> ' ~ key.new) %}{% endfor -%}
  {{ return("_cdc_op in ('I', 'U', 'R') and (" ~ keys | map(attribute='is_told') | join(' or ') ~ ')'
      ~ (' and not (' ~ unmoved | join(' and ') ~ ')' if settings.keyless != 'multiset' else '')) }}
{% endmacro %}


{#- The CTEs of `_read_ctes` of more than a few lines. Of `whole`: what an update leaves out is in the image before (P3). -#}
{% macro _whole_rows(settings, messages) -%}
select * except (after), if({{ delta_cdc._operation(settings) }} = 'U' and before is not null,
    {%- set silent = delta_cdc._silent_when_null(settings) | list %}
    {%- for new, old in settings.renamed_columns.items() if new in silent %}{% do silent.append(old) %}{% endfor %}
    {%- if silent %}
    map_concat(map_filter(before, (name, value) ->
        not map_contains_key(after, name) or (after[name] is null and name in ({{ delta_cdc._literals(silent) }}))),
      map_filter(after, (name, value) ->
        value is not null or name not in ({{ delta_cdc._literals(silent) }}) or not map_contains_key(before, name))),
      after) as after
    {%- else %}
    map_concat(map_filter(before, (name, value) -> not map_contains_key(after, name)), after), after) as after
    {%- endif %}
  from {{ messages }}
{%- endmacro %}


{#- Of `typed`: the table's columns and, as `_cdc_`…, what the message tells beside them. named: of `_identifying_columns`. -#}
{% macro _typed_rows(settings, named, messages) -%}
{%- set types, shadowed = settings.column_types, settings.get('shadowed') or [] -%}
{%- set keys = named | selectattr('is_key') | map(attribute='name') | list -%}
select * except (after, before, batch_id, change_set, row_number, message, parsed, op_code
    {%- for field in shadowed %}, {{ field }}{% endfor %}),
  {%- for field in shadowed %}
    {{ field }} as _cdc{{ field }},
  {%- endfor %}
    batch_id as _cdc_batch_id, change_set as _cdc_change_set, row_number as _cdc_row,
    {{ delta_cdc._raw_text(settings) }} as _cdc_message,
    parsed as _cdc_parsed, {{ delta_cdc._operation(settings) }} as _cdc_flag,
    after as _cdc_after, before as _cdc_before,
  {%- for column in types %}
    {{ delta_cdc._typed_value(column, settings, keys) }} as {{ delta_cdc.quoted(column) }},
  {%- endfor %}
  {%- for column in named %}
    {{ delta_cdc._typed_value(column.name, settings, keys, 'before') }} as _cdc_before_{{ column.place }},
    {%- if column.may_be_null %}
    {{ delta_cdc._carries_before(column.name, settings) }} as _cdc_told_{{ column.place }},
    {%- endif %}
  {%- endfor %}
    array_except(array({{ delta_cdc._literals(types) }}), {{ delta_cdc._names_present(settings) }}) as _cdc_absent
  {%- if settings.get('ignore_null_updates') %},
    {{ delta_cdc._null_in_update(settings) }} as _cdc_null
  {%- endif %}
  from {{ messages }}
{%- endmacro %}


{#- Of `fitted`: what is known of a value by its text and its type. A value with its relation's name before it is not taken for a
    lambda's parameter of the column's name, nor `typed` and a field of it for a column of this relation. -#}
{% macro _fitted_rows(settings, named, of_deletes) -%}
{%- set types, names = settings.column_types, named | map(attribute='name') | list -%}
{%- set unnamed = [] -%}
{%- for key in named if key.is_key -%}
  {%- do unnamed.append('coalesce(' ~ delta_cdc._text_of(key.name, settings, '_cdc_after') ~ ', '
        ~ delta_cdc._text_of(key.name, settings, '_cdc_before') ~ ') is null') -%}
{%- endfor -%}
select * except (_cdc_after, _cdc_before),
    {#- columns that the feed has and nobody listed: more of them than are present of those that are listed #}
    if(size(_cdc_after) + size(_cdc_absent) > {{ types | length }},
      map_filter(_cdc_after, (column, text) ->
        column not in ({{ delta_cdc._literals(delta_cdc._known_columns(settings)) }}){{ delta_cdc._not_private(settings) }}),
      null) as _cdc_others,
    case
  {%- for column, type in delta_cdc._named_first((of_deletes + names) | unique | list, types).items()
        if type | lower | trim != 'string' or delta_cdc._given_type(column, settings) %}
      {%- set value = 'typed.' ~ delta_cdc.quoted(column) %}
      when {{ delta_cdc._misfits('_cdc_after', column, settings, value) }} then {{ delta_cdc.literal(column) }}
      {%- for told in named if told.name == column %}
      when {{ delta_cdc._misfits('_cdc_before', column, settings, '_cdc_before_' ~ told.place) }}
        {{- '' if told.is_key else ' and ' ~ unnamed | join(' and ') }} then {{ delta_cdc.literal(column) }}
      {%- endfor %}
  {%- else %}
      when false then ''
  {%- endfor %}
    end as _cdc_misfit
  from typed
{%- endmacro %}


{#- Of `as_before`: masks are SQL over the columns' own names. -#}
{% macro _rows_as_before(named) -%}
select * except ({{ named | map(attribute='new') | join(', ') }})
  {%- for column in named %},
    {{ column.new }} as _cdc_after_{{ column.place }},
    {{ column.before }} as {{ column.new }}
  {%- endfor %}
  from fitted
{%- endmacro %}

{#- Of `masked_before`: the columns as they are after the change again, and masked what they were before it. -#}
{% macro _rows_masked_before(settings, named, mask) -%}
select * except ({{ named | map(attribute='new') | join(', ') }}
    {%- for column in named %}, _cdc_after_{{ column.place }}
      {%- if column.name in mask %}, _cdc_before_{{ column.place }}{% endif %}{% endfor %})
  {%- for column in named %},
    _cdc_after_{{ column.place }} as {{ column.new }}
    {%- if column.name in mask %},
    if({{ column.is_told }},
      try_cast(({{ mask[column.name] }}) as {{ settings.column_types[column.name] }}), null) as _cdc_before_{{ column.place }}
    {%- endif %}
  {%- endfor %}
  from as_before
{%- endmacro %}

{#- Of `masked`. What a mask makes has to fit the column, too. -#}
{% macro _masked_rows(settings, mask, rows) -%}
{%- set types = settings.column_types -%}
select * except (_cdc_misfit, {{ delta_cdc.column_list(mask) }})
  {%- for column, sql in mask.items() %},
    try_cast(({{ sql }}) as {{ types[column] }}) as {{ delta_cdc.quoted(column) }}
  {%- endfor %},
    case when _cdc_misfit is not null then _cdc_misfit
  {%- for column, sql in mask.items() %}
      when ({{ sql }}) is not null and try_cast(({{ sql }}) as {{ types[column] }}) is null then {{ delta_cdc.literal(column) }}
  {%- endfor %} end as _cdc_misfit
  from {{ rows }}
{%- endmacro %}


{#- Why a row cannot be used (Q1), null where it can. -#}
{% macro _error_of_row(settings, named, of_deletes) -%}
{%- set keys = named | selectattr('is_key') | list -%}
case
      when not _cdc_parsed then 'unparsable'
  {%- if settings.get('erased_in') %}
      when {{ delta_cdc._comes_erased(settings, keys | map(attribute='before') | list) }} then 'erased'
  {%- endif %}
      when _cdc_op is null then 'unknown_operation'
  {%- if delta_cdc.is_appended(settings) %}
      when _cdc_op not in ('I', 'R') then 'not_allowed'
  {%- endif %}
  {%- if settings.keyless == 'multiset' %}
      {%- set is_whole = [] %}
      {%- for key in keys -%}
        {%- do is_whole.append('(' ~ key.is_told ~ ' or array_contains(_cdc_absent, ' ~ delta_cdc.literal(key.name) ~ '))') -%}
      {%- endfor %}
      -- without all of the row as it was there is nothing to take away
      when _cdc_op = 'U' and not ({{ is_whole | join(' and ') or 'false' }}) then 'not_allowed'
  {%- endif %}
  {%- for key in keys if key.name not in (settings.get('nullable_keys') or []) and settings.keyless == 'none' %}
      when _cdc_op <> 'T' and {{ key.new }} is null and not _cdc_misfit <=> {{ delta_cdc.literal(key.name) }}
        {{- ' and not _cdc_is_nameless' if settings.get('alternate_keys') }} then 'null_key'
  {%- endfor %}
      when _cdc_misfit is not null and {{ delta_cdc._misfit_is_needed(settings, named, of_deletes) }}
        then concat('cast:', _cdc_misfit)
      when _cdc_op <> 'R' and _cdc_sequence is null then 'null_sequence'
  {%- if settings.get('ordinal') %}
      when {{ settings.ordinal }} is not null and {{ delta_cdc._ordinal(settings) }} is null
        then {{ delta_cdc.literal('cast:' ~ settings.ordinal.strip('`')) }}
  {%- endif %}
  {%- if settings.get('horizon') %}
      when {{ delta_cdc._position(settings) }} <= {{ settings.horizon }} then 'too_late'
  {%- endif %}
  {%- if keys and not settings.key_changes and not delta_cdc.is_appended(settings) %}
      -- a key change that the configuration rules out is not applied in silence, and no upsert beside the row that moved either
      when {{ delta_cdc._tells_old_key(settings, keys) }} then 'not_allowed'
  {%- endif %}
    end
{%- endmacro %}


{#- Of the last: the columns of staging, and with alternate keys what finding the key still takes. -#}
{% macro _read_rows(settings, keys, last) -%}
{%- set before, tells_all = {}, delta_cdc.format_says(settings, 'tells_all') -%}
{%- for key in keys %}{% do before.update({key.name: key.before}) %}{% endfor -%}
select
  {%- if settings.get('erased_in') %}
    {%- for column in settings.column_types %}
    if(_cdc_error <=> 'erased', null, {{ delta_cdc.quoted(column) }}) as {{ delta_cdc.quoted(column) }},
    {%- endfor %}
  {%- else %}
    {{ delta_cdc.column_list(settings.column_types) }},
  {%- endif %}
    _cdc_op,
    {%- if keys %}
    case {% if settings.get('erased_in') %}when _cdc_error <=> 'erased' then null {% endif -%}
      when {{ delta_cdc._tells_old_key(settings, keys) }}
      then struct({% for name in settings.get('key_fields') or before -%}
        {{ before.get(name, 'null') }} as {{ delta_cdc.quoted(name) }}{{ ', ' if not loop.last }}
      {%- endfor %}) end
    {%- else %}
    cast(null as string)
    {%- endif %} as _cdc_key_before,
    _cdc_sequence,
    {{ delta_cdc._place_inside(settings) }} as _cdc_ordinal,
    {#- an empty text, as some producers write for none, would be one transaction of all changes #}
    {{ "nullif(cast(" ~ settings.transaction ~ " as string), '')" if settings.get('transaction') else 'cast(null as string)' }}
      as _cdc_transaction,
    if(_cdc_op = 'R' and _cdc_sequence is null, null,
      {{ settings.get('occurred_at') or settings.sequence_by[0] }}) as _cdc_occurred_at,  -- O5
    {% if settings.get('ignore_null_updates') %}if(_cdc_op = 'U', array_union(_cdc_absent, _cdc_null), {% endif -%}
      if(_cdc_op in ('I', 'U', 'R'){{ ' and not ' ~ tells_all if tells_all }}, _cdc_absent, array())
      {{- ')' if settings.get('ignore_null_updates') }} as _cdc_missing,
    if(size(_cdc_others) > 0{{ " and not _cdc_error <=> 'erased'" if settings.get('erased_in') }},
      _cdc_others, null) as _cdc_undeclared,
    _cdc_error,
    {{ '_cdc_is_nameless, _cdc_named_by, _cdc_message' if settings.get('alternate_keys')
        else '_cdc_message' if last == 'read'
        else 'if(_cdc_error is null' ~ (" or _cdc_error = 'erased'" if settings.get('erased_in') else '')
          ~ ', cast(null as string), _cdc_message) as _cdc_raw' }},
    _cdc_batch_id, _cdc_change_set, _cdc_row, current_timestamp() as _cdc_staged_at
  from checked
{%- endmacro %}


{#- As a whole number. A cast cuts off what a number has behind the point, and then others would be
    equal to it: such a one is null. -#}
{% macro _ordinal(settings) %}
  {%- set given = settings.get('ordinal') or 'null' -%}
  {%- set whole = 'try_cast(' ~ given ~ ' as bigint)' -%}
  {%- set type = delta_cdc._by_lower(settings.column_types).get(given.strip('`') | lower,
          'bigint' if modules.re.match('`?\\w+`?$', given) else '') | lower -%}
  {{ return(whole if type in ('tinyint', 'smallint', 'int', 'integer', 'bigint', 'long', 'string')
      else 'if(' ~ whole ~ ' = try_cast(' ~ given ~ ' as double), ' ~ whole ~ ', null)') }}
{% endmacro %}

{#- The columns of which each delete needs the values: its key, and what its place and time are made of. -#}
{% macro _needed_by_deletes(settings, keys) %}
  {{ return((keys + delta_cdc._needed_by_any(settings, settings.get('deleted_when'))) | unique | list) }}
{% endmacro %}

{#- The columns that a change's place, time and operation are made of. condition: the SQL that tells the operation. -#}
{% macro _needed_by_any(settings, condition) %}
  {{ return(delta_cdc.columns_named(settings.column_types,
      settings.sequence_by + [settings.get('ordinal'), settings.get('transaction'), settings.get('occurred_at'), condition])) }}
{% endmacro %}

{#- SQL that is true where a change's operation needs the value of the column `_cdc_misfit`: a truncate needs none of a row, a
    delete those of `of_deletes`, and one that does not tell its key those of `named`, by which it names the row. -#}
{% macro _misfit_is_needed(settings, named, of_deletes) %}
  {%- set of_truncates = delta_cdc._needed_by_any(settings, settings.get('truncated_when')) | unique | list -%}
  {%- set out = ["case _cdc_op when 'T' then "
        ~ ('_cdc_misfit in (' ~ delta_cdc._literals(of_truncates) ~ ')' if of_truncates else 'false')] -%}
  {%- if named and settings.keyless == 'none' -%}
    {%- set of_nameless = named | map(attribute='name') | reject('in', of_deletes) | list -%}
    {%- do out.append("when 'D' then _cdc_misfit in (" ~ delta_cdc._literals(of_deletes) ~ ')'
          ~ (' or (_cdc_is_nameless and _cdc_misfit in (' ~ delta_cdc._literals(of_nameless) ~ '))' if of_nameless else '')) -%}
  {%- endif -%}
  {{ return(out | join(' ') ~ ' else true end') }}
{% endmacro %}

{#- The columns {name: type}, those of these names before the others. -#}
{% macro _named_first(names, types) %}
  {%- set out = {} -%}
  {%- for name in names if name in types %}{% do out.update({name: types[name]}) %}{% endfor -%}
  {%- for name, type in types.items() if name not in out %}{% do out.update({name: type}) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _position(settings) %}
  {{ return('struct(_cdc_sequence, ' ~ delta_cdc._place_inside(settings) ~ ' as _cdc_ordinal)') }}
{% endmacro %}

{#- The ordinal of a change that has a sequence; of reads without one the later counts (O5), whatever place they tell. -#}
{% macro _place_inside(settings) %}
  {%- set ordinal = delta_cdc._ordinal(settings) -%}
  {{ return('if(_cdc_sequence is null, null, ' ~ ordinal ~ ')' if settings.get('ordinal') else ordinal) }}
{% endmacro %}


{#- Whether columns came that differ from listed ones in case alone, and the lines are to be read again by `_as_listed`.
    names: those that nobody listed. -#}
{% macro _is_spelled_otherwise(settings, names) %}
  {%- set known = delta_cdc._known_columns(settings) | map('lower') | list -%}
  {{ return(not settings.get('spelled') and names | map('lower') | select('in', known) | list | length > 0) }}
{% endmacro %}

{#- Whether a load has met such columns before: later ones look for them at once. What nobody may
    store is not told, so there all do. -#}
{% macro _may_be_spelled_otherwise(settings, state) %}
  {{ return(delta_cdc.is_private(settings) or state.notes.get('spelled') is not none) }}
{% endmacro %}


{#- A column's text; of one that was renamed at the source under its new name or the old (E2). image: after or before. -#}
{% macro _text_of(column, settings, image='after') %}
  {%- set text = image ~ '[' ~ delta_cdc.literal(column) ~ ']' -%}
  {%- set old = settings.renamed_columns.get(column) -%}
  {%- if old -%}
    {%- set text = 'if(map_contains_key(' ~ image ~ ', ' ~ delta_cdc.literal(column) ~ '), ' ~ text
          ~ ', ' ~ image ~ '[' ~ delta_cdc.literal(old) ~ '])' -%}
  {%- endif -%}
  {{ return(text) }}
{% endmacro %}

{#- Whether the image before tells of a column, under either name. -#}
{% macro _carries_before(column, settings) %}
  {%- set out = [] -%}
  {%- for name in [column, settings.renamed_columns.get(column)] | select -%}
    {%- do out.append('map_contains_key(before, ' ~ delta_cdc.literal(name) ~ ')') -%}
  {%- endfor -%}
  {{ return(out[0] if out | length == 1 else '(' ~ out | join(' or ') ~ ')') }}
{% endmacro %}

{#- A column's value in an image, after or before. keys: the columns that are keys. -#}
{% macro _typed_value(column, settings, keys, image='after') %}
  {%- set text = delta_cdc._text_of(column, settings, image) -%}
  {{ return(delta_cdc._key_of(text, column, settings) if column in keys else delta_cdc._value_of(text, column, settings)) }}
{% endmacro %}

{#- A key's value. The two zeros of floating point are equal, and JSON, of which ids are made, tells them apart: there is one. -#}
{% macro _key_of(text, column, settings) %}
  {%- set value = delta_cdc._value_of(text, column, settings) -%}
  {%- set type = settings.column_types[column] | lower | trim -%}
  {{ return('if(' ~ value ~ ' = 0, cast(0 as ' ~ type ~ '), ' ~ value ~ ')' if type in ('float', 'real', 'double') else value) }}
{% endmacro %}

{#- A column's value. Where staging has another type than the configuration, and Delta cannot widen
    it, it is cast to that (E4); where it spells fields otherwise, too, which goes by their order. -#}
{% macro _value_of(text, column, settings) %}
  {%- set type, read = settings.column_types[column], settings.get('read_types', {}).get(column) -%}
  {%- if read %}{{ return('cast(' ~ delta_cdc.format_value(text, read, settings, column) ~ ' as ' ~ type ~ ')') }}{% endif -%}
  {%- set given = delta_cdc._given_type(column, settings) -%}
  {%- if given -%}
    {%- set value = delta_cdc.format_value(text, given, settings, column) -%}
    {{ return('if(' ~ value ~ ' is null, null, ' ~ delta_cdc.format_value(text, type, settings, column) ~ ')'
        if delta_cdc._stays_as_it_comes(column, settings) else delta_cdc._recast(value, given, type)) }}
  {%- endif -%}
  {{ return(delta_cdc.format_value(text, type, settings, column)) }}
{% endmacro %}

{#- Whether there is a text and no value of it; after a cast to another type, whether the value is no longer the same. image: a map
    of texts. value: what was made of the column's. -#}
{% macro _misfits(image, column, settings, value) %}
  {%- set text = delta_cdc._text_of(column, settings, image) -%}
  {%- set given = delta_cdc._given_type(column, settings) -%}
  {%- if given and not delta_cdc._stays_as_it_comes(column, settings) -%}
    {%- set wanted = delta_cdc.format_value(text, given, settings, column) -%}
    {{ return(text ~ ' is not null and ('
        ~ value ~ ' is null or not ' ~ delta_cdc._recast(value, settings.column_types[column], given) ~ ' <=> ' ~ wanted ~ ')') }}
  {%- endif -%}
  {%- if delta_cdc._has_parts(settings.column_types[column]) -%}
    {{ return(delta_cdc.format_misfits(text, value, settings, column)) }}
  {%- endif -%}
  {{ return(text ~ ' is not null and ' ~ value ~ ' is null') }}
{% endmacro %}

{#- The type that the configuration gives a column, whose values are cast to staging's; none where these are the same, and where
    one of both has parts or is a variant: between those Spark has no cast, and the text is read as staging's type. -#}
{% macro _given_type(column, settings) %}
  {%- set given, nested = settings.get('given_types', {}).get(column), ('struct', 'array', 'map', 'variant') -%}
  {{ return(none if given is none or delta_cdc._kind_of(given) in nested
      or delta_cdc._kind_of(settings.column_types[column]) in nested else given) }}
{% endmacro %}

{#- Whether what came for a column of staging that is listed as another type stays as it comes. A text that tells rows apart or
    orders them: by another spelling a row would not be known again (7 for 007), or be older than it is (2026-01-01 12:00 is below
    2026-01-01T10:00). A number that is listed as a day or a moment: what was staged may count milliseconds, microseconds or days,
    and Spark's cast gives seconds. -#}
{% macro _stays_as_it_comes(column, settings) %}
  {%- set telling = delta_cdc._keys_of_rows(settings)
        + delta_cdc._alternate_columns(settings) + delta_cdc._needed_by_any(settings, none) -%}
  {%- set given = settings.get('given_types', {}).get(column) or '' -%}
  {%- set kinds = [delta_cdc._kind_of(settings.column_types[column]), delta_cdc._kind_of(given)] -%}
  {{ return((kinds[0] == 'string' and column in telling) or kinds == ['number', 'moment']) }}
{% endmacro %}

{#- What a type's values are, for casts: number, moment (days too), or the type's word. -#}
{% macro _kind_of(type) %}
  {%- set word = 'struct' if type is mapping else modules.re.match('\\w*', type | lower | trim).group(0) -%}
  {{ return('moment' if word in ('date', 'timestamp', 'timestamp_ntz', 'timestamp_ltz')
      else 'number' if word in ('tinyint', 'smallint', 'int', 'bigint', 'byte', 'short', 'integer', 'long', 'float', 'real',
        'double', 'decimal', 'dec', 'numeric') else word) }}
{% endmacro %}

{#- Whether a type's values have parts. -#}
{% macro _has_parts(type) %}{{ return(delta_cdc._kind_of(type) in ('struct', 'array', 'map')) }}{% endmacro %}

{#- A value of one type as another; by way of a text where Spark has no cast, as from a number to a day, or one that takes a
    number for seconds. -#}
{% macro _recast(value, given, wanted) %}
  {%- set kinds = [delta_cdc._kind_of(given), delta_cdc._kind_of(wanted)] -%}
  {%- set castable = 'string' in kinds or kinds[0] == kinds[1] or kinds | sort == ['boolean', 'number'] -%}
  {{ return('try_cast(' ~ (value if castable else 'cast(' ~ value ~ ' as string)') ~ ' as ' ~ wanted ~ ')') }}
{% endmacro %}

{#- The row as it came, for one that cannot be used; without what must not be stored, and of over a
    million bytes only how it begins. -#}
{% macro _raw_text(settings) %}
  {%- if not delta_cdc.is_private(settings) -%}{{ return(delta_cdc._begin_of_long('message')) }}{%- endif -%}
  {%- set text = "if(parsed, to_json(map_filter(after, (column, text) -> true" ~ delta_cdc._not_private(settings)
        ~ "), map('ignoreNullFields', 'false')), '(withheld: the table has `mask` or `never_store`, and the row cannot be read)')" -%}
  {{ return('transform(array(' ~ text ~ '), raw -> ' ~ delta_cdc._begin_of_long('raw') ~ ')[0]') }}
{% endmacro %}

{% macro _begin_of_long(text) %}
  {{ return('if(octet_length(' ~ text ~ ') > 1000000, concat(left(' ~ text ~ ", 100000), ' … (', octet_length("
      ~ text ~ "), ' bytes, sha1 ', sha1(" ~ text ~ "), ')'), " ~ text ~ ')') }}
{% endmacro %}

{% macro _not_private(settings) %}
  {%- set private = delta_cdc._private_columns(settings) -%}
  {{ return(' and lower(column) not in (' ~ delta_cdc._literals(private) ~ ')' if private else '') }}
{% endmacro %}

{#- The names under which a feed may carry what is listed. -#}
{% macro _known_columns(settings) %}
  {{ return(settings.column_types.keys() | list + settings.renamed_columns.values() | list) }}
{% endmacro %}


{#- The columns of which a null in an update means that they did not change (P1). -#}
{% macro _silent_when_null(settings) %}
  {%- set named = settings.get('ignore_null_updates') or [] -%}
  {{ return(settings.column_types.keys() | reject('in', settings.get('keys') or []) | list if named is sameas true else named) }}
{% endmacro %}

{#- Those of them that are null. -#}
{% macro _null_in_update(settings) %}
  {%- set columns = delta_cdc._silent_when_null(settings) -%}
  {%- set value, renamed = 'after[column]', [] -%}
  {%- for new, old in settings.renamed_columns.items() %}{% do renamed.extend([new, old]) %}{% endfor -%}
  {%- if renamed -%}
    {%- set value = 'if(map_contains_key(after, column), after[column], after[map('
          ~ delta_cdc._literals(renamed) ~ ')[column]])' -%}
  {%- endif -%}
  {{ return('filter(array(' ~ delta_cdc._literals(columns) ~ '), column -> ' ~ value ~ ' is null)') }}
{% endmacro %}

{#- The names of the columns that a row has; of one that was renamed at the source, whichever it has, the new name. -#}
{% macro _names_present(settings) %}
  {%- set out = ['map_keys(after)'] -%}
  {%- for new, old in settings.renamed_columns.items() -%}
    {%- do out.append('if(map_contains_key(after, ' ~ delta_cdc.literal(old) ~ '), array('
          ~ delta_cdc.literal(new) ~ '), array())') -%}
  {%- endfor -%}
  {{ return('coalesce(' ~ (out[0] if out | length == 1 else 'concat(' ~ out | join(', ') ~ ')') ~ ', array())') }}
{% endmacro %}


{#- The codes of a feed, each with what it means: those of its format and its own. -#}
{% macro _codes(settings) %}
  {%- set codes = {} -%}
  {%- do codes.update(delta_cdc._defaults()['operation_codes'].get(settings.format, {})) -%}
  {%- do codes.update(settings.get('operation_codes') or {}) -%}
  {{ return(codes) }}
{% endmacro %}

{#- Those that mean one operation, or `before`. -#}
{% macro _codes_of(settings, meaning) %}
  {%- set out = [] -%}
  {%- for code, each in delta_cdc._codes(settings).items() if each == meaning %}{% do out.append(code) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- The codes of flat rows that are the row before an update. A table that has no `operation` has no use for its feed's codes. -#}
{% macro _codes_before(settings) %}
  {{ return(delta_cdc._codes_of(settings, 'before') if settings.get('operation') else []) }}
{% endmacro %}

{#- The flag as one of I, U, D, R, T, or `before`; a feed without a flag holds upserts only. -#}
{% macro _operation(settings) %}
  {%- if settings.format == 'rows' and not settings.get('operation') -%}
    {{ return("if(parsed, '" ~ ('I' if settings.insert_only or settings.keyless != 'none' else 'U') ~ "', null)") }}
  {%- endif -%}
  {%- set cases = [] -%}
  {%- for code, operation in delta_cdc._codes(settings).items() -%}
    {%- do cases.append('when ' ~ delta_cdc.literal(code) ~ ' then ' ~ delta_cdc.literal(operation)) -%}
  {%- endfor -%}
  {{ return('case op_code ' ~ cases | join(' ') ~ ' end') }}
{% endmacro %}


{#- `deleted_when` and `truncated_when` speak of the typed columns and overrule the flag; a row before an update is no change. -#}
{% macro _operation_of_row(settings) -%}
{%- set flag = "nullif(_cdc_flag, 'before')" if delta_cdc._codes_of(settings, 'before') else '_cdc_flag' -%}
{%- if settings.get('deleted_when') or settings.get('truncated_when') -%}
case
  {%- if flag != '_cdc_flag' %} when _cdc_flag = 'before' then null{% endif %}
  {%- if settings.get('truncated_when') %} when _cdc_parsed and ({{ settings.truncated_when }}) then 'T'{% endif %}
  {%- if settings.get('deleted_when') %} when _cdc_parsed and ({{ settings.deleted_when }}) then 'D'{% endif %}
  else _cdc_flag end
{%- else -%}{{ flag }}{%- endif -%}
{%- endmacro %}


{#- The declared order as one struct, compared left to right; null if any part is. -#}
{% macro _sequence(settings) -%}
{%- set parts = settings.sequence_by -%}
case when {% for part in parts %}({{ part }}) is not null{{ ' and ' if not loop.last }}{% endfor %} then struct(
{%- for part in parts -%}
  ({{ part }}) as {{ delta_cdc.quoted(delta_cdc._sequence_name(part, loop.index)) }}{{ ', ' if not loop.last }}
{%- endfor -%}
) end
{%- endmacro %}

{% macro _sequence_name(part, place) %}
  {{ return(part.strip('`') if modules.re.fullmatch('`?\\w+`?', part) else 'sequence_' ~ place) }}
{% endmacro %}
