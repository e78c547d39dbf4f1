"""Java behind a SparkSession: its virtual machine, and what its errors say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# What pyspark itself asks for in every statement or column.
_SESSION = "org.apache.spark.sql.classic.SparkSession"
_OF_PYSPARK = ("PythonUtils", _SESSION, f"{_SESSION}$", "org.apache.spark.sql.functions")


def java_class(session: SparkSession, name: str) -> Any:
    """A class of Java by its full name, looked up once.

    py4j keeps none: for a name that is no class, as `org` of `jvm.org.apache…`, or for one that pyspark imports, all jars are
    searched each time, in the package of each import: a millisecond and more.
    """
    known = vars(session._jvm)  # what stands there, pyspark finds too
    for each in (name, *_OF_PYSPARK):
        if each not in known:
            known[each] = getattr(session._jvm, each)
    return known[name]


def make_active(session: SparkSession) -> None:
    """Java reads this session's settings where Python calls what has none of its own."""
    java_class(session, _SESSION).setActiveSession(session._jsparkSession)


def no_option(session: SparkSession) -> Any:
    """Scala's None."""
    return java_class(session, "scala.Option").empty()


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
    causes = re.findall(r"^Caused by: (?:([\w.$]+): )?(.+?)(?=^\s+at |\Z)", whole_text(error), re.DOTALL | re.MULTILINE)
    kind, said = causes[-1] if causes else ("", short_message(error))
    said = " ".join(said.split())
    # a file that is not there is told by its name alone
    return f"{kind.rpartition('.')[2]}: {said}" if kind and " " not in said else said
