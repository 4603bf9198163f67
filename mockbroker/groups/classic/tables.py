"""The rules of classic groups, as tables of rows, in the order in which Kafka's coordinator checks.

Kafka 4.0 has a new coordinator (``GroupMetadataManager``); rows with ``until=(4, 0)`` are those of
the former one (``GroupCoordinator``). Requirements are DP-GROUP, DP-JOIN, DP-SYNC, DP-BEAT and
DP-LEAVE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from kproto.error_codes import ErrorCode
from mockbroker.groups.classic.events import (
    Admission,
    CommitEvent,
    DeleteEvent,
    Gate,
    HeartbeatEvent,
    JoinEvent,
    LeaveEvent,
    MissingGroup,
    SyncEvent,
)
from mockbroker.groups.classic.model import GroupState, JoinResult, Member, SyncResult
from mockbroker.groups.classic.rebalancing import (
    NEW_MEMBER_TIMEOUT_MS,
    GroupEvent,
    MemberEvent,
    Rules,
)
from mockbroker.groups.classic.settings import MOST_MEMBERS
from mockbroker.rows import Release, Row, always, apply_first, rows_of_release

__all__ = [
    "ON_ADMISSION",
    "ON_COMMIT",
    "ON_DELETE",
    "ON_HEARTBEAT",
    "ON_JOIN",
    "ON_LEAVE",
    "ON_SYNC",
    "RequestRules",
    "request_rules",
    "rules",
]

_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING
_COMPLETING, _STABLE, _DEAD = GroupState.COMPLETING, GroupState.STABLE, GroupState.DEAD

_NEW_COORDINATOR: Final[Release] = (4, 0)
_STATIC_MEMBERS: Final[Release] = (2, 3)

EventT_contra = TypeVar("EventT_contra", contravariant=True)


class _Refusable(Protocol):
    def refuse(self, code: ErrorCode) -> None: ...


@dataclass(frozen=True, slots=True)
class Do(Generic[EventT_contra]):
    """An effect that is a function of the event."""

    act: Callable[[EventT_contra], None]

    def perform(self, subject: EventT_contra, /) -> None:
        self.act(subject)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error code, and the member id of the request where the response has one."""

    code: ErrorCode

    def perform(self, subject: _Refusable, /) -> None:
        subject.refuse(self.code)


@dataclass(frozen=True, slots=True)
class RefuseWithoutId:
    """Answer with an error code and an empty member id: the client's own is not valid."""

    code: ErrorCode

    def perform(self, subject: JoinEvent, /) -> None:
        subject.refuse_without_id(self.code)


# ---- conditions ----------------------------------------------------------------------------------


def _in(*states: GroupState) -> Callable[[GroupEvent], bool]:
    return lambda event: event.group.state in states


_is_empty, _is_preparing, _is_completing = _in(_EMPTY), _in(_PREPARING), _in(_COMPLETING)
_is_stable, _is_dead, _has_generation = _in(_STABLE), _in(_DEAD), _in(_COMPLETING, _STABLE)
_can_rebalance = _in(_EMPTY, _COMPLETING, _STABLE)


def _all_joined(event: GroupEvent) -> bool:
    return event.group.all_joined


def _preparing_and_all_joined(event: GroupEvent) -> bool:
    return _is_preparing(event) and event.group.all_joined


def _first_rebalance(event: GroupEvent) -> bool:
    return event.group.in_initial_delay


def _first_rebalance_is_delayed(event: GroupEvent) -> bool:
    return event.group.in_initial_delay and event.machine.settings.initial_rebalance_delay_ms > 0


def _in_first_generation(event: GroupEvent) -> bool:
    return _is_preparing(event) and event.group.generation == 0


def _unknown_member(event: MemberEvent) -> bool:
    return event.member_id not in event.group.members


def _unknown_instance(event: MemberEvent) -> bool:
    return event.instance_id is not None and event.instance_id not in event.group.instances


