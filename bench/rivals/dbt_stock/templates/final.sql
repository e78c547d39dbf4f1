-- final_$table: the newest change of each key; a deleted row stays, with is_deleted
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id', file_format='delta',
    partition_by=$partition_by, liquid_clustered_by=$cluster_by, tblproperties={'delta.enableDeletionVectors': '$deletion_vectors'},
    pre_hook=$settings
) }}
select id, seq, name, amount, day, ${month}op = 'D' as is_deleted
from (
    select *, row_number() over (partition by id order by seq desc) as place
    from {{ ref('stg_$table') }}
    {% if is_incremental() %}
    where seq > (select max(seq) from {{ this }})
    {% endif %}
)
where place = 1
