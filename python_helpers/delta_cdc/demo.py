"""`make demo`: a real PostgreSQL history, delivered change set by change set, compared with what the database held.

Run from the project's folder. Everything it makes is in target/demo.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from delta_cdc.warm_dbt import WarmDbt, progress_on

ROOT = Path("target/demo")
LANDING = ROOT / "landing"
CHANGE_SETS = Path("seeds/shop")
DATABASE = Path("tests/cases/postgres/final")
SCHEMA = "shop"

# The fourth comes before the third: late changes are part of any real feed.
DELIVERIES = ["0001", "0002", "0004", "0003", "0005", "0006"]
# Delivered once more under new names: the newest, and the oldest of all, months late so to say.
AGAIN = {"0006": "0007", "0001": "0008"}

# What the feed does not say, so that final cannot know it.
GAPS = {
    ("customer", "tier"): "ADD COLUMN … DEFAULT 'basic' sends nothing for the rows that were there",
}


@dataclass(frozen=True)
class Comparison:
    """rows: how many final has. differing: how many rows are on one side only. gaps: columns that no feed can know.
    example: a few of the differing rows, for a person."""

    rows: int
    differing: int
    gaps: tuple[str, ...]
    example: str = ""


def main() -> int:
    """Returns the exit code: 0 if every table equals the database and the second delivery changed nothing."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    shutil.rmtree(ROOT, ignore_errors=True)
    LANDING.mkdir(parents=True)
    os.environ["DBT_PROFILES_DIR"] = "profiles"
    dbt = WarmDbt(Path("."), ["--target", "demo", "--vars", json.dumps({"demo_landing": str(LANDING.absolute())})])
    started = time.monotonic()
    console.print(
        "A PostgreSQL 15 database, four clients writing, captured with wal2json: "
        f"{len(DELIVERIES)} change sets, one `dbt run` each.\n"
    )
    with progress_on(console) as progress:
        for number, name in enumerate(DELIVERIES, 1):
            late = " (late)" if DELIVERIES[: number - 1] and name < max(DELIVERIES[: number - 1]) else ""
            _deliver(name, name)
            _dbt_run(dbt, progress, f"change set {name}{late}, {number} of {len(DELIVERIES)}")

    session = _session()
    tables = sorted(path.stem for path in DATABASE.glob("*.csv"))
    equal = _show_comparison(console, session, tables)

    before = _contents(session)
    console.print("\nNow the newest change set comes a second time, and the oldest of all comes again, late.")
    with progress_on(console) as progress:
        for name, again in AGAIN.items():
            _deliver(name, again)
        _dbt_run(dbt, progress, "change sets 0006 and 0001 again")
    unchanged = _show_unchanged(console, before, _contents(session))

    console.print(f"\n{_minutes(time.monotonic() - started)}. The tables are in {ROOT}/lake, schema {SCHEMA}.")
    return 0 if equal and unchanged else 1


def _deliver(name: str, under: str) -> None:
    # as a landing folder should be filled: under a hidden name first, so that no half file is ever taken
    hidden = LANDING / f".{under}"
    shutil.copyfile(CHANGE_SETS / f"{name}.jsonl.gz", hidden)
    hidden.rename(LANDING / f"{under}.jsonl.gz")


def _dbt_run(dbt: WarmDbt, progress: Progress, title: str) -> None:
    result = dbt.run(progress, title, "run")
    if not result.success:
        progress.stop()
        failed = getattr(result.result, "results", None) or []
        lines = [f"{r.node.name}: {r.message}" for r in failed if str(r.status) == "error"]
        sys.exit("\n".join(["The run failed.", *lines, str(result.exception or "")]).rstrip())


def _session() -> Any:
    from dbt.adapters.sparkdelta.session import root_session

    return root_session(root=ROOT / "lake")


def _show_comparison(console: Console, session: Any, tables: list[str]) -> bool:
    runs = {
        (row["table"], row["layer"]): row
        for row in session.sql(
            f"select `table`, layer, sum(rows_read) as rows_read, sum(rows_duplicate) as duplicates, sum(rows_late) as late,"
            f" sum(rows_quarantined) as quarantined, sum(rows_inserted) as inserted, sum(rows_updated) as updated,"
            f" sum(rows_deleted) as deleted from {SCHEMA}.cdc_runs group by all"
        ).collect()
    }
    shown = Table(title="Every table against what the database itself held", title_justify="left")
    shown.add_column("table")
    for column in ("changes", "duplicates", "late", "quarantined", "inserted", "updated", "deleted", "final rows"):
        shown.add_column(column, justify="right")
    shown.add_column("equals the database")
    all_equal, gaps = True, []
    comparisons = _of_each(
        tables, lambda table: compare(session, f"{SCHEMA}.final_demo_{table}", DATABASE / f"{table}.csv", table)
    )
    for table, comparison in comparisons.items():
        staged, final = runs.get((f"stg_demo__{table}", "staging")), runs.get((f"final_demo_{table}", "final"))
        all_equal &= comparison.differing == 0
        verdict = "[green]yes[/]" if comparison.differing == 0 else f"[red]no: {comparison.differing} rows differ[/]"
        if comparison.gaps:
            verdict += f", but {', '.join(comparison.gaps)}"
            gaps += [(table, column) for column in comparison.gaps]
        cells = [
            *(staged[c] if staged else 0 for c in ("rows_read", "duplicates", "late", "quarantined")),
            *(final[c] if final else 0 for c in ("inserted", "updated", "deleted")),
            comparison.rows,
        ]
        shown.add_row(table, *(f"{cell or 0:,}" for cell in cells), verdict)
    console.print(shown)
    for table, column in gaps:
        console.print(f"  {table}.{column}: {GAPS[table, column]}.")
    return all_equal


