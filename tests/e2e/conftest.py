from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.postgres import PACKAGES, Postgres, running


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Warehouse and metastore of the one Spark of this process."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    yield from running(*PACKAGES)
