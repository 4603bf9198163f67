"""All logs of a cluster, by partition. They follow what happens to partitions and topics.

A log is made when it is first needed. Elections cut logs to what the new leader has; the
action log names the records that are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import structs

from kproto.records import Record, build_batch
from kproto.records.model import NO_TIMESTAMP
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.log.batches.batch_header import BatchHeader, Buffer, read_header
from mockbroker.simulation.log.batches.repeated_batch import RepeatedBatch
from mockbroker.simulation.log.log_events import Appended, DataEvents
from mockbroker.simulation.log.log_settings import LogSettings, log_settings
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog, Segment
from mockbroker.simulation.log.producing.producer_states import START_ROWS, Guard
from mockbroker.simulation.log.replicas.replication import Replication
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import (
    Change,
    ConfigChanged,
    DataActionsDropped,
    LogDirFailed,
    LogStartMoved,
    PartitionChanged,
    RecordsLost,
    RemoteStorageChanged,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.settings import SimulationOptions

__all__ = ["InternalProducer", "Logs", "PartitionData"]

"""Bytes that all logs of a cluster hold together, by default."""

_PRODUCER_EXPIRATION: Final = "producer.id.expiration.ms"
_PRODUCER_CHECK_MS: Final = 10 * 60 * 1000


class InternalProducer(msgspec.Struct, frozen=True):
    """The producer of a transaction, for which a coordinator stores records. ``is_guarded``: the
    transaction coordinator has to have confirmed it, for which ``guard`` stands."""

    producer_id: int
    epoch: int
    is_guarded: bool = False
    guard: Guard | None = None


class PartitionData(msgspec.Struct):
    """The log of a partition, and how far its replicas have it."""

    log: PartitionLog
    replication: Replication


def _common_size(sizes: Iterable[int], excess: int) -> int:
    """Return the largest size to which the larger ones have to be cut to save ``excess`` bytes."""
    descending = [*sorted(sizes, reverse=True), 0]
    saved = 0
    for count, (size, following) in enumerate(pairwise(descending), start=1):
        saved += (size - following) * count
        if saved >= excess:
            return following + (saved - excess) // count
    return 0


class Logs:
    """``release`` is the release whose rules apply. Past ``log_bytes`` of the options the oldest
    batches of the largest logs go, which is recorded.
    """

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        options: SimulationOptions,
    ) -> None:
        if options.log_bytes < 1:
            raise ClusterError(f"log_bytes is {options.log_bytes}; it must be at least 1")
        self._controller = controller
        self._configs = configs
        self.release = release
        release.follow(self._use_release)
        self.most_bytes = options.log_bytes
        self.events = DataEvents(
            options.data_actions,
            lambda: controller.note("data_actions", DataActionsDropped(options.data_actions)),
        )
        self._expiry = controller.timers.timer(self._expire_producers, "expiry of producers")
        self._partitions: dict[TopicPartition, PartitionData] = {}
        self.on_held: list[Callable[[], None]] = []
        """Called after a tester has held replicas."""
        self._settings: dict[str, LogSettings] = {}
        self._sinks: set[str] = set()
        self._sources: dict[str, tuple[Buffer, BatchHeader]] = {}
        self._bytes = 0
        kinds = (ConfigChanged, PartitionChanged, TopicDeleted, LogDirFailed)
        controller.add_hooks(kinds, after=self._after)

    def _use_release(self, release: Release) -> None:
        self._needs_min_isr = release.has(fixes.KAFKA_15583)
        self._leaders_begin_epochs = release.has(facts.LEADERS_BEGIN_EPOCHS)
        self._start_rows = rows_of_release(START_ROWS, release)

    # ---- finding -------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Bytes of all batches."""
        return self._bytes

    def settings(self, topic: str) -> LogSettings:
        """The configs of a topic."""
        found = self._settings.get(topic)
        if found is None:
            found = self._settings[topic] = log_settings(self._configs, topic)
        return found

    def data(self, tp: TopicPartition) -> PartitionData:
        """The log and the replicas of a partition. Raises UnknownPartitionError."""
        found = self._partitions.get(tp)
        if found is None:
            partition = self._controller.partition(tp)
            epoch = partition.leader_epoch if self._leaders_begin_epochs else None
            log = PartitionLog(epoch, self._controller.now_ms)
            found = self._partitions[tp] = PartitionData(log, Replication(log))
            if tp[0] in self._sources:
                self._fill(log, partition, *self._sources[tp[0]])
        return found

    def log(self, tp: TopicPartition) -> PartitionLog:
        """The log of a partition. Raises UnknownPartitionError."""
        return self.data(tp).log

    def find(self, tp: TopicPartition) -> PartitionLog | None:
        """The log of a partition; None for one that does not exist."""
        try:
            return self.log(tp)
        except ClusterError:
            return None

    def __iter__(self) -> Iterator[tuple[TopicPartition, PartitionData]]:
        """Yield the partitions that have a log, in order."""
        return iter(sorted(self._partitions.items()))

    def end_of(self, tp: TopicPartition, broker_id: int) -> int:
        """The end offset of a replica. Raises UnknownPartitionError."""
        return self.data(tp).replication.end_of(broker_id, self._controller.partition(tp))

    def is_failed(self, tp: TopicPartition, broker_id: int) -> bool:
        """Whether a broker's replica is in a log directory that has failed."""
        dirs = self._controller.state.replica_dirs
        return bool(dirs.failed) and dirs.is_failed(broker_id, tp)

    def replica_size(self, broker_id: int, tp: TopicPartition) -> int:
        """The bytes of the batches that a replica has on its disk. Raises
        UnknownPartitionError."""
        if tp not in self._partitions:
            return 0
        log = self._partitions[tp].log
        return log.readable_bytes(log.local_start_offset, self.end_of(tp, broker_id))

    def min_isr(self, topic: str, partition: Partition) -> int:
        """How many in-sync replicas an append with acks -1 needs. Since 3.7 no more than there are
        replicas (KAFKA-15583)."""
        needed = self.settings(topic).min_insync_replicas
        return min(needed, len(partition.replicas)) if self._needs_min_isr else needed

    # ---- appending -----------------------------------------------------------------------------

    def append(self, tp: TopicPartition, batch: Buffer, header: BatchHeader) -> int:
        """Append a batch that has been checked, and return the offset of its first record.

        The high watermark follows as far as in-sync replicas do.
        """
        partition, settings = self._controller.partition(tp), self.settings(tp[0])
        return self.append_to(tp, self.data(tp), partition, batch, header, settings)

    def append_to(
        self,
        tp: TopicPartition,
        data: PartitionData,
        partition: Partition,
        batch: Buffer,
        header: BatchHeader,
        settings: LogSettings,
    ) -> int:
        """As ``append``, to a partition whose data and settings the caller has looked up."""
        log = data.log
        now_ms = self._controller.timers.now_ms
        base_offset = log.append(batch, header, partition.leader_epoch, now_ms, settings)
        if header.producer_id >= 0 and self._expiry.due_ms is None:
            self._expiry.set(now_ms + self._producer_check_ms())
        size = len(batch)
        self._bytes += size
        self.events.append(
            Appended(now_ms, tp, base_offset, log.end_offset - 1, size, header.producer_id)
        )
        self._advance_watermark(tp, data, partition)
        if tp[0] in self._sinks:
            self._bytes -= log.advance_start(log.high_watermark)
            data.replication.log_started(log.start_offset)
        log.changed()
        if self._bytes > self.most_bytes:
            self._shrink()
        return base_offset

    def append_internal(
        self,
        tp: TopicPartition,
        records: Iterable[Record],
        producer: InternalProducer | None = None,
    ) -> int:
        """Append records of a coordinator as one batch, and return the offset of the first.
        ``producer`` is that of a transaction to which they belong.

        Records without a time get the present one. Nothing is checked: ``Appender.append_internal``
        does what a broker does.
        """
        now_ms = self._controller.now_ms
        timed = [
            each if each.timestamp != NO_TIMESTAMP else structs.replace(each, timestamp=now_ms)
            for each in records
        ]
        batch = (
            build_batch(timed)
            if producer is None
            else build_batch(
                timed,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=0,
                is_transactional=True,
            )
        )
        return self.append(tp, batch, read_header(batch))

    def _advance_watermark(
        self, tp: TopicPartition, data: PartitionData, partition: Partition
    ) -> None:
        # A full ISR is never too small: the effective min ISR is at most the number of replicas.
        needs = self._needs_min_isr and len(partition.isr) < len(partition.replicas)
        least = self.min_isr(tp[0], partition) if needs else None
        data.replication.advance_watermark(partition, least)

    def _shrink(self) -> None:
        """Drop the oldest batches of the largest logs, down to seven eighths of the limit.

        Logs of a common size or less lose nothing. The newest batch of each log stays: consumers
        that wait for it have not read it yet.
        """
        goal = self.most_bytes - self.most_bytes // 8
        level = _common_size(
            (data.log.storage.size for data in self._partitions.values()), self._bytes - goal
        )
        for tp, data in list(self._partitions.items()):
            log, storage = data.log, data.log.storage
            if storage.size > level:
                index = storage.index_at(storage.position(0) + storage.size - level)
                offset = storage.base_offset(min(index, len(storage) - 1))
                self.advance_start("log_bytes", tp, min(offset, log.high_watermark))

    # ---- producers -----------------------------------------------------------------------------

    def forget_producer(self, tp: TopicPartition, producer_id: int | None) -> int:
        """Forget what the log knows of an idempotent producer, None: of all, as if its state had
        expired. Returns how many it knew. Raises UnknownPartitionError."""
        return self.log(tp).producers.forget(producer_id)

    def _expire_producers(self) -> None:
        now_ms, left = self._controller.now_ms, False
        expiration_ms = self._producer_expiration_ms()
        for data in self._partitions.values():
            producers = data.log.producers
            producers.expire(now_ms, expiration_ms)
            left = left or not producers.is_empty
        if left:
            self._expiry.set(now_ms + self._producer_check_ms())

    def ask_about_producer(
        self, tp: TopicPartition, producer_id: int, sequence: int, epoch: int, *, implicit: bool
    ) -> Guard:
        """Let a log know that the transaction coordinator is asked about a producer."""
        now_ms = self._controller.now_ms
        if self._expiry.due_ms is None:
            self._expiry.set(now_ms + self._producer_check_ms())
        return self.log(tp).producers.ask(
            producer_id, sequence, epoch, implicit=implicit, now_ms=now_ms
        )

    def _producer_expiration_ms(self) -> int:
        """How long after its last batch a producer is forgotten, if it has no transaction: before
        KIP-854 as long as transactional ids are kept."""
        if _PRODUCER_EXPIRATION in self._configs.definitions.broker:
            return int(self._configs.controller_value(_PRODUCER_EXPIRATION))
        return int(self._configs.controller_value("transactional.id.expiration.ms"))

    def _producer_check_ms(self) -> int:
        """How often a log forgets producers that have expired."""
        name = "producer.id.expiration.check.interval.ms"
        if name in self._configs.definitions.broker:
            return int(self._configs.controller_value(name))
        return _PRODUCER_CHECK_MS

    # ---- changing logs -------------------------------------------------------------------------

    def advance_start(self, cause: str, tp: TopicPartition, offset: int) -> None:
        """Raise the log start offset of a log, at most to its high watermark; it never falls."""
        data = self.data(tp)
        before = data.log.start_offset
        self._bytes -= data.log.advance_start(offset)
        apply_first(self._start_rows, None, (data.log.producers, data.log.start_offset))
        data.replication.log_started(data.log.start_offset)
        if data.log.start_offset != before:
            self._controller.note(cause, LogStartMoved(*tp, before, data.log.start_offset))

    def copy_to_remote(self, cause: str, tp: TopicPartition, offset: int) -> None:
        """Let remote storage have what lies before an offset, as ``PartitionLog`` does."""
        log = self.log(tp)
        before = log.highest_remote_offset
        log.copy_to_remote(offset, self._controller.now_ms)
        if log.highest_remote_offset != before:
            self._note_remote(cause, tp, log)

    def advance_local_start(self, cause: str, tp: TopicPartition, offset: int) -> None:
        """Keep what lies before an offset in remote storage only, as ``PartitionLog`` does."""
        log = self.log(tp)
        before = log.highest_remote_offset, log.local_start_offset
        log.advance_local_start(offset, self._controller.now_ms)
        if (log.highest_remote_offset, log.local_start_offset) != before:
            self._note_remote(cause, tp, log)

    def _note_remote(self, cause: str, tp: TopicPartition, log: PartitionLog) -> None:
        offsets = log.local_start_offset, log.highest_remote_offset
        self._controller.note(cause, RemoteStorageChanged(*tp, *offsets))

    def _delete_remote(self, cause: str, topic: str) -> None:
        """Let logs of a topic that has left tiered storage begin with what brokers have."""
        for tp, data in list(self._partitions.items()):
            log = data.log
            if tp[0] == topic and log.highest_remote_offset >= 0:
                self.advance_start(cause, tp, log.local_start_offset)
                log.forget_remote()
                self._note_remote(cause, tp, log)

    def truncate(self, cause: str, tp: TopicPartition, end_offset: int) -> None:
        """Cut a log on all replicas, and tell what was lost."""
        log = self.data(tp).log
        before, watermark, size = log.end_offset, log.high_watermark, log.storage.size
        log.truncate(end_offset)
        self._bytes -= size - log.storage.size
        if log.end_offset < before:
            acknowledged = max(watermark - log.end_offset, 0)
            lost = RecordsLost(*tp, log.end_offset, before - 1, acknowledged)
            self._controller.note(cause, lost)

    def replace(
        self,
        tp: TopicPartition,
        batches: Iterable[Buffer],
        aborted: Iterable[AbortedTransaction],
        segments: Iterable[Segment],
    ) -> int:
        """As ``PartitionLog.replace``."""
        released = self.data(tp).log.replace(batches, aborted, segments)
        self._bytes -= released
        return released

    # ---- sinks and sources ---------------------------------------------------------------------

    def make_sink(self, topic: str) -> None:
        """Store no bytes of the topic from now on: what is replicated is dropped at once."""
        self._sinks.add(topic)
        for tp, data in self._partitions.items():
            if tp[0] == topic:
                self._bytes -= data.log.advance_start(data.log.high_watermark)
                data.replication.log_started(data.log.start_offset)

    def make_source(self, topic: str, batch: Buffer, header: BatchHeader) -> None:
        """Make every partition of the topic serve this batch without end in place of its own."""
        self._sources[topic] = batch, header
        for tp, data in self._partitions.items():
            if tp[0] == topic:
                self._bytes -= data.log.storage.size
                self._fill(data.log, self._controller.partition(tp), batch, header)

    def _fill(
        self, log: PartitionLog, partition: Partition, batch: Buffer, header: BatchHeader
    ) -> None:
        storage = RepeatedBatch(batch, header, partition.leader_epoch)
        log.become_source(storage, self._controller.now_ms)

    def is_source(self, topic: str) -> bool:
        """Whether the topic holds one batch for ever."""
        return topic in self._sources

    # ---- steps of a tester ---------------------------------------------------------------------

    def hold_replication(self, tp: TopicPartition, broker_id: int | None) -> None:
        """Stop a follower, None: every follower, from copying. It stays in the ISR, so the high
        watermark stands still and appends with acks -1 wait. Raises ClusterError."""
        partition = self._controller.partition(tp)
        for each in self._followers(tp, broker_id):
            self.data(tp).replication.hold(each, partition)
        for react in self.on_held:
            react()

    def replicate(self, tp: TopicPartition, broker_id: int, offset: int | None) -> None:
        """Advance a held follower to ``offset``, None: to the log end; it stays held.
        Raises ClusterError."""
        partition = self._controller.partition(tp)
        for each in self._followers(tp, broker_id):
            self.data(tp).replication.replicate(each, partition, offset)
        self._replicated(tp)

    def release_replication(self, tp: TopicPartition, broker_id: int | None) -> None:
        """Let a follower, None: every follower, copy the log again. Raises ClusterError."""
        partition = self._controller.partition(tp)
        for each in self._followers(tp, broker_id):
            self.data(tp).replication.release(each, partition)
        self._replicated(tp)

    def lag_watermark(self, tp: TopicPartition, records: int) -> None:
        """Keep the high watermark this many records behind the end; 0 ends it."""
        if records < 0:
            raise ClusterError(f"the high watermark cannot be {-records} records ahead")
        self.data(tp).replication.watermark_lag = records
        self._replicated(tp)

    def _followers(self, tp: TopicPartition, broker_id: int | None) -> list[int]:
        partition = self._controller.partition(tp)
        followers = [each for each in partition.hosts if each != partition.leader]
        if broker_id is None:
            return followers
        self._controller.broker(broker_id)
        if broker_id not in followers:
            raise ClusterError(f"broker {broker_id} is not a follower of {tp[0]}-{tp[1]}")
        return [broker_id]

    def _replicated(self, tp: TopicPartition) -> None:
        data = self.data(tp)
        self._advance_watermark(tp, data, self._controller.partition(tp))
        data.log.changed()

    # ---- what the cluster does -----------------------------------------------------------------

    def _after(self, cause: str, change: Change) -> None:
        if isinstance(change, PartitionChanged):
            tp = (change.topic, change.after.index)
            if tp in self._partitions:
                self._partition_changed(cause, tp, change.before, change.after)
        elif isinstance(change, ConfigChanged):
            self._settings.clear()
            if change.name == "remote.storage.enable" and change.after != "true":
                self._delete_remote(cause, change.resource_name)
        elif isinstance(change, LogDirFailed):
            for tp, data in list(self._partitions.items()):
                if self.is_failed(tp, change.broker_id):
                    data.log.changed()
        elif isinstance(change, TopicDeleted):
            self._settings.pop(change.name, None)
            self._sinks.discard(change.name)
            self._sources.pop(change.name, None)
            for tp in [each for each in self._partitions if each[0] == change.name]:
                data = self._partitions.pop(tp)
                self._bytes -= data.log.storage.size
                data.log.changed()

    def _partition_changed(
        self, cause: str, tp: TopicPartition, before: Partition, after: Partition
    ) -> None:
        data = self._partitions[tp]
        log, replication = data.log, data.replication
        elected = after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch
        if elected:
            # A replica that leads as soon as it joins the ISR, since a reassignment is complete
            # then, has the whole log. One that is elected uncleanly has to recover.
            has_all = after.leader not in before.isr and not after.recovering
            end_offset = log.end_offset if has_all else replication.end_of(after.leader, before)
            self.truncate(cause, tp, end_offset)
            replication.leader_changed(log.end_offset, after.leader)
            if self._leaders_begin_epochs:
                log.epochs.assign(after.leader_epoch, log.end_offset)
        replication.partition_changed(before, after)
        self._advance_watermark(tp, data, after)
        log.changed()
