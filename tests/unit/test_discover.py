"""What `delta-cdc discover` makes of messages."""

from __future__ import annotations

import errno
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import polars
import pytest
import yaml
from click.testing import CliRunner
from deltalake import write_deltalake
from tests.projects import source

from delta_cdc import discover as discovery
from delta_cdc import source_types
from delta_cdc.cli import main
from delta_cdc.errors import OperationError
from delta_cdc.table_list import read_table_list
from delta_cdc.value_types import MOST, Looks

CASES = Path(__file__).resolve().parents[1] / "cases"


def found(message_format: str, *messages: Any) -> dict[str, discovery.FoundTable]:
    return discovery.discover(message_format, [json.dumps(m) for m in messages], whole="t").tables


def test_a_postgresql_feed_tells_types_and_the_key_of_a_deletion() -> None:
    insert = {
        "action": "I",
        "schema": "public",
        "table": "a",
        "columns": [
            {"name": "id", "type": "integer", "value": 1},
            {"name": "at", "type": "timestamp(3) with time zone", "value": "x"},
        ],
    }
    delete = {"action": "D", "schema": "public", "table": "a", "identity": [{"name": "id", "type": "integer", "value": 1}]}
    table = found("wal2json_v2", {"action": "B"}, insert, delete)["public.a"]
    assert (table.columns, table.keys) == ({"id": "int", "at": "timestamp"}, ["id"])


def test_a_column_that_was_once_a_text_is_one_whichever_came_first() -> None:
    def insert(data_type: str) -> dict[str, Any]:
        return {"action": "I", "schema": "s", "table": "t", "columns": [{"name": "v", "type": data_type, "value": "1"}]}

    for types in (("integer", "text"), ("text", "integer"), ("timestamp with time zone", "character varying(9)")):
        assert found("wal2json_v2", *map(insert, types))["s.t"].columns == {"v": "string"}


def test_a_replica_identity_of_the_whole_row_is_no_key() -> None:
    columns = [{"name": "a", "type": "text"}, {"name": "b", "type": "text"}]
    whole = {"schema": "s", "table": "t", "columns": columns}
    assert found("wal2json_v2", {"action": "I", **whole}, {"action": "D", **whole, "identity": columns})["s.t"].keys == []
    assert found("wal2json_v2", {"action": "I", **whole, "pk": columns})["s.t"].keys == ["a", "b"]


def test_a_replica_identity_of_whole_rows_without_their_nulls_is_no_key() -> None:
    def change(kind: str, *old: str, **row: Any) -> dict[str, Any]:
        image = {"columnnames": list(row), "columnvalues": list(row.values())} if row else {}
        olds = {"oldkeys": {"keynames": list(old), "keyvalues": ["x"] * len(old)}} if old else {}
        return {"kind": kind, "schema": "s", "table": "t", **image, **olds}

    insert, update = change("insert", id=1, name="x", note=None), change("update", "id", "name", id=1, name="y", note=None)
    full = found("wal2json_v1", {"change": [insert, update, change("delete", "id", "name")]})["s.t"]
    assert (full.keys, list(full.columns)) == ([], ["id", "name", "note"])
    filled = change("update", "id", "name", id=1, name="y", note="z"), change("delete", "id", "name", "note")
    assert found("wal2json_v1", {"change": [insert, *filled, change("delete", "id", "name")]})["s.t"].keys == []
    by_key = change("update", "id", id=1, name="y", note="z"), change("delete", "id")
    assert found("wal2json_v1", {"change": [change("delete", "id"), insert, *by_key]})["s.t"].keys == ["id"]


def test_wal2json_v1_tells_the_tables_of_a_transaction() -> None:
    message = {
        "change": [
            {
                "kind": "insert",
                "schema": "s",
                "table": "a",
                "columnnames": ["id"],
                "columntypes": ["bigint"],
                "columnvalues": [1],
            },
            {
                "kind": "delete",
                "schema": "s",
                "table": "b",
                "oldkeys": {"keynames": ["k"], "keytypes": ["uuid"], "keyvalues": ["x"]},
            },
            {"kind": "message", "prefix": "p", "content": "c"},
        ]
    }
    tables = found("wal2json_v1", message)
    assert {name: table.columns for name, table in tables.items()} == {"s.a": {"id": "bigint"}, "s.b": {"k": "string"}}


@pytest.mark.parametrize("sequence", [None, "1", "[]", "not JSON"])
def test_a_debezium_sequence_is_a_position_only_as_postgresql_has_it(sequence: str | None) -> None:
    event = {"op": "c", "ts_ms": 1, "source": {"table": "t", "sequence": sequence}, "after": {"id": 1}}
    assert found("debezium", event)["t"].settings == {"sequence_by": ["_timestamp", "_arrival"]}
    event["source"] |= {"sequence": '["24023119","24023128"]'}
    assert found("debezium", event)["t"].settings == {}


def test_messages_of_aurora_dsql_are_ordered_by_their_commit_and_have_decimals_as_text() -> None:
    source = {"schema": "s", "table": "a", "cluster": "c", "ts_ms": 1, "ts_ns": 1000001}
    assert found("debezium", {"op": "c", "source": source, "after": {"id": 1}})["s.a"].settings == {"decimal_handling": "string"}
    event = {"op": "c", "source": source | {"connector": "cockroachdb"}, "after": {"id": 1}}
    assert found("debezium", event)["s.a"].settings == {"sequence_by": ["_timestamp", "_arrival"]}


def test_debezium_tells_types_by_its_schema_and_keys_by_the_record() -> None:
    lines = (CASES / "feeds" / "paimon__debezium__table_alltypes_with_schema" / "input-01.jsonl").read_text().splitlines()
    table = discovery.discover("debezium", lines).tables["paimon_sync_table.all_types_table"]
    some = (
        "_id",
        "pt",
        "_bit1",
        "_bit",
        "_bigint_unsigned",
        "_fixed",
        "_date",
        "_datetime6",
        "_timestamp",
        "_bin",
        "_year",
        "_time",
        "_set",
    )
    assert {name: table.columns[name] for name in some} == {
        "_id": "int",
        "pt": "decimal(2,1)",
        "_bit1": "boolean",
        "_bit": "binary",
        "_bigint_unsigned": "decimal(38,0)",
        "_fixed": "string",
        "_date": "date",
        "_datetime6": "timestamp_ntz",
        "_timestamp": "timestamp",
        "_bin": "binary",
        "_year": "int",
        "_time": "bigint",
        "_set": "string",
    }
    assert table.settings == {"decimal_handling": "double"}  # decimals that are JSON numbers

    record = {
        "topic": "s.a",
        "key": {"id": 1},
        "value": {"op": "c", "after": {"id": 1, "v": 2}, "source": {"schema": "s", "table": "a"}},
    }
    assert found("debezium", record, {"topic": "s.a", "key": {"id": 1}, "value": None})["s.a"].keys == ["id"]


def test_a_decimal_without_limits_is_text() -> None:
    """PostgreSQL's numeric holds what no decimal of Spark does: 1000000000000000000000000000000 beside 0.3."""
    assert source_types.postgres_type("numeric") == "string"
    assert source_types.connect_type({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}) == "string"


def test_a_column_of_few_or_no_decimal_places_is_a_decimal() -> None:
    """Oracle's NUMBER(3,5) holds hundredths of thousandths, NUMBER(5,-2) hundreds."""
    assert (
        source_types.connect_type(
            {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "5", "connect.decimal.precision": "3"}}
        )
        == "decimal(5,5)"
    )
    assert source_types.postgres_type("numeric(5,-2)") == "decimal(7,0)"
    assert source_types.mysql_type("decimal(65,30)") == "string"


def test_a_number_of_dms_without_a_scale_is_whole() -> None:
    assert source_types.dms_type({"type": "NUMERIC", "precision": 10}) == "decimal(10,0)"
    assert source_types.dms_type({"type": "NUMERIC", "precision": 10, "scale": 2}) == "decimal(10,2)"
    assert source_types.dms_type({"type": "NUMERIC"}) == "decimal(38,18)"


SHOP = {"database": "d", "table": "t"}
MAXWELL = {**SHOP, "type": "insert", "data": {"id": 1}, "ts": 1}
INSERT = {"kind": "insert", "schema": "d", "table": "t"}
CANAL = {**SHOP, "type": "INSERT", "data": [{"id": "1"}]}
DEBEZIUM = {"op": "c", "after": {"id": 1}, "source": {"db": "d", "table": "t"}}


@pytest.mark.parametrize(
    ("message_format", "message", "order"),
    [
        ("wal2json_v2", {"action": "I", "schema": "d", "table": "t"}, ["_arrival"]),
        ("wal2json_v1", {"timestamp": "2024-01-01", "change": [INSERT]}, ["_timestamp", "_arrival"]),
        ("wal2json_v1", {"nextlsn": "0/1", "change": [INSERT]}, None),
        ("maxwell", MAXWELL, ["_timestamp", "_arrival"]),
        ("maxwell", {**MAXWELL, "position": "master.000006:1"}, None),
        ("maxwell", {**MAXWELL, "type": "bootstrap-insert"}, None),
        ("canal", CANAL, ["_arrival"]),
        ("canal", {**CANAL, "id": 1}, ["_arrival"]),
        ("canal", {**CANAL, "ts": 1}, ["_message_time", "_arrival"]),
        ("canal", {**CANAL, "ts": 1, "id": 1}, None),
        ("canal", {**CANAL, "ts": 1, "id": 0}, ["_message_time", "_arrival"]),
        ("canal", {**CANAL, "ts": 1, "id": 0, "_tidb": {"commitTs": 1}}, None),
        ("debezium", DEBEZIUM, ["_arrival"]),
        ("debezium", {**DEBEZIUM, "ts_ms": 1}, ["_timestamp", "_arrival"]),
        ("debezium", {**DEBEZIUM, "source": {"db": "d", "table": "t", "file": "bin.1", "pos": 4}}, None),
        ("debezium", {**DEBEZIUM, "op": "r"}, None),
        ("debezium", {"id": 1, "__op": "c", "__db": "d", "__table": "t", "__source_ts_ms": 1}, ["_timestamp", "_arrival"]),
        ("debezium", {"id": 1, "__op": "c", "__db": "d", "__table": "t", "__lsn": 1}, None),
    ],
)
def test_where_messages_have_no_position_the_order_of_arrival_counts(message_format, message, order) -> None:
    assert found(message_format, message)["d.t"].settings.get("sequence_by") == order


