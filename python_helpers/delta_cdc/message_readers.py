"""What the messages of each format tell of their tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_cdc.source_types import aliyun_type, connect_type, dms_type, is_connect_decimal, mysql_type, postgres_type

Message = Mapping[str, Any]


@dataclass
class Sighting:
    """What one message tells of one table. columns: name to Spark type, None where the message tells none. identity: the
    keys are a replica identity, which may as well be the whole row. nulls: the columns that are null, where that identity leaves
    such out. values: the columns', where the format tells no type."""

    table: str | None
    columns: Mapping[str, str | None]
    keys: Sequence[str] = ()
    identity: bool = False
    nulls: Collection[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None


def _wal2json_v2(message: Message) -> Iterator[Sighting]:
    if message["action"] not in ("I", "U", "D"):
        return
    columns = message.get("columns") or message.get("identity") or []
    types = {c["name"]: postgres_type(c["type"]) if "type" in c else None for c in columns}
    named = [c["name"] for c in message.get("pk") or []]
    identity = [] if named else [c["name"] for c in message.get("identity") or []]
    order = _order(message.get("lsn"), "_timestamp", message.get("timestamp"))
    yield Sighting(_qualified(message, "schema"), types, named or identity, bool(identity), settings=order)


def _wal2json_v1(message: Message) -> Iterator[Sighting]:
    order = _order(message.get("nextlsn"), "_timestamp", message.get("timestamp"))
    for change in message["change"]:
        if change["kind"] not in ("insert", "update", "delete"):
            continue
        old = change.get("oldkeys") or {}
        names = change.get("columnnames") or old.get("keynames") or []
        types = change.get("columntypes") or old.get("keytypes") or []
        named = (change.get("pk") or {}).get("pknames") or []
        identity = [] if named else old.get("keynames") or []
        told = len(types) == len(names)
        columns = {name: postgres_type(types[place]) if told else None for place, name in enumerate(names)}
        nulls = [name for name, value in zip(names, change.get("columnvalues") or (), strict=False) if value is None]
        yield Sighting(_qualified(change, "schema"), columns, named or identity, bool(identity), nulls, settings=order)


def _debezium(message: Message) -> Iterator[Sighting]:
    key, envelope = _debezium_record(message)
    schema = None
    if isinstance(envelope, dict) and "payload" in envelope and not _is_flattened(envelope):
        schema, envelope = envelope.get("schema"), envelope["payload"]
    if not isinstance(envelope, dict):
        return  # a tombstone
    if any(isinstance(envelope.get(name), dict) for name in ("ts_ms", "__op", "__deleted")):
        raise TypeError("Avro's JSON, which a run does not read")
    if "iodebeziumop" in envelope:
        data = envelope.get("data")
        schema = data.get("schema") if isinstance(data, dict) else None
        envelope = _of_cloud_event(envelope)
    fields = {f.get("field"): f for f in (schema or {}).get("fields") or []}
    if _is_flattened(envelope):
        yield _debezium_row(key, envelope, fields)
        return
    row = envelope.get("after") or envelope.get("before")
    source = envelope.get("source") or {}
    if source.get("connector") == "scylla" and envelope.get("key"):  # there alone, perhaps
        key = {"schema": fields.get("key"), "payload": envelope["key"]}
    if source.get("table") == "":
        return  # a decoded logical message
    if "collection" in source and isinstance(row, str):
        document = json.loads(row)
        order = _order(source.get("ord") is not None and source.get("ts_ms"), "_timestamp", True)
        yield Sighting(_debezium_table(source), dict.fromkeys(document), ["_id"], settings=order)
        return
    if not isinstance(row, dict):
        return  # a heartbeat, transaction metadata, a schema change
    described = (fields.get("after") or fields.get("before") or {}).get("fields") or []
    types = {f["field"]: connect_type(_cell_of(f)) for f in described} or dict.fromkeys(row)
    decimals = [f["field"] for f in described if is_connect_decimal(f) and isinstance(row.get(f["field"]), (int, float))]
    handling = "string" if _is_aurora_dsql(source) else "double" if decimals else None
    settings = _debezium_order(envelope.get("op"), source, envelope) | ({"decimal_handling": handling} if handling else {})
    yield Sighting(_debezium_table(source), _key_types(key, types) | types, list(_payload(key)), settings=settings)


def _debezium_row(key: Any, row: Message, fields: Mapping[Any, Message]) -> Sighting:
    """What a row alone tells. key: of its record. fields: those of its schema, by their names."""
    origin = {name.removeprefix("__source_").removeprefix("__"): text for name, text in row.items() if name.startswith("__")}
    columns = {name: connect_type(fields[name]) if name in fields else None for name in row if not name.startswith("__")}
    keys, keyed = list(_payload(key)), _key_types(key, columns)
    # a document's `_id`, which its delete does not have
    if keys == ["id"] and (origin.get("collection") or ("_id" in columns and keyed)):
        keys, keyed = ["_id"], {"_id": keyed.get("id")}
    order = _debezium_order(row.get("__op"), origin, origin)
    return Sighting(_debezium_table(origin), keyed | columns, keys, settings=order)


def _debezium_record(message: Message) -> tuple[Any, Any]:
    """The key and the value of a Kafka record, which a tool may have written as text (`kcat -J`); without a record no key."""
    is_text = isinstance(message.get("payload"), str)
    is_bare = _is_flattened(message) or bool({"op", "after", "before"} & set(message))
    if is_bare or ("payload" in message and not is_text) or not {"topic", "key"} & set(message):
        return None, message
    return _parsed(message.get("key")), _parsed(message["payload"] if is_text else message.get("value"))


def _parsed(part: Any) -> Any:
    return json.loads(part) if isinstance(part, str) and part.startswith("{") else part


def _of_cloud_event(event: Message) -> Message:
    """The envelope that a CloudEvent tells: its attributes are the envelope's and its source's fields, without underscores."""
    named = {"tsms": "ts_ms", "tsus": "ts_us", "commitlsn": "commit_lsn", "changelsn": "change_lsn"}
    fields = {name.removeprefix("iodebezium"): value for name, value in event.items() if name.startswith("iodebezium")}
    return {**_payload(event.get("data")), "op": fields["op"], "source": {named.get(n, n): fields[n] for n in fields}}


def _debezium_table(source: Message) -> str | None:
    """The first of these fields that there is, as of MongoDB, of Cassandra, of CockroachDB's changefeeds."""
    schema = next(filter(None, map(source.get, ("schema", "schema_name", "db", "keyspace"))), None)
    return _joined(schema, next(filter(None, map(source.get, ("table", "table_name", "collection"))), None))


def _key_types(key: Any, columns: Mapping[str, str | None]) -> dict[str, str | None]:
    """The columns that only a record's key has."""
    missing = [name for name in _payload(key) if name not in columns]
    fields = (key.get("schema") or {}).get("fields") or [] if missing else []
    described = {f.get("field"): connect_type(_cell_of(f)) for f in fields}
    return {name: described.get(name) for name in missing}


def _cell_of(described: Message) -> Message:
    """The field of a value that stands in {value, set}, as YugabyteDB and Cassandra write it, or in ScyllaDB's {value}; of others
    the field itself."""
    inner = {f.get("field"): f for f in described.get("fields") or []}
    is_cell = {"value", "set"} <= set(inner) or ("value" in inner and str(described.get("name")).endswith(".Cell"))
    return inner["value"] if is_cell else described


def _debezium_order(op: Any, source: Message, envelope: Message) -> dict[str, Any]:
    """The order of a change without a position; rows of a snapshot need none."""
    numbers = ("lsn", "pos", "scn", "event_serial_no")
    if op == "r" or any(str(source.get(name)).isdecimal() for name in numbers):
        return {}
    if any(source.get(name) for name in ("file", "commit_lsn", "change_lsn")) or _is_aurora_dsql(source):
        return {}
    # PostgreSQL's places of the last commit and of the change
    if re.fullmatch(r'\[[^,]*,\s*"?\d+"?\]', str(source.get("sequence"))):
        return {}
    has_time = any(source.get(name) for name in ("ts_us", "ts_ms", "ts_ns")) or envelope.get("ts_ms")
    return _order(False, "_timestamp", has_time)


def _is_aurora_dsql(source: Message) -> bool:
    """It orders its commits by their time in nanoseconds, and writes decimals as text."""
    return bool(source.get("cluster") and source.get("ts_ns")) and not source.get("connector")


def _order(has_position: Any, first: str, has_first: Any) -> dict[str, Any]:
    """Settings of the order: none where a message has a position, else that of arrival, after the time or number `first`, if
    it has that."""
    return {} if has_position else {"sequence_by": [first, "_arrival"] if has_first else ["_arrival"]}


def _is_flattened(message: Message) -> bool:
    """Whether it is a row alone, as the transform ExtractNewRecordState writes it: its columns may have any names."""
    return bool({"__op", "__deleted"} & set(message))


def _canal(message: Message) -> Iterator[Sighting]:
    types = {name.lower(): mysql_type(kind) for name, kind in (message.get("mysqlType") or {}).items()}
    rows = message.get("data") or (message.get("old") if message.get("type") == "DELETE" else None)  # the latter as DRS tells it
    for row in rows or [] if not message.get("isDdl") else []:
        if not isinstance(row, dict):
            raise TypeError("`data` holds no rows")
        named = {name: types.get(name.lower()) for name in row}
        number = message.get("id")  # TiCDC's is 0, beside the number of the transaction
        has_position = (message.get("ts") and number) or (number == 0 and (message.get("_tidb") or {}).get("commitTs"))
        order = _order(has_position, "_message_time", message.get("ts"))
        yield Sighting(_qualified(message, "database"), named, message.get("pkNames") or [], settings=order)


# of the database in which it keeps what it knows
_OF_MAXWELL = {"bootstrap", "columns", "databases", "heartbeats", "positions", "schemas", "tables"}


def _maxwell(message: Message) -> Iterator[Sighting]:
    row = message.get("data")
    if message.get("database") == "maxwell" and message.get("table") in _OF_MAXWELL:
        return
    if row and message["type"] in ("insert", "update", "delete", "bootstrap-insert"):
        is_ordered = "position" in message or message["type"] == "bootstrap-insert"
        order = _order(is_ordered, "_timestamp", message.get("ts"))
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
    if columns and message["op_type"]:
        order = _order(message.get("pos"), "_timestamp", message.get("op_ts"))
        row = {name: value for image in images for name, value in image.items() if name in columns}
        yield Sighting(message.get("table"), columns, message.get("primary_keys") or [], settings=order, values=row)


def _dms(message: Message) -> Iterator[Sighting]:
    about = message["metadata"]
    table = _joined(about.get("schema-name"), about.get("table-name"))
    definition = (message.get("control") or {}).get("table-def") or {}
    if definition and str(about.get("table-name")).startswith("awsdms_"):
        return  # of a control table of its own, which has no key
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
    message = {name.lower(): value for name, value in message.items()}  # a database that folds names has them in capitals
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
        told = [value for name, value in message.items() if name.upper() == flag.upper()]
        if not told:
            raise KeyError(flag)
        if told[-1] is not None:
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
    "powerexchange": _rows_with("DTL__CAPXACTION", lambda name: not name.upper().startswith("DTL__")),
    "rows": _rows,
    "snapshots": _rows,
    "sqlserver_ct": _rows_with("__$operation", lambda name: not name.startswith("__$")),
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
