"""Seeds as dbt reads them: literals and types."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt_common.clients import agate_helper

from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter
from dbt.adapters.sparkdelta.seeds import literal, seed_rows


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "null"), (True, "true"), (7, "7"), (Decimal("1E+3"), "1000"), (Decimal("0.10"), "0.10"), (1.5, "1.5"),
        ("NaN", "'NaN'"), (Decimal("NaN"), "double('nan')"), (Decimal("-Infinity"), "double('-inf')"),
        (float("nan"), "double('nan')"), (float("inf"), "double('inf')"), ("it's ${x}", "'it\\'s $\\{x}'"),
        ("", "''"), ("O'Neil \\ \n", "'O\\'Neil \\\\ \\n'"), (9007199254740993, "9007199254740993"),
    ],
)  # fmt: skip
def test_a_value_is_a_literal_that_means_it(value: Any, sql: str) -> None:
    assert literal(value) == sql


@pytest.mark.parametrize(
    ("cells", "texts", "type_", "literals"),
    [
        (["NaN", "x"], [], "string", ["'NaN'", "'x'"]),
        (["NaN", "1"], ["a"], "string", ["'NaN'", "'1'"]),
        (["NaN", "1"], [], "double", ["double('nan')", "1"]),
        (["1.5", "-inf"], [], "double", ["1.5", "double('-inf')"]),
        (["1.5", "2"], [], "double", ["1.5", "2"]),
        (["6.02214076e23", "1.6e-19", ""], [], "double", ["double('6.02214076E+23')", "double('1.6E-19')", "null"]),
        (["6.62607015e-34", "1.5"], [], "double", ["double('6.62607015E-34')", "double('1.5')"]),
        (["123456789.5", "1.6e-19"], [], "double", ["123456789.5", "0.00000000000000000016"]),
    ],
)
def test_NaN_is_a_text_in_a_text_column_and_a_double_among_numbers(
    tmp_path: Path, cells: list[str], texts: list[str], type_: str, literals: list[str]
) -> None:
    file = tmp_path / "seed.csv"
    file.write_text("\n".join(["a", *cells]) + "\n")
    table = agate_helper.from_csv(str(file), texts)
    assert SparkdeltaAdapter.convert_type(table, 0) == type_
    assert seed_rows(table, ",", dict.fromkeys(texts, "string")) == [[each] for each in literals]
