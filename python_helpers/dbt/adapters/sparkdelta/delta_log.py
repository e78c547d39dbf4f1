"""Reading Delta's log beside Spark: no Spark job, milliseconds; through Spark where the log is not on this machine."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_PART = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_NAME = rf"({_PART}(?:\s*\.\s*{_PART})*)"
_COMMENTS = r"^(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*(?:\n|$))*"  # one way to read each character: else it takes for ever
_WRITES = re.compile(
    _COMMENTS + r"(?:"
    rf"(?P<merge>merge)\s+(?:with\s+schema\s+evolution\s+)?into\s+(?P<t1>{_NAME})"
    rf"|(?P<insert>insert)\s+(?:into|overwrite)\s+(?:table\s+)?(?P<t2>{_NAME})"
    rf"|(?P<delete>delete)\s+from\s+(?P<t3>{_NAME})"
    rf"|(?P<update>update)\s+(?P<t4>{_NAME})\s"
    rf"|(?P<create>create)\s+(?:or\s+replace\s+)?table\s+(?:if\s+not\s+exists\s+)?(?P<t5>{_NAME})"
    r")",
    re.IGNORECASE | re.DOTALL,
)
_REPLACING = ("RESTORE", "CREATE OR REPLACE", "REPLACE TABLE", "CLONE", "TRUNCATE")


def written_table(sql: str) -> tuple[str | None, str]:
    """First word (lower case) and target of a statement that writes rows; (None, '') for any other."""
    match = _WRITES.match(sql)
    if not match:
        return None, ""
    groups = match.groupdict()
    kind = next(word for word in ("merge", "insert", "delete", "update", "create") if groups[word])
    return kind, next(groups[name] for name in ("t1", "t2", "t3", "t4", "t5") if groups[name])


def names_of(session: SparkSession, table: str) -> tuple[str, str]:
    """Schema and name of a table as SQL writes them."""
    parts = [part.strip() for part in re.findall(_PART, table)]
    names = [part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts]
    return (names[-2] if len(names) > 1 else session.catalog.currentDatabase(), names[-1])


def operation_metrics(session: SparkSession, table: str, version: int) -> dict[str, int] | None:
    """Delta's operation metrics of one commit of a table; None when they cannot be read."""
    found = location(session, *names_of(session, table))
    if found is None:
        return None
    line = first_line(session, found, f"{version:020d}.json")
    info = json.loads(line).get("commitInfo") if line else None
    if info is None:
        return None
    metrics = info.get("operationMetrics") or {}
    return {key: int(value) for key, value in metrics.items() if str(value).lstrip("-").isdigit()}


def rows_put_in(metrics: Mapping[str, int]) -> int:
    """The rows that a commit put in, of its operation metrics: numOutputRows has those too that a replaced file keeps."""
    return metrics.get("numOutputRows", 0) - metrics.get("numCopiedRows", 0)


# Where tables are, as dbt's listing at the start of a run found them: a request to the metastore costs more than
# everything else that an idle table needs.
_locations: dict[tuple[str, str], str] = {}


class CatalogTable(NamedTuple):
    name: str
    is_view: bool
    provider: str | None


def tables(session: SparkSession, schema: str) -> list[CatalogTable]:
    """Tables and views of a schema, from one request to the metastore; none when there is no such schema."""
    jvm = session._jvm
    assert jvm is not None
    catalog = session._jsparkSession.sessionState().catalog()
    if not catalog.databaseExists(schema):
        return []
    found = []
    # a table dropped meanwhile is left out by getTablesByName; temporary views belong to no schema
    each = catalog.getTablesByName(catalog.listTables(schema, "*", False)).iterator()
    while each.hasNext():
        table = each.next()
        provider = table.provider()
        name, is_view = table.identifier().table(), table.tableType().name() == "VIEW"
        if not is_view and table.storage().locationUri().isDefined():
            _locations[schema.lower(), name.lower()] = table.location().toString()
        found.append(
            CatalogTable(
                name=name,
                is_view=is_view,
                provider=provider.get().lower() if provider.isDefined() else None,
            )
        )
    return found


def location(session: SparkSession, schema: str, identifier: str) -> str | None:
    """A table's location (a URI) in the session catalog; None if there is no such table."""
    name = (schema.lower(), identifier.lower())
    known = local_path(_locations[name]) if name in _locations else None
    if known is not None and (known / "_delta_log").is_dir():  # a table that was dropped has left it
        return _locations[name]
    table = catalog_table(session, schema, identifier)
    if table is None or table.tableType().name() == "VIEW":
        return None
    _locations[name] = str(table.location().toString())
    return _locations[name]


def catalog_table(session: SparkSession, schema: str, identifier: str) -> Any | None:
    """The catalog's entry of a table or view, None if there is none: the one request that leaves out what is not there."""
    from pyspark.errors import AnalysisException

    jvm = session._jvm
    assert jvm is not None
    name = jvm.org.apache.spark.sql.catalyst.TableIdentifier(identifier, jvm.scala.Option.apply(schema))
    names = jvm.java.util.ArrayList()
    names.add(name)
    try:
        found = session._jsparkSession.sessionState().catalog().getTablesByName(jvm.PythonUtils.toSeq(names))
    except AnalysisException as error:
        if error.getCondition() == "SCHEMA_NOT_FOUND":
            return None
        raise
    return found.head() if found.nonEmpty() else None


