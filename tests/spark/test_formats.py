"""What the formats make of real messages: canonical changes, typed columns, and nothing that stops a run.

The messages are those of tests/cases/feeds (sources in tests/cases/README.md) or follow the producer's documentation,
which docs/formats/<format>.md names. What is expected is what the producer says of them.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.macros import load

from dbt.adapters.sparkdelta import queries
from dbt.adapters.sparkdelta.columns import misfits, type_of
from delta_cdc.formats import FORMATS

FEEDS = Path(__file__).parents[1] / "cases" / "feeds"
ADAPTER = SimpleNamespace(misfits=lambda text, value, type_: f"{text} is not null and {value} is null")
MACROS = load(adapter=ADAPTER)


def settings(format_: str, columns: dict[str, str], **given: Any) -> dict[str, Any]:
    """The settings of a table as the models have them; its first column is the key."""
    node = SimpleNamespace(
        unique_id="feed.t",
        name="t",
        source_name="f",
        source_meta={"cdc": {"format": format_, "keys": list(columns)[:1], **given}},
        config={},
        meta={},
        columns={name: SimpleNamespace(name=name, data_type=type_) for name, type_ in columns.items()},
    )
    return MACROS["_table_settings"](node)


def lines(spark, format_: str, messages: list[Any], table: dict[str, Any] | None = None) -> str:
    """One change set of messages, as the macros get it. table: its settings, if they tell what a line is."""
    texts = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    rows = [(1, "f.jsonl", number, text) for number, text in enumerate(texts, 1)]
    schema = "batch_id bigint, change_set string, row_number bigint, message string"
    spark.createDataFrame(rows, schema).createOrReplaceTempView("lines_of_test")
    return MACROS["format_lines"]("lines_of_test", table or settings(format_, {"id": "int"}))


def changes(spark, format_: str, messages: list[Any], columns: dict[str, str], **given: Any) -> list[dict[str, Any]]:
    """<format>_changes of the messages, in their order; as in a load of many, without a look at what kinds there are."""
    sql = MACROS["format_changes"](lines(spark, format_, messages), settings(format_, columns, **given))
    return [row.asDict(recursive=True) for row in spark.sql(f"select * from ({sql}) order by row_number").collect()]


def staged(spark, format_: str, messages: list[Any], columns: dict[str, str], **given: Any) -> list[dict[str, Any]]:
    """What staging would have, in the order of arrival."""
    table = settings(format_, columns, **given)
    given_lines = lines(spark, format_, messages, table)
    sql = MACROS["_staging_sql"](table | {"kinds": kinds(spark, table, given_lines)}, given_lines)
    rows = [row.asDict(recursive=True) for row in spark.sql(f"select * from ({sql}) order by _cdc_row").collect()]
    assert len({row["_cdc_row"] for row in rows}) == len(rows)
    return rows


def kinds(spark, table: dict[str, Any], of_lines: str) -> dict[str, bool] | None:
    ADAPTER.query_rows = partial(queries.query_rows, spark)
    return MACROS["kinds_of_lines"](table, of_lines)


def tables(spark, format_: str, messages: list[Any]) -> list[str | None]:
    given_lines, feed = lines(spark, format_, messages), {"format": format_}
    sql = MACROS["format_tables"](given_lines, feed | {"kinds": kinds(spark, feed, given_lines)})
    rows = spark.sql(f"select row_number, source_table from ({sql}) order by 1").collect()
    assert len({row.row_number for row in rows}) == len(rows)
    return [row.source_table for row in rows]


def values(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def messages_of(case: str) -> list[str]:
    """The messages of a case, in the order of its files."""
    files = sorted(path for path in (FEEDS / case).iterdir() if path.suffix in (".jsonl", ".txt") or case == "debezium_samples")
    return [line for path in files for line in path.read_text().splitlines() if line.strip()]


# --------------------------------------------------------------------------------
# all formats


BAD = [
    "no json",
    "[]",
    "[1]",
    "1",
    '"x"',
    "null",
    "{}",
    '{"type": 1}',
    '{"data": 1}',
    '{"type": "insert", "data": [1, 2]}',
    '{"type": "INSERT", "data": []}',
    '{"type": "UPDATE", "data": [{}, {}], "old": [{}]}',
    '{"op_type": "U", "before": 1}',
    '{"data": {"ID": 1, "id": 2, "Id": 3}, "metadata": []}',
    '{"change": 1}',
    '{"change": [1]}',
    '{"op": "u", "after": []}',
    '{"payload": []}',
    '{"__$operation": []}',
    '{"changeType": "I", "columnNames": ["a"], "columnValues": []}',
]


def test_E6_Q1_a_part_that_does_not_fit_is_told_whatever_its_column_is_named(spark, monkeypatch):
    """Named as a parameter of the lambda that looks at the parts, and as the relation that has the value."""
    monkeypatch.setattr(ADAPTER, "misfits", lambda text, value, type_: misfits(text, value, type_of(type_)))
    part = "struct<x:int,y:struct<x:int>>"
    rows = [{"id": 1, "x": 7}]
    for column in ("t0", "T1", "typed"):
        rows += [{"id": 1, column: told} for told in ({"x": 1}, {"x": "no"}, {"y": {"x": 1}}, {"y": {"x": "no"}})]
    types = {"id": "int", "x": "int", "t0": part, "T1": part, "typed": part}
    found = [row["_cdc_error"] for row in staged(spark, "rows", rows, types, sequence_by=["id"])]
    assert found == [None] + [error for name in types if name not in ("id", "x") for error in (None, f"cast:{name}") * 2]


@pytest.mark.parametrize("format_", [name for name in FORMATS if name != "rows"])
def test_Q1_messages_of_another_shape_are_refused_and_stop_nothing(spark, format_):
    known = {"unparsable", "unknown_operation", "null_key", "null_sequence", "cast:id"}
    found = staged(spark, format_, BAD, {"id": "int"})
    assert {row["_cdc_error"] for row in found} <= known
    assert found[0]["_cdc_error"] == "unparsable"  # what is left out was lost: no format takes «no json» for no change
    if FORMATS[format_].names_tables:
        assert {None} <= set(tables(spark, format_, BAD)) <= {None, ""}


FAR = 9223372036854775807


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("canal", {"type": "INSERT", "data": [{"id": "1"}], "es": FAR, "ts": 1, "id": 1}),
        ("maxwell", {"type": "insert", "data": {"id": 1}, "ts": FAR, "position": "m.1:1"}),
        ("change_event", {"changeType": "I", "timestamp": FAR, "columnNames": ["id"], "columnValues": [1]}),
        ("debezium", {"op": "c", "after": {"id": 1}, "source": {"lsn": 1, "ts_ms": FAR}, "ts_ms": FAR}),
        ("aliyun", {"payload": {"op": "INSERT", "timestamp": {"eventTime": FAR}, "after": {"dataColumn": {"id": 1}}}}),
    ],
)
def test_Q2_a_time_that_is_none_stops_nothing(spark, format_, message):
    (row,) = staged(spark, format_, [message], {"id": "int"})
    assert row["_cdc_occurred_at"] is None
    assert row["_cdc_error"] in (None, "null_sequence")


def test_a_moment_in_utc_is_the_same_where_the_clock_of_the_session_is_put_back(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    for text in ("2026-10-25 00:30:00.000001", "2026-10-25 01:30:00", "1700-01-01 00:00:00"):
        in_utc = MACROS["_in_utc"](f"timestamp'{text}Z'")
        found = session.sql(f"select cast({in_utc} as string)").first()[0]
        assert found == text


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("aliyun", {"payload": {"op": "INSERT", "sequenceId": "1", "after": {"dataColumn": {"id": 1, "at": "%s"}}}}),
        ("debezium", {"op": "c", "after": {"id": 1, "at": "%s"}, "source": {"lsn": 1}}),
    ],
)
@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_a_moment_as_a_number_is_read_or_quarantined(spark, format_, message, type_):
    settings = {"time_unit": "millis"} if format_ == "debezium" else {}
    for text, error in (("1590315269000", None), ("9" * 18, "cast:at"), ("9" * 38, "cast:at")):
        sent = json.loads(json.dumps(message).replace("%s", text))
        (row,) = staged(spark, format_, [sent], {"id": "int", "at": type_}, **settings)
        assert row["_cdc_error"] == error
        assert error or row["at"].replace(tzinfo=None) == dt.datetime(2020, 5, 24, 10, 14, 29)


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("rows", {"op": "I", "id": 1, "at": "%s"}),
        ("aliyun", {"payload": {"op": "INSERT", "sequenceId": "1", "after": {"dataColumn": {"id": 1, "at": "%s"}}}}),
        ("debezium", {"op": "c", "after": {"id": 1, "at": "%s"}, "source": {"lsn": 1}}),
        ("goldengate", {"op_type": "I", "pos": "1", "after": {"id": 1, "at": "%s"}}),
    ],
)
def test_Q1_a_time_without_a_day_is_no_moment(spark, format_, message):
    settings = {"sequence_by": ["id"], "operation": "op"} if format_ == "rows" else {}
    for text, error in (("2020-05-24 10:14:29", None), ("10:14:29", "cast:at"), ("T10:14", "cast:at")):
        sent = json.loads(json.dumps(message).replace("%s", text))
        (row,) = staged(spark, format_, [sent], {"id": "int", "at": "timestamp"}, **settings)
        assert row["_cdc_error"] == error
        assert (row["at"] is None) == (error is not None)


def test_rows_bytes_of_text_are_its_own_or_hexadecimal_digits(spark):
    rows = [{"id": id, "b": text} for id, text in enumerate((r"\x00fF", "0x00ff", "0x0", "ab"))]
    found = staged(spark, "rows", rows, {"id": "int", "b": "binary"}, sequence_by=["id"])
    assert [bytes(row["b"]) for row in found] == [b"\x00\xff", b"\x00\xff", b"0x0", b"ab"]


def test_sqlserver_ct_an_lsn_may_be_base64_and_nothing_else(spark):
    change = {"__$operation": 2, "id": 1, "__v": 7}
    lsns = ["AAAAJwAAB1gAGQ==", "AAAAJwAAB1gAGg==", "0x00000027000007580019", "0000002700000758001a", "17"]
    found = staged(spark, "sqlserver_ct", [{**change, "__$start_lsn": lsn} for lsn in lsns], {"id": "int", "__v": "int"})
    older, newer = "00000027000007580019", "0000002700000758001A"
    assert [row["_cdc_sequence"] and row["_cdc_sequence"]["_start_lsn"] for row in found] == [older, newer, older, newer, None]
    assert [row["_cdc_error"] for row in found] == [None] * 4 + ["null_sequence"]
    assert {row["__v"] for row in found} == {7}
    bytes_of = [{**change, "__$start_lsn": lsn, "b": text} for lsn, text in zip(lsns[1:3], ("ABCD", "ABCD"), strict=True)]
    found = staged(spark, "sqlserver_ct", bytes_of, {"id": "int", "b": "binary"})
    assert [bytes(row["b"]) for row in found] == [b"\x00\x10\x83", b"\xab\xcd"]  # FOR JSON writes all bytes in base64


def test_P1_S10_a_copy_has_whole_rows(spark):
    """JSON leaves nulls out; also where a quarantined row is read again by itself."""
    (row,) = staged(spark, "snapshots", [{"id": 1}], {"id": "int", "b": "string"})
    assert (row["b"], row["_cdc_missing"], row["_cdc_error"]) == (None, [], None)


# --------------------------------------------------------------------------------
# canal


def test_canal_a_message_of_several_rows_is_a_change_each(spark):
    message = {
        "data": [{"id": "2", "v": "b"}, {"id": "3", "v": None}],
        "old": [{"id": "1"}, {"v": "c"}],
        "database": "d",
        "table": "t",
        "type": "UPDATE",
        "isDdl": False,
        "es": 1683008289000,
        "ts": 1683008289719,
        "id": 14,
        "pkNames": ["id"],
        "mysqlType": {"id": "int"},
    }
    found = changes(spark, "canal", [message, message], {"id": "int", "v": "string"})
    assert values(found, "row_number", "_place", "op_code", "after", "before") == [
        (1, 0, "UPDATE", {"id": "2", "v": "b"}, {"id": "1", "v": "b"}),
        (2, 1, "UPDATE", {"id": "3", "v": None}, {"id": "3", "v": "c"}),
        (3, 0, "UPDATE", {"id": "2", "v": "b"}, {"id": "1", "v": "b"}),
        (4, 1, "UPDATE", {"id": "3", "v": None}, {"id": "3", "v": "c"}),
    ]
    again = changes(spark, "canal", [found[1]["message"]], {"id": "int", "v": "string"})
    assert again[0]["_arrival"] == {"batch": 1, "row": 1}
    there = {"row_number": 2, "message": None, "_arrival": None}
    assert again[0] | there == found[1] | there
    assert json.loads(found[1]["message"])["pkNames"] == ["id"]


def test_canal_a_delete_may_tell_its_rows_in_old(spark):
    message = {"data": None, "old": [{"id": "1"}, {"id": "2"}], "type": "DELETE", "table": "t", "sql": "", "ts": 2, "id": 3}
    rows = staged(spark, "canal", [message, {**message, "old": [{"id": "3"}]}], {"id": "int"})
    assert values(rows, "_cdc_op", "id", "_cdc_error") == [("D", 1, None), ("D", 2, None), ("D", 3, None)]


def test_canal_ddl_changes_no_row_but_truncate(spark):
    ddl = {"data": None, "old": None, "database": "d", "table": "t", "isDdl": True, "es": 1, "ts": 2, "id": 3}
    messages = [
        {**ddl, "type": "ALTER"},
        {**ddl, "type": "TRUNCATE"},
        {**ddl, "type": "CINDEX"},
        {**ddl, "type": "QUERY", "isDdl": False},
    ]
    assert values(staged(spark, "canal", messages, {"id": "int"}), "_cdc_op", "_cdc_error") == [("T", None)]
    assert tables(spark, "canal", [*messages, "no json"]) == ["d.t", None]


def test_canal_schemaevolution(spark):
    columns = {"_id": "int", "pt": "int", "v1": "string", "v2": "bigint", "v3": "decimal(8,3)", "v4": "binary", "v5": "double"}
    rows = staged(spark, "canal", messages_of("paimon__canal__table_schemaevolution"), columns)
    assert {row["_cdc_error"] for row in rows} == {None}
    final = {}
    for row in sorted(rows, key=lambda row: (tuple(row["_cdc_sequence"].values()), row["_cdc_row"])):
        final.pop(row["_id"], None)
        if row["_cdc_op"] != "D":
            final[row["_id"]] = tuple(row[column] for column in ("pt", "v1", "v2", "v3", "v4", "v5"))
    assert final == {
        1: (1, "one", None, None, None, None),
        2: (1, "second", None, None, None, None),
        3: (2, "three", 30000000000, None, None, None),
        4: (2, "four", None, None, b"four.bin.long", 4.00000000004),
        6: (1, "six", 60, None, None, None),
        7: (2, "seven", 70000000000, None, None, None),
        8: (2, "very long string", 80000000000, None, None, None),
        9: (1, "nine", 90000000000, Decimal("99999.999"), b"nine.bin.long", 9.00000000009),
    }


def test_canal_names_are_those_listed_in_any_case(spark):
    rows = staged(
        spark,
        "canal",
        messages_of("paimon__canal__database_case_insensitive"),
        {"k1": "int", "v0": "string", "v1": "int", "v2": "string"},
    )
    assert values(rows, "k1", "v0", "v1", "v2", "_cdc_missing", "_cdc_error") == [
        (5, "five", 50, None, ["v2"], None),
        (7, "seven", 70, None, ["v2"], None),
        (8, "eight", 80, "added", [], None),
    ]


def test_canal_of_two_spellings_the_listed_one_counts_and_the_other_is_kept(spark):
    message = {"data": [{"ID": "1", "id": "2", "V": "a", "v": "b"}], "type": "INSERT", "ts": 1, "id": 1}
    (row,) = staged(spark, "canal", [message], {"id": "int", "Vv": "string"}, renamed_columns={"Vv": "V"})
    assert (row["id"], row["Vv"], row["_cdc_undeclared"], row["_cdc_error"]) == (2, "a", {"ID": "1", "v": "b"}, None)


def test_canal_values(spark):
    columns = {
        "id": "int",
        "flag": "boolean",
        "amount": "decimal(10,2)",
        "born": "date",
        "at": "timestamp_ntz",
        "bytes": "binary",
    }
    given = {
        "id": "1",
        "flag": "1",
        "amount": "-0.10",
        "born": "2024-02-29",
        "at": "2024-02-29 23:59:59.123456",
        "bytes": "\x00\x80ÿ",
    }
    bad = [{**given, "id": "2", "born": "0000-00-00"}, {**given, "id": "3", "bytes": "乪"}, {**given, "id": None}]
    messages = [{"data": [row], "type": "INSERT", "ts": 1, "id": 1} for row in (given, *bad)]
    good, *refused = staged(spark, "canal", messages, columns)
    assert [good[column] for column in columns] == [
        1,
        True,
        Decimal("-0.10"),
        dt.date(2024, 2, 29),
        dt.datetime(2024, 2, 29, 23, 59, 59, 123456),
        b"\x00\x80\xff",
    ]
    assert [row["_cdc_error"] for row in refused] == ["cast:born", "cast:bytes", "null_key"]


def test_canal_without_times_is_taken_in_the_order_of_arrival(spark):
    messages = messages_of("paimon__canal__table_incomplete")
    columns = {"k": "int", "v": "string"}
    assert {row["_cdc_error"] for row in staged(spark, "canal", messages, columns)} == {"null_sequence"}
    rows = staged(spark, "canal", messages, columns, sequence_by=["_arrival"])
    assert values(rows, "k", "v", "_cdc_error") == [(1, "Hi", None), (2, "Hello", None)]
    again = [{"type": op, "data": [{"k": "1", "v": "a"}]} for op in ("INSERT", "DELETE", "INSERT")]
    assert [row["_cdc_op"] for row in staged(spark, "canal", again, columns, sequence_by=["_arrival"])] == ["I", "D", "I"]


def test_wal2json_v1_a_large_transaction_is_taken_apart_in_one_go(spark):
    """Where each change reads the whole transaction, the test does not come to an end."""
    names = {"columnnames": ["id", "v"], "columntypes": ["integer", "text"]}
    changed = [{"kind": "insert", "schema": "s", "table": "t", **names, "columnvalues": [n, "x" * 200]} for n in range(20_000)]
    transaction = {"xid": 7, "nextlsn": "0/10", "timestamp": "2026-01-01 00:00:00+00", "change": changed}
    rows = staged(spark, "wal2json_v1", [transaction], {"id": "int", "v": "string"})
    assert [(row["id"], row["_cdc_ordinal"]) for row in rows] == [(n, n) for n in range(20_000)]
    assert {(row["_cdc_error"], row["_cdc_transaction"], len(row["v"])) for row in rows} == {(None, "7", 200)}


# --------------------------------------------------------------------------------
# maxwell


# https://maxwells-daemon.io/dataformat/
MAXWELL = {"database": "test", "table": "e", "ts": 1477053217, "xid": 23396, "xoffset": 3, "position": "master.000006:800911"}


def test_maxwell_an_update_tells_the_values_before_of_what_changed(spark):
    row = {"id": 2, "m": 5.444, "c": "2016-10-21 05:33:54.631000", "comment": None}
    message = {**MAXWELL, "type": "update", "data": row, "old": {"id": 1, "m": 4.2341}}
    (found,) = staged(spark, "maxwell", [message], {"id": "int", "m": "double", "c": "timestamp_ntz", "comment": "string"})
    assert found["_cdc_key_before"] == {"id": 1}
    assert values([found], "_cdc_op", "id", "m", "c", "comment", "_cdc_missing", "_cdc_error") == [
        ("U", 2, 5.444, dt.datetime(2016, 10, 21, 5, 33, 54, 631000), None, [], None),
    ]
    assert values([found], "_cdc_sequence", "_cdc_ordinal", "_cdc_transaction", "_cdc_occurred_at") == [
        ({"_position": {"log": 6, "offset": 800911}}, 3, "23396", dt.datetime(2016, 10, 21, 12, 33, 37)),
    ]


def test_maxwell_rows_of_a_bootstrap_have_no_position_and_its_ends_change_no_row(spark):
    messages = [
        {**MAXWELL, "type": type_, "data": {"id": 1} if type_ == "bootstrap-insert" else {}}
        for type_ in ("bootstrap-start", "bootstrap-insert", "bootstrap-complete")
    ]
    rows = staged(spark, "maxwell", messages, {"id": "int"})
    assert values(rows, "id", "_cdc_op", "_cdc_sequence", "_cdc_error") == [(1, "R", None, None)]


def test_maxwell_ddl_changes_no_row(spark):
    messages = [
        {"type": type_, "database": "test", "table": "e", "ts": 1, "sql": ""}
        for type_ in ("table-create", "table-alter", "database-drop")
    ]
    assert tables(spark, "maxwell", [*messages, {**MAXWELL, "type": "insert", "data": {"id": 1}}]) == ["test.e"]
    assert staged(spark, "maxwell", messages, {"id": "int"}) == []


def test_maxwell_columns_that_the_binlog_leaves_out_are_absent(spark):
    message = {**MAXWELL, "type": "update", "data": {"id": 1, "i3": 444}}  # binlog_row_image=minimal
    (row,) = staged(spark, "maxwell", [message], {"id": "int", "i1": "int", "i3": "int"})
    assert (row["id"], row["i3"], row["_cdc_missing"], row["_cdc_key_before"]) == (1, 444, ["i1"], None)


def test_maxwell_logs_are_ordered_by_number(spark):
    messages = [{**MAXWELL, "type": "insert", "data": {"id": 1}, "position": f"binlog.{log}:4"} for log in ("999999", "1000000")]
    first, second = changes(spark, "maxwell", messages, {"id": "int"})
    assert first["_position"]["log"] < second["_position"]["log"]


def test_maxwell_the_last_row_of_a_transaction_says_commit_in_place_of_its_offset(spark):
    """One event of the binlog, one position: https://maxwells-daemon.io/dataformat/"""
    update = {**MAXWELL, "type": "update", "data": {"id": 1}}
    last = {name: value for name, value in update.items() if name != "xoffset"} | {"commit": True}
    unplaced = {name: value for name, value in update.items() if name != "position"}
    first, then, alone = staged(spark, "maxwell", [update, last, unplaced], {"id": "int"}, sequence_by=["_timestamp"])
    assert first["_cdc_ordinal"] < then["_cdc_ordinal"]
    assert alone["_cdc_ordinal"] is None  # where there is no position the order of arrival counts


