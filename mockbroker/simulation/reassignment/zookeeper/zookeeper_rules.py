"""The rules of Kafka's own ZooKeeper controller, 0.10 to 3.9, as tables of rows.

Since 2.4 every reassignment takes the same steps. U: its target is written. A: while the target is
not in sync, old and new replicas get LeaderAndIsr. B: as soon as the target is in sync, the other
replicas are removed. A new controller that finds B half done repeats it from its start, since
replicas leave the topic znode last. Before 2.4 there is no U: A adds the new replicas to those on
record, and nothing on record tells which are new.

LeaderAndIsr is followed by UpdateMetadata to every broker, then by StopReplica, as in a batch of
Kafka's. Kafka sends a new replica's first LeaderAndIsr twice, and so does A. Requests that Kafka
repeats without effect are left out: at B, those to new replicas that a former controller started;
at the death of a broker, those to the other replicas of a partition with a new leader.

Rows name the releases that have them; ``docs/explanation/zookeeper-eras.md`` lists the differences.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode, message
from mockbroker.simulation.reassignment.plan_znode import remove_from_plan, rewrite_plan
from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Choice,
    Effects,
    RuleContext,
    Table,
    Transition,
    commit,
    dropped,
    elect_among_replicas,
    idle,
    leader_and_isr,
    raise_leader_epoch,
    refuse_request,
    replicas,
    send_leader_and_isr,
    send_stop_replica,
    send_update_metadata,
    shrink_isr,
    untargeted,
    write_state_znode,
    write_topic_znode,
)
from mockbroker.simulation.reassignment.zookeeper import refusal_texts as texts
from mockbroker.simulation.reassignment.zookeeper.scala_sets import in_scala_2_12
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Effect, Row, always, with_arguments
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition

__all__ = [
    "ON_CANCEL",
    "ON_CHANGE",
    "ON_ELECTION",
    "ON_LEADER",
    "ON_PARTITION_START",
    "ON_PHASE",
    "ON_PLAN",
    "ON_REPLICA_START",
    "ON_STEP",
    "ON_SUBMIT",
    "ON_UPDATE",
    "REFUSALS",
]

_OFFLINE_AT_START: Final = (2, 3)
"""``ReplicaStateMachine.startup`` handles offline replicas too."""
_KIP_455: Final = (2, 4)
_ALTER_ISR: Final = (2, 7)
"""Leaders change the ISR through the controller (KIP-497)."""
_NEW_AT_ONCE: Final = (2, 7)
"""``updateLeaderEpochAndSendRequest`` says which replicas are new."""
_KAFKA_9672: Final = (3, 0)
"""``Partition.isFollowerOutOfSync`` takes a follower that is not a replica for out of sync."""

# ---- partitions ---------------------------------------------------------------------------------


class PlannedPartition(Partition, frozen=True, gc=False):
    """A partition under reassignment before Kafka 2.4: the target and its order are in the
    controller's memory and in the plan only."""

    planned: Brokers = ()

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> Brokers | None:
        return self.planned


def with_target(partition: Partition, target: Brokers) -> Partition:
    """The partition on its way from its origin to ``target``.

    Replicas that an earlier reassignment was adding, and that ``target`` does not have, are
    dropped.
    """
    origin = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    full = tuple(dict.fromkeys(target + origin))
    return replace(
        partition,
        replicas=full,
        adding=tuple(each for each in full if each not in origin),
        removing=tuple(each for each in full if each not in target),
    )


# ---- conditions ----------------------------------------------------------------------------------


def _incomplete(context: RuleContext) -> bool:
    target = context.start.target
    return target is not None and not set(target) <= set(context.start.isr)


def _complete(context: RuleContext) -> bool:
    target = context.start.target
    return target is not None and set(target) <= set(context.start.isr)


def _leader_to_be_had(context: RuleContext) -> bool:
    target = context.target or context.start.replicas
    return any(each in context.start.isr and context.is_online(each) for each in target)


