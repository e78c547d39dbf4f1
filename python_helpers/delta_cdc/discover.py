"""What a feed's messages tell of its tables: names, keys, columns and types, as a proposal for its source.

Types come from the messages' own schema alone. A column of which the format tells no type is a string: types are never
guessed from values.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from delta_cdc.errors import OperationError, counted, some_of
from delta_cdc.formats import format_of
from delta_cdc.message_readers import READERS, Sighting
from delta_cdc.source_types import wider
from delta_cdc.sql_names import IDENTIFIER
from delta_cdc.value_types import Looks


@dataclass
class FoundTable:
    """A table as all messages together tell it. name: as in the messages, with its schema if they name one. folder: that of its
    change sets, where each table has one. named: its keys, where they are told as such. identities: the replica identities of its
    messages; filled: columns that were ever more than null. Both in lower case."""

    name: str
    folder: str | None = None
    named: list[str] = field(default_factory=list)
    identities: set[tuple[str, ...]] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)
    columns: dict[str, str | None] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)

    def add(self, seen: Sighting) -> None:
        spelled = {name.lower(): name for name in self.columns}
        for name, data_type in seen.columns.items():
            known = spelled.setdefault(name.lower(), name)
            before = self.columns.get(known)
            self.columns[known] = data_type if before is None else before if data_type is None else wider(before, data_type)
        self.filled |= {name.lower() for name in seen.columns if name not in seen.nulls}
        if seen.keys and seen.identity:
            self.identities.add(tuple(key.lower() for key in seen.keys))
        elif seen.keys:
            self.named = [spelled.get(key.lower(), key) for key in seen.keys]
        self.settings.update(seen.settings)
        if seen.values is not None:
            self.looks.add(seen.values)

    @property
    def keys(self) -> list[str]:
        """Those that are named, else the replica identity. One that is the whole row is no key, nor are several: of a whole row
        wal2json's first format leaves out what is null."""
        if self.named or len(self.identities) != 1:
            return self.named
        (identity,) = self.identities
        spelled = {name.lower(): name for name in self.columns}
        return [spelled.get(key, key) for key in identity] if self.filled - {*identity} else []


@dataclass
class Discovery:
    """tables: in the order in which they were first seen. unread: messages that are not of the format; first_unread: where the
    first is. teller: who says it. settings: what the files say of the feed. reads_as: other formats that its messages are of.
    nameless: there are messages that name no table."""

    tables: dict[str, FoundTable] = field(default_factory=dict)
    unread: int = 0
    first_unread: str = ""
    teller: str = "messages"
    settings: dict[str, Any] = field(default_factory=dict)
    reads_as: list[str] = field(default_factory=list)
    nameless: bool = False

    def told_unread(self, message_format: str) -> str:
        """How many lines are not of the format; nothing where all are."""
        where = f", the first is {self.first_unread}" if self.first_unread else ""
        return f"{counted(self.unread, 'line')} could not be read as {message_format}{where}" if self.unread else ""


def of_database(tables: Iterable[Mapping[str, Any]]) -> Discovery:
    """What `adapter.tables_of_database` told: {name, keys, columns: {name: type or None}}."""
    found = {each["name"]: FoundTable(each["name"], named=list(each["keys"]), columns=dict(each["columns"])) for each in tables}
    return Discovery(found, teller="database's constraints")


