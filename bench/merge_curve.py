"""How a run's time grows with the rows of final, and with those of the change set, in one warm process.

    python -m bench.merge_curve [--rows 1000000 5000000] [--changes 1000 10000 100000 1000000] [--into 5000000] [--repeats 3]

First the smallest change set into a table of each size, then change sets of each size into the table of `--into` rows. A
change set is about the newest keys: three in ten are new, the others are updated, each tenth of these deleted. `dbt run`
through a user's project; each measure after a run of its kind that does not count.

A table's newest million rows come by a first load. The older ones are copies of these with lower keys and positions,
inserted into staging and final, a million at a time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from tests.scenarios.project import UserProject

from bench.warm import SCHEMA, VALUES, deliver, large_session, run_seconds, spread, warm_project

LOADED = 1_000_000
CHANGE_SET = (
    "select case when id > {top} then 'I' when id % 10 = 0 then 'D' else 'U' end as op, {seq} + id - {low} + 1 as seq, id,"
    + VALUES
    + "from range({low}, {high}, 1, 1)"
)


@dataclass
class Grown:
    """A table and its feed. top: its highest key. seq: its highest position. newest: that before the newest change set, of
    which `wanted` rows are in final after its run."""

    project: UserProject
    session: Any
    landing: Path
    name: str
    top: int
    seq: int
    change_sets: int = 0
    newest: int = 0
    wanted: int = 0

    @classmethod
    def of(cls, project: UserProject, session: Any, landing: Path, name: str, rows: int) -> Grown:
        """The table of that name, which gets its rows."""
        loaded = min(rows, LOADED)
        table = cls(project, session, landing, name, rows - loaded, rows - loaded)
        table.run(loaded, new=loaded)
        table.copy_down(loaded, rows // loaded - 1)
        return table

    def run(self, changes: int, new: int) -> dict[str, float]:
        """Deliver a change set, of which `new` are of new keys, and run."""
        self.deliver(changes, new)
        took = run_seconds(self.project, self.name)
        self.check()
        return took

    def deliver(self, changes: int, new: int) -> None:
        low, high = self.top + new - changes + 1, self.top + new + 1
        sql = CHANGE_SET.format(top=self.top, seq=self.seq, low=low, high=high, salt=self.change_sets)
        self.change_sets += 1
        deliver(self.session, sql, self.landing / f"{self.change_sets:04d}.jsonl")
        self.newest, self.wanted = self.seq, changes - (self.top // 10 - (low - 1) // 10)
        self.top, self.seq = self.top + new, self.seq + changes

    def check(self) -> None:
        """Final has the rows of the newest change set, without those that it deletes."""
        found = self.session.sql(f"select count(*) from {SCHEMA}.final_{self.name} where seq > {self.newest}").collect()[0][0]
        assert found == self.wanted, f"{found} rows of {self.wanted} are in final"

    def copy_down(self, rows: int, times: int) -> None:
        """Insert the first load's rows again, so many times, each with lower keys."""
        for table in (f"stg_feed__{self.name}", f"final_{self.name}"):
            loaded = f"{SCHEMA}.{table} version as of {self._version(table)}"
            columns = self.session.table(f"{SCHEMA}.{table}").columns
            for down in range(rows, rows * times + 1, rows):
                lower = {
                    "id": f"id - {down}", "seq": f"seq - {down}", "_cdc_sequence": f"struct(_cdc_sequence.seq - {down} as seq)"
                }  # fmt: skip
                chosen = ", ".join(f"{lower[name]} as {name}" if name in lower else f"`{name}`" for name in columns)
                self.session.sql(f"insert into {SCHEMA}.{table} by name select {chosen} from {loaded}")

    def _version(self, table: str) -> int:
        return DeltaTable(str(self.project.lake / "warehouse" / f"{SCHEMA}.db" / table)).version()

    def describe(self) -> str:
        sizes = []
        for table in (f"stg_feed__{self.name}", f"final_{self.name}"):
            told = self.session.sql(f"describe detail {SCHEMA}.{table}").collect()[0]
            sizes.append(f"{told['numFiles']} files, {told['sizeInBytes'] / 1e6:,.0f} MB")
        return f"staging {sizes[0]}; final {sizes[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--into", type=int, default=5_000_000, help="one of --rows")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        work = Path(folder)
        project = warm_project(work, [f"t{rows}" for rows in given.rows])
        session = large_session(project)
        tables = {}
        for rows in given.rows:
            table = tables[rows] = Grown.of(project, session, work / "landing" / f"t{rows}", f"t{rows}", rows)
            print(f"{rows:,} rows: {table.describe()}", flush=True)
        print("seconds, median (least to most): rows, changes, staging, final, run; staging and final to those of the first line")
        fewest = min(given.changes)
        first = None
        for rows, table in tables.items():
            first = _measure(table, rows, fewest, given.repeats, first)
        first = None
        for changes in given.changes:
            first = _measure(tables[given.into], given.into, changes, given.repeats, first)
    os._exit(0)  # Spark's own end takes seconds


def _measure(table: Grown, rows: int, changes: int, repeats: int, first: float | None) -> float:
    """Print a line; returns the seconds that others are compared with: `first`, or these where there is none."""
    new = changes * 3 // 10
    table.run(changes, new)
    took = [table.run(changes, new) for _ in range(repeats)]
    told = [spread([each[part] for each in took]) for part in ("staging", "final", "run")]
    models = statistics.median(each["staging"] + each["final"] for each in took)
    print(f"{rows:,}", f"{changes:,}", *told, f"{models / (first or models):.2f}", sep=", ", flush=True)
    return first or models


if __name__ == "__main__":
    main()
