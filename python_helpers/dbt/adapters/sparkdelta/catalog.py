"""What the session's catalog knows of tables and views: one request each, and no Spark job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from dbt.adapters.sparkdelta.java import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where tables are, as dbt's listing at the start of a run found them: a request to the metastore costs more than
# everything else that an idle table needs.
_locations: dict[tuple[str, str], str] = {}


class CatalogTable(NamedTuple):
    name: str
    is_view: bool
    provider: str | None


def tables(session: SparkSession, schema: str) -> list[CatalogTable]:
    """Tables and views of a schema, from one request to the metastore; none when there is no such schema."""
    catalog = session._jsparkSession.sessionState().catalog()
    if not catalog.databaseExists(schema):
        return []
    found = []
    # a table dropped meanwhile is left out by getTablesByName; temporary views belong to no schema
    each = catalog.getTablesByName(catalog.listTables(schema, "*", False)).iterator()
    while each.hasNext():
        table = each.next()
        provider = table.provider()
        name, is_view = table.identifier().table(), table.tableType().name() == "VIEW"
        if not is_view and table.storage().locationUri().isDefined():
            _locations[schema.lower(), name.lower()] = table.location().toString()
        found.append(
            CatalogTable(
                name=name,
                is_view=is_view,
                provider=provider.get().lower() if provider.isDefined() else None,
            )
        )
    return found


def location(session: SparkSession, schema: str, identifier: str) -> str | None:
    """A table's location (a URI) in the session catalog; None if there is no such table."""
    name = (schema.lower(), identifier.lower())
    known = local_path(_locations[name]) if name in _locations else None
    if known is not None and (known / "_delta_log").is_dir():  # a table that was dropped has left it
        return _locations[name]
    table = catalog_table(session, schema, identifier)
    if table is None or table.tableType().name() == "VIEW":
        return None
    _locations[name] = str(table.location().toString())
    return _locations[name]


def catalog_table(session: SparkSession, schema: str, identifier: str) -> Any | None:
    """The catalog's entry of a table or view, None if there is none: the one request that leaves out what is not there."""
    from pyspark.errors import AnalysisException

    of_schema = java_class(session, "scala.Option").apply(schema)
    name = java_class(session, "org.apache.spark.sql.catalyst.TableIdentifier")(identifier, of_schema)
    names = java_class(session, "java.util.ArrayList")()
    names.add(name)
    try:
        found = session._jsparkSession.sessionState().catalog().getTablesByName(java_class(session, "PythonUtils").toSeq(names))
    except AnalysisException as error:
        if error.getCondition() == "SCHEMA_NOT_FOUND":
            return None
        raise
    return found.head() if found.nonEmpty() else None


def is_delta(session: SparkSession, schema: str, identifier: str) -> bool:
    table = catalog_table(session, schema, identifier)
    return table is not None and table.provider().isDefined() and table.provider().get().lower() == "delta"


def owner_and_comment(session: SparkSession, schema: str, identifier: str) -> tuple[str, str | None]:
    """Owner and comment of a table or view as the catalog has them; of one that is not there, no owner."""
    table = catalog_table(session, schema, identifier)
    if table is None:
        return "", None
    comment = table.comment()
    return table.owner(), comment.get() if comment.isDefined() else None


def local_path(uri: str) -> Path | None:
    """The path of a local location; None for one on another file system."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None
