"""Stored logs as bytes: Kafka's segment files beside the batches that the mock keeps.

Batches must be equal byte for byte, offsets and leader epochs included. Where the broker set the
time, the largest timestamp and the checksum are left out, and in transactions the producer's id;
where it compressed a batch anew, the records are compared instead of the compressor's bytes. Of
``__consumer_offsets`` the records of a program's groups are compared, with keys and values decoded.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.group_metadata_value import GroupMetadataValue
from kproto.messages.offset_commit_key import OffsetCommitKey
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.records import RecordBatches
from kproto.records.model import CODEC_MASK, CONTROL, LOG_APPEND_TIME_BIT, TRANSACTIONAL
from kproto.records.record_batch import HEADER, HEADER_SIZE
from mockbroker import MockCluster
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["StoredLog", "differing_batches", "group_records", "kafka_log", "mock_log"]

_OVERHEAD: Final = 12
_LENGTH: Final = struct.Struct(">i")
_TYPE: Final = struct.Struct(">h")
_CRC: Final = slice(17, 21)
_BASE_TIMESTAMP: Final = slice(27, 35)
_MAX_TIMESTAMP: Final = slice(35, 43)
_PRODUCER_ID: Final = slice(43, 51)
_CLOCKS: Final = frozenset({"commitTimestamp", "currentStateTimestamp"})


class StoredLog(NamedTuple):
    """``segments`` are the offsets at which files begin."""

    segments: list[int]
    batches: list[bytes]

    def since(self, offset: int) -> StoredLog:
        """The log as it is without what lies whole before an offset."""
        return StoredLog(
            [each for each in self.segments if each > offset],
            [each for each in self.batches if _last_offset(each) >= offset],
        )


def kafka_log(folder: Path, tp: TopicPartition) -> StoredLog:
    """The partition in a broker's log directory."""
    files = sorted((folder / f"{tp[0]}-{tp[1]}").glob("*.log"))
    data = b"".join(file.read_bytes() for file in files)
    return StoredLog([int(file.stem) for file in files], list(_batches(data)))


def mock_log(mock: MockCluster, tp: TopicPartition) -> tuple[StoredLog, int]:
    """The same of the mock, and the offset at which its log starts."""
    log = mock.cluster.logs.log(tp)
    data = b"".join(log.storage.read(0, len(log.storage)))
    segments = [segment.base_offset for segment in log.segments]
    return StoredLog(segments, list(_batches(data))), log.start_offset


def _batches(data: bytes) -> Iterator[bytes]:
    """Whole batches; a file that is being written may end with a part of one."""
    at = 0
    while at + HEADER_SIZE <= len(data):
        behind = at + _OVERHEAD + _LENGTH.unpack_from(data, at + 8)[0]
        if behind > len(data):
            return
        yield data[at:behind]
        at = behind


def _last_offset(batch: bytes) -> int:
    header = HEADER.unpack_from(batch)
    return int(header[0] + header[6])


def differing_batches(kafka: StoredLog, mock: StoredLog, *, recompressed: bool) -> list[str]:
    """What differs, in words. ``recompressed``: the broker compresses what clients send."""
    found = []
    if kafka.segments != mock.segments:
        found.append(f"segments: {kafka.segments} / {mock.segments}")
    if len(kafka.batches) != len(mock.batches):
        found.append(f"batches: {len(kafka.batches)} / {len(mock.batches)}")
    for theirs, ours in zip(kafka.batches, mock.batches, strict=False):
        shown = [_comparable(each, recompressed=recompressed) for each in (theirs, ours)]
        if shown[0] != shown[1]:
            found.append(f"batch at {HEADER.unpack_from(theirs)[0]}: {shown[0]!r} / {shown[1]!r}")
    return found


def _comparable(batch: bytes, *, recompressed: bool) -> Any:
    attributes = batch[22]
    if recompressed and attributes & CODEC_MASK:
        header = list(HEADER.unpack_from(batch))
        del header[4], header[1]  # checksum and length
        if attributes & LOG_APPEND_TIME_BIT:
            del header[6]
        (read,) = RecordBatches(batch)
        times = [] if attributes & LOG_APPEND_TIME_BIT else [each.timestamp for each in read]
        rows = [(each.offset, each.key, each.value, each.headers) for each in read]
        return header, times, rows
    masked = bytearray(batch)
    if attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL):
        masked[_CRC] = bytes(4)
    if attributes & (LOG_APPEND_TIME_BIT | CONTROL):
        masked[_MAX_TIMESTAMP] = bytes(8)
    if attributes & TRANSACTIONAL:
        masked[_PRODUCER_ID] = bytes(8)
    if attributes & CONTROL:
        masked[_BASE_TIMESTAMP] = bytes(8)
    return masked.hex()


# ---- __consumer_offsets --------------------------------------------------------------------------


def group_records(
    batches: Sequence[bytes], prefix: str, named: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Key and value of each record about a group whose name begins with ``prefix``. A value
    is None where the record deletes. ``named`` replaces ids that were drawn."""
    found = []
    for batch in RecordBatches(b"".join(batches)):
        for record in batch if not batch.is_control else ():
            key, value = _read(record.key, record.value)
            if key is not None and key["group"].startswith(prefix):
                found.append({"key": _named(key, named), "value": _named(value, named)})
    return [row for run in _runs(found) for row in run]


def _runs(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Neighbouring records of offsets are sorted: Kafka takes them from hash maps."""
    for of_offsets, run in groupby(rows, lambda row: "topic" in row["key"]):
        records = list(run)
        yield sorted(records, key=str) if of_offsets else records


def _read(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    """The pair as plain data; (None, None) for records of another kind."""
    (kind,) = _TYPE.unpack_from(key or b"\xff\xff")
    keys: dict[int, Any] = {
        0: (OffsetCommitKey, OffsetCommitValue),
        1: (OffsetCommitKey, OffsetCommitValue),
        2: (GroupMetadataKey, GroupMetadataValue),
    }
    if key is None or kind not in keys:
        return None, None
    key_class, value_class = keys[kind]
    read = json.loads(key_class.decode(key[2:], 0).to_json(0))
    if value is None:
        return {"type": kind, **read}, None
    (version,) = _TYPE.unpack_from(value)
    body = json.loads(value_class.decode(value[2:], version).to_json(version))
    return {"type": kind, **read}, {"version": version, **body}


def _named(value: Any, named: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {
            key: "<now>" if key in _CLOCKS and each >= 0 else _named(each, named)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return sorted((_named(each, named) for each in value), key=str)
    return named(value) if isinstance(value, str) else value
