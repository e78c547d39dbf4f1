-- cdc_table_log: the commits of the tables that this package writes, one row each
-- off unless the variable says otherwise: each run would look at every table's log
{{ config(
    enabled=var('delta_cdc_table_log', false), materialized='incremental', incremental_strategy='append',
    on_schema_change='append_new_columns', full_refresh=false
) }}
{{ delta_cdc.table_log() }}
