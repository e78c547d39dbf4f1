"""Random histories through generated models and real dbt runs: final, history and staging against the oracle.

Some are a table's of their own, whose columns come, change and go, which may share its change sets with others, and which has
settings. A table costs seconds, a row nothing: so two more tables hold many histories each, side by side.

DELTA_CDC_HISTORIES=300 (default 4) says how many have their own table, DELTA_CDC_RUNS=10 (default 3) in how many runs all change
sets arrive, DELTA_CDC_SEED=7 draws others. A history that fails is made smaller for as long as it still fails; what is left is
printed as a rows-file, which `make scenarios CASES=file` takes (not where its rows are messages).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import strategies as st

from dbt.adapters.sparkdelta import narrowing, tuning
from tests import NIGHTLY
from tests.histories import drawn, histories, wild_changes
from tests.history_files import WILD, Delivered, text
from tests.keyless_histories import keyless_case
from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import FEED, MIXED, RowsCase, difference, run_cases
from tests.scenarios.values import exact_json

COUNT = int(os.environ.get("DELTA_CDC_HISTORIES", "4"))
RUNS = int(os.environ.get("DELTA_CDC_RUNS", "3"))
TOGETHER = 20  # histories in a table that holds many
APART = 1000  # between the keys of two such
SMALLER = 8  # rounds of a dbt project each, to make a failing history smaller


def case_of(delivered: Delivered, number: int) -> RowsCase:
    name, table = f"history_{number:04d}", f"h{number:04d}"
    return RowsCase(Path(f"{name}.json"), table, delivered.rows_file(name, table), feed=MIXED if delivered.mixed else FEED)


def table_settings(chance: Random) -> dict[str, object]:
    """What a table may be configured with beside what its history asks for."""
    soft = chance.choice(({}, {}, {"delete_mode": "soft"}, {"delete_mode": "soft", "soft_delete_nulls": True}))
    partitions = chance.choice(({}, {}, {"partition_by": ["b"]}, {"partition_by": ["b"], "apply": "replace_partitions"}))
    others: dict[str, object] = {
        "history": "table", "created_at": "born", "updated_at": "touched", "set_on_insert": ["a"],
        "on_schema_change": "sync_all_columns", "ignore_null": chance.choice((True, ["b"])),
        "track_history": chance.choice((["a"], {"except": ["b"]})),
    }  # fmt: skip
    return soft | partitions | {name: value for name, value in others.items() if chance.random() < 0.3}


@st.composite
def deliveries(draw: st.DrawFn) -> Delivered:
    """What a simulated source did and how it came."""
    history = draw(histories(alters=True))
    chance = Random(repr(history.delivered))
    nameless = {"alternate_keys": [["a"]]} if "nameless" in history.features else {}
    return Delivered(
        history.style, history.delivered, history.shapes, lead=chance.choice((-2, -1, -1, 0, 0, 1)),
        settings=table_settings(chance) | nameless, mixed=chance.random() < 0.4 and not nameless,
        wide_key_from=chance.choice((None, None, 1, RUNS - 1)), clock=chance.choice((1, 1, 3)), runs=RUNS,
        composite=chance.random() < 0.3,
    )  # fmt: skip


def together(style: str, many: Sequence[Sequence[dict]], shapes: Sequence[dict] = WILD) -> Delivered:
    """Histories side by side in one table, with keys of their own. Truncates are the first one's: they end the rows of all."""

    def moved(number: int, change: dict) -> dict:
        keys = {name: change[name] and (change[name][0] + APART * number,) for name in ("key", "key_before")}
        told = {"id": keys["key"][0]} if "id" in change["values"] else {}
        return {**change, **keys, "row": APART * number + change["row"], "values": change["values"] | told}

    changes = [moved(number, change) for number, each in enumerate(many) for change in each if change["op"] != "T" or not number]
    return Delivered(style, changes, shapes)


def random_histories() -> list[Delivered]:
    """Three in four from a simulated source, the fourth wild: ties in all parts of the position, nonsense that no source does."""
    wild = COUNT // 4
    sound = drawn(deliveries(), COUNT - wild)
    beside = drawn(histories(styles=("sequence pair",)), TOGETHER)
    return [
        *sound,
        *(Delivered("wild", changes) for changes in drawn(wild_changes(), wild)),
        together("sequence pair", [history.delivered for history in beside], beside[0].shapes),
        together("wild", drawn(wild_changes(), TOGETHER)),
    ]


def wrong(project: UserProject, case: RowsCase, delivered: Delivered) -> str | None:
    """What differs from the oracle in final, history or staging; None if nothing does."""
    if case.refusals:
        return "\n".join(case.refusals)
    if differs := case.difference(project.rows(case.query)):
        return f"final (- expected, + found):\n{differs}"
    versions = delivered.history()
    shown = replace(case, content=case.content | {"scd": 2, "expected": versions})
    if versions and (differs := difference(versions, project.rows(shown.query))):
        return f"history (- expected, + found):\n{differs}"
    for table in (case, shown):
        if unwanted := table.unwanted(project, *delivered.unpublished):
            return f"{table.relation} has {unwanted}"
    staging = f"{{schema}}.stg_{case.feed}__{case.table}"
    staged = project.rows(f"select count(*) as n from {staging} where _cdc_error is null")[0]["n"]
    if staged != len(delivered.staged):
        return f"staging holds {staged} changes, {len(delivered.staged)} different ones arrived"
    kept = [{"name": name, "value": value, "n": n} for (name, value), n in delivered.undeclared().items()]
    counted: dict[tuple[str, str | None], int] = {}
    for row in project.rows(
        f"select explode(_cdc_undeclared) as (name, value) from {staging} where _cdc_error is null and _cdc_op in ('I', 'U', 'R')"
    ):
        counted[row["name"], text(row["value"])] = counted.get((row["name"], text(row["value"])), 0) + 1
    differs = difference(kept, [{"name": name, "value": value, "n": n} for (name, value), n in counted.items()])
    return differs and f"columns that nobody listed (- expected, + found):\n{differs}"


