"""SQL models through a Spark Thrift Server, which the test starts: its classes are in pyspark's package. They read what a load in
another process wrote before. No Spark runs in this process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.find_spark_home import _find_spark_home

from dbt.adapters.sparkdelta import session
from dbt.adapters.sparkdelta.jars import jar_paths
from dbt.adapters.sparkdelta.settings import spark_settings
from tests import free_ports
from tests.scenarios.project import UserProject

hive = pytest.importorskip("pyhive.hive", reason="`method: thrift` needs the extra `thrift` of this package")
pytest.importorskip("thrift_sasl", reason="`method: thrift` needs the extra `thrift` of this package")

pytestmark = [pytest.mark.dbt, pytest.mark.spark]
SETTINGS = {"spark.master": "local[2]"}
MARTS = ("--select", "path:models/marts", "path:seeds", "path:snapshots")
SECOND = "{% if var('run', 1) == 2 %}"
LAST = "'f29', {{ 29 if var('run', 1) == 1 else 3000000000 }}"
FIELDS = "named_struct(" + ", ".join([*(f"'f{n}', {n}" for n in range(29)), LAST]) + ") as s"
FILES = {
    "seeds/words.csv": '"id","word","n","day"\n"1","it\'s \\ x","9007199254740993","2024-01-01"\n"2","","","2024-01-02"\n'
    '"3",null,"5",""\n',
    "seeds/_seeds.yml": "{version: 2, seeds: [{name: words, config: {column_types: {n: bigint}}}]}",
    "snapshots/kept.sql": "{% snapshot kept %}{{ config(unique_key=['a', 'b'], strategy='check', check_cols='all', "
    "file_format='delta') }} select 1 as a, 2 as b, {{ var('run', 1) }} as n{% endsnapshot %}",
    "models/marts/live.sql": "{{ config(materialized='view', keep_unchanged=true) }} "
    "select id, text, timestamp'2024-01-01 10:00' as at from {{ ref('final_invoice') }}",
    "models/marts/counted.sql": "{{ config(materialized='table', partition_by=['id'], tblproperties={'mine': \"it's\"}) }} "
    "select cast(id as int) as id, text from {{ ref('live') }} where id < {{ 9 if var('run', 1) == 1 else 2 }}",
    "models/marts/appended.sql": "{{ config(materialized='incremental') }} select {{ var('run', 1) }} as run",
    "models/marts/merged.sql": "{{ config(materialized='incremental', unique_key='id', merge_only_changed=true, "
    "matched_delete_condition=\"DBT_INTERNAL_SOURCE.word = 'gone'\", "
    "not_matched_condition=\"DBT_INTERNAL_SOURCE.word <> 'no'\") }} "
    f"select * from values {SECOND} (1, 'gone'), (2, 'B'), (null, 'n'), (4, 'no'), (5, 'e') "
    "{% else %} (1, 'a'), (2, 'b'), (cast(null as int), 'n') {% endif %} as t(id, word)",
    "models/marts/replaced.sql": "{{ config(materialized='incremental', incremental_strategy='replace_where', "
    f"incremental_predicates=[\"day = 'b'\"]) }}}} {SECOND} select 'b' as day, 9 as n "
    "{% else %} select * from values ('a', 1), ('b', 2), ('b', 3) as t(day, n) {% endif %}",
    # more fields than `describe` tells by itself
    "models/marts/evolved.sql": "{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns') "
    f"}}}} select 1 as id, {FIELDS}{SECOND}, 'new' as more{{% endif %}}",
    # its transaction is known in the second run
    "models/marts/planned.sql": "{{ config(materialized='incremental') }}"
    "{%- do adapter.plan_write(this, {'txn': {'app_id': 'planned@1', 'version': 7}, 'notes': {'word': \"it's; `x` \\\\ y\"}, "
    "'report': {'said': 1}}) -%} select {{ var('run', 1) }} as run",
    "models/marts/_marts.yml": """
version: 2
models:
  - name: live
    columns: [{name: id, data_tests: [unique, not_null]}]
  - name: counted
    description: "it's counted"
    config: {contract: {enforced: true}, persist_docs: {relation: true, columns: true}}
    columns:
      - {name: id, data_type: int, description: "the key's", constraints: [{type: not_null}, {type: check, expression: id > 0}]}
      - {name: text, data_type: string}
