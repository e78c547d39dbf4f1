"""Parts of Kafka's records whose Avro schema is in a registry (Confluent's API), as JSON: read by fastavro in the executors.

Such a part is a zero byte, the four bytes of the schema's id, and the data (Confluent's "wire format"). Debezium's becomes what
Kafka Connect's JsonConverter writes of the same, with its schema, by the properties in which Connect's AvroConverter keeps that
(`connect.name`, `connect.type`, `connect.parameters`). Of other formats it is a row as Avro files have it (`avro_messages`),
but hexadecimal digits have `0x` before them.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from dbt.adapters.sparkdelta import avro_messages
from dbt.adapters.sparkdelta.row_messages import BASE64, without_schema_id

if TYPE_CHECKING:
    from pyspark.sql import Column

    from dbt.adapters.sparkdelta.database import Environment

SETTING = "kafka.schema_registry"
PATIENCE = 20  # seconds for an answer of the registry
_IN_URL = re.compile(r"(https?://)(.*)@([^@]*)", re.DOTALL)
_CONNECT = "org.apache.kafka.connect.data."
# Avro's logical types by the names of Connect's, where a schema says no `connect.name`
_LOGICAL = {
    "decimal": f"{_CONNECT}Decimal",
    "date": f"{_CONNECT}Date",
    "time-millis": f"{_CONNECT}Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": f"{_CONNECT}Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "local-timestamp-millis": "io.debezium.time.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-nanos": "io.debezium.time.NanoTimestamp",
}
_FLOAT = {"type": "float", "logicalType": avro_messages.SHORT_FLOAT}
_TYPES = {"int": "int32", "long": "int64", "record": "struct", "enum": "string", "fixed": "bytes"}


class RegistryError(Exception):
    """The registry does not answer, or has not what a message names."""


class Registry(NamedTuple):
    """url without a slash at its end; user and password, both empty where none are given."""

    url: str
    user: str = ""
    password: str = ""

    @classmethod
    def named(cls, given: str, environment: Environment) -> Registry:
        """The registry of a URL, as the setting has it. User and password in it are taken as they are, after `${NAME}` was filled
        in; the whole may be one `${NAME}`."""
        fill: Callable[[str], str] = functools.partial(environment.filled, SETTING)
        if not (in_parts := _IN_URL.fullmatch(given)):
            given, fill = fill(given), str
            in_parts = _IN_URL.fullmatch(given)
        user, _, password = in_parts[2].partition(":") if in_parts else ("", "", "")
        url = in_parts[1] + in_parts[3] if in_parts else given
        url, user, password = map(fill, (url, user, password))
        return cls(url.rstrip("/"), user, password)


def part_as_json(part: Column, registry: Registry, message_format: str) -> Column:
    """A part of a record (binary) as text. What was written without a registry is its own text; of bytes that are no Avro the
    reason is told in parentheses, which no format reads. Raises RegistryError, in the executors."""
    from pyspark.sql import functions as F

    read = F.udf(functools.partial(as_json, registry=registry, message_format=message_format), "string", useArrow=False)
    return F.coalesce(read(part), without_schema_id(part))


def as_json(data: bytes | None, *, registry: Registry, message_format: str) -> str | None:
    """None where it is no Avro: it has no schema's id, or that of another kind of schema."""
    import fastavro

    if data is None or len(data) < 5 or data[0] != 0:
        return None
    number = int.from_bytes(data[1:5], "big")
    if number == 0 and len(data) == 8:  # Kafka's LongSerializer; no registry gives 0 out
        return None
    schema, told = _schema(registry, number, message_format == "debezium")
    if schema is None:
        return None
    try:
        rest = io.BytesIO(data[5:])
        around: Any = fastavro.schemaless_reader(rest, schema, None)
        if left := len(rest.read()):
            raise ValueError(f"{left} bytes are left over")
        return _text_of(around["part"], told, message_format)
    except Exception as error:  # whatever fastavro meets in bytes that are no Avro, and Python in what is nested too deeply
        return f"(no Avro of schema {number}: {str(error) or type(error).__name__}) {base64.b64encode(data).decode()}"


def _text_of(value: Any, schema: str, message_format: str) -> str:
    if schema:
        payload = json.dumps(avro_messages.json_value(value), ensure_ascii=False)
        return f'{{"schema": {schema}, "payload": {payload}}}'
    if isinstance(value, dict):
        base64_bytes = message_format in BASE64
        if not base64_bytes:  # else the digits would be a text's own bytes
            value = {name: f"0x{each.hex()}" if isinstance(each, bytes) else each for name, each in value.items()}
        return avro_messages.message_of(value, base64_bytes=base64_bytes)
    return value if isinstance(value, str) else json.dumps(avro_messages.json_value(value))


