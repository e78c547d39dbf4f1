"""Reading the configuration, and every mistake that it can hold (rule Q5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.projects import COLUMNS, FEED, TABLE, project, source

from delta_cdc import notes
from delta_cdc.config_reader import load_project
from delta_cdc.errors import CdcError, ConfigError, ProjectError, did_you_mean, nearest
from delta_cdc.formats import FORMATS
from delta_cdc.project import Column, Project, partition_column
from delta_cdc.settings import Settings, setting_defaults, setting_level, wants
from delta_cdc.spark_types import why_not_a_type
from delta_cdc.sql_names import names_in, unquoted, why_not_sql
from delta_cdc.table_check import _named_in

ROOT = Path(__file__).parents[2]


def problems(root: Path, *sources: dict[str, Any]) -> list[str]:
    """What is wrong, without the file and line at the end."""
    with pytest.raises(ConfigError) as caught:
        load_project(project(root, *sources))
    return [str(problem).rpartition(" (models/")[0] for problem in caught.value.problems]


def loaded(root: Path, *sources: dict[str, Any]) -> Project:
    return load_project(project(root, *sources))


# Reading


def test_a_table_overrides_its_feed_and_the_feed_its_format(tmp_path: Path) -> None:
    feed = {"format": "debezium", "location": "landing", "split_key_changes": False, "tags": ["a"]}
    tables = {"one": {"keys": ["id"]}, "two": {"keys": ["id"], "split_key_changes": True, "tags": []}}
    one, two = loaded(tmp_path, source(feed=feed, tables=tables)).tables
    assert one.settings.sequence_by == FORMATS["debezium"].settings["sequence_by"]
    assert (one.settings.split_key_changes, two.settings.split_key_changes) == (False, True)
    assert (one.settings.tags, two.settings.tags) == (["a"], [])
    assert one.settings.apply == "merge"


def test_settings_stand_under_meta_or_config_meta_of_source_or_table(tmp_path: Path) -> None:
    plain = source(feed=None, tables={"invoice": None})
    plain["meta"] = {"cdc": FEED}
    plain["tables"][0]["meta"] = {"cdc": TABLE}
    (feed,) = loaded(tmp_path, plain).feeds
    assert feed.tables[0].settings.keys == ["id"]
    assert feed.tables[0].settings.location == "landing/{table}"


def test_sources_without_cdc_and_disabled_ones_are_no_feeds(tmp_path: Path) -> None:
    off = source("off")
    off["config"]["enabled"] = False
    off_table = source("on", tables={"invoice": TABLE, "other": {"keyz": 1}})
    off_table["tables"][1]["config"]["enabled"] = False
    read = loaded(tmp_path, source("plain", feed=None, tables={"t": None}), off, off_table)
    assert [(feed.name, [t.name for t in feed.tables]) for feed in read.feeds] == [("on", ["invoice"])]


def test_sources_are_found_in_any_yml_file_of_any_model_path(tmp_path: Path) -> None:
    project(tmp_path, source(), **{"model-paths": ["models", "more"]})
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.yaml").write_text(yaml.safe_dump({"sources": [source("b", tables={"t": TABLE})]}))
    assert [feed.name for feed in load_project(tmp_path).feeds] == ["b", "shop"]


def test_what_dbt_passes_over_is_not_read(tmp_path: Path) -> None:
    """What macOS and Emacs leave beside a file, and what .dbtignore names."""
    project(tmp_path, source())
    folder = tmp_path / "models" / "shop"
    (folder / "._sources.yml").write_bytes(b"\x00\x05\x16\x07Mac OS X\x0e\xb0")
    (folder / ".#_sources.yml").symlink_to("me@host.1234:1760000000")
    (folder / "~_sources.yml").write_text("sources: [")
    (tmp_path / "models" / "old").mkdir()
    (tmp_path / "models" / "old" / "_sources.yml").write_text(yaml.safe_dump({"sources": [source("shop"), source("old")]}))
    (tmp_path / ".dbtignore").write_text("# not ours any more\nmodels/old/\n")
    assert [feed.name for feed in load_project(tmp_path).feeds] == ["shop"]


def test_env_var_and_var_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDING", "/data")
    feed = {
        "format": "rows",
        "location": "{{ env_var('LANDING') }}/{{ var('folder') }}/{{ var('other', 'x') }}/{table}",
        "settle_seconds": "{{ var('settle') }}",
    }
    project(tmp_path, source(feed=feed), vars={"folder": "f", "consumer": {"settle": 60}})
    settings = load_project(tmp_path).tables[0].settings
    assert (settings.location, settings.settle_seconds) == ("/data/f/x/{table}", 60)


def test_a_variable_may_be_a_mapping(tmp_path: Path) -> None:
    feed = {"format": "rows", "location": "{{ var('landing').shop }}/{{ var('landing')['day'] }}/{table}"}
    project(tmp_path, source(feed=feed), vars={"landing": {"shop": "/data"}, "consumer": {"landing": {"shop": "/own", "day": 1}}})
    assert load_project(tmp_path).tables[0].settings.location == "/own/1/{table}"
    project(tmp_path, source(feed=feed), vars={"landing": {"shop": "/data", "day": 2}})
    assert load_project(tmp_path).tables[0].settings.location == "/data/2/{table}"


def test_no_two_parts_of_a_sequence_have_one_name(tmp_path: Path) -> None:
    table = TABLE | {"sequence_by": ["sequence_2", "coalesce(seq, 0)"]}
    columns = [*COLUMNS, {"name": "sequence_2", "data_type": "int"}]
    (problem,) = problems(tmp_path, source(tables={"invoice": table}, columns=columns))
    assert "`sequence_by` has `sequence_2`, which is also what coalesce(seq, 0) is called, being at place 2." in problem


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("{{ env_var('NOT_THERE_AT_ALL') }}", "the environment variable NOT_THERE_AT_ALL is not set."),
        ("{{ env_var('DBT_ENV_SECRET_L', 'x') }}", "dbt gives DBT_ENV_SECRET_L, a secret by its name, to profiles.yml and"),
        ("{{ var('missing') }}", "the variable missing is not in dbt_project.yml."),
        ("{{ target.name }}", "'target' is undefined). Only env_var and var may be used in settings."),
        ("{{ landing }}", "'landing' is undefined). Only env_var and var may be used in settings."),
    ],
)
def test_what_cannot_be_filled_in_is_a_problem(tmp_path: Path, location: str, expected: str) -> None:
    (problem,) = problems(tmp_path, source(feed={"format": "rows", "location": location}))
    assert problem.startswith("feed shop: `location`: ")
    assert expected in problem


def test_Q5_names_are_one_where_case_alone_differs(tmp_path: Path) -> None:
    both = [*COLUMNS, {"name": "Masse", "data_type": "int"}, {"name": "Maße", "data_type": "string"}]
    table = TABLE | {"except_columns": ["maße", "Op"], "partition_by": ["MASSE"]}
    (invoice,) = loaded(tmp_path, source(tables={"invoice": table}, columns=both)).tables
    assert invoice.settings.except_columns == ["Maße", "op"]
    assert [part.name for part in invoice.partition_columns] == ["Masse"]


def test_a_partition_made_of_a_column_may_have_another_one_s_name_in_its_own(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"name": "created op `day`", "data_type": "date"}]
    table = TABLE | {"partition_by": ["year(`created op ``day```) as y"], "except_columns": ["op"]}
    loaded(tmp_path, source(tables={"invoice": table}, columns=columns))
    table |= {"except_columns": ["created op `day`"]}
    (problem,) = problems(tmp_path, source(tables={"invoice": table}, columns=columns))
    assert "is made from `created op `day``, which final does not have" in problem


def test_a_partition_may_be_a_column_under_another_name(tmp_path: Path) -> None:
    table = TABLE | {"partition_by": ["OP as kind", "y as of_year"], "expressions": {"y": "year(created)"}}
    (invoice,) = loaded(tmp_path, source(tables={"invoice": table})).tables
    assert [part.name for part in invoice.partition_columns] == ["kind", "of_year"]
    (problem,) = problems(tmp_path, source(tables={"invoice": table | {"except_columns": ["op"]}}))
    assert "`OP` is made from `op`, which final does not have" in problem
    columns = [*COLUMNS, {"name": "body", "data_type": "BINARY"}]
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {"partition_by": ["body as b"]}}, columns=columns))
    assert "`partition_by` names `body`, which is BINARY. Spark takes simple types there. Take it out." in problem


def test_a_column_may_be_called_except(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"name": "EXCEPT", "data_type": "string"}]
    table = TABLE | {"track_columns": {"except": ["Op", "except"]}}
    (invoice,) = loaded(tmp_path, source(tables={"invoice": table}, columns=columns)).tables
    assert invoice.settings.track_columns == {"except": ["op", "EXCEPT"]}


def test_names_of_models_and_where_they_read(tmp_path: Path) -> None:
    mixed = {"format": "wal2json_v2", "location": "landing"}
    tables = {"a": {"keys": ["id"]}, "b": {"insert_only": True, "final_name": "final_log"}}
    (feed,) = loaded(tmp_path, source(feed=mixed, tables=tables)).feeds
    a, b = feed.tables
    assert (feed.raw_name, a.mixed) == ("raw_shop", True)
    assert (a.staging_name, a.keys_name) == ("stg_shop__a", "int_shop__a_keys")
    assert (a.history_name, a.final_name) == ("hist_shop__a", "final_a")
    assert (b.keys_name, b.history_name, b.final_name) == (None, None, "final_log")


def test_keys_are_resolved_by_default_where_the_feed_can_tell(tmp_path: Path) -> None:
    tables = {
        "plain": TABLE,
        "moves": TABLE | {"old_keys": {"id": "old_id"}},
        "images": TABLE | {"operation": "op", "operation_codes": {"B": "before"}},
        "off": TABLE | {"old_keys": {"id": "old_id"}, "key_changes": False},
    }
    resolves = {table.name: table.resolves_keys for table in loaded(tmp_path, source(tables=tables)).tables}
    assert resolves == {"plain": False, "moves": True, "images": True, "off": False}


def test_published_columns(tmp_path: Path) -> None:
    tables = {
        "all": TABLE | {"operation": "op", "old_keys": {"id": "old_id"}},
        "few": TABLE | {"columns": ["id", "created"]},
        "less": TABLE | {"except_columns": ["created"], "operation": "op"},
    }
    published = {t.name: [c.name for c in t.published_columns] for t in loaded(tmp_path, source(tables=tables)).tables}
    assert published == {
        "all": ["id", "seq", "created", "total amount"],
        "few": ["id", "created"],
        "less": ["id", "seq", "op", "old_id", "total amount"],
    }


def test_a_feed_may_leave_out_columns_that_only_some_tables_have(tmp_path: Path) -> None:
    first = source(feed=FEED | {"except_columns": ["op"]}, tables={"a": TABLE})
    first["tables"].append({**source(tables={"b": TABLE}, columns=COLUMNS[:2])["tables"][0]})
    assert [len(t.published_columns) for t in loaded(tmp_path, first).tables] == [5, 2]


@pytest.mark.parametrize(
    ("entry", "name", "expression", "derived"),
    [
        ("created", "created", "created", False),
        ("total amount", "total amount", "total amount", False),
        ("year(created)", "year_created", "year(created)", True),
        ("year(created) AS y", "y", "year(created)", True),
        ("cast(a as date) as `d`", "d", "cast(a as date)", True),
        ("cast(a as date)", "cast_a_as_date", "cast(a as date)", True),
    ],
)
def test_partition_columns(entry: str, name: str, expression: str, derived: bool) -> None:
    columns = [Column(item["name"], item["data_type"]) for item in COLUMNS]
    found = partition_column(entry, columns)
    assert (found.name, found.expression, found.derived) == (name, expression, derived)


def test_type_of_columns_fields_and_expressions(tmp_path: Path) -> None:
    (table,) = loaded(tmp_path, source(feed={"format": "wal2json_v2", "location": "x"})).tables
    assert table.type_of("seq") == "bigint"
    assert table.type_of("`total amount`") == "decimal(10,2)"
    assert table.type_of(FORMATS["wal2json_v2"].settings["sequence_by"][0]) == "bigint"
    assert table.type_of("seq + 1") is None


# The mistakes


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"keyz": ["id"], "keys": ["id"]}, "setting `keyz` is not known. Did you mean `keys`?"),
        ({"frobnicate": 1}, "setting `frobnicate` is not known. See docs/configuration.md"),
        ({"location": "elsewhere"}, "`location` is a setting of the feed, not of the table. Move it there."),
        ({"keys": "id"}, "`keys` is 'id'. It takes a list of column names, e.g. [invoice_id]. Write [id]."),
        ({"keys": [1]}, "`keys` is [1]. It takes a list of column names"),
        ({"keys": [True]}, "`keys` is [true]. It takes a list"),
        ({"keys": None}, "`keys` is empty. It takes a list"),
        (
            {"keys": []},
            "`keys` is missing. Give the columns that identify a row, e.g. [id]; or say `insert_only",
        ),
        ({"keys": ["Idd"]}, "`keys` names `Idd`, which is no column. Did you mean `id`?"),
        ({"keys": ["zzz"]}, "`keys` names `zzz`, which is no column. Known: `created`, `id`,"),
        ({"keys": ["id", "id"]}, "`keys` names `id` twice. Take one out."),
        ({"insert_only": "yes"}, "`insert_only` is 'yes'. It takes true or false."),
        (
            {"apply": "replace_partition", "partition_by": ["created"]},
            "`apply` is 'replace_partition'. It takes `merge` or `replace_partitions`. Did you mean `replace_partitions`?",
        ),
        ({"sequence_by": []}, "`sequence_by` is missing. Give the columns that order the source's changes"),
        ({"sequence_by": ["sek"]}, "`sequence_by` names `sek`, which is no column. Did you mean `seq`?"),
        (
            {"sequence_by": ["`total amoun`"]},
            "names `total amoun`, which is no column. Did you mean `total amount`?",
        ),
        (
            {"sequence_by": ["total amount"]},
            "takes SQL; there the column 'total amount' stands in backticks, and for yml those in quotes: "
            'sequence_by: ["`total amount`"].',
        ),
        ({"ordinal": "total amount"}, 'stands in backticks, and for yml those in quotes: "`total amount`".'),
        ({"ordinal": "nr"}, "`ordinal` names `nr`, which is no column."),
        ({"transaction": "xid"}, "`transaction` names `xid`, which is no column."),
        (
            {"occurred_at": "createt"},
            "`occurred_at` names `createt`, which is no column. Did you mean `created`?",
        ),
        ({"operation": "opp"}, "`operation` names `opp`, which is no column. Did you mean `op`?"),
        (
            {"operation_codes": {"x": "I"}},
            "`operation_codes` is given without `operation`, the column that holds",
        ),
        (
            {"operation": "op", "operation_codes": {1: "I"}},
            "takes a mapping from code (quoted if it is a number)",
        ),
        (
            {"operation": "op", "operation_codes": {"x": "X"}},
            "`operation_codes` is {x: 'X'}. It takes a mapping",
        ),
        ({"old_keys": {"seq": "old_id"}}, "`old_keys` names `seq`, which is not one of `keys`. Known: `id`."),
        (
            {"old_keys": {"id": "oldid"}},
            "`old_keys` names `oldid`, which is no column. Did you mean `old_id`?",
        ),
        ({"nullable_keys": ["seq"]}, "`nullable_keys` names `seq`, which is not one of `keys`."),
        (
            {"columns": ["id"], "except_columns": ["op"]},
            "`columns` and `except_columns` are both given. Keep one",
        ),
        ({"columns": ["op"]}, "`columns` leaves out the key column `id`. History and final need it."),
        ({"columns": ["id", "opp"]}, "`columns` names `opp`, which is no column. Did you mean `op`?"),
        ({"columns": []}, "`columns` is []. It takes a list of column names"),
        ({"except_columns": ["id"]}, "`except_columns` leaves out the key column `id`."),
        ({"track_columns": ["opp"]}, "`track_columns` names `opp`, which is no column. Did you mean `op`?"),
        ({"track_columns": {"except": ["opp"]}}, "`track_columns` names `opp`, which is no column."),
        (
            {"track_columns": {"exept": ["op"]}},
            "`track_columns` is {exept: ['op']}. It takes a list of column",
        ),
        (
            {"track_columns": ["op"], "except_columns": ["op"]},
            "which history does not have: `except_columns` leaves it out. Have it published there, or take it out here.",
        ),
        (
            {"track_columns": ["op"], "columns": ["id"]},
            "which history does not have: `columns` leaves it out. Have it published there, or take it out here.",
        ),
        ({"track_columns": ["op"], "operation": "op"}, "does not have: `operation` names it. Take it out, or say with"),
        ({"cluster_by": ["old_id"], "old_keys": {"id": "old_id"}}, "which final does not have: `old_keys` names it. Take it out"),
        (
            {"partition_by": ["createt"]},
            "`partition_by` names `createt`, which is no column. Did you mean `created`?",
        ),
        (
            {"partition_by": ["year(created) as op"]},
            "`partition_by` makes a column `op`, and the table has one.",
        ),
        ({"partition_by": ["1 + seq"]}, "`partition_by`: `1 + seq` needs a name: 1 + seq as part."),
        (
            {"partition_by": ["year(created)", "year( created )"]},
            "`partition_by` names `year_created` twice.",
        ),
        (
            {"partition_by": ["op"], "except_columns": ["op"]},
            "`partition_by` names `op`, which final does not have: `except_columns` leaves it out.",
        ),
        ({"cluster_by": ["opp"]}, "`cluster_by` names `opp`, which is no column. Did you mean `op`?"),
        (
            {"cluster_by": ["op"], "except_columns": ["op"]},
            "`cluster_by` names `op`, which final does not have: `except_columns` leaves it out.",
        ),
        (
            {"cluster_by": ["op"], "partition_by": ["created"]},
            "`partition_by` and `cluster_by` are both given",
        ),
        ({"zorder_by": ["opp"]}, "`zorder_by` names `opp`, which is no column. Did you mean `op`?"),
        ({"zorder_by": "op"}, "`zorder_by` is 'op'. It takes a list of column names"),
        (
            {"zorder_by": ["op"], "except_columns": ["op"]},
            "`zorder_by` names `op`, which final does not have: `except_columns` leaves it out.",
        ),
        ({"zorder_by": ["op"], "cluster_by": ["seq"]}, "`cluster_by` and `zorder_by` are both given"),
        (
            {"zorder_by": ["Created"], "partition_by": ["created"]},
            "`zorder_by` names `created`, by which final is partitioned",
        ),
        ({"apply": "replace_partitions"}, "`apply` is replace_partitions, and `partition_by` is missing."),
        (
            {"final_name": "final-x"},
            "`final_name` is 'final-x'. It takes a name of letters, digits and underscores",
        ),
        ({"alternate_keys": ["op"]}, "`alternate_keys` is ['op']. It takes a list of lists of column names"),
        ({"alternate_keys": [["opp"]]}, "`alternate_keys` names `opp`, which is no column. Did you mean `op`?"),
        ({"alternate_keys": [["id"]]}, "`alternate_keys` names [id], which are `keys`. Take it out."),
        (
            {"keys": ["id", "created"], "alternate_keys": [["created"]]},
            "`alternate_keys` names [created], which are part of `keys`. Take it out.",
        ),
        (
            {"delete_mode": "sof"},
            "`delete_mode` is 'sof'. It takes `hard` or `soft`. Did you mean `soft`?",
        ),
        ({"soft_delete_nulls": True}, "`soft_delete_nulls` is for `delete_mode: soft`. Add that"),
        ({"created_at": "a b"}, "`created_at` is 'a b'. It takes a name of letters, digits and underscores"),
        ({"created_at": "_cdc_x"}, "`created_at` is '_cdc_x'. It takes a name"),
        ({"created_at": "Created"}, "`created_at` names `Created`, which is a column of final already."),
        (
            {"updated_at": "y", "partition_by": ["year(created) as y"]},
            "`updated_at` names `y`, which is made by `partition_by` already.",
        ),
        (
            {"created_at": "at", "updated_at": "at"},
            "`updated_at` names `at`, which is given by `created_at` already.",
        ),
        (
            {"partition_by": ["upper(op) as op"]},
            "`partition_by` makes a column `op`, and the table has one. Give it another name: upper(op) as part.",
        ),
        ({"set_on_insert": ["opp"]}, "`set_on_insert` names `opp`, which is no column. Did you mean `op`?"),
        (
            {"set_on_insert": ["id"]},
            "`set_on_insert` names `id`, which is one of `keys`. A key is always the row's own. Take it out.",
        ),
        (
            {"set_on_insert": ["op"], "except_columns": ["op"]},
            "`set_on_insert` names `op`, which final does not have: `except_columns` leaves it out.",
        ),
        ({"ignore_null_updates": ["id"]}, "`ignore_null_updates` names `id`, which is one of `keys`."),
        ({"operation": "id"}, "`operation` names the key column `id`."),
        ({"old_keys": {"id": "id"}}, "`old_keys` names the key column `id`."),
        (
            {"insert_only": True, "delete_mode": "soft"},
            "`delete_mode` has no meaning with `insert_only: true`",
        ),
        ({"keyless": "append"}, "`keyless` is append, and `keys` are given. Take one of them out."),
        ({"keyless": "multiset"}, "`keyless` is multiset, and `keys` are given. Take one of them out."),
        (
            {"keys": [], "keyless": "multiset", "insert_only": True},
            "`keyless` is multiset, where a delete takes a row away, and `insert_only` is true, which quarantines deletes. Take "
            "one out (`insert_only: false` undoes the feed's).",
        ),
        ({"surrogate": "hash"}, "`surrogate` is for a table without a key. Say `keyless: append`"),
        (
            {"keys": [], "keyless": "multiset", "columns": ["x"], "expressions": {"x": "upper(op)"}},
            "`keyless` is multiset, by which rows are their values, and final has none of these",
        ),
        (
            {"keys": [], "keyless": "append", "surrogate": "hash", "columns": ["id"], "deleted_when": "id < 0"},
            "`surrogate` is hash, by which rows are their values, and final has none of these",
        ),
        ({"keys": [], "keyless": "multiset", "track_columns": ["op"]}, "has no meaning with `keyless: multiset`"),
        ({"never_store": ["op"], "mask": {"op": "1"}}, "`mask` names `op`, which `never_store` keeps out."),
        ({"never_store": ["ID"]}, "`keys` names `id`, which `never_store` keeps out."),
        ({"mask": {"emial": "1"}}, "`mask` names `emial`, which is no column."),
        ({"mask": {"id": "1"}, "old_keys": {"id": "old_id"}}, "`old_id` holds its old value. Mask that too."),
        ({"mask": {"op": "opp"}}, "`mask` names `opp`, which is no column. Did you mean `op`?"),
        ({"expressions": {"x": "opp"}}, "`expressions` names `opp`, which is no column. Did you mean `op`?"),
        ({"expressions": {"id": "1"}}, "`expressions` names the key column `id`"),
        ({"expressions": {"_cdc_x": "1"}}, "`expressions` names `_cdc_x`: names that begin with _cdc_ are taken. Give"),
        ({"expressions": {"x": "lower(_cdc_change_set)"}}, "`expressions` names `_cdc_change_set`, which only staging has."),
        ({"expressions": {"x": "_cdc_change_set"}}, "`expressions` names `_cdc_change_set`, which only staging has."),
        ({"partition_by": ["date(_cdc_staged_at) as d"]}, "`partition_by` names `_cdc_staged_at`, which only staging has."),
        (
            {"keys": [], "keyless": "multiset", "partition_by": ["date(_cdc_occurred_at) as d"]},
            "`partition_by` names `_cdc_occurred_at`, which only staging has.",
        ),
        ({"on_schema_change": "sync"}, "`on_schema_change` is 'sync'. It takes `append_new_columns`, `ignore`"),
        (
            {"insert_only": True, "track_columns": ["op"]},
            "`track_columns` has no meaning with `insert_only: true`",
        ),
        (
            {"insert_only": True, "max_delete_share": 0.5},
            "`max_delete_share` has no meaning with `insert_only: true`",
        ),
        (
            {"keys": [], "keyless": "multiset", "max_delete_share": 0.5},
            "`max_delete_share` has no meaning with `keyless: multiset`",
        ),
        ({"max_errors": 1.5}, "`max_errors` is 1.5. It takes a share between 0 and 1, or a whole number of rows"),
        ({"max_errors": "1%"}, "`max_errors` is '1%'. It takes a share between 0 and 1, or a whole number"),
        ({"max_delete_share": 1}, "`max_delete_share` is 1. It takes a share from 0 to below 1, e.g. 0.2."),
        (
            {"insert_only": True, "old_keys": {"id": "old_id"}},
            "`old_keys` has no meaning with `insert_only: true`",
        ),
        ({"insert_only": True, "key_changes": True}, "`key_changes` has no meaning with `insert_only: true`"),
        (
            {"insert_only": True, "apply": "replace_partitions", "partition_by": ["created"]},
            "`apply` has no meaning with `insert_only: true`",
        ),
        (
            {"keys": [], "keyless": "append", "track_columns": ["op"]},
            "`track_columns` has no meaning with `keyless: append`",
        ),
    ],
)
def test_Q5_a_mistake_in_a_table(tmp_path: Path, settings: dict[str, Any], expected: str) -> None:
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | settings}))
    assert problem.startswith("feed shop, table invoice: ")
    assert expected in problem


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("year(created)", None),
        ("Year (`created`)", None),
        ("cast(op as date)", "op"),
        ("cast(d as date)", None),
        ("date(d)", None),
        ("extract(month from d)", None),
        ("date_format(d, 'op')", None),
        ('date_format(d, "op")', None),
        ("a div `op`", "op"),
        ("month + 1", "month"),
        ("extract(month from op)", "op"),
        ("opp", None),
        ("ts::date", None),
        ("op :: date", "op"),
        ("address.month", None),
        ("d + interval 1 month", None),
        ("d - Interval '1-2' year to month", None),
        ("d + interval op month", "month"),
        ("timestampadd(month, 1, d)", None),
        ("timestampdiff(year, op, d)", "op"),
        ("d - interval -1 day * op", "op"),
    ],
)
def test_E7_the_columns_that_an_expression_names(expression: str, found: str | None) -> None:
    assert _named_in(expression, {"op", "date", "month", "year"}) == found


@pytest.mark.parametrize("type", ["map<string,int>", "array<Map <string,int>>", "variant", "struct<map:int,v:variant>"])
def test_Q5_rows_are_told_by_values_that_can_be_compared(tmp_path: Path, type: str) -> None:
    columns = [*COLUMNS, {"name": "tags", "data_type": type}, {"name": "plain", "data_type": "struct<map:int,variant:int>"}]
    for settings, setting in (
        ({"keys": ["tags"]}, "keys"),
        ({"alternate_keys": [["tags"]]}, "alternate_keys"),
        ({"keys": [], "keyless": "multiset"}, "keyless"),
        ({"keys": [], "keyless": "append", "surrogate": "hash"}, "surrogate"),
    ):
        (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | settings}, columns=columns))
        assert f"`{setting}` tells rows by their values, `tags` is {type}, which Spark cannot compare." in problem


def test_Q5_an_order_is_of_columns_that_delta_has_statistics_of(tmp_path: Path) -> None:
    columns = [{"name": "flag", "data_type": "boolean"}, *({"name": f"c{n}", "data_type": "int"} for n in range(40))]
    table = TABLE | {"zorder_by": ["flag", "C27", "C28"], "partition_by": ["id"]}
    found = problems(tmp_path, source(tables={"invoice": table}, columns=[*COLUMNS[:4], *columns]))
    assert len(found) == 2
    assert "`zorder_by` names `flag`, whose type is boolean. It takes columns with an order: numbers, texts" in found[0]
    assert "`zorder_by` names `c28`, which is not among the first 32 of final: Delta has no statistics of it." in found[1]
    table = TABLE | {"cluster_by": ["flag", "c1", "c2", "c3", "c4"]}
    found = problems(tmp_path, source(tables={"invoice": table}, columns=[*COLUMNS[:4], *columns]))
    assert "`cluster_by` names `flag`, whose type is boolean." in found[0]
    assert "`cluster_by` names 5 columns; Delta takes four at most. Take some out." in found[1]
    columns = [{"name": "tags", "data_type": "array<string>"}]
    found = problems(tmp_path, source(tables={"invoice": TABLE | {"partition_by": ["tags"]}}, columns=[*COLUMNS[:4], *columns]))
    assert "`partition_by` names `tags`, which is array<string>. Spark takes simple types there. Take it out." in found[0]
    columns = [{"name": "hash", "data_type": "binary"}]
    found = problems(tmp_path, source(tables={"invoice": TABLE | {"partition_by": ["hash"]}}, columns=[*COLUMNS[:4], *columns]))
    assert "`partition_by` names `hash`, which is binary." in found[0]


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        ({"format": None}, "`format` is missing. Known: `aliyun`"),
        ({"format": "wal2jsn_v2"}, "`format` is 'wal2jsn_v2'. Did you mean `wal2json_v2`?"),
        ({"format": "csv"}, "If each row is one flat row of a table: `format: rows` and `file_format: csv`."),
        ({"format": "jsonl"}, "If each row is one flat row of a table: `format: rows`."),
        ({"location": 5}, "`location` is 5. It takes a folder"),
        ({"location": ""}, "`location` is ''. It takes a folder"),
        ({"location": "landing/*/{table}"}, "`location` is 'landing/*/{table}'. It names a folder as it is"),
        ({"location": "x/{tabel}/{table}"}, "`location` holds `{tabel}`; the only placeholder is `{table}`. Take it out."),
        ({"unit": "files"}, "`unit` is 'files'. It takes `file` or `folder`. Did you mean `file`?"),
        ({"ready": "_DONE"}, "`ready` says what a folder must hold, and `unit` is file. Set `unit: folder`."),
        ({"change_set_order": "time"}, "`change_set_order` is 'time'. It takes `modified` or `name`."),
        ({"settle_seconds": -1}, "`settle_seconds` is -1. It takes a whole number of seconds, 0 or more"),
        ({"settle_seconds": 1.5}, "`settle_seconds` is 1.5. It takes"),
        ({"settle_seconds": 10**12}, "It takes a whole number of seconds, 0 or more (31536000 at most, a year)"),
        ({"compact_after_days": 10**6}, "is 1000000. It takes a whole number of days, 1 or more (36500 at most), e.g. 400."),
        ({"keep_versions_days": 10**23}, "It takes a whole number of days, 1 or more (36500 at most), e.g. 14."),
        ({"test_buckets": 10**23}, "It takes a whole number of buckets, 1 or more (36500 at most), e.g. 7."),
        ({"start_from": 20260101}, "`start_from` is 20260101. It takes a name or a path, as text (quote it"),
        ({"file_format": "delta", "start_from": "118"}, 'Give the name of one: "00000000000000000118.json".'),
        ({"file_format": "delta", "start_from": "2026-11-27"}, "`start_from` is '2026-11-27', above or below all commits of the"),
        ({"expect_contiguous": "no"}, "`expect_contiguous` is 'no'. It takes true or false."),
        ({"sub_folders": True, "unit": "folder"}, "`sub_folders` is for change sets that are files. Take it out."),
        ({"sub_folders": True, "list_after": True}, "`list_after` and `sub_folders` are both given"),
        ({"file_format": "parket"}, "`file_format` is 'parket'. It takes `json`, `csv`, `parquet`, `orc`, `avro` or `delta`"),
        ({"file_format": "csv", "csv_options": {"delimiter": ";"}}, "`csv_options.delimiter` is not known. Known: `comment`"),
        ({"file_format": "csv", "csv_options": {"sep": "", "comment": "##"}}, "`csv_options.comment` is '##'."),
        ({"file_format": "csv", "csv_options": {"sep": "\t", "quote": 5}}, "`csv_options` is {sep: '\\t', quote: 5}."),
        ({"file_format": "csv", "csv_options": {"encoding": "cp1252"}}, "`csv_options.encoding` is 'cp1252'."),
        ({"file_format": "csv", "csv_options": {"sep": '"'}}, "`csv_options` has the same for `sep` and for `quote`."),
        ({"location": " landing/{table}"}, "`location` is ' landing/{table}', with a blank at its end or beginning."),
        ({"location": "S3A://lake/{table}"}, "The kind of a URL is written in small letters, e.g. s3a"),
        ({"csv_options": {"sep": ";"}}, "`csv_options` is for CSV files. Set `file_format: csv`, or take it out."),
        ({"keys": ["id"]}, "`keys` is a setting of the table, not of the feed. Move it there."),
        (
            {"except_columns": ["opp"]},
            "`except_columns` names `opp`, a column of none of its tables. Did you mean",
        ),
        (
            {"track_columns": {"except": ["opp"]}},
            "`track_columns` names `opp`, a column of none of its tables.",
        ),
        ({"never_store": ["old_idd"]}, "`never_store` names `old_idd`, which is not listed. Did you mean `old_id`?"),
        ("rows", "`cdc` is 'rows'. It takes a mapping of settings"),
    ],
)
def test_Q5_a_mistake_in_a_feed(tmp_path: Path, feed: Any, expected: str) -> None:
    found = problems(tmp_path, source(feed=FEED | feed if isinstance(feed, dict) else feed))
    assert found[0].startswith("feed shop: ")
    assert expected in found[0]
    assert len(found) == 1 or feed == "rows"


def test_E7_lists_of_a_feed_may_name_what_expressions_of_a_table_make(tmp_path: Path) -> None:
    feed = FEED | {"columns": ["id", "twice"], "track_columns": {"except": ["twice"]}}
    tables = {"invoice": TABLE | {"expressions": {"twice": "id * 2"}}, "item": TABLE}
    made, other = loaded(tmp_path, source(feed=feed, tables=tables)).tables
    assert [column.name for column in made.published_columns] == ["id", "twice"]
    assert [column.name for column in other.published_columns] == ["id"]
    (said,) = problems(tmp_path, source(feed=FEED | {"ignore_null_updates": ["twice"]}, tables=tables))
    assert "`ignore_null_updates` names `twice`, a column of none of its tables." in said


KAFKA = {"bootstrap_servers": "k:9092", "topics": ["shop.invoice"]}
JDBC = {"url": "jdbc:x", "table": "audit", "serial": "id", "overlap": 10}


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        ({"kafka": {"topics": ["a"]}}, "It takes a mapping of `bootstrap_servers`, `topics` (a list) or"),
        ({"kafka": {"topics": ["a"]}}, " `kafka.bootstrap_servers` is missing."),
        ({"kafka": KAFKA | {"topic": "a"}}, "`kafka.topic` is not known. Did you mean `topics`?"),
        ({"kafka": KAFKA | {"topics": []}}, "`kafka.topics` is []."),
        ({"jdbc": JDBC | {"overlap": "10"}}, "`jdbc.overlap` is '10'."),
        ({"kafka": KAFKA, "jdbc": JDBC}, "`kafka` and `jdbc` are both given."),
        ({"kafka": KAFKA, "file_format": "json"}, "`kafka` lands in a Delta table. Set `file_format: delta`."),
        ({"kafka": KAFKA | {"topic_pattern": "a.*"}}, "`kafka` takes `topics` or `topic_pattern`, one of them. Both are given."),
        ({"kafka": {"bootstrap_servers": "k"}}, "`kafka` takes `topics` or `topic_pattern`, one of them. Neither is given."),
        ({"kafka": KAFKA | {"options": {"subscribe": "a"}}}, "`kafka.options` names `subscribe`, which `delta-cdc land` sets"),
        ({"kafka": KAFKA | {"topics": ["a", "x.{table}"]}}, "`{table}` stands in one of `location` (landing) and"),
        ({"jdbc": JDBC, "location": "landing/{table}"}, "in one of `location` (landing/{table}) and `jdbc.table` (audit)."),
        ({"jdbc": JDBC | {"options": {"password": "x"}}}, "`jdbc.options` has `password` in plain text. Put it"),
        ({"kafka": KAFKA | {"options": {"kafka.sasl.jaas.config": 'M required password="x";'}}}, "in plain text. Put it"),
        ({"jdbc": JDBC | {"url": "jdbc:x://h/d?password=x"}}, "`jdbc.url` has a password in plain text."),
        ({"jdbc": JDBC | {"url": "jdbc:oracle:thin:scott/tiger@//h:1/s"}}, "`jdbc.url` has a password in plain text."),
        ({"kafka": KAFKA | {"options": {"kafka.sasl.jaas.config": 'M clientId="x" clientSecret="y";'}}}, "in plain text. Put it"),
        ({"kafka": KAFKA | {"options": {"kafka.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----"}}}, "in plain text. Put it"),
        ({"jdbc": JDBC | {"url": "postgresql://h/d"}}, "`jdbc.url` begins with `jdbc:`, e.g. jdbc:postgresql://db/shop."),
        ({"kafka": KAFKA | {"schema_registry": "r:8081"}}, "`kafka.schema_registry` begins with `http://` or `https://`."),
        ({"kafka": KAFKA | {"schema_registry": "http://u:x@r"}}, "`kafka.schema_registry` has a password in plain text. Put it"),
        ({"kafka": KAFKA | {"schema_registy": "http://r"}}, "`kafka.schema_registy` is not known. Did you mean `schema_"),
        ({"change_table": "ct"}, "`change_table` is a setting of the table, not of the feed. Move it there."),
    ],
)
def test_Q5_a_mistake_in_what_is_landed(tmp_path: Path, feed: Any, expected: str) -> None:
    landed = {"format": "debezium", "location": "landing", "file_format": "delta"}
    (problem,) = problems(tmp_path, source(feed=landed | feed, tables={"invoice": {"keys": ["id"]}}))
    assert problem.startswith("feed shop: ")
    assert expected in problem


@pytest.mark.parametrize("url", ["jdbc:postgresql://u:geheim@h/db", "jdbc:x://h/d?password=geheim"])
def test_a_block_that_is_not_right_tells_of_its_secrets_and_shows_none(tmp_path: Path, url: str) -> None:
    landed = {"format": "debezium", "location": "landing", "file_format": "delta"}
    jdbc = {"url": url, "tabel": "audit", "serial": "id", "overlap": 10, "options": {"password": "geheim"}}
    found = problems(tmp_path, source(feed=landed | {"jdbc": jdbc}, tables={"invoice": {"keys": ["id"]}}))
    assert not any("geheim" in problem for problem in found)
    for told in ("`jdbc.tabel` is not known", "`jdbc.options` has `password` in", "`jdbc.url` has a password in plain text"):
        assert any(told in problem for problem in found), (told, found)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fetchsize": 1.5}, "`jdbc.options.fetchsize` is 1.5. It takes text, a whole number, true or false."),
        ({"user": None}, "`jdbc.options.user` is empty. It takes text, a whole number, true or false."),
        ({"password": ["geheim"]}, "`jdbc.options.password` is no text. It takes text, a whole number, true or false."),
        ({1: "a"}, "`jdbc.options` names 1, which is no text. Quote it."),
    ],
)
def test_an_option_of_the_wrong_type_is_told_once_and_no_secret_shown(tmp_path: Path, options: Any, told: str) -> None:
    landed = {"format": "debezium", "location": "landing", "file_format": "delta", "jdbc": JDBC | {"options": options}}
    first, *_ = found = problems(tmp_path, source(feed=landed, tables={"invoice": {"keys": ["id"]}}))
    assert first.endswith(f'"${{SHOP_PASSWORD}}"}}}}. {told}')
    assert not any("geheim" in problem for problem in found)


def test_two_equal_mistakes_of_one_table_are_those_of_one_table(tmp_path: Path) -> None:
    table = TABLE | {"mask": {"email": "sha2(email, 256)"}}
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, source(tables={"invoice": table}))
    said, closing = caught.value.lines()
    assert said.startswith("feed shop, table invoice: `mask` names `email`, which is no column.")
    assert closing == "1 problem found, nothing was run."


def test_copies_of_a_table_are_compared_by_its_keys(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, source(feed=FEED | {"format": "snapshots"}, tables={"t": {}}))
    assert problem.endswith(
        "`keys` is missing. Give the columns that identify a row, e.g. [id]: the copies of a table are compared by them."
    )


def test_fields_may_be_parted_by_a_tab_or_a_blank(tmp_path: Path) -> None:
    for sep in ("\t", " ", "||"):
        feed = FEED | {"file_format": "csv", "csv_options": {"sep": sep}}
        assert loaded(tmp_path, source(feed=feed)).tables[0].settings.csv_options == {"sep": sep}


def test_a_feed_that_is_there_twice_is_one_mistake(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, source(), source())
    assert "the feed is already in models/shop/_sources.yml. Give each feed one source." in problem


@pytest.mark.parametrize(("key", "is_told"), [("mask", True), ("never_store", True), ("keys", True), ("tags", False)])
def test_a_setting_beside_its_block_is_told(tmp_path: Path, key: str, is_told: bool) -> None:
    feed = source()
    feed["tables"][0]["config"]["meta"][key] = ["op"]
    if is_told:
        (problem,) = problems(tmp_path, feed)
        assert f"`{key}` stands beside `cdc`, where nobody reads it." in problem
    else:
        assert loaded(tmp_path, feed)


@pytest.mark.parametrize(("template", "there"), [("{{ var('x', false) }}", 0), ("{{ var('x', true) }}", 1), (False, 0)])
def test_a_table_that_dbt_leaves_out_is_left_out(tmp_path: Path, template: Any, there: int) -> None:
    feed = source(tables={"invoice": TABLE, "customer": TABLE})
    feed["tables"][0]["config"]["enabled"] = template
    assert [table.name for table in loaded(tmp_path, feed).tables] == ["customer", "invoice"][: 1 + there]


@pytest.mark.parametrize(
    ("sources", "there"),
    [
        ({"+enabled": False}, []),
        ({"consumer": {"shop": {"+enabled": False}}}, []),  # the folder
        ({"consumer": {"shop": {"shop": {"enabled": "{{ var('x', false) }}", "invoice": {"+enabled": True}}}}}, ["invoice"]),
        ({"consumer": {"shop": {"shop": {"invoice": {"+enabled": False}}}}}, ["customer"]),
        ({"consumer": {"other": {"+enabled": False}}, "shop": {"+enabled": False}}, ["customer", "invoice"]),
        ({"consumer": {"+enabled": "{{ target.name == 'prod' }}"}}, ["customer", "invoice"]),
        (None, ["customer", "invoice"]),
    ],
)
def test_what_dbt_project_yml_switches_off_is_left_out(tmp_path: Path, sources: Any, there: list[str]) -> None:
    project(tmp_path, source(tables={"invoice": TABLE, "customer": TABLE}), sources=sources)
    found = load_project(tmp_path)
    assert ([table.name for table in found.tables], found.disabled) == (there, () if there else ("shop",))
    on = source()
    on["config"]["enabled"] = True  # what stands in the file counts more
    project(tmp_path, on, sources=sources)
    assert [table.name for table in load_project(tmp_path).tables] == ["invoice"]


def test_none_is_a_default_of_a_variable(tmp_path: Path) -> None:
    (table,) = loaded(tmp_path, source(tables={"invoice": TABLE | {"max_errors": "{{ var('x', none) }}"}})).tables
    assert table.settings.max_errors is None


def test_what_is_landed_may_hold_variables_of_the_environment(tmp_path: Path) -> None:
    landed = {"format": "debezium", "location": "landing", "file_format": "delta"}
    jaas = {
        "kafka.sasl.jaas.config": 'org.x.Module required password="${PASSWORD}";',
        "maxOffsetsPerTrigger": 5,
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://x",
    }
    for named in ({"kafka": KAFKA | {"options": jaas}}, {"jdbc": JDBC | {"url": "jdbc:x://h?password=${P}"}}):
        (feed,) = loaded(tmp_path, source(feed=landed | named, tables={"invoice": {"keys": ["id"]}})).feeds
        assert feed.is_landed
    each = landed | {"format": "oracle_cdc", "location": "landing/{table}", "jdbc": JDBC | {"table": "ct_{table}"}}
    assert loaded(tmp_path, source(feed=each, tables={"invoice": {"keys": ["id"], "change_table": "odd"}})).feeds
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {"change_table": "odd"}}))
    assert "`change_table` is for a feed with `jdbc` and `{table}` in `location`. Take it out." in problem


def test_Q5_no_two_change_tables_are_landed_in_one_place(tmp_path: Path) -> None:
    """How far one was landed is told by the highest serial that is there: of the other the rows below it would be lost."""
    audit = {"format": "trigger_audit", "location": "landing/crm", "file_format": "delta", "jdbc": JDBC}
    other = audit | {"location": "./landing/crm/", "jdbc": JDBC | {"table": "audit_2"}}
    tables: Any = ({"invoice": {"keys": ["id"]}, "item": {"keys": ["id"]}}, {"customer": {"keys": ["id"]}})
    (said,) = problems(tmp_path, source(feed=audit, tables=tables[0]), source("crm", feed=other, tables=tables[1]))
    assert said.startswith("feed crm, table customer: it is landed in ./landing/crm/, and so is shop.invoice, which comes from")
    same = source("crm", feed=other | {"jdbc": JDBC}, tables=tables[1])
    assert len(loaded(tmp_path, source(feed=audit, tables=tables[0]), same).feeds) == 2

    each = {"location": "landing/{table}", "file_format": "delta"}
    copied = {"invoice": {"keys": ["id"]}, "item": {"keys": ["id"], "source_table": "invoice", "change_table": "ct_item"}}
    by_table = each | {"format": "oracle_cdc", "jdbc": JDBC | {"table": "ct_{table}"}}
    (said,) = problems(tmp_path, source(feed=by_table, tables=copied))
    assert said.startswith("feed shop, table item: it is landed in landing/invoice, and so is shop.invoice, which")

    rows = {"file_format": "delta", "location": "landing", "format": "rows", "sequence_by": ["seq"]}
    for form, is_wrong in (("rows", True), ("debezium", False)):  # debezium's messages tell their table
        feeds = [
            source(name, feed=rows | {"format": form, "kafka": KAFKA | {"topics": [name]}}, tables={name: {"keys": ["id"]}})
            for name in ("a", "b")
        ]
        if is_wrong:
            (said,) = problems(tmp_path, *feeds)
            assert said.startswith("feed b, table b: it is landed in landing, and so is a.a, which comes from elsewhere.")
        else:
            assert len(loaded(tmp_path, *feeds).feeds) == 2


def test_format_and_location_must_be_given(tmp_path: Path) -> None:
    assert problems(tmp_path, source(feed={})) == [
        f"feed shop: `format` is missing. Known: {', '.join(f'`{name}`' for name in sorted(FORMATS))}.",
        "feed shop: `location` is missing. Give the folder of the change sets, e.g. landing/shop, "
        "or landing/shop/{table} for a folder per table.",
    ]


def test_a_format_is_a_file_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "macros" / "formats"
    folder.mkdir(parents=True)
    (folder / "morse.sql").touch()
    (folder / "_shared.sql").touch()
    feed = {"format": "morse", "location": "landing"}
    (table,) = loaded(tmp_path, source(feed=feed, tables={"t": TABLE | {"ordinal": "anything"}})).tables
    assert table.mixed
    (problem,) = problems(tmp_path, source(feed=feed | {"format": "_shared"}))
    assert "`maxwell`, `morse`, `oracle_cdc`" in problem


def test_flat_rows_do_not_mix_tables(tmp_path: Path) -> None:
    feed = {"format": "rows", "location": "landing/"}
    assert not loaded(tmp_path, source(feed=feed)).tables[0].mixed
    (problem,) = problems(tmp_path, source(feed=feed, tables={"a": TABLE, "b": TABLE}))
    assert problem == (
        "feed shop: `location` is 'landing/' for 2 tables, and rows do not say which table they are of. "
        "Give each a folder: landing/{table}."
    )


def test_a_misspelled_placeholder_is_one_mistake(tmp_path: Path) -> None:
    feed = {"format": "rows", "location": "landing/{tabel}"}
    (problem,) = problems(tmp_path, source(feed=feed, tables=dict.fromkeys(("invoice", "orders"), TABLE)))
    told = "feed shop: `location` holds `{tabel}`; the only placeholder is `{table}`. Write that, or take it out."
    assert problem == told  # taken out, the feed would mix its tables


def test_csv_without_a_header_does_not_mix_tables(tmp_path: Path) -> None:
    csv = {"file_format": "csv", "csv_options": {"sep": ";", "header": False}}
    for feed in ({"format": "rows", "location": "landing/{table}"}, {"format": "trigger_audit", "location": "landing"}):
        tables = {"a": TABLE, "b": TABLE} if "{table}" in feed["location"] else {"a": TABLE}
        assert loaded(tmp_path, source(feed=feed | csv, tables=tables)).feeds
    (problem,) = problems(tmp_path, source(feed=feed | csv, tables={"a": TABLE, "b": TABLE}))
    assert problem == (
        "feed shop: `csv_options` has no header, and `location` mixes 2 tables, whose columns are not the same. "
        "Give each a folder: landing/{table}."
    )


def test_a_location_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "landing").touch()
    (problem,) = problems(tmp_path, source(feed={"format": "wal2json_v2", "location": "landing"}))
    assert problem == "feed shop: `location` is 'landing', a file. It takes the folder that holds the change sets."


@pytest.mark.parametrize("setting", [{"operation": "op"}, {"old_keys": {"id": "old_id"}}])
def test_settings_of_flat_rows_elsewhere(tmp_path: Path, setting: dict[str, Any]) -> None:
    feed = {"format": "wal2json_v2", "location": "landing"}
    (problem,) = problems(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"], **setting}}))
    assert problem.endswith("is for flat rows; wal2json_v2 says that itself. Take it out.")


def test_a_row_before_an_update_is_a_row_of_its_own_in_flat_rows_alone(tmp_path: Path) -> None:
    feed = {"format": "goldengate", "location": "landing"}
    (problem,) = problems(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"], "operation_codes": {"B": "before"}}}))
    assert problem.endswith(
        "`operation_codes` gives `B` the meaning `before`, which is for `format: rows`, and this feed is goldengate. Take it out."
    )


@pytest.mark.parametrize("setting", [{"decimal_handling": "string"}, {"time_unit": "millis"}, {"unavailable_value": "x"}])
def test_settings_of_debezium_elsewhere(tmp_path: Path, setting: dict[str, Any]) -> None:
    name = next(iter(setting))
    for feed, table in ((FEED | setting, TABLE), (FEED, TABLE | setting)):
        (problem,) = problems(tmp_path, source(feed=feed, tables={"t": table}))
        assert problem.endswith(f"`{name}` is for `format: debezium`, and this feed is rows. Take it out.")
    debezium = {"format": "debezium", "location": "landing"}
    assert loaded(tmp_path, source(feed=debezium | setting, tables={"t": {"keys": ["id"]}})).tables


def test_a_change_data_feed_is_of_delta_tables(tmp_path: Path) -> None:
    feed = FEED | {"format": "delta_cdf", "file_format": "json"}
    (problem,) = problems(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"]}}))
    assert problem == "feed shop: `file_format` is json, and `format: delta_cdf` is of Delta tables. Take it out."
    assert loaded(tmp_path, source(feed=feed | {"file_format": "delta"}, tables={"t": {"keys": ["id"]}})).tables


@pytest.mark.parametrize(("name", "given"), [("message_column", "value"), ("kafka", KAFKA | {"topics": ["shop.{table}"]})])
def test_a_change_data_feed_has_no_messages_in_a_column(tmp_path: Path, name: str, given: object) -> None:
    feed = FEED | {"format": "delta_cdf", "file_format": "delta"} | {name: given}
    (problem,) = problems(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"]}}))
    assert f"`{name}` is for messages in a column, and `format: delta_cdf` is of a table's own rows." in problem


@pytest.mark.parametrize("other", [{"history": "table"}, {"alternate_keys": [["op"]]}, {"insert_only": True}])
def test_what_cannot_be_compacted_keeps_no_days(tmp_path: Path, other: dict[str, Any]) -> None:
    (problem,) = problems(tmp_path, source(tables={"t": TABLE | other | {"compact_after_days": 30}}))
    assert "`compact_after_days` " in problem
    assert problem.endswith("Take one out.")
    assert loaded(tmp_path, source(feed=FEED | {"compact_after_days": 30}, tables={"t": TABLE | other, "u": TABLE})).tables


def test_a_feed_wide_default_is_no_contradiction_of_a_table_that_is_otherwise(tmp_path: Path) -> None:
    feed = FEED | {"track_columns": {"except": ["op"]}, "delete_mode": "soft", "created_at": "born"}
    assert loaded(tmp_path, source(feed=feed, tables={"t": TABLE | {"insert_only": True}, "u": TABLE}))
    tables = {"t": TABLE | {"insert_only": True}, "u": TABLE | {"partition_by": ["op"]}}
    assert loaded(tmp_path, source(feed=FEED | {"apply": "replace_partitions"}, tables=tables))
    lives = FEED | {"set_on_insert": ["id", "op"], "delete_mode": "soft", "soft_delete_nulls": True}
    assert loaded(tmp_path, source(feed=lives, tables={"t": TABLE | {"delete_mode": "hard"}, "u": TABLE | {"keys": ["op"]}}))
    (problem,) = problems(tmp_path, source(feed=lives | {"delete_mode": "hard"}, tables={"t": TABLE}))
    assert "`soft_delete_nulls` is for `delete_mode: soft`" in problem
    both = FEED | {"track_columns": {"except": ["op"]}, "insert_only": True}
    (problem,) = problems(tmp_path, source(feed=both, tables={"t": TABLE}))
    assert "`track_columns` has no meaning" in problem


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"name": "x"}, "column `x` has no `data_type`. Give its Spark SQL type"),
        (
            {"name": "x", "data_type": "text"},
            "the data_type 'text' is no Spark SQL type: `text` is not one. Did you mean `str",
        ),
        (
            {"name": "x", "data_type": "decimal(3"},
            "it ends too early. Between braces, a type with a comma wants quotes.",
        ),
        ({"name": "x", "data_type": 3}, "column `x`: the data_type 3 is no Spark SQL type: it is no text."),
        (
            {"name": True, "data_type": "int"},
            "a column is true. It takes a `name` (quoted text) and a `data_type`.",
        ),
        ("x", "a column is 'x'. It takes a `name`"),
        ({"data_type": "int"}, "a column is empty. It takes a `name`"),
        (
            {"name": "ID", "data_type": "int"},
            "column `ID` is listed twice (`id`; to Spark, case makes no difference). Take one out.",
        ),
        (
            {"name": "_CDC_op", "data_type": "int"},
            "names that begin with _cdc_ are taken by the columns that are added. Leave it out.",
        ),
        ({"name": "{{ x }}", "data_type": "int"}, "a column's name cannot hold Jinja. Leave it out."),
        (
            {"name": "Valid_From", "data_type": "date"},
            "`Valid_From` has the name of a column that history adds. Leave it",
        ),
    ],
)
def test_Q5_a_mistake_in_a_column(tmp_path: Path, column: Any, expected: str) -> None:
    (problem,) = problems(tmp_path, source(columns=[*COLUMNS, column]))
    assert expected in problem


def test_columns_must_be_listed(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, source(columns=[]))
    assert problem.endswith("it has no columns. List them under `columns:`, each with `name` and `data_type`.")


def test_column_names_may_hold_anything_else(tmp_path: Path) -> None:
    names = ["a b", "a.b", "a`b", "a'b", 'a"b', "$% ^,& *(", "a\\b", "ä", "valid_from"]
    columns = [*COLUMNS, *({"name": name, "data_type": "string"} for name in names)]
    settings = {"keys": ["a`b", "a.b"], "sequence_by": ["`a``b`"], "except_columns": ["valid_from"]}
    (table,) = loaded(tmp_path, source(tables={"t": settings}, columns=columns)).tables
    assert [column.name for column in table.columns][-9:] == names


def test_names_of_feeds_and_tables(tmp_path: Path) -> None:
    found = problems(tmp_path, source("my shop", tables={"in.voice": TABLE}))
    assert found == [
        "feed my shop: a feed's name is made of letters, digits and underscores, not beginning with a digit; `my shop` is not.",
        "feed my shop, table in.voice: a table's name is made of letters, digits and underscores; "
        "`in.voice` is not. Choose one, and give the name in the feed as `source_table`.",
    ]


def test_the_identifier_of_a_table_is_not_what_a_feed_calls_it(tmp_path: Path) -> None:
    of = source()
    of["tables"][0]["identifier"] = "INVOICES"
    assert problems(tmp_path, of) == [
        "feed shop, table invoice: `identifier` is not read: no relation stands behind a feed. Say `source_table: INVOICES` "
        "under `cdc`."
    ]
    both = source(tables={"invoice": TABLE | {"source_table": "INVOICES"}})
    both["tables"][0]["identifier"] = "INVOICES"
    assert loaded(tmp_path, both).tables[0].settings.source_table == "INVOICES"


def test_a_table_or_feed_listed_twice(tmp_path: Path) -> None:
    feed = source(tables={"invoice": TABLE, "Invoice": TABLE})
    assert "feed shop, table Invoice: the table is listed twice (names that differ only in case" in problems(tmp_path, feed)[0]
    other = source("SHOP", tables={"other": TABLE})
    (problem,) = problems(tmp_path, source(), other)
    assert problem == "feed SHOP: the feed is already in models/shop/_sources.yml. Give each feed one source."


def test_final_tables_of_one_name(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, source("a"), source("b"))
    assert problem == (
        "feed b, table invoice: its model final_invoice is also a model of feed a, table invoice. "
        "Give one of them another `final_name`, e.g. final_b_invoice."
    )
    assert loaded(tmp_path, source("a"), source("b", tables={"invoice": TABLE | {"final_name": "final_b_invoice"}}))


def test_a_name_without_schema_beside_another_tables_full_name(tmp_path: Path) -> None:
    tables = {"invoice": TABLE, "old": TABLE | {"source_table": "archive.invoice"}}
    (problem,) = problems(tmp_path, source(feed={"format": "debezium", "location": "landing"}, tables=tables))
    assert problem == (
        "feed shop, table invoice: it would take the messages of every schema's invoice, also of archive.invoice, which table "
        "old takes. Name this one in full too, e.g. `source_table: public.invoice`."
    )


def test_other_models_of_one_name(tmp_path: Path) -> None:
    found = problems(tmp_path, source("a__b", tables={"c": TABLE}), source("a", tables={"b__c": TABLE}))
    assert "its model stg_a__b__c is also a model of feed a__b, table c. Rename one of them" in found[0]
    (problem,) = problems(tmp_path, source(tables={"t": TABLE | {"final_name": "cdc_change_sets"}}))
    assert "its model cdc_change_sets is also a model of this package." in problem
    (problem,) = problems(tmp_path, source(tables={"t": TABLE | {"final_name": "stg_shop__t"}}))
    assert "`final_name` is stg_shop__t, which is another model of the table. Give another, e.g. final_t." in problem


def test_feed_without_tables(tmp_path: Path) -> None:
    assert problems(tmp_path, source(tables={})) == [
        "feed shop: it has no tables. List them under `tables:`, each as `- name: …`."
    ]


def test_a_feed_of_whose_tables_each_is_disabled_stops_no_other(tmp_path: Path) -> None:
    off = source("off", tables={"t": TABLE})
    off["tables"][0]["config"]["enabled"] = False
    found = loaded(tmp_path, source(tables={"invoice": TABLE}), off)
    assert ([feed.name for feed in found.feeds], found.disabled) == (["shop"], ("off",))


@pytest.mark.parametrize(
    ("feed", "table"),
    [
        ({"delete_mode": "soft", "soft_delete_nulls": True}, {"delete_mode": "hard"}),
        ({"operation": "op", "operation_codes": {"x": "I"}}, {"operation": None}),
    ],
)
def test_what_a_feed_says_beside_a_setting_that_a_table_takes_back_is_for_its_other_tables(
    tmp_path: Path, feed: dict[str, Any], table: dict[str, Any]
) -> None:
    loaded(tmp_path, source(feed=FEED | feed, tables={"invoice": TABLE, "other": TABLE | table}))
    beside = {name: value for name, value in feed.items() if name not in table}
    assert problems(tmp_path, source(feed=FEED | feed, tables={"invoice": TABLE | table | beside}))


def test_settings_given_twice(tmp_path: Path) -> None:
    both = source()
    both["meta"] = {"cdc": FEED}
    (problem,) = problems(tmp_path, both)
    assert problem == "feed shop: `cdc` is given twice, under `meta` and under `config: meta`. Keep the second."

    project(tmp_path, source())
    file = tmp_path / "models" / "shop" / "_sources.yml"
    file.write_text(file.read_text().replace("        format: rows\n", "        format: rows\n        format: debezium\n"))
    with pytest.raises(ConfigError, match=r"feed shop: `format` is given twice\. Keep one\. \(models/shop/_sources.yml:8\)"):
        load_project(tmp_path)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("mask: {op: upper(op), op: lower(op)}", "`mask` has `op` twice, and one is lost. Keep one."),
        ("mask: {OP: upper(op), op: lower(op)}", "`mask` has `op` twice (names that differ only in case are one name to Spark)"),
        ("expressions: {New: id + 1, new: id + 2}", "`expressions` has `new` twice (names that differ"),
        ("operation: op\n          operation_codes: {X: D, X: U}", "`operation_codes` has `X` twice, and one is lost."),
        ("operation: op\n          operation_codes: {X: D, x: U}", None),
    ],
)
def test_what_a_setting_holds_twice(tmp_path: Path, setting: str, said: str | None) -> None:
    file = project(tmp_path, source()) / "models" / "shop" / "_sources.yml"
    file.write_text(file.read_text().replace("          sequence_by:", f"          {setting}\n          sequence_by:"))
    if said is None:
        assert load_project(tmp_path).tables
        return
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    (problem,) = caught.value.problems
    assert said in problem.message
    assert setting.splitlines()[-1].strip() in file.read_text().splitlines()[(problem.line or 0) - 1]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("ordinal: coalesce(seq, 0)", "`ordinal` ends at a comma, and `0)` is read as a setting. Between braces, a text with"),
        ("deleted_when: op = 'D', truncated_when: op in (1, 2)", "`truncated_when` ends at a comma, and `2)` is read as a"),
        (
            "mask: {op: sha2(op, 256)}",
            "`mask` is {op: 'sha2(op', 256): empty}. It takes a mapping from column to SQL expression, e.g. "
            '{email: "sha2(email, 256)"}. Between braces, a text with a comma wants quotes.',
        ),
        ("nullable_keys: [no]", "is [false]. It takes a list of key columns, e.g. [region]. Yml reads yes and on as true"),
        (
            "operation: op, operation_codes: {on: U}",
            "`operation_codes` is {true: 'U'}. It takes a mapping from code (quoted if it is a number) to one of I, U, D, R, T, "
            "before, e.g. {upsert: U, remove: D}. Yml reads yes and on as true, no and off as false:",
        ),
        ("on: op", "setting `true` is not known. Yml reads yes and on as true, no and off as false: quote what is text."),
        ("history: off", "`history` is false. It takes `view` or `table`."),
    ],
)
def test_what_yml_reads_otherwise_than_it_was_meant(tmp_path: Path, setting: str, said: str) -> None:
    file = project(tmp_path, source(tables={"invoice": None})) / "models" / "shop" / "_sources.yml"
    block = f"    meta: {{cdc: {{keys: [id], sequence_by: [seq], {setting}}}}}\n    columns:"
    file.write_text(file.read_text().replace("    columns:", block))
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    (problem,) = caught.value.problems
    assert said in problem.message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("compact", "compact_after_days"),
        ("retention", "keep_versions_days"),
        ("order_column", "sequence_by"),
        ("key_columns", "keys"),
        ("append_only", "insert_only"),
        ("op_column", "operation"),
        ("table_name", "source_table"),
        ("apply_as_truncates", "truncated_when"),
        ("track_history_except_column_list", "track_columns"),
        ("merge_key", "keys"),
        ("hard_deletes", "delete_mode"),
        ("cursor_path", "sequence_by"),
    ],
)
def test_a_setting_by_the_name_that_others_give_it(tmp_path: Path, name: str, meant: str) -> None:
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {name: "x"}}))
    assert problem == f"feed shop, table invoice: setting `{name}` is not known. Did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stored_as_scd_type", "Take it out: each table has a history (SCD2) and a final (SCD1)."),
        ("full_refresh", "Take it out: `delta-cdc rebuild` makes final anew."),
        ("enabled", "It is dbt's: put it under `config`, beside `meta`."),
    ],
)
def test_what_others_say_and_no_setting_does(tmp_path: Path, name: str, told: str) -> None:
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {name: "x"}}))
    assert problem == f"feed shop, table invoice: setting `{name}` is not known. {told}"


def test_a_misspelled_block_of_a_feed_is_told(tmp_path: Path) -> None:
    given = source(feed=None)
    given["config"] = {"meta": {"cdcc": FEED}}
    assert "feed shop: `cdcc` stands under `meta`, where nobody reads it. Did you mean `cdc`?" in problems(tmp_path, given)
    plain = source("plain", feed=None, tables={"t": None})
    plain["config"] = {"meta": {"cdn": {"location": "x"}}}
    assert [feed.name for feed in loaded(tmp_path, source(), plain).feeds] == ["shop"]


@pytest.mark.parametrize("name", [5, None])
def test_a_table_without_a_name_is_one_mistake(tmp_path: Path, name: Any) -> None:
    given = source()
    given["tables"][0]["name"] = name
    assert len(problems(tmp_path, given)) == 1


def test_what_a_column_says_twice(tmp_path: Path) -> None:
    file = project(tmp_path, source()) / "models" / "shop" / "_sources.yml"
    file.write_text(file.read_text().replace("data_type: bigint", "data_type: bigint\n      data_type: int"))
    with pytest.raises(ConfigError, match=r"column `seq`: `data_type` is given twice, and the first is lost\. Keep one\."):
        load_project(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sources:\n  - name: [a\n", r"bracket that begins in this line is not closed\. \(.*_sources.yml:2\)"),
        ("sources:\n  - name: [a\n    x: 1\n", r"bracket that begins in line 2 is not closed, or a text .*_sources.yml:3\)"),
        ('sources:\n  - name: "\\d"\n', r"a backslash stands for itself; .*_sources.yml:2\)"),
        ("sources:\n  - name: 'a\n    x: 1\n", r"A quote that begins in this line is not closed\. \(.*_sources.yml:2\)"),
        ("sources:\n  - name: a\n    tables: b\n   x: 1\n", r"Indent it as what stands beside it; .*_sources.yml:4\)"),
        ("sources:\n  - name: a\n    description: a: b\n", r"a text that holds a colon wants quotes\. \(.*_sources.yml:3\)"),
        ("sources:\n  -\tname: a\n", r"Yml is indented with blanks, not with tabs\. \(models/shop/_sources.yml:2\)"),
        ("sources:\n  - name: @a\n", r"A text that begins with it wants quotes\. \(models/shop/_sources.yml:2\)"),
        ("---\nsources: []\n---\n", r"A file holds one document: take out the `---` between them\. \(.*_sources.yml:3\)"),
        (
            'sources:\n  - {location: "{table}", ready: 2026-02-30}\n',
            r"day is out of range for month: 2026-02-30\. Quote it, if it is text\. \(models/shop/_sources.yml:2\)",
        ),
        ("sources:\n  - {name: a: b}\n", r"this is not valid yml: .* \(models/shop/_sources.yml:2\)"),
        (
            "sources:\n  - {? [a] : b}\n",
            r"this is not valid yml: a key must be a word\. \(models/shop/_sources.yml:2\)",
        ),
        (b"sources: \xff\n", r"the file is not UTF-8 \(.*utf-8.*\)\. Save it as UTF-8\. \(models/shop/_sources.yml\)"),
    ],
)
def test_a_file_that_is_no_yml(tmp_path: Path, text: str | bytes, expected: str) -> None:
    project(tmp_path, source())
    file = tmp_path / "models" / "shop" / "_sources.yml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=expected) as caught:
        load_project(tmp_path)
    assert len(caught.value.problems) == 1


def test_anchors_and_merge_keys_are_read(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "models" / "shop" / "_sources.yml").write_text(
        "x: &t {keys: [id], sequence_by: [id], tags: [a]}\n"
        "sources:\n"
        "  - name: shop\n"
        "    meta: {cdc: {format: rows, location: x}}\n"
        "    tables:\n"
        "      - name: t\n"
        "        meta: {cdc: {<<: *t, tags: [b]}}\n"
        "        columns: [{name: id, data_type: int}]\n"
    )
    assert load_project(tmp_path).tables[0].settings.tags == ["b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "There is no dbt project in"),
        ("name: [", "dbt_project.yml is not valid yml: line 1"),
        ("version: 1", "gives the project no `name`. Write one, e.g. name: my_project."),
        ("name: x\nstarts: 2026-02-30", "dbt_project.yml is not valid yml: day"),
        ("name: x\nmodel-paths: models", r"`model-paths` is 'models'. It takes a list of folders: \[models\]"),
        ("name: x\nmacro-paths: [null]", r"`macro-paths` is \[None\]. It takes a list of folders: \[macros\]"),
    ],
)
def test_a_folder_that_is_no_project(tmp_path: Path, text: str | None, expected: str) -> None:
    if text is not None:
        (tmp_path / "dbt_project.yml").write_text(text)
    with pytest.raises(ProjectError, match=expected) as caught:
        load_project(tmp_path)
    assert caught.value.exit_code == 2


def test_all_mistakes_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: consumer\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "_sources.yml").write_text(
        "sources:\n"
        "  - name: shop\n"
        "    config: {meta: {cdc: {format: rows, location: x, settle: 5}}}\n"
        "    tables:\n"
        "      - name: invoice\n"
        "        config:\n"
        "          meta:\n"
        "            cdc:\n"
        "              keyz: [id]\n"
        "        columns:\n"
        "          - name: id\n"
        "            data_type: number\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, CdcError)
    assert caught.value.lines() == [
        "feed shop: setting `settle` is not known. Did you mean `settle_seconds`? (models/_sources.yml:3)",
        "feed shop, table invoice: `sequence_by` is missing. "
        "Give the columns that order the source's changes, e.g. [lsn]. (models/_sources.yml:8)",
        "feed shop, table invoice: setting `keyz` is not known. Did you mean `keys`? (models/_sources.yml:9)",
        "feed shop, table invoice: column `id`: the data_type 'number' is no Spark SQL type: "
        "`number` is not one. Did you mean `decimal(38,10)`? (models/_sources.yml:12)",
        "4 problems found, nothing was run.",
    ]


# The definition


def test_every_setting_is_described_and_its_example_is_one() -> None:
    for name, known in Settings.model_fields.items():
        assert known.description
        assert known.description.endswith(".")
        assert wants(name)
        assert setting_level(name) in ("feed", "table", "both")
        (text,) = known.examples or []
        Settings.model_validate({name: yaml.safe_load(str(text))})


def test_defaults_of_settings_and_formats_are_settings() -> None:
    Settings.model_validate(setting_defaults())
    for known in FORMATS.values():
        Settings.model_validate(dict(known.settings))
        for setting in ("sequence_by", "ordinal", "transaction", "occurred_at"):
            given = known.settings.get(setting, [])
            assert set([given] if isinstance(given, str) else given) <= set(known.fields)
        for data_type in known.fields.values():
            assert why_not_a_type(data_type) is None


def test_every_shipped_format_is_known() -> None:
    files = {file.stem for file in (ROOT / "macros" / "formats").glob("[!_]*.sql")}
    assert files == set(FORMATS)


def test_the_project_s_own_configuration_is_right() -> None:
    assert load_project(ROOT).name == "delta_cdc"


def test_configuration_is_read_without_dbt_and_spark() -> None:
    code = (
        "import sys, delta_cdc.cli, delta_cdc.config_reader, delta_cdc.scaffold\n"
        "print([m for m in ('pyspark', 'dbt', 'delta', 'py4j') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Spark's types, names


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "BIGINT",
        "decimal(38,10)",
        "decimal( 5 )",
        "decimal",
        "varchar(10)",
        "array<string>",
        "map<string, array<int>>",
        "struct<a: int, `b c`: struct<d: date>, e string not null>",
        "timestamp_ntz",
        "variant",
    ],
)
def test_types(text: str) -> None:
    assert why_not_a_type(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("daet", "`daet` is not one. Did you mean `date`?"),
        ("jsonb", "`jsonb` is not one. Did you mean `string`?"),
        ("qqqqqq", "`qqqqqq` is not one"),
        ("", "it ends too early"),
        ("decimal(39,1)", "the precision 39 is not between 1 and 38"),
        ("decimal(3,4)", "the scale 4 is above the precision 3"),
        ("decimal(1,2,3)", "`decimal` takes no 3 numbers"),
        ("varchar", "`varchar` wants a length, e.g. varchar(10)"),
        ("char(0)", "the length 0 is not between 1 and 2147483647"),
        ("array<varchar(2147483648)>", "the length 2147483648 is not between 1 and 2147483647"),
        ("array<int", "it ends too early"),
        ("array(int)", "`(` is not expected there"),
        ("map<string>", "`>` is not expected there"),
        ("map<int,string>", "the names in a map are text: `map<string, …>`, not `map<int, …>`"),
        ("int int", "`int` is not expected there"),
        ("int;", "`;` is not expected there"),
        ("struct<>", "`>` is not expected there"),
        ("struct<a int not>", "`>` is not expected there"),
        ("struct<a int not b>", "`not` wants `null` after it"),
        ("struct<a int comment>", "comments of fields are not taken"),
        ("array<struct<a int, b int, `A`: date>>", "a struct has `A` twice (to Spark, case makes no difference)"),
    ],
)
def test_no_types(text: str, why: str) -> None:
    assert why_not_a_type(text) == why


def test_nearest_words() -> None:
    assert nearest("KEYZ", ["keys", "kids"]) == "keys"
    assert nearest("zzz", ["keys"]) is None
    assert did_you_mean("a", []) == "None are known."


def test_unquoted() -> None:
    assert unquoted(" lsn ") == "lsn"
    assert unquoted("`a``b`") == "a`b"
    assert unquoted("`a`, `b`") is None


# What stands where nobody reads it, and what would fail later


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.update(config={"cdc": {"mask": {"op": "upper(op)"}}}), "`cdc` is not read here"),
        (lambda table: table.update(config={"Meta": {"cdc": TABLE}}), "`cdc` is not read here"),
        (lambda table: table.update(cdc=TABLE), "`cdc` is not read here"),
        (lambda table: table.update(cdc=None), "`cdc` is not read here"),
        (lambda table: table.update(meta=[{"cdc": TABLE}]), "`cdc` is not read here"),
        (
            lambda table: table.update(columns=[*COLUMNS, {"name": "x", "data_type": "int", "meta": {"cdc": TABLE}}]),
            "`cdc` is not read here",
        ),
        (lambda table: table.update(meta={"CDC": TABLE}), "`CDC` is not read here"),
        (lambda table: table.update(config={"meta": {"cd": TABLE}}), "`cd` stands under `meta`, where nobody reads it."),
    ],
)
def test_settings_that_nobody_reads_are_told(tmp_path: Path, change: Any, said: str) -> None:
    given = source()
    change(given["tables"][0])
    assert any(said in problem for problem in problems(tmp_path, given))


def test_a_block_that_is_given_twice_and_names_that_are_no_text(tmp_path: Path) -> None:
    project(tmp_path, source())
    file = next((tmp_path / "models").rglob("*.yml"))
    text = file.read_text()
    file.write_text(text.replace("    columns:", "    config: {meta: {cdc: {keys: [id]}}}\n    columns:") + "  - name: 2024\n")
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    said = [str(problem) for problem in caught.value.problems]
    assert any("`config` is given twice" in each for each in said)
    assert any("a table's name is 2024. It takes text" in each for each in said)


@pytest.mark.parametrize(("key", "more"), [
    ("columns", "    columns: [{name: more, data_type: int}]\n"),
    ("columns", "    columns: [{name: id, data_type: int}]\n"),
    ("tables", "  tables:\n  - {name: item, columns: [{name: n, data_type: int}], meta: {cdc: {keys: [n], sequence_by: [n]}}}\n"),
])  # fmt: skip
def test_a_list_that_is_given_twice_is_one_mistake(tmp_path: Path, key: str, more: str) -> None:
    project(tmp_path, source(feed=FEED | {"except_columns": ["op"]}))
    file = next((tmp_path / "models").rglob("*.yml"))
    file.write_text(file.read_text() + more)
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    (said,) = map(str, caught.value.problems)
    assert f"`{key}` is given twice, and the first is lost. Make it one." in said


FEEDS = yaml.safe_dump({"sources": [source()]}, sort_keys=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FEEDS + FEEDS, "`sources` is given twice, and the first is lost"),
        (FEEDS.replace("sources:", "source:"), "`cdc` is not read here: the file has no `sources:`"),
        (FEEDS.replace("sources:\n", ""), "`cdc` is not read here: the file has no `sources:`"),
        (FEEDS.replace("name: shop", "nam: shop"), 'a source\'s name is empty. It takes text: - name: "shop".'),
        (FEEDS.replace("name: shop", "name: 2024"), 'a source\'s name is 2024. It takes text: - name: "2024".'),
        (FEEDS.replace("name: shop", "name: shop\n  name: stall"), "`name` is given twice, and the first is lost"),
        (FEEDS.replace("location:", "x: 2026-02-30\n        location:"), "this is not valid yml: day is out of range"),
        ("sources: [{name: s, meta: {cdc: {location: {{ var('x') }}}}}]", "A text with braces wants quotes."),
        ("sources: [{name: s, meta: {cdc: {kafka: {options: {user: ${U}}}}}}]", "A text with braces wants quotes."),
        ("sources: [{name: s, meta: {cdc: {deleted_when: op in ('D', 'X')}}}]", "a bracket or a quote wants quotes. (models/"),
        ("# {{ a }}\nsources:\n  - at: 2026-02-30\n", ": 2026-02-30. Quote it, if it is text. (models/shop/_sources.yml:3)"),
        ("# {{ a }}\nsources:\n  - at: \0\n", "(0x0000), which yml does not take. Take it out. (models/shop/_sources.yml:3)"),
        ("sources:\n\t- name: shop\n", "Yml is indented with blanks, not with tabs."),
    ],
)
def test_a_feed_that_would_not_be_seen_is_told(tmp_path: Path, text: str, said: str) -> None:
    project(tmp_path, source())
    next((tmp_path / "models").rglob("*.yml")).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    assert any(said in str(problem) for problem in caught.value.problems), [str(each) for each in caught.value.problems]


def test_sources_may_stand_beside_the_project(tmp_path: Path) -> None:
    for folder in ("outside", "project"):
        (tmp_path / folder).mkdir()
    project(tmp_path / "outside", source())
    root = project(tmp_path / "project")
    (root / "dbt_project.yml").write_text("name: consumer\nmodel-paths: [models, ../outside/models]\n")
    (found,) = load_project(root).feeds
    assert found.file.startswith("../outside/models/")


def test_a_wrong_format_asks_for_no_order_of_its_own(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, source(feed={**FEED, "format": "debezum"}, tables={"t": {"keys": ["id"]}}))
    assert "Did you mean `debezium`?" in said


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("landing/{table", "The placeholder is written `{table}`."),
        ("landing/<table>", "The placeholder is written `{table}`."),
        ("~/landing/{table}", "no shell reads it"),
        ("$LANDING/{table}", "no shell reads it"),
        ("${LANDING}/{table}", "no shell reads it"),
    ],
)
def test_a_location_that_is_no_path(tmp_path: Path, location: str, said: str) -> None:
    assert any(said in each for each in problems(tmp_path, source(feed={**FEED, "location": location})))


def test_E7_a_column_never_to_store_that_is_misspelled(tmp_path: Path) -> None:
    columns = [{"name": name, "data_type": "int"} for name in ("id", "seq", "total")]
    (said,) = problems(tmp_path, source(tables={"t": {**TABLE, "never_store": ["totl"]}}, columns=columns))
    assert said.endswith("`never_store` names `totl`, which is not listed. Did you mean `total`? If not, list `totl` too.")
    columns.append({"name": "totl", "data_type": "int"})
    assert loaded(tmp_path, source(tables={"t": {**TABLE, "never_store": ["totl"]}}, columns=columns)).tables


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"renamed_columns": {"nosuch": "old"}}, "`renamed_columns` names `nosuch`, which is no column"),
        ({"renamed_columns": {"was": "created"}}, "It takes the new name first: {created: was}."),
        ({"renamed_columns": {"created": "was", "id": "WAS"}}, "says of `created` and of `id` that they were `WAS`"),
        ({"renamed_columns": {"created": "id"}}, "which is a column too"),
        ({"sequence_by": ["id", "ID"]}, "`sequence_by` names `ID` twice"),
        ({"sequence_by": ["id desc"]}, "write an expression that rises with time"),
        ({"sequence_by": ["id, seq"]}, "Write each by itself: [id, seq]"),
        ({"sequence_by": ["coalesce(seq", "0)", "id"]}, "`sequence_by` has `coalesce(seq, 0)` in parts, for between brackets"),
        ({"partition_by": ["trunc(created", "'month') as m"]}, "Put it in quotes: [\"trunc(created, 'month') as m\"]."),
        ({"partition_by": ["created as _CDC_is_gone"]}, "makes a column `_CDC_is_gone`: names that begin with _cdc_ are taken."),
        ({"created_at": "_CDC_is_deleted"}, "`created_at` is '_CDC_is_deleted'. It takes a name of letters"),
        ({"partition_by": ["id, created"]}, "has `id, created` as one expression. Write each by itself: [id, created]."),
        ({"partition_by": ["year(created) as y, op as o"]}, "Write each by itself: [year(created) as y, op as o]."),
        ({"occurred_at": "created, seq"}, "`occurred_at` has `created, seq`, which is more than one expression. It takes one."),
        ({"transaction": "op, seq"}, "`transaction` has `op, seq`, which is more than one expression."),
        ({"deleted_when": "op = 'D', op = 'X'"}, "which is more than one expression. It takes one."),
        ({"sequence_by": ['"seq"']}, '`sequence_by` has `"seq"`, which names no column, so it tells nothing of a change.'),
        ({"sequence_by": ["1"]}, "`sequence_by` has `1`, which names no column"),
        ({"sequence_by": ["current_timestamp()"]}, "`sequence_by` has `current_timestamp()`, which names no column"),
        ({"transaction": "'xid'"}, "`transaction` has `'xid'`, which names no column"),
        ({"deleted_when": "'op' = 'D'"}, "`deleted_when` has `'op' = 'D'`, which names no column"),
        ({"sequence_by": ["Op"], "operation": "op"}, "`operation` and `sequence_by` both name `op`: what a change does"),
        ({"deleted_when": "is_gone"}, "`deleted_when` names `is_gone`, which is no column"),
        ({"deleted_when": "creatd is null"}, "`deleted_when` names `creatd`, which is no column. Did you mean `created`?"),
        ({"deleted_when": "ID"}, "`deleted_when` is `ID`, whose type is int, and it takes a condition. Say when: `ID = 1`, or"),
        ({"truncated_when": "`created`"}, "`truncated_when` is ``created``, whose type is date, and it takes a condition."),
        ({"paused": "False"}, "`paused` is 'False', and whatever it says pauses. Give the reason, or take it out ("),
        ({"truncated_when": "op = 'T"}, "`truncated_when` has `op = 'T`, which is no SQL expression: a quote (') is not closed."),
        ({"sequence_by": ["coalesce(sek, id)"]}, "`sequence_by` names `sek`, which is no column. Did you mean `seq`?"),
        ({"occurred_at": "to_timestamp(creatd)"}, "`occurred_at` names `creatd`, which is no column"),
        ({"partition_by": ["year(creatd) as y"]}, "`partition_by` names `creatd`, which is no column"),
        ({"partition_by": ["year(created as y"]}, "which is no SQL expression: `(` is not closed."),
        ({"expressions": {"y": "id + idd"}}, "`expressions` names `idd`, which is no column. Did you mean `id`?"),
        ({"expressions": {"y": "Z + 1", "z": "id + 1"}}, "`expressions` makes `y` of `Z`, which it makes after that: put it"),
        ({"expressions": {"y": "y + 1"}}, "`expressions` makes `y` of `y`, which is itself."),
        ({"mask": {"op": "upper(opp)"}}, "`mask` names `opp`, which is no column. Did you mean `op`?"),
        ({"expressions": {"y": "year(id)"}, "partition_by": ["year(id) as y"]}, "both make a column `y`"),
    ],
)
def test_what_would_fail_or_be_lost_later_is_told(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    found = problems(tmp_path, source(tables={"invoice": TABLE | settings}))
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    "settings",
    [
        {"sequence_by": ["coalesce(seq", "0)", "id"]},
        {"partition_by": ["concat(op", "'", "'", "op) as o", "id"]},
        {"partition_by": ["id, created"]},
    ],
)
def test_a_comma_in_the_wrong_place_is_one_mistake(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert len(problems(tmp_path, source(tables={"invoice": TABLE | settings}))) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"deleted_when": "op in ('D', 'it\\'s, gone')"},
        {"deleted_when": "op = 'it\\'s, gone'"},
        {"deleted_when": "op = 'D' /* X, Y */"},
        {"expressions": {"both": "id, op"}},
        {"partition_by": ["concat(op, ',') as o"]},
    ],
)
def test_commas_that_part_nothing(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert loaded(tmp_path, source(tables={"invoice": TABLE | settings})).tables


def test_a_condition_may_be_a_constant(tmp_path: Path) -> None:
    told = {"deleted_when": "false", "truncated_when": "1 = 0", "occurred_at": "current_timestamp()"}
    assert loaded(tmp_path, source(tables={"invoice": TABLE | told})).tables


@pytest.mark.parametrize("data_type", ["boolean", "STRING", "varchar(5)"])
def test_a_condition_may_be_a_column_of_flags_or_of_texts(tmp_path: Path, data_type: str) -> None:
    columns = [*COLUMNS, {"name": "gone", "data_type": data_type}]
    assert loaded(tmp_path, source(tables={"invoice": TABLE | {"deleted_when": "gone"}}, columns=columns)).tables


@pytest.mark.parametrize(
    ("settings", "feed"),
    [
        ({"deleted_when": "_timestamp > '2026-01-01'", "occurred_at": "date_trunc('day', _timestamp)"}, "debezium"),
        ({"sequence_by": ["_position.offset + 0"], "transaction": "concat(_txid, '')", "ordinal": "`_total_order`"}, "debezium"),
        ({"expressions": {"y": "id + 1", "z": "y + _cdc_batch_id"}, "partition_by": ["z % 10 as part"]}, "rows"),
        ({"partition_by": ["date(_cdc_occurred_at) as d"]}, "rows"),
        ({"insert_only": True, "expressions": {"x": "lower(_cdc_change_set)"}}, "rows"),
        ({"expressions": {"x": "_cdc_occurred_at", "y": "`_cdc_batch_id`"}}, "rows"),
    ],
)
def test_expressions_may_name_fields_of_the_format_what_expressions_make_and_staging_s_own(
    tmp_path: Path, settings: dict[str, Any], feed: str
) -> None:
    feeds = FEED | {"format": feed}
    assert loaded(tmp_path, source(feed=feeds, tables={"invoice": TABLE | settings})).tables


def test_E7_what_expressions_make_is_published_whether_columns_names_it_or_not(tmp_path: Path) -> None:
    table = TABLE | {"expressions": {"x": "year(created)"}}
    tables = {"named": table | {"columns": ["x", "id"]}, "not_named": table | {"columns": ["id"]}}
    published = [[c.name for c in t.published_columns] for t in loaded(tmp_path, source(tables=tables)).tables]
    assert published == [["id", "x"]] * 2
    (problem,) = problems(tmp_path, source(tables={"invoice": table | {"columns": ["id", "y"]}}))
    assert "`columns` names `y`, which is no column." in problem


@pytest.mark.parametrize("track", [["x"], {"except": ["x"]}])
def test_H3_what_expressions_make_may_be_tracked_or_not(tmp_path: Path, track: Any) -> None:
    table = TABLE | {"expressions": {"x": "date(_cdc_occurred_at)"}, "track_columns": track}
    assert loaded(tmp_path, source(tables={"invoice": table})).tables
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {"track_columns": track}}))
    assert "`track_columns` names `x`, which is no column." in problem


def test_fields_of_the_format_are_no_columns_of_final(tmp_path: Path) -> None:
    wrong = TABLE | {"expressions": {"y": "year(_timestamp)"}, "partition_by": ["year(_timestamp) as p"]}
    found = problems(tmp_path, source(feed=FEED | {"format": "debezium"}, tables={"invoice": wrong}))
    assert [problem.split("`")[1] for problem in found] == ["expressions", "partition_by"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("try_cast(gone as boolean)", ["gone"]),
        ("case when op in ('D', 'X') then true else false end", ["op"]),
        ("timestampdiff(MINUTE, a, b) > 5 and current_date > a", ["a", "b"]),
        ("a + interval 3 days - interval '1' day", ["a"]),
        ("a:field.sub::int", ["a"]),
        ("aggregate(transform(a, (x, i) -> x + i), 0, (acc, x) -> acc + x, acc -> acc * b)", ["a", "b"]),
        ("extract(dow from a) = extract(yr from b)", ["a", "b"]),
        ("cast(a as array<string>)", []),
        ("from_json(a, 'map<string, int>')", ["a"]),
        ("my_db.my_udf(a) or my_udf(b)", ["a", "b"]),
        ("x'1F' = a or r'\d' = b or date'2026-01-01' > c", ["a", "b", "c"]),
        ("a is not distinct from b", ["a", "b"]),
        ("trim(leading '0' from a) not rlike '^x'", ["a"]),
        ("a ilike any ('x', 'y') escape '!'", ["a"]),
        ("overlay(a placing 'x' from 1 for 2)", ["a"]),
        ("cast(a as struct<x: int>)", []),
        ("a collate UTF8_LCASE = 'x'", []),
        ("(select max(x) from t) > a", []),
        ("`a b`.c = 'it\\'s' or `d``e` = \"f\"", ["a b", "d`e"]),
        ("make_interval(days => a) -- and b\n", ["a"]),
        ("1e5 + 2L - .5 * a /* b */", ["a"]),
        ("element_at(split(größe, '[(]'), 1)[0]", ["größe"]),
        ("map('k', a)['k'] <=> array(b)[0]", ["a", "b"]),
        ("not a and !b", ["a", "b"]),
    ],
)
def test_the_columns_that_an_expression_names(sql: str, names: list[str]) -> None:
    assert (names_in(sql), why_not_sql(sql)) == (names, None)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("a = 'x", "a quote (') is not closed"),
        ("`a = 1", "a quote (`) is not closed"),
        ("f(a", "`(` is not closed"),
        ("f(a))", "`)` closes nothing"),
        ("f(a]", "`]` closes nothing"),
        ("a; b", "`;` ends a statement, and it takes an expression"),
        ("op = 'D' -- gone", "`--` hides what the table's SQL has behind it. Write the comment into the yml"),
        ("select 1", "`select` makes a statement, and it takes an expression"),
        ("year(a) as y", "`as` gives a name, which has no place here"),
        ("a = ", "it ends with `=`"),
        ("a and", "it ends with `and`"),
        ("“op = 'D'”", "`“` is no sign of SQL: texts stand in ' and names in backticks"),
        ("op = \u2018D\u2019", "`\u2018` is no sign of SQL: texts stand in ' and names in backticks"),
        ("op\u200b = 'D'", "`\\u200b` is no sign of SQL: texts stand in ' and names in backticks"),
    ],
)
def test_what_is_no_expression(sql: str, why: str) -> None:
    assert why_not_sql(sql) == why


@pytest.mark.parametrize("settings", [{"deleted_when": "false"}, {"truncated_when": " TRUE "}, {"track_columns": []}])
def test_conditions_without_a_column_and_no_tracked_column_are_fine(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert loaded(tmp_path, source(tables={"invoice": TABLE | settings})).tables


def test_a_column_with_the_name_of_a_word_of_sql_is_a_column(tmp_path: Path) -> None:
    columns = [{"name": name, "data_type": "string"} for name in ("id", "date", "time")]
    table = {"keys": ["id"], "sequence_by": ["cast(date as date)", "time"], "deleted_when": "`date` = 'x'"}
    assert loaded(tmp_path, source(tables={"t": table}, columns=columns)).tables


def test_an_order_that_is_seldom_meant_is_noted(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"name": "code", "data_type": "VARCHAR(9)"}, {"name": "_xid", "data_type": "string"}]
    tables = {
        "a": TABLE | {"sequence_by": ["seq", "OP"]}, "b": TABLE | {"sequence_by": ["op"]}, "c": TABLE,
        "d": TABLE | {"sequence_by": ["`code`"]}, "e": TABLE | {"sequence_by": ["concat(op)"]},
        "k": TABLE | {"sequence_by": ["ID"]}, "l": {"sequence_by": ["id"], "insert_only": True, "keys": ["id"]},
    }  # fmt: skip
    found = notes.of_tables(loaded(tmp_path, source(feed=FEED | {"deleted_when": "seq < 0"}, tables=tables, columns=columns)))
    assert [note.partition(": texts")[0] for note in found[:2]] == [
        "feed shop, table a and 1 more: `sequence_by` has `op`, a string",
        "feed shop, table d: `sequence_by` has `code`, a VARCHAR(9)",
    ]
    assert found[2].startswith("feed shop, table k: `sequence_by` has only `keys`: all changes of a row have one place")
    assert len(found) == 3
    fields = source(feed=FEED | {"format": "debezium"}, tables={"t": {"keys": ["id"], "sequence_by": ["_txid"]}})
    assert notes.of_tables(loaded(tmp_path, fields)) == []


@pytest.mark.parametrize(
    ("settings", "noted"),
    [
        ({"operation": None}, True), ({"operation": "op"}, False), ({"operation": None, "deleted_when": "op = 'D'"}, False),
        ({"operation": None, "insert_only": True}, False), ({"operation": None, "keys": [], "keyless": "multiset"}, True),
        ({"operation": None, "keys": [], "keyless": "append"}, False),
    ],
)  # fmt: skip
def test_a_flag_that_no_setting_names_is_noted(tmp_path: Path, settings: dict, noted: bool) -> None:
    columns = [*COLUMNS, {"name": "action", "data_type": "string"}]  # many a table has such a column of its own
    found = notes.of_tables(loaded(tmp_path, source(tables={"t": TABLE | settings}, columns=columns)))
    said = "feed shop, table t: `op` may say what a row does, and neither `operation` nor `deleted_when` names it: "
    assert [note.startswith(said) for note in found] == [True] * noted


def test_a_name_that_is_listed_in_quotes_is_noted(tmp_path: Path) -> None:
    """The feed's column has none, so its values would be kept in `_cdc_undeclared`, and the column be null."""
    columns = [*COLUMNS, *({"name": name, "data_type": "int"} for name in ("`order`", "it's", "a`b", "[x] y", "'", "[user]"))]
    table = TABLE | {"operation": "op", "expressions": {'"Sum"': "id + 1"}}
    (said,) = notes.of_tables(loaded(tmp_path, source(tables={"t": table}, columns=columns)))
    quoted = "'`order`', '[user]', '\"Sum\"'"
    assert said.startswith(f"feed shop, table t: the quotes around {quoted} are part of the name: where the feed's")


