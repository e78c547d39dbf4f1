"""Change sets as temporary views of their lines; and for macros, on their own session, what SQL cannot say well."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timezone
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from dbt.adapters.base import BaseRelation, available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import avro_files, catalog, database, delta_log, delta_messages, row_messages, upkeep
from dbt.adapters.sparkdelta.columns import quoted, sql_of
from dbt.adapters.sparkdelta.in_session import InSession, Table, View, is_table
from dbt.adapters.sparkdelta.java import short_message, shortly
from dbt.adapters.sparkdelta.listing import escaped, list_files, qualified_path
from dbt.adapters.sparkdelta.queries import (
    cached_query,
    create_kept_view,
    create_values_view,
    query_rows,
    reading_files,
    rows_frame,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_listing_view(session: SparkSession, name: str, patterns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A temporary view (feed string, path string, size bigint, modified_at timestamp) of the files that the patterns
    ({feed, folder: as it is, names: a glob, after}) match. Returns {feed: why it cannot be listed} of those that cannot."""
    files: list[dict[str, Any]] = []
    unlisted: dict[str, str] = {}
    for entry in patterns:
        try:
            found = list_files(session, f"{escaped(entry['folder'])}/{entry['names']}", entry.get("after"))
        except DbtRuntimeError as error:  # an object store that does not answer holds up its own feed only
            unlisted[entry["feed"]] = str(error.msg)
            continue
        files += [{"feed": entry["feed"], **each, "modified_at": each["modified_at"].isoformat()} for each in found]
    listed = rows_frame(session, files, "feed: string, path: string, size: bigint, modified_at: timestamp")
    listed.createOrReplaceTempView(quoted(name))
    return unlisted


def create_lines_view(
    session: SparkSession, name: str, change_sets: Sequence[Mapping[str, Any]], feed: Mapping[str, Any]
) -> None:
    """A temporary view (batch_id bigint, change_set string, row_number bigint, message string) of the lines of change sets
    ({batch_id, change_set, unit: file or folder}), numbered in the order of the files; empty lines are none.

    feed: {feed, format, file_format, ready, csv_options, columns, message_column, row_order, left_out}. If its files are not
    lines of JSON, a row is a line (`row_messages`, `delta_messages`).
    """
    from pyspark.sql import functions as F

    files = []
    for change_set in change_sets:
        path, batch = change_set["change_set"], change_set["batch_id"]
        if change_set["unit"] == "folder":
            files += [(p, batch, path) for p in _files_in(session, path, feed)]
        else:
            files.append((path, batch, path))
    if not files:
        empty = "batch_id bigint, change_set string, row_number bigint, message string"
        session.createDataFrame([], empty).createOrReplaceTempView(quoted(name))
        return
    for path, _, _ in files:
        if path.startswith("file:") and ":" in path.rsplit("/", 1)[1]:
            raise DbtRuntimeError(
                f"feed {feed['feed']}, file {path}: Hadoop, by which Spark reads, opens no local file with a colon in its name. "
                "Nothing of it was loaded. Give it another name, by which it is found anew, and `delta-cdc retract` the old one."
            )
    if feed["file_format"] == "delta":
        commits = [(path, batch) for path, batch, _ in files]
        delta_messages.numbered_messages(session, commits, feed).createOrReplaceTempView(quoted(name))
        return
    paths = [escaped(path) for path, _, _ in files]
    if feed["file_format"] == "json":
        read = [session.read.text(paths).withColumnRenamed("value", "message")]
    else:
        read = row_messages.messages(session, paths, feed)
    by_pieces = len(files) > 1 or not _is_one_task(session, change_sets[0].get("size"))
    lines = reduce(lambda one, other: one.unionAll(other), map(_placed, read) if by_pieces else read)
    if feed.get("message_column") or feed["file_format"] not in ("parquet", "orc"):  # theirs are made of columns, and never empty
        lines = lines.where("trim(message) <> ''")
    message = row_messages.text_of(lines["message"]) if feed["file_format"] == "json" else lines["message"]
    if by_pieces:
        placed = lines.withColumns({"line": F.monotonically_increasing_id(), "message": message})
        numbered = _numbered_by_pieces(session, placed, files)
    else:  # as it mostly is
        _, batch, change_set = files[0]
        numbered = lines.select(
            F.lit(batch).cast("bigint").alias("batch_id"),
            F.lit(change_set).alias("change_set"),
            (F.monotonically_increasing_id() + 1).alias("row_number"),
            message.alias("message"),
        )
    numbered.createOrReplaceTempView(quoted(name))


