"""What `delta-cdc land` says, and what it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import types as T
from rich.console import Console
from tests.projects import TABLE, project, source

from dbt.adapters.sparkdelta import database, listing
from dbt.adapters.sparkdelta.database import Environment
from dbt.adapters.sparkdelta.landing import LandingMixin, _lowest, _make_room
from delta_cdc import land
from delta_cdc.config_reader import load_project
from delta_cdc.errors import OperationError
from delta_cdc.warm_dbt import WarmDbt


def told(**landed: Any) -> list[str]:
    about = {"feed": "shop", "table": None, "rows": 0, "seconds": 1.24}
    return [line for line, _ in land.told(about | landed)]


def test_what_cannot_even_begin_is_told_with_its_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> str:
        raise DbtRuntimeError("The location s3a://lake cannot be read")

    class Adapter(LandingMixin):
        def __init__(self, method: str) -> None:
            self.config = SimpleNamespace(credentials=SimpleNamespace(method=method))
            handle = SimpleNamespace(begin=lambda description: None)
            self.connections = SimpleNamespace(get_thread_connection=lambda: SimpleNamespace(handle=handle))

    landing = {"feed": "shop", "table": "invoice", "location": "s3a://lake"}
    through_server = Adapter("thrift").land(landing)["error"]
    assert through_server.startswith("feed shop, table invoice: The profile has `method: thrift`, ")
    with pytest.raises(DbtRuntimeError, match="it wants `method: session`"):
        Adapter("thrift").tables_of_database("jdbc:derby:x", None, {})
    monkeypatch.setattr(listing, "qualified_path", unreadable)
    error = "feed shop, table invoice: The location s3a://lake cannot be read"
    assert Adapter("session").land(landing) == {"feed": "shop", "table": "invoice", "error": error}


def test_rows_and_how_late_they_came_are_told() -> None:
    assert told() == ["shop: 0 rows landed; 1.2 s."]
    assert told(table="invoice", rows=1234) == ["shop.invoice: 1,234 rows landed; 1.2 s."]
    (line,) = told(rows=5, late=2, late_by=5000, overlap=10000)
    assert line == "shop: 5 rows landed, 2 of them late, by up to 5,000 (`overlap` is 10,000); 1.2 s."
    _, warned = told(rows=5, late=2, late_by=5001, overlap=10000)
    assert warned == "shop: that is over half of `overlap`. What comes later than it is lost: raise it."
    _, missed = told(rows=5, late=2, late_by=12000, overlap=10000, beyond=1)
    assert missed.startswith("shop: 1 of them came later than `overlap` reaches")
    assert told(error="feed shop: no") == ["feed shop: no"]


def test_variables_are_put_in_and_taken_out_of_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment("feed shop")
    monkeypatch.setenv("ONE", "secret")
    monkeypatch.setenv("LONGER", "secret-more")
    monkeypatch.setenv("EMPTY", "")
    assert environment.filled("jdbc.url", "a ${ONE} ${LONGER}${EMPTY} $ONE {ONE}") == "a secret secret-more $ONE {ONE}"
    assert environment.options("jdbc.options", {"x": True, "n": 5}) == {"x": "true", "n": "5"}
    assert environment.hidden("no secret-more, no secret") == "no ${LONGER}, no ${ONE}"
    monkeypatch.delenv("ONE")
    with pytest.raises(DbtRuntimeError, match=r"feed shop: `jdbc\.url` names \$\{ONE\}, and the environment has no variable ONE"):
        environment.filled("jdbc.url", "${ONE}")


@pytest.mark.parametrize(
    ("highest", "lowest"),
    [(100, "95"), (3, "-2"), (Decimal("12345678901234567890123456789012345678"), "12345678901234567890123456789012345673"),
     (Decimal("7.0000000000"), "2"), (Decimal("-0.5"), "-6")],
)  # fmt: skip
def test_the_window_begins_where_it_is_said_to_whatever_the_digits_of_the_serial(highest: int | Decimal, lowest: str) -> None:
    assert f"{_lowest(highest, 5):f}" == lowest


def test_times_of_day_are_read_as_text() -> None:
    time_of_day = {"logical_time_type": True}
    frame, session = Mock(), Mock()
    read: list[dict[str, str]] = []

    def given(**options: str) -> Mock:
        read.append(options)
        return Mock(load=lambda: frame)

    session.read.format("jdbc").options = given
    frame.schema = T.StructType(
        [
            T.StructField("id", T.IntegerType()),
            T.StructField("began at", T.TimestampNTZType(), metadata=time_of_day),
            T.StructField("seen", T.TimestampNTZType()),
            T.StructField("told", T.StringType(), metadata=time_of_day),
        ]
    )
    database.read(session, {"dbtable": "t", "customSchema": "told string"})
    assert read == [
        {"dbtable": "t", "customSchema": "told string"},
        {"dbtable": "t", "customSchema": "`began at` string, told string"},
    ]
    frame.schema = T.StructType([T.StructField("seen", T.TimestampNTZType())])
    read.clear()
    assert database.read(session, {"dbtable": "t"}) is frame
    assert read == [{"dbtable": "t"}]


@pytest.mark.parametrize(("given", "read"), [
    ("jdbc:mariadb://db:3306/shop", "jdbc:mysql://db:3306/shop?permitMysqlScheme"),
    ("jdbc:mariadb:replication://a,b/shop?sslMode=trust", "jdbc:mysql:replication://a,b/shop?sslMode=trust&permitMysqlScheme"),
    ("jdbc:mysql://db/shop", "jdbc:mysql://db/shop"),
])  # fmt: skip
def test_mariadb_is_read_as_spark_reads_mysql(monkeypatch: pytest.MonkeyPatch, given: str, read: str) -> None:
    needed = Mock()
    monkeypatch.setattr(database, "need_class", needed)
    options = {"url": given}
    database.name_driver(Mock(), options)
    assert options["url"] == read
    assert options["driver"] == database.DRIVERS[given.split(":")[1]][0] == needed.call_args.args[1]


def test_E1_what_delta_wants_for_a_new_column_is_switched_on() -> None:
    def said(*new: T.StructField) -> list[str]:
        session, landed = Mock(), [T.StructField("id", T.LongType())]
        read = T.StructType([T.StructField("ID", T.LongType()), *new])
        made = _make_room(session, "file:/l/crm", T.StructType(landed), read)
        assert made == session.sql.called
        return [call.args[0] for call in session.sql.call_args_list]

    assert said() == said(T.StructField("note", T.StringType())) == []
    assert said(T.StructField("paid at", T.TimestampNTZType())) == [
        "alter table delta.`file:/l/crm` set tblproperties ('delta.feature.timestampNtz' = 'supported', "
        "'delta.columnMapping.mode' = 'name')",
        "alter table delta.`file:/l/crm` add columns (`paid at` timestamp_ntz)",
    ]


def test_only_feeds_that_are_landed_can_be(tmp_path: Path) -> None:
    feed = {"format": "rows", "location": "landing", "file_format": "delta"}
    kafka = {"kafka": {"bootstrap_servers": "k", "topics": ["t"]}}
    found = load_project(project(tmp_path, source(), source("events", feed=feed | kafka, tables={"event": TABLE})))
    assert land.landed_feeds(found) == ["events"]
    assert land.landed_feeds(found, ["events", "events"]) == ["events"]
    with pytest.raises(OperationError, match="feed shop: it has neither `kafka` nor `jdbc`, so nothing is to be landed"):
        land.landed_feeds(found, ["shop"])
    with pytest.raises(OperationError, match=r"feed event: it is not there, .* Did you mean `events`\?"):
        land.landed_feeds(found, ["event"])
    none = load_project(project(tmp_path, source()))
    with pytest.raises(OperationError, match=r"feed shop: it has neither .* No feed has `kafka` or `jdbc`\."):
        land.landed_feeds(none, ["shop"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["Runtime Error\n  the metastore is locked", "more"], "the metastore is locked"),
        ([], "dbt failed and did not say why; see logs/dbt.log"),
    ],
)
def test_why_nothing_could_be_landed_is_told(said: list[str], told: str) -> None:
    class Dbt(WarmDbt):
        def run(self, *_: Any, complain: Callable[[str], None], **__: Any) -> SimpleNamespace:
            for each in said:
                complain(each)
            return SimpleNamespace(success=False, exception=None)

    with pytest.raises(OperationError, match=f"^{told}"):
        land.land(Dbt(Path()), ["events"], Console(quiet=True))
