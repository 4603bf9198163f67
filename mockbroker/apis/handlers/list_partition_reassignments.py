"""ListPartitionReassignments (46, KIP-455): the reassignments in progress, as the controller knows
them.

Version 0 only; flexible. Null topics list everything; unknown and idle partitions are omitted.
A refusal repeats the requested partitions with empty lists, as Kafka's error response does. A
broker that is not the controller lists none, as Kafka with ZooKeeper does (3.9.2).
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kproto.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from mockbroker.apis.common.authorization import cluster_refusal
from mockbroker.apis.registry import Call, register

__all__ = ["list_partition_reassignments"]


@register(46, "0")
def list_partition_reassignments(call: Call) -> ListPartitionReassignmentsResponse:
    request: ListPartitionReassignmentsRequest = call.body
    refused = cluster_refusal(call)
    if refused is not None:
        return _refuse(request, *refused)
    if call.refused_as_not_controller:
        code = ErrorCode.NOT_CONTROLLER
        return ListPartitionReassignmentsResponse(error_code=code, error_message=message(code))
    requested = request.topics
    result = call.cluster.list_partition_reassignments(
        None
        if requested is None
        else [(topic.name, topic.partition_indexes) for topic in requested]
    )
    return ListPartitionReassignmentsResponse(
        error_code=result.error_code,
        error_message=result.error_message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=each.partition_index,
                        replicas=list(each.replicas),
                        adding_replicas=list(each.adding_replicas),
                        removing_replicas=list(each.removing_replicas),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in result.topics
        ],
    )


def _refuse(
    request: ListPartitionReassignmentsRequest, error: ErrorCode, text: str | None = None
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error,
        error_message=text,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(partition_index=index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )
