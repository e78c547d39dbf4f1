"""What the scenario runner makes of a case and the rows that were found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios import runner
from tests.scenarios.rows_cases import RowsCase

CASES = Path(__file__).resolve().parents[1] / "cases"
LISTED = {"other": {"name": "other", "rule": "P1", "why": "so it is", "rows": [{"id": 2}]}}


def judged(
    found: list[dict[str, Any]] | None, *, name: str = "x", refusals: tuple[str, ...] = (), **content: Any
) -> tuple[str, Any]:
    case = RowsCase(Path("x.json"), "t0", {"name": name, "scd": 1, **content}, list(refusals))
    line = runner.judge(case, found, LISTED)
    assert list(line) == ["file", "name", "status", "rule", "detail"]
    return line["status"], line["rule"]


def test_equal_rows_pass_in_any_order() -> None:
    assert judged([{"id": 2}, {"id": 1}], expected=[{"id": 1}, {"id": 2}]) == ("passed", None)
    assert judged([{"id": 2}], expected_any=[[{"id": 1}], [{"id": 2}]]) == ("passed", None)
    assert judged([{"id": 1}], expected=[{"id": 1}, {"id": 1}]) == ("failed", None)


def test_a_refusal_passes_only_where_the_file_has_one() -> None:
    assert judged(None, refusals=("no",), error="NOT_ALLOWED", expected=[]) == ("passed", None)
    assert judged(None, refusals=("no",), expected=[]) == ("failed", None)
    assert judged([], error="NOT_ALLOWED", expected=[]) == ("failed", None)


def test_a_listed_difference_must_have_the_listed_rows() -> None:
    assert judged([{"id": 2, "more": 1}], name="other", expected=[{"id": 1}]) == ("difference", "P1")
    assert judged([{"id": 1}], name="other", expected=[{"id": 1}]) == ("failed", None)


def test_every_listed_difference_is_a_case_with_a_rule_and_a_reason() -> None:
    files = (json.loads(path.read_text()) for path in (CASES / "rows").glob("*.json"))
    cases = {"rows": {content["name"] for content in files}, "tables": {path.name for path in (CASES / "feeds").iterdir()}}
    entries = json.loads(runner.DIFFERENCES.read_text())
    for holds, names in cases.items():
        listed = [entry for entry in entries if holds in entry]
        assert len(listed) <= -(-len(names) // 10)
        assert {entry["name"] for entry in listed} <= names
    for entry in entries:
        assert set(entry) - {"rows", "tables"} == {"name", "rule", "why"}
        assert entry["rule"]
        assert entry["why"]


def test_rows_files_and_feeds_are_found_by_what_they_hold(tmp_path: Path) -> None:
    rows = tmp_path / "deep" / "a.json"
    rows.parent.mkdir()
    rows.write_text(json.dumps({"batches": [], "schema": {}, "sequence": "s"}))
    (tmp_path / "other.json").write_text("[]")
    feed = tmp_path / "feed" / "expected.json"
    feed.parent.mkdir()
    feed.write_text(json.dumps({"format": "debezium", "steps": []}))
    assert runner.find([tmp_path]) == ([rows], [feed.parent])
    with pytest.raises(SystemExit, match="nowhere"):
        runner.find([tmp_path / "nowhere"])
