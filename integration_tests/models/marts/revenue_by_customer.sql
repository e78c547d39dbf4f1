{{ config(materialized='table') }}
select customer.id as customer_id, customer.name, coalesce(sum(placed.amount), 0) as revenue
from {{ ref('final_customer') }} as customer
left join {{ ref('final_customer_order') }} as placed on customer.id = placed.customer_id
group by customer.id, customer.name
