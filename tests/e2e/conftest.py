from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.postgres import PACKAGES, Postgres, running


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    yield from running(*PACKAGES)