def test_what_is_of_no_table_or_beside_the_row_is_not_found() -> None:
    decoded = {"op": "c", "after": {"id": 1}, "source": {"db": "d", "schema": "", "table": "", "lsn": 1}}
    assert found("debezium", decoded) == {}
    about = {"record-type": "data", "operation": "update", "schema-name": "s", "table-name": "t"}
    beside = found("dms", {"data": {"id": 2, "BI_id": 1, "BI_tool": "x"}, "metadata": about})["s.t"]
    assert list(beside.columns) == ["id", "BI_tool"]
    operation = {"table": "O.T", "op_type": "U", "before": {"ID": 1}, "after": {"ID": 2}, "primary_keys": ["ID"]}
    assert found("goldengate", {"schema": {}, "payload": operation})["O.T"].keys == ["ID"]
    changes = found("sqlserver_ct", {"__$start_lsn": "0x1", "__$operation": 2, "id": 1, "__version": 3})["t"]
    assert list(changes.columns) == ["id", "__version"]
    missing = {**operation, "after": {"ID": 2, "ID_isMissing": False, "V": None, "V_isMissing": True}}
    assert list(found("goldengate", missing)["O.T"].columns) == ["ID", "V"]
    assert discovery.discover("debezium", ["null", "{}", "1"]).unread == 1
    of_avro = {"after": {"s.d.a.Value": {"id": 1}}, "source": {"schema": "d", "table": "a"}, "op": "c", "ts_ms": {"long": 1}}
    row_of_avro = {"id": 1, "__table": {"string": "a"}, "__deleted": {"string": "true"}}
    lines = [json.dumps(message) for message in (of_avro, row_of_avro, {"key": {"id": 1}, "topic": "t", "value": of_avro})]
    assert (discovery.discover("debezium", lines).unread, discovery.discover("debezium", lines).tables) == (3, {})


def test_the_definition_of_a_control_table_of_dms_is_none_of_the_feeds() -> None:
    """A control record, which DMS writes before the rows."""
    about = {"record-type": "control", "operation": "create-table", "schema-name": "", "table-name": "awsdms_apply_exceptions"}
    definition = {"columns": {"ERROR": {"type": "STRING", "nullable": False}}}
    assert found("dms", {"control": {"table-def": definition}, "metadata": about}) == {}
    of_source = {**about, "schema-name": "public", "table-name": "foo"}
    assert list(found("dms", {"control": {"table-def": definition}, "metadata": of_source})) == ["public.foo"]


def test_the_tables_that_maxwell_keeps_for_itself_are_none_of_the_feeds() -> None:
    own = {**MAXWELL, "database": "maxwell", "table": "bootstrap", "data": {"id": 1}, "type": "insert"}
    assert found("maxwell", own) == {}
    assert list(found("maxwell", {**own, "table": "song"}, {**own, "database": "shop"})) == ["maxwell.song", "shop.bootstrap"]


def test_goldengate_rows_beside_the_operation_and_types_of_a_connect_schema() -> None:
    """https://docs.oracle.com/en/middleware/goldengate/big-data/19.1/gadbd/pluggable-formatters.html (json_row)"""
    operation = {"table": "O.T", "op_type": "I", "op_ts": "2024-01-15 10:00:00", "pos": "1", "xid": "1.2", "primary_keys": ["ID"]}
    flat = {**operation, "ID": 1, "ID_isMissing": False, "V": None, "V_isMissing": True}
    assert found("goldengate", flat)["O.T"].columns == {"ID": None, "V": None}
    assert found("goldengate", {**operation, "op_type": "T"}) == {}
    fields = [{"field": "ID", "type": "int64"}, {"field": "ID_isMissing", "type": "boolean"}]
    for described, row in (fields, {"ID": 1}), ([{"field": "after", "type": "struct", "fields": fields}], {"after": {"ID": 1}}):
        record = {"schema": {"fields": [{"field": "table", "type": "string"}, *described]}, "payload": {**operation, **row}}
        assert found("goldengate", record)["O.T"].columns == {"ID": "bigint"}


def test_aliyun_tells_the_schema_of_a_table() -> None:
    source = {"dbName": "d", "schemaName": "s", "tableName": "t"}
    assert list(found("aliyun", {"schema": {"dataColumn": [{"name": "id", "type": "LONG"}], "source": source}})) == ["d.s.t"]


def test_mysql_feeds_tell_keys_types_and_one_spelling() -> None:
    def canal(column: str, kind: str) -> dict[str, Any]:
        return {
            "type": "INSERT",
            "database": "d",
            "table": "t",
            "data": [{column: "1"}],
            "mysqlType": {column: kind},
            "pkNames": ["k1"],
        }

    table = found("canal", canal("K1", "int"), canal("k1", "int unsigned"))["d.t"]
    assert (table.columns, table.keys) == ({"K1": "bigint"}, ["K1"])
    row = {"database": "d", "table": "t", "type": "insert", "data": {"id": 1}, "primary_key_columns": ["id"]}
    assert found("maxwell", row)["d.t"].keys == ["id"]


def test_scylla_may_tell_the_key_in_the_payload_alone() -> None:
    source = {"connector": "scylla", "keyspace_name": "ks", "db": "ks", "table_name": "t", "ts_ms": 1}
    message = {"op": "c", "after": {"v": "a"}, "key": {"pk": 1}, "source": source}
    assert (found("debezium", message)["ks.t"].keys, [*found("debezium", message)["ks.t"].columns]) == (["pk"], ["pk", "v"])
    fields = [{"field": "key", "fields": [{"field": "pk", "type": "int32"}]}, {"field": "after", "fields": []}]
    table = found("debezium", {"schema": {"fields": fields}, "payload": message})["ks.t"]
    assert (table.keys, table.columns["pk"]) == (["pk"], "int")


def test_canal_a_delete_may_tell_its_row_in_old() -> None:
    """https://support.huaweicloud.com/intl/en-us/realtimesyn-drs/drs_03_0052.html"""
    deleted = {**CANAL, "type": "DELETE", "data": None, "old": [{"id": "1", "v": None}], "mysqlType": {"id": "int"}}
    deleted["pkNames"] = ["id"]
    table = found("canal", deleted)["d.t"]
    assert (table.columns, table.keys) == ({"id": "int", "v": None}, ["id"])
    assert found("canal", {**deleted, "type": "UPDATE"}) == {}


def test_rows_of_change_tables_tell_their_columns() -> None:
    rows = {
        "sqlserver_ct": {"__$operation": 4, "__$start_lsn": "0x01", "id": 1},
        "oracle_cdc": {"OPERATION$": "UN", "CSCN$": 1, "id": 1},
        "powerexchange": {"DTL__CAPXACTION": "U", "DTL__BI_id": 2, "id": 1},
        "change_event": {"changeType": "I", "columnNames": ["id"], "columnValues": [1], "oldKeyNames": ["id"]},
        "trigger_audit": {"op": "UPDATE", "record": '{"id": 1}', "old_record": None},
        "debezium": {"id": 1, "__op": "u"},
        "rows": {"id": 1},
    }
    for message_format, row in rows.items():
        assert list(found(message_format, row)["t"].columns) == ["id"]
    flat = {"id": 1, "__deleted": "false", "__source_schema": "s", "__table": "a"}
    assert list(found("debezium", {"key": {"schema": {}, "payload": {"id": 1}}, "value": flat})) == ["s.a"]
    outbox = {**flat, "key": 1, "payload": "{}", "topic": "t", "op": "x"}
    assert list(found("debezium", outbox)["s.a"].columns) == ["id", "key", "payload", "topic", "op"]
    typed = {"schema": {"fields": [{"field": "id", "type": "int32"}]}, "payload": flat}
    assert found("debezium", typed)["s.a"].columns == {"id": "int"}
    audited = {"op": "INSERT", "table_schema": "s", "table_name": "a", "record": {"id": 1}}
    assert list(found("trigger_audit", audited)) == ["s.a"]
    by_hand = {"op": "D", "tbl": "a", "new_row": None, "old_row": {"id": 1}}
    assert found("trigger_audit", by_hand)["a"].columns == {"id": None}
    in_capitals = {"SEQ": 1, "OP": "I", "TBL": "A", "NEW_ROW": '{"ID": 1}', "OLD_ROW": None}
    assert found("trigger_audit", in_capitals)["A"].columns == {"ID": None}


def test_debezium_key_columns_that_only_the_record_has_are_columns() -> None:
    fields = [{"field": "id", "type": "int32"}, {"field": "part", "type": "string"}]
    key = {"schema": {"fields": fields}, "payload": {"id": 1, "part": "a"}}
    value = {"op": "c", "after": {"id": 1, "v": 2}, "source": {"schema": "s", "table": "a", "lsn": 5}}
    table = found("debezium", {"key": key, "value": value})["s.a"]
    assert (table.keys, table.columns) == (["id", "part"], {"part": "string", "id": None, "v": None})
    for scalar in (1, "x", None, [1]):
        assert found("debezium", {"topic": "t", "key": scalar, "value": value})["s.a"].keys == []


