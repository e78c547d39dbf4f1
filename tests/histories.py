"""Random histories of a source table, and of how a feed may deliver them.

A source table is simulated, so what it holds at the end is the expectation (O2, K2). What it did is then
cut into change sets, which are permuted, repeated and delayed. Changes are those of `tests/oracle.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

KEYS = 9
KINDS = (
    *("insert", "insert", "insert", "update", "update", "partial", "delete", "move", "move"),
    *("chain", "shift", "shift", "swap", "cycle", "reuse", "truncate"),
)
# How a feed may say what is one transaction, and in which order (K3, K6).
STYLES = ("ordinal", "sequence pair", "equal sequence", "split pairs")


@dataclass(frozen=True)
class History:
    """What the source did (`changes`, in order), what was `delivered` (with arrival), what the `source`
    holds.

    `features` names what occurs; `style` is one of STYLES (only `split pairs` wants
    `pair_split_key_changes`).
    """

    style: str
    changes: list
    delivered: list
    source: dict
    features: frozenset


@dataclass
class Source:
    """A table with key `id` and columns a and b, and the log of what was done to it."""

    style: str
    rows: dict = field(default_factory=dict)
    moves: dict = field(default_factory=dict)  # key -> how often that row has moved
    last: dict = field(default_factory=dict)  # key -> number in the log of that row's latest change
    vacated: list = field(default_factory=list)
    log: list = field(default_factory=list)
    follows: list = field(
        default_factory=list
    )  # (key change, that row's change before it), numbers in the log
    features: set = field(default_factory=set)
    lsn: int = 0
    place: int = 0

    def transaction(self):
        self.lsn, self.place = self.lsn + 1, 0

    def say(self, op, key, before=None, **values):
        pair = self.style in ("sequence pair", "split pairs")
        self.log.append(
            {
                "op": op,
                "key": None if key is None else (key,),
                "key_before": None if before is None else (before,),
                "sequence": (self.lsn, self.place) if pair else (self.lsn,),
                "ordinal": None if pair else self.place,
                "transaction": None if self.style == "equal sequence" else f"t{self.lsn}",
                "values": {} if op in "DT" else {"id": key, **values},
            }
        )
        self.place += 1

    def insert(self, key):
        if key in self.rows:
            return self.update(key)
        if key in self.vacated:
            self.features.add("reuse")
        self.rows[key] = {"id": key, "a": f"a{len(self.log)}", "b": len(self.log) % 5 or None}
        self.moves[key] = 0
        self.say("I", **{"key": key, **{name: self.rows[key][name] for name in "ab"}})
        self.last[key] = len(self.log) - 1

    def update(self, key, columns="ab"):
        if key not in self.rows:
            return
        values = {name: f"{name}{len(self.log)}" for name in columns}
        self.rows[key].update(values)
        self.say("U", key, key if len(self.log) % 2 else None, **values)
        self.last[key] = len(self.log) - 1

    def delete(self, key):
        if self.rows.pop(key, None):
            self.vacated.append(key)
            self.say("D", key)

    def move(self, pairs, columns="ab"):
        """One statement: every (old, new) at once, told in this order, each with these columns."""
        taken = {old: (self.rows.pop(old), self.moves.pop(old), self.last.pop(old)) for old, _ in pairs}
        for old, new in pairs:
            row, moves, last = taken[old]
            row = {**row, "id": new}
            if "a" in columns:
                row["a"] = f"a{len(self.log)}"
            self.vacated.append(old)
            if self.style == "split pairs":
                told = len(self.log) % 2
                self.say("D", old)
                self.place -= 1
                self.say("I", new, old if told else None, **{name: row[name] for name in columns})
            else:
                self.say("U", new, old, **{name: row[name] for name in columns})
            self.rows[new], self.moves[new], self.last[new] = row, moves + 1, len(self.log) - 1
            self.follows.append((len(self.log) - 1, last))
            if moves + 1 >= 3:
                self.features.add("chain")

    def step(self, kind, x, y, z):
        columns = ("ab", "b", "", "ab")[z % 4]
        live, free = sorted(self.rows), [key for key in range(1, KEYS + 1) if key not in self.rows]
        key = live[x % len(live)] if live else None
        if kind == "insert" or key is None:
            self.insert(x % KEYS + 1)
        elif kind in ("update", "partial"):
            self.update(key, "b" if kind == "partial" else "ab")
        elif kind == "delete":
            self.delete(key)
        elif kind == "truncate":
            if x % 3 == 0:  # seldom: it ends every chain
                self.rows.clear()
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
def histories(draw, *, min_steps=22, max_steps=34, styles=STYLES):
    """A `History` of at least `min_steps` changes."""
    number = st.integers(0, 59)
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from(KINDS), number, number, number),
            min_size=min_steps,
            max_size=max_steps,
        )
    )
    source = Source(style=draw(st.sampled_from(styles)))
    source.transaction()
    for key in range(1, 5):
        source.insert(key)
    for kind, x, y, z in steps:
        if z % 3:
            source.transaction()
        source.step(kind, x, y, z)
    while len(source.log) < min_steps + 8:
        source.transaction()
        source.insert(len(source.log) % KEYS + 1)

    sets = draw(_deliveries(len(source.log)))
    delivered = [
        {**source.log[number], "batch": batch // 2, "set": batch % 2, "row": row}
        for batch, numbers in enumerate(sets)
        for row, number in enumerate(numbers)
    ]
    features = set(source.features)
    arrived = [number for numbers in sets for number in numbers]
    if any(later < max(arrived[:index]) for index, later in enumerate(arrived) if index):
        features.add("late")
    first_set = {number: batch for batch, numbers in reversed([*enumerate(sets)]) for number in numbers}
    if any(first_set[one] != first_set[other] for one, other in source.follows):
        features.add("split")
    rows = {(key,): row for key, row in source.rows.items()}
    return History(source.style, source.log, delivered, rows, frozenset(features))


@st.composite
def _deliveries(draw, count):
    """Change sets: lists of numbers below `count`, each number at least once, each set in source order."""
    cuts = sorted(draw(st.sets(st.integers(1, count - 1), min_size=1, max_size=6)))
    sets = [list(range(start, end)) for start, end in zip([0, *cuts], [*cuts, count], strict=True)]
    delayed = draw(st.sets(st.integers(0, count - 1), max_size=4))
    sets = [[number for number in numbers if number not in delayed] for numbers in sets]
    sets += [[number] for number in delayed]
    sets += [sets[index % len(sets)] for index in draw(st.lists(st.integers(0, 9), max_size=3))]
    return draw(st.permutations([numbers for numbers in sets if numbers]))


@st.composite
def wild_changes(draw, *, min_size=30, max_size=45):
    """Changes that no sound source would give: known keys inserted, unknown ones updated, moved and
    deleted, key
    changes onto occupied keys, truncates, ties in every part of the position, reads without position."""
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
    changes = draw(st.lists(change, min_size=min_size, max_size=max_size))
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
    """Always the same `count` examples of the strategy."""
    examples = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example):
        examples.append(example)

    collect()
    return examples
