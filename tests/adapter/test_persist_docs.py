"""Comments, constraints and table properties: written when they differ, not at every run."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

MODEL = """{{ config(materialized='incremental', persist_docs={'relation': true, 'columns': true},
  tblproperties={'delta.logRetentionDuration': 'interval 7 days'}, liquid_clustered_by='id') }}
select 1 as id, 'x' as `the.word`
"""
SEEN = """{{ config(materialized='view', persist_docs={'relation': true, 'columns': true}) }}
select 1 as id, 'x' as `the.word`, 2 as other
"""
PARQUET = """{{ config(materialized='table', file_format='parquet', persist_docs={'relation': true, 'columns': true}) }}
select 1 as id, 2 as n
"""
CHECKED = "{{ config(materialized='table') }} select {{ var('id', '1') }} as id"
YML = """
models:
  - name: told
    description: "It's {{ var('words', 'a table') }}"
    columns:
      - {name: id, description: "the key, it's"}
      - {name: the.word, description: 'back\\slash'}
  - name: seen
    columns:
      - {name: id, description: "the key, it's \\\\d+"}
      - {name: the.word, description: 'ends in \\'}
  - name: parquet
    columns:
      - {name: id, description: the key}
      - {name: n, description: a number}
  - name: checked
    config: {contract: {enforced: true}}
    columns:
      - name: id
        data_type: int
        constraints: [{type: not_null}, {type: check, name: positive, expression: id > 0}]
"""


class TestPersistDocs:
    @pytest.fixture(scope="class")
    def models(self):
        return {"told.sql": MODEL, "seen.sql": SEEN, "parquet.sql": PARQUET, "checked.sql": CHECKED, "schema.yml": YML}

    def test_only_what_differs_is_committed(self, project):
        def operations():
            history = project.run_sql("describe history {schema}.told", fetch="all")
            return [row["operation"] for row in reversed(history)]

        run_dbt(["run", "--select", "told"])
        # the table's comment is part of its creation, the columns' are one commit
        assert operations() == ["CREATE OR REPLACE TABLE AS SELECT", "CHANGE COLUMNS"]
        run_dbt(["run", "--select", "told"])
        assert operations()[2:] == ["WRITE"]
        run_dbt(["run", "--select", "told", "--vars", "words: changed"])
        assert operations()[3:] == ["WRITE", "SET TBLPROPERTIES"]

        about = {row[0]: row for row in project.run_sql("describe extended {schema}.told", fetch="all")}
        assert about["Comment"][1] == "It's changed"
        assert about["id"][2] == "the key, it's"
        assert about["the.word"][2] == "back\\slash"
        detail = project.run_sql("describe detail {schema}.told", fetch="one")
        assert detail["clusteringColumns"] == ["id"]
        assert detail["properties"]["delta.logRetentionDuration"] == "interval 7 days"

    @pytest.fixture(scope="class")
    def made(self, project):
        run_dbt(["run", "--select", "seen", "parquet", "checked"])

    def test_those_of_a_view(self, project, made):
        about = {row[0]: row for row in project.run_sql("describe {schema}.seen", fetch="all")}
        assert [about[name][2] for name in ("id", "the.word", "other")] == ["the key, it's \\d+", "ends in \\", None]

    def test_those_of_a_table_in_another_format(self, project, made):
        about = {row[0]: row for row in project.run_sql("describe {schema}.parquet", fetch="all")}
        assert [about[name][2] for name in ("id", "n")] == ["the key", "a number"]

    def test_constraints_hold(self, project, made):
        for value in ("null", "-1"):
            with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT"):
                project.run_sql(f"insert into {{schema}}.checked values (cast({value} as int))")
