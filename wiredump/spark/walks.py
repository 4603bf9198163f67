"""Read the records of one chunk of a capture: find where they end, and turn them into packets.

A walk takes bytes that begin with a record and returns what it found; its caller handles where it
stopped, and why. With the extension, usual records come in bulk; all others, and all of them
without it, go through ``wiredump.readers``, one by one.
"""

from __future__ import annotations

from struct import Struct
from types import ModuleType
from typing import Any, Final, NamedTuple

from wiredump.readers import Anomaly, Packet, Secrets
from wiredump.readers.pcap import LARGEST_RECORD, PcapReader
from wiredump.readers.pcapng import PcapngReader
from wiredump.spark.heads import CONTEXT_BLOCKS, Head

__all__ = ["PcapWalk", "PcapngWalk", "Walk", "Walked"]

_RECORD: Final = 16
_SHORTEST_BLOCK: Final = 12
_ENHANCED: Final = 6
_ENHANCED_HEADER: Final = 28
_SIMPLE: Final = 3


class Walked(NamedTuple):
    """``packets`` were found by the extension, ``located`` and ``others`` read one by one; only the
    bytes of ``located`` packets are ``Walk.header`` behind the beginning of their record. ``end``
    is where in the chunk the walk stopped; ``damaged``: the next record cannot be found."""

    packets: list[Any]
    located: list[Packet | Anomaly]
    others: list[Packet | Anomaly]
    end: int
    damaged: bool = False


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

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        """Return what the readers make of the last bytes of a file, or of damaged ones."""
        raise NotImplementedError


class PcapWalk(Walk):
    header = _RECORD

    def __init__(self, head: Head, context: bytes, capture: int, module: ModuleType | None) -> None:
        super().__init__()
        self._reader = PcapReader(capture)
        self._reader.feed(context)
        self._limit = head.limit
        self._length = Struct(head.order + "I").unpack_from
        self._bulk = None if module is None else module.walk_pcap
        scale, link_type = 1 if head.nanoseconds else 1000, self._reader.interfaces[0].link_type
        self._how = head.order == ">", scale, head.limit, link_type, capture

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        found, located = None, list[Packet | Anomaly]()
        if self._bulk is not None:
            found, at = self._bulk(chunk, 0, base, *self._how, stop)
        else:
            at = self._end(chunk, stop - base)
            self._reader.go_to(base)
            located = self._reader.feed(chunk[:at])
        damaged = False
        if at <= len(chunk) - _RECORD and base + at < stop:
            damaged = self._length(chunk, at + 8)[0] > self._limit
        return Walked([] if found is None else [found], located, [], at, damaged)

    def _end(self, chunk: bytes, stop: int) -> int:
        """Return where in the chunk the first record begins that is not whole, not believable, or
        another part's."""
        at, last = 0, min(len(chunk) - _RECORD, stop - 1)
        while at <= last:
            (captured,) = self._length(chunk, at + 8)
            end = at + _RECORD + captured
            if captured > self._limit or end > len(chunk):
                break
            at = end
        return at

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        self._reader.go_to(position)
        return self._reader.feed(rest) + self._reader.finish()


class PcapngWalk(Walk):
    """A walk through pcapng. ``time_ns`` is that of the previous packet; None if unknown."""

    header = _ENHANCED_HEADER

    def __init__(
        self, head: Head, context: bytes, capture: int, module: ModuleType | None,
        time_ns: int | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._reader = PcapngReader(capture)
        self._reader.feed(context)
        self._capture = capture
        self._time = time_ns
        self._bulk = None if module is None else module.walk_pcapng
        self._set_order(self._reader.order)

    @property
    def secrets(self) -> list[Secrets]:
        return self._reader.secrets

    def _set_order(self, order: str) -> None:
        """Of the section that blocks are read of."""
        self._order = order
        self._words = Struct(order + "II").unpack_from
        self._word = Struct(order + "I").unpack_from

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        last = min(len(chunk) - _SHORTEST_BLOCK, stop - base - 1)
        walked = Walked([], [], [], 0)
        at, damaged = 0, False
        while at <= last:
            at = self._packets(chunk, base, at, stop, walked.packets)
            if at > last:
                break
            block, end = self._block(chunk, at)
            if end is None:
                damaged = True
                break
            if end > len(chunk):
                break
            to = walked.located if block == _ENHANCED else walked.others
            to += self._read(block, chunk, base, at, end)
            if self._reader.stopped:
                return walked._replace(end=len(chunk), damaged=True)
            at = end
        return walked._replace(end=at, damaged=damaged)

    def _packets(self, chunk: bytes, base: int, at: int, stop: int, found: list[Any]) -> int:
        """Find packets in bulk; returns where the first other block begins."""
        if self._bulk is None:
            return at
        clocks, first = self._reader.clocks
        packets, end = self._bulk(
            chunk, at, base, self._order == ">", clocks, first, self._capture, stop
        )
        if packets is not None:
            found.append(packets)
            self._time = packets[len(packets) - 1][1]
        return int(end)

    def _block(self, chunk: bytes, at: int) -> tuple[int, int | None]:
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

    def _read(
        self, block: int, chunk: bytes, base: int, at: int, end: int
    ) -> list[Packet | Anomaly]:
        if block in CONTEXT_BLOCKS:
            self.contexts.append((base + at, end - at))
        self._reader.go_to(base + at, self._time or 0)
        found = self._reader.feed(chunk[at:end])
        anomalies = any(isinstance(each, Anomaly) for each in found)
        if self._time is None and (block == _SIMPLE or anomalies):
            self.trouble = "it takes the packet before to know a packet's time"
        if any(isinstance(each, Packet) for each in found) or self._time is not None:
            self._time = self._reader.time_ns
        return found

    def rest(self, rest: bytes, position: int) -> list[Packet | Anomaly]:
        self._reader.go_to(position, self._time or 0)
        return self._reader.feed(rest) + self._reader.finish()