@pytest.mark.parametrize(
    ("settings", "noted"),
    [
        ({"full_images": True, "ignore_null_updates": True}, True), ({"full_images": True, "ignore_null_updates": ["S"]}, True),
        ({"full_images": True, "ignore_null_updates": ["op"]}, False), ({"full_images": True}, False),
        ({"ignore_null_updates": True}, False), ({"keys": [], "keyless": "multiset", "ignore_null_updates": ["s"]}, True),
    ],
)  # fmt: skip
def test_P1_P3_a_struct_whose_fields_the_image_before_does_not_fill_is_noted(tmp_path: Path, settings: dict, noted: bool) -> None:
    columns = [*COLUMNS, {"name": "s", "data_type": "struct<a: int>"}]
    told = TABLE | {"operation": "op"} | settings
    found = notes.of_tables(loaded(tmp_path, source(tables={"t": told}, columns=columns)))
    assert ["a null field in `s`, which `ignore_null_updates`" in note for note in found] == [True] * noted


def test_E2_renamed_columns_are_found_in_any_case(tmp_path: Path) -> None:
    (table,) = loaded(tmp_path, source(tables={"invoice": TABLE | {"renamed_columns": {"CREATED": "was"}}})).tables
    assert table.settings.renamed_columns == {"created": "was"}


