"""What both revisions of KIP-236 do to replicas, as effects: leave some behind, step by step.

``finish_with`` is the seven steps of the page's rollback. Kafka's own algorithm ends a reassignment
by the same seven, with the reassigned replicas (RAR) in the place of the original ones (OAR).
``take_offline`` is its third step, which other tables need, too. Which replicas, and when, is the
tables' to say; so is where a reassignment is on record.

Step 2 of the page says "OAR - RAR" where it means RAR - OAR, as its steps 3 and 4 do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from mockbroker.reassignment.effects import (
    Commit,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    SetReplicas,
    SetTarget,
    WriteStateZnode,
    WriteTopicZnode,
)
from mockbroker.reassignment.transitions import Brokers, Choice, Effects, RuleContext, Transition
from mockbroker.rows import Effect
from mockbroker.state.actions import ReplicasMoved

__all__ = [
    "DELETION_STARTED",
    "DELETION_SUCCESSFUL",
    "NON_EXISTENT",
    "OFFLINE",
    "MoveReplicas",
    "RemoveFromIsr",
    "dropped",
    "finish_with",
    "replicas",
    "take_offline",
]

OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
NON_EXISTENT: Final = "NonExistentReplica"
"""States of the replica state machine, by Kafka's names."""


@dataclass(frozen=True, slots=True)
class MoveReplicas:
    """They enter a state of the replica state machine; nobody is no step."""

    which: Choice
    state: str

    def perform(self, transition: Transition) -> None:
        which = self.which(transition.context)
        if which:
            transition.record(ReplicasMoved(*transition.tp, which, self.state))


@dataclass(frozen=True, slots=True)
class RemoveFromIsr:
    """Take those who are in it out of the ISR, on record under a leader epoch of its own: else the
    leader would not obey the LeaderAndIsr that tells it. Where nobody else is in it, the last one
    stays: an ISR is never empty."""

    which: Choice

    def perform(self, transition: Transition) -> None:
        gone = self.which(transition.context)
        isr = (
            tuple(each for each in transition.now.isr if each not in gone)
            or transition.now.isr[-1:]
        )
        if isr != transition.now.isr:
            transition.now = replace(
                transition.now, isr=isr, leader_epoch=transition.now.leader_epoch + 1
            )
            WriteStateZnode().perform(transition)
            Commit().perform(transition)


def replicas(context: RuleContext) -> Brokers:
    """R as it is by now."""
    return context.now.replicas


def dropped(context: RuleContext) -> Brokers:
    """What was a replica when the row began, and is none now."""
    return tuple(each for each in context.start.replicas if each not in context.now.replicas)


def take_offline(which: Choice) -> Effects:
    """Out of the ISR; only the leader is told; then they stop, and keep their data."""

    def leader(context: RuleContext) -> Brokers:
        return (context.now.leader,) if which(context) else ()

    return (
        MoveReplicas(which, OFFLINE),
        RemoveFromIsr(which),
        SendLeaderAndIsr(leader),
        SendStopReplica(which, delete=False),
    )


def finish_with(chosen: Choice, remove_record: Effect[Transition]) -> Effects:
    """Make ``chosen`` the replicas, of which one at least must be able to lead, and end the
    reassignment. ``remove_record`` takes it off the record. The numbers are the page's."""
    return (
        # 1: in memory only.
        SetReplicas(chosen),
        Commit(),
        # 2: the leader must not take what is left behind back into the ISR.
        ElectAmongReplicas(),
        RaiseLeaderEpoch(),
        WriteStateZnode(),
        Commit(),
        SendLeaderAndIsr(replicas),
        # 3
        *take_offline(dropped),
        # 4
        MoveReplicas(dropped, NON_EXISTENT),
        SendStopReplica(dropped),
        # 5
        WriteTopicZnode(),
        # 6
        remove_record,
        SetTarget(None),
        Commit(),
        # 7
        SendUpdateMetadata(),
    )
