"""How a Delta table's columns come to hold the rows that are to be written: what is added, widened, or has to be cast."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

# What Delta's type widening takes, by the names of pyspark's types; decimals apart.
_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}


@dataclass(frozen=True)
class Merged:
    """type: what the table's column becomes. changes: SQL of its ALTER TABLE, in `add` and `widen`.
    rewrite: the column changes as Delta does only by writing all rows anew (date to timestamp).
    cast: not every value of the wanted type fits; the column's type stays."""

    type: DataType
    add: tuple[str, ...] = ()
    widen: tuple[str, ...] = ()
    rewrite: bool = False
    cast: bool = False


def merge(have: DataType, wanted: DataType, path: str) -> Merged:
    """The type of a column that is `have` and gets values of type `wanted`. path: its name in SQL."""
    from pyspark.sql import types as T

    if isinstance(have, T.StructType) and isinstance(wanted, T.StructType):
        names = {field.name.lower(): field for field in wanted.fields}
        fields, parts, add = [], [], []
        for field in have.fields:
            other = names.pop(field.name.lower(), None)
            at = f"{path}.{quoted(field.name)}"
            part = Merged(field.dataType) if other is None else merge(field.dataType, other.dataType, at)
            fields.append(T.StructField(field.name, part.type))
            parts.append(part)
        for field in names.values():
            fields.append(T.StructField(field.name, field.dataType))
            add.append(f"{path}.{quoted(field.name)} {sql_of(field.dataType)}")
        return _together(T.StructType(fields), parts, add)
    if isinstance(have, T.ArrayType) and isinstance(wanted, T.ArrayType):
        part = merge(have.elementType, wanted.elementType, f"{path}.element")
        return _together(T.ArrayType(part.type), [part])
    if isinstance(have, T.MapType) and isinstance(wanted, T.MapType):
        key = merge(have.keyType, wanted.keyType, f"{path}.key")
        value = merge(have.valueType, wanted.valueType, f"{path}.value")
        return _together(T.MapType(key.type, value.type), [key, value])
    if sql_of(have) == sql_of(wanted) or _widens(wanted, have) or isinstance(wanted, T.NullType):
        return Merged(have)
    if _widens(have, wanted):
        return Merged(wanted, widen=(f"{path} type {sql_of(wanted)}",))
    if isinstance(have, T.DateType) and isinstance(wanted, T.TimestampType):
        return Merged(wanted, rewrite=True)
    return Merged(have, cast=True)


def _together(whole: DataType, parts: list[Merged], add: list[str] | None = None) -> Merged:
    return Merged(
        whole,
        tuple([*(sql for part in parts for sql in part.add), *(add or [])]),
        tuple(sql for part in parts for sql in part.widen),
        any(part.rewrite for part in parts),
        any(part.cast for part in parts),
    )


def _widens(narrow: DataType, wide: DataType) -> bool:
    from pyspark.sql import types as T

    if isinstance(wide, T.DecimalType):
        digits, scale = wide.precision - wide.scale, wide.scale
        if isinstance(narrow, T.DecimalType):
            return scale >= narrow.scale and digits >= narrow.precision - narrow.scale
        return narrow.typeName() in _DIGITS and digits >= _DIGITS[narrow.typeName()]
    return wide.typeName() in _WIDER.get(narrow.typeName(), ())


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _plain_or_quoted(name: str) -> str:
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else quoted(name)


def sql_of(data_type: DataType) -> str:
    """A type as SQL writes it, with names in backticks only where they need them."""
    from pyspark.sql import types as T

    if isinstance(data_type, T.StructType):
        return f"struct<{','.join(f'{_plain_or_quoted(f.name)}:{sql_of(f.dataType)}' for f in data_type.fields)}>"
    if isinstance(data_type, T.ArrayType):
        return f"array<{sql_of(data_type.elementType)}>"
    if isinstance(data_type, T.MapType):
        return f"map<{sql_of(data_type.keyType)},{sql_of(data_type.valueType)}>"
    if isinstance(data_type, (T.CharType, T.VarcharType)):
        return "string"
    return data_type.simpleString()


