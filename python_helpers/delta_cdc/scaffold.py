"""The model files and their yml, written from the configuration.

dbt cannot make models out of Jinja, so each table's few-line files are generated: `plan` says what there
should be, `compare` what there is, `write` makes it so. Each file carries a hash of its own text in its first
line: a file that a person edited is kept and named, never overwritten in silence.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from delta_cdc.config import (
    FORMATS,
    IDENTIFIER,
    Column,
    Feed,
    PartitionColumn,
    Project,
    Settings,
    Table,
    sequence_name,
    setting_defaults,
    settings_naming_columns,
)
from delta_cdc.errors import OperationError
from delta_cdc.spark_types import has_statistics

PACKAGE = "delta_cdc"
DEFAULTS_FILE = "macros/config/_defaults.sql"
OPERATION_CODES_FILE = "seeds/cdc_operation_codes.csv"

# The columns that are added to a table, per layer: name, type (None: depends on the feed), description.
AddedColumns = tuple[tuple[str, str | None, str], ...]

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
    (
        "_cdc_sequence",
        None,
        "The source's order, compared left to right; null for a snapshot row without one.",
    ),
    (
        "_cdc_ordinal",
        "bigint",
        "Place of the change inside its transaction or message, where the feed has one.",
    ),
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
    ("_cdc_batch_id", "bigint", "Batch of the change set, as in the ledger."),
    ("_cdc_change_set", "string", "The change set that delivered the change."),
    ("_cdc_row", "bigint", "Place of the change in its change set."),
    ("_cdc_staged_at", "timestamp", "When the change was staged."),
)
KEYS_COLUMNS: AddedColumns = (
    ("_cdc_batch_id", "bigint", "Batch of the change set, as in the ledger."),
    ("_cdc_change_set", "string", "The change set that delivered the change."),
    ("_cdc_row", "bigint", "Place of the change in its change set."),
    ("_cdc_op", "string", "What the change does: I insert, U update, D delete, R snapshot row."),
    (
        "_cdc_sequence",
        None,
        "The source's order, compared left to right; null for a snapshot row without one.",
    ),
    (
        "_cdc_ordinal",
        "bigint",
        "Place of the change inside its transaction or message, where the feed has one.",
    ),
    ("entity", "string", "Identity of the row across key changes; null if the change met no row."),
    ("key_before", None, "The key whose row the change takes away."),
    ("key_after", None, "The key that the row has after the change; null for a delete."),
    (
        "origin",
        "string",
        "How the change found its row, e.g. insert, update, key_change, unknown_key, delete.",
    ),
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


# --------------------------------------------------------------------------------
# What there should be


@dataclass(frozen=True)
class GeneratedFile:
    """A file as it should be. `path` is relative to the project."""

    path: str
    body: str

    @property
    def text(self) -> str:
        return header(self.path, self.body) + "\n" + self.body


def header(path: str, body: str) -> str:
    digest = hashlib.sha256(body.encode()).hexdigest()[:12]
    line = f"generated by delta-cdc generate, {digest}; an edited file is kept as it is"
    if path.endswith(".sql"):
        # a Jinja comment: it must not be part of the compiled SQL
        return "{# " + line + " #}"
    return f"# {line}"


_HEADER = re.compile(r"generated by delta-cdc generate, (?P<digest>[0-9a-f]{12})")


def plan(project: Project) -> list[GeneratedFile]:
    """Every file that the project's feeds need, sorted by path."""
    files: list[GeneratedFile] = []
    for feed in project.feeds:
        files += feed_files(feed, project.model_path)
    if project.name == PACKAGE:
        files.append(defaults_file(project.root))
    return sorted(files, key=lambda file: file.path)


def feed_files(feed: Feed, model_path: str = "models") -> Iterator[GeneratedFile]:
    folder = f"{model_path}/{feed.name}"
    if feed.raw_name:
        yield GeneratedFile(f"{folder}/staging/{feed.raw_name}.sql", raw_model(feed))
    for table in feed.tables:
        yield GeneratedFile(f"{folder}/staging/{table.staging_name}.sql", staging_model(table))
        if table.keys_name:
            yield GeneratedFile(f"{folder}/keys/{table.keys_name}.py", keys_model(table))
        if table.history_name:
            yield GeneratedFile(f"{folder}/history/{table.history_name}.sql", history_model(table))
        yield GeneratedFile(f"{folder}/final/{table.final_name}.sql", final_model(table))
    yield GeneratedFile(f"{folder}/_models.yml", models_yml(feed))


