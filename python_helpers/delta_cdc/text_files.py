"""Files that a person reads and edits, written whole or not at all."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from delta_cdc.errors import OperationError


def replace_text(path: Path, text: str) -> None:
    """Give a file this text, or make it; where that fails (a full disk) it is as it was, and nothing lies beside it. A link stays
    one, and a file's rights are what they were: one that may not be written is not replaced either. Raises OSError."""
    if path.exists():
        path.open("r+b").close()
    path = path.resolve()
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(text.encode("utf-8"))
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_over(path: Path, text: str) -> None:
    """`replace_text`. Raises OperationError."""
    try:
        replace_text(path, text)
    except OSError as error:
        raise OperationError(f"{path} cannot be written: {error.strerror}.") from None
