{#- The columns of final beyond the published ones (rules A9, A10), and what their settings change. -#}

{#- What final selects: the published columns, the derived partition columns, the added ones. -#}
{% macro _final_select(settings) -%}
{{ delta_cdc.column_list(settings['columns']) }}{{ delta_cdc._with_partitions(settings) }}
{%- if settings.get('surrogate') == 'hash' %}, _cdc_key{% endif %}
{%- if settings.get('created_at') %}, _cdc_created_at as {{ delta_cdc.quoted(settings.created_at) }}{% endif %}
{%- if settings.get('updated_at') %}, _cdc_updated_at as {{ delta_cdc.quoted(settings.updated_at) }}{% endif %}
{%- if settings.get('delete_mode') == 'soft' %}, _cdc_is_deleted, _cdc_deleted_at{% endif %}
{%- endmacro %}

{#- Rows of staging with what `expressions` make of them, also in place of columns that came. more: columns that the rows have and
    nobody lists any more: of these goes first what is made now, for Spark takes a name for a column's before what is made. -#}
{% macro _with_made(settings, rows, more=[]) %}
  {%- set made = settings.get('expressions') or {} -%}
  {%- if not made %}{{ return(rows) }}{% endif -%}
  {%- set there = settings.column_types.keys() | select('in', made) | list -%}
  {%- set gone = more | select('in', made) | list -%}
  {%- if gone %}{% set rows = '(select * except (' ~ delta_cdc.column_list(gone) ~ ') from ' ~ rows ~ ')' %}{% endif -%}
  {{ return('(select *' ~ (' except (' ~ delta_cdc.column_list(there) ~ ')' if there else '')
      ~ ', ' ~ delta_cdc._made(settings, made) ~ ' from ' ~ rows ~ ')') }}
{% endmacro %}

{#- Columns of history and final, as SQL over staging's: what `expressions` make stands under its name (E7). -#}
{% macro _made(settings, columns) %}
  {%- set out = [] -%}
  {%- for column in columns -%}
    {%- set sql = settings.get('expressions', {}).get(column) -%}
    {%- do out.append('(' ~ sql ~ ') as ' ~ delta_cdc.quoted(column) if sql else delta_cdc.quoted(column)) -%}
  {%- endfor -%}
  {{ return(out | join(', ')) }}
{% endmacro %}


{#- The names of final's columns. -#}
{% macro _final_columns(settings) %}
  {%- set added = [settings.get('created_at'), settings.get('updated_at')] | select | list -%}
  {{ return(settings['columns'] + added + (['_cdc_key'] if settings.get('surrogate') == 'hash' else [])
      + (['_cdc_is_deleted', '_cdc_deleted_at'] if settings.get('delete_mode') == 'soft' else [])
      + (delta_cdc._derived_partitions(settings) | map(attribute='name') | list)) }}
{% endmacro %}

{#- The settings by which a row of final holds more than its changes give. -#}
{% macro _settings_of_life() %}
  {{ return(['delete_mode', 'soft_delete_nulls', 'created_at', 'updated_at', 'set_on_insert', 'surrogate_of']) }}
{% endmacro %}

{#- Settings that shape rows already written, as text: where they are others than a table was written with, it is built anew. -#}
{% macro _shape(settings, names) %}
  {%- set out = [] -%}
  {%- for name in names -%}
    {%- if settings.get(name) and settings[name] not in ('hard', 'none') -%}
      {%- do out.append(name ~ ': ' ~ settings[name]) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out | join(', ') or none) }}
{% endmacro %}


{#- A column as it is after a change, as a struct: what the last change that carries it gave it; `set_on_insert` takes only what
    the first change of the life gave. -#}
{% macro folded(settings, column) -%}
{%- set unsaid = 'array_contains(_cdc_missing, ' ~ delta_cdc.literal(column) ~ ') or _cdc_ends' -%}
{%- set given = 'if(' ~ unsaid ~ ', null, struct(' ~ delta_cdc.quoted(column) ~ '))' -%}
{%- if column in (settings.get('filled_by_field') or []) -%}
{%- set type = delta_cdc._staged_type(settings, column) -%}
struct({{ adapter.folded(delta_cdc.quoted(column), type, unsaid, 'life') }} as {{ delta_cdc.quoted(column) }})
{%- else -%}
{{ 'first_value(' ~ given ~ ')' if column in (settings.get('set_on_insert') or []) else 'last_value(' ~ given ~ ', true)' }}
  over life
{%- endif -%}
{%- endmacro %}

{#- The structs of which a null field in an update means that the field did not change (P1). What staging keeps of such an update
    is what came, so whether one is partial is not noted: tables with such columns are worked out from staging. One that is
    listed as another type stays what staging has. -#}
{% macro _filled_by_field(settings) %}
  {%- set rows_live = delta_cdc.has_entities(settings) and settings.format != 'snapshots' -%}
  {%- set out, silent = [], delta_cdc._silent_when_null(settings) if rows_live else [] -%}
  {%- for column in silent | reject('in', settings.get('set_on_insert') or []) -%}
    {%- set type = delta_cdc._staged_type(settings, column) or '' -%}
    {%- if (type.type if type is mapping else type).strip().lower().startswith('struct') %}{% do out.append(column) %}{% endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- What final's added columns need to know of the life that a change belongs to: {name: SQL, over the window `life`}. -#}
{% macro _of_life(settings) %}
  {%- set out = {} -%}
  {%- if settings.get('created_at') -%}
    {%- do out.update({'_cdc_created_at': 'first_value(_cdc_occurred_at) over life'}) -%}
  {%- endif -%}
  {%- if settings.get('updated_at') -%}
    {%- do out.update({'_cdc_updated_at':
          'last_value(if(_cdc_ends, null, struct(_cdc_occurred_at)), true) over life._cdc_occurred_at'}) -%}
  {%- endif -%}
  {%- if settings.get('delete_mode') == 'soft' -%}
    {%- do out.update({'_cdc_lived': 'count_if(not _cdc_ends) over life > 0'}) -%}
  {%- endif -%}
  {{ return(out) }}
{% endmacro %}


{#- `partition_by`, in its order: [{name, expression, derived}]; derived: final has the column beside the published ones. -#}
{% macro _partitions(settings) %}
  {%- set out, spelling = [], delta_cdc._spelling_of(settings.column_types) -%}
  {%- for part in settings.get('partition_by') or [] -%}
    {%- set quoted = modules.re.match('^\\s*`((?:[^`]|``)+)`\\s*$', part) -%}
    {%- set column = spelling.get((quoted.group(1) | replace('``', '`') if quoted else part).lower()) -%}
    {%- set named = modules.re.match('(?is)^(.*\\S)\\s+as\\s+(?:`((?:[^`]|``)+)`|([a-z_][a-z0-9_]*))\\s*$', part) -%}
    {%- if column -%}{%- do out.append({'name': column, 'expression': column, 'derived': false}) -%}
    {%- elif named -%}
      {%- do out.append({'name': named.group(3) or named.group(2) | replace('``', '`'),
            'expression': named.group(1), 'derived': true}) -%}
    {%- else -%}
      {%- do out.append({'name': modules.re.sub('\\W+', '_', part).strip('_') | lower, 'expression': part, 'derived': true}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{% macro _derived_partitions(settings) %}
  {{ return(delta_cdc._partitions(settings) | selectattr('derived') | list) }}
{% endmacro %}

{% macro _partition_columns(settings) %}{{ return(delta_cdc._partitions(settings) | map(attribute='name') | list) }}{% endmacro %}


{% macro _with_partitions(settings) -%}
  {%- for derived in delta_cdc._derived_partitions(settings) %},
    {{ derived.expression }} as {{ delta_cdc.quoted(derived.name) }}
  {%- endfor %}
{%- endmacro %}
