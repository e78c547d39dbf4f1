{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'all_types'), ref('stg_shop__all_types')) }}