def owner_and_comment(session: SparkSession, schema: str, identifier: str) -> tuple[str, str | None]:
    """Owner and comment of a table or view as the catalog has them; of one that is not there, no owner."""
    table = catalog_table(session, schema, identifier)
    if table is None:
        return "", None
    comment = table.comment()
    return table.owner(), comment.get() if comment.isDefined() else None


def local_path(uri: str) -> Path | None:
    """The path of a local location; None for one on another file system."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None


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
    jvm = session._jvm
    assert jvm is not None
    file = jvm.org.apache.hadoop.fs.Path(folder, name)
    if not system.exists(file):
        return None
    reader = jvm.java.io.BufferedReader(jvm.java.io.InputStreamReader(system.open(file), "UTF-8"))
    try:
        line = reader.readLine()
        return None if line is None else str(line)
    finally:
        reader.close()


def actions(session: SparkSession, uri: str, version: int, kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """{kind: action} of those actions of a commit that it has once at most (`commitInfo`, `metaData`); {} if it left the log."""
    found = {}
    for line in _lines(session, uri, f"{version:020d}.json"):
        kind = re.match(r'\s*\{\s*"(\w+)"', line)
        if kind and kind[1] in kinds:
            found[kind[1]] = json.loads(line)[kind[1]]
    return found


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
    jvm = session._jvm
    assert jvm is not None
    file = jvm.org.apache.hadoop.fs.Path(folder, name)
    if system.exists(file):
        stream = system.open(file)
        try:
            yield from jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8").split("\n")
        finally:
            stream.close()


def _log_folder(session: SparkSession, uri: str) -> tuple[Any, Any]:
    """Hadoop's file system of a table, and the folder of its log in it."""
    jvm = session._jvm
    assert jvm is not None
    folder = jvm.org.apache.hadoop.fs.Path(jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri)), "_delta_log")
    return folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), folder


def no_state() -> dict[str, Any]:
    """What `table_state` returns of a table that is not there."""
    return {
        "exists": False, "id": None, "version": None, "app_id": None, "txn_version": None, "notes": {}, "rows": None,
        "replaced": False, "columns": {}, "properties": {},
    }


def table_state(session: SparkSession, schema: str, identifier: str, app_prefix: str) -> dict[str, Any]:
    """What Delta knows of a table and of our last transaction on it: SparkdeltaAdapter.table_state."""
    state = no_state()
    uri = location(session, schema, identifier)
    if uri is None:
        return state
    try:
        log = open_log(session, uri)
        state.update(exists=True, id=log.id(), version=log.version, columns=log.columns, properties=log.properties())
        ours = re.compile(re.escape(app_prefix) + r"@(\d+)$")
        app_id = None
        for limit in (1, 20, None):  # the newest mostly is ours, and on an object store each commit is a request
            commits = log.history(session, limit)
            newest = _newest_of_ours(commits, ours)
            if newest is not None or (limit is not None and len(commits) < limit):
                break
        if newest is not None:
            app_id = newest["app_id"]
            state.update(
                app_id=app_id,
                txn_version=log.transaction_version(app_id),
                notes=newest.get("notes") or {},
                rows=newest.get("rows"),
            )
        elif not commits or commits[-1]["version"] > 0:
            # the commits that named it are gone from the log; the snapshot still has the transactions
            known = (log if isinstance(log, _SparkLog) else _SparkLog(session, uri)).transactions()
            generations = [(int(match[1]), key) for key in known if (match := ours.match(key))]
            if generations:
                app_id = max(generations)[1]
                state.update(app_id=app_id, txn_version=known[app_id])
        state["replaced"] = app_id is not None and _replaced(commits, ours)
    except Exception as error:
        said = error.msg if isinstance(error, DbtRuntimeError) else error
        raise DbtRuntimeError(f"The Delta log of {schema}.{identifier} cannot be read: {said}") from error
    return state


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
    snapshot = delta_log(session, uri)[1]
    checksum = snapshot.checksumOpt()  # where it is not there, working the size out is a Spark job
    return int(checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes())


def statistics(session: SparkSession, schema: str, identifier: str, column: str | None = None) -> dict[str, Any]:
    """What a table's log knows of its newest version: SparkdeltaAdapter.table_statistics."""
    uri = location(session, schema, identifier)
    return {} if uri is None else open_log(session, uri).statistics(session, column)


def optimize(session: SparkSession, table: str, order: str = "", tries: int = 3) -> bool:
    """Merge a Delta table's small files. Where a load commits meanwhile it begins again from what is there then; False where one
    did so each time. table: as SQL names it. order: `zorder by (…)`, or nothing."""
    met = conflicts()
    for tried in range(tries):
        try:
            session.sql(f"optimize {table} {order}")
            return True
        except met:
            time.sleep(2**tried)
    return False


