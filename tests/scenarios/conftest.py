from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.project import UserProject


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.dbt)
        item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Warehouse and metastore of the one Spark of this process."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[UserProject]:
    """A project of a user who installed the package, for one test module."""
    name = request.module.__name__.rsplit(".", 1)[-1].removeprefix("test_")
    return UserProject(tmp_path_factory.mktemp(name), lake=lake, schema=name)
