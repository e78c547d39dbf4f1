"""Several processes on one warehouse: the metastore is in PostgreSQL, each `dbt run` has its own Spark, and so has a reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.postgres import Postgres, running
from tests.scenarios.project import PACKAGE, UserProject

pytestmark = [pytest.mark.dbt, pytest.mark.spark]
USER = "metastore"
KEYS = 100
COLUMNS = {"id": "int", "seq": "int", "text": "string"}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    yield from running("postgresql-15")  # wal2json is not needed


@pytest.fixture(scope="module")
def settings(server: Postgres, lake: Path) -> dict[str, str]:
    """Those of the target `shared`, with what it takes from the environment."""
    server.psql("postgres", f"create role {USER} login password '{USER}'")
    server.psql("postgres", f"create database metastore owner {USER}")
    taken = {
        "DELTA_CDC_WAREHOUSE": f"{lake}/warehouse",
        "DELTA_CDC_METASTORE": f"127.0.0.1:{server.environment['PGPORT']}/metastore",
        "DELTA_CDC_METASTORE_USER": USER,
        "DELTA_CDC_METASTORE_PASSWORD": USER,
    }
    text = (PACKAGE / "profiles" / "profiles.yml").read_text()
    for name, value in taken.items():
        text = text.replace(f"{{{{ env_var('{name}') }}}}", value)
    return yaml.safe_load(text)["delta_cdc"]["outputs"]["shared"]["server_side_parameters"]


def made(folder: Path, schema: str, lake: Path, settings: dict[str, str]) -> UserProject:
    project = UserProject(folder / schema, lake=lake, schema=schema, threads=2, spark_settings=settings)
    project.configure(
        "feed", settings={"format": "rows", "location": f"{folder}/landing/{schema}/{{table}}", "sequence_by": ["seq"]},
        tables=[{"name": name, "cdc": {"keys": ["id"]}, "columns": COLUMNS} for name in ("a", "b")],
    )  # fmt: skip
    project.generate()
    return project


def deliver(folder: Path, schema: str, number: int) -> None:
    """Change set `number` of both tables: every key once."""
    for table in ("a", "b"):
        path = folder / "landing" / schema / table / f"{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = ({"id": key, "seq": number, "text": f"{table} {number}"} for key in range(KEYS))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def start(project: UserProject, name: str) -> subprocess.Popen[str]:
    """`dbt run` in a process of its own, with folders of its own for what dbt writes."""
    own = project.path.parent / f"{project.schema}-{name}"
    command = [str(Path(sys.executable).with_name("dbt")), "--quiet", "run", "--project-dir", str(project.path),
               "--profiles-dir", str(project.path), "--target-path", f"{own}/target", "--log-path", f"{own}/logs"]  # fmt: skip
    # a process whose parent is killed ends too
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=600)
    return process.returncode, said


@pytest.mark.timeout(1800)
def test_projects_runs_and_a_reader_share_a_warehouse(tmp_path: Path, lake: Path, settings: dict[str, str]) -> None:
    north, south = (made(tmp_path, schema, lake, settings) for schema in ("north", "south"))
    for schema in ("north", "south"):
        deliver(tmp_path, schema, 0)
    code, said = ended(start(north, "first"))  # it makes the metastore's tables
    assert code == 0, said

    def rows(schema: str) -> list[dict[str, object]]:
        counts = " union all ".join(
            f"select '{table}' as name, count(*) as n, min(seq) as low, max(seq) as high from {schema}.{table}"
            for table in ("stg_feed__a", "stg_feed__b", "final_a", "final_b")
        )
        return sorted(north.rows(counts), key=lambda row: str(row["name"]))

    def expected(last: int) -> list[dict[str, object]]:
        finals = [{"name": f"final_{table}", "n": KEYS, "low": last, "high": last} for table in ("a", "b")]
        staged = [{"name": f"stg_feed__{table}", "n": KEYS * (last + 1), "low": 0, "high": last} for table in ("a", "b")]
        return finals + staged

    assert rows("north") == expected(0)  # this process has opened the metastore and keeps it open
    deliver(tmp_path, "north", 1)
    at_once = [start(north, "one"), start(north, "other"), start(south, "only")]
    (one, one_said), (other, other_said), (only, only_said) = [ended(process) for process in at_once]
    assert only == 0, only_said
    assert rows("south") == expected(0)
    # two runs of one project: one may have to give way to the other, and the next run does what it left
    assert 0 in (one, other), one_said + other_said
    code, said = ended(start(north, "last"))
    assert code == 0, said
    assert rows("north") == expected(1)
