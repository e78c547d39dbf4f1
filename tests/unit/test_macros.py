from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import duckdb
import hypothesis
import pytest
from dbt.graph.selector_methods import FileSelectorMethod, QualifiedNameSelectorMethod
from hypothesis import strategies as st
from tests.unit.macros import CompilerError, giving, load

from dbt.adapters.sparkdelta.columns import evolved
from dbt.adapters.sparkdelta.delta_log import no_state
from dbt.adapters.sparkdelta.delta_messages import _own_columns
from dbt.adapters.sparkdelta.files import FilesMixin
from dbt.adapters.sparkdelta.landing import serial_column
from delta_cdc.formats import FORMATS
from delta_cdc.keys import _goes_on, _noted
from delta_cdc.project import sequence_name

MACROS = load()
SETTINGS = {
    "format": "rows",
    "operation": "op",
    "operation_codes": {"remove": "D"},
    "old_keys": {"id": "old_id"},
    "keys": ["id"],
    "columns": None,
    "except_columns": [],
    "track_columns": None,
    "sequence_by": ["seq", "a + 1"],
    "renamed_columns": {},
    "insert_only": False,
    "keyless": "none",
    "key_changes": True,
    "ordinal": None,
    "transaction": None,
    "occurred_at": None,
    "partition_by": ["region", "year(created) as y", "month(created)"],
    "deleted_when": None,
    "truncated_when": None,
    "column_types": {
        "id": "int",
        "seq": "bigint",
        "a": "int",
        "op": "string",
        "old_id": "int",
        "region": "string",
        "created": "date",
    },
}


@pytest.mark.parametrize(("name", "quoted"), [("a", "`a`"), ("a b.c", "`a b.c`"), ("a`b", "`a``b`"), ("a'\"b", "`a'\"b`")])
def test_A7_names_are_quoted(name: str, quoted: str) -> None:
    assert MACROS["quoted"](name) == quoted


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("a", "'a'"),
        ("it's", "'it\\'s'"),
        ("back\\slash", "'back\\\\slash'"),
        ("${env:HOME}", "'$\\{env:HOME}'"),
        ("a\n'", "'a\\n\\''"),
    ],
)
def test_text_of_a_feed_stays_text(text: str, literal: str) -> None:
    assert MACROS["literal"](text) == literal


_TOKEN = re.compile(r"--[^\r\n]*|/\*.*?\*/|`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\s+|\w+|.", re.DOTALL)


_SIGNS = "`'\"\\-/*;{}$#()%,.:? \t\n\r\x0b\x85\u2028ä0"  # with all that Python takes for line breaks


def _tokens(sql: str) -> list[tuple[str, str]]:
    """(kind, text) of what Spark's lexer makes of it: names and texts as they are without quotes, all else as it stands."""
    found = []
    for token in _TOKEN.findall(sql):
        if token[0] == "`":
            found.append(("name", token[1:-1].replace("``", "`")))
        elif token[0] in "'\"" and len(token) > 1:
            found.append(("text", re.sub(r"\\(.)", lambda c: {"n": "\n"}.get(c[1], c[1]), token[1:-1], flags=re.DOTALL)))
        else:
            found.append(("sql", token))
    return found


@hypothesis.given(
    st.sampled_from(sorted(FORMATS)),
    st.lists(st.text(st.sampled_from(_SIGNS), min_size=1, max_size=9), min_size=4, max_size=4),
)
@hypothesis.settings(max_examples=80, derandomize=True, database=None, deadline=None)
def test_Q5_no_name_of_a_column_gets_out_of_its_quotes(format_: str, names: list[str]) -> None:
    """The SQL of staging, history and final is that of harmless names, but for what stands in quotes."""
    hostile = [f"{place}{name}" for place, name in enumerate(names)]  # no two are equal
    harmless = [f"c{place}" for place in range(len(names))]
    erasing = load(giving({"_keys_table": "keys"}))

    def sql_of(columns: list[str]) -> list[str]:
        id_, old_id, a, op = columns
        flat = {"old_keys": {id_: old_id}, "operation": op} if format_ == "rows" else {"old_keys": {}, "operation": None}
        settings = {
            **SETTINGS, **flat, "format": format_, "keys": [id_], "sequence_by": ["seq"], "partition_by": [],
            "column_types": {id_: "int", old_id: "int", a: "string", op: "string", "seq": "bigint"}, "time_unit": "micros",
            "decimal_handling": "precise", "renamed_columns": {a: f"{a}?"}, "ignore_null_updates": [a], "set_on_insert": [a],
            "created_at": f"{a}+", "full_images": True, "unavailable_value": "gone",
        }  # fmt: skip
        shaped = {**settings, "columns": columns, "tracked": [id_, a]}
        named = {**settings, "key_changes": False, "alternate_keys": [[a]], "past": "s.stg"}
        erased = SimpleNamespace(settings=settings, staging="stg")
        return [
            MACROS["_staging_sql"](settings, "lines_view", True, "s.stg"),
            MACROS["_staging_sql"](named, "lines_view", True, "s.stg"),
            erasing["_stays_of_erased"](erased),
            MACROS["_history_rows"](shaped, "stg", None),
            MACROS["_final_rows"](shaped, "stg", None),
        ]

    renamed = dict(zip(harmless, hostile, strict=True))
    for found, expected in zip(sql_of(hostile), sql_of(harmless), strict=True):
        wanted = [
            (kind, text if kind == "sql" else re.sub(r"\bc\d\b", lambda c: renamed[c[0]], text))
            for kind, text in _tokens(expected)
        ]
        assert _tokens(found) == wanted


@pytest.mark.parametrize(
    "part", ["seq", "`seq`", "SEQ", "seq\n", "größe", "`commit time`", "`a``b`", "a + b", "1", "coalesce(a, b)"]
)
def test_parts_of_the_sequence_are_named_as_the_generated_files_name_them(part: str) -> None:
    assert MACROS["_sequence_name"](part, 2) == sequence_name(part, 2)


def test_A7_keys_join_null_safe() -> None:
    assert MACROS["same_columns"](["a", "b c"], "l", "r") == "l.`a` <=> r.`a` and l.`b c` <=> r.`b c`"


def test_O1_one_order_of_all_changes() -> None:
    assert MACROS["order_by"]("desc") == "_cdc_sequence desc, _cdc_ordinal desc, _cdc_batch_id desc, _cdc_row desc"


def test_Q5_names_are_spelled_as_the_table_has_them_where_case_alone_differs() -> None:
    spelling = MACROS["_spelling_of"](["Masse", "Maße"])
    assert MACROS["_spelled"](["MASSE", "maße"], spelling) == ["Masse", "Maße"]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("`row change time`", ["row change time"]), ("CHANGE + 1", ["change"]), ("`Change`", ["change"]),
        ("a.change", []), ("a.`x` = 'change'", []), ("cast(`a``b` as change)", ["a`b"]),
    ],
)  # fmt: skip
def test_columns_are_found_in_sql_by_their_whole_names(sql: str, named: list[str]) -> None:
    assert MACROS["columns_named"](["change", "row change time", "a`b", "time"], [None, sql]) == named


def test_no_column_is_looked_for_where_there_is_no_sql() -> None:
    assert load({"quoted": lambda _: pytest.fail("looked for")})["columns_named"](["a"], [None]) == []


def test_settings_are_worked_out_once_a_run_and_each_model_changes_its_own() -> None:
    column = SimpleNamespace(name="id", data_type="int")
    cdc = {"format": "rows", "keys": ["id"]}
    node = SimpleNamespace(unique_id="f.t", source_name="f", name="t", source_meta={"cdc": cdc}, config={}, meta={},
                           columns={"id": column})  # fmt: skip
    kept: dict[str, dict] = {}
    macros = load(adapter=SimpleNamespace(recall=kept.get, remember=kept.__setitem__))
    first = macros["_table_settings"](node)
    as_made = dict(first)
    first["columns"] = []
    column.data_type = "string"  # not looked at again
    second = macros["_table_settings"](node)
    assert second == as_made
    second["keys"] = []
    assert macros["_table_settings"](node) == as_made


def test_H3_a_column_may_be_called_except() -> None:
    given = {"track_columns": {"except": ["Op", "except"]}, "old_keys": {"except": "old"}}
    spelled = MACROS["_as_spelled"](given, {"op": "string", "EXCEPT": "int", "Old": "int"})
    assert spelled == {"track_columns": {"except": ["op", "EXCEPT"]}, "old_keys": {"EXCEPT": "Old"}}


def test_published_columns_leave_out_what_steers_the_feed() -> None:
    columns = list(SETTINGS["column_types"])
    assert MACROS["_published_columns"](SETTINGS, columns) == ["id", "seq", "a", "region", "created"]
    assert MACROS["_published_columns"]({**SETTINGS, "columns": ["a", "id"]}, columns) == ["id", "a"]
    assert MACROS["_published_columns"]({**SETTINGS, "except_columns": ["seq"]}, columns)[:2] == ["id", "a"]
    made = {**SETTINGS, "columns": ["x", "id"], "expressions": {"x": "a"}}
    assert MACROS["_published_columns"](made, columns) == ["id", "x"]


def test_Q2_texts_inside_of_json_have_no_length() -> None:
    spelled = MACROS["_spelled_type"]("struct<a: VARCHAR(3), `char(2)`: array<char( 2 )>>")
    assert spelled == "struct<a: string, `char(2)`: array<string>>"
    assert MACROS["_spelled_type"]("numeric(10,2)") == "decimal(10,2)"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("12D", False), ("7f ", False), ("0x1p3", False), ("1.d", False),
        ("1.5e3", True), ("inf", True), ("-Infinity", True), ("NaN", True),
    ],
)  # fmt: skip
def test_Q1_what_java_takes_for_a_number_is_none(text: str, is_one: bool) -> None:
    (pattern,) = re.findall("rlike r'(.*?)'", MACROS["_plain_value"]("text", "double"))
    assert bool(re.search(pattern, text)) is not is_one


def test_H3_tracked_columns() -> None:
    given = {**SETTINGS, "columns": ["id", "a", "region"]}
    assert MACROS["_tracked_columns"](given) == ["id", "a", "region"]
    assert MACROS["_tracked_columns"]({**given, "track_columns": {"except": ["a"]}}) == ["id", "region"]
    assert MACROS["_tracked_columns"]({**given, "track_columns": ["a"]}) == ["a"]


def test_A6_partition_expressions_become_columns() -> None:
    assert MACROS["_derived_partitions"](SETTINGS) == [
        {"name": "y", "expression": "year(created)", "derived": True},
        {"name": "month_created", "expression": "month(created)", "derived": True},
    ]
    assert MACROS["_partition_columns"](SETTINGS) == ["region", "y", "month_created"]


def test_A6_a_column_that_is_no_longer_published_stays_in_partitions_that_are_rewritten() -> None:
    state = {**no_state(), "columns": dict.fromkeys(["ID", "a", "y"], "int")}
    macros = load(this="s.final", adapter=SimpleNamespace(table_state=lambda _: state))
    settings = {**SETTINGS, "columns": ["id", "a"], "partition_by": ["year(created) as y"]}
    sql = " ".join(macros["_partitions_rewritten"](settings, "select 1", "y = 1", SimpleNamespace(mode="late")).split())
    assert sql.endswith("union all select * from living")
    state["columns"]["x"] = "int"
    sql = " ".join(macros["_partitions_rewritten"](settings, "select 1", "y = 1", SimpleNamespace(mode="late")).split())
    assert "kept as ( select `id`, `a`, `y`, `x` from s.final as _cdc_old" in sql
    assert sql.endswith(
        "select living.`id`, living.`a`, living.`y`, _cdc_old.`x` "
        "from living left join s.final as _cdc_old on living.`id` <=> _cdc_old.`id`"
    )


def test_operation_codes_of_format_and_feed() -> None:
    sql = MACROS["_operation"](SETTINGS)
    assert sql.startswith("case op_code when 'I' then 'I'")
    assert "when 'remove' then 'D'" in sql


def test_a_feed_without_flag_holds_upserts_only() -> None:
    assert MACROS["_operation"]({**SETTINGS, "operation": None}) == "if(parsed, 'U', null)"
    assert MACROS["_operation"]({**SETTINGS, "operation": None, "insert_only": True}) == "if(parsed, 'I', null)"


def test_the_sequence_is_one_struct_and_null_if_a_part_is() -> None:
    sql = " ".join(MACROS["_sequence"](SETTINGS).split())
    assert sql == "case when (seq) is not null and (a + 1) is not null then struct((seq) as `seq`, (a + 1) as `sequence_2`) end"


def test_E2_a_renamed_column_is_read_under_both_names() -> None:
    renamed = {**SETTINGS, "renamed_columns": {"a": "b"}}
    assert MACROS["_text_of"]("a", renamed) == "if(map_contains_key(after, 'a'), after['a'], after['b'])"
    assert MACROS["_text_of"]("region", renamed) == "after['region']"


def test_staging_names_every_error_code() -> None:
    sql = MACROS["_staging_ctes"](SETTINGS, "lines_view")
    for code in ("unparsable", "unknown_operation", "null_key", "null_sequence", "cast:"):
        assert f"'{code}'" in sql
    assert "not_allowed" not in sql
    assert "'not_allowed'" in MACROS["_staging_ctes"]({**SETTINGS, "insert_only": True}, "lines_view")
    assert "'not_allowed'" in MACROS["_staging_ctes"]({**SETTINGS, "key_changes": False}, "lines_view")


@pytest.mark.parametrize(
    ("op", "old", "error"),
    [*((op, 1, "not_allowed") for op in "IUR"), ("I", 2, None), ("I", None, None), ("D", 1, None)],
)
def test_K1_no_upsert_that_tells_another_old_key_stays_beside_the_row_that_moved(op: str, old: int | None, error: Any) -> None:
    def refusals(settings: dict) -> list[str]:
        sql = MACROS["_staging_ctes"]({**SETTINGS, "key_changes": False, **settings}, "lines_view")
        return re.findall(r"when (_cdc_op in .*) then 'not_allowed'", sql)

    (condition,) = refusals({})
    condition = condition.replace("<=>", "is not distinct from").replace("`", '"')
    query = f"select if({condition}, 'not_allowed', null) from (select $1 as _cdc_op, 2 as id, cast($2 as int) as _cdc_before_1)"
    with duckdb.connect() as connection:
        assert connection.execute(query, [op, old]).fetchall() == [(error,)]
    assert not refusals({"insert_only": True})  # a row that is only added has no other


@pytest.mark.parametrize("format_", ["oracle_cdc", "powerexchange"])
def test_Q2_no_two_spellings_of_a_control_column_become_one_key_of_a_map(format_: str) -> None:
    sql = " ".join(MACROS["format_changes"]("lines", {**SETTINGS, "format": format_}).split())
    assert "not map_contains_key(row_values, upper(name)) and filter(map_keys(row_values), other -> upper(other) = upper(" in sql


def test_tokens_of_powerexchange_in_base64_are_read_as_bytes() -> None:
    sql = " ".join(MACROS["format_changes"]("lines", {**SETTINGS, "format": "powerexchange"}).split())
    token = "row_values['DTL__CAPXRESTART1']"
    assert f"upper({token}), hex(try_to_binary({token}, 'base64'))) as _sequence_token" in sql


@pytest.mark.parametrize(
    ("rows", "paired"),
    [
        # transaction, sequence and operation of each line; the lines that there are afterwards, each with the one that it holds
        ([("x", 1, "B"), ("x", 2, "U")], [(2, 1)]),
        ([("x", 2, "U"), ("x", 1, "B")], [(1, 2)]),  # the order is that of the feed
        ([("x", 1, "U"), ("x", 1, "B"), ("x", 2, "U"), ("x", 2, "B")], [(1, 2), (3, 4)]),  # at one position, in either order
        ([("x", 1, "B"), ("x", 1, "U"), ("x", 1, "B"), ("x", 1, "U")], [(2, 1), (4, 3)]),
        ([("x", 1, "B"), ("x", 1, "B"), ("x", 1, "D"), ("x", 1, "U"), ("x", 1, "U")], [(3, None), (4, 1), (5, 2)]),
        ([("x", 1, "U"), ("x", 1, "B"), ("x", 1, "U")], [(1, None), (3, 2)]),  # an update without one: as they came
        ([("x", 1, "B"), ("x", 2, "D"), ("x", 3, "U")], [(1, None), (2, None), (3, None)]),
        ([("x", 1, "B"), ("y", 2, "U")], [(1, None), (2, None)]),
        ([("x", 1, "B"), ("y", 2, "B"), ("x", 3, "U"), ("y", 4, "U")], [(3, 1), (4, 2)]),
        ([(None, 1, "B"), (None, 1, "U"), (None, None, "B"), (None, 3, None)], [(2, 1), (3, None), (4, None)]),
    ],
)
def test_K1_a_row_before_an_update_of_flat_rows_is_in_the_line_of_the_update(rows: list, paired: list) -> None:
    plain = {"_flat_rows": lambda lines, _: lines, "_text_of": lambda column, *_: column, "quoted": lambda name: name,
             "_value_of": lambda text, *_: text, "_sequence": lambda _: "seq", "_ordinal": lambda _: "null::int"}  # fmt: skip
    settings = {**SETTINGS, "operation_codes": {"B": "before"}, "sequence_by": ["seq"], "transaction": "a"}
    sql = load(plain)["format_lines"]("lines", settings).replace("struct(", "row(")
    sql = re.sub(r"trim\(both '[^']*' from (\w+)\)", r"\1", sql)
    told = [(1, "f", n, json.dumps({"n": n}), *row) for n, row in enumerate(rows, 1)]
    with duckdb.connect() as connection:
        connection.execute(
            "create table lines (batch_id int, change_set text, row_number int, message text, a text, seq int, op text)"
        )
        connection.executemany("insert into lines values (?, ?, ?, ?, ?, ?, ?)", told)
        found = connection.execute(f"select message from {sql} order by row_number").fetchall()
    assert [(line["n"], line.get("__before", {}).get("n")) for line in (json.loads(message) for (message,) in found)] == paired


def test_K1_the_row_before_an_update_of_flat_rows_tells_the_old_key_and_is_no_change() -> None:
    settings = {**SETTINGS, "operation_codes": {"B": "before"}, "old_keys": {}}
    for overruled in ({}, {"deleted_when": "a > 0", "truncated_when": "a > 1"}):
        sql = MACROS["_operation_of_row"]({**settings, **overruled})
        with duckdb.connect() as connection:
            connection.execute("create table t as select * from (values ('before', 2), ('U', 0)) as t (_cdc_flag, a)")
            found = connection.execute(f"select _cdc_flag, {sql} from (select *, true as _cdc_parsed from t)").fetchall()
        assert dict(found) == {"before": None, "U": "U"}
    sql = " ".join(MACROS["rows_changes"]("lines", settings).split())
    assert "map_filter(row_values, (name, value) -> name <> '__before') as after" in sql
    assert "row_values['__before']" in sql
    for without in (SETTINGS, {**settings, "operation": None}):  # what a feed's codes mean is nothing to a table without
        assert MACROS["format_lines"]("lines", without) == "lines"
        assert "__before" not in MACROS["rows_changes"]("lines", without)


def test_an_unknown_format_is_an_error_that_says_what_a_format_is() -> None:
    with pytest.raises(CompilerError, match="there is no macro `morse_changes`"):
        MACROS["format_changes"]("lines", {"format": "morse"})


@pytest.mark.parametrize(
    ("committed", "before", "new", "kinds"),
    [
        (-1, None, {"rows": True, "texts": False}, {"rows": True, "texts": False}),
        (0, None, {"rows": False}, {"rows": False}),  # a run that found nothing made it
        (3, {"rows": True, "texts": False}, {"rows": False, "texts": False}, {"rows": True, "texts": False}),
        (3, {"rows": False}, {"rows": True}, {"rows": True}),
        # what nobody looked for there may be
        (3, {"rows": False, "gone": True}, {"rows": False, "newer": False}, {"rows": False, "newer": True}),
        (3, None, {"rows": False}, {"rows": True}), (3, {}, None, None),
    ],
)  # fmt: skip
def test_raw_knows_the_kinds_of_all_messages_that_it_ever_took_or_of_none(
    committed: int, before: dict | None, new: dict | None, kinds: dict | None
) -> None:
    state = SimpleNamespace(committed=committed, notes={} if before is None else {"kinds": before})
    assert MACROS["_kinds_in_raw"](state, new) == kinds


def test_a_kind_that_nobody_looked_for_may_be_among_the_messages() -> None:
    may_hold = MACROS["may_hold"]
    noted = {"kinds": {"rows": True, "texts": False}}
    assert [may_hold(noted, kind) for kind in ("rows", "texts", "newer")] == [True, False, True]
    assert may_hold({"kinds": None}, "rows") is may_hold({}, "rows") is True


def test_what_no_message_of_a_load_is_stays_out_of_the_sql() -> None:
    found = dict.fromkeys(MACROS["debezium_kinds"](), False)
    macros = load(adapter=SimpleNamespace(query_rows=lambda sql: [found | {"records": True, "rows": None}]))
    settings = {**SETTINGS, "format": "debezium", "decimal_handling": "precise", "time_unit": "micros", "unavailable_value": "?"}
    kinds = macros["kinds_of_lines"](settings, "lines")
    assert kinds == found | {"records": True}
    assert macros["kinds_of_lines"](SETTINGS, "lines") is None
    all_of_them, some = (macros["format_changes"]("lines", {**settings, "kinds": each}) for each in (None, kinds))
    for told in ("deletion_ts", "iodebeziumop", "$numberDecimal", "schema.fields", "__source_"):
        assert told in all_of_them
        assert told not in some
    assert "is_record" in some


def test_S9_Q3_R2_a_macro_that_a_project_has_in_place_of_the_package_s_reads_in_operations_too() -> None:
    """In those dbt takes a name alone for the package's."""
    macros = load(own={"maxwell_changes": lambda lines, _settings: f"ours of {lines}"})
    assert macros["format_changes"]("lines", {"format": "maxwell"}) == "ours of lines"


@pytest.mark.parametrize(
    ("own", "looks"),
    [
        ({}, True), ({"debezium_value": lambda *_: "null"}, True),
        ({"debezium_changes": lambda lines, _settings: f"changes of {lines}"}, False),
        ({"debezium_tables": lambda lines: f"tables of {lines}"}, False),
        ({"debezium_tables": lambda lines, _settings: f"tables of {lines}", "debezium_kinds": lambda: {"rows": "true"}}, True),
    ],
)  # fmt: skip
def test_messages_that_a_project_reads_itself_are_looked_at_for_its_own_kinds_alone(own: dict, looks: bool) -> None:
    """What it gives to the package's macros may be another text than the line's."""
    made = {
        "progress": lambda _: SimpleNamespace(batch_id=7, rows=1, notes={"kinds": {"rows": False}}),
        "reads_files": lambda _: False, "_source_names": lambda *_: ["t"], "_retracted_batches": lambda _: [],
    }  # fmt: skip
    adapter = SimpleNamespace(query_rows=lambda _: [{"rows": False}], tune_for=lambda *_, **__: False)
    macros, settings = load(made, own, adapter=adapter), {**SETTINGS, "format": "debezium", "feed": "f", "source_table": "t"}
    assert macros["kinds_of_lines"](settings, "lines") == ({"rows": False} if looks else None)
    macros["_new_lines"](settings, SimpleNamespace(), SimpleNamespace(batch_id=3, exists=True))
    assert settings["kinds"] == ({"rows": False} if looks else None)
    tables, theirs = macros["format_tables"]("lines", settings), macros["debezium_tables"]("lines")
    assert (tables == "tables of lines", "may_be_row and" in theirs) == ("debezium_tables" in own, True)


def test_a_feed_of_flat_rows_cannot_mix_tables() -> None:
    with pytest.raises(CompilerError, match=r"\{table\}"):
        MACROS["format_tables"]("lines", {"format": "rows"})


def test_P1_which_nulls_of_an_update_mean_absent() -> None:
    assert "_cdc_null" not in MACROS["_staging_ctes"](SETTINGS, "lines_view")
    every = {**SETTINGS, "ignore_null_updates": True}
    named = ", ".join(f"'{name}'" for name in SETTINGS["column_types"] if name != "id")
    assert MACROS["_null_in_update"](every) == f"filter(array({named}), column -> after[column] is null)"
    some = {**SETTINGS, "ignore_null_updates": ["a"]}
    assert "filter(array('a'), column -> after[column] is null) as _cdc_null" in MACROS["_staging_ctes"](some, "lines_view")
    whole = MACROS["_staging_ctes"]({**some, "full_images": True, "renamed_columns": {"a": "was", "op": "kind"}}, "lines_view")
    assert "after[name] is null and name in ('a', 'was')" in whole
    assert some["ignore_null_updates"] == ["a"]


def test_settings_name_columns_as_the_table_spells_them() -> None:
    given = {"keys": ["ID"], "old_keys": {"Id": "OLD_ID"}, "track_columns": {"except": ["A"]}, "operation": "Op", "columns": None}
    assert MACROS["_as_spelled"](given, SETTINGS["column_types"]) == {
        "keys": ["id"],
        "old_keys": {"id": "old_id"},
        "track_columns": {"except": ["a"]},
        "operation": "op",
    }


@pytest.mark.parametrize(
    ("sequence", "noted"),
    [
        ("lsn:bigint", True),
        ("at:timestamp,n:decimal(20,0)", True),
        ("x:double", False),
        ("a b:int", False),
        ("p:struct<log:string,offset:decimal(38,0)>,n:int", True),
        ("p:struct<x:double>", False),
        ("p:struct<a b:int>", False),
    ],
)
def test_a_position_is_noted_only_where_its_text_is_exact(sequence: str, noted: bool) -> None:
    type_ = f"struct<_cdc_sequence:struct<{sequence}>,_cdc_ordinal:bigint>"
    assert MACROS["can_be_noted"](type_, '{"_cdc_sequence":{"n":-1,"at":"2026-01-01T00:00:00.000000Z"}}') is noted
    assert not MACROS["can_be_noted"](type_, '{"_cdc_sequence":{"at":"+12026-01-01T00:00:00.000000Z"}}')


def test_O4_a_load_is_compared_with_itself_and_the_past_only_where_it_may_repeat() -> None:
    plain = MACROS["_staging_sql"](SETTINGS, "lines_view")
    assert "once" not in plain
    assert "not exists" not in plain
    close = MACROS["_staging_sql"](SETTINGS, "lines_view", True, "s.stg")
    assert "once as (" in close
    assert "from s.stg as past" in close


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"keyless": "append"}, "try_cast(get(map_values(map_filter(_cdc_undeclared, "), ({"insert_only": True}, "try_cast(get("),
        ({}, None), ({"keyless": "append", "mask": {"a": "a + 1"}}, None), ({"keyless": "append", "joined_after": {}}, None),
        ({"keyless": "append", "format": "debezium", "decimal_handling": "precise"}, "case\n    when startswith("),
    ],
)  # fmt: skip
def test_E1_N2_O4_an_added_row_is_known_again_by_what_it_told_of_a_column(settings: dict, told: str | None) -> None:
    types = {"staged_types": SETTINGS["column_types"], "joined_after": {"a": 7, "gone": 7}}
    sql = MACROS["staged_as_told"]({**SETTINGS, **types, **settings}, "s.stg")
    assert ("select * except (_cdc_missing, `a`), coalesce(`a`, " in sql) is (told is not None)
    assert told is None or told in sql
    assert "coalesce(`gone`" not in sql


@pytest.mark.parametrize(
    ("format_", "type_", "alone"),
    [
        ("aliyun", "date", "timestamp_micros("), ("goldengate", "timestamp", "regexp_replace("), ("rows", "binary", "'hex'"),
        ("debezium", "array<timestamp>", "texts, text -> coalesce(timestamp_micros("),
        ("debezium", "array<date>", "date_from_unix_date("), ("maxwell", "binary", "'base64'"),
        ("sqlserver_ct", "binary", None), ("of_our_own", "binary", None),
    ],
)  # fmt: skip
def test_N2_O4_an_added_row_is_known_again_as_its_format_reads_a_text(format_: str, type_: str, alone: str | None) -> None:
    """Days in milliseconds, moments of a trail and bytes, too. What asks for more than the text is not in staging."""
    types = {**SETTINGS["column_types"], "a": type_}
    settings = {**SETTINGS, "format": format_, "keyless": "append", "column_types": types, "joined_after": {"a": 7},
                "time_unit": "micros"}  # fmt: skip
    (value,) = re.findall(r"(?s)coalesce\(`a`, (.*)\) as `a`, filter", MACROS["staged_as_told"](settings, "s.stg"))
    assert alone in value if alone else value.startswith("try_cast(get(map_values(map_filter(_cdc_undeclared, ")


def test_P3_of_the_image_before_only_keys_are_used() -> None:
    sql = MACROS["_staging_ctes"](SETTINGS, "lines_view")
    assert set(re.findall(r"before\['(\w+)'\]", sql)) == {"id"}
    assert "map_filter(before" not in sql


def test_A5_on_time_changes_are_applied_without_the_past() -> None:
    settings = {**SETTINGS, "columns": ["id", "a"], "partition_by": []}
    for partial in (False, True):
        sql = load(this="s.final")["_winners_on_time"](settings, "s.staging", 7, partial)
        (where,) = re.findall(r"from s\.staging\s+where (.*)", sql)
        assert where == "_cdc_batch_id > 7 and _cdc_error is null"


def test_A9_A10_tables_that_do_not_use_them_have_the_sql_of_before() -> None:
    settings = {**SETTINGS, "columns": ["id", "a"], "partition_by": []}
    macros = load(this="s.final")
    assert macros["_shape_of_final"](settings) is None
    assert macros["_final_columns"](settings) == ["id", "a"]
    for sql in (macros["_winners_on_time"](settings, "s.staging", 7, False), macros["_final_rows"](settings, "s.staging", None)):
        assert not re.findall("s.final|_cdc_lived|_cdc_created_at|_cdc_deleted_at|_cdc_held_until", sql)
    shaped = {**settings, "delete_mode": "soft", "created_at": "born", "set_on_insert": ["a"], "soft_delete_nulls": False}
    assert macros["_shape_of_final"](shaped) == "delete_mode: soft, created_at: born, set_on_insert: ['a']"
    assert macros["_final_columns"](shaped) == ["id", "a", "born", "_cdc_is_deleted", "_cdc_deleted_at"]


def has_moved_keys(rows: list[tuple], *, paired: bool | None = None, until: int | None = None) -> bool:
    """What `_has_moved_keys` says of a staging table. rows: each (operation, key, old key, sequence, transaction), a batch each.
    paired: `split_key_changes` as it was when the last of them was loaded. until: the last batch for which it was given."""
    with duckdb.connect() as connection:
        types = "_cdc_key_before struct(id int), _cdc_sequence struct(seq int), _cdc_transaction text, _cdc_error text"
        connection.execute(f"create table stg (_cdc_op text, id int, {types}, _cdc_batch_id int)")
        for batch, (op, id, old, seq, transaction) in enumerate(rows, 1):
            before, sequence = None if old is None else {"id": old}, None if seq is None else {"seq": seq}
            row = [op, id, before, sequence, transaction, batch]
            connection.execute("insert into stg values ($1, $2, $3, $4, $5, null, $6)", row)

        def query_rows(sql: str) -> list:
            for spark, duck in {"<=>": "is not distinct from", "`": '"', "struct(": "row("}.items():
                sql = sql.replace(spark, duck)
            return connection.execute(sql).fetchall()

        state = SimpleNamespace(notes={"split_key_changes": paired, "paired_until": until})
        found = load(adapter=SimpleNamespace(query_rows=query_rows))["_has_moved_keys"](SETTINGS, "stg", state)
    return str(found) == "True"


@pytest.mark.parametrize(
    ("op", "old", "moved"), [("I", 1, True), ("U", 1, True), ("R", 1, True), ("U", 2, False), ("I", None, False), ("D", 1, False)]
)
def test_K1_keys_did_change_by_whichever_upsert_told_the_old_one(op: str, old: int | None, moved: bool) -> None:
    assert has_moved_keys([(op, 2, old, 1, None)]) is moved


@pytest.mark.parametrize(
    ("rows", "moved"),
    [
        ([("D", 1, None, 5, None), ("I", 2, None, 5, None)], True),
        ([("D", 1, None, 5, "a"), ("I", 2, None, 5, "b")], False),  # two transactions
        ([("D", 1, None, 5, None), ("I", 2, None, 6, None)], False),
        ([("D", 1, None, 5, None), ("I", 1, None, 5, None)], False),  # the row was written anew
        ([("D", 1, None, 5, None), ("D", 3, None, 5, None), ("I", 2, None, 5, None)], False),  # whose half it is nobody knows
        ([("D", 1, None, None, None), ("I", 2, None, None, None)], False),
        ([("D", 1, None, 5, None), ("U", 2, None, 5, None)], False),
    ],
)
def test_K6_keys_did_change_where_only_the_halves_tell(rows: list[tuple], moved: bool) -> None:
    assert has_moved_keys(rows, paired=True) is moved
    assert has_moved_keys(rows, paired=False) is False
    # `split_key_changes` was taken out before `key_changes`
    assert has_moved_keys(rows, paired=False, until=len(rows)) is moved
    assert has_moved_keys(rows, paired=False, until=1) is False


@pytest.mark.parametrize(("may_move", "asked"), [(False, 0), (True, 2), (None, 2)])
def test_K1_S6_nobody_looks_for_moved_keys_where_staging_noted_that_none_may_move(may_move: bool | None, asked: int) -> None:
    """Until a load notes that keys no longer change, each run would read all of staging, also one that brings nothing."""
    queries: list[str] = []
    macros = load(adapter=SimpleNamespace(query_rows=lambda sql: queries.append(sql) or []))
    state = SimpleNamespace(notes={"split_key_changes": True, "keys_may_move": may_move})
    assert macros["_has_moved_keys"](SETTINGS, "stg", state) is False
    assert len(queries) == asked


@pytest.mark.parametrize(
    ("noted", "until", "now", "may_move", "paired_until"),
    [
        (False, None, True, True, 4), (False, None, False, False, None), (True, None, True, False, 4),
        (None, None, True, False, 4),  # of before it was noted
        (True, 3, False, False, 3), (False, 2, False, False, 2), (False, 2, True, True, 4),
    ],
)  # fmt: skip
def test_K6_what_was_staged_before_split_key_changes_may_hold_pairs(
    noted: bool | None, until: int | None, now: bool, may_move: bool, paired_until: int | None
) -> None:
    plan = {"highest": None, "highest_type": None, "keys_may_move": False, "truncates": 0, "quarantined": 0}
    macros = load(
        giving({"_staging_ctes": "", "about_changes": "", "highest_position": "5", "can_be_noted": False, "_notes_of_rows": {}}),
        this="s.stg", adapter=SimpleNamespace(query_rows=lambda _: [plan], remember=lambda *_: None),
    )  # fmt: skip
    notes = {"highest": None, "keys_may_move": False, "truncates": False, "split_key_changes": noted, "paired_until": until}
    state = SimpleNamespace(exists=True, notes=SimpleNamespace(**notes, get=notes.get), committed=3)
    found = macros["_staging_plan"]({**SETTINGS, "split_key_changes": now}, "lines", state, 4)["notes"]
    assert (found["keys_may_move"], found["split_key_changes"], found["paired_until"]) == (may_move, now, paired_until)


