"""`make mutants`: does a test fail when a rule is broken? Seeded faults, and the cases that go red.

Each fault is one text put in place of another in a copy of the package's macros; a few rows-files then go through
generated models and real dbt runs, and just the cases that the fault names must differ. Not part of `make test`: a fault
costs about a minute.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.scenarios.project import PACKAGE, UserProject
from tests.scenarios.rows_cases import read_cases, run_cases

CASES = (
    "keys_chain",
    "keys_swap_in_one_transaction",
    "history_follows_a_key_change",
    "partial_does_not_fold_over_delete",
    "partial_late_fills_only_what_is_open",
    "partial_null_means_absent",
    "pitfalls_delete_first",
    "pitfalls_in_order",
    "pitfalls_duplicate_inserts",
    "soft_delete_and_revival",
    "life_created_and_updated",
    "truncate_keeps_what_comes_after",
    "ties_later_arrival_wins_over_equal_value",
    "autocdc__scd2_null_then_non_null_column",
    "autocdc__scd2_repeated_value_keeps_one_record_from_its_first_occurrence",
    "autocdc__scd2_late_event_older_than_all_history",
    "keys_displaced_row_changes_once_more",
    "keys_reuse_of_a_vacated_key",
    "keys_update_delete_reinsert",
    "pitfalls_reverse_order",
    "keys_alternate",
    "multiset_late_inserts_meet_their_deletes",
    "soft_delete_replaces_partitions",
)


@dataclass(frozen=True)
class Mutant:
    """A fault: in `file`, `before` becomes `after`. red: the cases that must fail, by the rule that they prove."""

    rule: str
    file: str
    before: str
    after: str
    red: tuple[str, ...]


MUTANTS = (
    Mutant(
        "O1",
        "history/entity_states.sql",
        "delta_cdc.order_columns() + ['_cdc_ends']",
        "['_cdc_batch_id', '_cdc_row', '_cdc_ends']",
        (
            "autocdc__scd2_late_event_older_than_all_history",
            "history_follows_a_key_change",
            "keys_alternate",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
            "pitfalls_delete_first",
            "pitfalls_reverse_order",
            "soft_delete_replaces_partitions",
        ),
    ),
    Mutant(
        "P1",
        "apply/shape.sql",
        "'if(array_contains(_cdc_missing, ' ~ delta_cdc.literal(column) ~ ') or _cdc_ends, null,",
        "'if(_cdc_ends, null,",
        ("keys_alternate", "keys_chain", "partial_late_fills_only_what_is_open", "partial_null_means_absent"),
    ),
    Mutant(
        "A1",
        "history/entity_states.sql",
        "s._cdc_op = 'D' as _cdc_ends, 0 as _cdc_after\n",
        "false as _cdc_ends, 0 as _cdc_after\n",
        ("pitfalls_delete_first", "soft_delete_replaces_partitions"),
    ),
    Mutant(
        "A2",
        "apply/final.sql",
        "{%- elif found.late > 0 or resolved ",
        "{%- elif resolved ",
        (
            "keys_alternate",
            "partial_late_fills_only_what_is_open",
            "partial_null_means_absent",
            "pitfalls_delete_first",
            "soft_delete_replaces_partitions",
        ),
    ),
    Mutant(
        "A8", "history/entity_states.sql", "_cdc_op = 'T' and _cdc_error is null", "false", ("truncate_keeps_what_comes_after",)
    ),
    Mutant(
        "A9",
        "apply/final.sql",
        "{%- set soft = settings.get('delete_mode') == 'soft' -%}",
        "{%- set soft = false -%}",
        ("soft_delete_and_revival", "soft_delete_replaces_partitions"),
    ),
    Mutant(
        "K1",
        "history/entity_states.sql",
        "coalesce(k.entity, {{ own }})",
        "{{ own }}",
        ("history_follows_a_key_change", "keys_alternate", "keys_chain", "life_created_and_updated"),
    ),
    Mutant(
        "O4",
        "apply/staging.sql",
        "where not exists (  -- only late",
        "where true or not exists (  -- only late",
        ("keys_alternate", "multiset_late_inserts_meet_their_deletes"),
    ),
    Mutant(
        "A6",
        "apply/replace_partitions.sql",
        "  union\n  select {% for part in parts %}old_",
        "  intersect\n  select {% for part in parts %}old_",
        ("soft_delete_replaces_partitions",),
    ),
    Mutant(
        "K7",
        "history/entity_states.sql",
        "if(k.displaced_entity is null, null,",
        "if(true, null,",
        ("keys_displaced_row_changes_once_more",),
    ),
)


def broken_package(mutant: Mutant, folder: Path) -> Path:
    """A copy of the package with the fault."""
    left_out = shutil.ignore_patterns(".*", "target", "lake", "logs", "*.egg-info", "__pycache__", "docs")
    shutil.copytree(PACKAGE, folder, ignore=left_out)
    file = folder / "macros" / mutant.file
    text = file.read_text(encoding="utf-8")
    assert mutant.before in text, f"{mutant.rule}: {mutant.file} does not hold «{mutant.before}» any more"
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    return folder


def red_cases(package: Path, folder: Path, lake: Path, schema: str) -> set[str]:
    """The names of the cases that do not give the rows that they expect."""
    paths = [PACKAGE / "tests" / "cases" / "rows" / f"{name}.json" for name in CASES]
    cases = read_cases(paths)
    project = UserProject(folder, lake=lake, schema=schema, package=package)
    run_cases(project, cases, runs=3)
    return {case.path.stem for case in cases if case.refusals or case.difference(project.rows(case.query))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", nargs="*", help="only the faults of these rules")
    chosen = parser.parse_args().rules
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    wrong = 0
    healthy = red_cases(PACKAGE, folder / "healthy", folder / "lake", "healthy")
    if healthy:
        sys.exit(f"Without a fault these differ already: {', '.join(sorted(healthy))}")
    for mutant in MUTANTS:
        if chosen and mutant.rule not in chosen:
            continue
        name = f"m_{mutant.rule.lower()}"
        package = broken_package(mutant, folder / f"{name}_package")
        red = red_cases(package, folder / name, folder / "lake", name)
        as_listed = bool(red) and red == set(mutant.red)
        wrong += not as_listed
        print(f"{mutant.rule:4} {mutant.file}: {mutant.before.strip()} -> {mutant.after.strip()}", flush=True)
        print(f"     {'red' if as_listed else 'NOT as listed'}: {', '.join(sorted(red)) or 'nothing'}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
