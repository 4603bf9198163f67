"""DescribeQuorum (55, KIP-595): the voters and observers of the metadata log.

Versions: 1 times (KIP-836); 2 directory ids, nodes and texts (KIP-853). The mock has one voter, its
controller, whose log is the action log; the other live brokers observe and are never behind.
Directory ids are zero, as in a quorum whose voters the configuration lists.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.messages.describe_quorum_request import DescribeQuorumRequest
from kproto.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from mockbroker.apis.authorization import may
from mockbroker.apis.registry import Call, register

__all__ = ["describe_quorum"]

_TOPIC: Final = "__cluster_metadata"
_LISTENER: Final = "CONTROLLER"


@register(55, "0-2")
def describe_quorum(call: Call) -> DescribeQuorumResponse:
    body: DescribeQuorumRequest = call.body
    if not may(call):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeQuorumResponse(error_code=code, error_message=message(code))
    named = [(topic.topic_name, [p.partition_index for p in topic.partitions])
             for topic in body.topics]  # fmt: skip
    if named != [(_TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[
                TopicData(topic_name=name, partitions=[_unknown(index) for index in indexes])
                for name, indexes in named
            ]
        )
    cluster = call.cluster
    leader, *observers = sorted(
        cluster.metadata_view(call.broker_id).live_brokers(),
        key=lambda each: each.broker_id != cluster.controller_id,
    )
    end, now = len(cluster.log), cluster.now_ms

    def replica(broker_id: int) -> ReplicaState:
        return ReplicaState(
            replica_id=broker_id,
            log_end_offset=end,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )

    partition = PartitionData(
        error_message=None,
        leader_id=leader.broker_id,
        leader_epoch=cluster.controller_epoch,
        high_watermark=end,
        current_voters=[replica(leader.broker_id)],
        observers=[replica(each.broker_id) for each in observers],
    )
    listener = Listener(name=_LISTENER, host=leader.host, port=leader.port)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[TopicData(topic_name=_TOPIC, partitions=[partition])],
        nodes=[Node(node_id=leader.broker_id, listeners=[listener])] if call.version >= 2 else [],
    )


def _unknown(index: int) -> PartitionData:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return PartitionData(partition_index=index, error_code=code, error_message=message(code))
