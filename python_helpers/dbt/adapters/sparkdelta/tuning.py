"""A model that reads or writes much has generated code, adaptive plans and a task a core, although the process is tuned for small
tables.

Without generated code a merge into 10 million rows takes nine times as long, into 200,000 rows twice; making it costs a small one
half a second (2 cores, docs/performance.md). Every model has a session of its own, so the settings end with the model.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta import delta_log, delta_messages
from dbt.adapters.sparkdelta.settings import SMALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

# In place of SMALL_TABLES.
LARGE_TABLES = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
A_TASK_A_CORE = ("spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism")

# At which both ways take about as long (docs/performance.md). A table's rows are read once, a file's parsed and compared too.
MUCH = {"table": 4 << 20, "text": 4 << 20, "packed": 512 << 10}  # bytes
MANY_ROWS = 20_000  # that are looked at, applied and written
_PACKED = re.compile(r"\.(gz|bz2|zst|zstd|xz|snappy|lz4|deflate|parquet|orc|avro)$", re.IGNORECASE)


def _share_of_much(session: SparkSession, change_set: Mapping[str, Any]) -> float:
    path = change_set["change_set"]
    if "/_delta_log/" in path:
        return delta_messages.size_of_commit(session, path) / MUCH["packed"]
    return float((change_set["size"] or 0) / MUCH["packed" if _PACKED.search(path) else "text"])


def tune_for(
    session: SparkSession,
    tables: Iterable[tuple[str, str]] = (),
    rows: int | None = None,
    change_sets: Iterable[Mapping[str, Any]] = (),
    given: Mapping[str, Any] | None = None,
) -> bool:
    """Whether so much is to be read or written that it wants other settings; the session has them then.

    tables: Delta tables (schema, name). rows: how many. change_sets: files (`change_set`, `size` in bytes or None).
    given: the profile's server_side_parameters: they stay as they are.
    """
    much = (
        any(part >= 1 for part in accumulate(_share_of_much(session, each) for each in change_sets))
        or (rows or 0) >= MANY_ROWS
        or any(delta_log.size_in_bytes(session, *name) >= MUCH["table"] for name in tables)
    )
    if much:
        large = LARGE_TABLES | dict.fromkeys(A_TASK_A_CORE, str(session.sparkContext.defaultParallelism))
        for key, value in large.items():
            if key not in (given or {}) and session.conf.get(key, None) == SMALL_TABLES[key]:
                session.conf.set(key, value)
    return much
