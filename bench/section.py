"""python -m bench.section NAME WORK OUT SIZES: measure one section in this process.

A section is a module: its docstring is its heading and its introduction on the page, SIZES {small, full: {name: value}} are the
arguments of `measure(work, **sizes) -> Result`. WORK: an empty folder. OUT: the file that gets the result. SIZES: as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

# In the page's order.
SECTIONS = {
    "B0": "headline",
    "B1": "contest",
    "B4": "plain_merge",
    "B5": "rows_of_final",
    "B6": "rows_of_change_set",
    "B7": "grown_staging",
    "B8": "resolver",
    "B9": "first_load",
    "B11": "one_table",
    "changesets": "many_change_sets",
    "listing": "listing",
}
# Measured with another one. (B10, the memory of all, is a table of the page.)
WITH = {"B1w": "B1", "B2": "B1", "B3": "B1"}

Value = int | str | tuple[int, ...]
Sizes = Mapping[str, Value]


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"bench.{SECTIONS[name]}")


def main(name: str, work: str, out: str, sizes: str) -> None:
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(sizes).items()}
    Path(out).write_text(json.dumps(module_of(name).measure(Path(work), **given)))
    sys.stdout.flush()
    os._exit(0)  # Spark's own end takes seconds


if __name__ == "__main__":
    main(*sys.argv[1:])
