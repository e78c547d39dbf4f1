"""Rows of CSV, Parquet, ORC and Avro files as messages: each row is one JSON object of all its columns, nulls included.

Every file is read by its own columns: what a file does not have is absent from its messages, not null.

In a Parquet, ORC or Avro file: a decimal is text, exact at any size; a float is text (NaN and Infinity have no number in
JSON), but a number inside a struct, an array or a map; a timestamp is ISO text of UTC, one without a zone its own text, to the
microsecond; bytes are hexadecimal digits, but base64 inside a struct, an array or a map, and in formats that read them so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta.avro_messages import UnreadableFile, frame_of_messages
from dbt.adapters.sparkdelta.columns import quoted, sql_of, with_leaves
from dbt.adapters.sparkdelta.java import innermost_cause
from dbt.adapters.sparkdelta.listing import unescaped

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# moments in texts, to the microsecond: Spark writes milliseconds
MOMENTS = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_JSON = {"ignoreNullFields": "false", **MOMENTS}

# formats whose rows may be the columns of a file, and which have bytes in base64
BASE64 = ("debezium", "goldengate")

# RFC 4180, and an empty field is null unless it is quoted: without a text of its own for null, Spark makes both null.
CSV = {"quote": '"', "nullValue": "\x00\x00", "emptyValue": ""}
_CSV_READS = {"multiLine": "true", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "unreadable"}


def messages(session: SparkSession, paths: Iterable[str], feed: Mapping[str, Any]) -> list[DataFrame]:
    """DataFrames with a column `message` beside the file's metadata, which together hold each row of the files once.

    paths: with escaped glob characters. feed: {feed, file_format, csv_options, columns: those of the table as listed}. Files
    of equal columns are one DataFrame. Raises DbtRuntimeError, which names feed and file, where one is not of its kind.
    """
    if feed["file_format"] == "avro":
        try:
            return [frame_of_messages(session, list(paths), base64_bytes=feed.get("format") in BASE64)]
        except UnreadableFile as error:
            raise _unreadable(error.path, feed, error.reason) from error
    shapes: dict[str, tuple[Any, list[str]]] = {}
    for path in paths:
        shape = _csv_columns(session, path, feed) if feed["file_format"] == "csv" else _schema(session, path, feed)
        shapes.setdefault(repr(shape), (shape, []))[1].append(path)
    read = _csv_messages if feed["file_format"] == "csv" else _typed_messages
    return [read(session, group, shape, feed) for shape, group in shapes.values()]


# Parquet, ORC


def _schema(session: SparkSession, path: str, feed: Mapping[str, Any]) -> StructType:
    try:
        return session.read.format(feed["file_format"]).load(path).schema
    except Exception as error:
        reason = innermost_cause(error).rstrip(".")
        if "TIMESTAMP(NANOS" in reason:
            reason += '. Spark knows no nanoseconds; have the producer write microseconds (`coerce_timestamps="us"` of pandas)'
        raise _unreadable(path, feed, reason) from error


def columns_of_files(session: SparkSession, paths: Iterable[str], file_format: str) -> list[dict[str, str]]:
    """The columns of each Parquet or ORC file: {name: Spark type}. Raises DbtRuntimeError, which names a file that is none."""
    schemas = [_schema(session, path, {"file_format": file_format}) for path in paths]
    return [{each.name: sql_of(each.dataType) for each in schema} for schema in schemas]  # names of fields in backticks


def _typed_messages(session: SparkSession, paths: list[str], schema: StructType, feed: Mapping[str, Any]) -> DataFrame:
    frame = session.read.format(feed["file_format"]).schema(schema).load(paths)
    return frame.withColumn("message", message_of(frame, schema.fieldNames(), feed, paths[0]))


def text_of(given: Column) -> Column:
    """A text as it is; one that is no UTF-8 marked, so that it is no JSON: a parser would put U+FFFD for what it cannot read."""
    from pyspark.sql import functions as F

    return F.when(F.is_valid_utf8(given), given).otherwise(F.concat(F.lit("(not UTF-8) "), F.make_valid_utf8(given)))


def without_schema_id(given: Column) -> Column:
    """A part of a Kafka record, as text or bytes, as text: without the five bytes, zero and a schema's id, that Confluent's
    serializer of JSON Schema (`JSON_SR`) writes before the JSON."""
    from pyspark.sql import functions as F

    data = given.cast("binary")
    has_id = (F.hex(data.substr(1, 1)) == "00") & (F.hex(data.substr(6, 1)) == "7B")
    return F.when(has_id, data.substr(6, 2**31 - 1).cast("string")).otherwise(given.cast("string"))


def message_of(frame: DataFrame, columns: Sequence[str], feed: Mapping[str, Any], where: str) -> Column:
    """The message of each row (string): `message_column`, or a JSON object of the named columns.

    The format debezium takes a Kafka record whole: with `message_column` and a column `key` beside it, and perhaps `topic` and
    `headers`, the message is {topic, key, headers, value}. Raises DbtRuntimeError where `where`, a file or table, lacks it.
    """
    from pyspark.sql import functions as F

    name = feed.get("message_column")
    if name is None:
        base64_bytes = feed.get("format") in BASE64
        values = [_json_value(frame[quoted(each)], frame.schema[each].dataType, base64_bytes).alias(each) for each in columns]
        return F.to_json(F.struct(*values), _JSON)
    if name not in columns:
        raise DbtRuntimeError(
            f"feed {feed['feed']}, {where}: `message_column` is `{name}`, and its columns are {', '.join(columns)}. Name the one "
            "that holds the messages."
        )
    value = text_of(without_schema_id(frame[quoted(name)]))
    if feed["format"] != "debezium" or "key" not in columns:
        return value
    topic = frame["topic"] if "topic" in columns else F.lit(None)
    return F.concat(
        F.lit('{"topic": '), _json_of(topic), F.lit(', "key": '), _json_of(without_schema_id(frame["key"])),
        F.lit(', "headers": {'), F.concat_ws(", ", F.transform(_headers(frame), _header)),
        F.lit('}, "value": '), F.coalesce(value, F.lit("null")), F.lit("}"),
    )  # fmt: skip


def _headers(frame: DataFrame) -> Column:
    """The headers of each record as entries of key and value: all of a map of texts; as Spark's source of Kafka has them, where a
    name may be there twice, the one that counts."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    found = frame.schema["headers"].dataType if "headers" in frame.columns else None
    if isinstance(found, T.MapType):
        return F.map_entries(frame["headers"])
    if isinstance(found, T.ArrayType) and isinstance(found.elementType, T.StructType):
        return F.filter(frame["headers"], lambda entry: entry["key"] == "__debezium.oldkey")
    return F.array().cast("array<struct<key: string, value: string>>")


