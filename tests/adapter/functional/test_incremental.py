"""dbt-tests-adapter's incremental suites."""

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChangeSetup
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey


@pytest.mark.nightly  # TestIncremental of test_basic.py; of several keys, which may be null: tests/adapter/test_incremental.py
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    """Four of the ten: the others differ in how the same key is written."""

    test__empty_str_unique_key = None
    test__one_unique_key = None
    test__empty_unique_key_list = None
    test__unary_unique_key_list = None
    test__duplicated_unary_unique_key_list = None
    test__trinary_unique_key_list_no_update = None


class TestMergeExcludeColumns(BaseMergeExcludeColumns): ...


class TestIncrementalPredicates(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {
            "models": {
                "+incremental_predicates": ["dbt_internal_dest.id != 2"],
                "+incremental_strategy": "merge",
            }
        }


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChangeSetup):
    """Without the cases that drop a column: Delta does that with column mapping only."""

    def test_run_incremental_append_new_columns(self, project):
        self.run_incremental_append_new_columns_remove_one(project)
