{#- dbt's own: dbt-spark's wants `file_format: delta` written down, of views too. -#}
{% materialization clone, adapter='sparkdelta' -%}
  {{ return(materialization_clone_default()) }}
{%- endmaterialization %}
