"""StopReplica (5): the controller tells a broker to stop fetching partitions, or to delete them.

Versions: 1 broker epochs, and partitions grouped by topic; 2 flexible; 3 each partition has its
leader epoch and its own delete flag (KIP-570); 4 the controller marks itself as KRaft. The refusal
of a whole request lists its partitions only if the caller is not authorised.
"""

from __future__ import annotations

from collections.abc import Iterator

from kproto.error_codes import ErrorCode
from kproto.messages.stop_replica_request import StopReplicaRequest
from kproto.messages.stop_replica_response import StopReplicaPartitionError, StopReplicaResponse
from mockbroker.apis.common.requirements import cluster_access, current_controller, everywhere
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["stop_replica"]

_NO_EPOCH = -1


@register(
    5, "0-4", requires=(everywhere(cluster_access(AclOperation.CLUSTER_ACTION)), current_controller)
)
def stop_replica(call: Call) -> StopReplicaResponse:
    request: StopReplicaRequest = call.body
    memory = call.cluster.memories[call.broker_id]
    memory.accept(request.controller_id, request.controller_epoch)
    return StopReplicaResponse(
        error_code=ErrorCode.NONE,
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=tp[0], partition_index=tp[1], error_code=_stop(call, tp, leader_epoch)
            )
            for tp, leader_epoch in _rows(request, call.version)
        ],
    )


def _stop(call: Call, tp: TopicPartition, leader_epoch: int) -> int:
    if call.cluster.state.replica_dirs.is_failed(call.broker_id, tp):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return call.cluster.memories[call.broker_id].stop(tp, leader_epoch)


def _rows(request: StopReplicaRequest, version: int) -> Iterator[tuple[TopicPartition, int]]:
    """Return the partition index and leader epoch. The delete flag has no effect, because the
    broker stores no data."""
    if version == 0:
        for partition in request.ungrouped_partitions:
            yield (partition.topic_name, partition.partition_index), _NO_EPOCH
    elif version < 3:
        for topic in request.topics:
            for index in topic.partition_indexes:
                yield (topic.name, index), _NO_EPOCH
    else:
        for states in request.topic_states:
            for state in states.partition_states:
                yield (states.topic_name, state.partition_index), state.leader_epoch
