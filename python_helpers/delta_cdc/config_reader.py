"""Reads a project's source files into feeds and tables, and collects everything that is wrong with them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from delta_cdc.config import (
    FORMATS,
    IDENTIFIER,
    Column,
    CsvOptions,
    Feed,
    Format,
    Jdbc,
    Kafka,
    Project,
    Settings,
    Table,
    sequence_name,
    setting_defaults,
    setting_level,
    setting_meant,
    settings_naming_columns,
    unquoted,
    wants,
    which_format,
    which_setting,
)
from delta_cdc.errors import ConfigError, Problem, did_you_mean, nearest
from delta_cdc.source_files import (
    DbtProject,
    Lined,
    Renderer,
    SourceFile,
    blocks_in,
    is_template,
    read_project,
    read_source_files,
)
from delta_cdc.spark_types import can_be_compared, has_statistics, why_not_a_type
from delta_cdc.sql_names import names_in, why_not_sql
from delta_cdc.table_list import parts

LANDED_BY: Mapping[str, Any] = {"kafka": Kafka, "jdbc": Jdbc}
_WITH_OPTIONS: Mapping[str, Any] = {**LANDED_BY, "csv_options": CsvOptions}
_NO_OPTIONS = {
    "kafka": {
        "subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "includeheaders", "checkpointlocation",
        "kafka.bootstrap.servers",
    },
    "jdbc": {"url", "dbtable", "query"},
}
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")
_SECRET = re.compile(r"password|secret", re.IGNORECASE)
# in a URL, or in what Kafka's client takes as `sasl.jaas.config`
_SECRET_IN_TEXT = re.compile(
    r"(password|secret)\s*=(?!\s*[\"']?\$\{)|://[^/@:]*:(?!\$\{)[^/@]*@|:thin:[^/@:]*/(?!\$\{)[^/@]+@|PRIVATE KEY", re.IGNORECASE
)


def is_plain_secret(option: str, value: Any) -> bool:
    """Whether an option of Kafka or JDBC holds a secret that is not taken from the environment (`${NAME}`)."""
    return bool((_SECRET.search(option) and not _VARIABLE.search(str(value))) or _SECRET_IN_TEXT.search(str(value)))


CONTROL_MODELS = ("cdc_change_sets", "cdc_runs", "cdc_quarantine", "cdc_holds", "cdc_table_log")
HISTORY_COLUMNS = ("valid_from", "valid_to", "is_current")


def read(root: Path, variables: Mapping[str, Any] | None = None) -> Project:
    """Read and check the feeds of a dbt project. Raises ConfigError with every problem found. variables: beside those of
    dbt_project.yml."""
    project, problems = survey(root, variables)
    if problems:
        raise ConfigError(problems)
    return project


def survey(root: Path, variables: Mapping[str, Any] | None = None, *, last: str = "") -> tuple[Project, list[Problem]]:
    """The feeds of a dbt project as far as they can be read, and every problem found. last: of two feeds that want a name for a
    model, this one is told."""
    project = read_project(root.resolve())
    project = replace(project, variables={**project.variables, **(variables or {})})
    problems: list[Problem] = []
    reader = _Reader(project, problems)
    for file in read_source_files(project, problems):
        reader.read_file(file)
    reader.feeds.sort(key=lambda feed: feed.name == last)
    reader.check_names()
    read = Project(
        root=project.root,
        name=project.name,
        model_path=project.model_paths[0],
        feeds=tuple(sorted(reader.feeds, key=lambda feed: feed.name)),
        variables=variables or {},
        disabled=tuple(sorted(reader.disabled)),
    )
    return read, sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def known_formats(project: DbtProject) -> list[str]:
    """The formats there are: the files macros/formats/<format>.sql of the project, its packages and this
    package."""
    folders = [project.root / path / "formats" for path in project.macro_paths]
    folders += sorted(project.root.glob("dbt_packages/*/macros/formats"))
    folders.append(Path(__file__).resolve().parents[2] / "macros" / "formats")
    files = (file.stem for folder in folders for file in folder.glob("*.sql"))
    return sorted({*FORMATS, *(name for name in files if not name.startswith("_"))})


def shown(value: object) -> str:
    """A value as a person wrote it, shortened."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "empty"
    elif isinstance(value, str):
        text = f"'{value}'"
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item) for item in value)}]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) + "}"
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass
class _Block:
    """A `cdc:` block as written: its settings that are of the right type, and those that are not."""

    file: str
    line: int | None = None
    given: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)