@pytest.mark.parametrize(
    ("entry", "name", "derived"),
    [("`order date`", "order date", False), ("ORDER DATE", "order date", False), ("year(d) as `the year`", "the year", True)],
)
def test_partitions_may_have_any_name(entry: str, name: str, derived: bool) -> None:
    found = partition_column(entry, [Column("order date", "date")])
    assert (found.name, found.derived) == (name, derived)


def test_templates_give_text_unless_they_say_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IO", "False")
    (problem,) = problems(tmp_path, source(tables={"invoice": TABLE | {"insert_only": "{{ env_var('IO') }}"}}))
    assert "`insert_only` is 'False'" in problem
    assert "| as_bool" in problem
    monkeypatch.setenv("NUMBER", "3")
    number = {"max_errors": "{{ env_var('NUMBER') | as_number }}", "source_table": "{{ env_var('NUMBER') }}"}
    settings = number | {"insert_only": "{{ env_var('IO') | as_bool }}"}
    (table,) = loaded(tmp_path, source(tables={"invoice": TABLE | settings})).tables
    assert (table.settings.insert_only, table.settings.max_errors, table.settings.source_table) == (False, 3, "3")


def test_templates_make_values_as_dbt_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TABLE | {"insert_only": "{{ env_var('IO') | as_bool }}", "partition_by": "{{ env_var('BY') | as_native }}"}
    monkeypatch.setenv("IO", "true")
    monkeypatch.setenv("BY", "[created]")
    flag, partitions = problems(tmp_path, source(tables={"invoice": settings}))
    assert "`insert_only`: 'true' is no flag: dbt takes True and False, spelled so." in flag
    assert "`partition_by` is '[created]'. It takes a list of columns or SQL expressions" in partitions
    assert "`| as_native` takes what Python writes, e.g. ['a', 'b']" in partitions
    monkeypatch.setenv("IO", "True")
    monkeypatch.setenv("BY", "['created']")
    (table,) = loaded(tmp_path, source(tables={"invoice": settings})).tables
    assert (table.settings.insert_only, table.settings.partition_by) == (True, ["created"])


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("datetime2", "timestamp"),
        ("number(10)", "decimal(10,0)"),
        ("NUMBER(12, 2)", "decimal(12,2)"),
        ("longtext", "string"),
        ("double precision", "double"),
        ("timestamp(3) with time zone", "timestamp"),
        ("timestamp(6)", "timestamp"),
        ("varchar(max)", "string"),
        ("character varying(20)", "string"),
        ("bigint unsigned", "decimal(20,0)"),
        ("float64", "double"),
        ("Float32", "float"),
        ("int(11)", "int"),
        ("tinyint(1)", "tinyint"),
        ("double(10, 2)", "double"),
        ("float(24)", "float"),
        ("float(53)", "double"),
        ("float(7,4)", "float"),
        ("string(20)", "string"),
    ],
)
def test_types_of_other_databases(text: str, better: str) -> None:
    assert why_not_a_type(text) == f"`{text}` is not one. Did you mean `{better}`?"
