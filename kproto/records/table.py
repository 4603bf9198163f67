"""Columns of records: buffers in Arrow's columnar format, and the ways out of them.

Nothing here knows what a batch is. pyarrow is imported when ``to_arrow`` asks for it, and not
needed for anything else.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from kproto.errors import BodyError, MissingExtraError, UnknownNameError

__all__ = ["Column", "RecordColumns"]

_CASTS: Final = {"c": "b", "s": "h", "i": "i", "l": "q"}
"""Format string of Arrow's C data interface -> that of ``memoryview.cast``."""


class Column(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One column, or what the elements of a column of lists (its ``child``) or of structs (its
    ``fields``) are made of.

    ``format`` is that of Arrow's C data interface. ``validity`` has a bit a row, the lowest of a
    byte first, 0 for null; None where no row is null. ``offsets`` are int32, one more than there
    are rows, of text ("u"), bytes ("z") and lists ("+l"), else None. ``data`` is None of lists and
    structs; of bools it has a bit a row. Numbers are in this machine's byte order.
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
        """As Arrow orders them: validity, offsets if its type has them, data if its type has it."""
        made: tuple[bytes | None, ...] = (self.validity,)
        if self.offsets is not None:
            made += (self.offsets,)
        return made if self.data is None else (*made, self.data)

    def to_list(self) -> list[Any]:
        """The values: int, bool, bytes, str, None, and lists of tuples."""
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
        return memoryview(data).cast(_CASTS[self.format]).tolist()  # type: ignore[call-overload, no-any-return]  # one of few


def _bits(data: bytes) -> Iterator[int]:
    return (byte >> bit & 1 for byte in data for bit in range(8))


class RecordColumns(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What ``read_columns`` gives: columns of equal length, a row a record.

    ``input`` says of each row which input it came from, and is the first column of what
    ``to_arrow`` and ``to_pydict`` give. ``errors`` are the bad inputs that ``errors="collect"``
    left out.
    """

    rows: int
    input: Column
    columns: tuple[Column, ...]
    errors: tuple[BodyError, ...] = ()

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in (self.input, *self.columns):
            if column.name == name:
                return column
        known = ", ".join(column.name for column in (self.input, *self.columns))
        raise UnknownNameError(f"no column {name!r}; there are {known}")

    def to_pydict(self) -> dict[str, list[Any]]:
        """Lists of Python values by column name, ``input`` first."""
        return {column.name: column.to_list() for column in (self.input, *self.columns)}

    def to_arrow(self) -> Any:
        """A ``pyarrow.RecordBatch`` over these very buffers: none is copied. Raises
        MissingExtraError where pyarrow is not installed."""
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError:
            raise MissingExtraError("to_arrow needs pyarrow", extra="arrow") from None
        columns = (self.input, *self.columns)
        fields = [_field(pyarrow, column) for column in columns]
        arrays = [
            _array(pyarrow, column, field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))


def _field(pyarrow: Any, column: Column) -> Any:
    if column.child is not None:
        kind = pyarrow.list_(_field(pyarrow, column.child))
    elif column.fields:
        kind = pyarrow.struct([_field(pyarrow, field) for field in column.fields])
    else:
        kind = {
            "b": pyarrow.bool_, "c": pyarrow.int8, "s": pyarrow.int16, "i": pyarrow.int32,
            "l": pyarrow.int64, "u": pyarrow.string, "z": pyarrow.binary,
        }[column.format]()  # fmt: skip
    return pyarrow.field(column.name, kind, nullable=column.nullable)


def _array(pyarrow: Any, column: Column, kind: Any) -> Any:
    buffers = [None if raw is None else pyarrow.py_buffer(raw) for raw in column.buffers]
    children = None
    if column.child is not None:
        children = [_array(pyarrow, column.child, kind.value_type)]
    elif column.fields:
        children = [
            _array(pyarrow, field, kind.field(at).type) for at, field in enumerate(column.fields)
        ]
    return pyarrow.Array.from_buffers(
        kind, column.length, buffers, null_count=column.null_count, children=children
    )
