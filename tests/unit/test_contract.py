"""Every rule that docs/semantics.md gives has a test or a case that carries its id."""

from __future__ import annotations

import json
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CONTRACT = TESTS.parent / "docs" / "semantics.md"


def rules() -> list[str]:
    found = []
    for bold in re.findall(r"\*\*(.+?)\*\*", CONTRACT.read_text()):
        if span := re.fullmatch(r"([A-Z])(\d+) to [A-Z](\d+)", bold):
            found += [f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1)]
        elif re.fullmatch(r"[A-Z]\d+", bold):
            found.append(bold)
    return found


def carried() -> set[str]:
    """The ids in the names of tests and in the sources of cases."""
    ids = set()
    names = [name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())]
    for file in (TESTS.parent / "models").rglob("_unit_tests.yml"):
        names += re.findall(r"- name: (test_\w+)", file.read_text())
    for name in names:
        ids |= {part for part in name.split("_") if re.fullmatch(r"[A-Z]\d+", part)}
    for file in (TESTS / "cases" / "rows").glob("*.json"):
        source = json.loads(file.read_text()).get("source") or ""
        if "rule" in source:
            ids |= set(re.findall(r"\b[A-Z]\d+\b", source))
    return ids


def test_every_rule_of_the_contract_has_a_test() -> None:
    assert len(rules()) >= 40
    assert sorted(set(rules()) - carried()) == []
