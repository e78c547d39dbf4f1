{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, tags=['shop']) }}
{{ delta_cdc.staging(source('shop', 'playlist_track'), ref('raw_shop')) }}
