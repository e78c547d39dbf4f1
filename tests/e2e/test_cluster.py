"""The pipeline on a Spark standalone cluster of two workers, which the test starts: its classes are in pyspark's package.

DELTA_CDC_CLUSTER_CASES="files or folders" runs other cases of tests/cases than the chosen ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from pyspark.find_spark_home import _find_spark_home

from delta_cdc import demo
from tests import free_ports
from tests.scenarios.project import PACKAGE, UserProject
from tests.scenarios.rows_cases import read_cases, run_cases
from tests.scenarios.runner import find
from tests.scenarios.test_postgres import shop_tables

pytestmark = [pytest.mark.dbt, pytest.mark.spark]
ROWS = Path(__file__).resolve().parents[1] / "cases" / "rows"
CHOSEN = (
    "keys_chain", "keys_swap_in_three_steps", "keys_alternate", "life_in_history", "partial_late_fills_only_what_is_open",
    "multiset_late_inserts_meet_their_deletes", "soft_delete_replaces_partitions", "truncate_comes_late",
)  # fmt: skip
WORKERS = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The master's URL."""
    home, folder = Path(_find_spark_home()), tmp_path_factory.mktemp("cluster")
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    # a process whose parent is killed ends too
    bound = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    command = [*bound, java, "-Xmx256m", "-cp", f"{home}/jars/*"]
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
        "SPARK_SCALA_VERSION": "2.13",  # else looked for in folders of Spark's own build
    }  # fmt: skip
    (port,) = free_ports(1)
    url, own = f"spark://127.0.0.1:{port}", ["--host", "127.0.0.1", "--webui-port", "0"]
    master = ["org.apache.spark.deploy.master.Master", *own, "--port", str(port)]
    worker = ["org.apache.spark.deploy.worker.Worker", *own, "--cores", "1", "--memory", "1g", "--work-dir", str(folder), url]
    processes = []
    try:
        with (folder / "log").open("w") as log:
            for each in (master, *[worker] * WORKERS):
                processes.append(subprocess.Popen([*command, *each], env=environment, stdout=log, stderr=log))
            for _ in range(600):
                if (folder / "log").read_text().count("Registering worker") >= WORKERS:
                    break
                assert all(process.poll() is None for process in processes), (folder / "log").read_text()[-3000:]
                time.sleep(0.1)
        yield url
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


@pytest.fixture(scope="module")
def project(cluster: str, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserProject]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)  # of the executors too
        yield UserProject(
            tmp_path_factory.mktemp("cluster"),
            lake=lake,
            schema="cluster",
            spark_settings={
                "spark.master": cluster,
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "700m",
                "spark.sql.shuffle.partitions": "2",  # so that rows pass from one worker to the other
            },
        )


def test_cases_give_their_rows_on_a_cluster(project: UserProject) -> None:
    given = os.environ.get("DELTA_CDC_CLUSTER_CASES", "").split()
    cases = read_cases(find([Path(path) for path in given])[0] if given else [ROWS / f"{name}.json" for name in CHOSEN])
    run_cases(project, cases)
    assert not [refusal for case in cases for refusal in case.refusals]
    different = {case.path.stem: case.difference(project.rows(case.query)) for case in cases}
    assert {name: found for name, found in different.items() if found is not None} == {}
    context = project.spark().sparkContext
    assert context.master.startswith("spark://")
    executors = context._jsc.sc().statusTracker().getExecutorInfos()
    assert len(executors) == WORKERS + 1  # and the driver


def test_python_functions_run_on_the_workers(project: UserProject) -> None:
    folder = project.path / "landing" / "avro"
    folder.mkdir(parents=True)
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}
    for number in range(3):
        with (folder / f"{number}.avro").open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(schema), [{"id": number}])
    project.configure(
        "avro", settings={"format": "rows", "location": "landing/{table}", "file_format": "avro", "sequence_by": ["id"]},
        tables=[{"name": "avro", "cdc": {"keys": ["id"], "final_name": "final_avro"}, "columns": {"id": "int"}}],
    )  # fmt: skip
    project.generate()
    project.dbt("run", "--select", "cdc_change_sets", "stg_avro__avro+", quiet=True)
    assert sorted(row["id"] for row in project.rows("select id from {schema}.final_avro")) == [0, 1, 2]


def test_the_demo_s_change_sets_give_the_tables_of_the_database(project: UserProject) -> None:
    """Key changes, which are Python models, a late change set, and two that come again."""
    landing, tables = project.path / "landing" / "shop", shop_tables()
    landing.mkdir(parents=True)
    project.configure(
        "shop", settings={"format": "wal2json_v2", "location": str(landing), "change_set_order": "name", "key_changes": False},
        tables=tables,
    )  # fmt: skip
    project.generate()

    def files_after(deliveries: dict[str, str]) -> dict[str, set[str]]:
        for name, under in deliveries.items():
            shutil.copy(PACKAGE / demo.CHANGE_SETS / f"{name}.jsonl.gz", landing / f"{under}.jsonl.gz")
        project.dbt("run", "--select", "cdc_change_sets", "raw_shop+", quiet=True)
        finals = [f"final_{table['name']}" for table in tables]
        names = [name for name in project.versions() if name in finals or name.startswith(("stg_shop__", "int_shop__"))]
        return {name: set(project.delta(name).file_uris()) for name in names}

    files_after({name: name for name in demo.DELIVERIES[:3]})
    files = files_after({name: name for name in demo.DELIVERIES[3:]})
    assert "int_shop__artist_keys" in files
    found = {
        name: demo.compare(project.spark(), f"{project.schema}.final_{name}", PACKAGE / demo.DATABASE / f"{name}.csv", name)
        for name in (table["name"] for table in tables)
    }
    assert {name: each.example for name, each in found.items() if each.differing} == {}
    assert files_after(demo.AGAIN) == files
