"""Reads a project's source files into feeds and tables, and collects everything that is wrong with them.

load_project(Path("."))  ->  Project, or ConfigError with every problem there is
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from delta_cdc.errors import ConfigError, Problem, nearest
from delta_cdc.feed_check import FeedCheck
from delta_cdc.formats import FORMATS, format_of
from delta_cdc.project import Column, Feed, Project, Table
from delta_cdc.settings import Settings, setting_defaults, settings_naming_columns
from delta_cdc.settings_block import Block, read_settings, shown
from delta_cdc.source_files import (
    DbtProject,
    Lined,
    Renderer,
    SourceFile,
    blocks_in,
    is_template,
    metas_of,
    read_project,
    read_source_files,
)
from delta_cdc.spark_types import why_not_a_type
from delta_cdc.sql_names import IDENTIFIER
from delta_cdc.table_check import TableCheck
from delta_cdc.versions import CHECKOUT

CONTROL_MODELS = ("cdc_change_sets", "cdc_runs", "cdc_quarantine", "cdc_holds", "cdc_table_log")
# Settings whose names somebody else's `meta` may have too.
_WORDS_OF_OTHERS = {"columns", "format", "history", "location", "ordinal", "paused", "ready", "tags", "transaction", "unit"}


def load_project(root: Path | str, variables: Mapping[str, Any] | None = None) -> Project:
    """Read and check the feeds of a dbt project. Raises ConfigError with every problem found. variables: beside those of
    dbt_project.yml."""
    project, problems = _survey(Path(root), variables)
    if problems:
        raise ConfigError(problems)
    return project


def survey_project(root: Path | str, feed: str, variables: Mapping[str, Any]) -> tuple[Project, list[Problem]]:
    """The feeds of a dbt project as far as they can be read, and what is wrong with one of them."""
    project, problems = _survey(Path(root), variables, last=feed)
    return project, [problem for problem in problems if problem.feed == feed]


def _survey(root: Path, variables: Mapping[str, Any] | None, *, last: str = "") -> tuple[Project, list[Problem]]:
    """The feeds as far as they can be read, and every problem found. last: of two feeds that want a name for a model, this one
    is told."""
    project = read_project(root.resolve())
    project = replace(project, variables={**project.variables, **(variables or {})})
    problems: list[Problem] = []
    reader = _Reader(project, problems)
    for file in read_source_files(project, problems):
        reader.read_file(file)
    reader.feeds.sort(key=lambda feed: feed.name == last)
    reader.check_names()
    reader.check_source_tables()
    reader.check_landings()
    found = Project(
        root=project.root,
        name=project.name,
        model_path=project.model_paths[0],
        feeds=tuple(sorted(reader.feeds, key=lambda feed: feed.name)),
        variables=variables or {},
        disabled=tuple(sorted(reader.disabled)),
        of_disabled=tuple(reader.of_disabled),
    )
    return found, sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def known_formats(project: DbtProject) -> list[str]:
    """The formats there are: the files macros/formats/<format>.sql of the project, its packages and this package."""
    folders = [project.root / path / "formats" for path in project.macro_paths]
    folders += sorted(project.root.glob("dbt_packages/*/macros/formats"))
    folders.append(CHECKOUT / "macros" / "formats")
    files = (file.stem for folder in folders for file in folder.glob("*.sql"))
    return sorted({*FORMATS, *(name for name in files if not name.startswith("_"))})


class _Reader:
    """Reads source files into feeds; every problem goes to one list."""

    def __init__(self, project: DbtProject, problems: list[Problem]) -> None:
        self.project = project
        self.problems = problems
        self.formats = known_formats(project)
        self.renderer = Renderer(project.variables)
        self.feeds: list[Feed] = []
        self.disabled: list[str] = []
        self.of_disabled: list[Problem] = []
        self.seen: dict[str, str] = {}

    # files, sources, tables

    def read_file(self, file: SourceFile) -> None:
        sources = file.content.get("sources")
        if sources is not None and not isinstance(sources, list):
            message = f"`sources` is {shown(sources)}. It takes a list: `sources: [{{name: …, tables: […]}}]`."
            self.problems.append(Problem(message, file=file.path, line=file.content.lines.get("sources")))
        if "sources" in file.content.twice:
            message = "`sources` is given twice, and the first is lost. Make it one list."
            self.problems.append(Problem(message, file=file.path, line=file.content.twice["sources"]))
        for source in _list(sources):
            if _is_named(source):
                if not self.is_disabled(source):
                    self.read_source(source, file.path)
                elif next(blocks_in(source), None):
                    self.disabled.append(source["name"])
                    _Reader(self.project, self.of_disabled).read_source(source, file.path)
            elif block := next(blocks_in(source), None):
                told = _name_of(source)
                message = f'a source\'s name is {shown(told)}. It takes text: - name: "{told or "shop"}".'
                self.problems.append(Problem(message, file=file.path, line=block[0].lines.get(block[1])))

    def is_disabled(self, node: Lined, by_project: Any = None) -> bool:
        """by_project: what dbt_project.yml says of it, which counts where the node says nothing."""
        given = _enabled(node)
        try:
            enabled = self.renderer.render(by_project if given is None else given)
        except ValueError:  # dbt says what is missing
            return False
        return enabled is False or str(enabled).strip().lower() == "false"

    def read_source(self, source: Lined, file: str) -> None:
        name = source["name"]
        named = [each for each in _list(source.get("tables")) if _is_named(each)]
        asks = _enabled(source) is None  # what the source says itself counts more
        by_project = {table["name"]: self.project.enabled(file, name, table["name"]) for table in named if asks}
        tables = [table for table in named if not self.is_disabled(table, by_project.get(table["name"]))]
        if named and not tables and len(named) == len(source["tables"]):  # to dbt, nothing is left of the source
            self.disabled += [name] if next(blocks_in(source), None) else []
            return
        feed_block = self.cdc_block(source, file, name, None)
        table_blocks = [self.cdc_block(table, file, name, table["name"]) for table in tables]
        for node, table in ((source, None), *((table, table["name"]) for table in tables)):
            self.check_places(node, file, name, table, lacks_block=table is None and feed_block is None and any(table_blocks))
        if feed_block is None and not any(table_blocks):
            return

        def problem(message: str, line: int | None = source.lines.get("name")) -> None:
            self.problems.append(Problem(message, feed=name, file=file, line=line))

        if not IDENTIFIER.fullmatch(name):
            problem(f"a feed's name is made of letters, digits and underscores, not beginning with a digit; `{name}` is not.")
        is_again = name.lower() in self.seen
        if is_again:
            problem(f"the feed is already in {self.seen[name.lower()]}. Give each feed one source.")
        self.seen[name.lower()] = file
        given = source.get("tables")
        if not given or not isinstance(given, list):  # what is wrong with a table of a list is told of it
            found = f"`tables` is {shown(given)}." if given else "it has no tables."
            problem(f"{found} List them under `tables:`, each as `- name: …`.")
        for table in _list(source.get("tables")):
            if not _is_named(table):
                told = _name_of(table)
                message = f'a table\'s name is {shown(told)}. It takes text: - name: "{told or "invoice"}".'
                lines = table.lines if isinstance(table, Lined) else {}
                problem(message, lines.get("name") or min(lines.values(), default=source.lines.get("tables")))
        feed_block = feed_block or Block(file)
        check = FeedCheck(name, feed_block, source.lines.get("name"), self.problems)
        check.settings(self.formats, len(tables), self.project.root)
        tables_read = [
            self.read_table(name, table, feed_block, block or Block(file), file)
            for table, block in zip(tables, table_blocks, strict=True)
        ]
        made = [column for table, _ in tables_read if table for column in table.settings.expressions]
        check.column_lists([column for _, columns in tables_read for column in columns], made)
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
            if once.setdefault(table.name.lower(), table) is not table:
                message = "the table is listed twice (names that differ only in case are one name to Spark)."
                self.problems.append(Problem(message, feed, table.name, table.file, table.line))
        return tuple(sorted(once.values(), key=lambda table: table.name))

    def check_places(self, node: Lined, file: str, feed: str, table: str | None, *, lacks_block: bool) -> None:
        """What stands where dbt and this package do not look, or is hidden by a second one of the same name. lacks_block: a `cdc`
        must be meant here, for tables of the feed have one."""
        settings = set(Settings.model_fields) - (set() if lacks_block else _WORDS_OF_OTHERS)
        config, (meta, deep) = node.get("config"), metas_of(node)
        beside = [(holder, key) for holder in (node, config) if isinstance(holder, Lined) for key in holder]
        no_block = [(held, key) for held, key in beside if str(key).lower() == "cdc" and not isinstance(held[key], Lined)]
        for holder, key in (*no_block, *blocks_in(node, but="tables")):
            if key != "cdc" or all(holder is not place for place in (meta, deep)):
                message = f"`{key}` is not read here. Put it under `config: {{meta: {{cdc: …}}}}` of the source or of a table."
                self.problems.append(Problem(message, feed, table, file, holder.lines.get(key)))
        for beside_cdc in (place for place in (meta, deep) if isinstance(place, Lined) and "cdc" in place):
            for key in beside_cdc:
                if key in Settings.model_fields and key not in _WORDS_OF_OTHERS:
                    message = f"`{key}` stands beside `cdc`, where nobody reads it. Indent it, so that it stands under `cdc`."
                    self.problems.append(Problem(message, feed, table, file, beside_cdc.lines[key]))
        for held in (each for each in (meta, deep) if isinstance(each, Lined) and "cdc" not in each):
            for key, value in held.items():
                is_block = isinstance(value, Lined) and set(value) & settings
                if is_block and str(key).lower() != "cdc" and nearest(key, ["cdc"]):
                    message = f"`{key}` stands under `meta`, where nobody reads it. Did you mean `cdc`?"
                    self.problems.append(Problem(message, feed, table, file, held.lines[key]))
        for mapping, place in ((node, ""), (config, "config: "), (meta, "meta: "), (deep, "config: meta: ")):
            for key, line in mapping.twice.items() if isinstance(mapping, Lined) else ():
                message = f"`{place}{key}` is given twice, and the first is lost. Make it one."
                self.problems.append(Problem(message, feed, table, file, line))

    def cdc_block(self, node: Lined, file: str, feed: str, table: str | None) -> Block | None:
        """`config: meta: cdc:` or `meta: cdc:` of a source or table; None where there is neither."""
        blocks = [(place["cdc"], place) for place in metas_of(node) if isinstance(place, Lined) and "cdc" in place]
        if not blocks:
            return None
        raw, holder = blocks[-1]
        block = Block(file, holder.lines.get("cdc"))

        def tell(message: str, line: int | None = block.line) -> None:
            self.problems.append(Problem(message, feed, table, file, line))

        if len(blocks) == 2:
            tell("`cdc` is given twice, under `meta` and under `config: meta`. Keep the second.")
        if isinstance(raw, Lined):
            read_settings(raw, block, "feed" if table is None else "table", self.renderer, tell)
        elif raw is not None:
            tell(f"`cdc` is {shown(raw)}. It takes a mapping of settings, e.g. {{keys: [id]}}.")
        return block

    # a table

    def read_table(self, feed: str, node: Lined, feed_block: Block, block: Block, file: str) -> tuple[Table | None, list[str]]:
        """The table, and the names of its columns, those of `never_store` too. None where it cannot even be named."""
        name = str(node["name"])
        line = node.lines.get("name")
        if not IDENTIFIER.fullmatch(name):
            message = (
                f"a table's name is made of letters, digits and underscores; `{name}` is not. "
                "Choose one, and give the name in the feed as `source_table`."
            )
            self.problems.append(Problem(message, feed, name, file, line))
        if (called := node.get("identifier")) not in (None, name, block.given.get("source_table")):
            message = f"`identifier` is not read: no relation stands behind a feed. Say `source_table: {called}` under `cdc`."
            self.problems.append(Problem(message, feed, name, file, node.lines["identifier"]))
        listed = self.read_columns(feed, node, file)
        of_format = format_of(feed_block.given.get("format")).settings
        merged = {**setting_defaults(), **of_format, **feed_block.given, **block.given}
        never = [name.lower() for name in merged["never_store"]]
        columns = tuple(column for column in listed if column.name.lower() not in never)
        table = Table(
            feed=feed,
            name=name,
            settings=Settings.model_validate(_as_spelled(merged, [column.name for column in columns])),
            columns=columns,
            description=_text(node.get("description")),
            file=file,
            line=line,
        )
        TableCheck(table, [column.name for column in listed], feed_block, block, self.problems).run()
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
            problem(f"{found} List them under `columns:`, each with `name` and `data_type`.", node.lines.get("name"))
        for item in listed:
            name = _name_of(item)
            line = item.lines.get("name") if isinstance(item, Lined) else node.lines.get("columns")
            if not _is_named(item) or not name:
                problem(f"a column is {shown(name)}. It takes a `name` (quoted text) and a `data_type`.", line)
                continue
            for key, at in item.twice.items():
                problem(f"column `{name}`: `{key}` is given twice, and the first is lost. Keep one.", at)
            data_type = item.get("data_type")
            if data_type is None:
                problem(f"column `{name}` has no `data_type`. Give its Spark SQL type, e.g. decimal(10,2).", line)
            elif not isinstance(data_type, str) or why_not_a_type(data_type):
                why = why_not_a_type(data_type) if isinstance(data_type, str) else "it is no text"
                message = f"column `{name}`: the data_type {shown(data_type)} is no Spark SQL type: {why}."
                if str(data_type).count("(") > str(data_type).count(")"):
                    message += " Between braces, a type with a comma wants quotes."
                problem(message.replace("?.", "?"), item.lines.get("data_type"))
            if is_template(name):
                problem(f"column `{name}`: a column's name cannot hold Jinja. Leave it out.", line)
            if name.lower().startswith("_cdc_"):
                taken = "names that begin with _cdc_ are taken by the columns that are added"
                problem(f"column `{name}`: {taken}. Leave it out.", line)
            if name.lower() in columns:
                first = columns[name.lower()].name
                problem(f"column `{name}` is listed twice (`{first}`; to Spark, case makes no difference). Take one out.", line)
                continue
            columns[name.lower()] = Column(name, str(data_type or ""), _text(item.get("description")))
        return tuple(columns.values())

    # all feeds together

    def check_names(self) -> None:
        """Every model must have a name of its own. Finals claim theirs last: those are easily given another."""
        owners = {name: "this package" for name in CONTROL_MODELS}

        def claim(name: str, remedy: str, feed: Feed, table: Table | None = None) -> None:
            me = f"feed {feed.name}, table {table.name}" if table else f"feed {feed.name}"
            if name.lower() not in owners:
                owners[name.lower()] = me
                return
            other = owners[name.lower()]
            message = f"its model {name} is also a model of {other}. {remedy}"
            if table and other == me:  # only a final can have the name of another model of its table
                message = f"`final_name` is {name}, which is another model of the table. Give another, e.g. final_{table.name}."
            place = (table.name, table.file, table.line) if table else (None, feed.file, None)
            self.problems.append(Problem(message, feed.name, *place))

        rename = "Rename one of them (and keep the name in the feed as `source_table`)."
        for feed in self.feeds:
            if feed.raw_name:
                claim(feed.raw_name, rename, feed)
            for table in feed.tables:
                for name in (table.staging_name, table.keys_name, table.history_name):
                    if name:
                        claim(name, rename, feed, table)
        for feed in self.feeds:
            for table in feed.tables:
                another = f"Give one of them another `final_name`, e.g. final_{feed.name}_{table.name}."
                claim(table.final_name, another, feed, table)

    def check_source_tables(self) -> None:
        """In a feed that mixes tables a name without a schema is that of every schema's table."""
        for feed in self.feeds:
            if not feed.raw_name:
                continue
            called = {table.name: table.settings.source_table or table.name for table in feed.tables}
            in_full = {name.rsplit(".", 1)[1]: (table, name) for table, name in called.items() if "." in name}
            for table in feed.tables:
                short = called[table.name]
                if short in in_full:
                    other, name = in_full[short]
                    message = (
                        f"it would take the messages of every schema's {short}, also of {name}, which table {other} takes. "
                        f"Name this one in full too, e.g. `source_table: public.{short}`."
                    )
                    self.problems.append(Problem(message, feed.name, table.name, table.file, table.line))

    def check_landings(self) -> None:
        """How far a change table was landed is told by the Delta table's rows, and all of these are the feed's."""
        landed: dict[str, tuple[str, Table]] = {}
        for table in (table for feed in self.feeds if feed.is_landed for table in feed.tables):
            settings, name = table.settings, table.settings.source_table or table.name
            if settings.kafka and table.mixed:  # how far is told for each topic, and a message tells its table
                continue
            kafka, jdbc = dict(settings.kafka or {}), dict(settings.jdbc or {})
            change_table = settings.change_table or jdbc.get("table")
            whence = [kafka.get("topics"), kafka.get("topic_pattern"), jdbc.get("url"), change_table, jdbc.get("serial")]
            location = (settings.location or "").replace("{table}", name)
            place = location.rstrip("/") if "://" in location else os.path.normpath(self.project.root / location)
            told = str(whence).replace("{table}", name)
            of_first, first = landed.setdefault(place, (told, table))
            if of_first != told:
                message = (
                    f"it is landed in {location}, and so is {first.full_name}, which comes from elsewhere. Each would be read as "
                    "the other's, and of a change table what is below the highest `serial` there is never landed. Give each feed "
                    "a `location` of its own, and each table a `source_table`."
                )
                self.problems.append(Problem(message, table.feed, table.name, table.file, table.line))


def _enabled(node: Lined) -> Any:
    config = node.get("config")
    return config.get("enabled") if isinstance(config, dict) else None


def _as_spelled(settings: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The settings with columns as the table spells them: to Spark, case makes no difference."""
    spelling = {name.lower(): name for name in names}

    def spelled(value: Any) -> Any:
        if isinstance(value, str):
            return spelling.get(value.lower(), value)
        if isinstance(value, list):
            return [spelled(item) for item in value]
        if isinstance(value, dict):
            return {spelled(key): spelled(item) for key, item in value.items()}
        return value

    found = {name: spelled(settings[name]) for name in settings_naming_columns()}
    if isinstance(track := settings["track_columns"], dict):  # `except` is no column there, though one may be called so
        found["track_columns"] = {"except": spelled(track["except"])}
    return settings | found


def _is_named(entry: Any) -> TypeGuard[Lined]:
    """Whether an entry of a list of sources, tables or columns is a mapping whose name is text."""
    return isinstance(entry, Lined) and isinstance(entry.get("name"), str)


def _name_of(entry: Any) -> Any:
    """The name of such an entry, or what stands in its place."""
    return entry.get("name") if isinstance(entry, Lined) else entry


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
