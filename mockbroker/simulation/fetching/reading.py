"""What one partition answers to a fetch: errors first, then a redirection, then records.

Tables, each in the order in which a broker checks. ``ADMISSION`` needs only metadata; it is
looked at once a fetch, and its errors do not end a wait for other partitions. ``ACCESS`` needs the
partition, and is looked at again whenever something changes while a fetch waits; then
``WAIT_ENDS`` is, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.fetching.query import (
    UNKNOWN,
    FetchQuery,
    PartitionAnswer,
    PartitionPosition,
)
from mockbroker.simulation.fetching.replica_selection import ReplicaSelector, ReplicaView
from mockbroker.simulation.log.logs import Logs, PartitionData
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog
from mockbroker.simulation.log.replicas.leader_epochs import UNKNOWN_END, EpochEnd
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import (
    Row,
    always,
    apply_first,
    first_row,
    refuse,
    rows_of_release,
)
from mockbroker.simulation.state.cluster_parts import Partition, Topic, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["ACCESS", "ADMISSION", "REFUSALS", "WAIT_ENDS", "PartitionReader"]


# ---- admission -----------------------------------------------------------------------------------


class Admission(msgspec.Struct, frozen=True):
    """A partition of a request, and whether the broker that received it has metadata of it."""

    is_refused: bool
    has_topic: bool
    may_read: bool
    is_known: bool


ADMISSION: Final[tuple[Row[Admission, PartitionAnswer], ...]] = (
    Row("DP-FETCH-23", lambda at: at.is_refused, (refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED),)),
    Row(
        "DP-FETCH-01 DP-FETCH-20",
        lambda at: not at.has_topic,
        (refuse(ErrorCode.UNKNOWN_TOPIC_ID),),
        since=(3, 1),
    ),
    Row("DP-FETCH-01", lambda at: not at.may_read, (refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED),)),
    Row("DP-FETCH-01", lambda at: not at.is_known, (refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)),
)


def _list_no_aborted(subject: PartitionAnswer) -> None:
    """List no aborted transactions, instead of a null."""
    subject.aborted = []


REFUSALS: Final[tuple[Row[PartitionAnswer, PartitionAnswer], ...]] = (
    Row("DP-FETCH-03", always, (_list_no_aborted,), since=(3, 0)),
)
"""How a refusal by ``ADMISSION`` differs from an error of ``ACCESS``."""


def _is_known(controller: Controller, query: FetchQuery, position: PartitionPosition) -> bool:
    """Whether the metadata of the broker has the partition."""
    topic = controller.state.view(query.broker_id, controller.now_ms).topics.get(
        position.topic or ""
    )
    return topic is not None and topic.partition(position.partition) is not None


# ---- access --------------------------------------------------------------------------------------

_NO_EPOCH: Final = -1
_NO_OWN_REPLICA: Final = (2, 4)
"""The first release whose leaders hold no state of themselves as followers."""


class _Access:
    """A partition, and the replica of it that is read. Without a replica on the broker only
    ``hosted`` is there."""

    __slots__ = (
        "_preferred",
        "answer",
        "data",
        "end_offset",
        "ends_wait",
        "epoch_end",
        "failed",
        "hosted",
        "is_leader",
        "partition",
        "position",
        "query",
        "reader",
        "topic",
        "waits",
    )

    topic: Topic
    partition: Partition
    data: PartitionData
    hosted: bool
    failed: bool
    is_leader: bool
    end_offset: int
    epoch_end: EpochEnd

    def __init__(
        self, reader: PartitionReader, query: FetchQuery, position: PartitionPosition
    ) -> None:
        self.reader = reader
        self.query = query
        self.position = position
        self.answer = PartitionAnswer(position)
        self.ends_wait = False
        self.waits = False
        """Whether a waiting fetch is looked at."""
        self._preferred: int | None = None
        topic = reader.controller.state.topics.get(position.topic or "")
        partition = None if topic is None else topic.partition(position.partition)
        broker_id = query.broker_id
        self.hosted = partition is not None and broker_id in partition.hosts
        self.failed = False
        if topic is None or partition is None or not self.hosted:
            return
        self.topic, self.partition = topic, partition
        self.failed = reader.logs.is_failed((topic.name, partition.index), broker_id)
        self.data = reader.logs.data((topic.name, partition.index))
        self.is_leader = partition.leader == broker_id
        log = self.data.log
        self.end_offset = (
            log.end_offset if self.is_leader else self.data.replication.end_of(broker_id, partition)
        )

    # ---- conditions --------------------------------------------------------------------------

    @property
    def gone(self) -> bool:
        """Whether the partition was deleted while the fetch waited."""
        return not self.hosted and not _is_known(self.reader.controller, self.query, self.position)

    @property
    def other_topic(self) -> bool:
        """Whether the topic was deleted and created again since its name was looked up."""
        return self.query.by_id and self.position.topic_id != self.topic.topic_id

    @property
    def unserved(self) -> bool:
        """Whether only the leader may answer, and this is another replica."""
        query = self.query
        return not self.is_leader and (query.from_replica or query.rack is None)

    @property
    def from_stranger(self) -> bool:
        """Whether a broker fetches as a replica that it is not, or as the leader itself."""
        query = self.query
        return query.from_replica and (
            query.replica_id == query.broker_id or query.replica_id not in self.partition.hosts
        )

    @property
    def from_itself(self) -> bool:
        """Whether a broker fetches as the leader itself."""
        return self.query.replica_id == self.query.broker_id

    @property
    def redirected(self) -> bool:
        """Whether another replica should serve the client; ``redirect`` takes it."""
        query, reader = self.query, self.reader
        if reader.selector is None or not self.is_leader or query.from_replica or not query.rack:
            return False
        partition, offset, data = self.partition, self.position.offset, self.data
        brokers = reader.controller.state.brokers
        leader = ReplicaView(partition.leader, brokers[partition.leader].rack, data.log.end_offset)
        followers = [
            view
            for each in (partition.isr if reader.only_in_sync else partition.replicas)
            if each != partition.leader
            and brokers[each].live
            and (
                view := ReplicaView(
                    each, brokers[each].rack, data.replication.end_of(each, partition)
                )
            ).end_offset
            >= offset
            >= data.log.start_offset
        ]
        chosen = reader.selector(query.rack, leader, followers)
        self._preferred = chosen.broker_id
        return chosen is not leader

    @property
    def before_start(self) -> bool:
        """Whether the record at the client's offset was deleted. While a fetch waits that is not
        looked at; what ends the wait finds it."""
        return self.position.offset < self.data.log.start_offset

    @property
    def only_remote(self) -> bool:
        """Whether a replica asks for a record that only remote storage has: it has to build its
        state from there (KIP-405). While a fetch waits that is not looked at either."""
        log = self.data.log
        return self.query.from_replica and (
            log.start_offset <= self.position.offset < log.local_start_offset
        )

    @property
    def epoch_unknown(self) -> bool:
        """Whether it cannot be said where the last epoch that the client read ends. Looks it up."""
        if self.position.last_fetched_epoch < 0:
            return False
        log = self.data.log
        self.epoch_end = log.epochs.end_of(self.position.last_fetched_epoch, self.end_offset)
        return self.epoch_end == UNKNOWN_END

    @property
    def diverged(self) -> bool:
        """Whether the client has read records that this log does not have."""
        at = self.position
        return at.last_fetched_epoch >= 0 and (
            self.epoch_end.epoch < at.last_fetched_epoch or self.epoch_end.end_offset < at.offset
        )

    @property
    def in_older_segment(self) -> bool:
        """Whether a newer segment than that of the client's offset has records for it."""
        offset, end, log = self.position.offset, self.isolation_end, self.data.log
        return offset < end and _segment_of(log, offset) < _segment_of(log, end)

    # ---- effects -----------------------------------------------------------------------------

    def refuse(self, code: ErrorCode) -> None:
        self.answer.error_code = code

    def fail_request(self) -> None:
        self.answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        self.answer.fails_request = True

    def tell_offsets(self) -> None:
        """Watermarks of a follower are those of its leader, as far as it has the log."""
        answer, log, end = self.answer, self.data.log, self.end_offset
        answer.high_watermark = min(log.high_watermark, end)
        if self.query.read_committed or not self.reader.hides_stable_offset:
            answer.last_stable_offset = min(log.last_stable_offset, end)
        answer.log_start_offset = log.start_offset

    def redirect(self) -> None:
        assert self._preferred is not None, "the row's condition chose it"
        self.answer.preferred_replica = self._preferred

    @property
    def isolation_end(self) -> int:
        """Where a reader of this kind stops."""
        if self.query.from_replica:
            return self.end_offset
        log, query = self.data.log, self.query
        limit = log.last_stable_offset if query.read_committed else log.high_watermark
        return min(limit, self.end_offset)


