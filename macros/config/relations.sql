{#- Where the models of this project are. -#}
{% macro _relation_of(node) %}
  {{ return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)) }}
{% endmacro %}

{#- By the id that it has in this project or in this package: to look at each of a thousand nodes takes milliseconds. none: there
    is no such model, or it is switched off, of which dbt shows macros nothing. -#}
{% macro _model_node(name) %}
  {{ return(graph.nodes.get('model.' ~ project_name ~ '.' ~ name) or graph.nodes.get('model.delta_cdc.' ~ name)
      or (graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
        | selectattr('name', 'equalto', name) | list + [none]) | first) }}
{% endmacro %}

{% macro _model_relation(name) %}
  {%- set node = delta_cdc._model_node(name) -%}
  {%- if node is none -%}
    {%- do exceptions.raise_compiler_error('There is no model ' ~ name
          ~ ' in this project. `delta-cdc generate` writes the models of the feeds; one that is there is switched off (`enabled`,'
          ~ ' in its file or in dbt_project.yml).') -%}
  {%- endif -%}
  {{ return(delta_cdc._relation_of(node)) }}
{% endmacro %}

{#- The name of a table's model of a layer. -#}
{% macro model_name(settings, layer) %}
  {%- set table = settings.feed ~ '__' ~ settings.table -%}
  {{ return({'raw': 'raw_' ~ settings.feed, 'staging': 'stg_' ~ table, 'keys': 'int_' ~ table ~ '_keys',
      'history': 'hist_' ~ table,
      'final': settings.get('final_name') or 'final_' ~ settings.table}[layer]) }}
{% endmacro %}

{% macro _model_of(settings, layer) %}{{ return(delta_cdc._model_relation(delta_cdc.model_name(settings, layer))) }}{% endmacro %}

{#- Whether dbt has it: of a feed whose models are switched off (`+enabled`, perhaps for this target) the sources are there. -#}
{% macro _has_model(settings, layer) %}
  {{ return(delta_cdc._model_node(delta_cdc.model_name(settings, layer)) is not none) }}
{% endmacro %}


{#- The tables of control that are no models stand beside the ledger. -#}
{% macro _control_relation(identifier) %}
  {%- set ledger = delta_cdc._model_relation('cdc_change_sets') -%}
  {{ return(api.Relation.create(database=ledger.database, schema=ledger.schema, identifier=identifier)) }}
{% endmacro %}

{% macro _runs_relation() %}{{ return(delta_cdc._control_relation('cdc_runs')) }}{% endmacro %}

{#- The table of change sets that are held back, by `prepare_holds`. -#}
{% macro holds_relation() %}{{ return(delta_cdc._control_relation('cdc_holds')) }}{% endmacro %}


{#- What `delta-cdc run --plan` puts behind the schema of the profile: PLAN_SUFFIX. -#}
{% macro _plan_suffix() %}{{ return('__plan') }}{% endmacro %}

{#- Runs a statement that a model needs before its own. `dbt compile`, `dbt show` and `dbt docs generate` only read. -#}
{% macro write_before(sql) %}
  {%- if not delta_cdc._only_reads() %}{% do run_query(sql) %}{% endif -%}
{% endmacro %}

{#- The same for columns that the model's table needs. -#}
{% macro evolve_before(columns) %}
  {%- if not delta_cdc._only_reads() %}{% do adapter.evolve(this, columns) %}{% endif -%}
{% endmacro %}

{% macro _only_reads() %}{{ return(flags.WHICH in ['compile', 'show', 'generate']) }}{% endmacro %}

{#- The SQL of a model that writes nothing in this run, where that is not asked for: nobody runs it, and to make it takes most of
    such a model's time. -#}
{% macro _nothing_new() %}{{ return('select 1 as nothing  -- nothing new: dbt compile shows what makes the rows') }}{% endmacro %}


{#- {name of a model: its layer} of the feeds' models: raw, staging, keys, history or final; and the ledger. By the names that
    they have of their feeds: other models of a project may begin with stg_ too, and be called raw_<feed> where the feed has
    no such model. -#}
{% macro layers() %}
  {%- set out = {'cdc_change_sets': 'ledger'} -%}
  {%- for node in graph.sources.values() -%}
    {%- set given = delta_cdc._cdc_meta(node) -%}
    {%- if given is not none -%}
      {%- set table = {'feed': node.source_name, 'table': node.name, 'final_name': given.get('final_name')} -%}
      {%- set has_raw = not delta_cdc.has_own_files({'format': given.get('format'), 'location': given.get('location') or ''}) -%}
      {%- for layer in (['raw'] if has_raw else []) + ['staging', 'keys', 'history', 'final'] -%}
        {%- do out.update({delta_cdc.model_name(table, layer): layer}) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- {name: relation} of the tables that this package writes, whether they are there or not; with
    names of models, those of these. -#}
{% macro written_tables(models=none) %}
  {%- set out, layers = {}, delta_cdc.layers() -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'incremental'
        and node.name in layers and (models is none or node.name in models) -%}
    {%- do out.update({node.name: delta_cdc._relation_of(node)}) -%}
  {%- endfor -%}
  {%- if models is none -%}
    {%- do out.update({'cdc_runs': delta_cdc._runs_relation(), 'cdc_holds': delta_cdc.holds_relation()}) -%}
  {%- endif -%}
  {{ return(out) }}
{% endmacro %}
