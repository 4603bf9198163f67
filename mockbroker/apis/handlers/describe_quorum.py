"""DescribeQuorum (55, KIP-595): the voters and observers of the metadata log.

Versions: 1 times (KIP-836); 2 directory ids, nodes and texts (KIP-853). The voters are the
controller, whose log is the action log, and those that AddRaftVoter added; the other live brokers
observe. None is behind. Directory ids are zero with level 0 of kraft.version.
"""

from __future__ import annotations

import uuid
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
from mockbroker.apis.common.requirements import Requirement, cluster_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Broker, Voter

__all__ = ["describe_quorum"]

_TOPIC: Final = "__cluster_metadata"
_LISTENER: Final = "CONTROLLER"
_NO_DIRECTORY: Final = uuid.UUID(int=0)
_DIRECTORIES_SINCE: Final = 2


def _handled(call: Call) -> int:
    return 0 if call.release.has(facts.QUORUM_DESCRIBED) else ErrorCode.UNKNOWN_SERVER_ERROR


@register(55, "0-2", requires=(Requirement(_handled), cluster_access(AclOperation.DESCRIBE)))
def describe_quorum(call: Call) -> DescribeQuorumResponse:
    body: DescribeQuorumRequest = call.body
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
        cluster.controller.metadata_view(call.broker_id).live_brokers(),
        key=lambda each: each.broker_id != cluster.state.controller_id,
    )
    end, now = len(cluster.log), cluster.timers.now_ms

    def replica(broker_id: int, directory: uuid.UUID = _NO_DIRECTORY) -> ReplicaState:
        state = ReplicaState(
            replica_id=broker_id,
            log_end_offset=end,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )
        if call.version >= _DIRECTORIES_SINCE:
            state.replica_directory_id = directory
        return state

    voters = cluster.quorum.voters
    voting = {each.voter_id for each in voters}
    partition = PartitionData(
        error_message="",  # not null
        leader_id=leader.broker_id,
        leader_epoch=cluster.state.controller_epoch,
        high_watermark=end,
        current_voters=[replica(each.voter_id, each.directory_id) for each in voters],
        observers=[replica(b.broker_id) for b in observers if b.broker_id not in voting],
    )
    nodes = [_node(leader, each) for each in voters] if call.version >= _DIRECTORIES_SINCE else []
    return DescribeQuorumResponse(
        error_message="",
        topics=[TopicData(topic_name=_TOPIC, partitions=[partition])],
        nodes=nodes,
    )


def _node(leader: Broker, voter: Voter) -> Node:
    """The voters that were added say where they listen; the others are the controller."""
    listeners = voter.listeners or ((_LISTENER, leader.host, leader.port),)
    return Node(
        node_id=voter.voter_id,
        listeners=[Listener(name=name, host=host, port=port) for name, host, port in listeners],
    )


def _unknown(index: int) -> PartitionData:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return PartitionData(partition_index=index, error_code=code, error_message=message(code))
