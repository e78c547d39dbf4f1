"""A model that reads or writes much has generated code and adaptive plans, although the process is tuned for small tables.

Without generated code Spark scans a table 30 times slower (10 million rows: 100 s for 3 s, 2 cores); making it costs a model half
a second or more, ten times what a small table takes. Every model has a session of its own, so the settings end with the model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.settings import SMALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

# Spark's own, in place of SMALL_TABLES.
LARGE_TABLES = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}

# Measured on 2 cores with a table of 10 columns: at 20,000 rows both ways take the same time.
MANY_ROWS = 20_000
BYTES_OF_A_ROW = {"text": 200, "packed": 25, "table": 25}
_PACKED = re.compile(r"\.(gz|bz2|zst|zstd|xz|snappy|lz4|deflate|parquet|orc)$", re.IGNORECASE)


def tune_for(
    session: SparkSession,
    tables: Iterable[tuple[str, str]] = (),
    rows: int | None = None,
    change_sets: Iterable[Mapping[str, Any]] = (),
    given: Mapping[str, Any] | None = None,
) -> None:
    """Change a session's settings if so much is to be read or written.

    tables: Delta tables (schema, name). rows: how many. change_sets: files (`change_set`, `size` in bytes or None).
    given: the profile's server_side_parameters: they stay as they are.
    """
    wanted = {key: value for key, value in LARGE_TABLES.items() if key not in (given or {})}
    if all(session.conf.get(key) != SMALL_TABLES[key] for key in wanted):
        return
    expected = (rows or 0) + sum(_rows_of_file(each) for each in change_sets)
    if expected < MANY_ROWS:
        sizes = (delta_log.size_in_bytes(session, *name) for name in tables)
        expected = max((size // BYTES_OF_A_ROW["table"] for size in sizes), default=0)
    if expected >= MANY_ROWS:
        for key, value in wanted.items():
            session.conf.set(key, value)


def _rows_of_file(change_set: Mapping[str, Any]) -> int:
    kind = "packed" if _PACKED.search(change_set["change_set"]) else "text"
    return int((change_set["size"] or 0) // BYTES_OF_A_ROW[kind])
