{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['artist_id'], 
  merge_only_changed=true, matched_delete_condition='DBT_INTERNAL_SOURCE._cdc_is_deleted',
  not_matched_condition='not DBT_INTERNAL_SOURCE._cdc_is_deleted', merge_source_only_columns=['_cdc_is_deleted'],
  tblproperties={'delta.enableDeletionVectors': 'true'}, tags=['shop']) }}
{{ delta_cdc.final(source('shop', 'artist'), ref('stg_shop__artist'), keys=ref('int_shop__artist_keys')) }}
