"""One Spark for all tests of a process. `tests/services` wants other jars and settings: it has processes of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import NIGHTLY
from tests.scenarios.project import SPARK_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What takes longest comes first, so that two processes end at about the same time.
LONGEST = ("rows", "operations", "columns", "postgres", "commands", "histories", "bad_input", "kills", "resolver", "formats")


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # pytest-xdist would begin with the files of the most tests


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    if not NIGHTLY and (left_out := [item for item in items if item.get_closest_marker("nightly")]):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if "project" in used:
            item.add_marker(pytest.mark.dbt)
        if {"project", "spark", "lake"} & used:
            item.add_marker(pytest.mark.spark)
    collected = [*items]
    yield  # -k and -m choose
    if len(chosen := with_those_before(items, collected)) > len(items):
        items[:] = [item for item in collected if item in chosen]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows what tests tell by `record_property("told", …)`: what they print is lost in the processes of pytest-xdist."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    for name, value in (each for report in reports for each in report.user_properties):
        if name == "told":
            terminalreporter.write_line(value)


def with_those_before(items: Sequence[pytest.Item], collected: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The items, and those that they go on from (`tests.after`), which stand above them."""
    chosen = {*items}
    for item in reversed(collected):
        for test in (test for mark in item.iter_markers("after") for test in mark.args if item in chosen):
            found = {each for each in collected if getattr(each, "function", None) is test}
            if not found:
                raise pytest.UsageError(f"{item.nodeid} goes on from {test.__name__}, which is not collected. Choose it by -k.")
            chosen |= found
    return chosen


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of warehouse and metastore."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake: Path) -> SparkSession:
    """The root session that dbt uses too."""
    from dbt.adapters.sparkdelta.session import root_session

    return root_session(root=lake, overrides=SPARK_SETTINGS)