def test_maxwell_values(spark):
    columns = {
        "id": "bigint",
        "big": "decimal(20,0)",
        "bit": "boolean",
        "set": "array<string>",
        "json": "string",
        "blob": "binary",
        "d": "timestamp",
    }
    row = {
        "id": 1,
        "big": 18446744073709551615,
        "bit": 1,
        "set": ["bar", "baz"],
        "json": {"a": [1, None]},
        "blob": "AAECAw==",
        "d": None,
    }
    messages = [
        {**MAXWELL, "type": "insert", "data": data} for data in (row, {**row, "d": "0000-00-00 00:00:00"}, {**row, "blob": "?"})
    ]
    good, *refused = staged(spark, "maxwell", messages, columns)
    assert [good[column] for column in columns] == [
        1,
        Decimal(18446744073709551615),
        True,
        ["bar", "baz"],
        '{"a":[1,null]}',
        b"\x00\x01\x02\x03",
        None,
    ]
    assert [row["_cdc_error"] for row in refused] == ["cast:d", "cast:blob"]


def test_maxwell_the_corpus_is_read_but_for_what_is_encrypted(spark):
    messages = messages_of("maxwell")
    rows = staged(spark, "maxwell", messages, {"id": "string"}, keys=[], keyless="append", sequence_by=["0"])
    refused = {row["_cdc_error"] for row in rows} - {None}
    assert refused == {"not_allowed"}  # updates and deletes
    assert len(messages) == len(rows) + sum(
        '"bootstrap-start"' in message or '"bootstrap-complete"' in message for message in messages
    )
    encrypted = (FEEDS / "maxwell" / "encrypted-user-insert.json").read_text().splitlines()
    assert {row["_cdc_error"] for row in staged(spark, "maxwell", encrypted, {"id": "int"})} == {"unparsable"}


