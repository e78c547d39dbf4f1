"""Messages of several products, configured as `delta-cdc discover` proposes, through one dbt run a step.

Some, in few steps, with values of many types; `make scenarios CASES=tests/cases/feeds` takes all.
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
    "canal_types_told_by_mysql_type",
    "dbz_mssql_types_schema",
    "dbz_pg_lists_of_dates_and_timestamps_by_schema",
    "maxwell_types",
    "w2j2_types_offsets_big_numbers",
)


@pytest.fixture(scope="module")
def delivered(project: UserProject) -> dict[str, FeedCase]:
    cases = read_feeds([CASES / name for name in FEEDS])
    run_feeds(project, cases)
    return {case.name: case for case in cases}


@pytest.mark.parametrize("name", FEEDS)
def test_messages_give_the_rows_that_are_known_of_them(delivered: dict[str, FeedCase], name: str) -> None:
    case = delivered[name]
    assert (case.refusals, case.differences, case.quarantined) == ([], [None] * len(case.steps), [])