def _fenced(event: MemberEvent) -> bool:
    """The instance id belongs to another member id."""
    known = None if event.instance_id is None else event.group.instances.get(event.instance_id)
    return known is not None and known != event.member_id


def _pending(event: MemberEvent) -> bool:
    return event.member_id in event.group.pending


def _leads(event: MemberEvent) -> bool:
    return event.member_id == event.group.leader


def _other_generation(event: SyncEvent | HeartbeatEvent | CommitEvent) -> bool:
    return event.generation != event.group.generation


# ---- rebalances ----------------------------------------------------------------------------------


def _reset_assignments(event: GroupEvent) -> None:
    for member in event.group.members.values():
        member.assignment = b""


def _refuse_syncs(event: GroupEvent) -> None:
    event.machine.answer_syncs(event.group, ErrorCode.REBALANCE_IN_PROGRESS)


_COMPLETE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.complete(event.group))
_PREPARE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.prepare(event.group))
_SETTLE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.settle(event.group))
_WAIT_FOR_MEMBERS: Final[Do[GroupEvent]] = Do(
    lambda event: event.machine.wait_for_members(event.group)
)

GroupRow: TypeAlias = Row[GroupEvent, GroupEvent]
MemberRow: TypeAlias = Row[MemberEvent, MemberEvent]

ON_PREPARE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", _is_completing, (Do(_reset_assignments), Do(_refuse_syncs))),
)
"""A rebalance begins before the leader has assigned."""

ON_PREPARED: Final[tuple[GroupRow, ...]] = (
    Row(
        "DP-GROUP-02",
        _first_rebalance_is_delayed,
        (Do(lambda event: event.machine.delay(event.group)),),
    ),
    Row("DP-COORD-11", _first_rebalance, (_COMPLETE,)),
    Row("DP-GROUP-03", _all_joined, (_COMPLETE,)),
    Row("DP-GROUP-04", always, (_WAIT_FOR_MEMBERS,)),
)
"""The group is in PreparingRebalance: when does that end?"""


def _note_growth(event: MemberEvent) -> None:
    event.group.grew = True


ON_MEMBER_ADDED: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-02", _in_first_generation, (Do(_note_growth),), until=_NEW_COORDINATOR),
    Row("DP-GROUP-02", _first_rebalance, (Do(_note_growth),), since=_NEW_COORDINATOR),
)
"""A member that comes during the initial delay prolongs it. Up to 3.9 that holds for a group's very
first generation only."""

ON_SETTLE: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-12 DP-LEAVE-05", _has_generation, (_PREPARE,)),
    Row("DP-GROUP-02", _first_rebalance, ()),
    Row("DP-GROUP-03", _preparing_and_all_joined, (_COMPLETE,)),
)
"""Members are gone."""

ON_JOINED: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-01", _can_rebalance, (_PREPARE,)),
    Row("DP-GROUP-02", _first_rebalance, ()),
    Row("DP-GROUP-03", _all_joined, (_COMPLETE,)),
)
"""A member has joined, or joined again."""

