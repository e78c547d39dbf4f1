"""Listing change sets: local files are told as Hadoop tells them, in less time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.sparkdelta import files, listing

NAMES = (
    "a.jsonl", "b c.jsonl", "100%25.jsonl", "x+y.jsonl", "[1]*?{}.jsonl", "é\U0001f600.jsonl", ".hidden", "_SUCCESS",
    "isDirectory=true; length=9",
)  # fmt: skip
PATTERNS = (
    "/*", "/*/*", "/two/*", "/one \\[1\\]/*", "/a.jsonl", "/\\[1\\]\\*\\?\\{\\}.jsonl", "/two", "/nothing/*", "/?.jsonl",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for sub in ("", "one [1]/", "two/", "two/three/"):
        (tmp_path / sub).mkdir(exist_ok=True)
        for size, name in enumerate(NAMES):
            (tmp_path / sub / name).write_text("x" * size)
            os.utime(tmp_path / sub / name, (1_700_000_000 + size, 1_700_000_000.987654 + size))
    (tmp_path / "pointing").symlink_to(tmp_path / "a.jsonl")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_local_files_are_told_as_hadoop_tells_them(spark, folder: Path, scheme: str, pattern: str) -> None:
    found = listing.list_files(spark, f"{scheme}{folder}{pattern}")
    system, path = listing.file_system(spark, f"{scheme}{folder}{pattern}")
    of_hadoop = list(listing._found_files(spark, system.globStatus(path)))
    by_path = lambda each: each["path"]  # noqa: E731
    assert sorted(found, key=by_path) == sorted(of_hadoop, key=by_path)
    assert bool(found) == (pattern not in ("/two", "/nothing/*"))


def test_a_folder_is_the_one_of_that_name(spark, folder: Path) -> None:
    shops = [{"feed": "shop", "folder": f"{scheme}{folder}/one [1]", "names": "*"} for scheme in ("", "file:")]
    assert files.create_listing_view(spark, "listing", shops) == {}
    found = [row.path for row in spark.table("listing").collect()]
    assert sorted(found) == sorted(f"file:{folder}/one [1]/{name}" for name in NAMES for _ in shops)


@pytest.mark.parametrize("pattern", ["/*", "/*/*"])
def test_only_what_sorts_above_a_name_is_listed(spark, folder: Path, pattern: str) -> None:
    after = {f"file:{folder}": "one [1]"}
    found = {each["path"].removeprefix(f"file:{folder}/") for each in listing.list_files(spark, f"{folder}{pattern}", after)}
    system, path = listing.file_system(spark, f"{folder}{pattern}")
    everything = [each["path"] for each in listing._found_files(spark, system.globStatus(path))]
    nested = pattern == "/*/*"
    assert found == {each.removeprefix(f"file:{folder}/") for each in everything if listing._is_after(each, nested, after)}
    assert found
    assert min(found) > "one [1]"
    assert len(found) < len(everything)


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_files_at_any_depth_are_told_as_hadoop_tells_them(spark, folder: Path, monkeypatch, scheme: str) -> None:
    (folder / "_temporary").mkdir()
    (folder / "_temporary/0.jsonl").touch()
    (folder / "linked").symlink_to(folder / "two")
    names = [name for name in NAMES if name[0] not in "._"]
    subs = ("", "one [1]/", "two/", "two/three/", "linked/", "linked/three/")
    expected = {f"{sub}{name}" for sub in subs for name in names}
    local = listing.list_files(spark, f"{scheme}{folder}/**")
    found = {each["path"].removeprefix(f"file:{folder}/") for each in local}
    assert expected <= found
    assert not any("_temporary" in each for each in found)

    class Elsewhere:
        def __init__(self, system):
            self.system = system

        def getUri(self):
            return self

        def getScheme(self):
            return "s3a"

        def globStatus(self, path):
            return self.system.globStatus(path)

    of_files = listing.file_system
    monkeypatch.setattr(listing, "file_system", lambda *given: (Elsewhere(of_files(*given)[0]), of_files(*given)[1]))
    by_path = lambda each: each["path"]  # noqa: E731
    of_hadoop = listing.list_files(spark, f"{scheme}{folder}/**")
    assert sorted(of_hadoop, key=by_path) == sorted(local, key=by_path)
    assert listing.list_files(spark, f"{folder}/nothing/**") == []
