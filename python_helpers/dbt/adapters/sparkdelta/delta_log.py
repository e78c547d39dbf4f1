"""Reading Delta's log beside Spark: no Spark job, milliseconds; through Spark where the log is not on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import known_state
from dbt.adapters.sparkdelta.catalog import local_path, location
from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.java import java_class, make_active, no_option, short_message
from dbt.adapters.sparkdelta.statements import names_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_REPLACING = ("RESTORE", "CREATE OR REPLACE", "REPLACE TABLE", "CLONE", "TRUNCATE")


def operation_metrics(session: SparkSession, table: str, version: int) -> dict[str, int] | None:
    """Delta's operation metrics of one commit of a table; None when they cannot be read."""
    uri = location(session, *names_of(session, table))
    info = None if uri is None else commit_info(session, uri, f"{version:020d}.json")
    return None if info is None else metrics_of(info)


def commit_info(session: SparkSession, uri: str, name: str) -> dict[str, Any] | None:
    """What a commit says of itself; None if it left the log, or says nothing. name: of its file."""
    line = first_line(session, uri, name)
    return json.loads(line).get("commitInfo") if line else None


def metrics_of(info: Mapping[str, Any]) -> dict[str, int]:
    """The operation metrics of a commit that are numbers, which Delta writes as text. info: its `commitInfo`, or its entry in the
    table's history."""
    metrics = info.get("operationMetrics") or {}
    return {name: int(value) for name, value in metrics.items() if str(value).lstrip("-").isdigit()}


def rows_put_in(metrics: Mapping[str, int]) -> int:
    """The rows that a commit put in, of its operation metrics: numOutputRows has those too that a replaced file keeps."""
    return metrics.get("numOutputRows", 0) - metrics.get("numCopiedRows", 0)


def files_of(session: SparkSession, uri: str) -> list[str]:
    """Names of the files of a table's log, on any file system."""
    path = local_path(uri)
    if path is not None:  # a call of Java for each file takes 0.7 ms
        return sorted(os.listdir(path / "_delta_log"))
    system, folder = _log_folder(session, uri)
    return sorted(str(each.getPath().getName()) for each in system.listStatus(folder))


def first_line(session: SparkSession, uri: str, name: str) -> str | None:
    """First line of a file of a table's log, on any file system; None where there is none."""
    path = local_path(uri)
    if path is not None:  # a commit's metrics are read after each write
        try:
            with open(path / "_delta_log" / name, encoding="utf-8") as lines:
                return next(lines, None)
        except OSError:
            return None
    system, folder = _log_folder(session, uri)
    file = java_class(session, "org.apache.hadoop.fs.Path")(folder, name)
    if not system.exists(file):
        return None
    text = java_class(session, "java.io.InputStreamReader")(system.open(file), "UTF-8")
    reader = java_class(session, "java.io.BufferedReader")(text)
    try:
        line = reader.readLine()
        return None if line is None else str(line)
    finally:
        reader.close()


def actions(session: SparkSession, uri: str, version: int, kinds: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, action) of a commit's actions of these kinds (`commitInfo`, `add`, …), in its order; none if it left the log."""
    for line in _lines(session, uri, f"{version:020d}.json"):
        kind = re.match(r'\s*\{\s*"(\w+)"', line)
        if kind and kind[1] in kinds:
            yield kind[1], json.loads(line)[kind[1]]


def _lines(session: SparkSession, uri: str, name: str) -> Iterator[str]:
    path = local_path(uri)
    if path is not None:
        try:
            with open(path / "_delta_log" / name, encoding="utf-8") as lines:
                yield from lines
        except FileNotFoundError:
            pass
        return
    system, folder = _log_folder(session, uri)
    file = java_class(session, "org.apache.hadoop.fs.Path")(folder, name)
    if system.exists(file):
        stream = system.open(file)
        try:
            yield from java_class(session, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8").split("\n")
        finally:
            stream.close()


def _log_folder(session: SparkSession, uri: str) -> tuple[Any, Any]:
    """Hadoop's file system of a table, and the folder of its log in it."""
    folder = java_class(session, "org.apache.hadoop.fs.Path")(_hadoop_path(session, uri), "_delta_log")
    return folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), folder


