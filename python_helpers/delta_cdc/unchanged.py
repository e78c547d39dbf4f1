"""Whether a run has anything to do, told without dbt and Spark: what it reads (project, profile, environment, change sets) and
what it wrote (the tables' logs) is compared, by names, sizes and times, with what a run that loaded everything left behind.

Only what lies on this machine can be told so. A project with anything that does its own at each run (a table of the user's, a
hook) is run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timezone
from pathlib import Path
from typing import Any

import delta_cdc
from delta_cdc.folders import local_folders
from delta_cdc.project import Project
from delta_cdc.warm_dbt import Files, by_time_and_size

_ENV_VAR = re.compile(r"""env_var\s*\(\s*(?:(["'])(\w+)\1)?""")
_OURS = re.compile(r"\{\{\s*delta_cdc\.\w+\([^{}]*\)\s*\}\}")
_DEEP, _MANY = 1_000, 300_000  # folders in one another; change sets, which a run counts as quickly


class _CannotTell(Exception):
    """Only a run can."""


class Looked:
    """What a run is about to read. call: its command with all options. files: those of dbt's project, and its profile."""

    def __init__(self, project: Project, call: Sequence[str], files: Files) -> None:
        self._project = project
        self._record = project.root / "logs" / "delta-cdc.loaded.json"  # beside the lock under which it is written
        began = time.time_ns()
        self._reads: str | None = None
        with suppress(_CannotTell, OSError):  # a folder that cannot be listed is the run's to tell
            beside = list(_package())
            texts = [path for path in (*files, *beside) if path.endswith((".yml", ".yaml", ".sql"))]
            self._reads = _digest(
                [
                    list(call),
                    os.getcwd(),
                    sorted(files.items()),
                    sorted(by_time_and_size(beside).items()),
                    _environment(texts),
                    sorted(_change_sets(project, began).items()),
                ]
            )

    def was_loaded(self) -> bool:
        """Whether the newest run loaded all that is there, and nothing was changed since. If not, what it left is forgotten."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            left = json.loads(self._record.read_text("utf-8"))
            warehouse, schemas = left["warehouse"], left["schemas"]
            if self._reads is not None and left == self._left(warehouse, schemas, _logs(warehouse, schemas)):
                return True
        with suppress(OSError):
            self._record.unlink()
        return False

    def leave(self, results: Iterable[Any], nodes: Collection[Any], warehouse: Path | None) -> None:
        """After a run that loaded everything: note it. results: dbt's. nodes: dbt's, of the whole project. warehouse: the folder
        of the tables, if it is on this machine."""
        if self._reads is None or warehouse is None or not _only_ours(self._project, nodes):
            return
        schemas = sorted({f"{node.schema}.db".lower() for node in nodes if node.resource_type in ("model", "seed", "snapshot")})
        try:
            logs = _logs(str(warehouse), schemas)
        except OSError:  # a folder in it is another user's, or it lies on the HDFS of a cluster: the run is through all the same
            return
        newest: dict[str, int] = {}
        for path, (written, _) in logs.items():
            table = os.path.dirname(os.path.dirname(path))
            newest[table] = max(newest.get(table, 0), written)
        for result in results:
            if (node := result.node).resource_type != "model" or node.config.materialized in ("view", "ephemeral"):
                continue
            written = newest.get(str(warehouse / f"{node.schema}.db".lower() / node.alias.lower()), 0)
            if not 0 < written <= _ended(result):  # a table that is elsewhere, or that somebody else wrote to during the run
                return
        with suppress(OSError):
            self._record.write_text(json.dumps(self._left(str(warehouse), schemas, logs)), "utf-8")

    def _left(self, warehouse: str, schemas: Sequence[str], logs: Files) -> dict[str, Any]:
        return {"reads": self._reads, "warehouse": warehouse, "schemas": schemas, "tables": _digest(sorted(logs.items()))}


def _only_ours(project: Project, nodes: Collection[Any]) -> bool:
    """Whether a run does nothing but load the feeds: no table of the user's, no hook."""
    ours = {name for table in project.tables for name in (*table.models, f"raw_{table.feed}")}
    ours |= {"cdc_change_sets", "cdc_table_log"}
    for node in nodes:
        if node.resource_type == "operation" and not _OURS.fullmatch(node.raw_code.strip()):
            return False
        if node.resource_type == "model" and (
            node.config.pre_hook
            or node.config.post_hook
            or (node.name not in ours and node.config.materialized not in ("view", "ephemeral"))
        ):
            return False
    return True


def _ended(result: Any) -> int:
    """When a model was through, in ns since 1970; 0 where dbt does not say."""
    ends = [each.completed_at for each in result.timing if each.completed_at]
    return max((int(end.replace(tzinfo=end.tzinfo or timezone.utc).timestamp() * 1e9) for end in ends), default=0)


def _change_sets(project: Project, now: int) -> Files:
    """The change sets of all feeds. Raises _CannotTell where a feed is landed or lies elsewhere, or where one is so young that
    a later run takes it."""
    found: Files = {}
    for feed in project.feeds:
        settings, folders = feed.tables[0].settings, local_folders(project, feed)
        if folders is None:
            raise _CannotTell
        depth = 2 if settings.unit == "folder" else _DEEP if settings.sub_folders else 1
        of_feed: Files = {}
        for folder in folders:
            within = folder / "_delta_log" if settings.file_format == "delta" else folder
            of_feed |= _listed(str(within), depth, names_only=settings.list_after)
            if len(found) + len(of_feed) > _MANY:
                raise _CannotTell
        if settings.settle_seconds:
            settled = now - int(settings.settle_seconds * 1e9)
            if settings.list_after or any(written > settled for written, _ in of_feed.values()):
                raise _CannotTell
        found |= of_feed
    return found


def _logs(warehouse: str, schemas: Iterable[str]) -> Files:
    """The files of the logs of tables in some folders of a warehouse, and what tells that its metastore (of Derby) is another
    one. schemas: the folders of the project's own. Each `dbt run` adds to `cdc_runs`, though it finds nothing new."""
    found = by_time_and_size([os.path.join(os.path.dirname(warehouse), "metastore", "service.properties")])
    for schema in schemas:
        with suppress(FileNotFoundError), os.scandir(os.path.join(warehouse, schema)) as tables:
            for table in tables:
                if table.name != "cdc_runs":
                    found |= _listed(os.path.join(table.path, "_delta_log"), 1)
    return found


def _listed(folder: str, depth: int, *, names_only: bool = False) -> Files:
    """The files of a folder, and of those in it down to a depth. One that is not there has none. Raises OSError."""
    found: Files = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if depth > 1:
                    found |= _listed(entry.path, depth - 1, names_only=names_only)
            elif names_only:
                found[entry.path] = (0, 0)
            else:
                with suppress(FileNotFoundError):  # a link to what is gone, or removed meanwhile: a run takes the others too
                    told = entry.stat()
                    found[entry.path] = (told.st_mtime_ns, told.st_size)
    return found


def _package() -> Iterator[str]:
    """The files of this package and of its adapter: pip may have brought others."""
    here = os.path.dirname(delta_cdc.__file__)
    beside = os.path.join(os.path.dirname(here), "dbt")
    for top in (here, os.path.join(beside, "adapters", "sparkdelta"), os.path.join(beside, "include", "sparkdelta")):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names if not name.endswith(".pyc"))


def _environment(texts: Iterable[str]) -> list[tuple[str, str | None]]:
    """The variables of the environment that texts of the project ask for, and dbt's own. Raises _CannotTell where one is named
    by an expression."""
    names = {name for name in os.environ if name.startswith("DBT_")}
    for path in texts:
        for found in _ENV_VAR.finditer(Path(path).read_text("utf-8", errors="replace")) if os.path.exists(path) else ():
            if found[2] is None:
                raise _CannotTell
            names.add(found[2])
    return sorted((name, os.environ.get(name)) for name in names)


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