def test_K8_events_are_named_by_alternate_keys_only_where_there_are_some() -> None:
    assert "nameless" not in MACROS["_staging_ctes"](SETTINGS, "lines_view")
    asked: list[dict] = []
    nameless = [{"found": 1}]
    macros = load(
        adapter=SimpleNamespace(
            create_view_from_python=lambda name, function, given: asked.append(given), query_rows=lambda sql: nameless
        )
    )
    named = {**SETTINGS, "feed": "f", "table": "t", "alternate_keys": [["a", "region"], ["seq"]], "past": "s.stg"}
    sql = macros["_staging_ctes"](named, "lines_view")
    assert "from s.stg where _cdc_error is null" in sql
    by_first = "(e._cdc_named_by._1.`a` = held.`a` and e._cdc_named_by._1.`region` = held.`region`)"
    assert f"({by_first} or (e._cdc_named_by._2.`seq` = held.`seq`))" in sql
    assert "case when _cdc_before_2 is not null and _cdc_before_3 is not null then struct(_cdc_before_2 as `a`" in sql
    assert "from s.stg" not in macros["_staging_ctes"]({**named, "past": None}, "lines_view")
    # who is who across key changes is told by what the load brings too, each change once
    assert asked[0]["staging"].startswith("(with lines as (")
    assert asked[0]["staging"].endswith("select * from known)")
    assert "past.`a` <=> told.`a` and past.`region` <=> told.`region` and past.`seq` <=> told.`seq` and" in asked[0]["staging"]
    assert "left join `stg_f__t__known_keys` as k" in sql
    # a value that a row carries along may be from before an event that deleted it, or gave it another one
    assert "concat(_cdc_missing, if(arrays_overlap(_cdc_missing, array('a', 'region')), array('_cdc_said_1'), array())" in sql
    assert f"where ({by_first.replace('e.', 'd.', 1).replace(' and e.', ' and d.')} and held._cdc_said_1 < d._cdc_place or" in sql
    # a null that is told is a key where it may be one
    assert "absent, 'id')" not in macros["_is_nameless"](named)
    assert " and array_contains(_cdc_absent, 'id') and " in macros["_is_nameless"]({**named, "nullable_keys": ["id"]})
    assert "known_keys" not in macros["_staging_ctes"]({**named, "key_changes": False}, "lines_view")
    nameless.clear()  # no event of the load asks for it
    assert "known_keys" not in macros["_staging_ctes"](named, "lines_view")
    assert len(asked) == 2


def feed_table(feed: str, table: str) -> SimpleNamespace:
    """A source table of the graph."""
    return SimpleNamespace(source_name=feed, name=table, source_meta={"cdc": {}}, config={}, meta={})


def test_H4_as_of_finds_what_final_is_made_from() -> None:
    def model(name: str, *parents: str) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            alias=name,
            database=None,
            schema="s",
            resource_type="model",
            relation_name=f"s.{name}",
            depends_on=SimpleNamespace(nodes=list(parents)),
        )

    source = feed_table("shop", "t")
    graph = SimpleNamespace(
        sources={"source.p.shop.t": source},
        nodes={
            "model.p.stg_shop__t": model("stg_shop__t"),
            "model.p.int_shop__t_keys": model("int_shop__t_keys", "model.p.stg_shop__t"),
            "model.p.invoice": model("invoice", "source.p.shop.t", "model.p.stg_shop__t", "model.p.int_shop__t_keys"),
            "model.p.final_t": model("final_t", "source.p.shop.t", "model.p.stg_shop__t"),
        },
    )
    relations = SimpleNamespace(create=lambda **parts: parts["identifier"])
    macros = load(graph=graph, api=SimpleNamespace(Relation=relations))
    found = macros["_parents_of_final"]("s.invoice")
    assert (found["source"], found["staging"], found["keys"]) == (source, "s.stg_shop__t", "s.int_shop__t_keys")
    with pytest.raises(CompilerError, match="is not a final model of this project"):
        macros["_parents_of_final"]("s.int_shop__t_keys")
    with pytest.raises(CompilerError, match=r"is the final of another target \(`--defer`\)"):
        macros["_parents_of_final"](Relation(schema="prod", identifier="final_t"))


@pytest.mark.parametrize(
    ("given", "type_", "sql"),
    [
        ("int", "bigint", "try_cast(v as bigint)"), ("struct<x:int>", "struct<x:int>", "try_cast(v as struct<x:int>)"),
        ("struct<y:int,x:int>", "struct<x:int,y:int>", "try_cast(to_variant_object(v) as struct<x:int,y:int>)"),
        ("array<struct<x:int>>", "array<struct<x:bigint>>", "try_cast(to_variant_object(v) as array<struct<x:bigint>>)"),
        ("variant", "struct<x:int>", "try_cast(v as struct<x:int>)"), ("variant", "variant", "try_cast(v as variant)"),
        ("binary", "binary", "try_cast(v as binary)"), ("decimal(9,2)", "decimal(9,0)", "try_cast(v as decimal(9,0))"),
        ("decimal(9,2)", "int", "if(try_cast(v as int) = try_cast(v as decimal(38,18)), try_cast(v as int), null)"),
        ("variant", "bigint", "if(try_cast(v as bigint) = try_cast(v as decimal(38,18)), try_cast(v as bigint), null)"),
    ],
)  # fmt: skip
def test_a_value_to_be_reconciled_is_cast_by_the_names_of_fields(given: str, type_: str, sql: str) -> None:
    assert MACROS["_their_value"]("v", given, type_, "v") == sql


@pytest.mark.parametrize(("given", "type_", "sql"), [
    ("bigint", "timestamp", "cast(null as timestamp)"), ("timestamp", "bigint", "cast(null as bigint)"),
    ("decimal(20,0)", "date", "cast(null as date)"), ("date", "timestamp", "try_cast(v as timestamp)"),
])  # fmt: skip
def test_a_number_to_be_reconciled_with_a_moment_is_not_taken_for_seconds(given: str, type_: str, sql: str) -> None:
    assert MACROS["_their_value"]("v", given, type_, "v") == sql


@pytest.mark.parametrize("at", ["key", "value"])
def test_reconcile_refuses_a_key_that_is_a_number_on_one_side_and_a_moment_on_the_other(at: str) -> None:
    views: list[str] = []
    table = SimpleNamespace(name="f.t", settings={"keys": ["at" if at == "key" else "id"]}, staging="stg")
    columns = [SimpleNamespace(name="id", dtype="int"), SimpleNamespace(name="at", dtype="timestamp")]
    fakes = {"_staging_table": table, "_final_of": "s.final_t", "_columns_of_final": ["id", "at"], "_live_rows": ""}
    adapter = SimpleNamespace(
        create_other_view=lambda *_: {"id": "int", "AT": "bigint"}, get_columns_in_relation=lambda _: columns
    )
    made = giving(fakes) | {"_differences": lambda _, compared, ours, theirs, *__: views.append(theirs) or {}}
    macros = load(made, adapter=adapter, print=lambda _: None)
    said = "table f.t: at, by which its rows are told, is a bigint in export and a timestamp in s.final_t: what the numbers count"
    with pytest.raises(CompilerError, match=said) if at == "key" else nullcontext():
        macros["reconcile"]("stg_f__t", "export")
    assert all("struct('at' as column, cast(`AT` as string) as text)" in view for view in views)
    assert len(views) == (at == "value")


def test_text_to_be_reconciled_with_what_is_no_text_is_its_json() -> None:
    """Spark refuses a cast of text to these, and makes a variant of it that is a text."""
    for type_ in ("struct<x:int>", "array<int>", "map<string,int>"):
        sql = MACROS["_their_value"]("v", "string", type_, "v")
        assert sql.endswith(f"try_parse_json(v), null) as {type_})")
    assert "try_parse_json(v)" in MACROS["_their_value"]("v", "string", "variant", "v")


@pytest.mark.parametrize(
    ("text", "type_", "is_refused"),
    [
        ("202607", "timestamp", True), ("202607", "timestamp_ntz", True), ("202607", "date", True), ("12:30", "timestamp", True),
        ("2026", "timestamp", False), ("2026-07-01 12:30", "timestamp", False), ("202607", "bigint", False),
    ],
)  # fmt: skip
def test_H4_a_number_is_no_year_that_spark_makes_of_it(text: str, type_: str, is_refused: bool) -> None:
    """As of the year 202607 each change counts, and a compaction before it folds all of them."""

    def query_rows(sql: str) -> list[dict]:
        none_such = re.findall("rlike r'(.*?)'", sql)
        return [{"bad": any(re.search(pattern, text) for pattern in none_such)}]

    macros = load(adapter=SimpleNamespace(query_rows=query_rows))
    if not is_refused:
        macros["_refuse_no_moment"](SimpleNamespace(name="f.t"), text, type_)
        return
    with pytest.raises(CompilerError, match=f"table f.t: `{text}` is no {type_}, which is the type of"):
        macros["_refuse_no_moment"](SimpleNamespace(name="f.t"), text, type_)


@pytest.mark.parametrize(
    ("moments", "refused"),
    [({"moment": "202607"}, "the time of its changes"), ({"moment": 202607}, "the time of its changes"),
     ({"known_at": "12:30"}, "the time at which changes are staged"), ({"moment": "2026-07", "known_at": "2026-07-02"}, None)],
)  # fmt: skip
def test_H4_a_model_is_not_made_as_of_what_is_no_moment(moments: dict, refused: str | None) -> None:
    def query_rows(sql: str) -> list[dict]:
        text, none_such = re.findall("'(.*?)'", sql)[:2]
        return [{"bad": re.search(none_such, text) is not None}]

    state = {"exists": True, "columns": {"_cdc_occurred_at": "timestamp"}, "notes": {}, "properties": {}}
    as_of = load(
        giving({
            "_parents_of_final": {"source": "f.t", "staging": "s.stg", "staging_table": "s.stg", "keys": None},
            "_table_settings": {"feed": "f", "table": "t", "keys": ["id"]}, "refuse_before_staging": "", "follow_staging": "",
            "_leave_out_unstaged": "", "may_be_held": False, "has_entities": False, "_final_rows": "rows",
            "_time_type": "timestamp",
        }),
        adapter=SimpleNamespace(table_state=lambda _: SimpleNamespace(**state), query_rows=query_rows),
    )["as_of"]  # fmt: skip
    if refused is None:
        assert as_of("s.final", **moments) == "rows"
        return
    (text,) = moments.values()
    with pytest.raises(CompilerError, match=f"table f.t: `{text}` is no timestamp, which is the type of {refused}"):
        as_of("s.final", **moments)


@pytest.mark.parametrize("insert_only", [False, True])
def test_N2_where_rows_are_only_added_each_row_at_a_key_is_compared(insert_only: bool) -> None:
    """Else one of the other side stood for all of them, and a table differed from itself."""
    views: dict[str, str] = {}
    asked: list[str] = []
    macros = load(
        adapter=SimpleNamespace(
            create_kept_view=lambda name, sql: views.update({name: sql}), query_rows=lambda sql: asked.append(sql) or [{}]
        )
    )
    macros["_differences"]({**SETTINGS, "insert_only": insert_only}, ["a"], "final", "other", 10)
    copy = f"row_number() over (partition by `id` order by {'`a`' if insert_only else '`id`'}) as _cdc_copy"
    sql = " ".join(views["cdc_differing"].split())
    assert sql.count(copy) == 1 + insert_only
    assert ("o.`id` <=> t.`id` and o.`_cdc_copy` <=> t.`_cdc_copy` )" in sql) is insert_only
    assert ("where _cdc_copy = 1" in sql) is not insert_only
    assert ("_cdc_copy > 1 and false" in asked[0]) is insert_only


def test_bytes_to_be_reconciled_may_be_text() -> None:
    for given in ("string", "variant"):
        assert "try_to_binary(substr(cast(v as string), 3), 'hex')" in MACROS["_their_value"]("v", given, "binary", "v")


@pytest.mark.parametrize(
    ("moment", "type_", "sql"),
    [
        ("1767225600.123456789", "decimal(28,9)", "1767225600.123456789"), (" -5 ", "decimal(28,9)", "-5"),
        ("1e3", "decimal(28,9)", "'1e3'"), ("2026", "timestamp", "'2026'"), ("7", "bigint", "'7'"), ("7", None, "'7'"),
        (7, "bigint", "7"), (1767225600.5, "decimal(28,9)", "1767225600.5"),
    ],
)  # fmt: skip
def test_H4_a_moment_beside_a_decimal_keeps_its_digits(moment: Any, type_: str | None, sql: str) -> None:
    assert MACROS["_moment"](moment, type_) == sql


def test_E7_what_is_made_in_place_of_a_column_that_is_no_longer_listed_is_what_others_are_made_of() -> None:
    """As when it is worked out from staging, where such a column is not read at all."""
    made = {**SETTINGS, "expressions": {"was": "a * 2", "twice": "was * 2"}}
    assert MACROS["_with_made"](made, "rows", ["was", "b"]) == (
        "(select *, (a * 2) as `was`, (was * 2) as `twice` from (select * except (`was`) from rows))"
    )
    assert MACROS["_with_made"]({**made, "expressions": {"a": "a + 1"}}, "rows", ["b"]) == (
        "(select * except (`a`), (a + 1) as `a` from rows)"
    )


def test_E2_a_column_is_read_under_all_the_names_that_it_had() -> None:
    types = dict.fromkeys(["id", "a", "b", "c"], "int")
    settings = {
        "staged_types": types,
        "column_types": {"id": "int", "c": "int"},
        "renamed_in_staging": {"c": "b"},
        "renamed_before": {"b": "a", "a": "b"},
    }  # renamed there and back
    sql = MACROS["staged_rows"](settings, "s")
    assert "coalesce(`c`, `b`, `a`) as `c`" in sql
    assert "except (_cdc_missing, `c`, `b`, `a`)" in sql
    assert "map('b', 'c', 'a', 'c')[name]" in sql


@pytest.mark.parametrize(
    ("renamed", "was", "young"),
    [
        ({"b": "a"}, {}, {}), ({"c": "b"}, {}, {"c": 2}), ({"c": "b"}, {"b": "a"}, {}),
        ({"a": "b"}, {"b": "a"}, {}), ({"b": "a"}, {"b": "a", "a": "b"}, {}),  # there and back
    ],
)  # fmt: skip
def test_E1_E2_a_renamed_column_is_as_old_as_the_oldest_of_its_names(
    renamed: dict[str, str], was: dict[str, str], young: dict[str, int]
) -> None:
    properties = {"delta_cdc.renamed": json.dumps(was), "delta_cdc.joined_after": json.dumps({"b": 2, "c": 4})}
    staged = SimpleNamespace(columns=dict.fromkeys(["id", "a", "b", "c"], "int"), properties=properties)
    settings = {**SETTINGS, "column_types": dict.fromkeys(["id", *renamed], "int"), "renamed_columns": renamed}
    MACROS["note_columns"](settings, staged)
    assert {name: batch for name, batch in settings["joined_after"].items() if name in renamed} == young


def test_P1_structs_are_filled_by_field_as_long_as_staging_has_them_as_structs() -> None:
    types = {"id": "int", "s": {"type": "struct", "fields": []}, "l": {"type": "array"}, "t": "string"}
    settings = {
        **SETTINGS,
        "ignore_null_updates": True,
        "column_types": {"id": "int", "s": "string", "l": "string", "t": "struct<a:int>", "new": "STRUCT<a:int>"},
    }
    MACROS["note_columns"](settings, SimpleNamespace(columns=types, properties={}))
    assert settings["filled_by_field"] == ["s", "new"]


def test_S1_a_model_has_the_settings_of_the_feed_that_it_reads() -> None:
    """Two feeds may have tables of one name in one schema."""

    def source(feed: str) -> SimpleNamespace:
        cdc = {"format": "rows", "location": feed, "keys": ["id"], "sequence_by": ["id"]}
        return SimpleNamespace(
            unique_id=feed, source_name=feed, name="customer", relation_name="landing.customer", columns={},
            meta={}, config={"meta": {}}, source_meta={"cdc": cdc},
        )  # fmt: skip

    graph = SimpleNamespace(sources={"eu": source("eu"), "us": source("us")}, nodes={})
    for reads in (["eu"], ["us"], ["eu", "us"], []):
        model = SimpleNamespace(name="stg", depends_on=SimpleNamespace(nodes=[*reads, "ledger"]))
        settings = load(graph=graph, model=model, flags=SimpleNamespace(WHICH="run", EMPTY=False))["settings"]
        if len(reads) == 1:
            assert settings("landing.customer")["location"] == reads[0]
        else:
            said = "landing.customer is a table of eu and us, and stg reads " + ("both" if reads else "neither")
            with pytest.raises(CompilerError, match=said):
                settings("landing.customer")


@pytest.mark.parametrize("macro", ["staging", "history", "final"])
def test_S2_a_sample_of_what_a_table_is_made_of_is_refused(macro: str) -> None:
    """dbt filters what has an `event_time`; the batches would be noted as done."""
    macros = load(giving({"settings": {}}), this="s.t")
    sampled = SimpleNamespace(identifier="stg_f__t", event_time_filter="changed_at >= '2026-01-01'")
    with pytest.raises(CompilerError, match=r"--sample shows s\.t a part of the rows of stg_f__t, which has an `event_time`"):
        macros[macro]("source", sampled)
    assert not macros["refuse_sample"](["s.stg", None, SimpleNamespace(event_time_filter=None)])


def test_S3_a_table_without_its_schema_says_whose_messages_it_takes() -> None:
    said: list[str] = []
    adapter = SimpleNamespace(query_rows=lambda sql: [{"n": 0, "last": None}])
    tell = load(exceptions=SimpleNamespace(warn=said.append), adapter=adapter)["_tell_of_source_names"]
    settings = {**SETTINGS, "feed": "f", "table": "t", "source_table": "t"}
    for known, new, told in (([], ["a.t"], 0), (["a.t"], ["a.t"], 0), (["a.t"], ["b.t"], 1), (["a.t", "b.t"], ["b.t"], 0)):
        plan: dict = {"notes": {}}
        tell({**settings, "source_names": new}, SimpleNamespace(notes={"source_names": known}, batch_id=7), plan, "raw_f")
        assert plan["notes"] == {"source_names": sorted({*known, *new})}
        assert len(said) == told
        said.clear()


@pytest.mark.parametrize(("known", "asked", "told"), [
    (["a.old"], True, "3 messages of a.new .* up to batch 6, and are not loaded. raw_f has them"),
    (["a.new"], False, None), ([], False, None),
])  # fmt: skip
def test_S3_what_came_under_a_name_before_the_table_took_it_is_told(known: list[str], asked: bool, told: str | None) -> None:
    said: list[str] = []
    queries: list[str] = []
    adapter = SimpleNamespace(query_rows=lambda sql: queries.append(sql) or [{"n": 3, "last": 6}])
    settings = {**SETTINGS, "feed": "f", "table": "t", "source_table": "new", "source_names": ["a.new"]}
    plan: dict = {"notes": {}}
    tell = load(exceptions=SimpleNamespace(warn=said.append), adapter=adapter)["_tell_of_source_names"]
    tell(settings, SimpleNamespace(notes={"source_names": known}, batch_id=7), plan, "raw_f")
    assert len(said) == (told is not None)  # and not that it takes the messages of both
    assert told is None or re.search(told, said[0])
    assert [sql.partition(" where ")[2] for sql in queries] == asked * ["batch_id <= 7 and source_table in ('a.new')"]
    assert plan["notes"] == {"source_names": sorted({*known, "a.new"})}


def test_status_tells_the_newest_moment_as_json_does() -> None:
    told = load()["_moment_as_json"]
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    moments = (None, "a", 7, 2.5, Decimal(10**30), Decimal("2.50"), moment.date(), moment)
    assert [told(moment) for moment in moments] == [
        None,
        "a",
        7,
        2.5,
        10**30,
        2.5,
        "2026-01-02T00:00:00.000000Z",
        "2026-01-02T03:04:05.000006Z",
    ]


def test_status_takes_no_run_that_failed_for_a_load() -> None:
    asked: list[str] = []
    made = giving({"_ledger": "ledger", "holds_relation": "cdc_holds", "_runs_relation": "cdc_runs", "_control_relation": "q"})
    made |= {"_loading_tables": lambda: [], "_of_models": lambda sql: asked.append(sql) or []}
    load(
        made,
        graph=SimpleNamespace(sources={}),
        adapter=SimpleNamespace(table_state=lambda relation: {**no_state(), "exists": relation == "cdc_runs"}),
    )["_status"]()
    (sql,) = (each.replace("`", '"') for each in asked)
    with duckdb.connect() as connection:
        connection.execute(
            """create table cdc_runs as select *, 1 as rows_read, 0 as rows_duplicate, 0 as rows_late, 0 as rows_quarantined
            from (values ('stg', 1, 'success', null, 10), ('stg', null, 'error', 'gone', 20))
            as r ("table", last_batch_id, status, error, finished_at)"""
        )
        (row,) = connection.execute(sql).fetchall()
    assert row[-3:] == ("10", "error", "gone")


@pytest.mark.parametrize("marked", [False, True])
def test_Q1_status_knows_of_bad_rows_that_no_run_has_counted_and_takes_none_for_the_newest_change(marked: bool) -> None:
    """A run that was killed wrote nothing into `cdc_runs`; what staging's commit notes is there."""
    asked: list[str] = []

    def rows(sql: str) -> list[dict[str, Any]]:
        asked.append(sql)
        if "_cdc_occurred_at" in sql:
            return [{"place": 0, "told": '{"newest": "2026-01-01"}'}]
        return [{"feed": "f", "source_table": "t", "error": "cast:n", "n": 1}] if " from s.q " in sql else []

    state = SimpleNamespace(exists=True, batch_id=1, properties={}, columns=["_cdc_occurred_at"], notes={"quarantined": marked})
    view = Relation(schema="s", identifier="q")
    fakes = {
        "_ledger": "ledger",
        "holds_relation": "cdc_holds",
        "_runs_relation": "cdc_runs",
        "_control_relation": view,
        "_loading_tables": [],
        "_of_models": [],
        "_cdc_meta": {},
        "_table_settings": {"feed": "f", "table": "t"},
        "_model_of": "stg",
        "_has_model": True,
        "_names_in_holds": [],
        "progress": state,
        "qualified_folder": "file:/l/t",
    }
    told = load(
        giving(fakes),
        graph=SimpleNamespace(sources={"f.t": SimpleNamespace()}),
        adapter=SimpleNamespace(
            query_rows=rows,
            get_relation=lambda *_: "q",
            table_statistics=lambda *_: {"rows": 2, "highest": "2999-01-01"},
            table_state=lambda relation: {**no_state(), "exists": relation == "cdc_runs"},
        ),
    )["_status"]()
    assert [table["newest"] for table in told["tables"]] == ["2026-01-01" if marked else "2999-01-01"]
    assert len(told["quarantine"]) == marked


def test_S4_status_asks_for_a_folder_only_where_numbers_may_have_a_gap() -> None:
    """One in an object store that is not reached is an error, with which nothing would be told of any table."""

    def folder(settings: Mapping[str, Any]) -> str:
        asked.append(settings["table"])
        return f"s3a://lake/{settings['table']}"

    asked: list[str] = []
    adapter = SimpleNamespace(table_statistics=lambda _: {}, table_state=lambda _: no_state())
    row = load(giving({"_has_model": False}) | {"qualified_folder": folder}, adapter=adapter)["_status_of_table"]
    state = SimpleNamespace(batch_id=1)
    rows = [row({"feed": "f", "table": name, "expect_contiguous": name == "b"}, state, {}) for name in ("a", "b")]
    assert ([each["folder"] for each in rows], asked) == ([None, "s3a://lake/b"], ["b"])


# of a number there are no seconds, and a late change whose time is null has none either
@pytest.mark.parametrize(
    ("type_", "at", "told"),
    [
        ("timestamp", ("timestamp '2026-01-01 00:00:30'", "timestamp '2026-01-01 00:00:10'"), [20.0, 20.0, 20.0]),
        ("timestamp", ("timestamp '2026-01-01 00:00:30'", "null"), None),
        ("bigint", ("30", "10"), None),
    ],
)
def test_how_late_changes_come_is_told_where_times_tell_it(type_: str, at: tuple[str, str], told: Any) -> None:
    state = SimpleNamespace(columns={"_cdc_occurred_at": type_})
    sql = load(adapter=SimpleNamespace(table_state=lambda _: state))["_lateness"](SimpleNamespace(staging="stg", name="f.t"))
    for ours, duckdb_s in (
        ("struct(", "row("),
        ("percentile(", "quantile_cont("),
        ("array(", "list_value("),
        ("unix_micros(", "epoch_us("),
        ("make_dt_interval(0, 0, 0, ", "to_seconds("),
        ("date_format(", "strftime("),
        ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d"),
    ):
        sql = sql.replace(ours, duckdb_s)
    with duckdb.connect() as connection:
        connection.execute(
            f"""create table stg as select *, null as _cdc_error, null::bigint as _cdc_ordinal
            from (values (1, 7, 5, {at[0]}), (2, 7, 3, null), (3, 8, 4, {at[1]}), (4, 9, 6, {at[0]}))
            as s (_cdc_batch_id, _cdc_staged_at, _cdc_sequence, _cdc_occurred_at)"""
        )
        # what is replayed has the batch that it came in, and is staged after the others of it
        assert sql.count("order by min(_cdc_batch_id), _cdc_staged_at rows between") == 2
        # what comes after a newer one of its own load is not late
        assert connection.execute(sql).fetchone()[:4] == ("f.t", 4, 1, told)  # type: ignore[index]
        # one that ties with the highest is late, as `rows_late` counts it
        connection.execute("update stg set _cdc_sequence = 5 where _cdc_batch_id = 4")
        assert connection.execute(sql).fetchone()[1:3] == (4, 2)  # type: ignore[index]


def test_H4_as_of_takes_the_changes_up_to_a_moment() -> None:
    macros = load()
    settings = {**SETTINGS, "columns": ["id", "a"], "partition_by": []}
    until = "(_cdc_occurred_at is null or _cdc_occurred_at <= 7)"
    sql = macros["_final_as_of"](settings, "s.stg", None, until)
    assert "from timed where (_cdc_time is null or _cdc_time <= 7)" in sql
    assert macros["_moment"](7) == "7"
    assert macros["_moment"]("2026-01-01") == "'2026-01-01'"


def test_H4_E1_as_of_before_a_run_that_brings_staging_its_new_columns() -> None:
    """`c` and what is made of it are new, `b` was `a`, and `gone` is no longer listed: final has them as staging does."""
    made = {"once": "a", "twice": "c * 2", "at": "_cdc_occurred_at"}
    settings = {
        "feed": "f", "table": "t", "keys": ["id"], "column_types": {"id": "int", "b": "int", "c": "int"},
        "renamed_columns": {"b": "a"},
        "columns": ["id", "b", "c", "gone", *made], "expressions": made,
        "partition_by": ["c", "b", "c % 4 as part", "id % 4 as d"],
    }  # fmt: skip
    staged = dict.fromkeys(["id", "a", "gone", "_cdc_occurred_at"], "integer")
    macros = load(
        giving(
            {
                "_parents_of_final": {"source": "f.t", "staging": "s.stg", "staging_table": "s.stg", "keys": None},
                "_table_settings": settings,
                "follow_staging": "",
                "_refuse_below_horizon": "",
                "_refuse_no_moment": "",
                "_final_as_of": "",
                "_final_rows": "",
                "may_be_held": False,
                "has_entities": True,
            }
        ),
        adapter=SimpleNamespace(table_state=lambda _: {"exists": True, "columns": staged, "notes": {}}),
    )
    macros["as_of"]("s.final", "2026-01-01")
    assert settings["columns"] == ["id", "a", "gone", "once", "at"]
    assert settings["column_types"] == {"id": "int", "a": "int"}
    assert settings["expressions"] == {"once": "a", "at": "_cdc_occurred_at"}
    assert macros["_with_partitions"](settings).strip(", \n") == "id % 4 as `d`"


def test_H4_K1_who_is_who_in_two_finals_of_one_name_stays_apart() -> None:
    parents = {"source": "f.t", "staging": "s.stg", "staging_table": "s.stg", "keys": "s.keys"}
    views: list[str] = []
    settings = {"feed": "f", "table": "t", "keys": ["id"], "split_key_changes": False}
    as_of = load(
        giving({
            "_parents_of_final": parents, "_table_settings": settings, "follow_staging": "", "_leave_out_unstaged": "",
            "refuse_before_staging": "", "_refuse_below_horizon": "", "_refuse_no_moment": "", "may_be_held": False,
        }) | {"_final_rows": lambda settings, staging, keys: keys},
        adapter=SimpleNamespace(
            table_state=lambda _: SimpleNamespace(exists=True, columns={}),
            create_view_from_python=lambda view, *_: views.append(view),
        ),
    )["as_of"]  # fmt: skip
    asked = [("one", "2026-01-01"), ("two", "2026-01-01"), ("one", "2026-01-02"), ("one", "2026-01-01")]
    read = [as_of(Relation(schema=schema, identifier="final_t"), known_at=known_at) for schema, known_at in asked]
    assert read == views
    assert [views.index(view) for view in views] == [0, 1, 2, 0]


def test_H4_K8_as_of_is_not_made_by_keys_that_staging_has_not_taken() -> None:
    settings = {"feed": "f", "table": "t", "keys": ["a"], "column_types": {"id": "int", "a": "int"}, "columns": ["id", "a"]}
    parents = {"source": "f.t", "staging": "s.stg", "staging_table": "s.stg", "keys": None}
    quiet = giving({
        "_parents_of_final": parents, "_table_settings": settings, "follow_staging": "", "_refuse_below_horizon": "",
        "_refuse_no_moment": "", "may_be_held": False, "_final_rows": "rows",
    })  # fmt: skip
    for properties in ({}, {"delta_cdc.keys": '["a"]'}):
        state = {"exists": True, "columns": settings["column_types"], "notes": {"keys": ["id"]}, "properties": properties}
        as_of = load(quiet, adapter=SimpleNamespace(table_state=lambda _, state=state: state))["as_of"]
        if properties:
            assert as_of("s.final") == "rows"
        else:
            with pytest.raises(CompilerError, match=r"`keys` are \[a\], and staging still has \[id\]"):
                as_of("s.final")


def adopted(
    keys: list[str], fields: list[str], notes: dict, command: str = "run", there: tuple[str, ...] = (), **properties: str
) -> tuple[dict, list[str]]:
    """What staging under these keys writes to, and the statements that ran before. there: columns that it has beside."""
    ran: list[str] = []
    flags = SimpleNamespace(FULL_REFRESH=True, WHICH=command)
    adapter = SimpleNamespace(evolve=lambda _, columns: ran.append(f"evolve {columns}"))
    graph = SimpleNamespace(nodes={}, sources={})
    macros = load(this="s.stg", run_query=ran.append, flags=flags, adapter=adapter, graph=graph)
    struct = {"type": "struct", "fields": [{"name": name, "type": "integer"} for name in fields]}
    settings = {**SETTINGS, "feed": "f", "table": "t", "keys": keys, "nullable_keys": [], "renamed_columns": {"n": "id"}}
    settings["column_types"] = {**SETTINGS["column_types"], "n": "int"}
    columns = {"id": "integer", "a": "integer", "_cdc_key_before": struct, **dict.fromkeys(there, "integer")}
    state = {"exists": True, "columns": columns, "notes": notes, "properties": properties}
    macros["_adopt_keys"](settings, state)
    return settings, ran


def test_K8_staging_takes_other_keys_only_where_they_changed() -> None:
    for fields, notes in ((["id"], {}), (["id"], {"keys": ["id"]}), (["ID"], {"keys": ["id"]})):
        settings, ran = adopted(["id"], fields, notes)
        assert (settings.get("key_fields"), ran) == (None, [])
    settings, ran = adopted(["id", "a"], ["id"], {"keys": ["id"]})
    assert ran[0] == "alter table s.stg add columns (_cdc_key_before.`a` int)"
    assert ran[1] == "update s.stg set _cdc_key_before.`a` = coalesce(_cdc_key_before.`a`, `a`) where _cdc_key_before is not null"
    assert "set _cdc_error = if(`id` is null or `a` is null, 'null_key', null)" in ran[2]
    assert "set tblproperties ('delta_cdc.keys' = " in ran[3]
    assert settings.get("key_fields") is None
    taken = {"delta_cdc.keys": '["id", "a"]'}  # by a run that found nothing new
    assert adopted(["id", "a"], ["id", "a"], {"keys": ["id"]}, **taken)[1] == []
    settings, _ = adopted(["a"], ["id"], {"keys": ["id"]})
    assert settings["key_fields"] == ["id", "a"]
    ran = adopted(["n"], ["id"], {"keys": ["id"]})[1]  # one that staging has not got yet, for it was renamed
    filled = "update s.stg set `n` = `id` where `n` is null and `id` is not null"
    assert ran[:2] == ["evolve {'n': 'int'}", filled]
    assert ran[3].startswith("update s.stg set _cdc_key_before.`n` = coalesce(_cdc_key_before.`n`, _cdc_key_before.`id`, `n`)")
    # a run ended when it had the column, and had not filled it: each row would be marked `null_key`
    assert adopted(["n"], ["id"], {"keys": ["id"]}, there=("n",))[1] == [filled, *ran[2:]]
    for reading in ("compile", "show", "generate"):
        assert adopted(["id", "a"], ["id"], {"keys": ["id"]}, command=reading)[1] == []
    settings, ran = adopted(["a"], ["id", "a"], {"keys": ["a"]})
    assert (settings["key_fields"], ran) == (["id", "a"], [])
    sql = MACROS["_staging_ctes"](settings, "lines_view")
    assert "struct(null as `id`, coalesce(_cdc_before_1, `a`) as `a`)" in sql


