"""What macros ask of Spark beside their SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.sparkdelta import queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_texts_that_stand_in_no_SQL_are_read_without_a_spark_job_and_shown_by_no_plan(spark: SparkSession) -> None:
    session = spark.newSession()
    texts = ["hush'hush \\ ${env:HOME}\n", "ä"]
    queries.create_values_view(session, "told", ["_cdc_secret", "a`b"], [texts])
    session.sparkContext.setJobGroup("texts", "")
    assert [tuple(row) for row in session.table("told").collect()] == [tuple(texts)]
    assert not session.sparkContext.statusTracker().getJobIdsForGroup("texts")
    read = session.sql("select id, (select _cdc_secret from told) as s from range(2)")
    assert [row["s"] for row in read.collect()] == [texts[0]] * 2
    assert "hush" not in read._jdf.queryExecution().toString()
    queries.create_values_view(session, "told", ["_cdc_secret"], [["another"]])
    assert [tuple(row) for row in session.table("told").collect()] == [("another",)]


def test_a_query_planned_step_by_step_gives_the_same_rows_and_leaves_no_view(spark: SparkSession) -> None:
    session = spark.newSession()
    sql = """with nums as (select id from range(3)), `the odd` as (select id as n from nums where id % 2 = 1)
      select nums.id, `the odd`.n from nums left join `the odd` on nums.id = `the odd`.n order by 1"""
    assert queries.planned(session, sql).collect() == session.sql(sql).collect()
    assert queries.planned(session, "select 1 as one").collect() == [(1,)]
    nested = """with pairs as (
        with one as (select id, id % 2 as odd from range(4)) select a.id from one as a join one as b on a.id = b.odd)
      select a.id from pairs as a join pairs as b on a.id = b.id where a.id = 1"""
    assert queries.planned(session, nested).localCheckpoint().count() == 4
    assert not session.catalog.tableExists("nums")
    with pytest.raises(AnalysisException, match="no_such"):
        queries.planned(session, "with nums as (select 1 as id), wrong as (select no_such from nums) select * from wrong")
    assert not session.catalog.tableExists("nums")


def test_a_query_planned_step_by_step_is_read_with_the_settings_of_its_session(spark: SparkSession) -> None:
    """The parser makes moments of literals, by the time zone, and the type of `timestamp`."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    sql = """with told as (select timestamp_ltz'2026-01-01 00:00:00' as at, cast('2026-01-01' as timestamp) as day)
      select unix_seconds(at) as at, typeof(day) as day from told"""
    assert queries.planned(session, sql).collect() == session.sql(sql).collect() == [(1767193200, "timestamp_ntz")]
