"""Columns as they were read: buffers in Arrow's layout, and the ways out of them.

https://arrow.apache.org/docs/format/Columnar.html. Nothing here knows what a message is. pyarrow is
imported when ``to_arrow`` asks for it, and not needed for anything else.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from kproto.errors import BodyError, MissingExtraError, UnknownNameError

__all__ = ["Column", "Columns"]

_CASTS: Final = {
    "c": "b", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "g": "d",
}  # fmt: skip
"""Format string of Arrow's C data interface -> that of ``memoryview.cast``."""


Export = Callable[[tuple[Any, ...]], tuple[object, object]]


class Column(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One column, or the elements of a column of lists (its ``child``).

    ``format`` is that of Arrow's C data interface. ``validity`` has a bit a row, the lowest of a
    byte first, 0 for null; None where no row is null. ``offsets`` are int32, one more than there
    are rows, of strings ("u"), bytes ("z") and lists ("+l"), else None. ``data`` is None of a list;
    of bools it has a bit a row. Numbers are in this machine's byte order.
    """

    name: str
    format: str
    nullable: bool
    length: int
    null_count: int = 0
    validity: bytes | None = None
    offsets: bytes | None = None
    data: bytes | None = None
    child: Column | None = None

    def __len__(self) -> int:
        return self.length

    @property
    def buffers(self) -> tuple[bytes | None, ...]:
        """As Arrow orders them: validity, offsets if its type has them, data if its type has it."""
        made: tuple[bytes | None, ...] = (self.validity,)
        if self.offsets is not None:
            made += (self.offsets,)
        return made if self.data is None else (*made, self.data)

    def exported(self) -> tuple[Any, ...]:
        """As ``kproto/native/arrow.c`` takes it."""
        children = () if self.child is None else (self.child.exported(),)
        counts = self.length, self.null_count
        return self.name, self.format, self.nullable, *counts, self.buffers, children

    def to_list(self) -> list[Any]:
        """The values as decoding gives them: str, bytes, UUID, int, float, bool, list, None."""
        values = self._values()
        if self.validity is None:
            return values
        return [v if ok else None for v, ok in zip(values, _bits(self.validity), strict=False)]

    def _values(self) -> list[Any]:
        if self.offsets is not None:
            ends = memoryview(self.offsets).cast("i").tolist()
            spans = pairwise(ends)
            if self.child is not None:
                items = self.child.to_list()
                return [items[start:end] for start, end in spans]
            data = self.data or b""
            found = [data[start:end] for start, end in spans]
            return [raw.decode() for raw in found] if self.format == "u" else found
        data = self.data or b""
        if self.format == "b":
            return [bool(bit) for bit, _ in zip(_bits(data), range(self.length), strict=False)]
        if self.format == "w:16":
            return [uuid.UUID(bytes=data[at : at + 16]) for at in range(0, len(data), 16)]
        return memoryview(data).cast(_CASTS[self.format]).tolist()  # type: ignore[call-overload, no-any-return]  # one of few


def _bits(data: bytes) -> Iterator[int]:
    return (byte >> bit & 1 for byte in data for bit in range(8))


class Columns(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What ``Selection.read`` gives: columns of equal length.

    ``frame`` says of each row which body it came from: int32, in this machine's byte order, and the
    first column of what ``to_arrow`` and ``to_pydict`` give. ``errors`` are the bad bodies that
    ``errors="collect"`` left out.
    """

    rows: int
    frame: Column
    columns: tuple[Column, ...]
    errors: tuple[BodyError, ...] = ()
    export: Export | None = None
    """Of the native engine: makes the capsules. Without it pyarrow does."""

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in (*self.columns, self.frame):
            if column.name == name:
                return column
        known = ", ".join(column.name for column in (*self.columns, self.frame))
        raise UnknownNameError(f"no column {name!r}; there are {known}")

    def to_pydict(self) -> dict[str, list[Any]]:
        """Lists of Python values by column name, ``frame`` first."""
        return {column.name: column.to_list() for column in (self.frame, *self.columns)}

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Arrow's PyCapsule interface: ``pyarrow.record_batch(columns)`` and other libraries take
        these very buffers. ``requested_schema`` is not looked at, as the interface allows. The
        native engine needs no pyarrow for it."""
        if self.export is None:
            made: tuple[object, object] = self.to_arrow().__arrow_c_array__(requested_schema)
            return made
        children = tuple(column.exported() for column in (self.frame, *self.columns))
        return self.export(("", "+s", False, self.rows, 0, (None,), children))

    def to_arrow(self) -> Any:
        """A ``pyarrow.RecordBatch`` over these very buffers: none is copied. ``frame`` is its first
        column. Raises MissingExtraError where pyarrow is not installed."""
        pyarrow = _pyarrow()
        columns = (self.frame, *self.columns)
        fields = [pyarrow.field(c.name, _type(pyarrow, c), nullable=c.nullable) for c in columns]
        arrays = [
            _array(pyarrow, column, field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingExtraError("to_arrow needs pyarrow", extra="arrow") from None


def _type(pyarrow: Any, column: Column) -> Any:
    if column.child is not None:
        child = column.child
        return pyarrow.list_(pyarrow.field(child.name, _type(pyarrow, child), nullable=False))
    if column.format == "w:16":
        return pyarrow.binary(16)
    return {
        "b": pyarrow.bool_, "c": pyarrow.int8, "s": pyarrow.int16, "S": pyarrow.uint16,
        "i": pyarrow.int32, "I": pyarrow.uint32, "l": pyarrow.int64, "g": pyarrow.float64,
        "u": pyarrow.string, "z": pyarrow.binary,
    }[column.format]()  # fmt: skip


def _array(pyarrow: Any, column: Column, type_: Any) -> Any:
    buffers = [None if raw is None else pyarrow.py_buffer(raw) for raw in column.buffers]
    children = None
    if column.child is not None:
        children = [_array(pyarrow, column.child, type_.value_type)]
    return pyarrow.Array.from_buffers(
        type_, column.length, buffers, null_count=column.null_count, children=children
    )
