"""Which entity does each change belong to, when keys change.

`resolve` takes the changes of one table and says of each which row of the source it is about, from that
row's first change on, through every key that it had (rules K1 to K7 of the contract, O1 and O3 for the
order, A1 for known and unknown keys, A8 for truncates).

Everything but the identity itself is decided key by key with window functions; only key changes then follow
their links, by pointer jumping. `docs/decisions/resolver.md` has the method on one page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_cdc.errors import CdcError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

ID = ("_cdc_batch_id", "_cdc_change_set", "_cdc_row")
COLUMNS = (
    "_cdc_op",
    "_cdc_key",
    "_cdc_key_before",
    "_cdc_sequence",
    "_cdc_ordinal",
    "_cdc_transaction",
    "_cdc_change_set_order",
    *ID,
)

# What an event does to the queue of occupants of one key.
_ARRIVES, _IN_PLACE, _LEAVES, _NONE = 1, 0, -1, 2

# Key changes are joined by a 64-bit hash of their id, checked to be one's own; another salt where it is
# not. For a million key changes one repetition happens once in 40 million tables: the second salt is hardly
# ever tried.
_MAX_SALTS = 2

# A chain of 2^40 key changes does not exist: more rounds than this mean links that run in a circle.
_MAX_ROUNDS = 40

# Session settings (time zone, null fields, milliseconds) must not show in an entity's id.
_JSON = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


class ResolverError(CdcError):
    """The changes given to the resolver are not what it takes."""


@dataclass(frozen=True)
class Resolution:
    """What `resolve` found.

    `rows` has one row a change (none for T), lazy, with the columns

    | column | type | meaning |
    |---|---|---|
    | `_cdc_batch_id`, `_cdc_change_set`, `_cdc_row` | bigint, string, bigint | the change |
    | `_cdc_op`, `_cdc_sequence`, `_cdc_ordinal` | string, struct, bigint | as given |
    | `entity` | string | 32 hex digits; null for `unknown_delete` and `absorbed` |
    | `key_before` | struct | the key whose row it takes away: a delete's key, the old key of a `key_change` |
    | `key_after` | struct | the key that the row has after it; null for D |
    | `origin` | string | see below |
    | `displaced_entity` | string | what this key change displaced at its transaction's end (K7) |
    | `acts_on` | struct (batch id, change set, row) | the change that placed the row; null for a root |

    `origin` is one of `insert`, `known_insert` (A1: updates what was there), `update`, `unknown_update`
    (A1: inserts), `key_change`, `unknown_key` (K5: old key nowhere known, an upsert), `delete`,
    `unknown_delete` (A1: nothing there), `absorbed` (the delete half of a split key change, K6).

    The other fields count changes; `rounds` are those of the pointer jumping (K5), `unresolved` the changes
    of origin `unknown_key`.
    """

    rows: DataFrame
    rounds: int
    unresolved: int
    changes: int
    key_changes: int
    collisions: int
    known_inserts: int
    unknown_updates: int
    unknown_deletes: int
    absorbed: int


def resolve(changes: DataFrame, *, pair_split_key_changes: bool = False) -> Resolution:
    """Say which entity each change belongs to.

    Args:
        changes: one row a usable, deduplicated (O4) change of one table:
            `_cdc_op` string (I, U, D, R, T);
            `_cdc_key` struct: the new key for I, U, R, the old key for D, null for T;
            `_cdc_key_before` struct of the same fields: the old key, null (or equal) where unchanged;
            `_cdc_sequence` struct, null only for an R without position (O5);
            `_cdc_ordinal` bigint; `_cdc_transaction` string, null: equal sequence is one transaction (K3);
            `_cdc_batch_id` bigint, `_cdc_change_set` string, `_cdc_row` bigint: identify the change;
            `_cdc_change_set_order` bigint: the change set's place among those of its batch.
            It is read twice, the second time for truncates only: hand in what is cheap to read.
        pair_split_key_changes: take a D and an upsert of another key, with equal sequence and transaction,
            for one key change (K6).

    Returns:
        A `Resolution`. Its counts are final; its rows are computed from blocks held by Spark (local
        checkpoints), freed once the frame is no longer used.

    Raises:
        ResolverError: a column is missing, or two key changes have one id.
        pyspark.errors.PySparkException: an operation is not one of the five (while the job runs).
    """
    from pyspark.sql import functions as F

    missing = [name for name in COLUMNS if name not in changes.columns]
    if missing:
        raise ResolverError(f"changes lack {', '.join(missing)}. The resolver takes {', '.join(COLUMNS)}.")

    changes = _with_pairs(changes) if pair_split_key_changes else _unpaired(changes)
    for salt in range(_MAX_SALTS):
        events, counts = _cut(
            _placed(_events(changes, salt)),
            changes=~F.col("departure"),
            key_changes=F.col("departure") & F.col("head").isNotNull(),
            unresolved=F.col("departure") & F.col("head").isNull(),
            collisions=F.col("displaced").isNotNull(),
            known_inserts=F.col("origin") == "known_insert",
            unknown_updates=F.col("origin") == "unknown_update",
            unknown_deletes=F.col("origin") == "unknown_delete",
            absorbed=F.col("origin") == "absorbed",
        )
        links, joined = _cut(_links(events), all=F.lit(True), open=F.col("entity").isNull())
        if joined["all"] == counts["key_changes"] + counts["unresolved"]:
            break
    else:
        raise ResolverError(f"Two changes have the same {', '.join(ID)}: each change must have its own.")
    entities, rounds = _jumped(links, joined["open"])
    return Resolution(rows=_rows(events, links, entities), rounds=rounds, **counts)


def rows_schema(staging: StructType, keys: Sequence[str]) -> StructType:
    """The schema of `Resolution.rows` for a staging table with these key columns, without resolving anything."""
    from pyspark.sql.types import StringType, StructType

    key, change = StructType([staging[name] for name in keys]), StructType([staging[name] for name in ID])
    schema = StructType([staging[name] for name in (*ID, "_cdc_op", "_cdc_sequence", "_cdc_ordinal")])
    for name, type_ in {
        "entity": StringType(),
        "key_before": key,
        "key_after": key,
        "origin": StringType(),
        "displaced_entity": StringType(),
        "acts_on": change,
    }.items():
        schema = schema.add(name, type_)
    return schema


def _cut(frame: DataFrame, **counted: Column) -> tuple[DataFrame, dict[str, int]]:
    """Compute the frame now, keep its rows, forget its plan; and count in the same job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    kept = frame.observe(
        seen, *(F.count_if(what).alias(name) for name, what in counted.items())
    ).localCheckpoint()
    return kept, {name: int(seen.get[name]) for name in counted}


