"""Java behind a SparkSession: its virtual machine, and what its errors say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_of(session: SparkSession) -> Any:
    """The view of the virtual machine, by which Java's classes are named; pyspark knows it as one that may not be there."""
    jvm = session._jvm
    assert jvm is not None
    return jvm


def whole_text(error: BaseException) -> str:
    """All that a Java error says, its causes included."""
    trace = getattr(error, "_stackTrace", "") or getattr(error, "stackTrace", "")
    return f"{error}\n{trace}"


def short_message(error: BaseException) -> str:
    """What an error says without a stack trace: of Java's the message and that of its innermost cause."""
    if isinstance(error, DbtRuntimeError):
        return str(error.msg)
    java = getattr(error, "java_exception", None)
    if java is None:
        return str(error)
    texts = []
    for _ in range(20):
        if java is None:
            break
        texts.append(str(java.getMessage() or java.getClass().getName()))
        java = java.getCause()
    first, last = texts[0], texts[-1]
    return first if last in first else f"{first}\nCaused by: {last}"


@contextmanager
def shortly() -> Iterator[None]:
    """Raises what Spark refuses as DbtRuntimeError, with the short message: dbt calls any other an unhandled error."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise DbtRuntimeError(short_message(error)) from error


def innermost_cause(error: BaseException) -> str:
    """The innermost cause alone, on one line: what Spark says above it, of a query, its stage and its task, is of no help."""
    if isinstance(error, DbtRuntimeError):
        return str(error.msg)
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+?)(?=^\s+at |\Z)", whole_text(error), re.DOTALL | re.MULTILINE)
    return " ".join((causes[-1] if causes else short_message(error)).split())
