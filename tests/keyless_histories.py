"""Random histories of tables without a key, and of insert-only ones (N1, N2): rows-files with the rows that the contract gives.

Their columns are added and made wider; change sets keep their order but for some changes and what is told again.
"""

from __future__ import annotations

import os
from random import Random

from tests import oracle
from tests.histories import value

KINDS = (
    {"keyless": "multiset"},
    {"keyless": "multiset", "surrogate": "hash"},
    {"keyless": "append"},
    {"keyless": "append", "surrogate": "hash"},
    {"keys": ["a"], "insert_only": True},
)
LATER = ("decimal(6,2)", "double", "date", "boolean", "string")  # types of a column that is added
STRUCT, WIDER_STRUCT = "struct<x:int>", "struct<x:int,y:string>"


class _Source:
    """A table whose rows are few different ones. log: its changes; `values` of one are its columns, `old_values` those before."""

    def __init__(self, chance: Random, updates: bool) -> None:
        self.chance, self.updates = chance, updates
        self.columns = {"a": "int", "b": "string"} | ({} if updates else {"s": STRUCT})
        self.shapes = [self.columns]
        self.rows: list[dict] = []
        self.log: list[dict] = []
        self.lsn = 0

    def new(self) -> dict:
        n = self.chance.randrange(2)
        made = {
            "a": (2**40 if self.columns["a"] == "bigint" else 0) + self.chance.randrange(3),
            "b": self.chance.choice((None, "", "x")),
            "s": None if n else {"x": n, "y": self.chance.choice((None, "y"))},
            "c": bool(n) if self.columns.get("c") == "boolean" else value(self.columns.get("c", "string"), n),
        }
        if self.columns.get("s") == STRUCT and made["s"]:
            del made["s"]["y"]
        return {name: made[name] for name in self.columns}

    def say(self, op: str, values: dict, old_values: dict | None = None) -> None:
        told = {"op": op, "values": values, "old_values": old_values, "shape": len(self.shapes) - 1}
        self.log.append(told | {"sequence": (self.lsn, self.chance.randrange(3)), "ordinal": None})

    def step(self) -> None:
        self.lsn += 1
        kind = self.chance.choices("IDUTAVM", (9, 5, 4 if self.updates else 0, 0.3, 0.6, 1, 1))[0]
        if kind == "A":
            added = {"c": self.chance.choice(LATER)}
            wider = {"a": "bigint"} | ({"s": WIDER_STRUCT} if "s" in self.columns else {})
            change = self.chance.choice([added, wider]) if "c" not in self.columns else wider
            self.columns = self.columns | change
            self.shapes.append(self.columns)
        elif kind == "T":
            self.rows.clear()
            self.say("T", {})
        elif kind == "V":  # in vain, most of the time
            self.say("D", gone := self.new())
            if gone in self.rows:
                self.rows.remove(gone)
        elif kind == "M" and not self.updates:  # one statement, two equal rows at one position
            self.rows += [row := self.new()] * 2
            self.say("I", row)
            self.log.append(dict(self.log[-1]))
        elif kind in "DU" and self.rows:
            gone = self.rows.pop(self.chance.randrange(len(self.rows)))
            gone = {name: gone.get(name) for name in self.columns}
            if kind == "D":
                self.say("D", gone)
            else:
                self.rows.append(row := self.new() | ({"b": gone["b"]} if self.chance.random() < 0.4 else {}))
                self.say("U", row, gone)
        else:
            self.rows.append(row := self.new())
            self.say("I", row)


