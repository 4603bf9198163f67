"""pcapng: bytes in, packets out. Several sections, either byte order in each. No files.

Read: section headers, interface descriptions (link type, snaplen, name, time resolution and
offset), enhanced, simple and obsolete packet blocks, decryption secrets. Every other block is
passed over by its length: names, statistics, custom blocks, those to come. A block whose two
lengths differ is damage: the next ones are searched for, in the byte order of the section. One that
is only wrong inside is an anomaly of its own, and the next is read.

A simple packet block has no time: its packet takes that of the one before it in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from wiredump.readers.format_reader import CHAIN, TO_THE_END, FormatReader
from wiredump.readers.model import Anomaly, Interface, Packet, Secrets
from wiredump.readers.pcap import LARGEST_RECORD

__all__ = ["ENHANCED_HEADER", "PcapngReader", "begins"]

ENHANCED_HEADER: Final = 28
"""The bytes of an enhanced packet block in front of its packet."""

_SECTION_HEADER: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
_SECRETS: Final = 0xA

_BYTE_ORDERS: Final = {bytes.fromhex("1a2b3c4d"): ">", bytes.fromhex("4d3c2b1a"): "<"}
_SHORTEST_BLOCK: Final = 12
_LARGEST_SECRETS: Final = 64 << 20
"""The limit for a whole capture, since secrets stay in memory."""
_LARGEST_TIME: Final = 2**63 - 1

_MOST_WALKED: Final = 64
"""The interfaces of a section whose packets are read in bulk, as in native/packets.c."""

_OPTION_NAME: Final = 2
_OPTION_RESOLUTION: Final = 9
_OPTION_TIME_OFFSET: Final = 14


_LENGTHS: Final = b"[" + b"".join(b"\\x%02x" % low for low in range(0, 256, 4)) + b"]"
"""A byte that ends with two zero bits, as the lowest of a length does."""
_SHORT_TYPES: Final = b"[\\x01-\\x06\\x09\\x0a]"
_CANDIDATES: Final = tuple(
    re.compile(b"(?s)(?=(?:" + types + b")" + length + b"|\\n\\r\\r\\n)")
    for types, length in (
        (
            b"\\0\\0\\0" + _SHORT_TYPES + b"|[\\0\\x40]\\0\\x0b\\xad",
            b"[\\0\\x01].." + _LENGTHS,
        ),
        (
            _SHORT_TYPES + b"\\0\\0\\0|\\xad\\x0b\\0[\\0\\x40]",
            _LENGTHS + b"..[\\0\\x01]",
        ),
    )
)
"""Where blocks may begin: in big and in little endian sections."""


def begins(head: bytes) -> bool:
    """Whether a file that begins with ``head`` has this format."""
    return head[:4] == b"\x0a\x0d\x0d\x0a"


class _Clock(NamedTuple):
    """``ticks * multiplier // divisor + offset`` is nanoseconds."""

    multiplier: int
    divisor: int
    offset: int


class _Layouts(NamedTuple):
    """The layouts of blocks, in one byte order."""

    two_words: Callable[..., tuple[Any, ...]]
    word: Callable[..., tuple[Any, ...]]
    packet: Callable[..., tuple[Any, ...]]
    obsolete: Callable[..., tuple[Any, ...]]
    interface: Callable[..., tuple[Any, ...]]
    option: Callable[..., tuple[Any, ...]]
    int64: Callable[..., tuple[Any, ...]]


_LAYOUTS: Final = {
    order: _Layouts(
        *(Struct(order + each).unpack_from for each in ("II", "I", "5I", "HH4I", "HHI", "HH", "q"))
    )
    for order in "<>"
}


