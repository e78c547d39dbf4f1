{#-
  `delta-cdc land`: what is new in the topics and change tables of feeds with `kafka` or `jdbc` goes into their Delta tables.
  feeds: names (none: all). overlap: for change tables, in place of `jdbc.overlap`. Prints a JSON list, an object a landed table:
  {feed, table, rows, seconds, …} as `adapter.land` says, or {feed, table, error}: one that fails does not hold up others.
-#}
{% macro land(feeds=none, overlap=none) %}
  {%- set out = [] -%}
  {%- for landing in delta_cdc._landings(feeds) %}{% do out.append(adapter.land(landing, overlap)) %}{% endfor -%}
  {%- do print(tojson(out)) -%}
{% endmacro %}


{#- What is to be landed: a table of a feed with `{table}` in its location, else the feed. -#}
{% macro _landings(feeds) %}
  {%- set out = {} -%}
  {%- for node in graph.sources.values()
        if delta_cdc._cdc_meta(node) is not none and (feeds is none or node.source_name in feeds) -%}
    {%- set settings = delta_cdc._table_settings(node) -%}
    {%- if settings.kafka or settings.jdbc -%}
      {%- set each = '{table}' in settings.location -%}
      {%- set name = settings.source_table -%}
      {%- set landing = {'feed': settings.feed, 'table': settings.table if each else none, 'format': settings.format,
            'location': delta_cdc.table_folder(settings.location, name)} -%}
      {%- if settings.kafka -%}
        {%- set topics = [] -%}
        {%- for topic in settings.kafka.topics or [] %}{% do topics.append(topic.replace('{table}', name)) %}{% endfor -%}
        {%- do landing.update({'kafka': settings.kafka, 'topics': topics,
              'topic_pattern': (settings.kafka.topic_pattern or '').replace('{table}', name)}) -%}
      {%- else -%}
        {%- do landing.update({'jdbc': settings.jdbc,
              'change_table': settings.change_table or settings.jdbc.table.replace('{table}', name)}) -%}
      {%- endif -%}
      {%- do out.update({(landing.feed, landing.table): landing}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out.values() | list) }}
{% endmacro %}


{#- The columns that order the rows of what is landed: they are there without being configured. -#}
{% macro _landing_order(settings) %}
  {%- if settings.kafka -%}{{ return(['topic', 'partition', 'offset']) }}{%- endif -%}
  {%- if settings.jdbc -%}{{ return([adapter.serial_column(settings.jdbc.serial)]) }}{%- endif -%}
  {{ return([]) }}
{% endmacro %}


{#- The column that the landing of a change table adds to it, the value of an expression: no part of its rows, unless listed. -#}
{% macro _added_by_landing(settings) %}
  {%- set serial = adapter.serial_column(settings.jdbc.serial) if settings.get('jdbc') else none -%}
  {%- set is_added = serial and serial != settings.jdbc.serial and serial not in settings.listed_columns | map('lower') -%}
  {{ return([serial] if is_added else []) }}
{% endmacro %}
