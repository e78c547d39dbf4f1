"""What is right as far as anybody can tell, and seldom meant: the order of changes, a flag that nobody reads, names in quotes,
and what images do not fill."""

from __future__ import annotations

import re
from collections.abc import Iterator

from delta_cdc.errors import some_of
from delta_cdc.formats import format_of
from delta_cdc.project import Project, Table
from delta_cdc.settings_block import shown
from delta_cdc.sql_names import unquoted

# of the names that `init` proposes for `operation` those that seldom are a column like any other
_FLAG = re.compile(r"_*(op|operation|(op|operation|change|dml)_?type|op_?code|dml_?flag|cdc_?(op|operation))")
# a name may hold any signs, and one that SQL wants in quotes is listed without
_IN_QUOTES = re.compile(r"([`\"']).*\1|\[.*\]", re.DOTALL)


def of_tables(project: Project) -> list[str]:
    """A sentence for each column by which changes are ordered that is a string, for keys that order their own changes, for flags
    of flat rows that no setting names, for names in quotes, and for structs whose null fields an image before does not fill."""
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
    is_flagged = settings.operation or settings.deleted_when or settings.insert_only or settings.keyless == "append"
    flags = [column.name for column in table.columns if _FLAG.fullmatch(column.name.lower())]
    if settings.format == "rows" and flags and not is_flagged:
        yield (
            f"`{'`, `'.join(flags)}` may say what a row does, and neither `operation` nor `deleted_when` names it: no row "
            "deletes anything, whatever it says there. Name it in `operation`, unless it is a column like any other."
        )
    names = [*(column.name for column in table.columns), *settings.expressions]
    if quoted := [shown(name) for name in dict.fromkeys(names) if _IN_QUOTES.fullmatch(name)]:
        yield (
            f"the quotes around {some_of(quoted)} are part of the name: where the feed's column has none, all its values are "
            "null. A name is listed as it is, without quotes, also one that is a word of SQL."
        )
    silent = settings.ignore_null_updates
    listed = {name.lower() for name in (silent if isinstance(silent, list) else settings.keys)}  # true: all but these
    structs = [
        column.name for column in table.columns
        if column.data_type.strip().lower().startswith("struct") and (column.name.lower() in listed) is isinstance(silent, list)
    ]  # fmt: skip
    if silent and structs and (settings.full_images or settings.keyless == "multiset"):
        yield (
            f"of the image before only whole columns are taken: where an update has a null field in `{'`, `'.join(structs)}`, "
            "which `ignore_null_updates` takes for unchanged, it is null in a table without a key, and where final does not know "
            "the row yet."
        )
