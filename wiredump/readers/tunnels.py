"""What carries packets inside of packets: which header it is, and where the next one begins.

===================  ===================================  =============================
carried by           header                               named
===================  ===================================  =============================
IP protocol 4, 41    IP in IP (RFC 2003, 4213)            ``ipip``, ``ip6ip``
IP protocol 47       GRE (RFC 2784, 2890, 2637)           ``gre KEY``
GRE                  ERSPAN types I to III                ``erspan SESSION``
IP protocol 97       EtherIP (RFC 3378)                   ``etherip``
IP protocol 137      MPLS in IP (RFC 4023)                ``mpls LABEL/LABEL``
EtherType 8847 8848  MPLS, its payload IP or Ethernet     ``mpls LABEL/LABEL``
EtherType 8864       PPPoE session (RFC 2516)             ``pppoe SESSION``
UDP port 4789, 8472  VXLAN (RFC 7348)                     ``vxlan VNI``
UDP port 4790        VXLAN-GPE                            ``vxlan VNI``
UDP port 6081        GENEVE (RFC 8926)                    ``geneve VNI``
UDP port 6635        MPLS in UDP (RFC 7510)               ``mpls LABEL/LABEL``
===================  ===================================  =============================

Nothing here knows packets or accounts: bytes and a place in, a ``Step`` out. Where the bytes end
inside a header, functions raise struct.error or IndexError.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from wiredump.readers.link import ETHERNET, IPV4, IPV6, MPLS, PPP, PPPOE, ethernet

__all__ = ["MOST_STEPS", "TUNNEL_PORTS", "TUNNEL_PROTOCOLS", "Step", "past_ip", "past_link"]

MOST_STEPS: Final = 16
"""The most headers between the link layer and TCP, including IP's own. Packets with more are not
read."""

_MOST_LABELS: Final = 16
_CARRIED: Final = frozenset((IPV4, IPV6, 0x0806, MPLS, PPPOE))
"""EtherTypes that are accepted in a frame that no header announced."""
_UDP_HEADER: Final = 8
_UDP: Final = 17

_u16 = Struct(">H").unpack_from
_u32 = Struct(">I").unpack_from
_gre_start = Struct(">HH").unpack_from
_udp_ports = Struct(">HH").unpack_from


class Step(NamedTuple):
    """The result of passing one header: the next header has the EtherType ``kind`` and begins
    ``at``. ``name`` is empty for a header that is not a tunnel. A ``kind`` that is text names what
    cannot be read."""

    name: str
    kind: int | str
    at: int


_Read: TypeAlias = Callable[[memoryview, int], Step]


# ---- behind an EtherType ------------------------------------------------------------------------


def _ethernet(data: memoryview, at: int) -> Step:
    return Step("", *ethernet(data, at))


def _mpls(data: memoryview, at: int) -> Step:
    labels = []
    for _ in range(_MOST_LABELS):
        (entry,) = _u32(data, at)
        at += 4
        labels.append(str(entry >> 12))
        if entry & 0x100:
            return _behind_labels(f"mpls {'/'.join(labels)}", data, at)
    return Step("", "mpls with too many labels", at)


def _behind_labels(name: str, data: memoryview, at: int) -> Step:
    """Find what follows MPLS labels, which do not say. The first four bits show IP. An Ethernet
    pseudowire has a control word that begins with 0 (RFC 4448), or none; then EtherTypes decide."""
    nibble = data[at] >> 4
    if nibble in (4, 6):
        return Step(name, IPV4 if nibble == 4 else IPV6, at)
    if nibble == 0 and _is_frame(data, at + 4):
        return Step(name, ETHERNET, at + 4)
    return Step(name, ETHERNET if _is_frame(data, at) else "mpls", at)


def _is_frame(data: memoryview, at: int) -> bool:
    return len(data) >= at + 18 and ethernet(data, at)[0] in _CARRIED


def _pppoe(data: memoryview, at: int) -> Step:
    if data[at] != 0x11 or data[at + 1] != 0:
        return Step("", "pppoe", at)
    return Step(f"pppoe {_u16(data, at + 2)[0]}", PPP, at + 6)


_PPP_PROTOCOLS: Final = {0x21: IPV4, 0x57: IPV6, 0x281: MPLS, 0x283: MPLS}


def _ppp(data: memoryview, at: int) -> Step:
    """Pass a PPP header, with or without address and control; the protocol may be one byte (RFC
    1661, 6.5)."""
    if data[at] in (0xFF, 0x0F, 0x8F) and data[at + 1] in (0x03, 0x00):
        at += 2
    protocol = data[at]
    at += 1
    if not protocol & 1:
        protocol = protocol << 8 | data[at]
        at += 1
    return Step("", _PPP_PROTOCOLS.get(protocol, "ppp"), at)


_LINKS: Final[dict[int, _Read]] = {
    ETHERNET: _ethernet,
    MPLS: _mpls,
    0x8848: _mpls,
    PPPOE: _pppoe,
    PPP: _ppp,
}


def past_link(kind: int, data: memoryview, at: int) -> Step | None:
    """Pass the header of an EtherType other than IP's; None if it is not a tunnel."""
    read = _LINKS.get(kind)
    return read(data, at) if read is not None else None


