"""Every rows-file of tests/cases, through generated models and real dbt runs, all of them at once.

A run for the first change sets, and one that finds all the others together; DELTA_CDC_RUNS=10 gives each a run of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import RowsCase, read_cases, run_cases

CASES = Path(__file__).resolve().parents[1] / "cases"
ROWS = [path for path in (CASES / "rows").glob("*.json") if not path.name.startswith("autocdc__")]
FILES = sorted([*ROWS, *(CASES / "random").glob("*.json")])


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> Iterator[UserProject]:
    cases = read_cases(FILES)
    run_cases(project, cases, runs=int(os.environ.get("DELTA_CDC_RUNS", "2")))
    assert not [refusal for case in cases for refusal in case.refusals]
    return project


@pytest.mark.parametrize("case", read_cases(FILES), ids=lambda case: case.path.stem)
def test_a_rows_file_gives_the_rows_that_it_expects(delivered: UserProject, case: RowsCase) -> None:
    difference = case.difference(delivered.rows(case.query))
    assert difference is None, f"{case.path.name} (- expected, + found):\n{difference}"


def test_A4_every_final_equals_its_rebuild_from_staging(delivered: UserProject) -> None:
    delivered.dbt("test", "--select", "test_name:final_equals_rebuild_from_staging", quiet=True)


def test_S6_nothing_new_is_no_commit(delivered: UserProject) -> None:
    from deltalake import DeltaTable

    def versions() -> dict[str, int]:
        folders = (delivered.lake / "warehouse" / f"{delivered.schema}.db").iterdir()
        return {folder.name: DeltaTable(str(folder)).version() for folder in folders if folder.name != "cdc_runs"}

    before = versions()
    delivered.dbt("run", quiet=True)
    assert versions() == before
