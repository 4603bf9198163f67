"""What must be known about a capture before a part of it can be read: its format, byte order, and
where its first record begins. Only the beginning of a file is read."""

from __future__ import annotations

from struct import Struct
from typing import Final, Literal, NamedTuple

from wiredump.readers import pcap, pcapng
from wiredump.readers.pcap import LARGEST_RECORD
from wiredump.storage import RangedFile

__all__ = ["CONTEXT_BLOCKS", "PACKET_BLOCKS", "Head", "head_of"]

_FILE_HEADER: Final = 24
_SHORTEST_BLOCK: Final = 12
_LARGEST_HEAD: Final = 64 << 20
_SECTION: Final = 0x0A0D0D0A

PACKET_BLOCKS: Final = frozenset((2, 3, 6))
"""pcapng blocks with packets: obsolete, simple, enhanced."""
CONTEXT_BLOCKS: Final = frozenset((_SECTION, 1))
"""pcapng blocks that later packets depend on: sections, interfaces."""

_PCAP_ORDERS: Final = {0xA1B2C3D4: False, 0xA1B23C4D: True}
_PCAPNG_ORDERS: Final = {bytes.fromhex("1a2b3c4d"): ">", bytes.fromhex("4d3c2b1a"): "<"}


class Head(NamedTuple):
    """``first`` is where the first record begins (pcapng: the block of the first packet);
    everything before it is context. ``order`` is ``<`` or ``>``. ``limit`` is the longest record
    that pcap allows. ``seconds`` is the time of pcap's first record; None without records."""

    format: Literal["pcap", "pcapng"]
    order: str
    first: int
    nanoseconds: bool = False
    limit: int = LARGEST_RECORD
    seconds: int | None = None


def head_of(file: RangedFile) -> Head | None:
    """Return the head; None for files that can only be read from beginning to end: compressed ones,
    and those with an invalid head."""
    start = file.read_at(0, _FILE_HEADER)
    if pcap.begins(start):
        return _pcap(file, start)
    if pcapng.begins(start):
        return _pcapng(file)
    return None


def _pcap(file: RangedFile, start: bytes) -> Head | None:
    if len(start) < _FILE_HEADER:
        return None
    order = "<" if Struct("<I").unpack_from(start)[0] in _PCAP_ORDERS else ">"
    magic, major, snaplen = Struct(order + "IH10xI").unpack_from(start)
    if major != 2:
        return None
    limit = min(max(snaplen, pcap.LIBPCAP_LIMIT), LARGEST_RECORD)
    record = file.read_at(_FILE_HEADER, 4)
    seconds = Struct(order + "I").unpack(record)[0] if len(record) == 4 else None
    return Head("pcap", order, _FILE_HEADER, _PCAP_ORDERS[magic], limit, seconds)


def _pcapng(file: RangedFile) -> Head | None:
    """Walk the blocks up to the first packet."""
    order, position = "<", 0
    while position < _LARGEST_HEAD:
        head = file.read_at(position, _SHORTEST_BLOCK)
        if len(head) < _SHORTEST_BLOCK:
            return Head("pcapng", order, position) if position and not head else None
        block, length = Struct(order + "II").unpack_from(head)
        if block == _SECTION:
            order = _PCAPNG_ORDERS.get(head[8:12], "")
            if not order:
                return None
            (length,) = Struct(order + "I").unpack_from(head, 4)
        if block in PACKET_BLOCKS:
            return Head("pcapng", order, position)
        if length < _SHORTEST_BLOCK or length & 3 or length > LARGEST_RECORD:
            return None
        position += length
    return None