class _Reader:
    """Reads source files into feeds; every problem goes to one list."""

    def __init__(self, project: DbtProject, problems: list[Problem]) -> None:
        self.project = project
        self.problems = problems
        self.formats = known_formats(project)
        self.renderer = Renderer(project.variables)
        self.feeds: list[Feed] = []
        self.disabled: list[str] = []
        self.seen: dict[str, str] = {}
        self.claimed: set[str] = set()

    # files, sources, tables

    def read_file(self, file: SourceFile) -> None:
        sources = file.content.get("sources")
        if "sources" in file.content and not isinstance(sources, list) and sources is not None:
            message = f"`sources` is {shown(sources)}. It takes a list: `sources: [{{name: …, tables: […]}}]`."
            self.problems.append(Problem(message, file=file.path, line=file.content.lines.get("sources")))
        if "sources" in file.content.twice:
            message = "`sources` is given twice, and the first is lost. Make it one list."
            self.problems.append(Problem(message, file=file.path, line=file.content.twice["sources"]))
        for source in _list(sources):
            told = source.get("name") if isinstance(source, Lined) else source
            if isinstance(source, Lined) and isinstance(told, str):
                if not self.is_disabled(source):
                    self.read_source(source, file.path)
                elif next(blocks_in(source), None):
                    self.disabled.append(told)
            elif block := next(blocks_in(source), None):
                message = f"a source's name is {shown(told)}. It takes text: - name: \"{told or 'shop'}\"."
                self.problems.append(Problem(message, file=file.path, line=block[0].lines.get(block[1])))

    def is_disabled(self, node: Lined) -> bool:
        config = node.get("config")
        try:
            enabled = self.renderer.render(config.get("enabled")) if isinstance(config, dict) else True
        except ValueError:  # dbt says what is missing
            return False
        return enabled is False or str(enabled).strip().casefold() == "false"

    def read_source(self, source: Lined, file: str) -> None:
        name = source["name"]
        tables = [
            t for t in _list(source.get("tables")) if isinstance(t, Lined) and isinstance(t.get("name"), str)
        ]
        tables = [table for table in tables if not self.is_disabled(table)]
        feed_block = self.cdc_block(source, file, name, None)
        table_blocks = [self.cdc_block(table, file, name, table["name"]) for table in tables]
        for node, table in ((source, None), *((table, table["name"]) for table in tables)):
            self.check_places(node, file, name, table)
        if feed_block is None and not any(table_blocks):
            return

        def problem(message: str, line: int | None = source.lines.get("name")) -> None:
            self.problems.append(Problem(message, feed=name, file=file, line=line))

        if not IDENTIFIER.fullmatch(name):
            problem(
                "a feed's name is made of letters, digits and underscores, not beginning with a digit; "
                f"`{name}` is not."
            )
        is_again = name.casefold() in self.seen
        if is_again:
            problem(f"the feed is already in {self.seen[name.casefold()]}. Give each feed one source.")
        self.seen[name.casefold()] = file
        if not tables:
            given = source.get("tables")
            found = "it has no tables." if not given or isinstance(given, list) else f"`tables` is {shown(given)}."
            problem(f"{found} List them under `tables:`, each as `- name: …`.")
        for table in _list(source.get("tables")):
            told = table.get("name") if isinstance(table, Lined) else table
            if not isinstance(table, Lined) or not isinstance(told, str):
                message = f"a table's name is {shown(told)}. It takes text: - name: \"{told or 'invoice'}\"."
                lines = table.lines if isinstance(table, Lined) else {}
                problem(message, lines.get("name") or min(lines.values(), default=source.lines.get("tables")))
        feed_block = feed_block or _Block(file)
        self.check_feed(name, feed_block, len(tables), source.lines.get("name"))
        tables_read = [
            self.read_table(name, table, feed_block, block or _Block(file), file)
            for table, block in zip(tables, table_blocks, strict=True)
        ]
        self.check_feed_lists(name, feed_block, [column for _, columns in tables_read for column in columns])
        if is_again:  # it has no models of its own to be told of
            return
        self.feeds.append(
            Feed(
                name=name,
                tables=self.tables_once(name, [t for t, _ in tables_read if t is not None]),
                description=_text(source.get("description")),
                file=file,
            )
        )

    def tables_once(self, feed: str, tables: list[Table]) -> tuple[Table, ...]:
        once: dict[str, Table] = {}
        for table in tables:
            if once.setdefault(table.name.casefold(), table) is not table:
                message = "the table is listed twice (names that differ only in case are one name to Spark)."
                self.problems.append(Problem(message, feed, table.name, table.file, table.line))
        return tuple(sorted(once.values(), key=lambda table: table.name))

    def check_places(self, node: Lined, file: str, feed: str, table: str | None) -> None:
        """What stands where dbt and this package do not look, or is hidden by a second one of the same name."""
        config, meta = node.get("config"), node.get("meta")
        deep = config.get("meta") if isinstance(config, Lined) else None
        beside = [(holder, key) for holder in (node, config) if isinstance(holder, Lined) for key in holder]
        no_block = [(held, key) for held, key in beside if str(key).casefold() == "cdc" and not isinstance(held[key], Lined)]
        for holder, key in (*no_block, *blocks_in(node, but="tables")):
            if key != "cdc" or all(holder is not place for place in (meta, deep)):
                message = f"`{key}` is read by nobody here. A source's or table's stands under `config: {{meta: {{cdc: …}}}}`."
                self.problems.append(Problem(message, feed, table, file, holder.lines.get(key)))
        for beside_cdc in (place for place in (meta, deep) if isinstance(place, Lined) and "cdc" in place):
            for key in beside_cdc:
                if key in Settings.model_fields and key not in _WORDS_OF_OTHERS:
                    message = f"`{key}` stands beside `cdc`, where nobody reads it. Indent it, so that it stands under `cdc`."
                    self.problems.append(Problem(message, feed, table, file, beside_cdc.lines[key]))
        for mapping, place in ((node, ""), (config, "config: "), (meta, "meta: "), (deep, "config: meta: ")):
            for key, line in mapping.twice.items() if isinstance(mapping, Lined) else ():
                message = f"`{place}{key}` is given twice, and the first is lost. Make it one."
                self.problems.append(Problem(message, feed, table, file, line))

    def cdc_block(self, node: Lined, file: str, feed: str, table: str | None) -> _Block | None:
        """`config: meta: cdc:` or `meta: cdc:` of a source or table; None where there is neither."""
        config = node.get("config")
        places = [node.get("meta"), config.get("meta") if isinstance(config, dict) else None]
        blocks = [(place["cdc"], place) for place in places if isinstance(place, Lined) and "cdc" in place]
        if not blocks:
            return None
        raw, holder = blocks[-1]
        line = holder.lines.get("cdc")
        if len(blocks) == 2:
            message = "`cdc` is given twice, under `meta` and under `config: meta`. Keep the second."
            self.problems.append(Problem(message, feed, table, file, line))
        if raw is None:
            return _Block(file, line)
        if not isinstance(raw, Lined):
            message = f"`cdc` is {shown(raw)}. It takes a mapping of settings, e.g. {{keys: [id]}}."
            self.problems.append(Problem(message, feed, table, file, line))
            return _Block(file, line)
        return self.checked_block(raw, feed, table, file, line)

    def checked_block(self, raw: Lined, feed: str, table: str | None, file: str, line: int | None) -> _Block:
        """Names and types of the settings in a block."""
        block = _Block(file, line, lines={str(key): at for key, at in raw.lines.items()})

        def problem(name: str, message: str) -> None:
            block.broken.add(name)
            self.problems.append(Problem(message, feed, table, file, block.lines.get(name)))

        for key, at in raw.twice.items():
            self.problems.append(Problem(f"`{key}` is given twice. Keep one.", feed, table, file, at))
        here, elsewhere = ("table", "feed") if table is not None else ("feed", "table")
        for key, value in raw.items():
            name = str(key)
            if name not in Settings.model_fields:
                close = setting_meant(name)
                block.broken |= {close} if close else set()
                problem(name, f"setting `{name}` is not known. {which_setting(name)}")
            elif setting_level(name) == elsewhere:
                problem(name, f"`{name}` is a setting of the {elsewhere}, not of the {here}. Move it there.")
            else:
                try:
                    block.given[name] = self.renderer.render(value)
                except ValueError as error:
                    problem(name, f"`{name}`: {error}.")
        try:
            Settings.model_validate(block.given)
        except ValidationError as error:
            inner: dict[str, str] = {}
            for detail in error.errors():
                setting = str(detail["loc"][0])
                inner[setting] = inner.get(setting, "") + _inside(detail)
            for name in dict.fromkeys(str(detail["loc"][0]) for detail in error.errors()):
                value = block.given.pop(name)
                if name in LANDED_BY and isinstance(value, dict):  # it may hold a secret: only what is wrong in it is shown
                    problem(name, f"`{name}` is not right. It takes {wants(name)}.{inner[name]}")
                    for message in _plain_secrets(name, value):
                        problem(name, message)
                    continue
                better = inner[name] or did_you_mean_value(name, value)
                if isinstance(value, str) and isinstance(raw.get(name), str) and is_template(raw[name]):
                    better += " What a template gives is text: end it with `| as_bool`, `| as_number` or `| as_native`."
                problem(name, f"`{name}` is {shown(value)}. It takes {wants(name)}.{better}")
        return block

    # the feed's own settings

    def check_feed(self, feed: str, block: _Block, tables: int, line: int | None) -> None:
        def problem(message: str, name: str | None = None) -> None:
            at = block.lines.get(name, block.line or line) if name else block.line or line
            self.problems.append(Problem(message, feed=feed, file=block.file, line=at))

        given = block.given
        if given.get("format") is None and "format" not in block.broken:
            problem(f"`format` is missing. Known: {', '.join(f'`{name}`' for name in self.formats)}.")
            block.broken.add("format")
        elif given.get("format") is not None and given["format"] not in self.formats:
            problem(f"`format` is '{given['format']}'. {which_format(given['format'], self.formats)}", "format")
            block.broken.add("format")
        if "ready" in given and given.get("unit", "file") != "folder" and "unit" not in block.broken:
            problem("`ready` says what a folder must hold, and `unit` is file. Set `unit: folder`.", "ready")
        if given.get("sub_folders"):
            of_files = given.get("unit", "file") == "file" and given.get("file_format") != "delta"
            if not of_files and not {"unit", "file_format"} & block.broken:
                problem("`sub_folders` is for change sets that are files. Take it out.", "sub_folders")
            if given.get("list_after"):
                problem("`list_after` and `sub_folders` are both given; names grow in one folder. Take one out.", "list_after")
        csv = given.get("csv_options", {})
        if csv and given.get("file_format", "json") != "csv" and "file_format" not in block.broken:
            problem("`csv_options` is for CSV files. Set `file_format: csv`, or take it out.", "csv_options")
        of_format = FORMATS.get(given.get("format", ""), Format())
        file_format = given.get("file_format", of_format.settings.get("file_format", "json"))
        if "file_format" not in block.broken:
            if given.get("message_column") and file_format not in ("parquet", "orc", "delta"):
                message = f"`message_column` is for rows of columns, and `file_format` is {file_format}. Take it out."
                problem(message, "message_column")
            if given.get("row_order") and file_format != "delta":
                message = f"`row_order` is for Delta tables, and `file_format` is {file_format}. A file's rows have its order."
                problem(message, "row_order")
            if file_format == "delta" and given.get("format") == "snapshots":
                message = (
                    "`file_format` is delta, and with `format: snapshots` a change set is the whole table; a commit of a Delta "
                    "table is what it changed. Say `format: delta_cdf`, or `rows` for a table that is only appended to."
                )
                problem(message, "file_format")
            if file_format == "delta" and given.get("unit", "file") != "file":
                problem("`unit` is folder, and a commit of a Delta table is one file. Take it out.", "unit")
        self.check_landing(given, block, problem)
        if given.get("location") is None:
            if "location" not in block.broken:
                problem(
                    "`location` is missing. Give the folder of the change sets, e.g. "
                    f"landing/{feed}, or landing/{feed}/{{table}} for a folder per table."
                )
            return
        location = given["location"]
        for placeholder in re.findall(r"\{([^{}]*)\}", location):
            if placeholder != "table":
                message = f"`location` holds `{{{placeholder}}}`; the only placeholder is `{{table}}`."
                problem(message, "location")
        if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", location)) or "<table>" in location:
            problem(f"`location` is '{location}'. The placeholder is written `{{table}}`.", "location")
            return
        if re.search(r"[*?]", location):
            problem(f"`location` is '{location}'. It names a folder as it is; `*` and `?` stand for nothing else.", "location")
        if location.startswith("~") or re.search(r"\$\{?[A-Za-z_]", location):
            message = f"`location` is '{location}', and no shell reads it. Write the path, or "
            problem(message + "\"{{ env_var('LANDING') }}/…\" for what the environment says.", "location")
        if "{table}" not in location:
            if csv.get("header") is False and tables > 1:
                message = f"`csv_options` has no header, and `location` mixes {tables} tables, whose columns are not the same. "
                problem(message + f"Give each a folder: {location.rstrip('/')}/{{table}}.", "csv_options")
            if "://" not in location and os.path.isfile(self.project.root / location):
                message = (
                    f"`location` is '{location}', a file. It takes the folder that holds the change sets."
                )
                problem(message, "location")
            if tables > 1 and not of_format.names_tables:
                message = (
                    f"`location` is '{location}' for {tables} tables, and {given['format']} do not say "
                    "which table they "
                    f"are of. Give each a folder: {location.rstrip('/')}/{{table}}."
                )
                problem(message, "location")

    def check_landing(
        self, given: Mapping[str, Any], block: _Block, problem: Callable[[str, str | None], None]
    ) -> None:
        """`kafka` and `jdbc`: what must hold inside of them, and between them and `location`."""
        names = [name for name in LANDED_BY if given.get(name) is not None]
        if len(names) == 2:
            problem("`kafka` and `jdbc` are both given. A feed is landed by one of them: make two feeds.", "jdbc")
            return
        if not names:
            return
        name = names[0]
        landed, location = given[name], given.get("location") or ""
        if given.get("file_format") != "delta" and "file_format" not in block.broken:
            problem(f"`{name}` lands in a Delta table. Set `file_format: delta`.", name)
        for option in landed.get("options", {}):
            if option.casefold() in _NO_OPTIONS[name]:
                problem(f"`{name}.options` names `{option}`, which `delta-cdc land` sets itself. Take it out.", name)
        for message in _plain_secrets(name, landed):
            problem(message, name)
        if name == "kafka":
            topics = landed.get("topics")
            if (topics is None) == (landed.get("topic_pattern") is None):
                problem("`kafka` takes `topics` or `topic_pattern`, one of them.", name)
                return
            parts = topics or [landed["topic_pattern"]]
            what = "`kafka.topics`" if topics else "`kafka.topic_pattern`"
        else:
            parts, what = [landed["table"]], "`jdbc.table`"
        if location and any(("{table}" in part) != ("{table}" in location) for part in parts):
            problem(
                f"`{{table}}` stands in one of `location` ({location}) and {what} ({', '.join(parts)}). In both, each table is "
                "landed by itself; in neither, all in one.",
                name,
            )

    def check_feed_lists(self, feed: str, block: _Block, columns: list[str]) -> None:
        """Column lists that hold for all tables: each name must be a column of at least one of them."""

        def problem(setting: str, message: str) -> None:
            self.problems.append(Problem(message, feed=feed, file=block.file, line=block.lines.get(setting)))

        never = block.given.get("never_store", [])
        listed = {name.casefold(): name for name in columns}
        for name in never:
            if name.casefold() not in listed and (close := nearest(name, listed.values())):
                problem("never_store", _may_be_misspelled(name, close))
        known = {folded: name for folded, name in listed.items() if folded not in [each.casefold() for each in never]}
        for setting in _FEED_COLUMN_LISTS:
            for name in _column_list(block.given.get(setting)):
                if name.casefold() not in known:
                    hint = did_you_mean(name, known.values())
                    problem(setting, f"`{setting}` names `{name}`, a column of none of its tables. {hint}")

    # a table

    def read_table(
        self, feed: str, node: Lined, feed_block: _Block, block: _Block, file: str
    ) -> tuple[Table | None, list[str]]:
        """The table, and the names of its columns, those of `never_store` too. None where it cannot even be named."""
        name = str(node["name"])
        line = node.lines.get("name")
        if not IDENTIFIER.fullmatch(name):
            message = (
                f"a table's name is made of letters, digits and underscores; `{name}` is not. "
                "Choose one, and give the name in the feed as `source_table`."
            )
            self.problems.append(Problem(message, feed, name, file, line))
        listed = self.read_columns(feed, node, file)
        merged = setting_defaults()
        merged |= FORMATS.get(feed_block.given.get("format", ""), Format()).settings
        merged |= feed_block.given
        merged |= block.given
        never = [name.casefold() for name in merged["never_store"]]
        columns = tuple(column for column in listed if column.name.casefold() not in never)
        table = Table(
            feed=feed,
            name=name,
            settings=Settings.model_validate(_as_spelled(merged, [column.name for column in columns])),
            columns=columns,
            description=_text(node.get("description")),
            file=file,
            line=line,
        )
        _TableCheck(table, [column.name for column in listed], feed_block, block, self.problems).run()
        return (table if IDENTIFIER.fullmatch(name) else None), [column.name for column in listed]

    def read_columns(self, feed: str, node: Lined, file: str) -> tuple[Column, ...]:
        table = str(node["name"])
        columns: dict[str, Column] = {}

        def problem(message: str, line: int | None) -> None:
            self.problems.append(Problem(message, feed, table, file, line))

        listed = _list(node.get("columns"))
        if not listed:
            given = node.get("columns")
            found = "it has no columns." if not given or isinstance(given, list) else f"`columns` is {shown(given)}."
            problem(
                f"{found} List them under `columns:`, each with `name` and `data_type`.",
                node.lines.get("name"),
            )
        for item in listed:
            name = item.get("name") if isinstance(item, Lined) else item
            line = item.lines.get("name") if isinstance(item, Lined) else node.lines.get("columns")
            if not isinstance(item, Lined) or not isinstance(name, str) or not name:
                problem(
                    f"a column is {shown(name)}. It takes a `name` (quoted text) and a `data_type`.", line
                )
                continue
            data_type = item.get("data_type")
            if data_type is None:
                problem(
                    f"column `{name}` has no `data_type`. Give its Spark SQL type, e.g. decimal(10,2).", line
                )
            elif not isinstance(data_type, str) or why_not_a_type(data_type):
                why = why_not_a_type(data_type) if isinstance(data_type, str) else "it is no text"
                message = f"column `{name}`: the data_type {shown(data_type)} is no Spark SQL type: {why}."
                if str(data_type).count("(") > str(data_type).count(")"):
                    message += " Between braces, a type with a comma wants quotes."
                problem(message.replace("?.", "?"), item.lines.get("data_type"))
            if is_template(name):
                problem(f"column `{name}`: a column's name cannot hold Jinja.", line)
            if name.casefold().startswith("_cdc_"):
                problem(
                    f"column `{name}`: names that begin with _cdc_ are taken by the columns that are added.",
                    line,
                )
            if name.casefold() in columns:
                first = columns[name.casefold()].name
                problem(
                    f"column `{name}` is listed twice (`{first}`; to Spark, case makes no difference).", line
                )
                continue
            columns[name.casefold()] = Column(name, str(data_type or ""), _text(item.get("description")))
        return tuple(columns.values())

    # all feeds together

    def check_names(self) -> None:
        """Every model must have a name of its own."""
        owners = {name: "this package" for name in CONTROL_MODELS}
        for feed in self.feeds:
            if feed.raw_name:
                self.claim(owners, feed.raw_name, feed.name, None, feed.file, None)
            for table in feed.tables:
                for name in (table.staging_name, table.keys_name, table.history_name):
                    if name:
                        self.claim(owners, name, feed.name, table.name, table.file, table.line)
        for feed in self.feeds:
            for table in feed.tables:
                self.claim(
                    owners, table.final_name, feed.name, table.name, table.file, table.line, final=True
                )

    def claim(
        self,
        owners: dict[str, str],
        name: str,
        feed: str,
        table: str | None,
        file: str | None,
        line: int | None,
        *,
        final: bool = False,
    ) -> None:
        me = f"feed {feed}, table {table}" if table else f"feed {feed}"
        other = owners.setdefault(name.casefold(), me)
        if other == me and name.casefold() not in self.claimed:
            self.claimed.add(name.casefold())
            return
        remedy = (
            f"Give one of them another `final_name`, e.g. final_{feed}_{table}."
            if final
            else "Rename one of them (and keep the name in the feed as `source_table`)."
        )
        message = f"its model {name} is also a model of {'itself' if other == me else other}. {remedy}"
        self.problems.append(Problem(message, feed, table, file, line))


