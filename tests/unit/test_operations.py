"""What the commands on loaded tables say before they start anything."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from dbt.clients.yaml_helper import load_yaml_text
from rich.console import Console
from tests.projects import FEED, TABLE, project, source
from tests.unit.macros import giving, load

from delta_cdc import run as runs
from delta_cdc.ask import explained, show_history, show_status, status_rows
from delta_cdc.cli import main
from delta_cdc.config_reader import load_project
from delta_cdc.errors import OperationError
from delta_cdc.operations import Dbt, error_of, find_table, operation, plain, with_file
from delta_cdc.project import Project
from delta_cdc.run import Busy, Summary, TableReport, locked, summarize


def two_feeds(root: Path) -> Path:
    tables = {"invoice": TABLE, "customer": TABLE}
    other = source("web", feed=FEED, tables={"invoice": TABLE | {"final_name": "final_web_invoice"}})
    return project(root, source(tables=tables), other)


@pytest.mark.parametrize("name", ["customer", "shop.customer", "stg_shop__customer", "hist_shop__customer", "final_customer"])
def test_a_table_is_named_by_itself_or_by_a_model(tmp_path: Path, name: str) -> None:
    table = find_table(load_project(two_feeds(tmp_path)), name)
    assert (table.feed, table.name) == ("shop", "customer")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("invoice", "There are several tables `invoice`. Say `shop.invoice` or `web.invoice`."),
        ("shop.custmer", "There is no table `shop.custmer`. Did you mean `shop.customer`?"),
        ("x", "There is no table `x`. Known: `shop.customer`, `shop.invoice`, `web.invoice`."),
    ],
)
def test_a_table_that_is_not_one(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(OperationError, match=r"^There ") as caught:
        find_table(load_project(two_feeds(tmp_path)), name)
    assert str(caught.value) == said


def test_R2_erase_wants_a_value_for_each_key_column(tmp_path: Path) -> None:
    where = ["--project-dir", str(two_feeds(tmp_path)), "--yes"]
    result = CliRunner().invoke(main, ["erase", "customer", "1", "2", *where])
    assert result.exit_code == 1
    assert result.stderr == "table shop.customer: erase takes a value for each of id; 2 given.\n"


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"changes": 3, "keys": 2}, "table shop.customer: 3 changes of the row, under 2 keys, would go. This cannot be undone, "),
        ({"changes": 0, "keys": 0}, "table shop.customer: the row was erased before, and what is left in files would go. "),
    ],
)
def test_R2_erase_asks_when_it_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, int], asked: str
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Dbt, "ask", lambda *_, key, **__: done.append(f"look at {key}") or told)
    monkeypatch.setattr("delta_cdc.operations.erase", lambda *_: done.append("erase"))
    erase = ["erase", "customer", "1", "--project-dir", str(two_feeds(tmp_path))]
    refused = CliRunner().invoke(main, erase, input="n\n")
    assert (refused.exit_code, done) == (1, ["look at ('1',)"])
    assert refused.output.startswith(asked)
    assert CliRunner().invoke(main, erase, input="y\n").exit_code == 0
    assert done[1:] == ["look at ('1',)", "erase"]


def test_R2_erase_does_not_ask_for_what_cannot_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OperationError("There is no table stg_shop__customer yet: nothing was loaded. Run `dbt run` first.")

    monkeypatch.setattr(Dbt, "ask", refuse)
    done = CliRunner().invoke(main, ["erase", "customer", "1", "--project-dir", str(two_feeds(tmp_path))], input="y\n")
    assert (done.exit_code, done.stdout) == (1, "")


def test_R2_erase_does_not_look_while_a_run_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dbt, "ask", lambda *_, **__: pytest.fail("it looked"))
    erase = ["erase", "customer", "1", "--project-dir", str(two_feeds(tmp_path))]
    with locked(tmp_path):
        assert CliRunner().invoke(main, erase, input="y\n").exit_code == Busy.exit_code


@pytest.mark.parametrize(
    ("given", "asked", "shown"),
    [
        (["7"], {"moment": "7", "known_at": None, "keyed": False, "limit": 20}, "final_customer at 7: 1,200 rows, 1 shown."),
        (["now", "-5"], {"moment": None, "known_at": None, "keyed": True, "limit": 20},
         "final_customer at now: 1,200 rows, 1 shown."),
        (["now", "--known-at", "2026-01-31", "--limit", "3"],
         {"moment": None, "known_at": "2026-01-31", "keyed": False, "limit": 3},
         "final_customer at now, as known at 2026-01-31: 1,200 rows, 1 shown."),
    ],
)  # fmt: skip
def test_as_of_asks_for_a_moment_and_shows_rows_without_bookkeeping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], asked: dict[str, object], shown: str
) -> None:
    seen: list[object] = []

    def ask(_: Dbt, macro: str, arguments: dict[str, object], *, key: tuple[str, ...], private: bool) -> object:
        seen.extend([macro, arguments, key, private])
        return {"rows": ['{"id": 1, "total": 1.50, "_cdc_batch_id": 9}'], "number": 1200}

    monkeypatch.setattr(Dbt, "ask", ask)
    result = CliRunner().invoke(main, ["as-of", "customer", *given, "--project-dir", str(two_feeds(tmp_path))])
    assert result.exit_code == 0, result.output
    assert seen == ["final_as_of", {"staging": "stg_shop__customer", **asked}, ("-5",) if asked["keyed"] else (), True]
    assert result.output.split() == ["id", "total", "1", "1.50", *shown.split()]


def test_versions_are_shown_with_columns_whose_names_have_brackets() -> None:
    screen = io.StringIO()
    show_history(['{"id": 1, "weight [kg]": 2, "speed [/h]": 3}'], Console(file=screen, width=200))
    assert screen.getvalue().splitlines()[0].split("  ") == ["id", "weight [kg]", "speed [/h]"]


@pytest.mark.parametrize("number", [12, 40, 200])
def test_no_column_of_a_wide_row_is_lost_on_a_narrow_screen(number: int) -> None:
    screen = io.StringIO()
    rows = [json.dumps({f"c{each}": f"v{each} {version}" for each in range(number)}) for version in "ab"]
    show_history(rows, Console(file=screen, width=80))
    folded = "".join(screen.getvalue().split())
    assert all(f"v{each}{version}" in folded for each in range(number) for version in "ab")
    assert ("c1: v1 a\n" in screen.getvalue(), f"v{number - 1} a\n\nc0: v0 b\n" in screen.getvalue()) == (number > 13,) * 2


def test_a_number_inside_of_a_value_is_no_text() -> None:
    screen = io.StringIO()
    show_history(['{"n": 19.90, "s": {"a": 19.90, "é": ["1.5", 1.50, 2, null, true, "\\""]}}'], Console(file=screen, width=200))
    assert screen.getvalue().splitlines()[1].split("  ") == ["19.90", '{"a": 19.90, "é": ["1.5", 1.50, 2, null, true, "\\""]}']


def test_a_value_of_a_feed_steers_no_terminal() -> None:
    screen = io.StringIO()
    row = json.dumps({"a\x1b]0;x\x07": "\x1b[2Jgone\r\u202e", "text": "ä\n\ttab"})
    show_history([row], Console(file=screen, width=200, force_terminal=True, color_system=None))
    assert r"\x1b[2Jgone\r\u202e" in screen.getvalue()
    assert r"a\x1b]0;x\x07" in screen.getvalue()
    assert "ä" in screen.getvalue()


def test_diff_knows_now_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    counts = ("only_in_final", "only_in_other", "differing", "repeated_keys", "final_rows", "other_rows")
    monkeypatch.setattr(Dbt, "ask", lambda *given, **_: asked.append(given[2]) or {**dict.fromkeys(counts, 0), "examples": []})
    result = CliRunner().invoke(
        main, ["diff", "customer", "--between", "now", "2026-01-31", "--project-dir", str(two_feeds(tmp_path))]
    )
    assert result.output.startswith("final_customer from now to 2026-01-31: 0 rows, then 0;")
    assert asked == [{"staging": "stg_shop__customer", "since": None, "until": "2026-01-31", "limit": 10}]


def test_explain_says_all_of_a_row_that_comes_again(tmp_path: Path) -> None:
    table = load_project(two_feeds(tmp_path)).tables[0]
    unsaid = dict.fromkeys((
        "error", "is_held", "is_late", "is_last", "origin", "missing", "entity", "key", "key_before", "sequence", "occurred_at",
        "batch_id", "change_set", "row", "staged_at",
    ))  # fmt: skip
    said = [("I", '{"name": "Ada"}'), ("U", '{"name": "Ada"}'), ("D", "{}"), ("I", '{"name": "Ada"}')]
    told = explained(table, {"changes": [unsaid | {"op": op, "values": values} for op, values in said]})
    assert [change["says"] for change in told] == ["name = Ada", "", "", "name = Ada"]


def test_Q4_explain_says_of_a_truncate_that_it_is_held(tmp_path: Path) -> None:
    table = load_project(two_feeds(tmp_path)).tables[0]
    unsaid = dict.fromkeys((
        "error", "is_late", "is_last", "origin", "missing", "entity", "key", "key_before", "sequence", "occurred_at",
        "batch_id", "change_set", "row", "staged_at", "values",
    ))  # fmt: skip
    told = explained(table, {"changes": [unsaid | {"op": "T", "is_held": is_held} for is_held in (True, False)]})
    assert [change["became"] for change in told] == ["held: `delta-cdc status` says why", "ends every row"]


@pytest.mark.parametrize("name", ["𠮷野/0001.jsonl", "é\u2028\x85", "\\ud83d\\", "now", "1100"])
def test_dbt_reads_each_argument_as_it_was_given(name: str) -> None:
    given = {"change_set": name, "staging": [name], "limit": 1, "moment": None}
    assert load_yaml_text(operation("retract", given)[-1]) == given


@pytest.mark.parametrize(
    ("asked", "answer", "code", "said"),
    [
        (["history", "customer", "1"], [], 0, "hist_shop__customer has no version there."),
        (["explain", "customer", "1"], {"changes": [], "final": []}, 0, "final_customer has no row there."),
        (["explain", "customer", "1"], {"changes": [], "final": None}, 0, "There is no final_customer yet. Run `dbt run` first."),
        (["log", "customer"], {}, 1, "There is no table stg_shop__customer yet: nothing was loaded. Run `dbt run` first."),
        (["late", "customer"], [], 0, "Not loaded yet: shop.customer"),
    ],
)
def test_a_command_that_finds_nothing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], answer: Any, code: int, said: str
) -> None:
    monkeypatch.setattr(Dbt, "ask", lambda *_, **__: answer)
    done = CliRunner().invoke(main, [*asked, "--project-dir", str(two_feeds(tmp_path))])
    assert (done.exit_code, done.output.splitlines()[-1]) == (code, said)


def test_as_of_wants_a_value_for_each_key_column_or_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["as-of", "customer", "now", "1", "2", "--project-dir", str(two_feeds(tmp_path))])
    assert (result.exit_code, result.stderr) == (1, "table shop.customer: as-of takes a value for each of id; 2 given.\n")


def test_a_table_whose_rows_are_only_added_has_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dbt, "ask", lambda *_, **__: pytest.fail("it asked"))
    path = str(project(tmp_path, source(tables={"event": TABLE | {"insert_only": True}})))
    done = CliRunner().invoke(main, ["history", "event", "1", "--project-dir", path])
    assert done.stderr.startswith("table shop.event: rows of an `insert_only` table do not change, so it has no history. ")


def test_a_row_is_named_of_a_table_with_keys(tmp_path: Path) -> None:
    root = project(tmp_path, source(tables={"note": {"keyless": "append", "sequence_by": ["seq"]}}))
    result = CliRunner().invoke(main, ["explain", "note", "1", "--project-dir", str(root)])
    said = "table shop.note: explain takes a table with keys, and this one has none. `keys` in its source names them.\n"
    assert (result.exit_code, result.stderr) == (1, said)


def rebuilt(
    monkeypatch: pytest.MonkeyPatch, there: list[str], *arguments: str, answer: str = ""
) -> tuple[Result, list[list[str]]]:
    """What `rebuild` says, and which models it has dbt make anew. there: the staging tables that are loaded."""
    made: list[list[str]] = []

    def run_once(_dbt: object, project: Project, command: list[str], _console: object) -> Summary:
        assert command[:3] == ["run", "--full-refresh", "--select"]
        made.append(command[3:])
        return Summary([TableReport("shop.customer", inserted=3)], [], 1.0)

    monkeypatch.setattr("delta_cdc.run.run_once", run_once)
    monkeypatch.setattr("delta_cdc.run.WarmDbt.ask", lambda *_: there)
    return CliRunner().invoke(main, ["rebuild", *arguments], input=answer), made


def test_rebuild_makes_anew_what_is_made_of_staging_and_not_staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moving = source(tables={"invoice": TABLE | {"old_keys": {"id": "old_id"}}, "customer": TABLE})
    where = ["--project-dir", str(project(tmp_path, moving))]
    of_customer = ["file:hist_shop__customer", "file:final_customer"]  # a name alone may be a folder's too
    done, made = rebuilt(monkeypatch, ["stg_shop__customer"], "customer", *where)
    assert (done.exit_code, made) == (0, [of_customer]), done.output
    assert "shop.customer" in done.output
    done, made = rebuilt(monkeypatch, ["stg_shop__customer"], *where, answer="y\n")
    assert (done.exit_code, made) == (0, [of_customer])
    assert "All rows of 2 tables are written anew. Rebuild? [y/N]" in done.output
    assert "Not loaded yet, so not rebuilt: shop.invoice" in done.output
    done, made = rebuilt(monkeypatch, ["stg_shop__customer", "stg_shop__invoice"], "--yes", *where)
    assert made == [[*of_customer, "file:int_shop__invoice_keys", "file:hist_shop__invoice", "file:final_invoice"]]
    done, made = rebuilt(monkeypatch, [], *where, answer="n\n")
    assert (done.exit_code, made) == (1, [])


def test_rebuild_tells_why_it_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ["--project-dir", str(project(tmp_path, source()))]
    done, made = rebuilt(monkeypatch, [], "invoice", *where)
    assert (done.exit_code, done.stderr, made) == (1, "None of these tables is loaded yet. Run `dbt run` first.\n", [])
    done, _ = rebuilt(monkeypatch, [], "invoic", *where)
    assert (done.exit_code, done.stderr) == (1, "There is no table `invoic`. Did you mean `shop.invoice`?\n")
    with locked(tmp_path):
        done, made = rebuilt(monkeypatch, ["stg_shop__invoice"], "invoice", *where)
    assert (done.exit_code, made) == (75, [])
    done, _ = rebuilt(monkeypatch, [], "--project-dir", str(project(tmp_path)))
    assert (done.exit_code, done.stderr) == (1, "There are no feeds, so no tables to rebuild.\n")


def test_an_error_of_dbt_is_shown_without_its_frame() -> None:
    said = "Compilation Error in macro accept (macros/x.sql)\n  table t: batch 1 is not held.\n  \n  > in macro accept (x.sql)\n"
    assert plain(said) == with_file(said) == "table t: batch 1 is not held."


def test_a_model_that_dbt_cannot_read_is_told_with_its_file() -> None:
    said = "Compilation Error in model x (models/x.sql)\n  unexpected '}'\n    line 1\n      select {{ }"
    for given in (said, f"Encountered an error:\n{said}"):
        assert with_file(given) == "models/x.sql: unexpected '}'\nline 1\nselect {{ }"
    lacks = "Compilation Error in model x (models/x.sql)\n  'delta_cdc' is undefined"
    assert with_file(lacks).startswith("The package delta_cdc is not there.")


@pytest.mark.parametrize("command", [["status"], ["run"], ["erase", "customer", "1", "--yes"]])
def test_a_profile_that_is_not_there_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project").mkdir()
    root = two_feeds(tmp_path / "project")
    (root / "dbt_project.yml").write_text("{name: mine, version: 1.0.0, profile: mine}")

    def said(*options: str) -> str:
        done = CliRunner().invoke(main, [*command, "--project-dir", str(root), *options])
        assert done.exit_code == (2 if command == ["run"] else 1)
        return done.stderr

    remedy = "or name its folder with --profiles-dir; in a clone of delta_cdc: --profiles-dir profiles --target demo.\n"
    # dbt's own default was found when it was imported
    by_default = ("There is no profiles.yml in the folder where this was started, nor in /", "There is no profile `mine`")
    assert said().startswith(by_default)
    assert said("--profiles-dir", "gone").startswith("There is no folder gone, where profiles.yml is looked for.")
    assert said("--profiles-dir", ".").startswith("There is no profile `mine` (`profile` in dbt_project.yml): dbt looks for ")
    assert said("--profiles-dir", ".").endswith(remedy)


def test_a_macro_that_failed_tells_it_in_an_event_and_nowhere_else() -> None:
    def event(name: str, level: str = "info") -> SimpleNamespace:
        return SimpleNamespace(info=SimpleNamespace(name=name, level=level, msg="shown"), data=SimpleNamespace(exc="what it was"))

    assert error_of(event("RunningOperationCaughtError", "error")) == "what it was"
    assert error_of(event("RunningOperationUncaughtError", "error")) == "what it was"
    assert error_of(event("MainEncounteredError", "error")) == "shown"
    assert error_of(event("LogModelResult")) is None


def test_a_command_that_is_interrupted_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dbt hands an interruption back like any failure, with an error without a text."""

    class Interrupted:
        def __init__(self, callbacks: object) -> None:
            pass

        def invoke(self, _arguments: list[str]) -> SimpleNamespace:
            return SimpleNamespace(success=False, exception=KeyboardInterrupt(), result=None)

    monkeypatch.setattr("dbt.cli.main.dbtRunner", Interrupted)
    done = CliRunner().invoke(main, ["late", "--project-dir", str(two_feeds(tmp_path))])
    assert (done.exit_code, done.stderr) == (1, "\nAborted!\n")