def with_leaves(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """The type with what is made of each type in it that has no parts, at any depth."""
    from pyspark.sql import types as T

    def inner(part: DataType) -> DataType:
        return with_leaves(part, change)

    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(f.name, inner(f.dataType), f.nullable, f.metadata) for f in data_type.fields])
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(inner(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, T.MapType):
        return T.MapType(inner(data_type.keyType), inner(data_type.valueType), data_type.valueContainsNull)
    return change(data_type)


def type_of(given: Any) -> DataType:
    """A type of pyspark, one in SQL, or one as Delta's log writes it (text that is no SQL, or a mapping)."""
    from pyspark.sql.types import DataType, _parse_datatype_json_value

    if isinstance(given, DataType):
        return given
    if isinstance(given, Mapping):
        return _parse_datatype_json_value(dict(given))
    return _parsed(str(given))


@lru_cache(maxsize=1000)
def _parsed(text: str) -> DataType:
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql.types import _parse_datatype_json_value, _parse_datatype_string

    try:
        return _parse_datatype_json_value(text)
    except (PySparkException, KeyError, ValueError):
        return _parse_datatype_string(text) if SparkContext._active_spark_context else _described(text)


_SHORT = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def _described(text: str) -> DataType:
    """A type as `describe` writes it: pyspark asks Java for it, which is not in this process where Spark is behind a server."""
    found, rest = _read(text.strip())
    if rest:
        raise DbtRuntimeError(f"The type {text} cannot be read from `{rest}` on.")
    return found


def _read(text: str) -> tuple[DataType, str]:
    """The type that a text begins with, and what is left of it."""
    from pyspark.sql import types as T

    opened = re.match(r"(struct|array|map)<", text)
    if opened is None:
        word = re.match(r"[^<>,(]*(\([\d, ]*\))?", text)[0]  # type: ignore[index]
        return T._parse_datatype_json_value(_SHORT.get(word, word.replace("character(", "char("))), text[len(word) :]
    rest = text[opened.end() :]
    names: list[str] = []
    types: list[DataType] = []
    while not types or rest.startswith(","):
        rest = rest.removeprefix(",")
        if opened[1] == "struct":
            name, rest = rest.split(":", 1)
            names.append(name)
        type_, rest = _read(rest)
        types.append(type_)
    rest = rest.removeprefix(">")
    if opened[1] == "struct":
        return T.StructType(list(map(T.StructField, names, types))), rest
    if opened[1] == "array":
        (element,) = types
        return T.ArrayType(element), rest
    key, value = types
    return T.MapType(key, value), rest


class Evolved(TypedDict):
    """What a table needs to hold columns of other names and types.

    types: of each column what it is then, as SQL. new, rewrite (as of `Merged`), widened: names of columns. add, widen: SQL for
    ALTER TABLE. cast: of each column of which not every value fits, the type that was wanted, as SQL. read: of each column whose
    fields the table spells otherwise than the wanted type, what it is then with their names as wanted: to JSON, case makes a
    difference.
    """

    types: dict[str, str]
    new: list[str]
    add: list[str]
    widen: list[str]
    widened: list[str]
    rewrite: list[str]
    cast: dict[str, str]
    read: dict[str, str]


def evolved(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> Evolved:
    """What a table with the columns `have` needs to hold those of `wanted`: {column: type}, each as SQL or as Delta's log has it;
    names without regard to case."""
    there = {name.lower(): given for name, given in have.items()}
    found = Evolved(types={}, new=[], add=[], widen=[], widened=[], rewrite=[], cast={}, read={})
    for name, given in wanted.items():
        if name.lower() not in there:
            text = given if isinstance(given, str) and _is_sql(given) else sql_of(type_of(given))
            found["types"][name] = text
            found["new"].append(name)
            found["add"].append(f"{quoted(name)} {text}")
            continue
        new = type_of(given)
        merged = merge(type_of(there[name.lower()]), new, quoted(name))
        text = sql_of(merged.type)
        found["types"][name] = given if isinstance(given, str) and _is_sql(given) and text == sql_of(new) else text
        found["add"] += merged.add
        found["widen"] += merged.widen
        if merged.widen:
            found["widened"].append(name)
        if merged.rewrite:
            found["rewrite"].append(name)
        if merged.cast:
            found["cast"][name] = sql_of(new)
        if (read := sql_of(_spelled_as(merged.type, new))) != text:
            found["read"][name] = read
    return found


def _spelled_as(data_type: DataType, other: DataType) -> DataType:
    """A type with the names of fields that another one has in another case spelled as there."""
    from pyspark.sql import types as T

    if isinstance(data_type, T.StructType) and isinstance(other, T.StructType):
        named = {field.name.lower(): field for field in other.fields}
        pairs = [(field, named.get(field.name.lower(), field)) for field in data_type.fields]
        return T.StructType([T.StructField(its.name, _spelled_as(field.dataType, its.dataType)) for field, its in pairs])
    if isinstance(data_type, T.ArrayType) and isinstance(other, T.ArrayType):
        return T.ArrayType(_spelled_as(data_type.elementType, other.elementType))
    if isinstance(data_type, T.MapType) and isinstance(other, T.MapType):
        return T.MapType(data_type.keyType, _spelled_as(data_type.valueType, other.valueType))
    return data_type


def _is_sql(text: str) -> bool:
    """Not one of the words that only Delta's log has for a type, nor one with a length: Delta would hold every value to it, and a
    load with a longer one would fail."""
    with_length = re.search(r"\b(varchar|char(acter)?)\s*\(", text, re.IGNORECASE)
    return text not in ("integer", "long", "short", "byte") and not with_length


def want_mapping(sql: str) -> bool:
    """Whether columns and types as SQL name something, a field of a struct too, that Delta takes only with column mapping."""
    return any(re.search(r"[ ,;{}()\n\t=]", name) for name in re.findall(r"`((?:[^`]|``)*)`", sql))


def statements(table: str, add: list[str], widen: list[str]) -> list[str]:
    """The ALTER TABLEs, at most three commits. Table features are switched on only where something needs them."""
    features = ["'delta.enableTypeWidening' = 'true'"] if widen else []
    renamed = any(want_mapping(sql) for sql in add)
    # with column mapping, for reader version 3: under 2 Polars does not look for it, and shows nulls
    if renamed or any(re.search(r"\btimestamp_ntz\b", sql, re.IGNORECASE) for sql in (*add, *widen)):
        features.append("'delta.feature.timestampNtz' = 'supported'")
    if renamed:
        features.append("'delta.columnMapping.mode' = 'name'")
    out = [f"alter table {table} set tblproperties ({', '.join(features)})"] if features else []
    if add:
        out.append(f"alter table {table} add columns ({', '.join(add)})")
    if widen:
        out.append(f"alter table {table} alter column {', '.join(widen)}")
    return out


# What from_json takes for another value, by the names of pyspark's types, where a column of its own takes it for none: a whole
# number is seconds or days whatever it counts, `20260131` too, or a year; a time is today's; days before Christ are after; a
# comma is nothing; a number that is too large is infinite.
_NUMBER = r"^\s*[+-]?\d{{5,}}\s*$"
_IS_INFINITE = "({text} rlike '[0-9]' and abs({value}) = double('infinity'))"
_TAKEN = {
    "date": r"{text} rlike r'^\s*[+-]?(\d{{1,3}}|\d{{5,}})\s*$|^\s*\d+-\d+-\d+[ T]+[A-Za-z]'",
    "timestamp": r"{text} rlike r'" + _NUMBER + r"|^\s*T?\d{{1,2}}:'",
    "timestamp_ntz": "{text} rlike r'" + _NUMBER + "'",
    "decimal": "instr({text}, ',') > 0",
    "float": _IS_INFINITE,
    "double": _IS_INFINITE,
}


def misfits(text: str, value: str, data_type: DataType, depth: int = 0) -> str:
    """SQL: whether JSON text holds something that is null in the value made of it, or another value, at any depth.

    from_json leaves out what does not fit a field and says nothing. text, value: SQL; value is `from_json` of text.
    """
    from pyspark.sql import types as T

    inner, made = f"t{depth}", f"v{depth}"
    if isinstance(data_type, T.StructType):
        fields = ",".join(f"{_plain_or_quoted(field.name)}:string" for field in data_type.fields)
        parts = [
            misfits(f"{inner}.{quoted(field.name)}", f"{value}.{quoted(field.name)}", field.dataType, depth + 1)
            for field in data_type.fields
        ]
        within = f"exists(array({_from_json(text, f'struct<{fields}>')}), {inner} -> {' or '.join(parts)})"
        begins = "{"
    elif isinstance(data_type, T.ArrayType):
        part = misfits(inner, made, data_type.elementType, depth + 1)
        within = f"exists(zip_with({_from_json(text, 'array<string>')}, {value}, ({inner}, {made}) -> {part}), misfit -> misfit)"
        begins = "["
    elif isinstance(data_type, T.MapType):
        part = misfits(inner, made, data_type.valueType, depth + 1)
        texts = f"map_values({_from_json(text, 'map<string,string>')})"
        within = f"exists(zip_with({texts}, map_values({value}), ({inner}, {made}) -> {part}), misfit -> misfit)"
        begins = "{"
    else:
        taken = _TAKEN.get(data_type.typeName())
        wrong = f"({value} is null or {taken.format(text=text, value=value)})" if taken else f"{value} is null"
        return f"({text} is not null and {wrong})"
    unreadable = f"{value} is null or left(ltrim({text}), 1) <> '{begins}'"
    if depth == 0:
        unreadable += f" or try_parse_json({text}) is null"
    return f"({text} is not null and ({unreadable} or coalesce({within}, false)))"


def _from_json(text: str, schema: str) -> str:
    return f"from_json({text}, '{schema.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}')"


def folded(value: str, data_type: DataType, unsaid: str, window: str) -> str:
    """SQL: a struct of which the null fields of an update say nothing (P1), as the changes of a window left it, field by field.

    value: SQL of the struct in a change; unsaid: whether the change does not carry it at all. Arrays and maps are one value.
    """
    from pyspark.sql import types as T

    says_nothing = f"({unsaid} or (_cdc_op = 'U' and {_is_empty(value, data_type)}))"
    last = f"last_value(if({says_nothing}, null, struct({value} as value)), true) over {window}.value"
    if not isinstance(data_type, T.StructType):
        return last
    fields = [(field, f"{value}.{quoted(field.name)}") for field in data_type.fields]
    parts = [f"{folded(of, field.dataType, unsaid, window)} as {quoted(field.name)}" for field, of in fields]
    return f"if({last} is null, null, struct({', '.join(parts)}))"


def _is_empty(value: str, data_type: DataType) -> str:
    """SQL: whether a value is null, or a struct of nothing but nulls."""
    from pyspark.sql import types as T

    if not isinstance(data_type, T.StructType) or not data_type.fields:
        return f"{value} is null"
    return " and ".join(_is_empty(f"{value}.{quoted(field.name)}", field.dataType) for field in data_type.fields)
