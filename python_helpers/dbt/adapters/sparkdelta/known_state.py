"""What Delta knows of a table's newest version without asking Spark.

A scan with a filter, a MERGE and an INSERT with a transaction's id ask a snapshot for its size, the number of its files or its
transactions. Delta 4.4 works all of these out at once by a query over the log (what that costs: docs/decisions/speed.md), and has
them: in the checksum file, which it wrote with the commit and has read with the snapshot. So the snapshot is given its state from
there. It is that of one version: after a commit Delta makes another snapshot.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from dbt.adapters.sparkdelta.java import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOT = "org.apache.spark.sql.delta.Snapshot"


class _Lazy(NamedTuple):
    """Java's fields of a snapshot: its state, which of its lazy values it has (`have`), the state's bit there (0: not known)."""

    value: Any
    have: Any
    bit: int


_lazy: dict[Any, _Lazy] = {}  # of the process's JVM
_lock = threading.Lock()


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
    lazy = _fields(session, snapshot, checksum)
    if lazy.bit == 0 or (have := lazy.have.get(snapshot)) & lazy.bit:
        return False
    lazy.value.set(snapshot, _state(session, checksum))
    lazy.have.set(snapshot, have | lazy.bit)
    return True


def _state(session: SparkSession, checksum: Any) -> Any:
    """Delta's SnapshotState. How many removed files there are no checksum tells: only a checkpoint that is cut in parts asks."""
    transactions, domains = checksum.setTransactions().get(), checksum.domainMetadata().get()
    return java_class(session, "org.apache.spark.sql.delta.SnapshotState")(
        checksum.tableSizeBytes(), transactions.size(), checksum.numFiles(), 0,
        checksum.numDeletedRecordsOpt(), checksum.numDeletionVectorsOpt(), checksum.numMetadata(), checksum.numProtocol(),
        transactions, domains, checksum.metadata(), checksum.protocol(), checksum.fileSizeHistogram(),
        checksum.deletedRecordCountsHistogramOpt(),
    )


def _fields(session: SparkSession, snapshot: Any, checksum: Any) -> _Lazy:
    """Where a snapshot keeps its state; looked for once, in the first one that has not worked it out.

    The bit is the one that changes when it does, once what the state is made of is there.
    """
    from py4j.protocol import Py4JError

    with _lock:
        if found := _lazy.get(session._jvm):
            return found
        try:
            value, have = (snapshot.getClass().getDeclaredField(name) for name in ("computedState", "bitmap$0"))
            for each in (value, have):
                each.setAccessible(True)
            snapshot.allFiles()
            before = have.get(snapshot)
            snapshot.sizeInBytes()
            bit = before ^ have.get(snapshot)
            have.set(snapshot, before | bit)  # a field of another width refuses Python's number
            _state(session, checksum)
        except (Py4JError, TypeError):  # this version of Delta keeps it in another way: then it works it out, as ever
            _lazy[session._jvm] = _Lazy(None, None, 0)
        else:
            if bit == 0:  # known already: the next snapshot may tell
                return _Lazy(None, None, 0)
            _lazy[session._jvm] = _Lazy(value, have, bit if bit.bit_count() == 1 else 0)
        return _lazy[session._jvm]
