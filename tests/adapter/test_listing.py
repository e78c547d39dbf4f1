"""A schema that cannot be listed is an error: read as empty, dbt would create its tables anew."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from dbt.adapters.sparkdelta import catalog


class TestListing:
    @pytest.fixture(scope="class")
    def models(self):
        return {"kept.sql": "{{ config(materialized='incremental') }} select 1 as id"}

    def test_a_failing_catalog_fails_the_run_and_the_rows_stay(self, project, monkeypatch):
        run_dbt(["run"])
        run_dbt(["run"])

        def fails(*_):
            raise OSError("[SCHEMA_NOT_FOUND] the metastore is away")

        with monkeypatch.context() as patch:
            patch.setattr(catalog, "tables", fails)
            with pytest.raises(Exception, match="the metastore is away"):
                run_dbt(["run"], expect_pass=False)
        assert project.run_sql("select count(*) from {schema}.kept", fetch="one")[0] == 2

    def test_a_schema_that_is_not_there_is_empty(self, project):
        relation = project.adapter.Relation.create(schema="no_such_schema", identifier="")
        with project.adapter.connection_named("_test"):
            assert project.adapter.list_relations_without_caching(relation) == []
