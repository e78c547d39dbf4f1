"""What a person does to loaded tables: accept, retract, replay, compact, erase; and what is held back until then."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import NIGHTLY, after
from tests.scenarios.project import UserProject, write_change_set

COLUMNS = {"op": "string", "seq": "int", "id": "int", "old_id": "int", "n": "int"}
PLAIN = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op", "except_columns": ["op", "old_id", "seq"]}
MOVING = {**PLAIN, "old_keys": {"id": "old_id"}}
TRUNCATED = {"truncated_when": "op = 'T'"}
SOFT = {"delete_mode": "soft", "created_at": "made_at", "updated_at": "told_at"}
# each has a twin that is not compacted
COMPACTED: dict[str, dict[str, Any]] = {
    "told_once": {**PLAIN, "created_at": "made_at", "set_on_insert": ["n"], "ignore_null_updates": ["m"]},
    "moving": {**MOVING, **TRUNCATED},
    "soft": {**MOVING, **TRUNCATED, **SOFT, "split_key_changes": True},
}
TWINS = {name: f"{name}_twin" for name in COMPACTED}
MORE_COLUMNS = {
    "nested": {"s": "struct<a:int,b:int>"},
    **{name: {"m": "int"} for names in TWINS.items() for name in names},
}


class Feed:
    def __init__(self, project: UserProject, tables: dict[str, dict[str, Any]]) -> None:
        self.project, self.command, self.tables = project, project.command, tables
        self.folder = project.path / "landing"
        self.sequence = 0
        for table in tables:
            (self.folder / table).mkdir(parents=True)
        self.configure()

    def configure(self, **settings: Any) -> None:
        feed = {"format": "rows", "location": f"{self.folder}/{{table}}", "change_set_order": "name", **settings}
        declared = [
            {"name": name, "cdc": cdc, "columns": COLUMNS | MORE_COLUMNS.get(name, {})} for name, cdc in self.tables.items()
        ]
        self.project.configure("ops", settings=feed, tables=declared)
        self.project.generate()

    def row(self, id: int | None, n: Any = 1, op: str = "U", **values: Any) -> dict[str, Any]:
        self.sequence += 1
        return {"op": op, "seq": self.sequence, "id": id, "old_id": None, "n": n, **values}

    def deliver(self, table: str, name: str, *rows: dict[str, Any] | str) -> Path:
        return write_change_set(self.folder / table / f"{name}.jsonl", rows)

    def run(self, *tables: str) -> Any:
        """A run of these tables."""
        models = [name for table in tables for name in (f"+final_{table}", f"hist_ops__{table}")]
        return self.select("cdc_change_sets", *models)

    def select(self, *models: str) -> Any:
        return self.project.dbt("run", "--select", *models, quiet=True)

    def final(self, table: str) -> dict[int, Any]:
        return self.project.by_id(f"select id, n from {{schema}}.final_{table}")

    def history(self, table: str) -> list[tuple[Any, ...]]:
        """(id, n, valid_from, valid_to) of every version."""
        rows = self.project.rows(f"select id, n, valid_from, valid_to from {{schema}}.hist_ops__{table} order by 1, 3")
        return [tuple(row.values()) for row in rows]

    def batch(self, name: str) -> int:
        """The batch id of a change set, <table>/<name>."""
        ledger = f"select max(batch_id) as b from {{schema}}.cdc_change_sets where change_set like '%/{name}.jsonl'"
        return self.project.rows(ledger)[0]["b"]

    def tested(self, *tables: str) -> None:
        """Every generic test of these tables passes."""
        models = ("stg_ops__{}", "int_ops__{}_keys", "hist_ops__{}", "final_{}")
        names = [model.format(table) for table in tables for model in models]
        self.project.dbt("test", "--select", *names, "--exclude", "tag:each_run", quiet=True)

    def done(self, *arguments: object) -> str:
        result = self.command(*arguments)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    def refused(self, *arguments: object) -> str:
        result = self.command(*arguments)
        assert result.exit_code == 1, result.output
        return str(result.stderr)


@pytest.fixture(scope="module", autouse=True)
def erase_secret() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DELTA_CDC_ERASE_SECRET", ERASE_SECRET)
        yield


@pytest.fixture(scope="module")
def feed(project: UserProject) -> Iterator[Feed]:
    aliased = {"user_project": {"ops": {"staging": {"stg_ops__nested": {"+alias": "changes_of_nested"}}}}}
    file = project.path / "dbt_project.yml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "models": aliased}))
    feed = Feed(
        project,
        {
            "errors": {**MOVING, "max_errors": 0.5},
            "twin": MOVING,
            "folded": {**PLAIN, "truncated_when": "op = 'T'"},
            "deletes": {**PLAIN, "max_delete_share": 0.5, "truncated_when": "op = 'T'"},
            "emptied": PLAIN,
            "made": {**PLAIN, "expressions": {"n": "n * 100"}},
            "moments": {**PLAIN, "truncated_when": "op = 'T'", "occurred_at": "n"},
            "waits": {**MOVING, "max_errors": 0.5},
            "waits_too": {**PLAIN, "max_errors": 0.5, "history": "table", "partition_by": ["n"], "apply": "replace_partitions"},
            "nested": {**PLAIN, "ignore_null_updates": ["s"]},
            "stays": MOVING,
            "vacated": {**MOVING, "partition_by": ["n"], "apply": "replace_partitions"},
            **COMPACTED,
            **{TWINS[name]: settings for name, settings in COMPACTED.items()},
        },
    )
    for table in ("errors", "deletes", "folded"):
        feed.deliver(table, "0001", *(feed.row(id) for id in range(1, 5)))
    feed.deliver("twin", "0001", (feed.folder / "errors/0001.jsonl").read_text())
    feed.run("errors", "twin", "folded", "deletes")
    return feed


def test_Q2_Q4_a_change_set_beyond_its_limit_is_held_until_it_is_accepted_once(feed: Feed) -> None:
    feed.deliver("errors", "0002", feed.row(None), feed.row(None), feed.row(14, old_id=4))
    feed.deliver("deletes", "0002", *(feed.row(id, op="D") for id in (1, 2, 3)), feed.row(5))
    before = {table: (feed.final(table), feed.history(table)) for table in ("errors", "deletes")}
    feed.run("errors", "deletes")
    feed.deliver("errors", "0003", feed.row(15))
    feed.deliver("deletes", "0003", feed.row(None, op="T"), feed.row(1, n=7))
    result = feed.run("errors", "deletes")
    assert before == {table: (feed.final(table), feed.history(table)) for table in ("errors", "deletes")}
    staged = feed.project.rows("select count(*) as n, count(_cdc_error) as e from {schema}.stg_ops__errors")[0]
    assert (staged["n"], staged["e"]) == (8, 2)
    batch = {name: feed.batch(name) for name in ("errors/0002", "errors/0003", "deletes/0002", "deletes/0003")}
    messages = {r.node.name: r.message for r in result.result.results}
    held = f"HELD batch {batch['errors/0002']}: 2 of its 3 rows cannot be used, `max_errors` is 0.5"
    assert messages["final_errors"] == held
    runs = feed.project.rows("select * from {schema}.cdc_runs where status = 'held' and `table` = 'final_deletes'")
    assert len(runs) == 2
    assert "it would delete 3 of the 4 live rows, `max_delete_share` is 0.5" in runs[-1]["error"]
    assert "and 1 more held after it" not in runs[-1]["error"]

    assert f"Held of it: {batch['errors/0002']} (2 of its 3 rows" in feed.refused("accept", "errors", batch["errors/0003"])
    said = feed.done("accept", "ops.deletes", batch["deletes/0002"])
    assert f"batch {batch['deletes/0003']} is held too" in said
    feed.done("accept", "errors", batch["errors/0002"])
    assert "was accepted already" in feed.refused("accept", "errors", batch["errors/0002"])
    feed.run("errors", "deletes")
    assert feed.final("errors") == {1: 1, 2: 1, 3: 1, 14: 1, 15: 1}
    assert feed.final("deletes") == {4: 1, 5: 1}

    feed.done("accept", "deletes", batch["deletes/0003"])
    feed.run("errors", "deletes")
    assert feed.final("deletes") == {1: 7}
    versions = feed.project.rows("select version from {schema}.cdc_runs where `table` = 'final_deletes' and status = 'success'")
    assert len(versions) >= 2
    assert feed.refused("accept", "delets", 1).startswith("There is no table `delets`. Did you mean `ops.deletes`?")


@after(test_Q2_Q4_a_change_set_beyond_its_limit_is_held_until_it_is_accepted_once)
def test_S9_a_retracted_change_set_leaves_no_trace_in_history_and_final(feed: Feed) -> None:
    """The twin is given all but the bad change set."""
    for name in ("0002", "0003"):
        feed.deliver("twin", name, (feed.folder / f"errors/{name}.jsonl").read_text())
    feed.sequence = 100
    before = [feed.row(1, n=3), feed.row(5), feed.row(6)]
    for table in ("twin", "errors"):
        feed.deliver(table, "0010", *before)
    bad = [feed.row(25, old_id=5, n=9), feed.row(1, n=9), feed.row(2, op="D"), feed.row(30), feed.row(6, n=9)]
    feed.deliver("errors", "0011", *bad)
    again = [feed.row(5, n=4), bad[1], feed.row(7)]
    for table in ("twin", "errors"):
        feed.deliver(table, "0012", *again)
    feed.run("errors", "twin")
    assert feed.final("errors") != feed.final("twin")
    batch = feed.batch("errors/0011")
    # as if the first try had ended after its first commit
    feed.project.rows(f"update {{schema}}.cdc_change_sets set status = 'retracted' where batch_id = {batch}")
    said = feed.done("retract", "errors/0011.jsonl")
    assert "table ops.errors: 5 rows marked, 1 restored from later change sets." in said
    feed.run("errors", "twin")
    assert (feed.final("errors"), feed.history("errors")) == (feed.final("twin"), feed.history("twin"))
    assert "was taken back already" in feed.done("retract", batch)
    told = {row["table"]: row.get("change_set") for row in json.loads(feed.done("status", "--json"))}
    assert told["ops.errors"].endswith("/errors/0012.jsonl")
    ledger = feed.project.rows(f"select status, retracted_at from {{schema}}.cdc_change_sets where batch_id = {batch}")[0]
    assert ledger["status"] == "retracted"

    good = [bad[0], feed.row(8)]
    for table in ("twin", "errors"):
        feed.deliver(table, "0013", *good)
    feed.run("errors", "twin")
    assert feed.final("errors")[25] == 9
    assert (feed.final("errors"), feed.history("errors")) == (feed.final("twin"), feed.history("twin"))
    assert f"Nearest: {batch} (" in feed.refused("retract", "0011.json")
    assert "There are several change sets `0012.jsonl`. Give the batch id of one: " in feed.refused("retract", "0012.jsonl")


@pytest.mark.nightly  # a held change set: the test above but one; a retraction: the one above
def test_S9_Q4_a_retraction_counts_while_a_later_change_set_is_held(feed: Feed) -> None:
    tables = ("waits", "waits_too")
    for table in tables:
        feed.deliver(table, "0001", feed.row(1), feed.row(2), feed.row(3), feed.row(4))
        feed.deliver(table, "0002", feed.row(1, n=9), feed.row(12, old_id=2))
    feed.run(*tables)
    for table in tables:
        feed.deliver(table, "0003", feed.row(None), feed.row(None))
    feed.run(*tables)
    for table in tables:
        feed.done("retract", f"{table}/0002.jsonl")
    feed.run(*tables)

    def made() -> list[int]:
        names = [f"{layer}{table}" for table in tables for layer in ("final_", "hist_ops__")] + ["int_ops__waits_keys"]
        versions = feed.project.versions()
        return [versions[name] for name in names if name in versions]

    before = made()
    assert len(before) == 4
    assert [feed.final(table) for table in tables] == [{1: 1, 2: 1, 3: 1, 4: 1}] * 2
    feed.tested(*tables)
    feed.run(*tables)
    assert made() == before
    for table in tables:
        feed.done("accept", table, feed.batch(f"{table}/0003"))
        feed.deliver(table, "0004", feed.row(1, n=5))
    feed.run(*tables)
    assert [feed.final(table) for table in tables] == [{1: 5, 2: 1, 3: 1, 4: 1}] * 2


@pytest.mark.nightly  # nothing new is nothing done: test_rows, S6
def test_S6_a_key_change_that_changes_no_row_is_worked_in_once(feed: Feed) -> None:
    for table in ("vacated", "stays"):
        feed.deliver(table, "0001", feed.row(1), feed.row(2, old_id=1))
    feed.run("vacated", "stays")
    feed.deliver("vacated", "0002", feed.row(1, op="D"))
    feed.deliver("stays", "0002", feed.row(2))
    feed.run("vacated", "stays")
    assert feed.final("vacated") == feed.final("stays") == {2: 1}
    ran = feed.run("vacated", "stays").result.results
    reports = {result.node.name: result.adapter_response.get("report") or {} for result in ran}
    for name in ("final_vacated", "final_stays"):
        assert "mode" not in reports[name]  # what a final that has something to do says


@after(test_S9_a_retracted_change_set_leaves_no_trace_in_history_and_final)
def test_Q3_replayed_rows_count_from_where_they_arrived(feed: Feed) -> None:
    """The twin is told from the start what the others learn late."""
    first = [feed.row(1, n=11, op="put"), feed.row(26, old_id=25, n=12, op="put"), *(feed.row(id) for id in (7, 51, 52, 53))]
    second = [feed.row(1, n=14), feed.row(41, n=15)]
    feed.deliver("errors", "0020", *first, feed.row(50, n=50, op="?"))
    feed.deliver("twin", "0020", *({**row, "op": "U"} for row in first))
    for table in ("errors", "twin"):
        feed.deliver(table, "0021", *second)
    feed.run("errors", "twin")
    assert feed.final("errors") != feed.final("twin")
    assert "table ops.errors: nothing to replay; still quarantined: 3 unknown_operation" in feed.done("replay", "errors")
    feed.configure(operation_codes={"put": "U"})
    said = feed.done("replay")
    assert "table ops.errors: 2 changes replayed, as batch " in said
    assert "still quarantined: 2 null_key, 1 unknown_operation" in said
    assert "table ops.twin: nothing to replay; still quarantined: 2 null_key." in said
    assert "table ops.deletes: nothing is quarantined." in said
    feed.run("errors", "twin")
    assert feed.final("errors")[26] == 12
    assert (feed.final("errors"), feed.history("errors")) == (feed.final("twin"), feed.history("twin"))
    # no key of these was known before: what is resolved of them is appended
    commits = feed.project.rows("describe history {schema}.int_ops__errors_keys")
    assert "WRITE" in {commit["operation"] for commit in commits}


@pytest.mark.nightly  # what is replayed: the test above; what came again: test_S9_a_retracted_change_set_…
def test_A8_S9_Q3_a_truncate_may_be_replayed_and_what_came_again_outlives_a_retraction(feed: Feed) -> None:
    twice = feed.row(8, op="odd")
    feed.deliver("emptied", "0001", feed.row(1), twice)
    feed.deliver("emptied", "0002", feed.row(None, op="wipe"), feed.row(7), twice)
    feed.run("emptied")
    assert feed.final("emptied") == {1: 1, 7: 1}
    said = feed.done("retract", feed.folder / "emptied/0001.jsonl")
    assert "table ops.emptied: 2 rows marked, 1 restored from later change sets." in said
    feed.configure(operation_codes={"put": "U", "odd": "U"})
    assert "table ops.emptied: 1 changes replayed" in feed.done("replay", "emptied")
    feed.run("emptied")
    assert feed.final("emptied") == {7: 1, 8: 1}
    feed.configure(operation_codes={"put": "U", "odd": "U", "wipe": "T"})
    assert "table ops.emptied: 1 changes replayed" in feed.done("replay", "emptied")
    feed.run("emptied")
    assert feed.final("emptied") == {7: 1}


@pytest.mark.nightly  # what expressions make is no part of staging: test_columns, E7
def test_R1_E7_compaction_folds_what_came_and_not_what_expressions_made(feed: Feed) -> None:
    feed.sequence = 900
    absent = {"op": "U", "seq": 903, "id": 1}
    feed.deliver("made", "0001", feed.row(1, n=5), feed.row(2, n=6), absent, {"op": "D", "seq": 910, "id": 2})
    feed.run("made")
    for _ in range(2):
        feed.done("compact", "made", "--before", 950)
        feed.run("made")
        assert (feed.final("made"), [row[:2] for row in feed.history("made")]) == ({1: 500}, [(1, 500)])
    until = feed.project.rows("show tblproperties {schema}.stg_ops__made ('delta_cdc.folded_until')")
    assert [row["value"] for row in until] == ["910"]


def test_R1_a_compacted_staging_gives_the_same_final(feed: Feed) -> None:
    def absent(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key != "n"}

    def run() -> None:
        feed.run("folded")

    def staged() -> int:
        return int(feed.project.rows("select count(*) as n from {schema}.stg_ops__folded where _cdc_error is null")[0]["n"])

    feed.sequence = 1000
    feed.deliver(
        "folded",
        "0010",
        feed.row(9),
        feed.row(None, op="T"),
        *(feed.row(id, n=id) for id in (1, 2, 3, 3)),
        absent(feed.row(1)),
        feed.row(2, op="D"),
        absent(feed.row(3)),
        feed.row(4, n=4),
        feed.row(4, op="D"),
    )
    run()
    feed.deliver("folded", "0011", feed.row(5, n=5))
    feed.sequence = 1100
    feed.deliver("folded", "0012", absent(feed.row(1)), feed.row(3, op="D"), absent(feed.row(6)))
    feed.select("cdc_change_sets", "stg_ops__folded")
    assert "final has not taken all that is staged" in feed.refused("compact", "folded", "--before", 1100)
    run()
    before, versions = feed.final("folded"), feed.history("folded")
    assert before == {1: 1, 5: 5, 6: None}
    assert "`soon` is no int" in feed.refused("compact", "folded", "--before", "soon")
    said = feed.done("compact", "folded", "--before", 1100)
    assert "table ops.folded: 13 changes folded away, 3 stay, up to the horizon" in said
    assert (staged(), feed.final("folded")) == (6, before)
    feed.tested("folded")
    assert [version for version in feed.history("folded") if version[3] is None] == [
        (id, n, {1: 1007}.get(id, since), until) for id, n, since, until in versions if until is None
    ]

    late, above = feed.row(1, n=77), absent(feed.row(3))
    feed.deliver("folded", "0013", {**late, "seq": 1001}, {**above, "seq": 1101}, feed.row(5, n=6))
    run()
    assert feed.final("folded") == {1: 1, 5: 6, 6: None}
    marked = feed.project.rows("select _cdc_error from {schema}.stg_ops__folded where _cdc_error is not null")
    assert marked == [{"_cdc_error": "too_late"}]
    assert feed.done("compact", "folded", "--before", 1100).startswith("table ops.folded: 0 changes folded away")
    assert "was loaded before the table was compacted" in feed.refused("retract", "folded/0010.jsonl")
    feed.configure(location=f"{feed.folder}/elsewhere/{{table}}")
    assert "was loaded before the table was compacted" in feed.refused("retract", "folded/0010.jsonl")
    feed.configure()
    asked = "select id, n from ({{{{ delta_cdc.as_of(ref('final_folded'), {}) }}}}) order by id"
    shown = feed.project.dbt("show", "--inline", asked.format(1101), quiet=True).result.results[0].agate_table
    assert [tuple(row.values()) for row in shown.rows] == [(1, 1), (3, 3), (5, 5)]
    refused = feed.project.try_dbt("show", "--inline", asked.format(1005), quiet=True)
    assert "is compacted up to 1012" in f"{refused.exception} {feed.project.failures(refused)}"


def _some_changes(feed: Feed, chance: random.Random, table: str, moved: range) -> Iterator[dict[str, Any]]:
    """Random changes at a dozen keys, some of which are moved: in one table by a delete and an insert at one position."""
    for _ in range(80):
        id = chance.randint(1, 12)
        row = feed.row(id, chance.randint(1, 99), chance.choices("IUDT", [4, 12, 4, 0.3])[0], m=chance.choice([None, 1, 2, 3]))
        if row["op"] == "T" and "truncated_when" not in COMPACTED[table]:
            continue
        if id in moved and COMPACTED[table].get("split_key_changes"):
            yield {**row, "op": "D"}
            row |= {"id": chance.choice(moved), "op": "I"}
        elif id in moved and row["op"] == "U":
            row["old_id"] = chance.choice(moved)
        yield {name: value for name, value in row.items() if name not in chance.choices(["", "n", "m"], [4, 1, 1])}


@pytest.mark.nightly  # what is folded, and what comes late: the test above
@pytest.mark.parametrize("seed", range(int(os.environ.get("DELTA_CDC_COMPACTIONS", "1"))))
def test_R1_a_compacted_table_goes_on_as_its_twin_does(feed: Feed, seed: int) -> None:
    chance = random.Random(seed)
    last = {}

    def deliver(name: str, moved: range) -> None:
        for table, twin in TWINS.items():
            path = feed.deliver(table, name, *_some_changes(feed, chance, table, moved))
            feed.deliver(twin, name, path.read_text())
            last[table] = feed.sequence
        feed.run(*TWINS.keys(), *TWINS.values())

    def found(table: str) -> tuple[list[dict[str, Any]], ...]:
        current = f"select id, n, m from {{schema}}.hist_ops__{table} where is_current order by id"
        return feed.project.rows(f"select * from {{schema}}.final_{table} order by id"), feed.project.rows(current)

    def compare() -> None:
        for table, twin in TWINS.items():
            assert found(table) == found(twin), table

    def staged(table: str) -> int:
        return int(feed.project.rows(f"select count(*) as n from {{schema}}.stg_ops__{table}")[0]["n"])

    deliver(f"{seed}_0", range(9, 13))
    for table, twin in TWINS.items():
        said = feed.done("compact", table, "--before", last[table] - 10)
        assert staged(table) < staged(twin), said
    compare()
    deliver(f"{seed}_1", range(1, 13))
    compare()


@pytest.mark.nightly  # structs field by field, and other spellings: test_rows
def test_R1_S9_P1_fields_and_other_spellings_outlive_retraction_and_compaction(feed: Feed) -> None:
    def row(id: int, s: dict[str, Any] | None, op: str = "U", n: int = 1) -> dict[str, Any]:
        spelled = {**feed.row(id, n=n, op=op), "s": s}
        spelled["N"] = spelled.pop("n")
        return spelled

    def rows() -> list[dict[str, Any]]:
        return feed.project.rows("select id, n, s from {schema}.final_nested order by id")

    twice = row(1, {"a": 9, "b": None})
    feed.deliver("nested", "0001", row(1, {"a": 1, "b": 2}, op="I"), row(2, {"a": None, "b": None}, op="I"), row(2, None, n=5))
    feed.deliver("nested", "0002", {**twice, "seq": feed.sequence + 1}, row(2, {"a": None, "b": 7}))
    feed.deliver("nested", "0003", {**twice, "seq": feed.sequence}, row(3, {"a": None, "b": 4}, n=8))
    feed.run("nested")
    structs = ({"a": 9, "b": 2}, {"a": None, "b": None}, {"a": None, "b": 4})
    expected = [{"id": id, "n": n, "s": s} for id, n, s in zip((1, 2, 3), (1, 5, 8), structs, strict=True)]
    assert rows()[1]["s"] == {"a": None, "b": 7}
    assert "2 rows marked, 1 restored from later change sets." in feed.done("retract", "nested/0002.jsonl")
    feed.run("nested")
    assert rows() == expected
    versions = feed.history("nested")
    assert "stay, up to the horizon" in feed.done("compact", "nested", "--before", feed.sequence + 1)
    assert (rows(), feed.history("nested")[-1]) == (expected, versions[-1])


@pytest.mark.nightly  # H4 of random changes: test_rows
def test_H4_A8_a_truncate_counts_when_it_was_seen_as_in_history(feed: Feed) -> None:
    feed.deliver(
        "moments",
        "0001",
        feed.row(1, n=1),
        feed.row(2, n=5),
        feed.row(2, n=10),
        feed.row(None, n=8, op="T"),
        feed.row(1, n=8),
        feed.row(None, n=20, op="T"),
        feed.row(1, n=18),
    )
    feed.run("moments")
    feed.project.generate()  # dbt keeps an inline query that failed in the manifest
    asked = " union all ".join(
        f"select {at} as at, id, n from ({{{{ delta_cdc.as_of(ref('final_moments'), {at}) }}}})" for at in (1, 7, 9, 19, 20)
    )
    shown = feed.project.dbt("show", "--inline", asked, "--limit", "-1", quiet=True).result.results[0].agate_table
    found = sorted(tuple(row.values()) for row in shown.rows)
    assert found == [(1, 1, 1), (7, 1, 1), (7, 2, 5), (9, 1, 8), (9, 2, 5), (19, 1, 8), (20, 1, 18)]
    in_history = feed.project.rows(
        "select at, id, n from {schema}.hist_ops__moments, values (1), (7), (9), (19), (20) as t(at)"
        " where valid_from <= at and (valid_to is null or at < valid_to) order by at, id"
    )
    assert found == [tuple(row.values()) for row in in_history]


SECRET = "Unmistakable Ω-Person"
ERASE_SECRET = "hush-hush-0192"


class People:
    """A feed that mixes tables: wal2json messages of `person` and another one."""

    def __init__(self, project: UserProject) -> None:
        self.project = project
        self.folder = project.path / "people"
        self.folder.mkdir()
        cdc = {"format": "wal2json_v2", "location": str(self.folder), "change_set_order": "name"}
        columns = {"id": "int", "name": "string"}
        project.configure(
            "people",
            settings=cdc,
            tables=[{"name": name, "cdc": {"keys": ["id"]}, "columns": columns} for name in ("person", "pet")],
        )
        project.generate()

    def message(self, action: str, lsn: int, id: int, name: str | None, before: int | None = None, table: str = "person") -> str:
        columns = [{"name": "id", "value": id}, {"name": "name", "value": name}]
        message = {
            "action": action,
            "schema": "public",
            "table": table,
            "lsn": f"0/{lsn:X}",
            "xid": lsn,
            "timestamp": "2026-01-01 00:00:00+00",
            "columns": columns,
        }
        if before is not None or action == "D":
            message["identity"] = [{"name": "id", "value": before if before is not None else id}]
        return json.dumps({key: value for key, value in message.items() if key != "columns" or action != "D"}) + "\n"

    def deliver(self, name: str, *messages: str) -> None:
        write_change_set(self.folder / f"{name}.jsonl", messages)

    def files_with(self, text: str) -> list[str]:
        """The files of the feed's tables that hold a text, as bytes or in a Parquet column; log entries too."""
        found = []
        spark = self.project.spark()
        for folder in (*self.project.tables.glob("*person*"), self.project.tables / "raw_people"):
            found += self._files_with(spark, folder, text)
        return found

    @staticmethod
    def _files_with(spark: Any, folder: Path, text: str) -> list[str]:
        files = [p for p in folder.rglob("*") if p.is_file() and p.stat().st_size]
        written = (text.encode(), json.dumps(text)[1:-1].encode())
        found = {p for p in files if any(each in p.read_bytes() for each in written)}
        parquet = [p for p in files if p.suffix == ".parquet" and not p.name.startswith(".")]
        for inside in (True, False):  # checkpoints, and data
            paths = [str(p) for p in parquet if (p.parent.name == "_delta_log") is inside]
            if paths:
                rows = spark.read.option("mergeSchema", "true").parquet(*paths)
                rows = rows.selectExpr("_metadata.file_name as file", "to_json(struct(*)) as row")
                names = {row.file for row in rows.where(rows.row.contains(text)).select("file").distinct().collect()}
                found |= {p for p in parquet if p.name in names}
        return [str(p.relative_to(folder.parent)) for p in sorted(found)]


