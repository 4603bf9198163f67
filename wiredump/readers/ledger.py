"""What all streams of a reassembler share: the events of the moment, the account, and memory.

Each category of byte has one method, which tells of it and counts it, so that no byte can be told
of and not counted (data has its own in ``stream``, on the fast path). ``Recent`` keeps what was
handed out last, to compare repetitions with.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from wiredump.readers.account import Account
from wiredump.readers.model import (
    Anomaly,
    AnomalyKind,
    At,
    Event,
    Gap,
    GapReason,
    Retransmission,
)

if TYPE_CHECKING:
    from wiredump.readers.stream import Stream

__all__ = ["OVERHEAD", "Ledger", "Limits", "Piece", "Recent"]

OVERHEAD: Final = 256
"""What keeping a piece of bytes costs beside them, about."""

_MOST_PIECES: Final = 256
"""Of a stream's recent bytes: a repetition looks through them."""


Piece: TypeAlias = tuple[int, bytes]
"""A position in a stream, and the bytes there."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept and how long is waited; times are the captures' own, in nanoseconds.

    Bytes of memory count what keeping them costs. What exceeds a limit is never dropped: a hole is
    told of as a Gap earlier than it would have been, a connection closed as ``evicted``.
    """

    flow_bytes: int = 16 << 20
    """Waiting behind the holes of one direction."""
    total_bytes: int = 256 << 20
    """Waiting in all; the direction that was looked at longest ago gives way."""
    reorder_ns: int = 200_000_000
    """How long after the receiver acknowledged it missing data may still turn up (a capture may
    show an acknowledgement before what it acknowledges)."""
    hole_ns: int = 60_000_000_000
    """How long a hole stays open without any acknowledgement (one that was not captured)."""
    recent_bytes: int = 8 << 20
    """Handed out and kept to compare repetitions with."""
    alone: bool = False
    """What becomes of a connection depends on its own packets, and on nothing else: not on the
    clock that others move, nor on the memory that they take. ``total_bytes`` and ``connections``
    are not limits then, and ``recent_bytes`` is each direction's own, at most ``alone_bytes``."""
    alone_bytes: int = 64 << 10
    alone_total_bytes: int = 1 << 30
    """Waiting, and kept to compare, of all that are alone. Where it takes more than three quarters
    of this, nothing can be: what is kept to compare is forgotten, and if half of this still waits,
    the oldest holes are given up, as Gaps for want of ``memory``."""
    connections: int = 100_000
    """Known at a time, closed ones included; then those silent for longest are forgotten. One
    costs about 2 KiB."""

    @classmethod
    def within(cls, memory: int | None, *, alone: bool = False) -> Limits:
        """Those that keep no more than so many bytes in all: waiting, and to compare. None: the
        usual ones."""
        usual = cls(alone=alone)
        if memory is None:
            return usual
        recent = min(usual.recent_bytes, memory // 8)
        return cls(
            alone=alone,
            flow_bytes=min(usual.flow_bytes, memory // 4),
            total_bytes=memory - recent,
            recent_bytes=recent,
            alone_bytes=min(usual.alone_bytes, memory // 64),
            alone_total_bytes=memory,
        )


class Recent:
    """The newest bytes that were handed out, over all streams."""

    __slots__ = ("_cost", "_limit", "_queue")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cost = 0
        self._queue: deque[tuple[list[Piece], Piece]] = deque()

    @property
    def cost(self) -> int:
        """What keeping them costs."""
        return self._cost

    def add(self, recent: list[Piece], start: int, data: bytes) -> None:
        """``recent`` is the stream's own list, in order."""
        if len(recent) == _MOST_PIECES:
            del recent[0]
        piece = (start, data)
        recent.append(piece)
        self._queue.append((recent, piece))
        self._cost += len(data) + OVERHEAD
        while self._cost > self._limit:
            oldest, piece = self._queue.popleft()
            self._cost -= len(piece[1]) + OVERHEAD
            if oldest and oldest[0] is piece:
                del oldest[0]


class Ledger:
    """Events and sums. ``stream`` arguments say where, ``at`` when and in which packet."""

    def __init__(self, account: Account, limits: Limits) -> None:
        self.account = account
        self.limits = limits
        self.events: list[Event] = []
        self.recent = Recent(limits.recent_bytes)
        self.held = 0
        """What all that waits costs."""
        self.waiting: dict[Stream, int] = {}
        """Those with a hole, and when each was last looked at; the longest ago comes first."""

    def recent_of_stream(self) -> Recent:
        """What a stream that begins is to keep its newest bytes with."""
        limits = self.limits
        return Recent(min(limits.recent_bytes, limits.alone_bytes)) if limits.alone else self.recent

    def gap(self, stream: Stream, length: int, reason: GapReason, at: At) -> None:
        """The stream's next ``length`` bytes are not there."""
        self.account.missing += length
        stream.tally.missing_bytes += length
        self.events.append(
            Gap(
                stream.connection, stream.direction, stream.next, length, reason,
                at.timestamp_ns, at.capture, at.offset,
            )
        )  # fmt: skip

    def repeated(
        self, stream: Stream, start: int, length: int, differing: int | None, at: At
    ) -> None:
        """Bytes that had been captured before."""
        self.account.retransmitted += length
        self.account.differing += differing or 0
        self.events.append(
            Retransmission(
                stream.connection, stream.direction, start, length, differing,
                at.timestamp_ns, at.capture, at.offset,
            )
        )  # fmt: skip

    def anomaly(
        self, kind: AnomalyKind, reason: str, length: int, stream: Stream, start: int | None,
        at: At,
    ) -> None:  # fmt: skip
        """Bytes (or none) that are neither."""
        self.account.anomalous += length
        self.events.append(
            Anomaly(
                kind, reason, at.capture, at.offset, at.timestamp_ns, length,
                stream.connection, stream.direction, start,
            )
        )  # fmt: skip
