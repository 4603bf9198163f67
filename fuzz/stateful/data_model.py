"""What producers, consumers and members of groups may expect of a cluster.

Derived from their requests and the answers to them. What a tester's step takes away (records that
an election loses, producers that a log forgets) is learnt from the action log and from the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kproto.records import Compression, Record, build_batch
from mockbroker.simulation.groups.classic.classic_group import Group
from mockbroker.simulation.state.actions import Action, LogStartMoved, RecordsLost, TopicDeleted
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["OFFSETS_TOPIC", "Batch", "DataModel", "Member", "Producer"]

OFFSETS_TOPIC: Final = "__consumer_offsets"
_KEEPS_PRODUCERS_SINCE: Final = (2, 4)
"""Before, a log forgets a producer along with its last batch."""


@dataclass(slots=True, eq=False)
class Batch:
    """A batch that a client has sent once or more often. ``offset`` is that of its first record,
    once a broker has acknowledged it. ``lost``: its log was cut since it was first sent, and
    ``lost_on_the_way``: since it was last sent, so that an answer may be about records that are
    gone."""

    number: int
    tp: TopicPartition
    count: int
    acks: int
    producer_id: int = -1
    epoch: int = 0
    sequence: int = -1
    transactional: bool = False
    codec: Compression = Compression.NONE
    offset: int | None = None
    lost: bool = False
    lost_on_the_way: bool = False
    sent: int = 0

    def lose(self) -> None:
        self.lost = self.lost_on_the_way = True

    @property
    def values(self) -> list[bytes]:
        """No two records of a run have the same value."""
        return [f"{self.number}:{index}".encode() for index in range(self.count)]

    def data(self, now_ms: int) -> bytes:
        return build_batch(
            [Record(timestamp=now_ms, value=each) for each in self.values],
            compression=self.codec,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if self.producer_id >= 0 else -1,
            base_sequence=self.sequence,
            is_transactional=self.transactional,
        )


@dataclass(slots=True, eq=False)
class Producer:
    """An idempotent producer. It sends a batch that is not acknowledged again before it sends
    another one to the same partition, as clients with one request in flight do."""

    producer_id: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    newest: dict[TopicPartition, deque[Batch]] = field(default_factory=dict)

    def history(self, tp: TopicPartition) -> deque[Batch]:
        """The newest five batches for a partition, oldest first."""
        return self.newest.setdefault(tp, deque(maxlen=5))


@dataclass(slots=True, eq=False)
class Member:
    """A client of a group. ``members`` are those that it has to assign to, if it leads."""

    member_id: str = ""
    instance: str | None = None
    generation: int = -1
    members: Sequence[str] = ()
    joining: bool = False
    syncing: bool = False


@dataclass(slots=True)
class DataModel:
    """``acknowledged`` has the batches, and which of their records, by partition and offset.
    ``watermarks`` and ``starts`` are
    those of the last look. ``forgotten`` has the producers whose state a log may have lost.
    ``assignments`` has the request of the leader that counts, by group and generation."""

    release: tuple[int, int] = (0, 0)
    acknowledged: dict[TopicPartition, dict[int, tuple[Batch, int]]] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)
    producers: list[Producer] = field(default_factory=list)
    forgotten: set[TopicPartition] = field(default_factory=set)
    watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    cut: dict[TopicPartition, int] = field(default_factory=dict)
    """The lowest offset at which a log was cut since the last look."""
    cuts: int = 0
    """How often any log was cut."""
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    in_doubt: dict[tuple[str, TopicPartition], set[int | None]] = field(default_factory=dict)
    """Offsets that may have been committed, None for deleted, because nobody said that they were
    not."""
    members: dict[str, list[Member]] = field(default_factory=dict)
    generations: dict[str, tuple[Group, int]] = field(default_factory=dict)
    """Each group and its generation at the last look."""
    assignments: dict[tuple[int, int], tuple[Group, str]] = field(default_factory=dict)
    syncs: int = 0
    next_number: int = 0

    # ---- producing -------------------------------------------------------------------------------

    def new_batch(
        self,
        tp: TopicPartition,
        count: int,
        acks: int,
        codec: Compression,
        producer: Producer | None,
    ) -> Batch:
        batch = Batch(self.next_number, tp, count, acks, codec=codec)
        self.next_number += 1
        if producer is not None:
            batch.producer_id = producer.producer_id
            batch.sequence = producer.sequences.setdefault(tp, 0)
            producer.sequences[tp] += count
            producer.history(tp).append(batch)
        self.batches[batch.number] = batch
        return batch

    def acknowledge(self, batch: Batch, offset: int) -> None:
        """A broker says that a batch begins at this offset. Raises AssertionError if it has given
        one of its offsets to another batch, or another one to this batch."""
        if batch.lost_on_the_way:
            batch.offset = offset
            return
        if batch.offset is not None and not batch.lost and batch.tp not in self.forgotten:
            assert batch.offset == offset, f"{batch} was acknowledged again, at {offset}"
        known = self.acknowledged.setdefault(batch.tp, {})
        for index in range(batch.count):
            place = (batch, index)
            other = known.setdefault(offset + index, place)
            assert other == place, f"offset {offset + index} was given to {other} and to {place}"
        batch.offset, batch.lost = offset, False

    # ---- what the cluster says about itself ------------------------------------------------------

    def follow(self, actions: Sequence[Action]) -> None:
        """Take in what the action log says about logs."""
        for action in actions:
            change = action.change
            if isinstance(change, RecordsLost):
                self._records_lost((change.topic, change.index), change.first_offset)
            elif isinstance(change, TopicDeleted):
                self._topic_deleted(change.name)
            elif isinstance(change, LogStartMoved):
                tp = (change.topic, change.index)
                assert self.starts.get(tp, 0) <= change.after, (tp, change)
                if self.release < _KEEPS_PRODUCERS_SINCE:
                    self.forgotten.add(tp)

    def _records_lost(self, tp: TopicPartition, first_offset: int) -> None:
        self.cuts += 1
        self.cut[tp] = min(first_offset, self.cut.get(tp, first_offset))
        known = self.acknowledged.get(tp, {})
        for offset in [each for each in known if each >= first_offset]:
            del known[offset]
        for batch in self.batches.values():
            if batch.tp == tp and (batch.offset is None or batch.offset >= first_offset):
                batch.lose()
        if tp[0] == OFFSETS_TOPIC:
            self.forget_commits()

    def forget_commits(self) -> None:
        """Offsets may be gone, and groups with them: coordinators lost their records."""
        self.committed.clear()
        self.in_doubt.clear()
        self.generations.clear()

    def _topic_deleted(self, name: str) -> None:
        self.cuts += 1
        for known in (self.acknowledged, self.watermarks, self.starts, self.cut):
            for tp in [each for each in known if each[0] == name]:
                del known[tp]
        for batch in self.batches.values():
            if batch.tp[0] == name:
                batch.lose()
        for producer in self.producers:
            for sequences in (producer.sequences, producer.newest):
                for tp in [each for each in sequences if each[0] == name]:
                    del sequences[tp]
        self.forgotten = {tp for tp in self.forgotten if tp[0] != name}
        for offsets in self.committed.values():
            for tp in [each for each in offsets if each[0] == name]:
                del offsets[tp]
        for key in [each for each in self.in_doubt if each[1][0] == name]:
            self.in_doubt[key].add(None)
        if name == OFFSETS_TOPIC:
            self.forget_commits()

    # ---- offsets ---------------------------------------------------------------------------------

    def sends_commit(self, group: str, tp: TopicPartition, offset: int | None) -> None:
        """A commit is on its way, or with None a deletion."""
        self.in_doubt.setdefault((group, tp), set()).add(offset)

    def commit_is_decided(
        self, group: str, tp: TopicPartition, offset: int | None, *, done: bool
    ) -> None:
        """A coordinator has answered it."""
        left = self.in_doubt.get((group, tp), set())
        left.discard(offset)
        if not left:
            self.in_doubt.pop((group, tp), None)
        if not done:
            return
        offsets = self.committed.setdefault(group, {})
        if offset is None:
            offsets.pop(tp, None)
        else:
            offsets[tp] = offset