def raw_model(feed: Feed) -> str:
    tags = [feed.name]
    return (
        f"-- {feed.raw_name}: every message of feed {feed.name} once, with the table it is of\n"
        "{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, "
        f"tags={jinja(tags)}) }}}}\n"
        f"{{{{ delta_cdc.raw('{feed.name}', ref('cdc_change_sets')) }}}}\n"
    )


def staging_model(table: Table) -> str:
    config = {
        "materialized": "incremental",
        "incremental_strategy": "append",
        "on_schema_change": "append_new_columns",
        "full_refresh": False,
        **_properties(table.columns, statistics=_looked_up_in_staging(table)),
        "tags": tags_of(table),
    }
    changes_from = f"raw_{table.feed}" if table.mixed and not table.is_private else "cdc_change_sets"
    return (
        f"-- {table.staging_name}: every change of {table.feed}.{table.name}, once, in order\n"
        f"{config_call(config)}\n"
        f"{{{{ delta_cdc.staging({_source(table)}, ref('{changes_from}')) }}}}\n"
    )


def keys_model(table: Table) -> str:
    config = {
        "materialized": "incremental",
        "incremental_strategy": "merge",
        "unique_key": ["_cdc_batch_id", "_cdc_change_set", "_cdc_row"],
        "merge_only_changed": True,
        "full_refresh": False,
        **_properties(_key_columns(table)),
        "tags": tags_of(table),
    }
    arguments = "".join(f"        {name}={python(value)},\n" for name, value in config.items())
    return (
        f"# {table.keys_name}: who is who in {table.feed}.{table.name} across key changes\n"
        "from delta_cdc.keys import key_changes\n"
        "\n"
        "\n"
        "def model(dbt, session):\n"
        f"    dbt.config(\n{arguments}    )\n"
        "    return key_changes(\n"
        "        dbt,\n"
        "        session,\n"
        f'        staging=dbt.ref("{table.staging_name}"),\n'
        '        control=dbt.ref("cdc_change_sets"),\n'
        f"        keys={python(list(table.settings.keys))},\n"
        f"        pair_split_key_changes={python(table.settings.split_key_changes)},\n"
        + ("        may_be_held=True,\n" if table.may_be_held else "")
        + "    )\n"
    )


def history_model(table: Table) -> str:
    config: dict[str, Any] = {"materialized": "view", "keep_unchanged": True}
    if table.settings.history == "table":
        config = {
            "materialized": "incremental",
            **_merge_config(["_cdc_entity", "valid_from"]),
            "full_refresh": False,
            **_properties(table.published_columns, deletion_vectors=table.settings.deletion_vectors),
        }
    config["tags"] = tags_of(table)
    return (
        f"-- {table.history_name}: the versions of each row of {table.feed}.{table.name} (SCD2)\n"
        f"{config_call(config)}\n"
        f"{{{{ delta_cdc.history({_source(table)}, ref('{table.staging_name}'){_keys_argument(table)}) }}}}\n"
    )


def final_model(table: Table) -> str:
    return (
        f"-- {table.final_name}: {_final_is(table)} (SCD1)\n"
        f"{config_call(final_config(table))}\n"
        f"{{{{ delta_cdc.final({_source(table)}, ref('{table.staging_name}'){_keys_argument(table)}) }}}}\n"
    )


SURROGATE = "_cdc_key"


def final_config(table: Table) -> dict[str, Any]:
    settings = table.settings
    config: dict[str, Any] = {"materialized": "incremental", "on_schema_change": settings.on_schema_change}
    if table.settings.surrogate == "hash" and not table.appends_only:
        config |= _merge_config([SURROGATE])
    elif not table.has_entities:
        config["incremental_strategy"] = "append"
    elif settings.apply == "replace_partitions":
        config["incremental_strategy"] = "replace_where"
        config["unique_key"] = list(settings.keys)
    else:
        config |= _merge_config(list(settings.keys))
    if settings.partition_by:
        # dbt-spark writes these as they are
        config["partition_by"] = [_sql_name(column.name) for column in table.partition_columns]
    if settings.cluster_by:
        config["liquid_clustered_by"] = [_sql_name(name) for name in settings.cluster_by]
    config |= _properties(final_columns(table), deletion_vectors=settings.deletion_vectors)
    config["tags"] = tags_of(table)
    return config


