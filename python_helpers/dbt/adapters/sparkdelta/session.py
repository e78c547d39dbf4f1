"""One root SparkSession a process, one session of its own for every open dbt connection."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark.session import Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import settings as spark_defaults
from dbt.adapters.sparkdelta import statements
from dbt.adapters.sparkdelta.class_archive import settings_with_jars
from dbt.adapters.sparkdelta.columns import with_leaves
from dbt.adapters.sparkdelta.jars import jar_paths, refuse_other_spark
from dbt.adapters.sparkdelta.java import short_message, shortly, whole_text
from dbt.adapters.sparkdelta.response import SparkdeltaResponse, response_of
from dbt.adapters.sparkdelta.seeds import literal
from dbt.adapters.sparkdelta.settings import spark_settings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_lock = threading.Lock()
_root: SparkSession | None = None
_root_settings: dict[str, str] = {}

# what Spark itself shows of no setting (its spark.redaction.regex), and by what ADLS and GCS sign in
_SECRET = re.compile("secret|password|token|(access|account|private)[.]?key", re.IGNORECASE)
LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"


def root_session(
    *, root: str | Path, overrides: Mapping[str, str] | None = None, tuned_for: str = "small_tables"
) -> SparkSession:
    """The process's one root SparkSession, started when it is first asked for.

    root: local folder of warehouse and metastore. overrides: Spark settings that replace the defaults.
    Raises DbtRuntimeError, in one sentence each, when Java or the jars are missing or when another process
    holds the metastore.
    """
    global _root, _root_settings
    with _lock:
        wanted = spark_settings(Path(root).absolute(), overrides or {}, tuned_for)
        if _root is None or _root._sc._jsc is None:
            _root, _root_settings = _start(wanted, Path(root).absolute()), wanted
        return _root


def process_stays() -> None:
    """Say that this process makes many runs: Java's second compiler pays. Once Spark runs this changes nothing."""
    if _root is None:
        spark_defaults.process_stays = True


def session_is_gone() -> bool:
    """Whether this process had a Spark whose Java process has ended: nothing brings it back."""
    launched = getattr(_root._sc._gateway, "proc", None) if _root is not None and _root._sc._gateway is not None else None
    return launched is not None and launched.poll() is not None


def local_warehouse() -> Path | None:
    """The folder of this process's tables, where Spark has it on this machine."""
    folder = _root_settings.get("spark.sql.warehouse.dir", "").removeprefix("file:")
    return Path(folder) if folder.startswith("/") and _root is not None else None


def new_session(*, root: str | Path, overrides: Mapping[str, str] | None = None, tuned_for: str = "small_tables") -> SparkSession:
    """A session with temporary views and settings of its own. Arguments and errors as for `root_session`.

    A setting that differs from the running root's is set on this session alone. Raises DbtRuntimeError when
    it is one that Spark takes at its start only.
    """
    session = root_session(root=root, overrides=overrides, tuned_for=tuned_for).newSession()
    for key, value in spark_settings(Path(root).absolute(), overrides or {}, tuned_for).items():
        if _root_settings.get(key) == value:
            continue
        if not session.conf.isModifiable(key):
            raise DbtRuntimeError(
                f"This process already runs Spark with `{key}` = {_root_settings.get(key)!r}; the profile "
                f"now wants {value!r}, which Spark takes at its start only. Use another process."
            )
        session.conf.set(key, value)
    return session


def make_root(root: Path) -> None:
    """Make the folder of warehouse and metastore. Raises DbtRuntimeError where it cannot be made or written to."""
    why = None
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
    if why is None and not os.access(root, os.W_OK | os.X_OK):
        why = "this user may not write there"
    if why is not None:
        raise DbtRuntimeError(f"`root` of the profile is {root}, and no warehouse can be there: {why}. Name another folder.")


