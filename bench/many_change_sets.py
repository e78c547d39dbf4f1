"""Many change sets: one small change set after another, in one warm process

Each of 1,000 changes a table, a `dbt run` each. Each line has several runs: their wall and CPU seconds (Python and Java), the
Java heap in use after a collection, and the files of the first table's staging and final. Each tenth commit of a table writes a
checkpoint of its log, so that ten runs in a row have all that a run costs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from bench.data import Table, change_set_name, write_change_sets
from bench.result import Cell, Result, drift
from bench.warm import SCHEMA, cpu_seconds, files_of, heap_megabytes, rounded, say, warm_project

SIZES = {
    "small": {"runs": 100, "tables": 1, "rows": 5_000, "each": 10},
    "full": {"runs": 500, "tables": 2, "rows": 5_000, "each": 25},
}
HEAD = ["runs", "wall, s", "CPU, s", "heap, MB", "files of staging", "of final"]


def measure(work: Path, *, runs: int, tables: int, rows: int, each: int) -> Result:
    """each: runs of a line of the table."""
    each = min(each, runs)
    chosen = [Table(f"t{number}", rows, False) for number in range(tables)]
    live = {table.name: write_change_sets(work / "feed" / table.name, table, change_sets=runs)[-1] for table in chosen}
    project = warm_project(work, list(live))
    wall: list[float] = []
    cpu: list[float] = []
    heaps: list[float] = []
    shown: list[list[Cell]] = []
    for number in range(runs + 1):
        for table in live:
            os.link(work / "feed" / table / change_set_name(number), work / "landing" / table / change_set_name(number))
        started, used = time.monotonic(), cpu_seconds()
        project.dbt("run", quiet=True)
        wall.append(time.monotonic() - started)
        cpu.append(cpu_seconds() - used)
        if number and number % each == 0:
            heaps.append(heap_megabytes())
            files = [files_of(project, name) for name in ("stg_feed__t0", "final_t0")]
            shown.append([str(number), rounded(wall[-each:]), rounded(cpu[-each:]), heaps[-1], *files])
            say(f"{number} runs, the last ones {rounded(wall[-each:])} s")
    for name, expected in live.items():
        found = project.rows(f"select count(*) as rows from {SCHEMA}.final_{name}")[0]["rows"]
        assert found == expected, f"{name}: {found} rows of {expected} are in final"
    warmed = wall[1 + min(each, runs // 3) :]  # the first compile
    return {
        "tables": [{"head": HEAD, "rows": shown}],
        "targets": [
            drift("wall seconds of a run", warmed),
            drift("wall seconds of ten runs, checkpoints included", tens(warmed)),
            drift("heap", heaps),
        ],
        "plots": [
            {"title": "Runs one after another", "x": "run", "y": "seconds", "lines": {
                "wall": [(number, round(seconds, 2)) for number, seconds in enumerate(wall) if number]
            }}
        ],
        "compared": "At the end the finals had as many rows as the feed leaves.",
    }  # fmt: skip


def tens(values: Sequence[float]) -> list[float]:
    """Sums of ten in a row, or of all where they are fewer; the first ones that make no ten are left out."""
    return [sum(values[end - 10 : end]) for end in range(len(values), 9, -10)][::-1] or [sum(values)]
