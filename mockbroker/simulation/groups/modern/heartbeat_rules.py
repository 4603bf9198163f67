"""The rules that heartbeats of all newer protocols share, as functions that make rows.

Each kind of groups puts these rows into its own tables, under its own requirements, in the order in
which Kafka checks.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import (
    LEAVING_FOR_A_WHILE,
    Heartbeat,
    HeartbeatResult,
)
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.releases.fixes import KAFKA_19233
from mockbroker.simulation.releases.release import EVER, ReleaseNumber
from mockbroker.simulation.releases.rows import Row, always, with_arguments

__all__ = [
    "HeartbeatEvent",
    "HeartbeatRow",
    "StaticHeartbeatEvent",
    "blank",
    "epoch_read_rows",
    "epoch_rows",
    "group_rows",
    "has_no_place",
    "invalid",
    "is_full",
    "is_missing",
    "making_rows",
    "member_rows",
    "reject",
    "reject_full",
    "static_member_rows",
    "static_read_rows",
    "taken_row",
]

_EPOCH_1: Final = (4, 3)
"""Epoch 0 means that a member joins: from here on no group is at it."""

RequestT = TypeVar("RequestT", bound=Heartbeat)


class HeartbeatEvent(msgspec.Struct, Generic[RequestT, GroupT], eq=False, kw_only=True):
    """A heartbeat before it changes anything. ``group`` is None if there is none of this kind,
    ``is_taken`` says whether a group of another kind has the id. The rows decide on ``result``,
    which ends the heartbeat, or on ``former``: the member that sends it, as it was."""

    request: RequestT
    coordinator_error: ErrorCode
    settings: Any
    member_id: str
    group: GroupT | None
    is_taken: bool
    former: Any = None
    replaces: Any = None
    """The static member whose place the sender takes."""
    result: HeartbeatResult | None = None

    kind: ClassVar[str]
    new_group: ClassVar[Any]
    new_member: ClassVar[Any]
    new_result: ClassVar[Any] = HeartbeatResult

    @property
    def known(self) -> GroupT:
        assert self.group is not None, "rows above refuse or make the group"
        return self.group

    @property
    def member(self) -> Any:
        """The member that sends the heartbeat. Only for rows below those that find it."""
        assert self.former is not None, "rows above refuse or make the member"
        return self.former

    @property
    def holder(self) -> Any:
        """The member that has the request's instance id."""
        return None

    @property
    def repeats_epoch(self) -> bool:
        """Whether the member comes with its previous epoch, because it lost a response."""
        return bool(self.request.member_epoch == self.member.previous_epoch)

    def make(self, epoch: int) -> None:
        """Make a group whose first target is the one after this epoch."""
        self.group = self.new_group(self.request.group_id, epoch=epoch, target_epoch=epoch)

    def reject(self, code: ErrorCode, text: str | None) -> None:
        self.result = self.new_result(code, text)

    def words(self) -> dict[str, object]:
        """The words that texts of errors may name."""
        request, former = self.request, self.former
        holder = None if self.group is None else self.holder
        return {
            "kind": self.kind,
            "Kind": self.kind.capitalize(),
            "group": request.group_id,
            "member": self.member_id,
            "holder": None if holder is None else holder.member_id,
            "received": request.member_epoch,
            "epoch": None if former is None else former.epoch,
            "previous": None if former is None else former.previous_epoch,
            "size": self.settings.max_size,
        }


class StaticHeartbeatEvent(HeartbeatEvent[Any, GroupT], eq=False, kw_only=True):
    """A heartbeat of a protocol with static members."""

    @property
    def holder(self) -> Any:
        group: Any = self.known
        return group.static_member(self.request.instance_id)

    @property
    def repeats_epoch(self) -> bool:
        """As above, and the member has nothing that it should not have."""
        request: Any = self.request
        previous = request.member_epoch == self.member.previous_epoch
        return previous and request.owned is not None and self._holds(request.owned)

    def _holds(self, owned: Any) -> bool:
        """Whether the member was assigned all of this."""
        raise NotImplementedError

    def words(self) -> dict[str, object]:
        request: Any = self.request
        return {**HeartbeatEvent.words(self), "instance": request.instance_id}


AnyHeartbeat: TypeAlias = HeartbeatEvent[Any, Any]
HeartbeatRow: TypeAlias = Row[Any, Any]
Condition: TypeAlias = Callable[[Any], bool]

