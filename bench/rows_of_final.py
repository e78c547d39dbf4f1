"""B5: the same change set into finals of more and more rows

1,000 changes of the newest keys: three in ten are new, the others updated, each tenth of these deleted. `dbt run` through a
user's project in one warm process. The tables take turns; the first turn does not count. Seconds of the models `staging` and
`final`, of `both`, and of the whole `run`.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.data import CHANGES
from bench.grown import PARTS, Grown, repeated
from bench.result import Result, target

SIZES = {
    "small": {"rows": (1_000_000, 5_000_000), "repeats": 3},
    "full": {"rows": (1_000_000, 5_000_000, 50_000_000), "repeats": 5},
}


def measure(work: Path, *, rows: tuple[int, ...], repeats: int) -> Result:
    tables = Grown.all_of(work, {f"t{count}": count for count in rows})
    took = dict(zip(rows, repeated([tables[f"t{count}"] for count in rows], CHANGES, repeats), strict=True))
    both = {count: median(parts["both"]) for count, parts in took.items()}
    return {
        "tables": [
            {
                "head": ["rows of final", *(f"{part}, s" for part in PARTS), "both, to the first"],
                "rows": [
                    [f"{count:,}", *(parts[part] for part in PARTS), round(both[count] / both[rows[0]], 2)]
                    for count, parts in took.items()
                ],
            }
        ],
        "targets": [target("both models, the slowest table to the first", max(both.values()) / both[rows[0]], 1.5)],
        "plots": [
            {"title": "1,000 changes of recent keys", "x": "rows of final", "y": "seconds", "log": True, "lines": {
                part: [(count, median(parts[part])) for count, parts in took.items()] for part in ("staging", "final")
            }}
        ],
        "compared": "After each run final had the change set's rows, without those that it deletes.",
    }  # fmt: skip
