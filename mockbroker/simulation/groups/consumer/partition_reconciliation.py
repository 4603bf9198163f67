"""The steps of a member to its target assignment, as rows: give up, wait, take.

keep = assigned and in the target; revoke = assigned and not in the target; add = in the target and
not kept. ``reconcile`` returns the member after one heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from msgspec.structs import replace

from mockbroker.simulation.groups.consumer.consumer_group import Member
from mockbroker.simulation.groups.modern.modern_group import MemberState
from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, always, apply_first

__all__ = ["ON_RECONCILE", "ON_TARGET_READ", "Reconciliation", "ReconciliationRow", "reconcile"]


@dataclass(eq=False)
class Reconciliation:
    """``target`` is the member's at ``target_epoch``. ``owned`` is what the member says it has,
    None if it does not say. ``is_free`` returns whether a partition is free. ``subscribed``
    returns whether the member subscribes to a partition's topic, and ``changed`` is whether its
    subscription changed just now. ``is_new_instance``: the member has just got an instance
    id that the group did not know, and no target was made for it."""

    member: Member
    target_epoch: int
    target: Assignment
    owned: Assignment | None
    is_free: Callable[[TopicIdPartition], bool]
    subscribed: Callable[[TopicIdPartition], bool] = always
    changed: bool = False
    own_are_free: bool = False
    is_new_instance: bool = False
    result: Member | None = None

    @cached_property
    def keep(self) -> dict[TopicIdPartition, int]:
        return {tp: epoch for tp, epoch in self.member.assigned.items() if tp in self.target}

    @cached_property
    def revoke(self) -> dict[TopicIdPartition, int]:
        return {tp: epoch for tp, epoch in self.member.assigned.items() if tp not in self.target}

    @cached_property
    def add(self) -> dict[TopicIdPartition, int]:
        """The missing partitions that are free, with their epoch."""
        return {tp: self.target_epoch for tp in sorted(self.target) if self._is_available(tp)}

    @property
    def waits(self) -> bool:
        """Whether another member has to release a partition first."""
        return len(self.keep) + len(self.add) < len(self.target)

    def _is_available(self, tp: TopicIdPartition) -> bool:
        if tp in self.keep:
            return False
        return self.is_free(tp) or (self.own_are_free and tp in self.member.revoking)

    def owns(self, partitions: dict[TopicIdPartition, int]) -> bool:
        """Whether the member still has one of these partitions. Silence counts as having them."""
        return self.owned is None or any(tp in partitions for tp in self.owned)


ReconciliationRow: TypeAlias = Row[Reconciliation, Reconciliation]


def _is_settled(event: Reconciliation) -> bool:
    return event.member.is_reconciled_to(event.target_epoch)


def _still_revokes(event: Reconciliation) -> bool:
    member = event.member
    return member.state is MemberState.UNREVOKED and event.owns(dict(member.revoking))


def _has_to_revoke(event: Reconciliation) -> bool:
    return bool(event.revoke) and event.owns(event.revoke)


def _begin_revocation(event: Reconciliation) -> None:
    """Stay at this epoch until the client has given up the partitions."""
    event.result = replace(
        event.member.at_epoch(event.member.epoch),
        state=MemberState.UNREVOKED,
        assigned=event.keep,
        revoking=event.revoke,
    )


def _take(event: Reconciliation, state: MemberState) -> None:
    event.result = replace(
        event.member.at_epoch(event.target_epoch),
        state=state,
        assigned={**event.keep, **event.add},
        revoking={},
    )


def _take_all(event: Reconciliation) -> None:
    _take(event, MemberState.STABLE)


def _take_what_is_free(event: Reconciliation) -> None:
    _take(event, MemberState.UNRELEASED)


def _drop_unsubscribed_topics(event: Reconciliation) -> None:
    """Take away the partitions of topics that the member has just unsubscribed from, without a look
    at the target, which may not be up to date."""
    member = event.member
    kept = {tp: epoch for tp, epoch in member.assigned.items() if event.subscribed(tp)}
    gone = {tp: epoch for tp, epoch in member.assigned.items() if tp not in kept}
    if not gone:
        return
    revoking = {**member.revoking, **gone}
    member = replace(member.at_epoch(member.epoch), assigned=kept)
    if event.owns(revoking):
        member = replace(member, state=MemberState.UNREVOKED, revoking=revoking)
    event.result = member


def _ignore_unsubscribed_topics(event: Reconciliation) -> None:
    event.target = frozenset(tp for tp in event.target if event.subscribed(tp))


def _regard_own_as_free(event: Reconciliation) -> None:
    """Partitions that the member itself is giving up are free for it."""
    event.own_are_free = True


def _find_no_target(event: Reconciliation) -> None:
    """Kafka looks for the target by the instance id, and finds none."""
    event.target = frozenset()


ON_TARGET_READ: Final[tuple[ReconciliationRow, ...]] = (
    Row("DP-RECON-09", lambda event: event.is_new_instance, (_find_no_target,)),
    Row(
        "DP-RECON-08",
        always,
        (_ignore_unsubscribed_topics, _regard_own_as_free),
        since=fixes.KAFKA_19431,
    ),
)
"""Before the member is compared with its target."""

ON_RECONCILE: Final[tuple[ReconciliationRow, ...]] = (
    Row(
        "DP-RECON-08",
        lambda event: _is_settled(event) and event.changed,
        (_drop_unsubscribed_topics,),
        since=fixes.KAFKA_19431,
    ),
    Row("DP-RECON-01", _is_settled, ()),
    Row(
        "DP-RECON-08",
        lambda event: _still_revokes(event) and event.changed,
        (_drop_unsubscribed_topics,),
        since=fixes.KAFKA_19431,
    ),
    Row("DP-RECON-06", _still_revokes, ()),
    Row("DP-RECON-02", _has_to_revoke, (_begin_revocation,)),
    Row("DP-RECON-03 DP-RECON-05", lambda event: not event.waits, (_take_all,)),
    Row("DP-RECON-04 DP-RECON-05", always, (_take_what_is_free,)),
)
"""A member sends a heartbeat."""


def reconcile(
    on_target_read: tuple[ReconciliationRow, ...],
    on_reconcile: tuple[ReconciliationRow, ...],
    event: Reconciliation,
) -> Member:
    """Return the member after this heartbeat; the same object if nothing changes."""
    apply_first(on_target_read, event, event)
    apply_first(on_reconcile, event, event)
    return event.member if event.result is None else event.result
