"""Ports of the loopback interface that nobody listens on."""

from __future__ import annotations

import random
import socket

from tidings.errors import EngineError

# Below the ephemeral ports of Linux, which other programs' connections take at any moment.
FIRST, LAST = 20_000, 31_999
HOST = "127.0.0.1"


def free_ports(count: int, *, first: int = FIRST, last: int = LAST) -> list[int]:
    """Find so many different ports that could be bound a moment ago.

    Another program may still take one before it is used; who starts a server must be ready to be
    told so.
    """
    offered = list(range(first, last + 1))
    random.shuffle(offered)  # two testbeds at once hardly ever choose alike
    ports: list[int] = []
    for port in offered:
        if len(ports) == count:
            break
        with socket.socket() as trial:
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
    if len(ports) < count:
        raise EngineError(
            f"only {len(ports)} of the ports {first} to {last} are free; the testbed "
            f"needs {count}. End other programs that use them"
        )
    return ports
