"""The files that a pattern names, on any file system that Hadoop knows."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypedDict

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog
from dbt.adapters.sparkdelta.java import java_class, short_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ListedFile(TypedDict):
    """path: as Hadoop spells it, with its scheme. size: in bytes. modified_at: in UTC."""

    path: str
    size: int
    modified_at: datetime


def qualified_path(session: SparkSession, path: str) -> str:
    """A path as Hadoop spells it, with its scheme: `file:/data/x`."""
    system, hadoop_path = file_system(session, path)
    return str(hadoop_path.makeQualified(system.getUri(), system.getWorkingDirectory()).toString())


def list_files(session: SparkSession, pattern: str, after: Mapping[str, str] | None = None) -> list[ListedFile]:
    """The files that a glob pattern matches; none if nothing does. Where it ends with `/**`: those of the folder and of all in
    it, but for folders whose names begin with `_` or `.`.

    after: of a folder (its qualified path) only files and folders whose names sort above this one, by their code points.
    Raises DbtRuntimeError where its file system is not known or does not answer.
    """
    from py4j.protocol import Py4JJavaError

    system, hadoop_path = file_system(session, pattern)
    after = after or {}
    folder, _, name = pattern.rpartition("/")
    nested = folder.endswith("/*")
    folder = folder.removesuffix("/*")
    try:
        if name == "**":
            return list(_files_below(session, folder))
        if system.getUri().getScheme() == "file" and not _GLOB.search(folder):
            return list(_local_files(unescaped(folder), name, nested, after))
        found = _found_files(session, system.globStatus(hadoop_path))
        return [each for each in found if _is_after(each["path"], nested, after)]
    except (Py4JJavaError, OSError) as error:
        raise _unreadable(pattern, error) from None


def _is_after(path: str, nested: bool, after: Mapping[str, str]) -> bool:
    parts = path.rsplit("/", 2 if nested else 1)
    return parts[1] > after.get(parts[0], "")


def _local_files(folder: str, pattern: str, nested: bool, after: Mapping[str, str]) -> Iterator[ListedFile]:
    """As Hadoop tells local files, in a sixtieth of the time: a call of Java for each of a year's files takes half a minute."""
    place = os.path.normpath(folder.removeprefix("file:")).replace("//", "/")
    newest = after.get(f"file:{place}", "")
    is_glob = bool(_GLOB.search(pattern))
    try:
        names = os.listdir(place) if is_glob else [unescaped(pattern)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if name <= newest:
            continue
        if nested:
            if name[0] in "._":  # none of its files is ever a change set; it may be huge, or somebody else's
                continue
            yield from _local_files(f"{place}/{name}", pattern, False, {})
        elif not is_glob or fnmatchcase(name, pattern):
            try:
                status = os.stat(f"{place}/{name}")
            except FileNotFoundError:  # it was removed meanwhile
                continue
            if stat.S_ISREG(status.st_mode):
                path = f"file:{place}/{name}"
                if name[0] not in "._" and _NO_UTF_8.search(path):
                    raise DbtRuntimeError(
                        f"The location holds {os.fsencode(path.removeprefix('file:'))!r}, a name that is no UTF-8: Spark cannot "
                        "open it. Give that file or folder another."
                    )
                yield _file(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _files_below(session: SparkSession, folder: str) -> Iterator[ListedFile]:
    """The files of a folder (escaped) and of those in it, at any depth."""
    system, _ = file_system(session, folder)
    if system.getUri().getScheme() == "file" and not _GLOB.search(folder):
        place = os.path.normpath(unescaped(folder).removeprefix("file:")).replace("//", "/")
        for each, folders, names in os.walk(place, onerror=_unless_gone, followlinks=True):
            folders[:] = [name for name in folders if name[0] not in "._"]
            for name in names:
                yield from _local_files(each, escaped(name), False, {})
        return
    for depth in itertools.count(1):
        statuses = system.globStatus(file_system(session, folder + "/*" * depth)[1])
        if not statuses:
            return
        for found in _found_files(session, statuses):
            if not any(name[0] in "._" for name in found["path"].rsplit("/", depth)[1:-1]):
                yield found


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):  # removed meanwhile, or never there
        raise error


def _found_files(session: SparkSession, statuses: Any) -> Iterator[ListedFile]:
    """Hadoop's FileStatus[] (None: no match) without a call of Java for each: as one text, \0 between them."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    count = len(statuses) if statuses is not None else 0
    # py4j passes no other array as Object[]
    objects = gateway.new_array(java_class(session, "java.lang.Object"), count)
    java_class(session, "java.lang.System").arraycopy(statuses or objects, 0, objects, 0, count)
    joined = str(java_class(session, "org.apache.commons.lang3.StringUtils").join(objects, "\0"))
    for status in joined.split("\0") if count else ():
        found = _STATUS.search(status)
        if found is None:
            raise DbtRuntimeError(f"Hadoop tells of a file in another way than known: {status}. Please report it.")
        if found["folder"] == "false":
            yield _file(found["path"], int(found["size"]), int(found["modified"]))


# FileStatus.toString(); the last match of a path, which may hold anything but a zero byte
_STATUS = re.compile(
    r"\{path=(?P<path>.*); isDirectory=(?P<folder>true|false)(?:; length=(?P<size>\d+))?;.* modification_time=(?P<modified>\d+);",
    re.DOTALL,
)
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # as which Python tells such bytes of a name
_GLOB = re.compile(r"(?<!\\)[*?\[\]{}]")


def _file(path: str, size: int, modified: int) -> ListedFile:
    """modified: milliseconds since 1970."""
    return {"path": path, "size": size, "modified_at": datetime.fromtimestamp(modified / 1000, tz=timezone.utc)}


def file_system(session: SparkSession, path: str) -> tuple[Any, Any]:
    from py4j.protocol import Py4JJavaError

    try:
        hadoop_path = java_class(session, "org.apache.hadoop.fs.Path")(path)
        return hadoop_path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), hadoop_path
    except Py4JJavaError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> DbtRuntimeError:
    wants = "\nWhich jar, settings and credentials an object store wants: docs/object_stores.md of delta_cdc."
    said = f"The location {path} cannot be read: {short_message(error)}"
    if "Relative path in absolute URI" in said:
        colon = "Hadoop lists no folder that holds a name with a colon: give that file or folder another."
        return DbtRuntimeError(f"{said}\n{colon}")
    return DbtRuntimeError(said if catalog.local_path(path) else said + wants)


def escaped(path: str) -> str:
    """A path whose glob characters mean themselves."""
    return "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in path)


def unescaped(path: str) -> str:
    return re.sub(r"\\(.)", r"\1", path)