def test_R2_a_key_of_the_command_line_is_not_in_what_dbt_writes_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dbt keeps the process's command line in logs and in run_results.json."""
    seen: list[list[str]] = []

    class Runner:
        def __init__(self, callbacks: object) -> None:
            pass

        def invoke(self, arguments: list[str]) -> SimpleNamespace:
            seen.append([*sys.argv, *arguments])
            return SimpleNamespace(success=True)

    monkeypatch.setattr("dbt.cli.main.dbtRunner", Runner)
    monkeypatch.setattr(sys, "argv", ["delta-cdc", "erase", "invoice", "alice@example.com", "--yes"])
    Dbt(tmp_path).run_operation("erase", {"staging": "stg_shop__invoice"}, key=["alice@example.com"])
    assert seen
    assert "alice@example.com" not in seen[0]
    assert sys.argv[-2] == "alice@example.com"


def test_a_folder_that_takes_no_locks_is_not_a_run_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OperationError, match=r"cannot be locked \(No locks available\)") as caught, locked(tmp_path):
        pass
    assert not isinstance(caught.value, Busy)


def test_the_lock_of_a_run_outlives_dbt_clean(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with locked(tmp_path):
        shutil.rmtree(tmp_path / "target")
        with pytest.raises(Busy, match="Another run is at work: process"), locked(tmp_path):
            pass


def test_a_folder_that_cannot_be_written_is_told() -> None:
    with pytest.raises(OperationError, match="cannot be written"), locked(Path("/proc")):
        pass


def test_a_final_table_may_be_named_like_a_staging_table(tmp_path: Path) -> None:
    read = load_project(project(tmp_path, source(tables={"invoice": TABLE | {"final_name": "stg_invoice"}})))

    def node(name: str, **response: object) -> SimpleNamespace:
        told = SimpleNamespace(name=name)
        return SimpleNamespace(status="success", node=told, message="", execution_time=1.0, adapter_response=response)

    nodes = [node("stg_shop__invoice", rows_inserted=5, report={"rows_read": 5}), node("stg_invoice", rows_inserted=4)]
    (table,) = summarize(read, nodes, 1.0).tables
    assert (table.read, table.inserted) == (5, 4)
    # of partitions that are rewritten Delta counts all rows, and final those that change
    counts = {"rows_inserted": 1, "rows_updated": 2, "rows_deleted": 0}
    (table,) = summarize(read, [node("stg_invoice", rows_inserted=900, rows_deleted=899, report=counts)], 1.0).tables
    assert (table.inserted, table.updated, table.deleted) == (1, 2, 0)


@pytest.mark.parametrize("kept", [None, 100])  # rows of staging that the load writes anew, for a type (E4)
@pytest.mark.parametrize(
    ("read", "inserted", "late", "repeated", "late_repeated", "told"),
    [
        (2, 1, 2, 1, 1, (1, 1)),  # one late change, in two change sets of the load
        (6, 0, 6, 3, 3, (6, 0)),  # two copies of what was staged before
        (5, 3, 1, 2, 0, (2, 1)),  # what is on time comes twice too
        (3, 3, 3, 1, 1, (0, 3)),  # equal, and yet all of them rows (N1)
        (4, 2, 2, 2, 0, (2, 2)),  # beside two late ones, two that cannot be used and were staged before
    ],
)
def test_a_late_change_that_a_load_has_twice_is_one(
    tmp_path: Path,
    read: int,
    inserted: int,
    late: int,
    repeated: int,
    late_repeated: int,
    told: tuple[int, int],
    kept: int | None,
) -> None:
    shop = load_project(project(tmp_path, source()))
    report = {"rows_read": read, "rows_late": late, "rows_repeated": repeated, "rows_late_repeated": late_repeated}
    report |= {"last_batch_id": 1} | ({"rows_kept": kept} if kept else {})
    response = {"rows_inserted": inserted + (kept or 0), "report": report}
    node = SimpleNamespace(
        status="success",
        message="",
        execution_time=1.0,
        adapter_response=response,
        node=SimpleNamespace(
            name="stg_shop__invoice",
            alias="stg_shop__invoice",
            unique_id="stg",
            resource_type="model",
            config=SimpleNamespace(materialized="incremental"),
        ),
    )
    (table,) = summarize(shop, [node], 1.0).tables
    assert (table.duplicate, table.late) == told
    said: list[str] = []
    fakes = {
        "_runs_relation": "cdc_runs",
        "layers": {"stg_shop__invoice": "staging"},
        "noted_runs": {"done": {}, "failed": {}},
        "names_in_runs": {"stg": "stg_shop__invoice"},
        "in_session": True,
    }
    made = giving(fakes) | {"_write": lambda _, sql, options: said.append(sql)}
    adapter = SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True))
    load(made, invocation_id="i", adapter=adapter)["record_run"]([node])
    assert f"'staging', null, 1, {read}, {told[0]}, {told[1]}, null, {inserted}, " in said[0]


