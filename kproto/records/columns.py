"""Read many fields of type ``records`` into columns: one row per record, without an object for it.

::

    table = read_columns(inputs, ["offset", "timestamp", "value", "producer_id"])
    table.to_arrow()        # a pyarrow.RecordBatch over the same buffers
    table.to_pydict()       # lists, without pyarrow

Batches are split, checked and decompressed as by ``RecordBatches``, for every magic and codec, with
the same errors. With the native engine the records of magic 2 never become objects
(``kproto/native/records_columns.c``); those of magic 0 and 1 do, one batch at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from kproto.arrow import Column, Table
from kproto.errors import BodyError, DecodeError, LimitError, SelectionError, UnknownNameError
from kproto.records.batch import Batch
from kproto.records.batches import RecordBatches
from kproto.records.model import MAX_DECOMPRESSED
from kproto.records.native import RecordSink
from kproto.records.record import read_in_python
from kproto.records.record_batch import RecordBatch
from kproto.records.sink import Blobs, ColumnBuffers, RecordColumn, Sizes, bits, make_sink

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "MOST_BYTES", "RecordColumns", "put_batch", "read_columns"]

MOST_BYTES: Final = 2**31 - 1
"""The limit of int32 offsets: no buffer of a column is larger."""
LEAST_LIMIT: Final = 8


class RecordColumns(Table, frozen=True, kw_only=True, eq=False):
    """The result of ``read_columns``: one row per record."""

    @property
    def input(self) -> Column:
        """The input that each row came from."""
        return self.index


class _BatchColumn(NamedTuple):
    """A column whose value is the same for every record of a batch."""

    format: str
    """A format of Arrow's C data interface; "b" is a bool."""
    value: Callable[[Batch], int]


_CODES: Final = {"b": "b", "c": "b", "s": "h", "i": "i", "l": "q"}
"""Arrow's formats as those of ``struct``. A bool is a byte until the end."""

_OF_BATCH: Final = {
    "magic": _BatchColumn("c", lambda batch: batch.magic),
    "compression": _BatchColumn("c", lambda batch: batch.compression),
    "timestamp_type": _BatchColumn("c", lambda batch: batch.timestamp_type),
    "partition_leader_epoch": _BatchColumn("i", lambda batch: batch.partition_leader_epoch),
    "producer_id": _BatchColumn("l", lambda batch: batch.producer_id),
    "producer_epoch": _BatchColumn("s", lambda batch: batch.producer_epoch),
    "base_sequence": _BatchColumn("i", lambda batch: batch.base_sequence),
    "is_transactional": _BatchColumn("b", lambda batch: batch.is_transactional),
    "is_control": _BatchColumn("b", lambda batch: batch.is_control),
}
_OF_RECORD: Final = {flag.name.lower(): flag for flag in RecordColumn if flag.name}

COLUMNS: Final = ("batch", *_OF_RECORD, *_OF_BATCH)
"""Every column there is, besides ``input``."""
DEFAULT_COLUMNS: Final = ("batch", "offset", "timestamp", "key", "value", "header_count")
"""The columns that ``read_columns`` reads by default."""


def read_columns(
    inputs: Iterable[bytes | bytearray | memoryview | None],
    columns: Sequence[str] = DEFAULT_COLUMNS,
    *,
    errors: Literal["raise", "collect"] = "raise",
    check_crc: bool = True,
    allow_partial: bool = False,
    max_decompressed: int = MAX_DECOMPRESSED,
    limit: int = MOST_BYTES,
) -> RecordColumns:
    """Read the records of all ``inputs``, in order. Each input is what ``RecordBatches`` accepts.

    ``columns`` are names in ``COLUMNS``. Columns of the record: ``offset``, ``timestamp``, ``key``,
    ``value``, ``header_count``, ``headers`` (a list of keys and values), ``value_size``, and
    ``value_hash``, BLAKE2b with a digest of 16 bytes; the last two do not copy the value. Columns
    of its batch: ``batch``, which counts from 0 in each input, and the attributes of ``Batch``;
    ``compression`` and ``timestamp_type`` are numbers. ``input`` is always included.

    A bad input raises BodyError: the DecodeError of ``RecordBatches`` with ``index``. With
    ``errors="collect"`` the input has no rows, not even of its good batches, and its error is added
    to ``.errors``. ``limit`` is the largest size of one buffer in bytes; LimitError names the input
    that would exceed it, and fewer inputs must then be read at a time. ``check_crc``,
    ``allow_partial`` and ``max_decompressed`` are those of ``RecordBatches``. Raises
    MissingExtraError for a codec that is not installed, UnknownNameError for an unknown column, and
    SelectionError for a duplicate one.
    """
    if errors not in ("raise", "collect"):
        raise ValueError(f"errors={errors!r}: must be 'raise' or 'collect'")
    if not LEAST_LIMIT <= limit <= MOST_BYTES:
        raise ValueError(f"limit={limit}: must be from {LEAST_LIMIT} to {MOST_BYTES}")
    _check(columns)
    requested = RecordColumn(0)
    for name in columns:
        requested |= _OF_RECORD.get(name, 0)
    gathered = _ColumnBuilder(columns, make_sink(requested, limit))
    bad = []
    for index, data in enumerate(inputs):
        mark = gathered.mark()
        batches = RecordBatches(
            data,
            check_crc=check_crc,
            allow_partial=allow_partial,
            max_decompressed=max_decompressed,
        )
        try:
            for number, batch in enumerate(batches):
                gathered.add(index, number, batch)
        except DecodeError as error:
            found = BodyError(error, index=index)
            if errors == "raise":
                raise found from None
            bad.append(found)
            gathered.take_back(mark)
        except OverflowError as error:
            raise LimitError(str(error), index=index) from None
    return gathered.finish(tuple(bad))


