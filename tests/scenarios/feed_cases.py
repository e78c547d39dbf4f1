"""Feeds-folders (tests/cases/README.md): a feed each, configured as `delta-cdc discover` proposes, delivered step by step, all
feeds of a step in one run."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from delta_cdc.discover import Discovery, FoundTable, discover, lines_of, settings_of, short_names
from delta_cdc.errors import CdcError
from tests.scenarios.project import UserProject

WHOLE = "t"  # the table of a feed whose messages name none


@dataclass
class FeedCase:
    """path: where the case is. feed: the feed that it becomes. content: expected.json. refusals: why it could not be configured
    or run. differences: per step what is not as expected; None where it is. quarantined: rows, after all steps. folder: where
    its messages arrive."""

    path: Path
    feed: str
    content: Mapping[str, Any]
    refusals: list[str] = field(default_factory=list)
    differences: list[str | None] = field(default_factory=list)
    found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    quarantined: list[str] = field(default_factory=list)
    folder: Path = Path()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        return self.content.get("steps") or [{"inputs": [{"file": f.name} for f in sorted(self.path.glob("input*"))]}]

    def inputs(self, step: int) -> list[Path]:
        given = self.steps[step]["inputs"]
        return [self.path / (each["file"] if isinstance(each, Mapping) else each) for each in given]

    def discovered(self, step: int) -> Discovery:
        """What the messages up to a step tell of the tables."""
        paths = [path for before in range(step + 1) for path in self.inputs(before)]
        return discover(self.content["format"], lines_of(paths), whole=WHOLE)

    def configuration(self, found: Discovery) -> list[dict[str, Any]]:
        """The tables' entries for `UserProject.configure`."""
        names = short_names(found.tables)
        return [self._table(place, table, names[table.name]) for place, table in enumerate(found.tables.values())]

    def _table(self, place: int, table: FoundTable, name: str) -> dict[str, Any]:
        cdc = {**settings_of(table, name), "final_name": f"final_{self.feed}_{place}"}
        given = self._of_table("key", table, name)
        if given:
            spelled = {column.lower(): column for column in table.columns}
            cdc["keys"] = [spelled.get(key.lower(), key) for key in given]
        if not cdc.get("keys"):
            cdc["keyless"] = "append"
        types = self._of_table("schema", table, name) or {}
        return {"name": name, "cdc": cdc, "columns": {c: types.get(c) or kind or "string" for c, kind in table.columns.items()}}

    def _of_table(self, setting: str, table: FoundTable, name: str) -> Any:
        """What the file gives for a table: for all of them, or under its name."""
        given = self.content.get(setting)
        if isinstance(given, Mapping) and all(isinstance(each, (list, Mapping)) for each in given.values()):
            for each, value in given.items():
                if each.lower() in (table.name.lower(), name.lower()):
                    return value
            return None
        return given


def read_feeds(folders: Sequence[Path]) -> list[FeedCase]:
    return [FeedCase(path, f"f{n:04d}", json.loads((path / "expected.json").read_text())) for n, path in enumerate(folders)]


def run_feeds(project: UserProject, cases: Sequence[FeedCase]) -> None:
    """Deliver the inputs of all cases, step by step, with a dbt run for each, and compare after it."""
    landing = project.path / "landing"
    configured: dict[str, list[dict[str, Any]]] = {}
    for step in range(max(len(case.steps) for case in cases)):
        arriving = [case for case in cases if step < len(case.steps)]
        for case in arriving:
            _configure(project, case, step, landing, configured)
        arriving = [case for case in arriving if case.feed in configured]
        if not arriving:
            continue
        project.generate()
        for case in arriving:
            case.folder.mkdir(parents=True, exist_ok=True)
            for place, path in enumerate(case.inputs(step)):
                shutil.copy(path, case.folder / f"{step:03d}-{place:03d}-{path.name}")
        _note_failures(
            project.try_dbt("run", "--select", "cdc_change_sets", *(f"tag:{c.feed}" for c in arriving), quiet=True), cases
        )
        for case in arriving:
            case.found = {t["name"]: _final(project, t) for t in configured[case.feed]}
            case.differences.append(compare(case.steps[step].get("tables"), case.found))
    for case in cases:
        for table in configured.get(case.feed, []):
            case.quarantined += _quarantined(project, case.feed, table["name"])


def _configure(
    project: UserProject, case: FeedCase, step: int, landing: Path, configured: dict[str, list[dict[str, Any]]]
) -> None:
    try:
        found = case.discovered(step)
        tables = case.configuration(found)
    except CdcError as error:
        case.refusals.append(str(error))
        return
    whole = list(found.tables) == [WHOLE]  # the messages name no table, so the folder has to
    case.folder = landing / case.feed / (WHOLE if whole else "")
    if not tables or tables == configured.get(case.feed):
        return
    settings = {
        "format": case.content["format"],
        "location": str(landing / case.feed / ("{table}" if whole else "")),
        "change_set_order": "name",
        **case.content.get("settings", {}),
    }
    project.configure(case.feed, settings=settings, tables=tables)
    problems = [p for p in project.problems() if p.feed == case.feed]
    if not problems:
        configured[case.feed] = tables
        return
    case.refusals += map(str, problems)
    if case.feed in configured:
        project.configure(case.feed, settings=settings, tables=configured[case.feed])
    else:
        shutil.rmtree(project.path / "models" / case.feed)


