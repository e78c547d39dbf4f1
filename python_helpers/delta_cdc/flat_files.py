"""What files that are not lines of JSON tell of their tables, for `delta-cdc init`: columns, types, how a CSV file is written."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from delta_cdc.discover import Discovery, FoundTable, lines_of
from delta_cdc.errors import OperationError
from delta_cdc.message_readers import READERS, Sighting
from delta_cdc.settings_block import shown

# of which messages are flat rows: the file's columns are the table's
FORMATS = ("rows", "snapshots", "oracle_cdc", "powerexchange", "sqlserver_ct")
KINDS = ("json", "csv", "parquet", "orc", "avro")
# of a table so many files are looked at, the newest by name, and of a CSV file so many rows
FILES, ROWS = 20, 1000

# the columns of each of these files, as Spark has them: (kind, paths) → [{name: type}]
AskSpark = Callable[[str, Sequence[str]], list[dict[str, str]]]


def kind_of_all(folder: Path, change_sets: Mapping[str, Sequence[Path]]) -> str:
    """`kind_of` the files of `change_sets_in` a folder. Raises OperationError where they are not of one."""
    first = {kind_of(path): path.relative_to(folder) for paths in change_sets.values() for path in reversed(paths)}
    if len(first) > 1:
        raise OperationError(
            f"The files in {folder} are not all of one kind: {', '.join(map(str, sorted(first.values())))}. Take away those that "
            "are no change sets, or say what they are with --file-format."
        )
    return next(iter(first))


def kind_of(path: Path) -> str:
    """The `file_format` that a file's name tells.

    >>> kind_of(Path("a/1.csv.gz")), kind_of(Path("1.tsv")), kind_of(Path("part-0.snappy.parquet")), kind_of(Path("0001"))
    ('csv', 'csv', 'parquet', 'json')
    """
    endings = [each.lstrip(".").lower().replace("tsv", "csv") for each in path.suffixes]
    return next((each for each in reversed(endings) if each in KINDS), "json")


def teller(kind: str, message_format: str, spark: AskSpark) -> Callable[[Sequence[Path], str], Discovery]:
    """What finds the one table of such files: a function of their paths and of the table's name."""

    def tell(paths: Sequence[Path], whole: str) -> Discovery:
        newest = paths[-FILES:]
        found, table = Discovery(teller="files", settings={"file_format": kind}), FoundTable(whole)
        if kind == "csv":
            for path in newest:
                separator, rows = _csv_rows(path)
                if separator and (before := found.settings.setdefault("csv_options", {"sep": separator})["sep"]) != separator:
                    raise OperationError(
                        f"{path}: its fields are parted by {shown(separator)}, those of the files before it by {shown(before)}. "
                        "Files that are written in different ways are two feeds: give each its own folder."
                    )
                for row in rows:
                    _add(table, path, row)
        else:
            shapes = map(_avro_columns, newest) if kind == "avro" else spark(kind, [str(path) for path in newest])
            for path, types in zip(newest, shapes, strict=True):
                _add(table, path, dict.fromkeys(types, ""), types)
        found.tables[whole] = table
        return found

    def _add(table: FoundTable, path: Path, row: Mapping[str, str], types: Mapping[str, str] | None = None) -> None:
        for seen in seen_in(path, message_format, row):
            typed = seen if types is None else replace(seen, columns={name: types[name] for name in seen.columns}, values=None)
            table.add(typed)

    return tell


def seen_in(path: Path, message_format: str, row: Mapping[str, str]) -> list[Sighting]:
    """What a row of a file or Delta table tells, with the columns that are the table's own. Raises OperationError where it lacks
    the one that all rows of the format have."""
    try:
        return [*READERS[message_format](row)]
    except KeyError as missing:
        raise OperationError(
            f"{path}: none of its columns ({', '.join(row)[:60]}) is `{missing.args[0]}`, which rows of `{message_format}` have. "
            "Take it away, or name another format: `rows` is for all flat rows."
        ) from None


