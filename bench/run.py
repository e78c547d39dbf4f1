"""`make bench`: delta_cdc beside what one would write by hand, on the same data, with the same Spark settings.

Every contestant loads the tables and one change set (not measured). Cycle k then delivers change set k to each, in an
order that rotates, and measures a whole run in a fresh process (B1); then another one, with nothing new (B2). At the end
the finals have to be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.contestants import PACKAGE, THREADS, Contestant, contestants
from bench.data import CHANGES, Table, tables, write_change_sets
from bench.measure import Sample, measure
from bench.page import page

RESULTS = Path(__file__).resolve().parent / "results.json"
PAGE = PACKAGE / "docs" / "benchmarks.md"
SEED = 20240229
# Cycles before those that are measured: the rows, and a first change set (tables get what they get at their second load).
BEFORE = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--tables", type=int, default=65)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--big", type=int, default=1_000_000, help="rows of the six big tables")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="delta-cdc-bench-"))
    try:
        results = run(work, tables(given.tables, given.rows, given.big), given.repeats)
    except BaseException:
        print(f"Not finished; what there is stays in {work}", file=sys.stderr)
        raise
    shutil.rmtree(work)
    results["size"] = vars(given) | {"changes": CHANGES, "threads": THREADS, "seed": SEED}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))
    print(f"Wrote {RESULTS.relative_to(PACKAGE)} and {PAGE.relative_to(PACKAGE)}.")


def run(work: Path, of_tables: Sequence[Table], repeats: int) -> dict[str, Any]:
    """All that results.json holds but the sizes. Raises SystemExit where the finals differ: there are no results then."""
    machine = _machine()
    _say(f"writing {len(of_tables)} tables and {repeats + 1} change sets of each")
    feed = work / "feed"
    live = {
        table.name: write_change_sets(feed / table.name, table, change_sets=repeats + BEFORE - 1, seed=SEED)[-1]
        for table in of_tables
    }
    everyone = contestants(work, of_tables)
    samples: list[dict[str, Any]] = []

    def cycle(number: int, benchmark: str, order: Sequence[Contestant]) -> None:
        for contestant in order:
            if benchmark != "B2":
                contestant.deliver(feed, of_tables, number)
            first = contestant.first if number == 0 else ()
            log = contestant.folder / f"{benchmark}_{number}.log"
            sample = measure([*contestant.command, *first], log=log, environment=contestant.environment)
            _say(f"{benchmark} {number} {contestant.title}: {_text(sample)}")
            samples.append(
                {
                    "benchmark": benchmark,
                    "cycle": number,
                    "contestant": contestant.name,
                    **asdict(sample),
                    "disturbed": sample.disturbed,
                }
            )

    for number in range(BEFORE):
        cycle(number, "before", everyone)
    for number in range(BEFORE, BEFORE + repeats):
        turn = number % len(everyone)
        order = [*everyone[turn:], *everyone[:turn]]
        cycle(number, "B1", order)
        cycle(number, "B2", order)

    _say("comparing the finals")
    _compare(work, everyone, live)
    titles = {contestant.name: contestant.title for contestant in everyone}
    return {**machine, "contestants": titles, "equal_finals": True, "samples": samples}


def _compare(work: Path, everyone: Sequence[Contestant], live: Mapping[str, int]) -> None:
    """Every final has the rows that the feed leaves, and all contestants the same ones."""
    command = [sys.executable, "-m", "bench.compare", str(work / "compare"), *live, "--", *(str(c.finals) for c in everyone)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE)
    if done.returncode != 0:
        raise SystemExit(f"The finals could not be compared:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    finals = {contestant.title: found[str(contestant.finals)] for contestant in everyone}
    wrong = differences(live, finals)
    if wrong:
        raise SystemExit("The contestants' finals differ, so their times mean nothing:\n" + "\n".join(wrong))


def differences(live: Mapping[str, int], finals: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """A line for each wrong table. live: rows that the feed leaves. finals: of each contestant and table, rows and hash."""
    wrong = []
    for table, rows in live.items():
        values = {title: tuple(found[table]) for title, found in finals.items()}
        if len(set(values.values())) > 1 or any(value[0] != str(rows) for value in values.values()):
            wrong.append(f"  {table}, {rows} rows expected; rows and hash: {values}")
    return wrong


def _machine() -> dict[str, Any]:
    def said(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE)
        return (done.stdout or done.stderr).strip()

    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    cpus = [line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")]
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": said("git", "rev-parse", "HEAD"),
        "uncommitted_changes": bool(said("git", "status", "--porcelain", ".", f":!{RESULTS}", f":!{PAGE}")),
        "machine": {
            "cpu": cpus[0] if cpus else platform.machine(),
            "cores": os.cpu_count(),
            "memory_gb": round(memory_kb / 1024**2, 1),
            "kernel": platform.release(),
        },
        "versions": {
            "python": platform.python_version(),
            "java": (said("java", "-version").splitlines() or ["unknown"])[0],
            **{name: metadata.version(name) for name in ("pyspark", "delta-spark", "dbt-core", "dbt-spark", "dbt-delta-cdc")},
        },
    }


def _text(sample: Sample) -> str:
    text = f"{sample.wall_seconds} s, {sample.cpu_seconds} s CPU, {sample.peak_mb:.0f} MB"
    return text + (f" (others used {sample.other_cpu_seconds} s CPU meanwhile)" if sample.disturbed else "")


def _say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", flush=True)


if __name__ == "__main__":
    main()