def test_K8_R1_a_compacted_table_takes_no_other_keys() -> None:
    """What was folded is the last change of each row by the former keys: rows of the new ones would be missing."""
    folded = {"delta_cdc.horizon": "{}"}
    for keys in (["id", "a"], ["a"]):
        with pytest.raises(CompilerError, match=r"`keys` were \[id\] and are now .*, and it was compacted: .* Put them back"):
            adopted(keys, ["id"], {"keys": ["id"]}, **folded)
    assert adopted(["id"], ["id"], {"keys": ["id"]}, **folded)[1] == []
    assert adopted(["n"], ["id"], {"keys": ["id"]}, **folded)[1] != []  # renamed
    assert adopted(["a", "id"], ["id", "a"], {"keys": ["id", "a"]}, **folded)[1] != []


class Adapter:
    """Knows the state of tables, what the newest commit noted, and rows of `cdc_runs`, which count if it noted nothing."""

    def __init__(self, states: dict[str, dict], noted: dict, rows: list[dict]) -> None:
        self.states, self.noted, self.rows = states, noted, rows

    def table_state(self, relation: SimpleNamespace) -> dict:
        missing = no_state()
        return self.states.get(relation.identifier, missing)

    def newest_notes(self, relation: SimpleNamespace) -> dict:
        return self.noted

    def cached_query(self, relation: SimpleNamespace, sql: str) -> list[dict]:
        return self.rows


def with_runs(states: dict[str, dict], noted: dict, rows: list[dict]) -> dict:
    """The macros, with `cdc_runs` as it is said."""
    ledger = SimpleNamespace(name="cdc_change_sets", alias="cdc_change_sets", resource_type="model", database=None, schema="s")
    relations = SimpleNamespace(create=lambda **parts: SimpleNamespace(**parts))
    return load(
        adapter=Adapter(states, noted, rows),
        graph=SimpleNamespace(nodes={"ledger": ledger}),
        api=SimpleNamespace(Relation=relations),
    )


def progress(state: dict | None, noted: int | None = None, asked: int | None = None) -> dict:
    states = {} if state is None else {"t": {**no_state(), "exists": True, "version": 9, "notes": {"n": 1}, **state}}
    rows = [{"table": "t", "batch_id": asked, "status": "success"}]
    macros = with_runs(states, {} if noted is None else {"done": {"t": noted}, "failed": {}}, rows)
    return macros["progress"](SimpleNamespace(schema="s", identifier="t"))


def test_S7_a_batch_noted_as_empty_is_done_too() -> None:
    ours = {"app_id": "t@0", "txn_version": 4}
    assert progress(ours)["batch_id"] == 4
    found = progress(ours, noted=6)
    assert (found["batch_id"], found["committed"], found["app_id"]) == (6, 4, "t@0")
    assert progress(ours, asked=7)["batch_id"] == 7  # somebody else wrote to cdc_runs last
    assert progress(ours, noted=6, asked=7)["batch_id"] == 6


def test_S7_what_runs_noted_is_read_once_a_run() -> None:
    """On an object store each look is a request, and each model asks of several tables."""
    asked: list[Any] = []
    kept: dict[str, Any] = {}
    macros = load(
        {"noted_runs": lambda: asked.append(1) or {"done": {"t": 6}}},
        adapter=SimpleNamespace(
            table_state=lambda _: {**no_state(), "exists": True, "version": 9, "app_id": "t@0", "txn_version": 4},
            recall=kept.get,
            remember=kept.__setitem__,
        ),
    )
    for name in ("t", "u", "t"):
        assert macros["progress"](SimpleNamespace(schema="s", identifier=name))["batch_id"] == (6 if name == "t" else 4)
    assert len(asked) == 1


def test_S7_a_run_notes_where_it_found_nothing_and_what_failed() -> None:
    rows = [{"table": "a", "batch_id": 3, "status": "error"}, {"table": "b", "batch_id": None, "status": "held"}]
    macros = with_runs({}, {}, rows)
    noted = macros["noted_runs"]()
    assert noted == {"done": {"a": 3}, "failed": {"a": True}}
    for table, status, batch, written in (
        ("a", "success", 5, 0),  # mended, and nothing there up to 5
        ("b", "held", 6, 0),
        ("c", "error", None, 0),
        ("d", "success", 7, 0),
        ("d", "success", 7, 2),  # replayed: the table itself knows
        ("e", "success", 7, 0),
        ("e", "success", None, 1),
        ("e", "success", 6, 0),
    ):
        macros["_note_end"](noted, table, status, batch, written)
    assert noted == {"done": {"a": 5, "e": 7}, "failed": {"c": True}}
    for batch, written in ((8, 0), (9, 3)):  # of what the keys table had resolved by then, nothing changed anything
        macros["_note_end"](noted, "e", "success", batch, written, batch)
    assert (noted["done"], noted["resolved"]) == ({"a": 5}, {"e": 8})


def test_S7_what_was_found_of_a_table_that_is_gone_says_nothing_of_the_one_made_anew() -> None:
    """Also where the rows of `cdc_runs` are asked, for OPTIMIZE wrote to it last; and of keys tables, which are Python's."""
    asked: list[str] = []
    ledger = SimpleNamespace(database=None, schema="s", alias="cdc_change_sets")
    load(
        adapter=SimpleNamespace(newest_notes=lambda relation: {}, cached_query=lambda relation, sql: asked.append(sql) or []),
        graph=SimpleNamespace(nodes={"model.user_project.cdc_change_sets": ledger}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: parts["identifier"])),
    )["noted_runs"]()
    this = SimpleNamespace(schema="s", identifier="anew")
    dbt = SimpleNamespace(this=this, newest_notes=lambda *_: {}, cached_query=lambda *given: asked.append(given[-1]) or [])
    assert _noted(dbt, "main") == -1
    with duckdb.connect() as connection:
        connection.execute(
            """create table cdc_runs as select *, 'success' as status from (values
              ('anew', 9, 0, null, 1), ('anew', 0, 0, 0, 2), ('anew', null, 0, null, 3),
              ('later', 9, 0, 0, 1), ('later', 11, 0, null, 2), ('wrote', 7, 0, null, 1), ('wrote', 8, 3, 5, 2),
              ('empty', 8, 3, 5, 1), ('empty', 9, 0, null, 2),
              ('twice', 9, 2, 0, 1), ('twice', 10, 0, null, 2), ('twice', 4, 4, 0, 3)
            ) as r ("table", last_batch_id, rows_written, version, finished_at)"""
        )
        both = [connection.execute(each.replace("`", '"')).fetchall() for each in asked]
    for found in both:
        assert {row[0]: row[1] for row in found} == {"anew": 0, "later": 11, "wrote": None, "empty": 9, "twice": None}
    assert len(both) == 2


def test_S8_a_table_that_somebody_replaced_is_not_continued() -> None:
    assert progress(None, noted=6) == {
        "exists": False,
        "batch_id": -1,
        "committed": -1,
        "rows": None,
        "rebuild": False,
        "version": None,
        "notes": {},
        "columns": {},
        "properties": {},
        "id": None,
        "app_id": "t@0",
        "next_app_id": "t@0",
        "resolved": -1,
    }
    found = progress({"app_id": "t@0", "txn_version": 4, "replaced": True}, noted=6)
    assert (found["batch_id"], found["rebuild"], found["app_id"], found["notes"]) == (-1, True, "t@10", {})


@pytest.mark.parametrize(
    ("schema", "name", "change", "said"),
    [
        ("prod", "stg_f__t", {}, None), ("PROD", "stg_f__t", {}, None),
        ("prod", "stg_f__t", {"id": "b", "version": 9, "app_id": "stg_f__t@9"}, None),  # written anew for another type (E4)
        ("prod", "stg_f__t", {"id": "b", "version": 9}, "made of stg_f__t, which was dropped and made anew since."),
        ("prod", "stg_f__u", {}, "made of stg_f__t and is to be made of stg_f__u."),
        ("dev", "stg_f__t", {"id": "b", "version": 9, "app_id": "stg_f__t@9"},
         "made of prod.stg_f__t and is to be made of dev.stg_f__t."),
        ("prod__plan", "stg_f__t", {}, None),
        ("prod__plan", "stg_f__t", {"id": "b"}, "made of stg_f__t, which was dropped and made anew since."),
        ("prod__plan", "stg_f__t", no_state(), "made of stg_f__t, which was dropped and made anew since."),
        ("dev", "stg_f__t", {}, None),  # renamed, with its log
    ],
)  # fmt: skip
def test_S8_a_table_goes_on_from_the_staging_table_that_it_was_made_of(
    schema: str, name: str, change: dict, said: str | None
) -> None:
    staged = {"exists": True, "id": "a", "version": 4, "app_id": "stg_f__t@0"}
    met, is_clone = {**staged, **change}, "__plan" in schema  # a clone has an id of its own: that of its source is asked
    adapter = SimpleNamespace(table_state=lambda relation: {"prod.stg_f__t": met}[str(relation)])
    api = SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts)))
    macros = load(this="prod.final_t", adapter=adapter, api=api)
    state = {"notes": {"made_of": macros["made_of"](Relation(schema="prod", identifier="stg_f__t"), staged)}}
    settings = {"feed": "f", "table": "t"}
    now = Relation(schema=schema, identifier=name, database=None)
    with pytest.raises(CompilerError, match=re.escape(f"feed f, table t: prod.final_t was {said}")) if said else nullcontext():
        clone = {**staged, "id": "clone"}
        macros["refuse_other_staging"](settings, SimpleNamespace(**state), now, clone if is_clone else met)
    if name == "stg_f__t" and not is_clone:
        of, new = state["notes"]["made_of"], macros["made_of"](now, met)
        assert (of["id"] == new["id"] or _goes_on(of, new)) == (said is None)


def test_E4_what_cannot_be_widened_is_cast_and_must_come_back_the_same() -> None:
    settings = {**SETTINGS, "given_types": {"a": "decimal(10,3)"}}
    assert MACROS["_value_of"]("after['a']", "a", settings) == "try_cast(try_cast(after['a'] as decimal(10,3)) as int)"
    misfits = MACROS["_misfits"]("after", "a", settings, "`a`")
    assert misfits.endswith("not try_cast(`a` as decimal(10,3)) <=> try_cast(after['a'] as decimal(10,3)))")
    assert MACROS["_misfits"]("after", "a", SETTINGS, "`a`") == "after['a'] is not null and `a` is null"


@pytest.mark.parametrize(
    ("type_", "text", "is_one"),
    [
        ("date", "2026-01-31", True), ("date", "2026", True), ("date", "20484", False), ("date", "0044-03-15 BC", False),
        ("timestamp", "2026-01-31 10:00", True), ("timestamp", "202601", False), ("timestamp", "10:00", False),
        ("timestamp_ntz", "202601", False),
    ],
)  # fmt: skip
def test_Q1_a_number_is_no_day_and_no_moment(type_: str, text: str, is_one: bool) -> None:
    (pattern,) = re.findall("rlike r'(.*?)'", MACROS["_cast_text"]("text", type_))
    assert bool(re.search(pattern, text)) is not is_one


@pytest.mark.parametrize("type_", ["date", "timestamp_ntz"])
def test_Q1_a_number_of_milliseconds_is_a_day_of_utc_whatever_zone_the_session_has(type_: str) -> None:
    value = MACROS["format_value"]("text", type_, {**SETTINGS, "format": "aliyun"}, "a")
    assert value.startswith(f"coalesce(cast({MACROS['_in_utc'](MACROS['_of_millis']('try_cast(text as bigint)'))} as {type_}), ")


@pytest.mark.parametrize(("type_", "zoned"), [("timestamp", True), ("timestamp_ntz", False), ("date", False)])
def test_Q1_a_moment_told_in_parts_keeps_its_clock_in_a_column_without_a_zone(type_: str, zoned: bool) -> None:
    settings = {**SETTINGS, "format": "debezium", "decimal_handling": "precise", "time_unit": "micros"}
    value = MACROS["format_value"]("text", type_, settings, "a")
    assert ("timestampadd(second, -coalesce(part.offsetSeconds, 0)," in value) is zoned
    assert ("timestampadd(second, 0," in value) is not zoned


@pytest.mark.parametrize("type_", ["struct<zipCode: string>", "array<struct<itemNo: int>>", "map<string, struct<Qty: int>>"])
@pytest.mark.parametrize("format_", sorted(FORMATS))
def test_E6_fields_inside_structs_keep_their_spelling(format_: str, type_: str) -> None:
    settings = {**SETTINGS, "format": format_, "decimal_handling": "precise", "time_unit": "micros"}
    assert f"from_json(text, '{type_}')" in MACROS["format_value"]("text", type_, settings, "a")


def test_E6_no_value_is_hidden_where_its_parts_are_looked_at() -> None:
    """The parameter of a lambda hides the column of its name, and a relation's name a struct of that name."""
    types = {**SETTINGS["column_types"], "t0": "struct<x:int>", "typed": "struct<x:int>"}
    macros = load(adapter=SimpleNamespace(misfits=lambda _text, value, _type: f"t0 -> {value}.x"))
    sql = macros["_staging_ctes"]({**SETTINGS, "column_types": types}, "lines_view")
    assert ("when t0 -> typed.`t0`.x then" in sql, "when t0 -> typed.`typed`.x then" in sql) == (True, True)


def test_E6_fields_that_are_listed_in_another_case_are_read_so() -> None:
    macros = load(adapter=SimpleNamespace(misfits=lambda _text, value, type_: f"{value} by {type_}"))
    settings = {**SETTINGS, "column_types": {"a": "struct<b:int>"}, "read_types": {"a": "struct<B:int>"}}
    assert macros["_value_of"]("x", "a", settings) == "cast(from_json(x, 'struct<B:int>') as struct<b:int>)"
    assert macros["_misfits"]("after", "a", settings, "`a`") == "`a` by struct<B:int>"


@pytest.mark.parametrize(
    ("staged", "given", "value"),
    [
        ("struct<b:int>", "string", "from_json(x, 'struct<b:int>')"),
        ("map<string,int>", "int", "from_json(x, 'map<string,int>')"),
        ("string", "variant", "x"), ("string", "struct<b:int>", "x"),
        ("int", "boolean", "try_cast(try_cast(x as boolean) as int)"),
        ("date", "int", "try_cast(cast(try_cast(x as int) as string) as date)"),
    ],
)  # fmt: skip
def test_E4_types_that_spark_has_no_cast_between_stop_no_table(staged: str, given: str, value: str) -> None:
    macros = load(adapter=SimpleNamespace(misfits=lambda *_: "misfits"))
    settings = {**SETTINGS, "column_types": {"a": staged}, "given_types": {"a": given}}
    assert macros["_value_of"]("x", "a", settings) == value
    assert "as variant) <=>" not in macros["_misfits"]("after", "a", settings, "`a`")


@pytest.mark.parametrize("staged", ["bigint", "decimal(20,0)"])
@pytest.mark.parametrize("moment", ["timestamp", "timestamp_ntz", "date"])
def test_E4_a_number_that_is_listed_as_a_moment_stays_the_number_that_it_was(staged: str, moment: str) -> None:
    settings = {**SETTINGS, "format": "debezium", "decimal_handling": "precise", "time_unit": "micros",
                "column_types": {"a": staged}, "given_types": {"a": moment}}  # fmt: skip
    value = MACROS["_value_of"]("x", "a", settings)
    fits, stays = (MACROS["format_value"]("x", type_, settings, "a") for type_ in (moment, staged))
    assert value == f"if({fits} is null, null, {stays})"
    assert MACROS["_misfits"]("after", "a", settings, "`a`") == "after['a'] is not null and `a` is null"
    assert ("lower(name) in ('a')" in MACROS["_debezium_types"](settings)) is staged.startswith("decimal")


@pytest.mark.parametrize("moment", ["timestamp", "timestamp_ntz", "date"])
def test_E4_a_moment_that_is_listed_as_a_number_takes_none_for_seconds(moment: str) -> None:
    settings = {**SETTINGS, "column_types": {"a": moment}, "given_types": {"a": "bigint"}}
    assert MACROS["_value_of"]("x", "a", settings) == f"try_cast(cast(try_cast(x as bigint) as string) as {moment})"


@pytest.mark.parametrize(
    ("staged", "given", "told"),
    [("long", "timestamp", "values stay as they come"), ("timestamp", "bigint", "values are cast"), ("int", "string", None)],
)
def test_E4_it_is_told_that_staging_does_not_know_what_a_number_counts(staged: str, given: str, told: str | None) -> None:
    warned: list[str] = []
    macros = load(exceptions=SimpleNamespace(warn=warned.append))
    settings = {**KEYED, "column_types": {"a": staged}, "given_types": {"a": given}}
    macros["_tell_of_columns"](settings, SimpleNamespace(undeclared=0))
    assert (f"list it as {staged}, or drop " in warned[0]) is (told is not None)
    assert told is None or told in warned[0]


def struct(*names: str) -> dict:
    return {"type": "struct", "fields": [{"name": name, "type": "long"} for name in names]}


def decimals(size: str, **names: str) -> dict:
    fields = [{"name": name, "type": f"decimal({size})", "nullable": True, "metadata": {}} for name in names.values()]
    return {"type": "struct", "fields": fields}


def test_E4_positions_and_keys_before_are_widened_before_new_ones_are_compared_with_them() -> None:
    def plainly(have: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, Any]:  # Spark's parser is not there
        return evolved(have, {name: type_.replace("`", "").replace(": ", ":") for name, type_ in wanted.items()})

    widened: list[dict[str, str]] = []
    macros = load({"evolve_before": widened.append}, adapter=SimpleNamespace(evolved=plainly))
    columns = {"_cdc_sequence": decimals("5,2", a="seq"), "_cdc_key_before": decimals("5,2", a="id")}
    settings = {"column_types": {"ID": "decimal(12,4)", "seq": "decimal(12,4)"}, "horizon": "horizon"}
    macros["_widen_parts"](settings, SimpleNamespace(columns=columns))
    assert widened == [{"_cdc_sequence": "struct<`seq`: decimal(12,4)>", "_cdc_key_before": "struct<`id`: decimal(12,4)>"}]
    type_ = "struct<_cdc_sequence:struct<seq:decimal(12,4)>,_cdc_ordinal:bigint>"
    assert (settings["position_type"], settings["horizon"]) == (type_, f"cast(horizon as {type_})")


KEYED = {**SETTINGS, "feed": "f", "table": "t", "mask": {}}
BAG = {**KEYED, "keys": [], "keyless": "multiset"}


@pytest.mark.parametrize(("before", "now", "there", "message"), [
    (KEYED, KEYED, True, None), (KEYED, BAG, False, "its rows are their values, and staging was loaded with rows that have keys"),
    ({**BAG, "keyless": "append"}, KEYED, False, "its rows have keys, and staging was loaded with rows that are only added"),
    ({**BAG, "keyless": "append"}, {**BAG, "keyless": "none", "insert_only": True}, True, None),
    (KEYED, {**KEYED, "insert_only": True}, True, "updates, deletes or truncates were staged before"),
    (KEYED, {**KEYED, "insert_only": True}, False, None), ({**KEYED, "insert_only": True}, KEYED, True, None),
    (KEYED, {**KEYED, "mask": {"a": "a % 2"}}, True, None),
    (KEYED, {**KEYED, "mask": {"id": "id % 2"}}, True, r"columns that tell rows apart \(id\)"),
    ({**BAG, "mask": {"a": "1"}}, BAG, True, r"columns that tell rows apart \(a\)"),
    (KEYED, {**KEYED, "alternate_keys": [["a", "b"]], "mask": {"a": "1"}}, True, r"columns that tell rows apart \(a\)"),
    ({**KEYED, "mask": {"id": "1"}}, {**KEYED, "keys": ["ID"], "mask": {"ID": "1"}}, True, None),
    ({**KEYED, "mask": {"id": "1", "a": "1"}}, {**KEYED, "keys": ["a"], "mask": {"id": "1", "a": "1"}}, True, None),
    ({**KEYED, "mask": {"id": "1"}}, {**KEYED, "keys": ["a"], "mask": {}}, True, None),
])  # fmt: skip
def test_N1_N2_E7_rows_are_told_apart_as_staging_was_loaded(before: dict, now: dict, there: bool, message: str | None) -> None:
    adapter = SimpleNamespace(query_rows=lambda _: [{"found": 1}] if there else [])
    model = SimpleNamespace(name="stg_f__t", alias="stg_f__t", resource_type="model", database=None, schema="s")
    relations = SimpleNamespace(create=lambda **parts: "s.stg_f__t")
    macros = load(adapter=adapter, graph=SimpleNamespace(nodes={"t": model}), api=SimpleNamespace(Relation=relations))
    macros["_refuse_other_rows"](now, {"notes": {}})
    with pytest.raises(CompilerError, match=message) if message else nullcontext():
        macros["_refuse_other_rows"](now, {"notes": macros["_notes_of_rows"](before)})


def test_E7_K8_a_column_whose_mask_was_changed_becomes_no_key() -> None:
    masks: tuple[dict, ...] = ({"a": "md5(a)"}, {"a": "sha1(a)"}, {"a": "sha1(a)", "new": "1"}, {})
    masked = [{**KEYED, "mask": mask} for mask in masks]
    state: dict[str, Any] = {"columns": ["id", "a"], "notes": {}}
    for settings in masked[:3]:
        assert MACROS["_masked_otherwise"](settings, state) == []
        state["notes"] = MACROS["_notes_of_rows"](settings, state)
    for settings in masked:
        assert MACROS["_masked_otherwise"]({**settings, "keys": ["a"]}, state) == ["a"]
    assert MACROS["_masked_otherwise"]({**masked[2], "keys": ["new"]}, state) == []  # no staged row has it yet


@pytest.mark.parametrize(("was", "now", "refused"), [
    ("integer", "bigint", False), ("timestamp", "timestamp", False), ("long", "int", False), ("integer", "void", False),
    ("integer", "timestamp", True), ("timestamp", "bigint", True), ("date", "timestamp", True),
])  # fmt: skip
def test_H1_times_of_another_type_than_staging_s_are_refused(was: str, now: str, refused: bool) -> None:
    refuse = load(adapter=SimpleNamespace(evolved=evolved))["_refuse_other_times"]
    state = {"exists": True, "columns": {"_cdc_occurred_at": was}}
    with pytest.raises(CompilerError, match=f"`occurred_at` gives a {now}, and the times") if refused else nullcontext():
        refuse(KEYED, state, {"time_type": now}, {"rewrite": []})
    refuse(KEYED, {"exists": False}, {"time_type": now}, {"rewrite": []})


@pytest.mark.parametrize(("occurred_at", "timeless"), [("at", 2), (None, 0)])
def test_H1_changes_without_a_time_are_told(occurred_at: str | None, timeless: int) -> None:
    said: list[str] = []
    macros = load(exceptions=SimpleNamespace(warn=said.append))
    settings = {**SETTINGS, "feed": "f", "table": "t", "occurred_at": occurred_at, "split_key_changes": False}
    (count,) = re.findall(r"(\S.*)\n    as timeless,", macros["about_changes"]("changes", None, settings))
    with duckdb.connect() as connection:
        connection.execute(
            """create table changes as select * from (values ('I', null, null), ('U', null, null), ('D', null, null),
            ('R', null, null), ('U', null, 'null_key'), ('U', 7, null)) as t (_cdc_op, _cdc_occurred_at, _cdc_error)"""
        )
        found = connection.execute(f"select {count} from changes").fetchone()
    assert found == (timeless,)
    macros["_tell_of_times"](settings, SimpleNamespace(timeless=timeless, rows_read=6))
    told = "feed f, table t: 2 of 6 new changes are updates, deletes or truncates without a time (`occurred_at: at` is null)."
    assert [text[: len(told)] for text in said] == ([told] if timeless else [])


@pytest.mark.parametrize(("settings", "told"), [
    (KEYED, "History and as_of take such a change for made at"), (BAG, "as_of counts such a change at every moment. Give"),
])  # fmt: skip
def test_H4_N1_of_rows_that_are_their_values_no_history_is_spoken_of(settings: dict, told: str) -> None:
    said: list[str] = []
    macros = load(exceptions=SimpleNamespace(warn=said.append))
    macros["_tell_of_times"]({**settings, "occurred_at": "at"}, SimpleNamespace(timeless=2, rows_read=6))
    assert [text.split("` is null). ")[1][: len(told)] for text in said] == [told]


def test_E4_another_order_than_staging_s_is_refused() -> None:
    refuse = load(this="s.stg")["_refuse_other_order"]
    settings = {**SETTINGS, "feed": "f", "table": "t"}
    refuse(settings, {"columns": {"_cdc_sequence": struct("SEQ", "sequence_2")}})
    with pytest.raises(CompilerError, match=r"`sequence_by` is \[seq, a \+ 1\], and staging is ordered by \(a\)"):
        refuse(settings, {"columns": {"_cdc_sequence": struct("a")}})
    with pytest.raises(CompilerError, match=r"compared\. Nothing was loaded\. Put it back, or drop stg_f__t"):
        refuse(settings, {"columns": {"_cdc_sequence": struct("a")}})


@pytest.mark.parametrize(("given", "staged", "told"), [
    ({"sequence_by": ["at", "pos"]}, {"_cdc_sequence": struct("at", "Seq")}, r"is ordered by .* `renamed_columns: {Seq: pos}`"),
    ({"sequence_by": ["at", "pos"]}, {"_cdc_sequence": struct("at", "other")}, r"is ordered by .* or drop stg_f__t "),
    ({"sequence_by": ["pos"]}, {"_cdc_sequence": struct("seq", "a")}, r"is ordered by .* or drop stg_f__t "),
    ({"values": ["b", "w"]}, {"_cdc_key_before": struct("a", "w")}, r"a would no longer .* `renamed_columns: {a: b}`"),
    ({"values": ["b", "w"]}, {"_cdc_key_before": struct("a", "v", "w")}, r"a, v would no longer .* or drop stg_f__t "),
])  # fmt: skip
def test_E2_E4_N1_what_staging_has_in_a_struct_keeps_its_name(given: dict, staged: dict, told: str) -> None:
    settings = {**SETTINGS, "feed": "f", "table": "t", "renamed_columns": {"pos": "seq", "b": "a"}, **given}
    with pytest.raises(CompilerError, match=told):
        load(this="s.stg")["_refuse_other_order"](settings, {"columns": staged})


@pytest.mark.parametrize(("part", "refused"), [
    ("pos + 0", False), ("pos + 1", True), ("here + 0", False), ("n + w", False), ("here * n + pos", True), ("at + 0", True),
])  # fmt: skip
def test_E2_E4_an_expression_of_a_column_that_staging_has_under_its_old_name_gives_the_same_positions(
    part: str, refused: bool
) -> None:
    """`pos` is about to join, `here` has joined, `at` is new."""
    with duckdb.connect() as connection:
        connection.execute(
            "create table stg as select null as _cdc_error, {'sequence_1': i} as _cdc_sequence, [] as _cdc_missing, i as seq,"
            " 0 as w, i as n, if(i = 2, i, null) as here, if(i = 1, i, null) as there from range(1, 3) as r(i)"
        )

        def rows(sql: str) -> list:
            return connection.execute(
                sql.replace("<=>", "is not distinct from").replace("except", "exclude").replace("`", "")
            ).fetchall()

        macros = load(giving({"_model_of": "stg", "_unsaid": "_cdc_missing"}), adapter=SimpleNamespace(query_rows=rows))
        staged = dict.fromkeys(["seq", "w", "n", "here", "there", "_cdc_sequence", "_cdc_missing", "_cdc_error"], "bigint")
        settings = {
            **KEYED, "sequence_by": [part], "column_types": dict.fromkeys(["pos", "here", "n", "w", "at"], "bigint"),
            "staged_types": staged, "renamed_in_staging": {"pos": "seq", "here": "there"}, "renamed_before": {},
        }  # fmt: skip
        with pytest.raises(CompilerError, match="was loaded with") if refused else nullcontext():
            macros["_refuse_other_positions"](settings, {"columns": staged, "notes": {"sequence_by": ["seq * 1"]}})


@pytest.mark.parametrize(
    ("told_by", "values"),
    [
        ({"sequence_by": ["seq"]}, ["n", "date", "a b", "at"]),
        ({"sequence_by": ["cast(seq as date)"]}, ["n", "date", "a b", "at"]),
        ({"sequence_by": ["date(seq)", "`a b`"]}, ["n", "date", "at"]),
        ({"sequence_by": ["seq", "`a b`", "`n (utc)`"]}, ["n", "date", "at"]),
        ({"sequence_by": ["extract(date from seq)", "concat(\"n\", 'a\\'s at')"]}, ["n", "date", "a b", "at"]),
        ({"sequence_by": ["timestampadd(date, 1, seq) + interval '1' n"]}, ["n", "date", "a b", "at"]),
        ({"sequence_by": ["seq"], "deleted_when": "n = 0 and date <> 'at'"}, ["a b", "at"]),
        ({"sequence_by": ["seq"], "operation": "n", "occurred_at": "at.date"}, ["date", "a b"]),
    ],
)
def test_N1_what_tells_when_and_how_is_no_value(told_by: dict, values: list[str]) -> None:
    plain = {"ordinal": None, "transaction": None, "occurred_at": None, "operation": None, "columns": None, "except_columns": []}
    types = dict.fromkeys(["seq", "n", "date", "a b", "at", "n (utc)"], "int")
    found = load()["_values_of_multiset"]({**plain, "column_types": types, **told_by})
    assert [name for name in found if name != "n (utc)"] == values
    assert ("n (utc)" in found) == ("`n (utc)`" not in told_by["sequence_by"])


@pytest.mark.parametrize(("again", "repeated"), [([], (0, 0)), ([(1, 9), (1, 9)], (2, 0)), ([(7, 2), (1, 9), (5, None)], (2, 1))])
def test_N1_O4_equal_rows_of_one_change_set_are_not_repeated(again: list[tuple], repeated: tuple[int, int]) -> None:
    """Two changes are late, three equal ones and one without a position are not; `again` comes in the next change set."""
    settings = {**BAG, "column_types": {"a": "int"}, "sequence_by": ["seq"], "split_key_changes": False}
    sql = MACROS["about_changes"]("changes", "row(5, 0)", to_stage=settings)
    counts = re.findall(r"(count_if\(.*\)) as (?:late_)?repeated,\n", sql)
    asked = f"select {', '.join(counts)} {sql[sql.rindex('from (select') :]}"  # the rows are read once
    for of_spark, of_duckdb in (("xxhash64(", "hash("), ("struct(", "row("), ("sort_array(", "list_sort("), ("`", "")):
        asked = asked.replace(of_spark, of_duckdb)
    rows = [(2, 7, 2), (2, 8, 2), *[(2, 1, 9)] * 3, (2, 5, None), *((3, *row) for row in again)]
    with duckdb.connect() as connection:
        connection.execute(
            """create table changes (_cdc_batch_id int, a int, _cdc_sequence int, _cdc_ordinal int default 0, _cdc_op text,
            _cdc_key_before int, _cdc_error text, _cdc_raw text, _cdc_missing text[])"""
        )
        connection.executemany("insert into changes (_cdc_batch_id, a, _cdc_sequence) values (?, ?, ?)", rows)
        assert connection.execute(asked).fetchone() == repeated


@pytest.mark.parametrize(("settings", "again"), [(KEYED, 2), (BAG, 1)])
def test_Q1_O4_what_cannot_be_used_and_was_staged_before_is_counted_apart_from_late_changes(settings: dict, again: int) -> None:
    """Without a key what has no position is no copy."""
    macros = load(giving({"_staging_sql": "select * from changes"}))
    sql = macros["_marked_before"](settings, "lines", 0, "stg").replace("<=>", "is not distinct from").replace("`", '"')
    columns = "(_cdc_op, _cdc_key_before, _cdc_sequence, _cdc_ordinal, _cdc_error, _cdc_raw)"
    staged = "('I', null, 1, null, 'null_key', 'a'), ('I', null, null, null, 'null_sequence', 'b'), ('U', 0, 5, null, null, null)"
    new = f"{staged}, ('I', 0, 1, 0, 'null_key', 'c')"
    with duckdb.connect() as connection:
        for table, rows in (("stg", staged), ("changes", new)):
            connection.execute(f"create table {table} as select * from (values {rows}) as t {columns}")
        assert connection.execute(sql).fetchone() == (again,)


def test_N1_the_values_of_a_multiset_keep_their_places() -> None:
    refuse = load(this="s.stg")["_refuse_other_order"]
    settings = {**SETTINGS, "feed": "f", "table": "t", "values": ["new", "a", "b"]}
    refuse(settings, {"columns": {"_cdc_key_before": struct("a", "b")}})
    assert settings["values"] == ["a", "b", "new"]
    with pytest.raises(CompilerError, match=r"gone would no longer be one\. Nothing was loaded\. Put it back"):
        refuse(settings, {"columns": {"_cdc_key_before": struct("a", "gone")}})


@pytest.mark.parametrize(("columns", "undeclared", "staged", "refused"), [
    (["a"], None, "D", False), (["a"], "new", "I", True), (["a"], "NEW", "I", True), (["a"], "other", "D", False),
    (["a", "new"], None, "D", True), (["a", "new"], None, "D whole", False), (["a", "new"], None, "U", True),
    (["a", "new"], None, "I", False), (["a", "new"], "new", "I", True),
])  # fmt: skip
def test_N1_a_column_that_the_feed_had_before_becomes_no_value(
    columns: list[str], undeclared: str | None, staged: str, refused: bool
) -> None:
    """It was not listed, and staged rows have null for it; or no column of final, and old sides of updates tell nothing of it."""
    with duckdb.connect() as connection:
        connection.execute("create macro map_keys_of(given) as coalesce(map_keys(given), [])")
        connection.execute(
            "create table stg as select null as _cdc_error, $1[1] as _cdc_op, if($1 = 'U', 1, null) as _cdc_key_before, "
            "if($1 = 'D whole', 1, null) as new, case when $2 is not null then map([$2::text], ['x']) end as _cdc_undeclared",
            [staged, undeclared],
        )

        def rows(sql: str) -> list:
            told = r"exists\(map_keys\((\w+)\), name -> (.*?= '\w+')\)"
            sql = re.sub(told, r"len(list_filter(map_keys_of(\1), name -> \2)) > 0", sql)
            return connection.execute(sql.replace("`", "")).fetchall()

        refuse = load(giving({"_model_of": "stg"}), this="stg", adapter=SimpleNamespace(query_rows=rows))["_refuse_other_order"]
        state = {"columns": {**dict.fromkeys([*columns, "_cdc_undeclared"], "x"), "_cdc_key_before": struct("a")}}
        with pytest.raises(CompilerError, match="`new` would become one") if refused else nullcontext():
            refuse({**BAG, "values": ["a", "new"]}, state)