def _leader_is_gone(context: RuleContext) -> bool:
    replicas = context.start.replicas
    candidates = any(each in context.start.isr and context.is_online(each) for each in replicas)
    return candidates and not context.is_online(context.start.leader)


def _done(context: RuleContext) -> bool:
    """The target is in sync, but none of it can lead any more."""
    return _complete(context) and not _leader_to_be_had(context)


def _done_with_a_leader(context: RuleContext) -> bool:
    return _complete(context) and _leader_to_be_had(context)


def _dead_in_isr(context: RuleContext) -> bool:
    return bool(set(_dead(context)) & set(context.start.isr))


def _isr_beyond_replicas(context: RuleContext) -> bool:
    isr, replicas = set(context.start.isr), set(context.start.replicas)
    return context.is_online(context.start.leader) and not isr <= replicas


def _dead_follower_leaves(context: RuleContext) -> bool:
    left = set(context.start.isr) - set(context.now.isr)
    return any(not context.is_online(each) for each in left)


def _replicas_went(context: RuleContext) -> bool:
    return bool(dropped(context))


def _additions_superseded(context: RuleContext) -> bool:
    """The request lacks replicas that an earlier reassignment was adding."""
    return not set(context.start.adding) <= set(context.requested_replicas)


def _invalid_list(context: RuleContext) -> bool:
    """Any of the four conditions below."""
    checks = (_empty_list, _repeated_broker, _negative_broker, _dead_addition)
    return any(check(context) for check in checks)


def _empty_list(context: RuleContext) -> bool:
    return not context.requested_replicas


def _repeated_broker(context: RuleContext) -> bool:
    return len(set(context.requested_replicas)) != len(context.requested_replicas)


def _negative_broker(context: RuleContext) -> bool:
    return min(context.requested_replicas) < 0


def _dead_addition(context: RuleContext) -> bool:
    """Only brokers to be added have to be live."""
    return not all(context.is_live(each) for each in _additions(context))


# ---- choices -------------------------------------------------------------------------------------


def _kept(context: RuleContext) -> Brokers:
    """The remaining replicas, if the row has removed any."""
    return context.now.replicas if dropped(context) else ()


def _origin(context: RuleContext) -> Brokers:
    return tuple(replica for replica in context.now.replicas if replica not in context.now.adding)


def _recipients_of_the_end(context: RuleContext) -> Brokers:
    """Before 2.4 the last LeaderAndIsr also goes to removed replicas, unless the leader changes."""
    now, start = context.now, context.start
    stays = now.leader == start.leader
    return tuple(dict.fromkeys(start.replicas + now.replicas)) if stays else now.replicas


def _dead(context: RuleContext) -> Brokers:
    return tuple(replica for replica in context.now.replicas if not context.is_online(replica))


def _not_started(context: RuleContext) -> Brokers:
    """New replicas that were not replicas before the request."""
    held: Brokers = context.facts.get("held", context.start.replicas)
    return tuple(each for each in context.now.adding if each not in held)


def _additions(context: RuleContext) -> Brokers:
    return with_target(context.start, context.requested_replicas).adding


# ---- effects -------------------------------------------------------------------------------------


def start_reassignment(transition: Transition) -> None:
    """R becomes the requested replicas, then the rest of the origin; ``adding`` and ``removing``
    tell them apart."""
    transition.now = with_target(transition.now, transition.requested_replicas)


def remember_target(transition: Transition) -> None:
    """Remember the requested replicas as the target; R stays. What an earlier plan was adding stays
    in R until the end."""
    now, target = transition.now, transition.requested_replicas
    fresh = tuple(each for each in target if each not in now.replicas or each in now.adding)
    common = {name: getattr(now, name) for name in Partition.__struct_fields__}
    common["adding"] = fresh
    common["removing"] = tuple(replica for replica in now.replicas if replica not in target)
    transition.now = PlannedPartition(**common, planned=target)


def unite_replicas(transition: Transition) -> None:
    """R becomes the union of target and R, in the order of a Scala 2.12 set
    (``onPartitionReassignment``)."""
    both = (transition.now.target or ()) + transition.now.replicas
    transition.now = replace(transition.now, replicas=in_scala_2_12(both))


