"""B9: a first load beside one CREATE TABLE AS SELECT of the same file

Each in a fresh process, in turns: `dbt run` of a project with one table (ledger, staging, history, final), with settings as they
come and with `tuned_for: large_tables`, and the one statement, with generated code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.compare import finals_of
from bench.contestants import delta_cdc
from bench.data import ROW, Table
from bench.process import Sample, cost_of
from bench.result import Result, ratio
from bench.warm import say

SIZES = {
    "small": {"rows": 1_000_000, "kind": "json", "repeats": 1},
    "full": {"rows": 10_000_000, "kind": "json", "repeats": 3},
}
ROWS = """
select 'I' as op, id + 1 as seq, id + 1 as id, concat('customer ', id * 7919 % 1000003) as name,
  cast(id * 104729 % 10000000 / 100 as decimal(12,2)) as amount, date_add(date'2024-01-01', cast(id * 7919 % 731 as int)) as day
from range(0, {rows}, 1, 1)
"""
SESSION = """
from dbt.adapters.sparkdelta.session import root_session
spark = root_session(root={root!r}, tuned_for="large_tables")
"""
WRITE = SESSION + "spark.sql({sql!r}).write.{kind}({out!r})\n"
CTAS = (
    SESSION + "spark.read.schema({schema!r}).{kind}({file!r}).createOrReplaceTempView('feed')\n"
    "spark.sql('create table final_t00 using delta as select * from feed')\n"
)
PLAIN = "one CREATE TABLE AS SELECT"


def measure(work: Path, *, rows: int, kind: str, repeats: int) -> Result:
    """kind: json or parquet."""
    written = WRITE.format(root=str(work / "made"), sql=ROWS.format(rows=rows), kind=kind, out=str(work / "out"))
    cost_of([sys.executable, "-c", written], log=work / "made.log")
    (made,) = (work / "out").glob("part-*")
    contestants: dict[str, Callable[[Path], tuple[Sequence[str], Path]]] = {
        "delta_cdc": lambda folder: _ours(folder, made, rows, kind, "small_tables"),
        "delta_cdc, tuned_for: large_tables": lambda folder: _ours(folder, made, rows, kind, "large_tables"),
        PLAIN: lambda folder: _plain(folder, made, kind),
    }
    samples: dict[str, list[Sample]] = {title: [] for title in contestants}
    finals = {}
    for turn in range(repeats):
        names = list(contestants)
        for place, title in enumerate(names[turn % 3 :] + names[: turn % 3]):
            folder = work / f"{turn}_{place}"
            folder.mkdir()
            command, finals[title] = contestants[title](folder)
            sample = cost_of(command, log=folder / "log")
            say(f"{title}: {sample}")
            samples[title].append(sample)
    found = finals_of(work / "compare", ["t00"], list(finals.values()))
    values = {tuple(each["t00"]) for each in found.values()}
    assert len(values) == 1, f"the finals differ, rows and hash: {found}"
    assert values.pop()[0] == str(rows)
    wall = {title: [each.wall_seconds for each in some] for title, some in samples.items()}
    return {
        "tables": [
            {
                "head": [f"{rows:,} rows, {made.stat().st_size / 1e6:,.0f} MB of {kind}", "wall, s", "CPU, s", "peak, MB"],
                "rows": [
                    [title, wall[title], [each.cpu_seconds for each in some], [each.peak_mb for each in some]]
                    for title, some in samples.items()
                ],
            }
        ],
        "targets": [ratio(f"{title} to {PLAIN}", wall[title], wall[PLAIN], 2.5) for title in wall if title != PLAIN],
        "plots": [],
        "compared": "The finals and the plain table had the same rows, in count and content.",
    }


def _ours(folder: Path, made: Path, rows: int, kind: str, tuned_for: str) -> tuple[Sequence[str], Path]:
    ours = delta_cdc(folder, [Table("t00", rows, False)], {"file_format": kind}, {"tuned_for": tuned_for})
    landing = folder / "landing" / "t00" / f"0000.{kind}"
    landing.parent.mkdir(parents=True)
    os.link(made, landing)
    return ours.command, ours.finals


def _plain(folder: Path, made: Path, kind: str) -> tuple[Sequence[str], Path]:
    script = CTAS.format(root=str(folder / "lake"), schema=ROW, kind=kind, file=str(made))
    return [sys.executable, "-c", script], folder / "lake" / "warehouse"
