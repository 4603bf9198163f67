"""How KRaft turns a wish about one partition into its next value.

Pure: a partition, what shall change and which brokers are live go in; the next partition comes out.
Every change takes the same road, whatever asked for it: finish the reassignment if it can finish,
elect a leader, count the epochs. In this order, as in Kafka: a reassignment that only an unclean
election makes complete is finished by the partition's next change.

Behaviour of Kafka 3.6 to 4.4 without eligible leader replicas (KIP-966): an ISR never becomes
empty, and losing a member of it does not raise the leader epoch. When a reassignment can finish
changed with 4.3: see ``Completion``.
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
    """Who has to be in sync before what is to be removed goes."""

    ALL = "every replica that stays; Kafka before 4.3"
    ADDED = (
        "every replica added, and where more go than come, all that stay; since 4.3 (KAFKA-19975)"
    )
    SEPARATE = "nobody: the controller's machine completes reassignments by rules of its own"


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
    """The partition after a change; the same object when nothing changes. None leaves as it is."""
    wanted = replace(
        partition,
        replicas=partition.replicas if replicas is None else replicas,
        isr=partition.isr if isr is None else isr,
        adding=partition.adding if adding is None else adding,
        removing=partition.removing if removing is None else removing,
    )
    after = elected(completed(wanted, completion), is_live, election)
    if not after.isr:
        # The last in-sync replica is remembered, so that only it can lead cleanly again.
        after = replace(after, isr=partition.isr)
    return counted(partition, after)


def counted(before: Partition, after: Partition) -> Partition:
    """With the epochs as they are after such a change; ``before`` itself where there was none."""
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
    """What became of ``before``, done to ``current``: fields it left alone stay as they are.

    KRaft decides on every row of a request from the state at its start, and applies the records
    one by one; so a partition named twice is changed twice, the second time over the first.
    """
    changed = {
        name: getattr(after, name)
        for name in ("replicas", "isr", "leader", "adding", "removing")
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
    """A replica both added and removed, as a request can leave one, is awaited for good."""
    added = set(partition.adding)
    return added if len(partition.adding) >= len(partition.removing) else staying | added


_AWAITED: Final[Mapping[Completion, Callable[[Partition, set[int]], set[int]]]] = {
    Completion.ALL: _awaits_all,
    Completion.ADDED: _awaits_added,
}
"""Who has to be in sync, of a reassignment and those that stay when it is done. Whatever is not
here completes nothing by itself."""


def completed(partition: Partition, completion: Completion) -> Partition:
    """Drop what is to be removed once those that have to be in sync are."""
    awaited = _AWAITED.get(completion)
    if awaited is None or not partition.reassigning:
        return partition
    staying = tuple(r for r in partition.replicas if r not in partition.removing)
    in_sync = tuple(r for r in partition.isr if r not in partition.removing)
    if not staying or not in_sync or not awaited(partition, set(staying)) <= set(in_sync):
        return partition
    return replace(partition, replicas=staying, isr=in_sync, adding=(), removing=())


def elected(partition: Partition, is_live: Callable[[int], bool], election: Election) -> Partition:
    """Choose the leader among the replicas the partition is about to have."""

    def can_lead(replica: int) -> bool:
        return replica in partition.isr and is_live(replica)

    first_choice = (
        partition.preferred_leader if election is Election.PREFERRED else partition.leader
    )
    for replica in (first_choice, partition.leader, *partition.replicas):
        if can_lead(replica):
            return replace(partition, leader=replica)
    if election is Election.UNCLEAN:
        for replica in partition.replicas:
            if is_live(replica):
                return replace(partition, leader=replica, isr=(replica,))
    return replace(partition, leader=NO_LEADER)
