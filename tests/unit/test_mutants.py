"""The faults of `make mutants` can still be put in."""

from __future__ import annotations

import pytest
from tests.scenarios.mutants import CASES, MUTANTS, PACKAGE, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_the_place_of_a_fault_is_there(mutant: Mutant) -> None:
    assert mutant.before in (PACKAGE / mutant.file).read_text(encoding="utf-8")


def test_the_cases_that_must_notice_are_run_and_no_others() -> None:
    assert {name for mutant in MUTANTS for name in mutant.red} == set(CASES)
