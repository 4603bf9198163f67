"""What all streams of a reassembler share: the current events, the account, and memory limits.

Each category of bytes has one method, which both reports and counts them, so that neither can be
forgotten (data has its own in ``stream``, on the fast path). ``Recent`` keeps the newest data, to
compare retransmissions with.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, Protocol, TypeAlias

import msgspec

from wiredump.readers.account import Account
from wiredump.readers.model import (
    REASSEMBLY_LIMITS,
    Anomaly,
    AnomalyKind,
    At,
    Event,
    Gap,
    GapReason,
    Retransmission,
)
from wiredump.readers.tally import EndTally

__all__ = ["OVERHEAD", "Direction", "Ledger", "Limits", "Piece", "Recent"]

OVERHEAD: Final = 256
"""The approximate cost of keeping a piece of bytes, beside the bytes."""

_MOST_PIECES: Final = 256
"""The most pieces of recent bytes of one stream: a retransmission searches them."""


Piece: TypeAlias = tuple[int, bytes]
"""A position in a stream, and the bytes there."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept, and how long to wait; times are those of the captures, in nanoseconds.

    Memory counts what it costs to keep bytes. What exceeds a limit is never dropped: a hole becomes
    a Gap earlier than otherwise, with the reason ``limit`` or ``memory``, or a connection is closed
    as ``evicted``.
    """

    flow_bytes: int = 64 << 20
    """Bytes waiting behind the holes of one direction; beyond that, its first holes are given
    up."""
    total_bytes: int = 256 << 20
    """Bytes waiting in all directions; beyond that, the direction checked longest ago gives up its
    holes."""
    reorder_ns: int = 200_000_000
    """How long missing data may still appear after the receiver acknowledged it (a capture may have
    an acknowledgement before the data)."""
    hole_ns: int = 60_000_000_000
    """How long a hole stays open without an acknowledgement (which may not have been captured)."""
    recent_bytes: int = 8 << 20
    """Data kept to compare retransmissions with."""
    alone: bool = False
    """Whether the result for a connection depends only on its own packets: neither on a clock that
    other connections advance nor on the memory that they use. ``total_bytes`` and ``connections``
    do not apply then, and ``recent_bytes`` is for each direction, at most ``alone_bytes``."""
    alone_bytes: int = 64 << 10
    alone_total_bytes: int = 1 << 30
    """The limit of all memory with ``alone``. Above three quarters of it, the data kept for
    comparison is dropped; if more than half is still in use, the oldest holes are given up, as Gaps
    with the reason ``memory``. Only then do connections affect each other."""
    connections: int = 100_000
    """Connections known at a time, including closed ones; beyond that, those silent for longest are
    forgotten. One costs about 2 KiB."""

    @classmethod
    def within(cls, memory: int | None, *, alone: bool = False) -> Limits:
        """Return limits that keep at most this many bytes in all. None means the defaults."""
        defaults = cls(alone=alone)
        if memory is None:
            return defaults
        recent = min(defaults.recent_bytes, memory // 8)
        return cls(
            alone=alone,
            flow_bytes=memory // 4,
            total_bytes=memory - recent,
            recent_bytes=recent,
            alone_bytes=min(defaults.alone_bytes, memory // 64),
            alone_total_bytes=memory,
        )


class Recent:
    """The newest data of all streams."""

    __slots__ = ("_cost", "_limit", "_queue")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cost = 0
        self._queue: deque[tuple[list[Piece], Piece]] = deque()

    @property
    def cost(self) -> int:
        """What it costs to keep them."""
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


class Direction(Protocol):
    """One direction of a connection, as ``stream`` implements it."""

    connection: int
    direction: int
    next: int
    """The position of the next byte."""
    tally: EndTally

    def give_up(self, at: At, reason: GapReason = ...) -> None:
        """Turn all holes into gaps."""


class Ledger:
    """Events and sums. ``stream`` arguments are the direction, ``at`` is the time and the
    packet."""

    def __init__(self, account: Account, limits: Limits) -> None:
        self.account = account
        self.limits = limits
        self.events: list[Event] = []
        self.recent = Recent(limits.recent_bytes)
        self.held = 0
        """The cost of all that waits."""
        self.waiting: OrderedDict[Direction, int] = OrderedDict()
        """The streams with a hole, and when each was last checked; the one checked longest ago
        comes first."""

    def recent_of_stream(self) -> Recent:
        """Return where a new stream keeps its newest bytes."""
        limits = self.limits
        return Recent(min(limits.recent_bytes, limits.alone_bytes)) if limits.alone else self.recent

    def gap(self, stream: Direction, length: int, reason: GapReason, at: At) -> None:
        """Report that the stream's next ``length`` bytes are missing."""
        if reason in REASSEMBLY_LIMITS:
            self.account.beyond_limit += length
        else:
            self.account.missing += length
            stream.tally.missing_bytes += length
        self.events.append(
            Gap(
                stream.connection, stream.direction, stream.next, length, reason,
                at.timestamp_ns, at.capture, at.offset,
            )
        )  # fmt: skip

    def repeated(
        self, stream: Direction, start: int, length: int, differing: int | None, at: At
    ) -> None:
        """Report bytes that had been captured before."""
        self.account.retransmitted += length
        self.account.differing += differing or 0
        self.events.append(
            Retransmission(
                stream.connection, stream.direction, start, length, differing,
                at.timestamp_ns, at.capture, at.offset,
            )
        )  # fmt: skip

    def copied(self, stream: Direction, start: int, length: int, at: At) -> None:
        """Report bytes of a packet that another interface had before."""
        self.repeated(stream, start, length, 0, at)
        event = self.events[-1]
        assert isinstance(event, Retransmission)
        self.events[-1] = msgspec.structs.replace(event, copied=True)

    def anomaly(
        self, kind: AnomalyKind, reason: str, length: int, stream: Direction, start: int | None,
        at: At,
    ) -> None:  # fmt: skip
        """Report bytes (or an event without bytes) that are neither."""
        self.account.anomalous += length
        self.events.append(
            Anomaly(
                kind, reason, at.capture, at.offset, at.timestamp_ns, length,
                stream.connection, stream.direction, start,
            )
        )  # fmt: skip
