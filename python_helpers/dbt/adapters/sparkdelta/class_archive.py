"""Java's class-data archive of what Spark and Delta load: with it a process is ready for its first table a third sooner.

`python -m dbt.adapters.sparkdelta.jars` makes it, once for a Python environment. A JVM that it does not fit (another Java, other
jars before Delta's on the class path) goes without, as one for which there is none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError

from dbt.include import sparkdelta

# What a JVM says of an archive that does not fit goes to its log, not to the screen
QUIET = "-Xlog:disable -Xlog:all=warning:stderr"


def settings_with_jars(settings: Mapping[str, str], jars: Sequence[str]) -> dict[str, str]:
    """Spark settings that load these jars: in one JVM by its class path, which an archive can cover, else from the driver."""
    out = dict(settings)
    if not settings.get("spark.master", "").startswith("local"):
        out["spark.jars"] = ",".join(path for path in (settings.get("spark.jars"), *jars) if path)
        return out
    class_path = "spark.driver.extraClassPath"
    out[class_path] = os.pathsep.join(path for path in (*jars, settings.get(class_path)) if path)
    archive = path_of(jars)
    if archive is not None and archive.is_file():
        _add_java_options(out, f'"-XX:SharedArchiveFile={archive}" -Xshare:auto {QUIET}')
    return out


def path_of(jars: Sequence[str]) -> Path | None:
    """Where the archive for these jars, this Java and this Spark is kept; None if there is no Java."""
    from pyspark.find_spark_home import _find_spark_home

    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None or not jars:
        return None
    java = os.path.realpath(java)
    parts = (java, str(os.stat(java).st_mtime_ns), os.path.realpath(_find_spark_home()), *jars)
    name = f"classes-{hashlib.sha256(os.pathsep.join(parts).encode()).hexdigest()[:12]}.jsa"
    return Path(sys.prefix) / "share" / "dbt-sparkdelta" / name  # Spark's own jars are of this Python environment


def build(jars: Sequence[str]) -> Path:
    """Make the archive, unless it is there, by a Spark that does what models do, half a minute long. Raises DbtRuntimeError."""
    archive = path_of(jars)
    if archive is None:
        raise DbtRuntimeError("There is no Java, so its classes cannot be archived.")
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        command = [sys.executable, "-m", __name__, str(made), *jars]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():  # a JVM whose statements fail leaves an archive too, of little
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
            raise DbtRuntimeError(f"Java made no class-data archive; the last that was said: {said[0]}")
        for old in archive.parent.glob("classes-*.jsa"):  # of another Java, Spark or Delta: 240 MB each
            old.unlink()
        os.replace(made, archive)
    return archive


def _add_java_options(settings: dict[str, str], options: str) -> None:
    key = "spark.driver.extraJavaOptions"
    settings[key] = f"{options} {settings.get(key, '')}".strip()


def _train(archive: str, jars: Sequence[str]) -> None:
    """Start Spark as `session` does, do what models do, and let the JVM write what it loaded."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from dbt.adapters.sparkdelta.session import start_java
    from dbt.adapters.sparkdelta.settings import spark_settings

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        conf = settings_with_jars(spark_settings(root, {}), jars)
        _add_java_options(conf, f'"-XX:ArchiveClassesAtExit={archive}" {QUIET}')
        start_java(conf, root)
        session = SparkSession.builder.config(map=dict(conf)).getOrCreate()
        for statement in (Path(sparkdelta.PACKAGE_PATH) / "class_archive.sql").read_text(encoding="utf-8").split(";"):
            session.sql(statement).collect()
        table = root / "lines.json"
        table.write_text('{"k": 1}\n', encoding="utf-8")
        session.read.text(str(table)).selectExpr("*", "_metadata.file_path").localCheckpoint().collect()
        session.read.json(str(table), schema="k int").union(session.sql("select k from a.t")).distinct().count()
        gateway = SparkContext._gateway
        session.stop()
        assert gateway is not None
        gateway.proc.stdin.close()  # ends the JVM, which then writes the archive
        gateway.proc.wait()


if __name__ == "__main__":
    _train(sys.argv[1], sys.argv[2:])
