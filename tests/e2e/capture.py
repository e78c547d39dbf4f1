"""What reads the source's changes into change sets: wal2json's slot, or the audit table of triggers."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.e2e.source import TABLES, Source, Table

LATE = "below one of an earlier window"


class Capture(ABC):
    """name: of the database. landing: the folder of the change sets. counts: what went into them. commit_order: `sequence_by` of
    tables whose keys are checked at commit, where the place of a change is not its order. must_occur: what the test shows nothing
    without."""

    name: ClassVar[str]
    format: ClassVar[str]
    commit_order: ClassVar[tuple[str, ...]]
    must_occur: ClassVar[tuple[str, ...]] = (LATE, "key changes", "truncates")

    def __init__(self, source: Source, landing: Path) -> None:
        self.source = source
        self.landing = landing
        self.counts: Counter[str] = Counter()
        self.reading = threading.Event()
        self._newest = -1
        landing.mkdir(parents=True)
        self.prepare()

    def settings(self) -> dict[str, Any]:
        """Those of the feed."""
        return {"format": self.format, "location": str(self.landing), "change_set_order": "name"}

    @abstractmethod
    def prepare(self) -> None:
        """Before anything is written to the source."""

    @abstractmethod
    def windows(self) -> Iterator[list[str]]:
        """The changes since last time, as lines of a change set; and perhaps once more before, in one that comes twice."""

    @abstractmethod
    def position(self, message: dict[str, Any]) -> int | None:
        """Where a message stands in the source's order; None if it is no change."""

    @abstractmethod
    def kinds(self, message: dict[str, Any], table: Table) -> Iterator[str]:
        """What to count a change as."""

    def read(self) -> None:
        """Windows, as long as `reading` is set."""
        while self.reading.is_set():
            self.deliver()
            time.sleep(0.7)

    def deliver(self) -> None:
        windows = [lines for lines in self.windows() if lines]
        if windows:
            self._count(windows[-1])
        for lines in windows:
            self.counts["change sets"] += 1
            path = self.landing / f"{self.counts['change sets']:06}.jsonl"
            # there at once, and whole
            hidden = path.with_name("." + path.name)
            hidden.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            hidden.rename(path)

    def _count(self, lines: list[str]) -> None:
        tables = {table.name: table for table in TABLES}
        newest = self._newest
        for message in map(json.loads, lines):
            position = self.position(message)
            if position is None:
                continue
            self.counts["changes"] += 1
            self.counts[LATE] += position < newest
            self.counts.update(self.kinds(message, tables[message.get("table") or message["table_name"]]))
            self._newest = max(self._newest, position)


class Slot(Capture):
    name = format = "wal2json_v2"
    commit_order = ("_timestamp", "_lsn")
    must_occur = (*Capture.must_occur, "without a TOAST value", "windows that came twice")

    def prepare(self) -> None:
        self.source.sql("select pg_create_logical_replication_slot('delta_cdc', 'wal2json')")
        self._windows = 0

    def windows(self) -> Iterator[list[str]]:
        self._windows += 1
        if self._windows % 10 == 0:
            # a reader that ended before it could confirm what it had read: all of it comes again
            self.counts["windows that came twice"] += 1
            yield self._lines("peek")
        yield self._lines("get")

    def _lines(self, how: str) -> list[str]:
        lines = self.source.sql(
            f"select data from pg_logical_slot_{how}_changes('delta_cdc', null, null, 'format-version', '2',"
            " 'include-lsn', 'true', 'include-xids', 'true', 'include-timestamp', 'true')"
        ).split("\n")[:-1]
        if how == "get":
            self.counts["transactions"] += len({m["xid"] for m in map(json.loads, lines) if m["action"] in "IUDT"})
        return lines

    def position(self, message: dict[str, Any]) -> int | None:
        high, low = message["lsn"].split("/")
        return (int(high, 16) << 32) + int(low, 16) if message["action"] in "IUDT" else None

    def kinds(self, message: dict[str, Any], table: Table) -> Iterator[str]:
        if message["action"] == "T":
            yield "truncates"
        if message["action"] == "U":
            before, after = ({c["name"]: c["value"] for c in message[image]} for image in ("identity", "columns"))
            if any(before[key] != after[key] for key in table.keys):
                yield "key changes"
            if any(column not in after for column in table.toasted):
                yield "without a TOAST value"


