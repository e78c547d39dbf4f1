"""What is a change set and when it is there (S4)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.scenarios.project import UserProject

TABLE = {"name": "t", "cdc": {"keys": ["id"], "sequence_by": ["seq"]}, "columns": {"id": "int", "seq": "int"}}


def _write(path: Path, *ids: int, age: int = 3600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": i, "seq": i}) + "\n" for i in ids))
    os.utime(path, (time.time() - age,) * 2)


@pytest.fixture(scope="module")
def feeds(project: UserProject) -> UserProject:
    landing = project.path / "landing"
    for feed, settings in {
        "folders": {"unit": "folder"},
        "numbered": {"expect_contiguous": True, "start_from": "set-05"},
        "settling": {"settle_seconds": 600},
        "alone": {"location": "landing/alone"},  # the only table of its folder
    }.items():
        project.configure(
            feed,
            settings={"format": "rows", "location": f"landing/{feed}/{{table}}", **settings},
            tables=[{**TABLE, "cdc": {**TABLE["cdc"], "final_name": f"final_{feed}"}}],
        )
        (landing / feed / "t").mkdir(parents=True)
    _write(landing / "alone" / "set.jsonl", 1, 2)
    project.generate()
    _write(landing / "folders/t/a/part-1.jsonl", 1)
    _write(landing / "folders/t/a/part-2.jsonl", 2)
    _write(landing / "folders/t/a/_SUCCESS")
    _write(landing / "folders/t/b/part-1.jsonl", 3)
    for number in (4, 5, 6, 8):
        _write(landing / f"numbered/t/set-0{number}.jsonl", number)
    _write(landing / "settling/t/old.jsonl", 1)
    _write(landing / "settling/t/new.jsonl", 2, age=0)
    _write(landing / "settling/t/_hidden.jsonl", 3)
    _write(landing / "settling/t/.hidden.jsonl", 4)
    project.dbt("run", quiet=True)
    return project


def _final(project: UserProject, feed: str) -> list[int]:
    return sorted(row["id"] for row in project.rows(f"select id from {{schema}}.final_{feed}"))


def test_S4_a_change_set_is_taken_when_it_is_there(feeds: UserProject) -> None:
    assert _final(feeds, "folders") == [1, 2]
    assert _final(feeds, "numbered") == [5, 6]
    assert _final(feeds, "settling") == [1]
    assert _final(feeds, "alone") == [1, 2]
    landing = feeds.path / "landing"
    _write(landing / "folders/t/b/_SUCCESS")
    _write(landing / "numbered/t/set-07.jsonl", 7)
    os.utime(landing / "settling/t/new.jsonl", (time.time() - 3600,) * 2)
    feeds.dbt("run", quiet=True)
    assert _final(feeds, "folders") == [1, 2, 3]
    assert _final(feeds, "numbered") == [5, 6, 7, 8]
    assert _final(feeds, "settling") == [1, 2]


def test_S1_the_ledger_numbers_every_change_set_once(feeds: UserProject) -> None:
    ledger = feeds.rows("select * from {schema}.cdc_change_sets order by batch_id")
    assert [row["batch_id"] for row in ledger] == list(range(1, len(ledger) + 1))
    assert {row["unit"] for row in ledger if row["feed"] == "folders"} == {"folder"}
    assert all(row["size"] > 0 and row["status"] == "recorded" for row in ledger)
