"""`make mutants`: does a test fail when a rule is broken? Seeded faults, and the cases that go red.

Each fault is one text put in place of another in a copy of the package, in its macros, its adapter or its resolver. A few
rows-files then go through generated models and real dbt runs, and just the cases that the fault names must differ; or, for
what no case can show, the tests that carry the rule's id run in the copy, and just those that the fault names must fail. Not
part of `make test`: a fault costs one to three minutes, one that tests notice twice that, for they run without it, too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from delta_cdc import resolver
from tests.scenarios.project import PACKAGE, UserProject
from tests.scenarios.rows_cases import read_cases, run_cases
from tests.scenarios.runner import judge, rows_of

CASES = (
    "keys_chain",
    "keys_swap_in_one_transaction",
    "history_follows_a_key_change",
    "partial_does_not_fold_over_delete",
    "partial_late_fills_only_what_is_open",
    "partial_null_means_absent",
    "pitfalls_delete_first",
    "soft_delete_and_revival",
    "life_created_and_updated",
    "truncate_keeps_what_comes_after",
    "autocdc__scd2_repeated_value_keeps_one_record_from_its_first_occurrence",
    "autocdc__scd2_late_event_older_than_all_history",
    "keys_displaced_row_changes_once_more",
    "keys_reuse_of_a_vacated_key",
    "pitfalls_reverse_order",
    "keys_alternate",
    "multiset_late_inserts_meet_their_deletes",
    "soft_delete_replaces_partitions",
    "ties_across_batches",
    "reads_without_position_are_below_all",
    "nullable_keys",
    "keys_split_key_change",
    "history_time_never_runs_backwards",
    "history_table_late_change",
    "insert_only",
    "quarantine",
    "held_for_its_errors",
    "held_for_its_deletes",
    "columns_come_and_go",
    "column_renamed",
    "column_retyped",
    "column_masked",
)

RESOLVER = "python_helpers/delta_cdc/resolver.py"


@dataclass(frozen=True)
class Mutant:
    """A fault: in `file` of the package, `before` becomes `after`. red: the cases, or the tests (file::name), that must fail, by
    the rule that they prove. nightly: some of them are marked so."""

    rule: str
    file: str
    before: str
    after: str
    red: tuple[str, ...]
    nightly: bool = False

    @property
    def test_files(self) -> tuple[str, ...]:
        """Those of the tests that must fail; none where cases must."""
        return tuple(dict.fromkeys(name.partition("::")[0] for name in self.red if "::" in name))


MUTANTS = (
    Mutant(
        "O1",
        "macros/history/entity_states.sql",
        "delta_cdc.order_columns() + ['_cdc_ends']",
        "['_cdc_batch_id', '_cdc_row', '_cdc_ends']",
        (
            "autocdc__scd2_late_event_older_than_all_history",
            "history_follows_a_key_change",
            "history_table_late_change",
            "keys_alternate",
            "nullable_keys",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
            "pitfalls_delete_first",
            "pitfalls_reverse_order",
            "reads_without_position_are_below_all",
            "soft_delete_replaces_partitions",
        ),
    ),
    Mutant(
        "P1",
        "macros/apply/shape.sql",
        "'array_contains(_cdc_missing, ' ~ delta_cdc.literal(column) ~ ') or _cdc_ends'",
        "'_cdc_ends'",
        (
            "keys_alternate",
            "keys_chain",
            "keys_split_key_change",
            "nullable_keys",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
        ),
    ),
    Mutant(
        "A1",
        "macros/history/entity_states.sql",
        "s._cdc_op = 'D' as _cdc_ends, 0 as _cdc_after\n",
        "false as _cdc_ends, 0 as _cdc_after\n",
        ("pitfalls_delete_first", "soft_delete_replaces_partitions", "ties_across_batches"),
    ),
    Mutant(
        "A2",
        "macros/apply/final.sql",
        "{%- elif found.late > 0 or resolved ",
        "{%- elif resolved ",
        (
            "keys_alternate",
            "nullable_keys",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
            "pitfalls_delete_first",
            "reads_without_position_are_below_all",
            "soft_delete_replaces_partitions",
        ),
    ),
    Mutant(
        "A8",
        "macros/history/entity_states.sql",
        "_cdc_op = 'T' and _cdc_error is null",
        "false",
        ("truncate_keeps_what_comes_after",),
    ),
    Mutant(
        "A9",
        "macros/apply/final.sql",
        "{%- set soft = settings.get('delete_mode') == 'soft' -%}",
        "{%- set soft = false -%}",
        ("soft_delete_and_revival", "soft_delete_replaces_partitions"),
    ),
    Mutant(
        "K1",
        "macros/history/entity_states.sql",
        "coalesce(k.entity, {{ own }})",
        "{{ own }}",
        ("history_follows_a_key_change", "keys_alternate", "keys_chain", "keys_split_key_change", "life_created_and_updated"),
    ),
    Mutant(
        "O4",
        "macros/apply/staging.sql",
        "where not exists (  -- only late",
        "where true or not exists (  -- only late",
        ("keys_alternate", "multiset_late_inserts_meet_their_deletes"),
    ),
    Mutant(
        "A6",
        "macros/apply/replace_partitions.sql",
        "  union all\n  select {{ old | join",
        "  intersect\n  select {{ old | join",
        ("soft_delete_replaces_partitions",),
    ),
    Mutant(
        "K7",
        "macros/history/entity_states.sql",
        "if(k.displaced_entity is null, null,",
        "if(true, null,",
        ("keys_displaced_row_changes_once_more",),
    ),
    Mutant(
        "O3",
        "macros/history/entity_states.sql",
        "delta_cdc.order_columns() + ['_cdc_ends']",
        "['_cdc_sequence', '_cdc_ordinal', '-_cdc_batch_id', '-_cdc_row', '_cdc_ends']",
        ("ties_across_batches",),
    ),
    Mutant(
        "O5",
        "macros/ordering/order_by.sql",
        "(column ~ ' ' ~ direction) | trim",
        "column ~ (' desc nulls first' if direction else '')",
        ("reads_without_position_are_below_all",),
    ),
    Mutant(
        "P2",
        "macros/history/entity_states.sql",
        "partition by _cdc_entity, _cdc_epoch, _cdc_life order by {{ delta_cdc.order_of_states() }}",
        "partition by _cdc_entity, _cdc_epoch, _cdc_life order by _cdc_batch_id, _cdc_row",
        (
            "keys_alternate",
            "nullable_keys",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
            "soft_delete_replaces_partitions",
        ),
    ),
    Mutant(
        "P4",
        "macros/history/entity_states.sql",
        "count_if(_cdc_ends) over (",
        "count_if(false) over (",
        ("partial_null_means_absent",),
    ),
    Mutant(
        "P4",  # where only the new changes are read
        "macros/apply/final.sql",
        "count_if(_cdc_ends) over (",
        "count_if(false) over (",
        ("life_created_and_updated", "partial_does_not_fold_over_delete"),
    ),
    Mutant(
        "A4",
        "macros/apply/final.sql",
        "'delete_unmatched': plan.mode == 'rebuild'",
        "'delete_unmatched': false",
        ("truncate_keeps_what_comes_after",),
    ),
    Mutant(
        "A5",
        "macros/apply/final.sql",
        "found.late > 0 or resolved or revised",
        "found.late > 0 or revised",
        ("keys_chain", "keys_displaced_row_changes_once_more", "keys_split_key_change", "life_created_and_updated"),
    ),
    Mutant("A7", "macros/config/quoting.sql", "operator='<=>'", "operator='='", ("nullable_keys",)),
    Mutant(
        "A10",
        "macros/apply/shape.sql",
        "first_value(_cdc_occurred_at) over life",
        "last_value(_cdc_occurred_at) over life",
        ("life_created_and_updated",),
    ),
    Mutant("K2", RESOLVER, "0, kind) as a", "0, greatest(kind, 0)) as a", ("keys_reuse_of_a_vacated_key",)),
    Mutant(
        "K3",
        RESOLVER,
        "come - length + 1 end",
        "come end",
        ("keys_displaced_row_changes_once_more", "keys_swap_in_one_transaction"),
    ),
    Mutant("K5", RESOLVER, "while still_open:", "while still_open and rounds < 1:", ("keys_chain",)),
    Mutant("K6", RESOLVER, "inserts = 1", "inserts = 0", ("keys_split_key_change",)),
    Mutant("K8", "macros/apply/alternate_keys.sql", "size(_cdc_meant) = 1", "size(_cdc_meant) >= 1", ("keys_alternate",)),
    Mutant(
        "H1",
        "macros/history/history.sql",
        "max(_cdc_occurred_at) over (",
        "last_value(_cdc_occurred_at) over (",
        ("history_time_never_runs_backwards",),
    ),
    Mutant(
        "H2",
        "macros/history/history.sql",
        "(settings, 'at_touched_keys', keys)",
        "(settings, 'at_touched_keys', keys, '_cdc_batch_id > ' ~ done)",
        ("history_table_late_change",),
    ),
    Mutant(
        "H3",
        "macros/history/history.sql",
        "or _cdc_lives_before is distinct from lag(_cdc_lives_before) over entity as _cdc_begins",
        "or true as _cdc_begins",
        ("autocdc__scd2_repeated_value_keeps_one_record_from_its_first_occurrence",),
    ),
    Mutant(
        "N1",
        "macros/apply/multiset.sql",
        "least(0, min(_cdc_sum) over same)",
        "0",
        ("multiset_late_inserts_meet_their_deletes",),
    ),
    Mutant("N2", "macros/config/settings.sql", "settings.insert_only or settings.keyless", "settings.keyless", ("insert_only",)),
    Mutant(
        "S1",
        "macros/change_sets/change_sets.sql",
        "found_order, change_set)",
        "found_order, change_set desc)",
        ("ties_across_batches",),
    ),
    Mutant(
        "S2",
        "macros/apply/final.sql",
        "staging, -1 if plan.mode == 'rebuild' else state.batch_id)",
        "staging, -1)",
        ("insert_only",),
    ),
    Mutant(
        "Q1",
        "macros/apply/changes.sql",
        "when _cdc_misfit is not null and {{",
        "when false and {{",
        ("column_retyped", "held_for_its_errors", "quarantine"),
    ),
    Mutant(
        "Q2",
        "macros/control/holds.sql",
        "allowed is not none and (batch.errors",
        "false and (batch.errors",
        ("held_for_its_errors",),
    ),
    Mutant(
        "Q4",
        "macros/control/holds.sql",
        "allowed is not none and batch.deletes",
        "false and batch.deletes",
        ("held_for_its_deletes",),
    ),
    Mutant(
        "E1",
        "macros/apply/final_evolution.sql",
        "{%- if wish == 'ignore' and is_incremental() -%}",
        "{%- if is_incremental() -%}",
        ("columns_come_and_go",),
    ),
    Mutant("E2", "macros/apply/changes.sql", "{%- if old -%}", "{%- if false -%}", ("column_renamed",)),
    Mutant(
        "E3",
        "macros/apply/final_evolution.sql",
        "settings['columns'] + stay",
        "settings['columns']",
        ("columns_come_and_go",),
    ),
    Mutant(
        "E4",
        "macros/apply/changes.sql",
        "' is null or not ' ~ delta_cdc._recast",
        "' is null and not ' ~ delta_cdc._recast",
        ("column_retyped",),
    ),
    Mutant(
        "E6",
        "macros/apply/changes.sql",
        "{%- if delta_cdc._has_parts(settings.column_types[column]) -%}",
        "{%- if false -%}",
        ("quarantine",),
    ),
    Mutant(
        "E7",
        "macros/apply/changes.sql",
        "{%- set mask = settings.get('mask') or {} %}",
        "{%- set mask = {} %}",
        ("column_masked",),
    ),
    Mutant(
        "O2",
        RESOLVER,
        "if(tied or truncated_here, struct({_ID}), null) as arrival",
        "struct({_ID}) as arrival",
        ("tests/spark/test_resolver.py::test_O2_ids_of_entities_do_not_depend_on_arrival",),
    ),
    Mutant(
        "K4",
        "macros/history/entity_states.sql",
        "partition by _cdc_entity, _cdc_epoch, _cdc_life order by",
        "partition by _cdc_entity, _cdc_epoch, _cdc_life, {{ delta_cdc.column_list(keys) }} order by",
        ("keys_alternate", "keys_chain", "keys_split_key_change", "life_created_and_updated"),
    ),
    Mutant(
        "E5",
        "macros/apply/changes.sql",
        "if(_cdc_op in ('I', 'U', 'R'){{ ' and not '",
        "if(_cdc_op in (''){{ ' and not '",
        ("keys_alternate", "keys_chain", "keys_split_key_change", "nullable_keys", "partial_late_fills_only_what_is_open"),
    ),
    Mutant(
        "A3",
        "python_helpers/delta_cdc/model_files.py",
        '"unique_key": unique_key,\n        "merge_only_changed": True,',
        '"unique_key": unique_key,\n        "merge_only_changed": False,',
        (
            "tests/scenarios/test_readers.py::test_A3_a_change_set_of_equal_rows_leaves_the_change_feed_empty",
            "tests/scenarios/test_readers.py::test_A3_the_change_feed_of_final_has_what_changed_and_no_more",
        ),
    ),
    Mutant(
        "S3",
        "macros/change_sets/progress.sql",
        "{%- if problems -%}",
        "{%- if false -%}",
        (
            "tests/scenarios/test_bad_input.py::test_S3_S4_a_change_set_that_is_gone_or_rewritten_before_its_load_stops_only_its_table",
        ),
    ),
    Mutant(
        "S4",
        "python_helpers/dbt/adapters/sparkdelta/files.py",
        'size == change_set["size"] and modified_at == recorded_at',
        "size",
        (
            "tests/scenarios/test_bad_input.py::test_S3_S4_a_change_set_that_is_gone_or_rewritten_before_its_load_stops_only_its_table",
        ),
    ),
    Mutant(
        "S5",
        "macros/change_sets/change_sets.sql",
        "{{ return(highest | max) }}",
        "{{ return(0) }}",
        ("tests/scenarios/test_bad_input.py::test_S5_a_lost_ledger_is_rebuilt_and_batch_ids_go_on_growing",),
    ),
    Mutant(
        "S6",
        "macros/apply/final.sql",
        "delta_cdc.nothing_to_do(staged, state, reached) -%}",
        "false -%}",
        ("tests/scenarios/test_operations.py::test_S6_a_key_change_that_changes_no_row_is_worked_in_once",),
        nightly=True,
    ),
    Mutant(
        "S7",
        "macros/change_sets/progress.sql",
        "do done.append(noted.done.get(name, -1))",
        "do done.append(-1)",
        (
            "tests/unit/test_macros.py::test_S7_a_batch_noted_as_empty_is_done_too",
            "tests/unit/test_macros.py::test_S7_what_runs_noted_is_read_once_a_run",
        ),
    ),
    Mutant(
        "S8",
        "macros/change_sets/progress.sql",
        " and not state.replaced",
        "",
        ("tests/unit/test_macros.py::test_S8_a_table_that_somebody_replaced_is_not_continued",),
    ),
    Mutant(
        "S9",
        "macros/control/revisions.sql",
        "when not matched and s._cdc_action = 'restore' then insert",
        "when not matched and s._cdc_action = 'never' then insert",
        (
            "tests/scenarios/test_operations.py::test_A8_S9_Q3_a_truncate_may_be_replayed_and_what_came_again_outlives_a_retraction",
            "tests/scenarios/test_operations.py::test_R1_S9_P1_fields_and_other_spellings_outlive_retraction_and_compaction",
            "tests/scenarios/test_operations.py::test_S9_a_change_set_of_a_feed_that_mixes_tables_is_taken_back_from_all_of_them",
            "tests/scenarios/test_operations.py::test_S9_a_retracted_change_set_leaves_no_trace_in_history_and_final",
        ),
        nightly=True,
    ),
    Mutant(
        "Q3",
        "macros/control/revisions.sql",
        "_cdc_error is null and not exists (select 1 from",
        "not exists (select 1 from",
        ("tests/scenarios/test_operations.py::test_Q3_replayed_rows_count_from_where_they_arrived",),
    ),
    Mutant(
        "Q5",
        "python_helpers/delta_cdc/table_check.py",
        'if not can_be_compared(self.types.get(name, "")):',
        "if False:",
        ("tests/unit/test_config.py::test_Q5_rows_are_told_by_values_that_can_be_compared",),
    ),
    Mutant(
        "H4",
        "macros/history/as_of.sql",
        "from timed where {{ until | replace('_cdc_occurred_at', '_cdc_time') }}",
        "from timed where {{ until }}",
        ("tests/scenarios/test_operations.py::test_H4_A8_a_truncate_counts_when_it_was_seen_as_in_history",),
        nightly=True,
    ),
    Mutant(
        "P3",
        "macros/apply/changes.sql",
        "{%- if settings.get('full_images') %}\nwhole as",
        "{%- if true %}\nwhole as",
        ("tests/unit/test_macros.py::test_P3_of_the_image_before_only_keys_are_used",),
    ),
    Mutant(
        "R1",
        "macros/control/compact.sql",
        "{%- if linked %}\nleft anti join",
        "{%- if false %}\nleft anti join",
        ("tests/scenarios/test_operations.py::test_R1_a_compacted_table_goes_on_as_its_twin_does",),
        nightly=True,
    ),
    Mutant(
        "R2",
        "macros/control/erase.sql",
        "' and ' ~ position ~ ' <= _cdc_e.at'",
        "' and ' ~ position ~ ' > _cdc_e.at'",
        ("tests/scenarios/test_operations.py::test_R2_an_erased_person_is_in_no_file_and_stays_erased",),
    ),
    Mutant(
        "S10",
        "macros/apply/snapshots.sql",
        "or not _cdc_before.compared <=> {{ compared }}",
        "or true",
        (
            "tests/scenarios/test_snapshots.py::test_S10_staging_takes_what_differs_however_copies_are_batched",
            "tests/scenarios/test_snapshots.py::test_S10_the_same_copy_again_changes_nothing",
        ),
    ),
)


def broken_package(mutant: Mutant, folder: Path) -> Path:
    """A copy of the package with the fault."""
    left_out = shutil.ignore_patterns(".*", "target", "lake", "logs", "*.egg-info", "__pycache__", "docs")
    shutil.copytree(PACKAGE, folder, ignore=left_out)
    file = folder / mutant.file
    text = file.read_text(encoding="utf-8")
    assert mutant.before in text, f"{mutant.rule}: {mutant.file} does not hold «{mutant.before}» any more"
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    return folder


def red_cases(package: Path, folder: Path, lake: Path, schema: str) -> set[str]:
    """The names of the cases that do not give the rows that they expect."""
    paths = [PACKAGE / "tests" / "cases" / "rows" / f"{name}.json" for name in CASES]
    cases = read_cases(paths)
    exec((package / RESOLVER).read_text(encoding="utf-8"), vars(resolver))  # dbt runs in this process, which has another
    project = UserProject(folder, lake=lake, schema=schema, package=package)
    run_cases(project, cases, runs=3)
    return {case.path.stem for case in cases if judge(case, rows_of(project, case), {})["status"] == "failed"}


def red_tests(package: Path, mutant: Mutant) -> set[str]:
    """The tests of the rule, in the files that hold the fault's, that fail in the package (file::name). One whose fixture fails
    has looked at nothing, and is none of them."""
    chosen = [*mutant.test_files, "-k", f"{mutant.rule}_", "-q", "--tb=no", "-p", "no:cacheprovider"]
    environment = {
        **os.environ, "PYTHONPATH": str(package / "python_helpers"), "DELTA_CDC_NIGHTLY": "1" if mutant.nightly else "",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", *chosen]
    said = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    if said.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} in {package} ended with {said.returncode}\n{said.stdout}{said.stderr}")
    return set(re.findall(r"^FAILED ([^\s\[]+)", said.stdout, re.MULTILINE))


def red_with(mutant: Mutant | None, folder: Path) -> set[str]:
    """What is red with a fault, and of tests what is not red without it, too; none: the cases that are without one."""
    name = f"m{MUTANTS.index(mutant)}_{mutant.rule.lower()}" if mutant else "healthy"
    package = broken_package(mutant, folder / f"{name}_package") if mutant else PACKAGE
    if mutant and mutant.test_files:
        return red_tests(package, mutant) - red_tests(PACKAGE, mutant)
    return red_cases(package, folder / name, folder / f"lake_{os.getpid()}", name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", nargs="*", help="only the faults of these rules")
    rules = parser.parse_args().rules
    chosen = [mutant for mutant in MUTANTS if not rules or mutant.rule in rules]
    by_cases = [None] if any(not mutant.test_files for mutant in chosen) else []
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    wrong = 0
    # a JVM keeps something of each fault's runs: after some twenty of them its heap is full
    with get_context("spawn").Pool(1, maxtasksperchild=5) as pool:
        found = pool.imap(partial(red_with, folder=folder), [*by_cases, *chosen])
        if by_cases and (healthy := next(found)):
            sys.exit(f"Without a fault these differ already: {', '.join(sorted(healthy))}")
        for mutant, red in zip(chosen, found, strict=True):
            as_listed = bool(red) and red == set(mutant.red)
            wrong += not as_listed
            print(f"{mutant.rule:4} {mutant.file}: {mutant.before.strip()} -> {mutant.after.strip()}", flush=True)
            print(f"     {'red' if as_listed else 'NOT as listed'}: {', '.join(sorted(red)) or 'nothing'}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
