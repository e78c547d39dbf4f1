"""Answers of macros (macros/control/ask.sql, reconcile.sql) for a screen: status, explain, history, as-of, log, reconcile,
diff, late."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from delta_cdc.config import Project, Table
from delta_cdc.operations import plain

Row = Mapping[str, Any]
_TOLD = ("batch_id", "change_set", "changes", "newest", "final_rows", "final_rows_are_exact", "files")
_OPERATIONS = {"I": "insert", "U": "update", "D": "delete", "R": "read", "T": "truncate"}


def status_rows(project: Project, told: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """One row a table of the feeds, from what the macro `status` told.

    Keys: table; state (`not loaded`, `ok`, `paused`, `held`, `failed`); why (texts, where it is not ok); batch_id, to which
    it has come; change_set, that batch's, and loaded, when; newest, the source's time, and lag_seconds (None where that is
    no moment); changes, final_rows (exact unless final has deletion vectors), files; quarantined (text by reason);
    late_share, of the changes that were no duplicates.
    """
    tables = {row["name"]: row for row in told["tables"]}
    runs = {row["table"]: row for row in told["runs"]}
    out = []
    for table in project.tables:
        name = f"{table.feed}.{table.name}"
        row: dict[str, Any] = {"table": name, "state": "not loaded", "why": []}
        out.append(row)
        raw = [f"raw_{table.feed}"] if table.mixed and not table.is_private else []
        looked_at = [runs[model] for model in ("cdc_change_sets", *raw, *table.models) if model in runs]
        failed = [run for run in looked_at if run["status"] in ("error", "fail")]
        row["why"] += [f"{run['table']}: {plain(run['error'] or '')}" for run in failed]
        held = [hold for hold in told["holds"] if hold["table"] == table.staging_name]
        row["why"] += [f"batch {hold['batch_id']} ({hold['change_set']}) is held: {hold['reason']}" for hold in held]
        found = tables.get(name)
        if found is not None:
            row["state"] = "ok"
            staged = runs.get(table.staging_name, {})
            read, duplicate, late = (staged.get(f"rows_{what}") or 0 for what in ("read", "duplicate", "late"))
            reasons = [q for q in told["quarantine"] if q["feed"] == table.feed and q["source_table"] == table.name]
            row |= {
                **{each: found.get(each) for each in _TOLD},
                "loaded": staged.get("finished_at"),
                "lag_seconds": _seconds_since(found.get("newest")),
                "late_share": late / (read - duplicate) if read > duplicate else 0.0,
                "quarantined": ", ".join(f"{q['n']} {q['error']}" for q in reasons),
            }
        paused = table.settings.paused
        row["why"] += [f"paused: {paused}"] if paused else []
        if failed or held or paused:
            row["state"] = "failed" if failed else "held" if held else "paused"
    return out


def quarantined_elsewhere(project: Project, told: Mapping[str, Sequence[Row]]) -> list[str]:
    """Messages that are of no configured table, a text for each table and reason."""
    listed = {(table.feed, table.name) for table in project.tables}
    return [
        f"{row['feed']}{'.' + row['source_table'] if row['source_table'] else ''} ({row['n']:,} {row['error']})"
        for row in told["quarantine"] if (row["feed"], row["source_table"]) not in listed
    ]


def told_of(row: Row) -> dict[str, str]:
    """What both screen and page show of a row of `status_rows`, as text."""
    return {
        "newest": short(row.get("newest")),
        "lag": lag(row.get("lag_seconds")),
        "changes": number(row.get("changes")),
        "final": ("" if row.get("final_rows_are_exact", True) else "≤ ") + number(row.get("final_rows")),
        "files": number(row.get("files")),
        "late": f"{row['late_share']:.1%}" if row.get("late_share") else "",
        "quarantined": row.get("quarantined") or "",
    }


def show_status(rows: Sequence[Row], elsewhere: Sequence[str], console: Console) -> None:
    """rows: of `status_rows`. elsewhere: of `quarantined_elsewhere`."""
    headings = "table, state, last change set, newest change, lag, loaded, >changes, >final, >files, >late, quarantined"
    grid = _grid(*headings.split(", "))
    for row in rows:
        newest, behind, *counted = told_of(row).values()
        last = (row.get("change_set") or "").rsplit("/", 1)[-1]
        style = {"failed": "red", "held": "yellow", "paused": "yellow"}.get(row["state"], "")
        cells = (row["table"], row["state"], last, newest, behind, short(row.get("loaded")), *counted)
        grid.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(grid)
    reasons: dict[tuple[str, bool], list[str]] = {}  # once what holds for many: a feed that is paused, or could not be read
    for row in rows:
        for why in row["why"]:
            reasons.setdefault((why, row["state"] == "failed"), []).append(row["table"])
    for (why, failed), tables in reasons.items():
        more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
        console.print(Text(f"{tables[0]}{more}: {why}", style="red" if failed else "yellow"), soft_wrap=True)
    if elsewhere:
        said = f"Quarantined too, of no table above: {', '.join(elsewhere)}"
        console.print(Text(said, style="yellow"), soft_wrap=True)


def explained(table: Table, told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each change of a row as text, in order: position, what became of it, where it came from, and what it said that was new."""
    out = []
    known: dict[str | None, dict[str, Any]] = {}  # of each entity: its values so far
    entities = list(dict.fromkeys(c["entity"] for c in told["changes"] if c["entity"]))
    for change in told["changes"]:
        notes = []
        if change["error"]:
            notes.append(change["error"] if change["error"] == "retracted" else f"quarantined: {change['error']}")
        elif change["op"] == "T":
            notes.append("ends every row")
        elif change["is_held"]:
            notes.append("held: `delta-cdc status` says why")
        elif change["is_last"]:
            notes.append("last word: the row is gone" if change["op"] == "D" else "last word: what final shows")
        else:
            notes.append("applied")
        if change["is_late"]:
            notes.append("came late")
        if change["origin"] in ("unknown_update", "unknown_key", "unknown_delete", "absorbed"):
            notes.append(str(change["origin"]).replace("_", " "))
        missing = _parsed(change["missing"] or "[]")
        if missing:
            notes.append(f"says nothing of {', '.join(missing)}")
        if len(entities) > 1 and change["entity"]:
            notes.append(f"row {entities.index(change['entity']) + 1} of {len(entities)} that had such a key")
        key = _pairs(change["key"])
        if change["key_before"]:
            key = f"{_pairs(change['key_before'])} → {key}"
        before = known.setdefault(change["entity"], {})
        values = {k: v for k, v in _parsed(change["values"] or "{}").items() if k not in missing}
        news = {} if change["op"] in ("T", "D") else {k: v for k, v in values.items() if k not in before or before[k] != v}
        if not change["error"]:
            before.update(values)
        out.append({
            "position": ", ".join(str(v) for v in _parsed(change["sequence"] or "{}").values()),
            **({"source time": short(change["occurred_at"])} if table.settings.occurred_at else {}),
            "operation": _OPERATIONS.get(change["op"], str(change["op"] or "?")),
            "key": "" if change["op"] == "T" else key,
            "became": "; ".join(notes),
            "change set": f"{change['batch_id']}: {str(change['change_set']).rsplit('/', 1)[-1]} row {change['row']}",
            "staged": short(change["staged_at"]),
            "says": _said(news),
        })
    return out


