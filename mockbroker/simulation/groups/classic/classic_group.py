"""A classic group and its members, their requests, and the answers.

Mutable state without rules: rules as rows decide, ``rebalancing`` changes. Times are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.state.timers import Timer

__all__ = [
    "CONSUMER",
    "GROUP_TYPE",
    "NO_GENERATION",
    "DescribedGroup",
    "DescribedMember",
    "Group",
    "GroupState",
    "JoinAnswer",
    "JoinRequest",
    "JoinResult",
    "JoinedMember",
    "LeavingMember",
    "Member",
    "Protocols",
    "StoredGroup",
    "SyncAnswer",
    "SyncRequest",
    "SyncResult",
]

CONSUMER: Final = "consumer"
"""The protocol type of consumers; Connect and others have their own."""
GROUP_TYPE: Final = "classic"
"""The type of these groups in ListGroups."""
NO_GENERATION: Final = -1

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""(name, metadata) of the protocols that a member supports, by its preference."""


class GroupState(StrEnum):
    """The names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# ---- requests and answers ------------------------------------------------------------------------


class JoinRequest(msgspec.Struct, frozen=True):
    """``client_host`` is the text of DescribeGroups: ``/127.0.0.1``. ``needs_member_id``: a member
    without an id gets one first (KIP-394). ``can_skip_assignment``: the client knows
    ``skip_assignment`` (KIP-814)."""

    group_id: str
    member_id: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    needs_member_id: bool = False
    can_skip_assignment: bool = False
    reason: str | None = None


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as its leader sees it: ``metadata`` is that of the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinResult(msgspec.Struct, frozen=True):
    """``members`` is empty for all but the leader."""

    error_code: int
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncRequest(msgspec.Struct, frozen=True):
    """``assignments`` is empty for all but the leader."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncResult(msgspec.Struct, frozen=True):
    error_code: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeavingMember(msgspec.Struct, frozen=True):
    """A member that LeaveGroup names: by its id, or by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class DescribedMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True):
    """``protocol_name`` and the metadata are empty unless the group is stable."""

    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


JoinAnswer: TypeAlias = Callable[[JoinResult], None]
SyncAnswer: TypeAlias = Callable[[SyncResult], None]


# ---- members -------------------------------------------------------------------------------------


class Member(msgspec.Struct, eq=False):
    """``is_new`` until its first generation begins. ``instance_id`` makes it static (KIP-345)."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    session: Session
    assignment: bytes = b""
    is_new: bool = True

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The metadata of one of its protocols; empty for others."""
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """The first of its protocols that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)


class StoredMember(msgspec.Struct, frozen=True):
    """A member as the log of ``__consumer_offsets`` holds it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes


class StoredGroup(msgspec.Struct, frozen=True):
    """The last generation that got assignments, which a new coordinator reads from the log."""

    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: tuple[StoredMember, ...]
    since_ms: int


# ---- groups --------------------------------------------------------------------------------------


class Group(msgspec.Struct, eq=False):
    """``members`` are in the order in which they joined. ``joins`` and ``syncs`` are the answers
    that wait, by member id; ``pending`` the sessions of ids that were handed out (KIP-394) and have
    not joined. ``protocol_type`` is None for a simple group, which only has offsets."""

    group_type: ClassVar[str] = GROUP_TYPE

    group_id: str
    since_ms: int
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = msgspec.field(default_factory=dict)
    instances: dict[str, str] = msgspec.field(default_factory=dict)
    """Instance id -> member id."""
    pending: dict[str, Session] = msgspec.field(default_factory=dict)
    unsynced: set[str] = msgspec.field(default_factory=set)
    """The member ids of this generation that have not sent SyncGroup."""
    joins: dict[str, JoinAnswer] = msgspec.field(default_factory=dict)
    syncs: dict[str, SyncAnswer] = msgspec.field(default_factory=dict)
    grew: bool = False
    """Whether a member was added during the initial delay."""
    held: bool = False
    """Whether a tester keeps rebalances from completing."""
    stored: StoredGroup | None = None
    join_timer: Timer | None = None
    sync_timer: Timer | None = None
    subscribed: frozenset[str] | None = None
    """The topics of all members, if the group consists of consumers and their metadata is
    readable."""
    supported: Counter[str] = msgspec.field(default_factory=Counter)
    """Protocol name -> how many members support it."""

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def in_initial_delay(self) -> bool:
        """Whether this rebalance began in an empty group."""
        return self.state is GroupState.PREPARING and self.previous_state is GroupState.EMPTY

    @property
    def all_joined(self) -> bool:
        """Whether every member waits for its answer, and no id is pending."""
        return len(self.joins) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def candidates(self) -> frozenset[str]:
        """The protocols that all members support."""
        return frozenset(n for n, count in self.supported.items() if count == len(self.members))

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can be in the group."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(
            self.supported[name] == len(self.members) for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """The candidate with the most votes; of several, the one that was voted for first, by the
        order in which members joined."""
        candidates = self.candidates
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def enter(self, state: GroupState, now_ms: int) -> None:
        self.previous_state, self.state, self.since_ms = self.state, state, now_ms

    # ---- members -----------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a new member. The first one leads and sets the protocol type."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self.supported.update({name for name, _ in member.protocols})
        session = self.pending.pop(member.member_id, None)
        if session is not None:
            session.stop()

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._subtract(member)
        member.protocols = protocols
        self.supported.update({name for name, _ in protocols})

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending id; the member that joined first leads if the leader is
        gone. Answers that wait have been given before."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.session.stop()
            self._subtract(member)
            if member.instance_id is not None:
                self.instances.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        session = self.pending.pop(member_id, None)
        if session is not None:
            session.stop()
        self.unsynced.discard(member_id)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id. It keeps its place in the order of joining."""
        former = member.member_id
        member.member_id = member_id
        self.members = {each.member_id: each for each in self.members.values()}
        if self.leader == former:
            self.leader = member_id
        assert member.instance_id is not None, "only static members are replaced"
        self.instances[member.instance_id] = member_id

    def _subtract(self, member: Member) -> None:
        self.supported.subtract({name for name, _ in member.protocols})
        self.supported = +self.supported

    # ---- answers -----------------------------------------------------------------------------

    def waits(self, member_id: str) -> bool:
        """Whether the member has a join or a sync that is not answered."""
        return member_id in self.joins or member_id in self.syncs

    def answer_join(self, member_id: str, result: JoinResult) -> bool:
        """Answer a join if one waits. Returns whether it did."""
        answer = self.joins.pop(member_id, None)
        if answer is not None:
            answer(result)
        return answer is not None

    def answer_sync(self, member_id: str, result: SyncResult) -> bool:
        """Answer a sync if one waits. Returns whether it did."""
        answer = self.syncs.pop(member_id, None)
        if answer is not None:
            answer(result)
        return answer is not None

    def generation_for(self, member_id: str) -> JoinResult:
        """The answer to a join of this generation; the leader gets the members' metadata."""
        leads = member_id == self.leader
        return JoinResult(
            ErrorCode.NONE,
            member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader or "",
            members=self.joined_members() if leads else (),
        )

    def joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        )

    # ---- log ---------------------------------------------------------------------------------

    def store(self) -> None:
        """Write the group as Kafka writes it to ``__consumer_offsets``."""
        self.stored = StoredGroup(
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            tuple(
                StoredMember(
                    member.member_id, member.instance_id, member.client_id, member.client_host,
                    member.session_timeout_ms, member.rebalance_timeout_ms, member.protocols,
                    member.assignment,
                )
                for member in self.members.values()
            ),
            self.since_ms,
        )  # fmt: skip
