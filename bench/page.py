"""docs/benchmarks.md, from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.data import BIG_TABLES, PARTITIONED_TABLES

HEAD = """\
<!-- written by make bench -->
# Benchmarks
`make bench` measures whole runs in fresh processes, the start of Python and of the JVM included, and writes this page
and `bench/results.json` (every sample). All contestants have the same data, Spark settings, JVM flags and number of
threads, and tables without deletion vectors unless they are large. They take turns. Their finals have to be equal at the
end, in count and content, or there are no results.

- **B1** one change set of 1,000 inserts, updates and deletes for every table. **B2** the same tables, nothing new.
- **delta_cdc** a user's project with the default settings: ledger, staging, history (views), final, the run's record.
- **(a)** [a hand-written PySpark loop](../bench/rivals/pyspark_loop.py): append to staging, newest change a key, one MERGE.
- **(b)** [a plain dbt project](../bench/rivals/dbt_stock/README.md): two stock incremental models a table, deletes are flags.

Repeat it with `make bench`, with the sizes and cycles that stand with the figures (`BIG=100000 REPEATS=1`; without them
the large tables have a million rows, and there are three cycles). It needs Linux and a machine
that does nothing else: what others used meanwhile is measured too, and told.
"""

# What is compared, with which benchmark of whom, and how much of it is the most.
TARGETS = [
    ("B1", "delta_cdc", "B1", "loop", 1.3),
    ("B1", "delta_cdc", "B1", "stock", 0.6),
    ("B2", "delta_cdc", "B1", "delta_cdc", 0.25),
]


def page(results: Mapping[str, Any]) -> str:
    size, machine, titles = results["size"], results["machine"], results["contestants"]
    samples = [sample for sample in results["samples"] if sample["benchmark"] != "before"]
    big = min(BIG_TABLES, size["tables"])
    partitioned = min(PARTITIONED_TABLES, big)
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    out = [
        HEAD,
        "## Results",
        f"{size['tables']} tables: {size['tables'] - big} of {size['rows']:,} rows, {big} of {size['big']:,}, "
        f"{partitioned} of these partitioned by month. {size['threads']} threads, {size['repeats']} cycles, seed {size['seed']}.",
        f"{results['at']}, commit {results['commit'][:12]}"
        f"{' with uncommitted changes' if results['uncommitted_changes'] else ''}. "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}. {versions}.\n",
    ]
    disturbed = sum(sample["disturbed"] for sample in samples)
    if disturbed:
        out.append(
            f"**Not to be relied upon: in {disturbed} of {len(samples)} runs others used more than 5 % of the machine.**\n"
        )
    out += [
        "Median (least to most). Memory is the peak of the largest process, the JVM.\n",
        "| | | wall, s | CPU, s | memory, MB |",
        "|---|---|---|---|---|",
    ]
    for benchmark in ("B1", "B2"):
        for name, title in titles.items():
            figures = (_spread(_values(samples, benchmark, name, key)) for key in ("wall_seconds", "cpu_seconds", "peak_mb"))
            out.append(f"| {benchmark} | {title} | {' | '.join(figures)} |")
    out += ["", "| ratio of the medians of wall time | | target | |", "|---|---|---|---|"]
    for benchmark, name, of_benchmark, of, most in TARGETS:
        ratio = _wall(samples, benchmark, name) / _wall(samples, of_benchmark, of)
        verdict = "met" if ratio <= most else "**missed**"
        out.append(f"| {benchmark} {titles[name]} to {of_benchmark} {titles[of]} | {ratio:.2f} | at most {most} | {verdict} |")
    out += ["", "The finals of all contestants were equal."]
    return "\n".join(out) + "\n"


def _wall(samples: Sequence[Mapping[str, Any]], benchmark: str, name: str) -> float:
    return median(_values(samples, benchmark, name, "wall_seconds"))


def _values(samples: Sequence[Mapping[str, Any]], benchmark: str, name: str, key: str) -> list[float]:
    return [s[key] for s in samples if (s["benchmark"], s["contestant"]) == (benchmark, name)]


def _spread(values: Sequence[float]) -> str:
    if max(values) >= 100:
        return f"{median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
