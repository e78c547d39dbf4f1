"""How Delta's jars are fetched; Spark's Ivy is not started."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import jars

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str) -> dict[str, Any]:
    """Fetch one package where Ivy says `found`; what Spark was started with."""
    asked: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        asked.update(options, conf=json.loads(command[-1]))
        return SimpleNamespace(stdout=f"JARS={found}\n", stderr="")

    monkeypatch.setattr(jars.subprocess, "run", run)
    jars.resolve(["a:b:1"], tmp_path / "cache" / "b-1", {}, beside_spark=False)
    return asked


def jar(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "a_b-1.jar"
    path.touch()
    return path


def test_ivy_goes_through_the_proxy_that_pip_goes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.corp:3128")
    monkeypatch.setenv("NO_PROXY", "localhost, .corp")
    options = fetched(tmp_path, monkeypatch, jar(tmp_path / "ivy").as_uri())["conf"]["spark.driver.extraJavaOptions"]
    assert options.split() == [
        "-Dhttps.proxyHost=proxy.corp",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|127.*|*.localhost|corp|*.corp",
    ]


@pytest.mark.parametrize("proxy", ["proxy.corp:3128", "http://proxy.corp:3128/"])
def test_a_proxy_is_named_with_and_without_a_scheme(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    assert jars._proxy_options() == "-Dhttps.proxyHost=proxy.corp -Dhttps.proxyPort=3128"


def test_without_a_proxy_java_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "getproxies", dict)
    assert "spark.driver.extraJavaOptions" not in fetched(tmp_path, monkeypatch, jar(tmp_path / "ivy").as_uri())["conf"]


def test_a_home_with_a_blank_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(tmp_path, monkeypatch, jar(tmp_path / "of jane").as_uri())
    assert [path.name for path in (tmp_path / "cache" / "b-1").iterdir()] == ["a_b-1.jar"]


def test_a_host_whose_name_has_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    found = jar(tmp_path / "ivy").as_uri()
    assert fetched(tmp_path / "1", monkeypatch, found)["env"]["SPARK_LOCAL_IP"] == "127.0.0.1"
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.7")
    assert fetched(tmp_path / "2", monkeypatch, found)["env"]["SPARK_LOCAL_IP"] == "10.0.0.7"


def test_what_another_spark_is_told_takes_the_place_of_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages x:y:1 pyspark-shell")
    assert "PYSPARK_SUBMIT_ARGS" not in fetched(tmp_path, monkeypatch, jar(tmp_path / "ivy").as_uri())["env"]


@pytest.mark.parametrize(
    ("core", "holds"), [("spark-core_2.12-3.5.1.jar", "Spark 3.5.1"), ("spark-core_2.13-4.2.0.jar", None), ("x.jar", "no Spark")]
)
def test_another_spark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: str, holds: str | None) -> None:
    monkeypatch.setattr(jars.metadata, "version", lambda _: "4.2.0")
    monkeypatch.setattr(pyspark, "__version__", "4.2.0")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    jars.refuse_other_spark()
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / core).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    if holds is None:
        jars.refuse_other_spark()
    else:
        with pytest.raises(DbtRuntimeError, match=f"SPARK_HOME is .*, which holds {holds}; pyspark 4.2.0 is installed"):
            jars.refuse_other_spark()
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(DbtRuntimeError, match=r"Python finds 3\.5\.1 in .* Take that out of PYTHONPATH"):
        jars.refuse_other_spark()
