"""The adapter's macros, without dbt and Spark."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.macros import CompilerError, load_adapter

from dbt.adapters.sparkdelta.connections import PLAN_SUFFIX
from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter, SparkdeltaColumn


class Config(dict[str, Any]):
    """A model's."""

    def persist_relation_docs(self) -> bool:
        return True

    def persist_column_docs(self) -> bool:
        return True


def statements_of(macro: str, *arguments: Any, config: Config, answers: dict[str, Any], **context: Any) -> list[str]:
    """What a macro has Spark do but for the questions that `answers` has, by what they begin with."""
    done = []

    def run_query(sql: str) -> Any:
        for question, answer in answers.items():
            if sql.startswith(question):
                return answer
        done.append(sql)
        return None

    def statement(*_: Any, caller: Any) -> str:
        done.append(" ".join(caller().split()))
        return ""

    load_adapter(
        config=config,
        run_query=run_query,
        statement=statement,
        adapter=SimpleNamespace(quote=lambda name: f"`{name}`"),
        validate_doc_columns=lambda relation, told, there: told,
        **context,
    )[macro](*arguments)
    return done


@pytest.mark.parametrize(("schema", "clause"), [("main", "location '/lake/t'"), (f"main{PLAN_SUFFIX}", "")])
def test_a_plan_makes_no_table_at_the_place_of_the_real_one(schema: str, clause: str) -> None:
    """Delta refuses to make a clone anew in another place than it has."""
    macros = load_adapter(target=SimpleNamespace(schema=schema), spark__location_clause=lambda: "location '/lake/t'")
    assert macros["sparkdelta__location_clause"]() == clause


def test_a_snapshot_inserts_the_columns_of_its_query_alone() -> None:
    macros = load_adapter(default__snapshot_merge_sql=lambda target, source, columns: f"{target} {source} {', '.join(columns)}")
    columns = ["`a`", "`dbt_unique_key_1`", "`DBT_UNIQUE_KEY_2`", "`dbt_scd_id`"]
    assert macros["sparkdelta__snapshot_merge_sql"]("t", "s", columns) == "t s `a`, `dbt_scd_id`"


@pytest.mark.parametrize(
    ("asked", "wanted"), [("all", (False, ["`Amount`", "`a b`"])), (["amount", "word"], (True, ["`Amount`"]))]
)
def test_a_snapshot_knows_a_column_whatever_the_case_of_its_name(asked: Any, wanted: tuple[bool, list[str]]) -> None:
    """It was new in every run, and every row a new version."""
    there = [SparkdeltaColumn(column=name, dtype="int") for name in ("Amount", "a b", "dbt_scd_id")]
    adapter = SimpleNamespace(
        get_relation=lambda **_: "s.t",
        get_columns_in_relation=lambda _: there,
        columns_within=lambda columns, others: SparkdeltaAdapter.columns_within(None, columns, others),  # type: ignore[arg-type]
    )
    queries = {"select 1": ["amount", "A B"], "select amount, word from (\nselect 1\n) subq": ["amount", "word"]}
    compare = load_adapter(adapter=adapter, get_columns_in_query=queries.__getitem__)["snapshot_check_all_get_existing_columns"]
    node = SimpleNamespace(database=None, schema="s", alias="t", compiled_code="select 1")
    assert compare(node, True, asked) == wanted
    assert compare(node, False, asked) == (False, [])


def test_a_snapshot_is_told_the_names_of_its_columns() -> None:
    """dbt looks for each column of the query among them: of a row that its source deleted all were null."""
    columns = [SparkdeltaColumn(column="id", dtype="int")]
    macros = load_adapter(adapter=SimpleNamespace(get_columns_in_relation={"s.t": columns}.__getitem__))
    assert [column.name for column in macros["sparkdelta__get_columns_in_relation"]("s.t")] == ["id"]


def test_a_column_has_changed_its_type_whatever_the_case_of_its_name() -> None:
    """It was not widened, and a decimal was rounded to what the table has."""

    def columns(**types: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name, dtype=dtype) for name, dtype in types.items()]

    compare = load_adapter()["sparkdelta__diff_column_data_types"]
    there = columns(id="int", Amount="decimal(10,2)", Word="string")
    wanted = [{"column_name": "amount", "new_type": "decimal(12,4)"}]
    assert compare(columns(ID="int", amount="decimal(12,4)", word="string", more="int"), there) == wanted
    assert compare(columns(id="int"), there) == []