def _is_key_change() -> Column:
    from pyspark.sql import functions as F

    return (
        F.col("_cdc_op").isin("I", "U", "R")
        & F.col("_cdc_key_before").isNotNull()
        & ~F.col("_cdc_key_before").eqNullSafe(F.col("_cdc_key"))
    )


def _narrowed(changes: DataFrame) -> DataFrame:
    """Only the columns that count; both keys of one type, names of fields included, so that they compare."""
    from pyspark.sql import functions as F

    before = F.col("_cdc_key_before").cast(changes.schema["_cdc_key"].dataType)
    return changes.select(*COLUMNS).withColumn("_cdc_key_before", before)


def _unpaired(changes: DataFrame) -> DataFrame:
    """Nothing absorbed."""
    from pyspark.sql import functions as F

    return _narrowed(changes).withColumn("absorbed", F.lit(False))


def _with_pairs(changes: DataFrame) -> DataFrame:
    """K6: one key change instead of a delete and a create.

    Debezium gives both halves one position. A delete whose key is the old key of an upsert there says
    nothing new. Where just one other delete and one insert without old key are left, they are one key
    change.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    op, key, before = F.col("_cdc_op"), F.col("_cdc_key"), F.col("_cdc_key_before")
    is_delete = op == "D"
    is_mover = _is_key_change()
    is_insert = (op == "I") & ~is_mover
    half = F.col("_cdc_sequence").isNotNull() & (is_delete | is_mover | is_insert)
    # What can be no half is spread by its own id: the rows of a snapshot all have one (null) sequence.
    alone = F.when(~half, F.struct(*ID))
    place = ["_cdc_sequence", "_cdc_transaction", "alone"]
    at_place = Window.partitionBy(*place)
    at_old_key = Window.partitionBy(*place, "old_key")
    # This order of windows needs one shuffle: what is partitioned by place is so by place and old key too.
    marked = (
        _narrowed(changes)
        .withColumn("alone", alone)
        .withColumn("old_key", F.when(is_delete, key).when(is_mover, before))
        .withColumn("inserts", F.count_if(half & is_insert).over(at_place))
        .withColumn("told", half & is_delete & F.max(is_mover).over(at_old_key))
        .withColumn("deletes", F.count_if(half & is_delete & ~F.col("told")).over(at_place))
        .withColumn("deleted_key", F.max(F.when(half & is_delete & ~F.col("told"), key)).over(at_place))
        .withColumn("inserted_key", F.max(F.when(half & is_insert, key)).over(at_place))
    )
    pair = (
        half
        & (F.col("inserts") == 1)
        & (F.col("deletes") == 1)
        & ~F.col("deleted_key").eqNullSafe(F.col("inserted_key"))
    )
    return marked.select(
        *(name for name in COLUMNS if name != "_cdc_key_before"),
        F.when(pair & is_insert, F.col("deleted_key")).otherwise(before).alias("_cdc_key_before"),
        (is_delete & (F.col("told") | pair)).alias("absorbed"),
    )


def _events(changes: DataFrame, salt: int) -> DataFrame:
    """What happens at each key: a key change leaves one key and arrives at another, all else is one event.

    Adds `number` (the change in short), `kind` (what it does to the queue), `key`, `departure` (the leaving
    half of a key change), `mover` (either half of one), `last_resort` (O3), `epoch` (truncates below it,
    A8; -1 keeps what has no effect out of the way) and `truncated_here` (a truncate is right below, at its
    own position).
    """
    from pyspark.sql import functions as F

    op, key, before = F.col("_cdc_op"), F.col("_cdc_key"), F.col("_cdc_key_before")
    # O3: where all else is equal an upsert beats a delete; T stands below what a baseline brings with it.
    changes = changes.withColumn("last_resort", F.when(op == "T", 0).when(op == "D", 1).otherwise(2))
    position = F.struct(*_ORDER)
    truncates = changes.where(op == "T").agg(F.collect_list(position).alias("truncates"))

    def event(kind: Column | int, at: Column, departure: bool = False) -> Column:
        kind = F.lit(kind) if isinstance(kind, int) else kind
        return F.struct(kind.alias("kind"), at.alias("key"), F.lit(departure).alias("departure"))

    kind = (
        F.when(F.col("absorbed"), _NONE)
        .when(op.isin("I", "R"), _ARRIVES)
        .when(op == "U", _IN_PLACE)
        .when(op == "D", _LEAVES)
        .otherwise(F.raise_error(F.concat_ws(" ", F.lit("resolver: operation not known:"), op)).cast("int"))
    )
    events = (
        changes.where(op.isNull() | (op != "T"))
        .crossJoin(F.broadcast(truncates))
        .withColumn("mover", _is_key_change())
        .withColumn(
            "epoch",
            F.when(F.col("absorbed"), -1).otherwise(F.size(F.filter("truncates", lambda t: t < position))),
        )
        .withColumn("number", F.xxhash64(F.lit(salt), *ID))
        .withColumn(
            "truncated_here",
            F.exists(
                "truncates", lambda t: _same_position(t["_cdc_sequence"], t["_cdc_ordinal"]) & (t < position)
            ),
        )
        .withColumn(
            "event",
            F.explode(
                F.when(F.col("mover"), F.array(event(_LEAVES, before, True), event(_ARRIVES, key))).otherwise(
                    F.array(event(kind, key))
                )
            ),
        )
    )
    return events.select(
        *(name for name in COLUMNS if name not in ("_cdc_key", "_cdc_key_before")),
        F.when(F.col("mover"), before).alias("old_key"),
        "last_resort",
        "mover",
        "epoch",
        "truncated_here",
        "number",
        "event.*",
    )


def _same_position(sequence: Column, ordinal: Column) -> Column:
    from pyspark.sql import functions as F

    return sequence.eqNullSafe(F.col("_cdc_sequence")) & ordinal.eqNullSafe(F.col("_cdc_ordinal"))


# O1, then O3. Change sets of a batch that share an order are told apart by name, so that no two changes tie.
_ORDER = (
    "_cdc_sequence",
    "_cdc_ordinal",
    "_cdc_batch_id",
    "_cdc_change_set_order",
    "_cdc_row",
    "last_resort",
    "_cdc_change_set",
)


def _placed(events: DataFrame) -> DataFrame:
    """Of each event: the occupant that it acts on, and the change that placed that occupant.

    The occupants of a key are numbered as they come. The queue always holds the newest few of them: who
    leaves is the oldest (K3), and a transaction's end keeps the newest (K7). So the length of the queue
    says who is in it.

    Each event takes the length q to max(q + a, b): one comes (+1, 1), one leaves (-1, 0), one is changed in
    place and made if there is none (0, 1). Such steps compose into one of the same form, so prefix sums and
    prefix maxima give the length everywhere within a transaction, given the length (0 or 1) at its start.

    Adds `head` struct (number, mover, entity, id) of the change that placed the row acted on (for a
    placement: of its own row), null if there is none; `displaced`, the same for what a key change
    displaced; `root`, the entity that starts here if nothing older is found; `origin`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    at_key = Window.partitionBy("key", "epoch").orderBy(*_ORDER)
    so_far = at_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    earlier = at_key.rowsBetween(Window.unboundedPreceding, -1)

    kind, transaction, sequence = F.col("kind"), F.col("_cdc_transaction"), F.col("_cdc_sequence")
    a = F.when(kind == _NONE, 0).otherwise(kind)
    b = F.when((kind == _ARRIVES) | (kind == _IN_PLACE), 1).otherwise(0)

    # 1. Transactions: runs of neighbours at this key (K3).
    label = F.struct(transaction.alias("t"), sequence.alias("s"), F.col("_cdc_ordinal").alias("o"))
    events = events.select("*", F.lag(label).over(at_key).alias("last"), F.sum(a).over(so_far).alias("sum"))
    last, total = F.col("last"), F.col("sum")
    one = transaction.eqNullSafe(last["t"]) & (transaction.isNotNull() | sequence.eqNullSafe(last["s"]))
    tied = last.isNotNull() & _same_position(last["s"], last["o"])
    events = events.withColumn("starts", last.isNull() | ~one).withColumn("tied", tied).drop("last")

    # 2. Within each, prefix sums and maxima. The maxima of one run are kept 2^32 above those of the run
    # before it, so that a running maximum starts afresh with each run.
    starts = F.col("starts")
    events = events.select(
        "*",
        F.shiftleft(F.count_if(starts).over(so_far), 32).alias("run"),
        F.last(F.when(starts, total - a), ignorenulls=True).over(so_far).alias("sum_before"),
        F.lead(starts, 1, True).over(at_key).alias("ends"),
    )
    run = F.col("run")
    events = events.select("*", (F.max(run + b - total).over(earlier) - run).alias("floor"))
    # Of the events before this one; far below zero, or null, where it is the first of its run.
    floor = F.col("floor")

    # 3. The length at each run's start: what the last run gave that does not depend on its own start.
    def at_end(q: int) -> Column:
        return F.least(F.lit(1), F.greatest(q + total - F.col("sum_before"), b, total + floor))

    fixed = F.when(F.col("ends") & (at_end(0) == at_end(1)), at_end(0))
    at_start = F.coalesce(F.last(fixed, ignorenulls=True).over(earlier), F.lit(0))
    events = events.withColumn("at_start", at_start)
    length = F.greatest(F.col("at_start") + total - a - F.col("sum_before"), total - a + floor)

    # 4. Occupants are numbered; an event acts on the oldest one.
    events = events.withColumn("length", length)
    comes = (kind == _ARRIVES) | ((kind == _IN_PLACE) & (F.col("length") == 0))
    takes = (kind == _LEAVES) & (F.col("length") > 0)
    events = events.withColumn("comes", comes).withColumn("takes", takes)
    comes, takes = F.col("comes"), F.col("takes")
    events = events.select("*", F.count_if(comes).over(so_far).alias("come"))
    acts = takes | (kind == _IN_PLACE)
    events = events.select(
        *(*ID, "_cdc_op", "_cdc_sequence", "_cdc_ordinal"),
        *("number", "kind", "key", "epoch", "old_key", "mover", "departure", "comes", "takes"),
        F.when(comes, F.col("come")).when(acts, F.col("come") - F.col("length") + 1).alias("occupant"),
        F.when(comes, _entity()).alias("root"),
    )

    # 5. By number: each placement, what acted on it, who took it away; then the next placement. One that
    # comes right behind another which nobody took: an insert of a known key (A1), or a key change that
    # displaces (K7).
    step = F.when(comes, 0).when(takes, 2).otherwise(1)
    by_number = Window.partitionBy("key", "epoch").orderBy("occupant", step)
    below = by_number.rowsBetween(Window.unboundedPreceding, -1)
    left_there = F.lag(F.col("occupant").isNotNull() & ~takes, 1, False).over(by_number)
    events = events.withColumn("behind", comes & left_there)
    mover, behind = F.col("mover"), F.col("behind")
    # A key change's entity is not known yet: `root` is only what it starts if its old key is nowhere known.
    head = F.when(
        comes & (mover | ~behind),
        F.struct("number", "mover", F.when(~mover, F.col("root")).alias("entity"), F.struct(*ID).alias("id")),
    )
    events = events.withColumn("own", head)
    events = events.withColumn("head_below", F.last("own", ignorenulls=True).over(below))
    own, head_below = F.col("own"), F.col("head_below")
    events = events.withColumn("head", F.when(own.isNotNull(), own).when(acts | comes, head_below))
    events = events.withColumn("displaced", F.when(behind & mover, head_below))
    origin = (
        F.when(mover, None)  # said once both halves are seen together
        .when(kind == _NONE, "absorbed")
        .when(kind == _IN_PLACE, F.when(comes, "unknown_update").otherwise("update"))
        .when(kind == _LEAVES, F.when(takes, "delete").otherwise("unknown_delete"))
        .otherwise(F.when(behind, "known_insert").otherwise("insert"))
    )
    return events.withColumn("origin", origin).drop(
        "epoch", "occupant", "behind", "comes", "takes", "own", "head_below"
    )


