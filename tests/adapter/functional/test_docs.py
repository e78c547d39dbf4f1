"""dbt-tests-adapter's suites of comments and `docs generate`."""

from dbt.tests.adapter.persist_docs.test_persist_docs import BasePersistDocs, BasePersistDocsColumnMissing


class TestPersistDocs(BasePersistDocs): ...


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing): ...
