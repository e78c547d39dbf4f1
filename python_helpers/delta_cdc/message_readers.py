"""What the messages of each format tell of their tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_cdc.source_types import aliyun_type, connect_type, dms_type, is_connect_decimal, mysql_type, postgres_type

Message = Mapping[str, Any]


@dataclass
class Sighting:
    """What one message tells of one table. columns: name to Spark type, None where the message tells none. identity: the
    keys are a replica identity, which may as well be the whole row. values: the columns', where the format tells no type."""

    table: str | None
    columns: Mapping[str, str | None]
    keys: Sequence[str] = ()
    identity: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None


def _wal2json_v2(message: Message) -> Iterator[Sighting]:
    if message["action"] not in ("I", "U", "D"):
        return
    columns = message.get("columns") or message.get("identity") or []
    types = {c["name"]: postgres_type(c["type"]) if "type" in c else None for c in columns}
    named = [c["name"] for c in message.get("pk") or []]
    identity = not named and message["action"] == "D"
    yield Sighting(_qualified(message, "schema"), types, list(types) if identity else named, identity)


def _wal2json_v1(message: Message) -> Iterator[Sighting]:
    for change in message["change"]:
        if change["kind"] not in ("insert", "update", "delete"):
            continue
        old = change.get("oldkeys") or {}
        names = change.get("columnnames") or old.get("keynames") or []
        types = change.get("columntypes") or old.get("keytypes") or []
        named = (change.get("pk") or {}).get("pknames") or []
        identity = not named and change["kind"] == "delete"
        told = len(types) == len(names)
        columns = {name: postgres_type(types[place]) if told else None for place, name in enumerate(names)}
        yield Sighting(_qualified(change, "schema"), columns, old.get("keynames", []) if identity else named, identity)


def _debezium(message: Message) -> Iterator[Sighting]:
    key: Any = None
    envelope: Any = message
    if not _is_flattened(message) and not {"op", "payload"} & set(message) and {"topic", "key"} & set(message):
        key, envelope = message.get("key"), message.get("value")
    schema = None
    if isinstance(envelope, dict) and "payload" in envelope and not _is_flattened(envelope):
        schema, envelope = envelope.get("schema"), envelope["payload"]
    if not isinstance(envelope, dict):
        return  # a tombstone
    fields = {f.get("field"): f for f in (schema or {}).get("fields") or []}
    read = _debezium_flattened if _is_flattened(envelope) else _debezium_enveloped
    yield from read(envelope, fields, list(_payload(key)))


def _debezium_flattened(row: Message, fields: Message, keys: list[str]) -> Iterator[Sighting]:
    origin = {name.removeprefix("__source_").removeprefix("__"): value for name, value in row.items() if name.startswith("__")}
    columns = {name: connect_type(fields[name]) if name in fields else None for name in row if not name.startswith("__")}
    order = _debezium_order(row.get("__op"), origin, origin)
    yield Sighting(_qualified(origin, "schema" if "schema" in origin else "db"), columns, keys, settings=order)


def _debezium_enveloped(envelope: Message, fields: Message, keys: list[str]) -> Iterator[Sighting]:
    if "op" not in envelope or "source" not in envelope:
        return  # a heartbeat, transaction metadata, a schema change
    row, source = envelope.get("after") or envelope.get("before"), envelope["source"]
    if isinstance(row, str):
        raise TypeError("the row is text, as MongoDB's connector writes it")
    if not isinstance(row, dict) or source.get("table") == "":  # the latter: a decoded logical message
        return
    described = (fields.get("after") or fields.get("before") or {}).get("fields") or []
    types = {f["field"]: connect_type(f) for f in described} or dict.fromkeys(row)
    settings = _debezium_order(envelope["op"], source, envelope)
    if any(is_connect_decimal(f) and isinstance(row.get(f["field"]), (int, float)) for f in described):
        settings["decimal_handling"] = "double"
    yield Sighting(_joined(source.get("schema") or source.get("db"), source.get("table")), types, keys, settings=settings)


def _debezium_order(op: Any, source: Message, envelope: Message) -> dict[str, Any]:
    """The order of a change without a position; rows of a snapshot need none."""
    positions = ("lsn", "pos", "scn", "event_serial_no", "file", "commit_lsn", "change_lsn")
    if op == "r" or any(source.get(name) is not None for name in positions):
        return {}
    if re.fullmatch(r"\[[^,]*,[^,]*\]", str(source.get("sequence"))):  # PostgreSQL's places of the last commit and of the change
        return {}
    has_time = any(each.get(name) for each in (source, envelope) for name in ("ts_us", "ts_ms"))
    return _by_arrival("_timestamp" if has_time else None)


def _by_arrival(first: str | None) -> dict[str, Any]:
    """The order of arrival, after the time or number that the messages have, if they have one."""
    return {"sequence_by": [*filter(None, [first]), "_arrival"]}


def _is_flattened(message: Message) -> bool:
    """Whether it is a row alone, as the transform ExtractNewRecordState writes it: its columns may have any names."""
    return bool({"__op", "__deleted"} & set(message))


