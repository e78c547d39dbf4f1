"""The contestants: what each is made of, how change sets reach it, the command that is measured.

A rival runs twice: with the settings that delta_cdc has, for a large table those that its models get, and with Spark's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

import yaml

from bench.data import CLUSTERED, COLUMNS, MONTH, MONTHS, Table, change_set_name
from bench.process import PACKAGE
from bench.warm import SCHEMA, event_log
from dbt.adapters.sparkdelta.class_archive import settings_with_jars
from dbt.adapters.sparkdelta.jars import jar_paths
from dbt.adapters.sparkdelta.settings import spark_settings
from dbt.adapters.sparkdelta.tuning import A_TASK_A_CORE, LARGE_TABLES

RIVALS = Path(__file__).resolve().parent / "rivals"
THREADS = 4
# Where delta_cdc's own `deletion_vectors: auto` switches them on; the rivals have them from the start. Of such a size (4 MB) on
# `adapter.tune_for` gives a model generated code.
LARGE = 200_000
LARGE_SETTINGS = LARGE_TABLES | dict.fromkeys(A_TASK_A_CORE, str(os.cpu_count()))
AS_IT_COMES = ", as it comes"
# In place of what the adapter has with `tuned_for: large_tables`.
SPARKS_OWN = {
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.databricks.delta.allFilesInCrc.enabled": "true",
    "spark.buffer.pageSize": "16m",  # what Spark takes with 2 GB and 2 cores
}
# titles of B2 alone; FIRST: after a `dbt run`, which leaves no note of what it read
COMMAND, FIRST, EMPTY = "delta-cdc run", "delta-cdc run, the first", "dbt run of one empty model"


@dataclass(frozen=True)
class Contestant:
    """command: one run. before: one that does not count, if it is another. first: options of the first run alone. environment:
    added to that of the process. keeps_files: its landing folder keeps the change sets of earlier cycles."""

    title: str
    folder: Path
    command: Sequence[str]
    before: Sequence[str] = ()
    first: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    keeps_files: bool = True

    @property
    def finals(self) -> Path:
        return self.folder / "lake" / "warehouse" / f"{SCHEMA}.db"

    def links(self, feed: Path, tables: Sequence[Table], number: int) -> list[tuple[Path, Path]]:
        """Where change set `number` of every table is, and where it goes."""
        name = change_set_name(number)
        return [(feed / table.name / name, self.folder / "landing" / table.name / name) for table in tables]

    def deliver(self, feed: Path, tables: Sequence[Table], number: int) -> None:
        """Put change set `number` of every table into the landing folder."""
        for source, to in self.links(feed, tables, number):
            if not self.keeps_files:
                shutil.rmtree(to.parent, ignore_errors=True)
            to.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, to)


def contestants(work: Path, tables: Sequence[Table]) -> list[Contestant]:
    return [
        delta_cdc(work / "delta_cdc", tables),
        _loop(work / "loop", tables, own=False),
        _loop(work / "loop_own", tables, own=True),
        _stock(work / "stock", tables, own=False),
        _stock(work / "stock_own", tables, own=True),
    ]


def delta_cdc(
    folder: Path, tables: Sequence[Table], feed: Mapping[str, str] | None = None, profile: Mapping[str, str] | None = None
) -> Contestant:
    """A user's project that has delta_cdc installed, with the models that it generates and every setting at its default, but
    those given for the feed and the profile. Its target `counted` has Spark's events in a file of the folder, local-…"""
    project = folder / "project"
    cdc = {
        "format": "rows",
        "location": f"{folder}/landing/{{table}}",
        "operation": "op",
        "sequence_by": ["seq"],
        "change_set_order": "name",
        **(feed or {}),
    }
    source = {
        "name": "feed",
        "config": {"meta": {"cdc": cdc}},
        "tables": [
            {
                "name": table.name,
                "config": {
                    "meta": {"cdc": {"keys": ["id"]} | (MONTHS if table.partitioned else CLUSTERED if table.clustered else {})}
                },
                "columns": [{"name": name, "data_type": kind, "description": name} for name, kind in COLUMNS.items()],
            }
            for table in tables
        ],
    }
    output = {"type": "sparkdelta", "schema": SCHEMA, "threads": THREADS, "root": str(folder / "lake"), **(profile or {})}
    counted = output | {"server_side_parameters": event_log(folder)}
    for name, content in {
        "dbt_project.yml": {
            "name": "bench",
            "version": "1.0.0",
            "config-version": 2,
            "profile": "bench",
            "flags": {"send_anonymous_usage_stats": False},
        },
        "packages.yml": {"packages": [{"local": str(PACKAGE)}]},
        "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": output, "counted": counted}}},
        "models/feed/_sources.yml": {"version": 2, "sources": [source]},
    }.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
    _quietly([_tool("dbt"), "deps", *_where(project)])
    _quietly([_tool("delta-cdc"), "generate", "--project-dir", str(project)])
    return Contestant("delta_cdc", folder, [_tool("dbt"), "run", *_where(project)])