@pytest.fixture(scope="module")
def people(feed: Feed) -> People:
    return People(feed.project)


def test_R2_an_erased_person_is_in_no_file_and_stays_erased(feed: Feed, people: People) -> None:
    message = people.message
    old = [message("I", 10, 1, SECRET), message("U", 20, 5, SECRET, before=1), message("I", 30, 2, "Bea")]
    people.deliver("0001", *old, message("I", 31, 1, "Rex", table="pet"))
    feed.select("cdc_change_sets", "+final_person", "+final_pet")
    people.deliver("0002", *old[:2], message("U", 40, 5, SECRET + "!"), message("U", 50, 6, "Bea", before=2))
    feed.select("cdc_change_sets", "+final_person", "+final_pet")
    assert feed.project.rows("select id, name from {schema}.final_person order by id") == [
        {"id": 5, "name": SECRET + "!"},
        {"id": 6, "name": "Bea"},
    ]
    places = {place.split("/")[0] for place in people.files_with(SECRET)}
    assert places == {"raw_people", "stg_people__person", "final_person"}

    assert "There is no table `persn`. Did you mean `people.person`?" in feed.refused("erase", "persn", 1, "--yes")
    assert "erase takes a value for each of id; 2 given" in feed.refused("erase", "person", 1, 2, "--yes")
    assert "what is given for id is not of its type, int" in feed.refused("erase", "person", "x", "--yes")
    assert "there is no change at that key (id)" in feed.refused("erase", "person", 99, "--yes")
    asked = feed.command("erase", "person", 1)  # nobody answers
    assert "table people.person: 3 changes of the row, under 2 keys, would go." in asked.stdout, asked.output
    said = feed.done("erase", "person", 1, "--yes")
    assert "table people.person: 3 changes erased" in said
    assert "people/0002.jsonl (batch" in said
    assert people.files_with(SECRET) == []
    assert feed.project.rows("select id, name from {schema}.final_person") == [{"id": 6, "name": "Bea"}]
    history = feed.project.rows("select id, name from {schema}.hist_people__person")
    assert {row["name"] for row in history} == {"Bea"}

    people.deliver("0003", *old, message("U", 45, 5, "Cid"), message("I", 60, 1, "Dan"))
    feed.select("cdc_change_sets", "+final_person")
    assert feed.project.rows("select id, name from {schema}.final_person order by id") == [
        {"id": 1, "name": "Dan"},
        {"id": 5, "name": "Cid"},
        {"id": 6, "name": "Bea"},
    ]
    for table in ("raw_people", "stg_people__person"):
        assert SECRET not in str(feed.project.rows(f"select * from {{schema}}.{table}"))
    marked = feed.project.rows("select raw from {schema}.cdc_quarantine where source_table = 'person' and error = 'erased'")
    assert [row["raw"] is None for row in marked].count(False) == 2
    paths = [path for name in ("logs", "target") for path in (feed.project.path / name).rglob("*") if path.is_file()]
    assert "stg_people__person.sql" in {path.name for path in paths if b"cdc_erase_secret" in path.read_bytes()}
    assert [path for path in paths if ERASE_SECRET.encode() in path.read_bytes()] == []
    assert people.files_with(ERASE_SECRET) == []
    assert feed.project.rows("select name from {schema}.final_pet") == [{"name": "Rex"}]
    feed.project.dbt("test", "--select", "final_person", "hist_people__person", "--exclude", "tag:each_run", quiet=True)


