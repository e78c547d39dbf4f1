"""Listing: what it costs to find the new change sets in folders that keep a year of them

`dbt run --select cdc_change_sets` in a warm process, where nothing is new, and where each table has a new file, with `list_after`
and without. 35,040 files a table are 96 a day for a year.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.scenarios.project import UserProject

from bench.result import Cell, Result
from bench.warm import SCHEMA, say

SIZES = {
    "small": {"tables": 5, "files": 10_000, "repeats": 3},
    "full": {"tables": 10, "files": 35_040, "repeats": 3},
}


def measure(work: Path, *, tables: int, files: int, repeats: int) -> Result:
    """files: of each table at first."""
    landing = work / "landing"
    for table in range(tables):
        (landing / f"t{table}").mkdir(parents=True)
        for number in range(files):
            (landing / f"t{table}" / f"{number:06}.jsonl").write_bytes(b'{"id": 1}\n')
    project = UserProject(work / "project", lake=work / "lake", schema=SCHEMA, threads=2)
    rows: list[list[Cell]] = []
    there = files
    for ascending in (False, True):
        project.configure(
            "year",
            settings={"format": "rows", "location": f"{landing}/{{table}}", "list_after": ascending},
            tables=[
                {"name": f"t{table}", "cdc": {"keys": ["id"], "sequence_by": ["id"]}, "columns": {"id": "int"}}
                for table in range(tables)
            ],
        )
        project.generate()
        if not ascending:
            rows.append([f"at first, {tables * files:,} files", "", [_seconds(project)]])
        nothing, new = [], []
        for _ in range(repeats):
            nothing.append(_seconds(project))
            for table in range(tables):
                (landing / f"t{table}" / f"{there:06}.jsonl").write_bytes(b'{"id": 1}\n')
            new.append(_seconds(project))
            there += 1
        rows.append([f"list_after: {str(ascending).lower()}", nothing, new])
        say(f"list_after {ascending}: nothing new {nothing} s, new {new} s")
    found = project.rows(f"select count(*) as files from {SCHEMA}.cdc_change_sets")[0]["files"]
    assert found == tables * there, f"{found} files of {tables * there} are in the ledger"
    return {
        "tables": [{"head": ["", "nothing new, s", "a new file a table, s"], "rows": rows}],
        "targets": [],
        "plots": [],
        "compared": "At the end the ledger had every file once.",
    }


def _seconds(project: UserProject) -> float:
    started = time.monotonic()
    project.dbt("run", "--select", "cdc_change_sets", quiet=True)
    return round(time.monotonic() - started, 2)
