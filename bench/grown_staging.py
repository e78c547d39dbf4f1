"""B7: late changes, before and after staging has grown

Change sets of 1,000 rows with no late change, with one in a hundred that updates a key of the newest two sets, and with as
many all over the table. Staging begins with a run's rows and grows by inserts of new keys, some change sets a run, in one
warm process; the models' times before and after are of runs after one that does not count, and before all of them there is a
round that does not. Staging is as it was before the last of these runs, and files read are those of staging in that run, by the
largest read of each model (Spark's event log), beside those that have changes of its late keys."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.scenarios.project import UserProject

from bench.data import CHANGES
from bench.result import Cell, Result, Target, target
from bench.warm import SCHEMA, VALUES, deliver, event_log, large_session, rounded, run_seconds, say, warm_project

SIZES = {
    "small": {"sets": 100, "rows": 2_000_000, "sets_a_run": 20, "repeats": 3},
    "full": {"sets": 1_000, "rows": 20_000_000, "sets_a_run": 20, "repeats": 5},
}
# Every change is at an even position; a late one at the odd one behind the insert of its key.
ON_TIME = "select 'I' as op, 2 * id as seq, id," + VALUES + "from range({low}, {high}, 1, {sets})"
LATE = (
    "select 'U' as op, 2 * id + 1 as seq, id,"
    + VALUES
    + "from (select {top} - id * {step} - {salt} as id from range(0, {late}, 1, 1))"
)
STAGING = f"{SCHEMA}.stg_feed__t"


@dataclass
class Feed:
    """top: the highest key so far."""

    project: UserProject
    session: Any
    landing: Path
    events: Path
    top: int = 0
    change_sets: int = 0
    first: dict[str, float] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)
    shown: list[list[Cell]] = field(default_factory=list)

    def deliver(self, rows: int, sets: int = 1, late: int = 0, step: int = 0) -> None:
        """So many change sets of so many rows; with late changes it is one."""
        high = self.top + rows * sets - late
        sql = ON_TIME.format(low=self.top + 1, high=high + 1, sets=sets, salt=self.change_sets)
        if late:
            late_ones = LATE.format(top=self.top, late=late, step=step, salt=self.change_sets)
            sql = f"select /*+ coalesce(1) */ * from ({sql} union all {late_ones})"
        names = [f"{self.change_sets + number:06d}.jsonl" for number in range(sets)]
        deliver(self.session, sql, *(self.landing / name for name in names))
        self.top, self.change_sets = high, self.change_sets + sets

    def measure(self, changes: int, repeats: int, newest: int) -> None:
        """Add rows to `shown`: what late changes cost now, and how much that is of what they cost at first."""
        late = max(changes // 100, 1)
        for kind, span in {"none": 0, "of the newest sets": newest, "all over": self.top}.items():
            took, staging, version = [], "", 0
            keys: list[int] = []
            for _ in range(repeats + 1):  # the first does not count
                staging, version = self.describe(), self.project.delta("stg_feed__t").version()
                keys = [self.top - number * (span // late) - self.change_sets for number in range(late if span else 0)]
                self.deliver(changes, late=late if span else 0, step=span // late)
                end = self._logged()
                took.append(run_seconds(self.project, "t"))
                read = files_read(self.events, end)
                self.check(keys)
            parts = {part: rounded([each[part] for each in took[1:]]) for part in ("staging", "final", "both")}
            first = self.first.setdefault(kind, median(parts["both"]))
            self.growth[kind] = median(parts["both"]) / first
            files = [self.files_with(keys, version), *(read.get(model, 0) for model in ("staging", "final"))]
            self.shown.append([staging, kind, *parts.values(), round(self.growth[kind], 2), *files])
            say(f"{self.shown[-1]}")

    def describe(self) -> str:
        told = self.session.sql(f"describe detail {STAGING}").collect()[0]
        return f"{self.change_sets} sets, {self.top:,} keys, {told['numFiles']} files, {told['sizeInBytes'] / 1e6:,.0f} MB"

    def files_with(self, keys: list[int], version: int) -> int:
        """How many of staging's files, as they were at a version, have changes of these keys."""
        values = ", ".join(map(str, keys)) or "null"
        sql = f"select count(distinct _metadata.file_path) from {STAGING} version as of {version} where id in ({values})"
        return int(self.session.sql(sql).collect()[0][0])

    def check(self, late: list[int]) -> None:
        """Final has each key once, and the late updates of this change set."""
        values = ", ".join(map(str, late)) or "null"
        rows, updated = self.session.sql(
            f"select count(*), count_if(id in ({values}) and seq = 2 * id + 1) from {SCHEMA}.final_t"
        ).collect()[0]
        assert (rows, updated) == (self.top, len(late)), f"{rows} rows of {self.top}, {updated} late ones of {len(late)}"

    def _logged(self) -> int:
        (log,) = self.events.iterdir()
        return log.stat().st_size


