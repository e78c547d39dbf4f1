"""What the commands on loaded tables say before they start anything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.projects import FEED, TABLE, project, source

from delta_cdc.cli import main
from delta_cdc.config import load_project
from delta_cdc.errors import OperationError
from delta_cdc.operations import error_of, find_table, plain


def two_feeds(root: Path) -> Path:
    tables = {"invoice": TABLE, "customer": TABLE}
    other = source("web", feed=FEED, tables={"invoice": TABLE | {"final_name": "final_web_invoice"}})
    return project(root, source(tables=tables), other)


@pytest.mark.parametrize("name", ["customer", "shop.customer", "stg_shop__customer", "hist_shop__customer", "final_customer"])
def test_a_table_is_named_by_itself_or_by_a_model(tmp_path: Path, name: str) -> None:
    table = find_table(load_project(two_feeds(tmp_path)), name)
    assert (table.feed, table.name) == ("shop", "customer")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("invoice", "There are several tables `invoice`. Say `shop.invoice` or `web.invoice`."),
        ("shop.custmer", "There is no table `shop.custmer`. Did you mean `shop.customer`?"),
        ("x", "There is no table `x`. Known: `shop.customer`, `shop.invoice`, `web.invoice`."),
    ],
)
def test_a_table_that_is_not_one(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(OperationError, match=r"^There ") as caught:
        find_table(load_project(two_feeds(tmp_path)), name)
    assert str(caught.value) == said


def test_R2_erase_wants_a_value_for_each_key_column(tmp_path: Path) -> None:
    where = ["--project-dir", str(two_feeds(tmp_path)), "--yes"]
    result = CliRunner().invoke(main, ["erase", "customer", "1", "2", *where])
    assert result.exit_code == 1
    assert result.stderr == "table shop.customer: erase takes a value for each of id; 2 given.\n"


def test_an_error_of_dbt_is_shown_without_its_frame() -> None:
    said = "Compilation Error in macro accept (macros/x.sql)\n  table t: batch 1 is not held.\n  \n  > in macro accept (x.sql)\n"
    assert plain(said) == "table t: batch 1 is not held."


def test_a_macro_that_failed_tells_it_in_an_event_and_nowhere_else() -> None:
    def event(name: str, level: str = "info") -> SimpleNamespace:
        return SimpleNamespace(info=SimpleNamespace(name=name, level=level, msg="shown"), data=SimpleNamespace(exc="what it was"))

    assert error_of(event("RunningOperationCaughtError", "error")) == "what it was"
    assert error_of(event("RunningOperationUncaughtError", "error")) == "what it was"
    assert error_of(event("MainEncounteredError", "error")) == "shown"
    assert error_of(event("LogModelResult")) is None
