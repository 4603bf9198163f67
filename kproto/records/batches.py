"""Split a field of type ``records``, of a produce request or fetch response, into its batches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kproto.records.batch import Batch
from kproto.records.message_set import ENTRY_HEADER, LEAST_MESSAGE, MessageBatch
from kproto.records.model import MAX_DECOMPRESSED
from kproto.records.record_batch import RecordBatch
from kproto.records.window import Window

__all__ = ["Incomplete", "RecordBatches"]

UP_TO_MAGIC: Final = 17
"""The bytes that all formats share: offset, size, four more bytes, and the magic."""
_SIZE: Final = struct.Struct(">i")


class Incomplete(NamedTuple):
    """A truncated batch at the end of the data."""

    offset: int
    """The offset of its first byte in the buffer."""
    available: int
    """The number of its bytes in the buffer."""
    size: int | None
    """Its whole size, or None if the size itself is truncated."""


class RecordBatches:
    """The batches of ``data``, each read when iteration reaches it.

    ``data`` is the value of a message's field of type ``records``; None has no batches. Batches of
    different magic may follow one another.

    ``check_crc``: a wrong checksum is an error. ``allow_partial``: brokers truncate the last batch
    of a fetch response at its size limit; iteration then ends before that batch, and ``incomplete``
    describes it. Without it a truncated batch is an error. ``max_decompressed`` bounds the size of
    one batch's decompressed records, in bytes.

    Iteration raises DecodeError with the ``offset`` in ``data`` and a ``path`` such as
    ``batches[0].records[3].key``, after it has yielded the batches before.
    """

    def __init__(
        self,
        data: bytes | bytearray | memoryview | None,
        *,
        check_crc: bool = True,
        allow_partial: bool = False,
        max_decompressed: int = MAX_DECOMPRESSED,
    ) -> None:
        self._data = data if type(data) is bytes else bytes(data or b"")
        self._check_crc = check_crc
        self._allow_partial = allow_partial
        self._limit = max_decompressed

    def __iter__(self) -> Iterator[Batch]:
        data = self._data
        at = index = 0
        while at < len(data):
            window = Window(data, at, len(data), f"batches[{index}]")
            end = _end(window)
            if end is None or end > len(data):
                if self._allow_partial:
                    return
                left = len(data) - at
                needed = UP_TO_MAGIC if end is None else end - at
                raise window.error(f"batch is cut off: bytes needed: {needed}, left: {left}", at)
            kind = RecordBatch if data[at + 16] == 2 else MessageBatch
            yield kind(window._replace(end=end), self._check_crc, self._limit)
            at = end
            index += 1

    @property
    def incomplete(self) -> Incomplete | None:
        """The truncated batch at the end, if there is one. Only sizes are read.

        Raises DecodeError for an invalid size.
        """
        data = self._data
        at = index = 0
        while at < len(data):
            end = _end(Window(data, at, len(data), f"batches[{index}]"))
            if end is None or end > len(data):
                size = None if len(data) - at < ENTRY_HEADER else _size_at(data, at)
                return Incomplete(at, len(data) - at, size)
            at = end
            index += 1
        return None


def _size_at(data: bytes, at: int) -> int:
    """Return the size of the batch at ``at``, the fields before its content included."""
    size: int = _SIZE.unpack_from(data, at + 8)[0]
    return ENTRY_HEADER + size


def _end(window: Window) -> int | None:
    """Return the end of the batch at the window's start, which may exceed the data; None if there
    are too few bytes."""
    data, at, end, _, _ = window
    if end - at < ENTRY_HEADER:
        return None
    size = _size_at(data, at) - ENTRY_HEADER
    if size < LEAST_MESSAGE:
        raise window.error(
            f"size {size} is below the minimum of any batch, {LEAST_MESSAGE}",
            at + 8,
            "batch_length",
        )
    if end - at < UP_TO_MAGIC:
        return None
    magic = data[at + 16]
    if magic > 2:
        raise window.error(f"magic {magic} is not 0, 1 or 2", at + 16, "magic")
    return at + ENTRY_HEADER + size
