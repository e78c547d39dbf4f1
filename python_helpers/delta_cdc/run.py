"""`delta-cdc run`: one `dbt run` after another in a warm process, no two at once, each told in a screenful."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from delta_cdc import land as landing
from delta_cdc.config_reader import load_project
from delta_cdc.errors import CdcError, OperationError, nearest
from delta_cdc.folders import empty_folders
from delta_cdc.models_yml import EACH_RUN
from delta_cdc.operations import plain, with_file
from delta_cdc.project import Project, Table
from delta_cdc.screen import grid, tell
from delta_cdc.unchanged import Looked
from delta_cdc.warm_dbt import WarmDbt, progress_on

# What a scheduler learns from the exit code; that of a wrong configuration is 2.
DONE, FAILED, HELD, BUSY = 0, 1, 3, 75
SHOWN_TABLES = 20
# Delta's refusals of a commit because of another one, and the seconds to wait before each new try
_CONFLICT = re.compile(r"\[DELTA_(CONCURRENT_|METADATA_CHANGED|PROTOCOL_CHANGED)")
_WAITS = (1, 5)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_FAILED = ("error", "fail", "runtime error")  # dbt's words for it


class RunFailed(OperationError):
    exit_code = FAILED


class NotStarted(RunFailed):
    """The project, its profile or the call of dbt is wrong."""

    exit_code = 2


class Busy(OperationError):
    """Another run is at work."""

    exit_code = BUSY


@dataclass
class TableReport:
    """What one run did with a source table; counts are rows. held, paused, failed: why, if so. reached_final: its final was
    part of it."""

    name: str
    read: int = 0
    duplicate: int = 0
    late: int = 0
    quarantined: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    seconds: float = 0.0
    held: str | None = None
    paused: str | None = None
    failed: list[str] = field(default_factory=list)
    reached_final: bool = False

    @property
    def has_news(self) -> bool:
        return bool(self.read or self.inserted or self.updated or self.deleted or self.held or self.failed)


@dataclass
class Summary:
    """One run. tables: those of the feeds. others: failures of models that belong to no table, and of landings.

    tested: how many tests ran after it. failed_tests: what failed of them, and how to look at it. results: dbt's.
    warnings: what models and macros warned of, but for what the tables say themselves (held).
    """

    tables: list[TableReport]
    others: list[str]
    seconds: float
    tested: int = 0
    failed_tests: list[str] = field(default_factory=list)
    results: Sequence[Any] = ()
    warnings: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        if self.others or self.failed_tests or any(table.failed for table in self.tables):
            return FAILED
        return HELD if any(table.held for table in self.tables) else DONE


def seconds_of(text: str) -> int:
    """`90s`, `15m`, `1h` in seconds. Raises ValueError for anything else."""
    found = re.fullmatch(r"([1-9]\d*)([smh])", text.strip().lower())
    if found is None:
        raise ValueError(f"`{text}` is no interval. Give a whole number and s, m or h, such as `15m`.")
    return int(found[1]) * _UNITS[found[2]]


def run(
    project: Project,
    options: Sequence[str],
    *,
    select: Sequence[str] = (),
    every: int | None = None,
    test: bool = False,
    console: Console,
) -> int:
    """Run once, or every so many seconds until a signal; returns the exit code of the last run.

    options: of dbt, such as `--target dev`. select: as dbt's `--select`; by default all models. test: then the tests tagged
    `each_run` of the tables that had news. Raises CdcError where a single run cannot start. Of several the next may: the
    project's files are read for each, and can be put right meanwhile. Where the run before loaded all that is there, and nothing
    was changed since, dbt is not started.
    """
    if every is not None:
        from dbt.adapters.sparkdelta.session import process_stays

        process_stays()
    dbt = WarmDbt(project.root, options)
    stop = threading.Event()
    with locked(project.root), _stopped_by_signals(stop, console):
        while True:
            started = time.monotonic()
            try:
                code = _run_now(dbt, project, options, select, test, console)
            except (CdcError, OSError) as error:  # a full disk may be the one that takes what is told
                if every is None:
                    raise
                failed = error if isinstance(error, CdcError) else RunFailed(f"What was done cannot be told: {error}.")
                code = failed.exit_code
                said = "\n".join(failed.lines()) + f"\n{time.strftime('%H:%M:%S')}  "
                said += f"{'No run; the' if failed is error else 'The'} next is tried in {every} s."
                with suppress(OSError):
                    tell(console, said, "red")
            if _spark_is_gone():
                gone = "The process's Spark is gone: spark.log in the profile's `root` may say why. Start this command again."
                console.print(Text(gone, style="red"))
                return FAILED
            # ticks keep their distance; one that took too long is followed at once
            if every is None or stop.is_set() or stop.wait(max(0.0, every - (time.monotonic() - started))):
                return code


def _run_now(dbt: WarmDbt, project: Project, options: Sequence[str], select: Sequence[str], test: bool, console: Console) -> int:
    """One run with the project's files as they are now, told at its end; returns its exit code. Arguments as of `run`."""
    started = time.monotonic()
    now = load_project(project.root, project.variables)
    command = ["run", *(["--select", *select] if select else [])]
    looked = Looked(now, [*command, *options], dbt.files())
    if looked.was_loaded():
        tell(console, "Nothing has changed since a run loaded everything: dbt was not started.")
        summary = summarize(now, [], time.monotonic() - started)
    else:
        landed = land_first(dbt, now, console)
        summary = run_once(dbt, now, command, console)
        summary.others += [each["error"] for each in landed if each.get("error")]
        if test:
            check_news(dbt, now, summary, console)
        to_tell_again = summary.warnings or any(table.paused for table in summary.tables)
        if not select and summary.exit_code == DONE and not to_tell_again:
            from dbt.adapters.sparkdelta.session import local_warehouse

            looked.leave(summary.results, dbt.nodes, local_warehouse())
        landing.show([each for each in landed if each.get("rows")], console)
    show(summary, console)
    for note in empty_folders(now, whole_feeds=True):
        tell(console, f"Note: {note}", "yellow")
    return summary.exit_code


