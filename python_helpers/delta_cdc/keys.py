"""The model of a keys table: who is who across key changes, kept from run to run.

Called by the generated Python models `int_<feed>__<table>_keys`. Only changes at keys that were ever part of a key
change have a row; every other key is its own entity.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.connections import PLAN_SUFFIX
from delta_cdc.resolver import ID, cut, resolve, rows_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

# What a changed resolution changes. `_cdc_sequence` and `_cdc_ordinal` are the change's own.
_RESOLVED = ("entity", "key_before", "key_after", "origin", "displaced_entity", "acts_on")
# A left join of changes with the keys that `_linked_keys` gives, and whether a change is at one of them.
_AT_LINKED_KEY, _IS_LINKED = "_cdc_key <=> linked_key", "linked_key is not null"


def key_changes(
    dbt: Any,
    session: SparkSession,
    *,
    staging: DataFrame,
    control: DataFrame,
    keys: list[str],
    pair_split_key_changes: bool = False,
    may_be_held: bool = False,
) -> Any:
    """Resolve again the changes at linked keys, when new changes touch one, and return the rows that differ.

    staging: all of the staging table. control: a table in the schema of the tables of control. keys: staging's key
    columns. pair_split_key_changes: whether a delete and an insert at one position of one transaction are the halves of a
    key change (K6). may_be_held: only what is below the first held change set is read (Q2, Q4).
    Returns a `Write` for the adapter: the rows of `Resolution` that are new or changed, with `resolved_batch_id`
    (bigint: the batch whose load decided the row as it is); all rows after a revision of staging (S9, Q3), and where the
    table is made anew.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType

    from dbt.adapters.sparkdelta import Write

    state, staged = dbt.table_state(), dbt.table_state(staging)
    made_of = {"schema": dbt.schema_of(staging), "id": staged["id"], "version": staged["version"], "app_id": staged["app_id"]}
    revision = staged["notes"].get("revised_in")
    notes = {"keys": keys, "made_of": made_of, **({} if revision is None else {"revised_in": revision})}
    anew = state["exists"] and (not dbt.is_incremental or _is_outdated(state, staged, made_of, keys))  # `delta-cdc rebuild`
    continued = state["exists"] and not anew and state["txn_version"] is not None and not state["replaced"]
    # a table that somebody restored or replaced is worked out anew, as a new application: Delta would skip the old one's batch
    new_app_id = f"{dbt.this.identifier}@{state['version'] + 1 if state['exists'] else 0}"
    if staged["notes"].get("keys_may_move") is False:  # most tables: no key has changed so far
        if continued:
            return Write(None, skip=True)
        nothing = session.createDataFrame([], rows_schema(staging.schema, keys).add("resolved_batch_id", LongType()))
        return Write(nothing, rebuild=state["exists"], txn={"app_id": new_app_id, "version": staged["txn_version"]}, notes=notes)
    done = max(state["txn_version"], _noted(dbt, dbt.schema_of(control))) if continued else -1
    # a retraction may undo what is resolved: the table is worked out anew; of what is held (Q4) `done` stays below the revision
    if continued and (revision or -1) > max(done, state["notes"].get("revised_in") or -1):
        anew, continued, done = True, False, -1
    newest = staged["txn_version"] or 0
    # nothing new: staging has come no further, or its newest commit found only duplicates
    if continued and newest <= done:
        return Write(None, skip=True)
    much = dbt.tune_for(staging)
    held = _held_from(session, dbt.schema_of(control), dbt.schema_of(staging), staged["identifier"]) if may_be_held else None
    if held is not None:
        newest = min(newest, held - 1)
        staging = staging.where(F.col("_cdc_batch_id") < held)
        if continued and newest <= done:
            return Write(None, skip=True)
    report: dict[str, int] = {"first_batch_id": done + 1, "last_batch_id": newest, "rows_read": 0}
    if continued and staged["rows"] == 0 and staged["notes"].get("after", newest) <= done:
        return Write(None, skip=True, report=report)

    changes = _usable_changes(staging, keys)
    before = session.table(str(dbt.this)) if state["exists"] and not anew else None
    if not much:  # of a small table to list its files and to plan their reading is what costs: once is enough
        changes, before = changes.localCheckpoint(eager=False), before and before.localCheckpoint(eager=False)
    found = _resolved_again(changes, before, done, newest, pair_split_key_changes, report)
    if found is None:
        return Write(None, skip=True, report=report)
    rows, all_new = found
    txn = {"app_id": state["app_id"] if continued else new_app_id, "version": newest}
    txn |= {"after": state["txn_version"]} if continued and all_new else {}
    return Write(rows, rebuild=anew, all_new=all_new, txn=txn, notes=notes, report=report)


