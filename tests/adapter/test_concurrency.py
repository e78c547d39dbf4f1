"""Two writers of one table at once: who fails, with which exception, and that no row is lost or doubled.

No test waits for luck: `held` stops a statement when it has read and written everything and is about to commit, by hooks that
Delta's jar has for that. What another session commits meanwhile is what the held one meets. docs/concurrency.md has the table.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from deltalake import DeltaTable, QueryBuilder

from dbt.adapters.sparkdelta import catalog, narrowing, upkeep
from dbt.adapters.sparkdelta.session import settings_on, short_message
from dbt.adapters.sparkdelta.write_plan import WritePlan
from delta_cdc.run import Busy, locked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

APPEND, READ, TWICE = "ConcurrentAppendException", "ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException"
METADATA, TRANSACTION = "MetadataChangedException", "ConcurrentTransactionException"
PATIENCE = 120


def failure(error: BaseException) -> str:
    """The Java class of an error, without its package."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return java.getClass().getSimpleName() if java is not None else type(error).__name__


class Statement:
    """A statement in a thread and a session of its own. It reads and writes all that it will, then waits for `commit`."""

    def __init__(self, spark: SparkSession, sql: str, plan: WritePlan | None = None) -> None:
        self.error: BaseException | None = None
        self._released = False
        delta = spark._jvm.org.apache.spark.sql.delta
        self._phases = delta.fuzzer.OptimisticTransactionPhases.forName("held")
        observer = delta.fuzzer.PhaseLockingTransactionExecutionObserver(self._phases)
        # a statement that tries once more, as OPTIMIZE does, is not held again
        nobody = getattr(delta, "NoOpTransactionExecutionObserver$").__getattr__("MODULE$")
        observer.setNextObserver(nobody, True)
        for phase in (self._phases.initialPhase(), self._phases.preparePhase()):
            phase.entryBarrier().unblock()
        session = spark.newSession()

        def run() -> None:
            # the hook is the Java thread's: pyspark gives every Python thread one of its own
            hooks = getattr(delta, "TransactionExecutionObserver$").__getattr__("MODULE$")
            hooks.setObserver(observer)
            try:
                with settings_on(session, plan.settings if plan else {}):
                    session.sql(sql)
            except Exception as error:
                self.error = error
            finally:
                hooks.setObserver(nobody)

        self._thread = threading.Thread(target=run)
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._phases.commitPhase().hasReached():
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.commit()
                raise AssertionError(f"The statement did not come to its commit: {self.error and short_message(self.error)}")
            time.sleep(0.01)

    def commit(self) -> str:
        """What it failed with: the exception's name, or nothing."""
        if not self._released:
            self._released = True
            for phase in (self._phases.commitPhase(), self._phases.backfillPhase(), self._phases.postCommitPhase()):
                phase.entryBarrier().unblock()
            # it waits here before a next transaction, which has the observer that does nothing
            if not self._phases.postCommitPhase().hasLeft():
                self._phases.postCommitPhase().exitBarrier().unblock()
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive(), "The statement does not end."
        return failure(self.error) if self.error else ""


class Table:
    """rows are (id, n, p): key, value, partition. Several files of each partition, and two that hold a deleted key alone."""

    made = 0

    def __init__(self, spark: SparkSession, name: str) -> None:
        # a new name each time: a table that replaces another has its transactions too
        Table.made += 1
        self.spark, self.name = spark.newSession(), f"concurrency.{name}_{Table.made}"
        self.spark.sql("create schema if not exists concurrency")
        self.spark.conf.set("spark.sql.leafNodeDefaultParallelism", "2")  # two files an insert
        # VACUUM lists a folder with as many tasks: 10,000, half a minute
        self.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")

    def create(self, partitioned: bool = False, deletion_vectors: bool = False) -> None:
        by = "partitioned by (p)" if partitioned else ""
        marks = f"'delta.enableDeletionVectors' = '{str(deletion_vectors).lower()}'"
        rows = "(0, 0, 0), (2, 2, 0) as v (id, n, p)"  # a file for each
        self.sql(f"create table {{t}} using delta {by} tblproperties ({marks}) as select * from values {rows}")
        self.sql("insert into {t} values (1, 1, 1), (3, 3, 1), (4, 4, 0), (5, 5, 1)")

    def beside(self) -> Table:
        """The same table in another session."""
        other = Table(self.spark, "beside")
        other.name = self.name
        return other

    def sql(self, sql: str, plan: WritePlan | None = None) -> Any:
        with settings_on(self.spark, plan.settings if plan else {}):
            return self.spark.sql(sql.format(t=self.name))

    def fails(self, sql: str, plan: WritePlan | None = None) -> str:
        try:
            self.sql(sql, plan)
        except Exception as error:
            return failure(error)
        return ""

    @contextmanager
    def held(self, sql: str, plan: WritePlan | None = None) -> Iterator[Statement]:
        statement = Statement(self.spark, sql.format(t=self.name), plan)
        try:
            yield statement
        finally:
            statement.commit()

    def rows(self) -> dict[int, int]:
        found = [tuple(row) for row in self.sql("select id, n from {t}").collect()]
        assert len(found) == len(dict(found)), f"doubled: {found}"
        return dict(found)

    def history(self) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.sql("describe history {t}").collect()]

    @property
    def version(self) -> int:
        return self.history()[0]["version"]

    @property
    def path(self) -> Path:
        path = catalog.local_path(catalog.location(self.spark, *self.name.split(".")))
        assert path is not None
        return path