def _spark_is_gone() -> bool:
    session = sys.modules.get("dbt.adapters.sparkdelta.session")  # a process that had nothing to do has not begun with dbt
    return session is not None and bool(session.session_is_gone())


def rebuild(project: Project, options: Sequence[str], tables: Sequence[Table], console: Console) -> int:
    """Make keys, history and final of tables anew from staging, which stays as it is; returns the exit code, as `run` does.

    Each of them is replaced in one commit: when the process ends in between, the others are as they were, and right. A history
    view is created anew where its SQL changed. Raises OperationError where nothing of the tables is loaded, or staging has not
    taken their keys (K8).
    """
    made = {table.staging_name: [name for name in table.models if name != table.staging_name] for table in tables}
    dbt = WarmDbt(project.root, options, anew=[name for names in made.values() for name in names])
    with locked(project.root):
        with progress_on(console, transient=True) as progress:
            there = dbt.ask(progress, "look", "can_be_rebuilt", {"staging": list(made)})
        chosen = [_alone(name) for staging, names in made.items() if staging in there for name in names]
        if not chosen:
            raise OperationError("None of these tables is loaded yet. Run `dbt run` first.")
        summary = run_once(dbt, project, ["run", "--full-refresh", "--select", *chosen], console)
    show(summary, console)
    left = [table.full_name for table in tables if table.staging_name not in there]
    if left:
        tell(console, f"Not loaded yet, so not rebuilt: {', '.join(left)}", "yellow")
    return summary.exit_code


def land_first(dbt: WarmDbt, project: Project, console: Console) -> list[dict[str, Any]]:
    """Land the feeds that are to be landed. What cannot be landed holds up nothing: it is told as {error}."""
    feeds = landing.landed_feeds(project)
    try:
        return landing.land(dbt, feeds, console) if feeds else []
    except OperationError as error:
        return [{"error": f"nothing was landed: {error}"}]


def run_once(dbt: WarmDbt, project: Project, command: Sequence[str], console: Console) -> Summary:
    """One dbt command, with a bar on a terminal. Raises RunFailed when dbt could not start, NotStarted where it never will."""
    started = time.monotonic()
    missed: list[str] = []
    warned: list[str] = []
    nodes = _results(dbt, command, console, miss=missed.append, warn=warned.append)
    unknown = [_no_such_model(selected, dbt.models) for selected in missed]
    if not nodes and "--select" in command and (unknown or "--exclude" not in command):
        raise NotStarted("\n".join(unknown) or f"No model is selected by --select {' '.join(command[2:])}.")
    for text in (*unknown, *_looked_for_nothing(project, nodes)):
        tell(console, text, "yellow")
    nodes = _past_conflicts(dbt, nodes, command, console, warned.append)
    summary = summarize(project, nodes, time.monotonic() - started)
    held = {table.held for table in summary.tables}
    summary.warnings = [text for text in dict.fromkeys(warned) if text not in held]
    return summary


def _looked_for_nothing(project: Project, nodes: Sequence[Any]) -> Iterator[str]:
    """A note where staging ran without the models that tell it what came."""
    ran = {node.node.name for node in nodes}
    staged = [table for table in project.tables if table.staging_name in ran]
    left_out = sorted({name for table in staged for name in ("cdc_change_sets", table.changes_from)} - ran)
    if left_out:
        yield f"Note: {', '.join(left_out)} not selected, so nothing new was looked for. `--select +…` takes it along."


