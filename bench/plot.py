"""Plots as SVG: lines or bars. Text and grid follow the reader's light or dark colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from bench.result import Plot

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48  # margins
COLOURS = ("#2f81f7", "#d29922", "#3fb950", "#db61a2", "#8957e5")  # seen on white and on black
STYLE = (
    "<style>text{font:12px sans-serif;fill:#333}.title{font-size:14px}line{stroke:#ccc}polyline{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}line{stroke:#444}}</style>"
)


def svg(plot: Plot) -> str:
    height, drawn = _bars(plot) if "bars" in plot else (HEIGHT, _lines(plot))
    title = f'<text class="title" x="{LEFT if "lines" in plot else 8}" y="20">{escape(plot["title"])}</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, STYLE, title, *drawn, "</svg>"]) + "\n"


def _bars(plot: Plot) -> tuple[int, list[str]]:
    """Height, and a bar below the other, with its name before and its value behind."""
    start, step = 290, 24
    scale = (WIDTH - start - 60) / (max(plot["bars"].values(), default=0) or 1)
    out = []
    for place, (name, value) in enumerate(plot["bars"].items()):
        y = TOP + place * step
        colour = COLOURS[0] if "delta_cdc" in name or "final" in name else COLOURS[1]
        out += [
            _text(start - 8, y + 13, name, "end"),
            f'<rect x="{start}" y="{y}" width="{value * scale:.1f}" height="{step - 6}" fill="{colour}"/>',
            _text(start + value * scale + 6, y + 13, f"{value:.3g}", "start"),
        ]
    return TOP + len(plot["bars"]) * step + 8, out


def _lines(plot: Plot) -> list[str]:
    points = [point for line in plot["lines"].values() for point in line]
    log = plot.get("log", False)
    x_of, x_ticks = _axis([x for x, _ in points], LEFT, WIDTH - RIGHT, log, from_zero=False)
    y_of, y_ticks = _axis([y for _, y in points], HEIGHT - BOTTOM, TOP, log, from_zero=True)
    out = []
    for tick in y_ticks:
        y = y_of(tick)
        out += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
            _text(LEFT - 6, y + 4, f"{tick:,g}", "end"),
        ]
    out += [_text(x_of(tick), HEIGHT - BOTTOM + 18, f"{tick:,g}", "middle") for tick in x_ticks]
    out += [_text((LEFT + WIDTH) / 2, HEIGHT - 10, plot["x"], "middle"), _text(8, TOP - 6, plot["y"], "start")]
    for place, (name, line) in enumerate(plot["lines"].items()):
        colour = COLOURS[place % len(COLOURS)]
        places = [(x_of(x), y_of(y)) for x, y in line]
        out.append(f'<polyline stroke="{colour}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
        if len(places) <= 30:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        x = WIDTH - RIGHT - 150
        y = 12 + place * 14
        out += [f'<rect x="{x}" y="{y - 2}" width="10" height="10" fill="{colour}"/>', _text(x + 16, y + 7, name, "start")]
    return out


def _axis(
    values: Sequence[float], start: float, end: float, log: bool, from_zero: bool
) -> tuple[Callable[[float], float], list[float]]:
    """Where a value is between start and end, and the values that are named: 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    if log:
        low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        if low == high:
            high = low * 10
        ticks = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
        return lambda value: start + (end - start) * math.log10(value / low) / math.log10(high / low), ticks
    low = 0 if from_zero else low
    if low == high:
        high = low + 1
    rough = (high - low) / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    ticks = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if from_zero and ticks[-1] < high:
        ticks.append(ticks[-1] + step)
        high = ticks[-1]
    return lambda value: start + (end - start) * (value - low) / (high - low), ticks


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
