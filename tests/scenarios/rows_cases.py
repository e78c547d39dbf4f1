"""Rows-files (tests/cases/README.md): one table each, delivered change set by change set, all tables of a run at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from delta_cdc.settings import Settings
from delta_cdc.sql_names import names_in, unquoted
from tests.scenarios.project import UserProject
from tests.scenarios.values import Rows, difference, exact_json, read_exactly, refuse_misspelled

FEED = "cases"
# Whose change sets hold changes of several tables, as messages; a line of a file's `batches` is a message then.
MIXED = "mixed"
FEEDS = {FEED: {"format": "rows", "location": "{table}"}, MIXED: {"format": "wal2json_v2", "location": MIXED}}
# Settings that a file gives under their own names: all of a table, but those that it has fields of its own for.
SETTINGS = [
    name
    for name, setting in Settings.model_fields.items()
    if cast(dict[str, Any], setting.json_schema_extra)["level"] != "feed"
    and name not in ("keys", "sequence_by", "columns", "except_columns", "source_table", "final_name", "paused")
]
# What else is read of a file.
FIELDS = (
    "scd", "keys", "sequence", "sequence_by", "schema", "batches", "batch_columns", "missing", "delete_when", "truncate_when",
    "columns", "except_columns", "track_history", "ignore_null", "expected", "expected_any", "error", "name",
)  # fmt: skip
# The fields that name columns: one alone may stand there as text.
NAMING = ("keys", "columns", "except_columns", "track_history", "ignore_null", "set_on_insert", "never_store")


@dataclass
class RowsCase:
    """path: its file. table: the table that it becomes. content: the file. refusals: why it could not be configured or run.
    broken: why the file is no case, or its rows cannot be read.
    quarantined: where the file expects a refusal, why rows of it were quarantined. feed: one of FEEDS."""

    path: Path
    table: str
    content: dict[str, Any]
    refusals: list[str] = field(default_factory=list)
    broken: str = ""
    quarantined: str = ""
    feed: str = FEED

    @property
    def name(self) -> str:
        return str(self.content.get("name") or self.path.stem)

    def configuration(self, batch: int) -> dict[str, Any]:
        """The table's entry for `UserProject.configure` when a batch arrives."""
        c = self.content
        schema = self._listed(batch)
        sequence = c["sequence"] if isinstance(c["sequence"], list) else [c["sequence"]]
        cdc: dict[str, Any] = {"keys": list(c.get("keys") or []), "sequence_by": sequence}
        names = {"delete_when": "deleted_when", "truncate_when": "truncated_when"}
        cdc |= {ours: c[theirs] for theirs, ours in names.items() if c.get(theirs)}
        cdc |= {name: c[name] for name in SETTINGS if c.get(name) not in (None, "", [], {})}
        if c.get("track_columns") == []:  # H3: the key alone; elsewhere an empty list says nothing
            cdc["track_columns"] = []
        if "renamed_columns" in cdc:
            cdc["renamed_columns"] = _of_batch(c["renamed_columns"], batch) or {}
        kept_out = {name.lower() for name in c.get("never_store") or ()}
        there = _without(kept_out, schema)  # what a setting may name
        gone = {name.lower() for name in (*c["schema"], *kept_out)} - {name.lower() for name in there}
        if ignored := _names_of_batch(c.get("ignore_null"), batch):
            keys = {name.lower() for name in cdc["keys"]}
            silent = _columns_of(ignored, [name for name in c["schema"] if name.lower() not in keys])
            cdc["ignore_null_updates"] = silent if silent is True else _without(gone, silent)
        if "set_on_insert" in cdc:
            cdc["set_on_insert"] = _without(gone, cdc["set_on_insert"])
        if "mask" in cdc:
            cdc["mask"] = {name: cdc["mask"][name] for name in _without(gone, cdc["mask"])}
        later = gone - kept_out
        if "partition_by" in cdc:
            cdc["partition_by"] = [sql for sql in cdc["partition_by"] if not _names_any(sql, later)]
        if "expressions" in cdc:
            cdc["expressions"] = {name: sql for name, sql in c["expressions"].items() if not _names_any(sql, later)}
            gone |= {name.lower() for name in c["expressions"].keys() - cdc["expressions"].keys()} - {n.lower() for n in there}
        # by itself a table leaves out flag and old keys; a multiset has to, or a delete would be another row
        leaves_out = bool(cdc.get("old_keys") or cdc.get("operation")) and c.get("keyless") != "multiset"
        if c.get("columns") or self._shape(batch) is None or leaves_out:
            chosen = _selection(c.get("columns"), batch, "columns", "except_columns", all_columns=there, gone=gone)
            # an empty `except_columns` is as none: it leaves out flag and old keys
            cdc |= {"columns": there} if chosen == {"except_columns": []} else chosen
        if c.get("track_history") is not None:
            chosen = _selection(c["track_history"], batch, "include", "except", all_columns=None, gone=gone)
            if chosen not in ({"except": []}, {"include": None}):  # all that history has
                cdc["track_columns"] = chosen.get("include", chosen)
        return {"name": self.table, "cdc": cdc, "columns": schema}

    def _shape(self, batch: int) -> list[str] | None:
        """The columns that the source has when a batch arrives, and so those that are listed; None: all of them."""
        shape: list[str] | None = _of_batch(self.content.get("batch_columns") or None, batch)
        return shape

    def _listed(self, batch: int) -> dict[str, str]:
        """The columns that are listed when a batch arrives, with their types."""
        shape = self._shape(batch)
        renamed = self._renamed(batch) if shape is None else ()
        types = {n: _of_batch(t, batch) for n, t in self.content["schema"].items() if not shape or n in shape}
        return {name: types[name] for name in _without(renamed, types) if types[name]}

    def _renamed(self, batch: int) -> set[str]:
        """The names, in lower case, that columns had before a batch or have after it alone: a table lists a column once."""
        given = self.content.get("renamed_columns")
        renames = [each or {} for each in (given if isinstance(given, list) else [given])]
        before = [old for each in renames[: batch + 1] for old in each.values()]
        after = [new for each in renames[batch + 1 :] for new in each]
        return {name.lower() for name in (*before, *after)} - {new.lower() for new in _of_batch(renames, batch)}

    def change_set(self, number: int) -> str | None:
        """The lines of one batch; None after the last."""
        batches = self.content["batches"]
        if number >= len(batches):
            return None
        known = {name.lower() for name in self._shape(number) or ()}
        missing = self.content.get("missing") or []
        lines = []
        for index, row in enumerate(batches[number]):
            absent = {name.lower() for batch, of, names in missing if (batch, of) == (number, index) for name in names}
            there = {k: v for k, v in row.items() if k.lower() not in absent and (not known or k.lower() in known)}
            lines.append(exact_json(there) + "\n")
        return "".join(lines)

    @property
    def query(self) -> str:
        columns = [name for name in self.compared if name not in ("__START_AT", "__END_AT")]
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in columns) or "*"
        times = ", valid_from as __START_AT, valid_to as __END_AT" if self.content["scd"] == 2 else ""
        return f"select {names}{times} from {self.relation}"

    @property
    def compared(self) -> list[str]:
        """The columns of the expected rows, each once."""
        return list({name: None for rows in self.expected for row in rows for name in row})

    @property
    def relation(self) -> str:
        """The table whose rows the file expects; `{schema}` stands for the project's schema."""
        return f"{{schema}}.hist_{self.feed}__{self.table}" if self.content["scd"] == 2 else f"{{schema}}.final_{self.table}"

    @property
    def left_out(self) -> list[str]:
        """The columns that must not be in that table."""
        given = self.content.get("columns")
        if given is None or _is_one_a_batch(given):
            return []
        chosen = _selection(given, 0, "include", "except", all_columns=[])
        kept = {name.lower() for name in (*chosen.get("include", ()), *(self.content.get("keys") or ()), *self.compared)}
        return _without(kept, chosen.get("except", self.content["schema"]))

    def unwanted(self, project: UserProject, *more: str) -> str:
        """Those of them, and of `more`, that its table has."""
        names = {name.lower() for name in (*self.left_out, *more)}
        there = project.columns_if_any(self.relation) if names else ()
        return ", ".join(sorted(name for name in there if name.lower() in names))

    @property
    def expected(self) -> list[Rows]:
        """The results of which the file allows any."""
        return self.content.get("expected_any") or [self.content.get("expected") or []]

    def difference(self, actual: Rows) -> str | None:
        """What is expected and not there, and what is there and not expected; None if they are equal."""
        differences = [difference(rows, actual) for rows in self.expected]
        return None if None in differences else differences[0]


