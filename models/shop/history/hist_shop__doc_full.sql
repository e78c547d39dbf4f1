{{ config(materialized='view', tags=['shop']) }}
{{ delta_cdc.history(source('shop', 'doc_full'), ref('stg_shop__doc_full'), keys=ref('int_shop__doc_full_keys')) }}
