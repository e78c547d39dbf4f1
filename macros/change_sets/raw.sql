{#- raw_<feed>: each message of a feed that mixes tables, once, with its table: read once, not once a table.
    feed: its name. ledger: cdc_change_sets, by ref. -#}
{% macro raw(feed, ledger) %}
  {%- if not execute -%}{{ return(delta_cdc._empty_raw()) }}{%- endif -%}
  {%- set tables = delta_cdc.feed_tables(feed) -%}
  {%- set settings = tables.values() | list | first -%}
  {%- set state = delta_cdc.progress(this) -%}
  {%- do delta_cdc._refuse_restored(this, state) -%}
  {%- set pending = delta_cdc.pending_change_sets(ledger, settings, state.batch_id) -%}
  {%- set report = {'first_batch_id': pending[0]['batch_id'], 'last_batch_id': pending[-1]['batch_id']} if pending else {} -%}
  {%- set withheld = {} -%}  {#- `withheld_until` -#}
  {%- do withheld.update(state.notes.get('withheld', {})) -%}
  {%- set tables = delta_cdc._with_private_before(tables, withheld) -%}
  {%- for table in tables.values() if pending and delta_cdc.is_private(table) -%}
    {%- do withheld.update({table.source_table: pending[-1]['batch_id']}) -%}
  {%- endfor -%}
  {%- set notes = {'withheld': withheld} if withheld else {} -%}
  {%- if pending -%}
    {%- set lines = delta_cdc._lines_of_change_sets(this.identifier ~ '__lines', pending, settings) -%}
    {%- do settings.update({'kinds': delta_cdc.kinds_of_lines(settings, lines)}) -%}
    {%- set kinds = delta_cdc._kinds_in_raw(state, settings.kinds) -%}
    {%- if kinds is not none %}{% do notes.update({'kinds': kinds}) %}{% endif -%}
  {%- endif -%}
  {%- do adapter.plan_write(this, {
        'skip': not pending,
        'txn': {'app_id': state.app_id, 'version': report.get('last_batch_id', 0), 'after': state.committed},
        'notes': notes or none,
        'report': report}) -%}
  {%- if not pending -%}{{ return(delta_cdc._empty_raw()) }}{%- endif -%}
  {{ return(delta_cdc._without_private(delta_cdc.format_tables(lines, settings), tables)) }}
{% endmacro %}


{#- Which kinds of messages there may be in raw, for the tables that are staged from it, {name: true or false}; none: not known. A
    kind that nobody asked for when the first messages came, for it is newer or of another format, may be among them.
    new: those of this load. -#}
{% macro _kinds_in_raw(state, new) %}
  {%- if new is none %}{{ return(none) }}{% endif -%}
  {%- set before, out = state.notes.get('kinds', {}), {} -%}
  {%- for name, is_met in new.items() -%}
    {%- do out.update({name: is_met or before.get(name, state.committed > 0)}) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- The tables of a feed, and those that were private and are listed no more (switched off for this target, perhaps): what came of
    them is not to be stored now as that of an unknown table. -#}
{% macro _with_private_before(tables, withheld) %}
  {%- set out = {} -%}
  {%- do out.update(tables) -%}
  {%- for name in withheld -%}
    {%- set named = [] -%}
    {%- for table in tables.values() if delta_cdc._may_share(table.source_table, name) %}{% do named.append(table) %}{% endfor -%}
    {%- if not named %}{% do out.update({name ~ ' (not listed)': {'source_table': name, 'never_store': ['*']}}) %}{% endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}

{#- Whether tables of these names, with their schema or without, may have messages in common. -#}
{% macro _may_share(one, other) %}
  {{ return(one == other or (('.' in one) != ('.' in other) and one.split('.')[-1] == other.split('.')[-1])) }}
{% endmacro %}


{#- Without the messages of tables that have `mask` or `never_store`, and without the text of those of
    which no table can be told (E7). -#}
{% macro _without_private(messages, tables) %}
  {%- set private = [] -%}
  {%- for settings in tables.values() if delta_cdc.is_private(settings) -%}
    {%- do private.append(delta_cdc._is_of_table(settings)) -%}
  {%- endfor -%}
  {%- if not private -%}{{ return(messages) }}{%- endif -%}
  {{ return(
      "select batch_id, change_set, row_number, if(source_table is null, '(withheld: a table of the feed has `mask` or `never_store`)', message) as message, source_table"
      ~ "\nfrom (" ~ messages ~ ")\nwhere source_table is null or not (" ~ private | join(' or ') ~ ")") }}
{% endmacro %}


{#- The lines of change sets, one change each, by way of a temporary view. Of files that are no
    lines of JSON, a row is a line. -#}
{% macro _lines_of_change_sets(view, change_sets, settings) %}
  {%- do settings.update({'reads_much': adapter.tune_for(change_sets=change_sets)}) -%}
  {%- do adapter.create_lines_view(view, change_sets, {
        'feed': settings.feed, 'format': settings.format, 'file_format': settings.file_format, 'ready': settings.ready,
        'csv_options': settings.csv_options,
        'columns': settings.listed_columns, 'message_column': delta_cdc._message_column(settings),
        'row_order': settings.row_order or delta_cdc._landing_order(settings),
        'left_out': delta_cdc._added_by_landing(settings)}) -%}
  {{ return(delta_cdc.format_lines(view, settings)) }}
{% endmacro %}


{#- The column that holds the messages; none where each row is one. -#}
{% macro _message_column(settings) %}
  {{ return(settings.get('message_column') or ('value' if settings.get('kafka') else none)) }}
{% endmacro %}


{% macro _empty_raw() %}
select cast(null as bigint) as batch_id, cast(null as string) as change_set, cast(null as bigint) as row_number,
  cast(null as string) as message, cast(null as string) as source_table
where false
{% endmacro %}


{#- A table that holds the only copy of what was loaded is never continued from an older state in silence (S5). -#}
{% macro _refuse_restored(relation, state) %}
  {%- if state.rebuild -%}
    {%- do exceptions.raise_compiler_error(
        relation ~ " was restored, replaced, cloned or filled by somebody else: it does not tell which change sets it holds. "
        ~ "Put it back as its last load left it: restore table " ~ relation ~ " to version as of the newest one that has userMetadata in "
        ~ "DESCRIBE HISTORY. Or drop it, and the tables that are made of it, to load it again from the change sets that are still there.") -%}
  {%- endif -%}
{% endmacro %}


{#- Up to which batch raw has not a table's messages, for it was private: it has to read the change
    sets themselves. raw: its progress. -#}
{% macro withheld_until(raw, settings) %}
  {%- set reached = [-1] -%}
  {%- for name, batch in raw.notes.get('withheld', {}).items() if delta_cdc._may_share(name, settings.source_table) -%}
    {%- do reached.append(batch) -%}
  {%- endfor -%}
  {{ return(reached | max) }}
{% endmacro %}
