"""The benchmark's feed and page. What it measures needs Spark: `make bench`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bench.compare import differences
from bench.contest import _quickest
from bench.contestants import _stock_models
from bench.data import Table, change_set_name, tables, write_change_sets
from bench.many_change_sets import tens
from bench.page import FOLDER, PAGE, page
from bench.plot import svg
from bench.result import FLAT, Plot, drift, target
from bench.run import chosen, read
from bench.section import SECTIONS, module_of

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


def test_six_tables_are_big_three_of_them_partitioned_and_three_clustered() -> None:
    made = tables(65, 5_000, 1_000_000)
    assert len(made) == 65
    assert [table.rows for table in made].count(1_000_000) == 6
    assert sum(table.partitioned for table in made) == 3
    clustered = [table for table in made if table.clustered]
    assert len(clustered) == 3
    assert all(table.rows == 1_000_000 and not table.partitioned for table in clustered)
    models = dict(_stock_models(made, own=False))
    assert [name for name, text in models.items() if "liquid_clustered_by='id'" in text] == [
        f"final_{table.name}.sql" for table in clustered
    ]


def test_contestants_that_agree_with_each_other_and_the_feed_are_equal() -> None:
    assert differences({"t00": 2}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "77"]}}) == []
    assert differences({"t00": 2}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "78"]}}) != []
    assert differences({"t00": 3}, {"a": {"t00": ["2", "77"]}, "b": {"t00": ["2", "77"]}}) != []


def test_a_large_table_of_a_plain_dbt_project_has_the_settings_that_delta_cdc_gives_itself() -> None:
    models = dict(_stock_models([SMALL, Table("t01", 1_000_000, False)], own=False))
    tuned = [name for name, text in models.items() if "set spark.sql.codegen.wholeStage=true" in text]
    assert tuned == ["stg_t01.sql", "final_t01.sql"]
    assert not any("set spark" in text for _, text in _stock_models([Table("t01", 1_000_000, False)], own=True))


def test_the_quicker_one_of_a_rivals_two_ways_counts() -> None:
    assert _quickest({"delta_cdc": [1], "(a) loop": [5, 1, 5], "(a) loop, own": [4, 4, 9]}, "(a)") == "(a) loop, own"


def test_a_checkpoint_in_each_ten_runs_counts() -> None:
    dearer_checkpoints = [*([1.0] * 9 + [2.0]) * 3, *([1.0] * 9 + [9.0]) * 3]
    assert drift("a run", dearer_checkpoints)["value"] == 1  # a median of runs sees nothing of them
    assert drift("ten runs", tens(dearer_checkpoints))["value"] > FLAT
    assert tens([7.0, *[1.0] * 10]) == [10]
    assert tens([1.0, 2.0]) == [3]


def result(value: float) -> dict[str, Any]:
    return {
        "tables": [{"head": ["rows", "wall, s"], "rows": [["1,000", [2.0, 1.0, 4.5]], ["2,000", 3]]}],
        "targets": [{"what": "B1 to (a)", "value": value, "most": 1.3}],
        "plots": [
            {"title": "a & b", "x": "rows", "y": "s", "log": True, "lines": {"wall": [[1000, 2.0], [2000, 3]]}},
            {"title": "whole runs", "x": "s", "bars": {"delta_cdc": 2.0, "(a) <loop>": 1}},
        ],
        "compared": "All were equal.",
    }


def entry(value: float, disturbed: bool = False) -> dict[str, Any]:
    return {
        "command": "make bench ONLY=B1",
        "size": "small",
        "about": "B1: whole runs\n\nWhat is measured.\n",
        "at": "2026-01-01",
        "commit": "0" * 40,
        "uncommitted_changes": False,
        "versions": {"pyspark": "4.2.0"},
        "machine": {"cpu": "some", "cores": 2, "memory_gb": 8.0, "kernel": "6"},
        "sizes": {"rows": [1000, 2000], "kind": "json"},
        "seed": 1,
        "seconds": 90,
        "peak_mb": 5000,
        "other_cpu_seconds": 1,
        "disturbed": disturbed,
        "result": result(value),
    }


def test_the_page_says_which_target_is_missed_and_that_others_disturbed() -> None:
    text, plots = page({"B1": entry(1.2), "B4": entry(1.4, disturbed=True)})
    assert "| B1 | small | B1 to (a) | 1.2 | 1.3 | met |" in text
    assert "| B4 | small, disturbed | B1 to (a) | 1.4 | 1.3 | **missed** |" in text
    assert "| B1 | small | 5,000 | 4,096 | **missed** |" in text  # memory
    assert "| 1,000 | 2.0 (1.0 to 4.5) |" in text
    assert text.count("Others used more than 5 %") == 1
    assert set(plots) == {"B1_1.svg", "B1_2.svg", "B4_1.svg", "B4_2.svg"}
    assert all(f"(benchmarks/{name})" in text for name in plots)


def test_no_rounding_meets_a_target() -> None:
    missed = entry(1)
    missed["result"]["targets"] = [target("final to a plain MERGE", 0.1254, 0.125)]
    assert "| final to a plain MERGE | 0.1254 | 0.125 | **missed** |" in page({"B4": missed})[0]


def test_plots_are_well_formed() -> None:
    for drawn in page({"B1": entry(1)})[1].values():
        assert ElementTree.fromstring(drawn).tag.endswith("svg")
    flat: Plot = {"title": "", "x": "", "y": "", "lines": {"a": [(1, 0), (1, 0)]}}
    ElementTree.fromstring(svg(flat))


def test_the_page_that_is_there_is_that_of_the_results() -> None:
    text, plots = page(read())
    assert PAGE.read_text() == text
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == plots


def test_every_section_has_its_sizes_and_a_heading() -> None:
    for name in SECTIONS:
        module = module_of(name)
        arguments = set(inspect.signature(module.measure).parameters) - {"work"}
        assert set(module.SIZES["small"]) == set(module.SIZES["full"]) == arguments
        assert module.__doc__.partition("\n\n")[2]


def test_sizes_are_overridden_where_a_section_has_them() -> None:
    found = chosen("B2,B5,B9", "small", "rows=20 kind=parquet repeats=1")
    assert found["B1"]["rows"] == 20
    assert found["B5"] == {"rows": (20,), "repeats": 1}
    assert found["B9"]["kind"] == "parquet"
    assert chosen("B5", "full", "rows=20,40")["B5"]["rows"] == (20, 40)
    with pytest.raises(ValueError, match="no section is called B77"):
        chosen("B77", "small", "")
    with pytest.raises(ValueError, match="has a size called height"):
        chosen("B1", "small", "height=2")
