"""Change sets that are no longer as they were recorded, without Spark."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import files, listing, row_messages


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_S4_both_times_of_a_changed_change_set_are_told_in_one_zone(berlin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"path": "/l/1", "size": 7, "modified_at": datetime(2026, 7, 1, 8, tzinfo=timezone.utc)}
    monkeypatch.setattr(files, "list_files", lambda session, pattern: [there])
    recorded = {"change_set": "/l/1", "unit": "file", "size": 7, "modified_at": datetime(2026, 7, 1, 10)}  # as Spark has it
    assert files.changed_files(Mock(), [recorded]) == []
    (changed,) = files.changed_files(Mock(), [{**recorded, "size": 6}])
    assert changed["found"] == f"7 bytes, modified {changed['modified_at']}" == "7 bytes, modified 2026-07-01 08:00:00+00:00"


@pytest.mark.parametrize(("unit", "pattern"), [("file", "/l/1"), ("folder", "/l/1/*")])
def test_S4_S5_a_change_set_that_a_lost_ledger_told_the_size_of_is_gone_all_the_same(
    unit: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovered = {"change_set": "/l/1", "batch_id": 1, "unit": unit, "size": None, "modified_at": None}
    there = {pattern: [{"path": "/l/1", "size": 7, "modified_at": datetime(2026, 7, 1, 8, tzinfo=timezone.utc)}]}
    monkeypatch.setattr(files, "list_files", lambda session, pattern: there.get(pattern, []))
    assert files.changed_files(Mock(), [recovered]) == []
    there.clear()
    assert files.changed_files(Mock(), [recovered]) == [{**recovered, "found": "it is gone"}]


def test_S4_what_is_hidden_in_a_folder_does_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime(2026, 7, 1, 8, tzinfo=timezone.utc)
    names = ("1.json", "_SUCCESS", "_processed", ".DS_Store")
    there = [{"path": f"/l/day/{name}", "size": 7, "modified_at": at} for name in names]
    monkeypatch.setattr(files, "list_files", lambda session, pattern: there)
    recorded = {"change_set": "/l/day", "unit": "folder", "size": 14, "modified_at": at}
    assert files.changed_files(Mock(), [recorded], "_SUCCESS") == []
    assert files.changed_files(Mock(), [recorded], "1.json") == [{**recorded, "found": f"7 bytes, modified {at}"}]


def test_S4_the_file_that_says_a_folder_is_whole_is_none_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["1.json", "manifest.json", "_SUCCESS", ".1.json.crc"]
    monkeypatch.setattr(files, "list_files", lambda session, pattern: [{"path": f"/l/day/{name}"} for name in names])
    assert files._files_in(Mock(), "/l/day", {"ready": "manifest.json"}) == ["/l/day/1.json"]
    assert files._files_in(Mock(), "/l/day", {"ready": "_SUCCESS"}) == ["/l/day/1.json", "/l/day/manifest.json"]


def test_S4_a_folder_with_files_in_folders_is_not_taken_for_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["_SUCCESS", "country=DE/.part-0.parquet.crc", "country=DE/part-0.parquet"]
    monkeypatch.setattr(files, "list_files", lambda session, pattern: [{"path": f"/l/day/{name}"} for name in names])
    told = r"feed shop, change set /l/day: it holds files in folders \(country=DE/part-0\.parquet\), and only those in the folder"
    with pytest.raises(DbtRuntimeError, match=told):
        files.create_lines_view(Mock(), "v", [{"change_set": "/l/day", "batch_id": 1, "unit": "folder"}], {"feed": "shop"})
    del names[2]
    assert files._files_in(Mock(), "/l/day", {"feed": "shop"}) == []


def test_S4_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1/set.jsonl").touch()
    system = Mock(getUri=lambda: Mock(getScheme=lambda: "file"))
    monkeypatch.setattr(listing, "file_system", lambda session, path: (system, path))
    (found,) = listing.list_files(Mock(), f"{tmp_path}/**")
    assert found["path"] == f"file:{tmp_path}/day=1/set.jsonl"
    assert listing.list_files(Mock(), f"{tmp_path}/not there/**") == []
    read = os.scandir

    def refused(path: str) -> Any:
        if path.endswith("day=1"):
            raise PermissionError(13, "Permission denied", path)
        return read(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(DbtRuntimeError, match=r"cannot be read: .*Permission denied: .*day=1"):
        listing.list_files(Mock(), f"{tmp_path}/**")


def test_S4_a_hidden_folder_beside_those_that_are_change_sets_is_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("day", "_temporary", ".Trash-0"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "_SUCCESS").touch()
    looked_into: list[str] = []
    read = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: looked_into.append(path) or read(path))
    (found,) = listing._local_files(str(tmp_path), "*", True, {})
    assert found["path"] == f"file:{tmp_path}/day/_SUCCESS"
    assert looked_into == [str(tmp_path), f"{tmp_path}/day"]


def test_S4_a_name_that_is_no_utf_8_is_told_and_not_recorded_with_other_characters(tmp_path: Path) -> None:
    (tmp_path / "\\udc80 é.jsonl").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/.\xdc.jsonl")).touch()
    assert len(list(listing._local_files(str(tmp_path), "*", False, {}))) == 2
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xdcbersicht.jsonl")).touch()
    with pytest.raises(DbtRuntimeError, match=r"/\\xdcbersicht\.jsonl', a name that is no UTF-8: Spark cannot open it"):
        list(listing._local_files(str(tmp_path), "*", False, {}))


def test_S4_a_name_that_hadoop_cannot_open_is_told() -> None:
    change_set = {"change_set": "file:/l/2026-11-20T03:15:00.json", "batch_id": 1, "unit": "file"}
    with pytest.raises(DbtRuntimeError, match=r"feed shop, file file:/l/2026-11-20T03:15:00\.json: .* a colon in its name\. "):
        files.create_lines_view(Mock(), "v", [change_set], {"feed": "shop", "file_format": "json"})
    said = Exception("java.net.URISyntaxException: Relative path in absolute URI: 2026-11-20T03:15:00.json")
    told = str(listing._unreadable("s3a://lake/landing/*", said).msg)
    assert told.endswith("Hadoop lists no folder that holds a name with a colon: give that file or folder another.")


def test_S4_a_parquet_file_with_nanoseconds_is_told_as_what_it_is() -> None:
    session, feed = Mock(), {"feed": "shop", "file_format": "parquet"}
    session.read.format.return_value.load.side_effect = Exception("Illegal Parquet type: INT64 (TIMESTAMP(NANOS,false)).")
    with pytest.raises(DbtRuntimeError, match=r"file /l/1\.parquet: .*INT64 \(TIMESTAMP\(NANOS,false\)\)\. Spark knows no nano"):
        row_messages.messages(session, ["/l/1.parquet"], feed)