@pytest.mark.nightly  # the test above: a feed that mixes tables, and keys that change
def test_R2_what_final_has_not_taken_yet_is_erased_too(feed: Feed) -> None:
    assert 1 in feed.final("deletes")  # keys do not change there, and there is no raw table
    feed.deliver("deletes", "0099", feed.row(1, n=99), feed.row(77, n=1))
    feed.select("cdc_change_sets", "stg_ops__deletes")
    assert "final has not taken all that is staged" in feed.refused("erase", "deletes", 1, "--yes")
    feed.select("+final_deletes")
    feed.done("erase", "deletes", 1, "--yes")
    assert 1 not in feed.final("deletes")
    assert feed.project.rows("select * from {schema}.stg_ops__deletes where id = 1") == []
    assert "erased before" in feed.done("erase", "deletes", 1, "--yes")
    assert 77 in feed.final("deletes")
    feed.done("erase", "deletes", 77, "--yes")  # final has not run since
    assert 77 not in feed.final("deletes")


@pytest.mark.nightly  # key changes of one message: R2 above
def test_R2_K6_the_delete_that_is_half_of_a_key_change_is_erased_too(feed: Feed) -> None:
    def message(op: str, lsn: int, before: dict[str, str] | None, after: dict[str, str] | None) -> str:
        source = {"schema": "public", "table": "visitor", "lsn": lsn, "txId": lsn}
        return json.dumps({"op": op, "before": before, "after": after, "source": source}) + "\n"

    folder = feed.project.path / "visitors"
    folder.mkdir()
    cdc = {"format": "debezium", "location": str(folder), "change_set_order": "name"}
    columns = {"email": "string", "name": "string"}
    feed.project.configure("visitors", settings=cdc, tables=[{"name": "visitor", "cdc": {"keys": ["email"]}, "columns": columns}])
    feed.project.generate()
    was, now, other = ({"email": email, "name": "Ann"} for email in ("a@x", "b@x", "c@x"))
    (folder / "0001.jsonl").write_text(
        message("c", 10, None, was)
        + message("d", 20, was, None)
        + message("c", 20, None, now)
        + message("c", 30, None, other)
        + message("c", 40, None, {"email": "a@x", "name": "Bob"})
    )
    feed.select("cdc_change_sets", "+final_visitor")
    told = feed.done("explain", "visitor", "a@x")
    assert "absorbed" in told
    assert "the row is gone" not in told
    assert "table visitors.visitor: 3 changes erased" in feed.done("erase", "visitor", "b@x", "--yes")
    for table in ("raw_visitors", "stg_visitors__visitor"):
        left = str(feed.project.rows(f"select * from {{schema}}.{table}"))
        assert ("b@x" in left, left.count("Ann"), left.count("a@x")) == (False, 1, 1)
    names = feed.project.rows("select email, name from {schema}.final_visitor order by email")
    assert names == [{"email": "a@x", "name": "Bob"}, other]


