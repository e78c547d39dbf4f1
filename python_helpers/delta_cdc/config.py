"""The configuration: what may be said of a feed and its tables, read from dbt's source files and checked.

`Settings` is the only definition of the settings: the checks, the reference page, the defaults of the macros
and the generated models all come from it. Nothing here imports dbt or Spark, so that a mistake is found in a second.

    load_project(Path("."))  ->  Project, or ConfigError with every problem there is
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from typing_extensions import TypedDict

from delta_cdc.errors import ConfigError, Problem, did_you_mean, nearest
from delta_cdc.source_files import (
    DbtProject,
    Lined,
    Renderer,
    SourceFile,
    is_template,
    read_project,
    read_source_files,
)
from delta_cdc.spark_types import why_not_a_type

# --------------------------------------------------------------------------------------------------------------
# The settings

Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
ExceptColumns = TypedDict("ExceptColumns", {"except": Annotated[list[Text], Field(min_length=1)]})
Level = Literal["feed", "table", "both"]


def _setting(default: Any, description: str, *, wants: str, example: str, level: Level = "both") -> Any:
    """`wants` ends «It takes …» in errors; `example` is yml; `level` says where the setting may stand."""
    return Field(
        default,
        description=description,
        examples=[example],
        json_schema_extra={"wants": wants, "level": level},
    )


class Settings(BaseModel):
    """Everything that can be said under `config: meta: cdc:` of a dbt source or of one of its tables.

    Types are strict: the macros read the same yml, so nothing is converted on the way.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # the feed
    format: Text | None = _setting(
        None,
        "How the change sets are written: the name of a file in macros/formats. Required.",
        wants="the name of a format",
        example="wal2json_v2",
        level="feed",
    )
    location: Text | None = _setting(
        None,
        "Folder of the change sets: a path relative to the project, or a URL. With `{table}` in it each table has a "
        "folder of its own; without it the change sets mix the tables and are read once, into raw_<feed>. Required.",
        wants="a folder",
        example="landing/shop/{table}",
        level="feed",
    )
    unit: Literal["file", "folder"] = _setting(
        "file",
        "What a change set is: one file, or one folder that is loaded whole.",
        wants="`file` or `folder`",
        example="folder",
        level="feed",
    )
    ready: Text = _setting(
        "_SUCCESS",
        "Name of the file that a folder must hold before it is taken (with `unit: folder`).",
        wants="a file name",
        example="_SUCCESS",
        level="feed",
    )
    change_set_order: Literal["name", "modified"] = _setting(
        "modified",
        "The order of change sets that are found together: by modification time and then name, or by name alone.",
        wants="`modified` or `name`",
        example="name",
        level="feed",
    )
    settle_seconds: Annotated[int, Field(ge=0)] = _setting(
        0,
        "A change set younger than this is still being written and waits for a later run.",
        wants="a whole number of seconds, 0 or more",
        example="60",
        level="feed",
    )
    start_from: Text | None = _setting(
        None,
        "Change sets whose name (or path, if this is one) sorts below it are not looked at.",
        wants="a name or a path, as text (quote it if it looks like a number or a date)",
        example='"2026-01-01.jsonl"',
        level="feed",
    )
    expect_contiguous: bool = _setting(
        False,
        "The names of the change sets are numbered without gaps: number N waits until N-1 is there.",
        wants="true or false",
        example="true",
        level="feed",
    )
    decimal_handling: Literal["precise", "string", "double"] = _setting(
        "precise",
        "How a Debezium feed writes decimals: its own setting decimal.handling.mode.",
        wants="`precise`, `string` or `double`",
        example="string",
    )
    time_unit: Literal["seconds", "millis", "micros", "nanos"] = _setting(
        "micros",
        "What a Debezium feed without schemas counts timestamps in.",
        wants="`seconds`, `millis`, `micros` or `nanos`",
        example="millis",
    )

    # what a row is
    source_table: Text | None = _setting(
        None,
        "The table's name in the messages or folders, where it differs from the name in this file. May be `schema.table`.",
        wants="a name",
        example="public.invoice",
        level="table",
    )
    keys: list[Text] = _setting(
        [],
        "The columns that identify a row. Required, unless the table is `insert_only` or `keyless`.",
        wants="a list of column names",
        example="[invoice_id]",
        level="table",
    )
    nullable_keys: list[Text] = _setting(
        [],
        "Key columns in which null is a value. A null in any other key column makes a change unusable.",
        wants="a list of key columns",
        example="[region]",
        level="table",
    )
    old_keys: dict[Text, Text] = _setting(
        {},
        "For a feed of flat rows: which column holds the value that a key column had before the change.",
        wants="a mapping from key column to column",
        example="{invoice_id: old_invoice_id}",
        level="table",
    )

    # order
    sequence_by: list[Text] = _setting(
        [],
        "The columns or SQL expressions that give the source's order, compared left to right. Required for `rows`.",
        wants="a list of columns or SQL expressions",
        example="[commit_time, log_position]",
    )
    ordinal: Text | None = _setting(
        None,
        "Column or SQL expression of the place inside a transaction, where the sequence stays equal throughout one.",
        wants="a column or an SQL expression",
        example="event_number",
    )
    transaction: Text | None = _setting(
        None,
        "Column or SQL expression that tells transactions apart. Without it, changes of equal sequence are one transaction.",
        wants="a column or an SQL expression",
        example="xid",
    )
    occurred_at: Text | None = _setting(
        None,
        "Column or SQL expression of when the change happened at the source; history's valid_from and valid_to. "
        "By default the first of `sequence_by`.",
        wants="a column or an SQL expression",
        example="commit_time",
    )

    # what a change does
    operation: Text | None = _setting(
        None,
        "For a feed of flat rows: the column that says what a change does. Without it every row is an upsert.",
        wants="a column name",
        example="op",
    )
    operation_codes: dict[Text, Literal["I", "U", "D", "R", "T"]] = _setting(
        {},
        "Codes of this feed beyond those of its format, each with what it means: "
        "I insert, U update, D delete, R snapshot row, T truncate.",
        wants="a mapping from code (quoted if it is a number) to one of I, U, D, R, T",
        example="{upsert: U, remove: D}",
    )
    deleted_when: Text | None = _setting(
        None,
        "SQL condition on the feed's columns: the change is a delete.",
        wants="an SQL condition",
        example="is_deleted = true",
    )
    truncated_when: Text | None = _setting(
        None,
        "SQL condition on the feed's columns: the change empties the whole table.",
        wants="an SQL condition",
        example="op = 'truncate'",
    )
    key_changes: bool | None = _setting(
        None,
        "Updates may change the key. By default true if the format tells the old key, or `old_keys` is given.",
        wants="true or false",
        example="false",
    )
    split_key_changes: bool = _setting(
        False,
        "A delete and an insert of one transaction and position are one key change.",
        wants="true or false",
        example="true",
    )
    full_images: bool = _setting(
        False,
        "The image before a change holds every column (REPLICA IDENTITY FULL). Otherwise only its keys are used.",
        wants="true or false",
        example="true",
    )
    insert_only: bool = _setting(
        False,
        "Rows are only ever added: final appends, there is no history, and updates and deletes are quarantined.",
        wants="true or false",
        example="true",
    )
    keyless: Literal["none", "append"] = _setting(
        "none",
        "What to do with a table without a key: `append` takes its inserts and quarantines the rest.",
        wants="`none` or `append`",
        example="append",
        level="table",
    )

    # what is published
    columns: Annotated[list[Text], Field(min_length=1)] | None = _setting(
        None,
        "The only columns that history and final have. Staging always has all.",
        wants="a list of column names",
        example="[invoice_id, total]",
    )
    except_columns: list[Text] = _setting(
        [],
        "Columns that history and final do not have. By default `operation` and the columns of `old_keys`.",
        wants="a list of column names",
        example="[op, loaded_at]",
    )
    track_columns: Annotated[list[Text], Field(min_length=1)] | ExceptColumns | None = _setting(
        None,
        "The columns whose change begins a new version in history. By default all.",
        wants="a list of column names, or {except: [column names]}",
        example="{except: [last_seen]}",
    )
    final_name: Text | None = _setting(
        None,
        "Name of the final table. By default final_<table>.",
        wants="a name of letters, digits and underscores",
        example="final_shop_invoice",
        level="table",
    )
    partition_by: list[Text] = _setting(
        [],
        "What final is partitioned by: columns, or SQL expressions, named with `as` or else after themselves.",
        wants="a list of columns or SQL expressions",
        example="[year(invoice_date) as invoice_year]",
    )
    cluster_by: list[Text] = _setting(
        [],
        "The columns by which final is clustered (Delta's liquid clustering).",
        wants="a list of column names",
        example="[customer_id]",
    )
    apply: Literal["merge", "replace_partitions"] = _setting(
        "merge",
        "How final takes changes: a merge by key, or by rewriting the partitions that the change set touches.",
        wants="`merge` or `replace_partitions`",
        example="replace_partitions",
    )
    deletion_vectors: bool = _setting(
        True,
        "Final marks replaced rows instead of rewriting their files: cheaper merges, for readers that know them.",
        wants="true or false",
        example="false",
    )
    tags: list[Text] = _setting(
        [],
        "dbt tags of the generated models, beside the feed's name.",
        wants="a list of tags",
        example="[hourly]",
    )