def compare(session: Any, relation: str, expected: Path, table: str, *, without: Collection[str] = ()) -> Comparison:
    """Compare a table with a CSV file that the database wrote (null as \\N), value by value, but for some columns."""
    with expected.open(newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file))
    kept = [i for i, name in enumerate(header) if name not in without]
    names, lines = [header[i] for i in kept], [[line[i] for i in kept] for line in lines]
    frame = session.table(relation).select(*[f"`{name}`" for name in names])
    types = [field.dataType.typeName() for field in frame.schema.fields]
    gaps = [i for i, name in enumerate(names) if (table, name) in GAPS]
    there = Counter(
        tuple(None if text == "\\N" or i in gaps else _from_text(text, types[i]) for i, text in enumerate(line)) for line in lines
    )
    here = Counter(
        tuple(None if i in gaps else _from_spark(value, types[i]) for i, value in enumerate(row)) for row in frame.collect()
    )
    lost, extra = there - here, here - there
    example = "".join(f"{sign} {row}\n" for sign, rows in (("-", lost), ("+", extra)) for row in list(rows)[:3])
    return Comparison(sum(here.values()), max(lost.total(), extra.total()), tuple(names[i] for i in gaps), example)


def _from_text(text: str, type_name: str) -> Any:
    """A value as PostgreSQL writes it, as the Python value that stands for it."""
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda t: t == "t",
        "float": lambda t: _single(float(t)),
        "double": float,
        "decimal": lambda t: Decimal(t).normalize(),
        "date": date.fromisoformat,
        "timestamp_ntz": _moment,
        "timestamp": lambda t: _moment(t + ":00" if t[-3] in "+-" else t).astimezone(timezone.utc),
        "binary": lambda t: bytes.fromhex(t.removeprefix("\\x")),
    }
    if type_name in ("byte", "short", "integer", "long"):
        return int(text)
    return readers.get(type_name, str)(text)


def _moment(text: str) -> datetime:
    """Python 3.10 wants all six digits of a fraction."""
    return datetime.fromisoformat(re.sub(r"\.\d+", lambda fraction: fraction[0].ljust(7, "0"), text))


def _from_spark(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    if type_name == "decimal":
        return value.normalize()
    if type_name == "binary":
        return bytes(value)
    if type_name == "float":
        return _single(value)
    if type_name == "timestamp":
        return value.astimezone(timezone.utc)
    return value


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _contents(session: Any) -> dict[str, tuple[str, frozenset[str]]]:
    """Of every table that holds data: a hash of its rows, and the set of its data files."""
    from deltalake import DeltaTable

    names = sorted(
        row.tableName
        for row in session.sql(f"show tables in {SCHEMA}").collect()
        if row.tableName.startswith(("stg_", "int_", "final_"))
    )
    # one query for all: most of the time of a small one is not spent on its rows
    hashed = f"select '{{name}}' as name, xxhash64(to_json(struct(*))) as hash from {SCHEMA}.{{name}}"
    rows = " union all ".join(hashed.format(name=name) for name in names)
    content = f"select name, cast(sum(cast(hash as decimal(38, 0))) as string) from ({rows}) group by name"
    hashes = dict(session.sql(content).collect())
    lake = ROOT / "lake" / "warehouse" / f"{SCHEMA}.db"
    return {name: (hashes.get(name, ""), frozenset(DeltaTable(str(lake / name)).file_uris())) for name in names}


def _of_each(tables: Iterable[str], find_out: Callable[[str], Any]) -> dict[str, Any]:
    """One answer a table, in the tables' order. A small query waits more than it works: four at once."""
    names = list(tables)
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(names, pool.map(find_out, names), strict=True))


def _show_unchanged(console: Console, before: dict[str, Any], after: dict[str, Any]) -> bool:
    changed = [name for name in before if before[name] != after.get(name)]
    files = sum(len(files) for _, files in after.values())
    if changed:
        console.print(f"[red]Changed, though nothing new came: {', '.join(changed)}[/]")
        return False
    console.print(
        f"[green]Nothing changed[/]: {len(after)} tables (staging, keys, final) have the same content hash and the same "
        f"{files} data files as before."
    )
    return True


def _minutes(seconds: float) -> str:
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted. `make demo` begins anew.")
