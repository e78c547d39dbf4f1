"""The text of each model's file: its `config`, and one macro call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from delta_cdc.added_columns import SURROGATE, final_columns, key_columns
from delta_cdc.project import Column, Feed, Table, sequence_name
from delta_cdc.spark_types import has_statistics
from delta_cdc.sql_names import sql_name

LINE_LENGTH = 130


def raw_model(feed: Feed) -> str:
    return (
        f"-- {feed.raw_name}: every message of feed {feed.name} once, with the table it is of\n"
        "{{ config(materialized='incremental', incremental_strategy='append', full_refresh=false, "
        f"tags={jinja([feed.name])}) }}}}\n"
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
    what = f"every change of {table.full_name}, once, in order"
    return _sql_model(table.staging_name, what, config, f"staging({source(table)}, ref('{table.changes_from}'))")


def keys_model(table: Table) -> str:
    config = {
        "materialized": "incremental",
        "incremental_strategy": "merge",
        "unique_key": ["_cdc_batch_id", "_cdc_change_set", "_cdc_row"],
        "merge_only_changed": True,
        "full_refresh": False,
        **_properties(key_columns(table)),
        "tags": tags_of(table),
    }
    arguments = "".join(f"        {name}={python(value)},\n" for name, value in config.items())
    return (
        f"# {table.keys_name}: who is who in {table.full_name} across key changes\n"
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
            "on_schema_change": "append_new_columns",
            "full_refresh": False,
            **_properties(table.published_columns, deletion_vectors=table.settings.deletion_vectors),
        }
    config["tags"] = tags_of(table)
    what = f"the versions of each row of {table.full_name} (SCD2)"
    return _sql_model(str(table.history_name), what, config, f"history({_arguments(table)})")


def final_model(table: Table) -> str:
    return _sql_model(table.final_name, f"{final_is(table)} (SCD1)", final_config(table), f"final({_arguments(table)})")


def _sql_model(name: str, what: str, config: dict[str, Any], call: str) -> str:
    return f"-- {name}: {what}\n{config_call(config)}\n{{{{ delta_cdc.{call} }}}}\n"


def final_config(table: Table) -> dict[str, Any]:
    settings = table.settings
    # what is ignored is not among the model's rows; what is made of a column that grows has to grow too
    follows = "append_new_columns" if settings.on_schema_change == "ignore" else settings.on_schema_change
    config: dict[str, Any] = {"materialized": "incremental", "on_schema_change": follows}
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
        config["partition_by"] = [sql_name(column.name) for column in table.partition_columns]
    if settings.cluster_by:
        config["liquid_clustered_by"] = [sql_name(name) for name in settings.cluster_by]
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


def tags_of(table: Table) -> list[str]:
    return list(dict.fromkeys([table.feed, *table.settings.tags]))


def final_is(table: Table) -> str:
    rows = "the rows" if table.appends_only else "the live rows"
    rows += ", and those that were deleted," if table.deletes_softly else ""
    return f"{rows} of {table.full_name}"


def source(table: Table) -> str:
    return f"source('{table.feed}', '{table.name}')"


def _arguments(table: Table) -> str:
    """Of the macros `history` and `final`."""
    keys = f", keys=ref('{table.keys_name}')" if table.keys_name else ""
    return f"{source(table)}, ref('{table.staging_name}'){keys}"


def _looked_up_in_staging(table: Table) -> list[str]:
    """The columns by which files of staging are left out, as SQL names them.

    Without a list Delta keeps statistics of the first 32 columns (a struct counts as its fields). Staging's own come last, so a
    wide table had none of them; and of a narrow one those that nobody asks for are two fifths of what a small INSERT costs.
    """

    def has(name: str) -> bool:
        data_type = table.type_of(name)
        return data_type is not None and has_statistics(data_type)

    first = next(iter(table.settings.sequence_by), "")
    keys = [sql_name(column.name) for column in key_columns(table) if has_statistics(column.data_type)]
    # where copies of late changes may be
    position = [f"_cdc_sequence.{sql_name(sequence_name(first, 1))}"] if has(first) else []
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


# Values as Jinja and Python write them


def config_call(config: dict[str, Any]) -> str:
    """`{{ config(…) }}`, on one line where it is short."""
    arguments = [f"{name}={jinja(value)}" for name, value in config.items()]
    line = "{{ config(" + ", ".join(arguments) + ") }}"
    if len(line) <= LINE_LENGTH:
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