@with_arguments
def send_former_leader_and_isr(transition: Transition, to: Choice) -> None:
    """Send new replicas the leader, epochs and ISR from before the row: up to 2.3
    ``updateLeaderEpoch`` writes the state znode but not the controller's cache. Brokers ignore the
    outdated epoch."""
    brokers = transition.live(to(transition))
    if brokers:
        start = transition.start
        former = replace(
            transition.now,
            leader=start.leader,
            leader_epoch=start.leader_epoch,
            isr=start.isr,
            partition_epoch=start.partition_epoch,
        )
        transition.record(leader_and_isr(brokers, transition.tp[0], former, is_new=True))


def adopt_target(transition: Transition) -> None:
    """R becomes the target, and the reassignment ends."""
    target = transition.now.target or transition.now.replicas
    transition.now = replace(untargeted(transition.now), replicas=target, adding=(), removing=())


def elect_from_isr(transition: Transition) -> None:
    """Elect the first of R that is live and in sync, and remove dead replicas from the ISR. The
    row's condition ensures that there is one."""
    isr = tuple(filter(transition.is_online, transition.now.isr))
    leader = next(replica for replica in transition.now.replicas if replica in isr)
    transition.now = replace(transition.now, leader=leader, isr=isr, vacated=False)


def keep_live_in_isr(transition: Transition) -> None:
    """The leader removes dead replicas from the ISR; its epoch stays."""
    now = transition.now
    gone = {replica for replica in now.replicas if not transition.is_online(replica)}
    isr = tuple(each for each in now.isr if each not in gone)
    transition.now = replace(now, isr=isr or now.isr)


@with_arguments
def remove_one_by_one(transition: Transition, choose: Choice) -> None:
    """Remove replicas from the ISR one by one. Each is a write of the state znode with a raised
    leader epoch.

    Removing the leader leaves the partition without one. The last member of the ISR stays, replica
    or not.
    """
    for broker in sorted(choose(transition)):
        now = transition.now
        if broker not in now.isr:
            continue
        rest = tuple(each for each in now.isr if each != broker)
        transition.now = replace(
            now,
            leader=NO_LEADER if broker == now.leader else now.leader,
            vacated=now.vacated or (broker == now.leader and bool(transition.is_online(broker))),
            isr=rest or now.isr,
            leader_epoch=now.leader_epoch + 1,
        )
        write_state_znode(transition)
        commit(transition)


def drop_from_plan(transition: Transition) -> None:
    """Remove the partition from ``/admin/reassign_partitions`` if it has the replicas planned
    there."""
    remove_from_plan(
        transition.writer,
        transition.cause,
        lambda tp, replicas: tp == transition.tp and replicas == transition.now.replicas,
    )


def write_remembered_plan(transition: Transition) -> None:
    """Write what the controller remembers into the plan, whatever the znode holds meanwhile
    (``removePartitionsFromReassignedPartitions``, before 2.4)."""
    rewrite_plan(
        transition.writer,
        transition.cause,
        {
            (name, each.index): each.planned
            for name, each in transition.controller.partitions()
            if isinstance(each, PlannedPartition)
        },
    )


# ---- texts ---------------------------------------------------------------------------------------


def _repeated_text(transition: Transition) -> str:
    return texts.duplicates(transition.requested_replicas)


def _negative_text(transition: Transition) -> str:
    return texts.not_ids(transition.requested_replicas)


def _dead_text(transition: Transition) -> str:
    return texts.not_alive(_additions(transition), transition.controller.live_ids())


# ---- what tables share ---------------------------------------------------------------------------


_STOP_DROPPED: Final[Effects] = (
    send_stop_replica(dropped, delete=False),
    send_stop_replica(dropped),
)

_DROP: Final[Effects] = (
    remove_one_by_one(dropped),
    send_leader_and_isr(_kept),
    send_update_metadata(_replicas_went),
    *_STOP_DROPPED,
)
"""Stop the removed replicas, then have them delete their data."""

