"""Kill dbt runs at random moments (kill -9, or Ctrl-C), then run to the end: `make chaos KILLS=10`.

Three tables (merge, replaced partitions, key changes) get a change set before each run. Afterwards every change must be
staged once, and every final must hold what the changes say, whatever was killed where. Prints where each kill struck:
the newest table that the run had committed to.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.scenarios.project import UserProject

TABLES: dict[str, dict[str, Any]] = {
    "merged": {"keys": ["id"]},
    "partitioned": {"keys": ["id"], "partition_by": ["part"], "apply": "replace_partitions"},
    "moving": {"keys": ["id"], "old_keys": {"id": "old_id"}},
}
COLUMNS = {"op": "string", "lsn": "bigint", "id": "bigint", "old_id": "bigint", "part": "int", "name": "string"}


class Source:
    """One table of the source, and its changes."""

    def __init__(self, seed: int, *, moves: bool) -> None:
        self.random = random.Random(seed)
        self.moves = moves
        self.rows: dict[int, dict[str, Any]] = {}
        self.lsn = 0

    def change_set(self, size: int) -> str:
        return "".join(json.dumps(self.change()) + "\n" for _ in range(size))

    def change(self) -> dict[str, Any]:
        self.lsn += 1
        key = self.random.randrange(60)
        row = {"op": "U" if key in self.rows else "I", "lsn": self.lsn, "id": key, "part": self.lsn % 4, "name": f"n{self.lsn}"}
        if key in self.rows and self.random.random() < 0.2:
            del self.rows[key]
            return {**row, "op": "D", "part": None, "name": None}
        if key in self.rows and self.moves and self.random.random() < 0.3:
            del self.rows[key]
            row |= {"old_id": key, "id": 1000 + self.lsn}
        self.rows[row["id"]] = row
        return row

    @property
    def final(self) -> set[tuple[int, int, int, str]]:
        return {(r["id"], r["lsn"], r["part"], r["name"]) for r in self.rows.values()}


def newest_commit(warehouse: Path, since: float) -> str:
    """The table that was committed to last, since a moment."""
    commits = [(f.stat().st_mtime, f.parent.parent.name) for f in warehouse.glob("*/*/_delta_log/*.json")]
    made = [commit for commit in commits if commit[0] >= since]
    return max(made)[1].split("__")[0].split("_")[0] if made else "before the ledger"


def _hear_ctrl_c() -> None:
    # a shell's background job ignores SIGINT, and so would its children
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    project = UserProject(folder / "project", lake=folder / "lake", schema="chaos")
    landing = project.path / "landing"
    project.configure(
        "source",
        settings={"format": "rows", "location": f"{landing}/{{table}}", "change_set_order": "name", "operation": "op",
                  "sequence_by": ["lsn"], "except_columns": ["op", "old_id"]},
        tables=[{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in TABLES.items()],
    )
    project.generate()
    sources = {name: Source(n, moves=name == "moving") for n, name in enumerate(TABLES)}
    dbt = [str(Path(sys.executable).with_name("dbt")), "--quiet", "run", "--project-dir", str(project.path),
           "--profiles-dir", str(project.path)]
    chance = random.Random(arguments.seed)
    struck: Counter[str] = Counter()
    whole = 60.0
    for number in range(arguments.kills + 2):
        for name, source in sources.items():
            (landing / name).mkdir(parents=True, exist_ok=True)
            (landing / name / f"{number:04d}.jsonl").write_text(source.change_set(40))
        began = time.time()
        run = subprocess.Popen(dbt, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               preexec_fn=_hear_ctrl_c)
        if number in (0, arguments.kills + 1):
            said, _ = run.communicate()
            assert run.returncode == 0, said
            whole = time.time() - began
            continue
        interrupted = number % 4 == 0
        try:
            run.communicate(timeout=whole * chance.uniform(0.3, 0.95))
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGINT if interrupted else signal.SIGKILL)
            asked = time.time()
            run.communicate()
            how = f"Ctrl-C, ended after {time.time() - asked:.1f} s" if interrupted else "kill -9"
            where = newest_commit(folder / "lake" / "warehouse", began)
            struck[where] += 1
            print(f"{number}: {how}, {time.time() - began:.0f} s after the start; last commit: {where}", flush=True)

    spark = project.spark()
    wrong = []
    for name, source in sources.items():
        found = {tuple(row) for row in spark.sql(f"select id, lsn, part, name from chaos.final_{name}").collect()}
        count = spark.table(f"chaos.final_{name}").count()
        staged, once = spark.sql(f"select count(*), count(distinct lsn) from chaos.stg_source__{name}").first()
        if found != source.final or count != len(source.final):
            wrong.append(f"final_{name}: {len(source.final - found)} rows lost, {len(found - source.final)} too many")
        if (staged, once) != (source.lsn, source.lsn):
            wrong.append(f"stg_source__{name}: {source.lsn} changes, {staged} staged, {once} of them different")
    print(f"{sum(struck.values())} runs killed, last commit before: {dict(struck)}")
    print("\n".join(wrong) or f"Nothing lost, nothing doubled: {sum(s.lsn for s in sources.values())} changes.")
    if wrong:
        print(f"All of it is in {folder}.")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