def _answer_offsets(subject: _Access) -> None:
    """Answer without records."""
    subject.tell_offsets()


def _fail_request(subject: _Access) -> None:
    """Kafka throws after it has read all partitions of the request."""
    subject.fail_request()


def _redirect(subject: _Access) -> None:
    """Send the client to the replica that the selector chose."""
    subject.tell_offsets()
    subject.redirect()


def _wait_for_time(subject: _Access) -> None:
    """Answer no earlier than the client's time is up, however many records there are."""
    subject.answer.redirects_late = True


def _refuse_as_remote(subject: _Access) -> None:
    """Say between which offsets the log is, with the error."""
    log = subject.data.log
    subject.refuse(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
    subject.answer.high_watermark = min(log.high_watermark, subject.end_offset)
    subject.answer.log_start_offset = log.start_offset


def _report_divergence(subject: _Access) -> None:
    """Say where the client's last epoch ends here."""
    subject.tell_offsets()
    subject.answer.diverging = subject.epoch_end


_KNOWS_STORAGE_ERROR: Final = 6
"""The version of Fetch from which on clients know error 56."""

_OUT_OF_RANGE: Final = (refuse(ErrorCode.OFFSET_OUT_OF_RANGE),)

ACCESS: Final[tuple[Row[_Access, _Access], ...]] = (
    Row("DP-FETCH-11", lambda at: at.gone, (refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)),
    Row("DP-FETCH-01", lambda at: not at.hosted, (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),)),
    Row("DP-FETCH-26", lambda at: at.from_stranger, (_fail_request,), until=(1, 0)),
    Row(
        "DP-FETCH-26",
        lambda at: at.from_itself,
        (_fail_request,),
        since=(1, 0),
        until=_NO_OWN_REPLICA,
    ),
    Row(
        "DP-FETCH-22",
        lambda at: at.failed and at.query.version < _KNOWS_STORAGE_ERROR,
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
    ),
    Row("DP-FETCH-22", lambda at: at.failed, (refuse(ErrorCode.KAFKA_STORAGE_ERROR),)),
    Row(
        "DP-FETCH-01",
        lambda at: at.other_topic,
        (refuse(ErrorCode.INCONSISTENT_TOPIC_ID),),
        since=(3, 1),
    ),
    Row(
        "DP-FETCH-02",
        lambda at: 0 <= at.position.leader_epoch < at.partition.leader_epoch,
        (refuse(ErrorCode.FENCED_LEADER_EPOCH),),
        since=(2, 1),
    ),
    # By bytecode any other number below 0 stands for an epoch up to 2.6.3, and for none in 2.7.2.
    Row(
        "DP-FETCH-02",
        lambda at: at.position.leader_epoch < _NO_EPOCH,
        (refuse(ErrorCode.FENCED_LEADER_EPOCH),),
        since=(2, 1),
        until=(2, 7),
    ),
    Row(
        "DP-FETCH-02",
        lambda at: at.position.leader_epoch > at.partition.leader_epoch,
        (refuse(ErrorCode.UNKNOWN_LEADER_EPOCH),),
        since=(2, 1),
    ),
    Row(
        "DP-FETCH-01 DP-FETCH-18",
        lambda at: at.unserved,
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
    ),
    Row(
        "DP-FETCH-23",
        lambda at: at.from_stranger and at.position.leader_epoch >= 0,
        (refuse(ErrorCode.UNKNOWN_LEADER_EPOCH),),
        since=fixes.KAFKA_13837,
    ),
    Row(
        "DP-FETCH-23",
        lambda at: at.from_stranger,
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
        since=fixes.KAFKA_13837,
    ),
    Row("DP-FETCH-17 REL-27", lambda at: at.redirected, (_redirect,), since=fixes.KAFKA_13767),
    Row("REL-27", lambda at: at.redirected, (_redirect, _wait_for_time), since=(2, 4)),
    Row(
        "DP-FETCH-24",
        lambda at: at.only_remote and not at.waits and at.epoch_unknown,
        (_refuse_as_remote,),
        since=(3, 6),
    ),
    Row("DP-FETCH-16", lambda at: at.epoch_unknown, _OUT_OF_RANGE, since=(2, 7)),
    Row(
        "DP-FETCH-16",
        lambda at: at.diverged,
        (_report_divergence,),
        since=(2, 7),
        until=fixes.KAFKA_12996,
    ),
    Row("DP-FETCH-05", lambda at: at.before_start and not at.waits, _OUT_OF_RANGE),
    Row("DP-FETCH-16", lambda at: at.diverged, (_report_divergence,), since=(2, 7)),
    Row(
        "DP-FETCH-24",
        lambda at: at.only_remote and not at.waits,
        (_refuse_as_remote,),
        since=(3, 6),
    ),
    Row("DP-FETCH-05", lambda at: at.position.offset > at.end_offset, _OUT_OF_RANGE),
    Row("DP-FETCH-23", lambda at: at.from_stranger, (_answer_offsets,), until=fixes.KAFKA_13837),
)


