"""Row counts and table version of a write, as dbt puts them into run_results.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.sparkdelta import catalog, delta_log
from dbt.adapters.sparkdelta.statements import names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.sparkdelta.write_plan import WritePlan


@dataclass
class SparkdeltaResponse(AdapterResponse):
    """rows_*: rows that the statement touched. table_version: the commit it made. report: what the model's
    write plan adds. None where not known."""

    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    table_version: int | None = None
    report: dict[str, Any] | None = None


def reported(response: AdapterResponse, plan: WritePlan) -> AdapterResponse:
    """The response with the plan's report beside its own fields; a `message` in it is what dbt shows."""
    if plan.report and isinstance(response, SparkdeltaResponse):
        message = plan.report.get("message", response._message)
        return replace(response, report=dict(plan.report), _message=message)
    return response


def response_of(session: SparkSession, kind: str, table: str, frame: DataFrame, committed: str | None) -> SparkdeltaResponse:
    """The response of one finished writing statement.

    kind: its first word. table: the name it wrote to, as written. frame: what the statement returned.
    committed: the version it committed, None when it made no commit.
    """
    version = None if committed is None else int(committed)
    # merge, update and delete say so themselves, but for a transaction that Delta knew already: then no row
    rows = frame.collect() if "num_affected_rows" in frame.columns else []
    if rows:
        return counted(kind, rows[0].asDict(), version)
    unknown = SparkdeltaResponse(_message=kind.upper(), code=kind.upper(), table_version=version)
    if version is not None:
        metrics = delta_log.operation_metrics(session, table, version)
        if metrics is None or "numCopiedFiles" in metrics:  # a clone does not tell its rows
            return unknown
        inserted = delta_log.rows_put_in(metrics)
        deleted = metrics.get("numDeletedRows", 0)
        updated = None
        affected = inserted + deleted
    elif kind == "create" and not catalog.is_delta(session, *names_of(session, table)):  # Spark does not tell
        return unknown
    else:  # no commit: nothing to write, or Delta knew the transaction already
        affected, inserted, updated, deleted = 0, 0, None, None
    return _response(kind, affected, inserted, updated, deleted, version)


def counted(kind: str, row: Mapping[str, Any], version: int | None = None) -> SparkdeltaResponse:
    """The response of a merge, update or delete, of the one row that it returns."""
    affected = row["num_affected_rows"]
    updated = row.get("num_updated_rows", affected if kind == "update" else None)
    deleted = row.get("num_deleted_rows", affected if kind == "delete" else None)
    return _response(kind, affected, row.get("num_inserted_rows"), updated, deleted, version)


def _response(
    kind: str, affected: int, inserted: int | None, updated: int | None, deleted: int | None, version: int | None
) -> SparkdeltaResponse:
    return SparkdeltaResponse(
        _message=_message(kind.upper(), affected, inserted, updated, deleted),
        code=kind.upper(),
        rows_affected=affected,
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=deleted,
        table_version=version,
    )


def _message(kind: str, affected: int, *counts: int | None) -> str:
    parts = [f"{sign}{count}" for sign, count in zip("+~-", counts, strict=True) if count]
    return f"{kind} {' '.join(parts) if parts else affected}"