def merge(**config: Any) -> str:
    """The statement of a merge by `id` of a table with one column more."""
    columns = [SparkdeltaColumn(column=name, dtype="int") for name in ("id", "n")]
    within, without = (partial(of, None) for of in (SparkdeltaAdapter.columns_within, SparkdeltaAdapter.columns_without))
    adapter = SimpleNamespace(columns_within=within, columns_without=without)
    arguments = {"target_relation": "t", "temp_relation": "s", "unique_key": "id", "dest_columns": columns,
                 "delete_unmatched": False, "incremental_predicates": []}  # fmt: skip
    macros = load_adapter(config=Config(config), adapter=adapter)
    return " ".join(macros["sparkdelta__get_incremental_merge_sql"](arguments).split())


@pytest.mark.parametrize("action", ["delete", "Update set n = 0", "update set\n  n = 0", " update  set n = 0"])
def test_an_action_on_what_the_source_lacks_may_have_lines(action: str) -> None:
    assert merge(not_matched_by_source_action=action).endswith(f"when not matched by source then {' '.join(action.split())}")


@pytest.mark.parametrize("action", ["drop", "update n = 0", "deleted", "update settings"])
def test_another_action_is_refused(action: str) -> None:
    with pytest.raises(CompilerError, match="wants 'delete' or 'update set"):
        merge(not_matched_by_source_action=action)


class Relation(str):
    is_view = False


def commented(config: Config, there: list[tuple[str, str, str]], told: dict[str, str]) -> list[str]:
    """The statements that give a table's columns the descriptions told."""
    model = {"description": "", "columns": {name: {"description": text} for name, text in told.items()}}
    return statements_of(
        "sparkdelta__persist_docs", Relation("s.t"), model, True, True, config=config, answers={"describe extended": there}
    )


@pytest.mark.parametrize(
    ("file_format", "statements"),
    [
        ("delta", ["alter table s.t alter column `a` comment 'x', `b` comment 'y'"]),
        ("parquet", ["alter table s.t alter column `a` comment 'x'", "alter table s.t alter column `b` comment 'y'"]),
    ],
)
def test_a_table_of_spark_s_own_takes_one_comment_a_statement(file_format: str, statements: list[str]) -> None:
    there = [("a", "int", ""), ("b", "int", ""), ("c", "int", "z"), ("", "", "")]
    config = Config(file_format=file_format)
    assert commented(config, there, {"a": "x", "b": "y", "c": "z"}) == statements
    assert commented(config, there, {"c": "z"}) == []


@pytest.mark.parametrize(
    ("description", "column", "persist", "kept"),
    [
        ("a view", "the key", (True, True), True),
        ("a view", "its key", (True, True), False),
        ("another", "the key", (True, True), False),
        ("another", "its key", (False, False), True),
        ("another", "the key", (False, True), True),
    ],
)
def test_a_view_that_is_kept_has_the_descriptions_of_its_model(
    description: str, column: str, persist: tuple[bool, bool], kept: bool
) -> None:
    there = [
        ("customerId", "int", "the key"), ("n", "int", None), ("", "", ""), ("# Detailed", "", ""), ("Comment", "a view", ""),
    ]  # fmt: skip
    model = SimpleNamespace(
        description=description,
        columns={
            name: SimpleNamespace(name=name, description=text)
            for name, text in (("customerid", column), ("n", ""), ("gone", "x"))
        },
    )
    relation_docs, column_docs = persist
    config = SimpleNamespace(persist_relation_docs=lambda: relation_docs, persist_column_docs=lambda: column_docs)
    macros = load_adapter(config=config, run_query=lambda _: there)
    assert macros["sparkdelta_has_its_docs"]("s.v", model) is kept


def test_a_column_that_is_described_in_another_case_is_not_told_again() -> None:
    there = [("customerId", "int", "the key"), ("day", "date", "it")]
    assert commented(Config(), there, {"customerid": "the key", "Day": "it"}) == []
    assert commented(Config(), there, {"CUSTOMERID": "other"}) == ["alter table s.t alter column `CUSTOMERID` comment 'other'"]


def test_a_view_s_column_may_be_described_in_another_case() -> None:
    comment = load_adapter(adapter=SimpleNamespace(quote=lambda name: f"`{name}`"))["get_column_comment_sql"]
    told = {"CustomerID": {"description": "the key"}, "day": {"description": "it"}, "Day": {"description": ""}}
    assert [comment(name, told).strip() for name in ("customerId", "day", "Day", "n")] == [
        "`customerId` comment 'the key'", "`day` comment 'it'", "`Day`", "`n`",
    ]  # fmt: skip


