"""A dbt project of a user who installed delta_cdc, driven in this process: one JVM for all runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_float
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result
from deltalake import DeltaTable
from pyspark.sql import types as T

from delta_cdc import scaffold
from delta_cdc.config_reader import load_project
from delta_cdc.errors import ConfigError, Problem
from tests.scenarios.values import Map

# A process runs for minutes: the second compiler pays, for what runs often (each threshold is four times Java's own: the compiler
# took a third of the CPU). It has hundreds of tables, and Delta keeps 4 MB for each that it has read.
SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4 -XX:Tier4InvocationThreshold=20000 "
    "-XX:Tier4MinInvocationThreshold=2400 -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000",
    "spark.driver.memory": "5g",
}
PACKAGE = Path(__file__).resolve().parents[2]


MOMENTS = ("date", "timestamp", "timestamp_ntz")


def _moment(text: str | None, kind: str) -> Any:
    try:
        return text and (date if kind == "date" else datetime).fromisoformat(text)
    except ValueError:
        return text


def _as_written(value: Any, kind: T.DataType) -> Any:
    """A value of this type with each float in it as the double that is written alike, and each moment in UTC: Spark hands these
    over as local times of this process."""
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        return {field.name: _as_written(value[field.name], field.dataType) for field in kind}
    if isinstance(kind, T.ArrayType):
        return [_as_written(each, kind.elementType) for each in value]
    if isinstance(kind, T.MapType):
        keys = (each if isinstance(each, tuple) else _as_written(each, kind.keyType) for each in value)  # a structure stays a key
        return Map(zip(keys, (_as_written(each, kind.valueType) for each in value.values()), strict=True))
    if isinstance(kind, T.FloatType):
        written = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        return next((each for each in written if c_float(each).value == value), value)
    return value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(kind, T.TimestampType) else value


def write_change_set(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Each row as a line of JSON; a text as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


class UserProject:
    """path: its folder, made anew. lake: warehouse and metastore, one for all projects of a process. package: what it
    installs. spark_settings: beside SPARK_SETTINGS, the same for all projects of a process. artifacts: whether dbt writes its
    manifest and results, which takes half a second a command."""

    def __init__(
        self,
        path: Path,
        *,
        lake: Path,
        schema: str,
        threads: int = 3,
        package: Path = PACKAGE,
        spark_settings: Mapping[str, str] | None = None,
        artifacts: bool = True,
    ) -> None:
        self.spark_settings = {**SPARK_SETTINGS, **(spark_settings or {})}
        self.path = path
        self.lake = lake
        self.schema = schema
        self._manifest: Any = None
        shutil.rmtree(path, ignore_errors=True)
        (path / "models").mkdir(parents=True)
        self._write(
            "dbt_project.yml",
            {
                "name": "user_project",
                "version": "1.0.0",
                "config-version": 2,
                "profile": "user",
                "flags": {"send_anonymous_usage_stats": False, "write_json": artifacts},
            },
        )
        self._write("packages.yml", {"packages": [{"local": str(package)}]})
        self._write(
            "profiles.yml",
            {
                "user": {
                    "target": "dev",
                    "outputs": {
                        "dev": {
                            "type": "sparkdelta",
                            "method": "session",
                            "schema": schema,
                            "threads": threads,
                            "root": str(lake),
                            "server_side_parameters": self.spark_settings,
                        }
                    },
                }
            },
        )
        self.dbt("deps", quiet=True)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        (self.path / name).write_text(yaml.safe_dump(content, sort_keys=False))

    def configure(self, feed: str, *, settings: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> None:
        """Declare a feed: settings of the feed, and per table name, settings (`cdc`) and columns {name: type}."""
        folder = self.path / "models" / feed
        folder.mkdir(parents=True, exist_ok=True)
        source = {
            "name": feed,
            "config": {"meta": {"cdc": dict(settings)}},
            "tables": [
                {
                    "name": t["name"],
                    "config": {"meta": {"cdc": dict(t["cdc"])}},
                    "columns": [
                        {"name": n, "data_type": d, "description": f"{n} of the source"} for n, d in t["columns"].items()
                    ],
                }
                for t in tables
            ],
        }
        (folder / "_sources.yml").write_text(yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))

    def problems(self) -> Sequence[Problem]:
        """What is wrong with the configuration."""
        try:
            load_project(self.path)
        except ConfigError as error:
            return error.problems
        return ()

    def generate(self) -> None:
        project = load_project(self.path)
        files = scaffold.plan(project)
        scaffold.write(project, files, scaffold.compare(project, files), force=True, prune=True)
        self._manifest = None

    def dbt(self, *args: str, quiet: bool = False) -> Any:
        """Run a dbt command; raises AssertionError with the messages of what failed."""
        result = self.try_dbt(*args, quiet=quiet)
        if not result.success:
            raise AssertionError(f"dbt {' '.join(args)} failed: {result.exception or ''}\n" + "\n".join(self.failures(result)))
        return result

    def try_dbt(self, *args: str, quiet: bool = False) -> Any:
        from dbt.cli.main import dbtRunner

        where = ["--project-dir", str(self.path), "--profiles-dir", str(self.path)]
        if args[0] != "deps" and self._manifest is None:
            parsed = dbtRunner().invoke(["--quiet", "parse", *where])
            if not parsed.success:
                return parsed
            self._manifest = parsed.result
        return dbtRunner(manifest=self._manifest).invoke([*(["--quiet"] if quiet else []), *args, *where])

    def command(self, *arguments: object, catch_exceptions: bool = True) -> Result:
        """What came of a command of delta-cdc."""
        from delta_cdc.cli import main

        given = [*map(str, arguments), "--project-dir", str(self.path), "--profiles-dir", str(self.path)]
        return CliRunner().invoke(main, given, catch_exceptions=catch_exceptions)

    def done(self, *arguments: object, exit_code: int = 0, catch_exceptions: bool = True) -> str:
        """What a command of delta-cdc says, which has to end with this exit code."""
        result = self.command(*arguments, catch_exceptions=catch_exceptions)
        assert result.exit_code == exit_code, result.output
        return result.output

    @staticmethod
    def failures(result: Any) -> list[str]:
        results = getattr(result.result, "results", None) or []
        return [f"{r.node.name}: {r.message}" for r in results if str(r.status) not in ("success", "pass", "skipped", "no-op")]

    @staticmethod
    def failed(result: Any) -> list[Any]:
        """The results of the nodes that failed; AssertionError where dbt could not start."""
        nodes = getattr(result.result, "results", None) or []
        if not result.success and not nodes:
            raise AssertionError(str(result.exception or "dbt ran nothing"))
        return [node for node in nodes if str(node.status) in ("error", "fail")]

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query; `{schema}` stands for the project's schema. A float, in a value too, is the double that is written
        alike, a timestamp the moment in UTC. A day or moment that is none of Python's (years 1 to 9999) is a text."""
        from pyspark.sql import functions as F

        frame = self.spark().sql(sql.replace("{schema}", self.schema))
        columns = {name: (kind, F.col("`" + name.replace("`", "``") + "`")) for name, kind in frame.dtypes}
        moments: dict[str, str] = {}
        try:
            found = frame.collect()
        except (ValueError, OverflowError):
            moments = {name: kind for name, (kind, _) in columns.items() if kind in MOMENTS}
            frame = frame.withColumns({name: columns[name][1].cast("string") for name in moments})
            found = frame.collect()
        rows = [_as_written(row.asDict(recursive=True), frame.schema) for row in found]
        return [row | {name: _moment(row[name], kind) for name, kind in moments.items()} for row in rows]

    def by_id(self, sql: str) -> dict[Any, Any]:
        """The rows of a query by their first column, where no two are equal: what the other holds, or a tuple of others."""
        rows = [tuple(row.values()) for row in self.rows(sql)]
        found = {key: others[0] if len(others) == 1 else tuple(others) for key, *others in rows}
        assert len(found) == len(rows), f"an id twice: {rows}"
        return found

    def columns_if_any(self, table: str) -> list[str]:
        """The columns of a table; none where it was not made."""
        described = [row["col_name"] for row in self.rows_if_any(f"describe table {table}") or []]
        return [name for name in described if not name.startswith("#")]

    def rows_if_any(self, sql: str) -> list[dict[str, Any]] | None:
        """The rows of a query; None where a table that it names was not made."""
        from pyspark.errors import AnalysisException

        try:
            return self.rows(sql)
        except AnalysisException as error:
            if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                return None
            raise

    def quarantined(self, feed: str, table: str) -> list[tuple[str, int]]:
        """Why staging could not use changes of a table: (reason, how many); nothing where it was not made."""
        staged = f"{{schema}}.stg_{feed}__{table}"
        found = self.rows_if_any(
            f"select _cdc_error as reason, count(*) as n from {staged} where _cdc_error is not null group by 1 order by 1"
        )
        return [(row["reason"], row["n"]) for row in found or []]

    @property
    def tables(self) -> Path:
        """The folder that holds a folder for each of its Delta tables."""
        return self.lake / "warehouse" / f"{self.schema}.db"

    def delta(self, table: str) -> DeltaTable:
        return DeltaTable(str(self.tables / table))

    def versions(self) -> dict[str, int]:
        """{table: its newest version}, but of the record of runs, which each run adds to."""
        names = (log.parent.name for log in self.tables.glob("*/_delta_log"))
        return {name: self.delta(name).version() for name in names if name != "cdc_runs"}

    def spark(self) -> Any:
        from dbt.adapters.sparkdelta.session import root_session

        return root_session(root=self.lake, overrides=self.spark_settings)
