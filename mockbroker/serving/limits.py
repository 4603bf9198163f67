"""Limits on the connections, memory and journal of a cluster.

Kafka's names for them are ``socket.request.max.bytes``, ``max.connections``,
``queued.max.request.bytes``, ``connections.max.idle.ms`` and ``sasl.server.max.receive.size``. Some
defaults are lower than Kafka's, because a mock shares its machine with the tests.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from kproto.framing import DEFAULT_MAX_SIZE
from kproto.journal import DEFAULT_MAX_BYTES, DEFAULT_MAX_ENTRIES, Journal
from mockbroker.errors import ClusterError

__all__ = ["DEFAULTS", "MAX_BEFORE_SASL", "BufferBudget", "Limits"]

MAX_BEFORE_SASL: Final = 512 * 1024
"""The largest frame before authentication: the default of ``sasl.server.max.receive.size`` since
Kafka 3.4."""

_LONGEST: Final = 10**12
"""The longest idle timeout, in milliseconds: some thirty years."""


def _between(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ClusterError(f"{name} is {value}; it must be between {lowest} and {highest}")


class Limits(msgspec.Struct, frozen=True):
    """Limits of a cluster.

    ``max_frame_bytes`` is the largest size that a request may announce, and ``max_connections`` the
    number of connections per broker. ``max_buffered_bytes`` bounds incomplete requests, requests in
    a queue and unsent answers, of all connections together. A connection without traffic for
    ``idle_timeout_ms`` is closed; None disables that. The journal in memory keeps the newest
    ``journal_entries``, of at most ``journal_bytes``.

    Raises ClusterError for values out of range.
    """

    max_frame_bytes: int = DEFAULT_MAX_SIZE
    max_connections: int = 1000
    max_buffered_bytes: int = 512 * 1024 * 1024
    idle_timeout_ms: int | None = 600_000
    journal_entries: int = DEFAULT_MAX_ENTRIES
    journal_bytes: int = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        _between("max_frame_bytes", self.max_frame_bytes, 1, DEFAULT_MAX_SIZE)
        _between("max_connections", self.max_connections, 1, 1_000_000)
        _between("max_buffered_bytes", self.max_buffered_bytes, 1, 2**63 - 1)
        if self.idle_timeout_ms is not None:
            _between("idle_timeout_ms", self.idle_timeout_ms, 1, _LONGEST)
        _between("journal_entries", self.journal_entries, 1, 2**63 - 1)
        _between("journal_bytes", self.journal_bytes, 0, 2**63 - 1)

    def journal(self) -> Journal:
        """Return a new journal of this size."""
        return Journal(max_entries=self.journal_entries, max_bytes=self.journal_bytes)


DEFAULTS: Final = Limits()


class BufferBudget:
    """Accounts for ``max_buffered_bytes`` by connection."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.limits = limits
        self.held = 0
        self._holders: dict[Hashable, int] = {}

    def hold(self, holder: Hashable, size: int) -> Hashable | None:
        """Note that ``holder`` buffers ``size`` bytes. Returns the holder of most bytes if the
        budget is exceeded, None otherwise."""
        self.held += size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if self.held <= self.limits.max_buffered_bytes:
            return None
        return max(self._holders, key=self._holders.__getitem__)
