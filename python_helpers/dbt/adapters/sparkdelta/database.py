"""A database over JDBC: its driver, secrets from the environment, types, and what its catalogue tells of its tables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta.columns import quoted
from dbt.adapters.sparkdelta.java import java_class, short_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField

# A time without a zone stays one: else Java's zone is put to it. Oracle's driver fetches 10 rows at a time by itself.
JDBC_OPTIONS = {"preferTimestampNTZ": "true", "fetchsize": "10000"}
DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "org.postgresql:postgresql"),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.SQLServerDriver", "com.microsoft.sqlserver:mssql-jdbc"),
    "oracle": ("oracle.jdbc.OracleDriver", "com.oracle.database.jdbc:ojdbc11"),
    "mysql": ("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    "mariadb": ("org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    "db2": ("com.ibm.db2.jcc.DB2Driver", "com.ibm.db2:jcc"),
    "derby": ("org.apache.derby.iapi.jdbc.AutoloadedDriver", "org.apache.derby:derby"),
}
# java.sql.Types of a time of day, which `read` reads as text
TIMES = (92, 2013)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def tables_of(session: SparkSession, url: str, schema: str | None, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables of a database's schema, by name: {name: `schema.table`, keys, columns: {name: Spark type}}.

    The types are None in a table with one that Spark cannot read. schema: None is the one that the connection begins with. url
    and options: as for Spark's JDBC source, with `${NAME}` for variables of the environment. Raises DbtRuntimeError, which holds
    no value of the environment.
    """
    environment = Environment("--jdbc")
    try:
        given = {**JDBC_OPTIONS, **environment.options("options", options), "url": environment.filled("url", url)}
        name_driver(session, given)
        return _tables_of(session, given, schema)
    except Exception as error:
        text = short_message(error)
        raise DbtRuntimeError(environment.hidden(text if text.startswith("--jdbc") else f"--jdbc: {text}")) from None


def rows_of(session: SparkSession, url: str, table: str, options: Mapping[str, Any]) -> DataFrame:
    """The rows of a database's table, read when they are asked for. url, options, errors: as for `tables_of`."""
    environment = Environment("--against")
    try:
        given = {**JDBC_OPTIONS, **environment.options("option", options), "url": environment.filled("url", url)}
        name_driver(session, given)
        return read(session, {**given, "dbtable": table})
    except Exception as error:
        raise DbtRuntimeError(environment.hidden(f"{table} cannot be read: {short_message(error)}")) from None


