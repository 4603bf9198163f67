"""Turn Produce requests and Fetch and ShareFetch responses into rows of batches and records.

What cannot be read becomes a row of anomalies with the reason; what came before it has its rows.
Batches and anomalies become rows at once; records are collected into pieces, and returned when a
piece is full. Except for ``name_of``, which has the names of topic ids, everything depends on the
items alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from kproto import extension
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.records import Batch, RecordBatches, TimestampType
from kproto.records.compression import unpack
from kproto.records.crc import crc32c
from kproto.records.message_set import ENTRY_HEADER
from kproto.records.model import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME_BIT,
    MAX_DECOMPRESSED,
    TRANSACTIONAL,
)
from kproto.records.record_batch import CHECKED, HEADER, RecordBatch
from kproto.records.window import Window
from wiredump.bodies import Bodies
from wiredump.dialects import certain
from wiredump.model import Anomaly, Connection, Direction, Exchange, Frame, Place
from wiredump.native import quick
from wiredump.rows.exchanges import anomaly_row
from wiredump.rows.fields import (
    CARRYING,
    PRODUCE,
    NameOf,
    RecordsField,
    fields_of,
    finder_of,
    id_as_text,
    places_of,
)
from wiredump.rows.pieces import Rows
from wiredump.rows.record_columns import Origin, RecordRows

__all__ = ["BatchRows", "NameOf"]

_TIMESTAMPS: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "none",
    TimestampType.CREATE_TIME: "create",
    TimestampType.LOG_APPEND_TIME: "append",
}
_WRONG_CHECKSUM: Final = "the checksum does not fit"
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class _Read(NamedTuple):
    """The contents of a batch. ``records`` is None if they cannot be read."""

    records: int | None
    base_offset: int | None
    crc_ok: bool | None
    problems: list[str]


class BatchRows:
    """``add`` each exchange, then ``end``: both return rows of ``batches``, ``records`` and
    ``anomalies``, as far as they are in ``tables``. Malformed bytes never raise.

    With ``apart``, records of topics that are known only by id are in pieces of their own.
    """

    def __init__(
        self,
        name_of: NameOf,
        codec: Dialect | None = None,
        *,
        tables: Collection[str] = ("batches", "records", "anomalies"),
        values: bool = False,
        apart: bool = False,
    ) -> None:
        self._name_of = name_of
        self._codec = codec
        self._using = certain(codec)
        self._makes_batches = "batches" in tables
        self.checks = self._makes_batches or "anomalies" in tables
        """Whether more is wanted of a batch than its records."""
        self._records = RecordRows(keep="records" in tables, values=values)
        self._unnamed = self._records
        """Records of topics that are known only by id."""
        if apart:
            self._unnamed = RecordRows(keep="records" in tables, values=values)

    def add(self, item: Exchange, said: Callable[[], Bodies]) -> Iterable[Rows]:
        """Return the rows of an exchange, and the pieces that it completes. ``said`` returns the
        result of ``bodies.read``, which is needed if the frame's bytes cannot be read directly."""
        return self._added(item, said) if item.api_key in CARRYING else ()

    def _added(self, item: Exchange, said: Callable[[], Bodies]) -> Iterator[Rows]:
        for field in fields_of(item, self._codec, said, self._name_of):
            yield from self._rows(field)
            yield from self.pieces()

    def add_frame(
        self, connection: int, api_key: int, version: int, offset: int, completed_ns: int,
        raw: bytes,
    ) -> bool:  # fmt: skip
        """Take a complete frame that may have records, if nothing else of it is wanted; ``version``
        is the message's. Returns False if its exchange must be added instead."""
        found = finder_of(self._using, api_key, version)(raw)
        if found is None:
            return False
        direction = "request" if api_key == PRODUCE else "response"
        for name, topic_id, partition, data in found:
            if name is None and topic_id is not None:
                name = self._name_of(topic_id, completed_ns)
            origin = Origin(connection, direction, offset, name, topic_id, partition, completed_ns)
            self._gather(data, origin)
        return True

    def gatherer(
        self, batches: Any = None, full: Callable[[str], None] | None = None,
        take: Callable[[Iterable[Rows]], None] | None = None,
    ) -> Any:  # fmt: skip
        """Return ``add_frame`` in C, if the extension is in use: the same, without an object for
        each field. If more is wanted than records, it also adds rows to ``batches`` (``HeldRows``)
        and calls ``full`` when there are enough, and ``take`` with the rows of unusual fields."""
        module = quick()
        if module is None:
            return self.add_frame
        engine = extension.in_use
        checked = None
        if self.checks:
            assert take is not None
            crc = crc32c if engine is None else engine.crc32c
            checked = batches, crc, full, partial(self._left, take)
        return module.Gatherer(
            partial(places_of, self._using), id_as_text, self._name_of, unpack, self._rest_of,
            self.add_frame, self._records.target, self._unnamed.target,
            checked,
        )  # fmt: skip

    def _left(self, take: Callable[[Iterable[Rows]], None], *field: Any) -> None:
        take(self._left_rows(*field))

    def _left_rows(
        self, connection: Connection, api_key: int, offset: int, size: int, first_ns: int,
        last_ns: int, capture: int, place: int, completed_ns: int, topic: str | None,
        topic_id: str | None, partition: int, data: bytes,
    ) -> Iterator[Rows]:  # fmt: skip
        """Return the rows of a field that C leaves."""
        direction: Direction = "request" if api_key == PRODUCE else "response"
        frame = Frame(direction, offset, size, b"", 0, first_ns, last_ns, Place(capture, place))
        if topic is None and topic_id is not None:
            topic = self._name_of(topic_id, completed_ns)
        yield from self._rows(
            RecordsField(connection, api_key, frame, completed_ns, topic, topic_id, partition, data)
        )
        yield from self.pieces()

    def _gather(self, data: bytes, origin: Origin) -> None:
        """Collect the records of a field, if nothing else of its batches is wanted."""
        end, counts = self._of(origin).read_plain(data, origin)
        if end < len(data):
            self._rest(data, len(counts), origin)

    def _rest_of(self, data: bytes, before: int, *origin: Any) -> None:
        self._rest(data, before, Origin(*origin))

    def _rest(self, data: bytes, before: int, origin: Origin) -> None:
        """Handle what follows this many batches of a field."""
        batches = RecordBatches(data, check_crc=False, allow_partial=origin.direction == "response")
        with suppress(KprotoError):  # the bytes that follow cannot be read
            for number, batch in enumerate(batches):
                if number >= before:
                    self._read(batch, origin.number + number, origin)

    def end(self) -> Iterator[Rows]:
        """Return the records collected so far."""
        for each in (self._records, self._unnamed):
            each.end()
        yield from self.pieces()

    def pieces(self) -> Iterator[Rows]:
        """Return the collected records if they fill a piece."""
        for each in (self._records, self._unnamed):
            if each.pieces:
                pieces, each.pieces = each.pieces, []
                for piece in pieces:
                    yield "records", piece

    def _of(self, origin: Origin) -> RecordRows:
        """Return where the records of a field are collected."""
        nameless = origin.topic is None and origin.topic_id is not None
        return self._unnamed if nameless else self._records

    def _rows(self, field: RecordsField) -> Iterator[Rows]:
        frame = field.frame
        origin = Origin(
            field.connection.id, frame.direction, frame.offset, field.topic, field.topic_id,
            field.partition, field.completed_ns, field.number,
        )  # fmt: skip
        if not self.checks:
            self._gather(field.data, origin)
            return
        end, counts = self._of(origin).read_plain(field.data, origin)
        yield from self._plain_rows(field, counts, origin)
        if end < len(field.data):
            yield from self._other_rows(field, len(counts), origin)

    def _plain_rows(self, field: RecordsField, counts: list[int], origin: Origin) -> Iterator[Rows]:
        """Return the rows of the batches of magic 2 at the beginning of a field, whose records were
        read: so many of each, 0 of control batches."""
        data, at = field.data, 0
        is_salvaged = field.frame.salvaged is not None
        for number, count in enumerate(counts, origin.number):
            (
                base_offset, length, epoch, magic, crc, attributes, last_delta, _, max_timestamp,
                producer_id, producer_epoch, base_sequence, _,
            ) = HEADER.unpack_from(data, at)  # fmt: skip
            end = at + ENTRY_HEADER + length
            if attributes & CONTROL:
                batch = RecordBatch(
                    Window(data, at, end, f"batches[{number}]"), False, MAX_DECOMPRESSED
                )
                yield from self._batch_rows(field, batch, number, origin)
            else:
                crc_ok = crc32c(data, at + CHECKED, end) == crc
                if self._makes_batches:
                    yield "batches", (
                        origin.connection, origin.direction, origin.frame_offset,
                        field.frame.last_ns, field.api_key, field.topic, field.topic_id,
                        field.partition, number,
                        base_offset, base_offset + last_delta, magic,
                        _CODECS[attributes & CODEC_MASK],
                        "append" if attributes & LOG_APPEND_TIME_BIT else "create", max_timestamp,
                        _known(epoch), _known(producer_id), _known(producer_epoch),
                        _known(base_sequence), bool(attributes & TRANSACTIONAL), False, crc_ok,
                        end - at, count, is_salvaged,
                    )  # fmt: skip
                if not crc_ok:
                    yield _undecodable(field, f"batch {number}: {_WRONG_CHECKSUM}")
            at = end

    def _other_rows(self, field: RecordsField, before: int, origin: Origin) -> Iterator[Rows]:
        """Return the rows of what follows so many batches of a field."""
        is_partial = origin.direction == "response"
        batches = iter(RecordBatches(field.data, check_crc=False, allow_partial=is_partial))
        number = 0
        while True:
            try:
                batch = next(batches, None)
            except KprotoError as error:
                yield _undecodable(field, f"batch {number} and what follows: {error}")
                return
            if batch is None:
                return
            if number >= before:
                yield from self._batch_rows(field, batch, origin.number + number, origin)
            number += 1

    def _batch_rows(
        self, field: RecordsField, batch: Batch, number: int, origin: Origin
    ) -> Iterator[Rows]:
        read = self._read(batch, number, origin)
        if self._makes_batches:
            yield _batch(field, number, batch, read)
        for problem in read.problems:
            yield _undecodable(field, f"batch {number}: {problem}")

    def _read(self, batch: Batch, number: int, origin: Origin) -> _Read:
        problems: list[str] = []
        count: int | None = None
        crc_ok = batch.crc_is_right() if self.checks else None
        try:
            if batch.is_control:
                count = len(batch.records())
            else:
                count = self._of(origin).read(batch, number, origin)
            base_offset: int | None = batch.base_offset if self._makes_batches else None
        except KprotoError as error:
            problems.append(str(error))
            base_offset = batch.base_offset if batch.magic == 2 else None
        if crc_ok is False:
            problems.append(_WRONG_CHECKSUM)
        return _Read(count, base_offset, crc_ok, problems)


def _undecodable(field: RecordsField, reason: str) -> Rows:
    frame = field.frame
    return anomaly_row(
        Anomaly(
            "undecodable-batch",
            f"{field.name}: {reason}",
            frame.place,
            frame.first_ns,
            field.connection,
            frame.direction,
            frame.offset,
        )
    )


def _batch(field: RecordsField, number: int, batch: Batch, read: _Read) -> Rows:
    codec, frame = batch.attributes & 7, field.frame
    return (
        "batches",
        (
            field.connection.id, frame.direction, frame.offset, frame.last_ns,
            field.api_key, field.topic, field.topic_id, field.partition, number,
            read.base_offset, batch.last_offset, batch.magic,
            _CODECS[codec] if codec < len(_CODECS) else f"codec {codec}",
            _TIMESTAMPS[batch.timestamp_type],
            None if batch.magic == 0 else batch.max_timestamp,
            _known(batch.partition_leader_epoch), _known(batch.producer_id),
            _known(batch.producer_epoch), _known(batch.base_sequence),
            batch.is_transactional, batch.is_control, read.crc_ok, batch.size, read.records,
            frame.salvaged is not None,
        ),
    )  # fmt: skip


def _known(value: int) -> int | None:
    return None if value == -1 else value
