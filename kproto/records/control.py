"""Control records: markers for clients and brokers (KIP-98; KRaft's KIP-595, KIP-630, KIP-853).

A control batch has magic 2 and is never compressed. A record's key is an int16 version and an int16
type. Its value is a message, which follows an int16 version at the end of a transaction and stands
alone for KRaft. All have version 0. Like Java, we read a later version as 0 and ignore fields that
we do not know.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple, Unpack

from kproto.codec.message import Message
from kproto.errors import DecodeError, EncodeError
from kproto.messages.end_txn_marker import EndTxnMarker
from kproto.messages.kraft_version_record import KRaftVersionRecord
from kproto.messages.leader_change_message import LeaderChangeMessage
from kproto.messages.snapshot_footer_record import SnapshotFooterRecord
from kproto.messages.snapshot_header_record import SnapshotHeaderRecord
from kproto.messages.voters_record import VotersRecord
from kproto.records.build import build_batch
from kproto.records.model import NO_PARTITION_LEADER_EPOCH, Record
from kproto.records.settings import BatchArguments

__all__ = [
    "ControlRecord",
    "ControlRecordType",
    "build_control_batch",
    "end_transaction_marker",
    "read_control_record",
]

VERSION: Final = 0
"""The version of the key and of every message so far."""
_KEY: Final = struct.Struct(">hh")
_SHORT: Final = struct.Struct(">h")


class ControlRecordType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_MESSAGES: Final[dict[ControlRecordType, type[Message]]] = {
    ControlRecordType.ABORT: EndTxnMarker,
    ControlRecordType.COMMIT: EndTxnMarker,
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}


class ControlRecord(NamedTuple):
    """The content of a control record."""

    type: int
    """A ControlRecordType, or the number of a type that is not known."""
    message: Message | None
    """None for a type that is not known."""


def read_control_record(record: Record) -> ControlRecord:
    """Return the marker in ``record``, a record of a control batch.

    Raises DecodeError whose path is ``key`` or ``value`` and whose offset counts within those
    bytes.
    """
    key = _whole(record.key, "key", _KEY.size)
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise DecodeError(f"version {version} is negative", offset=0, path="key")
    try:
        kind = ControlRecordType(number)
    except ValueError:
        return ControlRecord(number, None)
    if _MESSAGES[kind] is not EndTxnMarker:
        return ControlRecord(kind, _message(kind, _whole(record.value, "value", 0), 0))
    value = _whole(record.value, "value", _SHORT.size)
    if (version := _SHORT.unpack_from(value)[0]) < 0:
        raise DecodeError(f"version {version} is negative", offset=0, path="value")
    return ControlRecord(kind, _message(kind, value, _SHORT.size))


def _whole(data: bytes | None, path: str, least: int) -> bytes:
    if data is None or len(data) < least:
        left = "null" if data is None else f"left: {len(data)}"
        raise DecodeError(f"bytes needed: {least}, {left}", offset=0, path=path)
    return data


def _message(kind: ControlRecordType, value: bytes, at: int) -> Message:
    try:
        return _MESSAGES[kind].decode_from(value, VERSION, at)[0]
    except DecodeError as error:
        path = f"value.{error.path}" if error.path else "value"
        raise DecodeError(error.problem, offset=error.offset, path=path) from None


def build_control_batch(
    kind: ControlRecordType, message: Message, *, timestamp: int, **settings: Unpack[BatchArguments]
) -> bytes:
    """Build a control batch of one record. ``settings`` are fields of ``BatchSettings``.

    Kafka sets ``partition_leader_epoch`` on KRaft's batches, and a producer and
    ``is_transactional`` on those that end a transaction (as ``end_transaction_marker`` does).
    Raises EncodeError.
    """
    if type(message) is not _MESSAGES[kind]:
        problem = f"{kind.name} requires a {_MESSAGES[kind].__name__}"
        raise EncodeError(f"{problem}, not {type(message).__name__}", path="message")
    prefix = _SHORT.pack(VERSION) if isinstance(message, EndTxnMarker) else b""
    record = Record(
        timestamp=timestamp, key=_KEY.pack(VERSION, kind), value=prefix + message.encode(VERSION)
    )
    settings["is_control"] = True
    return build_batch([record], **settings)


def end_transaction_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Build the batch that ends a producer's transaction in a partition: committed or aborted."""
    return build_control_batch(
        ControlRecordType.COMMIT if commit else ControlRecordType.ABORT,
        EndTxnMarker(coordinator_epoch=coordinator_epoch),
        timestamp=timestamp,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        partition_leader_epoch=partition_leader_epoch,
    )
