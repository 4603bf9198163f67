"""ListOffsets: the offset that stands for a timestamp, and which timestamps have a special meaning.

``ROWS`` are applied in the order in which a broker checks; ``ANSWERS`` has a row for each meaning.
Version 0 of the api asks for starts of segments instead (``segment_starts``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError, MissingExtraError
from mockbroker.simulation.log.logs import Logs, PartitionData
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.log.replicas.leadership import ANY_EPOCH, access_error
from mockbroker.simulation.log.timestamps import TimedOffset, first_at_or_after, first_of_newest
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import (
    Effect,
    Refusable,
    Row,
    always,
    apply_first,
    refuse,
    rows_of_release,
    with_arguments,
)
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition

__all__ = [
    "ANSWERS",
    "CONSUMER",
    "DEBUGGER",
    "EARLIEST",
    "LATEST",
    "REFUSALS",
    "TIMESTAMPS_CHECKED",
    "ListedOffset",
    "OffsetQuery",
    "is_unsupported_timestamp",
    "lacks_debugged_replica",
    "list_offset",
    "old_timestamp_error",
    "segment_starts",
]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""The replica id with which any replica answers, up to the end of its log."""

_KIP_207: Final = (2, 2)
_KIP_734: Final = (3, 0)
_BATCH_IS_READ: Final = (3, 8)
_KIP_405: Final = (3, 5)
TIMESTAMPS_CHECKED: Final = (3, 9)
"""The first release that refuses timestamps which the version lacks."""
_KIP_1005: Final = (3, 9)
_KIP_1023: Final = (4, 2)

_LEAST_VERSIONS: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Special timestamp -> the version of ListOffsets that introduced it."""
_OFFSET_NOT_AVAILABLE_VERSION: Final = 5


class OffsetQuery(msgspec.Struct, frozen=True):
    """What a client asks of one partition. ``version`` is that of ListOffsets; ``duplicate`` says
    that the request names the partition more than once."""

    tp: TopicPartition
    broker_id: int
    timestamp: int
    version: int
    leader_epoch: int = ANY_EPOCH
    replica_id: int = CONSUMER
    read_committed: bool = False
    duplicate: bool = False


class ListedOffset(msgspec.Struct):
    """An answer; -1 stands for what is not known."""

    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


def lacks_debugged_replica(partition: Partition | None, broker_id: int, replica_id: int) -> bool:
    """Whether a debugger asks a broker for a replica that it does not have."""
    hosts = () if partition is None else partition.hosts
    return replica_id == DEBUGGER and broker_id not in hosts


class _Lookup:
    """A query and the partition that it is about: context and subject of the rows."""

    __slots__ = ("_data", "_logs", "answer", "found", "partition", "query")

    def __init__(self, logs: Logs, partition: Partition | None, query: OffsetQuery) -> None:
        self._logs = logs
        self._data: PartitionData | None = None
        self.query = query
        self.partition = partition
        self.found: TimedOffset | None = None
        self.answer = ListedOffset()

    @property
    def access_error(self) -> ErrorCode:
        query = self.query
        leader_only = query.replica_id != DEBUGGER
        return access_error(
            self.partition,
            query.broker_id,
            query.leader_epoch,
            leader_only=leader_only,
            is_failed=self._logs.is_failed(query.tp, query.broker_id),
        )

    @property
    def data(self) -> PartitionData:
        if self._data is None:
            self._data = self._logs.data(self.query.tp)
        return self._data

    @property
    def log(self) -> PartitionLog:
        return self.data.log

    @property
    def replica_end(self) -> int:
        """The end offset of this broker's replica."""
        assert self.partition is not None, "an unknown partition is refused first"
        return self.data.replication.end_of(self.query.broker_id, self.partition)

    @property
    def visible_end(self) -> int:
        """The offset at which the client's view of the log ends."""
        if self.query.replica_id != CONSUMER:
            return self.replica_end
        if self.query.read_committed:
            return self.log.last_stable_offset
        return self.log.high_watermark

    @property
    def behind_own_epoch(self) -> bool:
        """Whether a consumer asks a new leader whose high watermark has not reached the records
        of its own epoch yet."""
        own = self.query.replica_id == CONSUMER
        return own and self.log.epochs.latest_start > self.log.high_watermark

    @property
    def is_tiered(self) -> bool:
        return self._logs.settings(self.query.tp[0]).is_tiered

    def find_offset(self, offset: int) -> None:
        self.found = TimedOffset(-1, offset, self.log.epochs.epoch_of(offset))

    def refuse(self, code: ErrorCode) -> None:
        self.answer = ListedOffset(code)


