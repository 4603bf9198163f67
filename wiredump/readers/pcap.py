"""Classic pcap: bytes in, packets out. Both byte orders, micro- and nanoseconds. No files.

A file header of 24 bytes, then records: a header of 16 bytes and what was captured of the packet.
The link type's upper bits (whether frames end in a check sequence, and how long it is) are passed
over: the IP length tells where a packet ends. ``thiszone`` is too, as every reader does. A record's
length is only believed up to the larger of the snaplen and libpcap's own maximum; past that the
file is damaged, and nothing tells where the next record begins.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from wiredump.readers.format_reader import TO_THE_END, FormatReader
from wiredump.readers.model import Anomaly, Interface, Packet

__all__ = ["LARGEST_RECORD", "LIBPCAP_LIMIT", "RECORD_HEADER", "PcapReader", "begins"]

LARGEST_RECORD: Final = 16 << 20
"""No snaplen makes a longer record credible."""

LIBPCAP_LIMIT: Final = 262_144
"""libpcap's maximum snaplen. Some writers' records are longer than the snaplen that they state."""

RECORD_HEADER: Final = 16

_FILE_HEADER: Final = 24
_LINK_TYPE: Final = 0xFFFF

# The magic as it stands in the file -> byte order, nanoseconds in a unit of the fraction.
_MAGICS: Final = {
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b23c4d"): (">", 1),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
}


def begins(head: bytes) -> bool:
    """Whether a file that begins with ``head`` has this format."""
    return head[:4] in _MAGICS


class PcapReader(FormatReader):
    """A reader of records, in bulk up to the first unusual one."""

    least = RECORD_HEADER
    what = "the file header"

    def __init__(self, capture: int = 0, walk: Any = None, stop: int = TO_THE_END) -> None:
        super().__init__(capture, walk, stop, _FILE_HEADER)
        self._is_big = False
        self._unpack = Struct("<IIII").unpack_from
        self._scale = 1
        self._limit = 0

    def _read(self, chunk: bytes, found: list[Packet | Anomaly]) -> int:
        if self.interfaces:
            return self._read_records(chunk, 0, found)
        problem = self._read_header(chunk)
        if problem is None:
            return self._read_records(chunk, _FILE_HEADER, found)
        found.append(problem)
        return 0

    def _read_header(self, chunk: bytes) -> Anomaly | None:
        order, self._scale = _MAGICS[chunk[:4]]
        self._is_big = order == ">"
        major, minor, snaplen, link_type = Struct(order + "4xHH8xII").unpack_from(chunk)
        if major != 2:
            self.stopped = True
            reason = f"pcap version {major}.{minor} is not known"
            return Anomaly("damaged", reason, self.capture, 0)
        self.interfaces.append(Interface(link_type & _LINK_TYPE, snaplen))
        self._limit = min(max(snaplen, LIBPCAP_LIMIT), LARGEST_RECORD)
        self._unpack = Struct(order + "IIII").unpack_from
        self.what = "a record"
        return None

    def _read_records(self, chunk: bytes, position: int, found: list[Packet | Anomaly]) -> int:
        """Append every whole record from ``position`` on; return where the first other begins."""
        unpack, append, view = self._unpack, found.append, memoryview(chunk)
        base, scale, limit, capture = self._position, self._scale, self._limit, self.capture
        link_type = self.interfaces[0].link_type
        last = min(len(chunk) - RECORD_HEADER, self._stop_at - base - 1)
        self._needed = RECORD_HEADER
        if self._walk is not None:
            packets, position = self._walk(
                chunk, position, base, self._is_big, scale, limit, link_type, capture, self._stop_at
            )
            if packets is not None:
                append(packets)
        while position <= last:
            seconds, fraction, captured, original = unpack(chunk, position)
            data = position + RECORD_HEADER
            end = data + captured
            if captured > limit:
                self.stopped = True
                reason = f"a record of {captured} bytes: more than {limit}, so not a record"
                append(Anomaly("damaged", reason, capture, base + position))
                return len(chunk)
            if end > len(chunk):
                self._needed = RECORD_HEADER + captured
                break
            time = seconds * 1_000_000_000 + fraction * scale
            append(Packet(base + position, time, link_type, view[data:end], original, 0, capture))
            position = end
        return position
