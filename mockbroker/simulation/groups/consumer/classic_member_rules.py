"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup at a consumer group, as rows.

A group whose members are being upgraded one after the other has members of both protocols. To those
of the classic one the epoch is a generation, and error 27 says that there is another target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from mockbroker.simulation.groups.classic.classic_group import JoinRequest, SyncRequest
from mockbroker.simulation.groups.consumer.consumer_group import (
    CONSUMER_TYPE,
    ConsumerGroup,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.modern.modern_group import MemberState
from mockbroker.simulation.releases.fixes import KAFKA_20601, KAFKA_20662
from mockbroker.simulation.releases.rows import Row, refuse

__all__ = ["ClassicEvent", "ClassicJoin", "ClassicRules", "ClassicSync"]


class ClassicEvent(msgspec.Struct, eq=False):
    """A request of the classic protocol by a member, which the group may lack. ``code`` is None as
    long as the rows have not refused."""

    group: ConsumerGroup
    member_id: str
    instance_id: str | None
    generation: int = -1
    begin_join_timer: Callable[[Member], None] = lambda member: None
    code: ErrorCode | None = None

    def refuse(self, code: ErrorCode) -> None:
        self.code = code

    @property
    def holder(self) -> Member | None:
        return self.group.static_member(self.instance_id)

    @property
    def member(self) -> Member:
        """The member that sends the request. Only for rows below those that refuse others."""
        return self.holder or self.group.members[self.member_id]


class ClassicJoin(ClassicEvent, eq=False, kw_only=True):
    """JoinGroup. ``subscription`` is None if it cannot be read."""

    request: JoinRequest
    settings: ConsumerSettings
    subscription: ConsumerProtocolSubscription | None
    new_member_id: Callable[[], str]
    replaces: Member | None = None

    @property
    def is_new(self) -> bool:
        return self.request.member_id == ""


class ClassicSync(ClassicEvent, eq=False, kw_only=True):
    """SyncGroup."""

    request: SyncRequest


_UNKNOWN: Final = refuse(ErrorCode.UNKNOWN_MEMBER_ID)
_FENCED: Final = refuse(ErrorCode.FENCED_INSTANCE_ID)
_OTHER_PROTOCOL: Final = refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

ClassicRow: TypeAlias = Row[ClassicEvent, ClassicEvent]
JoinRow: TypeAlias = Row[ClassicJoin, ClassicJoin]
SyncRow: TypeAlias = Row[ClassicSync, ClassicSync]


def _unknown_instance(event: ClassicEvent) -> bool:
    return event.instance_id is not None and event.holder is None


def _fenced(event: ClassicEvent) -> bool:
    holder = event.holder
    return holder is not None and holder.member_id != event.member_id


def _unknown_member(event: ClassicEvent) -> bool:
    return event.instance_id is None and event.member_id not in event.group.members


# ---- JoinGroup -----------------------------------------------------------------------------------


def _may_not_mix(event: ClassicJoin) -> bool:
    return not event.settings.migrates


def _is_full(event: ClassicJoin) -> bool:
    group = event.group
    return len(group.members) >= event.settings.max_size and event.member_id not in group.members


def _has_no_place(event: ClassicJoin) -> bool:
    return _is_full(event) and event.holder is None


def _unsupported(event: ClassicJoin) -> bool:
    """The member shares no protocol with all other members of the classic kind."""
    request, members = event.request, event.group.members.values()
    others = [each.classic.protocols for each in members if each.classic is not None]
    # Kafka counts, and so takes a name that one member sends twice for one of two members.
    counts = Counter(name for protocols in others for name, _ in protocols)
    shared = any(counts[name] == len(others) for name, _ in request.protocols)
    return request.protocol_type != CONSUMER_TYPE or not shared


def _unreadable(event: ClassicJoin) -> bool:
    return event.subscription is None


def _replaces(event: ClassicJoin) -> bool:
    return event.is_new and event.holder is not None


def _take_place(event: ClassicJoin) -> None:
    event.replaces = event.holder


def _make_id(event: ClassicJoin) -> None:
    event.member_id = event.new_member_id()


_TOO_LARGE: Final = refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)

ON_JOIN: Final[tuple[JoinRow, ...]] = (
    Row("DP-MIGRATE-01", _may_not_mix, (_OTHER_PROTOCOL,), since=(4, 3)),
    Row("DP-MIGRATE-03", _is_full, (_TOO_LARGE,), until=KAFKA_20601),
    Row("DP-MIGRATE-03", _has_no_place, (_TOO_LARGE,), since=KAFKA_20601),
    Row("DP-MIGRATE-03", _unsupported, (_OTHER_PROTOCOL,)),
    Row(
        "DP-MIGRATE-03",
        lambda event: event.is_new and event.request.needs_member_id and event.instance_id is None,
        (_make_id, refuse(ErrorCode.MEMBER_ID_REQUIRED)),
    ),
    Row("DP-MIGRATE-03", lambda event: not event.is_new and _unknown_instance(event), (_UNKNOWN,)),
    Row("DP-MIGRATE-03", lambda event: not event.is_new and _fenced(event), (_FENCED,)),
    Row(
        "DP-MIGRATE-03",
        _unreadable,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        until=KAFKA_20662,
    ),
    Row("DP-MIGRATE-03", _unreadable, (_OTHER_PROTOCOL,), since=KAFKA_20662),
    Row("DP-MIGRATE-03", _replaces, (_make_id, _take_place)),
    Row("DP-MIGRATE-03", lambda event: event.is_new, (_make_id,)),
)

