"""A connection to a Thrift Server: what a write did, and what Spark says without Java's stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt.adapters.spark.connections import PyhiveConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import statements
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.response import SparkdeltaResponse, counted

# of a failed statement the server tells, in front of Spark's message, which of its own classes caught which of Java's
_BEFORE = re.compile(
    r"^(?:\S*HiveSQLException: ?)?Error running query: (?:\[[\w.]+\] \S+:\s+(?=\[))?(?:\S+(?:Exception|Error): )?"
)
_STACK = re.compile(r"\n\s+at \S+\(.*", re.DOTALL)


class ServerConnectionWrapper(PyhiveConnectionWrapper):
    """dbt-spark's, with settings for its session."""

    response: SparkdeltaResponse | None = None

    def __init__(self, of: PyhiveConnectionWrapper, settings: Mapping[str, str]) -> None:
        """settings: the profile's server_side_parameters. Spark's server leaves out those that PyHive sends at the start."""
        super().__init__(of.handle, of.poll_interval, of.query_timeout, of.query_retries)
        self._rows: list[Any] | None = None
        # else `describe` leaves out the fields of a struct from the 25th on
        for key, value in {"spark.sql.debug.maxToStringFields": "100000", **settings}.items():
            self.cursor().execute(f"set {quoted(key)}={quoted(value)}")

    def execute(self, sql: str, bindings: Any = None) -> None:
        self.response, self._rows = None, None
        kind, table = statements.written_table(sql)
        try:
            super().execute(sql, bindings)
            if kind in ("merge", "update", "delete"):  # their one row is what they did; the others tell nothing
                names = [column[0] for column in self.description]
                self._rows = self.fetchall()
                counts = dict(zip(names, self._rows[0], strict=True)) if self._rows else {}
                self.response = counted(kind, counts) if "num_affected_rows" in counts else None
        except DbtRuntimeError as error:
            raise type(error)(statements.explained(short(str(error.msg)), table)) from error
        if kind and self.response is None:
            self.response = SparkdeltaResponse(_message=kind.upper(), code=kind.upper())

    def fetchall(self) -> list[Any]:
        return super().fetchall() if self._rows is None else self._rows

    def fetchmany(self, limit: int) -> list[Any]:
        """The first `limit` rows."""
        assert self._cursor, "Cursor not available"
        return self._cursor.fetchmany(limit) if self._rows is None else self._rows[:limit]


def short(message: str) -> str:
    """What Spark says of a failed statement, of what the server makes of it."""
    return _STACK.sub("", _BEFORE.sub("", message)).strip()
