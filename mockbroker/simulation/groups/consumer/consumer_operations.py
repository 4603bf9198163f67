"""Operations on consumer groups that no client has.

Every operation raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup, Member
from mockbroker.simulation.groups.consumer.consumer_membership import ConsumerMembership
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.modern_operations import StaticOperations
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["ConsumerOperations"]


class ConsumerOperations(StaticOperations[ConsumerGroup, HeartbeatResult]):
    """The operations that ``ConsumerGroups`` inherits."""

    kind = "consumer"
    seed = 848
    membership: ConsumerMembership

    def set_target(self, group_id: str, target: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give members these targets instead of those of the assignor, until ``release_assignor``.
        Members that are not named get nothing."""
        group = self._existing(group_id)
        self._pin(
            group,
            {name: frozenset(map(self._partition, each)) for name, each in target.items()},
        )

    def _partition(self, tp: TopicPartition) -> tuple[uuid.UUID, int]:
        topic_id = self.membership.topics.id_of(tp[0])
        if topic_id is None:
            raise ClusterError(f"there is no topic {tp[0]!r}")
        return topic_id, tp[1]

    def _at_epoch(self, member: Member, number: int) -> Member:
        return replace(
            member,
            epoch=number,
            previous_epoch=number,
            assigned=dict.fromkeys(member.assigned, number),
            revoking=dict.fromkeys(member.revoking, number),
        )

    def _make_target(self, group: ConsumerGroup) -> None:
        self.membership.make_target(group)