@pytest.mark.parametrize(("model", "state"), [("raw_shop", "failed"), ("cdc_change_sets", "failed"), ("raw_other", "ok")])
def test_status_knows_that_what_a_table_is_read_from_failed(tmp_path: Path, model: str, state: str) -> None:
    feed = {key: value for key, value in FEED.items() if key != "location"} | {"format": "wal2json_v2", "location": "landing"}
    read = load_project(project(tmp_path, source(feed=feed, tables={"invoice": {"keys": ["id"]}})))
    told = {
        "tables": [{"name": "shop.invoice", "newest": "10120131"}],
        "holds": [],
        "quarantine": [],
        "runs": [{"table": model, "status": "error", "error": "a change set is gone"}],
    }
    (row,) = status_rows(read, told)
    assert (row["state"], row["lag_seconds"]) == (state, None)


@pytest.mark.parametrize(("status", "folder", "state"), [
    ("held", "file:/l/invoice", "held"), ("held", "file:/l/invoice/2026", "held"), ("held", "file:/l/invoice_2", "ok"),
    ("success", "file:/l/invoice", "ok"),  # mended since
])  # fmt: skip
def test_S4_status_tells_that_a_table_s_folder_has_a_gap(tmp_path: Path, status: str, folder: str, state: str) -> None:
    read = load_project(project(tmp_path, source()))
    first = {"feed": "shop", "folder": folder, "change_set": f"{folder}/s-12", "number": 12, "gap_after": 10, "waiting": 2}
    said = [load()["_says_gap"](SimpleNamespace(**gap)) for gap in (first, {**first, "feed": "other"})]
    told = {
        "tables": [{"name": "shop.invoice", "folder": "file:/l/invoice"}],
        "holds": [],
        "quarantine": [],
        "runs": [{"table": "cdc_change_sets", "status": status, "error": "\n".join(said) if status == "held" else None}],
    }
    (row,) = status_rows(read, told)
    assert (row["state"], row["why"]) == (state, said[:1] if state == "held" else [])


