"""The adapter's macros, without dbt and Spark."""

from __future__ import annotations

from tests.unit.macros import load_adapter


def test_a_snapshot_inserts_the_columns_of_its_query_alone() -> None:
    macros = load_adapter(default__snapshot_merge_sql=lambda target, source, columns: f"{target} {source} {', '.join(columns)}")
    columns = ["`a`", "`dbt_unique_key_1`", "`DBT_UNIQUE_KEY_2`", "`dbt_scd_id`"]
    assert macros["sparkdelta__snapshot_merge_sql"]("t", "s", columns) == "t s `a`, `dbt_scd_id`"
