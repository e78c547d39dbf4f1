"""Commits of a Delta table as change sets: the rows that a commit put in, each one message.

A change set is the commit's file in the table's log, `<table>/_delta_log/<version>.json`. The rows come from Delta's change data
feed, so the table needs `delta.enableChangeDataFeed`; it costs a table that is only appended to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log, row_messages
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.java import short_message
from dbt.adapters.sparkdelta.queries import rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE_TYPE = "_change_type"  # of Delta's change data feed, like _commit_version and _commit_timestamp


def numbered_messages(session: SparkSession, change_sets: Sequence[tuple[str, int]], feed: Mapping[str, Any]) -> DataFrame:
    """The messages of commits as (batch_id bigint, change_set string, row_number bigint, message string).

    change_sets: (path of the commit's file, batch_id). feed: {feed, format, message_column, row_order, left_out: columns that are
    no part of a row}. A row is a JSON object of its columns; of the format delta_cdf with what Delta tells of it, of every other
    only if the commit put it in. Rows are numbered by `row_order`, then by their text. Raises DbtRuntimeError, which names feed
    and table, where Delta cannot tell.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    tables: dict[str, list[tuple[int, int, str]]] = {}
    for path, batch in change_sets:
        table, _, name = path.rpartition("/_delta_log/")
        tables.setdefault(table, []).append((int(name.split(".")[0]), batch, path))
    read = []
    for table, commits in tables.items():
        named = [{"_commit_version": version, "batch_id": batch, "change_set": path} for version, batch, path in commits]
        sets = rows_frame(session, named, "_commit_version: bigint, batch_id: bigint, change_set: string")
        for run in _consecutive(commit[0] for commit in commits):
            read += [each.join(F.broadcast(sets), "_commit_version") for each in _messages_of(session, table, run, feed)]
    rows = reduce(lambda one, other: one.unionByName(other), read)
    order = Window.partitionBy("batch_id").orderBy("place", "message")
    return rows.where("trim(message) <> ''").select(
        "batch_id", "change_set", F.row_number().over(order).cast("bigint").alias("row_number"), "message"
    )


def size_of_commit(session: SparkSession, path: str) -> int:
    """The bytes of data that a commit added, by its own metrics; 0 where it tells none. path: of the commit's file."""
    table, _, name = path.rpartition("/_delta_log/")
    metrics = delta_log.metrics_of(delta_log.commit_info(session, quote(table, safe="/:@"), name) or {})
    return max(metrics.get(name, 0) for name in ("numOutputBytes", "numTargetBytesAdded", "numAddedBytes"))


def _consecutive(versions: Iterable[int]) -> list[list[int]]:
    """The versions in runs without a gap: what lies in a gap is not to be read, and perhaps cannot be.

    >>> _consecutive([4, 7, 5, 8])
    [[4, 5], [7, 8]]
    """
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return runs


def _messages_of(session: SparkSession, table: str, run: list[int], feed: Mapping[str, Any]) -> list[DataFrame]:
    """The messages of a run of commits: read at once, or where the table's columns changed between them one by one."""
    try:
        return [_messages(session, table, run[0], run[-1], feed)]
    except DbtRuntimeError:
        if len(run) == 1:
            raise
        return [_messages(session, table, version, version, feed) for version in run]


def _messages(session: SparkSession, table: str, first: int, last: int, feed: Mapping[str, Any]) -> DataFrame:
    """(_commit_version bigint, place string: `row_order` as sortable, message string) of a table's commits."""
    from pyspark.sql import functions as F

    try:
        frame = session.read.format("delta").options(readChangeFeed="true", startingVersion=first, endingVersion=last).load(table)
        frame._jdf.queryExecution().sparkPlan()  # planned now: what is wrong with the table is told here
    except Exception as error:
        raise _unreadable(table, first, last, feed, error) from error
    if feed["format"] != "delta_cdf":
        inserted = frame.where(F.col(CHANGE_TYPE) == "insert")
        columns = [name for name in frame.columns if name not in (CHANGE_TYPE, "_commit_version", "_commit_timestamp")]
        frame = inserted.select(*map(quoted, columns), "_commit_version")
        message = row_messages.message_of(frame, _own_columns(columns, feed), feed, table)
    else:
        message = row_messages.message_of(frame, frame.columns, feed, table)
    there = {name.lower() for name in frame.columns}
    missing = [name for name in feed["row_order"] if name.lower() not in there]
    if missing:
        raise DbtRuntimeError(
            f"feed {feed['feed']}, Delta table {table}: `row_order` names {', '.join(f'`{name}`' for name in missing)}, and its "
            f"columns are {', '.join(frame.columns)}. Name columns that it has."
        )
    place = F.struct(*map(quoted, feed["row_order"])) if feed["row_order"] else F.lit(None).cast("string")
    return frame.select("_commit_version", place.alias("place"), message.alias("message"))


def _own_columns(names: Iterable[str], feed: Mapping[str, Any]) -> list[str]:
    """The columns without those that a landing added; databases differ in what they make of case.

    >>> _own_columns(["ID", "CDC_SERIAL"], {"left_out": ["cdc_serial"]})
    ['ID']
    """
    return [name for name in names if name.lower() not in feed.get("left_out", ())]


def _unreadable(table: str, first: int, last: int, feed: Mapping[str, Any], error: Exception) -> DbtRuntimeError:
    said = short_message(error)
    which = f"version {first}" if first == last else f"versions {first} to {last}"
    remedy = "Nothing of it was loaded; `delta-cdc retract` goes on without a change set."
    if "DELTA_MISSING_CHANGE_DATA" in said:
        remedy = (
            "Its change data feed has to be on before a version that is to be read is written: set `delta.enableChangeDataFeed` "
            f"= true on the table, and `start_from` to the first version after it, as {last + 1:020}.json. {remedy}"
        )
    return DbtRuntimeError(f"feed {feed['feed']}, Delta table {table}: {which} cannot be read: {said}\n{remedy}")
