"""B4: a small change set into a large final, beside a plain MERGE

1,000 changes, three in ten of new keys, a tenth of the others deletes. The old keys are the newest, or scattered over the
table, or scattered over a table partitioned by 24 months; and 1,000 changes of old keys of one of these months. The rivals are
one MERGE each, of the newest change a key, read from the same file, into a shallow clone of final as it was at first, with
deletion vectors and without, and for the partitioned table one statement that overwrites the partitions that the changes are
in (here no key ever leaves its partition), in the same warm process, with generated code and adaptive plans. They take turns;
the first turn does not count. `final` is the model that merges what staging got; the rivals keep no staging."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.compare import CONTENT
from bench.data import CHANGES, COLUMNS, MONTH, ROW
from bench.grown import Grown, Keys
from bench.result import Plot, Result, Table, Target, ratio, target
from bench.warm import SCHEMA, rounded, run_seconds, say

SIZES = {"small": {"rows": 2_000_000, "repeats": 3}, "full": {"rows": 50_000_000, "repeats": 5}}

MERGES = {"MERGE with deletion vectors": "true", "MERGE without": "false"}
OVERWRITE = "overwrite of the partitions"
# title: (table, keys)
KEYS: dict[str, tuple[str, Keys]] = {
    "recent keys": ("flat", "recent"),
    "scattered keys": ("flat", "scattered"),
    "all partitions": ("months", "scattered"),
    "one partition": ("months", "one day"),
}
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
# By position; the session overwrites only partitions that get rows.
OVERWRITTEN = """
insert overwrite {rival}
select {columns} from (
  select *, row_number() over (partition by id order by seq desc) as place from (
    select {columns}, 'U' as op from {rival} where month in (select {month} from changes)
    union all select {columns}, op from (select *, {month} from changes)
  )
) where place = 1 and op <> 'D'
"""


def measure(work: Path, *, rows: int, repeats: int) -> Result:
    tables = Grown.all_of(work, {"flat": rows, "months": rows}, partitioned=("months",))
    for table in tables.values():
        _clone(table)
    took: dict[str, dict[str, list[float]]] = {}
    for title, (name, keys) in KEYS.items():
        table = tables[name]
        rivals = _rivals(table)
        took[title] = {who: [] for who in ("staging", "final", *rivals)}
        for turn in range(repeats + 1):
            path = table.deliver(CHANGES, 0 if keys == "one day" else CHANGES * 3 // 10, keys)
            contestants = ["delta_cdc", *rivals]
            first = turn % len(contestants)
            for who in contestants[first:] + contestants[:first]:
                if who == "delta_cdc":
                    seconds = run_seconds(table.project, name)
                    found = {part: seconds[part] for part in ("staging", "final")}
                else:
                    found = {who: _apply(table, who, path)}
                for what, value in found.items() if turn else ():
                    took[title][what].append(value)
            table.check()
        _compare(table)
        say(f"{title}: { {who: rounded(values) for who, values in took[title].items()} }")
    return _result(took)


def _result(took: dict[str, dict[str, list[float]]]) -> Result:
    contestants = ("final", *MERGES, OVERWRITE)
    table: Table = {
        "head": ["keys", *(f"{who}, s" for who in (*contestants, "staging"))],
        "rows": [
            [title, *(rounded(each[who]) if who in each else "" for who in (*contestants, "staging"))]
            for title, each in took.items()
        ],
    }
    targets: list[Target] = [
        ratio(f"{title}: final to a plain {rival}", each["final"], each[rival], most)
        for title, each in took.items()
        for rival, most in zip(MERGES, (0.5, 0.125), strict=True)
    ]
    targets += [
        ratio(f"{title}: final to an {OVERWRITE}", each["final"], each[OVERWRITE], 1)
        for title, each in took.items()
        if OVERWRITE in each
    ]
    targets.append(target("never slower: the largest of these", max(each["value"] for each in targets), 1))
    plot: Plot = {
        "title": "1,000 changes, median seconds",
        "x": "seconds",
        "bars": {
            f"{title}: {who}": round(median(each[who]), 2) for title, each in took.items() for who in contestants if who in each
        },
    }
    compared = "Final and the rivals' tables had the same rows, in count and content."
    return {"tables": [table], "targets": targets, "plots": [plot], "compared": compared}


def _rivals(table: Grown) -> list[str]:
    return [*MERGES, *([OVERWRITE] if table.name == "months" else [])]


def _rival(table: Grown, rival: str) -> str:
    return f"{SCHEMA}.rival_{table.name}_{_rivals(table).index(rival)}"


def _clone(table: Grown) -> None:
    for rival in _rivals(table):
        vectors = MERGES.get(rival, "false")
        table.session.sql(
            f"create table {_rival(table, rival)} shallow clone {SCHEMA}.final_{table.name}"
            f" tblproperties ('delta.enableDeletionVectors' = '{vectors}')"
        )
    table.session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")  # for the rival that overwrites


def _apply(table: Grown, rival: str, path: Path) -> float:
    session: Any = table.session
    name = _rival(table, rival)
    partitioned = table.name == "months"
    columns = [*list(COLUMNS)[1:], *(["month"] if partitioned else [])]
    parts = {"rival": name, "columns": ", ".join(columns)}
    if rival == OVERWRITE:
        sql = OVERWRITTEN.format(**parts, month=MONTH)
    else:
        sql = MERGE.format(
            **parts,
            month=f", {MONTH}" if partitioned else "",
            set=", ".join(f"{column} = change.{column}" for column in columns),
            values=", ".join(f"change.{column}" for column in columns),
        )
    started = time.monotonic()
    session.read.schema(ROW).json(str(path)).createOrReplaceTempView("changes")
    session.sql(sql)
    return time.monotonic() - started


def _compare(table: Grown) -> None:
    found = [
        tuple(table.session.table(name).selectExpr(*CONTENT).collect()[0])
        for name in (f"{SCHEMA}.final_{table.name}", *(_rival(table, rival) for rival in _rivals(table)))
    ]
    assert len(set(found)) == 1, f"the tables differ: rows and hash {found}"
