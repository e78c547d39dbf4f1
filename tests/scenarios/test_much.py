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


@pytest.mark.nightly  # tests/scenarios/test_commands.py has it of few rows
def test_reconcile_finds_one_value_among_a_million_rows(project: UserProject) -> None:
    columns = {"id": "int", "n": "bigint", "note": "string", "seq": "bigint"}
    project.configure(
        "many",
        settings={"format": "rows", "location": "landing/many/{table}", "unit": "folder", "file_format": "parquet"},
        tables=[{"name": "t", "cdc": {"keys": ["id"], "sequence_by": ["seq"], "except_columns": ["seq"]}, "columns": columns}],
    )
    project.generate()
    numbers = project.spark().range(1_000_000).selectExpr("cast(id as int) as id", "id * 7 as n", "concat('row ', id) as note")
    numbers.selectExpr("*", "1L as seq").write.parquet(f"{project.path}/landing/many/t/all")
    numbers.selectExpr("id", "if(id = 654321, 5, n) as n", "note").write.parquet(f"{project.path}/source")
    project.dbt("run", "--select", "cdc_change_sets", "stg_many__t+", quiet=True)
    against = ("--against", f"{project.path}/source", "--file-format", "parquet")
    told = project.done("reconcile", "many.t", *against, exit_code=1).splitlines()
    assert told[0].startswith("final_t: 1,000,000 rows; ")
    assert told[0].endswith(": 1,000,000 rows.")
    assert told[1:] == ["They differ: 1 row with other values.", "  id = 654321: n = 4580247, there 5"]
