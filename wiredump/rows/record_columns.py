"""Turn records into columns of ``records``, a batch at a time, without an object for each record.

``kproto.records`` defines what a batch is, and what is wrong with one.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from kproto.arrow import Column
from kproto.records.batch import Batch
from kproto.records.columns import put_batch
from kproto.records.compression import unpack
from kproto.records.native import RecordSink
from kproto.records.sink import Blobs, ColumnBuffers, RecordColumn, Sizes, bits, make_sink
from wiredump.rows.pieces import Chosen, Piece, Whole

__all__ = ["Origin", "RecordRows"]

MOST_ROWS: Final = 16_384
MOST_BYTES: Final = 32 * 1024 * 1024
"""The most rows that are held, and the most bytes of a column; a single batch may have more."""
GREATEST: Final = 2**31 - 1
"""The limit of a column. Batches stay far below it."""

_COLUMNS: Final = (
    RecordColumn.OFFSET | RecordColumn.TIMESTAMP | RecordColumn.KEY | RecordColumn.HEADER_COUNT
    | RecordColumn.VALUE_SIZE | RecordColumn.VALUE_HASH
)  # fmt: skip


class Origin(NamedTuple):
    """What the rows of one field have in common: columns of ``records`` by name, and ``wanted_ns``,
    the time by which a topic's name must be known. ``number`` is that of the first batch."""

    connection: int
    direction: str
    frame_offset: int
    topic: str | None
    topic_id: str | None
    partition: int
    wanted_ns: int
    number: int = 0


class RecordRows:
    """``read`` each batch, then ``end``; ``pieces`` are those completed so far, for the caller to
    remove.

    Without ``keep`` batches are only checked, and there are no rows. ``values`` keeps keys and
    values.
    """

    def __init__(self, *, keep: bool = True, values: bool = False) -> None:
        self.pieces: list[Piece] = []
        self._keep = keep
        self._wanted = RecordColumn(0)
        if keep:
            self._wanted = _COLUMNS | (RecordColumn.VALUE if values else RecordColumn(0))
        self._sink = make_sink(self._wanted, MOST_BYTES)
        self._runs = _Runs()

    @property
    def target(self) -> tuple[Any, ...]:
        """Where C adds plain batches and their runs (``wiredump.native``), as ``read_plain``
        does."""
        return self._sink, self._runs.numbers, self._runs.texts, self.end, MOST_ROWS

    def read_plain(self, data: bytes, origin: Origin) -> tuple[int, list[int]]:
        """Read the usual batches at the beginning of a field; returns where they end, and how many
        records each has, 0 of control batches."""
        end, counts = self._sink.add_plain(data, 0, len(data), unpack)
        for number, count in enumerate(counts, origin.number):
            if count:
                self._runs.add(count, number, origin)
        if len(self._sink) >= MOST_ROWS:
            self.end()
        return end, counts

    def read(self, batch: Batch, number: int, origin: Origin) -> int:
        """Make a row of every record of a batch, which has this number in its field; returns how
        many. Raises KprotoError, and leaves no row, if the batch cannot be read."""
        try:
            count = put_batch(self._sink, batch)
        except OverflowError:
            return self._read_alone(batch, number, origin)
        if count:
            self._runs.add(count, number, origin, timeless=batch.magic == 0)
            if len(self._sink) >= MOST_ROWS:
                self.end()
        return count

    def _read_alone(self, batch: Batch, number: int, origin: Origin) -> int:
        """Read a batch that cannot be added to earlier ones, or that is larger than the usual
        limit."""
        self.end()
        sink = make_sink(self._wanted, GREATEST)
        count = put_batch(sink, batch)
        if count:
            self._runs.add(count, number, origin, timeless=batch.magic == 0)
        self._end(sink)
        return count

    def end(self) -> None:
        """Turn all rows into a piece."""
        self._end(self._sink)

    def _end(self, sink: RecordSink) -> None:
        made = ColumnBuffers(*sink.finish())
        runs = self._runs.taken()
        counts = runs.counts
        if counts and self._keep:
            own = _own(made, counts, runs.timeless)
            self.pieces.append(Piece(counts=counts, shared=runs.shared(), own=own))


