"""Messages with a schema in a registry, without Spark: a server of this test stands for the registry."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import socket
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from tests.services.registry import RegistryServer, framed

from dbt.adapters.sparkdelta import schema_registry
from dbt.adapters.sparkdelta.database import Environment
from dbt.adapters.sparkdelta.schema_registry import Registry, RegistryError, as_json

# Types as Connect's AvroConverter writes them for Debezium's (AvroData of confluentinc/schema-registry, Apache-2.0).
VALUE = {
    "type": "record", "name": "Value", "connect.name": "shop.public.invoice.Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "kind", "type": {"type": "int", "connect.type": "int16"}, "default": 1},
        {"name": "total", "type": ["null", {
            "type": "bytes", "scale": 2, "precision": 10, "connect.version": 1, "logicalType": "decimal",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
            "connect.name": "org.apache.kafka.connect.data.Decimal",
        }], "default": None},
        {"name": "due", "type": {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}},
        {"name": "at", "type": {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}},
        {"name": "photo", "type": ["null", "bytes"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "rate", "type": "double"},
    ],
}  # fmt: skip
ENVELOPE = {
    "type": "record", "name": "Envelope", "namespace": "shop.public.invoice", "connect.name": "shop.public.invoice.Envelope",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "more", "type": {"type": "map", "values": "long"}},
    ],
}  # fmt: skip
ROW: dict[str, Any] = {
    "id": 7, "kind": 2, "total": Decimal("24.90"), "due": 20_455, "at": 1_767_261_600_000_001, "photo": b"\xca\xfe",
    "tags": ["ä", None], "rate": float("nan"),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


def told(server: RegistryServer, schema: Any, value: Any, message_format: str = "debezium", **registered: Any) -> str:
    data = framed(server.register(schema, **registered), schema, value)
    text = as_json(data, registry=Registry(server.url), message_format=message_format)
    assert text is not None
    return text


def test_debezium_is_told_as_json_converter_writes_it(server: RegistryServer) -> None:
    envelope = {"before": None, "after": ROW, "op": "c", "more": {"n": 2**60}}
    message = json.loads(told(server, ENVELOPE, envelope))
    assert message["payload"] == {
        "before": None,
        "after": {
            **{"id": 7, "kind": 2, "total": "Cbo=", "due": 20_455, "at": 1_767_261_600_000_001},
            **{"photo": "yv4=", "tags": ["ä", None], "rate": "NaN"},
        },
        "op": "c",
        "more": {"n": 2**60},
    }
    before, after, op, more = message["schema"]["fields"]
    assert {**before, "field": "after"} == after
    assert after["name"] == "shop.public.invoice.Value"
    assert after["optional"] is True
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    decimal = {"name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    assert after["fields"] == [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": "int16", "optional": False, "field": "kind"},
        {"type": "bytes", "optional": True, **decimal, "field": "total"},
        {"type": "int32", "optional": False, "name": "io.debezium.time.Date", "field": "due"},
        {"type": "int64", "optional": False, "name": "io.debezium.time.MicroTimestamp", "field": "at"},
        {"type": "bytes", "optional": True, "field": "photo"},
        {"type": "array", "optional": False, "items": {"type": "string", "optional": True}, "field": "tags"},
        {"type": "double", "optional": False, "field": "rate"},
    ]  # fmt: skip
    assert op == {"type": "string", "optional": False, "field": "op"}
    assert more["values"] == {"type": "int64", "optional": False}


def test_logical_types_without_connects_name_have_it(server: RegistryServer) -> None:
    kinds = {"day": "int date", "ms": "long timestamp-millis", "us": "long timestamp-micros", "who": "string uuid"}
    kinds |= {"local_ms": "long local-timestamp-millis", "local_us": "long local-timestamp-micros"}  # Flink's TIMESTAMP
    fields: list[dict[str, Any]] = []
    for name, (kind, logical) in ((name, told.split()) for name, told in kinds.items()):
        fields.append({"name": name, "type": {"type": kind, "logicalType": logical}})
    fields.append({"name": "n", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}})
    at = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    who = "7b5b5b6c-6d7e-4c6c-9d53-0d7c4a2f6f7a"
    local = at.replace(tzinfo=None)
    row = {"day": dt.date(2026, 1, 1), "ms": at, "us": at, "who": who, "local_ms": local, "local_us": local, "n": Decimal("1.5")}
    message = json.loads(told(server, {"type": "record", "name": "k", "fields": fields}, row))
    us = 1_767_225_600_000_000
    assert message["payload"] == {
        **{"day": 20_454, "ms": us // 1000, "us": us, "who": who, "local_ms": us // 1000, "local_us": us},
        "n": base64.b64encode(b"\x0f").decode(),
    }
    assert [each.get("name") for each in message["schema"]["fields"]] == [
        "org.apache.kafka.connect.data.Date",
        "org.apache.kafka.connect.data.Timestamp",
        "io.debezium.time.MicroTimestamp",
        None,
        "io.debezium.time.Timestamp",
        "io.debezium.time.MicroTimestamp",
        "org.apache.kafka.connect.data.Decimal",
    ]
    assert message["schema"]["fields"][-1]["parameters"] == {"scale": "1"}


def test_other_formats_have_a_row_as_avro_files_tell_it(server: RegistryServer) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "raw", "type": "bytes"},
    ]
    row = {"id": 1, "total": Decimal("24.90"), "at": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), "raw": b"\xca\xfe"}
    schema = {"type": "record", "name": "row", "fields": fields}
    wanted = {"id": 1, "total": "24.90", "at": "2026-01-01T00:00:00.000000Z"}
    assert json.loads(told(server, schema, row, "rows")) == {**wanted, "raw": "0xcafe"}
    assert json.loads(told(server, schema, row, "goldengate")) == {**wanted, "raw": "yv4="}
    assert told(server, "string", "a key", "rows") == "a key"
    assert told(server, "long", 7, "rows") == "7"
    assert json.loads(told(server, "long", 7)) == {"schema": {"type": "int64", "optional": False}, "payload": 7}


@pytest.mark.parametrize(
    ("kind", "unscaled", "wanted"),
    [
        ({"precision": 4, "scale": 2}, 123456789, "1234567.89"),  # more digits than the schema has
        ({"precision": 64, "scale": 2}, -(10**70) - 1, f"-1{'0' * 68}.01"),
        ({"scale": 2}, 1, "0.01"),
        ({"precision": 64, "scale": 127}, 25 * 10**126, "2.5" + "0" * 126),  # Oracle's NUMBER, by a connector of JDBC
        ({"precision": 5, "scale": -2}, 25, "2500"),
        ({}, 0, "0"),
    ],
)
def test_a_decimal_has_all_its_digits(server: RegistryServer, kind: dict[str, int], unscaled: int, wanted: str) -> None:
    number = server.register({"type": "bytes", "logicalType": "decimal", **kind})
    data = io.BytesIO()
    fastavro.schemaless_writer(data, "bytes", unscaled.to_bytes(64, "big", signed=True))
    part = framed(number) + data.getvalue()
    assert as_json(part, registry=Registry(server.url), message_format="rows") == f'"{wanted}"'


def test_a_float_of_32_bits_has_the_digits_that_java_writes(server: RegistryServer) -> None:
    kinds = ["float", ["null", "float"], {"type": "float", "connect.doc": "x"}, {"type": "array", "items": ["null", "float"]}]
    kinds.append({"type": "map", "values": "float"})
    fields = [{"name": f"f{place}", "type": kind} for place, kind in enumerate(kinds)]
    row: dict[str, Any] = {"f0": 0.1, "f1": 3.4028235e38, "f2": -16777216.0, "f3": [1 / 3, float("nan")], "f4": {"x": 5.5}}
    message = json.loads(told(server, {"type": "record", "name": "row", "fields": fields}, row))
    assert message["payload"] == row | {"f3": [0.33333334, "NaN"]}
    assert [each["type"] for each in message["schema"]["fields"]] == ["float", "float", "float", "array", "map"]


@pytest.mark.parametrize("message_format", ["rows", "debezium"])
def test_defaults_are_not_asked_for(server: RegistryServer, message_format: str) -> None:
    # a whole number is a default of a double to Avro's own library
    fields = [{"name": "rate", "type": {"type": "double", "doc": "%"}, "default": 0}]
    part = framed(server.register({"type": "record", "name": "row", "fields": fields})) + bytes(8)
    assert '"rate": ' in (as_json(part, registry=Registry(server.url), message_format=message_format) or "")


def test_a_schema_may_refer_to_others_and_to_itself(server: RegistryServer) -> None:
    address = {"type": "record", "name": "shop.Address", "fields": [{"name": "town", "type": "string"}]}
    server.register(address, subject="shop/address", version=3)
    node = {"name": "next", "type": ["null", "shop.Person"]}
    fields = [{"name": "home", "type": "shop.Address"}, {"name": "work", "type": "shop.Address"}, node]
    person = {"type": "record", "name": "shop.Person", "fields": fields}
    number = server.register(person, references=[{"name": "shop.Address", "subject": "shop/address", "version": 3}])
    value = {"home": {"town": "Ulm"}, "work": {"town": "Bonn"}, "next": None}
    data = io.BytesIO()
    names: dict[str, Any] = {}
    fastavro.parse_schema(address, named_schemas=names)
    fastavro.schemaless_writer(data, fastavro.parse_schema(person, named_schemas=names), value)
    part = framed(number) + data.getvalue()
    message = json.loads(as_json(part, registry=Registry(server.url), message_format="debezium") or "")
    assert message["payload"] == value
    assert [each["type"] for each in message["schema"]["fields"]] == ["struct"] * 3
    assert message["schema"]["fields"][1]["fields"][0]["field"] == "town"


def test_a_schema_may_be_nothing_but_references(server: RegistryServer) -> None:
    def reference(name: str) -> dict[str, Any]:
        return {"name": f"shop.{name}", "subject": name, "version": 1}

    fields = [{"name": "n", "type": "int"}]
    server.register({"type": "record", "name": "shop.Price", "fields": fields}, subject="Price")
    for name in ("Made", "Paid"):  # both refer to a third
        fields = [{"name": "price", "type": "shop.Price"}]
        server.register(
            {"type": "record", "name": f"shop.{name}", "fields": fields}, subject=name, references=[reference("Price")]
        )
    references = [reference("Made"), reference("Paid")]
    a_row = {"price": {"n": 1}}
    cases: tuple[tuple[Any, bytes, Any], ...] = (
        (["shop.Made", "shop.Paid"], b"\x02\x02", a_row),  # events of several types in one topic
        ("shop.Paid", b"\x02", a_row),
        ({"type": "array", "items": "shop.Made"}, b"\x02\x02\x00", [a_row]),
    )
    for schema, data, wanted in cases:
        part = framed(server.register(schema, references=references)) + data
        for message_format in ("rows", "debezium"):
            message = json.loads(as_json(part, registry=Registry(server.url), message_format=message_format) or "")
            assert (message["payload"] if message_format == "debezium" else message) == wanted


def test_what_is_no_avro_is_left_or_marked(server: RegistryServer) -> None:
    registry = Registry(server.url)
    number = server.register("long")
    of_json_schema = framed(server.register({}, kind="JSON")) + b'{"id": 1}'
    a_long = (7).to_bytes(8, "big")  # as Kafka's LongSerializer writes keys
    for plain in (None, b"", b'{"id": 1}', of_json_schema, a_long):
        assert as_json(plain, registry=registry, message_format="debezium") is None
    nested = server.register({"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]})
    deep = framed(nested) + b"\x02" * 3000 + b"\x00"
    for message_format in ("rows", "debezium"):
        text = as_json(deep, registry=registry, message_format=message_format) or ""
        assert text.startswith(f"(no Avro of schema {nested}: maximum recursion depth exceeded")
    short, long = framed(number), framed(number) + b"\x02\x02"
    for part, reason in ((short, "EOFError"), (long, "1 bytes are left over")):
        marked = f"(no Avro of schema {number}: {reason}) {base64.b64encode(part).decode()}"
        assert as_json(part, registry=registry, message_format="debezium") == marked


def test_what_the_registry_does_not_tell_is_an_error(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(registry: Registry, part: bytes) -> str:
        with pytest.raises(RegistryError) as failed:
            as_json(part, registry=registry, message_format="debezium")
        return str(failed.value)

    assert why(Registry(server.url), framed(999) + b"\x02") == (
        f'{server.url}/schemas/ids/999 answers 404: {{"error_code": 40403, "message": "Schema 999 not found"}}'
    )
    protobuf = server.register("syntax = …", kind="PROTOBUF")
    of_protobuf = why(Registry(server.url), framed(protobuf) + b"\x02")
    assert f"schema {protobuf} of {server.url} is Protobuf's, which is not read" in of_protobuf
    monkeypatch.setattr(schema_registry, "PATIENCE", 1)
    nobody = why(Registry("http://127.0.0.1:9"), framed(1) + b"\x02")
    assert nobody.startswith("http://127.0.0.1:9/schemas/ids/1 tells no schema: URLError(")
    # an answer that is no registry's, of a page at another path
    assert "tells no schema: KeyError('schema')" in why(Registry(f"{server.url}/other"), framed(1) + b"\x02")
    of_no_type = server.register({"type": "unknown"})
    assert f"schema {of_no_type} of {server.url} is none that fastavro reads: UnknownType(" in why(
        Registry(server.url), framed(of_no_type) + b"\x02"
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:  # a port that speaks TLS, asked without
        threading.Thread(target=alert, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert why(Registry(url), framed(1) + b"\x02").startswith(f"{url}/schemas/ids/1 tells no schema: BadStatusLine(")


def alert(listening: socket.socket) -> None:
    asking, _ = listening.accept()
    with asking:
        asking.recv(1000)
        asking.sendall(bytes.fromhex("15030300020246"))


def test_user_and_password_are_in_the_url_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "p@ss/wörd:1")
    environment = Environment("feed shop")
    with RegistryServer(user="cdc", password="p@ss/wörd:1") as server:
        number = server.register("long")
        given = server.url.replace("://", "://cdc:${REGISTRY_PASSWORD}@") + "/"
        registry = Registry.named(given, environment)
        assert registry == Registry(server.url, "cdc", "p@ss/wörd:1")
        assert as_json(framed(number) + b"\x02", registry=registry, message_format="rows") == "1"
        with pytest.raises(RegistryError, match="answers 401"):
            as_json(framed(number) + b"\x02", registry=Registry(server.url), message_format="rows")
    assert Registry.named("http://registry:8081/apis/ccompat/v7", environment).user == ""
    monkeypatch.setenv("REGISTRY", "https://cdc:p@ss/wörd:1@registry:8081")
    whole = Registry.named("${REGISTRY}", environment)
    assert whole == Registry("https://registry:8081", "cdc", "p@ss/wörd:1")
