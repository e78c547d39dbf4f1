{#- With `keep_unchanged: true` a view whose SQL is still the same, and its comments where they are persisted, is left as it is:
    creating one costs its whole analysis.
    Not for a view with `select *`: it would not see new columns; nor over columns that may be widened: Spark casts them back. -#}
{% materialization view, adapter='sparkdelta' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- if config.get('keep_unchanged', false) and existing is not none and existing.is_view
        and adapter.view_is(this, compiled_code) and sparkdelta_has_its_docs(existing, model) -%}
    {{ run_hooks(pre_hooks) }}
    {%- do store_result('main', response='SKIP unchanged') -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [existing]}) }}
  {%- endif -%}
  {{ return(create_or_replace_view()) }}
{%- endmaterialization %}
