"""The rules of offsets that members of consumer and streams groups commit or fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.modern.heartbeats import NO_EPOCH
from mockbroker.simulation.releases.release import EVER, ReleaseNumber
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse

__all__ = ["CommitEvent", "CommitRow", "commit_rows", "fetch_rows"]

_FIRST_VERSION: Final = 9
"""Of OffsetCommit: the first one with member epochs."""


class CommitEvent(Refusable, msgspec.Struct, eq=False):
    """A member commits offsets, or fetches them. ``held_since`` returns the epoch at which a member
    got a partition; None if it does not have it."""

    group: Any
    commit: GroupCommit
    held_since: Callable[[Any, Any], int | None] = lambda member, partition: None
    code: ErrorCode = ErrorCode.NONE

    @property
    def member(self) -> Any:
        """The member. Only for rows below those that refuse unknown ones."""
        return self.group.members[self.commit.member_id]


CommitRow: TypeAlias = Row[CommitEvent, CommitEvent]


def _transaction_without_member(event: CommitEvent) -> bool:
    unnamed = event.commit.member_id == "" and event.commit.instance_id is None
    return event.commit.transactional and event.commit.epoch == NO_EPOCH and unnamed


def _unknown_member(event: CommitEvent) -> bool:
    return event.commit.member_id not in event.group.members


def _old_version(event: CommitEvent) -> bool:
    old = not event.commit.transactional and event.commit.version < _FIRST_VERSION
    return old and not event.member.is_classic


def _is_current(event: CommitEvent) -> bool:
    return bool(event.commit.epoch == event.member.epoch)


def _held_all_since(event: CommitEvent) -> bool:
    """The member has had each partition since this epoch or longer."""
    member = event.member
    return event.commit.epoch < member.epoch and all(
        (since := event.held_since(member, partition)) is not None and since <= event.commit.epoch
        for partition in event.commit.partitions
    )


def commit_rows(
    requirement: str, *stale: CommitRow, epochs_since: ReleaseNumber = EVER
) -> tuple[CommitRow, ...]:
    """OffsetCommit and TxnOffsetCommit. ``stale`` are rows of one kind for members whose epoch is
    another."""
    return (
        Row(requirement, lambda event: event.commit.epoch < 0 and not event.group.members, ()),
        Row(requirement, _transaction_without_member, ()),
        Row(requirement, _unknown_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
        Row(requirement, _old_version, (refuse(ErrorCode.UNSUPPORTED_VERSION),)),
        Row(requirement, _is_current, ()),
        Row(requirement, _held_all_since, (), since=epochs_since),
        *stale,
        # TxnOffsetCommit has no error for epochs.
        Row(
            requirement,
            lambda event: event.commit.transactional,
            (refuse(ErrorCode.ILLEGAL_GENERATION),),
        ),
        Row(requirement, always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
    )


def fetch_rows(requirement: str, *stale: CommitRow) -> tuple[CommitRow, ...]:
    """OffsetFetch. A member id that the request leaves out is None."""
    return (
        Row(
            requirement, lambda event: event.commit.member_id is None and event.commit.epoch < 0, ()
        ),
        # Kafka looks a member up whose id is null, and fails.
        Row(
            requirement,
            lambda event: event.commit.member_id is None,
            (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        ),
        Row(requirement, _unknown_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
        Row(requirement, _is_current, ()),
        *stale,
        Row(requirement, always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
    )
