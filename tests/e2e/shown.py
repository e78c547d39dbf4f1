"""What test_browser opens: a small project of a user, loaded once, with dbt's documentation and the page of `delta-cdc report`.

Run as `python -m tests.e2e.shown FOLDER`: in a process of its own, as the one Spark of a process has one lake.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from delta_cdc.cli import main as delta_cdc
from tests.scenarios.project import UserProject

COLUMNS = {"op": "string", "at": "timestamp", "id": "int", "old_id": "int", "amount": "int"}
SETTINGS = {"keys": ["id"], "sequence_by": ["at"], "operation": "op", "except_columns": ["op", "old_id", "at"]}
# (operation, minute, id, old id, amount); of a moving row the key changes, and one has an amount that is none
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "plain": [("I", 1, 1, None, 10), ("I", 2, 2, None, 20), ("D", 3, 1, None, None)],
    "moving": [("I", 1, 1, None, 10), ("U", 2, 5, 1, 30), ("U", 3, 5, None, "many")],
}


def main(folder: Path) -> None:
    project = UserProject(folder / "project", lake=folder / "lake", schema="shown")
    landing = folder / "landing"
    for table, rows in ROWS.items():
        (landing / table).mkdir(parents=True)
        lines = [
            json.dumps({"op": op, "at": f"2026-01-01T00:{minute:02d}:00Z", "id": id, "old_id": old_id, "amount": amount})
            for op, minute, id, old_id, amount in rows
        ]
        (landing / table / "0001.jsonl").write_text("\n".join(lines) + "\n")
    settings = {"plain": SETTINGS, "moving": {**SETTINGS, "old_keys": {"id": "old_id"}}}
    project.configure(
        "shop",
        settings={"format": "rows", "location": f"{landing}/{{table}}"},
        tables=[{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in settings.items()],
    )
    project.generate()
    project.dbt("run", quiet=True)
    project.dbt("docs", "generate", quiet=True)
    where = str(project.path)
    delta_cdc(["report", "--project-dir", where, "--profiles-dir", where], standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
