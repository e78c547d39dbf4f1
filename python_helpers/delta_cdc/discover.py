"""What a feed's messages tell of its tables: names, keys, columns and types, as a proposal for its source.

Types come from the messages' own schema alone. A column of which the format tells no type is a string: types are never
guessed from values.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from delta_cdc.config import IDENTIFIER
from delta_cdc.errors import OperationError
from delta_cdc.value_types import Looks

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


@dataclass
class FoundTable:
    """A table as all messages together tell it. name: as in the messages, with its schema if they name one. folder: that of its
    change sets, where each table has one."""

    name: str
    folder: str | None = None
    keys: list[str] = field(default_factory=list)
    columns: dict[str, str | None] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)

    def add(self, seen: Sighting) -> None:
        spelled = {name.lower(): name for name in self.columns}
        for name, data_type in seen.columns.items():
            known = spelled.setdefault(name.lower(), name)
            before = self.columns.get(known)
            self.columns[known] = data_type if before is None else before if data_type is None else wider(before, data_type)
        if seen.keys and not (seen.identity and len(seen.keys) == len(self.columns)):
            self.keys = [spelled.get(key.lower(), key) for key in seen.keys]
        self.settings.update(seen.settings)
        if seen.values is not None:
            self.looks.add(seen.values)


@dataclass
class Discovery:
    """tables: in the order in which they were first seen. unread: messages that are not of the format. teller: who says it.
    settings: what the files say of the feed."""

    tables: dict[str, FoundTable] = field(default_factory=dict)
    unread: int = 0
    teller: str = "messages"
    settings: dict[str, Any] = field(default_factory=dict)


def of_database(tables: Iterable[Mapping[str, Any]]) -> Discovery:
    """What `adapter.tables_of_database` told: {name, keys, columns: {name: type or None}}."""
    found = {each["name"]: FoundTable(each["name"], keys=list(each["keys"]), columns=dict(each["columns"])) for each in tables}
    return Discovery(found, teller="database's constraints")


def discover(message_format: str, lines: Iterable[str], *, whole: str = "") -> Discovery:
    """The tables of the messages of a feed.

    message_format: a name in `READERS`. whole: the name of the one table of a format whose messages name none.
    """
    reader = READERS.get(message_format)
    if reader is None:
        raise OperationError(
            f"Format `{message_format}` tells nothing of its tables; those that do: {', '.join(sorted(READERS))}. "
            "Let its database tell them (`delta-cdc init --jdbc`), or write its source by hand (docs/configuration.md)."
        )
    found = Discovery()
    for line in lines:
        if not line.strip():
            continue
        try:
            message = json.loads(line)
            if message is None and message_format == "debezium":
                continue  # a tombstone
            seen = list(reader(message)) if isinstance(message, dict) else None
            if any(isinstance(each.keys, str) or not all(isinstance(key, str) for key in each.keys) for each in seen or ()):
                seen = None
        except (ValueError, TypeError, AttributeError, KeyError):
            seen = None
        if seen is None:
            found.unread += 1
            continue
        for sighting in seen:
            name = sighting.table or whole
            found.tables.setdefault(name, FoundTable(name)).add(sighting)
    return found


def discover_files(message_format: str, paths: Iterable[Path], whole: str) -> Discovery:
    """`discover`, of the lines of files."""
    return discover(message_format, lines_of(paths), whole=whole)


def lines_of(paths: Iterable[Path]) -> Iterator[str]:
    """The lines of text files, plain or gzipped. Raises OperationError for a file that is none."""
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig") as file:
                yield from file
        except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
            why = f"{path} cannot be read as text in UTF-8, plain or gzipped: {error}. Take it away, or name others."
            raise OperationError(why) from None


def change_sets_in(folder: Path) -> dict[str, list[Path]]:
    """The files that a run would take from a folder: of the folder itself under the name "", else those of each folder in it.
    Raises OperationError where there are none."""

    def files(of: Path) -> list[Path]:
        return [path for path in listed(of) if path.is_file()]

    def listed(of: Path) -> list[Path]:
        return sorted(path for path in of.iterdir() if path.name[0] not in "._") if of.is_dir() else []

    flat = files(folder)
    found = {"": flat} if flat else {each.name: files(each) for each in listed(folder)}
    found = {name: paths for name, paths in found.items() if paths}
    if not found:
        raise OperationError(f"There is no change set in {folder}, nor in a folder in it. Name the folder that the feed fills.")
    return found


def discover_folder(
    folder: Path, change_sets: Mapping[str, Sequence[Path]], tell: Callable[[Iterable[Path], str], Discovery], whole: str
) -> Discovery:
    """The tables of the change sets of a folder, or of folders in it that each hold one table's and are named as it.

    change_sets: of `change_sets_in`. tell: what files tell, by their paths and the name of a table that they do not name;
    whole: that name, where the folder has no others in it.
    """
    if "" in change_sets:
        return tell(change_sets[""], whole)
    found = Discovery()
    for name, paths in change_sets.items():
        part = tell(paths, name)
        if len(part.tables) > 1 or set(part.tables) & set(found.tables):
            raise OperationError(
                f"The folders in {folder} are not one for each table: {name} holds {', '.join(part.tables)}. Give the "
                f"folder of one change set ({folder / name}); then say `unit: folder` and `location: {folder}` in the source."
            )
        found.unread, found.teller = found.unread + part.unread, part.teller
        for what, value in part.settings.items():
            if found.settings.setdefault(what, value) != value:
                raise OperationError(
                    f"{folder}: the files of {name} have `{what}` {value}, those before it {found.settings[what]}. What is "
                    "written in different ways is two feeds: give each its own folder."
                )
        for told, table in part.tables.items():
            found.tables[told] = table
            table.folder = name
    return found


def source_yml(
    feed: str, location: str, message_format: str, found: Discovery, given: Mapping[str, Mapping[str, Any]] | None = None, *,
    taken: Collection[str] = (), enabled: bool | None = None,
) -> str:
    """The source of a feed as yml; what the messages do not tell is named in a comment.

    given: settings of tables, by name. taken: names of models that there are, in lower case. enabled: whether dbt is to read
    it; None, the default, where nobody needs to be told.
    """
    names = short_names(found.tables)
    tables = [_table_yml(table, names[table.name]) for table in found.tables.values()]
    for name, described in zip(found.tables, tables, strict=True):
        settings = described["config"]["meta"]["cdc"]
        settings.update((given or {}).get(name, {}))
        if f"final_{described['name']}".lower() in taken:
            settings.setdefault("final_name", _free(f"final_{feed}_{described['name']}", {*taken}))
    switch = {} if enabled is None else {"enabled": enabled}
    source = {
        "name": feed,
        "config": switch | {"meta": {"cdc": {"format": message_format, "location": location, **found.settings}}},
        "tables": tables,
    }
    text = yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False, allow_unicode=True, width=120)
    keyless = [table["name"] for table in tables if not {"keys", "keyless", "insert_only"} & set(table["config"]["meta"]["cdc"])]
    untyped = [f"{table.name}.{name}" for table in found.tables.values() for name, kind in table.columns.items() if kind is None]
    todo = "" if enabled is None else "# Not read as long as it says `enabled: false`.\n"
    if keyless:
        todo += f"# The {found.teller} tell no key of: {', '.join(keyless)}. Set `keys`, or `keyless`.\n"
    for table in tables:
        asked = ["keys"] if table["name"] in keyless else []
        if message_format == "rows":
            asked += [what for what in ("sequence_by", "operation") if what not in table["config"]["meta"]["cdc"]]
        named = [column["name"] for column in table["columns"]]
        likely = {what: _likely(what, named, table["name"]) for what in asked}
        if any(likely.values()):
            perhaps = "; ".join(f"{what}: {', '.join(names)}" for what, names in likely.items() if names)
            todo += f"# {table['name']}, by the names alone, perhaps {perhaps}.\n"
    if untyped:
        some = ", ".join(untyped[:3]) + (" …" if len(untyped) > 3 else "")
        todo += f"# No type is told of {len(untyped)} columns, which are strings here: {some}\n"
    for told in found.tables.values():
        types = ", ".join(f"{name} {kind}" for name, kind in told.looks.types().items())
        if types:
            todo += f"# {names[told.name]}, by the values of {told.looks.rows} rows alone, perhaps {types}.\n"
    return todo + text


_LIKELY = {
    "keys": r"id|{table}_?id|key|{table}_?key|uuid|guid",
    "sequence_by": r".*(seq|sequence|lsn|scn|offset|version|position|commit_ts|commit_time)(_?(no|nr|number|id))?"
                   r"|(updated|modified|changed|captured|event|op|commit)_?(at|on|time|ts|date)|at|ts|timestamp",
    "operation": r"_?(op|operation|(op|operation|change|dml)_?type|action|flag|op_?code|dml_?flag|cdc_?(op|operation))",
}


def _likely(what: str, columns: Iterable[str], table: str) -> list[str]:
    """The columns whose names say that they may be meant.

    >>> _likely("keys", ["invoice_id", "customer_id"], "invoice"), _likely("operation", ["op", "options"], "invoice")
    (['invoice_id'], ['op'])
    """
    pattern = _LIKELY[what].replace("{table}", re.escape(table.lower()))
    return [name for name in columns if re.fullmatch(pattern, name.lower())]


def settings_of(table: FoundTable, name: str) -> dict[str, Any]:
    """The settings that the messages imply for a table that is configured under this name."""
    known_by_itself = name == (table.folder or table.name.rsplit(".", 1)[-1])
    named = {} if known_by_itself else {"source_table": table.folder or table.name}
    return {**named, **({"keys": table.keys} if table.keys else {}), **table.settings}


def short_names(tables: Iterable[str]) -> dict[str, str]:
    """A name for the models of each table: its own without its schema, where that is one of a kind, and of letters, digits and
    underscores.

    >>> short_names(["shop.invoice", "a.note", "b.note", "visit [1]", "my-table", "my_table", "2024"])["visit [1]"]
    'visit_1'
    """
    last = {name: name.rsplit(".", 1)[-1] for name in tables}
    count = Counter(short.lower() for short in last.values())
    wanted = {name: short if count[short.lower()] == 1 else name.replace(".", "_") for name, short in last.items()}
    taken: set[str] = set()
    in_turn = sorted(wanted, key=lambda name: not IDENTIFIER.fullmatch(wanted[name]))  # first those that can be as they are
    return {name: _free(_identifier(wanted[name]), taken) for name in in_turn}


def _identifier(text: str) -> str:
    """
    >>> _identifier("my-table"), _identifier("Größe (alt)"), _identifier("2024"), _identifier("订单")
    ('my_table', 'Grosse_alt', 'table_2024', 'table')
    """
    if IDENTIFIER.fullmatch(text):
        return text
    latin = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", latin).strip("_")
    return name if IDENTIFIER.fullmatch(name) else f"table_{name}".rstrip("_")


def _free(name: str, taken: set[str]) -> str:
    """The name, or with a number if it is taken; it is from then on."""
    candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    free = next(each for each in candidates if each.lower() not in taken)
    taken.add(free.lower())
    return free


def _table_yml(table: FoundTable, name: str) -> dict[str, Any]:
    columns = [{"name": column, "data_type": kind or "string"} for column, kind in table.columns.items()]
    return {"name": name, "config": {"meta": {"cdc": settings_of(table, name)}}, "columns": columns}


# --------------------------------------------------------------------------------
# What each format tells


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
    key, envelope = _debezium_record(message)
    schema = None
    if isinstance(envelope, dict) and "payload" in envelope and not _is_flattened(envelope):
        schema, envelope = envelope.get("schema"), envelope["payload"]
    if not isinstance(envelope, dict):
        return  # a tombstone
    if "iodebeziumop" in envelope:
        envelope = _of_cloud_event(envelope)
    fields = {f.get("field"): f for f in (schema or {}).get("fields") or []}
    if _is_flattened(envelope):
        origin = {
            name.removeprefix("__source_").removeprefix("__"): text for name, text in envelope.items() if name.startswith("__")
        }
        columns = {
            name: connect_type(fields[name]) if name in fields else None for name in envelope if not name.startswith("__")
        }
        order = _debezium_order(envelope.get("__op"), origin, origin)
        yield Sighting(_debezium_table(origin), _key_types(key, columns) | columns, list(_payload(key)), settings=order)
        return
    row = envelope.get("after") or envelope.get("before")
    source = envelope.get("source") or {}
    if source.get("table") == "":
        return  # a decoded logical message
    if "collection" in source and isinstance(row, str):
        document = json.loads(row)
        order = {} if source.get("ord") is not None and source.get("ts_ms") else _by_arrival("_timestamp")
        yield Sighting(_debezium_table(source), dict.fromkeys(document), ["_id"], settings=order)
        return
    if not isinstance(row, dict):
        return  # a heartbeat, transaction metadata, a schema change
    described = (fields.get("after") or fields.get("before") or {}).get("fields") or []
    types = {f["field"]: connect_type(_cell_of(f)) for f in described} or dict.fromkeys(row)
    decimals = [
        f["field"] for f in described if f.get("name") == _CONNECT + "Decimal" and isinstance(row.get(f["field"]), (int, float))
    ]
    settings = _debezium_order(envelope.get("op"), source, envelope) | ({"decimal_handling": "double"} if decimals else {})
    yield Sighting(_debezium_table(source), _key_types(key, types) | types, list(_payload(key)), settings=settings)


def _debezium_record(message: Message) -> tuple[Any, Any]:
    """The key and the value of a Kafka record, which a tool may have written as text (`kcat -J`); without a record no key."""
    is_text = isinstance(message.get("payload"), str)
    if _is_flattened(message) or "op" in message or ("payload" in message and not is_text) or not {"topic", "key"} & set(message):
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
    """The field of a value that stands in {value, set}, as YugabyteDB and Cassandra write it; of others the field itself."""
    inner = {f.get("field"): f for f in described.get("fields") or []}
    return inner["value"] if {"value", "set"} <= set(inner) else described


def _debezium_order(op: Any, source: Message, envelope: Message) -> dict[str, Any]:
    """The order of a change without a position; rows of a snapshot need none."""
    numbers = ("lsn", "pos", "scn", "event_serial_no")
    if op == "r" or any(str(source.get(name)).isdecimal() for name in numbers):
        return {}
    if any(source.get(name) for name in ("file", "commit_lsn", "change_lsn")):
        return {}
    # PostgreSQL's places of the last commit and of the change
    if re.fullmatch(r'\[[^,]*,\s*"?\d+"?\]', str(source.get("sequence"))):
        return {}
    has_time = any(source.get(name) for name in ("ts_us", "ts_ms", "ts_ns")) or envelope.get("ts_ms")
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
        is_ordered = "position" in message or message["type"] == "bootstrap-insert"
        order = {} if is_ordered else _by_arrival("_timestamp" if message.get("ts") else None)
        keys = message.get("primary_key_columns") or []
        yield Sighting(_qualified(message, "database"), dict.fromkeys(row), keys, settings=order)


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
        order = {} if message.get("pos") else _by_arrival("_timestamp" if message.get("op_ts") else None)
        yield Sighting(message.get("table"), columns, message.get("primary_keys") or [], settings=order)


def _dms(message: Message) -> Iterator[Sighting]:
    about = message["metadata"]
    table = _joined(about.get("schema-name"), about.get("table-name"))
    definition = (message.get("control") or {}).get("table-def") or {}
    if definition:
        types = {name: dms_type(column) for name, column in definition.get("columns", {}).items()}
        yield Sighting(table, types, definition.get("primary-key") or [])
    elif about["record-type"] == "data" and message.get("data"):
        row = message["data"]  # with the columns of the row before under BI_, if the task adds them
        yield Sighting(table, {name: None for name in row if name.removeprefix("BI_") == name or name[3:] not in row})


def _aliyun(message: Message) -> Iterator[Sighting]:
    schema = message["schema"]
    types = {c["name"]: _ALIYUN.get(c["type"].upper()) for c in schema.get("dataColumn") or []}
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
            yield Sighting(table, dict.fromkeys(row))
            return


def _change_event(message: Message) -> Iterator[Sighting]:
    if message["changeType"]:
        yield Sighting(None, dict.fromkeys(message.get("columnNames") or []), message.get("oldKeyNames") or [])


def _rows_with(flag: str, is_column: Callable[[str], bool]) -> Callable[[Message], Iterator[Sighting]]:
    """The reader of rows that have a column of this name, and others that are none of the table's."""

    def read(message: Message) -> Iterator[Sighting]:
        if {name.upper(): value for name, value in message.items()}[flag.upper()] is not None:
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


