"""The command `delta-cdc`."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.text import Text

from delta_cdc import ask, flat_files, folders, new_feed, notes, operations, scaffold
from delta_cdc import discover as discovery
from delta_cdc import land as landing
from delta_cdc import pause as pauses
from delta_cdc import plan as plans
from delta_cdc import report as reports
from delta_cdc import run as runs
from delta_cdc.config_reader import load_project
from delta_cdc.errors import CdcError, ConfigError, GeneratedFilesError, OperationError, counted, told_of_files
from delta_cdc.message_readers import READERS
from delta_cdc.project import Project
from delta_cdc.screen import grid
from delta_cdc.settings_block import is_plain_secret
from delta_cdc.settings_page import reference_page
from delta_cdc.warm_dbt import WarmDbt

PROJECT_DIR = click.option(
    "--project-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("."),
    show_default=True,
    help="Folder of dbt_project.yml.",
)
TABLE = click.argument("table")
TABLES = click.argument("tables", metavar="[TABLE]...", nargs=-1)
KEY = click.argument("key", nargs=-1, required=True)
NEGATIVE_KEYS = {"ignore_unknown_options": True}  # -5 is a key


# as `delta-cdc --help` lists them
_COMMANDS = {
    "Begin": ("init", "discover", "validate", "generate", "settings"),
    "Run": ("run", "land", "maintain"),
    "Ask": ("status", "report", "explain", "history", "as-of", "diff", "late", "log", "reconcile", "export-snapshot"),
    "Act": ("pause", "resume", "accept", "retract", "replay", "rebuild", "compact", "erase"),
}


class _Group(click.Group):
    """A group whose commands show a CdcError in plain lines and leave with its exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in _COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(60)) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CdcError as error:
            show_error(error)
            ctx.exit(error.exit_code)


def show_error(error: CdcError) -> None:
    """The error on stderr, a line each; never folded, so that it can be searched and copied."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    *findings, closing = error.lines()
    for line in findings:
        console.print(Text(line))
    console.print(Text(closing, style="bold red"))


def say(text: str) -> None:
    Console(highlight=False, soft_wrap=True).print(Text(text))


def _console() -> Console:
    """As wide as the terminal; where there is none, so wide that a row stays on a line."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dbt-delta-cdc", prog_name="delta-cdc")
def main() -> None:
    """Change data capture feeds into Delta tables, with dbt."""


def _variables(text: str | None) -> dict[str, Any]:
    try:
        given = yaml.safe_load(text or "{}")
    except (yaml.YAMLError, ValueError):
        given = None
    if not isinstance(given, dict):
        raise click.UsageError(f"--vars is {text!r}. It takes a mapping, e.g. '{{landing: /data}}'.")
    return given


VARS = click.option("--vars", "variables", help="dbt's variables, as yml.")


@main.command()
@PROJECT_DIR
@VARS
def validate(project_dir: Path, variables: str | None) -> None:
    """Check the configuration of all feeds.

    All mistakes are told at once, and Spark is not started. Exit code 2 if there is any.
    """
    project = load_project(project_dir, _variables(variables))
    if project.feeds:
        show_feeds(project)
    *of_disabled, _ = ConfigError(project.of_disabled).lines()
    for note in (*notes.of_tables(project), *folders.empty_folders(project), *(f"not read yet: {each}" for each in of_disabled)):
        say(f"Note: {note}")
    say(f"{_summary(project)}: no problems found.")


@main.command()
@PROJECT_DIR
@VARS
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not current.")
@click.option("--force", is_flag=True, help="Overwrite files that were edited, too.")
@click.option("--prune", is_flag=True, help="Remove generated files of tables that are gone.")
def generate(project_dir: Path, variables: str | None, check: bool, force: bool, prune: bool) -> None:
    """Write the models and their yml from the sources."""
    if check and (force or prune):
        raise click.UsageError(f"--check writes nothing; it does not go with --{'force' if force else 'prune'}.")
    project = load_project(project_dir, _variables(variables))
    files = scaffold.plan(project)
    comparison = scaffold.compare(project, files)
    if check:
        findings = [
            *(f"{path}: is not there" for path in comparison.missing),
            *(f"{path}: is not current" for path in comparison.outdated),
            *(f"{path}: was edited" for path in comparison.edited),
            *(f"{path}: its table is gone" for path in (*comparison.gone, *comparison.gone_edited)),
        ]
        if findings:
            options = " --force" if comparison.edited or comparison.gone_edited else ""  # without it they are left as they are
            options += " --prune" if comparison.gone or comparison.gone_edited else ""
            command = f"`delta-cdc generate{options}`"
            raise GeneratedFilesError(findings, f"{scaffold.files_are(len(findings))} not current. Run {command}.")
        say(f"{_summary(project)}: {scaffold.files_are(len(files))} current.")
        return
    for path in scaffold.named_alike(project, files):
        say(f"Note: {path} has the name of a generated model, at which dbt stops. Rename it, or give the table a `final_name`.")
    for line in scaffold.told_write(project, files, comparison, force=force, prune=prune):
        say(line)
    say(f"{_summary(project)}: {scaffold.files_are(len(files))} current.")


