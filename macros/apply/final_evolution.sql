{#- How final follows the columns of the configuration and of staging (E1, E3, E4). `settings.columns` becomes what final has
    then.
    {columns: what is added or widened first, or none; nested: whether that is fields of structs too; new: {column: type} of those
     that are added; backfill: staging has old values of a new column; rebuild: final is made anew, for Delta cannot alter it so}
    A run that ended after it had added a column has not filled it: what final's commits were made with counts, not what it
    has. -#}
{% macro _final_evolution(settings, staging, staged, state) %}
  {%- set found = {'columns': none, 'new': {}, 'nested': false, 'backfill': false, 'rebuild': false} -%}
  {%- if staged.exists %}{% do delta_cdc.note_columns(settings, staged) %}{% endif -%}
  {%- if not state.exists or not staged.exists -%}{{ return(found) }}{%- endif -%}
  {%- set wish = settings.on_schema_change -%}
  {%- do delta_cdc._refuse_changed_expressions(settings, state) -%}
  {%- do delta_cdc.follow_staging(settings, staged, state.columns) -%}
  {%- set made = settings.get('expressions') or {} -%}
  {%- set types = delta_cdc._by_lower(staged.columns) -%}
  {%- set wanted = {} -%}
  {%- for column in settings['columns'] if column | lower in types and column not in made -%}
    {%- do wanted.update({column: types[column | lower]}) -%}
  {%- endfor -%}
  {%- set evolved = adapter.evolved(state.columns, wanted) -%}
  {%- set stay = delta_cdc._final_columns(settings) | map('lower') | list -%}
  {%- set gone = [] -%}
  {%- for column in state.columns if column | lower not in stay %}{% do gone.append(column) %}{% endfor -%}
  {%- set to_make = made.keys() | reject('in', state.columns) | list -%}
  {%- set new_columns = [] -%}  {#- the rest of what is added are fields of structs, in the order of the columns -#}
  {%- for column in evolved.new %}{% do new_columns.append(delta_cdc.quoted(column) ~ ' ' ~ evolved.types[column]) %}{% endfor -%}
  {#- the times of lives, too: the date that they are may be no column of final -#}
  {%- set times = {} -%}
  {%- for column in [settings.get('created_at'), settings.get('updated_at'), '_cdc_deleted_at'] | select -%}
    {%- do times.update({column: staged.columns.get('_cdc_occurred_at', 'void')}) -%}
  {%- endfor -%}
  {%- set retimed = adapter.evolved(state.columns, times).rewrite -%}
  {%- set retyped = evolved.widen + evolved.rewrite + retimed + evolved.cast.keys() | list
        + evolved.add | reject('in', new_columns) | list -%}
  {%- if wish == 'fail' and (evolved.new or to_make or gone or retyped) and is_incremental() -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ "the columns of " ~ this
          ~ " would change, and `on_schema_change` is fail. New: " ~ ((evolved.new + to_make) | join(', ') or 'none')
          ~ "; gone: " ~ (gone | join(', ') or 'none') ~ "; of another type: " ~ (retyped | join(', ') or 'none')
          ~ ". Final stays as it was. Put the columns back, set another `on_schema_change`, or take them over: delta-cdc rebuild "
          ~ settings.feed ~ '.' ~ settings.table) -%}
  {%- endif -%}
  {%- if wish == 'ignore' and is_incremental() -%}
    {#- one that final has under its old name is not new -#}
    {%- set ignored = [] -%}
    {%- for column in evolved.new if settings.renamed_in_staging.get(column) not in state.columns -%}
      {%- do ignored.append(column) -%}
    {%- endfor -%}
    {%- for column in delta_cdc.columns_named(ignored, settings.partition_by) -%}  {#- final is built anew for it, without it -#}
      {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ '`partition_by` names `' ~ column ~ '`, which '
            ~ this ~ ' does not have, and `on_schema_change` is ignore. Set another on_schema_change, or rebuild it: delta-cdc'
            ~ ' rebuild ' ~ settings.feed ~ '.' ~ settings.table) -%}
    {%- endfor -%}
    {%- do settings.update({'columns': settings['columns'] | reject('in', ignored) | list}) -%}
    {%- for column in ignored %}{% do evolved.types.pop(column) %}{% endfor -%}
  {%- else -%}
    {%- for column in evolved.new %}{% do found.new.update({column: evolved.types[column]}) %}{% endfor -%}
  {%- endif -%}
  {%- set filled = (state.notes.get('columns', state.columns.keys() | list)
          + fromjson(state.properties.get('delta_cdc.filled', '[]'))) | map('lower') | list -%}
  {%- set unfilled = [] -%}
  {%- for column in wanted if column not in evolved.new and column | lower not in filled -%}
    {%- do unfilled.append(column) -%}
  {%- endfor -%}
  {%- if to_make and wish == 'ignore' and is_incremental() -%}
    {%- do settings.update({'columns': settings['columns'] | reject('in', to_make) | list}) -%}
    {%- set to_make = [] -%}
  {%- endif -%}
  {%- set renamed = settings.renamed_in_staging.values() | select('in', gone) | list -%}  {#- not made of the new one #}
  {#- what is made of a date that became a timestamp may be one too -#}
  {%- set remade = adapter.evolved(state.notes.get('made_from', {}), delta_cdc._made_from(settings, staged)).rewrite
        if wish != 'fail' else [] -%}
  {%- if evolved.rewrite or evolved.cast or to_make or renamed or remade or retimed or (wish == 'sync_all_columns' and gone) -%}
    {%- do found.update({'rebuild': true}) -%}
  {%- elif found.new or retyped or unfilled -%}
    {%- do found.update({'columns': evolved.types if found.new or retyped else none,
          'nested': evolved.add | length > evolved.new | length,
          'backfill': delta_cdc._has_values(delta_cdc.staged_rows(settings, staging),
            found.new.keys() | list + unfilled, state.batch_id)}) -%}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}


{#- Says in final that columns which it is about to gain need not be filled: no commit of this run will. Where the run ends before
    they are there, they are looked at again. -#}
{% macro _note_filled(state, new) %}
  {%- set filled = fromjson(state.properties.get('delta_cdc.filled', '[]')) + new.keys() | list -%}
  {%- do delta_cdc.note_property('delta_cdc.filled', filled | unique | list) -%}
{% endmacro %}


{#- The columns of staging of which `expressions` make others, {name: type}. -#}
{% macro _made_from(settings, staged) %}
  {%- set types = {} -%}
  {%- for column in delta_cdc.columns_named(staged.columns, (settings.get('expressions') or {}).values()) -%}
    {%- do types.update({column: staged.columns[column]}) -%}
  {%- endfor -%}
  {{ return(types) }}
{% endmacro %}


{#- Final holds what an expression made of older rows: with another one it would be of two kinds (E7). -#}
{% macro _refuse_changed_expressions(settings, state) %}
  {#- where there are no notes, the log that had them is gone -#}
  {%- if not state.notes %}{{ return('') }}{% endif -%}
  {%- set now, before = settings.get('expressions') or {}, state.notes.get('expressions') or {} -%}
  {%- for column in (now.keys() | list + before.keys() | list) | unique
        if column in state.columns and now.get(column) != before.get(column) and is_incremental() -%}
    {%- do exceptions.raise_compiler_error(delta_cdc.about_table(settings) ~ "`expressions` makes `" ~ column ~ "` as "
          ~ (now.get(column) or 'it came') ~ ", and " ~ this ~ " was built with " ~ (before.get(column) or 'it as it came')
          ~ ". Rebuild it: delta-cdc rebuild " ~ settings.feed ~ '.' ~ settings.table) -%}
  {%- endfor -%}
{% endmacro %}


{#- The columns of staging that the configuration no longer has, where final and history keep them. -#}
{% macro _retired_columns(settings, staged) %}
  {{ return(delta_cdc._unlisted(settings, staged)
      if staged and settings.on_schema_change in ['append_new_columns', 'ignore'] else []) }}
{% endmacro %}

{% macro _unlisted(settings, staged) %}
  {%- set known, out = (delta_cdc._known_columns(settings) + (settings.get('renamed_before') or {}).values() | list)
        | map('lower') | list, [] -%}
  {%- for column in staged if column | lower not in known and not column.startswith('_cdc_') -%}
    {%- do out.append(column) -%}
  {%- endfor -%}
  {{ return(out) }}
{% endmacro %}


{#- Those of a model whose settings tell staging's columns (`note_columns`). -#}
{% macro _unlisted_there(settings) %}{{ return(delta_cdc._unlisted(settings, settings.get('staged_types') or {})) }}{% endmacro %}


{#- What is made of staging knows its columns, and goes on to publish those that are no longer listed (E3).
    staged: staging's state. published: the columns that history or final has. -#}
{% macro follow_staging(settings, staged, published) %}
  {%- do delta_cdc.note_columns(settings, staged) -%}
  {%- do delta_cdc._publish_retired(settings, delta_cdc._retired_columns(settings, staged.columns), published) -%}
{% endmacro %}

{#- They stay where they were published (E3), null from then on; a name that is made otherwise is none of theirs. -#}
{% macro _publish_retired(settings, retired, published) %}
  {%- set made = (delta_cdc._final_columns(settings) + ['valid_from', 'valid_to', 'is_current']) | map('lower') | list -%}
  {%- set stay = [] -%}
  {%- for column in retired if column in published and column | lower not in made %}{% do stay.append(column) %}{% endfor -%}
  {%- do settings.update({'columns': settings['columns'] + stay}) -%}
  {%- if settings.get('track_columns') is none or settings.track_columns is mapping -%}
    {#- a feed's list may leave out what one of its tables no longer has -#}
    {%- set untracked = (settings.track_columns or {}).get('except', []) | map('lower') | list -%}
    {%- for column in stay if column | lower not in untracked -%}
      {%- do settings.update({'tracked': settings['tracked'] + [column]}) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{#- Whether any of the columns has a value in what was staged up to a batch. -#}
{% macro _has_values(staging, columns, done) %}
  {%- set any = [] -%}
  {%- for column in columns %}{% do any.append(delta_cdc.quoted(column) ~ ' is not null') %}{% endfor -%}
  {{ return(any and adapter.query_rows('select 1 as found from ' ~ staging ~ ' where _cdc_batch_id <= ' ~ done
        ~ ' and _cdc_error is null and (' ~ any | join(' or ') ~ ') limit 1') | length > 0) }}
{% endmacro %}
