{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'invoice'), ref('stg_shop__invoice')) }}
