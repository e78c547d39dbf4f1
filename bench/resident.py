"""python -m bench.resident JOB: one run after another in this process, as `delta-cdc run --every` makes them.

JOB is a JSON file: project (folder), cycles (of each the files to link before its run, as [from, to]), out (file). Writes to out,
for each cycle, {wall, cpu: seconds, heap: MB in use after a collection}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.process import Sample, cost_of
from bench.warm import cpu_seconds, heap_megabytes
from dbt.adapters.sparkdelta.session import process_stays
from delta_cdc.warm_dbt import WarmDbt, progress_on

Links = list[tuple[Path, Path]]


def run_resident(folder: Path, project: Path, cycles: Sequence[Links]) -> tuple[list[dict[str, float]], Sample]:
    """Run such a process, with its files in folder. Returns what it wrote, and what it cost in all."""
    folder.mkdir()
    job, out = folder / "job.json", folder / "out.json"
    links = [[[str(path) for path in link] for link in cycle] for cycle in cycles]
    job.write_text(json.dumps({"project": str(project), "cycles": links, "out": str(out)}))
    cost = cost_of([sys.executable, "-m", "bench.resident", str(job)], log=folder / "log")
    return json.loads(out.read_text()), cost


def main(job_file: str) -> None:
    job: dict[str, Any] = json.loads(Path(job_file).read_text())
    process_stays()
    dbt = WarmDbt(Path(job["project"]), ["--profiles-dir", job["project"]])
    found = []
    with progress_on(Console(quiet=True)) as progress:
        for cycle in job["cycles"]:
            for source, to in cycle:
                os.link(source, to)
            started, used = time.monotonic(), cpu_seconds()
            result = dbt.run(progress, "run", "run", complain=print)
            wall, cpu = time.monotonic() - started, cpu_seconds() - used
            if not result.success:
                raise SystemExit(f"the run failed: {result.exception}")
            found.append({"wall": round(wall, 2), "cpu": round(cpu, 2), "heap": heap_megabytes()})
    Path(job["out"]).write_text(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # Spark's own end takes seconds


if __name__ == "__main__":
    main(*sys.argv[1:])
