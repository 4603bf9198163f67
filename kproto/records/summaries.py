"""Record batches in words, for people: offsets, producer, keys, values and headers."""

from __future__ import annotations

from typing import Any, Final

from kproto.errors import KprotoError
from kproto.records.batch import Batch
from kproto.records.batches import RecordBatches
from kproto.records.model import Record

__all__ = ["summarize_batches"]

_MOST_BATCHES: Final = 20
_MOST_RECORDS: Final = 20
_MOST_BYTES: Final = 100


def summarize_batches(data: bytes | bytearray | memoryview) -> list[dict[str, Any]]:
    """Return a description of each batch as JSON values, at most 20 of 20 records each.

    A batch that cannot be read, such as one that is cut off, is described by its ``problem``.
    """
    found: list[dict[str, Any]] = []
    try:
        for batch in RecordBatches(data, check_crc=False):
            if len(found) == _MOST_BATCHES:
                found.append({"more": "..."})
                break
            found.append(_batch(batch))
    except KprotoError as error:
        found.append({"problem": str(error)})
    return found


def _batch(batch: Batch) -> dict[str, Any]:
    made: dict[str, Any] = {"offsets": f"{batch.base_offset}-{batch.last_offset}"}
    if batch.compression:
        made["codec"] = batch.compression.name.lower()
    if batch.producer_id >= 0:
        made["producer"] = f"{batch.producer_id}/{batch.producer_epoch}"
        made["sequence"] = batch.base_sequence
    if batch.is_transactional:
        made["transactional"] = True
    if batch.is_control:
        made["control"] = True
    try:
        if not batch.crc_is_right():
            made["problem"] = "wrong checksum"
        records = batch.records()
    except (KprotoError, ValueError) as error:
        return {**made, "problem": str(error)}
    made["records"] = [_record(each) for each in records[:_MOST_RECORDS]]
    if len(records) > _MOST_RECORDS:
        made["more"] = len(records) - _MOST_RECORDS
    return made


def _record(record: Record) -> dict[str, Any]:
    made: dict[str, Any] = {"value": _text(record.value)}
    if record.key is not None:
        made = {"key": _text(record.key), **made}
    if record.headers:
        made["headers"] = [[name, _text(value)] for name, value in record.headers[:_MOST_RECORDS]]
    return made


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    shown = value[:_MOST_BYTES]
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        text = f"0x{shown.hex()}"
    return text + "..." if len(value) > _MOST_BYTES else text
