"""The adapter: dbt-spark's, mended where docs/adapter.md says."""

from __future__ import annotations

import importlib
import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dbt.adapters.base import BaseRelation, ConstraintSupport, PythonJobHelper, RelationType, available
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkAdapter, SparkColumn
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt.adapters.spark.impl import LIST_RELATIONS_MACRO_NAME, LIST_SCHEMAS_MACRO_NAME, SparkConfig
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import (
    catalog,
    columns,
    delta_log,
    narrowing,
    statements,
    table_log,
    tuning,
    upkeep,
)
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.connections import SparkdeltaConnectionManager
from dbt.adapters.sparkdelta.files import FilesMixin
from dbt.adapters.sparkdelta.in_session import Table, View, is_table
from dbt.adapters.sparkdelta.landing import LandingMixin
from dbt.adapters.sparkdelta.response import SparkdeltaResponse, reported
from dbt.adapters.sparkdelta.seeds import seed_rows
from dbt.adapters.sparkdelta.write_plan import WritePlan

_LOGGER = AdapterLogger("Spark")

TEMPORARY_SUFFIX = "__dbt_tmp"


@dataclass
class SparkdeltaConfig(SparkConfig):
    """Model settings beside dbt-spark's; docs/adapter.md tells what each does."""

    file_format: str = "delta"
    liquid_clustered_by: list[str] | str | None = None
    tblproperties: dict[str, str] | None = None
    merge_only_changed: bool | None = None
    merge_source_only_columns: list[str] | None = None
    matched_condition: str | None = None
    matched_delete_condition: str | None = None
    not_matched_condition: str | None = None
    not_matched_by_source_condition: str | None = None
    not_matched_by_source_action: str | None = None
    skip_matched_step: bool | None = None
    skip_not_matched_step: bool | None = None
    source_alias: str | None = None
    target_alias: str | None = None
    merge_with_schema_evolution: bool | None = None


@dataclass
class SparkdeltaColumn(SparkColumn):
    column_comment: str | None = None

    @property
    def quoted(self) -> str:
        return quoted(self.column)


def quoted_once(name: str) -> str:
    """A name in backticks; one that a user has put into backticks already stays as it is."""
    name = str(name)
    return quoted(name) if unquoted(name) == name else name


def unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if len(name) > 2 and name[0] == name[-1] == "`" else name


def _no_state(*_: Any, **__: Any) -> delta_log.TableState:
    return delta_log.no_state()


