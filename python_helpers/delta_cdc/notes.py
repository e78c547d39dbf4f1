"""What is right as far as anybody can tell, and seldom meant: the order of a table's changes."""

from __future__ import annotations

from collections.abc import Iterator

from delta_cdc.formats import format_of
from delta_cdc.project import Project, Table
from delta_cdc.sql_names import unquoted


def of_order(project: Project) -> list[str]:
    """A sentence for each column by which changes are ordered that is a string, and for keys that order their own changes."""
    found: dict[tuple[str, str], list[str]] = {}
    for table in project.tables:
        for said in _of_table(table):
            found.setdefault((table.feed, said), []).append(table.name)
    more = {said: f" and {len(tables) - 1} more" if len(tables) > 1 else "" for said, tables in found.items()}
    return [f"feed {feed}, table {tables[0]}{more[feed, said]}: {said}" for (feed, said), tables in found.items()]


def _of_table(table: Table) -> Iterator[str]:
    settings, types = table.settings, {column.name.lower(): column.data_type for column in table.columns}
    named = [(unquoted(part) or "").lower() for part in settings.sequence_by]
    of_format = {name.lower() for name in format_of(settings.format).fields}
    for name in named:
        if name not in of_format and types.get(name, "").strip().lower().startswith(("string", "varchar", "char")):
            yield (
                f"`sequence_by` has `{name}`, a {types[name]}: texts are compared letter by letter, '10' is below '9'. Give it "
                "its type (timestamp, bigint, …) before the first load, unless its texts rise as its changes do."
            )
    if table.has_entities and named and set(named) <= {key.lower() for key in settings.keys}:
        yield (
            "`sequence_by` has only `keys`: all changes of a row have one place, and the last to arrive counts. Name what grows "
            "with each change; or say `insert_only: true` if a row never changes."
        )