# Settings whose names somebody else's `meta` may have too.
_WORDS_OF_OTHERS = {"columns", "format", "history", "location", "ordinal", "paused", "ready", "tags", "transaction", "unit"}
# Column lists that a feed may give for all its tables at once.
_FEED_COLUMN_LISTS = ("columns", "except_columns", "track_columns", "ignore_null_updates", "set_on_insert")


class _TableCheck:
    """What must hold between the settings of one table. listed: its columns with those of `never_store`."""

    def __init__(self, table: Table, listed: Sequence[str], feed_block: _Block, block: _Block, problems: list[Problem]) -> None:
        self.table = table
        self.listed = listed
        self.settings = table.settings
        self.format = FORMATS.get(table.settings.format or "")
        self.feed_block = feed_block
        self.block = block
        self.broken = feed_block.broken | block.broken
        self.types = {column.name: column.data_type for column in table.columns}
        self.names = list(self.types)
        self.problems = problems

    def run(self) -> None:
        self.keys()
        self.renamed()
        self.order()
        self.operations()
        self.columns()
        self.privacy()
        self.partitions()
        self.lives()
        self.snapshots()
        self.contradictions()

    def level(self, name: str) -> int:
        """2 if the table gives the setting, 1 if its feed does, 0 if nobody."""
        return 2 if name in self.block.given else 1 if name in self.feed_block.given else 0

    def problem(self, message: str, name: str | None = None) -> None:
        block = self.feed_block if name and self.level(name) == 1 else self.block
        line = block.lines.get(name) if name else None
        line = line or self.block.line or self.table.line
        self.problems.append(Problem(message, self.table.feed, self.table.name, self.table.file, line))

    def known_columns(self, setting: str, named: Iterable[str]) -> None:
        """Each name must be a column. A feed's lists need only fit one table (checked for the feed)."""
        if setting in _FEED_COLUMN_LISTS and self.level(setting) == 1:
            return
        twice: set[str] = set()
        never = {name.casefold() for name in self.settings.never_store}
        for name in named:
            if name.casefold() in never:
                self.problem(f"`{setting}` names `{name}`, which `never_store` keeps out. Take one of them out.", setting)
            elif name not in self.names and self.names:
                self.problem(
                    f"`{setting}` names `{name}`, which is no column. {did_you_mean(name, self.names)}",
                    setting,
                )
            elif name in twice:
                self.problem(f"`{setting}` names `{name}` twice.", setting)
            twice.add(name)

    def comparable(self, setting: str, named: Iterable[str]) -> None:
        """None of them may be a map or a variant: two of such are not equal to Spark."""
        for name in named:
            if not can_be_compared(self.types.get(name, "")):
                what = "orders" if setting == "sequence_by" else "tells"
                self.problem(
                    f"`{setting}` {what} rows by their values, `{name}` is {self.types[name]}, and Spark cannot compare such. "
                    "Take the column out, or give it the data_type string.", setting
                )

    def known_expression(self, setting: str, expression: str) -> None:
        """Each name in it must be a column or a field of the format; what else it says is Spark's to judge."""
        if not self.names:
            return
        if expression in self.names and not IDENTIFIER.fullmatch(expression):
            quoted = expression.replace("`", "``")
            message = (
                f"`{setting}` takes SQL; there the column `{expression}` stands in backticks: `{quoted}`."
            )
            self.problem(message, setting)
            return
        if why := why_not_sql(expression):
            self.problem(f"`{setting}` has `{expression}`, which is no SQL expression: {why}.", setting)
            return
        if self.format is None and unquoted(expression) in (None, expression):
            return  # the fields of a format of the project's own are not known here
        if setting in ("deleted_when", "truncated_when") and expression.strip().casefold() in ("true", "false"):
            return  # a condition that always or never holds
        columns = {each.casefold() for each in self.names}
        of_final = setting in ("expressions", "partition_by")  # made from staging, where a change has no such fields any more
        fields = self.format.fields if self.format and not of_final else ()
        made = self.settings.expressions if of_final else ()
        known = [*self.names, *(f"_cdc{field}" if field in columns else field for field in fields), *made]
        single = unquoted(expression)
        for name in names_in(expression) if single is None else [single]:
            if name.casefold() in [each.casefold() for each in self.settings.never_store]:
                self.problem(f"`{setting}` names `{name}`, which `never_store` keeps out. Take one of them out.", setting)
            elif single is None and name.casefold().startswith("_cdc_"):
                continue  # one of staging's own
            elif name.casefold() not in [each.casefold() for each in known]:
                message = f"`{setting}` names `{name}`, which is no column. {did_you_mean(name, known)}"
                self.problem(message, setting)

    def keys(self) -> None:
        settings = self.settings
        if not settings.keys and self.table.has_entities and "keys" not in self.broken:
            self.problem(
                "`keys` is missing. Give the columns that identify a row, e.g. [id]; or say `insert_only: "
                "true`, or "
                "`keyless: append` or `keyless: multiset` for a table without a key."
            )
        self.known_columns("keys", settings.keys)
        if settings.keys and settings.keyless != "none":
            self.problem(f"`keyless` is {settings.keyless}, and `keys` are given. Take one of them out.", "keyless")
        if settings.surrogate != "none" and settings.keyless == "none":
            message = "`surrogate` is for a table without a key. Say `keyless: append` or `keyless: multiset`, or take it out."
            self.problem(message, "surrogate")
        for setting, named in (
            ("nullable_keys", settings.nullable_keys),
            ("old_keys", list(settings.old_keys)),
        ):
            for name in named:
                if name not in settings.keys and "keys" not in self.broken:
                    hint = did_you_mean(name, settings.keys)
                    self.problem(f"`{setting}` names `{name}`, which is not one of `keys`. {hint}", setting)
        self.known_columns("old_keys", settings.old_keys.values())
        self.comparable("keys", settings.keys)
        if settings.keyless == "multiset" or settings.surrogate == "hash":
            setting = "keyless" if settings.keyless == "multiset" else "surrogate"
            self.comparable(setting, [column.name for column in self.table.published_columns])
        for alternate in settings.alternate_keys:
            self.known_columns("alternate_keys", alternate)
            self.comparable("alternate_keys", alternate)
            if set(alternate) == set(settings.keys):
                self.problem(f"`alternate_keys` names [{', '.join(alternate)}], which are `keys`. Take it out.", "alternate_keys")

    def renamed(self) -> None:
        settings = self.settings
        olds: dict[str, str] = {}
        for new, old in settings.renamed_columns.items():
            if new.casefold() not in {name.casefold() for name in (*self.names, *settings.never_store)} and self.names:
                hint = f"It takes the new name first: {{{old}: {new}}}." if old in self.names else did_you_mean(new, self.names)
                self.problem(f"`renamed_columns` names `{new}`, which is no column. {hint}", "renamed_columns")
            elif old in self.names:
                message = f"`renamed_columns` says that `{new}` was `{old}`, which is a column too. Take one of them out."
                self.problem(message, "renamed_columns")
            if old.casefold() in olds:
                two = f"`{olds[old.casefold()]}` and of `{new}`"
                self.problem(f"`renamed_columns` says of {two} that they were `{old}`. Take one out.", "renamed_columns")
            olds[old.casefold()] = new

    def order(self) -> None:
        settings = self.settings
        if not settings.sequence_by and not {"sequence_by", "format"} & self.broken:
            self.problem(
                "`sequence_by` is missing. Give the columns that order the source's changes, e.g. [lsn]."
            )
        seen: set[str] = set()
        for name in settings.sequence_by:
            bare = (unquoted(name) or name).casefold()
            if bare in seen:
                self.problem(f"`sequence_by` names `{name}` twice.", "sequence_by")
            elif re.search(r"\s(asc|desc)\s*$", name, re.IGNORECASE):
                message = f"`sequence_by` has `{name}`. What is higher is newer; write an expression that rises with time."
                self.problem(message, "sequence_by")
            elif len(parts(name)) > 1:
                message = f"`sequence_by` has `{name}` as one expression. Write each by itself: [{', '.join(parts(name))}]."
                self.problem(message, "sequence_by")
            else:
                self.known_expression("sequence_by", name)
            seen.add(bare)
        for place, part in enumerate(settings.sequence_by, 1):
            field = sequence_name(part, place)
            if field.casefold() in seen and unquoted(part) != field:
                message = f"`sequence_by` has `{field}`, which is also what {part} is called, being at place {place}."
                self.problem(message + " Put it elsewhere.", "sequence_by")
        named = {(unquoted(name) or "").casefold() for name in settings.sequence_by}
        self.comparable("sequence_by", [name for name in self.names if name.casefold() in named])
        for setting in ("deleted_when", "truncated_when", "ordinal", "transaction", "occurred_at"):
            expression = getattr(settings, setting)
            if expression is not None and not (settings.format == "snapshots" and setting in _NOT_OF_SNAPSHOTS):
                self.known_expression(setting, expression)

    def operations(self) -> None:
        settings = self.settings
        if self.format is not None and self.format.knows_operations:
            for setting in ("operation", "old_keys"):
                if self.level(setting) and settings.format != "snapshots":
                    self.problem(f"`{setting}` is for flat rows; {settings.format} says that itself. Take it out.", setting)
        elif settings.operation is not None:
            self.known_columns("operation", [settings.operation])
        elif settings.operation_codes and self.format is not None and "operation" not in self.broken:
            message = (
                "`operation_codes` is given without `operation`, the column that holds the codes. Add it."
            )
            self.problem(message, "operation_codes")

    def columns(self) -> None:
        settings, table = self.settings, self.table
        if settings.columns is not None and settings.except_columns:
            message = (
                "`columns` and `except_columns` are both given. Keep one (`columns: null` undoes the feed's)."
            )
            self.problem(message, "columns" if self.level("columns") == 2 else "except_columns")
            return
        self.known_columns("ignore_null_updates", _column_list(settings.ignore_null_updates))
        for name in settings.ignore_null_updates if isinstance(settings.ignore_null_updates, list) else ():
            if name in settings.keys and self.level("ignore_null_updates") == 2:
                self.problem(f"`ignore_null_updates` names `{name}`, which is one of `keys`. Take it out.", "ignore_null_updates")
        self.known_columns("columns", settings.columns or [])
        self.known_columns("except_columns", settings.except_columns)
        published = [column.name for column in table.published_columns]
        shaped_by = "columns" if settings.columns is not None else "except_columns"
        for key in settings.keys:
            if key in self.names and key not in published:
                message = f"`{shaped_by}` leaves out the key column `{key}`. History and final need it."
                if settings.columns is None and not settings.except_columns:
                    shaped_by = "operation" if key == settings.operation else "old_keys"
                    message = f"`{shaped_by}` names the key column `{key}`. It takes a column that is not one of `keys`."
                self.problem(message, shaped_by)
        self.known_columns("track_columns", _column_list(settings.track_columns))
        for name in _column_list(settings.track_columns):
            if name in self.names and name not in published and self.level("track_columns") == 2:
                message = f"`track_columns` names `{name}`, which history does not have (see `{shaped_by}`)."
                self.problem(message, "track_columns")
        if table.history_name is not None:
            for name in published:
                if name.casefold() in HISTORY_COLUMNS:
                    made = name not in self.names
                    self.problem(
                        f"`expressions` makes `{name}`, a column that history adds. Give it another name."
                        if made else
                        f"column `{name}` has the name of a column that history adds. Leave it out with "
                        f"`except_columns`, e.g. [{name}]; staging keeps it.",
                        "expressions" if made else None,
                    )

    def privacy(self) -> None:
        """`mask`, `never_store` and `expressions`."""
        settings = self.settings
        self.known_columns("mask", settings.mask)
        for name in settings.never_store:
            # it need not be listed, so one that is misspelled would store what must not be stored
            known = name.casefold() in [each.casefold() for each in self.listed]
            if not known and self.level("never_store") == 2 and (close := nearest(name, self.listed)):
                self.problem(_may_be_misspelled(name, close), "never_store")
        for key, old in settings.old_keys.items():
            if key in settings.mask and old not in settings.mask:
                self.problem(
                    f"`mask` names the key column `{key}`, and `{old}` holds its old value. Mask that too.", "mask"
                )
        for setting, made in (("mask", settings.mask), ("expressions", settings.expressions)):
            for sql in made.values():
                if sql.strip().casefold() not in _BARE_WORDS_OF_SQL:
                    self.known_expression(setting, sql)
        for name in settings.expressions:
            if name in settings.keys:
                self.problem(
                    f"`expressions` names the key column `{name}`: it tells rows apart. Use `mask`, which "
                    "changes it before anything is stored.",
                    "expressions",
                )
            elif name.casefold().startswith("_cdc_"):
                self.problem(f"`expressions` names `{name}`: names with _cdc_ are taken.", "expressions")
            elif name.casefold() in {each.name.casefold() for each in self.table.partition_columns if each.derived}:
                message = f"`expressions` and `partition_by` both make a column `{name}`. Take one of them out."
                self.problem(message, "expressions")

    def partitions(self) -> None:
        settings, table = self.settings, self.table
        published = [column.name for column in table.published_columns]
        seen: set[str] = set()
        for partition in table.partition_columns:
            name = partition.name
            if not partition.derived:
                if name not in published:
                    self.problem(f"`partition_by` names `{name}`, which final does not have.", "partition_by")
                elif re.match(r"\s*(array|map|struct|variant)\b", self.types.get(name, ""), re.IGNORECASE):
                    message = f"`partition_by` names `{name}`, which is {self.types[name]}. Spark takes simple types there."
                    self.problem(message, "partition_by")
            elif IDENTIFIER.fullmatch(partition.expression) and self.names:
                hint = did_you_mean(partition.expression, self.names)
                message = f"`partition_by` names `{partition.expression}`, which is no column. {hint}"
                self.problem(message, "partition_by")
            elif not name or name[0].isdigit():
                message = (
                    f"`partition_by`: `{partition.expression}` needs a name: {partition.expression} as part."
                )
                self.problem(message, "partition_by")
            elif table.has_entities and (left_out := _named_in(partition.expression, set(self.names) - set(published))):
                message = (
                    f"`partition_by`: `{partition.expression}` is made from `{left_out}`, which final does not have. Publish it "
                    "(`columns`, `except_columns`)."
                )
                self.problem(message, "partition_by")
            elif name.casefold() in [column.casefold() for column in self.names]:
                message = f"`partition_by` makes a column `{name}`, and the table has one. Name it with `as`."
                self.problem(message, "partition_by")
            elif partition.derived:
                self.known_expression("partition_by", partition.expression)
            if name.casefold() in seen:
                self.problem(f"`partition_by` names `{name}` twice.", "partition_by")
            seen.add(name.casefold())
        for setting, named in (("cluster_by", settings.cluster_by), ("zorder_by", settings.zorder_by)):
            self.known_columns(setting, named)
            for name in named:
                if name in self.names and name not in published:
                    self.problem(f"`{setting}` names `{name}`, which final does not have.", setting)
        if settings.cluster_by and settings.partition_by:
            message = "`partition_by` and `cluster_by` are both given; Delta takes one of them. Take one out."
            self.problem(message, "cluster_by")
        if settings.zorder_by and settings.cluster_by:
            message = "`cluster_by` and `zorder_by` are both given; a clustered table is ordered by its clustering. Take one out."
            self.problem(message, "zorder_by")
        self.ordering(published, seen)
        if (
            settings.apply == "replace_partitions"
            and not settings.partition_by
            and "partition_by" not in self.broken
        ):
            self.problem(
                "`apply` is replace_partitions, and `partition_by` is missing. Say by what final is "
                "partitioned, "
                "e.g. [year(created_at) as created_year].",
                "apply",
            )

    def ordering(self, published: Sequence[str], partitions: AbstractSet[str]) -> None:
        """Columns of which Delta has the lowest and highest value in each file: else it refuses to order or cluster by them.

        partitions: names of the partition columns, in lower case.
        """
        with_statistics = [name for name in published if name.casefold() not in partitions][:32]
        for setting, named in (("zorder_by", self.settings.zorder_by), ("cluster_by", self.settings.cluster_by)):
            for name in named:
                if name not in published or name not in self.types:
                    continue
                if name.casefold() in partitions:
                    why = "by which final is partitioned: the files of a partition have one value of it"
                elif not has_statistics(self.types[name]):
                    why = f"whose type is {self.types[name]}. It takes columns with an order: numbers, texts, dates and times"
                elif name not in with_statistics:
                    why = "which is not among the first 32 of final: Delta has no statistics of it. List it further up"
                else:
                    continue
                self.problem(f"`{setting}` names `{name}`, {why}.", setting)
        if len(self.settings.cluster_by) > 4:
            self.problem(f"`cluster_by` names {len(self.settings.cluster_by)} columns; Delta takes four at most.", "cluster_by")

    def lives(self) -> None:
        """What final tells of a row's life: `created_at`, `updated_at`, `set_on_insert`, soft deletes."""
        settings, table = self.settings, self.table
        taken = {c.name.casefold(): "a column of final" for c in table.published_columns}
        taken |= {c.name.casefold(): "made by `partition_by`" for c in table.partition_columns if c.derived}
        for setting in ("created_at", "updated_at"):
            name = getattr(settings, setting)
            if name is None or not table.has_entities:
                continue
            if not IDENTIFIER.fullmatch(name) or name.startswith("_cdc_"):
                self.problem(
                    f"`{setting}` is {shown(name)}. It takes {wants(setting)}, not beginning with _cdc_.",
                    setting,
                )
            elif name.casefold() in taken:
                message = f"`{setting}` names `{name}`, which is {taken[name.casefold()]} already. Give it another name."
                self.problem(message, setting)
            taken[name.casefold()] = f"given by `{setting}`"
        self.known_columns("set_on_insert", settings.set_on_insert)
        published = [column.name for column in table.published_columns]
        for name in settings.set_on_insert:
            if name in self.names and name not in published and self.level("set_on_insert") == 2:
                self.problem(f"`set_on_insert` names `{name}`, which final does not have.", "set_on_insert")
            if name in settings.keys:
                message = f"`set_on_insert` names `{name}`, which is one of `keys`. A key is always the row's own."
                self.problem(message, "set_on_insert")
        if settings.soft_delete_nulls and settings.delete_mode == "hard" and "delete_mode" not in self.broken:
            message = "`soft_delete_nulls` is for `delete_mode: soft`. Add that, or take it out."
            self.problem(message, "soft_delete_nulls")

    def snapshots(self) -> None:
        """What only changes can tell has no place where the whole table comes each time."""
        settings = self.settings
        if settings.format != "snapshots":
            return
        for setting in _NOT_OF_SNAPSHOTS:
            if self.level(setting) and getattr(settings, setting) not in (None, False, "none", [], {}):
                self.problem(
                    f"`{setting}` has no meaning with `format: snapshots`: each change set is the whole table, and what changed "
                    "is worked out by `keys`. Take it out.",
                    setting,
                )

    def contradictions(self) -> None:
        settings = self.settings
        if settings.change_table is not None and (settings.jdbc is None or "{table}" not in (settings.location or "")):
            message = "`change_table` is for a feed with `jdbc` and `{table}` in `location`. Take it out."
            if not {"jdbc", "location"} & self.broken:
                self.problem(message, "change_table")
        if settings.final_name is not None and not IDENTIFIER.fullmatch(settings.final_name):
            message = f"`final_name` is {shown(settings.final_name)}. It takes {wants('final_name')}."
            self.problem(message, "final_name")
        if not self.table.has_entities:
            why = "insert_only" if settings.insert_only else "keyless"
            says = "`insert_only: true`" if settings.insert_only else f"`keyless: {settings.keyless}`"
            for setting, given in (
                ("track_columns", settings.track_columns is not None),
                ("old_keys", bool(settings.old_keys)),
                ("key_changes", bool(settings.key_changes)),
                ("apply", settings.apply == "replace_partitions"),
                ("alternate_keys", bool(settings.alternate_keys)),
                ("history", settings.history == "table"),
                ("delete_mode", settings.delete_mode == "soft"),
                ("created_at", settings.created_at is not None),
                ("updated_at", settings.updated_at is not None),
                ("set_on_insert", bool(settings.set_on_insert)),
                ("max_delete_share", settings.max_delete_share is not None),
            ):
                # what only the feed says is a default for its other tables
                if given and self.level(setting) and self.level(setting) >= self.level(why):
                    message = f"`{setting}` has no meaning with {says}: it is for rows with a key. Take one out."
                    self.problem(message, setting)


