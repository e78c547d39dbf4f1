"""Clients write to a real PostgreSQL, dbt runs meanwhile, and at the end every final table holds what the source holds."""

from __future__ import annotations

import json
import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.capture import Audit, Capture, LandedAudit, Slot
from tests.e2e.postgres import JDBC_DRIVER, Postgres
from tests.e2e.source import CLIENTS, TABLES, Source, Table
from tests.scenarios.project import UserProject

pytestmark = [pytest.mark.dbt, pytest.mark.spark]
SECONDS = float(os.environ.get("DELTA_CDC_E2E_SECONDS", "60"))
SPARK_SETTINGS = {"spark.jars.packages": JDBC_DRIVER}
SPARK_TYPES = {
    "text": "string",
    "bytea": "binary",
    "integer": "int",
    "numeric(38,10)": "decimal(38,10)",
    "numeric(12,4)": "decimal(12,4)",
    "real": "float",
    "double precision": "double",
    "time": "string",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
    "json": "string",
    "jsonb": "string",
}
# wal2json writes an array as PostgreSQL does, {1,NULL}; to_jsonb as one of JSON
ARRAYS = {
    "wal2json_v2": {"text[]": "string", "int[]": "string"},
    "trigger_audit": {"text[]": "array<string>", "int[]": "array<int>"},
}


class Live:
    """One source, its capture and the tables that dbt makes of it."""

    def __init__(self, kind: type[Capture], server: Postgres, folder: Path, lake: Path) -> None:
        name = kind.name
        self.source = Source(server, name)
        self.project = UserProject(folder / name, lake=lake, schema=name, spark_settings=SPARK_SETTINGS)
        self.capture = kind(self.source, self.project.path / "landing")
        self.types = {**SPARK_TYPES, **ARRAYS[kind.format]}
        self.runs_while_writing = 0
        self.project.configure(
            "live",
            settings=self.capture.settings(),
            tables=[
                {
                    "name": table.name,
                    "cdc": {
                        "keys": list(table.keys),
                        "full_images": table.deferred,
                        **({"sequence_by": list(kind.commit_order)} if table.deferred else {}),
                    },
                    "columns": {column: self.types.get(type_, type_) for column, type_ in table.types.items()},
                }
                for table in TABLES
            ],
        )
        self.project.generate()

    def run(self) -> None:
        if not isinstance(self.capture, LandedAudit):
            self.project.dbt("run", quiet=True)
            return
        self.project.done("run")

    def write_and_run(self, errors: Path) -> None:
        """Clients write, changes are read, dbt runs: for SECONDS, and until two runs fell into that time."""
        self.source.seed()
        self.capture.deliver()
        self.run()
        self.source.writing.set()
        self.capture.reading.set()
        with ThreadPoolExecutor(CLIENTS + 2) as pool:
            clients = [pool.submit(self.source.write, client, errors / f"client-{client}") for client in range(CLIENTS)]
            reader = pool.submit(self.capture.read)
            try:
                started = time.monotonic()
                shape = pool.submit(self.source.change_shape, SECONDS / 2)
                while self.runs_while_writing < 2 or time.monotonic() < started + SECONDS or not shape.done():
                    self.run()
                    self.runs_while_writing += 1
            finally:
                self.source.writing.clear()
                for client in clients:
                    client.exception()
                self.capture.reading.clear()
        for done in (shape, reader, *clients):
            done.result()
        self.source.overtake()
        self.capture.deliver()
        self.run()

    def rows_of_source(self, table: Table) -> Counter[tuple[Any, ...]]:
        texts = {
            "timestamp": "to_char({}, 'YYYY-MM-DD HH24:MI:SS.US')",
            "timestamptz": "(extract(epoch from {}) * 1000000)::bigint::text",
            "bytea": "encode({}, 'hex')",
        }
        if self.types["int[]"] != "string":
            texts |= {"int[]": "to_json({})::text", "text[]": "to_json({})::text"}
        columns = [texts.get(type_, "{}::text").format(name) for name, type_ in table.types.items()]
        lines = self.source.sql(f"select json_build_array({', '.join(columns)}) from {table.name}").split("\n")[:-1]
        return Counter(self._canonical(table, json.loads(line)) for line in lines)

    def rows_of_final(self, table: Table) -> Counter[tuple[Any, ...]]:
        texts = {
            "timestamp": "date_format({}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
            "timestamptz": "cast(unix_micros({}) as string)",
            "bytea": "lower(hex({}))",
        }
        if self.types["int[]"] != "string":
            texts |= {"int[]": "to_json({})", "text[]": "to_json({})"}
        columns = [
            texts.get(type_, "cast({} as string)").format(f"`{name}`") + f" as `{name}`" for name, type_ in table.types.items()
        ]
        rows = self.project.rows(f"select {', '.join(columns)} from {{schema}}.final_{table.name}")
        return Counter(self._canonical(table, list(row.values())) for row in rows)

    def _canonical(self, table: Table, texts: list[str | None]) -> tuple[Any, ...]:
        """Values that are equal where the texts mean the same."""
        readers: dict[str, Callable[[str], Any]] = {
            "numeric(38,10)": lambda t: Decimal(t).normalize(),
            "numeric(12,4)": lambda t: Decimal(t).normalize(),
            "double precision": float,
            "real": lambda t: struct.pack("f", float(t)),
            "json": self._json,
            "jsonb": self._json,
        }
        if self.types["int[]"] != "string":
            readers |= {"int[]": self._json, "text[]": self._json}
        return tuple(
            None if text is None else readers.get(type_, str)(text)
            for text, type_ in zip(texts, table.types.values(), strict=True)
        )

    def _json(self, text: str) -> str:
        if self.capture.format == "wal2json_v2":
            return text
        # to_jsonb and VARIANT order the fields of an object in their own ways: the same value in another text
        return json.dumps(json.loads(text, parse_float=Decimal), sort_keys=True, default=str)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", [Slot, Audit, LandedAudit], ids=lambda kind: kind.name)
