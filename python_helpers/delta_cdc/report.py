"""`delta-cdc report`: one page of HTML that needs nothing else, from what `delta-cdc status` knows and from `cdc_runs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import jinja2
from markupsafe import Markup, escape

from delta_cdc import ask
from delta_cdc.config import Project

Row = Mapping[str, Any]
_CHART = (760, 120)  # width and height of the bars, in pixels
_TIMELINE = (160, 24)


def page(project: Project, told: Mapping[str, Sequence[Row]]) -> str:
    """The page as text. told: what the macro `report` tells: that of `status`, and `history`, a row a run and written table."""
    rows = ask.status_rows(project, told)
    runs = runs_of(told["history"])
    timelines: dict[str, list[Row]] = {}
    for entry in told["history"]:
        timelines.setdefault(entry["table"], []).append(entry)
    tables = [
        {
            "table": row["table"],
            "state": row["state"],
            "timeline": _timeline(timelines.get(table.staging_name, [])),
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
        seconds_chart=_chart("Seconds of work", runs, lambda run: run["seconds"], "{:,.0f} s"),
        rows_chart=_chart("Rows of final inserted, updated, deleted", runs, lambda run: run["written"], "{:,} rows"),
        tables=tables,
    )


def runs_of(history: Sequence[Row]) -> list[dict[str, Any]]:
    """One row a run, oldest first: at, seconds (those of all its models), read, written (rows of final), state."""
    runs: dict[str, dict[str, Any]] = {}
    for entry in history:
        run = runs.setdefault(entry["run"], {"at": "", "seconds": 0.0, "read": 0, "written": 0, "state": "ok"})
        run["at"] = max(run["at"], str(entry["finished_at"])[:16])
        run["seconds"] += entry["seconds"] or 0
        if entry["layer"] == "staging":
            run["read"] += entry["rows_read"] or 0
        if entry["layer"] == "final":
            run["written"] += entry["rows_written"] or 0
        if entry["status"] not in ("success", "held"):
            run["state"] = "failed"
        elif entry["status"] == "held" and run["state"] == "ok":
            run["state"] = "held"
    return sorted(runs.values(), key=lambda run: str(run["at"]))


def _cards(rows: Sequence[Row], told: Mapping[str, Sequence[Row]], runs: Sequence[Row]) -> list[dict[str, str]]:
    def count(state: str) -> int:
        return sum(row["state"] == state for row in rows)

    lags = [row["lag_seconds"] for row in rows if row.get("lag_seconds") is not None]
    quarantined = sum(entry["n"] for entry in told["quarantine"])
    return [
        {"what": "tables", "value": str(len(rows)), "state": ""},
        {"what": "failed", "value": str(count("failed")), "state": "failed" if count("failed") else ""},
        {"what": "held", "value": str(count("held")), "state": "held" if count("held") else ""},
        {"what": "rows quarantined", "value": f"{quarantined:,}", "state": "held" if quarantined else ""},
        {"what": "changes read in these runs", "value": f"{sum(run['read'] for run in runs):,}", "state": ""},
        {"what": "behind the newest change", "value": ask.lag(min(lags)) if lags else "?", "state": ""},
    ]


def _chart(title: str, runs: Sequence[Row], value: Callable[[Row], float], unit: str) -> Markup:
    """Bars, one a run, with the highest value told; each says its own when it is pointed at."""
    width, height = _CHART
    highest = max((value(run) for run in runs), default=0) or 1
    step = width / max(len(runs), 1)
    bars = [
        _bar(place * step, step, height * value(run) / highest, height, run["state"], f"{run['at']}: {unit.format(value(run))}")
        for place, run in enumerate(runs)
    ]
    return Markup(
        '<svg viewBox="0 -18 {width} {whole}" width="{width}" role="img" aria-label="{title}">'
        '<text x="0" y="-6">{title}, at most {highest}</text>{bars}'
        '<line class="axis" x1="0" x2="{width}" y1="{height}" y2="{height}"/></svg>'
    ).format(width=width, height=height, whole=height + 24, title=title, highest=unit.format(highest), bars=Markup("").join(bars))


def _timeline(entries: Sequence[Row]) -> Markup:
    """Changes that one table read, a bar a run; what came late stands above the rest."""
    if not entries:
        return Markup("")
    width, height = _TIMELINE
    highest = max(entry["rows_read"] or 0 for entry in entries) or 1
    step = min(width / len(entries), 8)
    bars = []
    for place, entry in enumerate(entries):
        read, late = entry["rows_read"] or 0, entry["rows_late"] or 0
        state = "failed" if entry["status"] not in ("success", "held") else entry["status"]
        told = f"{str(entry['finished_at'])[:16]}: {read:,} changes" + (f", {late:,} late" if late else "")
        top = height * read / highest
        bars.append(_bar(place * step, step, max(top, 1.0), height, state if state == "failed" else "ok", told))
        if late:
            bars.append(_bar(place * step, step, height * late / highest, height, "late", told, below=top))
    return Markup('<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="timeline">{bars}</svg>').format(
        w=width, h=height, bars=Markup("").join(bars)
    )


def _bar(x: float, step: float, tall: float, height: int, state: str, told: str, *, below: float | None = None) -> Markup:
    """A bar that stands on the ground, or hangs from `below` it; told: what it says when it is pointed at."""
    kind = {"failed": " bad", "held": " late", "late": " late"}.get(state, "")
    y = height - tall if below is None else height - below
    return Markup('<rect class="bar{kind}" x="{x}" y="{y}" width="{w}" height="{h}"><title>{told}</title></rect>').format(
        kind=kind, x=f"{x:.1f}", y=f"{y:.1f}", w=f"{max(step - 1, 0.5):.1f}", h=f"{tall:.1f}", told=escape(told)
    )
