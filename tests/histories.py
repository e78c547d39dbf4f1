"""Random histories of a source table, and of how a feed may deliver them.

A source table is simulated, so what it holds at the end is the expectation (O2, K2). What it did is then
cut into change sets, which are permuted, repeated and delayed. Changes are those of `tests/oracle.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

KEYS = 9
KINDS = (
    *("insert", "insert", "insert", "update", "update", "partial", "delete", "move", "move"),
    *("chain", "shift", "shift", "swap", "cycle", "reuse", "truncate"),
)
# How a feed may say what is one transaction, and in which order (K3, K6).
STYLES = ("ordinal", "sequence pair", "equal sequence", "split pairs")
# Types of columns, each with those that it may become.
WIDER = {
    "string": (),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double", "decimal(12,2)"),
    "float": ("double",),
    "decimal(6,2)": ("decimal(12,4)",),
    "date": ("timestamp", "timestamp_ntz"),
}


@dataclass(frozen=True)
class History:
    """What the source did (`changes`, in order), what was `delivered` (with arrival), what the `source`
    holds of what it told.

    `features` names what occurs; `style` is one of STYLES (only `split pairs` wants
    `pair_split_key_changes`). `shapes`: what the table's columns were, one after another, each {column:
    (its name then, its type then)}; a change has the number of its shape, and its values stand under
    what the columns were called first.
    """

    style: str
    changes: list
    delivered: list
    source: dict
    features: frozenset
    shapes: list


def value(type_, number):
    """A value of a type, mostly another one for another number, that the types it may come from do not hold."""
    return {
        "string": f"s{number}",
        "smallint": number,
        "int": 40_000 + number,
        "bigint": 2**40 + number,
        "float": number + 0.5,
        "double": number + 0.25,
        "decimal(6,2)": Decimal(f"{number}.25"),
        "decimal(12,2)": Decimal(f"{number}.75"),
        "decimal(12,4)": Decimal(f"{1_000_000 + number}.125"),
        "date": f"2024-01-{number % 28 + 1:02}",
    }.get(type_, f"2024-02-{number % 28 + 1:02} 03:04:05")


@dataclass
class Source:
    """A table with key `id`, columns a and b and such as come, change and go, and the log of what was done to it."""

    style: str
    shapes: list
    nameless: bool = False  # some changes tell the row's `a` and not its key (K8)
    named: set = field(default_factory=set)  # keys of the rows that can be told so
    defaults: dict = field(default_factory=dict)  # of columns that were added: what older rows hold, untold
    rows: dict = field(default_factory=dict)
    moves: dict = field(default_factory=dict)  # key -> how often that row has moved
    last: dict = field(default_factory=dict)  # key -> number in the log of that row's latest change
    vacated: list = field(default_factory=list)
    log: list = field(default_factory=list)
    follows: list = field(default_factory=list)  # (key change, that row's change before it), numbers in the log
    features: set = field(default_factory=set)
    lsn: int = 0
    place: int = 0

    def transaction(self):
        self.lsn, self.place = self.lsn + 1, 0

    @property
    def columns(self):
        return list(self.shapes[-1])

    def new(self, column):
        number = len(self.log)
        if column == "b":
            return None if number % 7 == 0 else f"b{number % 5}"
        return None if number % 6 == 5 and column != "a" else value(self.shapes[-1][column][1], number)

    def say(self, op, key, before=None, values=None):
        pair = self.style in ("sequence pair", "split pairs")
        self.log.append(
            {
                "op": op,
                "key": None if op == "T" else (key,),
                "key_before": None if before is None else (before,),
                "sequence": (self.lsn, self.place) if pair else (self.lsn,),
                "ordinal": None if pair else self.place,
                "transaction": None if self.style == "equal sequence" else f"t{self.lsn}",
                "values": ({} if key is None or op == "D" else {"id": key}) | (values or {}),
                "shape": len(self.shapes) - 1,
            }
        )
        self.place += 1

    def insert(self, key):
        if key in self.rows:
            return self.update(key)
        if key in self.vacated:
            self.features.add("reuse")
        self.rows[key] = {"id": key, **{name: self.new(name) for name in self.columns}}
        self.moves[key] = 0
        self.say("I", key, None, self.told(key, self.columns))
        self.last[key] = len(self.log) - 1

    def told(self, key, columns):
        """What a message tells of a row; then the row holds it."""
        row = self.rows[key]
        values = {name: row.get(name, self.defaults.get(name)) for name in columns if name in self.columns}
        row.update(values)
        if "a" in values:
            self.named.add(key)
        return values

    def update(self, key, told=None):
        """told: the columns that are set, and told alone; None: some are set, and all are told."""
        if key not in self.rows:
            return
        changed = self.columns if told is None else [name for name in told if name in self.columns]
        for name in changed if told is not None or len(self.log) % 2 else "ab":
            self.rows[key][name] = self.new(name)
        if self.may_be_nameless(key) and "a" not in changed:
            self.say("U", None, None, self.told(key, ["a", *changed]))
        else:
            self.say("U", key, key if len(self.log) % 2 else None, self.told(key, changed))
        self.last[key] = len(self.log) - 1

    def may_be_nameless(self, key):
        return self.nameless and key in self.named and len(self.log) % 3 > 0

    def delete(self, key):
        if self.may_be_nameless(key):
            self.say("D", None, None, {"a": self.rows[key]["a"]})
        elif key in self.rows:
            self.say("D", key)
        if self.rows.pop(key, None):
            self.vacated.append(key)
            self.named.discard(key)

    def move(self, pairs, columns):
        """One statement: every (old, new) at once, told in this order, each with these columns."""
        taken = {old: (self.rows.pop(old), self.moves.pop(old), self.last.pop(old)) for old, _ in pairs}
        there = set(taken)
        self.named -= there
        for old, new in pairs:
            there.discard(old)
            row, moves, last = taken[old]
            row = {**row, "id": new}
            if "a" in columns:
                row["a"] = self.new("a")
            self.rows[new], self.moves[new] = row, moves + 1
            self.vacated.append(old)
            if self.style == "split pairs":
                told = len(self.log) % 2
                self.say("D", old)
                self.place -= 1
                self.say("I", new, old if told else None, self.told(new, columns))
            else:
                self.say("U", new, old, self.told(new, columns))
            if new in there:
                self.named.discard(new)  # docs/limits.md: a row that came where another one leaves after it
            self.last[new] = len(self.log) - 1
            self.follows.append((len(self.log) - 1, last))
            if moves + 1 >= 3:
                self.features.add("chain")

    def alter(self, x, y, z):
        """A column is added (older rows hold its default, if it has one), dropped, renamed or made wider."""
        self.transaction()
        shape = dict(self.shapes[-1])
        some = [name for name in shape if name not in "ab"]
        column = some[y % len(some)] if some else None
        kind = ("added", "added", "dropped", "renamed", "renamed", "widened", "widened")[x % 7]
        if kind == "added" or column is None:
            known = {name for each in self.shapes for name in each}
            new = next((name for name in "vwxyz" if name not in known), None)
            if new is None:
                return
            shape[new] = (new, [*WIDER][y % len(WIDER)])
            if z % 2:
                self.defaults[new] = value(shape[new][1], 0)
        elif kind == "dropped":
            del shape[column]
        elif kind == "renamed":
            shape[column] = (f"{column}{len(self.shapes)}", shape[column][1])
        elif wider := WIDER.get(shape[column][1]):
            shape[column] = (shape[column][0], wider[z % len(wider)])
        else:
            return
        self.shapes.append(shape)
        self.features.add(kind if column else "added")

    def step(self, kind, x, y, z):
        columns = (self.columns, "b", "", self.columns)[z % 4]
        live, free = sorted(self.rows), [key for key in range(1, KEYS + 1) if key not in self.rows]
        key = live[x % len(live)] if live else None
        if kind == "insert" or key is None:
            self.insert(x % KEYS + 1)
        elif kind == "alter":
            self.alter(x, y, z)
        elif kind == "update":
            self.update(key)
        elif kind == "partial":
            others = [name for place, name in enumerate(self.columns[2:]) if y >> place & 1]
            self.update(key, [*("b" if z % 3 else ()), *others])
        elif kind == "delete":
            self.delete(key)
        elif kind == "truncate":
            if x % 3 == 0:  # seldom: it ends every chain
                self.rows.clear()
                self.named.clear()
                self.say("T", None)
        elif kind == "reuse":
            again = [old for old in self.vacated if old not in self.rows]
            if again:
                self.insert(again[y % len(again)])
        elif kind == "move" and free:
            self.move([(key, free[y % len(free)])], columns)
        elif kind == "chain":
            for hop in range(3):
                free = [each for each in range(1, KEYS + 1) if each not in self.rows]
                if free:
                    new = free[(y + hop) % len(free)]
                    self.move([(key, new)], columns)
                    key = new
                    if z % 2:
                        self.transaction()
        elif kind == "shift":  # set id = id + 1 over the run of keys that begins at `key`
            run = [key]
            while run[-1] + 1 in self.rows:
                run.append(run[-1] + 1)
            if len(run) > 1:
                self.features.add("shift")
            pairs = [(old, old + 1) for old in run]
            self.move(pairs[::-1] if y % 2 else pairs, columns)
        elif kind == "swap" and len(live) > 1:
            other = live[(x + 1 + y % (len(live) - 1)) % len(live)]
            self.features.add("swap")
            self.move([(key, other), (other, key)], columns)
        elif kind == "cycle" and len(live) > 1 and 0 not in self.rows:
            other = live[(x + 1) % len(live)]
            self.features.add("cycle")
            for old, new in ((key, 0), (other, key), (0, other)):
                self.move([(old, new)], columns)
                if z % 2:
                    self.transaction()


@st.composite
def histories(draw, *, styles=STYLES, alters=False):
    """A `History` of at least 30 changes. alters: the table has more columns, which come, change and go."""
    number = st.integers(0, 59)
    steps = draw(st.lists(st.tuples(st.sampled_from(KINDS), number, number, number), min_size=22, max_size=34))
    chance = Random(repr(steps))  # for what Hypothesis would draw alike in one history after the other
    shape = {"a": ("a", "string"), "b": ("b", "string")}
    if alters:
        shape["v"] = ("v", chance.choice([*WIDER]))
        for _ in range(chance.randrange(4, 13)):
            steps.insert(chance.randrange(len(steps)), ("alter", *(chance.randrange(60) for _ in range(3))))
    source = Source(style=draw(st.sampled_from(styles)), shapes=[shape], nameless=alters and chance.random() < 0.2)
    source.transaction()
    for key in range(1, 5):
        source.insert(key)
    for kind, x, y, z in steps:
        if z % 3:
            source.transaction()
        source.step(kind, x, y, z)
    while len(source.log) < 30:
        source.transaction()
        source.insert(len(source.log) % KEYS + 1)

    in_order = source.nameless or (alters and chance.random() < 0.6)
    sets = draw(_deliveries(len(source.log), in_order, delays=not source.nameless))
    delivered = [
        {**source.log[number], "batch": batch // 2, "set": batch % 2, "row": row}
        for batch, numbers in enumerate(sets)
        for row, number in enumerate(numbers)
    ]
    features = source.features | ({"nameless"} if source.nameless else set())
    arrived = [number for numbers in sets for number in numbers]
    if any(later < max(arrived[:index]) for index, later in enumerate(arrived) if index):
        features.add("late")
    first_set = {number: batch for batch, numbers in reversed([*enumerate(sets)]) for number in numbers}
    if any(first_set[one] != first_set[other] for one, other in source.follows):
        features.add("split")
    rows = {(key,): row for key, row in source.rows.items()}
    return History(source.style, source.log, delivered, rows, frozenset(features), source.shapes)


@st.composite
def _deliveries(draw, count, in_order, delays):
    """Change sets: lists of numbers below `count`, each number at least once, each set in source order.
    in_order: what is neither delayed nor told again keeps its order, so that alterations show themselves one by one."""
    cuts = sorted(draw(st.sets(st.integers(1, count - 1), min_size=1, max_size=6)))
    sets = [list(range(start, end)) for start, end in zip([0, *cuts], [*cuts, count], strict=True)]
    delayed = draw(st.sets(st.integers(0, count - 1), max_size=4)) if delays else ()
    sets = [[number for number in numbers if number not in delayed] for numbers in sets]
    others = [[number] for number in delayed]
    others += [[*sets, *others][index % (len(sets) + len(others))] for index in draw(st.lists(st.integers(0, 9), max_size=3))]
    if in_order:
        for numbers in others:
            after = sets.index(numbers) if numbers in sets else 0
            sets.insert(draw(st.integers(after + 1, len(sets))), numbers)
        return [numbers for numbers in sets if numbers]
    return draw(st.permutations([numbers for numbers in [*sets, *others] if numbers]))


@st.composite
def wild_changes(draw):
    """Changes that no sound source would give: known keys inserted, unknown ones updated, moved and deleted, key changes
    onto occupied keys, truncates, ties in every part of the position, reads without position."""
    key = st.integers(1, 4).map(lambda number: (number,))
    change = st.fixed_dictionaries(
        {
            "op": st.sampled_from("IIUUUUUUDDRT"),
            "key": key,
            "key_before": st.none() | key,
            "sequence": st.integers(1, 9).map(lambda number: (number,)),
            "ordinal": st.sampled_from((None, None, 0, 1)),
            "transaction": st.sampled_from((None, None, "t", "u")),
            "batch": st.integers(0, 2),
            "set": st.integers(0, 1),
            "first": st.booleans(),
        }
    )
    changes = draw(st.lists(change, min_size=30, max_size=45))
    for row, each in enumerate(changes):
        each |= {"row": row, "values": {"n": row}}
        if each["op"] == "T" and each["sequence"][0] % 3:
            each["op"] = "U"
        if each["op"] == "T":
            each |= {"key": None, "key_before": None, "values": {}}
        if each["op"] == "D":
            each |= {"key_before": None, "values": {}}
        if each["op"] == "R" and each.pop("first"):
            each["sequence"], each["ordinal"], each["transaction"] = None, None, None
        each.pop("first", None)
    return changes


def drawn(strategy, count):
    """Always the same `count` examples of the strategy; with DELTA_CDC_SEED=7 others, always the same for that number."""
    examples = []
    number = os.environ.get("DELTA_CDC_SEED")

    @settings(
        max_examples=count,
        derandomize=not number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example):
        examples.append(example)

    (seed(int(number))(collect) if number else collect)()
    return examples