def read(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """What Spark's JDBC source reads with these options, but times of day as the database's text, as messages have them: Spark
    makes moments of 1970 of them."""
    frame = session.read.format("jdbc").options(**options).load()
    times = [
        field.name
        for field in frame.schema.fields
        if field.metadata.get("logical_time_type") and field.dataType.typeName().startswith("time")
    ]
    if not times:
        return frame
    given = [types for name, types in options.items() if name.lower() == "customschema"]
    types = ", ".join([*(f"{quoted(name)} string" for name in times), *given])
    return session.read.format("jdbc").options(**{**options, "customSchema": types}).load()


def _tables_of(session: SparkSession, options: Mapping[str, str], schema: str | None) -> list[dict[str, Any]]:
    connection = _connection(session, options)
    try:
        catalogue = connection.getMetaData()
        catalog, schema = connection.getCatalog(), schema or connection.getSchema()
        wanted = session.sparkContext._gateway.new_array(java_class(session, "java.lang.String"), 2)  # type: ignore[union-attr]
        wanted[0], wanted[1] = "TABLE", "PARTITIONED TABLE"
        tables = _rows(catalogue.getTables(catalog, schema, "%", wanted), "TABLE_SCHEM", "TABLE_NAME")
        names = sorted(row["TABLE_NAME"] for row in tables if row["TABLE_SCHEM"] in (schema, None))  # the names are patterns
        if not names:
            there = ", ".join(row["TABLE_SCHEM"] for row in _rows(catalogue.getSchemas(), "TABLE_SCHEM"))
            raise DbtRuntimeError(f"--jdbc: there is no table in schema {schema}." + (f" There are: {there}." if there else ""))
        quote = (catalogue.getIdentifierQuoteString() or "").strip()
        found = []
        for name in names:
            parts = [part for part in (schema, name) if part]
            in_quotes = [quote + part.replace(quote, quote * 2) + quote if quote else part for part in parts]
            types = _types(session, options, ".".join(in_quotes))
            described = _rows(catalogue.getColumns(catalog, schema, name, "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE")
            kinds = {row["COLUMN_NAME"]: int(row["DATA_TYPE"]) for row in described if row["TABLE_NAME"] == name}
            columns = {column: types and ("string" if kind in TIMES else types[column]) for column, kind in kinds.items()}
            keys = _rows(catalogue.getPrimaryKeys(catalog, schema, name), "KEY_SEQ", "COLUMN_NAME")
            in_order = sorted(keys, key=lambda row: int(row["KEY_SEQ"]))
            found.append({"name": ".".join(parts), "keys": [row["COLUMN_NAME"] for row in in_order], "columns": columns})
        return found
    finally:
        connection.close()


def _connection(session: SparkSession, options: Mapping[str, str]) -> Any:
    """A java.sql.Connection as Spark makes it: it finds drivers that came with `spark.jars.packages`."""
    properties = java_class(session, "PythonUtils").toScalaMap({**options, "dbtable": "none"})
    made = java_class(session, "org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions")(properties)
    dialect = java_class(session, "org.apache.spark.sql.jdbc.JdbcDialects").get(options["url"])
    return dialect.createConnectionFactory(made).apply(-1)


def _rows(result: Any, *columns: str) -> list[dict[str, Any]]:
    """The rows of a java.sql.ResultSet."""
    rows = []
    while result.next():
        rows.append({column: result.getString(column) for column in columns})
    result.close()
    return rows


def _types(session: SparkSession, options: Mapping[str, str], table: str) -> dict[str, str] | None:
    """Spark's types of a table's columns, text for lists, as messages have them. None where Spark cannot read one."""
    try:
        fields = session.read.format("jdbc").options(**{**options, "dbtable": table}).load().schema.fields
    except Exception as error:  # pyspark leaves some of them as Py4J's
        # a database may refuse to hand such a value out at all: Derby its XML
        if not re.search(r"\[(UNRECOGNIZED_SQL_TYPE|JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR)", short_message(error)):
            raise
        return None
    types = {field.name: plain_type(field).simpleString() for field in fields}
    return {name: "string" if kind.startswith("array") else kind for name, kind in types.items()}


class Environment:
    """Puts variables of the environment where a setting has `${NAME}`, and takes their values out of what is told."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._used: dict[str, str] = {}

    def filled(self, setting: str, value: Any) -> str:
        """The value as text. Raises DbtRuntimeError that names setting and variable."""

        def variable(found: re.Match[str]) -> str:
            name = found[1]
            if name not in os.environ:
                raise DbtRuntimeError(
                    f"{self._where}: `{setting}` names ${{{name}}}, and the environment has no variable {name}. Set it where "
                    "delta-cdc is started."
                )
            self._used[name] = os.environ[name]
            return self._used[name]

        return _VARIABLE.sub(variable, str(value).lower() if isinstance(value, bool) else str(value))

    def options(self, setting: str, given: Mapping[str, Any]) -> dict[str, str]:
        return {name: self.filled(f"{setting}.{name}", value) for name, value in given.items()}

    def hidden(self, text: str) -> str:
        for name, value in sorted(self._used.items(), key=lambda used: -len(used[1])):
            text = text.replace(value, f"${{{name}}}") if value else text
        return text


def plain_type(field: StructField) -> DataType:
    from pyspark.sql.types import CharType, StringType, VarcharType

    return StringType() if isinstance(field.dataType, (CharType, VarcharType)) else field.dataType


def name_driver(session: SparkSession, options: dict[str, str]) -> None:
    """Name the driver, which Spark finds by its name only where its jar came with `spark.jars.packages`."""
    kind = options["url"].split(":")[1] if options["url"].startswith("jdbc:") else ""
    known, package = DRIVERS.get(kind, (None, "the coordinates of its driver on Maven Central"))
    driver = options.setdefault("driver", known or "")
    if not driver:
        raise DbtRuntimeError(
            f"the driver of jdbc:{kind} is not known. Name its class in `jdbc.options`: {{driver: …}}, and its package in "
            "`spark.jars.packages`."
        )
    need_class(session, driver, package, f"the driver of jdbc:{kind}")
    if kind == "mariadb":
        options["url"] = _as_mysql(options["url"])


def _as_mysql(url: str) -> str:
    """MariaDB's URL as its driver takes it for one of MySQL. Spark has no dialect of jdbc:mariadb (SPARK-25013): it puts names in
    double quotes, which are texts to MariaDB, so that each value would be the name of its column.

    >>> _as_mysql("jdbc:mariadb://db/shop"), _as_mysql("jdbc:mariadb://db/shop?sslMode=trust")
    ('jdbc:mysql://db/shop?permitMysqlScheme', 'jdbc:mysql://db/shop?sslMode=trust&permitMysqlScheme')
    """
    return f"jdbc:mysql:{url.removeprefix('jdbc:mariadb:')}{'&' if '?' in url else '?'}permitMysqlScheme"


def need_class(session: SparkSession, name: str, package: str, what: str) -> None:
    try:
        java_class(session, "java.lang.Thread").currentThread().getContextClassLoader().loadClass(name)
    except Exception:
        version = "" if package.count(":") == 2 or ":" not in package else ":<version>"
        raise DbtRuntimeError(
            f"{what} ({name}) is not among Spark's jars. Put this into the profile's `server_side_parameters`, behind a comma if "
            f"there are others:\n  spark.jars.packages: {package}{version}"
        ) from None