def test_debezium_records_may_be_text_and_events_of_cloudevents() -> None:
    value = {"op": "c", "after": {"id": 1}, "source": {"schema": "s", "table": "a", "lsn": 5}}
    texts = [{"key": '{"id": 1}', "value": json.dumps(value)}, {"topic": "t", "key": '{"id": 1}', "payload": json.dumps(value)}]
    for record in texts:
        table = found("debezium", record)["s.a"]
        assert (table.keys, list(table.columns), table.settings) == (["id"], ["id"], {})
    event = {"iodebeziumop": "c", "iodebeziumschema": "s", "iodebeziumtable": "a", "data": {"after": {"id": 1}}}
    assert found("debezium", event)["s.a"].settings == {"sequence_by": ["_arrival"]}
    assert found("debezium", {**event, "iodebeziumcommitlsn": "1:2"})["s.a"].settings == {}


def test_a_flattened_documents_key_is_its_id() -> None:
    flat = {"__deleted": True, "__op": "d", "__db": "d", "__collection": "c"}
    for row in ({"_id": "a", "id": 7}, {"_id": "a"}, {}):
        table = found("debezium", {"topic": "t", "key": {"id": "a"}, "value": {**row, **flat}})["d.c"]
        assert (table.keys, set(table.columns)) == (["_id"], {"_id", *row})


def test_debezium_images_of_cells_and_documents_tell_their_columns() -> None:
    cell = {"type": "struct", "fields": [{"field": "value", "type": "int64"}, {"field": "set", "type": "boolean"}], "field": "id"}
    image = {"field": "after", "fields": [cell, {"type": "string", "field": "v"}]}
    source = {"schema": "s", "table": "a", "lsn": "1:5::0:0", "sequence": '[null,"1:5::0:0"]', "ts_ms": 7}
    payload = {"op": "c", "after": {"id": {"value": 1, "set": True}, "v": None}, "source": source}
    by_time = {"sequence_by": ["_timestamp", "_arrival"]}
    table = found("debezium", {"schema": {"fields": [image]}, "payload": payload})["s.a"]
    assert (table.columns, table.settings) == ({"id": "bigint", "v": "string"}, by_time)
    alone = {"type": "struct", "fields": [{"field": "value", "type": "int64"}], "field": "w"}  # ScyllaDB's
    image["fields"] = [{**alone, "name": "c.s.a.w.Cell"}, {**alone, "name": "c.s.a.u", "field": "u"}]
    table = found("debezium", {"schema": {"fields": [image]}, "payload": payload})["s.a"]
    assert table.columns == {"w": "bigint", "u": "string"}
    document = {"op": "c", "after": '{"_id": {"$oid": "5f"}, "n": 1}', "source": {"db": "d", "collection": "c", "ts_ms": 7}}
    table = found("debezium", document)["d.c"]
    assert (table.keys, list(table.columns), table.settings) == (["_id"], ["_id", "n"], by_time)
    document["source"]["ord"] = 1
    assert found("debezium", document)["d.c"].settings == {}


def test_messages_without_time_or_position_are_taken_in_the_order_of_arrival() -> None:
    """What Flink writes: images and what happened, nothing else."""
    messages = {
        "debezium": {"before": None, "after": {"id": 1}, "op": "c"},
        "maxwell": {"data": {"id": 1}, "type": "insert"},
        "goldengate": {"before": None, "after": {"id": 1}, "op_type": "I"},
        "canal": {"data": [{"id": 1}], "type": "INSERT"},
    }
    for message_format, message in messages.items():
        assert found(message_format, message)["t"].settings == {"sequence_by": ["_arrival"]}
    assert found("debezium", {"after": {"id": 1}, "before": None})["t"].settings == {"sequence_by": ["_arrival"]}


def test_an_order_of_arrival_is_told(new_project):
    placed, unplaced = ({"type": "insert", "table": t, "data": {"id": 1}, "ts": 1, "primary_key_columns": ["id"]} for t in "ab")
    lines = [json.dumps(placed | {"position": "bin.1:4"}), json.dumps(unplaced)]
    (new_project / "landing/1.jsonl").write_text("\n".join(lines) + "\n")
    assert init(new_project, "f", "maxwell").exit_code == 0
    said = (
        "# The messages tell no place in a log of: b. Where `_arrival` orders, what comes later is newer, and what comes twice "
        "is applied twice (docs/formats/maxwell.md).\n"
    )
    assert said in (new_project / "models/f/_sources.yml").read_text()


def test_what_is_no_message_of_the_format_is_counted() -> None:
    assert discovery.discover("canal", ["{", "[]", "", '{"data": 1}', '{"data": {"id": 1}, "type": "INSERT"}']).unread == 4
    document = {"op": "c", "after": '{"_id"', "source": {"db": "d", "collection": "c"}}
    read = discovery.discover("debezium", [json.dumps(document)])
    assert (read.tables, read.unread) == ({}, 1)
    with pytest.raises(OperationError, match="Format `mine` tells nothing"):
        discovery.discover("mine", [])


@pytest.mark.parametrize("folder", sorted(path.name for path in (CASES / "feeds").glob("paimon__*")))
def test_every_captured_feed_tells_its_tables(folder: str) -> None:
    path = CASES / "feeds" / folder
    tell = json.loads((path / "expected.json").read_text())
    read = discovery.discover(tell["format"], discovery.lines_of(sorted(path.glob("input*"))), whole="t")
    assert read.tables
    assert read.unread == 0


def test_the_command_writes_a_source_that_needs_only_what_the_messages_do_not_tell(tmp_path: Path) -> None:
    capture = tmp_path / "1.jsonl.gz"
    with gzip.open(capture, "wt") as file:
        file.write((CASES / "feeds" / "paimon__canal__table_decimal_no_change" / "input-01.jsonl").read_text() + "\nnonsense\n")
    done = CliRunner().invoke(main, ["discover", "canal", str(capture), "--feed", "shop", "--location", "landing"])
    assert done.exit_code == 0
    assert "1 line could not be read as canal, the first is 1.jsonl.gz, line 3." in done.stderr
    assert yaml.safe_load(done.stdout)["sources"] == [
        {
            "name": "shop",
            "config": {"meta": {"cdc": {"format": "canal", "location": "landing"}}},
            "tables": [
                {
                    "name": "decimal_no_change",
                    "config": {"meta": {"cdc": {"keys": ["k"]}}},
                    "columns": [{"name": "k", "data_type": "int"}, {"name": "v", "data_type": "decimal(10,2)"}],
                }
            ],
        }
    ]
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    assert "No line" in CliRunner().invoke(main, ["discover", "canal", str(empty)]).stderr


def wal2json(name: str, id: int) -> str:
    columns = [{"name": "id", "type": "integer", "value": id}, {"name": "n", "type": "text", "value": "x"}]
    keys = [{"name": "id", "type": "integer"}]
    return json.dumps({"action": "I", "schema": "public", "table": name, "lsn": "0/1", "columns": columns, "pk": keys})


@pytest.fixture
def new_project(tmp_path):
    (tmp_path / "dbt_project.yml").write_text("name: mine\nversion: '1'\nmodel-paths: [models]\n")
    (tmp_path / "landing").mkdir()
    return tmp_path


def init(project, feed, message_format, location="landing", *more):
    given = ["--format", message_format, "--location", location, "--project-dir", str(project), *more]
    return CliRunner().invoke(main, ["init", feed, *given])


def test_init_writes_the_source_of_a_feed_and_its_models(new_project):
    (new_project / "landing/0001.jsonl").write_text(wal2json("customer", 1) + "\n" + wal2json("invoice", 1) + "\n")
    (new_project / "landing/_half").write_text("no change set")
    done = init(new_project, "shop", "wal2json_v2")
    assert done.exit_code == 0, done.output
    assert "wrote models/shop/_sources.yml: 2 tables\n" in done.output
    assert "stg_shop__customer.sql\n" in done.output
    validated = CliRunner().invoke(main, ["validate", "--project-dir", str(new_project)])
    assert "1 feed, 2 tables: no problems found." in validated.output
    other_case = init(new_project, "Shop", "wal2json_v2").stderr
    assert other_case.startswith("There is a feed shop already. Add tables to models/shop/_sources.yml, or give the new feed")
    again = init(new_project, "shop", "wal2json_v2")
    assert again.exit_code == 1
    assert "There is a feed shop already. Add tables to " in again.stderr
    assert "let --force write it again" in again.stderr


