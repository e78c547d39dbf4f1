"""Which entity does each change belong to, when keys change.

`resolve` takes the changes of one table and says of each which row of the source it is about, from that
row's first change on, through every key that it had (rules K1 to K7 of the contract, O1 and O3 for the
order, A1 for known and unknown keys, A8 for truncates).

Everything but the identity itself is decided key by key with window functions; only key changes then follow
their links, by pointer jumping. `docs/decisions/resolver.md` has the method on one page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_cdc.errors import CdcError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
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

_ID = ", ".join(ID)

# O1, then O3. Change sets of a batch that share an order are told apart by name, so that no two changes tie.
_ORDER = "_cdc_sequence, _cdc_ordinal, _cdc_batch_id, _cdc_change_set_order, _cdc_row, last_resort, _cdc_change_set"

# What an event does to the queue of occupants of one key.
_ARRIVES, _IN_PLACE, _LEAVES, _NONE = 1, 0, -1, 2

# Key changes are joined by a 64-bit hash of their id, checked to be one's own; another salt where it is
# not. For a million key changes one repetition happens once in 40 million tables: the second salt is hardly
# ever tried.
_MAX_SALTS = 2

# A chain of 2^40 key changes does not exist: more rounds than this mean links that run in a circle.
_MAX_ROUNDS = 40

# Session settings (time zone, null fields, milliseconds) must not show in an entity's id.
_JSON = """map(
      'timeZone', 'UTC', 'ignoreNullFields', 'false',
      'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", 'timestampNTZFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")"""


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
        pair_split_key_changes: of the changes of equal sequence and transaction take a D of the old key that an upsert
            tells for that upsert's half, and else a D and an I of another key, where just one of each is left, for one
            key change (K6).

    Returns:
        A `Resolution`. Its counts are final; its rows are computed from blocks held by Spark (local
        checkpoints), freed once the frame is no longer used.

    Raises:
        ResolverError: a column is missing, or two key changes have one id.
        pyspark.errors.PySparkException: an operation is not one of the five (while the job runs).
    """
    missing = [name for name in COLUMNS if name not in changes.columns]
    if missing:
        raise ResolverError(f"changes lack {', '.join(missing)}. The resolver takes {', '.join(COLUMNS)}.")

    changes = _narrowed(changes)
    changes = _with_pairs(changes) if pair_split_key_changes else changes.selectExpr("*", "false as absorbed")
    for salt in range(_MAX_SALTS):
        events, counts = cut(
            _placed(_events(changes, salt)),
            changes="not departure",
            key_changes="departure and head is not null",
            unresolved="departure and head is null",
            collisions="displaced is not null",
            known_inserts="origin = 'known_insert'",
            unknown_updates="origin = 'unknown_update'",
            unknown_deletes="origin = 'unknown_delete'",
            absorbed="origin = 'absorbed'",
        )
        links, joined = cut(_links(events), all="true", open="entity is null")
        if joined["all"] == counts["key_changes"] + counts["unresolved"]:
            break
    else:
        raise ResolverError(f"Two changes have the same {', '.join(ID)}: each change must have its own.")
    entities, rounds = _jumped(links, joined["open"])
    return Resolution(rows=_rows(events, links, entities), rounds=rounds, **counts)


def rows_schema(staging: StructType, keys: Sequence[str]) -> StructType:
    """The schema of `Resolution.rows` for a staging table with these key columns, without resolving anything."""
    from pyspark.sql.types import StringType, StructType

    named = {field.name.lower(): field for field in staging}  # keys may be listed in another case later
    key, change = StructType([named[name.lower()] for name in keys]), StructType([staging[name] for name in ID])
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


def _sql(query: str, **frames: Any) -> DataFrame:
    """A query over frames, which it names in braces: analysed once, where each call on a frame would be."""
    made: DataFrame = next(iter(frames.values())).sparkSession.sql(query, **frames)
    return made


def cut(frame: DataFrame, **counted: str) -> tuple[DataFrame, dict[str, int]]:
    """Compute the frame now, keep its rows, forget its plan; and count in the same job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counts = (F.expr(f"count_if({what})").alias(name) for name, what in counted.items())
    kept = frame.observe(seen, *counts).localCheckpoint()
    return kept, {name: int(seen.get[name]) for name in counted}


_IS_KEY_CHANGE = "(_cdc_op in ('I', 'U', 'R') and _cdc_key_before is not null and not _cdc_key_before <=> _cdc_key)"


def _narrowed(changes: DataFrame) -> DataFrame:
    """Only the columns that count; both keys of one type, names of fields included, so that they compare."""
    from pyspark.sql import functions as F

    before = F.col("_cdc_key_before").cast(changes.schema["_cdc_key"].dataType)
    return changes.select(*COLUMNS).withColumn("_cdc_key_before", before)


def _with_pairs(changes: DataFrame) -> DataFrame:
    """K6: one key change instead of a delete and a create.

    Debezium gives both halves one position. A delete whose key is the old key of an upsert there says
    nothing new. Where just one other delete and one insert without old key are left, of different keys, they
    are one key change.
    """
    place = "_cdc_sequence, _cdc_transaction, alone"
    # This order of windows needs one shuffle: what is partitioned by place is so by place and old key too.
    return _sql(
        f"""
with told_apart as (
  select *, _cdc_op = 'D' as is_delete, {_IS_KEY_CHANGE} as is_mover, _cdc_op = 'I' and not {_IS_KEY_CHANGE} as is_insert
  from {{changes}}
),
halves as (
  select *, _cdc_sequence is not null and (is_delete or is_mover or is_insert) as half,
    case when is_delete then _cdc_key when is_mover then _cdc_key_before end as old_key
  from told_apart
),
at_places as (  -- what can be no half is spread by its own id: the rows of a snapshot all have one (null) sequence
  select *, if(not half, struct({_ID}), null) as alone from halves
),
with_inserts as (
  select *, count_if(half and is_insert) over (partition by {place}) as inserts from at_places
),
with_told as (
  select *, half and is_delete and max(is_mover) over (partition by {place}, old_key) as told from with_inserts
),
with_deletes as (
  select *, count_if(half and is_delete and not told) over at_place as deletes,
    max(if(half and is_delete and not told, _cdc_key, null)) over at_place as deleted_key,
    max(if(half and is_insert, _cdc_key, null)) over at_place as inserted_key
  from with_told
  window at_place as (partition by {place})
),
paired as (
  select *, half and inserts = 1 and deletes = 1 and not deleted_key <=> inserted_key as pair from with_deletes
)
select {", ".join(name for name in COLUMNS if name != "_cdc_key_before")},
  if(pair and is_insert, deleted_key, _cdc_key_before) as _cdc_key_before,
  is_delete and (told or pair) as absorbed
from paired""",
        changes=changes,
    )


def _events(changes: DataFrame, salt: int) -> DataFrame:
    """What happens at each key: a key change leaves one key and arrives at another, all else is one event.

    Adds `number` (the change in short), `kind` (what it does to the queue), `key`, `departure` (the leaving
    half of a key change), `mover` (either half of one), `last_resort` (O3), `epoch` (truncates below it,
    A8; -1 keeps what has no effect out of the way) and `truncated_here` (a truncate is right below, at its
    own position).
    """

    def event(kind: str, key: str, departure: str) -> str:
        return f"named_struct('kind', {kind}, 'key', {key}, 'departure', {departure})"

    kind = f"""case
      when absorbed then {_NONE}
      when _cdc_op in ('I', 'R') then {_ARRIVES}
      when _cdc_op = 'U' then {_IN_PLACE}
      when _cdc_op = 'D' then {_LEAVES}
      else cast(raise_error(concat_ws(' ', 'resolver: operation not known:', _cdc_op)) as int) end"""
    return _sql(
        f"""
with changes as (  -- O3: where all else is equal an upsert beats a delete; T stands below what a baseline brings with it
  select *, case _cdc_op when 'T' then 0 when 'D' then 1 else 2 end as last_resort from {{changes}}
),
all_truncates as (
  select collect_list(struct({_ORDER})) as truncates from changes where _cdc_op = 'T'
),
placed as (
  select /*+ broadcast(all_truncates) */ changes.*, {_IS_KEY_CHANGE} as mover, xxhash64({salt}, {_ID}) as number,
    if(absorbed, -1, size(filter(truncates, t -> t < struct({_ORDER})))) as epoch,
    exists(truncates, t -> {_same_position("t")} and t < struct({_ORDER})) as truncated_here
  from changes cross join all_truncates
  where _cdc_op is null or _cdc_op <> 'T'
)
select {", ".join(name for name in COLUMNS if name not in ("_cdc_key", "_cdc_key_before"))},
  if(mover, _cdc_key_before, null) as old_key, last_resort, mover, epoch, truncated_here, number,
  inline(if(mover,
    array({event(str(_LEAVES), "_cdc_key_before", "true")}, {event(str(_ARRIVES), "_cdc_key", "false")}),
    array({event(kind, "_cdc_key", "false")})))
from placed""",
        changes=changes,
    )


def _same_position(other: str) -> str:
    return f"{other}._cdc_sequence <=> _cdc_sequence and {other}._cdc_ordinal <=> _cdc_ordinal"


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
    at_key = f"partition by key, epoch order by {_ORDER}"
    so_far = f"({at_key} rows between unbounded preceding and current row)"
    earlier = f"({at_key} rows between unbounded preceding and 1 preceding)"
    by_number = "partition by key, epoch order by occupant, step"

    def at_end(q: int) -> str:
        return f"least(1, greatest({q} + total - total_before, b, total + floor))"

    return _sql(
        f"""
from {{events}}
|> extend if(kind = {_NONE}, 0, kind) as a, if(kind in ({_ARRIVES}, {_IN_PLACE}), 1, 0) as b
-- 1. Transactions: runs of neighbours at this key (K3).
|> extend sum(a) over {so_far} as total,
    lag(struct(_cdc_transaction, _cdc_sequence, _cdc_ordinal)) over ({at_key}) as last_one
|> extend
    last_one is null or not (
      _cdc_transaction <=> last_one._cdc_transaction
      and (_cdc_transaction is not null or _cdc_sequence <=> last_one._cdc_sequence)) as starts,
    last_one is not null and {_same_position("last_one")} as tied
|> drop last_one
-- 2. Within each, prefix sums and maxima. The maxima of one run are kept 2^32 above those of the run before it, so
-- that a running maximum starts afresh with each run. `floor` is of the events before this one: far below zero, or
-- null, where it is the first of its run.
|> extend shiftleft(count_if(starts) over {so_far}, 32) as run,
    last(if(starts, total - a, null), true) over {so_far} as total_before,
    lead(starts, 1, true) over ({at_key}) as ends
|> extend max(run + b - total) over {earlier} - run as floor
-- 3. The length at each run's start: what the last run gave that does not depend on its own start.
|> extend coalesce(last(if(ends and {at_end(0)} = {at_end(1)}, {at_end(0)}, null), true) over {earlier}, 0) as at_start
-- 4. Occupants are numbered; an event acts on the oldest one.
|> extend greatest(at_start + total - a - total_before, total - a + floor) as length
|> extend kind = {_ARRIVES} or (kind = {_IN_PLACE} and length = 0) as comes, kind = {_LEAVES} and length > 0 as takes
|> extend count_if(comes) over {so_far} as come
|> select {_ID}, _cdc_op, _cdc_sequence, _cdc_ordinal,
    number, kind, key, epoch, old_key, mover, departure, comes, takes, takes or kind = {_IN_PLACE} as acts,
    case when comes then come when takes or kind = {_IN_PLACE} then come - length + 1 end as occupant,
    case when comes then 0 when takes then 2 else 1 end as step,
    if(comes, {_ENTITY}, null) as root
-- 5. By number: each placement, what acted on it, who took it away; then the next placement. One that comes right
-- behind another which nobody took: an insert of a known key (A1), or a key change that displaces (K7).
|> extend comes and lag(occupant is not null and not takes, 1, false) over ({by_number}) as behind
-- a key change's entity is not known yet: `root` is only what it starts if its old key is nowhere known
|> extend if(comes and (mover or not behind),
    struct(number, mover, if(mover, null, root) as entity, struct({_ID}) as id), null) as own
|> extend last(own, true) over ({by_number} rows between unbounded preceding and 1 preceding) as head_below
|> select {_ID}, _cdc_op, _cdc_sequence, _cdc_ordinal, number, kind, key, old_key, mover, departure, root,
    case when own is not null then own when acts or comes then head_below end as head,
    if(behind and mover, head_below, null) as displaced,
    case
      when mover then null  -- said once both halves are seen together
      when kind = {_NONE} then 'absorbed'
      when kind = {_IN_PLACE} then if(comes, 'unknown_update', 'update')
      when kind = {_LEAVES} then if(takes, 'delete', 'unknown_delete')
      else if(behind, 'known_insert', 'insert') end as origin""",
        events=events,
    )


# The id of an entity: a hash of its first position and key. Where changes tie, more than one entity can begin at one
# position and key: only then the arrival is hashed too, so that otherwise ids do not depend on it.
_ENTITY = f"""md5(to_json(
      struct(_cdc_sequence, _cdc_ordinal, key, if(tied or truncated_here, struct({_ID}), null) as arrival), {_JSON}))"""


def _links(events: DataFrame) -> DataFrame:
    """One row a key change, from its two halves.

    Rows: `number`; `up`, the key change that placed the row it takes along, or else `entity`, where that is
    known; `parent` (id of what placed that row, null if nothing did); `displaced` (as in `_placed`).
    """
    return _sql(
        """
select number, if(parent.mover, parent.number, null) as up,
  case when parent is null then root when not parent.mover then parent.entity end as entity, parent.id as parent, displaced
from (select number, head as parent from {events} where departure)
join (select number, root, displaced from {events} where mover and not departure) using (number)""",
        events=events,
    )


def _jumped(links: DataFrame, still_open: int) -> tuple[DataFrame, int]:
    """The entity of each key change (`number`, `entity`) by pointer jumping (K5), and the rounds that took.

    A key change whose old key was placed by anything else than a key change knows its entity at once. Every
    round the others look where their link points: that one's entity is known, or its link is taken over,
    which points twice as far.
    """
    links = links.select("number", "up", "entity")
    known, unknown = links.where("entity is not null"), links.where("entity is null")
    rounds = 0
    while still_open:
        if rounds == _MAX_ROUNDS:
            raise ResolverError(f"{still_open} key changes are linked in a circle: their positions contradict.")
        rounds += 1
        looked = _sql(
            """
select unknown.number, target.up, target.entity
from {unknown} as unknown
join (select * from {known} union all select * from {unknown}) as target on target.number = unknown.up""",
            known=known,
            unknown=unknown,
        )
        looked, counts = cut(looked, open="entity is null")
        still_open = counts["open"]
        known, unknown = known.unionByName(looked.where("entity is not null")), looked.where("entity is null")
    return known.select("number", "entity"), rounds


def _rows(events: DataFrame, links: DataFrame, entities: DataFrame) -> DataFrame:
    """The result, one row a change: see `Resolution`."""
    return _sql(
        f"""
with collisions as (
  select links.number, coalesce(displaced.entity, entities.entity) as displaced_entity
  from {{links}} as links left join {{entities}} as entities on entities.number = displaced.number
  where displaced is not null
),
found as (
  select number as through, parent, entities.entity, displaced_entity
  from {{links}} join {{entities}} as entities using (number) left join collisions using (number)
),
hanging as (
  select *, case when mover then number when head.mover then head.number end as through from {{events}} where not departure
),
resolved as (  -- only what hangs on a key change needs the links: the rest is not shuffled again
  select * except (through, displaced), head.entity as entity, null as displaced_entity, null as parent
  from hanging where through is null
  union all
  select hanging.* except (through, displaced), found.entity, if(mover, displaced_entity, null), parent
  from hanging join found on found.through = hanging.through
)
select {_ID}, _cdc_op, _cdc_sequence, _cdc_ordinal, entity,
  case when mover and parent is not null then old_key when kind = {_LEAVES} then key end as key_before,
  if(kind not in ({_NONE}, {_LEAVES}), key, null) as key_after,
  if(mover, if(parent is null, 'unknown_key', 'key_change'), origin) as origin,
  displaced_entity,
  case when mover then parent when head.id <> struct({_ID}) then head.id end as acts_on
from resolved""",
        events=events,
        links=links,
        entities=entities,
    )
