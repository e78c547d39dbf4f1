"""Python models, run in the dbt process."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import PythonJobHelper
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log, tuning
from dbt.adapters.sparkdelta.java import short_message
from dbt.adapters.sparkdelta.queries import cached_query
from dbt.adapters.sparkdelta.write_plan import Write, WritePlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SessionPythonModel(PythonJobHelper):
    """`submission_method: session`: calls `model(dbt, session)` with the connection's own SparkSession."""

    def __init__(
        self,
        parsed_model: dict[str, Any],
        session: SparkSession,
        view: str,
        keep_plan: Callable[[WritePlan], None],
        given: Mapping[str, Any],
    ) -> None:
        """view: the temporary one of what the model returns. given: the profile's server_side_parameters."""
        self._path = parsed_model["original_file_path"]
        self._session = session
        self._view = view
        self._names: dict[int, tuple[DataFrame, str]] = {}
        self._keep_plan = keep_plan
        self._given = given

    def submit(self, compiled_code: str) -> Write:
        """Run the model and register its DataFrame as the temporary view.

        Returns what it returned, as a `Write`. Raises DbtRuntimeError that names the model's file and line.
        """
        # dbt appends its own code to the model's: line numbers are those of the file
        lines = compiled_code.splitlines(keepends=True)
        linecache.cache[self._path] = (len(compiled_code), None, lines, self._path)
        names: dict[str, Any] = {"__name__": "dbt_model", "spark": self._session, "session": self._session}
        try:
            exec(compile(compiled_code, self._path, "exec"), names)
            dbt = names["dbtObj"](self._table)
            dbt.table_state = partial(self._table_state, dbt)
            dbt.schema_of = lambda df: self._schema_and_name(df)[0]
            dbt.cached_query = partial(cached_query, self._session)
            dbt.newest_notes = partial(delta_log.newest_notes, self._session)
            dbt.tune_for = lambda df: tuning.tune_for(self._session, [self._schema_and_name(df)], given=self._given)
            returned = names["model"](dbt, self._session)
            write = returned if isinstance(returned, Write) else Write(returned)
            if write.df is not None:
                self._frame(write.df).createOrReplaceTempView(self._view)
        except Exception as error:
            raise DbtRuntimeError(self._explain(error)) from error
        self._keep_plan(write.plan)
        return write

    def _table(self, name: str) -> DataFrame:
        df = self._session.table(name)
        self._names[id(df)] = (df, name)
        return df

    def _schema_and_name(self, df: Any) -> tuple[str, str]:
        *_, schema, identifier = self._names[id(df)][1].replace("`", "").split(".")
        return schema, identifier

    def _table_state(self, dbt: Any, df: Any = None) -> dict[str, Any]:
        """`adapter.table_state` of the model's own table, or of one that `dbt.ref` or `dbt.source` gave, with its identifier."""
        if df is None:
            schema, identifier = dbt.this.schema, dbt.this.identifier
        else:
            schema, identifier = self._schema_and_name(df)
        return {**delta_log.table_state(self._session, schema, identifier, identifier), "identifier": identifier}

    def _frame(self, df: Any) -> Any:
        from pyspark.sql import DataFrame

        if isinstance(df, DataFrame):
            if df.sparkSession._jsparkSession != self._session._jsparkSession:
                raise TypeError(
                    "the DataFrame comes from another SparkSession; build it with the `session` that model(dbt, session) is given"
                )
            return df
        if hasattr(df, "to_spark"):  # pandas on Spark
            return df.to_spark()
        if type(df).__module__.partition(".")[0] == "pandas":
            return self._session.createDataFrame(df)
        raise TypeError(f"model() returned {type(df).__name__}; it wants a DataFrame, None (nothing to write) or Write(df, …)")

    def _explain(self, error: Exception) -> str:
        what = f"{type(error).__name__}: {short_message(error)}"
        if isinstance(error, SyntaxError):
            return f"{self._path}, line {error.lineno}: {what}"
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == self._path]
        if not own:
            return f"{self._path}: {what}"
        places = [f"{f.filename}, line {f.lineno}, in {f.name}\n    {f.line}" for f in own]
        return "\n".join([f"{self._path}, line {own[-1].lineno}: {what}", *places])
