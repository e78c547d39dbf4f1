-- What the class-data archive is recorded of (class_archive.py): statements like those of models. They need no sense, only breadth.
create schema a;
create table a.t (k int, v string, at timestamp, n decimal(10, 2), s struct<x: int>, d date) using delta partitioned by (d);
insert into a.t
select id, 'v' || id, timestamp_seconds(id), id / 7, struct(id), date_add(date'2026-01-01', id % 3) from range(200);
create or replace table a.u using delta as select * from a.t where k > 10;
create or replace temporary view lines as select '{"k": 1, "v": "x", "at": "2026-01-01 00:00:00"}' as value, 'f' as file;
create or replace temporary view news as
select
  try_cast(get_json_object(value, '$.k') as int) as k,
  from_json(value, 'v string').v as v,
  map_keys(from_json(value, 'map<string, string>')) as names,
  xxhash64(value) as h,
  value
from lines;
select k, count(distinct v) as n, max(struct(k, v)) as top, array_sort(collect_set(v)) as vs, to_json(max(struct(k, v))) as j
from news group by all;
select * from (
  select *, row_number() over (partition by k order by v desc nulls last) as r, lag(v) over (partition by k order by v) as b from a.t
)
where r = 1 and not exists (select 1 from a.u where u.k <=> t.k)
order by k limit 5;
merge into a.t as t
using (select * from (select k, v, row_number() over (partition by k order by v) as r from news) where r = 1) as n
on t.k <=> n.k and t.k in (1, 2)
when matched and n.v is null then delete
when matched then update set v = n.v
when not matched then insert (k, v) values (n.k, n.v);
insert into a.u by name select k, v, at, n, s, d from a.t left semi join news using (k) union all select * from a.u where k = 20;
create or replace view a.h as select *, lead(at) over (partition by k order by at) as valid_to from a.t;
select * from a.h as h join (select explode(array(1, 2)) as k) as e on h.k <=> e.k;
delete from a.u where k = 20;
alter table a.u add columns (more string comment 'one more');
alter table a.u set tblproperties ('x' = 'y');
describe extended a.t;
describe history a.t;
show tables in a
