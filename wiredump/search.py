"""Search for the beginning of a frame: the bytes to search, and the conditions to accept a
candidate.

A size field alone proves nothing, so a candidate is accepted by its surroundings. A whole one must
be followed by another frame, or end where a packet ends; and it must decode or, if its version is
unknown or it answers a request that was not captured, begin where a packet begins. A candidate that
a gap cuts must begin where a packet begins, too.

``frame_boundaries`` knows the form of frames. The cost is linear in the number of bytes, whatever
they are: a candidate that cannot be judged yet states how many bytes it needs, and decoding in vain
is limited by the bytes searched so far.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

__all__ = ["Candidate", "Found", "Frames", "Search"]

JUDGED_PER_BYTE: Final = 16
JUDGED_AT_LEAST: Final = 8 << 20
A_JUDGEMENT: Final = 1024
"""How many bytes of candidates may be decoded in vain for each byte searched, and initially; and
how many bytes a decoding counts for beside those that it reads. Candidates beyond that are
rejected; in real traffic, the first or second candidate decodes."""


class Found(NamedTuple):
    """``at`` is the first byte of a frame, or None if there is none yet. No frame begins before
    ``keep``, so those bytes can be dropped. Another search is useless before ``needs`` bytes are
    held from ``keep`` on."""

    at: int | None
    keep: int
    needs: int = 0


class Candidate(NamedTuple):
    """A place, and the length of a frame there, including the size field. ``known``: it can be
    judged by decoding. ``chained``: another frame must follow, since there is no other evidence."""

    at: int
    size: int
    known: bool = True
    chained: bool = False


class Undecided(Exception):
    """``needs`` bytes from ``at`` on are needed to decide whether a frame begins there."""

    def __init__(self, at: int, needs: int) -> None:
        self.at = at
        self.needs = needs


class Frames(Protocol):
    """The form of the frames of one direction."""

    least: int
    """The number of bytes needed to recognise a candidate."""

    def candidates(self, search: Search) -> Iterator[Candidate]:
        """Yield candidates in ascending order. Raises Undecided at one that needs more bytes."""

    def decodes(self, raw: bytes) -> bool | None:
        """Whether a frame, or the captured part of it, decodes; None if its layout is unknown."""

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        """Whether a frame like those after ``first`` begins at ``at``; None if that needs more
        bytes."""


class Search:
    """Searches the bytes ``held`` of one direction, from ``start`` on.

    ``final``: nothing follows (because of a gap, or the end), so an incomplete frame will never be
    complete. ``cuts``: such a frame is accepted at all. ``packet`` adds the beginnings of packets
    while the search lasts.
    """

    def __init__(self, held: bytearray, *, cuts: bool = True) -> None:
        self.held = held
        self.start = 0
        self.final = False
        self.cuts = cuts
        self._base = 0
        """The stream offset of the first byte held."""
        self._starts: list[int] = []
        """The stream offsets at which packets begin, in order."""
        self._credit = JUDGED_AT_LEAST

    @property
    def newest(self) -> int:
        """Where the newest packet begins."""
        return self._starts[-1] if self._starts else -1

    def packet(self, offset: int, size: int = 0) -> None:
        """Add a packet of ``size`` bytes that begins at this stream offset."""
        if offset > self.newest:
            self._starts.append(offset)
        self._credit += JUDGED_PER_BYTE * size

    def look(self, base: int, start: int, final: bool) -> None:
        """Set the bytes to search: ``held`` from ``start`` on, whose first byte is at ``base``."""
        self._base, self.start, self.final = base, start, final
        passed = bisect_left(self._starts, base + start)
        if 2 * passed > len(self._starts):
            del self._starts[:passed]

    def is_start(self, at: int) -> bool:
        """Whether a packet begins there."""
        index = bisect_left(self._starts, self._base + at)
        return index < len(self._starts) and self._starts[index] == self._base + at

    def is_end(self, at: int) -> bool:
        """Whether a packet ends there."""
        return at == len(self.held) or self.is_start(at)

    def starts(self) -> Iterator[int]:
        """Return where packets begin, from ``start`` on."""
        for index in range(bisect_left(self._starts, self._base + self.start), len(self._starts)):
            yield self._starts[index] - self._base

    def find(self, frames: Frames, most: int) -> Found:
        """Find the first frame. A frame of more than ``most`` bytes is neither waited for nor
        accepted by its beginning alone. Only the last frame before a gap can be cut, so whole ones
        take precedence."""
        end, cut = len(self.held), None
        try:
            for candidate in frames.candidates(self):
                if candidate.at + candidate.size <= end:
                    if self._is_frame(frames, candidate):
                        return Found(candidate.at, candidate.at)
                elif candidate.size > most:
                    continue
                elif not self.final:
                    raise Undecided(candidate.at, candidate.size)
                elif cut is None and self._may_be_cut(frames, candidate):
                    cut = candidate.at
        except Undecided as undecided:
            return Found(None, undecided.at, undecided.needs)
        if cut is not None:
            return Found(cut, cut)
        return Found(None, end if self.final else max(self.start, end - frames.least + 1))

    def _may_be_cut(self, frames: Frames, candidate: Candidate) -> bool:
        if not (self.cuts and candidate.known and self.is_start(candidate.at)):
            return False
        return self._decodes(frames, candidate) is not False

    def _is_frame(self, frames: Frames, candidate: Candidate) -> bool:
        at, end = candidate.at, candidate.at + candidate.size
        if candidate.chained or not self.is_end(end):
            follows = frames.follows(self, candidate, end)
            if follows is None and not self.final:
                raise Undecided(at, candidate.size + frames.least)
            if not follows:
                return False
        decodes = self._decodes(frames, candidate)
        return self.is_start(at) if decodes is None else decodes

    def _decodes(self, frames: Frames, candidate: Candidate) -> bool | None:
        if not candidate.known:
            return None
        price = candidate.size + A_JUDGEMENT
        if price > self._credit:
            return False
        with memoryview(self.held) as held:
            raw = bytes(held[candidate.at : candidate.at + candidate.size])
        decodes = frames.decodes(raw)
        if not decodes:
            self._credit -= price
        return decodes
