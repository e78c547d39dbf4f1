"""What dbt promises of every adapter, and dbt's own suites do not look at."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, write_file

CHECKED = """
version: 2
models:
  - name: checked
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: int, constraints: [{type: check, expression: id > 0}, {type: not_null}]}]
"""
GAINS = """
version: 2
models:
  - {name: gains, config: {contract: {enforced: true}}, columns: [{name: id, data_type: int}%s]}
"""


@pytest.fixture(scope="class")
def unique_schema(unique_schema: str) -> str:
    return unique_schema.upper()  # a catalog spells it in lower case


class TestPromises:
    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='incremental', unique_key='id', on_schema_change='%s') }} "
        return {
            "narrower.sql": config % "sync_all_columns" + "select 1 as id, {{ var('n') }} as n",
            "unknown.sql": config % "sync_all_columns" + "select 1 as id, {{ 'null' if is_incremental() else 2 }} as n, "
            "{{ 'array()' if is_incremental() else 'array(3)' }} as a",
            "evolving.sql": (config % "append_new_columns").replace("')", "', merge_with_schema_evolution=true)")
            + "select 1 as id {% if is_incremental() %}, 'x' as word {% endif %}",
            "hooked.sql": "{{ config(materialized='table', post_hook=[after_commit('insert into ' ~ this ~ ' select 2'), "
            "'insert into ' ~ this ~ ' select 3']) }} select 1 as id",
            "checked.sql": "{{ config(materialized='incremental', on_schema_change='fail') }} select {{ var('id') }} as id",
            "checked.yml": CHECKED,
            "gains.sql": config % "append_new_columns" + "select 1 as id{% if var('n') == 2 %}, 2 as more{% endif %}",
            "gains.yml": GAINS % "",
            "base.sql": "{{ config(materialized='table') }} select 1 as a, 2 as b",
            "stale.sql": "{{ config(materialized='view') }} select a, b from {{ ref('base') }}",
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"typed.csv": '"id","n","day","word"\n"1","5","2024-01-01","a"\n"2","","",""\n'}

    @pytest.fixture(scope="class")
    def snapshots(self):
        config = "{{ config(unique_key=['a', 'b'], strategy='check', check_cols='all', file_format='delta') }}"
        loses = config.replace("['a', 'b']", "'a'").replace("'all'", "['n']") + " select 1 as a, {{ var('n') }} as n"
        return {
            "kept.sql": "{% snapshot kept %}" + config + " select 1 as a, 2 as b, {{ var('n') }} as n{% endsnapshot %}",
            "loses.sql": "{% snapshot loses %}" + loses + "{% if var('n') == 1 %}, 'x' as gone{% endif %}{% endsnapshot %}",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        types = {"n": "int", "day": "date", "word": "string"}
        return {"vars": {"n": 3000000000, "id": -1}, "seeds": {"test": {"typed": {"+column_types": types}}}}

    def rows(self, project, sql):
        return [tuple(row) for row in project.run_sql(sql, fetch="all")]

    @pytest.fixture(scope="class")
    def run_twice(self, project):
        """Models that ask for no other runs; the second has an `n` that is an int."""
        for variables in ("{}", "{n: 7}"):
            run_dbt(["run", "--select", "narrower", "unknown", "evolving", "hooked", "--vars", variables])

    @pytest.fixture(scope="class")
    def snapshots_taken(self, project):
        for n, names in ((1, ["kept", "loses"]), (2, ["kept", "loses"]), (3, ["kept"])):
            run_dbt(["snapshot", "--select", *names, "--vars", f"{{n: {n}}}"])

    def test_rows_may_be_narrower_than_the_table(self, project, run_twice):
        assert self.rows(project, "select id, n from {schema}.narrower") == [(1, 7)]

    def test_null_is_of_the_table_s_type(self, project, run_twice):
        assert self.rows(project, "select id, n, a from {schema}.unknown") == [(1, None, [])]

    def test_a_new_column_is_named_once(self, project, run_twice):
        assert self.rows(project, "select id, word from {schema}.evolving") == [(1, "x")]

    def test_hooks_outside_of_transactions_run(self, project, run_twice):
        assert self.rows(project, "select id from {schema}.hooked order by id") == [(1,), (2,), (3,)]

    def test_constraints_that_failed_once_are_asked_for_again(self, project):
        for _ in range(2):
            (result,) = run_dbt(["run", "--select", "checked"], expect_pass=False)
            assert "id > 0" in str(result.message)
        project.run_sql("delete from {schema}.checked where id < 0")
        for _ in range(2):
            run_dbt(["run", "--select", "checked", "--vars", "{id: 1}"])
        assert len(self.rows(project, "select id from {schema}.checked where id = 1")) == 2
        properties = self.rows(project, "show tblproperties {schema}.checked")
        assert len([name for name, _ in properties if name.startswith("delta.constraints.")]) == 2

    def test_a_contract_may_gain_a_column_with_a_check(self, project):
        run_dbt(["run", "--select", "gains"])
        more = ", {name: more, data_type: int, constraints: [{type: check, expression: more is null or more > 1}]}"
        write_file(GAINS % more, project.project_root, "models", "gains.yml")
        run_dbt(["run", "--select", "gains", "--vars", "{n: 2}"])
        assert self.rows(project, "select id, more from {schema}.gains") == [(1, 2)]
        properties = self.rows(project, "show tblproperties {schema}.gains")
        assert "more is null or more > 1" in [value for name, value in properties if name.startswith("delta.constraints.")]

    def test_a_quoted_empty_cell_of_a_typed_column_is_null(self, project):
        run_dbt(["seed"])
        rows = self.rows(project, "select * from {schema}.typed order by id")
        assert rows == [(1, 5, datetime.date(2024, 1, 1), "a"), (2, None, None, "")]

    def test_a_snapshot_may_have_several_keys(self, project, snapshots_taken):
        assert self.rows(project, "select a, b, n from {schema}.kept order by n") == [(1, 2, 1), (1, 2, 2), (1, 2, 3)]
        assert not [row for row in self.rows(project, "describe {schema}.kept") if row[0].startswith("dbt_unique_key")]

    def test_a_snapshot_s_query_may_lose_a_column(self, project, snapshots_taken):
        rows = self.rows(project, "select n, gone, dbt_valid_to is null from {schema}.loses order by n")
        assert rows == [(1, "x", False), (2, None, True)]

    def test_a_view_that_no_longer_works_does_not_empty_the_docs(self, project):
        run_dbt(["run", "--select", "base", "stale"])
        write_file("{{ config(materialized='table') }} select 1 as a", project.project_root, "models", "base.sql")
        run_dbt(["run", "--select", "base"])
        catalog = run_dbt(["docs", "generate"])
        assert "model.test.base" in {node.unique_id for node in catalog.nodes.values()}


class TestMacros:
    """dbt's own for all databases, under ANSI: dbt-spark has it off."""

    @pytest.fixture(scope="class")
    def models(self):
        part = "{{{{ dbt.split_part(\"'a||b'\", \"'||'\", {}) }}}}"
        parts = ", ".join(map(part.format, (1, 2, 3, -1, -3)))
        casts = "{{ dbt.safe_cast(\"'x'\", 'int') }}, {{ dbt.safe_cast(\"'7'\", 'int') }}"
        return {"made.sql": f"{{{{ config(materialized='table') }}}} select array({casts}) as casts, array({parts}) as parts"}

    def test_what_does_not_fit_or_is_not_there_is_null(self, project):
        run_dbt(["run"])
        made = project.run_sql("select * from {schema}.made", fetch="one")
        assert tuple(made) == ([None, 7], ["a", "b", None, "b", None])


class TestClone:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "base.sql": "{{ config(materialized='table') }} select 1 as id",
            "shown.sql": "{{ config(materialized='view') }} select * from {{ ref('base') }}",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+schema": "{{ var('to', 'one') }}"}}

    def test_what_names_no_file_format_is_cloned(self, project):
        run_dbt(["run", "--vars", "to: one"])
        (state := Path(project.project_root) / "state").mkdir()
        shutil.copy(Path(project.project_root) / "target" / "manifest.json", state)
        run_dbt(["clone", "--state", str(state), "--vars", "to: two"])
        for name in ("base", "shown"):
            assert project.run_sql(f"select * from {project.test_schema}_two.{name}", fetch="all") == [(1,)]
        (newest, *_) = project.run_sql(f"describe history {project.test_schema}_two.base", fetch="all")
        assert newest["operation"] == "CLONE"
