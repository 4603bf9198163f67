"""Headers of TCP, IP and Ethernet as bytes, with checksums. Does not know connections.

Addresses are ``ipaddress`` objects; both addresses of a packet belong to the same family.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from struct import pack
from typing import Final, TypeAlias

__all__ = [
    "ACK",
    "FIN",
    "PSH",
    "RST",
    "SYN",
    "Address",
    "ethernet_frame",
    "ip_packet",
    "tcp_segment",
]

Address: TypeAlias = IPv4Address | IPv6Address

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

_TCP: Final = 6
_TTL: Final = 64
_SEQUENCES: Final = 1 << 32
_DO_NOT_FRAGMENT: Final = 0x4000


def tcp_segment(
    source: Address,
    destination: Address,
    source_port: int,
    destination_port: int,
    sequence: int,
    acknowledgement: int,
    flags: int,
    payload: bytes = b"",
    *,
    window: int = 65_535,
    options: bytes = b"",
) -> bytes:
    """Return a TCP header and its payload. ``options`` are padded to 32 bits."""
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4

    def header(checksum: int) -> bytes:
        return pack(
            ">HHIIBBHHH", source_port, destination_port, sequence % _SEQUENCES,
            acknowledgement % _SEQUENCES, words << 4, flags, window, checksum, 0,
        )  # fmt: skip

    length = 4 * words + len(payload)
    pseudo_header = source.packed + destination.packed + pack(">II", length, _TCP)
    return header(_checksum(pseudo_header + header(0) + options + payload)) + options + payload


def ip_packet(
    source: Address,
    destination: Address,
    payload: bytes,
    *,
    protocol: int = _TCP,
    identification: int = 0,
    fragment: int = _DO_NOT_FRAGMENT,
    options: bytes = b"",
) -> bytes:
    """Return an IPv4 or IPv6 header and its payload.

    ``identification``, ``fragment`` (flags and offset, as in the header) and ``options`` apply to
    IPv4.
    """
    if isinstance(source, IPv6Address):
        head = pack(">IHBB", 6 << 28, len(payload), protocol, _TTL)
        return head + source.packed + destination.packed + payload
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4

    def header(checksum: int) -> bytes:
        return pack(
            ">BBHHHBBH", 4 << 4 | words, 0, 4 * words + len(payload), identification, fragment,
            _TTL, protocol, checksum,
        )  # fmt: skip

    rest = source.packed + destination.packed + options
    return header(_checksum(header(0) + rest)) + rest + payload


def ethernet_frame(packet: bytes, *, vlans: tuple[int, ...] = ()) -> bytes:
    """Return ``packet`` in a frame with generated hardware addresses, after 802.1Q tags if
    ``vlans`` are given."""
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    tags = b"".join(pack(">HH", 0x8100, vlan) for vlan in vlans)
    return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01" + tags + pack(">H", kind) + packet


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071): the sum of 16-bit words is the number modulo 2**16 -
    1."""
    number = int.from_bytes(data + bytes(len(data) % 2))
    total = number % 0xFFFF
    # If the words are not all zero, the sum wraps to 0xffff and never to 0.
    return ~(total or (0xFFFF if number else 0)) & 0xFFFF
