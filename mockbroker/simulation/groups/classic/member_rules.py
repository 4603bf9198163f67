"""SyncGroup, Heartbeat and LeaveGroup as rows, in the order in which Kafka's coordinator checks."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import SyncResult
from mockbroker.simulation.groups.classic.classic_requests import (
    Gate,
    HeartbeatEvent,
    LeaveEvent,
    SyncEvent,
)
from mockbroker.simulation.groups.classic.group_conditions import (
    elsewhere,
    empty_id,
    fenced,
    is_completing,
    is_dead,
    is_preparing,
    leads,
    missing,
    other_generation,
    pending,
    unknown_instance,
    unknown_member,
)
from mockbroker.simulation.groups.classic.group_effects import (
    IN_REBALANCE,
    NEW_COORDINATOR,
    GroupRow,
    member_step,
    refuse_elsewhere,
    remove_member,
    renew_session,
    settle,
    settle_without_pending,
)
from mockbroker.simulation.groups.classic.rebalancing import MemberEvent, Rebalancing
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, always, refuse

__all__ = ["MemberRules"]

# ---- which broker, which group -------------------------------------------------------------------


def _loading(event: Gate) -> bool:
    return event.coordinator_error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


GateRow: TypeAlias = Row[Gate, Gate]

_NO_ID: Final = refuse(ErrorCode.INVALID_GROUP_ID)
_NO_MEMBER: Final = refuse(ErrorCode.UNKNOWN_MEMBER_ID)
_NOT_AVAILABLE: Final = refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

ON_SYNC_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-SYNC-01", empty_id, (_NO_ID,), since=fixes.KAFKA_6773),
    # The rebalance is lost, and old clients do not expect error 14 here.
    Row(
        "DP-COORD-05",
        _loading,
        (refuse(ErrorCode.REBALANCE_IN_PROGRESS),),
        since=(2, 0),
        until=NEW_COORDINATOR,
    ),
    Row("DP-COORD-05", elsewhere, (refuse_elsewhere,)),
    Row("DP-SYNC-01", missing, (_NO_MEMBER,)),
)

ON_HEARTBEAT_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-BEAT-01", empty_id, (_NO_ID,), since=fixes.KAFKA_6773),
    Row("DP-COORD-05", _loading, (refuse(ErrorCode.NONE),)),
    Row("DP-COORD-05", elsewhere, (refuse_elsewhere,)),
    Row("DP-BEAT-01", missing, (_NO_MEMBER,)),
)

ON_LEAVE_GATE: Final[tuple[GateRow, ...]] = (
    Row("DP-LEAVE-02", empty_id, (_NO_ID,), since=fixes.KAFKA_6773),
    Row("DP-COORD-05", elsewhere, (refuse_elsewhere,)),
    Row("DP-LEAVE-02", missing, (_NO_MEMBER,)),
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


def _wait_for_leader(event: SyncEvent) -> None:
    event.machine.wait_for_sync(event.group, event.member_id, event.answer)


def _assign(event: SyncEvent) -> None:
    event.machine.assign(event.group, dict(event.request.assignments))


def _answer_assignment(event: SyncEvent) -> None:
    group = event.group
    names = group.protocol_type, group.protocol_name
    event.answer(SyncResult(ErrorCode.NONE, *names, event.member.assignment))


_NOTE_SYNC: Final = member_step(Rebalancing.has_synced)

ON_SYNC: Final[tuple[SyncRow, ...]] = (
    Row("DP-SYNC-01", is_dead, (_NO_MEMBER,), until=fixes.KAFKA_8386),
    Row("DP-SYNC-01", is_dead, (_NOT_AVAILABLE,), since=fixes.KAFKA_8386),
    Row("DP-SYNC-02", fenced, (refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    # An empty group has no members.
    Row("DP-SYNC-02 DP-SYNC-05", unknown_member, (_NO_MEMBER,)),
    Row("DP-SYNC-02", unknown_instance, (_NO_MEMBER,), since=(3, 0)),
    Row("DP-SYNC-03", other_generation, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-SYNC-04", _other_protocol, (refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL),)),
    Row("DP-SYNC-06", is_preparing, (refuse(ErrorCode.REBALANCE_IN_PROGRESS),)),
    Row(
        "DP-SYNC-07 DP-GROUP-11",
        lambda event: is_completing(event) and leads(event),
        (_wait_for_leader, _NOTE_SYNC, _assign),
    ),
    Row("DP-SYNC-07", is_completing, (_wait_for_leader, _NOTE_SYNC)),
    Row(
        "DP-SYNC-08", always, (_NOTE_SYNC, _answer_assignment, renew_session), until=NEW_COORDINATOR
    ),
    Row("DP-SYNC-08", always, (_NOTE_SYNC, _answer_assignment), since=NEW_COORDINATOR),
)

# ---- Heartbeat -----------------------------------------------------------------------------------


def _completing_member(event: MemberEvent) -> bool:
    return is_completing(event) and not unknown_member(event)


ON_HEARTBEAT: Final[tuple[Row[HeartbeatEvent, HeartbeatEvent], ...]] = (
    Row("DP-BEAT-02", is_dead, (_NO_MEMBER,), until=fixes.KAFKA_8386),
    Row("DP-BEAT-02", is_dead, (_NOT_AVAILABLE,), since=fixes.KAFKA_8386),
    Row("DP-BEAT-05", _completing_member, (IN_REBALANCE,), until=(2, 3)),
    Row("DP-BEAT-03", fenced, (refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-BEAT-03 DP-BEAT-04", unknown_member, (_NO_MEMBER,)),
    Row("DP-BEAT-03", unknown_instance, (_NO_MEMBER,), since=(3, 0)),
    Row("DP-BEAT-03", other_generation, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-BEAT-04", is_preparing, (IN_REBALANCE, renew_session)),
    Row("DP-BEAT-05", is_completing, (IN_REBALANCE,), since=(2, 3), until=(2, 6)),
    Row("DP-BEAT-04 DP-BEAT-05", always, (renew_session,)),
)

# ---- LeaveGroup ----------------------------------------------------------------------------------


def _names_instance(event: LeaveEvent) -> bool:
    return event.member_id == "" and event.instance_id in event.group.instances


def _remove_instance(event: LeaveEvent) -> None:
    assert event.instance_id is not None
    event.machine.remove(event.group, event.group.instances[event.instance_id])


LeaveRow: TypeAlias = Row[LeaveEvent, LeaveEvent]

ON_LEAVE: Final[tuple[LeaveRow, ...]] = (
    Row("DP-LEAVE-03", _names_instance, (_remove_instance, settle), until=NEW_COORDINATOR),
    Row("DP-LEAVE-03", _names_instance, (_remove_instance,), since=NEW_COORDINATOR),
    Row("DP-LEAVE-04", pending, (remove_member, settle_without_pending), until=NEW_COORDINATOR),
    Row("DP-LEAVE-04", pending, (remove_member,), since=NEW_COORDINATOR),
    Row("DP-LEAVE-04", fenced, (refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-LEAVE-04", unknown_member, (_NO_MEMBER,)),
    Row("DP-LEAVE-04", unknown_instance, (_NO_MEMBER,), since=(3, 0)),
    Row("DP-LEAVE-05", always, (remove_member, settle), until=NEW_COORDINATOR),
    Row("DP-LEAVE-05", always, (remove_member,), since=NEW_COORDINATOR),
)
"""For each member that the request names."""

ON_MEMBERS_LEFT: Final[tuple[GroupRow, ...]] = (
    Row("DP-LEAVE-05", always, (settle,), since=NEW_COORDINATOR),
)
"""After the last member that the request names, if one left: a handed-out id counts as one."""


class MemberRules(msgspec.Struct, frozen=True):
    """The rows of SyncGroup, Heartbeat and LeaveGroup."""

    sync_gate: tuple[GateRow, ...] = ON_SYNC_GATE
    sync: tuple[SyncRow, ...] = ON_SYNC
    heartbeat_gate: tuple[GateRow, ...] = ON_HEARTBEAT_GATE
    heartbeat: tuple[Row[HeartbeatEvent, HeartbeatEvent], ...] = ON_HEARTBEAT
    leave_gate: tuple[GateRow, ...] = ON_LEAVE_GATE
    leave: tuple[LeaveRow, ...] = ON_LEAVE
    left: tuple[GroupRow, ...] = ON_MEMBERS_LEFT
