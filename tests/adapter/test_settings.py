"""Settings, jars and options: no Spark but that of one process."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import click
import pytest
import yaml
from dbt.task.init import InitTask
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.sparkdelta import Write, catalog, class_archive, delta_log, jars, session, settings, statements
from dbt.adapters.sparkdelta.connections import SparkdeltaCredentials
from dbt.adapters.sparkdelta.response import counted, response_of
from dbt.adapters.sparkdelta.server import short
from dbt.adapters.sparkdelta.settings import KEPT_LOGS, spark_settings
from dbt.adapters.sparkdelta.write_plan import WritePlan
from dbt.include import sparkdelta

ROOT = Path("/lake")


def test_five_lines_of_profile_are_enough() -> None:
    credentials = SparkdeltaCredentials(schema="main", database=None)
    assert credentials.method == "session"
    assert credentials.root == "lake"


def test_dbt_init_asks_for_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "prompt", lambda text, default, **_: default)
    told = yaml.safe_load(Path(sparkdelta.PACKAGE_PATH, "profile_template.yml").read_text())
    target = InitTask.generate_target_from_input(InitTask, told["prompts"], told["fixed"])  # type: ignore[arg-type]
    assert target.pop("type") == "sparkdelta"
    assert target.pop("threads") == 4
    SparkdeltaCredentials.validate({**target, "database": None})
    assert SparkdeltaCredentials(**target, database=None).root == target["root"]


def test_a_statement_whose_connection_was_lost_is_not_sent_again() -> None:
    assert SparkdeltaCredentials(schema="main", database=None).query_retries == 0


def test_every_default_gives_way_to_server_side_parameters() -> None:
    defaults = spark_settings(ROOT, {})
    assert defaults["spark.sql.session.timeZone"] == "UTC"
    for key in defaults:
        if key != "spark.driver.extraJavaOptions":
            assert spark_settings(ROOT, {key: "mine"})[key] == "mine"


def test_jvm_flags_of_the_profile_come_last_and_one_collector_is_left() -> None:
    options = spark_settings(ROOT, {"spark.driver.extraJavaOptions": "-XX:+UseG1GC -Dx=1"})
    flags = options["spark.driver.extraJavaOptions"].split()
    assert flags[-2:] == ["-XX:+UseG1GC", "-Dx=1"]
    assert "-XX:+UseSerialGC" not in flags
    assert any(flag.startswith("-Dlog4j2.configurationFile=") for flag in flags)


def test_large_tables_keep_sparks_own_compilers() -> None:
    settings = spark_settings(ROOT, {}, "large_tables")
    assert "spark.sql.codegen.wholeStage" not in settings
    assert "TieredStopAtLevel" not in settings["spark.driver.extraJavaOptions"]


def test_as_many_logs_are_kept_as_the_heap_has_room_for() -> None:
    def kept(**given: str) -> str | None:
        return spark_settings(ROOT, {key.replace("_", "."): value for key, value in given.items()}).get(KEPT_LOGS)

    assert kept() == kept(spark_driver_memory="2048m") == kept(spark_driver_memory="2048") == "292"  # 2 GB
    assert kept(spark_driver_memory="12g") == "1755"
    assert kept(spark_driver_memory="512m") == "100"
    assert kept(spark_driver_memory="much") is None  # Spark tells
    assert spark_settings(ROOT, {KEPT_LOGS: "7"})[KEPT_LOGS] == "7"


def test_a_process_that_stays_has_both_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = spark_settings(ROOT, {})["spark.driver.extraJavaOptions"]
    monkeypatch.setattr(settings, "process_stays", False)
    monkeypatch.setattr(session, "_root", object())
    session.process_stays()  # too late: Spark's flags do not change any more
    assert spark_settings(ROOT, {})["spark.driver.extraJavaOptions"] == alone
    monkeypatch.setattr(session, "_root", None)
    session.process_stays()
    both = spark_settings(ROOT, {})["spark.driver.extraJavaOptions"]
    assert set(alone.split()) - set(both.split()) == {"-XX:TieredStopAtLevel=1"}


def test_a_cluster_s_driver_is_not_bound_to_this_machine() -> None:
    assert "spark.driver.bindAddress" not in spark_settings(ROOT, {"spark.master": "spark://m:7077"})


@pytest.mark.parametrize(("wrong", "right"), [("rot", "root"), ("Root", "root"), ("tune_for", "tuned_for"), ("shema", "schema")])
def test_a_misspelled_field_of_the_profile_is_told(wrong: str, right: str) -> None:
    with pytest.raises(DbtConfigError, match=f"there is no field `{wrong}`. Did you mean `{right}`?"):
        SparkdeltaCredentials.from_dict({"schema": "main", wrong: "x"})


@pytest.mark.parametrize("names", permutations(("rot", "tune_for", "shema")), ids="-".join)
def test_of_several_misspelled_fields_the_first_is_told(names: tuple[str, ...]) -> None:
    with pytest.raises(DbtConfigError, match=f"there is no field `{names[0]}`"):
        SparkdeltaCredentials.from_dict({"schema": "main", **dict.fromkeys(names, "x")})


def test_the_place_of_tables_as_other_adapters_call_it_is_told() -> None:
    with pytest.raises(DbtConfigError, match=r"there is no field `path`\. Did you mean `root`\?"):
        SparkdeltaCredentials.from_dict({"schema": "main", "path": "/lake"})


@pytest.mark.parametrize("given", ["~/lake", "$HOME/lake", "${LAKE}", "s3a://bucket/lake", "file:/lake"])
def test_a_root_that_is_no_path_of_this_machine_is_told(given: str) -> None:
    with pytest.raises(DbtConfigError, match=re.escape(f"`root` is '{given}'. It takes a folder of this machine")):
        SparkdeltaCredentials(schema="main", database=None, root=given)
    assert SparkdeltaCredentials(schema="main", database=None, root="/srv/a~b/my lake$").root == "/srv/a~b/my lake$"


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"root": 5}, "Profile: `root` is no text. Quote what yml reads as something else."),
        ({"server_side_parameters": {"spark.ui.enabled": True}}, "`server_side_parameters.spark.ui.enabled` is no text."),
        ({"server_side_parameters": None}, "Profile: `server_side_parameters`: None is not of type 'object'."),
    ],
)
def test_a_field_of_the_profile_of_the_wrong_type_is_named(field: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        SparkdeltaCredentials.validate({"schema": "main", "database": None, **field})


def test_fields_of_the_profile_that_resemble_none_are_passed_over() -> None:
    assert SparkdeltaCredentials.from_dict({"schema": "main", "owner": "x", "note": "y"}).root == "lake"


def test_tuned_for_wants_a_known_word() -> None:
    with pytest.raises(DbtConfigError, match="small_tables or large_tables"):
        SparkdeltaCredentials(schema="main", database=None, tuned_for="speed")


@pytest.mark.parametrize("given", [None, "true", "false"])
def test_ansi_is_left_as_the_user_sets_it(given: str | None) -> None:
    parameters = {} if given is None else {"spark.sql.ansi.enabled": given}
    credentials = SparkdeltaCredentials(schema="main", database=None, server_side_parameters=parameters)
    assert credentials.server_side_parameters.get("spark.sql.ansi.enabled") == given


def test_a_root_that_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for place, why in ((tmp_path / "file", "it is no folder"), (tmp_path / "file/lake", "Not a directory")):
        with pytest.raises(DbtRuntimeError, match=f"`root` of the profile is {place}, and no warehouse can be there: {why}"):
            session.make_root(place)
    session.make_root(tmp_path / "new/lake")
    monkeypatch.setattr(session.os, "access", lambda *_: False)
    with pytest.raises(DbtRuntimeError, match="this user may not write there"):
        session.make_root(tmp_path / "new/lake")


def test_the_jar_fits_the_installed_versions() -> None:
    assert jars.delta_package().startswith("io.delta:delta-spark_")
    assert jars.cache_folder([jars.delta_package()]).name == jars.delta_package()[9:].replace(":", "-")


def test_a_repository_out_of_reach_is_told_with_its_remedy(tmp_path: Path) -> None:
    nowhere = tmp_path / "settings.xml"
    nowhere.write_text(
        "<ivysettings><settings defaultResolver='x'/><resolvers>"
        f"<filesystem name='x'><artifact pattern='{tmp_path}/none/[artifact].jar'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    settings = {"spark.jars.ivySettings": str(nowhere), "spark.jars.ivy": str(tmp_path / "ivy")}
    with pytest.raises(DbtRuntimeError, match=r"no Maven repository gave them.*python -m dbt"):
        jars.resolve([jars.delta_package()], tmp_path / "jars", settings)
    assert not (tmp_path / "jars").exists()


def test_one_jvm_has_the_jars_on_its_class_path_and_a_cluster_gets_them_from_the_driver(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_archive, "path_of", lambda jars: archive)
        given = {"spark.driver.extraClassPath": "/mine.jar", "spark.driver.extraJavaOptions": "-Dx=1"}
        local = class_archive.settings_with_jars({"spark.master": "local[*]", **given}, ["/delta.jar"])
        cluster = class_archive.settings_with_jars({"spark.master": "spark://m:7077", "spark.jars": "/mine.jar"}, ["/delta.jar"])
    assert local["spark.driver.extraClassPath"] == "/delta.jar:/mine.jar"
    assert f"-XX:SharedArchiveFile={archive}" in local["spark.driver.extraJavaOptions"]
    assert local["spark.driver.extraJavaOptions"].endswith("-Dx=1")
    assert "spark.jars" not in local
    assert cluster == {"spark.master": "spark://m:7077", "spark.jars": "/mine.jar,/delta.jar"}


def test_a_process_takes_delta_s_classes_from_the_archive(tmp_path: Path) -> None:
    archive = class_archive.path_of(jars.jar_paths())
    if archive is None or not archive.is_file():
        pytest.skip("There is no class-data archive: `python -m dbt.adapters.sparkdelta.jars` makes it.")
    loaded = tmp_path / "loaded.txt"
    start = (
        "from dbt.adapters.sparkdelta.session import root_session;"
        f"session = root_session(root={str(tmp_path / 'lake')!r}, overrides="
        f"{{'spark.driver.extraJavaOptions': '-Xlog:class+load:file={loaded}'}});"
        "session.range(1).write.format('delta').saveAsTable('t'); session.sql('describe history t').collect()"
    )
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    # the second is loaded by the recording's last statements: none before them failed
    for name in ("DeltaLog", "commands.DescribeDeltaHistoryCommand"):
        assert f"org.apache.spark.sql.delta.{name} source: shared objects file (top)" in loaded.read_text()


def test_an_archive_of_statements_that_failed_is_not_kept(tmp_path: Path) -> None:
    def fail(command: list[str], **_: object) -> SimpleNamespace:
        Path(command[3]).touch()
        return SimpleNamespace(returncode=1, stdout="", stderr="Traceback\nAnalysisException: no such column\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_archive, "path_of", lambda jars: tmp_path / "classes-1.jsa")
        patch.setattr(class_archive.subprocess, "run", fail)
        with pytest.raises(DbtRuntimeError, match="AnalysisException: no such column"):
            class_archive.build(["/delta.jar"])
    assert not (tmp_path / "classes-1.jsa").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"skipp": True}, "`skipp` is not known. Did you mean `skip`"),
        ({"skip": 1}, "`skip` is 1"),
        ({"predicates": "a = 1"}, "a list of SQL conditions"),
        ({"txn": {"app_id": "a"}}, "'version': an integer"),
        ({"txn": {"app_id": "a", "version": True}}, "'version': an integer"),
        ({"txn": {"app_id": "", "version": 1}}, "'app_id': a string"),
        ({"nothing": True}, "`nothing` is not known"),
    ],
)
def test_a_wrong_option_is_told(options: dict, said: str) -> None:
    with pytest.raises(DbtRuntimeError) as error:
        WritePlan.from_options(options)
    assert said in str(error.value.msg)


def test_write_of_none_is_a_skip() -> None:
    assert Write(None).plan.skip
    assert Write(None).plan.nothing
    assert not Write("a DataFrame", predicates=["a = 1"]).plan.skip


@pytest.mark.parametrize(
    ("sql", "kind", "table"),
    [
        ("/* dbt */ \n merge into a.b as t using x", "merge", "a.b"),
        ("merge with schema evolution into `a`.`b``c` as t", "merge", "`a`.`b``c`"),
        ("insert into table a.b (`x`) select 1", "insert", "a.b"),
        ("-- note\ncreate or replace table a.b\nusing delta as select 1", "create", "a.b"),
        ("delete from a.b where x", "delete", "a.b"),
        ("update a.b set x = 1", "update", "a.b"),
        ("create or replace temporary view v as select 1", None, ""),
        ("select 'insert into a.b'", None, ""),
        ("\n" * 5000 + "select 1", None, ""),
        ("/* a * b */ /**/\t-- c\n" * 50 + "select 1", None, ""),
        ("/* a * b */ /**/\t-- c\n" * 50 + "delete from a.b where x", "delete", "a.b"),
    ],
)
def test_the_table_that_a_statement_writes(sql: str, kind: str | None, table: str) -> None:
    assert statements.written_table(sql) == (kind, table)


@pytest.mark.parametrize(
    "said",
    [
        "org.apache.hive.service.cli.HiveSQLException: Error running query: [A.B] org.apache.spark.sql.AnalysisException: [A.B] "
        "It is\nso.\n\tat org.apache.spark.X.y(X.scala:43)\n\tat java.base/java.lang.Thread.run(Thread.java:840)",
        "Error running query: [A.B] org.apache.spark.sql.catalyst.parser.ParseException: \n[A.B] It is\nso.",
        "[A.B] It is\nso.",
    ],
)
def test_of_what_a_server_says_the_message_is_left(said: str) -> None:
    assert short(said) == "[A.B] It is\nso."


@pytest.mark.parametrize(
    ("committed", "provider", "metrics", "message"),
    [
        ("0", "delta", {"numFiles": 1, "numOutputRows": 3, "numOutputBytes": 9}, "CREATE +3"),
        ("0", "delta", {"numCopiedFiles": 1, "copiedFilesSize": 9}, "CREATE"),  # a clone
        (None, "delta", None, "CREATE 0"),  # Delta knew the transaction
        (None, "PARQUET", None, "CREATE"),
    ],
)
def test_the_rows_of_a_new_table_are_told_where_they_are_known(
    monkeypatch: pytest.MonkeyPatch, committed: str | None, provider: str, metrics: dict[str, int] | None, message: str
) -> None:
    monkeypatch.setattr(delta_log, "operation_metrics", lambda *_: metrics)
    monkeypatch.setattr(catalog, "catalog_table", lambda *_: Mock(**{"provider.return_value.get.return_value": provider}))
    response = response_of(Mock(), "create", "a.b", Mock(columns=[]), committed)
    known = {"CREATE": None, "CREATE 0": 0, "CREATE +3": 3}[message]
    assert (str(response), response.rows_affected, response.rows_inserted) == (message, known, known)


def test_counts_of_a_statement_that_tells_its_rows_alone() -> None:
    two = {"num_affected_rows": 2}
    assert (counted("delete", two).rows_deleted, counted("update", two).rows_updated) == (2, 2)
    parts = {"num_affected_rows": 6, "num_updated_rows": 2, "num_deleted_rows": 1, "num_inserted_rows": 3}
    assert str(counted("merge", parts)) == "MERGE +3 ~2 -1"
