"""Effects of Kafka's own ZooKeeper controller.

R is a partition's replicas; its origin is R before any reassignment.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mockbroker.reassignment.plan_znode import remove_from_plan, rewrite_plan
from mockbroker.reassignment.transitions import (
    Brokers,
    Choice,
    Commit,
    Transition,
    WriteStateZnode,
    leader_and_isr,
    untargeted,
)
from mockbroker.reassignment.zookeeper.scala_sets import in_scala_2_12
from mockbroker.state.model import NO_LEADER, Partition

__all__ = [
    "AdoptTarget",
    "ElectFromIsr",
    "KeepLiveInIsr",
    "PlannedPartition",
    "RememberTarget",
    "RemoveFromIsr",
    "RemoveFromPlan",
    "RewritePlan",
    "SendFormerLeaderAndIsr",
    "StartReassignment",
    "UniteReplicas",
    "with_target",
]


def with_target(partition: Partition, target: Brokers) -> Partition:
    """The partition on its way from its origin to ``target``.

    Replicas that an earlier reassignment was adding, and that ``target`` does not have, are
    dropped.
    """
    origin = tuple(each for each in partition.replicas if each not in partition.adding)
    full = tuple(dict.fromkeys(target + origin))
    return replace(
        partition,
        replicas=full,
        adding=tuple(each for each in full if each not in origin),
        removing=tuple(each for each in full if each not in target),
    )


@dataclass(frozen=True, slots=True)
class PlannedPartition(Partition):
    """A partition under reassignment before Kafka 2.4: the target and its order are in the
    controller's memory and in the plan only."""

    planned: Brokers = ()

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> Brokers | None:
        return self.planned


@dataclass(frozen=True, slots=True)
class StartReassignment:
    """R becomes the requested replicas, then the rest of the origin; ``adding`` and ``removing``
    tell them apart."""

    def perform(self, transition: Transition) -> None:
        transition.now = with_target(transition.now, transition.requested_replicas)


@dataclass(frozen=True, slots=True)
class RememberTarget:
    """Remember the requested replicas as the target; R stays. What an earlier plan was adding stays
    in R until the end."""

    def perform(self, transition: Transition) -> None:
        now, target = transition.now, transition.requested_replicas
        fresh = tuple(each for each in target if each not in now.replicas or each in now.adding)
        common = {field.name: getattr(now, field.name) for field in fields(Partition)}
        common["adding"] = fresh
        common["removing"] = tuple(each for each in now.replicas if each not in target)
        transition.now = PlannedPartition(**common, planned=target)


@dataclass(frozen=True, slots=True)
class UniteReplicas:
    """R becomes the union of target and R, in the order of a Scala 2.12 set
    (``onPartitionReassignment``)."""

    def perform(self, transition: Transition) -> None:
        both = (transition.now.target or ()) + transition.now.replicas
        transition.now = replace(transition.now, replicas=in_scala_2_12(both))


@dataclass(frozen=True, slots=True)
class SendFormerLeaderAndIsr:
    """Send new replicas the leader, epochs and ISR from before the row: up to 2.3
    ``updateLeaderEpoch`` writes the state znode but not the controller's cache. Brokers ignore the
    outdated epoch."""

    to: Choice

    def perform(self, transition: Transition) -> None:
        to = transition.live(self.to(transition))
        if to:
            start = transition.start
            former = replace(
                transition.now,
                leader=start.leader,
                leader_epoch=start.leader_epoch,
                isr=start.isr,
                partition_epoch=start.partition_epoch,
            )
            transition.record(leader_and_isr(to, transition.tp[0], former, is_new=True))


@dataclass(frozen=True, slots=True)
class AdoptTarget:
    """R becomes the target, and the reassignment ends."""

    def perform(self, transition: Transition) -> None:
        target = transition.now.target or transition.now.replicas
        transition.now = replace(
            untargeted(transition.now), replicas=target, adding=(), removing=()
        )


@dataclass(frozen=True, slots=True)
class ElectFromIsr:
    """Elect the first of R that is live and in sync, and remove dead replicas from the ISR. The
    row's condition ensures that there is one."""

    def perform(self, transition: Transition) -> None:
        isr = transition.live(transition.now.isr)
        leader = next(each for each in transition.now.replicas if each in isr)
        transition.now = replace(transition.now, leader=leader, isr=isr, vacated=False)


@dataclass(frozen=True, slots=True)
class KeepLiveInIsr:
    """The leader removes dead replicas from the ISR; its epoch stays."""

    def perform(self, transition: Transition) -> None:
        now = transition.now
        gone = {each for each in now.replicas if not transition.is_live(each)}
        isr = tuple(each for each in now.isr if each not in gone)
        transition.now = replace(now, isr=isr or now.isr)


@dataclass(frozen=True, slots=True)
class RemoveFromIsr:
    """Remove replicas from the ISR one by one. Each is a write of the state znode with a raised
    leader epoch.

    Removing the leader leaves the partition without one. The last member of the ISR stays, replica
    or not.
    """

    choose: Choice

    def perform(self, transition: Transition) -> None:
        for broker in sorted(self.choose(transition)):
            now = transition.now
            if broker not in now.isr:
                continue
            rest = tuple(each for each in now.isr if each != broker)
            transition.now = replace(
                now,
                leader=NO_LEADER if broker == now.leader else now.leader,
                vacated=now.vacated or (broker == now.leader and bool(transition.live((broker,)))),
                isr=rest or now.isr,
                leader_epoch=now.leader_epoch + 1,
            )
            WriteStateZnode().perform(transition)
            Commit().perform(transition)


@dataclass(frozen=True, slots=True)
class RemoveFromPlan:
    """Remove the partition from ``/admin/reassign_partitions`` if it has the replicas planned
    there."""

    def perform(self, transition: Transition) -> None:
        remove_from_plan(
            transition.writer,
            transition.controller,
            transition.cause,
            lambda tp, replicas: tp == transition.tp and replicas == transition.now.replicas,
        )


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """Write what the controller remembers into the plan, whatever the znode holds meanwhile
    (``removePartitionsFromReassignedPartitions``, before 2.4)."""

    def perform(self, transition: Transition) -> None:
        rewrite_plan(
            transition.writer,
            transition.controller,
            transition.cause,
            {
                (name, each.index): each.planned
                for name, each in transition.controller.partitions()
                if isinstance(each, PlannedPartition)
            },
        )
