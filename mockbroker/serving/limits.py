"""What a cluster's clients may take of this process, and how much of it they hold. No sockets.

Kafka's names for the same are ``socket.request.max.bytes``, ``max.connections``,
``queued.max.request.bytes``, ``connections.max.idle.ms`` and ``sasl.server.max.receive.size``;
where the defaults differ from Kafka's, a mock shares its machine with what it tests.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from kproto.framing import DEFAULT_MAX_SIZE
from kproto.journal import DEFAULT_MAX_BYTES, DEFAULT_MAX_ENTRIES, Journal
from mockbroker.errors import ClusterError

__all__ = ["DEFAULTS", "MAX_BEFORE_SASL", "BufferBudget", "Limits"]

MAX_BEFORE_SASL: Final = 512 * 1024
"""Of a frame, while its sender has yet to authenticate: ``sasl.server.max.receive.size``, which
Kafka 3.4 and later leave there."""

_LONGEST: Final = 10**12
"""Of an idle timeout, in milliseconds: some thirty years."""


def _between(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ClusterError(f"{name} is {value}: {lowest} to {highest} is possible")


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_frame_bytes`` is the largest size a request may announce. ``max_connections`` are those
    of one broker. ``max_buffered_bytes``: requests not whole yet, requests that wait for their turn
    and answers that nobody reads, of all connections together. ``idle_timeout_ms``: a connection on
    which nothing comes or goes for so long is closed; None, never. The journal in memory keeps the
    newest ``journal_entries``, of ``journal_bytes`` at most.

    Raises ClusterError for what nobody can have meant.
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
        """A new one of this size."""
        return Journal(max_entries=self.journal_entries, max_bytes=self.journal_bytes)


DEFAULTS: Final = Limits()


class BufferBudget:
    """Who holds how many of ``max_buffered_bytes``."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.limits = limits
        self.held = 0
        self._holders: dict[Hashable, int] = {}

    def hold(self, holder: Hashable, size: int) -> Hashable | None:
        """``holder`` has ``size`` bytes from now on. Returns who has to go, where that is more than
        there is room for: whoever holds most, who need not be the one that came last."""
        self.held += size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if self.held <= self.limits.max_buffered_bytes:
            return None
        return max(self._holders, key=self._holders.__getitem__)
