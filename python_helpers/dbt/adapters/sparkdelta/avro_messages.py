"""Records of Avro files as messages, read by fastavro: Spark's own reader is a jar, and there is none for Spark 4.2.0.

Values are as `row_messages` tells of Parquet. A 32-bit float is told as the double that it is.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from decimal import MAX_PREC, Context, Decimal
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta.listing import unescaped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ANY_DECIMAL = "any-decimal"  # a logical type for decimals whose scale fastavro refuses: it may be negative or above the precision
SHORT_FLOAT = "short-float"  # a logical type of floats of 32 bits that are wanted as the decimal number that Java writes
_FLOAT = struct.Struct("f")
_EXACT = Context(prec=MAX_PREC)


class UnreadableFile(Exception):
    """path, as Spark spells it, and reason of a file that cannot be read to its end."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def frame_of_messages(session: SparkSession, paths: list[str], *, base64_bytes: bool) -> DataFrame:
    """A DataFrame with a column `message` beside the files' metadata: their records, in their order.

    paths: with escaped glob characters. base64_bytes: as in `messages`. Raises UnreadableFile.
    """
    from pyspark.sql import functions as F

    files = session.read.format("binaryFile").load(paths)
    reasons: dict[str, str | None] = dict(files.select("path", F.udf(problem, "string", useArrow=False)("content")).collect())
    for path in map(unescaped, paths):
        reason = reasons.get(re.sub("^file:/+", "file:/", path), "it is empty")  # Spark leaves those out
        if reason:
            raise UnreadableFile(path, reason)
    read = F.udf(lambda content: list(messages(content, base64_bytes=base64_bytes)), "array<string>", useArrow=False)
    return files.withColumn("message", F.explode(read("content")))


def problem(content: bytes) -> str | None:
    """Why a file cannot be read to its end; None if it can."""
    try:
        for _ in messages(content):
            pass
    except Exception as error:  # whatever fastavro meets in bytes that are no Avro
        return f"{error}" or type(error).__name__
    return None


def messages(content: bytes, *, base64_bytes: bool = False) -> Iterator[str]:
    """Each record of a file as a JSON object. base64_bytes: a column's are told so too, not as hexadecimal digits. Raises what
    fastavro raises where the file is not whole or not Avro."""
    import fastavro

    know_logical_types()
    for record in fastavro.reader(io.BytesIO(content)):
        if not isinstance(record, dict):
            raise ValueError("its schema is no record")
        yield message_of(record, base64_bytes=base64_bytes)


def message_of(record: Mapping[str, Any], *, base64_bytes: bool) -> str:
    """A record as a JSON object."""
    told = {name: json_value(value, top=True, hex_bytes=not base64_bytes) for name, value in record.items()}
    return json.dumps(told, ensure_ascii=False)


def know_logical_types() -> None:
    """Teach fastavro nanoseconds, dates and timestamps that Python does not have, and all digits of decimals."""
    from fastavro.read import LOGICAL_READERS

    for name in ("decimal", ANY_DECIMAL):
        LOGICAL_READERS[f"bytes-{name}"] = LOGICAL_READERS[f"fixed-{name}"] = _decimal
    LOGICAL_READERS[f"float-{SHORT_FLOAT}"] = _short_float
    LOGICAL_READERS.pop("string-uuid", None)  # the text as it was written, not in Python's spelling
    for kind in ("timestamp", "local-timestamp"):
        LOGICAL_READERS.setdefault(f"long-{kind}-nanos", _of_nanos(LOGICAL_READERS[f"long-{kind}-micros"]))
    for name in [name for name in LOGICAL_READERS if re.search("timestamp|date", name)]:
        if not isinstance(LOGICAL_READERS[name], _Moments):
            LOGICAL_READERS[name] = _Moments(LOGICAL_READERS[name])


def _decimal(data: Any, schema: Any, *_: Any) -> Decimal:
    """A decimal as it was written; fastavro rounds it to the precision that the schema tells."""
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-schema.get("scale", 0), _EXACT)


def _short_float(number: Any, *_: Any) -> float:
    """0.1, not the double 0.10000000149011612: a number of few digits that is the same 32 bits."""
    for digits in (6, 7, 8):
        short = float(f"{number:.{digits}g}")
        if _FLOAT.unpack(_FLOAT.pack(short))[0] == number:
            return short
    return float(f"{number:.9g}")


def _of_nanos(read: Any) -> Any:
    """A reader of nanoseconds, from fastavro's of microseconds: no more of them fit into Spark's timestamps."""
    return lambda number, *schemas: read(number // 1000, *schemas)


class _Moments:
    """A reader of fastavro's for dates or timestamps, for which one that Python has no date for is a text: one value that fits
    nowhere, and not the end of the file."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __call__(self, number: Any, *schemas: Any) -> Any:
        try:
            return self._read(number, *schemas)
        except (OverflowError, ValueError):
            return f"{number} since 1970"


def json_value(value: Any, top: bool = False, hex_bytes: bool = False) -> Any:
    """A value as json.dumps takes it. top: it is a column of its row. hex_bytes: its bytes are told in hexadecimal digits."""
    if isinstance(value, dict):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return value.hex().upper() if hex_bytes else base64.b64encode(value).decode()
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return str(value) if top else value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value
