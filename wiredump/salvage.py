"""Find the whole record batches of a frame of which the capture lacks bytes.

A field of records says how long it is, and so does each batch. Reading continues behind a hole
where these lengths lead. If the hole has a length, the next batch is found by its checksum. The
header of a partition or a topic that the hole has is lost; those behind it are recognised, because
they end where a batch begins. A topic that may have lost its header is not guessed.

Only batches that are whole are returned, and those that were searched for only if their checksum
fits. A batch within the value of a record is taken for a batch of the partition if the header of
the batch around it is lost.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

from kproto.codec.interpreter import Classes, Reader
from kproto.codec.registry import plan_of, structs_of
from kproto.codec.structs import MessageStruct
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.dialects import Dialect
from kproto.errors import DecodeError, KprotoError
from kproto.partial import FrameLayout, request_layout, response_layout
from kproto.records.crc import crc32, crc32c
from kproto.records.message_set import ENTRY_HEADER, LEAST_MESSAGE
from kproto.records.record_batch import CHECKED, CRC, HEADER_SIZE
from wiredump.model import Frame, SalvagedBatches
from wiredump.rows.fields import id_as_text

__all__ = ["salvaged_request", "salvaged_response"]

_SIZE_LENGTH: Final = 4
_MAGIC: Final = 16
_OLD_CRC, _OLD_CHECKED = 12, 16
_MOST_PARTITIONS: Final = 1 << 20
_LONGEST_HEADER: Final = 4096
"""The most bytes to look through for the header of a partition, in front of its first batch."""
_HIGHEST_ERROR: Final = 1000
_LEAST_CREDIT: Final = 8 << 20
_CREDIT_PER_BYTE: Final = 16
"""How many bytes of candidates may be read in vain, at the least and for each byte of a frame."""
_A_CANDIDATE: Final = 256
"""How many bytes a candidate counts for beside those that are read."""

_batch: Final = re.compile(
    # No size below that of the smallest message: runs of zeros would be candidates.
    rb"(?=\x00[\s\S]{7}(?!\x00{3}[\x00-\x0d])[\x00-\x06][\s\S]{7}(?:\x02[\s\S]{4}\x00|[\x00\x01]))"
)
_topic_name: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_int32: Final = Struct(">i").unpack_from
_int64: Final = Struct(">q").unpack_from
_uint32: Final = Struct(">I").unpack_from
_start: Final = itemgetter(0)


def salvaged_request(codec: Dialect, frame: Frame) -> Frame:
    """Return the frame of a request with its whole batches in place of the bytes behind holes."""
    try:
        layout = request_layout(codec, frame.raw)
    except KprotoError:
        return _without_parts(frame)
    return _salvaged(frame, layout)


def salvaged_response(codec: Dialect, frame: Frame, api_key: int, version: int) -> Frame:
    """Return the frame of a response with its whole batches in place of the bytes behind holes."""
    try:
        layout = response_layout(codec, api_key=api_key, api_version=version)
    except KprotoError:
        return _without_parts(frame)
    return _salvaged(frame, layout)


def _without_parts(frame: Frame) -> Frame:
    return msgspec.structs.replace(frame, behind=()) if frame.behind else frame


def _salvaged(frame: Frame, layout: FrameLayout) -> Frame:
    shape = _shape(layout)
    if shape is None:
        return _without_parts(frame)
    found = tuple(_Salvage(frame, shape).found())
    return msgspec.structs.replace(frame, behind=(), salvaged=found)


class _Shape(NamedTuple):
    """Where a message has record batches: in ``partitions`` of ``topics``."""

    header: StructPlan
    root: StructPlan
    classes: Classes
    topics: FieldPlan
    topic: StructPlan
    partitions: FieldPlan
    partition: StructPlan
    number: FieldPlan
    """The field of a partition that has its number."""


@lru_cache(maxsize=256)
def _shape(layout: FrameLayout) -> _Shape | None:
    """Return the shape; None if the message has no record batches."""
    root = plan_of(layout.body, layout.version).root
    header = plan_of(layout.header, layout.header_version).root
    classes = {**structs_of(layout.header), **structs_of(layout.body)}
    for topics in root.inline:
        for partitions in topics.struct.inline if topics.struct is not None else ():
            inside = partitions.struct.inline if partitions.struct is not None else ()
            numbers = [each for each in inside if each.kind == "int32"]
            if any(each.is_records for each in inside) and numbers:
                assert topics.struct is not None
                assert partitions.struct is not None
                return _Shape(
                    header, root, classes, topics, topics.struct, partitions, partitions.struct,
                    numbers[0],
                )  # fmt: skip
    return None


class _Known(NamedTuple):
    """Which bytes were captured: where each part begins and ends, in order."""

    parts: list[tuple[int, int]]

    def has(self, start: int, end: int) -> bool:
        """Whether all bytes from ``start`` to ``end`` were captured."""
        at = bisect_right(self.parts, start, key=_start) - 1
        return start == end or (at >= 0 and end <= self.parts[at][1])


class _HoleError(Exception):
    """A byte is needed that was not captured."""


class _SparseReader(Reader):
    """Reads bytes with holes. ``number`` and ``records`` are those of the partition that was read
    last, even if it was not read to its end: its number, and where its records are."""

    __slots__ = ("known", "number", "number_field", "records")

    def __init__(
        self, data: bytes, size: int, classes: Classes, known: _Known, number: FieldPlan
    ) -> None:
        super().__init__(data, classes, size)
        self.known = known
        self.number_field = number
        self.number = -1
        self.records: tuple[int, int] | None = None

    def partition(self, plan: StructPlan, at: int) -> tuple[MessageStruct, int]:
        """Read a partition; returns it and where it ends."""
        self.number, self.records = -1, None
        return self.struct(plan, at, "")

    def need(self, at: int, size: int, start: int, path: str) -> None:
        if not self.known.has(at, at + size):
            raise _HoleError

    def varint(self, at: int, start: int, path: str) -> tuple[int, int]:
        value, end = super().varint(at, start, path)
        self.need(at, end - at, start, path)
        return value, end

    def field(self, item: FieldPlan, at: int, path: str) -> tuple[Any, int]:
        value, end = super().field(item, at, path)
        if item is self.number_field:
            self.number = value
        return value, end

    def value(
        self, kind: str, item: FieldPlan, nullable: bool, at: int, path: str
    ) -> tuple[Any, int]:
        if not item.is_records:
            return super().value(kind, item, nullable, at, path)
        length, start = self.length(item.compact, False, at, path)
        if length is None:
            return None, start
        if length > self.size - start:
            raise DecodeError("the records exceed the frame", offset=at, path=path)
        self.records = start, start + length
        return b"", start + length


class _Origin(NamedTuple):
    topic: str | None
    topic_id: uuid.UUID | None
    partition: int
    is_certain: bool = True
    """Whether no topic can have begun unseen since the last one that was seen."""


class _Salvage:
    """Reads the frame from its beginning, as long as it knows what comes next; otherwise it is
    lost, and looks for the next batch."""

    def __init__(self, frame: Frame, shape: _Shape) -> None:
        parts = [(0, frame.raw), *frame.behind]
        end = max(start + len(raw) for start, raw in parts)
        data = bytearray(end)
        for start, raw in parts:
            data[start : start + len(raw)] = raw
        self._data = bytes(data)
        self._size = frame.size
        self._known = _Known([(start, start + len(raw)) for start, raw in parts])
        self._shape = shape
        self._reader = _SparseReader(
            self._data, frame.size, shape.classes, self._known, shape.number
        )
        self._credit = _LEAST_CREDIT + _CREDIT_PER_BYTE * end
        self._at = _SIZE_LENGTH
        self._lost = False
        self._topics: int | None = None
        """How many the frame has; None if that is lost."""
        self._seen = 0
        """How many of them have begun."""
        self._partitions: int | None = 0
        """How many of the current topic are left; None if that is lost."""
        self._in_topic = False
        self._origin = _Origin(None, None, -1)
        self._unplaced = 0
        """The number of batches of unknown partitions."""
        self._value: MessageStruct | None = None
        """The partition that was looked at last, if it could be read to its end."""
        self._found: list[tuple[_Origin, SalvagedBatches]] = []

    def found(self) -> Iterator[SalvagedBatches]:
        """Return what can be read, in order."""
        self._try(self._head)
        while self._at < len(self._data):
            if not self._lost:
                self._try(self._step)
            elif not self._resume():
                break
        all_seen = self._seen == self._topics
        for origin, each in self._found:
            if origin.is_certain or all_seen:
                yield each
            else:
                yield each._replace(topic=None, topic_id=None)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (_HoleError, DecodeError):
            self._lost = True

    # -- as long as it is known what comes next ------------------------------------------------

    def _head(self) -> None:
        shape, reader = self._shape, self._reader
        _, at = reader.struct(shape.header, self._at, "")
        for item in shape.root.inline:
            if item is shape.topics:
                break
            _, at = reader.field(item, at, "")
        count, self._at = reader.length(shape.topics.compact, False, at, "")
        self._topics = count or 0

    def _step(self) -> None:
        partitions = self._partitions
        if self._in_topic and (
            partitions or (partitions is None and self._may_be_partition(self._at))
        ):
            self._partition()
        elif self._in_topic:
            self._end_topic()
        elif self._topics is not None and self._seen >= self._topics:
            self._end()
        else:
            self._topic()

    def _partition(self) -> None:
        reader = self._reader
        try:
            self._at = reader.partition(self._shape.partition, self._at)[1]
        finally:
            if reader.records is not None:
                start, end = reader.records
                self._at = max(self._at, end)
                self._take_field(start, end, self._origin._replace(partition=reader.number))
        if self._partitions:
            self._partitions -= 1

    def _end_topic(self) -> None:
        shape = self._shape
        fields = shape.topic.inline
        at = self._at
        for item in fields[fields.index(shape.partitions) + 1 :]:
            _, at = self._reader.field(item, at, "")
        if shape.topic.flexible:
            at = self._reader.tagged_section(shape.topic, at, "", {})
        self._at, self._in_topic = at, False

    def _end(self) -> None:
        """End behind the last topic, unless partitions of it may follow."""
        root, at = self._shape.root, self._at
        if self._partitions is None:
            for item in root.inline[root.inline.index(self._shape.topics) + 1 :]:
                _, at = self._reader.field(item, at, "")
            if root.flexible:
                at = self._reader.tagged_section(root, at, "", {})
            if at != self._size:
                raise _HoleError
        self._at = len(self._data)

    def _topic(self) -> None:
        origin, count, end = self._read_topic(self._at)
        if self._partitions is None and not _is_plausible(origin, count):
            raise _HoleError
        self._begin_topic(origin, count)
        self._at = end

    def _begin_topic(self, origin: _Origin, count: int) -> None:
        self._origin, self._partitions, self._in_topic = origin, count, True
        self._seen += 1

    def _read_topic(self, at: int) -> tuple[_Origin, int, int]:
        """Return a topic, the number of its partitions, and where the first one begins."""
        name = topic_id = None
        for item in self._shape.topic.inline:
            if item is self._shape.partitions:
                break
            value, at = self._reader.field(item, at, "")
            if item.kind == "string":
                name = value
            elif item.kind == "uuid" and value.int:
                topic_id = value
        count, at = self._reader.length(self._shape.partitions.compact, False, at, "")
        return _Origin(name, topic_id, -1), count or 0, at

    # -- a field of records --------------------------------------------------------------------

    def _take_field(self, start: int, end: int, origin: _Origin) -> None:
        if origin.is_certain and self._known.has(start, end):
            self._take(origin, 0, start, end)
            return
        number = run_number = 0
        run = at = start
        while at < end:
            size = self._entry_size(at)
            stop = at + (size or 0)
            if size is not None and not origin.is_certain and self._known.has(at, stop):
                size = size if self._is_batch(at, end) else None
            if size is None or stop > end:
                self._take(origin, run_number, run, at)
                run = at = self._next_batch(at + 1, end)
                run_number = number
                continue
            number += 1
            if not self._known.has(at, stop):
                self._take(origin, run_number, run, at)
                run, run_number = stop, number
            at = stop
        self._take(origin, run_number, run, min(at, end))

    def _take(self, origin: _Origin, number: int, start: int, end: int) -> None:
        if start < end:
            topic_id = None if origin.topic_id is None else id_as_text(origin.topic_id.bytes)
            batches = SalvagedBatches(
                origin.topic, topic_id, origin.partition, number, self._count(start, end), start,
                self._data[start:end],
            )  # fmt: skip
            self._found.append((origin, batches))

    def _count(self, at: int, end: int) -> int:
        """Return the number of whole batches between two places."""
        count = 0
        while at < end and (size := self._entry_size(at)) is not None and at + size <= end:
            at += size
            count += 1
        return count

    def _entry_size(self, at: int) -> int | None:
        """Return the size of the batch at ``at`` by its header; None if that is lost or wrong."""
        if not self._known.has(at, at + _MAGIC + 1):
            if not self._known.has(at, at + ENTRY_HEADER):
                return None
            magic = 0
        else:
            magic = self._data[at + _MAGIC]
        size: int = _int32(self._data, at + 8)[0]
        least = HEADER_SIZE - ENTRY_HEADER if magic == 2 else LEAST_MESSAGE
        return None if magic > 2 or size < least else ENTRY_HEADER + size

    def _next_batch(self, at: int, end: int) -> int:
        """Return where the next whole batch begins whose checksum fits; ``end`` without one."""
        data = self._data
        while (match := _batch.search(data, at, min(end, len(data)))) is not None:
            at = match.start()
            if self._is_batch(at, end):
                return at
            at += 1
        return end

    def _is_batch(self, at: int, end: int) -> bool:
        """Whether a whole batch begins at ``at``."""
        size = self._entry_size(at)
        if size is None or at + size > end or not self._known.has(at, at + size):
            return False
        self._credit -= size + _A_CANDIDATE
        if self._credit < 0:
            return False
        data, stop = self._data, at + size
        if data[at + _MAGIC] == 2:
            fits = crc32c(data, at + CHECKED, stop) == _uint32(data, at + CRC)[0]
        else:
            fits = crc32(data[at + _OLD_CHECKED : stop]) == _uint32(data, at + _OLD_CRC)[0]
        if fits:
            self._credit += size + _A_CANDIDATE
        return bool(fits)

    # -- lost ----------------------------------------------------------------------------------

    def _resume(self) -> bool:
        """Continue at the next batch; returns False without one."""
        end = len(self._data)
        start = self._next_batch(self._at, end)
        if start == end:
            return False
        header = self._header_before(start)
        if header is not None:
            self._continue_at(header)
            return True
        at, number = start, self._unplaced
        while at < end and self._is_batch(at, end):
            at += self._entry_size(at) or 0
            self._unplaced += 1
        self._take(_Origin(None, None, -1), number, start, at)
        self._at = at
        return True

    def _continue_at(self, partition: int) -> None:
        """Continue at the header of a partition, perhaps with a topic's in front of it."""
        before = range(partition - 1, max(self._at, partition - _LONGEST_HEADER) - 1, -1)
        self._origin = self._origin._replace(is_certain=False)
        self._partitions, self._in_topic = None, True
        for at in before if self._topics != self._seen else ():
            self._credit -= _A_CANDIDATE
            if self._credit < 0:
                break
            with suppress(_HoleError, DecodeError):
                origin, count, end = self._read_topic(at)
                if end == partition and _is_plausible(origin, count):
                    self._begin_topic(origin, count)
                    break
        self._at, self._lost = partition, False

    def _header_before(self, batch: int) -> int | None:
        """Return where the partition begins whose records begin at ``batch``; None if that is
        lost, or if its fields may be understood in several ways."""
        least = self._shape.partition.min_size
        offset = _int64(self._data, batch)[0]
        found: list[tuple[int, bool, int, int]] = []
        for at in range(batch - 4, max(self._at, batch - _LONGEST_HEADER) - 1, -1):
            if batch - at < least - 1 or self._data[at]:
                continue
            self._credit -= _A_CANDIDATE
            if self._credit < 0:
                break
            if self._may_be_partition(at, batch):
                assert self._reader.records is not None
                is_below = getattr(self._value, "high_watermark", offset + 1) > offset
                found.append((self._reader.records[1], is_below, self._reader.number, at))
        best = [each for each in found if each[:2] == max(found)[:2]]
        return best[0][-1] if len({number for _, _, number, _ in best}) == 1 else None

    def _may_be_partition(self, at: int, batch: int | None = None) -> bool:
        """Whether a partition begins at ``at``, with records that begin at ``batch``, which is
        whole."""
        reader = self._reader
        self._value = None
        with suppress(_HoleError, DecodeError):
            self._value, _ = reader.partition(self._shape.partition, at)
        records = reader.records
        if not 0 <= reader.number < _MOST_PARTITIONS or (self._value is None and records is None):
            return False
        if not -1 <= getattr(self._value, "error_code", 0) <= _HIGHEST_ERROR:
            return False
        if records is None or records[0] == records[1]:
            return batch is None
        first = records[0]
        size = self._entry_size(first) or 0
        if batch not in (None, first) or self._data[first] or first + size > records[1]:
            return False
        if self._known.has(first, first + size) and not self._is_batch(first, records[1]):
            return False
        return self._are_batches(*records)

    def _are_batches(self, at: int, end: int) -> bool:
        """Whether the bytes from ``at`` to ``end`` may be batches, of which a broker cuts the
        last, as far as they are known."""
        while at < end and self._known.has(at, min(end, at + _MAGIC + 1)):
            size = self._entry_size(at)
            if size is None or end - at <= _MAGIC:
                return False
            at += size
        return True


def _is_plausible(origin: _Origin, count: int) -> bool:
    """Whether the bytes that were read as a topic's header are one: a legal name or a random
    UUID."""
    if not 0 < count < _MOST_PARTITIONS:
        return False
    if origin.topic is not None:
        return _topic_name.fullmatch(origin.topic) is not None
    return origin.topic_id is not None and origin.topic_id.version == 4
