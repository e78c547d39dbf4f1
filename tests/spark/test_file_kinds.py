"""Files of CSV, Parquet, ORC and Avro as messages: nothing is lost, shifted or rounded, and a broken file is told by its name."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from dbt_common.exceptions import DbtRuntimeError
from tests.spark.test_formats import MACROS, settings

from dbt.adapters.sparkdelta import files, queries

SAMPLE = """
select 1 as id, cast('12345678901234567890123456789012345678' as decimal(38, 0)) as big,
  cast('0.00000000123456789012345678901234567891' as decimal(38, 38)) as small, timestamp'1582-01-01 01:02:03.000001Z' as at,
  timestamp_ntz'9999-12-31 23:59:59.999999' as wall, date'0001-01-01' as day, double('NaN') as no_number,
  float('-Infinity') as low, 1.0E-300D as tiny, X'00FF' as bytes, cast(null as string) as `nothing at all`, 'q"\n' as `a.b`,
  true as yes,
  named_struct('x.y', cast('0.000000001' as decimal(38, 10)), 'none', cast(null as int)) as nested, array(1.50, null) as list,
  map('k', 1.10) as pairs
"""
TYPES = {
    "id": "int", "big": "decimal(38,0)", "small": "decimal(38,38)", "at": "timestamp", "wall": "timestamp_ntz",
    "day": "date",
    "no_number": "double", "low": "float", "tiny": "double", "bytes": "binary", "nothing at all": "string", "a.b": "string",
    "yes": "boolean", "nested": "struct<`x.y`: decimal(38,10), none: int>", "list": "array<decimal(3,2)>",
    "pairs": "map<string, decimal(3,2)>",
}  # fmt: skip


def view(spark, kind: str, *paths: Path, columns: tuple[str, ...] = (), of: str = "rows", **csv_options: Any) -> None:
    """The view `kinds` of files, each a change set. of: the format."""
    sets = [{"batch_id": n, "change_set": f"file:{path}", "unit": "file"} for n, path in enumerate(paths, 1)]
    feed = {"feed": "shop", "format": of, "file_format": kind, "csv_options": csv_options, "columns": columns}
    files.create_lines_view(spark, "kinds", sets, feed)


def messages(spark, kind: str, *paths: Path, **given: Any) -> list[str]:
    """The messages in the order of arrival."""
    view(spark, kind, *paths, **given)
    rows = spark.table("kinds").orderBy("batch_id", "row_number").collect()
    assert [row.row_number for row in rows if row.batch_id == 1] == list(range(1, 1 + sum(row.batch_id == 1 for row in rows)))
    return [row.message for row in rows]


def objects(spark, kind: str, *paths: Path, **given: Any) -> list[dict[str, Any]]:
    return [json.loads(message) for message in messages(spark, kind, *paths, **given)]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def file_of(spark, kind: str, folder: Path, sql: str) -> Path:
    """One file of a query's rows."""
    spark.sql(sql).coalesce(1).write.format(kind).save(str(folder))
    (path,) = (path for path in folder.iterdir() if path.suffix == f".{kind}")
    return path


def test_lines_of_json_stay_the_text_that_they_are(spark, tmp_path):
    path = written(tmp_path / "a b+c%.jsonl.gz", gzip.compress(b'{"id": 1.0 }\n\n{"id": 2\n'))
    assert messages(spark, "json", path) == ['{"id": 1.0 }', '{"id": 2']


