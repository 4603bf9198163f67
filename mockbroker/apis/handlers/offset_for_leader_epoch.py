"""OffsetForLeaderEpoch (23, KIP-101): where the records of a leader epoch end.

Versions: 1 the epoch that was found; 2 the current leader epoch is checked (KIP-320); 3 replica id,
from which on consumers use it; 4 flexible.
"""

from __future__ import annotations

from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kproto.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from mockbroker.apis.common.partition_views import known_partition
from mockbroker.apis.common.request_partitions import distinct_partitions
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.fetching.epoch_ends import EpochQuery, end_of_epoch
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["offset_for_leader_epoch"]


@register(23, "0-4")
def offset_for_leader_epoch(call: Call) -> OffsetForLeaderEpochResponse:
    request: OffsetForLeaderEpochRequest = call.body
    acts_for_cluster = call.authorizes(AclOperation.CLUSTER_ACTION)
    if call.release.has(facts.EPOCH_ENDS_MERGED):
        topics = distinct_partitions(
            request.topics,
            lambda topic: topic.topic,
            lambda topic: topic.partitions,
            lambda row: row.partition,
        )
    else:
        topics = [(topic, topic.partitions) for topic in request.topics]
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end(call, topic.topic, each, acts_for_cluster) for each in rows],
            )
            for topic, rows in topics
        ]
    )


def _end(
    call: Call, topic: str, requested: OffsetForLeaderPartition, acts_for_cluster: bool
) -> EpochEndOffset:
    query = EpochQuery(
        (topic, requested.partition),
        call.broker_id,
        requested.leader_epoch,
        requested.current_leader_epoch,
        acts_for_cluster,
        acts_for_cluster or call.authorizes(AclOperation.DESCRIBE, ResourceType.TOPIC, topic),
    )
    code, end = end_of_epoch(call.cluster.logs, known_partition(call, query.tp), query)
    return EpochEndOffset(
        partition=requested.partition,
        error_code=code,
        leader_epoch=end.epoch,
        end_offset=end.end_offset,
    )
