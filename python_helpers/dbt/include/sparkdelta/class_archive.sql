-- What the class-data archive is recorded of (class_archive.py): statements like those of models. They need no sense, only breadth.
create schema a;
create table a.t (k int, v string, at timestamp, n decimal(10, 2), s struct<x: int>, d date) using delta partitioned by (d)
tblproperties ('delta.checkpointInterval' = '2');
insert into a.t
select int(id), 'v' || id, timestamp_seconds(id), decimal(id) / 7, struct(int(id) as x), date_add(date'2026-01-01', int(id % 3)) from range(200);
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
create or replace temporary view parsed as
select map_from_entries(transform(map_entries(cast(try_parse_json(value) as map<string, variant>)), e -> struct(e.key, cast(e.value as string)))) as m
from lines;
select try_cast(m['k'] as int) as k, try_cast(m['at'] as timestamp) as at, array_except(array('k', 'x'), map_keys(m)) as missing,
  filter(map_keys(m), c -> not c = 'k') as more, to_json(map_filter(m, (c, v) -> true)) as j, coalesce(regexp_extract(m['v'], '(\\d+)', 1), '') as n
from parsed;
select * from parsed as p full outer join a.t as t on p.m['k'] <=> string(t.k) and (t.v is null or t.v = p.m['v'])
where t.k is null or t.k > 100 order by t.k limit 3;
select k, count(distinct v) as n, max(struct(k, v)) as top, array_sort(collect_set(v)) as vs, to_json(max(struct(k, v))) as j
from news group by all;
select * from (
  select *, row_number() over (partition by k order by v desc nulls last) as r, lag(v) over (partition by k order by v) as b from a.t
) as t
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
insert into a.t by name select k, v, at, n, s, d from a.t where k = 1;
insert into a.t by name select k, v, at, n, s, d from a.t where k = 2;
select max(k), count(*) from a.t where k <=> 3 and d >= date'2026-01-01';
alter table a.u add columns (more string comment 'one more');
alter table a.u set tblproperties ('x' = 'y');
describe extended a.t;
describe history a.t;
show tables in a
