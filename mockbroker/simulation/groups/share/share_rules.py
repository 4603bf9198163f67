"""ShareGroupHeartbeat and what follows from it as rows, in the order in which Kafka checks."""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import (
    LEAVING,
    HeartbeatResult,
    Reject,
    is_blank,
)
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareMember
from mockbroker.simulation.groups.share.share_heartbeats import ShareGroupEvent, ShareHeartbeatEvent
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, rows_of_release

__all__ = ["ShareHeartbeatRow", "ShareRules", "share_rules"]

ShareHeartbeatRow: TypeAlias = Row[ShareHeartbeatEvent, ShareHeartbeatEvent]
ShareGroupRow: TypeAlias = Row[ShareGroupEvent, ShareGroupEvent]

_INVALID: Final = ErrorCode.INVALID_REQUEST
_NO_GROUP: Final = ErrorCode.GROUP_ID_NOT_FOUND
_STALE: Final = ErrorCode.FENCED_MEMBER_EPOCH
_REJOIN: Final = "The member must abandon all its partitions and rejoin."

# ---- the request itself --------------------------------------------------------------------------


def _joins_without_topics(event: ShareHeartbeatEvent) -> bool:
    return event.request.joins and not event.request.topic_names


ON_SHARE_READ: Final[tuple[ShareHeartbeatRow, ...]] = (
    Row(
        "DP-SHARE-20",
        lambda event: is_blank(event.request.member_id),
        (Reject(_INVALID, "MemberId can't be empty."),),
    ),
    Row(
        "DP-SHARE-20",
        lambda event: is_blank(event.request.group_id),
        (Reject(_INVALID, "GroupId can't be empty."),),
    ),
    Row(
        "DP-SHARE-20",
        lambda event: is_blank(event.request.rack_id),
        (Reject(_INVALID, "RackId can't be empty."),),
    ),
    Row(
        "DP-SHARE-01",
        _joins_without_topics,
        (Reject(_INVALID, "SubscribedTopicNames must be set in first request."),),
    ),
    Row(
        "DP-SHARE-20",
        lambda event: event.request.member_epoch < LEAVING,
        (Reject(_INVALID, "MemberEpoch is invalid."),),
    ),
)
"""Before the coordinator is asked."""

# ---- the group -----------------------------------------------------------------------------------


def _refuse_elsewhere(event: ShareHeartbeatEvent) -> None:
    event.result = HeartbeatResult(event.coordinator_error)


def _missing(event: ShareHeartbeatEvent) -> bool:
    return event.group is None


class MakeGroup(msgspec.Struct, frozen=True):
    """Make a group whose first target is the one after this epoch."""

    epoch: int

    def __call__(self, subject: ShareHeartbeatEvent, /) -> None:
        subject.group = ShareGroup(
            subject.request.group_id, epoch=self.epoch, target_epoch=self.epoch
        )


_EPOCH_1: Final = (4, 3)
"""Epoch 0 means that a member joins: from here on no group is at it."""

ON_SHARE_GROUP: Final[tuple[ShareHeartbeatRow, ...]] = (
    Row(
        "DP-SHARE-21",
        lambda event: event.coordinator_error is not ErrorCode.NONE,
        (_refuse_elsewhere,),
    ),
    Row(
        "DP-SHARE-21",
        lambda event: event.foreign,
        (Reject(_NO_GROUP, "Group {group} is not a share group."),),
    ),
    Row(
        "DP-SHARE-21",
        lambda event: _missing(event) and event.request.leaves,
        (Reject(_NO_GROUP, "Group {group} not found."),),
    ),
    Row(
        "DP-SHARE-21",
        lambda event: _missing(event) and not event.request.joins,
        (Reject(_NO_GROUP, "Share group {group} not found."),),
    ),
    Row("DP-SHARE-22", _missing, (MakeGroup(0),), until=_EPOCH_1),
    Row("DP-SHARE-22", _missing, (MakeGroup(1),), since=_EPOCH_1),
)
"""Which group the heartbeat concerns. A group that exists already needs no row."""

# ---- the member ----------------------------------------------------------------------------------


def _is_full(event: ShareHeartbeatEvent) -> bool:
    members = event.known.members
    return len(members) >= event.settings.max_size and event.request.member_id not in members


def _unknown(event: ShareHeartbeatEvent) -> bool:
    return not event.request.joins and event.request.member_id not in event.known.members