def test_final_tables_equal_the_source(
    kind: type[Capture], server: Postgres, lake: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_CDC_E2E_PASSWORD", "reader")
    live = Live(kind, server, tmp_path, lake)
    live.write_and_run(tmp_path)
    with capsys.disabled():
        counts = ", ".join(f"{number:,} {what}" for what, number in sorted(live.capture.counts.items()))
        print(f"\n{kind.name}: {counts}; {live.runs_while_writing} runs while clients wrote")

    wrong = [problem for table in TABLES for problem in (*_values(live, table), *_history(live, table))]
    assert not wrong, "\n".join(wrong)
    assert live.project.rows("select * from {schema}.cdc_quarantine") == []
    assert [what for what in live.capture.must_occur if not live.capture.counts[what]] == []

    before = live.project.versions()
    live.run()
    assert live.project.versions() == before


def _values(live: Live, table: Table) -> list[str]:
    there, here = live.rows_of_source(table), live.rows_of_final(table)
    lost, extra = there - here, here - there
    if not lost and not extra:
        return []
    examples = [f"source {row}"[:600] for row in list(lost)[:4]] + [f"final {row}"[:600] for row in list(extra)[:4]]
    return [f"final_{table.name}: {lost.total()} rows of the source are not in final, {extra.total()} the other way", *examples]


def _history(live: Live, table: Table) -> list[str]:
    """What is wrong in history: current rows that are not final's, versions of a row or of a key that overlap."""
    keys, columns = ", ".join(f"`{k}`" for k in table.keys), ", ".join(f"`{c}`" for c in table.types)
    history, final = f"history_of_{table.name}", f"select {columns} from {{schema}}.final_{table.name}"
    # worked out once, not by each of the questions
    live.project.spark().sql(f"cache table {history} as select * from {live.project.schema}.hist_live__{table.name}")
    current = f"select {columns} from {history} where is_current"
    checks = {
        "current rows that are not in final": f"{current} except all {final}",
        "rows of final that are not current": f"{final} except all {current}",
        "current versions that have an end": f"select * from {history} where is_current <> (valid_to is null)",
        "versions without length": f"select * from {history} where valid_from >= valid_to",
        **{
            f"versions of a {what} that overlap": "select * from (select *, lead(valid_from) over"
            f" (partition by {by} order by valid_from) as next from {history})"
            " where next < coalesce(valid_to, timestamp '9999-12-31')"
            for what, by in (("row", "_cdc_entity"), ("key", keys))
        },
    }
    found = {what: live.project.rows(sql) for what, sql in checks.items()}
    live.project.spark().sql(f"drop view {history}")
    return [f"{table.name}: {len(rows)} {what}, e.g. {str(rows[0])[:600]}" for what, rows in found.items() if rows]
