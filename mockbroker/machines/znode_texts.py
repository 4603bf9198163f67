"""The two znodes the drafts of KIP-455 keep partitions in, to and from what controllers remember.

``/brokers/topics/T`` holds the replicas of every partition of T, in the text of Kafka before 2.4,
and ``.../partitions/P/state`` leader and ISR of one, to which the drafts add ``targetReplicas``.
The texts themselves are ``kproto.znodes.kafka_znodes``'s.
"""

from __future__ import annotations

from collections.abc import Iterable

from kproto.znodes import MalformedZnodeError
from kproto.znodes.kafka_znodes import (
    PartitionState,
    TopicAssignment,
    decode_partition_state,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_path,
)
from mockbroker.model import Partition, TargetedPartition

__all__ = ["partition_state_path", "read_target", "state_text", "topic_path", "topic_text"]

_VERSION_BEFORE_REASSIGNMENTS = 1


def topic_text(partitions: Iterable[Partition]) -> str:
    assignment = TopicAssignment(partitions={each.index: each.replicas for each in partitions})
    return encode_topic(assignment, _VERSION_BEFORE_REASSIGNMENTS).decode()


def state_text(partition: Partition, controller_epoch: int) -> str:
    """``targetReplicas`` is absent where there is no reassignment; the older draft's shrunk to
    nothing is ``[]``."""
    targeted = isinstance(partition, TargetedPartition)
    state = PartitionState(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        controller_epoch=controller_epoch,
        isr=partition.isr,
        target_replicas=partition.target if targeted else None,
    )
    return encode_partition_state(state).decode()


def read_target(path: str, text: str | None) -> tuple[int, ...] | None:
    """The target in a state znode. No znode, no target, null and [] all mean: no reassignment.

    Raises MalformedZnodeError.
    """
    if text is None:
        return None
    target = tuple(
        decode_partition_state(path, text.encode(errors="surrogatepass")).target_replicas or ()
    )
    if len(set(target)) != len(target):
        raise MalformedZnodeError(path, "targetReplicas names a broker twice")
    return target or None
