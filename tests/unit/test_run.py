"""What `delta-cdc run` says where dbt has nothing to run: dbt parses and selects, and starts no Spark."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rich.console import Console
from tests.projects import project, source

from delta_cdc import run as runs
from delta_cdc.config import load_project
from delta_cdc.warm_dbt import WarmDbt

PACKAGE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has this checkout as its package."""
    tmp_path = tmp_path_factory.mktemp("shop")
    project(tmp_path, source(), name="mine", version="1.0", profile="mine", flags={"send_anonymous_usage_stats": False})
    profile = {"target": "dev", "outputs": {"dev": {"type": "sparkdelta", "schema": "x", "threads": 1}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"mine": profile}))
    (tmp_path / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))
    (tmp_path / "dbt_packages").mkdir()
    (tmp_path / "dbt_packages" / "delta_cdc").symlink_to(PACKAGE)
    (tmp_path / "models" / "mart.sql").write_text("select 1 as one")
    return tmp_path


def run_once(root: Path, *selected: str) -> None:
    dbt = WarmDbt(root, ["--profiles-dir", str(root)])
    runs.run_once(dbt, load_project(root), ["run", "--select", *selected], Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("selected", "said"),
    [
        (["+marts+"], "`--select +marts+` selects no model. Did you mean `mart`?"),
        (["tag:none"], "`--select tag:none` selects no model. `dbt ls --resource-type model` lists all there are."),
        (["models/mrt.sql", "x"], "`--select models/mrt.sql` selects no model. Did you mean `mart`?\n"
         "`--select x` selects no model. `dbt ls --resource-type model` lists all there are."),
        (["source:shop.invoice"], "No model is selected by --select source:shop.invoice."),
    ],
)
def test_a_selection_without_models_is_refused(shop: Path, selected: list[str], said: str) -> None:
    with pytest.raises(runs.NotStarted) as caught:
        run_once(shop, *selected)
    assert (str(caught.value), caught.value.exit_code) == (said, 2)


class Dbt:
    """Of two names one selects a model, which ran."""

    models = ("mart",)

    def run(self, *_: Any, miss: Any) -> SimpleNamespace:
        miss("mrt")
        node = SimpleNamespace(status="success", node=SimpleNamespace(name="mart"), message=None)
        return SimpleNamespace(success=True, exception=None, result=SimpleNamespace(results=[node]))


def test_a_name_that_selects_nothing_beside_others_is_told(shop: Path) -> None:
    screen = io.StringIO()
    command = ["run", "--select", "mart", "mrt"]
    runs.run_once(Dbt(), load_project(shop), command, Console(file=screen))  # type: ignore[arg-type]
    assert screen.getvalue() == "`--select mrt` selects no model. Did you mean `mart`?\n"
