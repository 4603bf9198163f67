"""The tables' columns as Arrow types, and rows and pieces as Arrow tables. Needs pyarrow, and has
no access to files. ``pyarrow.compute``, which takes as long to import as half of pyarrow, is
imported on use: ``frames`` alone does not need it."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from kproto.arrow import Column
from wiredump.native import quick
from wiredump.rows.pieces import Chosen, Piece, Whole
from wiredump.rows.schema import SCHEMA_VERSION, TABLES, TypeName

__all__ = [
    "CODES_OF_TYPES", "arrow_schema", "file_schema", "of_columns", "of_file", "of_piece", "of_rows",
    "ordered", "to_table",
]  # fmt: skip

_TYPES: Final[dict[TypeName, pa.DataType]] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "strings": pa.list_(pa.string()),
    "int32s": pa.list_(pa.int32()),
}


_NANOSECONDS: Final = pa.timestamp("ns", tz="UTC")


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the schema of a table, with its documentation and version as metadata."""
    table = TABLES[name]
    fields = [
        pa.field(column.name, _TYPES[column.type], metadata={"doc": column.doc})
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"doc": table.doc, "wiredump.schema": str(SCHEMA_VERSION)})


@cache
def file_schema(name: str) -> pa.Schema:
    """Return the schema of a table's files, which have a timestamp for each time, too. Its
    nanoseconds are written as microseconds (``writer.encodings``)."""
    schema = arrow_schema(name)
    for at, source in TABLES[name].timestamps.items():
        doc = f"{source} as a timestamp in UTC, in microseconds"
        schema = schema.append(pa.field(at, _NANOSECONDS, metadata={"doc": doc}))
    return schema


def of_file(name: str, rows: pa.Table) -> pa.Table:
    """Return rows of a table as its files have them. Nothing is copied."""
    for at, source in TABLES[name].timestamps.items():
        chunks = [chunk.view(_NANOSECONDS) for chunk in rows.column(source).chunks]
        field = file_schema(name).field(at)
        rows = rows.append_column(field, pa.chunked_array(chunks, _NANOSECONDS))
    return rows


def to_table(name: str, rows: Sequence[tuple[Any, ...] | Piece]) -> pa.Table:
    """Return the rows of one table, sorted by its key columns."""
    schema = arrow_schema(name)
    pieces = [of_piece(schema, each) for each in rows if isinstance(each, Piece)]
    alone = of_rows(schema, [each for each in rows if not isinstance(each, Piece)])
    return ordered(name, pa.concat_tables([*pieces, alone]))


