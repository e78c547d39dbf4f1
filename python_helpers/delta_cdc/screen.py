"""What commands write on a screen: lines that are never folded, and tables without frames."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text


def tell(console: Console, text: str, style: str = "") -> None:
    """A line as it is: what is in brackets is no markup, and it is not folded, so that it can be searched and copied."""
    console.print(Text(text, style=style), soft_wrap=True)


def grid(*headings: str) -> Table:
    """Columns with these headings, in which brackets are no markup; one that begins with `>` is aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        name = Text(heading.removeprefix(">"))
        table.add_column(name, justify="right" if heading.startswith(">") else "left", overflow="fold")
    return table
