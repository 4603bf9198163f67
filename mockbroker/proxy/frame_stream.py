"""Cut a byte stream into frames that are passed on as they arrive, or collected whole. No I/O.

``kproto.framing`` returns whole frames; a proxy passes most of them on and must not hold a large
one until its end. Like there, the result does not depend on how the stream was chunked, a bad size
raises only after the frames before it, and nothing is allocated by a size that a peer announced.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from kproto.errors import RemoteProtocolError
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH
from mockbroker.serving.loop_turns import Turn

__all__ = ["Collect", "Copy", "FrameStream", "Treatment", "frame_end"]

_read_size: Final = Struct(">i").unpack_from


class Collect(NamedTuple):
    """Give the whole frame to ``take``, in the parts in which it arrived, and pass nothing on."""

    take: Callable[[list[bytes]], None]


class Copy(NamedTuple):
    """Pass the frame's bytes on as they arrive, and give a copy of the whole frame to ``take``."""

    take: Callable[[bytes], None]


Treatment: TypeAlias = int | Collect | Copy
"""A number is the offset at which this frame, or a later one, ends: the bytes up to there pass on
as they arrive. The offset may be beyond the received bytes."""

Begin: TypeAlias = Callable[[bytes, int], Treatment | None]
"""Called with the received bytes and the offset of a frame whose size is valid and received.
Returns None if it needs more of the frame than is there; the frame must not be complete then."""


def frame_end(data: bytes, at: int) -> int:
    """Return the offset behind the frame that begins at ``at``, whose size has been received."""
    return at + SIZE_LENGTH + int(_read_size(data, at)[0])


class FrameStream:
    """One direction of a connection.

    ``begin`` decides about each frame. ``out`` collects the bytes to pass on, in order; a ``take``
    may add to it. While ``paused`` nothing is read, nor while ``turn`` waits for the next one, in
    which each frame counts. ``receive(b"")`` reads on what was received.
    """

    __slots__ = ("_at", "_begin", "_begun", "_data", "_left", "_parts", "_taken", "_turn",
                 "max_size", "out", "paused")  # fmt: skip

    def __init__(
        self,
        begin: Begin,
        out: list[bytes],
        max_size: int = DEFAULT_MAX_SIZE,
        turn: Turn | None = None,
    ) -> None:
        self._turn = turn
        self.out = out
        self.max_size = max_size
        self.paused = False
        self._begin = begin
        self._data = b""
        """Received, and not read yet from ``_at`` on: the beginning of a frame, or what came while
        paused."""
        self._at = 0
        self._left = 0
        """Bytes that the frames under way still lack."""
        self._taken: Collect | Copy | None = None
        """What becomes of the frame under way; None if it passes on."""
        self._parts: list[bytes] = []
        self._begun = 0

    @property
    def buffered(self) -> int:
        """The bytes held here."""
        return len(self._data) - self._at + self._begun

    @property
    def within_frame(self) -> bool:
        """Whether the stream would end inside a frame if it ended now."""
        return bool(self._left or self._data)

    def receive(self, data: bytes) -> None:
        """Read bytes from the socket. Raises RemoteProtocolError for a bad size."""
        at, turn = 0, self._turn
        if self._data:
            if data:
                data = self._data[self._at :] + data
            else:
                data, at = self._data, self._at
            self._data, self._at = b"", 0
        if turn is not None and turn.waiting:
            self._data, self._at = data, at
            return
        end = len(data)
        relayed = at  # where the bytes begin that are to be passed on and are not in ``out`` yet
        try:
            while at < end and not self.paused:
                if self._left:
                    upto = min(at + self._left, end)
                    self._left -= upto - at
                    if self._taken is None:
                        at = upto
                        continue
                    self._parts.append(data[at:upto])
                    self._begun += upto - at
                    if isinstance(self._taken, Collect):
                        if relayed < at:
                            self.out.append(data[relayed:at])
                        relayed = upto
                    at = upto
                    if not self._left:
                        relayed = self._finish(data, relayed, at)
                        if turn is not None and turn.ends():
                            break
                    continue
                if end - at < SIZE_LENGTH:
                    break
                (size,) = _read_size(data, at)
                if not 0 <= size <= self.max_size:
                    self._refuse(size)
                treatment = self._begin(data, at)
                if treatment is None:
                    break
                if isinstance(treatment, int):
                    at = min(treatment, end)
                    self._left = treatment - at
                    if turn is not None and turn.ends():
                        break
                else:
                    self._taken = treatment
                    self._left = SIZE_LENGTH + size
        finally:
            if relayed < at:
                self.out.append(data[relayed:at] if relayed or at < end else data)
            if at < end:
                self._keep(data, at)

    def _keep(self, data: bytes, at: int) -> None:
        """Keep what is not read yet. It may wait for many turns, so it is copied only where that
        frees more than it copies."""
        if 2 * at > len(data):
            data, at = data[at:], 0
        self._data, self._at = data, at

    def _finish(self, data: bytes, relayed: int, at: int) -> int:
        """Give the complete frame to its taker; return where the bytes to pass on begin."""
        taken, parts = self._taken, self._parts
        self._taken, self._parts, self._begun = None, [], 0
        if taken is not None:
            # What a ``take`` adds has its place behind everything passed on before.
            if relayed < at:
                self.out.append(data[relayed:at])
            if isinstance(taken, Collect):
                taken.take(parts)
            else:
                taken.take(b"".join(parts))
        return at

    def _refuse(self, size: int) -> None:
        why = "is negative" if size < 0 else f"is more than the {self.max_size} allowed"
        raise RemoteProtocolError(f"frame size {size} {why}")