def _entity() -> Column:
    """The id of an entity: a hash of its first position and key.

    Where changes tie, more than one entity can begin at one position and key: only then the arrival is
    hashed too, so that otherwise ids do not depend on it.
    """
    from pyspark.sql import functions as F

    arrival = F.when(F.col("tied") | F.col("truncated_here"), F.struct(*ID))
    return F.md5(F.to_json(F.struct("_cdc_sequence", "_cdc_ordinal", "key", arrival.alias("arrival")), _JSON))


def _links(events: DataFrame) -> DataFrame:
    """One row a key change, from its two halves.

    Rows: `number`; `up`, the key change that placed the row it takes along, or else `entity`, where that is
    known; `parent` (id of what placed that row, null if nothing did); `displaced` (as in `_placed`).
    """
    from pyspark.sql import functions as F

    parent = F.col("parent")
    leaving = events.where("departure").select("number", F.col("head").alias("parent"))
    arriving = events.where("mover and not departure").select("number", "root", "displaced")
    return leaving.join(arriving, "number").select(
        "number",
        F.when(parent["mover"], parent["number"]).alias("up"),
        F.when(parent.isNull(), F.col("root")).when(~parent["mover"], parent["entity"]).alias("entity"),
        parent["id"].alias("parent"),
        "displaced",
    )


