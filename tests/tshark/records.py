"""Batches and records of a frame against tshark's, in their order."""

from collections.abc import Iterator
from datetime import UTC, datetime

from kproto.annotate import FrameField
from kproto.records import Batch, RecordBatches
from tests.tshark.pdml import Field
from tests.tshark.values import whole_number

__all__ = ["record_differences"]

NOT_OURS = frozenset({"message_compression_reduction"})
"""What tshark works out."""


def record_differences(
    records: list[FrameField], theirs: list[Field]
) -> tuple[int, list[tuple[str, str]]]:
    """How many fields were compared, and (name, what is wrong) of those that differ."""
    ours = [each for row in records for each in _fields(row.value)]
    named = [(each.name.removeprefix("kafka."), each) for each in theirs]
    named = [(name, each) for name, each in named if name not in NOT_OURS]
    differences = []
    for (name, each), (our_name, value) in zip(named, ours, strict=False):
        if name != our_name:
            differences.append((name, f"stands where {our_name} is"))
            return len(differences), differences
        if not _same(each, value):
            differences.append((name, f"{each.show[:40]!r}, and ours is {str(value)[:40]!r}"))
    compared = min(len(named), len(ours))
    if len(named) != len(ours):
        differences.append(("records", f"{len(named)} fields, and ours are {len(ours)}"))
        compared += 1
    return compared, differences


def _fields(data: bytes) -> Iterator[tuple[str, int | str | bytes | datetime | None]]:
    """As tshark lists them."""
    for batch in RecordBatches(data, allow_partial=True):
        yield from _batch(batch)


def _batch(batch: Batch) -> Iterator[tuple[str, int | str | bytes | datetime | None]]:
    header = batch.data
    yield "offset", batch.base_offset
    yield "message_size", batch.size - 12
    yield "leader_epoch", batch.partition_leader_epoch
    yield "message_magic", batch.magic
    yield "batch_crc", batch.crc
    yield "batch_codec", int(batch.compression)
    yield "batch_timestamp_type", int(batch.timestamp_type)
    yield "batch_transactional", int(batch.is_transactional)
    yield "batch_control_batch", int(batch.is_control)
    yield "batch_last_offset_delta", batch.last_offset - batch.base_offset
    yield "batch_first_timestamp", _time(int.from_bytes(header[27:35], "big", signed=True))
    yield "batch_last_timestamp", _time(batch.max_timestamp)
    yield "producer_id", batch.producer_id
    yield "producer_epoch", batch.producer_epoch
    yield "batch_base_sequence", batch.base_sequence
    records = batch.records()
    yield "batch_size", len(records)
    for record in records:
        yield "record_attributes", 0
        yield "message_timestamp", _time(record.timestamp)
        yield "offset", record.offset
        yield "message_key", record.key
        yield "message_value", record.value
        for key, value in record.headers:
            yield "header_key", key
            yield "header_value", value


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _same(theirs: Field, ours: int | str | bytes | datetime | None) -> bool:
    if ours is None:
        return theirs.show == ""
    if isinstance(ours, int):
        return whole_number(theirs.show) == ours
    if isinstance(ours, bytes):
        return theirs.raw == ours and theirs.show == ours.hex(":")
    if isinstance(ours, str):
        return theirs.show == ours
    whole, _, fraction = theirs.show.removesuffix(" UTC").partition(".")
    shown = datetime.strptime(whole, "%b %d, %Y %H:%M:%S").replace(tzinfo=UTC)
    return shown.timestamp() + float(f"0.{fraction or 0}") == round(ours.timestamp(), 3)
