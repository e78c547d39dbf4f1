{#-
  Final as it was at a moment of the source (H4), with `known_at` as it was known then: both from staging, nothing is kept for it.
      select * from ({{ delta_cdc.as_of(ref('final_invoice'), '2026-06-30 23:59:59', known_at='2026-07-02') }})
  table      the final model, by ref
  moment     text or number (one of many digits as text: Jinja rounds it): changes up to it count, by `occurred_at`; none: all
  known_at   text: only what was staged until then; none: all
-#}
{% macro as_of(table, moment=none, known_at=none) -%}
  {%- if not execute -%}{{ return('select 1 as nothing') }}{%- endif -%}
  {%- set parents = delta_cdc._parents_of_final(table) -%}
  {%- set settings = delta_cdc._table_settings(parents.source) -%}
  {%- set keys = parents['keys'] -%}
  {%- set state = adapter.table_state(parents.staging_table) -%}
  {%- do delta_cdc.refuse_before_staging(settings, state) -%}  {#- else what lacks the new key would be one row -#}
  {%- do delta_cdc.follow_staging(settings, state, adapter.table_state(table).columns) -%}
  {%- do delta_cdc._leave_out_unstaged(settings, state.columns) -%}
  {%- if state.exists -%}
    {%- set asked = {'name': settings.feed ~ '.' ~ settings.table, 'staging': parents.staging_table} -%}
    {%- do delta_cdc._refuse_no_moment(asked, moment) -%}
    {%- do delta_cdc._refuse_no_moment(asked, known_at, 'timestamp', 'the time at which changes are staged') -%}
  {%- endif -%}
  {%- do delta_cdc._refuse_below_horizon(settings, parents.staging_table, moment, known_at) -%}
  {%- set known = delta_cdc.unheld(settings, parents.staging_table) if delta_cdc.may_be_held(settings) else parents.staging -%}
  {%- if known_at is not none -%}
    {%- set known = '(select * from ' ~ known ~ ' where _cdc_staged_at <= ' ~ delta_cdc._moment(known_at) ~ ')' -%}
  {%- endif -%}
  {%- if known_at is not none and keys is not none -%}
    {#- the keys table tells who is who by all that is known today; a model may ask for tables of one name in two schemas -#}
    {%- set keys = table.identifier ~ '__keys_known_' ~ local_md5(table ~ ' ' ~ known_at) -%}
    {%- do adapter.create_view_from_python(keys, 'delta_cdc.keys.known_key_changes', {
          'staging': known, 'keys': settings['keys'], 'pair_split_key_changes': settings.split_key_changes}) -%}
  {%- endif -%}
  {%- if moment is none -%}{{ return(delta_cdc._final_rows(settings, known, keys)) }}{%- endif -%}
  {%- set until = '(_cdc_occurred_at is null or _cdc_occurred_at <= '
        ~ delta_cdc._moment(moment, state.columns.get('_cdc_occurred_at')) ~ ')' -%}
  {%- set of_moment = '(select * from ' ~ known ~ ' where ' ~ until ~ ')' -%}
  {%- if not delta_cdc.has_entities(settings) -%}
    {{ return(delta_cdc._final_rows(settings, of_moment, none)) }}
  {%- endif -%}
  {{ return(delta_cdc._final_as_of(settings, known, keys, until)) }}
{%- endmacro %}


{#- What was listed just now staging has from the next run on: until then final has neither it nor what is made of it, and what
    was renamed under its old name. staged: staging's columns. -#}
{% macro _leave_out_unstaged(settings, staged) %}
  {%- set types, made, columns, unstaged, partitions = {}, {}, [], [], [] -%}
  {%- for column, type in settings.column_types.items() -%}
    {%- set name = column if column in staged else settings.renamed_columns.get(column) -%}
    {%- if name in staged %}{% do types.update({name: type}) %}{% endif -%}
    {%- if name != column %}{% do unstaged.append(column) %}{% endif -%}
  {%- endfor -%}
  {%- if not staged or not unstaged %}{{ return('') }}{% endif -%}
  {%- set expressions = settings.get('expressions') or {} -%}
  {%- for column, sql in expressions.items() if not delta_cdc.columns_named(unstaged, [sql]) -%}
    {%- do made.update({column: sql}) -%}
  {%- endfor -%}
  {%- for column in settings['columns'] -%}
    {%- set name = settings.renamed_columns.get(column) if column in unstaged and column not in made else column -%}
    {%- if name in made or (name in staged and column not in expressions) %}{% do columns.append(name) %}{% endif -%}
  {%- endfor -%}
  {%- for part in settings.get('partition_by') or [] if not delta_cdc.columns_named(unstaged, [part]) -%}
    {%- do partitions.append(part) -%}
  {%- endfor -%}
  {%- do settings.update({'column_types': types, 'columns': columns, 'expressions': made, 'partition_by': partitions}) -%}
{% endmacro %}


{#- As in history, a change or truncate counts from the highest time on that its entity has seen: time never runs backwards along
    the order, so what counts is what came first. -#}
{% macro _final_as_of(settings, known, keys, until) -%}
with changes as (
{{ delta_cdc.changes_of_entities(settings, known, keys) }}
),
{{ delta_cdc.entity_states(settings, known, with_life=true) }},
{{ delta_cdc.with_truncates() }},
timed as (
  select *, max(_cdc_occurred_at) over (
    partition by _cdc_entity
      order by {{ delta_cdc.order_of_states() }} rows between unbounded preceding and current row) as _cdc_time
  from with_truncates
),
until_then as (  -- of an entity's truncates those that count
  select * except (_cdc_truncates),
    slice(_cdc_truncates, 1, max(_cdc_epoch + int(_cdc_is_truncate)) over (partition by _cdc_entity)) as _cdc_truncates
  from timed where {{ until | replace('_cdc_occurred_at', '_cdc_time') }}
),
of_moment as (
  select * from until_then where not _cdc_is_truncate
),
{{ delta_cdc._present_of(settings, 'of_moment') }},
newest_at_key as (  -- inside a transaction of several moments two rows may be at one key: the newest is the row (K7)
  select *, row_number() over (partition by {{ delta_cdc.column_list(settings['keys']) }}
      order by {{ delta_cdc.order_of_states('desc') }}) as _cdc_newest_at_key
  from present
)
select {{ delta_cdc._final_select(settings) }}
from newest_at_key where _cdc_newest_at_key = 1
{%- endmacro %}


{#- {source, staging, keys}: what a final model is made from. -#}
{% macro _parents_of_final(table) %}
  {%- set layers = delta_cdc.layers() -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.relation_name == table | string -%}
    {%- set found = {'source': none, 'staging': none, 'keys': none} -%}
    {%- for parent in node.depends_on.nodes -%}
      {%- if parent in graph.sources -%}{%- do found.update({'source': graph.sources[parent]}) -%}
      {%- elif parent in graph.nodes -%}
        {%- set layer = layers.get(graph.nodes[parent].name) -%}
        {%- if layer in found -%}
          {%- do found.update({layer: graph.nodes[parent].relation_name,
                layer ~ '_table': delta_cdc._relation_of(graph.nodes[parent])}) -%}
        {%- endif -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if found.source is not none and found.staging is not none -%}{{ return(found) }}{%- endif -%}
  {%- endfor -%}
  {%- for node in graph.nodes.values() if table.identifier is defined and node.resource_type == 'model'
        and node.alias == table.identifier and layers.get(node.name) == 'final' -%}
    {%- do exceptions.raise_compiler_error('delta_cdc.as_of: ' ~ table ~ ' is the final of another target (`--defer`), and where '
          ~ 'its staging is, this one does not know. Load ' ~ node.relation_name ~ ' first, or leave out what asks for it.') -%}
  {%- endfor -%}
  {%- do exceptions.raise_compiler_error("delta_cdc.as_of: " ~ table
        ~ " is not a final model of this project. Pass ref('final_<table>').") -%}
{% endmacro %}

{#- A moment as SQL. Beside a decimal a text would become a double, and lose digits: what is a number stands there as one. -#}
{% macro _moment(value, type=none) %}
  {%- set is_number = value is number or ((type or '') | string).startswith('decimal')
        and modules.re.fullmatch('[+-]?[0-9]+([.][0-9]+)?', (value | string).strip()) -%}
  {{ return((value | string).strip() if is_number else delta_cdc.literal(value)) }}
{% endmacro %}
