{#- Where the models of this project are. -#}
{% macro _relation_of(node) %}
  {{ return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)) }}
{% endmacro %}

{% macro _model_relation(name) %}
  {%- set node = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | selectattr('name', 'equalto', name) | list | first -%}
  {%- if not node -%}
    {%- do exceptions.raise_compiler_error('There is no model ' ~ name ~ ' in this project. `delta-cdc generate` writes the models of the feeds.') -%}
  {%- endif -%}
  {{ return(delta_cdc._relation_of(node)) }}
{% endmacro %}

{% macro _final_relation(settings) %}
  {{ return(delta_cdc._model_relation(settings.get('final_name') or 'final_' ~ settings.table)) }}
{% endmacro %}


{#- The tables of control that are no models stand beside the ledger. -#}
{% macro _control_relation(identifier) %}
  {%- set ledger = delta_cdc._model_relation('cdc_change_sets') -%}
  {{ return(api.Relation.create(database=ledger.database, schema=ledger.schema, identifier=identifier)) }}
{% endmacro %}

{% macro _runs_relation() %}{{ return(delta_cdc._control_relation('cdc_runs')) }}{% endmacro %}

{% macro holds_relation() %}{{ return(delta_cdc._control_relation('cdc_holds')) }}{% endmacro %}
