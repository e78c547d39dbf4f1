"""The project in integration_tests, which installs the package, as somebody's own: its feed, its marts, its tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.project import PACKAGE, SPARK_SETTINGS

pytestmark = pytest.mark.dbt

CONSUMER = PACKAGE / "integration_tests"


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Path:
    """A copy of it, which installs this checkout and shares the Spark of the process."""
    folder = tmp_path_factory.mktemp("consumer") / "project"
    made = (CONSUMER / ".gitignore").read_text().replace("/", "").split()
    shutil.copytree(CONSUMER, folder, ignore=shutil.ignore_patterns(*made))
    (folder / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))
    profiles = yaml.safe_load((folder / "profiles.yml").read_text())
    profiles["integration_tests"]["outputs"]["dev"] |= {"root": str(lake), "server_side_parameters": SPARK_SETTINGS}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profiles))
    return folder


def test_all_of_it_builds_and_nothing_of_the_demo_does(consumer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.cli.main import dbtRunner

    monkeypatch.chdir(consumer)  # as its users are
    results: list[Any] = []
    for command in (["deps"], ["build", "--threads", "3"]):
        done = dbtRunner().invoke(["--quiet", *command])
        results = getattr(done.result, "results", [])
        assert done.success, [f"{each.node.name}: {each.message}" for each in results if str(each.status) in ("error", "fail")]
    built = {each.node.unique_id for each in results}
    assert {f"model.integration_tests.{name}" for name in (
        "stg_crm__customer", "hist_crm__customer", "final_customer", "int_crm__customer_order_keys", "revenue_by_customer",
    )} <= built
    assert {name for name in built if name.startswith("model.delta_cdc.")} == {"model.delta_cdc.cdc_change_sets"}
    tested = {each.node.name for each in results if each.node.resource_type == "test"}
    assert {"finals_are_what_the_feed_leaves", "the_row_that_does_not_cast_is_marked"} <= tested
