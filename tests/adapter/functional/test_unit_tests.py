"""dbt-tests-adapter's suites of dbt's unit tests."""

import pytest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes


class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity): ...


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput): ...


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self):
        return [
            ["1", "1"],
            ["'it''s'", "its"],
            ["true", "true"],
            ["date'2020-01-02'", "2020-01-02"],
            ["timestamp'2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["cast(1.5 as decimal(10, 2))", "1.5"],
        ]
