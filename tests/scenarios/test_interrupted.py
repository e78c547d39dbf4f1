"""Operations that end before one of their commits and are run again: nothing is committed twice, no number is left unused."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter
from tests import after
from tests.scenarios.project import UserProject, write_change_set

# test_operations has them where nobody interrupts; test_kills kills runs
pytestmark = pytest.mark.nightly

TABLES = ("person", "pet")


class Interrupted(Exception):
    pass


class Town:
    """A feed that mixes two tables, read through raw_town."""

    def __init__(self, project: UserProject) -> None:
        self.project, self.done, self.versions = project, project.done, project.versions
        self.folder = project.path / "town"
        self.folder.mkdir()
        self.configure()

    def configure(self, **settings: Any) -> None:
        cdc = {"format": "wal2json_v2", "location": str(self.folder), "change_set_order": "name"}
        columns = {"id": "int", "name": "string"}
        tables = [{"name": name, "cdc": {"keys": ["id"], **settings}, "columns": columns} for name in TABLES]
        self.project.configure("town", settings=cdc, tables=tables)
        self.project.generate()

    def run(self, name: str, *messages: tuple[str, int, int | None, str]) -> None:
        """Load a change set of (table, lsn, id, name), each an insert."""
        write_change_set(self.folder / f"{name}.jsonl", [
            {
                "action": "I", "schema": "public", "table": table, "lsn": f"0/{lsn:X}", "xid": lsn,
                "columns": [{"name": "id", "value": id}, {"name": "name", "value": value}],
                "timestamp": f"2026-01-01 00:00:{lsn:02d}+00",
            }
            for table, lsn, id, value in messages
        ])  # fmt: skip
        self.done("run")

    def interrupted(self, before: int, *arguments: object) -> None:
        """Run a command that ends before so manyth of its writes."""
        write, writes = SparkdeltaAdapter.execute_write, []

        def written(*given: Any) -> Any:
            writes.append(given)
            if len(writes) == before:
                raise Interrupted
            return write(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SparkdeltaAdapter, "execute_write", written)
            assert self.project.command(*arguments).exit_code != 0
        assert len(writes) == before

    def numbers(self, unit: str) -> list[int]:
        rows = self.project.rows(f"select batch_id from {{schema}}.cdc_change_sets where unit = '{unit}' order by 1")
        return [row["batch_id"] for row in rows]

    def revised(self, table: str) -> set[int]:
        staged = self.project.rows(f"select * from {{schema}}.stg_town__{table}")  # the column is not there before a revision
        return {row["_cdc_revised_in"] for row in staged if row.get("_cdc_revised_in") is not None}

    def final(self, table: str) -> dict[int | None, str]:
        return self.project.by_id(f"select id, name from {{schema}}.final_{table}")


@pytest.fixture(scope="module")
def town(project: UserProject) -> Town:
    town = Town(project)
    town.run("0001", ("person", 1, 1, "Ada"), ("pet", 2, 1, "Rex"), ("person", 3, None, "Bea"))
    return town


def test_S9_a_retraction_goes_on_with_its_number_until_all_tables_have_it(town: Town) -> None:
    town.run("0002", ("person", 11, 1, "bad"), ("pet", 12, 1, "bad"))
    before = town.versions()
    town.interrupted(2, "retract", "town/0002.jsonl")
    (number,) = town.numbers("retract")
    assert (town.revised("person"), town.revised("pet")) == (set(), set())
    town.interrupted(2, "retract", "town/0002.jsonl")
    assert (town.revised("person") | town.revised("pet"), town.numbers("retract")) == ({number}, [number])
    town.done("retract", "town/0002.jsonl")
    assert (town.revised("person"), town.revised("pet"), town.numbers("retract")) == ({number}, {number}, [number])
    # a column is added where there was no revision yet
    changed = {name: version - before[name] for name, version in town.versions().items() if version != before[name]}
    assert changed == {"cdc_change_sets": 1, "stg_town__person": 2, "stg_town__pet": 2}
    town.done("run")
    assert (town.final("person"), town.final("pet")) == ({1: "Ada"}, {1: "Rex"})
    # the same name in the ledger, and another change set
    town.run("0002", ("person", 21, 1, "worse"), ("pet", 22, 2, "Tom"))
    town.interrupted(
        2,
        "retract",
        town.project.rows(
            "select max(batch_id) as b from {schema}.cdc_change_sets where change_set like '%/0002.jsonl' and unit = 'file'"
        )[0]["b"],
    )
    assert len(town.numbers("retract")) == 2
    retracted = town.project.rows("select batch_id from {schema}.cdc_change_sets where status = 'retracted'")
    assert len(retracted) == 2
    town.done("retract", max(row["batch_id"] for row in retracted))
    town.done("run")
    assert len(town.numbers("retract")) == 2
    assert (town.final("person"), town.final("pet")) == ({1: "Ada"}, {1: "Rex"})


def test_Q3_a_replay_goes_on_with_its_number_unless_something_was_recorded_since(town: Town) -> None:
    town.configure(nullable_keys=["id"])
    town.done("run")
    town.interrupted(2, "replay")
    town.run("0003", ("pet", 31, 3, "Cat"))
    town.interrupted(2, "replay")
    unused, number = town.numbers("replay")
    assert unused < number
    town.done("replay")
    assert (town.numbers("replay"), number in town.revised("person")) == ([unused, number], True)
    town.done("run")
    assert town.final("person") == {1: "Ada", None: "Bea"}


@after(test_Q3_a_replay_goes_on_with_its_number_unless_something_was_recorded_since)
def test_R1_what_a_compaction_announced_is_announced_once(town: Town) -> None:
    town.run("0004", ("person", 32, 1, "Ada II"), ("person", 33, 1, "Ada III"))
    before = town.versions()
    town.interrupted(1, "compact", "person", "--before", "2026-01-01 00:00:33")
    assert town.versions() == {**before, "stg_town__person": before["stg_town__person"] + 1}
    town.done("compact", "person", "--before", "2026-01-01 00:00:33")
    assert town.versions() == {**before, "stg_town__person": before["stg_town__person"] + 2}
    said = town.done("compact", "person", "--before", "2026-01-01 00:00:33")
    assert "table town.person: 0 changes folded away" in said
    assert town.versions() == {**before, "stg_town__person": before["stg_town__person"] + 2}
    town.done("run")
    assert town.final("person") == {1: "Ada III", None: "Bea"}


@after(test_Q3_a_replay_goes_on_with_its_number_unless_something_was_recorded_since)
def test_R2_an_erasure_is_ended_with_its_number_and_once_only(town: Town) -> None:
    town.interrupted(2, "erase", "person", 1, "--yes")
    (number,) = town.numbers("erase")
    announced = town.versions()["stg_town__person"]
    town.interrupted(1, "erase", "person", 1, "--yes")
    assert town.versions()["stg_town__person"] == announced
    assert "changes erased, as batch" in town.done("erase", "person", 1, "--yes")
    assert (town.numbers("erase"), town.final("person")) == ([number], {None: "Bea"})
    before = town.versions()
    assert "erased before" in town.done("erase", "person", 1, "--yes")
    assert town.versions() == before
