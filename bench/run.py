"""`make bench`: measure sections, each in a process of its own, into bench/results.json; then write docs/benchmarks.md.

    python -m bench.run [--only B1,B4] [--size small|full] [--set 'tables=6 rows=20']

A section replaces its own entry and no other. One that fails leaves its entry as it was, and its folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.data import SEED
from bench.page import FOLDER, PAGE, write_page
from bench.process import PACKAGE, CommandFailed, cost_of
from bench.section import SECTIONS, WITH, Sizes, Value, module_of

RESULTS = Path(__file__).resolve().parent / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {', '.join([*SECTIONS, *WITH])}")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="small takes two hours, full a day")
    parser.add_argument("--set", default="", help="sizes in place of a section's own; several values with commas")
    given = parser.parse_args()
    try:
        sizes = chosen(given.only, given.size, given.set)
    except ValueError as error:
        parser.error(str(error))
    failed = []
    for name, of_section in sizes.items():
        print(f"== {name}: {of_section}", flush=True)
        work = Path(tempfile.mkdtemp(prefix=f"delta-cdc-bench-{name}-"))
        try:
            entry = run(name, of_section, work)
        except CommandFailed as error:
            print(f"{name} failed; what there is stays in {work}\n{error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        shutil.rmtree(work)
        make = shlex.join(["make", "bench", f"ONLY={name}", f"SIZE={given.size}", *([f"SET={given.set}"] if given.set else [])])
        label = f"{given.size}, but SET" if given.set else given.size
        found = {**read(), name: {"command": make, "size": label, **entry}}
        results = {name: found[name] for name in SECTIONS if name in found}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page(results)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def read() -> dict[str, Any]:
    """{section: its entry}."""
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def chosen(only: str, size: str, overrides: str) -> dict[str, dict[str, Value]]:
    """{section: its sizes}. Raises ValueError for a section that is not known, or a size that no chosen section has."""
    names = list(dict.fromkeys(WITH.get(name, name) for name in filter(None, only.split(","))))
    if unknown := [name for name in names if name not in SECTIONS]:
        raise ValueError(f"no section is called {', '.join(unknown)}")
    found: dict[str, dict[str, Value]] = {name: dict(module_of(name).SIZES[size]) for name in names}
    for pair in overrides.split():
        key, _, text = pair.partition("=")
        having = [sizes for sizes in found.values() if key in sizes]
        if not having:
            raise ValueError(f"no section of {', '.join(names)} has a size called {key}")
        for sizes in having:
            usual = sizes[key]
            if isinstance(usual, tuple):
                sizes[key] = tuple(int(part) for part in text.split(","))
            else:
                sizes[key] = int(text) if isinstance(usual, int) else text
    return found


def run(name: str, sizes: Sizes, work: Path) -> dict[str, Any]:
    """An entry of results.json but how it was asked for. Raises CommandFailed."""
    out = work / "result.json"
    (work / "work").mkdir()
    told = _told()
    cost = cost_of([sys.executable, "-m", "bench.section", name, str(work / "work"), str(out), json.dumps(sizes)])
    return {
        "about": module_of(name).__doc__,
        **told,
        "sizes": sizes,
        "seed": SEED,
        "seconds": round(cost.wall_seconds),
        "peak_mb": cost.peak_mb,
        "other_cpu_seconds": cost.other_cpu_seconds,
        "disturbed": cost.disturbed,
        "result": json.loads(out.read_text()),
    }


def _told() -> dict[str, Any]:
    """When, of which commit, on which machine, with which versions."""

    def said(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE)
        return (done.stdout or done.stderr).strip()

    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    cpus = [line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")]
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    packages: Sequence[str] = ("pyspark", "delta-spark", "dbt-core", "dbt-spark", "dbt-delta-cdc")
    own = (RESULTS, PAGE, FOLDER)
    return {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": said("git", "rev-parse", "HEAD"),
        "uncommitted_changes": bool(said("git", "status", "--porcelain", ".", *(f":(exclude){path}" for path in own))),
        "machine": {
            "cpu": cpus[0] if cpus else platform.machine(),
            "cores": os.cpu_count(),
            "memory_gb": round(memory_kb / 1024**2, 1),
            "kernel": platform.release(),
        },
        "versions": {
            "python": platform.python_version(),
            "java": (said("java", "-version").splitlines() or ["unknown"])[0],
            **{name: metadata.version(name) for name in packages},
        },
    }


if __name__ == "__main__":
    main()
