"""Feeds-folders (tests/cases/README.md): a feed each, configured as `delta-cdc discover` proposes, delivered step by step, all
feeds of a step in one run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from delta_cdc import flat_files
from delta_cdc.discover import Discovery, FoundTable, discover, lines_of, settings_of, short_names
from delta_cdc.errors import CdcError, OperationError
from delta_cdc.message_readers import Sighting
from delta_cdc.settings import Settings, setting_level
from tests.scenarios.project import UserProject
from tests.scenarios.values import Rows, difference, read_exactly, refuse_misspelled

WHOLE = "t"  # the table of a feed whose messages name none
# Settings that a file may give under their own names: all but those that it has fields of its own for, or that the runner gives.
SETTINGS = [name for name in Settings.model_fields if name not in ("location", "keys", "source_table", "final_name", "paused")]
# What else is read of a file, and what of a step.
FIELDS = ("keys", "key", "schema", "settings", "table_settings", "steps", "value_encoding")
OF_A_STEP = ("inputs", "tables", "error")


@dataclass
class FeedCase:
    """path: where the case is. feed: the feed that it becomes. content: expected.json. refusals: why it could not be configured
    or run. broken: why the folder is no case. differences: per step what is not as expected; None where it is. quarantined: rows,
    after all steps. folder: where its messages arrive. waiting: those that came before one of them told of a table."""

    path: Path
    feed: str
    content: Mapping[str, Any]
    refusals: list[str] = field(default_factory=list)
    differences: list[str | None] = field(default_factory=list)
    found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    quarantined: list[str] = field(default_factory=list)
    folder: Path = Path()
    waiting: list[Path] = field(default_factory=list)
    broken: str = ""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        return self.content.get("steps") or [{"inputs": [{"file": f.name} for f in sorted(self.path.glob("input*"))]}]

    def settings(self, *levels: str) -> dict[str, Any]:
        """What the file gives under the names of settings of these levels."""
        return {name: self.content[name] for name in SETTINGS if name in self.content and setting_level(name) in levels}

    @property
    def of_feed(self) -> dict[str, Any]:
        """The settings of the feed."""
        return {**self.settings("feed"), **self.content.get("settings", {})}

    def inputs(self, step: int) -> list[Path]:
        given = self.steps[step].get("inputs") or []
        return [self.path / (each["file"] if isinstance(each, Mapping) else each) for each in given]

    def discovered(self, step: int) -> Discovery:
        """What the messages up to a step tell of the tables."""
        paths = [path for before in range(step + 1) for path in self.inputs(before)]
        kind = self.of_feed.get("file_format", "json")
        if kind == "json":
            return discover(self.content["format"], lines_of(paths), whole=WHOLE)
        found = Discovery()
        with suppress(OperationError):  # in another encoding, say
            if kind == "csv":  # of which lines that are comments to a run may be messages
                discover(self.content["format"], lines_of(paths), whole=WHOLE, found=found)
        if not found.tables:
            found.tables[WHOLE] = self._of_files(paths)
        return found

    @cached_property
    def _at_last(self) -> Mapping[str, FoundTable]:
        """The tables as the messages of all steps tell them."""
        with suppress(OperationError):  # the step with the file says so
            return self.discovered(len(self.steps) - 1).tables
        return {}

    def _of_files(self, paths: Sequence[Path]) -> FoundTable:
        """The table of files that are no lines of JSON: the columns of `schema`, then what only headers of CSV files name."""
        table = FoundTable(WHOLE)
        table.columns |= dict.fromkeys(self._of_table("schema", table, WHOLE, 0) or ())
        has_header = self.of_feed.get("csv_options", {}).get("header") is not False
        if self.of_feed["file_format"] == "csv" and has_header and self.content["format"] in flat_files.FORMATS:
            tell = flat_files.teller("csv", self.content["format"], lambda kind, files: [])
            for path in paths:
                with suppress(OperationError):  # at which a run stops, too, or whose header only `csv_options` can read
                    table.add(Sighting(None, dict.fromkeys(tell([path], WHOLE).tables[WHOLE].columns)))
        return table

    def configuration(self, found: Discovery) -> list[dict[str, Any]]:
        """The tables' entries for `UserProject.configure`. Names, keys and order, which a table does not change once something is
        staged, are those that the messages of all steps tell."""
        names = short_names({**self._at_last, **found.tables})
        return [
            self._table(place, self._settled(table, self._at_last.get(table.name)), names[table.name])
            for place, table in enumerate(found.tables.values())
        ]

    @staticmethod
    def _settled(table: FoundTable, later: FoundTable | None) -> FoundTable:
        """A table with the keys that only later messages tell, and with their settings."""
        if later is None:
            return table
        keys = table.keys or [key for key in later.keys if set(later.keys) <= set(table.columns)]
        return replace(table, named=keys, settings=later.settings)

    def _table(self, place: int, table: FoundTable, name: str) -> dict[str, Any]:
        more = self.content.get("table_settings", {})
        if not set(more) <= set(Settings.model_fields):  # by table
            more = self._of_table("table_settings", table, name, place) or {}
        told_settings = {each: value for each, value in settings_of(table, name).items() if each not in self.of_feed}
        cdc = {**told_settings, "final_name": f"final_{self.feed}_{place}", **self.settings("table", "both"), **more}
        renamed = {old.lower(): new for new, old in cdc.get("renamed_columns", {}).items()}
        told = _under_new_names(table.columns.items(), renamed)
        given = self._of_table("keys" if "keys" in self.content else "key", table, name, place)
        if cdc.get("keyless", "none") != "none":
            cdc.pop("keys", None)  # that the messages tell
        if given:
            spelled = {column.lower(): column for column in told}
            cdc["keys"] = [spelled.get(key.lower(), key) for key in given]
        if not cdc.get("keys"):
            cdc.setdefault("keyless", "append")
        given = self._of_table("schema", table, name, place) or {}
        new_first = sorted(given.items(), key=lambda each: each[0].lower() in renamed)  # whose type counts
        listed = _under_new_names(new_first, renamed)
        types = {column.lower(): kind for column, kind in listed.items()}
        columns = {column: types.get(column.lower()) or kind or "string" for column, kind in told.items()}
        seen = {column.lower() for column in columns}  # what comes later, or is in no message that tells columns, is listed too
        columns |= {column: kind for column, kind in listed.items() if column.lower() not in seen}
        return {"name": name, "cdc": cdc, "columns": columns}

    def _of_table(self, setting: str, table: FoundTable, name: str, place: int) -> Any:
        """What the file gives for a table: for all of them, under its name, or in their order."""
        given = self.content.get(setting)
        if isinstance(given, list) and given and isinstance(given[0], list):
            # in the order of the messages, or of the file, where that is another
            called = {table.name.rsplit(".", 1)[-1].lower(), name.lower()}
            named = dict.fromkeys(each.rsplit(".", 1)[-1].lower() for step in self.steps for each in step.get("tables") or ())
            places = [place, *(at for at, each in enumerate(named) if each in called)]
            lists = [given[at] for at in places if at < len(given)]
            there = {column.lower() for column in table.columns}
            return next((keys for keys in lists if there.issuperset(map(str.lower, keys))), next(iter(lists), None))
        if isinstance(given, Mapping) and not any(isinstance(each, str) for each in given.values()):
            named = {each.lower(): value for each, value in given.items()}
            # as `compare` finds the tables of a step: a file may name more before the table than its messages do
            alike = [value for each, value in named.items() if table.name == WHOLE or each.rsplit(".", 1)[-1] == name.lower()]
            return named.get(table.name.lower(), named.get(name.lower(), alike[0] if len(alike) == 1 else None))
        return given


def _under_new_names(columns: Iterable[tuple[str, Any]], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Columns under the names that they have now, each once: the first counts. renamed: {old name in lower case: new name}."""
    result: dict[str, Any] = {}
    for column, kind in columns:
        result.setdefault(renamed.get(column.lower(), column), kind)
    return result