def _may_be_misspelled(name: str, close: str) -> str:
    return f"`never_store` names `{name}`, which is not listed. Did you mean `{close}`? If not, list `{name}` too."


_NO_COLUMN = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\bas\s+\w+|::\s*\w+|\bextract\s*\(\s*\w+\s+from\b|\w+\s*\(""", re.IGNORECASE
)


def _named_in(expression: str, names: Iterable[str]) -> str | None:
    """One of the columns that an SQL expression names, or None; not what is text in it, a function or a type."""
    sql = _NO_COLUMN.sub("(", expression)
    # after a dot stands a field
    return next((n for n in sorted(names) if re.search(rf"(?<![\w.]){re.escape(n)}(?!\w)", sql, re.IGNORECASE)), None)


_BARE_WORDS_OF_SQL = ("null", "true", "false", "current_date", "current_timestamp", "current_user", "localtimestamp", "user")
_NOT_OF_SNAPSHOTS = (
    "sequence_by", "ordinal", "transaction", "operation", "old_keys", "operation_codes", "deleted_when", "truncated_when",
    "key_changes", "split_key_changes", "ignore_null_updates", "insert_only", "keyless", "alternate_keys",
)


def _plain_secrets(name: str, landed: Mapping[str, Any]) -> Iterator[str]:
    """What `kafka` or `jdbc` says that only the environment should."""
    remedy = "in plain text. Put it into the environment, and `${NAME}` here."
    options = landed.get("options")
    for option, value in options.items() if isinstance(options, Mapping) else ():
        if is_plain_secret(str(option), value):
            yield f"`{name}.options` has `{option}` {remedy}"
    if _SECRET_IN_TEXT.search(str(landed.get("url", ""))):
        yield f"`{name}.url` has a password {remedy}"


def _inside(detail: Mapping[str, Any]) -> str:
    """What is wrong inside of `kafka`, `jdbc` or `csv_options`, a sentence with a space before it; nothing for other settings."""
    name, *inside = (str(part) for part in detail["loc"])
    if name not in _WITH_OPTIONS or not inside:
        return ""
    place = ".".join((name, *inside))
    if detail["type"] == "extra_forbidden":
        return f" `{place}` is not known. {did_you_mean(inside[-1], _WITH_OPTIONS[name].__annotations__)}"
    if detail["type"] == "missing":
        return f" `{place}` is missing."
    is_secret = is_plain_secret(inside[-1], detail["input"])
    return f" `{place}` is {'no text' if is_secret else shown(detail['input'])}."


def did_you_mean_value(name: str, value: object) -> str:
    """What a value of the wrong type was probably meant to be, as a sentence with a space before it, or
    nothing."""
    annotation = str(Settings.model_fields[name].annotation)
    if isinstance(value, str) and annotation.startswith("list["):
        return f" Write [{value}]." if len(value) <= 60 else " Write it in brackets."
    if annotation.startswith("typing.Literal") and isinstance(value, str):
        close = nearest(value, re.findall(r"'([^']+)'", annotation))
        return f" Did you mean `{close}`?" if close else ""
    return ""


def _as_spelled(settings: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The settings with columns as the table spells them: to Spark, case makes no difference."""
    spelling = {name.casefold(): name for name in names}

    def spelled(value: Any) -> Any:
        if isinstance(value, str):
            return spelling.get(value.casefold(), value)
        if isinstance(value, list):
            return [spelled(item) for item in value]
        if isinstance(value, dict):
            return {spelled(key): spelled(item) for key, item in value.items()}
        return value

    return settings | {name: spelled(settings[name]) for name in settings_naming_columns()}


def _column_list(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = value["except"]
    return list(value) if isinstance(value, list) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
