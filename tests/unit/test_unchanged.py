"""`delta-cdc run` begins with a look at what a run reads: where all of it is as a run that loaded everything left it, dbt and
Spark are not started."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests.projects import TABLE, project, source

from delta_cdc import run as runs
from delta_cdc.config_reader import load_project
from delta_cdc.unchanged import Looked
from delta_cdc.warm_dbt import WarmDbt

SETTLED = time.time_ns() - 3_600 * 10**9
FEED = {"format": "rows", "location": "landing/{table}", "operation": "op", "sequence_by": ["seq"]}


def write(path: Path, text: str = "{}\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(SETTLED, SETTLED))


def model(name: str, **more: Any) -> SimpleNamespace:
    config = SimpleNamespace(**{"materialized": "incremental", "pre_hook": [], "post_hook": [], **more})
    return SimpleNamespace(resource_type="model", name=name, alias=name, schema="Cdc", config=config)


def hook(code: str) -> SimpleNamespace:
    return SimpleNamespace(resource_type="operation", name="hook", raw_code=code)


class Shop:
    """A project with a table whose one change set is loaded, as far as files tell."""

    def __init__(self, root: Path, feed: dict[str, Any]) -> None:
        self.root = project(root, source(feed={**FEED, **feed}, tables={"invoice": TABLE}))
        self.lake = root / "lake" / "warehouse"
        write(root / "landing/invoice/1.json")
        for table in ("stg_shop__invoice", "final_invoice", "cdc_change_sets", "cdc_runs"):
            write(self.log(table) / "00000000000000000000.json")
        write(root / "profiles.yml", "x: {}\n")
        (root / "logs").mkdir()
        self.nodes = [
            model("stg_shop__invoice"),
            model("hist_shop__invoice", materialized="view"),
            model("final_invoice"),
            model("cdc_change_sets"),
            hook("{{ delta_cdc.record_run(results) }}"),
        ]

    def log(self, table: str) -> Path:
        return self.lake / "cdc.db" / table / "_delta_log"

    def looked(self, *options: str) -> Looked:
        call = ["run", "--profiles-dir", str(self.root), *options]
        return Looked(load_project(self.root), call, WarmDbt(self.root).files())

    def leave(self, looked: Looked, nodes: list[Any] | None = None, ended: datetime | None = None) -> None:
        times = [SimpleNamespace(completed_at=ended or datetime.now(timezone.utc).replace(tzinfo=None))]
        looked.leave([SimpleNamespace(node=node, timing=times) for node in self.nodes], nodes or self.nodes, self.lake)


@pytest.fixture
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop(tmp_path, getattr(request, "param", {}))


def test_nothing_is_to_do_where_all_is_as_it_was_left(shop: Shop) -> None:
    looked = shop.looked()
    assert not looked.was_loaded()
    shop.leave(looked)
    assert shop.looked().was_loaded()
    assert shop.looked().was_loaded()


def test_a_dbt_run_that_found_nothing_new_is_no_change(shop: Shop) -> None:
    shop.leave(shop.looked())
    write(shop.log("cdc_runs") / "00000000000000000001.json")
    assert shop.looked().was_loaded()


CHANGES: dict[str, Callable[[Shop], None]] = {
    "a change set came": lambda shop: write(shop.root / "landing/invoice/2.json"),
    "one was written again": lambda shop: write(shop.root / "landing/invoice/1.json", "{} \n"),
    "one is gone": lambda shop: (shop.root / "landing/invoice/1.json").unlink(),
    "a table was restored": lambda shop: write(shop.log("final_invoice") / "00000000000000000001.json"),
    "a table is gone": lambda shop: (shop.log("final_invoice") / "00000000000000000000.json").unlink(),
    "a command wrote": lambda shop: write(shop.log("cdc_holds") / "00000000000000000000.json"),
    "the project": lambda shop: write(shop.root / "models/final_invoice.sql"),
    "what dbt passes over": lambda shop: write(shop.root / ".dbtignore", "models/archive/\n"),
    "the profile": lambda shop: write(shop.root / "profiles.yml", "x: {y: 1}\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_is_made_where_something_is_other_than_it_was(shop: Shop, change: str) -> None:
    shop.leave(shop.looked())
    CHANGES[change](shop)
    assert not shop.looked().was_loaded()


def test_a_run_is_made_for_other_options_and_another_environment(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop.root / "models/mart.sql", "select '{{ env_var(\"SHOP_DAY\", 'x') }}'")
    shop.leave(shop.looked())
    assert not shop.looked("--target", "prod").was_loaded()
    shop.leave(shop.looked())
    monkeypatch.setenv("SHOP_DAY", "monday")
    assert not shop.looked().was_loaded()
    shop.leave(shop.looked())
    assert shop.looked().was_loaded()
    monkeypatch.setenv("DBT_TARGET", "prod")
    assert not shop.looked().was_loaded()


def test_what_was_left_is_forgotten_by_a_run_that_may_fail(shop: Shop) -> None:
    shop.leave(shop.looked())
    write(shop.root / "landing/invoice/2.json")
    assert not shop.looked().was_loaded()
    (shop.root / "landing/invoice/2.json").unlink()  # again as it was, but who knows what that run did
    assert not shop.looked().was_loaded()


def test_what_comes_during_a_run_is_for_the_next(shop: Shop) -> None:
    looked = shop.looked()
    write(shop.root / "landing/invoice/2.json")
    shop.leave(looked)
    assert not shop.looked().was_loaded()


def test_a_link_to_what_is_gone_hides_no_change_set(shop: Shop) -> None:
    for number in range(20):  # a folder is listed in no order: one of them comes before a new change set
        (shop.root / f"landing/invoice/old_{number}.json").symlink_to(shop.root / "archive/gone.json")
    shop.leave(shop.looked())
    for number in range(20):
        path = shop.root / f"landing/invoice/new_{number}.json"
        write(path)
        assert not shop.looked().was_loaded(), path
        shop.leave(shop.looked())


def test_what_other_projects_write_in_their_own_schemas_of_a_warehouse_is_nothing_new(shop: Shop) -> None:
    other = shop.lake / "crm.db/final_person/_delta_log"
    write(other / "00000000000000000000.json")
    shop.leave(shop.looked())
    write(other / "00000000000000000001.json")
    assert shop.looked().was_loaded()
    write(shop.log("final_invoice") / "00000000000000000001.json")
    assert not shop.looked().was_loaded()


def test_what_another_writes_to_a_table_during_a_run_is_not_taken_for_its_own(shop: Shop) -> None:
    shop.leave(shop.looked(), ended=datetime.fromtimestamp(SETTLED / 1e9, timezone.utc) - timedelta(seconds=1))
    assert not shop.looked().was_loaded()


def test_a_run_is_through_though_its_warehouse_cannot_be_listed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def scandir(folder: str) -> Any:
        if str(folder).startswith(str(shop.lake)):
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    looked, listed = shop.looked(), os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    shop.leave(looked)
    assert not shop.looked().was_loaded()


@pytest.mark.parametrize(
    "other",
    [
        model("mart", materialized="table"),
        model("final_invoice", post_hook=["grant"]),
        hook("grant select on x to y"),
    ],
)
def test_what_does_its_own_at_each_run_is_run(shop: Shop, other: SimpleNamespace) -> None:
    shop.leave(shop.looked(), [*shop.nodes, other])
    assert not shop.looked().was_loaded()
    for none in (model("mart", materialized="view"), model("cdc_table_log")):
        shop.leave(shop.looked(), [*shop.nodes, none])
        assert shop.looked().was_loaded()


@pytest.mark.parametrize("shop", [{"location": "s3a://bucket/{table}"}, {"location": "file:/data/{table}"}], indirect=True)
def test_what_does_not_lie_on_this_machine_is_looked_for_by_a_run(shop: Shop) -> None:
    shop.leave(shop.looked())
    assert not shop.looked().was_loaded()


@pytest.mark.parametrize(("shop", "done"), [({"settle_seconds": 60}, True), ({"settle_seconds": 7200}, False)], indirect=["shop"])
def test_S4_a_change_set_that_has_not_settled_is_for_a_later_run(shop: Shop, done: bool) -> None:
    shop.leave(shop.looked())
    assert shop.looked().was_loaded() is done


@pytest.mark.parametrize("shop", [{"list_after": True, "change_set_order": "name"}], indirect=True)
def test_with_list_after_names_tell(shop: Shop) -> None:
    shop.leave(shop.looked())
    write(shop.root / "landing/invoice/1.json", "again\n")
    assert shop.looked().was_loaded()
    write(shop.root / "landing/invoice/2.json")
    assert not shop.looked().was_loaded()


def test_a_run_without_anything_to_do_starts_no_dbt_and_tells_as_much(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[bool] = []

    def dbt(*_: Any) -> runs.Summary:
        began.append(True)
        return runs.Summary([], [], 0.0)

    monkeypatch.setattr(runs, "run_once", dbt)
    shop.leave(Looked(load_project(shop.root), ["run", "--profiles-dir", str(shop.root)], WarmDbt(shop.root).files()))
    screen = io.StringIO()

    def run(*select: str) -> int:
        options = ["--profiles-dir", str(shop.root)]
        return runs.run(load_project(shop.root), options, select=select, console=Console(file=screen, width=200))

    assert (run(), began) == (runs.DONE, [])
    assert "0 of 1 tables had news" in screen.getvalue()
    assert (run("final_invoice"), began) == (runs.DONE, [True])
