"""Turn packets into events with one object: ``segments`` and ``tcp`` in sequence, with one
account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from wiredump.readers import segment_outcome
from wiredump.readers.account import Account
from wiredump.readers.ledger import Limits
from wiredump.readers.merge import merge
from wiredump.readers.model import Anomaly, Event, Packet, Segment
from wiredump.readers.segment_outcome import SegmentOutcome
from wiredump.readers.segments import SegmentReader
from wiredump.readers.share import Share
from wiredump.readers.tcp import TcpReassembler

__all__ = ["PacketSink", "Streams", "Unread"]


class PacketSink(Protocol):
    """Receives every packet with TCP, and every packet that cannot be read."""

    def segment(self, packet: Packet, segment: Segment, outcome: SegmentOutcome) -> None:
        """Called after the segment's events were processed."""

    def piece(self, packet: Packet, addresses: bytes) -> None:
        """Called for a fragment that does not complete its datagram. Both addresses have the same
        length."""

    def unread(self, anomaly: Anomaly, packet: Packet | None) -> None:
        """Called with None if not even the record could be read."""


class Unread:
    """``captures`` with packets but without TCP so far, and sources that are no captures; with the
    reason, if the format shows it."""

    def __init__(self) -> None:
        self.captures: dict[int, str] = {}
        self._with_tcp: set[int] = set()

    def look_at(self, packets: Iterable[Packet | Anomaly]) -> Iterator[Packet | Anomaly]:
        """Yield all packets; those of a capture are read until one has TCP."""
        segments = SegmentReader(Account())
        for packet in packets:
            if packet.capture not in self._with_tcp:
                segment = segments.feed(packet, []) if isinstance(packet, Packet) else None
                self.note(packet, segment is not None, segments)
            yield packet

    def note(self, packet: Packet | Anomaly, has_tcp: bool, segments: SegmentReader) -> None:
        """Note a packet that was fed to ``segments``."""
        if packet.capture in self._with_tcp:
            return
        if has_tcp or (isinstance(packet, Packet) and segments.kept is not None):
            self._with_tcp.add(packet.capture)
            self.captures.pop(packet.capture, None)
        else:
            reason = packet.reason if isinstance(packet, Anomaly) else ""
            self.captures.setdefault(packet.capture, reason)


class Streams:
    """``feed`` packets, then ``close``; or ``read`` whole captures. With a ``share``, only its
    connections are read."""

    def __init__(self, limits: Limits | None = None, share: Share | None = None) -> None:
        account = Account()
        self._share = share if share is not None else Share(0, 1)
        self._segments = SegmentReader(account)
        self._tcp = TcpReassembler(account, limits)
        self._unread = Unread()

    @property
    def unread(self) -> dict[int, str]:
        """The captures that are ``Unread``."""
        return self._unread.captures

    @property
    def account(self) -> Account:
        """The current sums; after ``close``, nothing is ``buffered``."""
        return self._tcp.account

    def feed(self, packet: Packet | Anomaly) -> list[Event]:
        """Return the events of a packet. An anomaly of the container passes through."""
        if isinstance(packet, Anomaly):
            return [packet]
        out: list[Event] = []
        segment = self._segments.feed(packet, out)
        if segment is None:
            return out
        events = self._tcp.feed(segment)
        return out + events if out else events

    def close(self) -> list[Event]:
        """Return the events of everything that waits, and a Closed for every open connection."""
        out: list[Event] = []
        self._segments.close(out)
        return out + self._tcp.close()

    def read(
        self, *captures: Iterable[Packet | Anomaly], sink: PacketSink | None = None
    ) -> Iterator[Event]:
        """Yield the events of the captures, merged by time. ``sink`` receives the packets
        meanwhile."""
        segment_in, events_of = self._segments.feed, self._tcp.feed
        is_first, mine = self._share.is_first, self._share.has if self._share.of > 1 else None
        for packet in merge(*captures):
            out: list[Event] = []
            segment = None
            if isinstance(packet, Anomaly):
                out.append(packet)
            else:
                segment = segment_in(packet, out)
            self._unread.note(packet, segment is not None, self._segments)
            if out and is_first:
                yield from out
            if sink is not None and segment is None and is_first:
                self._pass_on(sink, packet, out)
            if segment is None or not (mine is None or mine(segment.flow)):
                continue
            if sink is None or isinstance(packet, Anomaly):
                yield from events_of(segment)
            else:
                events, outcome = segment_outcome.feed(self._tcp, segment)
                yield from events
                sink.segment(packet, segment, outcome)
        out = []
        self._segments.close(out)
        if is_first:
            yield from out
        yield from self._tcp.close()

    def _pass_on(self, sink: PacketSink, packet: Packet | Anomaly, out: list[Event]) -> None:
        """Report a packet without a segment to the sink."""
        if isinstance(packet, Anomaly):
            if packet.kind == "packet":
                sink.unread(packet, None)
            return
        for each in out:
            if isinstance(each, Anomaly) and each.kind == "malformed":
                sink.unread(each, packet)
                return
        if self._segments.kept is not None:
            sink.piece(packet, self._segments.kept)
