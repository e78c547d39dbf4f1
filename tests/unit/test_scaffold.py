"""The files that `delta-cdc generate` writes."""

from __future__ import annotations

import errno
import re
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
import yaml
from dbt.clients.jinja import get_rendered
from tests.projects import COLUMNS, FEED, TABLE, project, source

from delta_cdc import model_files, scaffold
from delta_cdc.config_reader import load_project
from delta_cdc.errors import OperationError
from delta_cdc.formats import FORMATS
from delta_cdc.settings import setting_defaults, settings_naming_columns
from delta_cdc.settings_page import reference_page

ROOT = Path(__file__).parents[2]
HOSTILE = [
    "a b",
    "a.b",
    "a`b",
    "it's",
    'say "so"',
    "back\\slash",
    "$% ^,& *(",
    "tab\there",
    "ä ö",
    "-",
    "null",
    "#",
]


def generated(root: Path, *sources: dict[str, Any], name: str = "consumer") -> dict[str, str]:
    """{path: text} of what should be there."""
    return {file.path: file.text for file in scaffold.plan(load_project(project(root, *sources, name=name)))}


def rendered(text: str) -> tuple[dict[str, Any], list[Any]]:
    """What a generated SQL model hands to config() and to its macro."""
    seen: dict[str, Any] = {}
    calls: list[Any] = []

    def config(**arguments: Any) -> str:
        seen.update(arguments)
        return ""

    def called(name: str) -> Any:
        return lambda *arguments, **named: calls.append((name, *arguments, named)) or "select 1"

    macros = SimpleNamespace(**{name: called(name) for name in ("raw", "staging", "history", "final")})
    jinja2.Environment().from_string(text).render(
        config=config,
        delta_cdc=macros,
        ref=lambda name: f"ref {name}",
        source=lambda *names: f"source {names}",
    )
    return seen, calls


