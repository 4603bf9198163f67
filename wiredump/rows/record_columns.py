"""Records to columns of ``records``, a batch at a time, without an object for a record.

What a batch is, and what is wrong with one, is not decided here but in ``kproto.records``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto.arrow import Column
from kproto.records.batch import Batch
from kproto.records.columns import put_batch
from kproto.records.sink import Blobs, Made, Sizes, Wanted, bits, make_sink
from wiredump.rows.pieces import Piece

__all__ = ["RecordRows", "Run"]

MOST_ROWS: Final = 16_384
MOST_BYTES: Final = 32 * 1024 * 1024
"""So many rows are held, and bytes of a column; one batch may have more, alone."""
GREATEST: Final = 2**31 - 1
"""What a column can have at all. Batches end far below it."""

_COLUMNS: Final = (
    Wanted.OFFSET | Wanted.TIMESTAMP | Wanted.KEY | Wanted.HEADER_COUNT
    | Wanted.VALUE_SIZE | Wanted.VALUE_HASH
)  # fmt: skip


class Run(NamedTuple):
    """What the rows of one batch have in common: columns of ``records`` by name, and ``wanted_ns``,
    by when a topic's name would have to be known."""

    connection: int
    direction: str
    frame_offset: int
    topic: str | None
    topic_id: str | None
    partition: int
    batch: int
    wanted_ns: int


class RecordRows:
    """``read`` each batch, ``end`` behind the last; ``pieces`` are those that are full until then,
    for whoever takes them away.

    Without ``keep`` batches are only looked through, and there are no rows. ``values`` keeps those.
    """

    def __init__(self, *, keep: bool = True, values: bool = False) -> None:
        self.pieces: list[Piece] = []
        self._keep = keep
        self._wanted = Wanted(0)
        if keep:
            self._wanted = _COLUMNS | (Wanted.VALUE if values else Wanted(0))
        self._sink = make_sink(self._wanted, MOST_BYTES)
        self._runs: list[Run] = []
        self._counts: list[int] = []
        self._timeless: list[bool] = []
        self._rows = 0

    def read(self, batch: Batch, run: Run) -> int:
        """Every record of a batch becomes a row; returns how many. Raises KprotoError where it
        cannot be read, and leaves no row then."""
        try:
            number = put_batch(self._sink, batch)
        except OverflowError:
            number = self._read_alone(batch)
        if number:
            self._rows += number
            if self._keep:
                self._runs.append(run)
                self._counts.append(number)
                self._timeless.append(batch.magic == 0)
            if self._rows >= MOST_ROWS:
                self.end()
        return number

    def _read_alone(self, batch: Batch) -> int:
        """Where it does not go with those before, or is larger than all that is usually held."""
        self.end()
        self._sink = make_sink(self._wanted, GREATEST)
        number = put_batch(self._sink, batch)
        self._rows = MOST_ROWS
        return number

    def end(self) -> None:
        """All rows that there are become a piece."""
        made = Made(*self._sink.finish())
        runs, counts, timeless = self._runs, self._counts, self._timeless
        self._sink = make_sink(self._wanted, MOST_BYTES)
        self._runs, self._counts, self._timeless = [], [], []
        self._rows = 0
        if runs:
            values = zip(Run._fields, zip(*runs, strict=True), strict=True)
            shared = {name: list(each) for name, each in values}
            self.pieces.append(
                Piece(counts=counts, shared=shared, own=_own(made, counts, timeless))
            )


def _own(made: Made, counts: list[int], timeless: list[bool]) -> dict[str, Column]:
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


def _timestamps(made: Made, counts: list[int], timeless: list[bool]) -> Column:
    """Those of magic 0 have none."""
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
