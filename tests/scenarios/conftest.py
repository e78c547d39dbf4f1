from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.project import UserProject


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[UserProject]:
    """A project of a user who installed the package, for one test module."""
    name = request.module.__name__.rsplit(".", 1)[-1].removeprefix("test_")
    return UserProject(tmp_path_factory.mktemp(name), lake=lake, schema=name)