# --------------------------------------------------------------------------------
# goldengate


GOLDENGATE = {
    "table": "GG.TCUSTORD",
    "op_ts": "2013-06-02 22:14:41.000000",
    "current_ts": "2015-09-18T10:17:49.899000",
    "pos": "00000000000000004338",
    "primary_keys": ["CUST_CODE"],
    "tokens": {"R": "AADPkvAAEAAEqLzAAC"},
}
ORDER = {"CUST_CODE": "string", "ORDER_DATE": "timestamp_ntz", "PRODUCT_PRICE": "decimal(8,2)"}


def test_goldengate_events_with_their_images(spark):
    columns = {"id": "int", "name": "string", "weight": "double"}
    rows = staged(spark, "goldengate", messages_of("paimon__ogg__table_event"), columns)
    assert values(rows, "_cdc_op", "id", "weight", "_cdc_key_before", "_cdc_error") == [
        ("I", 101, 3.14, None, None),
        ("I", 102, 8.1, None, None),
        ("I", 103, 5.1, None, None),
        ("U", 103, 8.1, None, None),
        ("D", 103, 8.1, None, None),
    ]
    assert rows[0]["_cdc_sequence"] == {"_pos": Decimal(143)}
    assert rows[0]["_cdc_occurred_at"] == dt.datetime(2020, 5, 13, 15, 40, 6)


def test_goldengate_names_are_those_listed_in_any_case(spark):
    columns = {"id": "int", "name": "string", "description": "string", "weight": "double"}
    rows = staged(spark, "goldengate", messages_of("paimon__ogg__database_case_insensitive"), columns)
    assert values(rows, "id", "name", "weight", "_cdc_missing", "_cdc_error") == [
        (101, "scooter", 3.14, [], None),
        (102, "car battery", 8.1, [], None),
    ]


def test_goldengate_what_the_trail_does_not_have_is_absent(spark):
    image = {
        "CUST_CODE": "DAVE",
        "CUST_CODE_isMissing": False,
        "ORDER_DATE": "1993-11-03:07:51:35",
        "ORDER_DATE_isMissing": False,
        "PRODUCT_PRICE": None,
        "PRODUCT_PRICE_isMissing": True,
    }
    null = {**image, "PRODUCT_PRICE_isMissing": False}
    messages = [
        {**GOLDENGATE, "op_type": "D", "before": image, "after": None},
        {**GOLDENGATE, "op_type": "U", "before": image, "after": image},
        {**GOLDENGATE, "op_type": "U", "before": image, "after": null},
    ]
    rows = staged(spark, "goldengate", messages, ORDER)
    assert values(rows, "_cdc_op", "CUST_CODE", "ORDER_DATE", "_cdc_missing", "_cdc_undeclared", "_cdc_error") == [
        ("D", "DAVE", dt.datetime(1993, 11, 3, 7, 51, 35), [], None, None),
        ("U", "DAVE", dt.datetime(1993, 11, 3, 7, 51, 35), ["PRODUCT_PRICE"], None, None),
        ("U", "DAVE", dt.datetime(1993, 11, 3, 7, 51, 35), [], None, None),
    ]


def test_goldengate_a_key_update_is_an_update_whose_key_before_is_another(spark):
    message = {
        **GOLDENGATE,
        "op_type": "U",
        "before": {"CUST_CODE": "DAVE"},
        "after": {"CUST_CODE": "ANNE", "PRODUCT_PRICE": 1.5},
    }
    (row,) = staged(spark, "goldengate", [message], ORDER)
    assert (row["CUST_CODE"], row["_cdc_key_before"]) == ("ANNE", {"CUST_CODE": "DAVE"})


@pytest.mark.parametrize("images", [{"before": {"CUST_CODE": "DAVE"}, "after": {"CUST_CODE": "ANNE"}}, {"CUST_CODE": "ANNE"}])
def test_goldengate_the_kafka_connect_handler_writes_a_schema_beside_the_operation(spark, images):
    alone = {**GOLDENGATE, "op_type": "U", **images}
    message = {"schema": {"type": "struct", "fields": []}, "payload": alone}
    assert tables(spark, "goldengate", [message]) == [GOLDENGATE["table"]]
    whole, bare = staged(spark, "goldengate", [message, alone], ORDER)
    names = ("CUST_CODE", "_cdc_key_before", "_cdc_sequence", "_cdc_missing", "_cdc_error")
    assert values([whole], *names) == values([bare], *names)
    assert (whole["CUST_CODE"], whole["_cdc_error"]) == ("ANNE", None)


@pytest.mark.parametrize(
    ("pos", "place"), [("00000000-10000001391", -9999998609), ("00000000000000001391", 1391), ("00000000-1", None), ("-", None)]
)
def test_goldengate_a_file_without_a_number_is_below_all_trails(spark, pos, place):
    (row,) = staged(spark, "goldengate", [{**GOLDENGATE, "pos": pos, "op_type": "I", "after": {"CUST_CODE": "WILL"}}], ORDER)
    assert row["_cdc_sequence"] == (None if place is None else {"_pos": Decimal(place)})


def test_goldengate_truncate_and_rows_beside_the_envelope(spark):
    row = {"CUST_CODE": "WILL", "PRODUCT_PRICE": "17520.00"}
    messages = [
        {**GOLDENGATE, "op_type": "T", "before": None, "after": None},
        {**GOLDENGATE, "op_type": "I", **row},
        {**GOLDENGATE, "op_type": "D", **row},
    ]
    rows = staged(spark, "goldengate", messages, ORDER)
    assert values(rows, "_cdc_op", "CUST_CODE", "PRODUCT_PRICE", "_cdc_undeclared", "_cdc_error") == [
        ("T", None, None, None, None),
        ("I", "WILL", Decimal("17520.00"), None, None),
        ("D", "WILL", Decimal("17520.00"), None, None),
    ]
    assert tables(spark, "goldengate", messages) == ["GG.TCUSTORD"] * 3


# --------------------------------------------------------------------------------
# dms


DMS = {
    "timestamp": "2021-02-18T23:57:11.970360Z",
    "record-type": "data",
    "partition-key-type": "schema-table",
    "schema-name": "crm",
    "table-name": "leads",
    "transaction-id": 87978110091475,
}


def test_dms_loads_and_changes(spark):
    row = {"ID": 315209, "name": "a", "at": "2020-01-15T22:45:17Z", "raw": "0x00ff"}
    messages = [
        {"data": row, "metadata": {**DMS, "operation": operation}} for operation in ("load", "insert", "update", "delete")
    ]
    rows = staged(spark, "dms", messages, {"id": "int", "name": "string", "at": "timestamp", "raw": "binary"})
    assert values(rows, "_cdc_op", "id", "name", "at", "raw", "_cdc_error") == [
        (op, 315209, "a", dt.datetime(2020, 1, 15, 22, 45, 17), b"\x00\xff", None) for op in "RIUD"
    ]
    assert values(rows[:1], "_cdc_sequence", "_cdc_transaction") == [
        ({"_timestamp": dt.datetime(2021, 2, 18, 23, 57, 11, 970360)}, "87978110091475")
    ]


def test_dms_control_records_change_no_row(spark):
    control = {
        "metadata": {
            **DMS,
            "record-type": "control",
            "operation": "create-table",
            "schema-name": "",
            "table-name": "awsdms_apply_exceptions",
        }
    }
    assert tables(spark, "dms", [control, {"data": {"id": 1}, "metadata": {**DMS, "operation": "load"}}]) == ["crm.leads"]
    assert staged(spark, "dms", [control], {"id": "int"}) == []


def test_dms_the_image_before_tells_the_key_before(spark):
    message = {"data": {"id": 2}, "before-image": {"id": 1}, "metadata": {**DMS, "operation": "update"}}
    (row,) = staged(spark, "dms", [message], {"id": "int", "name": "string"})
    assert (row["id"], row["_cdc_key_before"], row["_cdc_missing"]) == (2, {"id": 1}, ["name"])


def test_dms_the_image_before_may_stand_in_the_row(spark):
    """The mapping rule add-before-image-columns, with the prefix of its documentation; a column of the table may begin so too."""
    data = {"ID": 2, "name": "b", "BI_ID": 1, "BI_name": "a", "BI_tool": "x"}
    message = {"data": data, "metadata": {**DMS, "operation": "update"}}
    (row,) = staged(spark, "dms", [message], {"id": "int", "name": "string", "bi_tool": "string"})
    assert values([row], "id", "name", "bi_tool", "_cdc_key_before", "_cdc_undeclared") == [(2, "b", "x", {"id": 1}, None)]


