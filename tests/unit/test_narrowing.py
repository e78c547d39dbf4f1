"""Which rows of a merge's source the driver can hold."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.sparkdelta.narrowing import _unfit

LARGE = "coalesce(octet_length(cast(`a b` as string)), 0) > 8192"
NESTED = T.StructType([T.StructField("at", T.TimestampType())])


@pytest.mark.parametrize(
    ("type_", "sql"),
    [
        (T.IntegerType(), "false"), (T.TimestampNTZType(), "false"),
        (T.DateType(), "`a b` between date'1582-10-03' and date'1582-10-17'"),
        (T.TimestampType(), "`a b` between timestamp'1582-10-03' and timestamp'1582-10-17'"),
        (T.StringType(), LARGE), (T.ArrayType(NESTED), f"cast(`a b` as string) like '%1582-10-%' or {LARGE}"),
    ],
)  # fmt: skip
def test_a_row_that_is_too_large_or_has_a_day_that_java_has_not_is_told(type_: T.DataType, sql: str) -> None:
    assert _unfit(T.StructType([T.StructField("a b", type_)])) == f"coalesce({sql}, false)"