def read_feeds(folders: Sequence[Path]) -> list[FeedCase]:
    return [_read(path, f"f{number:04d}") for number, path in enumerate(folders)]


def _read(path: Path, feed: str) -> FeedCase:
    case = FeedCase(path, feed, {})
    try:
        case.content = read_exactly(path / "expected.json", ["steps"])
        case.content["format"]
        _check_names(case.content)
        lost = [str(file) for step in range(len(case.steps)) for file in case.inputs(step) if not file.is_file()]
        case.broken = f"there is no {', '.join(lost)}" if lost else ""
    except Exception as error:  # whatever a file holds, the others are run
        case.broken = f"the folder is no case: {type(error).__name__}: {error}"
    return case


def _check_names(content: Mapping[str, Any]) -> None:
    """Raises ValueError for a misspelled name, of the file, of a table's settings or of a step."""
    settings = Settings.model_fields.keys()
    of_tables = content.get("table_settings", {})
    by_table = [each for each in of_tables.values() if isinstance(each, Mapping) and settings & each.keys()]
    read = [(content, {*SETTINGS, *FIELDS}), *((each, settings) for each in by_table or [of_tables])]
    read += [(step, {*OF_A_STEP}) for step in content.get("steps") or ()]
    for given, known in read:
        refuse_misspelled(given, known)