def test_Q1_a_message_that_is_no_UTF_8_is_quarantined_and_not_read_with_other_characters(spark, tmp_path):
    latin = b'{"id": 2, "n": "\xe9"}'
    text = b'{"id": 1, "n": "\xc3\xa9"}\n' + latin + b'\n{"id": 3, "n": "\xef\xbf\xbd"}\n'
    marked = '(not UTF-8) {"id": 2, "n": "\ufffd"}'
    assert messages(spark, "json", written(tmp_path / "1.jsonl", text)) == [
        '{"id": 1, "n": "é"}', marked, '{"id": 3, "n": "\ufffd"}',
    ]  # fmt: skip
    sql = MACROS["_staging_sql"](settings("rows", {"id": "int", "n": "string"}, sequence_by=["id"]), "kinds")
    rows = spark.sql(f"select * from ({sql}) order by _cdc_row").collect()
    assert [(row.id, row.n, row._cdc_error, row._cdc_raw) for row in rows] == [
        (1, "é", None, None), (None, None, "unparsable", marked), (3, "\ufffd", None, None),
    ]  # fmt: skip
    path = file_of(spark, "parquet", tmp_path / "2", f"select X'{latin.hex()}' as payload, 'x' as other")
    sets = [{"batch_id": 1, "change_set": f"file:{path}", "unit": "file"}]
    feed = {"feed": "f", "format": "rows", "file_format": "parquet", "columns": (), "message_column": "payload"}
    files.create_lines_view(spark, "kinds", sets, feed)
    assert [row.message for row in spark.table("kinds").collect()] == [marked]


def test_the_id_of_a_schema_before_a_message_is_no_part_of_it(spark, tmp_path):
    """https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format"""
    parts = {"key": '{"id": 1}', "value": '{"op": "d", "n": "é"}'}
    ids = [b"", b"\0\0\0\0\x0c", b"\0\0\1\x86\xa1", b"\0\0\0\2\xc3"]
    rows = [", ".join(f"X'{(each + text.encode()).hex()}' as {name}" for name, text in parts.items()) for each in ids]
    read = []
    for kind in ("binary", "string"):
        columns = ", ".join(f"cast({name} as {kind}) as {name}" for name in parts)
        sql = " union all ".join(f"select {columns} from (select {row})" for row in rows)
        path = file_of(spark, "parquet", tmp_path / kind, sql)
        sets = [{"batch_id": 1, "change_set": f"file:{path}", "unit": "file"}]
        feed = {"feed": "f", "format": "debezium", "file_format": "parquet", "columns": (), "message_column": "value"}
        files.create_lines_view(spark, "kinds", sets, feed)
        read += [json.loads(row.message) for row in spark.table("kinds").collect()]
    record = {"topic": None, "key": {"id": 1}, "headers": {}, "value": {"op": "d", "n": "é"}}
    assert read == [record] * 8


def test_csv_fields_are_text_quoted_ones_hold_newlines_and_null_differs_from_empty(spark, tmp_path):
    text = '\ufeffid,na.me, x ,A,a\n1,"l1\nl2 ""q"", z",,"",é\n\n02,NULL,"\\N"," ",\\"\n'
    assert objects(spark, "csv", written(tmp_path / "a b+c%.csv", text)) == [
        {"id": "1", "na.me": 'l1\nl2 "q", z', " x ": None, "A": "", "a": "é"},
        {"id": "02", "na.me": "NULL", " x ": "\\N", "A": " ", "a": '\\"'},
    ]


def test_a_csv_row_of_too_few_or_too_many_fields_is_its_own_text(spark, tmp_path):
    path = written(tmp_path / "a.csv", 'id,n\n1,1\n2\n3,"a\nb",c\n4,4\n')
    assert messages(spark, "csv", path) == ['{"id":"1","n":"1"}', "2", '3,"a\nb",c', '{"id":"4","n":"4"}']
    sql = MACROS["_staging_sql"](settings("rows", {"id": "int", "n": "string"}, sequence_by=["id"], file_format="csv"), "kinds")
    rows = spark.sql(f"select * from ({sql}) order by _cdc_row").collect()
    assert [(row.id, row._cdc_error, row._cdc_raw) for row in rows] == [
        (1, None, None), (None, "unparsable", "2"), (None, "unparsable", '3,"a\nb",c'), (4, None, None),
    ]  # fmt: skip


