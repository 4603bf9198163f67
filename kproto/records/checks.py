"""Explain why records cannot be written. Called only after a writer has failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kproto.errors import EncodeError
from kproto.records.model import Record

__all__ = ["explain"]

INT32: Final = 1 << 31
INT64: Final = 1 << 63


def explain(records: Sequence[Any], base_offset: int | None, *, magic: int) -> None:
    """Raise EncodeError for the first invalid record, with a path such as ``records[3].timestamp``.
    Returns if all records are valid."""
    last_offset = None
    for index, record in enumerate(records):
        path = f"records[{index}]"
        if not isinstance(record, Record):
            raise EncodeError(f"{type(record).__name__} is not a Record", path=path)
        if base_offset is None:
            base_offset = max(record.offset, 0)
        if last_offset is None:
            last_offset = base_offset - 1
        _int64(record.timestamp, f"{path}.timestamp")
        if record.timestamp < -1:
            raise EncodeError(
                f"{record.timestamp} is negative, and only -1 means none", path=f"{path}.timestamp"
            )
        last_offset = _offset(record, last_offset, base_offset, path, magic)
        _bytes(record.key, f"{path}.key")
        _bytes(record.value, f"{path}.value")
        _headers(record, path, magic)


def _offset(record: Record, last_offset: int, base_offset: int, path: str, magic: int) -> int:
    path = f"{path}.offset"
    _int64(record.offset, path)
    offset = last_offset + 1 if record.offset == -1 else record.offset
    if offset <= last_offset:
        raise EncodeError(f"{offset} does not follow {last_offset}", path=path)
    _int64(offset, path)
    if magic == 2 and offset - base_offset >= INT32:
        raise EncodeError(f"{offset} is too far from the base offset {base_offset}", path=path)
    return offset


def _headers(record: Record, path: str, magic: int) -> None:
    if magic < 2 and record.headers:
        raise EncodeError("headers require magic 2", path=f"{path}.headers")
    for index, (key, value) in enumerate(record.headers):
        where = f"{path}.headers[{index}]"
        if not isinstance(key, str):
            raise EncodeError(f"{type(key).__name__} is not a str", path=f"{where}.key")
        try:
            key.encode()
        except UnicodeEncodeError as error:
            raise EncodeError(
                f"cannot be encoded as UTF-8: {error.reason}", path=f"{where}.key"
            ) from None
        _bytes(value, f"{where}.value")


def _int64(value: Any, path: str) -> None:
    if type(value) is not int or not -INT64 <= value < INT64:
        raise EncodeError(f"{value!r} is not an int64", path=path)


def _bytes(value: Any, path: str) -> None:
    if value is not None and not isinstance(value, bytes):
        raise EncodeError(f"{type(value).__name__} is neither bytes nor None", path=path)
    if value is not None and len(value) >= INT32:
        raise EncodeError(f"{len(value)} bytes exceed an int32", path=path)