# ---- SyncGroup and Heartbeat ---------------------------------------------------------------------


def _other_generation(event: ClassicEvent) -> bool:
    return event.generation != event.member.epoch


def _other_names(event: ClassicSync) -> bool:
    classic, request = event.member.classic, event.request
    assert classic is not None, "rows above refuse others"
    return (
        request.protocol_type not in (None, CONSUMER_TYPE)
        or request.protocol_name not in (None, classic.protocols[0][0])
    )  # fmt: skip


def _is_late(event: ClassicEvent) -> bool:
    """There is a newer target. A member that revokes has joined for it already."""
    member = event.member
    newer = event.group.target_epoch > member.epoch
    return newer and member.state is not MemberState.UNREVOKED


def _has_to_join(event: ClassicEvent) -> bool:
    """There is a newer target, or partitions to give up, or those that it waits for are free."""
    group, member = event.group, event.member
    if member.state is MemberState.UNRELEASED:
        missing = group.target.get(member.member_id, frozenset()) - member.assigned.keys()
        if all(group.is_free(tp) for tp in missing):
            return True
    return member.epoch < group.target_epoch or member.state is MemberState.UNREVOKED


def _begin_join_timer(event: ClassicEvent) -> None:
    event.begin_join_timer(event.member)


_REJOIN: Final = (_begin_join_timer, refuse(ErrorCode.REBALANCE_IN_PROGRESS))

ON_MEMBER: Final[tuple[ClassicRow, ...]] = (
    Row("DP-MIGRATE-03", _unknown_instance, (_UNKNOWN,)),
    Row("DP-MIGRATE-03", _fenced, (_FENCED,)),
    Row("DP-MIGRATE-03", _unknown_member, (_UNKNOWN,)),
    Row("DP-MIGRATE-03", lambda event: event.member.classic is None, (_UNKNOWN,)),
    Row("DP-MIGRATE-03", _other_generation, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
)
"""The members whose SyncGroup and Heartbeat are accepted."""

ON_SYNC: Final[tuple[SyncRow, ...]] = (
    Row("DP-MIGRATE-03", _other_names, (_OTHER_PROTOCOL,)),
    Row("DP-MIGRATE-03", _is_late, _REJOIN),
)

ON_HEARTBEAT: Final[tuple[ClassicRow, ...]] = (Row("DP-MIGRATE-03", _has_to_join, _REJOIN),)

# ---- LeaveGroup ----------------------------------------------------------------------------------


def _fenced_by_id(event: ClassicEvent) -> bool:
    """Administrators name no member id."""
    return event.member_id != "" and _fenced(event)


ON_LEAVE: Final[tuple[ClassicRow, ...]] = (
    Row("DP-MIGRATE-03", _unknown_instance, (_UNKNOWN,)),
    Row("DP-MIGRATE-03", _fenced_by_id, (_FENCED,)),
    Row("DP-MIGRATE-03", _unknown_member, (_UNKNOWN,)),
)
"""For each member that the request names."""

# ---- downgrade -----------------------------------------------------------------------------------


class Replacement(msgspec.Struct, eq=False):
    """A member of the classic protocol takes the place of ``former``."""

    group: ConsumerGroup
    former: Member
    settings: ConsumerSettings
    classic_max_size: int
    downgrades: bool = False


def _last_of_its_kind(event: Replacement) -> bool:
    others = (m for m in event.group.members.values() if m is not event.former)
    return (
        event.former.classic is None
        and all(member.classic is not None for member in others)
        and event.settings.downgrades
        and len(event.group.members) <= event.classic_max_size
    )


def _downgrade(event: Replacement) -> None:
    event.downgrades = True


ON_REPLACEMENT: Final[tuple[Row[Replacement, Replacement], ...]] = (
    Row("DP-MIGRATE-04", _last_of_its_kind, (_downgrade,)),
)


class ClassicRules(msgspec.Struct, frozen=True):
    """The rows by request."""

    join: tuple[JoinRow, ...] = ON_JOIN
    members: tuple[ClassicRow, ...] = ON_MEMBER
    sync: tuple[SyncRow, ...] = ON_SYNC
    heartbeat: tuple[ClassicRow, ...] = ON_HEARTBEAT
    leave: tuple[ClassicRow, ...] = ON_LEAVE
    replacement: tuple[Row[Replacement, Replacement], ...] = ON_REPLACEMENT
