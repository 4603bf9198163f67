"""Cut one direction of a connection into frames, across gaps in the capture.

The input is bytes and gaps in the order of the stream. Each byte ends up in a frame or is passed
over with a reason. As long as the positions of frames are known, a size gives the position of the
next frame, even behind a gap. Once they are not, ``find`` (``search``) looks for the next frame.
Pairing is not done here.

No memory is allocated by a size field. At most one frame of ``max_size`` is held, or what ``find``
needs to wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH
from wiredump.connection_state import FrameState
from wiredump.model import Direction, Frame, Place
from wiredump.readers.model import REASSEMBLY_LIMITS
from wiredump.search import Found, Search
from wiredump.unread import Unread

__all__ = ["Finder", "FrameCutter", "Passed", "Piece"]

Finder: TypeAlias = Callable[[Search], Found]

_LEAST: Final[dict[Direction, int]] = {"request": 8, "response": 4}
"""The size of a header, and so of the smallest frame, except for SASL tokens without one
(KIP-43)."""

_int32: Final = Struct(">i").unpack_from


class Passed(NamedTuple):
    """``size`` bytes from ``offset`` on that are not part of any frame: ``unread`` is for programs,
    ``reason`` for people."""

    offset: int
    size: int
    reason: str
    timestamp_ns: int
    place: Place
    unread: Unread


Piece: TypeAlias = Frame | Passed


class _Why(NamedTuple):
    """Why bytes are passed over."""

    reason: str
    unread: Unread


class _Mark(NamedTuple):
    """The packet that brought the bytes between the previous mark and ``end``."""

    end: int
    timestamp_ns: int
    place: Place
    waited_ns: int = 0


class FrameCutter:
    """Cuts a stream: each call takes a part and returns the frames that it completes, in order.

    ``in_step`` is whether the first byte begins a frame; it is the ``begins``-th of the stream.
    """

    def __init__(
        self, direction: Direction, find: Finder, *, in_step: bool,
        max_size: int = DEFAULT_MAX_SIZE, begins: int = 0,
    ) -> None:  # fmt: skip
        self.direction = direction
        self.least = _LEAST[direction]
        """The least size to accept: 0 if tokens may travel without a header."""
        self.max_size = max_size
        self._find = find
        self._in_step = in_step
        self._why: _Why | None = None
        if not in_step:
            self._why = _Why("before the first frame that was recognised", "before-start")
        self._held = bytearray()
        self._base = begins
        """The stream offset of the first byte held."""
        self._search = Search(self._held)
        self._needs = 0
        """The stream offset that must be reached before another search can succeed."""
        self._marks: deque[_Mark] = deque()
        # The frame that a gap has cut: its beginning and size, the bytes in front of gaps and
        # behind them, and how many bytes are missing so far.
        self._cut: _CutFrame | None = None
        # Bytes passed over and not returned yet, so that results do not depend on chunking.
        self._passing: Passed | None = None

    @property
    def in_step(self) -> bool:
        """Whether the position of the next frame is known."""
        return self._in_step

    def data(
        self, raw: bytes | memoryview, timestamp_ns: int, place: Place, waited_ns: int = 0
    ) -> list[Piece]:
        """Take the next bytes, the packet that brought them, and how long they waited for earlier
        bytes."""
        pieces: list[Piece] = []
        at = 0
        if self._cut is not None:
            at = self._continue_cut(raw, timestamp_ns, waited_ns, pieces)
        if at < len(raw):
            if not self._in_step:
                self._search.packet(self._base + len(self._held), len(raw) - at)
            self._held += raw[at:] if at else raw
            end = self._base + len(self._held)
            self._marks.append(_Mark(end, timestamp_ns, place, waited_ns))
            self._advance(pieces)
        return pieces

    def resume(self) -> list[Piece]:
        """Cut the bytes that are held, which were collected elsewhere."""
        pieces: list[Piece] = []
        self._advance(pieces)
        return pieces

    def dump(self) -> FrameState | None:
        """Return the state if the stream is between two frames; otherwise None."""
        if not self._in_step or self._held or self._cut is not None or self._passing is not None:
            return None
        return FrameState(self._base, b"", b"")

    def restore(self, state: FrameState) -> None:
        """Continue a frame that was begun elsewhere."""
        self._base, self._held[:], _ = state
        self._marks = deque(_Mark(*mark) for mark in state.marks())

    def gap(self, size: int, timestamp_ns: int, place: Place, reason: str) -> list[Piece]:
        """Take a gap of ``size`` bytes."""
        pieces: list[Piece] = []
        if size <= 0:
            return pieces
        self._conclude(pieces)
        if self._cut is not None:
            size = self._skip_cut(size, timestamp_ns, pieces)
            if not size:
                return pieces
        unread: Unread = "reassembly-limit" if reason in REASSEMBLY_LIMITS else "missing"
        self._let_go(_Why(f"next to a gap ({reason})", unread), pieces)
        if self._in_step or self._why is None:
            self._why = _Why(f"behind a gap ({reason})", unread)
        self._base += size
        self._lose_step()
        return pieces

    def end(self) -> list[Piece]:
        """End the stream; an incomplete frame is returned as far as it goes."""
        pieces: list[Piece] = []
        self._conclude(pieces)
        if self._cut is not None:
            rest = self._cut.end - self._cut.at
            self._cut.missing += rest
            self._finish_cut(pieces)
        self._let_go(_Why("the connection's end cuts a size", "missing"), pieces)
        return pieces

    def _conclude(self, pieces: list[Piece]) -> None:
        """Treat an incomplete frame as cut, since nothing follows it."""
        if self._cut is None:
            self._advance(pieces, final=True)
            if self._in_step and len(self._held) >= SIZE_LENGTH:
                self._begin_cut()

    # -- whole frames ------------------------------------------------------------------------

    def _advance(self, pieces: list[Piece], *, final: bool = False) -> None:
        """Return every complete frame, then handle as much of the rest as possible."""
        used = 0
        held = self._held
        while True:
            if not self._in_step:
                if self._base + len(held) < self._needs and not final:
                    break
                found = self._look(used, final)
                keep = found.keep if found.at is None else found.at
                if keep > used:
                    assert self._why is not None
                    self._pass(used, keep, self._why)
                    used = keep
                if found.at is None:
                    self._needs = self._base + keep + found.needs
                    break
                self._in_step, self._why = True, None
                self._flush(pieces)
            if len(held) - used < SIZE_LENGTH:
                break
            (size,) = _int32(held, used)
            if not self.least <= size <= self.max_size:
                self._lose_step()
                self._why = _Why(f"behind a frame size of {size}", "malformed")
                continue
            end = used + SIZE_LENGTH + size
            if end > len(held):
                break
            pieces.append(self._frame(used, end))
            used = end
        if used:
            del held[:used]
            self._base += used

    def _lose_step(self) -> None:
        self._in_step = False
        self._needs = 0
        newer = takewhile(lambda mark: mark.end > self._search.newest, reversed(self._marks))
        for mark in reversed(list(newer)):
            self._search.packet(mark.end)

    def _look(self, start: int, final: bool) -> Found:
        self._search.look(self._base, start, final)
        return self._find(self._search)

    def _frame(self, start: int, end: int) -> Frame:
        first = self._mark(self._base + start)
        last = self._mark(self._base + end - 1)
        return Frame(
            self.direction, self._base + start, end - start, bytes(self._held[start:end]), 0,
            first.timestamp_ns, last.timestamp_ns, first.place, waited_ns=last.waited_ns,
        )  # fmt: skip

    def _mark(self, offset: int) -> _Mark:
        """Return the packet that brought the byte at ``offset``. Offsets never decrease."""
        marks = self._marks
        while marks[0].end <= offset:
            marks.popleft()
        return marks[0]

    def _pass(self, start: int, end: int, why: _Why) -> None:
        before = self._passing
        if before is not None and before.reason == why.reason:
            self._passing = before._replace(size=before.size + end - start)
            return
        mark = self._mark(self._base + start)
        self._passing = Passed(
            self._base + start, end - start, why.reason, mark.timestamp_ns, mark.place, why.unread
        )

    def _flush(self, pieces: list[Piece]) -> None:
        if self._passing is not None:
            pieces.append(self._passing)
            self._passing = None

    def _let_go(self, why: _Why, pieces: list[Piece]) -> None:
        """Pass over everything held; ``why`` is for bytes of a frame."""
        if self._held:
            self._pass(0, len(self._held), self._why or why)
            self._base += len(self._held)
            self._held.clear()
        self._flush(pieces)

    # -- frames with bytes missing -----------------------------------------------------------

    def _begin_cut(self) -> None:
        """Start a cut frame with the bytes held."""
        (size,) = _int32(self._held)
        end = self._base + len(self._held)
        first, last = self._mark(self._base), self._marks[-1]
        self._cut = _CutFrame(self._base, SIZE_LENGTH + size, bytes(self._held), end, first, last)
        self._held.clear()
        self._base = end

    def _continue_cut(
        self, raw: bytes | memoryview, timestamp_ns: int, waited_ns: int, pieces: list[Piece]
    ) -> int:
        """Add bytes behind a gap to their frame; returns how many belong to it."""
        cut = self._cut
        assert cut is not None
        taken = min(len(raw), cut.end - cut.at)
        cut.add(raw[:taken])
        cut.last_ns, cut.waited_ns = timestamp_ns, waited_ns
        if cut.at == cut.end:
            self._finish_cut(pieces)
        return taken

    def _skip_cut(self, size: int, timestamp_ns: int, pieces: list[Piece]) -> int:
        """Count a gap into the frame that it cuts; returns how much of the gap is beyond it."""
        cut = self._cut
        assert cut is not None
        inside = min(size, cut.end - cut.at)
        cut.at += inside
        cut.missing += inside
        if cut.at == cut.end:
            self._finish_cut(pieces)
        return size - inside

    def _finish_cut(self, pieces: list[Piece]) -> None:
        cut = self._cut
        assert cut is not None
        self._cut = None
        self._base = cut.at
        pieces.append(cut.frame(self.direction))


class _CutFrame:
    """A frame that a gap has cut, until its end is reached."""

    def __init__(
        self, offset: int, size: int, raw: bytes, at: int, first: _Mark, last: _Mark
    ) -> None:
        self.offset = offset
        self.size = size
        self.raw = raw
        self.at = at
        self.first = first
        self.last_ns = last.timestamp_ns
        self.waited_ns = last.waited_ns
        self.missing = 0
        self.behind: list[tuple[int, bytearray]] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.behind = []  # states of version 4 lack it
        self.__dict__.update(state)

    def add(self, raw: bytes | memoryview) -> None:
        """Add bytes behind a gap."""
        place = self.at - self.offset
        if self.behind and self.behind[-1][0] + len(self.behind[-1][1]) == place:
            self.behind[-1][1].extend(raw)
        else:
            self.behind.append((place, bytearray(raw)))
        self.at += len(raw)

    @property
    def end(self) -> int:
        return self.offset + self.size

    def frame(self, direction: Direction) -> Frame:
        return Frame(
            direction, self.offset, self.size, self.raw, self.missing, self.first.timestamp_ns,
            self.last_ns, self.first.place, waited_ns=self.waited_ns,
            behind=tuple((place, bytes(raw)) for place, raw in self.behind),
        )  # fmt: skip
