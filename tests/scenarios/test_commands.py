"""What a person asks and does day by day: run, status, explain, history, maintain."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import threading
import time
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import pytest
import yaml
from click.testing import Result
from rich.console import Console

from dbt.adapters.sparkdelta.delta_log import _LocalLog
from delta_cdc import run as runs
from delta_cdc.config_reader import load_project
from tests import after
from tests.scenarios.project import UserProject, write_change_set

COLUMNS = {"op": "string", "at": "timestamp", "id": "int", "old_id": "int", "n": "int", "note": "string"}
PLAIN = {"keys": ["id"], "sequence_by": ["at"], "operation": "op", "except_columns": ["op", "old_id", "at"]}


class Shop:
    def __init__(self, project: UserProject) -> None:
        self.project, self.command = project, project.command
        self.folder = project.path / "landing"
        moving = {**PLAIN, "old_keys": {"id": "old_id"}, "zorder_by": ["note", "ID"], "keep_versions_days": 40}
        plain = {**PLAIN, "max_delete_share": 0.5, "final_name": "plain", "test_buckets": 2}
        self.tables = {"plain": plain, "moving": moving}
        for table in self.tables:
            (self.folder / table).mkdir(parents=True)
        declared = [{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in self.tables.items()]
        declared[1]["columns"] = COLUMNS | {f"more_{n}": "string" for n in range(30)}  # more than Delta has statistics of
        self.tables["moving"]["except_columns"] = [*PLAIN["except_columns"], *(f"more_{n}" for n in range(30))]
        project.configure("shop", settings={"format": "rows", "location": f"{self.folder}/{{table}}"}, tables=declared)
        project.generate()

    def deliver(self, table: str, name: str, *rows: tuple[Any, ...]) -> Path:
        """rows: (operation, minute, id, old id, n); no `note` where it is None."""
        told = []
        for op, minute, id, old_id, n, *note in rows:
            row = {"op": op, "at": f"2026-01-01T00:{minute:02d}:00Z", "id": id, "old_id": old_id, "n": n}
            told.append(row | ({"note": note[0]} if note else {}))
        return write_change_set(self.folder / table / f"{name}.jsonl", told)


@pytest.fixture(scope="module")
def shop(project: UserProject) -> Shop:
    shop = Shop(project)
    shop.deliver("plain", "0001", ("I", 1, 1, None, 10, "a"), ("I", 2, 2, None, 20, "b"), ("I", 2, 2, None, 20, "b"))
    shop.deliver("moving", "0001", ("I", 1, 1, None, 10, "a"), ("U", 3, 5, 1, 30))
    return shop


def test_run_tells_what_each_table_did_and_nothing_when_nothing_came(shop: Shop) -> None:
    result = shop.command("run")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:-1] for line in result.output.splitlines() if line.startswith("shop.")}
    assert rows == {"shop.plain": ["3", "1", "2"], "shop.moving": ["2", "1"]}
    assert "2 of 2 tables had news: 5 changes, 3 rows inserted, 0 updated, 0 deleted; " in result.output
    again = shop.command("run")
    assert again.exit_code == 0
    nothing, told = [line for line in again.output.splitlines() if line]
    assert nothing == "Nothing has changed since a run loaded everything: dbt was not started."
    assert "0 of 2 tables had news" in told
    assert told.endswith(" s.")


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_a_run_with_nothing_to_do_starts_no_dbt_until_something_changes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []
    results = runs._results

    def counted(dbt: Any, command: Any, *more: Any, **miss: Any) -> Any:
        began.append(command[0])
        return results(dbt, command, *more, **miss)

    monkeypatch.setattr(runs, "_results", counted)
    assert (shop.command("run").exit_code, began) == (0, [])
    shop.project.rows("alter table {schema}.final_moving set tblproperties ('written' = 'by hand')")
    assert (shop.command("run").exit_code, began) == (0, ["run"])
    assert (shop.command("run").exit_code, began) == (0, ["run"])


def test_a_selection_without_models_is_an_error(shop: Shop) -> None:
    result = shop.command("run", "--select", "final_movin")
    assert (result.exit_code, result.stderr) == (2, "`--select final_movin` selects no model. Did you mean `final_moving`?\n")


def test_no_two_runs_of_a_project_are_at_work_at_once(shop: Shop) -> None:
    with runs.locked(shop.project.path):
        refused = shop.command("run")
    assert refused.exit_code == runs.BUSY
    assert f"Another run is at work: process {os.getpid()}, since " in refused.output


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_explain_tells_every_change_of_a_row_and_what_became_of_it(shop: Shop) -> None:
    shop.deliver("moving", "0002", ("U", 2, 1, None, 20, "late"), ("U", 5, 5, None, "many", "bad"))
    assert shop.command("run").exit_code == 0
    result = shop.command("explain", "moving", 1)
    assert result.exit_code == 0, result.output
    told = [line for line in result.output.splitlines() if line.startswith("2026")]
    assert ["applied" in told[0], "applied; came late" in told[1]] == [True, True]
    assert "id = 1 → id = 5" in told[2]
    assert "last word: what final shows; says nothing of note" in told[2]
    assert "quarantined: cast:n" in told[3]
    assert "final_moving: id = 5, n = 30, note = late" in result.output
    assert shop.command("explain", "moving", 5).output == result.output
    unknown = shop.command("explain", "moving", 99)
    assert unknown.exit_code == 1
    assert "table shop.moving: there is no change at that key (id)." in unknown.output
    assert "explain takes a value for each of id; 2 given" in shop.command("explain", "moving", 1, 2).output


@after(test_explain_tells_every_change_of_a_row_and_what_became_of_it)
def test_history_tells_every_version_under_every_key(shop: Shop) -> None:
    shown = shop.command("history", "shop.moving", 5)
    assert shown.exit_code == 0, shown.output
    heading, *versions = [line.split() for line in shown.output.splitlines() if line.strip()]
    assert heading[:3] == ["id", "n", "note"]
    assert [version[:3] for version in versions] == [["1", "10", "a"], ["1", "20", "late"], ["5", "30", "late"]]


def test_neither_key_nor_values_of_a_person_are_logged(shop: Shop) -> None:
    shop.deliver("moving", "0003", ("I", 10, 987654, None, 1, "quite secret"))
    assert shop.command("run").exit_code == 0
    assert "quite secret" in shop.command("explain", "moving", 987654).output
    told = "".join(log.read_text() for log in (shop.project.path / "logs").glob("dbt.log*"))  # dbt begins a new one at 10 MB
    assert "final_moving" in told
    # as digits of a time or of another number it is no key
    assert re.findall(r"quite secret|(?<![\d.])987654(?!\d)", told) == []


@pytest.mark.nightly  # what is held: test_operations, Q2_Q4; exit codes: the test below
@after(test_explain_tells_every_change_of_a_row_and_what_became_of_it, test_neither_key_nor_values_of_a_person_are_logged)
def test_a_change_set_that_is_held_is_told_and_so_is_the_exit_code(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.deliver("plain", "0002", ("D", 8, 1, None, None), ("D", 8, 2, None, None))
    held = shop.command("run")
    assert held.exit_code == runs.HELD
    assert "shop.plain (held)" in held.output
    assert "is held: it would delete 2 of the 2 live rows" in held.output
    state = json.loads(shop.command("status", "--json").output)
    plain, moving = sorted(state, key=lambda row: row["table"], reverse=True)
    assert (moving["newest"], moving["changes"], moving["final_rows"]) == ("2026-01-01T00:10:00.000000Z", 5, 2)
    assert (plain["state"], plain["final_rows"], plain["changes"]) == ("held", 2, 4)
    assert plain["change_set"].endswith("/plain/0002.jsonl")
    assert (moving["state"], moving["quarantined"], moving["late_share"]) == ("ok", "1 cast:n", pytest.approx(1 / 5))
    assert plain["newest"] == "2026-01-01T00:08:00.000000Z"
    assert plain["lag_seconds"] > 0
    assert "is held: it would delete" in shop.command("status").output
    with monkeypatch.context() as patch:  # as of a table that delta-rs cannot read: Spark tells the same
        patch.setattr(_LocalLog, "_highest", lambda *_: None)
        asked = json.loads(shop.command("status", "--json").output)
    assert [row["newest"] for row in asked] == [row["newest"] for row in state]
    assert shop.command("retract", "plain/0002.jsonl").exit_code == 0


def test_a_table_that_fails_is_told_with_the_reason_and_the_others_go_on(shop: Shop) -> None:
    path = shop.deliver("plain", "0003", ("U", 20, 1, None, 11, "c"))
    shop.deliver("moving", "0004", ("U", 20, 5, None, 31, "d"))
    shop.project.dbt("run", "--select", "cdc_change_sets", quiet=True)
    recorded = path.read_text()
    path.unlink()
    failed = shop.command("run")
    assert failed.exit_code == runs.FAILED
    assert "shop.plain (failed)" in failed.output
    assert "stg_shop__plain: " in failed.output
    assert shop.project.rows("select n from {schema}.final_moving where id = 5") == [{"n": 31}]
    state = {row["table"]: row for row in json.loads(shop.command("status", "--json").output)}
    assert state["shop.plain"]["state"] == "failed"
    assert state["shop.plain"]["why"][0].startswith("stg_shop__plain: ")
    path.write_text(recorded)


def test_a_run_that_stays_takes_what_comes_until_it_is_told_to_stop(shop: Shop) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    screen = io.StringIO()
    sources = shop.project.path / "models/shop/_sources.yml"
    declared = sources.read_text()

    def live() -> None:
        def ended(count: int) -> bool:
            return screen.getvalue().count("tables had news") >= count

        limit = time.monotonic() + 120
        while not ended(1) and time.monotonic() < limit:
            time.sleep(0.1)
        shop.deliver("moving", "0005", ("U", 30, 5, None, 50, "e"))
        while "1 of 2 tables had news: 1 changes" not in screen.getvalue() and time.monotonic() < limit:
            time.sleep(0.1)
        # a mistake in a file ends a run, not those after it
        sources.write_text(declared.replace("sequence_by", "sequence_bye"))
        while "No run; the next is tried in 1 s." not in screen.getvalue() and time.monotonic() < limit:
            time.sleep(0.1)
        runs_so_far = screen.getvalue().count("tables had news")
        sources.write_text(declared)
        while not ended(runs_so_far + 1) and time.monotonic() < limit:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    other = threading.Thread(target=live)
    other.start()
    options = ["--profiles-dir", str(shop.project.path)]
    select = ["cdc_change_sets", "stg_shop__moving+"]
    console = Console(file=screen, width=200)
    before = signal.getsignal(signal.SIGTERM)
    code = runs.run(load_project(shop.project.path), options, select=select, every=1, console=console)
    other.join()
    assert code == runs.DONE
    assert "Did you mean `sequence_by`?" in screen.getvalue()
    assert "Stopping when this run is through" in screen.getvalue()
    assert shop.project.rows("select n from {schema}.final_moving where id = 5") == [{"n": 50}]
    assert signal.getsignal(signal.SIGTERM) is before


@after(test_neither_key_nor_values_of_a_person_are_logged, test_a_run_that_stays_takes_what_comes_until_it_is_told_to_stop)
def test_reconcile_finds_each_row_that_is_not_as_the_source_has_it(shop: Shop) -> None:
    rows = shop.project.rows("select * from {schema}.final_moving")
    assert len(rows) == 2
    source = shop.project.path / "source.csv"

    def reconciled(*lines: str, heading: str = "ID,n,note,extra") -> Result:
        source.write_text("\n".join([heading, *lines]) + "\n")
        return shop.command("reconcile", "moving", "--against", "source.csv")

    same = [f"{row['id']},{row['n']},{row['note']},?" for row in rows]
    equal = reconciled(*same)
    assert (equal.exit_code, equal.output.splitlines()[-1]) == (0, "They are equal."), equal.output
    assert "Not compared, as one side lacks them: extra." in equal.output
    changed = reconciled("5,50,other,?", "7,1,x,?", "7,1,x,?")
    assert changed.exit_code == 1
    said = "They differ: 1 row only in final, 1 row only there, 1 row with other values, 1 row that repeats a key there."
    assert said in changed.output
    assert "  id = 5: note = e, there other\n" in changed.output
    assert "  id = 987654: only in final\n" in changed.output
    assert "  id = 7: only there\n" in changed.output
    assert "has no column id, by which its rows are told. It has: n." in reconciled(heading="n").output
    assert "  id = 5: n = 50, there many\n" in reconciled("5,many,e,?", same[-1]).output
    unknown = shop.command("reconcile", "moving", "--against", "not.there")
    assert "not.there cannot be read: [TABLE_OR_VIEW_NOT_FOUND]" in unknown.output


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_diff_tells_what_changed_between_two_moments_of_the_source(shop: Shop) -> None:
    changes = shop.project.rows("select min(at) as first, max(at) as last from {schema}.stg_shop__moving")[0]
    nothing = shop.command("diff", "moving", "--between", changes["last"], "now")
    assert nothing.exit_code == 0, nothing.output
    assert "0 added, 0 changed, 0 removed." in nothing.output
    first = {
        row["id"]: row
        for row in shop.project.rows("select * from {schema}.hist_shop__moving where valid_from = '2026-01-01 00:01:00'")
    }
    live = {row["id"]: row for row in shop.project.rows("select * from {schema}.final_moving")}
    assert "`2026-13-01` is no timestamp" in shop.command("diff", "moving", "--between", "2026-13-01", "now").output
    done = shop.command("diff", "moving", "--between", changes["first"], "now")
    assert done.exit_code == 1, done.output
    added, removed = len(live.keys() - first.keys()), len(first.keys() - live.keys())
    assert min(added, removed) > 0
    assert f"{len(first)} rows, then {len(live)}; {added} added, 0 changed, {removed} removed." in done.output
    assert "  id = 5: added\n" in done.output
    assert "  id = 1: removed\n" in done.output


@after(test_explain_tells_every_change_of_a_row_and_what_became_of_it)
def test_late_tells_how_late_changes_come(shop: Shop) -> None:
    done = shop.command("late")
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line for line in done.output.splitlines()}
    assert list(lines) == ["table", "shop.moving", "shop.plain"]
    rows = shop.project.rows("select * from {schema}.stg_shop__moving where _cdc_error is null order by _cdc_batch_id")
    newest: dict[int, Any] = {}
    for row in rows:
        newest[row["_cdc_batch_id"]] = max(row["at"], newest.get(row["_cdc_batch_id"], row["at"]))
    behind = []
    for row in rows:
        before = max((at for batch, at in newest.items() if batch < row["_cdc_batch_id"]), default=None)
        if before and row["at"] <= before:
            behind.append((before - row["at"]).total_seconds())
    assert behind, "nothing came late"
    counted = lines["shop.moving"].split()
    assert counted[1:3] == [str(len(rows)), str(len(behind))]
    assert f"{max(behind) / 60:.0f} m" in lines["shop.moving"]


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
@after(test_neither_key_nor_values_of_a_person_are_logged)
def test_export_snapshot_is_what_reconcile_finds_equal_and_never_writes_over_a_folder(shop: Shop, file_format: str) -> None:
    done = shop.command("export-snapshot", "moving", "--to", f"export/{file_format}", "--format", file_format)
    assert done.exit_code == 0, done.output
    assert "wrote 2 rows of final_moving to " in done.output
    equal = shop.command("reconcile", "moving", "--against", f"export/{file_format}", "--file-format", file_format)
    assert equal.exit_code == 0, equal.output
    again = shop.command("export-snapshot", "moving", "--to", f"export/{file_format}", "--format", file_format)
    assert again.exit_code != 0
    assert "is there already" in again.output


@after(
    test_explain_tells_every_change_of_a_row_and_what_became_of_it,
    test_neither_key_nor_values_of_a_person_are_logged,
    test_a_table_that_fails_is_told_with_the_reason_and_the_others_go_on,
    test_a_run_that_stays_takes_what_comes_until_it_is_told_to_stop,
)
def test_report_writes_a_page_of_what_the_runs_did(shop: Shop) -> None:
    done = shop.command("report", "--output", "out/page.html")
    assert done.exit_code == 0, done.output
    page = (shop.project.path / "out/page.html").read_text()
    assert "<td>shop.moving</td>" in page
    assert page.count('<rect class="bar') > 10


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_log_tells_the_commits_of_each_table_with_the_batch_that_they_brought(shop: Shop) -> None:
    done = shop.command("log", "moving", "--json")
    assert done.exit_code == 0, done.output
    logs = {name.split(".")[1]: log for name, log in json.loads(done.output).items()}
    assert list(logs) == ["stg_shop__moving", "int_shop__moving_keys", "final_moving"]
    newest, *_, first = logs["stg_shop__moving"]["commits"]
    assert (first["version"], first["app_version"] in (1, 2), first["inserted"]) == (0, True, 2)
    assert newest["version"] == len(logs["stg_shop__moving"]["commits"]) - 1
    assert newest["isolation"] == "Serializable"
    assert (first["rows_in_added_files"], first["removed_at"], newest["protocol"]) == (2, None, None)
    assert first["protocol"] == logs["stg_shop__moving"]["protocol"]
    assert first["protocol"].startswith("reader ")
    assert "final_moving  (file:" in shop.command("log", "moving").output


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_files_of_a_wide_staging_table_are_told_apart_by_what_it_is_read_by(shop: Shop) -> None:
    log = (shop.project.tables / "stg_shop__moving" / "_delta_log").glob("*.json")
    added = [action["add"] for file in log for action in map(json.loads, file.read_text().splitlines()) if "add" in action]
    lowest = [json.loads(each["stats"])["minValues"] for each in added]
    assert lowest
    for each in lowest:
        assert set(each) - {"_cdc_error"} == {"id", "_cdc_batch_id", "_cdc_sequence", "_cdc_occurred_at"}
    assert lowest[0]["_cdc_sequence"]["at"].startswith("2026-01-01T00:0")


@after(
    test_explain_tells_every_change_of_a_row_and_what_became_of_it,
    test_neither_key_nor_values_of_a_person_are_logged,
    test_a_table_that_fails_is_told_with_the_reason_and_the_others_go_on,
    test_a_run_that_stays_takes_what_comes_until_it_is_told_to_stop,
)
def test_maintain_makes_many_small_files_few_and_changes_no_row(shop: Shop) -> None:
    def contents() -> dict[str, Any]:
        tables = ("stg_shop__moving", "int_shop__moving_keys", "final_moving")
        return {t: sorted(map(str, shop.project.rows(f"select * from {{schema}}.{t}"))) for t in tables}

    before = contents()
    done = shop.command("maintain", "moving", "--min-files", 2)
    assert done.exit_code == 0, done.output
    assert "stg_shop__moving: 5 files, now 1, old versions now kept for 40 days" in done.output
    for table in before:
        kept = {row["key"]: row["value"] for row in shop.project.rows(f"show tblproperties {{schema}}.{table}")}
        for property in ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration"):
            assert kept[property] == "interval 40 days"
    assert contents() == before
    assert shop.command("maintain", "moving", "--min-files", 1).exit_code == 0
    history = shop.project.rows("describe history {schema}.final_moving")
    orders = {row["operationParameters"]["zOrderBy"] for row in history if row["operation"] == "OPTIMIZE"}
    assert orders == {'["note","id"]'}
    assert contents() == before
    nothing = shop.command("maintain", "moving", "--min-files", 2)
    assert "3 tables looked at, 0 had something to be done." in nothing.output
    shop.deliver("moving", "0006", ("U", 31, 5, None, 51, "f"))
    assert shop.command("run", "--select", "cdc_change_sets", "--select", "stg_shop__moving+").exit_code == 0
    assert shop.project.rows("select n from {schema}.final_moving where id = 5") == [{"n": 51}]


def _told_of_tables(output: str) -> list[str]:
    """What the summary says of each table, without seconds."""
    return [" ".join(line.split()[:-1]) for line in output.splitlines() if line.startswith("shop.")]


@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_a_plan_tells_what_the_next_run_does_and_writes_nothing(shop: Shop) -> None:
    mine = shop.project.path / "models/stg_mine__x.sql"  # named as many do; it is not the package's
    mine.write_text("{{ config(materialized='incremental') }} select count(*) as n from {{ ref('plain') }}")
    shop.deliver("plain", "0040", ("U", 40, 1, None, 12), ("I", 41, 3, None, 30), ("I", 41, 3, None, 30), ("?", 42, 4, None, 0))
    shop.deliver("moving", "0040", ("U", 25, 5, None, 45), ("U", 43, 6, 5, 60), ("D", 44, 987654, None, None))
    stood = _files_below(shop.project.lake)
    planned = shop.command("run", "--plan")
    assert planned.exit_code == 0, planned.output
    assert "That is a plan: nothing was written." in planned.output
    assert _files_below(shop.project.lake) == stood
    assert not [row for row in shop.project.rows("show schemas") if row["namespace"].endswith("__plan")]
    run = shop.command("run")
    assert run.exit_code == 0, run.output
    assert _told_of_tables(planned.output) == _told_of_tables(run.output)
    assert len(_told_of_tables(run.output)) == 2
    assert "0 of 2 tables had news" in shop.command("run", "--plan").output


@pytest.mark.nightly  # the refusal alone: it parses the project twice
def test_a_plan_of_a_project_that_gives_fixed_schemas_is_refused(shop: Shop) -> None:
    macro = shop.project.path / "macros/generate_schema_name.sql"
    macro.parent.mkdir(exist_ok=True)
    macro.write_text("{% macro generate_schema_name(custom, node) %}" + shop.project.schema + "{% endmacro %}")
    refused = shop.command("run", "--plan")
    macro.unlink()
    assert refused.exit_code == 1
    assert "the schema " + shop.project.schema + " whatever the schema of the profile is" in " ".join(refused.output.split())


def _files_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file() and "metastore" not in str(path)}


@pytest.mark.nightly  # the log of each table: the tests above
@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_the_log_of_all_tables_has_each_commit_once_also_of_a_table_that_was_made_anew(shop: Shop) -> None:
    project = shop.project
    settings = yaml.safe_load((project.path / "dbt_project.yml").read_text())
    (project.path / "dbt_project.yml").write_text(yaml.safe_dump({**settings, "vars": {"delta_cdc_table_log": True}}))
    project.generate()  # what was parsed without the variable does not have the model

    def record() -> str:
        results = project.dbt("run", "--select", "cdc_table_log", quiet=True).result.results
        return str(next(each.message for each in results if each.node.name == "cdc_table_log"))

    def recorded(table: str) -> list[dict[str, Any]]:
        return project.rows(f"select * from {{schema}}.cdc_table_log where `table` = '{table}' order by recorded_at, version")

    record()
    same = ("version", "commit_id", "operation", "app_version", "files_added", "schema_changes", "isolation", "checkpoint")
    logs = json.loads(shop.command("log", "moving", "--limit", 999, "--json").output)
    for table, log in logs.items():
        for row, told in zip(recorded(table.split(".")[1]), reversed(log["commits"]), strict=True):
            assert [row[name] for name in same] == [told[name] for name in same]
            assert (row["rows_inserted"], row["metrics"]) == (told["inserted"], told["metrics"])
            assert row["committed_at"].strftime("%Y-%m-%d %H:%M:%S") == told["at"]
    tables = {row["table"] for row in project.rows("select `table` from {schema}.cdc_table_log")}
    assert {"cdc_change_sets", "cdc_runs", "stg_shop__plain", "plain"} <= tables
    assert not {"cdc_table_log", "stg_mine__x"} & tables

    assert record().startswith("SKIP")
    assert project.rows("describe history {schema}.cdc_table_log")[0]["version"] == 0
    before = recorded("plain")
    project.rows("drop table {schema}.plain")
    project.rows("alter table {schema}.final_moving add columns (extra int)")
    project.dbt("run", "--select", "plain", quiet=True)
    record()
    assert [row["version"] for row in recorded("plain")] == [*(row["version"] for row in before), 0]
    assert recorded("plain")[:-1] == before
    assert recorded("final_moving")[-1]["schema_changes"] == ["added extra int"]
    assert record().startswith("SKIP")


def test_init_takes_columns_and_types_of_parquet_files(shop: Shop) -> None:
    folder = shop.project.path / "exports" / "visit [1]"
    folder.mkdir(parents=True)
    sums = polars.Series([Decimal("1.50")], dtype=polars.Decimal(12, 2))
    polars.DataFrame({"visit_id": [1], "total": sums, "page": ["a"]}).write_parquet(folder / "1.parquet")
    polars.DataFrame({"visit_id": [2], "seen": [datetime(2026, 1, 1, tzinfo=timezone.utc)]}).write_parquet(folder / "2.parquet")
    sheet = shop.project.path / "tables.csv"
    sheet.write_text("table,keys,sequence_by\nvisit [1],visit_id,seen\n")
    asked = ("init", "exports", "--format", "rows", "--location", "exports", "--from-csv", str(sheet))
    (folder / "3.parquet").write_text("cut off")
    assert "3.parquet: no Parquet file can be read there: " in shop.command(*asked).output
    (folder / "3.parquet").unlink()
    try:
        assert "wrote models/exports/_sources.yml: 1 table" in (done := shop.command(*asked)).output, done.output
        (source,) = yaml.safe_load((shop.project.path / "models" / "exports" / "_sources.yml").read_text())["sources"]
        assert source["config"]["meta"]["cdc"] == {"format": "rows", "location": "exports/{table}", "file_format": "parquet"}
        (table,) = source["tables"]
        assert (table["name"], table["config"]["meta"]["cdc"]["source_table"]) == ("visit_1", "visit [1]")
        assert {column["name"]: column["data_type"] for column in table["columns"]} == {
            "visit_id": "bigint", "total": "decimal(12,2)", "page": "string", "seen": "timestamp",
        }  # fmt: skip
    finally:
        shutil.rmtree(shop.project.path / "models" / "exports", ignore_errors=True)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("1h", 3600)])
def test_an_interval_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert runs.seconds_of(text) == seconds


def test_an_interval_that_is_none_is_refused(shop: Shop) -> None:
    assert "`15 min` is no interval. Give a whole number and s, m or h" in shop.command("run", "--every", "15 min").output


@pytest.mark.nightly  # the macro that it asks: test_rows, H4
@after(test_explain_tells_every_change_of_a_row_and_what_became_of_it, test_neither_key_nor_values_of_a_person_are_logged)
def test_as_of_tells_the_rows_of_a_moment_one_of_them_and_what_was_known_then(shop: Shop) -> None:
    def told(*asked: object) -> tuple[list[list[str]], str]:
        done = shop.command("as-of", "moving", *asked)
        assert done.exit_code == 0, done.output
        *lines, counted = (line for line in done.output.splitlines() if line.strip())
        assert not lines or lines[0].split()[:3] == ["id", "n", "note"]
        return [line.split()[:3] for line in lines[1:]], counted

    at = "2026-01-01 00:02:30"
    assert told(at) == ([["1", "20", "late"]], f"final_moving at {at}: 1 row.")
    assert told(at, 1) == told(at)
    assert told(at, 5) == ([], f"final_moving at {at}: 0 rows.")
    assert told("2026-01-01 00:15:00", "--limit", 1) == (
        [["5", "30", "late"]], "final_moving at 2026-01-01 00:15:00: 2 rows, 1 shown.")  # fmt: skip
    first = shop.project.rows("select cast(min(_cdc_staged_at) as string) as at from {schema}.stg_shop__moving")[0]["at"]
    assert told(at, "--known-at", first)[0] == [["1", "10", "a"]]
    live = shop.project.rows("select id, n, note from {schema}.final_moving order by id")
    assert told("now")[0] == [[str(row["id"]), str(row["n"]), row["note"] or "null"] for row in live]
    assert told("now")[1].startswith(f"final_moving at now: {len(live)} row")
    for asked in (["soon"], ["now", "--known-at", "soon"]):
        refused = shop.command("as-of", "moving", *asked)
        assert refused.exit_code == 1
        assert refused.stderr.splitlines()[-1].startswith("table shop.moving: `soon` is no timestamp, which is the type of ")
    unfit = shop.command("as-of", "moving", "now", "one")
    assert "what is given for id is not of its type, int." in unfit.stderr


@pytest.mark.nightly  # `rebuild` of a table whose staging is gone: test_bad_input, S8
@after(test_run_tells_what_each_table_did_and_nothing_when_nothing_came)
def test_rebuild_makes_anew_what_somebody_spoilt_and_leaves_staging(shop: Shop) -> None:
    def contents() -> list[list[dict[str, Any]]]:
        keys, history = "* except (resolved_batch_id) from {schema}.int_shop__moving_keys", "* from {schema}.hist_shop__moving"
        final = "id, n, note from {schema}.final_moving"
        return [sorted(shop.project.rows(f"select {of}"), key=str) for of in (keys, history, final)]

    def versions() -> list[int]:
        names = ("stg_shop__moving", "int_shop__moving_keys", "final_moving")
        return [int(shop.project.rows(f"describe history {{schema}}.{name}")[0]["version"]) for name in names]

    before = contents()
    assert all(before)
    shop.project.rows("delete from {schema}.int_shop__moving_keys where entity is not null")
    shop.project.rows("update {schema}.final_moving set n = -1")
    assert contents() != before
    shop.deliver("moving", "0090", ("U", 59, 6, None, 61))  # a rebuild loads nothing
    staged, keys, final = versions()
    done = shop.command("rebuild", "moving")
    assert done.exit_code == 0, done.output
    assert "1 of 2 tables had news: 0 changes, " in done.output
    assert contents() == before
    now = versions()
    assert now[0] == staged
    assert (now[1] > keys, now[2] > final) == (True, True)
    assert shop.command("run").exit_code == 0
    assert shop.project.rows("select n from {schema}.final_moving where id = 6") == [{"n": 61}]
    after = contents()
    assert shop.command("rebuild").exit_code == 1  # nobody there to confirm
    assert shop.command("rebuild", "--yes").exit_code == 0
    assert contents() == after


def _failing(shop: Shop, *select: str, **variables: object) -> set[str]:
    """The generic tests that fail of those that are selected; those that cannot run make it fail."""
    results = shop.project.try_dbt("test", "--select", *select, "--vars", json.dumps(variables), quiet=True).result.results
    results = [each for each in results if each.node.resource_type == "test"]  # not the hooks
    assert results
    told = {str(each.status): each.message for each in results}
    assert set(told) <= {"pass", "fail"}, told
    return {each.node.test_metadata.name for each in results if str(each.status) == "fail"}


def _tests_of_moving(tag: str) -> list[str]:
    return [f"{model},tag:{tag}" for model in ("final_moving", "stg_shop__moving")]


def test_tests_of_each_run_notice_what_is_wrong_at_touched_keys_and_nightly_ones_anywhere(shop: Shop) -> None:
    project, each_run, nightly = shop.project, _tests_of_moving("each_run"), _tests_of_moving("nightly")
    assert shop.command("run").exit_code == 0
    rows = [("I", 50, id, None, 1, "a") for id in (900, 901, 903)]
    shop.deliver("moving", "0050", *rows, ("U", 51, 902, 901, 2))
    clean = shop.command("run", "--test")
    assert clean.exit_code == 0, clean.output
    assert "Tests of touched keys: 3 ran, none failed." in clean.output
    assert _failing(shop, *nightly) == set()
    quiet = shop.command("run", "--test")
    assert quiet.exit_code == 0
    assert "Tests of" not in quiet.output

    # of the newest load; a run tells it
    project.rows("insert into {schema}.final_moving select * from {schema}.final_moving where id = 900")
    both = {"one_row_per_key", "final_equals_rebuild_from_staging"}
    assert _failing(shop, *each_run) == both
    assert _failing(shop, *nightly) == both
    shop.deliver("moving", "0051", ("U", 52, 900, None, 6))
    told = shop.command("run", "--test")
    assert told.exit_code == runs.FAILED
    assert "final_moving: [DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Several of" in told.output
    assert "it holds a key twice" in " ".join(told.output.split())
    project.dbt("run", "--full-refresh", "--select", "final_moving", quiet=True)
    assert _failing(shop, *each_run) == set()  # that load touched all of them
    assert _failing(shop, *nightly) == set()


@pytest.mark.nightly  # the test above, at other keys
@after(test_tests_of_each_run_notice_what_is_wrong_at_touched_keys_and_nightly_ones_anywhere)
def test_tests_of_each_run_notice_a_row_that_is_gone_and_leave_those_of_older_loads_to_the_night(shop: Shop) -> None:
    project, each_run, nightly = shop.project, _tests_of_moving("each_run"), _tests_of_moving("nightly")
    # gone from the key that it moved to
    shop.deliver("moving", "0052", ("U", 53, 900, None, 3), ("U", 53, 901, 902, 4))
    assert shop.command("run", "--test").exit_code == 0
    project.rows("delete from {schema}.final_moving where id = 901")
    assert _failing(shop, *each_run) == {"final_equals_rebuild_from_staging"}
    project.dbt("run", "--full-refresh", "--select", "final_moving", quiet=True)

    # of an older load
    shop.deliver("moving", "0053", ("U", 54, 900, None, 5))
    assert shop.command("run", "--test").exit_code == 0
    project.rows("delete from {schema}.final_moving where id = 903")
    assert _failing(shop, *each_run) == set()
    assert _failing(shop, *nightly) == {"final_equals_rebuild_from_staging"}
    assert _failing(shop, *each_run, delta_cdc_test_all=True) == {"final_equals_rebuild_from_staging"}

    # a run tells it
    project.rows("insert into {schema}.final_moving select * from {schema}.final_moving where id = 901")
    shop.deliver("moving", "0054", ("U", 55, 901, None, 6))
    told = shop.command("run", "--test")
    assert told.exit_code == runs.FAILED
    assert "final_moving: one_row_per_key: Got 1 result, configured to fail if != 0. Look: dbt test --select delta" in told.output
    assert "Tests of touched keys: 3 ran, 2 failed." in told.output
    project.dbt("run", "--full-refresh", "--select", "final_moving", quiet=True)
    assert _failing(shop, *nightly) == set()


@pytest.mark.nightly  # the SQL of its buckets: tests/unit/test_macros.py
def test_each_key_has_its_night(shop: Shop) -> None:
    """`plain` has two buckets."""
    keys = range(910, 918)
    shop.deliver("plain", "0050", *(("I", 55, id, None, 1, "a") for id in keys))
    assert shop.command("run", "--test").exit_code == 0
    final = "plain,test_name:final_equals_rebuild_from_staging,tag:nightly"
    nights = ("2026-11-27", "2026-11-28")
    assert [_failing(shop, final, delta_cdc_test_day=night) for night in nights] == [set(), set()]
    shop.project.rows("delete from {schema}.plain where id = 910")
    found = [len(_failing(shop, final, delta_cdc_test_day=night)) for night in nights]
    assert sorted(found) == [0, 1]
    shop.project.rows("delete from {schema}.plain where id between 911 and 917")
    assert [len(_failing(shop, final, delta_cdc_test_day=night)) for night in nights] == [1, 1]
    shop.project.dbt("run", "--full-refresh", "--select", "plain", quiet=True)
    assert [_failing(shop, final, delta_cdc_test_day=night) for night in nights] == [set(), set()]
