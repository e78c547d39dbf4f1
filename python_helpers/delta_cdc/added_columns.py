"""The columns that each layer has beside those of the feed: name, type (None: depends on the feed), description."""

from __future__ import annotations

AddedColumns = tuple[tuple[str, str | None, str], ...]

_BATCH_ID = ("_cdc_batch_id", "bigint", "Batch of the change set, as in the ledger.")
_CHANGE_SET = ("_cdc_change_set", "string", "The change set that delivered the change.")
_ROW = ("_cdc_row", "bigint", "Place of the change in its change set.")
_SEQUENCE = ("_cdc_sequence", None, "The source's order, compared left to right; null for a snapshot row without one.")
_ORDINAL = ("_cdc_ordinal", "bigint", "Place of the change inside its transaction or message, where the feed has one.")

RAW_COLUMNS: AddedColumns = (
    ("batch_id", "bigint", "Batch of the change set, as in the ledger."),
    ("change_set", "string", "The change set that delivered the message."),
    ("row_number", "bigint", "Place of the message in its change set."),
    ("message", "string", "The message as it came."),
    ("source_table", "string", "The table that the message is of; null if it does not tell."),
)
STAGING_COLUMNS: AddedColumns = (
    ("_cdc_op", "string", "What the change does: I insert, U update, D delete, R snapshot row, T truncate."),
    ("_cdc_key_before", None, "The key before the change, where the change moved it; else null."),
    _SEQUENCE,
    _ORDINAL,
    ("_cdc_transaction", "string", "The transaction that the change was part of, where the feed tells it."),
    ("_cdc_occurred_at", None, "When the change happened at the source."),
    ("_cdc_missing", "array<string>", "Columns that the change did not carry; they keep their value."),
    (
        "_cdc_undeclared",
        "map<string,string>",
        "Columns that the feed has and the configuration does not, with their text; null if there are none.",
    ),
    ("_cdc_error", "string", "Why the row cannot be used; null if it can."),
    ("_cdc_raw", "string", "The row as it came, where it cannot be used."),
    _BATCH_ID,
    _CHANGE_SET,
    _ROW,
    ("_cdc_staged_at", "timestamp", "When the change was staged."),
)
KEYS_COLUMNS: AddedColumns = (
    _BATCH_ID,
    _CHANGE_SET,
    _ROW,
    ("_cdc_op", "string", "What the change does: I insert, U update, D delete, R snapshot row."),
    _SEQUENCE,
    _ORDINAL,
    ("entity", "string", "Identity of the row across key changes; null if the change met no row."),
    ("key_before", None, "The key whose row the change takes away."),
    ("key_after", None, "The key that the row has after the change; null for a delete."),
    ("origin", "string", "How the change found its row, e.g. insert, update, key_change, unknown_key, delete."),
    ("displaced_entity", "string", "The row that a key change displaced at the end of its transaction."),
    (
        "acts_on",
        "struct<_cdc_batch_id: bigint, _cdc_change_set: string, _cdc_row: bigint>",
        "The change that placed the row where this change met it; null if there is none.",
    ),
    ("resolved_batch_id", "bigint", "Batch whose load decided the row as it is."),
)
SOFT_DELETE_COLUMNS: AddedColumns = (
    ("_cdc_is_deleted", "boolean", "The row was deleted; its columns are as they were last."),
    ("_cdc_deleted_at", None, "When it was deleted at the source."),
)
HISTORY_COLUMNS: AddedColumns = (
    ("_cdc_entity", "string", "Identity of the row across key changes."),
    ("valid_from", None, "Source time from which the version holds, inclusive; null: since before the feed."),
    ("valid_to", None, "Source time until which the version holds, exclusive; null: it still does."),
    ("is_current", "boolean", "The version still holds."),
    ("_cdc_sequence", None, "Position of the change that the version's values come from."),
)
