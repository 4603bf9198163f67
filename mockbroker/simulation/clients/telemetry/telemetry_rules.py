"""What brokers refuse of GetTelemetrySubscriptions and PushTelemetry, as rows in Kafka's order."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse

__all__ = [
    "EXPIRY_ROWS",
    "EXPORT_ROWS",
    "GET_ROWS",
    "ID_ROWS",
    "PUSH_ROWS",
    "Departure",
    "ExportAttempt",
    "GetAttempt",
    "IdAttempt",
    "PushAttempt",
]

_RESERVED: Final = frozenset({ZERO_UUID, uuid.UUID(int=1)})
_COMPRESSIONS: Final = range(5)
"""none, gzip, snappy, lz4, zstd"""


class _Attempt(Refusable, msgspec.Struct):
    code: ErrorCode = ErrorCode.NONE


class IdAttempt(_Attempt):
    """The client instance id of a push."""

    instance_id: uuid.UUID = ZERO_UUID


class GetAttempt(_Attempt):
    """A GetTelemetrySubscriptions. ``on_time``: the push interval has passed since the last request
    that was on time. ``last_error`` is that of the last push."""

    on_time: bool = True
    last_error: ErrorCode = ErrorCode.NONE


class PushAttempt(_Attempt):
    """A PushTelemetry. ``terminated``: the push before it was said to be the last."""

    terminated: bool = False
    on_time: bool = True
    terminating: bool = False
    subscription_id: int = 0
    expected_id: int = 0
    compression: int = 0
    size: int = 0
    max_bytes: int = 0


class ExportAttempt(_Attempt):
    """Metrics that the broker gives to its receiver. ``size`` is that without compression, None if
    they cannot be decompressed."""

    size: int | None = 0
    max_bytes: int = 0


class Departure(msgspec.Struct):
    """The connection on which a client instance was made has closed."""

    forgets: bool = False

    def forget(self) -> None:
        """Forget the instance at once."""
        self.forgets = True


EXPIRY_ROWS: Final[Sequence[Row[Departure, Departure]]] = (
    Row("TELEM-19", always, (Departure.forget,), since=(4, 0)),
)

GET_ROWS: Final[Sequence[Row[GetAttempt, GetAttempt]]] = (
    Row(
        "TELEM-11",
        lambda get: not get.on_time,
        (refuse(ErrorCode.THROTTLING_QUOTA_EXCEEDED),),
        until=(4, 1),
    ),
    Row(
        "TELEM-11",
        lambda get: (
            not get.on_time
            and get.last_error
            not in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        ),
        (refuse(ErrorCode.THROTTLING_QUOTA_EXCEEDED),),
        since=(4, 1),
    ),
)

ID_ROWS: Final[Sequence[Row[IdAttempt, IdAttempt]]] = (
    Row(
        "TELEM-12", lambda push: push.instance_id in _RESERVED, (refuse(ErrorCode.INVALID_REQUEST),)
    ),
)

PUSH_ROWS: Final[Sequence[Row[PushAttempt, PushAttempt]]] = (
    Row("TELEM-13", lambda push: push.terminated, (refuse(ErrorCode.INVALID_REQUEST),)),
    Row(
        "TELEM-14",
        lambda push: not push.on_time and not push.terminating,
        (refuse(ErrorCode.THROTTLING_QUOTA_EXCEEDED),),
    ),
    Row(
        "TELEM-15",
        lambda push: push.subscription_id != push.expected_id,
        (refuse(ErrorCode.UNKNOWN_SUBSCRIPTION_ID),),
    ),
    Row(
        "TELEM-16",
        lambda push: push.compression not in _COMPRESSIONS,
        (refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),),
    ),
    Row(
        "TELEM-17",
        lambda push: push.size > push.max_bytes,
        (refuse(ErrorCode.TELEMETRY_TOO_LARGE),),
    ),
)

EXPORT_ROWS: Final[Sequence[Row[ExportAttempt, ExportAttempt]]] = (
    Row("TELEM-18", lambda export: export.size is None, (refuse(ErrorCode.INVALID_RECORD),)),
    Row(
        "TELEM-18",
        lambda export: (export.size or 0) > export.max_bytes,
        (refuse(ErrorCode.INVALID_RECORD),),
        since=(4, 3),
    ),
)
