{#-
  `delta-cdc rebuild`: prints which of these staging tables are there to make keys, history and final of. Where `keys` are others
  (K8), staging has to take them first, and a rebuild leaves it alone. staging: names of the models.
-#}
{% macro can_be_rebuilt(staging) %}
  {%- set there = [] -%}
  {%- for table in delta_cdc._staging_tables(names=staging) -%}
    {%- set keys, staged = table.settings['keys'], delta_cdc.progress(table.staging) -%}
    {%- if delta_cdc.progress(delta_cdc._model_of(table.settings, 'final')).notes.get('keys', keys) != keys -%}
      {%- do delta_cdc._refuse_other_keys(table.settings, staged) -%}
    {%- endif -%}
    {%- do there.append(delta_cdc.model_name(table.settings, 'staging')) -%}
  {%- endfor -%}
  {%- do print(tojson(there)) -%}
{% endmacro %}
