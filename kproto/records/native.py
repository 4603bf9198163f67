"""The interface to the C extension's codec of records, if the extension is in use.

The codec reads and writes valid records and returns None for all others. The Python code of this
package then reads or writes them again and raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Protocol

from kproto import extension
from kproto.records.model import Record

__all__ = ["RecordCodec", "RecordSink", "record_codec"]


class RecordCodec(Protocol):
    """Reads and writes the records of batches of magic 2, and reads those of wrappers of magic 0
    and 1."""

    def read(
        self,
        data: bytes,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        appended: int | None,
        /,
    ) -> list[Record] | None:
        """Read the ``count`` records that fill ``data[at:end]``."""

    def survey(
        self,
        data: bytes,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        appended: int | None,
        /,
    ) -> tuple[int, int, bool] | None:
        """The least and the largest timestamp of these records, and whether their offsets are
        consecutive. None if ``read`` would return None, or if there is no record."""

    def read_messages(
        self,
        data: bytes,
        at: int,
        end: int,
        magic: int,
        last_offset: int,
        crc32: Callable[[bytes], int] | None,
        appended: int | None,
        /,
    ) -> list[Record] | None:
        """Read the messages that fill ``data[at:end]``, in a wrapper of ``last_offset``."""

    def write(
        self, records: Sequence[Record], base_offset: int, base_timestamp: int, /
    ) -> tuple[bytes, int, int] | None:
        """Return the records' bytes, the last offset, and the largest timestamp."""

    def sink(self, requested: int, limit: int, /) -> RecordSink:
        """``requested`` is a ``kproto.records.sink.RecordColumn``."""


class RecordSink(Protocol):
    """Columns that collect records (``kproto.records.sink``). Methods that add records raise
    OverflowError at the limit and then add no row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def add(
        self,
        data: bytes,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        appended: int | None,
        /,
    ) -> bool:
        """Add the records in ``data[at:end]``, with the arguments of ``RecordCodec.read``. Returns
        False, and adds no row, if ``read`` would return None."""

    def add_plain(
        self, data: bytes, at: int, end: int, unpack: Callable[[int, bytes], bytes | None] | None, /
    ) -> tuple[int, list[int]]:
        """Add the leading batches of ``data[at:end]`` as long as they are plain.

        A plain batch is whole, of magic 2, and valid except perhaps for its checksum, which is not
        checked. If it is compressed, ``unpack(codec number, compressed bytes)`` must return its
        content. Control batches add no rows; their content is not read.

        Returns the end of the last such batch and the number of rows of each. At the limit this
        method stops instead of raising, so the batch that follows may be plain too. If ``unpack``
        raises, the exception propagates and no rows are added.
        """

    def put(self, records: list[Record], /) -> bool:
        """Add records. Returns False, and adds no row, if one is not as readers make them."""

    def mark(self) -> None: ...

    def take_back(self) -> None:
        """Remove the rows added since ``mark``."""

    def finish(self) -> tuple[Any, ...]:
        """Return the fields of ``kproto.records.sink.ColumnBuffers``, and start over."""


def record_codec() -> RecordCodec | None:
    """Return the codec of the C extension, or None if the extension is not in use."""
    module = extension.in_use
    return None if module is None else _made(module)


@cache
def _made(module: ModuleType) -> RecordCodec | None:
    """Return None also if the objects of this interpreter or of msgspec have another layout than C
    expects."""
    try:
        codec: RecordCodec = module.RecordCodec(Record)
    except (ValueError, AttributeError):
        return None
    return codec