def test_dms_transaction_details_may_order_and_date_the_changes(spark):
    details = {**DMS, "commit-timestamp": "2021-02-18T23:57:10.000000Z", "stream-position": "0000:11", "transaction-record-id": 7}
    message = {"data": {"id": 2}, "metadata": {**details, "operation": "insert"}}
    order = {"sequence_by": ["_commit_timestamp", "_transaction_id"], "ordinal": "_transaction_record_id"}
    (row,) = staged(spark, "dms", [message], {"id": "int"}, **order)
    assert row["_cdc_sequence"] == {
        "_commit_timestamp": dt.datetime(2021, 2, 18, 23, 57, 10),
        "_transaction_id": "87978110091475",
    }
    assert (row["_cdc_ordinal"], row["_cdc_occurred_at"], row["_cdc_error"]) == (7, dt.datetime(2021, 2, 18, 23, 57, 10), None)


@pytest.mark.parametrize("case", ["database_include", "database_prefixsuffix", "table_startup"])
def test_dms_cases(spark, case):
    messages = messages_of(f"paimon__aws-dms__{case}")
    rows = staged(spark, "dms", messages, {"id": "int", "name": "string", "description": "string", "weight": "double"})
    assert [row["id"] for row in rows] == [json.loads(message)["data"]["id"] for message in messages]
    assert {(row["_cdc_op"], row["_cdc_error"]) for row in rows} == {("I", None)}


# --------------------------------------------------------------------------------
# wal2json_v1


