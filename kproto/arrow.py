"""Columns in Arrow's layout, and their conversions.

See https://arrow.apache.org/docs/format/Columnar.html. This module knows neither messages nor
records. Only ``to_arrow`` needs pyarrow, and imports it when called.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from kproto.errors import BodyError, MissingExtraError, UnknownNameError

__all__ = ["Column", "Export", "Table"]

_CASTS: Final = {
    "c": "b", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "g": "d",
}  # fmt: skip
"""Format string of Arrow's C data interface -> that of ``memoryview.cast``."""

Export = Callable[[tuple[Any, ...]], tuple[object, object]]
"""Converts columns, as returned by ``Column.exported``, to the capsules of Arrow's PyCapsule
interface."""


class Column(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One column, or the elements of a column of lists (its ``child``) or of structs (its
    ``fields``).

    ``format`` is that of Arrow's C data interface. ``validity`` has one bit per row, the lowest of
    a byte first, 0 for null; None if no row is null. ``offsets`` are int32, one more than there are
    rows, for text ("u"), bytes ("z") and lists ("+l"), else None. ``data`` is None for lists and
    structs; for bools it has one bit per row. Numbers are in this machine's byte order.
    """

    name: str
    format: str
    nullable: bool = False
    length: int
    null_count: int = 0
    validity: bytes | None = None
    offsets: bytes | None = None
    data: bytes | None = None
    child: Column | None = None
    fields: tuple[Column, ...] = ()

    def __len__(self) -> int:
        return self.length

    @property
    def buffers(self) -> tuple[bytes | None, ...]:
        """The buffers in Arrow's order: validity, offsets if the type has them, data if the type
        has it."""
        made: tuple[bytes | None, ...] = (self.validity,)
        if self.offsets is not None:
            made += (self.offsets,)
        return made if self.data is None else (*made, self.data)

    @property
    def children(self) -> tuple[Column, ...]:
        """The columns below this one in Arrow's type."""
        return self.fields if self.child is None else (self.child,)

    def exported(self) -> tuple[Any, ...]:
        """Return the form that ``kproto/native/arrow.c`` expects."""
        counts = self.length, self.null_count
        below = tuple(child.exported() for child in self.children)
        return self.name, self.format, self.nullable, *counts, self.buffers, below

    def to_list(self) -> list[Any]:
        """Return the values as decoding returns them: str, bytes, UUID, int, float, bool, list,
        None, and structs as tuples."""
        values = self._values()
        if self.validity is None:
            return values
        return [v if ok else None for v, ok in zip(values, _bits(self.validity), strict=False)]

    def _values(self) -> list[Any]:
        if self.fields:
            return list(zip(*(field.to_list() for field in self.fields), strict=True))
        data = self.data or b""
        if self.offsets is not None:
            ends = memoryview(self.offsets).cast("i").tolist()
            items: Any = data if self.child is None else self.child.to_list()
            found = [items[start:end] for start, end in pairwise(ends)]
            return [raw.decode() for raw in found] if self.format == "u" else found
        if self.format == "b":
            return [bool(bit) for bit, _ in zip(_bits(data), range(self.length), strict=False)]
        if self.format == "w:16":
            return [uuid.UUID(bytes=data[at : at + 16]) for at in range(0, len(data), 16)]
        return memoryview(data).cast(_CASTS[self.format]).tolist()  # type: ignore[call-overload, no-any-return]  # one of few


def _bits(data: bytes) -> Iterator[int]:
    return (byte >> bit & 1 for byte in data for bit in range(8))


class Table(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Columns of equal length.

    ``index`` is the origin of each row: int32, and the first column of ``to_arrow`` and
    ``to_pydict``. ``errors`` holds the bad inputs that ``errors="collect"`` left out.
    """

    rows: int
    index: Column
    columns: tuple[Column, ...]
    errors: tuple[BodyError, ...] = ()
    export: Export | None = None
    """The native engine's function that makes the capsules. Without it pyarrow makes them."""

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in (self.index, *self.columns):
            if column.name == name:
                return column
        known = ", ".join(column.name for column in (self.index, *self.columns))
        raise UnknownNameError(f"no column {name!r}; the columns are {known}")

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return lists of Python values by column name, ``index`` first."""
        return {column.name: column.to_list() for column in (self.index, *self.columns)}

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Arrow's PyCapsule interface: ``pyarrow.record_batch(table)`` and other libraries use
        these buffers without copying. ``requested_schema`` is ignored, as the interface allows.
        With the native engine this does not need pyarrow."""
        if self.export is None:
            made: tuple[object, object] = self.to_arrow().__arrow_c_array__(requested_schema)
            return made
        children = tuple(column.exported() for column in (self.index, *self.columns))
        return self.export(("", "+s", False, self.rows, 0, (None,), children))

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.RecordBatch`` over these buffers, without copying. Raises
        MissingExtraError if pyarrow is not installed."""
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError:
            raise MissingExtraError("to_arrow needs pyarrow", extra="wiredump") from None
        columns = (self.index, *self.columns)
        fields = [_field(pyarrow, column) for column in columns]
        arrays = [
            _array(pyarrow, column, field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))


def _field(pyarrow: Any, column: Column) -> Any:
    return pyarrow.field(column.name, _type(pyarrow, column), nullable=column.nullable)


def _type(pyarrow: Any, column: Column) -> Any:
    if column.child is not None:
        return pyarrow.list_(_field(pyarrow, column.child))
    if column.fields:
        return pyarrow.struct([_field(pyarrow, field) for field in column.fields])
    if column.format == "w:16":
        return pyarrow.binary(16)
    return {
        "b": pyarrow.bool_, "c": pyarrow.int8, "s": pyarrow.int16, "S": pyarrow.uint16,
        "i": pyarrow.int32, "I": pyarrow.uint32, "l": pyarrow.int64, "g": pyarrow.float64,
        "u": pyarrow.string, "z": pyarrow.binary,
    }[column.format]()  # fmt: skip


def _array(pyarrow: Any, column: Column, type_: Any) -> Any:
    buffers = [None if raw is None else pyarrow.py_buffer(raw) for raw in column.buffers]
    children = [
        _array(pyarrow, below, type_.value_type if column.child else type_.field(at).type)
        for at, below in enumerate(column.children)
    ]
    return pyarrow.Array.from_buffers(
        type_, column.length, buffers, null_count=column.null_count, children=children or None
    )
