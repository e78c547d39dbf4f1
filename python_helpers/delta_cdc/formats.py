"""What is known of each format: its defaults, and the fields that expressions may name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from delta_cdc.errors import did_you_mean
from delta_cdc.settings import Settings


@dataclass(frozen=True)
class Format:
    """What a format brings along. Adding one is adding macros/formats/<name>.sql; an entry here only saves
    typing."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its defaults, where they differ from those of `Settings`."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields beside the table's columns that expressions may name, with their Spark types; they begin with
    `_`."""
    names_tables: bool = True
    """Its messages say which table they are of, so that a feed may mix tables."""
    takes_no: tuple[str, ...] = ("operation", "old_keys")
    """Settings that have no place: its messages tell that themselves."""


ARRIVAL = "struct<batch: bigint, row: bigint>"  # the macro `_arrival`

FORMATS: dict[str, Format] = {
    "rows": Format(names_tables=False, takes_no=()),
    "snapshots": Format(
        settings={"sequence_by": ["_snapshot"], "occurred_at": "_snapshot_time"},
        fields={"_snapshot": "bigint", "_snapshot_time": "timestamp"},
        names_tables=False,
        takes_no=(
            "sequence_by",
            "ordinal",
            "transaction",
            "operation",
            "old_keys",
            "operation_codes",
            "deleted_when",
            "truncated_when",
            "key_changes",
            "split_key_changes",
            "ignore_null_updates",
            "insert_only",
            "keyless",
            "alternate_keys",
        ),
    ),
    "wal2json_v2": Format(
        settings={"sequence_by": ["_lsn"], "transaction": "_xid", "occurred_at": "_timestamp", "key_changes": True},
        fields={"_lsn": "bigint", "_arrival": ARRIVAL, "_xid": "string", "_timestamp": "timestamp"},
    ),
    "debezium": Format(
        settings={
            "sequence_by": ["_position"],
            "ordinal": "_total_order",
            "transaction": "_txid",
            "occurred_at": "_timestamp",
            "key_changes": True,
            "split_key_changes": True,
        },
        fields={
            "_position": "struct<log: string, offset: decimal(38,0), row: bigint>",
            "_arrival": ARRIVAL,
            "_txid": "string",
            "_total_order": "bigint",
            "_timestamp": "timestamp",
        },
    ),
    "canal": Format(
        settings={
            "sequence_by": ["_message_time", "_message_id"],
            "transaction": "_arrival",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={
            "_message_time": "bigint",
            "_message_id": "bigint",
            "_arrival": ARRIVAL,
            "_place": "int",
            "_gtid": "string",
            "_timestamp": "timestamp",
        },
    ),
    "maxwell": Format(
        settings={
            "sequence_by": ["_position"],
            "ordinal": "_xoffset",
            "transaction": "_xid",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={
            "_position": "struct<log: bigint, offset: bigint>",
            "_arrival": ARRIVAL,
            "_xoffset": "bigint",
            "_xid": "string",
            "_gtid": "string",
            "_timestamp": "timestamp",
        },
    ),
    "goldengate": Format(
        settings={
            "sequence_by": ["_pos"],
            "transaction": "_xid",
            "occurred_at": "_timestamp",
            "key_changes": True,
            "split_key_changes": True,
        },
        fields={
            "_pos": "decimal(38,0)",
            "_arrival": ARRIVAL,
            "_csn": "decimal(38,0)",
            "_xid": "string",
            "_timestamp": "timestamp",
        },
    ),
    "dms": Format(
        settings={
            "sequence_by": ["_timestamp"],
            "transaction": "_transaction_id",
            "occurred_at": "_occurred_at",
            "key_changes": True,
        },
        fields={
            "_timestamp": "timestamp",
            "_commit_timestamp": "timestamp",
            "_occurred_at": "timestamp",
            "_stream_position": "string",
            "_transaction_id": "string",
            "_transaction_record_id": "bigint",
        },
    ),
    "wal2json_v1": Format(
        settings={
            "sequence_by": ["_lsn"],
            "ordinal": "_place",
            "transaction": "_xid",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={"_lsn": "bigint", "_arrival": ARRIVAL, "_place": "int", "_xid": "string", "_timestamp": "timestamp"},
    ),
    "aliyun": Format(
        settings={"sequence_by": ["_sequence_id"], "occurred_at": "_timestamp", "key_changes": True},
        fields={"_sequence_id": "decimal(38,0)", "_timestamp": "timestamp"},
    ),
    "sqlserver_ct": Format(
        settings={"sequence_by": ["_start_lsn", "_command_id", "_seqval"], "transaction": "_start_lsn", "key_changes": True},
        fields={"_start_lsn": "string", "_command_id": "int", "_seqval": "string"},
        names_tables=False,
    ),
    "oracle_cdc": Format(
        settings={
            "sequence_by": ["_commit_scn"],
            "ordinal": "_row_sequence",
            "transaction": "_xid",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={"_commit_scn": "decimal(38,0)", "_row_sequence": "bigint", "_xid": "string", "_timestamp": "timestamp"},
        names_tables=False,
    ),
    "powerexchange": Format(
        settings={
            "sequence_by": ["_sequence_token"],
            "transaction": "_unit_of_work",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={"_sequence_token": "string", "_unit_of_work": "string", "_timestamp": "timestamp"},
        names_tables=False,
    ),
    "trigger_audit": Format(
        settings={
            "sequence_by": ["_audit_id"],
            "transaction": "_transaction_id",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={"_audit_id": "bigint", "_transaction_id": "string", "_timestamp": "timestamp"},
    ),
    "delta_cdf": Format(
        settings={
            "file_format": "delta",
            "sequence_by": ["_commit_version"],
            "ordinal": "_order",
            "transaction": "_commit_version",
            "occurred_at": "_commit_timestamp",
            "key_changes": False,
        },
        fields={"_commit_version": "bigint", "_order": "int", "_commit_timestamp": "timestamp"},
        names_tables=False,
    ),
    "change_event": Format(
        settings={"sequence_by": ["_timestamp"], "key_changes": True},
        fields={"_timestamp": "timestamp"},
        names_tables=False,
    ),
}


def format_of(name: str | None) -> Format:
    """What a format brings along; nothing, if it has no entry."""
    return FORMATS.get(name or "", Format())


def which_format(name: object, known: Iterable[str]) -> str:
    """A sentence to follow «`format` is x.», which is no format: the one that is meant, else all there are."""
    kind = str(name).casefold().removesuffix("l").removesuffix(".gz")  # jsonl
    if kind in get_args(Settings.model_fields["file_format"].annotation):
        more = "" if kind == "json" else f" and `file_format: {kind}`"
        return f"It says what a message is, not what the files are. If each row is one flat row of a table: `format: rows`{more}."
    return did_you_mean(name, known)
