"""Records to columns of ``records``, a batch at a time, without an object for a record.

What a batch is, and what is wrong with one, is not decided here but in ``kproto.records``.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from kproto.arrow import Column
from kproto.records.batch import Batch
from kproto.records.columns import put_batch
from kproto.records.compression import unpack
from kproto.records.sink import Blobs, Made, Sizes, Wanted, bits, make_sink
from wiredump.rows.pieces import Piece

__all__ = ["RecordRows", "Whose"]

MOST_ROWS: Final = 16_384
MOST_BYTES: Final = 32 * 1024 * 1024
"""So many rows are held, and bytes of a column; one batch may have more, alone."""
GREATEST: Final = 2**31 - 1
"""What a column can have at all. Batches end far below it."""

_COLUMNS: Final = (
    Wanted.OFFSET | Wanted.TIMESTAMP | Wanted.KEY | Wanted.HEADER_COUNT
    | Wanted.VALUE_SIZE | Wanted.VALUE_HASH
)  # fmt: skip


class Whose(NamedTuple):
    """What the rows of one field have in common: columns of ``records`` by name, and ``wanted_ns``,
    by when a topic's name would have to be known."""

    connection: int
    direction: str
    frame_offset: int
    topic: str | None
    topic_id: str | None
    partition: int
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
        self._runs: list[_Run] = []
        self._rows = 0

    def read_plain(self, data: bytes, whose: Whose) -> tuple[int, int]:
        """The batches that a field begins with, as far as nothing is to be said of them but their
        records; returns where they end, and how many they are."""
        end, counts = self._sink.add_plain(data, unpack)
        for number, count in enumerate(counts):
            if count:
                self._rows += count
                self._runs.append((count, False, number, whose))
        if self._rows >= MOST_ROWS:
            self.end()
        return end, len(counts)

    def read(self, batch: Batch, number: int, whose: Whose) -> int:
        """Every record of the field's batch of that number becomes a row; returns how many. Raises
        KprotoError where it cannot be read, and leaves no row then."""
        try:
            count = put_batch(self._sink, batch)
        except OverflowError:
            count = self._read_alone(batch)
        if count:
            self._rows += count
            self._runs.append((count, batch.magic == 0, number, whose))
            if self._rows >= MOST_ROWS:
                self.end()
        return count

    def _read_alone(self, batch: Batch) -> int:
        """Where it does not go with those before, or is larger than all that is usually held."""
        self.end()
        self._sink = make_sink(self._wanted, GREATEST)
        self._rows = MOST_ROWS
        return put_batch(self._sink, batch)

    def end(self) -> None:
        """All rows that there are become a piece."""
        made = Made(*self._sink.finish())
        runs, self._runs, self._rows = self._runs, [], 0
        self._sink = make_sink(self._wanted, MOST_BYTES)
        if runs and self._keep:
            counts, timeless, batches, whose = map(list, zip(*runs, strict=True))
            columns = zip(Whose._fields, zip(*whose, strict=True), strict=True)
            shared = {name: list(values) for name, values in columns}
            own = _own(made, counts, timeless)
            self.pieces.append(Piece(counts=counts, shared={**shared, "batch": batches}, own=own))


_Run: TypeAlias = tuple[int, bool, int, Whose]
"""Records of one batch: how many, whether they have no times, the batch's number in its field."""


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
