"""Read the records of one chunk of a capture: find where they end, and read most of them with
numpy.

A walk takes bytes that begin with a record and returns what it found; its caller handles where it
stopped, and why. Unusual records go through ``wiredump.readers``, one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from struct import Struct
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from wiredump.readers import Anomaly, Interface, Packet, Secrets
from wiredump.readers.pcap import LARGEST_RECORD, PcapReader
from wiredump.readers.pcapng import PcapngReader
from wiredump.spark.heads import CONTEXT_BLOCKS, Head
from wiredump.spark.usual import Ints, Records

__all__ = ["PcapWalk", "PcapngWalk", "Walk", "Walked"]

_RECORD: Final = 16
_SHORTEST_BLOCK: Final = 12
_ENHANCED: Final = 6
_ENHANCED_HEADER: Final = 28
_SHORTEST_ENHANCED: Final = 32
_SIMPLE: Final = 3
_LARGEST_TIME: Final = 2**63 - 1
_ENDS: Final[dict[str, Literal["little", "big"]]] = {"<": "little", ">": "big"}


class Walked(NamedTuple):
    """``records`` by link type; ``others`` were read one by one (packets, and anomalies). ``end``
    is where in the chunk the walk stopped; ``damaged``: the next record cannot be found.
    ``packets`` were found by the extension, instead of ``records``."""

    records: list[Records]
    others: list[Packet | Anomaly]
    end: int
    damaged: bool = False
    packets: tuple[Any, ...] = ()


class Walk:
    """A walk. ``chunk`` is at ``base`` of the file; records that begin at ``stop`` or later are
    another part's. ``trouble`` and ``contexts`` are as in ``SplitNote``; ``header`` is how far
    behind a record's beginning its packet is."""

    header = 0

    def __init__(self) -> None:
        self.trouble = ""
        self.contexts: list[tuple[int, int]] = []

    @property
    def secrets(self) -> list[Secrets]:
        """The secrets found so far."""
        return []

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        raise NotImplementedError

    def packet(self, chunk: bytes, base: int, place: int) -> list[Packet | Anomaly]:
        """Return the record at ``place`` of the chunk as the readers read it."""
        raise NotImplementedError

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        """Return what the readers make of the last bytes of a file, or of damaged ones."""
        raise NotImplementedError


class PcapWalk(Walk):
    header = _RECORD

    def __init__(self, head: Head, context: bytes, capture: int) -> None:
        super().__init__()
        self._reader = PcapReader(capture)
        self._reader.feed(context)
        self._link_type = self._reader.interfaces[0].link_type
        self._head = head
        self._length = Struct(head.order + "I").unpack_from

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        """Walk the chunk by lengths only; numpy reads the rest."""
        length, limit, last = self._length, self._head.limit, len(chunk) - _RECORD
        last = min(last, stop - base - 1)
        places: list[int] = []
        append = places.append
        at, damaged = 0, False
        while at <= last:
            (captured,) = length(chunk, at + 8)
            if captured > limit:
                damaged = True
                break
            end = at + _RECORD + captured
            if end > len(chunk):
                break
            append(at)
            at = end
        return Walked([self._records(chunk, base, np.array(places, np.int64))], [], at, damaged)

    def _records(self, chunk: bytes, base: int, places: Ints) -> Records:
        raw = np.frombuffer(chunk, np.uint8)
        words = np.ascontiguousarray(raw[places[:, None] + np.arange(_RECORD)])
        fields = words.view(self._head.order + "u4").astype(np.int64).reshape(-1, 4)
        scale = 1 if self._head.nanoseconds else 1000
        times = fields[:, 0] * 1_000_000_000 + fields[:, 1] * scale
        begins, captured, originals = places + _RECORD, fields[:, 2], fields[:, 3]
        return Records(base, self._link_type, places, begins, captured, times, originals)

    def packet(self, chunk: bytes, base: int, place: int) -> list[Packet | Anomaly]:
        self._reader.go_to(base + place)
        (captured,) = self._length(chunk, place + 8)
        return self._reader.feed(chunk[place : place + _RECORD + captured])

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        self._reader.go_to(position)
        return self._reader.feed(rest) + self._reader.finish()