def discover(
    message_format: str, lines: Iterable[str], *, whole: str = "", file: str = "", found: Discovery | None = None
) -> Discovery:
    """The tables of the messages of a feed.

    message_format: a name in `READERS`. whole: the name of the one table of a format whose messages name none. file: the name of
    the one that the lines are of. found: what others told, to which it is added.
    """
    reader = READERS.get(message_format)
    if reader is None:
        raise OperationError(
            f"Format `{message_format}` tells nothing of its tables; those that do: {', '.join(sorted(READERS))}. "
            "Let its database tell them (`delta-cdc init --jdbc`), or write its source by hand (docs/configuration.md)."
        )
    found = found or Discovery()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
            if message is None and message_format == "debezium":
                continue  # a tombstone
            seen = list(reader(message)) if isinstance(message, dict) else None
            if not all(map(_is_sound, seen or ())):
                seen = None
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # the last: brackets in brackets without end
            seen = None
        if seen is None:
            found.unread += 1
            found.first_unread = found.first_unread or (file and f"{file}, line {number}")
            continue
        for sighting in seen:
            name = sighting.table or whole
            found.nameless |= not sighting.table
            found.tables.setdefault(name, FoundTable(name)).add(sighting)
    return found


def _is_sound(seen: Sighting) -> bool:
    """Whether what a message has in the places of names and of a row are some."""
    names = (seen.table or "", *seen.columns, *seen.keys)
    row = {} if seen.values is None else seen.values
    return not isinstance(seen.keys, str) and all(isinstance(name, str) for name in names) and isinstance(row, Mapping)


def discover_files(message_format: str, paths: Sequence[Path], whole: str) -> Discovery:
    """`discover`, of the lines of files."""
    found = Discovery()
    for path in paths:
        discover(message_format, lines_of([path]), whole=whole, file=path.name, found=found)
    if whole in found.tables:  # the messages name no table; those of another format might
        found.reads_as = [each for each in formats_of(paths) if each != message_format]
    return found


def formats_of(paths: Iterable[Path]) -> list[str]:
    """The formats of which the first lines of files are messages, but for flat rows, which any object is."""
    lines = list(itertools.islice(lines_of(paths), 100))

    def all_are(name: str) -> bool:
        found = discover(name, lines)
        return bool(found.tables) and not found.unread and ("" not in found.tables or not format_of(name).names_tables)

    return [name for name in READERS if name not in ("rows", "snapshots") and all_are(name)]


def why_nothing(paths: Sequence[Path]) -> str:
    """What files hold of which no line is a message of their format, and what to do."""
    if formats := formats_of(paths):
        return f"They are messages of `{'` or `'.join(formats)}`. Give that as the format."
    for path in paths:
        lines = list(itertools.islice(lines_of([path]), 100_000))
        try:
            held = json.loads("".join(lines))
        except (ValueError, RecursionError):
            continue
        if isinstance(held, list) or len(lines) > 1:
            what = "one array" if isinstance(held, list) else "one object on several lines"
            how = "jq -c '.[]'" if isinstance(held, list) else "jq -c ."
            return f"{path} is {what}; each line has to be an object: `{how} {path.name} > {path.stem}.jsonl`."
    return (
        "A line is a JSON object; files of other kinds are told by their names or `--file-format` of `delta-cdc init` (csv, "
        "parquet, orc, avro)."
    )


def lines_of(paths: Iterable[Path], remedy: str = "Take it away, or name others.") -> Iterator[str]:
    """The lines of text files, plain or gzipped. Raises OperationError for a file that is none, with what to do about it."""
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig") as file:
                yield from file
        except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
            why = f"{path} cannot be read as text in UTF-8, plain or gzipped: {error}. {remedy}"
            raise OperationError(why) from None


# of a folder: 2026-11-27, 20261127T0900, dt=2026-11-27
_OF_TIME = re.compile(r"(?:\w+=)?\d{4}(?:[-_.T]?\d\d)+|\w+=\d+")


