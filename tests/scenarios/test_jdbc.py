"""Change tables of a real SQL database, landed: each row once, also one that commits late with a lower serial.

The database is Derby, which Spark brings along. It locks where others keep versions, so a serial is drawn from a sequence before
its row is written: what others see is the same.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import landing
from tests import after
from tests.scenarios.project import UserProject

URL = "jdbc:derby:memory:shop;create=true"
AUDIT = {"name": "invoice", "cdc": {"keys": ["id"]}, "columns": {"id": "int"}}


class Session:
    """A connection: one transaction until it commits."""

    def __init__(self, spark: Any) -> None:
        self._connection = spark._jvm.java.sql.DriverManager.getConnection(URL)
        self._connection.setAutoCommit(False)

    def run(self, *statements: str) -> Session:
        statement = self._connection.createStatement()
        for sql in statements:
            statement.execute(sql)
        statement.close()
        return self

    def serial(self) -> int:
        statement = self._connection.createStatement()
        result = statement.executeQuery("values next value for serials")
        result.next()
        found = int(result.getInt(1))
        statement.close()
        return found

    def commit(self) -> None:
        self._connection.commit()


class Shop:
    def __init__(self, project: UserProject) -> None:
        self.project, self.command = project, project.command
        self.spark = project.spark()
        self.one, self.other = Session(self.spark), Session(self.spark)
        self.one.run("create sequence serials start with 1").commit()

    def table(self, name: str, columns: str = "id int primary key, op varchar(10)") -> None:
        self.one.run(f"create table {name} ({columns})").commit()

    def insert(self, table: str, *serials: int, session: Session | None = None) -> None:
        session = session or self.one
        session.run(*(f"insert into {table} (id, op) values ({n}, 'I')" for n in serials)).commit()

    def place(self, table: str, overlap: int = 5, serial: str = "id", name: str | None = None) -> dict[str, Any]:
        """What the macro hands over for a change table."""
        location = f"file:{self.project.path}/landing/{name or table}"
        jdbc = {"url": URL, "table": table, "serial": serial, "overlap": overlap}
        return {"feed": "shop", "table": "invoice", "location": location, "change_table": table, "jdbc": jdbc}

    def land(self, place: dict[str, Any], overlap: int | None = None) -> tuple[int, int, int, int]:
        """(rows, late, late by, beyond the setting's window)"""
        told = landing.land(self.spark, place, overlap)
        return told["rows"], told["late"], told["late_by"], told["beyond"]

    def landed(self, place: dict[str, Any]) -> list[int]:
        return sorted(row[0] for row in self.spark.read.format("delta").load(place["location"]).select("id").collect())

    def version(self, place: dict[str, Any]) -> int | None:
        return landing._version(self.spark, place["location"])


@pytest.fixture(scope="module")
def shop(project: UserProject) -> Shop:
    return Shop(project)


def test_a_row_that_commits_late_with_a_lower_serial_is_landed_once(shop: Shop) -> None:
    shop.table("audit")
    place = shop.place("audit")
    shop.insert("audit", *(shop.one.serial() for _ in range(3)))
    assert shop.land(place) == (3, 0, 0, 0)
    slow = shop.one.serial()
    shop.insert("audit", shop.other.serial(), shop.other.serial(), session=shop.other)
    assert shop.land(place) == (2, 0, 0, 0)
    shop.insert("audit", slow)
    assert shop.land(place) == (1, 1, 2, 0)
    assert shop.landed(place) == [1, 2, 3, 4, 5, 6]
    version = shop.version(place)
    assert shop.land(place) == (0, 0, 0, 0)
    assert shop.version(place) == version


def test_a_row_later_than_the_overlap_is_found_by_a_wider_look_and_told(shop: Shop) -> None:
    shop.table("slow")
    place = shop.place("slow")
    shop.insert("slow", 1, 2, 20)
    assert shop.land(place)[0] == 3
    shop.insert("slow", 3, 16)
    assert shop.land(place) == (1, 1, 4, 0)
    assert shop.land(place) == (0, 0, 0, 0)
    assert shop.land(place, 1000) == (1, 1, 17, 1)
    assert shop.landed(place) == [1, 2, 3, 16, 20]


def test_a_serial_of_more_than_28_digits_has_its_window(shop: Shop) -> None:
    shop.table("long_serial", "id decimal(31,0) primary key, op varchar(10)")
    place, first = shop.place("long_serial"), 10**30
    shop.insert("long_serial", first + 990, first + 999)
    assert shop.land(place)[0] == 2
    shop.insert("long_serial", first + 996)
    assert shop.land(place) == (1, 1, 3, 0)
    assert shop.land(place) == (0, 0, 0, 0)
    assert shop.landed(place) == [first + 990, first + 996, first + 999]


def test_of_two_landings_at_once_one_commits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.table("twice")
    place = shop.place("twice")
    shop.insert("twice", 1)
    shop.land(place)
    shop.insert("twice", 2, 3)
    write = landing._write

    def after_another(*arguments: Any) -> None:
        monkeypatch.setattr(landing, "_write", write)
        assert shop.land(place)[0] == 2
        write(*arguments)

    monkeypatch.setattr(landing, "_write", after_another)
    with pytest.raises(DbtRuntimeError, match="feed shop, table invoice: another landing was at work on the same table"):
        shop.land(place)
    assert shop.landed(place) == [1, 2, 3]


def test_types_are_those_of_the_database_and_what_does_not_fit_is_told(shop: Shop) -> None:
    shop.table("typed", 'id bigint primary key, ts timestamp, code char(5), price decimal(10,2), "line no" int, data blob')
    values = "1, '2026-03-29 02:30:00.123456', 'a', 1.10, cast(x'00ff' as blob)"
    shop.one.run(f"insert into typed (id, ts, code, price, data) values ({values})").commit()
    place = shop.place("typed")
    shop.land(place)
    frame = shop.spark.read.format("delta").load(place["location"])
    assert frame.schema.simpleString() == (
        "struct<ID:bigint,TS:timestamp_ntz,CODE:string,PRICE:decimal(10,2),line no:int,DATA:binary>"
    )
    assert [str(value) for value in frame.selectExpr("cast(ts as string)", "price", "hex(data)").collect()[0]] == [
        "2026-03-29 02:30:00.123456",
        "1.10",
        "00FF",
    ]
    shop.one.run("alter table typed add column note varchar(2)", "insert into typed (id, note) values (2, 'x')").commit()
    assert shop.land(place)[0] == 1
    shop.one.run("alter table typed alter column note set data type varchar(30)").commit()
    shop.one.run("insert into typed (id, note) values (3, 'a longer text')").commit()
    assert shop.land(place)[0] == 1
    shop.one.run("alter table typed drop column price", "alter table typed add column price varchar(9)").commit()
    with pytest.raises(DbtRuntimeError, match="column `PRICE` of typed is string, and was landed as decimal\\(10,2\\)"):
        shop.land(place)


def test_E1_a_new_column_may_have_a_type_or_name_that_the_table_had_none_of(shop: Shop) -> None:
    shop.table("gaining")
    shop.insert("gaining", 1)
    place = shop.place("gaining")
    shop.land(place)
    shop.one.run("alter table gaining add column paid timestamp", 'alter table gaining add column "line no" int').commit()
    shop.one.run("insert into gaining values (2, 'I', '2026-03-29 02:30:00', 7)").commit()
    assert shop.land(place)[0] == 1
    frame = shop.spark.read.format("delta").load(place["location"])
    assert frame.schema.simpleString() == "struct<ID:int,OP:string,PAID:timestamp_ntz,line no:int>"
    assert shop.land(place)[0] == 0


def test_a_time_of_day_is_landed_as_its_text(shop: Shop) -> None:
    shop.table("roster", 'id int primary key, "began at" time, seen timestamp')
    shop.one.run("insert into roster values (1, '08:15:30', '2026-01-02 03:04:05'), (2, null, null)").commit()
    place = shop.place("roster")
    shop.land(place)
    frame = shop.spark.read.format("delta").load(place["location"])
    assert frame.schema.simpleString() == "struct<ID:int,began at:string,SEEN:timestamp_ntz>"
    assert [row[0] for row in frame.orderBy("id").select("`began at`").collect()] == ["08:15:30", None]
    typed = shop.place("roster", name="roster_typed")
    shop.land(typed | {"jdbc": typed["jdbc"] | {"options": {"customschema": "id bigint"}}})
    frame = shop.spark.read.format("delta").load(typed["location"])
    assert frame.schema.simpleString() == "struct<ID:bigint,began at:string,SEEN:timestamp_ntz>"


def test_a_serial_is_a_number_or_an_expression_that_makes_one(shop: Shop) -> None:
    shop.table("made", "id int primary key, op varchar(10)")
    shop.insert("made", 1, 2)
    place = shop.place("made", serial="cast(t.id as bigint) * 10", overlap=10)
    assert shop.land(place)[0] == 2
    shop.insert("made", 4)
    assert shop.land(place)[0] == 1
    shop.insert("made", 3)
    assert shop.land(place) == (1, 1, 10, 0)
    with pytest.raises(DbtRuntimeError, match=r"`jdbc\.serial` is op, whose type is string\. It takes a whole number"):
        shop.land(shop.place("made", serial="op", name="text"))
    with pytest.raises(DbtRuntimeError, match="Table/View 'NOPE' does not exist"):
        shop.land(shop.place("nope"))


def test_commands_land_each_table_and_hide_what_is_secret(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", "shop")
    monkeypatch.setenv("SHOP_SECRET", "s3cret")
    shop.table("ct_invoice")
    shop.table("odd_name")
    shop.insert("ct_invoice", 1, 2)
    shop.insert("odd_name", 1)
    jdbc = {"url": "jdbc:derby:memory:${SHOP_DATABASE}", "table": "ct_{table}", "serial": "id", "overlap": 10}
    feed = {"format": "oracle_cdc", "location": "landing/cli/{table}", "file_format": "delta", "jdbc": jdbc}
    shop.project.configure(
        "shop",
        settings=feed,
        tables=[
            AUDIT,
            {"name": "line", "cdc": {"keys": ["id"], "change_table": "odd_name"}, "columns": {"id": "int"}},
        ],
    )
    gone = jdbc | {"url": "jdbc:derby:memory:${SHOP_SECRET}", "table": "audit"}
    shop.project.configure(
        "gone",
        settings=feed | {"format": "trigger_audit", "location": "landing/gone", "jdbc": gone},
        tables=[
            {**AUDIT, "name": "other"},
        ],
    )
    first = shop.command("land")
    assert first.exit_code == 1
    lines = [line for line in first.output.splitlines() if line]
    assert [line.split(";")[0] for line in lines if not line.startswith("feed gone")] == [
        "shop.invoice: 2 rows landed",
        "shop.line: 1 row landed",
    ]
    assert "feed gone: " in first.output
    assert "'memory:${SHOP_SECRET}' not found" in first.output
    assert "s3cret" not in first.output + (shop.project.path / "logs" / "dbt.log").read_text()
    shop.insert("ct_invoice", 12, 14)
    assert shop.command("land", "shop").exit_code == 0
    shop.insert("ct_invoice", 3, 5, 9)
    near = shop.command("land", "shop").output
    assert "shop.invoice: 2 rows landed, 2 of them late, by up to 9 (`overlap` is 10); " in near
    assert "shop.invoice: that is over half of `overlap`. What comes later than it is lost: raise it." in near
    wide = shop.command("land", "shop", "--overlap", "1000").output
    assert "shop.invoice: 1 row landed, 1 of them late, by up to 11 (`overlap` is 10); " in wide
    assert "shop.invoice: 1 of them came later than `overlap` reaches" in wide


@after(test_commands_land_each_table_and_hide_what_is_secret)
def test_init_takes_tables_keys_and_types_of_a_database(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", "shop")
    shop.one.run(
        "create schema crm",
        'create table crm.line (line_no int not null, invoice bigint not null, "unit price" decimal(10,2), day date,'
        " note varchar(9), constraint line_pk primary key (invoice, line_no))",
        "create table crm.visit (seen timestamp, page char(3), began time)",
        "create table crm.document (id int primary key, body xml)",
    ).commit()
    database = ("--jdbc", "jdbc:derby:memory:${SHOP_DATABASE}")
    asked = ("init", "crm", "--format", "wal2json_v2", "--location", "s3a://bucket/crm", *database)
    gone = shop.command(*asked, "--schema", "CMR")
    assert gone.exit_code == 1
    assert "--jdbc: there is no table in schema CMR. There are: " in gone.output
    assert "CRM" in gone.output
    done = shop.command(*asked, "--schema", "CRM")
    assert "wrote models/crm/_sources.yml: 3 tables" in done.output, done.output
    written = (shop.project.path / "models" / "crm" / "_sources.yml").read_text()
    todo = [line for line in written.splitlines() if line.startswith("#")]
    assert "# The database's constraints tell no key of: VISIT. Set `keys`, or `keyless`." in todo
    assert todo[-1] == "# No type was told of 2 columns, listed as string: CRM.DOCUMENT.ID, CRM.DOCUMENT.BODY"
    (source,) = yaml.safe_load(written)["sources"]
    assert source["config"]["meta"]["cdc"] == {"format": "wal2json_v2", "location": "s3a://bucket/crm"}
    types = {t["name"]: {c["name"]: c["data_type"] for c in t["columns"]} for t in source["tables"]}
    assert {t["name"]: (t["config"]["meta"]["cdc"], types[t["name"]]) for t in source["tables"]} == {
        "DOCUMENT": ({"keys": ["ID"]}, {"ID": "string", "BODY": "string"}),
        "LINE": (
            {"keys": ["INVOICE", "LINE_NO"], "final_name": "final_crm_LINE"},
            {  # the feed shop has a final_line
                "LINE_NO": "int",
                "INVOICE": "bigint",
                "unit price": "decimal(10,2)",
                "DAY": "date",
                "NOTE": "string",
            },
        ),
        "VISIT": ({}, {"SEEN": "timestamp_ntz", "PAGE": "string", "BEGAN": "string"}),
    }
    assert "feed crm, table VISIT: `keys`" in done.output


@pytest.mark.nightly  # reconcile: test_commands; reading a database: the tests above
def test_reconcile_looks_into_a_database(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", "shop")
    folder = shop.project.path / "landing" / "stock"
    folder.mkdir(parents=True)
    (folder / "1.jsonl").write_text('{"id": 1, "op": "I", "n": 5}\n{"id": 2, "op": "I", "n": 7}\n')
    item = {"name": "item", "cdc": {"keys": ["id"]}, "columns": {"id": "int", "n": "decimal(9,2)", "op": "string"}}
    rows = {"format": "rows", "location": "landing/{table}", "operation": "op", "sequence_by": ["id"]}
    shop.project.configure("stock", settings=rows | {"location": "landing/stock"}, tables=[item])
    shop.project.generate()
    shop.project.dbt("run", "--select", "cdc_change_sets", "stg_stock__item+", quiet=True)
    shop.one.run("create table item (id int, n decimal(11,3))", "insert into item values (1, 5.000), (2, 7.001)").commit()
    asked = ("reconcile", "item", "--against", "jdbc:derby:memory:${SHOP_DATABASE}")
    told = shop.command(*asked)
    assert told.exit_code == 0, told.output
    shop.one.run("update item set n = 8 where id = 2").commit()
    assert "  id = 2: n = 7.00, there 8.00\n" in shop.command(*asked, "--option", "fetchsize=10").output
    assert "nope cannot be read: " in shop.command(*asked, "--table", "nope").output
    assert "password holds a secret" in shop.command(*asked, "--option", "password=hunter2").output
