"""Which statements write rows, and into which table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PART = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_COMMENTS = r"^(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*(?:\n|$))*"  # one way to read each character: else it takes for ever
_WRITES = re.compile(
    _COMMENTS + r"(merge\s+(?:with\s+schema\s+evolution\s+)?into|insert\s+(?:into|overwrite)(?:\s+table)?|delete\s+from|update"
    rf"|create\s+(?:or\s+replace\s+)?table(?:\s+if\s+not\s+exists)?)\s+({_NAME})",
    re.IGNORECASE,
)


_TWICE = "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE]"


def written_table(sql: str) -> tuple[str | None, str]:
    """First word (lower case) and target of a statement that writes rows; (None, '') for any other."""
    match = _WRITES.match(sql)
    return (match[1].split()[0].lower(), match[2]) if match else (None, "")


def explained(message: str, table: str) -> str:
    """What Spark says of a statement that failed; what it means where Delta does not say that. table: the one it writes."""
    if _TWICE not in message:
        return message
    return (
        f"{_TWICE} Several of the rows to be merged are one row of {table}. In a generated model it holds a key twice, which "
        "something else than its runs wrote: `delta-cdc rebuild` makes it anew. In another model `unique_key` does not tell its "
        "rows apart."
    )


def names_of(session: SparkSession, table: str) -> tuple[str, str]:
    """Schema and name of a table as SQL writes them."""
    parts = [part.strip() for part in re.findall(_PART, table)]
    names = [part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts]
    return (names[-2] if len(names) > 1 else session.catalog.currentDatabase(), names[-1])
