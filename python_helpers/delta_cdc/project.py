"""What was configured: a project's feeds, and each table with its settings, its columns and the names of its models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delta_cdc.errors import Problem
from delta_cdc.formats import format_of
from delta_cdc.settings import Settings
from delta_cdc.sql_names import IN_BACKTICKS, unquoted


@dataclass(frozen=True)
class Column:
    """A column of the feed, as declared under the source table's `columns:`."""

    name: str
    data_type: str
    description: str = ""


@dataclass(frozen=True)
class PartitionColumn:
    """One of `partition_by`: the column's name in final and the SQL expression it is made from."""

    name: str
    expression: str
    derived: bool


@dataclass(frozen=True)
class Table:
    """A table of a feed with its settings: the format's defaults, then the feed's settings, then its own."""

    feed: str
    name: str
    settings: Settings
    columns: tuple[Column, ...]
    description: str = ""
    file: str | None = None
    line: int | None = None

    @property
    def full_name(self) -> str:
        return f"{self.feed}.{self.name}"

    @property
    def mixed(self) -> bool:
        """Its change sets may hold changes of other tables too."""
        return format_of(self.settings.format).names_tables and "{table}" not in (self.settings.location or "")

    @property
    def is_private(self) -> bool:
        """Something of it must not be stored: it is read from the change sets themselves, and raw_<feed> has none of it."""
        return bool(self.settings.mask or self.settings.never_store)

    @property
    def changes_from(self) -> str:
        """The model that tells staging what came: raw_<feed>, or the ledger, whose change sets it reads itself."""
        return f"raw_{self.feed}" if self.mixed and not self.is_private else "cdc_change_sets"

    @property
    def appends_only(self) -> bool:
        return self.settings.insert_only or self.settings.keyless == "append"

    @property
    def has_entities(self) -> bool:
        """Its rows live and change; otherwise there is no history and nothing to resolve."""
        return not self.appends_only and self.settings.keyless == "none"

    @property
    def resolves_keys(self) -> bool:
        """Has a keys model, because keys may change."""
        given = self.settings.key_changes
        has_images = self.settings.operation is not None and "before" in self.settings.operation_codes.values()
        by_default = bool(self.settings.old_keys) or self.settings.split_key_changes or has_images
        return self.has_entities and (by_default if given is None else given)

    @property
    def may_be_held(self) -> bool:
        """A change set of it can be held back (rules Q2, Q4)."""
        return self.settings.max_errors is not None or self.settings.max_delete_share is not None

    @property
    def staging_name(self) -> str:
        return f"stg_{self.feed}__{self.name}"

    @property
    def keys_name(self) -> str | None:
        return f"int_{self.feed}__{self.name}_keys" if self.resolves_keys else None

    @property
    def history_name(self) -> str | None:
        return f"hist_{self.feed}__{self.name}" if self.has_entities else None

    @property
    def final_name(self) -> str:
        return self.settings.final_name or f"final_{self.name}"

    @property
    def models(self) -> tuple[str, ...]:
        """Names of its models, in the order in which they are built."""
        return tuple(m for m in (self.staging_name, self.keys_name, self.history_name, self.final_name) if m is not None)

    @property
    def published_columns(self) -> tuple[Column, ...]:
        """The columns of history and final."""
        chosen, left_out = self.settings.columns, set(self.settings.except_columns)
        made = self.settings.expressions
        if chosen is not None:
            published = [c for c in self.columns if c.name in chosen]
        else:
            left_out = left_out or {*self.settings.old_keys.values(), self.settings.operation or ""}
            published = [c for c in self.columns if c.name not in left_out]
        there = {c.name: c.description for c in published}
        # one in place of a column that came is what the table says of that, if it says something
        as_made = {name: Column(name, "", there.get(name) or f"Made by {sql}.") for name, sql in made.items()}
        return (*(as_made.get(c.name, c) for c in published), *(c for name, c in as_made.items() if name not in there))

    @property
    def deletes_softly(self) -> bool:
        return self.settings.delete_mode == "soft" and self.has_entities

    @property
    def time_columns(self) -> tuple[tuple[str, str], ...]:
        """The derived columns of final, each with what it tells."""
        if not self.has_entities:
            return ()
        given = (
            (self.settings.created_at, "When the row's life began at the source; null: before the feed."),
            (self.settings.updated_at, "When the row was last written at the source."),
        )
        return tuple((name, text) for name, text in given if name)

    @property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        return tuple(partition_column(entry, self.columns) for entry in self.settings.partition_by)

    def type_of(self, expression: str) -> str | None:
        """The Spark type of a column or of a field of the format; None for an SQL expression, and for a name that both have:
        which of them it means hangs on who wrote it (the macro `_with_shadowed_fields`)."""
        name = (unquoted(expression) or "").lower()
        fields = {field.lower(): type_ for field, type_ in format_of(self.settings.format).fields.items()}
        columns = {column.name.lower(): column.data_type for column in self.columns}
        return None if name in fields and name in columns else fields.get(name, columns.get(name))


@dataclass(frozen=True)
class Feed:
    """One stream of changes: a dbt source with `meta: cdc:`."""

    name: str
    tables: tuple[Table, ...]
    description: str = ""
    file: str | None = None

    @property
    def raw_name(self) -> str | None:
        return f"raw_{self.name}" if any(table.mixed for table in self.tables) else None

    @property
    def is_landed(self) -> bool:
        """`delta-cdc land` fetches its change sets."""
        return any(table.settings.kafka or table.settings.jdbc for table in self.tables)


@dataclass(frozen=True)
class Project:
    """A dbt project with its feeds, sorted by name. variables: those that it was read with, beside its own. disabled: names of
    the feeds whose source has `enabled: false`; of_disabled: what is wrong with these."""

    root: Path
    name: str
    model_path: str
    feeds: tuple[Feed, ...]
    variables: Mapping[str, Any] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    of_disabled: tuple[Problem, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for feed in self.feeds for table in feed.tables)


_ALIASED = re.compile(
    r"^(?P<expression>.*\S)\s+as\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[A-Za-z_][A-Za-z0-9_]*))\s*$",
    re.IGNORECASE | re.DOTALL,
)


def sequence_name(part: str, place: int) -> str:
    """The field of `_cdc_sequence` for a part of `sequence_by`, at that place (from 1), as the macro `_sequence_name` names it.

    >>> sequence_name("`lsn`", 1), sequence_name("`commit time`", 1), sequence_name("a + b", 2)
    ('lsn', 'sequence_1', 'sequence_2')
    """
    plain = re.fullmatch(r"`?(\w+)`?", part)
    return plain[1] if plain else f"sequence_{place}"


def partition_column(entry: str, columns: Iterable[Column]) -> PartitionColumn:
    """A column by its name, or an expression, named by `as` or else by its own letters and digits.

    >>> partition_column("year(d)", [])
    PartitionColumn(name='year_d', expression='year(d)', derived=True)
    """
    plain = IN_BACKTICKS.fullmatch(entry.strip())
    called = (plain[1].replace("``", "`") if plain else entry).lower()
    for column in columns:
        if column.name.lower() == called:
            return PartitionColumn(column.name, column.name, derived=False)
    aliased = _ALIASED.match(entry)
    if aliased:
        name = aliased["name"] or aliased["quoted"].replace("``", "`")
        return PartitionColumn(name, aliased["expression"].strip(), derived=True)
    return PartitionColumn(re.sub(r"\W+", "_", entry).strip("_").lower(), entry, derived=True)
