"""Checks of single records: their keys in compacted topics, and their timestamps (KIP-467).

Records are decoded only if the survey of their batch leaves a check open (``needs_records``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kproto.error_codes import ErrorCode
from kproto.records.model import NO_TIMESTAMP, Record
from kproto.records.record import RecordSurvey
from mockbroker.simulation.log.batches.batch_header import BatchHeader
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import (
    Row,
    always,
    apply_first,
    rows_of_release,
    with_arguments,
)
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "RECORD_ROWS",
    "REJECTION_ROWS",
    "ArrivedRecord",
    "RecordChecks",
    "RecordError",
    "RecordErrors",
    "Rejection",
    "needs_records",
    "reject_at_first",
    "reject_record",
    "reject_with_all",
]

_SHOWN: Final = 3
"""The text of a rejection shows this many errors."""


class RecordError(NamedTuple):
    """Why a record is refused. ``batch_index`` counts the records of its
    batch from 0."""

    batch_index: int
    text: str | None
    error: ErrorCode


class Rejection(NamedTuple):
    """Why a batch is refused: the error of its partition with its text, and those of records.
    ``shows_start``: the answer has the log's start offset."""

    error: ErrorCode
    text: str | None
    record_errors: tuple[RecordError, ...]
    shows_start: bool


class ArrivedRecord(NamedTuple):
    """One record of a batch. ``says_append_time``: its batch claims that the broker set the time.
    Until 0.10 records have no time: ``timestamp`` is -1. ``is_partial``: Kafka does not read the
    keys and values of the batch, as it stays compressed as it is."""

    record: Record
    batch_index: int
    tp: TopicPartition
    settings: LogSettings
    now_ms: int
    says_append_time: bool
    is_partial: bool

    @property
    def kind(self) -> str:
        """What Kafka calls such a record in texts."""
        return "PartialDefaultRecord" if self.is_partial else "DefaultRecord"

    def size_of(self, field: bytes | None) -> int:
        """What Kafka says of the size of a key or value in texts."""
        if field is None:
            return -1 if self.is_partial else 0
        return len(field)

    @property
    def least_ms(self) -> int:
        return self.now_ms - self.settings.timestamp_before_max_ms

    @property
    def most_ms(self) -> int:
        return self.now_ms + self.settings.timestamp_after_max_ms

    @property
    def has_checked_time(self) -> bool:
        """Whether the topic has CreateTime, and the record a time."""
        return not self.settings.append_time and self.record.timestamp != NO_TIMESTAMP


@with_arguments
def reject_record(
    subject: tuple[ArrivedRecord, list[RecordError]], error: ErrorCode, text: str
) -> None:
    """Add an error whose text is filled in with the fields of the record and its place."""
    arrived, errors = subject
    filled_in = text.format(
        tp=f"{arrived.tp[0]}-{arrived.tp[1]}",
        timestamp=arrived.record.timestamp,
        offset=arrived.record.offset,
        least=arrived.least_ms,
        most=arrived.most_ms,
        kind=arrived.kind,
        key=arrived.size_of(arrived.record.key),
        value=arrived.size_of(arrived.record.value),
    )
    errors.append(RecordError(arrived.batch_index, filled_in, error))


_KEYLESS: Final = "Compacted topic cannot accept message without key in topic partition {tp}"
_OUT_OF_RANGE: Final = reject_record(
    ErrorCode.INVALID_TIMESTAMP,
    "Timestamp {timestamp} of message with offset {offset} is out of range. "
    "The timestamp should be within [{least}, {most}]",
)
_FORGED_TIME: Final = reject_record(
    ErrorCode.INVALID_TIMESTAMP,
    "Invalid timestamp type in message {kind}(offset={offset}, timestamp={timestamp}, "
    "key={key} bytes, value={value} bytes). "
    "Producer should not set timestamp type to LogAppendTime.",
)


def _has_no_key(arrived: ArrivedRecord) -> bool:
    return arrived.settings.compacted and arrived.record.key is None


def _is_out_of_range(arrived: ArrivedRecord) -> bool:
    timestamp = arrived.record.timestamp
    return arrived.has_checked_time and not arrived.least_ms <= timestamp <= arrived.most_ms