ON_SESSION_ENDED: Final[tuple[GroupRow, ...]] = (
    # The new coordinator does not ask here whether the initial delay is over.
    Row("DP-GROUP-12", _preparing_and_all_joined, (_COMPLETE,), since=_NEW_COORDINATOR),
    Row("DP-GROUP-12", always, (_SETTLE,)),
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
    return _has_generation(event) and bool(event.group.unsynced)


ON_SYNC_END: Final[tuple[GroupRow, ...]] = (
    Row("DP-GROUP-10", _some_have_not_synced, (Do(_remove_unsynced), _PREPARE)),
)

# ---- sessions ------------------------------------------------------------------------------------


def _waits(event: MemberEvent) -> bool:
    return event.group.waits(event.member_id)


def _waits_and_is_known(event: MemberEvent) -> bool:
    """New members have no id to send heartbeats with: their time is up even if they wait."""
    return _waits(event) and not event.member.is_new


def _remove(event: MemberEvent) -> None:
    event.machine.remove(event.group, event.member_id)


def _settle_after_session(event: MemberEvent) -> None:
    event.machine.settle_after_session(event.group)


ON_SESSION_END: Final[tuple[MemberRow, ...]] = (
    Row("DP-GROUP-13", _pending, (Do(_remove), Do(_settle_after_session))),
    Row("DP-GROUP-16", _waits, (), until=(2, 1)),
    Row("DP-GROUP-16", _waits_and_is_known, (), since=(2, 1)),
    Row("DP-GROUP-12", always, (Do(_remove), Do(_settle_after_session))),
)

# ---- JoinGroup -----------------------------------------------------------------------------------


def _no_group_id(event: Admission) -> bool:
    return not event.request.group_id


def _session_out_of_limits(event: Admission) -> bool:
    settings = event.machine.settings
    shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    return not shortest <= event.request.session_timeout_ms <= longest


def _no_group_of_member(event: Admission) -> bool:
    return event.group is None and event.request.member_id != ""


def _elsewhere(event: Admission | Gate) -> bool:
    """The broker does not coordinate the group, or not yet."""
    return event.coordinator_error is not ErrorCode.NONE


def _refuse_elsewhere(event: Admission | Gate) -> None:
    event.refuse(event.coordinator_error)


ON_ADMISSION: Final[tuple[Row[Admission, Admission], ...]] = (
    Row("DP-JOIN-01", _no_group_id, (Refuse(ErrorCode.INVALID_GROUP_ID),)),
    Row("DP-COORD-05", _elsewhere, (Do(_refuse_elsewhere),), until=_NEW_COORDINATOR),
    Row("DP-JOIN-02", _session_out_of_limits, (Refuse(ErrorCode.INVALID_SESSION_TIMEOUT),)),
    Row("DP-COORD-05", _elsewhere, (Do(_refuse_elsewhere),), since=_NEW_COORDINATOR),
    Row("DP-JOIN-03", _no_group_of_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
)
"""Before the group is made, if there is none."""


def _is_new(event: JoinEvent) -> bool:
    return event.member_id == ""


def _has_to_shed(event: JoinEvent) -> bool:
    """The group is larger than it may be and the member has not joined yet, or it is new and
    there is no room."""
    group, most = event.group, event.machine.settings.max_size
    known = event.member_id in group.members
    sheds = len(group.members) > most and known and event.member_id not in group.joins
    return sheds or (_is_new(event) and len(group.members) >= most)


def _is_full(event: JoinEvent) -> bool:
    group, most = event.group, event.machine.settings.max_size
    if _is_preparing(event):
        return event.member_id not in group.joins and len(group.joins) >= most
    if _has_generation(event):
        return event.member_id not in group.members and len(group.members) >= most
    return False


def _is_crowded(event: JoinEvent) -> bool:
    """This mock's own bound."""
    return _is_new(event) and len(event.group.members) + len(event.group.pending) >= MOST_MEMBERS


def _inconsistent(event: JoinEvent) -> bool:
    return not event.group.supports(event.request.protocol_type, event.request.protocols)


def _replaces(event: JoinEvent) -> bool:
    return _is_new(event) and event.instance_id in event.group.instances


def _is_new_instance(event: JoinEvent) -> bool:
    return _is_new(event) and event.instance_id is not None


def _needs_member_id(event: JoinEvent) -> bool:
    return _is_new(event) and event.request.needs_member_id


def _pending_with_instance(event: JoinEvent) -> bool:
    return _pending(event) and event.instance_id is not None


def _completing_and_unchanged(event: JoinEvent) -> bool:
    return _is_completing(event) and event.member.protocols == event.request.protocols


def _stable_and_rejoins(event: JoinEvent) -> bool:
    """The leader forces a rebalance by joining, others by joining with other protocols."""
    changed = event.member.protocols != event.request.protocols
    return _is_stable(event) and (_leads(event) or changed)


def _forget(event: JoinEvent) -> None:
    event.machine.remove(event.group, event.member_id)


def _require_id(event: JoinEvent) -> None:
    member_id = event.new_member_id(event.request)
    event.machine.add_pending(event.group, member_id, event.request.session_timeout_ms)
    event.answer(JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _add(event: JoinEvent) -> None:
    """Add the member, under an id of the broker's making if it has none."""
    request, machine, group = event.request, event.machine, event.group
    if _is_new(event):
        event.member_id = event.new_member_id(request)
    member = Member(
        event.member_id,
        event.instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocol_type,
        request.protocols,
        machine.session(group, event.member_id),
    )
    machine.add(group, member)
    member.session.renew(NEW_MEMBER_TIMEOUT_MS)


def _wait(event: JoinEvent) -> None:
    event.machine.wait_for_join(event.group, event.member_id, event.answer)


def _rebalance_or_complete(event: JoinEvent) -> None:
    event.machine.joined(event.group)


def _complete_if_joined(event: JoinEvent) -> None:
    """The member that was refused may have been the last that was missing."""
    if _is_preparing(event):
        event.machine.settle(event.group)


def _update(event: JoinEvent) -> None:
    event.group.set_protocols(event.member, event.request.protocols)


def _take_timeouts(event: JoinEvent) -> None:
    event.member.rebalance_timeout_ms = event.request.rebalance_timeout_ms
    event.member.session_timeout_ms = event.request.session_timeout_ms


def _answer_generation(event: JoinEvent) -> None:
    event.answer(event.group.generation_for(event.member_id))


def _replace(event: JoinEvent) -> None:
    """Give the instance's member another id, and fence whoever uses the former one."""
    group, machine = event.group, event.machine
    assert event.instance_id is not None
    former = group.instances[event.instance_id]
    fenced = ErrorCode.FENCED_INSTANCE_ID
    event.former_leader = group.leader
    group.answer_join(former, JoinResult(fenced, former))
    group.answer_sync(former, SyncResult(fenced))
    member = group.members[former]
    event.member_id = event.new_member_id(event.request)
    member.session.stop()
    member.session = machine.session(group, event.member_id)
    group.rename(member, event.member_id)
    machine.renew(member)
    machine.changed(group)


def _protocol_stays(event: JoinEvent) -> bool:
    return _is_stable(event) and event.group.protocol_name == event.group.elected_protocol()


def _can_skip(event: JoinEvent) -> bool:
    return _protocol_stays(event) and event.request.can_skip_assignment


def _store(event: JoinEvent) -> None:
    event.group.store()


def _answer_skipping(event: JoinEvent) -> None:
    result = event.group.generation_for(event.member_id)
    leads = _leads(event)
    event.group.answer_join(
        event.member_id,
        JoinResult(
            result.error_code, result.member_id, result.generation, result.protocol_type,
            result.protocol_name, result.leader, leads, result.members,
        ),
    )  # fmt: skip


def _answer_naming_former_leader(event: JoinEvent) -> None:
    """The client must not take itself for the leader: the group has its assignments."""
    group = event.group
    group.answer_join(
        event.member_id,
        JoinResult(
            ErrorCode.NONE, event.member_id, group.generation, group.protocol_type,
            group.protocol_name, event.former_leader or "",
        ),
    )  # fmt: skip


JoinRow: TypeAlias = Row[JoinEvent, JoinEvent]

_ADD: Final = (Do(_add), Do(_wait), Do(_rebalance_or_complete))
_TOO_LARGE: Final = RefuseWithoutId(ErrorCode.GROUP_MAX_SIZE_REACHED)


def _answer_replacement(event: JoinEvent) -> None:
    apply_first(event.on_replaced, event, event)


def _take_changes(event: JoinEvent) -> None:
    apply_first(event.on_updated, event, event)


_REPLACE: Final = (Do(_replace), Do(_take_changes), Do(_wait), Do(_answer_replacement))
_REJOIN: Final = (Do(_take_changes), Do(_wait), Do(_rebalance_or_complete))

ON_JOIN: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-05", _is_crowded, (_TOO_LARGE,)),
    Row(
        "DP-JOIN-05",
        _has_to_shed,
        (Do(_forget), _TOO_LARGE, Do(_complete_if_joined)),
        since=(2, 2),
        until=(2, 6),
    ),
    Row(
        "DP-JOIN-05",
        _is_full,
        (Do(_forget), _TOO_LARGE, Do(_complete_if_joined)),
        since=(2, 6),
        until=_NEW_COORDINATOR,
    ),
    Row("DP-JOIN-05", _is_full, (Do(_forget), _TOO_LARGE), since=_NEW_COORDINATOR),
    Row("DP-JOIN-06", _is_dead, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), until=(2, 3)),
    Row("DP-JOIN-06", _is_dead, (Refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),), since=(2, 3)),
    Row("DP-JOIN-07", _inconsistent, (Refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL),)),
    Row("DP-JOIN-11", _replaces, _REPLACE),
    Row("DP-JOIN-10", _is_new_instance, _ADD),
    Row("DP-JOIN-08", _needs_member_id, (Do(_require_id),)),
    Row("DP-JOIN-09", _is_new, _ADD),
    # Kafka's coordinator takes this for a bug of its own and fails.
    Row("DP-JOIN-12", _pending_with_instance, (RefuseWithoutId(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row("DP-JOIN-12", _pending, _ADD),
    Row("DP-JOIN-13", _fenced, (Refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-JOIN-13 DP-JOIN-17", _unknown_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-JOIN-13", _unknown_instance, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-JOIN-14", _is_preparing, _REJOIN),
    Row("DP-JOIN-15", _completing_and_unchanged, (Do(_answer_generation),)),
    Row("DP-JOIN-15", _is_completing, _REJOIN),
    Row("DP-JOIN-16", _stable_and_rejoins, _REJOIN),
    Row("DP-JOIN-16", always, (Do(_answer_generation),)),
)

ON_UPDATED: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-14", always, (Do(_update),), until=(3, 3)),
    Row("DP-JOIN-14", always, (Do(_update), Do(_take_timeouts)), since=(3, 3)),
)
"""A member joins again: what changes?"""

ON_REPLACED: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-18", _has_generation, (Do(_answer_naming_former_leader),), until=(2, 6)),
    Row("DP-JOIN-18", _can_skip, (Do(_store), Do(_answer_skipping)), since=(2, 6)),
    Row(
        "DP-JOIN-19", _protocol_stays, (Do(_store), Do(_answer_naming_former_leader)), since=(2, 6)
    ),
    Row("DP-JOIN-18", always, (Do(_rebalance_or_complete),)),
)
"""A static member has another id."""

# ---- which broker, which group -------------------------------------------------------------------


def _empty_id(event: Gate) -> bool:
    return event.group_id == ""


def _loading(event: Gate) -> bool:
    return event.coordinator_error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _missing(event: Gate) -> bool:
    return not event.exists


GateRow: TypeAlias = Row[Gate, Gate]

_NO_ID: Final = Refuse(ErrorCode.INVALID_GROUP_ID)
_NO_MEMBER: Final = Refuse(ErrorCode.UNKNOWN_MEMBER_ID)

ON_SYNC_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-SYNC-01", _empty_id, (_NO_ID,), since=(2, 0)),
    # The rebalance is lost, and old clients do not expect error 14 here.
    Row(
        "DP-COORD-05",
        _loading,
        (Refuse(ErrorCode.REBALANCE_IN_PROGRESS),),
        since=(2, 0),
        until=_NEW_COORDINATOR,
    ),
    Row("DP-COORD-05", _elsewhere, (Do(_refuse_elsewhere),)),
    Row("DP-SYNC-01", _missing, (_NO_MEMBER,)),
)

ON_HEARTBEAT_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-BEAT-01", _empty_id, (_NO_ID,), since=(2, 0)),
    Row("DP-COORD-05", _loading, (Refuse(ErrorCode.NONE),)),
    Row("DP-COORD-05", _elsewhere, (Do(_refuse_elsewhere),)),
    Row("DP-BEAT-01", _missing, (_NO_MEMBER,)),
)

