"""Write plans: what a model decides while it compiles."""

from __future__ import annotations

import json

import pytest
from dbt.tests.util import run_dbt

PLANNED = """{{ config(materialized='incremental', unique_key='id') }}
{% do adapter.plan_write(this, fromyaml(var('plan'))) %}
select id, {{ var('run') }} as run from range(1, 4)
"""
PARTS = """{{ config(materialized='incremental', incremental_strategy='replace_where') }}
{% do adapter.plan_write(this, {'predicates': ['part = 1'], 'report': {'changes': 2}}) %}
select 1 as part, {{ var('run') }} as run {% if var('run') | int == 1 %} union all select 2, 1 {% endif %}
"""

UNIT_TEST = """
unit_tests:
  - name: a_unit_test_plans_nothing_for_the_model
    model: planned
    overrides: {vars: {plan: 'skip: true', run: 7}, macros: {is_incremental: false}}
    given: []
    expect: {rows: [{id: 1, run: 7}, {id: 2, run: 7}, {id: 3, run: 7}]}
"""


class TestWritePlan:
    @pytest.fixture(scope="class")
    def models(self):
        return {"planned.sql": PLANNED, "parts.sql": PARTS, "unit.yml": UNIT_TEST}

    def run(self, number: int, plan: dict, *arguments: str):
        variables = json.dumps({"run": number, "plan": json.dumps(plan)})
        command = arguments or ("run", "--select", "planned")
        results = run_dbt([*command, "--vars", variables])
        return {r.node.name: r.adapter_response for r in results}

    def test_the_options_one_after_the_other(self, project):
        def rows(order="id"):
            found = project.run_sql(f"select id, run from {{schema}}.planned order by {order}", fetch="all")
            return [tuple(row) for row in found]

        def history():
            return project.run_sql("describe history {schema}.planned", fetch="all")

        # skip creates a table that is not there
        assert self.run(1, {"skip": True})["planned"]["rows_inserted"] == 3

        # skip runs no statement
        skipped = self.run(2, {"skip": True})["planned"]
        assert (skipped["_message"], skipped["rows_affected"]) == ("SKIP nothing new", 0)
        assert len(history()) == 1

        # a transaction counts once, and the history names it
        txn = {"txn": {"app_id": "planned@1", "version": 5}, "notes": {"highest": "7"}}
        assert self.run(3, txn)["planned"]["rows_updated"] == 3
        assert json.loads(history()[0]["userMetadata"]) == {"app_id": "planned@1", "version": 5, "notes": {"highest": "7"}}
        repeated = self.run(4, txn)["planned"]
        assert repeated["rows_affected"] == 0
        assert "table_version" not in repeated
        assert rows() == [(1, 3), (2, 3), (3, 3)]

        # and only for the one statement
        assert self.run(5, {})["planned"]["rows_updated"] == 3
        assert history()[0]["userMetadata"] is None

        # predicates narrow the merge: rows outside do not match
        narrowed = self.run(6, {"predicates": ["DBT_INTERNAL_DEST.id < 3"]})["planned"]
        assert (narrowed["rows_updated"], narrowed["rows_inserted"]) == (2, 1)
        assert rows("id, run") == [(1, 6), (2, 6), (3, 5), (3, 6)]

        # rebuild replaces the table, as a transaction of its own generation
        rebuilt = self.run(7, {"rebuild": True, "txn": {"app_id": "planned@2", "version": 0}})["planned"]
        assert rebuilt["_message"] == "CREATE +3"
        assert rows() == [(1, 7), (2, 7), (3, 7)]
        assert json.loads(history()[0]["userMetadata"])["app_id"] == "planned@2"

        # rows of keys that the table has not are appended
        project.run_sql("delete from {schema}.planned")
        appended = self.run(7, {"all_new": True})["planned"]
        assert (appended["rows_inserted"], history()[0]["operation"]) == (3, "WRITE")
        assert rows() == [(1, 7), (2, 7), (3, 7)]

        # a unit test of the model compiles it too
        self.run(8, {}, "build", "--select", "planned")
        assert rows() == [(1, 8), (2, 8), (3, 8)]

    def test_predicates_of_replace_where_and_a_report(self, project):
        self.run(1, {}, "run", "--select", "parts")
        response = self.run(2, {}, "run", "--select", "parts")["parts"]
        assert response["report"] == {"changes": 2}
        rows = project.run_sql("select * from {schema}.parts order by part", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 2), (2, 1)]

    def test_a_wrong_option_fails_the_model(self, project):
        variables = json.dumps({"run": 1, "plan": json.dumps({"skipp": True})})
        results = run_dbt(["run", "--select", "planned", "--vars", variables], expect_pass=False)
        assert "Did you mean `skip`" in results[0].message
