{{ config(materialized='incremental', incremental_strategy='append', tags=['shop']) }}
{{ delta_cdc.final(source('shop', 'pgbench_history'), ref('stg_shop__pgbench_history')) }}
