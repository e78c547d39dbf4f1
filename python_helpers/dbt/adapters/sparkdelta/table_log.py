"""What a table's Delta log tells of its commits, and what is wrong with it. No Spark job where the log is on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log
from dbt.adapters.sparkdelta.columns import sql_of, type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY_FILES, SMALL_FILE = 64, 16 << 20
CHECKPOINT_INTERVAL = 10  # Delta's own, where the table's properties say nothing
_ADDED = ("numFiles", "numTargetFilesAdded", "numAddedFiles")
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved", "numDeletedFiles")
_ROWS = {
    "inserted": ("numTargetRowsInserted", "numOutputRows"),
    "updated": ("numTargetRowsUpdated", "numUpdatedRows"),
    "deleted": ("numTargetRowsDeleted", "numDeletedRows"),
}
# The columns of `cdc_table_log` behind schema and table, each with its name in `commit`.
_RECORDED = {
    "version bigint": "version",
    "commit_id string": "commit_id",
    "committed_at timestamp": "at",
    "operation string": "operation",
    "app_id string": "app_id",
    "app_version bigint": "app_version",
    "rows_inserted bigint": "inserted",
    "rows_updated bigint": "updated",
    "rows_deleted bigint": "deleted",
    "files_added bigint": "files_added",
    "files_removed bigint": "files_removed",
    "rows_in_added_files bigint": "rows_in_added_files",
    "removed_at timestamp": "removed_at",
    "protocol string": "protocol",
    "metrics map<string,bigint>": "metrics",
    "schema_changes array<string>": "schema_changes",
    "read_version bigint": "read_version",
    "isolation string": "isolation",
    "blind_append boolean": "blind_append",
    "checkpoint boolean": "checkpoint",
    "engine string": "engine",
    "user_name string": "user_name",
}


def table_log(session: SparkSession, schema: str, identifier: str, limit: int | None = 20) -> dict[str, Any] | None:
    """The newest commits of a Delta table, newest first, and findings; None for a table that is not there.

    Returns location; protocol: as `protocol` has it, None without a checksum file; commits: as `commit` tells them, times as text
    and in UTC; findings: {what, why, fix}.
    """
    uri = catalog.location(session, schema, identifier)
    if uri is None:
        return None
    log = delta_log.open_log(session, uri)
    files = delta_log.files_of(session, uri)
    versions = [version for version in versions_of(files) if version <= log.version]
    told = _commits(session, uri, versions[-limit:] if limit else versions, files)
    checksum = _json_file(session, uri, f"{log.version:020d}.crc")
    findings = findings_of_files(statistics := log.statistics(session, None), log.properties())
    findings += findings_of_log(files, log.version, log.properties(), _json_file(session, uri, "_last_checkpoint").get("version"))
    findings += findings_of_checksum(checksum, log.version, statistics)
    times = ({name: each[name] and str(each[name])[:19] for name in ("at", "removed_at")} for each in told)
    commits = [{**each, **of_each} for each, of_each in zip(told, times, strict=True)]
    return {"location": uri, "protocol": protocol(checksum.get("protocol")), "commits": commits[::-1], "findings": findings}


def new_commits(session: SparkSession, tables: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The commits of Delta tables that are not recorded yet: the rows of `cdc_table_log`, in the order of the versions.

    tables: {schema, table} and, of the newest commit that is recorded, {version, commit_id}.
    Raises DbtRuntimeError for a log that cannot be read.
    """
    rows = []
    for table in tables:
        uri = catalog.location(session, table["schema"], table["table"])
        if uri is None:
            continue
        try:
            files = delta_log.files_of(session, uri)
            versions = versions_of(files)
            last = table.get("version")
            # Another commit at that version: the table was dropped and made anew. None: it may have been, or the log was cleaned
            # up to there. In either case nothing that the log has is recorded.
            if last is not None and _commit_id(dict(delta_log.actions(session, uri, last, ["commitInfo"]))) == table["commit_id"]:
                versions = [version for version in versions if version > last]
            told = _commits(session, uri, versions, files)
        except Exception as error:
            said = f"The Delta log of {table['schema']}.{table['table']} in {uri} cannot be read: {error}"
            raise DbtRuntimeError(said) from error
        rows += [(table["schema"], table["table"], *(each[name] for name in _RECORDED.values())) for each in told]
    return session.createDataFrame(rows, f"`schema` string, `table` string, {', '.join(_RECORDED)}")


def _commits(session: SparkSession, uri: str, versions: Sequence[int], files: Sequence[str]) -> list[dict[str, Any]]:
    """`commit` of these versions. files: names of those of the log."""
    checkpoints = checkpoints_of(files)
    out = []
    for version in versions:
        actions = list(delta_log.actions(session, uri, version, ["commitInfo", "metaData", "protocol", "txn", "add", "remove"]))
        if actions:  # else the log was cleaned up meanwhile
            metadata = dict(actions).get("metaData")
            changes = _schema_changes(session, uri, version, metadata) if metadata else None
            out.append(commit(version, actions, checkpoint=checkpoints.get(version, False), schema_changes=changes))
    return out


