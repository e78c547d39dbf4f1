{#- True when no usable change was staged from two change sets (O4), and none twice from one (S2).
    source_table, touched_only: as `part_to_test`. -#}
{% test each_change_once(model, source_table=none, touched_only=false) %}
{%- call(part) delta_cdc.tested(model, source_table, touched_only) -%}
{%- set arrival = ['_cdc_transaction', '_cdc_occurred_at', '_cdc_batch_id', '_cdc_change_set', '_cdc_row', '_cdc_staged_at',
                   '_cdc_error', '_cdc_raw', '_cdc_undeclared', '_cdc_revised_in'] -%}
{%- set staged = delta_cdc.progress(model) -%}
{%- set rows_are = staged.notes.get('rows_are') -%}  {#- without a key, rows that have no position are all rows (N1) -#}
{%- set content = adapter.get_columns_in_relation(model) | map(attribute='name') | reject('in', arrival) | list -%}
{#- what was staged before a column was listed says nothing of it, and a null that came since does -#}
{%- set unsaid = delta_cdc._unsaid(part.settings if part.settings is defined else {}) %}
select {{ delta_cdc.column_list(content) }}
from (
  select {{ delta_cdc.comparable_columns({'staged_types': staged.columns}, content | reject('equalto', '_cdc_missing') | list) }},
    sort_array({{ unsaid }}) as _cdc_missing, _cdc_batch_id, _cdc_row
  from {{ delta_cdc.tested_rows(part, model) }} where _cdc_error is null
)
group by {{ delta_cdc.column_list(content) }}
having count(distinct _cdc_batch_id) > 1{{ ' and _cdc_sequence is not null' if rows_are in ('values', 'added') }}
  or count(*) > count(distinct _cdc_batch_id, _cdc_row)
{%- endcall -%}
{% endtest %}
