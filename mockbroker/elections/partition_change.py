"""How KRaft computes the next value of a partition from a requested change.

Pure functions of a partition, the change and the live brokers. Every change takes the same steps as
in Kafka, in this order: complete the reassignment if possible, elect a leader, count the epochs. So
a reassignment that only an unclean election makes complete is completed by the partition's next
change.

Behaviour of Kafka 3.6 to 4.4 without eligible leader replicas (KIP-966): an ISR never becomes
empty, and losing a member of it does not raise the leader epoch. Kafka 4.3 changed when a
reassignment completes: see ``Completion``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from mockbroker.state.model import NO_LEADER, Partition

__all__ = [
    "Completion",
    "Election",
    "completed",
    "counted",
    "elected",
    "next_partition",
    "redone",
]


class Election(Enum):
    """How to choose a leader."""

    ONLINE = "keep the leader while it can stay, else the first live in-sync replica"
    PREFERRED = "the first replica if it is live and in sync, else as ONLINE"
    UNCLEAN = "as ONLINE, else the first live replica, in sync or not: data may be lost"


class Completion(Enum):
    """Which replicas have to be in sync before a reassignment completes."""

    ALL = "every replica that stays; Kafka before 4.3"
    ADDED = (
        "every replica added, and where more go than come, all that stay; since 4.3 (KAFKA-19975)"
    )
    SEPARATE = "none: the reassignment controller completes reassignments by rules of its own"


def next_partition(
    partition: Partition,
    is_live: Callable[[int], bool],
    *,
    replicas: tuple[int, ...] | None = None,
    isr: tuple[int, ...] | None = None,
    adding: tuple[int, ...] | None = None,
    removing: tuple[int, ...] | None = None,
    election: Election = Election.ONLINE,
    completion: Completion = Completion.ALL,
) -> Partition:
    """Return the partition after a change, or the same object if nothing changes.

    None leaves a field unchanged.
    """
    wanted = replace(
        partition,
        replicas=partition.replicas if replicas is None else replicas,
        isr=partition.isr if isr is None else isr,
        adding=partition.adding if adding is None else adding,
        removing=partition.removing if removing is None else removing,
    )
    after = elected(completed(wanted, completion), is_live, election)
    if not after.isr:
        # Keep the last in-sync replica: only it can become leader by a clean election.
        after = replace(after, isr=partition.isr)
    return counted(partition, after)


def counted(before: Partition, after: Partition) -> Partition:
    """Return ``after`` with its epochs raised, or ``before`` if nothing changed."""
    if after == before:
        return before
    lost_a_replica = not set(before.replicas) <= set(after.replicas)
    bump = after.leader != before.leader or lost_a_replica
    return replace(
        after,
        leader_epoch=before.leader_epoch + bump,
        partition_epoch=before.partition_epoch + 1,
    )


def redone(current: Partition, before: Partition, after: Partition) -> Partition:
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


def _awaits_all(partition: Partition, staying: set[int]) -> set[int]:
    return staying


def _awaits_added(partition: Partition, staying: set[int]) -> set[int]:
    """A replica that is both added and removed, which a request can cause, never completes."""
    added = set(partition.adding)
    return added if len(partition.adding) >= len(partition.removing) else staying | added


_AWAITED: Final[Mapping[Completion, Callable[[Partition, set[int]], set[int]]]] = {
    Completion.ALL: _awaits_all,
    Completion.ADDED: _awaits_added,
}
"""The replicas that have to be in sync, given the replicas that stay. A kind of completion that is
missing here completes nothing by itself."""


def completed(partition: Partition, completion: Completion) -> Partition:
    """Complete the reassignment if the replicas that have to be in sync are."""
    awaited = _AWAITED.get(completion)
    if awaited is None or not partition.reassigning:
        return partition
    staying = tuple(r for r in partition.replicas if r not in partition.removing)
    in_sync = tuple(r for r in partition.isr if r not in partition.removing)
    if not staying or not in_sync or not awaited(partition, set(staying)) <= set(in_sync):
        return partition
    return replace(partition, replicas=staying, isr=in_sync, adding=(), removing=())


def elected(partition: Partition, is_live: Callable[[int], bool], election: Election) -> Partition:
    """Choose the leader among the replicas of the partition."""

    def can_lead(replica: int) -> bool:
        return replica in partition.isr and is_live(replica)

    first_choice = (
        partition.preferred_leader if election is Election.PREFERRED else partition.leader
    )
    for replica in (first_choice, partition.leader, *partition.replicas):
        if can_lead(replica):
            return replace(partition, leader=replica, vacated=False)
    # A live broker may be in the ISR without being a replica any more (ZooKeeper mode).
    if election is Election.UNCLEAN and not any(map(is_live, partition.isr)):
        for replica in partition.replicas:
            if is_live(replica):
                return replace(
                    partition, leader=replica, isr=(replica,), recovering=True, vacated=False
                )
    return replace(partition, leader=NO_LEADER)
