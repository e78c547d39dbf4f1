"""Delta's jars for the installed pyspark and delta-spark, resolved once and kept in a cache folder.

`python -m dbt.adapters.sparkdelta.jars` fills the cache, for example while an image is built, and adds an archive of
Java's classes (`class_archive.py`). A session that finds the cache empty fills it by itself, without the archive.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from dbt_common.exceptions import DbtRuntimeError

CACHE_VARIABLE = "SPARKDELTA_JARS"

# Ivy runs inside spark-submit, before any SparkContext; what it resolved is then in `spark.jars`.
_RESOLVE = """
import json, sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
conf = SparkConf(loadDefaults=False)
for key, value in json.loads(sys.argv[1]).items():
    conf.set(key, value)
gateway = launch_gateway(conf)
print("JARS=" + gateway.jvm.java.lang.System.getProperty("spark.jars"))
"""


def delta_package() -> str:
    """Maven coordinates of the Delta jar that fits the installed pyspark and delta-spark."""
    spark = metadata.version("pyspark")
    delta = metadata.version("delta-spark")
    return f"io.delta:delta-spark_{'.'.join(spark.split('.')[:2])}_2.13:{delta}"


def refuse_other_spark() -> None:
    """Raises DbtRuntimeError where the environment names another Spark than pip installed: its Java does not fit this Python."""
    import pyspark

    wanted = metadata.version("pyspark")
    if pyspark.__version__ != wanted:
        raise DbtRuntimeError(
            f"pyspark {wanted} is installed, and Python finds {pyspark.__version__} in {Path(pyspark.__file__).parent} "
            "before it. Take that out of PYTHONPATH."
        )
    home = os.environ.get("SPARK_HOME", "/")
    named = [re.match(r"spark-core_[\d.]+-([\d.]*\d)", path.name) for path in Path(home, "jars").glob("spark-core_*.jar")]
    found = ", ".join(match[1] for match in named if match)
    if "SPARK_HOME" in os.environ and found != wanted:
        raise DbtRuntimeError(
            f"SPARK_HOME is {home}, which holds {'Spark ' + found if found else 'no Spark'}; pyspark {wanted} is installed. "
            "Go without: unset SPARK_HOME"
        )


def cache_folder(packages: Sequence[str]) -> Path:
    """Where the jars of these packages are kept: under $SPARKDELTA_JARS or the user's cache folder."""
    base = os.environ.get(CACHE_VARIABLE) or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dbt-sparkdelta"
    )
    name = packages[0].split(":", 1)[1].replace(":", "-")
    if packages[1:]:
        name += "-" + hashlib.sha256(",".join(sorted(packages[1:])).encode()).hexdigest()[:12]
    return Path(base) / name


def jar_paths(extra_packages: Sequence[str] = (), settings: Mapping[str, str] | None = None) -> list[str]:
    """Paths of Delta's jars and of those of extra Maven packages, from the cache or else from Maven.

    settings: Spark settings of which `spark.jars.repositories`, `.ivy`, `.ivySettings` and `.excludes` are
        passed on. Raises DbtRuntimeError when a package cannot be resolved.
    """
    packages = [delta_package(), *extra_packages]
    folder = cache_folder(packages)
    if not folder.is_dir():
        resolve(packages, folder, settings or {})
    return sorted(str(path) for path in folder.glob("*.jar"))


def resolve(packages: Sequence[str], folder: Path, settings: Mapping[str, str], *, beside_spark: bool = True) -> None:
    """Resolve packages with Spark's own Ivy and copy the jars that Spark itself lacks into `folder`.

    beside_spark: False copies all of them, for a process that has none of Spark's.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Ivy itself does not see another one that fetches the same jars
        if not folder.is_dir():
            _fetch(packages, folder, settings, beside_spark)


def _fetch(packages: Sequence[str], folder: Path, settings: Mapping[str, str], beside_spark: bool) -> None:
    refuse_other_spark()
    conf = {key: value for key, value in settings.items() if key.startswith("spark.jars.")}
    conf["spark.jars.packages"] = ",".join(packages)
    if options := _proxy_options():
        conf["spark.driver.extraJavaOptions"] = options
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", **os.environ}  # see session.start_java
    environment.pop("PYSPARK_SUBMIT_ARGS", None)  # its `--packages` would take the place of these
    command = [sys.executable, "-c", _RESOLVE, json.dumps(conf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    found = re.search(r"^JARS=(.*)$", done.stdout, re.MULTILINE)
    if not found:
        raise DbtRuntimeError(_why(done.stderr, packages, folder))
    ours = {_artifact(path.name) for path in (_spark_home() / "jars").glob("*.jar")} if beside_spark else set()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        staging = Path(scratch) / "jars"
        staging.mkdir()
        for url in found.group(1).split(","):
            source = Path(unquote(re.sub(r"^file:/*", "/", url)))
            # Ivy names files <group>_<artifact>-<version>.jar. What Spark ships must not be loaded twice.
            if _artifact(source.name.split("_", 1)[-1]) not in ours:
                shutil.copy(source, staging / source.name)
        os.rename(staging, folder)  # atomic: a process that is killed leaves no half of it


def _proxy_options() -> str:
    """Java's options for the proxy of HTTPS_PROXY and NO_PROXY, at which pip looks and Java does not."""
    given = getproxies()
    options = []
    for scheme in ("http", "https"):
        text = given.get(scheme, "")
        proxy = urlsplit(text if "://" in text else f"http://{text}")
        if proxy.hostname:
            port = proxy.port or (443 if proxy.scheme == "https" else 80)
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={port}"]
    direct = [name.strip().lstrip(".") for name in given.get("no", "").split(",") if name.strip()]
    if options and direct:
        names = ["localhost", "127.*", *(each for name in direct for each in (name, f"*.{name}"))]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(dict.fromkeys(names))}")
    return " ".join(options)


def _artifact(file_name: str) -> str:
    return re.sub(r"-\d[^_]*\.jar$", "", file_name)


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _why(stderr: str, packages: Sequence[str], folder: Path) -> str:
    wanted = ", ".join(packages)
    if "UNRESOLVED DEPENDENCIES" in stderr or "unresolved dependency" in stderr:
        return (
            f"The jars of {wanted} are not in {folder} and no Maven repository gave them. Run "
            "`python -m dbt.adapters.sparkdelta.jars` where Maven Central is reached and copy that folder, "
            "or name a mirror: in DEFAULT_ARTIFACT_REPOSITORY, or in the profile's server_side_parameters "
            "(`spark.jars.repositories: https://…`)."
        )
    return f"The jars of {wanted} could not be resolved, spark-submit said:\n{stderr.strip()[-2000:]}"


def main() -> None:
    """Fill the cache and print where the jars and the archive are. Extra Maven coordinates may be given as arguments."""
    from dbt.adapters.sparkdelta import class_archive

    try:
        paths = jar_paths(sys.argv[1:])
    except DbtRuntimeError as error:
        sys.exit(str(error.msg))
    print("\n".join(paths))
    try:
        print(class_archive.build(paths))
    except (DbtRuntimeError, OSError) as error:
        print(f"{error} Processes start without one, which takes some seconds longer.")


if __name__ == "__main__":
    main()