def of_rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return the rows of one table in the given order."""
    module = quick()
    if module is not None and rows:
        codes = b"".join(CODES_OF_TYPES[field.type] for field in schema)
        held = module.HeldRows(codes, len(rows) + 1, sys.maxsize)
        for row in rows:
            held.add(row)
        return of_columns(schema, len(rows), held.take(()))
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    make = _few if len(rows) <= _FEW else _array
    arrays = [make(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def of_columns(schema: pa.Schema, length: int, columns: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows that the extension's ``HeldRows.take`` returned."""
    arrays = [
        _of_buffers(field.type, length, column)
        for field, column in zip(schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _of_buffers(type_: pa.DataType, length: int, column: tuple[Any, ...]) -> pa.Array:
    nulls, validity, first, second = column
    buffers = [None if each is None else pa.py_buffer(each) for each in (validity, first)]
    if pa.types.is_list(type_):
        offsets = memoryview(first).cast("i")
        items = [_of_buffers(type_.value_type, offsets[length], second)]
        return pa.Array.from_buffers(type_, length, buffers, null_count=nulls, children=items)
    if second is not None:
        buffers.append(pa.py_buffer(second))
    return pa.Array.from_buffers(type_, length, buffers, null_count=nulls)


def of_piece(schema: pa.Schema, piece: Piece, first: int = 0, stop: int | None = None) -> pa.Table:
    """Return a piece, or its rows from ``first`` to ``stop``, as an Arrow table that takes over the
    buffers of the piece's own columns."""
    stop = piece.number if stop is None else stop
    runs, counts = piece.runs(first, stop)
    ends = _ends(counts)
    arrays = [
        _owned(piece.own[field.name], field.type).slice(first, stop - first)
        if field.name in piece.own
        else _repeated(_shared(piece.shared[field.name][runs], field.type), ends, stop - first)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _shared(values: list[Any] | Whole | Chosen, type_: pa.DataType) -> pa.Array:
    """Return a column of values that whole runs share, by how they are stored."""
    if isinstance(values, Chosen):
        return _few(values.values, type_).take(_whole(values.places))
    if isinstance(values, Whole):
        try:
            return _whole(values).cast(type_)
        except pa.ArrowInvalid:
            return _array(values.tolist(), type_)
    return _few(values, type_)


def _whole(values: Whole) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(bytes(values))])


CODES_OF_TYPES: Final = {
    pa.bool_(): b"?", pa.int16(): b"h", pa.int32(): b"i", pa.int64(): b"q", pa.string(): b"u",
    pa.binary(): b"z", pa.list_(pa.string()): b"U", pa.list_(pa.int32()): b"I",
}  # fmt: skip
"""Codes of the types for the extension's ``HeldRows``."""

_FEW: Final = 4096
"""For so few rows it is not worth importing pandas."""


def _few(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Do the same as ``_array`` without pandas, which ``pa.array`` imports if it is installed; that
    takes longer than many a capture."""
    from kproto.records.sink import bits, numbers

    held: list[Any]
    buffers: list[bytes]
    try:
        if type_ in (pa.string(), pa.binary()):
            encode = str.encode if type_ == pa.string() else bytes
            held = [b"" if value is None else encode(value) for value in values]
            buffers = [numbers("i", [0, *accumulate(map(len, held))]), b"".join(held)]
        else:
            held = [0 if value is None else value for value in values]
            buffers = [numbers(_CODES[type_], held)]
    except (KeyError, TypeError, UnicodeEncodeError, struct.error):
        return _array(values, type_)
    nulls = values.count(None)
    validity = pa.py_buffer(bits(bytes(value is not None for value in values))) if nulls else None
    made = [validity, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(type_, len(values), made, null_count=nulls)


_CODES: Final = {pa.int16(): "h", pa.int32(): "i", pa.int64(): "q"}


def _owned(column: Column, type_: pa.DataType) -> pa.Array:
    buffers = [None if raw is None else pa.py_buffer(raw) for raw in column.buffers]
    return pa.Array.from_buffers(type_, column.length, buffers, null_count=column.null_count)


def _ends(counts: list[int]) -> pa.Array:
    """Return the row behind each run."""
    from kproto.records.sink import numbers

    data = numbers("i", list(accumulate(counts)))
    return pa.Array.from_buffers(pa.int32(), len(counts), [None, pa.py_buffer(data)])


def _repeated(values: pa.Array, ends: pa.Array, rows: int) -> pa.Array:
    """Return, for each row, the value of its run. ``RunEndEncodedArray.from_arrays`` would import
    pandas."""
    import pyarrow.compute as pc

    type_ = pa.run_end_encoded(pa.int32(), values.type)
    return pc.run_end_decode(pa.Array.from_buffers(type_, rows, [None], children=[ends, values]))


def ordered(name: str, rows: pa.Table) -> pa.Table:
    """Return the rows sorted by the key columns. The sort is stable for rows with equal keys, which
    only damaged captures have."""
    import pyarrow.compute as pc

    keys = [(column, "ascending") for column in TABLES[name].order]
    return rows.take(pc.sort_indices(rows, keys))


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        return pa.array([_fitting(value, type_) for value in values], type_)


def _fitting(value: Any, type_: pa.DataType) -> Any:
    """Return a value that the column's type can hold: the nearest number if a damaged capture has
    one out of range, and valid Unicode for a text that is not (a path)."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, int) and pa.types.is_signed_integer(type_):
        greatest = 2 ** (type_.bit_width - 1) - 1
        return min(max(value, -greatest - 1), greatest)
    return value