RECORD_ROWS: Final[Sequence[Row[ArrivedRecord, tuple[ArrivedRecord, list[RecordError]]]]] = (
    Row(
        "DP-PRODUCE-24",
        _has_no_key,
        (reject_record(ErrorCode.CORRUPT_MESSAGE, _KEYLESS),),
        until=(2, 4),
    ),
    Row(
        "DP-PRODUCE-24",
        _has_no_key,
        (reject_record(ErrorCode.INVALID_RECORD, _KEYLESS),),
        since=(2, 4),
    ),
    Row("DP-PRODUCE-25", _is_out_of_range, (_OUT_OF_RANGE,), since=(3, 6)),
    Row("DP-PRODUCE-26", _is_out_of_range, (_OUT_OF_RANGE,), since=(0, 10), until=(3, 6)),
    Row(
        "DP-PRODUCE-27",
        lambda arrived: arrived.says_append_time,
        (_FORGED_TIME,),
        since=(0, 10),
        until=(3, 6),
    ),
    Row(
        "DP-PRODUCE-27",
        lambda arrived: arrived.says_append_time and not arrived.has_checked_time,
        (_FORGED_TIME,),
        since=(3, 6),
    ),
)


class RecordErrors:
    """The errors of one batch, and what becomes of them."""

    __slots__ = ("errors", "rejection")

    def __init__(self, errors: list[RecordError]) -> None:
        self.errors = errors
        self.rejection: Rejection | None = None


@with_arguments
def reject_at_first(subject: RecordErrors, *, explains: bool) -> None:
    """The first error decides. ``explains``: the answer has its text and names the record."""
    first = subject.errors[0]
    if explains:
        place = RecordError(first.batch_index, None, first.error)
        subject.rejection = Rejection(first.error, first.text, (place,), shows_start=True)
    else:
        subject.rejection = Rejection(first.error, None, (), shows_start=False)


def reject_with_all(subject: RecordErrors) -> None:
    """All errors are reported; a wrong timestamp decides."""
    errors = tuple(subject.errors)
    error, text = errors[0].error, _INVALID_TIMESTAMPS
    if any(each.error == ErrorCode.INVALID_TIMESTAMP for each in errors):
        error = ErrorCode.INVALID_TIMESTAMP
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={each.batch_index}, message='{each.text}')"
            for each in errors[:_SHOWN]
        )
        text = (
            f"One or more records have been rejected due to {len(errors)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]"
        )
    subject.rejection = Rejection(error, text, errors, shows_start=True)


_INVALID_TIMESTAMPS: Final = "One or more records have been rejected due to invalid timestamp"

REJECTION_ROWS: Final[Sequence[Row[RecordErrors, RecordErrors]]] = (
    Row("DP-PRODUCE-39", always, (reject_at_first(explains=False),), until=(2, 4)),
    Row("DP-PRODUCE-39", always, (reject_at_first(explains=True),), since=(2, 4), until=(2, 5)),
    Row("DP-PRODUCE-39", always, (reject_with_all,), since=(2, 5)),
)
"""What a batch with errors is answered."""


def needs_records(
    header: BatchHeader, survey: RecordSurvey, settings: LogSettings, now_ms: int
) -> bool:
    """Whether a record of a batch of magic 2 may fail, as far as its survey tells."""
    if settings.compacted or header.has_append_time:
        return True
    if settings.append_time:
        return False
    if survey.max_timestamp > now_ms + settings.timestamp_after_max_ms:
        return True
    return survey.least_timestamp < now_ms - settings.timestamp_before_max_ms


class RecordChecks:
    """The checks of records that a release has."""

    def __init__(self, release: Release) -> None:
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(RECORD_ROWS, release)
        self._rejections = rows_of_release(REJECTION_ROWS, release)

    def rejection(
        self,
        records: Iterable[Record],
        tp: TopicPartition,
        settings: LogSettings,
        now_ms: int,
        *,
        says_append_time: bool,
        is_partial: bool,
    ) -> Rejection | None:
        """Return why the batch of these records is refused; None if it is not. Flags are as in
        ``ArrivedRecord``."""
        errors: list[RecordError] = []
        for index, record in enumerate(records):
            arrived = ArrivedRecord(
                record, index, tp, settings, now_ms, says_append_time, is_partial
            )
            apply_first(self._rows, arrived, (arrived, errors))
        if not errors:
            return None
        found = RecordErrors(errors)
        apply_first(self._rejections, found, found)
        return found.rejection
