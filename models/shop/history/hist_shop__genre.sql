{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'genre'), ref('stg_shop__genre')) }}
