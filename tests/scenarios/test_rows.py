"""The rows-files of tests/cases, through generated models and real dbt runs, many at once. Of the random ones only some, and of
those that nearly tell the same only one: `make scenarios CASES=tests/cases`, a part of `make nightly`, takes them all.

A run for the first change sets, and one that finds all the others together; DELTA_CDC_RUNS=10 gives each a run of its own.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests import NIGHTLY
from tests.oracle_cases import changes_of, expected
from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import FEED, RowsCase, difference, read_cases, run_cases

CASES = Path(__file__).resolve().parents[1] / "cases"
LEFT_OUT = {  # another case or test shows the same: named in the comment
    "column_masked",
    "column_retyped",
    "columns_come_and_go",  # test_columns: hides, casts, gains, drops
    "expression_of_another_type_than_its_column__history",  # test_columns: makes, remakes
    "column_renamed",
    "values_with_a_surrogate_gain_a_column",  # test_columns: E2, N1
    "keys_alternate",
    "multiset_late_inserts_meet_their_deletes",
    "quarantine",  # test_much has them
    "columns_in_another_case",  # columns_spelled_otherwise_in_the_feed
    "history_time_never_runs_backwards",  # test_histories: several transactions at one moment
    "held_for_its_deletes",
    "held_for_its_errors",  # test_operations: Q2, Q4; held_for_rows_that_it_moves_and_deletes
    "history_follows_a_key_change",
    "history_table_late_change",  # keys_0005 and plain_0024, the soft ones
    "insert_only",  # test_bad_input: N2
    "keys_chain",
    "keys_reuse_of_a_vacated_key",
    "keys_swap_in_one_transaction",  # tests/spark/test_resolver.py
    "keys_split_key_change_over_two_loads_with_ordinals",
    "reads_without_position_are_below_all",  # test_postgres: Debezium's
    "keys_shift_in_one_transaction",  # random__shift_0007, the soft one
    "pitfalls_duplicate_inserts",
    "pitfalls_replay_of_all",  # test_bad_input: A3
    "keys_displaced_row_changes_once_more",  # tests/spark/test_resolver.py
    "keys_late_key_change",
    "keys_split_key_change",
    "keys_swap_in_three_steps",
    "keys_update_delete_reinsert",  # keys_…
    "life_created_and_updated",
    "life_on_time",
    "life_in_history",
    "life_begins_earlier_than_it_seemed",  # SHAPED
    "not_held_for_a_delete_that_the_same_load_overrules",  # held_for_rows_that_it_moves_and_deletes
    "multiset_surrogate_late_inserts_meet_their_deletes",  # multiset_late_inserts_meet_their_deletes
    "pitfalls_all_in_one_batch",
    "pitfalls_in_order",
    "pitfalls_replay_of_batch_2",  # pitfalls_delete_first
    "pitfalls_two_updates_in_one_batch",
    "pitfalls_reverse_order",
    "partial_late_fills_only_what_is_open",  # random__…
    "partial_does_not_fold_over_delete",
    "partial_null_means_absent",  # test_histories: ignore_null
    "partial_nulls_inside_structs",  # its history
    "replace_partitions_soft_gains_a_column",  # SHAPED; test_columns: gains_partitioned
    "soft_delete_and_revival",
    "soft_late_upsert_below_the_delete",
    "soft_delete_replaces_partitions",  # SHAPED
    "soft_delete_all_in_one_batch",
    "soft_delete_and_key_changes",
    "soft_delete_of_a_row_that_displaced_another",  # soft_…
    "soft_key_change_of_a_row_that_displaced_another",
    "soft_truncate_of_a_row_that_displaced_another",
    "soft_truncate_flags_all",
    "ties_across_batches",
    "ties_later_arrival_wins_over_equal_value",  # test_histories: the wild ones
    "truncate_keeps_what_comes_after",
    "truncate_late_insert_below_it",  # truncate_comes_late
}
ROWS = [path for path in (CASES / "rows").glob("*.json") if not path.name.startswith("autocdc__") and path.stem not in LEFT_OUT]
FILES = sorted([*ROWS, *sorted((CASES / "random").glob("*.json"))[::24]])
# Random changes of which history is a table and final tells of deleted rows and of each row's life (A9, A10).
SHAPED = {"keys_0005": "merge", "shift_0007": "merge", "partial_0006": "replace_partitions", "plain_0024": "merge"}


def shaped_cases(names: Mapping[str, str]) -> list[RowsCase]:
    cases = []
    for number, (name, apply) in enumerate(names.items()):
        path = CASES / "random" / f"random__{name}.json"
        content = json.loads(path.read_text()) | {
            "history": "table",
            "delete_mode": "soft",
            "soft_delete_nulls": number % 3 == 2,
            "created_at": "born",
            "updated_at": "touched",
            "set_on_insert": ["a"],
            "apply": apply,
            "partition_by": ["b"] if apply == "replace_partitions" else [],
        }
        cases.append(RowsCase(path.with_stem(f"{path.stem}__soft"), f"s{number:04d}", content | {"expected": expected(content)}))
    return cases


def all_cases() -> Sequence[RowsCase]:
    return [*read_cases([path for path in FILES if path.stem.removeprefix("random__") not in SHAPED]), *shaped_cases(SHAPED)]


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> Iterator[UserProject]:
    cases = all_cases()
    run_cases(project, cases, runs=int(os.environ.get("DELTA_CDC_RUNS", "2")))
    assert not [refusal for case in cases for refusal in case.refusals]
    return project


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.path.stem)
def test_a_rows_file_gives_the_rows_that_it_expects(delivered: UserProject, case: RowsCase) -> None:
    difference = case.difference(delivered.rows(case.query))
    assert difference is None, f"{case.path.name} (- expected, + found):\n{difference}"
    assert case.unwanted(delivered) == ""


def test_A4_every_final_equals_its_rebuild_from_staging(delivered: UserProject) -> None:
    """By night. By day every third of those that are compared with expected rows above, whole and not by touched keys too."""
    shaped = [case.table for case in all_cases() if case.content.get("history") == "table"]
    finals = [*(case.table for case in all_cases()[:: 1 if NIGHTLY else 3]), *shaped]
    chosen = [f"final_{table},test_name:final_equals_rebuild_from_staging" for table in finals]
    chosen += [f"hist_{FEED}__{table},test_name:history_equals_rebuild_from_staging" for table in shaped]
    touched = [] if NIGHTLY else ["--exclude", "tag:each_run"]
    found = delivered.dbt("test", "--select", *chosen, *touched, quiet=True).result.results
    assert len([each for each in found if each.node.resource_type == "test"]) >= len({*chosen})


@pytest.mark.parametrize("case", shaped_cases(SHAPED), ids=lambda case: case.path.stem)
def test_H1_a_history_kept_as_a_table_has_the_versions_of_all_changes(delivered: UserProject, case: RowsCase) -> None:
    versions = replace(case, content=case.content | {"scd": 2, "expected": expected({**case.content, "scd": 2})})
    assert versions.difference(delivered.rows(versions.query)) is None


def test_H4_final_as_it_was_at_a_moment_and_as_it_was_known_then(delivered: UserProject) -> None:
    """All questions in one query: final at a moment, as known after the first change set, and both."""
    asked = []
    for case in shaped_cases(SHAPED)[::3]:  # one with key changes, and one that is delivered out of order
        known_at = delivered.rows(
            f"select cast(max(_cdc_staged_at) as string) as at from {{schema}}.stg_{FEED}__{case.table}"
            " where endswith(_cdc_change_set, '0000.jsonl')"
        )[0]["at"]
        changes = list(changes_of(case.content))
        first = changes[: len(case.content["batches"][0])]
        moment, known = (statistics.median_low(change["sequence"][0] for change in some) for some in (changes, first))
        asked += [(case, moment, None, None), (case, None, known_at, 1), (case, known, known_at, 1)]
    questions = [
        f"select {number} as question, to_json(struct(*), map('ignoreNullFields', 'false')) as row from"
        f" ({{{{ delta_cdc.as_of(ref('final_{case.table}'), {moment or 'none'}, known_at={known_at!r}) }}}})"
        for number, (case, moment, known_at, _) in enumerate(asked)
    ]
    sql = "\nunion all\n".join(questions).replace("known_at=None", "known_at=none")
    shown = delivered.dbt("show", "--inline", sql, "--limit", "-1", quiet=True).result.results[0].agate_table
    assert len(shown.rows) > 20
    for number, (case, moment, known_at, batches) in enumerate(asked):
        found = [json.loads(row["row"]) for row in shown.rows if row["question"] == number]
        wanted = expected(case.content, batches=batches, moment=moment)
        differs = difference(wanted, found)
        assert differs is None, f"{case.path.stem} at {moment}, known at {known_at} (- expected, + found):\n{differs}"


def test_S6_nothing_new_is_no_commit(delivered: UserProject) -> None:
    jobs = delivered.spark().sparkContext._jsc.sc().dagScheduler().numTotalJobs
    before, jobs_before = delivered.versions(), jobs()
    delivered.dbt("run", quiet=True)
    assert delivered.versions() == before
    # those of the ledger, of the record and of what is held: no table has one of its own
    assert jobs() - jobs_before < len([name for name in before if name.startswith("stg_")])
