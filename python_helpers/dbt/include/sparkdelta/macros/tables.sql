{#- One statement that makes a table or takes its place, with its rows: readers see the old or the new one. -#}
{% macro sparkdelta__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) -%}
    {%- endif -%}
{%- set clauses = [file_format_clause(), options_clause(), partition_cols(label='partitioned by'),
                       clustered_cols(label='clustered by'), sparkdelta_liquid_clustering(), location_clause(),
                       comment_clause(), tblproperties_clause()] | map('trim') | select | list -%}
create {{ 'or replace ' if config.get('file_format', 'delta') in ['delta', 'iceberg'] }}table {{ relation }}
{{ clauses | join('\n') }}
as
{{ compiled_code }}
  {%- endif -%}
{%- endmacro %}


{#- Delta, where dbt-spark leaves it to Spark. -#}
{% macro sparkdelta__file_format_clause() -%}
  using {{ config.get('file_format', 'delta') }}
{%- endmacro %}


{#- `location_root`, but for the tables of a plan (PLAN_SUFFIX): the real ones stand at that place. -#}
{% macro sparkdelta__location_clause() -%}
  {%- if not target.schema.endswith('__plan') -%}{{ spark__location_clause() }}{%- endif -%}
{%- endmacro %}


{#- `tblproperties`, with whatever quotes are in them. -#}
{% macro sparkdelta__tblproperties_clause() -%}
  {%- set properties = config.get('tblproperties') -%}
  {%- if properties -%}
    tblproperties (
    {%- for name in properties -%}
      '{{ name }}' = {{ sparkdelta_string(properties[name] | string) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
    )
  {%- endif -%}
{%- endmacro %}


{#- `liquid_clustered_by`: one column or several. -#}
{% macro sparkdelta_liquid_clustering() -%}
  {%- set columns = sparkdelta_list(config.get('liquid_clustered_by')) -%}
  {%- if columns -%}cluster by ({{ columns | join(', ') }}){%- endif -%}
{%- endmacro %}


{#- Delta refuses `set not null` on a table with rows; a check constraint says the same. One commit each. Of the others it has
    none: dbt warns of what is not enforced where an adapter has it write them, and this one does not. -#}
{% macro sparkdelta__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced and config.get('file_format', 'delta') == 'delta' -%}
    {%- set checks, others = [], [] -%}
    {%- for constraint in model.constraints -%}
      {%- if constraint.type == 'check' -%}
        {%- do checks.append((constraint.name, constraint.expression)) -%}
      {%- elif constraint.type == 'not_null' and constraint.columns -%}
        {%- set parts = [] -%}
        {%- for name in constraint.columns %}{% do parts.append(adapter.quote(name) ~ ' is not null') %}{% endfor -%}
        {%- do checks.append((constraint.name, parts | join(' and '))) -%}
      {%- elif constraint.get('warn_unenforced', true) -%}
        {%- do others.append(constraint.type) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- for column in model.columns.values() -%}
      {%- for constraint in column.constraints -%}
        {%- if constraint.type == 'check' -%}
          {%- do checks.append((constraint.name, constraint.expression)) -%}
        {%- elif constraint.type == 'not_null' -%}
          {%- do checks.append((constraint.name, adapter.quote(column.name) ~ ' is not null')) -%}
        {%- elif constraint.get('warn_unenforced', true) -%}
          {%- do others.append(constraint.type ~ ' of ' ~ column.name) -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endfor -%}
    {%- if others -%}
      {%- do exceptions.warn(relation ~ ": Delta does not enforce " ~ others | join(', ')
            ~ ". Test it, and set warn_unenforced: false in the constraint.") -%}
    {%- endif -%}
    {%- set there = {} -%}
    {%- for row in (run_query('show tblproperties ' ~ relation) if checks else []) -%}
      {%- do there.update({row[0] | lower: row[1]}) -%}
    {%- endfor -%}
    {%- set told = {} -%}  {#- two columns may tell one check -#}
    {%- for given, expression in checks -%}
      {%- set name = given or 'chk_' ~ local_md5(expression) -%}
      {%- if told.setdefault(name | lower, (name, expression))[1] != expression -%}
        {%- do exceptions.raise_compiler_error(relation ~ ": two checks have the name " ~ name ~ ": " ~ told[name | lower][1]
              ~ ", and " ~ expression ~ ". Give each its own.") -%}
      {%- endif -%}
    {%- endfor -%}
    {%- for key, (name, expression) in told.items() -%}  {#- a run may have ended between two of them -#}
      {%- set has = there.get('delta.constraints.' ~ key) -%}
      {%- if has is not none and not sparkdelta_is_same_check(has, expression) -%}
        {%- call statement() %}alter table {{ relation }} drop constraint {{ adapter.quote(name) }}{% endcall -%}
        {%- set has = none -%}
      {%- endif -%}
      {%- if has is none -%}
        {%- call statement() -%}
          alter table {{ relation }} add constraint {{ adapter.quote(name) }} check ({{ expression }})
        {%- endcall -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{#- Whether a table's check is the one that the contract has: Delta keeps its words with a blank between two, and no comments.
    What Spark hides, as it does what speaks of a url or a password, is taken for the same. -#}
{% macro sparkdelta_is_same_check(has, wanted) %}
  {%- set blanks = '--.*|/\\*.*?\\*/|\\s+' -%}
  {{ return('(redacted)' in has or modules.re.sub(blanks, '', has) == modules.re.sub(blanks, '', wanted)) }}
{% endmacro %}


{#- Of a snapshot's staging view the columns that only tell its rows apart are none of the
    snapshot's (dbt-spark knows one such). -#}
{% macro sparkdelta__create_columns(relation, columns) %}
  {%- set own = [] -%}
  {%- for column in columns if not modules.re.match('(?i)dbt_unique_key_[0-9]+$', column.name) -%}
    {%- do own.append(column) -%}
  {%- endfor -%}
  {%- if own -%}{%- do adapter.evolve(relation, sparkdelta_types(own)) -%}{%- endif -%}
{% endmacro %}


{#- dbt's: dbt-spark's `insert *` wants of the query every column that the snapshot has, those too that it has lost. -#}
{% macro sparkdelta__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set own = [] -%}
  {%- for column in insert_cols if not modules.re.match('(?i)`dbt_unique_key_[0-9]+`$', column) -%}
    {%- do own.append(column) -%}
  {%- endfor -%}
  {{ default__snapshot_merge_sql(target, source, own) }}
{%- endmacro %}


{#- The columns that a snapshot with `check_cols` compares, and whether its query has others. dbt's own asks for those of one
    spelling: where the query spells a column in another case than the table, it is new for ever, and every row a new version in
    every run. -#}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) %}
  {%- if not target_exists -%}{{ return((false, [])) }}{%- endif -%}
  {%- set query = node['compiled_code'] -%}
  {%- if check_cols_config != 'all' -%}  {#- the line breaks: a comment may end the query -#}
    {%- set query = 'select ' ~ check_cols_config | join(', ') ~ ' from (\n' ~ query ~ '\n) subq' -%}
  {%- endif -%}
  {%- set wanted = get_columns_in_query(query) -%}
  {%- set there = adapter.get_columns_in_relation(
        adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias)) -%}
  {%- set new = wanted | map('lower') | reject('in', there | map(attribute='name') | map('lower') | list) | list -%}
  {{ return((new | length > 0, adapter.columns_within(there, wanted) | map(attribute='quoted') | list)) }}
{% endmacro %}
