"""What commands say where dbt has nothing to run, or cannot start: dbt parses and selects, and starts no Spark."""

from __future__ import annotations

import errno
import io
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console
from tests.projects import TABLE, project, source

from delta_cdc import run as runs
from delta_cdc.cli import main
from delta_cdc.config_reader import load_project
from delta_cdc.operations import plain
from delta_cdc.warm_dbt import WarmDbt

PACKAGE = Path(__file__).resolve().parents[2]


def shop_in(tmp_path: Path, adapter: str = "sparkdelta") -> Path:
    """A project that has this checkout as its package."""
    project(tmp_path, source(), name="mine", version="1.0", profile="mine", flags={"send_anonymous_usage_stats": False})
    profile = {"target": "dev", "outputs": {"dev": {"type": adapter, "schema": "x", "host": "x", "method": "session"}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"mine": profile}))
    (tmp_path / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))
    (tmp_path / "dbt_packages").mkdir()
    (tmp_path / "dbt_packages" / "delta_cdc").symlink_to(PACKAGE)
    (tmp_path / "models" / "mart.sql").write_text("select 1 as one")
    return tmp_path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop_in(tmp_path_factory.mktemp("shop"))


def run_once(root: Path, *selected: str) -> None:
    dbt = WarmDbt(root, ["--profiles-dir", str(root)])
    runs.run_once(dbt, load_project(root), ["run", "--select", *selected], Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("selected", "said"),
    [
        (["+marts+"], "`--select +marts+` selects no model. Did you mean `mart`?"),
        (["tag:none"], "`--select tag:none` selects no model. `dbt ls --resource-type model` lists all there are."),
        (
            ["models/mrt.sql", "x"],
            "`--select models/mrt.sql` selects no model. Did you mean `mart`?\n"
            "`--select x` selects no model. `dbt ls --resource-type model` lists all there are.",
        ),
        (["source:shop.invoice"], "No model is selected by --select source:shop.invoice."),
    ],
)
def test_a_selection_without_models_is_refused(shop: Path, selected: list[str], said: str) -> None:
    with pytest.raises(runs.NotStarted) as caught:
        run_once(shop, *selected)
    assert (str(caught.value), caught.value.exit_code) == (said, 2)


class Dbt:
    """Of two names one selects a model, which ran."""

    models = ("mart",)

    def run(self, *_: Any, miss: Any, **__: Any) -> SimpleNamespace:
        miss("mrt")
        node = SimpleNamespace(status="success", node=SimpleNamespace(name="mart"), message=None)
        return SimpleNamespace(success=True, exception=None, result=SimpleNamespace(results=[node]))


def test_a_name_that_selects_nothing_beside_others_is_told(shop: Path) -> None:
    screen = io.StringIO()
    command = ["run", "--select", "mart", "mrt"]
    runs.run_once(Dbt(), load_project(shop), command, Console(file=screen))  # type: ignore[arg-type]
    assert screen.getvalue() == "`--select mrt` selects no model. Did you mean `mart`?\n"