def _files_in(session: SparkSession, folder: str, feed: Mapping[str, Any]) -> list[str]:
    """The files of a change set that is a folder, without the one whose name (`ready`) says that it is whole. Raises
    DbtRuntimeError where more lie in folders in it: their rows would be missing, and what such a folder's name tells of them."""
    listed = [each["path"] for each in list_files(session, escaped(folder) + "/**")]
    found = [path for path in listed if path.rsplit("/", 1)[1][0] not in "_."]
    deeper = next((path for path in found if path.rsplit("/", 1)[0] != folder), None)
    if deeper is not None:
        raise DbtRuntimeError(
            f"feed {feed['feed']}, change set {folder}: it holds files in folders ({deeper.removeprefix(folder + '/')}), and "
            "only those in the folder itself are its rows. Nothing of it was loaded. Write it without partitions, or say "
            "`sub_folders: true` in place of `unit: folder`; `delta-cdc retract` goes on without it."
        )
    return [path for path in found if path != f"{folder}/{feed.get('ready')}"]


def _is_one_task(session: SparkSession, size: int | None) -> bool:
    """Whether Spark reads a file of this size (bytes) in one piece (FilePartition.maxSplitBytes)."""
    settings = session._jsparkSession.sessionState().conf()
    return size is not None and size <= min(settings.filesOpenCostInBytes(), settings.filesMaxPartitionBytes())


def _placed(read: DataFrame) -> DataFrame:
    """The messages of files, each with its place: (path string, piece bigint: where in the file it begins, message string)."""
    metadata = read.metadataColumn("_metadata")
    return read.select(metadata["file_path"].alias("path"), metadata["file_block_start"].alias("piece"), read["message"])


def _numbered_by_pieces(session: SparkSession, lines: DataFrame, files: Sequence[tuple[str, int, str]]) -> DataFrame:
    """Lines (path, piece, line: monotonically_increasing_id, message) with (batch_id, change_set, row_number).

    Spark cuts files into pieces and tasks alike each time it reads them. So the lines of each piece are counted first, and each
    task numbers those that it reads: no task is handed all lines of a change set. files: (path as listed, batch_id, change_set).
    """
    from pyspark.sql import functions as F

    with reading_files():
        counted = lines.groupBy("path", "piece").agg(F.count("*"), F.min("line")).collect()
    sets = {path: (batch, change_set) for path, batch, change_set in files}
    shifts, passed = [], dict.fromkeys(sets.values(), 0)
    for listed, path, piece, count, first in sorted((_as_listed(row[0]), *row) for row in counted):
        change_set = sets[listed]
        batch, name = change_set
        shift = passed[change_set] + 1 - first
        shifts.append({"path": path, "piece": piece, "batch_id": batch, "change_set": name, "shift": shift})
        passed[change_set] += count
    frame = rows_frame(session, shifts, "path: string, piece: bigint, batch_id: bigint, change_set: string, shift: bigint")
    number = (F.col("line") + F.col("shift")).alias("row_number")
    numbered = lines.join(F.broadcast(frame), ["path", "piece"]).select("batch_id", "change_set", number, "message")
    tasks = {first >> 33 for *_, first in counted}  # monotonically_increasing_id has the task there
    if len(tasks) < int(session.conf.get("spark.sql.shuffle.partitions") or 1):  # a file read whole: all tasks parse its lines
        return numbered.repartition(F.floor(numbered["row_number"] / 10_000))
    return numbered


