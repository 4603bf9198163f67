"""The begin and the completion of rebalances, and the end of sessions, as rows."""

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
    NEW_COORDINATOR,
    GroupRow,
    MemberRow,
    complete_rebalance,
    group_step,
    prepare_rebalance,
    remove_member,
    renew_session,
    settle,
    settle_without_pending,
)
from mockbroker.simulation.groups.classic.rebalancing import (
    NEW_MEMBER_TIMEOUT_MS,
    GroupEvent,
    MemberEvent,
    Rebalancing,
    Rules,
)
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import Row, always, rows_of_release

__all__ = ["rebalance_rules"]


def _reset_assignments(event: GroupEvent) -> None:
    for member in event.group.members.values():
        member.assignment = b""


def _refuse_syncs(event: GroupEvent) -> None:
    event.machine.answer_syncs(event.group, ErrorCode.REBALANCE_IN_PROGRESS)


_WAIT_FOR_MEMBERS: Final = group_step(Rebalancing.wait_for_members)

ON_PREPARE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", is_completing, (_reset_assignments, _refuse_syncs)),
)
"""A rebalance begins before the leader has assigned."""

ON_PREPARED: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-02", first_rebalance_is_delayed, (group_step(Rebalancing.delay),)),
    Row("DP-COORD-11", first_rebalance, (complete_rebalance,)),
    Row("DP-GROUP-03", all_joined, (complete_rebalance,)),
    Row("DP-GROUP-04", always, (_WAIT_FOR_MEMBERS,)),
)
"""The group is in PreparingRebalance: when does that end?"""


def _note_growth(event: MemberEvent) -> None:
    event.group.grew = True


ON_MEMBER_ADDED: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-02", in_first_generation, (_note_growth,), until=NEW_COORDINATOR),
    Row("DP-GROUP-02", first_rebalance, (_note_growth,), since=NEW_COORDINATOR),
)
"""A member that comes during the initial delay prolongs it. Up to 3.9 that holds for a group's very
first generation only."""

ON_SETTLE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-12 DP-LEAVE-05", has_generation, (prepare_rebalance,)),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-03", preparing_and_all_joined, (complete_rebalance,)),
)
"""Members are gone."""

ON_JOINED: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", can_rebalance, (prepare_rebalance,)),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-03", all_joined, (complete_rebalance,)),
)
"""A member has joined, or joined again."""

ON_SESSION_ENDED: Final[tuple[GroupRow, ...]] = (
    # The new coordinator does not check here whether the initial delay is over.
    Row("DP-GROUP-12", preparing_and_all_joined, (complete_rebalance,), since=NEW_COORDINATOR),
    Row("DP-GROUP-12", always, (settle,)),
)


def _dynamic_and_late(event: GroupEvent) -> list[str]:
    group = event.group
    return [
        member.member_id
        for member in group.members.values()
        if not member.is_static and member.member_id not in group.joins
    ]


def _some_are_late(event: GroupEvent) -> bool:
    return bool(_dynamic_and_late(event))


def _remove_late(event: GroupEvent) -> None:
    for member_id in _dynamic_and_late(event):
        event.machine.remove(event.group, member_id)


ON_LATE: Final[tuple[GroupRow, ...]] = (Row("DP-GROUP-05", _some_are_late, (_remove_late,)),)


def _leader_is_late(event: GroupEvent) -> bool:
    return bool(event.group.joins) and event.group.leader not in event.group.joins


def _elect_first_joined(event: GroupEvent) -> None:
    group = event.group
    group.leader = next(member_id for member_id in group.members if member_id in group.joins)


ON_LEADER: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-06", _leader_is_late, (_elect_first_joined,)),
)


def _none_joined(event: GroupEvent) -> bool:
    return bool(event.group.members) and not event.group.joins


_BEGIN_GENERATION: Final = group_step(Rebalancing.next_generation)

ON_COMPLETE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-07", _none_joined, (_WAIT_FOR_MEMBERS,)),
    Row("DP-GROUP-08", lambda event: not event.group.members, (_BEGIN_GENERATION,)),
    Row(
        "DP-GROUP-09",
        always,
        (
            _BEGIN_GENERATION,
            group_step(Rebalancing.begin_syncing),
            group_step(Rebalancing.answer_joins),
        ),
    ),
)
"""The members that did not join are dealt with: does a generation begin?"""

ON_GENERATION: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-10", always, (group_step(Rebalancing.wait_for_syncs),), since=fixes.KAFKA_12890),
)


def _remove_unsynced(event: GroupEvent) -> None:
    for member_id in sorted(event.group.unsynced):
        event.machine.remove(event.group, member_id)


def _some_have_not_synced(event: GroupEvent) -> bool:
    return has_generation(event) and bool(event.group.unsynced)


ON_SYNC_END: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-10", _some_have_not_synced, (_remove_unsynced, prepare_rebalance)),
)

# ---- sessions ------------------------------------------------------------------------------------


def _waits(event: MemberEvent) -> bool:
    return event.group.waits(event.member_id)


def _waits_and_is_known(event: MemberEvent) -> bool:
    """New members have no id to send heartbeats with: their time is up even if they wait."""
    return _waits(event) and not event.member.is_new


ON_PENDING_GONE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-13", preparing_and_all_joined, (complete_rebalance,), since=NEW_COORDINATOR),
    Row("DP-GROUP-02", first_rebalance, ()),
    Row("DP-GROUP-13", preparing_and_all_joined, (complete_rebalance,)),
)

ON_SESSION_END: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-13", pending, (remove_member, settle_without_pending)),
    Row("DP-GROUP-16", _waits, (), until=fixes.KAFKA_7610),
    Row("DP-GROUP-16", _waits_and_is_known, (), since=fixes.KAFKA_7610),
    Row("DP-GROUP-12", always, (remove_member, group_step(Rebalancing.settle_after_session))),
)


def _new_with_short_session(event: MemberEvent) -> bool:
    return event.member.is_new and event.member.session_timeout_ms < NEW_MEMBER_TIMEOUT_MS


def _stop_session(event: MemberEvent) -> None:
    """Kafka takes the new session for one that has been renewed already, since the member's join
    might have waited longer."""
    event.member.session.stop()


ON_JOINS_ANSWERED: Final[tuple[MemberRow, ...]] = (
    Row(
        "DP-GROUP-12",
        _new_with_short_session,
        (_stop_session,),
        since=fixes.KAFKA_7610,
        until=fixes.KAFKA_9752,
    ),
    Row("DP-GROUP-12", always, (renew_session,)),
)


@by_release
def rebalance_rules(release: Release) -> Rules:
    """Return the rules of a release that more than one request leads to."""
    return Rules(
        prepare=rows_of_release(ON_PREPARE, release),
        prepared=rows_of_release(ON_PREPARED, release),
        member_added=rows_of_release(ON_MEMBER_ADDED, release),
        joined=rows_of_release(ON_JOINED, release),
        settle=rows_of_release(ON_SETTLE, release),
        late=rows_of_release(ON_LATE, release),
        leader=rows_of_release(ON_LEADER, release),
        complete=rows_of_release(ON_COMPLETE, release),
        generation=rows_of_release(ON_GENERATION, release),
        joins_answered=rows_of_release(ON_JOINS_ANSWERED, release),
        session_end=rows_of_release(ON_SESSION_END, release),
        session_ended=rows_of_release(ON_SESSION_ENDED, release),
        pending_gone=rows_of_release(ON_PENDING_GONE, release),
        sync_end=rows_of_release(ON_SYNC_END, release),
    )
