"""Change sets and warehouse in S3: a local server from PyPI (moto) in its place, Hadoop's s3a in between."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta.jars import jar_paths
from tests import after, free_ports
from tests.scenarios.project import UserProject

pytestmark = [pytest.mark.dbt, pytest.mark.spark]

BUCKET = "lake"
CREDENTIALS = "software.amazon.awssdk.auth.credentials"
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"
COLUMNS = {"op": "string", "seq": "int", "id": "int", "old_id": "int", "n": "int", "at": "timestamp"}
CDC = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op", "occurred_at": "at"}
FEEDS = {  # settings of the feed, and of its one table
    "files": ({}, {"old_keys": {"id": "old_id"}}),
    "folders": ({"unit": "folder"}, {"history": "table", "key_changes": False, "except_columns": ["op", "old_id"]}),
}


class Bucket:
    """The server at this address, and what it holds."""

    def __init__(self, address: str, secret: str) -> None:
        self.address, self.secret = address, secret
        self.client = boto3.client("s3", endpoint_url=address)  # credentials as Spark finds them: in the environment
        self.client.create_bucket(Bucket=BUCKET)

    def put(self, key: str, *rows: dict[str, Any]) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body="".join(json.dumps(row) + "\n" for row in rows).encode())

    def keys(self, prefix: str = "") -> set[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {found["Key"] for page in pages for found in page.get("Contents", ())}

    def versions(self) -> dict[str, int]:
        """{table: its newest version}, but of the ledger of runs, which each run adds to."""
        commits = sorted(key for key in self.keys("warehouse/") if re.search(r"/_delta_log/\d{20}\.json$", key))
        found = {key.split("/")[2]: int(key[-25:-5]) for key in commits}
        return {table: version for table, version in found.items() if table != "cdc_runs"}


@pytest.fixture(scope="module")
def s3() -> Iterator[Bucket]:
    """The server, with credentials that are in the environment and nowhere else."""
    (port,) = free_ports(1)
    given = {
        "AWS_ACCESS_KEY_ID": f"key{secrets.token_hex(8)}",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        for name, value in given.items():
            environment.setenv(name, value)
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, "moto.server ended"
                time.sleep(0.1)
            yield Bucket(f"http://127.0.0.1:{port}", given["AWS_SECRET_ACCESS_KEY"])
        finally:
            server.terminate()
            server.wait()


@pytest.fixture(scope="module")
def project(s3: Bucket, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> UserProject:
    """Feeds of files and of folders after their first run. In one table keys change, in the other history is a table."""
    try:
        jar_paths([HADOOP_AWS])
    except DbtRuntimeError as error:
        pytest.skip(f"700 MB of jars could not be fetched: {error.msg}")
    project = UserProject(
        tmp_path_factory.mktemp("s3"),
        lake=lake,
        schema="s3",
        spark_settings={
            "spark.driver.extraJavaOptions": "",  # a few runs: the second compiler does not pay
            "spark.jars.packages": HADOOP_AWS,
            "spark.sql.warehouse.dir": f"s3a://{BUCKET}/warehouse",
            "spark.hadoop.fs.s3a.endpoint": s3.address,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.aws.credentials.provider": f"{CREDENTIALS}.EnvironmentVariableCredentialsProvider",
        },
    )
    for feed, (settings, of_table) in FEEDS.items():
        cdc = {**CDC, **of_table, "final_name": f"final_{feed}"}
        where = f"s3a://{BUCKET}/landing/{feed}/{{table}}"
        project.configure(
            feed,
            settings={"format": "rows", "location": where, "change_set_order": "name", **settings},
            tables=[{"name": "t", "cdc": cdc, "columns": COLUMNS}],
        )
    (project.path / "seeds").mkdir()
    (project.path / "seeds" / "colours.csv").write_text("id,name\n1,red\n2,\n")
    project.generate()
    for unit in ("files/t/1", "folders/t/1/part-1"):
        s3.put(f"landing/{unit}.jsonl", row(1, 1), row(2, 2), row(3, 3))
    s3.put("landing/folders/t/1/_SUCCESS")
    project.dbt("build", "--exclude-resource-type", "test", "unit_test", quiet=True)
    return project


def row(seq: int, id: int, op: str = "I", old_id: int | None = None, n: int = 1) -> dict[str, Any]:
    return {"op": op, "seq": seq, "id": id, "old_id": old_id, "n": n, "at": f"2024-01-01T00:00:{seq:02d}.5Z"}


def final(project: UserProject, feed: str) -> dict[int, int]:
    return project.by_id(f"select id, n from {{schema}}.final_{feed}")


def test_S6_a_run_that_finds_nothing_new_writes_nothing(project: UserProject, s3: Bucket) -> None:
    assert project.rows("select * from {schema}.colours order by id") == [{"id": 1, "name": "red"}, {"id": 2, "name": None}]
    assert final(project, "files") == final(project, "folders") == {1: 1, 2: 1, 3: 1}
    before = s3.versions()
    assert {"final_files", "final_folders", "hist_folders__t", "int_files__t_keys", "cdc_change_sets", "colours"} <= set(before)
    everything = s3.keys()
    project.dbt("run", quiet=True)
    assert s3.versions() == before
    assert {key for key in s3.keys() - everything if "/cdc_runs/" not in key} == set()


def test_S4_change_sets_are_taken_once_and_rewritten_ones_again(project: UserProject, s3: Bucket) -> None:
    s3.put("landing/folders/t/2/part-1.jsonl", row(4, 2, "U", n=7))
    s3.put("landing/folders/t/3/part-1.jsonl", row(6, 4))  # has no marker
    s3.put("landing/folders/t/2/_SUCCESS")
    s3.put("landing/files/t/2 +%41é.jsonl", row(4, 20, "U", old_id=2, n=7))  # a name that is not a URL's
    s3.put("landing/files/t/3.jsonl", row(6, 4))
    s3.put("landing/files/t/_4.jsonl", row(7, 5))
    project.dbt("run", "--select", "cdc_change_sets", quiet=True)
    s3.put("landing/files/t/3.jsonl", row(5, 1, "D"), row(6, 4, n=9))
    (said,) = project.failures(project.try_dbt("run", "--select", "stg_files__t", quiet=True))
    assert f"s3a://{BUCKET}/landing/files/t/3.jsonl" in said
    assert "recorded with" in said
    project.dbt("run", quiet=True)
    assert final(project, "folders") == {1: 1, 2: 7, 3: 1}
    assert final(project, "files") == {20: 7, 3: 1, 4: 9}
    for feed, key in {"files": 20, "folders": 2}.items():
        versions = project.rows(f"select id, n from {{schema}}.hist_{feed}__t where id in (2, 20) order by valid_from")
        assert [tuple(version.values()) for version in versions] == [(2, 1), (key, 7)]
    assert project.rows("select distinct _cdc_entity from {schema}.hist_files__t where id in (2, 20)")[1:] == []


@pytest.mark.nightly  # what they ask of local tables: tests/scenarios/test_commands.py
@after(test_S4_change_sets_are_taken_once_and_rewritten_ones_again)
def test_the_commands_tell_of_tables_in_s3(project: UserProject) -> None:
    told = {found["table"]: found for found in json.loads(project.done("status", "--json"))}
    assert told["folders.t"]["state"] == "ok"
    assert told["folders.t"]["changes"] == 4
    assert told["folders.t"]["final_rows"] == 3
    assert told["folders.t"]["newest"] == "2024-01-01T00:00:04.500000Z"
    project.rows("alter table {schema}.final_files add columns (extra int)")
    logs = json.loads(project.done("log", "files.t", "--json"))
    newest, before, *_ = logs["s3.final_files"]["commits"]
    assert newest["schema_changes"] == ["added extra int"]
    assert (before["operation"], before["app_id"], before["schema_changes"]) == ("MERGE", "final_files@0", None)
    assert f"s3a://{BUCKET}/" in str(logs)
    assert not [found for log in logs.values() for found in log["findings"]]
    assert "stg_files__t: 2 files, now 1" in project.done("maintain", "files.t", "--min-files", "2")
    assert final(project, "files") == {20: 7, 3: 1, 4: 9}


def test_a_bucket_that_is_not_there_is_named_and_holds_up_its_own_feed_only(project: UserProject) -> None:
    project.configure(
        "lost",
        settings={"format": "rows", "location": "s3a://no-such-bucket/{table}"},
        tables=[{"name": "t", "cdc": {**CDC, "final_name": "final_lost"}, "columns": COLUMNS}],
    )
    project.generate()
    models = ("cdc_change_sets", "stg_lost__t", "stg_files__t")
    (said,) = project.failures(project.try_dbt("run", "--select", *models, quiet=True))
    assert said.startswith("stg_lost__t: ")
    assert "The location s3a://no-such-bucket/t/* cannot be read" in said
    assert "bucket does not exist" in said
    assert "docs/object_stores.md" in said
    assert len(said.splitlines()) < 12


def test_two_drivers_write_over_each_others_commits_as_the_documentation_says(project: UserProject, s3: Bucket) -> None:
    """What Delta's LogStore calls for a commit, by two who both saw that it is not there. If this fails, the second is refused,
    and docs/object_stores.md is to say so."""
    session = project.spark()
    path = session._jvm.org.apache.hadoop.fs.Path(f"s3a://{BUCKET}/warehouse/{7:020d}.json")
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    streams = [system.create(path, False), system.create(path, False)]
    for number, stream in enumerate(streams):
        stream.write(number)
        stream.close()
    assert s3.client.get_object(Bucket=BUCKET, Key=f"warehouse/{7:020d}.json")["Body"].read() == bytes([1])


def test_the_credentials_are_in_no_file(project: UserProject, s3: Bucket) -> None:
    key = os.environ["AWS_ACCESS_KEY_ID"].encode()
    read = [path for folder in (project.path, project.lake) for path in folder.rglob("*") if path.is_file()]
    assert {"dbt.log", "run_results.json", "manifest.json", "spark.log"} <= {path.name for path in read}
    assert [path for path in read if s3.secret.encode() in path.read_bytes() or key in path.read_bytes()] == []