def conflicts() -> tuple[type[Exception], ...]:
    """What Delta raises where a commit meets another one: in Python these have no class in common."""
    from delta import exceptions

    names = ("ConcurrentAppend", "ConcurrentDeleteDelete", "ConcurrentDeleteRead", "ConcurrentTransaction", "ConcurrentWrite",
             "DeltaConcurrentModification", "MetadataChanged", "ProtocolChanged")  # fmt: skip
    return tuple(getattr(exceptions, f"{name}Exception") for name in names)


def vacuum(session: SparkSession, schema: str, identifier: str) -> int:
    """Remove the files that neither the newest version nor one within the table's retention needs; returns how many they were."""
    _vacuum(session, ".".join(map(quoted, (schema, identifier))))
    newest = session.sql(f"describe history {quoted(schema)}.{quoted(identifier)} limit 1").collect()[0]
    return int((newest["operationMetrics"] or {}).get("numDeletedFiles", 0)) if newest["operation"] == "VACUUM END" else 0


def _vacuum(session: SparkSession, table: str, how: str = "", settings: Mapping[str, str] | None = None) -> None:
    from dbt.adapters.sparkdelta.session import settings_on

    # Delta lists the folders with that many tasks; Spark's default is 10,000, half a minute on 2 cores for any table
    few = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * session.sparkContext.defaultParallelism)}
    with settings_on(session, {**few, **(settings or {})}):
        session.sql(f"vacuum {table} {how}")


def hand_over(session: SparkSession, source: tuple[str, str], target: tuple[str, str]) -> None:
    """Commit to a clone what a table's log says of our last transaction: what works on the clone goes on from there.

    source, target: schema and identifier.
    """
    from dbt.adapters.sparkdelta.session import settings_on
    from dbt.adapters.sparkdelta.write_plan import WritePlan

    state = table_state(session, *source, app_prefix=source[1])
    if state["app_id"] is None or state["replaced"]:
        return
    plan = WritePlan(txn={"app_id": state["app_id"], "version": state["txn_version"]}, notes=state["notes"])
    jvm = session._jvm
    assert jvm is not None
    delta, nothing = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    transaction = delta.actions.SetTransaction(state["app_id"], state["txn_version"], nothing)
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.List.of(transaction)).toSeq()
    operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    with settings_on(session, plan.settings):
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # whose settings the commit reads
        delta_log(session, location(session, *target))[0].startTransaction(nothing, nothing).commit(actions, operation)


def purge(session: SparkSession, schema: str, identifier: str, app_prefix: str) -> None:
    """Remove from disk all that the table's newest version does not hold: rows that deletion vectors only mark, older files,
    change data, and older log entries, whose statistics name values. Time travel to before ends; what our commits noted stays."""
    from dbt.adapters.sparkdelta.session import settings_on
    from dbt.adapters.sparkdelta.write_plan import USER_METADATA

    jvm = session._jvm
    assert jvm is not None
    table = ".".join(map(quoted, (schema, identifier)))
    session.sql(f"reorg table {table} apply (purge)")
    state = table_state(session, schema, identifier, app_prefix)
    said = {"app_id": state["app_id"], "version": state["txn_version"], "notes": state["notes"]}
    _vacuum(session, table, "retain 0 hours", {"spark.databricks.delta.retentionDurationCheck.enabled": "false"})
    with settings_on(session, {USER_METADATA: json.dumps(said)} if state["app_id"] else {}):
        session.sql(f"alter table {table} set tblproperties ('sparkdelta.purged_before' = '{state['version']}')")
    log, _ = delta_log(session, location(session, schema, identifier))
    log.checkpoint()
    # so far in the future that py4j makes it a Long; entries at and above the checkpoint stay
    retention = jvm.scala.Option.apply(-(2**31) - 1)
    minute = jvm.org.apache.spark.sql.delta.TruncationGranularity.MINUTE()
    nothing = jvm.scala.Option.empty()
    log.cleanUpExpiredLogs(log.update(False, nothing, nothing), nothing, retention, minute)


def delta_log(session: SparkSession, uri: str | None) -> tuple[Any, Any]:
    """Delta's own DeltaLog of a table, brought up to date, and its newest snapshot."""
    jvm = session._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    nothing = jvm.scala.Option.empty()
    return log, log.update(False, nothing, nothing)


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
    if transactions != [(app_id, txn_version)]:
        return None
    jvm = session._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # which reads them
    log, snapshot = delta_log(session, uri)
    files = jvm.java.util.ArrayList()
    for line in put_in:
        files.add(jvm.org.apache.spark.sql.delta.actions.Action.fromJson(line))
    scala_files = jvm.scala.jdk.javaapi.CollectionConverters.asScala(files).toSeq()
    return DataFrame(log.createDataFrame(snapshot, scala_files, False, jvm.scala.Option.empty()), session)


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
            rows = (commit.get("operationMetrics") or {}).get("numOutputRows")
            return {**said, "rows": None if rows is None else int(rows)}
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
            F.count("*").alias("files"), F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
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
