"""Make columns from decoded messages, in Python, byte for byte as ``kproto/native/columns.c`` does.

It serves machines without the native engine and messages that the engine does not support. Bodies
are decoded in the usual way, so this is as fast as a loop over decoded messages.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kproto.codec.registry import Decoder
from kproto.codegen.plan import FORMATS
from kproto.columns.layout import Field, Layout, Level
from kproto.errors import DecodeError
from kproto.schema.model import FIXED_SIZES, Kind

__all__ = ["PureSelection"]

Buffers = tuple[int, bytes | None, bytes | None, bytes | None, Any]
"""Nulls, validity, offsets, data, elements. Elements are (count, offsets, data)."""
ReadResult = tuple[int, bytes, tuple[Buffers, ...], list[tuple[int, bytes]], int]
"""Rows, body of each row, columns, bad bodies, and the index of the body beyond the limit or -1."""


class PureSelection:
    """A selection that reads with ``decode``, a message's decoder."""

    export = None

    def __init__(self, layout: Layout, decode: Decoder) -> None:
        self._layout = layout
        self._decode = decode

    def read(self, bodies: tuple[Any, ...], limit: int, collect: bool, /) -> ReadResult:
        columns = [_Values(field) for field in self._layout.fields]
        frame: list[int] = []
        failed: list[tuple[int, bytes]] = []
        full_at = -1
        for index, body in enumerate(bodies):
            data = body if type(body) is bytes else _copy(body)
            message = self._message(data)
            if message is None:
                failed.append((index, data))
                if not collect:
                    break
                continue
            marks = [len(column.rows) for column in columns]
            rows = _read(self._layout.levels, 0, message, columns)
            if 4 * (len(frame) + rows) > limit or any(c.largest() > limit for c in columns):
                for column, mark in zip(columns, marks, strict=True):
                    del column.rows[mark:]
                full_at = index
                break
            frame += [index] * rows
        made = tuple(column.finish() for column in columns)
        return len(frame), struct.pack(f"={len(frame)}i", *frame), made, failed, full_at

    def _message(self, data: bytes) -> Any:
        try:
            message, end = self._decode(data, 0)
        except DecodeError:
            return None
        return message if end == len(data) else None


def _copy(body: Any) -> bytes:
    view = memoryview(body)
    if not view.c_contiguous:
        raise BufferError("a body must be contiguous")
    return view.tobytes()


def _read(levels: Sequence[Level], depth: int, value: Any, columns: list[_Values]) -> int:
    """Append the rows of one element of a level to the columns. Returns the number of rows."""
    level, rows = levels[depth], 1
    if level.line:
        rows = 0
        for element in _follow(value, level.line) or ():
            rows += _read(levels, depth + 1, element, columns)
    for leaf in level.leaves:
        columns[leaf.column].put(_follow(value, leaf.fields), rows)
    return rows


def _follow(value: Any, fields: Sequence[Any]) -> Any:
    for item in fields:
        if value is None:
            return None
        value = getattr(value, item.name)
    return value


class _Values:
    """The values of one column so far. Strings and uuids are stored as bytes."""

    def __init__(self, field: Field) -> None:
        self.kind, self.element = field.kind, field.element
        self.rows: list[Any] = []
        self.bytes = self.elements = self.element_bytes = 0

    def put(self, value: Any, rows: int) -> None:
        if self.element is not None and value is not None:
            value = [_raw(self.element, item) for item in value]
            self.elements += rows * len(value)
            self.element_bytes += rows * _size(self.element, value)
        elif value is not None:
            value = _raw(self.kind, value)
        if self.element is None:
            self.bytes += rows * _size(self.kind, [value])
        self.rows += [value] * rows

    def largest(self) -> int:
        """The size of the largest buffer, or the number of values if that is larger."""
        count = len(self.rows)
        if self.element is None:
            return max(_data_size(self.kind, self.bytes, count), _offsets_size(self.kind, count))
        return max(
            4 * (count + 1),
            self.elements,
            _data_size(self.element, self.element_bytes, self.elements),
            _offsets_size(self.element, self.elements),
        )

    def finish(self) -> Buffers:
        nulls = sum(value is None for value in self.rows)
        validity = _bits([value is not None for value in self.rows]) if nulls else None
        if self.element is None:
            return (nulls, validity, *_buffers(self.kind, self.rows), None)
        lists: list[list[Any]] = [value or [] for value in self.rows]
        elements = [item for value in lists for item in value]
        made = len(elements), *_buffers(self.element, elements)
        return nulls, validity, _offsets(map(len, lists)), None, made


def _raw(kind: Kind, value: Any) -> Any:
    if kind == "string":
        return value.encode()
    return value.bytes if kind == "uuid" else value


def _size(kind: Kind, values: list[Any]) -> int:
    """Return the number of bytes of a value without fixed width."""
    return 0 if kind in FIXED_SIZES else sum(len(value) for value in values if value is not None)


def _data_size(kind: Kind, size: int, count: int) -> int:
    if kind == "bool":
        return (count + 7) // 8
    return count * FIXED_SIZES[kind] if kind in FIXED_SIZES else size


def _offsets_size(kind: Kind, count: int) -> int:
    return 0 if kind in FIXED_SIZES else 4 * (count + 1)


def _buffers(kind: Kind, rows: list[Any]) -> tuple[bytes | None, bytes]:
    """Return offsets, if the type has them, and data."""
    if kind == "bool":
        return None, _bits([bool(value) for value in rows])
    if kind == "uuid":
        return None, b"".join(value or bytes(16) for value in rows)
    if kind in FORMATS:
        numbers = [0 if value is None else value for value in rows]
        return None, struct.pack(f"={len(rows)}{FORMATS[kind]}", *numbers)
    blobs: list[bytes] = [value or b"" for value in rows]
    return _offsets(map(len, blobs)), b"".join(blobs)


def _offsets(sizes: Any) -> bytes:
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return struct.pack(f"={len(offsets)}i", *offsets)


def _bits(values: list[bool]) -> bytes:
    """Pack flags into a bitmap, lowest bit first."""
    made = bytearray((len(values) + 7) // 8)
    for at, value in enumerate(values):
        made[at // 8] |= value << at % 8
    return bytes(made)
