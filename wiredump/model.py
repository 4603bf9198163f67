"""The common form of all traffic: connections, frames, exchanges, anomalies.

Captures, journals and brokers' request logs are all turned into these types, so that the code that
shows, counts or stores traffic does not depend on the source. This module has only data. Times are
nanoseconds since the Unix epoch.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from kproto.journal import ClientSoftware
from wiredump.readers.tally import Tally
from wiredump.unread import Unread

__all__ = [
    "Anomaly", "Connection", "Direction", "Exchange", "Frame", "Item", "Place", "SalvagedBatches",
]  # fmt: skip

Direction: TypeAlias = Literal["request", "response"]
"""``request``: from the client to the broker; ``response``: back."""


class Place(NamedTuple):
    """A position in the sources: the byte ``offset``, in the source numbered ``capture``, at which
    a packet's record or a journal's line begins."""

    capture: int
    offset: int


class Connection(msgspec.Struct, gc=False):
    """One connection. ``number`` counts from 0 in the order of first packets over all sources;
    ``place`` is the position of that first packet (or of a journal's entry, or a log's line).
    ``id`` identifies the connection by it, independently of how the sources were read. ``client``
    and ``broker`` are ``host:port``, with IPv6 addresses in brackets. Other attributes (the
    client's software, the protocol) are filled in as they become known.

    ``closed_by`` is the end that sent the first FIN, or the reset if no FIN came first;
    ``closed_with`` is which of them it was. Both are None if neither was seen. A journal has only
    ``closed_by``.

    ``protocol`` is "kafka", "tls" (encrypted, without keys), the name of another protocol, or
    "unknown". ``from_start`` is whether the first byte was captured. ``proxied_client`` and
    ``proxied_broker`` are the ends that a proxy's header names, or empty. ``tunnel`` names the
    tunnels around the first packet, outermost first (``vxlan 7``), or is empty. ``tally`` has the
    counts of its packets, or is None without packets.
    """

    number: int
    client: str
    broker: str
    opened_ns: int
    closed_ns: int | None = None
    closed_by: Literal["client", "broker"] | None = None
    closed_with: Literal["fin", "reset"] | None = None
    from_start: bool = False
    protocol: str = "unknown"
    software: ClientSoftware | None = None
    client_id: str | None = None
    principal: str = ""
    place: Place | None = None
    tunnel: str = ""
    tally: Tally | None = None
    proxied_client: str = ""
    proxied_broker: str = ""

    @property
    def id(self) -> int:
        """``place`` as one number, or ``number`` without a place."""
        return self.number if self.place is None else self.place.capture << 48 | self.place.offset


class SalvagedBatches(NamedTuple):
    """Whole record batches, one behind the other, in a frame of which the capture lacks bytes.

    ``number`` is that of the first one in its partition, of those whose headers were captured,
    ``batches`` how many there are, and ``offset`` their place in the frame. The partition is -1,
    and a topic has neither name nor id, if the capture lacks its header.
    """

    topic: str | None
    topic_id: str | None
    partition: int
    number: int
    batches: int
    offset: int
    data: bytes


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One frame, or the part of it that was captured.

    ``offset`` is the position of its first byte, that of the size field, within its direction of
    the connection; ``size`` is its length with the size field. ``raw`` has the bytes before the
    first missing one, so it is shorter than ``size`` if the capture lacks something; ``missing``
    counts the bytes that it lacks. ``first_ns`` and ``last_ns`` are the times of the packets with
    the first and the last captured byte, and ``place`` is the position of the first packet. Bytes
    missing in front of the last byte were captured ``waited_ns`` after it. ``sasl`` marks a bare
    SASL token, which is neither a request nor a response.

    A source without bytes (a broker's request log) has the body in ``json``, in the form of Kafka's
    own JSON; ``size`` is 0 and ``raw`` is empty.

    ``behind`` has the parts behind missing bytes, each with its place in the frame, until it is
    known whether there are record batches in them. ``salvaged`` are those that are whole, of the
    whole frame, or None if the frame is whole or of an API without record batches.
    """

    direction: Direction
    offset: int
    size: int
    raw: bytes
    missing: int
    first_ns: int
    last_ns: int
    place: Place
    sasl: bool = False
    json: Any = None
    waited_ns: int = 0
    behind: tuple[tuple[int, bytes], ...] = ()
    salvaged: tuple[SalvagedBatches, ...] | None = None

    @property
    def read_size(self) -> int:
        """The number of bytes that can be read: those before the first missing one, and the whole
        record batches behind it."""
        size = len(self.raw)
        return size + sum(len(each.data) for each in self.salvaged or () if each.offset >= size)

    @property
    def salvaged_batches(self) -> int | None:
        """The number of whole batches in a frame of which bytes are missing; None for others."""
        return None if self.salvaged is None else sum(each.batches for each in self.salvaged)

    @property
    def delivered_ns(self) -> int:
        """When TCP could deliver the whole frame, judging by the capture."""
        return self.last_ns + self.waited_ns

    @property
    def whole(self) -> bool:
        """Whether all of its bytes were captured."""
        return len(self.raw) == self.size


class Exchange(msgspec.Struct, gc=False):
    """A request and its response, or one of them alone.

    ``api_key`` to ``client_id`` are from the request's header; without a request they are -1 and
    None, and ``correlation_id`` is the response's. ``response_version`` is the version of the
    response: 0 if ApiVersions fell back (KIP-511), else the request's. ``expected`` is False for a
    Produce with acks=0. ``in_order`` is False if the response came before that of an earlier
    request. ``is_decoded`` is False for requests that did not decode while nothing else showed that
    the connection is Kafka.
    """

    connection: Connection
    request: Frame | None = None
    response: Frame | None = None
    api_key: int = -1
    api_version: int = -1
    correlation_id: int = -1
    client_id: str | None = None
    software: ClientSoftware | None = None
    dialect: str = "kafka"
    response_version: int | None = None
    expected: bool = True
    in_order: bool = True
    is_decoded: bool = True

    @property
    def latency_ns(self) -> int | None:
        """The time that the client waited: from the first byte of the request until the response
        could be delivered. None if one of them is missing, or if the capture's clocks put the
        response first."""
        if self.request is None or self.response is None:
            return None
        waited = self.response.delivered_ns - self.request.first_ns
        return waited if waited >= 0 else None


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """An irregularity: ``kind`` is for programs, ``reason`` for people.

    ``offset`` is the position in its direction of the connection. ``size`` is the number of payload
    bytes that are in no frame because of it, for the reason ``unread``; ``missing`` bytes were
    never captured.
    """

    kind: str
    reason: str
    place: Place
    timestamp_ns: int
    connection: Connection | None = None
    direction: Direction | None = None
    offset: int | None = None
    size: int = 0
    missing: int = 0
    unread: Unread | None = None


Item: TypeAlias = Exchange | Anomaly
"""What a source yields, in the order in which it became known."""