def test_a_feed_that_lacks_settings_stops_no_other(new_project):
    (new_project / "landing/1.jsonl").write_text(json.dumps({"id": 1, "op": "I", "at": "2026-01-01"}) + "\n")
    done = init(new_project, "visit", "rows")
    assert done.exit_code == 2
    assert "wrote models/visit/_sources.yml: 1 table\n" in done.stdout
    path = new_project / "models/visit/_sources.yml"
    lines = path.read_text().splitlines()
    assert lines[0] == "# Not read as long as it says `enabled: false`."
    table = next(number for number, line in enumerate(lines, 1) if line == "  - name: visit")
    assert "`keys` is missing. Give the columns that identify a row, e.g. [id]; or say" in done.stderr
    assert f"(models/visit/_sources.yml:{table + 3})" in done.stderr
    assert not list((new_project / "models/visit").rglob("*.sql"))
    validated = CliRunner().invoke(main, ["validate", "--project-dir", str(new_project)])
    assert validated.output.endswith("No feeds (with `enabled: false`: visit): no problems found.\n")

    (new_project / "messages").mkdir()
    (new_project / "messages/1.jsonl").write_text(wal2json("invoice", 1) + "\n")
    assert init(new_project, "shop", "wal2json_v2", "messages").exit_code == 0
    validated = CliRunner().invoke(main, ["validate", "--project-dir", str(new_project)])
    assert "1 feed, 1 table; with `enabled: false`: visit: no problems found." in validated.output
    refused = init(new_project, "visit", "rows")
    assert "There is a feed visit already." in refused.stderr

    assert "Note: not read yet: feed visit, table visit: `sequence_by` is missing." in validated.output

    filled_in = path.read_text().replace("cdc: {}", "cdc: {keys: [id], sequence_by: [at], operation: op}")
    path.write_text(filled_in.replace("    enabled: false\n", ""))
    generated = CliRunner().invoke(main, ["generate", "--project-dir", str(new_project)])
    assert "wrote models/visit/final/final_visit.sql" in generated.output


def test_init_of_a_feed_is_not_stopped_by_what_others_lack(new_project):
    other = new_project / "models/other/_sources.yml"
    other.parent.mkdir(parents=True)
    other.write_text(yaml.safe_dump({"sources": [source("other", tables={"invoice": {}, "note": {}})]}))
    (new_project / "landing/1.jsonl").write_text(wal2json("invoice", 1) + "\n")
    done = init(new_project, "shop", "wal2json_v2")
    assert (done.exit_code, done.stderr) == (0, "")
    (table,) = yaml.safe_load((new_project / "models/shop/_sources.yml").read_text())["sources"][0]["tables"]
    assert table["config"]["meta"]["cdc"] == {"keys": ["id"], "final_name": "final_shop_invoice"}


def test_init_proposes_names_of_finals_that_no_other_model_has(new_project):
    (new_project / "landing/1.jsonl").write_text("".join(wal2json(name, 1) + "\n" for name in ("a", "b", "c")))
    mine = new_project / "models/marts/FINAL_B.sql"
    mine.parent.mkdir(parents=True)
    mine.write_text("select 1")
    assert init(new_project, "one", "wal2json_v2").exit_code == 0
    (mine.parent / "final_two_c.sql").write_text("select 1")
    assert init(new_project, "two", "wal2json_v2").exit_code == 0
    finals = sorted(path.name for path in new_project.rglob("final_*.sql"))
    assert finals == [
        "final_a.sql",
        "final_c.sql",
        "final_one_b.sql",
        "final_two_a.sql",
        "final_two_b.sql",
        "final_two_c.sql",
        "final_two_c_2.sql",
    ]
    assert "2 feeds, 6 tables: no problems" in CliRunner().invoke(main, ["validate", "--project-dir", str(new_project)]).output


def test_a_final_that_a_sheet_names_as_another_feed_does_is_a_problem_of_the_new_feed(new_project):
    (new_project / "landing/1.jsonl").write_text(wal2json("a", 1) + "\n")
    assert init(new_project, "one", "wal2json_v2").exit_code == 0
    sheet = new_project / "tables.csv"
    sheet.write_text("table,final_name\na,final_a\n")
    done = init(new_project, "earlier", "wal2json_v2", "landing", "--from-csv", str(sheet))
    assert done.stderr.startswith("feed earlier, table a: its model final_a is also a model of feed one, table a.")
    validated = CliRunner().invoke(main, ["validate", "--project-dir", str(new_project)])
    assert "1 feed, 1 table; with `enabled: false`: earlier: no problems" in validated.output


def test_init_gives_a_table_a_name_that_models_can_have(new_project):
    for folder in ("my-table", "my_table", "visit [1]"):
        (new_project / "landing" / folder).mkdir()
        (new_project / "landing" / folder / "1.jsonl").write_text(wal2json(folder, 1) + "\n")
    (new_project / "mixed").mkdir()
    (new_project / "mixed/1.jsonl").write_text(wal2json("visit [1]", 1) + "\n")
    assert init(new_project, "f", "wal2json_v2").exit_code == 0
    assert init(new_project, "m", "wal2json_v2", "mixed").exit_code == 0

    def names(feed):
        tables = yaml.safe_load((new_project / f"models/{feed}/_sources.yml").read_text())["sources"][0]["tables"]
        return {table["name"]: table["config"]["meta"]["cdc"].get("source_table") for table in tables}

    assert names("f") == {"my_table_2": "my-table", "my_table": None, "visit_1": "visit [1]"}
    assert names("m") == {"visit_1": "public.visit [1]"}


def test_init_with_force_writes_a_source_again(new_project):
    change_set = new_project / "landing/1.jsonl"
    change_set.write_text(wal2json("a", 1) + "\n" + wal2json("b", 1) + "\n")
    assert init(new_project, "f", "wal2json_v2").exit_code == 0
    source = new_project / "models/f/_sources.yml"
    source.write_text(source.read_text().replace("keys:", "key:"))
    change_set.write_text(wal2json("a", 1) + "\n" + wal2json("c", 1) + "\n")
    edited = new_project / "models/f/final/final_a.sql"
    edited.write_text(edited.read_text() + "-- mine\n")
    done = init(new_project, "f", "wal2json_v2", "landing", "--force")
    assert "models/f/final/final_a.sql: was edited and is kept; `delta-cdc generate --force` overwrites it" in done.stderr
    assert "removed models/f/staging/stg_f__b.sql" in done.output
    assert "wrote models/f/staging/stg_f__c.sql" in done.output
    assert edited.read_text().endswith("-- mine\n")

    before = source.read_text()
    change_set.write_text(json.dumps({"id": 1}) + "\n")
    kept = init(new_project, "f", "rows", "landing", "--force")
    assert kept.exit_code == 2
    assert "models/f/_sources.yml is as it was: the feed's models need it. Give the settings with --from-csv.\n" in kept.stderr
    assert source.read_text() == before
    sheet = new_project / "tables.csv"
    sheet.write_text("table,keys,sequence_by\nf,id,at\n")
    wrong = init(new_project, "f", "rows", "landing", "--force", "--from-csv", str(sheet)).stderr
    assert f"feed f, table f: `sequence_by` names `at`, which is no column. Known: `id`. ({sheet})\n" in wrong
    assert wrong.endswith(f"as it was: the feed's models need it. Put {sheet} right, and give it again.\n")


def test_init_on_a_full_disk_leaves_the_source_as_it_was(new_project, monkeypatch):
    change_set = new_project / "landing/1.jsonl"
    change_set.write_text(wal2json("a", 1) + "\n")
    assert init(new_project, "f", "wal2json_v2").exit_code == 0
    path = new_project / "models/f/_sources.yml"
    before = path.read_text()
    change_set.write_text(wal2json("b", 1) + "\n")

    def full(file, text, *_, **__):
        with open(file, "w") as written:
            written.write(str(text)[:9])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "write_bytes", full)
    done = init(new_project, "f", "wal2json_v2", "landing", "--force")
    assert (done.exit_code, done.stderr) == (1, f"{path} cannot be written: No space left on device.\n")
    assert path.read_text() == before
    assert not [each for each in path.parent.iterdir() if each.name.endswith(".new")]


def test_init_replaces_no_source_that_may_not_be_written(new_project, monkeypatch):
    (new_project / "landing/1.jsonl").write_text(wal2json("a", 1) + "\n")
    assert init(new_project, "f", "wal2json_v2").exit_code == 0
    path = new_project / "models/f/_sources.yml"
    before, opened = path.read_text() + "# by hand\n", Path.open
    path.write_text(before)

    def refused(file, mode="r", *args, **kwargs):
        if file == path and mode != "r":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(file, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refused)
    done = init(new_project, "f", "wal2json_v2", "landing", "--force")
    assert (done.exit_code, done.stderr) == (1, f"{path} cannot be written: Permission denied.\n")
    assert path.read_text() == before


def test_init_writes_over_no_source_of_another_feed(new_project):
    both = [source("f"), source("g", tables={"note": {"keys": ["id"], "sequence_by": ["seq"]}})]
    path = new_project / "models/f/_sources.yml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"sources": both}))
    (new_project / "landing/1.jsonl").write_text(wal2json("a", 1) + "\n")
    for feed in ("f", "g"):
        done = init(new_project, feed, "wal2json_v2", "landing", "--force")
        assert f"There is a feed {feed} already. Add tables to models/f/_sources.yml, or give" in done.stderr


def test_init_says_that_it_reads_files_of_this_machine(new_project):
    done = init(new_project, "shop", "wal2json_v2", "s3a://bucket/landing")
    assert done.exit_code == 1
    assert done.stderr.startswith("`--location` is s3a://bucket/landing; init looks at files on this machine.")


def test_init_knows_a_feed_with_a_folder_for_each_table(new_project):
    event = {"op": "c", "ts_ms": 1, "source": {"lsn": 1}, "after": {"id": 1}}
    for table in ("one", "two"):
        (new_project / "landing" / table).mkdir()
        (new_project / "landing" / table / "1.jsonl").write_text(json.dumps(event) + "\n")
    done = init(new_project, "f", "debezium")
    source = (new_project / "models/f/_sources.yml").read_text()
    assert "location: landing/{table}" in source, done.output
    assert "# The messages tell no key of: one, two." in source
    assert done.exit_code == 2
    assert "feed f, table one: " in done.stderr