class PcapngReader(FormatReader):
    """A reader of blocks, of enhanced packet blocks in bulk.

    ``interfaces`` and ``secrets`` grow as they are read. Interfaces are numbered over all sections,
    in the order of their descriptions. ``contexts`` are sections and interfaces.
    """

    least = _SHORTEST_BLOCK
    what = "a block"

    def __init__(
        self, capture: int = 0, walk: Any = None, stop: int = TO_THE_END, *, resume: bool = True
    ) -> None:
        super().__init__(capture, walk, stop, _SHORTEST_BLOCK, resume)
        self._clocks: list[_Clock] = []
        self._walk_clocks: tuple[tuple[int, int, int, int], ...] = ()
        """The link type and the clock of the section's first interfaces."""
        self._section = -1
        self._first_interface = 0  # of this section
        self._secrets_size = 0
        self._time: int | None = None
        self._layouts = _LAYOUTS["<"]

    def _time_before(self) -> int:
        """Return the time of the packet before; 0 without one."""
        if self._time is None:
            self.untimed = True
            return 0
        return self._time

    def _read(self, chunk: bytes, position: int, found: list[Packet | Anomaly]) -> int:
        view = memoryview(chunk)
        last = min(len(chunk) - _SHORTEST_BLOCK, self._stop_at - self._position - 1)
        self._needed = _SHORTEST_BLOCK
        while position <= last:
            block, length, problem = self._header(chunk, position)
            end = position + length
            if not problem and end > len(chunk):
                self._needed = length
                break
            problem = problem or self._trailing(chunk, end, length)
            if problem:
                self._damaged(problem, position)
                return position
            if block == _ENHANCED_PACKET:
                if self._walk is not None:
                    after = self._walked(chunk, position, found)
                    if after > position:
                        position = after
                        continue
                self._enhanced_packet(chunk, view, position, end, found)
            else:
                self._other_block(block, chunk, view, position, end, found)
                if self._damage is not None:
                    return position
            position = end
        return position

    def _header(self, chunk: bytes, position: int) -> tuple[int, int, str]:
        """Return a block's type and length, and why it cannot be one. A section header sets the
        byte order."""
        block, length = self._layouts.two_words(chunk, position)
        if block == _SECTION_HEADER:
            order = _BYTE_ORDERS.get(chunk[position + 8 : position + 12])
            if order is None:
                return block, 0, "a section header without a byte order"
            self._layouts = _LAYOUTS[order]
            (length,) = self._layouts.word(chunk, position + 4)
        if length < _SHORTEST_BLOCK or length & 3 or length > LARGEST_RECORD:
            return block, 0, f"a block of type {block} and {length} bytes is invalid"
        return block, length, ""

    def _trailing(self, chunk: bytes, end: int, length: int) -> str:
        (again,) = self._layouts.word(chunk, end - 4)
        return "" if again == length else f"a block of {length} bytes says {again} at its end"

    def _candidates(self, chunk: bytes, begin: int) -> Iterator[int]:
        for each in _CANDIDATES[self._layouts is _LAYOUTS["<"]].finditer(chunk, begin):
            yield each.start()

    def _length(self, chunk: bytes, at: int) -> int:
        layouts = self._layouts
        length = self._header(chunk, at)[1]
        self._layouts = layouts
        return length

    def _chain(self, chunk: bytes, at: int, is_end: bool) -> int:
        place, layouts = at, self._layouts
        try:
            for number in range(CHAIN):
                left = len(chunk) - place
                if left < _SHORTEST_BLOCK:
                    return (0 if number else -1) if is_end else place + _SHORTEST_BLOCK - at
                _, length, problem = self._header(chunk, place)
                if problem:
                    return -1
                if length > left:
                    return (0 if number else -1) if is_end else place + length - at
                if self._trailing(chunk, place + length, length):
                    return -1
                place += length
            return 0
        finally:
            self._layouts = layouts

    def _walked(self, chunk: bytes, position: int, found: list[Packet | Anomaly]) -> int:
        """Take usual blocks from ``position`` on; returns where the first other block begins."""
        packets, position = self._walk(
            chunk, position, self._position, self._layouts is _LAYOUTS[">"], self._walk_clocks,
            self._first_interface, self.capture, self._stop_at,
        )  # fmt: skip
        if packets is not None:
            self._time = packets[len(packets) - 1][1]
            found.append(packets)
        return position

    def _enhanced_packet(
        self, chunk: bytes, view: memoryview, position: int, end: int, found: list[Packet | Anomaly]
    ) -> None:
        data = position + ENHANCED_HEADER
        if data + 4 > end:
            return self._unusable("an enhanced packet block without its fields", position, found)
        number, high, low, captured, original = self._layouts.packet(chunk, position + 8)
        self._packet(
            view, position, data, end - 4, number, high << 32 | low, captured, original, found
        )

    def _packet(
        self, view: memoryview, position: int, data: int, limit: int, number: int,
        ticks: int | None, captured: int, original: int, found: list[Packet | Anomaly],
    ) -> None:  # fmt: skip
        """Make a packet. ``number`` is the section's interface; ``ticks`` is None for the last
        packet's time."""
        index = self._first_interface + number
        if index >= len(self.interfaces):
            return self._unusable(f"interface {number} is not described", position, found)
        if captured > limit - data:
            reason = f"{captured} bytes captured in a block that has room for {limit - data}"
            return self._unusable(reason, position, found)
        time = None
        if ticks is not None:
            multiplier, divisor, offset = self._clocks[index]
            time = ticks * multiplier // divisor + offset
            if not -_LARGEST_TIME <= time <= _LARGEST_TIME:
                reason = f"a time of {time} ns does not fit into 64 bits; the previous time is used"
                found.append(Anomaly("clock", reason, self.capture, self._position + position))
                time = None
        self._time = self._time_before() if time is None else time
        found.append(
            Packet(
                self._position + position, self._time, self.interfaces[index].link_type,
                view[data : data + captured], original, index, self.capture,
            )
        )  # fmt: skip

    def _unusable(self, reason: str, position: int, found: list[Packet | Anomaly]) -> None:
        place = self._position + position
        found.append(Anomaly("packet", reason, self.capture, place, self._time_before()))

    def _other_block(
        self, block: int, chunk: bytes, view: memoryview, position: int, end: int,
        found: list[Packet | Anomaly],
    ) -> None:  # fmt: skip
        """Read any other block than an enhanced packet."""
        body, room = position + 8, end - position - _SHORTEST_BLOCK
        if block == _SECTION_HEADER:
            self._section_header(chunk, position, room)
        elif block == _INTERFACE:
            self._interface(chunk, position, end - 4, found)
        elif block == _SIMPLE_PACKET:
            if room < 4 or self._first_interface == len(self.interfaces):
                what = "without its length" if room < 4 else "without an interface"
                return self._unusable(f"a simple packet block {what}", position, found)
            (original,) = self._layouts.word(chunk, body)
            snaplen = self.interfaces[self._first_interface].snaplen or original
            captured = min(original, snaplen)
            self._packet(view, position, body + 4, end - 4, 0, None, captured, original, found)
        elif block == _OBSOLETE_PACKET:
            if room < 20:
                return self._unusable("a packet block without its fields", position, found)
            number, _drops, high, low, captured, original = self._layouts.obsolete(chunk, body)
            self._packet(
                view, position, body + 20, end - 4, number, high << 32 | low, captured, original,
                found,
            )  # fmt: skip
        elif block == _SECRETS:
            self._decryption_secrets(chunk, position, room, found)
        return None

    def _section_header(self, chunk: bytes, position: int, room: int) -> None:
        if room < 16:
            self._damaged("a section header without its fields", position)
            return
        major, minor = self._layouts.option(chunk, position + 12)
        if major != 1:
            self._damaged(f"pcapng version {major}.{minor} is not known", position)
            return
        self._section += 1
        self.contexts.append((self._position + position, room + _SHORTEST_BLOCK))
        self._first_interface = len(self.interfaces)
        self._walk_clocks = ()

    def _interface(
        self, chunk: bytes, position: int, end: int, found: list[Packet | Anomaly]
    ) -> None:
        """One that cannot be read takes its number all the same, or all later ones would shift."""
        self.contexts.append((self._position + position, end + 4 - position))
        link_type, snaplen, name, resolution, seconds = 0, 0, "", 6, 0
        if end - position - 8 < 8:
            self._unusable("an interface description without its fields", position, found)
            link_type = 0xFFFF
        else:
            link_type, _reserved, snaplen = self._layouts.interface(chunk, position + 8)
            for code, value in self._options(chunk, position + 16, end):
                if code == _OPTION_NAME:
                    name = value.split(b"\0")[0].decode("utf-8", "replace")
                elif code == _OPTION_RESOLUTION and len(value) == 1:
                    resolution = value[0]
                elif code == _OPTION_TIME_OFFSET and len(value) == 8:
                    (seconds,) = self._layouts.int64(value)
        self.interfaces.append(Interface(link_type, snaplen, name, self._section))
        clock = _clock(resolution, seconds)
        self._clocks.append(clock)
        if len(self._walk_clocks) < _MOST_WALKED:
            self._walk_clocks += ((link_type, *clock),)

    def _options(self, chunk: bytes, position: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Up to the end mark, or the first that does not fit."""
        while position + 4 <= end:
            code, length = self._layouts.option(chunk, position)
            position += 4
            if code == 0 or position + length > end:
                return
            yield code, chunk[position : position + length]
            position += (length + 3) & ~3

    def _decryption_secrets(
        self, chunk: bytes, position: int, room: int, found: list[Packet | Anomaly]
    ) -> None:
        kind, length = self._layouts.two_words(chunk, position + 8) if room >= 8 else (0, room)
        if length > room - 8:
            return self._unusable("a secrets block longer than itself", position, found)
        self._secrets_size += length
        if self._secrets_size > _LARGEST_SECRETS:
            return self._unusable("more secrets than are kept", position, found)
        data = chunk[position + 16 : position + 16 + length]
        self.secrets.append(Secrets(kind, data, self._position + position))


def _clock(resolution: int, offset_seconds: int) -> _Clock:
    """``if_tsresol``: the upper bit chooses powers of 2 over powers of 10."""
    exponent = resolution & 0x7F
    units = 2**exponent if resolution & 0x80 else 10**exponent
    offset = offset_seconds * 1_000_000_000
    if 1_000_000_000 % units == 0:
        return _Clock(1_000_000_000 // units, 1, offset)
    return _Clock(1_000_000_000, units, offset)
