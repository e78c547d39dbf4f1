"""Profile fields and connections of `type: sparkdelta`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.spark.connections import (
    SparkConnectionManager,
    SparkConnectionMethod,
    SparkCredentials,
)
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

ANSI = "spark.sql.ansi.enabled"
# of the schemas that `delta-cdc run --plan` writes to; the macros `_plan_suffix` and `sparkdelta__location_clause` have it too
PLAN_SUFFIX = "__plan"
# what other adapters call the place of the tables
_ROOTS = ("path", "location", "folder", "directory", "warehouse")


@dataclass
class SparkdeltaCredentials(SparkCredentials):
    """dbt-spark's fields, with `method: session` as the default, and:

    root: local folder of warehouse and metastore, relative to the dbt project. tuned_for: small_tables (quick
    to start, slow in large scans) or large_tables. poll_interval: seconds, through thrift and http; with dbt-spark's 5
    most statements take as long.
    """

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    root: str = "lake"
    tuned_for: str = "small_tables"
    poll_interval: float = 0.2  # type: ignore[assignment]
    query_retries: int = 0  # a statement whose connection was lost may have been done: once more would append its rows twice
    schema_suffix: ClassVar[str] = ""  # `delta-cdc run --plan` sets it: its tables must not be those of the profile

    @classmethod
    def validate(cls, data: Any) -> None:
        """dbt tells of a field of the wrong type what it holds, and not which one it is."""
        try:
            super().validate(data)
        except ValidationError as error:
            place = ".".join(map(str, error.path))
            if (error.validator, error.validator_value) == ("type", "string"):
                raise ValidationError(f"Profile: `{place}` is no text. Quote what yml reads as something else.") from None
            raise ValidationError(f"Profile: `{place}`: {error.message}.") from None

    @classmethod
    def __pre_deserialize__(cls, data: dict[str, Any]) -> dict[str, Any]:
        """A field that dbt does not know is passed over: tables would stand elsewhere than a misspelled `root` says."""
        data = super().__pre_deserialize__(data)
        known = [field.name for field in fields(cls)]
        for name in (name for name in data if name not in known):  # in the profile's order
            is_root = str(name).lower() in _ROOTS
            if close := ["root"] if is_root else difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.75):
                raise DbtConfigError(f"Profile: there is no field `{name}`. Did you mean `{close[0]}`?")
        return data

    def __post_init__(self) -> None:
        if self.method == SparkConnectionMethod.SESSION and self.host is None:
            self.host = "local"
        if self.tuned_for not in ("small_tables", "large_tables"):
            raise DbtConfigError(f"Profile: `tuned_for` is {self.tuned_for!r}; it wants small_tables or large_tables.")
        if re.match(r"~|\w+:/", self.root) or re.search(r"\$\{?[A-Za-z_]", self.root):
            raise DbtConfigError(
                f"Profile: `root` is '{self.root}'. It takes a folder of this machine, and no shell reads it: write the path, or "
                "\"{{ env_var('HOME') }}/lake\". Tables elsewhere are told by `spark.sql.warehouse.dir` (docs/object_stores.md)."
            )
        if self.schema_suffix:
            self.schema = f"{self.schema}{self.schema_suffix}"
        given = {str(key): str(value) for key, value in self.server_side_parameters.items()}
        super().__post_init__()
        # dbt-spark switches ANSI off at this place: a bad cast would be a silent NULL
        self.server_side_parameters.pop(ANSI, None)
        if ANSI in given:
            self.server_side_parameters[ANSI] = given[ANSI].lower()

    @property
    def type(self) -> str:
        return "sparkdelta"

    def _connection_keys(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            return "method", "schema", "root", "tuned_for"
        return ("method", *super()._connection_keys())


class SparkdeltaConnectionManager(SparkConnectionManager):
    TYPE = "sparkdelta"

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        with super().exception_handler(sql):
            try:
                yield
            except DbtRuntimeError as error:
                told = error
            else:
                return
        raise told  # as it is: dbt-spark would wrap it once more

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        credentials = connection.credentials
        if connection.state == ConnectionState.OPEN:
            return super().open(connection)
        if credentials.method == SparkConnectionMethod.THRIFT:
            return cls._open_server(connection)
        if credentials.method != SparkConnectionMethod.SESSION:
            return super().open(connection)
        from dbt.adapters.sparkdelta.session import SparkdeltaConnectionWrapper

        handle = SparkdeltaConnectionWrapper(
            {
                "root": credentials.root,
                "overrides": credentials.server_side_parameters,
                "tuned_for": credentials.tuned_for,
            }
        )
        try:
            _ = handle.session
        except DbtRuntimeError as error:
            raise FailedToConnectError(str(error.msg)) from error
        connection.handle = handle
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def _open_server(cls, connection: Connection) -> Connection:
        from dbt.adapters.sparkdelta.server import ServerConnectionWrapper

        credentials = connection.credentials
        super().open(connection)
        try:
            connection.handle = ServerConnectionWrapper(connection.handle, credentials.server_side_parameters)
        except DbtRuntimeError as error:
            raise FailedToConnectError(f"Profile: a setting of `server_side_parameters` is refused. {error.msg}") from error
        return connection

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """Row counts of the statement that this cursor ran last; dbt also asks with None."""
        return getattr(cursor, "response", None) or AdapterResponse(_message="OK")
