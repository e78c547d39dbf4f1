{#- The words are dbt-databricks', and matched_delete_condition, merge_only_changed, merge_source_only_columns. -#}
{% macro sparkdelta__get_incremental_merge_sql(arg_dict) -%}
  {%- set source = config.get('source_alias', 'DBT_INTERNAL_SOURCE') -%}
  {%- set target = config.get('target_alias', 'DBT_INTERNAL_DEST') -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  {%- set keys = sparkdelta_list(arg_dict['unique_key']) -%}
  {%- set updates = sparkdelta_merge_updates(columns, keys) -%}

  {%- set on = [] -%}
  {%- for key in keys -%}
    {%- set column = adapter.columns_within(columns, [key]) | first -%}
    {%- if not column -%}
      {{ exceptions.raise_compiler_error("unique_key '" ~ key ~ "' is not a column of both " ~ arg_dict['target_relation']
         ~ " and the model's rows. They share " ~ columns | map(attribute='name') | join(', ') ~ ".") }}
    {%- endif -%}
    {%- do on.append(source ~ '.' ~ column.quoted ~ ' <=> ' ~ target ~ '.' ~ column.quoted) -%}
  {%- endfor -%}
  {%- for predicate in arg_dict['incremental_predicates'] -%}
    {%- do on.append('(' ~ predicate | replace('DBT_INTERNAL_SOURCE', source) | replace('DBT_INTERNAL_DEST', target) ~ ')') -%}
  {%- endfor -%}

  {%- set matched = [] -%}
  {%- if config.get('matched_condition') -%}{%- do matched.append('(' ~ config.get('matched_condition') ~ ')') -%}{%- endif -%}
  {%- if config.get('merge_only_changed', false) -%}
    {%- set there = adapter.get_columns_in_relation(arg_dict['target_relation'])
          if config.get('merge_with_schema_evolution', false) else updates -%}
    {%- set changed = [sparkdelta_any_changed(adapter.columns_within(updates, there), source, target)] -%}
    {%- for column in adapter.columns_without(updates, there) -%}  {#- the merge adds it: null in all rows so far -#}
      {%- do changed.append(source ~ '.' ~ column.quoted ~ ' is not null') -%}
    {%- endfor -%}
    {%- do matched.append('(' ~ changed | join(' or ') ~ ')') -%}
  {%- endif -%}

  {%- set by_source_action = 'delete' if arg_dict['delete_unmatched'] else config.get('not_matched_by_source_action') -%}
  {%- if by_source_action and not modules.re.match('(?i)\\s*(delete|update\\s+set)\\b', by_source_action) -%}
    {{ exceptions.raise_compiler_error(
        "not_matched_by_source_action is '" ~ by_source_action ~ "'; it wants 'delete' or 'update set …'.") }}
  {%- endif -%}

merge {% if config.get('merge_with_schema_evolution', false) %}with schema evolution {% endif -%}
into {{ arg_dict['target_relation'] }} as {{ target }}
using {{ arg_dict['temp_relation'] }} as {{ source }}
on {{ on | join('\n  and ') if keys else 'false' }}
{%- if config.get('matched_delete_condition') %}
when matched and ({{ config.get('matched_delete_condition') }}) then delete
{%- endif %}
{%- if updates and not config.get('skip_matched_step', false) %}
when matched{% if matched %} and {{ matched | join(' and ') }}{% endif %} then update set
  {% for column in updates -%}
    {{ column.quoted }} = {{ source }}.{{ column.quoted }}{{ ',\n  ' if not loop.last }}
  {%- endfor %}
{%- endif %}
{%- if not config.get('skip_not_matched_step', false) %}
when not matched
  {%- if config.get('not_matched_condition') %} and ({{ config.get('not_matched_condition') }}){% endif %} then insert
  ({{ columns | map(attribute='quoted') | join(', ') }})
  values ({{ source }}.{{ columns | map(attribute='quoted') | join(', ' ~ source ~ '.') }})
{%- endif %}
{%- if by_source_action %}
when not matched by source
  {%- if config.get('not_matched_by_source_condition') %} and ({{ config.get('not_matched_by_source_condition') }}){% endif %}
  then {{ by_source_action }}
{%- endif %}
{%- endmacro %}


{#- Columns that the matched step sets: all but the keys, which are equal already. -#}
{% macro sparkdelta_merge_updates(columns, keys) %}
  {%- set only = config.get('merge_update_columns') -%}
  {%- set never = config.get('merge_exclude_columns') -%}
  {%- if only and never -%}
    {{ exceptions.raise_compiler_error('Give merge_update_columns or merge_exclude_columns, not both.') }}
  {%- elif only -%}
    {%- for name in sparkdelta_list(only) if not adapter.columns_within(columns, [name]) -%}
      {{ exceptions.raise_compiler_error("merge_update_columns names '" ~ name ~ "', which is not a column of both the table and"
         ~ " the model's rows. They share " ~ columns | map(attribute='name') | join(', ') ~ ".") }}
    {%- endfor -%}
    {{ return(adapter.columns_within(columns, sparkdelta_list(only))) }}
  {%- endif -%}
  {{ return(adapter.columns_without(columns, keys + sparkdelta_list(never))) }}
{% endmacro %}


{#- Whether a matched row would change. Maps and variants cannot be compared: their JSON is, with all of a timestamp's
    digits and with nulls, or a change in them would be missed. -#}
{% macro sparkdelta_any_changed(columns, source, target) %}
  {%- set options = "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\", 'ignoreNullFields', 'false')" -%}
  {%- set changed = [] -%}
  {%- for column in columns -%}
    {%- set ours, theirs = target ~ '.' ~ column.quoted, source ~ '.' ~ column.quoted -%}
    {%- if 'map<' in column.dtype or 'variant' in column.dtype -%}
      {%- set ours = 'to_json(' ~ ours ~ ', ' ~ options ~ ')' -%}
      {%- set theirs = 'to_json(' ~ theirs ~ ', ' ~ options ~ ')' -%}
    {%- endif -%}
    {%- do changed.append('not (' ~ ours ~ ' <=> ' ~ theirs ~ ')') -%}
  {%- endfor -%}
  {{ return(changed | join(' or ') or 'false') }}
{% endmacro %}
