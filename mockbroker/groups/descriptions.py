"""Groups as values for testers: what a coordinator knows, held things included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from mockbroker.groups.classic.model import CONSUMER, GROUP_TYPE, Group, Member
from mockbroker.groups.consumer.embedded import read_assignment
from mockbroker.groups.consumer.model import CONSUMER_TYPE, ConsumerGroup
from mockbroker.groups.consumer.model import Member as ConsumerMember
from mockbroker.groups.modern.partitions import TopicIdPartition
from mockbroker.groups.modern.topics import GroupTopics
from mockbroker.groups.streams.assignor import ASSIGNOR
from mockbroker.groups.streams.model import STREAMS_TYPE, StreamsGroup
from mockbroker.groups.streams.model import Member as StreamsMember
from mockbroker.state.model import TopicPartition

__all__ = ["GroupView", "MemberView", "group_json", "view_group"]


@dataclass(frozen=True, slots=True)
class MemberView:
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


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. ``type`` is classic, consumer or streams.

    The ``state`` of a classic group is Empty, PreparingRebalance, CompletingRebalance, Stable or
    Dead; ``held`` says whether ``hold-joins`` keeps its rebalance from completing.

    The ``state`` of a consumer group is Empty, Assigning, Reconciling, Stable or Dead, its
    ``generation`` is the epoch and its ``protocol`` the assignor; ``held`` says whether
    ``hold-assignment`` keeps its members from their targets. ``target_epoch`` is the epoch of its
    target, and ``pinned`` says whether ``set-target-assignment`` made that.

    A streams group has all that, too, and the state NotReady while topics are missing."""

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


def view_group(
    group: Group | ConsumerGroup | StreamsGroup, topics: GroupTopics, assignor: str = ""
) -> GroupView:
    """Return a view of a group as it is now; ``assignor`` is that of a consumer group whose members
    name none."""
    if isinstance(group, ConsumerGroup):
        return _view_consumer_group(group, topics, assignor)
    if isinstance(group, StreamsGroup):
        return _view_streams_group(group)
    return GroupView(
        group.group_id,
        GROUP_TYPE,
        str(group.state),
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        group.held,
        tuple(_view_member(group, each) for each in group.members.values()),
    )


def _view_member(group: Group, member: Member) -> MemberView:
    return MemberView(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _assignment(group, member.assignment),
        member.member_id in group.joins,
        member.member_id in group.syncs,
        member.session.deadline_ms,
    )


def _assignment(group: Group, data: bytes) -> tuple[TopicPartition, ...] | None:
    if not data:
        return ()
    read = read_assignment(data) if group.protocol_type == CONSUMER else None
    if read is None:
        return None
    return tuple(
        (each.topic, index) for each in read.assigned_partitions for index in each.partitions
    )


def _view_consumer_group(group: ConsumerGroup, topics: GroupTopics, assignor: str) -> GroupView:
    return GroupView(
        group.group_id,
        CONSUMER_TYPE,
        str(group.state),
        group.epoch,
        CONSUMER_TYPE,
        group.preferred_assignor or assignor,
        None,
        group.held,
        tuple(_view_consumer(group, topics, each) for each in group.members.values()),
        group.target_epoch,
        group.pinned is not None,
    )


def _view_consumer(group: ConsumerGroup, topics: GroupTopics, member: ConsumerMember) -> MemberView:
    def named(partitions: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        return tuple(
            (name, index) for name, indexes in topics.by_name(partitions) for index in indexes
        )

    clocks = group.clocks.get(member.member_id)
    return MemberView(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        named(member.assigned),
        joining=False,
        syncing=False,
        session_ends_ms=None if clocks is None else clocks.session.deadline_ms,
        epoch=member.epoch,
        state=member.state.name,
        target=named(group.target.get(member.member_id, ())),
        revoking=named(member.revoking),
    )


def _view_streams_group(group: StreamsGroup) -> GroupView:
    return GroupView(
        group.group_id,
        STREAMS_TYPE,
        str(group.state),
        group.epoch,
        STREAMS_TYPE,
        ASSIGNOR,
        None,
        group.held,
        tuple(_view_streams_member(group, each) for each in group.members.values()),
        group.target_epoch,
        group.pinned is not None,
    )


def _view_streams_member(group: StreamsGroup, member: StreamsMember) -> MemberView:
    clocks, target = group.clocks.get(member.member_id), group.target.get(member.member_id)
    return MemberView(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        tuple(sorted(member.assigned.active)),
        joining=False,
        syncing=False,
        session_ends_ms=None if clocks is None else clocks.session.deadline_ms,
        epoch=member.epoch,
        state=member.state.name,
        target=() if target is None else tuple(sorted(target.active)),
        revoking=tuple(sorted(member.revoking.active | member.revoking.standby)),
        standby=tuple(sorted(member.assigned.standby)),
    )


def group_json(view: GroupView) -> dict[str, Any]:
    """Return a group as JSON values; partitions are written ``foo-0``."""
    found = asdict(view)
    for each, member in zip(found["members"], view.members, strict=True):
        for name in ("assignment", "target", "revoking", "standby"):
            partitions = getattr(member, name)
            if partitions is not None:
                each[name] = [f"{topic}-{index}" for topic, index in partitions]
    found["members"] = list(found["members"])
    return found
