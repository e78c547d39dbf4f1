"""python -m bench.compare SPARK_FOLDER OUT TABLE… -- FOLDER…

For each warehouse folder and table, the number of live rows and a hash over their columns, as JSON in the file OUT:
{folder: {table: [rows, hash]}}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.process import cost_of
from dbt.adapters.sparkdelta.session import root_session

# of a table: its rows, and a hash over them in any order
CONTENT = ("count(*)", "sum(cast(xxhash64(id, seq, name, amount, day) as decimal(38,0)))")

Finals = dict[str, dict[str, list[str]]]


def finals_of(folder: Path, tables: Iterable[str], finals: Iterable[Path]) -> Finals:
    """What a process of this module finds, which works in a folder. All that it starts has ended then, and is in no sample."""
    out = folder / "finals.json"
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "bench.compare", str(folder / "lake"), str(out), *tables, "--", *map(str, finals)]
    cost_of(command, log=folder / "log")
    found: Finals = json.loads(out.read_text())
    return found


def differences(live: Mapping[str, int], finals: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """A line for each wrong table. live: rows that the feed leaves. finals: of each contestant and table, rows and hash."""
    wrong = []
    for table, rows in live.items():
        values = {title: tuple(found[table]) for title, found in finals.items()}
        if len(set(values.values())) > 1 or any(value[0] != str(rows) for value in values.values()):
            wrong.append(f"  {table}, {rows} rows expected; rows and hash: {values}")
    return wrong


def main(spark_folder: str, out: str, *arguments: str) -> None:
    cut = arguments.index("--")
    spark = root_session(root=spark_folder, tuned_for="large_tables")
    found: Finals = {}
    for folder in arguments[cut + 1 :]:
        found[folder] = {}
        for table in arguments[:cut]:
            rows = spark.read.format("delta").load(str(Path(folder) / f"final_{table}"))
            live = rows.where("not is_deleted") if "is_deleted" in rows.columns else rows
            found[folder][table] = [str(value) for value in live.selectExpr(*CONTENT).collect()[0]]
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
