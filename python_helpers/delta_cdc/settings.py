"""The settings: what may be said of a feed and its tables.

`Settings` is the only definition of them: the checks, the reference page, the defaults of the macros and the generated
models all come from it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import NotRequired, TypedDict

from delta_cdc.errors import nearest

Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
ExceptColumns = TypedDict("ExceptColumns", {"except": Annotated[list[Text], Field(min_length=1)]})
Options = dict[Text, str | int | bool]
SAYS_NO = ("false", "no", "off", "0", "none", "null")  # no reason why a table is paused


class Kafka(TypedDict):
    """Where a feed's messages are: topics by their names, or all whose name a pattern (Java's) matches."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    bootstrap_servers: Text
    topics: NotRequired[Annotated[list[Text], Field(min_length=1)]]
    topic_pattern: NotRequired[Text]
    schema_registry: NotRequired[Text]
    options: NotRequired[Options]


class Jdbc(TypedDict):
    """Where a feed's change tables are, and the number that orders their rows."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    url: Text
    table: Text
    serial: Text
    overlap: Annotated[int, Field(ge=0)]
    options: NotRequired[Options]


Character = Annotated[str, Field(max_length=1)]


class CsvOptions(TypedDict, total=False):
    """How a CSV file is written; options of Spark's reader, by its names."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    sep: Annotated[str, Field(min_length=1)]  # a blank and a tab are some
    quote: Character
    escape: Character
    header: bool
    nullValue: str
    encoding: Annotated[str, StringConstraints(pattern=r"^(?i:us-ascii|iso-8859-1|utf-(8|16|16be|16le|32))$")]  # Spark's
    comment: Character


Level = Literal["feed", "table", "both"]


def _setting(
    default: Any,
    description: str,
    *,
    wants: str,
    example: str,
    level: Level = "both",
    names_columns: bool = False,
) -> Any:
    """`wants` ends «It takes …» in errors; `example` is yml; `level` says where the setting may stand.

    `names_columns`: its value names columns of the table, in any case.
    """
    return Field(
        default,
        description=description,
        examples=[example],
        json_schema_extra={"wants": wants, "level": level, "names_columns": names_columns},
    )


def _flag(description: str, *, level: Level = "both") -> Any:
    return _setting(False, description, wants="true or false", example="true", level=level)


def _column_list(description: str, *, example: str, level: Level = "both") -> Any:
    return _setting([], description, wants="a list of column names", example=example, level=level, names_columns=True)


