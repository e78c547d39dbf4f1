"""What a table's columns become when rows of other types come, without Spark."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import Mock

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import types as T

from dbt.adapters.sparkdelta.columns import Merged, _described, evolved, folded, merge, misfits, sql_of, statements
from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter, SparkdeltaColumn
from dbt.adapters.sparkdelta.row_messages import columns_of_files
from dbt.adapters.sparkdelta.session import without_zone
from delta_cdc.spark_types import why_not_a_type

INT, LONG, STRING = T.IntegerType(), T.LongType(), T.StringType()


def test_E1_a_column_of_other_letters_is_new() -> None:
    assert evolved({"Masse": "integer"}, {"masse": "int", "Maße": "string"})["new"] == ["Maße"]


@pytest.mark.parametrize(
    ("have", "wanted", "becomes"),
    [
        (INT, LONG, "bigint"),
        (LONG, INT, "bigint"),
        (INT, T.DoubleType(), "double"),
        (T.FloatType(), T.DoubleType(), "double"),
        (INT, T.DecimalType(12, 2), "decimal(12,2)"),
        (T.DecimalType(5, 2), T.DecimalType(12, 4), "decimal(12,4)"),
        (T.DateType(), T.TimestampNTZType(), "timestamp_ntz"),
        (T.ArrayType(INT), T.ArrayType(LONG), "array<bigint>"),
        (T.MapType(STRING, INT), T.MapType(STRING, LONG), "map<string,bigint>"),
    ],
)
def test_E4_what_is_wider_holds_both(have: T.DataType, wanted: T.DataType, becomes: str) -> None:
    merged = merge(have, wanted, "`c`")
    assert (sql_of(merged.type), merged.cast, merged.rewrite) == (becomes, False, False)
    assert bool(merged.widen) is (sql_of(have) != becomes)


@pytest.mark.parametrize(
    ("have", "wanted"),
    [
        (INT, STRING),
        (STRING, INT),
        (LONG, T.DoubleType()),
        (INT, T.DecimalType(11, 2)),
        (T.DecimalType(10, 2), T.DecimalType(10, 3)),
        (T.DoubleType(), T.DecimalType(10, 3)),
        (T.TimestampType(), T.DateType()),
        (INT, T.ArrayType(INT)),
    ],
)
def test_E4_anything_else_keeps_its_type_and_is_cast(have: T.DataType, wanted: T.DataType) -> None:
    merged = merge(have, wanted, "`c`")
    assert (merged.type, merged.cast, merged.widen) == (have, True, ())


def test_null_fits_every_type() -> None:
    for have in (INT, T.ArrayType(INT), T.StructType([T.StructField("a", INT)])):
        assert merge(have, T.NullType(), "`c`") == Merged(have)
    assert merge(T.ArrayType(INT), T.ArrayType(T.NullType()), "`c`") == Merged(T.ArrayType(INT))  # array() in SQL
    assert evolved({"n": "int"}, {"n": "void"})["cast"] == {}


def test_E4_date_to_timestamp_rewrites_in_structs_too() -> None:
    have, wanted = (T.StructType([T.StructField("d", each)]) for each in (T.DateType(), T.TimestampType()))
    assert merge(have, wanted, "`c`").rewrite


def test_E6_a_struct_keeps_its_fields_in_their_order_and_gains() -> None:
    have = T.StructType([T.StructField("gone", INT), T.StructField("a b", INT)])
    wanted = T.StructType([T.StructField("new", STRING), T.StructField("A B", LONG)])
    merged = merge(have, wanted, "`s`")
    assert sql_of(merged.type) == "struct<gone:int,`a b`:bigint,new:string>"
    assert (merged.add, merged.widen) == (("`s`.`new` string",), ("`s`.`a b` type bigint",))


def test_E6_fields_that_are_listed_in_another_case_are_read_so() -> None:
    have = T.StructType([T.StructField("gone", INT), T.StructField("a", T.ArrayType(T.StructType([T.StructField("b c", INT)])))])
    wanted = T.StructType([T.StructField("A", T.ArrayType(T.StructType([T.StructField("B c", LONG)]))), T.StructField("d", INT)])
    found = evolved({"s": have, "m": T.MapType(STRING, INT), "t": have}, {"s": wanted, "m": T.MapType(STRING, LONG), "t": have})
    assert found["types"]["s"] == "struct<gone:int,a:array<struct<`b c`:bigint>>,d:int>"
    assert found["read"] == {"s": "struct<gone:int,A:array<struct<`B c`:bigint>>,d:int>"}


def test_E4_features_are_switched_on_only_where_needed() -> None:
    found = evolved({"a": "integer", "D": "date"}, {"a": LONG, "d": T.TimestampNTZType(), "x y": INT, "e": INT})
    assert found["new"] == ["x y", "e"]
    assert statements("t", found["add"], found["widen"]) == [
        "alter table t set tblproperties ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported', "
        "'delta.columnMapping.mode' = 'name')",
        "alter table t add columns (`x y` int, `e` int)",
        "alter table t alter column `a` type bigint, `d` type timestamp_ntz",
    ]
    assert statements("t", ["`e` int"], []) == ["alter table t add columns (`e` int)"]
    assert statements("t", [], []) == []


def test_E6_misfits_are_looked_for_at_every_depth() -> None:
    inner = T.StructType([T.StructField("c", INT)])
    sql = misfits(
        "text", "value", T.StructType([T.StructField("a", T.ArrayType(inner)), T.StructField("m", T.MapType(STRING, INT))])
    )
    assert "(t2.`c` is not null and v1.`c` is null)" in sql
    assert "map_values" in sql


@pytest.mark.parametrize(
    ("type_", "text", "is_one"),
    [
        (T.DateType(), "2026-01-31", True), (T.DateType(), "2026", True), (T.DateType(), "+10000-01-01", True),
        (T.DateType(), "20260131", False), (T.DateType(), "202601", False), (T.DateType(), "17", False),
        (T.DateType(), "0044-03-15 BC", False), (T.TimestampType(), "2026-01-31T10:00:00Z", True),
        (T.TimestampType(), "10:00:00", False), (T.TimestampType(), "1700000000", False), (T.TimestampNTZType(), "202601", False),
    ],
)  # fmt: skip
def test_E6_what_from_json_takes_for_another_moment_is_none(type_: T.DataType, text: str, is_one: bool) -> None:
    """Spark's fallbacks: digits are days since 1970 or a year, a time is today's."""
    (pattern,) = re.findall("text rlike r'(.*)'", misfits("text", "value", type_))
    assert bool(re.search(pattern, text)) is not is_one


def test_E6_what_from_json_takes_for_another_number_is_none() -> None:
    assert "instr(text, ',') > 0" in misfits("text", "value", T.DecimalType(10, 2))
    assert "abs(value) = double('infinity')" in misfits("text", "value", T.FloatType())


def test_Q2_a_text_is_never_held_to_a_length():
    found = evolved({}, {"a": "varchar(3)", "b": "char(3)", "c": "character(3)", "varchar": "string"})
    assert found["types"] == {"a": "string", "b": "string", "c": "string", "varchar": "string"}


@pytest.mark.parametrize(
    "text",
    [
        "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "string", "binary", "boolean", "date",
        "timestamp", "timestamp_ntz", "variant", "array<array<int>>", "map<string,array<decimal(38,0)>>",
        "struct<a:int,b c:struct<d:map<string,int>>,e:date>",
    ],
)  # fmt: skip
def test_types_are_read_where_no_java_is(text: str) -> None:
    """pyspark asks Java, which is not in this process where Spark is behind a server."""
    assert _described(text).simpleString() == text


def test_what_is_left_of_a_type_is_told() -> None:
    with pytest.raises(DbtRuntimeError, match=r"The type array<int>> cannot be read from `>` on\."):
        _described("array<int>>")


def test_P1_a_field_of_a_struct_keeps_what_was_last_said_of_it() -> None:
    struct = T.StructType([T.StructField("a", INT), T.StructField("in", T.StructType([T.StructField("b c", T.ArrayType(INT))]))])
    sql = folded("`s`", struct, "unsaid", "life")
    nothing = "`s`.`a` is null and `s`.`in`.`b c` is null"

    def last(value: str, nothing: str) -> str:
        return f"last_value(if((unsaid or (_cdc_op = 'U' and {nothing})), null, struct({value} as value)), true) over life.value"

    assert sql.startswith(f"if({last('`s`', nothing)} is null, null, struct({last('`s`.`a`', '`s`.`a` is null')} as `a`, if(")
    assert sql.endswith(f"struct({last('`s`.`in`.`b c`', '`s`.`in`.`b c` is null')} as `b c`)) as `in`))")


def test_A7_the_name_of_a_column_may_have_backticks_around_it() -> None:
    def found(names: list[str], others: list[Any]) -> tuple[list[str], list[str]]:
        columns = [SparkdeltaColumn(column=name, dtype="int") for name in names]
        within = SparkdeltaAdapter.columns_within(Mock(), columns, others)
        without = SparkdeltaAdapter.columns_without(Mock(), columns, others)
        return [column.quoted for column in within], [column.quoted for column in without]

    ticked, ticks = SparkdeltaColumn(column="`x`", dtype="int"), "```x```"
    assert found(["x", "`X`"], ["`x`"]) == (["```X```"], ["`x`"])
    assert found(["X", "y"], ["`x`"]) == (["`X`"], ["`y`"])  # as a user may write it in `unique_key`
    assert found(["x", "`x`"], [ticked]) == ([ticks], ["`x`"])
    assert found(["x"], [ticked]) == ([], ["`x`"])


def test_columns_of_files_have_types_that_a_source_takes() -> None:
    session, address = Mock(), T.StructType([T.StructField("post code", STRING), T.StructField("town", STRING)])
    session.read.format().load().schema = T.StructType([T.StructField("id", LONG), T.StructField("at", T.ArrayType(address))])
    (types,) = columns_of_files(session, ["1.parquet"], "parquet")
    assert types == {"id": "bigint", "at": "array<struct<`post code`:string,town:string>>"}
    assert [why_not_a_type(each) for each in types.values()] == [None, None]


def test_a_moment_inside_of_another_value_is_shown_as_the_session_shows_it_too() -> None:
    """pyspark gave it in the time zone of this process."""
    moments = T._parse_datatype_json_value(_nested("timestamp"))
    assert without_zone(moments) == T._parse_datatype_json_value(_nested("timestamp_ntz"))
    assert without_zone(T.ArrayType(T.DateType(), False)) == T.ArrayType(T.DateType(), False)


def _nested(moment: str) -> dict[str, Any]:
    """{at, all: [moments], by: {text: moment}} as Delta's log writes it."""
    all_ = {"type": "array", "elementType": moment, "containsNull": True}
    by = {"type": "map", "keyType": "string", "valueType": moment, "valueContainsNull": False}
    fields = {"at": moment, "all": all_, "by": by}
    return {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()]}


def test_a_relation_is_looked_for_among_those_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    matches = SparkdeltaAdapter.Relation.matches
    monkeypatch.setattr(
        SparkdeltaAdapter.Relation, "matches",
        lambda each, **search: looked_at.append(each.identifier) or matches(each, **search),
    )  # fmt: skip
    adapter = SparkdeltaAdapter.__new__(SparkdeltaAdapter)
    adapter.config = Mock(quoting={"database": False, "schema": False, "identifier": False})
    there = [SparkdeltaAdapter.Relation.create(schema="s", identifier=name) for name in ("a", "b", "ab")]
    assert adapter._make_match(there, None, "s", "B") == [there[1]]
    assert looked_at == ["b"]
    assert adapter._make_match(there, None, "s", "c") == []