class Audit(Capture):
    name = format = "trigger_audit"
    commit_order = ("_timestamp", "_audit_id")

    def prepare(self) -> None:
        self.source.sql("""
            create schema audit;
            create table audit.record_version (
              id bigserial primary key,
              transaction_id xid8 not null default pg_current_xact_id(),
              op text not null,
              ts timestamptz not null default clock_timestamp(),
              table_schema name not null,
              table_name name not null,
              record jsonb,
              old_record jsonb
            );
            create index on audit.record_version (transaction_id);
            create function audit.note() returns trigger language plpgsql as $$
            begin
              insert into audit.record_version (op, table_schema, table_name, record, old_record)
              values (tg_op, tg_table_schema, tg_table_name, to_jsonb(new), to_jsonb(old));
              return null;
            end $$;
        """)
        for table in TABLES:
            self.source.sql(f"""
                create trigger audit after insert or update or delete on {table.name} for each row execute function audit.note();
                create trigger audit_truncate after truncate on {table.name} for each statement execute function audit.note();
            """)
        self._exported = 0
        deferred = ", ".join(f"'{table.name}'" for table in TABLES if table.deferred)
        self._moment = f"case when table_name in ({deferred}) then pg_xact_commit_timestamp(xmin) else ts end"

    def windows(self) -> Iterator[list[str]]:
        # All transactions below this one have ended. A serial number is drawn before its transaction commits, so that the
        # numbers below the highest that can be read are not all there yet.
        ended = int(self.source.sql("select pg_snapshot_xmin(pg_current_snapshot())"))
        lines = self.source.sql(
            "select row_to_json(change) from ("
            f"select id, transaction_id, op, {self._moment} as ts, table_schema, table_name, record, old_record"
            " from audit.record_version"
            f" where transaction_id >= '{self._exported}' and transaction_id < '{ended}' order by id) as change"
        ).split("\n")[:-1]
        self._exported = ended
        self.counts["transactions"] += len({json.loads(line)["transaction_id"] for line in lines})
        yield lines

    def position(self, message: dict[str, Any]) -> int | None:
        return int(message["id"])

    def kinds(self, message: dict[str, Any], table: Table) -> Iterator[str]:
        if message["op"] == "TRUNCATE":
            yield "truncates"
        if message["op"] == "UPDATE" and any(message["record"][key] != message["old_record"][key] for key in table.keys):
            yield "key changes"


class LandedAudit(Audit):
    """The same table, read by `delta-cdc run` over JDBC: rows whose transactions commit late are within `overlap`."""

    name = "landed_audit"

    def prepare(self) -> None:
        super().prepare()
        self.source.sql("create role reader login superuser password 'reader'")

    def settings(self) -> dict[str, Any]:
        columns = "id, transaction_id::text as transaction_id, op, table_schema, table_name, record, old_record"
        port = self.source.server.environment["PGPORT"]
        return {
            "format": self.format,
            "file_format": "delta",
            "location": str(self.landing / "audit"),
            "jdbc": {
                "url": f"jdbc:postgresql://127.0.0.1:{port}/{self.source.name}",
                "table": f"(select {columns}, {self._moment} as ts from audit.record_version)",
                "serial": "id",
                "overlap": 100_000,
                "options": {"user": "reader", "password": "${DELTA_CDC_E2E_PASSWORD}"},
            },
        }

    def deliver(self) -> None:
        """Only counted: the run itself lands."""
        for lines in self.windows():
            self._count(lines)
