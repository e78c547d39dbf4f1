"""What a late change costs once staging has grown: change sets with one late change in a hundred, before and after.

    python -m bench.grown_staging [--sets 1000] [--rows 5000000] [--sets-a-run 20] [--changes 1000] [--repeats 3]

Staging begins with a run's rows and grows by inserts of new keys, in one warm process, to `--sets` change sets and
`--rows` rows. The late changes update keys of the newest two sets, or keys all over the table. Prints wall seconds of
staging and final, and how many of staging's files each model's largest read of it took (Spark's event log).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.scenarios.project import UserProject

from bench.warm import SCHEMA, VALUES, deliver, large_session, run_seconds, spread, warm_project

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
        """Print what late changes cost now, and how much that is of what they cost at first."""
        late = max(changes // 100, 1)
        told = self.session.sql(f"describe detail {STAGING}").collect()[0]
        print(f"staging of {self.change_sets} change sets, {self.top:,} keys, {told['numFiles']} files, "
              f"{told['sizeInBytes'] / 1e6:,.0f} MB")  # fmt: skip
        for kind, span in {"none": 0, "of the newest sets": newest, "all over": self.top}.items():
            took = []
            for _ in range(repeats + 1):  # the first does not count
                self.deliver(changes, late=late if span else 0, step=span // late)
                end = self._logged()
                seconds = run_seconds(self.project, "t")
                took.append({"both": seconds["staging"] + seconds["final"], **seconds})
                read = files_read(self.events, end)
            staging, final, both = ([each[part] for each in took[1:]] for part in ("staging", "final", "both"))
            first = self.first.setdefault(kind, statistics.median(both))
            print(f"late keys {kind}: staging {spread(staging)} s, final {spread(final)} s, both {spread(both)} s")
            print(f"  {statistics.median(both) / first:.2f} of the first; files read: {read}", flush=True)

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--sets-a-run", type=int, default=20)
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        work = Path(folder)
        (work / "events").mkdir()
        project = warm_project(work, ["t"], {
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{work}/events",
            "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
        })  # fmt: skip
        feed = Feed(project, large_session(project), work / "landing" / "t", work / "events")
        size = given.rows // given.sets
        feed.deliver(size, given.sets_a_run)
        run_seconds(project, "t")
        feed.measure(given.changes, given.repeats, 2 * size)
        started = time.monotonic()
        while feed.change_sets < given.sets:
            feed.deliver(size, given.sets_a_run)
            run_seconds(project, "t")
        print(f"grown in {time.monotonic() - started:.0f} s")
        feed.measure(given.changes, given.repeats, 2 * size)
    os._exit(0)  # Spark's own end takes seconds


if __name__ == "__main__":
    main()
