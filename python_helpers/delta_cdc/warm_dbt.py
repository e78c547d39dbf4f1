"""dbt in this process: the JVM stays warm, and the project is parsed again only when a file of it changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from delta_cdc.errors import OperationError
from delta_cdc.operations import error_of, invoked, operation, refuse_other_adapter, why_failed

_READ_BY_PARSE = (".yml", ".yaml", ".sql", ".py", ".csv", ".md", ".dbtignore")  # the last says which of the others are not
Files = dict[str, tuple[int, int]]  # each with when it was last written (ns since 1970), and its size in bytes


class WarmDbt:
    """project_dir: the project's folder. options: of dbt, such as `--target dev`. anew: models that are made anew by each run,
    also those of which `full_refresh: false` says that no `--full-refresh` does."""

    def __init__(self, project_dir: Path, options: Sequence[str] = (), *, anew: Collection[str] = ()) -> None:
        self._folder = project_dir
        self._options = ["--project-dir", str(project_dir), *options]
        self._anew = frozenset(anew)
        self._manifest: Any = None
        self._foreign_keys: list[tuple[Any, str]] = []  # each with the model that it names, as the project does
        self._parsed: Files = {}

    def run(
        self,
        progress: Progress,
        title: str,
        *command: str,
        tell: Callable[[str], None] = lambda _: None,
        complain: Callable[[str], None] = lambda _: None,
        miss: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> Any:
        """A dbt command (`run`, `--select`, …) with a bar; returns dbt's result, whatever became of it. Raises KeyboardInterrupt
        where that ended it.

        tell: gets what macros print. complain: gets what went wrong. miss: gets what was selected and is not there.
        warn: gets what macros warn of.
        """
        from dbt.cli.main import dbtRunner

        task = progress.add_task(title, total=None, now="starting")

        def on_event(event: Any) -> None:
            refuse_other_adapter(event)
            if event.info.name == "LogModelResult":
                now = f"{event.data.node_info.node_name}: {event.data.status}, {event.data.execution_time:.1f} s"
                progress.update(task, advance=1, total=event.data.total, now=now)
            elif event.info.name == "LogTestResult":
                progress.update(task, advance=1, now=f"{event.data.name}: {event.data.status}")
            elif event.info.name == "PrintEvent":
                tell(event.info.msg)
            elif event.info.name == "JinjaLogWarning":
                warn(event.info.msg)
            elif event.info.name == "LogStartLine":
                progress.update(task, total=event.data.total)
            elif event.info.name == "NoNodesForSelectionCriteria":
                miss(event.data.spec_raw)
            elif error := error_of(event):
                complain(error)

        files = self.files()
        if self._manifest is None or files != self._parsed:
            parsed = invoked(dbtRunner(callbacks=[refuse_other_adapter]), "parse", *self._options)
            if not parsed.success:
                return parsed
            self._manifest, self._parsed = parsed.result, files
            for node in self.nodes if self._anew else ():
                if node.resource_type == "model" and node.name in self._anew:
                    node.config.full_refresh = True
            constraints = (each for node in self.nodes for each in getattr(node, "all_constraints", ()))
            self._foreign_keys = [(each, each.to) for each in constraints if each.to]
        self._forget_compiled()
        result = invoked(dbtRunner(manifest=self._manifest, callbacks=[on_event]), *command, *self._options)
        progress.update(task, now="")
        if progress.disable and not progress.live.transient:
            done = next(each for each in progress.tasks if each.id == task)
            progress.console.print(f"{title}: {done.completed:.0f}/{done.total or 0:.0f} models, {done.elapsed or 0:.0f} s")
        return result

    @property
    def models(self) -> list[str]:
        """Names of the project's models, as they were parsed last."""
        return [node.name for node in self.nodes if node.resource_type == "model"]

    @property
    def nodes(self) -> Collection[Any]:
        """dbt's nodes of the project, as they were parsed last."""
        return self._manifest.nodes.values() if self._manifest else ()

    def _forget_compiled(self) -> None:
        """Nodes as they were parsed. dbt leaves in them what a run compiled, and takes it for done in the next one: a model would
        lack the CTEs of ephemeral models, and where a foreign key names a model a relation would stand."""
        for node in self.nodes:
            if getattr(node, "extra_ctes_injected", False):
                node.compiled = node.extra_ctes_injected = False
                node.extra_ctes, node._pre_injected_sql = [], None
        for constraint, to in self._foreign_keys:
            constraint.to = to

    def ask(self, progress: Progress, title: str, macro: str, arguments: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """What a macro of this package prints as JSON; None if it prints nothing. Raises OperationError with what it says."""
        said: list[str] = []
        wrong: list[str] = []
        result = self.run(progress, title, *operation(macro, arguments), tell=said.append, complain=wrong.append)
        if not result.success:
            raise OperationError(why_failed(result, wrong))
        return json.loads("".join(said) or "null")

    def files(self) -> Files:
        """What a parse reads, by time and size: the project's files, the packages that it has installed, and the profile, whose
        schema it puts into each node."""
        paths = list(_profiles(self._options))
        been: set[tuple[int, int]] = set()
        beside = [path for path in _paths_of(os.path.join(self._folder, "dbt_project.yml")) if path.split(os.sep)[0] == ".."]
        tops = [str(self._folder), *(os.path.join(self._folder, path) for path in beside)]
        for folder, folders, names in chain.from_iterable(os.walk(top, followlinks=True) for top in tops):
            try:
                place = os.stat(folder)
            except OSError:  # gone by now
                continue
            if (place.st_dev, place.st_ino) in been:  # an installed package may be a link to what holds this project
                folders.clear()
                continue
            been.add((place.st_dev, place.st_ino))
            read = _read_by_dbt(os.path.join(folder, "dbt_project.yml"))
            folders[:] = [name for name in folders if (name in read if read else not name.startswith("."))]
            read_by_parse = (name for name in names if name.endswith(_READ_BY_PARSE))
            paths += (os.path.join(folder, name) for name in read_by_parse)
        return by_time_and_size(paths)


def by_time_and_size(paths: Iterable[str]) -> Files:
    """Those of the files that are there: one may be gone by now, or an editor's lock, which links to nowhere."""
    found: Files = {}
    for path in paths:
        with suppress(OSError):
            told = os.stat(path)
            found[path] = (told.st_mtime_ns, told.st_size)
    return found


def _profiles(options: Sequence[str]) -> Iterator[str]:
    """Where dbt may find its profile."""
    given = [after for option, after in pairwise(options) if option == "--profiles-dir"]
    for folder in (*given, os.environ.get("DBT_PROFILES_DIR"), os.getcwd(), os.path.expanduser("~/.dbt")):
        if folder:
            yield os.path.join(folder, "profiles.yml")


def _paths_of(project_file: str) -> list[str]:
    """The folders that a project's file names, relative to it; none if they cannot be told, or if there is no such file."""
    try:
        told = yaml.safe_load(Path(project_file).read_text("utf-8")) or {}
        given = [path for key, paths in told.items() if str(key).endswith("-paths") for path in paths]
        return [os.path.normpath(path) for path in (*given, told.get("packages-install-path", "dbt_packages"))]
    except (OSError, ValueError, yaml.YAMLError, AttributeError, TypeError):
        return []


def _read_by_dbt(project_file: str) -> set[str]:
    """The folders of a project, by the file at its top, that a parse reads: change sets may lie beside them. Empty if they
    cannot be told, or if there is no such file."""
    paths = [path.split(os.sep)[0] for path in _paths_of(project_file)]
    known = {"models", "macros", "seeds", "tests", "analyses", "snapshots", "functions"}
    return set() if not paths or any(path == "." or "{" in path for path in paths) else {*known, *paths}


@contextmanager
def progress_on(console: Console, *, transient: bool = False) -> Iterator[Progress]:
    """Bars with the models done, the seconds, and the model that ended last with its rows and seconds; where no one watches, a
    line for each that ended.

    transient: they go when they have ended, and where no one watches nothing is said.
    """
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.completed}/{task.total} models"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console, transient=transient, disable=not console.is_terminal) as progress:
        yield progress
