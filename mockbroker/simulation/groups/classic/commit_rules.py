"""The group's part in OffsetCommit, DeleteGroups and DescribeGroups, as rows."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_requests import (
    CommitEvent,
    DeleteEvent,
    DescribeEvent,
    Gate,
    MissingGroup,
)
from mockbroker.simulation.groups.classic.group_conditions import (
    elsewhere,
    empty_id,
    fenced,
    is_completing,
    is_dead,
    is_empty,
    is_stable,
    missing,
    other_generation,
    unknown_instance,
    unknown_member,
)
from mockbroker.simulation.groups.classic.group_effects import (
    IN_REBALANCE,
    NEW_COORDINATOR,
    refuse_elsewhere,
    renew_session,
)
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.rows import Row, always, refuse, with_arguments

__all__ = ["CommitRules"]

CommitRow: TypeAlias = Row[CommitEvent, CommitEvent]
MissingRow: TypeAlias = Row[MissingGroup, MissingGroup]


def _generation_named(event: MissingGroup) -> bool:
    return event.commit.epoch >= 0


def _make_group(event: MissingGroup) -> None:
    event.make()


def _transactional_and_new_version(event: MissingGroup) -> bool:
    return event.commit.transactional and _generation_named(event) and event.commit.version >= 6


ON_MISSING_IN_COMMIT: Final[tuple[MissingRow, ...]] = (
    Row(
        "DP-TXNOFF-01",
        _transactional_and_new_version,
        (refuse(ErrorCode.GROUP_ID_NOT_FOUND),),
        since=NEW_COORDINATOR,
    ),
    Row(
        "DP-OFFSET-03",
        lambda event: _generation_named(event) and event.commit.version >= 9,
        (refuse(ErrorCode.GROUP_ID_NOT_FOUND),),
        since=NEW_COORDINATOR,
    ),
    Row("DP-OFFSET-03", _generation_named, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    # The record of an offset makes the group.
    Row("DP-OFFSET-02", lambda event: not event.commit.stores, (), since=NEW_COORDINATOR),
    Row("DP-OFFSET-02", always, (_make_group,)),
)
"""Offsets are committed for a group that does not exist."""


def _names_no_member(event: CommitEvent) -> bool:
    return event.member_id == "" and event.instance_id is None


def _simple_and_empty(event: CommitEvent) -> bool:
    """Without a generation a client uses the group only to store offsets."""
    return event.generation < 0 and is_empty(event)


def _simple_and_transactional(event: CommitEvent) -> bool:
    """A transaction names neither a generation nor a member."""
    return event.transactional and event.generation < 0 and _names_no_member(event)


def _names_unknown_member(event: CommitEvent) -> bool:
    return event.transactional and event.member_id != "" and unknown_member(event)


def _names_other_generation(event: CommitEvent) -> bool:
    return event.transactional and event.generation >= 0 and other_generation(event)


def _plain_and_completing(event: CommitEvent) -> bool:
    return not event.transactional and is_completing(event)


def _transactional(event: CommitEvent) -> bool:
    return event.transactional


ON_COMMIT: Final[tuple[CommitRow, ...]] = (
    Row("DP-OFFSET-04", is_dead, (refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE),)),
    # Transactions name no member before KIP-447.
    Row("DP-OFFSET-06", _transactional, (), until=(2, 5)),
    # What a transaction names is checked, and it may leave out anything, until 3.0.
    Row(
        "DP-OFFSET-06",
        lambda event: event.transactional and fenced(event),
        (refuse(ErrorCode.FENCED_INSTANCE_ID),),
        until=(3, 0),
    ),
    Row(
        "DP-OFFSET-06", _names_unknown_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),), until=(3, 0)
    ),
    Row(
        "DP-OFFSET-06",
        _names_other_generation,
        (refuse(ErrorCode.ILLEGAL_GENERATION),),
        until=(3, 0),
    ),
    Row("DP-OFFSET-05", _transactional, (), until=(3, 0)),
    Row("DP-OFFSET-04", _simple_and_empty, (), until=facts.COMMITTERS_CHECKED),
    Row(
        "DP-OFFSET-30",
        lambda event: _simple_and_empty(event) and _names_no_member(event),
        (),
        since=facts.COMMITTERS_CHECKED,
    ),
    Row("DP-OFFSET-05", _simple_and_transactional, ()),
    Row("DP-OFFSET-06", fenced, (refuse(ErrorCode.FENCED_INSTANCE_ID),)),
    Row("DP-OFFSET-07", _plain_and_completing, (IN_REBALANCE,), until=(2, 4)),
    Row("DP-OFFSET-05 DP-OFFSET-06", unknown_member, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-OFFSET-06", unknown_instance, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),), since=(3, 0)),
    Row("DP-OFFSET-06", other_generation, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-OFFSET-07", _plain_and_completing, (IN_REBALANCE,)),
    Row("DP-OFFSET-07", _transactional, ()),
    Row("DP-OFFSET-08", always, (renew_session,)),
)

ON_DELETE_GATE: Final[tuple[Row[Gate, Gate], ...]] = (
    Row("DP-OFFSET-20", empty_id, (refuse(ErrorCode.INVALID_GROUP_ID),), until=fixes.KAFKA_6773),
    Row("DP-COORD-05", elsewhere, (refuse_elsewhere,)),
    Row("DP-OFFSET-20", missing, (refuse(ErrorCode.GROUP_ID_NOT_FOUND),)),
)

ON_DELETE: Final[tuple[Row[DeleteEvent, DeleteEvent], ...]] = (
    Row("DP-OFFSET-20", is_dead, (refuse(ErrorCode.GROUP_ID_NOT_FOUND),)),
    Row("DP-OFFSET-20", is_empty, (lambda event: event.delete(event.group),)),
    Row("DP-OFFSET-20", always, (refuse(ErrorCode.NON_EMPTY_GROUP),)),
)

# ---- DescribeGroups ------------------------------------------------------------------------------


@with_arguments
def _show_state(event: DescribeEvent, name: str) -> None:
    event.state = name


def _show_metadata(event: DescribeEvent) -> None:
    event.shows_metadata = True


def _show_assignments(event: DescribeEvent) -> None:
    event.shows_assignments = True


DescribeRow: TypeAlias = Row[DescribeEvent, DescribeEvent]

ON_DESCRIBE: Final[tuple[DescribeRow, ...]] = (
    Row("DP-OFFSET-23", is_completing, (_show_state("AwaitingSync"),), until=(1, 1)),
    Row("DP-OFFSET-23", is_stable, (_show_metadata, _show_assignments)),
    Row("DP-OFFSET-23", always, (_show_assignments,), since=NEW_COORDINATOR),
)


class CommitRules(msgspec.Struct, frozen=True):
    """The rows of OffsetCommit, DeleteGroups and DescribeGroups."""

    missing: tuple[MissingRow, ...] = ON_MISSING_IN_COMMIT
    commit: tuple[CommitRow, ...] = ON_COMMIT
    delete_gate: tuple[Row[Gate, Gate], ...] = ON_DELETE_GATE
    delete: tuple[Row[DeleteEvent, DeleteEvent], ...] = ON_DELETE
    describe: tuple[DescribeRow, ...] = ON_DESCRIBE
