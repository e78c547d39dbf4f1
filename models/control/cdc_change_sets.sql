-- cdc_change_sets: the ledger of every change set that was ever found, one row each
{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false) }}
{{ delta_cdc.change_sets() }}