_UPDATE: Final[Effects] = (start_reassignment, write_topic_znode, commit)

_ANNOUNCE: Final[Effects] = (
    raise_leader_epoch,
    write_state_znode,
    commit,
    send_leader_and_isr(replicas),
    send_update_metadata(),
)


def _finish(to: Choice, remove_from_plan: Effect[Transition]) -> Effects:
    """Complete a reassignment. Replicas are removed only after the leader has learned of the new
    list: otherwise it could take them back into the ISR."""
    return (
        adopt_target,
        commit,
        elect_among_replicas,
        raise_leader_epoch,
        write_state_znode,
        commit,
        send_leader_and_isr(to),
        send_update_metadata(),
        *_DROP,
        write_topic_znode,
        remove_from_plan,
        send_update_metadata(),
    )


def _finish_without_leader(remove_from_plan: Effect[Transition]) -> Effects:
    """Complete a reassignment whose target is down. The last in-sync replica is in the target, so
    the ISR stays, and no leader needs a LeaderAndIsr."""
    return (
        adopt_target,
        commit,
        send_update_metadata(_replicas_went),
        *_STOP_DROPPED,
        write_topic_znode,
        remove_from_plan,
        send_update_metadata(),
    )


_FINISH: Final[Effects] = _finish(replicas, drop_from_plan)
_FINISH_BEFORE_2_4: Final[Effects] = _finish(_recipients_of_the_end, write_remembered_plan)

# ---- tables --------------------------------------------------------------------------------------

_INVALID: Final = ErrorCode.INVALID_REPLICA_ASSIGNMENT
_NO_REASSIGNMENT: Final = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

REFUSALS: Final[Table] = (
    Row(
        "K455-22, K455-23",
        _invalid_list,
        (refuse_request(_INVALID, message(_INVALID)),),
        until=fixes.KAFKA_9329,
    ),
    Row("K455-23", _empty_list, (refuse_request(_INVALID, texts.EMPTY),), since=fixes.KAFKA_9329),
    Row(
        "K455-23",
        _repeated_broker,
        (refuse_request(_INVALID, _repeated_text),),
        since=fixes.KAFKA_9329,
    ),
    Row(
        "K455-23",
        _negative_broker,
        (refuse_request(_INVALID, _negative_text),),
        since=fixes.KAFKA_9329,
    ),
    Row("K455-23", _dead_addition, (refuse_request(_INVALID, _dead_text),), since=fixes.KAFKA_9329),
)
"""Refused requests. Unlike KRaft, this controller checks the list before it checks whether the
partition exists."""

ON_CANCEL: Final[Table] = (
    Row("K455-22", idle, (refuse_request(_NO_REASSIGNMENT, message(_NO_REASSIGNMENT)),)),
)
"""Refused cancellations. The error has a text, while KRaft sends none."""

_REMEMBER_PLAN: Final[Row[RuleContext, Transition]] = Row(
    "K455-60", always, (remember_target, commit), until=_KIP_455
)

ON_SUBMIT: Final[Table] = (_REMEMBER_PLAN,)
"""Applied to each partition of a plan before any of them starts."""

ON_UPDATE: Final[Table] = (
    Row("K455-01", _additions_superseded, (*_UPDATE, *_DROP), since=_KIP_455),
    Row("K455-01", always, _UPDATE, since=_KIP_455),
    _REMEMBER_PLAN,
)
"""U: a new target, which is the origin if a reassignment is cancelled. An unchanged target writes
nothing, and only removed replicas cause requests. Before 2.4 only memory changes."""

ON_PLAN: Final[Table] = (
    Row(
        "K455-60",
        lambda context: context.start.replicas == context.target,
        (adopt_target, commit, write_remembered_plan),
        until=_KIP_455,
    ),
)
"""A planned partition that has these replicas in this order already is done. So is one to which a
former controller began to add replicas, if its plan adds them at the end."""

