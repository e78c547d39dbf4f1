"""Every error the project raises on purpose, in one tree, each able to show itself.

`CdcError` is the root: the command line catches it, shows `lines()`, and leaves with `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path


def nearest(word: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that `word` most likely means, or None. likeness: at least, 1 is the same word."""
    candidates = sorted(known)
    folded = {name.casefold(): name for name in candidates}
    close = difflib.get_close_matches(str(word).casefold(), list(folded), n=1, cutoff=likeness)
    return folded[close[0]] if close else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A sentence to follow «x is not known.»: the nearest word, else all of them."""
    names = sorted(known)
    close = nearest(word, names)
    if close is not None:
        return f"Did you mean `{close}`?"
    if not names:
        return "None are known."
    return "Known: " + ", ".join(f"`{name}`" for name in names) + "."


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def some_of(names: Sequence[str]) -> str:
    """The first three, and that there are more."""
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the configuration: where it is and what to do, in one line."""

    message: str
    feed: str | None = None
    table: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = ", ".join(f"{what} {name}" for what, name in (("feed", self.feed), ("table", self.table)) if name is not None)
        said = f"{place}: {self.message}" if place else self.message
        if self.file is None:
            return said
        return f"{said} ({self.file})" if self.line is None else f"{said} ({self.file}:{self.line})"


class CdcError(Exception):
    """Root of the project's errors. `exit_code` is what the command line returns."""

    exit_code = 1

    def lines(self) -> list[str]:
        """What to tell the person, one line each."""
        return [str(self)]


class ConfigError(CdcError):
    """The configuration is wrong. Holds every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem], then: str = "nothing was run") -> None:
        self.problems, self.then = tuple(problems), then
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        told = _together(self.problems)
        return [*map(str, told), f"{counted(len(told), 'problem')} found, {self.then}."]


def _together(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, one for what several tables have from one line: a mistake in the settings of their feed."""
    same: dict[Problem, dict[str, None]] = {}
    for problem in problems:
        same.setdefault(replace(problem, table=None), {})[problem.table or ""] = None
    return [
        replace(one, table=first or None) if not others else replace(one, table=f"{first} and {len(others)} more")
        for one, (first, *others) in same.items()
    ]


class ProjectError(CdcError):
    """The folder is not a dbt project, or the project file cannot be read, or its package is of another version."""

    exit_code = 2


class OperationError(CdcError):
    """A command cannot be done as asked."""


@contextmanager
def told_of_files(what: str, path: Path) -> Iterator[None]:
    """An error of the file system as an OperationError. what: ends «x cannot be», e.g. written. path: x, where the error names no
    file, as that of a full disk."""
    try:
        yield
    except OSError as error:
        raise OperationError(f"{error.filename or path} cannot be {what}: {error.strerror}.") from None


class GeneratedFilesError(CdcError):
    """Generated files are not as the sources say, or a person edited them."""

    def __init__(self, findings: Iterable[str], closing: str) -> None:
        self.findings = tuple(findings)
        self.closing = closing
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        return [*self.findings, self.closing]