# --------------------------------------------------------------------------------
# Types of sources, as Spark types. What Spark has no type for is a string, as the format writes it.

_SIZED = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_UNLIMITED = "decimal(38,18)"


def postgres_type(text: str) -> str:
    """
    >>> postgres_type("numeric(10,2)"), postgres_type("timestamp(3) with time zone"), postgres_type("integer[]")
    ('decimal(10,2)', 'timestamp', 'string')
    """
    if text.endswith("[]"):
        return "string"
    word = " ".join(_SIZED.sub(" ", text).lower().split())
    if word in ("numeric", "decimal"):
        return _decimal(text) if _SIZED.search(text) else "string"  # up to 131,072 digits
    return {
        "smallint": "smallint",
        "int2": "smallint",
        "integer": "int",
        "int4": "int",
        "bigint": "bigint",
        "int8": "bigint",
        "real": "float",
        "float4": "float",
        "double precision": "double",
        "float8": "double",
        "boolean": "boolean",
        "bool": "boolean",
        "bytea": "binary",
        "date": "date",
        "timestamp without time zone": "timestamp_ntz",
        "timestamp": "timestamp_ntz",
        "timestamp with time zone": "timestamp",
        "timestamptz": "timestamp",
    }.get(word, "string")


def mysql_type(text: str) -> str:
    """
    >>> mysql_type("INT(10) UNSIGNED"), mysql_type("varchar(10)"), mysql_type("decimal(10,2)")
    ('bigint', 'string', 'decimal(10,2)')
    """
    words = _SIZED.sub(" ", text).lower().split()
    word, unsigned = words[0] if words else "", "unsigned" in words
    if word in ("decimal", "numeric", "dec", "fixed"):
        return _decimal(text)
    whole = {
        "tinyint": ("tinyint", "smallint"),
        "smallint": ("smallint", "int"),
        "mediumint": ("int", "int"),
        "int": ("int", "bigint"),
        "integer": ("int", "bigint"),
        "bigint": ("bigint", "decimal(20,0)"),
    }
    if word in whole:
        return whole[word][unsigned]
    return {
        "float": "float",
        "double": "double",
        "real": "double",
        "boolean": "boolean",
        "bool": "boolean",
        "year": "int",
        "date": "date",
        "datetime": "timestamp_ntz",
        "timestamp": "timestamp_ntz",
        "binary": "binary",
        "varbinary": "binary",
        "tinyblob": "binary",
        "blob": "binary",
        "mediumblob": "binary",
        "longblob": "binary",
    }.get(word, "string")


