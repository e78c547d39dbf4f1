"""What the demo starts dbt with, and what it says of the tables in the end."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rich.console import Console

from delta_cdc import demo


class Started(Exception):
    pass


@pytest.mark.parametrize("name", ["Ada, work", "[old]", "a #1", "{x}"])
def test_a_clone_may_be_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def start(_: Path, options: list[str]) -> Any:
        raise Started(options[options.index("--vars") + 1])

    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setenv("DBT_PROFILES_DIR", "")
    monkeypatch.setattr(demo, "WarmDbt", start)
    with pytest.raises(Started) as started:
        demo.main()
    assert yaml.safe_load(str(started.value)) == {"demo_landing": str(tmp_path / name / demo.LANDING)}


COUNTS = ("rows_read", "duplicates", "late", "quarantined", "inserted", "updated", "deleted")


def shown(monkeypatch: pytest.MonkeyPatch, differing: int) -> tuple[bool, list[list[str]], str]:
    """Of a table with a gap, and one of which so many rows differ: whether all are equal, the rows it shows, all text."""
    runs = [
        {"table": f"{model}{table}", "layer": layer, **dict(zip(COUNTS, counts, strict=True))}
        for table in ("customer", "track")
        for model, layer, counts in (
            ("stg_demo__", "staging", (1_200, 7, 3, 2, 1_193, 0, 0)),
            ("final_demo_", "final", (None, None, None, None, 60, 50, 4)),
        )
    ]
    found = {"customer": demo.Comparison(56, 0, ("tier",)), "track": demo.Comparison(56, differing, ())}
    monkeypatch.setattr(demo, "compare", lambda session, relation, expected, table: found[table])
    console = Console(width=160, file=(io := StringIO()))
    session = SimpleNamespace(sql=lambda _: SimpleNamespace(collect=lambda: runs))
    equal = demo._show_comparison(console, session, ["customer", "track"])
    lines = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in io.getvalue().splitlines()]
    return equal, [line for line in lines if line[0] in found], io.getvalue()


def test_the_table_of_the_demo_has_the_counts_of_staging_and_final_and_names_each_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    equal, rows, text = shown(monkeypatch, 0)
    counts = ["1,200", "7", "3", "2", "60", "50", "4", "56"]
    assert (equal, rows) == (True, [["customer", *counts, "yes, but tier"], ["track", *counts, "yes"]])
    assert "customer.tier: ADD COLUMN" in text


def test_the_demo_fails_where_a_table_is_not_the_database_s_or_changed_though_nothing_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    equal, rows, _ = shown(monkeypatch, 3)
    assert (equal, rows[1][-1]) == (False, "no: 3 rows differ")
    console, before = (
        Console(file=(io := StringIO()), width=160),
        {"final_a": ("1", frozenset({"f"})), "stg_a": ("2", frozenset({"g"}))},
    )
    assert demo._show_unchanged(console, before, before)
    for after in (
        before | {"stg_a": ("3", frozenset({"g"}))},
        before | {"stg_a": ("2", frozenset({"h"}))},
        {"final_a": before["final_a"]},
    ):
        assert not demo._show_unchanged(console, before, after)
    assert io.getvalue().count("Changed, though nothing new came: stg_a") == 3
