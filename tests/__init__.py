import os
import socket

# `make nightly` sets it: all of what `make test` takes a part of, because another test or case shows the same.
NIGHTLY = bool(os.environ.get("DELTA_CDC_NIGHTLY"))


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
