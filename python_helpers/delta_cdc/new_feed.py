"""`delta-cdc init`: a feed's source and models, from what its change sets or its database tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from delta_cdc import delta_tables, discover, flat_files, notes, scaffold
from delta_cdc.errors import ConfigError, OperationError, counted, some_of, told_of_files
from delta_cdc.formats import FORMATS, which_format
from delta_cdc.operations import Dbt
from delta_cdc.project import Project
from delta_cdc.sql_names import IDENTIFIER
from delta_cdc.table_list import read_table_list
from delta_cdc.text_files import write_over


def begin(
    dbt: Dbt,
    feed: str,
    message_format: str,
    location: str,
    *,
    database: Mapping[str, Any] | None = None,
    file_format: str | None = None,
    table_list: Path | None = None,
    force: bool = False,
) -> Iterator[str]:
    """Write the source of a feed and its models; yields a line for each thing done.

    location: folder of its change sets, relative to the project. database: {url, schema, options} of one that is asked instead of
    files. file_format: of the files, where their names do not tell. table_list: see `table_list`. force: write a source again.
    Raises OperationError for what cannot be done; ConfigError for settings that nobody tells: then the source is written with
    `enabled: false`; GeneratedFilesError for models that are left as they were.
    """
    if not IDENTIFIER.fullmatch(feed):
        wants = "A feed's name is made of letters, digits and underscores, not beginning with a digit"
        raise OperationError(f"{wants}; `{feed}` is not.")
    if message_format not in FORMATS:
        raise OperationError(f"`--format` is {message_format}. {which_format(message_format, FORMATS)}")
    project, _ = dbt.survey(feed)
    place = _looked_into(project.root, location, message_format) if database is None else _Place(location, project.root)
    path = _source_to_write(project, feed, force)
    if database is not None:
        found, where = discover.of_database(dbt.ask("tables_of_database", database, private=True)), location
    elif place.deltas:
        found, where = delta_tables.told_by(place.deltas, message_format, feed), place.location_of(place.deltas)
    else:
        found, where = _told_by_files(dbt, place, feed, message_format, file_format), place.location_of(place.change_sets)
    silent = _without_table(place, found)
    given, left_out = None, []
    if table_list is not None:
        given = read_table_list(table_list, found.tables)
        left_out = [name for name in found.tables if name not in given]
        found.tables = {name: table for name, table in found.tables.items() if name in given}
    taken = scaffold.model_names(project, feed)
    source = partial(discover.source_yml, feed, where, message_format, found, given, taken=taken)
    with told_of_files("written", path):
        project, incomplete = _write_source(dbt, feed, path, source, table_list)
    told = filter(None, (counted(len(found.tables), "table"), found.told_unread(message_format)))
    yield f"wrote {path.relative_to(project.root)}: {'; '.join(told)}"
    yield from _notes(place, found, silent)
    if left_out:
        yield f"not in {table_list}, so not configured: {', '.join(left_out)}"
    if incomplete:
        raise incomplete
    alone = replace(project, feeds=tuple(each for each in project.feeds if each.name == feed))
    files = scaffold.plan(alone)
    yield from scaffold.told_write(project, files, scaffold.compare(project, files, feed), prune=force)
    yield from (f"Note: {note}" for note in notes.of_tables(alone))
    yield "Look through the source: keys, types, order. Then `delta-cdc generate`, and `delta-cdc run`."


@dataclass(frozen=True)
class _Place:
    """Where `init` looks. location: relative to the project. deltas: the Delta tables in the folder, else change_sets: the files
    that a run would take; both by the names of the folders in it, or under "" of the folder itself. A database has neither."""

    location: str
    folder: Path
    deltas: Mapping[str, Path] = field(default_factory=dict)
    change_sets: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    def location_of(self, found: Collection[str]) -> str:
        """The feed's `location`, where this was found in these folders."""
        return self.location if "" in found else f"{self.location.rstrip('/')}/{{table}}"


def _looked_into(root: Path, given: str, message_format: str) -> _Place:
    """root: the project's folder. given: `--location`. Raises OperationError where nothing is there, or nothing can be read."""
    location = _folder_of(given)
    known = FORMATS[message_format]
    with told_of_files("read", root / location):
        deltas = delta_tables.tables_in(root / location)
        if not deltas and known.settings.get("file_format") == "delta":
            raise OperationError(f"{location} holds no Delta table, nor does a folder in it: there is no _delta_log.")
        by_table = given.removesuffix("/").endswith("/{table}")
        deep = known.names_tables  # then they may lie in any folder
        change_sets = {} if deltas else discover.change_sets_in(root / location, deep=deep, by_table=by_table)
    return _Place(location, root / location, deltas, change_sets)


def _notes(place: _Place, found: discover.Discovery, silent: Sequence[str]) -> Iterator[str]:
    """What was not looked at, or tells less than it might. silent: of `_without_table`."""
    for other in found.reads_as:
        yield f"Note: {place.location} holds messages of the format `{other}`, which may tell more: `--format {other} --force`."
    yield from (f"Note: {said}" for said in _passed_over(place))
    if silent:
        yield (
            f"Note: {place.location} holds folders that told no table, so none is configured for them: {some_of(silent)}. Of a "
            "table's folder what lies in it was looked at, and nothing deeper."
        )
    for folder in delta_tables.without_feed(place.deltas):
        yield (
            f"{folder} has no change data feed, by which a run reads it: `alter table … set tblproperties "
            "(delta.enableChangeDataFeed = true)`, and begin after that (docs/formats/delta_cdf.md)."
        )


