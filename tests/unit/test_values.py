"""Whether rows that a file expects are those that were found, however each of them is written."""

from __future__ import annotations

import time
from ctypes import c_float
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as T
from pyspark.sql.types import VariantVal
from tests.scenarios.feed_cases import compare
from tests.scenarios.project import _as_written
from tests.scenarios.values import Map, difference


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (5, 5.0), ("5", Decimal("5.00")), (12.50, Decimal("12.5")), ("1E+3", 1000), (0, -0.0), ("NaN", float("nan")),
        (Decimal("0.1000000000000000055511"), 0.1), ("123456789.12345678912", 123456789.12345679),
        ("true", True), (1, True), ("t", True), ("F", False),
        ("2026-01-01T10:00:00Z", datetime(2026, 1, 1, 10)), ("2026-01-01 10:00", datetime(2026, 1, 1, 10)),
        ("2026-01-01 12:00:00.5+02:00", datetime(2026, 1, 1, 10, 0, 0, 500_000)), ("2026-01-01", datetime(2026, 1, 1)),
        ("2026-01-01 07:30:00.123456789-0230", datetime(2026, 1, 1, 10, 0, 0, 123_456)),
        ("20454", date(2026, 1, 1)), ("2026-01-01", date(2026, 1, 1)), ("2026-01-01T00:00:00Z", date(2026, 1, 1)),
        ("\\xff0A", b"\xff\n"), ("ff0a", bytearray(b"\xff\n")), ("[-1, 10]", b"\xff\n"), ([255, 10], b"\xff\n"),
        ("3q2+7w==", b"\xde\xad\xbe\xef"), ("3q2+7w==", bytearray(b"3q2+7w==")), ("ff0a", b"ff0a"), ("é", "é".encode()),
        ({"b": ["3q2+7w==", None]}, {"b": [bytearray(b"\xde\xad\xbe\xef"), None]}),
        ('{"b": "ff0a"}', {"b": bytearray(b"\xff\n")}),
        ('["a","b"]', ["a", "b"]), (["1"], [Decimal("1.0")]), ("[]", []),
        ({"a": 1}, {"a": 1, "b": None}), ('{"a": "1", "b": {"c": 2.0}}', {"b": {"c": 2}, "a": 1}),
        ({"1": "a", "02": 2}, {2: 2, 1: "a"}), ({"1.50": {"2026-01-01": 1}}, {Decimal("1.5"): {date(2026, 1, 1): 1}}),
        ('{"true": 1}', {True: 1}), ([{"2": None}], [{2: None}]),
        (None, None), ("", ""), (Decimal("12.50"), "12.50"), (5, "5"), (Decimal("1.5"), VariantVal.parseJson("1.5")),
        (["a", "b"], '["a","b"]'), ([1.0, {"b": 2, "a": None}], '[1, {"a":null, "b":2}]'), ('["a", "b"]', '["a", "b"]'),
        (Decimal("0.0000001"), "0.0000001"), ({"a": Decimal("1.5")}, VariantVal.parseJson('{"a": 1.5}')),
        ('{"b": [5.0], "a": 1}', VariantVal.parseJson('{"a": 1, "b": [5]}')), ("5", VariantVal.parseJson('"5"')),
        ("5", VariantVal.parseJson("5")), ("true", VariantVal.parseJson('"true"')), (Decimal("5.0"), VariantVal.parseJson("5")),
    ],
)  # fmt: skip
def test_equal_values_are_equal_however_they_are_written(expected: Any, found: Any) -> None:
    assert difference([{"a": expected}], [{"a": found}]) is None


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (5, 6), (5, None), (None, 0), ("", None), ("a", "A"), ("12345678901234567.89", Decimal("12345678901234567.88")),
        ("2026-01-01 10:00:00+02:00", datetime(2026, 1, 1, 10)), ("x", datetime(2026, 1, 1)), ("2026-01-02", date(2026, 1, 1)),
        ("false", True), ("0a", b"\n\n"), (["0a"], [bytearray(b"\n\n")]), ("3q2+7w==", b"\xde\xad"), ("é", b"e"),
        ({"1": "a"}, {2: "a"}), ({"x": 1}, {1: 1}), ("2026-01-01 01:00:00", date(2026, 1, 1)),
        (["a"], ["a", "a"]), (["b", "a"], ["a", "b"]), ("a", ["a"]),
        ('["a", "b"]', '["a","b"]'), (["a"], "a"), (["a"], '["b"]'), ([], ""), ("1.0", "1"),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}), ("nan", 1.0), ("[]", [1]), ("no", True), ("nothing", False),
        (Decimal("1.5"), VariantVal.parseJson('"1.5"')), ({"a": Decimal("1.5")}, VariantVal.parseJson('{"a": "1.5"}')),
    ],
)  # fmt: skip
def test_other_values_are_not(expected: Any, found: Any) -> None:
    said = difference([{"k": 1, "a": expected}], [{"k": 1, "a": found}])
    assert said is not None
    assert [line[:4] for line in said.splitlines()] == ["  - ", "  + "]


