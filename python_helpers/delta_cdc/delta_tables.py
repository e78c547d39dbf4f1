"""What a Delta table tells of a feed that is read from it (`file_format: delta`), for `delta-cdc init`: rows of a table, or
messages in a column. Read without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from delta_cdc import flat_files
from delta_cdc.discover import Discovery, FoundTable, discover
from delta_cdc.errors import OperationError
from delta_cdc.formats import FORMATS

MESSAGES = 20_000
_ORDER = ("topic", "partition", "offset")
_SCHEMA_ID = re.compile(rb"^\0.{4}(?=\{)", re.DOTALL)
_TYPES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def tables_in(folder: Path) -> dict[str, Path]:
    """The Delta table in a folder under the name "", else those in the folders in it, by their names."""
    if (folder / "_delta_log").is_dir():
        return {"": folder}
    return {each.parent.name: each.parent for each in sorted(folder.glob("*/_delta_log")) if each.is_dir()}


def told_by(tables: Mapping[str, Path], message_format: str, whole: str) -> Discovery:
    """What the tables tell of a feed of this format. whole: the name of the one table whose folder and messages name none. Raises
    OperationError where one cannot be read, no column holds messages of the format, or folders are not one for each table."""
    found = Discovery(teller="Delta tables")
    for folder, path in tables.items():
        part = _told(path, message_format, folder or whole)
        if folder and (len(part.tables) > 1 or set(part.tables) & set(found.tables)):  # each would take all that its folder holds
            raise OperationError(
                f"The Delta tables in {path.parent} are not one for each table: {folder} holds {', '.join(part.tables)}. Make a "
                f"Delta table that mixes tables a feed of its own: name {path} as `--location`."
            )
        found.settings, found.unread, found.nameless = part.settings, found.unread + part.unread, part.nameless
        for name, table in part.tables.items():
            table.folder = folder or None
            found.tables[name] = table
    if not found.tables:
        places = ", ".join(str(path) for path in tables.values())
        raise OperationError(f"No row of {places} could be read as a message (JSON) of `{message_format}`.")
    return found


def without_feed(tables: Mapping[str, Path]) -> list[Path]:
    """Those that have no change data feed, which a run reads them by."""
    settings = {path: _opened(path).metadata().configuration for path in tables.values()}
    return [path for path, given in settings.items() if given.get("delta.enableChangeDataFeed") != "true"]


def _told(path: Path, message_format: str, name: str) -> Discovery:
    types = {each["name"]: _spark_type(each["type"]) for each in json.loads(_opened(path).schema().to_json())["fields"]}
    settings = {} if FORMATS[message_format].settings.get("file_format") else {"file_format": "delta"}
    if message_format == "delta_cdf":
        return Discovery({name: FoundTable(name, columns=dict(types))}, settings=settings)
    if message_format in flat_files.FORMATS:
        table = FoundTable(name)
        for seen in flat_files.seen_in(path, message_format, dict.fromkeys(types, "")):
            table.columns |= {column: types[column] for column in seen.columns}
        return Discovery({name: table}, settings=settings)
    held_in = "value" if "value" in types else next(iter(types)) if len(types) == 1 else None
    if held_in is None:
        raise OperationError(
            f"{path}: none of its columns is called `value`: {', '.join(types)}. Write the source by hand, and say with "
            "`message_column` which one holds the messages (docs/formats/delta_cdf.md)."
        )
    found = discover(message_format, _messages(path, held_in, "key" if "key" in types else None), whole=name)
    found.settings = {**settings, "message_column": held_in}
    if set(_ORDER) <= set(types):
        found.settings["row_order"] = list(_ORDER)
    return found


def _messages(path: Path, value: str, key: str | None) -> Iterator[str]:
    """Messages as lines of JSON; with a key as Kafka records."""
    from deltalake import QueryBuilder

    names = dict.fromkeys((value, key or value))
    columns = ", ".join(f'"{name}"' for name in names)
    asked = QueryBuilder().register("messages", _opened(path))
    rows: Any = asked.execute(f'select {columns} from messages where "{value}" is not null limit {MESSAGES}').read_all()
    parts = {name: [*map(_text, rows[name].to_pylist())] for name in names}
    for text, of in zip(parts[value], parts[key or value], strict=True):
        try:
            yield json.dumps({"topic": "", "key": json.loads(of), "value": json.loads(text)}) if key else text
        except (ValueError, TypeError):  # what is no JSON, or null
            yield text


def _text(part: Any) -> str:
    """A part of a record as a run reads it (`row_messages.without_schema_id`); none is empty."""
    data = part if isinstance(part, bytes) else b"" if part is None else str(part).encode()
    return _SCHEMA_ID.sub(b"", data).decode(errors="replace")


def _opened(path: Path) -> Any:
    from deltalake import DeltaTable

    try:
        return DeltaTable(str(path))
    except Exception as error:  # whatever its log holds
        raise OperationError(f"{path} cannot be read as a Delta table: {error}. Write the source by hand.") from None


def _spark_type(described: Any) -> str:
    """A type of Delta's schema as Spark writes it.

    >>> _spark_type({"type": "array", "elementType": "long"}), _spark_type("decimal(10,2)")
    ('array<bigint>', 'decimal(10,2)')
    """
    if isinstance(described, str):
        return _TYPES.get(described, described)
    if described["type"] == "array":
        return f"array<{_spark_type(described['elementType'])}>"
    if described["type"] == "map":
        return f"map<{_spark_type(described['keyType'])},{_spark_type(described['valueType'])}>"
    fields = (f"`{each['name'].replace('`', '``')}`: {_spark_type(each['type'])}" for each in described["fields"])
    return f"struct<{','.join(fields)}>"
