"""Operations on streams groups that no client has.

Every operation raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.modern.modern_operations import StaticOperations
from mockbroker.simulation.groups.streams.streams_group import (
    Member,
    StreamsGroup,
    StreamsResult,
    Tasks,
)
from mockbroker.simulation.groups.streams.streams_membership import StreamsMembership
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["StreamsOperations"]


class StreamsOperations(StaticOperations[StreamsGroup, StreamsResult]):
    """The operations that ``StreamsGroups`` inherits."""

    kind = "streams"
    seed = 1071
    membership: StreamsMembership

    def shut_down(self, group_id: str, member: str) -> None:
        """Let a member request that the whole application shuts down: each member learns of it with
        its next heartbeat."""
        group = self._existing(group_id)
        requester = self._member(group, member)
        group.shutdown_member = group.shutdown_member or requester.member_id
        self.membership.changed(group)

    def set_target(self, group_id: str, target: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give members these active tasks, as subtopology and partition, instead of those of the
        assignor, until ``release_assignor``. Members that are not named get nothing."""
        group = self._existing(group_id)
        for tasks in target.values():
            for name, index in tasks:
                known = group.configured
                if known is None or not 0 <= index < known.tasks.get(name, 0):
                    raise ClusterError(f"group {group_id!r} has no task {name}-{index}")
        self._pin(group, {name: Tasks(frozenset(tasks)) for name, tasks in target.items()})

    def _at_epoch(self, member: Member, number: int) -> Member:
        epochs = dict.fromkeys(member.epochs, number)
        return replace(member, epoch=number, previous_epoch=number, epochs=epochs)

    def _make_target(self, group: StreamsGroup) -> None:
        if group.configured is not None:
            self.membership.make_target(group, group.configured)
