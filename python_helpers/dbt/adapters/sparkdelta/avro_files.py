"""Rows as Avro files, written by fastavro in the executors: Spark's own writer is a jar, and there is none for Spark 4.2.0."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta.listing import file_system

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructType

_SCHEMAS: dict[str, Any] = {
    "boolean": "boolean", "tinyint": "int", "smallint": "int", "int": "int", "bigint": "long",
    "float": "float", "double": "double", "string": "string", "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip


def write(session: SparkSession, frame: DataFrame, folder: str) -> int:
    """Write a folder of part-00000.avro, … and, at last, `_SUCCESS`; returns the number of rows.

    The files' bytes pass through this process, one file at a time. Raises FileExistsError, and what `_contents` raises.
    """
    system, path = file_system(session, folder)
    if system.exists(path):
        raise FileExistsError(folder)
    rows = 0
    for number, (count, content) in enumerate(_contents(frame)):
        _write_file(session, f"{folder}/part-{number:05d}.avro", content)
        rows += count
    _write_file(session, f"{folder}/_SUCCESS", b"")
    return rows


def _write_file(session: SparkSession, path: str, content: bytes) -> None:
    system, hadoop_path = file_system(session, path)
    file = system.create(hadoop_path)
    try:
        file.write(content)
    finally:
        file.close()


def _contents(frame: DataFrame) -> Iterator[tuple[int, bytes]]:
    """Files, each with the number of its rows: one of each partition that has rows, at least one, deflated.

    Each field may be null; decimals are bytes, moments are microseconds, of `timestamp_ntz` local ones.
    Raises DbtRuntimeError where Avro has no such name or type.
    """
    schema = _record(frame.schema, "row")
    numbers = frame.select(*(_as_numbers(field.dataType, frame[field.name]).alias(field.name) for field in frame.schema.fields))

    def encoded(rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
        records = [row.asDict(recursive=True) for row in rows]
        if records:
            yield len(records), _file(schema, records)

    written = False
    for file in numbers.rdd.mapPartitions(encoded).toLocalIterator():
        written = True
        yield file
    if not written:  # a reader learns the columns all the same
        yield 0, _file(schema, [])


def _file(schema: dict[str, Any], records: list[dict[str, Any]]) -> bytes:
    import fastavro

    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec="deflate")
    return file.getvalue()


def _record(struct: StructType, name: str) -> dict[str, Any]:
    unfit = [field.name for field in struct.fields if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", field.name)]
    if unfit:
        names = ", ".join(f"`{each}`" for each in unfit)
        raise DbtRuntimeError(f"Avro has no names like {names}: letters, digits and _, no digit first. Take another format.")
    fields = [{"name": f.name, "type": _schema(f.dataType, f"{name}.{f.name}"), "default": None} for f in struct.fields]
    return {"type": "record", "name": name, "fields": fields}


def _schema(kind: DataType, name: str) -> list[Any]:
    """The Avro schema of a Spark type. name: of the record that it may be, which no other of the file has."""
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType):
        return ["null", _record(kind, name)]
    if isinstance(kind, T.ArrayType):
        return ["null", {"type": "array", "items": _schema(kind.elementType, name)}]
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        return ["null", {"type": "map", "values": _schema(kind.valueType, name)}]
    if isinstance(kind, T.DecimalType):
        return ["null", {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}]
    named = "string" if isinstance(kind, T.StringType) else kind.simpleString()
    if named not in _SCHEMAS:
        raise DbtRuntimeError(f"column {name.removeprefix('row.')}: Avro has no type for {named}. Take another format.")
    return ["null", _SCHEMAS[named]]


def _as_numbers(kind: DataType, value: Column) -> Column:
    """A value whose dates and moments are the whole numbers that Avro has for them: Python has no date after the year 9999."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.DateType):
        return F.unix_date(value)
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.TimestampNTZType):
        # as text: the clock of the session's time zone shows an hour twice when it is put back
        return F.unix_micros(F.concat(value.cast("string"), F.lit("Z")).cast("timestamp"))
    if isinstance(kind, T.StructType):
        parts = [_as_numbers(field.dataType, value.getField(field.name)).alias(field.name) for field in kind.fields]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(kind, T.ArrayType):
        of_array = kind.elementType
        return F.transform(value, lambda each: _as_numbers(of_array, each))
    if isinstance(kind, T.MapType):
        of_map = kind.valueType
        return F.transform_values(value, lambda _, each: _as_numbers(of_map, each))
    return value
