"""The contract, replayed one change at a time: what tests expect of everything that is quicker.

Plain Python, no Spark, written from docs/semantics (rules in brackets). A change is a dict:

    op           I, U, D, R or T
    key          tuple: the new key for I, U, R, the old key for D, None for T
    key_before   tuple: the old key, None (or equal to key) if unchanged
    sequence     tuple, compared left to right; None for an R without position
    ordinal      int or None
    transaction  str or None (then equal sequence is one transaction)
    batch, set, row   ints: the arrival; `set` is the change set's place among those of its batch
    values       dict of the columns that are present (keys included or not, as the caller likes)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(eq=False)
class Entity:
    """One row of the source from its first change to its end, whatever its keys were in between."""

    changes: list = field(default_factory=list)  # in order; a D that ends it is its last
    ended_by: dict | None = None  # the D, T or displacing key change that ended it


def in_order(changes):
    """O1, O3, O5: by position, nulls first, then arrival; where all of it is equal an upsert is above a D."""

    def nulls_first(value):
        if isinstance(value, tuple):
            value = tuple(nulls_first(part) for part in value)
        return (value is not None, value)

    def place(change):
        position = nulls_first(change["sequence"]), nulls_first(change["ordinal"])
        return *position, *_arrival(change), {"T": 0, "D": 1}.get(change["op"], 2)

    return sorted(changes, key=place)


def is_key_change(change):
    return change["op"] in "IRU" and change["key_before"] not in (None, change["key"])


def entities(changes):
    """All entities that ever were, those alive with their key: [Entity], {key: Entity}."""
    return _walked(changes)[:2]


def _walked(changes, known=None):
    """`entities`, and the keys left without a row by a delete or a truncate, each with its last row: {key: Entity}.

    known: all changes, where `changes` are a part of them: by these it is known which keys rows ever left or came to.
    """
    found, queues, touched_by, deleted = [], defaultdict(list), {}, {}

    def begins():
        found.append(Entity())
        return found[-1]

    def end_transaction(key):  # K7: the newest occupant is the row
        queue = queues[key]
        while len(queue) > 1:
            (older, _), (newer, moved_here) = queue[:2]
            if moved_here:
                older.ended_by = moved_here  # a collision
                del queue[0]
            else:  # A1: an insert of a known key updates it
                older.changes = in_order(older.changes + newer.changes)
                found.remove(newer)
                del queue[1]

    def leaves(key, change):  # K3: who has held the key longest
        if not queues[key]:
            return None
        entity = queues[key].pop(0)[0]
        if change["op"] == "D":
            deleted[key] = entity
        else:
            deleted.pop(key, None)  # A9: a key change leaves no soft row
        return entity

    changes = in_order(changes)
    moved = {key for change in known or changes if is_key_change(change) for key in (change["key"], change["key_before"])}
    for change in changes:
        key, old_key, op = change["key"], change["key_before"], change["op"]
        if op == "T":  # A8
            for each in queues:
                end_transaction(each)
                for entity, _ in queues[each]:
                    entity.ended_by = change
                    deleted[each] = entity
            queues.clear()
            continue
        transaction = (change["transaction"], change["transaction"] is None and change["sequence"])
        for each in {key, old_key} if is_key_change(change) else {key}:
            if touched_by.get(each) != transaction:
                end_transaction(each)
            touched_by[each] = transaction
        if op == "D":
            entity = leaves(key, change)
            if entity is None:
                continue  # A1: a delete of an unknown key changes nothing
            entity.ended_by = change
        elif is_key_change(change):
            entity = leaves(old_key, change) or begins()  # K1; K5: an upsert where the old key is nowhere known
            queues[key].append((entity, change))
        elif queues[key] and (op == "U" or key not in moved):  # A1; where none ever left or came, O3
            entity = queues[key][0][0]
        else:
            entity = begins()
            queues[key].append((entity, None))
        entity.changes.append(change)
    for key in queues:
        end_transaction(key)
    live = {key: queue[0][0] for key, queue in queues.items() if queue}
    return found, live, {key: entity for key, entity in deleted.items() if key not in live}


class Partial(dict):
    """A struct of an update in which a null, at any depth, says nothing (P1)."""


def says_nothing(value):
    return value is None or (isinstance(value, Partial) and all(map(says_nothing, value.values())))


def filled(before, value):
    if not isinstance(value, Partial):
        return value
    before = before or {}
    return {name: before.get(name) if says_nothing(part) else filled(before.get(name), part) for name, part in value.items()}


def after(values, change):
    """P1: a column that a change does not carry keeps its value."""
    return {**values, **{name: filled(values.get(name), value) for name, value in change["values"].items()}}


def folded(changes):
    """P1, P2."""
    values = {}
    for change in changes:
        values = after(values, change)
    return values


def replay(changes):
    """Final (SCD1): {key: values}."""
    return {key: folded(entity.changes) for key, entity in entities(changes)[1].items()}


def _first(change):
    return change["sequence"] and change["sequence"][0]


def final(
    changes,
    *,
    soft=False,
    soft_nulls=False,
    created_at=None,
    updated_at=None,
    set_on_insert=(),
    time=_first,
    known=None,
):
    """Final with what A9 and A10 add: {key: values}. With `soft_nulls` a deleted row has no values but its key's."""
    _, live, deleted = _walked(changes, known)
    rows = {}
    for key, entity in {**live, **(deleted if soft else {})}.items():
        writes = [change for change in entity.changes if change["op"] != "D"]
        born = writes[0]["values"]
        row = {**folded(writes), **{name: born.get(name) for name in set_on_insert}}
        if key not in live and soft_nulls:
            row = {}
        if created_at:
            row[created_at] = time(writes[0])
        if updated_at:
            row[updated_at] = time(writes[-1])
        if soft:
            row |= {"_cdc_is_deleted": key not in live, "_cdc_deleted_at": None if key in live else time(entity.ended_by)}
        rows[key] = row
    return rows


