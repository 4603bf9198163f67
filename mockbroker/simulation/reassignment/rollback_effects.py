"""Effects that both revisions of KIP-236 share: how replicas leave a partition, step by step.

``finish_with`` is the seven steps of the page's rollback. Kafka's own algorithm ends a reassignment
by the same steps, with the reassigned replicas (RAR) instead of the original ones (OAR).
``take_offline`` is the third step, which other tables use on its own. Tables decide which replicas
leave and when, and where a reassignment is recorded.

Step 2 of the page says "OAR - RAR" where it means RAR - OAR, as its steps 3 and 4 do.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Choice,
    Commit,
    Effects,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    RuleContext,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    SetReplicas,
    SetTarget,
    Transition,
    WriteStateZnode,
    WriteTopicZnode,
    dropped,
    replicas,
)
from mockbroker.simulation.releases.rows import Effect
from mockbroker.simulation.state.actions import ReplicasMoved

__all__ = [
    "DELETION_STARTED",
    "DELETION_SUCCESSFUL",
    "NON_EXISTENT",
    "OFFLINE",
    "MoveReplicas",
    "RemoveFromIsr",
    "finish_with",
    "take_offline",
]

OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
NON_EXISTENT: Final = "NonExistentReplica"
"""States of Kafka's replica state machine."""


class MoveReplicas(msgspec.Struct, frozen=True):
    """Log that replicas enter a state of the replica state machine, if there are any."""

    which: Choice
    state: str

    def __call__(self, transition: Transition) -> None:
        which = self.which(transition)
        if which:
            transition.record(ReplicasMoved(*transition.tp, which, self.state))


class RemoveFromIsr(msgspec.Struct, frozen=True):
    """Remove replicas from the ISR, and raise the leader epoch: otherwise the leader would ignore
    the LeaderAndIsr that follows. The last member of the ISR stays."""

    which: Choice

    def __call__(self, transition: Transition) -> None:
        gone = self.which(transition)
        isr = (
            tuple(each for each in transition.now.isr if each not in gone)
            or transition.now.isr[-1:]
        )
        if isr != transition.now.isr:
            transition.now = replace(
                transition.now, isr=isr, leader_epoch=transition.now.leader_epoch + 1
            )
            WriteStateZnode()(transition)
            Commit()(transition)


def take_offline(which: Choice) -> Effects:
    """Remove replicas from the ISR, tell the leader, then stop them. Their data stays."""

    def leader(context: RuleContext) -> Brokers:
        return (context.now.leader,) if which(context) else ()

    return (
        MoveReplicas(which, OFFLINE),
        RemoveFromIsr(which),
        SendLeaderAndIsr(leader),
        SendStopReplica(which, delete=False),
    )


def finish_with(chosen: Choice, remove_record: Effect[Transition]) -> Effects:
    """Make ``chosen`` the replicas, of which at least one must be able to lead, and end the
    reassignment. ``remove_record`` deletes its record. The numbers are the page's."""
    return (
        # 1: in memory only
        SetReplicas(chosen),
        Commit(),
        # 2: so that the leader does not take the dropped replicas back into the ISR
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
