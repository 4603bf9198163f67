"""What a tester does to logs, groups and transactions. Each method is one step of the cluster.

The rules are in ``log``, ``fetching``, ``coordinators``, ``groups`` and ``transactions``; here a
step takes its turn, and texts such as ``foo-0`` become partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.elections.partition_change import with_epochs
from mockbroker.simulation.elections.queue import ElectionQueue
from mockbroker.simulation.fetching.fetches import Fetches
from mockbroker.simulation.groups.all_groups import Groups
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.log.batches.record_documents import BatchDocument, parse_batch
from mockbroker.simulation.log.cleaning import cleaner
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.log.seeding import batch_of
from mockbroker.simulation.reassignment.reassignment_controller import ReassignmentController
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import (
    INTERNAL_TOPICS,
    NO_LEADER,
    Partition,
    TopicPartition,
)
from mockbroker.simulation.state.cluster_state import ClusterState
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.turns import Turns
from mockbroker.simulation.topics.administration import Topics
from mockbroker.simulation.topics.spec import parse_topic_partition
from mockbroker.simulation.transactions.markers import MarkerToWrite, MarkerWriter
from mockbroker.simulation.transactions.transaction_coordinators import TransactionCoordinator

__all__ = ["DataSteps"]


class DataSteps:
    """The steps on the data of one cluster. Partitions are ``"foo-0"`` or ``("foo", 0)``.

    All of them raise ClusterError for what the cluster cannot do, and UnknownPartitionError for a
    partition that it does not have.
    """

    controller: Controller
    state: ClusterState
    turns: Turns
    topics: Topics
    logs: Logs
    appender: Appender
    fetches: Fetches
    coordinators: Coordinators
    groups: Groups
    offsets: OffsetStore
    share_fetches: ShareFetches
    transactions: TransactionCoordinator
    marker_writer: MarkerWriter
    elections: ElectionQueue
    brokers: Brokers
    reassignments: ReassignmentController

    # ---- replication -------------------------------------------------------------------------

    def hold_replication(self, partition: str | TopicPartition, broker: int | None = None) -> None:
        """Stop a follower, or every follower, from copying the log. It stays in the ISR: the high
        watermark stands still, and produce requests with acks -1 wait."""
        with self.turns.step():
            self.logs.hold_replication(_partition(partition), broker)

    def replicate(
        self, partition: str | TopicPartition, broker: int, offset: int | None = None
    ) -> None:
        """Advance a held follower to this offset, or to the log end. It stays held."""
        tp = _partition(partition)
        held = self.logs.data(tp).replication.held
        if broker in self.controller.partition(tp).isr and broker not in held:
            raise ClusterError(
                f"broker {broker} copies {_name(tp)} without being told; use hold-replication first"
            )
        with self.turns.step():
            self.logs.replicate(tp, broker, offset)

    def release_replication(
        self, partition: str | TopicPartition, broker: int | None = None
    ) -> None:
        """Let a held follower, or every follower, copy the log again. Waiting produce requests are
        answered."""
        with self.turns.step():
            self.logs.release_replication(_partition(partition), broker)

    def lag_high_watermark(self, partition: str | TopicPartition, records: int) -> None:
        """Keep the high watermark this many records behind the end of the log; 0 ends it. It never
        falls: it waits until the log has grown that much."""
        with self.turns.step():
            self.logs.lag_watermark(_partition(partition), records)

    # ---- logs --------------------------------------------------------------------------------

    def append(self, partition: str | TopicPartition, records: str) -> None:
        """Append records without a producer, and without the checks of Produce.

        ``records`` is the value of one record, or JSON: a record, a list of records, an object
        with ``records`` and the settings of the batch, or ``{"batch": "HEX"}``.
        """
        self.append_batch(_partition(partition), parse_batch(records))

    def append_batch(self, tp: TopicPartition, batch: BatchDocument) -> int:
        """Append a batch without the checks of Produce; return the offset of its first record."""
        append_time = self.logs.settings(self._led(tp)[0]).append_time
        data, header = batch_of(batch, self.controller.now_ms, append_time=append_time)
        with self.turns.step():
            return self.logs.append(tp, data, header)

    def make_sink(self, topic: str) -> None:
        """Turn a topic into a sink that stores no records: producers get the usual answers, offsets
        advance, and the log start offset follows the high watermark. Lasts until the topic is
        deleted."""
        self._measured(topic)
        with self.turns.step():
            self.logs.make_sink(topic)

    def make_source(self, topic: str, records: str) -> None:
        """Turn a topic into a source: every partition serves one batch of these records without
        end, in place of its own. ``records`` is as in ``append``. Lasts until the topic is
        deleted."""
        self._measured(topic)
        append_time = self.logs.settings(topic).append_time
        document = parse_batch(records)
        data, header = batch_of(document, self.controller.now_ms, append_time=append_time)
        if header.producer_id >= 0 or header.is_control:
            raise ClusterError("the batch of a source has no producer and no markers")
        with self.turns.step():
            self.logs.make_source(topic, data, header)

    def _measured(self, topic: str) -> None:
        """Raises ClusterError for a topic that can be no sink and no source."""
        self.controller.partition((topic, 0))
        if topic in INTERNAL_TOPICS:
            raise ClusterError(f"{topic} holds the state of coordinators")

    def truncate(self, partition: str | TopicPartition, offset: int) -> None:
        """Truncate the log on all replicas to this offset, or to the start of the batch that holds
        it, and bump the leader epoch. Records are lost as in an unclean election."""
        tp = self._led(_partition(partition))
        log = self.logs.log(tp)
        if not log.start_offset <= offset <= log.end_offset:
            raise ClusterError(
                f"{_name(tp)} has offsets {log.start_offset} to {log.end_offset}; it cannot end at "
                f"{offset}"
            )
        with self.turns.step():
            self.logs.truncate("truncate", tp, offset)
            before = self.controller.partition(tp)
            after = replace(
                before,
                leader_epoch=before.leader_epoch + 1,
                partition_epoch=before.partition_epoch + 1,
            )
            self._record_partition("truncate", tp, before, after)

    def unclean_election(self, partition: str | TopicPartition, broker: int) -> None:
        """Elect a replica although others have more records: it becomes the only member of the ISR,
        and the records that it lacks are lost, acknowledged or not."""
        tp = _partition(partition)
        before = self.controller.partition(tp)
        if not self.controller.broker(broker).live:
            raise ClusterError(f"broker {broker} is stopped and cannot lead {_name(tp)}")
        if not self.controller.is_served(tp, broker):
            raise ClusterError(f"the log directory of {_name(tp)} on broker {broker} has failed")
        if broker not in before.replicas:
            raise ClusterError(f"broker {broker} has no replica of {_name(tp)}")
        if broker == before.leader:
            raise ClusterError(f"broker {broker} already leads {_name(tp)}")
        with self.turns.step():
            elected = replace(before, leader=broker, isr=(broker,), recovering=True, vacated=False)
            self._record_partition("unclean_election", tp, before, with_epochs(before, elected))

    def _record_partition(
        self, cause: str, tp: TopicPartition, before: Partition, after: Partition
    ) -> None:
        change = PartitionChanged(tp[0], before, after)
        self.reassignments.change_partition(cause, change)
        self.reassignments.settle(cause, tp)

    def jump_log_start(self, partition: str | TopicPartition, offset: int) -> None:
        """Raise the log start offset at once, as retention does eventually."""
        tp = _partition(partition)
        log = self.logs.log(tp)
        if not log.start_offset <= offset <= log.high_watermark:
            raise ClusterError(
                f"the log of {_name(tp)} can begin at {log.start_offset} to {log.high_watermark}, "
                f"its high watermark, and not at {offset}"
            )
        with self.turns.step():
            self.logs.advance_start("jump_log_start", tp, offset)

    def roll_segment(self, partition: str | TopicPartition) -> None:
        """Roll the active segment of a log, so that retention and compaction apply to it."""
        tp = _partition(partition)
        with self.turns.step():
            if not self.logs.log(tp).roll(self.controller.now_ms):
                raise ClusterError(f"the newest segment of {_name(tp)} is empty")

    def apply_retention(self, partition: str | TopicPartition | None = None) -> None:
        """Delete the segments that exceed ``retention.ms`` or ``retention.bytes``, of one log or of
        all. Records above the high watermark stay."""
        with self.turns.step():
            tp = None if partition is None else _partition(partition)
            cleaner.apply_retention(self.logs, tp, self.controller.now_ms)

    def compact(self, partition: str | TopicPartition | None = None) -> None:
        """Compact a log, or those of all compacted topics: of the records with one key only the
        newest stays. The active segment and everything after the start of an open transaction
        stay."""
        with self.turns.step():
            tp = None if partition is None else _partition(partition)
            cleaner.compact(self.logs, tp, self.controller.now_ms)

    def corrupt_batch(self, partition: str | TopicPartition, offset: int, how: str) -> None:
        """Damage the stored batch that holds this offset: ``bit``, ``crc``, ``count`` or
        ``codec``."""
        with self.turns.step():
            tp = _partition(partition)
            cleaner.corrupt_batch(self.logs, tp, offset, how, self.controller.now_ms)

    def forget_producer(
        self, partition: str | TopicPartition, producer_id: int | None = None
    ) -> None:
        """Forget what a log knows of an idempotent producer, or of all, as if its state had
        expired."""
        with self.turns.step():
            self.logs.forget_producer(_partition(partition), producer_id)

    # ---- requests that wait ------------------------------------------------------------------

    def hold_produces(self, partition: str | TopicPartition | None = None) -> None:
        """Hold the responses to produce requests for a partition, or for all, until they are
        released. The records are appended at once."""
        with self.turns.step():
            self.appender.holds.hold(self._known(partition))

    def release_produces(self, partition: str | TopicPartition | None = None) -> None:
        """Send the held responses, for a partition or for all, and stop holding."""
        with self.turns.step():
            self.appender.holds.release(self._known(partition))

    def hold_fetches(self, partition: str | TopicPartition | None = None) -> None:
        """Hide the records of a partition, or of all, from fetches: they wait until their max wait
        time ends, as on an empty log."""
        with self.turns.step():
            self.fetches.hold_fetches(self._known(partition))

    def release_fetches(self, partition: str | TopicPartition | None = None) -> None:
        """Show the records of a partition, or of all, to fetches again."""
        with self.turns.step():
            self.fetches.release_fetches(self._known(partition))

    def complete_fetches(self, partition: str | TopicPartition | None = None) -> None:
        """Answer the waiting fetches of a partition, or of all, with the available records."""
        with self.turns.step():
            self.fetches.complete_fetches(self._known(partition))

    def expire_fetch_session(self, broker: int | None = None) -> None:
        """Drop the fetch sessions of a broker, or of every broker: the next request of each session
        gets error 70."""
        with self.turns.step():
            self.fetches.expire_sessions(broker)

    def diverge(
        self, partition: str | TopicPartition, epoch: int, offset: int | None = None
    ) -> None:
        """Make a leader epoch end at this offset for clients that ask.

        None restores the true end."""
        with self.turns.step():
            self.fetches.diverge(_partition(partition), epoch, offset)

    # ---- coordinators ------------------------------------------------------------------------

    def move_coordinator(self, kind: str | CoordinatorKind, key: str, broker: int) -> None:
        """Make a broker the coordinator of a group or a transactional id: the leader of the
        key's partition moves. ``kind`` is group, transaction or share."""
        with self._coordinating(kind) as found:
            self.coordinators.move(found, key, broker)

    def load_coordinator(self, kind: str | CoordinatorKind, key: str) -> None:
        """Put the coordinator of a key into the loading state until ``finish_loading``: requests
        get error 14."""
        with self._coordinating(kind) as found:
            self.coordinators.load(found, key)

    def finish_loading(self, kind: str | CoordinatorKind, key: str) -> None:
        """End the loading state that ``load_coordinator`` set."""
        with self.turns.step():
            self.coordinators.finish_loading(self._existing(kind), key)

    # ---- groups ------------------------------------------------------------------------------

    def hold_joins(self, group: str) -> None:
        """Hold the rebalances of a group open until ``complete_join``."""
        with self.turns.step():
            self.groups.hold_joins(group)

    def complete_join(self, group: str) -> None:
        """Complete the rebalance of a group now, without members that have not rejoined, and end
        ``hold_joins``."""
        with self.turns.step():
            self.groups.complete_join(group)

    def rebalance(self, group: str) -> None:
        """Trigger a rebalance. Members of a classic group get error 27 and rejoin; a consumer or
        streams group gets a new epoch, and its next heartbeat computes a new target assignment."""
        with self.turns.step():
            self.groups.force_rebalance(group)

    def expire_member(self, group: str, member: str) -> None:
        """Expire the session of a member, given by its id or its instance id."""
        with self.turns.step():
            self.groups.expire_member(group, member)

    def remove_member(self, group: str, member: str) -> None:
        """Remove a member from its group, as an administrator does."""
        with self.turns.step():
            self.groups.remove_member(group, member)

    def fence_instance(self, group: str, instance: str) -> None:
        """Fence a static member: another member takes its instance id, and it gets error 82."""
        with self.turns.step():
            self.groups.fence_instance(group, instance)

    def set_generation(self, group: str, generation: int) -> None:
        """Change the generation of a group: requests with the old one get error 22. In a consumer
        group the epoch changes: heartbeats get error 110 and commits 113."""
        with self.turns.step():
            self.groups.set_generation(group, generation)

    def set_target_assignment(
        self, group: str, target: Mapping[str, Sequence[str | TopicPartition]]
    ) -> None:
        """Set the target assignment of a consumer or streams group by member id or instance id,
        until ``release_assignor``. Members that are not named get nothing. In a streams group the
        partitions are active tasks: ``0-2`` is partition 2 of subtopology 0."""
        with self.turns.step():
            self.groups.set_target(
                group,
                {name: [_partition(each) for each in given] for name, given in target.items()},
            )

    def shutdown_application(self, group: str, member: str) -> None:
        """Request the shutdown of a streams application on behalf of a member: every member gets
        status 4."""
        with self.turns.step():
            self.groups.shut_down(group, member)

    def release_assignor(self, group: str) -> None:
        """Return a consumer or streams group to its assignor."""
        with self.turns.step():
            self.groups.release_assignor(group)

    def hold_assignment(self, group: str) -> None:
        """Hold a consumer or streams group short of its target assignment: members are told to
        revoke partitions and are assigned no new ones."""
        with self.turns.step():
            self.groups.hold_assignment(group)

    def release_assignment(self, group: str) -> None:
        """Let the members of a consumer or streams group reach their target again."""
        with self.turns.step():
            self.groups.release_assignment(group)

    def expire_locks(self, group: str, partition: str | TopicPartition | None = None) -> int:
        """Expire the acquisition locks of a share group, of one partition or of all: the records
        become available. Returns how many records were locked."""
        tp = None if partition is None else _partition(partition)
        with self.turns.step():
            return self.share_fetches.expire_locks(group, tp)

    def expire_share_session(self, group: str, member: str) -> int:
        """Drop the share sessions of a member from all brokers: its requests get
        SHARE_SESSION_NOT_FOUND(122). Returns how many there were."""
        with self.turns.step():
            return self.share_fetches.expire_session(group, member)

    def set_delivery_count(
        self, group: str, partition: str | TopicPartition, offset: int, count: int
    ) -> None:
        """Set the delivery count of a record that a share group has in flight."""
        with self.turns.step():
            self.share_fetches.set_delivery_count(group, _partition(partition), offset, count)

    # ---- offsets -----------------------------------------------------------------------------

    def set_offset(self, group: str, partition: str | TopicPartition, offset: int) -> None:
        """Commit an offset for a group without checking its members."""
        with self._storing_offsets():
            self.offsets.set_offset(group, _partition(partition), offset)

    def drop_offset(self, group: str, partition: str | TopicPartition) -> None:
        """Delete a committed offset, as if it had expired."""
        with self._storing_offsets():
            self.offsets.drop_offset(group, _partition(partition))

    def hold_commits(self, group: str) -> None:
        """Hold the offset commits of a group: they are neither answered nor visible, and
        OffsetFetch for stable offsets gets error 88."""
        with self.turns.step():
            self.offsets.hold_commits(group)

    def release_commits(self, group: str) -> None:
        """Complete the held commits in order, and stop holding."""
        with self.turns.step():
            self.offsets.release_commits(group)

    # ---- transactions ------------------------------------------------------------------------

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction as if its time-out had passed: the producer is fenced."""
        with self.turns.step():
            self.transactions.expire(transactional_id)

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction as an operator does: the producer is not fenced, and its epoch
        does not change."""
        with self.turns.step():
            self.transactions.abort(transactional_id)

    def fence_producer(self, transactional_id: str) -> None:
        """Fence the producer: another one initializes its id, the epoch is bumped, and the former
        producer gets error 90. An open transaction is aborted."""
        with self.turns.step():
            self.transactions.fence_producer(transactional_id)

    def set_producer_epoch(self, transactional_id: str, epoch: int) -> None:
        """Change the epoch of the producer; past 32766 it gets another id."""
        with self.turns.step():
            self.transactions.set_epoch(transactional_id, epoch)

    def hold_markers(self, transactional_id: str | None = None) -> None:
        """Hold back the markers of a transaction, or of every one, that ends: requests get error
        51, and the last stable offset does not advance."""
        with self.turns.step():
            self.transactions.hold_markers(transactional_id)

    def release_markers(self, transactional_id: str | None = None) -> None:
        """Write the held markers of a transaction, or of all."""
        with self.turns.step():
            self.transactions.release_markers(transactional_id)

    def write_marker(self, partition: str | TopicPartition, producer_id: int, result: str) -> None:
        """End a producer's transaction in one partition only: ``commit`` or ``abort``. Its
        coordinator does not learn of it."""
        tp = self._led(_partition(partition))
        known = self.logs.log(tp).producers.get(producer_id)
        if known is None:
            raise ClusterError(f"{_name(tp)} has no producer {producer_id}")
        if result not in ("commit", "abort"):
            raise ClusterError(f"a marker is commit or abort, not {result!r}")
        marker = MarkerToWrite(
            producer_id, known.epoch, max(known.coordinator_epoch, 0), result == "commit"
        )
        with self.turns.step():
            self.marker_writer.write_alone(tp, marker)

    def _storing_offsets(self) -> AbstractContextManager[CoordinatorKind]:
        return self._coordinating(CoordinatorKind.GROUP)

    def _existing(self, kind: str | CoordinatorKind) -> CoordinatorKind:
        """Raises ClusterError if the release has no such coordinators."""
        found = _kind(kind)
        if not self.coordinators.exists(found):
            raise ClusterError(f"this release has no coordinators of {found.name.lower()}s")
        return found

    @contextmanager
    def _coordinating(self, kind: str | CoordinatorKind) -> Iterator[CoordinatorKind]:
        """Enclose a step on a coordinator, whose internal topic is created first."""
        found = self._existing(kind)
        topic = self.coordinators.new_topic(found)
        if topic.name not in self.state.topics:
            self.topics.create([topic])
        with self.turns.step():
            yield found

    def _known(self, partition: str | TopicPartition | None) -> TopicPartition | None:
        """Raises UnknownPartitionError; None stands for all partitions."""
        if partition is None:
            return None
        tp = _partition(partition)
        self.controller.partition(tp)
        return tp

    def _led(self, tp: TopicPartition) -> TopicPartition:
        """Raises ClusterError for a partition without a leader."""
        if self.controller.partition(tp).leader == NO_LEADER:
            raise ClusterError(f"{_name(tp)} is offline: it has no leader")
        return tp


def _kind(given: str | CoordinatorKind) -> CoordinatorKind:
    if isinstance(given, CoordinatorKind):
        return given
    try:
        return CoordinatorKind[given.upper()]
    except KeyError:
        names = ", ".join(each.name.lower() for each in CoordinatorKind)
        raise ClusterError(f"{given!r} is no kind of coordinator; the kinds are {names}") from None


def _partition(given: str | TopicPartition) -> TopicPartition:
    return parse_topic_partition(given) if isinstance(given, str) else given


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"
