"""Turn packets into TCP segments: IPv4 with options, IPv6 with extension headers, fragments.

The IP length is authoritative: bytes behind it in the packet are padding or a check sequence, and
bytes that it promises beyond the captured ones are ``Segment.missing``, whatever length the record
states. A length of 0 (segmentation offload, jumbograms) means everything that was on the wire.
Checksums are not verified: on the sending machine they are usually not filled in yet.

Packets in tunnels (``tunnels``) are read as if they came alone: the flow is the innermost one,
whatever the tunnel. The length in an outer header ends the inner packet, as a snaplen does.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from wiredump.readers.account import Account
from wiredump.readers.fragments import Fragments, Joiner
from wiredump.readers.link import IPV4, IPV6, locate, protocol_name
from wiredump.readers.model import Anomaly, Event, Packet, Segment
from wiredump.readers.tunnels import MOST_STEPS, TUNNEL_PORTS, TUNNEL_PROTOCOLS, past_ip, past_link

__all__ = ["SegmentReader"]

_TCP: Final = 6
_UDP: Final = 17
_IPV4_HEADER: Final = 20
_IPV6_HEADER: Final = 40
_TCP_HEADER: Final = 20
_MORE_OR_OFFSET: Final = 0x3FFF

_HOP_BY_HOP: Final = 0
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51
_EXTENSIONS: Final = frozenset((_HOP_BY_HOP, 43, 60, 135, 139, 140))
"""Extension headers whose second byte is their length in units of 8 bytes beyond the first 8."""

_PROTOCOLS: Final = {
    1: "icmp",
    2: "igmp",
    17: "udp",
    47: "gre",
    50: "esp",
    58: "icmp6",
    132: "sctp",
}

_ipv4 = Struct(">BxHHHxB").unpack_from  # version and words, length, id, fragment, protocol
_ipv6 = Struct(">BxxxHB").unpack_from  # version, length, next header
_fragment = Struct(">BxHI").unpack_from  # next header, offset and more, id
_tcp = Struct(">IIBBH").unpack_from  # from the sequence number on

_TYPE_AT: Final = {1: 12, 113: 14}
"""Link types whose EtherType is directly in front of the IP header, and its position."""
_ipv4_and_tcp = Struct(">HBxHHHxB2x8x4xIIBBH").unpack_from  # EtherType, IPv4, TCP
_IPV4_AND_TCP_LENGTH: Final = 2 + 20 + 20


class _Malformed(Exception):
    """Invalid headers; ``length`` bytes may be payload or headers."""

    def __init__(self, reason: str, length: int = 0) -> None:
        super().__init__(reason)
        self.length = length


class _Inside(NamedTuple):
    """The bytes to read: those of a packet, or of the datagram that it completes; their length on
    the wire, and the tunnels around them."""

    packet: Packet
    data: memoryview
    length: int
    tunnel: str


class _Datagram(NamedTuple):
    """The contents of an IP header: the protocol of what begins ``at``, and its ``end``."""

    inside: _Inside
    protocol: int
    at: int
    end: int
    addresses: bytes
    identification: int = 0


class _Piece(NamedTuple):
    """A fragment: the key of its datagram, its position there, whether more follow, and where its
    bytes are."""

    key: tuple[bytes, int, str]
    start: int
    more: bool
    at: int
    end: int


class SegmentReader:
    """``feed`` packets; each gives a segment, or is counted in the account by its protocol.

    Anomalies are added to the list that is passed in. ``fragments`` joins the fragments of
    datagrams, unless another one is passed in.
    """

    def __init__(self, account: Account, fragments: Joiner | None = None) -> None:
        self._account = account
        self._fragments = fragments if fragments is not None else Fragments(account)
        self.kept: bytes | None = None
        """The two addresses of a packet without a segment because it is a fragment."""

    def feed(self, packet: Packet, out: list[Event]) -> Segment | None:
        """Return the segment in ``packet``, or completed by it; None if there is none."""
        account = self._account
        account.packets += 1
        data = packet.data
        at = _TYPE_AT.get(packet.link_type)
        if at is not None and len(data) >= at + _IPV4_AND_TCP_LENGTH:
            # The usual packet: a whole IPv4 packet with TCP, and nothing unusual in front of the
            # ports.
            (
                kind, version, length, identification, fragment, protocol, sequence,
                acknowledgement, words, flags, window,
            ) = _ipv4_and_tcp(data, at)  # fmt: skip
            at += 2
            end = at + length
            payload = at + _IPV4_HEADER + (words >> 4 << 2)
            if (
                kind == IPV4 and version == 0x45 and protocol == _TCP and words >= 0x50
                and not fragment & _MORE_OR_OFFSET and payload <= end <= len(data)
            ):  # fmt: skip
                account.segments += 1
                return Segment(
                    bytes(data[at + 12 : at + 24]), sequence, acknowledgement, flags, window,
                    data[payload:end], 0, packet.timestamp_ns, packet.capture, packet.offset, "",
                    identification,
                )  # fmt: skip
        try:
            segment = self._read(packet, out)
        except _Malformed as error:
            account.payload += error.length
            account.anomalous += error.length
            self._malformed(str(error), error.length, packet, out)
            return None
        except (StructError, IndexError):
            self._malformed("cut inside its headers", 0, packet, out)
            return None
        if segment is not None:
            account.segments += 1
        return segment

    def close(self, out: list[Event]) -> None:
        """Give up the fragments that wait, since no packets follow."""
        self._fragments.close(out)

    def _malformed(self, reason: str, length: int, packet: Packet, out: list[Event]) -> None:
        self._account.malformed += 1
        out.append(
            Anomaly("malformed", reason, packet.capture, packet.offset, packet.timestamp_ns, length)
        )

    def _other(self, what: str, tunnel: str = "") -> None:
        """Count a packet without TCP. Tunnels are named by kind only: with their numbers there
        would be no limit to the names."""
        if tunnel:
            kinds = " > ".join(each.split(" ")[0] for each in tunnel.split(" > "))
            what = f"{what} in {kinds}"
        others = self._account.others
        others[what] = others.get(what, 0) + 1

    def _read(self, packet: Packet, out: list[Event]) -> Segment | None:
        self.kept = None
        found = locate(packet.link_type, packet.data)
        if found is None:
            self._other(f"link type {packet.link_type}")
            return None
        kind, at = found
        inside = _Inside(packet, packet.data, packet.original_length, "")
        for _ in range(MOST_STEPS):
            if kind in (IPV4, IPV6):
                read = self._read_ipv4 if kind == IPV4 else self._read_ipv6
                datagram = read(inside, at, out)
                if datagram is None:
                    return None
                inside, protocol, at, end, addresses, identification = datagram
                if protocol == _TCP:
                    return _segment(inside, at, end, addresses, identification)
                inside = inside._replace(data=inside.data[:end], length=end)
                step = past_ip(protocol, inside.data, at)
                what = _PROTOCOLS.get(protocol, f"ip protocol {protocol}")
            else:
                step, what = past_link(kind, inside.data, at), protocol_name(kind)
            if step is None or isinstance(step.kind, str):
                self._other(what if step is None else str(step.kind), inside.tunnel)
                return None
            name, kind, at = step.name, step.kind, step.at
            if name:
                tunnel = f"{inside.tunnel} > {name}" if inside.tunnel else name
                inside = inside._replace(tunnel=tunnel)
        self._other("too many headers")
        return None

    def _read_ipv4(self, inside: _Inside, at: int, out: list[Event]) -> _Datagram | None:
        data = inside.data
        version, length, identification, fragment, protocol = _ipv4(data, at)
        header = (version & 15) << 2
        if version >> 4 != 4 or header < _IPV4_HEADER:
            raise _Malformed(f"not an IPv4 header: begins with 0x{version:02x}")
        if length == 0:
            length = inside.length - at
        if length < header and protocol == _TCP:
            raise _Malformed(f"an IPv4 length of {length} with a header of {header}")
        addresses = bytes(data[at + 12 : at + 20])
        start, end = at + header, at + length
        if not fragment & _MORE_OR_OFFSET:
            return _Datagram(inside, protocol, start, end, addresses, identification)
        key = (addresses, identification, inside.tunnel)
        piece = _Piece(key, (fragment & 0x1FFF) << 3, bool(fragment & 0x2000), start, end)
        whole = self._add_fragment(inside, protocol, piece, out)
        if whole is None:
            return None
        return _Datagram(whole, protocol, 0, whole.length, addresses, identification)

    def _read_ipv6(self, inside: _Inside, at: int, out: list[Event]) -> _Datagram | None:
        data = inside.data
        version, length, protocol = _ipv6(data, at)
        if version >> 4 != 6:
            raise _Malformed(f"not an IPv6 header: begins with 0x{version:02x}")
        end = at + _IPV6_HEADER + length if length else inside.length
        addresses = bytes(data[at + 8 : at + 40])
        protocol, at = _past_extensions(data, protocol, at + _IPV6_HEADER)
        if protocol == _FRAGMENT:
            protocol, fragment, identification = _fragment(data, at)
            at += 8
            if fragment & 0xFFF9:  # anything else is a whole datagram with a fragment header
                key = (addresses, identification, inside.tunnel)
                piece = _Piece(key, fragment & 0xFFF8, bool(fragment & 1), at, end)
                whole = self._add_fragment(inside, protocol, piece, out)
                if whole is None:
                    return None
                inside, end, at = whole, whole.length, 0
            protocol, at = _past_extensions(inside.data, protocol, at)
        return _Datagram(inside, protocol, at, end, addresses)

    def _add_fragment(
        self, inside: _Inside, protocol: int, piece: _Piece, out: list[Event]
    ) -> _Inside | None:
        """Add a fragment; returns the datagram if this completes it."""
        data, (key, start, more, at, end) = inside.data, piece
        wanted = self._is_wanted(protocol, data, piece)
        if wanted:
            if end > len(data):
                length = max(0, len(data) - at)
                raise _Malformed("a fragment that was not captured whole", length)
            if end < at:
                raise _Malformed("an IP length shorter than its headers")
        elif wanted is False:
            self._other(_PROTOCOLS.get(protocol, f"ip protocol {protocol}"), inside.tunnel)
            return None
        packet = inside.packet
        whole = self._fragments.add(key, start, more, data[at:end], packet, out)
        if whole is None:
            self._account.fragments += 1
            self.kept = key[0]
            return None
        return _Inside(packet, memoryview(whole), len(whole), inside.tunnel)

    def _is_wanted(self, protocol: int, data: memoryview, piece: _Piece) -> bool | None:
        """Whether the datagram may contain TCP. For UDP, the port in the first fragment decides;
        None if that is not known here."""
        if protocol != _UDP:
            return protocol == _TCP or protocol in _EXTENSIONS or protocol in TUNNEL_PROTOCOLS
        if piece.start:
            return self._fragments.waits(piece.key)
        return int.from_bytes(data[piece.at + 2 : piece.at + 4]) in TUNNEL_PORTS


def _past_extensions(data: memoryview, protocol: int, at: int) -> tuple[int, int]:
    """Return the protocol behind IPv6's extension headers, and where it begins."""
    while True:
        if protocol in _EXTENSIONS:
            protocol, at = data[at], at + 8 + data[at + 1] * 8
        elif protocol == _AUTHENTICATION:
            protocol, at = data[at], at + 8 + data[at + 1] * 4
        else:
            return protocol, at


def _segment(inside: _Inside, tcp: int, end: int, addresses: bytes, identification: int) -> Segment:
    """Return the segment whose header begins at ``tcp``; by the IP length it ends at ``end``."""
    data, packet = inside.data, inside.packet
    captured = max(0, min(end, len(data)) - tcp - _TCP_HEADER)
    if tcp + _TCP_HEADER > end:
        raise _Malformed(f"{end - tcp} bytes are no TCP header")
    sequence, acknowledgement, words, flags, window = _tcp(data, tcp + 4)
    header = words >> 4 << 2
    payload = tcp + header
    if header < _TCP_HEADER or payload > end:
        raise _Malformed(f"a TCP header of {header} bytes in {end - tcp}", captured)
    missing = end - max(payload, min(end, len(data)))
    return Segment(
        addresses + data[tcp : tcp + 4], sequence, acknowledgement, flags, window,
        data[payload:end], missing, packet.timestamp_ns, packet.capture, packet.offset,
        inside.tunnel, identification,
    )  # fmt: skip
