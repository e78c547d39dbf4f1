{#- Spark has no transactions: hooks inside of one and outside (`transaction: false`, before_begin, after_commit) run at one
    place, in their order. Where dbt asks for those outside, they have run. -#}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {%- for hook in hooks if inside_transaction -%}
    {%- set sql = render(hook.get('sql')) | trim -%}
    {%- if sql -%}
      {%- call statement(auto_begin=inside_transaction) -%}{{ sql }}{%- endcall -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}