_OTHER_ENCODING = (
    "`delta-cdc init` reads UTF-8 alone: let it look at a copy (`iconv -f iso-8859-1 -t utf-8`), then add `csv_options: "
    "{encoding: iso-8859-1}` to the source."
)


def _csv_rows(path: Path) -> tuple[str | None, Iterator[dict[str, str]]]:
    """How a CSV file separates its fields, None where it has one, and its first rows; one of empty fields where there is none."""
    lines = lines_of([path], _OTHER_ENCODING)
    header = next((line for line in lines if line.strip("\r\n")), "")
    if not header:
        raise OperationError(f"{path}: it is empty, without a header. Take it away: a run stops at it too.")
    separator = max(",;\t|", key=header.count)  # the first of equals
    fields = _fields(chain([header], lines), separator)
    names = next(fields, [])
    if not "".join(names).strip() or any(re.fullmatch(r"-?\d[\d.:TZ -]*", name) for name in names):
        raise OperationError(
            f"{path}: its first line ({header.strip()[:60]}) is no header. `delta-cdc init` finds the columns of CSV files in "
            "their headers; files without are written by hand: `csv_options: {header: false}` (docs/formats/files.md)."
        )
    if len(names) == 1 and (sign := re.search(r"[~^:#\xa6\xa7\x01-\x08\x1c-\x1f]", names[0])):
        raise OperationError(
            f"{path}: its header ({shown(names[0][:60])}) is one field; `delta-cdc init` knows commas, semicolons, tabs "
            f"and bars. Let it look at a copy with one of them for {shown(sign[0])}, then add `csv_options: {{sep: …}}` to the "
            "source."
        )
    folded = [name.strip().lower() for name in names]
    for place, name in enumerate(folded):
        if not name:
            wrong = f"has no name for field {place + 1}"
        elif name in folded[:place]:
            wrong = f"names `{names[place].strip()}` twice (to Spark, case makes no difference)"
        else:
            continue
        raise OperationError(f"{path}: its header ({header.strip()[:60]}) {wrong}. Give each column a name of its own.")
    rows = (dict(zip(names, row, strict=True)) for row in islice(fields, ROWS) if len(row) == len(names))
    return separator if len(names) > 1 else None, chain([dict.fromkeys(names, "")], rows)


def _fields(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The fields of each row; none from one on that is beyond what csv reads, such as a quote that nobody closes."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=separator)


_AVRO = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "bytes": "binary",
    "fixed": "binary", "date": "date",
    **{f"timestamp-{unit}": "timestamp" for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": "timestamp_ntz" for unit in ("millis", "micros", "nanos")},
}  # fmt: skip


def _avro_columns(path: Path) -> dict[str, str]:
    import fastavro

    try:
        with path.open("rb") as file:
            schema: Any = fastavro.reader(file).writer_schema
        return {each["name"]: _avro_type(each["type"]) for each in schema["fields"]}
    except Exception as error:  # whatever fastavro meets in bytes that are no Avro
        raise OperationError(f"{path} cannot be read as Avro: {error}. Take it away, or name others.") from None


def _avro_type(described: Any) -> str:
    """
    >>> _avro_type(["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]), _avro_type("long")
    ('decimal(9,2)', 'bigint')
    >>> _avro_type({"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2})
    'string'
    """
    if isinstance(described, list):
        told = [each for each in described if each != "null"]
        return _avro_type(told[0]) if len(told) == 1 else "string"
    if isinstance(described, Mapping):
        logical = described.get("logicalType")
        if logical == "decimal":
            precision = described["precision"]  # 64 where Kafka Connect was not told it
            return f"decimal({precision},{described.get('scale', 0)})" if precision <= 38 else "string"
        known = _AVRO.get(logical) if logical else _AVRO.get(described["type"]) if isinstance(described["type"], str) else None
        return known or "string"
    return _AVRO.get(described, "string")