def _is_outdated(state: dict[str, Any], staged: dict[str, Any], made_of: dict[str, Any], keys: list[str]) -> bool:
    """Whether the table was made of another staging, or of other keys or types of it: nothing here is only here, so it is worked
    out anew. state, staged: of `table_state`."""
    if state["notes"].get("keys", keys) != keys:  # what is beside it stops until it is rebuilt (K8)
        return True
    if _types(state["columns"], "key_after") != _types(staged["columns"], *keys):  # columns that were widened in staging (E4)
        return True
    of = {**made_of, **state["notes"].get("made_of", {})}  # staging may have been dropped and loaded anew
    return bool(of["id"] != staged["id"] and not _goes_on(of, made_of))


def _resolved_again(
    changes: DataFrame, before: DataFrame | None, done: int, newest: int, pair_split_key_changes: bool, report: dict[str, int]
) -> tuple[DataFrame, bool] | None:
    """The rows that the table lacks or has otherwise, and whether it has none of their changes; None where no change after batch
    `done` is at a linked key, so that it lacks none.

    before: the table's rows; None where it is made anew. newest: the last batch of the changes. report: gets what was found.
    """
    from pyspark.sql import functions as F

    links = _linked_keys(changes, pair_split_key_changes)
    if before:
        links = links.union(_both(before, "key_before", "key_after"))
    linked = links.distinct().localCheckpoint()
    truncates, report["rows_read"] = _counted(changes.where(F.col("_cdc_batch_id") > done), linked)
    if before and not truncates and not report["rows_read"]:
        return None
    resolution = resolve(_at_keys(changes, linked), pair_split_key_changes=pair_split_key_changes)
    report |= {"rounds": resolution.rounds, "unresolved": resolution.unresolved}
    rows = resolution.rows.withColumn("resolved_batch_id", F.lit(newest).cast("bigint"))
    if not before:
        return rows, False
    rows, known = _differing(rows, before)
    return rows, not known


def _goes_on(of: dict[str, Any], staged: dict[str, Any]) -> bool:
    """Whether staging, written anew, is still the same: its versions and the generations of its transactions grow (E4). One in
    another schema (`--defer`) was loaded by another ledger, but for the clone of a plan. of, staged: as `made_of`."""
    if of["schema"].lower() != staged["schema"].lower():
        return PLAN_SUFFIX in staged["schema"]
    was, now = (int((each["app_id"] or "@0").rsplit("@", 1)[1]) for each in (of, staged))
    return bool(staged["version"] > of["version"] and now > was)


def _counted(changes: DataFrame, linked: DataFrame) -> tuple[int, int]:
    """How many of the changes are truncates, and how many are at linked keys."""
    from pyspark.sql import functions as F

    truncates, touched = F.count_if(F.col("_cdc_op") == "T"), F.count_if(F.expr(_IS_LINKED))
    row = changes.join(linked, F.expr(_AT_LINKED_KEY), "left").agg(truncates, touched).collect()[0]
    return int(row[0]), int(row[1])


def _differing(rows: DataFrame, before: DataFrame) -> tuple[DataFrame, int]:
    """The rows of which the table has none that says the same, and how many of them are of a change that it has."""
    from pyspark.sql import functions as F

    def same(names: Iterable[str]) -> Column:
        return reduce(and_, [F.col(f"new.{name}").eqNullSafe(F.col(f"old.{name}")) for name in names])

    both = rows.alias("new").join(before.alias("old"), same(ID), "left")
    both = both.withColumn("is_known", F.expr("old._cdc_row is not null"))
    kept, counts = cut(both.where(~same(_RESOLVED) | ~F.col("is_known")).select("new.*", "is_known"), known="is_known")
    return kept.drop("is_known"), counts["known"]


def _types(columns: dict[str, Any], *keys: str) -> list[str]:
    """The types of a table's sequence and keys, from `table_state`; one struct of keys counts as its fields."""
    from pyspark.sql.types import StructType

    from dbt.adapters.sparkdelta.columns import sql_of, type_of

    types = [type_of(given) for name, given in columns.items() if name.lower() in {key.lower() for key in keys}]
    if keys == ("key_after",) and types and isinstance(types[0], StructType):  # the keys table has them in one struct
        types = [field.dataType for field in types[0].fields]
    return [sql_of(type_of(columns.get("_cdc_sequence", "string"))), *sorted(map(sql_of, types))]


def known_key_changes(
    session: SparkSession,
    *,
    staging: str,
    keys: list[str],
    pair_split_key_changes: bool = False,
) -> DataFrame:
    """Who is who by some of the changes alone: the rows that a keys table would have if staging held no others.

    staging: SQL of a relation with the columns of a staging table. keys: its key columns.
    """
    changes = _usable_changes(session.sql(f"select * from {staging}"), keys)
    linked = _linked_keys(changes, pair_split_key_changes).distinct()
    return resolve(_at_keys(changes, linked), pair_split_key_changes=pair_split_key_changes).rows


