"""What the Delta log tells of a table and of our last transaction on it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING
from unittest.mock import ANY

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log, upkeep
from dbt.adapters.sparkdelta.session import settings_on
from dbt.adapters.sparkdelta.write_plan import WritePlan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Table:
    def __init__(self, session: SparkSession, name: str) -> None:
        self.session, self.name = session, name

    def write(self, app_id: str, version: int, sql: str = "insert into {t} values (1)", notes: dict | None = None) -> None:
        plan = WritePlan.from_options({"txn": {"app_id": app_id, "version": version}, "notes": notes})
        with settings_on(self.session, plan.settings):
            self.sql(sql)

    def sql(self, sql: str) -> None:
        self.session.sql(sql.format(t=f"state.{self.name}"))

    def state(self) -> dict:
        return delta_log.table_state(self.session, "state", self.name, "app.x")

    @property
    def path(self) -> Path:
        path = catalog.local_path(catalog.location(self.session, "state", self.name))
        assert path is not None
        return path


@pytest.fixture
def table(spark: SparkSession, request: pytest.FixtureRequest) -> Table:
    session = spark.newSession()
    session.sql("create schema if not exists state")
    return Table(session, request.node.name)


OURS = {"id": ANY, "replaced": False, "columns": {"id": "integer"}, "properties": {}}
CREATE = "create or replace table {t} using delta as select 1 as id"


def test_missing(table: Table) -> None:
    expected = delta_log.no_state()
    assert (expected["exists"], expected["txn_version"], expected["columns"]) == (False, None, {})
    assert table.state() == expected
    table.sql("create view {t} as select 1 as id")
    assert table.state() == expected
    assert delta_log.table_state(table.session, "no_such_schema", "t", "app.x") == expected


def test_never_ours(table: Table) -> None:
    table.sql(CREATE)
    table.write("app.xy@1", 4)
    table.write("app.x@one", 4)
    expected = {"exists": True, "version": 2, "app_id": None, "txn_version": None, "notes": {}, "rows": None, **OURS}
    assert table.state() == expected


def test_ours_without_a_spark_job(table: Table) -> None:
    table.write("app.x@1", 0, CREATE)
    table.write("app.x@1", 3)
    table.sql("insert into {t} values (2)")
    context = table.session.sparkContext
    context.setJobGroup("table state", "")
    expected = {"exists": True, "version": 2, "app_id": "app.x@1", "txn_version": 3, "notes": {}, "rows": 1, **OURS}
    assert table.state() == expected
    assert not context.statusTracker().getJobIdsForGroup("table state")


def test_the_newest_notes_are_handed_back(table: Table) -> None:
    table.write("app.x@1", 1, CREATE, notes={"highest": '{"lsn":1}'})
    table.write("app.x@1", 2, notes={"highest": '{"lsn":2}', "moved": True})
    table.sql("insert into {t} values (2)")
    assert table.state()["notes"] == {"highest": '{"lsn":2}', "moved": True}
    table.write("app.x@1", 3, "insert into {t} select 1 where false")
    assert (table.state()["notes"], table.state()["rows"]) == ({}, 0)


def test_a_commit_keeps_notes_without_a_transaction_too(table: Table) -> None:
    def newest() -> dict:
        return delta_log.newest_notes(table.session, "state", table.name)

    assert newest() == {}
    table.write("app.x@1", 1, CREATE, notes={"n": 1})
    assert newest() == {"n": 1}
    with settings_on(table.session, WritePlan(notes={"n": 2}).settings):
        table.sql("insert into {t} values (2)")
    assert (newest(), table.state()["notes"], table.state()["txn_version"]) == ({"n": 2}, {"n": 1}, 1)
    for said in ("null", "[1]", "no json", '{"notes": 1}'):
        with settings_on(table.session, {"spark.databricks.delta.commitInfo.userMetadata": said}):
            table.sql("insert into {t} values (3)")
        assert (newest(), table.state()["app_id"]) == ({}, "app.x@1")
    table.sql("insert into {t} values (4)")
    assert newest() == {}


def test_the_highest_generation_counts(table: Table) -> None:
    table.write("app.x@9", 70, CREATE)
    table.write("app.x@10", 2, CREATE)
    assert (table.state()["app_id"], table.state()["txn_version"]) == ("app.x@10", 2)
    assert not table.state()["replaced"]


def test_found_beyond_the_newest_commits(table: Table) -> None:
    table.write("app.x@1", 3, CREATE)
    table.sql("alter table {t} set tblproperties ('delta.checkpointInterval' = '1000')")
    for number in range(22):
        table.sql(f"alter table {{t}} set tblproperties ('n' = '{number}')")
    assert (table.state()["app_id"], table.state()["txn_version"]) == ("app.x@1", 3)


def test_found_when_the_log_is_cleaned_up(table: Table) -> None:
    table.write("app.x@2", 3, CREATE)
    table.sql("alter table {t} set tblproperties ('delta.checkpointInterval' = '2')")
    for number in range(3):
        table.sql(f"alter table {{t}} set tblproperties ('n' = '{number}')")
    for version in (0, 1):
        for file in (table.path / "_delta_log").glob(f"*{version:020d}.json*"):
            file.unlink()
    assert (table.state()["app_id"], table.state()["txn_version"]) == ("app.x@2", 3)


@pytest.mark.nightly  # a final that somebody restored: test_bad_input, S8
def test_replaced_by_somebody_else(table: Table) -> None:
    table.write("app.x@1", 1, CREATE)
    table.write("app.x@1", 2)
    table.sql("insert into {t} by name replace where id = 7 select 7 as id")
    table.sql("delete from {t} where id = 7")
    assert not table.state()["replaced"]
    for generation, sql in enumerate(
        [
            "restore table {t} to version as of 0",
            CREATE,
            "replace table {t} using delta as select 1 as id",
            "truncate table {t}",
            "insert overwrite {t} values (5)",
        ],
        start=2,
    ):
        table.sql(sql)
        assert table.state()["replaced"], sql
        table.write(f"app.x@{generation}", 0)
        assert not table.state()["replaced"], sql
    table.sql("delete from {t}")
    newest = table.state()["version"]
    for version, replaced in ((0, True), (newest, False), (newest - 1, False), (newest - 2, True)):
        table.sql(f"restore table {{t}} to version as of {version}")
        assert table.state()["replaced"] is replaced, version


def test_a_table_that_is_made_anew_has_another_id(table: Table) -> None:
    ids = []
    for sql in (CREATE, "insert into {t} values (2)", "restore table {t} to version as of 0", "drop table {t}", CREATE):
        table.sql(sql)
        ids.append(table.state()["id"])
    assert ids[0] == ids[1] == ids[2]
    assert ids[3] is None
    assert ids[4] not in (None, ids[0])


def test_a_log_that_cannot_be_read_is_an_error(table: Table) -> None:
    table.sql(CREATE)
    shutil.rmtree(table.path / "_delta_log")
    with pytest.raises(DbtRuntimeError, match=r"The Delta log of state\..* cannot be read"):
        table.state()


def test_a_log_is_read_again_when_there_is_another_commit(table: Table) -> None:
    table.write("app.x@1", 1, CREATE)
    uri = catalog.location(table.session, "state", table.name)
    read = delta_log.open_log(table.session, uri)
    assert delta_log.open_log(table.session, uri) is read
    table.write("app.x@1", 2)
    assert table.state()["txn_version"] == 2
    table.sql("drop table {t}")
    table.write("app.x@1", 1, CREATE)
    assert delta_log.open_log(table.session, uri).version == read.version == 0
    table.write("app.x@1", 7)  # as many commits as the dropped one had
    assert table.state()["txn_version"] == 7


def test_a_log_on_another_file_system_tells_the_same(table: Table) -> None:
    """It is read by Delta in the JVM, which reads this one too."""
    table.sql("create or replace table {t} using delta as select 1 as id, timestamp'2024-01-01 10:00:00.5' as at")
    table.write("app.x@1", 7, "insert into {t} values (5, timestamp'2024-01-02 00:00:00')")
    uri = catalog.location(table.session, "state", table.name)
    local, anywhere = delta_log._LocalLog(table.path, uri), delta_log._SparkLog(table.session, uri)
    for column in ("id", "at", "no_such_column"):
        assert anywhere.statistics(table.session, column) == local.statistics(table.session, column)
    for said in ("version", "columns"):
        assert getattr(anywhere, said) == getattr(local, said)
    assert anywhere.properties() == local.properties()
    assert anywhere.transaction_version("app.x@1") == 7
    commits = [
        [(commit["version"], commit["operation"], commit.get("userMetadata")) for commit in log.history(table.session, 1)]
        for log in (local, anywhere)
    ]
    assert commits[0] == commits[1]
    assert anywhere.is_of(delta_log._SparkLog(table.session, uri))
    table.sql("insert into {t} values (6, null)")
    assert not anywhere.is_of(delta_log._SparkLog(table.session, uri))


def newest(table: Table, version: int) -> list[int] | None:
    found = delta_log.rows_of_commit(table.session, "state", table.name, "app.x@1", version)
    return None if found is None else sorted(row["id"] for row in found.collect())


def test_the_rows_of_the_newest_commit(table: Table) -> None:
    assert newest(table, 0) is None
    table.write("app.x@1", 0, CREATE)
    assert newest(table, 0) == [1]
    table.write("app.x@1", 3, "insert into {t} values (2), (4), (3)")
    assert newest(table, 3) == [2, 3, 4]
    assert newest(table, 0) is None


@pytest.mark.parametrize("since", ["insert into {t} values (9)", "optimize {t}", "alter table {t} set tblproperties ('a' = 'b')"])
def test_none_where_somebody_committed_since(table: Table, since: str) -> None:
    table.name = "since_" + since.split()[0]
    table.write("app.x@1", 0, CREATE)
    table.write("app.x@1", 3)
    table.sql(since)
    assert newest(table, 3) is None


def test_none_where_the_commit_took_rows_out(table: Table) -> None:
    table.write("app.x@1", 0, CREATE)
    changed = "using (select 1 as id, 5 as new) as s on t.id = s.id when matched then update set id = new"
    table.write("app.x@1", 3, "merge into {t} as t " + changed)
    assert newest(table, 3) is None


def test_none_where_the_transaction_was_handed_over_without_its_rows(table: Table) -> None:
    """To a clone, on which `run --plan` works."""
    session, table.name = table.session, "handed"
    table.write("handed@0", 3, CREATE)
    session.sql("create schema if not exists state_planned")
    session.sql("create table state_planned.handed shallow clone state.handed")
    upkeep.hand_over(session, ("state", "handed"), ("state_planned", "handed"))
    assert delta_log.table_state(session, "state_planned", "handed", "handed")["txn_version"] == 3
    assert delta_log.rows_of_commit(session, "state_planned", "handed", "handed@0", 3) is None


def test_the_rows_of_the_newest_commit_under_column_mapping_and_in_partitions(table: Table) -> None:
    table.sql(
        "create table {t} (id int, `a b` string) using delta partitioned by (`a b`)"
        " tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    table.write("app.x@1", 3, "insert into {t} values (2, 'x y'), (3, null)")
    found = delta_log.rows_of_commit(table.session, "state", table.name, "app.x@1", 3)
    assert found is not None
    assert {tuple(row) for row in found.collect()} == {(2, "x y"), (3, None)}