def commit(
    version: int, actions: Sequence[tuple[str, Mapping[str, Any]]], *, checkpoint: bool = False,
    schema_changes: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a commit tells of itself. actions: (kind, action) of its file, of the kinds `commitInfo`, `txn`, `protocol`, `add` and
    `remove`.

    Returns version, commit_id, at (a datetime), operation, app_id and app_version (of the transaction that it is), inserted,
    updated, deleted (rows), files_added, files_removed, rows_in_added_files (by their statistics), removed_at (a datetime: when
    it removed files, from which on these are kept for older versions only), protocol (if it set one: as `protocol` has it),
    metrics (all numbers that Delta gives), schema_changes (None if there are none), read_version, isolation, blind_append,
    checkpoint (whether there is one of this version), engine, user_name; each None where the commit does not say.
    """
    once = dict(actions)
    info, txn = once.get("commitInfo") or {}, once.get("txn") or {}
    rows = [json.loads(action.get("stats") or "{}").get("numRecords") for kind, action in actions if kind == "add"]
    removed = [action["deletionTimestamp"] for kind, action in actions if kind == "remove" and action.get("deletionTimestamp")]
    given = delta_log.metrics_of(info)
    metrics = {**given, "numOutputRows": delta_log.rows_put_in(given)} if "numOutputRows" in given else given

    def metric(names: Sequence[str]) -> int | None:
        return next((metrics[name] for name in names if name in metrics), None)

    return {
        "version": version,
        "commit_id": _commit_id(once),
        "at": _moment(info.get("inCommitTimestamp", info.get("timestamp"))),
        "operation": info.get("operation"),
        "app_id": txn.get("appId"),
        "app_version": txn.get("version"),
        **{what: metric(names) for what, names in _ROWS.items()},
        "files_added": metric(_ADDED),
        "files_removed": metric(_REMOVED),
        "rows_in_added_files": sum(rows) if rows and None not in rows else None,
        "removed_at": _moment(max(removed, default=None)),
        "protocol": protocol(once.get("protocol")),
        "metrics": given,
        "schema_changes": schema_changes or None,
        "read_version": info.get("readVersion"),
        "isolation": info.get("isolationLevel"),
        "blind_append": info.get("isBlindAppend"),
        "checkpoint": checkpoint,
        "engine": info.get("engineInfo"),
        "user_name": info.get("userName"),
    }


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def protocol(action: Mapping[str, Any] | None) -> str | None:
    """What a table asks of who reads and writes it.

    >>> protocol({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["a"], "writerFeatures": ["a", "b"]})
    'reader 3, writer 7: a, b'
    """
    if not action:
        return None
    features = sorted({*(action.get("readerFeatures") or ()), *(action.get("writerFeatures") or ())})
    versions = f"reader {action.get('minReaderVersion')}, writer {action.get('minWriterVersion')}"
    return versions + (f": {', '.join(features)}" if features else "")


def _commit_id(actions: Mapping[str, Any]) -> str | None:
    """What tells a commit from another one of its version; None if it left the log."""
    info = actions.get("commitInfo")
    return None if info is None else str(info.get("txnId") or info.get("timestamp"))


def _schema_changes(session: SparkSession, uri: str, version: int, metadata: Mapping[str, Any]) -> list[str] | None:
    """What a commit that has metadata did to the columns; None for a table's first one, and where that can no longer be told."""
    if version == 0:
        return None
    try:
        before = delta_log.open_log(session, uri).columns_at(session, version - 1)
    except Exception:  # the files that told it are gone: each reader says so in another way
        return None
    return schema_changes(before, delta_log.columns_of(metadata["schemaString"]))


def schema_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is other in the columns, {name: type as Delta writes it}: `added a int`, `dropped a`, `a from int to bigint`."""
    was, now = ({name: sql_of(type_of(given)) for name, given in each.items()} for each in (before, after))
    out = [f"added {name} {kind}" for name, kind in now.items() if name not in was]
    out += [f"dropped {name}" for name in was if name not in now]
    return out + [f"{name} from {was[name]} to {kind}" for name, kind in now.items() if was.get(name, kind) != kind]


def versions_of(names: Sequence[str]) -> list[int]:
    """The versions whose commits a log has, ascending. names: of its files."""
    return sorted(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name))


def checkpoints_of(names: Sequence[str]) -> dict[int, bool]:
    """{version: whether the checkpoint is whole}, from the names of a log's files."""
    parts: dict[int, dict[int, int]] = {}
    out: dict[int, bool] = {}
    for name in names:
        found = re.fullmatch(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?(?:\.[0-9a-f-]{36})?\.(?:parquet|json)", name)
        if found and found[2]:
            of = parts.setdefault(int(found[1]), {})
            of[int(found[2])] = int(found[3])
        elif found:
            out[int(found[1])] = True
    return {version: len(of) == max(of.values()) for version, of in parts.items()} | out


def findings_of_log(
    names: Sequence[str], version: int, properties: Mapping[str, str], last_checkpoint: int | None
) -> list[dict[str, str]]:
    """What is wrong with the log's files. names: theirs. last_checkpoint: the version that `_last_checkpoint` names."""
    out = []
    checkpoints = checkpoints_of(names)
    whole = [each for each, is_whole in checkpoints.items() if is_whole]
    commits = set(versions_of(names))
    start = max(whole, default=-1)
    lost = [each for each in range(start + 1, version + 1) if each not in commits]
    if lost:
        out.append(
            {
                "what": f"commit {', '.join(map(str, lost[:5]))} is not in the log",
                "why": "no reader can tell what the table holds",
                "fix": "put the file back from a backup; nothing else brings it back",
            }
        )
    if last_checkpoint is not None and not checkpoints.get(last_checkpoint):
        out.append(
            {
                "what": f"_last_checkpoint names version {last_checkpoint}, whose checkpoint is not there or not whole",
                "why": "readers look for it first, and some stop there",
                "fix": "put the file back, or delete `_last_checkpoint`: it is written again with the next checkpoint",
            }
        )
    interval = int(properties.get("delta.checkpointInterval", CHECKPOINT_INTERVAL))
    if version - start > 3 * interval:
        out.append(
            {
                "what": f"{version - start} commits since the last checkpoint; one is due every {interval}",
                "why": "every reader opens each of these commits",
                "fix": "look into logs/dbt.log for a failure while a checkpoint was written",
            }
        )
    return out


_KEPT, _KEPT_BY_DEFAULT = "delta.deletedFileRetentionDuration", "interval 7 days"


def hours_kept(properties: Mapping[str, str]) -> float | None:
    """For how long old files of a table with these properties are kept; None if that cannot be told."""
    found = re.search(r"(\d+)\s*(second|minute|hour|day|week)", properties.get(_KEPT, _KEPT_BY_DEFAULT))
    return int(found[1]) * {"second": 1 / 3600, "minute": 1 / 60, "hour": 1, "day": 24, "week": 168}[found[2]] if found else None


def findings_of_files(statistics: Mapping[str, Any], properties: Mapping[str, str]) -> list[dict[str, str]]:
    """What is wrong with the data files, and with how long they are kept."""
    out = []
    files = statistics.get("files") or 0
    if files >= MANY_FILES and statistics["bytes"] / files < SMALL_FILE:
        out.append(
            {
                "what": f"{files:,} files of {statistics['bytes'] / files / 2**20:.1f} MB on average",
                "why": "every reader opens them one by one, and each commit plans with all of them",
                "fix": "delta-cdc maintain",
            }
        )
    if files and statistics.get("rows") is None:
        out.append(
            {
                "what": "some files have no statistics",
                "why": "each look-up and each merge reads them, whatever their rows are",
                "fix": "delta-cdc maintain: it writes them anew",
            }
        )
    kept, hours = properties.get(_KEPT, _KEPT_BY_DEFAULT), hours_kept(properties)
    if hours is not None and hours < 24:
        out.append(
            {
                "what": f"old files are kept for {kept.removeprefix('interval ')}",
                "why": "VACUUM takes them from readers that are at work longer",
                "fix": "set the table property delta.deletedFileRetentionDuration to more than the longest reader takes",
            }
        )
    return out


def findings_of_checksum(checksum: Mapping[str, Any], version: int, statistics: Mapping[str, Any]) -> list[dict[str, str]]:
    """Whether a version's checksum file agrees with the files that the log's commits amount to. checksum: {} if there is none."""
    told = {"files": checksum.get("numFiles"), "bytes": checksum.get("tableSizeBytes")}
    unlike = [what for what, count in told.items() if count is not None and count != statistics[what]]
    if not unlike:
        return []
    return [{
        "what": f"the checksum file of version {version} tells of {', '.join(f'{told[what]:,} {what}' for what in unlike)}, "
                f"the log of {', '.join(f'{statistics[what]:,}' for what in unlike)}",
        "why": "one of the log's files was changed or put back, and Delta trusts the checksum file where it is there",
        "fix": f"compare the table with a rebuild (`dbt test`); if its rows are right, delete {version:020d}.crc",
    }]  # fmt: skip


def _json_file(session: SparkSession, uri: str, name: str) -> dict[str, Any]:
    """A file of the log that is one JSON object; {} where it is not there or is none."""
    try:
        found = json.loads(delta_log.first_line(session, uri, name) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
