"""Spark settings for Delta on one machine. Every one of them gives way to `server_side_parameters`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dbt.include import sparkdelta

METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"

# Delta keeps the logs of ten thousand tables for an hour, each with the plans that read it and a session, 3 to 5 MB. With some
# 1,500 tables a heap of 5 GB was full, and collecting it took two thirds of the time. As many are kept as fill half of it or so.
KEPT_LOGS = "spark.databricks.delta.delta.log.cacheSize"
MEGABYTES_PER_LOG = 7

# Small tables spend their time in class loading and compilation: the first compiler alone and no generated
# code made a run of 48 tables a sixth shorter (2 cores); adaptive execution plans every stage of a small query
# anew (a third fewer Spark jobs without); every task unpacks its plan, and one that reads Delta's log generates code
# for it, so a stage is one task (a tenth less CPU). Large scans want the opposite: large_tables.
# A heap and a metaspace that start small are collected and enlarged time and again: a tenth of a cold run.
# The second compiler makes a process of one run slower (20 tables: 82 s of CPU in place of 97), and one that stays much faster.
# With Java's 240 MB for compiled code one that stays fills them in ten minutes, drops what it needs again, and compiles on.
# With more of them it drops all code that some two thousand of its sweeps did not find at work, which is nearly all of it.
SMALL_TABLES_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -XX:-UseCodeCacheFlushing -XX:MetaspaceSize=400m"
)
SMALL_TABLES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


process_stays = False  # see session.process_stays


def spark_settings(root: Path, overrides: Mapping[str, str], tuned_for: str = "small_tables") -> dict[str, str]:
    """All settings of the root session but the jars.

    root: absolute local folder of warehouse and metastore. overrides: the profile's server_side_parameters.
    tuned_for: small_tables or large_tables.
    """
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "dbt",
        "spark.driver.memory": "2g",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        METASTORE: f"jdbc:derby:;databaseName={root}/metastore;create=true",
        # else each process leaves an empty folder of its own in /tmp
        "spark.hadoop.hive.downloaded.resources.dir": str(root / "hive_resources"),
        "spark.sql.session.timeZone": "UTC",
        # else a text in SQL that holds ${env:NAME}, a row's key say, becomes what the environment says
        "spark.sql.variable.substitute": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # the list of files in each checksum file costs a read of the table's state per commit, and nothing reads it
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # each hash table, sort and broadcast takes a page at least: a run of small tables filled the memory with pages of 16 MB
        "spark.buffer.pageSize": "1m",
        # what reads a document of MongoDB's out of Debezium's message takes a hundred rounds, at which Spark gives up
        "spark.sql.analyzer.maxIterations": "1000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if tuned_for == "small_tables":
        settings.update(SMALL_TABLES)
    if METASTORE not in overrides:
        # Hive asks a locked Derby ten times, two seconds apart, before it says so
        settings["spark.hadoop.hive.hmshandler.retry.attempts"] = "1"
        settings["spark.hadoop.hive.hmshandler.retry.interval"] = "1ms"
    if overrides.get("spark.master", settings["spark.master"]).startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings.update(overrides)
    if memory := _megabytes(settings["spark.driver.memory"]):
        settings.setdefault(KEPT_LOGS, str(max(100, memory // MEGABYTES_PER_LOG)))
    settings["spark.driver.extraJavaOptions"] = _jvm_options(root, settings, tuned_for)
    return settings


def _megabytes(memory: str) -> int | None:
    """Of a size as Spark takes it for a heap (2g, 2048m, 2048); None: it is none, which Spark tells."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", memory.strip().lower())
    return None if found is None else int(int(found[1]) * {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}[found[2]])


def _jvm_options(root: Path, settings: Mapping[str, str], tuned_for: str) -> str:
    """Ours first, the profile's after them: of two equal flags the JVM takes the last."""
    given = settings.get("spark.driver.extraJavaOptions", "")
    ours = [
        # by which drivers of JDBC make a moment of a time without a zone, and Spark a time of it again
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={sparkdelta.PACKAGE_PATH}/log4j2.properties",
        f"-Dderby.system.home={root}",
        f"-Dderby.stream.error.file={root}/derby.log",
    ]
    if tuned_for == "small_tables":
        ours += [option for option in SMALL_TABLES_JVM.split() if not (process_stays and "Tiered" in option)]
        ours.append(f"-Xms{settings['spark.driver.memory']}")
    if re.search(r"-XX:\+Use\w+GC", given):  # two collectors stop the JVM from starting
        ours = [option for option in ours if not option.endswith("GC")]
    ours = [f'"{option}"' if " " in option else option for option in ours]
    return " ".join([*ours, given]).strip()
