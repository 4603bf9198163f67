"""A capture to items the quick way: what is usual in C, everything else as ever, packet by packet
and in order.

What comes out is what ``readers.Streams`` and ``captures.CaptureItems`` make of the same capture,
and those do here what the extension leaves. Only where a connection depends on its own packets
alone (``Limits.alone``), and for one capture at a time: several are merged packet by packet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.framing import DEFAULT_MAX_SIZE
from wiredump.headers import produce_flexible
from wiredump.model import Exchange, Frame, Item, Place
from wiredump.native import quick
from wiredump.pairing import MOST_OPEN, MOST_OPEN_BYTES, _shared_keys
from wiredump.readers import FROM_CLIENT, Account, Anomaly, Limits, Packet, TcpReassembler
from wiredump.readers.container import Walks
from wiredump.readers.segments import SegmentReader
from wiredump.readers.share import Share
from wiredump.sources.captures import CaptureItems
from wiredump.sources.lent import Lent

__all__ = ["FrameSink", "QuickStreams", "Times", "walks"]

_ALL_DONE: Final = -1
_A_FRAME: Final = -2
_SASL_HANDSHAKE: Final = 17
_MOST_VERSIONS: Final = 128


class FrameSink(Protocol):
    """Where rows of ``frames`` go that come as columns, instead of exchanges. ``columns`` takes
    them; ``drain`` is called when there may be many, ``counted`` with what a connection had."""

    @property
    def columns(self) -> Any: ...

    def drain(self) -> None: ...

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None: ...


class Times(NamedTuple):
    """First and last of what was found, 0 where nothing was."""

    first_ns: int
    last_ns: int


def walks() -> Walks | None:
    """How the readers are to walk through captures; None where there is no extension."""
    module = quick()
    return None if module is None else Walks(module.walk_pcap, module.walk_pcapng)


class QuickStreams:
    """``read`` a capture that was opened with ``walks``. ``times`` covers what went to the sink.
    With a ``share`` only its connections are read."""

    def __init__(
        self, items: CaptureItems, limits: Limits, codec: Dialect | None, sink: FrameSink | None,
        share: Share | None = None,
    ) -> None:  # fmt: skip
        module = quick()
        assert module is not None
        assert limits.alone
        codec = codec if codec is not None else dialect("auto")
        name = "kafka" if isinstance(codec, AutoDialect) else codec.name
        self._module: ModuleType = module
        self._account = Account()
        self._segments = SegmentReader(self._account)
        self._tcp = TcpReassembler(self._account, limits)
        self._items = items
        self._sink = sink
        self._share = share if share is not None else Share(0, 1)
        recent = min(limits.recent_bytes, limits.alone_bytes)
        left = _shared_keys(codec) | {_SASL_HANDSHAKE}
        self._reading = module.Reading(
            Frame, Exchange, Place, name, None if sink is None else sink.columns,
            (DEFAULT_MAX_SIZE, recent, MOST_OPEN, MOST_OPEN_BYTES), _flexible_versions(),
            tuple(sorted(left)), int.from_bytes(os.urandom(8)) >> 2, tuple(self._share),
        )  # fmt: skip
        self._lent = Lent(self._reading, module.Waiting, self._tcp, items, name, sink)
        self.times = Times(0, 0)
        self.read_slowly = 0
        """Packets that Python read."""

    @property
    def account(self) -> Account:
        """The sums, once all was read."""
        return self._tcp.account

    def read(self, capture: Iterable[Any]) -> Iterator[Item]:
        """The items of all packets; those whose frames went to the sink are not among them."""
        for packet in capture:
            if isinstance(packet, self._module.Packets):
                yield from self._bulk(packet)
            elif isinstance(packet, Anomaly):
                yield from self._told(packet)
            else:
                yield from self._one(packet)
        self._lent.all_back()
        out: list[Any] = []
        self._segments.close(out)
        for event in out:
            yield from self._told(event)
        for event in self._tcp.close():
            yield from self._items.feed(event)

    def _told(self, event: Any) -> list[Item]:
        """What is no connection's."""
        return self._items.feed(event) if self._share.is_first else []

    def _bulk(self, packets: Any) -> Iterator[Item]:
        run, sink = self._reading.run, self._sink
        view = memoryview(packets.chunk)
        while (number := run(packets)) != _ALL_DONE:
            if sink is None:  # else there are no exchanges, and the sums can wait
                yield from self._settled()
            if number == _A_FRAME:
                yield from self._rest()
            else:
                place, time, link, at, end, original, interface, capture = packets[number]
                yield from self._one(
                    Packet(place, time, link, view[at:end], original, interface, capture)
                )
        yield from self._settled()
        if sink is not None:
            sink.drain()

    def _settled(self) -> list[Item]:
        """What the extension did since it was asked last, counted; and its exchanges."""
        packets, payload, frames, first_ns, last_ns = self._reading.counts()
        if packets:
            account = self._account
            account.packets += packets
            account.segments += packets
            account.payload += payload
            account.data += payload
            self._items.account.payload += payload
            self._items.account.frames += frames
            if first_ns:
                before = self.times
                first_ns = min(first_ns, before.first_ns) if before.first_ns else first_ns
                self.times = Times(first_ns, max(last_ns, before.last_ns))
        found: list[Item] = self._reading.items()
        return found

    def _one(self, packet: Packet) -> list[Item]:
        """A packet that is not usual, or of a connection of which something is not."""
        self.read_slowly += 1
        out: list[Any] = []
        items: list[Item] = []
        segment = self._segments.feed(packet, out)
        for event in out:
            items += self._told(event)
        if segment is None or (self._share.of > 1 and not self._share.has(segment.flow)):
            return items
        self._lent.back(segment.flow)
        for event in self._tcp.feed(segment):
            items += self._items.feed(event)
        self._lent.lend(segment.flow)
        return items

    def _rest(self) -> Iterator[Item]:
        """A frame that is not usual, and the rest of the segment it ends in."""
        flow, raw, time, capture, packet = self._reading.rest()
        self._lent.back(flow)
        connection, stream, _ = self._tcp._flows[flow]
        talk = self._items._open[connection.number]
        forward = stream.direction == FROM_CLIENT
        for item in talk.data(forward, raw, time, Place(capture, packet)):
            self._items.account.count(item)
            yield item
        self._lent.lend(flow)


def _flexible_versions() -> tuple[int, ...]:
    return tuple(version for version in range(_MOST_VERSIONS) if version in produce_flexible())
