"""Small queries for macros: their rows, kept for later or as a view."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.java import java_class, make_active, short_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def query_rows(session: SparkSession, sql: str) -> list[dict[str, Any]]:
    """The rows of a small query as dicts of Python values, as they are typed in Spark. Raises as `reading_files` does."""
    with reading_files():
        return [row.asDict(recursive=True) for row in session.sql(sql).collect()]


def create_kept_view(session: SparkSession, name: str, sql: str, small: bool = False) -> None:
    """A temporary view of the rows that a query gives now, until the session is gone. Raises as `reading_files` does.

    small: the rows are kept in memory, by the query that reads them first; else on disk, at once.
    """
    from pyspark import StorageLevel

    with reading_files():
        rows = planned(session, sql)
        kept = rows.localCheckpoint(eager=False) if small else rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        kept.createOrReplaceTempView(quoted(name))


def planned(session: SparkSession, sql: str) -> DataFrame:
    """As `session.sql(sql)` of a query, whose common table expressions are analysed one by one.

    Spark goes through a plan again and again until nothing in it changes, some 70 times where lambdas stand in lambdas, but not
    through the plans of views. So each becomes a view for as long as this takes; the session's own of such a name goes.
    """
    from pyspark.sql import DataFrame

    spark, dataset = session._jsparkSession, java_class(session, "org.apache.spark.sql.classic.Dataset")
    make_active(session)  # whose settings the parser reads
    plan = spark.sessionState().sqlParser().parsePlan(sql)
    if plan.nodeName() != "UnresolvedWith":
        return session.sql(sql)
    expressions = [plan.cteRelations().apply(place) for place in range(plan.cteRelations().size())]
    a_with = java_class(session, "org.apache.spark.sql.catalyst.trees.TreePattern").UNRESOLVED_WITH()
    if any(expression._2().containsPattern(a_with) for expression in expressions):
        return session.sql(sql)  # Spark does not optimize a view with one in it that is read twice
    names = []
    try:
        for expression in expressions:
            dataset.ofRows(spark, expression._2().child()).createOrReplaceTempView(quoted(expression._1()))
            names.append(expression._1())
        return DataFrame(dataset.ofRows(spark, plan.child()), session)
    finally:
        for name in names:
            session.catalog.dropTempView(name)


def create_values_view(session: SparkSession, name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A temporary view of texts that are to stand in no SQL, for statements are logged."""
    values_frame(session, columns, rows).createOrReplaceTempView(quoted(name))


def values_frame(session: SparkSession, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> DataFrame:
    """Few rows of texts, as rows of Java: they are part of the plan, which does not show them.

    Those of Python (`createDataFrame`) would take a Spark job wherever they are read, and a process of Python on its executor.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StringType, StructType

    schema, gateway = StructType(), session.sparkContext._gateway
    for column in columns:
        schema.add(column, StringType())
    assert gateway is not None
    texts = java_class(session, "java.util.ArrayList")()
    for row in rows:
        values = gateway.new_array(java_class(session, "java.lang.Object"), len(row))
        for place, text in enumerate(row):
            values[place] = text
        texts.add(java_class(session, "org.apache.spark.sql.RowFactory").create(values))
    made = session._jsparkSession
    return DataFrame(made.createDataFrame(texts, made.parseDataType(schema.json())), session)


def rows_frame(session: SparkSession, rows: Sequence[Mapping[str, Any]], fields: str) -> DataFrame:
    """Rows of numbers and texts (a moment is one, with its offset), without a process of Python (`values_frame`).
    fields: "name: type, …"."""
    texts = [[json.dumps(rows[start : start + 1000])] for start in range(0, len(rows), 1000)]  # each row of Java takes six calls
    return values_frame(session, ["rows"], texts).selectExpr(f"inline(from_json(rows, 'array<struct<{fields}>>'))")


@contextmanager
def reading_files() -> Iterator[None]:
    """Raises DbtRuntimeError that says what to do where a file cannot be read to its end."""
    try:
        yield
    except Exception as error:
        if "[FAILED_READ_FILE" not in str(error):
            raise
        raise DbtRuntimeError(
            f"{short_message(error)}\nThe file is cut off, or not of the kind and compression that `file_format` and its name "
            "say. Nothing of it was loaded. Put the whole file in its place and run again; `delta-cdc retract` goes on "
            "without it."
        ) from error


def cached_query(session: SparkSession, schema: str, identifier: str, sql: str) -> list[dict[str, Any]]:
    """`query_rows` of a query that reads this Delta table alone, kept until the table has another version; none without it."""
    version = delta_log.newest_version(session, schema, identifier)
    if version is None:
        return []
    with _kept_lock:
        kept_version, rows = _kept.get((schema, identifier, sql), (None, []))
        if kept_version != version:
            rows = query_rows(session, sql)
            for past in [key for key, (at, _) in _kept.items() if key[:2] == (schema, identifier) and at != version]:
                del _kept[past]
            _kept[schema, identifier, sql] = (version, rows)
    return rows


_kept: dict[tuple[str, str, str], tuple[int, list[dict[str, Any]]]] = {}
_kept_lock = threading.Lock()