def change_sets_in(folder: Path, *, deep: bool, by_table: bool) -> dict[str, list[Path]]:
    """The files that a run would take from a folder: of the folder itself under the name "", else those of each folder in it.
    deep: where these hold none either, all that are deeper, as `sub_folders` takes them; and so where these are called after a
    time. by_table: those of each folder go before its own. Raises OperationError where there are none."""

    def files(of: Path) -> list[Path]:
        return [path for path in listed(of) if path.is_file()]

    def listed(of: Path) -> list[Path]:
        return sorted(path for path in of.iterdir() if path.name[0] not in "._") if of.is_dir() else []

    def below(of: Path) -> Iterator[Path]:
        for path in listed(of):
            yield from below(path) if path.is_dir() else [path]

    flat = files(folder)
    by_folder = {each.name: paths for each in listed(folder) if (paths := files(each))} if by_table or not flat else {}
    if by_folder and not by_table and all(map(_OF_TIME.fullmatch, by_folder)):
        return {"": [*below(folder)]}
    if found := by_folder or ({"": flat} if flat else {}):
        return found
    deeper = list(below(folder))
    if deep and deeper:
        return {"": deeper}
    said = f"There is no change set in {folder}"
    if folder.is_file():
        raise OperationError(f"{said}: it is a file. Name its folder, {folder.parent}.")
    if not folder.is_dir():
        raise OperationError(f"{said}: there is no such folder. Name the one that the feed fills.")
    if not deeper:
        raise OperationError(f"{said}, nor in a folder in it. Name the folder that the feed fills.")
    first = deeper[0]
    raise OperationError(
        f"{said}, nor in a folder in it, but deeper: {first.relative_to(folder)}. Name the folder that holds files "
        f"({first.parent}), or, where each table has one, the one above ({first.parent.parent}); if these are not all, say "
        "`sub_folders: true` in the source, and in `location` what holds all."
    )


def discover_folder(
    folder: Path, change_sets: Mapping[str, Sequence[Path]], tell: Callable[[Sequence[Path], str], Discovery], whole: str
) -> Discovery:
    """The tables of the change sets of a folder, or of folders in it that each hold one table's and are named as it.

    change_sets: of `change_sets_in`. tell: what files tell, by their paths and the name of a table that they do not name;
    whole: that name, where the folder has no others in it.
    """
    if "" in change_sets:
        return tell(change_sets[""], whole)
    found = Discovery()
    for name, paths in change_sets.items():
        part = tell(paths, name)
        if len(part.tables) > 1 or set(part.tables) & set(found.tables):
            raise OperationError(
                f"The folders in {folder} are not one for each table: {name} holds {', '.join(part.tables)}. Give the "
                f"folder of one change set ({folder / name}); then say `unit: folder` and `location: {folder}` in the source (a "
                "folder is taken once it holds `_SUCCESS`), or `sub_folders: true` instead of `unit` if a file is a change set."
            )
        found.unread, found.teller = found.unread + part.unread, part.teller
        found.first_unread = found.first_unread or (part.first_unread and f"{name}/{part.first_unread}")
        found.reads_as = part.reads_as
        for what, value in part.settings.items():
            if found.settings.setdefault(what, value) != value:
                raise OperationError(
                    f"{folder}: the files of {name} have `{what}` {value}, those before it {found.settings[what]}. Files "
                    "that are written in different ways are two feeds: give each its own folder."
                )
        for told, table in part.tables.items():
            found.tables[told] = table
            table.folder = name
    return found


def source_yml(
    feed: str,
    location: str,
    message_format: str,
    found: Discovery,
    given: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    taken: Collection[str] = (),
    enabled: bool | None = None,
) -> str:
    """The source of a feed as yml; what the messages do not tell is named in a comment.

    given: settings of tables, by name. taken: names of models that there are, in lower case. enabled: whether dbt is to read
    it; None, the default, where nobody needs to be told.
    """
    if found.nameless and len(found.tables) == 1 and format_of(message_format).names_tables:
        location = _folder_of_table(location, *found.tables.values())
    names = short_names(found.tables)
    tables = [_table_yml(table, names[table.name]) for table in found.tables.values()]
    for name, described in zip(found.tables, tables, strict=True):
        settings = described["config"]["meta"]["cdc"]
        said = (given or {}).get(name, {})
        if said.get("keyless", "none") != "none" and "keys" not in said:  # of a key that was told there is to be none
            settings.pop("keys", None)
        settings.update(said)
        if f"final_{described['name']}".lower() in taken:
            settings.setdefault("final_name", _free(f"final_{feed}_{described['name']}", {*taken}))
    switch = {} if enabled is None else {"enabled": enabled}
    source = {
        "name": feed,
        "config": switch | {"meta": {"cdc": {"format": message_format, "location": location, **found.settings}}},
        "tables": tables,
    }
    text = yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False, allow_unicode=True, width=120)
    switched_off = "" if enabled is None else "# Not read as long as it says `enabled: false`.\n"
    to_do = "".join(f"# {line}\n" for line in map(_printable, _to_do(message_format, found, names, tables)))
    return switched_off + to_do + text


