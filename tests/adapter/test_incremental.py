"""The incremental materialization: strategies and merge vocabulary."""

from __future__ import annotations

import datetime

import pytest
from dbt.tests.util import run_dbt

RUN = "{% set run = var('run') | int %}"
BASE = (
    "select * from values (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', 40) as t(id, word, n)"
    "{% if run == 2 %} where false union all "
    "select * from values (1, 'a', 10), (2, 'B', 21), (3, 'gone', 30), (5, 'e', 50), (6, 'no', 60) as t(id, word, n){% endif %}"
)

WORDS = """{{ config(materialized='incremental', unique_key='id', source_alias='s', target_alias='t',
  matched_condition='s.n > t.n or s.word <> t.word', matched_delete_condition="s.word = 'gone'",
  not_matched_condition="s.word <> 'no'", not_matched_by_source_condition='t.n >= 40', not_matched_by_source_action='delete') }}
"""
SKIP_MATCHED = "{{ config(materialized='incremental', unique_key='id', skip_matched_step=true) }}"
SKIP_NOT_MATCHED = "{{ config(materialized='incremental', unique_key='id', skip_not_matched_step=true) }}"
CHANGED = """{{ config(materialized='incremental', unique_key='id', merge_only_changed=true) }}
select id, map('at', timestamp'2024-01-01 00:00:00.000001' + case when run = 2 and id = 1 then interval '1' microsecond
    else interval '0' second end) as m,
  parse_json(concat('{"n": ', if(run = 2 and id = 2, 9, id), '}')) as v,
  named_struct('x', if(run = 2 and id = 3, null, id)) as s, array(cast(null as int), id) as a,
  if(run = 2 and id = 4, 1, cast(null as int)) as nothing, cast('nan' as double) as f
from (select explode(sequence(1, 6)) as id, {{ run }} as run)
"""
KEYS = """{{ config(materialized='incremental', unique_key=['a.b', 'c`d']) }}
select * from values (1, cast(null as int), {{ run }}), (null, null, {{ run }}), (2, 2, {{ run }}) as t(`a.b`, `c``d`, run)
"""
SOURCE_ONLY = """{{ config(materialized='incremental', unique_key='id', merge_source_only_columns=['op'],
  matched_delete_condition="DBT_INTERNAL_SOURCE.op = 'D'", not_matched_condition="DBT_INTERNAL_SOURCE.op <> 'D'",
  on_schema_change='append_new_columns') }}
{% if run == 1 %} select 1 as id, 'a' as word union all select 2, 'b'
{% else %} select 1 as id, 'x' as word, 7 as extra, 'U' as op union all select 2, null, null, 'D'
  union all select 3, null, null, 'D' {% endif %}
"""
EVOLVE = """{{ config(materialized='incremental', unique_key='id', merge_with_schema_evolution=true) }}
select 1 as id {% if run == 2 %}, 'new' as word {% endif %}
"""
EVOLVE_CHANGED = """{{ config(materialized='incremental', unique_key='id', merge_with_schema_evolution=true,
  merge_only_changed=true) }}
select id {% if run == 2 %}, if(id = 1, 'new', null) as word {% endif %} from range(1, 3)
"""
WHERE = """{{ config(materialized='incremental', incremental_strategy='replace_where',
  incremental_predicates=["day = '2024-01-02'"]) }}
{% if run == 1 %} select * from values ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-02', 3) as t(day, n)
{% else %} select '2024-01-02' as day, 9 as n {% endif %}
"""
SYNC = """{{ config(materialized='incremental', on_schema_change='sync_all_columns',
  tblproperties={'delta.columnMapping.mode': 'name', 'delta.enableTypeWidening': 'true'}) }}
{% if run == 1 %} select 1 as `left out`, 2 as grows, 3 as stays
{% else %} select 3000000000 as grows, 3 as stays, 4 as `new one` {% endif %}
"""
SYNC_THIS = """{{ config(materialized='incremental', unique_key='id', on_schema_change='sync_all_columns',
  tblproperties={'delta.columnMapping.mode': 'name'}) }}
{% if run == 1 %} select 1 as id, 'x' as gone
{% else %} select id + 1 as id from (select max(id) as id from {{ this }}) {% endif %}
"""
MOMENT = """{{ config(materialized='incremental', on_schema_change='append_new_columns') }}
select {{ run }} as id {% if run == 2 %}, timestamp_ntz'2024-01-01 10:00:00' as `at`, 1 as `a b` {% endif %}
"""
APPEND = """{{ config(materialized='incremental', partition_by='day', tblproperties={'delta.enableDeletionVectors': 'true'}) }}
select {{ run }} as run, date'2024-01-01' as day {% if run == 1 %}, 'x' as missing {% endif %}
"""


