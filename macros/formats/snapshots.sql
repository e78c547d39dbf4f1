{#-
  Whole copies of a table, one after another, as an export or a nightly dump writes them: each change set holds every row that the
  table has. Rows are flat, as in the format `rows`. What changed is worked out in macros/apply/snapshots.sql.
-#}
{% macro snapshots_changes(lines, settings) -%}
select
  batch_id, change_set, row_number, message,
  row_values is not null as parsed, 'row' as op_code,
  row_values as after, cast(null as map<string, string>) as before,
  batch_id as _snapshot, {{ delta_cdc._time_in_name('change_set') }} as _snapshot_time
from {{ delta_cdc._flat_rows(lines, settings) }}
{%- endmacro %}


{#- As flat rows have their values. -#}
{% macro snapshots_value(text, type, settings, column) %}
  {{ return(delta_cdc.rows_value(text, type, settings, column)) }}
{% endmacro %}


{#- What a copy does not have is not there. -#}
{% macro snapshots_tells_all() %}{{ return('true') }}{% endmacro %}


{#- The day, or day and time, in the name of a file or folder (customer_20261120.csv,
    2026-11-20T03-15-00.parquet), as a timestamp. -#}
{% macro _time_in_name(path) %}
  {%- set found = "regexp_extract(" ~ delta_cdc._name_in(path)
        ~ ", r'(?<![0-9])((?:19|20)\\d\\d)[-_.]?([01]\\d)[-_.]?([0-3]\\d)(?:[-_.T ]?([0-2]\\d)[-_.:]?([0-5]\\d)(?:[-_.:]?([0-5]\\d))?)?', " -%}
  {%- set parts = [] -%}
  {%- for place in range(1, 7) %}{% do parts.append(found ~ place ~ ')') %}{% endfor -%}
  {{ return("try_to_timestamp(concat(" ~ parts[0] ~ ", '-', " ~ parts[1] ~ ", '-', " ~ parts[2] ~ ", ' ', lpad(" ~ parts[3]
      ~ ", 2, '0'), ':', lpad(" ~ parts[4] ~ ", 2, '0'), ':', lpad(" ~ parts[5] ~ ", 2, '0')), 'yyyy-MM-dd HH:mm:ss')") }}
{% endmacro %}
