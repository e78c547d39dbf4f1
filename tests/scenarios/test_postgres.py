"""One real PostgreSQL history in two formats: every final table equals what the database held, value by value."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from delta_cdc.demo import compare
from tests import NIGHTLY
from tests.scenarios.project import PACKAGE, UserProject

CASES = PACKAGE / "tests" / "cases" / "postgres"
LEFT_OUT = {  # another table shows the same: named in the comment
    "album",
    "employee",
    "genre",
    "playlist",  # only read at the beginning: playlist_track, invoice
    "media_type",
    "track",
    "pgbench_branches",
    "pgbench_tellers",  # updates: customer, pgbench_accounts
    "invoice_line",  # deletes: invoice
}
TABLES = sorted({path.stem for path in (CASES / "final").glob("*.csv")} - (set() if NIGHTLY else LEFT_OUT))
# The tables that say most; the demo takes all of them as wal2json, with key changes, a late change set and a replay.
AS_WAL2JSON = ("all_types", "doc_full", "no_key")
# PostgreSQL types that Debezium writes in a way of its own: as text in staging and final, but another text than COPY's.
OTHER_TEXT = {"all_types": {"tm", "tmtz", "iv", "ia", "ta", "m", "bits", "hs"}}


def shop_tables() -> list[dict[str, Any]]:
    """The demo's, for a feed of another project: names, settings and columns as `UserProject.configure` takes them."""
    declared = yaml.safe_load((PACKAGE / "models" / "demo" / "_sources.yml").read_text())["sources"][0]["tables"]
    return [
        {
            "name": t["name"],
            "cdc": _without(t["config"]["meta"]["cdc"], "final_name"),
            "columns": {c["name"]: c["data_type"] for c in t["columns"]},
        }
        for t in declared
    ]


def _without(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> Iterator[UserProject]:
    """Both feeds in two deliveries of several change sets each, the second with a late change set among them."""
    landing = project.path / "landing"
    (landing / "shop").mkdir(parents=True)
    (landing / "debezium").mkdir()
    tables = shop_tables()
    project.configure(
        "shop",
        settings={
            "format": "wal2json_v2",
            "location": str(landing / "shop"),
            "change_set_order": "name",
            "key_changes": False,
        },
        tables=[t for t in tables if t["name"] in AS_WAL2JSON],
    )
    project.configure(
        "connect",
        settings={
            "format": "debezium",
            "location": str(landing / "debezium"),
            "change_set_order": "name",
            "key_changes": False,
            "split_key_changes": True,
        },
        tables=[
            {**t, "cdc": {**_without(t["cdc"], "partition_by", "apply"), "final_name": f"final_connect_{t['name']}"}}
            for t in tables
            if t["name"] in TABLES
        ],
    )
    project.generate()

    with gzip.open(CASES / "debezium.jsonl.gz", "rt") as file:
        lines = file.readlines()
    # a key change's delete and create come in different files
    split = next(i for i, line in enumerate(lines) if "__debezium.newkey" in json.loads(line).get("headers", {})) + 1
    for number, part in enumerate((lines[:split], lines[split:]), 1):
        with gzip.open(project.path / f"debezium-{number}.jsonl.gz", "wt") as file:
            file.writelines(part)
    for shop, debezium in ((["0001", "0002", "0004"], 1), (["0003", "0005", "0006"], 2)):
        for name in shop:
            shutil.copy(PACKAGE / "seeds" / "shop" / f"{name}.jsonl.gz", landing / "shop")
        shutil.copy(project.path / f"debezium-{debezium}.jsonl.gz", landing / "debezium")
        project.dbt("run", quiet=True)
    return project


@pytest.mark.parametrize("table", AS_WAL2JSON)
def test_wal2json_gives_the_tables_of_the_database(delivered: UserProject, table: str) -> None:
    _assert_equal(delivered, f"final_{table}", table, without=set())


@pytest.mark.parametrize("table", TABLES)
def test_debezium_gives_the_tables_of_the_database(delivered: UserProject, table: str) -> None:
    _assert_equal(delivered, f"final_connect_{table}", table, without=OTHER_TEXT.get(table, set()))


def _assert_equal(project: UserProject, relation: str, table: str, *, without: set[str]) -> None:
    found = compare(project.spark(), f"{project.schema}.{relation}", CASES / "final" / f"{table}.csv", table, without=without)
    assert found.differing == 0, f"{relation}: {found.differing} rows differ from the database's own\n{found.example}"
