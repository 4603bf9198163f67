"""Merge the rows of many pieces in the order of their table. ``wiredump.native`` sorts runs, not
rows: with only some rows in a run, sorting rows would be most of the work.

This works only for pieces with the columns of records, and only if the rows of each run are already
in order. Other pieces can be sorted as tables (``wiredump.tables.arrow``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kproto.arrow import Column
from wiredump.native import quick
from wiredump.rows.pieces import Chosen, Piece, Whole
from wiredump.tables.arrow import of_piece

__all__ = ["Part", "merged"]

_WIDTHS: Final = {pa.int32(): 4, pa.int64(): 8}
_FORMATS: Final = {"i": 4, "l": 8}


class Part(NamedTuple):
    """The rows of a piece from ``first`` to ``stop``."""

    piece: Piece
    first: int
    stop: int

    @property
    def num_rows(self) -> int:
        return self.stop - self.first

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return them as an Arrow table, in order."""
        return of_piece(schema, self.piece, self.first, self.stop)

    def size(self, names: Sequence[str]) -> int | None:
        """Return how much text, in characters, and how many bytes these columns have; None if only
        the Arrow table can tell."""
        size = 0
        counted: dict[int, list[int]] = {}
        for name in names:
            column = self.piece.own.get(name)
            if column is not None:
                ends = memoryview(column.offsets or b"").cast("i")
                size += ends[self.stop] - ends[self.first]
                continue
            values = self.piece.shared[name]
            if not isinstance(values, Chosen):
                return None
            rows = counted.get(id(values.places))
            if rows is None:
                rows = counted[id(values.places)] = self._rows_by_place(values)
            size += sum(
                len(value) * n for value, n in zip(values.values, rows, strict=True) if value
            )
        return size

    def _rows_by_place(self, values: Chosen) -> list[int]:
        found = [0] * len(values.values)
        runs, counts = self.piece.runs(self.first, self.stop)
        for place, count in zip(values.places[runs].tolist(), counts, strict=True):
            found[place] += count
        return found


def merged(schema: pa.Schema, order: Sequence[str], parts: Sequence[Part]) -> pa.Table | None:
    """Return the rows of all parts sorted by ``order``, or unsorted if that is empty. The sort is
    stable. Returns None for columns that the extension does not support."""
    module = quick()
    if module is None:
        return None
    pieces = [part.piece for part in parts]
    within, keys = order[-1:], _keys(order[:-1], pieces)
    if keys is None or any(
        _is_otherwise(piece.own.get(name)) for name in within for piece in pieces
    ):
        return None
    spans = module.order_runs(
        [
            (
                array("q", piece.counts), key,
                memoryview(piece.own[within[0]].data or b"").cast("q") if within else None,
                first, stop,
            )
            for (piece, first, stop), key in zip(parts, keys, strict=True)
        ]
    )  # fmt: skip
    if spans is None:
        return None
    try:
        arrays = [_array(spans, field, pieces) for field in schema]
    except (_OtherwiseError, OverflowError, UnicodeEncodeError):
        return None
    return pa.Table.from_arrays(arrays, schema=schema)


class _OtherwiseError(Exception):
    """A column has an unsupported form."""


def _is_otherwise(column: Column | None) -> bool:
    """Whether a column is anything but integers without nulls."""
    return column is None or column.format != "l" or column.validity is not None


def _keys(order: Sequence[str], pieces: Sequence[Piece]) -> list[tuple[Any, ...]] | None:
    """Return the integer columns by which each piece's runs are sorted."""
    found: list[list[Any]] = [[] for _ in pieces]
    for name in order:
        columns = [piece.shared.get(name) for piece in pieces]
        if all(isinstance(column, Whole) for column in columns):
            for keys, column in zip(found, columns, strict=True):
                keys.append(column)
            continue
        chosen = [column for column in columns if isinstance(column, Chosen)]
        if len(chosen) < len(columns):
            return None
        texts = {value for column in chosen for value in column.values if value is not None}
        ranks: dict[str | None, int] = {text: rank for rank, text in enumerate(sorted(texts))}
        ranks[None] = len(ranks)
        for keys, column in zip(found, chosen, strict=True):
            by_place = [ranks[value] for value in column.values]
            keys.append(array("q", map(by_place.__getitem__, column.places.tolist())))
    return [tuple(keys) for keys in found]


def _array(spans: Any, field: pa.Field, pieces: Sequence[Piece]) -> pa.Array:
    name, type_ = field.name, field.type
    own = [piece.own[name] for piece in pieces if name in piece.own]
    buffers: list[bytes | None]
    if own:
        nulls, *buffers = _owned(spans, type_, own, len(pieces))
    else:
        nulls, *buffers = _shared(spans, type_, [piece.shared[name] for piece in pieces])
    made = [None if raw is None else pa.py_buffer(raw) for raw in buffers]
    return pa.Array.from_buffers(type_, len(spans), made, null_count=nulls)


def _owned(spans: Any, type_: pa.DataType, own: list[Column], parts: int) -> tuple[Any, ...]:
    formats = {column.format for column in own}
    if len(own) < parts or len(formats) > 1:
        raise _OtherwiseError
    (format_,) = formats
    found: tuple[Any, ...]
    if format_ == "z" and type_ == pa.binary():
        found = spans.blobs([(each.validity, each.offsets, each.data) for each in own])
    elif format_ in _FORMATS and _FORMATS[format_] == _WIDTHS.get(type_):
        found = spans.fixed(_WIDTHS[type_], [(each.validity, each.data) for each in own])
    else:
        raise _OtherwiseError
    return found


def _shared(spans: Any, type_: pa.DataType, columns: list[Any]) -> tuple[Any, ...]:
    if all(isinstance(column, Whole) for column in columns) and type_ in _WIDTHS:
        data = spans.spread(_WIDTHS[type_], columns)
        if data is not None:
            return 0, None, data
    elif all(isinstance(column, Chosen) for column in columns) and type_ == pa.string():
        found: tuple[Any, ...] = spans.texts(
            [column.places for column in columns], [list(_encoded(column)) for column in columns]
        )
        return found
    raise _OtherwiseError


def _encoded(column: Chosen) -> Iterator[bytes | None]:
    for value in column.values:
        yield None if value is None else value.encode()
