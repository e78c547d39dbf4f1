"""Settings of a feed's tables from a CSV file, a row a table: what many a team has already, in a sheet.

    table,keys,sequence_by,partition_by,insert_only
    invoice,invoice_id,"changed_at, position",year(invoice_date) as invoice_year,
    event,,changed_at,,true

The first line names settings (docs/configuration.md); an empty cell leaves a setting as it is. Commas part a list, but for
those in brackets and quotes; other values are as in yml.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from delta_cdc.errors import OperationError, did_you_mean
from delta_cdc.settings import Settings, which_setting


def read_table_list(path: Path, found: Collection[str]) -> dict[str, dict[str, Any]]:
    """{table: {setting: value}}. Raises OperationError with every heading, table and value that is wrong.

    found: the names that the messages have for tables, which may carry a schema: the settings are by these.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise OperationError(f"{path}: its text is not UTF-8. Save it as CSV in UTF-8.") from None
    problems: list[str] = []
    try:
        given = _read(content, path, problems)
    except csv.Error as error:
        raise OperationError(f"{path} cannot be read as CSV: {error}. Look for a quote that is never closed.") from None
    if not given and not problems:
        problems.append(f"{path}: below its first line it names no table. Give each a row of its own.")
    named = _by_names_of(given, found, path, problems)
    if problems:
        raise OperationError("\n".join(problems))
    return named


def _read(content: str, path: Path, problems: list[str]) -> dict[str, dict[str, Any]]:
    """{table: {setting: value}}, by the names that stand there. problems: what is wrong is added to them."""
    if not content.strip():
        raise OperationError(f"{path} is empty. Its first line names the columns, e.g. table,keys,sequence_by.")
    first = content.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # sheets in many a language write semicolons
    rows = csv.DictReader(io.StringIO(content, newline=""), skipinitialspace=True, delimiter=delimiter)
    headings = [str(name).strip().casefold() for name in rows.fieldnames or ()]
    rows.fieldnames = headings
    if "table" not in headings:
        raise OperationError(f"{path}: the first line names the columns, and none is `table`. It has: {', '.join(headings)}.")
    for name in dict.fromkeys(headings):
        if headings.count(name) > 1 and name:
            problems.append(f"{path}, line 1: `{name}` is there twice. Make it one column.")
        if name not in ("table", "") and name not in Settings.model_fields:
            problems.append(f"{path}, line 1: `{name}` is no setting. {which_setting(name)}")
    out: dict[str, dict[str, Any]] = {}
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        more = row.pop(None, None)
        if not any((text or "").strip() for text in (*row.values(), *(more or ()))):
            continue  # what a sheet has below its last row
        table = (row.pop("table", None) or "").strip()
        if not table or table in out:
            empty = "`table` is empty. Name the table, or take the row out."
            problems.append(f"{where}: " + (f"`{table}` is there twice. Make it one row." if table else empty))
            continue
        out[table] = {}
        if any(text.strip() for text in more or ()):
            problems.append(f'{where}: it has more cells than the first line. A list goes in quotes: "a, b".')
        if (row.get("") or "").strip():
            problems.append(f"{where}: the cell {row['']!r} has no heading. Name it in the first line.")
        for name, text in row.items():
            if name in Settings.model_fields and text and text.strip():
                try:
                    out[table][name] = _value(name, text.strip())
                except (yaml.YAMLError, ValueError):  # ValueError: a date that is none
                    problems.append(f"{where}: `{name}` is {text!r}, which cannot be read.")
    return out


def _by_names_of(
    given: dict[str, dict[str, Any]], found: Collection[str], path: Path, problems: list[str]
) -> dict[str, dict[str, Any]]:
    """The same by the names of `found`, of which the list may leave the schema out."""
    named = {}
    for table, settings in given.items():
        called = [table] if table in found else [each for each in found if table == each.rsplit(".", 1)[-1]]
        if len(called) == 1 and called[0] in named:
            problems.append(f"{path}: `{called[0]}` is there twice, with its schema and without. Make it one row.")
        elif len(called) == 1:
            named[called[0]] = settings
        else:
            problems.append(
                f"{path}: no change set has a table `{table}`. {did_you_mean(table, found)}"
                if not called
                else f"{path}: several tables are called `{table}`. Say which: {', '.join(called)}."
            )
    return named


def _value(name: str, text: str) -> Any:
    """A cell as the setting takes it.

    >>> _value("keys", "id, line"), _value("insert_only", "true"), _value("final_name", "123")
    (['id', 'line'], True, '123')
    """
    takes = Settings.model_json_schema()["properties"][name]
    types = {kind.get("type") for kind in takes.get("anyOf", [takes])}
    if text.startswith(("[", "{")) or ("boolean" in types and text.lower() in ("true", "false")):
        return yaml.safe_load(text)
    if "array" in types:
        return parts(text)
    return text if "string" in types else yaml.safe_load(text)


def parts(text: str) -> list[str]:
    """The parts of a text between its commas, but for those in brackets and quotes.

    >>> parts("date_trunc('month', at) as month, region")
    ["date_trunc('month', at) as month", 'region']
    """
    out, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            out.append("")
        else:
            out[-1] += letter
    return [part.strip() for part in out if part.strip()]
