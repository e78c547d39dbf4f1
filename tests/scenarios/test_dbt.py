"""What dbt itself runs in this project: its unit tests of the SQL, and the documentation with the lineage."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.scenarios.project import PACKAGE

pytestmark = [pytest.mark.dbt, pytest.mark.spark]


def _dbt(*args: str) -> str:
    """dbt in a process of its own: this one's Spark has another warehouse."""
    done = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "dbt"), *args], cwd=PACKAGE, text=True, capture_output=True,
        env={**os.environ, "DBT_PROFILES_DIR": "profiles"}, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_unit_tests_of_the_sql_pass() -> None:
    assert "PASS=" in _dbt("test", "--select", "test_type:unit", "--target", "docs")


def test_the_docs_show_the_lineage_and_describe_every_column() -> None:
    _dbt("docs", "generate", "--target", "docs")
    manifest = json.loads((PACKAGE / "target" / "manifest.json").read_text())
    ours = [n for n in manifest["nodes"].values() if n["package_name"] == "delta_cdc" and n["resource_type"] in ("model", "seed")]
    bare = [n["name"] for n in ours if not n["description"] or not all(c["description"] for c in n["columns"].values())]
    assert not bare
    assert not [n["name"] for n in ours if not n["columns"]]

    parents = manifest["parent_map"]

    def ancestors(node: str) -> set[str]:
        return {node}.union(*(ancestors(parent) for parent in parents.get(node, [])))

    (exposure,) = manifest["exposures"]
    assert {
        "source.delta_cdc.demo.artist", "model.delta_cdc.cdc_change_sets", "model.delta_cdc.raw_demo",
        "model.delta_cdc.stg_demo__artist", "model.delta_cdc.int_demo__artist_keys", "model.delta_cdc.final_demo_artist",
    } <= ancestors(exposure)