def _as_listed(path: str) -> str:
    """A path of Spark's metadata, URL-encoded with three slashes, as `list_files` spells it."""
    return re.sub("^file:/+", "file:/", unquote(path))


def changed_files(
    session: SparkSession, change_sets: Sequence[Mapping[str, Any]], ready: str | None = None
) -> list[dict[str, Any]]:
    """Those of the change sets ({change_set, unit, size, modified_at}) that are not as they were recorded, with `found`: what
    is there now, in words. Both times are in UTC. Of one whose size is None only whether it is there is known. Of the hidden
    files of a folder the one of the name `ready` counts."""
    changed = []
    for change_set in change_sets:
        path = escaped(change_set["change_set"])
        found = list_files(session, path + "/*" if change_set["unit"] == "folder" else path)
        if change_set["unit"] == "folder":
            found = [each for each in found if (name := each["path"].rsplit("/", 1)[1]) == ready or name[0] not in "._"]
        size = sum(f["size"] for f in found)
        modified_at = max((f["modified_at"] for f in found), default=None)
        recorded_at = change_set["modified_at"]
        if recorded_at is not None:
            recorded_at = recorded_at.astimezone(timezone.utc)  # Spark hands timestamps over as naive local times
        if found and (change_set["size"] is None or (size == change_set["size"] and modified_at == recorded_at)):
            continue
        words = f"{size} bytes, modified {modified_at}" if found else "it is gone"
        changed.append({**change_set, "modified_at": recorded_at, "found": words})
    return changed


_TABLE_NAME = r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,2}"
_KINDS = {"csv": "csv", "parquet": "parquet", "orc": "orc", "json": "json", "jsonl": "json", "delta": "delta"}


def kind_of_file(what: str, file_format: str | None) -> str | None:
    """Spark's name for the kind of a file, as given or as its name ends; None for a table (`schema.table`)."""
    ending = re.search(r"\.(csv|parquet|orc|json|jsonl)(\.gz|\.bz2|\.zst)?/?$", what.lower())
    kind = _KINDS.get(file_format or (ending[1] if ending else ""))
    if kind is None and (file_format is not None or not re.fullmatch(_TABLE_NAME, what)):
        wants = ", ".join(sorted(_KINDS))
        raise DbtRuntimeError(f"{what}: it is not known what kind of file that is. Give --file-format, one of {wants}.")
    return kind


def other(session: SparkSession, what: str, kind: str | None) -> DataFrame:
    """The rows of a table, or of a file or folder of a kind. CSV has its names in the first line; values of JSON are variants."""
    from pyspark.errors import AnalysisException

    try:
        if kind is None:
            return session.table(what)
        if kind == "json":
            return _rows_of_json(session, what)
        reader = session.read.format(kind)
        if kind == "csv":
            reader = reader.options(header=True, multiLine=True, escape='"', **row_messages.CSV)
        return reader.load(escaped(what))
    except AnalysisException as error:
        raise DbtRuntimeError(f"{what} cannot be read: {short_message(error).splitlines()[0]}") from None


def _rows_of_json(session: SparkSession, what: str) -> DataFrame:
    """Lines of JSON with a variant a column: of the types that Spark would infer, doubles hold fewer digits than the text. A line
    that is no object is a row of nulls."""
    from pyspark.sql import functions as F

    text = session.read.text(escaped(what)).where("trim(value) <> ''")
    rows = text.selectExpr("try_cast(try_parse_json(trim(leading '\ufeff' from value)) as map<string, variant>) as fields")
    names = sorted(row[0] for row in rows.select(F.explode(F.map_keys("fields"))).distinct().collect())
    values = {name: F.col("fields")[name] for name in names}
    return rows.select(*(F.when(~F.is_variant_null(value), value).alias(name) for name, value in values.items()))