def _note_failures(result: Any, cases: Sequence[FeedCase]) -> None:
    for failed in UserProject.failed(result):
        owners = [case for case in cases if case.feed in failed.node.tags]
        if not owners:
            raise AssertionError(f"{failed.node.name}: {failed.message}")
        owners[0].refusals.append(f"{failed.node.name}: {failed.message}")


def _final(project: UserProject, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = f"{project.schema}.{table['cdc']['final_name']}"
    described = project.rows_if_any(f"describe {name}") or []
    types = {row["col_name"]: row["data_type"] for row in described if not row["col_name"].startswith("#")}
    # the nearest double of a float's own text, which is what others print
    columns = [f"cast(cast(`{c}` as string) as double) as `{c}`" if kind == "float" else f"`{c}`" for c, kind in types.items()]
    rows = project.rows(f"select {', '.join(columns)} from {name}") if types else []
    return [{k: v for k, v in row.items() if not k.startswith("_cdc_")} for row in rows]


def _quarantined(project: UserProject, feed: str, table: str) -> list[str]:
    staged = f"{{schema}}.stg_{feed}__{table}"
    reasons = project.rows_if_any(
        f"select _cdc_error as reason, count(*) as n from {staged} where _cdc_error is not null group by 1 order by 1"
    )
    return [f"{row['n']} of {table}: {row['reason']}" for row in reasons or []]


# --------------------------------------------------------------------------------
# Comparison: expected values are text, as another product printed them


def compare(expected: Mapping[str, Any] | None, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str | None:
    """What differs between the tables that a step expects ({name: {columns, rows}}) and those found; None if nothing does."""
    said = ""
    for name, table in (expected or {}).items():
        rows = next((rows for t, rows in found.items() if t.lower() == name.rsplit(".", 1)[-1].lower()), None)
        if rows is None and len(expected or {}) == 1:  # one target, which the messages name otherwise or in shards
            rows = [row for each in found.values() for row in each]
        if rows is None:
            said += f"  no table {name}\n"
            continue
        said += _difference(table["columns"], table["rows"], rows, name)
    return said or None


def _difference(columns: Sequence[str], expected: Sequence[Sequence[Any]], found: Sequence[Mapping[str, Any]], name: str) -> str:
    ours = [{k.lower(): v for k, v in row.items()} for row in found]
    kinds = {c: next((type(row[c.lower()]) for row in ours if row.get(c.lower()) is not None), str) for c in columns}
    wanted = Counter(tuple(_as(kinds[c], v) for c, v in zip(columns, row, strict=True)) for row in expected)
    got = Counter(tuple(_as(kinds[c], row.get(c.lower())) for c in columns) for row in ours)
    lost, extra = wanted - got, got - wanted
    shown = [c for place, c in enumerate(columns) if {row[place] for row in lost} != {row[place] for row in extra}] or columns
    said = ""
    for sign, rows in (("-", lost), ("+", extra)):
        for row in rows.elements():
            values = dict(zip(columns, row, strict=True))
            said += f"  {sign} {name}: { {c: values[c] for c in shown} }\n"
    return said


def _as(kind: type, value: Any) -> str | None:
    """A value of a column of this Python type, or another product's text of it, in one spelling."""
    if value is None:
        return None
    if kind is bool:
        return str(str(value).lower() in ("true", "t", "1")).lower()
    if kind in (int, float, Decimal):
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            return str(value)
        return "0" if number == 0 else format(number.normalize(), "f")
    if kind in (bytes, bytearray):
        return (
            str([b - 256 if b > 127 else b for b in value]) if isinstance(value, (bytes, bytearray)) else _bytes_text(str(value))
        )
    if kind is datetime:
        moment = value if isinstance(value, datetime) else _moment(str(value))
        return moment.isoformat() if isinstance(moment, datetime) else moment
    if kind is date:
        text = str(value)
        return str(_day(int(text))) if text.lstrip("-").isdigit() else text
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _bytes_text(text: str) -> str:
    """Bytes as Java's list of signed numbers, from that or from PostgreSQL's hexadecimal."""
    if text.startswith("\\x"):
        return str([b - 256 if b > 127 else b for b in bytes.fromhex(text[2:])])
    return text


def _moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).replace(tzinfo=None)
    except ValueError:
        return text


def _day(days: int) -> date:
    return date.fromordinal(date(1970, 1, 1).toordinal() + days)
