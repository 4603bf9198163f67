"""Turn the bytes of a capture into packets, whichever format it has. No files, no clock.

``ContainerReader`` recognises pcap and pcapng, compressed or not, by the first bytes. The formats
are in ``pcap`` and ``pcapng``, compression is in ``compressed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from wiredump.readers import pcap, pcapng
from wiredump.readers.compressed import CannotInflate, Inflater, LimitReached, inflater_for
from wiredump.readers.format_reader import FormatReader
from wiredump.readers.model import Anomaly, AnomalyKind, Interface, Packet, Secrets

__all__ = ["ContainerReader", "Walks"]

_MAGIC_LENGTH: Final = 4


_OTHERS: Final = {
    b"snoo": "a snoop file (RFC 1761): convert it, as `editcap -F pcap` does",
    b"PK\x03\x04": "a zip file: extract it first",
    b"\x02\x21\x4c\x18": "lz4 of the legacy format: decompress it first",
}
"""Other kinds of files that may be mistaken for a capture, by their first bytes."""


class Walks(NamedTuple):
    """Functions that walk through the records of either format in bulk (``PcapReader``,
    ``PcapngReader``)."""

    pcap: Any
    pcapng: Any


class ContainerReader:
    """Feed it a capture's bytes in pieces of any size, and take every packet that it yields.

    ``unread`` is the first byte of the file that is not read, once it cannot be read on.
    ``format`` is ``pcap``, ``pcapng``, or empty before it is known. Once ``stopped``, it reads no
    further; the last anomaly has the reason. ``max_decompressed`` limits what a compressed one may
    hold, if not by default (``compressed``). ``decompressed`` is called with the bytes of a
    compressed one.
    """

    def __init__(
        self, capture: int = 0, walks: Walks | None = None, max_decompressed: int | None = None,
        decompressed: Callable[[bytes], object] | None = None,
    ) -> None:  # fmt: skip
        self._decompressed = decompressed
        self.capture = capture
        self._max_decompressed = max_decompressed
        self._walks = walks if walks is not None else Walks(None, None)
        self.compression = ""
        self.format = ""
        self.stopped = False
        self.unread: int | None = None
        self._inflater: Inflater | None = None
        self._reader: FormatReader | None = None
        self._head = b""
        self._inflated_head = b""
        self._position = 0

    @property
    def interfaces(self) -> list[Interface]:
        return self._reader.interfaces if self._reader is not None else []

    @property
    def secrets(self) -> list[Secrets]:
        return self._reader.secrets if self._reader is not None else []

    def feed(self, data: bytes) -> Iterator[Packet | Anomaly]:
        """Yield every packet that is complete. Exhaust it before feeding more."""
        if self._inflater is None and self._reader is None:
            data = self._head = self._head + data
            if len(data) < _MAGIC_LENGTH:
                return
            self._inflater = inflater_for(data, self._max_decompressed)
            self._head = b""
        if self._inflater is None:
            yield from self._plain(data)
            return
        self.compression = self._inflater.name
        try:
            pieces = self._inflater.feed(data)
            while not self.stopped and (piece := next(pieces, None)) is not None:
                yield from self._plain(piece)
        except LimitReached as error:
            yield self._stop(str(error), "decompression-limit")
        except CannotInflate as error:
            yield self._stop(str(error))

    def finish(self) -> Iterator[Packet | Anomaly]:
        """End the capture; returns an anomaly if it ends in the middle of a record."""
        if self.stopped:
            return
        self.stopped = True
        if self._inflater is not None and self._inflater.unfinished:
            reason = f"{self.compression}: the file is truncated"
            yield Anomaly("truncated", reason, self.capture, self._position)
        if self._reader is not None:
            yield from self._reader.finish()
        elif self._inflater is None or not self._inflater.unfinished:
            head = self._head + self._inflated_head
            what = f"ends after {len(head)} bytes" if head else "is empty"
            yield Anomaly("truncated", f"the capture {what}", self.capture, 0, lost=len(head))

    def _plain(self, data: bytes) -> list[Packet | Anomaly]:
        if self.stopped:
            return []
        self._position += len(data)
        if self._decompressed is not None and self._inflater is not None:
            self._decompressed(data)
        if self._reader is None:
            data = self._inflated_head = self._inflated_head + data
            if len(data) < _MAGIC_LENGTH:
                return []
            self._inflated_head = b""
            if pcap.begins(data):
                self._reader = pcap.PcapReader(self.capture, self._walks.pcap)
                self.format = "pcap"
            elif pcapng.begins(data):
                self._reader = pcapng.PcapngReader(self.capture, self._walks.pcapng)
                self.format = "pcapng"
            else:
                head = data[:_MAGIC_LENGTH]
                description = _OTHERS.get(head, f"begins with {head.hex()}")
                return [self._stop(f"neither pcap nor pcapng: {description}", at=0)]
        packets = self._reader.feed(data)
        if self._reader.stopped:
            self._stop("")
        return packets

    def _stop(self, reason: str, kind: AnomalyKind = "damaged", at: int | None = None) -> Anomaly:
        self.stopped = True
        is_readable = self._reader is not None and bool(self._reader.interfaces)
        self.unread = self._inflater.taken if is_readable and self._inflater is not None else 0
        offset = self._position if at is None else at
        return Anomaly(kind, reason, self.capture, offset)