@pytest.mark.parametrize(
    ("told_by", "before"),
    [
        ({"keys": ["A"]}, "struct(null as `id`, coalesce(_cdc_before_1, `a`) as `a`)"),  # the key was `id` once
        (
            {"keys": [], "keyless": "multiset"},
            "struct(coalesce(_cdc_before_1, `id`) as `id`, coalesce(_cdc_before_2, `a`) as `a`)",
        ),
    ],
)
def test_K8_N1_the_row_before_is_told_where_columns_are_listed_in_another_case(told_by: dict, before: str) -> None:
    macros = load(adapter=SimpleNamespace(evolved=evolved), this="s.stg")
    settings = {**KEYED, "sequence_by": ["seq"], "old_keys": {}, "operation": None, "partition_by": [], "nullable_keys": []}
    settings |= {"columns": ["ID", "A"], "column_types": {"ID": "int", "A": "int", "seq": "bigint"}, **told_by}
    columns = {"id": "integer", "a": "integer", "_cdc_key_before": struct("id", "a"), "_cdc_sequence": struct("seq")}
    state = {"exists": True, "columns": columns, "notes": {"keys": ["a"]}, "properties": {}}
    macros["_adopt_keys"](settings, state)
    macros["read_as_multiset"](settings)
    macros["_staged_columns"](settings, state)
    sql = re.sub("if\\(_cdc_told_., (.*?), (.*?)\\)", r"coalesce(\1, \2)", macros["_staging_ctes"](settings, "lines_view"))
    assert f"then {before} end as _cdc_key_before" in sql


def test_E7_the_raw_text_of_a_bad_row_is_what_may_be_stored() -> None:
    assert MACROS["_raw_text"](SETTINGS) == MACROS["_begin_of_long"]("message")
    private = {**SETTINGS, "mask": {"a": "1"}, "never_store": ["Card"], "renamed_columns": {"a": "b"}}
    text = MACROS["_raw_text"](private)
    assert "lower(column) not in ('a', 'card', 'b')" in text
    assert "withheld" in text
    assert "message" not in text


def test_E7_K1_the_mask_of_a_key_sees_the_whole_key_as_it_was() -> None:
    types = {"k.a": "int", "b": "int", "seq": "int"}
    private = {**SETTINGS, "keys": ["k.a", "b"], "old_keys": {}, "sequence_by": ["seq"], "column_types": types, "never_store": []}
    sql = " ".join(MACROS["_typed_ctes"]({**private, "mask": {"k.a": "`k.a` + b"}}, "lines").split())
    assert "->" not in sql[sql.index("as_before as (") : sql.index("operations as (")]  # Spark takes `k.a` there for the column
    assert "coalesce(_cdc_before_1, `k.a`) as `k.a`, `b` as _cdc_after_2, coalesce(_cdc_before_2, `b`) as `b` from fitted" in sql
    assert "if(_cdc_before_1 is not null, try_cast((`k.a` + b) as int), null) as _cdc_before_1, _cdc_after_2 as `b`" in sql
    assert "as_before" not in MACROS["_typed_ctes"]({**private, "mask": {"seq": "1"}}, "lines")


def test_E7_raw_takes_nothing_of_a_table_with_private_columns() -> None:
    tables = {"t": {**SETTINGS, "source_table": "t", "mask": {"a": "1"}}, "u": {**SETTINGS, "source_table": "u"}}
    assert MACROS["_without_private"]("messages", {"u": tables["u"]}) == "messages"
    sql = MACROS["_without_private"]("messages", tables)
    assert "not (split_part(source_table, '.', -1) = 't')" in sql
    assert "if(source_table is null, '(withheld" in sql


@pytest.mark.parametrize(("listed", "kept_out"), [("u", True), ("t", False), ("s.t", False)])
def test_E7_what_was_private_and_is_listed_no_more_stays_out_of_raw(listed: str, kept_out: bool) -> None:
    tables = {"u": {**SETTINGS, "source_table": listed}}
    sql = MACROS["_without_private"]("messages", MACROS["_with_private_before"](tables, {"t": 7}))
    assert ("not (split_part(source_table, '.', -1) = 't')" in sql) is kept_out
    raw = SimpleNamespace(notes={"withheld": {"t": 7, "x.s": 9}})  # listed again, it is read from the change sets up to there
    assert MACROS["withheld_until"](raw, tables["u"]) == (-1 if kept_out else 7)


@pytest.mark.parametrize(
    ("format_", "rewrite", "renamed", "grows"),
    [("rows", [], {}, False), ("snapshots", [], {}, True), ("rows", ["d"], {}, True), ("rows", [], {"s": "was"}, True)],
)
def test_E6_a_struct_grows_before_staged_rows_are_put_beside_new_ones(
    format_: str, rewrite: list[str], renamed: dict[str, str], grows: bool
) -> None:
    there = {"d": "date", "s": "struct<a:int>"}
    wanted = {"d": "date", "s": "struct<a:int,b:int>", "new": "int"}
    evolved_ = {"types": wanted, "new": ["new"], "add": ["`s`.`b` int", "`new` int"], "rewrite": rewrite}
    done: list[Any] = []
    macros = load(this="stg", flags=SimpleNamespace(WHICH="run"), adapter=SimpleNamespace(evolve=lambda *a: done.append(a)))
    settings = {"format": format_, "renamed_in_staging": renamed, "staged_types": there}
    macros["_grow_structs"](settings, SimpleNamespace(columns=there), SimpleNamespace(**evolved_))
    assert done == ([("stg", {"d": "date", "s": "struct<a:int,b:int>"})] if grows else [])


