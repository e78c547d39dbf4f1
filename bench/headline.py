"""Many tables, some of them large, one cycle after another: what a cycle takes, and whether it stays so.

    python -m bench.headline [--tables 65] [--large 2] [--large-rows 50000000] [--rows 5000] [--cycles 15]

Each cycle delivers a change set of 1,000 changes to every table and runs `dbt run` in one warm process; that of a large table
is about its newest keys. A change waits at most as long as the cycle in which it comes. Prints for each cycle wall and CPU
seconds (Python and Java), the Java heap in use after a collection, and of the large tables the seconds of the slowest staging
and final, and the files of the first one's staging and final. Fifty million rows take 6 GB of disk a table, the set-up a few
minutes for each; how they come about is in bench/merge_curve.py.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from bench.data import CHANGES, Table, change_set_name, write_change_sets
from bench.merge_curve import Grown
from bench.warm import cpu_seconds, files_of, heap_megabytes, large_session, warm_project


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=65, help="with the large ones")
    parser.add_argument("--large", type=int, default=2)
    parser.add_argument("--large-rows", type=int, default=50_000_000)
    parser.add_argument("--rows", type=int, default=5_000, help="rows of the others")
    parser.add_argument("--cycles", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        work = Path(folder)
        small = [f"t{number:02d}" for number in range(given.tables - given.large)]
        large = [f"large{number}" for number in range(given.large)]
        project = warm_project(work, [*small, *large], threads=4)
        session = large_session(project)
        for name in small:
            write_change_sets(work / "feed" / name, Table(name, given.rows, False), change_sets=given.cycles + 1, seed=1)
        grown = []
        for name in large:
            started = time.monotonic()
            grown.append(Grown.of(project, session, work / "landing" / name, name, given.large_rows))
            print(f"{name}: {grown[-1].describe()}, made in {time.monotonic() - started:.0f} s", flush=True)
        print("cycle, wall s, CPU s, heap MB, slowest large staging s, final s, files of the first one's staging, final")
        # rows of the small tables; a cycle that does not count (tables get what they get at their second load); the cycles
        for number in range(given.cycles + 2):
            for name in small:
                os.link(work / "feed" / name / change_set_name(number), work / "landing" / name / change_set_name(number))
            for table in grown if number else ():
                table.deliver(CHANGES, new=CHANGES * 3 // 10)
            started, used = time.monotonic(), cpu_seconds()
            results = project.dbt("run", quiet=True).result.results
            wall, cpu = time.monotonic() - started, cpu_seconds() - used
            for table in grown:
                table.check()
            took = {each.node.name: each.execution_time for each in results}
            slowest = [max((took[f"{model}{name}"] for name in large), default=0) for model in ("stg_feed__", "final_")]
            files = [files_of(project, f"{model}{large[0]}") for model in ("stg_feed__", "final_")] if large else []
            label = ("rows", "before")[number] if number < 2 else number - 1
            seconds = [f"{each:.1f}" for each in (wall, cpu)]
            print(label, *seconds, heap_megabytes(), *(f"{each:.1f}" for each in slowest), *files, sep=", ", flush=True)
    os._exit(0)  # Spark's own end takes seconds


if __name__ == "__main__":
    main()
