"""Latency and bandwidth: when bytes that pass may be delivered, or written.

A ``Pace`` is one direction of one connection. Bytes keep their order, whatever the settings were
when they came.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations import Place

__all__ = ["MOST_QUEUED", "Pace", "PacedBytes", "PacedWriter", "Paces", "Pacing", "check_place"]

MOST_QUEUED: Final = 256 * 1024
"""Bytes that wait, beyond which the sender is not read: as much as uvloop reads at once. With more,
bytes leave the processor's caches before they are written."""

_PIECE: Final = 16 * 1024
"""Bytes written at a time while the bandwidth is limited."""


class Pacing(msgspec.Struct):
    """What all connections of a listener share: seconds of delay in each direction, and bytes a
    second of each connection in each direction. 0 stands for no delay and no limit."""

    latency: float = 0.0
    bandwidth: int = 0
    active: bool = False
    """Whether either is set: ``Paces`` keeps it for those that ask with each read and write."""

    def __bool__(self) -> bool:
        return bool(self.latency or self.bandwidth)

    def change(self, name: Literal["latency", "bandwidth"], value: float) -> None:
        setattr(self, name, value)
        self.active = bool(self)

    def to_dict(self) -> dict[str, int]:
        return {"latency_ms": round(self.latency * 1000), "bandwidth": int(self.bandwidth)}


class Paces:
    """The ``Pacing`` of each listener, those of listeners that come later too. The last setting for
    a listener counts."""

    def __init__(self, latency: float = 0.0, bandwidth: int = 0) -> None:
        self._made: dict[tuple[int, str], Pacing] = {}
        self._settings: list[tuple[Literal["latency", "bandwidth"], float, Place | None]] = [
            ("latency", latency, None), ("bandwidth", bandwidth, None),
        ]  # fmt: skip

    def of(self, broker_id: int, listener: str) -> Pacing:
        """Return what the connections of a broker's listener share."""
        found = self._made.get((broker_id, listener))
        if found is None:
            found = self._made[broker_id, listener] = Pacing()
            for name, value, place in self._settings:
                if place is None or place.has(broker_id, listener):
                    found.change(name, value)
        return found

    def set_latency(self, seconds: float, place: Place | None) -> None:
        self._set("latency", seconds, place)

    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None:
        self._set("bandwidth", bytes_per_second, place)

    def _set(
        self, name: Literal["latency", "bandwidth"], value: float, place: Place | None
    ) -> None:
        same = [each for each in self._settings if each[0] == name and each[2] in (None, place)]
        for each in same if place is None else same[1:]:
            self._settings.remove(each)
        self._settings.append((name, value, place))
        for (broker_id, listener), pacing in self._made.items():
            if place is None or place.has(broker_id, listener):
                pacing.change(name, value)


def check_place(place: Place | None, listeners: Mapping[int, Iterable[str]]) -> None:
    """Raise ClusterError if a setting for this place would concern no listener; ``listeners`` has
    the names of those of each broker."""
    found = ((broker_id, name) for broker_id, names in listeners.items() for name in names)
    if place is None or any(place.has(*each) for each in found):
        return
    names = ", ".join(dict.fromkeys(name for each in listeners.values() for name in each))
    ids = ", ".join(map(str, sorted(listeners)))
    raise ClusterError(
        f"nothing listens as {place}; the brokers are {ids}, their listeners {names}"
    )


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


class PacedBytes:
    """Delivers the bytes of one direction, no sooner than ``pace`` allows. ``changed`` is called
    once fewer than ``MOST_QUEUED`` bytes wait again."""

    def __init__(
        self, pacing: Pacing, deliver: Callable[[bytes], None], changed: Callable[[], None]
    ) -> None:
        self.pace = Pace(pacing)
        self._deliver = deliver
        self._changed = changed
        self._timer: asyncio.TimerHandle | None = None

    @property
    def full(self) -> bool:
        """Whether more waits than the sender may go on adding to."""
        return self.pace.queued > MOST_QUEUED

    def add(self, data: bytes) -> None:
        """Deliver these bytes when it is time."""
        self.pace.add(data, asyncio.get_running_loop().time())
        self._deliver_due()

    def flush(self) -> None:
        """Deliver at once what waits: the sender is gone."""
        self.lost()
        waiting = self.pace.take(float("inf"))
        if waiting:
            self._deliver(b"".join(waiting))

    def lost(self) -> None:
        """Deliver nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _deliver_due(self) -> None:
        loop = asyncio.get_running_loop()
        was_full = self.full
        due = self.pace.take(loop.time())
        self.lost()
        if self.pace.due is not None:
            self._timer = loop.call_at(self.pace.due, self._deliver_due)
        if due:
            self._deliver(b"".join(due))
        if was_full and not self.full:
            self._changed()


class PacedWriter(PacedBytes):
    """Writes to one side, no sooner than ``pace`` allows."""

    def __init__(self, pacing: Pacing, changed: Callable[[], None]) -> None:
        super().__init__(pacing, self._to_transport, changed)
        self.transport: asyncio.Transport | None = None
        self._closing = False

    def write(self, parts: list[bytes]) -> None:
        """Write all of these, and empty the list."""
        if self.transport is None:
            pass
        elif not self.pace.idle:
            self.add(b"".join(parts))
        elif len(parts) == 1:
            self.transport.write(parts[0])
        else:
            self.transport.writelines(parts)
        parts.clear()

    def close(self) -> None:
        """Close once everything is written."""
        self._closing = True
        if self.pace.due is None and self.transport is not None:
            self.transport.close()

    def _to_transport(self, data: bytes) -> None:
        if self.transport is None:
            return
        self.transport.write(data)
        if self._closing and self.pace.due is None:
            self.transport.close()