def test_csv_as_its_options_say_compressed_and_without_a_header(spark, tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="iso-8859-1") as file:
        file.write("9;'é;'\n10;\\N\n")
    path = tmp_path / "a.csv.gz"
    options = {"sep": ";", "quote": "'", "nullValue": "\\N", "encoding": "iso-8859-1", "header": False}
    assert objects(spark, "csv", path, columns=("id", "n"), **options) == [{"id": "9", "n": "é;"}, {"id": "10", "n": None}]
    assert objects(spark, "csv", written(tmp_path / "none.csv", ""), columns=("id", "n"), header=False) == []
    quotes = written(tmp_path / "quotes.csv", "id,size\n1,'5\"'\n2,'it''s'\n")  # a quote of one's own is doubled, too
    assert objects(spark, "csv", quotes, quote="'") == [{"id": "1", "size": '5"'}, {"id": "2", "size": "it's"}]


def test_files_of_one_load_have_columns_of_their_own_in_the_order_of_the_paths(spark, tmp_path):
    one, two = written(tmp_path / "1.csv", "id,a\n1,x\n2,y\n"), written(tmp_path / "2.csv", "b,id\nz,3\n")
    three = written(tmp_path / "3.csv", "id,a\n4,\n")
    expected = [{"id": "1", "a": "x"}, {"id": "2", "a": "y"}, {"b": "z", "id": "3"}, {"id": "4", "a": None}]
    assert objects(spark, "csv", one, two, three) == expected
    folder = {"batch_id": 1, "change_set": f"file:{tmp_path}", "unit": "folder"}
    files.create_lines_view(spark, "kinds", [folder], {"feed": "f", "file_format": "csv", "csv_options": {}, "columns": ()})
    rows = spark.table("kinds").orderBy("row_number").collect()
    assert [(row.row_number, json.loads(row.message)) for row in rows] == list(enumerate(expected, 1))

    narrow = file_of(spark, "parquet", tmp_path / "narrow", "select id from range(3)")
    wide = file_of(spark, "parquet", tmp_path / "wide", "select 'n' as id, 1 as more")
    assert objects(spark, "parquet", narrow, wide) == [{"id": 0}, {"id": 1}, {"id": 2}, {"id": "n", "more": 1}]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_typed_values_come_back_as_they_were(spark, tmp_path, kind):
    path = file_of(spark, kind, tmp_path / "t", SAMPLE)
    view(spark, kind, path)
    table = settings("rows", TYPES, sequence_by=["id"], file_format=kind)
    (row,) = spark.sql(MACROS["_staging_sql"](table, "kinds")).collect()
    (source,) = spark.read.format(kind).load(str(path)).collect()
    assert row._cdc_error is None
    assert row._cdc_undeclared is None
    assert [repr(row[name]) for name in TYPES] == [repr(source[name]) for name in TYPES]
    assert row.big == Decimal("12345678901234567890123456789012345678")
    assert row.small == Decimal("0.00000000123456789012345678901234567891")
    assert row.bytes == b"\x00\xff"
    assert row.wall == dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    assert row["nothing at all"] is None
    assert '"nothing at all":null' in messages(spark, kind, path)[0]