_LookupRow: TypeAlias = Row[_Lookup, _Lookup]


def _timestamp_is(timestamp: int) -> Callable[[_Lookup], bool]:
    return lambda lookup: lookup.query.timestamp == timestamp


def is_unsupported_timestamp(timestamp: int, version: int) -> bool:
    """Return whether a version of the request has no special timestamp like this one."""
    least = _LEAST_VERSIONS.get(timestamp)
    return timestamp < 0 and (least is None or version < least)


def _timestamp_is_unsupported(lookup: _Lookup) -> bool:
    return is_unsupported_timestamp(lookup.query.timestamp, lookup.query.version)


def _latest_is_unknown(lookup: _Lookup) -> bool:
    return lookup.query.timestamp == LATEST and lookup.behind_own_epoch


def _newest_while_behind(lookup: _Lookup) -> bool:
    return lookup.query.timestamp == MAX_TIMESTAMP and lookup.behind_own_epoch


def _pending_while_behind(lookup: _Lookup) -> bool:
    is_pending = lookup.query.timestamp == EARLIEST_PENDING_UPLOAD
    return is_pending and lookup.is_tiered and lookup.behind_own_epoch


def refuse_access(lookup: _Lookup) -> None:
    """Answer with the error of a broker that may not answer for the partition."""
    lookup.answer = ListedOffset(lookup.access_error)


def refuse_as_unavailable(lookup: _Lookup) -> None:
    """Answer that the offset is not known yet (KIP-207)."""
    known = lookup.query.version >= _OFFSET_NOT_AVAILABLE_VERSION
    code = ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE
    lookup.answer = ListedOffset(code)


def answer_start(lookup: _Lookup) -> None:
    """Answer with the start of the log."""
    offset = lookup.log.start_offset
    epoch = lookup.log.epochs.epoch_of(offset)
    lookup.answer = ListedOffset(offset=offset, leader_epoch=epoch)


def answer_local_start(lookup: _Lookup) -> None:
    """Answer with the start of what brokers have themselves."""
    offset = lookup.log.local_start_offset
    epoch = lookup.log.epochs.epoch_of(offset)
    lookup.answer = ListedOffset(offset=offset, leader_epoch=epoch)


def find_latest_tiered(lookup: _Lookup) -> None:
    """Find the last record that was copied to remote storage."""
    if lookup.log.highest_remote_offset >= 0:
        lookup.find_offset(lookup.log.highest_remote_offset)


def find_pending_upload(lookup: _Lookup) -> None:
    """Find the first record that is not in remote storage, though the topic has one."""
    if lookup.is_tiered:
        log = lookup.log
        lookup.find_offset(max(log.highest_remote_offset + 1, log.start_offset))


def answer_end(lookup: _Lookup) -> None:
    """Answer with the end of what the client may read."""
    assert lookup.partition is not None, "an unknown partition is refused first"
    epoch = lookup.partition.leader_epoch
    lookup.answer = ListedOffset(offset=lookup.visible_end, leader_epoch=epoch)


def answer_unknown(lookup: _Lookup) -> None:
    """Answer that there is no such offset."""
    lookup.answer = ListedOffset()


def find_time(lookup: _Lookup) -> None:
    """Find the first record with at least the timestamp."""
    end_offset, timestamp = lookup.replica_end, lookup.query.timestamp
    lookup.found = first_at_or_after(lookup.log, timestamp, end_offset)


