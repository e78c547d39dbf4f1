"""Tables that come as whole copies: what differs from the copy before becomes changes (S10)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.project import UserProject, write_change_set

TABLE = {
    "name": "t",
    "cdc": {"keys": ["id"], "except_columns": ["exported_at"]},
    "columns": {"id": "int", "name": "string", "nick": "string", "amount": "decimal(10,2)", "exported_at": "timestamp"},
}
Copy = Sequence[Mapping[str, Any]]

COPIES: list[Copy] = [
    [{"id": 1, "name": "a", "amount": "1.00"}, {"id": 2, "name": "b", "amount": None}, {"id": 3, "name": "c", "amount": "3.00"}],
    # 1 differs only in what is not published, 2 changed, 3 is gone, 4 is new
    [{"id": 1, "name": "a", "amount": "1.00"}, {"id": 2, "name": "b", "amount": "2.00"}, {"id": 4, "name": None, "amount": None}],
    # 2 is there twice and differs only in where a value stands, 4 twice and equal; 3 is back as it was
    [
        {"id": 1, "name": "a", "amount": "1.00"},
        {"id": 2, "name": "x", "nick": None, "amount": "2.00"},
        {"id": 2, "name": None, "nick": "x", "amount": "2.00"},
        {"id": 4, "name": None, "amount": None},
        {"id": 4, "name": None, "amount": None},
        {"id": 3, "name": "c", "amount": "3.00"},
    ],
    # 1 does not cast: it stays; a row without a key: nothing is deleted, though 3 and 4 are not there
    [{"id": 1, "name": "a", "amount": "much"}, {"id": 2, "name": "z", "amount": "2.00"}, {"name": "nobody"}],
    # now 3 is known to be gone; 4 was never away
    [{"id": 1, "name": "a", "amount": "much"}, {"id": 2, "name": "z", "amount": "2.00"}, {"id": 4, "name": None, "amount": None}],
    [{"id": 1, "name": "a", "amount": "1.00"}, {"id": 2, "name": "z", "amount": "2.00"}, {"id": 4, "name": None, "amount": None}],
    [],
    [{"id": 2, "name": "z", "amount": "2.00"}],
]
FINALS: list[dict[int, tuple[str | None, str | None]]] = [
    {1: ("a", "1.00"), 2: ("b", None), 3: ("c", "3.00")},
    {1: ("a", "1.00"), 2: ("b", "2.00"), 4: (None, None)},
    {1: ("a", "1.00"), 2: ("b", "2.00"), 3: ("c", "3.00"), 4: (None, None)},
    {1: ("a", "1.00"), 2: ("z", "2.00"), 3: ("c", "3.00"), 4: (None, None)},
    {1: ("a", "1.00"), 2: ("z", "2.00"), 4: (None, None)},
    {1: ("a", "1.00"), 2: ("z", "2.00"), 4: (None, None)},
    {},
    {2: ("z", "2.00")},
]
RUNS = [(1,), (2,), (3,), (4,), (5, 6), (7, 8)]  # the copies that each brings
# (copy, key, operation, error) of every row that staging takes
STAGED = {
    (1, 1, "U", None),
    (1, 2, "U", None),
    (1, 3, "U", None),
    (2, 2, "U", None),
    (2, 3, "D", None),
    (2, 4, "U", None),
    (3, 2, "U", "duplicate_key"),
    (3, 3, "U", None),
    (4, 1, "U", "cast:amount"),
    (4, 2, "U", None),
    (4, None, "U", "null_key"),
    (5, 1, "U", "cast:amount"),
    (5, 3, "D", None),
    (6, 1, "U", None),  # equal to what it was before the bad rows: told again, for nobody knew
    (7, 1, "D", None),
    (7, 2, "D", None),
    (7, 4, "D", None),
    (8, 2, "U", None),
}


def _deliver(folder: Path, number: int, copy: Copy, name: str = "t_202611{number:02}") -> None:
    exported = f"2026-11-{number:02} 04:00:00"
    path = write_change_set(folder / f"{name.format(number=number)}.jsonl", [{**row, "exported_at": exported} for row in copy])
    os.utime(path, (1_800_000_000 + number,) * 2)


def _configure(project: UserProject, feed: str, **settings: Any) -> Path:
    project.configure(
        feed,
        settings={"format": "snapshots", "location": f"landing/{feed}/{{table}}", **settings},
        tables=[{**TABLE, "cdc": {**TABLE["cdc"], "final_name": f"final_{feed}"}}],
    )
    return project.path / "landing" / feed / "t"


def _final(project: UserProject, feed: str) -> dict[int, tuple[str | None, str | None]]:
    return project.by_id(f"select id, name, cast(amount as string) as amount from {{schema}}.final_{feed}")


def _staged(project: UserProject, feed: str) -> list[tuple[int, int | None, str, str | None]]:
    rows = project.rows(
        "select cast(regexp_extract(_cdc_change_set, '(\\\\d\\\\d)[.]jsonl', 1) as int) as copy, id, _cdc_op, _cdc_error"
        f" from {{schema}}.stg_{feed}__t"
    )
    return [(row["copy"], row["id"], row["_cdc_op"], row["_cdc_error"]) for row in rows]


@pytest.fixture(scope="module")
def copies(project: UserProject) -> tuple[UserProject, list[dict[int, tuple[str | None, str | None]]]]:
    """The feed `nightly` gets one copy a run, `late` the first, then all others at once, `emptied` one, then one without rows."""
    folders = {feed: _configure(project, feed) for feed in ("nightly", "late")}
    folders["emptied"] = _configure(project, "emptied", occurred_at="exported_at")
    for folder in folders.values():
        folder.mkdir(parents=True)
    project.generate()
    finals = []
    for run in RUNS:
        for number in run:
            _deliver(folders["nightly"], number, COPIES[number - 1])
        for number in {RUNS[0]: RUNS[0], RUNS[-1]: range(2, len(COPIES) + 1)}.get(run, ()):
            _deliver(folders["late"], number, COPIES[number - 1])
        if len(finals) < 2:
            _deliver(folders["emptied"], len(finals) + 1, [] if finals else COPIES[0])
        project.dbt("run", quiet=True)
        finals.append(_final(project, "nightly"))
    return project, finals


def test_S10_final_is_the_newest_copy(copies: Any) -> None:
    _, finals = copies
    assert finals == [FINALS[run[-1] - 1] for run in RUNS]


@pytest.mark.parametrize("feed", ["nightly", "late"])
def test_S10_staging_takes_what_differs_however_copies_are_batched(copies: Any, feed: str) -> None:
    project, _ = copies
    staged = _staged(project, feed)
    assert set(staged) == STAGED
    # both rows of the key that is there twice are marked, and nothing else is staged twice
    assert len(staged) == len(STAGED) + 1
    assert _final(project, feed) == FINALS[-1]
    lost = project.rows(f"select _cdc_raw from {{schema}}.stg_{feed}__t where _cdc_error is not null")
    assert all(row["_cdc_raw"] for row in lost)


@pytest.mark.parametrize("feed", ["nightly", "late"])
def test_S10_history_tells_when_a_copy_was_made_by_its_name(copies: Any, feed: str) -> None:
    project, _ = copies
    rows = project.rows(
        "select id, name, string(amount) as amount, valid_from, valid_to, day(valid_from) as since, day(valid_to) as until"
        f" from {{schema}}.hist_{feed}__t order by id, valid_from"
    )
    of_three = [(row["since"], row["until"]) for row in rows if row["id"] == 3]
    assert of_three == [(1, 2), (3, 5)]
    of_two = [(row["name"], row["amount"], row["since"], row["until"]) for row in rows if row["id"] == 2]
    assert of_two == [("b", None, 1, 2), ("b", "2.00", 2, 4), ("z", "2.00", 4, 7), ("z", "2.00", 8, None)]
    assert all(earlier["valid_to"] <= later["valid_from"] for earlier, later in pairwise(rows) if earlier["id"] == later["id"])


def test_S10_the_same_copy_again_changes_nothing(copies: Any) -> None:
    project, _ = copies
    before = project.rows("describe history {schema}.stg_nightly__t limit 1")[0]["version"]
    _deliver(project.path / "landing/nightly/t", 9, COPIES[-1])
    project.dbt("run", "--select", "cdc_change_sets", "stg_nightly__t+", quiet=True)
    assert project.rows("describe history {schema}.stg_nightly__t limit 1")[0]["version"] == before


@pytest.mark.nightly  # a lost ledger: test_bad_input
@pytest.mark.parametrize("order", ["modified", "name"])
def test_S5_S10_a_lost_ledger_makes_no_old_copy_the_newest(project: UserProject, order: str) -> None:
    feed = f"lost_{order}"
    folder = _configure(project, feed, change_set_order=order)
    project.generate()

    def run() -> dict[int, tuple[str | None, str | None]]:
        project.dbt("run", "--select", "cdc_change_sets", f"stg_{feed}__t+", quiet=True)
        return _final(project, feed)

    for number, copy in enumerate((COPIES[0], COPIES[0], COPIES[1]), 1):  # of the second no table has a row
        _deliver(folder, number, copy)
        run()
    project.rows("drop table {schema}.cdc_change_sets")
    assert run() == FINALS[1]
    _deliver(folder, 4, COPIES[5])
    assert run() == FINALS[5]
    sets = project.rows(f"select count(*) as n from {{schema}}.cdc_change_sets where feed = '{feed}' group by change_set")
    assert [row["n"] for row in sets] == [1] * 4


@pytest.mark.nightly  # what is held: test_operations, Q2_Q4
def test_S10_Q4_a_copy_that_lacks_too_much_is_held(project: UserProject) -> None:
    folder = _configure(project, "guarded", max_delete_share=0.5)
    project.generate()
    _deliver(folder, 1, COPIES[0], name="all")
    project.dbt("run", "--select", "cdc_change_sets", "stg_guarded__t+", quiet=True)
    # a name without a day: the file's own time is when it happened
    since = project.rows("select distinct valid_from from {schema}.hist_guarded__t")
    assert [row["valid_from"] for row in since] == [datetime.fromtimestamp(1_800_000_001)]
    _deliver(folder, 2, [], name="none")
    project.dbt("run", "--select", "cdc_change_sets", "stg_guarded__t+", quiet=True)
    assert _final(project, "guarded") == FINALS[0]
    held = project.rows("select reason from {schema}.cdc_holds where accepted_at is null")
    assert ["it would delete 3 of the 3 live rows" in row["reason"] for row in held] == [True]


def test_S10_another_feed_starts_from_what_export_snapshot_writes(project: UserProject) -> None:
    kinds = ("parquet", "csv", "json", "orc", "avro")
    folder = _configure(project, "origin")
    for kind in kinds:
        _configure(project, f"from_{kind}", unit="folder", file_format=kind)
    project.generate()
    _deliver(folder, 1, COPIES[0])
    project.dbt("run", "--select", "cdc_change_sets", "stg_origin__t+", quiet=True)
    for kind in kinds:
        project.done("export-snapshot", "origin.t", "--to", f"landing/from_{kind}/t/2026-11-30", "--format", kind)
    project.dbt("run", "--select", "cdc_change_sets", *(f"stg_from_{kind}__t+" for kind in kinds), quiet=True)
    assert {kind: _final(project, f"from_{kind}") for kind in kinds} == dict.fromkeys(kinds, FINALS[0])


def test_S10_H1_rows_end_when_a_copy_without_rows_was_made_where_rows_tell_the_time(copies: Any) -> None:
    project, _ = copies
    assert _final(project, "emptied") == {}
    rows = project.rows("select id, day(valid_from) as since, day(valid_to) as until from {schema}.hist_emptied__t order by id")
    assert [tuple(row.values()) for row in rows] == [(1, 1, 2), (2, 1, 2), (3, 1, 2)]


def test_S10_E6_a_field_joins_a_struct_of_whole_copies(project: UserProject) -> None:
    folder = project.path / "landing/grows/t"
    for number, (type_, rows) in enumerate((
        ("struct<a: int>", [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": {"a": 2}}]),
        ("struct<a: int, b: string>", [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": {"a": 2, "b": "x"}}]),
    )):  # fmt: skip
        project.configure(
            "grows", settings={"format": "snapshots", "location": "landing/grows/{table}"},
            tables=[{"name": "t", "cdc": {"keys": ["id"], "final_name": "final_grows"}, "columns": {"id": "int", "s": type_}}],
        )  # fmt: skip
        project.generate()
        write_change_set(folder / f"t_2026120{number + 1}.jsonl", rows)
        project.dbt("run", "--select", "cdc_change_sets", "stg_grows__t+", quiet=True)
    rows = project.rows("select id, s.a as a, s.b as b from {schema}.final_grows order by id")
    assert rows == [{"id": 1, "a": 1, "b": None}, {"id": 2, "a": 2, "b": "x"}]


def test_Q5_what_only_changes_can_tell_has_no_place_in_snapshots(project: UserProject) -> None:
    project.configure(
        "wrong",
        settings={"format": "snapshots", "location": "landing/wrong/{table}", "deleted_when": "name is null"},
        tables=[{**TABLE, "cdc": {**TABLE["cdc"], "sequence_by": ["exported_at"], "operation": "name"}}],
    )
    said = [problem.message for problem in project.problems()]
    for name in ("sequence_by", "deleted_when", "operation"):
        assert any(message.startswith(f"`{name}`") for message in said), said
    (project.path / "models/wrong/_sources.yml").unlink()
