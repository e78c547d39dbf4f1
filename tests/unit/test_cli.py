"""The command line: what it prints and how it leaves."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.projects import TABLE, project, source

from delta_cdc.cli import main
from delta_cdc.settings_page import reference_page


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_validate_shows_the_feeds(tmp_path: Path) -> None:
    result = run("validate", "--project-dir", project(tmp_path, source()))
    assert result.exit_code == 0
    assert "landing/{table}" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 feed, 1 table: no problems found."


def test_generate_tells_of_a_model_that_has_the_name_of_a_generated_one(tmp_path: Path) -> None:
    root = project(tmp_path, source())
    (root / "models/marts").mkdir()
    (root / "models/marts/Final_invoice.sql").write_text("select 1")
    said = "Note: models/marts/Final_invoice.sql has the name of a generated model, at which dbt stops."
    assert said in run("generate", "--project-dir", root).stdout
    assert said in run("generate", "--project-dir", root).stdout
    (root / "models/marts/Final_invoice.sql").unlink()
    assert "Note:" not in run("generate", "--project-dir", root).stdout


def test_validate_tells_of_folders_in_which_nothing_will_be_found(tmp_path: Path) -> None:
    def notes(*tables: str, **feed: object) -> list[str]:
        of_feed = {"format": "rows", "location": "landing/{table}", "operation": "op"} | feed
        result = run("validate", "--project-dir", project(tmp_path, source(feed=of_feed, tables=dict.fromkeys(tables, TABLE))))
        assert result.exit_code == 0, result.output
        return [line.removeprefix("Note: feed shop: ") for line in result.stdout.splitlines() if line.startswith("Note: ")]

    assert notes("invoice") == ["there is no folder landing/invoice yet."]
    (tmp_path / "landing/Invoice/2026").mkdir(parents=True)
    told = notes("invoice", "orders")
    assert told == [
        "there is no folder landing/invoice. If `Invoice` beside it is meant, say so in `source_table`.",
        "there is no folder landing/orders yet.",
    ]
    (deeper,) = notes("Invoice")
    assert deeper.startswith("landing/Invoice holds folders and no files (landing/Invoice/2026). ")
    assert notes("Invoice", sub_folders=True) == []
    (unready,) = notes("Invoice", unit="folder")
    assert unready == "no folder in landing/Invoice has a file _SUCCESS, with which it is whole (`ready`)."
    assert notes("Invoice", file_format="delta") == ["landing/Invoice is no Delta table: it has no _delta_log."]
    (tmp_path / "landing/Invoice/2026/_SUCCESS").touch()
    assert notes("Invoice", unit="folder") == []
    (tmp_path / "landing/Invoice/1.jsonl").touch()
    assert notes("Invoice") == notes("Invoice", location="s3a://bucket/{table}") == []
    assert notes("Invoice", location="landing/{table}/1.jsonl") == [
        "landing/Invoice/1.jsonl is a file. `location` takes the folder that holds the change sets."
    ]


def test_validate_tells_of_files_of_another_kind(tmp_path: Path) -> None:
    """Read as lines of JSON, each row of a CSV file would be quarantined."""
    folder = tmp_path / "landing/invoice"
    folder.mkdir(parents=True)

    def notes(**feed: object) -> list[str]:
        of_feed = {"format": "rows", "location": "landing/{table}", "operation": "op"} | feed
        said = run("validate", "--project-dir", project(tmp_path, source(feed=of_feed))).stdout.splitlines()
        return [line.removeprefix("Note: feed shop: ") for line in said if line.startswith("Note: ")]

    for name in ("2.csv.gz", "1.CSV", "_3.jsonl"):
        (folder / name).touch()
    assert notes() == ["landing/invoice holds 1.CSV, and `file_format` is json. Say csv if the files are that."]
    assert notes(file_format="csv") == []
    (folder / "0004").touch()  # its name tells nothing
    assert notes() == []
    for path in folder.iterdir():
        path.unlink()
    (folder / "1.ndjson").touch()
    assert notes(file_format="parquet") == [
        "landing/invoice holds 1.ndjson, and `file_format` is parquet. Say json if the files are that."
    ]
    assert notes() == []


def test_validate_tells_of_a_folder_that_it_may_not_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    root = project(tmp_path, source(feed={"format": "rows", "location": "landing/{table}"}))
    (root / "landing").mkdir()
    monkeypatch.setattr(Path, "iterdir", refused)
    result = run("validate", "--project-dir", root)
    assert result.exit_code == 0, result.output
    assert "Note: feed shop: landing/invoice cannot be read: Permission denied." in result.stdout


def test_validate_shows_every_problem_on_a_line_of_stderr(tmp_path: Path) -> None:
    long = source(tables={"invoice": {"keyz": ["id"], "sequence_by": ["seq"]}, "b": TABLE | {"keys": ["[red]x"]}})
    result = run("validate", "--project-dir", project(tmp_path, long))
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("feed shop, table invoice: setting `keyz` is not known. Did you mean `keys`? (models/")
    assert "`keys` names `[red]x`" in lines[1]
    assert lines[2] == "2 problems found, nothing was run."


def test_a_mistake_of_a_feed_is_told_once_and_not_for_each_of_its_tables(tmp_path: Path) -> None:
    tables = {name: {"keys": ["id"]} for name in ("a", "b", "c")} | {"d": {"keys": ["id"], "sequence_by": ["seq"]}}
    wrong = source(feed={"format": "rows", "location": "landing/{table}", "sequence_by": ["sek"]}, tables=tables)
    result = run("validate", "--project-dir", project(tmp_path, wrong))
    told, closing = result.stderr.splitlines()
    assert told.startswith("feed shop, table a and 2 more: `sequence_by` names `sek`, which is no column. Did you mean `seq`? (")
    assert closing == "1 problem found, nothing was run."


def test_validate_without_feeds(tmp_path: Path) -> None:
    result = run("validate", "--project-dir", project(tmp_path))
    assert (result.exit_code, result.stdout) == (
        0,
        "No feeds (no source has `cdc` in its meta): no problems found.\n",
    )


@pytest.mark.parametrize("command", ["validate", "generate"])
def test_no_project(tmp_path: Path, command: str) -> None:
    result = run(command, "--project-dir", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"There is no dbt project in {tmp_path}")


def test_generate_writes_then_is_current(tmp_path: Path) -> None:
    project(tmp_path, source())
    result = run("generate", "--check", "--project-dir", tmp_path)
    assert result.exit_code == 1
    assert "models/shop/final/final_invoice.sql: is not there" in result.stderr
    assert result.stderr.splitlines()[-1] == "4 files are not current. Run `delta-cdc generate`."
    result = run("generate", "--project-dir", tmp_path)
    assert result.exit_code == 0
    assert "wrote models/shop/final/final_invoice.sql" in result.stdout
    for arguments in (["--check"], []):
        result = run("generate", *arguments, "--project-dir", tmp_path)
        assert (result.exit_code, result.stdout) == (0, "1 feed, 1 table: 4 files are current.\n")


@pytest.mark.parametrize("writing", ["--force", "--prune"])
def test_generate_refuses_to_write_and_to_write_nothing(tmp_path: Path, writing: str) -> None:
    result = run("generate", "--check", writing, "--project-dir", project(tmp_path, source()))
    assert result.exit_code == 2
    assert f"--check writes nothing; it does not go with {writing}." in result.stderr


def test_generate_keeps_an_edited_file_and_says_so(tmp_path: Path) -> None:
    project(tmp_path, source())
    run("generate", "--project-dir", tmp_path)
    path = tmp_path / "models/shop/final/final_invoice.sql"
    path.write_text("select 1\n")
    result = run("generate", "--check", "--project-dir", tmp_path)
    assert result.exit_code == 1
    assert "models/shop/final/final_invoice.sql: was edited" in result.stderr
    assert result.stderr.endswith("1 file is not current. Run `delta-cdc generate --force`.\n")
    result = run("generate", "--project-dir", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "models/shop/final/final_invoice.sql: was edited and is kept; `delta-cdc generate --force` overwrites it",
        "1 file is left as found; the others are current.",
    ]
    assert path.read_text() == "select 1\n"
    assert run("generate", "--force", "--project-dir", tmp_path).exit_code == 0
    assert path.read_text() != "select 1\n"


def test_generate_names_files_whose_table_is_gone(tmp_path: Path) -> None:
    run("generate", "--project-dir", project(tmp_path, source(tables={"invoice": TABLE, "old": TABLE})))
    edited = tmp_path / "models/shop/final/final_old.sql"
    edited.write_text(edited.read_text() + "-- mine\n")
    project(tmp_path, source())
    result = run("generate", "--project-dir", tmp_path)
    assert result.exit_code == 1
    assert "models/shop/history/hist_shop__old.sql: its table is gone; `delta-cdc generate --prune` removes it" in result.stderr
    assert (
        "models/shop/final/final_old.sql: its table is gone, and it was edited; `delta-cdc generate --prune --force`"
        in result.stderr
    )
    assert run("generate", "--check", "--project-dir", tmp_path).stderr.endswith("Run `delta-cdc generate --force --prune`.\n")
    result = run("generate", "--prune", "--project-dir", tmp_path)
    assert result.exit_code == 1
    assert "removed models/shop/history/hist_shop__old.sql" in result.stdout
    assert run("generate", "--prune", "--force", "--project-dir", tmp_path).exit_code == 0
    assert not edited.exists()


def test_generate_writes_nothing_from_a_wrong_configuration(tmp_path: Path) -> None:
    project(tmp_path, source(tables={"good": TABLE, "bad": {}}))
    assert run("generate", "--project-dir", tmp_path).exit_code == 2
    assert [path.name for path in (tmp_path / "models").rglob("*.*")] == ["_sources.yml"]


def test_settings_prints_or_writes_the_reference(tmp_path: Path) -> None:
    assert run("settings").stdout == reference_page()
    run("settings", "--write", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == reference_page()
    nowhere = run("settings", "--write", tmp_path / "no/page.md")
    assert (nowhere.exit_code, nowhere.stderr) == (1, f"{tmp_path}/no/page.md cannot be written: No such file or directory.\n")


def test_settings_names_the_file_that_a_full_disk_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = run("settings", "--write", tmp_path / "page.md")
    assert (done.exit_code, done.stderr) == (1, f"{tmp_path}/page.md cannot be written: No space left on device.\n")


@pytest.mark.parametrize(
    "arguments", [("log", "t", "--limit", "0"), ("reconcile", "t", "--against", "x", "--limit", "-1"), ("report", "--runs", "-1")]
)
def test_a_number_below_what_can_be_shown(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, "is not in the range x>=" in result.stderr) == (2, True)


def test_help_lists_every_command_in_whole_sentences() -> None:
    said = run("--help").stdout
    listed = re.findall(r"^  ([a-z-]+)  +(\S.*)$", said.split("\nBegin:")[1], re.MULTILINE)
    assert sorted(name for name, _ in listed) == sorted(main.commands)
    assert [line for _, line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("delta-cdc, version ")
    assert "validate" in run("-h").stdout
