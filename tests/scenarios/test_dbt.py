"""What dbt itself runs in this project: its unit tests of the SQL, and the documentation with the lineage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.scenarios.project import PACKAGE, SPARK_SETTINGS

pytestmark = [pytest.mark.dbt, pytest.mark.spark]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Path:
    """Where the project's own profiles are, with the Spark of the process, and where dbt writes."""
    folder = tmp_path_factory.mktemp("dbt")
    profiles = yaml.safe_load((PACKAGE / "profiles" / "profiles.yml").read_text())
    profiles["delta_cdc"]["outputs"]["docs"] |= {"root": str(lake), "server_side_parameters": SPARK_SETTINGS}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profiles))
    return folder


def _dbt(folder: Path, *args: str) -> list[str]:
    """The states of what it ran."""
    from dbt.cli.main import dbtRunner

    folders = {"project-dir": PACKAGE, "profiles-dir": folder, "target-path": folder, "log-path": folder}
    where = [text for option, path in folders.items() for text in (f"--{option}", str(path))]
    done = dbtRunner().invoke(["--quiet", *args, "--target", "docs", *where])
    results = getattr(done.result, "results", None) or []
    assert done.success, done.exception or [f"{each.node.name}: {each.message}" for each in results if str(each.status) != "pass"]
    return [str(each.status) for each in results if each.node.resource_type == "unit_test"]


def test_the_unit_tests_of_the_sql_pass(folder: Path) -> None:
    assert set(_dbt(folder, "test", "--select", "test_type:unit")) == {"pass"}


def test_the_docs_show_the_lineage_and_describe_every_column(folder: Path) -> None:
    _dbt(folder, "docs", "generate")
    manifest = json.loads((folder / "manifest.json").read_text())
    ours = [n for n in manifest["nodes"].values() if n["package_name"] == "delta_cdc" and n["resource_type"] in ("model", "seed")]
    bare = [n["name"] for n in ours if not n["description"] or not all(c["description"] for c in n["columns"].values())]
    assert not bare
    assert not [n["name"] for n in ours if not n["columns"]]

    parents = manifest["parent_map"]

    def ancestors(node: str) -> set[str]:
        return {node}.union(*(ancestors(parent) for parent in parents.get(node, [])))

    (exposure,) = manifest["exposures"]
    assert {
        "source.delta_cdc.demo.artist",
        "model.delta_cdc.cdc_change_sets",
        "model.delta_cdc.raw_demo",
        "model.delta_cdc.stg_demo__artist",
        "model.delta_cdc.int_demo__artist_keys",
        "model.delta_cdc.final_demo_artist",
    } <= ancestors(exposure)
