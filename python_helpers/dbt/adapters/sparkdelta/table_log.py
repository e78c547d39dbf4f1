"""What a table's Delta log tells of its commits, and what is wrong with it. No Spark job where the log is on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkdelta import delta_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY_FILES, SMALL_FILE = 64, 16 << 20
CHECKPOINT_INTERVAL = 10  # Delta's own, where the table's properties say nothing
_ADDED = ("numFiles", "numTargetFilesAdded", "numAddedFiles")
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved", "numDeletedFiles")
_ROWS = {
    "inserted": ("numTargetRowsInserted", "numOutputRows"),
    "updated": ("numTargetRowsUpdated", "numUpdatedRows"),
    "deleted": ("numTargetRowsDeleted", "numDeletedRows"),
}


def table_log(session: SparkSession, schema: str, identifier: str, limit: int | None = 20) -> dict[str, Any] | None:
    """The newest commits of a table, newest first, and findings; None for a table that is not there.

    Returns location; commits: version, at (UTC), operation, app_id and app_version (of the transaction that wrote it),
    inserted, updated, deleted (rows), files_added, files_removed, read_version, isolation, blind_append, checkpoint (whether
    there is one of this version), engine; each None where the log does not say. findings: {what, why, fix}.
    """
    uri = delta_log.location(session, schema, identifier)
    if uri is None:
        return None
    log = delta_log.open_log(session, uri)
    files = delta_log.files_of(session, uri)
    checkpoints = checkpoints_of(files)
    commits = [commit(each, checkpoints) for each in log.history(limit)]
    findings = findings_of_files(log.statistics(None), log.properties())
    findings += findings_of_log(files, log.version, log.properties(), _last_checkpoint(session, uri))
    return {"location": uri, "commits": commits, "findings": findings}


def commit(entry: Mapping[str, Any], checkpoints: Mapping[int, bool]) -> dict[str, Any]:
    """One commit of `table_log`, from an entry of Delta's history."""
    metrics = {name: int(value) for name, value in (entry.get("operationMetrics") or {}).items() if str(value).isdigit()}
    if "numOutputRows" in metrics:
        metrics["numOutputRows"] = delta_log.rows_put_in(metrics)
    try:
        said = json.loads(entry.get("userMetadata") or "{}")
    except ValueError:
        said = {}
    said = said if isinstance(said, dict) else {}

    def metric(names: Sequence[str]) -> int | None:
        return next((metrics[name] for name in names if name in metrics), None)

    at = entry["timestamp"]
    return {
        "version": entry["version"],
        "at": str(datetime.fromtimestamp(at / 1000, timezone.utc))[:19] if isinstance(at, int) else str(at)[:19],
        "operation": entry["operation"],
        "app_id": said.get("app_id"),
        "app_version": said.get("version"),
        **{what: metric(names) for what, names in _ROWS.items()},
        "files_added": metric(_ADDED),
        "files_removed": metric(_REMOVED),
        "read_version": entry.get("readVersion"),
        "isolation": entry.get("isolationLevel"),
        "blind_append": entry.get("isBlindAppend"),
        "checkpoint": checkpoints.get(int(entry["version"]), False),
        "engine": entry.get("engineInfo"),
    }


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
    commits = {int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name)}
    start = max(whole, default=-1)
    lost = [each for each in range(start + 1, version + 1) if each not in commits]
    if lost:
        out.append({
            "what": f"commit {', '.join(map(str, lost[:5]))} is not in the log",
            "why": "no reader can tell what the table holds",
            "fix": "put the file back from a backup; nothing else brings it back",
        })
    if last_checkpoint is not None and not checkpoints.get(last_checkpoint):
        out.append({
            "what": f"_last_checkpoint names version {last_checkpoint}, whose checkpoint is not there or not whole",
            "why": "readers look for it first, and some stop there",
            "fix": "put the file back, or delete `_last_checkpoint`: it is written again with the next checkpoint",
        })
    interval = int(properties.get("delta.checkpointInterval", CHECKPOINT_INTERVAL))
    if version - start > 3 * interval:
        out.append({
            "what": f"{version - start} commits since the last checkpoint; one is due every {interval}",
            "why": "every reader opens each of these commits",
            "fix": "look into logs/dbt.log for a failure while a checkpoint was written",
        })
    return out


def findings_of_files(statistics: Mapping[str, Any], properties: Mapping[str, str]) -> list[dict[str, str]]:
    """What is wrong with the data files, and with how long they are kept."""
    out = []
    files = statistics.get("files") or 0
    if files >= MANY_FILES and statistics["bytes"] / files < SMALL_FILE:
        out.append({
            "what": f"{files:,} files of {statistics['bytes'] / files / 2**20:.1f} MB on average",
            "why": "every reader opens them one by one, and each commit plans with all of them",
            "fix": "delta-cdc maintain",
        })
    kept = properties.get("delta.deletedFileRetentionDuration", "interval 7 days")
    found = re.search(r"(\d+)\s*(second|minute|hour|day|week)", kept)
    hours = int(found[1]) * {"second": 1 / 3600, "minute": 1 / 60, "hour": 1, "day": 24, "week": 168}[found[2]] if found else None
    if hours is not None and hours < 24:
        out.append({
            "what": f"old files are kept for {kept.removeprefix('interval ')}",
            "why": "VACUUM takes them from readers that are at work longer",
            "fix": "set the table property delta.deletedFileRetentionDuration to more than the longest reader takes",
        })
    return out


def _last_checkpoint(session: SparkSession, uri: str) -> int | None:
    try:
        return int(json.loads(delta_log.first_line(session, uri, "_last_checkpoint") or "{}")["version"])
    except (ValueError, KeyError):
        return None
