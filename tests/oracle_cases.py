"""Rows-files (tests/cases/README.md) as the oracle reads them."""

from __future__ import annotations

import re

from tests import oracle


def changes_of(case):
    """A case's rows as the oracle's changes."""

    def says(condition, row):
        column, value = re.fullmatch(r"(\w+) = '(\w+)'", condition).groups() if condition else (None, None)
        return column is not None and row[column] == value

    (op_column,) = {name for name in case["schema"] if name in ("op", "type", "changeType")}
    absent = {(batch, row): columns for batch, row, columns in case.get("missing", [])}
    old_names = case.get("old_keys", {})
    spelling = {name.casefold(): name for name in case["schema"]}
    silent = case.get("ignore_null") or ()
    silent = [name for name in case["schema"] if name not in case["keys"]] if silent is True else silent
    for batch, rows in enumerate(case["batches"]):
        for number, row in enumerate(rows):
            row = {spelling.get(name.casefold(), name): value for name, value in row.items()} | row
            key = tuple(row[name] for name in case["keys"])
            told = [row.get(old_names.get(name)) for name in case["keys"]]
            before = tuple(new if old is None else old for old, new in zip(told, key, strict=True))  # P3: a null says nothing
            before = None if all(part is None for part in told) else before
            op = row[op_column][0].upper()
            if op == "D" or says(case.get("delete_when"), row):  # a delete may tell the old key, which is the one it deletes
                op, key, before = "D", before or key, None
            elif says(case.get("truncate_when"), row):
                op, key, before = "T", None, None
            values = {name: value for name, value in row.items() if name not in absent.get((batch, number), ())}
            if op == "U":
                structs = {name for name in silent if case["schema"][name].strip().upper().startswith("STRUCT")}
                values |= {name: partial(value) for name, value in values.items() if name in structs}
                values = {name: value for name, value in values.items() if name not in silent or not oracle.says_nothing(value)}
            told_null = any(name in values and row[name] is None for name in case.get("nullable_keys") or ())
            if all(part is None for part in key or ()) and not told_null:  # K8: it tells no key, and leaves the row's as it is
                values = {name: value for name, value in values.items() if name not in case["keys"]}
            yield {
                "op": op,
                "tells_null_key": told_null,
                "key": key,
                "key_before": before,
                "sequence": (row[case["sequence"]],),
                "ordinal": None if row[case["sequence"]] is None else row.get(case.get("ordinal")),
                "transaction": None if row.get(case.get("transaction")) in (None, "") else str(row[case["transaction"]]),
                "batch": batch,
                "set": 0,
                "row": number,
                "values": values,
            }


def partial(value):
    """A value of an update in which nulls say nothing."""
    return oracle.Partial({name: partial(part) for name, part in value.items()}) if isinstance(value, dict) else value


def columns_of(case):
    """Which columns the expected rows hold."""
    wanted = case["columns"]
    if isinstance(wanted, list):
        return wanted
    return wanted["include"] if "except" not in wanted else [name for name in case["schema"] if name not in wanted["except"]]


def expected(case, *, batches=None, moment=None):
    """The rows that the oracle gives for a case: final or history, by its `scd`; of a multiset final.

    batches: only the first so many are known. moment: final as it was then, in sequence terms.
    """
    changes = [change for change in changes_of(case) if batches is None or change["batch"] < batches]
    columns = columns_of(case)
    if case.get("keyless") == "multiset":
        rows = [{**change, "values": {name: change["values"][name] for name in columns}} for change in changes]
        return oracle.multiset(oracle.without_repeats(rows))
    changes = oracle.without_duplicates(changes)
    changes = oracle.with_keys(changes, case["alternate_keys"]) if case.get("alternate_keys") else changes
    changes = oracle.with_pairs(changes) if case.get("split_key_changes") else changes
    time = {"time": lambda change: change["values"][case["occurred_at"]]} if case.get("occurred_at") else {}
    set_on_insert = case.get("set_on_insert") or ()
    if case["scd"] == 2:
        tracked = case.get("track_history")
        tracked = columns if tracked is None else columns_of({**case, "columns": tracked})
        versions = oracle.history(changes, tracked=tracked, set_on_insert=set_on_insert, **time)
        return [
            {name: {**values, **dict(zip(case["keys"], key, strict=True))}.get(name) for name in columns}
            | {"__START_AT": start, "__END_AT": end}
            for key, values, start, end in versions
        ]
    soft = case.get("delete_mode") == "soft"
    times = {name: case.get(name) for name in ("created_at", "updated_at")}
    shape = {"soft": soft, "soft_nulls": case.get("soft_delete_nulls"), "set_on_insert": set_on_insert, **times, **time}
    rows = oracle.final(changes, **shape) if moment is None else oracle.as_of(changes, moment, **shape)
    added = [*filter(None, times.values()), *(["_cdc_is_deleted", "_cdc_deleted_at"] if soft else [])]
    return [
        {name: {**row, **dict(zip(case["keys"], key, strict=True))}.get(name) for name in [*columns, *added]}
        for key, row in rows.items()
    ]