def test_E2_E6_what_a_struct_was_called_before_has_not_the_fields_that_joined_since() -> None:
    def struct(*names: str) -> dict[str, Any]:
        fields = [{"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in names]
        return {"type": "struct", "fields": fields}

    macros = load(adapter=SimpleNamespace(evolved=evolved))
    settings = {"column_types": {"t": "struct<a:int,b:int>"}, "renamed_in_staging": {"t": "s"}, "renamed_before": {}}
    for staged, joined in (
        ({"s": struct("a"), "t": struct("a")}, False), ({"s": struct("a"), "t": struct("a", "b")}, True),
        ({"s": struct("a")}, True),  # staging is only about to gain it
    ):  # fmt: skip
        sql = macros["_staged_value"]({**settings, "staged_types": staged}, "t")
        assert ("from_json(to_json(`s`" in sql and "'struct<a:int,b:int>'" in sql) is joined
        assert ("`t`" in sql) is ("t" in staged)


def test_E4_a_text_that_is_listed_as_another_type_is_looked_at_as_that() -> None:
    settings = {**SETTINGS, "sequence_by": ["seq"], "column_types": {"id": "int", "seq": "bigint", "a": "string"}}
    settings["given_types"] = {"a": "int"}
    sql = " ".join(MACROS["_staging_ctes"](settings, "lines_view").split())
    assert (
        "when _cdc_after['a'] is not null and (typed.`a` is null or not try_cast(typed.`a` as int) <=> "
        "try_cast(_cdc_after['a'] as int))" in sql
    )
    assert "_cdc_after['a'] is not null" not in MACROS["_staging_ctes"]({**settings, "given_types": {}}, "lines_view")


@pytest.mark.parametrize(
    "telling",
    [
        {"keys": ["a"]},
        {"alternate_keys": [["a"]]},
        {"sequence_by": ["seq", "a"]},
        {"occurred_at": "a"},
        {"keys": [], "values": ["a"]},
    ],
)
def test_E4_a_text_that_tells_rows_apart_or_orders_them_stays_as_it_comes(telling: dict) -> None:
    settings = {**SETTINGS, "sequence_by": ["seq"], "column_types": {"id": "int", "seq": "bigint", "a": "string"}}
    settings |= {"given_types": {"a": "int"}, **telling}
    value = MACROS["_value_of"]("x", "a", settings)
    assert value == "if(try_cast(x as int) is null, null, x)"
    assert MACROS["_misfits"]("after", "a", settings, "`a`") == "after['a'] is not null and `a` is null"


def test_P1_a_placeholder_in_hexadecimal_digits_is_what_they_tell() -> None:
    placeholders = MACROS["_debezium_placeholders"]
    assert placeholders("hex:3C73616d653e") == "'hex:3C73616d653e', " + placeholders("<same>")
    assert placeholders("hex:3c7").startswith("'hex:3c7', '{\"hex:3c7\":")


def test_P1_updates_of_scylla_have_what_they_changed_where_the_row_before_is_not_said_to_be_whole() -> None:
    settings = {**SETTINGS, "unavailable_value": "x", "decimal_handling": "string", "column_types": {"id": "int"}}
    partial, whole = (MACROS["debezium_changes"]("lines", {**settings, "full_images": each}) for each in (False, True))
    assert "'scylla' and try_cast(before as map<string, string>) is not null" in partial
    assert "'scylla' and" not in whole


def test_the_key_of_scylla_may_be_in_the_payload_alone() -> None:
    sql = MACROS["debezium_changes"](
        "lines", {**SETTINGS, "unavailable_value": "x", "decimal_handling": "string", "column_types": {"id": "int"}}
    )
    assert "if(event.source.connector = 'scylla', coalesce(event.`key`, record_key), record_key) as record_key" in sql


def test_canal_a_delete_may_tell_its_row_in_old() -> None:
    sql = MACROS["canal_changes"]("lines", {**SETTINGS, "column_types": {"id": "int"}})
    assert "coalesce(get(body.data, 0), if(body.type = 'DELETE', get(body.old, 0), null))" in sql


def test_E4_a_number_is_none_of_base64_where_a_column_of_doubles_is_listed_as_decimal() -> None:
    settings = {**SETTINGS, "decimal_handling": "precise", "column_types": {"id": "int", "a": "double"}}
    assert "lower(name) in ('a')" in MACROS["_debezium_types"]({**settings, "given_types": {"a": "decimal(10,2)"}})
    assert "lower(name) in" not in MACROS["_debezium_types"](settings)


@pytest.mark.parametrize(
    ("was", "type_", "sql"),
    [
        ("struct", "string", "to_json(`s`"), ("struct", "int", "as int)"),
        ("string", "struct<a:int>", "from_json(`s`, 'struct<a:int>'"),
        ("date", "int", "try_cast(cast(`s` as string) as int)"), ("long", "string", "try_cast(`s` as string)"),
        ("struct", "variant", "try_parse_json(to_json(`s`"), ("string", "variant", "try_parse_json(`s`)"),
        ("long", "variant", "try_parse_json(cast(`s` as string))"),
        ("string", "date", "null, try_cast(`s` as date))"), ("string", "timestamp", "null, try_cast(`s` as timestamp))"),
        ("long", "timestamp", "null, try_cast(cast(`s` as string) as timestamp))"),
        ("integer", "date", "null, try_cast(cast(`s` as string) as date))"),
        ("timestamp", "bigint", "try_cast(cast(`s` as string) as bigint)"),
    ],
)  # fmt: skip
def test_E2_a_column_that_is_renamed_may_have_any_other_type(was: str, type_: str, sql: str) -> None:
    fields = [{"name": "a", "type": "integer", "nullable": True, "metadata": {}}]
    staged: Any = {"type": "struct", "fields": fields} if was == "struct" else was
    macros = load(adapter=SimpleNamespace(evolved=evolved))
    settings = {
        "format": "debezium",
        "column_types": {"t": type_},
        "staged_types": {"s": staged},
        "renamed_in_staging": {"t": "s"},
        "renamed_before": {},
    }
    found = macros["_staged_value"](settings, "t")
    assert sql in found
    assert "try_cast(`s` as struct" not in found
    assert was != "struct" or "(`s` as" not in found


@pytest.mark.parametrize(
    ("format_", "type_", "sql"),
    [
        ("goldengate", "timestamp", "regexp_replace(`s`, "), ("maxwell", "binary", "try_to_binary(`s`, 'base64')"),
        ("rows", "int", "coalesce(try_cast(`s` as int))"), ("debezium", "timestamp", "try_cast(`s` as timestamp)"),
        ("of_our_own", "binary", "try_cast(`s` as binary)"),
    ],
)  # fmt: skip
def test_E2_a_text_under_the_old_name_is_read_as_its_format_spells_it(format_: str, type_: str, sql: str) -> None:
    """Of Debezium's, whose unit only its schema told, no moment is guessed."""
    settings = {"format": format_, "column_types": {"t": type_}, "staged_types": {"s": "string"}, "renamed_before": {},
                "renamed_in_staging": {"t": "s"}}  # fmt: skip
    found = MACROS["_staged_value"](settings, "t")
    assert sql in found
    assert "timestamp_micros" not in found


@pytest.mark.parametrize(
    ("was", "type_", "told", "refused"),
    [
        ("long", "timestamp", [{}], True), ("integer", "date", [{}], True), ("timestamp_ntz", "bigint", [{}], True),
        ("decimal(20,0)", "timestamp_ntz", [{}], True), ("long", "timestamp", [], False), ("long", "string", [{}], False),
        ("date", "timestamp", [{}], False),
    ],
)  # fmt: skip
def test_E2_E4_a_number_is_not_renamed_to_a_moment_that_it_may_not_be(was: str, type_: str, told: list, refused: bool) -> None:
    macros = load(
        {"note_property": lambda *_: ""}, this="s.stg", adapter=SimpleNamespace(query_rows=lambda _: told, evolved=evolved)
    )
    settings = {**KEYED, "column_types": {"t": type_}, "staged_types": {"s": was}, "renamed_in_staging": {"t": "s"}}
    said = rf"`t`, {type_}, was `s`, .*List `t` as .*, or drop stg_f__t"
    with pytest.raises(CompilerError, match=said) if refused else nullcontext():
        macros["_note_renaming"](settings, SimpleNamespace(columns={"s": was}, properties={}))


def test_E2_staged_rows_stand_under_the_new_name() -> None:
    assert MACROS["staged_rows"](SETTINGS, "s.stg") == "s.stg"
    settings = {"renamed_columns": {"new": "old", "x": "y"}, "column_types": {}}
    MACROS["note_columns"](settings, SimpleNamespace(columns=dict.fromkeys(["new", "old", "x"], "int"), properties={}))
    sql = MACROS["staged_rows"](settings, "s.stg")
    assert "coalesce(`new`, `old`) as `new`" in sql
    assert "transform(_cdc_missing, name -> coalesce(map('old', 'new')[name], name)) as _cdc_missing" in sql


@pytest.mark.parametrize(
    ("listed", "entries", "found"),
    [
        (["y"], {"y": "x"}, {"y": "x"}), (["y"], {}, {"y": "x"}), ([], {}, {"y": "x"}),
        (["x", "y"], {}, {}),  # they are two columns now
        (["w", "y"], {"w": "x"}, {"w": "x"}),  # it was said of the wrong one
    ],
)  # fmt: skip
def test_E2_a_renamed_column_stays_one_where_its_entry_is_taken_out(listed: list[str], entries: dict, found: dict) -> None:
    settings: dict[str, Any] = {"column_types": dict.fromkeys(listed, "int"), "renamed_columns": entries}
    staged = SimpleNamespace(columns=dict.fromkeys("wxy", "int"), properties={"delta_cdc.renamed": '{"y": "x"}'})
    MACROS["note_columns"](settings, staged)
    assert settings["renamed_in_staging"] == found


def test_E2_a_column_with_an_expression_in_its_place_is_compared_with_what_it_was_as_it_came() -> None:
    asked: list[str] = []
    macros = load(
        giving({"note_property": ""}), this="s.stg", adapter=SimpleNamespace(query_rows=asked.append), run_query=lambda _: None
    )
    staged = SimpleNamespace(columns={"a": "string", "b": "string"}, properties={})
    settings = {"staged_types": staged.columns, "renamed_in_staging": {"b": "a"}, "expressions": {"b": "upper(b)"}}
    macros["_note_renaming"](settings, staged)
    assert asked == ["select 1 as found from s.stg where _cdc_error is null and `b` <> `a` limit 1"]


@pytest.mark.parametrize("quarantined", [True, False])
def test_Q3_a_table_that_has_not_got_its_columns_is_not_replayed_and_told_why(quarantined: bool) -> None:
    said: list[str] = []
    table = {"name": "f.t", "staging": "s.stg", "grows": ["`b` int"], "settings": {"renamed_columns": {}}}
    fakes = {"_ledger": "ledger", "_staging_tables": [table], "_not_loaded": "table f.t: staging has not got its columns"}
    adapter = SimpleNamespace(query_rows=lambda _: [{"found": 1}] if quarantined else [])
    macros = load(giving(fakes), print=said.append, adapter=adapter)
    with pytest.raises(CompilerError, match="has not got its columns") if quarantined else nullcontext():
        macros["replay"](["stg_f__t"])
    assert said == ([] if quarantined else ["table f.t: nothing is quarantined."])


@pytest.mark.parametrize("quarantined", [True, False])
def test_Q3_who_cannot_replay_a_table_is_asked_to_deliver_again_only_what_is_quarantined(quarantined: bool) -> None:
    said: list[str] = []
    table = {"name": "f.t", "staging": "s.stg", "grows": [], "settings": {"mask": {"name": "sha2(name, 256)"}}}
    adapter = SimpleNamespace(query_rows=lambda _: [{"found": 1}] if quarantined else [])
    load(giving({"_ledger": "ledger", "_staging_tables": [table]}), print=said.append, adapter=adapter)["replay"](["stg_f__t"])
    (text,) = said
    assert ("Deliver the change sets again." in text, "nothing is quarantined" in text) == (quarantined, not quarantined)


@pytest.mark.parametrize(("keys", "replayed"), [([], [(1, 2), (2, 2)]), (["n"], [])])
def test_Q3_N1_what_is_replayed_without_a_key_is_no_copy_of_a_row_of_its_own_change_set(keys: list[str], replayed: list) -> None:
    """Batch 1: an equal row beside it; 2: no position; 3: told again at the position of another change set's row."""
    settings = {"keys": keys, "keyless": "none" if keys else "append", "renamed_columns": {}, "column_types": {"n": "double"}}
    found: list[tuple] = []
    with duckdb.connect() as connection:
        for relation, row in (("staged", 1), ("again", 2)):
            connection.execute(
                f"""create table {relation} as select *, {row} as _cdc_row, 1.0 as n, 'R' as _cdc_op, null as _cdc_key_before,
                null::int as _cdc_ordinal, null as _cdc_error, null as _cdc_raw, []::text[] as _cdc_missing
                from (values (1, 7), (2, null), (3, 7)) as s (_cdc_batch_id, _cdc_sequence)"""
            )

        def kept(_: str, sql: str) -> None:
            sql = sql.replace("<=>", "is not distinct from").replace("`", '"').replace("sort_array(", "list_sort(")
            found.extend(connection.execute(f"select _cdc_batch_id, _cdc_row from ({sql}) order by 1").fetchall())

        before = "(select * from staged where _cdc_batch_id < 3)"
        table = {"name": "f.t", "staging": before, "grows": [], "settings": settings}
        made = {"_ledger": lambda: "", "_staging_tables": lambda **_: [table], "_staging_sql": lambda *_: "select * from again"}
        adapter = SimpleNamespace(
            create_kept_view=kept, query_rows=lambda sql: [{"n": 0}] if "count(*) as n from cdc" in sql else []
        )
        load(made, adapter=adapter, print=lambda _: None)["replay"](["stg_f__t"])
    assert found == replayed


@pytest.mark.parametrize(("insert_only", "is_told"), [(True, True), (False, False)])
def test_Q3_N2_E1_a_replayed_row_is_known_again_by_what_it_told_of_a_column(insert_only: bool, is_told: bool) -> None:
    """Where rows are only added, as when they are loaded: it would be there twice."""
    kept: list[str] = []
    types = {"staged_types": SETTINGS["column_types"], "joined_after": {"a": 7}, "insert_only": insert_only}
    table = {"name": "f.t", "staging": "s.stg", "grows": [], "settings": {**SETTINGS, **types}}
    adapter = SimpleNamespace(
        create_kept_view=lambda _, sql: kept.append(sql), query_rows=lambda sql: [{"n": 0}] if " as n from cdc_" in sql else []
    )
    fakes = giving({"_ledger": "", "_staging_tables": [table], "_staging_sql": "read"})
    load(fakes, adapter=adapter, print=lambda _: None)["replay"](["stg_f__t"])
    assert ("coalesce(`a`, " in kept[0] and "map_filter(_cdc_undeclared, " in kept[0]) == is_told


def test_E1_what_was_staged_before_a_column_was_listed_says_nothing_of_it() -> None:
    settings = {"column_types": {"id": "int", "b": "int"}}
    properties = {"delta_cdc.joined_after": '{"b": 7, "gone": 3}'}
    for columns, new, came, is_null in (
        (["id"], ["b"], "_cdc_batch_id", ""),  # staging is only about to gain it
        (["id", "b"], [], "_cdc_batch_id", " and `b` is null"),
        (["id", "b", "_cdc_revised_in"], [], "coalesce(_cdc_revised_in, _cdc_batch_id)", " and `b` is null"),
    ):
        MACROS["note_columns"](settings, SimpleNamespace(columns=dict.fromkeys(columns, "int"), properties=properties), new)
        assert settings["joined_after"] == {"b": 7}
        assert MACROS["staged_rows"](settings, "s.stg") == (
            "(select * except (_cdc_missing), array_union(_cdc_missing, concat("
            f"if({came} <= 7 and _cdc_op in ('I', 'U', 'R'){is_null}, array('b'), array())))"
            " as _cdc_missing from s.stg)"
        )


def test_E3_columns_that_are_no_longer_listed_stay_where_they_were_published() -> None:
    settings = {**SETTINGS, "on_schema_change": "append_new_columns", "columns": ["id"], "tracked": ["id"]}
    retired = MACROS["_retired_columns"](settings, ["ID", "gone", "never_published", "_cdc_op"])
    assert retired == ["gone", "never_published"]
    MACROS["_publish_retired"](settings, retired, ["id", "gone"])
    assert (settings["columns"], settings["tracked"]) == (["id", "gone"], ["id", "gone"])
    assert MACROS["_retired_columns"]({**settings, "on_schema_change": "sync_all_columns"}, ["gone"]) == []


@pytest.mark.parametrize(("policy", "columns"), [("append_new_columns", ["id", "a", "gone"]), ("sync_all_columns", ["id", "a"])])
def test_E3_columns_of_final_that_are_no_longer_listed_are_exported_and_compared(policy: str, columns: list[str]) -> None:
    adapter = SimpleNamespace(
        get_columns_in_relation=lambda _: [SimpleNamespace(name=name) for name in ("ID", "a", "gone", "_cdc_is_deleted")],
        table_state=lambda _: SimpleNamespace(columns=["id", "a", "gone", "never_published", "_cdc_op"]),
    )
    settings = {**SETTINGS, "on_schema_change": policy, "columns": ["id", "a", "of_the_next_run"], "tracked": ["id"]}
    table = SimpleNamespace(settings=settings, staging="stg")
    assert load(adapter=adapter)["_columns_of_final"](table, "final") == columns


def test_E3_H3_a_column_that_is_no_longer_listed_begins_no_versions_where_the_feed_does_not_track_it() -> None:
    settings = {**SETTINGS, "columns": ["id"], "tracked": ["id"], "track_columns": {"except": ["Seen"]}}
    MACROS["_publish_retired"](settings, ["seen", "gone"], ["id", "seen", "gone"])
    assert (settings["columns"], settings["tracked"]) == (["id", "seen", "gone"], ["id", "gone"])


def test_Q2_R1_tables_that_use_no_operation_have_the_same_sql() -> None:
    sql = MACROS["_staging_ctes"](SETTINGS, "lines_view")
    assert MACROS["unheld"](SETTINGS, "s.staging") == "s.staging"
    assert not [word for word in ("erased", "too_late", "_cdc_revised_in", "cdc_holds") if word in sql]
    settings = {**SETTINGS, "columns": ["id", "a"], "partition_by": []}
    late = load(this="s.final")["_winners_late"](settings, "s.staging", None, 7)
    assert "_cdc_revised_in" not in late
    assert "_cdc_revised_in > 7" in load(this="s.final")["_winners_late"](settings, "s.staging", None, 7, True)


def test_R1_K6_what_is_folded_is_no_half_of_a_key_change() -> None:
    """An update whose structs are filled by field has to be one no more; as an insert, a delete beside it in its transaction
    would be the key that it left."""
    asked = {"at": "{}", "type": "struct<>", "until": "9", "now": 1, "n": 0}
    written: list[str] = []
    made: dict[str, Any] = {
        "can_be_noted": lambda *_: True, "_time_type": lambda _: "int", "_refuse_no_moment": lambda *_: "",
        "horizon": lambda _: None, "_announce": lambda *_: "", "_compacted": lambda *_: "select 1",
        "_folded_columns": lambda _: ["id", "s"],
        "_write": lambda _, sql, __: written.append(sql) or SimpleNamespace(rows_deleted=0),
    }  # fmt: skip
    adapter = SimpleNamespace(query_rows=lambda _: [SimpleNamespace(**asked)], create_kept_view=lambda *_: None)
    settings = {"filled_by_field": ["s"], "joined_after": {}, "set_on_insert": [], "key_changes": False}
    state = SimpleNamespace(batch_id=1, properties={}, notes={})
    fold = load(made, adapter=adapter, print=lambda _: "")["_fold"]
    fold(SimpleNamespace(name="f.t", staging="stg", settings=settings), state, 9)
    (operation,) = re.findall(r"_cdc_op = '(\w)',", written[0])
    assert operation not in "ID"  # of these pairs are made
    assert operation != "U"


@pytest.mark.parametrize(("keys", "key_changes", "moved", "why"), [
    (["id"], True, [], []), (["ID"], True, [], []), (["id"], False, [], []),
    (["a"], True, [], ["staging was loaded with other `keys` (id): put them back, or let it take over the new ones by `dbt run "
                       "--full-refresh --select stg_f__t+`"]),
    (["id"], False, [{"found": 1}], ["`key_changes` is false, and changes of keys were staged before: put `key_changes`, "
                                     "`old_keys` or `split_key_changes` back as they were"]),
])  # fmt: skip
def test_R1_K8_nothing_is_folded_by_keys_at_which_a_run_stops(
    keys: list[str], key_changes: bool, moved: list, why: list[str]
) -> None:
    """Once they are put back, rows of other keys would be gone, and those that moved would be back where they left."""
    settings = {**SETTINGS, "feed": "f", "table": "t", "keys": keys, "key_changes": key_changes, "renamed_in_staging": {}}
    state = SimpleNamespace(rebuild=False, properties={}, notes={"keys": ["id"], "key_changes": True}, committed=7)
    fakes = {"_model_of": "final", "progress": SimpleNamespace(batch_id=7)}
    macros = load(giving(fakes), adapter=SimpleNamespace(query_rows=lambda _: moved))
    assert macros["_against_compaction"](SimpleNamespace(settings=settings, staging="stg", grows=[]), state) == why


@pytest.mark.parametrize("restored", [True, False])
def test_R1_S5_a_restored_staging_is_not_folded(restored: bool) -> None:
    """A run refuses it, for it lacks changes perhaps; it does not tell how far it has come, so final seems to have taken all."""
    settings = {**SETTINGS, "key_changes": False, "renamed_in_staging": {}}
    state = SimpleNamespace(rebuild=restored, properties={}, notes={}, committed=-1 if restored else 7)
    macros = load(giving({"_model_of": "final", "progress": SimpleNamespace(batch_id=7)}))
    table = SimpleNamespace(settings=settings, staging="s.stg", grows=[])
    said = r"s\.stg was restored, .*: restore table s\.stg to version as of the newest one that has userMetadata"
    with pytest.raises(CompilerError, match=said) if restored else nullcontext():
        assert macros["_against_compaction"](table, state) == []


def test_R2_what_comes_again_of_an_erased_key_is_blanked() -> None:
    views: list[tuple[Any, ...]] = []
    adapter = SimpleNamespace(create_values_view=lambda *view: views.append(view))
    macros = load(adapter=adapter, env_var=lambda name, default: "hush")
    sql = macros["_staging_ctes"]({**SETTINGS, "erased_in": "s.staging"}, "lines_view")
    assert "case\n      when not _cdc_parsed then 'unparsable'\n      when exists(_cdc_erased_keys, _cdc_e -> " in sql
    assert re.search(r"from keyed cross join \(select \*, .* as _cdc_secret\s+from \(select collect_list\(", sql)
    assert "if(_cdc_error <=> 'erased', null, `a`) as `a`" in sql
    assert "if(_cdc_error is null or _cdc_error = 'erased', cast(null as string), _cdc_message) as _cdc_raw" in sql
    assert "case when _cdc_error <=> 'erased' then null when _cdc_op in" in sql
    known = macros["_keyed_hash"](macros["all_quoted"](["id"]))
    assert "concat(_cdc_secret, " in known
    assert "struct(`id` as `1`)" in known
    staying = macros["_stays_of_erased"](SimpleNamespace(settings={**SETTINGS, "key_changes": False}))
    # dbt logs and compiles it
    assert "hush" not in sql + staying
    assert sql.count("cdc_erase_secret") == staying.count("cdc_erase_secret") == 1
    assert views == [("cdc_erase_secret", ["_cdc_secret"], [["hush"]])] * 2


def test_R2_no_column_is_hidden_where_keys_are_compared_with_the_erased_ones() -> None:
    """The parameter of a lambda hides the column of its name; names with _cdc_ are no column's."""
    types = {**SETTINGS["column_types"], "e": "int"}
    sql = MACROS["_staging_ctes"]({**SETTINGS, "keys": ["e"], "column_types": types, "erased_in": "s.staging"}, "lines_view")
    (parameter,) = set(re.findall(r"exists\(_cdc_erased_keys, (\w+) -> ", sql))
    assert parameter.startswith("_cdc_")
    assert "struct(`e` as `1`)" in sql


@pytest.mark.parametrize(("command", "writes"), [("run", 1), ("run-operation", 1), ("compile", 0), ("show", 0), ("generate", 0)])
def test_R2_what_only_reads_takes_nothing_out_of_raw(command: str, writes: int) -> None:
    ran: list[str] = []
    adapter = SimpleNamespace(create_kept_view=lambda name, sql: None)
    macros = load(adapter=adapter, flags=SimpleNamespace(WHICH=command), run_query=ran.append)
    macros["_erase_again_from_raw"]({**SETTINGS, "erased_in": "s.staging"}, "s.raw_f", "lines_view")
    assert [sql.partition(" as t")[0] for sql in ran] == ["merge into s.raw_f"] * writes


def test_R2_messages_of_raw_are_not_read_by_the_kinds_of_other_lines() -> None:
    """Of a table that was private the lines are the files', which a retracted change set is not among."""
    read: list[str] = []
    adapter = SimpleNamespace(create_kept_view=lambda name, sql: read.append(sql))
    macros = load(adapter=adapter, flags=SimpleNamespace(WHICH="run"), run_query=read.append)
    settings = {**SETTINGS, "format": "debezium", "decimal_handling": "precise", "time_unit": "micros", "unavailable_value": "?"}
    kinds = dict.fromkeys(macros["debezium_kinds"](), False)
    macros["_erase_again_from_raw"]({**settings, "erased_in": "s.staging", "kinds": kinds}, "s.raw_f", "lines_view")
    assert "is_record" in read[0]
    assert "is_record" not in macros["_staging_ctes"]({**settings, "kinds": kinds}, "lines_view")


def test_R2_keys_that_a_person_had_are_told_by_key_changes_only() -> None:
    assert "_cdc_key_before.`id`" in MACROS["_keys_of_row"](SETTINGS)
    sql = MACROS["_keys_of_row"]({**SETTINGS, "key_changes": False})
    assert "select k.`id`, _cdc_sequence, _cdc_ordinal\n  from cdc_changes_of_row cross join cdc_named_key as k" in sql


def test_R2_a_table_that_a_person_was_erased_from_keeps_its_keys() -> None:
    erased = {"delta_cdc.erased": "true"}
    assert adopted(["id"], ["id"], {"keys": ["id"]}, **erased)[1] == []
    with pytest.raises(CompilerError, match=r"`keys` were \[id\] and are now \[id, a\], and a person was erased"):
        adopted(["id", "a"], ["id"], {"keys": ["id"]}, **erased)
    state = SimpleNamespace(properties=erased)
    with pytest.raises(CompilerError, match="`alternate_keys` and an erased person exclude each other"):
        MACROS["_keep_out"]({**SETTINGS, "feed": "f", "table": "t", "alternate_keys": [["a"]]}, "s.staging", state)
    with pytest.raises(CompilerError, match="or a person was erased from it"):
        MACROS["_keep_out"]({**SETTINGS, "feed": "f", "table": "t"}, "s.staging", state, SimpleNamespace(rewrite=["a"]))
    wider = [("decimal(5,2)", "decimal(10,4)"), ("integer", "decimal(12,1)"), ("integer", "double"), ("date", "timestamp_ntz")]
    for before, after in [*wider, ("integer", "bigint"), ("decimal(5,2)", "DECIMAL(10, 2)"), ("byte", "decimal(10,0)")]:
        state = SimpleNamespace(properties=erased, columns={"id": before})
        evolved = SimpleNamespace(rewrite=[], widened=["id"], types={"id": after})
        arguments = ({**SETTINGS, "feed": "f", "table": "t"}, "s.staging", state, evolved)
        if (before, after) in wider:
            with pytest.raises(CompilerError, match=r"id was .* and is now .*, and a person was erased from it"):
                MACROS["_keep_out"](*arguments)
        else:
            MACROS["_keep_out"](*arguments)
    before_it = ("_refuse_restored", "_refuse_other_rows", "_adopt_keys")
    after_it = ("_note_renaming", "_note_joining", "_grow_rows_before", "_widen_parts", "_grow_structs")
    quiet = giving(dict.fromkeys(("refuse_sample", *before_it, *after_it), ""))
    paused = {**SETTINGS, "feed": "f", "table": "t", "paused": "it moves"}
    made = {
        **quiet,
        "settings": lambda _: paused,
        "_staged_columns": lambda *_: SimpleNamespace(rewrite=["a"]),
        "progress": lambda _: SimpleNamespace(exists=True, notes={}, properties=erased),
        "_staging_idle": lambda *_: "anew",
    }
    with pytest.raises(CompilerError, match="or a person was erased from it"):
        load(made, this="s.staging")["staging"]("source", "s.ledger")
    state = SimpleNamespace(properties=erased)
    settings = dict(SETTINGS)
    MACROS["_keep_out"](settings, "s.staging", state)
    assert settings["erased_in"] == "s.staging"


def test_R2_what_was_erased_is_known_by_the_same_secret_only() -> None:
    one, other = (load(env_var=lambda name, default, secret=secret: secret) for secret in ("one", "other"))
    table = {**SETTINGS, "feed": "f", "table": "t"}
    erased = SimpleNamespace(properties={"delta_cdc.erased": one["_erase_secret_digest"]()})
    for macros, state in ((one, erased), (other, SimpleNamespace(properties={}))):
        macros["_need_erase_secret"](table, state)
    with pytest.raises(CompilerError, match="under another DELTA_CDC_ERASE_SECRET than this run has"):
        other["_need_erase_secret"](table, erased)


class Relation(SimpleNamespace):
    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"

    render = __str__


class LogAdapter(Adapter):
    """Notes what the model asks of the adapter."""

    def __init__(self, found: int, states: dict, noted: list) -> None:
        super().__init__(states, {}, noted)
        self.found, self.asked, self.plan = found, [], {}

    def create_view_from_python(self, name: str, function: str, arguments: dict) -> None:
        self.asked = arguments["tables"]

    def query_rows(self, sql: str) -> list[dict]:
        return [{"found": self.found}]

    def plan_write(self, relation: Relation, plan: dict) -> None:
        self.plan = plan


def log_asks(found: int, state: dict, noted: list) -> LogAdapter:
    adapter = LogAdapter(found, {"cdc_table_log": {**no_state(), **state}}, noted)
    incremental = SimpleNamespace(materialized="incremental")
    nodes = [
        SimpleNamespace(name=name, alias=name, resource_type="model", database=None, schema="s", config=config)
        for name, config in (
            ("cdc_change_sets", incremental),
            ("cdc_table_log", incremental),
            ("stg_f__t", incremental),
            ("stg_mine__t", incremental),  # a name that the package would give; none of its feeds has it
            ("hist_f__t", SimpleNamespace(materialized="view")),
        )
    ]
    macros = load(
        adapter=adapter,
        this=Relation(schema="s", identifier="cdc_table_log"),
        graph=SimpleNamespace(nodes={node.name: node for node in nodes}, sources={"source.p.f.t": feed_table("f", "t")}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    assert "from cdc_new_commits" in macros["table_log"]()
    return adapter


def test_a_plan_leaves_out_a_model_that_is_named_as_a_feed_and_not_the_feed() -> None:
    def model(name: str, folder: str) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            resource_type="model",
            fqn=["p", *folder.split("/")[1:], name],
            is_versioned=False,
            original_file_path=f"{folder}/{name}.sql",
            config=SimpleNamespace(materialized="view"),
        )

    nodes = {"shop": model("shop", "models"), "staging": model("stg_shop__t", "models/shop/staging")}
    said: list[str] = []
    relations = SimpleNamespace(create=lambda **parts: Relation(**parts))
    fakes = {name: Relation(schema="s", identifier=name) for name in ("_runs_relation", "holds_relation")}
    macros = load(
        giving(fakes),
        graph=SimpleNamespace(sources={"f.t": feed_table("shop", "t")}, nodes=nodes),
        api=SimpleNamespace(Relation=relations),
        print=said.append,
    )
    macros["plan_tables"]()
    (other,) = json.loads(said[0])["others"]
    method, _, text = other.rpartition(":")
    search = {"": QualifiedNameSelectorMethod, "file": FileSelectorMethod}[method](SimpleNamespace(), None, [])
    search.all_nodes = search.non_source_nodes = lambda _: nodes.items()
    assert [*search.search(set(), text)] == ["shop"]


def test_the_log_of_all_tables_asks_for_what_is_newer_than_it_has_and_leaves_itself_out() -> None:
    noted = [{"schema": "s", "table": "stg_f__t", "newest": {"version": 4, "commit_id": "x"}}]
    adapter = log_asks(3, {"txn_version": 8}, noted)
    assert adapter.asked == [
        {"schema": "s", "table": "cdc_change_sets"},
        {"schema": "s", "table": "stg_f__t", "version": 4, "commit_id": "x"},
        {"schema": "s", "table": "cdc_runs"},
        {"schema": "s", "table": "cdc_holds"},
    ]
    assert adapter.plan == {"skip": False, "txn": {"app_id": "cdc_table_log@0", "version": 9}}
    assert log_asks(0, {}, []).plan == {"skip": True, "txn": {"app_id": "cdc_table_log@0", "version": 1}}


def test_Q1_the_view_of_bad_rows_fits_the_metastore_however_many_tables() -> None:
    """Derby keeps 32,700 characters of a view."""

    def made(tables: int) -> list[str]:
        names = [f"a_table_with_a_name_of_some_length_{number}" for number in range(tables)]
        nodes = [
            SimpleNamespace(
                name=name,
                alias=name,
                database=None,
                schema="a_schema_of_some_length",
                resource_type="model",
                config=SimpleNamespace(materialized="incremental"),
            )
            for name in ["cdc_change_sets", *(f"stg_feed_of_tables__{name}" for name in names)]
        ]
        there = SimpleNamespace(exists=True)
        adapter = SimpleNamespace(table_state=lambda relation: there, view_is=lambda view, sql: False)
        ran: list[str] = []
        load(
            adapter=adapter,
            run_query=ran.append,
            graph=SimpleNamespace(
                nodes={node.name: node for node in nodes}, sources={name: feed_table("feed_of_tables", name) for name in names}
            ),
            api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
        )["quarantine_view"]()
        assert all(any(f"stg_feed_of_tables__{name} where" in sql for sql in ran) for name in names)
        assert max(map(len, ran)) < 32_700
        return ran

    assert len(made(3)) == 1
    *parts, whole = made(300)
    views = [f"a_schema_of_some_length.cdc_quarantine_{number}" for number in range(1, 7)]
    assert [part.splitlines()[0] for part in parts] == [f"create or replace view {view} as" for view in views]
    assert whole.splitlines()[1::2] == [f"select * from {view}" for view in views]


@pytest.mark.parametrize("is_on", [True, False])
def test_maintain_looks_at_the_log_of_tables_also_where_its_variable_is_not_given(is_on: bool) -> None:
    looked_at: list[str] = []
    names = ["cdc_change_sets", "stg_f__t", "final_t", *(["cdc_table_log"] if is_on else [])]
    nodes = [
        SimpleNamespace(
            name=name,
            alias=name,
            resource_type="model",
            database=None,
            schema="s",
            config=SimpleNamespace(materialized="incremental"),
        )
        for name in names
    ]
    adapter = SimpleNamespace(
        table_state=lambda relation: SimpleNamespace(exists=True),
        table_statistics=lambda relation: SimpleNamespace(files=96, bytes=96),
        optimize=lambda relation, order: looked_at.append(relation.identifier) or True,
        refusal_of=lambda macro, *given: macro(*given) and "",
    )
    policy = SimpleNamespace(get=lambda *_: SimpleNamespace(properties={}, order=""))
    macros = load(
        giving({"_tables_to_look_at": [], "_policies": policy}),
        adapter=adapter,
        print=lambda text: None,
        graph=SimpleNamespace(
            nodes={f"model.delta_cdc.{node.name}": node for node in nodes}, sources={"source.p.f.t": feed_table("f", "t")}
        ),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    macros["maintain"](vacuum=False)
    assert looked_at == ["cdc_change_sets", "stg_f__t", "final_t", "cdc_runs", "cdc_holds", "cdc_table_log"]
    looked_at.clear()
    macros["maintain"](["stg_f__t"], vacuum=False)
    assert looked_at == ["stg_f__t"]


@pytest.mark.parametrize("own", [
    {"keyless": "append"}, {"keyless": "multiset"}, {"insert_only": True}, {"alternate_keys": [["b"]]}, {"history": "table"}, {},
])  # fmt: skip
def test_R1_the_days_of_a_feed_are_not_meant_for_its_tables_that_are_never_compacted(own: dict[str, Any]) -> None:
    """Each night it would be said of them, where nothing is wrong and nothing to be done."""
    looked_at: list[str] = []
    settings = {**SETTINGS, "feed": "f", "table": "t", "compact_after_days": 30, **own}
    made = {**giving({"_tables_to_look_at": [settings], "_maintained": {}, "_policies": {}}),
            "_compact_by_policy": lambda settings: looked_at.append(settings["table"])}  # fmt: skip
    adapter = SimpleNamespace(refusal_of=lambda macro, *given: macro(*given) or "")
    load(made, adapter=adapter, print=lambda _: None)["maintain"]()
    assert looked_at == ([] if own else ["t"])


def test_maintain_goes_on_where_a_table_fails_and_ends_with_its_error() -> None:
    """What a run refuses of one table (its staging was restored, its rows became others), and a table whose files are gone."""
    folded: list[str] = []
    said: list[str] = []

    def as_staged(settings: dict[str, Any]) -> SimpleNamespace:
        if settings["table"] == "a":
            raise CompilerError("stg_f__a was restored")
        return SimpleNamespace(name=f"f.{settings['table']}", settings=settings, staging="s.stg")

    def optimize(relation: str, order: str) -> bool:
        if relation == "s.final_a":
            raise FileNotFoundError("part-1.parquet is gone")
        return True

    adapter = SimpleNamespace(
        table_state=lambda _: SimpleNamespace(exists=True),
        table_statistics=lambda _: SimpleNamespace(files=96, bytes=96),
        optimize=optimize,
        refusal_of=lambda *given: FilesMixin.refusal_of(None, *given),
        vacuum=lambda _: {"files": 3, "bytes": 4_500_000},
        query_rows=lambda _: [SimpleNamespace(horizon="2026-01-01")],
    )
    settings = [{**SETTINGS, "feed": "f", "table": name, "compact_after_days": 30} for name in "ab"]
    fakes = giving({
        "_tables_to_look_at": settings, "_time_type": "date", "progress": SimpleNamespace(), "_against_compaction": [],
        "_maintained": {"final_a": "s.final_a", "final_b": "s.final_b"},
        "_policies": SimpleNamespace(get=lambda *_: SimpleNamespace(properties={}, order="")),
    })  # fmt: skip
    made = {**fakes, "_as_staged": as_staged, "_fold": lambda table, *_, **__: folded.append(table.name) or ""}
    with pytest.raises(CompilerError) as refused:
        load(made, adapter=adapter, print=said.append)["maintain"]()
    assert str(refused.value).splitlines() == [
        "table f.a is not compacted: stg_f__a was restored",
        "table s.final_a is not maintained: part-1.parquet is gone",
    ]
    assert folded == ["f.b"]
    assert said == [
        "table s.final_b: 96 files, now 96, 3 old files removed (4.5 MB)",
        "2 tables looked at, 1 had something to be done; 4.5 MB of old files removed.",
    ]


def test_maintain_tells_no_size_of_old_files_that_is_not_known() -> None:
    said: list[str] = []
    adapter = SimpleNamespace(
        table_state=lambda _: SimpleNamespace(exists=True),
        table_statistics=lambda _: SimpleNamespace(files=9, bytes=9),
        vacuum=lambda _: {"files": 3, "bytes": 0},  # another commit came while VACUUM was at work
    )
    load(adapter=adapter, print=said.append)["_maintain_table"]("s.final_a", SimpleNamespace(properties={}), True, 96, [])
    assert said == ["table s.final_a: 9 files, now 9, 3 old files removed"]


@pytest.mark.parametrize(
    ("feed", "is_raw"),
    [
        ({"format": "rows", "location": "landing/{table}"}, False),
        ({"format": "rows", "location": "landing"}, False),
        ({"format": "maxwell", "location": "landing/{table}"}, False),
        ({"format": "maxwell", "location": "landing"}, True),
    ],
)
def test_Q1_a_model_called_raw_is_somebody_else_s_where_tables_have_files_of_their_own(feed: dict, is_raw: bool) -> None:
    nodes = [
        SimpleNamespace(
            name=name,
            alias=name,
            database=None,
            schema="s",
            resource_type="model",
            unique_id=name,
            depends_on=SimpleNamespace(nodes=[]),
            config=SimpleNamespace(materialized="incremental"),
        )
        for name in ("cdc_change_sets", "stg_shop__t", "raw_shop")
    ]
    source = feed_table("shop", "t")
    source.source_meta["cdc"] = feed
    purged: list[str] = []
    settings = {"feed": "shop", "table": "t"}
    macros = load(
        giving({"_staging_table": SimpleNamespace(settings=settings)}),
        print=lambda _: "",
        adapter=SimpleNamespace(
            table_state=lambda relation: SimpleNamespace(exists=True), purge=lambda relation: purged.append(str(relation))
        ),
        graph=SimpleNamespace(nodes={node.name: node for node in nodes}, sources={"shop.t": source}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    loading = [str(table["relation"]) for table in macros["_loading_tables"]()]
    assert (macros["raw_of"](settings) is not None) == is_raw  # of which erase takes a person's messages
    macros["purge_erased"]("stg_shop__t")
    assert purged == loading
    assert loading == ["s.stg_shop__t", *(["s.raw_shop"] if is_raw else [])]
    assert ("raw_shop" in macros["written_tables"]()) == is_raw


def test_R2_erase_names_the_tables_that_other_models_make_of_what_it_erased() -> None:
    made_of = {
        "stg_shop__t": [],
        "final_t": ["stg_shop__t"],
        "contacts": ["letters"],
        "letters": ["final_t"],
        "seen": ["final_t"],
        "other": ["somebody_else_s"],
        "raw_shop": [],
        "stg_shop__u": ["raw_shop"],
        "final_u": ["stg_shop__u"],
        "of_u": ["final_u"],
        "messages": ["raw_shop"],
    }
    nodes = {
        name: SimpleNamespace(name=name, alias=name, database=None, schema="s", resource_type="model", unique_id=name,
                              depends_on=SimpleNamespace(nodes=parents),
                              config=SimpleNamespace(materialized="view" if name == "seen" else "incremental"))
        for name, parents in made_of.items()
    }  # fmt: skip
    said: list[str] = []
    macros = load(
        giving({"_staging_table": SimpleNamespace(settings={"feed": "shop", "table": "t"})}),
        print=lambda text: said.append(text) or "",
        adapter=SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True), purge=lambda _: None),
        graph=SimpleNamespace(nodes=nodes, sources={f"shop.{name}": feed_table("shop", name) for name in ("t", "u")}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    macros["purge_erased"]("stg_shop__t")
    assert [line.partition(", which")[0] for line in said] == [
        "old files and log entries removed of s.stg_shop__t, s.final_t, s.raw_shop",
        "out of reach: s.contacts, s.letters, s.messages",
    ]  # of a feed that mixes tables the others' are not the person's


# What the ledger asks of a feed whose folder it has listed.
LISTED_FEED = {
    "feed": "f",
    "format": "rows",
    "unit": "file",
    "order": "name",
    "settle_seconds": 0,
    "list_after": False,
    "start_from": None,
    "expect_contiguous": False,
    "ready": None,
    "tables": ["t"],
}


def test_S4_change_sets_are_counted_and_numbered_at_one_moment() -> None:
    feed = {**LISTED_FEED, "settle_seconds": 60}
    sql = load()["_new_change_sets"]({"f": feed}, "select 1", 7, "timestamp'2026-01-01 00:00:00+00:00'")
    assert "modified_at <= timestamp'2026-01-01 00:00:00+00:00' - interval 60 seconds" in sql
    assert "current_timestamp() -" not in sql


@pytest.mark.parametrize(
    ("format", "above", "looked_at"), [("snapshots", None, True), ("snapshots", 3, False), ("rows", None, False)]
)
def test_S5_S10_a_ledger_that_is_completed_tells_old_copies(format: str, above: int | None, looked_at: bool) -> None:
    feed = {**LISTED_FEED, "format": format}
    sql = load()["_new_change_sets"]({"f": feed}, "select 1", 7, "now", above)
    assert ("if(is_new and feed in ('f') and struct(found_order, change_set)" in sql) is looked_at
    assert ("\nfrom compared\nwhere" if looked_at else "\nfrom met\nwhere") in sql


def test_S1_a_folder_that_two_tables_read_is_listed_once() -> None:
    def table(name: str, **given: Any) -> SimpleNamespace:
        cdc = {"format": "rows", "location": "landing/{table}", "sequence_by": ["seq"], **given}
        about = {"unique_id": name, "source_name": "f", "name": name}
        return SimpleNamespace(**about, source_meta={"cdc": cdc}, config={}, meta={}, columns={})

    tables = [table("customer"), table("masked", source_table="customer"), table("invoice")]
    feeds = load(graph=SimpleNamespace(sources={each.name: each for each in tables}))["_feeds"]()
    assert feeds["f"]["tables"] == ["customer", "invoice"]


@pytest.mark.parametrize("location", ["landing/shop/{table}", "/p/landing/shop/{table}/"])
@pytest.mark.parametrize(("start", "sql"), [
    ("2026", "name >= '2026'"),
    ("landing/shop/a/2026/11/", "change_set >= 'file:/p/landing/shop/a/2026/11'"),
    ("/p/landing/shop/b", "change_set >= 'file:/p/landing/shop/b'"),
    ("file:/p/landing/shop/a/2026", "change_set >= 'file:/p/landing/shop/a/2026'"),
    ("2026/11", "startswith(change_set, 'file:/p/landing/shop/a/') and change_set >= 'file:/p/landing/shop/a/2026/11'"
     " or startswith(change_set, 'file:/p/landing/shop/b/') and change_set >= 'file:/p/landing/shop/b/2026/11'"),
    ("/q/landing/shop/a/2026", None), ("file:/p/landing", None), ("/p/landing/shop/ab", None),
])  # fmt: skip
def test_S4_a_feed_starts_from_a_path_as_the_ledger_spells_it(location: str, start: str, sql: str | None) -> None:
    def qualified(path: str) -> str:
        path = path.removeprefix("file:").rstrip("/")
        return f"file:{path if path.startswith('/') else '/p/' + path}"

    unlisted: dict[str, str] = {}
    adapter = SimpleNamespace(qualified_path=qualified, recall={"unlisted": unlisted}.get)
    feed = {"feed": "f", "location": location, "tables": ["a", "b"], "start_from": start, "file_format": "json"}
    macros = load(adapter=adapter)
    assert macros["_from_start"](feed) == (sql or "false")
    assert unlisted == ({} if sql else {"f": f"`start_from` is {start}, which is in none of its folders."})
    if sql is None:  # nothing of a feed that cannot be listed is recorded
        assert macros["_from_start"]({**feed, "start_from": "2026/11"}) == "false"


@pytest.mark.parametrize(("name", "number"), [
    ("set-07.jsonl", "07"), ("0001.jsonl.bz2", "0001"), ("12.BZ2", "12"), ("a3.lz4.parquet", "3"),
    ("2026-01-02_05.json.gz", "05"), ("sets.bz2", None), ("n7lz4", "4"),
])  # fmt: skip
def test_S4_the_number_of_a_change_set_is_none_of_its_compression_s(name: str, number: str | None) -> None:
    without, wanted = re.findall(r"'(.+?)'", MACROS["_number_in"]("name").replace("''", "").replace("\\\\", "\\"))
    found = re.search(wanted, re.sub(without, "", name))
    assert (found and found[1]) == number


def taken(names: list[str], **settings: Any) -> list[str]:
    """The change sets of one folder that a first run records, in their order."""
    return [change_set for change_set, _, _ in recorded_first(names, **settings)]


def recorded_first(names: list[str], known: str | None = None, **settings: Any) -> list[tuple[str, int, int]]:
    """The same, each with its size and the day of January of its time: by the ledger's SQL, run by DuckDB. names: of files of one
    byte, each a day younger than the one before. known: the rows that the ledger has, as SQL; then only what is new is told."""
    return met_first(names, known, **settings)[0]


def met_first(names: list[str], known: str | None = None, **settings: Any) -> tuple[list[tuple[str, int, int]], list[dict]]:
    """The same, and what is told of those that wait."""
    feed = {**LISTED_FEED, "ready": "_SUCCESS", **settings}
    sql = load()["_new_change_sets"]({"f": feed}, "select * from known_sets", 0, "now()")
    for of_spark, of_duckdb in {
        " except (": " exclude (",
        "\\\\": "\\",
        "(?=\\.|$)": "",
        "startswith(": "starts_with(",
        "endswith(": "ends_with(",
        "current_timestamp()": "now()::timestamp",
    }.items():
        sql = sql.replace(of_spark, of_duckdb)
    with duckdb.connect() as connection:
        connection.execute("set default_null_order = 'nulls_first'")  # as Spark
        connection.execute("create macro element_at(list, place) as list[place]")
        connection.execute(
            "create table known_sets (feed text, change_set text, unit text, size bigint, modified_at timestamp, "
            "batch_id bigint, discovered_at timestamp, status text, retracted_at timestamp)"
        )
        if known:
            connection.execute(f"insert into known_sets {known}")
        connection.execute(
            "create table cdc_listing as select 'f' as feed, '/l/t/' || unnest($1) as path, 1::bigint as size, "
            "timestamp '2025-12-31' + interval 1 day * unnest(range(1, len($1) + 1)) as modified_at",
            [names],
        )
        found = connection.execute(
            f"select change_set, size::int, day(modified_at) from ({sql}) where is_new order by batch_id"
        ).fetchall()
        waiting = []
        if settings.get("expect_contiguous"):
            told = connection.execute(f"select * from ({sql}) where waits")
            waiting = [dict(zip([each[0] for each in told.description], row, strict=True)) for row in told.fetchall()]
    return [(change_set.removeprefix("/l/t/"), size, day) for change_set, size, day in found], waiting


def test_S4_a_change_set_without_a_number_waits_for_none_and_none_waits_for_it() -> None:
    assert taken(["s-1", "s-2", "s-4"], expect_contiguous=True) == ["s-1", "s-2"]
    assert taken(["full", "s-1", "s-2", "s-4"], expect_contiguous=True) == ["full", "s-1", "s-2"]


@pytest.mark.parametrize(("names", "known", "said"), [
    (["s-1", "s-2", "s-4", "s-5"], None, "2 change sets wait in /l/t, the first of them s-4: by `expect_contiguous` number 3"),
    (["s-09"], 5, "1 change set waits in /l/t, the first of them s-09: by `expect_contiguous` number 6 to 8 has to come first."),
    (["s-06", "s-08"], 5, "1 change set waits in /l/t, the first of them s-08: by `expect_contiguous` number 7 has to"),
    (["s-1", "s-2"], None, None), (["full", "s-06"], 5, None),
])  # fmt: skip
def test_S4_a_gap_in_the_numbers_is_told(names: list[str], known: int | None, said: str | None) -> None:
    """What waits behind it is recorded nowhere: without a word the feed would stand still."""
    row = f"select 'f', '/l/t/s-{known:02}', 'file', 1, timestamp '2026-01-01', 1, now(), 'recorded', null" if known else None
    new, waiting = met_first(names, row, expect_contiguous=True)
    assert len(new) == len(names) - sum(each["waiting"] for each in waiting)
    assert [
        MACROS["_says_gap"](SimpleNamespace(**each)).partition(" Deliver")[0].startswith(f"feed f: {said}") for each in waiting
    ] == [True] * bool(said)


def test_S4_change_sets_of_one_number_come_together() -> None:
    assert taken(["a-1", "b-1", "a-2", "b-2", "b-4"], expect_contiguous=True) == ["a-1", "a-2", "b-1", "b-2"]


def test_S4_a_file_that_hadoop_is_copying_is_not_there_yet() -> None:
    assert taken(["1.jsonl", "2.jsonl._COPYING_", "_3.jsonl", "4.jsonl"]) == ["1.jsonl", "4.jsonl"]
    assert taken(["1.jsonl", "2.jsonl._COPYING_", "4.jsonl"], list_after=True) == ["1.jsonl"]  # 4 would hide 2
    whole, half = ["a/_SUCCESS", "a/1.jsonl"], ["b/_SUCCESS", "b/1.jsonl", "b/2.jsonl._COPYING_"]
    assert taken(whole + half, unit="folder") == ["a"]


def test_S4_what_is_hidden_in_a_folder_makes_no_other_change_set_of_it() -> None:
    files = ["a/1.jsonl", "a/_SUCCESS"]
    assert recorded_first([*files, "a/.DS_Store", "a/_processed"], unit="folder") == recorded_first(files, unit="folder")
    assert recorded_first([*files, "a/2.jsonl"], unit="folder", order="modified") == [("a", 3, 3)]
    assert taken(["b/_started", "c/_SUCCESS", "c/1.jsonl"], unit="folder", list_after=True) == []  # b is being written


@pytest.mark.parametrize(("staged", "new"), [("'2026-01-02 01:00'", []), ("'2026-01-01 01:00'", ["latest.csv"]), ("null", [])])
def test_S4_S5_what_is_rewritten_after_the_ledger_was_lost_is_a_new_change_set(staged: str, new: list[str]) -> None:
    """The file is of January 2: of what the tables told of it only the time at which its rows were staged is known."""
    known = f"select 'f', '/l/t/latest.csv', 'file', null, null, 5, {staged}::timestamp, 'recovered', null"
    assert [each for each, _, _ in recorded_first(["0.csv", "latest.csv"], known)] == ["0.csv", *new]


class Ledger:
    """The adapter as the ledger's model sees it: what the table's log says, the rows of its query, what runs noted as done."""

    def __init__(self, state: dict, rows: list[dict], done: dict[str, int]) -> None:
        self.state, self.rows, self.done, self.kept, self.plan = {**no_state(), **state}, rows, done, {}, {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return {
            "table_state": lambda relation: self.state,
            "newest_notes": lambda relation: {"done": self.done},
            "create_listing_view": lambda name, patterns: {},
            "query_rows": lambda sql: self.rows,
            "cached_query": lambda relation, sql: [{"batch_id": 5, "change_set": "asked"}],
            "remember": self.kept.__setitem__,
            "recall": self.kept.get,
            "plan_write": lambda relation, plan: self.plan.update(plan),
        }.get(name, lambda *args, **kwargs: None)


def recorded(state: dict, rows: list[dict], done: dict[str, int] | None = None) -> tuple[Ledger, Mapping[str, Any]]:
    adapter = Ledger(state, rows, done or {})
    ledger = SimpleNamespace(
        name="cdc_change_sets",
        alias="cdc_change_sets",
        resource_type="model",
        database=None,
        schema="s",
        config=SimpleNamespace(materialized="incremental"),
    )
    macros = load(
        adapter=adapter,
        this=SimpleNamespace(identifier="cdc_change_sets"),
        invocation_id="me",
        graph=SimpleNamespace(nodes={"ledger": ledger}, sources={}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: SimpleNamespace(**parts))),
        modules=SimpleNamespace(re=re, datetime=datetime, pytz=SimpleNamespace(utc=datetime.timezone.utc)),
    )
    macros["change_sets"]()
    return adapter, macros


def test_S5_of_two_runs_that_find_change_sets_at_once_one_numbers_them() -> None:
    """Delta ignores a transaction whose number is there: the first batch's is the same for both, however many each found."""
    state = {
        "exists": True,
        "version": 3,
        "app_id": "cdc_change_sets@0",
        "txn_version": 7,
        "notes": {"last_batch_id": 9, "run": "other"},
    }
    rows = [{"batch_id": number, "is_new": number > 9} for number in (9, 10, 11)]
    adapter, macros = recorded(state, rows)
    assert adapter.plan["txn"] == {"app_id": "cdc_change_sets@0", "version": 10}
    assert (adapter.plan["skip"], adapter.plan["notes"]) == (False, {"last_batch_id": 11, "run": "me"})
    ledger = SimpleNamespace(identifier="cdc_change_sets")
    ours = {**adapter.state, "version": 4, "notes": adapter.plan["notes"]}
    assert macros["_recently_recorded"](ledger, ours)["rows"] == rows
    theirs = {**ours, "notes": {"last_batch_id": 10, "run": "other"}}
    assert macros["_recently_recorded"](ledger, theirs)["rows"][0]["change_set"] == "asked"


@pytest.mark.parametrize(("wish", "shown"), [("append_new_columns", True), ("ignore", True), ("sync_all_columns", False)])
def test_E3_explain_tells_a_column_that_final_goes_on_to_show(wish: str, shown: bool) -> None:
    """Of a key that the table no longer has, perhaps: K8."""
    asked: list[str] = []
    settings = {**SETTINGS, "columns": ["id", "a"], "on_schema_change": wish, "key_changes": False}
    table = SimpleNamespace(settings=settings, staging="s.stg")
    columns = {"id": "integer", "a": "integer", "was_key": "string", "_cdc_op": "string"}
    fakes = {"_named_row": table, "progress": SimpleNamespace(columns=columns), "_model_of": "s.final", "_rows_at_keys": []}
    adapter = SimpleNamespace(
        query_rows=lambda sql: asked.append(sql) or [],
        create_kept_view=lambda *_: None,
        table_state=lambda _: SimpleNamespace(exists=True),
    )
    load(giving(fakes), adapter=adapter, print=lambda _: "")["explain"]("stg_f__t")
    assert ("struct(`a`, `was_key`)" in asked[0], "struct(`a`)" in asked[0]) == (shown, not shown)


def test_S4_what_waits_behind_a_gap_is_told_by_the_run_and_not_recorded() -> None:
    state = {"exists": True, "version": 3, "app_id": "cdc_change_sets@0", "txn_version": 7, "notes": {"last_batch_id": 9}}
    first = {"feed": "f", "folder": "/l/t", "change_set": "/l/t/s-12", "number": 12, "gap_after": 10, "waiting": 2}
    rows = [{"batch_id": number, "is_new": number > 9, "waits": False} for number in (9, 10)]
    warned: list[str] = []
    adapter = Ledger(state, [*rows, {"batch_id": 11, "is_new": False, "waits": True, **first}], {})
    feed = {"feed": "f", "expect_contiguous": True, "location": "/l", "file_format": "json", "unit": "file", "sub_folders": False}
    made = giving({"_feeds": {"f": feed}, "_newest_names": {}, "_new_change_sets": "", "_highest_batch_of_tables": 9,
                   "_folder_of_change_sets": "/l"})  # fmt: skip
    load(
        made,
        adapter=adapter,
        this=SimpleNamespace(identifier="cdc_change_sets"),
        invocation_id="me",
        exceptions=SimpleNamespace(warn=warned.append),
        modules=SimpleNamespace(re=re, datetime=datetime, pytz=SimpleNamespace(utc=datetime.timezone.utc)),
    )["change_sets"]()
    assert adapter.plan["notes"]["last_batch_id"] == 10
    assert warned == [MACROS["_says_gap"](SimpleNamespace(**first))]
    assert adapter.plan["report"]["held"] == warned[0]  # the ledger's row in cdc_runs, by which `delta-cdc status` goes
    assert adapter.kept["recorded"]["rows"] == rows


@pytest.mark.parametrize(("sub_folders", "above"), [(False, -1), (True, -1), (False, 9), (True, 9)])
def test_S4_what_lies_in_folders_in_a_tables_folder_is_its_own_where_the_feed_says_so(sub_folders: bool, above: int) -> None:
    folders = {1: "/l/t", 2: "/l/t/day=1", 3: "/l/t/day=1/hour=2", 4: "/l/tt/day=1", 5: "/l"}
    rows = [
        {"feed": "f", "folder": f"file:{folder}", "batch_id": batch, "change_set": f"file:{folder}/{batch}", "status": "recorded"}
        for batch, folder in folders.items()
    ]
    ledger = SimpleNamespace(identifier="cdc_change_sets")
    met = {"ledger": str(ledger), "version": 1, "run": None, "above": above, "rows": rows}
    adapter = SimpleNamespace(
        recall={"recorded": met}.get,
        table_state=lambda _: SimpleNamespace(exists=True, version=1, notes={}),
        qualified_path=lambda path: f"file:{path}",
        changed_files=lambda pending, ready: [],
        cached_query=lambda *_: rows,
        query_rows=lambda _: ["asked"],
    )
    settings = {"feed": "f", "location": "/l/{table}", "source_table": "t", "file_format": "json", "sub_folders": sub_folders}
    pending = load(adapter=adapter)["pending_change_sets"]
    if above < 0:
        assert [each["batch_id"] for each in pending(ledger, settings, 0)] == ([1, 2, 3] if sub_folders else [1])
    else:  # far behind: the ledger is asked, where it has more than was done
        assert pending(ledger, settings, 2) == (["asked"] if sub_folders else [])
        assert pending(ledger, settings, 3) == []


@pytest.mark.parametrize(("list_after", "said"), [(False, "or run again: one that was rewritten"), (True, "is not seen.")])
def test_S4_a_change_set_that_was_rewritten_is_found_again_only_where_all_are_listed(list_after: bool, said: str) -> None:
    gone = {"change_set": "/l/1", "batch_id": 1, "size": 7, "modified_at": "then", "found": "8 bytes, modified now"}
    macros = load(adapter=SimpleNamespace(changed_files=lambda pending, ready: pending))
    with pytest.raises(CompilerError, match=f"recorded with 7 bytes, modified then; now 8 bytes(.|\n)*{re.escape(said)}"):
        macros["_check_unchanged"]({"feed": "f", "list_after": list_after}, [gone])


@pytest.mark.parametrize(("found", "said"), [("it is gone", True), ("8 bytes, modified now", False)])
def test_S4_what_goes_on_without_a_change_set_is_told_where_it_is_gone(found: str, said: bool) -> None:
    change_set = {"change_set": "/l/1", "batch_id": 1, "size": 7, "modified_at": "then", "found": found}
    macros = load(adapter=SimpleNamespace(changed_files=lambda pending, ready: pending))
    with pytest.raises(CompilerError) as error:
        macros["_check_unchanged"]({"feed": "f", "list_after": False}, [change_set])
    assert ("`delta-cdc retract` goes on without one that is gone." in str(error.value)) == said


@pytest.mark.parametrize(
    ("location", "mask", "told"), [("l", {"a": "1"}, True), ("l", {}, True), ("l/{table}", {"a": "1"}, False)]
)
def test_S4_E7_that_a_retraction_takes_from_other_tables_too_is_told(location: str, mask: dict, told: bool) -> None:
    """Of a table that was private too, which reads the change sets up to where raw left it out; raw itself is before them all."""
    gone = {"change_set": "/l/1", "batch_id": 1, "size": 7, "modified_at": "then", "found": "it is gone"}
    settings = {
        "feed": "f",
        "list_after": False,
        "sub_folders": False,
        "format": "debezium",
        "location": location,
        "mask": mask,
        "source_table": "t",
    }
    raw = SimpleNamespace(batch_id=7, notes={"withheld": {"t": 7}})
    recently = SimpleNamespace(above=-1, rows=[{**gone, "feed": "f", "folder": "/l", "status": "recorded"}])
    macros = load(
        giving({"progress": raw, "_ledger": "s.ledger", "qualified_folder": "/l", "_recently_recorded": recently}),
        adapter=SimpleNamespace(
            recall=lambda _: None, changed_files=lambda sets, ready: sets, table_state=lambda _: SimpleNamespace(exists=True)
        ),
    )
    asked = {"_new_lines": (settings, "s.raw", SimpleNamespace(batch_id=-1)), "pending_change_sets": ("s.ledger", settings, -1)}
    for macro, arguments in asked.items():
        with pytest.raises(CompilerError) as error:
            macros[macro](*arguments)
        is_told = "is gone, and takes back what other tables of the feed have loaded of it." in str(error.value)
        assert is_told == (told and macro == "_new_lines")


@pytest.mark.parametrize(("given", "found"), [
    ("day", 3), ("/l/t/day/", 3), ("t/day/", 3), ("2", "the end of the path of one, with a slash in it: 1 "), ("t/2", 1),
    ("set", "the batch id of one: 4 "), ("5", 5), ("tag", "There is no change set `tag`. Nearest: 3 "),
])  # fmt: skip
def test_S9_a_change_set_is_named_by_path_name_or_batch(given: str, found: int | str) -> None:
    paths = ["file:/l/t/2", "file:/l/t/1", "file:/l/t/day", "file:/l/t/set", "file:/l/u/set"]
    with duckdb.connect() as connection:
        connection.execute("create macro element_at(list, place) as list[place]")
        connection.execute(
            "create table ledger as select unnest($1) as change_set, unnest([1, 2, 3, 4, 5]) as batch_id, "
            "'folder' as unit, 'recorded' as status",
            [paths],
        )

        def query_rows(sql: str) -> list[dict[str, Any]]:
            asked = connection.execute(sql.replace("endswith(", "ends_with("))
            return [dict(zip(["change_set", "batch_id", "unit", "status", "name"], row, strict=True)) for row in asked.fetchall()]

        named = load(adapter=SimpleNamespace(query_rows=query_rows))["_named_change_set"]
        if isinstance(found, int):
            assert named("ledger", given)["batch_id"] == found
        else:
            with pytest.raises(CompilerError, match=re.escape(found)):
                named("ledger", given)


@pytest.mark.parametrize(("sizes", "order", "done", "refused"), [
    ([7, 8], "_commit_version", 2, True), ([7, 7], "_commit_version", 2, False), ([7, 8], "changed_at", 2, False),
    ([7, 8], "_commit_version", -1, False),
])  # fmt: skip
def test_S4_O1_a_delta_table_that_counts_anew_is_not_taken_for_late_changes(
    sizes: list[int], order: str, done: int, refused: bool
) -> None:
    commit = "/l/t/_delta_log/00000000000000000000.json"
    with duckdb.connect() as connection:
        connection.execute(
            "create table ledger as select 'f' as feed, $1 as change_set, unnest($2) as size, "
            "unnest([1, 3]) as batch_id, 'recorded' as status",
            [commit, sizes],
        )

        def asked(_: str, sql: str) -> list[dict[str, Any]]:
            return [{"change_set": change_set} for (change_set,) in connection.execute(sql).fetchall()]

        refuse = load(adapter=SimpleNamespace(cached_query=asked))["_refuse_versions_anew"]
        settings = {"feed": "f", "table": "t", "format": "delta_cdf", "sequence_by": [order]}
        pending = [{"change_set": commit, "batch_id": 3}]
        if refused:
            with pytest.raises(CompilerError, match=r"feed f, table t: batch 3 \(.*\) is another commit .* made anew"):
                refuse("ledger", settings, pending, done)
        else:
            refuse("ledger", settings, pending, done)


def test_S5_a_ledger_that_somebody_else_wrote_to_is_asked_how_far_it_is() -> None:
    state = {"exists": True, "version": 3, "app_id": "cdc_change_sets@0", "txn_version": 7}
    assert recorded(state, [{"batch_id": 8, "is_new": True}])[0].plan["txn"]["version"] == 8
    restored = {**state, "replaced": True}  # to rows up to batch 5: Delta would ignore the transactions 6 and 7, which it had
    assert recorded(restored, [{"batch_id": 8, "is_new": True}])[0].plan["txn"]["version"] == 8
    assert recorded({**restored, "txn_version": 3}, [{"batch_id": 6, "is_new": True}])[0].plan["txn"]["version"] == 6
    assert recorded(state, [{"batch_id": 7, "is_new": False}])[0].plan["skip"]


def test_S5_S7_a_batch_that_held_nothing_for_a_table_is_not_numbered_again() -> None:
    """Its table takes it for done, and no table has a row of it: a change set of that number would never be loaded."""
    lost = {"exists": False}
    assert recorded(lost, [{"batch_id": 8, "is_new": True}], {"stg_f__t": 7})[0].plan["txn"]["version"] == 8
    back = {"exists": True, "version": 3, "app_id": "cdc_change_sets@0", "txn_version": 5}  # as it was some batches ago
    adapter, _ = recorded(back, [{"batch_id": 8, "is_new": True}], {"stg_f__t": 7})
    assert (adapter.plan["txn"]["version"], adapter.plan["notes"]["last_batch_id"]) == (8, 8)


@pytest.mark.parametrize(
    ("noted", "reached", "may_move", "found"),
    [
        (10, 11, True, True),
        (11, 11, True, False),
        (-1, 11, True, True),
        (-1, None, True, False),
        (None, 11, True, False),
        (10, 11, False, False),
    ],
)
def test_K2_what_was_made_before_keys_were_resolved_is_made_good(
    noted: int | None, reached: int | None, may_move: bool, found: bool
) -> None:
    macros = load(adapter=SimpleNamespace(table_state=lambda relation: SimpleNamespace(txn_version=reached)))
    keys = SimpleNamespace(identifier="int_f__t_keys")
    state, staged = {"notes": {"resolved_batch_id": noted}, "resolved": -1}, {"notes": {"keys_may_move": may_move}}
    reached_now = macros["resolved_batch_id"](keys, staged)
    assert macros["resolved_since"](reached_now, state) is found
    assert macros["resolved_since"](reached_now, {**state, "resolved": 11}) is False  # a run found that it changes nothing here


def _needs(method: str, selected: list[str]) -> str:
    names = ["cdc_change_sets", "stg_shop__a", "hist_shop__a", "final_a", "stg_of_others"]
    nodes = [SimpleNamespace(name=name, unique_id=name, package_name="p", resource_type="model") for name in names]
    log = SimpleNamespace(name="cdc_table_log", unique_id="cdc_table_log", package_name="delta_cdc", resource_type="model")
    return load(
        target={"name": "prod", "method": method},
        selected_resources=selected,
        graph=SimpleNamespace(nodes={node.name: node for node in [*nodes, log]}, sources={"a": feed_table("shop", "a")}),
    )["need_session"]()


def test_a_run_wants_macros_and_python_of_one_version() -> None:
    def need(mismatch: str | None) -> str:
        adapter = SimpleNamespace(version_mismatch=lambda: mismatch)
        return load(target={"type": "sparkdelta", "method": "session"}, adapter=adapter)["need_session"]()

    assert need(None) == ""
    with pytest.raises(CompilerError, match=r"^They differ\. Nothing was run\.$"):
        need("They differ.")


@pytest.mark.parametrize(
    ("selected", "said"),
    [
        (["final_a"], "1 model of the feeds is selected (final_a)"),
        (["cdc_table_log", "stg_of_others"], "1 model of the feeds is selected (cdc_table_log)"),
        (["stg_shop__a", "cdc_change_sets", "final_a", "hist_shop__a"],
         "4 models of the feeds are selected (cdc_change_sets, final_a, hist_shop__a, …)"),
    ],
)  # fmt: skip
def test_feeds_are_not_loaded_through_a_server(selected: list[str], said: str) -> None:
    assert _needs("session", selected) == ""
    with pytest.raises(CompilerError) as refused:
        _needs("thrift", selected)
    assert "target prod has `method: thrift`" in str(refused.value)
    assert said in str(refused.value)
    assert "they want `method: session`" in str(refused.value)


def test_other_models_run_through_a_server() -> None:
    assert _needs("thrift", ["stg_of_others"]) == ""


@pytest.mark.parametrize("type_", ["binary", "BINARY"])
def test_a_key_of_bytes_is_named_by_its_hexadecimal(type_: str) -> None:
    views: dict[str, str] = {}
    adapter = SimpleNamespace(
        secret=lambda _: ["\\x00ff"], create_values_view=lambda *_: None, query_rows=lambda _: [SimpleNamespace(bad=[])],
        create_kept_view=views.__setitem__,
    )  # fmt: skip
    settings = {"keys": ["id"], "column_types": {"id": type_}}
    load(adapter=adapter)["_view_named_key"](SimpleNamespace(name="shop.person", settings=settings))
    assert "try_to_binary(substr(`id`, 3), 'hex')" in views["cdc_named_key"]


def test_each_key_that_is_not_of_its_type_is_told_with_its_own() -> None:
    adapter = SimpleNamespace(
        secret=lambda _: ["x", "1", "y"], create_values_view=lambda *_: None,
        query_rows=lambda _: [SimpleNamespace(bad=["id", "day"])],
    )  # fmt: skip
    settings = {"keys": ["id", "line", "day"], "column_types": {"id": "int", "line": "int", "day": "date"}}
    with pytest.raises(CompilerError) as refused:
        load(adapter=adapter)["_view_named_key"](SimpleNamespace(name="shop.line", settings=settings))
    assert str(refused.value) == (
        "table shop.line: what is given for id is not of its type, int; for day is not of its type, date. Give a value for each "
        "of id, line, day, in this order."
    )


def test_H4_as_of_below_the_horizon_says_that_a_later_moment_can_be_told() -> None:
    properties = {"delta_cdc.horizon": "{}", "delta_cdc.folded_until": "2026-01-01", "delta_cdc.folded_at": "7"}
    adapter = SimpleNamespace(
        table_state=lambda _: SimpleNamespace(properties=properties),
        query_rows=lambda _: [SimpleNamespace(below=True, before=False)],
    )  # fmt: skip
    with pytest.raises(CompilerError, match=r"table f\.t is compacted up to 2026-01-01: .* no longer be told\. Ask for a later"):
        load(giving({"_time_type": "timestamp"}), adapter=adapter)["_refuse_below_horizon"](
            {"feed": "f", "table": "t"}, "stg", "2025-12-31", None
        )


def test_R2_S5_a_restored_staging_is_refused_before_erase_asks() -> None:
    """Final and raw would have lost the row by then; and of a row that came later it would say that there is none."""
    table = SimpleNamespace(name="shop.person", settings={"keys": ["id"]}, staging="s.stg")
    progress = SimpleNamespace(rebuild=True, notes={}, batch_id=-1, committed=-1, columns=[], properties={})
    fakes = {"_ledger": "ledger", "_staging_table": table, "progress": progress, "_not_loaded": "", "view_row": [1]}
    with pytest.raises(CompilerError, match=r"s\.stg was restored, "):
        load(giving(fakes))["erasable"]("stg")


@pytest.mark.parametrize(("batches", "known", "behind"), [([1, 2], 0, False), ([], 1, False), ([], 0, False), ([1], 0, True)])
def test_R2_what_erase_looks_at_before_it_asks_is_only_read(batches: list[int], known: int, behind: bool) -> None:
    asked: list[str] = []
    printed: list[str] = []

    def query_rows(sql: str) -> list[Any]:
        asked.append(sql)
        return [SimpleNamespace(n=known)] if "cdc_named_key" in sql else [SimpleNamespace(n=3)] if "count(*)" in sql else [1]

    table = SimpleNamespace(name="shop.person", settings={"keys": ["id"]}, staging="stg")
    progress = SimpleNamespace(notes={}, batch_id=1, committed=2 if behind else 1, rebuild=False, columns=[], properties={})
    fakes = {
        "_ledger": "ledger",
        "_staging_table": table,
        "progress": progress,
        "_not_loaded": "",
        "view_row": batches,
        "_model_of": "final",
        "_need_erase_secret": "",
    }
    macros = load(giving(fakes), adapter=SimpleNamespace(query_rows=query_rows), print=printed.append)
    if behind or not (batches or known):
        with pytest.raises(CompilerError, match=r"final has not taken all|there is no change at that key"):
            macros["erasable"]("stg")
        assert printed == []
    else:
        macros["erasable"]("stg")
        assert printed == ['{"changes": 3, "keys": 3}']
    assert asked
    assert all(sql.startswith("select ") for sql in asked)


@pytest.mark.parametrize(("folder", "refused"), [("file:/l", True), ("file:/other", False)])
def test_S9_S5_a_restored_staging_is_refused_before_retract_marks_the_ledger(folder: str, refused: bool) -> None:
    """Also where it no longer has the change set. Of a table with another folder the set is none."""
    marked: list[int] = []
    tables = [
        SimpleNamespace(name=f"f.{name}", settings={"feed": "f", "table": name}, staging=f"s.{name}", raw=None, compacted=-1)
        for name in ("restored", "other")
    ]
    found = SimpleNamespace(batch_id=5, feed="f", change_set="file:/l/5.jsonl", status="recorded", retracted_at=None)
    fakes = giving({"_ledger": "ledger", "_named_change_set": found, "_staging_tables": tables, "_end_hold": ""})
    fakes |= {
        "qualified_folder": lambda of: folder if of["table"] == "restored" else "file:/l",
        "progress": lambda staging: SimpleNamespace(rebuild=staging == "s.restored"),
        "_record_revision": lambda *_: marked.append(5) or 9,
    }
    macros = load(fakes, adapter=SimpleNamespace(query_rows=lambda _: [SimpleNamespace(n=0)]), print=lambda _: None)
    with pytest.raises(CompilerError, match=r"s\.restored was restored, ") if refused else nullcontext():
        macros["retract"]("5.jsonl")
    assert marked == ([] if refused else [5])


@pytest.mark.parametrize(("restored", "batch", "said"), [
    (True, -1, r"s\.stg was restored, "), (False, 4, "batch 5 is not staged yet"), (False, 5, None),
])  # fmt: skip
def test_Q2_S5_accept_says_of_a_restored_staging_that_it_is_one(restored: bool, batch: int, said: str | None) -> None:
    ran: list[str] = []
    hold = SimpleNamespace(batch_id=5, accepted_at=None, reason="1 of its 2 rows cannot be used", change_set="5.jsonl")
    fakes = {
        "_model_relation": "s.stg",
        "holds_relation": "cdc_holds",
        "holds_of": [hold],
        "_names_in_holds": ["stg"],
        "progress": SimpleNamespace(rebuild=restored, batch_id=batch),
    }
    adapter = SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True))
    macros = load(giving(fakes), adapter=adapter, run_query=ran.append, print=lambda _: None)
    with pytest.raises(CompilerError, match=said) if said else nullcontext():
        macros["accept"]("stg_f__t", "f.t", 5)
    assert len(ran) == (said is None)


@pytest.mark.parametrize(("in_raw", "withheld", "refused"), [(True, {}, True), (False, {}, False), (False, {"pet": 5}, True)])
def test_S9_R1_of_a_mixed_feed_a_compacted_table_keeps_only_change_sets_with_rows_of_it(
    in_raw: bool, withheld: dict, refused: bool
) -> None:
    """As every night by `compact_after_days`: no older change set of the feed could be taken back, whichever tables it is of."""
    said: list[str] = []
    settings = {"feed": "f", "table": "pet", "source_table": "pet"}
    table = SimpleNamespace(name="f.pet", settings=settings, staging="s.stg", raw="s.raw_f", compacted=7)
    found = SimpleNamespace(batch_id=5, feed="f", change_set="file:/l/5.jsonl", status="recorded")
    fakes = {
        "_ledger": "ledger",
        "_named_change_set": found,
        "_staging_tables": [table],
        "qualified_folder": "file:/l",
        "progress": SimpleNamespace(notes={"withheld": withheld}, rebuild=False),
        "_record_revision": 9,
        "_end_hold": "",
    }
    where = "from s.raw_f where batch_id = 5 and split_part(source_table, '.', -1) = 'pet' limit 1"
    adapter = SimpleNamespace(query_rows=lambda sql: [SimpleNamespace(n=0)] * (in_raw if where in sql else "s.stg" in sql))
    said_no = "batch 5 was loaded before the table was compacted.* Have the producer send what is right in a new change set"
    with pytest.raises(CompilerError, match=said_no) if refused else nullcontext():
        load(giving(fakes), adapter=adapter, print=said.append)["retract"](5)
    assert len(said) == (not refused)


@pytest.mark.parametrize(("keys", "refused"), [(["ID", "part"], False), (["part"], True)])
def test_R2_K8_keys_in_another_case_are_the_same_to_erase(keys: list[str], refused: bool) -> None:
    """Which staging took over once (`delta_cdc.keys`) and no run writes anew."""
    staged = SimpleNamespace(properties={"delta_cdc.keys": '["id", "part"]'}, notes={"keys": keys}, columns={}, committed=7)
    table = SimpleNamespace(name="f.t", settings={**SETTINGS, "feed": "f", "table": "t", "keys": keys}, staging="stg")
    fakes = {
        "_ledger": "s.ledger",
        "_staging_table": table,
        "_model_of": "final",
        "_not_loaded": "",
        "view_row": [7],
        "_need_erase_secret": "",
        "progress": SimpleNamespace(**vars(staged), batch_id=7, rebuild=False),
    }
    said = r"table f\.t: staging was loaded with other `keys` \(id, part\): put them back, or .*--select stg_f__t\+`\. Then erase"
    with pytest.raises(CompilerError, match=said) if refused else nullcontext():
        assert load(giving(fakes))["_look_at_erasure"]("stg")["batches"] == [7]


@pytest.mark.parametrize(("raw", "told"), [(None, False), ("s.raw_f", True)])
def test_R2_erase_tells_of_messages_that_name_no_table(raw: str | None, told: bool) -> None:
    """They may be the person's, and stay in raw and in cdc_quarantine."""
    said: list[str] = []
    settings = {"feed": "f", "keys": ["id"], "key_changes": True, "insert_only": False}
    table = SimpleNamespace(name="f.t", settings=settings, staging="s.stg")
    fakes = {
        "_look_at_erasure": SimpleNamespace(ledger="s.ledger", table=table, batches=[1]),
        "raw_of": raw,
        "_keys_table": None,
        "_erase_from_raw": "",
        "_record_revision_of": 9,
        "_announce": "",
        "_revise": SimpleNamespace(rows_deleted=3),
    }

    def query_rows(sql: str) -> list[Any]:
        return [] if "s.ledger" in sql else [SimpleNamespace(n=2 if "s.raw_f where source_table is null" in sql else 0)]

    adapter = SimpleNamespace(create_kept_view=lambda *_: "", query_rows=query_rows)
    load(giving(fakes), adapter=adapter, print=said.append)["erase"]("stg")
    assert ("not looked into: 2 messages in s.raw_f that name no table (see cdc_quarantine)" in said) == told


@pytest.mark.parametrize(("recorded", "given"), [
    ("file:/srv/landing/x/1.jsonl", "/srv/landing/x/1.jsonl"), ("hdfs://nn:8020/srv/x/1.jsonl", "/srv/x/1.jsonl"),
    ("s3a://bucket/x/a:b.jsonl", "/x/a:b.jsonl"),
])  # fmt: skip
def test_S9_a_change_set_is_named_by_its_path_without_the_scheme_too(recorded: str, given: str) -> None:
    asked: list[str] = []
    adapter = SimpleNamespace(query_rows=lambda sql: asked.append(sql) or [{"change_set": recorded}])
    assert load(adapter=adapter)["_named_change_set"]("s.ledger", given) == {"change_set": recorded}
    (pattern,) = re.findall(r"regexp_replace\(change_set, '(.*?)', ''\) = '" + re.escape(given), asked[0])
    assert re.sub(pattern, "", recorded) == given


@pytest.mark.parametrize(("affected", "waiting", "refused"), [
    (1, "", None), (0, "", "another run or operation took batch 8 meanwhile, and this one did not get it. Run it again."),
    (1, "table f.t: batch 7 is recorded and not loaded yet.", "not loaded yet. Run `dbt run`, then replay again."),
])  # fmt: skip
def test_Q3_R2_an_operation_takes_no_run_s_number_and_jumps_over_none(affected: int, waiting: str, refused: str | None) -> None:
    adapter = SimpleNamespace(
        table_state=lambda _: {},
        plan_write=lambda *_: None,
        take_write_plan=lambda _: None,
        execute_write=lambda sql, plan: SimpleNamespace(rows_affected=affected),
    )
    fakes = {
        "_highest_recorded_batch": 7,
        "_highest_batch_of_tables": 7,
        "progress": SimpleNamespace(batch_id=7),
        "_not_loaded": waiting,
    }
    macros = load(giving(fakes), adapter=adapter)
    table = SimpleNamespace(name="f.t", settings={"feed": "f"}, staging="stg")
    with pytest.raises(CompilerError, match=refused) if refused else nullcontext():
        assert macros["_record_revision_of"](SimpleNamespace(identifier="cdc_change_sets"), table, "replay") == 8


@pytest.mark.parametrize(("paused", "said"), [
    (None, "not loaded yet."), ("it moves", "not loaded yet, and the table is paused: end that first."),
])  # fmt: skip
def test_an_operation_that_waits_for_a_paused_table_says_so(paused: str | None, said: str) -> None:
    """`dbt run`, which it asks for, loads nothing of it."""
    adapter = SimpleNamespace(query_rows=lambda sql: [{"batch_id": 7, "change_set": "file:/l/7"}])
    fakes = {
        "qualified_folder": "file:/l",
        "progress": SimpleNamespace(batch_id=6),
        "withheld_until": -1,
        "keys_of_staging": ["id"],
    }
    settings = {"feed": "f", "keys": ["id"], "paused": paused}
    table = SimpleNamespace(name="f.t", settings=settings, staging="stg", raw=None, grows=[])
    waiting = load(giving(fakes), adapter=adapter)["_not_loaded"]("ledger", table)
    assert waiting == f"table f.t: batch 7 (file:/l/7) is recorded and {said}"


def test_K8_an_operation_on_staging_of_other_keys_says_what_to_run() -> None:
    """`dbt run` alone stops at them."""
    fakes = {
        "qualified_folder": "file:/l",
        "progress": SimpleNamespace(batch_id=6),
        "withheld_until": -1,
        "keys_of_staging": ["a"],
    }
    table = SimpleNamespace(name="f.t", settings={"feed": "f", "table": "t", "keys": ["id"]}, staging="stg", raw=None, grows=[])
    assert load(giving(fakes))["_not_loaded"]("ledger", table) == (
        "table f.t: staging was loaded with other `keys` (a): put them back, or let it take over the new ones by `dbt run "
        "--full-refresh --select stg_f__t+`."
    )


def test_K8_a_replay_that_staging_of_other_keys_stops_does_not_ask_for_a_run_that_stops_too() -> None:
    keys = MACROS["_says_other_keys"]({"feed": "f", "table": "t"}, ["a"])
    fakes = {
        "_ledger": "s.ledger",
        "_staging_tables": [SimpleNamespace(settings={}, grows=[])],
        "_why_not_replayed": "",
        "_replay_into": keys,
    }
    with pytest.raises(CompilerError) as refused:
        load(giving(fakes))["replay"]("stg_f__t")
    assert str(refused.value) == f"{keys}\nOnce a `dbt run` has loaded that, replay again."


def test_operations_name_staging_by_its_model_whatever_its_alias_is() -> None:
    asked: list[str] = []
    holds = [{"table": "changes", "batch_id": 7}, {"table": "of_a_table_that_is_gone", "batch_id": 8}]

    def table_state(relation: Relation) -> dict:
        asked.append(relation.identifier)
        return {**no_state(), "exists": relation.identifier == "cdc_holds"}

    nodes = [
        SimpleNamespace(name=name, alias=alias, resource_type="model", database=None, schema="s")
        for name, alias in (("cdc_change_sets", "cdc_change_sets"), ("stg_f__t", "changes"), ("final_t", "final_t"))
    ]
    source = feed_table("f", "t")
    settings = {"feed": "f", "table": "t", "max_errors": 0}
    macros = load(
        giving({"_ledger": "ledger", "_table_settings": settings}),
        graph=SimpleNamespace(sources={"f.t": source}, nodes={node.name: node for node in nodes}),
        adapter=SimpleNamespace(table_state=table_state, query_rows=lambda sql: holds),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    macros["_staging_tables"](names=["changes"])
    assert asked == []
    macros["_staging_tables"](names=["stg_f__t"])
    assert asked == ["changes"]
    assert [hold["table"] for hold in macros["_status"]()["holds"]] == ["stg_f__t", "of_a_table_that_is_gone"]
    del settings["max_errors"]  # what was held once is not any more
    holds[0]["table"] = "changes"
    assert [hold["table"] for hold in macros["_status"]()["holds"]] == ["of_a_table_that_is_gone"]


def test_S5_a_clone_of_staging_is_not_gone_on_from() -> None:
    """`dbt clone` makes a new log, without our transactions."""
    runs = {"done": {"stg_f__t": 7}, "failed": {}}
    state = {**no_state(), "exists": True, "id": "of the clone", "version": 0}
    macros = load(giving({"noted_runs": runs}), adapter=SimpleNamespace(table_state=lambda _: state))
    staging = Relation(schema="ci", identifier="stg_f__t")
    with pytest.raises(CompilerError, match=r"ci\.stg_f__t was restored, replaced, cloned or filled by somebody else"):
        macros["_refuse_restored"](staging, SimpleNamespace(**macros["progress"](staging)))


def test_operations_pass_over_tables_whose_models_are_switched_off() -> None:
    """By `+enabled` of dbt_project.yml, for this target perhaps: their sources are there, their models not."""
    asked: list[str] = []

    def table_state(relation: Relation | None) -> dict:
        asked.extend([relation.identifier] if relation else [])
        return no_state()

    nodes = [
        SimpleNamespace(name=name, alias=name, resource_type="model", database=None, schema="s")
        for name in ("cdc_change_sets", "stg_f__t")
    ]
    macros = load(
        giving({"_ledger": "ledger"}) | {"_table_settings": lambda node: {"feed": node.source_name, "table": node.name}},
        graph=SimpleNamespace(
            sources={"f.t": feed_table("f", "t"), "off.u": feed_table("off", "u")}, nodes={node.name: node for node in nodes}
        ),
        adapter=SimpleNamespace(table_state=table_state, newest_notes=lambda _: {"done": {}}),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    assert macros["_staging_tables"]() == []
    assert macros["_status"]()["tables"] == []
    assert {"stg_f__t"} == {name for name in asked if name.startswith("stg")}
    with pytest.raises(CompilerError, match=r"no model stg_off__u .* switched off"):
        macros["_staging_table"]("stg_off__u")
    with pytest.raises(CompilerError, match=r"no model stg_off__u"):  # a change set is taken back from all tables of its feed
        macros["_staging_tables"]("off")


def test_Q2_a_hold_is_of_one_table_whatever_other_tables_have_its_alias() -> None:
    """Batch 5 of one.item is held. What comes for two.item waits for none, and lets none go."""
    holds: list[dict] = []
    ran: list[str] = []
    nodes = [
        SimpleNamespace(unique_id=name, name=name, alias=alias, resource_type="model", database=None, schema=schema)
        for name, alias, schema in (
            ("cdc_change_sets", "cdc_change_sets", "s"),
            ("stg_a__item", "item", "one"),
            ("stg_b__item", "item", "two"),
        )
    ]
    judged = {"batch_id": 5, "change_set": "bad", "rows_read": 1, "errors": 1, "deletes": 0, "live_rows": 0}
    adapter = SimpleNamespace(
        table_state=lambda relation: {**no_state(), "exists": True, "txn_version": 9, "version": 9},
        cached_query=lambda relation, sql: holds,
        query_rows=lambda sql: [dict(judged)],
        newest_notes=lambda relation: {"done": {}},
    )
    macros = load(
        giving({"_about_change_sets": ""}),
        flags=SimpleNamespace(WHICH="run"),
        graph=SimpleNamespace(nodes={node.name: node for node in nodes}),
        adapter=adapter,
        run_query=ran.append,
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    one, two = (Relation(schema=schema, identifier="item") for schema in ("one", "two"))
    settings, state = {"feed": "b", "table": "item", "max_errors": 0}, SimpleNamespace(batch_id=4)
    macros["judge"](settings, one, "", state, {})
    assert "('one.item', 5, 'bad'," in ran.pop()
    holds.append({**judged, "table": "one.item", "reason": "1 of its 1 rows cannot be used", "accepted_at": None})
    for schema in ("one", "one__plan"):  # a plan has clones of both, staging and cdc_holds
        found = macros["let_through"](settings, Relation(schema=schema, identifier="item"), warn=False)
        assert found["held"] == {**holds[0], "number": 1}
    assert macros["let_through"](settings, two)["held"] is None
    judged.update(batch_id=6, errors=0)
    macros["judge"](settings, two, "", state, {})
    assert ran == []
    assert "`table` in ('item', 'one.item')" in macros["unheld"](settings, one)


def test_Q4_O4_what_comes_again_of_a_row_that_is_gone_brings_it_back_in_no_count() -> None:
    """Row 2 was deleted, 3 became 4, which was deleted, 5 went by a truncate; then all of it comes again, a set each."""
    told = [  # op, key, key before, sequence
        ("I", 5, None, 1),
        ("T", None, None, 2),
        ("I", 1, None, 3),
        ("I", 2, None, 4),
        ("I", 3, None, 5),
        ("D", 2, None, 6),
        ("U", 4, 3, 7),
        ("D", 4, None, 8),
    ]
    macros = load(
        {
            "_model_of": lambda *_: "final",
            "_has_model": lambda *_: True,
            "_staging_ctes": lambda *_: "changes as (select * from told_again)",
        },
        adapter=SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True, columns=["id"], notes={})),
    )
    state = SimpleNamespace(exists=True, notes=SimpleNamespace(truncates=True))
    sql = macros["_about_change_sets"](
        {**SETTINGS, "max_delete_share": 0.5}, "stg", "", state, SimpleNamespace(late=8, truncates=1)
    )
    for ours, duckdb_s in (
        ("<=>", "is not distinct from"), ("struct(", "row("), ("left semi join", "semi join"), ("`", ""), ("0L", "0"),
        ("row(_cdc_position, _cdc_ends, _cdc_goes)",
         "{'_cdc_position': _cdc_position, '_cdc_ends': _cdc_ends, '_cdc_goes': _cdc_goes}"),
    ):  # fmt: skip
        sql = sql.replace(ours, duckdb_s)
    with duckdb.connect() as connection:
        connection.execute("create macro count_if(given) as count(case when given then 1 end)")
        for relation, batch in (("stg", "0"), ("told_again", "_cdc_row")):
            connection.execute(
                f"""create table {relation} (id int, _cdc_op text, _cdc_key_before struct(id int), _cdc_sequence int,
                _cdc_row int, _cdc_batch_id int, _cdc_change_set text, _cdc_ordinal int, _cdc_error text)"""
            )
            for row, (op, key, before, sequence) in enumerate(told, 1):
                connection.execute(
                    f"insert into {relation} select $1, $2, case when $3 is null then null else {{'id': $3}} end, $4, $5, "
                    f"{batch.replace('_cdc_row', '$5')}, '', null, null",
                    [key, op, before, sequence, row],
                )
        connection.execute("create table final as select 1 as id")
        found = connection.execute(f"select deletes, live_rows from ({sql})").fetchall()
    assert found == [(0, 1)] * len(told)


def test_tables_of_control_have_their_schema_where_the_ledger_does_not_run() -> None:
    """dbt makes the schemas of the models that were selected: `dbt run --select my_model` makes none of the ledger's."""
    said: list[str] = []
    source = feed_table("f", "t")
    source.source_meta["cdc"]["max_errors"] = 0
    node = SimpleNamespace(
        name="stg_f__t",
        alias="stg_f__t",
        unique_id="stg",
        resource_type="model",
        database=None,
        schema="s",
        config=SimpleNamespace(materialized="incremental"),
    )
    ledger = SimpleNamespace(
        name="cdc_change_sets",
        alias="cdc_change_sets",
        unique_id="ledger",
        resource_type="model",
        database=None,
        schema="control",
    )
    adapter = Adapter({}, {}, [])
    adapter.create_schema = lambda relation: said.append(f"schema {relation.schema}")
    macros = load(
        giving({"_write": None}),
        adapter=adapter,
        run_query=said.append,
        flags=SimpleNamespace(WHICH="run"),
        var=lambda name, default: default,
        graph=SimpleNamespace(nodes={"stg": node, "ledger": ledger}, sources={"f.t": source}),
        invocation_id="i",
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda **parts: Relation(**parts))),
    )
    assert "create table if not exists control.cdc_holds" in macros["prepare_holds"]()
    assert said == ["schema control"]
    result = SimpleNamespace(
        node=node, adapter_response={"report": {"last_batch_id": 1}}, status="success", execution_time=1, message=""
    )
    macros["record_run"]([result])
    assert said[1] == "schema control"
    assert said[2].startswith("create table if not exists control.cdc_runs")


def test_a_history_that_is_a_view_is_noted_where_it_cannot_be_made_and_once_it_can() -> None:
    """`status` goes by it: the run had failed, and the table was ok."""
    said: list[str] = []
    noted: dict[str, Any] = {"done": {}, "failed": {}}
    fakes = {
        "_runs_relation": "cdc_runs",
        "layers": {"hist_f__t": "history"},
        "names_in_runs": {"hist": "hist_f__t"},
        "noted_runs": noted,
        "in_session": True,
    }

    def write(_: str, sql: str, options: dict[str, Any]) -> None:
        said.append(sql)
        noted.update(options["notes"])

    adapter = SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True))
    macros = load(giving(fakes) | {"_write": write}, invocation_id="i", adapter=adapter)
    node = SimpleNamespace(
        name="hist_f__t", alias="hist_f__t", unique_id="hist", resource_type="model", config=SimpleNamespace(materialized="view")
    )
    for status in ("success", "error", "success", "success"):
        macros["record_run"](
            [
                SimpleNamespace(
                    node=node, adapter_response={"_message": "OK"}, status=status, execution_time=1, message="no such column"
                )
            ]
        )
    assert ["'error', 'no such column'" in sql for sql in said] == [True, False]
    assert noted["failed"] == {}


@pytest.mark.parametrize(("mode", "where"), [("hard", "_cdc_is_last and _cdc_op <> 'D'"), ("soft", "_cdc_is_newest")])
def test_A9_explain_shows_the_row_of_final_that_was_deleted_softly(mode: str, where: str) -> None:
    sources: list[str] = []
    adapter = SimpleNamespace(
        create_kept_view=lambda *_: None, query_rows=lambda sql: [], table_state=lambda _: SimpleNamespace(exists=True)
    )
    settings = {"keys": ["id"], "columns": ["id"], "on_schema_change": "sync_all_columns", "delete_mode": mode}
    fakes = {"_named_row": SimpleNamespace(settings=settings, staging="stg"), "_keys_table": None, "_model_of": "final"}
    fakes |= {"progress": SimpleNamespace(columns=["id"]), "staged_rows": "cdc_told_of_row"}
    made = giving(fakes) | {"_rows_at_keys": lambda settings, relation, keys: sources.append(keys) or []}
    load(made, adapter=adapter, print=lambda text: None)["explain"]("stg")
    assert sources == [f"cdc_told_of_row where {where}"]


@pytest.mark.parametrize(("revised", "late"), [(True, [1]), (False, [])])
def test_Q3_explain_tells_that_a_replayed_change_came_late(revised: bool, late: list[int]) -> None:
    """Batch 1 was quarantined, and replayed as batch 3 once batch 2 was applied."""
    asked: list[str] = []
    adapter = SimpleNamespace(
        create_kept_view=lambda *_: None,
        query_rows=lambda sql: asked.append(sql) or [],
        table_state=lambda _: SimpleNamespace(exists=False),
    )
    settings = {"keys": ["id"], "columns": ["id"], "on_schema_change": "sync_all_columns"}
    columns = ["id", *(["_cdc_revised_in"] if revised else [])]
    fakes = {"_named_row": SimpleNamespace(settings=settings, staging="stg"), "_keys_table": None, "_model_of": "final"}
    fakes |= {"progress": SimpleNamespace(columns=columns), "staged_rows": "told"}
    load(giving(fakes), adapter=adapter, print=lambda text: None)["explain"]("stg")
    (is_late,) = re.findall(r"(?s)(_cdc_error is null and coalesce.*) as is_late", asked[0])
    rows = "(1, 1, 10, null::text, 3), (2, 1, 20, null, null)"
    columns = "(_cdc_batch_id, _cdc_row, _cdc_sequence, _cdc_error, _cdc_revised_in)"
    with duckdb.connect() as connection:
        connection.execute(f"create table told as select *, null::int as _cdc_ordinal from (values {rows}) as t {columns}")
        sql = f"select _cdc_batch_id, {is_late} from told order by 1".replace("struct(", "row(")
        assert [batch for batch, came_late in connection.execute(sql).fetchall() if came_late] == late


@pytest.mark.parametrize("exists", [True, False])
def test_explain_tells_a_final_without_the_row_from_none(exists: bool) -> None:
    printed: list[str] = []
    adapter = SimpleNamespace(
        create_kept_view=lambda *_: None, query_rows=lambda _: [], table_state=lambda _: SimpleNamespace(exists=exists)
    )
    settings = {"keys": ["id"], "columns": ["id"], "on_schema_change": "sync_all_columns"}
    fakes = {"_named_row": SimpleNamespace(settings=settings, staging="stg"), "_keys_table": None, "_model_of": "final"}
    fakes |= {"progress": SimpleNamespace(columns=["id"]), "_rows_at_keys": []}
    load(giving(fakes), adapter=adapter, print=printed.append)["explain"]("stg")
    assert json.loads(printed[0])["final"] == ([] if exists else None)


def test_K7_explain_takes_no_displaced_row_for_that_of_final() -> None:
    """Row a came from key 1 to key 2, where row b displaced it; there a changed once more in that transaction. Asked for key 1,
    of which b knows nothing."""
    views: dict[str, str] = {}
    adapter = SimpleNamespace(
        create_kept_view=views.__setitem__, query_rows=lambda sql: [], table_state=lambda _: SimpleNamespace(exists=True)
    )
    settings = {"keys": ["id"], "columns": ["id"], "on_schema_change": "sync_all_columns"}
    fakes = {"_named_row": SimpleNamespace(settings=settings, staging="stg"), "_keys_table": "keys", "_model_of": "final"}
    fakes |= {"progress": SimpleNamespace(columns=["id"]), "_rows_at_keys": []}
    load(giving(fakes), adapter=adapter, print=lambda text: None)["explain"]("stg")
    sql = views["cdc_told_of_row"]
    for ours, duckdb_s in (
        ("<=>", "="), ("struct(", "row("), (" except (", " exclude ("), ("left semi join", "semi join"), ("`", ""),
    ):  # fmt: skip
        sql = sql.replace(ours, duckdb_s)
    with duckdb.connect() as connection:
        connection.execute(
            """create table stg as select *, null::bigint as _cdc_ordinal, 0 as _cdc_batch_id, null::text as _cdc_error
            from (values (0, 'I', 1, 1), (1, 'U', 2, 2), (2, 'U', 2, 5), (3, 'U', 2, 5))
            as s (_cdc_row, _cdc_op, id, _cdc_sequence)"""
        )
        connection.execute("create table cdc_keys_of_row as select unnest([1, 2]) as id")
        connection.execute("create table cdc_changes_of_row as select * from stg where _cdc_row <> 2")
        connection.execute(
            """create table keys as select *, 0 as _cdc_batch_id, null::text as origin
            from (values (0, 'a', null), (1, 'a', null), (2, 'b', 'a'), (3, 'a', null))
            as k (_cdc_row, entity, displaced_entity)"""
        )
        told = connection.execute(f"select _cdc_row, _cdc_is_newest, _cdc_is_last from ({sql}) order by 1").fetchall()
    assert told == [(row, False, False) for row in (0, 1, 3)]


def test_H4_rows_of_a_moment_stand_in_the_order_of_their_keys_whatever_these_are_named() -> None:
    asked: list[str] = []
    adapter = SimpleNamespace(query_rows=lambda sql: asked.append(sql) or [])
    table = SimpleNamespace(settings={"keys": ["row", "k"]}, staging="stg")
    macros = load(giving({"_staging_table": table, "_final_of": "s.final"}), adapter=adapter, print=lambda text: None)
    macros["final_as_of"]("stg")
    assert asked[0].endswith(" as row from s.final as r order by r.`row`, r.`k` limit 20")


@pytest.mark.parametrize(("command", "given"), [
    ("reconcile", {"against": "x"}), ("diff", {}), ("diff", {"since": "2026-01-01", "until": "2026-01-02"}), ("final_as_of", {}),
    ("export", {"to": "x", "file_format": "csv"}), ("export", {"to": "x", "file_format": "csv", "moment": "2026-01-01"}),
])  # fmt: skip
def test_a_final_that_was_never_loaded_is_told(command: str, given: dict) -> None:
    """Nothing else tells its columns: the moments of a diff were compared by their keys alone."""
    table = SimpleNamespace(name="f.t", settings={"keys": ["id"]}, staging="stg")
    fakes = {"_staging_table": table, "_model_of": "s.final", "_time_type": "timestamp", "_refuse_no_moment": None}
    macros = load(giving(fakes), adapter=SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=False)))
    with pytest.raises(CompilerError, match=r"table f\.t: there is no s\.final yet"):
        macros[command]("stg", **given)


