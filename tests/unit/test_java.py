"""Java's classes by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt.adapters.sparkdelta.java import java_class


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
