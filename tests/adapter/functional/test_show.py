"""dbt-tests-adapter's suites of `dbt show`."""

from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowLimit


class TestShowLimit(BaseShowLimit): ...
