"""Whether a run stays as quick as it was: one small change set after another, in one warm process.

    python -m bench.many_change_sets [--runs 500] [--tables 2] [--rows 5000]

Prints, for every 25 runs, the median of their wall and CPU seconds (Python and Java), the Java heap in use after a collection,
and the files of the first table's staging and final.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.data import Table, change_set_name, write_change_sets
from bench.warm import cpu_seconds, files_of, heap_megabytes, warm_project

EACH = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--tables", type=int, default=2)
    parser.add_argument("--rows", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        work = Path(folder)
        tables = [Table(f"t{number}", given.rows, False) for number in range(given.tables)]
        for table in tables:
            write_change_sets(work / "feed" / table.name, table, change_sets=given.runs, seed=1)
        project = warm_project(work, [table.name for table in tables])
        print("runs, wall s, CPU s, heap MB, files of staging, of final")
        wall, cpu = [], []
        for number in range(given.runs + 1):
            for table in tables:
                name = f"{table.name}/{change_set_name(number)}"
                os.link(work / "feed" / name, work / "landing" / name)
            started, used = time.monotonic(), cpu_seconds()
            project.dbt("run", quiet=True)
            wall.append(time.monotonic() - started)
            cpu.append(cpu_seconds() - used)
            if number and number % EACH == 0:
                files = [files_of(project, name) for name in ("stg_feed__t0", "final_t0")]
                print(
                    number, f"{statistics.median(wall[-EACH:]):.1f}", f"{statistics.median(cpu[-EACH:]):.1f}",
                    heap_megabytes(), *files, sep=", ", flush=True,
                )  # fmt: skip
    os._exit(0)  # Spark's own end takes seconds


if __name__ == "__main__":
    main()
