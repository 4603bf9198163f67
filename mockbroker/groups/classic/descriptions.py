"""Groups as values for testers: what a coordinator knows, held things included."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kproto.errors import KprotoError
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from mockbroker.groups.classic.model import CONSUMER, Group, Member
from mockbroker.state.model import TopicPartition

__all__ = ["GroupView", "MemberView", "group_json", "view_group"]

_VERSION_BYTES = 2


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member. ``assignment`` is None if it is not that of a consumer. ``joining`` and ``syncing``
    say whether an answer waits; ``session_ends_ms`` is on the simulated clock, None while no
    session runs."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None
    joining: bool
    syncing: bool
    session_ends_ms: int | None


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. ``state`` is Empty, PreparingRebalance, CompletingRebalance, Stable or Dead;
    ``held`` says whether ``hold-joins`` keeps its rebalance from completing."""

    group_id: str
    state: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    held: bool
    members: tuple[MemberView, ...]


def view_group(group: Group) -> GroupView:
    """Return a view of a group as it is now."""
    return GroupView(
        group.group_id,
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
    if group.protocol_type != CONSUMER or len(data) < _VERSION_BYTES:
        return None
    try:
        # Version 0 has the partitions, and every version begins with its fields.
        read, _ = ConsumerProtocolAssignment.decode_from(data, 0, _VERSION_BYTES)
    except KprotoError:
        return None
    return tuple(
        (each.topic, index) for each in read.assigned_partitions for index in each.partitions
    )


def group_json(view: GroupView) -> dict[str, Any]:
    """Return a group as JSON values; partitions are written ``foo-0``."""
    found = asdict(view)
    for each, member in zip(found["members"], view.members, strict=True):
        if member.assignment is not None:
            each["assignment"] = [f"{topic}-{index}" for topic, index in member.assignment]
    found["members"] = list(found["members"])
    return found