class _Runs:
    """Runs of records, one batch each: how many records, whether they lack times, the batch's
    number in its field, and what all of them share. Numbers are kept as such: with small batches
    there are as many as records. ``texts`` are the direction and the topic, which are mostly equal
    in all runs. C adds to both, too (``wiredump/native/gathering.c``)."""

    def __init__(self) -> None:
        self.numbers = bytearray()
        self.texts: dict[tuple[str, str | None, str | None], int] = {}
        self._timeless: set[int] = set()

    def __len__(self) -> int:
        return len(self.numbers) // _RUN.size

    def add(self, count: int, number: int, origin: Origin, *, timeless: bool = False) -> None:
        connection, direction, frame_offset, topic, topic_id, partition, wanted_ns, _ = origin
        texts = direction, topic, topic_id
        place = self.texts.get(texts)
        if place is None:
            place = self.texts[texts] = len(self.texts)
        if timeless:
            self._timeless.add(len(self))
        try:
            self.numbers += _pack(
                count, number, connection, frame_offset, partition, wanted_ns, place
            )
        except struct.error:  # only in damaged batches: clamp, as tables.arrow does
            numbers = count, number, connection, frame_offset, partition, wanted_ns, place
            self.numbers += _pack(*(min(max(each, -_LAST - 1), _LAST) for each in numbers))

    def taken(self) -> _Taken:
        """Return the runs, and start again."""
        taken = _Taken(memoryview(bytes(self.numbers)).cast("q"), list(self.texts), self._timeless)
        self.numbers.clear()
        self.texts.clear()
        self._timeless = set()
        return taken


class _Taken(NamedTuple):
    """Runs that are complete."""

    numbers: Whole
    texts: list[tuple[str, str | None, str | None]]
    odd: set[int]
    """The runs without times."""

    def _column(self, number: int) -> Whole:
        return self.numbers[number :: len(_FIELDS)]

    @property
    def counts(self) -> list[int]:
        return self._column(0).tolist()

    @property
    def timeless(self) -> list[bool]:
        return [each in self.odd for each in range(len(self.counts))] if self.odd else []

    def shared(self) -> dict[str, list[Any] | Whole | Chosen]:
        """Return the columns of ``records`` with one value for each run, and the rest of
        ``Origin``."""
        found: dict[str, list[Any] | Whole | Chosen] = {
            name: self._column(number) for number, name in enumerate(_FIELDS) if name
        }
        texts, places = zip(*self.texts, strict=True), self._column(len(_FIELDS) - 1)
        for name, values in zip(("direction", "topic", "topic_id"), texts, strict=True):
            found[name] = Chosen(list(values), places)
        return found


_FIELDS: Final = ("", "batch", "connection", "frame_offset", "partition", "wanted_ns", "")
_RUN: Final = struct.Struct(f"={len(_FIELDS)}q")
_pack: Final = _RUN.pack
_LAST: Final = 2**63 - 1


def _own(made: ColumnBuffers, counts: list[int], timeless: list[bool]) -> dict[str, Column]:
    rows = made.rows
    assert made.key is not None
    assert made.value_size is not None
    assert made.value_hash is not None
    sizes = Sizes(*made.value_size)
    columns = (
        Column(name="offset", format="l", length=rows, data=made.offset),
        _timestamps(made, counts, timeless),
        _blobs("key", Blobs(*made.key)),
        Column(
            name="value_size", format="i", nullable=True, length=rows, null_count=sizes.nulls,
            validity=sizes.validity, data=sizes.data,
        ),
        _blobs("value_hash", Blobs(*made.value_hash)),
        Column(name="headers", format="i", length=rows, data=made.header_count),
        _no_blobs("value", rows) if made.value is None else _blobs("value", Blobs(*made.value)),
    )  # fmt: skip
    return {column.name: column for column in columns}


def _timestamps(made: ColumnBuffers, counts: list[int], timeless: list[bool]) -> Column:
    """Return the timestamps; records of magic 0 have none. ``timeless`` is empty without such
    runs."""
    validity, nulls = None, 0
    if any(timeless):
        runs = list(zip(counts, timeless, strict=True))
        validity = bits(b"".join(bytes([not without]) * count for count, without in runs))
        nulls = sum(count for count, without in runs if without)
    return Column(
        name="timestamp_ms", format="l", nullable=True, length=made.rows, null_count=nulls,
        validity=validity, data=made.timestamp,
    )  # fmt: skip


def _blobs(name: str, found: Blobs) -> Column:
    return Column(
        name=name, format="z", nullable=True, length=found.number, null_count=found.nulls,
        validity=found.validity, offsets=found.offsets, data=found.data,
    )  # fmt: skip


def _no_blobs(name: str, rows: int) -> Column:
    return _blobs(name, Blobs(rows, rows, bytes((rows + 7) // 8), bytes(4 * (rows + 1)), b""))
