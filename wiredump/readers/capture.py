"""Read captures from files and pipes. Only this module of the readers opens anything.

It does not wait for more data: at the current end of a file ``poll`` returns, and continues at the
same record when called again. It seeks only to learn the size of a file that cannot be read on.
``container`` knows the formats.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

import msgspec

from wiredump.readers.container import ContainerReader, Walks
from wiredump.readers.model import Anomaly, Interface, Packet, Secrets

__all__ = ["READ_SIZE", "Capture"]

READ_SIZE: Final = 1 << 20


class Capture:
    """A capture to iterate over: every packet in the order of the file, with anomalies in their
    places.

    ``source`` is a path, ``-`` for standard input, or a binary file, which need not be seekable and
    is not closed here. ``number`` is the ``capture`` of packets and events. With ``walks``, some
    packets come in bulk, in the form that those return. ``max_decompressed`` limits the
    decompressed bytes of a compressed one, if not by default (``compressed``); ``decompressed`` is
    called with them.

    Opening raises OSError as ``open`` does, and reading as ``read`` does. The file's contents never
    raise, except for MissingExtraError if it is compressed and the library is not installed.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        *,
        number: int = 0,
        read_size: int = READ_SIZE,
        walks: Walks | None = None,
        max_decompressed: int | None = None,
        decompressed: Callable[[bytes], object] | None = None,
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            self.name = "standard input" if source == "-" else os.fspath(source)
            self._owned = source != "-"
            file: Any = open(source, "rb", buffering=0) if self._owned else sys.stdin.buffer  # noqa: SIM115 (closed by close)
        else:
            self.name = str(getattr(source, "name", "capture"))
            self._owned = False
            file = source
        self.number = number
        self.bytes_read = 0
        self.lost = 0
        """The bytes of these that belong to no record, if the file is not compressed, or that could
        not be decompressed."""
        self._file = file
        # A pipe returns what it has; `read` of a buffered file would wait until its buffer is full.
        self._read = getattr(file, "read1", file.read)
        self._read_size = read_size
        self._reader = ContainerReader(number, walks, max_decompressed, decompressed)
        self._packets: Iterator[Packet | Anomaly] = iter(())

    @property
    def format(self) -> str:
        """``pcap``, ``pcapng``, or empty before the first bytes were read."""
        return self._reader.format

    @property
    def compression(self) -> str:
        """``gzip``, ``zstd``, ``xz``, ``bzip2``, ``lz4`` or empty."""
        return self._reader.compression

    @property
    def interfaces(self) -> list[Interface]:
        """The interfaces described so far; ``Packet.interface`` is an index."""
        return self._reader.interfaces

    @property
    def secrets(self) -> list[Secrets]:
        """The decryption secrets read so far."""
        return self._reader.secrets

    @property
    def stopped(self) -> bool:
        """Whether nothing more will come: the file is finished, or damaged."""
        return self._reader.stopped

    def poll(self) -> Iterator[Packet | Anomaly]:
        """Yield every packet that is complete in what can be read now; call again for more. If the
        iteration is abandoned, the next call continues it: no packet is lost."""
        # Not `yield from`: abandoning this generator would end the inner one, and lose its packets.
        for packet in self._packets:
            yield packet
        while not self._reader.stopped:
            data = self._read(self._read_size)
            if not data:  # the current end or, for None, no data yet on a non-blocking file
                return
            self.bytes_read += len(data)
            self._packets = self._counted(self._reader.feed(data))
            for packet in self._packets:
                yield packet

    def finish(self) -> Iterator[Packet | Anomaly]:
        """Return what only the end of the file makes certain, and an anomaly if it ended in the
        middle of a record. Call it at the end."""
        yield from self._counted(self._reader.finish())

    def _counted(self, packets: Iterable[Packet | Anomaly]) -> Iterator[Packet | Anomaly]:
        """Count the lost bytes of anomalies; the last one of a file that cannot be read on has all
        that follow it."""
        for packet in packets:
            if isinstance(packet, Anomaly):
                unread = self._reader.unread
                if unread is not None:
                    self.bytes_read = max(self.bytes_read, self._size())
                    packet = msgspec.structs.replace(packet, lost=self.bytes_read - unread)
                if unread is not None or not self.compression:
                    self.lost += packet.lost
            yield packet

    def _size(self) -> int:
        """Return the size of the file; 0 if it has none."""
        try:
            return int(self._file.seek(0, os.SEEK_END))
        except (OSError, ValueError, AttributeError):
            return 0

    def __iter__(self) -> Iterator[Packet | Anomaly]:
        """Yield everything to the end of the file, then ``finish`` and ``close``."""
        yield from self.poll()
        yield from self.finish()
        self.close()

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owned:
            self._file.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()
