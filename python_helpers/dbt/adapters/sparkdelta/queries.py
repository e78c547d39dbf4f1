"""Small queries for macros: their rows, kept for later or as a view."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.java import short_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        rows = session.sql(sql)
        kept = rows.localCheckpoint(eager=False) if small else rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        kept.createOrReplaceTempView(quoted(name))


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
