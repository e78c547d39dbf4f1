"""What is done to Delta tables beside the writing of rows: small files merged, old ones removed, a clone's first commit."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta.catalog import location
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.delta_log import delta_log, metrics_of, open_log, table_state
from dbt.adapters.sparkdelta.java import java_class, make_active, no_option
from dbt.adapters.sparkdelta.session import settings_on
from dbt.adapters.sparkdelta.table_log import hours_kept
from dbt.adapters.sparkdelta.write_plan import USER_METADATA, WritePlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_PURGED = "sparkdelta.purged_before"  # of a table that was purged: its version before the commit that says so


def optimize(session: SparkSession, table: str, order: str = "", tries: int = 3) -> bool:
    """Merge a Delta table's small files. Where a load commits meanwhile it begins again from what is there then; False where one
    did so each time. table: as SQL names it. order: `zorder by (…)`, or nothing."""
    met = conflicts()
    for tried in range(tries):
        try:
            session.sql(f"optimize {table} {order}")
            return True
        except met:
            time.sleep(2**tried)
    return False


def conflicts() -> tuple[type[Exception], ...]:
    """What Delta raises where a commit meets another one: in Python these have no class in common."""
    from delta import exceptions

    names = ("ConcurrentAppend", "ConcurrentDeleteDelete", "ConcurrentDeleteRead", "ConcurrentTransaction", "ConcurrentWrite",
             "DeltaConcurrentModification", "MetadataChanged", "ProtocolChanged")  # fmt: skip
    return tuple(getattr(exceptions, f"{name}Exception") for name in names)


def vacuum(session: SparkSession, schema: str, identifier: str) -> dict[str, int]:
    """Remove the files that neither the newest version nor one within the table's retention needs; returns how many `files` they
    were, and of how many `bytes`: 0 where another commit came while VACUUM was at work.

    Nothing is done where the last VACUUM left none: Delta commits each one twice, and of a table that is only vacuumed what our
    commits noted would leave the log after 30 days.
    """
    log = open_log(session, location(session, schema, identifier) or "")
    ended = [each["operation"] for each in log.history(session, 1)] == ["VACUUM END"]  # a busy table has thousands of commits
    if ended and is_vacuumed(log.history(session, None), hours_kept(log.properties())):
        return {"files": 0, "bytes": 0}
    _vacuum(session, ".".join(map(quoted, (schema, identifier))))
    newest = session.sql(f"describe history {quoted(schema)}.{quoted(identifier)} limit 2").collect()
    if newest[0]["operation"] != "VACUUM END":  # a store of which Delta notes no VACUUM
        return {"files": 0, "bytes": 0}
    of_start, of_end = metrics_of(newest[-1].asDict()), metrics_of(newest[0].asDict())
    return {"files": of_end.get("numDeletedFiles", 0), "bytes": of_start.get("sizeOfDataToDelete", 0)}


def is_vacuumed(commits: Sequence[Mapping[str, Any]], hours: float | None) -> bool:
    """Whether the newest commit ends a VACUUM that came when all files which were replaced before had been kept long enough.

    commits: a table's history, newest first. hours: how long files are kept; None if that is not known.
    """
    if not commits or hours is None or commits[0]["operation"] != "VACUUM END" or "FAILED" in str(commits[0]):
        return False
    # where the log has nothing else any more, what it has of them is as old as its oldest commit at least
    changed = next((each for each in commits if not str(each["operation"]).startswith("VACUUM")), commits[-1])
    ended, changed_at = (
        each["timestamp"].timestamp() if isinstance(each["timestamp"], datetime) else each["timestamp"] / 1000
        for each in (commits[0], changed)
    )  # delta-rs tells milliseconds
    return bool(ended - changed_at > hours * 3600)


def _vacuum(session: SparkSession, table: str, how: str = "", settings: Mapping[str, str] | None = None) -> None:
    # Delta lists the folders with that many tasks; Spark's default is 10,000, half a minute on 2 cores for any table
    few = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * session.sparkContext.defaultParallelism)}
    with settings_on(session, {**few, **(settings or {})}):
        session.sql(f"vacuum {table} {how}")


def hand_over(session: SparkSession, source: tuple[str, str], target: tuple[str, str]) -> None:
    """Commit to a clone what a table's log says of our last transaction: what works on the clone goes on from there.

    source, target: schema and identifier.
    """
    state = table_state(session, *source, app_prefix=source[1])
    if state["app_id"] is None or state["replaced"]:
        return
    plan = WritePlan(txn={"app_id": state["app_id"], "version": state["txn_version"]}, notes=state["notes"])
    delta, nothing = "org.apache.spark.sql.delta", no_option(session)
    transaction = java_class(session, f"{delta}.actions.SetTransaction")(state["app_id"], state["txn_version"], nothing)
    actions = java_class(session, "java.util.List").of(transaction)
    actions = java_class(session, "scala.jdk.javaapi.CollectionConverters").asScala(actions).toSeq()
    operation = getattr(java_class(session, f"{delta}.DeltaOperations$ManualUpdate$"), "MODULE$")
    with settings_on(session, plan.settings):
        make_active(session)  # whose settings the commit reads
        delta_log(session, location(session, *target))[0].startTransaction(nothing, nothing).commit(actions, operation)


def purge(session: SparkSession, schema: str, identifier: str) -> None:
    """Remove from disk all that the table's newest version does not hold: rows that deletion vectors only mark, older files,
    change data, and older log entries, whose statistics name values. Time travel to before ends; what our commits noted stays."""
    table = ".".join(map(quoted, (schema, identifier)))
    session.sql(f"reorg table {table} apply (purge)")
    state = table_state(session, schema, identifier, app_prefix=identifier)
    assert state["version"] is not None, "REORG found the table"
    said = {"app_id": state["app_id"], "version": state["txn_version"], "notes": state["notes"]}
    # no commit is made that one which is run again would make once more
    off = {"retentionDurationCheck.enabled": "false", "vacuum.logging.enabled": "false"}
    _vacuum(session, table, "retain 0 hours", {f"spark.databricks.delta.{name}": value for name, value in off.items()})
    if state["properties"].get(_PURGED) != str(state["version"] - 1):
        with settings_on(session, {USER_METADATA: json.dumps(said)} if state["app_id"] else {}):
            session.sql(f"alter table {table} set tblproperties ('{_PURGED}' = '{state['version']}')")
    log, _ = delta_log(session, location(session, schema, identifier))
    log.checkpoint()
    # so far in the future that py4j makes it a Long; entries at and above the checkpoint stay
    retention = java_class(session, "scala.Option").apply(-(2**31) - 1)
    minute = java_class(session, "org.apache.spark.sql.delta.TruncationGranularity").MINUTE()
    nothing = no_option(session)
    log.cleanUpExpiredLogs(log.update(False, nothing, nothing), nothing, retention, minute)