ON_LEAVE_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-LEAVE-02", _empty_id, (_NO_ID,), since=(2, 0)),
    Row("DP-COORD-05", _elsewhere, (Do(_refuse_elsewhere),)),
    Row("DP-LEAVE-02", _missing, (_NO_MEMBER,)),
)

# ---- SyncGroup -----------------------------------------------------------------------------------

SyncRow: TypeAlias = Row[SyncEvent, SyncEvent]


def _other_protocol(event: SyncEvent) -> bool:
    """The request names a protocol that is not the group's. Below version 5 it names none."""
    request, group = event.request, event.group
    return (
        request.protocol_type not in (None, group.protocol_type)
        or request.protocol_name not in (None, group.protocol_name)
    )  # fmt: skip


def _completing_and_leads(event: SyncEvent) -> bool:
    return _is_completing(event) and _leads(event)


def _wait_for_leader(event: SyncEvent) -> None:
    event.machine.wait_for_sync(event.group, event.member_id, event.answer)


def _note_sync(event: SyncEvent) -> None:
    event.machine.has_synced(event.group, event.member_id)


def _assign(event: SyncEvent) -> None:
    event.machine.assign(event.group, dict(event.request.assignments))


def _answer_assignment(event: SyncEvent) -> None:
    group = event.group
    names = group.protocol_type, group.protocol_name
    event.answer(SyncResult(ErrorCode.NONE, *names, event.member.assignment))


