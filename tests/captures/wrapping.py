"""Captures of Ethernet and IPv4 wrapped in tunnels and other links, byte by byte as the documents
named at each header have them. ``tests/tshark/test_tunnels.py`` holds them against Wireshark."""

from collections.abc import Callable, Iterator
from struct import pack, unpack_from
from typing import Final, NamedTuple

from tests.captures.worse import HEADER, RECORD, records_of

__all__ = ["WRAPPINGS", "Wrapping", "fragmented", "wrapped"]

ETHERNET = 14
MACS = bytes.fromhex("020000000001020000000002")


def _checksum(header: bytes) -> int:
    """RFC 1071."""
    total: int = sum(unpack_from(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(protocol: int, inner: bytes, fragment: int = 0, identification: int = 7) -> bytes:
    """RFC 791, 3.1: no options, addresses of RFC 5737."""
    addresses = bytes((192, 0, 2, 1, 198, 51, 100, 2))
    length = 20 + len(inner)
    head = pack(">BBHHHBBH", 0x45, 0, length, identification, fragment, 64, protocol, 0)
    return head[:10] + pack(">H", _checksum(head + addresses)) + addresses + inner


def ipv6(protocol: int, inner: bytes) -> bytes:
    """RFC 8200, 3: addresses of RFC 3849."""
    ends = bytes.fromhex("20010db8000000000000000000000001") + bytes.fromhex(
        "20010db8000000000000000000000002"
    )
    return pack(">IHBB", 6 << 28, len(inner), protocol, 64) + ends + inner


def ethernet(kind: int, inner: bytes) -> bytes:
    """RFC 894."""
    return MACS + pack(">H", kind) + inner


def udp(port: int, inner: bytes) -> bytes:
    """RFC 768; no checksum, which RFC 6935 allows tunnels over IPv6 as well."""
    return pack(">HHHH", 49_152, port, 8 + len(inner), 0) + inner


def vxlan(vni: int, frame: bytes) -> bytes:
    """RFC 7348, 5: the I flag, a VNI of 24 bits."""
    return pack(">II", 0x08 << 24, vni << 8) + frame


def vxlan_gpe(vni: int, kind: int, inner: bytes) -> bytes:
    """draft-ietf-nvo3-vxlan-gpe, 3: the P flag says that there is a next protocol."""
    return pack(">II", 0x0C << 24 | kind, vni << 8) + inner


def geneve(vni: int, kind: int, inner: bytes, options: bytes = b"") -> bytes:
    """RFC 8926, 3.4: the length of options is in units of four bytes."""
    return pack(">BBHI", len(options) // 4, 0, kind, vni << 8) + options + inner


def gre(kind: int, inner: bytes, *, key: int | None = None, sequence: int | None = None,
        checksum: bool = False) -> bytes:  # fmt: skip
    """RFC 2784, 2 and RFC 2890, 2."""
    flags = 0x8000 * checksum | 0x2000 * (key is not None) | 0x1000 * (sequence is not None)
    rest = b"" if key is None else pack(">I", key)
    rest += b"" if sequence is None else pack(">I", sequence)
    if checksum:
        whole = pack(">HHI", flags, kind, 0) + rest + inner
        rest = pack(">HH", _checksum(whole + bytes(len(whole) & 1)), 0) + rest
    return pack(">HH", flags, kind) + rest + inner


def pptp(call: int, inner: bytes) -> bytes:
    """RFC 2637, 4.1: version 1, the key is the payload's length and a call id; K, S and A set."""
    return pack(">HHHHII", 0x3081, 0x880B, len(inner), call, 1, 1) + inner


def erspan_2(session: int, frame: bytes) -> bytes:
    """draft-foschiano-erspan, 4.2: version 1, in GRE with a sequence number."""
    return gre(0x88BE, pack(">HHI", 0x1000, session, 0) + frame, sequence=1)


def erspan_3(session: int, frame: bytes) -> bytes:
    """The same, 4.3: version 2, the O flag and a subheader for the platform."""
    return gre(0x22EB, pack(">HHIHHQ", 0x2000, session, 0, 0, 1, 0) + frame, sequence=1)


def mpls(labels: tuple[int, ...], inner: bytes) -> bytes:
    """RFC 3032, 2.1: the last entry has the bottom-of-stack bit."""
    last = len(labels) - 1
    entries = (
        pack(">I", label << 12 | (0x100 if number == last else 0) | 64)
        for number, label in enumerate(labels)
    )
    return b"".join(entries) + inner


def ppp(protocol: int, inner: bytes) -> bytes:
    """RFC 1661, 2."""
    return pack(">H", protocol) + inner


def pppoe(session: int, inner: bytes) -> bytes:
    """RFC 2516, 4: version and type 1, code 0."""
    return pack(">BBHH", 0x11, 0, session, len(inner)) + inner


def nflog(packet: bytes) -> bytes:
    """LINKTYPE_NFLOG: family, version, resource; a packet header, a prefix and the payload."""
    attributes = b""
    for kind, value in ((1, bytes.fromhex("08000300")), (10, b"kafka\0"), (9, packet)):
        length = 4 + len(value)
        attributes += pack("<HH", length, kind) + value + bytes(-length % 4)
    return pack(">BBH", 2, 0, 5) + attributes


class Wrapping(NamedTuple):
    """``wrap`` makes a packet of ``link_type`` of an Ethernet frame with IPv4. ``tunnel`` is what
    tables say of it, ``layers`` how Wireshark names it up to what is inside: empty where tshark
    does not read the link type."""

    link_type: int
    tunnel: str | None
    layers: str
    wrap: Callable[[bytes], bytes]


def _over_ip(protocol: int, make: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda frame: ethernet(0x0800, ipv4(protocol, make(frame)))


def _ip(frame: bytes) -> bytes:
    """What the frame holds: by its length, without padding."""
    return frame[ETHERNET : ETHERNET + unpack_from(">H", frame, ETHERNET + 2)[0]]


_ETH, _IP, _UDP = "eth:ethertype:ip", "ip:tcp", "eth:ethertype:ip:udp"
_INSIDE = "eth:ethertype:ip:tcp"

WRAPPINGS: Final[dict[str, Wrapping]] = {
    "vxlan": Wrapping(1, "vxlan 7005", f"{_UDP}:vxlan:{_INSIDE}",
                      _over_ip(17, lambda each: udp(4789, vxlan(7005, each)))),
    "vxlan over ipv6": Wrapping(
        1, "vxlan 16777215", f"eth:ethertype:ipv6:udp:vxlan:{_INSIDE}",
        lambda each: ethernet(0x86DD, ipv6(17, udp(4789, vxlan(0xFFFFFF, each))))),
    "vxlan-gpe": Wrapping(1, "vxlan 9", f"{_UDP}:{_IP}",
                          _over_ip(17, lambda each: udp(4790, vxlan_gpe(9, 1, _ip(each))))),
    "geneve": Wrapping(
        1, "geneve 3", f"{_UDP}:geneve:{_INSIDE}",
        _over_ip(17, lambda each: udp(6081, geneve(3, 0x6558, each, bytes.fromhex(
            "0108000100000001"))))),
    "geneve with ip": Wrapping(
        1, "geneve 4", f"{_UDP}:geneve:{_IP}",
        _over_ip(17, lambda each: udp(6081, geneve(4, 0x0800, _ip(each))))),
    "gre": Wrapping(1, "gre", f"{_ETH}:gre:{_IP}",
                    _over_ip(47, lambda each: gre(0x0800, _ip(each)))),
    "gre with all": Wrapping(
        1, "gre 4294967295", f"{_ETH}:gre:{_INSIDE}",
        _over_ip(47, lambda each: gre(0x6558, each, key=2**32 - 1, sequence=5, checksum=True))),
    "pptp": Wrapping(1, "gre 17", f"{_ETH}:gre:ppp:{_IP}",
                     _over_ip(47, lambda each: pptp(17, ppp(0x21, _ip(each))))),
    "erspan 1": Wrapping(1, "erspan", f"{_ETH}:gre:erspan:{_INSIDE}",
                         _over_ip(47, lambda each: gre(0x88BE, each))),
    "erspan 2": Wrapping(1, "erspan 1023", f"{_ETH}:gre:erspan:{_INSIDE}",
                         _over_ip(47, lambda each: erspan_2(1023, each))),
    "erspan 3": Wrapping(1, "erspan 2", f"{_ETH}:gre:erspan:{_INSIDE}",
                         _over_ip(47, lambda each: erspan_3(2, each))),
    "ip in ip": Wrapping(1, "ipip", f"{_ETH}:{_IP}", _over_ip(4, _ip)),
    "ip in ipv6": Wrapping(1, "ipip", f"eth:ethertype:ipv6:{_IP}",
                           lambda each: ethernet(0x86DD, ipv6(4, _ip(each)))),
    "etherip": Wrapping(1, "etherip", f"{_ETH}:etherip:{_INSIDE}",
                        _over_ip(97, lambda each: b"\x30\0" + each)),
    "mpls": Wrapping(1, "mpls 16001/18", f"eth:ethertype:mpls:{_IP}",
                     lambda each: ethernet(0x8847, mpls((16001, 18), _ip(each)))),
    "mpls pseudowire": Wrapping(
        1, "mpls 16", f"eth:ethertype:mpls:{_INSIDE}",
        lambda each: ethernet(0x8847, mpls((16,), bytes(4) + each))),
    "mpls without control word": Wrapping(
        1, "mpls 22", f"eth:ethertype:mpls:{_INSIDE}",
        lambda each: ethernet(0x8847, mpls((22,), each))),
    "mpls in ip": Wrapping(1, "mpls 17", f"{_ETH}:mpls:{_IP}",
                           _over_ip(137, lambda each: mpls((17,), _ip(each)))),
    "mpls in udp": Wrapping(1, "mpls 19", f"{_UDP}:mpls:{_IP}",
                            _over_ip(17, lambda each: udp(6635, mpls((19,), _ip(each))))),
    "pppoe": Wrapping(1, "pppoe 258", f"eth:ethertype:pppoes:ppp:{_IP}",
                      lambda each: ethernet(0x8864, pppoe(258, ppp(0x21, _ip(each))))),
    "ppp link": Wrapping(9, None, f"ppp:{_IP}", lambda each: b"\xff\x03" + ppp(0x21, _ip(each))),
    "ppp compressed": Wrapping(9, None, f"ppp:{_IP}", lambda each: b"\x21" + _ip(each)),
    "ppp in hdlc": Wrapping(50, None, f"ppp:{_IP}",
                            lambda each: b"\xff\x03" + ppp(0x21, _ip(each))),
    "ppp with direction": Wrapping(204, None, f"ppp:{_IP}",
                                   lambda each: b"\x01\xff\x03" + ppp(0x21, _ip(each))),
    "pppoe link": Wrapping(51, "pppoe 1", f"pppoes:ppp:{_IP}",
                           lambda each: pppoe(1, ppp(0x21, _ip(each)))),
    "cisco hdlc": Wrapping(104, None, f"chdlc:{_IP}", lambda each: b"\x0f\0\x08\0" + _ip(each)),
    "mpls link": Wrapping(219, "mpls 20", "", lambda each: mpls((20,), _ip(each))),
    "nflog": Wrapping(239, None, f"nflog:{_IP}", lambda each: nflog(_ip(each))),
    "nested": Wrapping(
        1, "vxlan 1 > gre 6 > mpls 21 > ipip",
        f"eth:ethertype:vlan:ethertype:ip:udp:vxlan:eth:ethertype:ip:gre:mpls:ip:{_IP}",
        lambda each: ethernet(0x8100, pack(">HH", 5, 0x0800) + ipv4(17, udp(4789, vxlan(1, ethernet(
            0x0800, ipv4(47, gre(0x8847, mpls((21,), ipv4(4, _ip(each))), key=6)))))))),
}  # fmt: skip


def wrapped(capture: bytes, wrapping: Wrapping) -> bytes:
    """A capture of the same packets at the same times, each wrapped."""
    return _written(capture, wrapping.link_type, lambda frame: iter([wrapping.wrap(frame)]))


def fragmented(capture: bytes, size: int = 400) -> bytes:
    """In VXLAN, whose datagrams are sent in fragments of so many bytes (RFC 791, 3.2)."""
    count = 0

    def pieces(frame: bytes) -> Iterator[bytes]:
        nonlocal count
        count += 1
        datagram = udp(4789, vxlan(7, frame))
        for at in range(0, len(datagram), size):
            more = 0x2000 if at + size < len(datagram) else 0
            piece = ipv4(17, datagram[at : at + size], more | at >> 3, count & 0xFFFF)
            yield ethernet(0x0800, piece)

    return _written(capture, 1, pieces)


def _written(capture: bytes, link_type: int, wrap: Callable[[bytes], Iterator[bytes]]) -> bytes:
    made = [capture[:16] + pack("<II", 262_144, link_type)]
    for record in records_of(capture):
        for packet in wrap(record[RECORD:]):
            made.append(record[:8] + pack("<II", len(packet), len(packet)) + packet)
    assert len(made[0]) == HEADER
    return b"".join(made)