class SparkdeltaAdapter(FilesMixin, LandingMixin, SparkAdapter):
    """Talks to Spark in this process (method session), or to a server as dbt-spark does."""

    ConnectionManager = SparkdeltaConnectionManager
    Column = SparkdeltaColumn
    AdapterSpecificConfigs = SparkdeltaConfig
    CONSTRAINT_SUPPORT = SparkAdapter.CONSTRAINT_SUPPORT | {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
    }

    def __init__(self, config: Any, mp_context: Any) -> None:
        credentials = config.credentials
        if project := getattr(config, "project_root", None):
            credentials.root = os.path.abspath(os.path.join(project, credentials.root))
        super().__init__(config, mp_context)
        self._plans: dict[tuple[str, str], tuple[str | None, WritePlan]] = {}
        self._plans_lock = threading.Lock()
        self._remembered = {}

    def quote(self, identifier: str) -> str:  # type: ignore[override]
        return quoted_once(identifier)

    # --- write plans

    @available.parse(lambda *_: None)
    def version_mismatch(self) -> str | None:
        """What is wrong where the macros of delta_cdc that the project has are of another version than this Python; else None."""
        from delta_cdc.versions import mismatch

        return mismatch(Path(self.config.project_root), self.config.project_name, self.config.packages_install_path)

    @available.parse_none
    def plan_write(self, relation: BaseRelation, options: Mapping[str, Any] | None = None) -> None:
        """Keep options for the next write of a relation by the model that is compiling; the last call counts.

        options: see WritePlan. Raises DbtRuntimeError for options that are not known or of the wrong type.
        """
        plan = WritePlan.from_options(options)
        if is_table(relation):
            self._keep_plan(relation.schema, relation.identifier, plan)

    def _keep_plan(self, schema: str, identifier: str, plan: WritePlan) -> None:
        with self._plans_lock:
            self._plans[_key(schema, identifier)] = (get_node_info().get("unique_id"), plan)

    @available.parse(lambda *_, **__: WritePlan())
    def take_write_plan(self, relation: Table) -> WritePlan:
        """The options kept for a relation, once; an empty plan when there are none.

        A plan that another node left (a unit test compiles the model's SQL too) is thrown away.
        """
        with self._plans_lock:
            planner, plan = self._plans.pop(_key(relation.schema, relation.identifier), (None, WritePlan()))
        node = get_node_info().get("unique_id")
        return plan if planner is None or node is None or planner == node else WritePlan()

    @available.parse(lambda *_, **__: AdapterResponse(_message=""))
    def skipped(self, plan: WritePlan) -> AdapterResponse:
        """The response of a write that the plan leaves out."""
        return reported(SparkdeltaResponse(_message="SKIP nothing new", code="SKIP", rows_affected=0), plan)

    @available.parse(lambda *_, **__: AdapterResponse(_message=""))
    def execute_write(self, sql: str, plan: WritePlan) -> AdapterResponse:
        """Run the one statement that writes, as the plan's transaction if it has one.

        Delta commits statement and transaction together: after a crash both are there or neither is.
        """
        from dbt.adapters.sparkdelta.session import settings_on

        if not plan.settings:
            return reported(self.execute(sql)[0], plan)
        if self._in_process:
            session = self._session()
            kind, table = statements.written_table(sql)
            if kind in ("insert", "merge") and plan.txn:
                delta_log.refuse_made_anew(session, *statements.names_of(session, table), plan.txn)
            if kind == "insert" and plan.txn:
                delta_log.refuse_overtaken(session, *statements.names_of(session, table), plan.txn)
            with settings_on(session, plan.settings):
                return reported(self.execute(sql)[0], plan)
        try:
            for key, value in plan.settings.items():
                self.execute(f"set {quoted(key)}={quoted(value)}")
            return reported(self.execute(sql)[0], plan)
        finally:
            for key in plan.settings:
                self.execute(f"reset {quoted(key)}")

    @available.parse(lambda *_, **__: False)
    def tune_for(
        self, tables: Sequence[BaseRelation] = (), rows: int | None = None, change_sets: Sequence[Mapping[str, Any]] = ()
    ) -> bool:
        """Tell what this model is to read or write: if that is much, the rest of it has generated code (`sparkdelta.tuning`).

        tables: Delta tables. rows: how many. change_sets: files of text (`change_set`, `size` in bytes or None). Returns whether
        it is much.
        """
        if not self._in_process:
            return False
        names = [(each.schema, each.identifier) for each in tables if is_table(each)]
        given = self.config.credentials.server_side_parameters
        return tuning.tune_for(self._session(), names, rows, change_sets, given=given)

    @available.parse_list
    def narrowed(self, target: Table, source: View, keys: Sequence[str], dest: str) -> list[str]:
        """Conditions for the ON clause of a merge into a large table: `sparkdelta.narrowing`. None through `method: thrift`."""
        if not self._in_process:
            return []
        return narrowing.narrowed(self._session(), target.schema, target.identifier, source.identifier, keys, dest)

    @available.parse_list
    def narrowed_to(self, relation: Table, sql: str, keys: Sequence[str], dest: str) -> list[str]:
        """Conditions on a large table that is joined with a query by these keys: `sparkdelta.narrowing`. None through thrift."""
        if not self._in_process:
            return []
        return narrowing.narrowed_to(self._session(), relation.schema, relation.identifier, sql, keys, dest)

    @available.parse(_no_state)
    def table_state(self, relation: BaseRelation, app_prefix: str | None = None) -> delta_log.TableState:
        """What Delta's log says of a table, read without a Spark job where it is on this machine.

        app_prefix: our transactions' application ids are `<app_prefix>@<generation>`, an integer; by default the table's name.
        Returns exists (bool), id (another one once the table was made anew), version (int), app_id and txn_version (of the
        highest generation; None if there is none), notes (dict) and rows (int: those that it wrote; None if not known) of our
        newest commit, replaced (bool: after our last commit somebody else restored, replaced or emptied it), columns
        (dict: name to type as Delta's log has it), properties (dict: the table's own).
        Raises DbtRuntimeError when the log cannot be read; a table that is not there has exists False.
        """
        if not is_table(relation):
            return _no_state()
        return delta_log.table_state(self._session(), relation.schema, relation.identifier, app_prefix or relation.identifier)

    @available.parse(lambda *_: {})
    def newest_notes(self, relation: BaseRelation) -> dict[str, Any]:
        """What the newest commit of a Delta table noted (`WritePlan.notes`): {} where that is somebody else's, or nothing."""
        return delta_log.newest_notes(self._session(), relation.schema, relation.identifier) if is_table(relation) else {}

    @available.parse(lambda *_: {})
    def table_statistics(self, relation: BaseRelation, column: str | None = None) -> dict[str, Any]:
        """What Delta's log knows of a table's newest version; empty for one that is not there. Read as `table_state` is.

        Returns files and bytes; rows (those that deletion vectors mark included), None where not every file has statistics;
        highest (a column's highest value), None where neither delta-rs can read the column nor every file's statistics tell it.
        """
        if not is_table(relation):
            return {}
        return delta_log.statistics(self._session(), relation.schema, relation.identifier, column)

    @available.parse(lambda *_: None)
    def table_log(self, relation: BaseRelation, limit: int | None = 20) -> dict[str, Any] | None:
        """The newest commits of a Delta table and what is wrong with its log: `sparkdelta.table_log`; None if it is not there."""
        if not is_table(relation):
            return None
        return table_log.table_log(self._session(), relation.schema, relation.identifier, limit)

    @available.parse_none
    def clone_tables(self, clones: Sequence[Mapping[str, BaseRelation]]) -> None:
        """Make each `target` a shallow clone of its `source`: a new log over the same data files, with our last transaction."""
        session = self._session()
        with ThreadPoolExecutor(self.config.threads or 1) as pool:
            list(pool.map(lambda each: session.sql(f"create table {each['target']} shallow clone {each['source']}"), clones))
        for each in clones:
            source, target = ((str(each[side].schema), str(each[side].identifier)) for side in ("source", "target"))
            upkeep.hand_over(session, source, target)

    # --- columns

    @available.parse(lambda *_: columns.evolved({}, {}))
    def evolved(self, have: Mapping[str, Any], wanted: Mapping[str, Any]) -> columns.Evolved:
        """What a table with the columns `have` needs to hold those of `wanted`: `columns.evolved`."""
        return columns.evolved(have, wanted)

    @available.parse(lambda *_: "false")
    def misfits(self, text: str, value: str, data_type: str) -> str:
        """SQL: whether JSON text holds something that is null in the struct, array or map made of it."""
        return columns.misfits(text, value, columns.type_of(data_type))

    @available.parse(lambda *_: "null")
    def folded(self, value: str, data_type: str, unsaid: str, window: str) -> str:
        """SQL: a struct as the changes of a window left it, field by field (`columns.folded`)."""
        return columns.folded(value, columns.type_of(data_type), unsaid, window)

    @available.parse(lambda *_: False)
    def evolve(self, relation: BaseRelation, wanted: Mapping[str, Any] | BaseRelation) -> bool:
        """Make a table hold the columns `wanted` ({name: type}): add what it lacks, widen what is narrower.

        wanted may be a view: then only the columns that the table has too are looked at.
        Returns whether there was anything to do.
        """
        there = self._types_in(relation)
        if isinstance(wanted, BaseRelation):  # a relation is a mapping too
            names = {name.lower() for name in there}
            wanted = {name: given for name, given in self._types_in(wanted).items() if name.lower() in names}
        found = columns.evolved(there, wanted)
        sql = columns.statements(relation.render(), found["add"], found["widen"])
        for statement in sql:
            self.execute(statement)
        return bool(sql)

    def _types_in(self, relation: BaseRelation) -> dict[str, Any]:
        if self._in_process:
            return {field.name: field.dataType for field in self._session().table(relation.render()).schema.fields}
        return {column.name: column.dtype for column in self.get_columns_in_relation(relation)}

    # --- Python

    @available.parse_none
    def create_view_from_python(self, name: str, function: str, arguments: Mapping[str, Any] | None = None) -> None:
        """A temporary view of this thread's session: the DataFrame that `function`, by its dotted name, returns for the
        session and the arguments."""
        module, _, attribute = function.rpartition(".")
        made = getattr(importlib.import_module(module), attribute)(self._session(), **(arguments or {}))
        made.createOrReplaceTempView(quoted(name))

    @property
    def default_python_submission_method(self) -> str:
        on_databricks = self.config.credentials.method in (SparkConnectionMethod.HTTP, SparkConnectionMethod.ODBC)
        return super().default_python_submission_method if on_databricks else "session"

    @property
    def python_submission_helpers(self) -> dict[str, Any]:
        return {**super().python_submission_helpers, "session": self._python_model}

    def _python_model(self, parsed_model: dict[str, Any], _credentials: Any) -> PythonJobHelper:
        from dbt.adapters.sparkdelta.python_model import SessionPythonModel

        session = self._begin(parsed_model["unique_id"])
        keep = partial(self._keep_plan, parsed_model["schema"], parsed_model["alias"])
        given = self.config.credentials.server_side_parameters
        return SessionPythonModel(parsed_model, session, parsed_model["alias"] + TEMPORARY_SUFFIX, keep, given)

    def generate_python_submission_response(self, submission_result: Any) -> AdapterResponse:
        return AdapterResponse(_message="OK")

    # --- seeds

    @classmethod
    def convert_number_type(cls, agate_table: Any, col_idx: int) -> str:
        """dbt's, but double where a seed has NaN or Infinity among numbers: whole ones beside it would be `bigint`."""
        values = agate_table.columns[col_idx].values_without_nulls()
        return super().convert_number_type(agate_table, col_idx) if all(map(math.isfinite, values)) else "double"

    @available.parse_list
    def seed_rows(self, agate_table: Any, delimiter: str = ",", types: Mapping[str, str] | None = None) -> list[list[str]]:
        """A seed's rows as SQL literals, one list a row. types: `column_types`."""
        return seed_rows(agate_table, delimiter, types or {})

    # --- relations and columns

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Tables and views of a schema; none when there is no such schema.

        Raises DbtRuntimeError when the catalog does not answer: read as "no tables", that would make dbt
        create tables anew that stand there full of rows.
        """
        if self._in_process:
            schema = str(schema_relation.schema)
            with self.connections.exception_handler(f"list the tables of {schema}"):
                return [
                    self.Relation.create(
                        schema=schema.lower(),  # as the catalog spells it, and as dbt looks for it
                        identifier=table.name,
                        type=RelationType.View if table.is_view else RelationType.Table,
                        is_delta=table.provider == "delta",
                        is_iceberg=table.provider == "iceberg",
                        is_hudi=table.provider == "hudi",
                    )
                    for table in catalog.tables(self._begin(f"list {schema}"), schema)
                ]
        try:
            rows = self.execute_macro(LIST_RELATIONS_MACRO_NAME, kwargs={"schema_relation": schema_relation})
        except DbtRuntimeError as error:
            if "SHOW TABLE EXTENDED is not supported for v2 tables" in error.msg:
                return super().list_relations_without_caching(schema_relation)
            if not self.check_schema_exists(schema_relation.database or "", str(schema_relation.schema)):
                return []
            raise
        return self._build_spark_relation_list(rows, self._get_relation_information)

    def _make_match(self, relations_list: list[BaseRelation], database: str, schema: str, identifier: str) -> list[BaseRelation]:
        """dbt's, of those alone that have the name in any case: each model asks twice, and dbt compares all of a schema."""
        name = identifier.lower().strip("`")
        named = [each for each in relations_list if str(each.identifier).lower().strip("`") == name]
        return super()._make_match(named, database, schema, identifier)

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """A catalog spells a schema in lower case, whatever the profile does."""
        schemas = self.execute_macro(LIST_SCHEMAS_MACRO_NAME, kwargs={"database": database})
        return schema.lower() in [str(row[0]).lower() for row in schemas]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Columns of a table or temporary view; empty when there is no such relation."""
        if not self._in_process:
            return super().get_columns_in_relation(relation)
        from pyspark.errors import AnalysisException

        try:
            schema = self._session().table(relation.render()).schema
        except AnalysisException as error:
            if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                return []
            raise DbtRuntimeError(str(error)) from error
        return [
            self.Column(
                table_schema=relation.schema,
                table_name=relation.identifier,
                table_type=relation.type,
                column=field.name,
                column_index=index,
                dtype=field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", columns.sql_of(field.dataType)),
                column_comment=field.metadata.get("comment"),
            )
            for index, field in enumerate(schema.fields)
        ]

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Rows of `dbt docs generate`: a relation's columns, with the comments that dbt-spark leaves out."""
        if not self._in_process:
            yield from super()._get_columns_for_catalog(relation)
            return
        owner, comment = catalog.owner_and_comment(self._session(), str(relation.schema), str(relation.identifier))
        try:
            found = self.get_columns_in_relation(relation)
        except DbtRuntimeError as error:  # a view whose tables have changed: the others are told all the same
            _LOGGER.warning(f"{relation} has no columns in the catalog: {error}")
            return
        for column in found:
            row = column.to_column_dict()
            row["column_name"], row["column_type"] = row.pop("column"), row.pop("dtype")
            yield {"column_comment": None, **row, "table_owner": owner, "table_comment": comment, "table_database": None}

    @available.parse_list
    def columns_without(self, columns: Iterable[SparkColumn], others: Iterable[Any]) -> list[SparkColumn]:
        """The columns whose names are not among `others` (columns or names), without regard to case."""
        columns = list(columns)
        names = _names(others, columns)
        return [column for column in columns if column.name.lower() not in names]

    @available.parse_list
    def columns_within(self, columns: Iterable[SparkColumn], others: Iterable[Any]) -> list[SparkColumn]:
        """The columns whose names are among `others` (columns or names), without regard to case."""
        columns = list(columns)
        names = _names(others, columns)
        return [column for column in columns if column.name.lower() in names]

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "replace_where"]


def _names(others: Iterable[Any], columns: Iterable[SparkColumn]) -> set[str]:
    """The names of `others`, in lower case: a text may be a name in backticks, but where a column is named so."""
    there = {column.name.lower() for column in columns}
    names = set()
    for other in others:
        name = (other if isinstance(other, str) else other.name).lower()
        names.add(unquoted(name) if isinstance(other, str) and name not in there else name)
    return names


def _key(schema: str, identifier: str) -> tuple[str, str]:
    return schema.lower(), identifier.lower()