def _merge_config(unique_key: list[str]) -> dict[str, Any]:
    """A merge of rows that are to be written or (`_cdc_is_gone`) removed."""
    return {
        "incremental_strategy": "merge",
        "unique_key": unique_key,
        "merge_only_changed": True,
        "matched_delete_condition": "DBT_INTERNAL_SOURCE._cdc_is_gone",
        "not_matched_condition": "not DBT_INTERNAL_SOURCE._cdc_is_gone",
        "merge_source_only_columns": ["_cdc_is_gone"],
    }


def final_columns(table: Table) -> list[Column]:
    """The columns of a final table: the published ones, those that only partition it, and the added ones."""
    derived = [_partition_as_column(c) for c in table.partition_columns if c.derived]
    times = _added(table, tuple((name, None, text) for name, text in table.time_columns))
    deleted = _added(table, SOFT_DELETE_COLUMNS) if table.deletes_softly else []
    if table.settings.surrogate == "hash":
        derived.append(Column(SURROGATE, "string", "Key of the row: hash of its values and the number of its occurrence."))
    return [*table.published_columns, *derived, *times, *deleted]


def _partition_as_column(column: PartitionColumn) -> Column:
    kind = re.match(
        r"(year|month|day|quarter|hour|weekofyear|dayofmonth)\s*\(", column.expression, re.IGNORECASE
    )
    data_type = (
        "int" if kind else "date" if re.match(r"(to_)?date\s*\(", column.expression, re.IGNORECASE) else ""
    )
    return Column(column.name, data_type, f"Partition of the row: {column.expression}.")


def tags_of(table: Table) -> list[str]:
    return list(dict.fromkeys([table.feed, *table.settings.tags]))


def _final_is(table: Table) -> str:
    rows = "the rows" if table.appends_only else "the live rows"
    rows += ", and those that were deleted," if table.deletes_softly else ""
    return f"{rows} of {table.feed}.{table.name}"


def _source(table: Table) -> str:
    return f"source('{table.feed}', '{table.name}')"


def _keys_argument(table: Table) -> str:
    return f", keys=ref('{table.keys_name}')" if table.keys_name else ""


def _key_columns(table: Table) -> list[Column]:
    columns = {column.name.casefold(): column for column in table.columns}
    return [columns[key.casefold()] for key in table.settings.keys]


def _looked_up_in_staging(table: Table) -> list[str]:
    """The columns by which files of staging are left out, as SQL names them.

    Without a list Delta keeps statistics of the first 32 columns (a struct counts as its fields). Staging's own come last, so a
    wide table had none of them; and of a narrow one those that nobody asks for are two fifths of what a small INSERT costs.
    """

    def has(name: str) -> bool:
        data_type = table.type_of(name)
        return data_type is not None and has_statistics(data_type)

    first = next(iter(table.settings.sequence_by), "")
    keys = [_sql_name(column.name) for column in _key_columns(table) if has_statistics(column.data_type)]
    # where copies of late changes may be
    position = [f"_cdc_sequence.{_sql_name(sequence_name(first, 1))}"] if has(first) else []
    moment = ["_cdc_occurred_at"] if has(table.settings.occurred_at or first) else []
    return [*keys, "_cdc_batch_id", "_cdc_error", *position, *moment]


def _properties(
    columns: Iterable[Column], *, deletion_vectors: bool | str = "auto", statistics: Sequence[str] = ()
) -> dict[str, Any]:
    """Delta table properties. Delta takes names with these characters, of fields too, only under column mapping."""
    properties = {}
    if statistics:
        properties["delta.dataSkippingStatsColumns"] = ",".join(statistics)
    if deletion_vectors != "auto":
        properties["delta.enableDeletionVectors"] = str(deletion_vectors).lower()
    names = (name for column in columns for name in (column.name, *re.findall(r"`((?:[^`]|``)*)`", column.data_type)))
    if any(re.search(r"[ ,;{}()\n\t=]", name) for name in names):
        properties["delta.columnMapping.mode"] = "name"
        # lifts the table to reader version 3: under 2 Polars does not look for column mapping, and shows nulls
        properties["delta.feature.timestampNtz"] = "supported"
    return {"tblproperties": properties} if properties else {}


# Writing values in three languages


def config_call(config: dict[str, Any]) -> str:
    """`{{ config(…) }}`, on one line where it is short."""
    arguments = [f"{name}={jinja(value)}" for name, value in config.items()]
    line = "{{ config(" + ", ".join(arguments) + ") }}"
    if len(line) <= 130:
        return line
    return "{{ config(\n" + ",\n".join(f"    {argument}" for argument in arguments) + "\n) }}"