def test_status_says_once_what_keeps_all_tables_of_a_feed() -> None:
    rows = [{"table": f"shop.{name}", "state": "failed", "why": ["raw_shop: a change set is gone"]} for name in "abc"]
    rows.append({"table": "shop.d", "state": "paused", "why": ["paused: it moves"]})
    screen = io.StringIO()
    show_status(rows, [], Console(file=screen, width=200))
    told = screen.getvalue().splitlines()[-2:]
    assert told == ["shop.a and 2 more: raw_shop: a change set is gone", "shop.d: paused: it moves"]


def test_status_tells_messages_of_no_listed_table_to_programs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [("shop", "invoice", "cast:at"), ("shop", "public.signal", "unknown_table"), ("shop", None, "unparsable")]
    quarantine = [{"feed": feed, "source_table": table, "error": error, "n": 1204} for feed, table, error in names]
    told = {"tables": [], "runs": [], "holds": [], "quarantine": quarantine}
    monkeypatch.setattr(Dbt, "ask", lambda *_, **__: told)

    def rows(*tables: str) -> list[dict[str, Any]]:
        done = CliRunner().invoke(main, ["status", *tables, "--json", "--project-dir", str(root)])
        assert done.exit_code == 0, done.output
        return [row for row in json.loads(done.stdout) if row["state"] == "not listed"]

    root = two_feeds(tmp_path)
    assert rows() == [
        {"table": "shop.public.signal", "state": "not listed", "why": [], "quarantined": "1204 unknown_table"},
        {"table": "shop", "state": "not listed", "why": [], "quarantined": "1204 unparsable"},
    ]
    assert rows("customer") == []


