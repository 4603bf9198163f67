"""Partition reassignments as KRaft does them (KIP-455 as shipped, KIP-860), as tables.

A reassignment needs nothing but three lists of the partition: ``replicas`` already holds old and
new at once, ``adding`` and ``removing`` say which is which. It completes inside whatever change
makes it complete (``partition_change``), be that a request or a replica joining the ISR; so these
tables are of requests alone.

Error texts are those of Kafka 3.9 to 4.4 (``ReplicationControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.elections.partition_change import Election, completed, counted, elected, redone
from mockbroker.errors import Refusal
from mockbroker.reassignment.engine import Brokers, Effect, Moment, Row, Work

__all__ = ["GUARDED", "ON_ALTER", "ON_CANCEL", "UNCLEAN_ALLOWED"]

GUARDED: Final = "guarded"
"""Fact: whether the request forbids another replication factor (KIP-860)."""
UNCLEAN_ALLOWED: Final = "unclean.leader.election.enable"
"""Fact: whether the topic may lose data rather than be offline."""

# ---- conditions and choices ----------------------------------------------------------------------


def _always(_: Moment) -> bool:
    return True


def _idle(moment: Moment) -> bool:
    return not moment.start.reassigning


def _guard_forbids(moment: Moment) -> bool:
    """Compared with where the partition is heading, in flight or not."""
    return bool(moment.facts[GUARDED]) and _size(moment) != len(moment.asked)


def _nobody_stays_in_sync(moment: Moment) -> bool:
    return not _without_adding(moment, moment.start.isr)


def _would_lose_data(moment: Moment) -> bool:
    return _nobody_stays_in_sync(moment) and not moment.facts[UNCLEAN_ALLOWED]


def _size(moment: Moment) -> int:
    return len(moment.start.target or moment.start.replicas)


def _without_adding(moment: Moment, brokers: Brokers) -> Brokers:
    return tuple(each for each in brokers if each not in moment.start.adding)


# ---- effects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with this and change nothing. ``text`` None is the code's own, not sent."""

    code: ErrorCode
    text: Callable[[Work], str] | None = None

    def perform(self, work: Work) -> None:
        raise Refusal(self.code, None if self.text is None else self.text(work))


@dataclass(frozen=True, slots=True)
class HeadForAsked:
    """From all present replicas, those of an earlier reassignment included.

    Kafka sets each of the two lists only when it has something to put in it. So in flight, a new
    target that adds nothing keeps the earlier ``adding``, and one that drops nothing keeps the
    earlier ``removing``: as observed in its code from 3.9.2 to 4.4.0, and copied on purpose.
    """

    def perform(self, work: Work) -> None:
        present, target = set(work.now.replicas), work.moment.asked
        removing = tuple(sorted(present - set(target)))
        work.now = replace(
            work.now,
            replicas=target + removing,
            adding=tuple(sorted(set(target) - present)) or work.now.adding,
            removing=removing or work.now.removing,
        )


@dataclass(frozen=True, slots=True)
class TakeBackAdding:
    """The new replicas go again, from the ISR too; the order of the others stays as the target had
    it."""

    def perform(self, work: Work) -> None:
        work.now = replace(
            work.now,
            replicas=_without_adding(work.moment, work.now.replicas),
            isr=_without_adding(work.moment, work.now.isr),
            adding=(),
            removing=(),
        )


@dataclass(frozen=True, slots=True)
class TrustFirstReplica:
    """It is in sync from now on, whatever it has."""

    def perform(self, work: Work) -> None:
        work.now = replace(work.now, isr=work.now.replicas[:1])


@dataclass(frozen=True, slots=True)
class Complete:
    """What is to be removed goes, if those that have to be in sync are."""

    def perform(self, work: Work) -> None:
        work.now = completed(work.now, work.controller.completion)


@dataclass(frozen=True, slots=True)
class Elect:
    """``unclean``: where the topic allows it, of those that are not in sync, too."""

    unclean: bool = False

    def perform(self, work: Work) -> None:
        allowed = self.unclean and work.moment.facts[UNCLEAN_ALLOWED]
        election = Election.UNCLEAN if allowed else Election.ONLINE
        work.now = elected(work.now, work.moment.is_live, election)


@dataclass(frozen=True, slots=True)
class Remember:
    """The controller has it so from now on; done over, where a request names a partition twice."""

    def perform(self, work: Work) -> None:
        name, index = work.tp
        current = work.controller.state.topics[name].partitions[index]
        after = counted(work.moment.start, work.now)
        work.controller.change_partition(
            work.cause, name, redone(current, work.moment.start, after)
        )


# ---- texts ---------------------------------------------------------------------------------------


def _factor_text(work: Work) -> str:
    current, wanted = _size(work.moment), len(work.moment.asked)
    return f"The replication factor is changed from {current} to {wanted}"


def _unclean_text(work: Work) -> str:
    name, index = work.tp
    return (
        f"Unable to revert partition assignment for {name}:{index} because it would require an "
        "unclean leader election."
    )


# ---- tables --------------------------------------------------------------------------------------

_CANCEL: Final[tuple[Effect, ...]] = (Elect(unclean=True), Remember())

ON_ALTER: Final = (
    Row("K860-06", _guard_forbids, (Refuse(ErrorCode.INVALID_REPLICATION_FACTOR, _factor_text),)),
    Row("K455-01", _always, (HeadForAsked(), Complete(), Elect(), Remember())),
)

ON_CANCEL: Final = (
    Row("A-41", _idle, (Refuse(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),)),
    Row(
        "K455-22",
        _would_lose_data,
        (Refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _unclean_text),),
    ),
    Row("K455-01", _nobody_stays_in_sync, (TakeBackAdding(), TrustFirstReplica(), *_CANCEL)),
    Row("K455-01", _always, (TakeBackAdding(), *_CANCEL)),
)
