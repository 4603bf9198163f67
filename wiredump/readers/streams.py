"""From packets to events in one object: ``segments`` and ``tcp`` behind each other, one account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wiredump.readers.account import Account
from wiredump.readers.ledger import Limits
from wiredump.readers.merge import merge
from wiredump.readers.model import Anomaly, Event, Packet
from wiredump.readers.segments import SegmentReader
from wiredump.readers.share import Share
from wiredump.readers.tcp import TcpReassembler

__all__ = ["Streams"]


class Streams:
    """``feed`` packets as they come, then ``close``; or ``read`` whole captures, of which a
    ``share`` is some of the connections."""

    def __init__(self, limits: Limits | None = None, share: Share | None = None) -> None:
        account = Account()
        self._share = share if share is not None else Share(0, 1)
        self._segments = SegmentReader(account)
        self._tcp = TcpReassembler(account, limits)

    @property
    def account(self) -> Account:
        """The sums as of now; after ``close`` nothing is ``buffered``."""
        return self._tcp.account

    def feed(self, packet: Packet | Anomaly) -> list[Event]:
        """What a packet brings about. An anomaly of the container is handed on as it is."""
        if isinstance(packet, Anomaly):
            return [packet]
        out: list[Event] = []
        segment = self._segments.feed(packet, out)
        if segment is None:
            return out
        events = self._tcp.feed(segment)
        return out + events if out else events

    def close(self) -> list[Event]:
        """Everything that waited, and a Closed for every connection still open."""
        out: list[Event] = []
        self._segments.close(out)
        return out + self._tcp.close()

    def read(self, *captures: Iterable[Packet | Anomaly]) -> Iterator[Event]:
        """Every event of the captures, merged by time where there are several."""
        segment_in, events_of = self._segments.feed, self._tcp.feed
        tells, mine = self._share.is_first, self._share.has if self._share.of > 1 else None
        for packet in merge(*captures):
            if isinstance(packet, Anomaly):
                if tells:
                    yield packet
                continue
            out: list[Event] = []
            segment = segment_in(packet, out)
            if out and tells:
                yield from out
            if segment is not None and (mine is None or mine(segment.flow)):
                yield from events_of(segment)
        out = []
        self._segments.close(out)
        if tells:
            yield from out
        yield from self._tcp.close()