def test_the_page_of_operations_tells_each_key_that_status_gives_to_programs(tmp_path: Path) -> None:
    told: dict[str, Any] = {"runs": [], "holds": [], "quarantine": [], "tables": [{"name": "shop.invoice"}], "counts": {}}
    (row,) = status_rows(load_project(project(tmp_path, source())), told)
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    lines = page.split("**`--json`** gives all of it")[1].split("A table that is not loaded has")[0].splitlines()
    named = [name for line in lines for name in re.findall(r"`(\w+)`", line.split("|")[1] if line.startswith("|") else "")]
    assert sorted(named) == sorted(row)


def test_status_has_counts_where_they_were_asked_for_of_the_tables_that_were_named(tmp_path: Path) -> None:
    read = load_project(two_feeds(tmp_path))
    invoice, customer = find_table(read, "shop.invoice"), find_table(read, "customer")
    told: dict[str, Any] = {"runs": [], "holds": [], "quarantine": [], "tables": []}
    told["tables"] = [{"name": name} for name in ("shop.invoice", "shop.customer")]
    assert ["counts" in row for row in status_rows(read, told)] == [False, False, False]
    counts = {"ties": 12345, "partial_without_base": 0}
    rows = status_rows(read, {**told, "counts": {"shop.invoice": counts, "shop.customer": None}}, [customer, invoice])
    assert [(row["table"], row["counts"]) for row in rows] == [("shop.customer", None), ("shop.invoice", counts)]
    screen = io.StringIO()
    show_status(rows, [], Console(file=screen, width=200))
    assert [line.split() for line in screen.getvalue().splitlines()[-2:]] == [
        ["table", "ties", "partial", "without", "base"],
        ["shop.invoice", "12,345", "0"],
    ]


