"""Types of databases and of message formats, as Spark types. What Spark has no type for is a string, as the format writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from delta_cdc.spark_types import by_word

_SIZED = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_UNLIMITED = "decimal(38,18)"

_POSTGRES = by_word(
    {
        "smallint": "smallint, int2",
        "int": "integer, int4",
        "bigint": "bigint, int8",
        "float": "real, float4",
        "double": "double precision, float8",
        "boolean": "boolean, bool",
        "binary": "bytea",
        "date": "date",
        "timestamp_ntz": "timestamp, timestamp without time zone",
        "timestamp": "timestamptz, timestamp with time zone",
    }
)


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
    return _POSTGRES.get(word, "string")


_MYSQL = by_word(
    {
        "float": "float",
        "double": "double, real",
        "boolean": "boolean, bool",
        "int": "year",
        "date": "date",
        "timestamp_ntz": "datetime, timestamp",
        "binary": "binary, varbinary, tinyblob, blob, mediumblob, longblob",
    }
)
# signed, unsigned
_MYSQL_WHOLE = {
    "tinyint": ("tinyint", "smallint"),
    "smallint": ("smallint", "int"),
    "mediumint": ("int", "int"),
    "int": ("int", "bigint"),
    "integer": ("int", "bigint"),
    "bigint": ("bigint", "decimal(20,0)"),
}


def mysql_type(text: str) -> str:
    """
    >>> mysql_type("INT(10) UNSIGNED"), mysql_type("varchar(10)"), mysql_type("decimal(10,2)")
    ('bigint', 'string', 'decimal(10,2)')
    """
    words = _SIZED.sub(" ", text).lower().split()
    word = words[0] if words else ""
    if word in ("decimal", "numeric", "dec", "fixed"):
        return _decimal(text)
    if word in _MYSQL_WHOLE:
        return _MYSQL_WHOLE[word]["unsigned" in words]
    return _MYSQL.get(word, "string")


_CONNECT = by_word(
    {
        "tinyint": "int8",
        "smallint": "int16",
        "int": "int32",
        "bigint": "int64",
        "float": "float, float32",
        "double": "double, float64",
        "boolean": "boolean",
        "binary": "bytes",
    }
)
_KAFKA, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_DECIMAL = _KAFKA + "Decimal"
_SEMANTIC = {
    "io.debezium.data.VariableScaleDecimal": "string",  # of PostgreSQL's numeric, with up to 131,072 digits
    **dict.fromkeys((_KAFKA + "Date", *(_DEBEZIUM + what for what in ("Date", "IsoDate", "StructuredDate"))), "date"),
    **{f"{_DEBEZIUM}{unit}Timestamp": "timestamp_ntz" for unit in ("", "Micro", "Nano", "Iso", "Structured")},
    _KAFKA + "Timestamp": "timestamp_ntz",
    **dict.fromkeys((_DEBEZIUM + "ZonedTimestamp", _DEBEZIUM + "StructuredZonedTimestamp"), "timestamp"),
}


def connect_type(described: Mapping[str, Any]) -> str:
    """The type of a field of a Kafka Connect schema, by its semantic type before its own.

    >>> connect_type({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}), connect_type({"type": "int16"})
    ('timestamp_ntz', 'smallint')
    """
    if is_connect_decimal(described):
        parameters = described.get("parameters") or {}
        return _decimal(f"({parameters.get('connect.decimal.precision', 38)},{parameters.get('scale', 0)})")
    return _SEMANTIC.get(described.get("name") or "") or _CONNECT.get(described.get("type", ""), "string")


def is_connect_decimal(described: Mapping[str, Any]) -> bool:
    return described.get("name") == _DECIMAL


_DMS = by_word(
    {
        "boolean": "BOOLEAN, BOOL",
        "tinyint": "INT1",
        "smallint": "INT2, INT16, UINT1",
        "int": "INT4, INT32, UINT2",
        "bigint": "INT8, INT64, UINT4",
        "decimal(20,0)": "UINT8",
        "float": "REAL4, FLOAT",
        "double": "REAL8, DOUBLE",
        "date": "DATE, DATE32",
        "timestamp_ntz": "DATETIME, TIMESTAMP",
        "binary": "BYTES, BLOB",
    }
)


def dms_type(column: Mapping[str, Any]) -> str:
    """The type of a column of a DMS table definition."""
    word = str(column.get("type", "")).upper()
    if word == "NUMERIC":
        # what is 0 is left out, as the length of a text without one
        return _decimal(f"({column.get('precision', 38)},{column.get('scale', 0 if 'precision' in column else 18)})")
    return _DMS.get(word, "string")


_ALIYUN = by_word(
    {
        "timestamp": "DATE",
        "binary": "BYTES",
        "bigint": "LONG",
        "double": "DOUBLE",
        "float": "FLOAT",
        "int": "INTEGER, INT",
        "string": "STRING",
        "boolean": "BOOLEAN",
    }
)


def aliyun_type(word: str) -> str | None:
    return _ALIYUN.get(word.upper())


def _decimal(text: str) -> str:
    size = _SIZED.search(text)
    if size is None:
        return _UNLIMITED
    precision, scale = int(size[1]), int(size[2] or 0)
    precision, scale = max(precision - min(scale, 0), scale), max(scale, 0)  # Oracle's NUMBER(3,5) and NUMBER(5,-2)
    return f"decimal({precision},{scale})" if precision <= 38 else "string"


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = dict(zip(_WHOLE, ("(3,0)", "(5,0)", "(10,0)", "(19,0)"), strict=True))


def wider(one: str, other: str) -> str:
    """The type that holds the values of both, or the first, if there is none.

    >>> wider("bigint", "int"), wider("float", "double"), wider("decimal(10,2)", "decimal(12,1)"), wider("int", "string")
    ('bigint', 'double', 'decimal(13,2)', 'string')
    >>> wider("date", "timestamp"), wider("int", "decimal(10,2)"), wider("int", "float"), wider("float", "float")
    ('timestamp', 'decimal(12,2)', 'double', 'float')
    """
    if "string" in (one, other):
        return "string"
    if one in _WHOLE and other in _WHOLE:
        return _WHOLE[max(_WHOLE.index(one), _WHOLE.index(other))]
    if {one, other} & {"float", "double"} and {one, other} <= {"tinyint", "smallint", "int", "float", "double"}:
        return "double" if one != other else one
    if one == "date" and other in ("timestamp", "timestamp_ntz"):
        return other
    sizes = [_SIZED.search(_DIGITS.get(t, t)) for t in (one, other) if t in _WHOLE or t.startswith("decimal")]
    if len(sizes) == 2 and all(sizes):
        (p1, s1), (p2, s2) = ((int(m[1]), int(m[2] or 0)) for m in sizes if m)
        scale = max(s1, s2)
        whole = max(p1 - s1, p2 - s2)
        return f"decimal({whole + scale},{scale})" if whole + scale <= 38 else one
    return one
