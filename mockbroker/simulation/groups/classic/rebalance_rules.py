"""When rebalances begin and complete, and what the end of a session does, as rows."""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.group_conditions import (
    all_joined,
    can_rebalance,
    first_rebalance,
    first_rebalance_is_delayed,
    has_generation,
    in_first_generation,
    is_completing,
    pending,
    preparing_and_all_joined,
)
from mockbroker.simulation.groups.classic.group_effects import (
    COMPLETE,
    NEW_COORDINATOR,
    PREPARE,
    SETTLE,
    GroupRow,
    MemberRow,
    remove_member,
)
from mockbroker.simulation.groups.classic.rebalancing import (
    GroupEvent,
    MemberEvent,
)
from mockbroker.simulation.releases.rows import Do, Row, always

__all__ = [
    "ON_COMPLETE",
    "ON_GENERATION",
    "ON_JOINED",
    "ON_LATE",
    "ON_LEADER",
    "ON_MEMBER_ADDED",
    "ON_PENDING_GONE",
    "ON_PREPARE",
    "ON_PREPARED",
    "ON_SESSION_END",
    "ON_SESSION_ENDED",
    "ON_SETTLE",
    "ON_SYNC_END",
]


def _reset_assignments(event: GroupEvent) -> None:
    for member in event.group.members.values():
        member.assignment = b""


def _refuse_syncs(event: GroupEvent) -> None:
    event.machine.answer_syncs(event.group, ErrorCode.REBALANCE_IN_PROGRESS)


_WAIT_FOR_MEMBERS: Final[Do[GroupEvent]] = Do(
    lambda event: event.machine.wait_for_members(event.group)
)


ON_PREPARE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", is_completing, (Do(_reset_assignments), Do(_refuse_syncs))),
)
"""A rebalance begins before the leader has assigned."""

ON_PREPARED: Final[tuple[GroupRow, ...]] = (
    Row(
        "DP-GROUP-02",
        first_rebalance_is_delayed,
        (Do(lambda event: event.machine.delay(event.group)),),
    ),
    Row("DP-COORD-11", first_rebalance, (COMPLETE,)),
    Row("DP-GROUP-03", all_joined, (COMPLETE,)),
    Row("DP-GROUP-04", always, (_WAIT_FOR_MEMBERS,)),
)
"""The group is in PreparingRebalance: when does that end?"""


def _note_growth(event: MemberEvent) -> None:
    event.group.grew = True


ON_MEMBER_ADDED: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-02", in_first_generation, (Do(_note_growth),), until=NEW_COORDINATOR),
    Row("DP-GROUP-02", first_rebalance, (Do(_note_growth),), since=NEW_COORDINATOR),
)
"""A member that comes during the initial delay prolongs it. Up to 3.9 that holds for a group's very
first generation only."""

ON_SETTLE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-12 DP-LEAVE-05", has_generation, (PREPARE,)),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-03", preparing_and_all_joined, (COMPLETE,)),
)
"""Members are gone."""

ON_JOINED: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", can_rebalance, (PREPARE,)),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-03", all_joined, (COMPLETE,)),
)
"""A member has joined, or joined again."""

ON_SESSION_ENDED: Final[tuple[GroupRow, ...]] = (
    # The new coordinator does not ask here whether the initial delay is over.
    Row("DP-GROUP-12", preparing_and_all_joined, (COMPLETE,), since=NEW_COORDINATOR),
    Row("DP-GROUP-12", always, (SETTLE,)),
)


def _dynamic_and_late(event: GroupEvent) -> list[str]:
    group = event.group
    return [
        each.member_id
        for each in group.members.values()
        if not each.is_static and each.member_id not in group.joins
    ]


def _some_are_late(event: GroupEvent) -> bool:
    return bool(_dynamic_and_late(event))


def _remove_late(event: GroupEvent) -> None:
    for member_id in _dynamic_and_late(event):
        event.machine.remove(event.group, member_id)


ON_LATE: Final[tuple[GroupRow, ...]] = (Row("DP-GROUP-05", _some_are_late, (Do(_remove_late),)),)


def _leader_is_late(event: GroupEvent) -> bool:
    return bool(event.group.joins) and event.group.leader not in event.group.joins


def _elect_first_joined(event: GroupEvent) -> None:
    group = event.group
    group.leader = next(each for each in group.members if each in group.joins)


ON_LEADER: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-06", _leader_is_late, (Do(_elect_first_joined),)),
)


def _nobody_joined(event: GroupEvent) -> bool:
    return bool(event.group.members) and not event.group.joins


def _no_members(event: GroupEvent) -> bool:
    return not event.group.members


def _begin_generation(event: GroupEvent) -> None:
    event.machine.next_generation(event.group)


def _answer_joins(event: GroupEvent) -> None:
    event.machine.answer_joins(event.group)


def _follow_generation(event: GroupEvent) -> None:
    event.machine.begin_syncing(event.group)


ON_COMPLETE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-07", _nobody_joined, (_WAIT_FOR_MEMBERS,)),
    Row("DP-GROUP-08", _no_members, (Do(_begin_generation),)),
    Row("DP-GROUP-09", always, (Do(_begin_generation), Do(_follow_generation), Do(_answer_joins))),
)
"""The members that did not join are dealt with: does a generation begin?"""

ON_GENERATION: Final[tuple[GroupRow, ...]] = (
    Row(
        "DP-GROUP-10",
        always,
        (Do(lambda event: event.machine.wait_for_syncs(event.group)),),
        since=(2, 8),
    ),
)


def _remove_unsynced(event: GroupEvent) -> None:
    for member_id in sorted(event.group.unsynced):
        event.machine.remove(event.group, member_id)


def _some_have_not_synced(event: GroupEvent) -> bool:
    return has_generation(event) and bool(event.group.unsynced)


ON_SYNC_END: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-10", _some_have_not_synced, (Do(_remove_unsynced), PREPARE)),
)

# ---- sessions ------------------------------------------------------------------------------------


def _waits(event: MemberEvent) -> bool:
    return event.group.waits(event.member_id)


def _waits_and_is_known(event: MemberEvent) -> bool:
    """New members have no id to send heartbeats with: their time is up even if they wait."""
    return _waits(event) and not event.member.is_new


def _settle_after_session(event: MemberEvent) -> None:
    event.machine.settle_after_session(event.group)


def _settle_without_pending(event: MemberEvent) -> None:
    event.machine.settle_without_pending(event.group)


ON_PENDING_GONE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-13", preparing_and_all_joined, (COMPLETE,), since=NEW_COORDINATOR),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-13", preparing_and_all_joined, (COMPLETE,)),
)

ON_SESSION_END: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-13", pending, (Do(remove_member), Do(_settle_without_pending))),
    Row("DP-GROUP-16", _waits, (), until=(2, 1)),
    Row("DP-GROUP-16", _waits_and_is_known, (), since=(2, 1)),
    Row("DP-GROUP-12", always, (Do(remove_member), Do(_settle_after_session))),
)
