"""What a first load costs beside a plain CREATE TABLE AS SELECT of the same file.

    python -m bench.first_load [--rows 1000000] [--kind json] [--tuned-for small_tables]

Each in a fresh process: `dbt run` of a project with one table (ledger, staging, history, final), then the one statement.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.contestants import PACKAGE, delta_cdc
from bench.data import COLUMNS, Table
from bench.measure import measure

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
    "spark.sql('create table t using delta as select * from feed')\n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=("json", "parquet"), default="json")
    parser.add_argument("--tuned-for", choices=("small_tables", "large_tables"), default="small_tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        work = Path(folder)
        written = WRITE.format(root=str(work / "made"), sql=ROWS.format(rows=given.rows), kind=given.kind, out=str(work / "out"))
        subprocess.run([sys.executable, "-c", written], check=True, stderr=subprocess.DEVNULL, cwd=PACKAGE)
        ours = delta_cdc(
            work / "ours", [Table("t00", given.rows, False)], {"file_format": given.kind}, {"tuned_for": given.tuned_for}
        )
        landing = ours.folder / "landing" / "t00" / f"0000.{given.kind}"
        landing.parent.mkdir(parents=True)
        (made,) = (work / "out").glob("part-*")
        os.rename(made, landing)
        print(f"{given.rows:,} rows, {landing.stat().st_size / 1e6:,.0f} MB of {given.kind}, tuned for {given.tuned_for}")
        print(f"delta_cdc: {measure(ours.command, log=work / 'ours.log')}")
        schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        plain = CTAS.format(root=str(work / "plain"), schema=schema, kind=given.kind, file=str(landing))
        print(f"one CREATE TABLE AS SELECT: {measure([sys.executable, '-c', plain], log=work / 'plain.log')}")


if __name__ == "__main__":
    main()
