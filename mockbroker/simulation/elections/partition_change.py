"""How KRaft computes the next value of a partition from a requested change.

Pure functions of a partition, the change and the replicas that can lead. Every change takes the
same steps as in Kafka, in this order: complete the reassignment if possible, elect a leader, count
the epochs. So a reassignment that only an unclean election makes complete is completed by the
partition's next change.

Behaviour of Kafka 3.6 to 4.4 without eligible leader replicas (KIP-966): an ISR never becomes
empty, and losing a member of it does not raise the leader epoch. ``COMPLETION`` says when a
reassignment completes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, apply_first
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition

__all__ = [
    "COMPLETION",
    "CompletionRows",
    "Election",
    "complete",
    "elect_leader",
    "next_partition",
    "with_difference",
    "with_epochs",
]


class Election(Enum):
    """How to choose a leader."""

    ONLINE = "keep the leader while it can stay, else the first online in-sync replica"
    PREFERRED = "the first replica if it is online and in sync, else as ONLINE"
    UNCLEAN = "as ONLINE, else the first online replica, in sync or not: data may be lost"


def next_partition(
    partition: Partition,
    is_online: Callable[[int], bool],
    *,
    replicas: tuple[int, ...] | None = None,
    isr: tuple[int, ...] | None = None,
    adding: tuple[int, ...] | None = None,
    removing: tuple[int, ...] | None = None,
    election: Election = Election.ONLINE,
    completion: CompletionRows = (),
) -> Partition:
    """Return the partition after a change, or the same object if nothing changes.

    ``is_online`` says whether the replica of a broker can lead (``Controller.is_online``).
    None leaves a field unchanged. ``completion`` has the rows of ``COMPLETION`` that apply: none
    where a ZooKeeper controller completes reassignments.
    """
    changed = replace(
        partition,
        replicas=partition.replicas if replicas is None else replicas,
        isr=partition.isr if isr is None else isr,
        adding=partition.adding if adding is None else adding,
        removing=partition.removing if removing is None else removing,
    )
    after = elect_leader(complete(changed, completion), is_online, election)
    if not after.isr:
        # Keep the last in-sync replica: only it can become leader by a clean election.
        after = replace(after, isr=partition.isr)
    return with_epochs(partition, after)


def with_epochs(before: Partition, after: Partition) -> Partition:
    """Return ``after`` with its epochs raised, or ``before`` if nothing changed."""
    if after == before:
        return before
    lost_a_replica = not set(before.replicas) <= set(after.replicas)
    bump = after.leader != before.leader or lost_a_replica
    return replace(
        after, leader_epoch=before.leader_epoch + bump, partition_epoch=before.partition_epoch + 1
    )


def with_difference(current: Partition, before: Partition, after: Partition) -> Partition:
    """Apply the difference between ``before`` and ``after`` to ``current``.

    KRaft decides every row of a request from the state at its start and applies the records one by
    one, so a partition that is named twice is changed twice.
    """
    changed = {
        name: getattr(after, name)
        for name in ("replicas", "isr", "leader", "adding", "removing", "recovering", "vacated")
        if getattr(after, name) != getattr(before, name)
    }
    return replace(
        current,
        **changed,
        leader_epoch=current.leader_epoch + after.leader_epoch - before.leader_epoch,
        partition_epoch=current.partition_epoch + after.partition_epoch - before.partition_epoch,
    )


# ---- completion ----------------------------------------------------------------------------------


class _Reassigned(msgspec.Struct):
    """A partition under reassignment, which a row of ``COMPLETION`` may complete."""

    partition: Partition

    @property
    def staying(self) -> tuple[int, ...]:
        removing = self.partition.removing
        return tuple(replica for replica in self.partition.replicas if replica not in removing)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """The staying replicas that are in sync."""
        removing = self.partition.removing
        return tuple(each for each in self.partition.isr if each not in removing)


CompletionRows: TypeAlias = Sequence[Row[_Reassigned, _Reassigned]]


def _drop_removed(subject: _Reassigned) -> None:
    """End the reassignment: the replicas to be removed go."""
    subject.partition = replace(
        subject.partition, replicas=subject.staying, isr=subject.in_sync, adding=(), removing=()
    )


def _all_in_sync(context: _Reassigned) -> bool:
    """Every replica that stays is in sync."""
    return bool(context.staying) and set(context.staying) <= set(context.in_sync)


def _added_in_sync(context: _Reassigned) -> bool:
    """Every replica added is in sync, and where more go than come, every one that stays. A replica
    that is both added and removed, which a request can cause, never completes."""
    partition, in_sync = context.partition, set(context.in_sync)
    awaited = set(partition.adding)
    if len(partition.adding) < len(partition.removing):
        awaited |= set(context.staying)
    return bool(context.staying and in_sync) and awaited <= in_sync


COMPLETION: Final[CompletionRows] = (
    Row("A-57", _all_in_sync, (_drop_removed,), until=fixes.KAFKA_19975),
    Row("A-57", _added_in_sync, (_drop_removed,), since=fixes.KAFKA_19975),
)
"""Applied to each change of a partition under reassignment."""


def complete(partition: Partition, rows: CompletionRows) -> Partition:
    """Complete the reassignment if a row says so."""
    if not partition.reassigning:
        return partition
    reassigned = _Reassigned(partition)
    apply_first(rows, reassigned, reassigned)
    return reassigned.partition


# ---- leaders -------------------------------------------------------------------------------------


def elect_leader(
    partition: Partition, is_online: Callable[[int], bool], election: Election
) -> Partition:
    """Choose the leader among the replicas of the partition."""

    def can_lead(replica: int) -> bool:
        return replica in partition.isr and is_online(replica)

    first_choice = (
        partition.preferred_leader if election is Election.PREFERRED else partition.leader
    )
    for replica in (first_choice, partition.leader, *partition.replicas):
        if can_lead(replica):
            return replace(partition, leader=replica, vacated=False)
    # A live broker may be in the ISR without being a replica any more (ZooKeeper mode).
    if election is Election.UNCLEAN and not any(map(is_online, partition.isr)):
        for replica in partition.replicas:
            if is_online(replica):
                return replace(
                    partition, leader=replica, isr=(replica,), recovering=True, vacated=False
                )
    return replace(partition, leader=NO_LEADER)
