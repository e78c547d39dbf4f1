"""B1, B2, B3, B1w: whole runs beside what one would write by hand

All contestants have the same data, heap and number of threads, and tables without deletion vectors unless they are large. A rival
stands here twice: with the Spark settings and JVM flags of delta_cdc, generated code for a table of over 200,000 rows included,
and as it comes, with Spark's own; the quicker one counts. They take turns, each run in a fresh process, the start of Python and
of the JVM included, the JVM's end not. The rows, and a first change set, do not count; a rival as it comes gets them with our
settings too, which is quicker.

- **B1** one change set of 1,000 inserts, updates and deletes for every table. **B2** the same tables, nothing new, with our
  settings; by `delta-cdc run` too, beside a `dbt run` of a project with one empty model. **B3** only five of the tables have
  a change set. **B1w** as B1, in a process that stays (as `delta-cdc run --every`), after a run that does not count; B3 and
  B1w are delta_cdc's alone.
- **delta_cdc** a user's project with the default settings: ledger, staging, history (views), final, the run's record.
- **(a)** [a hand-written PySpark loop](../bench/rivals/pyspark_loop.py): append to staging, newest change a key, one MERGE.
- **(b)** [a plain dbt project](../bench/rivals/dbt_stock/README.md): two stock incremental models a table, deletes are flags.

The peak is that of the largest process, the JVM. Other CPU is what everything else on the machine used meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import data
from bench.compare import differences, finals_of
from bench.contestants import COMMAND, EMPTY, FIRST, Contestant, by_command, contestants, one_empty_model
from bench.data import BIG_TABLES, PARTITIONED_TABLES, write_change_sets
from bench.process import Sample, cost_of
from bench.resident import run_resident
from bench.result import Cell, Plot, Result, Target, drift, ratio, target
from bench.warm import say

SIZES = {
    "small": {"tables": 65, "rows": 5_000, "big": 100_000, "repeats": 1, "warm": 4},
    "full": {"tables": 65, "rows": 5_000, "big": 1_000_000, "repeats": 3, "warm": 100},
}
# Cycles before those that are measured: the rows, and a first change set (tables get what they get at their second load).
BEFORE = 2
FEW = 5

Samples = Mapping[str, Mapping[str, Sequence[Sample]]]


def measure(work: Path, *, tables: int, rows: int, big: int, repeats: int, warm: int) -> Result:
    """big: rows of the six large tables. warm: runs of B1w."""
    chosen = data.tables(tables, rows, big)
    few = chosen[:: max(tables // FEW, 1)][:FEW]
    rest = [table for table in chosen if table not in few]
    # change sets: of B1, of B3, of B1w
    b3, b1w = BEFORE + repeats, BEFORE + 2 * repeats
    feed = work / "feed"
    say(f"writing {tables} tables and {b1w + warm} change sets of each")
    live = {table.name: write_change_sets(feed / table.name, table, change_sets=b1w + warm) for table in chosen}
    everyone = contestants(work, chosen)
    ours = everyone[0]
    command, empty = by_command(ours), one_empty_model(work / "empty")
    samples: dict[str, dict[str, list[Sample]]] = {}

    def run(benchmark: str, contestant: Contestant, number: int, deliver: Sequence[data.Table] = ()) -> None:
        contestant.deliver(feed, deliver, number)
        command = contestant.before or contestant.command if number < BEFORE else contestant.command
        first = contestant.first if number == 0 else ()
        log = contestant.folder / f"{benchmark}_{number}.log"
        sample = cost_of([*command, *first], log=log, environment=contestant.environment)
        say(f"{benchmark} {number} {contestant.title}: {sample}")
        samples.setdefault(benchmark, {}).setdefault(contestant.title, []).append(sample)

    for number in range(BEFORE):
        for contestant in everyone:
            run("before", contestant, number, chosen)
        run("before", empty, number)
    commits = 0
    for number in range(BEFORE, b3):
        turn = number % len(everyone)
        order = [*everyone[turn:], *everyone[:turn]]
        for contestant in order:
            run("B1", contestant, number, chosen)
        before = _commits(ours)
        with_our_settings = [contestant for contestant in order if not contestant.before]
        for contestant in (*with_our_settings, replace(command, title=FIRST), command, empty):
            run("B2", contestant, number)
        commits += _commits(ours) - before

    say("comparing the finals")
    found = finals_of(work / "compare", live, [contestant.finals for contestant in everyone])
    _agree({name: counts[b3 - 1] for name, counts in live.items()}, {c.title: found[str(c.finals)] for c in everyone})

    for number in range(b3, b1w):
        run("B3", ours, number, few)
    found = finals_of(work / "compare", [table.name for table in few], [ours.finals])
    _agree({table.name: live[table.name][b1w - 1] for table in few}, {ours.title: found[str(ours.finals)]})
    jobs = _jobs(ours)  # another target: dbt parses anew for it, and for the next run
    # the others get what they did not get with the few
    cycles = [[link for number in range(b3, b1w) for link in ours.links(feed, rest, number)] + ours.links(feed, chosen, b1w)]
    cycles += [ours.links(feed, chosen, number) for number in range(b1w + 1, b1w + 1 + warm)]
    resident, whole = run_resident(work / "resident", ours.folder / "project", cycles)
    say(f"B1w: {resident}")
    found = finals_of(work / "compare", live, [ours.finals])
    _agree({name: counts[-1] for name, counts in live.items()}, {ours.title: found[str(ours.finals)]})
    return _result(samples, resident[1:], whole, tables, len(few), big, rows, commits, jobs)


def _result(
    samples: Samples, resident: Sequence[Mapping[str, float]], whole: Sample,
    tables: int, few: int, big: int, rows: int, commits: int, jobs: int,
) -> Result:  # fmt: skip
    """resident: of each run of B1w. commits: of B2, to tables of the feed. jobs: of a run with nothing new."""
    shown: list[list[Cell]] = []
    wall = {name: {title: [s.wall_seconds for s in some] for title, some in each.items()} for name, each in samples.items()}
    for benchmark in ("B1", "B2", "B3"):
        for title, some in samples[benchmark].items():
            cpu, peak, other = ([getattr(s, key) for s in some] for key in ("cpu_seconds", "peak_mb", "other_cpu_seconds"))
            shown.append([benchmark, title, wall[benchmark][title], cpu, peak, other])
    walls, cpus, heaps = ([each[key] for each in resident] for key in ("wall", "cpu", "heap"))
    ours, loop, stock = (_quickest(wall["B1"], start) for start in ("delta", "(a)", "(b)"))
    shown.append(["B1w", ours, walls, cpus, whole.peak_mb, whole.other_cpu_seconds])
    cold = wall["B1"][ours]
    most = (median(wall["B2"][ours]) + few * median(cold) / tables) / median(cold)
    large = min(BIG_TABLES, tables)
    targets: list[Target] = [
        ratio(f"B1 to {loop}", cold, wall["B1"][loop], 1.3),
        ratio(f"B1 to {stock}", cold, wall["B1"][stock], 0.6),
        ratio("B1w to B1", walls, cold, 0.6),
        drift("B1w: heap after a collection", heaps),
        ratio("B2 to B1", wall["B2"][ours], cold, 0.25),
        ratio(f"B2: {COMMAND}, to a {EMPTY}", wall["B2"][COMMAND], wall["B2"][EMPTY], 1.2),
        target("B2: Spark jobs of the run, those of ledger and record included: fewer than tables", jobs, tables - 1),
        target("B2: commits to tables of the feed", commits, 0),
        ratio(f"B3 to B1; at most B2 and {few} tables' share of B1", wall["B3"][ours], cold, round(most, 6)),
    ]
    bars: Plot = {
        "title": f"{tables} tables, median seconds of a whole run",
        "x": "seconds",
        "bars": {
            f"{name} {title}": median(some) for name, each in wall.items() if name != "before" for title, some in each.items()
        }
        | {f"B1w {ours}": median(walls)},
    }
    heap: Plot = {"title": "B1w: a process that stays", "x": "run", "y": "MB of heap", "lines": {
        "heap after a collection": list(enumerate(heaps, 1))
    }}  # fmt: skip
    return {
        "tables": [{"head": ["", "", "wall, s", "CPU, s", "peak, MB", "other CPU, s"], "rows": shown}],
        "targets": targets,
        "plots": [bars, heap],
        "compared": (
            f"{tables - large} tables of {rows:,} rows, {large} of {big:,}, {min(PARTITIONED_TABLES, large)} of these partitioned"
            " by month, the others clustered by key. After B2 the finals of all contestants were equal, in count and content;"
            " after B3 and B1w delta_cdc's had as many rows as the feed leaves."
        ),
    }


def _quickest(wall: Mapping[str, Sequence[float]], start: str) -> str:
    """Of the contestants whose titles begin so."""
    return min((title for title in wall if title.startswith(start)), key=lambda title: median(wall[title]))


def _agree(live: Mapping[str, int], finals: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    wrong = differences(live, finals)
    assert not wrong, "The finals differ, so the times mean nothing:\n" + "\n".join(wrong)


def _commits(ours: Contestant) -> int:
    """To tables of the feed so far, that is, all but those that the tables share (cdc_…)."""
    return sum(1 for path in ours.finals.glob("[!c]*/_delta_log/*.json") if path.stem.isdigit())


def _jobs(ours: Contestant) -> int:
    """Spark jobs of one more run, that tells its events and is not measured."""
    cost_of([*ours.command, "--target", "counted"], log=ours.folder / "counted.log")
    (log,) = ours.folder.glob("local-*")
    with log.open(encoding="utf-8") as lines:
        return sum(1 for line in lines if '"SparkListenerJobStart"' in line[:60])
