"""Latency and bandwidth: when bytes that pass may be written. No sockets and no clock.

A ``Pace`` is one direction of one connection. Bytes keep their order, whatever the settings were
when they came.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

__all__ = ["Pace", "Pacing"]

_PIECE: Final = 16 * 1024
"""Bytes written at a time while the bandwidth is limited."""


class Pacing(msgspec.Struct):
    """What all connections of a proxy share: seconds of delay in each direction, and bytes a second
    of each connection in each direction. 0 stands for no delay and
    no limit."""

    latency: float = 0.0
    bandwidth: int = 0

    def __bool__(self) -> bool:
        return bool(self.latency or self.bandwidth)


class Pace:
    """``now`` is a time in seconds, of a clock that never goes back."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._queue: deque[tuple[float, bytes]] = deque()
        self._free_at = 0.0
        self.queued = 0
        """Bytes that wait."""

    @property
    def idle(self) -> bool:
        """Whether bytes that come now may be written at once."""
        return not self._queue and not self._pacing

    @property
    def due(self) -> float | None:
        """When the next bytes may be written; None if none wait."""
        return self._queue[0][0] if self._queue else None

    def add(self, data: bytes, now: float) -> None:
        """Let these bytes wait."""
        latency, bandwidth = self._pacing.latency, self._pacing.bandwidth
        last = self._queue[-1][0] if self._queue else 0.0
        self.queued += len(data)
        if not bandwidth:
            self._queue.append((max(now + latency, last), data))
            return
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            self._free_at = max(self._free_at, now) + len(piece) / bandwidth
            last = max(self._free_at + latency, last)
            self._queue.append((last, piece))

    def take(self, now: float) -> list[bytes]:
        """Return what may be written now."""
        taken = []
        while self._queue and self._queue[0][0] <= now:
            _, data = self._queue.popleft()
            self.queued -= len(data)
            taken.append(data)
        return taken
