"""Answers of macros (macros/control/ask.sql, reconcile.sql) for a screen: status, explain, history, as-of, log, reconcile,
diff, late."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich.console import Console
from rich.measure import Measurement

from delta_cdc.operations import plain
from delta_cdc.project import Project, Table
from delta_cdc.screen import as_text, grid, tell

Row = Mapping[str, Any]
_TOLD = ("batch_id", "change_set", "changes", "newest", "final_rows", "final_rows_are_exact", "files")
_NARROWEST = 6  # a column of a table has this much of a screen at least
_OPERATIONS = {"I": "insert", "U": "update", "D": "delete", "R": "read", "T": "truncate"}


def status_rows(project: Project, told: Mapping[str, Any], of: Sequence[Table] | None = None) -> list[dict[str, Any]]:
    """One row a table of the feeds, or of these only, from what the macro `status` told.

    Keys: table; state (`not loaded`, `ok`, `paused`, `held`, `failed`); why (texts, where it is not ok); batch_id, to which
    it has come; change_set, that batch's, and loaded, when; newest, the source's time, and lag_seconds (None where that is
    no moment); changes, final_rows (exact unless final has deletion vectors), files; quarantined (text by reason);
    late_share, of the changes that were no duplicates. Where it told them, counts (None of a table without keys): ties,
    known_inserts, unknown_updates, unknown_deletes, unknown_old_keys, collisions, partial_without_base.
    """
    tables = {row["name"]: row for row in told["tables"]}
    runs = {row["table"]: row for row in told["runs"]}
    out = []
    for table in project.tables if of is None else of:
        name = table.full_name
        row: dict[str, Any] = {"table": name, "state": "not loaded", "why": []}
        out.append(row)
        models = dict.fromkeys(("cdc_change_sets", table.changes_from, *table.models))
        looked_at = [runs[model] for model in models if model in runs]
        failed = [run for run in looked_at if run["status"] in ("error", "fail")]
        row["why"] += [f"{run['table']}: {plain(run['error'] or '')}" for run in failed]
        held = [hold for hold in told["holds"] if hold["table"] == table.staging_name]
        row["why"] += [f"batch {hold['batch_id']} ({hold['change_set']}) is held: {hold['reason']}" for hold in held]
        found = tables.get(name)
        gaps = _gaps(table, runs.get("cdc_change_sets", {}), found) if found else []
        row["why"] += gaps
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
                **({"counts": told["counts"].get(name)} if "counts" in told else {}),
            }
        paused = table.settings.paused
        row["why"] += [f"paused: {paused}"] if paused else []
        if failed or held or gaps or paused:
            row["state"] = "failed" if failed else "held" if held or gaps else "paused"
    return out


def _gaps(table: Table, ledger: Row, found: Row) -> list[str]:
    """What the last run said of gaps in the numbers of a table's change sets (`expect_contiguous`). ledger: its row of `runs`.
    found: the table's of `tables`; its `folder` is None where its feed has no such numbers."""
    said = ledger["error"].splitlines() if ledger.get("status") == "held" and found["folder"] else []
    return [text for text in said if re.match(f"feed {re.escape(table.feed)}: [^,]* in {re.escape(found['folder'])}[,/]", text)]


def quarantined_elsewhere(project: Project, told: Mapping[str, Any]) -> list[str]:
    """Messages that are of no configured table, a text for each table and reason."""
    return [f"{name} ({row['n']:,} {row['error']})" for name, row in _elsewhere(project, told)]