def linked_keys(session: SparkSession, *, staging: str, keys: list[str], pair_split_key_changes: bool = False) -> DataFrame:
    """The keys that were ever part of a key change, each once: a row with the key columns.

    staging: SQL of a relation with the columns of a staging table. keys: its key columns.
    """
    linked = _linked_keys(_usable_changes(session.sql(f"select * from {staging}"), keys), pair_split_key_changes)
    return linked.selectExpr("linked_key.*").distinct()


def _usable_changes(staging: DataFrame, keys: list[str]) -> DataFrame:
    """What the resolver takes of a staging table."""
    from pyspark.sql import functions as F

    key = F.struct(*[F.col(quoted(k)) for k in keys])
    before = F.struct(*[F.col(f"_cdc_key_before.{quoted(k)}").alias(k) for k in keys])
    # of a table that was loaded with other keys once (K8), the key of today may not have changed
    is_moved = F.col("_cdc_key_before").isNotNull() & ~before.eqNullSafe(key)
    return staging.where(F.col("_cdc_error").isNull()).select(
        *ID,
        "_cdc_op",
        F.when(F.col("_cdc_op") != "T", key).alias("_cdc_key"),
        F.when(is_moved, before).alias("_cdc_key_before"),
        "_cdc_sequence",
        "_cdc_ordinal",
        "_cdc_transaction",
        F.lit(0).cast("bigint").alias("_cdc_change_set_order"),
    )


def _linked_keys(changes: DataFrame, pair_split_key_changes: bool) -> DataFrame:
    """The keys (`linked_key`) that these changes make part of a key change, some of them more than once."""

    movers = changes.where("_cdc_key_before is not null")
    links = _both(movers, "_cdc_key", "_cdc_key_before")
    return links.union(_pairs(changes).select("_cdc_key")) if pair_split_key_changes else links


def _both(rows: DataFrame, first: str, second: str) -> DataFrame:
    """The values of two columns in one, `linked_key`, without nulls: rows are read once."""
    from pyspark.sql import functions as F

    return rows.select(F.explode(F.array(first, second)).alias("linked_key")).where(_IS_LINKED)


def _at_keys(changes: DataFrame, linked: DataFrame) -> DataFrame:
    """The changes that the resolver needs: those at linked keys, and the truncates, which end every row.

    A key change is at a linked key by its new key.
    """
    from pyspark.sql import functions as F

    beside_links = changes.join(linked, F.expr(_AT_LINKED_KEY), "left")
    needed = beside_links.where(F.expr(f"{_IS_LINKED} or _cdc_op = 'T'")).select(*changes.columns)
    return needed.localCheckpoint()  # the resolver reads it twice


def _noted(dbt: Any, schema: str) -> int:
    """The highest batch that a run found to hold nothing for this table (S7). schema: that of `cdc_runs`."""
    found = dbt.newest_notes(schema, "cdc_runs").get("done")
    if found is None:  # as the macro noted_runs, and for its reasons: a table may have been dropped and made anew since
        noted = (
            "select `table`, max(if(status = 'success' and rows_written = 0 and last_batch_id > coalesce(wrote, -1)"
            " and finished_at >= coalesce(made_at, finished_at), last_batch_id, null)) as batch_id"
            " from (select *, max(if(rows_written > 0, last_batch_id, null)) over (partition by `table`) as wrote,"
            " max(if(version = 0, finished_at, null)) over (partition by `table`) as made_at"
            f" from {quoted(schema)}.cdc_runs) group by `table`"
        )
        rows = dbt.cached_query(schema, "cdc_runs", noted)
        found = {row["table"]: row["batch_id"] for row in rows if row["batch_id"] is not None}
    return max(int(found.get(name, -1)) for name in (dbt.this.identifier, f"{dbt.this.schema}.{dbt.this.identifier}"))


def _held_from(session: SparkSession, control: str, schema: str, staging: str) -> int | None:
    """The first batch of a staging table that is held, or None. control: the schema of `cdc_holds`; schema: that of the table."""
    holds = session.table(f"{quoted(control)}.cdc_holds")
    names = staging, f"{schema.replace(PLAN_SUFFIX, '')}.{staging}"  # as the macro `_names_in_holds`
    held = holds.where(holds["table"].isin(*names) & holds["accepted_at"].isNull())
    row = held.agg({"batch_id": "min"}).collect()[0]
    return None if row[0] is None else int(row[0])


def _pairs(changes: DataFrame) -> DataFrame:
    """The deletes and inserts that share a position and a transaction with one of the other kind (K6)."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    at = Window.partitionBy("_cdc_sequence", "_cdc_transaction")
    halves = changes.where("_cdc_op in ('D', 'I') and _cdc_sequence is not null")
    return halves.withColumn(
        "both", F.count_if(F.col("_cdc_op") == "D").over(at) * F.count_if(F.col("_cdc_op") == "I").over(at)
    ).where("both > 0")