def show_explained(table: Table, told: Mapping[str, Any], console: Console) -> None:
    _show_records(explained(table, told), console)
    final = [_parsed(row) for row in told["final"]]
    console.print()
    if not final:
        console.print(f"{table.final_name} has no row there.")
    for row in final:
        console.print(Text(f"{table.final_name}: {_said(row)}"), soft_wrap=True)


def show_history(rows: Iterable[str], console: Console) -> None:
    """Versions as columns; those of the package's own bookkeeping are left out."""
    shown = [{k: _value(v) for k, v in _parsed(row).items() if not k.startswith("_cdc_")} for row in rows]
    _show_records(shown, console)


def show_as_of(table: Table, at: str, told: Mapping[str, Any], console: Console) -> None:
    if told["rows"]:
        show_history(told["rows"], console)
        console.print()
    counted = "1 row" if told["number"] == 1 else f"{told['number']:,} rows"
    shown = f", {len(told['rows']):,} shown" if told["number"] > len(told["rows"]) else ""
    console.print(Text(f"{table.final_name} at {at}: {counted}{shown}."), soft_wrap=True)


def show_logs(logs: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """The commits of some tables, newest first, and what is wrong with their logs."""
    for place, (name, log) in enumerate(logs.items()):
        console.print(Text(f"{chr(10) if place else ''}{name}  ({log['location']})", style="bold"), soft_wrap=True)
        counted = (">batch", ">inserted", ">updated", ">deleted", ">files +", ">files -")
        grid = _grid("version", "at (UTC)", "operation", *counted, "checkpoint", "columns")
        for commit in log["commits"]:
            counts = ("app_version", "inserted", "updated", "deleted", "files_added", "files_removed")
            cells = (str(commit["version"]), commit["at"], commit["operation"] or "", *(number(commit[name]) for name in counts))
            marks = ("yes" if commit["checkpoint"] else "", "; ".join(commit["schema_changes"] or []))
            grid.add_row(*(Text(cell) for cell in (*cells, *marks)))
        console.print(grid)
        for finding in log["findings"]:
            console.print(Text(f"{finding['what']}: {finding['why']}. {finding['fix']}.", style="yellow"), soft_wrap=True)


def differences(told: Mapping[str, Any]) -> int:
    """How many rows of final and the other side are not the same, copies of a key counted."""
    return int(told["only_in_final"] + told["only_in_other"] + told["differing"] + told["repeated_keys"])


def show_reconciled(table: Table, against: str, told: Mapping[str, Any], console: Console) -> None:
    counted = f"{table.final_name}: {told['final_rows']:,} rows; {against}: {told['other_rows']:,} rows."
    console.print(Text(counted), soft_wrap=True)
    if told["left_out"]:
        console.print(Text(f"Not compared, as one side lacks them: {', '.join(told['left_out'])}."), soft_wrap=True)
    if not differences(told):
        console.print("They are equal.")
        return
    counts = {"only in final": "only_in_final", "only there": "only_in_other", "with other values": "differing",
              "that repeat(s) a key there": "repeated_keys"}
    said = [_counted(told[name], what) for what, name in counts.items() if told[name]]
    console.print(Text(f"They differ: {', '.join(said)}.", style="red"), soft_wrap=True)
    for row in told["examples"]:
        values = _parsed(row["values"])
        pairs = ", ".join(f"{column} = {_value(ours)}, there {_value(theirs)}" for column, (ours, theirs) in values.items())
        what = {"final": "only in final", "other": "only there"}.get(row["side"], pairs)
        console.print(Text(f"  {_pairs(row['key'])}: {what}"), soft_wrap=True)


def show_diff(table: Table, since: str, until: str, told: Mapping[str, Any], console: Console) -> None:
    counts = (("only_in_final", "added"), ("differing", "changed"), ("only_in_other", "removed"))
    said = ", ".join(f"{told[name]:,} {what}" for name, what in counts)
    rows = f"{told['other_rows']:,} rows, then {told['final_rows']:,}"
    console.print(Text(f"{table.final_name} from {since} to {until}: {rows}; {said}."), soft_wrap=True)
    for row in told["examples"]:
        values = _parsed(row["values"])
        pairs = ", ".join(f"{column} = {_value(then)} → {_value(now)}" for column, (now, then) in values.items())
        what = {"final": "added", "other": "removed"}.get(row["side"], pairs)
        console.print(Text(f"  {_pairs(row['key'])}: {what}"), soft_wrap=True)


def show_late(rows: Sequence[Row], console: Console) -> None:
    """How late changes came; a horizon (`compact --before`) under which none ever came."""
    grid = _grid("table", ">changes", ">late", ">share", ">half within", ">99% within", ">all within", "none came for before")
    for row in sorted(rows, key=lambda each: str(each["name"])):
        behind = row["seconds_of_late"] or (None, None, None)
        seconds = [f"{each:.2f} s" if each is not None and each < 10 else lag(each) for each in behind]
        share = f"{row['late'] / row['changes']:.1%}" if row["late"] else ""
        cells = (row["name"], number(row["changes"]), number(row["late"]), share, *seconds, row["none_before"] or "")
        grid.add_row(*(Text(cell) for cell in cells))
    console.print(grid)


def _counted(number: int, what: str) -> str:
    return f"1 row {what.replace('(s)', 's')}" if number == 1 else f"{number:,} rows {what.replace('(s)', '')}"


def _show_records(rows: Sequence[Mapping[str, str]], console: Console) -> None:
    grid = _grid(*(rows[0] if rows else ()))
    for row in rows:
        grid.add_row(*(Text(each) for each in row.values()))
    console.print(grid)


def _grid(*headings: str) -> RichTable:
    grid = RichTable(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left", overflow="fold")
    return grid


def _pairs(text: str | None) -> str:
    return _said(_parsed(text or "{}"))


def _said(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} = {_value(v)}" for k, v in values.items())


def _parsed(text: str) -> Any:
    """A JSON text, numbers with a point as they are written: 19.90 stays 19.90."""
    return json.loads(text, parse_float=str)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def short(moment: Any) -> str:
    return "" if moment is None else str(moment)[:19].replace("T", " ")


def number(value: Any) -> str:
    return "" if value is None else f"{value:,}"


def _seconds_since(moment: str | None) -> int | None:
    """From a moment to now; None where it is none. Without a zone it is taken for UTC."""
    if str(moment or "").isdecimal():  # a number that may read as a date
        return None
    try:
        then = datetime.fromisoformat(str(moment or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((datetime.now(timezone.utc) - (then if then.tzinfo else then.replace(tzinfo=timezone.utc))).total_seconds())


def lag(seconds: int | None) -> str:
    """A time span in its two largest units.

    >>> lag(95), lag(3 * 3600 + 120), lag(9 * 86400)
    ('1 m 35 s', '3 h 2 m', '9 d 0 h')
    """
    if seconds is None:
        return ""
    parts: list[str] = []
    rest = max(int(seconds), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if rest >= size or parts or unit == "s":
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(parts[:2])
