"""A share group and its members, and what clients ask of the coordinator.

State without rules: ``tables`` decides, ``membership`` changes. Members are values: a change makes
another member.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mockbroker.groups.classic.model import Session
from mockbroker.groups.modern.heartbeats import JOINING, LEAVING
from mockbroker.groups.modern.partitions import NOTHING, Assignment
from mockbroker.groups.modern.topics import TopicFacts

__all__ = ["SHARE_TYPE", "ShareGroup", "ShareGroupState", "ShareHeartbeat", "ShareMember"]

SHARE_TYPE: Final = "share"
"""The type of these groups in ListGroups, and the protocol type of their members."""


class ShareGroupState(StrEnum):
    """The names that ShareGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """ShareGroupHeartbeat. Names and rack are None where the request leaves them out."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topic_names: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def joins(self) -> bool:
        return self.member_epoch == JOINING

    @property
    def leaves(self) -> bool:
        return self.member_epoch == LEAVING


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member. ``previous_epoch`` is -1 until it has had two."""

    member_id: str
    rack_id: str | None = None
    topic_names: frozenset[str] = frozenset()
    client_id: str = ""
    client_host: str = ""
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Assignment = NOTHING

    @property
    def subscription(self) -> tuple[object, ...]:
        """The fields of the record of its metadata."""
        return self.rack_id, self.topic_names, self.client_id, self.client_host

    @property
    def progress(self) -> tuple[object, ...]:
        """The fields of the record of its current assignment."""
        return self.epoch, self.previous_epoch, self.assigned


@dataclass(slots=True, eq=False)
class ShareGroup:
    """``epoch`` counts the causes of a new target, ``target_epoch`` is the one for which ``target``
    was made, at ``target_ms`` (0: never).

    ``initialized`` are the partitions whose share state exists: only these are assigned. ``held``
    says whether a tester keeps members at their epoch."""

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    target_ms: int = 0
    target: dict[str, Assignment] = field(default_factory=dict)
    members: dict[str, ShareMember] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    initialized: Assignment = NOTHING
    facts: tuple[TopicFacts, ...] = ()
    """Of the subscribed topics, as the epoch takes account of them."""
    held: bool = False
    dead: bool = False

    @property
    def state(self) -> ShareGroupState:
        if self.dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member subscribes to."""
        return frozenset().union(*(each.topic_names for each in self.members.values()))

    def remove(self, member_id: str) -> None:
        """Forget a member with its target and its session."""
        del self.members[member_id]
        self.target.pop(member_id, None)
        session = self.sessions.pop(member_id, None)
        if session is not None:
            session.stop()

    def stop(self) -> None:
        """Stop everything that could still happen to the group."""
        for session in self.sessions.values():
            session.stop()
        self.sessions.clear()
