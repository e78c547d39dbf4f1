"""Delta tables as feeds: each commit of a table is a change set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.project import UserProject

EVERYTHING = {
    "id": "int", "amount": "decimal(38,10)", "at": "timestamp", "local": "timestamp_ntz", "share": "double", "raw": "binary",
    "tags": "array<string>", "note": "string",
}  # fmt: skip
KEYED = {"keys": ["id"]}


def _envelope(op: str, row: dict[str, Any] | None, lsn: int, **before: Any) -> str:
    source = {"schema": "public", "table": "client", "lsn": lsn, "ts_ms": lsn, "txId": lsn}
    return json.dumps({"op": op, "before": before or None, "after": row, "source": source, "ts_ms": lsn})


@pytest.fixture(scope="module")
def landing(project: UserProject) -> Path:
    """Delta tables that others write, and the feeds that read them; nothing is written yet."""
    folder = project.path / "landing"
    spark = project.spark()
    with_feed = "tblproperties (delta.enableChangeDataFeed = true)"
    columns = ", ".join(f"`{name}` {of}" for name, of in EVERYTHING.items())
    spark.sql(f"create table delta.`{folder}/everything` ({columns}) using delta {with_feed}")
    spark.sql(
        f"create table delta.`{folder}/broker` (topic string, partition int, offset bigint, key string, value string, "
        f"headers map<string, string>) using delta {with_feed}"
    )
    for name, headers in {"keyed": "", "sourced": ", headers array<struct<key: string, value: binary>>"}.items():
        spark.sql(f"create table delta.`{folder}/{name}` (key binary, value binary{headers}) using delta {with_feed}")
        project.configure(
            name,
            settings={
                "format": "debezium", "location": f"landing/{name}", "file_format": "delta", "message_column": "value",
                "row_order": ["value"],
            },
            tables=[
                {"name": "client", "cdc": {**KEYED, "final_name": f"final_{name}"}, "columns": {"id": "int", "name": "string"}},
            ],
        )  # fmt: skip
    spark.sql(f"create table delta.`{folder}/silent` (id int) using delta")
    project.configure(
        "upstream",
        settings={"format": "delta_cdf", "location": "landing/{table}"},
        tables=[
            {"name": "everything", "cdc": {**KEYED, "history": "view"}, "columns": EVERYTHING},
            {"name": "silent", "cdc": KEYED, "columns": {"id": "int"}},
        ],
    )
    project.configure(
        "broker",
        settings={
            "format": "debezium", "location": "landing/broker", "file_format": "delta", "message_column": "value",
            "row_order": ["partition", "offset"],
        },
        tables=[
            {"name": "client", "cdc": {**KEYED, "source_table": "public.client"}, "columns": {"id": "int", "name": "string"}},
        ],
    )  # fmt: skip
    project.generate()
    return folder


def _run(project: UserProject, *models: str) -> Any:
    return project.dbt("run", "--select", "cdc_change_sets", *models, quiet=True)


@pytest.fixture(scope="module")
def mirrored(project: UserProject, landing: Path) -> str:
    """The other table after commits of every kind, read by two runs; its path as SQL names it."""
    spark = project.spark()
    there = f"delta.`{landing}/everything`"
    spark.sql(
        f"insert into {there} values "
        "(1, 12345678901234567890.0123456789, timestamp '2026-01-01 00:00:00.123456', timestamp_ntz '2026-01-01 01:00:00', "
        "double('NaN'), x'00ff', array('a', null), ''), (2, 2.5, null, null, 0.1, null, null, null), "
        "(3, 3, null, null, 0, null, array(), 'c')"
    )
    spark.sql(f"update {there} set note = 'changed' where id = 2")
    _run(project, "stg_upstream__everything+")
    spark.sql(f"delete from {there} where id = 3")
    spark.sql(f"update {there} set id = 10 where id = 1")  # a key change: Delta tells two rows and not that they are one
    spark.sql(f"insert into {there} values (4, 4, null, null, null, null, null, 'd')")
    spark.sql(f"optimize {there}")
    spark.sql(
        f"merge into {there} t using (select * from values (2, true), (4, false), (5, false) as s(id, gone)) s on t.id = s.id "
        "when matched and s.gone then delete when matched then update set note = 'merged' "
        "when not matched then insert (id, note) values (s.id, 'new')"
    )
    spark.sql(f"insert overwrite {there} select * from {there}")  # every row is removed and written
    _run(project, "stg_upstream__everything+")
    return there


def test_final_is_the_other_delta_table_after_commits_of_every_kind(project: UserProject, mirrored: str) -> None:
    columns = ", ".join(f"`{name}`" for name in EVERYTHING)
    ours, theirs = (
        {row["id"]: {**row, "share": str(row["share"])} for row in project.rows(f"select {columns} from {table}")}
        for table in ("{schema}.final_everything", mirrored)
    )
    assert ours == theirs
    assert sorted(ours) == [4, 5, 10]
    assert project.rows("select * from {schema}.stg_upstream__everything where _cdc_error is not null") == []


def test_each_commit_is_a_change_set_and_history_has_its_time(project: UserProject, mirrored: str) -> None:
    commits = project.rows(f"describe history {mirrored}")
    recorded = project.rows("select change_set from {schema}.cdc_change_sets where change_set like '%/everything/%'")
    assert {row["change_set"].rsplit("/", 1)[1] for row in recorded} == {f"{commit['version']:020}.json" for commit in commits}
    kept = project.rows("select note, valid_to from {schema}.hist_upstream__everything where id = 2 order by valid_from")
    first = {commit["operation"]: commit["timestamp"] for commit in commits}  # newest first: the oldest stays
    assert [(row["note"], row["valid_to"]) for row in kept] == [(None, first["UPDATE"]), ("changed", first["MERGE"])]


def test_nothing_new_is_no_commit(project: UserProject, mirrored: str) -> None:
    def versions() -> list[int]:
        tables = ("stg_upstream__everything", "final_everything", "cdc_change_sets")
        return [max(row["version"] for row in project.rows(f"describe history {{schema}}.{table}")) for table in tables]

    before = versions()
    _run(project, "stg_upstream__everything+")
    assert versions() == before


def test_kafka_records_keep_the_order_of_their_offsets_and_their_headers(project: UserProject, landing: Path) -> None:
    spark = project.spark()
    records = [
        # the position of both is equal: the later offset wins
        (0, 8, '{"id": 1}', _envelope("u", {"id": 1, "name": "late"}, 1, id=1), None),
        (0, 7, '{"id": 1}', _envelope("c", {"id": 1, "name": "early"}, 1), None),
        (0, 9, '{"id": 1}', None, None),  # a tombstone
        # a key change: the create tells the key before in a header
        (1, 1, '{"id": 2}', _envelope("c", {"id": 2, "name": "two"}, 2), None),
        (1, 2, '{"id": 2}', _envelope("d", None, 3, id=2), {"__debezium.newkey": '{"id": 3}'}),
        (1, 3, '{"id": 3}', _envelope("c", {"id": 3, "name": "two"}, 3), {"__debezium.oldkey": '{"id": 2}', "trace": 'no "json'}),
        (1, 4, '{"id": 4}', '{"op": "c", cut', None),
        (1, 5, '{"id": 5}', _envelope("c", {"id": 5}, 4).replace('"client"', '"visit"'), None),  # of a table that nobody listed
    ]
    rows = [("shop.client", *record) for record in records]
    schema = "topic string, partition int, offset bigint, key string, value string, headers map<string, string>"
    spark.createDataFrame(rows, schema).repartition(3).write.format("delta").mode("append").save(f"{landing}/broker")
    _run(project, "raw_broker+")
    final = project.rows("select id, name from {schema}.final_client order by id")
    assert final == [{"id": 1, "name": "late"}, {"id": 3, "name": "two"}]
    entities = project.rows("select count(distinct _cdc_entity) as n from {schema}.hist_broker__client where name = 'two'")
    assert entities == [{"n": 1}]
    unread = project.rows("select message from {schema}.raw_broker where source_table is null")
    assert len(unread) == 1
    assert '"op": "c", cut' in unread[0]["message"]
    told = "Quarantined too, of no table above: broker (1 unparsable), broker.public.visit (1 unknown_table)"
    assert told in project.command("status").output
    state = json.loads(project.command("status", "--json").output)
    elsewhere = {row["table"]: row["quarantined"] for row in state if row["state"] == "not listed"}
    assert elsewhere == {"broker": "1 unparsable", "broker.public.visit": "1 unknown_table"}


@pytest.mark.nightly  # other spellings of what the test above has
def test_kafka_records_as_spark_s_own_source_tells_them(project: UserProject, landing: Path) -> None:
    spark = project.spark()
    records = [
        ('{"id": 1}', _envelope("c", {"id": 1, "name": "one"}, 1), []),
        ('{"id": 2}', _envelope("c", {"id": 2, "name": "two"}, 2), []),
        ('{"id": 1}', _envelope("d", None, 3), []),  # only the record's key tells which row
        ('{"id": 1}', None, []),
        ('{"id": 2}', _envelope("d", None, 4, id=2), [("__debezium.newkey", b'{"id": 3}')]),
        (
            '{"id": 3}',
            _envelope("c", {"id": 3, "name": "two"}, 4),
            [("a", b"1"), ("a", b"2"), ("__debezium.oldkey", b'{"id": 2}')],
        ),
    ]
    schema = "key string, value string, headers array<struct<key: string, value: binary>>"
    frame = spark.createDataFrame(records, schema).selectExpr("binary(key) as key", "binary(value) as value", "headers")
    frame.drop("headers").write.format("delta").mode("append").save(f"{landing}/keyed")
    frame.write.format("delta").mode("append").save(f"{landing}/sourced")
    _run(project, "raw_keyed+", "raw_sourced+")
    assert project.rows("select id, name from {schema}.final_keyed") == [{"id": 3, "name": "two"}]
    assert project.rows("select id, name from {schema}.final_sourced") == [{"id": 3, "name": "two"}]
    entities = project.rows("select count(distinct _cdc_entity) as n from {schema}.hist_sourced__client where name = 'two'")
    assert entities == [{"n": 1}]


def test_a_table_without_a_change_data_feed_stops_with_what_to_do_and_others_go_on(project: UserProject, landing: Path) -> None:
    project.spark().sql(f"insert into delta.`{landing}/silent` values (1)")
    (failed,) = project.failed(project.try_dbt("run", "--select", "cdc_change_sets", "stg_upstream__silent", quiet=True))
    assert "feed upstream, Delta table" in failed.message
    assert "delta.enableChangeDataFeed" in failed.message
