"""What happens to consumer groups: the contexts of the rows, and the answers they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import Group as ClassicGroup
from mockbroker.simulation.groups.consumer.consumer_group import (
    ConsumerGroup,
    HeartbeatRequest,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition

__all__ = [
    "CommitEvent",
    "DescribeEvent",
    "GroupEvent",
    "HeartbeatEvent",
    "MembersGone",
    "RegexEvent",
]


class GroupEvent(msgspec.Struct, eq=False):
    """Something happens to a group. ``now_ms`` is the cluster's clock, ``assignment_interval_ms``
    the shortest time between two targets."""

    group: ConsumerGroup
    now_ms: int
    assignment_interval_ms: int = 0
    topics_changed: bool = False
    racks_changed: bool = False
    resolved_changed: bool = False
    subscription_changed: bool = False
    assignor_changed: bool = False
    bumps: bool = False
    """Whether the epoch rises."""
    makes_target: bool = False


class HeartbeatEvent(msgspec.Struct, eq=False):
    """A heartbeat before it changes anything. ``group`` is None if there is none of this kind,
    ``classic`` is the classic group of the id, which ``convert`` makes a consumer group. The rows
    decide on ``result``, which ends the heartbeat, or on ``former``: the member that sends it, as
    it was."""

    request: HeartbeatRequest
    coordinator_error: ErrorCode
    settings: ConsumerSettings
    member_id: str
    group: ConsumerGroup | None
    classic: ClassicGroup | None
    convert: Callable[[], ConsumerGroup]
    new_member_id: Callable[[], str]
    regex_problem: Callable[[str], str | None]
    is_taken: bool = False
    """By a group of a kind that cannot become a consumer group."""
    converts: bool = False
    former: Member | None = None
    replaces: Member | None = None
    """The static member whose place the sender takes."""
    result: HeartbeatResult | None = None

    @property
    def known(self) -> ConsumerGroup:
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
        return {
            "group": request.group_id,
            "member": self.member_id,
            "instance": request.instance_id,
            "holder": None if holder is None else holder.member_id,
            "received": request.member_epoch,
            "epoch": None if self.former is None else self.former.epoch,
            "assignor": request.assignor,
            "assignors": ", ".join(self.settings.assignors),
            "size": self.settings.max_size,
            "regex": request.topic_regex,
            "problem": self.regex_problem(request.topic_regex) if request.topic_regex else None,
        }


class MembersGone(msgspec.Struct, eq=False):
    """Members leave a group, or are fenced. ``remove``, ``downgrade`` and ``settle``
    are what may follow."""

    group: ConsumerGroup
    gone: Sequence[Member]
    settings: ConsumerSettings
    classic_max_size: int
    remove: Callable[[ConsumerGroup, Sequence[Member]], None]
    downgrade: Callable[[ConsumerGroup, Sequence[Member]], None]
    settle: Callable[[ConsumerGroup], None]

    @property
    def staying(self) -> list[Member]:
        leaving = {each.member_id for each in self.gone}
        return [m for name, m in self.group.members.items() if name not in leaving]


class RegexEvent(msgspec.Struct, eq=False):
    """A heartbeat has been answered: do regular expressions have to be resolved again?
    ``waiting`` is the number of those that were never resolved."""

    group: ConsumerGroup
    now_ms: int
    interval_ms: int
    created: int
    resolves: bool = False

    @property
    def last_ms(self) -> int | None:
        """When the group resolved them last; None if it never did."""
        return next((each.resolved_ms for each in self.group.resolved.values()), None)

    @property
    def version(self) -> int:
        return next((each.version for each in self.group.resolved.values()), 0)


class CommitEvent(msgspec.Struct, eq=False):
    """Offsets of these partitions are to be stored for a group, or fetched, by this member."""

    group: ConsumerGroup
    member_id: str | None
    instance_id: str | None
    epoch: int
    version: int
    transactional: bool
    partitions: Sequence[TopicIdPartition | None] = ()
    code: ErrorCode = ErrorCode.NONE

    @property
    def member(self) -> Member:
        """The member. Only for rows below those that refuse unknown ones."""
        assert self.member_id is not None, "rows above refuse that"
        return self.group.members[self.member_id]

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


class DescribeEvent(msgspec.Struct, eq=False):
    """ConsumerGroupDescribe shows a member: the partitions of its assignment."""

    member: Member
    shown: Assignment = msgspec.field(default_factory=frozenset)
