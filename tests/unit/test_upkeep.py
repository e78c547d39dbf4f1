"""When a Delta table needs no VACUUM."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.sparkdelta import upkeep

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


def history(*commits: tuple[str, float], by_delta: bool) -> list[dict[str, Any]]:
    """Commits (operation, days ago), newest first, as Delta or as delta-rs tells them."""
    times = [NOW - timedelta(days=days) for _, days in commits]
    stamps = times if by_delta else [int(time.timestamp() * 1000) for time in times]
    return [{"operation": each, "timestamp": at} for (each, _), at in zip(commits, stamps, strict=True)]


VACUUMED = ("VACUUM END", 0), ("VACUUM START", 0)


@pytest.mark.parametrize("by_delta", [True, False])
@pytest.mark.parametrize(("commits", "hours", "is_vacuumed"), [
    ((*VACUUMED, ("WRITE", 8)), 168, True),
    ((*VACUUMED, ("VACUUM END", 1), ("VACUUM START", 1), ("MERGE", 8)), 168, True),
    ((*VACUUMED, ("WRITE", 6)), 168, False),  # what it replaced was kept for readers then
    ((*VACUUMED, ("WRITE", 8)), 40 * 24, False),
    ((("WRITE", 0), *VACUUMED, ("WRITE", 8)), 168, False),
    ((("VACUUM START", 0), ("WRITE", 8)), 168, False),  # it was killed
    ((*VACUUMED, ("VACUUM END", 29), ("VACUUM START", 29)), 168, True),  # the rest left the log
    ((*VACUUMED, ("WRITE", 8)), None, False),
    ((), 168, False),
])  # fmt: skip
def test_a_table_that_got_nothing_since_is_vacuumed_once(commits: Any, hours: Any, is_vacuumed: bool, by_delta: bool) -> None:
    assert upkeep.is_vacuumed(history(*commits, by_delta=by_delta), hours) is is_vacuumed


def test_a_vacuum_that_failed_is_made_again() -> None:
    ended, *others = history(*VACUUMED, ("WRITE", 8), by_delta=False)
    assert not upkeep.is_vacuumed([{**ended, "operationParameters": {"status": "FAILED"}}, *others], 168)


def test_S7_what_our_commits_noted_stays_in_the_log_of_a_table_that_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each VACUUM is two commits, every tenth commit has Delta clean up the log: after 30 days the notes would be gone."""
    commits = history(*VACUUMED, ("WRITE", 8), by_delta=False)
    log = SimpleNamespace(history=lambda _, limit: commits[:limit], properties=lambda: {})
    monkeypatch.setattr(upkeep, "location", lambda *_: "file:/t")
    monkeypatch.setattr(upkeep, "open_log", lambda *_: log)
    session: Any = SimpleNamespace(sql=lambda sql: pytest.fail(sql))
    assert upkeep.vacuum(session, "s", "t") == {"files": 0, "bytes": 0}
