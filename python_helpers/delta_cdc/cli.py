"""The command `delta-cdc`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from delta_cdc import scaffold
from delta_cdc.config import Project, load_project
from delta_cdc.errors import CdcError, GeneratedFilesError

PROJECT_DIR = click.option(
    "--project-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("."),
    show_default=True,
    help="Folder of dbt_project.yml.",
)


class _Group(click.Group):
    """A group whose commands show a CdcError in plain lines and leave with its exit code."""

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


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dbt-delta-cdc", prog_name="delta-cdc")
def main() -> None:
    """Change data capture feeds into Delta tables, with dbt."""


@main.command()
@PROJECT_DIR
def validate(project_dir: Path) -> None:
    """Check the configuration of all feeds; nothing is started."""
    project = load_project(project_dir)
    if project.feeds:
        show_feeds(project)
    say(f"{_summary(project)}: no problems found.")


@main.command()
@PROJECT_DIR
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not current.")
@click.option("--force", is_flag=True, help="Overwrite files that were edited, too.")
@click.option("--prune", is_flag=True, help="Remove generated files of tables that are gone.")
def generate(project_dir: Path, check: bool, force: bool, prune: bool) -> None:
    """Write the models and their yml from the sources."""
    project = load_project(project_dir)
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
            raise GeneratedFilesError(
                findings, f"{_files(len(findings))} not current. Run `delta-cdc generate`."
            )
        say(f"{_summary(project)}: {_files(len(files))} current.")
        return
    for path in scaffold.write(project, files, comparison, force=force, prune=prune):
        removed = path in comparison.gone or path in comparison.gone_edited
        say(f"{'removed' if removed else 'wrote'} {path}")
    findings = []
    if not force:
        findings += [f"{path}: was edited and is kept; --force overwrites it" for path in comparison.edited]
    if not prune:
        findings += [f"{path}: its table is gone; --prune removes it" for path in comparison.gone]
    if not (prune and force):
        findings += [
            f"{path}: its table is gone, and it was edited; --prune --force removes it"
            for path in comparison.gone_edited
        ]
    if findings:
        raise GeneratedFilesError(findings, f"{_files(len(findings))} left as found; the others are current.")
    say(f"{_summary(project)}: {_files(len(files))} current.")


@main.command()
@click.option("--write", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write it to a file.")
def settings(path: Path | None) -> None:
    """Print the reference of all settings (Markdown)."""
    page = scaffold.reference_page()
    if path is None:
        sys.stdout.write(page)
    else:
        path.write_text(page, encoding="utf-8", newline="\n")


def show_feeds(project: Project) -> None:
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for heading in ("feed", "format", "change sets", "tables"):
        table.add_column(heading, overflow="fold")
    for feed in project.feeds:
        first = feed.tables[0].settings
        cells = (feed.name, first.format, first.location, str(len(feed.tables)))
        table.add_row(*(Text(cell or "") for cell in cells))
    Console(highlight=False).print(table)


def _summary(project: Project) -> str:
    if not project.feeds:
        return "No feeds (no source has `cdc` in its meta)"
    return f"{_count(len(project.feeds), 'feed')}, {_count(len(project.tables), 'table')}"


def _files(number: int) -> str:
    return f"{_count(number, 'file')} {'is' if number == 1 else 'are'}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    main()
