"""The storage of a source: one batch, repeated under ever higher offsets, in the memory of one.

The base offset of a batch is outside its checksum, so that each repetition shares all other bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from mockbroker.simulation.log.batches.batch_header import (
    BatchHeader,
    Buffer,
    read_header,
    with_header,
)
from mockbroker.simulation.log.batches.batch_storage import BatchStorage, StoredBatch

__all__ = ["REPETITIONS", "RepeatedBatch"]

REPETITIONS: Final = 1 << 40
"""How often the batch is there. At 10 million batches a second they last 30 hours."""

_BASE_OFFSET: Final = struct.Struct(">q")


class RepeatedBatch(BatchStorage):
    """``batch`` has ``step`` offsets. What is appended is dropped."""

    def __init__(self, batch: Buffer, header: BatchHeader, leader_epoch: int) -> None:
        super().__init__()
        self._header = header._replace(base_offset=0, leader_epoch=leader_epoch)
        self._set(with_header(batch, self._header))
        self._bytes = len(batch)
        self.step = header.last_offset_delta + 1
        self._first = 0
        self._count = REPETITIONS

    def _set(self, batch: bytes) -> None:
        self._rest = memoryview(batch)[_BASE_OFFSET.size :]

    def __len__(self) -> int:
        return self._count - self._first

    @property
    def size(self) -> int:
        """It is not counted, since it does not grow."""
        return 0

    @property
    def end(self) -> int:
        return self.position(len(self))

    @property
    def allocated(self) -> int:
        return self._bytes

    def append(self, batch: Buffer, base_offset: int, leader_epoch: int) -> int:
        return self.position(len(self))

    # ---- finding batches ---------------------------------------------------------------------

    def index_of(self, offset: int) -> int:
        return min(max(offset // self.step - self._first, 0), len(self))

    def index_at(self, position: int) -> int:
        return min(-(-position // self._bytes), len(self))

    def base_offset(self, index: int) -> int:
        return (self._first + index) * self.step

    def position(self, index: int) -> int:
        return min(index, len(self)) * self._bytes

    def header(self, index: int) -> BatchHeader:
        return self._header._replace(base_offset=self.base_offset(index))

    def batch(self, index: int) -> StoredBatch:
        data = b"".join(self.read(index, index + 1))
        return StoredBatch(read_header(data), memoryview(data))

    def headers(self) -> Iterator[BatchHeader]:
        """Yield that of one repetition, as ``batches`` does."""
        return (each.header for each in self.batches())

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[StoredBatch]:
        """Yield one repetition only: no reader gets to the end of them."""
        if first < len(self) and (last is None or first < last):
            yield self.batch(first)

    def read(self, first: int, last: int) -> list[memoryview]:
        return [
            part
            for index in range(first, min(last, len(self)))
            for part in (memoryview(_BASE_OFFSET.pack(self.base_offset(index))), self._rest)
        ]

    def read_bytes(self, first: int, count: int) -> list[memoryview]:
        whole, cut = divmod(count, self._bytes)
        found = self.read(first, first + whole)
        if cut and first + whole < len(self):
            found.append(memoryview(b"".join(self.read(first + whole, first + whole + 1)))[:cut])
        return found

    def indexes_since(self, timestamp: int, first: int) -> Iterator[int]:
        if first < len(self) and self._header.max_timestamp >= timestamp:
            yield first

    def newest_index(self, first: int, last: int) -> int | None:
        return first if first < last else None

    # ---- changes -----------------------------------------------------------------------------

    def write(self, index: int, at: int, data: Buffer) -> None:
        """Write over bytes of every repetition."""
        changed = bytearray(b"".join(self.read(index, index + 1)))
        changed[at : at + len(data)] = data
        self._set(bytes(changed))

    def truncate(self, index: int) -> None:
        self._count = min(self._count, self._first + index)

    def drop(self, count: int) -> int:
        self._first += min(count, len(self))
        return 0

    def replace(self, batches: Iterable[Buffer]) -> None:
        """Compaction leaves a source as it is."""