# ---- effects -------------------------------------------------------------------------------------


@with_arguments
def reject(event: AnyHeartbeat, code: ErrorCode, text: str | None = None) -> None:
    """Answer with an error and a text, which may name what the request has and the group knows."""
    event.reject(code, None if text is None else text.format(**event.words()))


@with_arguments
def make_group(event: AnyHeartbeat, epoch: int) -> None:
    event.make(epoch)


def _reject_elsewhere(event: AnyHeartbeat) -> None:
    event.reject(event.coordinator_error, None)


def find_member(event: AnyHeartbeat) -> None:
    """The member of the request, or a new one."""
    known = event.known.members.get(event.member_id)
    event.former = known or event.new_member(event.member_id)


def _take_place(event: AnyHeartbeat) -> None:
    event.replaces = event.former = event.holder


# ---- the request itself --------------------------------------------------------------------------


def invalid(
    requirement: str, when: Condition, text: str, since: ReleaseNumber = EVER,
    until: ReleaseNumber | None = None,
) -> HeartbeatRow:  # fmt: skip
    """Refuse a request as invalid."""
    return Row(requirement, when, (reject(ErrorCode.INVALID_REQUEST, text),), since, until)


def blank(name: str) -> Condition:
    """Whether a field of the request is sent, and has nothing but spaces."""
    field = attrgetter(name)

    def is_blank(event: AnyHeartbeat) -> bool:
        text = field(event.request)
        return bool(text is not None and not text.strip())

    return is_blank


def _is_away_without_instance(event: AnyHeartbeat) -> bool:
    return event.request.member_epoch == LEAVING_FOR_A_WHILE and not event.request.is_static


def static_read_rows(
    requirement: str, requirement_of_joins: str, *, instances_since: ReleaseNumber = EVER
) -> tuple[HeartbeatRow, ...]:
    """The ids of a request, and the time-out of one that joins."""
    return (
        invalid(requirement, blank("group_id"), "GroupId can't be empty."),
        invalid(
            requirement, blank("instance_id"), "InstanceId can't be empty.", since=instances_since
        ),
        invalid(requirement, blank("rack_id"), "RackId can't be empty."),
        invalid(
            requirement_of_joins,
            lambda event: bool(event.request.joins and event.request.rebalance_timeout_ms == -1),
            "RebalanceTimeoutMs must be provided in first request.",
        ),
    )


def epoch_read_rows(requirement: str, text: str) -> tuple[HeartbeatRow, ...]:
    """The member epochs that a request may have."""
    return (
        invalid(requirement, _is_away_without_instance, "InstanceId can't be null."),
        invalid(requirement, lambda event: event.request.member_epoch < LEAVING_FOR_A_WHILE, text),
    )


# ---- the group -----------------------------------------------------------------------------------


def _is_elsewhere(event: AnyHeartbeat) -> bool:
    return event.coordinator_error is not ErrorCode.NONE


def is_missing(event: AnyHeartbeat) -> bool:
    return event.group is None and not event.is_taken


def group_rows(requirement: str, requirement_of_coordinators: str) -> tuple[HeartbeatRow, ...]:
    """The coordinator, and the group that a member must be in unless it joins."""
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    return (
        Row(requirement_of_coordinators, _is_elsewhere, (_reject_elsewhere,)),
        Row(
            requirement,
            lambda event: is_missing(event) and event.request.leaves,
            (reject(not_found, "Group {group} not found."),),
        ),
        Row(
            requirement,
            lambda event: is_missing(event) and not event.request.joins,
            (reject(not_found, "{Kind} group {group} not found."),),
        ),
    )


def making_rows(requirement: str, when: Condition) -> tuple[HeartbeatRow, ...]:
    """A group is made."""
    return (
        Row(requirement, when, (make_group(0),), until=_EPOCH_1),
        Row(requirement, when, (make_group(1),), since=_EPOCH_1),
    )


def taken_row(requirement: str) -> HeartbeatRow:
    """A group of another kind has the id."""
    text = "Group {group} is not a {kind} group."
    return Row(
        requirement, lambda event: event.is_taken, (reject(ErrorCode.GROUP_ID_NOT_FOUND, text),)
    )


# ---- the member ----------------------------------------------------------------------------------


