"""`delta-cdc status --counts`: what the contract counts, against counts that were worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import after
from tests.scenarios.project import UserProject, write_change_set

COLUMNS = {"op": "string", "lsn": "int", "id": "int", "old_id": "int", "n": "int", "note": "string"}
PLAIN = {"keys": ["id"], "sequence_by": ["lsn"], "operation": "op", "except_columns": ["op", "old_id", "lsn"]}
TABLES: dict[str, dict[str, Any]] = {
    "told": {**PLAIN, "old_keys": {"id": "old_id"}, "truncated_when": "op = 'T'"},
    "soft": {**PLAIN, "delete_mode": "soft"},
    "split": {**PLAIN, "old_keys": {"id": "old_id"}, "split_key_changes": True},
    "marked": PLAIN,
    "bare": {"keyless": "append", "sequence_by": ["lsn"], "operation": "op", "except_columns": ["op", "old_id"]},
}
NAMES = (
    "ties", "known_inserts", "unknown_updates", "unknown_deletes", "unknown_old_keys", "collisions", "partial_without_base"
)  # fmt: skip
NONE = dict.fromkeys(NAMES, 0)


class Shop:
    def __init__(self, project: UserProject) -> None:
        self.project, self.done, self.folder = project, project.done, project.path / "landing"
        for table in TABLES:
            (self.folder / table).mkdir(parents=True)
        declared = [{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in TABLES.items()]
        feed = {"format": "rows", "location": f"{self.folder}/{{table}}", "change_set_order": "name"}
        project.configure("shop", settings=feed, tables=declared)
        project.generate()

    def run(self, table: str, name: str, *rows: tuple[Any, ...]) -> None:
        """Load a change set. rows: (operation, lsn, id, note, old id); of the last two one that is not given is not told."""
        told = []
        for op, lsn, id, *more in rows:
            note, old_id = (*more, None, None)[:2]
            told.append({"op": op, "lsn": lsn, "id": id, "old_id": old_id, "n": lsn} | ({"note": note} if note else {}))
        write_change_set(self.folder / table / f"{name}.jsonl", told)
        self.done("run")

    def counts(self, table: str) -> Any:
        (row,) = json.loads(self.done("status", table, "--counts", "--json"))
        assert row["table"] == f"shop.{table}"
        return row["counts"]


@pytest.fixture(scope="module")
def shop(project: UserProject) -> Shop:
    return Shop(project)


@pytest.mark.nightly  # tables whose keys do not change: two tests below
def test_O2_A1_K5_K7_P4_each_is_counted_as_the_changes_are_ordered_today(shop: Shop) -> None:
    shop.run(
        "told", "0001",
        ("I", 10, 1, "a"),
        ("I", 20, 1, "b"),  # known insert
        ("U", 30, 2, "c"),  # unknown update
        ("D", 40, 3),  # unknown delete
        ("U", 50, 2),
        ("U", 60, 4),  # unknown update, without base
        ("U", 70, 4),  # without base
        ("U", 72, 4, "d"),
        ("U", 74, 4),
        ("U", 80, 6, "e", 5),  # unknown old key
        ("U", 80, 6, "f"),  # tie
        ("D", 90, 2),
        ("D", 100, 2),  # unknown delete
        ("U", 110, 2),  # unknown update, without base
        ("I", 120, 7, "g"),
        ("I", 130, 8, "h"),
        ("U", 140, 8, "i", 7),  # collision
        ("I", 150, 8, "j"),  # known insert, at a key that was part of a key change
        ("D", 160, 7),  # unknown delete, at such a key
        ("U", 170, 7, "k"),  # unknown update, at such a key
    )  # fmt: skip
    at_first = {
        "ties": 1, "known_inserts": 2, "unknown_updates": 4, "unknown_deletes": 3, "unknown_old_keys": 1, "collisions": 1,
        "partial_without_base": 3,
    }  # fmt: skip
    assert shop.counts("told") == at_first

    late = (
        ("U", 60, 4),  # repeated: a duplicate is no tie
        ("I", 35, 3, "l"),  # the delete at 40 has a row
        ("I", 55, 4, "m"),  # the update at 60 too, and a base, as that at 70
        ("I", 75, 5, "n"),  # so has the key change at 80
        ("U", 20, 1, "o"),  # tie
        ("U", 135, 9, "p", 8),  # what was displaced at 140 had moved
    )
    shop.run("told", "0002", *late)
    later = {**NONE, "ties": 2, "known_inserts": 2, "unknown_updates": 3, "unknown_deletes": 2, "partial_without_base": 1}
    assert shop.counts("told") == later
    shop.done("retract", "told/0002.jsonl")
    shop.done("run")
    assert shop.counts("told") == at_first
    shop.run("told", "0003", *late)
    assert shop.counts("told") == later
    shown = shop.done("status", "told", "--counts")
    assert [line.split()[0] for line in shown.splitlines() if line] == ["table", "shop.told", "table", "shop.told"]
    assert shown.splitlines()[-1].split() == ["shop.told", "2", "2", "3", "2", "0", "0", "1"]


@pytest.mark.nightly  # truncates and compaction count as they do in final: test_operations, R1
@after(test_O2_A1_K5_K7_P4_each_is_counted_as_the_changes_are_ordered_today)
def test_A8_R1_P4_nothing_is_known_below_a_truncate_and_nothing_counts_below_a_horizon(shop: Shop) -> None:
    before = shop.counts("told")
    shop.run(
        "told", "0004",
        ("T", 200, None),
        ("U", 210, 1, "q"),  # unknown update
        ("D", 220, 2),  # unknown delete
        ("U", 230, 8),  # unknown update, without base
        ("U", 231, 4),  # the same
    )  # fmt: skip
    since = {**NONE, "unknown_updates": 3, "unknown_deletes": 1, "partial_without_base": 2}
    assert shop.counts("told") == {name: before[name] + since[name] for name in NAMES}
    shop.done("compact", "told", "--before", "205")
    assert shop.counts("told") == since
    shop.run(
        "told", "0005",
        ("U", 190, 1, "r"),  # too late
        ("I", 240, 1, "s"),  # known insert
        ("U", 250, 8),  # without base
        ("D", 260, 9),  # unknown delete
    )  # fmt: skip
    since = {**since, "known_inserts": 1, "unknown_deletes": 2, "partial_without_base": 3}
    assert shop.counts("told") == since
    shop.done("compact", "told", "--before", "255")
    assert shop.counts("told") == {**NONE, "unknown_deletes": 1}
    # what was folded is there, whole: at 8 too, whose key changes the first compaction took
    shop.run("told", "0006", ("U", 270, 1), ("U", 280, 8), ("U", 290, 4))
    assert shop.counts("told") == {**NONE, "unknown_deletes": 1}


def test_O2_A1_K6_tables_that_are_ordered_otherwise_are_counted_too(shop: Shop) -> None:
    shop.run(
        "soft", "0001",
        ("U", 10, 1),  # unknown update, without base
        ("D", 10, 1),  # tie
        ("D", 20, 1),  # unknown delete
        ("I", 30, 2, "a"),
        ("I", 40, 2, "b"),  # known insert
        ("R", 50, 3, "c"),
        ("R", 60, 3, "d"),  # a source that is read once more tells nothing wrong
    )  # fmt: skip
    shop.run(
        "split", "0001",
        ("I", 10, 1, "a"),
        ("D", 20, 1),
        ("I", 20, 2, "b"),
        ("I", 30, 3),
        ("U", 40, 3),  # without base: the insert left it out, too
        ("D", 50, 3),
        ("I", 50, 4),
        ("U", 60, 4),  # the same, across a key change
    )  # fmt: skip
    shop.run("bare", "0001", ("I", 10, 1, "a"), ("I", 10, 1, "b"))
    all_tables = {row["table"]: row["counts"] for row in json.loads(shop.done("status", "--counts", "--json"))}
    found = {name: all_tables[f"shop.{name}"] for name in ("soft", "split", "bare")}
    soft = {**NONE, "ties": 1, "known_inserts": 1, "unknown_updates": 1, "unknown_deletes": 1, "partial_without_base": 1}
    assert found == {"soft": soft, "split": {**NONE, "partial_without_base": 2}, "bare": None}
    assert "counts" not in json.loads(shop.done("status", "--json"))[0]


def test_Q1_O4_what_cannot_be_used_and_comes_again_makes_no_late_change_less(shop: Shop) -> None:
    bad = ("I", 20, None, "p"), ("I", 25, None, "q")
    shop.run("marked", "0001", ("I", 10, 1, "a"), ("I", 30, 1, "b"), *bad)
    shop.run("marked", "0002", *bad, ("U", 12, 1, "c"), ("U", 14, 1, "d"))
    told = shop.project.rows(
        "select rows_read, rows_duplicate, rows_late, rows_quarantined from {schema}.cdc_runs"
        " where `table` = 'stg_shop__marked' order by finished_at"
    )
    assert [tuple(row.values()) for row in told if row["rows_read"]] == [(4, 0, 0, 2), (4, 2, 2, 2)]