def _renew(event: MemberEvent) -> None:
    event.machine.renew(event.member)


ON_SYNC: Final[tuple[SyncRow, ...]] = (
    Row("DP-SYNC-01", _is_dead, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), until=(2, 3)),
    Row("DP-SYNC-01", _is_dead, (Refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),), since=(2, 3)),
    Row("DP-SYNC-02", _fenced, (Refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    # An empty group has no members.
    Row("DP-SYNC-02 DP-SYNC-05", _unknown_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-SYNC-02", _unknown_instance, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), since=(3, 0)),
    Row("DP-SYNC-03", _other_generation, (Refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-SYNC-04", _other_protocol, (Refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL),)),
    Row("DP-SYNC-06", _is_preparing, (Refuse(ErrorCode.REBALANCE_IN_PROGRESS),)),
    Row(
        "DP-SYNC-07 DP-GROUP-11",
        _completing_and_leads,
        (Do(_wait_for_leader), Do(_note_sync), Do(_assign)),
    ),
    Row("DP-SYNC-07", _is_completing, (Do(_wait_for_leader), Do(_note_sync))),
    Row(
        "DP-SYNC-08",
        always,
        (Do(_note_sync), Do(_answer_assignment), Do(_renew)),
        until=_NEW_COORDINATOR,
    ),
    Row("DP-SYNC-08", always, (Do(_note_sync), Do(_answer_assignment)), since=_NEW_COORDINATOR),
)

# ---- Heartbeat -----------------------------------------------------------------------------------


def _completing_member(event: MemberEvent) -> bool:
    return _is_completing(event) and not _unknown_member(event)


_IN_REBALANCE: Final = Refuse(ErrorCode.REBALANCE_IN_PROGRESS)

ON_HEARTBEAT: Final[tuple[Row[HeartbeatEvent, HeartbeatEvent], ...]] = (
    Row("DP-BEAT-02", _is_dead, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), until=(2, 3)),
    Row("DP-BEAT-02", _is_dead, (Refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),), since=(2, 3)),
    Row("DP-BEAT-05", _completing_member, (_IN_REBALANCE,), until=(2, 3)),
    Row("DP-BEAT-03", _fenced, (Refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-BEAT-03 DP-BEAT-04", _unknown_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-BEAT-03", _unknown_instance, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), since=(3, 0)),
    Row("DP-BEAT-03", _other_generation, (Refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-BEAT-04", _is_preparing, (_IN_REBALANCE, Do(_renew))),
    Row("DP-BEAT-05", _is_completing, (_IN_REBALANCE,), since=(2, 3), until=(2, 6)),
    Row("DP-BEAT-04 DP-BEAT-05", always, (Do(_renew),)),
)

# ---- LeaveGroup ----------------------------------------------------------------------------------


def _names_nobody(event: LeaveEvent) -> bool:
    return event.member_id == ""


def _names_instance(event: LeaveEvent) -> bool:
    return _names_nobody(event) and event.instance_id in event.group.instances


def _remove_instance(event: LeaveEvent) -> None:
    assert event.instance_id is not None
    event.machine.remove(event.group, event.group.instances[event.instance_id])


LeaveRow: TypeAlias = Row[LeaveEvent, LeaveEvent]

ON_LEAVE: Final[tuple[LeaveRow, ...]] = (
    Row("DP-LEAVE-03", _names_instance, (Do(_remove_instance),)),
    Row("DP-LEAVE-03", _names_nobody, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-LEAVE-04", _pending, (Do(_remove),)),
    Row("DP-LEAVE-04", _fenced, (Refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-LEAVE-04", _unknown_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-LEAVE-04", _unknown_instance, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), since=(3, 0)),
    Row("DP-LEAVE-05", always, (Do(_remove),)),
)
"""For each member that the request names."""

ON_MEMBER_LEFT: Final[tuple[GroupRow, ...]] = (
    Row("DP-LEAVE-05", always, (_SETTLE,), until=_NEW_COORDINATOR),
)
"""Each member that left, unless it was refused."""

ON_MEMBERS_LEFT: Final[tuple[GroupRow, ...]] = (
    Row("DP-LEAVE-05", always, (_SETTLE,), since=_NEW_COORDINATOR),
)
"""After the last member that the request names, if one left."""

# ---- OffsetCommit and DeleteGroups ---------------------------------------------------------------

CommitRow: TypeAlias = Row[CommitEvent, CommitEvent]
MissingRow: TypeAlias = Row[MissingGroup, MissingGroup]


def _generation_named(event: MissingGroup) -> bool:
    return event.generation >= 0


def _make_group(event: MissingGroup) -> None:
    event.make()


def _new_version(event: MissingGroup) -> bool:
    return _generation_named(event) and event.version >= 9


ON_MISSING_IN_COMMIT: Final[tuple[MissingRow, ...]] = (
    Row(
        "DP-OFFSET-03",
        _new_version,
        (Refuse(ErrorCode.GROUP_ID_NOT_FOUND),),
        since=_NEW_COORDINATOR,
    ),
    Row("DP-OFFSET-03", _generation_named, (Refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-OFFSET-02", always, (Do(_make_group),)),
)
"""Offsets are committed for a group that does not exist."""


def _simple_and_empty(event: CommitEvent) -> bool:
    return event.generation < 0 and _is_empty(event)


def _simple(event: CommitEvent) -> bool:
    """Neither a generation nor a member is named."""
    return event.generation < 0 and event.member_id == "" and event.instance_id is None


def _simple_and_transactional(event: CommitEvent) -> bool:
    return _simple(event) and event.transactional


def _plain_and_completing(event: CommitEvent) -> bool:
    return not event.transactional and _is_completing(event)


def _transactional(event: CommitEvent) -> bool:
    return event.transactional


ON_COMMIT: Final[tuple[CommitRow, ...]] = (
    Row("DP-OFFSET-04", _is_dead, (Refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),)),
    # Transactions name no member before KIP-447.
    Row("DP-OFFSET-06", _transactional, (), until=(2, 5)),
    Row("DP-OFFSET-04", _simple_and_empty, ()),
    Row("DP-OFFSET-05", _simple_and_transactional, ()),
    Row("DP-OFFSET-05", _simple, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-OFFSET-06", _fenced, (Refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-OFFSET-06", _unknown_member, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-OFFSET-06", _unknown_instance, (Refuse(ErrorCode.UNKNOWN_MEMBER_ID),), since=(3, 0)),
    Row("DP-OFFSET-06", _other_generation, (Refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-OFFSET-07", _plain_and_completing, (_IN_REBALANCE,)),
    Row("DP-OFFSET-07", _transactional, ()),
    Row("DP-OFFSET-08", always, (Do(_renew),)),
)

ON_DELETE: Final[tuple[Row[DeleteEvent, DeleteEvent], ...]] = (
    Row("DP-OFFSET-20", _is_dead, (Refuse(ErrorCode.GROUP_ID_NOT_FOUND),)),
    Row("DP-OFFSET-20", _is_empty, (Do(lambda event: event.delete(event.group)),)),
    Row("DP-OFFSET-20", always, (Refuse(ErrorCode.NON_EMPTY_GROUP),)),
)

# ---- releases ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The rows of one release, by request."""

    admission: tuple[Row[Admission, Admission], ...]
    join: tuple[JoinRow, ...]
    updated: tuple[JoinRow, ...]
    replaced: tuple[JoinRow, ...]
    sync: tuple[SyncRow, ...]
    heartbeat: tuple[Row[HeartbeatEvent, HeartbeatEvent], ...]
    leave: tuple[LeaveRow, ...]
    member_left: tuple[GroupRow, ...]
    members_left: tuple[GroupRow, ...]
    sync_gate: tuple[GateRow, ...]
    heartbeat_gate: tuple[GateRow, ...]
    leave_gate: tuple[GateRow, ...]
    missing_in_commit: tuple[MissingRow, ...]
    commit: tuple[CommitRow, ...]
    delete: tuple[Row[DeleteEvent, DeleteEvent], ...]


@cache
def rules(release: Release) -> Rules:
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
        session_end=rows_of_release(ON_SESSION_END, release),
        session_ended=rows_of_release(ON_SESSION_ENDED, release),
        sync_end=rows_of_release(ON_SYNC_END, release),
    )


@cache
def request_rules(release: Release) -> RequestRules:
    """Return the rules of a release for requests."""
    return RequestRules(
        admission=rows_of_release(ON_ADMISSION, release),
        join=rows_of_release(ON_JOIN, release),
        updated=rows_of_release(ON_UPDATED, release),
        replaced=rows_of_release(ON_REPLACED, release),
        sync=rows_of_release(ON_SYNC, release),
        heartbeat=rows_of_release(ON_HEARTBEAT, release),
        leave=rows_of_release(ON_LEAVE, release),
        member_left=rows_of_release(ON_MEMBER_LEFT, release),
        members_left=rows_of_release(ON_MEMBERS_LEFT, release),
        sync_gate=rows_of_release(ON_SYNC_GATE, release),
        heartbeat_gate=rows_of_release(ON_HEARTBEAT_GATE, release),
        leave_gate=rows_of_release(ON_LEAVE_GATE, release),
        missing_in_commit=rows_of_release(ON_MISSING_IN_COMMIT, release),
        commit=rows_of_release(ON_COMMIT, release),
        delete=rows_of_release(ON_DELETE, release),
    )
