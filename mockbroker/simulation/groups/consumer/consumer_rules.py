"""The rules of consumer groups: what follows from heartbeats, commits and timers, as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup, Member
from mockbroker.simulation.groups.consumer.consumer_heartbeats import (
    ON_CONSUMER_EPOCH,
    ON_CONSUMER_GROUP,
    ON_CONSUMER_MEMBER,
    ON_CONSUMER_READ,
)
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.consumer.partition_reconciliation import (
    ON_RECONCILE,
    ON_TARGET_READ,
    ReconciliationRow,
)
from mockbroker.simulation.groups.modern.heartbeat_rules import HeartbeatRow
from mockbroker.simulation.groups.modern.member_commits import (
    CommitEvent,
    CommitRow,
    commit_rows,
    fetch_rows,
)
from mockbroker.simulation.groups.modern.partitions import Assignment
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
from mockbroker.simulation.releases.rows import Row, always, refuse

__all__ = ["ConsumerChange", "ConsumerRules", "ConsumersGone", "DescribeEvent", "RegexEvent"]

# ---- targets -------------------------------------------------------------------------------------


class ConsumerChange(ChangeEvent, eq=False, kw_only=True):
    """A heartbeat has changed something, or a regular expression was resolved."""

    group: ConsumerGroup
    topics_changed: bool = False
    racks_changed: bool = False
    resolved_changed: bool = False
    subscription_changed: bool = False
    assignor_changed: bool = False


ChangeRow: TypeAlias = Row[ConsumerChange, ConsumerChange]

ON_CHANGE: Final[tuple[ChangeRow, ...]] = (
    Row("DP-CGH-29", lambda event: event.group.epoch == 0, (bump,), until=(4, 3)),
    Row("DP-CGH-21", lambda event: event.subscription_changed, (bump,)),
    Row("DP-CGH-20 DP-CGH-21", lambda event: event.resolved_changed, (bump,)),
    Row("DP-CGH-21", lambda event: event.assignor_changed, (bump,), since=(4, 4)),
    Row("DP-CGH-21", lambda event: event.topics_changed, (bump,)),
    Row("DP-CGH-21", lambda event: event.racks_changed, (bump,), since=(4, 1)),
)
"""Changes that require another target."""

ON_TARGET: Final[tuple[TargetRow, ...]] = (
    up_to_date_row("DP-CGH-22"),
    interval_row("DP-CGH-22"),
    make_target_row("DP-CGH-22"),
)
"""Conditions under which the target is made."""

# ---- members that leave --------------------------------------------------------------------------


class ConsumersGone(MembersGone, eq=False, kw_only=True):
    """Members leave a group, which ``downgrade`` makes a classic one."""

    settings: ConsumerSettings
    classic_max_size: int
    downgrade: Callable[[ConsumerGroup, Sequence[Member]], None]


def _only_classic_members_stay(event: ConsumersGone) -> bool:
    staying = event.staying
    fits = len(staying) <= event.classic_max_size
    classic = all(member.is_classic for member in staying)
    return bool(staying) and classic and event.settings.downgrades and fits


def _no_target_to_hand_over(event: ConsumersGone) -> bool:
    """A member that subscribes to nothing has had none since it joined."""
    target = event.group.target
    return _only_classic_members_stay(event) and any(
        each.member_id not in target for each in event.staying
    )


def _downgrade(event: ConsumersGone) -> None:
    event.downgrade(event.group, event.gone)


ON_MEMBERS_GONE: Final[tuple[Row[ConsumersGone, ConsumersGone], ...]] = (
    Row(
        "DP-MIGRATE-04",
        _no_target_to_hand_over,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        until=(4, 3),
    ),
    Row("DP-MIGRATE-04", _only_classic_members_stay, (_downgrade,)),
    *gone_rows("DP-CGH-17", "DP-CGH-17"),
)

# ---- regular expressions -------------------------------------------------------------------------


class RegexEvent(msgspec.Struct, eq=False):
    """A heartbeat has been answered: do regular expressions have to be resolved again?
    ``created`` is the number of topics that the cluster has created."""

    group: ConsumerGroup
    now_ms: int
    interval_ms: int
    created: int
    resolves: bool = False

    @property
    def last_ms(self) -> int | None:
        """When the group resolved them last; None if it never did."""
        return next((resolved.resolved_ms for resolved in self.group.resolved.values()), None)

    @property
    def version(self) -> int:
        return next((resolved.version for resolved in self.group.resolved.values()), 0)


RegexRow: TypeAlias = Row[RegexEvent, RegexEvent]

_LEAST_INTERVAL_MS: Final = 10_000


def _just_resolved(event: RegexEvent) -> bool:
    last_ms = event.last_ms
    return last_ms is not None and event.now_ms <= last_ms + _LEAST_INTERVAL_MS


def _has_unresolved(event: RegexEvent) -> bool:
    return event.group.regexes.keys() != event.group.resolved.keys()


def _long_ago(event: RegexEvent) -> bool:
    return event.last_ms is not None and event.now_ms > event.last_ms + event.interval_ms


def _resolve(event: RegexEvent) -> None:
    event.resolves = True


ON_REGEX: Final[tuple[RegexRow, ...]] = (
    Row("DP-CGH-20", _just_resolved, ()),
    Row("DP-CGH-20", _has_unresolved, (_resolve,)),
    Row("DP-CGH-20", lambda event: event.created > event.version, (_resolve,)),
    Row("DP-CGH-20", _long_ago, (_resolve,)),
)
"""After a heartbeat: are regular expressions to be resolved?"""

# ---- offsets -------------------------------------------------------------------------------------


def _speaks_classic(event: CommitEvent) -> bool:
    return bool(event.member.is_classic)


def _refuse_generation(requirement: str) -> CommitRow:
    return Row(requirement, _speaks_classic, (refuse(ErrorCode.ILLEGAL_GENERATION),))


ON_COMMIT: Final[tuple[CommitRow, ...]] = commit_rows(
    "DP-MIGRATE-06", _refuse_generation("DP-MIGRATE-06"), epochs_since=(4, 3)
)
ON_FETCH: Final[tuple[CommitRow, ...]] = fetch_rows(
    "DP-MIGRATE-07", _refuse_generation("DP-MIGRATE-07")
)

# ---- ConsumerGroupDescribe -----------------------------------------------------------------------


class DescribeEvent(msgspec.Struct, eq=False):
    """ConsumerGroupDescribe shows a member: the partitions of its assignment."""

    member: Member
    shown: Assignment = msgspec.field(default_factory=frozenset)


def _show_assigned(event: DescribeEvent) -> None:
    event.shown = frozenset(event.member.assigned)


def _show_held(event: DescribeEvent) -> None:
    event.shown = event.member.held


ON_DESCRIBE: Final[tuple[Row[DescribeEvent, DescribeEvent], ...]] = (
    Row("DP-MIGRATE-08", always, (_show_assigned,), until=(4, 3)),
    Row("DP-MIGRATE-08", always, (_show_held,), since=(4, 3)),
)
"""The partitions of a member that the response shows: since 4.3 also those that it gives up."""

# ---- by release ----------------------------------------------------------------------------------


_LEAVING: Final = (ON_CONSUMER_READ, ON_CONSUMER_GROUP, ON_CONSUMER_MEMBER)


class ConsumerRules(msgspec.Struct, frozen=True):
    """The rows by what happens. ``leaving`` and ``staying`` are the tables of
    heartbeats, in their order."""

    leaving: tuple[tuple[HeartbeatRow, ...], ...] = _LEAVING
    staying: tuple[tuple[HeartbeatRow, ...], ...] = (*_LEAVING, ON_CONSUMER_EPOCH)
    change: tuple[ChangeRow, ...] = ON_CHANGE
    target: tuple[TargetRow, ...] = ON_TARGET
    gone: tuple[Row[ConsumersGone, ConsumersGone], ...] = ON_MEMBERS_GONE
    regex: tuple[RegexRow, ...] = ON_REGEX
    commit: tuple[CommitRow, ...] = ON_COMMIT
    fetch: tuple[CommitRow, ...] = ON_FETCH
    describe: tuple[Row[DescribeEvent, DescribeEvent], ...] = ON_DESCRIBE
    target_read: tuple[ReconciliationRow, ...] = ON_TARGET_READ
    reconcile: tuple[ReconciliationRow, ...] = ON_RECONCILE
