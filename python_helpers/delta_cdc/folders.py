"""Folders of change sets in which a run finds nothing, or files of another kind. These are notes and no errors: the feed may only
be about to begin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path

from delta_cdc.errors import nearest
from delta_cdc.flat_files import kind_of
from delta_cdc.project import Feed, Project


def local_folders(project: Project, feed: Feed) -> dict[Path, str] | None:
    """The folders of a feed's change sets, each with the name of its table in the feed (empty: all tables share it). None where
    they do not lie on this machine, or are landed."""
    location = feed.tables[0].settings.location or ""
    if "://" in location or location.startswith("file:") or feed.is_landed:
        return None
    names = [table.settings.source_table or table.name for table in feed.tables] if "{table}" in location else [""]
    return {project.root / location.replace("{table}", name): name for name in names}


def empty_folders(project: Project, *, whole_feeds: bool = False) -> list[str]:
    """A sentence for each folder on this machine that is not there, or holds what no run takes.

    whole_feeds: only of feeds none of whose tables has anything.
    """
    out = []
    for feed in project.feeds:
        folders = local_folders(project, feed)
        if folders is None:
            continue
        told = (_why_nothing(project.root, folder, feed, name) for folder, name in folders.items())
        # one folder with something is enough: a year of change sets of all tables is not listed for a note
        said = [*takewhile(bool, told)] if whole_feeds else [*filter(None, told)]
        if said and not (whole_feeds and len(said) < len(folders)):
            out += [f"feed {feed.name}: {said[0]}"] if whole_feeds else [f"feed {feed.name}: {each}" for each in said]
    return out


def _why_nothing(root: Path, folder: Path, feed: Feed, name: str) -> str | None:
    """name: of the table whose folder it is; empty where all tables share one."""
    settings = feed.tables[0].settings
    shown = os.path.relpath(folder, root) if folder.is_relative_to(root) else str(folder)
    try:
        if folder.is_file():
            return f"{shown} is a file. `location` takes the folder that holds the change sets."
        if not folder.is_dir():
            beside = [each.name for each in folder.parent.iterdir() if each.is_dir()] if folder.parent.is_dir() else []
            close = nearest(name or folder.name, beside)
            if close is None:
                return f"there is no folder {shown} yet."
            setting = "source_table" if name else "location"
            return f"there is no folder {shown}. If `{close}` beside it is meant, say so in `{setting}`."
        if settings.file_format == "delta":
            return None if (folder / "_delta_log").is_dir() else f"{shown} is no Delta table: it has no _delta_log."
        if settings.unit == "file":
            if not settings.sub_folders and (deeper := _deeper(folder)) is not None:
                return (
                    f"{shown} holds folders and no files ({os.path.relpath(deeper, root)}). Change sets are looked for in the "
                    "folder itself; with `sub_folders: true` in those in it too."
                )
            if (other := _of_another_kind(folder, settings.file_format)) is not None:
                kind, file = other
                return f"{shown} holds {file}, and `file_format` is {settings.file_format}. Say {kind} if the files are that."
        elif not any((each / settings.ready).is_file() for each in folder.iterdir()) and any(_entries(folder)):
            return f"no folder in {shown} has a file {settings.ready}, with which it is whole (`ready`)."
    except OSError as error:
        return f"{shown} cannot be read: {error.strerror}."
    return None


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (each for each in entries if each.name[0] not in "._")


def _of_another_kind(folder: Path, file_format: str) -> tuple[str, str] | None:
    """The kind and the name of one of the first files of a folder, where the names of all of these tell a kind, and none this
    one."""
    kinds = {each.name: kind_of(Path(each.name)) for each in islice(filter(os.DirEntry.is_file, _entries(folder)), 20)}
    silent = any(kind == "json" and "json" not in name.lower() for name, kind in kinds.items())  # of those json is the default
    if not kinds or silent or file_format in kinds.values():
        return None
    name = min(kinds)
    return kinds[name], name


def _deeper(folder: Path) -> str | None:
    """One of the folders in a folder that holds no file; None where it has one, or nothing at all."""
    found = None
    for each in _entries(folder):
        if not each.is_dir():
            return None
        found = min(found or each.path, each.path)
    return found