def keyless_case(number: int, *, runs: int) -> dict:
    """A rows-file, always the same for a number (and DELTA_CDC_SEED); `mixed` of it is true where its rows are messages.

    runs: how many there are; the last finds all change sets that are left.
    """
    chance = Random(f"{os.environ.get('DELTA_CDC_SEED')} {number}")
    settings = KINDS[number % len(KINDS)]
    mixed = settings.get("keyless") == "multiset" and chance.random() < 0.5
    source = _Source(chance, updates=mixed)
    while len(source.log) < 30:
        source.step()
    pairs = {n for n, change in enumerate(source.log) if n and change["sequence"] == source.log[n - 1]["sequence"]}
    sets = _change_sets(len(source.log), chance)
    # a statement's two rows come together
    sets = [sorted({n for n in numbers if n not in pairs} | {n + 1 for n in numbers if n + 1 in pairs}) for numbers in sets]
    sets = [numbers for numbers in sets if numbers]
    arrived = [
        {**source.log[number], "batch": batch, "set": 0, "row": row}
        for batch, numbers in enumerate(sets)
        for row, number in enumerate(numbers)
    ]
    newest, shape = [], 0
    for numbers in sets:
        shape = max([shape, *(source.log[n]["shape"] for n in numbers)])
        newest.append(shape)
    listed = [source.shapes[newest[n if n < runs - 1 else -1]] for n in range(len(sets))]
    data = listed[-1]
    told = _message if mixed else _row
    batches = [[told(change, chance) for change in arrived if change["batch"] == n] for n in range(len(sets))]
    types = {name: [each.get(name) for each in listed] for name in data}
    about = {"name": f"keyless {number}", "source": "a random history of a table without a key", "mixed": mixed}
    case = {**about, "scd": 1, "keys": [], **settings}
    if mixed:
        case |= {"sequence": "_lsn", "schema": types}
    else:
        case |= {"sequence": ["seq", "place"], "operation": "op", "delete_when": "op = 'D'", "truncate_when": "op = 'T'"}
        case |= {"columns": {"except": ["op", "seq", "place"]}}
        case |= {"schema": {"op": "string", "seq": "bigint", "place": "int", **types}}
    kept = [{**each, **{side: _as_last_listed(each[side], data) for side in ("values", "old_values")}} for each in arrived]
    return case | {"batches": batches, "expected": _expected(kept, settings)}


def _change_sets(count: int, chance: Random) -> list[list[int]]:
    """Numbers below `count`, each at least once: in order, but for some that come at any time, and sets that come again."""
    cuts = sorted(chance.sample(range(1, count), chance.randrange(2, 7)))
    sets = [list(range(start, end)) for start, end in zip([0, *cuts], [*cuts, count], strict=True)]
    again = chance.sample(sets, chance.randrange(3))
    delayed = chance.sample(range(count), chance.randrange(5))
    sets = [[number for number in numbers if number not in delayed] for numbers in sets]
    for numbers in [*([number] for number in delayed), *again]:
        sets.insert(chance.randrange(len(sets) + 1), numbers)
    return sets


def _expected(arrived: list[dict], settings: dict) -> list[dict]:
    if settings.get("keyless") == "multiset":
        return oracle.multiset(oracle.without_repeats(arrived))
    if keys := settings.get("keys"):
        keyed = [{**each, "key": tuple(each["values"].get(name) for name in keys), "key_before": None} for each in arrived]
        once = oracle.without_duplicates(keyed)
    else:
        once = oracle.without_repeats(arrived)
    return [change["values"] for change in once if change["op"] == "I"]


def _as_last_listed(values: dict | None, columns: dict) -> dict | None:
    """With null in the columns and fields that came later."""
    if not values:
        return values
    out = {name: values.get(name) for name in columns}
    if out.get("s") and columns["s"] == WIDER_STRUCT:
        out["s"] = {"y": None} | out["s"]
    return out


def _row(change: dict, chance: Random) -> dict:
    seq, place = change["sequence"]
    return {"op": change["op"], "seq": seq, "place": place, **change["values"]}


def _message(change: dict, chance: Random) -> dict:
    """Of wal2json, whose table has the replica identity `full`; an update may leave out a long text that did not change."""

    def parts(values: dict) -> list[dict]:
        return [{"name": name, "value": part} for name, part in values.items()]

    after = change["values"] if change["op"] in "IU" else {}
    before = change["values"] if change["op"] == "D" else change["old_values"]
    if change["op"] == "U" and before["b"] == after["b"] and chance.random() < 0.5:
        after = {name: part for name, part in after.items() if name != "b"}
    seq, place = change["sequence"]
    return {
        "action": change["op"], "schema": "s", "table": "", "xid": seq, "lsn": f"{seq:X}/{place:X}",
        **({"columns": parts(after)} if after else {}), **({"identity": parts(before)} if before else {}),
    }  # fmt: skip
