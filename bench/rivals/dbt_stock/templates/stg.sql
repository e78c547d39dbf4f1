-- stg_$table: every change of $table
{{ config(materialized='incremental', incremental_strategy='append', file_format='delta', pre_hook=$settings) }}
select change.*
from (
    select from_json(value, 'op string, seq bigint, id bigint, name string, amount decimal(12,2), day date') as change
    from text.`{{ env_var('BENCH_LANDING') }}/$table`
)
{% if is_incremental() %}
where change.seq > (select max(seq) from {{ this }})
{% endif %}