@pytest.fixture
def table(spark: SparkSession, request: pytest.FixtureRequest) -> Table:
    return Table(spark, request.node.originalname.removeprefix("test_"))


BEFORE = {number: number for number in range(6)}


def merge(rows: str, condition: str = "true") -> str:
    return (
        f"merge into {{t}} as t using (select * from values {rows} as s (id, n, p)) as s on s.id <=> t.id and {condition} "
        "when matched and not (t.n <=> s.n) then update set n = s.n "
        "when not matched then insert (id, n, p) values (s.id, s.n, s.p)"
    )


def txn(version: int) -> WritePlan:
    return WritePlan.from_options({"txn": {"app_id": "concurrency@1", "version": version}})


def test_a_statement_that_is_held_has_committed_nothing(table: Table) -> None:
    table.create()
    before = table.version
    with table.held("insert into {t} values (6, 6, 0)") as insert:
        assert (table.version, table.rows()) == (before, BEFORE)
        assert insert.commit() == ""
    assert table.rows() == {**BEFORE, 6: 6}


# what an append meets

MEETINGS = {
    "append": "insert into {t} values (7, 7, 0)",
    "merge": merge("(0, 70, 0), (7, 7, 0)"),
    "delete": "delete from {t} where id in (0, 2)",
    "OPTIMIZE": "optimize {t}",
    "VACUUM": "vacuum {t}",
    "new properties": "alter table {t} set tblproperties ('delta.logRetentionDuration' = 'interval 20 days')",
    "new column": "alter table {t} add columns (m int)",
    "deletion vectors switched on": "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'true')",
    "rebuild": "create or replace table {t} using delta as select 0 as id, 0 as n, 0 as p",
}
AFTER = {
    "append": {**BEFORE, 7: 7},
    "merge": {**BEFORE, 0: 70, 7: 7},
    "delete": {1: 1, 3: 3, 4: 4, 5: 5},
    "rebuild": {0: 0},
}


@pytest.mark.nightly  # Delta's own; test_loads_two_runs_OPTIMIZE_and_a_reader_at_once is by day
@pytest.mark.parametrize(
    ("meets", "expected"),
    [
        ("append", ""),
        ("merge", ""),
        ("delete", ""),
        ("OPTIMIZE", ""),
        ("VACUUM", ""),
        ("new properties", METADATA),
        ("new column", METADATA),
        ("deletion vectors switched on", ""),
        ("rebuild", METADATA),
    ],
)
def test_an_append_meets(table: Table, meets: str, expected: str) -> None:
    table.create()
    load = "insert into {t} (id, n, p) values (6, 6, 1)"
    with table.held(load, txn(1)) as append:
        table.sql(MEETINGS[meets])
        assert append.commit() == expected
    after = AFTER.get(meets, BEFORE)
    if expected:
        assert table.rows() == after
        assert table.fails(load, txn(1)) == ""  # the next run
    assert table.rows() == {**after, 6: 6}
    assert table.fails(load, txn(1)) == ""  # and one more: nothing twice
    assert table.rows() == {**after, 6: 6}