_CONNECT = "org.apache.kafka.connect.data."
_DEBEZIUM_TIME = "io.debezium.time."


def connect_type(described: Mapping[str, Any]) -> str:
    """The type of a field of a Kafka Connect schema, by its semantic type before its own.

    >>> connect_type({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}), connect_type({"type": "int16"})
    ('timestamp_ntz', 'smallint')
    """
    semantic = described.get("name") or ""
    if semantic == _CONNECT + "Decimal":
        parameters = described.get("parameters") or {}
        return _decimal(f"({parameters.get('connect.decimal.precision', 38)},{parameters.get('scale', 0)})")
    if semantic == "io.debezium.data.VariableScaleDecimal":
        return "string"  # of PostgreSQL's numeric, with up to 131,072 digits
    if semantic in (*(_DEBEZIUM_TIME + what for what in ("Date", "IsoDate", "StructuredDate")), _CONNECT + "Date"):
        return "date"
    if semantic in (
        _CONNECT + "Timestamp",
        *(_DEBEZIUM_TIME + f"{unit}Timestamp" for unit in ("", "Micro", "Nano", "Iso", "Structured")),
    ):
        return "timestamp_ntz"
    if semantic in (_DEBEZIUM_TIME + "ZonedTimestamp", _DEBEZIUM_TIME + "StructuredZonedTimestamp"):
        return "timestamp"
    return {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "float": "float",
        "float32": "float",
        "double": "double",
        "float64": "double",
        "boolean": "boolean",
        "bytes": "binary",
    }.get(described.get("type", ""), "string")


