"""What is large gets Spark's own settings, in its own session only."""

from __future__ import annotations

import pytest

from dbt.adapters.sparkdelta import tuning
from dbt.adapters.sparkdelta.session import new_session
from dbt.adapters.sparkdelta.settings import SMALL_TABLES


@pytest.fixture
def session(lake, overrides):
    return new_session(root=lake, overrides=overrides)


KEYS = [*tuning.LARGE_TABLES, *tuning.A_TASK_A_CORE]
SMALL = {key: SMALL_TABLES[key] for key in KEYS}
LARGE = tuning.LARGE_TABLES | dict.fromkeys(tuning.A_TASK_A_CORE, "2")  # the tests' Spark has two cores


def settings(session):
    return {key: session.conf.get(key) for key in KEYS}


@pytest.mark.parametrize(
    "read",
    [
        {"rows": 20_000},
        {"change_sets": [{"change_set": "t/1.jsonl", "size": 3_300_000}, {"change_set": "t/2.jsonl", "size": 1_000_000}]},
        {"change_sets": [{"change_set": "t/1.jsonl.gz", "size": 600_000}]},
    ],
)
def test_much_is_read_by_generated_code(session, spark, read):
    assert tuning.tune_for(session, **read)
    assert settings(session) == LARGE
    assert settings(spark) == SMALL


LITTLE = [{"change_set": "1.jsonl", "size": 600_000}, {"change_set": "2", "size": None}]


@pytest.mark.parametrize("read", [{}, {"rows": 19_999}, {"rows": None, "change_sets": LITTLE}])
def test_little_is_not(session, read):
    assert not tuning.tune_for(session, **read)
    assert settings(session) == SMALL


def test_a_large_table_is_known_by_its_size(session, monkeypatch):
    session.sql("create database if not exists tuning")
    session.sql("create or replace table tuning.t using delta as select id from range(1000)")
    tuning.tune_for(session, [("tuning", "t"), ("tuning", "not_there")])
    assert settings(session) == SMALL
    monkeypatch.setitem(tuning.MUCH, "table", 1000)
    tuning.tune_for(session, [("tuning", "not_there"), ("tuning", "t")])
    assert settings(session) == LARGE


def test_what_the_profile_says_stays(session):
    key = "spark.sql.adaptive.enabled"
    tuning.tune_for(session, rows=10**6, given={key: "false"})
    assert settings(session) == {**LARGE, key: "false"}
