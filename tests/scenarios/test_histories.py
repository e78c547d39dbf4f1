"""Random histories through generated models and real dbt runs: final, history and staging against the oracle.

DELTA_CDC_HISTORIES=300 (default 8) says how many, DELTA_CDC_RUNS=10 (default 3) in how many runs their change sets arrive.
A history that fails is made smaller for as long as it still fails; what is left is printed as a rows-file, which
`make scenarios CASES=file` takes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dbt.adapters.sparkdelta import narrowing, tuning
from delta_cdc.cli import main
from tests.histories import drawn, histories, wild_changes
from tests.history_files import VALUES, as_read, history_expected, rows_file
from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import FEED, RowsCase, difference, run_cases

COUNT = int(os.environ.get("DELTA_CDC_HISTORIES", "8"))
RUNS = int(os.environ.get("DELTA_CDC_RUNS", "3"))
SMALLER = 8  # rounds of a dbt project each, to make a failing history smaller


@dataclass(frozen=True)
class Delivered:
    """Changes as they arrived. style: how the feed tells transactions and order (`tests.history_files`)."""

    style: str
    changes: Sequence[dict]

    def case(self, number: int) -> RowsCase:
        name = f"history_{number:04d}"
        return RowsCase(Path(f"{name}.json"), f"h{number:04d}", rows_file(name, self.changes, self.style))


def random_histories() -> list[Delivered]:
    """Three in four from a simulated source, the fourth wild: ties in all parts of the position, nonsense that no source does."""
    wild = COUNT // 4
    sound = [Delivered(history.style, history.delivered) for history in drawn(histories(), COUNT - wild)]
    return [*sound, *(Delivered("wild", changes) for changes in drawn(wild_changes(), wild))]


def wrong(project: UserProject, case: RowsCase, delivered: Delivered) -> str | None:
    """What differs from the oracle in final, history or staging; None if nothing does."""
    if case.refusals:
        return "\n".join(case.refusals)
    if differs := case.difference(project.rows(case.query)):
        return f"final (- expected, + found):\n{differs}"
    columns = [column for column in VALUES if column in case.content["schema"]]
    versions = history_expected(delivered.changes, delivered.style, columns)
    shown = replace(case, content=case.content | {"scd": 2, "expected": versions})
    if versions and (differs := difference(versions, project.rows(shown.query))):
        return f"history (- expected, + found):\n{differs}"
    once = as_read(delivered.changes, "")
    staged = project.rows(f"select count(*) as n from {{schema}}.stg_{FEED}__{case.table} where _cdc_error is null")[0]["n"]
    return None if staged == len(once) else f"staging holds {staged} changes, {len(once)} different ones arrived"


def miscounted(counts: Mapping[str, int], delivered: Delivered) -> str | None:
    """What of `status --counts` is not so; None if nothing is. A sound source does what it does to rows that are there."""
    seen: set[tuple[object, ...]] = set()
    ties = 0
    for change in sorted(as_read(delivered.changes, delivered.style), key=lambda each: (each["batch"], each["set"], each["row"])):
        keys = {key for key in (change["key"], change["key_before"]) if key is not None}
        places = {(key, change["sequence"], change["ordinal"]) for key in keys}
        ties += not seen.isdisjoint(places)
        seen |= places
    expected = dict.fromkeys(counts, 0) if delivered.style != "wild" else dict(counts)
    expected["ties"] = ties
    return None if counts == expected else f"counts: {counts}, expected {expected}"


def smaller(delivered: Delivered) -> Iterator[Delivered]:
    """The same without a change set, without a change, and with two change sets that arrive as one."""
    sets = sorted({(change["batch"], change["set"]) for change in delivered.changes})
    for one in sets:
        yield replace(delivered, changes=[c for c in delivered.changes if (c["batch"], c["set"]) != one])
    size = max(len(delivered.changes) // 12, 1)
    for start in range(0, len(delivered.changes), size):
        yield replace(delivered, changes=[*delivered.changes[:start], *delivered.changes[start + size :]])


def smallest(delivered: Delivered, folder: Path, lake: Path) -> tuple[RowsCase, str]:
    """A part of a failing history that fails too, and how."""
    kept, found = None, (delivered.case(0), "")
    for number in range(SMALLER):
        candidates = [each for each in smaller(delivered) if each.changes] if kept else [delivered]
        cases = [each.case(index) for index, each in enumerate(candidates)]
        project = UserProject(folder / f"smaller_{number}", lake=lake, schema=f"smaller_{number}")
        run_cases(project, cases, runs=RUNS)
        failing = [
            (len(each.changes), index, why)
            for index, (each, case) in enumerate(zip(candidates, cases, strict=True))
            if (why := wrong(project, case, each))
        ]
        if not failing:
            break
        _, index, why = min(failing)
        kept = delivered = candidates[index]
        found = (cases[index], why)
    return found


def test_O2_P2_H1_random_histories_give_what_the_oracle_gives(
    project: UserProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrowing, "LARGE", {"merge": 0, "read": 0})  # merges and look-ups as those in large tables,
    monkeypatch.setitem(tuning.MUCH, "table", 0)  # and all that is done where a table is not small
    many = random_histories()
    cases = [delivered.case(number) for number, delivered in enumerate(many)]
    run_cases(project, cases, runs=RUNS)
    failing = [
        (delivered, why)
        for case, delivered in zip(cases, many, strict=True)
        if (why := wrong(project, case, delivered))
    ]
    if failing:
        case, why = smallest(failing[0][0], tmp_path, project.lake)
        what = why or f"only with all of the others it fails: {failing[0][1]}"
        pytest.fail(
            f"{len(failing)} of {len(many)} histories differ: {', '.join(delivered.style for delivered, _ in failing)}\n"
            f"The first, made smaller, differs in {what}\n{json.dumps(case.content, indent=1)}"
        )
    where = ["--project-dir", str(project.path), "--profiles-dir", str(project.path)]
    asked = CliRunner().invoke(main, ["status", "--counts", "--json", *where])
    told = {row["table"]: row["counts"] for row in json.loads(asked.stdout)}
    counted = [miscounted(told[f"{FEED}.{case.table}"], delivered) for case, delivered in zip(cases, many, strict=True)]
    assert [why for why in counted if why] == []
