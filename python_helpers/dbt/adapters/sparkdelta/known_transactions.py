"""What Delta knows of a table's transactions when an INSERT begins.

A write with a transaction's id looks that id up in the snapshot's map of them, which Delta works out by a query over the whole
log: more than half of what a small INSERT costs (docs/decisions/speed.md). Delta has the same list in the checksum file, which it
wrote with the commit and has read with the snapshot. So the snapshot is given the map from there. It is that of one version: if
somebody commits in between, Delta makes another snapshot, and works the map out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import catalog, delta_log
from dbt.adapters.sparkdelta.java import java_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SNAPSHOT = "org.apache.spark.sql.delta.Snapshot"


class _Lazy(NamedTuple):
    """Java's fields of a snapshot: its map, which of its lazy values it has (`have`), and the map's bit there."""

    value: Any
    have: Any
    bit: int


_lazy: dict[Any, _Lazy | None] = {}  # of the process's JVM


def from_checksum(session: SparkSession, schema: str, identifier: str, txn: Mapping[str, Any] | None = None) -> bool:
    """Give a table's newest snapshot its transactions from its checksum; False where they are not in it, or known already.

    txn: of the INSERT that is to come (`WritePlan.txn`). Raises DbtRuntimeError where another run has committed a version of its
    application since it was planned, but not its own: Delta would take it all the same, for an INSERT reads nothing.
    """
    uri = catalog.location(session, schema, identifier)
    if uri is None:
        return False
    log, snapshot = delta_log.delta_log(session, uri)
    noted = _in_checksum(snapshot)
    if txn and "after" in txn:
        app_id = txn["app_id"]
        found = delta_log.open_log(session, uri).transaction_version(app_id) if noted is None else noted.get(app_id)
        if found is not None and txn["after"] < found < txn["version"]:
            raise DbtRuntimeError(
                f"[DELTA_CONCURRENT_LOAD] {schema}.{identifier}: another run has loaded batch {found} since this one looked, "
                f"when {txn['after']} was the last. Nothing was written; the next run goes on from there."
            )
    if noted is None or snapshot.getClass().getName() != SNAPSHOT:
        return False
    jvm = session._jvm
    if jvm not in _lazy:
        _lazy[jvm] = _found(session, log, snapshot.getClass())
    lazy = _lazy[jvm]
    if lazy is None or (have := lazy.have.get(snapshot)) & lazy.bit:
        return False
    lazy.value.set(snapshot, _map_of(session, noted))
    lazy.have.set(snapshot, have | lazy.bit)
    return True


def _in_checksum(snapshot: Any) -> dict[str, int] | None:
    """Each application's newest version; None where the snapshot has no checksum that tells it."""
    checksum = snapshot.checksumOpt()
    if checksum.isEmpty() or checksum.get().setTransactions().isEmpty():
        return None
    return delta_log.versions_of(checksum.get().setTransactions().get())


def _found(session: SparkSession, log: Any, snapshot: Any) -> _Lazy | None:
    """None where this version of Delta keeps them in another way: then it works them out, as ever. snapshot: the class.

    The bit is the one that changes in a snapshot of no table when it is asked for its transactions.
    """
    from py4j.protocol import Py4JError

    try:
        value, have = (snapshot.getDeclaredField(name) for name in ("transactions", "bitmap$0"))
        for each in (value, have):
            each.setAccessible(True)
        of_no_table = java_class(session, "org.apache.spark.sql.delta.DummySnapshot")(log.logPath(), log)
        before = have.get(of_no_table)
        of_no_table.transactions()
        bit = before ^ have.get(of_no_table)
        have.set(of_no_table, before | bit)  # a field of another width refuses Python's number
    except (Py4JError, TypeError):
        return None
    return _Lazy(value, have, bit) if bit.bit_count() == 1 else None


def _map_of(session: SparkSession, versions: Mapping[str, int]) -> Any:
    """The same as a map of Scala's, from text to Java's Long."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    names, numbers = java_class(session, "java.util.ArrayList")(), gateway.new_array(java_class(session, "long"), len(versions))
    for place, (name, version) in enumerate(versions.items()):
        names.add(name)
        numbers[place] = version
    # small numbers of Python's would come as Integer
    longs = java_class(session, "java.util.Arrays").stream(numbers).boxed().toList()
    to_seq = java_class(session, "PythonUtils").toSeq
    pairs = to_seq(names).zip(to_seq(longs))
    return pairs.toMap(getattr(java_class(session, "scala.$less$colon$less$"), "MODULE$").refl())
