"""Groups of the newer protocols: epochs, members, and a target for each.

State without rules. Members are values: a change makes another member. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.groups.modern.group_topics import TopicFacts
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.state.timers import Timer

__all__ = [
    "EpochGroupState",
    "GroupT",
    "MemberClocks",
    "MemberState",
    "ModernGroup",
    "ModernMember",
    "StaticGroup",
    "StaticMember",
]


class EpochGroupState(StrEnum):
    """The names that ListGroups and the describing APIs of the newer protocols show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"
    NOT_READY = "NotReady"
    """Topics of a streams group are missing."""


class MemberState(IntEnum):
    """The step of a member on its way to its target; the numbers are those of a consumer group's
    records."""

    STABLE = 0
    UNREVOKED = 1
    """It still has to give up something."""
    UNRELEASED = 2
    """It waits for something that others have to give up."""


# ---- members -------------------------------------------------------------------------------------


class ModernMember(msgspec.Struct, frozen=True):
    """A member. ``previous_epoch`` is -1 until it has had two."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    epoch: int = 0
    previous_epoch: int = -1

    @property
    def metadata(self) -> tuple[object, ...]:
        """Everything but the assignment: the fields of the record of its metadata."""
        raise NotImplementedError

    @property
    def progress(self) -> tuple[object, ...]:
        """The fields of the record of its current assignment."""
        raise NotImplementedError


class StaticMember(ModernMember, frozen=True):
    """A member that may have an instance id, and that reconciles with its target step by step."""

    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    state: MemberState = MemberState.STABLE

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return False

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def at_epoch(self, epoch: int) -> Self:
        return replace(self, epoch=epoch, previous_epoch=self.epoch)


class _Clock(Protocol):
    """Whatever of a member runs."""

    @property
    def deadline_ms(self) -> int | None: ...

    def stop(self) -> None: ...


class MemberClocks(msgspec.Struct, eq=False):
    """The timers of one member: ``revocation`` runs while it has something to give up."""

    session: Session
    revocation: Timer

    @property
    def deadline_ms(self) -> int | None:
        """When the session ends; None if it does not run."""
        return self.session.deadline_ms

    def stop(self) -> None:
        self.session.stop()
        self.revocation.set(None)


# ---- groups --------------------------------------------------------------------------------------

MemberT = TypeVar("MemberT", bound=ModernMember)
StaticMemberT = TypeVar("StaticMemberT", bound=StaticMember)
TargetT = TypeVar("TargetT")
ClockT = TypeVar("ClockT", bound=_Clock)


class ModernGroup(msgspec.Struct, Generic[MemberT, TargetT, ClockT], eq=False):
    """``epoch`` counts the causes of a new target, ``target_epoch`` is the one for which ``target``
    was made, at ``target_ms`` (0: never). ``held`` says whether a tester keeps members from giving
    up and getting what they are to have."""

    group_type: ClassVar[str]
    """In ListGroups. It is the protocol type of members, too."""

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

    @property
    def protocol_type(self) -> str:
        return self.group_type

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

    @property
    def is_ready(self) -> bool:
        """Whether there is something to assign."""
        return True

    @property
    def state(self) -> EpochGroupState:
        if self.dead:
            return EpochGroupState.DEAD
        if not self.members:
            return EpochGroupState.EMPTY
        if not self.is_ready:
            return EpochGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return EpochGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return EpochGroupState.STABLE
        return EpochGroupState.RECONCILING

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
            name: self.pinned.get(member.instance_id or name, self.pinned.get(name, nothing))
            for name, member in self.members.items()
        }


GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any, Any])