def write_files(session: SparkSession, sql: str, folder: str, file_format: str) -> dict[str, Any]:
    """`FilesMixin.write_files`."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    there = DbtRuntimeError(f"{folder} is there already. Name a folder that is not, or remove it: nothing was written.")
    if file_format == "avro":
        try:
            return {"folder": folder, "rows": avro_files.write(session, session.sql(sql), folder)}
        except FileExistsError:
            raise there from None
    counted = Observation()
    rows = session.sql(sql)
    if file_format in ("csv", "json"):  # bytes as text, as `rows` and `snapshots` read them
        bytes_ = [field.name for field in rows.schema.fields if field.dataType.typeName() == "binary"]
        digits = {name: F.concat(F.lit("\\x"), F.lower(F.hex(F.col(quoted(name))))) for name in bytes_}
        rows = rows.withColumns(digits) if digits else rows
    writer = rows.observe(counted, F.count(F.lit(1)).alias("rows")).write
    # as change sets are read: a name in the first line, quotes doubled, null apart from an empty text, blanks as they are
    of_csv: dict[str, bool | str] = {"header": True, "escape": '"', "emptyValue": '""'}
    of_csv |= {"ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
    options = of_csv if file_format == "csv" else {"ignoreNullFields": False}
    try:
        writer.format(file_format).options(**row_messages.MOMENTS, **options).save(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise there from error
    return {"folder": folder, "rows": counted.get["rows"]}


class FilesMixin(InSession):
    """For macros, on this thread's session: files and queries as views, what a run remembers, the upkeep of tables."""

    _remembered: dict[str, Any]  # of this run: each has an adapter of its own
    secrets: ClassVar[dict[str, Any]] = {}  # from a command to its macro: dbt writes arguments into logs and artifacts

    @available.parse(lambda *_: [])
    def query_rows(self, sql: str) -> list[dict[str, Any]]:
        return query_rows(self._session(), sql)

    @available.parse(lambda *_: [])
    def cached_query(self, relation: Table, sql: str) -> list[dict[str, Any]]:
        """`query_rows` of a query that reads this one Delta table, kept until the table has another version; none without it."""
        return cached_query(self._session(), relation.schema, relation.identifier, sql)

    @available.parse_none
    def remember(self, name: str, value: Any) -> None:
        """Keep what one model of a run found out, for others of it that would ask the same."""
        self._remembered[name] = value

    @available.parse_none
    def recall(self, name: str) -> Any:
        """What a model of this run remembered under a name; None if none did."""
        return self._remembered.get(name)

    @available.parse_none
    def secret(self, name: str) -> Any:
        """What the command that runs this macro gives it beside its arguments; None if it gives nothing."""
        return self.secrets.get(name)

    @available.parse(lambda *_: "")
    def qualified_path(self, path: str) -> str:
        return qualified_path(self._session(), self._in_project(path))

    @available.parse(lambda *_: {})
    def create_listing_view(self, name: str, patterns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        located = [{**entry, "folder": self._in_project(entry["folder"])} for entry in patterns]
        return create_listing_view(self._session(), name, located)

    @available.parse_none
    def create_lines_view(self, name: str, change_sets: Sequence[Mapping[str, Any]], feed: Mapping[str, Any]) -> None:
        create_lines_view(self._session(), name, change_sets, feed)

    @available.parse(lambda *_: [])
    def changed_files(self, change_sets: Sequence[Mapping[str, Any]], ready: str | None = None) -> list[dict[str, Any]]:
        return changed_files(self._session(), change_sets, ready)

    @available.parse_none
    def create_view_of(self, relation: View, sql: str) -> None:
        """A temporary view of a query, analysed once: one that SQL creates is analysed again wherever it is named."""
        with shortly():
            self._session().sql(sql).createOrReplaceTempView(quoted(relation.identifier))

    @available.parse(lambda *_: False)
    def create_view_of_commit(self, name: str, relation: BaseRelation, app_id: str, txn_version: int) -> bool:
        """A temporary view of the rows that a table's newest commit put in: `delta_log.rows_of_commit`. Whether there is one."""
        if not is_table(relation):
            return False
        rows = delta_log.rows_of_commit(self._session(), relation.schema, relation.identifier, app_id, txn_version)
        if rows is not None:
            rows.createOrReplaceTempView(quoted(name))
        return rows is not None

    @available.parse_list
    def view_columns(self, relation: BaseRelation) -> list[str]:
        """The columns that a view was created with; none if there is no view."""
        if not is_table(relation):
            return []
        view = catalog.catalog_table(self._session(), relation.schema, relation.identifier)
        return list(view.schema().fieldNames()) if view else []

    @available.parse_none
    def create_kept_view(self, name: str, sql: str, small: bool = False) -> None:
        """A temporary view of the rows that a query gives now, whatever becomes of the tables that it read.

        small: they are kept in memory, and those that the query gives when it is first read.
        """
        create_kept_view(self._session(), name, sql, small)

    @available.parse_none
    def create_values_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        create_values_view(self._session(), name, columns, rows)

    @available.parse(lambda *_: [])
    def columns_of_files(self, paths: Sequence[str], file_format: str) -> list[dict[str, str]]:
        """`row_messages.columns_of_files`, of paths as they are."""
        session = self._begin("columns of files")
        return row_messages.columns_of_files(session, map(escaped, paths), file_format)

    @available.parse(lambda *_: {})
    def create_other_view(
        self,
        name: str,
        what: str,
        file_format: str | None = None,
        table: str = "",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, str]:
        """A temporary view of a table, of a file or folder (its kind as given, or as its name ends), or of a table of a database
        (`what` is its URL); returns its columns' types by name."""
        if what.startswith("jdbc:"):
            frame = database.rows_of(self._session(), what, table, options)
        else:
            kind = kind_of_file(what, file_format)
            frame = other(self._session(), what if kind is None else self._in_project(what), kind)
        frame.createOrReplaceTempView(quoted(name))
        return {field.name: sql_of(field.dataType) for field in frame.schema.fields}

    @available.parse(lambda *_, **__: {})
    def write_files(self, sql: str, folder: str, file_format: str) -> dict[str, Any]:
        """Write a query's rows to a folder of files, with an empty file `_SUCCESS` at last: {folder, rows}.

        Raises DbtRuntimeError where the folder is there already.
        """
        return write_files(self._session(), sql, self._in_project(folder), file_format)

    @available.parse(lambda *_: "")
    def refusal_of(self, macro: Callable[..., Any], *arguments: Any) -> str:
        """Calls a macro; what it ended with, or nothing: in Jinja an error cannot be caught, and one table's is not to hold up
        others."""
        try:
            macro(*arguments)
        except Exception as error:
            return short_message(error)
        return ""

    @available.parse_none
    def purge(self, relation: Table) -> None:
        """Leave nothing of a Delta table on disk but what its newest version holds. See `upkeep.purge`."""
        upkeep.purge(self._session(), relation.schema, relation.identifier)

    @available.parse(lambda *_: True)
    def optimize(self, relation: Table, order: str = "") -> bool:
        """`upkeep.optimize`."""
        return upkeep.optimize(self._session(), str(relation), order)

    @available.parse(lambda *_: {})
    def vacuum(self, relation: Table) -> dict[str, int]:
        """Remove a Delta table's old files; returns how many `files` and `bytes`. See `upkeep.vacuum`."""
        return upkeep.vacuum(self._session(), relation.schema, relation.identifier)

    @available.parse(lambda *_: False)
    def view_is(self, relation: Table, sql: str) -> bool:
        """Whether a view was created from this SQL; false where a server has it. Spark does not keep the comments above it."""
        if not self._in_process:
            return False
        view = catalog.catalog_table(self._session(), relation.schema, relation.identifier)
        if view is None:
            return False
        text = view.viewText()
        before, found, after = sql.partition(str(text.get()).strip()) if text.isDefined() else (sql, "", "")
        comments = all(line.strip().startswith("--") for line in before.splitlines() if line.strip())
        return bool(found) and comments and not after.strip()
