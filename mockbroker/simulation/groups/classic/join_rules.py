"""JoinGroup as rows, in the order in which Kafka's coordinator checks."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import JoinResult, Member
from mockbroker.simulation.groups.classic.classic_requests import Admission, JoinEvent
from mockbroker.simulation.groups.classic.classic_settings import MOST_MEMBERS
from mockbroker.simulation.groups.classic.group_conditions import (
    elsewhere,
    fenced,
    has_generation,
    is_completing,
    is_dead,
    is_empty,
    is_preparing,
    is_stable,
    leads,
    pending,
    unknown_instance,
    unknown_member,
)
from mockbroker.simulation.groups.classic.group_effects import (
    NEW_COORDINATOR,
    group_step,
    refuse_elsewhere,
    refuse_without_id,
    remove_member,
)
from mockbroker.simulation.groups.classic.rebalancing import NEW_MEMBER_TIMEOUT_MS, Rebalancing
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, always, apply_first, refuse

__all__ = ["JoinRules"]


def _no_group_id(event: Admission) -> bool:
    return not event.request.group_id


def _session_out_of_limits(event: Admission) -> bool:
    return not event.machine.settings.allows_session(event.request.session_timeout_ms)


def _no_group_of_member(event: Admission) -> bool:
    return event.group is None and event.request.member_id != ""


def _refuse_elsewhere_without_id(event: Admission) -> None:
    """The answer does not repeat the member's id."""
    event.answer(JoinResult(event.coordinator_error, ""))