def find_newest(lookup: _Lookup) -> None:
    """Find the first of the records with the largest timestamp."""
    lookup.found = first_of_newest(lookup.log, lookup.replica_end)


def find_indexed(lookup: _Lookup) -> None:
    """Find the record with the largest timestamp as a segment remembers it: only of a batch that
    was not compressed is it the very record, and the epoch is the newest of the log."""
    log = lookup.log
    newest, epoch = first_of_newest(log, lookup.replica_end), log.epochs.latest
    batch = None if newest is None else log.batch_of(newest.offset)
    if newest is None or batch is None:
        lookup.found = TimedOffset(-1, -1, epoch)
        return
    is_exact = not batch.header.codec and not batch.header.has_append_time
    offset = newest.offset if is_exact else batch.header.last_offset
    lookup.found = TimedOffset(newest.timestamp, offset, epoch)


@with_arguments
def answer_found(lookup: _Lookup, otherwise: Effect[_Lookup] = answer_unknown) -> None:
    """Answer with the record that was found, if the client may read it. ``otherwise`` is what
    becomes of the answer if it may not, or if none was found."""
    found = lookup.found
    if found is None or found.offset >= lookup.visible_end:
        otherwise(lookup)
    else:
        lookup.answer = ListedOffset(0, found.timestamp, found.offset, found.leader_epoch)


REFUSALS: Final[tuple[_LookupRow, ...]] = (
    Row(
        "DP-LISTOFF-10", lambda lookup: lookup.query.duplicate, (refuse(ErrorCode.INVALID_REQUEST),)
    ),
    Row(
        "DP-LISTOFF-09",
        _timestamp_is_unsupported,
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
        since=TIMESTAMPS_CHECKED,
    ),
    Row(
        "DP-LISTOFF-16",
        lambda lookup: lacks_debugged_replica(
            lookup.partition, lookup.query.broker_id, lookup.query.replica_id
        ),
        (refuse(ErrorCode.REPLICA_NOT_AVAILABLE),),
        since=facts.DEBUGGED_REPLICAS_NAMED,
    ),
    Row("DP-LISTOFF-12", lambda lookup: bool(lookup.access_error), (refuse_access,)),
)
"""The errors that a broker looks for before it looks at the log."""

ANSWERS: Final[tuple[_LookupRow, ...]] = (
    Row("DP-LISTOFF-02", _timestamp_is(EARLIEST), (answer_start,)),
    Row("DP-LISTOFF-11", _latest_is_unknown, (refuse_as_unavailable,), since=_KIP_207),
    Row("DP-LISTOFF-03", _timestamp_is(LATEST), (answer_end,)),
    Row(
        "DP-LISTOFF-11",
        _newest_while_behind,
        (find_indexed, answer_found(otherwise=refuse_as_unavailable)),
        since=_KIP_734,
        until=_BATCH_IS_READ,
    ),
    Row(
        "DP-LISTOFF-04",
        _timestamp_is(MAX_TIMESTAMP),
        (find_indexed, answer_found()),
        since=_KIP_734,
        until=_BATCH_IS_READ,
    ),
    Row(
        "DP-LISTOFF-11",
        _newest_while_behind,
        (find_newest, answer_found(otherwise=refuse_as_unavailable)),
        since=_BATCH_IS_READ,
    ),
    Row(
        "DP-LISTOFF-04",
        _timestamp_is(MAX_TIMESTAMP),
        (find_newest, answer_found()),
        since=_BATCH_IS_READ,
    ),
    Row("DP-LISTOFF-05", _timestamp_is(EARLIEST_LOCAL), (answer_local_start,), since=_KIP_405),
    Row(
        "DP-LISTOFF-06",
        _timestamp_is(LATEST_TIERED),
        (find_latest_tiered, answer_found()),
        since=_KIP_1005,
    ),
    Row(
        "DP-LISTOFF-11",
        _pending_while_behind,
        (find_pending_upload, answer_found(otherwise=refuse_as_unavailable)),
        since=_KIP_1023,
    ),
    Row(
        "DP-LISTOFF-07",
        _timestamp_is(EARLIEST_PENDING_UPLOAD),
        (find_pending_upload, answer_found()),
        since=_KIP_1023,
    ),
    Row(
        "DP-LISTOFF-11",
        lambda lookup: lookup.behind_own_epoch,
        (find_time, answer_found(otherwise=refuse_as_unavailable)),
        since=_KIP_207,
    ),
    Row("DP-LISTOFF-08", always, (find_time, answer_found())),
)
"""The offset of each meaning. Releases that do not check timestamps take an unknown negative one
for a time, before that of every record."""


