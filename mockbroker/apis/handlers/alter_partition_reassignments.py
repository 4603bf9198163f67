"""AlterPartitionReassignments (45, KIP-455): start, change or cancel reassignments.

Versions: 1 allow_replication_factor_change in request and, echoed, in response (KIP-860).
Flexible from 0. Null replicas cancel. A refusal is repeated in every requested partition, because
Java's client only fails the futures of partitions that it finds in the response. A broker that is
not the controller lists no partition, as Kafka with ZooKeeper does (3.9.2): clients then look for
the controller.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kproto.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mockbroker.apis.common.authorization import cluster_refusal
from mockbroker.apis.common.controller_queue import times_out
from mockbroker.apis.registry import Call, register

__all__ = ["alter_partition_reassignments"]


@register(45, "0-1")
@register(45, "0-1", dialects=("kip-860",))
def alter_partition_reassignments(call: Call) -> AlterPartitionReassignmentsResponse:
    request: AlterPartitionReassignmentsRequest = call.body
    refused = cluster_refusal(call)
    if refused is not None:
        return _refuse(request, *refused)
    if call.refused_as_not_controller:
        code = ErrorCode.NOT_CONTROLLER
        return AlterPartitionReassignmentsResponse(error_code=code, error_message=message(code))
    if request.topics and times_out(call):
        return _refuse(request, ErrorCode.REQUEST_TIMED_OUT)
    result = call.cluster.alter_partition_reassignments(
        [
            (topic.name, [(each.partition_index, each.replicas) for each in topic.partitions])
            for topic in request.topics
        ],
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=result.allow_replication_factor_change,
        error_code=result.error_code,
        error_message=result.error_message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=row.partition_index,
                        error_code=row.error_code,
                        error_message=row.error_message,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in result.topics
        ],
    )


def _refuse(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, text: str | None = None
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=text,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=text
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
