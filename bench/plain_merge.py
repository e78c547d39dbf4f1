"""B4: a small change set into a large final, beside a plain MERGE

1,000 changes, three in ten of new keys, a tenth of the others deletes. The old keys are the newest, or scattered over the
table, or scattered over a table partitioned by 24 months. The rivals are one MERGE each, of the newest change a key, read
from the same file, into a shallow clone of final as it was at first, with deletion vectors and without, in the same warm
process, with generated code and adaptive plans. They take turns; the first turn does not count. `final` is the model that
merges what staging got; the plain MERGE keeps no staging."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.compare import CONTENT
from bench.data import CHANGES, COLUMNS, MONTH, ROW
from bench.grown import Grown
from bench.result import Plot, Result, Table, Target, ratio, target
from bench.warm import SCHEMA, rounded, run_seconds, say

SIZES = {"small": {"rows": 2_000_000, "repeats": 3}, "full": {"rows": 50_000_000, "repeats": 5}}

RIVALS = {"MERGE with deletion vectors": "true", "MERGE without": "false"}
# title: (table, scattered)
KEYS = {"recent keys": ("flat", False), "scattered keys": ("flat", True), "all partitions": ("months", True)}
MERGE = """
merge into {rival} as final
using (
  select * from (select *{month}, row_number() over (partition by id order by seq desc) as place from changes) where place = 1
) as change
on final.id = change.id
when matched and change.op = 'D' then delete
when matched then update set {set}
when not matched and change.op <> 'D' then insert ({columns}) values ({values})
"""


def measure(work: Path, *, rows: int, repeats: int) -> Result:
    tables = Grown.all_of(work, {"flat": rows, "months": rows}, partitioned=("months",))
    for table in tables.values():
        _clone(table)
    took: dict[str, dict[str, list[float]]] = {}
    for keys, (name, scattered) in KEYS.items():
        table = tables[name]
        took[keys] = {who: [] for who in ("staging", "final", *RIVALS)}
        for turn in range(repeats + 1):
            path = table.deliver(CHANGES, CHANGES * 3 // 10, scattered)
            contestants = ["delta_cdc", *RIVALS]
            for who in contestants[turn % 3 :] + contestants[: turn % 3]:
                if who == "delta_cdc":
                    seconds = run_seconds(table.project, name)
                    found = {part: seconds[part] for part in ("staging", "final")}
                else:
                    found = {who: _merge(table, _rival(table, who), path)}
                for what, value in found.items() if turn else ():
                    took[keys][what].append(value)
            table.check()
        _compare(table)
        say(f"{keys}: { {who: rounded(values) for who, values in took[keys].items()} }")
    return _result(took)


def _result(took: dict[str, dict[str, list[float]]]) -> Result:
    table: Table = {
        "head": ["keys", "final, s", *(f"{rival}, s" for rival in RIVALS), "staging, s"],
        "rows": [[keys, *(rounded(each[who]) for who in ("final", *RIVALS, "staging"))] for keys, each in took.items()],
    }
    targets: list[Target] = [
        ratio(f"{keys}: final to a plain {rival}", each["final"], each[rival], most)
        for keys, each in took.items()
        for rival, most in zip(RIVALS, (0.5, 0.125), strict=True)
    ]
    targets.append(target("never slower: the largest of these", max(each["value"] for each in targets), 1))
    plot: Plot = {
        "title": "1,000 changes, median seconds",
        "x": "seconds",
        "bars": {f"{keys}: {who}": round(median(each[who]), 2) for keys, each in took.items() for who in ("final", *RIVALS)},
    }
    compared = "Final and the tables of both plain MERGEs had the same rows, in count and content."
    return {"tables": [table], "targets": targets, "plots": [plot], "compared": compared}


def _rival(table: Grown, rival: str) -> str:
    return f"{SCHEMA}.plain_{table.name}_{RIVALS[rival]}"


def _clone(table: Grown) -> None:
    for rival, vectors in RIVALS.items():
        table.session.sql(
            f"create table {_rival(table, rival)} shallow clone {SCHEMA}.final_{table.name}"
            f" tblproperties ('delta.enableDeletionVectors' = '{vectors}')"
        )


def _merge(table: Grown, rival: str, path: Path) -> float:
    session: Any = table.session
    partitioned = "month" in session.table(rival).columns
    columns = [*list(COLUMNS)[1:], *(["month"] if partitioned else [])]
    sql = MERGE.format(
        rival=rival,
        month=f", {MONTH}" if partitioned else "",
        set=", ".join(f"{name} = change.{name}" for name in columns),
        columns=", ".join(columns),
        values=", ".join(f"change.{name}" for name in columns),
    )
    started = time.monotonic()
    session.read.schema(ROW).json(str(path)).createOrReplaceTempView("changes")
    session.sql(sql)
    return time.monotonic() - started


def _compare(table: Grown) -> None:
    found = [
        tuple(table.session.table(name).selectExpr(*CONTENT).collect()[0])
        for name in (f"{SCHEMA}.final_{table.name}", *(_rival(table, rival) for rival in RIVALS))
    ]
    assert len(set(found)) == 1, f"the tables differ: rows and hash {found}"
