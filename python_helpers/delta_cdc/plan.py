"""`delta-cdc run --plan`: what a run would do, told by a run on clones of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from delta_cdc import run as runs
from delta_cdc.land import landed_feeds
from delta_cdc.project import Project
from delta_cdc.screen import tell
from delta_cdc.warm_dbt import WarmDbt, progress_on


def plan(project: Project, options: Sequence[str], *, select: Sequence[str] = (), console: Console) -> int:
    """Show what `run` would do, and return its exit code. The tables of the project are read only; other models are left out.

    The same models run in schemas of their own, on shallow clones: new logs over the same data files. So nothing has to be
    worked out twice, and what is told is what the next run does, unless something comes in between.
    """
    with runs.locked(project.root):
        with progress_on(console, transient=True) as progress:
            told = WarmDbt(project.root, options).ask(progress, "look", "plan_tables")
        with _other_schemas():
            dbt = WarmDbt(project.root, [*options, "--target-path", str(project.root / "target" / "plan")])
            with progress_on(console, transient=True) as progress:
                dbt.ask(progress, "clone", "plan_prepare", {"tables": told["tables"]})  # drops what a plan that was killed left
            try:
                chosen = {"--select": select, "--exclude": told["others"]}
                command = [text for option, names in chosen.items() if names for text in (option, *names)]
                summary = runs.run_once(dbt, project, ["run", *command], console)
            finally:
                with progress_on(console, transient=True) as progress:
                    dbt.ask(progress, "drop", "plan_drop")
    runs.show(summary, console)
    console.print(Text("That is a plan: nothing was written.", style="bold"))
    if feeds := landed_feeds(project):
        tell(console, f"What {', '.join(feeds)} would land first is not in it.")
    return summary.exit_code


@contextmanager
def _other_schemas() -> Iterator[None]:
    """dbt, started in this process, takes every schema of the profile with the suffix."""
    from dbt.adapters.sparkdelta.connections import PLAN_SUFFIX, SparkdeltaCredentials

    SparkdeltaCredentials.schema_suffix = PLAN_SUFFIX
    try:
        yield
    finally:
        SparkdeltaCredentials.schema_suffix = ""
