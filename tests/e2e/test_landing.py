"""Clients write to a real PostgreSQL whose triggers fill an audit table, which is landed meanwhile: each row of it, once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.sparkdelta import landing
from tests.e2e.capture import Audit
from tests.e2e.postgres import JDBC_DRIVER, Postgres, running
from tests.e2e.source import CLIENTS, Source

pytestmark = [pytest.mark.spark]
SECONDS = float(os.environ.get("DELTA_CDC_E2E_SECONDS", "60"))
SPARK_SETTINGS = {"spark.master": "local[2]", "spark.jars.packages": JDBC_DRIVER}
TABLE = "audit.record_version"
# the second asks the server what is complete: docs/landing.md
COMPLETE = (
    f"(select a.*, a.transaction_id::text::bigint as xid from {TABLE} a"
    " where a.transaction_id < pg_snapshot_xmin(pg_current_snapshot()))"
)
WAYS = {"overlap": (TABLE, "id", 10_000), "complete": (COMPLETE, "xid", 0)}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    yield from running("postgresql-15")  # wal2json is not needed


@pytest.mark.timeout(1800)
def test_every_row_of_the_audit_table_is_landed_once(server: Postgres, lake: Path, tmp_path: Path, capsys: Any) -> None:
    from dbt.adapters.sparkdelta.session import root_session

    spark = root_session(root=lake, overrides=SPARK_SETTINGS)
    source = Source(server, "landed")
    Audit(source, tmp_path / "landing")
    url = f"jdbc:postgresql://127.0.0.1:{server.environment['PGPORT']}/landed"
    server.psql("landed", "create role reader login superuser password 'reader'")
    options = {"user": "reader", "password": "reader"}
    places = {
        way: {
            "feed": "shop",
            "table": way,
            "location": f"file:{tmp_path}/landed/{way}",
            "change_table": table,
            "jdbc": {"url": url, "table": table, "serial": serial, "overlap": overlap, "options": options},
        }
        for way, (table, serial, overlap) in WAYS.items()
    }
    told: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}

    def land() -> None:
        for way, place in places.items():
            told[way].append(landing.land(spark, place))

    source.seed()
    land()
    source.writing.set()
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(source.write, client, tmp_path / f"client-{client}") for client in range(CLIENTS)]
        until = time.monotonic() + SECONDS
        try:
            while time.monotonic() < until or len(told["overlap"]) < 10:
                land()
        finally:
            source.writing.clear()
        for client in clients:
            client.result()
    land()

    columns = "id, op, table_name, md5(record::text), md5(old_record::text)"
    there = source.sql(f"select {columns} from {TABLE} order by id").split("\n")[:-1]
    for way, place in places.items():
        frame = spark.read.format("delta").load(place["location"])
        text = "concat_ws('|', id, op, table_name, coalesce(md5(record), ''), coalesce(md5(old_record), '')) as text"
        assert [row.text for row in frame.orderBy("id").selectExpr(text).collect()] == there, way
    late, times = sum(each["late"] for each in told["overlap"]), len(told["overlap"])
    by = max(each["late_by"] for each in told["overlap"])
    with capsys.disabled():
        print(f"\n{len(there):,} rows in {times} landings, {late:,} of them late, by up to {by:,} serials")
    assert late > 0
    assert [each["late"] for each in told["complete"]] == [0] * times
    land()
    assert [each[-1]["rows"] for each in told.values()] == [0, 0]
