"""A table that has many rows without having been loaded for hours, and change sets for it.

Its newest million rows come by a first load. The older ones are copies of these with lower keys and positions, inserted into
staging and final, a million at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.scenarios.project import UserProject

from bench.warm import SCHEMA, VALUES, deliver, large_session, run_seconds, say, warm_project

DAYS = 731  # a day comes again after so many keys
LOADED = DAYS * 1367  # a million, so a copy's day is that of its own key
# Keys one beside the other: the newest, and new ones.
RECENT = (
    "select case when id > {top} then 'I' when id % 10 = 0 then 'D' else 'U' end as op, {seq} + id - {low} + 1 as seq, id,"
    + VALUES
    + "from range({low}, {high}, 1, 1)"
)
# Old ones so far apart, then new ones.
SCATTERED = (
    "select case when n >= {old} then 'I' when n % 10 = 0 then 'D' else 'U' end as op, {seq} + n + 1 as seq, id,"
    + VALUES
    + "from (select id as n, if(id < {old}, {first} + id * {step}, {top} + 1 + id - {old}) as id from range(0, {changes}, 1, 1))"
)

# Which old keys are changed: the newest, some all over the table, some all over it that have one day.
Keys = Literal["recent", "scattered", "one day"]


@dataclass
class Grown:
    """A table and its feed. keys: lowest and highest of those that it had at first. top: its highest key. seq: its highest
    position. newest: that before the newest change set, of which `wanted` rows are in final after its run."""

    project: UserProject
    session: Any
    landing: Path
    name: str
    keys: tuple[int, int]
    top: int
    seq: int
    change_sets: int = 0
    newest: int = 0
    wanted: int = 0

    @classmethod
    def of(cls, project: UserProject, session: Any, landing: Path, rows: int) -> Grown:
        """The table of the landing folder's name, which gets its rows."""
        loaded = min(rows, LOADED)
        copies = rows // loaded - 1
        before = rows - loaded
        table = cls(project, session, landing, landing.name, (before - copies * loaded + 1, rows), before, before)
        table.run(loaded, new=loaded)
        table.copy_down(loaded, copies)
        say(f"{table.name}: {table.describe()}")
        return table

    @classmethod
    def all_of(cls, work: Path, rows: dict[str, int], partitioned: tuple[str, ...] = ()) -> dict[str, Grown]:
        """A project with tables of so many rows; by name."""
        project = warm_project(work, list(rows), partitioned=partitioned)
        session = large_session(project)
        return {name: cls.of(project, session, work / "landing" / name, count) for name, count in rows.items()}

    def run(self, changes: int, new: int, keys: Keys = "recent") -> dict[str, float]:
        """Deliver a change set, of which `new` are of new keys, and run."""
        self.deliver(changes, new, keys)
        took = run_seconds(self.project, self.name)
        self.check()
        return took

    def deliver(self, changes: int, new: int, keys: Keys = "recent") -> Path:
        """A change set's file. A tenth of the changes of old keys are deletes."""
        old, salt = changes - new, self.change_sets
        if keys != "recent":
            # not among the newest, which other change sets delete; never the same ones twice
            lowest, highest = self.keys
            step = (highest - lowest) * 8 // 10 // old
            if keys == "one day":
                step -= step % DAYS
            assert salt < step, "too few rows for so many scattered change sets"
            first = lowest + (highest - lowest) // 10 + salt
            sql = SCATTERED.format(old=old, seq=self.seq, first=first, step=step, top=self.top, changes=changes, salt=salt)
            deleted = -(-old // 10)
        else:
            low, high = self.top - old + 1, self.top + new + 1
            sql = RECENT.format(top=self.top, seq=self.seq, low=low, high=high, salt=salt)
            deleted = self.top // 10 - (low - 1) // 10
        self.change_sets += 1
        path = self.landing / f"{self.change_sets:04d}.jsonl"
        deliver(self.session, sql, path)
        self.newest, self.wanted = self.seq, changes - deleted
        self.top, self.seq = self.top + new, self.seq + changes
        return path

    def check(self) -> None:
        """Final has the rows of the newest change set, without those that it deletes."""
        found = self.session.sql(f"select count(*) from {SCHEMA}.final_{self.name} where seq > {self.newest}").collect()[0][0]
        assert found == self.wanted, f"{found} rows of {self.wanted} are in final"

    def copy_down(self, rows: int, times: int) -> None:
        """Insert the first load's rows again, so many times, each with lower keys."""
        for table in (f"stg_feed__{self.name}", f"final_{self.name}"):
            loaded = f"{SCHEMA}.{table} version as of {self.project.delta(table).version()}"
            columns = self.session.table(f"{SCHEMA}.{table}").columns
            for down in range(rows, rows * times + 1, rows):
                lower = {
                    "id": f"id - {down}", "seq": f"seq - {down}", "_cdc_sequence": f"struct(_cdc_sequence.seq - {down} as seq)"
                }  # fmt: skip
                chosen = ", ".join(f"{lower[name]} as {name}" if name in lower else f"`{name}`" for name in columns)
                self.session.sql(f"insert into {SCHEMA}.{table} by name select {chosen} from {loaded}")

    def describe(self) -> str:
        sizes = []
        for table in (f"stg_feed__{self.name}", f"final_{self.name}"):
            told = self.session.sql(f"describe detail {SCHEMA}.{table}").collect()[0]
            sizes.append(f"{told['numFiles']} files, {told['sizeInBytes'] / 1e6:,.0f} MB")
        return f"staging {sizes[0]}; final {sizes[1]}"


PARTS = ("staging", "final", "both", "run")


def repeated(tables: Sequence[Grown], changes: int, repeats: int, keys: Keys = "recent") -> list[dict[str, list[float]]]:
    """For each table, seconds of each part of so many runs, each with a change set of such keys. The tables take
    turns, for Java goes on compiling and later runs are quicker; the first turn does not count."""
    new = changes * 3 // 10
    turns = [[table.run(changes, new, keys) for table in tables] for _ in range(repeats + 1)][1:]
    took = list(zip(*turns, strict=True))
    for table, runs in zip(tables, took, strict=True):
        say(f"{table.name}, {changes:,} changes: {[round(each['both'], 1) for each in runs]} s")
    return [{part: [round(each[part], 2) for each in runs] for part in PARTS} for runs in took]
