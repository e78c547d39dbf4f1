"""The columns that each layer has beside those of the feed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from delta_cdc.project import Column, PartitionColumn, Table, sequence_name
from delta_cdc.sql_names import sql_name

# name, type (None: depends on the feed), description
AddedColumns = tuple[tuple[str, str | None, str], ...]

_NUMBER = "Number of the change set in the ledger, cdc_change_sets; numbers grow in load order."
_BATCH_ID = ("_cdc_batch_id", "bigint", _NUMBER)
_CHANGE_SET = ("_cdc_change_set", "string", "Path of the change set (a file, folder or commit) that delivered the change.")
_ROW = (
    "_cdc_row",
    "bigint",
    "Place of the change in its change set; with _cdc_batch_id its arrival, which orders changes of equal position.",
)
_SEQUENCE = (
    "_cdc_sequence",
    None,
    "Place of the change in the source's order: the values of `sequence_by`, compared left to right; null for a snapshot row "
    "without one.",
)
_ORDINAL = ("_cdc_ordinal", "bigint", "Place of the change inside its transaction or message, where the feed has one.")

RAW_COLUMNS: AddedColumns = (
    ("batch_id", "bigint", _NUMBER),
    ("change_set", "string", "Path of the change set (a file, folder or commit) that delivered the message."),
    ("row_number", "bigint", "Place of the message in its change set."),
    ("message", "string", "The message as it came."),
    ("source_table", "string", "The table that the message is of; null if it does not tell."),
)
STAGING_COLUMNS: AddedColumns = (
    ("_cdc_op", "string", "What the change does: I insert, U update, D delete, R snapshot row, T truncate."),
    ("_cdc_key_before", None, "The key before the change, where that gave the row another one; else null."),
    _SEQUENCE,
    _ORDINAL,
    ("_cdc_transaction", "string", "The transaction that the change was part of, where the feed tells it."),
    ("_cdc_occurred_at", None, "When the change happened at the source."),
    (
        "_cdc_missing",
        "array<string>",
        "Columns of which the change says nothing: it does not carry them, or has a null that `ignore_null_updates` means. They "
        "keep their value, and are null where there is none.",
    ),
    (
        "_cdc_undeclared",
        "map<string,string>",
        "Columns that the feed has and the configuration does not, with their text; null if there are none.",
    ),
    (
        "_cdc_error",
        "string",
        "Why the row cannot be used, e.g. null_key or cast:total; null if it can. The view cdc_quarantine lists such rows.",
    ),
    ("_cdc_raw", "string", "The row as it came, where it cannot be used."),
    _BATCH_ID,
    _CHANGE_SET,
    _ROW,
    ("_cdc_staged_at", "timestamp", "When the change was loaded into this table."),
)
# What they say where rows are their values
_OF_A_MULTISET = {"_cdc_key_before": "The row as it was before an update, which takes one such row away; null for other changes."}
KEYS_COLUMNS: AddedColumns = (
    _BATCH_ID,
    _CHANGE_SET,
    _ROW,
    ("_cdc_op", "string", "What the change does: I insert, U update, D delete, R snapshot row."),
    _SEQUENCE,
    _ORDINAL,
    ("entity", "string", "What stays the same of a row when its key changes; null if the change met no row."),
    ("key_before", None, "The key whose row the change takes away."),
    ("key_after", None, "The key that the row has after the change; null for a delete."),
    ("origin", "string", "How the change found its row, e.g. insert, update, key_change, unknown_key, delete."),
    ("displaced_entity", "string", "The row that a key change displaced at the end of its transaction."),
    (
        "acts_on",
        "struct<_cdc_batch_id: bigint, _cdc_change_set: string, _cdc_row: bigint>",
        "The change that placed the row where this change met it; null if there is none.",
    ),
    ("resolved_batch_id", "bigint", "Number of the newest change set in the load that made this row as it is."),
)
HISTORY_COLUMNS: AddedColumns = (
    ("_cdc_entity", "string", "What stays the same of a row when its key changes: all versions of the row have it."),
    ("valid_from", None, "Source time from which the version holds, inclusive; null: since before the feed."),
    ("valid_to", None, "Source time until which the version holds, exclusive; null: it still does."),
    ("is_current", "boolean", "The version still holds."),
    ("_cdc_sequence", None, "Position of the change that the version's values come from."),
)
SURROGATE = "_cdc_key"
_PARTS_OF_DATES = ("year", "month", "day", "quarter", "hour", "weekofyear", "dayofmonth")
_TYPES_OF_CALLS = dict.fromkeys(_PARTS_OF_DATES, "int") | {"date": "date", "to_date": "date"}


def final_columns(table: Table) -> list[Column]:
    """The columns of a final table: the published ones, those that only partition it, and the added ones."""
    derived = [_partition_as_column(c) for c in table.partition_columns if c.derived]
    times = added(table, tuple((name, None, text) for name, text in table.time_columns))
    deleted = added(table, _soft_delete_columns(table)) if table.deletes_softly else []
    if table.settings.surrogate == "hash":
        derived.append(Column(SURROGATE, "string", "Key of the row: hash of its values and the number of its occurrence."))
    return [*table.published_columns, *derived, *times, *deleted]


def _soft_delete_columns(table: Table) -> AddedColumns:
    others = "its columns are null, but for the key" if table.settings.soft_delete_nulls else "its columns are as they were last"
    return (
        ("_cdc_is_deleted", "boolean", f"The row was deleted; {others}."),
        ("_cdc_deleted_at", None, "When it was deleted at the source."),
    )


def _partition_as_column(column: PartitionColumn) -> Column:
    """With its type where the expression is one call alone of a function that tells it: `year(d) / 10` is no int."""
    call = re.fullmatch(r"(\w+)\s*\((?:[^()]|\([^()]*\))*\)", column.expression.strip())
    data_type = _TYPES_OF_CALLS.get(call[1].lower(), "") if call else ""
    return Column(column.name, data_type, f"Partition of the row: {column.expression}.")


def added(table: Table, columns: AddedColumns) -> list[Column]:
    """The columns with the types that they have for this table; none where an SQL expression decides."""
    told = _OF_A_MULTISET if table.settings.keyless == "multiset" else {}
    return [Column(name, data_type or _type_of_added(table, name), told.get(name, text)) for name, data_type, text in columns]


def _type_of_added(table: Table, name: str) -> str:
    settings = table.settings
    if name in ("_cdc_key_before", "key_before", "key_after"):
        if not settings.keys:
            return "" if settings.keyless == "multiset" else "string"
        return _struct((column.name, column.data_type) for column in key_columns(table))
    if name == "_cdc_sequence":
        parts = []
        for place, expression in enumerate(settings.sequence_by, start=1):
            data_type = table.type_of(expression)
            if data_type is None:
                return ""
            parts.append((sequence_name(expression, place), data_type))
        return _struct(parts)
    time = settings.occurred_at or (settings.sequence_by[0] if settings.sequence_by else "")
    return table.type_of(time) or ""


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return "struct<" + ", ".join(f"{sql_name(name)}: {data_type}" for name, data_type in fields) + ">"


def key_columns(table: Table) -> list[Column]:
    """The columns of `keys`, in its order."""
    columns = {column.name.lower(): column for column in table.columns}
    return [columns[key.lower()] for key in table.settings.keys]