def test_a_history_that_was_never_made_is_told_and_not_taken_for_one_without_versions() -> None:
    fakes = {
        "_named_row": SimpleNamespace(name="f.t", settings={"keys": ["id"]}),
        "_keys_table": None,
        "_model_of": Relation(schema="s", identifier="hist_f__t"),
    }
    macros = load(giving(fakes), adapter=SimpleNamespace(get_relation=lambda *_: None))
    with pytest.raises(CompilerError, match=r"table f\.t: there is no .*hist_f__t yet. Run `dbt run` first."):
        macros["history_of_key"]("stg")


STAGED = {"txn_version": 7, "app_id": "stg_f__t@0", "notes": {"after": 5, "keys_may_move": False, "truncates": False}}
FINAL = {"txn_version": 7, "app_id": "final_t@0", "notes": {"after": 4}}


def sql_of_test(
    name: str,
    model: str,
    states: dict[str, dict],
    cdc: dict | None = None,
    *,
    size: int = 0,
    everything: bool = False,
    day: str | None = None,
    **arguments: Any,
) -> str:
    """The SQL of a generic test of a model of the table f.t, on a day that 5 and 30 divide. size: of staging, in bytes."""
    source = SimpleNamespace(
        unique_id="f.t",
        source_name="f",
        name="t",
        relation_name="f.t",
        source_meta={"cdc": {"format": "rows"}},
        meta={},
        config={"meta": {"cdc": {"keys": ["id"], "sequence_by": ["seq"], "columns": ["id", "a"], **(cdc or {})}}},
        columns={n: SimpleNamespace(name=n, data_type="int") for n in ("id", "seq", "a")},
    )
    names = ["cdc_change_sets", "stg_f__t", "int_f__t_keys", "hist_f__t", "final_t"]
    nodes = {n: SimpleNamespace(name=n, alias=n, resource_type="model", database=None, schema="s") for n in names}
    there = {**no_state(), "exists": True, "version": 3, "columns": {"id": "integer", "a": "integer"}}
    known = {n: {**there, **state} for n, state in states.items()}
    adapter = Adapter(known, {"done": {}, "failed": {}}, [])
    adapter.tune_for = lambda tables: None
    adapter.table_statistics = lambda relation: {"bytes": size}
    adapter.narrowed_to = lambda *_: []
    adapter.get_columns_in_relation = lambda relation: [SimpleNamespace(name=n) for n in ("id", "a", "_cdc_op", "_cdc_batch_id")]
    macros = load(
        adapter=adapter,
        flags=SimpleNamespace(WHICH="test"),
        graph=SimpleNamespace(sources={"f.t": source}, nodes=nodes),
        api=SimpleNamespace(Relation=SimpleNamespace(create=lambda identifier, **_: Relation(schema="s", identifier=identifier))),
        var=lambda name, default: {"delta_cdc_test_all": everything, "delta_cdc_test_day": day or default}.get(name, default),
        load_relation=lambda relation: relation if relation.identifier in states else None,
        run_started_at=datetime.datetime.fromordinal(9 * 8 * 7 * 5),
    )
    arguments.setdefault("source_table", "f.t")
    if "rebuild" in name:
        arguments["staging"] = Relation(schema="s", identifier="stg_f__t")
    elif "row_per_key" in name:
        arguments["keys"] = ["id"]
    return " ".join(macros[f"test_{name}"](Relation(schema="s", identifier=model), **arguments).split())


