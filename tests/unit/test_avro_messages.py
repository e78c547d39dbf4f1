"""Records of Avro files as messages, without Spark."""

from __future__ import annotations

import io
import json

import fastavro

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
