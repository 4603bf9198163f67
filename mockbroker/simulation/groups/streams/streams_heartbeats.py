"""What happens to streams groups: the contexts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.streams.streams_group import (
    Endpoint,
    EndpointPartitions,
    HeartbeatRequest,
    HeartbeatResult,
    Member,
    Status,
    StatusCode,
    StreamsGroup,
    Task,
)
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology, Topology

__all__ = [
    "AnswerEvent",
    "ChangeEvent",
    "CommitEvent",
    "EndpointEvent",
    "HeartbeatEvent",
    "MemberGone",
    "PartitionsEvent",
    "TargetEvent",
    "UpdateEvent",
    "endpoint_partitions",
]


class HeartbeatEvent(msgspec.Struct, eq=False):
    """A heartbeat before it changes anything. ``group`` is None if there is none of this kind;
    ``other`` says whether the id is that of a group of another kind, ``replaceable`` whether that
    is an empty classic one. The rows decide on ``result``, which ends the heartbeat, or on
    ``former``, the member that sends it, ``topology`` and ``configured``."""

    request: HeartbeatRequest
    coordinator_error: ErrorCode
    settings: StreamsSettings
    group: StreamsGroup | None
    other: bool
    replaceable: bool
    configure: Callable[[StreamsGroup, Topology], ConfiguredTopology]
    makes: bool = False
    former: Member | None = None
    replaces: Member | None = None
    """The static member whose place the sender takes."""
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None
    bad_task: str = ""
    result: HeartbeatResult | None = None

    @property
    def known(self) -> StreamsGroup:
        assert self.group is not None, "rows above refuse or make the group"
        return self.group

    @property
    def member(self) -> Member:
        """The member that sends the heartbeat. Only for rows below those that find it."""
        assert self.former is not None, "rows above refuse or make the member"
        return self.former

    @property
    def holder(self) -> Member | None:
        """The member that has the request's instance id."""
        return self.known.static_member(self.request.instance_id)

    def reject(self, code: ErrorCode, text: str | None) -> None:
        self.result = HeartbeatResult(code, text)

    def words(self) -> dict[str, object]:
        """What texts of errors may name."""
        request, holder = self.request, None
        if self.group is not None:
            holder = self.group.static_member(request.instance_id)
        changelog = self.sized_changelog
        return {
            "group": request.group_id,
            "member": request.member_id,
            "instance": request.instance_id,
            "holder": None if holder is None else holder.member_id,
            "received": request.member_epoch,
            "epoch": None if self.former is None else self.former.epoch,
            "size": self.settings.max_size,
            "changelog": None if changelog is None else changelog[0],
            "partitions": None if changelog is None else changelog[1],
            "task": self.bad_task,
        }

    @property
    def sized_changelog(self) -> tuple[str, int] | None:
        """A changelog topic of the request for which it sets the number of partitions."""
        topology = self.request.topology
        if topology is None:
            return None
        sized = (
            (topic.name, topic.partitions)
            for each in topology.subtopologies
            for topic in each.changelogs
            if topic.partitions
        )
        return next(sized, None)


class UpdateEvent(msgspec.Struct, eq=False):
    """A member has taken over what a heartbeat says."""

    member: Member
    request: HeartbeatRequest


class ChangeEvent(msgspec.Struct, eq=False):
    """A heartbeat has changed something: does the group need another target?"""

    is_static: bool
    metadata_changed: bool
    placement_changed: bool
    facts_changed: bool
    configs_changed: bool
    bumps: bool = False


class TargetEvent(msgspec.Struct, eq=False):
    """Is it time for a target? ``now_ms`` is the cluster's clock."""

    group: StreamsGroup
    now_ms: int
    assignment_interval_ms: int
    makes_target: bool = False
    statuses: list[Status] = msgspec.field(default_factory=list)

    def delay(self, detail: str) -> None:
        self.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))


class AnswerEvent(msgspec.Struct, eq=False):
    """A heartbeat is answered: what the member is told besides its tasks."""

    group: StreamsGroup
    member: Member
    version: int
    tags: Sequence[str]
    configured: ConfiguredTopology
    statuses: list[Status] = msgspec.field(default_factory=list)

    def add(self, code: StatusCode, detail: str) -> None:
        self.statuses.append(Status(code, detail))

    @property
    def missing_tags(self) -> list[str]:
        known = dict(self.member.tags)
        return [each for each in self.tags if each not in known]


class EndpointEvent(msgspec.Struct, eq=False):
    """A member is answered: did its endpoint change, or what is behind it?"""

    before: Member
    after: Member
    joins: bool
    raises: bool = False
    """Whether the epoch of the endpoints rises."""

    @property
    def moved(self) -> bool:
        return self.before.assigned != self.after.assigned


class PartitionsEvent(msgspec.Struct, eq=False):
    """The partitions of one topic that tasks read."""

    partitions: frozenset[int]
    count: int
    shown: tuple[int, ...] = ()
    is_shown: bool = True


class MemberGone(msgspec.Struct, eq=False):
    """A member leaves a group, or is fenced."""

    group: StreamsGroup
    member: Member
    remove: Callable[[StreamsGroup, Member], None]
    settle: Callable[[StreamsGroup], None]


class CommitEvent(msgspec.Struct, eq=False):
    """Offsets of these partitions are to be stored for a group, or fetched, by this member."""

    group: StreamsGroup
    member_id: str | None
    instance_id: str | None
    epoch: int
    version: int
    transactional: bool
    partitions: Sequence[tuple[str, int]] = ()
    code: ErrorCode = ErrorCode.NONE

    @property
    def member(self) -> Member:
        """The member. Only for rows below those that refuse unknown ones."""
        assert self.member_id is not None, "rows above refuse that"
        return self.group.members[self.member_id]

    @property
    def epochs(self) -> Mapping[Task, int]:
        return self.member.epochs

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


def endpoint_partitions(
    endpoint: Endpoint,
    active: Mapping[str, tuple[int, ...]],
    standby: Mapping[str, tuple[int, ...]],
) -> EndpointPartitions:
    """The answer's form of an endpoint."""
    return EndpointPartitions(endpoint, tuple(active.items()), tuple(standby.items()))
