"""What the scenario runner makes of a case and the rows that were found."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.scenarios import runner
from tests.scenarios.feed_cases import FeedCase, compare, read_feeds, run_feeds
from tests.scenarios.rows_cases import RowsCase, read_cases, run_cases
from tests.scenarios.values import exact_json

from delta_cdc.discover import Discovery, FoundTable

CASES = Path(__file__).resolve().parents[1] / "cases"
LISTED = {"other": {"name": "other", "rule": "P1", "why": "so it is", "rows": [{"id": 2}]}}


def judged(
    found: list[dict[str, Any]] | None, *, name: str = "x", refusals: tuple[str, ...] = (), **content: Any
) -> tuple[str, Any]:
    case = RowsCase(Path("x.json"), "t0", {"name": name, "scd": 1, **content}, list(refusals))
    line = runner.judge(case, found, LISTED)
    assert list(line) == ["file", "name", "status", "rule", "detail"]
    return line["status"], line["rule"]


def test_equal_rows_pass_in_any_order() -> None:
    assert judged([{"id": 2}, {"id": 1}], expected=[{"id": 1}, {"id": 2}]) == ("passed", None)
    assert judged([{"id": 2}], expected_any=[[{"id": 1}], [{"id": 2}]]) == ("passed", None)
    assert judged([{"id": 1}], expected=[{"id": 1}, {"id": 1}]) == ("failed", None)


def test_a_refusal_passes_only_where_the_file_has_one() -> None:
    assert judged(None, refusals=("no",), error="NOT_ALLOWED", expected=[]) == ("passed", None)
    assert judged(None, refusals=("no",), expected=[]) == ("failed", None)
    assert judged([], error="NOT_ALLOWED", expected=[]) == ("failed", None)


def test_what_is_refused_leaves_the_rows_that_were_there() -> None:
    rows = [{"id": 1}]
    assert judged(rows, refusals=("no",), error="NOT_ALLOWED", expected=rows) == ("passed", None)
    assert judged(rows, refusals=("no",), error="NOT_ALLOWED", expected=[]) == ("passed", None)
    assert judged([{"id": 2}], refusals=("no",), error="NOT_ALLOWED", expected=rows) == ("failed", None)
    assert judged([], refusals=("no",), error="NOT_ALLOWED", expected=rows) == ("failed", None)
    case = RowsCase(Path("x.json"), "t0", {"name": "x", "error": "NOT_ALLOWED"}, ["no"], broken="the run ended")
    assert runner.judge(case, None, {})["status"] == "failed"
    steps: list[dict[str, Any]] = [{"tables": {"t": {"columns": ["id"], "rows": [["1"]]}}}, {"error": "NOT_ALLOWED"}]
    for differences, status in (([None, None], "passed"), (["  - id: 1\n", None], "failed")):
        feed = FeedCase(Path("x"), "f0", {"steps": steps}, ["no"], differences)
        assert runner.judge_feed(feed, {})["status"] == status


def test_a_listed_difference_must_have_the_listed_rows() -> None:
    assert judged([{"id": 2, "more": 1}], name="other", expected=[{"id": 1}]) == ("difference", "P1")
    assert judged([{"id": 1}], name="other", expected=[{"id": 1}]) == ("failed", None)


def test_a_difference_shows_what_was_expected_and_what_is_there() -> None:
    rows = RowsCase(Path("x.json"), "t0", {"name": "other", "scd": 1, "expected": [{"id": 1}]})
    detail = runner.judge(rows, [{"id": 2}], LISTED)["detail"]
    assert detail == 'so it is\n- expected, + found:\n  - id: "1"\n  + id: "2"\n'
    listed = {"other": {"rule": "P1", "why": "so it is", "tables": {"t": {"columns": ["id"], "rows": [["2"]]}}}}
    feed = FeedCase(Path("other"), "f0", {"steps": [{}]}, differences=["  t:\n  - id: 1\n  + id: 2\n"], found={"t": [{"id": 2}]})
    line = runner.judge_feed(feed, listed)
    assert (line["status"], line["rule"]) == ("difference", "P1")
    assert line["detail"] == "so it is\n- expected, + found:\n  after step 1:\n  t:\n  - id: 1\n  + id: 2\n"


def test_every_listed_difference_is_a_case_with_a_rule_and_a_reason() -> None:
    files = (json.loads(path.read_text()) for path in (CASES / "rows").glob("*.json"))
    cases = {"rows": {content["name"] for content in files}, "tables": {path.name for path in (CASES / "feeds").iterdir()}}
    entries = json.loads(runner.DIFFERENCES.read_text())
    for holds, names in cases.items():
        listed = [entry for entry in entries if holds in entry]
        assert len(listed) <= -(-len(names) // 10)
        assert {entry["name"] for entry in listed} <= names
    for entry in entries:
        assert set(entry) - {"rows", "tables"} == {"name", "rule", "why"}
        assert entry["rule"]
        assert entry["why"]


def test_rows_files_and_feeds_are_found_by_what_they_hold(tmp_path: Path) -> None:
    rows = tmp_path / "deep" / "a.json"
    rows.parent.mkdir()
    rows.write_text(json.dumps({"batches": [], "schema": {}, "sequence": "s"}))
    (tmp_path / "other.json").write_text("[]")
    feed = tmp_path / "feed" / "expected.json"
    feed.parent.mkdir()
    feed.write_text(json.dumps({"format": "debezium", "steps": []}))
    assert runner.find([tmp_path]) == ([rows], [feed.parent])
    with pytest.raises(SystemExit, match="nowhere"):
        runner.find([tmp_path / "nowhere"])


def test_what_is_no_case_is_one_failed_line(tmp_path: Path) -> None:
    good = {"scd": 1, "keys": ["id"], "schema": {"id": "INT", "s": "INT"}, "sequence": "s", "batches": [[{"id": 1, "s": 1}]]}
    contents = {
        "cut": "{",
        "list": "[]",
        "no_schema": good | {"schema": None},
        "no_sequence": {**good, "sequence": None, "scd": 2},
        "bad_rows": good | {"batches": [[1]]},
        "bad_missing": good | {"missing": [[0]]},
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    (tmp_path / "good.json").write_text("\ufeff" + json.dumps(good), "utf-8")
    (tmp_path / "other.json").write_text('{"tables": []}')
    files, feeds = runner.find([tmp_path, tmp_path / "list.json", tmp_path / "cut.json"])
    assert (sorted(path.stem for path in files), feeds) == (sorted([*contents, "good"]), [])
    lines = {Path(line["file"]).stem: line for line in (runner.judge(case, None, {}) for case in read_cases(files))}
    assert {line["status"] for line in lines.values()} == {"failed"}
    assert [name for name, line in lines.items() if "is no case" not in line["detail"]] == ["good"]


def test_a_case_that_cannot_be_judged_fails_alone() -> None:
    def judgement(case: RowsCase) -> dict[str, Any]:
        return {"status": "passed"} if case.name == "good" else {"status": case.content["nothing"]}

    cases = [RowsCase(Path("x.json"), "t", {"name": name}) for name in ("odd", "good")]
    odd, good = runner.judge_each(judgement, cases)
    assert (odd["status"], odd["detail"], good["status"]) == ("failed", "it cannot be judged: KeyError: 'nothing'", "passed")


def test_shards_of_one_table_may_have_different_columns() -> None:
    expected = {"t": {"columns": ["k", "v2"], "rows": [["1", None], ["2", "b"]]}}
    assert compare(expected, {"t_1": [{"k": 1}], "t_2": [{"k": 2, "v2": "b"}]}) is None
    assert "there is no column v2" in str(compare(expected, {"t_1": [{"k": 1}], "t_2": [{"k": 2}]}))


def test_Q1_what_is_quarantined_instead_of_refused_is_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["id"],
                "schema": {"id": "INT", "s": "INT"},
                "sequence": "s",
                "batches": [[{"id": None, "s": 1}]],
                "error": "the key is null",
            }
        )
    )
    (case,) = read_cases([path])
    assert runner.judge(case, [], {})["status"] == "failed"
    case.quarantined = "null_key (1)"
    line = runner.judge(case, [], {})
    assert (line["status"], line["rule"]) == ("difference", "Q1")
    assert line["detail"] == "refused elsewhere; quarantined here: null_key (1)"


def test_nulls_are_ignored_only_of_columns_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["id"],
                "schema": {"id": "INT", "s": "INT", "a": "INT"},
                "sequence": "s",
                "ignore_null": ["a", "typo"],
                "batch_columns": [["id", "s"], ["id", "s", "a"]],
                "batches": [[{"id": 1, "s": 1}], [{"id": 1, "s": 2, "a": 1}]],
            }
        )
    )
    (case,) = read_cases([path])
    assert [case.configuration(n)["cdc"]["ignore_null_updates"] for n in (0, 1)] == [["typo"], ["a", "typo"]]


@pytest.mark.parametrize(("given", "ignored"), [
    (True, True), ({"include": ["a"]}, ["a"]), ({"include": []}, []), ({"include": None}, ["s", "a", "b"]),
    ({"except": ["A", "s"]}, ["b"]), ({"include": ["B", "a"], "except": None}, ["B", "a"]),
])  # fmt: skip
def test_nulls_are_ignored_of_the_columns_that_are_chosen_in_any_case(tmp_path: Path, given: Any, ignored: Any) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["ID"],
                "schema": {"id": "INT", "s": "INT", "a": "INT", "b": "INT"},
                "sequence": "s",
                "ignore_null": given,
                "batches": [[{"id": 1, "s": 1}]],
            }
        )
    )
    (case,) = read_cases([path])
    assert (case.broken, case.configuration(0)["cdc"]["ignore_null_updates"]) == ("", ignored)


def test_columns_that_are_not_there_yet_or_any_more_are_not_chosen(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    content = {
        "scd": 2, "keys": ["id"], "schema": {"id": "INT", "s": "INT", "a": "INT"}, "sequence": "s",
        "batch_columns": [["id", "s"], ["id", "s", "a"], ["id", "s"]], "batches": [[{"id": 1, "s": 1}]] * 3,
    }  # fmt: skip

    def given(**chosen: Any) -> list[list[Any]]:
        path.write_text(json.dumps(content | chosen))
        (case,) = read_cases([path])
        settings = [case.configuration(batch)["cdc"] for batch in range(3)]
        return [[each.get(name) for name in ("columns", "except_columns", "track_columns")] for each in settings]

    assert given(columns={"include": ["id", "A"]}, track_history={"include": ["a"]}) == [
        [["id"], None, []],
        [["id", "A"], None, ["a"]],
        [["id"], None, []],
    ]
    assert given(columns={"except": ["a", "typo"]}, track_history={"except": ["a"]}) == [
        [None, ["typo"], None],
        [None, ["a", "typo"], {"except": ["a"]}],
        [None, ["typo"], None],
    ]
    assert given(columns={"except": []}, old_keys={"id": "a"})[1] == [["id", "s", "a"], None, None]
    path.write_text(json.dumps(content | {"set_on_insert": ["A", "s"], "mask": {"a": "a % 2"}}))
    (case,) = read_cases([path])
    settings = [case.configuration(batch)["cdc"] for batch in range(3)]
    assert [(each["set_on_insert"], each["mask"]) for each in settings] == [
        (["s"], {}),
        (["A", "s"], {"a": "a % 2"}),
        (["s"], {}),
    ]
    tracked = given(columns=["id"], track_history=[None, {"include": None}, ["id"]])
    assert [track for _, _, track in tracked] == [None, None, ["id"]]
    path.write_text(json.dumps(content | {"ignore_null": [None, ["a"], {"except": ["s"]}], "batch_columns": None}))
    (case,) = read_cases([path])
    assert [case.configuration(batch)["cdc"].get("ignore_null_updates") for batch in range(3)] == [None, ["a"], ["a"]]


def test_E2_a_renamed_column_is_listed_once_under_the_name_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    content = {"scd": 1, "keys": ["id"], "schema": {"id": "INT", "Name": "INT", "title": "INT", "label": "INT"}, "sequence": "id",
               "batches": [[]] * 4}  # fmt: skip

    def given(renamed: Any) -> list[tuple[Any, list[str]]]:
        path.write_text(json.dumps(content | {"renamed_columns": renamed}))
        (case,) = read_cases([path])
        each = [case.configuration(batch) for batch in range(4)]
        return [(of["cdc"]["renamed_columns"], list(of["columns"])[1:]) for of in each]

    renamed: list[Any] = [None, {"title": "name"}, {"label": "title"}]
    assert given(renamed) == [({}, ["Name"]), (renamed[1], ["title"]), *[(renamed[2], ["label"])] * 2]
    assert given({"title": "name"}) == [({"title": "name"}, ["title", "label"])] * 4
    assert given([{}, {"title": "name"}, {"name": "title"}])[2:] == [({"name": "title"}, ["Name", "label"])] * 2


@pytest.mark.parametrize(("columns", "chosen"), [
    (None, {"columns": ["id", "op", "a"]}), ({"except": []}, {"columns": ["id", "op", "a"]}),
    ({"except": ["op", "Card"]}, {"except_columns": ["op"]}), (["id", "a"], {"columns": ["id", "a"]}),
])  # fmt: skip
def test_E7_what_is_never_stored_is_not_chosen(tmp_path: Path, columns: Any, chosen: Any) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["id"],
                "schema": {"id": "INT", "op": "STRING", "a": "INT", "card": "STRING"},
                "sequence": "id",
                "never_store": ["card"],
                "ignore_null": {"except": ["op"]},
                "columns": columns,
                "batches": [[]],
            }
        )
    )
    (case,) = read_cases([path])
    settings = case.configuration(0)["cdc"]
    assert settings.items() >= chosen.items()
    assert settings["ignore_null_updates"] == ["a"]


def test_Q5_columns_of_a_batch_may_be_spelled_in_another_case(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["id"],
                "schema": {"id": "INT", "Name": "INT", "more": "INT"},
                "sequence": "id",
                "batch_columns": [["ID", "name"]],
                "missing": [[0, 1, ["NAME"]]],
                "batches": [[{"Id": 1, "name": 2, "more": 3}, {"id": 2, "Name": 3}]],
            }
        )
    )
    (case,) = read_cases([path])
    assert case.configuration(0)["columns"] == {"id": "INT", "Name": "INT"}
    assert case.change_set(0) == '{"Id": 1, "name": 2}\n{"id": 2}\n'


def test_settings_that_have_a_field_may_stand_under_their_own_names_and_a_schema_may_be_one_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": 1,
                "keys": ["id"],
                "schema": [{"id": "INT", "s": "INT"}, {"id": "BIGINT", "s": "INT", "more": "INT"}],
                "sequence_by": ["s", "id"],
                "except_columns": ["s"],
                "deleted_when": "s < 0",
                "track_columns": [],
                "nullable_keys": [],
                "batches": [[], []],
                "expected": [],
            }
        )
    )
    (case,) = read_cases([path])
    cdc = {"keys": ["id"], "sequence_by": ["s", "id"], "except_columns": ["s"], "deleted_when": "s < 0", "track_columns": []}
    assert [case.configuration(batch) for batch in (0, 1)] == [
        {"name": "t0000", "cdc": cdc, "columns": {"id": "INT", "s": "INT"}},
        {"name": "t0000", "cdc": cdc, "columns": {"id": "BIGINT", "s": "INT", "more": "INT"}},
    ]
    assert case.left_out == ["s"]


def test_what_is_made_of_a_later_column_comes_with_it_and_all_is_published_whatever_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    content = {
        "scd": 1, "keys": ["id"], "schema": {"id": "INT", "s": "INT", "op": "STRING", "a b": "INT"}, "sequence": "s",
        "operation": "op", "batch_columns": [["id", "s", "op"], ["id", "s", "op", "a b"]], "batches": [[], []],
        "expressions": {"twice": "`A b` * 2", "less": "s - 1"}, "partition_by": ["`a b`", "s div 10 as tens"],
    }  # fmt: skip
    settings = []
    for expected in ([{"id": 1}], [{"id": 1, "Op": "I"}]):
        path.write_text(json.dumps(content | {"expected": expected}))
        (case,) = read_cases([path])
        settings.append([case.configuration(batch)["cdc"] for batch in (0, 1)])
    first, second = settings[0]
    assert (first["expressions"], first["partition_by"]) == ({"less": "s - 1"}, ["s div 10 as tens"])
    assert (second["expressions"], second["partition_by"]) == (content["expressions"], content["partition_by"])
    names = [[each.get("columns") for each in one] for one in settings]
    assert names == [[["id", "s", "op"], ["id", "s", "op", "a b"]]] * 2
    path.write_text(json.dumps(content | {"keys": [], "keyless": "multiset", "expected": [{"op": "I"}]}))
    (case,) = read_cases([path])
    assert "columns" not in case.configuration(1)["cdc"]
    path.write_text(json.dumps(content | {"columns": ["id", "less", "twice"], "never_store": ["s"]}))
    (case,) = read_cases([path])
    kept_out = case.configuration(0)["cdc"]  # refused, for it names what is never stored
    assert (kept_out["columns"], kept_out["expressions"]) == (["id", "less"], {"less": "s - 1"})


@pytest.mark.parametrize(("given", "told"), [
    ({"delete_mod": "soft"}, "`delete_mod` is no setting, nor a field of a case. Did you mean `delete_mode`?"),
    ({"expect": []}, "`expect` is no setting"), ({"scd": "3"}, "`scd` is '3'"),
    ({"sources": ["a"], "licence": "MIT", "because": "b", "description": "x", "delete_mod": None}, ""),
])  # fmt: skip
def test_a_rows_file_with_a_misspelled_name_has_failed(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    good = {"scd": 1, "keys": ["id"], "schema": {"id": "INT"}, "sequence": "id", "batches": [[]], "expected": []}
    (tmp_path / "case.json").write_text(json.dumps(good | given))
    (case,) = read_cases([tmp_path / "case.json"])
    assert told in case.broken
    assert bool(case.broken) == bool(told)


def test_a_text_where_a_list_or_a_number_is_meant_is_read_as_that(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        json.dumps(
            {
                "scd": "2",
                "keys": "id",
                "schema": {"id": "INT", "s": "INT", "ab": "INT"},
                "sequence": "s",
                "set_on_insert": "ab",
                "columns": {"except": "s"},
                "track_history": [None, "ab"],
                "ignore_null": "ab",
                "batches": [[], []],
                "expected": [],
            }
        )
    )
    (case,) = read_cases([path])
    assert case.relation == "{schema}.hist_cases__t0000"
    cdc = {"keys": ["id"], "sequence_by": ["s"], "except_columns": ["s"], "ignore_null_updates": ["ab"], "set_on_insert": ["ab"]}
    assert [case.configuration(batch)["cdc"] for batch in (0, 1)] == [cdc, cdc | {"track_columns": ["ab"]}]


def test_a_table_to_which_nothing_comes_is_made(tmp_path: Path) -> None:
    ran: list[tuple[str, ...]] = []

    def try_dbt(*command: str, quiet: bool) -> Any:
        ran.append(command)
        return SimpleNamespace(success=True, result=SimpleNamespace(results=[]))

    project: Any = SimpleNamespace(
        path=tmp_path, configure=lambda *_, **__: None, problems=tuple, generate=lambda: None, try_dbt=try_dbt
    )
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"scd": 1, "keys": ["id"], "schema": {"id": "INT"}, "sequence": "id", "batches": []}))
    run_cases(project, read_cases([path]))
    assert ran == [("run", "--select", "cdc_change_sets", "stg_cases__t0000+")]


def test_a_list_of_keys_for_each_table_is_in_the_order_of_messages_or_of_the_file() -> None:
    found = {name: FoundTable(f"shop.{name}", columns=dict.fromkeys(columns)) for name, columns in
             {"note": ("code", "v"), "item": ("ID", "v")}.items()}  # fmt: skip
    for keys, tables in ((["id"], ["code"]), {"item": {}, "note": {}}), ((["code"], ["id"]), {}):
        content = {"format": "wal2json_v2", "key": [*keys], "steps": [{"tables": tables}]}
        case = FeedCase(Path("x"), "f0", content)
        given = case.configuration(Discovery({each.name: each for each in found.values()}))
        assert [each["cdc"]["keys"] for each in given] == [["code"], ["ID"]]


@pytest.mark.parametrize(("given", "keys"), [
    ({"public.item": ["id"], "item": ["v"]}, ["ID"]), ({"Item": ["id"]}, ["ID"]), ({"topic.public.item": ["id"]}, ["ID"]),
    ({"a.item": ["id"], "b.item": ["v"]}, None), ({"public.note": ["id"]}, None),
])  # fmt: skip
def test_the_keys_of_a_table_may_be_given_under_any_name_by_which_it_is_compared(given: Any, keys: list[str] | None) -> None:
    found = {"public.item": FoundTable("public.item", columns=dict.fromkeys(("ID", "v")))}
    (table,) = FeedCase(Path("x"), "f0", {"format": "debezium", "key": given, "steps": []}).configuration(Discovery(found))
    assert table["cdc"].get("keys") == keys


def test_the_columns_of_files_without_a_header_are_those_of_the_schema_and_settings_have_their_own_names(tmp_path: Path) -> None:
    (tmp_path / "input-01.csv").write_text("I,1,a\nD,1,\n")
    content: dict[str, Any] = {
        "format": "rows", "file_format": "csv", "csv_options": {"header": False}, "operation": "Op", "keys": ["ID"],
        "sequence_by": ["_row"], "old_keys": {"id": "was"}, "schema": {"Op": "string", "id": "int", "was": "int"},
    }  # fmt: skip
    case = FeedCase(tmp_path, "f0", content)
    (table,) = case.configuration(case.discovered(0))
    assert (table["name"], table["columns"]) == ("t", content["schema"])
    given = {"keys": ["id"], "operation": "Op", "sequence_by": ["_row"], "old_keys": {"id": "was"}}
    assert table["cdc"] == {"final_name": "final_f0_0", **given}
    assert case.of_feed == {name: content[name] for name in ("format", "file_format", "csv_options")}


@pytest.mark.parametrize(("header", "schema", "columns"), [
    ("ID;name;n\n1;a;2\n", {"id": "int", "n": "int"}, {"id": "int", "n": "int", "name": "string"}),
    ("# by hand\n\xe9~n\n", {"é": "int", "n": "int"}, {"é": "int", "n": "int"}),  # as `csv_options` alone can read it
])  # fmt: skip
def test_the_columns_of_csv_files_are_those_of_their_headers(
    tmp_path: Path, header: str, schema: dict[str, str], columns: dict[str, str]
) -> None:
    (tmp_path / "input-01.csv").write_bytes(header.encode("iso-8859-1"))
    case = FeedCase(tmp_path, "f0", {"format": "rows", "file_format": "csv", "key": ["N"], "schema": schema})
    (table,) = case.configuration(case.discovered(0))
    assert (table["columns"], table["cdc"]["keys"]) == (columns, ["n"])


def test_the_columns_of_files_that_only_spark_reads_are_those_of_the_schema(tmp_path: Path) -> None:
    (tmp_path / "input-01.parquet").write_bytes(b"PAR1\xff")
    content = {"format": "rows", "settings": {"file_format": "parquet"}, "key": ["id"], "schema": {"id": "int", "at": "date"}}
    case = FeedCase(tmp_path, "f0", content)
    (table,) = case.configuration(case.discovered(0))
    assert (table["columns"], table["cdc"]["keys"]) == ({"id": "int", "at": "date"}, ["id"])


def test_what_a_file_says_of_a_feed_goes_before_what_its_messages_tell() -> None:
    found = FoundTable("shop.item", columns={"id": None}, named=["id"], settings={"sequence_by": ["_timestamp", "_arrival"]})
    content = {"format": "maxwell", "settings": {"sequence_by": ["_arrival"]}, "steps": []}
    for said, settings in (
        ({}, {"keys": ["id"]}), ({"keyless": "multiset"}, {"keyless": "multiset"}),
        ({"keyless": "multiset", "key": []}, {"keyless": "multiset"}),
        ({"table_settings": {"keyless": "multiset"}, "key": []}, {"keyless": "multiset"}),
        ({"table_settings": {"keyless": "append"}}, {"keyless": "append"}),
    ):  # fmt: skip
        (table,) = FeedCase(Path("x"), "f0", content | said).configuration(Discovery({found.name: found}))
        assert table["cdc"] == {"final_name": "final_f0_0", **settings}


def test_E4_the_order_of_a_table_is_the_one_that_all_its_messages_tell_from_the_first_step_on(tmp_path: Path) -> None:
    row = {"database": "shop", "table": "item", "ts": 1, "data": {"id": 1}}
    for name, operation in (("copy", "bootstrap-insert"), ("changes", "insert")):
        (tmp_path / name).write_text(json.dumps({**row, "type": operation}))
    content = {"format": "maxwell", "key": ["id"], "steps": [{"inputs": ["copy"]}, {"inputs": ["changes"]}]}
    case = FeedCase(tmp_path, "f0", content)
    tables = [table for step in (0, 1) for table in case.configuration(case.discovered(step))]
    assert [table["cdc"]["sequence_by"] for table in tables] == [["_timestamp", "_arrival"]] * 2


def test_a_column_that_was_renamed_is_listed_under_its_new_name_alone() -> None:
    found = {"public.item": FoundTable("public.item", columns={"id": "int", "v": None, "item_id": "bigint"}, named=["id"])}
    content: dict[str, Any] = {"format": "wal2json_v2", "key": ["item_id"], "renamed_columns": {"item_id": "id"}, "steps": []}
    (table,) = FeedCase(Path("x"), "f0", content).configuration(Discovery(found))
    assert (table["cdc"]["keys"], table["cdc"]["renamed_columns"]) == (["item_id"], {"item_id": "id"})
    assert table["columns"] == {"item_id": "int", "v": "string"}
    for schema in ({"ID": "bigint", "v": "date"}, {"ID": "int", "item_id": "bigint", "v": "date"}):
        content["schema"] = schema
        (table,) = FeedCase(Path("x"), "f0", content).configuration(Discovery(found))
        assert table["columns"] == {"item_id": "bigint", "v": "date"}


def test_a_feed_keeps_the_names_keys_and_order_that_its_messages_tell_later(tmp_path: Path) -> None:
    columns = [{"name": "id", "type": "integer", "value": 1}, {"name": "v", "type": "text", "value": "a"}]
    item = {"table": "item", "columns": columns}
    (tmp_path / "1.jsonl").write_text(json.dumps({"action": "I", "lsn": "0/1", "schema": "public", **item}))
    later = [
        {"action": "U", "lsn": "0/2", "schema": "public", **item, "identity": columns[:1]},
        {"action": "I", "timestamp": "2026-01-01 00:00:00+00", "schema": "audit", **item},
    ]
    (tmp_path / "2.jsonl").write_text("\n".join(map(json.dumps, later)))
    case = FeedCase(tmp_path, "f0", {"format": "wal2json_v2", "steps": [{"inputs": ["1.jsonl"]}, {"inputs": ["2.jsonl"]}]})
    first, then = (case.configuration(case.discovered(step)) for step in (0, 1))
    assert [table["name"] for table in then] == ["public_item", "audit_item"]
    assert first == then[:1]
    assert first[0]["cdc"]["keys"] == ["id"]


def test_a_feed_without_its_messages_is_one_failed_line(tmp_path: Path) -> None:
    contents = ("{", '{"steps": []}', '{"format": "rows", "steps": [{"inputs": ["not_there.jsonl"]}]}')
    for number, content in enumerate(contents):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "expected.json").write_text(content)
    details = [runner.judge_feed(case, {})["detail"] for case in read_feeds(runner.find([tmp_path])[1])]
    assert [detail.split(":")[0] for detail in details[:2]] == ["the folder is no case"] * 2
    assert "not_there.jsonl" in details[2]


@pytest.mark.parametrize(("given", "name"), [
    ({"opertion": "op"}, "opertion"), ({"table_settings": {"old_kyes": {"id": "was"}}}, "old_kyes"),
    ({"table_settings": {"t": {"old_keys": {"id": "was"}, "alternate_key": []}}}, "alternate_key"),
    ({"steps": [{"inputs": [], "table": {}}]}, "table"),
])  # fmt: skip
def test_a_feed_with_a_misspelled_name_has_failed(tmp_path: Path, given: dict[str, Any], name: str) -> None:
    (tmp_path / "expected.json").write_text(json.dumps({"format": "rows", "steps": [], **given}))
    (case,) = read_feeds([tmp_path])
    assert f"`{name}` is no setting" in case.broken


def test_a_feed_that_cannot_be_configured_fails_alone(tmp_path: Path) -> None:
    declared: list[str] = []
    project: Any = SimpleNamespace(
        path=tmp_path, configure=lambda feed, **_: declared.append(feed), problems=tuple, generate=lambda: None,
        try_dbt=lambda *_, **__: SimpleNamespace(success=True, result=SimpleNamespace(results=[])),
        schema="s", rows_if_any=lambda _: [], quarantined=lambda *_: [],
    )  # fmt: skip
    for name, schema in (("good", {"id": "int"}), ("odd", ["id"])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "input-01.jsonl").write_text('{"id": 1}\n')
        (folder / "expected.json").write_text(json.dumps({"format": "rows", "key": ["id"], "schema": schema}))
    good, odd = read_feeds([tmp_path / "good", tmp_path / "odd"])
    run_feeds(project, [odd, good])
    assert (declared, good.broken) == ([good.feed], "")
    assert odd.broken.startswith("its tables cannot be configured: AttributeError")


def test_a_feed_of_which_nothing_came_about_has_failed(tmp_path: Path) -> None:
    steps: tuple[dict[str, Any], ...] = ({}, {"tables": {}})
    for number, step in enumerate(steps):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "expected.json").write_text(json.dumps({"format": "debezium", "steps": [step]}))
    lines = [runner.judge_feed(case, {}) for case in read_feeds(runner.find([tmp_path])[1])]
    assert [line["status"] for line in lines] == ["failed", "passed"]
    assert "there are no tables" in lines[0]["detail"]


def test_all_digits_arrive_and_columns_that_are_left_out_are_known(tmp_path: Path) -> None:
    path = tmp_path / "digits.json"
    path.write_text(
        '{"scd": 1, "keys": ["id"], "sequence": "s", "schema": {"id": "INT", "s": "INT", "d": "DECIMAL(38,2)", "gone": "INT"},'
        ' "columns": {"except": ["gone"]}, "missing": [[0, 0, ["id"]], [0, 0, ["s"]]],'
        ' "batches": [[{"id": 1, "s": 1, "d": 12345678901234567.89}]], "expected": [{"id": 1}, {"d": 12345678901234567.89}]}'
    )
    case = read_cases([path])[0]
    assert case.change_set(0) == '{"d": 12345678901234567.89}\n'
    assert case.query == "select `id`, `d` from {schema}.final_t0000"
    assert case.left_out == ["gone"]
    case.content["columns"] = {"except": ["GONE"]}
    there: Any = SimpleNamespace(columns_if_any=lambda relation: ["id", "d", "gone"])
    assert (case.unwanted(there), case.unwanted(there, "D")) == ("gone", "d, gone")
    small = '{"d": 0.000000123456789012345678901234, "e": -0.0000001, "z": 0.00000000, "f": 1E+3, "g": 1E-300}'
    assert exact_json(json.loads(small, parse_float=Decimal)) == small
