"""The benchmark's feed and page. What it measures needs Spark: `make bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.data import Table, change_set_name, tables, write_change_sets
from bench.page import page
from bench.run import differences

SMALL = Table("t00", rows=50, partitioned=False)


def test_the_feed_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_change_sets(tmp_path / folder, SMALL, change_sets=1, seed=seed)
    a, b, c = ((tmp_path / folder / change_set_name(1)).read_text() for folder in "abc")
    assert a == b != c


def test_the_rows_that_it_says_are_left_are_those_of_its_changes(tmp_path: Path) -> None:
    live = write_change_sets(tmp_path / "t00", SMALL, change_sets=2, seed=1)
    rows: dict[int, Any] = {}
    for number, expected in enumerate(live):
        for line in (tmp_path / "t00" / change_set_name(number)).read_text().splitlines():
            change = json.loads(line)
            assert (change["id"] in rows) == (change["op"] != "I"), line
            rows[change["id"]] = change
            if change["op"] == "D":
                del rows[change["id"]]
        assert len(rows) == expected


def test_six_tables_are_big_and_three_of_them_partitioned() -> None:
    made = tables(65, 5_000, 1_000_000)
    assert len(made) == 65
    assert [table.rows for table in made].count(1_000_000) == 6
    assert sum(table.partitioned for table in made) == 3


def test_contestants_that_agree_with_each_other_and_the_feed_are_equal() -> None:
    assert differences({"t00": 2}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "77"]}}) == []
    assert differences({"t00": 2}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "78"]}}) != []
    assert differences({"t00": 3}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "77"]}}) != []


def test_the_page_says_which_target_is_missed_and_that_others_disturbed() -> None:
    walls = {("B1", "delta_cdc"): 60, ("B1", "loop"): 50, ("B1", "stock"): 80, ("B2", "delta_cdc"): 12, ("B2", "loop"): 5,
             ("B2", "stock"): 70}
    results = {
        "at": "2026-01-01", "commit": "0" * 40, "uncommitted_changes": False, "versions": {"pyspark": "4.2.0"},
        "machine": {"cpu": "some", "cores": 2, "memory_gb": 8.0, "kernel": "6"},
        "size": {"tables": 65, "rows": 5000, "big": 1000000, "threads": 4, "repeats": 1, "seed": 1},
        "contestants": {"delta_cdc": "delta_cdc", "loop": "(a)", "stock": "(b)"},
        "samples": [
            {"benchmark": benchmark, "contestant": name, "wall_seconds": wall, "cpu_seconds": wall, "peak_mb": 900,
             "disturbed": name == "loop"}
            for (benchmark, name), wall in walls.items()
        ],
    }
    text = page(results)
    assert "| B1 delta_cdc to B1 (a) | 1.20 | at most 1.3 | met |" in text
    assert "| B1 delta_cdc to B1 (b) | 0.75 | at most 0.6 | **missed** |" in text
    assert "| B2 delta_cdc to B1 delta_cdc | 0.20 | at most 0.25 | met |" in text
    assert "in 2 of 6 runs others used" in text