def _folder_of_table(location: str, table: FoundTable) -> str:
    """The location with the folder of its only table as `{table}`: messages that name no table are read as those of a folder's,
    and of one that may mix tables none is read."""
    above, slash, folder = location.rstrip("/").rpartition("/")
    if "{table}" in location or folder in ("", ".", ".."):
        return location
    table.folder = folder
    return f"{above}{slash}{{table}}"


def _printable(line: str) -> str:
    """A line of a comment, which may name columns with line breaks and signs that yml does not take.

    >>> _printable("t.Amount\\n(EUR)\\0")
    't.Amount (EUR) '
    """
    return "".join(sign if sign.isprintable() else " " for sign in line)


def _to_do(message_format: str, found: Discovery, names: Mapping[str, str], tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was not told, and what it may be. names: of the tables' models. tables: as they stand in the source."""
    if found.reads_as:
        yield f"The {found.teller} are of the format {' or '.join(found.reads_as)} too, which may tell more."
    given = {table["name"]: table["config"]["meta"]["cdc"] for table in tables}
    keyless = [name for name, settings in given.items() if not {"keys", "keyless", "insert_only"} & set(settings)]
    if keyless:
        remedy = "Set `keys`." if "keyless" in format_of(message_format).takes_no else "Set `keys`, or `keyless`."
        yield f"The {found.teller} tell no key of: {', '.join(keyless)}. {remedy}"
    for table in tables:
        asked = ["keys"] if table["name"] in keyless else []
        if message_format == "rows":
            asked += [what for what in ("sequence_by", "operation", "deleted_when") if what not in given[table["name"]]]
        columns = [column["name"] for column in table["columns"]]
        likely = [(what, ", ".join(_likely(what, columns, table["name"]))) for what in asked]
        if perhaps := "; ".join(f"{what}: {some}" for what, some in likely if some):
            yield f"{table['name']}, by the names alone, perhaps {perhaps}."
    if unplaced := ", ".join(name for name, settings in given.items() if "_arrival" in settings.get("sequence_by", ())):
        yield (
            f"The {found.teller} tell no place in a log of: {unplaced}. Where `_arrival` orders, what comes later is newer, and "
            f"what comes twice is applied twice (docs/formats/{message_format}.md)."
        )
    untyped = [f"{table.name}.{name}" for table in found.tables.values() for name, kind in table.columns.items() if kind is None]
    if untyped:
        yield f"No type was told of {counted(len(untyped), 'column')}, listed as string: {some_of(untyped)}"
    for told in found.tables.values():
        untold = {name.lower() for name, kind in told.columns.items() if kind is None}
        if types := ", ".join(f"{name} {kind}" for name, kind in told.looks.types().items() if name.lower() in untold):
            rounded = " A decimal rounds what has more digits behind the point." if "decimal" in types else ""
            yield f"{names[told.name]}, by the values of {counted(told.looks.rows, 'row')} alone, perhaps {types}.{rounded}"


_LIKELY = {
    "keys": r"id|{table}_?id|key|{table}_?key|uuid|guid",
    "sequence_by": r".*(seq|sequence|lsn|scn|offset|version|position|commit_ts|commit_time)(_?(no|nr|number|id))?"
    r"|(updated|modified|changed|captured|event|op|commit|dms|cdc|load|ingest)_?(at|on|time|ts|date|timestamp)"
    r"|at|ts|timestamp|transact_id",
    "operation": r"_?(op|operation|(op|operation|change|dml)_?type|action|flag|op_?code|dml_?flag|cdc_?(op|operation))",
    "deleted_when": r"(\w*_)?(is_?)?deleted(_?(flag|at|on|time|ts|date|timestamp))?",
}


def _likely(what: str, columns: Iterable[str], table: str) -> list[str]:
    """The columns whose names say that they may be meant; for a condition, what it would say of each.

    >>> _likely("keys", ["invoice_id", "customer_id"], "invoice"), _likely("operation", ["op", "options"], "invoice")
    (['invoice_id'], ['op'])
    >>> _likely("keys", ["order_id"], "Orders"), _likely("keys", ["city_id"], "cities"), _likely("keys", ["box_id"], "boxes")
    (['order_id'], ['city_id'], ['box_id'])
    >>> _likely("deleted_when", ["is_deleted", "_sdc_deleted_at", "undeleted", "deletedDate", "deleted by"], "invoice")
    ['try_cast(is_deleted as boolean)', '_sdc_deleted_at is not null', 'deletedDate is not null']
    """
    name = table.lower()
    singulars = {name, name.removesuffix("s"), name.removesuffix("es"), re.sub("ies$", "y", name)}
    pattern = _LIKELY[what].replace("{table}", f"({'|'.join(map(re.escape, sorted(singulars)))})")
    meant = [name for name in columns if re.fullmatch(pattern, name.lower())]
    if what == "deleted_when":
        is_flag = re.compile(r".*deleted(_?flag)?", re.IGNORECASE)
        return [f"try_cast({name} as boolean)" if is_flag.fullmatch(name) else f"{name} is not null" for name in meant]
    return meant


def settings_of(table: FoundTable, name: str) -> dict[str, Any]:
    """The settings that the messages imply for a table that is configured under this name."""
    known_by_itself = name == (table.folder or table.name.rsplit(".", 1)[-1])
    named = {} if known_by_itself else {"source_table": table.folder or table.name}
    return {**named, **({"keys": table.keys} if table.keys else {}), **table.settings}


def short_names(tables: Iterable[str]) -> dict[str, str]:
    """A name for the models of each table: its own without its schema, where that is one of a kind, and of letters, digits and
    underscores.

    >>> short_names(["shop.invoice", "a.note", "b.note", "visit [1]", "my-table", "my_table", "2024"])["visit [1]"]
    'visit_1'
    """
    last = {name: name.rsplit(".", 1)[-1] for name in tables}
    count = Counter(short.lower() for short in last.values())
    wanted = {name: short if count[short.lower()] == 1 else name.replace(".", "_") for name, short in last.items()}
    taken: set[str] = set()
    in_turn = sorted(wanted, key=lambda name: not IDENTIFIER.fullmatch(wanted[name]))  # first those that can be as they are
    return {name: _free(_identifier(wanted[name]), taken) for name in in_turn}


def _identifier(text: str) -> str:
    """
    >>> _identifier("my-table"), _identifier("Größe (alt)"), _identifier("2024"), _identifier("订单")
    ('my_table', 'Grosse_alt', 'table_2024', 'table')
    """
    if IDENTIFIER.fullmatch(text):
        return text
    latin = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", latin).strip("_")
    return name if IDENTIFIER.fullmatch(name) else f"table_{name}".rstrip("_")


def _free(name: str, taken: set[str]) -> str:
    """The name, or with a number if it is taken; it is from then on."""
    candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    free = next(each for each in candidates if each.lower() not in taken)
    taken.add(free.lower())
    return free


def _table_yml(table: FoundTable, name: str) -> dict[str, Any]:
    columns = [{"name": column, "data_type": kind or "string"} for column, kind in table.columns.items()]
    return {"name": name, "config": {"meta": {"cdc": settings_of(table, name)}}, "columns": columns}
