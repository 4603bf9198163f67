"""DeleteRecords (KIP-107): let a log begin later, and wait until every live replica does.

A leader moves its own start at once. A replica that a tester holds, or that is out of sync, follows
when it copies from the leader again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.logs import Logs, PartitionData
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.log.replicas.leadership import access_error
from mockbroker.simulation.log.replicas.replica_wait import LogWait
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, apply_first, refuse, rows_of_release
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.turns import step

__all__ = ["DELETION_ROWS", "HIGH_WATERMARK", "Deletion", "DeletionQuery", "DeletionWait",
           "RecordDeletions"]  # fmt: skip

HIGH_WATERMARK: Final = -1
"""The offset of a request that means the high watermark."""


class DeletionQuery(msgspec.Struct, frozen=True):
    """Delete the records of a partition before ``offset``. ``partition`` is as the receiving broker
    knows it, None if it does not know it."""

    tp: TopicPartition
    broker_id: int
    partition: Partition | None
    offset: int
    may_delete: bool = True


class Deletion(msgspec.Struct):
    """The answer for one partition. ``low_watermark`` is the least start of its live replicas, -1
    with an error; ``start_offset`` is what it has to reach, None if that is decided."""

    tp: TopicPartition
    broker_id: int
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1
    start_offset: int | None = None


class _Step:
    """One partition of a request: context and subject of the rows."""

    __slots__ = ("controller", "deletion", "logs", "query")

    def __init__(self, controller: Controller, logs: Logs, query: DeletionQuery) -> None:
        self.controller = controller
        self.logs = logs
        self.query = query
        self.deletion = Deletion(query.tp, query.broker_id)

    @property
    def access_error(self) -> ErrorCode:
        query = self.query
        is_failed = self.logs.is_failed(query.tp, query.broker_id)
        return access_error(query.partition, query.broker_id, is_failed=is_failed)

    @property
    def log(self) -> PartitionLog:
        return self.logs.log(self.query.tp)

    @property
    def start_offset(self) -> int:
        offset = self.query.offset
        return self.log.high_watermark if offset == HIGH_WATERMARK else offset

    def refuse(self, code: ErrorCode) -> None:
        self.deletion.error = code


_Row: TypeAlias = Row[_Step, _Step]


def move_start(step: _Step) -> None:
    """Raise the leader's log start offset to the offset, unless it is higher already."""
    start_offset = step.start_offset
    step.logs.advance_start("delete_records", step.query.tp, start_offset)
    step.deletion.start_offset = start_offset
    step.deletion.low_watermark = low_watermark(step.controller, step.logs, step.query.tp)


def low_watermark(controller: Controller, logs: Logs, tp: TopicPartition) -> int:
    """The least start of a partition's live replicas. Raises UnknownPartitionError."""
    data: PartitionData = logs.data(tp)
    return data.replication.low_watermark(controller.partition(tp), controller.is_live)


def _only_compacted(step: _Step) -> bool:
    settings = step.logs.settings(step.query.tp[0])
    return settings.compacted and not settings.deleted


def _out_of_range(step: _Step) -> bool:
    return not 0 <= step.start_offset <= step.log.high_watermark


DELETION_ROWS: Final[tuple[_Row, ...]] = (
    Row(
        "DP-DELREC-01",
        lambda step: not step.query.may_delete,
        (refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED),),
    ),
    Row(
        "DP-DELREC-01",
        lambda step: step.query.partition is None,
        (refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
    Row(
        "DP-DELREC-01",
        lambda step: step.query.tp[0] in INTERNAL_TOPICS,
        (refuse(ErrorCode.INVALID_TOPIC_EXCEPTION),),
    ),
    Row(
        "DP-CTL-16",
        lambda step: step.access_error == ErrorCode.KAFKA_STORAGE_ERROR,
        (refuse(ErrorCode.KAFKA_STORAGE_ERROR),),
    ),
    Row(
        "DP-DELREC-01",
        lambda step: bool(step.access_error),
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
    ),
    Row("DP-DELREC-01", _only_compacted, (refuse(ErrorCode.POLICY_VIOLATION),)),
    Row("DP-DELREC-01", _out_of_range, (refuse(ErrorCode.OFFSET_OUT_OF_RANGE),)),
    Row("DP-DELREC-02", always, (move_start,)),
)


class DeletionWait(LogWait[Deletion]):
    """Ends when every live replica of each partition begins where it has to, or when a partition
    has lost its leader. ``deletions`` with errors are decided from the start. A partition that
    times out keeps the low watermark of the beginning."""

    def __init__(self, controller: Controller, logs: Logs, deletions: Iterable[Deletion]) -> None:
        self._controller = controller
        self._logs = logs
        super().__init__(deletions)

    def _log_of(self, part: Deletion) -> PartitionLog:
        return self._logs.log(part.tp)

    def _time_out(self, part: Deletion) -> None:
        part.error = ErrorCode.REQUEST_TIMED_OUT

    def _is_decided(self, part: Deletion) -> bool:
        if part.start_offset is None:
            return True
        try:
            partition = self._controller.partition(part.tp)
            reached = low_watermark(self._controller, self._logs, part.tp)
        except ClusterError:
            part.error, part.low_watermark = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
            return True
        if self._logs.is_failed(part.tp, part.broker_id):
            part.error, part.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, -1
            return True
        if partition.leader != part.broker_id:
            part.error, part.low_watermark = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            return True
        if reached < part.start_offset:
            return False
        part.low_watermark = reached
        return True


class RecordDeletions:
    """Deletes records of the logs of one cluster."""

    def __init__(self, controller: Controller, logs: Logs) -> None:
        self._controller = controller
        self.turns = controller.turns
        self._logs = logs
        logs.release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(DELETION_ROWS, release)

    @step()
    def delete(self, query: DeletionQuery) -> Deletion:
        """Raise the leader's log start offset to the offset, or say why not."""
        step = _Step(self._controller, self._logs, query)
        apply_first(self._rows, step, step)
        return step.deletion

    def wait(self, deletions: Iterable[Deletion]) -> DeletionWait:
        """Wait for the replicas, unless they are there already."""
        return DeletionWait(self._controller, self._logs, deletions)