class WarmTests:
    """Ends `dbt test` with what it is given: results, or why there are none."""

    def __init__(self, *results: SimpleNamespace, exception: Exception | None = None) -> None:
        self.results, self.exception = results, exception
        self.commands: list[tuple[str, ...]] = []

    def run(self, _progress: object, _title: str, *command: str, **_: object) -> SimpleNamespace:
        self.commands.append(command)
        result = None if self.exception else SimpleNamespace(results=list(self.results))
        return SimpleNamespace(result=result, success=self.exception is None, exception=self.exception)


def one_test(status: str, test: str, model: str | None, message: str = "") -> SimpleNamespace:
    about = {"attached_node": f"model.p.{model}", "test_metadata": SimpleNamespace(name=test)} if model else {}
    node = SimpleNamespace(name=f"delta_cdc_{test}_of_{model}", resource_type="test", **about)
    return SimpleNamespace(status=status, message=message, node=node)


def news(name: str, **more: Any) -> TableReport:
    return TableReport(name, read=1, reached_final=True, **more)


def shown(summary: Summary) -> str:
    screen = io.StringIO()
    runs.show(summary, Console(file=screen, width=200))
    return screen.getvalue()


def test_the_tests_of_a_run_are_those_of_tables_that_had_news(tmp_path: Path) -> None:
    summary = Summary([TableReport("shop.invoice"), news("shop.customer"), TableReport("web.invoice", read=1)], [], 1.0)
    dbt = WarmTests(one_test("pass", "one_row_per_key", "final_customer"), one_test("warn", "mine", None))
    runs.check_news(dbt, load_project(two_feeds(tmp_path)), summary, Console(file=io.StringIO()))  # type: ignore[arg-type]
    models = ("stg_shop__customer", "hist_shop__customer", "final_customer")
    assert dbt.commands == [("test", "--select", *(f"file:{model},tag:each_run" for model in models))]
    assert (summary.exit_code, summary.tested, summary.failed_tests) == (runs.DONE, 2, [])
    assert "Tests of touched keys: 2 ran, none failed." in shown(summary)