def as_of(changes, moment, *, time=_first, **shape):
    """Final as it was at a source moment (H4): times as in history, a running maximum along the entity's positions (H1). What
    has no time, nor anything below it, is from before the feed."""

    def counts(at):
        return at is None or at <= moment

    kept = [change for change in changes if change["op"] in "DT" and counts(time(change))]
    for entity in entities(changes)[0]:
        latest = None
        for change in entity.changes:
            latest = max((at for at in (latest, time(change)) if at is not None), default=None)
            if change in kept and not counts(latest):
                kept.remove(change)
            elif change["op"] != "D" and counts(latest):
                kept.append(change)
    return final(kept, time=time, known=changes, **shape)


def history(changes, *, tracked=None, time=_first, set_on_insert=()):
    """History (SCD2) as [(key, values, valid_from, valid_to)].

    valid_to None is open, valid_from None is «since before the feed» (O5). `tracked`: H3, by default all.
    """
    versions = []
    for entity in entities(changes)[0]:
        moments, latest, values, ended_by = [], None, {}, entity.ended_by
        for change in [*(c for c in entity.changes if c is not ended_by), *([ended_by] if ended_by else [])]:
            latest = max((at for at in (latest, time(change)) if at is not None), default=None)  # H1
            kept = {name: values.get(name) for name in set_on_insert} if moments else {}  # A10
            values = {**after(values, change), **kept}
            moments.append((latest, change["key"], values))
        ends = [start for start, _, _ in moments[1:]] + ([] if ended_by else [_OPEN])
        merged = []
        for (start, key, values), end in zip(moments, ends, strict=False):
            if start == end:
                continue  # H1: zero length is no version
            if merged and merged[-1][0] == key and _told(merged[-1][1], tracked) == _told(values, tracked):
                start = merged.pop()[2]  # H3
            merged.append((key, values, start, None if end is _OPEN else end))
        versions += merged
    return versions


