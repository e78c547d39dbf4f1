"""Seeds."""

from __future__ import annotations

import datetime

import pytest
from dbt.tests.util import run_dbt

SEED = """id,word,big,truth,day,at
1,O'Neil,9007199254740993,true,2024-02-29,2024-02-29 12:00:00
2,"",,false,,
3,,1,,2024-01-01,2024-01-01 00:00:00
4,"say ""hi"", \\ 100%
twice",2,true,2024-01-02,2024-01-02 00:00:00
5,"null",3,true,2024-01-03,2024-01-03 00:00:00
"""


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"words.csv": SEED, "semicolons.csv": 'a;b\n1;"x;y"\n2;\n'}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"test": {"semicolons": {"delimiter": ";"}}}}

    def test_values_arrive_as_they_are(self, project):
        for _ in range(2):
            run_dbt(["seed"])
        rows = [tuple(row) for row in project.run_sql("select * from {schema}.words order by id", fetch="all")]
        assert [row[1] for row in rows] == ["O'Neil", "", None, 'say "hi", \\ 100%\ntwice', "null"]
        assert [row[2] for row in rows] == [9007199254740993, None, 1, 2, 3]
        assert [row[3] for row in rows] == [True, False, None, True, True]
        assert [row[4] for row in rows][:2] == [datetime.date(2024, 2, 29), None]
        rows = project.run_sql("select * from {schema}.semicolons order by a", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "x;y"), (2, None)]
        # each load is one commit
        assert project.run_sql("describe history {schema}.words", fetch="all")[0][0] == 1
