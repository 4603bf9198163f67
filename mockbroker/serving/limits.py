"""What a cluster holds for clients, within the limits of its options.

Kafka's names for them are ``socket.request.max.bytes``, ``max.connections``,
``queued.max.request.bytes``, ``connections.max.idle.ms`` and ``sasl.server.max.receive.size``. Some
defaults are lower than Kafka's, because a mock shares its machine with the tests.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from mockbroker.options import DEFAULT_LIMITS, Limits

__all__ = ["MAX_BEFORE_SASL", "BufferBudget"]

MAX_BEFORE_SASL: Final = 512 * 1024
"""The largest frame before authentication: the default of ``sasl.server.max.receive.size`` since
Kafka 3.4."""


class BufferBudget:
    """Accounts for ``max_buffered_bytes`` by connection."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
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
