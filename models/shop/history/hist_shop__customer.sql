{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'customer'), ref('stg_shop__customer')) }}
