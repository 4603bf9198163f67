"""The bytes of one log: batches one after another in blocks, found by offset.

A batch lies whole in one block, so reading is slicing. Large batches have a block of their own,
which is the bytes of the request: only the header is copied, since it is written over. The others
share blocks of 4 KiB to 1 MiB, each about a sixteenth of the log. A block that is left with room is
cut to what it holds. So a stored byte costs little more than itself, and a batch 16 bytes of index.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from mockbroker.simulation.log.batches.batch_header import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    read_header,
)

__all__ = ["BatchStorage", "StoredBatch"]

_LEAST_BLOCK: Final = 4096
_LARGEST_BLOCK: Final = 1 << 20
_OWN_BLOCK: Final = 1 << 16
"""Batches of at least this size have a block of their own."""
_SPARE_SHARE: Final = 16
"""A full block has at most this share of its room left."""
_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_LEADER_EPOCH_AT: Final = 12
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
_RECORD_COUNT: Final = struct.Struct(">i")
_RECORD_COUNT_AT: Final = 57
_NEVER: Final = -(2**63)


class StoredBatch(NamedTuple):
    """One batch: its header, and its bytes as long as the log is not truncated."""

    header: BatchHeader
    data: memoryview


class _Block:
    """``start`` is the position of its first byte, counted over all blocks of the log. ``headers``
    is where the headers of its batches stand: ``data``, unless that is bytes, of one batch, whose
    beginning does not count then. No batch in its first ``scanned`` bytes has a larger timestamp
    than ``newest``."""

    __slots__ = ("data", "headers", "newest", "scanned", "start", "used")

    def __init__(self, start: int, data: bytes | bytearray) -> None:
        self.start = start
        self.data = data
        self.headers = data if isinstance(data, bytearray) else bytearray(data[:HEADER_SIZE])
        self.used = 0
        self.forget_timestamps()

    def slices(self, first: int, last: int) -> list[memoryview]:
        """The bytes from ``first`` up to and without ``last``."""
        if self.headers is self.data:
            return [memoryview(self.data)[first:last]]
        header = memoryview(self.headers)[first:last]
        rest = memoryview(self.data)[max(first, HEADER_SIZE) : last]
        return [each for each in (header, rest) if each]

    def copy(self) -> bytearray:
        """Replace the bytes by a copy without other references, and return it."""
        copied = bytearray().join(self.slices(0, len(self.data)))
        self.data = self.headers = copied
        return copied

    def close(self) -> None:
        """Release the room that is left, if it is much."""
        if (len(self.data) - self.used) * _SPARE_SHARE > len(self.data):
            self._keep(self.used)

    def cut(self, used: int) -> None:
        """Release what is behind these bytes. Slices that show it keep the bytes they had."""
        if used < self.used:
            self._keep(used)
            self.used = used
        self.forget_timestamps()

    def _keep(self, size: int) -> None:
        self.data = self.headers = self.copy()[:size]

    def forget_timestamps(self) -> None:
        self.newest, self.scanned = _NEVER, 0


class BatchStorage:
    """Batches in the order of their offsets.

    Positions count bytes from the first batch that was ever stored, so they only grow until the
    end is truncated.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._starts: list[int] = []
        self._base_offsets = array("q")
        self._positions = array("q")
        self._end = 0

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._base_offsets)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self._end - self._positions[0] if self._positions else 0

    @property
    def end(self) -> int:
        """The position of the next batch."""
        return self._end

    @property
    def allocated(self) -> int:
        """Bytes of all blocks, and of the index."""
        return sum(
            len(block.data) + (0 if block.headers is block.data else HEADER_SIZE)
            for block in self._blocks
        ) + 16 * len(self)

    def append(self, batch: Buffer, base_offset: int, leader_epoch: int) -> int:
        """Store a batch under this offset and epoch, which are written over those that it has, and
        return its position. The checksum of magic 2 covers neither."""
        size, position = len(batch), self._end
        block = self._blocks[-1] if self._blocks else None
        if block is not None and block.used + size <= len(block.data):
            at = block.used
            block.headers[at : at + size] = batch  # a block with room is a bytearray
        else:
            block, at = self._add_block(batch), 0
        _BASE_OFFSET.pack_into(block.headers, at, base_offset)
        _LEADER_EPOCH.pack_into(block.headers, at + _LEADER_EPOCH_AT, leader_epoch)
        block.used = at + size
        self._base_offsets.append(base_offset)
        self._positions.append(position)
        self._end = position + size
        return position

    def _add_block(self, batch: Buffer) -> _Block:
        """Add a block that begins with this batch."""
        size = len(batch)
        data: bytes | bytearray
        if size >= _OWN_BLOCK:
            data = bytes(batch)
        else:
            usual = min(max(self.size // _SPARE_SHARE, _LEAST_BLOCK), _LARGEST_BLOCK)
            data = bytearray(max(usual, size))
            data[:size] = batch
        if self._blocks:
            self._blocks[-1].close()
        block = _Block(self._end, data)
        self._blocks.append(block)
        self._starts.append(block.start)
        return block

    # ---- finding batches ---------------------------------------------------------------------

    def index_of(self, offset: int) -> int:
        """The index of the first batch that ends at or behind ``offset``; ``len`` if none does."""
        index = bisect_right(self._base_offsets, offset) - 1
        if index < 0:
            return 0
        return index if self.header(index).last_offset >= offset else index + 1

    def index_at(self, position: int) -> int:
        """The index of the first batch at or behind this position."""
        return bisect_left(self._positions, position)

    def base_offset(self, index: int) -> int:
        """The offset of the first record of a batch."""
        return self._base_offsets[index]

    def position(self, index: int) -> int:
        """The position of a batch; of the end, if ``index`` is the number of batches."""
        return self._positions[index] if index < len(self._positions) else self._end

    def header(self, index: int) -> BatchHeader:
        block, at = self._locate(index)
        return read_header(block.headers, at)

    def batch(self, index: int) -> StoredBatch:
        block, at = self._locate(index)
        slices = block.slices(at, at + self._size_of(index))
        data = slices[0] if len(slices) == 1 else memoryview(b"".join(slices))
        return StoredBatch(read_header(block.headers, at), data)

    def headers(self) -> Iterator[BatchHeader]:
        """Yield the headers of all batches."""
        return map(self.header, range(len(self)))

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[StoredBatch]:
        """Yield the batches from index ``first`` on, up to and without ``last``."""
        for index in range(first, len(self) if last is None else min(last, len(self))):
            yield self.batch(index)

    def _size_of(self, index: int) -> int:
        return self.position(index + 1) - self._positions[index]

    def _locate(self, index: int) -> tuple[_Block, int]:
        position = self._positions[index]
        block = self._blocks[bisect_right(self._starts, position) - 1]
        return block, position - block.start

    def read(self, first: int, last: int) -> list[memoryview]:
        """Return the bytes of the batches from index ``first`` up to and without ``last``, a slice
        or two for each block. They never change: a block is copied before its bytes change."""
        return self.read_bytes(first, self.position(last) - self.position(first))

    def read_bytes(self, first: int, count: int) -> list[memoryview]:
        """Return ``count`` bytes from the batch at index ``first`` on, a slice for each block; the
        last batch may be cut."""
        position = self.position(first)
        end = min(position + count, self._end)
        slices: list[memoryview] = []
        number = bisect_right(self._starts, position) - 1
        while position < end:
            block = self._blocks[number]
            stop = min(end, block.start + block.used)
            slices += block.slices(position - block.start, stop - block.start)
            position = stop
            number += 1
        return slices

    # ---- finding batches by time -------------------------------------------------------------

    def indexes_since(self, timestamp: int, first: int) -> Iterator[int]:
        """Yield the batches from index ``first`` on whose largest timestamp is at least this."""
        for block, start, stop in self._by_block(first, len(self)):
            if self._newest(block) >= timestamp:
                for index in range(start, stop):
                    if self._max_timestamp(block, index) >= timestamp:
                        yield index

    def newest_index(self, first: int, last: int) -> int | None:
        """Return the first batch of those with the largest timestamp, from index ``first`` up to
        and without ``last``; None if none of them has a record."""
        found, newest = None, _NEVER - 1
        for block, start, stop in self._by_block(first, last):
            if self._newest(block) > newest:
                for index in range(start, stop):
                    timestamp = self._max_timestamp(block, index)
                    if timestamp > newest and self._has_records(block, index):
                        found, newest = index, timestamp
        return found

    def _by_block(self, first: int, last: int) -> Iterator[tuple[_Block, int, int]]:
        """Yield each block with the range of those indexes whose batches lie in it."""
        while first < last:
            block, _ = self._locate(first)
            stop = min(self.index_at(block.start + block.used), last)
            yield block, first, stop
            first = stop

    def _newest(self, block: _Block) -> int:
        """The largest timestamp in a block. Batches are looked at once, when someone asks."""
        if block.scanned < block.used:
            first, last = block.start + block.scanned, block.start + block.used
            for index in range(self.index_at(first), self.index_at(last)):
                block.newest = max(block.newest, self._max_timestamp(block, index))
            block.scanned = block.used
        return block.newest

    def _max_timestamp(self, block: _Block, index: int) -> int:
        at = self._positions[index] - block.start + _MAX_TIMESTAMP_AT
        timestamp: int = _MAX_TIMESTAMP.unpack_from(block.headers, at)[0]
        return timestamp

    def _has_records(self, block: _Block, index: int) -> bool:
        at = self._positions[index] - block.start + _RECORD_COUNT_AT
        count: int = _RECORD_COUNT.unpack_from(block.headers, at)[0]
        return count > 0

    # ---- changes -----------------------------------------------------------------------------

    def write(self, index: int, at: int, data: Buffer) -> None:
        """Write over bytes of a stored batch, from its byte ``at`` on; its size stays."""
        if at < 0 or at + len(data) > self._size_of(index):
            raise ValueError(f"{len(data)} bytes at {at} do not lie in the batch")
        block, start = self._locate(index)
        block.copy()[start + at : start + at + len(data)] = data
        block.forget_timestamps()

    def truncate(self, index: int) -> None:
        """Remove the batches from this index on."""
        if index >= len(self):
            return
        end = self._positions[index]
        del self._base_offsets[index:], self._positions[index:]
        self._end = end
        while self._blocks and self._blocks[-1].start >= end:
            self._blocks.pop()
            self._starts.pop()
        if self._blocks:
            self._blocks[-1].cut(end - self._blocks[-1].start)

    def drop(self, count: int) -> int:
        """Remove the first ``count`` batches and return their bytes. Memory is released a block at
        a time."""
        before = self.size
        del self._base_offsets[:count], self._positions[:count]
        start = self.position(0)
        kept = bisect_right(self._starts, start) - 1 if len(self) else len(self._blocks)
        if kept > 0:
            del self._blocks[:kept], self._starts[:kept]
        return before - self.size

    def replace(self, batches: Iterable[Buffer]) -> None:
        """Store these batches in place of all others. Base offsets and epochs are those of their
        bytes."""
        kept = [(read_header(data), bytes(data)) for data in batches]
        self._blocks, self._starts = [], []
        self._base_offsets, self._positions = array("q"), array("q")
        self._end = 0
        for header, data in kept:
            self.append(data, header.base_offset, header.leader_epoch)
