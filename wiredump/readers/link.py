"""Where in a packet the IP header begins. Knows link layers, nothing of IP but its version.

===========  =================================================================================
link type
===========  =================================================================================
1            Ethernet
0, 108       BSD loopback: an address family in the capturing machine's byte order, or the other
9, 50, 204   PPP, the last with a byte for the direction
12, 14, 101  raw IP
51           PPPoE sessions
104          Cisco HDLC
113, 276     Linux cooked, versions 1 and 2
219          MPLS
228, 229     raw IPv4, raw IPv6
239          NFLOG
===========  =================================================================================

VLAN tags (802.1Q, 802.1ad, and the types used before it) are passed over wherever an EtherType
stands, any number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, Literal

__all__ = [
    "ETHERNET", "IPV4", "IPV6", "MPLS", "PPP", "PPPOE", "ethernet", "locate", "protocol_name",
]  # fmt: skip

IPV4: Final = 0x0800
IPV6: Final = 0x86DD
ETHERNET: Final = 0x6558
MPLS: Final = 0x8847
PPP: Final = 0x880B
PPPOE: Final = 0x8864
_VLAN_TAGS: Final = frozenset((0x8100, 0x88A8, 0x9100, 0x9200))

_FIRST_LLC: Final = 0x600
"""Ethernet's type field is a length below this."""
_SNAP: Final = b"\xaa\xaa\x03\0\0\0"

_NAMES: Final = {0x0806: "arp", 0x88CC: "lldp", 0x8863: "pppoe discovery"}
_FAMILIES: Final = {2: IPV4, 10: IPV6, 23: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}
"""AF_INET is 2 everywhere; AF_INET6 is another number on each system."""

_u16 = Struct(">H").unpack_from
_u32 = Struct(">I").unpack_from
_u32_little = Struct("<I").unpack_from


def _past_tags(data: memoryview, kind: int, at: int) -> tuple[int, int]:
    """Return the EtherType behind VLAN tags (and LLC/SNAP), and where its contents begin."""
    while kind in _VLAN_TAGS:
        (kind,) = _u16(data, at + 2)
        at += 4
    if kind < _FIRST_LLC and bytes(data[at : at + 6]) == _SNAP:
        (kind,) = _u16(data, at + 6)
        at += 8
    return kind, at


def ethernet(data: memoryview, at: int) -> tuple[int, int]:
    """Do the same as ``locate``, for a frame that begins ``at``."""
    return _past_tags(data, _u16(data, at + 12)[0], at + 14)


def _loopback(data: memoryview) -> tuple[int, int]:
    family = min(_u32(data, 0)[0], _u32_little(data, 0)[0])
    return _FAMILIES.get(family, 0), 4


def _raw(data: memoryview) -> tuple[int, int]:
    return {4: IPV4, 6: IPV6}.get(data[0] >> 4, 0), 0


_NFLOG_HEADER: Final = 4
_NFLOG_PAYLOAD: Final = 9


def _nflog(data: memoryview) -> tuple[int, int]:
    """Walk the attributes (length, type, padded to 4 bytes), one of which is the packet from its IP
    header on. Lengths and types are in the byte order of the capturing machine: the one in which
    the first attribute fits."""
    order: Literal["little", "big"] = "little"
    if int.from_bytes(data[4:6], "little") > int.from_bytes(data[4:6], "big"):
        order = "big"
    at = _NFLOG_HEADER
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 2], order)
        if int.from_bytes(data[at + 2 : at + 4], order) & 0x7FFF == _NFLOG_PAYLOAD:
            return {4: IPV4, 6: IPV6}.get(data[at + 4] >> 4, 0), at + 4
        if length < 4:
            break
        at += length + 3 & ~3
    return 0, at


_TYPED: Final = {1: (12, 14), 104: (2, 4), 113: (14, 16), 276: (0, 20)}
"""Where the EtherType stands, and where its contents begin."""
_ALIKE: Final = {
    9: (PPP, 0), 50: (PPP, 0), 51: (PPPOE, 0), 204: (PPP, 1), 219: (MPLS, 0), 228: (IPV4, 0),
    229: (IPV6, 0),
}  # fmt: skip
"""The EtherType that all packets have, and where its contents begin."""
_OTHERS: Final[dict[int, Callable[[memoryview], tuple[int, int]]]] = {
    0: _loopback, 108: _loopback, 12: _raw, 14: _raw, 101: _raw, 239: _nflog,
}  # fmt: skip


def locate(link_type: int, data: memoryview) -> tuple[int, int] | None:
    """Return the EtherType and where its contents begin, or None for an unknown link type.

    Raises struct.error or IndexError if the packet ends too soon.
    """
    if link_type in _TYPED:
        kind_at, at = _TYPED[link_type]
        return _past_tags(data, _u16(data, kind_at)[0], at)
    link = _OTHERS.get(link_type)
    return link(data) if link is not None else _ALIKE.get(link_type)


def protocol_name(kind: int) -> str:
    """Return the name under which a protocol other than IP is counted."""
    if kind in _NAMES:
        return _NAMES[kind]
    return f"ethertype 0x{kind:04x}" if kind >= _FIRST_LLC else "no ethertype"
