"""Small dbt projects with feeds, for tests that start nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FEED: dict[str, Any] = {"format": "rows", "location": "landing/{table}"}
TABLE: dict[str, Any] = {"keys": ["id"], "sequence_by": ["seq"]}
COLUMNS: list[Any] = [
    {"name": "id", "data_type": "int"},
    {"name": "seq", "data_type": "bigint"},
    {"name": "op", "data_type": "string"},
    {"name": "old_id", "data_type": "int"},
    {"name": "created", "data_type": "date"},
    {"name": "total amount", "data_type": "decimal(10,2)"},
]


def source(
    name: str = "shop",
    *,
    feed: Any = FEED,
    tables: dict[str, Any] | None = None,
    columns: list[Any] | None = None,
) -> dict[str, Any]:
    """A dbt source; `tables` maps a table's name to its settings, or to None for none."""
    return {
        "name": name,
        **({"config": {"meta": {"cdc": feed}}} if feed is not None else {}),
        "tables": [
            {
                "name": table,
                **({"config": {"meta": {"cdc": settings}}} if settings is not None else {}),
                "columns": COLUMNS if columns is None else columns,
            }
            for table, settings in (tables if tables is not None else {"invoice": TABLE}).items()
        ],
    }


def project(root: Path, *sources: dict[str, Any], name: str = "consumer", **settings: Any) -> Path:
    """A dbt project with its sources in models/shop/_sources.yml."""
    (root / "dbt_project.yml").write_text(yaml.safe_dump({"name": name, **settings}))
    folder = root / "models" / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_sources.yml").write_text(yaml.safe_dump({"version": 2, "sources": list(sources)}, sort_keys=False))
    return root
