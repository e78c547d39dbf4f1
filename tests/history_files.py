"""Random histories (tests/histories.py) as rows-files (tests/cases/README.md), with what the oracle says of them."""

from __future__ import annotations

from tests import oracle

SCHEMA = {"id": "int", "old_id": "int", "op": "string", "seq": "bigint", "place": "bigint", "txn": "string"}
VALUES = {"a": "string", "b": "string", "n": "string"}


def rows_file(name, delivered, style):
    """A rows-file of what was delivered, whatever part of a history that is. Its `expected` is final, as the oracle replays it.

    style: one of tests.histories.STYLES, or "wild".
    """
    sets = {}
    for change in sorted(delivered, key=lambda change: (change["batch"], change["set"], change["row"])):
        sets.setdefault((change["batch"], change["set"]), []).append(change)
    columns = {column for change in delivered for column in change["values"]} & set(VALUES)
    values = {column: type_ for column, type_ in VALUES.items() if column in columns}
    pair = style in ("sequence pair", "split pairs")
    case = {
        "name": name,
        "source": f"a random history ({style})",
        "scd": 1,
        "keys": ["id"],
        "sequence": ["seq", "place"] if pair else "seq",
        "delete_when": "op = 'D'",
        "truncate_when": "op = 'T'",
        "operation": "op",
        "old_keys": {"id": "old_id"},
        "columns": {"except": ["op", "old_id", "seq", "place", "txn"]},
        "schema": SCHEMA | values,
        "batches": [[_row(change, values) for change in changes] for changes in sets.values()],
        "missing": [
            [batch, row, absent]
            for batch, changes in enumerate(sets.values())
            for row, change in enumerate(changes)
            if change["op"] in "IRU" and (absent := [column for column in values if column not in change["values"]])
        ],
    }
    if not pair:
        case["ordinal"] = "place"
    if style != "equal sequence":
        case["transaction"] = "txn"
    if style == "split pairs":
        case["split_key_changes"] = True
    changes = as_read(delivered, style)
    case["expected"] = [
        {"id": key[0], **{column: _text(row.get(column)) for column in values}} for key, row in oracle.replay(changes).items()
    ]
    return case


def history_expected(delivered, style, columns):
    """The rows that history has, as a rows-file of `scd` 2 has them."""
    return [
        {"id": key[0], **{column: _text(row.get(column)) for column in columns}, "__START_AT": start, "__END_AT": end}
        for key, row, start, end in oracle.history(as_read(delivered, style))
    ]


def as_read(delivered, style):
    """The changes that count: each once, split key changes put together."""
    # the transaction is a column of these files, so that changes that differ in it alone are not the same
    told = [{**change, "values": {**change["values"], "txn": change["transaction"]}} for change in delivered]
    changes = [
        {**change, "values": {name: value for name, value in change["values"].items() if name != "txn"}}
        for change in oracle.without_duplicates(told)
    ]
    return oracle.with_pairs(changes) if style == "split pairs" else changes


def _row(change, values):
    sequence = (*(change["sequence"] or ()), None, None)
    key, before = ((None, None) if part is None else part for part in (change["key"], change["key_before"]))
    return {
        "id": key[0],
        "old_id": before[0],
        "op": change["op"],
        "seq": sequence[0],
        "place": change["ordinal"] if sequence[1] is None else sequence[1],
        "txn": change["transaction"],
        **{column: _text(change["values"].get(column)) for column in values},
    }


def _text(value):
    return None if value is None else str(value)
