"""KRaft's rules for reassignment requests (KIP-455 as shipped, KIP-860), as tables of rows.

A reassignment consists of three lists of the partition: ``replicas`` holds old and new replicas,
``adding`` and ``removing`` say which are which. Whatever change makes it complete completes it
(``elections.partition_change``), be that a request or a replica that joins the ISR. So these tables
cover requests only.

Error texts are those of Kafka 3.9 to 4.4 (``ReplicationControlManager``).
"""

from __future__ import annotations

from typing import Final

import msgspec
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
    Refuse,
    RuleContext,
    Table,
    Transition,
    idle,
)
from mockbroker.simulation.releases.rows import Row, always

__all__ = ["COMPLETION", "GUARDED", "ON_ALTER", "ON_CANCEL"]

COMPLETION: Final = "completion"
"""Fact: the rows by which the release completes reassignments (``CompletionRows``)."""
GUARDED: Final = "guarded"
"""Fact: whether the request forbids another replication factor (KIP-860)."""

# ---- conditions and choices ----------------------------------------------------------------------


def _guard_forbids(context: RuleContext) -> bool:
    """The size of the target in progress counts; without one, the number of replicas."""
    return bool(context.facts[GUARDED]) and _size(context) != len(context.requested_replicas)


def _nobody_stays_in_sync(context: RuleContext) -> bool:
    return not _without_adding(context, context.start.isr)


def _would_lose_data(context: RuleContext) -> bool:
    return _nobody_stays_in_sync(context) and not context.facts[UNCLEAN_ELECTION]


def _size(context: RuleContext) -> int:
    return len(context.start.target or context.start.replicas)


def _without_adding(context: RuleContext, brokers: Brokers) -> Brokers:
    return tuple(each for each in brokers if each not in context.start.adding)


# ---- effects -------------------------------------------------------------------------------------


class SetTarget(msgspec.Struct, frozen=True):
    """Reassign from all present replicas, those of an earlier reassignment included.

    Kafka sets ``adding`` and ``removing`` only to lists that are not empty. So while a reassignment
    is in progress, a new target that adds nothing keeps the earlier ``adding``, and a target that
    removes nothing keeps the earlier ``removing``. Kafka 3.9.2 to 4.4.0 behaves so.
    """

    def __call__(self, transition: Transition) -> None:
        present, target = set(transition.now.replicas), transition.requested_replicas
        removing = tuple(sorted(present - set(target)))
        transition.now = replace(
            transition.now,
            replicas=target + removing,
            adding=tuple(sorted(set(target) - present)) or transition.now.adding,
            removing=removing or transition.now.removing,
        )


class RemoveAdding(msgspec.Struct, frozen=True):
    """Remove the replicas that were being added, from the ISR too. The others keep the order that
    the target gave them."""

    def __call__(self, transition: Transition) -> None:
        transition.now = replace(
            transition.now,
            replicas=_without_adding(transition, transition.now.replicas),
            isr=_without_adding(transition, transition.now.isr),
            adding=(),
            removing=(),
        )


class DeclareFirstReplicaInSync(msgspec.Struct, frozen=True):
    """The ISR becomes the first replica, whatever data it has."""

    def __call__(self, transition: Transition) -> None:
        transition.now = replace(transition.now, isr=transition.now.replicas[:1])


class Complete(msgspec.Struct, frozen=True):
    """Drop the replicas to be removed if those that have to be in sync are."""

    def __call__(self, transition: Transition) -> None:
        transition.now = complete(transition.now, transition.facts[COMPLETION])


class Elect(msgspec.Struct, frozen=True):
    """Choose a leader. ``unclean``: replicas out of sync count too, if the topic allows that."""

    unclean: bool = False

    def __call__(self, transition: Transition) -> None:
        allowed = self.unclean and transition.facts[UNCLEAN_ELECTION]
        election = Election.UNCLEAN if allowed else Election.ONLINE
        transition.now = elect_leader(transition.now, transition.is_online, election)


class Commit(msgspec.Struct, frozen=True):
    """Make the draft the partition's value. If the request has changed the partition before, apply
    the difference to that value."""

    def __call__(self, transition: Transition) -> None:
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

_CANCEL: Final[Effects] = (Elect(unclean=True), Commit())

ON_ALTER: Final[Table] = (
    Row("K860-06", _guard_forbids, (Refuse(ErrorCode.INVALID_REPLICATION_FACTOR, _factor_text),)),
    Row("K455-01", always, (SetTarget(), Complete(), Elect(), Commit())),
)

ON_CANCEL: Final[Table] = (
    Row("A-41", idle, (Refuse(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),)),
    Row(
        "K455-22",
        _would_lose_data,
        (Refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _unclean_text),),
    ),
    Row("K455-01", _nobody_stays_in_sync, (RemoveAdding(), DeclareFirstReplicaInSync(), *_CANCEL)),
    Row("K455-01", always, (RemoveAdding(), *_CANCEL)),
)