@pytest.mark.nightly  # one table: test_S9_a_retracted_change_set_…
@after(test_R2_an_erased_person_is_in_no_file_and_stays_erased)
def test_S9_a_change_set_of_a_feed_that_mixes_tables_is_taken_back_from_all_of_them(feed: Feed, people: People) -> None:
    message = people.message
    bad = [message("U", 70, 1, "bad"), message("I", 71, 3, "bad"), message("U", 72, 1, "Max", table="pet")]
    people.deliver("0010", *bad, message("I", 73, 4, "bad"))
    people.deliver("0011", bad[1], bad[2], message("U", 74, 4, "Eve"))
    feed.select("cdc_change_sets", "raw_people+")
    said = feed.done("retract", "people/0010.jsonl")
    assert "table people.person: 3 rows marked, 1 restored from later change sets." in said
    assert "table people.pet: 1 rows marked, 1 restored from later change sets." in said
    feed.select("cdc_change_sets", "raw_people+")
    final = feed.project.rows("select id, name from {schema}.final_person order by id")
    assert {row["id"]: row["name"] for row in final} == {1: "Dan", 3: "bad", 4: "Eve", 5: "Cid", 6: "Bea"}
    assert feed.project.rows("select name from {schema}.final_pet") == [{"name": "Max"}]
    feed.project.dbt("test", "--select", "models/people", "--exclude", "tag:each_run", quiet=True)


