"""What a person does to loaded tables: each operation is a macro, run by dbt on the project's own profile and target."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from delta_cdc.config_reader import load_project, survey_project
from delta_cdc.errors import OperationError, Problem, ProjectError, did_you_mean, nearest
from delta_cdc.project import Project, Table
from delta_cdc.versions import mismatch

# of dbt: nothing on the screen but what a macro prints; the error is shown by the caller. By `--log-level` alone its log would be
# as silent.
QUIET = ("--quiet", "--log-level", "none", "--log-level-file", os.environ.get("DBT_LOG_LEVEL_FILE") or "debug")


@dataclass(frozen=True)
class Dbt:
    """How dbt is to be started: its folder, and options like `--target dev`. variables: those of `--vars` among them."""

    project_dir: Path
    options: Sequence[str] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)

    def project(self) -> Project:
        """Its feeds. Raises ConfigError with every problem found, and ProjectError where its package is of another version."""
        project = load_project(self.project_dir, self.variables)
        if why := mismatch(project.root, project.name):
            raise ProjectError(why)
        return project

    def survey(self, feed: str) -> tuple[Project, list[Problem]]:
        """Its feeds as far as they can be read, and what is wrong with one of them."""
        return survey_project(self.project_dir, feed, self.variables)

    def run_operation(self, macro: str, arguments: Mapping[str, Any], *, key: Sequence[str] = ()) -> None:
        """Run a macro of this package; what it prints goes to stdout. Raises OperationError with what it says.

        key: a row's, for `adapter.secret('key')`: dbt would write an argument into logs and artifacts.
        """
        with _secret(key):
            self._invoke(*operation(macro, arguments))

    def ask(self, macro: str, arguments: Mapping[str, Any], *, key: Sequence[str] = (), private: bool = False) -> Any:
        """What a macro of this package prints as JSON. With a key, or private, nothing of the answer is logged."""
        said: list[str] = []
        unlogged = ["--log-level-file", "none"] if key or private else []
        unlogged += ["--no-write-json"] if private else []
        with _secret(key):
            self._invoke(*unlogged, *operation(macro, arguments), tell=said.append)
        return json.loads("".join(said) or "null")

    def run(self, *selected: str) -> None:
        """`dbt run` of models. Raises OperationError with what failed."""
        self._invoke("run", "--select", *selected)

    def _invoke(self, *command: str, tell: Callable[[str], None] = click.echo) -> None:
        from dbt.cli.main import dbtRunner

        said: list[str] = []

        def on_event(event: Any) -> None:
            refuse_other_adapter(event)
            if event.info.name == "PrintEvent":
                tell(event.info.msg)
            elif error := error_of(event):
                said.append(error)

        where = ["--project-dir", str(self.project_dir), *self.options]
        # dbt writes the process's command line into logs and artifacts, and that may name a key
        line, sys.argv = sys.argv, sys.argv[:1]
        try:
            result = invoked(dbtRunner(callbacks=[on_event]), *command, *where)
        finally:
            sys.argv = line
        if not result.success:
            raise OperationError(why_failed(result, said))


def invoked(runner: Any, *command: str) -> Any:
    """dbt's result of a command, with nothing on the screen. Raises KeyboardInterrupt where a signal ended it: dbt hands that
    back like any failure, after which the next command would begin."""
    result = runner.invoke([*QUIET, *command])
    if isinstance(interrupted := getattr(result, "exception", None), KeyboardInterrupt):
        raise interrupted
    return result


def operation(macro: str, arguments: Mapping[str, Any]) -> list[str]:
    """dbt's command that runs a macro of this package."""
    # dbt reads YAML, in which the two halves that JSON makes of a sign above U+FFFF are none
    given = re.sub(r"[^ -~]", lambda sign: f"\\U{ord(sign[0]):08x}", json.dumps(dict(arguments), ensure_ascii=False))
    return ["run-operation", f"delta_cdc.{macro}", "--args", given]


@contextmanager
def _secret(key: Sequence[str]) -> Iterator[None]:
    from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter

    SparkdeltaAdapter.secrets["key"] = list(key)
    try:
        yield
    finally:
        del SparkdeltaAdapter.secrets["key"]


def erase(dbt: Dbt, table: Table, key: Sequence[str]) -> None:
    """Take a person out of every table of a source table, then out of their old files."""
    dbt.run_operation("erase", {"staging": table.staging_name}, key=key)
    dbt.run(f"{table.staging_name}+")
    dbt.run_operation("purge_erased", {"staging": table.staging_name})


def refuse_other_adapter(event: Any) -> None:
    """A callback of dbt: none but this package's adapter knows what its macros ask for, and another's would start first."""
    if event.info.name == "AdapterRegistered" and event.data.adapter_name != "sparkdelta":
        raise OperationError(plain(f"Could not find adapter type {event.data.adapter_name}!"))


def error_of(event: Any) -> str | None:
    """What an event of dbt says of a failure; None for any other event."""
    if event.info.name in ("RunningOperationCaughtError", "RunningOperationUncaughtError"):
        return str(event.data.exc)
    return str(event.info.msg) if event.info.level == "error" else None


