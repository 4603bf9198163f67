"""AlterPartitionReassignments (45, KIP-455): start, change or cancel reassignments.

Versions: 1 allow_replication_factor_change in request and, echoed, in response (KIP-860).
Flexible from 0. Null replicas cancel. A refusal is repeated in every requested partition, because
Java's client only fails the futures of partitions that it finds in the response. A broker that is
not the controller lists no partition, as Kafka with ZooKeeper does (3.9.2): clients then look for
the controller.
"""

from __future__ import annotations

from typing import Final

from kproto.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from kproto.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mockbroker.apis.common.controller_queue import queued
from mockbroker.apis.common.requirements import cluster_operation, controller, everywhere, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["alter_partition_reassignments"]


_REQUIRES: Final = (
    everywhere(cluster_operation(AclOperation.ALTER)),
    controller,
    *silent(everywhere(queued("topics"))),
)


@register(45, "0-1", requires=_REQUIRES)
@register(45, "0-1", requires=_REQUIRES, dialects=("kip-860",))
def alter_partition_reassignments(call: Call) -> AlterPartitionReassignmentsResponse:
    request: AlterPartitionReassignmentsRequest = call.body
    result = call.cluster.reassignments.alter(
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