def test_init_says_which_folders_it_does_not_look_into(new_project):
    (new_project / "landing/invoice").mkdir()
    (new_project / "landing/invoice/1.jsonl").write_text('{"id": 1}\n')
    (new_project / "landing/README.md").write_text("What is here.\n")
    said = "landing holds folders too, not looked into: invoice. If each is a table's, say `--location 'landing/{table}'`.\n"
    assert init(new_project, "f", "rows").stderr.endswith(said)
    assert "wrote models/f/_sources.yml: 1 table\n" in init(new_project, "f", "rows", "landing/{table}").stdout
    assert "location: landing/{table}\n" in (new_project / "models/f/_sources.yml").read_text()
    (new_project / "landing/README.md").write_text('{"id": 1}\n')
    assert f"Note: {said}" in init(new_project, "g", "rows").stdout
    (new_project / "landing/invoice/1.jsonl").unlink()
    init(new_project, "h", "rows", "landing/{table}")
    assert "location: landing\n" in (new_project / "models/h/_sources.yml").read_text()


def test_init_says_which_folders_told_no_table(new_project):
    for path, text in {"invoice/1.jsonl": '{"id": 1}\n', "customer/2026/1.jsonl": '{"id": 1}\n', "event/1.jsonl": ""}.items():
        (new_project / "landing" / path).parent.mkdir(parents=True)
        (new_project / "landing" / path).write_text(text)
    said = "Note: landing holds folders that told no table, so none is configured for them: customer, event. Of a table's folder "
    assert said in init(new_project, "f", "rows").stdout
    (new_project / "sheet.csv").write_text("table,keys,sequence_by\ninvoice,id,id\n")
    assert said in init(new_project, "g", "rows", "landing", "--from-csv", str(new_project / "sheet.csv")).stdout


def test_init_passes_over_hidden_folders(new_project):
    for table in ("one", "_archive", ".tmp"):
        (new_project / "landing" / table).mkdir()
        (new_project / "landing" / table / "1.jsonl").write_text(wal2json("one", 1) + "\n")
    assert "1 table\n" in init(new_project, "f", "wal2json_v2").output


@pytest.mark.parametrize("keys", [[1], "id"])
def test_keys_that_are_no_names_are_not_of_the_format(keys):
    message = {"type": "INSERT", "data": [{"id": "1"}], "database": "d", "table": "t", "pkNames": keys}
    assert discovery.discover("canal", [json.dumps(message)]).unread == 1


@pytest.mark.parametrize(
    ("message_format", "message"),
    [
        ("maxwell", '{"type": "insert", "table": "t", "data": [1]}'),
        ("maxwell", '{"type": "insert", "table": "t", "data": "encrypted"}'),
        ("goldengate", '{"op_type": "I", "table": ["t"], "after": {"id": 1}}'),
        ("wal2json_v2", '{"action": "I", "table": "t", "columns": [{"name": 5, "type": "int"}]}'),
        ("trigger_audit", '{"op": "I", "table_name": "t", "record": "[1]"}'),
        ("rows", "[" * 100_000),
    ],
)
def test_what_is_in_the_place_of_a_name_or_a_row_is_not_of_the_format(message_format, message):
    read = discovery.discover(message_format, [message])
    assert (read.tables, read.unread) == ({}, 1)


def test_init_knows_folders_that_have_other_names_than_their_tables(new_project):
    (new_project / "landing/shop.public.invoice").mkdir()
    (new_project / "landing/shop.public.invoice/1.jsonl").write_text(wal2json("invoice", 1) + "\n")
    assert init(new_project, "shop", "wal2json_v2").exit_code == 0
    (source,) = yaml.safe_load((new_project / "models/shop/_sources.yml").read_text())["sources"]
    assert source["config"]["meta"]["cdc"]["location"] == "landing/{table}"
    assert source["tables"][0]["config"]["meta"]["cdc"]["source_table"] == "shop.public.invoice"


@pytest.mark.parametrize("tables", [("invoice", "invoice"), ("invoice", "invoice,customer")])
def test_init_does_not_take_folders_of_change_sets_for_those_of_tables(new_project, tables):
    for day, names in enumerate(tables):
        (new_project / f"landing/{day}").mkdir()
        lines = "".join(wal2json(name, 1) + "\n" for name in names.split(","))
        (new_project / f"landing/{day}/1.jsonl").write_text(lines)
    done = init(new_project, "shop", "wal2json_v2")
    assert done.exit_code == 1
    assert "are not one for each table: 1 holds public.invoice" in done.stderr
    assert "say `unit: folder` and `location: " in done.stderr


@pytest.mark.parametrize(
    ("days", "marker", "setting"),
    [
        (["2026-11-27"], False, {"sub_folders": True}),
        (["20261127", "20261128"], False, {"sub_folders": True}),
        (["dt=2026-11-27"], True, {"unit": "folder"}),
        (["hour=09", "hour=10"], True, {"unit": "folder"}),
    ],
)
def test_init_does_not_take_folders_of_a_time_for_those_of_tables(new_project, days, marker, setting):
    for day in days:
        (new_project / f"landing/{day}").mkdir()
        (new_project / f"landing/{day}/1.jsonl").write_text(wal2json("invoice", 1) + "\n")
        if marker:
            (new_project / f"landing/{day}/_SUCCESS").touch()
    for feed, message_format, name in (("shop", "wal2json_v2", "invoice"), ("flat", "rows", "flat")):
        init(new_project, feed, message_format)
        (source,) = yaml.safe_load((new_project / f"models/{feed}/_sources.yml").read_text())["sources"]
        assert source["config"]["meta"]["cdc"] == {"format": message_format, "location": "landing"} | setting
        assert [table["name"] for table in source["tables"]] == [name]


@pytest.mark.parametrize(("files", "setting"), [(("1", "2"), {"unit": "folder"}), (("1",), {"sub_folders": True})])
@pytest.mark.parametrize("marked", [(), ("dt=2026-11-27",)])
def test_S10_init_takes_no_part_of_a_whole_copy_for_one(new_project, files, setting, marked):
    for day in ("dt=2026-11-27", "dt=2026-11-28"):
        (new_project / f"landing/{day}").mkdir()
        for name in files:
            (new_project / f"landing/{day}/{name}.jsonl").write_text(json.dumps({"id": int(name)}) + "\n")
        if day in marked:
            (new_project / f"landing/{day}/_SUCCESS").touch()
    init(new_project, "erp", "snapshots")
    (source,) = yaml.safe_load((new_project / "models/erp/_sources.yml").read_text())["sources"]
    assert source["config"]["meta"]["cdc"] == {"format": "snapshots", "location": "landing"} | setting


@pytest.mark.parametrize(
    ("name", "content"),
    [("1.jsonl", '{"a": "\xfc"}\n'.encode("latin-1")), ("1.gz", b"plain"), ("1.gz", gzip.compress(b'{"a": 1}\n' * 99)[:-12])],
    # by name: gzip writes the time, and pytest's processes must collect the same tests
    ids=["latin-1", "not gzip", "cut gzip"],
)
def test_init_says_which_file_is_no_text(new_project, name, content):
    (new_project / "landing" / name).write_bytes(content)
    done = init(new_project, "shop", "wal2json_v2")
    assert done.exit_code == 1
    assert done.stderr.startswith(str(new_project / "landing" / name) + " cannot be read as text in UTF-8, plain or gzipped: ")


def test_a_file_may_begin_with_a_byte_order_mark(new_project):
    (new_project / "landing/1.jsonl").write_text(wal2json("invoice", 1) + "\n", encoding="utf-8-sig")
    assert "1 table\n" in init(new_project, "shop", "wal2json_v2").output


def test_init_takes_no_secret_in_plain_text(new_project):
    for given in (["--option", "password=hunter2"], ["--jdbc", "jdbc:oracle:thin:scott/tiger@//h:1/s"]):
        done = init(new_project, "shop", "rows", "landing/{table}", "--schema", "s", "--jdbc", "jdbc:x://h/d", *given)
        assert (done.exit_code, "holds a secret. Set a variable of the environment" in done.stderr) == (1, True), done.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--schema", "s"], "--schema and --option are of a database: name it with --jdbc."),
        (["--option", "user=reader"], "--schema and --option are of a database: name it with --jdbc."),
        (["--jdbc", "jdbc:x://h/d", "--option", "reader"], "--option takes NAME=VALUE, e.g. user=reader, and one has no `=`."),
        (["--jdbc", "postgresql://db/shop"], "--jdbc takes a URL that begins with `jdbc:`, e.g. jdbc:postgresql://db/shop."),
    ],
)
def test_options_of_a_database_want_one(new_project, given, said):
    done = init(new_project, "shop", "rows", "landing", *given)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_init_names_the_only_table_of_flat_rows_after_the_feed_and_what_its_columns_may_be(new_project):
    line = {"customer_id": 1, "op": "I", "updated_at": "2026-01-01", "options": "x"}
    (new_project / "landing/1.jsonl").write_text(json.dumps(line) + "\n")
    done = init(new_project, "customer", "rows")
    source = (new_project / "models/customer/_sources.yml").read_text()
    assert "# customer, by the names alone, perhaps keys: customer_id; sequence_by: updated_at; operation: op.\n" in source
    assert "- name: customer\n    config:" in source
    assert "feed customer, table customer: `keys` is missing." in done.stderr
    closing = "so models/customer/_sources.yml has `enabled: false`: put it right, take that line out, then `delta-cdc generate`."
    assert done.stderr.endswith(closing + "\n")


