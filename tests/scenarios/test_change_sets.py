"""What is a change set and when it is there (S4)."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from pathlib import Path

import pytest
import yaml

from tests.scenarios.project import UserProject, write_change_set

TABLE = {"name": "t", "cdc": {"keys": ["id"], "sequence_by": ["seq"]}, "columns": {"id": "int", "seq": "int"}}


def _write(path: Path, *ids: int, age: int = 3600) -> None:
    write_change_set(path, [{"id": i, "seq": i} for i in ids])
    os.utime(path, (time.time() - age,) * 2)


@pytest.fixture(scope="module")
def feeds(project: UserProject) -> UserProject:
    landing = project.path / "landing"
    for feed, settings in {
        "folders": {"unit": "folder", "start_from": "landing/folders/t/a"},
        "numbered": {"expect_contiguous": True, "start_from": "set-05"},
        "settling": {"settle_seconds": 600},
        "ascending": {"unit": "folder", "list_after": True},
        "alone": {"location": "landing/alone"},  # the only table of its folder
        "deep": {"sub_folders": True, "change_set_order": "name", "start_from": "day=1/hour=09"},
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
    _write(landing / "folders/t/Z/part-1.jsonl", 9)  # below where it starts from
    _write(landing / "folders/t/Z/_SUCCESS")
    for number in (4, 5, 6, 8):
        _write(landing / f"numbered/t/set-0{number}.jsonl", number)
    for name in ("2026-01-02", "2026-01-03", "2026-01-04"):
        _write(landing / f"ascending/t/{name}/part.jsonl", int(name[-1]))
        if name != "2026-01-03":  # is still being written
            _write(landing / f"ascending/t/{name}/_SUCCESS")
    _write(landing / "deep/t/day=1/hour=08/set.jsonl", 9)
    _write(landing / "deep/t/day=1/hour=09/set.jsonl", 1)
    _write(landing / "deep/t/day=1/hour=10/set.jsonl", 2)
    _write(landing / "deep/t/set.jsonl", 3)
    _write(landing / "deep/t/_temporary/0/set.jsonl", 4)
    _write(landing / "settling/t/old.jsonl", 1)
    _write(landing / "settling/t/new.jsonl", 2, age=0)
    _write(landing / "settling/t/_hidden.jsonl", 3)
    _write(landing / "settling/t/.hidden.jsonl", 4)
    project.dbt("run", quiet=True)
    return project


def test_a_paused_table_waits_and_then_loads_all_that_came(feeds: UserProject) -> None:
    def configure(**settings: str) -> None:
        feeds.configure(
            "paused",
            settings={"format": "rows", "location": "landing/paused/{table}", **settings},
            tables=[{**TABLE, "cdc": {**TABLE["cdc"], "final_name": "final_paused"}}],
        )
        feeds.generate()

    landing = feeds.path / "landing" / "paused" / "t"
    _write(landing / "1.jsonl", 1)
    configure(paused="the source is being migrated")
    for number in (2, 3):
        result = feeds.dbt("run", "--select", "source:paused+", "cdc_change_sets", quiet=True).result
        said = {node.node.name: node.message for node in result.results}
        assert said["stg_paused__t"].startswith("PAUSED: the source is being migrated" if number == 3 else ""), said
        assert _final(feeds, "paused") == []
        _write(landing / f"{number}.jsonl", number)
    configure()
    feeds.dbt("run", "--select", "source:paused+", "cdc_change_sets", quiet=True)
    assert _final(feeds, "paused") == [1, 2, 3]


@pytest.mark.nightly  # what is folded: test_operations, R1; the command: test_commands
def test_R1_maintain_folds_what_is_older_than_a_table_keeps(feeds: UserProject) -> None:
    cdc = {"keys": ["id"], "sequence_by": ["at"], "operation": "op", "key_changes": False, "compact_after_days": 30}
    columns = {"id": "int", "at": "timestamp", "op": "string"}
    feeds.configure(
        "aged",
        settings={"format": "rows", "location": "landing/aged/{table}"},
        tables=[
            {"name": "dated", "cdc": cdc, "columns": columns},
            {"name": "counted", "cdc": cdc, "columns": {**columns, "at": "int"}},
        ],
    )
    feeds.generate()
    today = dt.datetime.now(dt.timezone.utc).isoformat()
    for table, times in {"dated": ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z", today), "counted": (1, 2, 3)}.items():
        rows = [{"op": "I", "id": id, "at": times[0]} for id in (1, 2)]
        rows += [{"op": "U", "id": 1, "at": times[1]}, {"op": "D", "id": 2, "at": times[1]}, {"op": "U", "id": 1, "at": times[2]}]
        write_change_set(feeds.path / "landing" / "aged" / table / "1.jsonl", rows)
    feeds.dbt("run", "--select", "source:aged+", "cdc_change_sets", quiet=True)
    before = feeds.rows("select * from {schema}.final_dated")

    said = feeds.done("maintain", "aged.dated", "aged.counted")
    assert "table aged.dated: 3 changes folded away, 1 stay, up to the horizon" in said
    assert "aged.counted has `compact_after_days`, and is not compacted: the time of its changes is a int" in said
    assert feeds.rows("select count(*) as n from {schema}.stg_aged__dated") == [{"n": 2}]
    assert feeds.rows("select count(*) as n from {schema}.stg_aged__counted") == [{"n": 5}]
    assert feeds.rows("select * from {schema}.final_dated") == before

    feeds.rows("truncate table {schema}.stg_aged__counted")
    said = feeds.done("maintain", "aged.counted", "aged.dated", exit_code=1)
    assert "table aged.counted is not compacted: " in said
    assert ".stg_aged__counted was restored, replaced, cloned or filled by somebody else" in said
    assert "table aged.dated: 0 changes folded away, 1 stay" in said
    # as the error says
    loads = [row["version"] for row in feeds.rows("describe history {schema}.stg_aged__counted") if row["userMetadata"]]
    feeds.rows(f"restore table {{schema}}.stg_aged__counted to version as of {max(loads)}")
    assert "and is not compacted: the time of its changes is a int" in feeds.done("maintain", "aged.counted")


@pytest.mark.nightly  # rare: a schema for the models of one feed
def test_models_in_another_schema_than_the_ledger_find_the_tables_of_control(feeds: UserProject) -> None:
    settings = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op", "old_keys": {"id": "old_id"}, "max_delete_share": 0.9}
    feeds.configure(
        "apart",
        settings={"format": "rows", "location": "landing/apart/{table}"},
        tables=[{"name": "moved", "cdc": settings, "columns": {"id": "int", "seq": "int", "op": "string", "old_id": "int"}}],
    )
    file = feeds.path / "dbt_project.yml"
    before = file.read_text()
    file.write_text(yaml.safe_dump({**yaml.safe_load(before), "models": {"user_project": {"apart": {"+schema": "apart"}}}}))
    feeds.generate()
    landing = feeds.path / "landing" / "apart" / "moved"
    changes = [{"op": "I", "id": 1}, {"op": "U", "id": 2, "old_id": 1}, {"op": "I", "id": 7}, {"op": "D", "id": 2}]
    for seq, change in enumerate(changes):
        write_change_set(landing / f"{seq}.jsonl", [{"seq": seq, **change}])
        feeds.dbt("run", "--select", "source:apart+", "cdc_change_sets", quiet=True)
    assert feeds.rows("select id from {schema}_apart.final_moved") == [{"id": 7}]
    (history,) = feeds.rows("select * from {schema}_apart.hist_apart__moved where id = 2")
    assert (history["valid_from"], history["valid_to"]) == (1, 3)
    runs = "select rows_read from {schema}.cdc_runs where `table` = 'int_apart__moved_keys' order by finished_at"
    assert [row["rows_read"] > 0 for row in feeds.rows(runs)] == [True, False, True]  # from the first key change on
    file.write_text(before)


def _final(project: UserProject, feed: str) -> list[int]:
    return sorted(row["id"] for row in project.rows(f"select id from {{schema}}.final_{feed}"))


def test_S4_a_change_set_is_taken_when_it_is_there(feeds: UserProject) -> None:
    assert _final(feeds, "folders") == [1, 2]
    assert _final(feeds, "numbered") == [5, 6]
    held = {row["table"]: row["why"] for row in json.loads(feeds.done("status", "--json")) if row["state"] == "held"}
    assert list(held) == ["numbered.t"]
    assert "the first of them set-08.jsonl: by `expect_contiguous` number 7 has to come first" in held["numbered.t"][0]
    assert _final(feeds, "settling") == [1]
    assert _final(feeds, "alone") == [1, 2]
    assert _final(feeds, "ascending") == [2]  # 4 is there, and would hide 3
    assert _final(feeds, "deep") == [1, 2, 3]
    landing = feeds.path / "landing"
    _write(landing / "deep/t/day=1/hour=11/set.jsonl", 5)
    _write(landing / "folders/t/b/_SUCCESS")
    _write(landing / "ascending/t/2026-01-03/_SUCCESS")
    _write(landing / "ascending/t/2026-01-01/part.jsonl", 1)
    _write(landing / "ascending/t/2026-01-01/_SUCCESS")
    _write(landing / "numbered/t/set-07.jsonl", 7)
    _write(landing / "numbered/t/set-06.jsonl", 6, 60)  # rewritten: it waits for none, and none waits for it
    _write(landing / "numbered/t/set-10.jsonl", 10)
    os.utime(landing / "settling/t/new.jsonl", (time.time() - 3600,) * 2)
    feeds.dbt("run", quiet=True)
    assert _final(feeds, "folders") == [1, 2, 3]
    assert _final(feeds, "ascending") == [2, 3, 4]  # 1 came below what was recorded
    assert _final(feeds, "numbered") == [5, 6, 7, 8, 60]
    assert _final(feeds, "settling") == [1, 2]
    assert _final(feeds, "deep") == [1, 2, 3, 5]
    recorded = feeds.rows("select change_set from {schema}.cdc_change_sets where feed = 'deep' order by batch_id")
    names = [row["change_set"].partition("/deep/t/")[2] for row in recorded]
    assert names == ["day=1/hour=09/set.jsonl", "day=1/hour=10/set.jsonl", "set.jsonl", "day=1/hour=11/set.jsonl"]


def test_S1_the_ledger_numbers_every_change_set_once(feeds: UserProject) -> None:
    ledger = feeds.rows("select * from {schema}.cdc_change_sets order by batch_id")
    assert [row["batch_id"] for row in ledger] == list(range(1, len(ledger) + 1))
    assert {row["unit"] for row in ledger if row["feed"] == "folders"} == {"folder"}
    assert all(row["size"] > 0 and row["status"] == "recorded" for row in ledger)
