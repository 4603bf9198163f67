"""ListPartitionReassignments (46, KIP-455): the reassignments in progress, as the controller knows
them.

Version 0 only; flexible. Null topics list everything; unknown and idle partitions are omitted.
A refusal repeats the requested partitions with empty lists, as Kafka's error response does. A
broker that is not the controller lists none, as Kafka with ZooKeeper does (3.9.2).
"""

from __future__ import annotations

from kproto.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kproto.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from mockbroker.apis.common.controller_queue import queued
from mockbroker.apis.common.requirements import (
    cluster_operation,
    controller,
    everywhere,
    silent,
    when,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["list_partition_reassignments"]


def _is_timed(call: Call) -> bool:
    return call.release.has(facts.LISTED_REASSIGNMENTS_TIMED)


@register(
    46,
    "0",
    requires=(
        everywhere(cluster_operation(AclOperation.DESCRIBE)),
        controller,
        *silent(when(_is_timed, everywhere(queued("topics")))),
    ),
)
def list_partition_reassignments(call: Call) -> ListPartitionReassignmentsResponse:
    request: ListPartitionReassignmentsRequest = call.body
    requested = request.topics
    result = call.cluster.reassignments.list_ongoing(
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
