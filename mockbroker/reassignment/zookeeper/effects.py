"""Effects of Kafka's own ZooKeeper controller that no other machine has.

Each is a value that knows what it does; ``zookeeper_rows`` says which follow which condition.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mockbroker.reassignment.effects import Commit, WriteStateZnode, leader_and_isr, untargeted
from mockbroker.reassignment.plan_znode import remove_from_plan, rewrite_plan
from mockbroker.reassignment.transitions import Brokers, Choice, Transition
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
    """On the way from the replicas it had before any reassignment, the origin, to ``target``.

    Those that an earlier reassignment was adding, and this one does not, are no replicas any more.
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
    """A partition under reassignment before Kafka 2.4: only the controller's memory, and the plan,
    say where it goes, and in which order."""

    planned: Brokers = ()

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> Brokers | None:
        return self.planned


@dataclass(frozen=True, slots=True)
class StartReassignment:
    """R is what is asked for and then the origin; adding and removing say which is which."""

    def perform(self, transition: Transition) -> None:
        transition.now = with_target(transition.now, transition.context.requested_replicas)


@dataclass(frozen=True, slots=True)
class RememberTarget:
    """What is asked for is remembered; the replicas stay as they are. What an earlier plan was
    adding stays among them until the end."""

    def perform(self, transition: Transition) -> None:
        now, target = transition.now, transition.context.requested_replicas
        fresh = tuple(each for each in target if each not in now.replicas or each in now.adding)
        common = {field.name: getattr(now, field.name) for field in fields(Partition)}
        common["adding"] = fresh
        common["removing"] = tuple(each for each in now.replicas if each not in target)
        transition.now = PlannedPartition(**common, planned=target)


@dataclass(frozen=True, slots=True)
class UniteReplicas:
    """R is the target and all that is there, in the order of a Scala set, which Kafka makes of
    them (``onPartitionReassignment``; 2.12, as its downloads of that time were built)."""

    def perform(self, transition: Transition) -> None:
        both = (transition.now.target or ()) + transition.now.replicas
        transition.now = replace(transition.now, replicas=in_scala_2_12(both))


@dataclass(frozen=True, slots=True)
class SendFormerLeaderAndIsr:
    """To new replicas, with the leader, epochs and ISR of before: to 2.3 ``updateLeaderEpoch``
    writes the state znode and not the controller's cache. Brokers ignore an epoch that is past.
    """

    to: Choice

    def perform(self, transition: Transition) -> None:
        to = transition.live(self.to(transition.context))
        if to:
            start = transition.context.start
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
    """R loses what was to be removed; nothing is added or removed any more."""

    def perform(self, transition: Transition) -> None:
        target = transition.now.target or transition.now.replicas
        transition.now = replace(
            untargeted(transition.now), replicas=target, adding=(), removing=()
        )


@dataclass(frozen=True, slots=True)
class ElectFromIsr:
    """The first of R that is live and in the ISR leads; replicas that are not live leave the ISR.
    For rows whose condition makes sure that there is one."""

    def perform(self, transition: Transition) -> None:
        isr = transition.live(transition.now.isr)
        leader = next(each for each in transition.now.replicas if each in isr)
        transition.now = replace(transition.now, leader=leader, isr=isr)


@dataclass(frozen=True, slots=True)
class KeepLiveInIsr:
    """The leader takes out of the ISR the replicas that are not live; its epoch stays."""

    def perform(self, transition: Transition) -> None:
        now = transition.now
        gone = {each for each in now.replicas if not transition.context.is_live(each)}
        isr = tuple(each for each in now.isr if each not in gone)
        transition.now = replace(now, isr=isr or now.isr)


@dataclass(frozen=True, slots=True)
class RemoveFromIsr:
    """One after the other, each a write of the state znode with a raised leader epoch.

    A leader that goes leaves none. The last in the ISR stays in it, replica or not.
    """

    choose: Choice

    def perform(self, transition: Transition) -> None:
        for broker in sorted(self.choose(transition.context)):
            now = transition.now
            if broker not in now.isr:
                continue
            rest = tuple(each for each in now.isr if each != broker)
            transition.now = replace(
                now,
                leader=NO_LEADER if broker == now.leader else now.leader,
                isr=rest or now.isr,
                leader_epoch=now.leader_epoch + 1,
            )
            WriteStateZnode().perform(transition)
            Commit().perform(transition)


@dataclass(frozen=True, slots=True)
class RemoveFromPlan:
    """A reassignment that came to where ``/admin/reassign_partitions`` wanted it leaves it."""

    def perform(self, transition: Transition) -> None:
        remove_from_plan(
            transition.writer,
            transition.controller,
            transition.cause,
            lambda tp, replicas: tp == transition.tp and replicas == transition.now.replicas,
        )


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """Before 2.4 the controller writes into the plan what it remembers to be under way, whatever
    somebody has made of the znode meanwhile (``removePartitionsFromReassignedPartitions``)."""

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
