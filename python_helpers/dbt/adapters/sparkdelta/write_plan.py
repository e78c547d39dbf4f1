"""What a model decides about its next write while it compiles or runs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class WritePlan:
    """Options for one write of one table.

    skip: nothing is new: run no statement, unless the table does not exist yet.
    rebuild: create or replace the table, although it exists.
    txn: `{"app_id": str, "version": int}`; Delta ignores the write when it has already committed that
        version, or a later one, of that application. With `after`, the version that the table had when the write was planned
        (-1: none), an INSERT is refused where another run has committed one in between: what it loaded would be there twice.
    notes: a small mapping that the commit keeps, for the next run: `newest_notes` hands it back, `table_state` that of a txn.
    predicates: SQL conditions, joined by AND: for merge added to its ON clause (aliases DBT_INTERNAL_DEST and
        DBT_INTERNAL_SOURCE), for replace_where the rows to replace (no alias).
    delete_unmatched: merge removes the rows that its source does not have: the source is the whole table.
    narrow: the values of the merge's keys may stand in its ON clause where the table is large: sparkdelta.narrowing.
    all_new: the table has no row of the keys that the source has: where the model merges, its rows are appended.
    columns: {name: type}: what the table has to have before the model's SQL is read. What is missing is added and what is
        narrower widened, whatever on_schema_change says; with skip too.
    report: what the model wants said of this write: added to adapter_response in run_results.json.
    """

    skip: bool = False
    rebuild: bool = False
    txn: Mapping[str, Any] | None = None
    notes: Mapping[str, Any] | None = None
    predicates: Sequence[str] = ()
    delete_unmatched: bool = False
    narrow: bool = False
    all_new: bool = False
    columns: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None
    nothing: bool = field(default=False, init=False)  # a Python model returned no rows to create a table from

    def __post_init__(self) -> None:
        problems = []
        for name in ("skip", "rebuild", "delete_unmatched", "narrow", "all_new"):
            if not isinstance(getattr(self, name), bool):
                problems.append(f"`{name}` is {getattr(self, name)!r}; it wants true or false")
        if isinstance(self.predicates, str) or not all(isinstance(p, str) for p in self.predicates or ()):
            problems.append(f"`predicates` is {self.predicates!r}; it wants a list of SQL conditions")
        for name in ("report", "notes", "columns"):
            if getattr(self, name) is not None and not isinstance(getattr(self, name), Mapping):
                problems.append(f"`{name}` is {getattr(self, name)!r}; it wants a mapping")
        if self.txn is not None:
            txn = dict(self.txn) if isinstance(self.txn, Mapping) else {}
            version = txn.get("version")
            if (
                {*txn} - {"after"} != {"app_id", "version"}
                or not isinstance(txn.get("app_id"), str)
                or not txn["app_id"]
                or not isinstance(version, int)
                or isinstance(version, bool)
                or version < 0
            ):
                problems.append(f"`txn` is {self.txn!r}; it wants {{'app_id': a string, 'version': an integer from 0 on}}")
        if problems:
            raise DbtRuntimeError("Write plan: " + "; ".join(problems) + ".")
        object.__setattr__(self, "predicates", tuple(self.predicates or ()))

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None) -> WritePlan:
        """The plan of a dict of options. Raises DbtRuntimeError for an option that is not known."""
        known = [each.name for each in fields(WritePlan) if each.init]
        for name in options or {}:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f" Did you mean `{close[0]}`?" if close else ""
                raise DbtRuntimeError(f"Write plan: option `{name}` is not known.{hint} Known are {', '.join(known)}.")
        return cls(**{key: value for key, value in (options or {}).items() if value is not None})

    @property
    def settings(self) -> dict[str, str]:
        """Session settings that make the one writing statement idempotent and visible in the history."""
        settings = {}
        if self.txn is not None:
            settings = {TXN_APP_ID: self.txn["app_id"], TXN_VERSION: str(self.txn["version"])}
        said = {name: self.txn[name] for name in ("app_id", "version")} if self.txn else {}
        said |= {"notes": dict(self.notes)} if self.notes else {}
        return {**settings, USER_METADATA: json.dumps(said)} if said else {}


class Write:
    """What a Python model returns when its write needs options: `return Write(df, txn={...})`."""

    def __init__(self, df: Any = None, **options: Any) -> None:
        """df: a Spark or pandas DataFrame, or None for nothing to write. options: those of `WritePlan`."""
        self.df = df
        self.plan = WritePlan.from_options(options)
        if df is None:
            self.plan = replace(self.plan, skip=True)
            object.__setattr__(self.plan, "nothing", True)
