"""What must hold between the settings of a feed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from delta_cdc.errors import Problem, did_you_mean, nearest
from delta_cdc.formats import format_of, which_format
from delta_cdc.settings_block import LANDED_BY, Block, plain_secrets

# Column lists that a feed may give for all its tables at once.
COLUMN_LISTS = ("columns", "except_columns", "track_columns", "ignore_null_updates", "set_on_insert")
OF_FINAL = ("columns", "track_columns")  # they choose of what history and final have, so also of what `expressions` make
# What `delta-cdc land` sets itself.
_NO_OPTIONS = {
    "kafka": {
        "subscribe",
        "subscribepattern",
        "assign",
        "startingoffsets",
        "endingoffsets",
        "endingtimestamp",
        "endingoffsetsbytimestamp",
        "includeheaders",
        "checkpointlocation",
        "kafka.bootstrap.servers",
    },
    "jdbc": {"url", "dbtable", "query"},
}


class FeedCheck:
    """line: of the feed's name. problems: what is wrong is added to them."""

    def __init__(self, feed: str, block: Block, line: int | None, problems: list[Problem]) -> None:
        self.feed = feed
        self.block = block
        self.given = block.given
        self.line = block.line or line
        self.problems = problems

    def problem(self, message: str, name: str | None = None) -> None:
        line = self.block.lines.get(name, self.line) if name else self.line
        self.problems.append(Problem(message, feed=self.feed, file=self.block.file, line=line))

    def settings(self, formats: Collection[str], tables: int, root: Path) -> None:
        """formats: those that there are. tables: how many the feed has. root: the project's folder."""
        self.format(formats)
        self.files()
        self.landing()
        self.location(tables, root)

    def format(self, formats: Collection[str]) -> None:
        given = self.given.get("format")
        if given in formats:
            return
        if given is not None:
            self.problem(f"`format` is '{given}'. {which_format(given, formats)}", "format")
        elif "format" not in self.block.broken:
            self.problem(f"`format` is missing. Known: {', '.join(f'`{name}`' for name in formats)}.")
        self.block.broken.add("format")

    def files(self) -> None:
        """What a change set is, and what its files are."""
        given, broken = self.given, self.block.broken
        if "ready" in given and given.get("unit", "file") != "folder" and "unit" not in broken:
            self.problem("`ready` says what a folder must hold, and `unit` is file. Set `unit: folder`.", "ready")
        if given.get("sub_folders"):
            of_files = given.get("unit", "file") == "file" and given.get("file_format") != "delta"
            if not of_files and not {"unit", "file_format"} & broken:
                self.problem("`sub_folders` is for change sets that are files. Take it out.", "sub_folders")
            if given.get("list_after"):
                message = "`list_after` and `sub_folders` are both given; names grow in one folder. Take one out."
                self.problem(message, "list_after")
        if "file_format" in broken:
            return
        if given.get("csv_options") and given.get("file_format", "json") != "csv":
            self.problem("`csv_options` is for CSV files. Set `file_format: csv`, or take it out.", "csv_options")
        options = given.get("csv_options", {})
        if options.get("sep", ",") == options.get("quote", '"'):
            self.problem("`csv_options` has the same for `sep` and for `quote`. Give one of them another.", "csv_options")
        of_format = format_of(given.get("format")).settings.get("file_format")
        file_format = given.get("file_format", of_format or "json")
        if of_format and file_format != of_format:
            message = f"`file_format` is {file_format}, and `format: {given['format']}` is of Delta tables. Take it out."
            self.problem(message, "file_format")
            return
        for name in ("message_column", "kafka"):
            if of_format and given.get(name):
                message = f"`{name}` is for messages in a column, and `format: {given['format']}` is of a table's own rows. "
                self.problem(f"{message}Take it out, or say which format the messages are of.", name)
        if given.get("message_column") and file_format not in ("parquet", "orc", "delta"):
            message = f"`message_column` is for rows of columns, and `file_format` is {file_format}. Take it out."
            self.problem(message, "message_column")
        if given.get("row_order") and file_format != "delta":
            message = f"`row_order` is for Delta tables, and `file_format` is {file_format}. A file's rows have its order."
            self.problem(f"{message} Take it out.", "row_order")
        if file_format == "delta" and given.get("format") == "snapshots":
            message = (
                "`file_format` is delta, and with `format: snapshots` a change set is the whole table; a commit of a Delta "
                "table is what it changed. Say `format: delta_cdf`, or `rows` for a table that is only appended to."
            )
            self.problem(message, "file_format")
        start = given.get("start_from") or ""
        if file_format == "delta" and "/" not in start and not re.match(r"\d{20}|$", start):
            version = re.fullmatch(r"(\d{1,19})(\.json)?", start)
            message = (
                f"`start_from` is '{start}', above or below all commits of the Delta table, whose names have twenty digits. Give "
                f'the name of one: "{int(version[1]) if version else 118:020}.json".'
            )
            self.problem(message, "start_from")
        if file_format == "delta" and given.get("unit", "file") != "file":
            self.problem("`unit` is folder, and a commit of a Delta table is one file. Take it out.", "unit")

    def landing(self) -> None:
        """`kafka` and `jdbc`: what must hold inside of them, and between them and `location`."""
        names = [name for name in LANDED_BY if self.given.get(name) is not None]
        if len(names) == 2:
            self.problem("`kafka` and `jdbc` are both given. A feed is landed by one of them: make two feeds.", "jdbc")
        if len(names) != 1:
            return
        name = names[0]
        landed, location = self.given[name], self.given.get("location") or ""
        if self.given.get("file_format") != "delta" and "file_format" not in self.block.broken:
            self.problem(f"`{name}` lands in a Delta table. Set `file_format: delta`.", name)
        for option in landed.get("options", {}):
            if option.lower() in _NO_OPTIONS[name]:
                self.problem(f"`{name}.options` names `{option}`, which `delta-cdc land` sets itself. Take it out.", name)
        for message in plain_secrets(name, landed):
            self.problem(message, name)
        if name == "kafka":
            if not landed.get("schema_registry", "${").startswith(("http://", "https://", "${")):
                self.problem("`kafka.schema_registry` begins with `http://` or `https://`. This one does not.", name)
            topics = landed.get("topics")
            if (topics is None) == (landed.get("topic_pattern") is None):
                found = "Neither is given." if topics is None else "Both are given."
                self.problem(f"`kafka` takes `topics` or `topic_pattern`, one of them. {found}", name)
                return
            what, texts = ("`kafka.topics`", topics) if topics else ("`kafka.topic_pattern`", [landed["topic_pattern"]])
        else:
            what, texts = "`jdbc.table`", [landed["table"]]
            if not landed["url"].startswith(("jdbc:", "${")):
                self.problem("`jdbc.url` begins with `jdbc:`, e.g. jdbc:postgresql://db/shop. This one does not.", name)
        if location and any(("{table}" in text) != ("{table}" in location) for text in texts):
            message = (
                f"`{{table}}` stands in one of `location` ({location}) and {what} ({', '.join(texts)}). In both, each table is "
                "landed by itself; in neither, all in one."
            )
            self.problem(message, name)

    def location(self, tables: int, root: Path) -> None:
        location = self.given.get("location")
        if location is None:
            if "location" not in self.block.broken:
                where = f"landing/{self.feed}"
                message = f"e.g. {where}, or {where}/{{table}} for a folder per table."
                self.problem(f"`location` is missing. Give the folder of the change sets, {message}")
            return
        unknown = [each for each in re.findall(r"\{([^{}]*)\}", location) if each != "table"]
        remedy = "Take it out." if "{table}" in location else "Write that, or take it out."
        for placeholder in unknown:
            self.problem(f"`location` holds `{{{placeholder}}}`; the only placeholder is `{{table}}`. {remedy}", "location")
        told = f"`location` is '{location}'"
        if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", location)) or "<table>" in location:
            self.problem(f"{told}. The placeholder is written `{{table}}`.", "location")
            return
        if re.search(r"[*?]", location):
            self.problem(f"{told}. It names a folder as it is; `*` and `?` stand for nothing else. Name the folder.", "location")
        if location.startswith("~") or re.search(r"\$\{?[A-Za-z_]", location):
            how = "\"{{ env_var('LANDING') }}/…\" for what the environment says."
            self.problem(f"{told}, and no shell reads it. Write the path, or {how}", "location")
        if location != location.strip():
            self.problem(f"{told}, with a blank at its end or beginning. Take it away.", "location")
        scheme, is_url, _ = location.partition("://")
        if is_url and scheme != scheme.lower():
            self.problem(f"{told}. The kind of a URL is written in small letters, e.g. s3a://lake/landing.", "location")
        if "{table}" not in location and not unknown:
            self.shared_location(location, tables, root)

    def shared_location(self, location: str, tables: int, root: Path) -> None:
        """One folder for all tables of the feed."""
        remedy = f"Give each a folder: {location.rstrip('/')}/{{table}}."
        if self.given.get("csv_options", {}).get("header") is False and tables > 1:
            message = f"`csv_options` has no header, and `location` mixes {tables} tables, whose columns are not the same."
            self.problem(f"{message} {remedy}", "csv_options")
        if "://" not in location and os.path.isfile(root / location):
            self.problem(f"`location` is '{location}', a file. It takes the folder that holds the change sets.", "location")
        if tables > 1 and not format_of(self.given.get("format")).names_tables:
            what = f"{self.given['format']} do not say which table they are of"
            self.problem(f"`location` is '{location}' for {tables} tables, and {what}. {remedy}", "location")

    def column_lists(self, columns: Collection[str], made: Collection[str]) -> None:
        """Column lists that hold for all tables: each name must be a column of at least one of them. made: the columns that
        `expressions` make."""
        never = [name.lower() for name in self.given.get("never_store", [])]
        listed = {name.lower(): name for name in columns}
        for name in self.given.get("never_store", []):
            if name.lower() not in listed and (close := nearest(name, listed.values())):
                self.problem(may_be_misspelled(name, close), "never_store")
        known = {folded: name for folded, name in listed.items() if folded not in never}
        for setting in COLUMN_LISTS:
            for name in column_list(self.given.get(setting)):
                also = made if setting in OF_FINAL else ()
                if name.lower() not in known and name not in also:
                    hint = did_you_mean(name, [*known.values(), *also])
                    self.problem(f"`{setting}` names `{name}`, a column of none of its tables. {hint}", setting)


def may_be_misspelled(name: str, close: str) -> str:
    return f"`never_store` names `{name}`, which is not listed. Did you mean `{close}`? If not, list `{name}` too."


def column_list(value: Any) -> list[str]:
    """The columns that a setting names by a list or by {except: list}; none where it says true, false or nothing."""
    if isinstance(value, Mapping):
        value = value["except"]
    return list(value) if isinstance(value, list) else []
