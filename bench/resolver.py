"""B8: the resolver of key changes beside a loop that follows one link of every chain a round

Chains of 1, 2, 4, … key changes, as many of each length, among changes of keys that never change; and one long chain alone.
In one warm process with generated code. The loop is spared all but the key changes' links, which it takes from ranking each
key's changes once, and the ranking again in each round. It ends after some rounds; its whole time is then told from the last
ten of them. Heap: of Java, in use after a collection, with the changes kept, before the resolver and when nobody uses its rows
any more."""

from __future__ import annotations

import gc
import math
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from bench.result import FLAT, Cell, Result, Target, target
from bench.warm import heap_megabytes, say
from dbt.adapters.sparkdelta.session import root_session
from delta_cdc.resolver import resolve

SIZES = {
    "small": {"changes": 200_000, "key_changes": 40_000, "longest": 1_024, "chain": 10_000, "rival_rounds": 15},
    "full": {"changes": 1_000_000, "key_changes": 200_000, "longest": 1_024, "chain": 100_000, "rival_rounds": 30},
}
KEY = "named_struct('id', {})"
# each chain has keys of its own, its changes stand far apart: between two of them are those of the others
CHAINS = f"""
select if(place = 0, 'I', 'U') as _cdc_op, {KEY.format("chain * 10000000L + place")} as _cdc_key,
  if(place > 0, {KEY.format("chain * 10000000L + place - 1")}, null) as _cdc_key_before, place * 1000000L + chain as lsn
from (
  select id as chain, explode(sequence(0, {{length}})) as place
  from range({{chains}})
)
"""
OTHERS = f"""
select 'U' as _cdc_op, {KEY.format("-1 - id % greatest({others} div 4, 1)")} as _cdc_key, null as _cdc_key_before,
  id * 1000 as lsn
from range({{others}})
"""
CHANGES = """
select _cdc_op, _cdc_key, _cdc_key_before, struct(lsn) as _cdc_sequence, cast(null as bigint) as _cdc_ordinal,
  cast(lsn as string) as _cdc_transaction, 0L as _cdc_batch_id, 'set' as _cdc_change_set,
  row_number() over (order by lsn, _cdc_key) as _cdc_row, 0L as _cdc_change_set_order
from ({})
"""