@pytest.mark.nightly  # a run that ended after staging: test_bad_input, S2
def test_K2_a_run_without_the_keys_model_is_made_good_by_the_next(feed: Feed, people: People) -> None:
    people.deliver("0020", people.message("I", 80, 20, "Fay"))
    feed.select("cdc_change_sets", "raw_people+")
    people.deliver("0021", people.message("U", 81, 21, "Gus", before=20))
    feed.select("cdc_change_sets", "raw_people+", "--exclude", "int_people__person_keys")
    for _ in range(2):
        feed.select("cdc_change_sets", "raw_people+")
        final = feed.project.rows("select id, name from {schema}.final_person where id >= 20")
        assert final == [{"id": 21, "name": "Gus"}]
    feed.project.dbt("test", "--select", "final_person", "--exclude", "tag:each_run", quiet=True)


@pytest.mark.nightly  # key changes onto free keys: R2 above
def test_R2_K7_a_row_that_an_erased_person_displaced_stays_ended(feed: Feed, people: People) -> None:
    message = people.message
    people.deliver("0040", message("I", 500, 31, "Eva"), message("I", 510, 32, "Flo"), message("I", 520, 34, "Gil"))
    people.deliver("0041", message("U", 530, 32, "Eva", before=31), message("U", 540, 33, "Eva", before=32))
    feed.select("cdc_change_sets", "raw_people+")
    kept = "select id, name from {schema}.final_person where id between 31 and 34 order by id"
    assert feed.project.rows(kept) == [{"id": 33, "name": "Eva"}, {"id": 34, "name": "Gil"}]
    ended = "select id, valid_to, is_current from {schema}.hist_people__person where name = 'Flo'"
    before = feed.project.rows(ended)
    assert "table people.person: 3 changes erased" in feed.done("erase", "person", 31, "--yes")
    assert feed.project.rows(kept) == [{"id": 34, "name": "Gil"}]
    assert feed.project.rows(ended) == before
    staged = feed.project.rows("select * from {schema}.stg_people__person where id between 31 and 34 order by _cdc_sequence")
    assert [(row["id"], row["name"], row["_cdc_op"]) for row in staged] == [(32, "Flo", "I"), (34, "Gil", "I"), (32, None, "D")]
    told = feed.done("explain", "person", 32)
    assert "last word: the row is gone" in told
    people.deliver("0042", message("I", 550, 32, "Ida"))
    feed.select("cdc_change_sets", "raw_people+")
    assert feed.project.rows(kept) == [{"id": 32, "name": "Ida"}, {"id": 34, "name": "Gil"}]
    feed.project.dbt("test", "--select", "final_person", "hist_people__person", "--exclude", "tag:each_run", quiet=True)