_OPEN = object()


def _told(values, tracked):
    return {k: v for k, v in values.items() if v is not None and (tracked is None or k in tracked)}


def multiset(changes):
    """N1, a table without a key: the rows, each its values. D removes one equal row, if there is one; U by `old_values` too."""
    rows = []
    for change in in_order(changes):
        if change["op"] == "T":
            rows.clear()
            continue
        gone = change["values"] if change["op"] == "D" else change.get("old_values")
        if gone in rows:
            rows.remove(gone)
        if change["op"] != "D":
            rows.append(change["values"])
    return rows


def with_pairs(changes):
    """K6: a delete and a create of another key at one position and transaction are one key change."""
    places = defaultdict(list)
    for change in changes:
        if change["op"] != "T" and change["sequence"] is not None:
            places[change["sequence"], change["transaction"]].append(change)
    absorbed, moved = [], {}
    for place in places.values():
        told = {change["key_before"] for change in place if is_key_change(change)}
        deletes = [change for change in place if change["op"] == "D" and change["key"] not in told]
        inserts = [change for change in place if change["op"] == "I" and not is_key_change(change)]
        absorbed += [change for change in place if change["op"] == "D" and change["key"] in told]
        if len(deletes) == len(inserts) == 1 and deletes[0]["key"] != inserts[0]["key"]:
            absorbed += deletes
            moved[id(inserts[0])] = deletes[0]["key"]
    gone = {id(change) for change in absorbed}
    return [
        {**change, "key_before": moved[id(change)]} if id(change) in moved else change
        for change in changes
        if id(change) not in gone
    ]


def with_keys(changes, alternate_keys):
    """K8: an event without a key acts on the one row that has its values of an alternate key; else it is left out. Its key is
    settled when it is staged: of what is below it only that counts which had come by then.

    `tells_null_key` of a change: null is the key that it tells.
    """
    named = []
    for change in in_order(changes):
        if change["op"] == "T" or any(part is not None for part in change["key"]) or change.get("tells_null_key"):
            named.append(change)
            continue
        told, rows = change["values"], replay(other for other in named if other["batch"] <= change["batch"])
        meant = {
            key
            for key, row in rows.items()
            for names in alternate_keys
            if all(told.get(name) is not None and told[name] == row.get(name) for name in names)
        }
        named += [{**change, "key": key} for key in meant if len(meant) == 1]
    return named


def without_repeats(changes):
    """N1, without a key: what comes again in another change set, at its position. Equal changes of one set are all rows."""
    first, kept = {}, []
    for change in sorted(changes, key=_arrival):
        told = repr([change.get(name) for name in ("op", "sequence", "ordinal", "values", "old_values")])
        if change["sequence"] is None or first.setdefault(told, _arrived_in(change)) == _arrived_in(change):
            kept.append(change)
    return kept


def without_duplicates(changes):
    """O4: what was staged before, from another change set; or stands directly before, in its own.

    `listed` of a change are the columns that were listed when it was loaded, without it all: others make no difference to it.
    """
    staged, last, kept = defaultdict(list), {}, []
    for change in sorted(changes, key=_arrival):
        arrived_in = _arrived_in(change)
        place = change["key"], change["sequence"], change["ordinal"]
        before = [other for other in staged[place] if _arrived_in(other) != arrived_in]
        before += filter(None, [last.get((arrived_in, place))])
        listed = change.get("listed")
        if all(_content(other, listed) != _content(change, listed) for other in before):
            kept.append(change)
        staged[place].append(change)
        last[arrived_in, place] = change
    return kept


def _arrival(change):
    return *_arrived_in(change), change["row"]


def _arrived_in(change):
    """The change set."""
    return change["batch"], change["set"]


def _content(change, listed):
    # The values hold the present columns only, so that what is missing is told by them.
    values = {name: value for name, value in change["values"].items() if listed is None or name in listed}
    return change["op"], change["key_before"], repr(sorted(values.items()))
