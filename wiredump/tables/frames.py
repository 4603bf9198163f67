"""Make the table ``frames`` from columns that the extension fills, without an object for each row,
and ``records`` from frames, without an object for each exchange.

Rows of ``frames`` that Python makes go through the same columns, so that order and row groups do
not depend on who made a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import pyarrow as pa

from wiredump.native import quick
from wiredump.rows.pieces import Rows
from wiredump.sources.quick import Sink
from wiredump.tables.arrow import arrow_schema
from wiredump.tables.table_rows import TableRows
from wiredump.tables.writer import RowGroups

__all__ = ["FrameColumns", "sink_of"]

_NULLABLE: Final = ("size", "api_key", "api_version", "correlation_id")


def sink_of(
    rows: TableRows, writer: RowGroups, take: Callable[[Iterable[Rows]], None],
    frames: FrameColumns | None,
) -> Sink | None:  # fmt: skip
    """Return where goes what needs no exchange; None if everything does. ``frames`` is None unless
    the tables need no exchange; ``take`` takes rows of ``records``."""
    if frames is not None:
        return Sink(partial(writer.drain, "frames"), rows.counted, columns=frames.columns)
    if not rows.takes_records_only:
        return None
    return Sink(lambda: take(rows.gathered()), rows.counted, carried=rows.carried)


class FrameColumns:
    """The column store of ``RowGroups.keep_in`` for frames. Needs the extension."""

    def __init__(self) -> None:
        module = quick()
        assert module is not None
        self.columns: Any = module.FrameColumns()

    @classmethod
    def of(cls, rows: TableRows) -> FrameColumns | None:
        """Make one if the tables need no exchange, and the extension is in use."""
        return cls() if rows.takes_frames_only and quick() is not None else None

    def __len__(self) -> int:
        return len(self.columns)

    def append(self, row: tuple[Any, ...]) -> None:
        self.columns.append(row)

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
