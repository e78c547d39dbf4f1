import os
import socket
from collections.abc import Callable

import pytest

# `make nightly` sets it: all of what `make test` takes a part of, because another test or case shows the same.
NIGHTLY = bool(os.environ.get("DELTA_CDC_NIGHTLY"))


def after(*tests: Callable[..., object]) -> pytest.MarkDecorator:
    """Of a test that goes on from what these of its file leave behind: who chooses it by -k gets them too (tests/conftest.py)."""
    return pytest.mark.after.with_args(*tests)


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
