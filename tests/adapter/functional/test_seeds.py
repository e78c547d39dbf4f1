"""dbt-tests-adapter's suites of seeds that load on any database."""

from dbt.tests.adapter.simple_seed.test_seed import BaseTestEmptySeed


class TestEmptySeed(BaseTestEmptySeed): ...
