"""Bad input and interrupted runs: a clear error or a marked row, nothing lost, and the next run puts it right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest

from tests import NIGHTLY, after
from tests.scenarios.project import UserProject, write_change_set

ODD = "odd na.me `q` \"d\" 'a' (x),="
COLUMNS = {"op": "string", "seq": "int", "id": "int", "old_id": "int", "n": "int", ODD: "string"}
SETTINGS = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op", "old_keys": {"id": "old_id"}}


class Feed:
    def __init__(self, project: UserProject) -> None:
        self.project = project
        self.folder = project.path / "landing"
        self.sequence = 0
        self.two: dict[str, Any] = {}
        for table in ("one", "two", "log"):
            (self.folder / table).mkdir(parents=True)
        self.configure()

    def configure(self, *, log: Any = None, **two: Any) -> None:
        """log, two: settings of these tables; of the second those that it had, where none are given."""
        self.two = two or self.two
        insert_only = {"insert_only": True, "operation": "op", "sequence_by": ["seq"], **(log or {})}
        tables = {"log": insert_only, "one": SETTINGS, "two": SETTINGS | self.two}
        self.project.configure(
            "odd",
            settings={"format": "rows", "location": f"{self.folder}/{{table}}", "change_set_order": "name"},
            tables=[{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in tables.items()],
        )
        self.project.generate()

    def row(self, id: int | None, op: str = "I", **values: Any) -> dict[str, Any]:
        self.sequence += 1
        return {"op": op, "seq": self.sequence, "id": id, "old_id": None, "n": 1, ODD: "v", **values}

    def deliver(self, name: str, *rows: dict[str, Any] | str, table: str = "one") -> Path:
        return write_change_set(self.folder / table / f"{name}.jsonl", rows)

    def run(self, *args: str) -> None:
        self.project.dbt("run", *args, quiet=True)

    def final(self, table: str = "one") -> dict[int, Any]:
        return self.project.by_id(f"select id, n from {{schema}}.final_{table}")

    def version(self, table: str) -> int:
        return self.project.delta(table).version()

    def files(self, table: str) -> set[str]:
        return set(self.project.delta(table).file_uris())


@pytest.fixture(scope="module")
def feed(project: UserProject) -> Iterator[Feed]:
    feed = Feed(project)
    feed.deliver("0001", feed.row(1), feed.row(2), feed.row(3))
    feed.deliver("0001", feed.row(1), table="two")
    feed.run()
    return feed


def test_Q1_Q2_bad_rows_are_marked_and_the_good_ones_go_on(feed: Feed) -> None:
    cut = json.dumps(feed.row(9))[:25]
    feed.deliver("0002", feed.row(4, n=4), feed.row(None), feed.row(5, op="?"), feed.row(6, n="many"), "no json\n", cut)
    feed.deliver("0003")
    feed.run()
    assert feed.final() == {1: 1, 2: 1, 3: 1, 4: 4}
    marked = feed.project.rows("select error, raw from {schema}.cdc_quarantine order by row_number")
    assert [row["error"] for row in marked] == ["null_key", "unknown_operation", "cast:n", "unparsable", "unparsable"]
    assert marked[-1]["raw"] == cut
    assert feed.project.rows(f"select `{ODD.replace('`', '``')}` as v from {{schema}}.final_one where id = 4") == [{"v": "v"}]


def test_S3_S4_a_change_set_that_is_gone_or_rewritten_before_its_load_stops_only_its_table(feed: Feed) -> None:
    gone = feed.deliver("0004", feed.row(10))
    feed.deliver("0002", feed.row(2), table="two")
    loaded = feed.folder / "one" / "0001.jsonl"
    before, times = loaded.read_bytes(), loaded.stat()
    feed.deliver("0001", feed.row(12))
    feed.run("--select", "cdc_change_sets")
    text = gone.read_text()
    gone.unlink()
    loaded.write_bytes(before)  # back as it was loaded: that is recorded again, and supersedes what it was meanwhile
    os.utime(loaded, ns=(times.st_atime_ns, times.st_mtime_ns))
    result = feed.project.try_dbt("run", quiet=True)
    (message,) = feed.project.failures(result)
    assert "0004.jsonl" in message
    assert "0001.jsonl" not in message
    assert "it is gone" in message
    assert f"{len(text)} bytes" in message
    assert feed.final("two") == {1: 1, 2: 1}
    assert 10 not in feed.final()

    feed.deliver("0004", feed.row(10), feed.row(11))
    result = feed.project.try_dbt("run", "--select", "stg_odd__one", quiet=True)
    assert "0004.jsonl" in feed.project.failures(result)[0]
    feed.run()
    assert {10, 11} <= set(feed.final())
    assert 12 not in feed.final()


def test_S2_a_run_that_ended_after_any_layer_is_continued(feed: Feed) -> None:
    layers = ["cdc_change_sets", "stg_odd__one", "int_odd__one_keys", "final_one"]
    for number, upto in enumerate(layers if NIGHTLY else layers[1:3]):  # after the ledger: the test above
        moved = 20 + number
        feed.deliver(f"001{number}", feed.row(moved), feed.row(100 + moved, op="U", old_id=moved, n=7))
        feed.run("--select", f"+{upto}")
        feed.run()
        assert feed.final()[100 + moved] == 7
        assert moved not in feed.final()
    versions = {t: feed.version(t) for t in ("cdc_change_sets", "stg_odd__one", "int_odd__one_keys", "final_one")}
    feed.run()
    assert versions == {t: feed.version(t) for t in versions}


@after(test_Q1_Q2_bad_rows_are_marked_and_the_good_ones_go_on)
def test_S8_a_restored_final_is_rebuilt_from_staging(feed: Feed) -> None:
    before = feed.final()
    feed.project.rows("restore table {schema}.final_one to version as of 0")
    assert feed.final() != before
    feed.run()
    assert feed.final() == before


@pytest.mark.nightly  # partitions: tests/unit/test_macros.py
def test_S8_S6_a_restored_final_with_deletion_vectors_that_is_as_it_should_be_is_rebuilt_once(feed: Feed) -> None:
    """No row differs, and with deletion vectors no file is written; the MERGE has to be a commit all the same."""
    feed.project.rows("alter table {schema}.final_one set tblproperties ('delta.enableDeletionVectors' = 'true')")
    before = feed.final()
    feed.deliver("0025", {**feed.row(1), "seq": 0})  # below all that is known of the row: its load is a commit of no rows
    feed.run()
    feed.project.rows(f"restore table {{schema}}.final_one to version as of {feed.version('final_one') - 1}")
    restored = feed.version("final_one")
    versions = []
    for _ in range(2):
        feed.run()
        assert feed.final() == before
        versions.append(feed.version("final_one"))
    assert versions == [restored + 1] * 2


def test_S5_a_full_refresh_rebuilds_final_and_keeps_the_state(feed: Feed) -> None:
    before = feed.final()
    state = {t: feed.version(t) for t in ("cdc_change_sets", "stg_odd__one", "int_odd__one_keys")}
    feed.run("--full-refresh")
    assert feed.final() == before
    assert state == {t: feed.version(t) for t in state}

    def rows(table: str) -> int:
        return int(feed.project.rows(f"select count(*) as n from {{schema}}.{table}")[0]["n"])

    there = {table: rows(table) for table in ("stg_odd__one", "cdc_change_sets")}
    feed.deliver("0030", feed.row(30))
    feed.run("--full-refresh")
    assert feed.final() == {**before, 30: 1}
    assert {table: rows(table) - count for table, count in there.items()} == dict.fromkeys(there, 1)


def test_S5_a_lost_ledger_is_rebuilt_and_batch_ids_go_on_growing(feed: Feed) -> None:
    before = feed.final()
    highest = feed.project.rows("select max(batch_id) as b from {schema}.cdc_change_sets")[0]["b"]
    staged = feed.version("stg_odd__one")
    feed.project.rows("drop table {schema}.cdc_change_sets")
    feed.run()
    assert feed.version("stg_odd__one") == staged
    feed.deliver("0040", feed.row(40))
    feed.run()
    assert feed.final() == {**before, 40: 1}
    assert feed.project.rows("select max(_cdc_batch_id) as b from {schema}.stg_odd__one")[0]["b"] > highest


@pytest.mark.nightly  # a ledger that lacks what staging has: the test above
def test_S5_a_ledger_that_was_put_back_is_completed(feed: Feed) -> None:
    """From a backup, whose log says nothing of that; restored to an older version."""
    saved = "create or replace table {schema}.saved using delta as select * from {schema}.cdc_change_sets where batch_id < 3"
    back = "create table {schema}.cdc_change_sets using delta as select * from {schema}.saved"
    ids = "select count(*) as n, count(distinct batch_id) as ids from {schema}.cdc_change_sets where batch_id > 0"
    restore = "restore table {schema}.cdc_change_sets to version as of 0"
    spoilt = [[saved, "drop table {schema}.cdc_change_sets", back], [restore]]
    for number, spoil in enumerate(spoilt, 41):
        before, staged = feed.final(), feed.project.rows("select count(*) as n from {schema}.stg_odd__one")[0]["n"]
        for statement in spoil:
            feed.project.rows(statement)
        feed.deliver(f"00{number}", feed.row(number))
        feed.run()
        assert feed.final() == {**before, number: 1}
        assert feed.project.rows("select count(*) as n from {schema}.stg_odd__one")[0]["n"] == staged + 1
        recorded = feed.project.rows(ids)[0]
        assert recorded["n"] == recorded["ids"] > number - 40


@pytest.mark.nightly  # the number that it gives: tests/unit/test_macros.py
def test_S5_S7_a_lost_ledger_gives_no_number_again_that_held_nothing_for_a_table(feed: Feed) -> None:
    before = feed.final()
    empty = [feed.deliver(name) for name in ("0042", "0043")]
    feed.run()
    for path in empty:  # cleared away, as what is loaded may be
        path.unlink()
    feed.project.rows("drop table {schema}.cdc_change_sets")
    feed.deliver("0044", feed.row(44))
    feed.run()
    assert feed.final() == {**before, 44: 1}


def test_A4_final_equals_its_rebuild(feed: Feed) -> None:
    feed.project.dbt("test", "--exclude", "tag:each_run", quiet=True)


def test_A3_a_change_set_that_comes_again_changes_no_data_file(feed: Feed) -> None:
    feed.deliver("0050", feed.row(50), feed.row(51, op="U", old_id=50))
    feed.run()
    tables = ("stg_odd__one", "int_odd__one_keys", "final_one")
    files = {table: feed.files(table) for table in tables}
    for name in ("0001", "0050"):
        feed.deliver(f"again_{name}", (feed.folder / "one" / f"{name}.jsonl").read_text())
    feed.run()
    assert files == {table: feed.files(table) for table in tables}
    runs = feed.project.rows("select * from {schema}.cdc_runs where `table` = 'stg_odd__one' order by finished_at desc limit 1")
    assert (runs[0]["rows_read"], runs[0]["rows_duplicate"], runs[0]["rows_inserted"]) == (5, 5, 0)


def test_N2_an_insert_only_table_is_appended_to(feed: Feed) -> None:
    for number in range(2):
        feed.deliver(f"000{number}", feed.row(1), feed.row(1, op="U"), feed.row(2, op="D"), feed.row(number), table="log")
        feed.run("--select", "cdc_change_sets", "stg_odd__log+")
    assert [row["id"] for row in feed.project.rows("select id from {schema}.final_log order by seq")] == [1, 0, 1, 1]
    errors = feed.project.rows("select distinct error from {schema}.cdc_quarantine where source_table = 'log'")
    assert errors == [{"error": "not_allowed"}]


@pytest.mark.nightly  # a setting that stops a table until it is made anew: test_columns, K1 and E4
def test_K8_other_keys_stop_the_table_until_what_is_made_by_key_is_rebuilt(feed: Feed) -> None:
    lacks_n = feed.row(8, n=None)
    feed.deliver("0010", lacks_n, feed.row(9, n=5), feed.row(10, op="U", old_id=9, n=5), table="two")
    feed.run("--select", "cdc_change_sets", "stg_odd__two+")
    before = feed.final("two")
    feed.configure(keys=["id", "n"], history="table")
    stopped = feed.project.try_dbt("run", "--select", "cdc_change_sets", "stg_odd__two+", quiet=True)
    (message,) = feed.project.failures(stopped)
    assert "feed odd, table two: `keys` were [id] and are now [id, n]" in message
    assert "dbt run --full-refresh --select stg_odd__two+" in message
    assert feed.final("two") == before
    assert {8, 10} <= set(before)

    # staging has to take them over first; it notes that although nothing is new (S6)
    too_early = feed.project.try_dbt("run", "--full-refresh", "--select", "final_two", quiet=True)
    assert "`keys` are [id, n], and staging still has [id]" in feed.project.failures(too_early)[0]
    feed.run("--full-refresh", "--select", "stg_odd__two+")
    files = feed.files("stg_odd__two")
    feed.deliver("0011", feed.row(10, n=7), feed.row(11, op="U", old_id=10, n=7), table="two")
    feed.run("--select", "stg_odd__two+")
    assert feed.files("stg_odd__two") == files
    feed.run("--select", "cdc_change_sets", "stg_odd__two+")
    rows = {(row["id"], row["n"]) for row in feed.project.rows("select id, n from {schema}.final_two")}
    kept = {(id, n) for id, n in before.items() if id != 8}
    assert (10, 5) in kept
    assert rows == kept | {(11, 7)}
    marked = feed.project.rows("select id, _cdc_error from {schema}.stg_odd__two where _cdc_error is not null")
    assert marked == [{"id": 8, "_cdc_error": "null_key"}]
    assert "null_key" in feed.project.command("status").output


@pytest.mark.nightly  # a final that is worked out anew: S8 below; its shapes: test_rows, SHAPED
@after(test_K8_other_keys_stop_the_table_until_what_is_made_by_key_is_rebuilt)
def test_S8_A9_A10_a_history_that_was_emptied_and_a_final_of_another_shape_are_worked_out_anew(feed: Feed) -> None:
    pairs = "select id, n from {schema}."
    versions = len(feed.project.rows(f"{pairs}hist_odd__two"))
    kept = {(row["id"], row["n"]) for row in feed.project.rows(f"{pairs}final_two")}
    assert (11, 7) in kept
    feed.project.rows("truncate table {schema}.hist_odd__two")
    feed.configure(keys=["id", "n"], history="table", delete_mode="soft", created_at="born")
    feed.deliver("0012", feed.row(12, op="U", old_id=11, n=7), feed.row(1, op="D", n=1), table="two")
    feed.run("--select", "cdc_change_sets", "stg_odd__two+")
    rows = {(row["id"], row["n"], row["_cdc_is_deleted"]) for row in feed.project.rows("select * from {schema}.final_two")}
    assert rows == {(id, n, id == 1) for id, n in kept - {(11, 7)} | {(12, 7)}}
    assert len(feed.project.rows(f"{pairs}hist_odd__two")) == versions + 1
    feed.project.dbt("test", "--select", "final_two", "hist_odd__two", "--exclude", "tag:each_run", quiet=True)


@pytest.mark.nightly  # a table that somebody replaced: S8 above
@after(test_K8_other_keys_stop_the_table_until_what_is_made_by_key_is_rebuilt)
def test_S8_what_was_made_of_a_staging_table_that_is_gone_says_so(feed: Feed) -> None:
    before = feed.final("two")
    feed.project.rows("drop table {schema}.stg_odd__two")
    failed = feed.project.failures(feed.project.try_dbt("run", "--select", "stg_odd__two+", quiet=True))
    said = "was made of stg_odd__two, which was dropped and made anew since. Where that holds all, make it anew: delta-cdc"
    assert [said in message for message in failed] == [True, True]
    feed.project.done("rebuild", "odd.two")
    assert feed.final("two") == before
    feed.project.dbt("test", "--select", "final_two", "hist_odd__two", quiet=True)


@pytest.mark.nightly  # paused tables: test_change_sets
@after(test_N2_an_insert_only_table_is_appended_to)
def test_S7_a_table_that_is_dropped_while_it_is_paused_is_loaded_anew(feed: Feed) -> None:
    rows = feed.project.rows("select * from {schema}.final_log order by seq")
    feed.deliver("0009", table="log")  # empty: that it is done is noted outside of the table
    feed.run("--select", "cdc_change_sets", "stg_odd__log+")
    feed.configure(log={"paused": "is loaded anew"})
    for table in ("stg_odd__log", "final_log"):
        feed.project.rows(f"drop table {{schema}}.{table}")
    feed.run("--select", "stg_odd__log+")
    feed.project.rows("optimize {schema}.cdc_runs")  # as maintain does: its newest commit notes nothing
    feed.configure()
    feed.run("--select", "stg_odd__log+")
    assert feed.project.rows("select * from {schema}.final_log order by seq") == rows


def test_Q1_a_line_of_any_length_and_depth_holds_up_no_other(feed: Feed) -> None:
    deep = '{"op": "I", "seq": 9000, "id": 900, "n": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    broken, long = "no JSON " + "y" * 50_000_000 + "\n", feed.row(902, **{ODD: "z" * 20_000_000})
    feed.deliver("9000", feed.row(901), deep, broken, long, feed.row(903))
    feed.run()
    assert {901, 903} <= set(feed.final())
    of_set = "{schema}.cdc_quarantine where change_set like '%9000.jsonl'"
    marked = feed.project.rows(f"select error, length(raw) as length from {of_set}")
    assert {row["error"] for row in marked} == {"unparsable"}
    assert max(row["length"] for row in marked) < 1_000_000
    cut = feed.project.rows(f"select raw from {of_set} and raw like 'no JSON %'")[0]["raw"]
    assert cut == f"{broken[:100_000]} … (50000008 bytes, sha1 {sha1(broken.strip().encode()).hexdigest()})"