def _names_any(sql: str, columns: Collection[str]) -> bool:
    """columns: in lower case."""
    single = unquoted(sql)
    return any(name.lower() in columns for name in (names_in(sql) if single is None else [single]))


def _of_batch(given: Any, batch: int) -> Any:
    """What holds when a batch arrives: the only one, or of a list that of the batch."""
    return given[min(batch, len(given) - 1)] if isinstance(given, list) else given


def _names_of_batch(given: Any, batch: int) -> Any:
    """What names columns when a batch arrives: a list of names is the only one, unlike one of such lists."""
    return _of_batch(given, batch) if _is_one_a_batch(given) else given


def _without(columns: Collection[str], names: Iterable[str]) -> list[str]:
    """columns: in lower case."""
    return [name for name in names if name.lower() not in columns]


def _selection(
    given: Any, batch: int, include: str, leave_out: str, *, all_columns: list[str] | None, gone: Collection[str] = ()
) -> dict[str, Any]:
    """gone: columns in lower case that a setting cannot name: the source does not have them when the batch arrives, or they are
    kept out."""
    given = _names_of_batch(given, batch)
    if isinstance(given, Mapping) and given.get("except") is not None:
        return {leave_out: _without(gone, given["except"])}
    given = given.get("include") if isinstance(given, Mapping) else given
    return {include: all_columns if given is None else _without(gone, given)}