def test_columns_whose_names_begin_with_a_hash_end_no_list_of_columns() -> None:
    there = [("# sold", "int", "how many"), ("Comment", "string", "a text"), ("day", "date", "")]
    there += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), ("day", "date", "another's")]
    assert commented(Config(), there, {"# sold": "how many", "Comment": "a text"}) == []
    assert commented(Config(), there, {"day": "it"}) == ["alter table s.t alter column `day` comment 'it'"]
    assert commented(Config(), there, {"day": ""}) == []


@pytest.mark.parametrize(
    ("was", "becomes", "dropped"),
    [("delta", "delta", 0), ("delta", "parquet", 1), ("parquet", "delta", 1), ("parquet", "parquet", 1)],
)
def test_a_seed_of_another_format_makes_way(was: str, becomes: str, dropped: int) -> None:
    gone: list[object] = []
    macros = load_adapter(config=Config(file_format=becomes), adapter=SimpleNamespace(drop_relation=gone.append))
    there = SimpleNamespace(is_table=True, is_delta=was == "delta")
    macros["sparkdelta__reset_csv_table"](None, False, there, SimpleNamespace(rows=["a row"]))
    assert len(gone) == dropped


WARNED: list[str] = []


def refuse(message: str) -> None:
    raise CompilerError(message)


def constrained(*of_the_model: dict[str, Any], **of_columns: list[dict[str, Any]]) -> list[str]:
    """The checks that a new table gets."""
    return [sql.partition(" check ")[2] for sql in altered({}, *of_the_model, **of_columns)]


def altered(there: dict[str, str], *of_the_model: dict[str, Any], **of_columns: list[dict[str, Any]]) -> list[str]:
    """The statements of a table that has some checks already."""
    WARNED.clear()
    columns = {name: {"name": name, "constraints": given} for name, given in of_columns.items()}
    properties = [("delta.minReaderVersion", "1"), *((f"delta.constraints.{name}", check) for name, check in there.items())]
    return statements_of(
        "sparkdelta__persist_constraints",
        "s.t",
        {"constraints": of_the_model, "columns": columns},
        config=Config(contract=SimpleNamespace(enforced=True)),
        answers={"show tblproperties": properties},
        exceptions=SimpleNamespace(warn=WARNED.append, raise_compiler_error=refuse),
    )


@pytest.mark.parametrize(
    ("there", "statements"),
    [
        ({}, ["add constraint `Positive` check (id>0 /* it's so */)"]),
        ({"positive": "id > 0"}, []),
        ({"positive": "*********(redacted)"}, []),
        ({"positive": "id > 10"}, ["drop constraint `Positive`", "add constraint `Positive` check (id>0 /* it's so */)"]),
    ],
)
def test_a_named_check_whose_condition_has_changed_takes_the_place_of_the_old_one(
    there: dict[str, str], statements: list[str]
) -> None:
    """The table kept the old one, and the new one was not enforced."""
    check = {"name": "Positive", "type": "check", "expression": "id>0 /* it's so */"}
    assert [sql.removeprefix("alter table s.t ") for sql in altered(there, id=[check])] == statements


def test_a_check_that_two_columns_tell_is_asked_for_once() -> None:
    check = {"name": None, "type": "check", "expression": "a < b"}
    assert constrained(a=[check], b=[check]) == ["(a < b)"]


def test_two_checks_of_one_name_are_told() -> None:
    """The second one was passed over, and not enforced."""
    one, other = ({"name": name, "type": "check", "expression": f"{name} > 0"} for name in ("Positive", "positive"))
    assert constrained(a=[one], b=[one]) == ["(Positive > 0)"]
    with pytest.raises(CompilerError, match=r"s\.t: two checks have the name positive: Positive > 0, and positive > 0"):
        constrained(a=[one], b=[other])


def test_a_model_may_say_for_its_columns_that_they_are_not_null() -> None:
    not_null = {"name": None, "type": "not_null"}
    model = {**not_null, "columns": ["a", "b c"]}
    assert constrained(model, a=[not_null]) == ["(`a` is not null and `b c` is not null)", "(`a` is not null)"]


def test_what_delta_does_not_enforce_is_told() -> None:
    not_null, primary, unique = ({"name": None, "type": type_} for type_ in ("not_null", "primary_key", "unique"))
    assert constrained({**unique, "columns": ["a"]}, a=[not_null, primary]) == ["(`a` is not null)"]
    assert WARNED == [
        "s.t: Delta does not enforce unique, primary_key of a. Test it, and set warn_unenforced: false in the constraint."
    ]
    assert constrained(a=[not_null, {**primary, "warn_unenforced": False}]) == ["(`a` is not null)"]
    assert WARNED == []