@pytest.mark.parametrize(
    ("ran", "left_out"),
    [
        (["stg_shop__t", "final_t"], "cdc_change_sets, raw_shop"),
        (["cdc_change_sets", "stg_shop__t"], "raw_shop"),
        (["cdc_change_sets", "raw_shop", "stg_shop__t"], None),
        (["final_t", "mart"], None),
    ],
)
def test_staging_without_what_tells_it_what_came_is_noted(tmp_path: Path, ran: list[str], left_out: str | None) -> None:
    feed = {"format": "maxwell", "location": "landing"}
    found = load_project(project(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"]}})))
    nodes = [SimpleNamespace(node=SimpleNamespace(name=name)) for name in ran]
    assert [note.partition(" not selected")[0] for note in runs._looked_for_nothing(found, nodes)] == (
        [f"Note: {left_out}"] if left_out else []
    )


def test_what_a_run_warns_of_is_told_once_and_what_is_held_with_its_table(shop: Path) -> None:
    held = "feed shop, table invoice: batch 3 is held"

    class Warning:
        models = ("final_invoice",)

        def run(self, *_: Any, warn: Any, **__: Any) -> SimpleNamespace:
            for text in ("feed shop: 2 change sets wait", held, "feed shop: 2 change sets wait"):
                warn(text)
            node = SimpleNamespace(
                status="success",
                node=SimpleNamespace(name="final_invoice"),
                message=None,
                execution_time=0.0,
                adapter_response={"report": {"held": held}},
            )
            return SimpleNamespace(success=True, exception=None, result=SimpleNamespace(results=[node]))

    screen = io.StringIO()
    console = Console(file=screen, width=200)
    runs.show(runs.run_once(Warning(), load_project(shop), ["run"], console), console)  # type: ignore[arg-type]
    assert screen.getvalue().splitlines()[-3:-1] == [held, "Warning: feed shop: 2 change sets wait"]


def test_after_a_conflict_what_waits_for_another_failure_is_not_run(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run meets another writer in one model; another fails for good; what is below them is skipped."""
    conflict = "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] ..."
    first = {
        "met": ("error", conflict),
        "bad": ("error", "[DIVIDE_BY_ZERO]"),
        "below_met": ("skipped", None),
        "below_bad": ("skipped", None),
    }
    commands: list[list[str]] = []

    class Meeting:
        models = tuple(first)

        def run(self, _progress: Any, _what: str, *command: str, **_: Any) -> SimpleNamespace:
            told = {"met": ("success", None), "below_met": ("success", None)} if commands else first
            commands.append(list(command))
            nodes = [
                SimpleNamespace(
                    status=status,
                    message=message,
                    execution_time=0.0,
                    node=SimpleNamespace(name=name, path=f"shop/final/{name}.sql"),
                )
                for name, (status, message) in told.items()
            ]
            return SimpleNamespace(success=True, exception=None, result=SimpleNamespace(results=nodes))

    monkeypatch.setattr(runs, "_WAITS", (0, 0))
    summary = runs.run_once(Meeting(), load_project(shop), ["run"], Console(file=io.StringIO()))  # type: ignore[arg-type]
    again = [f"file:{name}.sql" for name in ("met", "below_met", "below_bad")]  # a name alone may be a folder's too
    assert commands == [["run"], ["run", "--select", *again, "--exclude", "file:bad.sql+"]]
    assert summary.others == ["bad: [DIVIDE_BY_ZERO]"]


def said_by(root: Path, *command: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*command, "--project-dir", str(root), "--profiles-dir", str(root)])
    return done.exit_code, done.stderr


@pytest.mark.parametrize("adapter", ["spark", "duckdb"])
def test_another_adapter_is_refused_before_it_starts(tmp_path: Path, adapter: str) -> None:
    shop_in(tmp_path, adapter)
    said = f"The profile has `type: {adapter}`, and the feeds want `type: sparkdelta`, the adapter that comes with this command."
    for command, code in (("run", 2), ("status", 1)):
        assert said_by(tmp_path, command) == (code, f"{said} Change it in profiles.yml, or name another --target or --profile.\n")


def test_packages_that_are_not_installed_or_not_listed_are_told(tmp_path: Path) -> None:
    shop_in(tmp_path)
    CliRunner().invoke(main, ["generate", "--project-dir", str(tmp_path)])
    (tmp_path / "dbt_packages" / "delta_cdc").unlink()
    said = "packages.yml lists packages that are not in dbt_packages yet. Run `dbt deps`, then this command again.\n"
    for command, code in (("run", 2), ("status", 1)):
        assert said_by(tmp_path, command) == (code, said)
    (tmp_path / "packages.yml").unlink()
    for command, code in (("run", 2), ("status", 1)):
        assert said_by(tmp_path, command) == (code, plain("'delta_cdc' is undefined") + "\n")
    shutil.rmtree(tmp_path / "models")  # then it is a macro that is missed
    assert said_by(tmp_path, "status") == (1, plain("'delta_cdc' is undefined") + "\n")
    assert plain("'delta_cdc' is undefined").startswith("The package delta_cdc is not there. packages.yml in the project has to ")


def test_a_run_notes_a_feed_of_which_nothing_can_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "run_once", lambda *_: runs.Summary([], [], 0.0))
    root = project(tmp_path, source(tables={"invoice": TABLE, "orders": TABLE}))

    def said() -> list[str]:
        screen = io.StringIO()
        assert runs.run(load_project(root), [], console=Console(file=screen, width=200)) == runs.DONE
        return [line for line in screen.getvalue().splitlines() if line.startswith("Note: ")]

    assert said() == ["Note: feed shop: there is no folder landing/invoice yet."]
    (tmp_path / "landing/orders").mkdir(parents=True)
    assert said() == []  # its others may begin later


def test_a_process_that_stays_outlives_a_disk_that_takes_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    class Enough(Exception):
        pass

    ticks: list[int] = []

    def tick(*_: Any) -> runs.Summary:
        ticks.append(1)
        if len(ticks) == 2:
            raise runs.RunFailed("the disk is full")
        if len(ticks) == 3:
            raise Enough
        return runs.Summary([], [], 0.0)

    monkeypatch.setattr("dbt.adapters.sparkdelta.session.process_stays", lambda: None)
    monkeypatch.setattr(runs, "run_once", tick)
    with pytest.raises(Enough):
        runs.run(load_project(project(tmp_path, source())), [], every=0, console=Console(file=Full()))


def test_a_second_signal_during_a_landing_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dbt hands an interruption back like any failure, and a landing that fails holds up no run."""
    import dbt.cli.main

    began: list[str] = []

    class Interrupted:
        def __init__(self, manifest: Any = None, callbacks: Any = ()) -> None:
            self.manifest = manifest

        def invoke(self, arguments: list[str]) -> SimpleNamespace:
            if self.manifest is None:
                return SimpleNamespace(success=True, exception=None, result=SimpleNamespace(nodes={}))
            began.append(next(each for each in arguments if each in ("run", "run-operation")))
            return SimpleNamespace(success=False, exception=KeyboardInterrupt(), result=None)

    kafka = {"bootstrap_servers": "kafka:9092", "topics": ["shop.{table}"]}
    project(tmp_path, source(feed={"format": "rows", "file_format": "delta", "location": "landing/{table}", "kafka": kafka}))
    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        runs.run(load_project(tmp_path), [], console=Console(file=io.StringIO()))
    assert began == ["run-operation"]


def test_a_profile_that_is_no_yml_is_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: p\nprofile: p\n")
    (tmp_path / "profiles.yml").write_text("p:\n\ttarget: dev\n")
    dbt = WarmDbt(tmp_path, ["--profiles-dir", str(tmp_path)])
    with pytest.raises(runs.NotStarted, match=r"trying to read your profiles\.yml") as caught:
        runs._results(dbt, ["run"], Console(file=io.StringIO()))
    assert caught.value.exit_code == 2


def test_the_handler_of_ctrl_c_outlives_the_start_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A landing starts it in the main thread, where pyspark puts its own in that place."""
    import pyspark
    import pyspark.java_gateway

    from dbt.adapters.sparkdelta.session import start_java

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", lambda *_: None)
    monkeypatch.setattr(pyspark, "SparkContext", lambda **_: signal.signal(signal.SIGINT, signal.SIG_IGN))
    before = signal.signal(signal.SIGINT, ours := lambda *_: None)
    try:
        start_java({"spark.master": "local[1]"}, tmp_path)
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_java_that_died_said_outlives_the_start_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark
    import pyspark.java_gateway

    from dbt.adapters.sparkdelta.session import start_java

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", lambda *_: None)
    monkeypatch.setattr(pyspark, "SparkContext", lambda **_: None)
    (tmp_path / "spark.log").write_text("java.lang.OutOfMemoryError")
    for _ in range(2):  # the second finds that the first had nothing to say
        start_java({"spark.master": "local[1]"}, tmp_path)
        assert (tmp_path / "spark.log").read_text() == ""
        assert (tmp_path / "spark.log.1").read_text() == "java.lang.OutOfMemoryError"