def _find_member(event: ShareHeartbeatEvent) -> None:
    """The member of the request, or a new one."""
    member_id = event.request.member_id
    event.former = event.known.members.get(member_id) or ShareMember(member_id)


_UNKNOWN_MEMBER: Final = Reject(
    ErrorCode.UNKNOWN_MEMBER_ID, "Member {member} is not a member of group {group}."
)

ON_SHARE_MEMBER: Final[tuple[ShareHeartbeatRow, ...]] = (
    Row(
        "DP-SHARE-23",
        lambda event: not event.request.leaves and _is_full(event),
        (
            Reject(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "The share group has reached its maximum capacity of {size} members.",
            ),
        ),
    ),
    Row("DP-SHARE-24", _unknown, (_UNKNOWN_MEMBER,)),
    Row("DP-SHARE-24", always, (_find_member,)),
)
"""Who sends a heartbeat."""


def _is_ahead(event: ShareHeartbeatEvent) -> bool:
    return not event.request.joins and event.request.member_epoch > event.member.epoch


def _is_behind(event: ShareHeartbeatEvent) -> bool:
    received, member = event.request.member_epoch, event.member
    behind = received < member.epoch and received != member.previous_epoch
    return not event.request.joins and behind


ON_SHARE_EPOCH: Final[tuple[ShareHeartbeatRow, ...]] = (
    Row(
        "DP-SHARE-25",
        _is_ahead,
        (
            Reject(
                _STALE,
                "The share group member has a greater member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}). " + _REJOIN,
            ),
        ),
    ),
    Row(
        "DP-SHARE-25",
        _is_behind,
        (
            Reject(
                _STALE,
                "The share group member has a smaller member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}), and it does not match the previous "
                "member epoch ({previous}). " + _REJOIN,
            ),
        ),
    ),
)
"""Whether its epoch will do. One that leaves may have any."""

# ---- what a heartbeat changes --------------------------------------------------------------------


def _bump(event: ShareGroupEvent) -> None:
    event.bumps = True


ON_SHARE_CHANGE: Final[tuple[ShareGroupRow, ...]] = (
    Row("DP-SHARE-26", lambda event: event.subscription_changed, (_bump,)),
    Row("DP-SHARE-27", lambda event: event.unassigned, (_bump,)),
    Row("DP-SHARE-26", lambda event: event.topics_changed, (_bump,)),
)
"""Does the group need a new target?"""


def _too_early(event: ShareGroupEvent) -> bool:
    made_ms, interval_ms = event.group.target_ms, event.assignment_interval_ms
    return made_ms != 0 and interval_ms != 0 and event.now_ms < made_ms + interval_ms


def _make_target(event: ShareGroupEvent) -> None:
    event.makes_target = True


ON_SHARE_TARGET: Final[tuple[ShareGroupRow, ...]] = (
    Row("DP-SHARE-26", lambda event: event.group.target_epoch >= event.group.epoch, ()),
    Row("DP-SHARE-28", _too_early, (), since=(4, 3)),
    Row("DP-SHARE-26", always, (_make_target,)),
)
"""Is it time to make it?"""


def _settle(event: ShareGroupEvent) -> None:
    event.settles = True


ON_SHARE_MEMBER_GONE: Final[tuple[ShareGroupRow, ...]] = (
    Row(
        "DP-SHARE-22",
        lambda event: not event.group.members,
        (_bump, _settle),
        since=(4, 4),
    ),
    Row("DP-SHARE-26", always, (_bump,)),
)


class ShareRules(msgspec.Struct, frozen=True):
    """The rows of one release, by what happens."""

    read: tuple[ShareHeartbeatRow, ...]
    group: tuple[ShareHeartbeatRow, ...]
    member: tuple[ShareHeartbeatRow, ...]
    epoch: tuple[ShareHeartbeatRow, ...]
    change: tuple[ShareGroupRow, ...]
    target: tuple[ShareGroupRow, ...]
    gone: tuple[ShareGroupRow, ...]


@cache
def share_rules(release: Release) -> ShareRules:
    """Return the rules of a release."""
    return ShareRules(
        read=rows_of_release(ON_SHARE_READ, release),
        group=rows_of_release(ON_SHARE_GROUP, release),
        member=rows_of_release(ON_SHARE_MEMBER, release),
        epoch=rows_of_release(ON_SHARE_EPOCH, release),
        change=rows_of_release(ON_SHARE_CHANGE, release),
        target=rows_of_release(ON_SHARE_TARGET, release),
        gone=rows_of_release(ON_SHARE_MEMBER_GONE, release),
    )