AVRO = {
    "type": "record", "name": "shop.Change", "fields": [
        {"name": "id", "type": "long"},
        {"name": "big", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "wall", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "no_number", "type": "double"}, {"name": "tiny", "type": "double"}, {"name": "bytes", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["I", "D"]}},
        {"name": "nothing", "type": ["null", "string"]},
        {"name": "nested", "type": {"type": "record", "name": "N", "fields": [
            {"name": "n", "type": ["null", "double"]}, {"name": "b", "type": "bytes"}]}},
        {"name": "list", "type": {"type": "array", "items": ["null", "double"]}},
        {"name": "pairs", "type": {"type": "map", "values": "string"}},
    ],
}  # fmt: skip
RECORD: dict[str, Any] = {
    "id": 2**62 + 1, "big": Decimal("1234567890123456789012345678.0123456789"),
    "at": dt.datetime(1582, 1, 1, 1, 2, 3, 1, tzinfo=dt.timezone.utc), "wall": dt.datetime(9999, 12, 31, 23, 59, 59, 999000),
    "day": dt.date(1, 1, 1), "no_number": float("nan"), "tiny": 1e-300, "bytes": b"\x00\xff", "kind": "I", "nothing": None,
    "nested": {"n": 0.1, "b": b"\x00"}, "list": [1.5, None, float("nan"), float("inf"), -float("inf")], "pairs": {"k": "v"},
}  # fmt: skip
AVRO_TYPES = {
    "id": "bigint", "big": "decimal(38,10)", "at": "timestamp", "wall": "timestamp_ntz", "day": "date", "no_number": "double",
    "tiny": "double", "bytes": "binary", "kind": "string", "nothing": "string", "nested": "struct<n: double, b: binary>",
    "list": "array<double>", "pairs": "map<string, string>",
}  # fmt: skip


def avro(path: Path, *records: dict[str, Any], codec: str = "deflate") -> Path:
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, records, codec=codec)
    return path


def test_avro_values_come_back_as_they_were(spark, tmp_path):
    path = avro(tmp_path / "a b+c%.avro", RECORD)
    view(spark, "avro", path)
    table = settings("rows", AVRO_TYPES, sequence_by=["id"], file_format="avro")
    (row,) = spark.sql(MACROS["_staging_sql"](table, "kinds")).collect()
    assert (row._cdc_error, row._cdc_undeclared, list(row._cdc_missing)) == (None, None, [])
    found = {name: row[name].asDict() if name == "nested" else row[name] for name in AVRO_TYPES}
    expected = RECORD | {"at": found["at"]}  # collect() gives local time, which 1582 has no offset for
    assert repr(found) == repr(expected)
    assert '"at": "1582-01-01T01:02:03.000001Z"' in messages(spark, "avro", path)[0]


def test_avro_files_that_are_written_hold_the_rows(spark, tmp_path):
    sql = """
      select 1L as id, cast('-2345678901234567890123456789.0123456789' as decimal(38, 10)) as big, cast(7 as tinyint) as tiny,
        timestamp'0001-01-01 00:00:00.000001Z' as at, timestamp_ntz'9999-12-31 23:59:59.999999' as wall, date'1582-10-04' as day,
        double('NaN') as no_number, float(0.5) as low, X'00FF' as bytes, 'q"\n' as text, true as yes,
        named_struct('day', date'1970-01-02', 'parts', array(named_struct('n', cast(1.5 as decimal(5, 2))), null)) as nested,
        map('k', timestamp'1970-01-01 00:00:01Z') as moments
      union all select 2, null, null, null, null, null, null, null, null, null, null, null, null"""
    assert files.write_files(spark, sql, f"{tmp_path}/out", "avro") == {"folder": f"{tmp_path}/out", "rows": 2}
    names = sorted(path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith("."))
    assert names == ["_SUCCESS", *(f"part-{number:05d}.avro" for number in range(len(names) - 1))]
    described, rows = {}, []
    for name in names[1:]:
        with (tmp_path / "out" / name).open("rb") as file:
            reader = fastavro.reader(file)
            described = {each["name"]: each["type"][1] for each in reader.writer_schema["fields"]}
            rows += [row for row in reader]
    first, second = sorted(rows, key=lambda row: row["id"])
    assert set(second.items()) == {("id", 2), *((name, None) for name in described if name != "id")}
    assert str(first.pop("no_number")) == "nan"
    assert first == {
        "id": 1, "big": Decimal("-2345678901234567890123456789.0123456789"), "tiny": 7, "low": 0.5, "bytes": b"\x00\xff",
        "at": dt.datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=dt.timezone.utc), "wall": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "day": dt.date(1582, 10, 4), "text": 'q"\n', "yes": True,
        "nested": {"day": dt.date(1970, 1, 2), "parts": [{"n": Decimal("1.50")}, None]},
        "moments": {"k": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.timezone.utc)},
    }  # fmt: skip
    assert described["wall"] == {"type": "long", "logicalType": "local-timestamp-micros"}
    with pytest.raises(DbtRuntimeError, match="is there already"):
        files.write_files(spark, sql, f"{tmp_path}/out", "avro")


