"""One program comes in two deliveries: the macros by `dbt deps`, the Python by pip. They have to be of one version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml
from packaging.version import InvalidVersion, Version

PACKAGE, DISTRIBUTION = "delta_cdc", "dbt-delta-cdc"
CHECKOUT = Path(__file__).resolve().parents[2]
try:
    VERSION = version(DISTRIBUTION)  # of what this process has loaded; pip may have brought another since
except PackageNotFoundError:
    VERSION = ""


def mismatch(root: Path, name: str, packages: str = "dbt_packages") -> str | None:
    """What is wrong where the dbt package that a project has is of another version than this Python; else None.

    root, name: of the project, which may be the package itself. packages: its folder of packages. What comes from one checkout
    is of one version, whatever pip noted when it was installed.
    """
    package = root if name == PACKAGE else root / packages / PACKAGE
    try:
        told = yaml.safe_load((package / "dbt_project.yml").read_text(encoding="utf-8"))
        theirs = str(told["version"])
        same = package.resolve() == CHECKOUT or not VERSION or Version(theirs) == Version(VERSION)
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError, InvalidVersion):
        return None  # that is for dbt to say
    if same:
        return None
    return (
        f"The dbt package {PACKAGE} ({package}) is version {theirs}, and pip's {DISTRIBUTION} is {VERSION}: macros and Python "
        f"have to be of one version. Either `pip install` {DISTRIBUTION} {theirs}, or name {VERSION} in packages.yml and run "
        "`dbt deps`."
    )