def _jumped(links: DataFrame, still_open: int) -> tuple[DataFrame, int]:
    """The entity of each key change (`number`, `entity`) by pointer jumping (K5), and the rounds that took.

    A key change whose old key was placed by anything else than a key change knows its entity at once. Every
    round the others look where their link points: that one's entity is known, or its link is taken over,
    which points twice as far.
    """
    from pyspark.sql import functions as F

    links = links.select("number", "up", "entity")
    known, unknown = links.where("entity is not null"), links.where("entity is null")
    rounds = 0
    while still_open:
        if rounds == _MAX_ROUNDS:
            raise ResolverError(
                f"{still_open} key changes are linked in a circle: their positions contradict."
            )
        rounds += 1
        target = known.unionByName(unknown)
        target = target.select(F.col("number").alias("up"), F.col("up").alias("next"), "entity")
        looked = (
            unknown.drop("entity").join(target, "up").select("number", F.col("next").alias("up"), "entity")
        )
        looked, counts = _cut(looked, open=F.col("entity").isNull())
        still_open = counts["open"]
        known, unknown = known.unionByName(looked.where("entity is not null")), looked.where("entity is null")
    return known.select("number", "entity"), rounds


def _rows(events: DataFrame, links: DataFrame, entities: DataFrame) -> DataFrame:
    """The result, one row a change: see `Resolution`."""
    from pyspark.sql import functions as F

    displaced = F.col("displaced")
    collisions = (
        links.where(displaced.isNotNull())
        .select(
            F.col("number").alias("by"),
            displaced["number"].alias("number"),
            displaced["entity"].alias("known"),
        )
        .join(entities, "number", "left")
        .select(F.col("by").alias("number"), F.coalesce("known", "entity").alias("displaced_entity"))
    )
    found = (
        links.select("number", "parent")
        .join(entities, "number")
        .join(collisions, "number", "left")
        .withColumnsRenamed({"number": "through", "entity": "found"})
    )

    events = events.where(~F.col("departure")).drop("displaced", "root")
    mover, head = F.col("mover"), F.col("head")
    through = F.when(mover, F.col("number")).when(head["mover"], head["number"])
    is_key_change = mover & F.col("parent").isNotNull()
    is_delete = F.col("kind") == _LEAVES
    effective = F.col("kind") != _NONE

    def shaped(frame: DataFrame) -> DataFrame:
        origin = F.when(mover, F.when(is_key_change, "key_change").otherwise("unknown_key")).otherwise(
            F.col("origin")
        )
        return frame.select(
            *ID,
            "_cdc_op",
            "_cdc_sequence",
            "_cdc_ordinal",
            F.col("found").alias("entity"),
            F.when(is_key_change, F.col("old_key")).when(is_delete, F.col("key")).alias("key_before"),
            F.when(effective & ~is_delete, F.col("key")).alias("key_after"),
            origin.alias("origin"),
            "displaced_entity",
            F.when(mover, F.col("parent")).when(head["id"] != F.struct(*ID), head["id"]).alias("acts_on"),
        )

    # Only what hangs on a key change needs the links: the rest is not shuffled again.
    nothing = F.lit(None)
    alone = events.where(through.isNull()).select(
        "*",
        head["entity"].alias("found"),
        nothing.cast("string").alias("displaced_entity"),
        nothing.cast(found.schema["parent"].dataType).alias("parent"),
    )
    linked = (
        events.where(through.isNotNull())
        .withColumn("through", through)
        .join(found, "through")
        .withColumn("displaced_entity", F.when(mover, F.col("displaced_entity")))
    )
    return shaped(alone).unionByName(shaped(linked))
