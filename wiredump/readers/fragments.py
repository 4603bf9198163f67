"""Reassemble IP fragments into datagrams, within limits. Knows positions and bytes, not IP's
headers.

The first copy of a byte wins; a repeated byte is an anomaly, since no sender fragments twice under
one identification (and RFC 5722 forbids overlaps in IPv6). A datagram is given up ``TIMEOUT_NS``
after its first fragment by the captures' clock, as receivers do, or if too many wait.

In the account, a fragment's bytes count as payload and as buffered until its datagram is complete
or given up. Those of a complete datagram are subtracted again, since its segment counts them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Protocol

from wiredump.readers.account import Account
from wiredump.readers.blocks import Block, Blocks
from wiredump.readers.model import Anomaly, Event, Packet

__all__ = ["LARGEST_DATAGRAM", "TIMEOUT_NS", "Fragments", "Joiner"]

LARGEST_DATAGRAM: Final = 65_535
TIMEOUT_NS: Final = 30_000_000_000

_MOST_HELD: Final = 4 << 20
_OVERHEAD: Final = 256
"""The approximate cost of keeping a fragment, beside its bytes."""
_TCP_HEADER: Final = 20
_LONGEST_HEADER: Final = 60


class Joiner(Protocol):
    """Takes fragments, and returns a datagram's contents with the one that completes it."""

    def add(
        self, key: Hashable, start: int, more: bool, data: memoryview, packet: Packet,
        out: list[Event],
    ) -> bytes | None: ...  # fmt: skip

    def waits(self, key: Hashable) -> bool | None:
        """Whether a datagram with this key has begun; None if that is not known here."""

    def close(self, out: list[Event]) -> None: ...


class _Datagram:
    __slots__ = ("blocks", "end", "first")

    def __init__(self, first: Packet) -> None:
        self.blocks = Blocks()
        self.end: int | None = None
        self.first = first

    def whole(self) -> bytes | None:
        """All bytes, once there is no hole up to the end of the last fragment."""
        if self.end is None or self.blocks.size < self.end:
            return None
        return self.blocks.joined()


class Fragments:
    """Reassembles fragments that carry TCP. ``key`` identifies a datagram."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._datagrams: OrderedDict[Hashable, _Datagram] = OrderedDict()
        self._cost = 0

    def add(
        self, key: Hashable, start: int, more: bool, data: memoryview, packet: Packet,
        out: list[Event],
    ) -> bytes | None:  # fmt: skip
        """Add a fragment; returns the contents of the datagram if that completes it."""
        self._expire(packet.timestamp_ns, out)
        self._account.payload += len(data)
        datagram = self._datagrams.get(key)
        end = start + len(data)
        if problem := self._problem(datagram, start, end, more):
            self._refuse(problem, len(data), packet, out)
            return None
        if datagram is None:
            datagram = self._datagrams[key] = _Datagram(packet)
            self._cost += self._cost_of(datagram)
        if not more:
            datagram.end = end
        self._account.buffered += len(data)
        before = self._cost_of(datagram)
        if len(data):
            block = Block(start, bytes(data), packet.timestamp_ns, packet.capture, packet.offset)
            for repeated in datagram.blocks.insert(block):
                self._account.buffered -= repeated.length
                what = f"{repeated.length} bytes repeat a fragment, {repeated.differing} differ"
                self._refuse(what, repeated.length, packet, out)
        self._cost += self._cost_of(datagram) - before
        whole = datagram.whole()
        if whole is not None:
            self._account.payload -= len(whole)
            self._account.buffered -= len(whole)
            self._forget(key)
        while self._cost > _MOST_HELD:
            self._give_up(next(iter(self._datagrams)), "too many fragments wait", out)
        return whole

    def waits(self, key: Hashable) -> bool:
        return key in self._datagrams

    def close(self, out: list[Event]) -> None:
        """Give up every incomplete datagram."""
        while self._datagrams:
            self._give_up(next(iter(self._datagrams)), "the captures ended", out)

    @staticmethod
    def _problem(datagram: _Datagram | None, start: int, end: int, more: bool) -> str:
        if end > LARGEST_DATAGRAM:
            return "a fragment past the largest datagram"
        if datagram is None:
            return ""
        last = datagram.blocks.end
        if datagram.end is not None and (end > datagram.end or (not more and end != datagram.end)):
            return "a fragment past its datagram's last"
        if not more and last is not None and end < last:
            return "a last fragment before others"
        return ""

    def _refuse(self, reason: str, length: int, packet: Packet, out: list[Event]) -> None:
        self._account.anomalous += length
        out.append(
            Anomaly("fragment", reason, packet.capture, packet.offset, packet.timestamp_ns, length)
        )

    @staticmethod
    def _cost_of(datagram: _Datagram) -> int:
        return datagram.blocks.size + _OVERHEAD * (1 + len(datagram.blocks))

    def _forget(self, key: Hashable) -> _Datagram:
        datagram = self._datagrams.pop(key)
        self._cost -= self._cost_of(datagram)
        return datagram

    def _expire(self, now: int, out: list[Event]) -> None:
        while self._datagrams:
            key, oldest = next(iter(self._datagrams.items()))
            if now - oldest.first.timestamp_ns <= TIMEOUT_NS:
                return
            self._give_up(key, "its other fragments did not come in time", out)

    def _give_up(self, key: Hashable, why: str, out: list[Event]) -> None:
        datagram = self._forget(key)
        held = datagram.blocks.size
        header = _header_in(datagram.blocks)
        self._account.payload -= header
        self._account.buffered -= held
        self._account.anomalous += held - header
        reason = f"a datagram of which {held} bytes were captured is incomplete: {why}"
        first = datagram.first
        out.append(
            Anomaly(
                "fragment", reason, first.capture, first.offset, first.timestamp_ns, held - header
            )
        )


def _header_in(blocks: Blocks) -> int:
    """Return how many of the bytes belong to the TCP header, if they include its beginning."""
    beginning = b""
    for block in blocks:
        if block.start != len(beginning) or block.start >= _LONGEST_HEADER:
            break
        beginning += block.data
    stated = (beginning[12] >> 4) * 4 if len(beginning) > 12 else _TCP_HEADER
    return min(len(beginning), max(stated, _TCP_HEADER))