def run_feeds(project: UserProject, cases: Sequence[FeedCase]) -> None:
    """Deliver the inputs of all cases, step by step, with a dbt run for each, and compare after it."""
    cases = [case for case in cases if not case.broken]
    configured: dict[str, list[dict[str, Any]]] = {}
    for step in range(max((len(case.steps) for case in cases), default=0)):
        arriving = [case for case in cases if step < len(case.steps)]
        _configure(project, arriving, step, configured)
        for case in arriving:
            case.waiting += case.inputs(step)
            if case.feed in configured:
                case.folder.mkdir(parents=True, exist_ok=True)
                for place, path in enumerate(case.waiting):
                    shutil.copy(path, case.folder / f"{step:03d}-{place:03d}-{path.name}")
                case.waiting.clear()
        feeds = [f"tag:{case.feed}" for case in arriving if case.feed in configured]
        if feeds:
            _note_failures(project.try_dbt("run", "--select", "cdc_change_sets", *feeds, quiet=True), cases)
        for case in arriving:
            case.found = {_told_as(table): _final(project, table) for table in configured.get(case.feed, ())}
            try:
                case.differences.append(compare(case.steps[step].get("tables"), case.found))
            except Exception as error:  # the other cases are compared
                case.broken = case.broken or f"its tables cannot be compared: {type(error).__name__}: {error}"
    for case in cases:
        for table in configured.get(case.feed, []):
            found = project.quarantined(case.feed, table["name"])
            case.quarantined += [f"{n} of {table['name']}: {reason}" for reason, n in found]


def _configure(project: UserProject, cases: Sequence[FeedCase], step: int, configured: dict[str, list[dict[str, Any]]]) -> None:
    """Configure the feeds as the messages up to a step tell; what cannot be stays as it is configured."""
    changed: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        try:
            found = case.discovered(step)
            tables = case.configuration(found)
        except CdcError as error:
            case.refusals.append(str(error))
            continue
        except Exception as error:  # the other cases are run
            case.broken = case.broken or f"its tables cannot be configured: {type(error).__name__}: {error}"
            continue
        if tables and tables != configured.get(case.feed):
            whole = list(found.tables) == [WHOLE]  # the messages name no table, so the folder has to
            case.folder = project.path / "landing" / case.feed / (WHOLE if whole else "")
            changed[case.feed] = tables
            _declare(project, case, tables)
    problems = project.problems() if changed else ()
    for case in cases:
        refused = [str(problem) for problem in problems if problem.feed == case.feed]
        if not refused:
            configured |= {case.feed: changed[case.feed]} if case.feed in changed else {}
            continue
        case.refusals += refused
        if case.feed in configured:
            _declare(project, case, configured[case.feed])
        else:
            shutil.rmtree(project.path / "models" / case.feed)
    if changed:
        project.generate()


def _declare(project: UserProject, case: FeedCase, tables: list[dict[str, Any]]) -> None:
    location = case.folder.parent / "{table}" if case.folder.name == WHOLE else case.folder
    settings = {"location": str(location), "change_set_order": "name"}
    project.configure(case.feed, settings=settings | case.of_feed, tables=tables)


def _note_failures(result: Any, cases: Sequence[FeedCase]) -> None:
    for failed in UserProject.failed(result):
        owners = [case for case in cases if case.feed in failed.node.tags]
        if not owners:
            raise AssertionError(f"{failed.node.name}: {failed.message}")
        owners[0].refusals.append(f"{failed.node.name}: {failed.message}")


def _told_as(table: Mapping[str, Any]) -> str:
    """What the messages call a table, where that is no name that models can have."""
    told = str(table["cdc"].get("source_table", "")).rsplit(".", 1)[-1]
    return told if re.search(r"\W", told) else str(table["name"])


def _final(project: UserProject, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = project.rows_if_any(f"select * from {project.schema}.{table['cdc']['final_name']}")
    return [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in rows or []]


def compare(expected: Mapping[str, Any] | None, found: Mapping[str, Rows]) -> str | None:
    """What differs between the tables that a step expects ({name: {columns, rows}}) and those found; None if nothing does."""
    said = ""
    of_name = {name.lower(): rows for name, rows in found.items()}
    for name, table in (expected or {}).items():
        names = (name.replace(".", "_").lower(), name.rsplit(".", 1)[-1].lower())
        rows = next((of_name[each] for each in names if each in of_name), None)
        if rows is None and len(expected or {}) == 1:  # one target, which the messages name otherwise or in shards
            rows = [row for each in found.values() for row in each]
        if rows is None and table["rows"]:
            said += f"  no table {name}\n"
        differs = _difference(table["columns"], table["rows"], rows or [])
        said += f"  {name}:\n{differs}" if differs else ""
    return said or None


def _difference(columns: Sequence[str], expected: Sequence[Sequence[Any]], found: Rows) -> str | None:
    names = [column.lower() for column in columns]
    ours = [{name.lower(): value for name, value in row.items()} for row in found]
    lost = [name for name in names if ours and not any(name in row for row in ours)]
    if lost:
        return f"  there is no column {', '.join(lost)}\n"
    # of shards, one may lack a column that another has
    return difference([dict(zip(names, row, strict=True)) for row in expected], [{n: row.get(n) for n in names} for row in ours])
