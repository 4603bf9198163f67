"""Partition reassignments as KRaft does them (KIP-455 as shipped, KIP-860), as tables.

A reassignment needs nothing but three lists of the partition: ``replicas`` already holds old and
new at once, ``adding`` and ``removing`` say which is which. It completes inside whatever change
makes it complete (``partition_change``), be that a request or a replica joining the ISR; so these
tables are of requests alone.

Error texts are those of Kafka 3.9 to 4.4 (``ReplicationControlManager``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.elections.partition_change import Election, completed, counted, elected, redone
from mockbroker.reassignment.transitions import (
    Brokers,
    Effects,
    Refuse,
    RuleContext,
    Table,
    Transition,
)
from mockbroker.rows import Row, always

__all__ = ["COMPLETION", "GUARDED", "ON_ALTER", "ON_CANCEL", "UNCLEAN_ALLOWED"]

COMPLETION: Final = "completion"
"""Fact: when the release completes reassignments (``Completion``)."""
GUARDED: Final = "guarded"
"""Fact: whether the request forbids another replication factor (KIP-860)."""
UNCLEAN_ALLOWED: Final = "unclean.leader.election.enable"
"""Fact: whether the topic may lose data rather than be offline."""

# ---- conditions and choices ----------------------------------------------------------------------


def _idle(context: RuleContext) -> bool:
    return not context.start.reassigning


def _guard_forbids(context: RuleContext) -> bool:
    """Compared with where the partition is heading, in flight or not."""
    return bool(context.facts[GUARDED]) and _size(context) != len(context.requested_replicas)


def _nobody_stays_in_sync(context: RuleContext) -> bool:
    return not _without_adding(context, context.start.isr)


def _would_lose_data(context: RuleContext) -> bool:
    return _nobody_stays_in_sync(context) and not context.facts[UNCLEAN_ALLOWED]


def _size(context: RuleContext) -> int:
    return len(context.start.target or context.start.replicas)


def _without_adding(context: RuleContext, brokers: Brokers) -> Brokers:
    return tuple(each for each in brokers if each not in context.start.adding)


# ---- effects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadForAsked:
    """From all present replicas, those of an earlier reassignment included.

    Kafka sets each of the two lists only when it has something to put in it. So in flight, a new
    target that adds nothing keeps the earlier ``adding``, and one that drops nothing keeps the
    earlier ``removing``: as observed in its code from 3.9.2 to 4.4.0, and copied on purpose.
    """

    def perform(self, transition: Transition) -> None:
        present, target = set(transition.now.replicas), transition.context.requested_replicas
        removing = tuple(sorted(present - set(target)))
        transition.now = replace(
            transition.now,
            replicas=target + removing,
            adding=tuple(sorted(set(target) - present)) or transition.now.adding,
            removing=removing or transition.now.removing,
        )


@dataclass(frozen=True, slots=True)
class TakeBackAdding:
    """The new replicas go again, from the ISR too; the order of the others stays as the target had
    it."""

    def perform(self, transition: Transition) -> None:
        transition.now = replace(
            transition.now,
            replicas=_without_adding(transition.context, transition.now.replicas),
            isr=_without_adding(transition.context, transition.now.isr),
            adding=(),
            removing=(),
        )


@dataclass(frozen=True, slots=True)
class TrustFirstReplica:
    """It is in sync from now on, whatever it has."""

    def perform(self, transition: Transition) -> None:
        transition.now = replace(transition.now, isr=transition.now.replicas[:1])


@dataclass(frozen=True, slots=True)
class Complete:
    """What is to be removed goes, if those that have to be in sync are."""

    def perform(self, transition: Transition) -> None:
        transition.now = completed(transition.now, transition.context.facts[COMPLETION])


@dataclass(frozen=True, slots=True)
class Elect:
    """``unclean``: where the topic allows it, of those that are not in sync, too."""

    unclean: bool = False

    def perform(self, transition: Transition) -> None:
        allowed = self.unclean and transition.context.facts[UNCLEAN_ALLOWED]
        election = Election.UNCLEAN if allowed else Election.ONLINE
        transition.now = elected(transition.now, transition.context.is_live, election)


@dataclass(frozen=True, slots=True)
class Remember:
    """The controller has it so from now on; done over, where a request names a partition twice."""

    def perform(self, transition: Transition) -> None:
        name, index = transition.tp
        current = transition.controller.state.topics[name].partitions[index]
        after = counted(transition.context.start, transition.now)
        transition.controller.change_partition(
            transition.cause, name, redone(current, transition.context.start, after)
        )


# ---- texts ---------------------------------------------------------------------------------------


def _factor_text(transition: Transition) -> str:
    current, wanted = _size(transition.context), len(transition.context.requested_replicas)
    return f"The replication factor is changed from {current} to {wanted}"


def _unclean_text(transition: Transition) -> str:
    name, index = transition.tp
    return (
        f"Unable to revert partition assignment for {name}:{index} because it would require an "
        "unclean leader election."
    )


# ---- tables --------------------------------------------------------------------------------------

_CANCEL: Final[Effects] = (Elect(unclean=True), Remember())

ON_ALTER: Final[Table] = (
    Row("K860-06", _guard_forbids, (Refuse(ErrorCode.INVALID_REPLICATION_FACTOR, _factor_text),)),
    Row("K455-01", always, (HeadForAsked(), Complete(), Elect(), Remember())),
)

ON_CANCEL: Final[Table] = (
    Row("A-41", _idle, (Refuse(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),)),
    Row(
        "K455-22",
        _would_lose_data,
        (Refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _unclean_text),),
    ),
    Row("K455-01", _nobody_stays_in_sync, (TakeBackAdding(), TrustFirstReplica(), *_CANCEL)),
    Row("K455-01", always, (TakeBackAdding(), *_CANCEL)),
)