def _hadoop_path(session: SparkSession, uri: str | None) -> Any:
    return java_class(session, "org.apache.hadoop.fs.Path")(java_class(session, "java.net.URI")(uri))


class TableState(TypedDict):
    """What a table's log says: SparkdeltaAdapter.table_state."""

    exists: bool
    id: str | None
    version: int | None
    app_id: str | None
    txn_version: int | None
    notes: dict[str, Any]
    rows: int | None
    replaced: bool
    columns: dict[str, Any]
    properties: dict[str, str]


def no_state() -> TableState:
    """What `table_state` returns of a table that is not there."""
    return {
        "exists": False,
        "id": None,
        "version": None,
        "app_id": None,
        "txn_version": None,
        "notes": {},
        "rows": None,
        "replaced": False,
        "columns": {},
        "properties": {},
    }


def table_state(session: SparkSession, schema: str, identifier: str, app_prefix: str) -> TableState:
    """What Delta knows of a table and of our last transaction on it: SparkdeltaAdapter.table_state."""
    state = no_state()
    uri = location(session, schema, identifier)
    if uri is None:
        return state
    with _reading_log(schema, identifier):
        log = open_log(session, uri)
        state |= {
            "exists": True, "id": log.id(), "version": log.version, "columns": log.columns, "properties": log.properties(),
        }  # fmt: skip
        ours = re.compile(re.escape(app_prefix) + r"@(\d+)$")
        app_id = None
        for limit in (1, 20, None):  # the newest mostly is ours, and on an object store each commit is a request
            commits = log.history(session, limit)
            newest = _newest_of_ours(commits, ours)
            if newest is not None or (limit is not None and len(commits) < limit):
                break
        if newest is not None:
            app_id = newest["app_id"]
            state |= {
                "app_id": app_id,
                "txn_version": log.transaction_version(app_id),
                "notes": newest.get("notes") or {},
                "rows": newest.get("rows"),
            }
        elif not commits or commits[-1]["version"] > 0:
            # the commits that named it are gone from the log; the snapshot still has the transactions
            known = (log if isinstance(log, _SparkLog) else _SparkLog(session, uri)).transactions()
            generations = [(int(match[1]), key) for key in known if (match := ours.match(key))]
            if generations:
                app_id = max(generations)[1]
                state |= {"app_id": app_id, "txn_version": known[app_id]}
        state["replaced"] = app_id is not None and _replaced(commits, ours)
    return state


def newest_version(session: SparkSession, schema: str, identifier: str) -> int | None:
    """The newest version of a table; None if it is not there. Raises as `table_state` does."""
    uri = location(session, schema, identifier)
    with _reading_log(schema, identifier):
        return None if uri is None else open_log(session, uri).version


@contextmanager
def _reading_log(schema: str, identifier: str) -> Iterator[None]:
    """Raises DbtRuntimeError that names the table whose log cannot be read."""
    try:
        yield
    except Exception as error:
        raise DbtRuntimeError(f"The Delta log of {schema}.{identifier} cannot be read: {short_message(error)}") from error


def newest_notes(session: SparkSession, schema: str, identifier: str) -> dict[str, Any]:
    """SparkdeltaAdapter.newest_notes."""
    uri = location(session, schema, identifier)
    commits = [] if uri is None else open_log(session, uri).history(session, 1)
    said = _said(commits[0]) if commits else {}
    return said["notes"] if isinstance(said.get("notes"), dict) else {}


def size_in_bytes(session: SparkSession, schema: str, identifier: str) -> int:
    """Bytes of the data files of a table's newest version; 0 when there is no such table."""
    uri = location(session, schema, identifier)
    if uri is None:
        return 0
    return int(delta_log(session, uri)[1].sizeInBytes())


def statistics(session: SparkSession, schema: str, identifier: str, column: str | None = None) -> dict[str, Any]:
    """What a table's log knows of its newest version: SparkdeltaAdapter.table_statistics."""
    uri = location(session, schema, identifier)
    return {} if uri is None else open_log(session, uri).statistics(session, column)


