"""Ports for servers that take a number, not a socket."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from typing import Final

__all__ = ["free_ports"]

_PORTS: Final = (10_000, 32_768)
"""Below those that kernels give to connections and to port 0: nothing takes one by chance before
the server does, or while it is down."""
_RANDOM: Final = random.SystemRandom()
"""Not of the run's seed: processes that run tests side by side would draw the same ports."""


def free_ports(count: int, *, in_a_row: bool = False) -> list[int]:
    """Return different ports nobody listens on now, above each other if they are ``in_a_row``."""
    while True:
        with ExitStack() as held:
            found: list[int] = []
            while len(found) < count:
                port = found[-1] + 1 if in_a_row and found else _RANDOM.randrange(*_PORTS)
                candidate = held.enter_context(socket.socket())
                try:
                    candidate.bind(("127.0.0.1", port))
                except OSError:
                    if in_a_row and found:
                        break
                else:
                    found.append(port)
            else:
                return found
