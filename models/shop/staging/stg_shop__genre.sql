{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.staging(source('shop', 'genre'), ref('raw_shop')) }}
