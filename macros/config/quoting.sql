{#- An identifier in backticks. Feed column names may hold anything, line breaks too: no SQL is indented by Jinja's filter. -#}
{% macro quoted(name) %}{{ return('`' ~ (name | string).replace('`', '``') ~ '`') }}{% endmacro %}

{#- A string literal, on one line. Spark reads backslash escapes in literals, so both are doubled; and a server may put variables'
    values for ${NAME}. -#}
{% macro literal(text) %}
  {{ return("'" ~ (text | string).replace('\\', '\\\\').replace("'", "\\'").replace('${', '$\\{').replace('\n', '\\n') ~ "'") }}
{% endmacro %}

{#- Some of them, with commas between. -#}
{% macro _literals(texts) %}
  {%- set out = [] -%}
  {%- for text in texts %}{% do out.append(delta_cdc.literal(text)) %}{% endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}

{#- "a, b, c": quoted names, each with a prefix such as `t.`. -#}
{% macro column_list(columns, prefix='') %}{{ return(delta_cdc.all_quoted(columns, prefix) | join(', ')) }}{% endmacro %}

{#- The same as a list. -#}
{% macro all_quoted(columns, prefix='') %}
  {%- set out = [] -%}
  {%- for column in columns %}{% do out.append(prefix ~ delta_cdc.quoted(column)) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- Null-safe equality of the columns of two relations: `a.x <=> b.x and …`. operator: another one, such as `=`. -#}
{% macro same_columns(columns, left, right, operator='<=>') %}
  {%- set out = [] -%}
  {%- for column in columns -%}
    {%- do out.append(left ~ '.' ~ delta_cdc.quoted(column) ~ ' ' ~ operator ~ ' ' ~ right ~ '.' ~ delta_cdc.quoted(column)) -%}
  {%- endfor -%}
  {{ return(out | join(' and ')) }}
{% endmacro %}

{#- Columns as SQL that can be compared and hashed: maps and variants cannot, and structs of other
    fields neither; their JSON is. -#}
{% macro comparables(settings, columns, prefix='') %}
  {%- set types, out = {}, [] -%}
  {%- do types.update(settings.get('column_types') or {}) -%}
  {%- do types.update(settings.get('staged_types') or {}) -%}  {#- a column keeps the type of what was staged first -#}
  {%- for column in columns -%}
    {%- set value, type = prefix ~ delta_cdc.quoted(column), types.get(column) or '' -%}
    {%- if column in (settings.get('expressions') or {}) -%}
      {%- set value, type = 'struct(' ~ value ~ ')', 'struct' -%}
    {%- endif -%}  {#- of whatever type that is -#}
    {%- do out.append(delta_cdc.json_of(value) if delta_cdc._kind_of(type) in ('struct', 'array', 'map', 'variant')
          else value) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- The same under the columns' names, for sets and groups of rows. -#}
{% macro comparable_columns(settings, columns) %}
  {%- set out = [] -%}
  {%- for value in delta_cdc.comparables(settings, columns) -%}
    {%- do out.append(value ~ ' as ' ~ delta_cdc.quoted(columns[loop.index0])) -%}
  {%- endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}

{#- Null-safe equality of the columns of two relations, of any type, also where one has wider types than the other. -#}
{% macro same_values(settings, columns, left, right) %}
  {%- set out = [] -%}
  {%- set theirs = delta_cdc.comparables(settings, columns, right ~ '.') -%}
  {%- for ours in delta_cdc.comparables(settings, columns, left ~ '.') -%}
    {%- do out.append(ours ~ ' <=> ' ~ theirs[loop.index0]) -%}
  {%- endfor -%}
  {{ return(out | join(' and ')) }}
{% endmacro %}

{#- A value as JSON, exactly: its nulls, and moments in UTC to the microsecond. -#}
{% macro json_of(value) %}{{ return('to_json(' ~ value ~ ', ' ~ delta_cdc.json_options() ~ ')') }}{% endmacro %}

{#- The options of `to_json` for that. -#}
{% macro json_options() %}
  {{ return("map('timeZone', 'UTC', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\", 'ignoreNullFields', 'false')") }}
{% endmacro %}


{#- Those of the columns that stand in SQL expressions: texts, types, aliases, functions and units of time name no
    column. expressions: each SQL or none. -#}
{% macro columns_named(columns, expressions) %}
  {%- if not expressions | select | list %}{{ return([]) }}{% endif -%}
  {%- set no_column = "(`(?:[^`]|``)*`)|'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|\\bas\\s+\\w+|::\\s*\\w+|\\bextract\\s*\\(\\s*\\w+\\s+from\\b|\\w+\\s*\\(" -%}
  {%- set of_time = "\\binterval(?:\\s+[-+]?\\s*(?:[\\d.]+|'[^']*')\\s+\\w+(?:\\s+to\\s+\\w+)?)+"
        ~ "|\\btimestamp(?:add|diff)\\s*\\(\\s*\\w+\\s*," -%}
  {%- set sql = modules.re.sub('(?i)' ~ of_time ~ '|' ~ no_column, '\\1 ; ', expressions | select | join(' ; ')) -%}
  {%- set ticked = '`(?:[^`]|``)*`' -%}
  {%- set in_ticks, without = modules.re.findall(ticked, sql | lower), modules.re.sub(ticked, ';', sql) -%}
  {%- set out = [] -%}
  {%- for column in columns -%}
    {%- set bare = '(?i)(?<![\\w.])' ~ modules.re.escape(column) ~ '(?!\\w)' -%}
    {%- if delta_cdc.quoted(column) | lower in in_ticks or modules.re.search(bare, without) -%}
      {%- do out.append(column) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}
