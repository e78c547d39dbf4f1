"""The page of `delta-cdc report`."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.projects import TABLE, project, source

from delta_cdc import report
from delta_cdc.config_reader import load_project

VOID = {"meta", "line", "rect", "br"}


class Page(HTMLParser):
    """Its text by element, and whether every element that it opens it closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.classes: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.classes += [value or "" for name, value in attrs if name == "class"]
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data.strip())


def told(**more: Any) -> dict[str, Any]:
    def entry(run: str, table: str, layer: str, minute: int, status: str = "success", read: int = 0, **rest: Any) -> Any:
        at = f"2026-01-01 00:{minute:02d}:00"
        return {
            "run": run,
            "table": table,
            "layer": layer,
            "rows_read": read,
            "rows_late": 0,
            "rows_written": read,
            "seconds": 1.5,
            "status": status,
            "finished_at": at,
            **rest,
        }

    tables = [
        {
            "name": "shop.invoice",
            "batch_id": 2,
            "change_set": "file:/landing/invoice/0002.jsonl",
            "changes": 1500,
            "newest": "2026-01-01T00:14:00Z",
            "final_rows": 1234,
            "final_rows_are_exact": True,
            "files": 3,
        }
    ]
    runs = [
        {
            "table": "stg_shop__invoice",
            "rows_read": 1500,
            "rows_duplicate": 0,
            "rows_late": 15,
            "rows_quarantined": 2,
            "finished_at": "2026-01-01 00:15:00",
            "status": "success",
            "error": None,
        }
    ]
    history = [
        entry("a", "stg_shop__invoice", "staging", 0, read=1000),
        entry("a", "final_invoice", "final", 0, read=900),
        entry("b", "stg_shop__invoice", "staging", 15, read=500, rows_late=15),
        entry("b", "final_invoice", "final", 15, "error"),
    ]
    quarantine = [{"feed": "shop", "source_table": "invoice", "error": "cast:<n>", "n": 2}]
    return {"tables": tables, "runs": runs, "history": history, "quarantine": quarantine, "holds": [], **more}


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    return load_project(project(tmp_path, source(), name="my_shop"))


def test_the_page_tells_how_tables_stand_and_needs_nothing_else(shop: Any) -> None:
    text = report.page(shop, told())
    page = Page(text)
    assert page.texts["h1"] == ["my_shop"]
    assert page.texts["td"][:2] == ["shop.invoice", "ok"]
    assert {"1,500", "1,234", "1.0%", "2 cast:<n>"} <= set(page.texts["td"])
    assert "The last 2 runs that had something to do, 2026-01-01 00:00 to 2026-01-01 00:15." in page.texts["p"][0]
    assert page.texts["title"][1:3] == ["2026-01-01 00:00: 3 s", "2026-01-01 00:15: 3 s"]
    assert not re.search(r"(src|href)=|https?:|@import|url\(", text)


def test_a_failed_run_and_what_came_late_stand_out(shop: Any) -> None:
    page = Page(report.page(shop, told()))
    assert page.classes.count("bar failed") == 3  # both charts, and the table, though it was final that failed
    assert "bar late" in page.classes
    assert "2026-01-01 00:15: 500 changes, 15 late, failed" in page.texts["title"]


def test_a_first_load_does_not_make_all_other_runs_too_small_to_see(shop: Any) -> None:
    first, *_ = told()["history"]
    runs = [{**first, "run": str(n), "finished_at": f"2026-01-01 01:{n:02d}:00", "rows_read": 500} for n in range(20)]
    text = report.page(shop, told(history=[{**first, "rows_read": 900_000}, *runs]))
    (timeline,) = re.findall('<svg class="timeline".*?</svg>', text)
    heights = [float(height) for height in re.findall(r'height="([0-9.]+)"><title>', timeline)]
    assert heights == [24, *[8] * 20]
    assert timeline.count("bar cut") == 1
    assert "2026-01-01 00:00: 900,000 changes" in timeline


def test_a_held_run_is_seen_though_it_wrote_nothing(shop: Any) -> None:
    *before, last = told()["history"]
    text = report.page(shop, told(history=[*before, {**last, "status": "held", "rows_written": 0}]))
    assert len(re.findall('class="bar held"[^>]*height="[1-9][0-9]', text)) == 3
    assert ", held</title>" in text


def test_what_needs_a_person_is_told_with_the_reason(shop: Any) -> None:
    hold = {"table": "stg_shop__invoice", "batch_id": 2, "change_set": "0002", "reason": "it would delete 3 of 4 <rows>"}
    page = Page(report.page(shop, told(holds=[hold])))
    assert "What needs a person" in page.texts["h2"]
    assert "batch 2 (0002) is held: it would delete 3 of 4 <rows>" in page.texts["td"]


def test_messages_of_no_configured_table_are_told_too(shop: Any) -> None:
    unparsable = {"feed": "shop", "source_table": None, "error": "unparsable", "n": 3}
    unknown = {"feed": "shop", "source_table": "signal", "error": "unknown_table", "n": 1}
    text = report.page(shop, told(quarantine=[*told()["quarantine"], unparsable, unknown]))
    assert '<b class="held">6</b>rows quarantined' in text
    assert "of no table above: shop (3 unparsable), shop.signal (1 unknown_table).</p>" in text


@pytest.mark.parametrize(
    ("errors", "shown"), [(["retracted", "erased", "too_late"], "<b>6</b>"), (["retracted", "null_key"], '<b class="held">4</b>')]
)
def test_rows_that_nobody_needs_to_look_at_do_not_warn(shop: Any, errors: list[str], shown: str) -> None:
    quarantine = [{"feed": "shop", "source_table": "invoice", "error": error, "n": 2} for error in errors]
    assert f"{shown}rows quarantined" in report.page(shop, told(quarantine=quarantine))


def test_each_state_that_wants_a_person_has_its_colour(tmp_path: Path) -> None:
    paused = load_project(project(tmp_path, source(tables={"invoice": {**TABLE, "paused": "moving"}})))
    text = report.page(paused, told())
    assert '<td class="paused">paused</td><td class="why">paused: moving</td>' in text
    for state in ("failed", "held", "paused"):
        assert re.search(rf"\.{state}\b[^}}]*\{{ color: ", text)


def test_a_project_that_has_loaded_nothing_has_a_page_too(shop: Any) -> None:
    page = Page(report.page(shop, {name: [] for name in told()}))
    assert page.texts["td"][:2] == ["shop.invoice", "not loaded"]
    assert "No run has written anything yet." in page.texts["p"]
