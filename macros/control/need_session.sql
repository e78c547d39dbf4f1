{#- Whether Spark is in the dbt process: through a server (`method: thrift`) statements are all that reaches it. -#}
{% macro in_session() %}{{ return(target.get('method', 'session') == 'session') }}{% endmacro %}


{#- on-run-start: macros and Python are of one version, and nothing of a feed is loaded through a server. Its models read logs and
    folders in the dbt process, keep rows for the time of a model, and are Python where keys change. -#}
{% macro need_session() %}
  {%- set mismatch = adapter.version_mismatch() if execute and target.get('type') == 'sparkdelta' else none -%}
  {%- if mismatch %}{% do exceptions.raise_compiler_error(mismatch ~ ' Nothing was run.') %}{% endif -%}
  {%- if not execute or delta_cdc.in_session() -%}{{ return('') }}{%- endif -%}
  {%- set layers, found = delta_cdc.layers(), [] -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.unique_id in selected_resources
        and (node.name in layers or node.package_name == 'delta_cdc') -%}
    {%- do found.append(node.name) -%}
  {%- endfor -%}
  {%- if found -%}
    {%- do exceptions.raise_compiler_error("The profile's target " ~ target.name ~ ' has `method: ' ~ target.method
          ~ '`, and ' ~ found | length ~ (' model of the feeds is' if found | length == 1 else ' models of the feeds are')
          ~ ' selected (' ~ (found | sort)[:3] | join(', ') ~ (', …' if found | length > 3)
          ~ '): they want `method: session`, Spark in the dbt process. Load the feeds with such a target (local, cluster or shared of '
          ~ 'profiles/profiles.yml). Through a server run other SQL models, seeds, tests and snapshots, on the tables that such loads wrote: '
          ~ 'name them in `--select`. Nothing was run.') -%}
  {%- endif -%}
{% endmacro %}
