{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.staging(source('shop', 'pgbench_history'), ref('raw_shop')) }}
