"""A snapshot that took its transactions from Delta's checksum file is as Delta would have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log, known_transactions
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

    def from_checksum(self) -> bool:
        return known_transactions.from_checksum(self.session, *self.name.split("."))

    @property
    def uri(self) -> str:
        return catalog.location(self.session, *self.name.split(".")) or ""

    @property
    def snapshot(self) -> Any:
        return delta_log.delta_log(self.session, self.uri)[1]

    def transactions(self) -> dict[str, int]:
        # which a statement is run by: another test of this process may have had one of its own
        self.session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)
        known, each = {}, self.snapshot.transactions().iterator()
        while each.hasNext():
            pair = each.next()
            known[pair._1()] = pair._2()
        return known

    def worked_out(self) -> dict[str, int]:
        """By Delta's query."""
        return delta_log.versions_of(self.snapshot.setTransactions())

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


def test_the_snapshot_has_them_without_a_query(table: Table) -> None:
    assert table.from_checksum()
    assert table.transactions() == {}
    assert table.insert(3)
    assert table.insert(2**40, app_id="other")
    for _ in range(2):  # the snapshot that the commit left; one that was read
        assert table.from_checksum()
        assert not table.from_checksum()  # known
        assert table.transactions() == {"app": 3, "other": 2**40}
        assert not table.snapshot.stateReconstructionTriggered()
        assert table.snapshot.numOfFiles() == 2  # what else it works out later is right
        assert table.snapshot.metadata().schema().json().count("id") == 1
        table.forget()


def test_a_transaction_that_was_committed_is_left_out(table: Table) -> None:
    assert table.insert(1)
    assert table.insert(2)
    for version, written in ((2, False), (1, False), (3, True), (3, False)):
        table.from_checksum()
        assert table.insert(version) is written
    assert sorted(row.id for row in table.session.table(table.name).collect()) == [1, 2, 3]


def test_a_commit_in_between_counts(table: Table) -> None:
    """The snapshot that was given its transactions is not the newest any more."""
    assert table.insert(1)
    assert table.from_checksum()
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
        known_transactions.from_checksum(table.session, schema, name, refused)
    for other in ({"after": 7}, {"version": 7}, {"app_id": "new"}):
        known_transactions.from_checksum(table.session, schema, name, refused | other)


def test_over_checkpoints(table: Table) -> None:
    for version in range(1, 13):
        assert table.from_checksum()
        assert table.insert(version)
    table.forget()
    assert table.transactions() == {"app": 12}
    assert table.session.table(table.name).count() == 12


@pytest.mark.parametrize("statement", [
    "create or replace table {t} (id bigint, name string) using delta", "restore table {t} to version as of 1", "delete from {t}",
    "optimize {t}", "alter table {t} set tblproperties ('a' = 'b')", "create or replace table {t} using delta as select 1L as id",
])  # fmt: skip
def test_they_are_those_of_delta_after(table: Table, statement: str) -> None:
    assert table.insert(1)
    assert table.insert(2)
    table.session.sql(statement.format(t=table.name))
    for _ in range(2):  # the snapshot that the commit left; one that was read
        assert table.from_checksum() or statement.startswith("restore")  # whose checksum has no transactions
        assert table.transactions() == table.worked_out() == {"app": 2}
        table.forget()


@pytest.mark.parametrize("checksum", ["gone", "without"])
def test_without_a_checksum_delta_works_them_out(table: Table, checksum: str) -> None:
    assert table.insert(1)
    table.without_checksums(there=checksum == "without")
    assert not table.from_checksum()
    assert not table.insert(1)
    assert table.transactions() == {"app": 1}
