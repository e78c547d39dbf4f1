"""What `delta-cdc log` and `cdc_table_log` tell of a Delta log."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log, queries
from dbt.adapters.sparkdelta.table_log import (
    checkpoints_of,
    commit,
    findings_of_checksum,
    findings_of_files,
    findings_of_log,
    new_commits,
    schema_changes,
)


def commits(*versions: int) -> list[str]:
    return [f"{version:020d}.json" for version in versions]


def parts(version: int, *numbers: int, of: int) -> list[str]:
    return [f"{version:020d}.checkpoint.{number:010d}.{of:010d}.parquet" for number in numbers]


def what(findings):
    return [finding["what"] for finding in findings]


def test_a_log_in_order_has_no_findings():
    names = [*commits(*range(12)), f"{10:020d}.checkpoint.parquet", "_last_checkpoint", f"{11:020d}.crc"]
    assert findings_of_log(names, 11, {}, 10) == []


def test_commits_below_a_checkpoint_may_be_gone_above_it_none_may():
    names = [*commits(8, 9, 10, 11, 13), f"{10:020d}.checkpoint.parquet"]
    assert what(findings_of_log(names, 13, {}, 10)) == ["commit 12 is not in the log"]
    assert what(findings_of_log(commits(1, 2), 2, {}, None)) == ["commit 0 is not in the log"]


def test_a_checkpoint_of_parts_needs_all_of_them():
    whole, broken = parts(10, 1, 2, of=2), parts(20, 1, of=2)
    assert checkpoints_of([*whole, *broken]) == {10: True, 20: False}
    found = findings_of_log([*commits(*range(11, 22)), *whole, *broken], 21, {}, 20)
    assert what(found) == ["_last_checkpoint names version 20, whose checkpoint is not there or not whole"]


def test_checkpoints_of_the_second_kind_are_known_by_their_uuid():
    name = f"{4:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    assert checkpoints_of([name]) == {4: True}


def test_many_commits_without_a_checkpoint_are_told():
    told = what(findings_of_log(commits(*range(31)), 30, {}, None))
    assert told == ["31 commits since the last checkpoint; one is due every 10"]
    assert findings_of_log(commits(*range(31)), 30, {"delta.checkpointInterval": "100"}, None) == []


def test_many_small_files_are_told():
    assert what(findings_of_files({"files": 96, "bytes": 96 * 2**20, "rows": 1}, {})) == ["96 files of 1.0 MB on average"]
    assert findings_of_files({"files": 63, "bytes": 63, "rows": 1}, {}) == []
    assert findings_of_files({"files": 96, "bytes": 96 * 2**27, "rows": 1}, {}) == []


@pytest.mark.parametrize(("kept", "found"), [("interval 2 hours", 1), ("interval 1 weeks", 0), ("interval 30 minutes", 1)])
def test_files_that_are_kept_for_less_than_a_day_are_told(kept, found):
    assert len(findings_of_files({}, {"delta.deletedFileRetentionDuration": kept})) == found


def test_a_commit_tells_its_rows_its_files_and_its_batch():
    info = {
        "timestamp": 1767225600123,
        "txnId": "8d1c",
        "operation": "MERGE",
        "isolationLevel": "Serializable",
        "readVersion": 6,
        "operationMetrics": {
            "numTargetRowsInserted": "3",
            "numTargetRowsUpdated": "2",
            "numTargetRowsDeleted": "1",
            "numTargetFilesAdded": "1",
            "numTargetFilesRemoved": "4",
            "executionTimeMs": "9",
        },
        "isBlindAppend": False,
        "engineInfo": "Spark",
    }
    told = commit(7, [("commitInfo", info), ("txn", {"appId": "final_t@0", "version": 12})], checkpoint=True)
    assert {name: told[name] for name in ("version", "commit_id", "app_id", "app_version", "inserted", "updated", "deleted")} == {
        "version": 7,
        "commit_id": "8d1c",
        "app_id": "final_t@0",
        "app_version": 12,
        "inserted": 3,
        "updated": 2,
        "deleted": 1,
    }
    assert told["at"] == datetime(2026, 1, 1, 0, 0, 0, 123000, timezone.utc)
    assert (told["files_added"], told["files_removed"], told["checkpoint"]) == (1, 4, True)
    assert told["metrics"]["executionTimeMs"] == 9


def test_rows_that_a_rewritten_file_keeps_are_not_inserted():
    info = {"timestamp": 0, "operation": "DELETE", "operationMetrics": {"numOutputRows": "5", "numCopiedRows": "5"}}
    told = commit(1, [("commitInfo", info)])
    assert (told["inserted"], told["metrics"]["numOutputRows"]) == (0, 5)


def test_a_commit_of_somebody_else_tells_what_it_has():
    told = commit(0, [("commitInfo", {"timestamp": 0, "operation": "CREATE TABLE", "userMetadata": "by hand"})])
    assert (told["app_id"], told["inserted"], told["checkpoint"], told["commit_id"]) == (None, None, False, "0")


def test_a_commit_tells_the_rows_of_its_files_when_it_removed_others_and_what_it_asks_of_readers():
    def add(rows: int | None) -> tuple[str, dict[str, Any]]:
        return "add", {"path": "f", "stats": None if rows is None else json.dumps({"numRecords": rows})}

    removes = [("remove", {"path": "g", "deletionTimestamp": at}) for at in (1767225600000, 1767225601000)]
    protocol = ("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                             "writerFeatures": ["deletionVectors", "domainMetadata"]})  # fmt: skip
    told = commit(3, [("commitInfo", {}), protocol, add(5), add(2), *removes])
    assert (told["rows_in_added_files"], told["removed_at"]) == (7, datetime(2026, 1, 1, 0, 0, 1, tzinfo=timezone.utc))
    assert told["protocol"] == "reader 3, writer 7: deletionVectors, domainMetadata"
    told = commit(4, [("commitInfo", {}), add(5), add(None)])
    assert (told["rows_in_added_files"], told["removed_at"], told["protocol"]) == (None, None, None)
    assert commit(5, [])["rows_in_added_files"] is None


def test_a_checksum_file_that_tells_of_other_files_than_the_log_is_told():
    of_log = {"files": 12, "bytes": 4096}
    assert findings_of_checksum({}, 7, of_log) == []
    assert findings_of_checksum({"numFiles": 12, "tableSizeBytes": 4096}, 7, of_log) == []
    assert what(findings_of_checksum({"numFiles": 11, "tableSizeBytes": 4096}, 7, of_log)) == [
        "the checksum file of version 7 tells of 11 files, the log of 12"]  # fmt: skip
    assert what(findings_of_checksum({"numFiles": 11, "tableSizeBytes": 4000}, 7, of_log)) == [
        "the checksum file of version 7 tells of 11 files, 4,000 bytes, the log of 12, 4,096"]  # fmt: skip


def test_files_without_statistics_are_told():
    assert what(findings_of_files({"files": 1, "bytes": 1, "rows": None}, {})) == ["some files have no statistics"]
    assert findings_of_files({"files": 0, "bytes": 0, "rows": 0}, {}) == []


def test_what_became_of_the_columns():
    before = {"a": "integer", "b": "string", "s": {"type": "struct", "fields": [field("x", "long")]}}
    after = {"a": "long", "s": {"type": "struct", "fields": [field("x", "long"), field("y", "string")]}, "c": "decimal(9,2)"}
    assert schema_changes(before, after) == [
        "added c decimal(9,2)",
        "dropped b",
        "a from int to bigint",
        "s from struct<x:bigint> to struct<x:bigint,y:string>",
    ]
    assert schema_changes(after, after) == []


def field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


class Log:
    """A table's log, written by hand, and a session that hands back the rows of which a frame is to be made."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "_delta_log"
        self.folder.mkdir()
        monkeypatch.setattr(catalog, "location", lambda _session, _schema, table: None if table == "none" else str(folder))

    def commit(self, version: int, txn_id: str, *columns: str) -> None:
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": version, "operation": "WRITE", "txnId": txn_id}}]
        if columns:
            schema = json.dumps({"type": "struct", "fields": [field(name, "integer") for name in columns]})
            actions.append(
                {
                    "metaData": {
                        "id": txn_id,
                        "format": {"provider": "parquet", "options": {}},
                        "schemaString": schema,
                        "partitionColumns": [],
                        "configuration": {},
                        "createdTime": 0,
                    }
                }
            )
        if version == 0:
            actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
        text = "".join(json.dumps(each) + "\n" for each in actions)
        (self.folder / f"{version:020d}.json").write_text(text)

    def new(self, *recorded: Any) -> list[tuple[Any, ...]]:
        """version, commit id and schema changes of the commits that are new; recorded: version and commit id of the newest."""
        session = SimpleNamespace(createDataFrame=frame)
        table = {"schema": "s", "table": "t", **dict(zip(("version", "commit_id"), recorded, strict=False))}
        rows: Any = new_commits(session, [{"schema": "s", "table": "none"}, table])
        assert {(row["schema"], row["table"]) for row in rows} <= {("s", "t")}
        return [(row["version"], row["commit_id"], row["schema_changes"]) for row in rows]