def _header(entry: Column) -> Column:
    from pyspark.sql import functions as F

    return F.concat(_json_text(entry["key"]), F.lit(": "), _json_of(entry["value"]))


def _json_of(text: Column) -> Column:
    """A text as JSON: as it is where it is some, else as JSON's string; `null` for none."""
    from pyspark.sql import functions as F

    text = text.cast("string")
    is_json = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    return F.coalesce(F.when(is_json, text), _json_text(text), F.lit("null"))


def _json_text(text: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(text.isNotNull(), F.regexp_extract(F.to_json(F.array(text)), r"(?s)^\[(.*)\]$", 1))


def _json_value(value: Column, data_type: DataType, base64_bytes: bool) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(data_type, T.BinaryType):
        return F.base64(value) if base64_bytes else F.hex(value)
    if isinstance(data_type, T.FractionalType):
        return value.cast("string")
    # decimals as texts: JSON's numbers would come back as binary floating point
    return value.cast(with_leaves(data_type, lambda leaf: T.StringType() if isinstance(leaf, T.DecimalType) else leaf))


# CSV


def _csv_options(feed: Mapping[str, Any]) -> dict[str, str]:
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in feed["csv_options"].items()}
    chosen = {"header": "true", **CSV, **given, **_CSV_READS}
    return {"escape": chosen["quote"], **chosen}  # a quote is doubled inside of quotes


def _csv_columns(session: SparkSession, path: str, feed: Mapping[str, Any]) -> list[str]:
    """The names in the header; those of the table where files have none. A column without a name is `_c` and its place."""
    options = _csv_options(feed)
    if options["header"] == "false":
        return list(feed["columns"])
    try:
        row = session.read.options(**(options | {"header": "false"})).csv(path).head()
    except Exception as error:
        raise _unreadable(path, feed, innermost_cause(error).rstrip(".")) from error
    if row is None:
        raise _unreadable(path, feed, "it is empty, without a header. Files without headers want `csv_options: {header: false}`")
    names = [name or f"_c{place}" for place, name in enumerate(row)]
    if re.search(r"[\x00-\x08\x0e-\x1f\ufffd]", "".join(names)):
        raise _unreadable(path, feed, "its first line is no text")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _unreadable(path, feed, f"its header names {', '.join(f'`{name}`' for name in twice)} twice")
    return names


def _csv_messages(session: SparkSession, paths: list[str], names: list[str], feed: Mapping[str, Any]) -> DataFrame:
    """A row with more or fewer fields than the header is its own text, which no format can read."""
    from pyspark.sql import functions as F

    # by place: names may differ in nothing but case, or be that of the column of unreadable rows
    places = [f"c{place}" for place in range(len(names))]
    schema = ", ".join(f"{column} string" for column in [*places, "unreadable"])
    frame = session.read.schema(schema).options(**_csv_options(feed)).csv(paths)
    row = F.struct(*(F.col(place).alias(name) for place, name in zip(places, names, strict=True)))
    return frame.withColumn("message", F.coalesce("unreadable", F.to_json(row, _JSON)))


# Errors


def _unreadable(path: str, feed: Mapping[str, Any], reason: str) -> DbtRuntimeError:
    kind = {"csv": "CSV", "parquet": "Parquet", "orc": "ORC", "avro": "Avro"}[feed["file_format"]]
    plain = unescaped(path)
    if "feed" not in feed:  # it is only looked at
        return DbtRuntimeError(f"{plain}: no {kind} file can be read there: {reason}. Take it away, or name another folder.")
    return DbtRuntimeError(
        f"feed {feed['feed']}, file {plain}: `file_format` is {feed['file_format']}, and no {kind} file can be read there: "
        f"{reason}.\nNothing of it was loaded. Put a whole {kind} file in its place and run again; `delta-cdc retract` goes on "
        "without it."
    )
