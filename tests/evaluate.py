"""`make evaluate`: dbt-project-evaluator's opinion of the project in integration_tests, generated models included.

EVALUATOR=folder takes it from there (its dbt_utils beside it, or from dbt's hub); without, from dbt's hub.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from tests.scenarios.project import PACKAGE
from tests.scenarios.test_consumer import CONSUMER

HUB = {"package": "dbt-labs/dbt_project_evaluator", "version": [">=1.0.0", "<2.0.0"]}
# rules that the project does not keep, and why
ACCEPTED: dict[str, str] = {}


def main() -> int:
    from dbt.cli.main import dbtRunner

    folder = Path(tempfile.mkdtemp(prefix="delta-cdc-evaluate-")) / "project"
    shutil.copytree(CONSUMER, folder, ignore=shutil.ignore_patterns("dbt_packages", "lake", "logs", "target", "package-lock.yml"))
    given = os.environ.get("EVALUATOR")
    packages = [{"local": str(PACKAGE)}, *([{"local": each} for each in given.split(os.pathsep)] if given else [HUB])]
    (folder / "packages.yml").write_text(yaml.safe_dump({"packages": packages}))
    settings = yaml.safe_load((folder / "dbt_project.yml").read_text())
    settings["dispatch"] = [{"macro_namespace": "dbt", "search_order": ["dbt_project_evaluator", "dbt"]}]
    settings["vars"] = {"dbt_project_evaluator": {"max_depth_dag": 9}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(settings, sort_keys=False))
    where = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    for command in (["deps"], ["build", "--select", "package:dbt_project_evaluator"]):
        done = dbtRunner().invoke(["--quiet", *command, *where])
        if done.exception:
            raise done.exception
    said = {each.node.name: each for each in done.result.results if each.node.resource_type == "test"}
    broken = [each for each in done.result.results if str(each.status) in ("error", "runtime error", "skipped")]
    for each in broken:
        print(f"not run: {each.node.name}: {each.message}")
    found = {name: each.failures for name, each in said.items() if each.failures}
    for name, rows in sorted(found.items()):
        print(f"{name}: {rows}" + (f" (accepted: {ACCEPTED[name]})" if name in ACCEPTED else ""))
    new = sorted(set(found) - set(ACCEPTED))
    print(f"{len(said)} rules, {len(found)} with findings, {len(new)} of these not accepted")
    if not broken and not new:
        shutil.rmtree(folder.parent)
    return 1 if broken or new else 0


if __name__ == "__main__":
    sys.exit(main())