ON_ADMISSION: Final[tuple[Row[Admission, Admission], ...]] = (
    Row("DP-JOIN-01", _no_group_id, (refuse(ErrorCode.INVALID_GROUP_ID),)),
    Row("DP-COORD-05", elsewhere, (refuse_elsewhere,), until=NEW_COORDINATOR),
    Row("DP-JOIN-02", _session_out_of_limits, (refuse(ErrorCode.INVALID_SESSION_TIMEOUT),)),
    Row("DP-COORD-05", elsewhere, (_refuse_elsewhere_without_id,), since=NEW_COORDINATOR),
    Row("DP-JOIN-03", _no_group_of_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
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
    if is_preparing(event):
        return event.member_id not in group.joins and len(group.joins) >= most
    if has_generation(event):
        return event.member_id not in group.members and len(group.members) >= most
    return False


def _is_crowded(event: JoinEvent) -> bool:
    """This mock's own bound."""
    return _is_new(event) and len(event.group.members) + len(event.group.pending) >= MOST_MEMBERS


_TYPE_NEEDED: Final = (1, 1)
"""From here on the first member of a group needs a protocol type: by bytecode not in 0.11.0.3."""


def _inconsistent(event: JoinEvent) -> bool:
    return not event.group.supports(event.request.protocol_type, event.request.protocols)


def _replaces(event: JoinEvent) -> bool:
    return _is_new(event) and event.instance_id in event.group.instances


def _needs_member_id(event: JoinEvent) -> bool:
    return _is_new(event) and event.request.needs_member_id


def _pending_with_instance(event: JoinEvent) -> bool:
    return pending(event) and event.instance_id is not None


def _completing_and_unchanged(event: JoinEvent) -> bool:
    return is_completing(event) and event.member.protocols == event.request.protocols


def _stable_and_rejoins(event: JoinEvent) -> bool:
    """The leader forces a rebalance by joining, others by joining with other protocols."""
    changed = event.member.protocols != event.request.protocols
    return is_stable(event) and (leads(event) or changed)


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


def _complete_if_joined(event: JoinEvent) -> None:
    """The member that was refused may have been the last that was missing."""
    if is_preparing(event):
        event.machine.settle(event.group)


def _update(event: JoinEvent) -> None:
    event.group.set_protocols(event.member, event.request.protocols)


def _take_timeouts(event: JoinEvent) -> None:
    event.member.rebalance_timeout_ms = event.request.rebalance_timeout_ms
    event.member.session_timeout_ms = event.request.session_timeout_ms


def _answer_generation(event: JoinEvent) -> None:
    event.answer(event.group.generation_for(event.member_id))


def _replace(event: JoinEvent) -> None:
    assert event.instance_id is not None
    event.former_leader = event.group.leader
    event.member_id = event.new_member_id(event.request)
    event.machine.replace(event.group, event.instance_id, event.member_id)


def _protocol_stays(event: JoinEvent) -> bool:
    return is_stable(event) and event.group.protocol_name == event.group.elected_protocol()


def _can_skip(event: JoinEvent) -> bool:
    return _protocol_stays(event) and event.request.can_skip_assignment


def _store(event: JoinEvent) -> None:
    event.group.store()
    event.machine.changed(event.group)


def _answer_skipping(event: JoinEvent) -> None:
    result = event.group.generation_for(event.member_id)
    event.group.answer_join(event.member_id, replace(result, skip_assignment=leads(event)))


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

_REBALANCE_OR_COMPLETE: Final = group_step(Rebalancing.joined)
_ADD: Final = (_add, _wait, _REBALANCE_OR_COMPLETE)
_TOO_LARGE: Final = refuse_without_id(ErrorCode.GROUP_MAX_SIZE_REACHED)


def _answer_replacement(event: JoinEvent) -> None:
    apply_first(event.on_replaced, event, event)


def _take_changes(event: JoinEvent) -> None:
    apply_first(event.on_updated, event, event)


_REPLACE: Final = (_replace, _take_changes, _wait, _answer_replacement)
_REJOIN: Final = (_take_changes, _wait, _REBALANCE_OR_COMPLETE)

ON_JOIN: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-05", _is_crowded, (_TOO_LARGE,)),
    Row(
        "DP-JOIN-05",
        _has_to_shed,
        (remove_member, _TOO_LARGE, _complete_if_joined),
        since=(2, 2),
        until=fixes.KAFKA_9885,
    ),
    Row(
        "DP-JOIN-05",
        _is_full,
        (remove_member, _TOO_LARGE, _complete_if_joined),
        since=fixes.KAFKA_9885,
        until=NEW_COORDINATOR,
    ),
    Row("DP-JOIN-05", _is_full, (remove_member, _TOO_LARGE), since=NEW_COORDINATOR),
    Row("DP-JOIN-06", is_dead, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),), until=fixes.KAFKA_8386),
    Row(
        "DP-JOIN-06",
        is_dead,
        (refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),),
        since=fixes.KAFKA_8386,
    ),
    Row(
        "DP-JOIN-07",
        lambda event: _inconsistent(event) and not (is_empty(event) and event.request.protocols),
        (refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL),),
        until=_TYPE_NEEDED,
    ),
    Row(
        "DP-JOIN-07",
        _inconsistent,
        (refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL),),
        since=_TYPE_NEEDED,
    ),
    Row("DP-JOIN-11", _replaces, _REPLACE),
    Row("DP-JOIN-10", lambda event: _is_new(event) and event.instance_id is not None, _ADD),
    Row("DP-JOIN-08", _needs_member_id, (_require_id,)),
    Row("DP-JOIN-09", _is_new, _ADD),
    # Kafka's coordinator takes this for a bug of its own and fails.
    Row("DP-JOIN-12", _pending_with_instance, (refuse_without_id(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row("DP-JOIN-12", pending, _ADD),
    Row("DP-JOIN-13", fenced, (refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-JOIN-13 DP-JOIN-17", unknown_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-JOIN-13", unknown_instance, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-JOIN-14", is_preparing, _REJOIN),
    Row("DP-JOIN-15", _completing_and_unchanged, (_answer_generation,)),
    Row("DP-JOIN-15", is_completing, _REJOIN),
    Row("DP-JOIN-16", _stable_and_rejoins, _REJOIN),
    Row("DP-JOIN-16", always, (_answer_generation,)),
)

ON_MADE: Final[tuple[JoinRow, ...]] = (
    Row("DP-COORD-15", always, (_store,), since=NEW_COORDINATOR),
)
"""The group is new."""

ON_UPDATED: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-14", always, (_update,), until=fixes.KAFKA_14009),
    Row("DP-JOIN-14", always, (_update, _take_timeouts), since=fixes.KAFKA_14009),
)
"""A member joins again: what changes?"""

ON_REPLACED: Final[tuple[JoinRow, ...]] = (
    Row("DP-JOIN-18", is_completing, (_answer_naming_former_leader,), until=fixes.KAFKA_9801),
    Row("DP-JOIN-18", is_stable, (_answer_naming_former_leader,), until=fixes.KAFKA_10284),
    Row("DP-JOIN-18", _can_skip, (_store, _answer_skipping), since=fixes.KAFKA_10284),
    Row(
        "DP-JOIN-19",
        _protocol_stays,
        (_store, _answer_naming_former_leader),
        since=fixes.KAFKA_10284,
    ),
    Row("DP-JOIN-18", always, (_REBALANCE_OR_COMPLETE,)),
)
"""A static member has another id."""


class JoinRules(msgspec.Struct, frozen=True):
    """The rows of JoinGroup."""

    admission: tuple[Row[Admission, Admission], ...] = ON_ADMISSION
    join: tuple[JoinRow, ...] = ON_JOIN
    made: tuple[JoinRow, ...] = ON_MADE
    updated: tuple[JoinRow, ...] = ON_UPDATED
    replaced: tuple[JoinRow, ...] = ON_REPLACED