@dataclass(frozen=True)
class Format:
    """What a format brings along. Adding one is adding macros/formats/<name>.sql; an entry here only saves typing."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its defaults, where they differ from those of `Settings`."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields beside the table's columns that expressions may name, with their Spark types; they begin with `_`."""
    names_tables: bool = True
    """Its messages say which table they are of, so that a feed may mix tables."""
    knows_operations: bool = True
    """Its messages say what they do; `operation` and `old_keys` have no place."""


FORMATS: dict[str, Format] = {
    "rows": Format(names_tables=False, knows_operations=False),
    "wal2json_v2": Format(
        settings={
            "sequence_by": ["_lsn"],
            "transaction": "_xid",
            "occurred_at": "_timestamp",
            "key_changes": True,
        },
        fields={"_lsn": "bigint", "_xid": "string", "_timestamp": "timestamp"},
    ),
    "debezium": Format(
        settings={
            "sequence_by": ["_position"],
            "ordinal": "_total_order",
            "transaction": "_txid",
            "occurred_at": "_timestamp",
            "key_changes": True,
            "split_key_changes": True,
        },
        fields={
            "_position": "struct<log: string, offset: decimal(38,0), row: bigint>",
            "_txid": "string",
            "_total_order": "bigint",
            "_timestamp": "timestamp",
        },
    ),
}


