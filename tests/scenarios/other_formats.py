"""The history of PostgreSQL in formats that it was not captured in: python -m tests.scenarios.other_formats FOLDER [TABLE …]

Writes a feeds-folder a format for the scenario runner. The captured changes become messages as the producers' documentation has
them (docs/formats), and the tables' rows are worked out along with them. Change sets come out of order where the format has one.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.scenarios.project import PACKAGE
from tests.scenarios.values import exact_json

CAPTURED = PACKAGE / "seeds" / "shop"
KEYS = {name: told["key"] for name, told in json.loads((PACKAGE / "tests/cases/postgres/truth.json").read_text()).items()}
ALL_TYPES = "all_types"  # as Debezium writes them is captured
# Those that say most: key changes, a column more, a retyped one, TOAST, a truncate, every type, many updates.
TABLES = (ALL_TYPES, "artist", "customer", "doc_full", "invoice", "pgbench_accounts", "playlist_track", "track")
WORDS = {"I": "insert", "U": "update", "D": "delete", "T": "truncate"}
EPOCH = datetime.fromisoformat("1970-01-01 00:00:00+00:00")

Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """told: the columns in the message. before, after: the whole row. place: in its transaction, which `last` ends. ends: where
    the transaction ends in the log."""

    number: int
    operation: str
    table: str
    xid: int
    timestamp: str
    position: int
    place: int
    ends: str
    last: bool
    told: Row
    before: Row | None
    after: Row | None

    @property
    def key_before(self) -> Row:
        return {name: self.before[name] for name in KEYS[self.table]} if self.before else {}

    @property
    def changed(self) -> Row:
        """What the columns that an update changed held before."""
        if self.operation != "U":
            return {}
        return {name: self.before.get(name) for name, value in self.after.items() if value != self.before.get(name)}

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(re.sub(r"\+00$", "+00:00", self.timestamp))

    @property
    def millis(self) -> int:
        return (self.moment - EPOCH) // (EPOCH.resolution * 1000)


@dataclass
class History:
    """types: of PostgreSQL, a table's columns in their order. rows: what the tables hold at the end, by key."""

    changes: list[Change]
    types: dict[str, dict[str, str]]
    rows: dict[str, dict[tuple[Any, ...], Row]]

    def without(self, table: str) -> History:
        types = {name: columns for name, columns in self.types.items() if name != table}
        return History([change for change in self.changes if change.table != table], types, self.rows)


def read(tables: Sequence[str]) -> History:
    types: dict[str, dict[str, str]] = {table: {} for table in tables}
    rows: dict[str, dict[tuple[Any, ...], Row]] = {table: {} for table in tables}
    changes: list[Change] = []
    for begin, messages in _transactions():
        found = [message for message in messages if message["table"] in tables]
        for place, message in enumerate(found):
            table, operation, held = message["table"], message["action"], rows[message["table"]]
            told = {each["name"]: each["value"] for each in message.get("columns", ())}
            types[table] |= {each["name"]: each["type"] for each in message.get("columns", ())}
            identity = {each["name"]: each["value"] for each in message.get("identity", ())}
            before = held.pop(tuple(identity[name] for name in KEYS[table])) if identity else None
            after = {**(before or {}), **told} if told else None
            if after:
                held[tuple(after[name] for name in KEYS[table])] = after
            if operation == "T":
                held.clear()
            high, low = (int(part, 16) for part in message["lsn"].split("/"))
            changes.append(Change(
                len(changes) + 1, operation, table, message["xid"], message["timestamp"], (high << 32) + low, place,
                begin["nextlsn"], place == len(found) - 1, told, before, after,
            ))  # fmt: skip
    return History(changes, types, rows)


