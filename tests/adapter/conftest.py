"""One Spark for the whole test process; every test class gets a dbt project and a schema of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 (the fixtures of dbt-tests-adapter)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPARK_SETTINGS = {"spark.master": "local[2]"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "project" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.dbt)
        if {"project", "spark"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of warehouse and metastore."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def overrides() -> dict[str, str]:
    """The profile's server_side_parameters."""
    return dict(SPARK_SETTINGS)


@pytest.fixture(scope="session")
def spark(lake: Path) -> SparkSession:
    """The root session that dbt uses too."""
    from dbt.adapters.sparkdelta.session import root_session

    return root_session(root=lake, overrides=SPARK_SETTINGS)


@pytest.fixture(scope="class")
def dbt_profile_target(lake: Path) -> dict[str, Any]:
    return {
        "type": "sparkdelta",
        "root": str(lake),
        "threads": 4,
        "server_side_parameters": dict(SPARK_SETTINGS),
    }