def _past_conflicts(
    dbt: WarmDbt, nodes: Sequence[Any], command: Sequence[str], console: Console, warn: Callable[[str], None]
) -> Sequence[Any]:
    """The results, once models that met another writer have run again, planned from what is there then, and those that waited."""
    for seconds in _WAITS:
        failed = [node for node in nodes if str(node.status) in _FAILED]
        met = [node for node in failed if _CONFLICT.search(node.message or "")]
        if not met:
            break
        time.sleep(seconds)
        names = [_alone(node.node.path) for node in nodes if node in met or str(node.status) == "skipped"]
        full = [option for option in command if option == "--full-refresh"]
        below = [f"{_alone(node.node.path)}+" for node in failed if node not in met]  # they still wait for another failure
        exclude = ["--exclude", *below] if below else []
        results = _results(dbt, ["run", *full, "--select", *names, *exclude], console, warn=warn)
        again = {node.node.name: node for node in results}
        nodes = [again.get(node.node.name, node) for node in nodes]
    return nodes


def _alone(model: str) -> str:
    """A model as dbt selects it alone, by its file or the name of that: `orders`, a `final_name`, is to dbt all of the folder
    models/orders too, that of a feed.

    >>> _alone("orders"), _alone("shop/final/orders.sql")
    ('file:orders', 'file:orders.sql')
    """
    return f"file:{Path(model).name}"


def check_news(dbt: WarmDbt, project: Project, summary: Summary, console: Console) -> None:
    """Run the tests tagged `each_run` of the tables that had news, and note in the summary what failed.

    Nothing is tested of a table that failed, or whose final was not part of the run: it is behind.
    """
    news = {table.name for table in summary.tables if table.has_news and table.reached_final and not table.failed}
    models = [model for table in project.tables if table.full_name in news for model in table.models]
    if not models:
        return
    try:
        nodes = _results(dbt, ["test", "--select", *(f"{_alone(model)},tag:{EACH_RUN}" for model in models)], console)
    except RunFailed as error:
        summary.failed_tests.append(f"The tests did not run: {error}")
        return
    nodes = [node for node in nodes if node.node.resource_type == "test"]  # not the hooks
    summary.tested = len(nodes)
    for node in nodes:
        if str(node.status) in _FAILED:
            why = plain(node.message or "it did not say why").rstrip(".")
            summary.failed_tests.append(f"{_sentence(node.node)}: {why}. Look: dbt test --select {node.node.name}")


def _sentence(node: Any) -> str:
    """A test by what it says of which model: `final_invoice: one_row_per_key`; one of no model by its name."""
    model, generic = getattr(node, "attached_node", None), getattr(node, "test_metadata", None)
    return f"{model.rsplit('.', 1)[-1]}: {generic.name}" if model and generic else str(node.name)


