{#- True when no usable change was staged twice by two change sets (O4). -#}
{% test each_change_once(model, columns) %}
select {{ delta_cdc.column_list(columns) }}, _cdc_op, _cdc_sequence
from {{ model }}
where _cdc_error is null
group by {{ delta_cdc.column_list(columns) }}, _cdc_op, _cdc_key_before, _cdc_sequence, _cdc_ordinal, _cdc_missing
having count(distinct _cdc_batch_id) > 1
{% endtest %}