def is_full(event: AnyHeartbeat) -> bool:
    """Whether the group has no room for the member, which is new."""
    members = event.known.members
    full = len(members) >= event.settings.max_size and event.member_id not in members
    return full and not event.request.leaves


def has_no_place(event: AnyHeartbeat) -> bool:
    """The group is full, and no member of it has the instance id of the sender."""
    return is_full(event) and event.holder is None


reject_full: Final = reject(
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    "The {kind} group has reached its maximum capacity of {size} members.",
)


def _instance_in_use(event: AnyHeartbeat) -> bool:
    """Another member has the instance id, and did not say that it would be away."""
    holder = event.holder
    return (
        event.request.joins
        and holder is not None
        and not holder.is_classic
        and holder.epoch != LEAVING_FOR_A_WHILE
    )


def _instance_returns(event: AnyHeartbeat) -> bool:
    return event.request.joins and event.holder is not None


def _unknown_instance(event: AnyHeartbeat) -> bool:
    return event.request.is_static and not event.request.joins and event.holder is None


def _fenced_instance(event: AnyHeartbeat) -> bool:
    holder = event.holder
    return not event.request.joins and holder is not None and holder.member_id != event.member_id


def _unknown_member(event: AnyHeartbeat) -> bool:
    request, members = event.request, event.known.members
    return not request.is_static and not request.joins and event.member_id not in members


def static_member_rows(
    requirement: str, requirement_of_returns: str, since: ReleaseNumber = EVER
) -> tuple[HeartbeatRow, ...]:
    """A static member, which may take the place of one with its instance id."""
    in_use = (
        "Static member {member} with instance id {instance} cannot join the group because the "
        "instance id is owned by {holder} member."
    )
    fenced = "Static member {member} with instance id {instance} was fenced by member {holder}."
    unknown = "Instance id {instance} is unknown."
    return (
        Row(
            requirement,
            _instance_in_use,
            (reject(ErrorCode.UNRELEASED_INSTANCE_ID, in_use),),
            since,
        ),
        Row(requirement_of_returns, _instance_returns, (_take_place,), since),
        Row(requirement, _unknown_instance, (reject(ErrorCode.UNKNOWN_MEMBER_ID, unknown),), since),
        Row(requirement, _fenced_instance, (reject(ErrorCode.FENCED_INSTANCE_ID, fenced),), since),
    )


def member_rows(requirement: str, requirement_of_found: str) -> tuple[HeartbeatRow, ...]:
    """The member that sends the heartbeat."""
    text = "Member {member} is not a member of group {group}."
    return (
        Row(requirement, _unknown_member, (reject(ErrorCode.UNKNOWN_MEMBER_ID, text),)),
        Row(requirement_of_found, always, (find_member,)),
    )


# ---- its epoch -----------------------------------------------------------------------------------


def _is_ahead(event: AnyHeartbeat) -> bool:
    return bool(not event.request.joins and event.request.member_epoch > event.member.epoch)


def _is_behind(event: AnyHeartbeat) -> bool:
    behind = event.request.member_epoch < event.member.epoch
    return not event.request.joins and behind and not event.repeats_epoch


def _rejoins(event: AnyHeartbeat) -> bool:
    """A member joins that the group knows under another epoch."""
    known = event.replaces is None and event.member.epoch > 0 and not _has_new_instance(event)
    return bool(event.request.joins and known and not event.repeats_epoch)


def _has_new_instance(event: AnyHeartbeat) -> bool:
    """Of a member that joins with an instance id that the group does not know, Kafka reads no
    epoch."""
    return getattr(event.request, "instance_id", None) is not None and event.holder is None


def epoch_rows(
    requirement_ahead: str, requirement_behind: str, restriction: str = ""
) -> tuple[HeartbeatRow, ...]:
    """The member's epoch must be that of the group's coordinator, or a previous one.
    ``restriction`` is what the text adds about previous epochs."""
    text = (
        "The {{kind}} group member has a {} member epoch ({{received}}) than the one known by the "
        "group coordinator ({{epoch}}){}. The member must abandon all its partitions and rejoin."
    )
    stale = ErrorCode.FENCED_MEMBER_EPOCH
    smaller = reject(stale, text.format("smaller", restriction))
    return (
        Row(requirement_ahead, _is_ahead, (reject(stale, text.format("greater", "")),)),
        Row(requirement_behind, _is_behind, (smaller,)),
        Row("REL-25", _rejoins, (smaller,), until=KAFKA_19233),
    )