def test_a_time_without_a_zone_is_written_as_it_is_where_the_clock_of_the_session_is_put_back(spark, tmp_path):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    files.write_files(session, "select timestamp_ntz'2026-10-25 01:30:00' as wall", f"{tmp_path}/out", "avro")
    with (tmp_path / "out" / "part-00000.avro").open("rb") as file:
        assert list(fastavro.reader(file)) == [{"wall": dt.datetime(2026, 10, 25, 1, 30)}]


def test_avro_of_no_rows_tells_the_columns_and_what_avro_cannot_name_is_refused(spark, tmp_path):
    files.write_files(spark, "select 1 as id where false", f"{tmp_path}/none", "avro")
    with (tmp_path / "none" / "part-00000.avro").open("rb") as file:
        reader = fastavro.reader(file)
        assert [each["name"] for each in reader.writer_schema["fields"]] == ["id"]
        assert list(reader) == []
    for sql, wants in (
        ("select 1 as `a b`, 2 as `1st`", "Avro has no names like `a b`, `1st`: letters, digits and _"),
        ("select named_struct('m', map(1, 'a')) as s", "column s.m: Avro has no type for map<int,string>. Take another format."),
    ):
        with pytest.raises(DbtRuntimeError, match=wants):
            files.write_files(spark, sql, f"{tmp_path}/refused", "avro")
    assert not (tmp_path / "refused").exists()


def test_avro_records_keep_their_order_over_files_and_blocks(spark, tmp_path):
    one = avro(tmp_path / "1.avro", *(RECORD | {"id": n} for n in range(3000)), codec="null")
    two = avro(tmp_path / "2.avro", *(RECORD | {"id": n} for n in range(3000, 3010)))
    assert [each["id"] for each in objects(spark, "avro", one, two)] == list(range(3010))


def test_rows_of_a_parquet_file_of_several_splits_keep_its_order(spark, tmp_path):
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    sql = "select id, repeat(uuid(), 30) as filler from range(0, 20000, 1, 1)"
    path = next(p for p in _with_small_row_groups(spark, tmp_path / "p", sql).iterdir() if p.suffix == ".parquet")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1m")
    try:
        view(spark, "parquet", path)
        assert spark.read.parquet(str(path)).rdd.getNumPartitions() > 2
        wrong = spark.sql("select count(*) as n from kinds where get_json_object(message, '$.id') <> row_number - 1")
        assert (wrong.head().n, spark.table("kinds").count()) == (0, 20000)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def _with_small_row_groups(spark, folder: Path, sql: str) -> Path:
    spark.sql(sql).write.option("parquet.block.size", str(1 << 20)).option("compression", "none").parquet(str(folder))
    return folder


@pytest.mark.parametrize(
    ("kind", "name", "content", "reason"),
    [
        ("parquet", "a.parquet", b"", "is not a Parquet file"),
        ("parquet", "a.parquet", b"id,n\n1,2\n", "is not a Parquet file"),
        ("orc", "a.orc", b"", "Unable to infer schema"),
        ("orc", "a.orc", b"PAR1 and more than an ORC file has at its end", "Malformed ORC file"),
        ("csv", "a.csv", b"", "it is empty, without a header"),
        ("csv", "a.csv", b"PAR1\x15\x04\x15\x10\x00,\n", "its first line is no text"),
        ("csv", "a.csv", b"id,n,id\n1,2,3\n", "its header names `id` twice"),
        ("csv", "a.csv.gz", b"id,n\n1,2\n", "Unexpected end of input stream"),
        ("avro", "a.avro", b"", "it is empty"),
        ("avro", "a.avro", b"id,n\n1,2\n", "cannot read header - is it an avro file?"),
    ],
)
def test_S4_a_file_that_is_not_of_its_kind_is_told(spark, tmp_path, kind, name, content, reason):
    path = written(tmp_path / name, content)
    with pytest.raises(DbtRuntimeError) as told:
        view(spark, kind, path)
    text = str(told.value.msg)
    assert text.startswith(f"feed shop, file file:{path}: `file_format` is {kind}, and no ")
    assert reason in text
    assert "run again" in text


