{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.staging(source('shop', 'doc_full'), ref('raw_shop')) }}
