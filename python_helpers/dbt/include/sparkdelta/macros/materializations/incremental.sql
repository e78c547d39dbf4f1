{#- docs/adapter.md has the flow chart. One statement writes the rows; it is one Delta commit. -#}
{% materialization incremental, adapter='sparkdelta', supported_languages=['sql', 'python'] -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing = load_relation(this) -%}
  {%- set source = make_temp_relation(this) -%}
  {%- set strategy = sparkdelta_incremental_strategy() -%}
  {%- set words = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {{ run_hooks(pre_hooks) }}

  {%- if model['language'] == 'python' -%}
    {%- call statement('python_model', language='python') -%}{{ compiled_code }}{%- endcall -%}
  {%- endif -%}
  {%- set plan = adapter.take_write_plan(this) -%}
  {%- set create = existing is none or not existing.is_table or plan.rebuild or should_full_refresh() -%}

  {%- if plan.columns and not create -%}{%- do adapter.evolve(target_relation, plan.columns) -%}{%- endif -%}

  {%- if create -%}
    {{ sparkdelta_create_table(existing, target_relation, source, plan) }}
  {%- elif plan.skip -%}
    {%- do store_result('main', response=adapter.skipped(plan)) -%}
  {%- else -%}
    {%- do sparkdelta_source_view(source) -%}
    {%- set columns = sparkdelta_columns_to_write(source, target_relation) -%}
    {%- do persist_constraints(target_relation, model) -%}
    {%- set narrowed = [] -%}
    {%- if plan.narrow and not plan.delete_unmatched -%}
      {%- set narrowed = adapter.narrowed(target_relation, source, sparkdelta_list(config.get('unique_key')),
            'DBT_INTERNAL_DEST') -%}
    {%- endif -%}
    {%- if plan.all_new %}{% set words = adapter.get_incremental_strategy_macro(context, 'append') %}{% endif -%}
    {%- set sql = words({
        'target_relation': target_relation,
        'temp_relation': source,
        'unique_key': config.get('unique_key'),
        'dest_columns': columns,
        'delete_unmatched': plan.delete_unmatched,
        'incremental_predicates': sparkdelta_list(config.get('predicates') or config.get('incremental_predicates'))
                                  + (plan.predicates | list) + narrowed
    }) -%}
    {{ sparkdelta_write(sql, plan) }}
  {%- endif -%}

  {%- if create or not plan.skip -%}
    {% do apply_grants(target_relation, config.get('grants'), should_revoke(existing, should_full_refresh())) %}
    {% do persist_docs(target_relation, model) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{#- The temporary view of a SQL model's rows; a Python model has made its own. -#}
{% macro sparkdelta_source_view(source) %}
  {%- if model['language'] == 'sql' and target.get('method', 'session') == 'session' -%}
    {%- do adapter.create_view_of(source, compiled_code) -%}
  {%- elif model['language'] == 'sql' -%}
    {%- call statement('source') -%}{{ create_temporary_view(source, compiled_code) }}{%- endcall -%}
  {%- endif -%}
{% endmacro %}


{#- The model's strategy. What would not be one commit to a Delta table is refused. -#}
{% macro sparkdelta_incremental_strategy() %}
  {%- if config.get('file_format', 'delta') != 'delta' -%}
    {{ exceptions.raise_compiler_error(
        "file_format is '" ~ config.get('file_format') ~ "'; incremental models of sparkdelta are Delta tables."
        ~ " Leave file_format out.") }}
  {%- endif -%}
  {%- if config.get('incremental_strategy') in ['insert_overwrite', 'delete+insert', 'microbatch'] -%}
    {{ exceptions.raise_compiler_error(
        "incremental_strategy '" ~ config.get('incremental_strategy') ~ "' is not there in sparkdelta: what it"
        ~ " replaces would hang on a session's settings or take two commits. Use replace_where: it replaces the rows"
        ~ " of incremental_predicates in one commit.") }}
  {%- endif -%}
  {{ return(config.get('incremental_strategy') or ('merge' if config.get('unique_key') else 'append')) }}
{% endmacro %}
