"""Columns that come, go and change their types (rule E), in one project: a table a case.

Two runs with the first configuration and the second, and one in which nothing is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import NIGHTLY
from tests.scenarios.project import UserProject, write_change_set

SETTINGS: dict[str, Any] = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op"}
BASE = {"op": "string", "seq": "int", "id": "int"}
# table: settings and columns of the first run and of the second, and the rows that each brings
TABLES: dict[str, dict[str, Any]] = {
    "gains": {  # and E5: the changes of one batch have different columns
        "columns": ({"a": "int"}, {"a": "int", "b (new)": "string", "at": "timestamp_ntz"}),
        "rows": (
            [{"id": 1, "a": 1}, {"id": 2, "a": 2}],
            [
                {"id": 2, "a": 3, "b (new)": "x", "at": "2026-01-01 12:00:00"},
                {"id": 3, "a": 4, "extra": "e", "B": 7},
                {"id": 2, "op": "U", "b (new)": "y"},
                {"id": 3, "op": "U", "at": "2026-01-02 12:00:00"},
            ],
        ),
    },
    "gains_partitioned": {
        "columns": ({"p": "int", "a": "int"}, {"p": "bigint", "a": "int", "b": "int"}),
        "settings": {"partition_by": ["p"], "apply": "replace_partitions"},
        "rows": ([{"id": 1, "p": 1, "a": 1}, {"id": 2, "p": 2, "a": 1}], [{"id": 1, "p": 5000000000, "a": 1, "b": 2}]),
    },
    "young": {  # a column that was listed after its rows came; 2: with rows that are read again by `replay`
        "columns": ({"a": "int"}, {"a": "int", "b": "string"}),
        "settings": ({}, {"operation_codes": {"put": "U"}}),
        "rows": (
            [
                {"seq": 10, "id": 1, "a": 1},
                {"seq": 30, "id": 1, "op": "U", "a": 2},
                {"seq": 10, "id": 2, "a": 1},
                {"seq": 40, "id": 2, "op": "D"},
                {"seq": 35, "id": 3, "op": "put", "a": 3, "b": "kept"},
                {"seq": 36, "id": 4, "op": "put", "b": None},
            ],
            [
                {"seq": 20, "id": 1, "op": "U", "b": "late"},
                {"seq": 30, "id": 1, "op": "U", "a": 2},
                {"seq": 40, "id": 2, "op": "D"},
                {"seq": 20, "id": 4, "a": 4, "b": "before"},
            ],
        ),
    },
    "young_rewritten": {  # the same where staging is written anew
        "columns": ({"day": "date"}, {"day": "timestamp", "b": "string"}),
        "rows": ([{"seq": 10, "id": 1}, {"seq": 30, "id": 1, "op": "U"}], [{"seq": 20, "id": 1, "op": "U", "b": "late"}]),
    },
    "nested": {  # values that Spark compares in no other way than by their JSON
        "columns": (
            {"m": "map<string,int>", "gone": "map<string,int>", "s": "struct<x:int>", "d": "decimal(5,2)", "p": "int"},
            {"m": "map<string,int>", "s": "struct<x:bigint,y:int>", "d": "decimal(12,4)", "p": "int"},
        ),
        "settings": {"partition_by": ["p"], "apply": "replace_partitions"},
        "rows": (
            [
                {"seq": 1, "id": 1, "m": {"k": 1}, "gone": {"k": 1}, "s": {"x": 1}, "d": 1.25, "p": 1},
                {"seq": 1, "id": 2, "m": {"k": 1}, "s": {"x": 1}, "d": 1.25, "p": 2},
            ],
            [
                {"seq": 1, "id": 2, "m": {"k": 1}, "s": {"x": 1}, "d": 1.25, "p": 2},
                {"seq": 2, "id": 1, "op": "U", "m": {"k": 1}},
                {"seq": 3, "id": 1, "op": "U", "m": {"k": 2}, "s": {"x": 5000000000, "y": 2}, "d": 12345678.5},
            ],
        ),
    },
    "ignores": {
        "columns": ({"a": "int"}, {"a": "bigint", "b": "int"}),
        "settings": {"on_schema_change": "ignore"},
        "rows": ([{"id": 1, "a": 1}], [{"id": 1, "a": 5000000000, "b": 1}]),
    },
    "refuses": {
        "columns": ({"a": "int"}, {"a": "int", "b": "int"}),
        "settings": {"on_schema_change": "fail"},
        "rows": ([{"id": 1, "a": 1}], [{"id": 1, "a": 2, "b": 1}]),
    },
    "renames": {  # E2, with changes that were staged under the old name
        "columns": ({"old": "int", "b": "int"}, {"new": "bigint", "b": "int"}),
        "settings": ({}, {"renamed_columns": {"new": "old"}}),
        "rows": (
            [{"id": 1, "old": 1, "b": 1}, {"id": 2, "old": 2, "b": 2}, {"id": 2, "b": 3}],
            [{"id": 2, "b": 4}, {"id": 3, "new": 5000000000, "b": 3}, {"id": 4, "old": 4, "b": 3}],
        ),
    },
    "renames_and_retypes": {
        "columns": ({"old": "int", "b": "int"}, {"new": "string", "b": "int"}),
        "settings": ({}, {"renamed_columns": {"new": "old"}}),
        "rows": ([{"id": 1, "old": 1, "b": 1}], [{"id": 2, "new": "A12", "b": 2}]),
    },
    "renames_a_number": {  # E2, E4: what it counts is not known
        "columns": ({"old": "bigint"}, {"new": "timestamp"}),
        "settings": ({}, {"renamed_columns": {"new": "old"}}),
        "rows": ([{"id": 1, "old": 1700000000000}], [{"id": 2, "new": "2023-11-14 22:13:20"}]),
    },
    "ignores_and_renames": {
        "columns": ({"old": "int"}, {"new": "int", "b": "int"}),
        "settings": ({"on_schema_change": "ignore"}, {"on_schema_change": "ignore", "renamed_columns": {"new": "old"}}),
        "rows": ([{"id": 1, "old": 1}], [{"id": 2, "new": 2, "b": 2}]),
    },
    "turns_soft": {
        "columns": ({"a": "int"}, {"a": "int"}),
        "settings": ({"max_delete_share": 0.9}, {"max_delete_share": 0.9, "delete_mode": "soft"}),
        "rows": ([{"id": 1, "a": 1}, {"id": 2, "a": 2}], [{"id": 2, "a": 3}]),
    },
    **{  # history as a table and as a view, of the same changes
        f"history_{kind}": {
            "columns": ({"a": "int", "gone": "int"}, {"a": "bigint", "b": "string"}),
            "settings": {"history": kind},
            "rows": (
                [{"id": 1, "a": 1, "gone": 1}, {"id": 2, "a": 2}, {"id": 3, "a": 3}],
                [{"id": 1, "op": "U", "a": 5000000000, "b": "x"}, {"id": 2, "op": "D"}, {"id": 4, "a": 4, "b": "y"}],
            ),
        }
        for kind in ("table", "view")
    },
    "publishes": {  # E1 and E7 in a run that brings nothing
        "columns": ({"a": "int", "b": "int"}, {"a": "int", "b": "int", "c": "int"}),
        "settings": ({"except_columns": ["op", "b"]}, {"except_columns": ["op"]}),
        "rows": ([{"id": 1, "a": 1, "b": 7}], []),
    },
    **{  # and in a run that follows one which ended between the new column and the rows; in `_gone` no live row has a value of it
        f"publishes_at_last_{name}": {
            "columns": ({"a": "int", "b": "int"},) * 2,
            "settings": tuple({"except_columns": kept, **settings} for kept in (["op", "b"], ["op"])),
            "rows": ([{"id": 1, "a": 1, "b": value}, {"id": 2, "a": 1, "b": 8}, {"id": 2, "op": "D"}], []),
        }
        for name, value, settings in (
            ("merged", 7, {}),
            ("parted", 7, {"apply": "replace_partitions", "partition_by": ["a"]}),
            ("gone", None, {"apply": "replace_partitions", "partition_by": ["a"]}),
        )
    },
    "drops": {
        "columns": ({"a": "int", "b": "int"}, {"a": "int"}),
        "rows": ([{"id": 1, "a": 1, "b": 1}, {"id": 2, "a": 1, "b": 1}], [{"id": 2, "a": 2}, {"id": 3, "a": 3}]),
    },
    "drops_in_sync": {
        "columns": ({"a": "int", "b": "int"}, {"a": "int", "c": "int"}),
        "settings": {"on_schema_change": "sync_all_columns"},
        "rows": ([{"id": 1, "a": 1, "b": 1}], [{"id": 2, "a": 2, "c": 3}]),
    },
    "widens": {  # E4: key, sequence, old key, values
        "columns": (
            {"old": "int", "i": "int", "f": "float", "d": "decimal(5,2)", "n": "smallint", "day": "date"},
            {
                "seq": "bigint",
                "id": "bigint",
                "old": "bigint",
                "i": "bigint",
                "f": "double",
                "d": "decimal(12,4)",
                "n": "decimal(20,3)",
                "day": "timestamp_ntz",
            },
        ),
        "settings": {"old_keys": {"id": "old"}},
        "rows": (
            [
                {"id": 1, "i": 1, "f": 1.5, "d": 1.25, "n": 1, "day": "2026-01-01"},
                {"id": 2, "old": 1, "op": "U", "i": 2},
                {"id": 5, "i": 5},
            ],
            [
                {
                    "id": 6000000000,
                    "old": 2,
                    "op": "U",
                    "i": 7000000000,
                    "f": 0.1,
                    "d": 12345678.1234,
                    "n": 1.125,
                    "day": "2026-01-01 10:30:00",
                },
                {"seq": 8000000000, "id": 5, "op": "D"},
            ],
        ),
    },
    "rewrites": {  # E4: what Delta does not alter, in the key too
        "columns": ({"id": "date", "day": "date", "gone": "int"}, {"id": "timestamp", "day": "timestamp", "new": "int"}),
        "rows": (
            [{"id": "2026-01-01", "day": "2026-02-01", "gone": 1}, {"id": "2026-01-02", "day": "2026-02-01", "gone": 1}],
            [
                {"id": "2026-01-01 00:00:00", "day": "2026-02-01 10:00:00", "new": 1},
                {"id": "2026-01-03 10:00:00", "day": "2026-02-03"},
            ],
        ),
    },
    "rewrites_idle": {"columns": ({"day": "date"}, {"day": "timestamp"}), "rows": ([{"id": 1, "day": "2026-02-01"}], [])},
    "casts": {  # E4: what cannot be widened; E6: fields of structs
        "columns": (
            {"a": "int", "t": "date", "d": "decimal(10,2)", "s": "struct<aB:int,b:array<struct<c:int>>>"},
            {
                "a": "string",
                "t": "string",
                "d": "decimal(10,3)",
                "s": "struct<aB:bigint,b:array<struct<c:int,d:string>>,e:double>",
            },
        ),
        "rows": (
            [{"id": 1, "a": 1, "t": "2026-01-01", "d": 1.25, "s": {"aB": 1, "b": [{"c": 1}]}}],
            [
                {"id": 2, "a": "2", "t": "2026-01-02", "d": 1.5, "s": {"aB": 5000000000, "b": [{"c": 2, "d": "x"}], "e": 0.5}},
                {"id": 3, "a": "x"},
                {"id": 4, "t": "2026-01-01 10:00:00"},
                {"id": 5, "d": 1.255},
                {"id": 6, "s": {"aB": "many"}},
                {"id": 7, "s": {"aB": 1, "b": [{"c": 1}, {"c": "x"}]}},
                {"id": 8, "s": {"b": [None, {"c": None}]}},
            ],
        ),
    },
    "makes": {  # E7
        "columns": ({"born": "date", "email": "string", "n": "int"},) * 2,
        "settings": (
            {"except_columns": ["op", "born"], "expressions": {"year": "year(born)", "email": "upper(email)"}},
            {"except_columns": ["op", "born"], "expressions": {"year": "year(born)", "email": "upper(email)", "twice": "n * 2"}},
        ),
        "rows": (
            [{"id": 1, "born": "2001-02-03", "email": "a@x", "n": 1}, {"id": 2, "born": "2002-02-03", "email": "b@x", "n": 2}],
            [{"id": 1, "op": "U", "n": 7}],
        ),
    },
    "remakes": {
        "columns": ({"a": "int"},) * 2,
        "settings": ({"expressions": {"b": "a + 1"}}, {"expressions": {"b": "a + 2"}}),
        "rows": ([{"id": 1, "a": 1}], [{"id": 2, "a": 1}]),
    },
    "hides": {  # E7: key, values, misfits, what nobody listed, what cannot be read
        "columns": ({"id": "string", "old": "string", "card": "string", "pin": "int", "mail": "string", "n": "int"},) * 2,
        "settings": {
            "old_keys": {"id": "old"},
            "never_store": ["card", "note"],
            "mask": {"id": "sha2(id, 256)", "old": "sha2(old, 256)", "pin": "pin % 10", "mail": "concat('*', right(mail, 2))"},
        },
        "rows": (
            [
                {
                    "id": "secret-1",
                    "card": "secret-2",
                    "pin": 1873311479,
                    "mail": "secret-3@x",
                    "Note": "secret-4",
                    "Mail": "secret-5",
                    "n": 1,
                },
                {"id": "secret-6", "pin": "secret-7", "n": 1},
                {"id": "secret-8", "mail": "secret-9", "n": "many"},
                "{secret-10",
            ],
            [{"id": "secret-11", "old": "secret-1", "op": "U", "n": 2}, {"id": "secret-11", "op": "?", "card": "secret-12"}],
        ),
    },
    "parts_anew": {  # A4: rows already there get the partitions of another expression
        "columns": ({"d": "date"},) * 2,
        "settings": ({"partition_by": ["year(d) as p"]}, {"partition_by": ["month(d) as p"]}),
        "rows": ([{"id": 1, "d": "2020-05-01"}], [{"id": 2, "d": "2021-07-01"}]),
    },
    **{  # `key_changes` taken back
        name: {
            "columns": ({"old": "int"},) * 2,
            "settings": ({"old_keys": {"id": "old"}}, {}),
            "rows": ([{"id": 1}, {"id": 2, "old": 1, "op": op}], []),
        }
        for name, op in (("moves_no_more", "U"), ("moves_no_more_by_insert", "I"))
    },
    "moves_no_more_by_halves": {  # `split_key_changes` taken back, by which alone keys changed
        "columns": ({"b": "int"},) * 2,
        "settings": ({"split_key_changes": True}, {}),
        "rows": ([{"seq": 10, "id": 1, "b": 1}, {"seq": 20, "id": 1, "op": "D"}, {"seq": 20, "id": 2}], []),
    },
    "pairs_since": {  # `split_key_changes` is given once a pair is staged
        "columns": ({"b": "int"},) * 2,
        "settings": ({}, {"split_key_changes": True}),
        "rows": (
            [{"seq": 10, "id": 1, "b": 1}, {"seq": 20, "id": 1, "op": "D"}, {"seq": 20, "id": 2}],
            [{"seq": 30, "id": 2, "op": "U"}],
        ),
    },
    "priced": {  # A4, A6: a partition is of what an expression makes, also where that has a source column's name
        "columns": ({"a": "int"},) * 2,
        "settings": {"expressions": {"a": "a * 100"}, "partition_by": ["a div 1000 as bucket"], "apply": "replace_partitions"},
        "rows": (
            [{"seq": 10, "id": 1, "a": 50}, {"seq": 10, "id": 2, "a": 60}],
            [{"seq": 11, "id": 2, "op": "U", "a": 70}, {"seq": 5, "id": 1, "op": "U", "a": 50}],
        ),
    },
    "turns_keyed": {  # N2: what was appended is worked out anew
        "columns": ({"a": "int"},) * 2,
        "settings": ({"insert_only": True}, {}),
        "rows": ([{"id": 1, "a": 1}, {"id": 1, "a": 2}, {"id": 2, "a": 3}], [{"id": 3, "a": 4}]),
    },
    **{  # E4: an expression for another one, which gives the same positions, or others
        name: {
            "columns": ({"a": "int", "b": "int"},) * 2,
            "settings": ({"sequence_by": ["a + 0"]}, {"sequence_by": [expression]}),
            "rows": ([{"id": 1, "a": 10, "b": 1}, {"id": 2, "a": 20, "b": 2, "op": "D"}], [{"id": 1, "a": 11, "b": 2}]),
        }
        for name, expression in (("reorders", "1 * a"), ("reorders_otherwise", "b + 0"))
    },
    "reorders_renamed": {  # E2, E4: by a column that has another name now, while another one is renamed, too
        "columns": ({"a": "int", "b": "int"}, {"c": "int", "d": "int"}),
        "settings": ({"sequence_by": ["a + 0"]}, {"sequence_by": ["c + 0"], "renamed_columns": {"c": "a", "d": "b"}}),
        "rows": (
            [{"id": 1, "a": 10, "b": 1}, {"seq": 1, "id": 2, "a": 20, "b": 2}],
            [{"id": 1, "c": 11, "d": 3}, {"id": 2, "a": 19, "b": 4}, {"seq": 1, "id": 2, "c": 20, "d": 2}],
        ),
    },
    "counts": {  # N1
        "columns": ({"a": "int", "b": "string"},) * 2,
        "settings": {"keyless": "multiset", "keys": []},
        "rows": (
            [{"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 9, "op": "D"}],
            [
                {"a": 1, "b": "x", "op": "D"},
                {"a": 2, "b": None, "op": "D"},
                {"a": 2, "b": None, "op": "D"},
                {"a": 2, "b": None},
                {"a": 3, "b": "y"},
                {"a": 3, "op": "U"},
            ],
        ),
    },
    "appends_by_hash": {
        "columns": ({"a": "int"},) * 2,
        "settings": {"keyless": "append", "keys": [], "surrogate": "hash"},
        "rows": ([{"a": 1}, {"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}]),
    },
}
REFUSED = (
    "final_refuses",
    "final_remakes",
    "stg_cols__moves_no_more",
    "stg_cols__moves_no_more_by_insert",
    "stg_cols__moves_no_more_by_halves",
    "stg_cols__reorders_otherwise",
    "stg_cols__renames_a_number",
)
if not NIGHTLY:  # tables that only tests by night look at
    for name in (
        "history_table",
        "history_view",
        "turns_keyed",
        "parts_anew",
        "renames_and_retypes",
        "ignores_and_renames",
        "turns_soft",
    ):
        del TABLES[name]
for case in TABLES.values():
    if not case.get("settings") or "keys" not in case["settings"]:
        continue
    case["base"] = {"op": "string", "seq": "int"}


class Columns:
    def __init__(self, project: UserProject) -> None:
        self.project = project
        self.sequence = 0
        self.refusals: dict[str, str] = {}

    def run(self, number: int) -> Any:
        tables = []
        for name, case in TABLES.items():
            settings = case.get("settings", {})
            settings = settings[number] if isinstance(settings, tuple) else settings
            tables.append(
                {"name": name, "cdc": {**SETTINGS, **settings}, "columns": {**case.get("base", BASE), **case["columns"][number]}}
            )
            lines = []
            for row in case["rows"][number]:
                self.sequence += 1
                lines.append(row if isinstance(row, str) else json.dumps({"op": "I", "seq": self.sequence, **row}))
            if lines:
                folder = self.project.path / "landing" / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        settings = {"format": "rows", "location": f"{self.project.path}/landing/{{table}}", "change_set_order": "name"}
        self.project.configure("cols", settings=settings, tables=tables)
        self.mixed_feed(number)
        self.copies(number)
        self.project.generate()
        return self.project.try_dbt("run", quiet=True)

    def copies(self, number: int) -> None:
        """E2 in a table that comes as whole copies."""
        column, settings = ("old", {}) if number == 0 else ("new", {"renamed_columns": {"new": "old"}})
        folder = self.project.path / "landing" / "copies"
        write_change_set(folder / f"copy-{number}.jsonl", [{"id": 1, column: 1}, {"id": 2, column: 2 + number}])
        self.project.configure(
            "copied",
            settings={"format": "snapshots", "location": str(folder)},
            tables=[{"name": "copies", "cdc": {"keys": ["id"], **settings}, "columns": {"id": "int", column: "int"}}],
        )

    def mixed_feed(self, number: int) -> None:
        """A feed that mixes tables: one has something that must not be stored, in another each image before is the whole row."""
        folder = self.project.path / "landing" / "mix"
        folder.mkdir(parents=True, exist_ok=True)
        message = {"action": "I", "lsn": "0/10", "xid": 1, "timestamp": "2026-01-01 00:00:00+00", "schema": "public"}
        values = [{"name": "id", "value": 1}, {"name": "card", "value": "secret-20"}]
        lines = [
            json.dumps({**message, "table": table, "columns": values[:count]}) for table, count in (("hidden", 2), ("open", 1))
        ]
        update = {**message, "action": "U", "table": "whole", "columns": [values[0], {"name": "a", "value": None}]}
        before = [values[0], {"name": "a", "value": "was"}, {"name": "document", "value": "long"}]
        lines.append(json.dumps({**update, "identity": before}))
        lines += self.told_in_full(message)
        if number == 0:
            (folder / "1.jsonl").write_text("\n".join([*lines, lines[0][:-20]]) + "\n")
        else:
            inserted = {**message, "table": "bag", "columns": [{"name": "id", "value": 9}]}
            (folder / "2.jsonl").write_text(json.dumps(inserted) + "\n")
        tables = [
            {"name": "hidden", "cdc": {"keys": ["id"], "never_store": ["card"]}, "columns": {"id": "int", "card": "string"}},
            {"name": "open", "cdc": {"keys": ["id"]}, "columns": {"id": "int"}},
            {
                "name": "whole",
                "cdc": {"keys": ["id"], "full_images": True},
                "columns": {"id": "int", "a": "string", "document": "string"},
            },
            {
                "name": "nulls",
                "cdc": {"keys": ["id"], "nullable_keys": ["id"], "full_images": True},
                "columns": {"id": "int", "a": "string"},
            },
            {"name": "bag", "cdc": {"keyless": "multiset"}, "columns": {"id": "int", "a": "string"}},
        ]
        settings = {"format": "wal2json_v2", "location": str(folder), "max_delete_share": 0.9, "change_set_order": "name"}
        self.project.configure("mix", settings=settings, tables=tables)

    def told_in_full(self, message: dict[str, Any]) -> list[str]:
        """Updates with the whole row before, whose nulls are values: of a key that may be null, of a multiset."""

        def of(id: int | None, a: str | None) -> list[dict[str, Any]]:
            return [{"name": "id", "value": id}, {"name": "a", "value": a}]

        changes = [
            ("nulls", "I", of(None, "x"), None),
            ("nulls", "U", of(7, "y"), of(None, "x")),
            ("nulls", "I", of(8, "z"), None),
            ("nulls", "U", of(None, "z"), of(8, "z")),
            ("bag", "I", of(1, None), None),
            ("bag", "U", of(1, "x"), of(1, None)),
            ("bag", "U", of(1, "x"), of(1, "x")),
            # an update without what did not change, and two that do not tell the whole row
            ("bag", "I", of(2, "long"), None),
            ("bag", "U", of(3, None)[:1], of(2, "long")),
            ("bag", "U", of(4, "long"), of(3, None)[:1]),
            ("bag", "U", of(4, None)[:1], None),
            ("bag", "I", of(None, None), None),
            ("bag", "I", of(None, None), None),
            ("bag", "D", None, of(None, None)),
        ]
        return [
            json.dumps(
                {
                    **message,
                    "lsn": f"0/{number:X}",
                    "timestamp": f"2026-01-01 00:00:{number}+00",
                    "table": table,
                    "action": action,
                    **({"columns": after} if after else {}),
                    **({"identity": before} if before else {}),
                }
            )
            for number, (table, action, after, before) in enumerate(changes, 32)
        ]

    def operation(self, *args: str, exit_code: int = 0) -> str:
        """What a command says."""
        return self.project.done(*args, exit_code=exit_code, catch_exceptions=False)

    def rows(self, table: str, columns: str = "*", *, order: str = "id") -> list[dict[str, Any]]:
        return self.project.rows(f"select {columns} from {{schema}}.{table} order by {order}")

    def columns(self, table: str) -> dict[str, str]:
        return {row["col_name"]: row["data_type"] for row in self.project.rows(f"describe {{schema}}.{table}") if row["col_name"]}

    def writes(self, table: str) -> list[str]:
        """The operations of its commits that wrote files, in their order."""
        commits = self.project.delta(table).history()
        return [each["operation"] for each in reversed(commits) if "numFiles" in each.get("operationMetrics", {})]


@pytest.fixture(scope="module")
def cols(project: UserProject) -> Iterator[Columns]:
    cols = Columns(project)
    first = cols.run(0)
    for name in ("merged", "parted"):  # what a run does first, and then it is killed
        project.rows(f"alter table {{schema}}.final_publishes_at_last_{name} add columns (b int)")
    second = cols.run(1)
    assert project.failures(first) == []
    cols.refusals = {message.split(":")[0]: message for message in project.failures(second)}
    assert {name: text for name, text in cols.refusals.items() if name not in REFUSED} == {}
    return cols


def test_E1_E5_staging_and_final_gain_a_new_column_and_old_rows_are_null(cols: Columns) -> None:
    assert cols.rows("final_gains", "id, a, `b (new)` as b, cast(at as string) as at") == [
        {"id": 1, "a": 1, "b": None, "at": None},
        {"id": 2, "a": 3, "b": "y", "at": "2026-01-01 12:00:00"},
        {"id": 3, "a": 4, "b": None, "at": "2026-01-02 12:00:00"},
    ]
    history = cols.rows("hist_cols__gains", "id, `b (new)` as b", order="id, valid_from")
    assert [(row["id"], row["b"]) for row in history] == [(1, None), (2, None), (2, "x"), (2, "y"), (3, None), (3, None)]
    assert cols.rows("final_gains_partitioned", "id, p, b") == [{"id": 1, "p": 5000000000, "b": 2}, {"id": 2, "p": 2, "b": None}]
    assert cols.rows("final_publishes", "id, c") == [{"id": 1, "c": None}]
    assert cols.rows("hist_cols__publishes", "id, b, c") == [{"id": 1, "b": 7, "c": None}]


def test_E1_a_change_says_nothing_of_a_column_that_was_listed_later(cols: Columns) -> None:
    assert cols.rows("final_young", "id, a, b") == [{"id": 1, "a": 2, "b": "late"}, {"id": 4, "a": 4, "b": "before"}]
    staged = cols.rows("stg_cols__young", "seq, id", order="seq, id")
    assert [(row["seq"], row["id"]) for row in staged] == [(10, 1), (10, 2), (20, 1), (20, 4), (30, 1), (35, 3), (36, 4), (40, 2)]
    assert cols.rows("final_young_rewritten", "id, b") == [{"id": 1, "b": "late"}]
    missing = cols.rows("stg_cols__young_rewritten", "sort_array(_cdc_missing) as missing", order="seq")
    assert [row["missing"] for row in missing] == [["b", "day"], ["day"], ["b", "day"]]


def test_E4_E6_O4_values_are_compared_whatever_their_types(cols: Columns) -> None:
    assert [row["seq"] for row in cols.rows("stg_cols__nested", "seq", order="seq, id")] == [1, 1, 2, 3]
    assert cols.rows("final_nested", "id, m, gone, s, cast(d as string) as d") == [
        {"id": 1, "m": {"k": 2}, "gone": None, "s": {"x": 5000000000, "y": 2}, "d": "12345678.5000"},
        {"id": 2, "m": {"k": 1}, "gone": None, "s": {"x": 1, "y": None}, "d": "1.2500"},
    ]
    versions = cols.rows("hist_cols__nested", "id, m, gone, valid_from", order="id, valid_from")
    assert [tuple(row.values()) for row in versions] == [
        (1, {"k": 1}, {"k": 1}, 1),
        (1, {"k": 1}, None, 2),
        (1, {"k": 2}, None, 3),
        (2, {"k": 1}, None, 1),
    ]


def test_values_of_any_type_are_reconciled(cols: Columns) -> None:
    other = cols.project.path / "nested.parquet"
    told = f"select id, if(id = 1, map('k', 3), m) as m, s from {cols.project.schema}.final_nested"
    cols.project.spark().sql(told).write.parquet(str(other))
    said = cols.operation("reconcile", "nested", "--against", str(other), exit_code=1)
    assert '  id = 1: m = {"k":2}, there {"k":3}\n' in said
    assert "1 row with other values" in said
    turned = cols.project.path / "turned.parquet"
    told = f"select id, m, d, named_struct('y', s.y, 'x', s.x, 'z', 1) as s from {cols.project.schema}.final_nested"
    cols.project.spark().sql(told).write.parquet(str(turned))
    assert "They are equal." in cols.operation("reconcile", "nested", "--against", str(turned))
    lines = cols.project.path / "nested.jsonl"
    lines.write_text(
        '\ufeff{"id": 1, "m": {"k": 2}, "s": {"y": 2, "x": 5000000000}, "d": 12345678.50, "p": null}\n\n'
        '{"id": 2.0, "m": {"k": 1}, "s": {"x": 1}, "d": "many"}\n'
    )
    said = cols.operation("reconcile", "nested", "--against", str(lines), exit_code=1)
    assert "d = 1.2500, there many" in said
    assert "s = " not in said
    assert "m = " not in said


def test_E1_columns_that_nobody_listed_are_kept_and_told(cols: Columns) -> None:
    undeclared = [row["_cdc_undeclared"] for row in cols.rows("stg_cols__gains", "_cdc_undeclared", order="seq")]
    assert undeclared == [None, None, None, {"B": "7", "extra": "e"}, None, None]


def test_E1_on_schema_change_decides_about_final(cols: Columns) -> None:
    assert list(cols.columns("final_ignores")) == ["seq", "id", "a"]
    assert cols.rows("final_ignores", "id, a") == [{"id": 1, "a": 5000000000}]
    assert "b" in cols.columns("stg_cols__ignores")
    assert "New: b; gone: none" in cols.refusals["final_refuses"]
    assert cols.rows("stg_cols__refuses", "id, a, b", order="seq") == [{"id": 1, "a": 1, "b": None}, {"id": 1, "a": 2, "b": 1}]
    assert cols.rows("final_refuses", "id, a") == [{"id": 1, "a": 1}]


def test_E2_what_was_staged_under_the_old_name_stands_under_the_new(cols: Columns) -> None:
    assert list(cols.columns("final_renames")) == ["seq", "id", "new", "b"]
    assert cols.rows("final_renames", "id, new, b") == [
        {"id": 1, "new": 1, "b": 1},
        {"id": 2, "new": 2, "b": 4},
        {"id": 3, "new": 5000000000, "b": 3},
        {"id": 4, "new": 4, "b": 3},
    ]
    assert [row["new"] for row in cols.rows("hist_cols__renames", "new", order="id, valid_from")] == [1, 2, 2, 2, 5000000000, 4]
    assert "new = 1" in cols.operation("explain", "renames", "1")


def test_E3_a_dropped_column_stays_and_is_null_in_new_versions(cols: Columns) -> None:
    assert cols.rows("final_drops", "id, a, b") == [
        {"id": 1, "a": 1, "b": 1},
        {"id": 2, "a": 2, "b": None},
        {"id": 3, "a": 3, "b": None},
    ]
    assert cols.rows("hist_cols__drops", "id, a, b", order="id, valid_from") == [
        {"id": 1, "a": 1, "b": 1},
        {"id": 2, "a": 1, "b": 1},
        {"id": 2, "a": 2, "b": None},
        {"id": 3, "a": 3, "b": None},
    ]
    assert "b" in cols.columns("stg_cols__drops_in_sync")
    assert list(cols.columns("final_drops_in_sync")) == ["seq", "id", "a", "c"]
    assert cols.rows("final_drops_in_sync", "id, a, c") == [{"id": 1, "a": 1, "c": None}, {"id": 2, "a": 2, "c": 3}]


@pytest.mark.nightly  # test_histories: columns that come and go, histories as tables
def test_E1_E3_E4_a_history_that_is_a_table_follows_as_the_view_does(cols: Columns) -> None:
    of_table, of_view = (f"hist_cols__history_{kind}" for kind in ("table", "view"))
    assert cols.columns(of_table) == cols.columns(of_view)
    names = ", ".join(f"`{name}`" for name in cols.columns(of_view) if name != "seq" and not name.startswith(("_cdc_", "valid_")))
    kept = cols.rows(of_table, names, order="id, valid_from")
    assert kept == cols.rows(of_view, names, order="id, valid_from")
    assert [(row["id"], row["a"], row["gone"], row["b"]) for row in kept] == [
        (1, 1, 1, None),
        (1, 5000000000, None, "x"),
        (2, 2, None, None),
        (3, 3, None, None),
        (4, 4, None, "y"),
    ]


def test_E7_a_column_that_is_published_later_is_there_for_all_changes_that_carried_it(cols: Columns) -> None:
    for name, value in (("", 7), ("_at_last_merged", 7), ("_at_last_parted", 7), ("_at_last_gone", None)):
        assert cols.rows(f"final_publishes{name}", "id, a, b") == [{"id": 1, "a": 1, "b": value}]


def test_E4_what_delta_widens_widens_keys_and_order_too(cols: Columns) -> None:
    final = cols.columns("final_widens")
    assert final == {
        "seq": "bigint",
        "id": "bigint",
        "i": "bigint",
        "f": "double",
        "d": "decimal(12,4)",
        "n": "decimal(20,3)",
        "day": "timestamp_ntz",
    }
    (row,) = cols.rows("final_widens", "id, i, f, cast(d as string) as d, cast(n as string) as n, cast(day as string) as day")
    assert row == {"id": 6000000000, "i": 7000000000, "f": 0.1, "d": "12345678.1234", "n": "1.125", "day": "2026-01-01 10:30:00"}
    history = cols.rows("hist_cols__widens", "id, i", order="valid_from")
    assert history == [{"id": 1, "i": 1}, {"id": 2, "i": 2}, {"id": 5, "i": 5}, {"id": 6000000000, "i": 7000000000}]
    assert cols.columns("int_cols__widens_keys")["key_after"] == "struct<id:bigint>"
    assert cols.columns("stg_cols__widens")["_cdc_sequence"] == "struct<seq:bigint>"
    assert cols.writes("stg_cols__widens") == ["CREATE OR REPLACE TABLE AS SELECT", "WRITE"]  # no row was rewritten
    features = {row["key"] for row in cols.project.rows("show tblproperties {schema}.stg_cols__drops")}
    assert "delta.enableTypeWidening" not in features


def test_E4_another_expression_gives_the_same_positions_or_is_refused(cols: Columns) -> None:
    assert cols.rows("final_reorders", "id, a") == [{"id": 1, "a": 11}]
    assert cols.rows("final_reorders_otherwise", "id, a") == [{"id": 1, "a": 10}]
    assert cols.rows("final_reorders_renamed", "id, c, d") == [{"id": 1, "c": 11, "d": 3}, {"id": 2, "c": 20, "d": 2}]
    assert len(cols.rows("stg_cols__reorders_renamed")) == 4  # what comes under the new name again is known
    said = "`sequence_by` is [b + 0], and staging was loaded with [a + 0]"
    assert said in cols.refusals["stg_cols__reorders_otherwise"]


def test_E2_E4_a_number_is_not_renamed_to_a_moment(cols: Columns) -> None:
    assert "`new`, timestamp, was `old`, bigint: " in cols.refusals["stg_cols__renames_a_number"]
    assert cols.rows("final_renames_a_number", "id, old") == [{"id": 1, "old": 1700000000000}]


@pytest.mark.nightly  # made anew: test_bad_input, S5; only appended: N2
def test_N2_what_was_only_appended_to_is_worked_out_by_its_keys(cols: Columns) -> None:
    assert cols.rows("final_turns_keyed", "id, a") == [{"id": 1, "a": 2}, {"id": 2, "a": 3}, {"id": 3, "a": 4}]
    assert len(cols.rows("hist_cols__turns_keyed")) == 4


def test_E4_date_to_timestamp_rewrites_the_column_in_one_commit(cols: Columns) -> None:
    assert cols.columns("stg_cols__rewrites")["day"] == "timestamp"
    assert cols.rows("final_rewrites", "cast(id as string) as id, cast(day as string) as day, new") == [
        {"id": "2026-01-01 00:00:00", "day": "2026-02-01 10:00:00", "new": 1},
        {"id": "2026-01-02 00:00:00", "day": "2026-02-01 00:00:00", "new": None},
        {"id": "2026-01-03 10:00:00", "day": "2026-02-03 00:00:00", "new": None},
    ]
    assert [row["gone"] for row in cols.rows("stg_cols__rewrites", "gone", order="seq")] == [1, 1, None, None]
    assert cols.rows("final_rewrites_idle", "id, cast(day as string) as day") == [{"id": 1, "day": "2026-02-01 00:00:00"}]
    for table in ("stg_cols__rewrites", "final_rewrites", "stg_cols__rewrites_idle", "final_rewrites_idle"):
        assert cols.writes(table) == ["CREATE OR REPLACE TABLE AS SELECT"] * 2, table
    told = cols.project.rows(  # what was there is written anew, and is neither read nor put in
        "select rows_read, rows_duplicate, rows_inserted from {schema}.cdc_runs where `table` = 'stg_cols__rewrites'"
        " order by finished_at"
    )
    assert [tuple(row.values()) for row in told if row["rows_read"]] == [(2, 0, 2)] * 2


def test_E4_E6_a_value_that_does_not_fit_the_table_s_type_is_quarantined(cols: Columns) -> None:
    assert cols.rows("final_casts", "id, a, cast(t as string) as t, cast(d as string) as d")[:2] == [
        {"id": 1, "a": 1, "t": "2026-01-01", "d": "1.25"},
        {"id": 2, "a": 2, "t": "2026-01-02", "d": "1.50"},
    ]
    errors = cols.project.rows("select error from {schema}.cdc_quarantine where source_table = 'casts' order by row_number")
    assert [row["error"] for row in errors] == ["cast:a", "cast:t", "cast:d", "cast:s", "cast:s"]


def test_E6_fields_inside_structs_follow(cols: Columns) -> None:
    assert cols.rows("final_casts", "id, s") == [
        {"id": 1, "s": {"aB": 1, "b": [{"c": 1, "d": None}], "e": None}},
        {"id": 2, "s": {"aB": 5000000000, "b": [{"c": 2, "d": "x"}], "e": 0.5}},
        {"id": 8, "s": {"aB": None, "b": [None, {"c": None, "d": None}], "e": None}},
    ]


def test_E7_expressions_make_columns_of_history_and_final(cols: Columns) -> None:
    assert cols.rows("final_makes", "id, year, email, n, twice") == [
        {"id": 1, "year": 2001, "email": "A@X", "n": 7, "twice": 14},
        {"id": 2, "year": 2002, "email": "B@X", "n": 2, "twice": 4},
    ]
    assert "born" not in cols.columns("final_makes")
    assert [row["twice"] for row in cols.rows("hist_cols__makes", "twice", order="id, valid_from")] == [2, 14, 4]
    assert cols.rows("stg_cols__makes", "email", order="seq")[0] == {"email": "a@x"}
    assert "Rebuild it: delta-cdc rebuild cols.remakes" in cols.refusals["final_remakes"]
    assert "n = 7" in cols.operation("explain", "makes", "1")  # of what came, staging has no column that is made


@pytest.mark.nightly  # made anew: test_bad_input, S5
def test_A4_rows_already_there_get_the_partitions_of_another_expression(cols: Columns) -> None:
    assert cols.rows("final_parts_anew", "id, p") == [{"id": 1, "p": 5}, {"id": 2, "p": 7}]


@pytest.mark.parametrize("table", ["moves_no_more", "moves_no_more_by_insert", "moves_no_more_by_halves"])
def test_K1_keys_that_changed_are_not_forgotten_by_a_setting(cols: Columns, table: str) -> None:
    assert "Put `key_changes`, `old_keys` or `split_key_changes` back as they were" in cols.refusals[f"stg_cols__{table}"]
    assert cols.rows(f"final_{table}", "id") == [{"id": 2}]
    assert cols.rows(f"hist_cols__{table}", "id", order="valid_from") == [{"id": 1}, {"id": 2}]


def test_K6_K4_a_pair_from_before_split_key_changes_is_one_once_its_key_is_touched(cols: Columns) -> None:
    assert cols.rows("final_pairs_since", "id, b") == [{"id": 2, "b": 1}]
    versions = cols.rows("hist_cols__pairs_since", "id, b, seq", order="valid_from")
    assert versions == [{"id": 1, "b": 1, "seq": 10}, {"id": 2, "b": 1, "seq": 20}, {"id": 2, "b": 1, "seq": 30}]


def test_A6_E7_a_partition_is_of_what_an_expression_makes(cols: Columns) -> None:
    assert cols.rows("final_priced", "id, a, bucket") == [{"id": 1, "a": 5000, "bucket": 5}, {"id": 2, "a": 7000, "bucket": 7}]


def test_E2_a_renamed_column_of_whole_copies_is_one(cols: Columns) -> None:
    assert cols.rows("final_copies", "id, new") == [{"id": 1, "new": 1}, {"id": 2, "new": 3}]
    assert [row["id"] for row in cols.rows("hist_copied__copies", "id", order="id, valid_from")] == [1, 2, 2]


def test_E7_masked_and_unstored_values_are_nowhere_in_the_lake(cols: Columns) -> None:
    assert [row["pin"] for row in cols.rows("final_hides", "pin")] == [9]
    assert cols.project.rows("select mail, n from {schema}.final_hides") == [{"mail": "*@x", "n": 2}]
    assert cols.project.rows("select id = sha2('secret-11', 256) as masked from {schema}.final_hides") == [{"masked": True}]
    errors = cols.project.rows(
        "select error from {schema}.cdc_quarantine where source_table = 'hides' order by batch_id, row_number"
    )
    assert [row["error"] for row in errors] == ["cast:pin", "cast:n", "unparsable", "unknown_operation"]
    texts: set[str] = set()
    tables = [row["tableName"] for row in cols.project.rows("show tables in {schema}")]
    for table in (name for name in tables if "hides" in name or name.startswith("cdc_")):
        texts |= {str(row) for row in cols.project.rows(f"select to_json(struct(*)) as row from {{schema}}.{table}")}
    assert not [text for text in texts if "secret" in text or "1873311479" in text]
    logs = [file for folder in cols.project.tables.glob("*hides*") for file in folder.rglob("*.json")]
    assert logs
    assert not [file for file in logs if "secret-" in file.read_text()]


def test_E7_raw_keeps_no_message_of_a_table_with_private_columns(cols: Columns) -> None:
    assert cols.rows("final_hidden") == [{"id": 1}]
    assert cols.rows("final_open") == [{"id": 1}]
    raw = cols.rows("raw_mix", "source_table, message", order="row_number")
    assert {row["source_table"] for row in raw} == {"public.open", "public.whole", "public.nulls", "public.bag", None}
    assert "secret" not in str(raw)


def test_P3_what_an_update_leaves_out_is_taken_from_a_full_image_before(cols: Columns) -> None:
    assert cols.rows("final_whole", "id, a, document") == [{"id": 1, "a": None, "document": "long"}]
    assert cols.rows("stg_mix__whole", "_cdc_missing, _cdc_key_before") == [{"_cdc_missing": [], "_cdc_key_before": None}]


def test_A7_P3_a_key_may_change_from_null_where_images_before_are_whole(cols: Columns) -> None:
    assert cols.rows("final_nulls", "id, a", order="a") == [{"id": 7, "a": "y"}, {"id": None, "a": "z"}]
    history = cols.rows("hist_mix__nulls", "id, a, _cdc_entity", order="a, id nulls last")
    assert [(row["id"], row["a"]) for row in history] == [(None, "x"), (7, "y"), (8, "z"), (None, "z")]
    assert len({row["_cdc_entity"] for row in history}) == 2


@pytest.mark.nightly  # E2 and E4 above
def test_E2_E4_a_column_that_is_renamed_and_retyped_keeps_what_fits(cols: Columns) -> None:
    assert cols.rows("final_renames_and_retypes", "id, new") == [{"id": 1, "new": "1"}, {"id": 2, "new": "A12"}]
    assert cols.rows("hist_cols__renames_and_retypes", "id, new") == [{"id": 1, "new": "1"}, {"id": 2, "new": "A12"}]


@pytest.mark.nightly  # E2 above, and what on_schema_change decides
def test_E1_E2_a_renamed_column_is_no_new_one(cols: Columns) -> None:
    assert cols.rows("final_ignores_and_renames", "id, new") == [{"id": 1, "new": 1}, {"id": 2, "new": 2}]
    assert "b" not in cols.columns("final_ignores_and_renames")


@pytest.mark.nightly  # soft deletes: test_rows, SHAPED; Q4: test_operations
def test_A10_Q4_a_table_whose_deletes_become_soft_is_still_judged(cols: Columns) -> None:
    assert cols.rows("final_turns_soft", "id, a, _cdc_is_deleted") == [
        {"id": 1, "a": 1, "_cdc_is_deleted": False},
        {"id": 2, "a": 3, "_cdc_is_deleted": False},
    ]


def test_N1_an_update_takes_away_the_row_that_it_tells(cols: Columns) -> None:
    assert cols.rows("final_bag", "id, a") == [
        {"id": None, "a": None},
        {"id": 1, "a": "x"},
        {"id": 3, "a": "long"},
        {"id": 9, "a": None},
    ]
    errors = cols.project.rows("select error from {schema}.cdc_quarantine where source_table = 'bag'")
    assert [row["error"] for row in errors] == ["not_allowed", "not_allowed"]


def test_N1_rows_of_a_multiset_are_their_values(cols: Columns) -> None:
    assert cols.rows("final_counts", "a, b", order="a") == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "y"}]
    errors = cols.project.rows("select error from {schema}.cdc_quarantine where source_table = 'counts'")
    assert [row["error"] for row in errors] == ["not_allowed"]


def test_N1_a_surrogate_key_numbers_equal_rows(cols: Columns) -> None:
    rows = cols.rows("final_appends_by_hash", "a, _cdc_key", order="a")
    assert [row["a"] for row in rows] == [1, 1, 1, 2, 3]
    assert len({row["_cdc_key"] for row in rows}) == 5


@pytest.mark.nightly  # test_rows: A4 and S6
def test_A4_S6_nothing_is_left_to_do_and_every_final_equals_its_rebuild(cols: Columns) -> None:
    before, refused = cols.project.versions(), [f"{name}+" for name in REFUSED]
    assert len(cols.project.failures(cols.project.try_dbt("run", "--exclude", *refused, quiet=True))) == 0
    assert cols.project.versions() == before
    equal = [f"test_name:{of}_equals_rebuild_from_staging,tag:nightly" for of in ("final", "history")]
    cols.project.dbt("test", "--select", *equal, "--exclude", *refused, quiet=True)


@pytest.mark.nightly  # what is replayed and compacted: test_operations
def test_E1_Q3_R1_a_young_column_is_told_by_what_is_read_again_and_outlives_compaction(cols: Columns) -> None:
    """Last of all: it changes what the others look at."""
    tables = ("--select", "cdc_change_sets", "stg_cols__young", "final_young", "hist_cols__young")
    assert "table cols.young: 2 changes replayed" in cols.operation("replay", "young")
    cols.project.dbt("run", *tables, quiet=True)
    final = [{"id": 1, "a": 2, "b": "late"}, {"id": 3, "a": 3, "b": "kept"}, {"id": 4, "a": 4, "b": None}]
    assert cols.rows("final_young", "id, a, b") == final
    assert "3 stay, up to the horizon" in cols.operation("compact", "young", "--before", "100")
    cols.project.dbt("run", *tables, quiet=True)
    assert cols.rows("hist_cols__young", "id, a, b") == final
    cols.project.dbt("test", "--select", "final_young", "stg_cols__young", "hist_cols__young", quiet=True)