def test_init_takes_the_columns_of_csv_files_from_their_headers(new_project):
    (new_project / "landing/1.csv").write_text('id;total;"wher;e";op\n1;2.50;a;I\n')
    with gzip.open(new_project / "landing/2.csv.gz", "wt") as file:
        file.write('id;total;op;changed_at\n3000000000;-13;"U\n;";2026-01-31T10:00:00Z\nno row\n')
    done = init(new_project, "invoice", "rows")
    source = (new_project / "models/invoice/_sources.yml").read_text()
    assert yaml.safe_load(source)["sources"][0]["config"]["meta"]["cdc"] == {
        "format": "rows", "location": "landing", "file_format": "csv", "csv_options": {"sep": ";"},
    }  # fmt: skip
    (table,) = yaml.safe_load(source)["sources"][0]["tables"]
    assert [column["name"] for column in table["columns"]] == ["id", "total", "wher;e", "op", "changed_at"]
    assert {column["data_type"] for column in table["columns"]} == {"string"}
    assert "# The files tell no key of: invoice." in source
    assert "# invoice, by the values of 2 rows alone, perhaps id bigint, total decimal(18,2), changed_at timestamp. A d" in source
    assert "feed invoice, table invoice: `keys` is missing." in done.stderr


def test_init_takes_fields_that_tabs_part(new_project):
    (new_project / "landing/1.tsv").write_text("id\tname\tat\n1\tA, B\t2026-01-31\n")
    sheet = new_project / "tables.csv"
    sheet.write_text("table,keys,sequence_by\nf,id,at\n")
    done = init(new_project, "f", "rows", "landing", "--from-csv", str(sheet))
    assert done.exit_code == 0, done.output
    (feed,) = yaml.safe_load((new_project / "models/f/_sources.yml").read_text())["sources"]
    assert feed["config"]["meta"]["cdc"]["csv_options"] == {"sep": "\t"}
    assert [column["name"] for column in feed["tables"][0]["columns"]] == ["id", "name", "at"]


@pytest.mark.parametrize("files", [("1.csv", "2.csv"), ("a/1.csv", "b/1.csv"), ("b/1.csv", "a/1.csv")])
def test_init_takes_no_files_that_part_their_fields_in_different_ways_for_one_feed(new_project, files):
    for name, header in zip(files, ("id;at", "id,at"), strict=True):
        (new_project / "landing" / name).parent.mkdir(exist_ok=True)
        (new_project / "landing" / name).write_text(f"{header}\n")
    done = init(new_project, "f", "rows")
    said = "Files that are written in different ways are two feeds: give each its own folder."
    assert (done.exit_code, said in done.stderr) == (1, True), done.output


def test_a_csv_file_of_one_field_tells_no_separator(new_project):
    for name, header in {"a/1.csv": "id", "b/1.csv": "id;at", "c/1.csv": "id", "c/2.csv": "id;at"}.items():
        (new_project / "landing" / name).parent.mkdir(exist_ok=True)
        (new_project / "landing" / name).write_text(f"{header}\n")
    init(new_project, "f", "rows")
    (feed,) = yaml.safe_load((new_project / "models/f/_sources.yml").read_text())["sources"]
    assert feed["config"]["meta"]["cdc"]["csv_options"] == {"sep": ";"}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("id,name,,x", "its header (id,name,,x) has no name for field 3. Give each column a name of its own."),
        ("id,Name,name", "its header (id,Name,name) names `name` twice (to Spark, case makes no difference)."),
        ("", "1.csv: it is empty, without a header. Take it away: a run stops at it too."),
        ("op~at~id", "1.csv: its header ('op~at~id') is one field; `delta-cdc init` knows commas, semicolons, tabs and bars. L"),
        ("op\x01at", "bars. Let it look at a copy with one of them for '\\x01', then add `csv_options: {sep: …}` to the source."),
    ],
)
def test_init_says_what_is_wrong_with_a_header(new_project, header, said):
    (new_project / "landing/1.csv").write_text(f"{header}\n")
    assert said in init(new_project, "f", "rows").stderr


def test_init_asks_for_no_setting_that_the_format_does_not_take(new_project):
    (new_project / "landing/1.jsonl").write_text('{"id": 1}\n')
    assert init(new_project, "f", "snapshots").exit_code == 2
    assert "# The messages tell no key of: f. Set `keys`.\n" in (new_project / "models/f/_sources.yml").read_text()


def test_init_tells_what_values_look_like_where_messages_tell_no_types(new_project):
    message = {"database": "db", "table": "t", "type": "insert", "data": {"id": 1, "at": "2026-01-01 10:00:00", "sum": 1.5}}
    (new_project / "landing/1.jsonl").write_text(json.dumps(message | {"primary_key_columns": ["id"], "position": "a:1"}) + "\n")
    init(new_project, "shop", "maxwell")
    source = (new_project / "models/shop/_sources.yml").read_text()
    assert "# t, by the values of 1 row alone, perhaps id bigint, at timestamp_ntz, sum decimal(18,1). A decimal rounds" in source
    assert "# No type was told of 3 columns, listed as string: db.t.id, db.t.at, db.t.sum\n" in source


def test_of_many_rows_the_first_tell_what_values_look_like():
    looks = Looks()
    for number in range(MOST + 1):
        looks.add({"id": number if number < MOST else "no number"})
    assert (looks.rows, looks.types()) == (MOST, {"id": "bigint"})


def test_goldengate_without_a_schema_tells_what_values_look_like():
    operation = {"table": "O.T", "op_type": "U", "pos": "1", "before": {"ID": 1}, "after": {"ID": 2, "V": "2026-01-31"}}
    assert found("goldengate", operation)["O.T"].looks.types() == {"ID": "bigint", "V": "date"}


def test_a_decimal_leaves_room():
    looks = Looks()
    looks.add({"a": "1.5", "b": "12345678901234567.89", "c": "1" * 37 + ".25"})
    assert looks.types() == {"a": "decimal(18,1)", "b": "decimal(38,2)"}


@pytest.mark.parametrize(
    ("message", "message_format", "given"),
    [
        (DEBEZIUM, "debezium", "wal2json_v2"),
        (MAXWELL, "maxwell", "canal"),
        (CANAL, "canal", "maxwell"),
        ({"table": "O.T", "op_type": "I", "after": {"ID": 1}, "pos": "1"}, "goldengate", "maxwell"),
        ({"__$operation": 4, "__$start_lsn": "0x01", "id": 1}, "sqlserver_ct", "debezium"),
    ],
)
def test_init_says_of_which_format_messages_are(new_project, message, message_format, given):
    (new_project / "landing/1.jsonl").write_text(json.dumps(message) + "\n")
    done = init(new_project, "f", given)
    assert f"as a message of `{given}`. They are messages of `{message_format}`. Give that as the format.\n" in done.stderr
    note = f"Note: landing holds messages of the format `{message_format}`, which may tell more: `--format {message_format} "
    assert note in init(new_project, "r", "rows").stdout
    assert f"# The messages are of the format {message_format} too" in (new_project / "models/r/_sources.yml").read_text()


def test_init_says_that_envelopes_without_a_table_are_of_another_format(new_project):
    line = {"table": "O.T", "op_type": "I", "after": {"ID": 1}, "pos": "1", "primary_keys": ["ID"]}
    (new_project / "landing/1.jsonl").write_text(json.dumps(line) + "\n")
    assert "Note: landing holds messages of the format `goldengate`" in init(new_project, "f", "debezium").stdout
    assert "Note:" not in init(new_project, "g", "goldengate").stdout


@pytest.mark.parametrize("in_delta", [False, True], ids=["files", "Delta table"])
def test_init_has_messages_that_name_no_table_read_as_those_of_their_folder(new_project, in_delta):
    message = json.dumps({"before": None, "after": {"id": 1}, "op": "c"})  # as Flink writes it
    (new_project / "landing/orders").mkdir()
    if in_delta:
        write_deltalake(new_project / "landing/orders", polars.DataFrame({"value": [message]}))
    else:
        (new_project / "landing/orders/1.jsonl").write_text(message + "\n")
    for location in ("landing/orders", "landing/orders/"):
        init(new_project, "shop", "debezium", location, "--force")
        (feed,) = yaml.safe_load((new_project / "models/shop/_sources.yml").read_text())["sources"]
        assert feed["config"]["meta"]["cdc"]["location"] == "landing/{table}"
        (table,) = feed["tables"]
        assert (table["name"], table["config"]["meta"]["cdc"]["source_table"]) == ("shop", "orders")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1}, {"id": 2}]', "1.json is one array; each line has to be an object: `jq -c '.[]' 1.json > 1.jsonl`."),
        ('{\n "id": 1\n}\n', "1.json is one object on several lines; each line has to be an object: `jq -c . 1.json > 1.jsonl`."),
        ("id: 1\n", "A line is a JSON object; files of other kinds are told by their names"),
    ],
)
def test_init_says_what_is_no_line_of_json(new_project, text, said):
    (new_project / "landing/1.json").write_text(text)
    assert said in init(new_project, "f", "rows").stderr


def test_init_says_which_line_it_could_not_read(new_project):
    (new_project / "landing/1.jsonl").write_text('{"id": 1}\n')
    (new_project / "landing/2.jsonl").write_text('{"id": 1}\n\nhalf {\n{\n')
    said = init(new_project, "f", "rows").stdout
    assert "1 table; 2 lines could not be read as rows, the first is 2.jsonl, line 3\n" in said


def test_init_says_how_to_begin_with_csv_of_another_encoding(new_project):
    (new_project / "landing/1.csv").write_bytes("id,größe\n1,ü\n".encode("latin-1"))
    said = init(new_project, "f", "rows").stderr
    assert "(`iconv -f iso-8859-1 -t utf-8`), then add `csv_options: {encoding: iso-8859-1}` to the source." in said


