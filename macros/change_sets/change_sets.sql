{#-
  The ledger: one row for each change set that was ever found, numbered in the order in which it is loaded (rules S1, S4, S5).
  Batch ids are one growing sequence over all feeds; every change set has its own.
  Names that begin with `_` or `.` or end with `._COPYING_`, sets younger than `settle_seconds`, folders without their marker and,
  with `expect_contiguous`, sets behind a gap are not yet there.
  behind: whether the tables hold batches above all that it has given: it is not the one that they were loaded by.
-#}
{% macro change_sets(behind=false) %}
  {%- if not execute -%}{{ return(delta_cdc._empty_ledger()) }}{%- endif -%}
  {%- set feeds = delta_cdc._feeds() -%}
  {%- set state = adapter.table_state(this) -%}
  {%- set lost = not state.exists -%}
  {#- what a ledger that was lost, restored or put back from a backup no longer tells of what is loaded -#}
  {%- set forgotten = delta_cdc._ledger_from_tables() if lost or state.replaced or behind else none -%}
  {%- if forgotten is not none and not lost -%}
    {%- set forgotten = 'select t.* from (' ~ forgotten ~ ') as t left anti join ' ~ this ~ ' as l on l.batch_id = t.batch_id' -%}
  {%- endif -%}
  {%- set known = this if forgotten is none else forgotten if lost else 'select * from ' ~ this ~ ' union all ' ~ forgotten -%}
  {%- set recorded = 0 if lost else delta_cdc._highest_recorded_batch(this, state) -%}
  {%- set last = recorded if forgotten is none else [recorded, delta_cdc._highest_batch_of_tables()] | max -%}
  {%- set above = delta_cdc._recent_batches_above(last) -%}
  {%- do adapter.tune_for([] if lost else [this]) -%}
  {%- do delta_cdc._list_change_sets(feeds, {} if lost else delta_cdc._newest_names(feeds)) -%}
  {%- set now = "timestamp'" ~ modules.datetime.datetime.now(modules.pytz.utc).strftime('%Y-%m-%d %H:%M:%S.%f') ~ "+00:00'" -%}
  {%- set sql = delta_cdc._new_change_sets(feeds, known, last, now, above if forgotten is none else none) -%}
  {#- what is counted, what is written and what the other models are told are the rows of one moment -#}
  {%- do adapter.create_kept_view('cdc_change_sets__met', sql, small=true) -%}
  {%- set most = delta_cdc._few_change_sets() * 2 -%}
  {%- set rows = adapter.query_rows('select * from cdc_change_sets__met order by batch_id limit ' ~ most) -%}
  {%- if rows | length < most -%}
    {%- set new = rows | selectattr('is_new') | list | length -%}
  {%- else -%}
    {%- set rows, new = none, adapter.query_rows('select count_if(is_new) as new from cdc_change_sets__met')[0].new -%}
  {%- endif -%}
  {%- if new and forgotten is none and delta_cdc._highest_batch_of_tables() > last -%}
    {{ return(delta_cdc.change_sets(behind=true)) }}
  {%- endif -%}
  {%- set gaps = [] -%}
  {%- if feeds.values() | selectattr('expect_contiguous') | list -%}
    {%- for first in (adapter.query_rows('select * from cdc_change_sets__met where waits') if rows is none
          else rows | selectattr('waits')) -%}
      {%- do gaps.append(delta_cdc._says_gap(first)) -%}
      {%- do exceptions.warn(gaps[-1]) -%}
    {%- endfor -%}
    {%- set rows = none if rows is none else rows | rejectattr('waits') | list -%}
  {%- endif -%}
  {%- do adapter.remember('recorded', none if forgotten is not none or rows is none
        else {'ledger': this | string, 'above': above, 'rows': rows,
        'version': state.version + (1 if new else 0), 'run': invocation_id if new else none}) -%}
  {%- set sql = 'select feed, change_set, unit, size, modified_at, batch_id, discovered_at, status, retracted_at\nfrom '
        ~ delta_cdc.kept_rows('cdc_change_sets__met', sql) ~ '\nwhere is_new' -%}
  {%- if forgotten is not none and last > 0 -%}
    {%- set sql = 'select * from (' ~ forgotten ~ ')\nunion all\n' ~ sql -%}
  {%- endif -%}
  {#- Of runs that begin with the same ledger one commits, for their transactions have one number: that of the first batch. -#}
  {%- do adapter.plan_write(this, {
        'skip': new == 0 and forgotten is none,
        'txn': {'app_id': this.identifier ~ '@0', 'version': last if lost and not new else last + 1},
        'notes': {'last_batch_id': last + new, 'run': invocation_id},
        'report': {'rows_read': new, 'first_batch_id': last + 1, 'last_batch_id': last + new, 'held': gaps | join('\n')},
      }) -%}
  {{ return(sql) }}
{% endmacro %}


{#- The view `cdc_listing` of what lies in the feeds' folders. newest: as of `_newest_names`. A feed that cannot be listed fails
    in its own models: `pending_change_sets`. -#}
{% macro _list_change_sets(feeds, newest) %}
  {%- set patterns = [] -%}
  {%- for feed in feeds.values() -%}
    {#- the commits of a Delta table: twenty digits, and no checkpoint or checksum -#}
    {%- set names = '?' * 20 ~ '.json' if feed.file_format == 'delta'
          else '*/*' if feed.unit == 'folder' else '**' if feed.sub_folders else '*' -%}
    {%- for table in (feed.tables if '{table}' in feed.location else ['']) -%}
      {%- do patterns.append({'feed': feed.feed, 'folder': delta_cdc._folder_of_change_sets(feed, table), 'names': names,
            'after': newest.get(feed.feed, {})}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- do adapter.remember('unlisted', adapter.create_listing_view('cdc_listing', patterns)) -%}
{% endmacro %}


{#- What a run says of a gap (`expect_contiguous`), and after it `delta-cdc status` (`_gaps` of ask.py) of the tables whose folder
    it names. first: the change set behind it, as `_new_change_sets` has it. -#}
{% macro _says_gap(first) %}
  {%- set lowest, highest = first.gap_after + 1, first.number - 1 -%}
  {{ return('feed ' ~ first.feed ~ ': ' ~ first.waiting ~ (' change set waits' if first.waiting == 1 else ' change sets wait')
      ~ ' in ' ~ first.folder ~ ', the first of them ' ~ first.change_set.split('/')[-1] ~ ': by `expect_contiguous` number '
      ~ (lowest if lowest == highest else lowest ~ ' to ' ~ highest)
      ~ ' has to come first. Deliver what is missing; where it will never come, an empty change set in its place, or take'
      ~ ' `expect_contiguous` out for one run.') }}
{% endmacro %}


{#- The highest batch id that the ledger ever gave: its newest commit notes it. One that somebody else wrote to last is asked too;
    what was given before it was restored is not given again, for Delta would ignore that transaction. -#}
{% macro _highest_recorded_batch(ledger, state) %}
  {%- set given = [state.notes.get('last_batch_id', 0), state.txn_version or 0] | max -%}
  {%- if state.txn_version is not none and not state.replaced -%}{{ return(given) }}{%- endif -%}
  {{ return([given,
        adapter.cached_query(ledger, 'select coalesce(max(batch_id), 0) as batch_id from ' ~ ledger)[0].batch_id] | max) }}
{% endmacro %}


{#- {feed: {folder: the highest name that is recorded}} of the feeds with `list_after`. -#}
{% macro _newest_names(feeds) %}
  {%- set newest = {} -%}
  {%- set ascending = feeds.values() | selectattr('list_after') | map(attribute='feed') | list -%}
  {%- if ascending -%}
    {%- for row in adapter.cached_query(this, 'select feed, ' ~ delta_cdc._folder_of('change_set') ~ ' as folder, max('
          ~ delta_cdc._name_in('change_set') ~ ') as name from ' ~ this
          ~ ' where feed in (' ~ delta_cdc._literals(ascending) ~ ') group by all') -%}
      {%- do newest.setdefault(row.feed, {}).update({row.folder: row.name}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(newest) }}
{% endmacro %}


{% macro _empty_ledger() %}
select
  cast(null as string) as feed, cast(null as string) as change_set, cast(null as string) as unit,
  cast(null as bigint) as size, cast(null as timestamp) as modified_at, cast(null as bigint) as batch_id,
  cast(null as timestamp) as discovered_at, cast(null as string) as status, cast(null as timestamp) as retracted_at
where false
{% endmacro %}


{#- The feeds of this project: {feed: settings of the feed, with `tables`, their names in the feed}. -#}
{% macro _feeds() %}
  {%- set feeds = {} -%}
  {%- for node in graph.sources.values() if delta_cdc._cdc_meta(node) is not none -%}
    {%- set table = delta_cdc._table_settings(node) -%}
    {%- if table.feed not in feeds -%}
      {%- do feeds.update({table.feed: {
            'feed': table.feed, 'format': table.format, 'location': table.location, 'unit': table.unit, 'ready': table.ready,
            'sub_folders': table.sub_folders,
            'file_format': table.file_format, 'list_after': table.list_after,
            'order': 'name' if table.file_format == 'delta' or table.list_after else table.change_set_order,
            'settle_seconds': table.settle_seconds,
            'start_from': table.start_from, 'expect_contiguous': table.expect_contiguous, 'tables': []}}) -%}
    {%- endif -%}
    {#- two tables may read one folder: what lies in it is there once -#}
    {%- set names = feeds[table.feed].tables -%}
    {%- if table.source_table not in names %}{% do names.append(table.source_table) %}{% endif -%}
  {%- endfor -%}
  {{ return(feeds) }}
{% endmacro %}


{#- A table's folder, or the one that all tables of a feed share. location: the feed's, in which {table} may stand. -#}
{% macro table_folder(location, source_table) %}{{ return(location.replace('{table}', source_table).rstrip('/')) }}{% endmacro %}

{#- Where the change sets of a table are; settings: of it or of its feed. -#}
{% macro _folder_of_change_sets(settings, source_table) %}
  {%- set folder = delta_cdc.table_folder(settings.location, source_table) -%}
  {{ return(folder ~ '/_delta_log' if settings.file_format == 'delta' else folder) }}
{% endmacro %}

{#- The same as the ledger spells it. -#}
{% macro qualified_folder(settings) %}
  {{ return(adapter.qualified_path(delta_cdc._folder_of_change_sets(settings, settings.source_table))) }}
{% endmacro %}


{#-
  The change sets that are new (`is_new`), numbered from the highest batch so far (`last`), and of those recorded the ones above a
  batch (`above`; none: none of them, for the ledger is completed from the tables): the ledger is read once for both. now: a
  moment, as SQL.
-#}
{% macro _new_change_sets(feeds, known, last, now, above=none) -%}
with listed as (
  select *, {{ delta_cdc._name_in('path') }} as name, {{ delta_cdc._folder_of('path') }} as folder
  from cdc_listing
),
change_sets as (
{%- for feed in feeds.values() %}
  {{ 'union all' if not loop.first }}
  {{- delta_cdc._found_of(feed) }}
{%- else %}
  select *, path as change_set, 'file' as unit, cast(null as timestamp) as found_order, true as is_whole from listed where false
{%- endfor %}
),
wanted as (
  select *, {{ delta_cdc._number_in('name') }} as number, is_whole
    {%- for feed in feeds.values() if feed.settle_seconds %}
    and (feed <> {{ delta_cdc.literal(feed.feed) }} or modified_at <= {{ now }} - interval {{ feed.settle_seconds }} seconds)
    {%- endfor %} as is_ready
  from change_sets
  where not startswith(name, '_') and not startswith(name, '.')
  {%- for feed in feeds.values() if feed.start_from %}
    and (feed <> {{ delta_cdc.literal(feed.feed) }} or {{ delta_cdc._from_start(feed) }})
  {%- endfor %}
),
{%- set ascending = feeds.values() | selectattr('list_after') | map(attribute='feed') | list %}
ready as (
  select * from
  {%- if ascending %} (  -- what is recorded hides all below it
    select *, bool_or(not is_ready) over (partition by feed, folder order by name) as waits_for_another from wanted
  )
  where is_ready and not (waits_for_another and feed in ({{ delta_cdc._literals(ascending) }}))
  {%- else %} wanted where is_ready
  {%- endif %}
),
met as (
  select
    coalesce(found.feed, known.feed) as feed, coalesce(found.change_set, known.change_set) as change_set, found.name,
    coalesce(found.folder, {{ delta_cdc._folder_of('known.change_set') }}) as folder, found.number, found.found_order,
    if(known.batch_id is null, found.unit, known.unit) as unit, if(known.batch_id is null, found.size, known.size) as size,
    if(known.batch_id is null, found.modified_at, known.modified_at) as modified_at,
    known.batch_id, known.discovered_at, known.status, known.retracted_at, known.batch_id is null as is_new
  from ready as found
  full outer join (
    -- how it was recorded last counts, and where that was retracted, how it was before, too: it may be put back so
    select *, count_if(status <> 'retracted') over (
      partition by feed, change_set order by batch_id desc rows between unbounded preceding and 1 preceding) = 0 as is_newest
    from {{ known if known is not string else '(' ~ known ~ ')' }}
  ) as known
    on known.feed = found.feed and known.change_set = found.change_set
    -- rewritten since: another size or time makes it a new change set; a ledger rebuilt from the tables knows neither, but when
    -- its rows were staged (none of a configured table: not even that)
    and if(known.size is null, found.modified_at <= coalesce(known.discovered_at, found.modified_at),
      known.is_newest and known.size = found.size and known.modified_at = found.modified_at)
)
{%- set copies = feeds.values() | selectattr('format', 'equalto', 'snapshots') | map(attribute='feed') | list
      if above is none else [] -%}
{%- if copies %},
compared as (  -- a copy that changed nothing left no row: one from before the newest that is known is not the newest again
  select * except (status), if(is_new and feed in ({{ delta_cdc._literals(copies) }}) and struct(found_order, change_set)
    < max(if(is_new, null, struct(found_order, change_set))) over (partition by feed, folder), 'retracted', status) as status
  from met
)
{%- endif -%}
{%- set met = 'compared' if copies else 'met' -%}
{%- set told = 'is_new' if above is none else '(is_new or batch_id > ' ~ above ~ ')' -%}
{%- set contiguous = feeds.values() | selectattr('expect_contiguous') | map(attribute='feed') | list %}
{%- if contiguous %},
{{ delta_cdc._in_line_ctes(contiguous, met, told) }}
{%- endif %}
select
  feed, change_set, unit, size, modified_at,
  coalesce(batch_id, {{ last }} + row_number() over (partition by is_new order by feed, found_order, change_set)) as batch_id,
  coalesce(discovered_at, current_timestamp()) as discovered_at,
  coalesce(status, 'recorded') as status, retracted_at, folder, is_new {{- ', waits, number, gap_after, waiting' if contiguous }}
from {{ 'in_line where not waits or place = 1' if contiguous else met ~ '\nwhere ' ~ told }}
{%- endmacro %}


{#- Of `_new_change_sets`: the change sets of a feed that lie in the listing. -#}
{% macro _found_of(feed) %}
  {%- if feed.unit == 'folder' %}
  {#- what others leave in a folder, as .DS_Store or _processed, makes no other change set of it #}
  {%- set of_set = 'filter (where name = ' ~ delta_cdc.literal(feed.ready)
        ~ " or not (startswith(name, '_') or startswith(name, '.')))" %}
  select
    feed, folder as change_set, 'folder' as unit, sum(size) {{ of_set }} as size, max(modified_at) {{ of_set }} as modified_at,
    {{ delta_cdc._name_in('folder') }} as name, {{ delta_cdc._folder_of('folder') }} as folder,
    {{ 'cast(null as timestamp)' if feed.order == 'name' else 'max(modified_at) ' ~ of_set }} as found_order,
    count_if(name = {{ delta_cdc.literal(feed.ready) }}) > 0 and count_if(endswith(name, '._COPYING_')) = 0 as is_whole
  from listed
  where feed = {{ delta_cdc.literal(feed.feed) }}
  group by feed, folder
  {%- else %}
  select
    feed, path as change_set, 'file' as unit, size, modified_at, name, folder,
    {{ 'cast(null as timestamp)' if feed.order == 'name' else 'modified_at' }} as found_order,
    -- what `hdfs dfs -put` is writing, and will rename: Spark reads no row of it
    not endswith(name, '._COPYING_') as is_whole
  from listed
  where feed = {{ delta_cdc.literal(feed.feed) }}
  {%- endif %}
{%- endmacro %}


{#- Of `_new_change_sets`, where feeds have `expect_contiguous`: the CTEs that tell what waits for a number below it. contiguous:
    these feeds. met: a CTE. told: a condition of its rows. -#}
{% macro _in_line_ctes(contiguous, met, told) -%}
counted as (
  -- N waits for N-1: counted from the highest number of its folder that is known; one that was rewritten, or has no
  -- number, waits for none
  select *, not coalesce(not is_new or feed not in ({{ delta_cdc._literals(contiguous) }}) or number is null
    or number <= highest or gap_free_base = coalesce(highest, below), false) as waits
  from (
    select *, min(number) over of_folder - 1 as below,
      number - dense_rank() over (partition by feed, folder, is_new, number <= highest order by number nulls last)
        as gap_free_base
    from (
      select *,
        max(if(is_new, null, {{ delta_cdc._number_in(delta_cdc._name_in('change_set')) }}))
        over (partition by feed, folder) as highest
      from {{ met }}
    )
    where {{ told }}
    window of_folder as (partition by feed, folder, is_new)
  )
),
in_line as (  -- and of those that wait the lowest of each folder, by which the gap is told
  select * except (is_new), is_new and not waits as is_new,
    greatest(highest, max(if(waits, null, number)) over (partition by feed, folder)) as gap_after,
    count_if(waits) over (partition by feed, folder) as waiting,
    row_number() over (partition by feed, folder, waits order by number, change_set) as place
  from counted
)
{%- endmacro %}


{#- SQL: whether a change set does not lie below `start_from`: by its name; or, where that is a path, in one of the feed's folders
    or below each of them, by its path as the ledger spells it. An absolute one elsewhere would hide all or nothing: the tables of
    the feed stop, as if it could not be listed. -#}
{% macro _from_start(feed) %}
  {%- set start = feed.start_from | string -%}
  {%- if '/' not in start %}{{ return('name >= ' ~ delta_cdc.literal(start)) }}{% endif -%}
  {%- set unlisted = adapter.recall('unlisted') -%}
  {%- if feed.feed in unlisted %}{{ return('false') }}{% endif -%}
  {%- set path, below = adapter.qualified_path(start), [] -%}
  {%- for table in (feed.tables if '{table}' in feed.location else ['']) -%}
    {%- set folder = delta_cdc._folder_of_change_sets(feed, table) -%}
    {%- set root = adapter.qualified_path(folder) -%}
    {%- if (path ~ '/').startswith(root ~ '/') %}{{ return('change_set >= ' ~ delta_cdc.literal(path)) }}{% endif -%}
    {%- do below.append('startswith(change_set, ' ~ delta_cdc.literal(root ~ '/') ~ ') and change_set >= '
          ~ delta_cdc.literal(adapter.qualified_path(folder ~ '/' ~ start))) -%}
  {%- endfor -%}
  {%- if modules.re.match('/|[A-Za-z][A-Za-z0-9+.-]*:', start) -%}
    {%- do unlisted.update({feed.feed: '`start_from` is ' ~ start ~ ', which is in none of its folders.'}) -%}
    {{ return('false') }}
  {%- endif -%}
  {{ return(below | join(' or ')) }}
{% endmacro %}


{#- SQL: the folder that a path is in. -#}
{% macro _folder_of(path) %}{{ return('regexp_replace(' ~ path ~ ", '/[^/]*$', '')") }}{% endmacro %}

{#- SQL: the last name in a path. -#}
{% macro _name_in(path) %}{{ return('element_at(split(' ~ path ~ ", '/'), -1)") }}{% endmacro %}

{#- The last number in a change set's name: that of a kind of compression is none of it. -#}
{% macro _number_in(name) -%}
try_cast(regexp_extract(regexp_replace({{ name }}, '(?i)\\.(bz2|lz4|lz4raw)(?=\\.|$)', ''), '(\\d+)\\D*$', 1) as bigint)
{%- endmacro %}


{#- What the tables themselves know of the change sets: a lost ledger is rebuilt from it. -#}
{% macro _ledger_from_tables() %}
  {%- set parts, feeds = [], delta_cdc._feeds() -%}
  {%- for table in delta_cdc._loading_tables() -%}
    {%- do parts.append('select ' ~ delta_cdc.literal(table.feed) ~ ' as feed, ' ~ delta_cdc.literal(feeds[table.feed].unit)
          ~ ' as unit, ' ~ table.change_set ~ ' as change_set, ' ~ table.batch_id ~ ' as batch_id, ' ~ table.at
          ~ ' as discovered_at, ' ~ table.retracted ~ ' as retracted from ' ~ table.relation) -%}
  {%- endfor -%}
  {%- if not parts -%}{{ return(delta_cdc._empty_ledger()) }}{%- endif -%}
  {{ return(
    "select feed, change_set, unit, cast(null as bigint) as size, cast(null as timestamp) as modified_at, "
    ~ "batch_id, min(discovered_at) as discovered_at, "
    ~ "if(bool_or(retracted), 'retracted', 'recovered') as status, cast(null as timestamp) as retracted_at "
    ~ 'from (' ~ parts | join(' union all ') ~ ') group by feed, change_set, unit, batch_id') }}
{% endmacro %}


{#- The highest batch that a table knows of: one that held nothing for it stands in `cdc_runs` alone (S7), and counts as done too. -#}
{% macro _highest_batch_of_tables() %}
  {%- set highest = [0] + delta_cdc.noted_runs().done.values() | list -%}
  {%- for table in delta_cdc._loading_tables() -%}
    {%- do highest.append(adapter.table_state(table.relation).txn_version or 0) -%}
  {%- endfor -%}
  {{ return(highest | max) }}
{% endmacro %}


{#- The tables that hold loaded change sets and exist: raw_<feed> of mixed feeds, and all staging tables. -#}
{% macro _loading_tables() %}
  {%- set out, layers, sources = [], delta_cdc.layers(), {} -%}
  {%- for node in graph.sources.values() if delta_cdc._cdc_meta(node) is not none -%}
    {%- do sources.update({delta_cdc.model_name({'feed': node.source_name, 'table': node.name}, 'staging'): node}) -%}
  {%- endfor -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'incremental' -%}
    {%- set layer = layers.get(node.name) -%}
    {%- if layer in ('raw', 'staging') -%}
      {%- set relation = delta_cdc._relation_of(node) -%}
      {%- if adapter.table_state(relation).exists -%}
        {%- if layer == 'raw' -%}
          {%- do out.append({'feed': node.name[4:], 'relation': relation, 'change_set': 'change_set',
                'batch_id': 'batch_id', 'at': 'cast(null as timestamp)', 'retracted': 'false'}) -%}
        {%- else -%}
          {%- do out.append({'feed': sources[node.name].source_name, 'table': sources[node.name].name,
                'relation': relation, 'change_set': '_cdc_change_set', 'batch_id': '_cdc_batch_id', 'at': '_cdc_staged_at',
                'retracted': "_cdc_error <=> 'retracted'"}) -%}
        {%- endif -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}
