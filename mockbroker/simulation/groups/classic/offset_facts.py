"""Classic groups as their committed offsets see them."""

from __future__ import annotations

from collections.abc import Iterable

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupStanding
from mockbroker.simulation.groups.classic.coordinator import ClassicGroups
from mockbroker.simulation.groups.classic.model import GroupState

__all__ = ["ClassicGroupFacts"]


class ClassicGroupFacts:
    """Answers the questions of ``mockbroker.simulation.coordinators.group_facts.GroupFacts``."""

    def __init__(self, groups: ClassicGroups) -> None:
        self._groups = groups

    def validate_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        version: int = 0,
        transactional: bool = False,
    ) -> ErrorCode:
        """As ``ClassicGroups.validate_commit``."""
        return self._groups.validate_commit(
            group_id, member_id, instance_id, generation,
            version=version, transactional=transactional,
        )  # fmt: skip

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Classic groups ignore member and epoch."""
        return ErrorCode.NONE

    def validate_offset_delete(self, group_id: str) -> ErrorCode:
        """Groups with members keep their offsets, unless the members are consumers."""
        group = self._groups.group(group_id)
        if group is None or group.is_in(GroupState.DEAD):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.is_in(GroupState.EMPTY) or group.is_consumer_group:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """As ``ClassicGroups.is_subscribed``."""
        return self._groups.is_subscribed(group_id, topic)

    def standing(self, group_id: str) -> GroupStanding | None:
        """Return the group's protocol type and state."""
        group = self._groups.group(group_id)
        if group is None:
            return None
        return GroupStanding(
            group.protocol_type or "", group.state, self._groups.empty_since_ms(group_id)
        )

    def group_ids(self) -> Iterable[str]:
        """The ids of all groups."""
        return self._groups.groups

    def offsets_gone(self, group_id: str) -> None:
        """An empty group goes with its last offset."""
        self._groups.forget_if_empty(group_id)
