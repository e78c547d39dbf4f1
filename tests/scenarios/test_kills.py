"""Runs that are killed between two commits, and repeated: a few of those of `make chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.chaos import TABLES, Lab


@pytest.mark.nightly  # runs that end between two layers: test_bad_input, S2
def test_S2_S6_a_run_that_is_killed_between_two_commits_and_repeated_equals_one_that_was_not(tmp_path: Path) -> None:
    lab = Lab(tmp_path, {"moving": TABLES["moving"]})
    lab.begin()
    twin = lab.twin(lab.stages()[0])
    chain = [twin.label(commit) for commit in twin.chain()]
    assert chain[:3] + chain[-1:] == ["ledger", "staging", "keys", "record"]
    assert set(chain[3:-1]) == {"history", "final"}
    for place, gap in ((1, "staging → keys"), (2, f"keys → {chain[3]}")):
        done, found = lab.killed(twin, twin.kill(place, 0))
        assert done.killed
        assert twin.gap(done.commits) == gap
        assert found.wrong == []