@main.command()
@click.option("--write", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write it to a file.")
def settings(path: Path | None) -> None:
    """Print the reference of all settings."""
    page = reference_page()
    if path is None:
        sys.stdout.write(page)
    else:
        with told_of_files("written", path):
            path.write_text(page, encoding="utf-8", newline="\n")


@main.command()
@click.argument("message_format", metavar="FORMAT", type=click.Choice(sorted(READERS)))
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--feed", default="my_feed", show_default=True, help="Name of the feed.")
@click.option("--location", help="Folder of its change sets. By default the folder of the first file.")
def discover(message_format: str, files: tuple[Path, ...], feed: str, location: str | None) -> None:
    """Propose the source of a feed from its messages.

    Printed is yml with tables, keys, columns and types. FILES are change sets of one message a line, plain or gzipped. Types
    come from the messages' own schema; a column of which the format tells no type is a string.
    """
    found = discovery.discover_files(message_format, files, feed)
    if not found.tables:
        why = discovery.why_nothing(files)
        raise OperationError(f"No line of {counted(len(files), 'file')} could be read as a message of `{message_format}`. {why}")
    sys.stdout.write(discovery.source_yml(feed, location or str(files[0].parent), message_format, found))
    if found.unread:
        Console(stderr=True, soft_wrap=True).print(Text(f"{found.told_unread(message_format)}."))


def with_dbt(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options by which dbt finds project, profile and target, as one `dbt` argument."""

    @PROJECT_DIR
    @click.option("--profiles-dir", type=click.Path(file_okay=False, path_type=Path), help="Folder of profiles.yml.")
    @click.option("--profile", help="The profile, if not that of dbt_project.yml.")
    @click.option("--target", help="The profile's target, if not its default.")
    @VARS
    @functools.wraps(command)
    def called(
        project_dir: Path,
        profiles_dir: Path | None,
        profile: str | None,
        target: str | None,
        variables: str | None,
        **arguments: Any,
    ) -> None:
        given = {"--profiles-dir": profiles_dir, "--profile": profile, "--target": target, "--vars": variables}
        options = [text for option, value in given.items() if value is not None for text in (option, str(value))]
        command(dbt=operations.Dbt(project_dir, options, _variables(variables)), **arguments)

    return called


@main.command()
@click.argument("feed")
@click.option("--format", "message_format", required=True, help="Of its messages.")
@click.option("--location", required=True, help="Folder of its change sets, as the feed fills it: relative to the project.")
@click.option("--jdbc", metavar="URL", help="Ask this database for tables, keys and types; ${NAME} is of the environment.")
@click.option("--schema", help="With --jdbc: the schema. By default the one that a connection begins with.")
@click.option("--option", "jdbc_options", multiple=True, metavar="NAME=VALUE", help="With --jdbc: of Spark's JDBC source.")
@click.option("--file-format", type=click.Choice(flat_files.KINDS), help="What the files are, where their names do not tell.")
@click.option(
    "--from-csv",
    "table_list",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings of its tables, a row a table: `table`, and names of settings. Only these tables are taken.",
)
@click.option("--force", is_flag=True, help="Write the source of a feed that is there again: what was edited in it is lost.")
@with_dbt
def init(
    dbt: operations.Dbt,
    feed: str,
    message_format: str,
    location: str,
    jdbc: str | None,
    schema: str | None,
    jdbc_options: tuple[str, ...],
    file_format: str | None,
    table_list: Path | None,
    force: bool,
) -> None:
    """Write the source of a new feed, and its models.

    They come from its change sets, or from the tables of its database; the source is models/FEED/_sources.yml. Where settings are
    missing that nobody tells, it has `enabled: false` until they are filled in.
    """
    if jdbc is None and (schema is not None or jdbc_options):
        raise click.UsageError("--schema and --option are of a database: name it with --jdbc.")
    options = _jdbc_options(jdbc_options, jdbc)
    if jdbc is not None and not jdbc.startswith(("jdbc:", "${")):
        raise click.UsageError("--jdbc takes a URL that begins with `jdbc:`, e.g. jdbc:postgresql://db/shop. This one does not.")
    database = None if jdbc is None else {"url": jdbc, "schema": schema, "options": options}
    for line in new_feed.begin(
        dbt, feed, message_format, location, database=database, file_format=file_format, table_list=table_list, force=force
    ):
        say(line)


def _jdbc_options(given: Sequence[str], url: str | None) -> dict[str, str]:
    """Options of Spark's JDBC source, each NAME=VALUE. Raises UsageError for one that is none, OperationError for a secret among
    them, or in the URL."""
    if not all("=" in option for option in given):
        raise click.UsageError("--option takes NAME=VALUE, e.g. user=reader, and one has no `=`.")
    options = dict(option.partition("=")[::2] for option in given)
    for name, value in {**options, "the URL": url}.items():
        if is_plain_secret(name, value):
            raise OperationError(f"{name} holds a secret. Set a variable of the environment and name it: ${{PASSWORD}}.")
    return options


def _interval(_ctx: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else runs.seconds_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@main.command()
@click.option("--select", multiple=True, help="As in dbt: only these models. May be given more than once.")
@click.option("--every", callback=_interval, metavar="INTERVAL", help="Stay, and run at this interval: 90s, 15m, 1h.")
@click.option("--test", is_flag=True, help="Then run the tests tagged each_run of the tables that had news.")
@click.option("--plan", "planned", is_flag=True, help="Only tell what the run would do, from a run on clones of the tables.")
@with_dbt
def run(dbt: operations.Dbt, select: tuple[str, ...], every: int | None, test: bool, planned: bool) -> None:
    """Load what is new, and tell what was loaded.

    It is `dbt run` with a summary that fits a screen, never two at once. Feeds with `kafka` or `jdbc` are landed first.

    Exit codes: 0 done; 1 something failed, be it a test; 2 the configuration or the selection is wrong; 3 done, but a change set
    is held; 75 another run is at work.
    """
    if planned and every:
        raise click.UsageError("--plan is for one run; it does not go with --every.")
    if planned and test:
        raise click.UsageError("--plan writes nothing that could be tested; it does not go with --test.")
    project = dbt.project()
    if planned:
        raise SystemExit(plans.plan(project, dbt.options, select=select, console=_console()))
    raise SystemExit(runs.run(project, dbt.options, select=select, every=every, test=test, console=_console()))


@main.command()
@click.argument("feeds", metavar="[FEED]...", nargs=-1)
@click.option(
    "--overlap",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="For change tables: look this once so far below the highest serial, in place of `jdbc.overlap`.",
)
@with_dbt
def land(dbt: operations.Dbt, feeds: tuple[str, ...], overlap: int | None) -> None:
    """Land what is new in Kafka and change tables.

    Of FEED, or of all feeds with `kafka` or `jdbc`. `run` does so by itself before each run. Exit code 1 if a landing failed;
    the others went on.
    """
    project = dbt.project()
    names = landing.landed_feeds(project, feeds)
    if not names:
        say("No feed has `kafka` or `jdbc`: nothing is to be landed.")
        return
    with runs.locked(project.root):
        landed = landing.land(WarmDbt(project.root, dbt.options), names, _console(), overlap)
    landing.show(landed, _console())
    raise SystemExit(1 if any(each.get("error") for each in landed) else 0)


@main.command()
@TABLES
@click.option(
    "--counts",
    is_flag=True,
    help="Count in staging the ties, inserts of known keys, updates and deletes of unknown ones, and the like.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON list, for programs.")
@with_dbt
def status(dbt: operations.Dbt, tables: tuple[str, ...], counts: bool, as_json: bool) -> None:
    """Tell how TABLE, or each table, stands.

    Last change, lag, rows, files, and what is late, quarantined, held or failed.
    """
    project = dbt.project()
    found = operations.find_tables(project, tables) or project.tables
    told = dbt.ask("status", {"counts": [table.staging_name for table in found]} if counts else {})
    rows = ask.status_rows(project, told, found)
    if as_json:
        rows += [] if tables else ask.not_listed_rows(project, told)
        sys.stdout.write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    else:
        ask.show_status(rows, [] if tables else ask.quarantined_elsewhere(project, told), _console())


@main.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("target/cdc_report.html"),
    show_default=True,
    help="Where to write it, relative to the project.",
)
@click.option("--runs", "number", type=click.IntRange(min=1), default=200, show_default=True, help="So many runs, the newest.")
@with_dbt
def report(dbt: operations.Dbt, output: Path, number: int) -> None:
    """Write a page of the tables and the last runs.

    It is HTML, complete in itself.
    """
    project = dbt.project()
    path = project.root / output
    page = reports.page(project, dbt.ask("report", {"runs": number}))
    with told_of_files("written", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    say(f"wrote {path}")


@main.command(context_settings=NEGATIVE_KEYS)
@TABLE
@KEY
@with_dbt
def explain(dbt: operations.Dbt, table: str, key: tuple[str, ...]) -> None:
    """Tell why a row of TABLE is as it is.

    Every change of the row that has or had KEY, in order, and what became of it.
    """
    found = operations.find_keyed(dbt.project(), table, key, "explain")
    ask.show_explained(found, dbt.ask("explain", {"staging": found.staging_name}, key=key), _console())


@main.command(context_settings=NEGATIVE_KEYS)
@TABLE
@KEY
@with_dbt
def history(dbt: operations.Dbt, table: str, key: tuple[str, ...]) -> None:
    """Show every version of a row of TABLE.

    It is the row that has or had KEY.
    """
    found = operations.find_keyed(dbt.project(), table, key, "history")
    if found.history_name is None:
        raise OperationError(
            f"table {found.full_name}: rows of an `insert_only` table do not change, so it has no history. `delta-cdc explain` "
            "tells what came of a row."
        )
    versions = dbt.ask("history_of_key", {"staging": found.staging_name}, key=key)
    if versions:
        ask.show_history(versions, _console())
    else:
        say(f"{found.history_name} has no version there.")


@main.command("as-of", context_settings=NEGATIVE_KEYS)
@TABLE
@click.argument("moment")
@click.argument("key", nargs=-1)
@click.option("--known-at", metavar="MOMENT", help="Only what was staged until then counts.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="So many rows are shown.")
@with_dbt
def as_of(dbt: operations.Dbt, table: str, moment: str, key: tuple[str, ...], known_at: str | None, limit: int) -> None:
    """Show final of TABLE as it was at MOMENT.

    MOMENT is of the source's time; `now` is as it is. With KEY, the row that was at it then.
    """
    project = dbt.project()
    found = operations.find_keyed(project, table, key, "as-of") if key else operations.find_table(project, table)
    at = None if moment == "now" else moment
    arguments = {"staging": found.staging_name, "moment": at, "known_at": known_at, "keyed": bool(key), "limit": limit}
    told = dbt.ask("final_as_of", arguments, key=key, private=True)
    ask.show_as_of(found, f"{moment}, as known at {known_at}" if known_at else moment, told, _console())


@main.command()
@TABLE
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="So many commits of each of its tables, the newest.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all that is known of each commit.")
@with_dbt
def log(dbt: operations.Dbt, table: str, limit: int, as_json: bool) -> None:
    """Tell what Delta's logs know of TABLE.

    The commits to its staging, keys, history and final, and what is wrong with the logs; exit code 1 if something is.
    """
    found = operations.find_table(dbt.project(), table)
    logs = dbt.ask("table_logs", {"models": list(found.models), "limit": limit})
    if not logs:
        raise OperationError(f"There is no table {found.staging_name} yet: nothing was loaded. Run `dbt run` first.")
    if as_json:
        sys.stdout.write(json.dumps(logs, indent=1, ensure_ascii=False) + "\n")
    else:
        ask.show_logs(logs, _console())
    raise SystemExit(1 if any(each["findings"] for each in logs.values()) else 0)


@main.command()
@TABLE
@click.option(
    "--against",
    required=True,
    metavar="TABLE|PATH|URL",
    help="A table (schema.table); a file or folder: Parquet, ORC, CSV, JSON lines, Delta; or a database: jdbc:…",
)
@click.option("--file-format", help="Of the file or folder, if its name does not tell it: parquet, orc, csv, json, delta.")
@click.option("--table", "other_table", help="Of the database. By default TABLE as the feed calls it.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of Spark's JDBC source, such as user; ${NAME} is of the environment.",
)
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="So many differing rows are shown.")
@with_dbt
def reconcile(
    dbt: operations.Dbt,
    table: str,
    against: str,
    file_format: str | None,
    other_table: str | None,
    options: tuple[str, ...],
    limit: int,
) -> None:
    """Compare final of TABLE with the source's rows.

    Exit code 1 if they differ.
    """
    found = operations.find_table_with_keys(dbt.project(), table, "reconcile")
    arguments = {
        "staging": found.staging_name, "against": against, "file_format": file_format, "limit": limit,
        "other_table": other_table or found.settings.source_table or found.name, "options": _jdbc_options(options, against),
    }  # fmt: skip
    told = dbt.ask("reconcile", arguments, private=True)
    ask.show_reconciled(found, against, told, _console())
    raise SystemExit(1 if ask.differences(told) else 0)


@main.command()
@TABLE
@click.option(
    "--between",
    "moments",
    nargs=2,
    required=True,
    metavar="MOMENT MOMENT",
    help="Two moments of the source's time; `now` is as final is.",
)
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="So many differing rows are shown.")
@with_dbt
def diff(dbt: operations.Dbt, table: str, moments: tuple[str, str], limit: int) -> None:
    """Tell what changed in final between two moments.

    They are of the source's time. Exit code 1 if anything changed.
    """
    found = operations.find_table_with_keys(dbt.project(), table, "diff")
    since, until = (None if moment == "now" else moment for moment in moments)
    told = dbt.ask("diff", {"staging": found.staging_name, "since": since, "until": until, "limit": limit}, private=True)
    ask.show_diff(found, *moments, told, _console())
    raise SystemExit(1 if ask.differences(told) else 0)


@main.command()
@TABLES
@with_dbt
def late(dbt: operations.Dbt, tables: tuple[str, ...]) -> None:
    """Tell how late changes of the tables come.

    Of TABLE, or of all tables.
    """
    project = dbt.project()
    found = operations.find_tables(project, tables) or project.tables
    told = dbt.ask("late", {"staging": [table.staging_name for table in found]})
    ask.show_late(told, _console())
    loaded = {row["name"] for row in told}
    if waiting := [table.full_name for table in found if table.full_name not in loaded]:
        say(f"Not loaded yet: {', '.join(waiting)}")


@main.command("export-snapshot")
@TABLE
@click.option("--to", required=True, help="A folder that is not there yet: a path relative to the project, or a URL.")
@click.option(
    "--format", "file_format", type=click.Choice(["parquet", "csv", "json", "orc", "avro"]), default="parquet", show_default=True
)
@click.option("--as-of", "moment", help="A moment of the source's time (default: as final is).")
@with_dbt
def export_snapshot(dbt: operations.Dbt, table: str, to: str, file_format: str, moment: str | None) -> None:
    """Write the rows of final of TABLE to files.

    For readers without Delta, or as a first change set (`format: snapshots`).
    """
    found = operations.find_table(dbt.project(), table)
    arguments = {"staging": found.staging_name, "to": to, "file_format": file_format, "moment": moment}
    written = dbt.ask("export", arguments)
    say(f"wrote {counted(written['rows'], 'row')} of {found.final_name} to {written['folder']}")


@main.command()
@TABLES
@click.option("--vacuum/--no-vacuum", default=True, help="Remove files that no version of the last 7 days needs (default: yes).")
@click.option(
    "--min-files", type=click.IntRange(1), default=16, show_default=True, help="Fewer small files of a table stay as they are."
)
@with_dbt
def maintain(dbt: operations.Dbt, tables: tuple[str, ...], vacuum: bool, min_files: int) -> None:
    """Merge small files and remove old ones.

    Of TABLE, or of all tables of feeds. Not beside a run: it takes the same lock.
    """
    project = dbt.project()
    found = operations.find_tables(project, tables)
    with runs.locked(project.root):
        names = [name for table in found for name in table.models]
        dbt.run_operation("maintain", {"models": names or None, "vacuum": vacuum, "min_files": min_files})


@main.command()
@TABLE
@click.option("--why", required=True, help="The reason, which runs and `status` go on telling.")
@with_dbt
def pause(dbt: operations.Dbt, table: str, why: str) -> None:
    """Have runs leave TABLE alone.

    Writes its setting `paused` into its source's yml. What arrives waits in the feed.
    """
    project = dbt.project()
    found = operations.find_table(project, table)
    where = pauses.pause(project, found, why)
    say(f"{found.full_name} is paused from the next run on ({where}). `delta-cdc resume` takes that back.")


@main.command()
@TABLE
@with_dbt
def resume(dbt: operations.Dbt, table: str) -> None:
    """End the pause of TABLE.

    Takes its setting `paused` out of its source's yml. The next run loads what has waited.
    """
    project = dbt.project()
    found = operations.find_table(project, table)
    by_feed = pauses.resume(project, found)
    name = found.full_name
    if by_feed:
        say(f"{name} has no pause of its own any more, and is paused with all of its feed ({by_feed}).")
    else:
        say(f"{name} is no longer paused. The next run loads what has waited.")


@main.command()
@TABLES
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_dbt
def rebuild(dbt: operations.Dbt, tables: tuple[str, ...], yes: bool) -> None:
    """Make keys, history and final anew from staging.

    Of TABLE, or of all tables. Staging stays, and nothing is loaded. Exit codes as of `run`.
    """
    project = dbt.project()
    found = operations.find_tables(project, tables) or project.tables
    if not found:
        raise OperationError("There are no feeds, so no tables to rebuild.")
    if not (tables or yes):
        click.confirm(f"All rows of {counted(len(found), 'table')} are written anew. Rebuild?", abort=True)
    raise SystemExit(runs.rebuild(project, dbt.options, found, _console()))


@main.command()
@TABLE
@click.argument("batch", type=int)
@with_dbt
def accept(dbt: operations.Dbt, table: str, batch: int) -> None:
    """Let a held change set through to final.

    Of TABLE, the one with batch id BATCH, which `status` tells.
    """
    project = dbt.project()
    found = operations.find_table(project, table)
    with runs.locked(project.root):
        dbt.run_operation("accept", {"staging": found.staging_name, "table": found.full_name, "batch_id": batch})


@main.command()
@click.argument("change_set")
@with_dbt
def retract(dbt: operations.Dbt, change_set: str) -> None:
    """Take a bad change set back.

    CHANGE_SET is its path, its name or its batch id.
    """
    with runs.locked(dbt.project().root):
        dbt.run_operation("retract", {"change_set": change_set})


@main.command()
@TABLES
@with_dbt
def replay(dbt: operations.Dbt, tables: tuple[str, ...]) -> None:
    """Read quarantined rows again, after a fix.

    The fix is one of the configuration. Of TABLE, or of all tables.
    """
    project = dbt.project()
    found = operations.find_tables(project, tables) or project.tables
    with runs.locked(project.root):
        dbt.run_operation("replay", {"staging": [table.staging_name for table in found]})


@main.command()
@TABLE
@click.option("--before", "moment", required=True, help="A moment of the source's time; what is older is folded.")
@with_dbt
def compact(dbt: operations.Dbt, table: str, moment: str) -> None:
    """Fold old changes of each row of TABLE into one.

    What staging holds from before the moment: history then begins there, and older changes come too late.
    """
    project = dbt.project()
    found = operations.find_table(project, table)
    with runs.locked(project.root):
        dbt.run_operation("compact", {"staging": found.staging_name, "before": moment})


@main.command(context_settings=NEGATIVE_KEYS)
@TABLE
@KEY
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_dbt
def erase(dbt: operations.Dbt, table: str, key: tuple[str, ...], yes: bool) -> None:
    """Remove a person for good.

    The row of KEY, a value for each key column, from all that was written of TABLE.
    """
    found = operations.find_keyed(dbt.project(), table, key, "erase")
    if not yes:
        with runs.locked(dbt.project_dir):  # not while it waits for an answer
            told = dbt.ask("erasable", {"staging": found.staging_name}, key=key)
        what = f"{counted(told['changes'], 'change')} of the row, under {counted(told['keys'], 'key')}, would go"
        what = what if told["changes"] else "the row was erased before, and what is left in files would go"
        end = "This cannot be undone, and ends time travel of the tables it touches. Erase?"
        click.confirm(f"table {found.full_name}: {what}. {end}", abort=True)
    with runs.locked(dbt.project_dir):
        operations.erase(dbt, found, key)


def show_feeds(project: Project) -> None:
    table = grid("feed", "format", "change sets", "tables")
    for feed in project.feeds:
        first = feed.tables[0].settings
        cells = (feed.name, first.format, first.location, str(len(feed.tables)))
        table.add_row(*(Text(cell or "") for cell in cells))
    Console(highlight=False).print(table)


def _summary(project: Project) -> str:
    off = f"with `enabled: false`: {', '.join(project.disabled)}" if project.disabled else ""
    if not project.feeds:
        return f"No feeds ({off or 'no source has `cdc` in its meta'})"
    return f"{counted(len(project.feeds), 'feed')}, {counted(len(project.tables), 'table')}{off and f'; {off}'}"


if __name__ == "__main__":
    main()