# ---- behind an IP protocol ----------------------------------------------------------------------

_CHECKSUM, _ROUTING, _KEY, _SEQUENCE, _ACKNOWLEDGEMENT = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
_ERSPAN: Final = 0x88BE
_ERSPAN_3: Final = 0x22EB


def _gre(data: memoryview, at: int) -> Step:
    flags, kind = _gre_start(data, at)
    version = flags & 7
    if flags & _ROUTING or version > 1:
        return Step("", "gre", at)
    at += 4
    if flags & _CHECKSUM:
        at += 4
    key = ""
    if flags & _KEY:
        key = f" {_u32(data, at)[0] & (0xFFFF if version else 0xFFFFFFFF)}"
        at += 4
    if flags & _SEQUENCE:
        at += 4
    if version and flags & _ACKNOWLEDGEMENT:
        at += 4
    if kind == _ERSPAN and not flags & _SEQUENCE:
        return Step("erspan", ETHERNET, at)
    if kind == _ERSPAN:
        return Step(f"erspan {_u16(data, at + 2)[0] & 0x3FF}", ETHERNET, at + 8)
    if kind == _ERSPAN_3:
        subheader = 8 if data[at + 11] & 1 else 0
        return Step(f"erspan {_u16(data, at + 2)[0] & 0x3FF}", ETHERNET, at + 12 + subheader)
    return Step(f"gre{key}", kind, at)


def _ip4(data: memoryview, at: int) -> Step:
    return Step("ipip", IPV4, at)


def _ip6(data: memoryview, at: int) -> Step:
    return Step("ip6ip", IPV6, at)


def _etherip(data: memoryview, at: int) -> Step:
    if data[at] >> 4 != 3:
        return Step("", "etherip", at)
    return Step("etherip", ETHERNET, at + 2)


def _number(data: memoryview, at: int) -> int:
    """Return a number of three bytes, such as a VNI."""
    return int(_u32(data, at)[0] >> 8)


def _vxlan(data: memoryview, at: int) -> Step:
    if not data[at] & 0x08:
        return Step("", "udp", at)
    return Step(f"vxlan {_number(data, at + 4)}", ETHERNET, at + 8)


def _vxlan_gpe(data: memoryview, at: int) -> Step:
    if not data[at] & 0x08:
        return Step("", "udp", at)
    kind: int | str = {1: IPV4, 2: IPV6, 3: ETHERNET, 5: MPLS}.get(data[at + 3], "vxlan")
    if not data[at] & 0x04:  # without the P bit it is plain VXLAN
        kind = ETHERNET
    return Step(f"vxlan {_number(data, at + 4)}", kind, at + 8)


def _geneve(data: memoryview, at: int) -> Step:
    if data[at] >> 6 or data[at + 1] & 0x80:  # another version, or a control packet of the tunnel
        return Step("", "udp" if data[at] >> 6 else "geneve control", at)
    inner = at + 8 + (data[at] & 0x3F) * 4
    return Step(f"geneve {_number(data, at + 4)}", _u16(data, at + 2)[0], inner)


_PORTS: Final[dict[int, _Read]] = {
    4789: _vxlan,
    8472: _vxlan,
    4790: _vxlan_gpe,
    6081: _geneve,
    6635: _mpls,
}

TUNNEL_PORTS: Final = frozenset(_PORTS)
"""UDP ports of tunnels."""


def _udp(data: memoryview, at: int) -> Step:
    read = None
    if len(data) >= at + 2 * _UDP_HEADER:
        read = _PORTS.get(_udp_ports(data, at)[1])
    return Step("", "udp", at) if read is None else read(data, at + _UDP_HEADER)


_PROTOCOLS: Final[dict[int, _Read]] = {
    4: _ip4,
    _UDP: _udp,
    41: _ip6,
    47: _gre,
    97: _etherip,
    137: _mpls,
}

TUNNEL_PROTOCOLS: Final = frozenset(_PROTOCOLS) - {_UDP}
"""IP protocols that are always tunnels."""


def past_ip(protocol: int, data: memoryview, at: int) -> Step | None:
    """Pass the header of an IP protocol; None if it is not a tunnel."""
    read = _PROTOCOLS.get(protocol)
    return read(data, at) if read is not None else None