def _check(columns: Sequence[str]) -> None:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names: [{columns!r}]")
    for name in columns:
        if name == "input":
            raise SelectionError("input is always a column")
        if name not in COLUMNS:
            raise UnknownNameError(f"no column {name!r}; the columns are {', '.join(COLUMNS)}")
        if columns.count(name) > 1:
            raise SelectionError(f"{name} was selected twice")


def put_batch(sink: RecordSink, batch: Batch) -> int:
    """Add the records of a batch to a sink, all of them or none. Returns their number. Raises
    DecodeError, MissingExtraError, and OverflowError at the sink's limit."""
    if isinstance(batch, RecordBatch):
        section = batch.section()
        (data, at, end, _, _), number, offset, timestamp, appended = section
        if sink.add(data, at, end, number, offset, timestamp, appended):
            return number
        records = read_in_python(*section)  # raises, unless the engine is pure Python
    else:
        records = batch.records()
    if not sink.put(records):
        raise AssertionError("the native engine refused records that a reader made")
    return len(records)


class _Run(NamedTuple):
    """Consecutive rows that are records of one batch."""

    rows: int
    input: int
    batch: int
    values: tuple[int, ...]
    """The values of the batch's columns, in their order."""


class _ColumnBuilder:
    """Collects what was read: values of records in a sink, and values of batches as runs."""

    def __init__(self, columns: Sequence[str], sink: RecordSink) -> None:
        self._columns = columns
        self._sink = sink
        self._of_batch = {name: _OF_BATCH[name] for name in columns if name in _OF_BATCH}
        self._runs: list[_Run] = []

    def mark(self) -> int:
        self._sink.mark()
        return len(self._runs)

    def take_back(self, mark: int) -> None:
        self._sink.take_back()
        del self._runs[mark:]

    def add(self, index: int, number: int, batch: Batch) -> None:
        values = tuple(column.value(batch) for column in self._of_batch.values())
        rows = put_batch(self._sink, batch)
        if rows:
            self._runs.append(_Run(rows, index, number, values))

    def finish(self, errors: tuple[BodyError, ...]) -> RecordColumns:
        made = ColumnBuffers(*self._sink.finish())
        order = list(self._of_batch)
        columns = []
        for name in self._columns:
            if name in _OF_RECORD:
                columns.append(_of_record(name, made))
            elif name == "batch":
                columns.append(self._repeated(name, "i", [run.batch for run in self._runs]))
            else:
                place = order.index(name)
                values = [run.values[place] for run in self._runs]
                columns.append(self._repeated(name, _OF_BATCH[name].format, values))
        return RecordColumns(
            rows=made.rows,
            index=self._repeated("input", "i", [run.input for run in self._runs]),
            columns=tuple(columns),
            errors=errors,
        )

    def _repeated(self, name: str, format: str, values: list[int]) -> Column:
        """Repeat each value on every row of its run."""
        pack = struct.Struct(f"={_CODES[format]}").pack
        runs = zip(values, self._runs, strict=True)
        data = b"".join(pack(value) * run.rows for value, run in runs)
        length = sum(run.rows for run in self._runs)
        return Column(
            name=name, format=format, length=length, data=bits(data) if format == "b" else data
        )


def _of_record(name: str, made: ColumnBuffers) -> Column:
    found: Any = getattr(made, name)
    if name in ("key", "value", "value_hash"):
        return _blobs(name, "z", Blobs(*found), nullable=True)
    if name == "value_size":
        sizes = Sizes(*found)
        return Column(
            name=name, format="i", nullable=True, length=made.rows, null_count=sizes.nulls,
            validity=sizes.validity, data=sizes.data,
        )  # fmt: skip
    if name != "headers":
        return Column(
            name=name, format="i" if name == "header_count" else "l", length=made.rows, data=found
        )
    offsets, *blobs = found
    keys, values = (Blobs(*each) for each in blobs)
    item = Column(
        name="item",
        format="+s",
        length=keys.number,
        fields=(_blobs("key", "u", keys), _blobs("value", "z", values, nullable=True)),
    )
    return Column(name=name, format="+l", length=made.rows, offsets=offsets, child=item)


def _blobs(name: str, format: str, found: Blobs, nullable: bool = False) -> Column:
    return Column(
        name=name,
        format=format,
        nullable=nullable,
        length=found.number,
        null_count=found.nulls,
        validity=found.validity,
        offsets=found.offsets,
        data=found.data,
    )
