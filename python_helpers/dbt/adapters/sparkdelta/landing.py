"""What stands in Kafka topics and in change tables of databases, landed in append-only Delta tables: each row once.

A landing is {feed, table (None where the feed's tables share it), format, location, kafka or jdbc (as the feed's settings have
them), topics or change_table}. docs/landing.md says why nothing comes twice and what can be lost.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

from dbt.adapters.base import available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import database, delta_log, listing, schema_registry, upkeep
from dbt.adapters.sparkdelta.columns import merge, quoted, sql_of, statements, want_mapping
from dbt.adapters.sparkdelta.database import JDBC_OPTIONS, Environment, name_driver, need_class, plain_type
from dbt.adapters.sparkdelta.in_session import InSession
from dbt.adapters.sparkdelta.java import innermost_cause, java_class, whole_text
from dbt.adapters.sparkdelta.row_messages import without_schema_id
from dbt.adapters.sparkdelta.session import LAST_COMMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

CHECKPOINTS = "_checkpoints"  # in the table's folder: Delta and its VACUUM look at no name that begins with `_`
SERIAL = "cdc_serial"
# The commits are the change sets: a table that is paused, or loaded anew, still finds those of a year.
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.appendOnly": "true",
    "delta.logRetentionDuration": "interval 365 days",
}
_WHERE_TO_BEGIN = ("startingtimestamp", "startingoffsetsbytimestamp")  # Spark heeds them before `startingOffsets`
KAFKA_COLUMNS = (
    "topic string, partition int, offset bigint, timestamp timestamp, key string, value string, headers map<string, string>"
)
PATIENCE = 20  # seconds for the first answer of the brokers
# Messages of transactions that were aborted are none.
KAFKA_OPTIONS = {"kafka.isolation.level": "read_committed", "failOnDataLoss": "true"}
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_$#]*")
_ADVICE = re.compile(r"If you don't want your streaming query to fail.*?(to false\.|$)", re.DOTALL)
# What Kafka's source says where offsets are gone: retention, a topic that was deleted, or made anew.
_GONE = re.compile(r"Some data may have been lost|some data may have been missed|KAFKA_DATA_LOSS|OffsetOutOfRange", re.IGNORECASE)


def land(session: SparkSession, landing: Mapping[str, Any], overlap: int | None = None) -> dict[str, Any]:
    """Land what is new. overlap: in place of the setting of that name.

    Returns {feed, table, rows, seconds} and, for a change table, late (rows below the highest serial that was there before),
    late_by (by so many serials at most), beyond (rows that the setting's window would not have seen) and overlap (the setting).
    Raises DbtRuntimeError that names feed and table, and holds no value of the environment.
    """
    started = time.monotonic()
    environment = Environment(_where(landing))
    try:
        if "kafka" in landing:
            told = _land_kafka(session, landing, environment)
        else:
            told = _land_jdbc(session, landing, overlap, environment)
    except Exception as error:
        raise DbtRuntimeError(environment.hidden(_told(landing, innermost_cause(error)))) from None
    return {"feed": landing["feed"], "table": landing.get("table"), **told, "seconds": time.monotonic() - started}


def _where(landing: Mapping[str, Any]) -> str:
    return f"feed {landing['feed']}" + (f", table {landing['table']}" if landing.get("table") else "")


def _told(landing: Mapping[str, Any], error: str) -> str:
    """What went wrong, behind the feed and table."""
    where = _where(landing)
    return error if error.startswith(where) else f"{where}: {error}"


# --------------------------------------------------------------------------------
# Kafka


def _land_kafka(session: SparkSession, landing: Mapping[str, Any], environment: Environment) -> dict[str, Any]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    kafka, location = landing["kafka"], landing["location"]
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{metadata.version('pyspark')}"
    need_class(session, "org.apache.spark.sql.kafka010.KafkaSourceProvider", package, "Kafka's source")
    options = {
        **KAFKA_OPTIONS,
        **environment.options("kafka.options", kafka.get("options") or {}),
        "kafka.bootstrap.servers": environment.filled("kafka.bootstrap_servers", kafka["bootstrap_servers"]),
        "includeHeaders": "true",
    }
    topics = landing.get("topics") or []
    options |= {"subscribe": ",".join(topics)} if topics else {"subscribePattern": landing["topic_pattern"]}
    partitions = _partitions(session, options, topics, landing.get("topic_pattern"))
    version, checkpoint = _version(session, location), _checkpoint(session, location, options)
    has_checkpoint = _exists(session, f"{checkpoint}/metadata")
    if version is None and has_checkpoint:
        raise DbtRuntimeError(
            f"there is no Delta table in {location}, and {checkpoint} says how far it was landed. Bring the table back, or "
            "remove that folder too: then all that Kafka still has is landed again."
        )
    if version is None:
        version = _create(session, location, cast("StructType", StructType.fromDDL(KAFKA_COLUMNS)))
    if not has_checkpoint:  # a new table, other topics, or the checkpoint was removed: the rows tell how far it was landed
        options["startingOffsets"] = begin = _offsets_after(session, location, partitions)
        if begin != "earliest":
            options = {name: value for name, value in options.items() if name.lower() not in _WHERE_TO_BEGIN}
    read = _reader(landing, environment)
    messages = session.readStream.format("kafka").options(**options).load()
    # of twice the same name the later one
    headers = (
        "aggregate(headers, cast(map() as map<string, string>), (all, one) -> "
        "map_concat(map_filter(all, (name, _) -> name <> one.key), map(one.key, cast(one.value as string))))"
    )
    rows = messages.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        *(read(messages[part]).alias(part) for part in ("key", "value")),
        F.expr(headers).alias("headers"),
    )
    query = rows.writeStream.format("delta").option("checkpointLocation", checkpoint).trigger(availableNow=True).start(location)
    try:
        query.awaitTermination()
    except Exception as error:
        raise DbtRuntimeError(_why_not_kafka(error)) from None
    finally:
        query.stop()
    return {"rows": _rows_since(session, location, version)}


def _reader(landing: Mapping[str, Any], environment: Environment) -> Callable[[Column], Column]:
    """What makes text of the key or value of a record."""
    if not (url := landing["kafka"].get("schema_registry")):
        return without_schema_id
    registry = schema_registry.Registry.named(url, environment)
    return partial(schema_registry.part_as_json, registry=registry, message_format=landing["format"])


def _checkpoint(session: SparkSession, location: str, options: Mapping[str, str]) -> str:
    """The folder of the stream's state. Each choice of topics has one of its own, and those of other choices go: a topic that is
    left out and comes back would begin anew in a state that was kept. One without its `metadata` goes too: Spark refuses it; and
    one without offsets, which died as it began: Spark would go on at the topics' ends."""
    chosen = json.dumps([",".join(sorted(options.get("subscribe", "").split(","))), options.get("subscribePattern")])
    name = hashlib.sha256(chosen.encode()).hexdigest()[:12]
    system, folder = listing.file_system(session, f"{location}/{CHECKPOINTS}")
    for found in system.listStatus(folder) if system.exists(folder) else []:
        path = found.getPath().toString()
        offsets = listing.file_system(session, f"{path}/offsets")[1]
        began = _exists(session, f"{path}/metadata") and system.exists(offsets) and system.listStatus(offsets)
        if found.getPath().getName() != name or not began:
            system.delete(found.getPath(), True)
    return f"{location}/{CHECKPOINTS}/{name}"


def _partitions(
    session: SparkSession, options: Mapping[str, str], topics: Sequence[str], pattern: str | None
) -> dict[str, list[int]]:
    """The partitions of the topics. Raises DbtRuntimeError after PATIENCE seconds without an answer, or if a topic is not there:
    the stream itself would ask for minutes."""
    of_client = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    seconds, servers = java_class(session, "java.util.concurrent.TimeUnit").SECONDS, options["kafka.bootstrap.servers"]
    client = None
    try:
        properties = java_class(session, "java.util.HashMap")(of_client)
        client = java_class(session, "org.apache.kafka.clients.admin.AdminClient").create(properties)
        there = list(client.listTopics().names().get(PATIENCE, seconds))
        names = list(topics) or [name for name in there if java_class(session, "java.util.regex.Pattern").matches(pattern, name)]
        if missing := sorted(set(names) - set(there)):
            hint = _near(missing[0], there)
            raise DbtRuntimeError(f"`kafka.topics` names {', '.join(missing)}, which {servers} does not have. {hint}")
        described = client.describeTopics(java_class(session, "java.util.ArrayList")(names))
        described = described.allTopicNames().get(PATIENCE, seconds)
        return {name: [each.partition() for each in described[name].partitions()] for name in names}
    except DbtRuntimeError:
        raise
    except Exception as error:
        said = f"told no topics within {PATIENCE} s: {innermost_cause(error)}"
        raise DbtRuntimeError(f"`kafka.bootstrap_servers` ({servers}) {said}") from None
    finally:
        if client is not None:
            client.close(java_class(session, "java.time.Duration").ZERO)


def _near(name: str, there: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, there, n=1)
    return f"Did you mean `{close[0]}`?" if close else f"Number of its topics: {len(there)}."


def _offsets_after(session: SparkSession, location: str, partitions: Mapping[str, Sequence[int]]) -> str:
    """`startingOffsets` after all that the table has: Kafka's source wants one for each partition that there is."""
    of_topic = _table(session, location).groupBy("topic", "partition").agg({"offset": "max"})
    landed = {(topic, partition): offset + 1 for topic, partition, offset in of_topic.collect()}
    offsets = {topic: {str(each): landed.get((topic, each), -2) for each in found} for topic, found in partitions.items()}
    return json.dumps(offsets) if landed else "earliest"


def _why_not_kafka(error: BaseException) -> str:
    if found := re.search(r"\bRegistryError: (.+)", whole_text(error)):
        return f"`{schema_registry.SETTING}`: {found[1].strip()}. Nothing of it was landed. Put it right and land again."
    cause = _ADVICE.sub("", innermost_cause(error)).strip()
    if _GONE.search(whole_text(error)):
        return (
            "Kafka no longer has messages that were not landed yet: its retention removed them, or a topic was deleted or made "
            f"anew. Nothing of them was landed. Kafka's source said: {cause}\n"
            "They are lost to this feed; land more often than the topics' retention. To go on with what is there, set "
            "`kafka: {options: {failOnDataLoss: false}}` for one landing, then take it out and compare with the source "
            "(`delta-cdc reconcile`). For a topic that was made anew, give the feed another `location`."
        )
    return cause


# --------------------------------------------------------------------------------
# Change tables of databases


def _land_jdbc(
    session: SparkSession, landing: Mapping[str, Any], overlap: int | None, environment: Environment
) -> dict[str, Any]:
    from pyspark.sql import functions as F

    jdbc, location = landing["jdbc"], landing["location"]
    serial, landed_as = jdbc["serial"], serial_column(jdbc["serial"])
    version = _version(session, location)
    highest = None
    if version is not None:
        name = _column_of(_table(session, location), landed_as)
        highest = _table(session, location).agg(F.max(F.col(quoted(name)))).collect()[0][0]
    lowest = None if highest is None else _lowest(highest, jdbc["overlap"] if overlap is None else overlap)

    columns = "t.*" if landed_as == serial else f"t.*, {serial} as {landed_as}"
    condition = f"{serial} is not null" if lowest is None else f"{serial} >= {lowest:f}"
    options = {
        **JDBC_OPTIONS,
        **environment.options("jdbc.options", jdbc.get("options") or {}),
        "url": environment.filled("jdbc.url", jdbc["url"]),
        "dbtable": f"(select {columns} from {landing['change_table']} t where {condition}) landed",
    }
    name_driver(session, options)
    read = database.read(session, options)
    # without the database's length of texts: Delta would hold a text to it
    read = read.select(*(F.col(quoted(field.name)).cast(plain_type(field)).alias(field.name) for field in read.schema.fields))
    name = _column_of(read, landed_as)
    _must_be_whole(read, name, serial)
    if version is None:
        version = _create(session, location, read.schema)
    else:
        read = _fitted(read, there := _table(session, location).schema, landing["change_table"])
        if _make_room(session, location, there, read.schema):  # the table has another version, by which landings are told apart
            return _land_jdbc(session, landing, overlap, environment)
        name = _column_of(read, name)
    of_row = F.col(quoted(name))
    if highest is not None:
        landed = _table(session, location).where(of_row >= F.lit(lowest)).select(of_row.alias("landed_serial"))
        read = read.join(landed, of_row == F.col("landed_serial"), "left_anti")
    return _append(session, location, version, read, of_row, highest, jdbc["overlap"])


def _lowest(highest: int | Decimal, overlap: int) -> Decimal:
    """Where the window begins, exactly: Python works decimals out to 28 digits, and a number of Oracle has up to 38."""
    return Decimal(math.floor(highest) - overlap)


def serial_column(serial: str) -> str:
    """The landed column of `jdbc.serial`: the one that it names, or that of an expression's value."""
    return serial if _COLUMN.fullmatch(serial) else SERIAL


def _append(
    session: SparkSession, location: str, version: int, new: DataFrame, serial: Column, highest: Any, overlap: int
) -> dict[str, Any]:
    """Append rows in one commit, none if there are no rows, and count those that are late."""
    from pyspark.sql import functions as F

    if highest is None:  # perhaps the whole of a large table: it is not kept
        if not new.isEmpty():
            _write(session, location, version, new)
        return {"rows": _rows_since(session, location, version), "late": 0, "late_by": 0, "beyond": 0, "overlap": overlap}
    below = F.lit(highest) - serial
    counts = {
        "rows": F.count(F.lit(1)),
        "late": F.count_if(below > 0),
        "late_by": F.max(F.greatest(below, F.lit(0))),
        "beyond": F.count_if(below > overlap),
    }
    new = new.cache()  # read from the database once, to be counted and written
    try:
        told = new.agg(*(count.alias(name) for name, count in counts.items())).collect()[0].asDict()
        if told["rows"]:
            _write(session, location, version, new)
    finally:
        new.unpersist()
    return {name: int(count or 0) for name, count in told.items()} | {"overlap": overlap}


def _write(session: SparkSession, location: str, version: int, new: DataFrame) -> None:
    """Of two landings that began at the same version one commits: to Delta they are the same transaction."""
    session.conf.unset(LAST_COMMIT)
    transaction = {"txnAppId": "land", "txnVersion": str(version + 1), "mergeSchema": "true"}
    with suppress(*upkeep.conflicts()):
        new.write.format("delta").mode("append").options(**transaction).save(location)
    if session.conf.get(LAST_COMMIT, None) is None:
        raise DbtRuntimeError("another landing was at work on the same table. Nothing is lost: land again.")


def _fitted(read: DataFrame, landed: StructType, change_table: str) -> DataFrame:
    """The rows with the landed columns as these are spelled and typed; new columns stay. Raises DbtRuntimeError for a column that
    holds more than where it was landed: Delta could widen it, and its change feed would not be read over that."""
    from pyspark.sql import functions as F

    there = {field.name.lower(): field for field in landed.fields}
    columns = []
    for field in read.schema.fields:
        column, kept = F.col(quoted(field.name)), there.get(field.name.lower(), field)
        merged = merge(kept.dataType, field.dataType, "")
        if merged.cast or merged.type != kept.dataType:
            was, now = kept.dataType.simpleString(), field.dataType.simpleString()
            raise DbtRuntimeError(
                f"column `{field.name}` of {change_table} is {now}, and was landed as {was}, which cannot hold it. Let a view "
                f"of the database cast it to {was} and name that view; or give the feed another `location`: all is landed anew."
            )
        columns.append(column.cast(kept.dataType).alias(kept.name))
    return read.select(*columns)


def _make_room(session: SparkSession, location: str, landed: StructType, read: StructType) -> bool:
    """Add the new columns, where Delta wants a feature for one that the table may not have, as for a timestamp without a zone or
    a blank in a name: `mergeSchema`, by which others come with their rows, switches none on. Whether it did."""
    there = {field.name.lower() for field in landed.fields}
    new = [f"{quoted(field.name)} {sql_of(field.dataType)}" for field in read.fields if field.name.lower() not in there]
    found = statements(f"delta.{quoted(location)}", new, [])
    if len(found) < 2:
        return False
    for sql in found:
        session.sql(sql)
    return True


def _column_of(frame: DataFrame, name: str) -> str:
    """The column as the table spells it: databases differ in what they make of case."""
    found = [column for column in frame.columns if column.lower() == name.lower()]
    if not found:
        raise DbtRuntimeError(f"`jdbc.serial` names `{name}`, which is no column. There are: {', '.join(frame.columns)}.")
    return found[0]


def _must_be_whole(frame: DataFrame, name: str, serial: str) -> None:
    from pyspark.sql.types import DecimalType, IntegralType

    kind = frame.schema[name].dataType
    if not isinstance(kind, (DecimalType, IntegralType)):
        raise DbtRuntimeError(
            f"`jdbc.serial` is {serial}, whose type is {kind.simpleString()}. It takes a whole number: a column, or an "
            "expression of the database's SQL that makes one (docs/landing.md has one for SQL Server's LSN)."
        )


# --------------------------------------------------------------------------------
# Tables


def _table(session: SparkSession, location: str) -> DataFrame:
    return session.read.format("delta").load(location)


def _version(session: SparkSession, location: str) -> int | None:
    """The newest version of the Delta table there; None if there is none."""
    version = int(delta_log.delta_log(session, _uri(session, location))[1].version())
    return version if version >= 0 else None


def _create(session: SparkSession, location: str, schema: StructType) -> int:
    """Make the table; returns its version."""
    from delta.tables import DeltaTable

    table = DeltaTable.createIfNotExists(session).location(location).addColumns(schema)
    mapped = want_mapping(sql_of(schema))
    for name, value in (PROPERTIES | ({"delta.columnMapping.mode": "name"} if mapped else {})).items():
        table = table.property(name, value)
    table.execute()
    return _version(session, location) or 0


def _rows_since(session: SparkSession, location: str, version: int) -> int:
    """The rows that commits after a version put in."""
    log = delta_log.open_log(session, _uri(session, location))
    commits = log.history(session, log.version - version) if log.version > version else []
    written = (commit for commit in commits if commit["operation"] in ("STREAMING UPDATE", "WRITE"))
    return sum(delta_log.metrics_of(commit).get("numOutputRows", 0) for commit in written)


def _uri(session: SparkSession, location: str) -> str:
    return str(listing.file_system(session, location)[1].toUri().toString())


def _exists(session: SparkSession, path: str) -> bool:
    system, hadoop_path = listing.file_system(session, path)
    return bool(system.exists(hadoop_path))


class LandingMixin(InSession):
    """`land`, `tables_of_database` and `serial_column` for macros."""

    @available.parse(lambda *_: {})
    def land(self, landing: Mapping[str, Any], overlap: int | None = None) -> dict[str, Any]:
        """`landing.land`; where it fails, {feed, table, error}: others go on. A relative `location` is in the project."""
        about = {"feed": landing["feed"], "table": landing.get("table")}
        try:
            session = self._begin(f"land {about}")
            location = listing.qualified_path(session, self._in_project(landing["location"]))
            return land(session, {**landing, "location": location}, overlap)
        except DbtRuntimeError as error:
            return {**about, "error": _told(landing, str(error.msg))}

    @available.parse(lambda *_: [])
    def tables_of_database(self, url: str, schema: str | None, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`database.tables_of`."""
        session = self._begin("tables of a database")
        return database.tables_of(session, url, schema, options)

    @available.parse(lambda *_: "")
    def serial_column(self, serial: str) -> str:
        return serial_column(serial)
