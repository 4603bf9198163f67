"""The rules of targets of the newer protocols' groups: changes that require one, and its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Refusable, Row, always

__all__ = [
    "ChangeEvent",
    "MembersGone",
    "TargetEvent",
    "bump",
    "gone_rows",
    "interval_row",
    "make_target_row",
    "up_to_date_row",
]

_INTERVAL_SINCE: Final = (4, 3)
_EMPTY_GROUPS_SETTLE_SINCE: Final = (4, 4)


class ChangeEvent(msgspec.Struct, eq=False):
    """A heartbeat has changed something, which may require another target."""

    bumps: bool = False
    """Whether the epoch rises."""


def bump(event: ChangeEvent) -> None:
    event.bumps = True


class TargetEvent(msgspec.Struct, eq=False):
    """A target may have to be made. ``now_ms`` is the cluster's clock, ``interval_ms`` the shortest
    time between two targets."""

    group: Any
    now_ms: int
    interval_ms: int
    makes_target: bool = False
    delays: list[str] = msgspec.field(default_factory=list)
    """Why there is no target yet, where members learn that."""


def _is_too_early(event: TargetEvent) -> bool:
    made_ms, interval_ms = event.group.target_ms, event.interval_ms
    return bool(made_ms != 0 and interval_ms != 0 and event.now_ms < made_ms + interval_ms)


def _make_target(event: TargetEvent) -> None:
    event.makes_target = True


TargetRow: TypeAlias = Row[TargetEvent, TargetEvent]


def up_to_date_row(requirement: str) -> TargetRow:
    """The target is that of the group's epoch."""
    return Row(requirement, lambda event: event.group.target_epoch >= event.group.epoch, ())


def interval_row(requirement: str, *effects: Callable[[TargetEvent], None]) -> TargetRow:
    """The last target was made just now."""
    return Row(requirement, _is_too_early, effects, since=_INTERVAL_SINCE)


def make_target_row(requirement: str) -> TargetRow:
    """Nothing speaks against it."""
    return Row(requirement, always, (_make_target,))


# ---- members that leave --------------------------------------------------------------------------


class MembersGone(Refusable, msgspec.Struct, eq=False):
    """Members leave a group, or are fenced. ``remove`` and ``settle`` are what may follow; with
    ``code`` they stay."""

    group: Any
    gone: Sequence[Any]
    remove: Callable[[Any, Sequence[Any]], None]
    settle: Callable[[Any], None]
    code: ErrorCode = ErrorCode.NONE

    @property
    def staying(self) -> list[Any]:
        leaving = {each.member_id for each in self.gone}
        return [member for name, member in self.group.members.items() if name not in leaving]


def _remove(event: MembersGone) -> None:
    event.remove(event.group, event.gone)


def _settle(event: MembersGone) -> None:
    event.settle(event.group)


def gone_rows(requirement: str, requirement_of_empty: str) -> tuple[Row[Any, Any], ...]:
    """A group that lost its last member needs no other target since 4.4."""
    return (
        Row(
            requirement_of_empty,
            lambda event: not event.staying,
            (_remove, _settle),
            since=_EMPTY_GROUPS_SETTLE_SINCE,
        ),
        Row(requirement, always, (_remove,)),
    )
