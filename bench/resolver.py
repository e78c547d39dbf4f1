"""What the resolver of key changes takes, beside a loop that follows one link of every chain a round.

    python -m bench.resolver [--changes 1000000] [--key-changes 200000] [--longest 1024] [--only-longest] [--rival-rounds 30]

Chains of 1, 2, 4, … up to `--longest` key changes, as many of each length (`--only-longest`: all as long as the longest);
the other changes update keys that never change. Prints wall seconds and rounds of each, and the most memory that Python and
Java have held by then. The rival is spared all but the key changes' links, which it takes from ranking each key's changes
once. It ends after so many rounds; its whole time is then told from the rounds that it did, and said to be so.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from dbt.adapters.sparkdelta.session import root_session
from delta_cdc.resolver import resolve

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


def changes(spark: Any, count: int, key_changes: int, longest: int, only_longest: bool) -> tuple[Any, int]:
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
        looked = still_open.join(newest.selectExpr("number as up", "entity"), "up", "left").localCheckpoint()
        newest, still_open = looked.where("entity is not null"), looked.where("entity is null").select("number", "up")
        count, done = still_open.count(), done + 1
        took.append(time.monotonic() - started)
    return done, count, sum(took[-10:]) / len(took[-10:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--key-changes", type=int, default=200_000)
    parser.add_argument("--longest", type=int, default=1_024)
    parser.add_argument("--only-longest", action="store_true")
    parser.add_argument("--rival-rounds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="delta-cdc-bench-") as folder:
        spark = root_session(root=folder, tuned_for="large_tables")
        few, _ = changes(spark, 1_000, 200, 8, False)
        resolve(few).rows.write.format("noop").mode("overwrite").save()  # classes are loaded, and code is compiled
        one_link_a_round(few, 8)
        rows, key_changes = changes(spark, given.changes, given.key_changes, given.longest, given.only_longest)
        print(f"{rows.count():,} changes, {key_changes:,} key changes, longest chain {given.longest:,}; before: {_memory()}")

        started = time.monotonic()
        found = resolve(rows)
        found.rows.write.format("noop").mode("overwrite").save()
        took = time.monotonic() - started
        most = math.ceil(math.log2(given.longest)) + 1
        assert found.key_changes == key_changes
        assert found.rounds <= most, found.rounds
        print(f"resolver: {took:.1f} s, {found.rounds} rounds (at most {most}); {_memory()}", flush=True)

        started = time.monotonic()
        rounds, still_open, each = one_link_a_round(rows, given.rival_rounds)
        took = time.monotonic() - started
        print(f"one link a round: {took:.1f} s, {rounds} rounds, {still_open:,} links open; {each:.2f} s a round")
        if still_open:  # the first key change of a chain needs none
            whole = took + (given.longest - 1 - rounds) * each
            print(f"to its end, with {given.longest - 1:,} rounds like the last ten: {whole:,.0f} s (not run)")
    os._exit(0)  # Spark's own end takes seconds


def _memory() -> str:
    """The most that Python and Java have held, resident."""
    java = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True, check=True).stdout.strip()
    told = []
    for name, process in (("Python", "self"), ("Java", java)):
        match = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
        assert match
        told.append(f"{name} {int(match[1]) / 1024:,.0f} MB")
    return ", ".join(told)


if __name__ == "__main__":
    main()