def is_ordinary_access(at: _Access) -> bool:
    """Whether certainly none of ``ACCESS`` applies, in any release. False says nothing."""
    position, query = at.position, at.query
    return (
        at.hosted
        and not at.failed
        and at.is_leader
        and query.replica_id < 0
        and at.reader.selector is None
        and (not query.by_id or position.topic_id == at.topic.topic_id)
        and position.leader_epoch in (UNKNOWN, at.partition.leader_epoch)
        and position.last_fetched_epoch < 0
        and at.data.log.start_offset <= position.offset <= at.end_offset
    )


# ---- a wait --------------------------------------------------------------------------------------


def _end_wait(subject: _Access) -> None:
    """Answer now, however few bytes there are."""
    subject.ends_wait = True


WAIT_ENDS: Final[tuple[Row[_Access, _Access], ...]] = (
    Row(
        "DP-FETCH-11", lambda at: at.position.offset > at.isolation_end, (_end_wait,), since=(3, 8)
    ),
    Row("DP-FETCH-11", lambda at: at.in_older_segment, (_end_wait,)),
)
"""When a fetch does not wait for its minimum of bytes, besides errors."""


class PartitionReader:
    """Reads partitions. ``selector`` chooses other replicas for consumers; None: the leader serves
    everybody. ``cuts_last_batch``: a limit may cut every batch but the first, as in Kafka. In
    ``held`` partitions nothing new is seen (a tester's step), with ``holds_all`` in none."""

    def __init__(
        self,
        controller: Controller,
        logs: Logs,
        release: Release,
        selector: ReplicaSelector | None,
        *,
        cuts_last_batch: bool = False,
    ) -> None:
        self.controller = controller
        self.logs = logs
        self.selector = selector
        self._cuts_last_batch = cuts_last_batch
        self.held: set[TopicPartition] = set()
        self.holds_all = False
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self.only_in_sync = release.has(fixes.KAFKA_14372)
        """Whether only replicas in the ISR are preferred for reading."""
        self.hides_stable_offset = release.has(facts.STABLE_OFFSET_HIDDEN)
        self.reads_one_remote = release.has(facts.ONE_REMOTE_PARTITION)
        self._admission_row = first_row(rows_of_release(ADMISSION, release))
        self._refusals = rows_of_release(REFUSALS, release)
        self._access = rows_of_release(ACCESS, release)
        self._wait_ends = rows_of_release(WAIT_ENDS, release)

    def refusal(self, query: FetchQuery, position: PartitionPosition) -> PartitionAnswer | None:
        """Return the error of a partition that cannot be read at all; None if it may be."""
        name = position.topic
        row = self._admission_row(
            Admission(
                query.refused,
                name is not None,
                name is None or query.may_read(name),
                _is_known(self.controller, query, position),
            )
        )
        if row is None:
            return None
        answer = PartitionAnswer(position)
        row.apply(answer)
        apply_first(self._refusals, answer, answer)
        return answer

    def read(
        self, query: FetchQuery, position: PartitionPosition, most_bytes: int, *, first: bool
    ) -> PartitionAnswer:
        """Read one partition. ``first``: no partition before it had records, so that its first
        batch comes whole however large it is."""
        at = _Access(self, query, position)
        if not is_ordinary_access(at) and apply_first(self._access, at, at):
            return at.answer
        at.tell_offsets()
        answer, log, end = at.answer, at.data.log, at.isolation_end
        is_withheld = False
        if query.from_replica:
            self._follow(query.replica_id, at)
        if position.offset < end and not self._is_held(position):
            room = min(position.max_bytes, most_bytes)
            if room < 0:
                answer.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
                return answer
            records = self._records(
                log,
                position.offset,
                end,
                room,
                at_least_one=first and not query.cuts_batches,
                cut_first=query.cuts_batches,
                cut_last=query.cuts_batches or self._cuts_last_batch,
            )
            answer.records, answer.size = records, sum(map(len, records))
            is_withheld = not records and self._is_too_large(log, position.offset, room)
        # Of a partition whose first batch does not fit, Kafka returns nothing but the offsets.
        if query.read_committed and not query.from_replica and not is_withheld:
            interval = self.logs.settings(at.topic.name).index_interval_bytes
            answer.aborted = _aborted(log, position.offset, answer.size, interval)
        return answer

    @staticmethod
    def _is_too_large(log: PartitionLog, offset: int, room: int) -> bool:
        """Whether the first batch is larger than what is left of the limits, if anything is."""
        batch = log.batch_of(offset)
        return batch is not None and 0 < room < batch.header.size

    @staticmethod
    def _records(
        log: PartitionLog,
        offset: int,
        end: int,
        room: int,
        *,
        at_least_one: bool,
        cut_first: bool,
        cut_last: bool,
    ) -> list[memoryview]:
        """Read up to the end of the first segment that has records, as Kafka does."""
        for segment in log.segments[_segment_of(log, offset) :]:
            found = log.read(
                offset,
                min(end, segment.base_offset),
                room,
                at_least_one=at_least_one,
                cut_first=cut_first,
                cut_last=cut_last,
            )
            if found or segment.base_offset >= end:
                return found
        return log.read(
            offset, end, room, at_least_one=at_least_one, cut_first=cut_first, cut_last=cut_last
        )

    def waiting_bytes(self, query: FetchQuery, position: PartitionPosition) -> int | None:
        """Return the bytes of a partition that a waiting fetch would get, its own limit aside;
        None if it is to be answered at once."""
        at = _Access(self, query, position)
        at.waits = True
        if not is_ordinary_access(at) and apply_first(self._access, at, at) and at.answer.urgent:
            return None
        if self._is_held(position) or at.answer.redirects_late:
            return 0
        apply_first(self._wait_ends, at, at)
        if at.ends_wait:
            return None
        offset, end = position.offset, at.isolation_end
        if offset >= end:
            return 0
        return min(at.data.log.readable_bytes(offset, end), position.max_bytes)

    def log_of(self, position: PartitionPosition) -> PartitionLog | None:
        """Return the log of a partition; None if the partition is gone."""
        topic = self.controller.state.topics.get(position.topic or "")
        if topic is None or topic.partition(position.partition) is None:
            return None
        return self.logs.log((topic.name, position.partition))

    def is_remote(self, position: PartitionPosition) -> bool:
        """Whether only remote storage has the record at a position of the log."""
        log = self.log_of(position)
        return log is not None and position.offset < log.local_start_offset

    def _is_held(self, position: PartitionPosition) -> bool:
        return self.holds_all or (position.topic, position.partition) in self.held

    def _follow(self, replica_id: int, at: _Access) -> None:
        """The position of a replica that fetches is the end of its log."""
        tp, offset = (at.topic.name, at.partition.index), at.position.offset
        if self.logs.end_of(tp, replica_id) < offset:
            self.logs.replicate(tp, replica_id, offset)


def _segment_of(log: PartitionLog, offset: int) -> int:
    """The number of the segment behind the one that holds an offset, or would."""
    if len(log.segments) == 1:
        return 1
    return bisect_right(log.segments, offset, key=lambda segment: segment.base_offset)


def _aborted(log: PartitionLog, offset: int, size: int, interval: int) -> list[AbortedTransaction]:
    """Return the aborted transactions of the records from ``offset`` on, at least as many as
    ``size`` bytes are, in the order of their markers. Brokers find the end in an index with an
    entry every ``interval`` bytes."""
    if not log.aborted or not size:
        return []
    end = log.indexed_end(offset, size, interval)
    found = []
    first = bisect_left(log.aborted, offset, key=lambda transaction: transaction.last_offset)
    for transaction in log.aborted[first:]:
        if transaction.first_offset < end:
            found.append(transaction)
        if transaction.last_stable_offset >= end:
            break
    return found