def test_nothing_is_tested_where_nothing_came_or_the_table_failed(tmp_path: Path) -> None:
    dbt, failed = WarmTests(), news("shop.customer", failed=["final_customer: no"])
    for tables in ([TableReport("shop.customer", reached_final=True)], [failed]):
        runs.check_news(dbt, load_project(two_feeds(tmp_path)), Summary(tables, [], 1.0), Console(file=io.StringIO()))  # type: ignore[arg-type]
    assert dbt.commands == []
    assert "Tests of" not in shown(Summary([failed], [], 1.0))


def test_a_test_that_fails_is_told_with_how_to_look_and_by_the_exit_code(tmp_path: Path) -> None:
    summary = Summary([news("shop.customer", held="batch 3 is held")], [], 1.0)
    assert summary.exit_code == runs.HELD
    dbt = WarmTests(
        one_test("fail", "one_row_per_key", "final_customer", "Got 1 result, configured to fail if != 0"),
        one_test("error", "mine", None, "Runtime Error in test mine (tests/mine.sql)\n  no such column"),
        one_test("pass", "each_change_once", "stg_shop__customer"),
    )
    runs.check_news(dbt, load_project(two_feeds(tmp_path)), summary, Console(file=io.StringIO()))  # type: ignore[arg-type]
    assert summary.failed_tests == [
        "final_customer: one_row_per_key: Got 1 result, configured to fail if != 0. "
        "Look: dbt test --select delta_cdc_one_row_per_key_of_final_customer",
        "delta_cdc_mine_of_None: no such column. Look: dbt test --select delta_cdc_mine_of_None",
    ]
    assert summary.exit_code == runs.FAILED
    told = shown(summary)
    assert all(line in told for line in summary.failed_tests)
    assert "Tests of touched keys: 3 ran, 2 failed." in told


