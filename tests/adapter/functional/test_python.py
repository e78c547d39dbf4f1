"""dbt-tests-adapter's suites of Python models."""

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
)
from dbt.tests.adapter.python_model.test_spark import PYSPARK_MODEL, BasePySparkTests
from dbt.tests.util import run_dbt


class TestPythonModel(BasePythonModelTests): ...


@pytest.mark.nightly  # tests/adapter/test_python_models.py
class TestPythonIncremental(BasePythonIncrementalTests): ...


class TestPythonMetaGet(BasePythonMetaGetTests): ...


class TestPythonEmpty(BasePythonEmptyTests): ...


@pytest.mark.nightly  # tests/adapter/test_python_models.py
class TestPySpark(BasePySparkTests):
    """Spark's DataFrames alone: koalas is gone, and pandas need not be installed."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"pyspark_df.py": PYSPARK_MODEL}

    def test_different_dataframes(self, project):
        assert len(run_dbt(["run"])) == 1
