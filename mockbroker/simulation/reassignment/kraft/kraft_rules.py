"""KRaft's rules for reassignment requests (KIP-455 as shipped, KIP-860), as tables of rows.

A reassignment consists of three lists of the partition: ``replicas`` holds old and new replicas,
``adding`` and ``removing`` say which are which. Whatever change makes it complete completes it
(``elections.partition_change``), be that a request or a replica that joins the ISR. So these tables
cover requests only.

Error texts are those of Kafka 3.9 to 4.4 (``ReplicationControlManager``).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.configs.effective import UNCLEAN_ELECTION
from mockbroker.simulation.elections.partition_change import (
    Election,
    complete,
    elect_leader,
    with_difference,
    with_epochs,
)
from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Effects,
    RuleContext,
    Table,
    Transition,
    idle,
    refuse_request,
)
from mockbroker.simulation.releases.rows import Row, always, with_arguments

__all__ = ["COMPLETION", "GUARDED", "ON_ALTER", "ON_CANCEL"]

COMPLETION: Final = "completion"
"""Fact: the rows by which the release completes reassignments (``CompletionRows``)."""
GUARDED: Final = "guarded"
"""Fact: whether the request forbids another replication factor (KIP-860)."""

# ---- conditions and choices ----------------------------------------------------------------------


def _guard_forbids(context: RuleContext) -> bool:
    """The size of the target in progress counts; without one, the number of replicas."""
    return bool(context.facts[GUARDED]) and _size(context) != len(context.requested_replicas)


def _no_replica_in_sync(context: RuleContext) -> bool:
    return not _without_adding(context, context.start.isr)


def _would_lose_data(context: RuleContext) -> bool:
    return _no_replica_in_sync(context) and not context.facts[UNCLEAN_ELECTION]


def _size(context: RuleContext) -> int:
    return len(context.start.target or context.start.replicas)


def _without_adding(context: RuleContext, brokers: Brokers) -> Brokers:
    return tuple(broker for broker in brokers if broker not in context.start.adding)


# ---- effects -------------------------------------------------------------------------------------


def set_target(transition: Transition) -> None:
    """Reassign from all present replicas, those of an earlier reassignment included.

    Kafka sets ``adding`` and ``removing`` only to lists that are not empty. So while a reassignment
    is in progress, a new target that adds nothing keeps the earlier ``adding``, and a target that
    removes nothing keeps the earlier ``removing``. Kafka 3.9.2 to 4.4.0 behaves so.
    """
    present, target = set(transition.now.replicas), transition.requested_replicas
    removing = tuple(sorted(present - set(target)))
    transition.now = replace(
        transition.now,
        replicas=target + removing,
        adding=tuple(sorted(set(target) - present)) or transition.now.adding,
        removing=removing or transition.now.removing,
    )


def remove_adding(transition: Transition) -> None:
    """Remove the replicas that were being added, from the ISR too. The others keep the order that
    the target gave them."""
    transition.now = replace(
        transition.now,
        replicas=_without_adding(transition, transition.now.replicas),
        isr=_without_adding(transition, transition.now.isr),
        adding=(),
        removing=(),
    )


def declare_first_replica_in_sync(transition: Transition) -> None:
    """The ISR becomes the first replica, whatever data it has."""
    transition.now = replace(transition.now, isr=transition.now.replicas[:1])


def complete_if_in_sync(transition: Transition) -> None:
    """Drop the replicas to be removed if those that have to be in sync are."""
    transition.now = complete(transition.now, transition.facts[COMPLETION])


@with_arguments
def elect(transition: Transition, *, unclean: bool = False) -> None:
    """Choose a leader. ``unclean``: replicas out of sync count too, if the topic allows that."""
    allowed = unclean and transition.facts[UNCLEAN_ELECTION]
    election = Election.UNCLEAN if allowed else Election.ONLINE
    transition.now = elect_leader(transition.now, transition.is_online, election)


def commit(transition: Transition) -> None:
    """Make the draft the partition's value. If the request has changed the partition before, apply
    the difference to that value."""
    name, index = transition.tp
    current = transition.controller.partition((name, index))
    after = with_epochs(transition.start, transition.now)
    transition.controller.change_partition(
        transition.cause, name, with_difference(current, transition.start, after)
    )


# ---- texts ---------------------------------------------------------------------------------------


def _factor_text(transition: Transition) -> str:
    current, requested = _size(transition), len(transition.requested_replicas)
    return f"The replication factor is changed from {current} to {requested}"


def _unclean_text(transition: Transition) -> str:
    name, index = transition.tp
    return (
        f"Unable to revert partition assignment for {name}:{index} because it would require an "
        "unclean leader election."
    )


# ---- tables --------------------------------------------------------------------------------------

_CANCEL: Final[Effects] = (elect(unclean=True), commit)

ON_ALTER: Final[Table] = (
    Row(
        "K860-06",
        _guard_forbids,
        (refuse_request(ErrorCode.INVALID_REPLICATION_FACTOR, _factor_text),),
    ),
    Row("K455-01", always, (set_target, complete_if_in_sync, elect(), commit)),
)

ON_CANCEL: Final[Table] = (
    Row("A-41", idle, (refuse_request(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),)),
    Row(
        "K455-22",
        _would_lose_data,
        (refuse_request(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _unclean_text),),
    ),
    Row("K455-01", _no_replica_in_sync, (remove_adding, declare_first_replica_in_sync, *_CANCEL)),
    Row("K455-01", always, (remove_adding, *_CANCEL)),
)