def _transactions() -> Iterator[tuple[Row, list[Row]]]:
    """The message that begins each, and its changes."""
    begin: Row = {}
    within: list[Row] = []
    for path in sorted(CAPTURED.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            message = json.loads(line, parse_float=Decimal)
            if message["action"] == "B":
                begin, within = message, []
            elif message["action"] == "C":
                yield begin, within
            else:
                within.append(message)


def spark_type(postgres: str) -> str:
    """The type that a table's configuration would give; text where Spark has none."""
    numeric = re.fullmatch(r"numeric\((\d+),(\d+)\)", postgres)
    return f"decimal({numeric[1]},{numeric[2]})" if numeric else {
        "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float", "double precision": "double",
        "boolean": "boolean", "date": "date", "bytea": "binary",
        "timestamp without time zone": "timestamp_ntz", "timestamp with time zone": "timestamp",
    }.get(postgres, "string")  # fmt: skip


def wal2json_v1(history: History) -> Iterator[Any]:
    for _, transaction in groupby(history.changes, lambda change: change.xid):
        changes = list(transaction)
        yield {"xid": changes[0].xid, "nextlsn": changes[0].ends, "timestamp": changes[0].timestamp, "change": [
            {"kind": WORDS[change.operation], "schema": "public", "table": change.table}
            | _named(history.types[change.table], change.told, "columnnames", "columntypes", "columnvalues")
            | ({"oldkeys": _named(history.types[change.table], change.key_before, "keynames", "keytypes", "keyvalues")}
               if change.before else {})
            for change in changes if change.operation != "T"
        ]}  # fmt: skip


def _named(types: Mapping[str, str], row: Row, *fields: str) -> dict[str, Any]:
    return dict(zip(fields, ([*row], [types[name] for name in row], [*row.values()]), strict=True)) if row else {}


def supa_audit(history: History) -> Iterator[Any]:
    for change in history.changes:
        yield {
            "id": change.number, "transaction_id": str(change.xid), "op": WORDS[change.operation].upper(), "ts": change.timestamp,
            "table_schema": "public", "table_name": change.table, "record": change.after, "old_record": change.before,
        }  # fmt: skip


def audit_table(history: History) -> Iterator[Any]:
    for change in history.changes:
        yield {
            "seq": change.number, "at": change.timestamp, "txid": change.xid, "tbl": change.table, "op": change.operation,
            "old_row": change.before, "new_row": change.after,
        }  # fmt: skip


def goldengate(history: History) -> Iterator[Any]:
    """With whole images."""
    for change in history.changes:
        yield _goldengate(change, history, change.before, change.after)


def goldengate_changed(history: History) -> Iterator[Any]:
    """As trails are by default: the key, and what an update changed."""
    for change in history.changes:
        if change.operation == "U":
            kept = {*KEYS[change.table], *change.changed}
            images = [{name: value for name, value in row.items() if name in kept} for row in (change.before, change.after)]
            yield _goldengate(change, history, *images)
        else:
            yield _goldengate(change, history, change.key_before or None, change.after)


def _goldengate(change: Change, history: History, before: Row | None, after: Row | None) -> Any:
    images = {
        side: {name.upper(): value for name, value in _bytes_in_base64(row, history.types[change.table]).items()}
        for side, row in (("before", before), ("after", after)) if row
    }  # fmt: skip
    moment = change.moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    return {
        "table": f"PUBLIC.{change.table.upper()}", "op_type": change.operation, "op_ts": moment,
        "current_ts": moment.replace(" ", "T"), "pos": f"{change.number:020d}", "xid": f"0.{change.xid}.1",
        "primary_keys": [name.upper() for name in KEYS[change.table]],
    } | images  # fmt: skip


def maxwell(history: History) -> Iterator[Any]:
    for change in history.changes:
        told = {"data": change.after or change.before} | ({"old": change.changed} if change.operation == "U" else {})
        images = {side: _bytes_in_base64(row, history.types[change.table]) for side, row in told.items() if row is not None}
        if change.operation != "T":
            yield {
                "database": "public", "table": change.table, "type": WORDS[change.operation], "ts": change.millis // 1000,
                "xid": change.xid, "position": f"master.000001:{change.position}",
                **({"commit": True} if change.last else {"xoffset": change.place}),
            } | images  # fmt: skip


def canal(history: History) -> Iterator[Any]:
    for change in history.changes:
        types = history.types[change.table]
        row = change.after or change.before
        yield {
            "database": "public", "table": change.table, "type": WORDS[change.operation].upper(),
            "isDdl": change.operation == "T", "es": change.millis, "ts": change.millis + 7, "id": change.number,
            "pkNames": KEYS[change.table], "mysqlType": types,
            "data": [_texts(row, types)] if row else None,
            "old": [_texts(change.changed, types)] if change.operation == "U" else None,
        }  # fmt: skip


def _texts(row: Row, types: Mapping[str, str]) -> Row:
    def text(value: Any, kind: str) -> str | None:
        if value is None or isinstance(value, bool):
            return None if value is None else str(int(value))
        return bytes.fromhex(value).decode("iso-8859-1") if kind == "bytea" else str(value)

    return {name: text(value, types[name]) for name, value in row.items()}


def dms(history: History) -> Iterator[Any]:
    for change in history.changes:
        moment = change.moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if change.operation != "T":
            yield {"data": change.after or change.before, "metadata": {
                "timestamp": moment, "commit-timestamp": moment, "record-type": "data", "operation": WORDS[change.operation],
                "schema-name": "public", "table-name": change.table, "stream-position": str(change.position),
                "transaction-id": change.xid, "transaction-record-id": change.place + 1,
            }} | ({"before-image": change.before} if change.before else {})  # fmt: skip


def debezium(history: History) -> Iterator[Any]:
    """Envelopes without schemas and headers: a key change is a delete and an insert."""
    for change, operation, before, after in _events(history):
        yield {"op": operation, "before": before, "after": after, "ts_ms": change.millis + 3, "source": {
            "connector": "postgresql", "schema": "public", "table": change.table, "txId": change.xid, "lsn": change.position,
            "ts_ms": change.millis,
        }}  # fmt: skip


def debezium_flattened(history: History) -> Iterator[Any]:
    for change, operation, before, after in _events(history):
        yield {
            **(after or before or {}), "__op": operation, "__deleted": str(operation == "d").lower(), "__table": change.table,
            "__source_ts_ms": change.millis, "__source_lsn": change.position, "__source_txId": change.xid,
        }  # fmt: skip


def _events(history: History) -> Iterator[tuple[Change, str, Row | None, Row | None]]:
    for change in history.changes:
        before, after = (row and _connect(row, history.types[change.table]) for row in (change.before, change.after))
        if change.operation == "U" and change.key_before != {name: change.after[name] for name in KEYS[change.table]}:
            yield change, "d", before, None
            yield change, "c", None, after
        else:
            yield change, {"I": "c", "U": "u", "D": "d", "T": "t"}[change.operation], before, after


def _connect(row: Row, types: Mapping[str, str]) -> Row:
    """As Debezium's connector for PostgreSQL writes them, decimals as text."""

    def written(value: Any, kind: str) -> Any:
        if value is None:
            return None
        if kind == "timestamp without time zone":
            return (datetime.fromisoformat(f"{value}+00:00") - EPOCH) // EPOCH.resolution
        if kind == "timestamp with time zone":
            return value.replace(" ", "T").replace("+00", "Z")
        if kind == "date":
            return (date.fromisoformat(value) - EPOCH.date()).days
        if kind == "bytea":
            return _base64(value)
        return str(value) if kind.startswith("numeric") else value

    return {name: written(value, types[name]) for name, value in row.items()}


def _bytes_in_base64(row: Row, types: Mapping[str, str]) -> Row:
    return {name: _base64(value) if types[name] == "bytea" else value for name, value in row.items()}


def _base64(hexadecimal: str | None) -> str | None:
    return hexadecimal and base64.b64encode(bytes.fromhex(hexadecimal)).decode()


@dataclass(frozen=True)
class Format:
    """messages: of the history, in their order. ordered: they have an order of their own. truncates: they tell them. without: a
    table that they leave out."""

    name: str
    messages: Callable[[History], Iterator[Any]]
    settings: Mapping[str, Any] | None = None
    ordered: bool = True
    truncates: bool = True
    without: str = ""


TEXT_DECIMALS = {"decimal_handling": "string", "time_unit": "micros"}
FORMATS = (
    Format("wal2json_v1", wal2json_v1, truncates=False),
    Format("trigger_audit", supa_audit),
    Format("trigger_audit", audit_table),
    Format("goldengate", goldengate),
    Format("goldengate", goldengate_changed),
    Format("maxwell", maxwell, truncates=False),
    Format("canal", canal, ordered=False),  # by the time of the message, which many share
    Format("dms", dms, ordered=False, truncates=False),
    Format("debezium", debezium, TEXT_DECIMALS, without=ALL_TYPES),
    Format("debezium", debezium_flattened, TEXT_DECIMALS, without=ALL_TYPES),
)


def write(folder: Path, form: Format, history: History) -> None:
    """A feeds-folder with three change sets; of messages with an order the second comes last."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    history = history.without(form.without)
    lines = [exact_json(message) + "\n" for message in form.messages(history)]
    part = -(-len(lines) // 3)
    names = []
    for number in range(3):
        names.append(f"input-{number + 1:02d}.jsonl.gz")
        with gzip.open(folder / names[-1], "wt", encoding="utf-8") as file:
            file.writelines(lines[number * part : (number + 1) * part])
    steps: list[dict[str, Any]] = [{"inputs": [{"file": names[place]}]} for place in ((0, 2, 1) if form.ordered else (0, 1, 2))]
    unknown = {change.table for change in history.changes if change.operation == "T" and not form.truncates}
    steps[-1]["tables"] = {
        table: {"columns": [*types], "rows": [[row.get(name) for name in types] for row in history.rows[table].values()]}
        for table, types in history.types.items() if table not in unknown
    }  # fmt: skip
    (folder / "expected.json").write_text(exact_json({
        "format": form.name, "key": {table: KEYS[table] for table in history.types}, "settings": form.settings or {},
        "schema": {table: {name: spark_type(kind) for name, kind in types.items()} for table, types in history.types.items()},
        "steps": steps,
    }), "utf-8")  # fmt: skip


def main() -> None:
    folder, *tables = sys.argv[1:]
    history = read(tables or TABLES)
    for form in FORMATS:
        write(Path(folder) / form.messages.__name__, form, history)


if __name__ == "__main__":
    main()