def jinja(value: Any) -> str:
    """A value as a Jinja literal.

    >>> jinja({"it's": [True, None, 1]})
    "{'it\\\\'s': [true, none, 1]}"
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + _escaped(value, "'") + "'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{jinja(k)}: {jinja(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(jinja(item) for item in value) + "]"


def python(value: Any) -> str:
    """A value as Python, with double quotes."""
    if isinstance(value, str):
        return '"' + _escaped(value, '"') + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python(k)}: {python(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(python(item) for item in value) + "]"
    return repr(value)


def _escaped(text: str, quote: str) -> str:
    text = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _sql_name(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


# yml


def models_yml(feed: Feed) -> str:
    """Descriptions, types and tests of all models of a feed, and an exposure that names its final tables."""
    models = []
    if feed.raw_name:
        what = f"Every message of feed {feed.name}, once, with the table it is of. Read once for all tables."
        models.append(_model(feed.raw_name, what, [Column(n, t or "", d) for n, t, d in RAW_COLUMNS], []))
    for table in feed.tables:
        models += _table_models(table)
    exposure = {
        "name": f"{feed.name}_tables",
        "label": f"Tables of {feed.name}",
        "type": "application",
        "owner": {"name": f"Readers of {feed.name}"},
        "description": f"What readers of feed {feed.name} use: its final tables. {feed.description}".strip(),
        "depends_on": [f"ref('{table.final_name}')" for table in feed.tables],
    }
    return to_yml({"version": 2, "models": models, "exposures": [exposure]})


def _table_models(table: Table) -> Iterator[dict[str, Any]]:
    name = f"{table.feed}.{table.name}"
    about = f" {table.description}" if table.description else ""
    keys = list(table.settings.keys) or ([SURROGATE] if table.settings.surrogate == "hash" else [])
    of_table = {"source_table": _source(table)}
    rebuilt_from = of_table | {"staging": f"ref('{table.staging_name}')"}
    if table.keys_name:
        rebuilt_from["keys"] = f"ref('{table.keys_name}')"
    has_keys = bool(table.settings.keys)
    in_table = table.settings.history == "table"  # a view is worked out from all of staging whenever it is read
    yield _model(
        table.staging_name,
        f"Every change of {name} ever received, once, in order.{about}",
        [*table.columns, *_added(table, STAGING_COLUMNS)],
        _data_tests("each_change_once", of_table, each_run=has_keys),
    )
    if table.keys_name:
        yield _model(
            table.keys_name,
            f"Who is who in {name} across key changes: the changes at keys that ever changed.",
            _added(table, KEYS_COLUMNS),
            [],
        )
    if table.history_name:
        yield _model(
            table.history_name,
            f"The versions of each row of {name}, by source time (SCD2).{about}",
            [*table.published_columns, *_added(table, HISTORY_COLUMNS)],
            [
                *_data_tests("one_current_row_per_key", {"keys": keys} | of_table, each_run=in_table),
                *_data_tests("history_intervals_do_not_overlap", of_table, each_run=in_table),
                *(_data_tests("history_equals_rebuild_from_staging", rebuilt_from, each_run=True) if in_table else []),
            ],
        )
    yield _model(
        table.final_name,
        f"{_final_is(table).capitalize()} (SCD1).{about}",
        final_columns(table),
        [
            *(
                _data_tests("one_row_per_key", {"keys": keys} | of_table, each_run=has_keys)
                if keys and not table.settings.insert_only
                else []
            ),
            *_data_tests("final_equals_rebuild_from_staging", rebuilt_from, each_run=has_keys),
        ],
    )


EACH_RUN, NIGHTLY = "each_run", "nightly"


def _data_tests(name: str, arguments: dict[str, Any], *, each_run: bool) -> list[dict[str, Any]]:
    """The test of a whole table, and with `each_run` the one of the keys that its newest load touched."""

    def tagged(tag: str, **more: bool) -> dict[str, Any]:
        return {f"delta_cdc.{name}": {"arguments": arguments | more, "config": {"tags": [tag]}}}

    return [tagged(NIGHTLY), *([tagged(EACH_RUN, touched_only=True)] if each_run else [])]


def _model(name: str, description: str, columns: Sequence[Column], tests: list[Any]) -> dict[str, Any]:
    model: dict[str, Any] = {"name": name, "description": description}
    model["columns"] = [
        {
            "name": column.name,
            **({"data_type": column.data_type} if column.data_type else {}),
            "description": column.description or f"{column.name} of the source table.",
        }
        for column in columns
    ]
    if tests:
        model["data_tests"] = tests
    return model


def _added(table: Table, columns: AddedColumns) -> list[Column]:
    return [Column(name, data_type or _type_of_added(table, name), text) for name, data_type, text in columns]


def _type_of_added(table: Table, name: str) -> str:
    """The types that depend on the feed; empty where an SQL expression decides."""
    settings = table.settings
    if name in ("_cdc_key_before", "key_before", "key_after"):
        if not settings.keys:
            return "" if settings.keyless == "multiset" else "string"
        return _struct((column.name, column.data_type) for column in _key_columns(table))
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
    return "struct<" + ", ".join(f"{_sql_name(name)}: {data_type}" for name, data_type in fields) + ">"


class _Dumper(yaml.SafeDumper):
    """Block style, lists indented under their key, a column on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_mapping(dumper: _Dumper, data: dict[str, Any]) -> yaml.MappingNode:
    one_line = "description" in data and "columns" not in data and "owner" not in data
    tag = "tag:yaml.org,2002:map"
    return dumper.represent_mapping(tag, data.items(), flow_style=one_line or "arguments" in data)


