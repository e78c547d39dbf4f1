"""One Spark for the whole test process; every test class gets a dbt project and a schema of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 (the fixtures of dbt-tests-adapter)

from tests.scenarios.project import SPARK_SETTINGS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def overrides() -> dict[str, str]:
    """The profile's server_side_parameters."""
    return dict(SPARK_SETTINGS)


@pytest.fixture(scope="class")
def dbt_profile_target(lake: Path) -> dict[str, Any]:
    return {
        "type": "sparkdelta",
        "root": str(lake),
        "threads": 4,
        "server_side_parameters": dict(SPARK_SETTINGS),
    }