class TestIncremental:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "words.sql": RUN + WORDS + BASE,
            "skip_matched.sql": RUN + SKIP_MATCHED + BASE,
            "skip_not_matched.sql": RUN + SKIP_NOT_MATCHED + BASE,
            "changed.sql": RUN + CHANGED,
            "keyed.sql": RUN + KEYS,
            "source_only.sql": RUN + SOURCE_ONLY,
            "evolve.sql": RUN + EVOLVE,
            "evolve_changed.sql": RUN + EVOLVE_CHANGED,
            "replaced.sql": RUN + WHERE,
            "synced.sql": RUN + SYNC,
            "synced_this.sql": RUN + SYNC_THIS,
            "moment.sql": RUN + MOMENT,
            "appended.sql": RUN + APPEND,
        }

    @pytest.fixture(scope="class", autouse=True)
    def results(self, project):
        run_dbt(["run", "--vars", "run: 1"])
        return {r.node.name: r.adapter_response for r in run_dbt(["run", "--vars", "run: 2"])}

    @pytest.fixture
    def rows(self, project):
        def read(table: str, order: str) -> list[tuple]:
            return [tuple(row) for row in project.run_sql(f"select * from {{schema}}.{table} order by {order}", fetch="all")]

        return read

    def test_merge_words(self, rows, results):
        assert rows("words", "id") == [(1, "a", 10), (2, "B", 21), (5, "e", 50)]
        words = results["words"]
        counts = [words[f"rows_{kind}"] for kind in ("affected", "inserted", "updated", "deleted")]
        assert counts == [4, 1, 1, 2]
        assert words["table_version"] == 1
        assert words["_message"] == "MERGE +1 ~1 -2"

    def test_steps_left_out(self, rows):
        assert rows("skip_matched", "id") == [
            (1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "d", 40), (5, "e", 50), (6, "no", 60),
        ]  # fmt: skip
        assert rows("skip_not_matched", "id") == [(1, "a", 10), (2, "B", 21), (3, "gone", 30), (4, "d", 40)]

    def test_only_changed_rows_are_rewritten(self, results):
        # of six rows a map, a variant, a struct and a null differ in one each
        assert results["changed"]["rows_updated"] == 4

    def test_keys_are_null_safe_and_quoted(self, rows, results):
        assert results["keyed"]["rows_updated"] == 3
        assert rows("keyed", "1 nulls first, 2 nulls first") == [(None, None, 2), (1, None, 2), (2, 2, 2)]

    def test_source_only_columns_are_never_written(self, rows):
        assert rows("source_only", "id") == [(1, "x", 7)]

    def test_schema_evolution(self, rows):
        assert rows("evolve", "id") == [(1, "new")]

    def test_a_column_that_schema_evolution_adds_changes_the_rows_that_have_it(self, rows, results):
        assert rows("evolve_changed", "id") == [(1, "new"), (2, None)]
        assert results["evolve_changed"]["rows_updated"] == 1

    def test_replace_where_is_one_commit(self, rows, results):
        assert rows("replaced", "day, n") == [("2024-01-01", 1), ("2024-01-02", 9)]
        assert results["replaced"]["table_version"] == 1
        assert results["replaced"]["rows_inserted"] == 1
        assert results["replaced"]["rows_deleted"] == 2

    def test_sync_all_columns_adds_drops_and_widens(self, rows):
        assert rows("synced", "grows") == [(2, 3, None), (3000000000, 3, 4)]

    def test_a_column_is_dropped_from_a_table_that_the_model_reads(self, rows):
        assert rows("synced_this", "id") == [(1,), (2,)]

    def test_a_new_column_brings_the_table_feature_that_it_wants(self, rows):
        assert rows("moment", "id") == [(1, None, None), (2, datetime.datetime(2024, 1, 1, 10), 1)]

    def test_append_fills_a_missing_column_with_null(self, rows, project, results):
        assert [row[0] for row in rows("appended", "run")] == [1, 2]
        assert results["appended"]["_message"] == "INSERT +1"
        detail = project.run_sql("describe detail {schema}.appended", fetch="one")
        assert detail["partitionColumns"] == ["day"]
        history = project.run_sql("describe history {schema}.appended", fetch="all")
        assert [row["operation"] for row in history] == ["WRITE", "CREATE OR REPLACE TABLE AS SELECT"]


class TestIncrementalThatFails:
    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='incremental', %s) }} select 1 as id"
        return {
            "overwrite.sql": config % "incremental_strategy='insert_overwrite'",
            "parquet.sql": config % "file_format='parquet'",
            "where.sql": config % "incremental_strategy='replace_where'",
            "key.sql": config % "unique_key='idd'",
            "unknown.sql": config % "" + ", {{ 'nosuch' if is_incremental() else 1 }} as n",
            "updates.sql": config % "unique_key='id', merge_update_columns=['Id', 'wrod']",
            "action.sql": config % "unique_key='id', not_matched_by_source_action='drop'",
        }

    def test_what_cannot_be_is_told(self, project):
        project.run_sql("create schema if not exists {schema}")
        for name in ("where", "key", "unknown", "updates", "action"):
            project.run_sql(f"create table {{schema}}.{name} using delta as select 1 as id")
        messages = {r.node.name: r.message for r in run_dbt(["run"], expect_pass=False)}
        assert "Use replace_where" in messages["overwrite"]
        assert "incremental models of sparkdelta are Delta tables" in messages["parquet"]
        assert "needs incremental_predicates" in messages["where"]
        assert "unique_key 'idd' is not a column of both" in messages["key"]
        assert "Runtime Error in model unknown" in messages["unknown"]
        assert "UNRESOLVED_COLUMN" in messages["unknown"]
        assert "merge_update_columns names 'wrod'" in messages["updates"]
        assert "wants 'delete' or 'update set" in messages["action"]
