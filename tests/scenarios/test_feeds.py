"""Captured messages of several products, configured as `delta-cdc discover` proposes, through one dbt run.

Those that come in one step; `make scenarios CASES=tests/cases/feeds` takes all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.feed_cases import FeedCase, read_feeds, run_feeds
from tests.scenarios.project import UserProject

CASES = Path(__file__).resolve().parents[1] / "cases" / "feeds"
FEEDS = (
    "paimon__canal__database_case_insensitive",
    "paimon__canal__table_incomplete",
    "paimon__debezium__table_nullvalue",
    "paimon__ogg__database_case_insensitive",
    "paimon__aws-dms__table_startup",
)


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> dict[str, FeedCase]:
    cases = read_feeds([CASES / name for name in FEEDS])
    run_feeds(project, cases)
    return {case.name: case for case in cases}


@pytest.mark.parametrize("name", FEEDS)
def test_captured_messages_give_the_rows_that_another_product_made_of_them(delivered: dict[str, FeedCase], name: str) -> None:
    case = delivered[name]
    assert (case.refusals, case.differences, case.quarantined) == ([], [None], [])