def setting_names(*levels: Level) -> list[str]:
    """The settings that may stand at one of the levels, in their declared order; without arguments all."""
    return [name for name in Settings.model_fields if not levels or _extra(name)["level"] in levels]


def setting_defaults() -> dict[str, Any]:
    """Every setting with its default."""
    return Settings().model_dump()


def _extra(name: str) -> dict[str, Any]:
    extra = Settings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return extra


def wants(name: str) -> str:
    """What a setting takes, with an example: «a list of column names, e.g. [invoice_id]»."""
    text = str(_extra(name)["wants"])
    return text if example(name) in re.split(r"[\s`]+", text) else f"{text}, e.g. {example(name)}"


def example(name: str) -> str:
    examples = Settings.model_fields[name].examples or []
    return str(examples[0])


# --------------------------------------------------------------------------------------------------------------
# What was configured


@dataclass(frozen=True)
class Column:
    """A column of the feed, as declared under the source table's `columns:`."""

    name: str
    data_type: str
    description: str = ""


@dataclass(frozen=True)
class PartitionColumn:
    """One of `partition_by`: the column's name in final and the SQL expression it is made from."""

    name: str
    expression: str
    derived: bool


@dataclass(frozen=True)
class Table:
    """A table of a feed with its settings: the format's defaults, then the feed's settings, then its own."""

    feed: str
    name: str
    settings: Settings
    columns: tuple[Column, ...]
    description: str = ""
    file: str | None = None
    line: int | None = None

    @property
    def mixed(self) -> bool:
        """Read from raw_<feed>, because the change sets mix tables."""
        named = FORMATS.get(self.settings.format or "", Format()).names_tables
        return named and "{table}" not in (self.settings.location or "")

    @property
    def source_table(self) -> str:
        return self.settings.source_table or self.name

    @property
    def appends_only(self) -> bool:
        return self.settings.insert_only or self.settings.keyless == "append"

    @property
    def resolves_keys(self) -> bool:
        """Has a keys model, because keys may change."""
        given = self.settings.key_changes
        return not self.appends_only and (bool(self.settings.old_keys) if given is None else given)

    @property
    def staging_name(self) -> str:
        return f"stg_{self.feed}__{self.name}"

    @property
    def keys_name(self) -> str | None:
        return f"int_{self.feed}__{self.name}_keys" if self.resolves_keys else None

    @property
    def history_name(self) -> str | None:
        return None if self.appends_only else f"hist_{self.feed}__{self.name}"

    @property
    def final_name(self) -> str:
        return self.settings.final_name or f"final_{self.name}"

    @property
    def published_columns(self) -> tuple[Column, ...]:
        """The columns of history and final."""
        chosen, left_out = self.settings.columns, set(self.settings.except_columns)
        if chosen is not None:
            return tuple(c for c in self.columns if c.name in chosen)
        if not left_out:
            left_out = {*self.settings.old_keys.values(), self.settings.operation or ""}
        return tuple(c for c in self.columns if c.name not in left_out)

    @property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        return tuple(partition_column(entry, self.columns) for entry in self.settings.partition_by)

    def type_of(self, expression: str) -> str | None:
        """The Spark type of a column or of a field of the format; None for an SQL expression."""
        types = dict(FORMATS.get(self.settings.format or "", Format()).fields)
        types.update({c.name: c.data_type for c in self.columns})
        return types.get(expression)


