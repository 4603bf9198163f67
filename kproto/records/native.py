"""The part that the C extension has in records, where it is in use; see ``kproto.extension``.

It reads and writes what is as it should be, and says None to all else: the Python of this package
then reads or writes it again, and raises what is to be raised.
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
    """Reads and writes the records of batches of magic 2, and reads those in wrappers before."""

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
        """The ``count`` records that fill ``data[at:end]``."""

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
        """The messages that fill ``data[at:end]``, in a wrapper of ``last_offset``."""

    def write(
        self, records: Sequence[Record], base_offset: int, base_timestamp: int, /
    ) -> tuple[bytes, int, int] | None:
        """Their bytes, the last offset, and the largest timestamp."""

    def sink(self, wanted: int, limit: int, /) -> RecordSink:
        """``wanted`` is a ``kproto.records.sink.Wanted``."""


class RecordSink(Protocol):
    """Columns that records are put into (``kproto.records.sink``). Both ways raise OverflowError at
    the limit, and leave no row then."""

    def __len__(self) -> int:
        """Rows there are."""

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
        """The records that ``data[at:end]`` is, as ``RecordCodec.read`` takes them. False, and no
        row, where it does not."""

    def add_plain(
        self,
        data: bytes,
        at: int,
        end: int,
        unpack: Callable[[int, bytes], bytes | None] | None,
        /,
    ) -> tuple[int, list[int]]:
        """Batches that ``data[at:end]`` begins with, as far as they are plain: whole, of magic 2,
        and nothing wrong but perhaps the checksum, which is not looked at; not compressed, or so
        that ``unpack`` has bytes for the codec's number and what it packed. Markers are no rows:
        control batches are not looked into. Returns where they end, and how many rows each of them
        has. What follows may be plain, too, where there is no room for it: the limit raises nothing
        here. Raises what ``unpack`` does, and has no rows then."""

    def put(self, records: list[Record], /) -> bool:
        """False, and no row, where one is not as readers make them."""

    def mark(self) -> None: ...

    def take_back(self) -> None:
        """No row that was added since ``mark``."""

    def finish(self) -> tuple[Any, ...]:
        """The fields of ``kproto.records.sink.Made``; and it begins again."""


def record_codec() -> RecordCodec | None:
    """None where everything is Python's to do."""
    module = extension.in_use
    return None if module is None else _made(module)


@cache
def _made(module: ModuleType) -> RecordCodec | None:
    """None, too, where this interpreter's or msgspec's objects are not what C knows them to be."""
    try:
        codec: RecordCodec = module.RecordCodec(Record)
    except (ValueError, AttributeError):
        return None
    return codec
