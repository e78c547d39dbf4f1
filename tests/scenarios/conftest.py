from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.project import UserProject

# What takes longest comes first, so that two processes end at about the same time.
LONGEST = ("rows", "postgres", "columns", "histories", "operations", "commands", "bad_input")


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # pytest-xdist would begin with the files of the most tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
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