def test_init_says_that_a_location_is_a_file_or_holds_no_delta_table(new_project):
    (new_project / "landing/1.jsonl").write_text('{"id": 1}\n')
    said = init(new_project, "f", "rows", "landing/1.jsonl").stderr
    assert f"it is a file. Name its folder, {new_project / 'landing'}." in said
    assert "landing holds no Delta table, nor does a folder in it" in init(new_project, "f", "delta_cdf").stderr


@pytest.mark.parametrize("name", ["cdc_ts", "dms_at", "dms_timestamp", "transact_id", "load_time", "ingest_ts"])
def test_init_proposes_the_columns_by_which_others_order(new_project, name):
    (new_project / "landing/1.jsonl").write_text(json.dumps({"order_id": 1, name: "x"}) + "\n")
    init(new_project, "orders", "rows")
    source = (new_project / "models/orders/_sources.yml").read_text()
    assert f"# orders, by the names alone, perhaps keys: order_id; sequence_by: {name}.\n" in source


def test_init_proposes_the_columns_by_which_others_tell_that_a_row_is_gone(new_project):
    line = {"id": 1, "at": "x", "_sdc_deleted_at": None, "isDeleted": "false", "deleted_by": "y"}
    (new_project / "landing/1.jsonl").write_text(json.dumps(line) + "\n")
    init(new_project, "orders", "rows")
    proposed = "deleted_when: _sdc_deleted_at is not null, try_cast(isDeleted as boolean)"
    source = (new_project / "models/orders/_sources.yml").read_text()
    assert f"# orders, by the names alone, perhaps keys: id; sequence_by: at; {proposed}.\n" in source


def test_init_says_that_a_csv_file_has_no_header(new_project):
    (new_project / "landing/1.csv").write_text("1,2026-01-01,a\n2,2026-01-02,b\n")
    done = init(new_project, "f", "rows")
    assert done.exit_code == 1
    assert "1.csv: its first line (1,2026-01-01,a) is no header." in done.stderr


def test_comments_of_a_source_end_where_they_begin(new_project):
    (new_project / "landing/1.jsonl").write_text(json.dumps({"id": 1, "a\nb: [c": 2, "d\0": 3, "e\u2028f": 4}) + "\n")
    done = init(new_project, "f", "rows")
    assert "feed f, table f: `keys` is missing." in done.stderr
    text = (new_project / "models/f/_sources.yml").read_text()
    assert "# f, by the values of 1 row alone, perhaps id bigint, a b: [c bigint, d  bigint, e f bigint.\n" in text
    (table,) = yaml.safe_load(text)["sources"][0]["tables"]
    assert [column["name"] for column in table["columns"]] == ["id", "a\nb: [c", "d\0", "e\u2028f"]


def test_init_takes_the_header_of_a_csv_file_as_a_run_does(new_project):
    (new_project / "landing/1.csv").write_text('\n\nid,"Amount\n(EUR)",at\n1,2.50,2026-01-31\n')
    init(new_project, "f", "rows")
    text = (new_project / "models/f/_sources.yml").read_text()
    (table,) = yaml.safe_load(text)["sources"][0]["tables"]
    assert [column["name"] for column in table["columns"]] == ["id", "Amount\n(EUR)", "at"]
    assert "# f, by the values of 1 row alone, perhaps id bigint, Amount (EUR) decimal(18,2), at date." in text


@pytest.mark.parametrize(("text", "rows"), [("x" * 200_000, 0), ('"never closed,' + "x\n" * 100_000, 0), ("x" * 100_000, 1)])
def test_a_text_in_a_csv_file_may_be_long(new_project, text, rows):
    (new_project / "landing/1.csv").write_text(f"id,t\n{text},\n")
    done = init(new_project, "f", "rows")
    assert "`keys` is missing" in done.stderr
    (new_project / "landing/1.csv").write_text(f"{text},t\n")
    assert (": its first line (" in init(new_project, "g", "rows").stderr) == (rows == 0)


