"""`delta-cdc report`: one page of HTML that needs nothing else, from what `delta-cdc status` knows and from `cdc_runs`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import jinja2
from markupsafe import Markup, escape

from delta_cdc import ask
from delta_cdc.ask import Row
from delta_cdc.project import Project

_CHART = (760, 120)  # width and height of the bars; the page stretches a chart to its own width
_TIMELINE = (160, 24)
_WIDEST = 24  # a run is no wider than this where there are few
_STATES = ("ok", "held", "failed")
_ASKED_FOR = ("retracted", "erased", "too_late")  # rows that are not used because somebody wanted it so: they want no person


def page(project: Project, told: Mapping[str, Sequence[Row]]) -> str:
    """The page as text. told: what the macro `report` tells: that of `status`, and `history`, a row a run and written table."""
    rows = ask.status_rows(project, told)
    runs = runs_of(told["history"])
    entries: dict[str, list[Row]] = {}
    for entry in told["history"]:
        entries.setdefault(entry["table"], []).append(entry)
    tables = [
        {
            "table": row["table"],
            "state": row["state"],
            "timeline": _timeline(runs, [entry for model in table.models for entry in entries.get(model, [])]),
            **ask.told_of(row),
        }
        for table, row in zip(project.tables, rows, strict=True)
    ]
    loader = jinja2.PackageLoader("delta_cdc", ".")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("report.html.j2").render(
        project=project.name,
        at=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        cards=_cards(rows, told, runs),
        troubles=[{**row, "why": "\n".join(row["why"])} for row in rows if row["why"]],
        runs=runs,
        charts=[
            _chart(
                "Work of the models that had something to do",
                runs,
                lambda run: run["seconds"],
                lambda seconds: ask.lag(round(seconds)),
            ),
            _chart("Rows of final inserted, updated, deleted", runs, lambda run: run["written"], "{:,} rows".format),
        ],
        tables=tables,
        others=ask.quarantined_elsewhere(project, told),
    )


def runs_of(history: Sequence[Row]) -> list[dict[str, Any]]:
    """One row a run, oldest first: run, at, seconds (of all models that it has in `cdc_runs`), read, written (rows of final),
    state."""
    runs: dict[str, dict[str, Any]] = {}
    for entry in history:
        name = entry["run"]
        run = runs.setdefault(name, {"run": name, "at": "", "seconds": 0.0, "read": 0, "written": 0, "state": "ok"})
        run["at"] = max(run["at"], str(entry["finished_at"])[:16])
        run["seconds"] += entry["seconds"] or 0
        if entry["layer"] == "staging":
            run["read"] += entry["rows_read"] or 0
        if entry["layer"] == "final":
            run["written"] += entry["rows_written"] or 0
        run["state"] = max(run["state"], _state(entry), key=_STATES.index)
    return sorted(runs.values(), key=lambda run: str(run["at"]))


def _cards(rows: Sequence[Row], told: Mapping[str, Sequence[Row]], runs: Sequence[Row]) -> list[dict[str, str]]:
    def count(state: str) -> int:
        return sum(row["state"] == state for row in rows)

    lags = [row["lag_seconds"] for row in rows if row.get("lag_seconds") is not None]
    quarantined = sum(entry["n"] for entry in told["quarantine"])
    to_look_at = any(entry["error"] not in _ASKED_FOR for entry in told["quarantine"])
    return [
        {"what": "tables", "value": str(len(rows)), "state": ""},
        {"what": "failed", "value": str(count("failed")), "state": "failed" if count("failed") else ""},
        {"what": "held", "value": str(count("held")), "state": "held" if count("held") else ""},
        {"what": "rows quarantined", "value": f"{quarantined:,}", "state": "held" if to_look_at else ""},
        {"what": "changes read in these runs", "value": f"{sum(run['read'] for run in runs):,}", "state": ""},
        {"what": "since the newest change", "value": ask.lag(min(lags)) if lags else "?", "state": ""},
    ]


def _state(entry: Row) -> str:
    return {"success": "ok", "held": "held"}.get(entry["status"], "failed")


def _top(values: Iterable[float]) -> float:
    """What the highest bar stands for. A first load towers over all that comes later: it is cut, so that they are seen."""
    some = sorted(value for value in values if value)
    return min(some[-1], 3 * some[int(0.9 * len(some))]) if some else 1


def _chart(title: str, runs: Sequence[Row], value: Callable[[Row], float], said: Callable[[float], str]) -> dict[str, Any]:
    """Bars, one a run; each says its own when it is pointed at."""
    width, height = _CHART
    values = [value(run) for run in runs]
    top, step = _top(values), min(width / max(len(runs), 1), _WIDEST)
    bars = [
        _bar(place * step, step, height * number / top, height, run["state"], f"{run['at']}: {said(number)}")
        for place, (run, number) in enumerate(zip(runs, values, strict=True))
    ]
    highest = max(values, default=0)
    return {
        "title": f"{title}: {said(highest)} at most" + (f"; drawn up to {said(top)}" if highest > top else ""),
        "drawing": _svg("chart", title, width, height, bars),
    }


def _timeline(runs: Sequence[Row], entries: Sequence[Row]) -> Markup:
    """Changes that one table read, run by run; what came late stands above the rest. entries: those of all its models."""
    if not entries:
        return Markup("")
    width, height = _TIMELINE
    of_run: dict[str, dict[str, Any]] = {}
    for entry in entries:
        seen = of_run.setdefault(entry["run"], {"read": 0, "late": 0, "state": "ok"})
        seen["state"] = max(seen["state"], _state(entry), key=_STATES.index)
        if entry["layer"] == "staging":
            seen |= {"read": entry["rows_read"] or 0, "late": entry["rows_late"] or 0}
    top, step = _top(seen["read"] for seen in of_run.values()), min(width / len(runs), _WIDEST / 3)
    bars = []
    for place, run in enumerate(runs):
        if found := of_run.get(run["run"]):
            read, late, state = found["read"], found["late"], found["state"]
            told = f"{run['at']}: {read:,} changes"
            told += (f", {late:,} late" if late else "") + (f", {state}" if state != "ok" else "")
            tall = height * read / top
            bars.append(_bar(place * step, step, tall, height, state, told))
            if late:
                drawn = min(tall, height)
                bars.append(_bar(place * step, step, drawn * late / max(read, late), height, "late", told, below=drawn))
    return _svg("timeline", "changes of each run", width, height, bars)


def _svg(kind: str, title: str, width: int, height: int, bars: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="{kind}" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{title}">'
        "{bars}</svg>"
    ).format(kind=kind, width=width, height=height, title=title, bars=Markup("").join(bars))


def _bar(x: float, step: float, tall: float, height: int, state: str, told: str, *, below: float | None = None) -> Markup:
    """A bar that stands on the ground, or hangs from `below` it; told: what it says when it is pointed at."""
    lowest = 1.0 if state in ("ok", "late") else height / 4  # what failed may have done nothing, and is to be seen
    kind = (f" {state}" if state != "ok" else "") + (" cut" if round(tall, 3) > height else "")
    tall = min(max(tall, lowest), height)
    y = height - (tall if below is None else max(below, tall))
    return Markup('<rect class="bar{kind}" x="{x}" y="{y}" width="{w}" height="{h}"><title>{told}</title></rect>').format(
        kind=kind, x=f"{x:.2f}", y=f"{y:.1f}", w=f"{step * 0.85:.2f}", h=f"{tall:.1f}", told=escape(told)
    )