def test_S4_an_avro_file_that_is_cut_off_or_has_no_records_is_told(spark, tmp_path):
    whole = avro(tmp_path / "a.avro", RECORD).read_bytes()
    with pytest.raises(DbtRuntimeError, match=r"feed shop, file file:.*/cut\.avro: .*no Avro file can be read there: \S"):
        view(spark, "avro", tmp_path / "a.avro", written(tmp_path / "cut.avro", whole[:-30]))
    with (tmp_path / "numbers.avro").open("wb") as file:
        fastavro.writer(file, "long", [1, 2])
    with pytest.raises(DbtRuntimeError, match=r"numbers\.avro: .*its schema is no record"):
        view(spark, "avro", tmp_path / "numbers.avro")


def test_S4_a_file_that_is_cut_off_is_told(spark, tmp_path):
    whole = file_of(spark, "parquet", tmp_path / "p", "select * from range(9)").read_bytes()
    with pytest.raises(DbtRuntimeError, match=r"feed shop, file file:.*/cut\[1\].parquet: .*is not a Parquet file"):
        view(spark, "parquet", written(tmp_path / "cut[1].parquet", whole[:-7]))
    rows = "id,n\n" + "".join(f"{n},{n * 7919 % 65521}\n" for n in range(300_000))  # more than Spark reads for the header
    path = written(tmp_path / "cut.csv.gz", gzip.compress(rows.encode())[:-9])
    with pytest.raises(DbtRuntimeError, match=r"cut\.csv\.gz") as told:
        view(spark, "csv", path)  # its lines are counted
    assert "The file is cut off" in str(told.value.msg)
    lines = "".join(json.dumps({"id": n}) + "\n" for n in range(300_000))
    path = written(tmp_path / "cut.json.gz", gzip.compress(lines.encode())[:-9])
    sets = [{"change_set": f"file:{path}", "batch_id": 1, "unit": "file", "size": path.stat().st_size}]
    files.create_lines_view(spark, "kinds", sets, {"feed": "shop", "format": "rows", "file_format": "json"})  # one task reads it
    with pytest.raises(DbtRuntimeError, match=r"cut\.json\.gz") as told:
        queries.query_rows(spark, "select max(message) from kinds")
    assert "The file is cut off" in str(told.value.msg)


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_an_envelope_of_debezium_may_be_the_columns_of_a_file(spark, tmp_path, kind):
    columns = {"id": "int", "amount": "decimal(38,9)", "at": "timestamp", "day": "date", "raw": "binary", "tags": "array<string>"}
    row = {
        "id": 1, "amount": Decimal("12345678901234567890123456789.123456789"),
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone.utc), "day": dt.date(2026, 1, 2), "raw": b"\x00\xff",
        "tags": ["a", "b"],
    }  # fmt: skip
    source = {"schema": "public", "table": "t", "lsn": 5, "txId": 7, "ts_ms": 1000}
    envelope = {"before": {**row, "id": 2}, "after": row, "source": source, "op": "u", "ts_ms": 1001}
    if kind == "avro":
        path = tmp_path / "a.avro"
        fields = [
            {"name": "id", "type": "int"},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "raw", "type": "bytes"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ]
        texts = [{"name": name, "type": "string"} for name in ("schema", "table")]
        numbers = [{"name": name, "type": "long"} for name in ("lsn", "txId", "ts_ms")]
        schema = {"type": "record", "name": "Envelope", "fields": [
            {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": fields}]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": {"type": "record", "name": "Source", "fields": [*texts, *numbers]}},
            {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"]},
        ]}  # fmt: skip
        with path.open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(schema), [envelope])
    else:
        image = "struct<" + ", ".join(f"{name}: {of}" for name, of in columns.items()) + ">"
        of_source = "struct<schema: string, table: string, lsn: bigint, txId: bigint, ts_ms: bigint>"
        frame = spark.createDataFrame([envelope], f"before {image}, after {image}, source {of_source}, op string, ts_ms bigint")
        frame.coalesce(1).write.format(kind).save(str(tmp_path / "files"))
        (path,) = (found for found in (tmp_path / "files").iterdir() if found.suffix == f".{kind}")
    view(spark, kind, path)
    given = settings("debezium", columns, keys=["id"], file_format=kind, decimal_handling="string")
    (staged,) = spark.sql(MACROS["_staging_sql"](given, "kinds")).collect()
    assert (staged._cdc_error, staged._cdc_op, staged._cdc_key_before.id) == (None, "U", 2)
    at = staged["at"].astimezone(dt.timezone.utc)
    assert {**{name: staged[name] for name in columns}, "at": at, "raw": bytes(staged.raw)} == row
    (named,) = spark.sql(MACROS["format_tables"]("kinds", given)).collect()
    assert named.source_table == "public.t"


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_flattened_row_of_debezium_may_be_the_columns_of_a_file(spark, tmp_path, kind):
    row = {"id": 1, "raw": b"\xca\xfe", "__op": "c", "__lsn": 5}
    if kind == "avro":
        path = tmp_path / "a.avro"
        types = {"id": "int", "raw": "bytes", "__op": "string", "__lsn": "long"}
        fields = [{"name": name, "type": type_} for name, type_ in types.items()]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, [row])
    else:
        path = file_of(spark, kind, tmp_path / "files", "select 1 as id, X'CAFE' as raw, 'c' as __op, 5L as __lsn")
    view(spark, kind, path, of="debezium")
    given = settings("debezium", {"id": "int", "raw": "binary"}, keys=["id"], file_format=kind)
    (staged,) = spark.sql(MACROS["_staging_sql"](given, "kinds")).collect()
    assert (staged._cdc_error, staged._cdc_op, bytes(staged.raw)) == (None, "I", b"\xca\xfe")


