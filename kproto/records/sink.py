"""Collect the records of many batches in the buffers of columns, in Arrow's layout.

``PureSink`` makes them from objects, byte for byte as ``kproto/native/records_columns.c`` does, if
that is not in use. It is as fast as a loop over records. This module does not validate batches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntFlag
from hashlib import blake2b
from itertools import accumulate
from typing import Final, NamedTuple

from kproto.records.model import Record
from kproto.records.native import RecordSink, record_codec

__all__ = [
    "Blobs",
    "ColumnBuffers",
    "PureSink",
    "RecordColumn",
    "Sizes",
    "bits",
    "make_sink",
    "numbers",
    "value_hash",
]


class RecordColumn(IntFlag):
    """The columns of records. C uses the same numbers."""

    OFFSET = 1
    TIMESTAMP = 2
    KEY = 4
    VALUE = 8
    HEADER_COUNT = 16
    HEADERS = 32
    VALUE_SIZE = 64
    VALUE_HASH = 128


class Blobs(NamedTuple):
    """The buffers of values, bytes or text. ``validity`` is None if there are no nulls."""

    number: int
    nulls: int
    validity: bytes | None
    offsets: bytes
    data: bytes


class Sizes(NamedTuple):
    """The buffers of sizes in bytes, which are -1 where ``validity`` has a null."""

    nulls: int
    validity: bytes | None
    data: bytes


class ColumnBuffers(NamedTuple):
    """The buffers of all columns, None for columns that were not selected. ``headers`` holds the
    offsets of the lists, their keys and their values."""

    rows: int
    offset: bytes | None
    timestamp: bytes | None
    key: Blobs | None
    value: Blobs | None
    header_count: bytes | None
    headers: tuple[bytes, Blobs, Blobs] | None
    value_size: Sizes | None
    value_hash: Blobs | None


def value_hash(value: bytes | None) -> bytes | None:
    """Return BLAKE2b of a record's value with a digest of 16 bytes, the same on every machine and
    in every release. None for null."""
    return None if value is None else blake2b(value, digest_size=HASH_BYTES).digest()


HASH_BYTES: Final = 16


def make_sink(requested: RecordColumn, limit: int) -> RecordSink:
    """Return a sink for the selected columns. ``limit`` is the largest size of one buffer in
    bytes."""
    codec = record_codec()
    return PureSink(requested, limit) if codec is None else codec.sink(requested, limit)


def bits(flags: bytes) -> bytes:
    """Pack bytes of 0 or 1 into a bitmap, lowest bit first."""
    digits = flags[::-1].translate(_DIGITS)
    return int(digits or b"0", 2).to_bytes((len(flags) + 7) // 8, "little")


_DIGITS: Final = bytes.maketrans(b"\x00\x01", b"01")
WIDEST: Final = 8
"""The size of the widest number in a row, in bytes."""


class PureSink:
    """Keeps the records and makes the buffers at the end."""

    def __init__(self, requested: RecordColumn, limit: int) -> None:
        self._wanted = requested
        self._limit = limit
        self._records: list[Record] = []
        self._sizes = _NO_SIZES
        self._marked = 0, _NO_SIZES

    def __len__(self) -> int:
        return len(self._records)

    def add(self, *_section: object) -> bool:
        """Always False: only the native engine reads records without making objects."""
        return False

    def add_plain(self, _data: bytes, at: int, *_rest: object) -> tuple[int, list[int]]:
        """Add nothing, for the same reason."""
        return at, []

    def put(self, records: list[Record], /) -> bool:
        sizes = _Sizes(*map(sum, zip(self._sizes, self._sizes_of(records), strict=True)))
        too_many = sizes.rows > self._limit // WIDEST or sizes.headers >= self._limit // 4
        if too_many or max(sizes[2:]) > self._limit:
            raise OverflowError(f"a column would take more than {self._limit} bytes")
        self._records += records
        self._sizes = sizes
        return True

    def _sizes_of(self, records: list[Record]) -> _Sizes:
        requested = self._wanted
        found = _NO_SIZES._replace(rows=len(records))
        if requested & RecordColumn.KEY:
            found = found._replace(keys=sum(len(r.key or b"") for r in records))
        if requested & RecordColumn.VALUE:
            found = found._replace(values=sum(len(r.value or b"") for r in records))
        if requested & RecordColumn.VALUE_HASH:
            hashed = len(records) - [r.value for r in records].count(None)
            found = found._replace(hashes=hashed * HASH_BYTES)
        if requested & RecordColumn.HEADERS:
            headers = [header for record in records for header in record.headers]
            found = found._replace(
                headers=len(headers),
                header_keys=sum(len(key.encode()) for key, _ in headers),
                header_values=sum(len(value or b"") for _, value in headers),
            )
        return found

    def mark(self) -> None:
        self._marked = len(self._records), self._sizes

    def take_back(self) -> None:
        count, self._sizes = self._marked
        del self._records[count:]

    def finish(self) -> ColumnBuffers:
        records, requested = self._records, self._wanted
        self._records, self._sizes, self._marked = [], _NO_SIZES, (0, _NO_SIZES)
        offset = timestamp = key = value = header_count = headers = size = digest = None
        if requested & RecordColumn.OFFSET:
            offset = numbers("q", [r.offset for r in records])
        if requested & RecordColumn.TIMESTAMP:
            timestamp = numbers("q", [r.timestamp for r in records])
        if requested & RecordColumn.KEY:
            key = _blobs([r.key for r in records])
        if requested & RecordColumn.VALUE:
            value = _blobs([r.value for r in records])
        if requested & RecordColumn.HEADER_COUNT:
            header_count = numbers("i", [len(r.headers) for r in records])
        if requested & RecordColumn.HEADERS:
            pairs = [header for record in records for header in record.headers]
            headers = (
                _offsets([len(r.headers) for r in records]),
                _blobs([name.encode() for name, _ in pairs]),
                _blobs([given for _, given in pairs]),
            )
        if requested & RecordColumn.VALUE_SIZE:
            size = _sizes([r.value for r in records])
        if requested & RecordColumn.VALUE_HASH:
            digest = _blobs([value_hash(r.value) for r in records])
        return ColumnBuffers(
            len(records), offset, timestamp, key, value, header_count, headers, size, digest
        )


class _Sizes(NamedTuple):
    """The number of rows and headers, and of bytes in each column."""

    rows: int
    headers: int
    keys: int
    values: int
    header_keys: int
    header_values: int
    hashes: int


_NO_SIZES: Final = _Sizes(0, 0, 0, 0, 0, 0, 0)


def numbers(code: str, values: Sequence[int]) -> bytes:
    """Pack numbers in this machine's byte order. ``code`` is that of ``struct``."""
    return struct.pack(f"={len(values)}{code}", *values)


def _offsets(sizes: Iterable[int]) -> bytes:
    return numbers("i", list(accumulate(sizes, initial=0)))


def _validity(values: Sequence[bytes | None]) -> tuple[int, bytes | None]:
    """Return the number of nulls and the bitmap of the other values."""
    nulls = values.count(None)
    return nulls, bits(bytes(value is not None for value in values)) if nulls else None


def _sizes(values: Sequence[bytes | None]) -> Sizes:
    return Sizes(
        *_validity(values), numbers("i", [-1 if value is None else len(value) for value in values])
    )


def _blobs(values: Sequence[bytes | None]) -> Blobs:
    nulls, validity = _validity(values)
    held = [value or b"" for value in values]
    return Blobs(len(values), nulls, validity, _offsets(map(len, held)), b"".join(held))
