"""What it costs to find the new change sets in folders that keep a year of them.

    python -m bench.listing [--tables 10] [--files 35040]

Prints the seconds of `dbt run --select cdc_change_sets` in a warm process: nothing new, and one new file a table, with
`list_after` and without.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.scenarios.project import UserProject


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--files", type=int, default=35_040, help="of each table: 96 a day for a year")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        landing = Path(folder) / "landing"
        for table in range(given.tables):
            (landing / f"t{table}").mkdir(parents=True)
            for number in range(given.files):
                (landing / f"t{table}" / f"{number:06}.jsonl").write_bytes(b'{"id": 1}\n')
        project = UserProject(Path(folder) / "project", lake=Path(folder) / "lake", schema="listing", threads=2)
        for ascending in (False, True):
            project.configure(
                "year",
                settings={"format": "rows", "location": f"{landing}/{{table}}", "list_after": ascending},
                tables=[
                    {"name": f"t{table}", "cdc": {"keys": ["id"], "sequence_by": ["id"]}, "columns": {"id": "int"}}
                    for table in range(given.tables)
                ],
            )
            project.generate()
            if not ascending:
                print(f"first run, {given.tables * given.files:,} files: {_seconds(project):.1f} s")
            for turn in range(3):
                nothing = _seconds(project)
                for table in range(given.tables):
                    (landing / f"t{table}" / f"{given.files + turn + 3 * ascending:06}.jsonl").write_bytes(b'{"id": 1}\n')
                print(f"list_after {ascending}: nothing new {nothing:.1f} s, a new file a table {_seconds(project):.1f} s")
    os._exit(0)  # Spark's own end takes seconds


def _seconds(project: UserProject) -> float:
    started = time.monotonic()
    project.dbt("run", "--select", "cdc_change_sets", quiet=True)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
