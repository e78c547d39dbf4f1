"""What types the values of a column look like. A hint for the person who lists the columns: nobody takes it for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# a value as text → its type, the first that fits. Digits behind a leading zero are a number's name, not a number.
_LOOKS = (
    ("boolean", r"true|false"),
    ("bigint", r"-?(0|[1-9]\d{0,17})"),
    ("decimal", r"-?(0|[1-9]\d*)(\.\d+)?"),
    ("double", r"-?(0|[1-9]\d*)(\.\d+)?e[+-]?\d+|nan|-?infinity"),
    ("date", r"\d{4}-[01]\d-[0-3]\d"),
    ("timestamp_ntz", r"\d{4}-[01]\d-[0-3]\d[t ][0-2]\d:[0-5]\d(:[0-5]\d(\.\d+)?)?"),
    ("timestamp", r"\d{4}-[01]\d-[0-3]\d[t ][0-2]\d:[0-5]\d(:[0-5]\d(\.\d+)?)? ?(z|[+-]\d\d(:?\d\d)?)"),
)
MOST = 20_000  # rows of a table that are looked at: a feed's change sets may hold millions


class Looks:
    """What the values of each column fit into, by the first rows that were seen."""

    def __init__(self) -> None:
        self.rows = 0
        self._seen: dict[str, tuple[str, int, int]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        if self.rows >= MOST:
            return
        told = {name: _looks_like(value) for name, value in row.items() if value is not None and value != ""}
        self.rows += bool(told)
        for name, looks in told.items():
            self._seen[name] = _both(self._seen[name], looks) if name in self._seen else looks

    def types(self) -> dict[str, str]:
        """Column → Spark type, of the columns that look like anything but text; with room, for a few rows tell little.

        >>> looks = Looks()
        >>> for row in ({"id": 1, "no": "007", "sum": 2.5, "day": "2026-01-31"}, {"id": 2**31, "sum": "100", "day": None}):
        ...     looks.add(row)
        >>> looks.types()
        {'id': 'bigint', 'sum': 'decimal(18,1)', 'day': 'date'}
        """
        return {
            name: f"decimal({18 if whole + scale <= 18 else 38},{scale})" if kind == "decimal" else kind
            for name, (kind, whole, scale) in self._seen.items()
            if kind != "string" and whole + scale <= 38
        }


def _looks_like(value: Any) -> tuple[str, int, int]:
    """A value's type, its digits before the point and those behind it."""
    if isinstance(value, dict | list):
        return "string", 0, 0
    text = str(value).lower()
    kind = next((name for name, pattern in _LOOKS if re.fullmatch(pattern, text)), "string")
    if kind in ("bigint", "decimal"):
        whole, _, behind = text.lstrip("-").partition(".")
        return kind, len(whole), len(behind)
    return kind, 0, 0


def _both(one: tuple[str, int, int], other: tuple[str, int, int]) -> tuple[str, int, int]:
    """The type that holds the values of both."""
    kinds, whole, scale = {one[0], other[0]}, max(one[1], other[1]), max(one[2], other[2])
    if len(kinds) == 1:
        return one[0], whole, scale
    if kinds <= {"bigint", "decimal"}:
        return "decimal", whole, scale
    if kinds <= {"bigint", "decimal", "double"}:
        return "double", 0, 0
    if kinds == {"date", "timestamp_ntz"}:
        return "timestamp_ntz", 0, 0
    return "string", 0, 0
