"""The oracle gives what others published, and what the contract's worked examples say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests import oracle
from tests.histories import histories
from tests.oracle_cases import expected

CASES = Path(__file__).parents[1] / "cases"
DELETE = "a_delete_tells_one_old_part_of_its_key_beside_a_row_that_has_the_new_one"
NAMES = ("keys_", "partial_", "truncate_", "pitfalls_", "ties_", "history_", "soft_", "life_", "multiset_")
FILES = sorted(CASES.glob("random/*.json")) + sorted(path for path in CASES.glob("rows/*.json") if path.name.startswith(NAMES))


def in_any_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_cases_are_there():
    assert len(FILES) >= 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_oracle_gives_the_published_result(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    assert in_any_order(expected(case)) == in_any_order(case["expected"])


def change(op, key, sequence, *, before=None, row=0, batch=0, ordinal=None, transaction=None, **values):
    return {
        "op": op,
        "key": None if key is None else (key,),
        "key_before": None if before is None else (before,),
        "sequence": None if sequence is None else (sequence,),
        "ordinal": ordinal,
        "transaction": transaction,
        "batch": batch,
        "set": 0,
        "row": row,
        "values": values,
    }


def test_O3_an_upsert_beats_a_delete_only_when_all_else_is_equal():
    insert, delete = change("I", 1, 5, a=1), change("D", 1, 5)
    assert oracle.replay([insert, delete]) == {(1,): {"a": 1}}
    assert oracle.replay([insert, {**delete, "row": 1}]) == {}


def test_O3_a_delete_takes_a_row_with_the_insert_that_updated_it_at_that_position():
    row, read, delete = change("I", 1, 1, a=1), change("R", 1, 5, a=2, batch=1), change("D", 1, 5, batch=2)
    assert oracle.replay([row, read, delete]) == {}
    assert oracle.history([row, read, delete]) == [((1,), {"a": 1}, 1, 5)]
    moves = change("U", 2, 9, before=1, batch=3)  # K3: where rows leave the key, the delete is of the one that held it longest
    assert oracle.replay([row, read, delete, moves]) == {(2,): {"a": 2}}
    assert oracle.as_of([row, read, delete, moves], 6) == {(1,): {"a": 2}}


def test_O4_only_what_was_staged_or_stands_directly_before_is_a_duplicate():
    one, two = change("U", 1, 5, a=1), change("U", 1, 5, a=2)
    within = [{**each, "row": row} for row, each in enumerate([one, one, two, one])]
    assert [each["row"] for each in oracle.without_duplicates(within)] == [0, 2, 3]
    again = [{**each, "batch": 1} for each in within]
    assert oracle.without_duplicates(within + again) == oracle.without_duplicates(within)


def test_N1_what_comes_again_in_another_change_set_is_a_duplicate_where_it_has_a_position():
    one, read = change("I", None, 5, a=1), change("R", None, None, a=2)
    within = [{**each, "row": row} for row, each in enumerate([one, one, read])]
    again = [{**each, "batch": 1} for each in within]
    assert oracle.multiset(oracle.without_repeats(within + again)) == [{"a": 2}, {"a": 2}, {"a": 1}, {"a": 1}]


def test_O5_a_read_without_position_is_below_everything():
    read, truncate = change("R", 1, None, a=1, row=9), change("T", None, 5)
    assert oracle.replay([truncate, read]) == {}
    update = change("U", 1, 3, a=2)
    assert oracle.replay([update, read]) == {(1,): {"a": 2}}
    assert oracle.history([update, read]) == [((1,), {"a": 1}, None, 3), ((1,), {"a": 2}, 3, None)]
    later = change("R", 1, None, a=7, batch=1)
    assert oracle.history([later, read]) == [((1,), {"a": 7}, None, None)]


def test_K6_a_delete_and_a_create_at_one_place_are_one_key_change():
    base = change("I", 1, 1, a=1, b=1)
    halves = [change("D", 1, 5, transaction="t", row=1), change("I", 2, 5, transaction="t", row=2, a=2)]
    assert oracle.replay(oracle.with_pairs([base, *halves])) == {(2,): {"a": 2, "b": 1}}
    told = {**halves[1], "key_before": (1,)}
    assert oracle.replay(oracle.with_pairs([base, halves[0], told])) == {(2,): {"a": 2, "b": 1}}
    other = {**halves[1], "transaction": "u"}
    assert oracle.replay(oracle.with_pairs([base, halves[0], other])) == {(2,): {"a": 2}}


def test_K7_the_displaced_row_is_restored_when_its_own_move_comes_to_light():
    base = [change("I", 1, 1, a="one"), change("I", 2, 1, a="two", row=1)]
    swap = [change("U", 2, 5, before=1, row=2), change("U", 1, 5, before=2, row=3)]
    assert oracle.replay(base + swap[:1]) == {(2,): {"a": "one"}}
    assert oracle.replay(base + swap) == {(2,): {"a": "one"}, (1,): {"a": "two"}}


def test_K8_what_comes_later_for_a_position_below_an_event_does_not_change_whom_it_means():
    rows = [change("I", 1, 1, mail="m"), change("I", 2, 1, row=1, mail="n")]
    event = {**change("U", None, 10, row=2, mail="m", v=10), "key": (None,)}
    late = [change("U", 1, 5, batch=1, mail="k"), change("U", 2, 6, batch=1, row=1, mail="m")]
    again = {**event, "batch": 2, "sequence": (7,), "values": {"mail": "m", "v": 7}}
    assert oracle.replay(oracle.with_keys([*rows, event, *late, again], [["mail"]])) == {
        (1,): {"mail": "m", "v": 10},
        (2,): {"mail": "m", "v": 7},
    }


def test_K1_a_delete_that_tells_the_old_key_deletes_that_one():
    case = json.loads((CASES / "combinations" / f"{DELETE}.json").read_text(encoding="utf-8"))
    assert in_any_order(expected(case)) == in_any_order(case["expected"])


def test_K3_an_empty_transaction_is_none():
    case = json.loads((CASES / "combinations" / "an_empty_transaction_is_none.json").read_text(encoding="utf-8"))
    assert in_any_order(expected(case)) == in_any_order(case["expected"])


def test_H1_a_version_of_zero_length_is_none_and_time_never_runs_back():
    changes = [
        change("I", 1, 5, a=1),
        change("U", 1, 5, a=2, row=1),
        change("U", 1, 9, a=3),
        change("D", 1, 9, row=1),
    ]
    assert oracle.history(changes) == [((1,), {"a": 2}, 5, 9)]
    times = {5: 5, 9: 4}
    backwards = oracle.history(changes[1:3], time=lambda each: times[each["sequence"][0]])
    assert backwards == [((1,), {"a": 3}, 5, None)]


def test_H4_a_delete_or_truncate_without_a_time_is_from_before_the_feed():
    def time(each):
        return each["values"].get("at")

    row = change("I", 1, 1, a=1)
    for end in (change("D", 1, 2), change("T", None, 2)):
        assert oracle.as_of([row, end], 5, time=time) == {}
        later = change("I", 1, 3, at=7)
        assert oracle.as_of([row, end, later], 5, time=time) == {}
        assert oracle.as_of([row, end, later], 7, time=time) == {(1,): {"at": 7}}
    # with a time below it, it happened at that
    timed = change("U", 1, 2, at=7)
    assert oracle.as_of([row, timed, change("D", 1, 3)], 5, time=time) == {(1,): {"a": 1}}
    assert oracle.as_of([row, timed, change("D", 1, 3)], 7, time=time) == {}


def test_H3_versions_that_agree_on_what_is_tracked_are_one():
    changes = [change("I", 1, 1, a=1, b=1), change("U", 1, 2, b=2), change("U", 2, 3, before=1)]
    assert oracle.history(changes, tracked=["a"]) == [
        ((1,), {"a": 1, "b": 2}, 1, 3),
        ((2,), {"a": 1, "b": 2}, 3, None),
    ]


def test_N1_a_delete_in_vain_changes_nothing_and_an_update_in_vain_adds_its_row():
    updates = [change("U", None, sequence, a=7) | {"old_values": {"a": 6}} for sequence in (2, 4)]
    delete, late = change("D", None, 3, a=8), change("I", None, 1, a=6)
    assert oracle.multiset([*updates, delete]) == [{"a": 7}, {"a": 7}]
    assert oracle.multiset([*updates, delete, late, {**late, "sequence": (5,)}]) == [{"a": 7}, {"a": 7}, {"a": 6}]


def without_nulls(rows):
    return {key: {k: v for k, v in row.items() if v is not None} for key, row in rows.items()}


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(histories() | histories(alters=True))
def test_O2_however_it_is_delivered_the_oracle_ends_with_what_the_source_holds(history):
    changes = oracle.with_keys(oracle.without_duplicates(history.delivered), [["a"]])
    if history.style == "split pairs":
        changes = oracle.with_pairs(changes)
    assert without_nulls(oracle.replay(changes)) == without_nulls(history.source)
