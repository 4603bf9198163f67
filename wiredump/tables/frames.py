"""Make the table ``frames`` from columns that the extension fills, without an object for each row.

Rows that Python makes go through the same columns, so that order and row groups do not depend on
who made a row.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import pyarrow as pa

from wiredump.native import quick
from wiredump.tables.arrow import arrow_schema

__all__ = ["FramesOnly"]

_NULLABLE: Final = ("size", "api_key", "api_version", "correlation_id")


class _Writer(Protocol):
    def drain(self, name: str) -> None: ...


class _Rows(Protocol):
    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None: ...


class FramesOnly:
    """The sink of ``Sources.rows_to`` for frames, and the column store of ``RowGroups.keep_in``."""

    carried = None

    def __init__(self, writer: _Writer, rows: _Rows, columns: Any = None) -> None:
        """``columns`` are those of another instance, to which rows are added."""
        module = quick()
        if columns is None and module is not None:
            columns = module.FrameColumns()
        self.columns: Any = columns
        self._writer = writer
        self._rows = rows

    def __len__(self) -> int:
        return len(self.columns)

    def append(self, row: tuple[Any, ...]) -> None:
        self.columns.append(row)

    def drain(self) -> None:
        self._writer.drain("frames")

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None:
        self._rows.counted(connection, requests, request_bytes, response_bytes)

    def take(self, count: int) -> pa.Table:
        """Return this many rows from the front, sorted by the key columns."""
        schema = arrow_schema("frames")
        taken = self.columns.take(count)
        validity = dict(zip(_NULLABLE, taken[len(schema) :], strict=True))
        arrays = [
            _array(field, data, validity.get(field.name), count)
            for field, data in zip(schema, taken, strict=False)
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def _array(field: pa.Field, data: Any, validity: bytes | None, count: int) -> pa.Array:
    """Make an array of buffers: from objects, pyarrow would first import what it needs for them."""
    bits = None if validity is None else pa.py_buffer(validity)
    if field.name == "direction":
        buffers = [None, *map(pa.py_buffer, data)]
        return pa.Array.from_buffers(field.type, count, buffers)
    return pa.Array.from_buffers(field.type, count, [bits, pa.py_buffer(data)])
