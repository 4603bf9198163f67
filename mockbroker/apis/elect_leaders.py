"""ElectLeaders (43, KIP-183, KIP-460): preferred or unclean leader elections.

Versions: 0 is ElectPreferredLeaders; 1 election type and a top-level error; 2 flexible. Null
partitions mean all. A broker that is not the controller of a cluster without forwarding answers
41 in every partition and no top-level error, as Kafka's ZooKeeper brokers do.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.error_codes import ErrorCode
from kproto.messages.elect_leaders_request import ElectLeadersRequest
from kproto.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from mockbroker.apis.authorization import Refused, cluster_refusal
from mockbroker.apis.registry import Call, register

__all__ = ["elect_leaders"]


@register(43, "0-2")
def elect_leaders(call: Call) -> ElectLeadersResponse:
    request: ElectLeadersRequest = call.body
    refused = cluster_refusal(call)
    if refused is not None:
        return _unauthorized(call, request, refused)
    if call.refused_as_not_controller:
        return _refuse(call, request, ErrorCode.NOT_CONTROLLER)
    wanted = request.topic_partitions
    result = call.cluster.elect_leaders(
        request.election_type,
        None if wanted is None else [(each.topic, each.partitions) for each in wanted],
    )
    return ElectLeadersResponse(
        # Version 0 has no place for it.
        error_code=result.error_code if call.version >= 1 else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.name,
                partition_result=[
                    PartitionResult(
                        partition_id=row.partition_index,
                        error_code=row.error_code,
                        error_message=row.error_message,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in result.topics
        ],
    )


def _unauthorized(
    call: Call, request: ElectLeadersRequest, refused: Refused
) -> ElectLeadersResponse:
    """As the released brokers: of what was asked for by name only, so that nothing is told."""
    code, text = refused
    asked = [(each.topic, each.partitions) for each in request.topic_partitions or ()]
    response = _all(asked, code, text if call.profile.forwarding else None)
    if call.version >= 1:
        response.error_code = code
    return response


def _refuse(call: Call, request: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    if request.topic_partitions is None:
        view = call.cluster.metadata_view(call.broker_id)
        asked = [
            (topic.name, [each.index for each in topic.partitions])
            for topic in view.topics.values()
        ]
    else:
        asked = [(each.topic, each.partitions) for each in request.topic_partitions]
    return _all(asked, error)


def _all(
    asked: Sequence[tuple[str, Sequence[int]]], error: ErrorCode, text: str | None = None
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=name,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error, error_message=text)
                    for index in indexes
                ],
            )
            for name, indexes in asked
        ]
    )
