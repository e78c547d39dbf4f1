"""Topics of a real broker, landed: each message once, whatever is killed, taken away or made anew between two landings."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import database, landing, upkeep
from tests import after
from tests.scenarios.project import UserProject
from tests.services.broker import SPARK_SETTINGS, Broker, Topics
from tests.services.registry import RegistryServer, framed

pytestmark = [pytest.mark.dbt, pytest.mark.spark]
CLIENT = {"keys": ["id"], "source_table": "public.client"}
TABLE = {"name": "invoice", "cdc": {"keys": ["id"], "sequence_by": ["_position"]}, "columns": {"id": "int"}}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    broker = Broker()
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


class Shop:
    def __init__(self, project: UserProject, broker: Broker) -> None:
        self.project, self.command = project, project.command
        self.broker = broker
        self.topics = Topics(project.spark(), broker)

    def place(self, topics: list[str], options: dict[str, Any] | None = None, name: str | None = None) -> dict[str, Any]:
        """What the macro hands over for a feed of these topics."""
        location = f"file:{self.project.path}/landing/{name or topics[0]}"
        kafka = {"bootstrap_servers": self.broker.address, "options": options or {}}
        return {"feed": "shop", "table": None, "location": location, "topics": topics, "kafka": kafka}

    def land(self, place: dict[str, Any]) -> int:
        return int(landing.land(self.project.spark(), place)["rows"])

    def landed(self, place: dict[str, Any]) -> list[tuple[str, int, int]]:
        """(topic, partition, offset) of all rows."""
        rows = self.project.spark().read.format("delta").load(place["location"]).select("topic", "partition", "offset").collect()
        return sorted(tuple(row) for row in rows)

    def version(self, place: dict[str, Any]) -> int | None:
        return landing._version(self.project.spark(), place["location"])


@pytest.fixture(scope="module")
def shop(broker: Broker, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    project = UserProject(tmp_path_factory.mktemp("kafka"), lake=lake, schema="kafka", spark_settings=SPARK_SETTINGS)
    return Shop(project, broker)


def numbered(first: int, last: int, partitions: int = 1) -> list[Any]:
    return [(f"k{n}", f"v{n}", None, n % partitions) for n in range(first, last)]


def test_land_brings_each_message_as_it_is_and_makes_no_commit_when_nothing_came(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKERS", shop.broker.address)
    shop.topics.create("shop.invoice", 2)
    shop.topics.produce(
        "shop.invoice",
        ("a", '{"x": "ä"}', [("h", b"1"), ("h", b"2"), ("__debezium.oldkey", b'{"id": 1}'), ("n", None)], 0),
        ("a", None, None, 0),
        (None, "v", [], 1),
        ('\0\0\0\0\1{"id": 1}', '\0\0\0\0\2{"x": 2}', [], 1),
    )
    kafka = {"bootstrap_servers": "${BROKERS}", "topics": ["shop.invoice"]}
    feed = {"format": "debezium", "location": "landing/cli", "file_format": "delta"}
    shop.project.configure("shop", settings=feed | {"kafka": kafka}, tables=[TABLE])
    shop.project.configure(
        "gone",
        settings=feed | {"kafka": kafka | {"topics": ["shop.invoce"]}},
        tables=[TABLE | {"cdc": TABLE["cdc"] | {"final_name": "final_gone"}}],
    )
    result = shop.command("land")
    assert result.exit_code == 1
    told = sorted(line for line in result.output.splitlines() if line)
    assert told[0] == "feed gone: `kafka.topics` names shop.invoce, which ${BROKERS} does not have. Did you mean `shop.invoice`?"
    assert told[1].startswith("shop: 4 rows landed; ")
    place = shop.place(["shop.invoice"], name="cli")
    frame = shop.project.spark().read.format("delta").load(place["location"]).orderBy("partition", "offset")
    assert frame.schema.simpleString() == (
        "struct<topic:string,partition:int,offset:bigint,timestamp:timestamp,key:string,value:string,headers:map<string,string>>"
    )
    assert [tuple(row) for row in frame.drop("timestamp").collect()] == [
        ("shop.invoice", 0, 0, "a", '{"x": "ä"}', {"h": "2", "__debezium.oldkey": '{"id": 1}', "n": None}),
        ("shop.invoice", 0, 1, "a", None, None),
        ("shop.invoice", 1, 0, None, "v", None),
        ("shop.invoice", 1, 1, '{"id": 1}', '{"x": 2}', None),
    ]
    properties = shop.project.spark().sql(f"show tblproperties delta.`{place['location']}`").collect()
    assert {"delta.appendOnly": "true", "delta.enableChangeDataFeed": "true"}.items() <= dict(properties).items()
    before = shop.version(place)
    again = shop.command("land", "shop")
    assert (again.exit_code, shop.version(place)) == (0, before)
    assert "shop: 0 rows landed; " in again.output


@after(test_land_brings_each_message_as_it_is_and_makes_no_commit_when_nothing_came)
def test_run_lands_first_and_a_landing_that_fails_holds_nothing_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", shop.broker.address)
    shop.topics.produce("shop.invoice", ("b", "{}", None, 1))
    result = shop.command("run", "--select", "cdc_change_sets")
    assert result.exit_code == 1
    assert "feed gone: `kafka.topics` names shop.invoce" in result.output
    assert "shop: 1 row landed; " in result.output
    assert "0 of 2 tables had news" in result.output
    monkeypatch.delenv("BROKERS")
    assert (
        "feed shop: `kafka.bootstrap_servers` names ${BROKERS}, and the environment has no variable BROKERS."
        in shop.command("land", "shop").output
    )
    assert "feed shpo: it is not there, so nothing is to be landed. Did you mean `shop`?" in shop.command("land", "shpo").output


def test_run_lands_the_topic_and_loads_its_tables(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def envelope(op: str, position: int, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
        source = {"schema": "public", "table": "client", "lsn": position, "txId": position, "ts_ms": position}
        return json.dumps({"op": op, "before": before, "after": after, "source": source, "ts_ms": position})

    monkeypatch.setenv("BROKERS", shop.broker.address)
    shop.topics.create("crm.client", 1)
    shop.project.configure(
        "crm",
        settings={
            "format": "debezium",
            "file_format": "delta",
            "location": "landing/crm",
            "kafka": {"bootstrap_servers": "${BROKERS}", "topics": ["crm.client"]},
        },
        tables=[{"name": "client", "cdc": CLIENT, "columns": {"id": "int", "name": "string"}}],
    )
    shop.project.generate()
    client = ["--select", "cdc_change_sets", "--select", "raw_crm+"]
    final = "select id, name from {schema}.final_client order by id"
    shop.topics.produce(
        "crm.client",
        ('{"id": 1}', envelope("c", 1, None, {"id": 1, "name": "one"}), None, 0),
        ('{"id": 2}', envelope("c", 2, None, {"id": 2, "name": "two"}), None, 0),
    )
    result = shop.command("run", *client)
    assert "crm: 2 rows landed; " in result.output
    assert shop.project.rows(final) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    oldkey, newkey = ("__debezium.oldkey", b'{"id": 1}'), ("__debezium.newkey", b'{"id": 3}')
    shop.topics.produce(
        "crm.client",
        ('{"id": 2}', envelope("d", 3, {"id": 2}, None), None, 0),
        ('{"id": 2}', None, None, 0),
        ('{"id": 1}', envelope("d", 4, {"id": 1}, None), [newkey], 0),
        ('{"id": 1}', None, None, 0),
        ('{"id": 3}', envelope("c", 4, None, {"id": 3, "name": "three"}), [oldkey], 0),
    )
    assert "crm: 5 rows landed; " in shop.command("run", *client).output
    assert shop.project.rows(final) == [{"id": 3, "name": "three"}]
    versions = shop.project.rows(
        "select id, is_current from {schema}.hist_crm__client where _cdc_entity = "
        "(select _cdc_entity from {schema}.hist_crm__client where is_current) order by valid_from"
    )
    assert versions == [{"id": 1, "is_current": False}, {"id": 3, "is_current": True}]


def test_avro_of_a_registry_is_landed_as_json_with_its_schema(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    total: dict[str, Any] = {"type": "bytes", "scale": 2, "precision": 9, "logicalType": "decimal"}
    total |= {"connect.name": "org.apache.kafka.connect.data.Decimal"}
    total |= {"connect.parameters": {"scale": "2", "connect.decimal.precision": "9"}}
    columns = {
        "id": "int",
        "total": ["null", total],
        "due": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}],
        "at": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        "photo": ["null", "bytes"],
    }
    row = {"type": "record", "name": "Value", "fields": [{"name": name, "type": kind} for name, kind in columns.items()]}
    place = {"schema": "string", "table": "string", "lsn": "long", "txId": "long", "ts_ms": "long"}
    source = {"type": "record", "name": "Source", "fields": [{"name": name, "type": kind} for name, kind in place.items()]}
    parts = {"before": ["null", row], "after": ["null", "Value"], "source": source, "op": "string", "ts_ms": ["null", "long"]}
    envelope = {"type": "record", "name": "Envelope", "fields": [{"name": name, "type": kind} for name, kind in parts.items()]}
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    at = 1_767_261_600_000_001

    def values(number: int, total: str | None) -> dict[str, Any]:
        return {"id": number, "total": total and Decimal(total), "due": 20_455, "at": at, "photo": b"\xca\xfe"}

    with RegistryServer(user="cdc", password="p@ss") as server:
        ids = {"key": server.register(key), "value": server.register(envelope)}

        def event(number: int, op: str, position: int, before: Any, after: Any) -> tuple[bytes, bytes, None, int]:
            source = {"schema": "public", "table": "bill", "lsn": position, "txId": position, "ts_ms": 1}
            message = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
            return framed(ids["key"], key, {"id": number}), framed(ids["value"], envelope, message), None, 0

        monkeypatch.setenv("BROKERS", shop.broker.address)
        monkeypatch.setenv("REGISTRY_PASSWORD", "p@ss")
        shop.topics.create("crm.bill", 1)
        kafka = {"bootstrap_servers": "${BROKERS}", "topics": ["crm.bill"]}
        kafka["schema_registry"] = server.url.replace("://", "://cdc:${REGISTRY_PASSWORD}@")
        table = {"keys": ["id"], "source_table": "public.bill"}
        types = {"id": "int", "total": "decimal(9,2)", "due": "date", "at": "timestamp", "photo": "binary"}
        shop.project.configure(
            "bills",
            settings={"format": "debezium", "file_format": "delta", "location": "landing/bills", "kafka": kafka},
            tables=[{"name": "bill", "cdc": table, "columns": types}],
        )
        shop.project.generate()
        bills = ["--select", "cdc_change_sets", "--select", "raw_bills+"]
        final = (
            "select id, total, due, date_format(at, 'HH:mm:ss.SSSSSS') as at, hex(photo) as photo from {schema}.final_bill "
            "order by id"
        )
        one = {"id": 1, "total": Decimal("24.90"), "due": dt.date(2026, 1, 2), "at": "10:00:00.000001", "photo": "CAFE"}
        shop.topics.produce(
            "crm.bill",
            event(1, "c", 1, None, values(1, "19.90")),
            event(2, "c", 2, None, values(2, None)),
            event(1, "u", 3, values(1, "19.90"), values(1, "24.90")),
        )
        assert "bills: 3 rows landed; " in shop.command("run", *bills).output
        assert shop.project.rows(final) == [one, one | {"id": 2, "total": None}]
        cut = framed(ids["value"]) + b"\x02"
        shop.topics.produce("crm.bill", event(2, "d", 4, values(2, None), None), (event(2, "d", 4, None, None)[0], None, None, 0))
        shop.topics.produce("crm.bill", (None, cut, None, 0))
        assert "bills: 3 rows landed; " in shop.command("run", *bills).output
        assert shop.project.rows(final) == [one]
        (bad,) = shop.project.rows("select error, raw from {schema}.cdc_quarantine where feed = 'bills'")
        assert bad["error"] == "unparsable"
        assert f"(no Avro of schema {ids['value']}: " in bad["raw"]
        shop.topics.produce("crm.bill", (None, framed(77) + b"\x02", None, 0))
        said = shop.command("land", "bills").output
        assert f"feed bills: `kafka.schema_registry`: {server.url}/schemas/ids/77 answers 404: " in said
        assert "Nothing of it was landed." in said
        assert "Traceback" not in said


KILLED = """
import json, sys
from pathlib import Path
from dbt.adapters.sparkdelta import delta_log, landing
from dbt.adapters.sparkdelta.session import root_session
root, settings, place = json.loads(sys.argv[1])
landing.land(root_session(root=Path(root), overrides=settings), place)
"""


@pytest.mark.nightly  # what a kill leaves: the test below
def test_a_landing_that_is_killed_loses_and_doubles_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.topics.create("killed", 2)
    shop.topics.produce("killed", *numbered(0, 120, 2))
    place = shop.place(["killed"], {"maxOffsetsPerTrigger": 2})
    log = Path(place["location"].removeprefix("file:")) / "_delta_log"
    arguments = json.dumps([str(tmp_path / "lake"), SPARK_SETTINGS, place])
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, "-c", KILLED, arguments], start_new_session=True, stdout=said, stderr=said)
    until = time.monotonic() + 120
    while len(list(log.glob("*.json"))) < 5:
        assert process.poll() is None, (tmp_path / "said").read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)  # Python and its JVM
    process.wait()
    wanted = [("killed", partition, offset) for partition in (0, 1) for offset in range(60)]
    before = shop.landed(place)
    assert 0 < len(before) < 120
    rest = shop.place(["killed"])  # in one batch
    assert shop.land(rest) == 120 - len(before)
    assert shop.landed(place) == wanted


def test_a_batch_that_is_in_the_table_but_not_noted_in_the_checkpoint_comes_once(shop: Shop) -> None:
    shop.topics.create("unnoted")
    place = shop.place(["unnoted"])
    for first in (0, 3):
        shop.topics.produce("unnoted", *numbered(first, first + 3))
        assert shop.land(place) == 3
    (folder,) = Path(place["location"].removeprefix("file:")).glob("_checkpoints/*/commits")
    for noted in (folder / "1", folder / ".1.crc"):
        noted.unlink()
    version = shop.version(place)
    assert shop.land(place) == 0
    assert shop.version(place) == version
    assert shop.landed(place) == [("unnoted", 0, offset) for offset in range(6)]


@pytest.mark.nightly  # a checkpoint that lacks a batch: the test above
def test_other_topics_a_lost_checkpoint_and_vacuum_double_nothing(shop: Shop) -> None:
    for topic in ("one", "two"):
        shop.topics.create(topic)
        shop.topics.produce(topic, *numbered(0, 2))
    both, one = shop.place(["one", "two"], name="both ways"), shop.place(["one"], name="both ways")
    assert shop.land(one) == 2
    assert shop.land(both) == 2
    shop.topics.produce("one", *numbered(2, 3))
    shop.topics.produce("two", *numbered(2, 3))
    assert shop.land(one) == 1
    assert shop.land(both | {"topics": [], "topic_pattern": "(one|two)"}) == 1
    unchecked = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    upkeep._vacuum(shop.project.spark(), f"delta.`{both['location']}`", "retain 0 hours", unchecked)
    folder = Path(both["location"].removeprefix("file:")) / "_checkpoints"
    (state,) = folder.iterdir()
    assert (state / "metadata").exists()
    (state / "metadata").rename(state / "metadata.gone")
    assert shop.land(both | {"topics": [], "topic_pattern": "(one|two)"}) == 0
    assert shop.landed(both) == [(topic, 0, offset) for topic in ("one", "two") for offset in range(3)]


def test_messages_that_kafka_no_longer_has_are_told(shop: Shop) -> None:
    shop.topics.create("short")
    place = shop.place(["short"])
    shop.topics.produce("short", *numbered(0, 2))
    shop.land(place)
    shop.topics.produce("short", *numbered(2, 6))
    shop.topics.drop_before("short", 0, 4)
    version = shop.version(place)
    with pytest.raises(DbtRuntimeError) as failed:
        shop.land(place)
    assert "feed shop: Kafka no longer has messages that were not landed yet" in str(failed.value)
    assert "is out of range for partition short-0" in str(failed.value)
    assert shop.version(place) == version
    assert shop.land(shop.place(["short"], {"failOnDataLoss": False})) == 2
    assert shop.landed(place) == [("short", 0, offset) for offset in (0, 1, 4, 5)]
    assert shop.land(place) == 0


def test_brokers_that_do_not_answer_are_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "PATIENCE", 2)
    place = shop.place(["one"], name="nowhere")
    place["kafka"]["bootstrap_servers"] = "127.0.0.1:9"
    with pytest.raises(DbtRuntimeError, match=r"`kafka.bootstrap_servers` \(127\.0\.0\.1:9\) told no topics within 2 s"):
        shop.land(place)
    with pytest.raises(DbtRuntimeError, match=r"spark\.jars\.packages: org\.x:y:1$"):
        database.need_class(shop.project.spark(), "org.x.Y", "org.x:y:1", "It")
