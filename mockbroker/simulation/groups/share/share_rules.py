"""ShareGroupHeartbeat and what follows from it as rows, in the order in which Kafka checks."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from mockbroker.simulation.groups.modern.heartbeat_rules import (
    HeartbeatEvent,
    HeartbeatRow,
    blank,
    epoch_rows,
    group_rows,
    invalid,
    is_full,
    is_missing,
    making_rows,
    member_rows,
    reject_full,
    taken_row,
)
from mockbroker.simulation.groups.modern.heartbeats import LEAVING
from mockbroker.simulation.groups.modern.target_rules import (
    ChangeEvent,
    MembersGone,
    TargetRow,
    bump,
    gone_rows,
    interval_row,
    make_target_row,
    up_to_date_row,
)
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat, ShareMember
from mockbroker.simulation.releases.rows import Row

__all__ = ["ShareChange", "ShareHeartbeatEvent", "ShareRules"]


class ShareHeartbeatEvent(HeartbeatEvent[ShareHeartbeat, ShareGroup], eq=False, kw_only=True):
    """A heartbeat of a member of a share group."""

    kind = "share"
    new_group = ShareGroup
    new_member = ShareMember


ON_SHARE_READ: Final[tuple[HeartbeatRow, ...]] = (
    invalid("DP-SHARE-20", blank("member_id"), "MemberId can't be empty."),
    invalid("DP-SHARE-20", blank("group_id"), "GroupId can't be empty."),
    invalid("DP-SHARE-20", blank("rack_id"), "RackId can't be empty."),
    invalid(
        "DP-SHARE-01",
        lambda event: event.request.joins and not event.request.topic_names,
        "SubscribedTopicNames must be set in first request.",
    ),
    invalid(
        "DP-SHARE-20", lambda event: event.request.member_epoch < LEAVING, "MemberEpoch is invalid."
    ),
)
"""Before the group is looked up."""

ON_SHARE_GROUP: Final[tuple[HeartbeatRow, ...]] = (
    *group_rows("DP-SHARE-21", "DP-SHARE-21"),
    *making_rows("DP-SHARE-22", is_missing),
    taken_row("DP-SHARE-21"),
)
"""The group of the heartbeat. A group that exists already needs no row."""

ON_SHARE_MEMBER: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-SHARE-23", is_full, (reject_full,)),
    *member_rows("DP-SHARE-24", "DP-SHARE-24"),
)
"""The member that sends a heartbeat, or leaves."""

ON_SHARE_EPOCH: Final[tuple[HeartbeatRow, ...]] = epoch_rows(
    "DP-SHARE-25", "DP-SHARE-25", ", and it does not match the previous member epoch ({previous})"
)
"""The epoch of a member that stays."""


class ShareChange(ChangeEvent, eq=False, kw_only=True):
    """A heartbeat has changed something. ``unassigned``: share partitions exist that no target
    has."""

    subscription_changed: bool
    topics_changed: bool
    unassigned: bool


ChangeRow: TypeAlias = Row[ShareChange, ShareChange]

ON_SHARE_CHANGE: Final[tuple[ChangeRow, ...]] = (
    Row("DP-SHARE-26", lambda event: event.subscription_changed, (bump,)),
    Row("DP-SHARE-27", lambda event: event.unassigned, (bump,)),
    Row("DP-SHARE-26", lambda event: event.topics_changed, (bump,)),
)
"""Changes that require another target."""

ON_SHARE_TARGET: Final[tuple[TargetRow, ...]] = (
    up_to_date_row("DP-SHARE-26"),
    interval_row("DP-SHARE-28"),
    make_target_row("DP-SHARE-26"),
)
"""Conditions under which the target is made."""

ON_SHARE_MEMBERS_GONE: Final[tuple[Row[MembersGone, MembersGone], ...]] = gone_rows(
    "DP-SHARE-26", "DP-SHARE-22"
)


_LEAVING: Final = (ON_SHARE_READ, ON_SHARE_GROUP, ON_SHARE_MEMBER)


class ShareRules(msgspec.Struct, frozen=True):
    """The rows by what happens. ``leaving`` and ``staying`` are the tables of
    heartbeats, in their order."""

    leaving: tuple[tuple[HeartbeatRow, ...], ...] = _LEAVING
    staying: tuple[tuple[HeartbeatRow, ...], ...] = (*_LEAVING, ON_SHARE_EPOCH)
    group: tuple[HeartbeatRow, ...] = ON_SHARE_GROUP
    change: tuple[ChangeRow, ...] = ON_SHARE_CHANGE
    target: tuple[TargetRow, ...] = ON_SHARE_TARGET
    gone: tuple[Row[MembersGone, MembersGone], ...] = ON_SHARE_MEMBERS_GONE
