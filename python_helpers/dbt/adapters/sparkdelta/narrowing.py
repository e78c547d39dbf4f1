"""A merge into a large table, or a look-up in one: the keys that are asked for stand as values in its condition.

Delta then leaves out the files, and Parquet the row groups, whose statistics exclude all of them, and what is left of the table
is filtered before it is joined.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.columns import quoted, sql_of
from dbt.adapters.sparkdelta.seeds import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# A smaller table is merged into, or read, as fast as its keys' values are looked up (bytes, docs/performance.md).
LARGE = {"merge": 2**24, "read": 2**26}
VALUES = 2000  # of a column; more are told as the range from the lowest to the highest
# a cast of each of a thousand values takes Spark a while
_SUFFIXES = {"ByteType": "Y", "ShortType": "S", "IntegerType": "", "LongType": "L"}
HELD_ROWS = 20_000  # by the driver, as part of the plan: more stay with the executors
HELD_BYTES = 2**13  # of texts and the like in a row: with one that has more, all stay there
_UNFIT = "_cdc_unfit"


def narrowed(session: SparkSession, schema: str, identifier: str, view: str, keys: Sequence[str], dest: str) -> list[str]:
    """Conditions on a merge's target that every row holds which some row of its source matches; none for a small target.

    schema, identifier: the target. view: the temporary view of the source. keys: columns that both share, compared by <=>.
    dest: the target's alias. The view is replaced by one of the rows that it has now: they are worked out once.
    """
    if delta_log.size_in_bytes(session, schema, identifier) < LARGE["merge"]:
        return []
    source, target = session.table(quoted(view)), session.table(f"{quoted(schema)}.{quoted(identifier)}")
    told = [key for key in keys if _is_told(source, target, key)]
    if not told:
        return []
    source, conditions = _conditions(session, source, told, dest)
    source.createOrReplaceTempView(quoted(view))
    return conditions


def narrowed_to(session: SparkSession, schema: str, identifier: str, sql: str, keys: Sequence[str], dest: str) -> list[str]:
    """The same for a table that is read: every row of it holds them that has the keys of some row of a query."""
    if delta_log.size_in_bytes(session, schema, identifier) < LARGE["read"]:
        return []
    source, target = session.sql(sql), session.table(f"{quoted(schema)}.{quoted(identifier)}")
    told = [key for key in keys if _is_told(source, target, key)]
    return _conditions(session, source.select(*map(quoted, keys)).distinct(), told, dest)[1] if told else []


def _conditions(session: SparkSession, source: DataFrame, told: Sequence[str], dest: str) -> tuple[DataFrame, list[str]]:
    """The source, worked out once and held by the driver where it is small, and what its values of some keys ask of the other
    side's."""
    source = source.localCheckpoint(eager=False)  # by the job that asks for its rows
    held = _held(session, source)
    rows = _ends(source, told) if held is None else held.select(*(_value(held, key) for key in told)).collect()
    if not rows:
        return source, ["false"]
    named = VALUES if held is not None else 0
    conditions = [
        _condition(f"{dest}.{quoted(key)}", source.schema[key].dataType, set(values), named)
        for key, values in zip(told, zip(*rows, strict=True), strict=True)
    ]
    return source if held is None else held, conditions


def _ends(source: DataFrame, told: Sequence[str]) -> list[Any]:
    """Three rows of the keys' values: the lowest, the highest, and nulls where there are some (else the lowest again)."""
    from pyspark.sql import functions as F

    values = {key: _value(source, key) for key in told}
    nulls = [F.when(F.count_if(value.isNull()) == 0, F.min(value)) for value in values.values()]
    found = source.agg(*map(F.min, values.values()), *map(F.max, values.values()), *nulls).collect()[0]
    return [found[place : place + len(told)] for place in range(0, len(found), len(told))]


def _condition(column: str, type_: DataType, values: set[Any], named: int) -> str:
    """What some values ask of a column. named: so many of them are named, more are told as their range."""
    known = sorted(values - {None})
    conditions = [f"{column} is null"] if None in values else []
    if len(known) > named:
        conditions.append(f"{column} between {_literal(known[0], type_)} and {_literal(known[-1], type_)}")
    elif known:
        conditions.append(f"{column} in ({', '.join(_literal(value, type_) for value in known)})")
    return " or ".join(conditions)


def _is_told(source: DataFrame, target: DataFrame, key: str) -> bool:
    """Whether a key's values can stand in SQL: of one type on both sides, and one that is equal where its text is."""
    from pyspark.sql import types as T

    if key not in source.columns or key not in target.columns:
        return False
    type_ = source.schema[key].dataType
    whole = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType, T.DateType, T.TimestampType)
    return type_ == target.schema[key].dataType and (isinstance(type_, whole) or type_ == T.StringType())


def _value(frame: DataFrame, key: str) -> Any:
    """A key's value as a Python int or text that loses nothing."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    type_, column = frame.schema[key].dataType, F.col(quoted(key))
    if isinstance(type_, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(type_, T.DateType):
        return F.unix_date(column)
    return column


def _literal(value: Any, type_: DataType) -> str:
    from pyspark.sql import types as T

    if isinstance(type_, T.TimestampType):
        return f"timestamp_micros({value})"
    if isinstance(type_, T.DateType):
        return f"date_from_unix_date({value})"
    if isinstance(type_, T.StringType):
        return literal(value)
    suffix = _SUFFIXES.get(type(type_).__name__)
    return f"cast({literal(str(value))} as {sql_of(type_)})" if suffix is None else f"{value}{suffix}"


def _held(session: SparkSession, frame: DataFrame) -> DataFrame | None:
    """The same rows as part of the plan: Spark knows how few they are, and does not sort the large table to join them. None for
    more than `HELD_ROWS`, and where one of them is `_unfit`."""
    from pyspark.sql import DataFrame

    told = frame.selectExpr("*", f"{_unfit(frame.schema)} as {_UNFIT}")
    values = (f"if({_UNFIT}, null, {column}) as {column}" for column in map(quoted, frame.columns))  # to hand over less
    found = told.selectExpr(*values, _UNFIT).limit(HELD_ROWS + 1)
    rows = found._jdf.collectAsList()
    held = DataFrame(session._jsparkSession.createDataFrame(rows, found._jdf.schema()), session)
    return None if rows.size() > HELD_ROWS or not held.where(_UNFIT).isEmpty() else held.drop(_UNFIT)


def _unfit(schema: StructType) -> str:
    """SQL that tells a row which the driver cannot hold as it is: it is too large, or has a day from 5 to 14 October 1582, in
    whatever zone, which Java has not, in whose values it gets the rows."""
    from pyspark.sql import types as T

    conditions, sizes = [], []
    for field in schema.fields:
        column, kind = quoted(field.name), field.dataType.simpleString()
        if kind in ("date", "timestamp"):
            conditions.append(f"{column} between {kind}'1582-10-03' and {kind}'1582-10-17'")
        elif re.search(r"\b(date|timestamp)\b", kind):
            conditions.append(f"cast({column} as string) like '%1582-10-%'")
        if not isinstance(field.dataType, (T.NumericType, T.BooleanType, T.DatetimeType)):
            sizes.append(f"coalesce(octet_length(cast({column} as string)), 0)")
    if sizes:
        conditions.append(f"{' + '.join(sizes)} > {HELD_BYTES}")
    return f"coalesce({' or '.join(conditions) or 'false'}, false)"