unit_tests:
  - name: texts_are_passed_on
    model: counted
    overrides: {vars: {run: 1}}
    given: [{input: ref('live'), rows: [{id: 1, text: "it's"}]}]
    expect: {rows: [{id: 1, text: "it's"}]}
""",
    "models/wrong/cast.sql": "{{ config(materialized='table') }} select cast('x' as int) as i",
    "models/wrong/asks.sql": "{{ config(materialized='table') }} "
    "select '{{ adapter.table_state(this, 'x').exists if execute }}' as x",
    "models/wrong/python.py": "def model(dbt, session):\n    return session.range(1)\n",
}


@pytest.fixture(scope="module")
def project(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> UserProject:
    """A project with a feed that is loaded, by `method: session` in a process of its own: Derby admits one at a time."""
    project = UserProject(tmp_path_factory.mktemp("thrift"), lake=lake, schema="served", spark_settings=SETTINGS)
    project.configure(
        "shop", settings={"format": "rows", "location": "landing/{table}", "operation": "op", "sequence_by": ["seq"]},
        tables=[{"name": "invoice", "cdc": {"keys": ["id"]},
                 "columns": {"id": "int", "seq": "int", "op": "string", "text": "string"}}],
    )  # fmt: skip
    project.generate()
    for name, content in FILES.items():
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        (project.path / name).write_text(content)
    changes = [(1, 1, "I", "a"), (2, 1, "I", "b"), (3, 1, "I", "c"), (2, 2, "U", "B"), (3, 2, "D", None)]
    (project.path / "landing" / "invoice").mkdir(parents=True)
    rows = (dict(zip(("id", "seq", "op", "text"), change, strict=True)) for change in changes)
    (project.path / "landing" / "invoice" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [str(Path(sys.executable).with_name("dbt")), "run", "--exclude", "path:models/marts", "path:models/wrong"]
    where = ["--project-dir", str(project.path), "--profiles-dir", str(project.path)]
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return project


@pytest.fixture(scope="module")
def port(project: UserProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server on the warehouse of that load."""
    home, folder = Path(_find_spark_home()), tmp_path_factory.mktemp("server")
    settings = spark_settings(project.lake, project.spark_settings)
    options = {name: settings.pop(name) for name in ("spark.driver.memory", "spark.driver.extraJavaOptions")}
    (folder / "server.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (port,) = free_ports(1)
    command = [
        # a process whose parent is killed ends too
        *(["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []),
        str(home / "bin" / "spark-submit"), "--properties-file", str(folder / "server.conf"),
        "--driver-memory", options["spark.driver.memory"], "--driver-java-options", options["spark.driver.extraJavaOptions"],
        # not --jars: the threads of some connections do not see those
        "--driver-class-path", ":".join(jar_paths()),
        "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal",
        "--hiveconf", f"hive.server2.thrift.port={port}", "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1",
    ]  # fmt: skip
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(1200):
            with socket.socket() as asks:
                if asks.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def served(project: UserProject, port: int, **settings: str) -> None:
    """Give the project the profile of `method: thrift`."""
    output = {
        "type": "sparkdelta", "method": "thrift", "host": "127.0.0.1", "port": port, "user": "dbt", "schema": project.schema,
        "threads": 3, "server_side_parameters": {"spark.sql.session.timeZone": "Asia/Tokyo", **settings},
    }  # fmt: skip
    (project.path / "profiles.yml").write_text(yaml.safe_dump({"user": {"target": "server", "outputs": {"server": output}}}))


@pytest.fixture(scope="module")
def built(project: UserProject, port: int) -> list[dict[str, Any]]:
    """The models' responses of two runs, after seeds, snapshots, tests and unit tests passed with them."""
    served(project, port)
    runs = []
    for run in (1, 2):
        result = project.dbt("build", *MARTS, "--vars", f"run: {run}")
        kinds = {str(r.node.resource_type) for r in result.result.results}
        assert kinds == {"model", "seed", "snapshot", "test", "unit_test", "operation"}  # of the feeds: they do nothing
        runs.append({r.node.name: r.adapter_response for r in result.result.results})
    return runs


@pytest.fixture(scope="module")
def rows(project: UserProject, port: int, built: object) -> Any:
    cursor = hive.connect(host="127.0.0.1", port=port, username="dbt", database=project.schema).cursor()

    def read(sql: str) -> list[tuple[Any, ...]]:
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]

    return read


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, text from live order by id", [(1, "a"), (2, "B")]),
        ("select id, text from counted", [(1, "a")]),
        ("select run from appended order by run", [(1,), (2,)]),
        ("select id, word from merged order by id nulls first", [(None, "n"), (2, "B"), (5, "e")]),
        ("select day, n from replaced order by n", [("a", 1), ("b", 9)]),
        ("select id, s.f0, s.f29, more from evolved", [(1, 0, 3000000000, "new")]),
        ("select run from planned", [(1,)]),
        ("select * from words order by id",
         [(1, "it's \\ x", 9007199254740993, "2024-01-01"), (2, "", None, "2024-01-02"), (3, None, 5, None)]),
        ("select n, dbt_valid_to is null from kept order by n", [(1, False), (2, True)]),
    ],
)  # fmt: skip
def test_models_give_their_rows(rows: Any, sql: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(sql) == expected


def test_what_a_table_is_given_beside_its_rows(rows: Any) -> None:
    described = {row[0]: row for row in rows("describe extended counted")}
    assert described["id"][2] == "the key's"
    assert described["Comment"][1] == "it's counted"
    properties = dict(rows("show tblproperties counted"))
    assert properties["mine"] == "it's"
    checks = {value for name, value in properties.items() if name.startswith("delta.constraints.")}
    assert checks == {"id > 0", "`id` is not null"}
    (history,) = rows("describe history planned")
    (noted,) = [json.loads(value) for value in history if "planned@1" in str(value)]
    assert noted == {"app_id": "planned@1", "version": 7, "notes": {"word": "it's; `x` \\ y"}}


def test_responses_tell_what_a_merge_did(built: list[dict[str, Any]]) -> None:
    counts = {"rows_affected": 3, "rows_inserted": 1, "rows_updated": 1, "rows_deleted": 1}
    assert {name: built[1]["merged"][name] for name in counts} == counts
    assert built[1]["planned"]["report"] == {"said": 1}


def test_docs_and_show(project: UserProject, built: object) -> None:
    catalog = project.dbt("docs", "generate", *MARTS, "--vars", "run: 2").result
    columns = {name: list(node.columns) for name, node in catalog.nodes.items()}
    assert columns["model.user_project.counted"] == ["id", "text"]
    assert columns["model.user_project.live"] == ["id", "text", "at"]
    shown = project.dbt("show", "--inline", "select at from {{ ref('live') }}", "--limit", "1").result.results[0].agate_table
    assert str(shown.rows[0][0]) == "2024-01-01 10:00:00"  # of the profile's zone


def test_feeds_are_refused_before_anything_runs(project: UserProject, built: object) -> None:
    result = project.try_dbt("build", "--vars", "run: 3")
    assert not result.success
    said = f"{result.exception} {UserProject.failures(result)}"
    assert "target server has `method: thrift`" in said
    assert "models of the feeds are selected (cdc_change_sets, final_invoice, hist_shop__invoice, …)" in said
    assert not [r for r in getattr(result.result, "results", None) or [] if str(r.status) == "success"]


def test_a_model_that_fails_says_why(project: UserProject, built: object) -> None:
    result = project.try_dbt("run", "--select", "path:models/wrong")
    said = {r.node.name: r.message for r in result.result.results}
    assert '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT"' in said["cast"]  # ANSI is on
    assert "HiveSQLException" not in said["cast"]
    assert "\tat " not in said["cast"]
    for name in ("asks", "python"):
        assert "The profile has `method: thrift`, and this is done with a SparkSession, in the dbt process" in said[name]


def test_a_setting_that_the_server_refuses_is_told(project: UserProject, port: int, built: object) -> None:
    served(project, port, **{"spark.driver.memory": "9g"})
    try:
        result = project.try_dbt("run", "--select", "appended", "--vars", "run: 3")
        assert "a setting of `server_side_parameters` is refused" in f"{result.exception} {UserProject.failures(result)}"
        assert "spark.driver.memory" in f"{result.exception} {UserProject.failures(result)}"
    finally:
        served(project, port)


def test_no_spark_ran_in_this_process(built: object) -> None:
    assert session._root is None