_Dumper.add_representer(dict, _represent_mapping)


def to_yml(content: Any) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


# The defaults, for the macros


def defaults_file(root: Path) -> GeneratedFile:
    """macros/config/_defaults.sql: what Python knows of defaults, for the macros."""
    values = {
        "settings": setting_defaults(),
        "formats": {name: dict(known.settings) for name, known in FORMATS.items()},
        "fields": {name: list(known.fields) for name, known in FORMATS.items()},
        "operation_codes": operation_codes(root / OPERATION_CODES_FILE),
    }
    lines = [
        "{#- Defaults of the settings, what each format changes of them, and each format's fields and "
        "operation codes. "
        "-#}"
    ]
    lines += ["{% macro _defaults() %}", "  {{ return({"]
    for group, entries in values.items():
        lines.append(f"    {jinja(group)}: {{")
        lines += [f"      {jinja(name)}: {jinja(value)}," for name, value in entries.items()]
        lines.append("    },")
    lines.append(f"    'naming_columns': {jinja(settings_naming_columns())},")
    nameless = [name for name, known in FORMATS.items() if not known.names_tables]
    lines.append(f"    'formats_without_tables': {jinja(nameless)},")
    lines += ["  }) }}", "{% endmacro %}"]
    return GeneratedFile(DEFAULTS_FILE, "\n".join(lines) + "\n")


def operation_codes(path: Path) -> dict[str, dict[str, str]]:
    """{format: {code: operation}} from the seed, in its order."""
    codes: dict[str, dict[str, str]] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                codes.setdefault(row["format"], {})[row["code"]] = row["operation"]
    return codes


# --------------------------------------------------------------------------------
# What there is


@dataclass(frozen=True)
class Comparison:
    """How the files on disk differ from the plan. All paths are relative to the project."""

    missing: tuple[str, ...]
    outdated: tuple[str, ...]
    edited: tuple[str, ...]
    """Edited by a person, or written by one, and not as planned."""
    gone: tuple[str, ...]
    """Generated once, for a table that is no longer there."""
    gone_edited: tuple[str, ...]
    current: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        return not (self.missing or self.outdated or self.edited or self.gone or self.gone_edited)


def is_untouched(text: str) -> bool:
    """The text is as it was generated: the hash in its first line is that of the rest."""
    first, _, body = text.partition("\n")
    found = _HEADER.search(first)
    return found is not None and found["digest"] == hashlib.sha256(body.encode()).hexdigest()[:12]


def model_names(project: Project, but: str) -> set[str]:
    """The names, in lower case, of all models that there are or should be, but for those of one feed."""
    models = project.root / project.model_path
    found = (path for path in models.rglob("*") if path.suffix in (".sql", ".py") and models / but not in path.parents)
    should = (name for table in project.tables if table.feed != but for name in table.models)
    return {name.lower() for name in (*(path.stem for path in found), *should)}