class Settings(BaseModel):
    """Everything that can be said under `config: meta: cdc:` of a dbt source or of one of its tables.

    Types are strict: the macros read the same yml, so nothing is converted on the way.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # the feed
    format: Text | None = _setting(
        None,
        "How the change sets are written: the name of a file in macros/formats. Required.",
        wants="the name of a format",
        example="wal2json_v2",
        level="feed",
    )
    location: Text | None = _setting(
        None,
        "Folder of the change sets: a path relative to the project, or a URL. With `{table}` in it each table has a folder of "
        "its own; without it change sets that mix tables are read once, into raw_<feed>. Folders in it are not looked into, "
        "but with `sub_folders` or `unit: folder`. Required.",
        wants="a folder",
        example="landing/shop/{table}",
        level="feed",
    )
    unit: Literal["file", "folder"] = _setting(
        "file",
        "What a change set is: one file, or one folder that is loaded whole.",
        wants="`file` or `folder`",
        example="folder",
        level="feed",
    )
    sub_folders: bool = _flag(
        "Change sets lie in folders in the folder too, at any depth (`2026/11/27/09/0001.jsonl`, `hour=09/…`). All of them are "
        "listed in each run: move away what is old, or begin with `start_from` and a path (`2026/11/27`).",
        level="feed",
    )
    ready: Text = _setting(
        "_SUCCESS",
        "Name of the file that a folder must hold before it is taken (with `unit: folder`). It is none of its data.",
        wants="a file name",
        example="_SUCCESS",
        level="feed",
    )
    change_set_order: Literal["name", "modified"] = _setting(
        "modified",
        "The order of change sets that are found together: by modification time and then name, or by name "
        "alone; with `sub_folders` by the name with its folders (`2026/11/27/0001.jsonl`). `list_after` and `file_format: delta` "
        "always take the name.",
        wants="`modified` or `name`",
        example="name",
        level="feed",
    )
    settle_seconds: Annotated[int, Field(ge=0, le=31536000)] = _setting(
        0,
        "A change set that was modified less than so many seconds ago is still being written, and waits for a later run.",
        wants="a whole number of seconds, 0 or more (31536000 at most, a year)",
        example="60",
        level="feed",
    )
    start_from: Text | None = _setting(
        None,
        "Change sets whose name sorts below it are not looked at. With a `/` in it, those whose path does: a URL, an absolute "
        "path, one that is relative to the project and begins with `location`, or one that is relative to the folder of each "
        'table (`2026/11/27`). Of a Delta table it is the name of a commit, with twenty digits: `"00000000000000000118.json"`.',
        wants="a name or a path, as text (quote it if it looks like a number or a date)",
        example='"2026-01-01.jsonl"',
        level="feed",
    )
    list_after: bool = _flag(
        "The names of the change sets only grow: in a folder only those are looked at whose name sorts above the newest that is "
        "recorded, so that one which keeps a year of them is listed quickly. None is recorded before those below it are ready. "
        "One that comes under a lower name, or is written anew, is not noticed.",
        level="feed",
    )
    expect_contiguous: bool = _flag(
        "The names of the change sets are numbered without gaps: number N waits until N-1 is there, a name without a number for "
        "none. Each run warns of the numbers that are waited for.",
        level="feed",
    )
    file_format: Literal["json", "csv", "parquet", "orc", "avro", "delta"] = _setting(
        "json",
        "The kind of the files: lines of JSON, or files of which each row is one message, a JSON object of its columns "
        "(docs/formats/files.md). JSON and CSV may be compressed (.gz). With `delta`, `location` is a Delta table with a change "
        "data feed, and each of its commits is a change set (docs/formats/delta_cdf.md).",
        wants="`json`, `csv`, `parquet`, `orc`, `avro` or `delta`",
        example="parquet",
        level="feed",
    )
    csv_options: CsvOptions = _setting(
        {},
        "How CSV files are written, where not with a header, commas and doubled quotes (with `file_format: csv`). "
        "With `header: false` the columns are those of the table, in the order in which it lists them.",
        wants="a mapping of `sep`, `nullValue` to text, `encoding` to utf-8, iso-8859-1, us-ascii, utf-16 or utf-32, `quote`, "
        "`escape`, `comment` to one character, `header` to true or false",
        example='{sep: ";", header: false}',
        level="feed",
    )
    message_column: Text | None = _setting(
        None,
        "The column that holds the message, where a row has more than it (with `file_format` parquet, orc or delta). By default "
        "the row is the message; of what `kafka` landed it is `value`.",
        wants="a column name",
        example="payload",
        level="feed",
    )
    row_order: list[Text] = _setting(
        [],
        "The columns that order the rows of a commit, which has no order of its own (with `file_format: delta`; of what was "
        "landed by default topic, partition and offset, or the serial). It counts only where `sequence_by` leaves two changes "
        "of a row equal.",
        wants="a list of column names",
        example="[topic, partition, offset]",
        level="feed",
    )
    kafka: Kafka | None = _setting(
        None,
        "Topics that `delta-cdc land` lands in the Delta table at `location` (docs/landing.md). `schema_registry` is the URL of "
        "the registry that has the Avro schemas of the messages. `options` are those of Spark's source, `kafka.*` those of "
        "Kafka's client; `${NAME}` is a variable of the environment. With `{table}` in `location` it stands in `topics` too.",
        wants="a mapping of `bootstrap_servers`, `topics` (a list) or `topic_pattern`, and, where needed, `schema_registry` and "
        "`options`",
        example='{bootstrap_servers: "kafka:9092", topics: [shop.invoice, shop.customer]}',
        level="feed",
    )
    jdbc: Jdbc | None = _setting(
        None,
        "A database's change table that `delta-cdc land` lands in the Delta table at `location` (docs/landing.md). `serial` is a "
        "number that grows, `overlap` how far below the highest landed one it is looked for rows that came late. `options` are "
        "those of Spark's JDBC source; `${NAME}` is a variable of the environment. With `{table}` in `location` it stands in "
        "`table` too.",
        wants="a mapping of `url`, `table`, `serial`, `overlap` (a whole number, 0 or more) and, where needed, `options`",
        example='{url: "jdbc:postgresql://db/shop", table: audit.record_version, serial: id, overlap: 10000, '
        'options: {user: reader, password: "${SHOP_PASSWORD}"}}',
        level="feed",
    )
    change_table: Text | None = _setting(
        None,
        "The change table of this table, where its name is not that of `jdbc.table` with `{table}` filled in.",
        wants="a name",
        example="cdc.ct_invoice_lines",
        level="table",
    )
    decimal_handling: Literal["precise", "string", "double"] = _setting(
        "precise",
        "How a Debezium feed writes decimals: its own setting decimal.handling.mode. Numbers in the JSON are read as such.",
        wants="`precise`, `string` or `double`",
        example="string",
    )
    time_unit: Literal["seconds", "millis", "micros", "nanos"] = _setting(
        "micros",
        "What a Debezium feed without schemas counts timestamps in.",
        wants="`seconds`, `millis`, `micros` or `nanos`",
        example="millis",
    )
    unavailable_value: Text = _setting(
        "__debezium_unavailable_value",
        "What a Debezium feed writes for a value that it does not have because it did not change: its own setting "
        "unavailable.value.placeholder.",
        wants="a text",
        example="__unchanged",
    )

    # what a row is
    source_table: Text | None = _setting(
        None,
        "The table's name in the messages or folders, where it differs from the name in this file. May be `schema.table`.",
        wants="a name",
        example="public.invoice",
        level="table",
    )
    keys: list[Text] = _column_list(
        "The columns that identify a row. Required, unless the table is `insert_only` or `keyless`.",
        example="[invoice_id]",
        level="table",
    )
    nullable_keys: list[Text] = _setting(
        [],
        "Key columns in which null is a value. A null in any other key column makes a change unusable.",
        wants="a list of key columns",
        example="[region]",
        level="table",
        names_columns=True,
    )
    alternate_keys: list[Annotated[list[Text], Field(min_length=1)]] = _setting(
        [],
        "Other column lists that identify a row. An event that tells no key acts on the row that has its values of one of "
        "these as of its position; none or several: it is quarantined as `ambiguous_key`.",
        wants="a list of lists of column names",
        example="[[email], [country, tax_number]]",
        level="table",
        names_columns=True,
    )
    old_keys: dict[Text, Text] = _setting(
        {},
        "For a feed of flat rows: which column holds the value that a key column had before the change.",
        wants="a mapping from key column to column",
        example="{invoice_id: old_invoice_id}",
        level="table",
        names_columns=True,
    )

    renamed_columns: dict[Text, Text] = _setting(
        {},
        "Columns that were renamed at the source, new name to old: both are one column, under the new name.",
        wants="a mapping from new to old name",
        example="{points: loyalty}",
        level="table",
        names_columns=True,
    )

    # order
    sequence_by: list[Text] = _setting(
        [],
        "The columns or SQL expressions that give the source's order, compared left to right. Required for `rows`. A change in"
        " which one of them is null is quarantined (`null_sequence`); in one `struct(a, b)` a null part comes first.",
        wants="a list of columns or SQL expressions",
        example="[commit_time, log_position]",
    )
    ordinal: Text | None = _setting(
        None,
        "Column or SQL expression of the place inside a transaction, a whole number, where the sequence stays equal "
        "throughout one. Other values are quarantined (`cast:<ordinal>`).",
        wants="a column or an SQL expression",
        example="event_number",
    )
    transaction: Text | None = _setting(
        None,
        "Column or SQL expression that tells transactions apart. Without it, and where it is null or an empty text, changes of "
        "equal sequence are one transaction.",
        wants="a column or an SQL expression",
        example="xid",
    )
    occurred_at: Text | None = _setting(
        None,
        "Column or SQL expression of when the change happened at the source; history's valid_from and valid_to. By default the "
        "first of `sequence_by`. An update and a delete have to tell it too: a load warns of those that do not.",
        wants="a column or an SQL expression",
        example="commit_time",
    )

    # what a change does
    operation: Text | None = _setting(
        None,
        "For a feed of flat rows: the column that says what a change does. Without it every row is an upsert.",
        wants="a column name",
        example="op",
        names_columns=True,
    )
    operation_codes: dict[Text, Literal["I", "U", "D", "R", "T", "before"]] = _setting(
        {},
        "Codes of this feed beyond those of its format, each with what it means: "
        "I insert, U update, D delete, R snapshot row, T truncate; of flat rows also before, the row before the update that "
        "follows.",
        wants="a mapping from code (quoted if it is a number) to one of I, U, D, R, T, before",
        example="{upsert: U, remove: D}",
    )
    deleted_when: Text | None = _setting(
        None,
        "SQL condition on the feed's columns: the change is a delete.",
        wants="an SQL condition",
        example="is_deleted = true",
    )
    truncated_when: Text | None = _setting(
        None,
        "SQL condition on the feed's columns: the change empties the whole table.",
        wants="an SQL condition",
        example="op = 'truncate'",
    )
    key_changes: bool | None = _setting(
        None,
        "Keys may change. By default true if the format tells the old key (not one of the project's own), or `old_keys`, "
        "`split_key_changes` or a code for `before` is given. Where it is false, an insert, update or read that tells another "
        "old key is quarantined as `not_allowed`.",
        wants="true or false",
        example="false",
    )
    split_key_changes: bool = _flag(
        "A delete and an insert of one transaction and sequence, whatever their ordinals, are one key change."
    )
    ignore_null_updates: bool | list[Text] = _setting(
        False,
        "A null in an update means that the column, or field of a struct, did not change: for all columns, or for those listed.",
        wants="true, false or a list of column names",
        example="[phone, email]",
        names_columns=True,
    )
    full_images: bool = _flag(
        "The image before a change holds the whole row (REPLICA IDENTITY FULL): a column that an update leaves out has "
        "its value there, and a null of one of `nullable_keys` is the key that it had. Otherwise only the keys of that image are "
        "used, and a null among them says nothing."
    )
    insert_only: bool = _flag(
        "Rows are only ever added: final appends, there is no history, and updates and deletes are quarantined."
    )
    keyless: Literal["none", "append", "multiset"] = _setting(
        "none",
        "What to do with a table without a key: `append` takes its inserts and quarantines the rest; with "
        "`multiset` rows are their values, and a delete removes one equal row.",
        wants="`none`, `append` or `multiset`",
        example="multiset",
        level="table",
    )
    surrogate: Literal["none", "hash"] = _setting(
        "none",
        "`hash` gives each row of a table without a key one, `_cdc_key`: the hash of its values and the number of its "
        "occurrence. With it a multiset's final is merged into, without it made anew when something was removed.",
        wants="`none` or `hash`",
        example="hash",
        level="table",
    )

    # what is held back
    max_errors: Annotated[int, Field(ge=0)] | Annotated[float, Field(gt=0, lt=1)] | None = _setting(
        None,
        "The unusable rows that a change set may have: their share of its rows, or how many. One with more is "
        "staged and held until `delta-cdc accept`.",
        wants="a share between 0 and 1, or a whole number of rows",
        example="0.01",
    )
    max_delete_share: Annotated[float, Field(ge=0, lt=1)] | None = _setting(
        None,
        "The share of final's live rows that a change set may delete. One that would delete more is staged and "
        "held until `delta-cdc accept`.",
        wants="a share from 0 to below 1",
        example="0.2",
    )

    compact_after_days: Annotated[int, Field(ge=1, le=36500)] | None = _setting(
        None,
        "`delta-cdc maintain` folds what staging holds of a row from longer ago, by `occurred_at`, into one change, as "
        "`delta-cdc compact` does. History then begins there, and what comes from before is quarantined as `too_late`.",
        wants="a whole number of days, 1 or more (36500 at most)",
        example="400",
    )
    keep_versions_days: Annotated[int, Field(ge=1, le=36500)] | None = _setting(
        None,
        "How long old versions of the tables made for this one can be read: `delta-cdc maintain` sets their "
        "`delta.deletedFileRetentionDuration`, by which `VACUUM` goes, and keeps their log as long, at least Delta's 30 days. "
        "Without the setting the tables keep what they have; Delta's own is 7 days.",
        wants="a whole number of days, 1 or more (36500 at most)",
        example="14",
    )
    paused: Text | None = _setting(
        None,
        "Why nothing is loaded for now. Staging, history and final stay as they are, all that arrives waits in the "
        "feed, and each run and `delta-cdc status` say so. Without the setting the next run loads what has waited. "
        "`delta-cdc pause` and `resume` write it and take it out for a table.",
        wants="a reason, as text",
        example="the source is being migrated",
    )

    # what is published
    columns: Annotated[list[Text], Field(min_length=1)] | None = _setting(
        None,
        "The only columns that history and final have, beside those that `expressions` make, which may be named too. "
        "Staging always has all.",
        wants="a list of column names",
        example="[invoice_id, total]",
        names_columns=True,
    )
    except_columns: list[Text] = _column_list(
        "Columns that history and final do not have. By default (an empty list, too) `operation` and the columns of `old_keys`.",
        example="[op, loaded_at]",
    )
    track_columns: list[Text] | ExceptColumns | None = _setting(
        None,
        "The columns whose change begins a new version in history. By default all; of an empty list only the key's.",
        wants="a list of column names, or {except: [column names]}",
        example="{except: [last_seen]}",
        names_columns=True,
    )
    history: Literal["view", "table"] = _setting(
        "view",
        "History is worked out from staging whenever it is read, or kept as a table that each run brings up to date.",
        wants="`view` or `table`",
        example="table",
    )
    delete_mode: Literal["hard", "soft"] = _setting(
        "hard",
        "What a delete or truncate does to final's row: `hard` removes it; `soft` keeps it with its last values, with "
        "`_cdc_is_deleted` and `_cdc_deleted_at`. Final is built anew where this changes.",
        wants="`hard` or `soft`",
        example="soft",
    )
    soft_delete_nulls: bool = _flag(
        "A softly deleted row keeps only its key; its other columns become null (with `delete_mode: soft`)."
    )
    created_at: Text | None = _setting(
        None,
        "Name of a column that final gains: when the row's life began at the source (`occurred_at` of its "
        "first change; null if it is older than the feed).",
        wants="a name of letters, digits and underscores",
        example="row_created_at",
    )
    updated_at: Text | None = _setting(
        None,
        "Name of a column that final gains: when the row was last written at the source.",
        wants="a name of letters, digits and underscores",
        example="row_updated_at",
    )
    set_on_insert: list[Text] = _column_list(
        "Columns that keep, in history and final, what the insert that began the row's life gave them.",
        example="[signup_channel]",
    )
    expressions: dict[Text, Text] = _setting(
        {},
        "Columns that history and final compute from staging's: new ones, or another value for one that "
        "there is. Staging keeps what came. A changed expression wants `delta-cdc rebuild`.",
        wants="a mapping from column to SQL expression",
        example='{birth_year: "year(birth_date)"}',
        level="table",
        names_columns=True,
    )
    mask: dict[Text, Text] = _setting(
        {},
        "Columns that are stored only as an SQL expression makes them, in staging too; it names the "
        "column, and its result has the column's type. The clear value is nowhere in the tables.",
        wants="a mapping from column to SQL expression",
        example='{email: "sha2(email, 256)"}',
        level="table",
        names_columns=True,
    )
    never_store: list[Text] = _column_list(
        "Columns of the feed, listed or not, that are stored nowhere, the raw text of bad rows included.",
        example="[card_number]",
    )
    on_schema_change: Literal["append_new_columns", "ignore", "sync_all_columns", "fail"] = _setting(
        "append_new_columns",
        "What final does when the columns change: it gains new ones and keeps those that are no longer listed, stays as it is, "
        "gains and drops, or stops. Staging always gains. Types are widened in any case but the last.",
        wants="`append_new_columns`, `ignore`, `sync_all_columns` or `fail`",
        example="sync_all_columns",
    )
    final_name: Text | None = _setting(
        None,
        "Name of the final table. By default final_<table>.",
        wants="a name of letters, digits and underscores",
        example="final_shop_invoice",
        level="table",
    )
    partition_by: list[Text] = _setting(
        [],
        "What final is partitioned by: columns, or SQL expressions, named with `as` or else after themselves.",
        wants="a list of columns or SQL expressions",
        example="[year(invoice_date) as invoice_year]",
    )
    cluster_by: list[Text] = _column_list(
        "The columns by which final is clustered (Delta's liquid clustering); not beside `partition_by` or `zorder_by`.",
        example="[customer_id]",
    )
    zorder_by: list[Text] = _column_list(
        "The columns by which `delta-cdc maintain` orders the rows of final when it merges its files (Delta's Z-order), so that "
        "readers that ask for few of their values leave files out.",
        example="[customer_id, invoice_date]",
    )
    apply: Literal["merge", "replace_partitions"] = _setting(
        "merge",
        "How final takes changes: a merge by key, or by rewriting the partitions of `partition_by` that the change set touches.",
        wants="`merge` or `replace_partitions`",
        example="replace_partitions",
    )
    deletion_vectors: bool | Literal["auto"] = _setting(
        "auto",
        "Final marks replaced rows instead of rewriting their files: cheaper merges into large tables, dearer "
        "ones into small tables, for readers that know them. `auto`: once a commit wrote over 200,000 rows.",
        wants="`auto`, true or false",
        example="false",
    )
    tags: list[Text] = _setting(
        [],
        "dbt tags of the tables' models, beside the feed's name. Select them with a + before (`+tag:hourly`): that takes along "
        "the ledger `cdc_change_sets` and raw_<feed>, without which nothing new is found.",
        wants="a list of tags",
        example="[hourly]",
    )
    test_buckets: Annotated[int, Field(ge=1, le=36500)] | None = _setting(
        None,
        "How many days the tests tagged `nightly` take for all rows: they look at one bucket of the keys, another one each day. "
        "By default one bucket for each 256 MB of staging, at most 30. Tables without `keys` are looked at whole.",
        wants="a whole number of buckets, 1 or more (36500 at most)",
        example="7",
    )


def settings_naming_columns() -> list[str]:
    """The settings whose values name columns of the table, in their declared order."""
    return [name for name in Settings.model_fields if about_setting(name)["names_columns"]]


def setting_defaults() -> dict[str, Any]:
    """Every setting with its default."""
    return Settings().model_dump()


def setting_level(name: str) -> str:
    """Where a setting may stand: `feed`, `table` or `both`."""
    return str(about_setting(name)["level"])


# names that dbt and other tools have for what a setting says
_CALLED_ELSEWHERE = {
    "alias": "final_name", "primary_key": "keys", "primary_keys": "keys", "unique_key": "keys", "pk": "keys",
    "key_columns": "keys", "order_by": "sequence_by", "order_column": "sequence_by", "version_column": "sequence_by",
    "op_column": "operation", "operation_column": "operation", "apply_as_deletes": "deleted_when",
    "delete_condition": "deleted_when", "append_only": "insert_only", "partitions": "partition_by", "sort_by": "zorder_by",
    "table_name": "source_table", "identifier": "source_table", "path": "location", "folder": "location",
    "retention": "keep_versions_days", "retention_days": "keep_versions_days", "compact": "compact_after_days",
    "apply_as_truncates": "truncated_when", "track_history_column_list": "track_columns",
    "track_history_except_column_list": "track_columns", "ignore_null_updates_except_column_list": "ignore_null_updates",
    "merge_key": "keys", "record_key": "keys", "message.key.columns": "keys", "cursor_path": "sequence_by",
    "precombine_field": "sequence_by", "dedup_sort": "sequence_by", "hard_delete": "deleted_when", "hard_deletes": "delete_mode",
    "invalidate_hard_deletes": "delete_mode", "merge_exclude_columns": "set_on_insert",
}  # fmt: skip
_SAID_BY_MODELS = "Take it out: the models say it, which `delta-cdc generate` writes."
# and what no setting says
_NOT_SAID = {
    "stored_as_scd_type": "Take it out: each table has a history (SCD2) and a final (SCD1).",
    "enabled": "It is dbt's: put it under `config`, beside `meta`.",
    "full_refresh": "Take it out: `delta-cdc rebuild` makes final anew.",
    "incremental_strategy": _SAID_BY_MODELS,
    "materialized": _SAID_BY_MODELS,
}


def setting_meant(name: str) -> str | None:
    """The setting that is most likely meant by a name that is none."""
    if name.casefold() in _NOT_SAID:
        return None
    return _CALLED_ELSEWHERE.get(name.casefold()) or nearest(name, Settings.model_fields)


def which_setting(name: str) -> str:
    """A sentence to follow «x is no setting.»"""
    if close := setting_meant(name):
        return f"Did you mean `{close}`?"
    return _NOT_SAID.get(name.casefold(), "See docs/configuration.md, or `delta-cdc settings`.")


def about_setting(name: str) -> dict[str, Any]:
    """What `_setting` was told: wants, level, names_columns."""
    extra = Settings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return extra


def wants(name: str) -> str:
    """What a setting takes, with an example: «a list of column names, e.g. [invoice_id]»."""
    text = str(about_setting(name)["wants"])
    return text if example(name) in re.split(r"[\s`]+", text) else f"{text}, e.g. {example(name)}"


def example(name: str) -> str:
    examples = Settings.model_fields[name].examples or []
    return str(examples[0])
