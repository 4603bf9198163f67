"""Find the first record at or behind any byte of a capture, by a chain of headers that agree with
each other.

The result is a guess: a capture within a capture has records, too. The caller must check that each
part begins with the record where the previous one ended.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wiredump.readers.pcap import LARGEST_RECORD
from wiredump.spark.heads import Head
from wiredump.storage import RangedFile

__all__ = ["find_record"]

_CHAIN: Final = 16
"""This many records in a row are accepted, or as many as there are before the end of the file."""

_RECORD: Final = 16
_BLOCK: Final = 8
_SHORTEST_BLOCK: Final = 12
_WINDOW: Final = 256 << 10
_MOST_SECONDS: Final = 366 * 86_400
"""The most seconds between a record and the first one."""

_BLOCKS: Final = np.array(
    [1, 2, 3, 4, 5, 6, 9, 0xA, 0xBAD, 0x40000BAD, 0x0A0D0D0A], dtype=np.uint32
)

_Bytes = npt.NDArray[np.uint8]


def find_record(file: RangedFile, size: int, head: Head, start: int) -> int | None:
    """Return the first byte at or behind ``start`` at which a record seems to begin; ``size`` if
    only the end of the file is left; None if nothing looks like one."""
    if start <= head.first:
        return head.first
    if start >= size:
        return size
    seek = _Pcap(file, size, head) if head.format == "pcap" else _Pcapng(file, size, head)
    # A record of the largest length may stand in front of the one that is looked for.
    until = min(size, start + LARGEST_RECORD + _WINDOW)
    for strict in (True, False):
        position = start
        while position < until:
            data = file.read_at(position, _WINDOW + _RECORD)
            for at in seek.candidates(data, position):
                if at >= position + _WINDOW:
                    break
                if seek.holds(at, strict):
                    return at
            position += _WINDOW
    return size if until == size and size - start < _SHORTEST_BLOCK else None


class _Seek:
    """``holds`` follows the chain from a candidate. A shorter chain must reach the very end of the
    file if ``strict``; otherwise the file may end within a record."""

    def __init__(self, file: RangedFile, size: int, head: Head) -> None:
        self.file, self.size, self.head = file, size, head

    def candidates(self, data: bytes, position: int) -> list[int]:
        raise NotImplementedError

    def next(self, at: int) -> int:
        """Return where the record at ``at`` ends; -1 if there can be none."""
        raise NotImplementedError

    def holds(self, at: int, strict: bool) -> bool:
        for number in range(_CHAIN):
            if at == self.size:
                return number > 0
            if at > self.size:
                return not strict and number > 1
            following = self.next(at)
            if following < 0:
                # Fewer bytes are left than a header has.
                return not strict and number > 0 and self.size - at < _SHORTEST_BLOCK
            at = following
        return True


class _Pcap(_Seek):
    def __init__(self, file: RangedFile, size: int, head: Head) -> None:
        super().__init__(file, size, head)
        self._unpack: Callable[..., tuple[Any, ...]] = Struct(head.order + "IIII").unpack
        self._fraction = 1_000_000_000 if head.nanoseconds else 1_000_000
        self._seconds = head.seconds or 0

    def candidates(self, data: bytes, position: int) -> list[int]:
        count = len(data) - _RECORD + 1
        if count <= 0:
            return []
        raw = np.frombuffer(data, np.uint8)
        seconds, fraction, captured, original = (
            _words(raw, at, count, self.head.order) for at in (0, 4, 8, 12)
        )
        fits = (captured <= self.head.limit) & (original >= captured) & (captured > 0)
        fits &= fraction < self._fraction
        fits &= original <= LARGEST_RECORD
        fits &= np.abs(seconds.astype(np.int64) - self._seconds) <= _MOST_SECONDS
        return [position + int(at) for at in np.flatnonzero(fits)]

    def next(self, at: int) -> int:
        header = self.file.read_at(at, _RECORD)
        if len(header) < _RECORD:
            return -1
        seconds, fraction, captured, original = self._unpack(header)
        if (
            captured > self.head.limit
            or fraction >= self._fraction
            or original > LARGEST_RECORD
            or abs(seconds - self._seconds) > _MOST_SECONDS
        ):
            return -1
        return at + _RECORD + int(captured)


class _Pcapng(_Seek):
    """Blocks begin at multiples of four bytes, and have their length at both ends."""

    def __init__(self, file: RangedFile, size: int, head: Head) -> None:
        super().__init__(file, size, head)
        self._unpack: Callable[..., tuple[Any, ...]] = Struct(head.order + "II").unpack
        self._word: Callable[..., tuple[Any, ...]] = Struct(head.order + "I").unpack

    def candidates(self, data: bytes, position: int) -> list[int]:
        skip = -position % 4
        count = (len(data) - skip) // 4 - 1
        if count <= 0:
            return []
        words = np.frombuffer(data, self.head.order + "u4", count + 1, skip)
        types, lengths = words[:-1], words[1:]
        fits = np.isin(types, _BLOCKS) & (lengths >= _SHORTEST_BLOCK)
        fits &= (lengths <= LARGEST_RECORD) & (lengths & 3 == 0)
        return [position + skip + 4 * int(at) for at in np.flatnonzero(fits)]

    def next(self, at: int) -> int:
        head = self.file.read_at(at, _BLOCK)
        if len(head) < _BLOCK:
            return -1
        _, length = self._unpack(head)
        if length < _SHORTEST_BLOCK or length & 3 or length > LARGEST_RECORD:
            return -1
        if at + length <= self.size:
            again = self.file.read_at(at + length - 4, 4)
            if len(again) < 4 or self._word(again)[0] != length:
                return -1
        return at + int(length)


def _words(raw: _Bytes, at: int, count: int, order: str) -> npt.NDArray[np.uint32]:
    """Return the 32-bit number that begins at each of ``count`` bytes."""
    places = range(4) if order == "<" else range(3, -1, -1)
    word = np.zeros(count, np.uint32)
    for shift, place in enumerate(places):
        word |= raw[at + place : at + place + count].astype(np.uint32) << np.uint32(8 * shift)
    return word
