"""B6: change sets of more and more rows into the same final

Changes of the newest keys: three in ten are new, the others updated, each tenth of these deleted. `dbt run` through a user's
project in one warm process; of each size a run that does not count, then those that do. Seconds of the models `staging` and
`final`, of `both`, and of the whole `run`. Growth is the time's, as a share of the change set's, from one size to the next: 1 is
linear.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.grown import PARTS, Grown, repeated
from bench.result import Result, target

SIZES = {
    "small": {"into": 2_000_000, "changes": (1_000, 10_000, 100_000), "repeats": 2},
    "full": {"into": 5_000_000, "changes": (1_000, 10_000, 100_000, 1_000_000), "repeats": 3},
}


def measure(work: Path, *, into: int, changes: tuple[int, ...], repeats: int) -> Result:
    (table,) = Grown.all_of(work, {"t": into}).values()
    took = {count: repeated([table], count, repeats)[0] for count in changes}
    both = {count: median(parts["both"]) for count, parts in took.items()}
    growth = {after: both[after] / both[before] / (after / before) for before, after in pairwise(changes)}
    return {
        "tables": [
            {
                "head": ["changes", *(f"{part}, s" for part in PARTS), "growth of both"],
                "rows": [
                    [f"{count:,}", *(parts[part] for part in PARTS), round(growth[count], 2) if count in growth else ""]
                    for count, parts in took.items()
                ],
            }
        ],
        "targets": [target("growth of both models, at any step (1 is linear)", max(growth.values(), default=0), 1)],
        "plots": [
            {"title": f"Into {into:,} rows", "x": "changes", "y": "seconds", "log": True, "lines": {
                part: [(count, median(parts[part])) for count, parts in took.items()] for part in ("staging", "final")
            }}
        ],
        "compared": "After each run final had the change set's rows, without those that it deletes.",
    }  # fmt: skip