@dataclass(frozen=True)
class Feed:
    """One stream of changes: a dbt source with `meta: cdc:`."""

    name: str
    tables: tuple[Table, ...]
    description: str = ""
    file: str | None = None

    @property
    def mixed(self) -> bool:
        return any(table.mixed for table in self.tables)

    @property
    def raw_name(self) -> str | None:
        return f"raw_{self.name}" if self.mixed else None


@dataclass(frozen=True)
class Project:
    """A dbt project with its feeds, sorted by name."""

    root: Path
    name: str
    model_path: str
    feeds: tuple[Feed, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for feed in self.feeds for table in feed.tables)


_ALIASED = re.compile(
    r"^(?P<expression>.*\S)\s+as\s+(?P<name>`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*$", re.IGNORECASE | re.DOTALL
)


def partition_column(entry: str, columns: Iterable[Column]) -> PartitionColumn:
    """A column by its name, or an expression, named by `as` or else by its own letters and digits.

    >>> partition_column("year(d)", [])
    PartitionColumn(name='year_d', expression='year(d)', derived=True)
    """
    if any(entry == column.name for column in columns):
        return PartitionColumn(entry, entry, derived=False)
    aliased = _ALIASED.match(entry)
    if aliased:
        name = aliased["name"]
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        return PartitionColumn(name, aliased["expression"].strip(), derived=True)
    return PartitionColumn(re.sub(r"\W+", "_", entry).strip("_").lower(), entry, derived=True)


