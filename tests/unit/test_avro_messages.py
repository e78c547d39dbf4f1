"""Records of Avro files as messages, without Spark."""

from __future__ import annotations

import io
import json

import fastavro
from pyspark.sql import types as T

from dbt.adapters.sparkdelta import avro_files
from dbt.adapters.sparkdelta.avro_messages import messages


def test_moments_of_nanoseconds_are_told_to_the_microsecond() -> None:
    kinds = {"at": "timestamp-nanos", "wall": "local-timestamp-nanos", "old": "timestamp-nanos"}
    fields = [{"name": name, "type": ["null", {"type": "long", "logicalType": kind}]} for name, kind in kinds.items()]
    file = io.BytesIO()
    record = {"at": 1_767_225_600_123_456_789, "wall": 1_767_225_600_123_456_789, "old": -1}
    fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [record])
    for _ in range(2):
        assert [json.loads(text) for text in messages(file.getvalue())] == [
            {"at": "2026-01-01T00:00:00.123456Z", "wall": "2026-01-01T00:00:00.123456", "old": "1969-12-31T23:59:59.999999Z"}
        ]


def test_a_uuid_is_the_text_that_was_written() -> None:
    rows = [{"id": "7B5B5B6C-6D7E-4C6C-9D53-0D7C4A2F6F7A"}, {"id": "none"}]
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": {"type": "string", "logicalType": "uuid"}}]}
    file = io.BytesIO()
    fastavro.writer(file, schema, rows)
    assert [json.loads(text) for text in messages(file.getvalue())] == rows


def test_bytes_of_a_flattened_row_are_told_as_its_format_reads_them() -> None:
    file = io.BytesIO()
    fields = [{"name": "raw", "type": "bytes"}, {"name": "list", "type": {"type": "array", "items": "bytes"}}]
    fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [{"raw": b"\xca\xfe", "list": [b"\xca\xfe"]}])
    assert [json.loads(text) for text in messages(file.getvalue())] == [{"raw": "CAFE", "list": ["yv4="]}]
    assert [json.loads(text) for text in messages(file.getvalue(), base64_bytes=True)] == [{"raw": "yv4=", "list": ["yv4="]}]


def test_no_two_records_of_a_written_file_have_one_name() -> None:
    part = T.StructType([T.StructField("n", T.IntegerType())])
    columns = T.StructType([T.StructField("a_b", part), T.StructField("a", T.StructType([T.StructField("b", part)]))])
    row = {"a_b": {"n": 1}, "a": {"b": {"n": 2}}}
    file = avro_files._file(avro_files._record(columns, "row"), [row])
    assert list(fastavro.reader(io.BytesIO(file))) == [row]
