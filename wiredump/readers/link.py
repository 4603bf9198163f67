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
    "ETHERNET",
    "IPV4",
    "IPV6",
    "MPLS",
    "PPP",
    "PPPOE",
    "ethernet",
    "locate",
    "protocol_name",
]

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


def _ethernet(data: memoryview) -> tuple[int, int]:
    return ethernet(data, 0)


def _cooked(data: memoryview) -> tuple[int, int]:
    return _past_tags(data, _u16(data, 14)[0], 16)


def _cooked_2(data: memoryview) -> tuple[int, int]:
    return _past_tags(data, _u16(data, 0)[0], 20)


def _loopback(data: memoryview) -> tuple[int, int]:
    family = min(_u32(data, 0)[0], _u32_little(data, 0)[0])
    return _FAMILIES.get(family, 0), 4


def _raw(data: memoryview) -> tuple[int, int]:
    return {4: IPV4, 6: IPV6}.get(data[0] >> 4, 0), 0


def _raw_4(data: memoryview) -> tuple[int, int]:
    return IPV4, 0


def _raw_6(data: memoryview) -> tuple[int, int]:
    return IPV6, 0


def _ppp(data: memoryview) -> tuple[int, int]:
    return PPP, 0


def _ppp_with_direction(data: memoryview) -> tuple[int, int]:
    return PPP, 1


def _pppoe(data: memoryview) -> tuple[int, int]:
    return PPPOE, 0


def _cisco(data: memoryview) -> tuple[int, int]:
    return _past_tags(data, _u16(data, 2)[0], 4)


def _mpls(data: memoryview) -> tuple[int, int]:
    return MPLS, 0


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


_LINKS: Final[dict[int, Callable[[memoryview], tuple[int, int]]]] = {
    1: _ethernet,
    0: _loopback,
    108: _loopback,
    9: _ppp,
    50: _ppp,
    51: _pppoe,
    104: _cisco,
    204: _ppp_with_direction,
    219: _mpls,
    239: _nflog,
    12: _raw,
    14: _raw,
    101: _raw,
    113: _cooked,
    276: _cooked_2,
    228: _raw_4,
    229: _raw_6,
}


def locate(link_type: int, data: memoryview) -> tuple[int, int] | None:
    """Return the EtherType and where its contents begin, or None for an unknown link type.

    Raises struct.error or IndexError if the packet ends too soon.
    """
    link = _LINKS.get(link_type)
    return link(data) if link is not None else None


def protocol_name(kind: int) -> str:
    """Return the name under which a protocol other than IP is counted."""
    if kind in _NAMES:
        return _NAMES[kind]
    return f"ethertype 0x{kind:04x}" if kind >= _FIRST_LLC else "no ethertype"