def _source_to_write(project: Project, feed: str, force: bool) -> Path:
    """The file of a feed's source. Raises OperationError where it must not be written."""
    path = project.root / project.model_path / feed / "_sources.yml"
    others = [known.name for known in project.feeds if known.name != feed and known.file == str(path.relative_to(project.root))]
    names = [*(known.name for known in project.feeds), *project.disabled]
    there = next((name for name in names if name.casefold() == feed.casefold()), None)  # to Spark, case makes no difference
    if force and path.exists() and not others:
        return path
    if path.exists() or there:
        how = "" if others or not path.exists() else ", let --force write it again"
        where = next((known.file for known in project.feeds if known.name == there), path)
        said = f"There is a feed {there or feed} already."
        raise OperationError(f"{said} Add tables to {where}{how}, or give the new feed another name.")
    return path


def _write_source(
    dbt: Dbt, feed: str, path: Path, source: Callable[..., str], table_list: Path | None
) -> tuple[Project, ConfigError | None]:
    """Write a feed's source; returns the project with it, and what it lacks: then it is written with `enabled: false`, for the
    other feeds' sake. table_list: where the settings of its tables come from."""
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_over(path, source(enabled=True))  # for the lines of what is wrong
    project, problems = dbt.survey(feed)
    if not problems:
        write_over(path, source())
        return project, None
    name = path.relative_to(project.root)
    if before is not None and [*path.parent.rglob("*.sql")]:  # they read the source
        write_over(path, before)
        problems = [replace(each, file=str(table_list) if table_list and each.table else None, line=None) for each in problems]
        remedy = f"Put {table_list} right, and give it again" if table_list else "Give the settings with --from-csv"
        raise ConfigError(problems, f"{name} is as it was: the feed's models need it. {remedy}")
    write_over(path, source(enabled=False))
    then = f"so {name} has `enabled: false`: put it right, take that line out, then `delta-cdc generate`"
    return project, ConfigError(problems, then)


def _folder_of(location: str) -> str:
    """The folder in which `init` looks, relative to the project: it finds out by itself whether tables have folders."""
    if "://" in location:
        raise OperationError(
            f"`--location` is {location}; init looks at files on this machine. Copy some change sets here, name their folder, "
            f"and put {location} into the source afterwards. Or let a database tell its tables: `--jdbc`."
        )
    return location.removesuffix("/").removesuffix("/{table}")


def _passed_over(place: _Place) -> Iterator[str]:
    """A sentence where a folder has folders beside the files that were looked at."""
    of_folder = any(path.parent == place.folder for path in place.change_sets.get("", ()))
    if of_folder and (beside := _folders_in(place.folder)):
        yield (
            f"{place.location} holds folders too, not looked into: {some_of(beside)}. "
            f"If each is a table's, say `--location '{place.location_of(beside)}'`."
        )


def _without_table(place: _Place, found: discover.Discovery) -> list[str]:
    """The folders in a folder that told no table, where those beside them did."""
    told = {table.folder for table in found.tables.values()} - {None}
    return [name for name in _folders_in(place.folder) if name not in told] if told else []


def _folders_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and each.name[0] not in "._")


def _told_by_files(dbt: Dbt, place: _Place, feed: str, message_format: str, file_format: str | None) -> discover.Discovery:
    """What the change sets in a folder tell."""
    folder, change_sets = place.folder, place.change_sets
    kind = file_format or flat_files.kind_of_all(folder, change_sets)
    tell: Callable[[Sequence[Path], str], discover.Discovery]
    if kind == "json":
        tell = partial(discover.discover_files, message_format)
    elif message_format in flat_files.FORMATS:
        tell = flat_files.teller(
            kind, message_format, lambda kind, paths: dbt.ask("columns_of_files", {"file_format": kind, "paths": paths})
        )
    else:
        raise OperationError(
            f"The files in {folder} are {kind}; init looks into such files of the formats {', '.join(flat_files.FORMATS)}, and "
            f"`--format` is {message_format}. "
            + ("What DMS writes to S3 is `--format rows`" if message_format == "dms" else "Write the source by hand")
            + f": docs/formats/{'dms' if message_format == 'dms' else 'files'}.md."
        )
    found = discover.discover_folder(folder, change_sets, tell, feed)
    if found.settings.get("csv_options") == {"sep": ","}:  # as they are by default
        del found.settings["csv_options"]
    if not found.tables:
        why = discover.why_nothing([path for paths in change_sets.values() for path in paths])
        more = "".join(f" {each}" for each in _passed_over(place))
        raise OperationError(f"No line in {place.location} could be read as a message of `{message_format}`. {why}{more}")
    deeper = [path.parent for path in change_sets.get("", ()) if path.parent.resolve() != folder.resolve()]
    within = {*deeper}
    # a whole copy is all files of a folder: by each of them alone the rows of the others would be deleted
    are_copies = message_format == "snapshots" and len(deeper) > len(within)
    if within and (are_copies or all(each.parent == folder and (each / "_SUCCESS").is_file() for each in within)):
        found.settings["unit"] = "folder"
    elif within:
        found.settings["sub_folders"] = True
    return found
