"""What `delta-cdc log` finds wrong with a Delta log."""

from __future__ import annotations

import pytest

from dbt.adapters.sparkdelta.table_log import checkpoints_of, commit, findings_of_files, findings_of_log


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
    assert what(findings_of_files({"files": 96, "bytes": 96 * 2**20}, {})) == ["96 files of 1.0 MB on average"]
    assert findings_of_files({"files": 63, "bytes": 63}, {}) == []
    assert findings_of_files({"files": 96, "bytes": 96 * 2**27}, {}) == []


@pytest.mark.parametrize(("kept", "found"), [("interval 2 hours", 1), ("interval 1 weeks", 0), ("interval 30 minutes", 1)])
def test_files_that_are_kept_for_less_than_a_day_are_told(kept, found):
    assert len(findings_of_files({}, {"delta.deletedFileRetentionDuration": kept})) == found


def test_a_commit_tells_its_rows_its_files_and_its_batch():
    entry = {
        "version": 7, "timestamp": 1767225600000, "operation": "MERGE", "readVersion": 6, "isolationLevel": "Serializable",
        "isBlindAppend": False, "userMetadata": '{"app_id": "final_t@0", "version": 12}',
        "operationMetrics": {"numTargetRowsInserted": "3", "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "1",
                             "numTargetFilesAdded": "1", "numTargetFilesRemoved": "4", "executionTimeMs": "9"},
    }
    told = commit(entry, {7: True})
    assert {name: told[name] for name in ("version", "at", "app_version", "inserted", "updated", "deleted")} == {
        "version": 7, "at": "2026-01-01 00:00:00", "app_version": 12, "inserted": 3, "updated": 2, "deleted": 1,
    }
    assert (told["files_added"], told["files_removed"], told["checkpoint"]) == (1, 4, True)


def test_a_commit_of_somebody_else_tells_what_it_has():
    told = commit({"version": 0, "timestamp": 0, "operation": "CREATE TABLE", "userMetadata": "by hand"}, {})
    assert (told["app_id"], told["inserted"], told["checkpoint"]) == (None, None, False)