@functools.cache
def _schema(registry: Registry, number: int, of_connect: bool) -> tuple[Any, str]:
    """A schema as `_parsed` makes it, and as JsonConverter writes it (empty unless of_connect); None where it is not Avro's."""
    avro_messages.know_logical_types()
    known: dict[str, Any] = {}
    told = _asked(registry, f"schemas/ids/{number}")
    kind = told.get("schemaType", "AVRO")
    if kind == "PROTOBUF":
        raise RegistryError(f"schema {number} of {registry.url} is Protobuf's, which is not read: have Avro or JSON written")
    if kind != "AVRO":
        return None, ""
    try:
        schema = _parsed(registry, told, known, of_connect)
    except RegistryError:
        raise
    except Exception as error:  # whatever json and fastavro meet in a schema that is none
        raise RegistryError(f"schema {number} of {registry.url} is none that fastavro reads: {error!r}") from None
    part = schema["fields"][0]["type"]
    return schema, json.dumps(connect_schema(part, known), ensure_ascii=False) if of_connect else ""


def _parsed(registry: Registry, told: Mapping[str, Any], known: dict[str, Any], of_connect: bool) -> Any:
    """A schema, after those that it refers to, as fastavro takes it: as the field `part` of a record, whose data are no more.
    Of a union or an array alone fastavro would not find the types that it refers to."""
    import fastavro

    for other in told.get("references") or []:
        where = f"subjects/{quote(other['subject'], safe='')}/versions/{other['version']}"
        _parsed(registry, _asked(registry, where), known, of_connect)
    schema = json.loads(told["schema"], object_hook=_plain if of_connect else _unchecked)
    around = {"type": "record", "name": "cdc_part", "fields": [{"name": "part", "type": schema}]}
    return fastavro.parse_schema(around, named_schemas=known)


def _unchecked(described: dict[str, Any]) -> dict[str, Any]:
    """A type, or a field, without what fastavro refuses and Avro's own library takes: defaults, which reading does not need, and
    a decimal's scale as Connect's AvroConverter writes it, such as the 127 of Oracle's NUMBER."""
    described.pop("default", None)
    if described.get("logicalType") == "decimal":
        described["logicalType"] = avro_messages.ANY_DECIMAL
    return described


def _plain(described: dict[str, Any]) -> dict[str, Any]:
    """A type whose values are read as they were written, numbers and bytes; what they are is told by Connect's name."""
    described.pop("default", None)
    logical = described.pop("logicalType", None)
    if logical in _LOGICAL and "connect.name" not in described:
        described["connect.name"] = _LOGICAL[logical]
        if logical == "decimal":
            described["connect.parameters"] = {"scale": str(described.get("scale", 0))}
    if described.get("type") == "float" and "name" not in described:  # else it is a field
        return described | _FLOAT
    return described | {place: _short(described[place]) for place in ("type", "items", "values") if place in described}


def _short(kind: Any) -> Any:
    """A type's name, or a union, with floats as `_FLOAT`."""
    if isinstance(kind, list):
        return [_short(each) for each in kind]
    return _FLOAT if kind == "float" else kind


def connect_schema(schema: Any, known: Mapping[str, Any], inside: tuple[str, ...] = ()) -> dict[str, Any]:
    """A parsed Avro schema as JsonConverter writes it. known: the named types by their names. inside: the records that it is in.

    >>> connect_schema(["null", {"type": "int", "connect.type": "int16"}], {})
    {'type': 'int16', 'optional': True}
    """
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        told = connect_schema(others[0], known, inside) if len(others) == 1 else {"type": "string"}
        return {**told, "optional": len(others) < len(schema)}
    if isinstance(schema, str):
        schema = known.get(schema, {"type": schema})
    kind = schema["type"]
    if not isinstance(kind, str):
        return connect_schema(kind, known, inside)
    told = {"type": schema.get("connect.type") or _TYPES.get(kind, kind), "optional": False}
    name = schema.get("connect.name") or (schema["name"] if kind == "record" else None)
    told |= {key: value for key, value in (("name", name), ("parameters", schema.get("connect.parameters"))) if value}
    if kind == "record" and schema["name"] not in inside:
        inside = (*inside, schema["name"])
        told["fields"] = [{**connect_schema(each["type"], known, inside), "field": each["name"]} for each in schema["fields"]]
    elif kind == "array":
        told["items"] = connect_schema(schema["items"], known, inside)
    elif kind == "map":
        told |= {"keys": {"type": "string", "optional": False}, "values": connect_schema(schema["values"], known, inside)}
    return told


def _asked(registry: Registry, where: str) -> dict[str, Any]:
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if registry.user:
        given = base64.b64encode(f"{registry.user}:{registry.password}".encode()).decode()
        headers["Authorization"] = f"Basic {given}"
    url = f"{registry.url}/{where}"
    try:
        with urlopen(Request(url, headers=headers), timeout=PATIENCE) as answer:
            told: dict[str, Any] = json.load(answer)
        told["schema"]
        return told
    except HTTPError as error:
        said = ""
        with suppress(OSError, HTTPException):
            said = " ".join(error.read(1000).decode(errors="replace").split())
        raise RegistryError(f"{url} answers {error.code}: {said or error.reason}") from None
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise RegistryError(f"{url} tells no schema: {error!r}") from None
