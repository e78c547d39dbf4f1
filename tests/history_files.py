"""Random histories (tests/histories.py) as rows-files (tests/cases/README.md), with what the oracle says of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import accumulate

from tests import oracle

PLACE = {"op": "string", "seq": "bigint", "place": "bigint", "txn": "string"}
WILD = ({"n": ("n", "int")},)  # the one shape of wild changes
BITS = {"smallint": 16, "int": 32, "bigint": 64}
# What a rows-file gives for a feed of flat rows.
ROWS = {
    "delete_when": "op = 'D'",
    "truncate_when": "op = 'T'",
    "operation": "op",
}
# Messages of the mixed feed that are no table's.
NOISE = [{"action": "I", "schema": "s", "table": "nobody", "columns": [{"name": "id", "value": 1}]}, {"what": "no message"}]


@dataclass(frozen=True)
class Listed:
    """A column in a configuration: its name, its type, and what `renamed_columns` says that it was called."""

    name: str
    type: str
    old: str | None


@dataclass(frozen=True)
class Delivered:
    """Changes as they arrived, and how their table is configured. A part of a history will do: it is made smaller where it fails.

    style: one of tests.histories.STYLES, or "wild". shapes: of the source's table (`tests.histories.History`).
    lead: by how many change sets the configuration is ahead of what comes. settings: more of the table's.
    mixed: it shares its change sets with other tables, as messages of wal2json. composite: its key has two columns.
    wide_key_from: the run with which its key becomes a bigint. clock: how many transactions happen at one moment. runs: how many
    there are; the last finds all sets that are left.
    """

    style: str
    changes: Sequence[dict]
    shapes: Sequence[Mapping[str, tuple[str, str]]] = WILD
    lead: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)
    mixed: bool = False
    composite: bool = False
    wide_key_from: int | None = None
    clock: int = 1
    runs: int = 3

    @cached_property
    def sets(self) -> list[list[dict]]:
        found: dict[tuple[int, int], list[dict]] = {}
        for change in sorted(self.changes, key=lambda change: (change["batch"], change["set"], change["row"])):
            found.setdefault((change["batch"], change["set"]), []).append(change)
        return [*found.values()]

    @cached_property
    def _last_sets(self) -> list[int]:
        """Of each set the last one that its run finds."""
        return [number if number < self.runs - 1 else len(self.sets) - 1 for number in range(len(self.sets))]

    @cached_property
    def configurations(self) -> list[dict[str, Listed]]:
        """What is listed when a set is loaded: the newest shape that has come, or that of some sets before or after it."""
        newest = [*accumulate((max(change.get("shape", 0) for change in changes) for changes in self.sets), max)]
        out: list[dict[str, Listed]] = []
        for last in self._last_sets:
            shape = self.shapes[newest[min(last + self.lead, len(newest) - 1)] if last + self.lead >= 0 else 0]
            before = out[-1] if out else {}
            out.append({
                column: Listed(name, type_, before[column].name if column in before and before[column].name != name
                               else before[column].old if column in before else None)
                for column, (name, type_) in shape.items()
            })  # fmt: skip
        return out

    @cached_property
    def published(self) -> dict[str, str]:
        """Columns of history and final, with their names; one no longer listed stays where columns are not synchronised (E3)."""
        names = {column: each.name for listed in self.configurations for column, each in listed.items()}
        if self.settings.get("on_schema_change") == "sync_all_columns":
            return {column: name for column, name in names.items() if column in self.configurations[-1]}
        return names

    @property
    def unpublished(self) -> set[str]:
        """What columns were called that history and final do not have under that name (E2, E3)."""
        return {each.name for listed in self.configurations for each in listed.values()} - {*self.published.values()}

    @cached_property
    def as_read(self) -> list[dict]:
        """The changes that can be used, as the configuration of their load reads them."""
        known: set[str] = set()
        out = []
        for changes, listed in zip(self.sets, self.configurations, strict=True):
            gone = known - set(listed)
            known |= set(listed)
            out += [read for change in changes if (read := self._read(change, listed, gone))]
        return out

    def _read(self, change: dict, listed: Mapping[str, Listed], gone: set[str]) -> dict | None:
        """None: it is quarantined (E4, Q1)."""
        shape, values, undeclared = self.shapes[change.get("shape", 0)], {}, {}
        for column, value in change["values"].items():
            name = shape[column][0] if column in shape else column
            if column == "id":
                values[column] = value
            elif column not in listed or name not in (listed[column].name, listed[column].old):
                undeclared[name] = value  # E1
            elif not fits(value, listed[column].type):
                return None
            elif value is not None or change["op"] != "U" or not self._is_silent(column):  # P1
                values[column] = value[:10] if listed[column].type == "date" and value else value
        if change["op"] in "IRU":
            values |= dict.fromkeys(gone)  # E3
        # the transaction is a column of flat rows, so that changes that differ in it alone are not the same
        told = {} if self.mixed else {"txn": change["transaction"]}
        return {**change, "values": values | told, "undeclared": undeclared, "listed": {*listed, "id", *told}}

    def _is_silent(self, column: str) -> bool:
        silent = self.settings.get("ignore_null") or ()
        return silent is True or column in silent

    @cached_property
    def staged(self) -> list[dict]:
        """Each change once (O4), and under its key (K8)."""
        return oracle.with_keys(oracle.without_duplicates(self.as_read), self.settings.get("alternate_keys") or ())

    @cached_property
    def counted(self) -> list[dict]:
        """Those that history and final are made of: split key changes put together."""
        changes = [
            {**change, "values": {name: value for name, value in change["values"].items() if name != "txn"}}
            for change in self.staged
        ]
        return oracle.with_pairs(changes) if self.style == "split pairs" else changes

    def final(self) -> list[dict]:
        shape = {"time": self._time} | {name: self.settings.get(name) for name in ("created_at", "updated_at")}
        added = [self.settings[name] for name in ("created_at", "updated_at") if name in self.settings]
        if self.settings.get("delete_mode") == "soft":
            shape |= {"soft": True, "soft_nulls": self.settings.get("soft_delete_nulls")}
            added += ["_cdc_is_deleted", "_cdc_deleted_at"]
        rows = oracle.final(self.counted, set_on_insert=self.settings.get("set_on_insert", ()), **shape)
        return [self._shown(key, row) | {name: row[name] for name in added} for key, row in rows.items()]

    def history(self) -> list[dict]:
        """As a rows-file of `scd` 2 has them."""
        tracked = self.settings.get("track_history", self.published)
        if isinstance(tracked, Mapping) and "except" in tracked:
            tracked = [column for column in self.published if column not in tracked["except"]]
        set_on_insert = self.settings.get("set_on_insert", ())
        versions = oracle.history(self.counted, tracked=tracked, set_on_insert=set_on_insert, time=self._time)
        return [self._shown(key, row) | {"__START_AT": start, "__END_AT": end} for key, row, start, end in versions]

    def _time(self, change: dict) -> int | None:
        return change["sequence"] and change["sequence"][0] // self.clock

    def _shown(self, key: tuple, row: dict) -> dict:
        return {**self._key_columns(key), **{name: row.get(column) for column, name in self.published.items()}}

    def _key_columns(self, key: tuple | None) -> dict:
        """The columns of a key, which is one number for the oracle. None: of no row."""
        number = None if key is None else key[0]
        if not self.composite:
            return {"id": number}
        return {"id": None, "the part": None} if number is None else {"id": number // 3, "the part": f"p{number % 3}"}

    def undeclared(self) -> Counter:
        """What staging keeps of columns that nobody listed: how often each name with each value."""
        return Counter((name, text(value)) for change in self.staged for name, value in change["undeclared"].items())

    def rows_file(self, name: str, table: str) -> dict:
        """The whole as a rows-file, whose `expected` is final; of a mixed table its rows are messages."""
        pair = self.style in ("sequence pair", "split pairs")
        keys = [*self._key_columns(None)]
        old_keys = {name: f"old_{name}" for name in keys}
        case = {"name": name, "source": f"a random history ({self.style})", "scd": 1, "keys": keys, **self.settings}
        if self.mixed:
            case |= {"sequence": "_lsn" if pair else "shiftright(_lsn, 32)"}
            case |= {"occurred_at": f"shiftright(_lsn, 32) div {self.clock}"}
            case |= {} if pair else {"ordinal": "_lsn & 4294967295"}
            case |= {"transaction": "shiftright(_lsn, 32)"} if self.style == "equal sequence" else {}
        else:
            case |= ROWS | {"sequence": ["seq", "place"] if pair else "seq", "old_keys": old_keys}
            case |= {"columns": {"except": [*old_keys.values(), *PLACE]}}
            case |= {"occurred_at": f"seq div {self.clock}"} if self.clock > 1 else {}
            case |= {} if pair else {"ordinal": "place"}
            case |= {} if self.style == "equal sequence" else {"transaction": "txn"}
        if self.style == "split pairs":
            case["split_key_changes"] = True
        names = {each.name: None for listed in self.configurations for each in listed.values()}
        wide = [self.wide_key_from is not None and number >= self.wide_key_from for number in self._last_sets]
        key = ["bigint" if each else "int" for each in wide]
        case["schema"] = {**dict.fromkeys(keys, "string"), "id": key}
        if not self.mixed:
            case["schema"] |= {**dict.fromkeys(old_keys.values(), "string"), "old_id": key, **PLACE}
        case["schema"] |= {
            name: [next((each.type for each in listed.values() if each.name == name), None) for listed in self.configurations]
            for name in names
        }
        case["renamed_columns"] = [
            {each.name: each.old for each in listed.values() if each.old} for listed in self.configurations
        ]
        case["batches"] = [
            [self._message(change, table) if self.mixed else self._row(change) for change in changes] for changes in self.sets
        ]
        if self.mixed:
            case["batches"][0] += NOISE
        return case | {"expected": self.final()}

    def _values(self, change: dict) -> dict:
        """Under the names that the columns had when it happened."""
        shape = self.shapes[change.get("shape", 0)]
        return {shape[column][0]: value for column, value in change["values"].items() if column != "id"}

    def _row(self, change: dict) -> dict:
        sequence = (*(change["sequence"] or ()), None, None)
        before = self._key_columns(change["key_before"])
        return {
            **self._key_columns(change["key"]),
            **{f"old_{name}": value for name, value in before.items()},
            "op": change["op"],
            "seq": sequence[0],
            "place": change["ordinal"] if sequence[1] is None else sequence[1],
            "txn": change["transaction"],
            **self._values(change),
        }

    def _message(self, change: dict, table: str) -> dict:
        high, *low = change["sequence"]
        old = change["key"] if change["op"] == "D" else change["key_before"]
        told = {**self._key_columns(change["key"]), **self._values(change)} if change["op"] in "IU" else {}
        identity = [{"name": name, "value": value} for name, value in self._key_columns(old).items()]
        return {
            "action": change["op"], "schema": "s", "table": table, "xid": high,
            "lsn": f"{high:X}/{low[0] if low else change['ordinal']:X}",
            **({"columns": [{"name": name, "value": value} for name, value in told.items()]} if told else {}),
            **({"identity": identity} if old else {}),
        }  # fmt: skip


def fits(value: object, type_: str) -> bool:
    """Whether a value comes through the cast to a column's type (E4)."""
    if value is None or (type_ not in BITS and not type_.startswith("decimal")):
        return True
    if type_ in BITS:
        return isinstance(value, int) and abs(value) < 2 ** (BITS[type_] - 1)
    precision, scale = map(int, re.findall(r"\d+", type_))
    return abs(Decimal(str(value))) < 10 ** (precision - scale)


def text(value: object) -> str | None:
    """In one spelling for each number."""
    try:
        return format(Decimal(str(value)).normalize(), "f")
    except ArithmeticError:
        return None if value is None else str(value)
