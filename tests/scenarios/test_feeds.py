"""Captured messages of several products, configured as `delta-cdc discover` proposes, through one dbt run.

Those that come in one step; `make scenarios CASES=tests/cases/feeds` takes all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.feed_cases import FeedCase, read_feeds, run_feeds
from tests.scenarios.project import UserProject

CASES = Path(__file__).resolve().parents[1] / "cases" / "feeds"
FEEDS = [
    f"paimon__{name}" for name in (
        "canal__database_case_insensitive", "canal__table_incomplete", "debezium__table_nullvalue", "ogg__database_case_insensitive",
        "aws-dms__table_startup",
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> Iterator[dict[str, FeedCase]]:
    cases = read_feeds([CASES / name for name in FEEDS])
    run_feeds(project, cases)
    yield {case.name: case for case in cases}


@pytest.mark.parametrize("name", FEEDS)
def test_captured_messages_give_the_rows_that_another_product_made_of_them(delivered: dict[str, FeedCase], name: str) -> None:
    case = delivered[name]
    assert (case.refusals, case.differences, case.quarantined) == ([], [None], [])