def _canal(message: Message) -> Iterator[Sighting]:
    types = {name.lower(): mysql_type(kind) for name, kind in (message.get("mysqlType") or {}).items()}
    for row in message.get("data") or [] if not message.get("isDdl") else []:
        if not isinstance(row, dict):
            raise TypeError("`data` holds no rows")
        named = {name: types.get(name.lower()) for name in row}
        order = {} if message.get("ts") and message.get("id") else _by_arrival("_message_time" if message.get("ts") else None)
        yield Sighting(_qualified(message, "database"), named, message.get("pkNames") or [], settings=order)


def _maxwell(message: Message) -> Iterator[Sighting]:
    row = message.get("data")
    if row and message["type"] in ("insert", "update", "delete", "bootstrap-insert"):
        order = {} if "position" in message or message["type"] == "bootstrap-insert" else _by_arrival("_timestamp")
        keys = message.get("primary_key_columns") or []
        yield Sighting(_qualified(message, "database"), dict.fromkeys(row), keys, settings=order, values=row)


_GOLDENGATE = {"table", "op_type", "op_ts", "current_ts", "pos", "primary_keys", "tokens", "csn", "xid", "before", "after"}


def _goldengate(message: Message) -> Iterator[Sighting]:
    described: Any = []
    if "op_type" not in message and isinstance(message.get("payload"), dict):  # the Kafka Connect handler's
        described, message = (message.get("schema") or {}).get("fields") or [], message["payload"]
    images = [message[name] for name in ("before", "after") if message.get(name)]
    if images:
        described = next((f.get("fields") or [] for f in described if f.get("field") in ("before", "after")), [])
    types = {f["field"]: connect_type(f) for f in described}
    if not images:  # the row's columns stand beside the fields of the operation
        images = [{name: value for name, value in message.items() if name not in _GOLDENGATE}]
    columns = {name: types.get(name) for image in images for name in image if not name.endswith("_isMissing")}
    if columns:
        yield Sighting(message["table"], columns, message.get("primary_keys") or [])


def _dms(message: Message) -> Iterator[Sighting]:
    about = message["metadata"]
    table = _joined(about.get("schema-name"), about.get("table-name"))
    definition = (message.get("control") or {}).get("table-def") or {}
    if definition:
        types = {name: dms_type(column) for name, column in definition.get("columns", {}).items()}
        yield Sighting(table, types, definition.get("primary-key") or [])
    elif about["record-type"] == "data" and message.get("data"):
        row = message["data"]  # with the columns of the row before under BI_, if the task adds them
        own = {name: value for name, value in row.items() if name.removeprefix("BI_") == name or name[3:] not in row}
        yield Sighting(table, dict.fromkeys(own), values=own)


def _aliyun(message: Message) -> Iterator[Sighting]:
    schema = message["schema"]
    types = {c["name"]: aliyun_type(c["type"]) for c in schema.get("dataColumn") or []}
    source = schema.get("source") or {}
    if types:
        table = _joined(source.get("dbName"), source.get("schemaName"), source.get("tableName"))
        yield Sighting(table, types, schema.get("primaryKey") or [])


def _rows(message: Message) -> Iterator[Sighting]:
    yield Sighting(None, dict.fromkeys(message), values=message)


def _trigger_audit(message: Message) -> Iterator[Sighting]:
    for image in ("record", "new_row", "old_record", "old_row"):
        row = json.loads(message[image]) if isinstance(message.get(image), str) else message.get(image)
        if row and message["op"]:
            table = _joined(message.get("table_schema"), message.get("table_name") or message.get("tbl"))
            yield Sighting(table, dict.fromkeys(row), values=row)
            return


def _change_event(message: Message) -> Iterator[Sighting]:
    if message["changeType"]:
        yield Sighting(None, dict.fromkeys(message.get("columnNames") or []), message.get("oldKeyNames") or [])


def _rows_with(flag: str, is_column: Callable[[str], bool]) -> Callable[[Message], Iterator[Sighting]]:
    """The reader of rows that have a column of this name, and others that are none of the table's."""

    def read(message: Message) -> Iterator[Sighting]:
        if message[flag] is not None:
            row = {name: value for name, value in message.items() if is_column(name)}
            yield Sighting(None, dict.fromkeys(row), values=row)

    return read


READERS: dict[str, Callable[[Message], Iterator[Sighting]]] = {
    "aliyun": _aliyun,
    "canal": _canal,
    "change_event": _change_event,
    "debezium": _debezium,
    "dms": _dms,
    "goldengate": _goldengate,
    "maxwell": _maxwell,
    "oracle_cdc": _rows_with("OPERATION$", lambda name: not name.endswith("$")),
    "powerexchange": _rows_with("DTL__CAPXACTION", lambda name: not name.startswith("DTL__")),
    "rows": _rows,
    "snapshots": _rows,
    "sqlserver_ct": _rows_with("__$operation", lambda name: not name.startswith("__")),
    "trigger_audit": _trigger_audit,
    "wal2json_v1": _wal2json_v1,
    "wal2json_v2": _wal2json_v2,
}


def _payload(key: Any) -> Message:
    """The key of a Kafka record, as it is or under a schema."""
    row = key.get("payload", key) if isinstance(key, dict) else None
    return row if isinstance(row, dict) else {}


def _qualified(message: Message, schema: str) -> str | None:
    return _joined(message.get(schema), message.get("table"))


def _joined(*parts: str | None) -> str | None:
    """`schema.table`, of what there is of it."""
    return ".".join(filter(None, parts)) or None