def compare(project: Project, files: Sequence[GeneratedFile], folder: str = "") -> Comparison:
    """Look at every planned file, and at every file under the models, or in a folder of them, that was generated once."""
    found: dict[str, list[str]] = {name: [] for name in Comparison.__dataclass_fields__}
    for file in files:
        text = _read(project.root / file.path)
        if text is None:
            kind = "missing"
        elif text == file.text:
            kind = "current"
        else:
            kind = "outdated" if is_untouched(text) else "edited"
        found[kind].append(file.path)
    planned = {file.path for file in files}
    for path in sorted((project.root / project.model_path / folder).rglob("*")):
        name = path.relative_to(project.root).as_posix()
        if path.suffix in (".sql", ".py", ".yml") and name not in planned:
            text = _read(path) or ""
            if _HEADER.search(text.partition("\n")[0]):
                found["gone" if is_untouched(text) else "gone_edited"].append(name)
    return Comparison(**{kind: tuple(paths) for kind, paths in found.items()})


def write(
    project: Project,
    files: Sequence[GeneratedFile],
    comparison: Comparison,
    *,
    force: bool = False,
    prune: bool = False,
) -> list[str]:
    """Make the files as planned; returns the paths written and removed. Edited files only with `force`."""
    changed = []
    wanted = {*comparison.missing, *comparison.outdated, *(comparison.edited if force else ())}
    for file in files:
        if file.path in wanted:
            path = project.root / file.path
            beside = path.with_name(f".{path.name}.new")  # a file that was cut off would count as edited
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                beside.write_text(file.text, encoding="utf-8", newline="\n")
                beside.replace(path)
            except OSError as error:
                raise OperationError(f"{file.path} cannot be written: {error.filename}: {error.strerror}.") from None
            changed.append(file.path)
    if prune:
        for name in (*comparison.gone, *(comparison.gone_edited if force else ())):
            try:
                (project.root / name).unlink()
            except OSError as error:
                raise OperationError(f"{name} cannot be removed: {error.strerror}.") from None
            changed.append(name)
    return changed


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None


# --------------------------------------------------------------------------------
# The reference page


def reference_page() -> str:
    """docs/configuration.md, from `Settings`."""
    lines = [
        "<!-- generated by delta-cdc settings; change python_helpers/delta_cdc/config.py -->",
        "# Configuration",
        "",
        "A feed is a dbt source. What it is stands under `config: meta: cdc:` of the source, what a table "
        "is under",
        "that of the table. A table's setting replaces its feed's, all of it: lists and mappings are not merged.",
        "",
        "```yaml",
        "sources:",
        "  - name: shop",
        "    config:",
        "      meta:",
        "        cdc:",
        "          format: wal2json_v2",
        "          location: landing/shop",
        "    tables:",
        "      - name: invoice",
        "        config: {meta: {cdc: {keys: [invoice_id], partition_by: [year(invoice_date) as "
        "invoice_year]}}}",
        "        columns:",
        "          - {name: invoice_id, data_type: int, description: Number of the invoice.}",
        "          - {name: invoice_date, data_type: timestamp}",
        '          - {name: total, data_type: "decimal(10,2)"}',
        "```",
        "",
        "`delta-cdc validate` checks all of it and starts nothing; `delta-cdc generate` writes the models.",
        "",
        "`columns:` of a source table lists the columns of the feed with their Spark SQL types; names may "
        "hold anything.",
        "Where a setting takes an SQL expression, a column whose name is not a plain word stands in "
        "backticks.",
        "",
        "| setting | where | takes | default | what it is |",
        "|---|---|---|---|---|",
    ]
    for name, known in Settings.model_fields.items():
        extra = known.json_schema_extra
        assert isinstance(extra, dict)
        cells = [
            f"`{name}`",
            str(extra["level"]),
            f"{extra['wants']}, e.g. `{(known.examples or [''])[0]}`",
            _default_text(known.default),
            known.description or "",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "## Defaults by format",
        "",
        "| format | settings | fields that expressions may name |",
        "|---|---|---|",
    ]
    for name, known_format in FORMATS.items():
        settings = ", ".join(f"`{k}: {_plain(v)}`" for k, v in known_format.settings.items())
        fields = ", ".join(f"`{k}` ({v})" for k, v in known_format.fields.items())
        lines.append(f"| `{name}` | {settings or 'none'} | {fields or 'the columns'} |")
    lines += [
        "",
        "A format is the file macros/formats/<format>.sql; one without a row here has no defaults of its "
        "own. docs/formats has a page for each. Where a column of the table has the name of a field, the name means the "
        "column, and the field is `_cdc` before its name: `_cdc_timestamp`.",
    ]
    return "\n".join(lines) + "\n"


def _default_text(value: Any) -> str:
    return "none" if value in (None, [], {}) else f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value).replace("'", "")
