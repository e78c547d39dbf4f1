{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'artist'), ref('stg_shop__artist'), keys=ref('int_shop__artist_keys')) }}