TESTS = [
    ("each_change_once", "stg_f__t"),
    ("one_row_per_key", "final_t"),
    ("final_equals_rebuild_from_staging", "final_t"),
    ("history_equals_rebuild_from_staging", "hist_f__t"),
    ("one_current_row_per_key", "hist_f__t"),
    ("history_intervals_do_not_overlap", "hist_f__t"),
]


@pytest.mark.parametrize(("name", "model"), TESTS)
def test_a_table_that_was_never_loaded_passes_and_one_whose_staging_is_gone_does_not(name: str, model: str) -> None:
    for touched_only in (False, True):
        assert sql_of_test(name, model, {}, touched_only=touched_only) == "select 1 as nothing where false"
    if model != "stg_f__t":
        assert f"s.{model}" in sql_of_test(name, model, {model: FINAL})


@pytest.mark.parametrize(("name", "model"), TESTS)
def test_a_small_table_is_tested_whole_and_a_large_one_by_a_bucket_of_keys(name: str, model: str) -> None:
    states = {"stg_f__t": STAGED, model: STAGED if model == "stg_f__t" else FINAL}
    whole = sql_of_test(name, model, states)
    assert "pmod" not in whole
    assert "semi join" not in whole
    large = sql_of_test(name, model, states, size=2**30)
    by = "`_cdc_entity`" if name in ("one_current_row_per_key", "history_intervals_do_not_overlap") else "`id`"
    assert f"from s.{model} where pmod(hash({by}), 5) = 0" in large
    if "rebuild" in name:
        assert "from s.stg_f__t where pmod(hash(`id`), 5) = 0" in large
    assert sql_of_test(name, model, states, size=2**30, everything=True) == whole
    assert sql_of_test(name, model, states, {"test_buckets": 11}, size=2**30).count(", 11) = 1") == large.count(", 5) = 0")
    assert ", 30) = 0)" in sql_of_test(name, model, states, size=2**40)
    assert ", 5) = 1)" in sql_of_test(name, model, states, size=2**30, day="0007-11-26")


@pytest.mark.parametrize(("renamed", "rebuild"), [({}, False), ({"a": "old"}, True)])
def test_E2_a_history_table_is_made_anew_where_a_column_is_said_to_have_had_another_name(renamed: dict, rebuild: bool) -> None:
    """Also where `old` left it before (`sync_all_columns`), so that its columns are the same: the view has the old values."""
    planned: list[dict] = []
    columns = {"id": "integer", "a": "integer", "old": "integer"}
    state = SimpleNamespace(rebuild=False, batch_id=9, columns={}, notes={})
    staged = SimpleNamespace(columns=columns, properties={}, committed=9, exists=True)
    quiet = ("refuse_sample", "_refuse_other_keys", "refuse_other_staging", "refuse_before_staging", "gain_deletion_vectors",
             "_spell_as_staged", "_history_rows", "_history_merged")  # fmt: skip
    made = giving(
        {
            **dict.fromkeys(quiet, ""),
            "_retired_columns": [],
            "made_of": {},
            "resolved_batch_id": 9,
            "nothing_to_do": False,
            "let_through": {"staging": "s.stg", "staged": staged, "held": None},
            "note_of_revision": {},
            "transaction": {},
            "plan_of_load": SimpleNamespace(mode="late", skip=False, changes=0, revised=False, keys=None),
        }
    )
    made["progress"] = {"s.stg": staged, "s.hist": state}.get
    for said in ({}, renamed):
        settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["id", "a"], "history": "table", "renamed_columns": said,
                    "key_changes": False}  # fmt: skip
        made["settings"] = lambda _, settings=settings: settings
        adapter = SimpleNamespace(plan_write=lambda _, plan: planned.append(plan))
        load(made, this="s.hist", adapter=adapter, is_incremental=lambda: True)["history"]("source", "s.stg")
        state.notes = planned[-1]["notes"]
    assert planned[-1]["rebuild"] is rebuild


def test_H2_versions_that_are_no_more_are_found_without_working_history_out_twice() -> None:
    """Of key 1 the first version stays and the second one moved to another moment; key 2 is touched by nothing."""
    settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["id", "a"]}
    macros = load(giving({"at_touched_keys": "t", "changes_of_entities": "c", "_spans": "s"}), this="past")
    sql = macros["_history_merged"](settings, "s.stg", None, 7, False)
    assert len(re.findall(r"from (?:history|spans)\b", sql)) == 2  # the CTE, and one reading of it
    sql = sql[sql.index("select * except (") :]
    for spark, duck in {" except (": " exclude (", "every(": "bool_and(", "left semi": "semi", "<=>": "is not distinct from",
                        "`": '"'}.items():  # fmt: skip
        sql = sql.replace(spark, duck)
    columns = "(id, a, _cdc_entity, valid_from, valid_to, is_current, _cdc_sequence)"
    with duckdb.connect() as connection:
        connection.execute("create table touched_keys as select 1 as id")
        for table, rows in {
            "history": "(1, 5, 'e', null, 30, false, 1), (1, 6, 'e', 30, null, true, 2)",
            "past": "(1, 5, 'e', null, 20, false, 1), (1, 6, 'e', 20, null, true, 2), (2, 5, 'f', 9, null, true, 3)",
        }.items():
            connection.execute(f"create table {table} as select * from (values {rows}) as t {columns}")
        found = connection.execute(f"select id, valid_from, valid_to, _cdc_is_gone from ({sql}) order by all").fetchall()
    assert sorted(found, key=str) == [(1, 20, None, True), (1, 30, None, False), (1, None, 30, False)]


def test_K1_a_history_table_with_nothing_new_is_shown_with_its_key_changes() -> None:
    """`dbt show` runs what `dbt compile` writes: without the keys table a row that moved was current at both of its keys."""
    settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["id", "a"], "history": "table"}
    staged = SimpleNamespace(columns={"id": "integer", "a": "integer"})
    state = SimpleNamespace(rebuild=False, batch_id=9, columns={}, notes={"shape": ANY})
    quiet = ("refuse_sample", "note_columns", "_refuse_other_keys", "refuse_other_staging", "refuse_before_staging")
    made = giving(
        {
            **dict.fromkeys(quiet, ""),
            "settings": settings,
            "_retired_columns": [],
            "made_of": {},
            "resolved_batch_id": 9,
            "let_through": {"staging": "s.stg", "staged": staged, "held": None},
            "nothing_to_do": True,
            "_looked_at": None,
        }
    )
    made["progress"] = {"s.stg": staged, "s.hist": state}.get
    macros = load(
        made,
        this="s.hist",
        flags=SimpleNamespace(WHICH="show"),
        is_incremental=lambda: True,
        adapter=SimpleNamespace(plan_write=lambda *_: None),
    )
    assert "left join s.int as k" in macros["history"]("source", "s.stg", "s.int")


def test_K1_a_final_with_nothing_new_is_shown_with_its_rows_and_key_changes() -> None:
    settings = {**SETTINGS, "columns": ["id", "a"], "surrogate": "none", "partition_by": []}
    state = SimpleNamespace(rebuild=False, batch_id=9, columns={}, notes={"shape": None})
    quiet = ("refuse_sample", "_refuse_other_keys", "refuse_other_staging", "refuse_before_staging")
    made = giving(
        {
            **dict.fromkeys(quiet, ""),
            "settings": settings,
            "made_of": {},
            "resolved_batch_id": 9,
            "progress": state,
            "let_through": {"staging": "s.stg", "staged": SimpleNamespace(), "held": None},
            "nothing_to_do": True,
            "_final_evolution": {"rebuild": False, "backfill": False, "columns": None, "new": {}},
            "_looked_at": None,
            "_shape_of_final": None,
        }
    )
    macros = load(
        made,
        this="s.final",
        flags=SimpleNamespace(WHICH="show"),
        is_incremental=lambda: True,
        adapter=SimpleNamespace(plan_write=lambda *_: None),
    )
    sql = macros["final"]("source", "s.stg", "s.int")
    assert "left join s.int as k" in sql
    assert "and false" not in sql


def test_H1_A8_the_states_of_a_history_are_worked_out_once() -> None:
    """A CTE that is read twice is worked out twice."""
    settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["id", "a"], "partition_by": []}
    for sql in (MACROS["_history_rows"](settings, "stg", None), MACROS["_final_as_of"](settings, "stg", None, "true")):
        assert len(re.findall(r"\bfrom states\b", sql)) == 1


def test_A8_the_changes_of_a_row_stay_together_from_their_lives_on() -> None:
    """What is apart by row and by truncate has to be put together by row for all that follows: one shuffle more."""
    settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["id", "a"], "partition_by": []}
    for sql in (MACROS["_history_rows"](settings, "stg", None), MACROS["_final_rows"](settings, "stg", None)):
        assert re.findall(r"partition by ([\w, ]+?)\s+order by", sql)[0] == "_cdc_entity"


def test_N1_the_surrogates_of_what_is_appended_are_those_of_a_rebuild_and_look_at_equal_rows_only() -> None:
    settings = {**SETTINGS, "keys": [], "keyless": "append", "surrogate": "hash", "columns": ["id"], "partition_by": [],
                "column_types": {"id": "int"}}  # fmt: skip
    with duckdb.connect() as connection:
        connection.execute(
            """create table stg as select *, null as _cdc_error, 'I' as _cdc_op from (values
              (0, 0, 1), (0, 1, 1), (0, 2, 2), (1, 0, null), (1, 1, 3), (2, 0, 1), (2, 1, null), (2, 2, 4), (2, 3, 1)
            ) as s (_cdc_batch_id, _cdc_row, id)"""
        )

        def keys_of(done: int) -> list[tuple]:
            sql = load({"_surrogate": lambda _: "_cdc_occurrence"})["_final_appended"](settings, "stg", done)
            assert ("left semi join (select `id` from stg where _cdc_batch_id > 1 and" in sql) is (done == 1)
            sql = sql.replace("left semi join", "semi join").replace("<=>", "is not distinct from").replace("`", '"')
            return connection.execute(sql + " order by all").fetchall()

        assert keys_of(1) == [(1, 3), (1, 4), (4, 1), (None, 2)]
        assert set(keys_of(1)) <= set(keys_of(-1))


def test_H1_the_types_of_a_history_stand_in_one_line_of_its_sql() -> None:
    settings = {**SETTINGS, "columns": ["id", "a"], "tracked": ["a"]}
    sql = MACROS["_history_rows"](settings, "stg", None, ["a\rb int", "c\nd int"])
    assert sql.startswith("with  -- a b int, c d int\nchanges as (")


@pytest.mark.parametrize("widened", [{}, {"a": "long"}, {"_cdc_occurred_at": "long"}])
def test_E4_H1_a_history_that_is_a_view_is_made_anew_where_what_it_is_made_of_is_widened(widened: dict[str, str]) -> None:
    """Spark casts a view's columns back to the types that they had when it was created."""
    settings = {**SETTINGS, "columns": ["id", "twice"], "tracked": ["id", "twice"], "expressions": {"twice": "a * 2"},
                "key_changes": False}  # fmt: skip

    def sql(**types: str) -> str:
        columns = {"id": "integer", "a": "integer", "_cdc_occurred_at": "integer", **types}
        staged = {"exists": True, "columns": columns, "notes": {}}
        quiet = giving({"refuse_sample": "", "note_columns": "", "_retired_columns": [], "unheld": "s.stg"})
        made = {**quiet, "settings": lambda _: dict(settings), "progress": lambda _: staged}
        return load(made, this="s.hist")["history"]("source", "s.stg")

    assert (sql(**widened) == sql()) is (not widened)


def test_K8_a_history_that_is_a_view_is_not_made_by_keys_that_staging_has_not_taken() -> None:
    settings = {**SETTINGS, "feed": "f", "table": "t", "keys": ["a"], "columns": ["id", "a"], "tracked": ["id", "a"],
                "key_changes": False}  # fmt: skip
    quiet = giving({"refuse_sample": "", "note_columns": "", "_retired_columns": [], "unheld": "s.stg", "settings": settings})
    for properties in ({}, {"delta_cdc.keys": '["a"]'}):
        staged = {"exists": True, "columns": {"id": "integer"}, "notes": {"keys": ["id"]}, "properties": properties}
        history = load({**quiet, "progress": lambda _, staged=staged: staged}, this="s.hist")["history"]
        if properties:
            assert history("source", "s.stg").startswith("with ")
        else:
            with pytest.raises(CompilerError, match=r"`keys` are \[a\], and staging still has \[id\]"):
                history("source", "s.stg")


@pytest.mark.parametrize(("versions", "found"), [
    ("(null, 3), (3, 7), (9, null)", 0), ("(1, 3)", 0), ("(null, null)", 0), ("(null, 3), (2, null)", 1),
    ("(1, null), (1, null)", 1), ("(5, 3)", 1), ("(null, 3), (null, 7), (8, 9)", 1), ("(null, null), (null, null)", 1),
])  # fmt: skip
def test_H1_versions_that_overlap_are_found_also_where_they_are_from_before_the_feed(versions: str, found: int) -> None:
    sql = sql_of_test("history_intervals_do_not_overlap", "hist_f__t", {"stg_f__t": STAGED, "hist_f__t": FINAL})
    with duckdb.connect() as connection:
        connection.execute(
            f"""create view hist as select 'e' as _cdc_entity, valid_from::int as valid_from, valid_to::int as valid_to
            from (values {versions}) as v (valid_from, valid_to)"""
        )
        sql = sql.replace("s.hist_f__t", "hist").replace("struct(valid_from)", "{'valid_from': valid_from}")
        assert len(connection.execute(sql).fetchall()) == found


def test_H1_a_history_may_have_columns_of_any_name() -> None:
    sql = sql_of_test("history_intervals_do_not_overlap", "hist_f__t", {"stg_f__t": STAGED, "hist_f__t": FINAL})
    assert re.findall(r"\bas (\w+)", sql) == ["_cdc_next_from"]  # beside `*` another would be ambiguous with a column


@pytest.mark.parametrize(("name", "model"), TESTS)
def test_what_the_newest_load_touched_is_tested_by_its_keys(name: str, model: str) -> None:
    states = {"stg_f__t": STAGED, model: STAGED if model == "stg_f__t" else FINAL}
    above = 5 if model == "stg_f__t" else 4  # final took up what staging had loaded twice
    sql = sql_of_test(name, model, states, size=2**30, touched_only=True)
    assert "pmod" not in sql
    touched = f"select `id` from s.stg_f__t where _cdc_batch_id > {above} and _cdc_error is null"
    joined = f"from s.{model} as t left semi join ( select distinct * from ( {touched} ) ) as k on t.`id` <=> k.`id`"
    assert joined in sql
    if "rebuild" in name:
        assert joined.replace(f"s.{model}", "s.stg_f__t") in sql
    assert sql_of_test(name, model, states, touched_only=True, everything=True) == sql_of_test(name, model, states)
    # the first load, a rebuild, and one that somebody restored: all keys
    for state in ({"notes": {"after": -1}}, {"replaced": True}):
        first = {"stg_f__t": {**STAGED, "notes": STAGED["notes"] | {"after": -1}}, model: {**states[model], **state}}
        first["stg_f__t"] |= state if model == "stg_f__t" else {}
        assert "pmod(hash" in sql_of_test(name, model, first, size=2**30, touched_only=True)


def test_a_table_that_notes_nothing_of_its_load_is_tested_by_staging_s() -> None:
    for notes in ({}, {"after": None}):
        states = {"stg_f__t": STAGED, "final_t": {**FINAL, "notes": notes}}
        sql = sql_of_test("one_row_per_key", "final_t", states, touched_only=True)
        assert "_cdc_batch_id > 5 " in sql


def test_where_keys_moved_both_keys_are_tested_and_a_bucket_is_worked_out_from_all_of_staging() -> None:
    staged = {**STAGED, "notes": {"after": 5, "keys_may_move": True}}
    moving = {"stg_f__t": staged, "final_t": FINAL, "int_f__t_keys": {}, "hist_f__t": {}}
    name = "final_equals_rebuild_from_staging"
    keys: dict[str, Any] = {"keys": Relation(schema="s", identifier="int_f__t_keys"), "cdc": {"key_changes": True}}
    sql = sql_of_test(name, "final_t", moving, touched_only=True, **keys)
    assert "select inline(array_compact(array(key_before, key_after))) from s.int_f__t_keys" in sql
    assert "left join s.int_f__t_keys as k" in sql
    assert "union all select * from s.stg_f__t where _cdc_op = 'T'" in sql  # none is known to be there
    bucket = sql_of_test(name, "final_t", moving, size=2**30, **keys)
    assert "from s.stg_f__t where pmod" not in bucket
    assert bucket.count("pmod(hash(`id`), 5) = 0") == 2
    current = sql_of_test("one_current_row_per_key", "hist_f__t", moving, {"key_changes": True}, size=2**30)
    assert "from s.hist_f__t where pmod(hash(`id`), 5) = 0" in current


def test_Q3_what_a_revision_touched_is_tested_too() -> None:
    staged = {**STAGED, "txn_version": 9, "notes": {"after": 9, "revised_in": 9, "keys_may_move": False}}
    touched = "_cdc_revised_in > {0} "
    assert touched.format(8) in sql_of_test("each_change_once", "stg_f__t", {"stg_f__t": staged}, touched_only=True)
    final = sql_of_test("one_row_per_key", "final_t", {"stg_f__t": staged, "final_t": FINAL}, touched_only=True)
    assert touched.format(4) in final


def test_O4_E1_a_null_in_a_column_that_was_listed_since_makes_another_change() -> None:
    """What came before it was listed says nothing of it: staging takes the change again, told with the column."""
    since = {"properties": {"delta_cdc.joined_after": '{"a": 3}'}, "columns": {"id": "integer", "a": "integer"}}
    sql = sql_of_test("each_change_once", "stg_f__t", {"stg_f__t": {**STAGED, **since}})
    young = "if(_cdc_batch_id <= 3 and _cdc_op in ('I', 'U', 'R') and `a` is null, array('a'), array())"
    assert f"sort_array(array_union(_cdc_missing, concat({young}))) as _cdc_missing" in sql
    assert "sort_array(_cdc_missing) as _cdc_missing" in sql_of_test("each_change_once", "stg_f__t", {"stg_f__t": STAGED})


@pytest.mark.parametrize(("mode", "deleted"), [("late", 1), ("rebuild", 2)])
def test_A6_of_partitions_that_are_rewritten_the_rows_that_change_are_counted(mode: str, deleted: int) -> None:
    """Delta counts all that stand in them. Row 1 stays, 2 changes, 3 moves, 4 goes, 5 comes, 6 is nowhere, 7 is in no load."""
    connection = duckdb.connect()
    connection.execute(
        """create table final as select * from (values (1, 'a', 1), (2, 'a', 2), (3, 'a', 3), (4, 'b', 4), (7, 'd', 7))
        as t (id, day, n)"""
    )

    def rows(sql: str) -> list[dict[str, Any]]:
        found = connection.execute(sql.replace("<=>", "is not distinct from").replace("`", '"').replace("0L", "0"))
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    fakes = {"_partition_columns": ["day"], "_final_columns": ["id", "day", "n"], "_exact_text": "p1"}
    macros = load(giving(fakes), this="final", adapter=SimpleNamespace(query_rows=rows))
    winners = """select * from (values (1, 'a', 1, false), (2, 'a', 20, false), (3, 'c', 3, false), (4, null, null, true),
        (5, 'c', 5, false), (6, null, null, true)) as t (id, day, n, _cdc_is_gone)"""
    plan = {"mode": mode}
    touched = macros["_touched_partitions"]({**SETTINGS, "keys": ["id"]}, winners, plan)
    assert re.findall(r"cast\('(\w)'", touched) == ["a", "b", "c", *(["d"] if mode == "rebuild" else [])]
    assert plan["written"] == {"rows_inserted": 1, "rows_updated": 2, "rows_deleted": deleted}
    connection.close()


def test_a_table_without_keys_is_tested_whole() -> None:
    states = {"stg_f__t": STAGED, "final_t": FINAL}
    sql = sql_of_test("final_equals_rebuild_from_staging", "final_t", states, {"keys": [], "keyless": "append"}, size=2**40)
    assert "pmod" not in sql


def test_a_test_of_touched_keys_wants_to_know_the_table() -> None:
    with pytest.raises(CompilerError, match="It takes the table's source"):
        sql_of_test("one_row_per_key", "final_t", {}, source_table=None, touched_only=True)
    assert "from s.any group by" in sql_of_test("one_row_per_key", "any", {}, source_table=None)
    for name in ("one_current_row_per_key", "history_intervals_do_not_overlap", "each_change_once"):
        assert "from s.any " in sql_of_test(name, "any", {}, source_table=None)


def test_S4_what_reads_a_folder_knows_which_of_its_files_says_that_it_is_whole() -> None:
    told: list[dict[str, Any]] = []
    adapter = SimpleNamespace(
        tune_for=lambda change_sets: False,
        create_lines_view=lambda view, change_sets, feed: told.append(feed),
    )
    feed = dict.fromkeys(("csv_options", "listed_columns", "message_column", "kafka", "jdbc", "row_order"))
    feed |= {"feed": "shop", "format": "rows", "file_format": "csv", "ready": "manifest.json"}
    load(adapter=adapter)["_lines_of_change_sets"]("lines", [], feed)
    assert [each["ready"] for each in told] == ["manifest.json"]


@pytest.mark.parametrize(("serial", "listed", "left_out"), [
    ("t.a + 1", ["id"], ["cdc_serial"]), ("t.a + 1", ["id", "CDC_SERIAL"], []), ("a", ["id"], []), (None, ["id"], []),
])  # fmt: skip
def test_E1_what_a_landing_adds_to_the_rows_of_a_change_table_is_no_column_of_theirs(
    serial: str | None, listed: list[str], left_out: list[str]
) -> None:
    """Else each load would warn of it, and staging keep it in `_cdc_undeclared`."""
    macros = load(adapter=SimpleNamespace(serial_column=serial_column))
    settings = {"jdbc": {"serial": serial} if serial else None, "listed_columns": listed}
    assert macros["_added_by_landing"](settings) == left_out
    rows = ["ID", "A", "CDC_SERIAL"]
    assert _own_columns(rows, {"left_out": left_out}) == (rows[:2] if left_out else rows)


@pytest.mark.parametrize(("settings", "is_text"), [
    ({}, True), ({"file_format": "csv"}, True), ({"file_format": "parquet"}, False), ({"file_format": "delta"}, False),
    ({"file_format": "parquet", "message_column": "payload"}, True), ({"file_format": "delta", "kafka": {"topics": ["t"]}}, True),
])  # fmt: skip
@pytest.mark.parametrize("format_", ["rows", "snapshots", "change_event"])
def test_bytes_in_a_message_that_is_a_column_are_those_of_text(format_: str, settings: dict[str, Any], is_text: bool) -> None:
    sql = MACROS[f"{format_}_value"]("v", "binary", settings, "b")
    assert ("try_cast(v as binary)" in sql) == is_text
    assert is_text or sql == "try_to_binary(v, 'hex')"


@pytest.mark.parametrize(("time_type", "is_told"), [("timestamp", True), ("date", True), ("bigint", False)])
def test_S10_H1_what_a_copy_without_rows_deletes_has_the_time_of_the_copy(time_type: str, is_told: bool) -> None:
    settings = {
        **KEYED,
        "format": "snapshots",
        "sequence_by": ["_snapshot"],
        "occurred_at": "a",
        "columns": ["id"],
        "column_types": {"id": "int"},
        "snapshots": {"rows": "v", "pending": [], "past": None, "time_type": time_type},
    }
    sql = MACROS["changes_of_snapshots"](settings)
    (time,) = re.findall(r"(coalesce\(changed\._cdc_occurred_at, .*) as _cdc_occurred_at,\n", sql)
    assert time.startswith("coalesce(changed._cdc_occurred_at, s._cdc_occurred_at")
    assert time.endswith(f"s._cdc_modified_at) as {time_type}))") == is_told


def test_S10_Q1_a_row_that_cannot_be_used_and_was_away_for_a_copy_is_quarantined_again() -> None:
    """As where each copy is loaded by itself: its place in the order is the newer copy's."""
    settings = {
        **KEYED,
        "format": "snapshots",
        "sequence_by": ["_snapshot"],
        "occurred_at": "_snapshot_time",
        "columns": ["id", "a"],
        "column_types": {"id": "int", "a": "int"},
        "snapshots": {"rows": "v", "pending": [], "past": None, "time_type": None},
    }
    (sql,) = re.findall(r"(compared as \(.*?\n\)),\nplaced as", MACROS["changes_of_snapshots"](settings), re.DOTALL)
    before = """_cdc_number := told._cdc_number, _cdc_next_sure := s._cdc_next_sure, compared := a, _cdc_error := _cdc_error,
        _cdc_message := _cdc_message, _cdc_is_gone := _cdc_is_gone"""
    sql = re.sub(r"lag\(struct\(.*\)\)", f"lag(struct_pack({before}))", sql).replace("struct(`a`)", "a")
    sql = sql.replace("array()", "[]::text[]").replace("<=>", "is not distinct from").replace("`", '"')
    with duckdb.connect() as connection:
        connection.execute(
            "create table snapshots as select * from (values (1, 2), (2, 3), (3, 4), (4, null)) as s (_cdc_number,_cdc_next_sure)"
        )
        connection.execute(
            """create table told as select *, id as _cdc_row, []::text[] as _cdc_missing, null::text as _cdc_undeclared,
            null::int as _cdc_occurred_at, false as _cdc_is_gone, null::int as a, 'cast:a' as _cdc_error, 'x' as _cdc_message
            from (values (1, 7), (3, 7), (4, 7)) as t (_cdc_number, id)"""
        )
        found = connection.execute(f"with {sql} select _cdc_number, _cdc_op, _cdc_error from changed order by 1").fetchall()
    assert found == [(1, "U", "cast:a"), (2, "D", None), (3, "U", "cast:a")]


