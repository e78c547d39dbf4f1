"""`delta-cdc pause` and `resume`: one setting of a table in its source's yml comes or goes, and no other character of the file.

The text is edited where the parser says that something stands. What came of it is parsed again: unless the file then says
what it said, but for the one setting, it is left as it was, and a person is told what to write where.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from delta_cdc.errors import OperationError
from delta_cdc.project import Project, Table
from delta_cdc.settings import SAYS_NO
from delta_cdc.source_files import Lined, content_of, is_template, metas_of, one_line
from delta_cdc.text_files import write_over

_Entry = tuple[yaml.Node, yaml.Node]


def pause(project: Project, table: Table, why: str) -> str:
    """Write the reason as the table's setting `paused`; returns where it stands (file:line). Raises OperationError."""
    why = " ".join(why.split())
    if not why or why.lower() in SAYS_NO:
        raise OperationError(f"`--why` is {why or 'empty'}. Give a reason: runs and `delta-cdc status` show it.")
    if is_template(why):
        raise OperationError(f"`--why` is {why}, which dbt would take for a template. Leave the braces out.")
    place = _place_of(project, table)
    wanted, settings = place.as_plain()
    for key in place.way:
        settings[key] = settings.get(key) or {}
        settings = settings[key]
    settings["paused"] = why
    text = _paused(place, why)
    if text is None or _plain(_parsed(text)) != wanted:
        raise place.by_hand(f"write `{_flow({'paused': why})}` among its settings (`{': '.join(place.way)}:`)")
    write_over(place.path, text)
    return f"{table.file}:{_line_of(_table_in(_parsed(text), place.at))}"


def resume(project: Project, table: Table) -> str | None:
    """Take the table's setting `paused` out of its source's yml; returns where its whole feed is paused (file:line), if it is.
    Raises OperationError, also where the table has no such setting."""
    place, name = _place_of(project, table), table.full_name
    feed = place.content["sources"][place.at[0]]
    by_feed = f"{table.file}:{_line_of(feed)}" if _settings_in(feed).get("paused") else None
    if _settings_in(_table_in(place.content, place.at)).get("paused") is None:
        if table.settings.paused and by_feed:
            raise OperationError(f"{name} is paused with all of its feed. Take `paused` out there by hand: {by_feed}.")
        raise OperationError(f"{name} is not paused.")
    text, wanted = _resumed(place) or (place.text, None)
    if _plain(_parsed(text)) != wanted:
        raise place.by_hand("take `paused` out")
    write_over(place.path, text)
    return by_feed


@dataclass(frozen=True)
class _Place:
    """Where a table stands in its source's yml. at: of the source in the file, and of the table in the source. node: the
    table's. way: the keys to its settings, where they stand or would."""

    table: Table
    path: Path
    text: str
    content: Lined
    at: tuple[int, int]
    node: yaml.Node | None
    way: tuple[str, ...]

    def as_plain(self) -> tuple[Any, Any]:
        """What the file says, to be changed, and what in it is the table's."""
        content = _plain(self.content)
        return content, _table_in(content, self.at)

    def by_hand(self, what: str) -> OperationError:
        where = f"{self.table.file}:{_line_of(_table_in(self.content, self.at))}"
        name = self.table.full_name
        why = f"as it is written there, this command cannot change it for {name} alone"
        return OperationError(f"{where}: {why}. The file is as it was; {what} by hand.")


def _place_of(project: Project, table: Table) -> _Place:
    path = project.root / str(table.file)
    text = path.read_bytes().decode("utf-8")  # with the ends of its lines as they are
    content = content_of(text)
    for number, source in enumerate(content["sources"]):
        listed = source.get("tables") if isinstance(source, Lined) and source.get("name") == table.feed else None
        for place, each in enumerate(listed or ()):
            if isinstance(each, Lined) and each.get("name") == table.name and each.lines.get("name") == table.line:
                node = yaml.compose(text, Loader=yaml.SafeLoader)
                for step in ("sources", number, "tables", place):
                    node = _below(node, step)
                return _Place(table, path, text, content, (number, place), node, _way(each))
    raise OperationError(f"{table.file}: table {table.full_name} is no longer there. Nothing was changed.")


def _below(node: yaml.Node | None, step: str | int) -> Any:
    if isinstance(step, int):
        return node.value[step] if isinstance(node, yaml.SequenceNode) else None
    entry = _entry(node, step)
    return entry[1] if entry else None


def _entry(node: yaml.Node | None, key: str) -> _Entry | None:
    """A mapping's own entry, not one that it is given by a merge key."""
    entries: Sequence[_Entry] = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((entry for entry in entries if entry[0].value == key), None)


