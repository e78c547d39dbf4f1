from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_cdc.warm_dbt import WarmDbt
from tests.scenarios.project import UserProject


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[UserProject]:
    """A project of a user who installed the package, for one test module."""
    name = request.module.__name__.rsplit(".", 1)[-1].removeprefix("test_")
    return UserProject(tmp_path_factory.mktemp(name), lake=lake, schema=name, artifacts=False)


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """Commands on one project share what dbt parsed for as long as no file of it changes, as one that stays does."""
    from dbt.cli import main

    kept: dict[tuple[str, ...], tuple[Any, Any]] = {}
    run = WarmDbt.run

    def run_parsed(dbt: WarmDbt, *args: Any, **named: Any) -> Any:
        if dbt._anew:  # it alters what it parsed
            return run(dbt, *args, **named)
        options = tuple(dbt._options)
        dbt._manifest, dbt._parsed = kept.get(options, (dbt._manifest, dbt._parsed))
        try:
            return run(dbt, *args, **named)
        finally:
            kept[options] = dbt._manifest, dbt._parsed

    class Runner(main.dbtRunner):
        """Of an operation, which brings nothing that was parsed."""

        def invoke(self, args: list[str], **named: Any) -> Any:
            if self.manifest is None and "--project-dir" in args and {"run-operation", "run"} & set(args):
                _, folder, *others = options = args[args.index("--project-dir") :]
                files = WarmDbt(Path(folder), others).files()
                self.manifest, parsed = kept.get(tuple(options), (None, None))
                if self.manifest is None or parsed != files:
                    found = main.dbtRunner(callbacks=self.callbacks).invoke(["--quiet", "--log-level", "none", "parse", *options])
                    if not found.success:
                        return found
                    self.manifest, _ = kept[tuple(options)] = found.result, files
            return super().invoke(args, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WarmDbt, "run", run_parsed)
        patched.setattr(main, "dbtRunner", Runner)
        yield
