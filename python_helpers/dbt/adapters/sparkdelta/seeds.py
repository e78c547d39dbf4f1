"""Seed rows as SQL literals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import agate


def literal(value: Any) -> str:
    """A Python value as a Spark SQL literal: also where Spark puts variables' values for ${NAME}, as a server may."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)  # exact: a float would round big integers
    if isinstance(value, Decimal):
        # with an exponent it would be a float; a bare NaN would be a name
        return format(value, "f") if value.is_finite() else literal(float(value))
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"double('{value}')"
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'"
    if isinstance(value, (date, time)):
        return f"'{value.isoformat()}'"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{")
    return "'" + text.replace("\n", "\\n").replace("\r", "\\r") + "'"


def seed_rows(table: agate.Table, delimiter: str, types: Mapping[str, str]) -> list[list[str]]:
    """A seed's rows as SQL literals, one list a row.

    dbt reads an empty cell and the word null as null, quoted or not. A quoted cell of a text column is text
    here: "" is the empty string. types: {column: its type in SQL}, where the project says it: dbt reads these as text.
    """
    import agate

    texts = [
        isinstance(kind, agate.Text) and types.get(name, "string").strip().lower().startswith(("string", "char", "varchar"))
        for name, kind in zip(table.column_names, table.column_types, strict=True)
    ]
    wide = [isinstance(column.data_type, agate.Number) and _is_wide(column.values()) for column in table.columns]
    cells = _quoted_cells(table, delimiter) if any(texts) else []
    rows = []
    for number, row in enumerate(table.rows):
        values = []
        for place, value in enumerate(row):
            if value is None and texts[place] and cells:
                value = cells[number].get(place)
            values.append(f"double('{value}')" if wide[place] and isinstance(value, Decimal) else literal(value))
        rows.append(values)
    return rows


def _is_wide(values: Iterable[Any]) -> bool:
    """Whether numbers have more digits before and after the point than one decimal of Spark's: it gives up those after it, so
    that a small number beside a large one would be 0."""
    finite = [value for value in values if isinstance(value, Decimal) and value.is_finite()]
    before = max((value.adjusted() + 1 for value in finite), default=0)
    after = max((-int(value.as_tuple().exponent) for value in finite), default=0)
    return max(before, 0) + max(after, 0) > 38


def _quoted_cells(table: agate.Table, delimiter: str) -> list[dict[int, str]]:
    """The quoted cells of each row, by their place; [] when the file does not read as the table does."""
    path = getattr(table, "original_abspath", None)
    if path is None:
        return []
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(_records(file.read(), delimiter))[1:]
    return rows if len(rows) == len(table.rows) else []


def _records(text: str, delimiter: str) -> Iterator[dict[int, str]]:
    stop = re.escape(delimiter)
    cell = re.compile(rf'(?:"((?:[^"]|"")*)"|[^{stop}\r\n]*)({stop}|\r\n|\r|\n|\Z)')
    position, place, quoted = 0, 0, {}
    while position < len(text):
        match = cell.match(text, position)
        if match is None:  # a quote inside an unquoted cell, or the like: no claim about this file
            return
        if match[1] is not None:
            quoted[place] = match[1].replace('""', '"')
        position, place = match.end(), place + 1
        if match[2] != delimiter:
            yield quoted
            place, quoted = 0, {}
    if place:  # the last line ends in a delimiter
        yield quoted
