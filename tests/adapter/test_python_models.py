"""Python models in the dbt process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt

APPEND = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    session.range(3).createOrReplaceTempView("mine")
    return session.table("mine")
"""
MERGE = """
from dbt.adapters.sparkdelta import Write

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    run = dbt.config.get("run")
    df = session.createDataFrame([(i, run) for i in range(1, run + 1)], "id int, run int")
    return Write(df, txn={"app_id": "py@1", "version": run})
"""
NOTHING = """
def model(dbt, session):
    dbt.config(materialized="incremental")
    return None if dbt.is_incremental else session.range(2)
"""
NEVER = """
def model(dbt, session):
    dbt.config(materialized="table")
    return None
"""
BROKEN = """
def helper():
    return {}["missing"]

def model(dbt, session):
    dbt.config(materialized="table")
    return helper()
"""
WRONG = """
def model(dbt, session):
    dbt.config(materialized="table")
    return 7
"""
ROOT = """
from pyspark.sql import SparkSession

def model(dbt, session):
    dbt.config(materialized="table")
    return SparkSession.builder.getOrCreate().range(1)
"""
YML = """
models:
  - name: merged
    config:
      run: "{{ var('run', 1) }}"
"""


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "appended.py": APPEND,
            "merged.py": MERGE.replace("run = dbt", "run = int(dbt").replace('("run")', '("run"))'),
            "nothing.py": NOTHING,
            "schema.yml": YML,
        }

    def test_append_merge_and_nothing(self, project):
        run_dbt(["run", "--vars", "run: 1"])
        results = {r.node.name: r.adapter_response for r in run_dbt(["run", "--vars", "run: 2"])}
        assert results["appended"]["rows_inserted"] == 3
        assert (results["merged"]["rows_inserted"], results["merged"]["rows_updated"]) == (1, 1)
        assert results["nothing"]["code"] == "SKIP"
        rows = project.run_sql("select * from {schema}.merged order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 2), (2, 2)]
        # no table of a temporary kind is left
        assert {row[1] for row in project.run_sql("show tables in {schema}", fetch="all")} == {
            "appended",
            "merged",
            "nothing",
        }
        saved = json.loads(Path("target/run_results.json").read_text())["results"]
        assert {r["unique_id"]: r["adapter_response"].get("table_version") for r in saved} == {
            "model.test.appended": 1,
            "model.test.merged": 1,
            "model.test.nothing": None,
        }


class TestPythonModelsThatFail:
    @pytest.fixture(scope="class")
    def models(self):
        return {"broken.py": BROKEN.lstrip(), "wrong.py": WRONG, "never.py": NEVER, "root.py": ROOT}

    def test_the_message_names_file_and_line(self, project):
        results = {r.node.name: r.message for r in run_dbt(["run"], expect_pass=False)}
        assert "models/broken.py, line 2: KeyError: 'missing'" in results["broken"]
        assert "models/broken.py, line 6, in model\n" in results["broken"]
        assert "model() returned int; it wants a DataFrame" in results["wrong"]
        assert "has to be created: return a DataFrame" in results["never"]
        assert "comes from another SparkSession" in results["root"]
