{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'playlist_track'), ref('stg_shop__playlist_track')) }}
