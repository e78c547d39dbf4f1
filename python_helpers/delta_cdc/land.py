"""`delta-cdc land`: Kafka topics and change tables into the Delta tables that are their feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from delta_cdc.errors import OperationError, did_you_mean
from delta_cdc.project import Project
from delta_cdc.screen import tell
from delta_cdc.warm_dbt import WarmDbt, progress_on


def landed_feeds(project: Project, names: Sequence[str] = ()) -> list[str]:
    """The feeds that are landed, or those of them that are named. Raises OperationError for a name that is none of them."""
    there = [feed.name for feed in project.feeds if feed.is_landed]
    for name in names:
        if name not in there:
            what = "has neither `kafka` nor `jdbc`" if any(feed.name == name for feed in project.feeds) else "is not there"
            hint = did_you_mean(name, there) if there else "No feed has `kafka` or `jdbc`."
            raise OperationError(f"feed {name}: it {what}, so nothing is to be landed. {hint}")
    return list(dict.fromkeys(names)) or there


def land(dbt: WarmDbt, feeds: Sequence[str], console: Console, overlap: int | None = None) -> list[dict[str, Any]]:
    """Land what is new of feeds; an object a table (macros/control/land.sql). Raises OperationError when dbt cannot start."""
    with progress_on(console, transient=True) as progress:
        landed: list[dict[str, Any]] = dbt.ask(progress, "land", "land", {"feeds": list(feeds), "overlap": overlap})
    return landed


def told(landed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What became of a landing: lines, each with its style."""
    if landed.get("error"):
        return [(landed["error"], "red")]
    name = f"{landed['feed']}.{landed['table']}" if landed["table"] else landed["feed"]
    line = f"{name}: {landed['rows']:,} row{'' if landed['rows'] == 1 else 's'} landed"
    late, overlap = landed.get("late", 0), landed.get("overlap", 0)
    if late:
        line += f", {late:,} of them late, by up to {landed['late_by']:,} (`overlap` is {overlap:,})"
    lines = [(f"{line}; {landed['seconds']:.1f} s.", "")]
    if landed.get("beyond"):
        seen = "without --overlap they would not have been seen. Raise it, and look at all once more."
        lines.append((f"{name}: {landed['beyond']:,} of them came later than `overlap` reaches: {seen}", "yellow"))
    elif late and landed["late_by"] > overlap / 2:
        lines.append((f"{name}: that is over half of `overlap`. What comes later than it is lost: raise it.", "yellow"))
    return lines


def show(landed: Sequence[Mapping[str, Any]], console: Console) -> None:
    for each in landed:
        for line, style in told(each):
            tell(console, line, style)
