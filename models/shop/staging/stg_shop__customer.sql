{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.staging(source('shop', 'customer'), ref('raw_shop')) }}
