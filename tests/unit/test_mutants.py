"""The faults of `make mutants` can still be put in."""

from __future__ import annotations

import pytest
from tests.rules import rules
from tests.scenarios.mutants import CASES, MUTANTS, PACKAGE, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_the_place_of_a_fault_is_there(mutant: Mutant) -> None:
    assert mutant.before in (PACKAGE / mutant.file).read_text(encoding="utf-8")


def test_the_cases_that_must_notice_are_run_and_no_others() -> None:
    assert {name for mutant in MUTANTS if not mutant.test_files for name in mutant.red} == set(CASES)


def test_the_tests_that_must_notice_are_there_and_carry_the_rule() -> None:
    for mutant in MUTANTS:
        for file, _, name in (red.partition("::") for red in mutant.red if mutant.test_files):
            above, found, _ = (PACKAGE / file).read_text(encoding="utf-8").partition(f"def {name}(")
            assert found
            assert mutant.nightly or "@pytest.mark.nightly" not in above.rpartition("\n\n")[2]  # else it would not run
            assert mutant.rule in name.split("_")


def test_every_rule_has_a_fault() -> None:
    assert sorted(set(rules()) - {mutant.rule for mutant in MUTANTS}) == []
