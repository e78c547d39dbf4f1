{#- SQL of the touched partitions as they will be. Puts into `options`, the plan of the write, which these are. -#}
{% macro _partitions_replaced(settings, staging, keys, state, plan, evolution, options) %}
  {#- final is looked at before it has the columns that this write adds; fields of structs it needs to be compared -#}
  {%- if evolution.nested %}{% do delta_cdc.evolve_before(evolution.columns) %}{% endif -%}
  {%- set lacking = {} if evolution.nested else evolution.new -%}
  {%- set touched = delta_cdc._touched_partitions(settings,
        delta_cdc._winners(settings, staging, keys, state, plan, lacking), plan, lacking) -%}
  {#- what was filled, which revision was worked in, and that a restored table was rebuilt, is noted by a commit, though no row
      differs -#}
  {%- do options.update({'skip': not touched and not evolution.backfill and not plan.revised and not state.rebuild,
        'predicates': [touched or 'false']}) -%}
  {%- do options.report.update(plan.written) -%}
  {{ return(delta_cdc._partitions_rewritten(settings, delta_cdc._winners(settings, staging, keys, state, plan), touched, plan)) }}
{% endmacro %}


{#- The predicate that names the partitions in which a live row changes (A6): those of the rows as they are now and as they will
    be. Empty: nothing changes. Partition values come from rows, never from a delete, which may hold only the key. Puts into
    `plan.written` how many rows change, for Delta counts all that stand in these partitions. lacking: as of `_winners`. -#}
{% macro _touched_partitions(settings, winners, plan, lacking={}) %}
  {%- set keys = settings['keys'] -%}
  {%- set parts = delta_cdc._partition_columns(settings) -%}
  {%- set columns = delta_cdc._final_columns(settings) -%}
  {%- set sql -%}
with winners as (
{{ winners }}
),
compared as (
  select w._cdc_is_gone, live._cdc_is_live
  {%- for part in parts %},
    w.{{ delta_cdc.quoted(part) }} as new_{{ loop.index }}, live.{{ delta_cdc.quoted(part) }} as old_{{ loop.index }}
  {%- endfor %}
  from winners as w
  {{ 'full' if plan.mode == 'rebuild' else 'left' }} join
    (select *{{ delta_cdc._as_nulls(lacking) }}, true as _cdc_is_live from {{ this }}) as live
    on {{ delta_cdc.same_columns(keys, 'live', 'w') }}
  where not (
    (w._cdc_is_gone and live._cdc_is_live is null)
    or (not w._cdc_is_gone and live._cdc_is_live is not null and {{ delta_cdc.same_values(settings, columns, 'live', 'w') }})
  ) or w._cdc_is_gone is null
),
{%- set new, old = [], [] %}
{%- for part in parts %}{% do new.append('new_' ~ loop.index) %}{% do old.append('old_' ~ loop.index) %}{% endfor %}
touched as (
  select {% for part in parts %}new_{{ loop.index }} as p{{ loop.index }}, {% endfor %}
    count_if(_cdc_is_live is null) as inserted, count_if(_cdc_is_live) as updated, 0L as deleted
  from compared where not _cdc_is_gone group by {{ new | join(', ') }}
  union all
  select {{ old | join(', ') }}, 0L, 0L, count_if(coalesce(_cdc_is_gone, true))
  from compared where _cdc_is_live group by {{ old | join(', ') }}
),
by_partition as (
  select {% for part in parts %}p{{ loop.index }}, {% endfor -%}
    sum(inserted) as rows_inserted, sum(updated) as rows_updated, sum(deleted) as rows_deleted
  from touched group by {% for part in parts %}p{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %}
)
select {% for part in parts -%}
  {{ delta_cdc._exact_text('p' ~ loop.index) }} as p{{ loop.index }}, typeof(p{{ loop.index }}) as t{{ loop.index }},
{%- endfor %} rows_inserted, rows_updated, rows_deleted
from by_partition order by all
  {%- endset -%}
  {%- set predicates, found = [], adapter.query_rows(sql) -%}
  {%- for count in ('rows_inserted', 'rows_updated', 'rows_deleted') -%}
    {%- do plan.setdefault('written', {}).update({count: found | sum(attribute=count)}) -%}
  {%- endfor -%}
  {%- for row in found -%}
    {%- set terms = [] -%}
    {%- for part in parts -%}
      {%- set value = row['p' ~ loop.index] -%}
      {%- set type = row['t' ~ loop.index] -%}
      {%- if value is none -%}{%- do terms.append(delta_cdc.quoted(part) ~ ' is null') -%}
      {%- elif type in ('tinyint', 'smallint', 'int', 'bigint') -%}{%- do terms.append(delta_cdc.quoted(part) ~ ' = ' ~ value) -%}
      {%- elif type == 'date' -%}{%- do terms.append(delta_cdc.quoted(part) ~ " = date'" ~ value ~ "'") -%}
      {%- else -%}{%- do terms.append(delta_cdc.quoted(part) ~ ' = cast(' ~ delta_cdc.literal(value) ~ ' as ' ~ type ~ ')') -%}
      {%- endif -%}
    {%- endfor -%}
    {%- do predicates.append('(' ~ terms | join(' and ') ~ ')') -%}
  {%- endfor -%}
  {{ return(predicates | join(' or ')) }}
{% endmacro %}


{#- A value as text from which its type is cast back, whatever the time zone. -#}
{% macro _exact_text(name) %}
  {{ return("if(typeof(" ~ name ~ ") like 'timestamp%', get_json_object("
      ~ delta_cdc.json_of('struct(' ~ name ~ ')') ~ ", '$." ~ name ~ "'), cast(" ~ name ~ " as string))") }}
{% endmacro %}


{#- The touched partitions as they will be: what lives there and is not touched, and the winners that live. Columns of final that
    are no longer published stay as they were last. -#}
{% macro _partitions_rewritten(settings, winners, touched, plan) -%}
{%- set columns, keys = delta_cdc._final_columns(settings), settings['keys'] -%}
{%- set published, left = columns | map('lower') | list, [] -%}
{%- for column in adapter.table_state(this).columns if column | lower not in published %}{% do left.append(column) %}{% endfor -%}
with winners as (
{{ winners }}
),
kept as (
  select {{ delta_cdc.column_list(columns + left) }} from {{ this }} as _cdc_old
  where ({{ touched or 'false' }}) {% if plan.mode == 'rebuild' -%}
    and false
  {%- else -%}
    and not exists (select 1 from winners where {{ delta_cdc.same_columns(keys, 'winners', '_cdc_old') }})
  {%- endif %}
),
living as (
  select {{ delta_cdc.column_list(columns) }} from winners where not _cdc_is_gone and ({{ touched or 'false' }})
)
select * from kept
union all
{%- if left %}
select {{ delta_cdc.column_list(columns, 'living.') }}, {{ delta_cdc.column_list(left, '_cdc_old.') }}
from living left join {{ this }} as _cdc_old on {{ delta_cdc.same_columns(keys, 'living', '_cdc_old') }}
{%- else %}
select * from living
{%- endif %}
{%- endmacro %}
