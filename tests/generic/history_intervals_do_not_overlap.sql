{#- True when the versions of an entity follow one another, each of positive length (H1).
    source_table, touched_only: as `part_to_test`. -#}
{% test history_intervals_do_not_overlap(model, source_table=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only) -%}
select * from (
  select *, lead(struct(valid_from)) over (partition by _cdc_entity order by valid_from nulls first) as _cdc_next_from
  from {{ delta_cdc.tested_rows(part, model, by=['_cdc_entity']) }}
)
{#- a null inside: a second version from before the feed (O5) #}
where valid_to <= valid_from or (_cdc_next_from is not null
  and (valid_to is null or _cdc_next_from.valid_from is null or valid_to > _cdc_next_from.valid_from))
{%- endcall -%}
{% endtest %}
