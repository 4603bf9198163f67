"""A share group and its members, and its heartbeats.

State without rules. Members are values: a change makes another member.
"""

from __future__ import annotations

import uuid
from typing import Final

import msgspec

from mockbroker.simulation.groups.modern.heartbeats import Heartbeat
from mockbroker.simulation.groups.modern.modern_group import (
    EpochGroupState,
    ModernGroup,
    ModernMember,
)
from mockbroker.simulation.groups.modern.partitions import NOTHING, Assignment
from mockbroker.simulation.groups.sessions import Session

__all__ = ["SHARE_TYPE", "ShareGroup", "ShareHeartbeat", "ShareMember"]

SHARE_TYPE: Final = "share"
"""The type of these groups in ListGroups, and the protocol type of their members."""


class ShareHeartbeat(Heartbeat, frozen=True):
    """ShareGroupHeartbeat. Names are None where the request leaves them out."""

    topic_names: tuple[str, ...] | None = None


class ShareMember(ModernMember, frozen=True):
    """A member, which shares its partitions with others."""

    topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NOTHING

    @property
    def metadata(self) -> tuple[object, ...]:
        return self.rack_id, self.topic_names, self.client_id, self.client_host

    @property
    def progress(self) -> tuple[object, ...]:
        return self.epoch, self.previous_epoch, self.assigned


class ShareGroup(ModernGroup[ShareMember, Assignment, Session], eq=False):
    """``initialized`` are the partitions whose share state exists: only these are assigned.
    ``initializing`` are those of which Kafka has begun to make the state, without a known result:
    requests name topics without partitions that exist, and negative partitions."""

    group_type = SHARE_TYPE

    initialized: Assignment = NOTHING
    initializing: dict[uuid.UUID, frozenset[int]] = msgspec.field(default_factory=dict)

    @property
    def state(self) -> EpochGroupState:
        if self.dead:
            return EpochGroupState.DEAD
        return EpochGroupState.STABLE if self.members else EpochGroupState.EMPTY

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that any member subscribes to."""
        return frozenset().union(*(member.topic_names for member in self.members.values()))
