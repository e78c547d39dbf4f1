"""The loop one would write by hand: python pyspark_loop.py JOB [--create]

For each table, in a thread pool: read the new change files, append them to staging, keep the newest change a key, one
MERGE into final. JOB is a JSON file: spark (settings), landing (folder), threads, tables (name, partitioned, clustered,
deletion_vectors, settings of a session of its own).

--create: make the final tables first.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

CHANGES = "op string, seq bigint, id bigint, name string, amount decimal(12,2), day date"
FINAL = "id bigint, seq bigint, name string, amount decimal(12,2), day date"


def create(spark: SparkSession, table: dict[str, Any]) -> None:
    columns, partitions = FINAL, ""
    if table["partitioned"]:
        columns, partitions = f"{FINAL}, month string", "partitioned by (month)"
    elif table["clustered"]:
        partitions = "cluster by (id)"
    spark.sql(
        f"create table bench.final_{table['name']} ({columns}) using delta {partitions}"
        f" tblproperties ('delta.enableDeletionVectors' = '{str(table['deletion_vectors']).lower()}')"
    )


def load(spark: SparkSession, table: dict[str, Any], landing: Path) -> None:
    files = sorted((landing / table["name"]).glob("*.jsonl"))
    if not files:
        return
    changes = spark.read.schema(CHANGES).json([str(file) for file in files])
    changes.write.format("delta").mode("append").saveAsTable(f"bench.stg_{table['name']}")

    newest_first = Window.partitionBy("id").orderBy(f.desc("seq"))
    newest = changes.withColumn("place", f.row_number().over(newest_first)).where("place = 1")
    columns = ["id", "seq", "name", "amount", "day"]
    if table["partitioned"]:
        newest = newest.withColumn("month", f.date_format("day", "yyyy-MM"))
        columns.append("month")
    values: dict[str, Any] = {column: f"change.{column}" for column in columns}
    (
        DeltaTable.forName(spark, f"bench.final_{table['name']}")
        .alias("final")
        .merge(newest.alias("change"), "final.id = change.id")
        .whenMatchedDelete("change.op = 'D'")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert("change.op <> 'D'", values=values)
        .execute()
    )
    for file in files:
        file.rename(file.with_suffix(".done"))


def main(job_file: str, *options: str) -> None:
    job = json.loads(Path(job_file).read_text())
    spark = SparkSession.builder.config(map=job["spark"]).getOrCreate()

    def work(table: dict[str, Any]) -> None:
        session = spark.newSession() if table["settings"] else spark
        for key, value in table["settings"].items():
            session.conf.set(key, value)
        if "--create" in options:
            create(session, table)
        load(session, table, Path(job["landing"]))

    if "--create" in options:
        spark.sql("create database bench")
    with ThreadPoolExecutor(job["threads"]) as pool:
        list(pool.map(work, job["tables"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
