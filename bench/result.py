"""What a section's `measure` returns: plain data that goes into results.json and is all that the page needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TypedDict

# A figure; a list has samples, shown as median (least to most).
Cell = str | float | Sequence[float]

# Most that the median of the last third of a series may be of that of the first, where it has to be flat.
FLAT = 1.2


class Table(TypedDict):
    """head: names with units. rows: a cell for each of them."""

    head: list[str]
    rows: list[list[Cell]]


class Target(TypedDict):
    """Met where value is at most `most`."""

    what: str
    value: float
    most: float


class Plot(TypedDict, total=False):
    """lines: of each name points (x, y), or bars: {name: value}. log: both axes of lines."""

    title: str
    x: str
    y: str
    log: bool
    lines: Mapping[str, Sequence[tuple[float, float]]]
    bars: Mapping[str, float]


class Result(TypedDict):
    """compared: what had to be equal, or right, or there would be no result."""

    tables: list[Table]
    targets: list[Target]
    plots: list[Plot]
    compared: str


def ratio(what: str, values: Sequence[float], of: Sequence[float], most: float) -> Target:
    """Of two medians."""
    return target(what, median(values) / median(of), most)


def target(what: str, value: float, most: float) -> Target:
    return {"what": what, "value": round(value, 6), "most": most}


def drift(what: str, values: Sequence[float]) -> Target:
    """That a series is flat."""
    third = max(len(values) // 3, 1)
    return ratio(f"{what}, the last third to the first", values[-third:], values[:third], FLAT)
