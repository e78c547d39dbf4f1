"""Which tests and cases prove each rule of docs/semantics.md: docs/rules.md, by `python -m tests.rules` (`make generate`)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CONTRACT = PROJECT / "docs" / "semantics.md"
PAGE = PROJECT / "docs" / "rules.md"

HEAD = """# What proves each rule
The tests whose names carry a rule of [semantics.md](semantics.md), and the cases that name it as their source. Written by
`make generate`; a test fails where a rule has neither. `make mutants` breaks the rules one by one and looks whether these notice.
"""


def is_rule(word: str) -> bool:
    return re.fullmatch(r"[A-Z]\d+", word) is not None


def rules() -> list[str]:
    """The ids, as the contract has them in bold."""
    found = []
    for bold in re.findall(r"\*\*(.+?)\*\*", CONTRACT.read_text()):
        if span := re.fullmatch(r"([A-Z])(\d+) to [A-Z](\d+)", bold):
            found += [f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1)]
        elif is_rule(bold):
            found.append(bold)
    return found


def tests_of_rules() -> Mapping[str, Mapping[Path, Sequence[str]]]:
    """{rule: {file: the names of its tests}}"""
    found: dict[str, dict[Path, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file, name in _tests():
        for rule in dict.fromkeys(filter(is_rule, name.split("_"))):
            found[rule][file.relative_to(PROJECT)].append(name)
    return found


def cases_of_rules() -> Mapping[str, Sequence[Path]]:
    """{rule: the cases of `make test` that come from it}"""
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted((PROJECT / "tests" / "cases" / "rows").glob("*.json")):
        source = json.loads(file.read_text()).get("source") or ""
        for rule in dict.fromkeys(re.findall(r"\b[A-Z]\d+\b", source)) if "rule" in source else ():
            found[rule].append(file.relative_to(PROJECT))
    return found


def _tests() -> Iterator[tuple[Path, str]]:
    for file in sorted((PROJECT / "tests").rglob("test_*.py")):
        yield from ((file, name) for name in re.findall(r"def (test_\w+)", file.read_text()))
    for file in sorted((PROJECT / "models").rglob("_unit_tests.yml")):
        yield from ((file, name) for name in re.findall(r"- name: (test_\w+)", file.read_text()))


def page() -> str:
    tests, cases = tests_of_rules(), cases_of_rules()
    out = [HEAD]
    for rule in rules():
        out.append(f"## {rule}")
        for file, names in tests[rule].items():
            out.append(f"- [{file.name}](../{file.as_posix()})")
            out += [f"  - {_sentence(name)}" for name in names]
        if cases[rule]:
            out.append("- cases: " + ", ".join(f"[{file.stem}](../{file.as_posix()})" for file in cases[rule]))
        out.append("")
    return "\n".join(out)


def _sentence(name: str) -> str:
    """What a test's name says, without the rules that it carries."""
    return " ".join(word for word in name.removeprefix("test_").split("_") if not is_rule(word))


if __name__ == "__main__":
    PAGE.write_text(page())
