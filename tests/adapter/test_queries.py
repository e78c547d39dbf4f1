"""What macros ask of Spark beside their SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
