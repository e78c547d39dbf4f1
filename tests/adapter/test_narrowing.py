"""The values of a merge's keys in its ON clause: every row that the source can match stays."""

from __future__ import annotations

import pytest

from dbt.adapters.sparkdelta import narrowing

# of each type, values that are close to each other, at its ends, or hard to write
VALUES = {
    "tinyint": ["-128", "127"],
    "int": ["-2147483648", "0", "7"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "decimal(38,18)": ["0.000000000000000001", "-99999999999999999999.999999999999999999"],
    "date": ["'0001-01-01'", "'9999-12-31'"],
    "timestamp": ["'1582-10-01 23:59:59.999999'", "'2026-10-25 00:30:00Z'", "'2026-10-25 01:30:00Z'"],
    "string": ["''", "'it''s'", r"'a\\b'", r"'\n'", "'ünïcode'", "'DBT'", "'null'"],
}


@pytest.fixture(scope="module")
def target(spark):
    spark.sql("create database if not exists narrowing")
    columns = {type_: f"k{number}" for number, type_ in enumerate(VALUES)}
    spark.sql(f"create or replace table narrowing.t ({', '.join(f'{n} {t}' for t, n in columns.items())}, f double) using delta")
    for type_, name in columns.items():
        rows = ", ".join(f"(cast({value} as {type_}))" for value in VALUES[type_])
        spark.sql(f"insert into narrowing.t ({name}) values {rows}")
    return columns


def narrowed(spark, keys, sql):
    spark.sql(sql).createOrReplaceTempView("source")
    return narrowing.narrowed(spark, "narrowing", "t", "source", keys, "t")


@pytest.mark.parametrize("few", [True, False], ids=["values", "range"])
@pytest.mark.parametrize(("type_", "zone"), [*((each, "UTC") for each in VALUES), ("timestamp", "Europe/Berlin")])
def test_every_value_of_a_key_finds_its_row(spark, target, monkeypatch, type_, zone, few):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    monkeypatch.setattr(narrowing, "VALUES", 2000 if few else 0)
    key = target[type_]
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        (condition,) = narrowed(spark, [key], f"select {key} from narrowing.t where {key} is not null")
        assert (" in (" in condition) is few
        found = spark.sql(f"select t.{key} from narrowing.t as t where {condition}")
        assert (found.count(), found.where(f"{key} is null").count()) == (len(VALUES[type_]), 0), condition
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_null_is_a_value_of_a_key(spark, target, monkeypatch):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    key = target["int"]
    (condition,) = narrowed(spark, [key], f"select {key} from narrowing.t where {key} = 7 or {key} is null")
    rest = spark.sql(f"select {key} from narrowing.t as t where not ({condition})").collect()
    assert sorted(row[0] for row in rest) == [-2147483648, 0]


@pytest.mark.parametrize("held", [20_000, 0], ids=["few", "many"])
def test_each_of_several_keys_lets_its_rows_through_nulls_included(spark, target, monkeypatch, held):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    monkeypatch.setattr(narrowing, "HELD_ROWS", held)
    keys = [target["int"], target["string"], target["date"]]
    rows = f"{keys[0]} >= 0 or {keys[1]} = 'DBT'"
    conditions = narrowed(spark, keys, f"select {', '.join(keys)} from narrowing.t where {rows}")
    assert ["is null" in condition for condition in conditions] == [True, True, True]
    assert conditions[2] == f"t.`{keys[2]}` is null"  # none of them has a date
    met = spark.sql(f"select t.{keys[0]} from narrowing.t as t where ({') and ('.join(conditions)}) and ({rows})")
    assert met.count() == 3


def test_the_source_is_worked_out_once(spark, target, monkeypatch):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    key = target["int"]
    narrowed(spark, [key], f"select {key}, uuid() as u from narrowing.t")
    assert spark.table("source").exceptAll(spark.table("source")).count() == 0
    monkeypatch.setattr(narrowing, "HELD_ROWS", 0)
    (condition,) = narrowed(spark, [key], f"select {key}, uuid() as u from narrowing.t where {key} >= 0")
    assert " between " in condition
    assert spark.table("source").exceptAll(spark.table("source")).count() == 0


@pytest.mark.parametrize(
    "value",
    ["date'1582-10-05'", "timestamp'1582-10-14 23:59:59.999999'", "array(struct(date'1582-10-10' as d))"],
)
def test_days_that_java_has_not_stay_what_they_are(spark, target, monkeypatch, value):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    key = target["int"]
    (condition,) = narrowed(spark, [key], f"select 7 as {key}, {value} as value union all select 0, null")
    assert " between " in condition
    assert spark.table("source").where(f"value <=> {value}").count() == 1
    assert spark.table("source").columns == [key, "value"]


@pytest.mark.parametrize(("size", "held"), [(8192, True), (8193, False)])
def test_rows_that_are_large_stay_with_the_executors(spark, target, monkeypatch, size, held):
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    key = target["int"]
    sql = f"select 7 as {key}, repeat('x', {size // 2}) as a, encode(repeat('x', {size - size // 2}), 'utf-8') as b"
    (condition,) = narrowed(spark, [key], f"{sql} union all select 0, 'x', null")
    assert (" in (" in condition, " between " in condition) == (held, not held)
    rows = spark.table("source").selectExpr(key, "length(a)", "length(b)").collect()
    assert sorted(map(tuple, rows)) == [(0, 1, None), (7, size // 2, size - size // 2)]


def test_what_is_small_empty_or_without_exact_text_is_not_narrowed(spark, target, monkeypatch):
    key = target["int"]
    assert narrowed(spark, [key], f"select {key} from narrowing.t") == []
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    assert narrowed(spark, ["f"], "select f from narrowing.t") == []
    assert narrowed(spark, [key], f"select cast({key} as bigint) as {key} from narrowing.t") == []
    assert narrowed(spark, [key], f"select {key} from narrowing.t where false") == ["false"]
    assert len(narrowed(spark, [key, "f", target["string"]], "select * from narrowing.t")) == 2
