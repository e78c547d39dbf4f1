"""What the adapter and its mixins share: this thread's session, and which relations are tables."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from dbt.adapters.base import BaseRelation
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.sparkdelta.session import SparkdeltaConnectionWrapper


class View(Protocol):
    """A relation of dbt's that has a name, and a schema if it is no temporary view."""

    @property
    def identifier(self) -> str: ...


class Table(View, Protocol):
    """A relation of dbt's that has a schema and a name."""

    @property
    def schema(self) -> str: ...


def is_table(relation: BaseRelation | None) -> TypeGuard[Table]:
    """Not so for `this` in a unit test: none, or a CTE of given rows."""
    return relation is not None and bool(relation.schema)


class InSession(metaclass=AdapterMeta):
    """The base of the mixins: what they use of the adapter, where Spark is in this process."""

    # the adapter's; dbt's own types know neither the fields of our profiles nor the handles of our connections
    config: Any
    connections: Any

    @property
    def _in_process(self) -> bool:
        return bool(self.config.credentials.method == SparkConnectionMethod.SESSION)

    @property
    def _handle(self) -> SparkdeltaConnectionWrapper:
        """This thread's connection. Raises DbtRuntimeError where Spark is not in this process."""
        if not self._in_process:
            raise DbtRuntimeError(
                f"The profile has `method: {self.config.credentials.method}`, and this is done with a SparkSession, in the dbt "
                "process: it wants `method: session`. docs/adapter.md says what works through a server."
            )
        handle: SparkdeltaConnectionWrapper = self.connections.get_thread_connection().handle
        return handle

    def _session(self) -> SparkSession:
        """The SparkSession of this thread's connection. Raises as `_handle` does."""
        return self._handle.session

    def _begin(self, description: str) -> SparkSession:
        """The same session, with this thread's Spark jobs put into its connection's group: `cancel` ends them."""
        return self._handle.begin(description)

    def _in_project(self, path: str) -> str:
        """A relative path is one in the project, wherever dbt was started."""
        root = getattr(self.config, "project_root", None)
        is_relative = not path.startswith("/") and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path)
        return f"{os.path.abspath(root)}/{path}" if root and is_relative else path
