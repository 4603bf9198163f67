"""Produce requests, Fetch and ShareFetch responses to rows of batches and records.

What cannot be read becomes a row of anomalies with the reason, and what came before it its rows.
Only ``name_of`` knows more than the item says: the names of topic ids.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

from kproto.errors import KprotoError
from kproto.records import Batch, Record, RecordBatches, TimestampType
from wiredump.bodies import Bodies
from wiredump.model import Anomaly, Exchange, Frame
from wiredump.rows.exchanges import Row, anomaly_row

__all__ = ["NameOf", "batch_rows", "carries_records", "completed_ns", "value_hash"]

NameOf: TypeAlias = Callable[[str, int], str | None]
"""A topic id and a time to the name that had been seen by then."""

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78

NO_TOPIC_ID: Final = "A" * 22
"""The zero uuid, which stands for none."""

_HASH_BYTES: Final = 16
_TIMESTAMPS: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "none",
    TimestampType.CREATE_TIME: "create",
    TimestampType.LOG_APPEND_TIME: "append",
}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class _Field(NamedTuple):
    """One field of type ``records``, and whose it is."""

    item: Exchange
    frame: Frame
    topic: str | None
    topic_id: str | None
    partition: int
    data: bytes

    @property
    def name(self) -> str:
        return f"{self.topic or self.topic_id}-{self.partition}"


def carries_records(api_key: int) -> bool:
    """Whether messages of the api have batches."""
    return api_key in (PRODUCE, FETCH, SHARE_FETCH)


def value_hash(value: bytes | None) -> bytes | None:
    """The same on every machine and in every release."""
    return None if value is None else blake2b(value, digest_size=_HASH_BYTES).digest()


def completed_ns(item: Exchange) -> int:
    """When the last of an exchange was there."""
    frame = item.response or item.request
    return frame.last_ns if frame is not None else item.connection.opened_ns


def batch_rows(
    item: Exchange, bodies: Bodies, name_of: NameOf, *, values: bool = False
) -> Iterator[Row]:
    """Rows of ``batches``, ``records``, and ``anomalies``. Never raises for what the bytes are."""
    for field in _fields(item, bodies, name_of):
        yield from _rows(field, values)


def _fields(item: Exchange, bodies: Bodies, name_of: NameOf) -> Iterator[_Field]:
    if not carries_records(item.api_key):
        return
    produced = item.api_key == PRODUCE
    side, frame = (bodies.request, item.request) if produced else (bodies.response, item.response)
    if side is None or frame is None or side.body is None:
        return
    topics, partitions, name, index = (
        ("topicData", "partitionData", "name", "index")
        if produced
        else ("responses", "partitions", "topic", "partitionIndex")
    )
    for topic in side.body.get(topics) or ():
        topic_id = topic.get("topicId")
        topic_id = None if topic_id == NO_TOPIC_ID else topic_id
        known = topic.get(name)
        if known is None and topic_id is not None:
            known = name_of(topic_id, completed_ns(item))
        for each in topic.get(partitions) or ():
            text = each.get("records")
            if text:
                data = base64.b64decode(text)
                yield _Field(item, frame, known, topic_id, each.get(index, -1), data)


def _rows(field: _Field, values: bool) -> Iterator[Row]:
    batches = iter(
        RecordBatches(
            field.data, check_crc=False, allow_partial=field.frame.direction == "response"
        )
    )
    number = 0
    while True:
        try:
            batch = next(batches, None)
        except KprotoError as error:
            yield _undecodable(field, f"batch {number} and what follows: {error}")
            return
        if batch is None:
            return
        yield from _batch(field, number, batch, values)
        number += 1


def _undecodable(field: _Field, reason: str) -> Row:
    item, frame = field.item, field.frame
    return anomaly_row(
        Anomaly(
            "undecodable-batch",
            f"{field.name}: {reason}",
            frame.place,
            frame.first_ns,
            item.connection,
            frame.direction,
            frame.offset,
        )
    )


def _batch(field: _Field, number: int, batch: Batch, values: bool) -> Iterator[Row]:
    frame = field.frame
    whose = (field.item.connection.id, frame.direction, frame.offset)
    topic = (field.topic, field.topic_id, field.partition, number)
    problems: list[str] = []
    records: list[Record] | None = None
    crc_ok: bool | None = None
    try:
        crc_ok = batch.crc_is_right()
        records = batch.records()
        base_offset: int | None = batch.base_offset
    except KprotoError as error:
        problems.append(str(error))
        base_offset = batch.base_offset if batch.magic == 2 else None
    if crc_ok is False:
        problems.append("the checksum does not fit")
    codec = batch.attributes & 7
    yield (
        "batches",
        (
            *whose, frame.last_ns, field.item.api_key, *topic,
            base_offset, batch.last_offset, batch.magic,
            _CODECS[codec] if codec < len(_CODECS) else f"codec {codec}",
            _TIMESTAMPS[batch.timestamp_type],
            None if batch.magic == 0 else batch.max_timestamp,
            _known(batch.partition_leader_epoch), _known(batch.producer_id),
            _known(batch.producer_epoch), _known(batch.base_sequence),
            batch.is_transactional, batch.is_control, crc_ok, batch.size,
            None if records is None else len(records),
        ),
    )  # fmt: skip
    for problem in problems:
        yield _undecodable(field, f"batch {number}: {problem}")
    if records is not None and not batch.is_control:
        for record in records:
            yield "records", (*whose, *topic, *_record(record, batch.magic, values))


def _known(value: int) -> int | None:
    return None if value == -1 else value


def _record(record: Record, magic: int, values: bool) -> tuple[Any, ...]:
    value = record.value
    return (
        record.offset,
        None if magic == 0 else record.timestamp,
        record.key,
        None if value is None else len(value),
        value_hash(value),
        len(record.headers),
        value if values else None,
    )