def by_command(ours: Contestant) -> Contestant:
    """The same project and tables, by `delta-cdc run`."""
    return replace(ours, title=COMMAND, command=[_tool("delta-cdc"), "run", *_where(ours.folder / "project")])


def one_empty_model(folder: Path) -> Contestant:
    """A project with one view without rows, on this project's adapter with settings as they come."""
    project = folder / "project"
    (project / "models").mkdir(parents=True)
    output = {"type": "sparkdelta", "schema": SCHEMA, "threads": THREADS, "root": str(folder / "lake")}
    for name, text in {
        "dbt_project.yml": (RIVALS / "dbt_stock" / "dbt_project.yml").read_text(),
        "profiles.yml": yaml.safe_dump({"dbt_stock": {"target": "dev", "outputs": {"dev": output}}}),
        "models/empty.sql": "select 1 as nothing where false\n",
    }.items():
        (project / name).write_text(text)
    return Contestant(EMPTY, folder, [_tool("dbt"), "run", *_where(project)])


def _loop(folder: Path, tables: Sequence[Table], own: bool) -> Contestant:
    """own: with Spark's own settings."""
    folder.mkdir(parents=True)
    command, before = _loop_command(folder, tables, own), _loop_command(folder, tables, own=False) if own else ()
    return Contestant(f"(a) PySpark loop{AS_IT_COMES if own else ''}", folder, command, before, first=["--create"])


def _loop_command(folder: Path, tables: Sequence[Table], own: bool) -> list[str]:
    settings = spark_settings(folder / "lake", SPARKS_OWN, "large_tables") if own else spark_settings(folder / "lake", {})
    job = folder / ("own.json" if own else "job.json")
    job.write_text(
        json.dumps(
            {
                "spark": settings_with_jars(settings, jar_paths()),
                "landing": str(folder / "landing"),
                "threads": THREADS,
                "tables": [
                    {
                        "name": table.name,
                        "partitioned": table.partitioned,
                        "clustered": table.clustered,
                        "deletion_vectors": table.rows > LARGE,
                        "settings": {} if own else _settings_for(table),
                    }
                    for table in tables
                ],
            },
            indent=1,
        )
    )
    return [sys.executable, str(RIVALS / "pyspark_loop.py"), str(job)]


def _settings_for(table: Table) -> dict[str, str]:
    """What delta_cdc's models of such a table set in their sessions."""
    return LARGE_SETTINGS if table.rows > LARGE else {}


def _stock(folder: Path, tables: Sequence[Table], own: bool) -> Contestant:
    """own: with Spark's own settings."""
    command, before = _stock_command(folder, tables, own), _stock_command(folder, tables, own=False) if own else ()
    environment = {"BENCH_LAKE": str(folder / "lake"), "BENCH_LANDING": str(folder / "landing")}
    title = f"(b) plain dbt project{AS_IT_COMES if own else ''}"
    return Contestant(title, folder, command, before, environment=environment, keeps_files=False)


def _stock_command(folder: Path, tables: Sequence[Table], own: bool) -> list[str]:
    project = folder / ("own" if own else "project")
    shutil.copytree(RIVALS / "dbt_stock", project, ignore=shutil.ignore_patterns("templates", "README.md"))
    (project / "models").mkdir()
    for path, text in _stock_models(tables, own):
        (project / "models" / path).write_text(text)
    if own:
        profile = yaml.safe_load((project / "profiles.yml").read_text())
        profile["dbt_stock"]["outputs"]["dev"] |= {"tuned_for": "large_tables", "server_side_parameters": SPARKS_OWN}
        (project / "profiles.yml").write_text(yaml.safe_dump(profile))
    return [_tool("dbt"), "run", *_where(project)]


def _stock_models(tables: Sequence[Table], own: bool) -> Iterator[tuple[str, str]]:
    for layer in ("stg", "final"):
        template = Template((RIVALS / "dbt_stock" / "templates" / f"{layer}.sql").read_text())
        for table in tables:
            yield (
                f"{layer}_{table.name}.sql",
                template.substitute(
                    table=table.name,
                    month=f"{MONTH}, " if table.partitioned else "",
                    partition_by="'month'" if table.partitioned else "none",
                    cluster_by="'id'" if table.clustered else "none",
                    deletion_vectors=str(table.rows > LARGE).lower(),
                    settings=[] if own else [f"set {key}={value}" for key, value in _settings_for(table).items()],
                ),
            )


def _where(project: Path) -> list[str]:
    return ["--project-dir", str(project), "--profiles-dir", str(project)]


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _quietly(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