@pytest.mark.nightly  # Delta's own; test_loads_two_runs_OPTIMIZE_and_a_reader_at_once is by day
@pytest.mark.parametrize(
    ("meets", "deletion_vectors", "expected"),
    [
        ("append", False, APPEND),
        ("merge", False, APPEND),
        ("merge", True, APPEND),
        ("delete", False, READ),
        ("delete", True, READ),
        ("OPTIMIZE", False, APPEND),
        ("OPTIMIZE", True, APPEND),
        ("VACUUM", False, ""),
        ("new column", False, METADATA),
        ("rebuild", False, METADATA),
    ],
)
def test_a_merge_meets(table: Table, meets: str, deletion_vectors: bool, expected: str) -> None:
    table.create(deletion_vectors=deletion_vectors)
    load = merge("(0, 60, 0), (6, 6, 1)")
    with table.held(load, txn(1)) as held:
        table.sql(MEETINGS[meets])
        assert held.commit() == expected
    if expected:
        assert table.rows() == AFTER.get(meets, BEFORE)
    assert table.fails(load, txn(1)) == ""
    assert table.rows() == {**AFTER.get(meets, BEFORE), 0: 60, 6: 6}


@pytest.mark.nightly  # Delta's own; test_loads_two_runs_OPTIMIZE_and_a_reader_at_once is by day
@pytest.mark.parametrize(
    ("meets", "expected"),
    [("append", ""), ("merge", READ), ("delete", READ), ("new column", "")],
)
def test_OPTIMIZE_meets(table: Table, meets: str, expected: str) -> None:
    table.create()
    with table.held("optimize {t}") as optimize:
        table.sql(MEETINGS[meets])
        assert optimize.commit() == expected
    assert table.rows() == AFTER.get(meets, BEFORE)
    assert table.fails("optimize {t}") == ""
    assert table.rows() == AFTER.get(meets, BEFORE)


@pytest.mark.parametrize(("conflicts", "merged"), [(0, True), (2, True), (3, False)])
def test_maintain_begins_again_where_a_load_commits_meanwhile(
    monkeypatch: pytest.MonkeyPatch, conflicts: int, merged: bool
) -> None:
    from delta.exceptions import ConcurrentDeleteReadException

    slept: list[int] = []
    monkeypatch.setattr(upkeep.time, "sleep", slept.append)

    class Session:
        said: ClassVar[list[str]] = []

        def sql(self, text: str) -> None:
            self.said.append(text)
            if len(self.said) <= conflicts:
                raise ConcurrentDeleteReadException(message="somebody wrote")

    assert upkeep.optimize(Session(), "a.b", "zorder by (`c`)") is merged
    assert Session.said == ["optimize a.b zorder by (`c`)"] * min(conflicts + 1, 3)
    assert slept == [1, 2, 4][: min(conflicts, 3)]


@pytest.mark.nightly  # Delta's own; test_loads_two_runs_OPTIMIZE_and_a_reader_at_once is by day
@pytest.mark.parametrize(
    ("meets", "expected"), [("append", APPEND), ("merge", APPEND), ("OPTIMIZE", APPEND), ("new column", METADATA)]
)
def test_a_rebuild_meets(table: Table, meets: str, expected: str) -> None:
    table.create()
    with table.held("create or replace table {t} using delta as select 9 as id, 9 as n, 0 as p") as rebuild:
        table.sql(MEETINGS[meets])
        assert rebuild.commit() == expected
    assert table.rows() == (AFTER.get(meets, BEFORE) if expected else {9: 9})


# what narrows a conflict


@pytest.mark.parametrize(
    ("partitioned", "condition", "expected"),
    [
        (True, "true", APPEND),
        (True, "t.id in (0, 2)", APPEND),
        (False, "t.id in (0, 2)", APPEND),
        (True, "t.p = 0", ""),
        (False, "t.p = 0", APPEND),
    ],
    ids=["nothing", "keys", "keys-unpartitioned", "partition", "a-column-like-any"],
)
def test_only_a_literal_partition_narrows_what_a_merge_meets(
    table: Table, partitioned: bool, condition: str, expected: str
) -> None:
    table.create(partitioned)
    with table.held(merge("(0, 60, 0), (2, 62, 0)", condition)) as held:
        table.sql("insert into {t} values (7, 7, 1)")  # another key, another partition
        assert held.commit() == expected
    assert table.rows() == {**BEFORE, 7: 7, **({} if expected else {0: 60, 2: 62})}


