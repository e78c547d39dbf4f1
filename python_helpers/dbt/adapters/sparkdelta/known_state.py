"""What Delta knows of a table's newest version without asking Spark.

A scan with a filter, a MERGE and an INSERT with a transaction's id ask a snapshot for its size, the number of its files or its
transactions. Delta 4.4 works all of these out at once by a query over the log (what that costs: docs/decisions/speed.md), and has
them: in the checksum file, which it wrote with the commit and has read with the snapshot. So the snapshot is given its state from
there. It is that of one version: after a commit Delta makes another snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dbt.adapters.sparkdelta.java import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOT = "org.apache.spark.sql.delta.Snapshot"


class _Lazy(NamedTuple):
    """Java's fields of a snapshot: its state, which of its lazy values it has (`have`), and the state's bit there."""

    value: Any
    have: Any
    bit: int


_lazy: dict[Any, _Lazy | None] = {}  # of the process's JVM


def give_state(session: SparkSession, snapshot: Any) -> bool:
    """Give Delta's snapshot its state from its checksum; False where that does not tell all of it, or it is known already."""
    if snapshot.getClass().getName() != SNAPSHOT:
        return False
    found = snapshot.checksumOpt()
    if found.isEmpty():
        return False
    checksum = found.get()
    if checksum.setTransactions().isEmpty() or checksum.domainMetadata().isEmpty():
        return False
    if checksum.numDeletedRecordsOpt().isEmpty() and "deletionVectors" in str(checksum.protocol()):  # they are new to the table
        return False
    jvm = session._jvm
    if jvm not in _lazy:
        _lazy[jvm] = _found(session, snapshot.getClass(), checksum)
    lazy = _lazy[jvm]
    if lazy is None or (have := lazy.have.get(snapshot)) & lazy.bit:
        return False
    lazy.value.set(snapshot, _state(session, checksum))
    lazy.have.set(snapshot, have | lazy.bit)
    return True


def _state(session: SparkSession, checksum: Any) -> Any:
    """Delta's SnapshotState. How many removed files there are no checksum tells: only a checkpoint that is cut in parts asks."""
    transactions, domains = checksum.setTransactions().get(), checksum.domainMetadata().get()
    return java_class(session, "org.apache.spark.sql.delta.SnapshotState")(
        checksum.tableSizeBytes(),
        transactions.size(),
        checksum.numFiles(),
        0,
        checksum.numDeletedRecordsOpt(),
        checksum.numDeletionVectorsOpt(),
        checksum.numMetadata(),
        checksum.numProtocol(),
        transactions,
        domains,
        checksum.metadata(),
        checksum.protocol(),
        checksum.fileSizeHistogram(),
        checksum.deletedRecordCountsHistogramOpt(),
    )


def _found(session: SparkSession, snapshot: Any, checksum: Any) -> _Lazy | None:
    """None where this version of Delta keeps its state in another way: then it works it out, as ever. snapshot: the class.

    The bit is the one by which a snapshot of nothing, which cannot work anything out, tells the state that it was given.
    """
    from py4j.protocol import Py4JError

    try:
        unsafe = java_class(session, "java.lang.Class").forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
        value, have = (snapshot.getDeclaredField(name) for name in ("computedState", "bitmap$0"))
        for each in (unsafe, value, have):
            each.setAccessible(True)
        of_nothing = unsafe.get(None).allocateInstance(snapshot)
        value.set(of_nothing, _state(session, checksum))
    except (Py4JError, TypeError):
        return None

    def told_by(bits: list[int]) -> bool:
        try:
            have.set(of_nothing, sum(bits))
            return bool(of_nothing.sizeInBytes() == checksum.tableSizeBytes())
        except Py4JError:
            return False

    bits = [1 << place for place in range(31)]
    while len(bits) > 1:
        half = bits[: len(bits) // 2]
        bits = half if told_by(half) else bits[len(half) :]
    return _Lazy(value, have, bits[0]) if told_by(bits) else None