ON_PHASE: Final[Table] = (
    Row(
        "K455-42",
        _incomplete,
        (
            raise_leader_epoch,
            write_state_znode,
            commit,
            send_leader_and_isr(_origin),
            send_leader_and_isr(lambda context: context.now.adding, is_new=True),
            send_update_metadata(),
            send_leader_and_isr(_not_started, is_new=True),
        ),
        since=_NEW_AT_ONCE,
    ),
    Row(
        "K455-42",
        _incomplete,
        (*_ANNOUNCE, send_leader_and_isr(_not_started, is_new=True)),
        since=_KIP_455,
        until=_NEW_AT_ONCE,
    ),
    Row("K455-42", _leader_to_be_had, _FINISH, since=_KIP_455),
    Row("K455-42", always, _finish_without_leader(drop_from_plan), since=_KIP_455),
    Row(
        "K455-60",
        _incomplete,
        (
            unite_replicas,
            write_topic_znode,
            commit,
            *_ANNOUNCE,
            send_former_leader_and_isr(_not_started),
        ),
        until=_KIP_455,
    ),
    Row("K455-60", _done_with_a_leader, _FINISH_BEFORE_2_4, until=_KIP_455),
    Row("K455-60", _done, _finish_without_leader(write_remembered_plan), until=_KIP_455),
)
"""A or B: applied after U, after a take-over, and when a broker of the target returns."""

ON_STEP: Final[Table] = (
    Row("K455-42", _complete, _FINISH, since=_KIP_455),
    Row("K455-60", _complete, _FINISH_BEFORE_2_4, until=_KIP_455),
)
"""B alone: applied when the ISR has changed. An ISR that completes a target has a leader."""

ON_ELECTION: Final[Table] = (Row("K455-42 K455-60", _complete, (), until=_ALTER_ISR),)
"""Whether an election that no reassignment requested is followed by ``ON_STEP``. Until 2.7 the
controller reacts to its own write of the state znode; since then only a change of the ISR by the
leader completes a reassignment (real 2.4.1, 2.6.3, 2.7.2, 2.8.2 and 3.9.2)."""

ON_REPLICA_START: Final[Table] = (
    Row(
        "K455-38",
        _dead_in_isr,
        (remove_one_by_one(_dead), send_leader_and_isr(replicas), send_update_metadata()),
        since=_OFFLINE_AT_START,
    ),
)
"""Applied to each partition when a controller starts: offline replicas leave the ISR, and a leader
among them no longer leads (``ReplicaStateMachine.startup``)."""

ON_PARTITION_START: Final[Table] = (
    Row("K455-38", _leader_is_gone, (elect_from_isr, *_ANNOUNCE)),
    Row(
        "K455-38",
        _dead_in_isr,
        (keep_live_in_isr, write_state_znode, commit, send_update_metadata()),
        until=_OFFLINE_AT_START,
    ),
)
"""Applied to each partition next: a starting controller elects leaders before it looks at
reassignments (``PartitionStateMachine.startup``). Dead followers that no controller removes from
the ISR are removed by their leader, which raises no epoch."""

ON_LEADER: Final[Table] = (
    Row("K455-38", _isr_beyond_replicas, (shrink_isr, send_update_metadata()), since=_KAFKA_9672),
)
"""Applied after a raised epoch: the leader removes members of the ISR that are not replicas, since
they never caught up (``Partition.maybeShrinkIsr``). They exist only if a controller died between
two writes of U. Leaders of 2.4 to 2.8 keep them: their attempts to remove them fail."""

ON_CHANGE: Final[Table] = (
    Row(
        "K455-42",
        lambda context: context.now.leader != context.start.leader,
        (write_state_znode, commit, send_leader_and_isr(replicas), send_update_metadata()),
    ),
    Row("K455-42", _dead_follower_leaves, _ANNOUNCE),
    Row("K455-42", always, (write_state_znode, commit, send_update_metadata())),
)
"""An ISR or a leader changed without a reassignment. A leader changes its ISR without raising its
epoch; the controller raises it when it removes a dead follower."""
