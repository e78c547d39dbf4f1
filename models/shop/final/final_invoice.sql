{{ config(materialized='incremental', incremental_strategy='replace_where', unique_key=['invoice_id'], partition_by=['invoice_year'],
  merge_only_changed=true, matched_delete_condition='DBT_INTERNAL_SOURCE._cdc_is_deleted',
  not_matched_condition='not DBT_INTERNAL_SOURCE._cdc_is_deleted', merge_source_only_columns=['_cdc_is_deleted'],
  tblproperties={'delta.enableDeletionVectors': 'true'}, tags=['shop']) }}
{{ delta_cdc.final(source('shop', 'invoice'), ref('stg_shop__invoice')) }}