@pytest.mark.nightly
def test_R2_K7_no_update_of_an_erased_person_stays_at_the_key_of_a_row_that_it_displaced(feed: Feed, people: People) -> None:
    """Said in the transaction of the key change: the one that was there longest is meant by it (K3)."""
    message = people.message
    later = json.loads(message("U", 630, 42, "Hedwig"))
    later["xid"] = 620
    people.deliver("0050", message("I", 600, 41, "Hed"), message("I", 610, 42, "Jon"))
    people.deliver("0051", message("U", 620, 42, "Hed", before=41), json.dumps(later) + "\n")
    feed.select("cdc_change_sets", "raw_people+")
    assert "table people.person: 3 changes erased" in feed.done("erase", "person", 41, "--yes")
    assert people.files_with("Hedwig") == []
    rows = "select id from {schema}.final_person where id between 41 and 42"
    assert feed.project.rows(rows) == []
    staged = "select name, _cdc_op from {schema}.stg_people__person where id between 41 and 42 order by _cdc_sequence"
    assert feed.project.rows(staged) == [{"name": "Jon", "_cdc_op": "I"}, {"name": None, "_cdc_op": "D"}]
    feed.project.dbt("test", "--select", "final_person", "hist_people__person", "--exclude", "tag:each_run", quiet=True)


