{% materialization table, adapter='sparkdelta', supported_languages=['sql', 'python'] -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing = load_relation(this) -%}
  {%- set source = make_temp_relation(this) -%}

  {{ run_hooks(pre_hooks) }}

  {%- if model['language'] == 'python' -%}
    {%- call statement('python_model', language='python') -%}{{ compiled_code }}{%- endcall -%}
  {%- endif -%}
  {%- set plan = adapter.take_write_plan(this) -%}

  {%- if plan.skip and existing is not none and existing.is_table and not should_full_refresh() -%}
    {%- do store_result('main', response=adapter.skipped(plan)) -%}
  {%- else -%}
    {{ sparkdelta_create_table(existing, target_relation, source, plan) }}
    {% do apply_grants(target_relation, config.get('grants'), should_revoke(existing, True)) %}
    {% do persist_docs(target_relation, model) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
