"""A schema that cannot be listed is an error: read as empty, dbt would create its tables anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog
from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter


def of_a_server(**answers: Any) -> SparkdeltaAdapter:
    """An adapter with `method: thrift`. answers: by the macro that is asked, rows or an error."""

    def execute_macro(name: str, **_: Any) -> Any:
        if isinstance(answers[name], Exception):
            raise answers[name]
        return answers[name]

    adapter = SparkdeltaAdapter.__new__(SparkdeltaAdapter)
    adapter.config = SimpleNamespace(credentials=SimpleNamespace(method="thrift"))
    adapter.execute_macro = execute_macro
    return adapter


@pytest.mark.parametrize("schema", ["main", "Main"])
def test_a_failing_catalog_of_a_server_is_no_schema_without_tables(schema: str) -> None:
    away = DbtRuntimeError("the metastore is away")
    adapter = of_a_server(list_relations_without_caching=away, list_schemas=[("default",), ("main",)])
    with pytest.raises(DbtRuntimeError, match="the metastore is away"):
        adapter.list_relations_without_caching(adapter.Relation.create(schema=schema, identifier=""))
    assert adapter.list_relations_without_caching(adapter.Relation.create(schema="other", identifier="")) == []


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