def test_A4_after_all_of_this_every_final_equals_its_rebuild(feed: Feed) -> None:
    equal = "test_name:one_row_per_key"  # what a final that equals its rebuild shows too
    tables = ["models/ops"] if NIGHTLY else ["final_errors", "final_folded"]
    feed.project.dbt("test", "--select", *tables, "--exclude", "tag:each_run", equal, quiet=True)


@pytest.mark.nightly  # how such a macro is found: test_macros
def test_S9_P3_messages_that_a_macro_of_the_project_decodes_are_read_whole_by_runs_and_by_operations(feed: Feed) -> None:
    """In their text as it lies there nothing tells that they are records with keys."""

    def record(lsn: int, id: int, op: str, after: dict[str, int] | None) -> str:
        value = {"op": op, "before": None, "after": after, "source": {"lsn": lsn}, "ts_ms": lsn}
        told = json.dumps({"topic": "t", "key": {"id": id}, "value": value})
        return base64.b64encode(told.encode()).decode() + "\n"

    project, folder = feed.project, feed.project.path / "encoded"
    (project.path / "macros").mkdir()
    (project.path / "macros/debezium.sql").write_text("""{% macro debezium_changes(lines, settings) %}
  {% set decoded = "cast(try_to_binary(message, 'base64') as string)" %}
  {{ return(delta_cdc.debezium_changes('(select * except (message), ' ~ decoded ~ ' as message from ' ~ lines ~ ')', settings)) }}
{% endmacro %}""")
    settings = {"format": "debezium", "location": f"{folder}/{{table}}", "change_set_order": "name"}
    table = {"name": "secret", "cdc": {"keys": ["id"]}, "columns": {"id": "int", "n": "int"}}
    project.configure("encoded", settings=settings, tables=[table])
    project.generate()
    first = record(10, 1, "c", {"id": 1, "n": 1})
    write_change_set(folder / "secret/0001.jsonl", [first, record(20, 2, "c", {"id": 2, "n": 2})])
    write_change_set(folder / "secret/0002.jsonl", [first, record(30, 2, "d", None)])
    feed.select("cdc_change_sets", "+final_secret")
    assert feed.final("secret") == {1: 1}
    said = feed.done("retract", "secret/0001.jsonl")
    assert "table encoded.secret: 2 rows marked, 1 restored from later change sets." in said
    feed.select("cdc_change_sets", "+final_secret")
    assert feed.final("secret") == {1: 1}