# --------------------------------------------------------------------------------------------------------------
# Reading and checking

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CONTROL_MODELS = ("cdc_change_sets", "cdc_runs", "cdc_quarantine", "cdc_tables")
HISTORY_COLUMNS = ("valid_from", "valid_to", "is_current")


def load_project(root: Path | str) -> Project:
    """Read and check the feeds of a dbt project. Raises ConfigError with every problem found."""
    project = read_project(Path(root).resolve())
    problems: list[Problem] = []
    files = read_source_files(project, problems)
    reader = _Reader(project, problems)
    for file in files:
        reader.read_file(file)
    reader.check_names()
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0)))
    return Project(
        root=project.root,
        name=project.name,
        model_path=project.model_paths[0],
        feeds=tuple(sorted(reader.feeds, key=lambda feed: feed.name)),
    )


def known_formats(project: DbtProject) -> list[str]:
    """The formats there are: the files macros/formats/<format>.sql of the project, its packages and this package."""
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
        self.seen: dict[str, str] = {}
        self.claimed: set[str] = set()

    # files, sources, tables

    def read_file(self, file: SourceFile) -> None:
        sources = file.content.get("sources")
        if not isinstance(sources, list):
            return
        for source in sources:
            if isinstance(source, Lined) and isinstance(source.get("name"), str) and not _disabled(source):
                self.read_source(source, file.path)

    def read_source(self, source: Lined, file: str) -> None:
        name = source["name"]
        tables = [
            t for t in _list(source.get("tables")) if isinstance(t, Lined) and isinstance(t.get("name"), str)
        ]
        tables = [table for table in tables if not _disabled(table)]
        feed_block = self.cdc_block(source, file, name, None)
        table_blocks = [self.cdc_block(table, file, name, table["name"]) for table in tables]
        if feed_block is None and not any(table_blocks):
            return

        def problem(message: str, line: int | None = source.lines.get("name")) -> None:
            self.problems.append(Problem(message, feed=name, file=file, line=line))

        if not IDENTIFIER.fullmatch(name):
            problem(
                f"a feed's name is made of letters, digits and underscores, not beginning with a digit; `{name}` is not."
            )
        if name.casefold() in self.seen:
            problem(f"the feed is already in {self.seen[name.casefold()]}. Give each feed one source.")
        self.seen[name.casefold()] = file
        if not tables:
            problem("it has no tables. List them under `tables:`.")
        feed_block = feed_block or _Block(file)
        self.check_feed(name, feed_block, len(tables), source.lines.get("name"))
        read = [
            self.read_table(name, table, feed_block, block or _Block(file), file)
            for table, block in zip(tables, table_blocks, strict=True)
        ]
        self.check_twice(name, tables, file)
        self.check_feed_lists(name, feed_block, [columns for _, columns in read])
        self.feeds.append(
            Feed(
                name=name,
                tables=tuple(sorted((t for t, _ in read if t is not None), key=lambda t: t.name)),
                description=_text(source.get("description")),
                file=file,
            )
        )

    def check_twice(self, feed: str, tables: list[Lined], file: str) -> None:
        seen: set[str] = set()
        for table in tables:
            name = str(table["name"])
            if name.casefold() in seen:
                message = "the table is listed twice (names that differ only in case are one name to Spark)."
                self.problems.append(Problem(message, feed, name, file, table.lines.get("name")))
            seen.add(name.casefold())

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
                close = nearest(name, setting_names())
                block.broken |= {close} if close else set()
                hint = (
                    f"Did you mean `{close}`?"
                    if close
                    else "See docs/configuration.md, or `delta-cdc settings`."
                )
                problem(name, f"setting `{name}` is not known. {hint}")
            elif _extra(name)["level"] == elsewhere:
                problem(name, f"`{name}` is a setting of the {elsewhere}, not of the {here}. Move it there.")
            else:
                try:
                    block.given[name] = self.renderer.render(value)
                except ValueError as error:
                    problem(name, f"`{name}`: {error}.")
        try:
            Settings.model_validate(block.given)
        except ValidationError as error:
            for name in dict.fromkeys(str(detail["loc"][0]) for detail in error.errors()):
                value = block.given.pop(name)
                better = did_you_mean_value(name, value)
                problem(name, f"`{name}` is {shown(value)}. It takes {wants(name)}.{better}")
        return block

    # the feed's own settings

    def check_feed(self, feed: str, block: _Block, tables: int, line: int | None) -> None:
        def problem(message: str, name: str | None = None) -> None:
            at = block.lines.get(name, block.line or line) if name else block.line or line
            self.problems.append(Problem(message, feed=feed, file=block.file, line=at))

        given = block.given
        if "format" not in given and "format" not in block.broken:
            problem(f"`format` is missing. Known: {', '.join(f'`{name}`' for name in self.formats)}.")
        elif "format" in given and given["format"] not in self.formats:
            problem(
                f"`format` is '{given['format']}'. {did_you_mean(given['format'], self.formats)}", "format"
            )
        if "ready" in given and given.get("unit", "file") != "folder" and "unit" not in block.broken:
            problem("`ready` says what a folder must hold, and `unit` is file. Set `unit: folder`.", "ready")
        if "location" not in given:
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
        if "{table}" not in location:
            path = self.project.root / location
            if "://" not in location and path.is_file():
                message = (
                    f"`location` is '{location}', a file. It takes the folder that holds the change sets."
                )
                problem(message, "location")
            if tables > 1 and not FORMATS.get(given.get("format", ""), Format()).names_tables:
                message = (
                    f"`location` is '{location}' for {tables} tables, and {given['format']} do not say which table they "
                    f"are of. Give each a folder: {location.rstrip('/')}/{{table}}."
                )
                problem(message, "location")

    def check_feed_lists(self, feed: str, block: _Block, columns: list[list[str]]) -> None:
        """Column lists that hold for all tables: each name must be a column of at least one of them."""
        known = {name for names in columns for name in names}
        for setting in _FEED_COLUMN_LISTS:
            for name in _column_list(block.given.get(setting)):
                if name not in known:
                    message = f"`{setting}` names `{name}`, a column of none of its tables. {did_you_mean(name, known)}"
                    line = block.lines.get(setting)
                    self.problems.append(Problem(message, feed=feed, file=block.file, line=line))

    # a table

    def read_table(
        self, feed: str, node: Lined, feed_block: _Block, block: _Block, file: str
    ) -> tuple[Table | None, list[str]]:
        """The table, and the names of its columns. None where it cannot even be named."""
        name = str(node["name"])
        line = node.lines.get("name")
        if not IDENTIFIER.fullmatch(name):
            message = (
                f"a table's name is made of letters, digits and underscores; `{name}` is not. "
                "Choose one, and give the name in the feed as `source_table`."
            )
            self.problems.append(Problem(message, feed, name, file, line))
        columns = self.read_columns(feed, node, file)
        merged = setting_defaults()
        merged |= FORMATS.get(feed_block.given.get("format", ""), Format()).settings
        merged |= feed_block.given
        merged |= block.given
        table = Table(
            feed=feed,
            name=name,
            settings=Settings.model_validate(merged),
            columns=columns,
            description=_text(node.get("description")),
            file=file,
            line=line,
        )
        _TableCheck(table, feed_block, block, self.problems).run()
        return (table if IDENTIFIER.fullmatch(name) else None), [column.name for column in columns]

    def read_columns(self, feed: str, node: Lined, file: str) -> tuple[Column, ...]:
        table = str(node["name"])
        columns: dict[str, Column] = {}

        def problem(message: str, line: int | None) -> None:
            self.problems.append(Problem(message, feed, table, file, line))

        listed = _list(node.get("columns"))
        if not listed:
            problem(
                "it has no columns. List them under `columns:`, each with `name` and `data_type`.",
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


# Column lists that a feed may give for all its tables at once.
_FEED_COLUMN_LISTS = ("columns", "except_columns", "track_columns")


class _TableCheck:
    """What must hold between the settings of one table."""

    def __init__(self, table: Table, feed_block: _Block, block: _Block, problems: list[Problem]) -> None:
        self.table = table
        self.settings = table.settings
        self.format = FORMATS.get(table.settings.format or "")
        self.feed_block = feed_block
        self.block = block
        self.broken = feed_block.broken | block.broken
        self.names = [column.name for column in table.columns]
        self.problems = problems

    def run(self) -> None:
        self.keys()
        self.order()
        self.operations()
        self.columns()
        self.partitions()
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
        for name in named:
            if name not in self.names and self.names:
                self.problem(
                    f"`{setting}` names `{name}`, which is no column. {did_you_mean(name, self.names)}",
                    setting,
                )
            elif name in twice:
                self.problem(f"`{setting}` names `{name}` twice.", setting)
            twice.add(name)

    def known_expression(self, setting: str, expression: str) -> None:
        """A single word must be a column or a field of the format; anything longer is Spark's to judge."""
        if not IDENTIFIER.fullmatch(expression) or self.format is None or not self.names:
            return
        known = [*self.names, *self.format.fields]
        if expression not in known:
            hint = did_you_mean(expression, known)
            self.problem(f"`{setting}` names `{expression}`, which is no column. {hint}", setting)

    def keys(self) -> None:
        settings = self.settings
        if not settings.keys and not self.table.appends_only and "keys" not in self.broken:
            self.problem(
                "`keys` is missing. Give the columns that identify a row, e.g. [id]; or say `insert_only: true`, or "
                "`keyless: append` for a table without a key."
            )
        self.known_columns("keys", settings.keys)
        if settings.keys and settings.keyless == "append":
            self.problem("`keyless` is append, and `keys` are given. Take one of them out.", "keyless")
        for setting, named in (
            ("nullable_keys", settings.nullable_keys),
            ("old_keys", list(settings.old_keys)),
        ):
            for name in named:
                if name not in settings.keys and "keys" not in self.broken:
                    hint = did_you_mean(name, settings.keys)
                    self.problem(f"`{setting}` names `{name}`, which is not one of `keys`. {hint}", setting)
        self.known_columns("old_keys", settings.old_keys.values())

    def order(self) -> None:
        settings = self.settings
        if not settings.sequence_by and not {"sequence_by", "format"} & self.broken:
            self.problem(
                "`sequence_by` is missing. Give the columns that order the source's changes, e.g. [lsn]."
            )
        for name in settings.sequence_by:
            self.known_expression("sequence_by", name)
        for setting in ("ordinal", "transaction", "occurred_at"):
            expression = getattr(settings, setting)
            if expression is not None:
                self.known_expression(setting, expression)

    def operations(self) -> None:
        settings = self.settings
        if self.format is not None and self.format.knows_operations:
            for setting in ("operation", "old_keys"):
                if self.level(setting):
                    message = f"`{setting}` is for feeds of flat rows; {settings.format} says that itself. Take it out."
                    self.problem(message, setting)
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
        self.known_columns("columns", settings.columns or [])
        self.known_columns("except_columns", settings.except_columns)
        published = [column.name for column in table.published_columns]
        shaped_by = "columns" if settings.columns is not None else "except_columns"
        for key in settings.keys:
            if key in self.names and key not in published:
                self.problem(
                    f"`{shaped_by}` leaves out the key column `{key}`. History and final need it.", shaped_by
                )
        self.known_columns("track_columns", _column_list(settings.track_columns))
        for name in _column_list(settings.track_columns):
            if name in self.names and name not in published and self.level("track_columns") == 2:
                message = f"`track_columns` names `{name}`, which history does not have (see `{shaped_by}`)."
                self.problem(message, "track_columns")
        if table.history_name is not None:
            for name in published:
                if name.casefold() in HISTORY_COLUMNS:
                    self.problem(
                        f"column `{name}` has the name of a column that history adds. Leave it out with "
                        f"`except_columns`, e.g. [{name}]; staging keeps it."
                    )

    def partitions(self) -> None:
        settings, table = self.settings, self.table
        published = [column.name for column in table.published_columns]
        seen: set[str] = set()
        for partition in table.partition_columns:
            name = partition.name
            if not partition.derived:
                if name not in published:
                    self.problem(f"`partition_by` names `{name}`, which final does not have.", "partition_by")
            elif IDENTIFIER.fullmatch(partition.expression) and self.names:
                hint = did_you_mean(partition.expression, self.names)
                message = f"`partition_by` names `{partition.expression}`, which is no column. {hint}"
                self.problem(message, "partition_by")
            elif not name or name[0].isdigit():
                message = (
                    f"`partition_by`: `{partition.expression}` needs a name: {partition.expression} as part."
                )
                self.problem(message, "partition_by")
            elif name.casefold() in [column.casefold() for column in self.names]:
                message = f"`partition_by` makes a column `{name}`, and the table has one. Name it with `as`."
                self.problem(message, "partition_by")
            if name.casefold() in seen:
                self.problem(f"`partition_by` names `{name}` twice.", "partition_by")
            seen.add(name.casefold())
        self.known_columns("cluster_by", settings.cluster_by)
        for name in settings.cluster_by:
            if name in self.names and name not in published:
                self.problem(f"`cluster_by` names `{name}`, which final does not have.", "cluster_by")
        if settings.cluster_by and settings.partition_by:
            message = "`partition_by` and `cluster_by` are both given; Delta takes one of them. Take one out."
            self.problem(message, "cluster_by")
        if (
            settings.apply == "replace_partitions"
            and not settings.partition_by
            and "partition_by" not in self.broken
        ):
            self.problem(
                "`apply` is replace_partitions, and `partition_by` is missing. Say by what final is partitioned, "
                "e.g. [year(created_at) as created_year].",
                "apply",
            )

    def contradictions(self) -> None:
        settings = self.settings
        if settings.final_name is not None and not IDENTIFIER.fullmatch(settings.final_name):
            message = f"`final_name` is {shown(settings.final_name)}. It takes {wants('final_name')}."
            self.problem(message, "final_name")
        if self.table.appends_only:
            why = "insert_only" if settings.insert_only else "keyless"
            says = "`insert_only: true`" if settings.insert_only else "`keyless: append`"
            for setting, given in (
                ("track_columns", settings.track_columns is not None),
                ("old_keys", bool(settings.old_keys)),
                ("key_changes", bool(settings.key_changes)),
                ("apply", settings.apply == "replace_partitions"),
            ):
                # what only the feed says is a default for its other tables
                if given and self.level(setting) and self.level(setting) >= self.level(why):
                    message = f"`{setting}` has no meaning with {says}: rows are only added. Take one out."
                    self.problem(message, setting)


def did_you_mean_value(name: str, value: object) -> str:
    """What a value of the wrong type was probably meant to be, as a sentence with a space before it, or nothing."""
    annotation = str(Settings.model_fields[name].annotation)
    if isinstance(value, str) and annotation.startswith("list["):
        return f" Write [{value}]."
    if annotation.startswith("typing.Literal"):
        close = nearest(value, re.findall(r"'([^']+)'", annotation))
        return f" Did you mean `{close}`?" if close else ""
    return ""


def _column_list(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = value["except"]
    return list(value or [])


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _disabled(node: Lined) -> bool:
    config = node.get("config")
    return isinstance(config, dict) and config.get("enabled") is False
