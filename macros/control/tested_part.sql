{#-
  Which part of a table its tests look at (docs/operations.md, Tests):
    touched_only   the keys that its newest load touched; where that was all of them (first load, rebuild), as without it
    otherwise      all keys; of a large table those of one bucket, another one each day (`test_buckets`; the variable
                   `delta_cdc_test_day` asks for another day's)
  With the variable `delta_cdc_test_all` all keys, always; so too of a table whose rows no key tells apart.

  model: the table or view. staging, keys_table: of the source table; by default its models.
  Returns {settings, staging: a relation or SQL, keys_table: none where no key has changed, published: the model's columns,
  never_loaded, touched: SQL of the touched keys, or none; buckets: their number}.
-#}
{% macro part_to_test(model, source_table, touched_only=false, staging=none, keys_table=none) %}
  {%- if source_table is none -%}
    {%- if touched_only -%}
      {%- do exceptions.raise_compiler_error('A test of ' ~ model
            ~ " has `touched_only` and no `source_table`. It takes the table's source: source_table: source('<feed>', '<table>').") -%}
    {%- endif -%}
    {{ return({'never_loaded': false, 'keys_table': none, 'touched': none, 'buckets': 1}) }}
  {%- endif -%}
  {%- set settings = delta_cdc.settings(source_table) -%}
  {%- set staging = staging or delta_cdc._model_of(settings, 'staging') -%}
  {%- set readable = delta_cdc.let_through(settings, staging, warn=false) -%}
  {%- set staged, state = readable.staged, delta_cdc.progress(model) -%}
  {%- set part = {'settings': settings, 'staging': readable.staging, 'keys_table': none, 'published': state.columns,
        'touched': none, 'buckets': 1,
        'never_loaded': not staged.exists and load_relation(model) is none} -%}
  {%- if part.never_loaded -%}{{ return(part) }}{%- endif -%}
  {%- do adapter.tune_for([model, staging]) -%}
  {%- do delta_cdc.follow_staging(settings, staged, state.columns) -%}
  {%- if staged.notes.truncates is sameas false %}{% do settings.update({'may_be_truncated': false}) %}{% endif -%}
  {%- if staged.notes.keys_may_move is not sameas false -%}
    {%- do part.update({'keys_table': keys_table or delta_cdc._keys_table(settings)}) -%}
  {%- endif -%}
  {#- what was staged under another name of a key is found under all of its names, by the rebuild alone -#}
  {%- set renamed = (settings.get('keys') or []) | select('in', settings.get('renamed_in_staging') or {}) | list -%}
  {%- if var('delta_cdc_test_all', false) or not settings.get('keys') or renamed -%}{{ return(part) }}{%- endif -%}
  {%- set done = delta_cdc._done_before_newest_load(state, staged) if touched_only else -1 -%}
  {%- if done >= 0 -%}
    {%- set revised = (staged.notes.get('revised_in') or -1) > done -%}
    {%- do part.update({'touched': delta_cdc.touched_keys(settings, part.staging, part.keys_table, done, revised)}) -%}
  {%- else -%}
    {%- do part.update({'buckets': settings.get('test_buckets') or delta_cdc._buckets_by_size(staging)}) -%}
  {%- endif -%}
  {{ return(part) }}
{% endmacro %}


{#- The frame of a test: `{% call(part) delta_cdc.tested(…) %}` holds the SELECT of the rows that are wrong in this part; in a
    table that was never loaded none are. Arguments: as of `part_to_test`. -#}
{% macro tested(model, source_table, touched_only, staging=none, keys_table=none) %}
  {%- if execute -%}
    {%- set part = delta_cdc.part_to_test(model, source_table, touched_only, staging, keys_table) -%}
    {{ 'select 1 as nothing where false' if part.never_loaded else caller(part) }}
  {%- endif -%}
{% endmacro %}


{#- The batch above which a table's newest load took changes; -1: it took all, or that is not known.
    A view has what staging has. -#}
{% macro _done_before_newest_load(state, staged) %}
  {%- if state.rebuild -%}{{ return(-1) }}{%- endif -%}
  {%- set noted = state.notes.get('after') if state.notes.get('after') is not none else staged.notes.get('after') -%}
  {%- set done = -1 if noted is none else noted -%}
  {#- staging notes a revision (retract, replay, …) as done before itself -#}
  {%- set revised_in = staged.notes.get('revised_in') or -1 -%}
  {{ return([done, revised_in - 1] | min if revised_in >= done else done) }}
{% endmacro %}


{#- One for each 256 MB of staging, so many of which are rebuilt in a few minutes; at most 30: all keys come by in a month. -#}
{% macro _buckets_by_size(staging) %}
  {%- set bytes = adapter.table_statistics(staging).get('bytes') or 0 -%}
  {{ return([1 + bytes // (256 * 1024 * 1024), 30] | min) }}
{% endmacro %}


{#- The rows of a relation, or of SQL in brackets, that are of the part. by: the columns by which its keys fall into buckets. -#}
{% macro tested_rows(part, relation, by=none) %}
  {%- if part.touched -%}
    {%- set keys = part.settings['keys'] -%}
    {{ return('(select t.* from ' ~ delta_cdc.rows_at(relation, part.touched, keys) ~ ' as t left semi join (\n' ~ part.touched
        ~ '\n) as k on ' ~ delta_cdc.same_columns(keys, 't', 'k') ~ ')') }}
  {%- elif part.buckets > 1 -%}
    {%- set day = modules.datetime.date.fromisoformat(var('delta_cdc_test_day', run_started_at.date()) | string) -%}
    {%- set bucket = day.toordinal() % part.buckets -%}
    {{ return('(select * from ' ~ relation ~ ' where pmod(hash('
        ~ delta_cdc.column_list(by or part.settings['keys']) ~ '), ' ~ part.buckets ~ ') = ' ~ bucket ~ ')') }}
  {%- endif -%}
  {{ return(relation | string) }}
{% endmacro %}


{#- What stands for staging where the part is worked out anew: all changes of its rows, and the truncates, which end every row. Of
    a bucket of keys that changed it is everything: a row's changes are at its other keys too. -#}
{% macro tested_staging(part) %}
  {%- if not part.touched and (part.buckets == 1 or part.keys_table is not none) -%}{{ return(part.staging) }}{%- endif -%}
  {%- set truncates = ' union all select * from ' ~ part.staging ~ " where _cdc_op = 'T'"
        if part.settings.get('may_be_truncated', true) else '' -%}
  {{ return('(select * from ' ~ delta_cdc.tested_rows(part, part.staging) ~ " where not _cdc_op <=> 'T'" ~ truncates ~ ')') }}
{% endmacro %}


{#- The rows of the part that only the table has, or only its rebuild. columns: as SQL that can be compared. rebuilt: SQL. -#}
{% macro differences(part, table, model, rebuilt, columns) -%}
with found as (
  select {{ columns }} from {{ delta_cdc.tested_rows(part, model) }}
),
rebuilt as (
  select {{ columns }} from {{ delta_cdc.tested_rows(part, '(\n' ~ rebuilt ~ '\n)') }}
)
(select 'only in {{ table }}' as side, * from found except all select 'only in {{ table }}', * from rebuilt)
union all
(select 'only in the rebuild' as side, * from rebuilt except all select 'only in the rebuild', * from found)
{%- endmacro %}