def delta_log(session: SparkSession, uri: str | None) -> tuple[Any, Any]:
    """Delta's own DeltaLog of a table, brought up to date, and its newest snapshot, which knows its state (`known_state`)."""
    make_active(session)  # which reads the log
    log = java_class(session, "org.apache.spark.sql.delta.DeltaLog").forTable(session._jsparkSession, _hadoop_path(session, uri))
    nothing = no_option(session)
    snapshot = log.update(False, nothing, nothing)
    known_state.give_state(session, snapshot)
    return log, snapshot


def refuse_made_anew(session: SparkSession, schema: str, identifier: str, txn: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError where another run has made the table anew since this write was planned (`WritePlan.txn`): what it
    holds now it holds by a later generation's transactions, and Delta would take those of this one all the same."""
    name, _, generation = str(txn["app_id"]).rpartition("@")
    if not generation.isdecimal():
        return
    newest = table_state(session, schema, identifier, name)["app_id"]
    if newest is not None and int(newest.rpartition("@")[2]) > int(generation):
        raise DbtRuntimeError(
            f"[DELTA_CONCURRENT_LOAD] {schema}.{identifier}: another run has made it anew since this one looked. "
            "Nothing was written; the next run goes on from there."
        )


def refuse_overtaken(session: SparkSession, schema: str, identifier: str, txn: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError where another run has committed a version of this transaction's application (`WritePlan.txn`) since
    it was planned, but not its own: Delta would take an INSERT all the same, for that reads nothing.

    A table that is there is opened by this, so that Delta knows its transactions when the INSERT asks for its own.
    """
    uri = location(session, schema, identifier)
    if uri is None:
        return
    _, snapshot = delta_log(session, uri)
    if "after" not in txn:
        return
    found = versions_of(snapshot.setTransactions()).get(txn["app_id"])
    if found is not None and txn["after"] < found < txn["version"]:
        raise DbtRuntimeError(
            f"[DELTA_CONCURRENT_LOAD] {schema}.{identifier}: another run has loaded batch {found} since this one looked, "
            f"when {txn['after']} was the last. Nothing was written; the next run goes on from there."
        )


def versions_of(transactions: Any) -> dict[str, int]:
    """Each application's newest version. transactions: Delta's, as its snapshot (`setTransactions`) or its checksum has them."""
    each = [transactions.apply(place) for place in range(transactions.size())]
    return {transaction.appId(): int(transaction.version()) for transaction in each}


def rows_of_commit(session: SparkSession, schema: str, identifier: str, app_id: str, txn_version: int) -> DataFrame | None:
    """The rows that a table's newest commit put in, if it is this transaction's and did nothing else; None otherwise.

    Delta reads them from the commit's own files: it need not work out which files the table consists of, half of what
    reading a small table costs.
    """
    from pyspark.sql import DataFrame

    uri = location(session, schema, identifier)
    if uri is None:
        return None
    version = open_log(session, uri).version
    put_in, transactions = [], []
    for line in _lines(session, uri, f"{version:020d}.json"):
        kind, action = next(iter(json.loads(line).items())) if line.strip() else ("", {})
        if kind == "add" and action["dataChange"]:
            put_in.append(line)
        elif kind == "txn":
            transactions.append((action["appId"], action["version"]))
        elif kind not in ("", "commitInfo", *(("protocol", "metaData") if version == 0 else ())):
            return None
    if transactions != [(app_id, txn_version)] or not put_in:  # `run --plan` hands a transaction over without its rows
        return None
    log, snapshot = delta_log(session, uri)
    files = java_class(session, "java.util.ArrayList")()
    for line in put_in:
        files.add(java_class(session, "org.apache.spark.sql.delta.actions.Action").fromJson(line))
    scala_files = java_class(session, "scala.jdk.javaapi.CollectionConverters").asScala(files).toSeq()
    return DataFrame(log.createDataFrame(snapshot, scala_files, False, no_option(session)), session)


def _said(commit: dict[str, Any]) -> dict[str, Any]:
    """What a commit of a WritePlan says of itself (app_id, version, notes, each if it has it); {} for any other commit."""
    try:
        said = json.loads(commit.get("userMetadata") or "{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _of_ours(commit: dict[str, Any], ours: re.Pattern[str]) -> dict[str, Any] | None:
    """What a transaction of ours says of itself; None for any other commit."""
    said = _said(commit)
    return said if ours.match(str(said.get("app_id"))) else None


def _newest_of_ours(commits: list[dict[str, Any]], ours: re.Pattern[str]) -> dict[str, Any] | None:
    for commit in commits:
        if said := _of_ours(commit, ours):
            return {**said, "rows": metrics_of(commit).get("numOutputRows")}
    return None


def _replaced(commits: list[dict[str, Any]], ours: re.Pattern[str]) -> bool:
    """Whether somebody else replaced the table's rows after our last commit. commits: newest first."""
    last = next((commit["version"] for commit in commits if _of_ours(commit, ours)), None)
    stands = commits[0]["version"] if commits else 0  # what is above was undone: the table was restored to how it was then
    for commit in commits:
        if commit["version"] == last:
            return False
        if commit["version"] > stands:
            continue
        operation = str(commit.get("operation", "")).upper()
        parameters = commit.get("operationParameters") or {}
        whole = (
            operation == "WRITE"
            and parameters.get("mode") == "Overwrite"
            and not parameters.get("predicate")
            and str(parameters.get("isDynamicPartitionOverwrite", "")).lower() != "true"
        )
        restored = str(parameters.get("version")) if operation == "RESTORE" else ""
        if last is not None and restored.isdecimal() and int(restored) >= last:
            stands = int(restored)
        elif whole or any(word in operation for word in _REPLACING):
            return True
    return False


def columns_of(schema: str) -> dict[str, Any]:
    """{name: type as Delta writes it} of a schema in JSON."""
    return {field["name"]: field["type"] for field in json.loads(schema)["fields"]}


class _LocalLog:
    """A log on this machine, read by delta-rs; where that fails on a commit (the first one of a clone), by Delta."""

    def __init__(self, path: Path, uri: str) -> None:
        from deltalake import DeltaTable

        self._uri = uri
        self._table = DeltaTable(str(path))
        self._folder = path / "_delta_log"
        self._read = self._commit(self.version)
        self._histories: dict[int | None, list[dict[str, Any]]] = {}

    def _commit(self, version: int) -> tuple[int, int] | None:
        """What tells a commit's file from another one of its name; None if there is none."""
        try:
            found = (self._folder / f"{version:020d}.json").stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def is_newest(self) -> bool:
        """Whether nothing was committed since it was read: versions have no gaps."""
        return self._read is not None and self._commit(self.version) == self._read and self._commit(self.version + 1) is None

    @property
    def version(self) -> int:
        return int(self._table.version())

    @property
    def columns(self) -> dict[str, Any]:
        return columns_of(self._table.schema().to_json())

    def columns_at(self, session: SparkSession, version: int) -> dict[str, Any]:
        """`columns` of an older version. Raises where the log no longer tells it."""
        from deltalake import DeltaTable

        return columns_of(DeltaTable(str(self._folder.parent), version=version, without_files=True).schema().to_json())

    def properties(self) -> dict[str, str]:
        return dict(self._table.metadata().configuration)

    def id(self) -> str:
        return str(self._table.metadata().id)

    def history(self, session: SparkSession, limit: int | None) -> list[dict[str, Any]]:
        if limit not in self._histories:
            try:
                self._histories[limit] = list(self._table.history(limit))
            except Exception:
                self._histories[limit] = _SparkLog(session, self._uri).history(session, limit)
        return self._histories[limit]

    def transaction_version(self, app_id: str) -> int | None:
        return self._table.transaction_version(app_id)

    def statistics(self, session: SparkSession, column: str | None) -> dict[str, Any]:
        files = self._table.get_add_actions(flatten=True)

        def of_each(name: str) -> list[Any]:
            return files[name].to_pylist() if name in files.column_names else [None] * files.num_rows

        rows = of_each("num_records")
        return {
            "files": files.num_rows,
            "bytes": sum(of_each("size_bytes")),
            "rows": None if None in rows else sum(rows),
            "highest": self._highest(column) if column in self.columns else None,
        }

    def _highest(self, column: str) -> Any:
        """A column's greatest value; None too where delta-rs cannot read the table. It reads the column: of the statistics of
        columns that `delta.dataSkippingStatsColumns` names it shows none whose name begins with an underscore."""
        from deltalake import QueryBuilder

        name = column.replace('"', '""')
        try:
            found = QueryBuilder().register("t", self._table).execute(f'select max("{name}") as highest from t')
            return found.read_all()["highest"][0].as_py()
        except Exception:  # a type or a table feature that it does not know
            return None


class _SparkLog:
    """A log anywhere, read by Delta in the JVM (this may run Spark jobs)."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self._jvm = session._jvm
        log, self._snapshot = delta_log(session, uri)
        self._path = log.dataPath().toString()
        if self.version < 0:
            raise DbtRuntimeError(f"there is no Delta log in {self._path}")
        self._histories: dict[int | None, list[dict[str, Any]]] = {}

    def is_of(self, other: _SparkLog) -> bool:
        """Whether the other one is of the same snapshot: of Delta's one object for it, in this JVM."""
        return self._jvm is other._jvm and bool(self._snapshot.equals(other._snapshot))

    @property
    def version(self) -> int:
        return int(self._snapshot.version())

    @property
    def columns(self) -> dict[str, Any]:
        return columns_of(self._snapshot.schema().json())

    def columns_at(self, session: SparkSession, version: int) -> dict[str, Any]:
        """`columns` of an older version. Raises where the log no longer tells it."""
        return columns_of(session.read.format("delta").option("versionAsOf", version).load(self._path).schema.json())

    def id(self) -> str:
        return str(self._snapshot.metadata().id())

    def properties(self) -> dict[str, str]:
        found = {}
        each = self._snapshot.metadata().configuration().iterator()
        while each.hasNext():
            entry = each.next()
            found[str(entry._1())] = str(entry._2())
        return found

    def history(self, session: SparkSession, limit: int | None) -> list[dict[str, Any]]:
        if limit not in self._histories:
            path = self._path.replace("`", "``")
            rows = session.sql(f"describe history delta.`{path}`" + (f" limit {limit}" if limit else ""))
            self._histories[limit] = [row.asDict() for row in rows.collect()]
        return self._histories[limit]

    def transaction_version(self, app_id: str) -> int | None:
        return self.transactions().get(app_id)

    def statistics(self, session: SparkSession, column: str | None) -> dict[str, Any]:
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F
        from pyspark.sql.types import TimestampType

        files = DataFrame(self._snapshot.withStats(), session)
        stats: Any = files.schema["stats"].dataType  # a struct
        rows, highest = F.col("stats.numRecords"), F.lit(None)
        if column is not None and "maxValues" in stats.names and column in stats["maxValues"].dataType.names:
            highest = F.col(f"stats.maxValues.{quoted(column)}")
        found = files.agg(
            F.count("*").alias("files"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            F.when(F.count("*") == F.count(rows), F.coalesce(F.sum(rows), F.lit(0))).alias("rows"),
            F.when(F.count("*") == F.count(highest), F.max(highest)).alias("highest"),
        )
        told = found.collect()[0].asDict()
        if isinstance(found.schema["highest"].dataType, TimestampType):  # handed over as a naive local time
            told["highest"] = told["highest"] and told["highest"].astimezone(timezone.utc)
        return told

    def transactions(self) -> dict[str, int]:
        return versions_of(self._snapshot.setTransactions())


# As they were read last: five models of a run ask for the same table, all of them for the ledger. They hold no session: it
# would stay, with its views and their plans, as long as the process.
_local_logs: dict[Path, _LocalLog] = {}
_spark_logs: dict[str, _SparkLog] = {}


def open_log(session: SparkSession, uri: str) -> _LocalLog | _SparkLog:
    """The log of the table there, at its newest version."""
    path = local_path(uri)
    if path is not None:
        known = _local_logs.get(path)
        if known is not None and known.is_newest():
            return known
        try:
            log = _LocalLog(path, uri)
            log.columns  # noqa: B018  (a type that delta-rs does not know)
            _local_logs[path] = log
            return log
        except Exception:
            pass  # a table feature that delta-rs does not know, or no log: Delta itself tells which
    read = _SparkLog(session, uri)
    if uri not in _spark_logs or not _spark_logs[uri].is_of(read):
        _spark_logs[uri] = read
    return _spark_logs[uri]
