"""A snapshot that took its state from Delta's checksum file is as Delta would have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log, known_state
from dbt.adapters.sparkdelta.session import settings_on
from dbt.adapters.sparkdelta.write_plan import WritePlan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Table:
    def __init__(self, session: SparkSession, name: str) -> None:
        self.session, self.name = session, f"known.{name}"
        session.sql("create schema if not exists known")
        session.sql(f"create or replace table {self.name} (id bigint) using delta")

    def insert(self, version: int, app_id: str = "app") -> bool:
        """As `execute_write` does it; whether a commit came of it."""
        before = self.snapshot.version()
        with settings_on(self.session, WritePlan(txn={"app_id": app_id, "version": version}).settings):
            self.session.sql(f"insert into {self.name} values ({version})")
        return self.snapshot.version() > before

    def open(self) -> bool:
        """Open the log as the adapter does; whether the snapshot knows its state from its checksum."""
        session, given = self.session, []
        give, known_state.give_state = known_state.give_state, lambda *of: given.append(give(*of))
        try:
            delta_log.delta_log(session, self.uri)
        finally:
            known_state.give_state = give
        return given == [True]

    @property
    def uri(self) -> str:
        return catalog.location(self.session, *self.name.split(".")) or ""

    @property
    def snapshot(self) -> Any:
        """Delta's newest, as it is."""
        path = self.session._jvm.org.apache.hadoop.fs.Path(self.uri)
        log = self.session._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.session._jsparkSession, path)
        return log.update(False, *[self.session._jvm.scala.Option.empty()] * 2)

    def state(self) -> dict[str, Any]:
        """What the snapshot says of itself."""
        self.session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)
        snapshot = self.snapshot
        names = (
            "sizeInBytes",
            "numOfSetTransactions",
            "numOfFiles",
            "numDeletedRecordsOpt",
            "numDeletionVectorsOpt",
            "numOfMetadata",
            "numOfProtocol",
        )
        state = {name: str(getattr(snapshot, name)()) for name in names}
        sizes = snapshot.fileSizeHistogram().get()
        return {
            **state,
            "domains": snapshot.domainMetadata().mkString(),
            "transactions": self.transactions(),
            "sizes": (list(sizes.fileCounts()), list(sizes.totalBytes())),
        }

    def transactions(self) -> dict[str, int]:
        # which a statement is run by: another test of this process may have had one of its own
        self.session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)
        known, each = {}, self.snapshot.transactions().iterator()
        while each.hasNext():
            pair = each.next()
            known[pair._1()] = pair._2()
        return known

    def worked_out(self) -> dict[str, Any]:
        """`state` by Delta's query."""
        self.forget()
        found = self.state()
        self.forget()
        return found

    def without_checksums(self, *, there: bool = False) -> None:
        """Takes the checksum files away, or what they say of transactions."""
        log: Path | None = catalog.local_path(self.uri)
        assert log is not None
        for file in (log / "_delta_log").glob("0*.crc"):
            (file.parent / f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's own, of the file's bytes
            if there:
                file.write_text(file.read_text().replace('"setTransactions"', '"others"'))
            else:
                file.unlink()
        self.forget()

    def forget(self) -> None:
        """Delta reads the log anew, as another process does."""
        self.session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.fixture
def table(spark: SparkSession, request: pytest.FixtureRequest) -> Table:
    return Table(spark.newSession(), re.sub(r"\W", "_", request.node.name))


def test_the_snapshot_has_it_without_a_query(table: Table) -> None:
    assert table.open()
    assert table.transactions() == {}
    assert not table.snapshot.stateReconstructionTriggered()
    assert table.insert(3)
    assert table.insert(2**40, app_id="other")
    for _ in range(2):  # the snapshot that the commit left; one that was read
        assert table.open()
        assert not table.open()  # known
        found = table.state()
        assert not table.snapshot.stateReconstructionTriggered()
        assert (found["transactions"], found["numOfFiles"]) == ({"app": 3, "other": 2**40}, "2")
        assert table.snapshot.metadata().schema().json().count("id") == 1
        assert found == table.worked_out()


def test_a_transaction_that_was_committed_is_left_out(table: Table) -> None:
    assert table.insert(1)
    assert table.insert(2)
    for version, written in ((2, False), (1, False), (3, True), (3, False)):
        table.open()
        assert table.insert(version) is written
    assert sorted(row.id for row in table.session.table(table.name).collect()) == [1, 2, 3]


def test_a_commit_in_between_counts(table: Table) -> None:
    """The snapshot that was given its state is not the newest any more."""
    assert table.insert(1)
    assert table.open()
    known = table.snapshot
    assert table.insert(2)
    assert not table.insert(2)
    assert known.version() + 1 == table.snapshot.version()


@pytest.mark.parametrize("checksum", ["there", "gone"])
def test_S2_what_another_run_has_loaded_meanwhile_is_not_loaded_again(table: Table, checksum: str) -> None:
    """A transaction of a later version says nothing of the batches below it, and an INSERT reads nothing that could conflict."""
    schema, name = table.name.split(".")
    assert table.insert(6)
    assert table.insert(7)  # the other run
    if checksum == "gone":
        table.without_checksums()
    refused = {"app_id": "app", "version": 8, "after": 6}
    with pytest.raises(DbtRuntimeError, match=r"\[DELTA_CONCURRENT_LOAD\] .* has loaded batch 7 .* when 6 was the last"):
        delta_log.refuse_overtaken(table.session, schema, name, refused)
    for other in ({"after": 7}, {"version": 7}, {"app_id": "new"}):
        delta_log.refuse_overtaken(table.session, schema, name, refused | other)


def test_over_checkpoints(table: Table) -> None:
    for version in range(1, 13):
        assert table.open()
        assert table.insert(version)
    table.forget()
    assert table.transactions() == {"app": 12}
    assert table.session.table(table.name).count() == 12


@pytest.mark.parametrize("statement", [
    "create or replace table {t} (id bigint, name string) using delta", "restore table {t} to version as of 1", "delete from {t}",
    "delete from {t} where id = 1", "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'true')",
    "optimize {t}", "alter table {t} set tblproperties ('a' = 'b')", "create or replace table {t} using delta as select 1L as id",
    "alter table {t} cluster by (id)",
])  # fmt: skip
def test_it_is_that_of_delta_after(table: Table, statement: str) -> None:
    assert table.insert(1)
    assert table.insert(2)
    table.session.sql(statement.format(t=table.name))
    for _ in range(2):  # the snapshot that the commit left; one that was read
        # the checksum of a RESTORE has no transactions, that of the first version with deletion vectors does not count them
        assert table.open() or "restore" in statement or "DeletionVectors" in statement
        found = table.state()
        assert found == table.worked_out()
        assert found["transactions"] == {"app": 2}


def test_of_deletion_vectors_it_is_that_of_delta_too(table: Table) -> None:
    table.session.sql(f"alter table {table.name} set tblproperties ('delta.enableDeletionVectors' = 'true')")
    table.session.sql(f"insert into {table.name} select /*+ coalesce(1) */ id from range(100)")
    table.session.sql(f"delete from {table.name} where id < 7")
    assert table.open()
    found = table.state()
    assert (found["numDeletedRecordsOpt"], found["numDeletionVectorsOpt"]) == ("Some(7)", "Some(1)")
    assert found == table.worked_out()
    assert table.session.table(table.name).count() == 93


@pytest.mark.parametrize("checksum", ["gone", "without"])
def test_without_a_checksum_delta_works_it_out(table: Table, checksum: str) -> None:
    assert table.insert(1)
    table.without_checksums(there=checksum == "without")
    assert not table.open()
    assert not table.insert(1)
    assert table.transactions() == {"app": 1}