@by_release
def _rows(release: Release) -> tuple[_LookupRow, ...]:
    return rows_of_release((*REFUSALS, *ANSWERS), release)


def list_offset(logs: Logs, partition: Partition | None, query: OffsetQuery) -> ListedOffset:
    """Answer a query of version 1 or later. ``partition`` is as the receiving broker knows it, None
    if it does not know it."""
    lookup = _Lookup(logs, partition, query)
    try:
        apply_first(_rows(logs.release), lookup, lookup)
    except DecodeError:
        return ListedOffset(ErrorCode.CORRUPT_MESSAGE)
    except MissingExtraError:
        return ListedOffset(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return lookup.answer


class _OldQuery(Refusable, msgspec.Struct):
    """The timestamp of a query of version 0, and its error."""

    timestamp: int
    code: ErrorCode = ErrorCode.NONE


OLD_REFUSALS: Final[tuple[Row[_OldQuery, _OldQuery], ...]] = (
    Row(
        "DP-LISTOFF-09",
        lambda query: query.timestamp < EARLIEST,
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
        since=TIMESTAMPS_CHECKED,
    ),
)
"""Version 0 knows the special timestamps -1 and -2."""


@by_release
def _old_refusals(release: Release) -> tuple[Row[_OldQuery, _OldQuery], ...]:
    return rows_of_release(OLD_REFUSALS, release)


def old_timestamp_error(release: Release, timestamp: int) -> ErrorCode:
    """Return the error of a timestamp that version 0 does not have, or NONE."""
    query = _OldQuery(timestamp)
    apply_first(_old_refusals(release), query, query)
    return query.code


def segment_starts(
    log: PartitionLog,
    timestamp: int,
    most: int,
    now_ms: int,
    *,
    for_consumer: bool,
    knows_local: bool = False,
) -> list[int]:
    """Return what version 0 answers: at most ``most`` offsets at which segments begin that were
    last modified at or before ``timestamp``, newest first. Those in remote storage only are left
    out.

    The end of the log counts as the start of a segment of this moment, unless the newest segment is
    empty; for a consumer it is the high watermark. ``knows_local``: the local start of the log is a
    special timestamp, too. Raises ValueError if ``most`` is negative.
    """
    if most < 0:
        raise ValueError(f"{most} offsets cannot be returned")
    *full, active = log.segments
    local = zip(full, log.segments[1:], strict=True)
    starts = [
        (max(each.base_offset, log.start_offset), each.modified_ms)
        for each, following in local
        if following.base_offset > log.local_start_offset
    ]
    starts.append((max(active.base_offset, log.start_offset), log.appended_ms))
    if active.base_offset < log.end_offset:
        starts.append((log.end_offset, now_ms))
    if timestamp == EARLIEST or (timestamp == EARLIEST_LOCAL and knows_local):
        del starts[1:]
    elif timestamp != LATEST:
        while starts and starts[-1][1] > timestamp:
            starts.pop()
    offsets = [offset for offset, _ in reversed(starts)][:most]
    if for_consumer and any(offset > log.high_watermark for offset in offsets):
        behind = [offset for offset in offsets if offset <= log.high_watermark]
        return [log.high_watermark, *behind]
    return offsets