def _start(settings: dict[str, str], root: Path) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.errors.exceptions.captured import CapturedException
    from pyspark.sql import SparkSession

    # pyspark prints every failed statement as a page of JSON, and fails at that for Delta's error classes,
    # which hides the error; dbt shows it anyway
    CapturedException._log_exception = lambda self: None  # type: ignore[method-assign]

    conf = dict(settings)
    if SparkContext._active_spark_context is None:
        if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            raise DbtRuntimeError(
                "Spark needs Java 17 or 21 and no `java` was found. Install it (Debian: `apt install "
                "openjdk-17-jre-headless`, macOS: `brew install openjdk@17`) or set JAVA_HOME."
            )
        refuse_other_spark()
        given = [path for path in conf.get("spark.jars", "").split(",") if path]
        packages = [name for name in conf.pop("spark.jars.packages", "").split(",") if name]
        if not any("delta-spark_" in name for name in given):
            conf = settings_with_jars(conf, jar_paths([name for name in packages if ":delta-spark_" not in name], conf))
        make_root(root)
        start_java(conf, root)

    session = SparkSession.builder.config(map=dict(conf)).getOrCreate()
    if "io.delta" not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise DbtRuntimeError(
            "This process already runs a SparkSession without Delta's extension. Let dbt start Spark, or "
            "start it with dbt.adapters.sparkdelta.session.root_session()."
        )
    _open_metastore(session, root)
    return session


def start_java(conf: Mapping[str, str], root: Path) -> None:
    """Start the JVM and its SparkContext. What the JVM prints goes to a file: it warns at every start. Secrets are told to the
    SparkContext alone: any user of the machine can read a command line (`ps`)."""
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkConf, SparkContext

    if conf["spark.master"].startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # functions in Python want this one's packages, whatever another Spark has
        # else Spark asks for the address of the host's name, needed or not, and does not start where the name has none
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark_conf, on_command_line = SparkConf(loadDefaults=False), SparkConf(loadDefaults=False)
    spark_conf.setAll(list(conf.items()))
    on_command_line.setAll([(name, value) for name, value in conf.items() if not _SECRET.search(name)])
    # where the SparkContext was refused, pyspark keeps the JVM, and takes no other: each more would be left idle
    gateway = getattr(SparkContext, "_gateway", None) or _launch(on_command_line, root)
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    try:
        SparkContext(conf=spark_conf, gateway=gateway)
    except Py4JJavaError as error:
        raise DbtRuntimeError(
            f"Spark did not start. Look at `server_side_parameters` of the profile (`spark.master` is {conf['spark.master']}), "
            f"and whether Java is 17 or 21 (`java -version`, JAVA_HOME). It said: {short_message(error)}"
        ) from error
    if threading.current_thread() is threading.main_thread():  # pyspark's own would end a run that is to end by itself
        signal.signal(signal.SIGINT, on_ctrl_c)


def _launch(conf: SparkConf, root: Path) -> JavaGateway:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    log = root / "spark.log"
    if log.exists() and log.stat().st_size:  # why the one before died, where a service has started this one in its place
        log.replace(root / "spark.log.1")
    with open(log, "w", encoding="utf-8") as file:
        try:
            return launch_gateway(conf, {"stderr": file})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            said = log.read_text(encoding="utf-8", errors="replace").strip()[-1500:]
            raise DbtRuntimeError(
                "Java could not start Spark, which needs Java 17 or 21: see `java -version`, JAVA_HOME and "
                f"the flags in `spark.driver.extraJavaOptions`. It said:\n{said}"
            ) from error


def _open_metastore(session: SparkSession, root: Path) -> None:
    """Touch the metastore now, so that a locked one is told as such and not by the first model."""
    try:
        session._jsparkSession.sessionState().catalog().databaseExists("default")
    except Exception as error:
        text = whole_text(error)
        if "XSDB6" in text:
            raise DbtRuntimeError(
                f"Another run holds the metastore in {root} (Derby admits one process at a time): wait for "
                "it to end (stop it, if it is `delta-cdc run --every`), or keep the metastore in PostgreSQL (target `shared` of "
                "profiles/profiles.yml, docs/scheduling.md)."
            ) from None
        raise DbtRuntimeError(f"The metastore cannot be opened: {short_message(error)}") from error


@contextmanager
def settings_on(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings that hold for one statement: set on this thread's session, taken back whatever happens."""
    before = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            if kept is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, kept)


