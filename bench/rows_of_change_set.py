"""B6: change sets of more and more rows into the same final

Changes of the newest keys, or of keys scattered over the table: three in ten are new, the others updated, each tenth of these
deleted. Up to some thousand keys stand as values in the merge, more as their range, which for recent keys lets the same files
through, for scattered ones all. `dbt run` through a user's project in one warm process; of each size a run that does not count,
then those that do. Seconds of the models `staging` and `final`, of `both`, and of the whole `run`. Growth is the time's, as a
share of the change set's, from one size to the next: 1 is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.grown import PARTS, Grown, Keys, repeated
from bench.result import Result, target

SIZES = {
    "small": {"into": 2_000_000, "changes": (1_000, 10_000, 100_000), "repeats": 2},
    "full": {"into": 5_000_000, "changes": (1_000, 10_000, 100_000, 1_000_000), "repeats": 3},
}
# A change set of scattered keys is at most this share of the table, for none comes twice: Grown.deliver.
SHARE = 20


def measure(work: Path, *, into: int, changes: tuple[int, ...], repeats: int) -> Result:
    (table,) = Grown.all_of(work, {"t": into}).values()
    sizes: dict[Keys, tuple[int, ...]] = {"recent": changes, "scattered": tuple(n for n in changes if n * SHARE <= into)}
    took = {keys: {count: repeated([table], count, repeats, keys)[0] for count in some} for keys, some in sizes.items()}
    growth = {keys: _growth(each) for keys, each in took.items()}
    return {
        "tables": [
            {
                "head": ["keys", "changes", *(f"{part}, s" for part in PARTS), "growth of both"],
                "rows": [
                    [keys, f"{count:,}", *(parts[part] for part in PARTS), growth[keys].get(count, "")]
                    for keys, each in took.items()
                    for count, parts in each.items()
                ],
            }
        ],
        "targets": [
            target(f"{keys} keys: growth of both models, at any step (1 is linear)", max(each.values()), 1)
            for keys, each in growth.items()
            if each
        ],
        "plots": [
            {"title": f"Into {into:,} rows", "x": "changes", "y": "seconds", "log": True, "lines": {
                f"{part}, {keys} keys": [(count, median(parts[part])) for count, parts in each.items()]
                for keys, each in took.items() if each for part in ("staging", "final")
            }}
        ],
        "compared": "After each run final had the change set's rows, without those that it deletes.",
    }  # fmt: skip


def _growth(took: Mapping[int, Mapping[str, Sequence[float]]]) -> dict[int, float]:
    """Of each size but the first: the growth of both models' time since the size before, as a share of the size's own."""
    both = {count: median(parts["both"]) for count, parts in took.items()}
    return {after: round(both[after] / both[before] / (after / before), 3) for before, after in pairwise(both)}