def _is_one_a_batch(given: Any) -> bool:
    return isinstance(given, list) and any(not isinstance(each, str) for each in given)


def _columns_of(given: Any, all_columns: list[str]) -> Any:
    """true, a list, {include: […]} or {except: […]} as true or a list."""
    if isinstance(given, Mapping):
        if given.get("except") is None:
            return all_columns if given.get("include") is None else given["include"]
        return _without({name.lower() for name in given["except"]}, all_columns)
    return given


def read_cases(paths: Sequence[Path]) -> list[RowsCase]:
    return [_read(path, f"t{number:04d}") for number, path in enumerate(paths)]


def _as_lists(given: Any) -> Any:
    """What names columns, with each text that stands where a list does as a list of it."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping):
        return {name: _as_lists(each) for name, each in given.items()}
    return [_as_lists(each) for each in given] if _is_one_a_batch(given) else given


def _in_its_words(content: dict[str, Any]) -> dict[str, Any]:
    """A file with what stands under a setting's name in the field for it, a schema that is one a batch as types that are, `scd` a
    number, lists where one name stands for a list, and columns of a batch spelled as in the schema."""
    content |= {name: _as_lists(content[name]) for name in NAMING if name in content}
    if content.get("scd") is not None and (scd := str(content["scd"])) in ("1", "2"):
        content["scd"] = int(scd)
    elif content.get("scd") is not None:
        raise ValueError(f"`scd` is {content['scd']!r}. It is 1, where final is expected, or 2, where history is")
    if content.get("sequence_by") and not content.get("sequence"):
        content["sequence"] = content["sequence_by"]
    if content.get("except_columns") and not content.get("columns"):
        content["columns"] = {"except": content["except_columns"]}
    schema = content.get("schema")
    if isinstance(schema, list):
        names = dict.fromkeys(name for each in schema for name in each)
        content["schema"] = schema = {name: [each.get(name) for each in schema] for name in names}
    if content.get("batch_columns") and schema:
        spelled = {**{name.lower(): name for name in schema}, **{name: name for name in schema}}
        content["batch_columns"] = [
            each and [spelled.get(name, spelled.get(name.lower(), name)) for name in each] for each in content["batch_columns"]
        ]
    return content


def _read(path: Path, table: str) -> RowsCase:
    case = RowsCase(path, table, {})
    try:
        case.content = _in_its_words(read_exactly(path, ["batches", "expected", "expected_any"]))
        refuse_misspelled((name for name, value in case.content.items() if value is not None), [*SETTINGS, *FIELDS])
        lost = [name for name in ("scd", "schema", "sequence", "batches") if case.content.get(name) is None]
        if lost:
            raise ValueError(f"it has no {', '.join(lost)}")
        asked: list[Any] = [case.query, case.left_out]
        for number in range(len(case.content["batches"])):
            asked += [case.configuration(number), case.change_set(number)]
    except Exception as error:  # whatever a file holds, the others are run
        case.broken = f"the file is no case: {type(error).__name__}: {error}"
    return case


def run_cases(project: UserProject, cases: Sequence[RowsCase], *, runs: int | None = None) -> None:
    """Deliver the change sets of all cases, one after another, with a dbt run for each.

    runs: at most so many; the last one finds all change sets that are left at once. None: as many as there are.
    What cannot be configured or fails to run is noted in the case's `refusals`; its later change sets still arrive.
    """
    landing = project.path / "landing"
    cases = [case for case in cases if not case.broken]
    for case in cases:
        _folder(landing, case).mkdir(parents=True, exist_ok=True)
    configured: list[dict[str, Any]] | None = None
    most = max((len(case.content["batches"]) or 1 for case in cases), default=0)
    arrived: dict[str, None] = {}
    for number in range(most):
        tables = [case.configuration(number) for case in cases]
        if tables != configured:
            configured = tables
            usable = _configure(project, cases, number, landing)
        files: dict[Path, list[list[str]]] = {}
        for case in usable:
            lines = case.change_set(number)
            if lines is not None:
                files.setdefault(_folder(landing, case) / f"{number:04d}.jsonl", []).append(lines.splitlines(keepends=True))
            if lines is not None or number == 0:  # a table to which nothing ever comes is there too
                arrived |= dict.fromkeys([*([f"raw_{MIXED}"] if case.feed == MIXED else []), f"stg_{case.feed}__{case.table}+"])
        for path, some in files.items():  # lines of several tables take turns
            path.write_text("".join(line for turn in zip_longest(*some, fillvalue="") for line in turn))
        if arrived and (runs is None or number < runs - 1 or number == most - 1):
            # what has nothing new is left out: that it costs nothing is tested elsewhere
            _note_failures(project.try_dbt("run", "--select", "cdc_change_sets", *arrived, quiet=True), cases)
            arrived.clear()


def _folder(landing: Path, case: RowsCase) -> Path:
    return landing / FEEDS[case.feed]["location"].format(table=case.table)


def _configure(project: UserProject, cases: Sequence[RowsCase], batch: int, landing: Path) -> list[RowsCase]:
    """Configure the feeds with the cases that can be; returns them."""
    usable = list(cases)
    while usable:
        for feed, settings in FEEDS.items():
            tables = [case.configuration(batch) for case in usable if case.feed == feed]
            where = {"location": f"{landing}/{settings['location']}", "change_set_order": "name"}
            if tables:
                project.configure(feed, settings=settings | where, tables=tables)
        refused = project.problems()
        for case in usable:
            case.refusals += [p.message for p in refused if p.table == case.table]
        if not refused:
            break
        if not any(p.table == case.table for p in refused for case in usable):
            raise AssertionError("\n".join(map(str, refused)))
        usable = [case for case in usable if not any(p.table == case.table for p in refused)]
    if usable:
        project.generate()
    return usable


def _note_failures(result: Any, cases: Sequence[RowsCase]) -> None:
    of_table = {case.table: case for case in cases}
    for failed in UserProject.failed(result):
        table = failed.node.name.removesuffix("_keys").split("__")[-1].removeprefix("final_")
        if table not in of_table:
            raise AssertionError(f"{failed.node.name}: {failed.message}")
        of_table[table].refusals.append(f"{failed.node.name}: {failed.message}")
