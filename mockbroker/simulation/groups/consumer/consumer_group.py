"""A consumer group and its members, its heartbeats, and their answers.

State without rules. Members are values: a change makes another member. Times are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from mockbroker.simulation.groups.classic.classic_group import Protocols
from mockbroker.simulation.groups.modern.heartbeats import StaticHeartbeat
from mockbroker.simulation.groups.modern.modern_group import MemberClocks, StaticGroup, StaticMember
from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition
from mockbroker.simulation.state.timers import Timer

__all__ = [
    "CONSUMER_TYPE",
    "Assigned",
    "ClassicPart",
    "ConsumerClocks",
    "ConsumerGroup",
    "HeartbeatRequest",
    "Member",
    "ResolvedRegex",
]

CONSUMER_TYPE: Final = "consumer"
"""The type of these groups in ListGroups, and the protocol type of their members."""

Assigned: TypeAlias = Mapping[TopicIdPartition, int]
"""Partition -> the member epoch at which the member got it."""


# ---- requests and answers ------------------------------------------------------------------------


class HeartbeatRequest(StaticHeartbeat, frozen=True):
    """``owned``, names, regex and assignor are None where the request leaves them out.

    ``has_empty_rows``: the request names topics without partitions, which ``owned`` does not show.
    ``needs_member_id``: version 1 and later, in which clients make their own. ``visible`` returns
    the topics among some names that the caller may describe."""

    topic_names: tuple[str, ...] | None = None
    topic_regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    has_empty_rows: bool = False
    needs_member_id: bool = True
    visible: Callable[[Iterable[str]], frozenset[str]] = frozenset

    @property
    def is_full(self) -> bool:
        """Whether the member sends everything, as it does after an error."""
        subscribes = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


# ---- members -------------------------------------------------------------------------------------


class ClassicPart(msgspec.Struct, frozen=True):
    """The part of a member that only JoinGroup sends."""

    session_timeout_ms: int
    protocols: Protocols


class Member(StaticMember, frozen=True):
    """A member. ``classic`` is None for members that speak the consumer protocol. ``revoking`` are
    partitions that it has to give up."""

    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    assignor: str | None = None
    classic: ClassicPart | None = None
    assigned: Assigned = msgspec.field(default_factory=dict)
    revoking: Assigned = msgspec.field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def metadata(self) -> tuple[object, ...]:
        return (
            self.instance_id, self.rack_id, self.rebalance_timeout_ms, self.topic_names,
            self.topic_regex, self.assignor, self.client_id, self.client_host, self.classic,
        )  # fmt: skip

    @property
    def progress(self) -> tuple[object, ...]:
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking

    @property
    def held(self) -> Assignment:
        """The partitions that no other member can have yet."""
        return frozenset(self.assigned) | frozenset(self.revoking)


class ConsumerClocks(MemberClocks, eq=False):
    """``join`` and ``sync`` run until a member of the classic protocol has sent these requests."""

    join: Timer
    sync: Timer

    def stop(self) -> None:
        MemberClocks.stop(self)
        self.join.set(None)
        self.sync.set(None)


# ---- groups --------------------------------------------------------------------------------------


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that a regular expression matched at ``resolved_ms``, when the cluster had created
    ``version`` topics."""

    topics: frozenset[str]
    version: int
    resolved_ms: int


class ConsumerGroup(StaticGroup[Member, Assignment, ConsumerClocks], eq=False):
    """Its members subscribe to topics, by name or by regular expression."""

    group_type = CONSUMER_TYPE
    resolved: dict[str, ResolvedRegex] = msgspec.field(default_factory=dict)
    holders: Counter[TopicIdPartition] = msgspec.field(default_factory=Counter)
    regexes: Counter[str] = msgspec.field(default_factory=Counter)
    """How many members have each regular expression."""

    def is_free(self, partition: TopicIdPartition) -> bool:
        return not self.holders[partition]

    def put(self, member: Member) -> None:
        former = self.members.get(member.member_id)
        if former is None or former.progress != member.progress:
            self._release(former)
            self.holders.update(member.held)
        if former is None or former.topic_regex != member.topic_regex:
            self._count(former, -1)
            self._count(member, 1)
        StaticGroup.put(self, member)

    def remove(self, member_id: str) -> None:
        member = self.members[member_id]
        self._release(member)
        self._count(member, -1)
        StaticGroup.remove(self, member_id)

    def _release(self, member: Member | None) -> None:
        if member is not None:
            self.holders.subtract(member.held)
            self.holders = +self.holders

    def _count(self, member: Member | None, number: int) -> None:
        if member is not None and member.topic_regex:
            self.regexes[member.topic_regex] += number
            self.regexes = +self.regexes

    def topics_of(self, member: Member) -> frozenset[str]:
        """The topics that a member subscribes to, those of its regular expression included."""
        resolved = self.resolved.get(member.topic_regex)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member subscribes to."""
        return frozenset().union(*map(self.topics_of, self.members.values()))

    @property
    def preferred_assignor(self) -> str | None:
        """The assignor that most members name, uniform rather than range; None if no member names
        one."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor)
        return max(sorted(votes, reverse=True), key=votes.__getitem__, default=None)
