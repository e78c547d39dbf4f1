{#-
  `delta-cdc reconcile`: final beside what the source says it holds, row by row at their keys, and
  value by value. Prints one JSON value.
  staging      name of the model
  against      a table (`schema.table`), a file or folder of the source's rows, or the URL of a database (`jdbc:…`);
               its values are cast to final's types
  file_format  of a file or folder; none: as its name ends
  other_table  of a database: the table
  options      of a database: those of Spark to read it with
  limit        so many of the differing rows are told
  {final_rows, other_rows, repeated_keys (rows of the other side beyond one a key), only_in_final, only_in_other, differing,
   left_out (columns that one side lacks), examples: [{key, side, values: {column: [final's, the other's]}}]}
-#}
{% macro reconcile(staging, against, file_format=none, other_table='', options={}, limit=10) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set settings = table.settings -%}
  {%- set keys, final = settings['keys'], delta_cdc._final_of(table) -%}
  {%- set theirs = adapter.create_other_view('cdc_other', against, file_format, other_table, options) -%}
  {%- set spelled = {} -%}
  {%- for name in theirs %}{% do spelled.update({name | lower: name}) %}{% endfor -%}
  {%- set lost = [] -%}
  {%- for key in keys if key | lower not in spelled %}{% do lost.append(key) %}{% endfor -%}
  {%- if lost -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': ' ~ against ~ ' has no column ' ~ lost | join(', ')
          ~ ', by which its rows are told. It has: ' ~ theirs | join(', ') ~ '.') -%}
  {%- endif -%}
  {%- set types = {} -%}
  {%- for column in adapter.get_columns_in_relation(final) -%}
    {%- do types.update({column.name | lower: column.dtype}) -%}
  {%- endfor -%}
  {%- for key in keys if delta_cdc._counts_unknown(theirs[spelled[key | lower]], types[key | lower]) -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': ' ~ key ~ ', by which its rows are told, is a '
          ~ theirs[spelled[key | lower]] ~ ' in ' ~ against ~ ' and a ' ~ types[key | lower] ~ ' in ' ~ final
          ~ ': what the numbers count (seconds, milliseconds, days) is not known. Give the other side with that type.') -%}
  {%- endfor -%}
  {%- set ours = delta_cdc._columns_of_final(table, final) -%}
  {%- set compared, left_out = [], [] -%}
  {%- for column in ours if column not in keys -%}
    {%- do (compared if column | lower in spelled else left_out).append(column) -%}
  {%- endfor -%}
  {%- for name in theirs if name | lower not in (ours | map('lower') | list) %}{% do left_out.append(name) %}{% endfor -%}
  {%- set theirs_as_ours = [] -%}
  {%- set misfits = [] -%}  {#- a value that is none of ours is not null, and so is no value that final has -#}
  {%- for column in keys + compared -%}
    {%- set given = delta_cdc.quoted(spelled[column | lower]) -%}
    {%- set cast = delta_cdc._their_value(given, theirs[spelled[column | lower]], types[column | lower], column) -%}
    {%- do theirs_as_ours.append(cast ~ ' as ' ~ delta_cdc.quoted(column)) -%}
    {%- if column not in keys -%}
      {%- do misfits.append('if(' ~ given ~ ' is not null and ' ~ cast ~ ' is null, struct(' ~ delta_cdc.literal(column)
            ~ ' as column, cast(' ~ given ~ ' as string) as text), null)') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if misfits -%}
    {%- do theirs_as_ours.append('map_from_entries(array_compact(array(' ~ misfits | join(', ') ~ '))) as _cdc_misfits') -%}
  {%- endif -%}
  {%- set found = delta_cdc._differences(settings, compared, delta_cdc._live_rows(settings, final),
        '(select ' ~ theirs_as_ours | join(', ') ~ ' from cdc_other)', limit, misfits | length > 0) -%}
  {%- do found.update({'left_out': left_out}) -%}
  {%- do print(tojson(found)) -%}
{% endmacro %}


{#- A value of the other side as final's type, null where it does not fit; a number is no moment, though Spark takes it for
    seconds. Bytes in text are as export-snapshot writes them; of a struct, an array, a map or a variant text is its JSON, for
    Spark casts none to them. A struct is cast by way of a variant, which goes by the names of fields: a cast would go by their
    order. -#}
{% macro _their_value(given, given_type, type, column) %}
  {%- if delta_cdc._counts_unknown(given_type, type) -%}{{ return('cast(null as ' ~ type ~ ')') }}{%- endif -%}
  {%- if type == 'binary' and given_type in ('string', 'variant') -%}
    {{ return(delta_cdc.rows_value('cast(' ~ given ~ ' as string)', type, {}, column)) }}
  {%- endif -%}
  {%- if given_type == 'string' and type == 'variant' -%}
    {{ return(delta_cdc.rows_value(given, type, {}, column)) }}
  {%- elif given_type == 'string' and type.startswith(('struct', 'array', 'map')) -%}
    {{ return('try_cast(' ~ delta_cdc._json_in(given) ~ ' as ' ~ type ~ ')') }}
  {%- endif -%}
  {%- set by_name = 'struct<' in type and given_type != type and given_type.startswith(('struct', 'array', 'map')) -%}
  {%- set value = 'try_cast(' ~ ('to_variant_object(' ~ given ~ ')' if by_name else given) ~ ' as ' ~ type ~ ')' -%}
  {%- if modules.re.fullmatch('(tiny|small|big)?int', type)
        and given_type.startswith(('decimal', 'float', 'double', 'variant')) -%}
    {#- a cast cuts off what is behind the point, and staging takes no 1.7 for an int -#}
    {%- set value = 'if(' ~ value ~ ' = try_cast(' ~ given ~ ' as decimal(38,18)), ' ~ value ~ ', null)' -%}
  {%- endif -%}
  {{ return(value) }}
{% endmacro %}


{#-
  `delta-cdc diff`: final as it was at two moments of the source (H4), row by row. since, until: as `as_of` takes them; none:
  now. staging: name of the model. limit: so many of the differing rows are told. Prints what `reconcile` prints; final
  is the later, the other the earlier.
-#}
{% macro diff(staging, since=none, until=none, limit=10) %}
  {%- set table = delta_cdc._staging_table(staging) -%}
  {%- set settings, final = table.settings, delta_cdc._final_of(table) -%}
  {%- set later = '(' ~ delta_cdc.as_of(final, until) ~ ')' if until is not none else final -%}
  {%- set earlier = '(' ~ delta_cdc.as_of(final, since) ~ ')' if since is not none else final -%}
  {%- do print(tojson(delta_cdc._differences(settings,
        delta_cdc._columns_of_final(table, final) | reject('in', settings['keys']) | list,
        delta_cdc._live_rows(settings, later), delta_cdc._live_rows(settings, earlier), limit))) -%}
{% endmacro %}


{#- Final of a table. Staging may have been loaded without it: then nothing tells its columns. -#}
{% macro _final_of(table) %}
  {%- set final = delta_cdc._model_of(table.settings, 'final') -%}
  {%- if not adapter.table_state(final).exists -%}
    {%- do exceptions.raise_compiler_error('table ' ~ table.name ~ ': there is no ' ~ final ~ ' yet. Run `dbt run` first.') -%}
  {%- endif -%}
  {{ return(final) }}
{% endmacro %}

{#- The published columns that final has: with `on_schema_change: ignore` not all of them, before the next run not a new one, and
    those that are no longer listed where they were published (E3). -#}
{% macro _columns_of_final(table, final) %}
  {%- set settings, out, there = table.settings, [], adapter.get_columns_in_relation(final) | map(attribute='name') | list -%}
  {%- set retired = delta_cdc._retired_columns(settings, adapter.table_state(table.staging).columns) -%}
  {%- do delta_cdc._publish_retired(settings, retired, there) -%}
  {%- set there = there | map('lower') | list -%}
  {%- for column in settings['columns'] if column | lower in there %}{% do out.append(column) %}{% endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _live_rows(settings, final) %}
  {{ return('(select * from ' ~ final ~ ' where not _cdc_is_deleted)' if settings.get('delete_mode') == 'soft' else final) }}
{% endmacro %}


{#- The counts and examples that `reconcile` prints, of two relations that both have the table's keys and the columns compared.
    Where rows are only ever added a key may repeat: then the rows at it are compared one by one, in the order of their values.
    misfits: the other one has `_cdc_misfits`, the texts of values that are none of their columns' types. -#}
{% macro _differences(settings, compared, ours, theirs, limit, misfits=false) %}
  {%- set keys, our_values, their_values = settings['keys'], delta_cdc.comparables(settings, compared, 'o.'),
        delta_cdc.comparables(settings, compared, 't.') -%}
  {%- set keys_repeat = settings.get('insert_only') or false -%}
  {%- set by = (delta_cdc.comparables(settings, compared) if keys_repeat) or delta_cdc.all_quoted(keys) -%}
  {%- set copy = 'row_number() over (partition by ' ~ delta_cdc.column_list(keys) ~ ' order by ' ~ by | join(', ')
        ~ ') as _cdc_copy' -%}
  {%- set sides -%}
with ours as (
  select {{ delta_cdc.column_list(keys + compared) }}, true as _cdc_there{{ ', ' ~ copy if keys_repeat }} from {{ ours }}
),
theirs as (
  select {{ delta_cdc.column_list(keys + compared) }}{{ ', _cdc_misfits' if misfits }}, true as _cdc_there from {{ theirs }}
),
numbered as (
  select *, {{ copy }} from theirs
)
  {%- endset -%}
  {%- set differing -%}
{{ sides }},
compared as (
  select
    {{ delta_cdc.json_of('struct(' ~ delta_cdc._either(keys) ~ ')') }} as key,
    case when o._cdc_there is null then 'other' when t._cdc_there is null then 'final' else 'both' end as side,
    map_from_entries(array_compact(array(
    {%- for column in compared %}
      {%- set our_value, their_value = our_values[loop.index0], their_values[loop.index0] %}
      {%- set misfit = 't._cdc_misfits[' ~ delta_cdc.literal(column) ~ ']' if misfits else 'null' %}
      {#- what `expressions` make is compared within a struct, and shown without -#}
      {%- set is_made = column in (settings.get('expressions') or {}) %}
      {%- set our_text = 'o.' ~ delta_cdc.quoted(column) if is_made else our_value %}
      {%- set their_text = 't.' ~ delta_cdc.quoted(column) if is_made else their_value %}
      if({{ our_value }} <=> {{ their_value }}{{ ' and ' ~ misfit ~ ' is null' if misfits }}, null,
        struct({{ delta_cdc.literal(column) }} as column,
          array(cast({{ our_text }} as string), coalesce({{ misfit }}, cast({{ their_text }} as string))) as pair))
        {{- ',' if not loop.last }}
    {%- else %}
      cast(null as struct<column: string, pair: array<string>>)
    {%- endfor %}
    ))) as values
  from ours as o full outer join {{ 'numbered' if keys_repeat else '(select * from numbered where _cdc_copy = 1)' }} as t
    on {{ delta_cdc.same_columns(keys + (['_cdc_copy'] if keys_repeat else []), 'o', 't') }}
)
select * from compared where side <> 'both' or size(values) > 0
  {%- endset -%}
  {%- do adapter.create_kept_view('cdc_differing', differing) -%}
  {%- set found = adapter.query_rows(sides ~ "
select
  (select count(*) from ours) as final_rows, (select count(*) from theirs) as other_rows,
  (select count(*) from numbered where _cdc_copy > 1" ~ (' and false' if keys_repeat else '') ~ ") as repeated_keys,
  count_if(side = 'final') as only_in_final, count_if(side = 'other') as only_in_other, count_if(side = 'both') as differing
from cdc_differing")[0] -%}
  {%- do found.update({'examples': adapter.query_rows('select key, side, ' ~ delta_cdc.json_of('values')
        ~ ' as values from cdc_differing order by side, key limit ' ~ limit)}) -%}
  {{ return(found) }}
{% endmacro %}

{% macro _either(keys) %}
  {%- set out = [] -%}
  {%- for key in keys -%}
    {%- do out.append('coalesce(o.' ~ delta_cdc.quoted(key) ~ ', t.' ~ delta_cdc.quoted(key) ~ ') as '
          ~ delta_cdc.quoted(key)) -%}
  {%- endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}
