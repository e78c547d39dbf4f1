"""B0: many tables, some of them large, one cycle after another

Each cycle delivers a change set of 1,000 changes to every table and runs `dbt run` in one warm process, 4 threads; that of a
large table is about its newest keys. Lag: from the delivery until the last final had its changes. Heap: of Java, in use after
a collection. Slowest: of the large tables' models. Files: of the first large table. Fifty million rows take 6 GB of disk a
table; how they come about is in bench/grown.py."""

from __future__ import annotations

import os
import time
from datetime import timezone
from pathlib import Path
from typing import Any

from bench.data import CHANGES, Table, change_set_name, write_change_sets
from bench.grown import Grown
from bench.result import Cell, Result, drift, target
from bench.warm import SCHEMA, cpu_seconds, files_of, heap_megabytes, large_session, say, warm_project

SIZES = {
    "small": {"tables": 65, "large": 2, "large_rows": 2_000_000, "rows": 5_000, "cycles": 5},
    "full": {"tables": 65, "large": 2, "large_rows": 50_000_000, "rows": 5_000, "cycles": 15},
}
HEAD = [
    "cycle",
    "wall, s",
    "CPU, s",
    "lag, s",
    "heap, MB",
    "slowest large staging, s",
    "final, s",
    "files of staging",
    "of final",
]
MODELS = ("stg_feed__", "final_")


def measure(work: Path, *, tables: int, large: int, large_rows: int, rows: int, cycles: int) -> Result:
    """tables: with the large ones. rows: of the others."""
    small_ones = [f"t{number:02d}" for number in range(tables - large)]
    large_ones = [f"large{number}" for number in range(large)]
    project = warm_project(work, [*small_ones, *large_ones], threads=4)
    session = large_session(project)
    live = {
        name: write_change_sets(work / "feed" / name, Table(name, rows, False), change_sets=cycles + 1)[-1] for name in small_ones
    }
    grown = [Grown.of(project, session, work / "landing" / name, large_rows) for name in large_ones]
    shown: list[list[Cell]] = []
    walls, heaps = [], []
    # rows of the small tables; a cycle that does not count (tables get what they get at their second load); the cycles
    for number in range(cycles + 2):
        for name in small_ones:
            os.link(work / "feed" / name / change_set_name(number), work / "landing" / name / change_set_name(number))
        for table in grown if number else ():
            table.deliver(CHANGES, new=CHANGES * 3 // 10)
        started, clock, used = time.monotonic(), time.time(), cpu_seconds()
        results = project.dbt("run", quiet=True).result.results
        wall, cpu = time.monotonic() - started, cpu_seconds() - used
        for table in grown:
            table.check()
        took = {each.node.name: each.execution_time for each in results}
        lag = max(_ended(each) for each in results if each.node.name.startswith("final_")) - clock
        slowest = [max((took[f"{model}{name}"] for name in large_ones), default=0) for model in MODELS]
        files = [files_of(project, f"{model}{large_ones[0]}") if large_ones else 0 for model in MODELS]
        label = ("rows", "before")[number] if number < 2 else str(number - 1)
        heap = heap_megabytes()
        shown.append([label, *(round(each, 1) for each in (wall, cpu, lag)), heap, *(round(each, 1) for each in slowest), *files])
        say(", ".join(f"{name} {cell}" for name, cell in zip(HEAD, shown[-1], strict=True)))
        if number >= 2:
            walls.append(wall)
            heaps.append(heap)
    for name, expected in live.items():
        found = session.sql(f"select count(*) from {SCHEMA}.final_{name}").collect()[0][0]
        assert found == expected, f"{name}: {found} rows of {expected} are in final"
    return {
        "tables": [{"head": HEAD, "rows": shown}],
        "targets": [
            target("the slowest cycle, s", max(walls), 180),
            drift("wall seconds of a cycle", walls),
            drift("heap", heaps),
        ],
        "plots": [
            {"title": f"A cycle of {tables} tables", "x": "cycle", "y": "seconds", "lines": {
                "wall": [(number, round(wall, 1)) for number, wall in enumerate(walls, 1)]
            }}
        ],
        "compared": (
            "After each cycle the large finals had the change set's rows, without those that it deletes; at the end the others"
            " had as many rows as the feed leaves."
        ),
    }  # fmt: skip


def _ended(result: Any) -> float:
    """When a node's execution ended, in seconds since 1970. dbt tells it in UTC, with a zone or without."""
    ended = max(timing.completed_at for timing in result.timing)
    return float((ended if ended.tzinfo else ended.replace(tzinfo=timezone.utc)).timestamp())
