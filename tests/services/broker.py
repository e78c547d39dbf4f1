"""A Kafka broker of one's own on this machine: one node that is its own controller, its jars from Maven, no container."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

from dbt.adapters.sparkdelta import jars
from tests import free_ports

# One Spark for all tests of a process: they all want these.
SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": "",  # a few runs: the second compiler does not pay
    "spark.jars.packages": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{metadata.version('pyspark')}",
}
# of the version of the client that Spark's source brings
PACKAGES = ["org.apache.kafka:kafka_2.13:3.9.2", "org.slf4j:slf4j-simple:1.7.36"]

CLUSTER = "ZGVsdGFfY2RjX2Jyb2tlcg"  # 16 bytes in base64; a random one may begin with the - of an option


class Broker:
    """address: its `bootstrap_servers`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="delta_cdc_kafka_"))
        self.process: subprocess.Popen[bytes] | None = None
        port, controller = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
        }
        self._properties = self.folder / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def start(self) -> None:
        done = subprocess.run(
            [*_java(), "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self._properties], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"Kafka's storage could not be made:\n{done.stdout}\n{done.stderr}")
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen([*_java(), "kafka.Kafka", self._properties], stdout=log, stderr=log, cwd=self.folder)
        host, port = self.address.split(":")
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("Kafka did not start:\n" + (self.folder / "log").read_text()[-3000:]) from None
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process:
            self.process.kill()  # nobody wants the data
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


def _java() -> list[str]:
    folder = jars.cache_folder(PACKAGES)
    if not folder.is_dir():
        jars.resolve(PACKAGES, folder, {}, beside_spark=False)
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    # which Spark's Ivy leaves out
    scala = next((Path(_find_spark_home()) / "jars").glob("scala-library-*.jar"))
    # a process whose parent is killed ends too
    bound = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [*bound, java, "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{folder}/*{os.pathsep}{scala}"]


class Topics:
    """What a test does with a broker's topics, by Kafka's client in Spark's JVM."""

    def __init__(self, spark: Any, broker: Broker) -> None:
        self._spark = spark
        self._address = broker.address
        self._jvm = spark._jvm
        self._package = self._jvm.org.apache.kafka.clients.admin
        self._admin = self._package.AdminClient.create(self._jvm.java.util.HashMap({"bootstrap.servers": broker.address}))

    def create(self, name: str, partitions: int = 1) -> None:
        self._admin.createTopics([self._package.NewTopic(name, partitions, 1)]).all().get()

    def produce(
        self, topic: str, *messages: tuple[str | bytes | None, str | bytes | None, list[tuple[str, bytes | None]] | None, int]
    ) -> None:
        """messages: (key, value, headers, partition)."""
        schema = "key binary, value binary, headers array<struct<key: string, value: binary>>, partition int"
        rows = [(_bytes(key), _bytes(value), headers, partition) for key, value, headers, partition in messages]
        frame = self._spark.createDataFrame(rows, schema).coalesce(1)
        options = {"kafka.bootstrap.servers": self._address, "topic": topic, "includeHeaders": "true"}
        frame.write.format("kafka").options(**options).save()

    def drop_before(self, topic: str, partition: int, offset: int) -> None:
        """What the topic's retention does."""
        # by reflection: py4j does not find a static method that a method of the object hides
        gateway, java = self._spark.sparkContext._gateway, self._jvm.java.lang
        types, values = gateway.new_array(java.Class, 1), gateway.new_array(java.Object, 1)
        types[0], values[0] = java.Long.TYPE, java.Long.valueOf(offset)
        loader = java.Thread.currentThread().getContextClassLoader()
        before = loader.loadClass("org.apache.kafka.clients.admin.RecordsToDelete").getMethod("beforeOffset", types)
        place = self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        self._admin.deleteRecords({place: before.invoke(None, values)}).all().get()


def _bytes(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part