@pytest.mark.parametrize("written", [1.1, 0.002, 123456.79, 3.4028235e38, 1.1754944e-38, -0.0, 16777216.0, float("inf")])
def test_a_float_is_the_double_that_is_written_alike_in_a_value_too(written: float) -> None:
    value = c_float(written).value  # as Spark hands it over
    assert _as_written([value, None], T.ArrayType(T.FloatType())) == [written, None]
    row = T.StructType([T.StructField("m", T.MapType(T.StringType(), T.FloatType())), T.StructField("d", T.DoubleType())])
    assert _as_written({"m": {"x": value}, "d": value}, row) == {"m": {"x": written}, "d": value}


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1, 10), datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30, 0, 5)])
def test_a_moment_is_in_utc_wherever_the_tests_run(moment: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        handed = T.TimestampType().fromInternal((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1))
        row = T.StructType([
            T.StructField("at", T.ArrayType(T.TimestampType())), T.StructField("local", T.TimestampNTZType()),
            T.StructField("m", T.MapType(T.TimestampType(), T.FloatType())),
        ])  # fmt: skip
        found = _as_written({"at": [handed, None], "local": moment, "m": {handed: c_float(1.1).value}}, row)
    time.tzset()
    assert found == {"at": [moment, None], "local": moment, "m": {moment: 1.1}}


def test_a_key_of_a_map_that_holds_null_is_not_one_that_is_absent() -> None:
    texts = T.MapType(T.StringType(), T.StringType())
    one, two, keyed = (_as_written(each, texts) for each in ({"a": "1"}, {"a": "1", "b": None}, {"2": None}))
    for value, other in ((one, two), ({"m": one}, {"m": two}), ([one, two], [two, one])):
        assert difference([{"v": value}], [{"v": value}]) is None
        assert difference([{"v": value}], [{"v": other}]) is not None
    assert difference([{"v": '{"a": 1}'}, {"v": {"a": 1, "b": None}}], [{"v": two}, {"v": one}]) is None
    assert difference([{"v": {}}], [{"v": keyed}]) is not None
    assert difference([{"v": {"a": {"x": 1}}}], [{"v": Map(a={"x": 1, "y": None})}]) is None  # a structure in a map
    row = T.Row("n")(1)
    assert _as_written({row: "x"}, T.MapType(T.StructType([T.StructField("n", T.IntegerType())]), T.StringType())) == {row: "x"}


def test_rows_are_counted_and_what_a_row_does_not_name_is_null() -> None:
    assert difference([{"a": 1}, {"a": 1}], [{"a": 1}]) == '  - a: "1"\n'
    assert difference([{"a": 1}, {"a": 2, "b": None}], [{"a": 2}, {"a": 1, "b": None}]) is None
    assert difference([{"a": 1}], [{"a": 1, "b": 1}]) is not None
    assert difference([], []) is None


def test_tables_of_a_feed_are_found_by_their_names() -> None:
    rows = {"columns": ["ID"], "rows": [["1"]]}
    assert compare({"shop.a": rows}, {"A": [{"id": 1}], "b": []}) is None
    assert compare({"x.a": rows, "y.a": rows}, {"x_a": [{"id": 1}], "y_a": [{"id": 1}]}) is None
    assert compare({"t": rows}, {"t_1": [{"id": 1}], "t_2": []}) is None  # the shards of the only one
    assert compare({"t": {"columns": ["id"], "rows": []}}, {}) is None
    assert compare({"t": rows}, {}) is not None
    assert "no table t" in str(compare({"t": rows, "u": rows}, {"u": [{"id": 1}]}))
    assert "no column more" in str(compare({"t": {"columns": ["id", "more"], "rows": [["1", None]]}}, {"t": [{"id": 1}]}))
