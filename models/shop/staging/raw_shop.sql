{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.raw('shop', ref('cdc_change_sets')) }}
