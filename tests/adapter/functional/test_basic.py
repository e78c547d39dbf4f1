"""dbt-tests-adapter's basic suites."""

from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection


class TestAdapterMethod(BaseAdapterMethod): ...


class TestSimpleMaterializations(BaseSimpleMaterializations): ...


class TestEmpty(BaseEmpty): ...


class TestEphemeral(BaseEphemeral): ...


class TestGenericTests(BaseGenericTests): ...


class TestIncremental(BaseIncremental): ...


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy): ...


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange): ...


class TestSingularTests(BaseSingularTests): ...


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral): ...


class TestTableMaterialization(BaseTableMaterialization): ...


class TestValidateConnection(BaseValidateConnection): ...
