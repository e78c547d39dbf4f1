"""python -m bench.compare SPARK_FOLDER TABLE… -- FOLDER…

For each warehouse folder and table, the number of live rows and a hash over their columns, as JSON:
{folder: {table: [rows, hash]}}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.process import PACKAGE
from dbt.adapters.sparkdelta.session import root_session

COLUMNS = "id, seq, name, amount, day"

Finals = dict[str, dict[str, list[str]]]


def finals_of(spark_folder: Path, tables: Iterable[str], folders: Iterable[Path]) -> Finals:
    """What a process of this module says."""
    command = [sys.executable, "-m", "bench.compare", str(spark_folder), *tables, "--", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE)
    assert done.returncode == 0, f"the finals could not be compared:\n{done.stderr[-3000:]}"
    found: Finals = json.loads(done.stdout.splitlines()[-1])
    return found


def differences(live: Mapping[str, int], finals: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """A line for each wrong table. live: rows that the feed leaves. finals: of each contestant and table, rows and hash."""
    wrong = []
    for table, rows in live.items():
        values = {title: tuple(found[table]) for title, found in finals.items()}
        if len(set(values.values())) > 1 or any(value[0] != str(rows) for value in values.values()):
            wrong.append(f"  {table}, {rows} rows expected; rows and hash: {values}")
    return wrong


def main(spark_folder: str, *arguments: str) -> None:
    cut = arguments.index("--")
    spark = root_session(root=spark_folder, tuned_for="large_tables")
    found: Finals = {}
    for folder in arguments[cut + 1 :]:
        found[folder] = {}
        for table in arguments[:cut]:
            rows = spark.read.format("delta").load(str(Path(folder) / f"final_{table}"))
            live = rows.where("not is_deleted") if "is_deleted" in rows.columns else rows
            found[folder][table] = [
                str(value)
                for value in live.selectExpr("count(*)", f"sum(cast(xxhash64({COLUMNS}) as decimal(38,0)))").collect()[0]
            ]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
