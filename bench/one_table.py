"""B11: 1,000 changes into one table of a million rows

The whole run of a user's project with settings as they come: cold, each in a fresh process with the start of Python and of
the JVM, and warm, in a process that stays (as `delta-cdc run --every`), after a run that does not count. Inserts, updates and
deletes of random keys. No rival runs here: what is published of Spark's AUTO CDC for the same work, measured elsewhere,
stands beside it."""

from __future__ import annotations

from pathlib import Path

from bench.compare import finals_of
from bench.contestants import delta_cdc
from bench.data import Table, write_change_sets
from bench.process import cost_of
from bench.resident import run_resident
from bench.result import Result, ratio
from bench.warm import say

SIZES = {
    "small": {"rows": 1_000_000, "repeats": 3, "warm": 5},
    "full": {"rows": 1_000_000, "repeats": 5, "warm": 15},
}
ELSEWHERE = {"cold": 42.0, "warm": 13.6}  # seconds
MOST = 0.6  # of what it takes


def measure(work: Path, *, rows: int, repeats: int, warm: int) -> Result:
    tables = [Table("t00", rows, False)]
    feed = work / "feed"
    live = write_change_sets(feed / "t00", tables[0], change_sets=repeats + warm + 2)
    ours = delta_cdc(work / "delta_cdc", tables)
    samples = []
    for number in range(repeats + 2):  # the rows, and a first change set, do not count
        ours.deliver(feed, tables, number)
        samples.append(cost_of(ours.command, log=ours.folder / f"{number}.log"))
        say(f"{number}: {samples[-1]}")
    cold = samples[2:]
    cycles = [ours.links(feed, tables, number) for number in range(repeats + 2, repeats + 2 + warm + 1)]
    found, whole = run_resident(work / "resident", ours.folder / "project", cycles)
    counted = found[1:]
    say(f"warm: {found}")
    rows_found = finals_of(work / "compare", ["t00"], [ours.finals])[str(ours.finals)]["t00"][0]
    assert rows_found == str(live[-1]), f"{rows_found} rows of {live[-1]} are in final"
    walls = {"cold": [each.wall_seconds for each in cold], "warm": [each["wall"] for each in counted]}
    return {
        "tables": [
            {
                "head": [f"into {rows:,} rows", "wall, s", "CPU, s", "peak, MB", "AUTO CDC elsewhere, s"],
                "rows": [
                    ["cold", walls["cold"], [s.cpu_seconds for s in cold], [s.peak_mb for s in cold], ELSEWHERE["cold"]],
                    ["warm", walls["warm"], [each["cpu"] for each in counted], whole.peak_mb, ELSEWHERE["warm"]],
                ],
            }
        ],
        "targets": [
            ratio(f"{name}, to AUTO CDC's {ELSEWHERE[name]} s elsewhere", took, [ELSEWHERE[name]], MOST)
            for name, took in walls.items()
        ],
        "plots": [],
        "compared": "At the end final had as many rows as the feed leaves.",
    }
