"""The macros that a project has and the Python beside them are of one version."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner
from tests.projects import project, source

from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter
from delta_cdc import versions
from delta_cdc.cli import main
from delta_cdc.versions import CHECKOUT, mismatch


def package_of(root: Path, version: object, packages: str = "dbt_packages") -> Path:
    folder = root / packages / "delta_cdc"
    folder.mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(yaml.safe_dump({"name": "delta_cdc", "version": version}))
    return folder


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "VERSION", "0.2.0rc1")


def test_pyproject_and_dbt_project_are_of_one_version() -> None:
    told = re.search(r'^version = "(.*)"$', (CHECKOUT / "pyproject.toml").read_text(), re.MULTILINE)
    assert told
    assert told[1] == yaml.safe_load((CHECKOUT / "dbt_project.yml").read_text())["version"]


def test_every_command_on_tables_says_which_version_is_which(tmp_path: Path) -> None:
    folder = package_of(project(tmp_path, source()), "0.1.0")
    for command in (["run"], ["status"], ["erase", "invoice", "1", "--yes"]):
        done = CliRunner().invoke(main, [*command, "--project-dir", str(tmp_path)])
        assert (done.exit_code, done.stderr) == (
            2,
            f"The dbt package delta_cdc ({folder}) is version 0.1.0, and pip's dbt-delta-cdc is 0.2.0rc1: macros and Python have "
            "to be of one version. Either `pip install` dbt-delta-cdc 0.1.0, or name 0.2.0rc1 in packages.yml and run "
            "`dbt deps`.\n",
        )


@pytest.mark.parametrize("version", ["0.2.0-rc1", "0.2.0rc1", None, "of mine"])
def test_a_version_that_is_the_same_or_none_is_no_mismatch(tmp_path: Path, version: str | None) -> None:
    package_of(tmp_path, version)
    assert mismatch(tmp_path, "mine") is None


def test_what_comes_from_one_checkout_is_of_one_version(tmp_path: Path) -> None:
    assert mismatch(CHECKOUT, "delta_cdc") is None
    assert mismatch(tmp_path, "mine") is None  # nothing is installed: dbt says so
    (tmp_path / "dbt_packages").mkdir()
    (tmp_path / "dbt_packages" / "delta_cdc").symlink_to(CHECKOUT)
    assert mismatch(tmp_path, "mine") is None


def test_the_adapter_looks_where_dbt_installs_packages(tmp_path: Path) -> None:
    package_of(tmp_path, "0.1.0", "elsewhere")
    config = SimpleNamespace(project_root=str(tmp_path), project_name="mine", packages_install_path="elsewhere")
    told = SparkdeltaAdapter.version_mismatch(SimpleNamespace(config=config))  # type: ignore[arg-type]
    assert "elsewhere/delta_cdc) is version 0.1.0, and pip's dbt-delta-cdc is 0.2.0rc1" in str(told)
