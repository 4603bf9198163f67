"""Read a capture with the extension: the usual packets in bulk in C, all others in Python, packet
by packet and in order.

The result equals that of ``readers.Streams`` and ``captures.CaptureItems``, which read here what
the extension leaves. This is only possible if a connection depends only on its own packets
(``Limits.alone``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import Any, Final, NamedTuple

from kproto.dialects import Dialect, dialect
from kproto.framing import DEFAULT_MAX_SIZE
from wiredump.connection_state import STATES
from wiredump.conversation import Conversation
from wiredump.dialects import certain
from wiredump.headers import produce_flexible
from wiredump.model import Exchange, Frame, Item, Place
from wiredump.native import quick
from wiredump.pairing import MOST_OPEN, MOST_OPEN_BYTES, shared_keys
from wiredump.readers import FROM_CLIENT, Account, Anomaly, Limits, Packet, Segment, TcpReassembler
from wiredump.readers.allocator import keep_chunks
from wiredump.readers.container import Walks
from wiredump.readers.ledger import OVERHEAD
from wiredump.readers.segments import SegmentReader
from wiredump.readers.share import Share
from wiredump.sources.captures import CaptureItems
from wiredump.sources.native_connections import NativeConnections

__all__ = ["QuickSegments", "QuickStreams", "Sink", "in_bulk", "walks"]

_SASL_HANDSHAKE: Final = 17
_MOST_PACKETS: Final = 4096
_MOST_BYTES: Final = 1 << 20
"""The limits of packets that are put together."""
_MOST_VERSIONS: Final = 128


class Sink(NamedTuple):
    """Takes exchanges that need no object: ``rows`` (``ExchangeRows``) makes rows of them.
    ``drain`` is called when there may be many rows, ``counted`` with the id of a connection and its
    requests, their bytes and those of responses, as far as they are not items."""

    drain: Callable[[], None]
    counted: Callable[[int, int, int, int], None]
    rows: Any


def walks() -> Walks | None:
    """Return the bulk readers of captures; None without the extension."""
    module = quick()
    return None if module is None else Walks(module.walk_pcap, module.walk_pcapng)


def in_bulk(packets: Iterable[Packet | Anomaly]) -> Iterator[Any]:
    """Yield packets that come one by one as a walk finds them, many at a time."""
    module = quick()
    assert module is not None
    held: list[tuple[Any, ...]] = []
    size = 0
    for packet in packets:
        if isinstance(packet, Packet):
            held.append(_fields(packet))
            size += len(packet.data)
            if size < _MOST_BYTES and len(held) < _MOST_PACKETS:
                continue
        if held:
            yield module.pack(held)
            held, size = [], 0
        if isinstance(packet, Anomaly):
            yield packet
    if held:
        yield module.pack(held)


_fields: Final = attrgetter(*Packet.__struct_fields__)


class QuickSegments:
    """Turns packets, and segments from elsewhere, into the items of some connections: those that
    ``tcp`` and ``items`` have, or whose flow it ``has``. ``times`` covers what went to the sink, by
    capture."""

    def __init__(
        self, items: CaptureItems, tcp: TcpReassembler, codec: Dialect | None,
        sink: Sink | None, share: Share | None = None,
        has: Callable[[bytes], bool] | None = None,
    ) -> None:  # fmt: skip
        module = quick()
        assert module is not None
        keep_chunks()
        limits = tcp.limits
        assert limits.alone
        codec = codec if codec is not None else dialect("auto")
        name = certain(codec).name
        self._module: ModuleType = module
        self._tcp = tcp
        self._account = tcp.account
        self._segments = SegmentReader(self._account)
        self._items = items
        self._sink = sink
        self._share = share if share is not None else Share(0, 1)
        recent = min(limits.recent_bytes, limits.alone_bytes)
        # The memory of the extension's connections is not counted until they return. So they may
        # use half of the limit at most, and only after this many bytes.
        self._many = limits.alone_total_bytes // (4 * max(1, recent))
        self._much = limits.alone_total_bytes // 4
        self._unweighed = 0
        self._reading = module.Reading(
            Frame, Exchange, Place, STATES, name, None if sink is None else sink.rows,
            (DEFAULT_MAX_SIZE, recent, MOST_OPEN, MOST_OPEN_BYTES), _flexible_versions(),
            _left_keys(codec), int.from_bytes(os.urandom(8)) >> 2, tuple(self._share),
        )  # fmt: skip
        self._connections = NativeConnections(
            self._reading, tcp, items, codec, None if sink is None else sink.counted, has
        )
        self.times: dict[int, tuple[int, int]] = {}
        self.read_slowly = 0
        """The number of packets that Python read."""

    def takes(self, found: Any) -> bool:
        """Whether the object is one for ``bulk``."""
        return isinstance(found, self._module.Packets)

    def bulk(self, packets: Any) -> Iterator[Item]:
        """Yield the items of the packets that a walk found."""
        run, sink = self._reading.run, self._sink
        while (left := run(packets)) is not None:
            yield from self._settled()
            if isinstance(left, bytes):
                yield from self._frames(left)
            else:
                yield from self.one(_packet(packets, left))
        yield from self._settled()
        if len(self._connections) > self._many and self._unweighed > self._much:
            self._unweighed = 0
            self._connections.all_to_python(closed=False)
            for event in self._tcp.weigh(_packet(packets, len(packets) - 1)):
                yield from self._items.feed(event)
        if sink is not None:
            sink.drain()

    def _settled(self) -> list[Item]:
        """Count what the extension did since the last call, and return its exchanges."""
        counts = self._reading.counts()
        packets, payload, copied, frames, unknown, behind, requests, closed, spans = counts
        self._tcp.ended(closed)
        if packets:
            account = self._account
            self._unweighed += payload + OVERHEAD * packets
            account.packets += packets
            account.segments += packets
            account.payload += payload + copied
            account.data += payload
            account.retransmitted += copied
            read = self._items.account
            read.payload += payload + copied
            read.copies += copied
            read.frames += frames
            read.requests += requests
            read.count_within("unknown-api", unknown)
            read.count_within("missing", behind)
            for capture, first_ns, last_ns in spans:
                first, last = self.times.get(capture, (first_ns, last_ns))
                self.times[capture] = min(first, first_ns), max(last, last_ns)
        found: list[Item] = self._reading.items()
        return found

    def one(self, packet: Packet) -> list[Item]:
        """Read a packet that is unusual, or whose connection is in an unusual state."""
        self.read_slowly += 1
        out: list[Any] = []
        items: list[Item] = []
        segment = self._segments.feed(packet, out)
        for event in out:
            items += self.event(event)
        if segment is None or not (self._share.of == 1 or self._share.has(segment.flow)):
            return items
        items += self.segment(segment)
        self._connections.to_native(segment.flow)
        return items

    def segment(self, segment: Segment) -> list[Item]:
        """Read a segment in Python."""
        self._connections.to_python(segment.flow)
        items: list[Item] = []
        for event in self._tcp.feed(segment):
            items += self._items.feed(event)
        return items

    def event(self, event: Any) -> list[Item]:
        """Return the items of an event without a connection."""
        return self._items.feed(event) if self._share.is_first else []

    def _frames(self, flow: bytes) -> Iterator[Item]:
        """Read an unusual frame, and what is behind it in its segment."""
        self._connections.to_python(flow)
        number, stream = self._tcp.stream_of(flow)
        talk = self._items.conversation(number)
        assert isinstance(talk, Conversation)
        for item in talk.resume(stream.direction == FROM_CLIENT):
            self._items.account.count(item, self._items.readable)
            yield item
        self._connections.to_native(flow)

    def fragments_end(self) -> list[Item]:
        """Give up the fragments that wait, since no packets follow."""
        out: list[Any] = []
        self._segments.close(out)
        return [item for event in out for item in self.event(event)]

    def all_back(self) -> None:
        """Bring the complete state into ``tcp`` and ``items``, where it can be pickled."""
        self._connections.all_to_python()

    def end(self) -> None:
        """End the packets, and bring what is still to be reported into ``tcp`` and ``items``."""
        self._reading.end()
        self._settled()
        self._connections.all_to_python(closed=False)


class QuickStreams:
    """``read`` a capture that was opened with ``walks``. With a ``share``, only its connections are
    read."""

    def __init__(
        self, items: CaptureItems, limits: Limits, codec: Dialect | None, sink: Sink | None,
        share: Share | None = None,
    ) -> None:  # fmt: skip
        self._tcp = TcpReassembler(Account(), limits)
        self._segments = QuickSegments(items, self._tcp, codec, sink, share)
        self._items = items
        self.unread: dict[int, str] = {}
        """As in ``Streams``, after everything was read."""

    @property
    def account(self) -> Account:
        """The sums, after everything was read."""
        return self._tcp.account

    @property
    def times(self) -> dict[int, tuple[int, int]]:
        """The first and last time of what went to the sink, by capture."""
        return self._segments.times

    @property
    def read_slowly(self) -> int:
        """The number of packets that Python read."""
        return self._segments.read_slowly

    def read(self, capture: Iterable[Any]) -> Iterator[Item]:
        """Yield the items of all packets, without those whose frames went to the sink."""
        found = self._segments
        met: dict[int, str] = {}
        for packet in capture:
            if found.takes(packet):
                met.setdefault(packet[0][-1], "")
                yield from found.bulk(packet)
            elif isinstance(packet, Anomaly):
                met.setdefault(packet.capture, packet.reason)
                yield from found.event(packet)
            else:
                met.setdefault(packet.capture, "")
                yield from found.one(packet)
        found.end()
        if not (self.account.segments or self.account.fragments):
            self.unread = met
        yield from found.fragments_end()
        for event in self._tcp.close():
            yield from self._items.feed(event)
        yield from self._items.settle()


def _packet(packets: Any, number: int) -> Packet:
    place, time, link, at, end, original, interface, capture = packets[number]
    data = memoryview(packets.chunk)[at:end]
    return Packet(place, time, link, data, original, interface, capture)


@cache
def _left_keys(codec: Dialect) -> tuple[int, ...]:
    """Return the API keys whose requests Python has to read."""
    return tuple(sorted(shared_keys(codec) | {_SASL_HANDSHAKE}))


@cache
def _flexible_versions() -> tuple[int, ...]:
    return tuple(version for version in range(_MOST_VERSIONS) if version in produce_flexible())