def why_failed(result: Any, said: Sequence[str]) -> str:
    """Why a command of dbt failed. said: what `error_of` found in its events; of a macro its result does not tell."""
    return with_file(said[0] if said else str(result.exception or "dbt failed and did not say why; see logs/dbt.log."))


_PROFILE = (
    "Put a profiles.yml there (README.md has one), or name its folder with --profiles-dir; in a clone of delta_cdc: "
    "--profiles-dir profiles --target demo."
)
_ADAPTER = (
    r"The profile has `type: \1`, and the feeds want `type: sparkdelta`, the adapter that comes with this command. Change it in "
    "profiles.yml, or name another --target or --profile."
)
_PACKAGE = (
    "The package delta_cdc is not there. packages.yml in the project has to list it (`packages: [{local: ../delta_cdc}]`, "
    "or `git:` and `revision:`); then run `dbt deps`."
)
# what dbt says of a project that it cannot start with → what a person needs to know
_REMEDIES = (
    (
        r"Path '(.*/\.dbt)' does not exist\.",
        rf"There is no profiles.yml in the folder where this was started, nor in \1. {_PROFILE}",
    ),
    (r"Path '(.*)' does not exist\.", rf"There is no folder \1, where profiles.yml is looked for. {_PROFILE}"),
    (
        r"Could not find profile named '(.*)'",
        r"There is no profile `\1` (`profile` in dbt_project.yml): dbt looks for a profiles.yml in --profiles-dir, else in the "
        rf"folder where this was started, else in ~/.dbt. {_PROFILE}",
    ),
    (r"(?:Credentials in profile .*\n)?Could not find adapter type (.*)!", _ADAPTER),
    (
        r"dbt found \d+ package\(s\) specified in (.*), but only \d+ package\(s\) installed in (.*)\. Run .*",
        r"\1 lists packages that are not in \2 yet. Run `dbt deps`, then this command again.",
    ),
    (
        r"Model .* depends on a node named 'cdc_change_sets' which was not found|'delta_cdc' is undefined(\n.*)*|"
        r".*dbt could not find a macro with the name .* in the \"delta_cdc\" package",
        _PACKAGE,
    ),
)


def plain(text: str) -> str:
    """A message of dbt: a compilation error without dbt's frame of «Compilation Error in macro …» and «> in macro …». Where a
    project lacks something that every command needs, a sentence with the remedy."""
    lines = [line.strip() for line in text.splitlines()]
    while lines and (re.match(r"(Compilation|Database|Runtime) Error|Encountered an error", lines[0]) or not lines[0]):
        lines.pop(0)
    kept = [line for line in lines if line and not re.match(r"> (in|called by) ", line)]
    said = "\n".join(kept) or text
    return next((found.expand(remedy) for pattern, remedy in _REMEDIES if (found := re.fullmatch(pattern, said))), said)


def with_file(text: str) -> str:
    """`plain`, behind the file of a model or test that dbt cannot read: nothing but the frame names it."""
    frame = re.match(r"(?:Encountered an error:\s+)?Compilation Error in (?:model|test|snapshot|analysis) \S+ \((.+)\)", text)
    said = plain(text)
    return f"{frame[1]}: {said}" if frame and " ".join(said.split()) in " ".join(text.split()) else said


def find_keyed(project: Project, name: str, key: Sequence[str], command: str) -> Table:
    """`find_table`, of which a row is named. Raises OperationError unless there is a value for each of its keys."""
    table = find_table_with_keys(project, name, command)
    keys = table.settings.keys
    if len(key) != len(keys):
        raise OperationError(f"table {table.full_name}: {command} takes a value for each of {', '.join(keys)}; {len(key)} given.")
    return table


def find_table_with_keys(project: Project, name: str, command: str) -> Table:
    """`find_table`, for a command that tells rows by their keys. Raises OperationError for a table without."""
    table = find_table(project, name)
    if not table.settings.keys:
        raise OperationError(
            f"table {table.full_name}: {command} takes a table with keys, and this one has none. `keys` in its source names them."
        )
    return table


def find_tables(project: Project, names: Sequence[str]) -> list[Table]:
    """`find_table` of each name, once."""
    return [find_table(project, name) for name in dict.fromkeys(names)]


def find_table(project: Project, name: str) -> Table:
    """The table that a person names: `invoice`, `shop.invoice`, or the name of one of its models."""
    called = {table.full_name: [table] for table in project.tables}
    for table in project.tables:
        for short in {table.name, *table.models}:
            called.setdefault(short, []).append(table)
    found = called.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        which = " or ".join(f"`{table.full_name}`" for table in found)
        raise OperationError(f"There are several tables `{name}`. Say {which}.")
    full = {known: t.full_name for t in project.tables for known in (t.name, t.full_name)}
    close = nearest(name, full)
    hint = f"Did you mean `{full[close]}`?" if close else did_you_mean(name, set(full.values()))
    raise OperationError(f"There is no table `{name}`. {hint}")
