"""Rows-files (tests/cases/README.md): one table each, delivered change set by change set, all tables of a run at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.scenarios.project import UserProject


@dataclass(frozen=True)
class RowsCase:
    path: Path
    table: str
    content: Mapping[str, Any]

    @property
    def configuration(self) -> dict[str, Any]:
        """The table's entry for `UserProject.configure`."""
        c = self.content
        cdc: dict[str, Any] = {"keys": list(c["keys"]), "sequence_by": [c["sequence"]]}
        renames = {"delete_when": "deleted_when", "truncate_when": "truncated_when", "old_keys": "old_keys",
                   "ordinal": "ordinal", "transaction": "transaction"}
        cdc |= {ours: c[theirs] for theirs, ours in renames.items() if c.get(theirs)}
        cdc |= _selection(c.get("columns"), "columns", "except_columns", all_columns=list(c["schema"]))
        track = c.get("track_history")
        if track is not None:
            cdc["track_columns"] = {"except": track["except"]} if "except" in track else list(track.get("include", track))
        return {"name": self.table, "cdc": cdc, "columns": {n: t.lower() for n, t in c["schema"].items()}}

    def change_set(self, number: int) -> str | None:
        """The lines of one batch; None after the last."""
        batches = self.content["batches"]
        if number >= len(batches):
            return None
        missing = {(batch, row): columns for batch, row, columns in self.content.get("missing") or []}
        shapes = self.content.get("batch_columns")
        lines = []
        for index, row in enumerate(batches[number]):
            absent = set(missing.get((number, index), []))
            shape = set(shapes[number]) if shapes and shapes[number] else set(row)
            lines.append(json.dumps({k: v for k, v in row.items() if k not in absent and k in shape}))
        return "".join(line + "\n" for line in lines)

    @property
    def query(self) -> str:
        c = self.content
        columns = [k for k in (c["expected"][0] if c["expected"] else {}) if not k.startswith("__")]
        names = ", ".join(f"`{n}`" for n in columns) or "*"
        if c["scd"] == 2:
            return f"select {names}, valid_from as __START_AT, valid_to as __END_AT from {{schema}}.hist_cases__{self.table}"
        return f"select {names} from {{schema}}.final_{self.table}"

    def difference(self, actual: Sequence[Mapping[str, Any]]) -> str | None:
        """What is expected and not there, and what is there and not expected; None if they are equal."""
        expected, found = (Counter(_comparable(row) for row in rows) for rows in (self.content["expected"], actual))
        if expected == found:
            return None
        lost, extra = expected - found, found - expected
        return "".join([*(f"  - {row}\n" for row in lost.elements()), *(f"  + {row}\n" for row in extra.elements())])


def _selection(given: Any, include: str, leave_out: str, *, all_columns: list[str]) -> dict[str, Any]:
    if given is None:
        return {include: all_columns}
    if isinstance(given, Mapping) and "except" in given:
        return {leave_out: list(given["except"])}
    return {include: list(given["include"] if isinstance(given, Mapping) else given)}


def _comparable(row: Mapping[str, Any]) -> str:
    return json.dumps({k: _plain(v) for k, v in row.items()}, sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (date, datetime)):
        return str(value)
    return value


def read_cases(paths: Sequence[Path]) -> list[RowsCase]:
    return [RowsCase(path, f"t{n:04d}", json.loads(path.read_text())) for n, path in enumerate(paths)]


def run_cases(project: UserProject, cases: Sequence[RowsCase], *, runs: int | None = None) -> None:
    """Deliver the change sets of all cases, one after another, with a dbt run for each.

    runs: at most so many; the last one finds all change sets that are left at once. None: as many as there are.
    """
    landing = project.path / "landing"
    project.configure(
        "cases",
        settings={"format": "rows", "location": f"{landing}/{{table}}", "change_set_order": "name"},
        tables=[case.configuration for case in cases],
    )
    project.generate()
    for case in cases:
        (landing / case.table).mkdir(parents=True)
    most = max(len(case.content["batches"]) for case in cases)
    for number in range(most):
        for case in cases:
            lines = case.change_set(number)
            if lines is not None:
                (landing / case.table / f"{number:04d}.jsonl").write_text(lines)
        if runs is None or number < runs - 1 or number == most - 1:
            project.dbt("run", quiet=True)
