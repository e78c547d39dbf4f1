"""Java: its classes by name, and what it is started with."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from py4j.protocol import Py4JJavaError

from dbt.adapters.sparkdelta.java import innermost_cause, java_class
from dbt.adapters.sparkdelta.session import start_java


class View:
    """As py4j's: it has no attribute, and asks Java for each."""

    def __init__(self, asked: list[str]) -> None:
        vars(self)["_asked"] = asked

    def __getattr__(self, name: str) -> Any:
        self._asked.append(name)
        return object()


def test_a_class_is_looked_up_once_and_pyspark_finds_it_where_it_looks() -> None:
    asked: list[str] = []
    jvm = View(asked)
    sessions = [SimpleNamespace(_jvm=jvm) for _ in range(2)]
    found = {java_class(session, "java.net.URI") for session in sessions}  # type: ignore[arg-type]
    assert found == {vars(jvm)["java.net.URI"]}
    assert jvm.PythonUtils is java_class(sessions[0], "PythonUtils")  # type: ignore[arg-type]
    assert len(asked) == len(set(asked))
    assert "PythonUtils" in asked


@pytest.mark.parametrize(
    ("trace", "told"),
    [
        (
            "Caused by: a.QueryException: all of it\n\tat a.C\nCaused by: b.AuthenticationException: Invalid user\n\tat x.y.Z",
            "Invalid user",
        ),
        ("Caused by: java.nio.file.NoSuchFileException: /etc/ca.pem\n\tat x.y.Z", "NoSuchFileException: /etc/ca.pem"),
        ("Caused by: java.util.concurrent.TimeoutException\n\tat x.y.Z", "java.util.concurrent.TimeoutException"),
    ],
)
def test_the_innermost_cause_is_told_by_its_words_and_by_its_class_where_it_has_but_a_name(trace: str, told: str) -> None:
    error = Exception("failed")
    error.stackTrace = trace  # type: ignore[attr-defined]
    assert innermost_cause(error) == told


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark
    import pyspark.java_gateway

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", lambda *_: None)
    monkeypatch.setattr(pyspark, "SparkContext", lambda **_: None)


@pytest.mark.usefixtures("starting")
def test_one_machine_needs_no_address_of_its_name(tmp_path: Path) -> None:
    os.environ.pop("SPARK_LOCAL_IP", None)
    start_java({"spark.master": "spark://m:7077"}, tmp_path)
    assert "SPARK_LOCAL_IP" not in os.environ
    start_java({"spark.master": "local[*]"}, tmp_path)
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


@pytest.mark.usefixtures("starting")
def test_a_spark_that_does_not_start_is_told_without_java_s_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    said = "Could not parse Master URL: 'lokal[2]'"
    java = SimpleNamespace(_target_id="o1", getMessage=lambda: said, getCause=lambda: None)

    def refused(**_: Any) -> None:
        raise Py4JJavaError("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext", java)

    monkeypatch.setattr(pyspark, "SparkContext", refused)
    with pytest.raises(DbtRuntimeError) as caught:
        start_java({"spark.master": "lokal[2]"}, tmp_path)
    assert "Look at `server_side_parameters` of the profile (`spark.master` is lokal[2])" in str(caught.value.msg)
    assert str(caught.value.msg).endswith(f"It said: {said}")


def test_a_java_whose_spark_did_not_start_is_tried_again_and_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark
    import pyspark.java_gateway

    launched: list[object] = []
    java = SimpleNamespace(_target_id="o1", getMessage=lambda: "no master", getCause=lambda: None)

    class Refused:
        _gateway: object = None

        def __init__(self, gateway: object, **_: Any) -> None:
            type(self)._gateway = type(self)._gateway or gateway  # as pyspark: it keeps the first
            raise Py4JJavaError("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext", java)

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", lambda *_: launched.append(object()) or launched[-1])
    monkeypatch.setattr(pyspark, "SparkContext", Refused)
    for _ in range(3):
        with pytest.raises(DbtRuntimeError, match="Spark did not start"):
            start_java({"spark.master": "spark://m:7077"}, tmp_path)
    assert len(launched) == 1


def test_no_secret_is_on_the_command_line_where_any_user_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark
    import pyspark.java_gateway

    told: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", lambda conf, _: told.update(java=dict(conf.getAll())))
    monkeypatch.setattr(pyspark, "SparkContext", lambda conf, **_: told.update(spark=dict(conf.getAll())))
    open_ = {"spark.master": "local[1]", "spark.hadoop.javax.jdo.option.ConnectionUserName": "shop"}
    secret = {
        "spark.hadoop.javax.jdo.option.ConnectionPassword": "a",
        "spark.hadoop.fs.s3a.secret.key": "b",
        "spark.hadoop.fs.s3a.access.key": "c",
        "spark.authenticate.secret": "d",
        "spark.hadoop.fs.s3a.session.token": "e",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net": "f",
        "spark.hadoop.fs.gs.auth.service.account.private.key": "g",
    }
    start_java(open_ | secret, tmp_path)
    assert told == {"java": open_, "spark": open_ | secret}


@pytest.mark.usefixtures("starting")
def test_functions_run_in_this_python_whatever_another_spark_is_told(tmp_path: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = "/usr/bin/python3.9"
    start_java({"spark.master": "spark://m:7077"}, tmp_path)
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3.9"
    start_java({"spark.master": "local[*]"}, tmp_path)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
