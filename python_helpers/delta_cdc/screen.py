"""What commands write on a screen: lines that are never folded, and tables without frames."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table
from rich.text import Text

_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # a terminal, or how the text beside is read


def as_text(text: str, style: str = "") -> Text:
    """A text as it is: what is in brackets is no markup. A feed may hold anything: what would steer the terminal is spelled out.

    >>> as_text("[b] \\x1b[2J").plain
    '[b] \\\\x1b[2J'
    """
    return Text(_STEERS.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text), style=style)


def tell(console: Console, text: str, style: str = "") -> None:
    """A line as it is, which is not folded, so that it can be searched and copied."""
    console.print(as_text(text, style), soft_wrap=True)


def grid(*headings: str) -> Table:
    """Columns with these headings, in which brackets are no markup; one that begins with `>` is aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        name = as_text(heading.removeprefix(">"))
        table.add_column(name, justify="right" if heading.startswith(">") else "left", overflow="fold")
    return table
