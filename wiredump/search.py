"""Looking for a frame's beginning: what there is to look in, and what it takes to believe one.

A size says nothing about itself, so a candidate is believed for what stands around it. A whole one
has to be followed by what fits, or end where a packet does; and to decode, or, where nobody here
can decode it (a version to come, the answer to a request that was not seen), to begin where a
packet does. One that a gap cuts has to begin where a packet does, too.

What a frame looks like is ``boundaries``' business. Cost is linear in the bytes looked through,
whatever they are: a candidate that cannot be judged yet says how many bytes it takes, and what is
decoded in vain is paid for out of what was looked through.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

__all__ = ["Candidate", "Found", "Frames", "Search"]

JUDGED_PER_BYTE: Final = 16
JUDGED_AT_LEAST: Final = 8 << 20
A_JUDGEMENT: Final = 1024
"""Bytes of candidates decoded in vain, for each byte looked through and to begin with, and as how
many a decoding counts beside those it reads. What made-up bytes ask beyond that is not believed; of
real traffic the first or second candidate decodes."""


class Found(NamedTuple):
    """``at`` is the first byte of a frame, None where there is none yet. Everything in front of
    ``keep`` can be let go of: no frame begins there. There is no use in asking again before
    ``needs`` bytes are held from ``keep`` on."""

    at: int | None
    keep: int
    needs: int = 0


class Candidate(NamedTuple):
    """A place, and what a frame there would take, size field included. ``known``: it can be judged
    by decoding it. ``chained``: a frame has to follow it, as nothing else speaks for it."""

    at: int
    size: int
    known: bool = True
    chained: bool = False


class Undecided(Exception):
    """It takes ``needs`` bytes from ``at`` on to tell whether a frame begins there."""

    def __init__(self, at: int, needs: int) -> None:
        self.at = at
        self.needs = needs


class Frames(Protocol):
    """What the frames of one direction look like."""

    least: int
    """Bytes that it takes to see a candidate."""

    def candidates(self, search: Search) -> Iterator[Candidate]:
        """In ascending order. Raises Undecided at one that takes more bytes to tell."""

    def decodes(self, raw: bytes) -> bool | None:
        """Whether a frame does, or what there is of it; None where nobody here knows how it is
        written."""

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        """Whether a frame like those behind ``first`` begins at ``at``; None where that takes more
        bytes."""


class Search:
    """The bytes ``held`` of one direction, looked through from ``start`` on.

    ``final``: nothing follows what is held (a gap does, or the end), so a frame that is not whole
    never will be. ``cuts``: such a frame is believed at all. ``packet`` says where packets begin,
    as long as one is looking.
    """

    def __init__(self, held: bytearray, *, cuts: bool = True) -> None:
        self.held = held
        self.start = 0
        self.final = False
        self.cuts = cuts
        self._base = 0
        """The stream's offset of the first byte held."""
        self._starts: list[int] = []
        """The stream's offsets at which packets begin, in order."""
        self._credit = JUDGED_AT_LEAST

    @property
    def newest(self) -> int:
        """Where the newest packet begins."""
        return self._starts[-1] if self._starts else -1

    def packet(self, offset: int, size: int = 0) -> None:
        """A packet of ``size`` bytes begins at this offset of the stream."""
        if offset > self.newest:
            self._starts.append(offset)
        self._credit += JUDGED_PER_BYTE * size

    def look(self, base: int, start: int, final: bool) -> None:
        """What follows is about ``held`` from ``start`` on, whose first byte is at ``base``."""
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
        """Where packets begin, from ``start`` on."""
        for index in range(bisect_left(self._starts, self._base + self.start), len(self._starts)):
            yield self._starts[index] - self._base

    def find(self, frames: Frames, most: int) -> Found:
        """The first frame; one of more than ``most`` bytes is neither waited for nor believed on
        the strength of its beginning. The last one in front of a gap is the only one that may be
        cut, so whole ones go before it."""
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