def _way(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys from a source or table to its settings: where they stand, or where they would."""
    meta, deep = metas_of(node)
    if isinstance(meta, dict) and not (isinstance(deep, dict) and ("cdc" in deep or "cdc" not in meta)):
        return ("meta", "cdc")
    return ("config", "meta", "cdc")


def _settings_in(node: Any) -> Mapping[str, Any]:
    for key in _way(node):
        node = (node.get(key) if isinstance(node, dict) else None) or {}
    return node if isinstance(node, dict) else {}


def _line_of(node: Any) -> int | None:
    """Of the setting `paused` of a source or table; where it has none, of the settings or of itself."""
    line: int | None = node.lines.get("name")
    for key in (*_way(node), "paused"):
        line, node = (node.lines.get(key, line), node.get(key)) if isinstance(node, Lined) else (line, None)
    return line


def _table_in(content: Any, at: tuple[int, int]) -> Any:
    return content["sources"][at[0]]["tables"][at[1]]


def _plain(value: Any) -> Any:
    """A copy in which nothing is shared, as what an anchor names is."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _parsed(text: str) -> Any:
    try:
        return content_of(text)
    except (yaml.YAMLError, ValueError) as error:
        return one_line(error)


def _flow(entry: Mapping[str, Any]) -> str:
    """An entry of a mapping on one line, good between braces and without: `cdc: {paused: why}`."""
    text: str = yaml.safe_dump(dict(entry), default_flow_style=True, width=math.inf, allow_unicode=True)
    return text.strip()[1:-1]


def _paused(place: _Place, why: str) -> str | None:
    """The file with the reason in it; None where nothing stands that could be changed."""
    text, node, after = place.text, place.node, _entry(place.node, "name")
    way = (*place.way, "paused")
    for depth, key in enumerate(way):
        value: Any = why
        for inner in reversed(way[depth + 1 :]):
            value = {inner: value}
        entry = _entry(node, key)
        if entry is None:
            return _added(text, node, _flow({key: value}), after, first=depth > 0)
        span = _span_of(text, entry)
        if span is None:
            return None
        if isinstance(entry[1], yaml.ScalarNode):  # the reason there is, or nothing
            start, stop = span
            written = _flow({key: value}).removeprefix(f"{key}: ")
            return text[:start] + (" " if start == stop else "") + written + text[stop:]
        after, node = entry, entry[1]
    return None


def _added(text: str, node: yaml.Node | None, entry: str, after: _Entry | None, *, first: bool) -> str | None:
    """The text with an entry more in a mapping. after: its entry after which that is to stand; with `first` the entry whose value
    the mapping is."""
    if not isinstance(node, yaml.MappingNode) or after is None:
        return None
    if node.flow_style:
        at, written = after[1].end_mark.index, f", {entry}"
        if first and node.value:
            at, written = node.value[0][0].start_mark.index, f"{entry}, "
        elif first:
            at, written = node.end_mark.index - 1, entry
        return text[:at] + written + text[at:]
    indented: str = " " * node.value[0][0].start_mark.column + entry
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find("\n", after[0 if first else 1].end_mark.index)
    return text + newline + indented if end < 0 else text[: end + 1] + indented + newline + text[end + 1 :]


def _resumed(place: _Place) -> tuple[str, Any] | None:
    """The file without the reason, and what it then has to say; None where no reason stands there. A mapping that held nothing
    else goes with it, unless a comment is in it."""
    text, way = place.text, (*place.way, "paused")
    entries: list[_Entry] = []
    holders: list[Any] = [place.node]
    for key in way:
        entry = _entry(holders[-1], key)
        if entry is None or _span_of(text, entry) is None:
            return None
        entries.append(entry)
        holders.append(entry[1])
    start, stop = entries[-1][0].start_mark.index, (_span_of(text, entries[-1]) or (0, 0))[1]
    at = len(way) - 1
    while at > 0 and len(holders[at].value) == 1:
        outer = entries[at - 1][0].start_mark.index
        end = holders[at].end_mark.index if holders[at].flow_style else stop
        if "#" in text[outer:start] + text[stop:end]:
            break
        at, start, stop = at - 1, outer, end
    wanted, table = place.as_plain()
    nodes = [table]
    for key in way[:at]:
        nodes.append(nodes[-1][key])
    del nodes[-1][way[at]]
    if not nodes[-1] and not holders[at].flow_style:
        nodes[-2][way[at - 1]] = None
    if holders[at].flow_style:
        return _without_in_flow(text, start, stop, is_last=holders[at].value[-1] is entries[at]), wanted
    return _without_lines(text, start, stop), wanted


def _without_in_flow(text: str, start: int, stop: int, *, is_last: bool) -> str:
    """The text without an entry between braces, and without the comma that parts it from the others."""
    before, comma = text[:start].rstrip(), re.compile(r"\s*,\s*").match(text, stop)
    if comma and not (is_last and before.endswith(",")):
        return text[:start] + text[comma.end() :]
    return (before[:-1] if before.endswith(",") else text[:start]) + text[stop:]


def _without_lines(text: str, start: int, stop: int) -> str:
    """The text without an entry, and without its line where nothing else is on it."""
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    end = len(text) if end < 0 else end
    if text[begin:start].strip() or text[stop:end].strip():  # a comment
        return text[:start] + text[stop:].lstrip(" \t")
    return text[:begin] + text[end + 1 :] if end < len(text) else text[:begin].removesuffix("\n").removesuffix("\r")


def _span_of(text: str, entry: _Entry) -> tuple[int, int] | None:
    """Where an entry's value begins and ends, without the line breaks after it that a block scalar (`|`, `>`) has. None where it
    is not written there but above (an alias), or has a comment in its heading."""
    value, start = entry[1], entry[1].start_mark.index
    written = text[start : value.end_mark.index].rstrip()
    is_elsewhere = start < entry[0].end_mark.index
    has_comment = getattr(value, "style", None) in ("|", ">") and "#" in written.split("\n")[0]
    return None if is_elsewhere or has_comment else (start, start + len(written))
