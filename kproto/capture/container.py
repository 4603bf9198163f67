"""pcap and pcapng as bytes: headers, interfaces, packets, secrets. Does not interpret the packets.

Times are nanoseconds since the Unix epoch. ``order`` is ``<`` or ``>``, the byte order of a file or
section; readers accept either. The default resolution of pcapng is nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Final

__all__ = [
    "COMMENT",
    "ETHERNET",
    "INTERFACE_NAME",
    "RAW_IP",
    "TIME_OFFSET",
    "TIME_RESOLUTION",
    "USER_APPLICATION",
    "block",
    "pcap_header",
    "pcap_record",
    "pcapng_interface",
    "pcapng_packet",
    "pcapng_secrets",
    "pcapng_section",
    "pcapng_simple_packet",
]

ETHERNET: Final = 1
RAW_IP: Final = 101

COMMENT: Final = 1
INTERFACE_NAME: Final = 2
USER_APPLICATION: Final = 4
TIME_RESOLUTION: Final = 9
TIME_OFFSET: Final = 14

Options = Iterable[tuple[int, bytes]]


def pcap_header(
    link_type: int, *, order: str = "<", nanoseconds: bool = False, snaplen: int = 262_144
) -> bytes:
    """Return the 24 bytes at the beginning of a classic capture."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    return pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)


def pcap_record(
    timestamp_ns: int,
    data: bytes,
    *,
    order: str = "<",
    nanoseconds: bool = False,
    original_length: int | None = None,
) -> bytes:
    """Return the record of a packet of which ``data`` was captured."""
    seconds, rest = divmod(timestamp_ns, 1_000_000_000)
    fraction = rest if nanoseconds else rest // 1000
    original = len(data) if original_length is None else original_length
    return pack(order + "IIII", seconds, fraction, len(data), original) + data


def block(block_type: int, body: bytes, *, order: str = "<") -> bytes:
    """Return a pcapng block; its body is padded to 32 bits."""
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return pack(order + "II", block_type, length) + body + pack(order + "I", length)


def pcapng_section(options: Options = (), *, order: str = "<") -> bytes:
    """Return the block that begins a section of unknown length."""
    head = pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
    return block(0x0A0D0D0A, head + _options(options, order), order=order)


def pcapng_interface(
    link_type: int,
    *,
    order: str = "<",
    snaplen: int = 0,
    resolution: int = 9,
    options: Options = (),
) -> bytes:
    """Return an interface block. Packets refer to it by its number in the section. ``resolution``
    is if_tsresol."""
    with_resolution = [(TIME_RESOLUTION, bytes((resolution,))), *options]
    head = pack(order + "HHI", link_type, 0, snaplen)
    return block(1, head + _options(with_resolution, order), order=order)


def pcapng_packet(
    timestamp: int,
    data: bytes,
    *,
    order: str = "<",
    interface: int = 0,
    original_length: int | None = None,
    options: Options = (),
) -> bytes:
    """Return an enhanced packet block. ``timestamp`` is in the interface's units."""
    original = len(data) if original_length is None else original_length
    high, low = timestamp >> 32, timestamp & 0xFFFFFFFF
    head = pack(order + "5I", interface, high, low, len(data), original)
    padded = data + bytes(-len(data) % 4)
    return block(6, head + padded + _options(options, order), order=order)


def pcapng_simple_packet(
    data: bytes, *, order: str = "<", original_length: int | None = None
) -> bytes:
    """Return a packet without a time, of the section's first interface."""
    original = len(data) if original_length is None else original_length
    return block(3, pack(order + "I", original) + data, order=order)


def pcapng_secrets(data: bytes, *, secrets_type: int = 0x544C534B, order: str = "<") -> bytes:
    """Return a block of decryption secrets; the default type is a TLS key log."""
    return block(0xA, pack(order + "II", secrets_type, len(data)) + data, order=order)


def _options(options: Options, order: str) -> bytes:
    written = b"".join(
        pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
    )
    return written + bytes(4) if written else b""
