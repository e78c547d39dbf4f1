"""Every rule that docs/semantics.md gives has a test or a case that carries its id, and docs/rules.md says which."""

from __future__ import annotations

from tests import rules


def test_every_rule_of_the_contract_has_a_test() -> None:
    ids = rules.rules()
    assert len(ids) >= 40
    assert sorted(set(ids) - {*rules.tests_of_rules(), *rules.cases_of_rules()}) == []


def test_the_page_of_rules_and_their_tests_is_current() -> None:
    assert rules.PAGE.read_text() == rules.page(), "`make generate` writes it"