def run_model(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a generated Python model hands to dbt.config() and to key_changes()."""
    configured: dict[str, Any] = {}
    called: dict[str, Any] = {}
    dbt = SimpleNamespace(config=lambda **given: configured.update(given), ref=lambda name: f"ref {name}")
    names: dict[str, Any] = {}
    exec(compile(text.replace("from delta_cdc.keys import key_changes", ""), "model", "exec"), names)
    names["key_changes"] = lambda dbt, session, **given: called.update(given)
    names["model"](dbt, None)
    return configured, called


# Which files


def test_a_feed_with_a_folder_per_table(tmp_path: Path) -> None:
    tables = {
        "invoice": TABLE | {"old_keys": {"id": "old_id"}},
        "customer": TABLE,
        "log": {"sequence_by": ["seq"], "insert_only": True},
    }
    assert sorted(generated(tmp_path, source(tables=tables))) == [
        "models/shop/_models.yml",
        "models/shop/final/final_customer.sql",
        "models/shop/final/final_invoice.sql",
        "models/shop/final/final_log.sql",
        "models/shop/history/hist_shop__customer.sql",
        "models/shop/history/hist_shop__invoice.sql",
        "models/shop/keys/int_shop__invoice_keys.py",
        "models/shop/staging/stg_shop__customer.sql",
        "models/shop/staging/stg_shop__invoice.sql",
        "models/shop/staging/stg_shop__log.sql",
    ]


def test_a_feed_that_mixes_tables(tmp_path: Path) -> None:
    feed = {"format": "wal2json_v2", "location": "landing"}
    files = generated(tmp_path, source(feed=feed, tables={"t": {"keys": ["id"]}}))
    raw = files["models/shop/staging/raw_shop.sql"]
    assert rendered(raw)[1] == [("raw", "shop", "ref cdc_change_sets", {})]
    assert rendered(files["models/shop/staging/stg_shop__t.sql"])[1] == [("staging", "source ('shop', 't')", "ref raw_shop", {})]


def test_the_project_itself_gets_the_macros_defaults(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "cdc_operation_codes.csv").write_text("format,code,operation,meaning\nrows,x,D,gone\n")
    text = generated(tmp_path, name="delta_cdc")["macros/config/_defaults.sql"]
    returned: list[Any] = []
    jinja2.Environment().from_string(text + "{{ _defaults() }}").render({"return": returned.append})
    assert returned == [
        {
            "settings": setting_defaults(),
            "formats": {name: dict(known.settings) for name, known in FORMATS.items()},
            "fields": {name: list(known.fields) for name, known in FORMATS.items()},
            "operation_codes": {"rows": {"x": "D"}},
            "naming_columns": settings_naming_columns(),
            "formats_without_tables": [name for name, known in FORMATS.items() if not known.names_tables],
        }
    ]


@pytest.mark.parametrize("folder", [ROOT, ROOT / "integration_tests"], ids=["the demo's", "the consumer's"])
def test_the_project_s_own_files_are_current(folder: Path) -> None:
    found = load_project(folder)
    comparison = scaffold.compare(found, scaffold.plan(found))
    assert comparison == scaffold.Comparison()


def test_the_reference_page_is_current() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == reference_page()


# What is in them


def test_files_are_a_few_lines(tmp_path: Path) -> None:
    files = generated(tmp_path, source(tables={"t": TABLE | {"partition_by": ["year(created)"]}}))
    assert max(text.count("\n") for path, text in files.items() if path.endswith(".sql")) <= 16


def test_staging(tmp_path: Path) -> None:
    files = generated(tmp_path, source(tables={"t": TABLE | {"tags": ["hourly", "shop"]}}, columns=COLUMNS[:2]))
    text = files["models/shop/staging/stg_shop__t.sql"]
    assert text.splitlines()[1] == "-- stg_shop__t: every change of shop.t, once, in order"
    assert rendered(text) == (
        {
            "materialized": "incremental",
            "incremental_strategy": "append",
            "on_schema_change": "append_new_columns",
            "full_refresh": False,
            "tblproperties": {"delta.dataSkippingStatsColumns": "id,_cdc_batch_id,_cdc_error,_cdc_sequence.seq,_cdc_occurred_at"},
            "tags": ["shop", "hourly"],
        },
        [("staging", "source ('shop', 't')", "ref cdc_change_sets", {})],
    )


def test_E7_a_table_with_private_columns_is_not_read_from_raw(tmp_path: Path) -> None:
    tables = {"t": TABLE | {"never_store": ["card"]}, "u": TABLE}
    files = generated(tmp_path, source(feed={"format": "wal2json_v2", "location": "landing"}, tables=tables))
    assert "ref('cdc_change_sets')" in files["models/shop/staging/stg_shop__t.sql"]
    assert "ref('raw_shop')" in files["models/shop/staging/stg_shop__u.sql"]


def test_N1_a_multiset_has_no_history_and_merges_by_its_surrogate(tmp_path: Path) -> None:
    keyless = {"keys": [], "keyless": "multiset"}
    files = generated(tmp_path, source(tables={"t": TABLE | keyless, "u": TABLE | keyless | {"surrogate": "hash"}}))
    assert not [path for path in files if "hist_" in path]
    assert "incremental_strategy='append'" in files["models/shop/final/final_t.sql"]
    assert "unique_key=['_cdc_key']" in files["models/shop/final/final_u.sql"]
    assert "one_row_per_key: {arguments: {keys: [_cdc_key], source_table" in files["models/shop/_models.yml"]
    assert "each_run" not in files["models/shop/_models.yml"]


def test_keys_and_who_reads_them(tmp_path: Path) -> None:
    settings = {"keys": ["id"], "split_key_changes": True}
    files = generated(tmp_path, source(tables={"t": TABLE | settings}, columns=COLUMNS[:2]))
    assert run_model(files["models/shop/keys/int_shop__t_keys.py"]) == (
        {
            "materialized": "incremental",
            "incremental_strategy": "merge",
            "unique_key": ["_cdc_batch_id", "_cdc_change_set", "_cdc_row"],
            "merge_only_changed": True,
            "full_refresh": False,
            "tags": ["shop"],
        },
        {"staging": "ref stg_shop__t", "control": "ref cdc_change_sets", "keys": ["id"], "pair_split_key_changes": True},
    )
    for model, name in (("history/hist_shop__t", "history"), ("final/final_t", "final")):
        call = (name, "source ('shop', 't')", "ref stg_shop__t", {"keys": "ref int_shop__t_keys"})
        assert rendered(files[f"models/shop/{model}.sql"])[1] == [call]


@pytest.mark.parametrize(
    ("settings", "expected", "absent"),
    [
        (
            {},
            {
                "incremental_strategy": "merge",
                "unique_key": ["id"],
                "merge_only_changed": True,
                "matched_delete_condition": "DBT_INTERNAL_SOURCE._cdc_is_gone",
                "not_matched_condition": "not DBT_INTERNAL_SOURCE._cdc_is_gone",
                "merge_source_only_columns": ["_cdc_is_gone"],
            },
            ["partition_by", "liquid_clustered_by", "tblproperties"],
        ),
        ({"deletion_vectors": True}, {"tblproperties": {"delta.enableDeletionVectors": "true"}}, []),
        (
            {"apply": "replace_partitions", "partition_by": ["year(created) as y", "op"]},
            {"incremental_strategy": "replace_where", "unique_key": ["id"], "partition_by": ["y", "op"]},
            ["matched_delete_condition", "merge_source_only_columns"],
        ),
        (
            {"cluster_by": ["op"], "deletion_vectors": False},
            {"liquid_clustered_by": ["op"], "tblproperties": {"delta.enableDeletionVectors": "false"}},
            [],
        ),
        (
            {"insert_only": True},
            {"incremental_strategy": "append"},
            ["unique_key", "matched_delete_condition"],
        ),
        ({"keys": [], "keyless": "append"}, {"incremental_strategy": "append"}, ["unique_key"]),
    ],
)
def test_final(tmp_path: Path, settings: dict[str, Any], expected: dict[str, Any], absent: list[str]) -> None:
    files = generated(tmp_path, source(tables={"t": TABLE | settings}, columns=COLUMNS[:5]))
    config, calls = rendered(files["models/shop/final/final_t.sql"])
    assert {name: config[name] for name in expected} == expected
    assert not set(absent) & set(config)
    assert calls == [("final", "source ('shop', 't')", "ref stg_shop__t", {})]


def test_A9_A10_the_columns_that_final_gains(tmp_path: Path) -> None:
    feed = FEED | {"delete_mode": "soft", "created_at": "born", "updated_at": "touched", "occurred_at": "created"}
    tables = {"t": TABLE | {"partition_by": ["year(created)"]}, "log": TABLE | {"insert_only": True}}
    files = generated(tmp_path, source(feed=feed, tables=tables, columns=COLUMNS[:5]))
    columns = {m["name"]: m["columns"] for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    assert [(c["name"], c["data_type"]) for c in columns["final_t"][-5:]] == [
        ("year_created", "int"),
        ("born", "date"),
        ("touched", "date"),
        ("_cdc_is_deleted", "boolean"),
        ("_cdc_deleted_at", "date"),
    ]
    assert columns["final_log"][-1]["name"] == "created"


@pytest.mark.parametrize(("nulls", "said"), [(False, "as they were last"), (True, "null, but for the key")])
def test_A9_readers_are_told_what_a_deleted_row_holds(tmp_path: Path, nulls: bool, said: str) -> None:
    tables = {"t": TABLE | {"delete_mode": "soft", "soft_delete_nulls": nulls}}
    files = generated(tmp_path, source(tables=tables, columns=COLUMNS[:5]))
    columns = {m["name"]: m["columns"] for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    (told,) = [column["description"] for column in columns["final_t"] if column["name"] == "_cdc_is_deleted"]
    assert said in told


def test_history_is_a_view_or_a_table(tmp_path: Path) -> None:
    tables = {"seen": TABLE, "kept": TABLE | {"history": "table"}}
    files = generated(tmp_path, source(tables=tables, columns=COLUMNS[:5]))
    assert rendered(files["models/shop/history/hist_shop__seen.sql"])[0]["materialized"] == "view"
    config, calls = rendered(files["models/shop/history/hist_shop__kept.sql"])
    assert (config["materialized"], config["unique_key"]) == ("incremental", ["_cdc_entity", "valid_from"])
    assert config["full_refresh"] is False
    assert calls == [("history", "source ('shop', 'kept')", "ref stg_shop__kept", {})]
    models = {m["name"]: m for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    assert "history_equals_rebuild_from_staging" not in str(models["hist_shop__seen"]["data_tests"])
    assert "history_equals_rebuild_from_staging" in str(models["hist_shop__kept"]["data_tests"])


def test_column_mapping_only_where_delta_needs_it(tmp_path: Path) -> None:
    files = generated(tmp_path, source(tables={"t": TABLE | {"except_columns": ["total amount"]}}))
    assert "columnMapping" in files["models/shop/staging/stg_shop__t.sql"]
    assert "columnMapping" not in files["models/shop/final/final_t.sql"]


_BATCH = "_cdc_batch_id,_cdc_error"


@pytest.mark.parametrize(
    ("more", "settings", "statistics"),
    [
        ({}, TABLE, f"id,{_BATCH},_cdc_sequence.seq,_cdc_occurred_at"),
        ({}, {"keys": ["ID"], "sequence_by": ["SEQ"]}, f"id,{_BATCH},_cdc_sequence.SEQ,_cdc_occurred_at"),
        ({}, {"keys": ["id"], "sequence_by": ["`seq`"]}, f"id,{_BATCH},_cdc_sequence.seq,_cdc_occurred_at"),
        ({}, {"keys": ["id"], "sequence_by": ["`total amount`"]}, f"id,{_BATCH},_cdc_sequence.sequence_1,_cdc_occurred_at"),
        ({}, {"keys": ["id"], "sequence_by": ["seq + 1"]}, f"id,{_BATCH}"),
        ({"raw": "binary"}, {"keys": ["id"], "sequence_by": ["raw"]}, f"id,{_BATCH}"),
        ({}, {"keys": ["id"]}, f"id,{_BATCH},_cdc_sequence._timestamp,_cdc_occurred_at"),
        ({"_timestamp": "string"}, {"keys": ["id"]}, f"id,{_BATCH},_cdc_occurred_at"),  # the field is _cdc_timestamp
    ],
)
def test_delta_keeps_statistics_of_what_staging_is_read_by(
    tmp_path: Path, more: dict[str, str], settings: dict[str, Any], statistics: str
) -> None:
    columns = [*COLUMNS, *({"name": name, "data_type": type_} for name, type_ in more.items())]
    feed = FEED if "sequence_by" in settings else FEED | {"format": "dms"}
    files = generated(tmp_path, source(feed=feed, tables={"invoice": settings}, columns=columns))
    config, _ = rendered(files["models/shop/staging/stg_shop__invoice.sql"])
    assert config.get("tblproperties", {}).get("delta.dataSkippingStatsColumns") == statistics


def test_every_model_is_described_typed_and_tested(tmp_path: Path) -> None:
    feed = {"format": "wal2json_v2", "location": "landing"}
    tables = {"t": {"keys": ["id"], "partition_by": ["year(created)"], "history": "table"}, "log": {"insert_only": True}}
    files = generated(tmp_path, source(feed=feed, tables=tables))
    described = yaml.safe_load(files["models/shop/_models.yml"])
    models = {model["name"]: model for model in described["models"]}
    assert sorted(models) == sorted(Path(path).stem for path in files if not path.endswith(".yml"))
    for model in models.values():
        assert model["description"]
        for column in model["columns"]:
            assert column["name"]
            assert column["description"]
            assert column["data_type"]
    assert [next(iter(test)) for test in models["stg_shop__t"]["data_tests"]] == ["delta_cdc.each_change_once"] * 2
    tests = {next(iter(t)) for m in models.values() for t in m.get("data_tests", [])}
    assert tests == {
        "delta_cdc.history_equals_rebuild_from_staging",
        "delta_cdc.each_change_once",
        "delta_cdc.one_current_row_per_key",
        "delta_cdc.history_intervals_do_not_overlap",
        "delta_cdc.one_row_per_key",
        "delta_cdc.final_equals_rebuild_from_staging",
    }
    arguments = {"keys": ["id"], "source_table": "source('shop', 't')"}
    assert models["final_t"]["data_tests"][:2] == [
        {"delta_cdc.one_row_per_key": {"arguments": arguments, "config": {"tags": ["nightly"]}}},
        {"delta_cdc.one_row_per_key": {"arguments": arguments | {"touched_only": True}, "config": {"tags": ["each_run"]}}},
    ]
    assert models["final_t"]["columns"][-1]["name"] == "year_created"
    assert [column["name"] for column in models["final_log"]["columns"]] == [c["name"] for c in COLUMNS]
    (exposure,) = described["exposures"]
    assert exposure["depends_on"] == ["ref('final_log')", "ref('final_t')"]
    shipped = {file.stem for file in (ROOT / "tests" / "generic").glob("*.sql")}
    assert {name.removeprefix("delta_cdc.") for name in tests} <= shipped


def test_types_that_an_expression_decides_are_left_out(tmp_path: Path) -> None:
    tables = {"t": {"keys": ["id"], "sequence_by": ["seq + 1", "seq"], "occurred_at": "date(created)"}}
    described = yaml.safe_load(generated(tmp_path, source(tables=tables))["models/shop/_models.yml"])
    columns = {column["name"]: column for column in described["models"][0]["columns"]}
    assert "data_type" not in columns["_cdc_sequence"]
    assert "data_type" not in columns["_cdc_occurred_at"]
    assert columns["_cdc_key_before"]["data_type"] == "struct<id: int>"


@pytest.mark.parametrize(
    ("expression", "data_type"),
    [
        ("year(created)", "int"), ("Year (to_date(created))", "int"), ("to_date(created)", "date"), ("upper(op)", None),
        ("year(created) / 10", None), ("year(created) || month(created)", None), ("date(created) < current_date()", None),
    ],
)  # fmt: skip
def test_a_partition_is_of_the_type_that_its_whole_expression_has(tmp_path: Path, expression: str, data_type: str | None) -> None:
    tables = {"t": TABLE | {"partition_by": [f"{expression} as part"]}}
    files = generated(tmp_path, source(tables=tables, columns=COLUMNS[:5]))
    columns = {m["name"]: m["columns"] for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    (part,) = [column for column in columns["final_t"] if column["name"] == "part"]
    assert part.get("data_type") == data_type


def test_what_a_column_is_made_of_is_told_in_its_description(tmp_path: Path) -> None:
    made = {"expressions": {"region": "upper(region)", "twice": "2 * seq"}, "mask": {"op": "sha2(op, 256)"}}
    tables = {"t": TABLE | made, "bag": TABLE | {"keys": [], "keyless": "multiset"}}
    columns = [{"name": name, "data_type": "string" if name != "seq" else "bigint"} for name in ("id", "region", "op", "seq")]
    models = yaml.safe_load(generated(tmp_path, source(tables=tables, columns=columns))["models/shop/_models.yml"])["models"]
    told = {model["name"]: {column["name"]: column["description"] for column in model["columns"]} for model in models}
    assert told["stg_shop__t"]["region"] == "region of the source table."
    for name in ("hist_shop__t", "final_t"):
        assert (told[name]["region"], told[name]["twice"]) == ("Made by upper(region).", "Made by 2 * seq.")
    assert {told[name]["op"] for name in ("stg_shop__t", "hist_shop__t", "final_t")} == {"op of the source table, masked."}
    assert told["stg_shop__t"]["_cdc_key_before"].startswith("The key before")
    assert told["stg_shop__bag"]["_cdc_key_before"].startswith("The row as it was before")
    assert "`ignore_null_updates`" in told["stg_shop__t"]["_cdc_missing"]
    assert "with _cdc_batch_id its arrival" in told["stg_shop__t"]["_cdc_row"]


def test_every_test_is_nightly_and_those_that_keys_make_cheap_are_of_each_run(tmp_path: Path) -> None:
    tables = {
        "seen": TABLE,
        "kept": TABLE | {"history": "table"},
        "log": TABLE | {"insert_only": True},
        "nameless": TABLE | {"keys": [], "keyless": "append"},
    }
    models = yaml.safe_load(generated(tmp_path, source(tables=tables))["models/shop/_models.yml"])["models"]
    tagged: dict[str, dict[str, list[str]]] = {}
    for model in models:
        for test in model["data_tests"]:
            ((name, given),) = test.items()
            (tag,) = given["config"]["tags"]
            assert given["arguments"].get("touched_only", False) is (tag == "each_run")
            assert given["arguments"]["source_table"] == f"source('shop', '{model['name'].rpartition('_')[2]}')"
            tagged.setdefault(tag, {}).setdefault(model["name"], []).append(name.removeprefix("delta_cdc."))
    versions = ["one_current_row_per_key", "history_intervals_do_not_overlap"]
    final = ["one_row_per_key", "final_equals_rebuild_from_staging"]
    assert (
        tagged["each_run"]
        == {
            "stg_shop__seen": ["each_change_once"],
            "final_seen": final,  # its history is a view, worked out from all of staging
            "stg_shop__kept": ["each_change_once"],
            "final_kept": final,
            "hist_shop__kept": [*versions, "history_equals_rebuild_from_staging"],
            "stg_shop__log": ["each_change_once"],
            "final_log": final[1:],
        }
    )
    assert tagged["nightly"] == tagged["each_run"] | {
        "hist_shop__seen": versions,
        "stg_shop__nameless": ["each_change_once"],
        "final_nameless": final[1:],
    }


def test_a_key_that_looks_like_a_call_of_dbt_s_is_a_name_to_the_tests(tmp_path: Path) -> None:
    columns = [*COLUMNS, *({"name": name, "data_type": "int"} for name in ("ref (old)", "x ref (old)"))]
    table = {"keys": ["ref (old)", "x ref (old)"], "sequence_by": ["seq"]}
    described = generated(tmp_path, source(tables={"t": table}, columns=columns))["models/shop/_models.yml"]
    tests = {model["name"]: model["data_tests"] for model in yaml.safe_load(described)["models"] if "data_tests" in model}
    keys = tests["final_t"][0]["delta_cdc.one_row_per_key"]["arguments"]["keys"]
    assert [get_rendered(key, {}, native=True) for key in keys] == ["ref (old)", "x ref (old)"]
    assert keys[0].startswith("{{")  # else dbt calls it: `old` is no name of a model, and the whole project cannot be read


def test_hostile_column_names_survive(tmp_path: Path) -> None:
    columns = [
        *COLUMNS,
        *({"name": name, "data_type": "string", "description": f"x: {name}"} for name in HOSTILE),
    ]
    settings = {"keys": HOSTILE, "key_changes": True, "partition_by": HOSTILE[:3]}
    files = generated(tmp_path, source(tables={"t": TABLE | settings}, columns=columns))
    config, _ = rendered(files["models/shop/final/final_t.sql"])
    assert config["unique_key"] == HOSTILE
    assert config["partition_by"] == ["`a b`", "`a.b`", "`a``b`"]
    assert config["tblproperties"]["delta.columnMapping.mode"] == "name"
    configured, called = run_model(files["models/shop/keys/int_shop__t_keys.py"])
    assert called["keys"] == HOSTILE
    assert configured["tblproperties"] == {"delta.columnMapping.mode": "name", "delta.feature.timestampNtz": "supported"}
    models = {m["name"]: m for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    assert [column["name"] for column in models["final_t"]["columns"]][-len(HOSTILE) :] == HOSTILE
    assert models["final_t"]["data_tests"][0]["delta_cdc.one_row_per_key"]["arguments"]["keys"] == HOSTILE


def test_readers_are_told_what_a_row_of_a_model_is_and_how_history_is_asked(tmp_path: Path) -> None:
    tables = {"Order": TABLE, "soft": TABLE | {"delete_mode": "soft"}, "log": {"sequence_by": ["seq"], "insert_only": True}}
    files = generated(tmp_path, source(tables=tables, columns=COLUMNS[:5]))
    told = {m["name"]: m["description"] for m in yaml.safe_load(files["models/shop/_models.yml"])["models"]}
    assert told["final_Order"] == "The live rows of shop.Order (SCD1), one row a key."
    assert told["final_soft"].endswith("(SCD1), one row a key; `not _cdc_is_deleted`: the live ones.")
    assert told["final_log"] == "The rows of shop.log (SCD1)."
    asked = "`(valid_from is null or valid_from <= moment) and (valid_to is null or valid_to > moment)`"
    assert asked in told["hist_shop__Order"]
    assert told["stg_shop__Order"].startswith("One row a change of shop.Order;")


def test_descriptions_are_carried_over(tmp_path: Path) -> None:
    shop = source(columns=[*COLUMNS, {"name": "x", "data_type": "int", "description": "{{ doc('x') }}: a, b"}])
    shop["description"] = "The shop."
    shop["tables"][0]["description"] = "Invoices,\nall of them."
    described = yaml.safe_load(generated(tmp_path, shop)["models/shop/_models.yml"])
    assert described["models"][-1]["description"].endswith("Invoices,\nall of them.")
    assert described["models"][-1]["columns"][-1]["description"] == "{{ doc('x') }}: a, b"
    assert described["exposures"][0]["description"].endswith("The shop.")


# Writing them


def written(root: Path, **options: bool) -> tuple[scaffold.Comparison, list[str]]:
    found = load_project(root)
    files = scaffold.plan(found)
    comparison = scaffold.compare(found, files)
    return comparison, scaffold.write(found, files, comparison, **options)


def test_generating_twice_writes_once(tmp_path: Path) -> None:
    project(tmp_path, source())
    before, changed = written(tmp_path)
    assert changed == sorted(before.missing)
    after, changed = written(tmp_path)
    assert after == scaffold.Comparison()
    assert changed == []


@pytest.mark.parametrize("folder", ["models/", "./models"])
def test_the_folder_of_models_may_be_spelled_otherwise(tmp_path: Path, folder: str) -> None:
    project(tmp_path, source(), **{"model-paths": [folder]})
    assert "models/shop/final/final_invoice.sql" in written(tmp_path)[1]
    assert written(tmp_path, prune=True) == (scaffold.Comparison(), [])


def test_outdated_files_are_renewed(tmp_path: Path) -> None:
    written(project(tmp_path, source()))
    comparison, changed = written(project(tmp_path, source(tables={"invoice": TABLE | {"tags": ["new"]}})))
    assert set(comparison.outdated) == {path for path in changed if path.endswith(".sql")}
    assert not comparison.edited


def test_a_full_disk_leaves_files_as_they_were_and_nothing_beside_them(tmp_path: Path) -> None:
    shop = load_project(project(tmp_path, source()))
    files, limits = scaffold.plan(shop), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(OperationError, match=r"^models/shop/_models.yml cannot be written: File too large\.$"):
            scaffold.write(shop, files, scaffold.compare(shop, files))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / "models/shop").iterdir()] == ["_sources.yml"]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(project(tmp_path, source()))
    shop = load_project(project(tmp_path, source(tables={"invoice": TABLE | {"tags": ["new"]}})))
    files, name = scaffold.plan(shop), "models/shop/final/final_invoice.sql"
    before, opened = (tmp_path / name).read_bytes(), Path.open

    def refused(file: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if file == tmp_path / name and "+" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(OperationError, match=rf"^{name} cannot be written: Permission denied\.$"):
        scaffold.write(shop, files, scaffold.compare(shop, files))
    assert (tmp_path / name).read_bytes() == before


def test_a_generated_file_keeps_its_rights_and_a_link_to_it(tmp_path: Path) -> None:
    shop = load_project(project(tmp_path, source()))
    files = scaffold.plan(shop)
    scaffold.write(shop, files, scaffold.compare(shop, files))
    path, elsewhere = tmp_path / files[0].path, tmp_path / "elsewhere.yml"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    elsewhere.write_text(scaffold.header(files[0].path, "old\n") + "\nold\n")
    elsewhere.chmod(0o640)
    assert scaffold.write(shop, files, scaffold.compare(shop, files)) == [files[0].path]
    assert (path.is_symlink(), elsewhere.read_text(), elsewhere.stat().st_mode & 0o777) == (True, files[0].text, 0o640)


@pytest.mark.parametrize("edit", ["-- a thought\n", None])
def test_an_edited_file_is_kept_unless_forced(tmp_path: Path, edit: str | None) -> None:
    written(project(tmp_path, source()))
    path = "models/shop/final/final_invoice.sql"
    mine = (tmp_path / path).read_text() + edit if edit else "select 1  -- written by hand\n"
    (tmp_path / path).write_text(mine)
    comparison, changed = written(tmp_path)
    assert (comparison.edited, changed) == ((path,), [])
    assert (tmp_path / path).read_text() == mine
    assert written(tmp_path, force=True)[1] == [path]
    assert written(tmp_path)[0] == scaffold.Comparison()


def test_an_edited_file_that_says_what_it_should_is_current(tmp_path: Path) -> None:
    written(project(tmp_path, source()))
    path = tmp_path / "models/shop/final/final_invoice.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert written(tmp_path)[0] == scaffold.Comparison()


def test_files_of_tables_that_are_gone(tmp_path: Path) -> None:
    written(project(tmp_path, source(tables={"invoice": TABLE, "old": TABLE, "older": TABLE})))
    mine = tmp_path / "models/shop/final/mine.sql"
    mine.write_text("select 1\n")
    edited = tmp_path / "models/shop/final/final_older.sql"
    edited.write_text(edited.read_text() + "-- mine\n")
    project(tmp_path, source())
    comparison, changed = written(tmp_path)
    assert comparison.gone_edited == ("models/shop/final/final_older.sql",)
    assert len(comparison.gone) == 5
    assert changed == ["models/shop/_models.yml"]
    assert set(written(tmp_path, prune=True)[1]) == set(comparison.gone)
    assert edited.exists()
    assert written(tmp_path, prune=True, force=True)[1] == list(comparison.gone_edited)
    assert mine.exists()
    assert written(tmp_path)[0] == scaffold.Comparison()


def test_a_file_s_header_tells_whether_it_was_edited() -> None:
    for path in ("a.sql", "a.py", "a.yml"):
        text = scaffold.GeneratedFile(path, "body\n").text
        assert scaffold.is_untouched(text)
        assert not scaffold.is_untouched(text + "more\n")
        assert not scaffold.is_untouched("body\n")


# Literals


@pytest.mark.parametrize(
    ("value", "jinja", "python"),
    [
        ('it\'s "x"\\\n', "'it\\'s \"x\"\\\\\\n'", '"it\'s \\"x\\"\\\\\\n"'),
        (None, "none", "None"),
        (True, "true", "True"),
        ([1, {"a": False}], "[1, {'a': false}]", '[1, {"a": False}]'),
    ],
)
def test_literals(value: Any, jinja: str, python: str) -> None:
    assert model_files.jinja(value) == jinja
    assert model_files.python(value) == python
    assert jinja2.Environment().compile_expression(jinja, undefined_to_none=False)() == value
    assert eval(python) == value


def test_the_reference_page_has_a_row_for_each_setting_and_format() -> None:
    page = reference_page()
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [*setting_defaults(), *FORMATS]


def test_feed_is_not_changed_by_the_tests() -> None:
    assert FEED == {"format": "rows", "location": "landing/{table}"}
