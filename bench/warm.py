"""What the measures of single models share: a user's project in this process, and change sets that Spark writes for it."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.scenarios.project import UserProject

from bench.data import COLUMNS
from dbt.adapters.sparkdelta.tuning import LARGE_TABLES

SCHEMA = "bench"
VALUES = """
  concat('customer ', (id * 7919 + {salt}) % 1000003) as name,
  cast((id * 104729 + {salt}) % 10000000 / 100 as decimal(12,2)) as amount,
  date_add(date'2024-01-01', cast(id * 7919 % 731 as int)) as day
"""


def warm_project(work: Path, tables: Sequence[str], spark_settings: Mapping[str, str] | None = None) -> UserProject:
    """A project with one feed of these tables, with the models that it generates and settings as they come."""
    for table in tables:
        (work / "landing" / table).mkdir(parents=True)
    project = UserProject(work / "project", lake=work / "lake", schema=SCHEMA, threads=2, spark_settings=spark_settings)
    project.configure(
        "feed",
        settings={"format": "rows", "location": f"{work}/landing/{{table}}", "operation": "op", "sequence_by": ["seq"]},
        tables=[{"name": table, "cdc": {"keys": ["id"]}, "columns": COLUMNS} for table in tables],
    )
    project.generate()
    return project


def large_session(project: UserProject) -> Any:
    """A session with generated code, for what is not measured."""
    session = project.spark().newSession()
    for key, value in LARGE_TABLES.items():
        session.conf.set(key, value)
    return session


def deliver(session: Any, sql: str, *paths: Path) -> None:
    """The rows of a query as change sets of JSON lines, in their order: each task of the query writes one."""
    made = paths[0].parents[2] / "made"
    session.sql(sql).write.json(str(made))
    for part, path in zip(sorted(made.glob("part-*")), paths, strict=True):
        os.rename(part, path)
    shutil.rmtree(made)


def run_seconds(project: UserProject, table: str) -> dict[str, float]:
    """One `dbt run` of a table: wall seconds of `staging`, `final` and all of the `run`."""
    started = time.monotonic()
    results = project.dbt("run", "--select", f"+final_{table}", quiet=True).result.results
    took = {each.node.name: each.execution_time for each in results}
    return {"staging": took[f"stg_feed__{table}"], "final": took[f"final_{table}"], "run": time.monotonic() - started}


def spread(seconds: Sequence[float]) -> str:
    """Median (least to most)."""
    return f"{statistics.median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
