"""What sections with a warm process share: a user's project in this process, and change sets that Spark writes for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.scenarios.project import UserProject

from bench.data import COLUMNS, MONTHS
from dbt.adapters.sparkdelta.tuning import LARGE_TABLES

SCHEMA = "bench"
VALUES = """
  concat('customer ', (id * 7919 + {salt}) % 1000003) as name,
  cast((id * 104729 + {salt}) % 10000000 / 100 as decimal(12,2)) as amount,
  date_add(date'2024-01-01', cast(id * 7919 % 731 as int)) as day
"""


def warm_project(
    work: Path,
    tables: Sequence[str],
    spark_settings: Mapping[str, str] | None = None,
    threads: int = 2,
    partitioned: Sequence[str] = (),
) -> UserProject:
    """A project with one feed of these tables, with the models that it generates and settings as they come. partitioned: by
    month."""
    for table in tables:
        (work / "landing" / table).mkdir(parents=True)
    settings = {"spark.driver.memory": "2g", **(spark_settings or {})}  # as users have it
    project = UserProject(work / "project", lake=work / "lake", schema=SCHEMA, threads=threads, spark_settings=settings)
    project.configure(
        "feed",
        settings={"format": "rows", "location": f"{work}/landing/{{table}}", "operation": "op", "sequence_by": ["seq"]},
        tables=[
            {"name": table, "cdc": {"keys": ["id"]} | (MONTHS if table in partitioned else {}), "columns": COLUMNS}
            for table in tables
        ],
    )
    project.generate()
    return project


def event_log(folder: Path) -> dict[str, str]:
    """Settings with which Spark writes its events to one file of the folder, as text."""
    return {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{folder}",
        "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
    }  # fmt: skip


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
    """One `dbt run` of a table: wall seconds of `staging`, `final`, `both` and all of the `run`."""
    started = time.monotonic()
    results = project.dbt("run", "--select", f"+final_{table}", quiet=True).result.results
    run = time.monotonic() - started
    took = {each.node.name: each.execution_time for each in results}
    staging, final = took[f"stg_feed__{table}"], took[f"final_{table}"]
    return {"staging": staging, "final": final, "both": staging + final, "run": run}


def rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 2) for value in values]


def say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", flush=True)


def files_of(project: UserProject, table: str) -> int:
    return len(project.delta(table).file_uris())


def _java() -> str:
    return subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True, check=False).stdout.strip()


def cpu_seconds() -> float:
    """Of this process and the Java process that it started."""
    ticks = 0
    for process in filter(None, ("self", _java())):
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def heap_megabytes() -> int:
    subprocess.run(["jcmd", _java(), "GC.run"], capture_output=True, check=True)
    said = subprocess.run(["jstat", "-gc", _java()], capture_output=True, text=True, check=True).stdout.splitlines()
    sizes = dict(zip(said[0].split(), said[1].split(), strict=True))
    return round(sum(float(sizes[name]) for name in ("S0U", "S1U", "EU", "OU")) / 1024)