def test_tests_that_cannot_start_do_not_hide_what_the_run_did(tmp_path: Path) -> None:
    summary = Summary([news("shop.customer")], [], 1.0)
    dbt = WarmTests(exception=RuntimeError("no Spark"))
    runs.check_news(dbt, load_project(two_feeds(tmp_path)), summary, Console(file=io.StringIO()))  # type: ignore[arg-type]
    assert summary.failed_tests == ["The tests did not run: no Spark"]
    assert summary.exit_code == runs.FAILED
    assert "1 of 1 tables had news" in shown(summary)


def test_a_plan_is_not_tested(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["run", "--plan", "--test", "--project-dir", str(two_feeds(tmp_path))])
    assert result.exit_code == 2
    assert "it does not go with --test" in result.stderr


@pytest.mark.parametrize(("conflicts", "status"), [(0, "success"), (2, "success"), (3, "error")])
def test_a_model_that_met_another_writer_runs_again_and_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conflicts: int, status: str
) -> None:
    read = load_project(project(tmp_path, source()))
    asked: list[list[str]] = []

    def results(_dbt: object, command: list[str], _console: object, **_: object) -> list[SimpleNamespace]:
        asked.append(command)
        fails = len(asked) <= conflicts
        said = "Runtime Error\n  [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] somebody wrote"
        final, mart = ("error", "skipped") if fails else ("success", "success")
        of = {"stg_shop__invoice": "success", "final_invoice": final, "mart": mart}
        return [
            SimpleNamespace(status=state, message=said if state == "error" else "", execution_time=0.0, adapter_response={},
                            node=SimpleNamespace(name=name, path=f"{name}.sql"))
            for name, state in of.items()
        ]  # fmt: skip

    monkeypatch.setattr(runs, "_results", results)
    monkeypatch.setattr(runs.time, "sleep", lambda _: None)
    (table,) = runs.run_once(SimpleNamespace(models=[]), read, ["run"], Console()).tables
    assert bool(table.failed) is (status == "error")
    assert asked[0] == ["run"]
    assert asked[1:] == [["run", "--select", "file:final_invoice.sql", "file:mart.sql"]] * min(conflicts, 2)