def _made_anew(session: SparkSession, sql: str, table: str) -> DataFrame:
    """Run the statement that makes a table or takes its place. One that is to gain its first timestamp_ntz is told so: Delta lets
    a new table have it, and not one that is replaced."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return session.sql(sql)
    except (Py4JJavaError, PySparkException) as error:
        text = whole_text(error)
        if "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT" not in text or "timestampNtz" not in text:
            raise
        session.sql(f"alter table {table} set tblproperties ('delta.feature.timestampNtz' = 'supported')")
        return session.sql(sql)


class SparkdeltaCursor(Cursor):
    """Runs statements in one session, in one job group, and reads what Delta says of a write."""

    def __init__(self, handle: SparkdeltaConnectionWrapper) -> None:
        super().__init__()
        self._handle = handle
        self.response: SparkdeltaResponse | None = None

    def execute(self, sql: str, *parameters: Any) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        if parameters:
            sql = sql % parameters
        session = self._handle.begin(sql)
        self._rows = None
        kind, table = statements.written_table(sql)
        try:
            if kind:
                session.conf.unset(LAST_COMMIT)
            self._df = _made_anew(session, sql, table) if kind == "create" else session.sql(sql)
            if kind:
                self.response = response_of(session, kind, table, self._df, session.conf.get(LAST_COMMIT, None))
        except (Py4JJavaError, PySparkException) as error:
            raise DbtRuntimeError(statements.explained(short_message(error), table)) from error

    def fetchall(self) -> Any:
        return self._fetched(lambda rows: rows.collect())

    def fetchmany(self, limit: int) -> Any:
        """The first `limit` rows."""
        return (self._fetched(lambda rows: rows.take(limit)) or [])[:limit]

    def fetchone(self) -> Any:
        self._fetched(lambda rows: rows.take(1))
        return super().fetchone()

    def _fetched(self, read: Callable[[DataFrame], Any]) -> Any:
        """The rows, as they were read first; None where the statement gives none."""
        if self._rows is None and self._df is not None:
            with shortly():
                self._rows = read(as_shown(self._df))
        return self._rows


def as_shown(frame: DataFrame) -> DataFrame:
    """The same rows, with timestamps as the session shows them: pyspark gives moments in this process's time zone, and what a
    model makes of them (a watermark, say) is read by the session. It fails, too, at those that have no year there: the end of
    9999 east of Greenwich, the beginning of year 1 anywhere."""
    from pyspark.sql.functions import col

    types = [(field.dataType, without_zone(field.dataType)) for field in frame.schema.fields]
    if all(given == shown for given, shown in types):
        return frame
    places = [f"c{place}" for place in range(len(types))]  # two columns may have one name
    columns = [col(name) if given == shown else col(name).cast(shown) for name, (given, shown) in zip(places, types, strict=True)]
    return frame.toDF(*places).select(*columns).toDF(*frame.columns)


def without_zone(data_type: DataType) -> DataType:
    """The type with times without a zone in place of moments, at any depth."""
    from pyspark.sql import types as T

    return with_leaves(data_type, lambda leaf: T.TimestampNTZType() if isinstance(leaf, T.TimestampType) else leaf)


class SparkdeltaConnectionWrapper(SessionConnectionWrapper):
    """A dbt connection: a session of its own (opened when first used) and a job group to cancel it by."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._session: SparkSession | None = None
        self._cursor: SparkdeltaCursor | None = None
        self._group = f"dbt-{uuid.uuid4()}"
        self._cancelled = False

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            self._session = new_session(**self._arguments)
        return self._session

    def begin(self, description: str) -> SparkSession:
        """The session, with this thread's Spark jobs put into this connection's group from here on."""
        if self._cancelled:
            raise DbtRuntimeError("Cancelled.")
        session = self.session
        session.sparkContext.setJobGroup(self._group, re.sub(r"\s+", " ", description).strip()[:200], interruptOnCancel=True)
        return session

    def cursor(self) -> SparkdeltaConnectionWrapper:
        self._cursor = SparkdeltaCursor(self)
        return self

    @property
    def response(self) -> SparkdeltaResponse | None:
        """What the last statement wrote; None when it wrote nothing that Delta counts."""
        return self._cursor.response if self._cursor else None

    def fetchmany(self, limit: int) -> Any:
        assert self._cursor, "Cursor not available"
        return self._cursor.fetchmany(limit)

    def cancel(self) -> None:
        """Stop this connection's Spark jobs, also those it would still start. From any thread."""
        self._cancelled = True
        if self._session is not None:
            self._session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def close(self) -> None:
        from py4j.protocol import Py4JError

        super().close()
        if self._session is not None:
            # Delta's own cache keeps a session for each table that it read in it: its views, and their plans, are not to stay
            with suppress(Py4JError, OSError):  # Java may be gone
                self._session._jsparkSession.sessionState().catalog().clearTempTables()
        self._session = None

    @classmethod
    def _fix_binding(cls, value: Any) -> str:
        return literal(value)
