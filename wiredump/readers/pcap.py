"""Classic pcap: bytes in, packets out. Both byte orders, micro- and nanoseconds. No files.

A file header of 24 bytes, then records: a header of 16 bytes and what was captured of the packet.
The link type's upper bits (whether frames end in a check sequence, and how long it is) are passed
over: the IP length tells where a packet ends. ``thiszone`` is too, as every reader does. A record's
length is only believed up to the larger of the snaplen and libpcap's own maximum, and its header
only if it has a time near the first one's, or else a valid fraction and lengths
(``RecordHeaders``). Anything else is damage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from struct import Struct
from typing import Any, Final

from wiredump.readers.format_reader import CHAIN, TO_THE_END, FormatReader
from wiredump.readers.model import Anomaly, Interface, Packet

__all__ = [
    "LARGEST_RECORD", "LIBPCAP_LIMIT", "RECORD_HEADER", "PcapReader", "RecordHeaders", "begins",
]  # fmt: skip

LARGEST_RECORD: Final = 16 << 20
"""No snaplen makes a longer record credible."""

LIBPCAP_LIMIT: Final = 262_144
"""libpcap's maximum snaplen. Some writers' records are longer than the snaplen that they state."""

RECORD_HEADER: Final = 16

_MOST_FRACTION: Final = 4295
"""The most seconds that 32 bits of microseconds are."""

_FILE_HEADER: Final = 24
_LINK_TYPE: Final = 0xFFFF

# The magic as it stands in the file -> byte order, nanoseconds in a unit of the fraction.
_MAGICS: Final = {
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b23c4d"): (">", 1),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
}


def begins(head: bytes) -> bool:
    """Whether a file that begins with ``head`` has this format."""
    return head[:4] in _MAGICS


class RecordHeaders:
    """The rules by which bytes are taken for the header of a record. ``first`` is the time of the
    first record in seconds; None if it is unknown. ``limit`` is the longest record."""

    NEAR: Final = 366 * 86_400
    """The most seconds between two records of one capture, usually."""
    _NEXT: Final = 86_400
    """The most seconds between a record and the next one, where reading resumes."""
    _LATER_THAN: Final = 1 << 24
    """Small numbers are frequent in payload, so they are times only where the first one is."""

    def __init__(self, order: str, nanoseconds: bool, limit: int, first: int | None = None) -> None:
        self.unpack = Struct(order + "IIII").unpack_from
        self.limit = limit
        self.first = first
        self.units = 1_000_000_000 if nanoseconds else 1_000_000
        self._find = _candidates(order, (self.units - 1) >> 24, limit >> 24).finditer

    def is_near(self, seconds: int, other: int | None) -> bool:
        return other is not None and -self.NEAR <= seconds - other <= self.NEAR

    def problem(self, seconds: int, fraction: int, captured: int, original: int) -> str:
        """Return why this cannot be the header of a record; empty if it can."""
        if captured > self.limit:
            return f"a record of {captured} bytes: more than {self.limit}, so not a record"
        if not (seconds or fraction or captured or original):
            return "zeros, so not a record"
        if self.is_near(seconds, self.first):
            return ""
        if fraction < self.units and captured <= original <= LARGEST_RECORD:
            return ""
        return f"a record of {captured} of {original} bytes at second {seconds}, so not a record"

    def problem_at(self, chunk: bytes, at: int) -> str:
        """The same, of the 16 bytes at a place."""
        return self.problem(*self.unpack(chunk, at))

    def candidates(self, chunk: bytes, begin: int) -> Iterator[int]:
        """Yield where headers may begin."""
        for each in self._find(chunk, begin):
            yield each.start()

    def chain(self, chunk: bytes, at: int, is_end: bool) -> int:
        """As ``FormatReader._chain``."""
        place, before = at, None
        for number in range(CHAIN):
            if len(chunk) - place < RECORD_HEADER:
                if not is_end:
                    return place + RECORD_HEADER - at
                return 0 if number >= (1 if place == len(chunk) else 2) else -1
            seconds, fraction, captured, original = self.unpack(chunk, place)
            if not (
                fraction < self.units
                and 0 < captured <= min(original, self.limit)
                and original <= LARGEST_RECORD
                and self._is_time(seconds, before)
            ):
                return -1
            place += RECORD_HEADER + captured
            before = seconds
        return 0

    def _is_time(self, seconds: int, before: int | None) -> bool:
        if before is not None:
            return -self._NEXT <= seconds - before <= self._NEXT
        return seconds >= self._LATER_THAN or self.is_near(seconds, self.first)


@cache
def _candidates(order: str, fraction: int, length: int) -> re.Pattern[bytes]:
    """Return what matches in front of a header whose words have at most these upper bytes."""
    words = (b"", _at_most(fraction), _at_most(length), _at_most(LARGEST_RECORD >> 24))
    if order == "<":
        return re.compile(b"(?s)(?=" + b"".join(b"...%b" % (each or b".") for each in words) + b")")
    return re.compile(b"(?s)(?=" + b"".join(b"%b..." % (each or b".") for each in words) + b")")


def _at_most(byte: int) -> bytes:
    return b"[\\x00-\\x%02x]" % byte


class PcapReader(FormatReader):
    """A reader of records, in bulk up to the first unusual one. ``first`` is the time of the file's
    first record in seconds, if reading begins elsewhere."""

    least = RECORD_HEADER
    what = "the file header"
    kept = 4

    def __init__(
        self, capture: int = 0, walk: Any = None, stop: int = TO_THE_END, *, resume: bool = True,
        first: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(capture, walk, stop, _FILE_HEADER, resume)
        self._is_big = False
        self._scale = 1
        self._first = first
        self._headers = RecordHeaders("<", False, 0)

    def _read(self, chunk: bytes, at: int, found: list[Packet | Anomaly]) -> int:
        if self.interfaces:
            return self._read_records(chunk, at, found)
        problem = self._read_header(chunk)
        if problem is None:
            return self._read_records(chunk, _FILE_HEADER, found)
        found.append(problem)
        return 0

    def _read_header(self, chunk: bytes) -> Anomaly | None:
        order, self._scale = _MAGICS[chunk[:4]]
        self._is_big = order == ">"
        major, minor, snaplen, link_type = Struct(order + "4xHH8xII").unpack_from(chunk)
        if major != 2:
            self.stopped = True
            reason = f"pcap version {major}.{minor} is not known"
            return Anomaly("damaged", reason, self.capture, 0)
        self.interfaces.append(Interface(link_type & _LINK_TYPE, snaplen))
        limit = min(max(snaplen, LIBPCAP_LIMIT), LARGEST_RECORD)
        self._headers = RecordHeaders(order, self._scale == 1, limit, self._first)
        self.what = "a record"
        return None

    def _read_records(self, chunk: bytes, position: int, found: list[Packet | Anomaly]) -> int:
        headers, append, view = self._headers, found.append, memoryview(chunk)
        base, scale, capture = self._position, self._scale, self.capture
        link_type = self.interfaces[0].link_type
        last = min(len(chunk) - RECORD_HEADER, self._stop_at - base - 1)
        self._needed = RECORD_HEADER
        if headers.first is None and position <= last and not headers.problem_at(chunk, position):
            headers.first = headers.unpack(chunk, position)[0]
        if self._walk is not None:
            packets, position = self._walked(chunk, position)
            if packets is not None:
                append(packets)
        while position <= last:
            seconds, fraction, captured, original = headers.unpack(chunk, position)
            problem = headers.problem(seconds, fraction, captured, original)
            if problem:
                self._damaged(problem, position)
                return position
            data = position + RECORD_HEADER
            end = data + captured
            if end > len(chunk):
                self._needed = RECORD_HEADER + captured
                break
            time = seconds * 1_000_000_000 + fraction * scale
            append(Packet(base + position, time, link_type, view[data:end], original, 0, capture))
            position = end
        return position

    def _walked(self, chunk: bytes, position: int, stop: int = TO_THE_END) -> tuple[Any, int]:
        """Take records from ``position`` on, in bulk."""
        headers, base = self._headers, self._position
        packets, end = self._walk(
            chunk, position, base, self._is_big, self._scale, headers.limit,
            self.interfaces[0].link_type, self.capture, min(stop, self._stop_at),
        )  # fmt: skip
        if packets is None or self._are_near(packets):
            return packets, end
        for place, *_ in packets:
            if headers.problem_at(chunk, place - base):
                return self._walked(chunk, position, place)
        return packets, end

    def _are_near(self, packets: Any) -> bool:
        """Whether all times are near the first one, so that no header has to be looked at."""
        first = self._headers.first
        if first is None:
            return False
        times = memoryview(packets.times()[1]).cast("q")
        near = RecordHeaders.NEAR
        earliest, latest = first - near + _MOST_FRACTION, first + near
        return max(1, earliest * 10**9) <= min(times) and max(times) <= latest * 10**9

    def _candidates(self, chunk: bytes, begin: int) -> Iterator[int]:
        return self._headers.candidates(chunk, begin)

    def _length(self, chunk: bytes, at: int) -> int:
        return RECORD_HEADER + int(self._headers.unpack(chunk, at)[2])

    def _chain(self, chunk: bytes, at: int, is_end: bool) -> int:
        return self._headers.chain(chunk, at, is_end)
