"""Seeds."""

from __future__ import annotations

import datetime
import math

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
NO_NUMBERS = "id,word,whole,part,text,typed\n1,NaN,NaN,NaN,NaN,NaN\n2,x,7,-Infinity,1,\n3,,,2.5,,1.5\n"


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"words.csv": SEED, "semicolons.csv": 'a;b\n1;"x;y"\n2;\n', "no_numbers.csv": NO_NUMBERS}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        types = {"text": "string", "typed": "double"}
        return {"seeds": {"test": {"semicolons": {"delimiter": ";"}, "no_numbers": {"+column_types": types}}}}

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

    def test_what_is_no_number_is_a_text_in_a_text_column_and_a_double_in_a_numeric_one(self, project):
        run_dbt(["seed", "--select", "no_numbers"])
        rows = [tuple(row) for row in project.run_sql("select * from {schema}.no_numbers order by id", fetch="all")]
        assert [row[1] for row in rows] == ["NaN", "x", None]
        assert [row[4] for row in rows] == ["NaN", "1", None]
        assert all(math.isnan(value) for value in rows[0][2:4] + rows[0][5:])
        assert [row[2:4] + row[5:] for row in rows[1:]] == [(7.0, -math.inf, None), (None, 2.5, 1.5)]