@pytest.mark.parametrize("key", ["p", "id"])
def test_the_keys_that_a_load_names_narrow_where_the_table_is_partitioned_by_them(
    table: Table, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setitem(narrowing.LARGE, "merge", 0)
    table.create(partitioned=True)
    table.sql("select 0 as id, 60 as n, 0 as p").createOrReplaceTempView("source")
    (condition,) = narrowing.narrowed(table.spark, *table.name.split("."), "source", [key], "t")
    with table.held(merge("(0, 60, 0)", f"({condition})")) as held:
        table.sql("insert into {t} values (7, 7, 1)")
        assert held.commit() == ("" if key == "p" else APPEND)


def test_keys_skip_files(table: Table) -> None:
    table.create()
    files = {len(table.spark.table(table.name).where(condition).inputFiles()) for condition in ("true", "id >= 0")}
    assert files == {4}
    assert len(table.spark.table(table.name).where("id in (0)").inputFiles()) == 1


@pytest.mark.parametrize(("partition", "expected"), [(1, ""), (0, APPEND)])
def test_replaced_partitions_meet_an_append(table: Table, partition: int, expected: str) -> None:
    table.create(partitioned=True)
    with table.held("insert into {t} by name replace where p = 0 select 8 as id, 8 as n, 0 as p") as held:
        table.sql(f"insert into {{t}} values (7, 7, {partition})")
        assert held.commit() == expected
    others = {1: 1, 3: 3, 5: 5, 7: 7}
    assert table.rows() == ({**BEFORE, 7: 7} if expected else {**others, 8: 8})


def test_an_append_that_reads_its_own_table_is_not_blind(table: Table) -> None:
    table.create()
    load = "insert into {t} select 6, 6, 1 where not exists (select 1 from {t} where id = 6)"
    with table.held(load) as held:
        table.sql("insert into {t} values (6, 0, 1)")
        assert held.commit() == APPEND
    assert table.rows() == {**BEFORE, 6: 0}
    assert [each["isBlindAppend"] for each in table.history()[:2]] == [True, True]
    assert table.fails(load) == ""
    assert table.rows() == {**BEFORE, 6: 0}


# the transaction id: one change set, two runs


@pytest.mark.parametrize("load", ["insert into {t} values (6, 6, 1)", merge("(0, 60, 0), (6, 6, 1)")], ids=["append", "merge"])
def test_a_change_set_that_two_runs_load_at_once_is_there_once(table: Table, load: str) -> None:
    table.create()
    before = table.version
    with table.held(load, txn(4)) as slower:
        assert table.fails(load, txn(4)) == ""
        assert slower.commit() == TRANSACTION
    once = table.rows()
    assert (table.version, once[6]) == (before + 1, 6)
    for version in (4, 3):  # a run that comes later, and one that knows less
        assert table.fails(load.replace("6, 6", "8, 8"), txn(version)) == ""
    assert (table.version, table.rows()) == (before + 1, once)
    assert table.fails(load.replace("6, 6", "8, 8"), txn(5)) == ""
    assert table.rows()[8] == 8


def test_without_a_transaction_id_a_change_set_is_there_twice(table: Table) -> None:
    table.create()
    with table.held("insert into {t} values (6, 6, 1)") as slower:
        table.sql("insert into {t} values (6, 6, 1)")
        assert slower.commit() == ""
    with pytest.raises(AssertionError, match="doubled"):
        table.rows()


# readers


def test_a_reader_has_the_version_that_it_began_with(table: Table) -> None:
    table.create()
    opened = DeltaTable(str(table.path))
    rows = table.spark.table(table.name).select("id", "n").toLocalIterator()  # a job for each file: planned with the first
    seen = [next(rows)]
    table.sql(merge("(0, 60, 0), (5, 50, 1), (6, 6, 1)"))
    table.sql("optimize {t}")
    table.sql("vacuum {t}")
    assert dict(map(tuple, [*seen, *rows])) == BEFORE
    found = QueryBuilder().register("it", opened).execute("select id, n from it").read_all()
    assert dict(zip(*([value.as_py() for value in found.column(name)] for name in ("id", "n")), strict=True)) == BEFORE
    assert table.rows() == {**BEFORE, 0: 60, 5: 50, 6: 6}


def test_a_reader_never_sees_half_of_a_load(table: Table) -> None:
    table.create()
    stop, seen = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            found = QueryBuilder().register("it", DeltaTable(str(table.path))).execute("select n from it").read_all()
            seen.append(sorted(value.as_py() for value in found.column("n")))

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            states = [sorted(BEFORE.values())]
            for number in (1, 2, 3):
                table.sql(merge(", ".join(f"({id}, {100 * number + id}, 0)" for id in range(6))))
                states.append([100 * number + id for id in range(6)])
        finally:
            stop.set()
    reader.result()
    assert seen
    assert [rows for rows in seen if rows not in states] == []


def test_VACUUM_keeps_what_a_load_has_written_and_not_committed(table: Table) -> None:
    table.create()
    with table.held("insert into {t} values (6, 6, 1)") as load:
        table.sql("vacuum {t}")
        assert load.commit() == ""
    assert table.rows() == {**BEFORE, 6: 6}


def test_maintain_tells_how_many_old_files_of_which_size_it_removed(table: Table) -> None:
    table.create()
    old = list(table.path.glob("*.parquet"))
    size = sum(path.stat().st_size for path in old)
    table.sql("optimize {t}")
    table.sql("alter table {t} set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    with settings_on(table.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        assert upkeep.vacuum(table.spark, *table.name.split(".")) == {"files": len(old), "bytes": size}
    assert table.rows() == BEFORE


def test_VACUUM_without_retention_breaks_a_reader_and_a_load_at_work_and_they_say_so(table: Table) -> None:
    table.create()
    opened = DeltaTable(str(table.path))
    table.sql("optimize {t}")
    with (
        settings_on(table.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}),
        table.held("insert into {t} values (6, 6, 1)") as load,
    ):
        table.sql("vacuum {t} retain 0 hours")
        assert load.commit() == ""
    with pytest.raises(Exception, match=r"[Nn]ot found|No such file"):
        QueryBuilder().register("it", opened).execute("select id, n from it").read_all()
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|FAILED_READ_FILE|does not exist"):
        table.rows()


# isolation, lock


def test_the_isolation_level_is_serializable_and_no_other_is_taken(table: Table) -> None:
    table.create()
    table.sql(merge("(0, 60, 0)"))
    table.sql("optimize {t}")
    levels = {each["operation"]: each["isolationLevel"] for each in table.history()}
    assert (levels["WRITE"], levels["MERGE"], levels["OPTIMIZE"]) == ("Serializable", "Serializable", "SnapshotIsolation")
    with pytest.raises(Exception, match="isolationLevel"):
        table.sql("alter table {t} set tblproperties ('delta.isolationLevel' = 'WriteSerializable')")


def test_a_second_run_of_a_project_does_nothing_until_the_first_is_gone(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(Busy) as busy, locked(tmp_path):
        pass
    assert busy.value.exit_code == 75
    assert str(os.getpid()) in str(busy.value)
    # a process that is killed leaves no lock behind
    code = (
        "import sys, time, pathlib; from delta_cdc.run import locked\n"
        "with locked(pathlib.Path(sys.argv[1])): print(1, flush=True); time.sleep(99)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Busy, match=str(other.pid)), locked(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with locked(tmp_path):
            pass
    finally:
        other.kill()
        other.communicate()


def test_loads_two_runs_OPTIMIZE_and_a_reader_at_once(table: Table) -> None:
    """However they meet: every change set is there once, and each reader saw a state between two change sets."""
    table.create()
    count, lost, stop = 4, {APPEND, READ, TWICE, METADATA, TRANSACTION}, threading.Event()
    wrong: list[Any] = []

    def state(done: int) -> list[tuple[int, int]]:
        return sorted({**BEFORE, **({0: 100 * done} if done else {}), **{10 + number: number for number in range(done)}}.items())

    def run() -> None:  # what one run does, and the next one where it failed
        mine = table.beside()
        for number in range(count):
            for _ in range(30):
                failed = mine.fails(merge(f"(0, {100 * (number + 1)}, 0), ({10 + number}, {number}, 1)"), txn(number))
                if not failed:
                    break
                if failed not in lost:
                    wrong.append(failed)
            else:
                wrong.append("never came through")

    def maintain() -> None:
        mine = table.beside()
        while not stop.is_set():
            failed = mine.fails("optimize {t}")
            if failed and failed not in lost:
                wrong.append(failed)

    def read() -> None:
        while not stop.is_set():
            found = QueryBuilder().register("it", DeltaTable(str(table.path))).execute("select id, n from it").read_all()
            rows = sorted(zip(*([value.as_py() for value in found.column(name)] for name in ("id", "n")), strict=True))
            if rows not in [state(done) for done in range(count + 1)]:
                wrong.append(rows)

    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(each) for each in (maintain, read)]
        try:
            for each in [pool.submit(run) for _ in range(2)]:
                each.result()
        finally:
            stop.set()
    for each in others:  # a reader that stopped at an error has seen nothing
        each.result()
    assert wrong == []
    assert sorted(table.rows().items()) == state(count)
    assert [each["operation"] for each in table.history()].count("MERGE") == count