@pytest.mark.parametrize("how", ["in one task", "by a window", "in pieces"])
def test_lines_have_the_same_numbers_however_they_are_read(spark, tmp_path, monkeypatch, how):
    """A line's number says which row it was, and decides between rows that are equal in order."""
    lines = [f'{{"id": {number}}}' if number % 7 else "  " for number in range(30_000)]
    path = written(tmp_path / "1.jsonl", "\n".join(lines))
    if how == "in pieces":
        monkeypatch.setattr(files, "_is_one_task", lambda *_: False)
        spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    size = None if how == "by a window" else path.stat().st_size
    try:
        change_set = {"batch_id": 3, "change_set": f"file:{path}", "unit": "file", "size": size}
        files.create_lines_view(spark, "kinds", [change_set], {"file_format": "json"})
        found = [(row.row_number, row.message) for row in spark.table("kinds").orderBy("row_number").collect()]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found == list(enumerate((line for line in lines if line.strip()), 1))


@pytest.mark.parametrize(
    ("settings", "one"), [({}, True), ({"openCostInBytes": "999"}, False), ({"maxPartitionBytes": "999"}, False)]
)
def test_a_file_is_read_in_one_piece_up_to_what_spark_is_set_to(spark, settings, one):
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(f"spark.sql.files.{name}", value)
    assert files._is_one_task(session, 1000) is one
    assert not files._is_one_task(session, 5 << 20)
    assert not files._is_one_task(session, None)


