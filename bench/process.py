"""What a command and all that it starts cost. Orphans (PySpark's JVM outlives its Python) are adopted and waited for."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Sample:
    """wall_seconds: until the command ended. cpu_seconds: of it and of all that it started. peak_mb: resident memory of
    the largest of these processes. other_cpu_seconds: what everything else on the machine used meanwhile."""

    wall_seconds: float
    cpu_seconds: float
    peak_mb: float
    other_cpu_seconds: float

    @property
    def disturbed(self) -> bool:
        return self.other_cpu_seconds > 0.05 * self.wall_seconds * (os.cpu_count() or 1)


class CommandFailed(Exception):
    """A command that was measured ended with an error."""


def cost_of(command: Sequence[str], *, log: Path | None = None, environment: Mapping[str, str] | None = None) -> Sample:
    """Run the command to its end. log: where its output goes. Raises CommandFailed, with the log's end, where it fails."""
    if sys.platform != "linux":
        raise SystemExit("make bench measures by Linux's accounting of processes; it does not run elsewhere.")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    busy = _busy_seconds()
    started = time.monotonic()
    with open(log, "wb") if log else nullcontext() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT if log else None, cwd=PACKAGE,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    usages = [usage]
    while True:
        try:
            usages.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            break
    busy = _busy_seconds() - busy
    if process.returncode != 0:
        said = f"; all of its output is in {log}:\n{log.read_text('utf-8', 'replace')[-3000:]}" if log else ""
        raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}{said}")
    cpu = sum(u.ru_utime + u.ru_stime for u in usages)
    peak = max(u.ru_maxrss for u in usages) / 1024
    return Sample(round(wall, 2), round(cpu, 2), round(peak), round(max(busy - cpu, 0.0), 2))


def _busy_seconds() -> float:
    """CPU seconds of the whole machine since its start: user, nice, system, irq, softirq, steal."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
