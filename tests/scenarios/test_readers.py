"""What other engines read of the tables that the project writes: Spark's rows or an error; where not, docs/reading.md warns.

One project, a table for each feature of Delta that a reader has to know; three runs, of which the second updates and deletes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
import yaml
from deltalake import DeltaTable, QueryBuilder

from tests.scenarios.project import UserProject, write_change_set

Rows = list[dict[str, Any]]
BASE = {"op": "string", "seq": "int", "id": "bigint", "n": "int"}
VALUES = {
    "name": "string", "price": "decimal(12,3)", "day": "date", "at": "timestamp", "ratio": "double", "flag": "boolean",
    "tags": "array<string>", "place": "struct<street:string,floor:int>",
}  # fmt: skip
ODD = {"net price (EUR)": "decimal(12,2)"}  # a name that Parquet does not take: column mapping
# table: settings, columns beside BASE
TABLES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "plain": ({"deletion_vectors": False, "partition_by": ["n % 2 as part"]}, VALUES),
    "marked": ({"deletion_vectors": True, "history": "table", "cluster_by": ["id"]}, {**VALUES, "local": "timestamp_ntz"}),
    "mapped": ({"deletion_vectors": False}, ODD),
    "widened": ({}, {}),
    "fed": ({}, {}),
    "fed_parts": ({"partition_by": ["n % 2 as part"], "apply": "replace_partitions"}, {}),
}
# What the tables of a source table ask of a reader, where the answers differ between readers. The rest ask for nothing, for
# deletionVectors or for timestampNtz: all read them.
REFUSED = {
    "polars": {"mapped", "widened"},
    "delta-rs": {"widened"},
    "duckdb through delta-rs": {"widened"},
}


class Readers:
    def __init__(self, project: UserProject) -> None:
        self.project = project
        self.folder = project.path / "landing"
        self.sequence = 0
        self.wide = False
        for name in TABLES:
            (self.folder / name).mkdir(parents=True)
        # a setting that the generated models do not have stands in dbt_project.yml
        file = project.path / "dbt_project.yml"
        fed = {"+tblproperties": {"delta.enableChangeDataFeed": "true"}}
        models = {"user_project": {"readers": {"final": dict.fromkeys(("final_fed", "final_fed_parts", "final_plain"), fed)}}}
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "models": models}))
        self.configure()

    def configure(self) -> None:
        base = {"keys": ["id"], "sequence_by": ["seq"], "operation": "op", "except_columns": ["op", "seq"]}
        tables = []
        for name, (settings, columns) in TABLES.items():
            columns = {**BASE, **columns, **({"n": "bigint"} if name == "widened" and self.wide else {})}
            tables.append({"name": name, "cdc": {**base, **settings}, "columns": columns})
        feed = {"format": "rows", "location": f"{self.folder}/{{table}}", "change_set_order": "name"}
        self.project.configure("readers", settings=feed, tables=tables)
        self.project.generate()

    def row(self, table: str, id: int, n: int, op: str = "U") -> dict[str, Any]:
        self.sequence += 1
        out: dict[str, Any] = {"op": op, "seq": self.sequence, "id": id, "n": n}
        if "name" in TABLES[table][1]:
            out |= {
                "name": f"Zoë {id}", "price": f"{id}.125", "day": "0999-12-31" if id == 1 else f"2026-01-{id:02}",
                "at": f"2026-03-29 01:30:00.{id:06}", "ratio": id / 3, "flag": id % 2 == 0, "tags": ["a", None, "ü"],
                "place": {"street": f"Hauptstraße {id}", "floor": None}, "local": f"2026-03-29 02:30:00.{id:06}",
            }  # fmt: skip
        return {**out, "net price (EUR)": f"{id}.25"} if "net price (EUR)" in TABLES[table][1] else out

    def deliver(self, change_set: str, *arguments: str, **rows: Rows) -> None:
        for table, each in rows.items():
            write_change_set(self.folder / table / f"{change_set}.jsonl", each)
        self.project.dbt("run", *arguments, quiet=True)

    def paths(self) -> dict[str, Path]:
        """The Delta tables of the project, the control tables too, and where they are."""
        shown = self.project.rows("show views in {schema}")
        views = {row["viewName"] for row in shown}
        names = [row["tableName"] for row in self.project.rows("show tables in {schema}") if not row["isTemporary"]]
        return {name: Path(self.detail(name)["location"].removeprefix("file:")) for name in names if name not in views}

    def detail(self, table: str) -> dict[str, Any]:
        return self.project.rows(f"describe detail {{schema}}.{table}")[0]

    def rows(self, table: str) -> Rows:
        from pyspark.sql.types import TimestampType

        frame = self.project.spark().table(f"{self.project.schema}.{table}")
        moments = [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        # pyspark gives these in the machine's time zone and does not say so
        return [{**row, **{name: row[name].astimezone(timezone.utc) for name in moments if row[name]}} for row in rows]

    def changes(self, table: str) -> list[tuple[Any, ...]]:
        """Its last commit, as the change data feed tells it."""
        version = self.project.rows(f"describe history {{schema}}.{table} limit 1")[0]["version"]
        feed = f"table_changes('{{schema}}.{table}', {version}, {version})"
        return sorted(tuple(row.values()) for row in self.project.rows(f"select _change_type, id, n from {feed}"))

    def asks(self, table: str) -> str:
        """What of it readers answer differently."""
        detail = self.detail(table)
        if "typeWidening" in detail["tableFeatures"]:
            return "widened"
        if "columnMapping" in detail["tableFeatures"]:
            return "mapped"
        return ""


def arrow(path: Path) -> Any:
    table = DeltaTable(str(path))
    return QueryBuilder().register("it", table).execute("select * from it").read_all()


def by_delta_rs(path: Path) -> Rows:
    table = arrow(path)
    columns = {name: [value.as_py() for value in table.column(name)] for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def by_polars(path: Path) -> Rows:
    return list(polars.scan_delta(str(path)).collect().rows(named=True))


def duckdb_rows(query: str, extension: Path | None = None, **objects: Any) -> Rows:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.execute("set timezone = 'UTC'")
        if extension is not None:
            connection.execute(f"load '{extension}'")
        for name, each in objects.items():
            connection.register(name, each)
        found = connection.execute(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def by_duckdb(path: Path) -> Rows:
    try:
        files = metadata.files("duckdb-ext-delta") or []
    except metadata.PackageNotFoundError:
        pytest.skip("DuckDB's delta extension comes from its server or from the package duckdb-ext-delta, which is not installed")
    extension = next(Path(str(file.locate())) for file in files if file.suffix == ".duckdb_extension")
    return duckdb_rows(f"select * from delta_scan('{path}')", extension)


def by_duckdb_through_delta_rs(path: Path) -> Rows:
    return duckdb_rows("select * from it", it=arrow(path))


READERS: Mapping[str, Callable[[Path], Rows]] = {
    "delta-rs": by_delta_rs,
    "polars": by_polars,
    "duckdb": by_duckdb,
    "duckdb through delta-rs": by_duckdb_through_delta_rs,
}


def told(value: Any) -> Any:
    """A value as all readers have it: they differ in how they call a time zone, and in what a map is in Python."""
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, tuple) and len(each) == 2 for each in value):
            return {name: told(each) for name, each in value}
        if value and all(isinstance(each, dict) and set(each) == {"key", "value"} for each in value):
            return {each["key"]: told(each["value"]) for each in value}
        return [told(each) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    return value


def outcome(read: Callable[[Path], Rows], path: Path, rows: Rows) -> str:
    def in_order(found: Rows) -> list[str]:
        return sorted(repr(sorted(told(row).items())) for row in found)

    try:
        found = read(path)
    except Exception as error:
        # an error counts only where the reader says that it does not know, or does not accept, the table's features
        return "refused" if any(words in str(error) for words in ("features", "Invalid protocol")) else repr(error)
    print(*(set(in_order(found)) ^ set(in_order(rows))), sep="\n")  # shown where the test fails
    return "" if in_order(found) == in_order(rows) else "wrong rows"


@pytest.fixture(scope="module")
def tables(project: UserProject) -> Readers:
    found = Readers(project)
    found.deliver("1", **{name: [found.row(name, id, id, "I") for id in range(1, 9)] for name in TABLES})
    found.wide = True
    found.configure()
    second = {name: [found.row(name, 2, 20), found.row(name, 3, 3, "D"), found.row(name, 9, 9, "I")] for name in TABLES}
    second["widened"].append(found.row("widened", 10, 5_000_000_000, "I"))
    # an update that says what final holds already, alone in its partition and beside one that does not
    second["fed"].append(found.row("fed", 5, 5))
    second["fed_parts"] = [found.row("fed_parts", 2, 20), found.row("fed_parts", 5, 5)]
    found.deliver("2", **second)
    return found


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_has_the_rows_that_spark_has_or_an_error(tables: Readers, reader: str) -> None:
    paths = tables.paths()
    assert len(paths) == 2 * len(TABLES) + 3  # staging and final of each, a history, ledger, cdc_runs
    expected, found = {}, {}
    for name, path in paths.items():
        asks = tables.asks(name)
        expected[name] = "refused" if asks in REFUSED.get(reader, ()) else ""
        found[name] = outcome(READERS[reader], path, tables.rows(name))
    assert found == expected


def test_the_tables_hold_what_readers_may_stumble_over(tables: Readers) -> None:
    features = {name: set(tables.detail(name)["tableFeatures"]) for name in tables.paths()}
    for name in ("final_marked", "hist_readers__marked"):
        assert "deletionVectors" in features[name]
        # a reader that took the files as they are would have the rows that were replaced and deleted
        files = DeltaTable(str(tables.paths()[name])).get_add_actions(flatten=True)
        in_files = sum(value.as_py() for value in files["num_records"])
        assert in_files > len(tables.rows(name)), name
    assert {"clustering", "timestampNtz"} < features["final_marked"]
    assert not {"deletionVectors", "typeWidening"} & features["final_plain"]
    asks = {name: tables.asks(name) for name in features if tables.asks(name)}
    assert asks == {
        "stg_readers__mapped": "mapped",
        "final_mapped": "mapped",
        "stg_readers__widened": "widened",
        "final_widened": "widened",
    }


def test_A3_the_change_feed_of_final_has_what_changed_and_no_more(tables: Readers) -> None:
    changed = [("delete", 3, 3), ("insert", 9, 9), ("update_postimage", 2, 20), ("update_preimage", 2, 2)]
    assert tables.changes("final_fed") == changed
    table = DeltaTable(str(tables.paths()["final_fed"]))
    feed = table.load_cdf(starting_version=table.version()).read_all()
    columns = [[value.as_py() for value in feed.column(name)] for name in ("_change_type", "id", "n")]
    assert sorted(zip(*columns, strict=True)) == changed


def test_properties_of_a_generated_model_stand_before_those_of_the_project(tables: Readers) -> None:
    assert tables.detail("final_plain")["properties"] == {"delta.enableDeletionVectors": "false"}
    assert "delta.enableChangeDataFeed" in tables.detail("final_fed")["properties"]


def test_the_change_feed_of_rewritten_partitions_has_pairs_of_equal_rows(tables: Readers) -> None:
    changes = tables.changes("final_fed_parts")
    gone = {row[1:] for row in changes if row[0] == "delete"}
    come = {row[1:] for row in changes if row[0] == "insert"}
    assert {row[0] for row in changes} == {"delete", "insert"}
    # the other partition, of which a row was told once more as it is, was not rewritten
    assert gone == {(2, 2), (4, 4), (6, 6), (8, 8)}
    assert (gone - come, come - gone) == ({(2, 2)}, {(2, 20)})


def test_A3_a_change_set_of_equal_rows_leaves_the_change_feed_empty(tables: Readers) -> None:
    before = tables.rows("final_fed")
    rows = [tables.row("fed", 2, 20), tables.row("fed", 3, 3, "D"), tables.row("fed", 8, 8)]
    tables.deliver("3", "--select", "+final_fed", fed=rows)
    assert len(tables.rows("stg_readers__fed")) == 8 + 4 + 3  # it was loaded
    since = "select _commit_version, count(*) as n from table_changes('{schema}.final_fed', 0) group by 1 order by 1"
    versions = [row["n"] for row in tables.project.rows(since)]
    assert versions == [8, 4]  # those of the first run and the second
    assert sorted(map(repr, tables.rows("final_fed"))) == sorted(map(repr, before))


def test_a_rebuilt_final_goes_on_with_the_properties_of_its_configuration(tables: Readers) -> None:
    tables.project.dbt("run", "--full-refresh", "--select", "final_fed", quiet=True)
    assert tables.detail("final_fed")["properties"]["delta.enableChangeDataFeed"] == "true"
    rows = sorted((row["id"], row["n"]) for row in tables.rows("final_fed"))
    changes = tables.changes("final_fed")
    assert [row[1:] for row in changes if row[0] == "insert"] == rows
    assert [row[1:] for row in changes if row[0] != "insert"] == rows, changes


@pytest.mark.nightly  # Delta's own commands, as docs/reading.md names them
@pytest.mark.parametrize("reader", READERS)
def test_what_a_reader_does_not_know_can_be_taken_away(tables: Readers, reader: str) -> None:
    # the ways that docs/reading.md tells; dropped once, for all readers
    spark, schema = tables.project.spark(), tables.project.schema
    for table in ("final_widened", "stg_readers__widened"):
        if tables.asks(table):
            spark.sql(f"alter table {schema}.{table} drop feature typeWidening")
    if 11 not in {row["id"] for row in tables.rows("final_widened")}:  # the next run leaves it so
        rows = [tables.row("widened", 11, 6_000_000_000, "I"), tables.row("widened", 1, 1, "D")]
        tables.deliver("4", "--select", "+final_widened", widened=rows)
    if "deletionVectors" in tables.detail("final_marked")["tableFeatures"]:
        spark.sql(f"alter table {schema}.final_marked drop feature deletionVectors")
        spark.sql(f"alter table {schema}.final_marked cluster by none")
    paths = tables.paths()
    assert "deletionVectors" not in tables.detail("final_marked")["tableFeatures"]
    assert tables.detail("final_marked")["clusteringColumns"] == []
    assert {row["n"] for row in tables.rows("final_widened")} >= {5_000_000_000, 6_000_000_000}
    expected = dict.fromkeys(("final_widened", "stg_readers__widened", "final_marked"), "")
    assert {name: outcome(READERS[reader], paths[name], tables.rows(name)) for name in expected} == expected
