"""A share group and its members, and its heartbeats.

State without rules. Members are values: a change makes another member.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from mockbroker.simulation.groups.modern.heartbeats import JOINING, LEAVING
from mockbroker.simulation.groups.modern.modern_group import ModernGroup
from mockbroker.simulation.groups.modern.partitions import NOTHING, Assignment
from mockbroker.simulation.groups.sessions import Session

__all__ = ["SHARE_TYPE", "ShareGroup", "ShareGroupState", "ShareHeartbeat", "ShareMember"]

SHARE_TYPE: Final = "share"
"""The type of these groups in ListGroups, and the protocol type of their members."""


class ShareGroupState(StrEnum):
    """The names that ShareGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareHeartbeat(msgspec.Struct, frozen=True):
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


class ShareMember(msgspec.Struct, frozen=True):
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
    def metadata(self) -> tuple[object, ...]:
        """The fields of the record of its metadata."""
        return self.rack_id, self.topic_names, self.client_id, self.client_host

    @property
    def progress(self) -> tuple[object, ...]:
        """The fields of the record of its current assignment."""
        return self.epoch, self.previous_epoch, self.assigned


class ShareGroup(ModernGroup[ShareMember, Assignment, Session], eq=False):
    """``initialized`` are the partitions whose share state exists: only these are assigned."""

    initialized: Assignment = NOTHING

    @property
    def state(self) -> ShareGroupState:
        if self.dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member subscribes to."""
        return frozenset().union(*(each.topic_names for each in self.members.values()))
