"""Groups as values for testers, with everything that a coordinator knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.groups.classic.classic_group import CONSUMER, Group
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup
from mockbroker.simulation.groups.consumer.consumer_group import Member as ConsumerMember
from mockbroker.simulation.groups.consumer_protocol import read_assignment
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.modern_group import ModernMember, StaticGroup, StaticMember
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareMember
from mockbroker.simulation.groups.share.share_partition import SharePartition
from mockbroker.simulation.groups.streams.streams_group import NO_TASKS, StreamsGroup, Tasks
from mockbroker.simulation.groups.streams.streams_group import Member as StreamsMember
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "GroupView",
    "InFlightView",
    "MemberView",
    "SharePartitionView",
    "group_json",
    "view_classic_group",
    "view_group",
]


class MemberView(msgspec.Struct, frozen=True):
    """A member. ``assignment`` is None if it is not that of a consumer. ``joining`` and ``syncing``
    say whether an answer waits; ``session_ends_ms`` is on the simulated clock, None while no
    session runs.

    Members of consumer groups have an epoch, a state (STABLE, UNREVOKED, UNRELEASED), the target of
    their assignment and what they have to give up; others have None there. Those of streams groups
    have tasks: subtopology and partition; ``standby`` are those of which they keep a copy."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None
    joining: bool
    syncing: bool
    session_ends_ms: int | None
    epoch: int | None = None
    state: str | None = None
    target: tuple[TopicPartition, ...] | None = None
    revoking: tuple[TopicPartition, ...] | None = None
    standby: tuple[TopicPartition, ...] | None = None


class InFlightView(msgspec.Struct, frozen=True):
    """Records of a share partition that are in flight, from ``first`` to ``last``. ``state`` is
    Available, Acquired, Acknowledged or Archived, ``delivery_count`` how often they were delivered;
    ``member_id`` has acquired them until ``lock_ends_ms`` on the simulated clock."""

    first: int
    last: int
    state: str
    delivery_count: int
    member_id: str | None
    lock_ends_ms: int | None


class SharePartitionView(msgspec.Struct, frozen=True):
    """A partition as a share group sees it. ``start_offset`` is -1 until the first fetch, and
    ``stored_start_offset`` the one that DescribeShareGroupOffsets shows."""

    partition: TopicPartition
    start_offset: int
    stored_start_offset: int
    in_flight: tuple[InFlightView, ...]


class GroupView(msgspec.Struct, frozen=True):
    """A group. ``type`` is classic, consumer, streams or share.

    The ``state`` of a classic group is Empty, PreparingRebalance, CompletingRebalance, Stable or
    Dead; ``held`` says whether ``hold-joins`` keeps its rebalance from completing.

    The ``state`` of a consumer group is Empty, Assigning, Reconciling, Stable or Dead, its
    ``generation`` is the epoch and its ``protocol`` the assignor; ``held`` says whether
    ``hold-assignment`` keeps its members from their targets. ``target_epoch`` is the epoch of its
    target, and ``pinned`` says whether ``set-target-assignment`` made that.

    A streams group has all that, too, and the state NotReady while topics are missing.

    The ``state`` of a share group is Empty, Stable or Dead. ``share_partitions`` are its share
    partitions; None for groups of other kinds."""

    group_id: str
    type: str
    state: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    held: bool
    members: tuple[MemberView, ...]
    target_epoch: int | None = None
    pinned: bool = False
    share_partitions: tuple[SharePartitionView, ...] | None = None


def view_classic_group(group: Group) -> GroupView:
    """Return a view of a classic group as it is now."""
    return GroupView(
        group.group_id,
        group.group_type,
        str(group.state),
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        group.held,
        tuple(
            MemberView(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                _assignment(group, member.assignment),
                member.member_id in group.joins,
                member.member_id in group.syncs,
                member.session.deadline_ms,
            )
            for member in group.members.values()
        ),
    )


def _assignment(group: Group, data: bytes) -> tuple[TopicPartition, ...] | None:
    if not data:
        return ()
    read = read_assignment(data) if group.protocol_type == CONSUMER else None
    if read is None:
        return None
    return tuple(
        (assigned.topic, index)
        for assigned in read.assigned_partitions
        for index in assigned.partitions
    )


def view_group(
    group: ConsumerGroup | StreamsGroup | ShareGroup,
    topics: GroupTopics,
    assignor: str,
    partitions: Iterable[SharePartition] | None,
) -> GroupView:
    """Return a view of a group of a newer kind, with its share partitions, as it is now."""
    return GroupView(
        group.group_id,
        group.group_type,
        str(group.state),
        group.epoch,
        group.group_type,
        assignor,
        None,
        group.held,
        tuple(_view_member(group, topics, member) for member in group.members.values()),
        group.target_epoch,
        isinstance(group, StaticGroup) and group.pinned is not None,
        None if partitions is None else tuple(map(_view_share_partition, partitions)),
    )


def _view_member(
    group: ConsumerGroup | StreamsGroup | ShareGroup, topics: GroupTopics, member: ModernMember
) -> MemberView:
    clocks = group.clocks.get(member.member_id)
    view = MemberView(
        member.member_id,
        None,
        member.client_id,
        member.client_host,
        (),
        joining=False,
        syncing=False,
        session_ends_ms=None if clocks is None else clocks.deadline_ms,
        epoch=member.epoch,
    )
    if isinstance(member, StaticMember):
        view = replace(view, instance_id=member.instance_id, state=member.state.name)
    target = group.target.get(member.member_id)
    if isinstance(member, StreamsMember):
        revoking, wanted = member.revoking, NO_TASKS if target is None else target
        assert isinstance(wanted, Tasks)
        return replace(
            view,
            assignment=tuple(sorted(member.assigned.active)),
            target=tuple(sorted(wanted.active)),
            revoking=tuple(sorted(revoking.active | revoking.standby)),
            standby=tuple(sorted(member.assigned.standby)),
        )
    assert isinstance(member, ConsumerMember | ShareMember)
    assert not isinstance(target, Tasks)
    view = replace(
        view, assignment=_named(topics, member.assigned), target=_named(topics, target or ())
    )
    if isinstance(member, ConsumerMember):
        view = replace(view, revoking=_named(topics, member.revoking))
    return view


def _view_share_partition(share: SharePartition) -> SharePartitionView:
    return SharePartitionView(
        share.tp,
        share.start_offset,
        share.stored_start,
        tuple(
            InFlightView(
                first,
                last,
                str(each.state),
                each.count,
                each.member_id or None,
                None if each.lock is None else each.lock.due_ms,
            )
            for first, last, each in share.deliveries()
        ),
    )


def _named(
    topics: GroupTopics, partitions: Iterable[TopicIdPartition]
) -> tuple[TopicPartition, ...]:
    return tuple((name, index) for name, indexes in topics.by_name(partitions) for index in indexes)


def group_json(view: GroupView) -> dict[str, Any]:
    """Return a group as JSON values; partitions are written ``foo-0``."""
    shown: dict[str, Any] = msgspec.to_builtins(view)
    for each, member in zip(shown["members"], view.members, strict=True):
        for name in ("assignment", "target", "revoking", "standby"):
            partitions = getattr(member, name)
            if partitions is not None:
                each[name] = [f"{topic}-{index}" for topic, index in partitions]
    if view.share_partitions is not None:
        shown["share_partitions"] = [
            {**each, "partition": f"{shared.partition[0]}-{shared.partition[1]}"}
            for each, shared in zip(shown["share_partitions"], view.share_partitions, strict=True)
        ]
    return shown
