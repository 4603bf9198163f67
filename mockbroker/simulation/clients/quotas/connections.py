"""Connections that clients create faster than the quota of their address allows (KIP-612).

Kafka accepts such a connection, reads nothing of it and closes it once the rate would have fallen
to the quota, or after a second. It does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from mockbroker.simulation.releases.rows import Row, always

__all__ = ["CONNECTION_ROWS", "Arrival"]

_LONGEST_MS: Final = 1_000


class Arrival(msgspec.Struct):
    """A new connection. ``excess_ms`` is how long the rate needs to fall to the quota, 0 if it does
    not exceed it; ``held_ms`` how long the connection is held before it is closed, 0 if it is
    accepted."""

    excess_ms: int
    held_ms: int = 0


def hold_connection(subject: Arrival) -> None:
    """Hold the connection, and close it then."""
    subject.held_ms = min(subject.excess_ms, _LONGEST_MS)


CONNECTION_ROWS: Final[Sequence[Row[Arrival, Arrival]]] = (
    Row("QUOTA-21", always, (hold_connection,), since=(2, 8)),
)