def made_changes(spark: Any, count: int, key_changes: int, longest: int, only_longest: bool) -> tuple[Any, int]:
    """The changes, kept by Spark, and how many of them are key changes."""
    lengths = [longest] if only_longest else [2**power for power in range(int(math.log2(longest)) + 1)]
    chains = max(key_changes // sum(lengths), 1)
    parts, done = [], 0
    for place, length in enumerate(lengths):
        sql = CHAINS.format(length=length, chains=chains)
        parts.append(sql.replace("id as chain", f"id * {len(lengths)} + {place} as chain"))
        done += chains * (length + 1)
    if count > done:
        parts.append(OTHERS.format(others=count - done))
    return spark.sql(CHANGES.format(" union all ".join(parts))).localCheckpoint(), chains * sum(lengths)


def one_link_a_round(given: Any, rounds: int) -> tuple[int, int, float]:
    """Rank the changes of each key, then hand entities on by one link a round until none is open, or rounds are over.
    Returns rounds, links still open, and the seconds of the last ten rounds, one with another."""
    events = given.selectExpr(
        "_cdc_row as number", "_cdc_sequence as place",
        "_cdc_key_before is not null as mover",
        "inline(if(_cdc_key_before is null, array(struct(_cdc_key.id as key, false as leaves)),"
        " array(struct(_cdc_key_before.id as key, true as leaves), struct(_cdc_key.id as key, false as leaves))))",
    )  # fmt: skip
    ranked = events.selectExpr(
        "number", "leaves",
        "last(if(leaves, null, struct(number, mover)), true) over (partition by key order by place "
        "rows between unbounded preceding and 1 preceding) as placed",
    )  # fmt: skip
    links = ranked.where("leaves").selectExpr(
        "number", "if(placed.mover, placed.number, null) as up",
        "if(placed.mover, null, coalesce(placed.number, number)) as entity",
    ).localCheckpoint()  # fmt: skip
    newest, still_open = links.where("entity is not null"), links.where("entity is null").select("number", "up")
    done, count, took = 0, still_open.count(), [0.0]
    while count and done < rounds:
        started = time.monotonic()
        looked = _kept(still_open.join(newest.selectExpr("number as up", "entity"), "up", "left"))
        newest, still_open = looked.where("entity is not null"), looked.where("entity is null").select("number", "up")
        count, done = still_open.count(), done + 1
        took.append(time.monotonic() - started)
    return done, count, sum(took[-10:]) / len(took[-10:])


def _kept_megabytes() -> int:
    """Of Java's heap, without blocks of frames that nobody has any more: one collection finds these, Spark drops them, and the
    second one counts."""
    gc.collect()
    heap_megabytes()
    time.sleep(5)
    return heap_megabytes()


def _kept(frame: Any) -> Any:
    """Its rows, computed, without the size that Spark guesses: that of a join of joins is squared each round, and a number of
    2^30 digits ends the process."""
    kept = frame.localCheckpoint()._jdf
    session = frame.sparkSession
    return DataFrame(session._jsparkSession.createDataFrame(kept.toJavaRDD(), kept.schema()), session)


def measure(work: Path, *, changes: int, key_changes: int, longest: int, chain: int, rival_rounds: int) -> Result:
    """key_changes: about so many of the changes. longest: key changes of the longest chains. chain: of the long one."""
    spark = root_session(root=work, tuned_for="large_tables")
    few, _ = made_changes(spark, 1_000, 200, 8, False)  # classes are loaded, and code is compiled
    found = resolve(few).rows.selectExpr("count(distinct entity)").collect()[0][0]
    entities = few.selectExpr(
        "count(distinct if(_cdc_op = 'I', _cdc_key, null)) + count(distinct if(_cdc_key.id < 0, _cdc_key, null))"
    )
    assert found == entities.collect()[0][0], f"{found} entities"
    one_link_a_round(few, 8)
    rows: list[list[Cell]] = []
    targets: list[Target] = []
    for title, count, moved, length, alone in (
        (f"chains up to {longest:,}", changes, key_changes, longest, False),
        (f"one chain of {chain:,}", chain + 1, chain, chain, True),
    ):
        given, moved = made_changes(spark, count, moved, length, alone)
        before = _kept_megabytes()
        started = time.monotonic()
        resolved = resolve(given)
        resolved.rows.write.format("noop").mode("overwrite").save()
        ours = time.monotonic() - started
        assert resolved.key_changes == moved, f"{resolved.key_changes} key changes of {moved}"
        did_rounds = resolved.rounds
        del resolved
        after = _kept_megabytes()
        most = math.ceil(math.log2(length)) + 1

        started = time.monotonic()
        rounds, still_open, each = one_link_a_round(given, rival_rounds)
        did = time.monotonic() - started
        # the first key change of a chain needs no round
        whole = did + (length - 1 - rounds) * each if still_open else did
        rows.append([title, f"{given.count():,}", f"{moved:,}", round(ours, 1), did_rounds, most, before, after,
                     round(did, 1), rounds, round(whole), length - 1 if still_open else rounds])  # fmt: skip
        say(f"{rows[-1]}")
        targets += [
            target(f"{title}: rounds", did_rounds, most),
            target(f"{title}: heap after the resolver to that before", after / before, FLAT),
            target(f"{title}: the resolver to the loop to its end", ours / whole, 0.1),
        ]
        del given
    ours_head = ["", "changes", "key changes", "resolver, s", "rounds", "most rounds", "heap before, MB", "after, MB"]
    head = [*ours_head, "loop, s", "its rounds", "to its end, s", "rounds"]
    return {
        "tables": [{"head": head, "rows": rows}],
        "targets": targets,
        "plots": [],
        "compared": "The resolver found all key changes, and of a small case as many entities as there are.",
    }