def dms_type(column: Mapping[str, Any]) -> str:
    """The type of a column of a DMS table definition."""
    word = str(column.get("type", "")).upper()
    if word == "NUMERIC":
        return _decimal(f"({column.get('precision', 38)},{column.get('scale', 18)})")
    return {
        "BOOLEAN": "boolean",
        "INT1": "tinyint",
        "INT2": "smallint",
        "INT4": "int",
        "INT8": "bigint",
        "INT16": "smallint",
        "INT32": "int",
        "INT64": "bigint",
        "UINT1": "smallint",
        "UINT2": "int",
        "UINT4": "bigint",
        "UINT8": "decimal(20,0)",
        "REAL4": "float",
        "REAL8": "double",
        "DATE": "date",
        "DATETIME": "timestamp_ntz",
        "BYTES": "binary",
        "BLOB": "binary",
    }.get(word, "string")


_ALIYUN = {
    "DATE": "timestamp",
    "BYTES": "binary",
    "LONG": "bigint",
    "DOUBLE": "double",
    "FLOAT": "float",
    "INTEGER": "int",
    "INT": "int",
    "STRING": "string",
    "BOOLEAN": "boolean",
}


def _decimal(text: str) -> str:
    size = _SIZED.search(text)
    if size is None:
        return _UNLIMITED
    precision, scale = int(size[1]), int(size[2] or 0)
    precision, scale = max(precision - min(scale, 0), scale), max(scale, 0)  # Oracle's NUMBER(3,5) and NUMBER(5,-2)
    return f"decimal({precision},{scale})" if precision <= 38 else "string"


_WHOLE = ("tinyint", "smallint", "int", "bigint")


def wider(one: str, other: str) -> str:
    """The type that holds the values of both, or the first, if there is none.

    >>> wider("bigint", "int"), wider("float", "double"), wider("decimal(10,2)", "decimal(12,1)"), wider("int", "string")
    ('bigint', 'double', 'decimal(13,2)', 'int')
    """
    if one in _WHOLE and other in _WHOLE:
        return _WHOLE[max(_WHOLE.index(one), _WHOLE.index(other))]
    if {one, other} == {"float", "double"}:
        return "double"
    sizes = [_SIZED.search(t) for t in (one, other) if t.startswith("decimal")]
    if len(sizes) == 2:
        (p1, s1), (p2, s2) = ((int(m[1]), int(m[2])) for m in sizes if m)
        scale = max(s1, s2)
        whole = max(p1 - s1, p2 - s2)
        return f"decimal({whole + scale},{scale})" if whole + scale <= 38 else one
    return one
