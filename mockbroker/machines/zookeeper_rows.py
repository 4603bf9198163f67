"""Kafka's own ZooKeeper controller, 2.4 to 3.9, as tables. Nothing here acts.

Every reassignment, however it came about, goes the same road: its new assignment goes on record
(U); then, as long as the target is not in the ISR, old and new replicas are told to go on (A); as
soon as it is, the rest is removed (B). B is taken again from its start by a controller that finds
it half done: replicas leave the topic znode last.

LeaderAndIsr is followed by UpdateMetadata to every broker, and that by StopReplica, as one batch of
Kafka's has them. Kafka sends a new replica's first LeaderAndIsr twice, and so does A. What it sends
again without need is left out: at B to new replicas that a former controller started, at the death
of a broker to the others of a partition that got another leader.
"""

from __future__ import annotations

from typing import Final

from mockbroker.machines.effects import (
    Commit,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    ShrinkIsr,
    WriteStateZnode,
    WriteTopicZnode,
)
from mockbroker.machines.engine import Brokers, Effect, Moment, Row
from mockbroker.machines.zookeeper_effects import (
    ElectFromIsr,
    HeadForAsked,
    LeavePlan,
    RemoveFromIsr,
    SettleOnTarget,
)

__all__ = ["ON_CHANGE", "ON_PHASE", "ON_STEP", "ON_TAKE_OVER", "ON_UPDATE"]

# ---- conditions ----------------------------------------------------------------------------------


def _always(_: Moment) -> bool:
    return True


def _incomplete(moment: Moment) -> bool:
    return moment.start.reassigning and not set(moment.target) <= set(moment.start.isr)


def _complete(moment: Moment) -> bool:
    return moment.start.reassigning and set(moment.target) <= set(moment.start.isr)


def _leader_to_be_had(moment: Moment) -> bool:
    target = moment.target or moment.start.replicas
    return any(each in moment.start.isr and moment.is_live(each) for each in target)


def _leader_is_gone(moment: Moment) -> bool:
    replicas = moment.start.replicas
    candidates = any(each in moment.start.isr and moment.is_live(each) for each in replicas)
    return candidates and not moment.is_live(moment.start.leader)


def _leader_changes(moment: Moment) -> bool:
    return moment.now.leader != moment.start.leader


def _dead_follower_leaves(moment: Moment) -> bool:
    left = set(moment.start.isr) - set(moment.now.isr)
    return any(not moment.is_live(each) for each in left)


def _replicas_went(moment: Moment) -> bool:
    return bool(_dropped(moment))


# ---- choices -------------------------------------------------------------------------------------


def _dropped(moment: Moment) -> Brokers:
    """What was a replica when the row began, and is none now."""
    return tuple(each for each in moment.start.replicas if each not in moment.now.replicas)


def _kept(moment: Moment) -> Brokers:
    """Who has to hear that others are gone."""
    return moment.now.replicas if _dropped(moment) else ()


def _replicas(moment: Moment) -> Brokers:
    return moment.now.replicas


def _origin(moment: Moment) -> Brokers:
    return tuple(each for each in moment.now.replicas if each not in moment.now.adding)


def _adding(moment: Moment) -> Brokers:
    return moment.now.adding


def _not_started(moment: Moment) -> Brokers:
    """New replicas that were none before the request."""
    held: Brokers = moment.facts.get("held", moment.start.replicas)
    return tuple(each for each in moment.now.adding if each not in held)


# ---- what tables share ---------------------------------------------------------------------------


_STOP_DROPPED: Final[tuple[Effect, ...]] = (
    SendStopReplica(_dropped, delete=False),
    SendStopReplica(_dropped),
)

_DROP: Final[tuple[Effect, ...]] = (
    RemoveFromIsr(_dropped),
    SendLeaderAndIsr(_kept),
    SendUpdateMetadata(_replicas_went),
    *_STOP_DROPPED,
)
"""They go offline, and then for good."""

_TELL: Final[tuple[Effect, ...]] = (
    RaiseLeaderEpoch(),
    WriteStateZnode(),
    Commit(),
    SendLeaderAndIsr(_replicas),
    SendUpdateMetadata(),
)

_FINISH: Final[tuple[Effect, ...]] = (
    SettleOnTarget(),
    Commit(),
    ElectAmongReplicas(),
    *_TELL,
    *_DROP,
    WriteTopicZnode(),
    LeavePlan(),
    SendUpdateMetadata(),
    ShrinkIsr(),
)
"""The rest is removed only after the leader has heard that it is no replica any more: or else it
could take it into the ISR again. Only where a former controller died between two writes of U is
there more in the ISR, and the leader sees to that."""

_FINISH_WITHOUT_LEADER: Final[tuple[Effect, ...]] = (
    SettleOnTarget(),
    Commit(),
    SendUpdateMetadata(_replicas_went),
    *_STOP_DROPPED,
    WriteTopicZnode(),
    LeavePlan(),
    SendUpdateMetadata(),
)
"""All of the target is down, and so the last in sync is among it: nobody is to be taken out of the
ISR, and nobody there to be told of it."""

# ---- tables --------------------------------------------------------------------------------------

ON_UPDATE: Final = (Row("K455-01", _always, (HeadForAsked(), WriteTopicZnode(), Commit(), *_DROP)),)
"""U. A new target, the origin of a cancelled reassignment among them. Where it makes no difference
nothing is written, and where nobody is dropped nobody is told."""

ON_PHASE: Final = (
    Row(
        "K455-42",
        _incomplete,
        (
            RaiseLeaderEpoch(),
            WriteStateZnode(),
            Commit(),
            SendLeaderAndIsr(_origin),
            SendLeaderAndIsr(_adding, is_new=True),
            SendUpdateMetadata(),
            SendLeaderAndIsr(_not_started, is_new=True),
        ),
    ),
    Row("K455-42", _leader_to_be_had, _FINISH),
    Row("K455-42", _always, _FINISH_WITHOUT_LEADER),
)
"""A or B: what follows U, and a take-over, and a return of a broker that is needed."""

ON_STEP: Final = (Row("K455-42", _complete, _FINISH),)
"""B alone: what follows a change of the ISR. One that completes a target has a leader."""

ON_TAKE_OVER: Final = (Row("K455-38", _leader_is_gone, (ElectFromIsr(), *_TELL)),)
"""Each partition, before its reassignment is looked at: a controller that comes up elects first."""

ON_CHANGE: Final = (
    Row(
        "K455-42",
        _leader_changes,
        (WriteStateZnode(), Commit(), SendLeaderAndIsr(_replicas), SendUpdateMetadata()),
    ),
    Row("K455-42", _dead_follower_leaves, _TELL),
    Row("K455-42", _always, (WriteStateZnode(), Commit(), SendUpdateMetadata())),
)
"""An ISR or a leader changed without a reassignment. The leader itself changes its ISR without
raising its epoch; the controller raises it when it takes out a follower that died."""
