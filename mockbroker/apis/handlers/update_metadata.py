"""UpdateMetadata (6): the controller sends a broker the cluster's metadata.

Versions: 1 several endpoints per broker; 2 racks; 3 listener names; 4 offline replicas; 5 broker
epochs, and partitions grouped by topic; 6 flexible; 7 topic ids; 8 the controller marks itself
as KRaft. The mock answers Metadata from the state of the cluster, not from this request.
"""

from __future__ import annotations

from collections.abc import Iterator

from kproto.error_codes import ErrorCode
from kproto.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from kproto.messages.update_metadata_response import UpdateMetadataResponse
from mockbroker.apis.common.requirements import cluster_access, current_controller
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.brokers.inter_broker.broker_memory import KnownPartition
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["update_metadata"]

_GROUPED_SINCE = 5


@register(6, "0-8", requires=(cluster_access(AclOperation.CLUSTER_ACTION), current_controller))
def update_metadata(call: Call) -> UpdateMetadataResponse:
    request: UpdateMetadataRequest = call.body
    memory = call.cluster.memories[call.broker_id]
    memory.accept(request.controller_id, request.controller_epoch)
    memory.live_brokers = {
        broker.id: _endpoint(broker, call.version) for broker in request.live_brokers
    }
    for tp, state in _rows(request, call.version):
        known = KnownPartition(
            state.leader, state.leader_epoch, tuple(state.isr), tuple(state.replicas)
        )
        memory.learn(tp, known)
    return UpdateMetadataResponse(error_code=ErrorCode.NONE)


def _endpoint(broker: UpdateMetadataBroker, version: int) -> tuple[str, int]:
    if version == 0:
        return broker.v0_host, broker.v0_port
    return next(((each.host, each.port) for each in broker.endpoints), ("", -1))


def _rows(
    request: UpdateMetadataRequest, version: int
) -> Iterator[tuple[TopicPartition, UpdateMetadataPartitionState]]:
    if version < _GROUPED_SINCE:
        for state in request.ungrouped_partition_states:
            yield (state.topic_name, state.partition_index), state
        return
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield (topic.topic_name, state.partition_index), state