class PcapngWalk(Walk):
    """A walk through pcapng. ``time_ns`` is that of the previous packet; None if unknown."""

    header = _ENHANCED_HEADER

    def __init__(self, head: Head, context: bytes, capture: int, time_ns: int | None) -> None:
        super().__init__()
        self._reader = PcapngReader(capture)
        self._reader.feed(context)
        self._time = time_ns
        self._set_order(self._reader.order)
        # Where in the file each begins that was met; packets are asked for once it is behind.
        self._sections: list[tuple[int, object]] = [(-1, self._reader.section)]

    @property
    def secrets(self) -> list[Secrets]:
        return self._reader.secrets

    def _set_order(self, order: str) -> None:
        """Of the section that blocks are read of."""
        self._order = order
        self._words = Struct(order + "II").unpack_from
        self._word = Struct(order + "I").unpack_from

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        """Read consecutive enhanced packets with numpy, and the blocks between them one by one."""
        last = self.last(chunk, base, stop)
        records: list[Records] = []
        others: list[Packet | Anomaly] = []
        places: list[int] = []
        at, damaged, order = 0, False, self._order
        while at <= last:
            order = self._order  # of what there is until now: a section may begin another
            block, end = self.block(chunk, at)
            if end is None:
                damaged = True
                break
            if end > len(chunk):
                break
            if block == _ENHANCED and end - at >= _SHORTEST_ENHANCED:
                places.append(at)
            else:
                self._run(chunk, base, places, order, records, others)
                places = []
                self._other(block, chunk, base, at, end, others)
                if self._reader.stopped:
                    return Walked(records, others, len(chunk), True)
            at = end
        self._run(chunk, base, places, order, records, others)
        return Walked(records, others, at, damaged)

    def last(self, chunk: bytes, base: int, stop: int) -> int:
        """Where in the chunk the last block may begin."""
        return min(len(chunk) - _SHORTEST_BLOCK, stop - base - 1)

    def block(self, chunk: bytes, at: int) -> tuple[int, int | None]:
        """Return a block's type and its end, which may be beyond the chunk; None if it is
        invalid."""
        block, length = self._words(chunk, at)
        if block in CONTEXT_BLOCKS and block != 1:
            length = self._section(chunk, at)
        if length < _SHORTEST_BLOCK or length & 3 or length > LARGEST_RECORD:
            return block, None
        end = at + length
        if end <= len(chunk) and self._word(chunk, end - 4)[0] != length:
            return block, None
        return block, end

    def _section(self, chunk: bytes, at: int) -> int:
        """Return a section's length, in its own byte order; 0 without one."""
        order = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}.get(chunk[at + 8 : at + 12])
        if order is None:
            return 0
        self._set_order(order)
        (length,) = self._word(chunk, at + 4)
        return int(length)

    def _other(
        self, block: int, chunk: bytes, base: int, at: int, end: int,
        others: list[Packet | Anomaly],
    ) -> None:  # fmt: skip
        if block in CONTEXT_BLOCKS:
            self.contexts.append((base + at, end - at))
        found = self._read(chunk, base, at, end, self._time)
        if block in CONTEXT_BLOCKS:
            self._sections.append((base + at, self._reader.section))
        anomalies = any(isinstance(each, Anomaly) for each in found)
        if self._time is None and (block == _SIMPLE or anomalies):
            self.trouble = "it takes the packet before to know a packet's time"
        if any(isinstance(each, Packet) for each in found) or self._time is not None:
            self._time = self._reader.time_ns
        others += found

    def _read(
        self, chunk: bytes, base: int, at: int, end: int, time_ns: int | None
    ) -> list[Packet | Anomaly]:
        self._reader.go_to(base + at, time_ns or 0)
        return self._reader.feed(chunk[at:end])

    def _run(
        self, chunk: bytes, base: int, run: list[int], order: str, records: list[Records],
        others: list[Packet | Anomaly],
    ) -> None:  # fmt: skip
        """Read consecutive enhanced packets."""
        if not run:
            return
        places = np.array(run, np.int64)
        raw = np.frombuffer(chunk, np.uint8)
        words = np.ascontiguousarray(raw[places[:, None] + np.arange(28)])
        fields = words.view(order + "u4").astype(np.int64).reshape(-1, 7)
        lengths, numbers, captured = fields[:, 1], fields[:, 2], fields[:, 5]
        times = np.zeros(len(run), np.int64)
        plain = captured <= lengths - _SHORTEST_ENHANCED
        for number in np.unique(numbers).tolist():
            clock = self._reader.clock(number)
            mine = numbers == number
            if clock is None:
                plain &= ~mine
                continue
            chosen = mine & plain
            known = _times(fields[chosen, 3], fields[chosen, 4], clock)
            if known is None:
                plain &= ~mine
                continue
            times[chosen] = known
            kept = places[chosen]
            records.append(
                Records(
                    base,
                    clock[0].link_type,
                    kept,
                    kept + 28,
                    captured[chosen],
                    times[chosen],
                    fields[chosen, 6],
                )
            )
        for each in np.flatnonzero(~plain).tolist():
            if each and plain[each - 1]:
                self._time = int(times[each - 1])
            at = int(places[each])
            self._other(_ENHANCED, chunk, base, at, at + int(lengths[each]), others)
        if plain[-1]:
            self._time = int(times[-1])

    def packet(self, chunk: bytes, base: int, place: int) -> list[Packet | Anomaly]:
        """Return an enhanced packet, which has a time of its own."""
        now = self._reader.section
        before = bisect_right(self._sections, base + place, key=itemgetter(0)) - 1
        self._reader.go_into(self._sections[before][1])
        length = int.from_bytes(chunk[place + 4 : place + 8], _ENDS[self._reader.order])
        found = self._read(chunk, base, place, place + length, 0)
        self._reader.go_into(now)
        return found

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        self._reader.go_to(position, self._time or 0)
        return self._reader.feed(rest) + self._reader.finish()


def _times(high: Ints, low: Ints, clock: tuple[Interface, int, int, int]) -> Ints | None:
    """Return nanoseconds; None if that needs more than 64 bits or a division."""
    _, multiplier, divisor, offset = clock
    if not len(high):
        return high
    most = int(high.max()) + 1 << 32
    if divisor != 1 or most * multiplier + abs(offset) > _LARGEST_TIME:
        return None
    times: Ints = (high << 32 | low) * multiplier + offset
    return times