def test_wal2json_v1_a_transaction_is_a_change_for_each_place(spark):
    names = {"schema": "public", "columnnames": ["a", "b"], "columntypes": ["integer", "text"]}
    change = [
        {"kind": "insert", "table": "t", **names, "columnvalues": [1, "x"]},
        {
            "kind": "update",
            "table": "t",
            **names,
            "columnvalues": [2, None],
            "oldkeys": {"keynames": ["a"], "keytypes": ["integer"], "keyvalues": [1]},
        },
        {"kind": "delete", "table": "u", "schema": "public", "oldkeys": {"keynames": ["a"], "keyvalues": [3]}},
    ]
    message = {"xid": 751, "nextlsn": "1/1A", "timestamp": "2024-01-02 03:04:05.000006+00", "change": change}
    empty = {**message, "change": []}
    assert tables(spark, "wal2json_v1", [empty, message, empty]) == ["public.t", "public.t", "public.u"]
    rows = staged(spark, "wal2json_v1", [message, empty], {"a": "int", "b": "string"})
    assert values(rows, "_cdc_op", "a", "b", "_cdc_key_before", "_cdc_ordinal", "_cdc_error") == [
        ("I", 1, "x", None, 0, None),
        ("U", 2, None, {"a": 1}, 1, None),
        ("D", 3, None, None, 2, None),
    ]
    assert {(row["_cdc_sequence"]["_lsn"], row["_cdc_transaction"], row["_cdc_occurred_at"]) for row in rows} == {
        (4294967322, "751", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    }


def test_wal2json_v2_begin_commit_and_messages_change_no_row(spark):
    messages = [{"action": action, "xid": 1, "lsn": "0/1"} for action in ("B", "M", "C")]
    assert staged(spark, "wal2json_v2", messages, {"id": "int"}) == []
    assert tables(spark, "wal2json_v2", messages) == []


def test_wal2json_v2_a_change_that_names_no_table_is_unreadable(spark):
    names = ({}, {"schema": "", "table": ""}, {"table": "t"}, {"schema": "s", "table": "t"})
    messages = [{"action": "I", "columns": [{"name": "id", "value": 1}], **name} for name in names]
    assert tables(spark, "wal2json_v2", [*messages, {"action": "X", "table": "t"}]) == [None, None, "t", "s.t", None]


def test_wal2json_v1_what_is_no_pair_of_names_and_values_is_refused(spark):
    change = {"kind": "insert", "schema": "s", "table": "t"}
    messages = [
        {"nextlsn": "0/1", "change": [{**change, "columnnames": names, "columnvalues": [1, 2]}]}
        for names in (["a"], ["a", "a"], ["a", None])
    ]
    assert {row["_cdc_error"] for row in staged(spark, "wal2json_v1", messages, {"a": "int"})} == {"null_key"}


@pytest.mark.parametrize("version", [1, 2])
def test_wal2json_the_regression_tests_corpus_is_read(spark, version):
    files = sorted((FEEDS / "wal2json_regress").glob(f"*-v{version}.jsonl"))
    messages = [line for path in files for line in path.read_text().splitlines()]
    found = changes(spark, f"wal2json_v{version}", messages, {"a": "string"})
    assert all(change["parsed"] for change in found)
    # version 2 has begins, commits and logical messages, which are for no table
    changing = [change for change in found if change["op_code"] not in ("B", "C", "M")]
    assert {change["op_code"] for change in changing} == {1: {"insert", "update", "delete"}, 2: {"I", "U", "D", "T"}}[version]
    assert all(change["after"] or change["before"] for change in changing if change["op_code"] != "T")
    named = tables(spark, f"wal2json_v{version}", messages)
    assert (len(named), None in named) == (len(changing), False)


# --------------------------------------------------------------------------------
# debezium


def document(name: str) -> dict[str, Any]:
    """A message of Debezium's documentation."""
    return json.loads((FEEDS / "debezium_samples" / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("name", "position", "transaction"),
    [
        ("doc_mysql_04", {"log": "{context}-bin.00000000000000000003", "offset": 154, "row": 0}, None),
        ("doc_postgresql_01", {"log": "", "offset": 24023128, "row": None}, "555"),
        ("doc_sqlserver_04", {"log": "00000027:00000758:0005/00000027:00000758:0003", "offset": 1, "row": None}, None),
        ("doc_oracle_04", {"log": "", "offset": 2122185, "row": None}, "6.28.807"),
        ("serde-update", {"log": "mysql-bin.00000000000000000003", "offset": 154, "row": 0}, None),
    ],
)
def test_debezium_positions_by_source(spark, name, position, transaction):
    (found,) = changes(spark, "debezium", [document(name)], {"id": "int"})
    assert {**found["_position"], "offset": int(found["_position"]["offset"])} == position
    assert found["_txid"] == transaction


@pytest.mark.parametrize(
    ("source", "transaction"),
    [
        ({"connector": "informix", "txId": "157", "commit_lsn": "627404540760620"}, "157:627404540760620"),
        ({"connector": "informix", "txId": None, "commit_lsn": "0"}, None),
        ({"connector": "informix", "commit_lsn": "627404540760620", "transaction": "157:627404540485812"}, "157:627404540760620"),
        ({"connector": "postgresql", "lsn": 29274832, "transaction": "565:29274832"}, "565"),
        ({"connector": "db2", "commit_lsn": "00000037:00000f00:0003"}, None),
        ({"connector": "yugabytedb", "txId": "", "lsn": "1:4::0:0"}, None),
        ({"connector": "mysql", "gtid": "", "file": "bin.000003", "pos": "154"}, None),
    ],
)
def test_K3_debezium_what_tells_transactions_apart(spark, source, transaction):
    told = {"id": source.get("transaction")}
    message = {"op": "c", "before": None, "after": {"id": 1}, "source": source, "transaction": told}
    (found,) = changes(spark, "debezium", [message], {"id": "int"})
    assert found["_txid"] == transaction


def test_debezium_commits_of_aurora_dsql_are_ordered_by_their_time_in_nanoseconds(spark):
    """https://docs.aws.amazon.com/aurora-dsql/latest/userguide/cdc-record-format.html"""
    source = {"ts_ms": 1705318200000, "ts_ns": 1705318200000125483, "txId": "a", "schema": "s", "table": "t", "cluster": "c"}
    message = {"type": "full", "op": "u", "before": None, "after": {"id": 1}, "source": source, "ts_ms": 1705318200125}
    (found,) = changes(spark, "debezium", [message], {"id": "int"})
    assert found["_position"] == {"log": "", "offset": Decimal(1705318200000125483), "row": None}
    (row,) = staged(spark, "debezium", [message], {"id": "int"})
    assert (row["_cdc_occurred_at"], row["_cdc_transaction"]) == (dt.datetime(2024, 1, 15, 11, 30, 0, 125), "a")


def test_debezium_the_documents_are_read_or_refused(spark):
    names = sorted(path.stem for path in (FEEDS / "debezium_samples").glob("*.json"))
    rows = staged(spark, "debezium", [document(name) for name in names], {"id": "int"})
    found = dict.fromkeys(names, "no change") | {names[row["_cdc_row"] - 1]: row["_cdc_error"] for row in rows}
    read = ["doc_mysql_04", "doc_oracle_04", "doc_postgresql_01", "doc_sqlserver_04", "serde-unknown-property", "serde-update"]
    assert [name for name, error in found.items() if error is None] == [name for name in read if name != "doc_oracle_04"]
    assert found.pop("doc_oracle_04") == "null_key"  # its column is ID
    assert found.pop("doc_vitess_01") == "null_sequence"
    assert found.pop("doc_mysql_02") == "no change"  # DDL
    others = {name: error for name, error in found.items() if name not in read}
    assert set(others.values()) <= {"unparsable", "unknown_operation", "null_key"}  # keys and a document alone


def test_debezium_rows_without_an_envelope(spark):
    """https://debezium.io/documentation/reference/stable/transformations/event-flattening.html"""
    source = {
        "__table": "t",
        "__source_schema": "public",
        "__source_lsn": 7,
        "__source_ts_ms": 1000,
        "__ts_ms": 2000,
        "__source_txId": 5,
    }
    rows = [
        {"id": 1, "v": "a", "__op": "c", "__deleted": "false"},
        {"id": 1, "v": None, "__deleted": "true"},
        {"id": 1, "v": "b", "__deleted": "false"},
    ]
    messages = [{**row, **source} for row in rows] + [{"key": {"id": 1}, "value": {"id": 1, "v": "c", "__op": "u", **source}}]
    found = staged(spark, "debezium", messages, {"id": "int", "v": "string"})
    assert values(found, "_cdc_op", "id", "v", "_cdc_undeclared", "_cdc_error") == [
        ("I", 1, "a", None, None),
        ("D", 1, None, None, None),
        ("U", 1, "b", None, None),
        ("U", 1, "c", None, None),
    ]
    assert {(row["_cdc_sequence"]["_position"]["offset"], row["_cdc_transaction"], row["_cdc_occurred_at"]) for row in found} == {
        (Decimal(7), "5", dt.datetime(1970, 1, 1, 0, 0, 1)),
    }
    assert tables(spark, "debezium", messages) == ["public.t"] * 4


def test_debezium_rows_without_an_envelope_may_have_columns_of_any_name(spark):
    """Debezium's own outbox table has a column payload; a `schema` may be around a row, too."""
    names = {"key": "string", "payload": "string", "topic": "string", "op": "string"}
    row = {"key": "k", "payload": '{"a": 1}', "topic": "t", "op": "op", "__op": "u", "__source_lsn": 7, "__table": "t"}
    columns = [{"field": name} for name in row]
    with_schema = {"schema": {"fields": [*columns, {"field": "d", "name": "io.debezium.time.Date"}]}, "payload": row | {"d": 1}}
    messages = [row, {"key": {"key": "k"}, "value": row, "topic": "x"}, with_schema]
    found = staged(spark, "debezium", messages, names)
    assert values(found, "_cdc_op", "_cdc_error", *names) == [("U", None, "k", '{"a": 1}', "t", "op")] * 3
    assert tables(spark, "debezium", messages) == ["t"] * 3


def test_debezium_a_schema_says_what_a_number_is(spark):
    """MySQL's BIGINT UNSIGNED and Oracle's NUMBER(9) are whole numbers in a decimal column; a date, a year and a moment are days,
    years and parts of seconds in columns of any of these types."""
    time = "io.debezium.time."
    fields = {
        "id": ("int64", None),
        "bits": ("bytes", "io.debezium.data.Bits"),
        "exact": ("bytes", "org.apache.kafka.connect.data.Decimal"),
        "born": ("int32", f"{time}Date"),
        "local": ("int32", f"{time}Date"),
        "day": ("int64", f"{time}Timestamp"),
        "year": ("int32", f"{time}Year"),
    }
    schema = [{"field": name, "type": kind, **({"name": title} if title else {})} for name, (kind, title) in fields.items()]
    row = {
        "id": 1234,
        "bits": "AQAAAAAAAAA=",
        "exact": "BNI=",
        "born": 19439,
        "local": 19439,
        "day": 1_679_529_600_000,
        "year": None,
    }
    message = {
        "schema": {"fields": [{"field": "before"}, {"field": "after", "fields": schema}]},
        "payload": {"op": "c", "before": None, "after": row, "source": {"schema": "p", "table": "t", "lsn": 7}},
    }
    years = json.loads(json.dumps(message).replace('"year": null', '"year": 2023'))
    columns = {
        "id": "decimal(20,0)",
        "bits": "decimal(20,0)",
        "exact": "decimal(10,0)",
        "born": "timestamp",
        "local": "timestamp_ntz",
        "day": "date",
        "year": "date",
    }
    found, refused = staged(spark, "debezium", [message, years], columns)
    assert found["_cdc_error"] is None
    assert [str(found[name]) for name in columns] == [
        "1234",
        "1",
        "1234",
        "2023-03-23 00:00:00",
        "2023-03-23 00:00:00",
        "2023-03-23",
        "None",
    ]
    assert refused["_cdc_error"] == "cast:year"
    message["schema"]["fields"] = [{"field": "after", "fields": schema}, {"field": "source"}]  # a producer without `before`
    (alike,) = staged(spark, "debezium", [message], columns)
    assert values([alike], *columns) == values([found], *columns)


def test_debezium_placeholders_of_every_type_are_absent(spark):
    """UnchangedToastedPlaceholder.java of Debezium's connector for PostgreSQL."""
    word, in_base64 = "__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
    held = {
        "text": word, "bytes": in_base64, "texts": [word], "byteas": [in_base64], "ints": list(word.encode()),
        "uuids": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"], "map": {word: word},
        "json": json.dumps({word: word}, separators=(",", ":")),
    }  # fmt: skip
    message = {"op": "u", "after": {"id": 1, **held}, "source": {"lsn": 1}}
    (row,) = staged(spark, "debezium", [message], {"id": "int", **dict.fromkeys(held, "string")})
    assert row["_cdc_missing"] == list(held)
    message = {"op": "u", "before": {"id": 1, "text": word}, "after": {"id": 1}, "source": {"lsn": 1}}
    (row,) = staged(spark, "debezium", [message], {"id": "int", "text": "string"}, full_images=True)
    assert (row["text"], row["_cdc_missing"]) == (None, ["text"])


def test_debezium_bytes_may_be_written_as_for_urls(spark):
    written = ["-_-_", "+/+/", "AAE=", "none!"]
    messages = [{"op": "c", "after": {"id": id, "b": text}} for id, text in enumerate(written)]
    found = staged(spark, "debezium", messages, {"id": "int", "b": "binary"}, sequence_by=["_arrival"])
    assert [row["b"] and bytes(row["b"]) for row in found] == [b"\xfb\xff\xbf", b"\xfb\xff\xbf", b"\x00\x01", None]
    assert [row["_cdc_error"] for row in found] == [None, None, None, "cast:b"]


def test_debezium_a_delete_without_its_row_is_named_by_the_record_s_key(spark):
    value = {"op": "d", "before": None, "after": None, "source": {"lsn": 1}}
    (row,) = staged(spark, "debezium", [{"key": {"id": 1}, "value": value}], {"id": "int"})
    assert values([row], "_cdc_op", "id", "_cdc_error") == [("D", 1, None)]
    keys = [{"payload": 1}, {"schema": {"fields": []}, "payload": {"payload": 1}}]  # a column of that name
    found = staged(spark, "debezium", [{"key": key, "value": value} for key in keys], {"payload": "int"}, keys=["payload"])
    assert values(found, "_cdc_op", "payload", "_cdc_error") == [("D", 1, None)] * 2


def test_debezium_the_old_key_may_stand_beside_its_schema(spark):
    value = {"op": "c", "before": None, "after": {"id": 2}, "source": {"lsn": 1}}
    headers = {"__debezium.oldkey": {"schema": {}, "payload": {"id": 1}}}
    (row,) = staged(spark, "debezium", [{"key": {"id": 2}, "value": value, "headers": headers}], {"id": "int"})
    assert row["_cdc_key_before"] == {"id": 1}


@pytest.mark.parametrize(
    "headers",
    [
        ["a", None, "__debezium.oldkey", '{"id": 1}'],  # kcat -J
        [{"key": "a", "value": ""}, {"key": "__debezium.oldkey", "value": '{"id": 1}'}],  # rpk topic consume
        {"__debezium.oldkey": ['{"schema": {}, "payload": {"id": 1}}']},
        {"__debezium.oldkey": '{"id": 1}'},
    ],
)  # fmt: skip
def test_debezium_headers_may_be_texts_in_lists(spark, headers):
    value = {"op": "c", "before": None, "after": {"id": 2}, "source": {"lsn": 1}}
    (row,) = staged(spark, "debezium", [{"key": {"id": 2}, "value": value, "headers": headers}], {"id": "int"})
    assert row["_cdc_key_before"] == {"id": 1}


def test_debezium_schema_changes_without_ddl_change_no_row(spark):
    """https://debezium.io/documentation/reference/stable/connectors/sqlserver.html#sqlserver-schema-change-topic"""
    change = {"source": {"schema": "dbo", "table": "t"}, "ts_ms": 1, "ddl": None, "tableChanges": [{"type": "CREATE"}]}
    assert staged(spark, "debezium", [change, {"schema": {}, "payload": change}], {"id": "int"}) == []


def test_debezium_logs_are_ordered_by_number(spark):
    sources = [
        [{"file": f"mysql-bin.{number}", "pos": 4} for number in ("999999", "1000000")],
        [{"commit_lsn": lsn, "change_lsn": lsn} for lsn in ("99", "100")],  # Informix
    ]
    for pair in sources:
        messages = [{"op": "c", "after": {"id": 1}, "source": source} for source in pair]
        first, second = changes(spark, "debezium", messages, {"id": "int"})
        assert first["_position"]["log"] < second["_position"]["log"]


def test_debezium_a_row_alone_says_nothing_and_is_refused(spark):
    looks_like_others = [
        {"id": 1, "key": "color", "val": "red"}, {"id": 1, "topic": "t"}, {"id": 1, "ts_ms": 5}, {"id": 1, "status": "BEGIN"},
        {"id": 1, "ddl": "x"}, {"id": 1, "tableChanges": "x"},
    ]  # fmt: skip
    rows = staged(spark, "debezium", [document("serde-unwrapped"), *looks_like_others], {"id": "int"})
    assert [row["_cdc_error"] for row in rows] == ["unknown_operation"] * 7


def test_debezium_json_of_avro_is_refused(spark):
    """As kafka-avro-console-consumer and Kafka's REST proxy write it: vdesabou/kafka-docker-playground (MIT)."""
    source = {
        "version": "1.5.0.Final", "connector": "sqlserver", "name": "server1", "ts_ms": 1626081244747, "db": "testDB",
        "snapshot": {"string": "false"}, "sequence": None, "schema": "dbo", "table": "customers",
        "change_lsn": {"string": "00000025:00000d48:0003"}, "commit_lsn": {"string": "00000025:00000d48:0005"},
        "event_serial_no": {"long": 1},
    }  # fmt: skip
    after = {"server1.dbo.customers.Value": {"id": 1006, "name": "John", "phone": {"string": "+1-555"}}}
    event = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": {"long": 1626081249542}, "transaction": None}
    record = {"topic": "server1.dbo.customers", "key": {"id": 1006}, "value": event}
    row = {"id": 1006, "name": "John", "phone": {"string": "+1-555"}, "__table": {"string": "customers"}, "__lsn": 7}
    rows = [row | {"__deleted": {"string": "true"}}, row | {"__op": {"string": "c"}}]
    messages = [event, record, *rows, json.dumps(event, separators=(",", ":"))]
    found = staged(spark, "debezium", messages, {"id": "int", "name": "string", "phone": "string"}, sequence_by=["_arrival"])
    assert [row["_cdc_error"] for row in found] == ["unparsable"] * 5
    assert tables(spark, "debezium", messages) == [None] * 5
    # a text that holds such is one
    event = {"op": "c", "after": {"id": 1, "name": '"ts_ms":{"long":1}'}, "source": {"table": "t", "lsn": 7}, "ts_ms": 1}
    assert values(staged(spark, "debezium", [event], {"id": "int", "name": "string"}), "name", "_cdc_error") == [
        ('"ts_ms":{"long":1}', None)
    ]


def test_debezium_tombstones_change_no_row(spark):
    messages = messages_of("paimon__debezium__table_nullvalue")
    rows = staged(
        spark,
        "debezium",
        messages,
        {"id": "int", "name": "string", "description": "string", "weight": "double"},
        sequence_by=["0"],
    )
    assert {row["_cdc_error"] for row in rows} == {None}
    # also of a table with a column `op`, and beside the other messages that tell of one
    column = {"type": "CREATE", "table": {"columns": [{"name": "op"}]}}
    others = [
        {"topic": "t", "key": {"op": "X", "id": 1}, "value": None}, {"key": {"op": "X"}, "value": None},
        {"topic": "t", "key": {"op": 1}},
        {"source": {"table": "t"}, "databaseName": "d", "ddl": 'create table t ("op" int)', "tableChanges": [column]},
        {"key": None, "topic": "t", "value": {"ts_ms": 5}}, {"ts_ms": 5},
        {"status": "BEGIN", "id": "op", "ts_ms": 5, "event_count": None, "data_collections": None},
    ]  # fmt: skip
    assert staged(spark, "debezium", others, {"id": "int", "op": "string"}) == []


def test_debezium_without_any_position_is_taken_in_the_order_of_arrival(spark):
    """As the Debezium format of Apache Flink's Kafka connector writes it: nothing but images and the operation."""
    messages = [{"before": None, "after": {"id": 1}, "op": "c"}, {"before": {"id": 1}, "after": None, "op": "d"}]
    assert {row["_cdc_error"] for row in staged(spark, "debezium", messages, {"id": "int"})} == {"null_sequence"}
    rows = staged(spark, "debezium", messages, {"id": "int"}, sequence_by=["_arrival"])
    assert values(rows, "_cdc_op", "_cdc_sequence", "_cdc_error") == [
        ("I", {"_arrival": {"batch": 1, "row": 1}}, None),
        ("D", {"_arrival": {"batch": 1, "row": 2}}, None),
    ]


def test_debezium_decoded_logical_messages_change_no_row(spark):
    """The transform DecodeLogicalDecodingMessageContent: a row, but of no table."""
    source = {"connector": "postgresql", "schema": "", "table": "", "lsn": 5}
    message = {"op": "c", "before": None, "after": {"id": 1}, "source": source}
    assert tables(spark, "debezium", [message]) == []
    assert staged(spark, "debezium", [message], {"id": "int"}) == []


def test_debezium_logical_messages_change_no_row(spark):
    """https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-message-events"""
    source = {"db": "shop", "lsn": 46523128, "txId": 556, "ts_ms": 1559033904863}
    said = {"op": "m", "source": source | {"schema": "", "table": ""}, "message": {"prefix": "foo", "content": "Ymfy"}}
    row = {"op": "c", "source": source | {"schema": "public", "table": "t"}, "before": None, "after": {"id": 1, "prefix": "m"}}
    messages = [said, {"schema": {}, "payload": said}, row]
    rows = staged(spark, "debezium", messages, {"id": "int", "prefix": "string"})
    assert values(rows, "id", "prefix", "_cdc_error") == [(1, "m", None)]
    assert tables(spark, "debezium", messages) == ["public.t"]


def test_debezium_every_type_of_mysql(spark):
    """A capture of apache/paimon, with its schema and decimals as numbers; expected is what the database held."""
    types = {
        "_id": "int",
        "pt": "decimal(2,1)",
        "_bit1": "boolean",
        "_bit": "bigint",
        "_tinyint1": "boolean",
        "_bigint_unsigned": "decimal(20,0)",
        "_float": "float",
        "_numeric": "decimal(8,3)",
        "_fixed": "decimal(38,3)",
        "_big_decimal": "decimal(38,10)",
        "_date": "date",
        "_datetime": "timestamp_ntz",
        "_datetime3": "timestamp_ntz",
        "_datetime6": "timestamp_ntz",
        "_datetime_p2": "timestamp_ntz",
        "_timestamp": "timestamp",
        "_timestamp0": "timestamp",
        "_bin": "binary",
        "_blob": "binary",
        "_json": "struct<a: string>",
        "_enum": "string",
        "_year": "int",
        "_time": "bigint",
        "_point": "struct<x: double, y: double>",
        "_set": "string",
    }
    (row,) = staged(
        spark,
        "debezium",
        messages_of("paimon__debezium__table_alltypes_with_schema"),
        types,
        decimal_handling="string",
        sequence_by=["0"],
    )
    at = dt.datetime(2023, 3, 23, 14, 30, 5)
    assert {column: row[column] for column in types} == {
        "_id": 1,
        "pt": Decimal("1.1"),
        "_bit1": True,
        "_bit": 0b11111000111,
        "_tinyint1": True,
        "_bigint_unsigned": Decimal(20000000000),
        "_float": 1.5,
        "_numeric": Decimal("12345.110"),
        "_fixed": Decimal("123456789876543212345678987654321.110"),
        "_big_decimal": Decimal("2222222222222222300000001111.1234567890"),
        "_date": dt.date(2023, 3, 23),
        "_datetime": at,
        "_datetime3": at.replace(microsecond=123000),
        "_datetime6": at.replace(microsecond=123456),
        "_datetime_p2": at.replace(day=24, microsecond=120000),
        "_timestamp": dt.datetime(2023, 3, 23, 22, 0, 10, 123456),
        "_timestamp0": dt.datetime(2023, 3, 23, 7, 10),
        "_bin": b"bytes" + bytes(5),
        "_blob": b"BLOB type test data",
        "_json": {"a": "b"},
        "_enum": "value1",
        "_year": 2023,
        "_time": 36803000000,
        "_point": {"x": 1.0, "y": 1.0},
        "_set": "a,b",
    }
    assert row["_cdc_error"] is None
    assert row["_cdc_occurred_at"] is not None


def unscaled(number: int) -> str:
    """As Kafka Connect's Decimal writes a number: BigInteger.toByteArray in base64."""
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


# what a column's schema names, its value in a message, the column's type in the table, and what stands there
TYPES: list[tuple[str, Any, str, Any]] = [
    ("io.debezium.time.Date", 19439, "date", dt.date(2023, 3, 23)),
    ("io.debezium.time.IsoDate", "2023-03-23Z", "date", dt.date(2023, 3, 23)),
    ("io.debezium.time.ZonedTimestamp", "2023-03-23T14:30:05Z", "date", dt.date(2023, 3, 23)),
    ("io.debezium.time.MicroTimestamp", 1679581805123456, "date", dt.date(2023, 3, 23)),
    ("io.debezium.time.Timestamp", 1679581805123, "timestamp", dt.datetime(2023, 3, 23, 14, 30, 5, 123000)),
    ("io.debezium.time.MicroTimestamp", -1, "timestamp_ntz", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("io.debezium.time.NanoTimestamp", 1679581805123456789, "timestamp_ntz", dt.datetime(2023, 3, 23, 14, 30, 5, 123456)),
    (
        "io.debezium.time.ZonedTimestamp",
        "2023-03-23T14:30:05.123456+02:00",
        "timestamp",
        dt.datetime(2023, 3, 23, 12, 30, 5, 123456),
    ),
    (
        "io.debezium.time.IsoTimestamp",
        "2023-03-23T14:30:05.123456Z",
        "timestamp_ntz",
        dt.datetime(2023, 3, 23, 14, 30, 5, 123456),
    ),
    ("io.debezium.time.MicroTime", 36803000000, "bigint", 36803000000),
    ("io.debezium.time.Year", 2023, "int", 2023),
    ("org.apache.kafka.connect.data.Timestamp", 1679581805123, "timestamp", dt.datetime(2023, 3, 23, 14, 30, 5, 123000)),
    ("io.debezium.data.Bits", "xwc=", "int", 0x07C7),
    ("io.debezium.data.Bits", "xwc=", "binary", b"\x07\xc7"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 2, "value": "/3Y="}, "decimal(10,4)", Decimal("-1.3800")),
    ("io.debezium.data.VariableScaleDecimal", {"scale": -2, "value": "AQ=="}, "decimal(10,0)", Decimal("100")),
    ("org.apache.kafka.connect.data.Decimal", "APk=", "decimal(10,2)", Decimal("24.90")),
    ("org.apache.kafka.connect.data.Decimal", "APo=", "int", 25),
    ("org.apache.kafka.connect.data.Decimal", "APk=", "string", "24.9"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 2, "value": "/3Y="}, "string", "-1.38"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 5, "value": "/w=="}, "string", "-0.00001"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 3, "value": "AA=="}, "string", "0.000"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": -2, "value": "AQ=="}, "string", "100"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 30, "value": unscaled(10**64 + 7)}, "string", f"1{34 * '0'}.{29 * '0'}7"),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 0, "value": unscaled(-(2**200))}, "string", str(-(2**200))),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 0, "value": unscaled(10**63)}, "string", str(10**63)),
    ("io.debezium.data.VariableScaleDecimal", {"scale": 2, "value": "/3Y="}, "double", -1.38),
    ("int32", 5, "int", 5),
    ("io.debezium.data.Bits", "////////////", "decimal(38,0)", Decimal(2**72 - 1)),
    ("io.debezium.data.Bits", "xwc=", "long", 0x07C7),
    ("org.apache.kafka.connect.data.Decimal", "APk=", "dec(10,2)", Decimal("24.90")),
    ("io.debezium.time.IsoDate", "2023-03-23Z", "timestamp", dt.datetime(2023, 3, 23)),
    ("io.debezium.time.IsoDate", "2023-03-23Z", "timestamp_ntz", dt.datetime(2023, 3, 23)),
    ("io.debezium.time.NanoTimestamp", -100, "timestamp_ltz", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
]


def test_debezium_types(spark):
    """All of them in one message, a column each."""
    columns = {f"v{number}": of for number, of in enumerate(TYPES)}
    fields = [
        {"field": name, "name": semantic, "parameters": {"scale": "1"} if semantic.endswith("data.Decimal") else None}
        for name, (semantic, *_) in columns.items()
    ]
    schema = {"fields": [{"field": "before"}, {"field": "after", "fields": [{"field": "id"}, *fields]}]}
    after = {"id": 1, **{name: value for name, (_, value, _, _) in columns.items()}}
    message = {"schema": schema, "payload": {"op": "c", "after": after, "source": {"lsn": 1}}}
    (row,) = staged(spark, "debezium", [message], {"id": "int", **{name: type_ for name, (_, _, type_, _) in columns.items()}})
    found = [(semantic, value, type_, row[name]) for name, (semantic, value, type_, _) in columns.items()]
    assert found == TYPES
    assert row["_cdc_error"] is None


@pytest.mark.parametrize(
    ("semantic", "value", "type_"),
    [
        ("io.debezium.data.Bits", "/" * 48, "bigint"),
        ("io.debezium.data.Bits", "/" * 48, "decimal(38,0)"),
        ("io.debezium.time.Date", 2**31 - 1, "timestamp"),
        ("io.debezium.time.ZonedTimestamp", "infinity", "timestamp"),
        ("io.debezium.data.VariableScaleDecimal", {"scale": 1, "value": "APk="}, "int"),
        ("io.debezium.data.VariableScaleDecimal", {"scale": 2, "value": "/3Y="}, "bigint"),
        ("io.debezium.data.VariableScaleDecimal", {"scale": -(2**31), "value": "AQ=="}, "decimal(10,2)"),
        ("io.debezium.data.VariableScaleDecimal", {"scale": 2**31 - 1, "value": "AQ=="}, "decimal(10,2)"),
    ],
)
def test_Q2_debezium_a_value_beyond_all_bounds_stops_nothing(spark, semantic, value, type_):
    columns = [{"field": "id"}, {"field": "v", "name": semantic}]
    schema = {"fields": [{"field": "before"}, {"field": "after", "fields": columns}]}
    message = {"schema": schema, "payload": {"op": "c", "after": {"id": 1, "v": value}, "source": {"lsn": 1}}}
    (row,) = staged(spark, "debezium", [message], {"id": "int", "v": type_})
    assert row["_cdc_error"] == "cast:v"


def test_debezium_a_number_in_a_decimal_column_is_one(spark):
    """What is written as `precise` is text: APk= is 249 hundredths, and so is 1234 as text some number, but not as a number."""
    messages = [
        {"op": "c", "after": {"id": number, "v": value}, "source": {"lsn": 1}}
        for number, value in enumerate([1234, 12.5, "APk=", {"scale": 1, "value": "APk="}, None], start=1)
    ]
    messages.append({"op": "d", "before": {"id": 6, "v": 1234}, "after": None, "source": {"lsn": 2}})
    found = staged(spark, "debezium", messages, {"id": "decimal(10,0)", "v": "decimal(10,2)"})
    assert {row["_cdc_error"] for row in found} == {None}
    assert [row["id"] for row in found] == [Decimal(number) for number in range(1, 7)]
    assert [row["v"] for row in found][:5] == [Decimal("1234.00"), Decimal("12.50"), Decimal("2.49"), Decimal("24.90"), None]
    decimal = {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    schema = {"fields": [{"field": "before"}, {"field": "after", "fields": [{"field": "id"}, {"field": "v", **decimal}]}]}
    with_schema = [{"schema": schema, "payload": message} for message in messages[:3]]  # the converter's decimal.format: NUMERIC
    found = staged(spark, "debezium", with_schema, {"id": "decimal(10,0)", "v": "decimal(10,2)"})
    assert [(row["id"], row["v"]) for row in found] == [
        (Decimal(1), Decimal("1234.00")),
        (Decimal(2), Decimal("12.50")),
        (Decimal(3), Decimal("2.49")),
    ]


def test_debezium_of_tidb_the_commit_is_the_position(spark):
    """https://docs.pingcap.com/tidb/stable/ticdc-debezium/: file and pos are the same in every message."""
    source = {"connector": "TiCDC", "ts_ms": 1707103832263, "db": "test", "table": "t", "file": "", "pos": 0, "row": 0}
    commits = (447507027004751877, 447507027004751878)
    messages = [{"op": "c", "after": {"id": 1}, "source": source | {"commit_ts": commit}} for commit in commits]
    found = staged(spark, "debezium", messages, {"id": "int"})
    assert [row["_cdc_sequence"]["_position"]["offset"] for row in found] == [Decimal(commit) for commit in commits]


def test_debezium_a_listed_column_may_begin_as_the_envelope_does(spark):
    """The version key of Mongoose in a document's columns; a field of the envelope is one too where somebody lists it."""
    message = {"_id": "1", "__v": 3, "__op": "u", "__source_lsn": 7, "__source_ts_ms": 1000, "__other": 1}
    (row,) = staged(spark, "debezium", [message], {"_id": "string", "__v": "int", "__source_lsn": "bigint"}, keys=["_id"])
    assert values([row], "_id", "__v", "__source_lsn", "_cdc_error", "_cdc_undeclared") == [("1", 3, 7, None, None)]
    assert row["_cdc_sequence"]["_position"]["offset"] == 7


def test_debezium_what_is_no_number_of_a_row_or_no_time_stops_nothing(spark):
    source = {"db": "d", "table": "t", "file": "b.000001", "pos": 4, "row": "x", "ts_ms": 0}
    (row,) = staged(spark, "debezium", [{"op": "c", "after": {"id": 1}, "source": source, "ts_ms": 2000}], {"id": "int"})
    assert (row["_cdc_error"], row["_cdc_occurred_at"]) == (None, dt.datetime(1970, 1, 1, 0, 0, 2))


@pytest.mark.parametrize(
    ("lsn", "position"),
    [
        ("0/16B3748", 0x16B3748),
        ("1/0", 2**32),
        ("7FFFFFFF/FFFFFFFF", 2**63 - 1),
        ("FFFFFFFF/FFFFFFFF", None),
        ("x/y", None),
        ("123456789/0", None),
        ("/", None),
        ("1", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("format_", ["wal2json_v1", "wal2json_v2"])
def test_Q2_a_position_that_is_none_stops_nothing(spark, format_, lsn, position):
    message = {"action": "I", "lsn": lsn, "columns": [{"name": "id", "value": 1}]}
    if format_ == "wal2json_v1":
        message = {"nextlsn": lsn, "change": [{"kind": "insert", "columnnames": ["id"], "columnvalues": [1]}]}
    (row,) = staged(spark, format_, [message], {"id": "int"})
    assert row["_cdc_error"] == (None if position is not None else "null_sequence")
    assert position is None or row["_cdc_sequence"]["_lsn"] == position


def test_a_column_may_have_the_name_of_a_field(spark):
    message = {"op": "c", "after": {"id": 1, "_timestamp": "x", "_position": 5}, "source": {"lsn": 7, "ts_ms": 1000}}
    (row,) = staged(spark, "debezium", [message], {"id": "int", "_timestamp": "string", "_Position": "int"})
    assert (row["_timestamp"], row["_cdc_occurred_at"]) == ("x", dt.datetime(1970, 1, 1, 0, 0, 1))
    assert row["_cdc_sequence"]["_cdc_position"]["offset"] == 7


# --------------------------------------------------------------------------------
# aliyun


def test_aliyun_events(spark):
    messages = messages_of("paimon__aliyun__table_event")
    rows = staged(spark, "aliyun", messages, {"id": "int", "val": "double", "name": "string", "create_time": "timestamp"})
    at = dt.datetime(2024, 11, 15, 8, 58, 34)
    assert values(rows, "_cdc_op", "id", "val", "create_time", "_cdc_error") == [
        ("R", 2, 1.1, at, None),
        ("U", 2, 2.2, at, None),
        ("D", 1, 1.1, at, None),
    ]
    assert [row["_cdc_sequence"] and int(row["_cdc_sequence"]["_sequence_id"]) for row in rows] == [
        None,
        1731663842292000001,
        1731663842292000000,
    ]
    assert tables(spark, "aliyun", messages) == ["bigdata_test.sync_test_table"] * 3


def test_aliyun_an_update_of_two_messages_is_one_and_heartbeats_change_no_row(spark):
    def message(op: str, number: int, table: str = "t", **payload: Any) -> dict[str, Any]:
        source = {"dbName": "d", "tableName": table}
        images = {image: {"dataColumn": row} for image, row in payload.items()}
        return {
            "schema": {"source": source},
            "payload": {"op": op, "sequenceId": str(number), "timestamp": {"eventTime": 1}, **images},
        }

    messages = [
        message("UPDATE_BEFOR", 1, before={"id": 1}),
        message("INSERT", 2, "u", after={"id": 9}),
        message("UPDATE_AFTER", 3, after={"id": 2}),
    ]
    rows = staged(spark, "aliyun", [*messages, message("MHEARTBEAT", 4)], {"id": "int"})
    assert values(rows, "_cdc_op", "id", "_cdc_key_before", "_cdc_error") == [("I", 9, None, None), ("U", 2, {"id": 1}, None)]


# --------------------------------------------------------------------------------
# sqlserver_ct


def ct(operation: int, row: dict[str, Any], lsn: str = "0x00000027000007580005", command: int = 1) -> dict[str, Any]:
    return {
        "__$start_lsn": lsn,
        "__$end_lsn": None,
        "__$seqval": "0x00000027000007580003",
        "__$operation": operation,
        "__$update_mask": "0x03",
        **row,
        "__$command_id": command,
    }


def test_sqlserver_ct_the_rows_before_and_after_an_update_are_one_change(spark):
    messages = [
        ct(2, {"ID": 1, "v": "a"}),
        ct(3, {"ID": 1, "v": "a"}, command=2),
        ct(4, {"ID": 2, "v": None}, command=2),
        ct(1, {"ID": 2, "v": None}, command=3),
    ]
    rows = staged(spark, "sqlserver_ct", messages, {"id": "int", "v": "string"})
    assert values(rows, "_cdc_op", "id", "v", "_cdc_key_before", "_cdc_undeclared", "_cdc_error") == [
        ("I", 1, "a", None, None, None),
        ("U", 2, None, {"id": 1}, None, None),
        ("D", 2, None, None, None, None),
    ]
    assert rows[1]["_cdc_sequence"] == {"_start_lsn": "00000027000007580005", "_command_id": 2, "_seqval": "00000027000007580003"}


@pytest.mark.parametrize(
    ("format_", "text", "type_", "value"),
    [
        ("goldengate", "2013-06-02:22:14:41.5", "timestamp_ntz", dt.datetime(2013, 6, 2, 22, 14, 41, 500000)),
        ("maxwell", "AP8=", "binary", bytearray(b"\x00\xff")),
        ("debezium", "1577836800000001", "timestamp_ntz", None),
    ],
)
def test_E2_a_text_under_the_old_name_is_read_as_its_format_spells_it(spark, format_, text, type_, value):
    given = {**settings(format_, {"id": "int", "t": type_}), "staged_types": {"s": "string"}, "renamed_before": {}}
    sql = MACROS["_staged_value"]({**given, "renamed_in_staging": {"t": "s"}}, "t")
    assert spark.sql(f"select {sql} as t from (select '{text}' as s)").first().t == value


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("[0, null, 19000]", "array<date>", [dt.date(1970, 1, 1), None, dt.date(2022, 1, 8)]),
        ("[1577836800000001]", "array<timestamp_ntz>", [dt.datetime(2020, 1, 1, 0, 0, 0, 1)]),
        ('["2020-01-01T01:00:00"]', "array<timestamp_ntz>", [dt.datetime(2020, 1, 1, 1)]),
        ("[7]", "array<int>", [7]),
    ],
)
def test_N2_O4_a_list_whose_text_alone_is_left_is_what_it_was_with_its_schema(spark, text, type_, value):
    table = settings("debezium", {"id": "int", "a": type_}, time_unit="micros")
    sql = MACROS["_value_of_text_alone"]("text", type_, table, "a")
    assert spark.sql(f"select {sql} as a from (select '{text}' as text)").first().a == value


def test_rows_the_row_before_an_update_is_no_change_and_tells_the_old_key(spark):
    messages = [
        {"op": "U", "seq": 2, "id": 2, "v": "b"},
        {"op": "B", "seq": 1, "id": 1, "v": "a"},
        {"op": "B", "seq": 3, "id": 2, "v": "b"},
        {"op": "U", "seq": "x", "id": 5, "v": "c"},
        {"op": "B", "seq": 4, "id": 7, "v": "d"},
        {"op": "D", "seq": 5, "id": 7, "v": "d"},
        {"op": "B", "seq": 6, "id": "y", "v": "e"},
        {"op": "U", "seq": 7, "id": 8, "v": "e"},
    ]
    columns = {"id": "int", "v": "string", "op": "string", "seq": "int"}
    given = {"operation": "op", "operation_codes": {"B": "before"}, "sequence_by": ["seq"]}
    rows = staged(spark, "rows", messages, columns, **given)
    assert values(rows, "_cdc_op", "id", "v", "_cdc_key_before", "_cdc_undeclared", "_cdc_error") == [
        ("U", 2, "b", {"id": 1}, None, None),
        (None, 2, "b", None, None, "unknown_operation"),  # its update has no position
        ("U", 5, "c", None, None, "cast:seq"),
        (None, 7, "d", None, None, "unknown_operation"),  # a delete follows it
        ("D", 7, "d", None, None, None),
        ("U", 8, "e", None, None, "cast:id"),
    ]


def test_sqlserver_ct_a_row_before_without_its_row_after_is_refused(spark):
    other = "0x00000027000007580006"
    rows = staged(spark, "sqlserver_ct", [ct(3, {"id": 1}), ct(4, {"id": 5}, other), ct(5, {"id": 6}, other, 2)], {"id": "int"})
    assert values(rows, "id", "_cdc_op", "_cdc_key_before", "_cdc_error") == [
        (1, None, None, "unknown_operation"),
        (5, "U", None, None),
        (6, "U", None, None),
    ]


# --------------------------------------------------------------------------------
# oracle_cdc


def test_oracle_cdc_the_rows_before_and_after_an_update_are_one_change(spark):
    control = {"CSCN$": 567, "XIDUSN$": 6, "XIDSLT$": 28, "XIDSEQ$": 807, "COMMIT_TIMESTAMP$": "2008-01-02 03:04:05"}
    rows = [("I ", 1, {"ID": 1}), ("UO", 2, {"ID": 1}), ("UN", 3, {"ID": 2}), ("D ", 4, {"ID": 2})]
    messages = [{"OPERATION$": operation, "RSID$": f"{number}.0000000000", **control, **row} for operation, number, row in rows]
    found = staged(spark, "oracle_cdc", messages, {"id": "int"})
    assert values(found, "_cdc_op", "id", "_cdc_key_before", "_cdc_ordinal", "_cdc_error") == [
        ("I", 1, None, 1, None),
        ("U", 2, {"id": 1}, 3, None),
        ("D", 2, None, 4, None),
    ]
    assert values(found[:1], "_cdc_transaction", "_cdc_occurred_at") == [("6.28.807", dt.datetime(2008, 1, 2, 3, 4, 5))]


# --------------------------------------------------------------------------------
# powerexchange


def test_powerexchange_records(spark):
    control = {"DTL__CAPXRESTART1": "d5", "DTL__CAPXUOW": "c1", "DTL__CAPXTIMESTAMP": "20080102030405000006"}
    messages = [{**control, "DTL__CAPXACTION": "I", "ID": 1}, {**control, "DTL__CAPXACTION": "U", "ID": 2, "DTL__BI_ID": 1}]
    found = staged(spark, "powerexchange", messages, {"id": "int"})
    assert values(found, "_cdc_op", "id", "_cdc_key_before", "_cdc_error") == [("I", 1, None, None), ("U", 2, {"id": 1}, None)]
    assert values(found[:1], "_cdc_sequence", "_cdc_transaction", "_cdc_occurred_at") == [
        ({"_sequence_token": "D5"}, "c1", dt.datetime(2008, 1, 2, 3, 4, 5, 6)),
    ]
    tokens = ("1Ag76zYw9gAB", "1Ag76zYw9gA0", "0xd5", "d5!")  # in base64 a digit is above a letter
    found = staged(spark, "powerexchange", [{**messages[0], "DTL__CAPXRESTART1": each} for each in tokens], {"id": "int"})
    assert values(found, "_cdc_sequence", "_cdc_error") == [
        ({"_sequence_token": "D4083BEB3630F60001"}, None),
        ({"_sequence_token": "D4083BEB3630F60034"}, None),
        ({"_sequence_token": "0XD5"}, None),
        (None, "null_sequence"),
    ]


def test_Q2_of_two_spellings_of_a_control_column_the_one_in_upper_case_counts_else_the_first(spark):
    oracle = {"RSID$": 1, "CSCN$": 567, "cscn$": 5, "XIDUSN$": 6, "XIDSLT$": 28, "XIDSEQ$": 807, "ID": 1}
    oracle_messages = [{**oracle, "operation$": "D ", "OPERATION$": "I "}, {**oracle, "operation$": "D ", "Operation$": "I "}]
    px = {"DTL__CAPXRESTART1": "d5", "DTL__CAPXUOW": "c1", "DTL__CAPXTIMESTAMP": "20080102030405000006", "ID": 1}
    px_messages = [
        {**px, "dtl__capxaction": "D", "DTL__CAPXACTION": "I"},
        {**px, "dtl__capxaction": "D", "Dtl__CapxAction": "I"},
        {**px, "DTL__CAPXACTION": "U", "ID": 2, "DTL__BI_ID": 1, "dtl__bi_id": 7},
    ]
    found = staged(spark, "oracle_cdc", oracle_messages, {"id": "int"})
    assert values(found, "_cdc_op", "id", "_cdc_error") == [("I", 1, None)] * 2
    assert values(found[:1], "_cdc_sequence") == [({"_commit_scn": 567},)]
    found = staged(spark, "powerexchange", px_messages, {"id": "int"})
    assert values(found, "_cdc_op", "id", "_cdc_key_before", "_cdc_error") == [
        ("I", 1, None, None),
        ("I", 1, None, None),
        ("U", 2, {"id": 1}, None),
    ]


# --------------------------------------------------------------------------------
# trigger_audit


def test_Q1_of_a_delete_only_what_it_needs_has_to_fit(spark):
    about = {"ts": "2024-01-01T00:00:00Z", "table_schema": "p", "table_name": "t"}
    messages = [
        {"id": 1, "op": "UPDATE", **about, "record": {"id": 1, "d": "infinity"}, "old_record": {"id": 1, "d": None}},
        {"id": 2, "op": "DELETE", **about, "record": None, "old_record": {"id": 1, "d": "infinity"}},
        {"id": 3, "op": "DELETE", **about, "record": None, "old_record": {"id": "many", "d": "infinity"}},
    ]
    found = staged(spark, "trigger_audit", messages, {"id": "int", "d": "date"})
    assert values(found, "_cdc_op", "_cdc_error") == [("U", "cast:d"), ("D", None), ("D", "cast:id")]
    by_day = staged(spark, "trigger_audit", messages[:2], {"id": "int", "d": "date"}, occurred_at="d")
    assert values(by_day, "_cdc_error") == [("cast:d",), ("cast:d",)]


def test_P1_a_null_that_says_nothing_is_as_it_was_before(spark):
    message = {
        "action": "U",
        "schema": "p",
        "table": "t",
        "lsn": "0/1",
        "xid": 1,
        "timestamp": "2026-01-01 00:00:00+00",
        "columns": [{"name": "id", "value": 1}, {"name": "b", "value": None}, {"name": "c", "value": 2}],
        "identity": [{"name": "id", "value": 1}, {"name": "b", "value": "x"}, {"name": "c", "value": 1}],
    }
    columns = {"id": "int", "b": "string", "c": "int"}
    (found,) = staged(spark, "wal2json_v2", [message], columns, full_images=True, ignore_null_updates=True)
    assert (found["b"], found["c"], found["_cdc_missing"]) == ("x", 2, [])
    (found,) = staged(spark, "wal2json_v2", [message], columns, full_images=True, ignore_null_updates=["c"])
    assert (found["b"], found["c"], found["_cdc_missing"]) == (None, 2, [])


def test_a_variant_holds_the_object_that_a_message_has(spark):
    about = {"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": 1, "commit": True, "position": "m.000001:4"}
    messages = [{**about, "data": {"id": 1, "j": j}} for j in ({"a": 1}, '{"a": 1}', "no json")]
    sql = MACROS["_staging_sql"](settings("maxwell", {"id": "int", "j": "variant"}), lines(spark, "maxwell", messages))
    rows = spark.sql(f"select try_variant_get(j, '$.a', 'int') as a, to_json(j) as j, _cdc_error from ({sql}) order by _cdc_row")
    assert [tuple(row) for row in rows.collect()] == [(1, '{"a":1}', None), (1, '{"a":1}', None), (None, '"no json"', None)]


def test_trigger_audit_rows(spark):
    about = {"id": 7, "ts": "2024-01-02T03:04:05Z", "table_schema": "public", "table_name": "t"}
    messages = [
        {**about, "op": "INSERT", "transaction_id": "740", "record": {"id": 1, "b": "\\x00ff"}},
        {**about, "op": "UPDATE", "record": '{"id": 2}', "old_record": {"id": 1}},
        {**about, "op": "DELETE", "record": None, "old_record": {"id": 2}},
        {**about, "op": "TRUNCATE"},
    ]
    found = staged(spark, "trigger_audit", messages, {"id": "int", "b": "binary"})
    assert values(found, "_cdc_op", "id", "b", "_cdc_key_before", "_cdc_error") == [
        ("I", 1, b"\x00\xff", None, None),
        ("U", 2, None, {"id": 1}, None),
        ("D", 2, None, None, None),
        ("T", None, None, None, None),
    ]
    assert values(found, "_cdc_transaction") == [("740",), (None,), (None,), (None,)]
    assert tables(spark, "trigger_audit", messages) == ["public.t"] * 4


def test_trigger_audit_rows_of_a_table_made_by_hand(spark):
    """The audit table of the database that tests/cases/postgres was captured from."""
    about = {"txid": 740, "at": "2024-01-02T03:04:05Z", "tbl": "t"}
    messages = [
        {"seq": 1, **about, "op": "I", "old_row": None, "new_row": {"id": 1, "b": "\\x00ff"}},
        {"seq": 2, **about, "op": "U", "old_row": {"id": 1, "b": None}, "new_row": {"id": 2, "b": None}},
        {"seq": 3, **about, "op": "D", "old_row": {"id": 2, "b": None}, "new_row": None},
        {"seq": 4, **about, "op": "T", "old_row": None, "new_row": None},
    ]
    found = staged(spark, "trigger_audit", messages, {"id": "int", "b": "binary"})
    assert values(found, "_cdc_op", "id", "b", "_cdc_key_before", "_cdc_error") == [
        ("I", 1, b"\x00\xff", None, None),
        ("U", 2, None, {"id": 1}, None),
        ("D", 2, None, None, None),
        ("T", None, None, None, None),
    ]
    assert values(found, "_cdc_transaction") == [("740",)] * 4
    assert tables(spark, "trigger_audit", messages) == ["t"] * 4


# --------------------------------------------------------------------------------
# change_event


def test_change_event_each_event_tells_what_it_tells(spark):
    messages = [
        {"changeType": "I", "timestamp": 1000, "columnNames": ["id", "v"], "columnValues": [1, "a"]},
        {
            "changeType": "update",
            "timestamp": "1970-01-01T00:00:02Z",
            "columnNames": ["id"],
            "columnValues": [2],
            "oldKeyNames": ["id"],
            "oldKeyValues": [1],
        },
        {"changeType": "D", "timestamp": 3000, "oldKeyNames": ["id"], "oldKeyValues": [2]},
    ]
    found = staged(spark, "change_event", messages, {"id": "int", "v": "string"})
    assert values(found, "_cdc_op", "id", "v", "_cdc_missing", "_cdc_key_before", "_cdc_error") == [
        ("I", 1, "a", [], None, None),
        ("U", 2, None, ["v"], {"id": 1}, None),
        ("D", 2, None, [], None, None),
    ]
    assert [row["_cdc_occurred_at"].second for row in found] == [1, 2, 3]
