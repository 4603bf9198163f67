"""The facts about groups, a layer above, that committed offsets depend on.

``OffsetStore`` reads them, and ``mockbroker.simulation.groups`` provides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["EMPTY", "SIMPLE", "STABLE", "GroupCommit", "GroupFacts", "GroupStanding"]

EMPTY: Final = "Empty"
STABLE: Final = "Stable"


class GroupStanding(msgspec.Struct, frozen=True):
    """The facts about a group that the age of its offsets depends on.

    ``protocol_type`` is empty for a simple group, which only stores offsets. ``state`` is the name
    that DescribeGroups shows. ``empty_since_ms`` is the time at which the group lost its last
    member; None if it has members or is simple.
    """

    protocol_type: str = ""
    state: str = EMPTY
    empty_since_ms: int | None = None


SIMPLE: Final = GroupStanding()


class GroupCommit(msgspec.Struct, frozen=True):
    """A member commits offsets. ``epoch`` is its generation or its epoch, -1 without a member.
    ``version`` is OffsetCommit's, or TxnOffsetCommit's if ``transactional``; ``partitions`` are
    those that the commit concerns. ``stores`` is False if the metadata of all of them is too long:
    then nothing is stored."""

    group_id: str
    member_id: str | None = ""
    instance_id: str | None = None
    epoch: int = -1
    version: int = 0
    transactional: bool = False
    partitions: Sequence[TopicPartition] = ()
    stores: bool = True


class GroupFacts(Protocol):
    """The groups of a cluster, as their committed offsets see them."""

    def validate_commit(self, commit: GroupCommit) -> ErrorCode:
        """Return the error of a commit; without one the member's session is renewed. A group that
        does not exist is made, unless a generation is named."""
        ...

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return the error of a fetch; only groups of the newer protocol (KIP-848) have one."""
        ...

    def validate_offset_delete(self, group_id: str) -> ErrorCode:
        """Return the group's error in OffsetDelete: GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        ...

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member subscribes to the topic, or may."""
        ...

    def standing(self, group_id: str) -> GroupStanding | None:
        """Return the standing of a group, None if there is no such group."""
        ...

    def group_ids(self) -> Iterable[str]:
        """The ids of all groups."""
        ...

    def offsets_gone(self, group_id: str) -> None:
        """The group has no offsets (any more): it goes if it is empty."""
        ...