@pytest.mark.parametrize(("horizon", "expressions", "compared"), [
    (None, {}, ["a", "b"]), ("h", {}, ["b"]), ("h", {"b": "c + 1"}, ["b", "c"]), (None, {"b": "c + 1"}, ["a", "b", "c"]),
])  # fmt: skip
def test_S10_R1_what_a_compaction_keeps_of_an_insert_is_not_compared_with_copies(
    horizon: str | None, expressions: dict[str, str], compared: list[str]
) -> None:
    """Else each row whose column is another one by now is updated by the next copy, and final's `updated_at` is that copy's."""
    settings = {"keys": ["id"], "columns": ["id", "a", "b"], "column_types": dict.fromkeys(["id", "a", "b", "c"], "int")}
    settings |= {"set_on_insert": ["a"], "expressions": expressions, "horizon": horizon}
    assert MACROS["_compared_columns"](settings) == compared


def final_evolved(wish: str, **settings: Any) -> dict[str, Any]:
    """What becomes of a final whose staging has a new column and a new field of a struct."""
    struct = {"type": "struct", "fields": [{"name": "x", "type": "integer"}]}
    grown = {"type": "struct", "fields": [{"name": "x", "type": "integer"}, {"name": "y", "type": "integer"}]}
    columns = {"id": "integer", "s": grown, "new": "integer"}
    settings = {
        **KEYED,
        "sequence_by": ["seq"],
        "columns": list(columns),
        "tracked": list(columns),
        "partition_by": [],
        "column_types": {"id": "int", "s": "struct<x:int,y:int>", "new": "int"},
        "on_schema_change": wish,
        **settings,
    }
    of_staging = SimpleNamespace(exists=True, columns=columns, properties={}, notes={})
    state = SimpleNamespace(exists=True, columns={"id": "integer", "s": struct}, properties={}, notes={}, batch_id=1)
    adapter = SimpleNamespace(evolved=evolved, query_rows=lambda _: [])
    macros = load(this=Relation(schema="s", identifier="final"), adapter=adapter, is_incremental=lambda: True)
    found: dict[str, Any] = macros["_final_evolution"](settings, "s.stg", of_staging, state)
    return {**found, "published": settings["columns"]}


def test_E1_final_names_what_would_change() -> None:
    said = r"New: new; gone: none; of another type: `s`\.`y` int\. Final stays as it was\. .* delta-cdc rebuild \w+\.\w+$"
    with pytest.raises(CompilerError, match=said):
        final_evolved("fail")
    assert final_evolved("ignore")["published"] == ["id", "s"]


@pytest.mark.parametrize(("before", "wish", "rebuild"), [
    ("date", "append_new_columns", True), ("date", "sync_all_columns", True), ("date", "fail", False),
    ("timestamp", "append_new_columns", False), (None, "append_new_columns", False),
])  # fmt: skip
def test_E4_E7_final_is_made_anew_where_what_its_columns_are_made_of_became_a_time(
    before: str | None, wish: str, rebuild: bool
) -> None:
    settings = {
        **KEYED,
        "columns": ["id", "d"],
        "tracked": ["id", "d"],
        "partition_by": [],
        "on_schema_change": wish,
        "column_types": {"id": "int", "d": "timestamp"},
        "expressions": {"d": "if(id < 10, d, null)"},
    }
    of_staging = SimpleNamespace(exists=True, columns={"id": "integer", "d": "timestamp"}, properties={}, notes={})
    notes = {"expressions": settings["expressions"], **({"made_from": {"id": "integer", "d": before}} if before else {})}
    state = SimpleNamespace(exists=True, columns={"id": "integer", "d": "date"}, properties={}, notes=notes, batch_id=1)
    adapter = SimpleNamespace(evolved=evolved, query_rows=lambda _: [])
    macros = load(this=Relation(schema="s", identifier="final"), adapter=adapter, is_incremental=lambda: True)
    assert macros["_final_evolution"](settings, "s.stg", of_staging, state)["rebuild"] is rebuild


@pytest.mark.parametrize(("column", "shown", "wish", "rebuild"), [
    ("born", "date", "append_new_columns", True), ("touched", "date", "sync_all_columns", True), ("born", "date", "fail", None),
    ("_cdc_deleted_at", "date", "ignore", True), ("born", "timestamp", "append_new_columns", False),
    ("born", "timestamp", "fail", False),
])  # fmt: skip
def test_E4_A9_A10_final_is_made_anew_where_the_times_of_its_rows_became_moments(
    column: str, shown: str, wish: str, rebuild: bool | None
) -> None:
    """The order's column need not be one of final. rebuild: None where the run stops."""
    settings = {
        **KEYED,
        "columns": ["id"],
        "tracked": ["id"],
        "column_types": {"id": "int"},
        "partition_by": [],
        "on_schema_change": wish,
        "delete_mode": "soft",
        "created_at": "born",
        "updated_at": "touched",
    }
    of_staging = SimpleNamespace(
        exists=True, columns={"id": "integer", "seq": "timestamp", "_cdc_occurred_at": "timestamp"}, properties={}, notes={}
    )
    times = {**dict.fromkeys(["born", "touched", "_cdc_deleted_at"], "timestamp"), "_cdc_is_deleted": "boolean", column: shown}
    state = SimpleNamespace(exists=True, columns={"id": "integer", **times}, properties={}, notes={}, batch_id=1)
    adapter = SimpleNamespace(evolved=evolved, query_rows=lambda _: [])
    macros = load(this=Relation(schema="s", identifier="final"), adapter=adapter, is_incremental=lambda: True)
    stops = pytest.raises(CompilerError, match=f"`on_schema_change` is fail.*of another type: {column}")
    with stops if rebuild is None else nullcontext():
        assert macros["_final_evolution"](settings, "s.stg", of_staging, state)["rebuild"] is rebuild


def test_E7_final_with_another_expression_says_by_which_command_it_is_made_anew() -> None:
    state = SimpleNamespace(columns=["id", "n"], notes={"expressions": {"n": "id"}})
    macros = load(this=Relation(schema="s", identifier="final"), is_incremental=lambda: True)
    with pytest.raises(CompilerError, match=r"built with id\. Rebuild it: delta-cdc rebuild \w+\.\w+$"):
        macros["_refuse_changed_expressions"]({**KEYED, "expressions": {"n": "id + 1"}}, state)


@pytest.mark.parametrize("part", ["new", "new div 10 as tens"])
def test_E1_final_has_what_it_is_partitioned_by(part: str) -> None:
    said = r"`partition_by` names `new`, which s\.final does not have.* or rebuild it: delta-cdc rebuild \w+\.\w+$"
    with pytest.raises(CompilerError, match=said):
        final_evolved("ignore", partition_by=[part])
    assert final_evolved("append_new_columns", partition_by=[part])["published"] == ["id", "s", "new"]


@pytest.mark.parametrize("change", [{"insert_only": True}, {"keyless": "append"}, {"keyless": "multiset"}])
@pytest.mark.parametrize(("mode", "committed"), [("on_time", 10), ("rebuild", 10), ("rebuild", -1)])
def test_A4_what_is_appended_to_final_is_what_staging_had_when_it_was_planned(
    change: dict[str, Any], mode: str, committed: int
) -> None:
    """What another run stages meanwhile is above the transaction's batch: the next load would append it once more. -1: staging
    was restored by somebody else, and does not tell how far it has come."""
    settings = {"surrogate": "none", "insert_only": False, "keyless": "none", "apply": "merge", "columns": ["id"], **change}
    read: list[str] = []

    def rows(_: Any, staging: str, *__: Any) -> str:
        read.append(staging)
        return "select 1"

    staged = SimpleNamespace(committed=committed, notes={}, rows=1)
    state = SimpleNamespace(exists=True, rebuild=False, batch_id=9, notes={}, columns={})
    plan = SimpleNamespace(mode=mode, plain=False, removals=0, skip=False, changes=1)
    quiet = ("refuse_sample", "_refuse_other_keys", "refuse_other_staging", "refuse_before_staging", "gain_deletion_vectors")
    made: dict[str, Any] = dict.fromkeys(quiet, lambda *_: "")
    made |= {
        "settings": lambda _: settings, "progress": lambda _: state, "made_of": lambda *_: {}, "_final_notes": lambda *_: {},
        "let_through": lambda *_: {"staging": "s.stg", "staged": staged, "held": None}, "nothing_to_do": lambda *_: False,
        "_final_evolution": lambda *_: {"rebuild": False, "backfill": False, "columns": None, "new": {}},
        "resolved_batch_id": lambda *_: None, "plan_of_load": lambda *_: {**vars(plan), "keys": None},
        "transaction": lambda *_: {}, "newly_staged": lambda staging, *_: staging, "_shape_of_final": lambda _: None,
        "_final_appended": rows, "_final_rows": rows,
    }  # fmt: skip
    adapter = SimpleNamespace(plan_write=lambda *_: None)
    load(made, this="s.final", adapter=adapter, is_incremental=lambda: True)["final"]("source", "s.stg")
    assert read == ["(select * from s.stg where _cdc_batch_id <= 10)" if committed >= 0 else "s.stg"]


@pytest.mark.parametrize(("rebuild", "touched", "skip"), [(False, "", True), (False, "`p` = 1", False), (True, "", False)])
def test_S8_S6_partitions_of_a_restored_final_that_is_as_it_should_be_are_worked_out_once(
    rebuild: bool, touched: str, skip: bool
) -> None:
    """Without a commit of ours it would be of unknown progress in each run, and each would read all of staging."""
    settings = {"surrogate": "none", "insert_only": False, "keyless": "none", "apply": "replace_partitions", "columns": ["id"]}
    staged = SimpleNamespace(committed=9, notes={}, rows=1)
    state = SimpleNamespace(exists=True, rebuild=rebuild, batch_id=-1 if rebuild else 8, notes={}, columns={})
    plan = {
        "mode": "rebuild" if rebuild else "late",
        "plain": False,
        "removals": 0,
        "skip": False,
        "changes": 1,
        "keys": None,
        "revised": False,
        "written": {},
    }
    quiet = ("refuse_sample", "_refuse_other_keys", "refuse_other_staging", "refuse_before_staging", "gain_deletion_vectors")
    made: dict[str, Any] = dict.fromkeys(quiet, lambda *_: "")
    made |= {
        "settings": lambda _: settings, "progress": lambda _: state, "made_of": lambda *_: {}, "_final_notes": lambda *_: {},
        "let_through": lambda *_: {"staging": "s.stg", "staged": staged, "held": None}, "nothing_to_do": lambda *_: False,
        "_final_evolution": lambda *_: {"rebuild": False, "backfill": False, "nested": False, "columns": None, "new": {}},
        "resolved_batch_id": lambda *_: None, "plan_of_load": lambda *_: plan, "transaction": lambda *_: {},
        "_shape_of_final": lambda _: None, "_winners": lambda *_: "select 1", "_touched_partitions": lambda *_: touched,
        "_partitions_rewritten": lambda *_: "select 1",
    }  # fmt: skip
    planned: list[dict[str, Any]] = []
    adapter = SimpleNamespace(plan_write=lambda _, options: planned.append(options))
    load(made, this="s.final", adapter=adapter, is_incremental=lambda: True)["final"]("source", "s.stg")
    assert [options["skip"] for options in planned] == [skip]


@pytest.mark.parametrize(("location", "mask", "wanted"), [
    ("l", {}, "raw_f"), ("l", {"a": "1"}, "cdc_change_sets"), ("l/{table}", {}, "cdc_change_sets"),
])  # fmt: skip
def test_E7_a_model_from_before_the_settings_changed_is_to_be_generated_anew(location: str, mask: dict, wanted: str) -> None:
    settings = {"feed": "f", "table": "t", "format": "debezium", "location": location, "mask": mask}
    macros = load(giving({"_model_relation": SimpleNamespace(identifier="cdc_change_sets")}))
    for reads in ("raw_f", "cdc_change_sets"):
        if reads == wanted:
            macros["_refuse_other_source"](settings, SimpleNamespace(identifier=reads))
            continue
        with pytest.raises(CompilerError, match=f"its model reads {reads}, .* come from {wanted}.* `delta-cdc generate`"):
            macros["_refuse_other_source"](settings, SimpleNamespace(identifier=reads))


@pytest.mark.parametrize("macro", ["history", "final"])
@pytest.mark.parametrize(
    ("settings", "keys", "is_old"),
    [({}, None, True), ({}, "s.int", False), ({"key_changes": False}, None, False), ({"insert_only": True}, None, False)],
)
def test_K1_a_model_from_before_keys_could_change_is_to_be_generated_anew(
    macro: str, settings: dict, keys: str | None, is_old: bool
) -> None:
    """Rows would stay at the keys that they left."""

    class Passed(Exception):
        pass

    def passed(_: Any) -> None:
        raise Passed

    given = {**SETTINGS, "feed": "f", "table": "t", **settings}
    macros = load(
        {"settings": lambda _: given, "refuse_sample": lambda _: "", "progress": passed, "let_through": passed}, this="s.m"
    )
    said = r"its model s\.m reads no keys table, .* `delta-cdc generate`"
    with pytest.raises(CompilerError, match=said) if is_old else pytest.raises(Passed):
        macros[macro]("source", "s.stg", keys)


def test_S2_of_a_mixed_feed_what_raw_had_when_the_load_was_planned_is_staged() -> None:
    settings = {"feed": "f", "source_table": "t", "format": "wal2json_v2", "location": "/x"}
    made = {
        "progress": lambda _: SimpleNamespace(batch_id=7, rows=1, notes={}),
        "reads_files": lambda _: False,
        "_source_names": lambda *_: ["t"],
        "_retracted_batches": lambda _: [],
    }
    macros = load(made, adapter=SimpleNamespace(tune_for=lambda *_, **__: False))
    new = macros["_new_lines"](settings, SimpleNamespace(), SimpleNamespace(batch_id=3, exists=True))
    assert new["last"] == 7
    assert " where batch_id > 3 and batch_id <= 7 and " in new["lines"]


@pytest.mark.parametrize(
    ("reached", "lines"), [(5, " where batch_id > 1 and source_table = 'a.t' and batch_id not in (5))"), (1, None)]
)
def test_S9_of_a_mixed_feed_a_file_counts_again_as_it_was_loaded_though_it_was_rewritten(reached: int, lines: str | None) -> None:
    """Batch 2 was rewritten, and came again as batch 5, which was taken back; raw has the lines of both."""
    made = {
        "progress": lambda _: SimpleNamespace(batch_id=reached, notes={}), "_retracted_batches": lambda _: [1, 5],
        "qualified_folder": lambda _: "file:/l",
    }  # fmt: skip
    adapter = SimpleNamespace(query_rows=lambda _: [])  # of the newest record of each file none counts
    table = SimpleNamespace(settings={"feed": "f", "source_table": "a.t"}, raw=SimpleNamespace(), staging="stg")
    found = load(made, adapter=adapter)["_lines_of_later_sets"]("ledger", table, 1)
    assert found["gone"] == []
    assert found["lines"].endswith(lines) if lines else found["lines"] is None


def test_Q4_A2_rows_that_are_gone_are_not_deleted_by_what_comes_again_in_sets_of_one_load() -> None:
    """1 and 2 were deleted, 3 and 4 truncated, 6 moved to 7 and was deleted. All comes again: inserts, moves, then deletes."""
    made = {"_model_of": lambda *_: "final", "_has_model": lambda *_: True}
    adapter = SimpleNamespace(table_state=lambda _: SimpleNamespace(exists=True, notes={}, columns={}))
    settings = {"keys": ["id"], "max_delete_share": 0.5, "key_changes": True, "kept_changes": "kept"}
    state, plan = SimpleNamespace(exists=True, notes={}), SimpleNamespace(late=1, truncates=0)
    sql = load(made, adapter=adapter)["_about_change_sets"](settings, "stg", None, state, plan)
    newest = "struct(_cdc_position, _cdc_ends, _cdc_goes)"
    for of_spark, of_duckdb in {
        newest: newest.replace("struct(", "struct_pack("),
        "struct(": "row(",
        "<=>": "is not distinct from",
        "`": '"',
        "left semi join": "semi join",
        "left anti join": "anti join",
        "0L": "0",
        "struct_pack(": "row_of(",
    }.items():
        sql = sql.replace(of_spark, of_duckdb)
    with duckdb.connect() as connection:
        connection.execute("create macro row_of(p, e, g) as struct_pack(_cdc_position := p, _cdc_ends := e, _cdc_goes := g)")
        connection.execute(
            """create table stg as select * exclude (old), 0 as _cdc_ordinal, null as _cdc_error,
              if(old is null, null, {'id': old}) as _cdc_key_before
            from (values
              (0, 0, 'I', 1, 1, null), (0, 1, 'I', 2, 2, null), (0, 2, 'I', 3, 3, null), (0, 3, 'I', 4, 4, null),
              (0, 4, 'T', null, 9, null), (1, 0, 'I', 1, 11, null), (1, 1, 'I', 2, 12, null), (1, 2, 'I', 5, 13, null),
              (1, 3, 'I', 6, 14, null), (1, 4, 'U', 7, 15, 6), (1, 5, 'D', 1, 21, null), (1, 6, 'D', 2, 22, null),
              (1, 7, 'D', 7, 23, null)
            ) as s (_cdc_batch_id, _cdc_row, _cdc_op, id, _cdc_sequence, old)"""
        )
        connection.execute("create table final as select 5 as id")
        connection.execute(
            """create table kept as select * replace (_cdc_batch_id + 2 as _cdc_batch_id), 's' as _cdc_change_set from stg
            where _cdc_op = 'I' union all select * replace (4 as _cdc_batch_id), 's' from stg where _cdc_op = 'U'
            union all select * replace (5 as _cdc_batch_id), 's' from stg where _cdc_op = 'D'
            union all select * replace (5 as _cdc_batch_id, 'D' as _cdc_op), 's' from stg where id in (3, 4)"""
        )
        counted = connection.execute(sql).fetchall()
    assert [(batch_id, deletes, live) for batch_id, _, _, _, deletes, live in counted] == [(at, 0, 1) for at in (2, 3, 4, 5)]


def test_S9_K1_the_row_comes_back_to_its_old_key_where_keys_change_no_more() -> None:
    """The key change of 1 to 2 was retracted, and `key_changes` or `old_keys`, by which it was one, was taken out."""
    sql = MACROS["touched_keys"]({**SETTINGS, "key_changes": False, "old_keys": {}}, "stg", None, 1, True)
    with duckdb.connect() as connection:
        connection.execute(
            """create table stg as select 2 as _cdc_batch_id, 3 as _cdc_revised_in, 'retracted' as _cdc_error, 2 as id,
              {'id': 1} as _cdc_key_before"""
        )
        assert connection.execute(sql.replace("`", '"') + " order by 1").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(("on_disk", "read", "gone"), [(20, [4, 5], [2]), (10, [2, 4], [5]), (None, [4], [2, 5])])
def test_S9_a_later_file_that_was_rewritten_since_is_named(on_disk: int | None, read: list[int], gone: list[int]) -> None:
    """Batch 2 of a.json had 10 bytes, batch 5 has 20; 6 was taken back; of batch 3 a ledger that was lost knows no size."""
    found: dict[str, list] = {}
    with duckdb.connect() as connection:
        connection.execute(
            """create table ledger as select *, 'f' as feed, 'file' as unit, null as modified_at from (values
              (1, 'file:/l/t/0.json', 5, 'recorded'), (2, 'file:/l/t/a.json', 10, 'recorded'),
              (3, 'file:/l/t/c.json', null, 'recovered'), (4, 'file:/l/t/c.json', 7, 'recorded'),
              (5, 'file:/l/t/a.json', 20, 'recorded'), (6, 'file:/l/t/c.json', 8, 'retracted')
            ) as s (batch_id, change_set, size, status)"""
        )

        def rows_of(sql: str) -> list[dict]:
            rows = connection.execute(sql.replace("* except (status)", "* exclude (status)").replace("startswith", "starts_with"))
            return [dict(zip([each[0] for each in rows.description], row, strict=True)) for row in rows.fetchall()]

        def changed(sets: list[dict], ready: str) -> list[dict]:
            there = {"file:/l/t/a.json": on_disk, "file:/l/t/c.json": 7}
            return [each for each in sets if each["size"] not in (None, there[each["change_set"]])]

        made = {
            "qualified_folder": lambda _: "file:/l/t", "progress": lambda _: None,
            "lines_of_files": lambda view, sets, settings: found.update(read=[each["batch_id"] for each in sets]) or "lines",
        }  # fmt: skip
        settings, staging = SimpleNamespace(feed="f", ready=None), SimpleNamespace(identifier="stg")
        macros = load(made, adapter=SimpleNamespace(query_rows=rows_of, changed_files=changed))
        later = macros["_lines_of_later_sets"]("ledger", SimpleNamespace(settings=settings, raw=None, staging=staging), 1)
    assert [each["batch_id"] for each in later["gone"]] == gone
    assert found["read"] == read


def test_R2_raw_loses_what_staging_could_not_use_at_another_key_and_what_it_never_took() -> None:
    """1 moved to 2 at 50, and is erased by 1. Batch 3 has a bad value at 2, which comes again in 5; 4 was retracted before
    staging took it; 6 is of another person who got the key 2 later."""
    found: list[str] = []
    made = giving({"_staging_ctes": "changes as (select * from told)", "_lines_of_table": "", "_retracted_batches": [4]})
    made["_delete_from_raw"] = lambda raw, rows: found.append(rows)
    load(made)["_erase_from_raw"](SimpleNamespace(settings={"keys": ["id"], "feed": "f"}), "raw_f")
    sql = found[0].replace("<=>", "is not distinct from").replace("`", '"').replace("struct(", "row(")
    with duckdb.connect() as connection:
        connection.execute(
            """create table told as select *, 0 as _cdc_ordinal, 1 as _cdc_row,
              if(old is null, null, {'id': old}) as _cdc_key_before from (values
                (1, 1, null, 10, 'I', null), (2, 2, 1, 50, 'U', null), (3, 2, null, 90, 'U', 'bad'),
                (4, 2, null, 95, 'U', null), (5, 2, null, 90, 'U', 'bad'), (6, 2, null, 99, 'I', null)
              ) as s (_cdc_batch_id, id, old, _cdc_sequence, _cdc_op, _cdc_raw)"""
        )
        connection.execute("create table cdc_changes_of_row as select * from told where _cdc_batch_id in (1, 2, 3)")
        connection.execute(
            """create view cdc_keys_of_row as select id, row(place, 0) as _cdc_position
            from (values (1, 50), (2, 50)) as k (id, place)"""
        )
        assert connection.execute(sql + " order by 1").fetchall() == [(batch, 1) for batch in (1, 2, 3, 4, 5)]


def test_R2_K7_a_row_that_an_erased_one_displaced_stays_ended() -> None:
    """a moved to 2, where d was, and to 3, where e was; there e changed once more in that transaction, and g came after a. What a
    displaced of itself goes with it."""
    macros = load({"json_of": lambda value: f"{value}::text"})
    sql = macros["_ends_of_displaced"](SimpleNamespace(settings={"keys": ["id"]}, staging="stg"), "keys")
    sql = sql.replace("<=>", "is not distinct from").replace("`", '"').replace("struct(", "row(")
    found = []
    for comes in ("'t50'", "'t60'"):  # g: in a's transaction, or in one of its own
        with duckdb.connect() as connection:
            connection.execute(
                f"""create table stg as select *, 1 as _cdc_batch_id, 0 as _cdc_ordinal, null::text as _cdc_error,
                  _cdc_sequence as _cdc_occurred_at, 8 as _cdc_staged_at
                from (values (1, 1, 10, null, 'a', null), (2, 2, 11, null, 'd', null), (3, 3, 12, null, 'e', null),
                  (4, 2, 20, 't20', 'a', 'd'), (5, 3, 50, 't50', 'a', 'e'), (6, 3, 51, 't50', 'e', null),
                  (7, 3, 60, {comes}, 'g', 'a'), (8, 2, 70, 't70', 'a', 'a2'), (9, 2, 65, null, 'a2', null)
                ) as s (_cdc_row, id, _cdc_sequence, _cdc_transaction, entity, displaced_entity)"""
            )
            connection.execute("create table keys as select _cdc_batch_id, _cdc_row, entity, displaced_entity from stg")
            connection.execute("create table cdc_changes_of_row as select * from stg where entity in ('a', 'a2')")
            found.append(connection.execute(sql + " order by 1").fetchall())
    assert found[0] == [(2, 20, 8, (20, 0))]
    assert found[1] == [(2, 20, 8, (20, 0)), (3, 50, 8, (51, 0))]


def test_R2_K7_what_is_said_at_the_key_of_a_displaced_row_after_it_is_the_erased_one_s() -> None:
    """a moved from 1 to 2, where d was, and was updated there in that transaction: by K3 that is of d. What came before is."""
    macros = load({"json_of": lambda value: f"{value}::text", "_keys_table": lambda _: "keys"})
    found = []
    with duckdb.connect() as connection:
        connection.execute(
            """create table stg as select *, 1 as _cdc_batch_id, 0 as _cdc_ordinal, null::text as _cdc_error
            from (values (1, 'I', 1, null, 10, null, 'a', null), (2, 'I', 2, null, 11, null, 'd', null),
              (3, 'U', 2, null, 20, 'x', 'd', null), (4, 'U', 2, {'id': 1}, 21, 'x', 'a', 'd'),
              (5, 'U', 2, null, 22, 'x', 'd', null), (6, 'U', 2, null, 30, 'y', 'a', null), (7, 'U', 3, null, 23, 'x', 'd', null)
            ) as s (_cdc_row, _cdc_op, id, _cdc_key_before, _cdc_sequence, _cdc_transaction, entity, displaced_entity)"""
        )
        connection.execute(
            """create table keys as select _cdc_batch_id, _cdc_row, _cdc_op, _cdc_sequence, entity, displaced_entity,
            '' as origin, {'id': id} as key_after, _cdc_key_before as key_before from stg"""
        )
        connection.execute("create table cdc_named_key as select 1 as id")
        for erasing in (False, True):
            sql = macros["_changes_of_row"](SimpleNamespace(settings={"keys": ["id"]}, staging="stg"), erasing)
            for spark, duck in (
                ("<=>", "is not distinct from"),
                ("`", '"'),
                ("struct(", "row("),
                ("explode(", "unnest("),
                ("array_compact(array(c.key_before, c.key_after))", "[c.key_before, c.key_after]"),
            ):
                sql = sql.replace(spark, duck)
            found.append([row for (row,) in connection.execute(f"select _cdc_row from ({sql}) order by 1").fetchall()])
    assert found == [[1, 4, 6], [1, 4, 5, 6]]


def test_R2_K7_the_delete_of_a_displaced_row_is_one_of_its_own() -> None:
    """It is no half of a key change (K6), and ends the row that is there after its transaction."""
    settings = {"keys": ["id", "part"], "key_changes": True}
    table = SimpleNamespace(settings=settings, staging="stg")
    for keys_table, ends in ((None, False), ("keys", True)):
        sql = load(giving({"_keys_table": keys_table}))["_stays_of_erased"](table)
        assert ("select `id`, `part`, _cdc_occurred_at, _cdc_staged_at, _cdc_position, null" in sql) == ends
        assert "select if(false, `id`, null) as `id`, if(false, `part`, null) as `part`, null as _cdc_occurred_at" in sql
    ran: list[str] = []
    found = SimpleNamespace(ledger="ledger", table=SimpleNamespace(name="f.t", settings=settings, staging="stg"), batches=[1])
    fakes = {"_look_at_erasure": found, "raw_of": None, "_keys_table": "keys", "_record_revision_of": 9, "_announce": ""}
    revised = {"_revise": lambda _, sql, __: ran.append(sql) or SimpleNamespace(rows_deleted=1)}
    adapter = SimpleNamespace(
        create_kept_view=lambda *_: "", query_rows=lambda sql: [] if "ledger" in sql else [SimpleNamespace(n=0)]
    )
    load(giving(fakes) | revised, adapter=adapter, print=lambda _: "")["erase"]("stg")
    assert "values (s._cdc_stays.`id`, s._cdc_stays.`part`, 'D', " in ran[0]
    assert "if(s._cdc_stays._cdc_erased is null, 'erase', null), s._cdc_stays._cdc_occurred_at" in ran[0]


@pytest.mark.parametrize(("appended", "restored"), [(True, [(3, 1)]), (False, [])])
def test_S9_N2_a_retraction_restores_a_row_that_differs_from_others_in_a_young_column(appended: bool, restored: list) -> None:
    """`note` was listed after batch 1. Batch 2 told another note, batch 3 the same as batch 1, as a copy of which it was dropped.
    The row of batch 4 is from before, too, and staging lacks the text of its note."""
    settings = {"joined_after": {"note": 1}, "insert_only": appended, "keyless": None}
    table = SimpleNamespace(name="f.t", settings=settings, staging="stg")
    rows = "select * exclude (told, note), {} as note from stg"
    made = {
        "_staging_columns": ["id", "note", "_cdc_batch_id", "_cdc_row"],
        "staged_rows": f"({rows.format('null::text')})",
        "staged_as_told": f"({rows.format('told')})",
        "_staging_sql": "select * from again",
        "_lines_of_later_sets": SimpleNamespace(lines="lines", gone=[]),
        "_revise": SimpleNamespace(rows_updated=1, rows_inserted=0),
    }
    views: dict[str, str] = {}
    adapter = SimpleNamespace(create_kept_view=views.__setitem__, query_rows=lambda _: [SimpleNamespace(n=1)])

    def same_content(_: dict, left: str, right: str, but: Any = ()) -> str:
        return " and ".join(f"{left}.{name} is not distinct from {right}.{name}" for name in ("id", "note") if name not in but)

    load(giving(made) | {"same_content": same_content}, adapter=adapter, print=lambda _: "")["_retract_from"](
        "ledger", table, 1, 9
    )
    with duckdb.connect() as connection:
        connection.execute(
            """create table stg as select *, null::text as note, null::text as _cdc_error, 1 as _cdc_row
            from (values (5, 'x', 1), (5, 'y', 2), (5, null, 4)) as s (id, told, _cdc_batch_id)"""
        )
        connection.execute(
            """create table again as select *, null::text as _cdc_error, 1 as _cdc_row
            from (values (5, 'y', 2), (5, 'x', 3), (5, 'z', 4)) as s (id, note, _cdc_batch_id)"""
        )
        sql = views["cdc_revision"].replace("<=>", "is not distinct from")
        found = f"select _cdc_batch_id, _cdc_row from ({sql}) where _cdc_action = 'restore'"
        assert connection.execute(found).fetchall() == restored


def test_Q3_O4_what_is_replayed_is_no_copy_of_a_row_before_another_that_was_usable() -> None:
    """At one place a set said 300, then 5, then 300 and once more 300, which fitted only later and is the last word."""
    settings = {
        "keys": ["id"], "keyless": "none", "column_types": {"id": "int", "v": "int"}, "renamed_columns": {},
        "kept_changes": "again", "kept_sql": "",
    }  # fmt: skip
    table = {"name": "f.t", "staging": "staged", "grows": [], "settings": settings}
    found: list[tuple] = []
    with duckdb.connect() as connection:
        for relation, error, rows in (("staged", "if(v = 5, null, 'cast:v')", (1, 2, 3, 4)), ("again", "null::text", (1, 3, 4))):
            connection.execute(
                f"""create table {relation} as select 1 as id, if(_cdc_row = 2, 5, 300) as v, 'U' as _cdc_op,
                null as _cdc_key_before, 7 as _cdc_sequence, null::int as _cdc_ordinal, null as _cdc_transaction,
                null as _cdc_occurred_at, []::text[] as _cdc_missing, null as _cdc_undeclared, {error} as _cdc_error,
                null as _cdc_raw, 1 as _cdc_batch_id, 's' as _cdc_change_set, _cdc_row, null as _cdc_staged_at
                from unnest({list(rows)}) as r (_cdc_row)"""
            )

        def kept(_: str, sql: str) -> None:
            sql = sql.replace("<=>", "is not distinct from").replace("`", '"').replace("sort_array(", "list_sort(")
            found.extend(connection.execute(sql.replace("struct(", "row(")).fetchall())

        adapter = SimpleNamespace(
            create_kept_view=kept, query_rows=lambda sql: [{"n": 0}] if "count(*) as n from cdc" in sql else []
        )
        made = {"_ledger": lambda: "", "_staging_tables": lambda **_: [table]}
        load(made, adapter=adapter, print=lambda _: None)["replay"](["stg_f__t"])
    assert sorted(row[-2] for row in found) == [1, 3]


def test_R2_Q3_what_is_replayed_of_an_erased_person_is_blanked() -> None:
    """Its key could not be read when the person was erased."""
    ran: list[str] = []
    said: list[str] = []
    settings = {**SETTINGS, "keys": ["id"], "erased_in": "stg", "staged_types": {}}
    table = SimpleNamespace(name="f.t", staging="stg", grows=[], settings=settings, raw="raw_f")
    made = {
        "_ledger": "", "_staging_tables": [table], "_not_loaded": "", "_record_revision_of": 9, "_lines_of_table": "lines",
        "_staging_sql": "read", "_erase_again_from_raw": "", "_revise": SimpleNamespace(rows_updated=3),
    }  # fmt: skip
    adapter = SimpleNamespace(
        create_kept_view=lambda _, sql: ran.append(sql),
        query_rows=lambda sql: [{"erased": 1, "n": 3}] if "from cdc_revision" in sql else [{"error": "erased", "n": 1}],
    )
    fakes = giving(made) | {"_erase_again_from_raw": lambda settings, raw, lines: ran.append(f"{raw} loses its messages")}
    load(fakes, adapter=adapter, print=said.append)["replay"](["stg_f__t"])
    assert "where _cdc_error = 'erased' or _cdc_error is null and not exists (" in " ".join(ran[0].split())
    assert ran[1:] == ["raw_f loses its messages"]
    assert said[0].startswith("table f.t: 2 changes replayed, as batch 9, still quarantined: 1 erased.")
    assert said[1].startswith("table f.t: 1 rows are of an erased person, and are blanked.")