def test_lines_of_json_to_compare_with_keep_all_digits(spark, tmp_path):
    text = '{"big": 12345678901234567890.123456789012345678, "a.b": null}\n\nno json\n{"s": {"b": 1}}\n'
    path = written(tmp_path / "a.jsonl", text)
    frame = files.other(spark, str(path), "json")
    assert frame.columns == ["a.b", "big", "s"]
    struct = "try_cast(s as struct<a:int,b:int>) as s"
    told = frame.selectExpr("try_cast(big as decimal(38,18)) as big", "`a.b` is null as no", struct)
    assert [tuple(row.asDict(recursive=True).values()) for row in told.collect()] == [
        (Decimal("12345678901234567890.123456789012345678"), True, None), (None, True, None), (None, True, {"a": None, "b": 1}),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_one_column_of_a_file_may_be_the_message(spark, tmp_path, kind):
    sql = """select id, if(id = 1, null, cast(concat('{"id": ', id, '}') as binary)) as value from range(3)"""
    path = file_of(spark, kind, tmp_path / kind, sql)
    sets = [{"batch_id": 1, "change_set": f"file:{path}", "unit": "file"}]
    feed = {"feed": "shop", "format": "maxwell", "file_format": kind, "csv_options": {}, "columns": (), "message_column": "value"}
    files.create_lines_view(spark, "kinds", sets, feed)
    assert [(row.row_number, row.message) for row in spark.table("kinds").orderBy("row_number").collect()] == [
        (1, '{"id": 0}'), (2, '{"id": 2}'),
    ]  # fmt: skip
    with pytest.raises(DbtRuntimeError, match=r"feed shop, .*: `message_column` is `payload`, and its columns are id, value\."):
        files.create_lines_view(spark, "kinds", sets, feed | {"message_column": "payload"})


def test_a_moment_in_an_avro_file_that_nothing_can_hold_is_a_value_of_its_row(spark, tmp_path):
    fields = [
        {"name": "id", "type": "int"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    ]
    far = {"id": 2, "at": 300_000_000_000_000_000, "day": 10_000_000}  # fastavro writes numbers as they are
    near = {"id": 1, "at": dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc), "day": dt.date(2026, 1, 2)}
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema({"type": "record", "name": "r", "fields": fields}), [far, near])
    view(spark, "avro", path)
    columns = {"id": "int", "at": "timestamp", "day": "date"}
    sql = MACROS["_staging_sql"](settings("rows", columns, keys=["id"], sequence_by=["id"], file_format="avro"), "kinds")
    rows = spark.sql(f"select id, day, _cdc_error from ({sql}) order by _cdc_row").collect()
    assert [(row.id, row.day, row._cdc_error) for row in rows] == [(2, None, "cast:at"), (1, dt.date(2026, 1, 2), None)]


def test_texts_of_a_csv_file_that_was_written_come_back_as_they_were(spark: Any, tmp_path: Path) -> None:
    texts = ["", None, " a ", "\t", "a\nb", 'said "no"', "back\\slash", "a,b", "ä", "null", "\\N"]
    spark.createDataFrame(list(enumerate(texts)), "id int, text string").createOrReplaceTempView("texts_to_write")
    sql = "select *, if(id > 0, cast(text as binary), null) as bytes from texts_to_write"
    for kind in ("csv", "json"):
        written = files.write_files(spark, sql, f"{tmp_path}/{kind}", kind)
        assert written["rows"] == len(texts)
        read = files.other(spark, f"{tmp_path}/{kind}", kind)  # JSON's values are variants
        found = read.selectExpr("int(id) as id", "string(text) as text", "string(bytes) as bytes").orderBy("id").collect()
        assert [row["text"] for row in found] == texts
        assert [row["bytes"] for row in found] == [None, *(text and "\\x" + text.encode().hex() for text in texts[1:])]
