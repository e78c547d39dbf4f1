"""The feed of the benchmark: tables of flat rows, change sets as JSON lines, the same for the same seed.

A line: op (I, U, D), seq (grows by one a change), id, name, amount, day (fixed for an id, over 24 months). A delete
has all columns too. Change set 0 holds a table's rows, each further one 1,000 changes of random keys: three in ten
insert a new key, one in ten deletes, the others update, or insert again what was deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random

SEED = 20240229
CHANGES = 1000
BIG_TABLES = 6
PARTITIONED_TABLES = 3
COLUMNS = {
    "op": "string",
    "seq": "bigint",
    "id": "bigint",
    "name": "string",
    "amount": "decimal(12,2)",
    "day": "date",
}
ROW = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
MONTH = "date_format(day, 'yyyy-MM') as month"
MONTHS = {"partition_by": [MONTH]}
CLUSTERED = {"cluster_by": ["id"]}
DAYS = [str(date(2024, 1, 1) + timedelta(days=n)) for n in range(731)]


@dataclass(frozen=True)
class Table:
    """partitioned: final by the month of `day`. clustered: final by `id`."""

    name: str
    rows: int
    partitioned: bool
    clustered: bool = False


def tables(count: int, rows: int, big: int) -> list[Table]:
    """The first six are big; three of those are partitioned, the others clustered."""
    return [
        Table(f"t{n:02d}", big if n < BIG_TABLES else rows, n < PARTITIONED_TABLES, PARTITIONED_TABLES <= n < BIG_TABLES)
        for n in range(count)
    ]


def change_set_name(number: int) -> str:
    return f"{number:04d}.jsonl"


def write_change_sets(folder: Path, table: Table, *, change_sets: int, seed: int = SEED) -> list[int]:
    """Write change set 0 and `change_sets` others to folder; returns how many rows the table has after each of them."""
    folder.mkdir(parents=True)
    random = Random(f"{seed} {table.name}")
    lines = _lines(table.rows, random)
    live = []
    for number in range(change_sets + 1):
        with open(folder / change_set_name(number), "w", encoding="utf-8") as file:
            for _ in range(CHANGES if number else table.rows):
                rows, line = next(lines)
                file.write(line)
        live.append(rows)
    return live


def _lines(rows: int, random: Random) -> Iterator[tuple[int, str]]:
    """Each change as a line, with the number of rows after it: first the inserts of all rows, then changes without end."""
    deleted: set[int] = set()
    last_id = seq = 0
    while True:
        seq += 1
        chance = random.random()
        if seq <= rows or chance < 0.3:
            op, key = "I", last_id + 1
            last_id = key
        else:
            key = random.randint(1, last_id)
            op = "I" if key in deleted else "D" if chance < 0.4 else "U"
        if op == "D":
            deleted.add(key)
        else:
            deleted.discard(key)
        row = {
            "op": op,
            "seq": seq,
            "id": key,
            "name": f"customer {random.randrange(10**6)}",
            "amount": random.randrange(10**7) / 100,
            "day": DAYS[key * 7919 % len(DAYS)],
        }
        yield last_id - len(deleted), json.dumps(row) + "\n"
