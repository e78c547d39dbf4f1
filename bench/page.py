"""docs/benchmarks.md and its plots, from the results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.plot import svg
from bench.process import PACKAGE
from bench.result import Cell, Target

PAGE = PACKAGE / "docs" / "benchmarks.md"
FOLDER = PACKAGE / "docs" / "benchmarks"
DRIVER_MB = 4096

HEAD = """\
<!-- written by make bench -->
# Benchmarks
`make bench` measures all sections in some two hours, and writes this page and `bench/results.json`. `SIZE=full`
has the sizes of the goals, and takes a day. `ONLY=B1,B4` measures some sections and leaves the others' figures: each says of
which commit they are, and one without any is not here. `SET='rows=20000 repeats=1'` has other sizes. It needs Linux
and a machine that does nothing else: what others used meanwhile is measured too, and told.

Samples are shown as median (least to most). Seconds are wall time where not said otherwise. Targets are for 2 cores and the
sizes of `SIZE=full`; each is met where the figure is at most so much. At other sizes (second column) that proves nothing of
these: a small table may meet what a large one misses. A section whose run fails, or whose rows differ from what is said to be
equal, gets no new figures: those of an earlier commit stay. Disturbed: others used more than 5 % of the machine.
"""


def write_page(results: Mapping[str, Any]) -> None:
    """results: {section: its entry in results.json}."""
    text, plots = page(results)
    FOLDER.mkdir(exist_ok=True)
    PAGE.write_text(text)
    for path in set(FOLDER.iterdir()) - {FOLDER / name for name in plots}:
        path.unlink()
    for name, drawn in plots.items():
        (FOLDER / name).write_text(drawn)


def page(results: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The page, and {name: SVG} of its plots."""
    out = [HEAD, "## Targets", "", "| | sizes | | | at most | |", "|---|---|---|---|---|---|"]
    for name, entry in results.items():
        out += [f"| {name} | {_sizes(entry)} | {_line(target)}" for target in entry["result"]["targets"]]
    out += [
        "", "## B10: memory",
        "The peak of the largest process of each section, the JVM: delta_cdc's, a rival's, or that of the preparation.", "",
        "| | sizes | peak, MB | at most | |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, entry in results.items():
        out.append(
            f"| {name} | {_sizes(entry)} | {entry['peak_mb']:,.0f} | {DRIVER_MB:,} | {_verdict(entry['peak_mb'] <= DRIVER_MB)} |"
        )
    plots: dict[str, str] = {}
    for name, entry in results.items():
        out += ["", *_section(name, entry, plots)]
    return "\n".join(out) + "\n", plots


def _section(name: str, entry: Mapping[str, Any], plots: dict[str, str]) -> list[str]:
    """Its lines; adds its plots."""
    title, _, about = entry["about"].strip().partition("\n")
    machine, result = entry["machine"], entry["result"]
    out = [f"## {title}", about.strip(), ""]
    if entry["disturbed"]:
        used = "Others used more than 5 % of the machine in this section, what it prepares included"
        out += [f"**{used}: not to be relied upon, but where a run tells otherwise.**", ""]
    for table in result["tables"]:
        out += [f"| {' | '.join(table['head'])} |", "|---" * len(table["head"]) + "|"]
        out += [f"| {' | '.join(map(_cell, row))} |" for row in table["rows"]] + [""]
    for number, plot in enumerate(result["plots"], 1):
        file = f"{name}_{number}.svg"
        plots[file] = svg(plot)
        out += [f"![{plot['title']}]({FOLDER.name}/{file})", ""]
    if result["targets"]:
        out += ["| target | | at most | |", "|---|---|---|---|", *(f"| {_line(target)}" for target in result["targets"]), ""]
    sizes = ", ".join(f"{key} {_size(value)}" for key, value in entry["sizes"].items())
    versions = ", ".join(f"{key} {value}" for key, value in entry["versions"].items())
    out += [
        result["compared"],
        "",
        f"`{entry['command']}` ({sizes}; seed {entry['seed']}; {entry['seconds'] / 60:.0f} minutes in all). {entry['at']}, "
        f"commit {entry['commit'][:12]}{' with uncommitted changes' if entry['uncommitted_changes'] else ''}. {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}. {versions}.",
    ]
    return out


def _sizes(entry: Mapping[str, Any]) -> str:
    return f"{entry['size']}, disturbed" if entry["disturbed"] else str(entry["size"])


def _line(target: Target) -> str:
    value, most = target["value"], target["most"]
    shown = _figure(value) if (value <= most) == (float(f"{value:.3g}") <= most) else f"{value:.4g}"
    return f"{target['what']} | {shown} | {_figure(most)} | {_verdict(value <= most)} |"


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def _size(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " / ".join(map(_size, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int | float):
        return _figure(cell)
    return _spread(cell)


def _spread(values: Sequence[float]) -> str:
    digits = 0 if max(values) >= 100 else 1
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
