"""What every group of a newer protocol is: epochs, members, and a target for each.

State without rules. Members are values: a change makes another member. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from mockbroker.simulation.groups.modern.group_topics import TopicFacts

__all__ = ["GroupT", "ModernGroup", "ModernMember", "StaticGroup", "StaticMember"]


class ModernMember(Protocol):
    @property
    def member_id(self) -> str: ...

    @property
    def metadata(self) -> tuple[object, ...]:
        """Everything but the assignment: the fields of the record of its metadata."""
        ...

    @property
    def progress(self) -> tuple[object, ...]:
        """The fields of the record of its current assignment."""
        ...


class StaticMember(ModernMember, Protocol):
    @property
    def instance_id(self) -> str | None: ...


class _Clock(Protocol):
    """Whatever of a member runs."""

    def stop(self) -> None: ...


MemberT = TypeVar("MemberT", bound=ModernMember)
StaticMemberT = TypeVar("StaticMemberT", bound=StaticMember)
TargetT = TypeVar("TargetT")
ClockT = TypeVar("ClockT", bound=_Clock)


class ModernGroup(msgspec.Struct, Generic[MemberT, TargetT, ClockT], eq=False):
    """``epoch`` counts the causes of a new target, ``target_epoch`` is the one for which ``target``
    was made, at ``target_ms`` (0: never). ``held`` says whether a tester keeps members from giving
    up and getting what they are to have."""

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    target_ms: int = 0
    target: dict[str, TargetT] = msgspec.field(default_factory=dict)
    members: dict[str, MemberT] = msgspec.field(default_factory=dict)
    clocks: dict[str, ClockT] = msgspec.field(default_factory=dict)
    """The timers of each member."""
    facts: tuple[TopicFacts, ...] = ()
    """Of the topics that the group reads, as the epoch takes account of them."""
    held: bool = False
    dead: bool = False

    def put(self, member: MemberT) -> None:
        """Add a member, or replace the one of its id."""
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        """Forget a member with its target and its timers."""
        del self.members[member_id]
        self.target.pop(member_id, None)
        clock = self.clocks.pop(member_id, None)
        if clock is not None:
            clock.stop()

    def stop(self) -> None:
        """Stop everything that could still happen to the group."""
        for clock in self.clocks.values():
            clock.stop()
        self.clocks.clear()


# A class with slots is made anew by its decorator, so that super() without arguments fails in it.


class StaticGroup(ModernGroup[StaticMemberT, TargetT, ClockT], eq=False):
    """A group in which members may have instance ids. ``pinned`` is a target that a tester has
    set."""

    instances: dict[str, str] = msgspec.field(default_factory=dict)
    """Instance id -> member id."""
    facts_version: int = -1
    """The version of the cluster's topics at which ``facts`` were last compared."""
    pinned: Mapping[str, TargetT] | None = None

    def static_member(self, instance_id: str | None) -> StaticMemberT | None:
        """The member of an instance id; None if there is none."""
        member_id = None if instance_id is None else self.instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def put(self, member: StaticMemberT) -> None:
        ModernGroup.put(self, member)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        instance_id = self.members[member_id].instance_id
        ModernGroup.remove(self, member_id)
        if instance_id is not None and self.instances.get(instance_id) == member_id:
            del self.instances[instance_id]

    def pinned_targets(self, nothing: TargetT) -> dict[str, TargetT] | None:
        """The targets that a tester has set, by member id; None if none are."""
        if self.pinned is None:
            return None
        return {
            name: self.pinned.get(each.instance_id or name, self.pinned.get(name, nothing))
            for name, each in self.members.items()
        }


GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any, Any])
