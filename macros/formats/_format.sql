{#-
  A format turns lines of text into canonical changes. It is one file, macros/formats/<format>.sql, with these macros.
  A project adds or replaces a format by macros of these names of its own:

  <format>_changes(lines, settings)   a SELECT over `lines` (batch_id, change_set, row_number, message string):
      batch_id, change_set, row_number, message,
      parsed      boolean              false: the message could not be read
      op_code     string               the operation as the format writes it (seeds: cdc_operation_codes)
      after       map<string, string>  the row's new values as text; a column that is not in the map is absent (not null)
      before      map<string, string>  the row before the change, or its key, where the message has it; only the key is
                                       used, unless `full_images` says that it is the whole row
      and any fields that `sequence_by`, `ordinal`, `transaction`, `occurred_at` may name; they begin with `_`, apart from the
      table's columns; the messages that change no row are left out
  <format>_value(text, type, settings, column)   SQL that casts a value of the map to the column's type (null: does not fit)
  <format>_tables(lines)   only for feeds that mix tables: a SELECT over `lines` that adds source_table (null: unreadable)
      and leaves out the messages that change no row
  <format>_lines(lines)    only where a message may hold several changes: a SELECT of the same columns with one change a line,
      in their order, numbered anew; a message that was split is a message of the format again. The others see only such lines.

  And these, which few have:
  <format>_misfits(text, value, settings, column, plain)   whether a part of a struct, list or map does not fit (`format_misfits`)
  <format>_value_alone(text, type, settings)   `<format>_value` without the fields of the message that it asks for
  <format>_maps()        the fields beside `after` and `before` that are maps by the columns' names
  <format>_tells_all()   SQL over the fields, true of a message that tells all of its row: what it does not have is null
  <format>_kinds()       {name: SQL over `message`} of messages that few feeds hold, and whose reading takes much SQL: true at least of
      those. Then `<format>_tables` has `settings` too, and `may_hold(settings, name)` says whether a load may hold one. Where a
      project has `<format>_changes` or `<format>_tables` in place of the package's, only its own are looked for.
-#}
{% macro format_changes(lines, settings) %}
  {{ return(delta_cdc._of_format(settings.format ~ '_changes')(lines, settings)) }}
{% endmacro %}

{#- `<format>_value` of the settings' format. -#}
{% macro format_value(text, type, settings, column) %}
  {{ return(delta_cdc._of_format(settings.format ~ '_value')(text, type, settings, column)) }}
{% endmacro %}

{#- Whether a text holds something that is null in the struct, list or map made of it; `<format>_misfits` of a format that reads their
    parts in a way of its own. value: what was made of it. -#}
{% macro format_misfits(text, value, settings, column) %}
  {%- set plain = adapter.misfits(text, value, settings.get('read_types', {}).get(column, settings.column_types[column])) -%}
  {%- set macro = delta_cdc._macro_named(settings.format ~ '_misfits') -%}
  {{ return(macro(text, value, settings, column, plain) if macro else plain) }}
{% endmacro %}

{#- A value where of the message the text alone is left: by `<format>_value_alone` of a format whose values need more of it. Of one
    of the project's own, whose `<format>_value` may ask for fields of the message, a plain value. -#}
{% macro _value_of_text_alone(text, type, settings, column) %}
  {%- set macro = delta_cdc._macro_named(settings.format ~ '_value_alone') -%}
  {%- if macro -%}{{ return(macro(text, type, settings)) }}{%- endif -%}
  {{ return(delta_cdc.format_value(text, type, settings, column) if settings.format in delta_cdc._defaults()['fields']
      else delta_cdc._plain_value(text, type)) }}
{% endmacro %}

{#- What `<format>_<name>` says of a format's messages; otherwise: of one that has no such macro. -#}
{% macro format_says(settings, name, otherwise=none) %}
  {%- set macro = delta_cdc._macro_named(settings.format ~ '_' ~ name) -%}
  {{ return(macro() if macro else otherwise) }}
{% endmacro %}

{#- `<format>_kinds`; none where the format tells none apart. Where the project's own macros read the messages, the package's may
    get another text than the one that is looked at: one that was taken out of an envelope, or decoded. -#}
{% macro _kinds_macro(format) %}
  {%- set reads_itself = delta_cdc._own_macro(format ~ '_changes') or delta_cdc._own_macro(format ~ '_tables') -%}
  {{ return(delta_cdc._own_macro(format ~ '_kinds') if reads_itself else delta_cdc._macro_named(format ~ '_kinds')) }}
{% endmacro %}

{#- Which kinds of messages lines hold (`<format>_kinds`), {name: true or false}; none where the format tells none apart. -#}
{% macro kinds_of_lines(settings, lines) %}
  {%- set macro, asked, out = delta_cdc._kinds_macro(settings.format), [], {} -%}
  {%- if macro is none -%}{{ return(none) }}{%- endif -%}
  {%- for name, sql in macro().items() -%}
    {%- do asked.append('bool_or(' ~ sql ~ ') as ' ~ name) -%}
  {%- endfor -%}
  {%- for name, is_met in adapter.query_rows('select ' ~ asked | join(', ') ~ ' from ' ~ lines)[0].items() -%}
    {%- do out.update({name: is_met or false}) -%}  {#- null: there are no lines #}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- Whether there may be messages of a kind among those that are read; where nobody looked for it (`settings.kinds`), there may. -#}
{% macro may_hold(settings, kind) %}{{ return((settings.get('kinds') or {}).get(kind) is not sameas false) }}{% endmacro %}

{#- `<format>_tables` of the settings' format, which has to name tables. -#}
{% macro format_tables(lines, settings) %}
  {%- set format = settings.format -%}
  {%- if format in delta_cdc._defaults()['formats_without_tables'] -%}
    {%- do exceptions.raise_compiler_error("delta_cdc: the format `" ~ format
          ~ "` does not name tables inside its messages. Give the feed a `location` with {table}.") -%}
  {%- endif -%}
  {%- set macro = delta_cdc._of_format(format ~ '_tables') -%}
  {{ return(macro(lines, settings) if delta_cdc._kinds_macro(format) else macro(lines)) }}
{% endmacro %}

{#- The lines of change sets as the other macros see them: one change each. settings: of the feed, whose codes may tell that flat
    rows have the row before an update as a row of its own. -#}
{% macro format_lines(lines, settings) %}
  {%- set macro = delta_cdc._macro_named(settings.format ~ '_lines') -%}
  {%- if macro -%}{{ return('(' ~ macro(lines) ~ ')') }}{%- endif -%}
  {%- set images = settings.format == 'rows' and delta_cdc._codes_before(settings) -%}
  {{ return('(' ~ delta_cdc._rows_with_image_before(lines, settings) ~ ')' if images else lines) }}
{% endmacro %}

{#- The project's macro of a name, else the package's. -#}
{% macro _macro_named(name) %}{{ return(delta_cdc._own_macro(name) or context['delta_cdc'].get(name)) }}{% endmacro %}

{#- The macro that a project has in place of the package's of a name, or as its own; none where it has none. A name alone means
    the package's in what `delta-cdc` runs, for dbt looks first where the macro is that is run. -#}
{% macro _own_macro(name) %}
  {%- set project = context.get(project_name) -%}  {#- of one without macros nothing, or something of dbt's that is called so -#}
  {%- set macro = (project.get(name) if project is mapping else none) or context.get(name) -%}
  {{ return(none if macro is sameas context['delta_cdc'].get(name) else macro) }}
{% endmacro %}

{% macro _of_format(name) %}
  {%- set macro = delta_cdc._macro_named(name) -%}
  {%- if macro is none -%}
    {%- do exceptions.raise_compiler_error("delta_cdc: there is no macro `" ~ name
          ~ "`. A format is a file macros/formats/<format>.sql with the macros that macros/formats/_format.sql names.") -%}
  {%- endif -%}
  {{ return(macro) }}
{% endmacro %}

{#- What most formats share: text to a Spark type, null where it does not fit. bytes: SQL that reads
    the text of a binary value. -#}
{% macro _plain_value(text, type, bytes=none) %}
  {%- set word = type | lower | trim -%}
  {%- if word in ('string', 'text') -%}{{ return(text) }}{%- endif -%}
  {%- if word == 'binary' and bytes -%}{{ return(bytes) }}{%- endif -%}
  {%- if word.startswith(('struct', 'array', 'map')) -%}
    {{ return("from_json(" ~ text ~ ", " ~ delta_cdc.literal(type) ~ ")") }}
  {%- endif -%}
  {%- if word == 'variant' -%}
    {{ return("coalesce(" ~ delta_cdc._json_in(text) ~ ", try_cast(" ~ text ~ " as variant))") }}
  {%- endif -%}
  {%- if word in ('float', 'real', 'double') -%}
    {#- Spark makes a number that is too large infinite, and takes what Java's source has for one: 12D, 7f, 0x1p3 -#}
    {%- set value = 'try_cast(' ~ text ~ ' as ' ~ type ~ ')' -%}
    {{ return("if((" ~ text ~ " rlike '[0-9]' and abs(" ~ value ~ ") = double('infinity')) or " ~ text
        ~ " rlike r'[0-9.][dDfF]\\s*$|[xX]', null, " ~ value ~ ")") }}
  {%- endif -%}
  {{ return(delta_cdc._cast_text(text, type)) }}
{% endmacro %}

{#- Text as JSON, a variant; null where it is none or has more behind its value, for Spark's parser reads one and stops. What a
    line of an array has behind it, a comma, is nothing. An object that its first `}` ends needs no second look. -#}
{% macro _json_in(text) %}
  {%- set alone = "json_array_length(concat('[', trim(both ', \\t\\r\\ufeff' from " ~ text ~ "), ']')) = 1" -%}
  {{ return("if((startswith(" ~ text ~ ", '{') and instr(" ~ text ~ ", '}') = length(" ~ text ~ ")) or " ~ alone
      ~ ", try_parse_json(" ~ text ~ "), null)") }}
{% endmacro %}

{#- Text to a type. Of a time without a day Spark makes a timestamp of today, of `0044-03-15 BC` a date after Christ, and of a
    number of five digits or more, of days or `202601`, that year: they are none. -#}
{% macro _cast_text(text, type) %}
  {%- set number = '^\\s*[+-]?\\d{5,}\\s*$' -%}
  {%- set none_such = {'timestamp': number ~ '|^\\s*T?\\d{1,2}:', 'timestamp_ntz': number,
        'date': number ~ '|^\\s*\\d+-\\d+-\\d+[ T]+[A-Za-z]'}.get(type | lower | trim) -%}
  {%- set value = 'try_cast(' ~ text ~ ' as ' ~ type ~ ')' -%}
  {{ return('if(' ~ text ~ " rlike r'" ~ none_such ~ "', null, " ~ value ~ ')' if none_such else value) }}
{% endmacro %}


{#- The place at which a row came. -#}
{% macro _arrival() %}{{ return('struct(batch_id as batch, row_number as row)') }}{% endmacro %}


{#- Milliseconds since 1970, a bigint, as a timestamp; null where no timestamp is so far off. -#}
{% macro _of_millis(number) %}{{ return('timestamp_micros(try_multiply(' ~ number ~ ', 1000L))') }}{% endmacro %}


{#- A timestamp as the timestamp_ntz that a clock in UTC shows, whatever the session's time zone is: not by way of its clock, which
    shows an hour twice when it is put back. -#}
{% macro _in_utc(moment) %}
  {{ return("(timestamp_ntz'1970-01-01 00:00:00' + interval '0.000001' second * unix_micros(" ~ moment ~ "))") }}
{% endmacro %}


{#- One line for each element of the messages' first array, numbered anew in the order of lines and elements: the message with
    this element alone in the array, those at its place alone in the other arrays, and `place` (from 0). A message of one element,
    or of none, stays the text that it was. -#}
{% macro _one_line_each(lines, arrays) -%}
{%- set alone = [] -%}
{%- for array in arrays -%}
  {%- do alone.append("'" ~ array ~ "', cast(array(element.`" ~ loop.index0 ~ "`) as variant)") -%}
{%- endfor -%}
{#- a message is taken apart once, and none is copied whole to each of its elements #}
select batch_id, change_set, row_number() over (partition by batch_id order by row_number, place) as row_number,
  coalesce(whole, to_json(map_concat(rest, map({{ alone | join(', ') }}, 'place', cast(place as variant))))) as message
from (
  select batch_id, change_set, row_number, elements,
    if(size(elements) > 1, null, message) as whole,
    if(size(elements) > 1,
      map_filter(envelope, (name, value) -> name not in ({{ delta_cdc._literals(arrays + ['place']) }})), null) as rest
  from (
    select *, arrays_zip(
      {%- for array in arrays %}
      coalesce(try_cast(envelope['{{ array }}'] as array<variant>), array()){{ ',' if not loop.last }}
      {%- endfor %}) as elements
    from ({{ delta_cdc._lines_with(lines, 'envelope', delta_cdc._fields(delta_cdc._json_in('message'))) }})
  )
)
  lateral view posexplode_outer(elements) as place, element
{%- endmacro %}


{#- Lines with one thing more, made once: Spark would push a filter on it below, and read each message there again. -#}
{% macro _lines_with(lines, name, made) -%}
select * from {{ lines }} lateral view outer explode(array({{ made }})) as {{ name }}
{%- endmacro %}

{#- Lines with `body`, what their JSON holds of a struct type; null where it is none. -#}
{% macro _lines_as(lines, type) %}
  {{ return(delta_cdc._lines_with(lines, 'body', 'try_cast(' ~ delta_cdc._json_in('message') ~ ' as ' ~ type ~ ')')) }}
{% endmacro %}


{#- <format>_tables of messages that name their table: the rows of `_<format>_rows`, with the names joined by dots.
    readable: SQL, whether a message could be read. A name that is empty is none. -#}
{% macro _tables_by_name(rows, readable, names) -%}
{%- set told = [] -%}
{%- for name in names %}{% do told.append('nullif(' ~ name ~ ", '')") %}{% endfor -%}
select batch_id, change_set, row_number, message,
  if({{ readable }}, nullif(concat_ws('.', {{ told | join(', ') }}), ''), null) as source_table
from ({{ rows }})
{%- endmacro %}


{#- A map from the names and values of two arrays; null where they are no pair of such. -#}
{% macro _map_of(names, values) %}
  {{ return("case when size(" ~ names ~ ") = size(" ~ values ~ ") and size(array_distinct(array_compact("
      ~ names ~ "))) = size(" ~ names ~ ")" ~ " then map_from_arrays(" ~ names ~ ", " ~ values ~ ") end") }}
{% endmacro %}


{#- A map of a message with its columns as the table lists them, whatever their case: for sources in whose names case makes no
    difference. Of two spellings of one name the listed one counts, else the first; the other stays what it is.
    `names` is the name of a column that holds the map. -#}
{% macro _as_listed(names, settings) -%}
{%- set listed = delta_cdc._known_columns(settings) -%}
{%- set spelling = [] -%}
{%- for name in listed -%}
  {%- if name | lower not in spelling -%}{%- do spelling.extend([name | lower, name]) -%}{%- endif -%}
{%- endfor -%}
{%- set spelled = 'map(' ~ delta_cdc._literals(spelling) ~ ')[lower(name)]' -%}
if(forall(map_keys({{ names }}), name -> name in ({{ delta_cdc._literals(listed) }})), {{ names }},
    transform_keys({{ names }}, (name, value) -> if(map_contains_key({{ names }}, {{ spelled }})
      or filter(map_keys({{ names }}), other -> lower(other) = lower(name))[0] <> name, name, coalesce({{ spelled }}, name))))
{%- endmacro %}


{#- A map of a row with control columns, those that a condition on `name` holds of, in upper case. Of two spellings of one that in
    upper case counts, else the first; the other stays what it is. `row` is the name of a column that holds the map. -#}
{% macro _controls_in_upper(row, condition) -%}
transform_keys({{ row }}, (name, value) -> if({{ condition }} and not map_contains_key({{ row }}, upper(name))
      and filter(map_keys({{ row }}), other -> upper(other) = upper(name))[0] = name, upper(name), name))
{%- endmacro %}


{#- Where an update is two lines, the row before and the row after: one line, in which the line after holds the other as
    `__before`. A row before without its row after stays a line, of an operation that has no code. Lines are a pair if nothing is
    between them among the lines that are equal in `same` (SQL over `body`, the line as VARIANT).
    number: SQL of what both lines of an update may have in common; such lines are a pair in either order. -#}
{% macro _with_image_before(lines, operation, befores, afters, same, number=none) -%}
{%- set in_afters = 'image in (' ~ delta_cdc._literals(afters) ~ ')' -%}
{%- set among = 'over (partition by batch_id, ' ~ same | join(', ') -%}
{%- set pair = among ~ ' order by ' ~ ('nth, place, ' ~ in_afters ~ ', ' if number) ~ 'row_number)' -%}
{%- set rows -%}
select *
{%- if number %},
  {%- set one = among ~ ', coalesce(' ~ number ~ ", concat('line ', row_number))" %}  {#- nth: of what came twice #}
  min(row_number) {{ one }}) as place, row_number() {{ one }}, image order by row_number) as nth
{%- endif %}
from (select *, {{ operation }} as image from (select *, {{ delta_cdc._json_in('message') }} as body from {{ lines }}))
{%- endset -%}
{{ delta_cdc._images_paired(rows, befores, afters, pair) }}
{%- endmacro %}


{#- Rows with `image`, what they are, of which a row before an update and the row after it that follows are one line.
    pair: the window in which it follows. -#}
{% macro _images_paired(rows, befores, afters, pair) -%}
{%- set whole = "trim(both ', \\t\\r\\ufeff' from {0})" -%}  {#- as in _json_in #}
{%- set befores = delta_cdc._literals(befores) -%}
{%- set afters = delta_cdc._literals(afters) -%}
select batch_id, change_set, row_number,
  if(image in ({{ afters }}) and image_above in ({{ befores }}),
    concat(left({{ whole.format('message') }}, length({{ whole.format('message') }}) - 1), ', "__before": ',
      {{ whole.format('message_above') }}, '}'), message) as message
from (
  select batch_id, change_set, row_number, message, image,
    lag(image) {{ pair }} as image_above, lag(message) {{ pair }} as message_above, lead(image) {{ pair }} as image_below
  from ({{ rows }})
)
where not coalesce(image in ({{ befores }}) and image_below in ({{ afters }}), false)
{%- endmacro %}


{#- Flat rows as `row_values`, map<string, string>: a column that is not in the map is absent. settings: with `spelled` in them
    the columns as the table lists them. -#}
{% macro _flat_rows(lines, settings={}) %}
  {%- set rows = '(select *, ' ~ delta_cdc._row_of('message') ~ ' as row_values from ' ~ lines ~ ')' -%}
  {{ return('(select * except (row_values), ' ~ delta_cdc._as_listed('row_values', settings) ~ ' as row_values from ' ~ rows ~ ')'
      if settings.get('spelled') else rows) }}
{% endmacro %}

{% macro _row_of(text) %}{{ return(delta_cdc._texts(delta_cdc._json_in(text))) }}{% endmacro %}


{#- A variant's fields by their names, as texts or as variants; null where it is no object. -#}
{% macro _texts(object) %}{{ return('try_cast(' ~ object ~ ' as map<string, string>)') }}{% endmacro %}
{% macro _fields(object) %}{{ return('try_cast(' ~ object ~ ' as map<string, variant>)') }}{% endmacro %}


{#- The row before an update, of `after` and `old`, which has the columns that changed: as MySQL's readers tell it. -#}
{% macro _before_by_old(update) %}
  {{ return("if(op_code = '" ~ update
      ~ "', map_concat(map_filter(after, (name, value) -> not map_contains_key(old, name)), old), null)") }}
{% endmacro %}


{#- PostgreSQL's X/Y in hexadecimal, a place in the write-ahead log, as one number; null for
    anything else, and beyond a bigint. -#}
{% macro _lsn(text) -%}
case when {{ text }} rlike '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$' then
    try_add(try_multiply(cast(conv(split_part({{ text }}, '/', 1), 16, 10) as bigint), 4294967296),
      cast(conv(split_part({{ text }}, '/', 2), 16, 10) as bigint)) end
{%- endmacro %}


{#- The columns of a flat row, from the name of a map<string, string>: those of whose names a condition on `name` holds. -#}
{% macro _columns_where(row, condition) %}
  {{ return('map_filter(' ~ row ~ ', (name, value) -> ' ~ condition ~ ')') }}
{% endmacro %}