def frame(rows: list[tuple[Any, ...]], schema: str) -> list[dict[str, Any]]:
    names = re.findall(r"(?:^|, )`?(\w+)`? ", schema)
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log(tmp_path, monkeypatch)
    log.commit(0, "zero", "a")
    log.commit(1, "one")
    log.commit(2, "two", "a", "b")
    log.commit(3, "three", "a", "b")
    return log


def test_each_commit_is_new_once(log: Log):
    assert log.new() == [(0, "zero", None), (1, "one", None), (2, "two", ["added b int"]), (3, "three", None)]
    assert log.new(1, "one") == [(2, "two", ["added b int"]), (3, "three", None)]
    assert log.new(3, "three") == []


def test_all_commits_of_a_table_that_was_made_anew_are_new(log: Log):
    assert [version for version, *_ in log.new(1, "one of the table before")] == [0, 1, 2, 3]
    assert [version for version, *_ in log.new(30, "one of the table before")] == [0, 1, 2, 3]


def test_a_log_that_was_cleaned_up_beyond_what_is_recorded_holds_new_commits_only(log: Log):
    for version in (0, 1):
        (log.folder / f"{version:020d}.json").unlink()
    assert log.new(1, "one") == [(2, "two", None), (3, "three", None)]


def test_a_log_that_cannot_be_read_is_named(log: Log):
    (log.folder / f"{3:020d}.json").write_text('{"commitInfo": cut o')
    with pytest.raises(DbtRuntimeError, match=r"The Delta log of s\.t in /.* cannot be read: "):
        log.new(2, "two")


def test_a_query_is_kept_until_its_table_has_another_version_and_reads_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = {"name": "a", "type": "integer", "nullable": True, "metadata": {}}
    first = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "metaData": {
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "partitionColumns": [],
            "configuration": {},
            "schemaString": json.dumps({"type": "struct", "fields": [column]}),
        },
    }
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / commits(0)[0]).write_text("\n".join(json.dumps({kind: action}) for kind, action in first.items()))
    monkeypatch.setattr(delta_log, "location", lambda *name: None if name[2] == "none" else f"file:{tmp_path}")
    monkeypatch.setattr(delta_log._LocalLog, "history", lambda *_: pytest.fail("the history is read"))
    asked: list[str] = []
    monkeypatch.setattr(queries, "query_rows", lambda session, sql: asked.append(sql) or [{"n": len(asked)}])
    session: Any = None
    kept = [queries.cached_query(session, "kept", "t", "a query") for _ in range(2)]
    (log / commits(1)[0]).write_text(json.dumps({"commitInfo": {}}))
    kept.append(queries.cached_query(session, "kept", "t", "a query"))
    assert kept == [[{"n": 1}], [{"n": 1}], [{"n": 2}]]
    assert queries.cached_query(session, "kept", "none", "a query") == []
