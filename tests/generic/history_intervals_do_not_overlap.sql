{#- True when the versions of an entity follow one another, each of positive length (H1). -#}
{% test history_intervals_do_not_overlap(model) %}
select * from (
  select *, lead(valid_from) over (partition by _cdc_entity order by valid_from nulls first) as next_from
  from {{ model }}
)
where valid_to <= valid_from or (next_from is not null and (valid_to is null or valid_to > next_from))
{% endtest %}