def _results(
    dbt: WarmDbt,
    command: Sequence[str],
    console: Console,
    *,
    miss: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Sequence[Any]:
    """The results of the nodes of a dbt command. Raises RunFailed when dbt could not start, NotStarted where it never will.

    miss, warn: as `WarmDbt.run`.
    """
    with progress_on(console, transient=True) as progress:
        result = dbt.run(progress, f"dbt {command[0]}", *command, miss=miss, warn=warn)
    nodes = getattr(result.result, "results", None)
    if nodes is None and not result.success:
        from dbt.cli.exceptions import DbtUsageException
        from dbt.exceptions import ParsingError
        from dbt_common.exceptions import CompilationError, DbtConfigError, DbtValidationError

        of_the_project = (CdcError, DbtConfigError, DbtValidationError, CompilationError, ParsingError, DbtUsageException)
        wrong = isinstance(result.exception, of_the_project)
        why = with_file(f"{result.exception or 'dbt ran nothing and did not say why; see logs/dbt.log.'}")
        raise NotStarted(why) if wrong else RunFailed(why)
    return nodes or []


def _no_such_model(selected: str, models: Sequence[str]) -> str:
    """
    >>> _no_such_model("+final_invoic+", ["final_invoice", "stg_shop__invoice"])
    '`--select +final_invoic+` selects no model. Did you mean `final_invoice`?'
    """
    name = re.sub(r"^(@|\d*\+)|\+\d*$", "", selected).rsplit("/", 1)[-1]
    close = nearest(Path(name).stem, models)
    hint = f"Did you mean `{close}`?" if close else "`dbt ls --resource-type model` lists all there are."
    return f"`--select {selected}` selects no model. {hint}"


def summarize(project: Project, nodes: Sequence[Any], seconds: float) -> Summary:
    """What the results of dbt's nodes say of each table of the feeds."""
    reports: dict[str, TableReport] = {}
    of_model: dict[str, TableReport] = {}
    for table in project.tables:
        name = table.full_name
        of_model |= dict.fromkeys(table.models, reports.setdefault(name, TableReport(name)))
    finals, stagings = ({getattr(table, name) for table in project.tables} for name in ("final_name", "staging_name"))
    others: list[str] = []
    for node in nodes:
        status, name = str(node.status), node.node.name
        report = of_model.get(name)
        if status in _FAILED:
            (others if report is None else report.failed).append(f"{name}: {plain(node.message or 'it did not say why')}")
        if report is None:
            continue
        report.seconds += node.execution_time
        said: Mapping[str, Any] = node.adapter_response or {}
        more: Mapping[str, Any] = said.get("report") or {}
        report.held = report.held or more.get("held")
        report.paused = report.paused or more.get("paused")
        if name in stagings:
            report.read = more.get("rows_read") or 0
            report.quarantined = more.get("rows_quarantined") or 0
            inserted = (said.get("rows_inserted") or 0) - (more.get("rows_kept") or 0)
            report.duplicate = max(report.read - inserted, 0)
            staged_before = max(report.duplicate - (more.get("rows_repeated") or 0), 0)
            said_twice = min(report.duplicate, more.get("rows_late_repeated") or 0)
            # no change that was staged before is late, and one that the load has twice is one
            report.late = max((more.get("rows_late") or 0) - staged_before - said_twice, 0)
        elif name in finals:
            report.reached_final = status == "success"
            written = {**said, **more}  # where whole partitions are rewritten, final counts the rows that change
            report.inserted, report.updated, report.deleted = (
                written.get(f"rows_{done}") or 0 for done in ("inserted", "updated", "deleted")
            )
    return Summary(list(reports.values()), others, seconds, results=nodes)


def show(summary: Summary, console: Console) -> None:
    """The summary, on a screen: tables with news, the slowest of them if there are many; then what needs a person."""
    news = [table for table in summary.tables if table.has_news]
    shown = sorted(news, key=lambda table: (not (table.failed or table.held), -table.seconds))[:SHOWN_TABLES]
    counts = ("read", "duplicate", "late", "quarantined", "inserted", "updated", "deleted")
    if shown:
        lines = grid("table", *(f">{column}" for column in (*counts, "seconds")))
        for table in shown:
            state = " (failed)" if table.failed else " (held)" if table.held else ""
            cells = [f"{getattr(table, name):,}" if getattr(table, name) else "" for name in counts]
            lines.add_row(Text(table.name + state), *cells, f"{table.seconds:.1f}")
        console.print(lines)
    for table in news:
        for text in (*table.failed, *([table.held] if table.held else [])):
            tell(console, text, "red" if table.failed else "yellow")
    for text in (*summary.others, *summary.failed_tests):
        tell(console, text, "red")
    for why in dict.fromkeys(table.paused for table in summary.tables if table.paused):
        names = ", ".join(table.name for table in summary.tables if table.paused == why)
        tell(console, f"Paused ({why}): {names}", "yellow")
    for text in summary.warnings:
        tell(console, f"Warning: {text}", "yellow")
    total = {name: sum(getattr(table, name) for table in news) for name in counts}
    more = f", {len(news) - len(shown)} not shown" if len(news) > len(shown) else ""
    tell(
        console,
        f"{time.strftime('%H:%M:%S')}  {len(news)} of {len(summary.tables)} tables had news{more}: "
        f"{total['read']:,} changes, {total['inserted']:,} rows inserted, {total['updated']:,} updated, "
        f"{total['deleted']:,} deleted; {summary.seconds:.0f} s.{_said_of_tests(summary)}",
    )


def _said_of_tests(summary: Summary) -> str:
    if not summary.tested:
        return ""
    return f" Tests of touched keys: {summary.tested} ran, {len(summary.failed_tests) or 'none'} failed."


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """No second command that writes the tables of a project on this machine. Raises Busy, with who has it."""
    path = folder / "logs" / "delta-cdc.lock"  # `dbt clean` takes away target, and with it the lock of a run at work
    try:
        path.parent.mkdir(exist_ok=True)
        lock = path.open("a+", encoding="utf-8")
    except PermissionError:
        raise OperationError(f"{path} cannot be written: it is another user's. Run as that user, or remove the file.") from None
    except OSError as error:
        raise OperationError(f"{path} cannot be written: {error.strerror}. A run writes into the project's folder.") from None
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                why = f"{path} cannot be locked ({error.strerror}). The project's folder must take file locks."
                raise OperationError(why) from None
            file.seek(0)
            raise Busy(f"Another run is at work: {file.read().strip() or 'it did not say which'}. Nothing was done.") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        file.flush()
        yield


@contextmanager
def _stopped_by_signals(stop: threading.Event, console: Console) -> Iterator[None]:
    """The first SIGINT or SIGTERM lets the run at work end, the second ends it now (dbt cancels its Spark jobs)."""

    def on_signal(_number: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        with suppress(OSError):
            console.print("Stopping when this run is through; once more to stop at once.")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
