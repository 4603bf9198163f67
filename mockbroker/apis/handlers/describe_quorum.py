"""DescribeQuorum (55, KIP-595): the voters and observers of the metadata log.

Versions: 1 times (KIP-836); 2 directory ids, nodes and texts (KIP-853). The voters are the
controllers, whose log is the action log, and those that AddRaftVoter added; the other live brokers
observe. None is behind. Only the leader answers. Directory ids are zero with level 0 of
kraft.version.
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
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.common.requirements import Requirement, cluster_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Voter

__all__ = ["describe_quorum"]

_TOPIC: Final = "__cluster_metadata"
_LISTENER: Final = "CONTROLLER"
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
                TopicData(
                    topic_name=name,
                    partitions=[
                        _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for index in indexes
                    ],
                )
                for name, indexes in named
            ]
        )
    cluster = call.cluster
    leader_id = cluster.quorum.leader_id
    if call.session.controller not in (None, leader_id):
        return DescribeQuorumResponse(
            topics=[TopicData(topic_name=_TOPIC, partitions=[
                _refused(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)])]
        )  # fmt: skip
    observers = cluster.controller.metadata_view(call.broker_id).live_brokers()
    end, now = len(cluster.log), cluster.timers.now_ms

    def replica(broker_id: int, directory: uuid.UUID = ZERO_UUID) -> ReplicaState:
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
        leader_id=leader_id,
        leader_epoch=cluster.state.controller_epoch,
        high_watermark=end,
        current_voters=[replica(each.voter_id, each.directory_id) for each in voters],
        observers=[replica(b.broker_id) for b in observers if b.broker_id not in voting],
    )
    nodes = [_node(call, each) for each in voters] if call.version >= _DIRECTORIES_SINCE else []
    return DescribeQuorumResponse(
        error_message="", topics=[TopicData(topic_name=_TOPIC, partitions=[partition])], nodes=nodes
    )


def _node(call: Call, voter: Voter) -> Node:
    """The voters that were added say where they listen. Of the others, a broker without a listener
    for controllers is named with the one for clients."""
    listeners = voter.listeners
    if not listeners:
        found = call.cluster.quorum.endpoints.get(voter.voter_id)
        broker = call.cluster.state.brokers.get(voter.voter_id)
        if found is None and broker is not None:
            found = _LISTENER, broker.host, broker.port
        listeners = () if found is None else (found,)
    return Node(
        node_id=voter.voter_id,
        listeners=[Listener(name=name, host=host, port=port) for name, host, port in listeners],
    )


def _refused(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=index, error_code=code, error_message=message(code))