def not_listed_rows(project: Project, told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same beside `status_rows`, with state `not listed`; table is the feed alone where a message names none."""
    return [
        {"table": name, "state": "not listed", "why": [], "quarantined": f"{row['n']} {row['error']}"}
        for name, row in _elsewhere(project, told)
    ]


def _elsewhere(project: Project, told: Mapping[str, Any]) -> list[tuple[str, Row]]:
    listed = {(table.feed, table.name) for table in project.tables}
    return [
        (".".join(filter(None, (row["feed"], row["source_table"]))), row)
        for row in told["quarantine"]
        if (row["feed"], row["source_table"]) not in listed
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
    table = grid(*headings.split(", "))
    for row in rows:
        newest, behind, *counted = told_of(row).values()
        last = (row.get("change_set") or "").rsplit("/", 1)[-1]
        style = {"failed": "red", "held": "yellow", "paused": "yellow"}.get(row["state"], "")
        cells = (row["table"], row["state"], last, newest, behind, short(row.get("loaded")), *counted)
        table.add_row(*(as_text(cell, style) for cell in cells))
    console.print(table)
    _show_counts([row for row in rows if row.get("counts")], console)
    reasons: dict[tuple[str, bool], list[str]] = {}  # once what holds for many: a feed that is paused, or could not be read
    for row in rows:
        for why in row["why"]:
            reasons.setdefault((why, row["state"] == "failed"), []).append(row["table"])
    for (why, failed), tables in reasons.items():
        more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
        tell(console, f"{tables[0]}{more}: {why}", "red" if failed else "yellow")
    if elsewhere:
        said = f"Quarantined too, of no table above: {', '.join(elsewhere)}"
        tell(console, said, "yellow")


def _show_counts(rows: Sequence[Row], console: Console) -> None:
    """rows: of `status_rows`, each with counts."""
    if rows:
        table = grid("table", *(f">{name.replace('_', ' ')}" for name in rows[0]["counts"]))
        for row in rows:
            table.add_row(*(as_text(cell) for cell in (row["table"], *(number(count) for count in row["counts"].values()))))
        console.print()
        console.print(table)


def explained(table: Table, told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each change of a row as text, in order: position, what became of it, where it came from, and what it said that was new."""
    out = []
    known: dict[str | None, dict[str, Any]] = {}  # of each entity: its values so far
    entities = list(dict.fromkeys(c["entity"] for c in told["changes"] if c["entity"]))
    for change in told["changes"]:
        notes = []
        if change["error"]:
            notes.append(change["error"] if change["error"] == "retracted" else f"quarantined: {change['error']}")
        elif change["is_held"]:
            notes.append("held: `delta-cdc status` says why")
        elif change["op"] == "T":
            notes.append("ends every row")
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
        ends = change["op"] in ("T", "D")
        news = {} if ends else {k: v for k, v in values.items() if k not in before or before[k] != v}
        if not change["error"] and ends:  # nothing folds over its end (P4): what comes again is new
            (known if change["op"] == "T" else before).clear()
        elif not change["error"]:
            before.update(values)
        out.append(
            {
                "position": ", ".join(map(_value, _parsed(change["sequence"] or "{}").values())),
                **({"source time": short(change["occurred_at"])} if table.settings.occurred_at else {}),
                "operation": _OPERATIONS.get(change["op"], str(change["op"] or "?")),
                "key": "" if change["op"] == "T" else key,
                "became": "; ".join(notes),
                "change set": f"{change['batch_id']}: {str(change['change_set']).rsplit('/', 1)[-1]} row {change['row']}",
                "staged": short(change["staged_at"]),
                "says": _said(news),
            }
        )
    return out


def show_explained(table: Table, told: Mapping[str, Any], console: Console) -> None:
    _show_records(explained(table, told), console)
    final = [_parsed(row) for row in told["final"] or ()]
    console.print()
    if told["final"] is None:
        console.print(f"There is no {table.final_name} yet. Run `dbt run` first.")
    elif not final:
        console.print(f"{table.final_name} has no row there.")
    for row in final:
        tell(console, f"{table.final_name}: {_said(row)}")


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
    tell(console, f"{table.final_name} at {at}: {counted}{shown}.")


def show_logs(logs: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """The commits of some tables, newest first, and what is wrong with their logs."""
    for place, (name, log) in enumerate(logs.items()):
        where = "; ".join(filter(None, (log["location"], log["protocol"])))
        tell(console, f"{chr(10) if place else ''}{name}  ({where})", "bold")
        counted = (">batch", ">inserted", ">updated", ">deleted", ">files +", ">files -")
        table = grid("version", "at (UTC)", "operation", *counted, "checkpoint", "columns")
        for commit in log["commits"]:
            counts = ("app_version", "inserted", "updated", "deleted", "files_added", "files_removed")
            cells = (str(commit["version"]), commit["at"], commit["operation"] or "", *(number(commit[name]) for name in counts))
            marks = ("yes" if commit["checkpoint"] else "", "; ".join(commit["schema_changes"] or []))
            table.add_row(*(as_text(cell) for cell in (*cells, *marks)))
        console.print(table)
        for finding in log["findings"]:
            tell(console, f"{finding['what']}: {finding['why']}. {finding['fix']}.", "yellow")


def differences(told: Mapping[str, Any]) -> int:
    """How many rows of final and the other side are not the same, copies of a key counted."""
    return int(told["only_in_final"] + told["only_in_other"] + told["differing"] + told["repeated_keys"])


def show_reconciled(table: Table, against: str, told: Mapping[str, Any], console: Console) -> None:
    counted = f"{table.final_name}: {told['final_rows']:,} rows; {against}: {told['other_rows']:,} rows."
    tell(console, counted)
    if told["left_out"]:
        tell(console, f"Not compared, as one side lacks them: {', '.join(told['left_out'])}.")
    if not differences(told):
        console.print("They are equal.")
        return
    counts = {
        "only in final": "only_in_final",
        "only there": "only_in_other",
        "with other values": "differing",
        "that repeat(s) a key there": "repeated_keys",
    }
    said = [_counted(told[name], what) for what, name in counts.items() if told[name]]
    tell(console, f"They differ: {', '.join(said)}.", "red")
    _show_examples(told["examples"], {"final": "only in final", "other": "only there"}, "{0}, there {1}", console)


def show_diff(table: Table, since: str, until: str, told: Mapping[str, Any], console: Console) -> None:
    counts = (("only_in_final", "added"), ("differing", "changed"), ("only_in_other", "removed"))
    said = ", ".join(f"{told[name]:,} {what}" for name, what in counts)
    rows = f"{told['other_rows']:,} rows, then {told['final_rows']:,}"
    tell(console, f"{table.final_name} from {since} to {until}: {rows}; {said}.")
    _show_examples(told["examples"], {"final": "added", "other": "removed"}, "{1} → {0}", console)


def _show_examples(rows: Iterable[Row], of_side: Mapping[str, str], both: str, console: Console) -> None:
    """Differing rows. of_side: what is said of one that only this side has. both: how a column's value in final and the other's
    are said together."""
    for row in rows:
        values = _parsed(row["values"])
        pairs = ", ".join(f"{column} = {both.format(*map(_value, pair))}" for column, pair in values.items())
        tell(console, f"  {_pairs(row['key'])}: {of_side.get(row['side'], pairs)}")


def show_late(rows: Sequence[Row], console: Console) -> None:
    """How late changes came; a horizon (`compact --before`) under which none ever came."""
    table = grid("table", ">changes", ">late", ">share", ">half within", ">99% within", ">all within", "none came for before")
    for row in sorted(rows, key=lambda each: str(each["name"])):
        behind = row["seconds_of_late"] or (None, None, None)
        seconds = [f"{each:.2f} s" if each is not None and each < 10 else lag(each) for each in behind]
        share = f"{row['late'] / row['changes']:.1%}" if row["late"] else ""
        cells = (row["name"], number(row["changes"]), number(row["late"]), share, *seconds, row["none_before"] or "")
        table.add_row(*(as_text(cell) for cell in cells))
    console.print(table)


def _counted(number: int, what: str) -> str:
    return f"1 row {what.replace('(s)', 's')}" if number == 1 else f"{number:,} rows {what.replace('(s)', '')}"


def _show_records(rows: Sequence[Mapping[str, str]], console: Console) -> None:
    """As a table; where the screen has no room for its columns, a line a value: rich would leave columns out and not say so."""
    table = grid(*(rows[0] if rows else ()))
    for row in rows:
        table.add_row(*(as_text(each) for each in row.values()))
    is_wide = Measurement.get(console, console.options.update(width=1_000_000), table).maximum > console.width
    if not is_wide or len(table.columns) * _NARROWEST <= console.width:
        console.print(table)
        return
    for place, row in enumerate(rows):
        if place:
            console.print()
        for name, value in row.items():
            tell(console, f"{name}: {value}")


def _pairs(text: str | None) -> str:
    return _said(_parsed(text or "{}"))


def _said(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} = {_value(v)}" for k, v in values.items())


def _parsed(text: str) -> Any:
    """A JSON text, numbers with a point as they are written: 19.90 stays 19.90."""
    return json.loads(text, parse_float=_Written)


class _Written(str):
    """A number with a point."""


def _value(value: Any, inside: bool = False) -> str:
    """A value as text; inside of another one as JSON."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(name, True)}: {_value(each, True)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_value(each, True) for each in value)}]"
    is_plain = isinstance(value, _Written) or (isinstance(value, str) and not inside)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


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