def smaller(delivered: Delivered) -> Iterator[Delivered]:
    """One of those side by side; the same with change sets of its own, without a setting, a change set, some changes."""
    numbers = {(change["key"] or (0,))[0] // APART for change in delivered.changes}
    if len(numbers) > 1:
        for number in numbers:
            yield replace(delivered, changes=[c for c in delivered.changes if (c["key"] or (0,))[0] // APART == number])
        return
    if delivered.mixed:
        yield replace(delivered, mixed=False)
    for name in {*delivered.settings} - {"alternate_keys"}:
        gone = {name, {"delete_mode": "soft_delete_nulls", "partition_by": "apply"}.get(name)}
        yield replace(delivered, settings={each: value for each, value in delivered.settings.items() if each not in gone})
    sets = sorted({(change["batch"], change["set"]) for change in delivered.changes})
    for one in sets:
        yield replace(delivered, changes=[c for c in delivered.changes if (c["batch"], c["set"]) != one])
    size = max(len(delivered.changes) // 12, 1)
    for start in range(0, len(delivered.changes), size):
        yield replace(delivered, changes=[*delivered.changes[:start], *delivered.changes[start + size :]])


def smallest(delivered: Delivered, folder: Path, lake: Path) -> tuple[RowsCase, str]:
    """A part of a failing history that fails too, and how."""
    kept, found = None, (case_of(delivered, 0), "")
    for number in range(SMALLER):
        candidates = [each for each in smaller(delivered) if each.changes] if kept else [delivered]
        cases = [case_of(each, index) for index, each in enumerate(candidates)]
        project = UserProject(folder / f"smaller_{number}", lake=lake, schema=f"smaller_{number}")
        run_cases(project, cases, runs=RUNS)
        failing = [
            (len(each.changes), len(each.settings), index, why)
            for index, (each, case) in enumerate(zip(candidates, cases, strict=True))
            if (why := wrong(project, case, each))
        ]
        if not failing:
            break
        *_, index, why = min(failing)
        kept = delivered = candidates[index]
        found = (cases[index], why)
    return found


def keyless_case_of(number: int) -> RowsCase:
    content, table = keyless_case(number, runs=RUNS), f"k{number:04d}"
    mixed = content.pop("mixed")
    if mixed:
        content["batches"] = [[message | {"table": table} for message in batch] for batch in content["batches"]]
    return RowsCase(Path(f"keyless_{number:04d}.json"), table, content, feed=MIXED if mixed else FEED)


@pytest.fixture(scope="module")
def loaded(project: UserProject) -> Iterator[tuple[list[Delivered], list[RowsCase], list[RowsCase]]]:
    """Histories of tables with a key, their cases, and those of tables without one; all loaded by the same runs."""
    many = random_histories()
    cases = [case_of(delivered, number) for number, delivered in enumerate(many)]
    keyless = [keyless_case_of(number) for number in range(max(COUNT // 4, 3))]
    with pytest.MonkeyPatch.context() as patch:
        if NIGHTLY:  # merges, look-ups and all else as in large tables; by day test_much has that
            patch.setattr(narrowing, "LARGE", {"merge": 0, "read": 0})
            patch.setitem(tuning.MUCH, "table", 0)
        run_cases(project, [*cases, *keyless], runs=RUNS)
        yield many, cases, keyless


def test_O2_P2_H1_random_histories_give_what_the_oracle_gives(
    project: UserProject, loaded: tuple[list[Delivered], list[RowsCase], list[RowsCase]], tmp_path: Path
) -> None:
    many, cases, _ = loaded
    failing = [(delivered, why) for case, delivered in zip(cases, many, strict=True) if (why := wrong(project, case, delivered))]
    if failing:
        case, why = smallest(failing[0][0], tmp_path, project.lake)
        what = why or f"only with all of the others it fails: {failing[0][1]}"
        pytest.fail(
            f"{len(failing)} of {len(many)} histories differ: {', '.join(delivered.style for delivered, _ in failing)}\n"
            f"The first, made smaller, differs in {what}\n{exact_json(case.content)}"
        )


def test_N1_N2_random_histories_without_a_key_give_what_the_oracle_gives(
    project: UserProject, loaded: tuple[list[Delivered], list[RowsCase], list[RowsCase]]
) -> None:
    failing = [
        (case, why) for case in loaded[2] if (why := "\n".join(case.refusals) or case.difference(project.rows(case.query)))
    ]
    if failing:
        case, why = min(failing, key=lambda each: sum(map(len, each[0].content["batches"])))
        differ = f"{len(failing)} of {len(loaded[2])} differ. The smallest (- expected, + found):"
        pytest.fail(f"{differ}\n{why}\n{exact_json(case.content)}")
