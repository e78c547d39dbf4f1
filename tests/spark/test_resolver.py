"""The resolver against the oracle, and rule by rule.

A Spark run costs seconds, a history is tens of rows: so many histories go through one run. Each has its
number as the first field of key and sequence, which keeps them apart: they share no key, and what one
truncates lies below the next one's changes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest
from tests import oracle
from tests.histories import drawn, histories, wild_changes

from delta_cdc.resolver import COLUMNS, ResolverError, resolve, rows_schema

pytestmark = pytest.mark.spark

SCHEMA = """
    _cdc_op string, _cdc_key struct<history: int, id: bigint>, _cdc_key_before struct<history: int, id:
    bigint>, _cdc_sequence struct<history: int, lsn: bigint, place: bigint>, _cdc_ordinal bigint,
    _cdc_transaction string, _cdc_batch_id bigint, _cdc_change_set string, _cdc_row bigint,
    _cdc_change_set_order bigint
"""


class Resolved:
    """One history's resolved rows. A change is named by (batch, set, row), as in the oracle's dicts."""

    def __init__(self, changes):
        self.changes = {identity(change): change for change in changes}
        self.rows = {}

    def add(self, row):
        self.rows[row._cdc_batch_id, int(row._cdc_change_set.split("/")[1]), row._cdc_row] = row

    @property
    def members(self):
        """{entity: its changes, in order}"""
        found = defaultdict(list)
        for name, row in self.rows.items():
            if row.entity is not None:
                found[row.entity].append(self.changes[name])
        return {entity: oracle.in_order(changes) for entity, changes in found.items()}

    @property
    def displaced(self):
        """{displaced entity: name of the key change that did it}"""
        return {row.displaced_entity: name for name, row in self.rows.items() if row.displaced_entity is not None}

    @property
    def final(self):
        """Live rows by key: the last state of each entity that no delete, truncate or collision ended."""
        order = [identity(change) for change in oracle.in_order(self.changes.values())]
        truncated = max((order.index(n) for n, change in self.changes.items() if change["op"] == "T"), default=-1)
        live, displaced = {}, self.displaced
        for entity, changes in self.members.items():
            last = self.rows[identity(changes[-1])]
            if last.key_after is None or entity in displaced or order.index(identity(changes[-1])) < truncated:
                continue
            key = (last.key_after.id,)
            assert key not in live, f"two rows with key {key}"
            live[key] = oracle.folded(changes)
        return live

    def entity(self, row, batch=0):
        return self.rows[batch, 0, row].entity

    def origin(self, row, batch=0):
        return self.rows[batch, 0, row].origin


def identity(change):
    return change["batch"], change["set"], change["row"]


def frame(spark, many):
    """The changes of many histories as what `resolve` takes."""
    rows = []
    for number, changes in enumerate(many):
        for change in changes:
            sequence = change["sequence"] or ()
            key, before = (None if change[name] is None else (number, *change[name]) for name in ("key", "key_before"))
            rows.append(
                (
                    change["op"],
                    key,
                    before,
                    (number, *sequence, *(None,) * (2 - len(sequence))),
                    change["ordinal"],
                    change["transaction"],
                    change["batch"],
                    f"{number}/{change['set']}",
                    change["row"],
                    change.get("set_order", change["set"]),
                )
            )
    return spark.createDataFrame(rows, SCHEMA)


def resolved(spark, many, **options):
    """(Resolution, [Resolved, one a history])"""
    result = resolve(frame(spark, many), **options)
    each = [Resolved(changes) for changes in many]
    for row in result.rows.collect():
        each[int(row._cdc_change_set.split("/")[0])].add(row)
    return result, each


# -- random histories
# ------------------------------------------------------------------------------------------


def longest_chain(changes):
    return max((sum(map(oracle.is_key_change, entity.changes)) for entity in oracle.entities(changes)[0]), default=0)


def assert_as_the_oracle_says(found, changes):
    entities, live = oracle.entities(changes)
    expected = {frozenset(map(identity, entity.changes)): entity for entity in entities}
    assert {frozenset(map(identity, members)) for members in found.members.values()} == set(expected)
    assert found.final == {key: oracle.folded(entity.changes) for key, entity in live.items()}

    first = {entity: identity(members[0]) for entity, members in found.members.items()}
    assert {first[entity]: by for entity, by in found.displaced.items()} == {
        identity(entity.changes[0]): identity(entity.ended_by)
        for entity in entities
        if entity.ended_by and oracle.is_key_change(entity.ended_by)
    }
    for name, row in found.rows.items():
        change = found.changes[name]
        is_root = row.entity is not None and first[row.entity] == name
        if row.acts_on is not None:
            placed_by = (
                row.acts_on._cdc_batch_id,
                int(row.acts_on._cdc_change_set.split("/")[1]),
                row.acts_on._cdc_row,
            )
            assert found.rows[placed_by].entity == row.entity
        assert (row.acts_on is None) == (is_root or row.entity is None)
        if row.origin == "absorbed":
            assert change["op"] == "D"
            continue
        if change["op"] == "D":
            assert (row.key_after, row.key_before.id) == (None, *change["key"])
            assert row.origin == ("delete" if row.entity else "unknown_delete")
        else:
            assert row.key_after.id == change["key"][0]
            assert (
                row.origin
                in {
                    "U": ("update", "unknown_update", "key_change", "unknown_key"),
                    "I": ("insert", "known_insert", "key_change", "unknown_key"),
                    "R": ("insert", "known_insert", "key_change", "unknown_key"),
                }[change["op"]]
            )
            assert is_root == (row.origin in ("insert", "unknown_update", "unknown_key"))
            assert (row.key_before is not None) == (row.origin == "key_change")


@pytest.fixture(scope="module")
def feeds():
    """Random histories as their feeds would have them: all that was delivered, and only its first part."""
    examples = drawn(histories(), 260)
    assert all(len(example.changes) >= 30 for example in examples)
    some = [(example, example.delivered[: len(example.delivered) * 2 // 3]) for example in examples[::4]]
    return [(example, example.delivered) for example in examples] + some


@pytest.mark.parametrize("pairs", [False, True], ids=["K1_to_K5", "K6_split_pairs"])
def test_O2_random_histories_resolve_as_the_oracle_replays_them(spark, feeds, pairs, record_property):
    chosen = [
        (history, oracle.without_duplicates(delivered))
        for history, delivered in feeds
        if (history.style == "split pairs") == pairs
    ]
    wild = drawn(wild_changes(), 120)[pairs::2]
    many = [changes for _, changes in chosen] + wild
    result, found = resolved(spark, many, pair_split_key_changes=pairs)
    as_read = [oracle.with_pairs(changes) if pairs else changes for changes in many]
    for history, changes in zip(found, as_read, strict=True):
        assert_as_the_oracle_says(history, changes)

    # What was delivered in full ends with what the source held.
    for (history, changes), each in zip(chosen, found, strict=False):
        if len(changes) == len(history.changes):
            assert {key: row["id"] for key, row in each.final.items()} == {key: key[0] for key in history.source}

    origins = Counter(row.origin for history in found for row in history.rows.values())
    longest = max(map(longest_chain, as_read))
    assert result.rounds <= math.ceil(math.log2(longest)) + 1
    assert result.changes == origins.total() == sum(c["op"] != "T" for changes in many for c in changes)
    assert (result.unresolved, result.key_changes) == (origins["unknown_key"], origins["key_change"])
    assert (result.known_inserts, result.unknown_updates) == (
        origins["known_insert"],
        origins["unknown_update"],
    )
    assert (result.unknown_deletes, result.absorbed) == (origins["unknown_delete"], origins["absorbed"])
    assert result.collisions == sum(len(history.displaced) for history in found) > 0
    features = Counter(feature for history, _ in chosen for feature in history.features)
    record_property("told", f"{len(many)} histories, {len(wild)} wild; longest chain {longest}, rounds {result.rounds}")
    record_property("told", f"  holding a {dict(sorted(features.items()))}; origins {dict(sorted(origins.items()))}")
    for feature in ("chain", "cycle", "swap", "shift", "reuse", "late", "split"):
        assert features[feature], feature
    if not pairs:
        assert len(chosen) >= 200


# -- rule by rule
# ----------------------------------------------------------------------------------------------


def change(op, key, sequence, *, before=None, row=None, batch=0, **others):
    return {
        "op": op,
        "key": None if key is None else (key,),
        "key_before": None if before is None else (before,),
        "sequence": sequence if sequence is None or isinstance(sequence, tuple) else (sequence,),
        "ordinal": None,
        "transaction": None,
        "batch": batch,
        "set": 0,
        "row": row,
        "values": {},
        **others,
    }


def numbered(*changes):
    """In the order in which they arrive, all in one change set."""
    return [{**each, "row": row, "values": {"row": row, **each["values"]}} for row, each in enumerate(changes)]


THREE = [change("I", 1, 1), change("I", 2, 1), change("I", 3, 1)]
DIRECTED = {
    "chain": numbered(change("I", 1, 1), change("U", 2, 2, before=1), change("U", 3, 3, before=2), change("U", 3, 4)),
    "cycle": numbered(
        change("I", 1, 1),
        change("I", 2, 1),
        change("U", 0, 2, before=1),
        change("U", 1, 3, before=2),
        change("U", 2, 4, before=0),
    ),
    "reuse": numbered(
        change("I", 1, 1),
        change("U", 9, 2, before=1),
        change("I", 1, 3),
        change("D", 9, 4),
        change("U", 1, 5),
    ),
    "backwards": numbered(change("U", 3, 3, before=2), change("U", 2, 2, before=1), change("I", 1, 1)),
    "shift": numbered(*THREE, *(change("U", key + 1, 5, before=key) for key in (1, 2, 3))),
    "shift down": numbered(*THREE, *(change("U", key - 1, 5, before=key) for key in (3, 2, 1))),
    "shift twice": numbered(
        *THREE,
        *(change("U", key + 1, (5, place), before=key, transaction="t") for place, key in enumerate((1, 2, 3))),
        *(change("U", key + 1, (6, place), before=key, transaction="t") for place, key in enumerate((2, 3, 4))),
    ),
    "swap": numbered(*THREE, change("U", 2, 5, before=1), change("U", 1, 5, before=2)),
    "not one transaction": numbered(
        *THREE,
        change("U", 2, 5, before=1, transaction="t"),
        change("U", 1, 5, before=2, transaction="u"),
    ),
    "half a swap": numbered(*THREE, change("U", 2, 5, before=1), change("U", 2, 6)),
    "late mover": [
        *numbered(*THREE, change("U", 2, 5, before=1), change("U", 2, 6)),
        change("U", 7, 4, before=2, batch=1, row=0, values={"row": 9}),
    ],
    "unknown": numbered(
        change("U", 5, 1, before=4),
        change("U", 6, 2, before=5),
        change("D", 8, 3),
        change("U", 7, 4),
        change("I", 7, 5),
    ),
    "known later": [
        *numbered(change("U", 5, 2, before=4)),
        change("I", 4, 1, batch=1, row=0, values={"a": 1}),
    ],
    "in a transaction": numbered(
        *THREE,
        change("U", 2, 5, before=1),  # queue at 2: two, one
        change("U", 2, 5),  # changes two, who has held 2 longest
        change("D", 2, 5),  # takes two away
        change("U", 2, 6),  # one
    ),
    "insert behind": numbered(change("I", 1, 1), change("D", 1, 5), change("I", 1, 5), change("U", 1, 5)),
    "again and again": numbered(
        *(change("R", 1, place) for place in range(1, 40)), change("U", 2, 50, before=1), change("I", 2, 51)
    ),
    "truncate": numbered(*THREE, change("T", None, 5), change("U", 9, 6, before=1), change("U", 2, 6), change("I", 4, 4)),
    "same place": numbered(*(change(op, 1, 5) for op in "IDIDI"), change("T", None, 5), change("I", 1, 5)),
    "tie": [
        change("I", 1, 1, row=0, values={"row": 0}),
        change("I", 1, 5, row=1, values={"row": 1}, set=1, set_order=0),
        change("D", 1, 5, row=1, set=2, set_order=0),
    ],
    "same key": numbered(change("I", 1, 1), change("U", 1, 2, before=1), change("I", 1, 3, before=1)),
}
PAIRS = {
    "told": numbered(change("I", 1, 1), change("D", 1, 5), change("I", 2, 5, before=1)),
    "untold": numbered(change("I", 1, 1), change("D", 1, 5), change("I", 2, 5)),
    "in two files": [
        *numbered(change("I", 1, 1), change("I", 2, 5)),
        change("D", 1, 5, batch=1, row=0),
    ],
    "other transaction": numbered(change("I", 1, 1), change("D", 1, 5, transaction="t"), change("I", 2, 5, transaction="u")),
    "two of each": numbered(*THREE[:2], change("D", 1, 5), change("D", 2, 5), change("I", 3, 5), change("I", 4, 5)),
    "one told, one not": numbered(
        *THREE[:2], change("D", 1, 5), change("I", 3, 5, before=1), change("D", 2, 5), change("I", 4, 5)
    ),
    "same key": numbered(change("I", 1, 1), change("D", 1, 5), change("I", 1, 5)),
    "reads": numbered(change("R", 1, None), change("R", 2, None), change("D", 1, 5)),
}


@pytest.fixture(scope="module")
def case(spark):
    names, found = list(DIRECTED), resolved(spark, list(DIRECTED.values()))[1]
    return dict(zip(names, found, strict=True))


@pytest.fixture(scope="module")
def pair(spark):
    names, found = list(PAIRS), resolved(spark, list(PAIRS.values()), pair_split_key_changes=True)[1]
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", [name for name in DIRECTED if name != "tie"])  # the oracle knows sets by order only
def test_directed_cases_are_as_the_oracle_says(case, name):
    assert_as_the_oracle_says(case[name], DIRECTED[name])


@pytest.mark.parametrize("name", PAIRS)
def test_directed_pairs_are_as_the_oracle_says(pair, name):
    assert_as_the_oracle_says(pair[name], oracle.with_pairs(PAIRS[name]))


def entities(found, *rows):
    """Small numbers for the entities of these rows: equal where they are one."""
    seen = [found.entity(row) for row in rows]
    return [seen.index(entity) for entity in seen]


def test_K2_chain_is_one_entity(case):
    assert entities(case["chain"], 0, 1, 2, 3) == [0, 0, 0, 0]
    assert case["chain"].rows[0, 0, 3].acts_on._cdc_row == 2
    assert list(case["chain"].final) == [(3,)]


def test_K2_cycle_keeps_both_rows(case):
    assert entities(case["cycle"], 0, 1, 2, 3, 4) == [0, 1, 0, 1, 0]


def test_K2_a_vacated_key_is_anothers(case):
    assert entities(case["reuse"], 0, 1, 2, 3, 4) == [0, 0, 2, 0, 2]
    assert list(case["reuse"].final) == [(1,)]


def test_K2_arrival_does_not_count(case):
    assert entities(case["backwards"], 0, 1, 2) == [0, 0, 0]
    assert not case["backwards"].displaced


def test_K3_shift_keeps_every_row(case):
    for name in ("shift", "shift down"):
        assert entities(case[name], 0, 1, 2) == [0, 1, 2]
        assert len(case[name].final) == 3
    assert entities(case["shift"], 0, 1, 2, 3, 4, 5) == [0, 1, 2, 0, 1, 2]
    assert sorted(case["shift"].final) == [(2,), (3,), (4,)]
    assert entities(case["shift twice"], 0, 1, 2, 6, 7, 8) == [0, 1, 2, 0, 1, 2]


def test_K3_swap_keeps_both_rows(case):
    assert entities(case["swap"], 0, 1, 3, 4) == [0, 1, 0, 1]
    assert not case["swap"].displaced


def test_K3_unequal_transactions_are_two_whatever_the_sequence(case):
    # The first ends with row 2 displaced; the second then takes away who came.
    assert entities(case["not one transaction"], 0, 1, 3, 4) == [0, 1, 0, 0]
    assert list(case["not one transaction"].displaced.values()) == [(0, 0, 3)]


def test_K5_an_old_key_nowhere_known_is_an_upsert_until_it_is(case):
    unknown = case["unknown"]
    assert [unknown.origin(row) for row in range(5)] == [
        *("unknown_key", "key_change", "unknown_delete", "unknown_update", "known_insert")
    ]
    assert entities(unknown, 0, 1) == [0, 0]
    assert unknown.rows[0, 0, 0].key_before is None
    assert case["known later"].origin(0) == "key_change"
    assert case["known later"].final == {(5,): {"row": 0, "a": 1}}


def test_K6_split_pair_is_one_key_change(pair):
    for name in ("told", "untold"):
        assert [pair[name].origin(row) for row in range(3)] == ["insert", "absorbed", "key_change"]
        assert entities(pair[name], 0, 2) == [0, 0]
        assert pair[name].entity(1) is None
    assert pair["in two files"].origin(1) == "key_change"
    assert pair["in two files"].origin(0, batch=1) == "absorbed"


def test_K6_split_pair_is_not_guessed(pair):
    for name in ("other transaction", "two of each", "same key"):
        assert not {"absorbed", "key_change"} & {row.origin for row in pair[name].rows.values()}
    assert [pair["one told, one not"].origin(row) for row in range(2, 6)] == ["absorbed", "key_change"] * 2


def test_K6_pairs_only_where_asked_for(spark):
    found = resolved(spark, [PAIRS["untold"]])[1][0]
    assert [found.origin(row) for row in range(3)] == ["insert", "delete", "insert"]


def test_K7_who_holds_a_key_longest_acts(case):
    assert entities(case["in a transaction"], 0, 1, 3, 4, 5, 6) == [0, 1, 0, 1, 1, 0]
    assert entities(case["insert behind"], 0, 1, 2, 3) == [0, 0, 2, 2]


def test_K7_collision_restored_when_the_mover_comes_late(case):
    half, whole = case["half a swap"], case["late mover"]
    assert half.displaced == {half.entity(1): (0, 0, 3)}
    assert sorted(half.final) == [(2,), (3,)]
    assert not whole.displaced
    assert entities(whole, 0, 1, 3, 4) == [0, 1, 0, 0]
    assert whole.entity(0, batch=1) == whole.entity(1)
    assert sorted(whole.final) == [(2,), (3,), (7,)]


def test_A1_an_insert_of_a_known_key_updates_it(case):
    found = case["again and again"]
    assert {found.origin(row) for row in range(1, 39)} == {"known_insert"}
    assert len(found.members) == 1


def test_A8_a_truncate_ends_what_is_below_it(case):
    found = case["truncate"]
    assert entities(found, 0, 1, 4, 5) == [0, 1, 2, 3]
    assert (found.origin(4), found.origin(5)) == ("unknown_key", "unknown_update")
    assert sorted(found.final) == [(2,), (9,)]


def test_P4_entities_of_one_position_and_key_are_told_apart(case):
    assert len(case["same place"].members) == 4


def test_O3_an_upsert_beats_a_delete_only_when_all_else_is_equal(case):
    # The delete takes away who was there, so that the insert is a row of its own.
    found = case["tie"]
    assert found.rows[0, 2, 1].origin == "delete"
    assert found.rows[0, 1, 1].origin == "insert"


def test_K1_an_unchanged_old_key_is_no_key_change(case):
    assert [case["same key"].origin(row) for row in range(3)] == ["insert", "update", "known_insert"]


def test_O5_a_read_without_position_is_below_every_truncate(spark):
    changes = numbered(change("I", 1, 1), change("U", 1, 2), change("R", 1, None), change("R", 2, None))
    rows = frame(spark, [[*changes, change("T", None, 3, row=8), change("U", 2, 6, row=9)]])
    from pyspark.sql import functions as F

    nulled = rows.withColumn("_cdc_sequence", F.when(F.col("_cdc_sequence.lsn").isNotNull(), F.col("_cdc_sequence")))
    found = {row._cdc_row: row for row in resolve(nulled).rows.collect()}
    assert found[2].origin == found[3].origin == "insert"
    assert found[0].origin == "known_insert"
    assert found[2].entity == found[0].entity == found[1].entity
    assert found[9].origin == "unknown_update"


def chain(spark, length):
    """A row inserted with key 0, then moved from key to key; and that many more rows moved once."""
    from pyspark.sql import functions as F

    def key(column):
        return F.when(column >= 0, F.struct(F.lit(0).alias("history"), column.alias("id")))

    place = F.col("id")
    changes = spark.range(length + 1).select(
        F.when(place == 0, "I").otherwise("U").alias("_cdc_op"),
        key(place).alias("_cdc_key"),
        key(place - 1).alias("_cdc_key_before"),
        F.struct(F.lit(0).alias("history"), place.alias("lsn"), F.lit(0).cast("bigint").alias("place")).alias("_cdc_sequence"),
        F.lit(None).cast("bigint").alias("_cdc_ordinal"),
        F.lit(None).cast("string").alias("_cdc_transaction"),
        (F.lit(99) - place % 7).alias("_cdc_batch_id"),
        F.lit("0/0").alias("_cdc_change_set"),
        place.alias("_cdc_row"),
        F.lit(0).cast("bigint").alias("_cdc_change_set_order"),
    )
    return changes.select(*COLUMNS)


def test_K5_rounds_are_logarithmic(spark):
    result = resolve(chain(spark, 1024))
    assert result.rounds <= 11
    assert result.key_changes == 1024
    assert result.rows.select("entity").distinct().count() == 1


def test_K5_what_happens_in_place_lengthens_no_chain(spark):
    assert resolve(frame(spark, [DIRECTED["again and again"]])).rounds == 0


def test_O2_ids_of_entities_do_not_depend_on_arrival(spark):
    def ids(shuffled):
        found = resolved(spark, [shuffled])[1][0]
        return {(*row._cdc_sequence, row._cdc_ordinal): row.entity for row in found.rows.values()}

    once = next(example for example in drawn(histories(styles=("ordinal",)), 20) if "late" in example.features)
    in_order = [{**each, "batch": 0, "set": 0, "row": row} for row, each in enumerate(once.changes)]
    assert ids(oracle.without_duplicates(once.delivered)) == ids(in_order)


def test_no_changes_give_no_rows(spark):
    result = resolve(frame(spark, [THREE]).limit(0))
    assert (result.changes, result.rounds, result.rows.count()) == (0, 0, 0)


def test_the_schema_is_known_without_resolving(spark):
    from pyspark.sql import functions as F

    staged = frame(spark, [numbered(*THREE)]).select("*", F.col("_cdc_key.history"), F.col("_cdc_key.id"))
    found = resolve(frame(spark, [numbered(*THREE)])).rows.schema
    assert [(f.name, f.dataType.simpleString()) for f in rows_schema(staged.schema, ["history", "id"])] == [
        (f.name, f.dataType.simpleString()) for f in found
    ]


def test_missing_columns_are_named(spark):
    with pytest.raises(ResolverError, match="changes lack _cdc_key_before, _cdc_row"):
        resolve(frame(spark, [numbered(*THREE)]).drop("_cdc_row", "_cdc_key_before"))


def test_two_changes_with_one_id_are_refused(spark):
    changes = numbered(change("I", 1, 1), change("U", 2, 2, before=1), change("U", 3, 3, before=2))
    changes[2]["row"] = 1
    with pytest.raises(ResolverError, match="must have its own"):
        resolve(frame(spark, [changes]))


def test_an_unknown_operation_is_refused(spark):
    with pytest.raises(Exception, match="operation not known: X"):
        resolve(frame(spark, [numbered(change("X", 1, 1))]))
