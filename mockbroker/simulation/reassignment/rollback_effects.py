"""Effects that both revisions of KIP-236 share: how replicas leave a partition, step by step.

``finish_with`` is the seven steps of the page's rollback. Kafka's own algorithm ends a reassignment
by the same steps, with the reassigned replicas (RAR) instead of the original ones (OAR).
``take_offline`` is the third step, which other tables use on its own. Tables decide which replicas
leave and when, and where a reassignment is recorded.

Step 2 of the page says "OAR - RAR" where it means RAR - OAR, as its steps 3 and 4 do.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Choice,
    Effects,
    RuleContext,
    Transition,
    commit,
    dropped,
    elect_among_replicas,
    raise_leader_epoch,
    replicas,
    send_leader_and_isr,
    send_stop_replica,
    send_update_metadata,
    set_replicas,
    set_target,
    write_state_znode,
    write_topic_znode,
)
from mockbroker.simulation.releases.rows import Effect, with_arguments
from mockbroker.simulation.state.actions import ReplicasMoved

__all__ = [
    "DELETION_STARTED",
    "DELETION_SUCCESSFUL",
    "NON_EXISTENT",
    "OFFLINE",
    "finish_with",
    "move_replicas",
    "remove_from_isr",
    "take_offline",
]

OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
NON_EXISTENT: Final = "NonExistentReplica"
"""States of Kafka's replica state machine."""


@with_arguments
def move_replicas(transition: Transition, which: Choice, state: str) -> None:
    """Log that replicas enter a state of the replica state machine, if there are any."""
    moving = which(transition)
    if moving:
        transition.record(ReplicasMoved(*transition.tp, moving, state))


@with_arguments
def remove_from_isr(transition: Transition, which: Choice) -> None:
    """Remove replicas from the ISR, and raise the leader epoch: otherwise the leader would ignore
    the LeaderAndIsr that follows. The last member of the ISR stays."""
    gone = which(transition)
    isr = tuple(each for each in transition.now.isr if each not in gone) or transition.now.isr[-1:]
    if isr != transition.now.isr:
        transition.now = replace(
            transition.now, isr=isr, leader_epoch=transition.now.leader_epoch + 1
        )
        write_state_znode(transition)
        commit(transition)


def take_offline(which: Choice) -> Effects:
    """Remove replicas from the ISR, tell the leader, then stop them. Their data stays."""

    def leader(context: RuleContext) -> Brokers:
        return (context.now.leader,) if which(context) else ()

    return (
        move_replicas(which, OFFLINE),
        remove_from_isr(which),
        send_leader_and_isr(leader),
        send_stop_replica(which, delete=False),
    )


def finish_with(chosen: Choice, remove_record: Effect[Transition]) -> Effects:
    """Make ``chosen`` the replicas, of which at least one must be able to lead, and end the
    reassignment. ``remove_record`` deletes its record. The numbers are the page's."""
    return (
        # 1: in memory only
        set_replicas(chosen),
        commit,
        # 2: so that the leader does not take the dropped replicas back into the ISR
        elect_among_replicas,
        raise_leader_epoch,
        write_state_znode,
        commit,
        send_leader_and_isr(replicas),
        # 3
        *take_offline(dropped),
        # 4
        move_replicas(dropped, NON_EXISTENT),
        send_stop_replica(dropped),
        # 5
        write_topic_znode,
        # 6
        remove_record,
        set_target(None),
        commit,
        # 7
        send_update_metadata(),
    )