def test_init_takes_the_type_that_holds_what_older_and_newer_files_have(new_project):
    day, moment = {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-micros"}
    cents = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    for name, types in {"1": (day, "int"), "2": (moment, cents)}.items():
        fields = [{"name": "at", "type": types[0]}, {"name": "total", "type": types[1]}]
        with (new_project / f"landing/{name}.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [])
    init(new_project, "f", "rows")
    (table,) = yaml.safe_load((new_project / "models/f/_sources.yml").read_text())["sources"][0]["tables"]
    assert [column["data_type"] for column in table["columns"]] == ["timestamp", "decimal(12,2)"]


@pytest.mark.parametrize(("message_format", "flag"), [("oracle_cdc", "OPERATION$"), ("sqlserver_ct", "__$operation")])
def test_init_says_that_files_lack_the_column_of_their_format(new_project, message_format, flag):
    (new_project / "landing/1.csv").write_text("op,id\nI,1\n")
    done = init(new_project, "f", message_format)
    assert f"1.csv: none of its columns (op, id) is `{flag}`, which rows of `{message_format}` have. " in done.stderr
    (new_project / "landing/1.csv").unlink()
    with (new_project / "landing/1.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}, [])
    assert f"1.avro: none of its columns (id) is `{flag}`" in init(new_project, "f", message_format).stderr
    write_deltalake(new_project / "delta", polars.DataFrame({"id": [1]}))
    assert f"delta: none of its columns (id) is `{flag}`" in init(new_project, "f", message_format, "delta").stderr


def test_init_takes_columns_and_types_of_avro_files(new_project):
    fields = [
        {"name": "id", "type": "long"},
        {"name": "total", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}},  # Kafka Connect's
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "__$operation", "type": "int"},
    ]
    for table in ("one", "two"):
        (new_project / "landing" / table).mkdir()
        with (new_project / "landing" / table / "0001.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [])
    done = init(new_project, "f", "sqlserver_ct", "landing/{table}")
    source = (new_project / "models/f/_sources.yml").read_text()
    one, two = yaml.safe_load(source)["sources"][0]["tables"]
    assert (one["name"], two["name"]) == ("one", "two"), done.output
    assert {each["name"]: each["data_type"] for each in one["columns"]} == {
        "id": "bigint", "total": "decimal(9,2)", "sum": "string", "at": "timestamp",
    }  # fmt: skip
    (new_project / "landing/two/0001.avro").write_bytes(b"Obj")
    (new_project / "models/f/_sources.yml").unlink()
    broken = init(new_project, "f", "sqlserver_ct", "landing/{table}")
    assert "two/0001.avro cannot be read as Avro: " in broken.stderr


def test_init_says_which_formats_files_of_other_kinds_may_have(new_project):
    (new_project / "landing/1.parquet").write_bytes(b"PAR1")
    done = init(new_project, "f", "debezium")
    assert "are parquet; init looks into such files of the formats rows, snapshots, " in done.stderr
    assert "Write the source by hand: docs/formats/files.md." in done.stderr
    assert "What DMS writes to S3 is `--format rows`: docs/formats/dms.md." in init(new_project, "f", "dms").stderr
    (new_project / "landing/2.csv").write_text("id\n")
    assert "are not all of one kind: 1.parquet, 2.csv. " in init(new_project, "f", "rows").stderr


def test_init_looks_into_delta_tables(new_project):
    def written(folder: str, rows: dict[str, list[Any]], **properties: str) -> None:
        configuration = {f"delta.{name}": value for name, value in properties.items()}
        write_deltalake(new_project / folder, polars.DataFrame(rows), configuration=configuration)

    def source(feed: str) -> Any:
        return yaml.safe_load((new_project / f"models/{feed}/_sources.yml").read_text())["sources"][0]

    event = {"op": "c", "before": None, "source": {"lsn": 1, "table": "invoice"}, "after": {"id": 1, "line": 2, "total": "1.5"}}
    texts = {"key": [json.dumps({"id": 1, "line": 2}), None, "no JSON"], "value": [json.dumps(event), None, "cut {"]}
    written("landing", {"topic": ["t"] * 3, "partition": [0] * 3, "offset": [1, 2, 3], **texts})
    done = init(new_project, "shop", "debezium")
    assert (done.exit_code, "1 table; 1 line could not be read as debezium\n" in done.stdout) == (0, True), done.output
    assert "landing has no change data feed, by which a run reads it" in done.stdout
    assert source("shop")["config"]["meta"]["cdc"] == {
        "format": "debezium", "location": "landing", "file_format": "delta", "message_column": "value",
        "row_order": ["topic", "partition", "offset"],
    }  # fmt: skip
    (invoice,) = source("shop")["tables"]
    assert (invoice["name"], invoice["config"]["meta"]["cdc"]["keys"]) == ("invoice", ["id", "line"])
    assert "could be read as a message (JSON) of `wal2json_v2`" in init(new_project, "other", "wal2json_v2").stderr
    with_ids = {name: [b"\0\0\1\x86\xa1" + text.encode() for text in texts[name][:1]] for name in texts}  # JSON_SR
    written("registered", {"topic": ["t"], "partition": [0], "offset": [1], **with_ids})
    assert "1 table\n" in init(new_project, "ids", "debezium", "registered").stdout
    assert source("ids")["tables"][0]["config"]["meta"]["cdc"]["keys"] == ["id", "line"]

    typed = {"id": [1], "amount": [Decimal("1.50")], "tags": [["a"]], "place": [{"zip code": 1}]}
    for name in ("invoice", "order lines"):
        written(f"silver/{name}", typed, enableChangeDataFeed="true")
    sheet = new_project / "keys.csv"
    sheet.write_text("table,keys\ninvoice,id\norder lines,id\n")
    done = init(new_project, "silver", "delta_cdf", "silver", "--from-csv", str(sheet))
    assert (done.exit_code, "change data feed" in done.output) == (0, False), done.output
    invoice, lines = source("silver")["tables"]
    assert source("silver")["config"]["meta"]["cdc"] == {"format": "delta_cdf", "location": "silver/{table}"}
    assert lines["config"]["meta"]["cdc"] == {"source_table": "order lines", "keys": ["id"]}
    types = [column["data_type"] for column in invoice["columns"]]
    assert types == ["bigint", "decimal(38,2)", "array<string>", "struct<`zip code`: bigint>"]

    written("plain", {"a": [1], "b": ["x"]})
    assert "none of its columns is called `value`: a, b. " in init(new_project, "p", "debezium", "plain").stderr


@pytest.mark.parametrize("held", [{"topic": "invoice,customer"}, {"day1": "invoice", "day2": "invoice"}], ids=["mixed", "parts"])
def test_init_takes_no_delta_table_of_messages_for_that_of_one_table(new_project, held):
    for folder, names in held.items():
        events = [json.dumps({"op": "c", "source": {"lsn": 1, "table": name}, "after": {"id": 1}}) for name in names.split(",")]
        write_deltalake(new_project / "landing" / folder, polars.DataFrame({"value": events}))
    done = init(new_project, "shop", "debezium")
    last, names = list(held.items())[-1]
    assert done.exit_code == 1, done.output
    said = f"landing are not one for each table: {last} holds {names.replace(',', ', ')}. Make a Delta table that mixes tables"
    assert said in done.stderr
    assert init(new_project, "shop", "debezium", f"landing/{last}").exit_code == 2  # their keys are missing


def test_init_takes_settings_from_a_csv_file_with_a_row_a_table(new_project):
    for table in ("invoice", "event", "scratch"):
        (new_project / "landing" / table).mkdir()
        line = json.dumps({"op": "I", "at": "2026-01-01", "pos": 1, "id": 1, "day": "2026-01-01"})
        (new_project / "landing" / table / "1.jsonl").write_text(line + "\n")
    sheet = new_project / "tables.csv"
    sheet.write_text(
        "table,keys,sequence_by,partition_by,insert_only,operation,max_errors\n"
        'invoice,id,"at, pos","date_trunc(\'month\', day) as month",,op,0.1\n'
        "event,,at,,true,,\n"
    )
    done = init(new_project, "f", "rows", "landing", "--from-csv", str(sheet))
    assert done.exit_code == 0, done.output
    assert f"not in {sheet}, so not configured: scratch" in done.output
    event, invoice = yaml.safe_load((new_project / "models/f/_sources.yml").read_text())["sources"][0]["tables"]
    assert invoice["config"]["meta"]["cdc"] == {
        "keys": ["id"],
        "sequence_by": ["at", "pos"],
        "partition_by": ["date_trunc('month', day) as month"],
        "operation": "op",
        "max_errors": 0.1,
    }
    assert event["config"]["meta"]["cdc"] == {"sequence_by": ["at"], "insert_only": True}


def test_a_sheet_may_say_that_a_table_whose_messages_tell_a_key_has_none(new_project):
    (new_project / "landing/1.jsonl").write_text(wal2json("visit", 1) + "\n" + wal2json("invoice", 1) + "\n")
    sheet = new_project / "tables.csv"
    sheet.write_text("table,keyless,max_errors\nvisit,multiset,\ninvoice,,10\n")
    done = init(new_project, "f", "wal2json_v2", "landing", "--from-csv", str(sheet))
    assert done.exit_code == 0, done.output
    visit, invoice = yaml.safe_load((new_project / "models/f/_sources.yml").read_text())["sources"][0]["tables"]
    assert visit["config"]["meta"]["cdc"] == {"keyless": "multiset"}
    assert invoice["config"]["meta"]["cdc"] == {"keys": ["id"], "max_errors": 10}


def test_init_tells_all_that_is_wrong_with_a_csv_file(new_project):
    (new_project / "landing/t").mkdir()
    (new_project / "landing/t/1.jsonl").write_text('{"id": 1}\n')
    sheet = new_project / "tables.csv"
    sheet.write_text("table,key,old_keys\nt,id,{a: b\n,id,\nt,id,\nu,id,,more\n")
    done = init(new_project, "f", "rows", "landing", "--from-csv", str(sheet))
    assert done.exit_code == 1
    said = [line.removeprefix(f"{sheet}, ") for line in done.stderr.splitlines()]
    assert said == [
        "line 1: `key` is no setting. Did you mean `keys`?",
        "line 2: `old_keys` is '{a: b', which cannot be read.",
        "line 3: `table` is empty. Name the table, or take the row out.",
        "line 4: `t` is there twice. Make it one row.",
        'line 5: it has more cells than the first line. A list goes in quotes: "a, b".',
        f"{sheet}: no change set has a table `u`. Known: `t`.",
    ]
    sheet.write_text("table,keys\ntt,id\n")
    unknown = init(new_project, "f", "rows", "landing", "--from-csv", str(sheet))
    assert "no change set has a table `tt`. Did you mean `t`?" in unknown.stderr
    assert not (new_project / "models/f").exists()


def test_a_sheet_may_be_as_people_save_them(tmp_path):
    sheet = tmp_path / "tables.csv"
    sheet.write_text("Table;Keys;sequence_by;\r\ninv;id;at, pos;\r\n;;;\r\n")
    assert read_table_list(sheet, ["inv"]) == {"inv": {"keys": ["id"], "sequence_by": ["at", "pos"]}}
    sheet.write_text("table,keys,keys\ninv,id,ts\n")
    with pytest.raises(OperationError, match="line 1: `keys` is there twice"):
        read_table_list(sheet, ["inv"])
    sheet.write_text("table,alias,color,PK\ninv,i,red,id\n")
    with pytest.raises(OperationError) as caught:
        read_table_list(sheet, ["inv"])
    assert [line.partition("`")[2] for line in str(caught.value).splitlines()] == [
        "alias` is no setting. Did you mean `final_name`?",
        "color` is no setting. See docs/configuration.md, or `delta-cdc settings`.",
        "pk` is no setting. Did you mean `keys`?",
    ]
    sheet.write_text("table,keys\ninv,id\ndbo.inv,no\n")
    with pytest.raises(OperationError, match=r"`dbo.inv` is there twice, with its schema and without"):
        read_table_list(sheet, ["dbo.inv"])
    sheet.write_text("table,keys\n,\n")
    with pytest.raises(OperationError, match="below its first line it names no table"):
        read_table_list(sheet, ["inv"])
    for empty in ("", "\n\n"):
        sheet.write_text(empty)
        with pytest.raises(OperationError, match=r"tables\.csv is empty\. Its first line names the columns, e\.g\. table,keys"):
            read_table_list(sheet, ["inv"])
    sheet.write_text('table,keys\n"inv,id\n' + "note,id\n" * 20_000)
    with pytest.raises(OperationError, match=r"cannot be read as CSV: field larger than .*Look for a quote"):
        read_table_list(sheet, ["inv"])
    sheet.write_bytes("table,keys\ngröße,id\n".encode("latin-1"))
    with pytest.raises(OperationError, match="not UTF-8"):
        read_table_list(sheet, ["inv"])


@pytest.mark.parametrize(
    ("feed", "format", "location", "said"),
    [
        ("../f", "rows", "landing", "A feed's name"),
        ("f", "rowz", "landing", "Did you mean `rows`?"),
        ("f", "rows", "landin", "There is no change set in "),
    ],
)
def test_init_writes_nothing_where_it_cannot_begin(new_project, feed, format, location, said):
    (new_project / "models").mkdir()
    (new_project / "models/mine.yml").write_text("sources: 5")  # what is wrong elsewhere is not looked at
    done = init(new_project, feed, format, location)
    assert said in done.stderr
    assert not list((new_project / "models").rglob("_sources.yml"))


def test_init_looks_for_a_project_before_it_looks_for_change_sets(tmp_path):
    done = init(tmp_path, "f", "rows")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"There is no dbt project in {tmp_path}")


def test_init_says_what_it_cannot_read_or_write(new_project, monkeypatch):
    (new_project / "landing/1.jsonl").write_text(wal2json("customer", 1) + "\n")
    (new_project / "models").mkdir()
    (new_project / "models/shop").touch()
    done = init(new_project, "shop", "wal2json_v2")
    assert (done.exit_code, done.stderr) == (1, f"{new_project}/models/shop cannot be written: File exists.\n")

    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    done = init(new_project, "shop", "wal2json_v2")
    assert (done.exit_code, done.stderr) == (1, f"{new_project}/landing cannot be read: Permission denied.\n")


def test_init_says_that_a_folder_holds_nothing(new_project):
    done = init(new_project, "f", "debezium", "landin")
    assert "There is no change set in " in done.stderr


def test_init_looks_into_folders_in_folders_where_messages_tell_their_tables(new_project):
    event = {"op": "c", "ts_ms": 1, "source": {"lsn": 1, "table": "invoice"}, "after": {"id": 1}}
    for day in ("26", "27"):
        path = new_project / f"landing/2026/11/{day}/1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"topic": "t", "key": {"id": 1}, "value": event}) + "\n")
    (new_project / "landing/_temporary").mkdir()
    (new_project / "landing/_temporary/1.jsonl").write_text("{")
    said = init(new_project, "f", "rows").stderr
    assert "nor in a folder in it, but deeper: 2026/11/26/1.jsonl. Name the folder that holds files" in said
    done = init(new_project, "f", "debezium")
    source = (new_project / "models/f/_sources.yml").read_text()
    assert (done.exit_code, "sub_folders: true" in source, "location: landing\n" in source) == (0, True, True), done.output
