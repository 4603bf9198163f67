"""Which brokers know the target replicas of a reassignment, where a KIP-455 draft sends them.

The drafts add TargetReplicas to LeaderAndIsr. A broker whose version of LeaderAndIsr is older than
that field does not learn its target, so it does not start to replicate.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.state.actions import LeaderAndIsrSent, StopReplicaSent
from mockbroker.simulation.state.cluster_parts import (
    Broker,
    Partition,
    TargetedPartition,
    TopicPartition,
)

__all__ = ["LEADER_AND_ISR", "TARGET_REPLICAS_SINCE", "KnownTargets"]

LEADER_AND_ISR: Final = 4
"""The API key of LeaderAndIsr."""

TARGET_REPLICAS_SINCE: Final = 3
"""The first version of the drafts' LeaderAndIsr that has TargetReplicas."""


class KnownTargets(msgspec.Struct):
    """``by_replica`` maps (broker, topic, partition) to whether the last LeaderAndIsr that the
    broker received for this partition had TargetReplicas. A replica without an entry received none
    during the current reassignment."""

    by_replica: dict[tuple[int, str, int], bool] = msgspec.field(default_factory=dict)

    def note_sent(self, change: LeaderAndIsrSent | StopReplicaSent) -> None:
        """Record what the recipients of a request know once they have processed it."""
        if isinstance(change, StopReplicaSent) or change.target_replicas is None:
            for broker_id in change.to:
                self.by_replica.pop((broker_id, change.topic, change.index), None)
            return
        for broker_id, version in zip(change.to, change.versions, strict=True):
            key = (broker_id, change.topic, change.index)
            self.by_replica[key] = version >= TARGET_REPLICAS_SINCE

    def note_software(self, before: Broker, after: Broker) -> None:
        """Discard what a broker knew if its new software does not support TargetReplicas."""
        newest = {LEADER_AND_ISR: TARGET_REPLICAS_SINCE}
        was, now = (each.highest_version(LEADER_AND_ISR, newest) for each in (before, after))
        if now < TARGET_REPLICAS_SINCE <= was:
            for key in self.by_replica:
                if key[0] == after.broker_id:
                    self.by_replica[key] = False

    def forget_topic(self, name: str) -> None:
        """Discard all entries of a deleted topic."""
        self.by_replica = {key: value for key, value in self.by_replica.items() if key[1] != name}

    def lacks_target(self, broker_id: int, tp: TopicPartition) -> bool:
        """Return whether the broker received LeaderAndIsr, but at a version without the target."""
        return self.by_replica.get((broker_id, *tp)) is False

    def fetches(self, broker_id: int, tp: TopicPartition, partition: Partition) -> bool:
        """Return whether a broker fetches this partition from its leader.

        In the drafts a target that is not a replica yet fetches only if it knows the target.
        Elsewhere every broker that hosts the partition fetches it.
        """
        if not isinstance(partition, TargetedPartition) or broker_id in partition.replicas:
            return True
        return self.by_replica.get((broker_id, *tp), False)
