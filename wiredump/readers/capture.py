"""Captures out of files and pipes: the only file of the readers that opens anything.

It never seeks and never waits for more: where a file ends for now, ``poll`` returns, and goes on
from the same record when called again. Formats are ``container``'s business.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO, Final

from wiredump.readers.container import ContainerReader, Walks
from wiredump.readers.model import Anomaly, Interface, Packet, Secrets

__all__ = ["READ_SIZE", "Capture"]

READ_SIZE: Final = 1 << 20


class Capture:
    """A capture to iterate over: every packet in the file's order, and anomalies where they are.

    ``source`` is a path, ``-`` for standard input, or a file open for reading bytes (which need
    not seek, and is not closed here). ``number`` is what ``Packet.capture`` and every event carry.
    With ``walks`` some packets come in bulk, as whatever those make of them.

    Opening raises OSError as ``open`` does, reading as ``read`` does; what the file holds never
    raises, except MissingExtraError where it is zstd and the library is absent.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        *,
        number: int = 0,
        read_size: int = READ_SIZE,
        walks: Walks | None = None,
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
        self._file = file
        # A pipe gives what it has; `read` of a buffered file would wait until it is full.
        self._read = getattr(file, "read1", file.read)
        self._read_size = read_size
        self._reader = ContainerReader(number, walks)
        self._packets: Iterator[Packet | Anomaly] = iter(())

    @property
    def format(self) -> str:
        """``pcap``, ``pcapng``, or empty until the first bytes were read."""
        return self._reader.format

    @property
    def compression(self) -> str:
        """``gzip``, ``zstd``, ``xz``, ``bzip2``, ``lz4`` or empty."""
        return self._reader.compression

    @property
    def interfaces(self) -> list[Interface]:
        """Those described so far; ``Packet.interface`` counts into them."""
        return self._reader.interfaces

    @property
    def secrets(self) -> list[Secrets]:
        """Decryption secrets seen so far."""
        return self._reader.secrets

    @property
    def stopped(self) -> bool:
        """Nothing more will come: finished, or damaged."""
        return self._reader.stopped

    def poll(self) -> Iterator[Packet | Anomaly]:
        """Every packet that is complete in what can be read now; to be called again for more.

        An iteration that is left early goes on with the next call: no packet is lost.
        """
        # Not `yield from`: leaving this generator would end the one inside, and lose its packets.
        for packet in self._packets:
            yield packet
        while not self._reader.stopped:
            data = self._read(self._read_size)
            if not data:  # the end for now, or (None) nothing yet on a non-blocking file
                return
            self.bytes_read += len(data)
            self._packets = self._reader.feed(data)
            for packet in self._packets:
                yield packet

    def finish(self) -> Iterator[Packet | Anomaly]:
        """An anomaly if the file ended in the midst of a record. Call it when no more will come."""
        yield from self._reader.finish()

    def __iter__(self) -> Iterator[Packet | Anomaly]:
        """Everything to the end of the file, then ``finish`` and ``close``."""
        yield from self.poll()
        yield from self.finish()
        self.close()

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owned:
            self._file.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
