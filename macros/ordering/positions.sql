{#- What a load's changes are, in one row: {rows_read, quarantined, repeated, truncates, partial, late, keys_may_move, highest, highest_type}.
    changes   a relation with staging's `_cdc_` columns
    highest   SQL of the highest position staged before (none: nothing was): changes at or below it are late
    content   the columns that make two changes the same (O4), to learn whether any two are (`repeated`)
    split_key_changes   whether a delete and an insert may be the halves of a key change (K6); a half that comes alone is late -#}
{% macro about_changes(changes, highest, content=none, split_key_changes=false) -%}
{%- set position = 'if(_cdc_error is null, struct(_cdc_sequence, _cdc_ordinal), null)' -%}
{%- set new_highest = 'greatest(max(' ~ position ~ '), ' ~ (highest or 'null') ~ ')' if highest else 'max(' ~ position ~ ')' -%}
{%- set late = 'count_if(' ~ position ~ ' <= ' ~ highest ~ ')' if highest else '0' %}
select
  count(*) as rows_read,
  {%- if content %}
  count(distinct xxhash64({{ content | join(', ') }})) < count(*) as repeated,  -- or two hashes met: then it is looked at closely for nothing
  {%- endif %}
  count(_cdc_error) as quarantined,
  count_if(_cdc_op = 'T' and _cdc_error is null) as truncates,
  count_if(size(_cdc_missing) > 0 and _cdc_error is null) as partial,
  {{ late }} as late,
  count_if(_cdc_key_before is not null and _cdc_error is null) > 0
  {%- if split_key_changes %} or {{ late }} > 0 or (count_if(_cdc_op = 'D') > 0 and count_if(_cdc_op = 'I') > 0){% endif %} as keys_may_move,
  to_json({{ new_highest }}, {{ delta_cdc._position_options() }}) as highest,
  typeof({{ new_highest }}) as highest_type
from {{ changes }}
{%- endmacro %}


{#- SQL of the highest position of a staging table, up to a batch. -#}
{% macro highest_position(staging, batch_id=none) %}
  {{ return('(select max(struct(_cdc_sequence, _cdc_ordinal)) from ' ~ staging ~ ' where _cdc_error is null'
      ~ (' and _cdc_batch_id <= ' ~ batch_id if batch_id is not none else '') ~ ')') }}
{% endmacro %}


{#- SQL of a position that was noted as JSON. -#}
{% macro position_of(json, type) %}
  {{ return('from_json(' ~ delta_cdc.literal(json) ~ ', ' ~ delta_cdc.literal(type) ~ ', ' ~ delta_cdc._position_options() ~ ')') }}
{% endmacro %}

{#- Whether a position's JSON can be read back as it was: names that need no quotes, types whose JSON is exact, no year of five
    digits and none below zero (a moment that cannot be read would be null, and nothing late any more). -#}
{% macro can_be_noted(type, json) %}
  {{ return(modules.re.search('"[+-]', json or '') is none and modules.re.match('^struct<_cdc_sequence:struct<([A-Za-z_][A-Za-z0-9_]*:(tinyint|smallint|int|bigint|string|date|boolean|timestamp|timestamp_ntz|decimal\\(\\d+,\\d+\\)),?)+>,_cdc_ordinal:bigint>$', type or '') is not none) }}
{% endmacro %}

{% macro _position_options() %}
  {{ return("map('timeZone', 'UTC', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\", 'ignoreNullFields', 'false')") }}
{% endmacro %}
