"""The types that readers return: packets, events of TCP streams, anomalies. Only data, no
behaviour.

Times are ints: nanoseconds since the Unix epoch by the capture's own clock. ``capture`` is the
number that the capture was opened with (0 by default), ``offset`` the byte at which the packet's
record begins, after decompression. Together they identify a packet.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from wiredump.readers.tally import Tally

__all__ = [
    "FROM_CLIENT", "FROM_SERVER", "REASSEMBLY_LIMITS", "TLS_KEY_LOG", "Anomaly", "AnomalyKind",
    "At", "CloseReason", "Closed", "Data", "EndedWith", "Endpoint", "Event", "Gap", "GapReason",
    "Interface", "Opened", "Packet", "Retransmission", "Secrets", "Segment",
]  # fmt: skip

FROM_CLIENT: Final = 0
"""The direction of what the connection's client sent."""
FROM_SERVER: Final = 1

TLS_KEY_LOG: Final = 0x544C534B
"""``Secrets.secrets_type`` of a TLS key log in NSS's format."""


class At(Protocol):
    """The time and the packet, which every event has."""

    @property
    def timestamp_ns(self) -> int: ...
    @property
    def capture(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Packet(msgspec.Struct, frozen=True, gc=False):
    """One record of a capture.

    ``data`` is the captured part: a view, which keeps about a megabyte of the file in memory while
    it is held. ``original_length`` is the length on the wire according to the record. ``interface``
    counts over the whole capture, including all pcapng sections.
    """

    offset: int
    timestamp_ns: int
    link_type: int
    data: memoryview
    original_length: int
    interface: int = 0
    capture: int = 0


class Interface(msgspec.Struct, frozen=True):
    """A capture's description of the origin of packets. ``snaplen`` 0 means no limit."""

    link_type: int
    snaplen: int
    name: str = ""
    section: int = 0


class Secrets(msgspec.Struct, frozen=True):
    """The contents of a decryption secrets block (pcapng); ``TLS_KEY_LOG`` is the usual type."""

    secrets_type: int
    data: bytes
    offset: int


class Segment(msgspec.Struct, frozen=True, gc=False):
    """One TCP segment.

    ``flow`` is source address, destination address, source port and destination port in the form of
    the wire: 12 bytes over IPv4, 36 over IPv6. ``payload`` is the captured part, and ``missing``
    the number of further bytes according to the IP length. ``window`` is not scaled. ``tunnel``
    names the tunnels around it, outermost first (``vxlan 7``, ``pppoe 1 > gre``), or is empty.
    ``identification`` is that of the IP header, or 0: IPv6 has none, and IPv4 not always.
    """

    flow: bytes
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload: memoryview
    missing: int
    timestamp_ns: int
    capture: int
    offset: int
    tunnel: str = ""
    identification: int = 0


class Endpoint(NamedTuple):
    """One end of a connection: an IPv4 or IPv6 address as text, and the port."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else ":".join(map(str, self))


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A connection's first packet; always its first event.

    ``connection`` counts from 0 in the order of first packets. ``start`` is how the client was
    found: it sent the SYN, received the SYN-ACK, or (``middle``: neither was captured) has the
    higher port, which is a guess. ``tally`` keeps counting as more segments come; ``tunnel`` is
    that of the first segment.
    """

    connection: int
    client: Endpoint
    server: Endpoint
    start: Literal["syn", "syn-ack", "middle"]
    timestamp_ns: int
    capture: int
    offset: int
    tally: Tally
    tunnel: str = ""


class Data(msgspec.Struct, frozen=True, gc=False):
    """Bytes of one direction, in order and each once.

    ``stream_offset`` counts from the direction's first byte (after its SYN, or the first one seen);
    the next Data or Gap of the direction begins at ``stream_offset + len(data)``. ``data`` is a
    copy, which keeps nothing else in memory. Time and packet are those that brought the bytes, even
    if they waited for earlier ones: those had arrived ``waited_ns`` later, when TCP could deliver
    all of them.
    """

    connection: int
    direction: int
    stream_offset: int
    data: bytes
    timestamp_ns: int
    capture: int
    offset: int
    waited_ns: int = 0


GapReason: TypeAlias = Literal["lost", "snaplen", "resync", "limit", "memory"]
"""``lost``: never captured. ``snaplen``: the packet was, but cut short in front of these bytes.
``resync``: so much is missing that sequence numbers cannot tell how much; the length is what they
say, which may be 4 GiB too few. ``limit``: more waited behind these than ``Limits.flow_bytes`` or
``total_bytes``; ``memory``: all connections together took more than ``alone_total_bytes``. The
bytes of these two (``REASSEMBLY_LIMITS``) may have been captured later."""

REASSEMBLY_LIMITS: Final[frozenset[GapReason]] = frozenset({"limit", "memory"})
"""The reasons of gaps that were not lost."""


class Gap(msgspec.Struct, frozen=True, gc=False):
    """``length`` bytes of a direction that the capture lacks. Time and packet are those of the
    segment that made this certain."""

    connection: int
    direction: int
    stream_offset: int
    length: int
    reason: GapReason
    timestamp_ns: int
    capture: int
    offset: int


class Retransmission(msgspec.Struct, frozen=True, gc=False):
    """``length`` bytes that had been captured before; the first copy wins.

    These are retransmissions, keep-alives that repeat a byte, and, if ``copied``, packets that were
    captured at two places. ``differing`` bytes differ from the first copy; None means that the
    first copy is no longer held, so that they could not be compared.
    """

    connection: int
    direction: int
    stream_offset: int
    length: int
    differing: int | None
    timestamp_ns: int
    capture: int
    offset: int
    copied: bool = False


CloseReason: TypeAlias = Literal["fin", "reset", "reused", "evicted", "end"]
"""``fin``: both ends sent a FIN. ``reused``: another connection began on the same ports.
``evicted``: there were too many connections. ``end``: the captures ended."""


EndedWith: TypeAlias = Literal["fin", "reset"]


class Closed(msgspec.Struct, frozen=True, gc=False):
    """No Data or Gap of this connection follows; Retransmission and Anomaly may.

    ``client_bytes`` and ``server_bytes`` are the lengths of its directions, including gaps.
    ``ended_by`` is the direction of the first FIN, or of the reset if no FIN came first, and
    ``ended_with`` is which of the two it was; both are None if neither was captured.
    """

    connection: int
    reason: CloseReason
    client_bytes: int
    server_bytes: int
    timestamp_ns: int
    capture: int
    offset: int
    ended_by: int | None = None
    ended_with: EndedWith | None = None


AnomalyKind: TypeAlias = Literal[
    "truncated",
    "damaged",
    "decompression-limit",
    "packet",
    "clock",
    "malformed",
    "fragment",
    "late",
    "reassembly-limit",
    "before-start",
    "after-close",
    "out-of-window",
    "reset",
]
"""Of the container: ``truncated`` (ends inside a record), ``damaged`` (no record begins here: what
cannot be read is skipped),
``decompression-limit`` (holds more than is read of a compressed file),
``packet`` (one record is unusable; the next are read), ``clock`` (the time went back).
Of packets: ``malformed`` (an IP or TCP header that cannot be), ``fragment`` (of a datagram that
never became whole, or that overlaps).
Of TCP: ``late`` (its gap was already reported), ``reassembly-limit`` (the same, if a limit made the
gap), ``before-start`` (older than the first byte seen),
``after-close``, ``out-of-window`` (no sender may be that far off), ``reset`` (one no receiver
would accept: passed over)."""


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """Something that is neither data nor a retransmission, with its place and reason.

    ``length`` counts the captured bytes of TCP payload that are in it and nowhere else.
    ``connection``, ``direction`` and ``stream_offset`` are None if they do not apply.
    """

    kind: AnomalyKind
    reason: str
    capture: int
    offset: int
    timestamp_ns: int = 0
    length: int = 0
    connection: int | None = None
    direction: int | None = None
    stream_offset: int | None = None
    lost: int = 0

    def __str__(self) -> str:
        return f"capture {self.capture}, byte {self.offset}: {self.kind}: {self.reason}"


Event: TypeAlias = Opened | Data | Gap | Retransmission | Closed | Anomaly
"""What ``Streams`` reports."""