def files_read(events: Path, begin: int) -> dict[str, int]:
    """{model: most files of staging that any of its statements read}, from the event log behind `begin`."""
    time.sleep(2)  # Spark writes it behind the statements
    (log,) = events.iterdir()
    statements: dict[int, str] = {}
    scans: dict[int, int] = {}
    found: dict[str, int] = {}
    with log.open(encoding="utf-8") as lines:
        lines.seek(begin)
        for line in lines:
            if "org.apache.spark.sql.execution.ui" not in line[:80]:
                continue
            event = json.loads(line)
            kind, execution = event["Event"].rsplit(".", 1)[1], event.get("executionId")
            if kind == "SparkListenerSQLExecutionStart":
                statements[execution] = event["description"]
            if "sparkPlanInfo" in event:
                scans |= {counter: execution for counter in _file_counters(event["sparkPlanInfo"])}
            for counter, value in event.get("accumUpdates", []):
                if counter in scans:
                    model = "final" if "final_t" in statements.get(execution, "") else "staging"
                    found[model] = max(found.get(model, 0), value)
    return found


def _file_counters(plan: dict[str, Any]) -> Iterator[int]:
    if "Scan" in plan["nodeName"] and STAGING in plan["nodeName"]:
        yield from (each["accumulatorId"] for each in plan["metrics"] if each["name"] == "number of files read")
    for child in plan["children"]:
        yield from _file_counters(child)


def measure(work: Path, *, sets: int, rows: int, sets_a_run: int, repeats: int) -> Result:
    """sets, rows: that staging grows to."""
    (work / "events").mkdir()
    project = warm_project(work, ["t"], event_log(work / "events"))
    feed = Feed(project, large_session(project), work / "landing" / "t", work / "events")
    size = rows // sets
    feed.deliver(size, sets_a_run)
    run_seconds(project, "t")
    feed.measure(CHANGES, repeats, 2 * size)  # Java compiles meanwhile: beside these, grown staging was quicker than the first
    feed.first, feed.growth, feed.shown = {}, {}, []
    feed.measure(CHANGES, repeats, 2 * size)
    started = time.monotonic()
    while feed.change_sets < sets:
        feed.deliver(size, sets_a_run)
        run_seconds(project, "t")
        say(f"{feed.change_sets} sets of {sets} after {time.monotonic() - started:.0f} s")
    feed.measure(CHANGES, repeats, 2 * size)
    seconds = ["staging, s", "final, s", "both, s"]
    head = ["staging", "late keys", *seconds, "to the first", "files with the late keys", "that staging read", "final"]
    targets: list[Target] = [target(f"late keys {kind}: grown to first", value, 1.5) for kind, value in feed.growth.items()]
    return {
        "tables": [{"head": head, "rows": feed.shown}],
        "targets": targets,
        "plots": [],
        "compared": "After each measured run final had every key once, and the late updates.",
    }
