"""Loads that are taken for large ones: several tasks parse them, once, the changes are kept for what stages them, and merges
and look-ups name their keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.sparkdelta import files, narrowing, tuning
from dbt.adapters.sparkdelta.files import create_kept_view
from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import RowsCase, read_cases, run_cases

CASES = Path(__file__).resolve().parents[1] / "cases"
NAMES = (
    "rows/keys_alternate",
    "rows/multiset_late_inserts_meet_their_deletes",
    "rows/quarantine",
    "random/random__keys_0001",
    "random/random__partial_0022",
)


def cases() -> list[RowsCase]:
    return list(read_cases([CASES / f"{name}.json" for name in NAMES]))


KEPT: dict[str, bool] = {}


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> Iterator[UserProject]:
    def noted(session: SparkSession, name: str, sql: str, small: bool = False) -> None:
        KEPT[name] = small
        create_kept_view(session, name, sql, small)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "create_kept_view", noted)
        patched.setattr(tuning, "MUCH", dict.fromkeys(tuning.MUCH, 1))
        patched.setattr(tuning, "MANY_ROWS", 1)
        patched.setattr(narrowing, "LARGE", dict.fromkeys(narrowing.LARGE, 0))  # and all tables for large ones
        run_cases(project, cases(), runs=2)
    return project


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.path.stem)
def test_much_gives_the_rows_that_little_gives(delivered: UserProject, case: RowsCase) -> None:
    difference = case.difference(delivered.rows(case.query))
    assert difference is None, f"{case.path.name} (- expected, + found):\n{difference}"


def test_the_changes_of_a_large_load_are_kept_on_disk(delivered: UserProject) -> None:
    [kept] = (name for name in KEPT if name.endswith(f"__{cases()[-1].table}__changes"))
    assert not KEPT[kept]
