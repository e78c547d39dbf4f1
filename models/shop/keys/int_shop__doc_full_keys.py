from delta_cdc.keys import key_changes


def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="merge",
               unique_key=["_cdc_batch_id", "_cdc_change_set", "_cdc_row"], merge_only_changed=True, full_refresh=False, tags=["shop"])
    return key_changes(dbt, session, staging=dbt.ref("stg_shop__doc_full"), keys=["id"], pair_split_key_changes=False)
