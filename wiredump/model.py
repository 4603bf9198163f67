"""What every source of traffic becomes before anybody looks at it: connections, frames, exchanges,
anomalies.

A capture, a journal and a broker's request log all end here, so that what shows, counts or stores
traffic knows nothing of where it came from. Data only; times are nanoseconds since the Unix epoch.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from kproto.journal import ClientSoftware
from wiredump.readers.tally import Tally

__all__ = ["Anomaly", "Connection", "Direction", "Exchange", "Frame", "Item", "Place"]

Direction: TypeAlias = Literal["request", "response"]
"""Which way bytes go: from the client to the broker, or back."""


class Place(NamedTuple):
    """Where something stands: the byte ``offset`` of the source numbered ``capture`` at which the
    record of its packet, or a journal's line, begins."""

    capture: int
    offset: int


class Connection(msgspec.Struct, gc=False):
    """One connection. ``number`` counts from 0 in the order of first packets over all sources;
    ``place`` is that first packet's (a journal's entry, a log's line), and ``id`` names the
    connection by it: the same however the sources were read.
    ``client`` and ``broker`` are ``host:port``, IPv6 in brackets. What is learnt on the way (who
    the client said it is, what the bytes turned out to be) is filled in as it is seen.

    ``closed_by`` sent the first FIN, or the reset where none came before it, which
    ``closed_with`` says; None where neither was seen. A journal says who, and not with what.

    ``protocol`` is "kafka", "tls" (nothing inside could be read) or "unknown". ``from_start`` says
    whether its first byte was captured. ``tunnel`` names what carried its first packet, the
    outermost first (``vxlan 7``); empty for nothing. ``tally`` is how its packets went; None
    without any.
    """

    number: int
    client: str
    broker: str
    opened_ns: int
    closed_ns: int | None = None
    closed_by: Literal["client", "broker"] | None = None
    closed_with: Literal["fin", "reset"] | None = None
    from_start: bool = False
    protocol: Literal["unknown", "kafka", "tls"] = "unknown"
    software: ClientSoftware | None = None
    client_id: str | None = None
    principal: str = ""
    place: Place | None = None
    tunnel: str = ""
    tally: Tally | None = None

    @property
    def id(self) -> int:
        """``place`` as one number, or ``number`` where there is none."""
        return self.number if self.place is None else self.place.capture << 48 | self.place.offset


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One frame, or what was captured of it.

    ``offset`` is that of its size's first byte within its direction of the connection, ``size``
    the bytes it takes there, size field included. ``raw`` are those of them that come before the
    first missing one: shorter than ``size`` where the capture was cut or lost something.
    ``missing`` counts the bytes the capture lacks. ``first_ns`` and ``last_ns`` are the times of
    the packets that brought the first and the last byte there is; ``place`` is the first packet's.
    ``waited_ns`` after the last byte was captured the bytes missing in front of it were, too.
    ``sasl`` marks a bare SASL token, which is no request nor response.

    A source without bytes (a broker's request log) has the body in ``json`` instead, as Kafka's own
    JSON has it; ``size`` and ``raw`` are 0 and empty then.
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

    @property
    def delivered_ns(self) -> int:
        """When TCP could deliver it whole, by what was captured."""
        return self.last_ns + self.waited_ns

    @property
    def whole(self) -> bool:
        return len(self.raw) == self.size


class Exchange(msgspec.Struct, gc=False):
    """A request and its response, or the one of them that was seen.

    ``api_key`` to ``client_id`` are the request's header's; where no request was seen they are -1
    and None, and ``correlation_id`` is the response's. ``response_version`` is the version the
    response is written in: 0 where ApiVersions fell back (KIP-511), else the request's.
    ``expected`` is False for a Produce with acks=0. ``in_order`` is False where a response came
    before that of an earlier request.
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

    @property
    def latency_ns(self) -> int | None:
        """What the client waited: from the request's first byte until the response could be
        delivered. None where one is missing, or where a capture's clocks put the response first."""
        if self.request is None or self.response is None:
            return None
        waited = self.response.delivered_ns - self.request.first_ns
        return waited if waited >= 0 else None


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """Something that is not as it should be: ``kind`` for programs, ``reason`` for people.

    ``offset`` is within that direction of the connection. ``size`` bytes of payload there are in
    no frame because of it, ``missing`` bytes were never captured.
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


Item: TypeAlias = Exchange | Anomaly
"""What comes out of a source, in the order in which it became known."""
